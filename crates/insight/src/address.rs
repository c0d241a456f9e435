//! The address of a page as it is kept: scheme, host, path, and the names of its query parameters. What stands after a name may be a secret.

use policy::{Kind, Parameters};
use semantics::shown::{self, Parameter};

use crate::text::{CUT, append};

/// Bytes of the longest address that is kept; a longer one is cut.
pub(crate) const ADDRESS_BYTES_MAX: usize = 160;
/// Bytes of the longest host that stands in one.
const HOST_BYTES_MAX: usize = 64;

/// An address as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) text: String,
    /// Whether all of it is there, so that it can be explained.
    pub(crate) is_whole: bool,
}

/// Returns whether a parameter is one that only trackers read: a page is the same with and without.
fn is_trackers(name: &str) -> bool {
    match Kind::Generic.preset().rules.parameters {
        Parameters::AllBut(names) => names.iter().any(|names| names.have(name)),
        Parameters::Only(_) => false,
    }
}

impl Address {
    /// Makes the address of a page. What only trackers read is left out, so that a page has one line.
    pub(crate) fn of(scheme: &str, host: &str, target: &str) -> Self {
        let mut text = String::with_capacity((scheme.len() + 3 + host.len() + target.len()).min(ADDRESS_BYTES_MAX));
        text.push_str(if scheme == "https" { "https://" } else { "http://" });
        let host_end = text.len() + HOST_BYTES_MAX;
        let has_host = append(&mut text, host, host_end);
        let has_rest = hidden(&mut text, target, ADDRESS_BYTES_MAX, |name| !is_trackers(name));
        Self { text, is_whole: has_host && has_rest }
    }
}

/// Appends path and query with `…` in place of each value, so that all has at most `most` bytes. Only parameters are shown whose names `shows` lets
/// through. Returns whether all of it fitted.
pub(crate) fn hidden(out: &mut String, target: &str, most: usize, shows: impl Fn(&str) -> bool) -> bool {
    // A fragment is not sent; should one be, it is nobody's business.
    let path_end = target.bytes().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
    let (path, rest) = target.split_at(path_end);
    let query = if rest.is_empty() { None } else { rest.split_once('?').map(|(_, query)| query) };
    let shown_path = shown::path(path);
    let mut fits = append(out, &shown_path, most) && shown_path == path;
    let pairs = query.into_iter().flat_map(|query| query.split('&'));
    let shown = pairs.filter(|pair| shows(pair.split('=').next().unwrap_or_default()));
    for (at, pair) in shown.enumerate() {
        if !fits {
            return false;
        }
        let (name, mark) = match Parameter::of(pair) {
            Parameter::Named(name) => (name, "=…"),
            Parameter::Word(word) => (word, ""),
            Parameter::Hidden => ("", "…"),
        };
        let before = out.len();
        let needed = 1 + name.len() + mark.len();
        fits = before + needed + CUT.len_utf8() <= most;
        if fits {
            out.push(if at == 0 { '?' } else { '&' });
            append(out, name, most);
            append(out, mark, most);
        } else {
            append(out, &CUT.to_string(), most);
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(target: &str) -> String {
        Address::of("https", "a.example", target).text
    }

    #[test]
    fn an_address_has_the_names_of_its_parameters_and_no_value() {
        for (target, shown) in [
            ("/", "/"),
            ("/a/b.html", "/a/b.html"),
            ("/?s=secret", "/?s=…"),
            ("/a?s=secret&page=2", "/a?s=…&page=…"),
            ("/a?preview", "/a?preview"),
            ("/a?preview&", "/a?preview&"),
            // A token without a name.
            ("/a?0a1b2c", "/a?…"),
            ("/a?abcdefghijklmnopqrstuvwxyz", "/a?…"),
            ("/a?s%3Dsecret", "/a?…"),
            ("/a?a=1;b=secret", "/a?a=…"),
            ("/a?a=1?b=secret", "/a?a=…"),
            ("/a?=secret", "/a?=…"),
            ("/a#secret", "/a"),
            ("/a#secret?b=secret", "/a?b=…"),
            ("/a?b=secret#c", "/a?b=…"),
            ("/%C3%A9-%3e", "/%C3%A9-%3e"),
            ("/a;jsessionid=secret", "/a…"),
            ("/a;v=secret/b?c=d", "/a…"),
            ("/a%3Ftoken=secret", "/a…"),
            ("/p/0b6c2fbb-93d1-4c59-a8f1-7a3c1d2e4f50/", "/p/…/"),
            ("/feed/0123456789abcdef0123456789abcdef", "/feed/…"),
            ("/feed/01234567abcdef01234567abcdefg", "/feed/01234567abcdef01234567abcdefg"),
            ("/01234567abcd/01234567abcd", "/01234567abcd/01234567abcd"),
            ("/orders/2026112800017/?key=secret", "/orders/…/"),
            ("/2026/11/23/a-post/?p=123456789&page=12", "/2026/11/23/a-post/?p=…&page=…"),
        ] {
            assert_eq!(address(target), format!("https://a.example{shown}"), "{target}");
        }
        assert_eq!(Address::of("http", "a.example", "/").text, "http://a.example/");
    }

    #[test]
    fn what_only_trackers_read_makes_no_other_page() {
        assert_eq!(address("/a?utm_source=x&utm_medium=y&fbclid=z"), "https://a.example/a");
        assert_eq!(address("/a?utm_source=x&page=2&gclid=z"), "https://a.example/a?page=…");
    }

    #[test]
    fn an_address_that_is_cut_is_no_example() {
        let long = format!("/{}", "a".repeat(8_000));
        let cut = Address::of("https", "a.example", &long);
        assert!(!cut.is_whole && cut.text.len() <= ADDRESS_BYTES_MAX && cut.text.ends_with(CUT), "{}", cut.text);
        let many = (0..100).map(|n| format!("parameter{n}=1")).collect::<Vec<_>>().join("&");
        let cut = Address::of("https", "a.example", &format!("/?{many}"));
        assert!(!cut.is_whole && cut.text.len() <= ADDRESS_BYTES_MAX, "{}", cut.text);
        assert!(!Address::of("https", &"h".repeat(300), "/").is_whole);
        assert!(Address::of("https", "a.example", "/a?b=1").is_whole);
    }

    proptest! {
        #[test]
        fn no_value_and_nothing_beyond_the_bound_is_kept(path in "/[a-z]{0,200}", names in prop::collection::vec("[a-z]{0,40}", 0..20)) {
            let query: Vec<String> = names.iter().map(|name| format!("{name}=SECRET")).collect();
            let address = Address::of("https", "a.example", &format!("{path}?{}", query.join("&")));
            prop_assert!(!address.text.contains('S') && address.text.len() <= ADDRESS_BYTES_MAX);
        }
    }
}
