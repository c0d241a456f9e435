//! Cache directives for caches of one kind: targeted fields (RFC 9213) and the older `Surrogate-Control`.
//!
//! Which field speaks: the first of the target list that is there and can be read, then `Surrogate-Control`, then `Cache-Control`. The one
//! that speaks speaks alone; `Cache-Control` and `Expires` are then for others (§2.2).

use http::{
    HeaderMap, HeaderName,
    header::{CACHE_CONTROL, HeaderValue},
};

use crate::{
    cache_control::{DeltaSeconds, Qualified, ResponseDirectives},
    request::has_any,
    structured::{Value, dictionary},
};

/// The targeted field for Seawall alone.
pub const SEAWALL_CACHE_CONTROL: HeaderName = HeaderName::from_static("seawall-cache-control");
/// The targeted field for every cache that a site's owner put before the origin (RFC 9213 §3).
pub const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");
/// The targeted field of the W3C's "Edge Architecture Specification" (2001), which many publishing systems still use.
pub const SURROGATE_CONTROL: HeaderName = HeaderName::from_static("surrogate-control");

/// The target list (RFC 9213 §2.2), the narrowest target first.
pub const TARGETS: [HeaderName; 2] = [SEAWALL_CACHE_CONTROL, CDN_CACHE_CONTROL];

/// Returns the directives that a cache with this target list obeys.
#[must_use]
pub fn directives(headers: &HeaderMap, targets: &[HeaderName]) -> ResponseDirectives {
    // Hardly any response has one of them.
    if !has_any(headers, targets) && !has_any(headers, &[SURROGATE_CONTROL]) {
        return ResponseDirectives::of(headers);
    }
    targets
        .iter()
        .find_map(|target| targeted(headers.get_all(target)))
        .or_else(|| surrogate(headers))
        .unwrap_or_else(|| ResponseDirectives::of(headers))
}

/// Reads a targeted field. Returns `None` if it is absent, empty or cannot be read; it then counts as absent (RFC 9213 §2.1).
fn targeted<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>) -> Option<ResponseDirectives> {
    let members = dictionary(lines).filter(|members| !members.is_empty())?;
    let mut directives = ResponseDirectives { targeted: true, ..ResponseDirectives::default() };
    for (name, value) in &members {
        directives.add_member(name, value);
    }
    Some(directives)
}

/// Reads `Surrogate-Control`. Returns `None` unless it says something about storing; `content="ESI/1.0"` alone does not.
///
/// `max-age=60+30` is fresh for 60 seconds and may be served for 30 more while it is refreshed. A lifetime that cannot be read counts as
/// none. So does one with a `;target` after it, which is meant for a surrogate by name. `private` in `Cache-Control` still holds beside it.
/// Origins that write both mean the browser by one and the surrogate by the other, except that a page for one person is for one person
/// everywhere.
fn surrogate(headers: &HeaderMap) -> Option<ResponseDirectives> {
    // Except for the `+`, its grammar is that of `Cache-Control`.
    let said = ResponseDirectives::of_lines(headers.get_all(SURROGATE_CONTROL).iter().map(extended));
    if said.max_age.is_none() && !said.no_store {
        return None;
    }
    let private = if headers.contains_key(CACHE_CONTROL) { ResponseDirectives::of(headers).private } else { Qualified::Absent };
    Some(ResponseDirectives {
        no_store: said.no_store,
        max_age: said.max_age,
        stale_while_revalidate: said.stale_while_revalidate,
        private,
        targeted: true,
        ..ResponseDirectives::default()
    })
}

/// Rewrites `max-age=60+30` in the words of RFC 5861.
fn extended(line: &HeaderValue) -> Vec<u8> {
    let members = crate::list::members(line.as_bytes()).map(|member| {
        let sum = member.iter().position(|&byte| byte == b'+').map(|at| (&member[..at], &member[at + 1..]));
        match sum {
            Some((lifetime, extension)) if DeltaSeconds::parse(extension).is_some() => {
                [lifetime, b", stale-while-revalidate=", extension].concat()
            }
            _ => member.to_vec(),
        }
    });
    members.collect::<Vec<_>>().join(&b", "[..])
}

