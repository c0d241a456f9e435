//! Which of several things a host name means: the one place where names are matched.

use std::collections::HashMap;

use semantics::target::host_without_port;

/// Things by host name. A thing has a name, all names below one (`*.example.org`), or every name.
#[derive(Debug)]
pub(crate) struct Hosts<T> {
    /// `None`: the name means nothing, whoever has all names.
    exact: HashMap<String, Option<T>>,
    /// Suffixes with their dot, the longest first.
    below: Vec<(String, T)>,
    any: Option<T>,
}

impl<T> Default for Hosts<T> {
    fn default() -> Self {
        Self { exact: HashMap::new(), below: Vec::new(), any: None }
    }
}

impl<T> Hosts<T> {
    /// Gives a thing a name in lower case, such as `example.org` or `*.example.org`.
    pub(crate) fn insert(&mut self, name: &str, value: T) {
        match name.strip_prefix('*') {
            Some(suffix) => {
                self.below.push((suffix.to_owned(), value));
                self.below.sort_by_key(|(suffix, _)| std::cmp::Reverse(suffix.len()));
            }
            None => drop(self.exact.insert(name.to_owned(), Some(value))),
        }
    }

    /// Gives a thing every name that nobody else has.
    pub(crate) fn insert_for_any(&mut self, value: T) {
        self.any = Some(value);
    }

    /// Takes a name from everybody, also where something has all names.
    pub(crate) fn take_out(&mut self, name: &str) {
        self.exact.insert(name.to_owned(), None);
    }

    /// Finds what `authority` means: what has exactly this name, then what has the longest `*.` name, then what has every name.
    #[inline]
    pub(crate) fn find(&self, authority: &str) -> Option<&T> {
        if self.exact.is_empty() && self.below.is_empty() {
            return self.any.as_ref();
        }
        let mut lower = [0_u8; 255];
        let host = lower_host(authority, &mut lower)?;
        if let Some(value) = self.exact.get(host) {
            return value.as_ref();
        }
        self.below.iter().find(|(suffix, _)| is_below(host, suffix)).map(|(_, value)| value).or(self.any.as_ref())
    }

    /// Finds everything that has the name of `authority`, also where something else is found before it. After a change of names, that may
    /// be what was found for it before.
    pub(crate) fn find_all(&self, authority: &str) -> Vec<&T> {
        let mut lower = [0_u8; 255];
        let Some(host) = lower_host(authority, &mut lower) else { return self.any.iter().collect() };
        let below = self.below.iter().filter(|(suffix, _)| is_below(host, suffix)).map(|(_, value)| value);
        self.exact.get(host).into_iter().flatten().chain(below).chain(&self.any).collect()
    }

    /// Returns every thing, once for each of its names.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.exact.values().flatten().chain(self.below.iter().map(|(_, value)| value)).chain(&self.any)
    }

    /// Makes a copy in which the same names mean something else.
    pub(crate) fn map<U>(&self, mut of: impl FnMut(&T) -> U) -> Hosts<U> {
        Hosts {
            exact: self.exact.iter().map(|(name, value)| (name.clone(), value.as_ref().map(&mut of))).collect(),
            below: self.below.iter().map(|(suffix, value)| (suffix.clone(), of(value))).collect(),
            any: self.any.as_ref().map(&mut of),
        }
    }
}

/// Returns whether the host of `authority` has one of these names, which are in lower case, such as `example.org` or `*.example.org`. No names stand for
/// every host.
///
/// Another site may have the host all the same, by a closer name: [`Hosts::find`] knows all sites, and this the names of one.
#[must_use]
pub fn is_among(authority: &str, names: &[String]) -> bool {
    let has = |host: &str, name: &str| name.strip_prefix('*').map_or(host == name, |suffix| is_below(host, suffix));
    names.is_empty() || lower_host(authority, &mut [0; 255]).is_some_and(|host| names.iter().any(|name| has(host, name)))
}

/// Returns whether two authorities have the same host.
pub(crate) fn is_same_host(one: &str, other: &str) -> bool {
    lower_host(one, &mut [0; 255]).is_some_and(|host| lower_host(other, &mut [0; 255]) == Some(host))
}

fn is_below(host: &str, suffix: &str) -> bool {
    host.len() > suffix.len() && host.ends_with(suffix)
}

/// Returns the host of an authority in lower case, without the dot of a name that is written to its end. `None`: no host is that long.
pub(crate) fn lower_host<'a>(authority: &str, lower: &'a mut [u8; 255]) -> Option<&'a str> {
    let host = host_without_port(authority).as_bytes();
    let host = host.strip_suffix(b".").unwrap_or(host);
    let lower = lower.get_mut(..host.len())?;
    lower.copy_from_slice(host);
    lower.make_ascii_lowercase();
    std::str::from_utf8(lower).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_means_its_closest_name() {
        let mut hosts = Hosts::default();
        for (name, value) in [("a.example", 1), ("*.example", 2), ("*.b.example", 3), ("[::1]", 4)] {
            hosts.insert(name, value);
        }
        let found =
            |hosts: &Hosts<i32>, host: &str| (hosts.find(host).copied(), hosts.find_all(host).into_iter().copied().collect::<Vec<_>>());
        for (host, expected, all) in [
            ("a.example", Some(1), &[1, 2][..]),
            ("A.Example.:8080", Some(1), &[1, 2]),
            ("c.example", Some(2), &[2]),
            ("c.b.example", Some(3), &[3, 2]),
            ("b.example", Some(2), &[2]),
            (".example", None, &[]),
            ("example", None, &[]),
            ("[::1]:80", Some(4), &[4]),
            ("", None, &[]),
        ] {
            assert_eq!(found(&hosts, host), (expected, all.to_vec()), "{host}");
        }
        hosts.insert_for_any(9);
        hosts.take_out("www.example");
        for (host, expected, all) in
            [("other", Some(9), &[9][..]), ("a.example", Some(1), &[1, 2, 9]), ("www.example", None, &[2, 9]), ("", Some(9), &[9])]
        {
            assert_eq!(found(&hosts, host), (expected, all.to_vec()), "{host}");
        }
        let doubled = hosts.map(|value| value * 2);
        assert_eq!((doubled.find("c.b.example"), doubled.find("www.example"), doubled.find("x")), (Some(&6), None, Some(&18)));
    }

    #[test]
    fn a_host_is_among_the_names_of_a_site_by_which_it_would_be_found() {
        let names = ["a.example", "*.b.example", "[::1]"].map(str::to_owned);
        let mut hosts = Hosts::default();
        names.iter().for_each(|name| hosts.insert(name, ()));
        for (host, is_so) in [
            ("a.example", true),
            ("A.Example.:8080", true),
            ("c.a.example", false),
            ("c.B.example", true),
            ("d.c.b.example", true),
            ("b.example", false),
            (".b.example", false),
            ("cb.example", false),
            ("[::1]:80", true),
            ("", false),
        ] {
            assert_eq!((is_among(host, &names), hosts.find(host).is_some()), (is_so, is_so), "{host}");
            assert!(is_among(host, &[]), "{host}");
        }
        for (one, other, is_so) in [
            ("A.example", "a.example.:80", true),
            ("a.example", "b.example", false),
            ("[::1]", "[::1]:8080", true),
            ("[::1]", "[::2]", false),
        ] {
            assert_eq!(is_same_host(one, other), is_so, "{one} {other}");
        }
    }
}
