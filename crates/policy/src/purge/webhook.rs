//! Webhooks: messages of a source, or of a plugin in it, that something has changed. Their forms are a table for each kind, and their content is read here.
//!
//! Whether a webhook counts is not decided here: its signature is verified while it arrives.

use http::{Method, StatusCode};

use super::{Addresses, IsOwnHost, Signals, What, ghost, wordpress};
use crate::Policy;

/// The properties by which the webhooks of one kind of source differ from those of another.
#[derive(Debug)]
pub struct WebhookFormat {
    /// The path to which they are sent by `POST`, on every host of a site.
    pub path: &'static str,
    /// The field with the signature: `sha256=HEX, t=TIME`, in small letters.
    pub signature_field: &'static str,
    /// The scheme by which that is asked for in `WWW-Authenticate`.
    pub scheme: &'static str,
    /// What the signature is over.
    pub signed: Signed,
    /// The number of milliseconds that the time of the signature counts in.
    pub time_unit: u64,
    /// The most bytes of the content.
    pub bytes_max: usize,
    /// Whether a signature counts once for each site, and not once for all: contents of other sites may be the same.
    pub counts_for_each_site: bool,
    /// Whether the sender reads answers as JSON. Otherwise they are sentences.
    pub is_answered_in_json: bool,
    /// The answer to content that is too large.
    pub too_large: WebhookRefusal,
    /// The answer to a message without a signature, where there is a secret.
    pub unsigned: WebhookRefusal,
    /// The answer to a message that was signed with another secret.
    pub wrongly_signed: WebhookRefusal,
    /// The answer to content that is not a webhook.
    pub not_understood: WebhookRefusal,
    /// The answer to a message that comes again.
    pub again: WebhookRefusal,
    /// The remedy where there is no secret, and the sender may not purge.
    pub without_secret: &'static str,
}

/// The order in which content and time are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signed {
    /// The content and behind it the time, or the content alone.
    ContentThenTime,
    /// The time, a dot and the content.
    TimeThenContent,
}

/// The refusal of a webhook: a status, and the reason in words for whoever set it up.
#[derive(Debug, Clone, Copy)]
pub struct WebhookRefusal(pub StatusCode, pub &'static str);

/// The meaning of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Webhook {
    /// Everything of the site may have changed; if this is about a post, these addresses have.
    Changed(Option<Addresses>),
    /// Nothing that readers see has changed.
    Nothing,
    /// This is to be purged.
    Purge {
        /// The things to be purged; there may be none.
        what: Vec<What>,
        /// Whether they are only marked stale.
        soft: bool,
    },
}

impl Policy {
    /// Returns the form of the source's webhooks. `None`: it has none.
    #[must_use]
    pub const fn webhook_format(&self) -> Option<&'static WebhookFormat> {
        match self.preset.signals {
            Signals::None => None,
            Signals::Ghost => Some(&ghost::WEBHOOKS),
            Signals::WordPress => Some(&wordpress::WEBHOOKS),
        }
    }

    /// Returns whether this request is a webhook of the source, which is answered here and never by the source.
    #[must_use]
    pub fn is_webhook(&self, method: &Method, path: &str) -> bool {
        *method == Method::POST && self.webhook_format().is_some_and(|format| format.path == path)
    }

    /// Reads the content of a webhook. `None`: it is none.
    ///
    /// Content that was too much to be kept may say anything, also that a post is not for everybody any more: then nothing of the site is shown again.
    #[must_use]
    pub fn webhook(&self, content: Option<&[u8]>, is_own_host: IsOwnHost<'_>) -> Option<Webhook> {
        let Some(content) = content else { return Some(Webhook::Purge { what: vec![What::Everything], soft: false }) };
        match self.preset.signals {
            Signals::None => None,
            Signals::Ghost => ghost::webhook(content),
            Signals::WordPress => wordpress::webhook(content, is_own_host),
        }
    }
}
