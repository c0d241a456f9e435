//! What a kind of site means: one table of rules for each kind, one file for each table.
//!
//! A [`Kind`] is not what a source *is*. That is its [`SourceForm`]: a server, a folder of files, of Markdown, of PHP. Several kinds can be
//! for the same form, and nothing but the table tells them apart: in `policy` and `pipeline` no code asks which kind a site has. So a new kind is a new
//! file here, a variant of [`Kind`] and a line in [`Kind::preset`]. If it is for one product, `seawall` has three places more: the settings that only that
//! product has (`Site::product`), the words for it (`recognition/product.rs`), and how a server is asked for it (`recognition/ask/`).
//!
//! Absent from here: what an operator sets for one site ([`Settings`](crate::Settings)), which goes before the table.

mod blog;
mod companions;
mod generic;
mod ghost;
mod php;
mod r#static;
mod wordpress;

use std::time::Duration;

pub use companions::{Companion, CompanionServer};
pub(crate) use ghost::MEMBER_COOKIE;

use crate::{AcceptClass, EarlyHints, login::Login, names::Names, purge::Signals};

/// Names a kind of site, which selects one table of rules. The form of its source, such as a server or a folder, is a [`SourceForm`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any server. Its word is taken, and the RFCs fill in.
    Generic,
    /// A Ghost. It says in its responses when something has changed.
    Ghost,
    /// A WordPress: a folder with its scripts, or the server that runs them.
    WordPress,
    /// A folder with an application in PHP, whichever it is. Its word is taken, as any server's.
    Php,
    /// The embedded blog. It answers everybody the same, and says when it changes.
    Blog,
    /// A folder of files. It answers everybody the same.
    Static,
}

impl Kind {
    /// All kinds. Those of products are asked for in this order.
    pub const ALL: [Self; 6] = [Self::Generic, Self::Ghost, Self::WordPress, Self::Php, Self::Blog, Self::Static];

    /// Returns the rules of this kind.
    #[must_use]
    pub const fn preset(self) -> &'static Preset {
        match self {
            Self::Generic => &generic::PRESET,
            Self::Ghost => &ghost::PRESET,
            Self::WordPress => &wordpress::PRESET,
            Self::Php => &php::PRESET,
            Self::Blog => &blog::PRESET,
            Self::Static => &r#static::PRESET,
        }
    }

    /// Returns the name as it is written in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.preset().name
    }

    /// Returns the product that makes such sites, as it writes its own name. It says to whoever asks what it is. `None`: any software may make them.
    #[must_use]
    pub const fn product(self) -> Option<&'static str> {
        self.preset().product
    }

    /// Returns the kinds that are for one product each, in the order in which a server is asked whether it is one.
    pub fn of_products() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kind| kind.product().is_some())
    }

    /// Returns the form that a folder has for this kind; if it is for no folder, the form that it is for.
    #[must_use]
    pub fn folder_form(self) -> SourceForm {
        let sources = self.preset().sources;
        sources.iter().copied().find(|form| *form != SourceForm::Server).unwrap_or(SourceForm::Server)
    }

    /// Returns whether this kind is for a source of this form.
    #[must_use]
    pub fn is_for(self, form: SourceForm) -> bool {
        self.preset().sources.contains(&form)
    }
}

/// The form of a source, whichever software it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceForm {
    /// A program that makes its answers itself, and may make others for others.
    Server,
    /// A folder of finished files.
    Files,
    /// A folder of Markdown, of which the embedded blog makes pages.
    Markdown,
    /// A folder with scripts, which a server runs.
    Php,
}

impl SourceForm {
    /// Returns the kind of a source of which nothing else is known.
    #[must_use]
    pub const fn usual_kind(self) -> Kind {
        match self {
            Self::Server => Kind::Generic,
            Self::Files => Kind::Static,
            Self::Markdown => Kind::Blog,
            Self::Php => Kind::Php,
        }
    }
}

