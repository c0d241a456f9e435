//! What applications say to the cache that they were written for, in fields of their own: Cloudflare's, LiteSpeed's, nginx's.
//!
//! Which of them count is a column of the table of kinds. A word that forbids always counts. A lifetime counts before `CDN-Cache-Control` and
//! `Cache-Control`; what is said to this cache by name (`Seawall-Cache-Control`) goes before. What is not understood forbids.

use http::{HeaderMap, HeaderName, header::CACHE_CONTROL};
use semantics::{
    Timestamp,
    cache_control::{DeltaSeconds, Qualified, ResponseDirectives},
    list::members,
    request::has_any,
    targeted::{TARGETS, directives},
};

use crate::{NotKept, Policy, names::Names, preset::CacheField};

const CF_EDGE_CACHE: HeaderName = HeaderName::from_static("cf-edge-cache");
const X_LITESPEED_CACHE_CONTROL: HeaderName = HeaderName::from_static("x-litespeed-cache-control");
pub(crate) const X_LITESPEED_VARY: HeaderName = HeaderName::from_static("x-litespeed-vary");
pub(crate) const X_ACCEL_EXPIRES: HeaderName = HeaderName::from_static("x-accel-expires");

const ALL: [HeaderName; 4] = [CF_EDGE_CACHE, X_LITESPEED_CACHE_CONTROL, X_LITESPEED_VARY, X_ACCEL_EXPIRES];

impl Policy {
    /// Returns the directives that count for a response that arrived at `now`.
    ///
    /// # Errors
    /// The field that forbids to keep it.
    pub(crate) fn directives(&self, headers: &HeaderMap, now: Timestamp) -> Result<ResponseDirectives, NotKept> {
        let by_rfcs = directives(headers, &TARGETS);
        let fields = self.preset.responses.cache_fields;
        // Hardly any response has one of them.
        if fields.is_empty() || !has_any(headers, &ALL) {
            return Ok(by_rfcs);
        }
        let mut spoken = None;
        for field in fields {
            let said = match field {
                CacheField::CfEdgeCache => cf_edge_cache(headers)?,
                CacheField::LiteSpeed => {
                    self.litespeed_vary(headers)?;
                    litespeed(headers)?
                }
                CacheField::AccelExpires => accel_expires(headers, now)?,
            };
            spoken = spoken.or(said);
        }
        // A targeted field says something about storing, or leaves that to others.
        let is_said_to_us = headers.contains_key(&TARGETS[0])
            && by_rfcs.targeted
            && (by_rfcs.max_age.is_some() || by_rfcs.s_maxage.is_some() || by_rfcs.no_store || by_rfcs.private.is_present());
        Ok(match spoken {
            Some(spoken) if !is_said_to_us => {
                // A page for one person is for one person everywhere.
                let own = if headers.contains_key(CACHE_CONTROL) { ResponseDirectives::of(headers).private } else { Qualified::Absent };
                ResponseDirectives { private: own, targeted: true, ..spoken }
            }
            Some(_) | None => by_rfcs,
        })
    }

    /// Refuses a response that varies on what is not known to make a request pass, or to change no page.
    fn litespeed_vary(&self, headers: &HeaderMap) -> Result<(), NotKept> {
        let passes = |name: &str| self.preset.rules.passes.cookies.iter().any(|rule| rule.matched(name, b"1").is_some());
        let is_understood = |item: &[u8]| {
            let item = std::str::from_utf8(item).unwrap_or_default();
            let name = item.strip_prefix("cookie=").map(str::trim);
            name.is_some_and(|name| passes(name) || UNVARYING.have(name))
        };
        for line in headers.get_all(&X_LITESPEED_VARY) {
            if !members(line.as_bytes()).all(is_understood) {
                return Err(NotKept::Said("x-litespeed-vary"));
            }
        }
        Ok(())
    }
}

/// Cookies by which LiteSpeed Cache tells apart those who are told apart here by other cookies.
const UNVARYING: Names = Names { whole: &["_lscache_vary"], beginnings: &[] };

/// Reads `cf-edge-cache: cache,platform=wordpress` or `no-cache`. The former gives no lifetime.
fn cf_edge_cache(headers: &HeaderMap) -> Result<Option<ResponseDirectives>, NotKept> {
    let forbids = |item: &[u8]| [&b"no-cache"[..], b"no-store"].iter().any(|word| item.eq_ignore_ascii_case(word));
    match headers.get_all(&CF_EDGE_CACHE).iter().any(|line| members(line.as_bytes()).any(forbids)) {
        true => Err(NotKept::Said("cf-edge-cache")),
        false => Ok(None),
    }
}