impl ResponseDirectives {
    /// Adds one member of a targeted field. A directive with a value of the wrong type is ignored, except that a directive that forbids
    /// counts with any value but `?0`: a doubtful value never makes a response more cacheable.
    fn add_member(&mut self, name: &str, value: &Value) {
        let flag = *value == Value::Boolean(true);
        let forbids = *value != Value::Boolean(false);
        let lifetime = match value {
            // A negative lifetime is over.
            Value::Integer(seconds) => Some(DeltaSeconds::from_secs(u64::try_from(*seconds).unwrap_or_default())),
            Value::String(_) | Value::Token(_) | Value::Boolean(_) | Value::Other => None,
        };
        match name {
            "no-store" => self.no_store = forbids,
            "must-revalidate" => self.must_revalidate = forbids,
            "proxy-revalidate" => self.proxy_revalidate = forbids,
            "no-transform" => self.no_transform = forbids,
            "public" => self.public = flag,
            "must-understand" => self.must_understand = flag,
            "immutable" => self.immutable = flag,
            "no-cache" => self.no_cache = qualified(value),
            "private" => self.private = qualified(value),
            "max-age" => self.max_age = lifetime,
            "s-maxage" => self.s_maxage = lifetime,
            "stale-while-revalidate" => self.stale_while_revalidate = lifetime,
            "stale-if-error" => self.stale_if_error = lifetime,
            _ => {}
        }
    }
}

