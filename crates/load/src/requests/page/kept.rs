//! A browser's cache, as far as it decides what is asked again (RFC 9111).

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use crate::{answer::Answer, requests::date::read_date};

/// The most responses that a visitor keeps: 20 KB or so.
const KEPT_MAX: usize = 128;

/// The longest validator that is kept.
const VALIDATOR_MAX: usize = 256;

/// The longest time a response is fresh.
const FRESH_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Returns a number that stands for a URL.
pub(crate) fn key(origin: u16, target: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (origin, target).hash(&mut hasher);
    hasher.finish()
}

/// Says how a response is asked for again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Validators {
    /// The value of `If-None-Match`.
    pub(crate) etag: Option<Box<str>>,
    /// The value of `If-Modified-Since`.
    pub(crate) last_modified: Option<Box<str>>,
}

impl Validators {
    /// Returns the validators of an answer; `None` if it has none.
    pub(crate) fn of(answer: &Answer<'_>) -> Option<Self> {
        let get = |name| field(answer, name).filter(|value| value.len() <= VALIDATOR_MAX).map(Into::into);
        let validators = Self { etag: get("etag"), last_modified: get("last-modified") };
        (validators != Self::default()).then_some(validators)
    }

    /// Puts the fields of a conditional request to others.
    pub(crate) fn put(&self, fields: &mut Vec<(String, String)>) {
        fields.extend(self.etag.as_deref().map(|etag| ("If-None-Match".to_owned(), etag.to_owned())));
        fields.extend(self.last_modified.as_deref().map(|date| ("If-Modified-Since".to_owned(), date.to_owned())));
    }
}

/// Returns the first value of a field, if it is text.
pub(crate) fn field<'a>(answer: &Answer<'a>, name: &str) -> Option<&'a str> {
    let found = answer.fields.iter().find(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()))?;
    std::str::from_utf8(found.1).ok().map(str::trim)
}

/// Holds what a visitor has kept.
#[derive(Debug, Default)]
pub(crate) struct VisitorCache(HashMap<u64, Entry>);

#[derive(Debug)]
struct Entry {
    validators: Option<Validators>,
    /// The time for which the response was fresh when it came.
    lifetime: Duration,
    fresh_until: Duration,
}

impl VisitorCache {
    /// Returns whether a response is there that need not be asked for.
    pub(crate) fn is_fresh(&self, key: u64, now: Duration) -> bool {
        self.0.get(&key).is_some_and(|entry| now < entry.fresh_until)
    }

    /// Returns the validators with which a response that is there is validated.
    pub(crate) fn validators(&self, key: u64) -> Option<&Validators> {
        self.0.get(&key)?.validators.as_ref()
    }

    /// Remembers that there is nothing: a visitor does not ask again for an icon that the site does not have.
    pub(crate) fn miss(&mut self, key: u64, now: Duration) {
        if self.0.len() < KEPT_MAX {
            self.0.insert(key, Entry { validators: None, lifetime: FRESH_MAX, fresh_until: now + FRESH_MAX });
        }
    }

    /// Takes an answer to a GET that ended `now`. A 304 makes what is there fresh again. When there is no room, an answer is not kept.
    pub(crate) fn take(&mut self, key: u64, answer: &Answer<'_>, now: Duration) {
        if !matches!(answer.status, 200 | 304) {
            return;
        }
        let Some(fresh) = freshness(answer) else {
            self.0.remove(&key);
            return;
        };
        if answer.status == 304 {
            // What a 304 does not say stays as it was (RFC 9111 §3.2).
            let says = field(answer, "cache-control").or_else(|| field(answer, "expires")).is_some();
            if let Some(entry) = self.0.get_mut(&key) {
                if says {
                    entry.lifetime = fresh;
                }
                entry.fresh_until = now + entry.lifetime;
            }
        } else if self.0.len() < KEPT_MAX || self.0.contains_key(&key) {
            self.0.insert(key, Entry { validators: Validators::of(answer), lifetime: fresh, fresh_until: now + fresh });
        }
    }
}