/// The rules of a kind. Each field is one column of the table that the kinds make together.
#[derive(Debug)]
pub struct Preset {
    /// The name of the kind in settings, in the banner and in the admin API.
    pub name: &'static str,
    /// The product that makes sites of the kind, as it writes its own name. It says to whoever asks what it is. `None`: any software may make them.
    pub product: Option<&'static str>,
    /// The forms of source that the kind is for. There is at least one.
    pub sources: &'static [SourceForm],
    /// Whether the source answers everybody the same. Then cookies and credentials are neither looked at nor sent on.
    pub is_impersonal: bool,
    /// The parts of a site that have rules of their own. The first one that has a path counts there.
    pub areas: &'static [Area],
    /// The rules for the paths that are in no area.
    pub rules: Rules,
    /// The cookies that do not make a request personal.
    pub cookies: Cookies,
    /// The fields of a request that the source sees when others may get its answer.
    pub request_fields: SentFields,
    /// The time for which responses are kept fresh here, whatever lifetime the browser is told. `None`: as long as the source says.
    pub hold: Option<Duration>,
    /// The longest hold of a "not found". `None`: it is held like any other page.
    pub not_found_hold_max: Option<Duration>,
    /// The time for which a stale response may stand in when the source fails, if the source says nothing itself.
    pub stale_if_error: Option<Duration>,
    /// The time for which a stale response may be served while it is refreshed, if the source says nothing itself.
    pub stale_while_revalidate: Option<Duration>,
    /// Whether `Cache-Control` in a request is obeyed (RFC 9111 §5.2.1).
    pub honours_request_directives: bool,
    /// Whether what was purged softly may be shown while it is refreshed. Otherwise it is validated before anybody sees it, as long as the
    /// source answers.
    pub shows_what_was_purged: bool,
    /// The way in which the source says what has changed.
    pub signals: Signals,
    /// Whether fields of the source's answers can order a purge: `Seawall-Purge` of its plugin, and `X-LiteSpeed-Purge`.
    pub obeys_purge_fields: bool,
    /// Whether a page is fetched a second time before it is stored for the first time, to see that it is the same for two visitors.
    pub two_visitor_proof: bool,
    /// The clients that are told what a page will need while the source is asked for it (RFC 8297).
    pub early_hints: EarlyHints,
    /// The paths for which other servers answer.
    pub companions: &'static [Companion],
    /// The requests with which somebody may guess a password. The first one that has a request counts.
    pub logins: &'static [Login],
    /// The meaning of what the source's responses say beside the RFCs' fields.
    pub responses: Responses,
}

/// The meaning of what a source's responses say beside the fields that the RFCs define.
#[derive(Debug, Clone, Copy)]
pub struct Responses {
    /// The fields of other caches that count, the first one that speaks before the later ones.
    pub cache_fields: &'static [CacheField],
    /// Whether the hold is for responses that say nothing to caches. Then a lifetime that is meant for caches counts as it stands, and a guess
    /// from `Last-Modified` does not count. Otherwise the hold counts wherever it is longer.
    pub hold_is_for_silence: bool,
    /// The period in which pages get new nonces, where they have any: a nonce is good in the period in which it was made, and in the next one.
    pub nonce_tick: Option<Duration>,
    /// The media types of the responses whose validators may stay the same when their content changes. Neither clients nor the source itself are
    /// asked whether they have the same one.
    pub mistaken_validators: &'static [&'static str],
}

impl Responses {
    /// Nothing is known beside the RFCs.
    pub const PLAIN: Self = Self { cache_fields: &[], hold_is_for_silence: false, nonce_tick: None, mistaken_validators: &[] };
}

/// A field by which applications speak to the cache that they were written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheField {
    /// `cf-edge-cache`, which Cloudflare's plugin for WordPress sends with every page.
    CfEdgeCache,
    /// `X-LiteSpeed-Cache-Control` and `X-LiteSpeed-Vary`, which the plugin LiteSpeed Cache sends.
    LiteSpeed,
    /// `X-Accel-Expires`, which nginx obeys.
    AccelExpires,
}

/// A part of a site that has rules of its own.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    /// The name of the area in `seawall explain`; if its requests pass, that of the rule in `Cache-Status` and logs.
    pub name: &'static str,
    /// The paths of the area.
    pub paths: Paths,
    /// The way of its requests.
    pub way: Way,
}

