//! `Cache-Control`, of responses and of requests (RFC 9111 §5.2), and `Pragma` (§5.4).
//!
//! One idea: a doubt never makes anything more cacheable. A malformed lifetime is zero, of repeated lifetimes the lowest counts, a
//! directive that forbids counts even inside malformed text, and one that permits counts only if it is written as the grammar says. What
//! the directives mean together is decided in `freshness`, `storable` and `reuse`, not here.

mod directive;

use std::time::Duration;

use http::{
    HeaderMap,
    header::{CACHE_CONTROL, HeaderName},
};

use crate::request::{RequestFields, Slot};
use directive::{Directive, Directives};

/// A number of whole seconds, at most 2^31; a larger number is taken as 2^31 (RFC 9111 §1.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DeltaSeconds(u32);

impl DeltaSeconds {
    /// Zero seconds.
    pub const ZERO: Self = Self(0);
    /// 2^31 seconds, 68 years.
    pub const MAX: Self = Self(1 << 31);

    /// Returns `secs` seconds, or [`Self::MAX`] if `secs` is larger than that.
    #[must_use]
    pub fn from_secs(secs: u64) -> Self {
        u32::try_from(secs).map_or(Self::MAX, Self).min(Self::MAX)
    }

    /// Reads `1*DIGIT`; returns `None` if there is anything else.
    #[must_use]
    pub fn parse(digits: &[u8]) -> Option<Self> {
        let number =
            |number: u64, byte: &u8| byte.is_ascii_digit().then(|| number.saturating_mul(10).saturating_add(u64::from(byte - b'0')));
        if digits.is_empty() { None } else { digits.iter().try_fold(0, number).map(Self::from_secs) }
    }

    /// Returns the seconds as a `Duration`.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }

    /// Returns the seconds as a number.
    #[must_use]
    pub const fn as_secs(self) -> u32 {
        self.0
    }
}

/// The forms of `no-cache` and `private`: absent, for the whole response, or for the fields they name (RFC 9111 §5.2.2.4, §5.2.2.7).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Qualified {
    /// The directive is absent.
    #[default]
    Absent,
    /// The directive has no argument, or one that cannot be read: it concerns the whole response.
    Whole,
    /// The directive concerns these fields alone; never empty.
    Fields(Vec<HeaderName>),
}

impl Qualified {
    /// Returns whether the directive is there in either form.
    #[must_use]
    pub const fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }

    /// Returns the form for the fields that a list names; [`Self::Whole`] if the list cannot be read.
    pub(crate) fn of_names(list: &[u8]) -> Self {
        field_names(list).map_or(Self::Whole, Self::Fields)
    }

    fn add(&mut self, directive: &Directive<'_>) {
        let named = directive.sound_argument().and_then(field_names);
        match (&mut *self, named) {
            (Self::Whole, _) => {}
            (_, None) => *self = Self::Whole,
            (Self::Absent, Some(names)) => *self = Self::Fields(names),
            (Self::Fields(fields), Some(names)) => fields.extend(names),
        }
    }
}

fn field_names(list: &[u8]) -> Option<Vec<HeaderName>> {
    let members = list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty());
    let names = members.map(HeaderName::from_bytes).collect::<Result<Vec<_>, _>>().ok()?;
    (!names.is_empty()).then_some(names)
}

/// The cache directives of a response (RFC 9111 §5.2.2, RFC 5861, RFC 8246). Unknown ones are ignored (§5.2.3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each member is the directive of its name")]
pub struct ResponseDirectives {
    pub no_store: bool,
    pub public: bool,
    pub must_revalidate: bool,
    pub proxy_revalidate: bool,
    pub must_understand: bool,
    pub no_transform: bool,
    pub immutable: bool,
    pub no_cache: Qualified,
    pub private: Qualified,
    pub max_age: Option<DeltaSeconds>,
    pub s_maxage: Option<DeltaSeconds>,
    pub stale_while_revalidate: Option<DeltaSeconds>,
    pub stale_if_error: Option<DeltaSeconds>,
    /// Whether the directives come from a targeted field, which also takes the place of `Expires` (RFC 9213 §2.1).
    pub targeted: bool,
}