/// Returns how long a browser uses an answer without asking; `None` means that it must not keep it. The tenth of its age stands in where nothing is said
/// (§4.2.2).
fn freshness(answer: &Answer<'_>) -> Option<Duration> {
    let control = field(answer, "cache-control").unwrap_or_default().to_ascii_lowercase();
    let mut max_age = None;
    let mut validate = false;
    for directive in control.split(',').map(str::trim) {
        match directive.split_once('=') {
            None if directive == "no-store" => return None,
            None if directive == "no-cache" => validate = true,
            Some(("max-age", seconds)) => max_age = Some(seconds.trim_matches('"').parse::<u64>().unwrap_or(0)),
            _ => {}
        }
    }
    if validate {
        return Some(Duration::ZERO);
    }
    let date = |name| field(answer, name).and_then(read_date);
    let between = |first: i64, last: i64| u64::try_from(last.saturating_sub(first)).unwrap_or(0);
    let lifetime = match max_age {
        Some(seconds) => seconds,
        None => match (field(answer, "expires"), date("date"), date("last-modified")) {
            (Some(expires), Some(date), _) => read_date(expires).map_or(0, |expires| between(date, expires)),
            (None, Some(date), Some(modified)) => between(modified, date) / 10,
            _ => 0,
        },
    };
    let age = field(answer, "age").and_then(|age| age.parse().ok()).unwrap_or(0);
    Some(Duration::from_secs(lifetime.saturating_sub(age)).min(FRESH_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(fields: &[(&str, &str)]) -> Option<u64> {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        freshness(&Answer { status: 200, fields: &fields, body: None }).map(|fresh| fresh.as_secs())
    }

    /// RFC 9111 §4.2.
    #[test]
    fn freshness_is_what_the_rfc_says() {
        let date = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
        for (fields, expected) in [
            (vec![], Some(0)),
            (vec![("Cache-Control", "max-age=60")], Some(60)),
            (vec![("Cache-Control", "public, Max-Age=\"60\", immutable")], Some(60)),
            (vec![("Cache-Control", "max-age=60"), ("Age", "20")], Some(40)),
            (vec![("Cache-Control", "max-age=60"), ("Age", "80")], Some(0)),
            (vec![("Cache-Control", "no-store")], None),
            (vec![("Cache-Control", "no-cache, max-age=60")], Some(0)),
            (vec![("Cache-Control", "max-age=x")], Some(0)),
            (vec![date, ("Expires", "Sun, 06 Nov 1994 08:50:37 GMT")], Some(60)),
            (vec![date, ("Expires", "0")], Some(0)),
            (vec![date, ("Last-Modified", "Sun, 06 Nov 1994 08:32:57 GMT")], Some(100)),
        ] {
            assert_eq!(seconds(&fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn what_is_stale_is_validated_and_fresh_again_after_a_304() {
        let mut kept = VisitorCache::default();
        let at = Duration::from_secs;
        let fields = [(b"ETag".as_slice(), b"\"a\"".as_slice()), (b"Cache-Control", b"max-age=10")];
        kept.take(1, &Answer { status: 200, fields: &fields, body: None }, at(0));
        assert!(kept.is_fresh(1, at(9)) && !kept.is_fresh(1, at(10)) && !kept.is_fresh(2, at(0)));
        let mut sent = Vec::new();
        kept.validators(1).expect("an etag").put(&mut sent);
        assert_eq!(sent, [("If-None-Match".to_owned(), "\"a\"".to_owned())]);
        kept.take(1, &Answer { status: 304, fields: &fields, body: None }, at(10));
        assert!(kept.is_fresh(1, at(19)) && !kept.is_fresh(1, at(20)));
        kept.take(1, &Answer { status: 500, fields: &[], body: None }, at(11));
        assert!(kept.is_fresh(1, at(12)));
        kept.take(1, &Answer { status: 304, fields: &[], body: None }, at(30));
        assert!(kept.is_fresh(1, at(39)) && !kept.is_fresh(1, at(40)), "a 304 that says nothing leaves the lifetime as it was");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut kept = VisitorCache::default();
        for key in 0..1000 {
            kept.take(key, &Answer { status: 200, fields: &[], body: None }, Duration::ZERO);
        }
        assert_eq!(kept.0.len(), KEPT_MAX);
    }
}
