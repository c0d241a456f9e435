//! How a source says by itself what has changed, and what that means: a column of the table of kinds, and the types that all kinds share.
//!
//! What a Ghost says is read in `ghost`, what a WordPress accepts in `wordpress`.

use http::HeaderName;

use super::What;
use crate::Policy;

/// The way in which a kind of source says what has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signals {
    /// It does not.
    None,
    /// A Ghost does: `X-Cache-Invalidate` in its answers to writes, and webhooks.
    Ghost,
    /// A WordPress does by what it accepts: unsafe requests, and those of its editors by GET; with a plugin, in fields of its answers.
    WordPress,
}

const X_CACHE_INVALIDATE: HeaderName = HeaderName::from_static("x-cache-invalidate");

/// The meaning of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signal {
    /// Whether everything of the site may have changed.
    pub everything: bool,
    /// The things that certainly have changed, and are never to be seen again.
    pub changed: Vec<What>,
}

/// The subject of a write to the source's own API for editors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteSubject {
    /// A post or a page: what was published can be told from the answer.
    Post,
    /// The settings: the whole site may have become private.
    Settings,
    /// Something that the source's own scheduler asks for, which tries again after a 503 alone.
    Schedule,
    /// The keys of its APIs: an answer to a key that has ended must not be seen any more.
    Keys,
    /// Anything else.
    Other,
}

/// The addresses that a publication changes first: the post itself, and then the pages of its tags and authors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addresses {
    /// The path of the post.
    pub post: Option<String>,
    /// The paths of its tags and authors.
    pub lists: Vec<String>,
    /// Whether it is not for everybody any more, and where everybody could read it.
    pub withdrawn: Option<Withdrawal>,
    /// The host in the post's address, with its port.
    pub host: Option<String>,
}

/// A post that is not for everybody any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withdrawal {
    /// It was, or is, at this path.
    At(String),
    /// It is a draft again. Nothing says where it was: the owner of the site decides how addresses are made.
    Unknown,
}

impl Policy {
    /// Returns how the source says what has changed.
    #[must_use]
    pub const fn signals(&self) -> Signals {
        self.preset.signals
    }

    /// Returns the field in which the source says what has changed. Neither is it sent to anybody, nor taken from a client.
    #[must_use]
    pub const fn signal_field(&self) -> Option<HeaderName> {
        match self.preset.signals {
            Signals::None | Signals::WordPress => None,
            Signals::Ghost => Some(X_CACHE_INVALIDATE),
        }
    }

    /// Returns whether fields of the source's answers may say something that is for Seawall alone.
    #[must_use]
    pub fn speaks_in_fields(&self) -> bool {
        self.signal_field().is_some() || self.obeys_purge_fields()
    }
}
