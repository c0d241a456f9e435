//! The hosts that readers come from, by `Referer`. Nothing of an address but its host is kept.

use crate::text::shortened;

/// Bytes of the longest host.
pub(crate) const REFERRER_BYTES_MAX: usize = 48;

/// Labels in front of a host that make it no other place.
const FRONTS: [&str; 6] = ["www.", "m.", "l.", "lm.", "mobile.", "amp."];

/// Places with a host for each country, or for each of their programs: by the label that they have in common.
const WORLDWIDE: [&str; 4] = ["google", "bing", "yandex", "yahoo"];

/// Returns the host that a reader came from. Empty: none is said, or it is the host that was asked for.
pub(crate) fn host(referrer: &str, own: &str) -> String {
    if referrer.is_empty() {
        return String::new();
    }
    let Some((scheme, rest)) = referrer.split_once("://") else { return String::new() };
    let host = bare(rest);
    if host.is_empty() || host == bare(own) {
        return String::new();
    }
    let mut labels = host.rsplit('.').skip(1);
    // `google.com`, `google.co.uk`, `news.google.de`; not `google.example.com`.
    let place = match labels.next() {
        Some(short) if short.len() <= 3 => labels.next().filter(|of| WORLDWIDE.contains(of)).unwrap_or(short),
        Some(label) => label,
        None => "",
    };
    if scheme.starts_with("http") && WORLDWIDE.contains(&place) { place.to_owned() } else { shortened(&host, REFERRER_BYTES_MAX) }
}

/// Returns the host of an authority and what follows it, in small letters, without what makes it no other place.
fn bare(authority: &str) -> String {
    let authority = authority.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    // A port, but not the end of an IPv6 address.
    let host = match host.rsplit_once(':') {
        Some((before, port)) if port.bytes().all(|b| b.is_ascii_digit()) && (!before.contains(':') || before.ends_with(']')) => before,
        Some(_) | None => host,
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let front = FRONTS.iter().find_map(|front| host.strip_prefix(front)).filter(|rest| rest.contains('.'));
    front.map_or_else(|| host.clone(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_comes_from_a_host() {
        for (referrer, from) in [
            ("https://news.ycombinator.com/item?id=1", "news.ycombinator.com"),
            ("https://www.Example.org:8443/secret?token=1#x", "example.org"),
            ("https://user:secret@example.org/", "example.org"),
            ("https://l.facebook.com/", "facebook.com"),
            ("https://www.google.co.uk/", "google"),
            ("https://google.com", "google"),
            ("https://news.google.de/x", "google"),
            ("https://google.friends.example.com/", "google.friends.example.com"),
            ("https://google.example.com/", "google.example.com"),
            ("android-app://com.google.android.gm", "com.google.android.gm"),
            ("http://[2001:db8::1]:80/", "[2001:db8::1]"),
            // The same site.
            ("https://a.example/other", ""),
            ("https://www.a.example/other", ""),
            ("", ""),
            ("about:blank", ""),
            ("https:///x", ""),
        ] {
            assert_eq!(host(referrer, "a.example:443"), from, "{referrer}");
        }
        assert!(host(&format!("https://{}/", "x".repeat(8_192)), "a").len() <= REFERRER_BYTES_MAX);
    }
}
