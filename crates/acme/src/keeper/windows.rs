//! Renewal information: when the authority would like its certificates renewed (RFC 9773).

use std::time::Duration;

use semantics::Timestamp;

use super::Keeper;
use crate::{
    certificate::Certificate,
    name::{Issuer, issuer},
    schedule::{Window, ask_again},
    transport::RetryFieldsHeard,
};

/// The time after which renewal information that could not be read is asked for again (RFC 9773 §4.3.3).
const ARI_LATER: Duration = Duration::from_secs(6 * 60 * 60);

impl Keeper {
    /// Asks the authority when it would like its certificates renewed (RFC 9773): it may have revoked them.
    pub(super) async fn ask_for_windows(&self, now: Timestamp) {
        let asked: Vec<(String, Certificate)> = {
            let entries = self.entries.lock();
            let due = entries.iter().filter(|(name, entry)| entry.ask_at <= now && issuer(name) == Issuer::Acme);
            due.filter_map(|(name, entry)| Some((name.clone(), entry.certificate.clone()?))).collect()
        };
        if asked.is_empty() {
            return;
        }
        let account = match self.account(&RetryFieldsHeard::default()).await {
            Ok(account) => Some(account),
            Err(failure) => {
                tracing::debug!("no renewal information: {failure}");
                None
            }
        };
        for (name, certificate) in asked {
            let answer = match (&account, certificate.identifier()) {
                (Some(account), Some(id)) => account.renewal_info(&id).await,
                _ => Err(instant_acme::Error::Str("renewal information")),
            };
            let mut entries = self.entries.lock();
            let Some(entry) = entries.get_mut(&name) else { continue };
            match answer {
                Ok((info, again)) => {
                    let at = |at: time::OffsetDateTime| Timestamp::from_secs(u64::try_from(at.unix_timestamp()).unwrap_or_default());
                    let window = Window { start: at(info.suggested_window.start), end: at(info.suggested_window.end) };
                    if entry.schedule.window != Some(window) && window.end <= now {
                        let why = info.explanation_url.map(|url| format!(": {url}")).unwrap_or_default();
                        tracing::warn!("the authority wants the certificate for {name} replaced at once{why}");
                    }
                    entry.schedule.window = Some(window);
                    entry.ask_at = now + ask_again(again);
                }
                Err(error) => {
                    tracing::debug!("no renewal information for {name}: {error}");
                    entry.ask_at = now + ARI_LATER;
                }
            }
        }
    }
}
