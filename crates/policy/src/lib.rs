//! What a site's kind means: a request becomes a verdict, a response is kept or not.
//!
//! The rules that tell kinds apart are tables, in `preset`. What reads the tables is everything else here.
//!
//! Absent from this room: I/O and async. A [`Policy`] is a value made from the configuration; asking it costs no allocation on the way to
//! a hit. When it is not sure that a response may be seen by others, the answer is to pass, and the rule that said so has a name.

mod accept;
mod cache_fields;
mod compress;
mod cookies;
mod forward;
mod hints;
mod keep;
mod key;
mod known_cookies;
mod login;
mod member;
mod names;
mod nonces;
mod pass;
mod preset;
pub mod purge;
mod query;
mod request;
mod tags;
mod trace;

use std::time::Duration;

pub use accept::AcceptClass;
pub use compress::{COMPRESS_MAX_SIZE, COMPRESS_MIN_SIZE, CodePassed, Compress};
pub use cookies::CookieFilter;
pub use forward::settle_forms_for_scripts;
pub use hints::{EarlyHints, HINTS_BYTES_MAX, HINTS_MAX, Hint, hints, link_field};
pub use keep::{KeepFacts, KeepTerms, MemberReason, NotKept};
pub use key::{Holds, Key, parts_key, purge_url, purge_url_of};
pub use known_cookies::{KnownCookie, known_cookie};
pub use login::{Login, PasswordIn, PasswordVerdict, WrongIf};
pub use member::{MEMBER_CACHE_TIER, Member, TIER_RULE, answer_digest};
pub use names::Names;
pub use nonces::{NonceSearch, capped_by_nonce};
pub use pass::{PassRule, single_slashes};
pub use preset::{
    Area, CacheField, Companion, CompanionServer, CookieName, CookieRule, CookieValue, Cookies, Keeps, Kind, OtherNames, Parameters,
    Passes, Paths, Preset, Responses, Rule, Rules, SentFields, SourceForm, Way,
};
pub use query::QueryFilter;
pub use request::{Carries, Verdict, whole_target};
pub use tags::{NONCE_MADE, TAG_WANTED, TAGS_MAX, invalidated_groups, is_of_dialect, remove_dialect, tags};
pub use trace::{Silent, Steps, Trace, TracedRule};

/// The settings of a site, beside which stand the rules of its kind ([`Preset`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The kind, whose rules fill in what is not set here.
    pub kind: Kind,
    /// The time for which responses to requests without cookies are kept fresh here, whatever lifetime the browser is told. `None`: they are
    /// kept as long as the origin says.
    pub hold: Option<Duration>,
    /// The time for which a stale response may be served after the origin has failed, if the response says nothing itself.
    pub stale_if_error: Option<Duration>,
    /// The time for which a stale response may be served while it is refreshed, if the response says nothing itself.
    pub stale_while_revalidate: Option<Duration>,
    /// The cookies that do not make a request personal, beside those that the kind knows. A `*` at the end stands for anything.
    pub ignore_cookies: Vec<String>,
    /// The query parameters that do not change the page, beside those that the kind knows. A `*` at the end stands for anything.
    pub ignore_query: Vec<String>,
    /// The query parameters that are kept although the kind would leave them out.
    pub keep_query: Vec<String>,
    /// Whether `Cache-Control` in a request is obeyed (RFC 9111 §5.2.1).
    pub honour_request_directives: bool,
    /// Whether responses with `Set-Cookie` are stored, as RFC 9111 §7.3 allows. Everybody then gets the cookie.
    pub store_set_cookie: bool,
    /// The cookies that are taken off the answers to requests without them, so that these can be stored. A `*` at the end stands for anything.
    pub drop_set_cookies: Vec<String>,
    /// Whether a page is fetched a second time before it is stored for the first time, to see that it is the same for two visitors.
    pub two_visitor_proof: bool,
    /// The path below which the source's software is, without a slash at its end: `/blog`; empty if it has the whole host.
    pub base_path: String,
    /// The secret by which a Ghost signs a member's tier. With it, pages for members are stored, apart for each tier.
    pub member_secret: Option<Vec<u8>>,
    /// The path below which a GET is a purge request, as the plugin nginx-helper sends it: `/purge/hello/` purges `/hello/`. It begins with a
    /// slash and ends without one. `None`: such paths are pages like any other.
    pub purge_path: Option<String>,
    /// The fields in which a trusted proxy may say more than who its client is, in lower case and sorted. They go to the origin, and are part
    /// of the key. They are removed from everybody else's requests.
    pub trusted_fields: Vec<String>,
    /// The rules by which responses get a content coding here.
    pub compress: Compress,
    /// The clients that are told what a page will need while the origin is asked for it (RFC 8297).
    pub early_hints: EarlyHints,
}

impl Settings {
    /// Returns the settings of a site of this kind for which nothing else was set.
    #[must_use]
    pub fn preset(kind: Kind) -> Self {
        let preset = kind.preset();
        Self {
            kind,
            hold: preset.hold,
            stale_if_error: preset.stale_if_error,
            stale_while_revalidate: preset.stale_while_revalidate,
            ignore_cookies: Vec::new(),
            ignore_query: Vec::new(),
            keep_query: Vec::new(),
            honour_request_directives: preset.honours_request_directives,
            store_set_cookie: false,
            drop_set_cookies: Vec::new(),
            two_visitor_proof: preset.two_visitor_proof,
            base_path: String::new(),
            member_secret: None,
            purge_path: None,
            trusted_fields: Vec::new(),
            compress: Compress::default(),
            early_hints: preset.early_hints,
        }
    }
}

/// The rules of one site: those of its kind, and its settings.
#[derive(Debug, Clone)]
pub struct Policy {
    preset: &'static Preset,
    settings: Settings,
    cookies: CookieFilter,
    query: QueryFilter,
    /// The key by which a member's tier is verified. `None`: pages for members are not stored.
    member_key: Option<aws_lc_rs::hmac::Key>,
}

impl Policy {
    /// Makes the rules that `settings` mean.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self::by(settings.kind.preset(), settings)
    }

    fn by(preset: &'static Preset, settings: Settings) -> Self {
        let cookies = CookieFilter::new(preset.cookies, &settings.ignore_cookies, &settings.drop_set_cookies);
        let query = QueryFilter::new(&settings.ignore_query, &settings.keep_query);
        let member_key = member::key(&settings);
        Self { preset, settings, cookies, query, member_key }
    }

    /// Returns the settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns whether what was purged softly may be shown while it is refreshed.
    #[must_use]
    pub const fn shows_what_was_purged(&self) -> bool {
        self.preset.shows_what_was_purged
    }

    /// Returns whether the source sees nothing of a shared request that its client could choose, but for what is in the key.
    #[must_use]
    pub const fn makes_requests_alike(&self) -> bool {
        matches!(self.preset.request_fields, SentFields::Only(_) | SentFields::HtmlOr(_))
    }

    /// Returns whether the source answers everybody the same. Where it does, cookies and credentials are neither looked at nor sent on.
    #[must_use]
    pub const fn is_impersonal(&self) -> bool {
        self.preset.is_impersonal
    }
}
