//! Reads what an answer's fields say about the caches it came through.
//!
//! There is one standard, `Cache-Status` (RFC 9211), and many customs. An answer may have come through several caches, each with a field of its own, or
//! one field with a list. One cache that answered is enough for a hit: the origin was spared. So each statement is read by itself, and the best of them
//! counts: hit, stale, miss, bypass, in this order. `Age` alone is a weak sign, for it says that some cache held the answer: it counts where nothing
//! else speaks.
//!
//! A stored response that was validated (`EXPIRED`, `REVALIDATED`, `RefreshHit`, `fwd=stale`) is a miss here: somebody waited for the origin.

use super::{Answer, Outcome};

/// Returns what the caches did, and whether the origin was asked, as far as the answer says so.
pub(super) fn view(answer: &Answer<'_>) -> (Outcome, Option<bool>) {
    let mut best = Outcome::Unknown;
    let mut reached = None;
    let mut aged = false;
    // What is nearest to the user stands last, in a list and in the order of fields.
    let mut standard = Standard::default();
    for (name, value) in answer.fields {
        match kind(name) {
            None => {}
            Some(Kind::Standard) => standard.read(value, answer.status),
            Some(Kind::Custom) => best = words(value).map(outcome_of).fold(best, Outcome::min),
            Some(Kind::Varnish) => {
                // Its own number, and at a hit that of the request that stored the response.
                let ids = value.split(u8::is_ascii_whitespace).filter(|id| !id.is_empty()).count();
                best = best.min(if ids > 1 { Outcome::Hit } else { Outcome::Miss });
            }
            Some(Kind::Age) => aged = value.trim_ascii().iter().any(|digit| (b'1'..=b'9').contains(digit)),
        }
    }
    if let Some((outcome, asked)) = standard.sum() {
        // Only the standard tells that a request waited for another one's answer.
        reached = (outcome <= best).then_some(asked);
        best = best.min(outcome);
    }
    if best == Outcome::Unknown && aged {
        best = Outcome::Hit;
    }
    let reached = reached.or(match best {
        Outcome::Hit | Outcome::Stale => Some(false),
        Outcome::Miss | Outcome::Bypass => Some(true),
        Outcome::Unknown => None,
    });
    (best, reached)
}

/// A field that says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Standard,
    Custom,
    Varnish,
    Age,
}

/// Finds out what a field is. Nearly all fields are none of these: their length or first byte says so.
fn kind(name: &[u8]) -> Option<Kind> {
    if !matches!(name.first()? | 0x20, b'a' | b'c' | b'x') {
        return None;
    }
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    let custom = match name.len() {
        3 => return is("age").then_some(Kind::Age),
        7 => is("x-cache"),
        8 => is("x-cached"),
        9 if is("x-varnish") => return Some(Kind::Varnish),
        9 => is("cdn-cache"),
        12 => return is("cache-status").then_some(Kind::Standard),
        13 => is("x-proxy-cache") || is("x-nginx-cache"),
        14 => is("x-cache-status") || is("x-vercel-cache") || is("x-kinsta-cache"),
        15 => is("cf-cache-status") || is("x-fastcgi-cache"),
        17 => is("x-litespeed-cache"),
        22 => is("x-srcache-fetch-status"),
        _ => false,
    };
    custom.then_some(Kind::Custom)
}

/// Returns the first words of the members of a list.
fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
    value.split(|byte| *byte == b',').map(move |member| member.trim_ascii().split(end).next().unwrap_or_default())
}

/// Returns what a word of a custom field means. Squid and Akamai put `TCP_` before it.
fn outcome_of(word: &[u8]) -> Outcome {
    let mut upper = [0; 24];
    let Some(upper) = upper.get_mut(..word.len()) else { return Outcome::Unknown };
    upper.copy_from_slice(word);
    upper.make_ascii_uppercase();
    match upper.strip_prefix(b"TCP_").unwrap_or(upper) {
        // CloudFront's and Akamai's words beside nginx's. Vercel's PRERENDER is a page that was made before anybody asked.
        b"HIT" | b"MEM_HIT" | b"REMOTE_HIT" | b"IMS_HIT" | b"NEGATIVE_HIT" | b"PRERENDER" => Outcome::Hit,
        b"STALE" | b"UPDATING" | b"EXPIRED_HIT" | b"REFRESH_FAIL_HIT" => Outcome::Stale,
        b"MISS" | b"EXPIRED" | b"REVALIDATED" | b"SCARCE" | b"REFRESHHIT" | b"REFRESH_HIT" | b"REFRESH_MISS" | b"CLIENT_REFRESH_MISS" => {
            Outcome::Miss
        }
        b"BYPASS" | b"PASS" | b"DYNAMIC" | b"NONE" | b"UNCACHEABLE" | b"CONFIG_NOCACHE" | b"PRIVATE_NOSTORE" => Outcome::Bypass,
        _ => Outcome::Unknown,
    }
}