impl ResponseDirectives {
    /// Returns the directives of every `Cache-Control` line.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        Self::of_lines(headers.get_all(CACHE_CONTROL))
    }

    /// Returns the directives of these lines.
    pub(crate) fn of_lines(lines: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let mut directives = Self::default();
        for line in lines {
            for directive in Directives::of(line.as_ref()) {
                directives.add(&directive);
            }
        }
        directives
    }

    fn add(&mut self, directive: &Directive<'_>) {
        let is = |name: &str| directive.is(name);
        match directive.name.len() {
            6 if is("public") => self.public |= directive.is_sound_flag(),
            7 if is("private") => self.private.add(directive),
            7 if is("max-age") => lower(&mut self.max_age, directive.lifetime()),
            8 if is("no-store") => self.no_store = true,
            8 if is("no-cache") => self.no_cache.add(directive),
            8 if is("s-maxage") => lower(&mut self.s_maxage, directive.lifetime()),
            9 if is("immutable") => self.immutable |= directive.is_sound_flag(),
            12 if is("no-transform") => self.no_transform = true,
            14 if is("stale-if-error") => lower(&mut self.stale_if_error, directive.lifetime()),
            15 if is("must-revalidate") => self.must_revalidate = true,
            // This directive also permits: it overrides no-store.
            15 if is("must-understand") => self.must_understand |= directive.is_sound_flag(),
            16 if is("proxy-revalidate") => self.proxy_revalidate = true,
            22 if is("stale-while-revalidate") => lower(&mut self.stale_while_revalidate, directive.lifetime()),
            _ => {}
        }
    }
}

/// How stale a response may be that a client accepts (RFC 9111 §5.2.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MaxStale {
    /// A response is accepted at most this long after its freshness lifetime.
    Seconds(DeltaSeconds),
    /// A response is accepted however stale it is.
    Any,
}

/// The cache directives of a request (RFC 9111 §5.2.1, RFC 5861 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each member is the directive of its name")]
pub struct RequestDirectives {
    pub no_cache: bool,
    pub no_store: bool,
    pub only_if_cached: bool,
    pub max_age: Option<DeltaSeconds>,
    pub min_fresh: Option<DeltaSeconds>,
    pub max_stale: Option<MaxStale>,
    pub stale_if_error: Option<DeltaSeconds>,
}

impl RequestDirectives {
    /// The directives of a request without any; also used where clients may not influence the cache.
    pub const NONE: Self = Self {
        no_cache: false,
        no_store: false,
        only_if_cached: false,
        max_age: None,
        min_fresh: None,
        max_stale: None,
        stale_if_error: None,
    };

    /// Returns the directives of a request: two comparisons and no allocation if it has neither `Cache-Control` nor `Pragma`.
    ///
    /// `Pragma: no-cache` is read only without a `Cache-Control` (RFC 9111 §5.4).
    #[must_use]
    pub fn of(fields: &RequestFields<'_>) -> Self {
        let mut directives = Self::NONE;
        match fields.cache_control {
            Slot::Absent => directives.no_cache = pragma_no_cache(fields),
            Slot::One(line) => directives.read(line),
            Slot::Many => fields.lines.for_each("cache-control", |line| directives.read(line)),
        }
        directives
    }

    /// Returns whether the request has no directive to obey.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    fn read(&mut self, line: &[u8]) {
        for directive in Directives::of(line) {
            self.add(&directive);
        }
    }

    fn add(&mut self, directive: &Directive<'_>) {
        let is = |name: &str| directive.is(name);
        match directive.name.len() {
            7 if is("max-age") => lower(&mut self.max_age, directive.lifetime()),
            8 if is("no-cache") => self.no_cache = true,
            8 if is("no-store") => self.no_store = true,
            9 if is("min-fresh") => self.min_fresh = self.min_fresh.max(Some(directive.lifetime())),
            9 if is("max-stale") => {
                let limit = if directive.is_sound_flag() { MaxStale::Any } else { MaxStale::Seconds(directive.lifetime()) };
                lower(&mut self.max_stale, limit);
            }
            14 if is("only-if-cached") => self.only_if_cached |= directive.is_sound_flag(),
            14 if is("stale-if-error") => lower(&mut self.stale_if_error, directive.lifetime()),
            _ => {}
        }
    }
}

fn pragma_no_cache(fields: &RequestFields<'_>) -> bool {
    let says_so = |line| Directives::of(line).any(|directive| directive.is("no-cache"));
    match fields.pragma {
        Slot::Absent => false,
        Slot::One(line) => says_so(line),
        Slot::Many => {
            let mut found = false;
            fields.lines.for_each("pragma", |line| found |= says_so(line));
            found
        }
    }
}