/// The way of a request.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// It passes: the source is asked, and its answer is not stored.
    Pass,
    /// The cache is asked, by these rules.
    Lookup(Rules),
}

/// A set of paths in their normal form, below the place where the site's software is. Upper and lower case are the same here: to some
/// software they are, and a rule that is passed over is worse than one that applies too often.
#[derive(Debug, Clone, Copy)]
pub struct Paths {
    /// The paths that are in the set as they stand here.
    pub whole: &'static [&'static str],
    /// All paths that begin with one of these are in the set.
    pub beginnings: &'static [&'static str],
    /// All paths that end with one of these are in the set.
    pub endings: &'static [&'static str],
    /// Tells whether a path is in the set for another reason.
    pub also: Option<fn(&str) -> bool>,
}

impl Paths {
    /// The empty set.
    pub const NONE: Self = Self { whole: &[], beginnings: &[], endings: &[], also: None };

    /// Returns whether the set has this path.
    #[must_use]
    pub fn have(&self, path: &str) -> bool {
        let bytes = path.as_bytes();
        let begins = |text: &&str| bytes.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()));
        let ends =
            |text: &&str| bytes.len().checked_sub(text.len()).is_some_and(|from| bytes[from..].eq_ignore_ascii_case(text.as_bytes()));
        self.beginnings.iter().any(begins)
            || self.whole.iter().any(|whole| path.eq_ignore_ascii_case(whole))
            || self.endings.iter().any(ends)
            || self.also.is_some_and(|also| also(path))
    }
}

/// The rules for the requests that ask the cache, and for their answers.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The requests that pass all the same.
    pub passes: Passes,
    /// The query parameters that are in the key, and that the source sees.
    pub parameters: Parameters,
    /// The answers that are stored, and for how long.
    pub keeps: Keeps,
}

/// The requests that pass although the cache could be asked: each of these rules sends a request to the source, and its answer is not stored.
///
/// The rules are tried in this order, the first one that applies decides. A request that one of them lets pass goes to the source with its
/// query as it came.
#[derive(Debug, Clone, Copy)]
pub struct Passes {
    /// The rules about the names of query parameters, with escapes decoded and without the brackets of PHP.
    pub parameters: &'static [Rule],
    /// The rules about fields of the request. Only whole names count here, in lower case.
    pub fields: &'static [Rule],
    /// The rules about cookies.
    pub cookies: &'static [CookieRule],
}

impl Passes {
    /// No request passes by a rule of its kind.
    pub const NONE: Self = Self { parameters: &[], fields: &[], cookies: &[] };

    pub(crate) const fn is_none(&self) -> bool {
        self.parameters.is_empty() && self.fields.is_empty() && self.cookies.is_empty()
    }
}

/// A rule by which requests pass.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The name of the rule in `Cache-Status`, `seawall explain` and the log.
    pub name: &'static str,
    /// The names that the rule is about.
    pub of: Names,
}

/// A rule by which requests with a cookie pass.
#[derive(Debug, Clone, Copy)]
pub struct CookieRule {
    /// The name of the rule in `Cache-Status`, `seawall explain` and the log.
    pub name: &'static str,
    /// The names of the cookies that the rule is about.
    pub of: Names,
    /// Another set of names, with the words for it.
    pub also: Option<OtherNames>,
    /// The values with which they count.
    pub counts: CookieValue,
}

/// A set of names that cannot be written as a list: the words for it, and whether it has a name.
pub type OtherNames = (&'static str, fn(&str) -> bool);

impl CookieRule {
    /// Makes a rule about cookies with these names, whatever their values.
    pub const fn any(name: &'static str, whole: &'static [&'static str], beginnings: &'static [&'static str]) -> Self {
        Self { name, of: Names { whole, beginnings }, also: None, counts: CookieValue::Any }
    }

    /// Returns the name in the table that a cookie has, with a `*` for the rest of a beginning, if the rule is about it.
    pub(crate) fn matched(&self, name: &str, value: &[u8]) -> Option<CookieName> {
        let also = || self.also.filter(|(_, has)| has(name)).map(|(text, _)| CookieName { text, is_beginning: false });
        if self.counts.is(value) { CookieName::of(&self.of, name).or_else(also) } else { None }
    }
}

/// The values with which a cookie counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieValue {
    /// It counts with any value.
    Any,
    /// It counts unless its value is empty.
    Filled,
    /// It counts unless its value is empty or zero.
    NotZero,
}

impl CookieValue {
    fn is(self, value: &[u8]) -> bool {
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value).trim_ascii();
        match self {
            Self::Any => true,
            Self::Filled => !value.is_empty(),
            Self::NotZero => value.iter().any(|&b| b != b'0'),
        }
    }
}

/// The name of a cookie as a table has it: it has nothing of a client in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CookieName {
    text: &'static str,
    is_beginning: bool,
}