fn qualified(value: &Value) -> Qualified {
    match value {
        Value::Boolean(false) => Qualified::Absent,
        Value::String(names) | Value::Token(names) => Qualified::of_names(names.as_bytes()),
        Value::Boolean(true) | Value::Integer(_) | Value::Other => Qualified::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fields::map;

    type Lines = &'static [(&'static str, &'static str)];

    fn read(lines: Lines) -> ResponseDirectives {
        directives(&map(lines), &TARGETS)
    }

    fn max_age(lines: Lines) -> Option<u32> {
        read(lines).max_age.map(DeltaSeconds::as_secs)
    }

    /// RFC 9213 §2.1, §2.2.
    #[test]
    fn the_narrowest_field_that_can_be_read_speaks_alone() {
        const CC: (&str, &str) = ("cache-control", "max-age=1, no-store, public");
        let cases: &[(Lines, Option<u32>, bool)] = &[
            (&[CC], Some(1), false),
            (&[CC, ("cdn-cache-control", "max-age=10")], Some(10), true),
            (&[CC, ("cdn-cache-control", "max-age=10"), ("seawall-cache-control", "max-age=20")], Some(20), true),
            (&[CC, ("cdn-cache-control", "max-age=10"), ("surrogate-control", "max-age=20")], Some(10), true),
            (&[CC, ("surrogate-control", "max-age=20")], Some(20), true),
            // Empty or malformed: not there.
            (&[CC, ("cdn-cache-control", "")], Some(1), false),
            (&[CC, ("cdn-cache-control", "max-age=10, &&&&&")], Some(1), false),
            (&[CC, ("cdn-cache-control", "MaX-aGe=10")], Some(1), false),
            (&[CC, ("cdn-cache-control", "max-age =10")], Some(1), false),
            (&[CC, ("cdn-cache-control", "max-age=10"), ("seawall-cache-control", "max-age=")], Some(10), true),
            // The field can be read, but its value means nothing here: the field counts, the member does not.
            (&[CC, ("cdn-cache-control", "max-age=\"10\"")], None, true),
            (&[CC, ("cdn-cache-control", "max-age=10.5")], None, true),
            (&[CC, ("cdn-cache-control", "max-age")], None, true),
            (&[CC, ("cdn-cache-control", "unknown")], None, true),
            // Repeated: the last one, as in every dictionary.
            (&[("cdn-cache-control", "max-age=10, max-age=5")], Some(5), true),
            (&[("cdn-cache-control", "max-age=10"), ("cdn-cache-control", "max-age=50")], Some(50), true),
            (&[("cdn-cache-control", "max-age=10;x=y, foobar")], Some(10), true),
            (&[("cdn-cache-control", "max-age=-1")], Some(0), true),
            (&[("cdn-cache-control", "max-age=99999999999")], Some(1 << 31), true),
        ];
        for (lines, expected, targeted) in cases {
            let directives = read(lines);
            assert_eq!((directives.max_age.map(DeltaSeconds::as_secs), directives.targeted), (*expected, *targeted), "{lines:?}");
            assert_eq!(directives.no_store, lines.contains(&CC) && !targeted, "{lines:?}");
        }
    }

    #[test]
    fn what_forbids_counts_with_any_value_and_what_permits_only_as_a_flag() {
        let all = "no-store, private, no-cache, must-revalidate, proxy-revalidate, no-transform, public, must-understand, immutable";
        let all = targeted(&[HeaderValue::from_static(all)]).expect("readable");
        assert!(all.no_store && all.must_revalidate && all.proxy_revalidate && all.no_transform);
        assert!(all.public && all.must_understand && all.immutable);
        assert_eq!((all.private, all.no_cache), (Qualified::Whole, Qualified::Whole));
        for value in ["=1", "=x", "=(a b)"] {
            let line = ["no-store", "public", "private"].map(|name| format!("{name}{value}")).join(", ");
            let read = targeted(&[HeaderValue::from_str(&line).expect("a value")]).expect("readable");
            assert!(read.no_store && !read.public && read.private.is_present(), "{line}");
        }
        let off = read(&[("cdn-cache-control", "no-store=?0, private=?0, no-cache=?0, max-age=1")]);
        assert_eq!(off, ResponseDirectives { max_age: Some(DeltaSeconds::from_secs(1)), targeted: true, ..ResponseDirectives::default() });
        let named = read(&[("cdn-cache-control", "private=\"Set-Cookie, x-a\", no-cache=x-b")]);
        assert_eq!(named.private, Qualified::Fields(["set-cookie", "x-a"].map(HeaderName::from_static).into()));
        assert_eq!(named.no_cache, Qualified::Fields([HeaderName::from_static("x-b")].into()));
    }

    /// Edge Architecture Specification 1.0, "Surrogate-Control".
    #[test]
    fn surrogate_control() {
        for (value, expected) in [
            ("max-age=3600", Some(3600)),
            ("no-store, max-age=60", Some(60)),
            ("max-age=3600+600", Some(3600)),
            ("content=\"ESI/1.0\", max-age=60", Some(60)),
            ("max-age=30;elsewhere", Some(0)),
            ("max-age=x", Some(0)),
            // The field says nothing about storing: Cache-Control counts.
            ("content=\"ESI/1.0\"", Some(1)),
            ("content=\"max-age=60\"", Some(1)),
            ("", Some(1)),
        ] {
            let headers = map(&[("cache-control", "max-age=1"), ("surrogate-control", value)]);
            let read = directives(&headers, &TARGETS);
            assert_eq!(read.max_age.map(DeltaSeconds::as_secs), expected, "{value}");
            assert_eq!(read.no_store, value.starts_with("no-store"), "{value}");
            let extension = if value.contains("+600") { Some(600) } else { None };
            assert_eq!(read.stale_while_revalidate.map(DeltaSeconds::as_secs), extension, "{value}");
        }
        assert!(!read(&[("cache-control", "no-store"), ("surrogate-control", "max-age=60")]).no_store);
        assert_eq!(read(&[("cache-control", "private"), ("surrogate-control", "max-age=60")]).private, Qualified::Whole);
        assert_eq!(max_age(&[("surrogate-control", "no-store")]), None);
    }
}
