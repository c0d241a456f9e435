//! `Cache-Status`: what this cache did with a request, for people and for caches nearer the client (RFC 9211).
//!
//! Everything is derived from one [`Outcome`]; `X-Cache` says the same in the words nginx made common. Lines of caches nearer the origin stay
//! before ours (§2): keeping them is up to the caller. Writing does not allocate beyond what the buffer needs to grow.

/// The name of this cache in `Cache-Status`.
pub const NAME: &str = "seawall";

/// How a response was produced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A fresh stored response was served.
    Hit,
    /// A stale stored response was served, while another request refreshes it (RFC 5861 §3).
    Updating,
    /// A stale stored response was served, because the origin failed (RFC 5861 §4, RFC 9111 §4.2.4).
    Stale {
        /// Whether this very request went to the origin. If not, the origin was known to be down, and this is a hit in RFC 9211's words.
        forwarded: bool,
    },
    /// A stale stored response was served after the origin confirmed it with 304.
    Revalidated,
    /// The origin's response was served.
    Forwarded(Forwarded),
}

/// Why a request was forwarded (RFC 9211 §2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Forwarded {
    /// The cache is configured not to handle the request.
    Bypass,
    /// The method's semantics require forwarding.
    Method,
    /// Nothing was stored for the target URI.
    UriMiss,
    /// Something was stored for the target URI, but the nominated fields differ.
    VaryMiss,
    /// Nothing that fits was stored, and it is unknown which of the two misses it is.
    Miss,
    /// A fresh response was stored, but the request's own directives forbade it.
    Request,
    /// A stale response was stored.
    Stale,
    /// A partial response was stored that lacked what was asked for.
    Partial,
}

impl Forwarded {
    /// Returns the value of the `fwd` parameter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

impl Outcome {
    /// Returns why the request was forwarded; `None` if it was not, which makes it a hit (RFC 9211 §2.1).
    #[must_use]
    pub const fn forwarded(self) -> Option<Forwarded> {
        match self {
            Self::Hit | Self::Updating | Self::Stale { forwarded: false } => None,
            Self::Stale { forwarded: true } | Self::Revalidated => Some(Forwarded::Stale),
            Self::Forwarded(why) => Some(why),
        }
    }

    /// Returns the value of `X-Cache`.
    #[must_use]
    pub const fn x_cache(self) -> &'static str {
        match self {
            Self::Hit => "HIT",
            Self::Updating => "UPDATING",
            Self::Stale { .. } => "STALE",
            Self::Revalidated => "REVALIDATED",
            Self::Forwarded(Forwarded::Stale) => "EXPIRED",
            Self::Forwarded(Forwarded::UriMiss | Forwarded::VaryMiss | Forwarded::Miss | Forwarded::Partial) => "MISS",
            Self::Forwarded(Forwarded::Bypass | Forwarded::Method | Forwarded::Request) => "BYPASS",
        }
    }
}

/// One member of the `Cache-Status` field (RFC 9211 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheStatus<'a> {
    /// How the response was produced.
    pub outcome: Outcome,
    /// The status the origin sent, if the request was forwarded and answered (§2.3). Not written on a hit.
    pub fwd_status: Option<u16>,
    /// The remaining freshness lifetime in seconds; negative for a stale response (§2.4).
    pub ttl: Option<i64>,
    /// Whether the response was stored (§2.5). Not written on a hit.
    pub stored: bool,
    /// Whether the request shared another request's way to the origin (§2.6). Not written on a hit.
    pub collapsed: bool,
    /// The rule that decided, or whatever else explains the outcome (§2.8).
    pub detail: Option<&'a str>,
}

impl CacheStatus<'_> {
    /// Creates a member with an outcome alone.
    #[must_use]
    pub const fn new(outcome: Outcome) -> Self {
        Self { outcome, fwd_status: None, ttl: None, stored: false, collapsed: false, detail: None }
    }

    /// Appends the member to a `Cache-Status` value.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(NAME.as_bytes());
        if let Some(why) = self.outcome.forwarded() {
            out.extend_from_slice(b"; fwd=");
            out.extend_from_slice(why.name().as_bytes());
            if let Some(status) = self.fwd_status {
                out.extend_from_slice(b"; fwd-status=");
                write_integer(i64::from(status), out);
            }
        } else {
            out.extend_from_slice(b"; hit");
        }
        if let Some(ttl) = self.ttl {
            out.extend_from_slice(b"; ttl=");
            write_integer(ttl, out);
        }
        if self.outcome.forwarded().is_some() {
            if self.stored {
                out.extend_from_slice(b"; stored");
            }
            if self.collapsed {
                out.extend_from_slice(b"; collapsed");
            }
        }
        if let Some(detail) = self.detail {
            out.extend_from_slice(b"; detail=");
            write_token_or_string(detail, out);
        }
    }

    /// Returns the value of `X-Cache`: `HIT`, `MISS`, `STALE`, `UPDATING`, `REVALIDATED`, `EXPIRED` or `BYPASS`.
    #[must_use]
    pub const fn x_cache(&self) -> &'static str {
        self.outcome.x_cache()
    }
}

