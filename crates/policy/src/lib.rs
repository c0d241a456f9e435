//! What a site's kind means: a request becomes a verdict, a response is kept or not.
//!
//! Absent from this room: I/O and async. A [`Policy`] is a value made from the configuration; asking it costs no allocation on the way to
//! a hit. When it is not sure that a response may be seen by others, the answer is to pass, and the rule that said so has a name.

mod accept;
mod compress;
mod forward;
mod hints;
mod keep;
pub mod purge;
mod query;
mod replay;
mod request;
mod tags;
mod trace;

use std::time::Duration;

pub use accept::AcceptClass;
pub use compress::{COMPRESS_MAX_SIZE, COMPRESS_MIN_SIZE, COMPRESS_TYPES, Compress, Passed};
pub use forward::settle_forms_for_scripts;
pub use hints::{EarlyHints, HINTS_BYTES_MAX, HINTS_MAX, HINTS_PAGE_BYTES_MAX, Hint, hints, link_field};
pub use keep::{Kept, NotKept, Seen};
pub use query::QueryFilter;
pub use replay::Replay;
pub use request::{Asked, CookieFilter, KeyParts, ShownKey, Verdict, purge_url, whole_target};
pub use tags::{DIALECT_FIELDS, TAGS_MAX, invalidated_groups, remove_dialect, tags};
pub use trace::{Silent, Step, Steps, Trace};

/// What the source is: a preset of policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any HTTP server: its word is taken, the RFCs fill in.
    Generic,
    /// The embedded blog: the same for everybody, and it says when it changes.
    Blog,
    /// A folder of files: the same for everybody.
    Static,
}

impl Kind {
    /// As it is written in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Blog => "blog",
            Self::Static => "static",
        }
    }
}

/// What a kind's preset leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The preset.
    pub kind: Kind,
    /// How long responses without cookies in their request are kept fresh here, whatever lifetime the browser is told. `None`: as long
    /// as the origin says.
    pub hold: Option<Duration>,
    /// How long a stale response may be served after the origin failed, if it says nothing itself.
    pub stale_if_error: Option<Duration>,
    /// How long a stale response may be served while it is refreshed, if it says nothing itself.
    pub stale_while_revalidate: Option<Duration>,
    /// Cookies that do not make a request personal, beside the known analytics cookies. A `*` at the end stands for anything.
    pub ignore_cookies: Vec<String>,
    /// Query parameters that do not change the page, beside the known trackers. A `*` at the end stands for anything.
    pub ignore_query: Vec<String>,
    /// Query parameters to keep although they are known as trackers.
    pub keep_query: Vec<String>,
    /// Whether `Cache-Control` in a request is obeyed (RFC 9111 §5.2.1).
    pub honour_request_directives: bool,
    /// Whether responses with `Set-Cookie` are stored, and the cookie given to everybody, as RFC 9111 §7.3 allows.
    pub store_set_cookie: bool,
    /// Below this path a GET is a purge request, as the plugin nginx-helper sends it: `/purge/hello/` purges `/hello/`. Begins with a slash,
    /// ends without one. `None`: such paths are pages like any other.
    pub purge_path: Option<String>,
    /// Fields in which a trusted proxy may say more than who its client is, in lower case and sorted: they go to the origin, and are part of
    /// the key. From anybody else they are removed.
    pub trusted_fields: Vec<String>,
    /// Which responses get a content coding here.
    pub compress: Compress,
    /// Who is told what a page will need while the origin is asked for it (RFC 8297).
    pub early_hints: EarlyHints,
}

impl Settings {
    /// The preset of `kind`.
    #[must_use]
    pub fn preset(kind: Kind) -> Self {
        let (hold, stale_if_error) = match kind {
            Kind::Generic => (None, None),
            // The blog purges what it changes; a year stands for "until then".
            Kind::Blog => (Some(Duration::from_secs(365 * 86_400)), Some(Duration::from_secs(7 * 86_400))),
            // The folder says itself how long each answer is true.
            Kind::Static => (None, Some(Duration::from_secs(7 * 86_400))),
        };
        Self {
            kind,
            hold,
            stale_if_error,
            stale_while_revalidate: None,
            ignore_cookies: Vec::new(),
            ignore_query: Vec::new(),
            keep_query: Vec::new(),
            honour_request_directives: kind == Kind::Generic,
            store_set_cookie: false,
            purge_path: None,
            trusted_fields: Vec::new(),
            compress: Compress::default(),
            // For what lies on a disk nobody waits.
            early_hints: if kind == Kind::Generic { EarlyHints::On } else { EarlyHints::Off },
        }
    }
}

/// The rules of one site.
#[derive(Debug, Clone)]
pub struct Policy {
    settings: Settings,
    cookies: CookieFilter,
    query: QueryFilter,
}

impl Policy {
    /// The rules that `settings` mean.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let cookies = CookieFilter::new(&settings.ignore_cookies);
        let query = QueryFilter::new(&settings.ignore_query, &settings.keep_query);
        Self { settings, cookies, query }
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether the source looks at who asks. Where it does not, cookies and credentials are neither looked at nor sent on.
    #[must_use]
    pub const fn is_impersonal(&self) -> bool {
        matches!(self.settings.kind, Kind::Blog | Kind::Static)
    }
}