/// Reads `X-LiteSpeed-Cache-Control: public,max-age=604800`. A private page is somebody's, and one with ESI is not a page before it is put together.
fn litespeed(headers: &HeaderMap) -> Result<Option<ResponseDirectives>, NotKept> {
    let mut said = ResponseDirectives::default();
    let mut is_said = false;
    for line in headers.get_all(&X_LITESPEED_CACHE_CONTROL) {
        for item in members(line.as_bytes()) {
            let text = String::from_utf8_lossy(item).to_ascii_lowercase();
            let (name, value) = text.split_once('=').map_or((text.as_str(), None), |(name, value)| (name.trim(), Some(value.trim())));
            match (name, value) {
                ("no-cache" | "no-store" | "private" | "shared", _) | ("esi", Some("on")) => {
                    return Err(NotKept::Said("x-litespeed-cache-control"));
                }
                ("max-age" | "s-maxage", Some(seconds)) => said.max_age = Some(lifetime(seconds)),
                ("public", _) => said.public = true,
                // `no-vary` is about LiteSpeed's own cookie.
                _ => continue,
            }
            is_said = true;
        }
    }
    Ok(is_said.then_some(said))
}

/// Reads `X-Accel-Expires`: seconds, `@` and the time of the end, or 0; `off` is what people write for 0. nginx ignores anything else.
fn accel_expires(headers: &HeaderMap, now: Timestamp) -> Result<Option<ResponseDirectives>, NotKept> {
    let mut said = None;
    for line in headers.get_all(&X_ACCEL_EXPIRES) {
        let text = String::from_utf8_lossy(line.as_bytes()).trim().to_ascii_lowercase();
        let left = match text.strip_prefix('@') {
            Some(end) => end.parse::<u64>().ok().map(|end| end.saturating_sub(now.as_millis() / 1000)),
            None if text == "off" => Some(0),
            None => text.parse::<u64>().ok(),
        };
        match left {
            Some(0) => return Err(NotKept::Said("x-accel-expires")),
            Some(seconds) => {
                let max_age = Some(DeltaSeconds::from_secs(seconds));
                said = Some(ResponseDirectives { max_age, ..ResponseDirectives::default() });
            }
            None => {}
        }
    }
    Ok(said)
}

/// Reads a lifetime in seconds. What cannot be read is over.
fn lifetime(seconds: &str) -> DeltaSeconds {
    DeltaSeconds::from_secs(seconds.trim_matches('"').parse().unwrap_or_default())
}

/// The beginning of `Expires` in what PHP says of its own accord when a script begins a session.
const PHP_EXPIRES: &[u8] = b"Thu, 19 Nov 1981 08:52:00 GMT";

/// Returns whether a response says to caches what PHP says of its own accord when a script begins a session (`session.cache_limiter`), and
/// nothing else. An application that has more to say replaces it.
pub(crate) fn is_said_by_session(headers: &HeaderMap) -> bool {
    let only = |name: HeaderName| {
        let mut lines = headers.get_all(name).iter();
        lines.next().filter(|_| lines.next().is_none()).map(|line| line.as_bytes().to_ascii_lowercase())
    };
    let is_php = headers.get("expires").is_some_and(|expires| expires.as_bytes() == PHP_EXPIRES);
    let said = only(CACHE_CONTROL).is_some_and(|said| {
        matches!(&*said, b"no-store, no-cache, must-revalidate" | b"no-store, no-cache, must-revalidate, post-check=0, pre-check=0")
            || said.strip_prefix(b"private, max-age=").is_some_and(|age| !age.is_empty() && age.iter().all(u8::is_ascii_digit))
    });
    is_php && said
}