/// `Cache-Status`, member by member.
#[derive(Debug, Default)]
struct Standard {
    /// The hit nearest to the user, and whether the origin was asked all the same.
    hit: Option<(Outcome, bool)>,
    /// The outcome at the cache nearest to the user did, if it forwarded the request.
    forwarded: Option<Outcome>,
    /// Whether a cache did not forward the request, but waited for another one's answer.
    collapsed: bool,
}

impl Standard {
    fn read(&mut self, value: &[u8], status: u16) {
        for member in split(value, b',') {
            let (mut hit, mut stale, mut forwarded, mut failed) = (false, false, None, false);
            for parameter in split(member, b';').skip(1) {
                let mut parts = parameter.splitn(2, |byte| *byte == b'=');
                let name = parts.next().unwrap_or_default().trim_ascii();
                let value = parts.next().map(<[u8]>::trim_ascii);
                match name {
                    b"hit" => hit = value != Some(b"?0"),
                    b"ttl" => stale = value.is_some_and(|value| value.starts_with(b"-")),
                    b"collapsed" => self.collapsed |= value != Some(b"?0"),
                    b"fwd" => forwarded = value,
                    b"fwd-status" => {
                        let said = value.and_then(|value| std::str::from_utf8(value).ok()?.parse::<u16>().ok());
                        failed = said.is_some_and(|said| said >= 500 && said != status);
                    }
                    _ => {}
                }
            }
            if hit {
                self.hit = Some((if stale { Outcome::Stale } else { Outcome::Hit }, false));
            } else if let Some(reason) = forwarded {
                if reason == b"stale" && failed {
                    // The origin failed, and the user got the stale response.
                    self.hit = Some((Outcome::Stale, true));
                }
                self.forwarded = Some(match reason {
                    b"bypass" | b"method" | b"request" => Outcome::Bypass,
                    _ => Outcome::Miss,
                });
            }
        }
    }

    fn sum(&self) -> Option<(Outcome, bool)> {
        self.hit.or_else(|| self.forwarded.map(|outcome| (outcome, !self.collapsed)))
    }
}