impl CookieName {
    /// The name of every cookie that the settings of the site take off the answers to others.
    pub(crate) const OF_THE_SETTINGS: Self = Self { text: "one of drop_set_cookies", is_beginning: false };

    /// Makes the name of one cookie.
    #[must_use]
    pub const fn whole(text: &'static str) -> Self {
        Self { text, is_beginning: false }
    }

    /// Returns the name in a table that this cookie has.
    pub(crate) fn of(names: &Names, name: &str) -> Option<Self> {
        let whole = names.whole.iter().find(|whole| **whole == name).map(|text| Self { text, is_beginning: false });
        whole.or_else(|| names.beginnings.iter().find(|text| name.starts_with(**text)).map(|text| Self { text, is_beginning: true }))
    }
}

impl std::fmt::Display for CookieName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text)?;
        f.write_str(if self.is_beginning { "*" } else { "" })
    }
}

/// The answers that are stored, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Keeps {
    /// The statuses of the answers that may be stored. `None`: RFC 9111 says which.
    pub statuses: Option<&'static [u16]>,
    /// The longest hold here. `None`: the hold of the site.
    pub hold_max: Option<Duration>,
    /// The answers to nobody in particular that are held for so long even if the source forbids to store them: status and time. Their
    /// readers are told what the source says.
    pub held_anyway: &'static [(u16, Duration)],
    /// The longest lifetimes of the answers to requests with one of these query parameters.
    pub briefly: &'static [(Names, Duration)],
    /// The `Cache-Control` that browsers are told where the source says nothing to them. `None`: they are told nothing, and may guess.
    pub for_browsers: Option<&'static str>,
}

impl Keeps {
    /// Keeps what RFC 9111 allows.
    pub const AS_ALLOWED: Self = Self { statuses: None, hold_max: None, held_anyway: &[], briefly: &[], for_browsers: None };
}

/// The cookies that do not make a request personal.
#[derive(Debug, Clone, Copy)]
pub struct Cookies {
    /// The cookies that never do.
    pub ignored: Names,
    /// Whether a cookie of which nothing is known makes a request personal.
    pub unknown_are_personal: bool,
}

/// The query parameters that a page depends on.
#[derive(Debug, Clone, Copy)]
pub enum Parameters {
    /// Pages depend on all parameters but these.
    AllBut(&'static [Names]),
    /// Pages depend on these parameters, and on no others.
    Only(Names),
}

/// The fields of a request that a source sees when others may get its answer.
#[derive(Debug, Clone, Copy)]
pub enum SentFields {
    /// The source sees all fields but those that no honest `Vary` goes with.
    AllButMisleading,
    /// The source sees these of them, in lower case, and no others. What they say is put into one form for all who get the same answer.
    Only(&'static [&'static str]),
    /// The source sees nothing but whether HTML or this other form is asked for, by the weights of `Accept` (RFC 9110 §12.5.1).
    HtmlOr(AcceptClass),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name_and_every_form_has_a_kind() {
        for kind in Kind::ALL {
            assert_eq!(Kind::ALL.iter().filter(|other| other.name() == kind.name()).count(), 1, "{kind:?}");
        }
        assert_eq!(Kind::of_products().collect::<Vec<_>>(), [Kind::Ghost, Kind::WordPress]);
        for form in [SourceForm::Server, SourceForm::Files, SourceForm::Markdown, SourceForm::Php] {
            assert!(form.usual_kind().is_for(form), "{form:?}");
        }
    }
}
