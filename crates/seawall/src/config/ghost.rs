//! `[ghost]`: what an operator says of a Ghost, and what the Ghost says itself.

use std::{fmt, ops::Range, str::FromStr};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    error::{Mistake, Place},
    file,
    overrides::{Overrides, WithPlace},
    resolve::Resolver,
    settings::{GhostSettings, Kind},
    sites::{first, first_span},
};
use crate::recognition::Finding;

/// The server that Ghost's own set-up names for the social web.
const ACTIVITYPUB: &str = "https://ap.ghost.org";

/// The longest secret.
const SECRET_BYTES_MAX: usize = 1024;

/// The text that stands for a secret where a value would be shown.
pub(super) const NOT_SHOWN: &str = "(not shown)";

/// A secret, as it was written.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(pub String);

impl FromStr for SecretText {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        if text.trim().is_empty() || text.len() > SECRET_BYTES_MAX {
            return Err(Mistake::new(
                "this is not a secret",
                format!("write the same text as on the other side; at most {SECRET_BYTES_MAX} characters"),
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// Ghost's own secret for the tiers of members: the bytes behind its base64.
#[derive(Clone, PartialEq, Eq)]
pub struct MemberSecret(pub Vec<u8>);

impl FromStr for MemberSecret {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let text = text.trim();
        // Ghost decodes it as Node does: with padding or without.
        let padded = format!("{text}{}", "=".repeat((4 - text.len() % 4) % 4));
        match STANDARD.decode(padded) {
            Ok(bytes) if !bytes.is_empty() && bytes.len() <= SECRET_BYTES_MAX => Ok(Self(bytes)),
            _ => Err(Mistake::new(
                "this is not a secret in base64",
                "copy cacheMembersContent.hmacSecret from Ghost's configuration as it stands there",
            )),
        }
    }
}

macro_rules! shows_nothing {
    ($($type:ident),*) => {$(
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} {NOT_SHOWN}", stringify!($type))
            }
        }
    )*};
}

shows_nothing!(SecretText, MemberSecret);

/// The secrets of a site's Ghost, as they were written.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets {
    pub(super) webhook: Option<WithPlace<SecretText>>,
    pub(super) member: Option<WithPlace<MemberSecret>>,
}

impl Secrets {
    /// Takes those from outside the file, where there are any.
    pub(super) fn or_overridden(self, overrides: &Overrides) -> Self {
        let Self { webhook, member } = overrides.ghost.clone();
        Self { webhook: webhook.or(self.webhook), member: member.or(self.member) }
    }

    /// Returns where one of them was written.
    pub(super) fn first_place(&self) -> Option<Place> {
        let webhook = self.webhook.as_ref().map(|said| said.place.clone());
        webhook.or_else(|| self.member.as_ref().map(|said| said.place.clone()))
    }
}

impl Resolver<'_> {
    /// Takes the secrets from the site's own section, or else from the common one.
    pub(super) fn secrets(&self, written: [&file::Ghost; 2]) -> Secrets {
        Secrets {
            webhook: self.layered(written.map(|ghost| &ghost.webhook_secret)),
            member: self.layered(written.map(|ghost| &ghost.member_secret)),
        }
    }

    /// Refuses sections for a Ghost where there is certainly none.
    pub(super) fn refuse_ghost(&mut self, name: &str, ghost: &file::Ghost, is_used: bool) {
        if let Some(span) = first_key_of_ghost(ghost).filter(|_| !is_used) {
            let problem = format!("{name} is for a Ghost, and no source is one");
            let remedy = "remove the section; or write ‹kind ghost›, if it is a Ghost that does not answer as one";
            self.wrong_at(Mistake::new(problem, remedy), span);
        }
    }
}

/// Returns the settings for a Ghost. What it says of its own path goes before what was written: `source_path` is the one in the source.
pub(super) fn settings(written: [&file::Ghost; 2], secrets: &Secrets, source_path: Option<String>, finding: &Finding) -> GhostSettings {
    let activitypub = first(written.map(|ghost| &ghost.activitypub));
    let path = first(written.map(|ghost| &ghost.path)).map(|path| path.get_ref().0.clone()).or(source_path);
    GhostSettings {
        path: finding.of_kind(Kind::Ghost).map_or(path, |ghost| Some(ghost.base_path().to_owned()).filter(|path| !path.is_empty())),
        activitypub: activitypub.map_or_else(|| ACTIVITYPUB.parse().ok(), |server| server.get_ref().0.clone()),
        analytics: first(written.map(|ghost| &ghost.analytics)).and_then(|server| server.get_ref().0.clone()),
        webhook_secret: secrets.webhook.as_ref().map(|secret| secret.value.0.clone()),
        member_secret: secrets.member.as_ref().map(|secret| secret.value.0.clone()),
    }
}

fn first_key_of_ghost(ghost: &file::Ghost) -> Option<Range<usize>> {
    let file::Ghost { path, activitypub, analytics, webhook_secret, member_secret } = ghost;
    first_span([
        path.as_ref().map(toml::Spanned::span),
        activitypub.as_ref().map(toml::Spanned::span),
        analytics.as_ref().map(toml::Spanned::span),
        webhook_secret.as_ref().map(toml::Spanned::span),
        member_secret.as_ref().map(toml::Spanned::span),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_secret_is_the_bytes_behind_its_base64() {
        for (text, bytes) in [("c2VjcmV0", &b"secret"[..]), ("c2VjcmV0cw==", b"secrets"), ("c2VjcmV0cw", b"secrets")] {
            assert_eq!(text.parse::<MemberSecret>().expect(text).0, bytes);
        }
        for text in ["", "not base64!", "c2VjcmV0c"] {
            let mistake = text.parse::<MemberSecret>().expect_err(text);
            assert!(mistake.remedy.contains("hmacSecret"), "{mistake:?}");
        }
    }
}
