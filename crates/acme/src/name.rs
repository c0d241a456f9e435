//! Names, and who certifies them.

use std::net::IpAddr;

/// The kind of issuer of a name's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issuer {
    /// A public authority, by ACME.
    Acme,
    /// Our own root, because no public authority certifies such a name.
    Local,
}

/// Top-level names that are set aside for local use and tests: RFC 2606 §2, RFC 6761 §6, RFC 6762 §3, RFC 8375 §3; `internal` by ICANN.
const LOCAL: [&str; 8] = ["localhost", "local", "internal", "test", "example", "invalid", "home.arpa", "lan"];

/// Returns the issuer for `name`, which is in lower case, without a port, and may begin with `*.`.
#[must_use]
pub fn issuer(name: &str) -> Issuer {
    let name = name.strip_prefix("*.").unwrap_or(name);
    let ends_so = |end: &str| name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if name.parse::<IpAddr>().is_ok() || !name.contains('.') || LOCAL.iter().any(|end| ends_so(end)) { Issuer::Local } else { Issuer::Acme }
}

/// Returns the other form of a name with or without `www.`, if it has one: readers type both.
///
/// A name without `www.` has one only if it has two labels (`blog.example.org` has none). Any name with `www.` has one.
#[must_use]
pub fn twin(name: &str) -> Option<String> {
    if name.starts_with('*') || issuer(name) == Issuer::Local {
        return None;
    }
    match name.strip_prefix("www.") {
        Some(bare) => bare.contains('.').then(|| bare.to_owned()),
        None => (name.matches('.').count() == 1).then(|| format!("www.{name}")),
    }
}

/// Returns whether a name has a dot, and only letters, digits and hyphens: nothing else can be ordered, or put into a URL.
pub(crate) fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.contains('.') && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_local_use_are_certified_by_our_own_root() {
        for name in ["localhost", "blog.localhost", "nas", "nas.local", "127.0.0.1", "::1", "a.home.arpa", "blog.test", "*.blog.test"] {
            assert_eq!(issuer(name), Issuer::Local, "{name}");
        }
        for name in ["example.org", "blog.example.org", "*.example.org", "mylocal.org", "test.de", "home.arpa.org"] {
            assert_eq!(issuer(name), Issuer::Acme, "{name}");
        }
    }

    #[test]
    fn a_name_that_readers_type_in_two_forms_has_a_twin() {
        let cases = [
            ("example.org", Some("www.example.org")),
            ("www.example.org", Some("example.org")),
            ("www.blog.example.org", Some("blog.example.org")),
            ("blog.example.org", None),
            ("*.example.org", None),
            ("localhost", None),
            ("www.localhost", None),
        ];
        for (name, expected) in cases {
            assert_eq!(twin(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn only_host_names_are_ordered_on_demand() {
        for name in ["a.example.org", "xn--bcher-kva.example.org", "1.example.org"] {
            assert!(is_host_name(name), "{name}");
        }
        let long = format!("{}.example.org", "a".repeat(64));
        for name in
            ["example", "*.example.org", "a..example.org", "a.example.org.", "-a.example.org", "a_b.example.org", "a/b.c", "A.b", "", &long]
        {
            assert!(!is_host_name(name), "{name}");
        }
    }
}