/// The fields in which PHP says so.
pub(crate) const SAID_BY_SESSION: [HeaderName; 3] = [CACHE_CONTROL, http::header::EXPIRES, http::header::PRAGMA];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Kind, Settings};

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, value.parse().expect("a value"));
        }
        map
    }

    /// Returns the lifetime for caches, or the field that forbids one.
    fn said(lines: &[(&'static str, &str)]) -> Result<Option<u64>, &'static str> {
        let policy = Policy::new(Settings::preset(Kind::WordPress));
        let directives = policy.directives(&headers(lines), NOW).map_err(NotKept::name)?;
        let lifetime = directives.max_age.map(|age| age.as_duration());
        Ok(if directives.no_store || directives.private.is_present() { Some(Duration::ZERO) } else { lifetime }.map(|age| age.as_secs()))
    }

    #[test]
    fn the_words_for_other_caches_are_understood() {
        for (lines, expected) in [
            (&[("cf-edge-cache", "cache,platform=wordpress")][..], Ok(None)),
            (&[("cf-edge-cache", "no-cache")], Err("cf-edge-cache")),
            (&[("cf-edge-cache", "no-cache"), ("seawall-cache-control", "max-age=60")], Err("cf-edge-cache")),
            (&[("x-litespeed-cache-control", "public,max-age=604800")], Ok(Some(604_800))),
            (&[("x-litespeed-cache-control", "PUBLIC, Max-Age=60")], Ok(Some(60))),
            (&[("x-litespeed-cache-control", "public")], Ok(None)),
            (&[("x-litespeed-cache-control", "public,max-age=x")], Ok(Some(0))),
            (&[("x-litespeed-cache-control", "private,max-age=1800")], Err("x-litespeed-cache-control")),
            (&[("x-litespeed-cache-control", "no-cache")], Err("x-litespeed-cache-control")),
            (&[("x-litespeed-cache-control", "public,max-age=60,esi=on")], Err("x-litespeed-cache-control")),
            (&[("x-litespeed-cache-control", "no-vary"), ("cache-control", "max-age=5")], Ok(Some(5))),
            (&[("x-litespeed-vary", "cookie=wp-postpass_abc")], Ok(None)),
            (&[("x-litespeed-vary", "cookie=_lscache_vary,cookie=wordpress_logged_in_1")], Ok(None)),
            (&[("x-litespeed-vary", "cookie=currency")], Err("x-litespeed-vary")),
            (&[("x-litespeed-vary", "value=ismobile")], Err("x-litespeed-vary")),
            (&[("x-accel-expires", "30")], Ok(Some(30))),
            (&[("x-accel-expires", "@1800000045")], Ok(Some(45))),
            (&[("x-accel-expires", "@1799999999")], Err("x-accel-expires")),
            (&[("x-accel-expires", "0")], Err("x-accel-expires")),
            (&[("x-accel-expires", "off")], Err("x-accel-expires")),
            // As nginx does.
            (&[("x-accel-expires", "soon"), ("cache-control", "max-age=5")], Ok(Some(5))),
            (&[("x-accel-expires", "60"), ("cache-control", "no-store")], Ok(Some(60))),
            (&[("x-accel-expires", "60"), ("cache-control", "private")], Ok(Some(0))),
        ] {
            assert_eq!(said(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn the_narrowest_word_gives_the_lifetime() {
        let lines = [
            ("seawall-cache-control", "max-age=1"),
            ("x-litespeed-cache-control", "public,max-age=2"),
            ("x-accel-expires", "3"),
            ("cdn-cache-control", "max-age=4"),
            ("cache-control", "max-age=5"),
        ];
        for from in 0..lines.len() {
            assert_eq!(said(&lines[from..]), Ok(Some(from as u64 + 1)), "{:?}", &lines[from..]);
        }
        // What only says that somebody else decides.
        assert_eq!(said(&[("seawall-cache-control", "public"), ("x-accel-expires", "3")]), Ok(Some(3)));
    }

    #[test]
    fn the_words_mean_nothing_from_other_software() {
        let policy = Policy::new(Settings::preset(Kind::Generic));
        let lines = headers(&[("cf-edge-cache", "no-cache"), ("x-accel-expires", "0"), ("cache-control", "max-age=5")]);
        assert_eq!(policy.directives(&lines, NOW).ok().and_then(|said| said.max_age), Some(DeltaSeconds::from_secs(5)));
    }

    #[test]
    fn what_php_says_of_its_own_accord_is_known() {
        const EXPIRES: (&str, &str) = ("expires", "Thu, 19 Nov 1981 08:52:00 GMT");
        for (lines, expected) in [
            (&[EXPIRES, ("cache-control", "no-store, no-cache, must-revalidate"), ("pragma", "no-cache")][..], true),
            (&[EXPIRES, ("cache-control", "no-store, no-cache, must-revalidate, post-check=0, pre-check=0")], true),
            (&[EXPIRES, ("cache-control", "private, max-age=10800")], true),
            (&[EXPIRES, ("cache-control", "private, no-store")], false),
            (&[EXPIRES], false),
            (&[("cache-control", "no-store, no-cache, must-revalidate")], false),
            // What WordPress says of a page that is somebody's.
            (
                &[
                    ("expires", "Wed, 11 Jan 1984 05:00:00 GMT"),
                    ("cache-control", "no-cache, must-revalidate, max-age=0, no-store, private"),
                ],
                false,
            ),
        ] {
            assert_eq!(is_said_by_session(&headers(lines)), expected, "{lines:?}");
        }
    }
}