/// Writes an sf-integer (RFC 8941 §3.3.1). It has at most fifteen digits, so larger values are cut to that.
fn write_integer(value: i64, out: &mut Vec<u8>) {
    const MAX: u64 = 999_999_999_999_999;
    let mut rest = value.unsigned_abs().min(MAX);
    if value < 0 {
        out.push(b'-');
    }
    let mut digits = [b'0'; 15];
    let mut at = digits.len();
    loop {
        at -= 1;
        // The rest is always below ten.
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes `text` as an sf-token if it is one, else as an sf-string (RFC 8941 §3.3.3, §3.3.4). A string may contain only printable ASCII:
/// everything else becomes `?`.
fn write_token_or_string(text: &str, out: &mut Vec<u8>) {
    if is_token(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte @ (b'"' | b'\\')) => out.extend_from_slice(&[b'\\', byte]),
            Ok(byte @ b' '..=b'~') => out.push(byte),
            _ => out.push(b'?'),
        }
    }
    out.push(b'"');
}

fn is_token(text: &[u8]) -> bool {
    matches!(text, [first, ..] if first.is_ascii_alphabetic() || *first == b'*')
        && text.iter().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(status: &CacheStatus<'_>) -> String {
        let mut out = Vec::new();
        status.write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn members() {
        let new = CacheStatus::new;
        let fwd = |why| CacheStatus::new(Outcome::Forwarded(why));
        let cases = [
            (CacheStatus { ttl: Some(376), ..new(Outcome::Hit) }, "seawall; hit; ttl=376", "HIT"),
            (CacheStatus { ttl: Some(-412), ..new(Outcome::Updating) }, "seawall; hit; ttl=-412", "UPDATING"),
            (CacheStatus { ttl: Some(-1), ..new(Outcome::Stale { forwarded: false }) }, "seawall; hit; ttl=-1", "STALE"),
            (
                CacheStatus { fwd_status: Some(503), ttl: Some(-1), ..new(Outcome::Stale { forwarded: true }) },
                "seawall; fwd=stale; fwd-status=503; ttl=-1",
                "STALE",
            ),
            (CacheStatus { fwd_status: Some(304), ..new(Outcome::Revalidated) }, "seawall; fwd=stale; fwd-status=304", "REVALIDATED"),
            (
                CacheStatus { fwd_status: Some(200), stored: true, ..fwd(Forwarded::UriMiss) },
                "seawall; fwd=uri-miss; fwd-status=200; stored",
                "MISS",
            ),
            (CacheStatus { collapsed: true, ..fwd(Forwarded::UriMiss) }, "seawall; fwd=uri-miss; collapsed", "MISS"),
            (CacheStatus { detail: Some("cookie"), ..fwd(Forwarded::Bypass) }, "seawall; fwd=bypass; detail=cookie", "BYPASS"),
            (
                CacheStatus { fwd_status: Some(200), ttl: Some(60), stored: true, collapsed: true, ..fwd(Forwarded::Stale) },
                "seawall; fwd=stale; fwd-status=200; ttl=60; stored; collapsed",
                "EXPIRED",
            ),
            (fwd(Forwarded::Method), "seawall; fwd=method", "BYPASS"),
            (fwd(Forwarded::VaryMiss), "seawall; fwd=vary-miss", "MISS"),
            (fwd(Forwarded::Miss), "seawall; fwd=miss", "MISS"),
            (fwd(Forwarded::Request), "seawall; fwd=request", "BYPASS"),
            (fwd(Forwarded::Partial), "seawall; fwd=partial", "MISS"),
            // Parameters that only a forwarded request has are left out on a hit.
            (CacheStatus { fwd_status: Some(200), stored: true, collapsed: true, ..new(Outcome::Hit) }, "seawall; hit", "HIT"),
        ];
        for (status, expected, x_cache) in cases {
            assert_eq!(text(&status), expected);
            assert_eq!(status.x_cache(), x_cache, "{expected}");
        }
    }

    #[test]
    fn details_and_integers_are_structured_fields() {
        let detail = |detail| text(&CacheStatus { detail: Some(detail), ..CacheStatus::new(Outcome::Hit) });
        let cases = [
            ("cookie:wordpress_logged_in", "cookie:wordpress_logged_in"),
            ("*x/y", "*x/y"),
            ("two words", "\"two words\""),
            ("9lives", "\"9lives\""),
            ("", "\"\""),
            ("a\"b\\c", "\"a\\\"b\\\\c\""),
            ("é\r\nx: y", "\"???x: y\""),
        ];
        for (given, expected) in cases {
            assert_eq!(detail(given), format!("seawall; hit; detail={expected}"));
        }
        let ttl = |ttl| text(&CacheStatus { ttl: Some(ttl), ..CacheStatus::new(Outcome::Hit) });
        assert_eq!(ttl(0), "seawall; hit; ttl=0");
        assert_eq!(ttl(i64::MAX), "seawall; hit; ttl=999999999999999");
        assert_eq!(ttl(i64::MIN), "seawall; hit; ttl=-999999999999999");
    }

    proptest! {
        #[test]
        fn integers_are_decimal(value in -999_999_999_999_999_i64..=999_999_999_999_999) {
            let mut out = Vec::new();
            write_integer(value, &mut out);
            prop_assert_eq!(out, value.to_string().into_bytes());
        }

        #[test]
        fn any_detail_is_a_field_value(detail in any::<String>()) {
            let status = CacheStatus { detail: Some(&detail), ..CacheStatus::new(Outcome::Hit) };
            prop_assert!(text(&status).bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        }
    }
}