/// Splits a structured field at the separators that stand in no string.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |byte| {
        let is_separator = *byte == separator && !quoted;
        if escaped {
            escaped = false;
        } else if quoted && *byte == b'\\' {
            escaped = true;
        } else if *byte == b'"' {
            quoted = !quoted;
        }
        is_separator
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Bypass, Hit, Miss, Stale, Unknown};

    fn of(fields: &[(&str, &str)]) -> (Outcome, Option<bool>) {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        view(&Answer { status: 200, fields: &fields, body: None })
    }

    /// RFC 9211 §2 to §4, with its own examples.
    #[test]
    fn cache_status_is_read_as_the_rfc_says() {
        for (value, outcome, reached) in [
            ("ExampleCache; hit; ttl=376", Hit, Some(false)),
            ("ExampleCache; hit; ttl=-412", Stale, Some(false)),
            ("ExampleCache; fwd=uri-miss; stored", Miss, Some(true)),
            ("ExampleCache; fwd=uri-miss; collapsed", Miss, Some(false)),
            ("ExampleCache; fwd=uri-miss; collapsed=?0", Miss, Some(true)),
            ("ExampleCache; fwd=vary-miss", Miss, Some(true)),
            ("ExampleCache; fwd=miss", Miss, Some(true)),
            ("ExampleCache; fwd=partial", Miss, Some(true)),
            ("ExampleCache; fwd=stale; fwd-status=304", Miss, Some(true)),
            ("ExampleCache; fwd=stale; fwd-status=304; collapsed", Miss, Some(false)),
            ("ExampleCache; fwd=stale; fwd-status=503", Stale, Some(true)),
            ("ExampleCache; fwd=stale; fwd-status=200", Miss, Some(true)),
            ("ExampleCache; fwd=bypass", Bypass, Some(true)),
            ("ExampleCache; fwd=method", Bypass, Some(true)),
            ("ExampleCache; fwd=request", Bypass, Some(true)),
            ("ExampleCache", Unknown, None),
            ("ExampleCache; hit=?0; fwd=miss", Miss, Some(true)),
            // §3: the last member is nearest to the user.
            ("OriginCache; hit; ttl=1100, \"CDN Company Here\"; hit; ttl=545", Hit, Some(false)),
            ("ReverseProxyCache; hit", Hit, Some(false)),
            ("ForwardProxyCache; fwd=uri-miss; collapsed; stored", Miss, Some(false)),
            ("OriginCache; hit; ttl=1100, CDN; fwd=uri-miss", Hit, Some(false)),
            ("OriginCache; fwd=uri-miss, CDN; hit; ttl=-3", Stale, Some(false)),
            ("OriginCache; hit; ttl=-3, CDN; hit; ttl=5", Hit, Some(false)),
            ("OriginCache; fwd=bypass, CDN; fwd=uri-miss", Miss, Some(true)),
            ("\"a, b; hit\"; fwd=miss; detail=\"x; hit, \\\" y\"", Miss, Some(true)),
            ("", Unknown, None),
        ] {
            assert_eq!(of(&[("Cache-Status", value)]), (outcome, reached), "{value}");
        }
    }

    #[test]
    fn each_systems_words_are_known() {
        for (name, value, outcome) in [
            // nginx: $upstream_cache_status, in the fields that recipes use.
            ("X-Cache-Status", "HIT", Hit),
            ("X-Cache-Status", "MISS", Miss),
            ("X-Cache-Status", "EXPIRED", Miss),
            ("X-Cache-Status", "REVALIDATED", Miss),
            ("X-Cache-Status", "SCARCE", Miss),
            ("X-Cache-Status", "STALE", Stale),
            ("X-Cache-Status", "UPDATING", Stale),
            ("X-Cache-Status", "BYPASS", Bypass),
            ("X-Cache-Status", "-", Unknown),
            ("X-Proxy-Cache", "HIT", Hit),
            ("X-FastCGI-Cache", "BYPASS", Bypass),
            ("X-Nginx-Cache", "HIT", Hit),
            ("X-Cached", "MISS", Miss),
            ("X-SRCache-Fetch-Status", "HIT", Hit),
            // Varnish's and Fastly's custom.
            ("x-cache", "HIT", Hit),
            ("X-Cache", "cached", Unknown),
            ("X-Cache", "MISS, HIT", Hit),
            ("X-Cache", "HIT, MISS", Hit),
            ("X-Cache", "MISS, MISS", Miss),
            ("X-Varnish", "32770", Miss),
            ("X-Varnish", "32773 32771", Hit),
            // CloudFront.
            ("X-Cache", "Hit from cloudfront", Hit),
            ("X-Cache", "RefreshHit from cloudfront", Miss),
            ("X-Cache", "Miss from cloudfront", Miss),
            ("X-Cache", "Error from cloudfront", Unknown),
            // Squid, Akamai, Azure.
            ("X-Cache", "HIT from proxy.example.org", Hit),
            ("X-Cache", "TCP_MEM_HIT from a1.example (AkamaiGHost/9)", Hit),
            ("X-Cache", "TCP_REFRESH_MISS from a1.example", Miss),
            ("X-Cache", "TCP_REMOTE_HIT", Hit),
            ("X-Cache", "CONFIG_NOCACHE", Bypass),
            // Cloudflare.
            ("CF-Cache-Status", "HIT", Hit),
            ("CF-Cache-Status", "MISS", Miss),
            ("CF-Cache-Status", "EXPIRED", Miss),
            ("CF-Cache-Status", "REVALIDATED", Miss),
            ("CF-Cache-Status", "STALE", Stale),
            ("CF-Cache-Status", "UPDATING", Stale),
            ("CF-Cache-Status", "BYPASS", Bypass),
            ("CF-Cache-Status", "DYNAMIC", Bypass),
            // Others.
            ("X-Vercel-Cache", "PRERENDER", Hit),
            ("X-Vercel-Cache", "STALE", Stale),
            ("X-LiteSpeed-Cache", "hit", Hit),
            ("X-LiteSpeed-Cache", "hit,private", Hit),
            ("X-LiteSpeed-Cache", "miss", Miss),
            ("X-Kinsta-Cache", "BYPASS", Bypass),
            ("CDN-Cache", "HIT", Hit),
            ("X-Cache", "an answer whose text is longer than any word of any cache", Unknown),
            ("X-Cache-Hits", "3", Unknown),
        ] {
            assert_eq!(of(&[(name, value)]).0, outcome, "{name}: {value}");
        }
    }

    #[test]
    fn age_alone_is_a_hit_and_one_cache_that_answered_is_enough() {
        assert_eq!(of(&[("Age", "12")]), (Hit, Some(false)));
        assert_eq!(of(&[("Age", "0")]), (Unknown, None));
        assert_eq!(of(&[("Age", "12"), ("X-Cache", "MISS")]), (Miss, Some(true)));
        assert_eq!(of(&[("CF-Cache-Status", "DYNAMIC"), ("X-Cache", "HIT")]), (Hit, Some(false)));
        assert_eq!(of(&[("CF-Cache-Status", "HIT"), ("Cache-Status", "seawall; fwd=uri-miss; stored")]), (Hit, Some(false)));
        assert_eq!(of(&[("X-Cache", "MISS"), ("Cache-Status", "seawall; fwd=uri-miss; collapsed")]), (Miss, Some(false)));
        assert_eq!(of(&[("Cache-Status", "inner; fwd=miss"), ("cache-status", "outer; hit")]), (Hit, Some(false)));
        assert_eq!(of(&[]), (Unknown, None));
    }

    proptest::proptest! {
        #[test]
        fn no_value_makes_the_reader_panic(name in "cache-status|x-cache|x-varnish|age", value in proptest::collection::vec(0_u8.., 0..60)) {
            let _ = view(&Answer { status: 200, fields: &[(name.as_bytes(), &value)], body: None });
        }
    }
}
