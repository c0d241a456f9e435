//! `[wordpress]`: what an operator says of a WordPress.

use std::{ops::Range, time::Duration};

use super::{
    error::Mistake,
    file,
    ghost::SecretText,
    overrides::WithPlace,
    resolve::{Resolver, seconds},
    settings::{Kind, WordPressSettings},
    sites::{first, first_span},
    units::Period,
    words::CronPeriod,
};
use crate::recognition::{Finding, Software};

/// The time between two runs of the schedule.
const CRON: Period = seconds(60);
/// The bounds of it. WordPress itself does nothing more often than once a minute, unless it is called as here.
const CRON_MIN: Period = seconds(10);
const CRON_MAX: Period = seconds(86_400);

impl Resolver<'_> {
    /// Refuses sections for a WordPress where there is none.
    pub(super) fn refuse_wordpress(&mut self, name: &str, wordpress: &file::WordPress, is_used: bool) {
        if let Some(span) = first_key(wordpress).filter(|_| !is_used) {
            let problem = format!("{name} is for a WordPress, and no source is one");
            self.wrong_at(Mistake::new(problem, "remove the section; or write ‹kind wordpress›, if it is a WordPress"), span);
        }
    }

    /// Takes the time between two runs of the schedule. `None`: it is not run from here.
    pub(super) fn wordpress_cron(&mut self, written: [&file::WordPress; 2]) -> Option<Duration> {
        let said = self.layered(written.map(|wordpress| &wordpress.cron));
        match said {
            Some(WithPlace { value: CronPeriod(None), .. }) => None,
            Some(WithPlace { value: CronPeriod(Some(period)), place }) => {
                Some(self.within("cron", Some(WithPlace { value: period, place }), CRON, CRON_MIN..=CRON_MAX).0)
            }
            None => Some(CRON.0),
        }
    }

    /// Takes the secret from the site's own section, or else from the common one.
    pub(super) fn wordpress_secret(&self, written: [&file::WordPress; 2]) -> Option<WithPlace<SecretText>> {
        self.layered(written.map(|wordpress| &wordpress.secret))
    }
}

/// Returns the settings for a WordPress. What it says of its own path goes before what was written: `source_path` is the one in the source.
pub(super) fn settings(
    written: [&file::WordPress; 2],
    (secret, cron): (Option<WithPlace<SecretText>>, Option<Duration>),
    source_path: Option<String>,
    finding: &Finding,
) -> WordPressSettings {
    let path = first(written.map(|wordpress| &wordpress.path)).map(|path| path.get_ref().0.clone()).or(source_path);
    let own_path = |software: &Software| Some(software.base_path().to_owned()).filter(|path| !path.is_empty());
    WordPressSettings { path: finding.of_kind(Kind::WordPress).map_or(path, own_path), secret: secret.map(|secret| secret.value.0), cron }
}

fn first_key(wordpress: &file::WordPress) -> Option<Range<usize>> {
    let file::WordPress { path, secret, cron } = wordpress;
    first_span([path.as_ref().map(toml::Spanned::span), secret.as_ref().map(toml::Spanned::span), cron.as_ref().map(toml::Spanned::span)])
}