/// Keeps the lower of repeated values: an origin that contradicts itself must never be cached longer than it meant.
fn lower<T: Ord + Copy>(value: &mut Option<T>, other: T) {
    *value = Some(value.map_or(other, |value| value.min(other)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn response(lines: &[&str]) -> ResponseDirectives {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(CACHE_CONTROL, HeaderValue::from_str(line).expect("a field value"));
        }
        ResponseDirectives::of(&headers)
    }

    fn request(lines: &[(&str, &str)]) -> RequestDirectives {
        let raw: Vec<_> = lines.iter().map(|(name, value)| httparse::Header { name, value: value.as_bytes() }).collect();
        RequestDirectives::of(&RequestFields::from_raw(&raw))
    }

    fn fields(names: &[&str]) -> Qualified {
        Qualified::Fields(names.iter().map(|name| name.parse().expect("a field name")).collect())
    }

    #[test]
    fn max_age_in_every_spelling() {
        let cap = Some(1 << 31);
        for (value, expected) in [
            ("max-age=10", Some(10)),
            ("MAX-AGE=10", Some(10)),
            ("Max-Age=\"10\"", Some(10)),
            ("max-age=\"1\\0\"", Some(10)),
            ("max-age=003600", Some(3600)),
            ("max-age=0", Some(0)),
            ("max-age=2147483647", Some((1 << 31) - 1)),
            ("max-age=2147483648", cap),
            ("max-age=2147483649", cap),
            ("max-age=4294967297", cap),
            ("max-age=99999999999999999999999999999999999999", cap),
            (" , ,max-age=10 ,\t", Some(10)),
            ("foobar,max-age=10", Some(10)),
            ("foo=bar, max-age=10, x", Some(10)),
            // Malformed is stale.
            ("max-age=-1", Some(0)),
            ("max-age='3600'", Some(0)),
            ("max-age=3600.0", Some(0)),
            ("max-age=a3600", Some(0)),
            ("max-age=3600a", Some(0)),
            ("max-age=", Some(0)),
            ("max-age", Some(0)),
            ("max-age=\"\"", Some(0)),
            ("max-age=\" 10\"", Some(0)),
            ("max-age =3600", Some(0)),
            ("max-age= 3600", Some(0)),
            ("max-age=36 00", Some(0)),
            ("max-age=\"3600", Some(0)),
            ("max-age=\"3600\"x", Some(0)),
            ("max-age=3600; public", Some(0)),
            // Repeated: the lower.
            ("max-age=10, max-age=20", Some(10)),
            ("max-age=20, max-age=10", Some(10)),
            ("max-age=20, max-age=x", Some(0)),
            // Inside another directive's argument, or another name.
            ("extension=\"max-age=3600\", max-age=1", Some(1)),
            ("extension=\"a, max-age=3600, b\"", None),
            ("extension=\"a\\\", max-age=3600\"", None),
            ("\"a, max-age=3600, b\"", None),
            ("x-max-age=10", None),
            ("max-age2=10", None),
            ("s-maxage=10", None),
            ("", None),
        ] {
            assert_eq!(response(&[value]).max_age.map(DeltaSeconds::as_secs), expected, "{value}");
        }
    }

    #[test]
    fn lines_are_read_as_one_list() {
        let directives = response(&["max-age=1800", "max-age=1, s-maxage=7", "public"]);
        assert_eq!(directives.max_age, Some(DeltaSeconds(1)));
        assert_eq!(directives.s_maxage, Some(DeltaSeconds(7)));
        assert!(directives.public);
    }

    #[test]
    fn every_directive_of_a_response() {
        let directives = response(&[concat!(
            "No-Store, PUBLIC, must-revalidate, Proxy-Revalidate, must-understand, no-transform, immutable, no-cache, private,",
            "max-age=1, s-maxage=2, stale-while-revalidate=3, stale-if-error=4"
        )]);
        assert_eq!(
            directives,
            ResponseDirectives {
                no_store: true,
                public: true,
                must_revalidate: true,
                proxy_revalidate: true,
                must_understand: true,
                no_transform: true,
                immutable: true,
                no_cache: Qualified::Whole,
                private: Qualified::Whole,
                max_age: Some(DeltaSeconds(1)),
                s_maxage: Some(DeltaSeconds(2)),
                stale_while_revalidate: Some(DeltaSeconds(3)),
                stale_if_error: Some(DeltaSeconds(4)),
                targeted: false,
            }
        );
        assert_eq!(response(&["unknown, also=\"x\""]), ResponseDirectives::default());
    }

    #[test]
    fn what_forbids_counts_even_when_malformed_and_what_permits_does_not() {
        for value in
            ["no-store", "no-store=1", "no-store;", "no-cache; no-store", "public no-store", "x=\"unterminated, no-store", "@no-store"]
        {
            assert!(response(&[value]).no_store, "{value}");
        }
        for value in ["x=\"no-store\"", "no-stored", "x-no-store"] {
            assert!(!response(&[value]).no_store, "{value}");
        }
        for value in ["public=1", "public;", "private; public", "x=\"unterminated, public", "public immutable", "@public"] {
            let directives = response(&[value]);
            assert!(!directives.public && !directives.immutable, "{value}");
        }
        assert!(response(&["a;b, public"]).public, "a comma ends what is malformed");
        assert_eq!(response(&["x=\"unterminated, max-age=3600"]).max_age, Some(DeltaSeconds::ZERO));
    }

    #[test]
    fn no_cache_and_private_may_name_fields() {
        for (value, expected) in [
            ("max-age=1", Qualified::Absent),
            ("private", Qualified::Whole),
            ("private=\"Set-Cookie\"", fields(&["set-cookie"])),
            ("private=Set-Cookie", fields(&["set-cookie"])),
            ("private=\"a, ,b\"", fields(&["a", "b"])),
            ("private=\"a\", private=\"b\"", fields(&["a", "b"])),
            ("private=\"a\", private", Qualified::Whole),
            ("private, private=\"a\"", Qualified::Whole),
            ("private=\"\"", Qualified::Whole),
            ("private=\",\"", Qualified::Whole),
            ("private=\"a b\"", Qualified::Whole),
            ("private=", Qualified::Whole),
            ("private=\"a", Qualified::Whole),
            ("private=\"a\";", Qualified::Whole),
        ] {
            assert_eq!(response(&[value]).private, expected, "{value}");
            assert_eq!(response(&[&value.replace("private", "no-cache")]).no_cache, expected, "{value}");
        }
    }

    #[test]
    fn every_directive_of_a_request() {
        let all =
            request(&[("Cache-Control", "no-cache, No-Store, only-if-cached, max-age=1, min-fresh=2, max-stale=3, stale-if-error=4")]);
        let expected = RequestDirectives {
            no_cache: true,
            no_store: true,
            only_if_cached: true,
            max_age: Some(DeltaSeconds(1)),
            min_fresh: Some(DeltaSeconds(2)),
            max_stale: Some(MaxStale::Seconds(DeltaSeconds(3))),
            stale_if_error: Some(DeltaSeconds(4)),
        };
        assert_eq!(all, expected);
        assert!(!all.is_empty());
        for lines in [&[][..], &[("accept", "*/*")], &[("cache-control", "")], &[("pragma", "x")]] {
            assert!(request(lines).is_empty(), "{lines:?}");
        }
    }

    #[test]
    fn max_stale_with_and_without_a_limit() {
        let seconds = |secs| Some(MaxStale::Seconds(DeltaSeconds(secs)));
        for (value, expected) in [
            ("max-stale", Some(MaxStale::Any)),
            ("max-stale=5", seconds(5)),
            ("max-stale, max-stale=5", seconds(5)),
            ("max-stale=x", seconds(0)),
            ("max-stale;", seconds(0)),
            ("max-age=5", None),
        ] {
            assert_eq!(request(&[("cache-control", value)]).max_stale, expected, "{value}");
        }
        assert_eq!(request(&[("cache-control", "min-fresh=5, min-fresh=9")]).min_fresh, Some(DeltaSeconds(9)), "the stricter");
    }

    #[test]
    fn pragma_counts_only_without_cache_control() {
        for (lines, expected) in [
            (&[("Pragma", "no-cache")][..], true),
            (&[("pragma", "x=y, No-Cache")], true),
            (&[("pragma", "x"), ("pragma", "no-cache")], true),
            (&[("pragma", "x=\"no-cache\"")], false),
            (&[("pragma", "no-cache"), ("cache-control", "max-age=10")], false),
            (&[("pragma", "no-cache"), ("cache-control", "")], false),
            (&[("cache-control", "max-age=10"), ("cache-control", "no-cache")], true),
        ] {
            assert_eq!(request(lines).no_cache, expected, "{lines:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_exceed_the_cap(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            text in "((max-age|s-maxage|stale-if-error|max-stale|private|x)?[=]?(\"?[0-9a, \\\\]{0,30}\"?)[,; ]{0,2}){0,4}",
        ) {
            for line in [&bytes[..], text.as_bytes()] {
                let Ok(value) = HeaderValue::from_bytes(line) else { continue };
                let headers = HeaderMap::from_iter([(CACHE_CONTROL, value)]);
                let directives = ResponseDirectives::of(&headers);
                let asked = RequestDirectives::of(&RequestFields::from_map(&headers));
                for lifetime in [directives.max_age, directives.s_maxage, directives.stale_if_error, asked.max_age].into_iter().flatten() {
                    prop_assert!(lifetime.as_duration() <= Duration::from_secs(1 << 31));
                }
            }
        }

        #[test]
        fn a_number_is_read_as_it_stands(secs in any::<u64>()) {
            let read = response(&[&format!("x=\"y\" , max-age={secs}")]).max_age;
            prop_assert_eq!(read, Some(DeltaSeconds::from_secs(secs)));
        }
    }
}
