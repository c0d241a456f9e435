//! Decides whose pages may be asked for: those of hosts that the running server serves.
//!
//! A server that serves every host would take any; of those only the hosts that the operator named count, or else a link to somewhere in
//! a sitemap would make our origin fetch a stranger's address.

use std::{collections::BTreeSet, net::IpAddr};

use admin_api::{SiteHealth, Status};
use http::Uri;
use semantics::target::host_without_port;

use super::{
    Options, WarmError,
    listener::{Listener, Listeners},
};

/// Knows the hosts that may be asked for.
#[derive(Debug)]
pub(super) struct Hosts {
    trusts_loopback: bool,
    /// Whether the server speaks TLS itself.
    speaks_tls: bool,
    /// The hosts of the sites, as configured: exact names and `*.` names.
    served: Vec<String>,
    /// Whether a site serves every host.
    any: bool,
    /// The hosts that the operator named, for a site that serves every host.
    named: BTreeSet<String>,
    /// The one host whose pages are wanted, with its port if that was named; without it, every host that may be asked for.
    only: Option<String>,
    /// The hosts of addresses that were skipped.
    skipped: BTreeSet<String>,
    /// Whether some address was `https`.
    https: bool,
    ghosts: Vec<Ghost>,
}

/// A site behind which a Ghost is, and where that says it is.
#[derive(Debug)]
struct Ghost {
    /// The hosts of the site, as configured.
    hosts: Vec<String>,
    /// The host that its readers use.
    host: String,
    /// That host, with its port.
    authority: String,
    /// The path at which it is, without a slash at its end.
    path: String,
}

impl Ghost {
    fn of(site: &SiteHealth) -> Option<Self> {
        let url: Uri = site.url.as_ref()?.parse().ok()?;
        let authority = url.authority()?.as_str().to_ascii_lowercase();
        let host = host_without_port(&authority).to_owned();
        Some(Self { hosts: site.hosts.clone(), host, authority, path: url.path().trim_end_matches('/').to_owned() })
    }

    /// Returns whether its readers find it under a name. An address of a machine may be its own, which leads past Seawall.
    fn has_name(&self) -> bool {
        self.host != "localhost" && self.host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_err()
    }
}

/// The most hosts that a hint names.
const HINTED_MAX: usize = 5;

impl Hosts {
    pub(super) fn new(status: &Status, options: &Options) -> Self {
        Self {
            trusts_loopback: status.trusts_loopback,
            speaks_tls: status.listeners.iter().any(|listener| listener.protocol == "https"),
            any: status.sites.iter().any(|site| site.hosts.is_empty()),
            served: status.sites.iter().flat_map(|site| site.hosts.clone()).collect(),
            named: options.host.iter().map(|host| host_without_port(host).to_ascii_lowercase()).collect(),
            only: options.host.as_ref().map(|host| host.to_ascii_lowercase()),
            skipped: BTreeSet::new(),
            https: false,
            ghosts: status.sites.iter().filter_map(Ghost::of).collect(),
        }
    }

    /// Returns the path at which the Ghost behind a host is; empty if it has the whole host, or none is known there.
    pub(super) fn base_path(&self, base: &str) -> &str {
        self.ghost(base).map_or("", |(ghost, _)| &ghost.path)
    }

    /// Returns whether a Ghost serves this host beside the one that its readers use: it may well have nothing there.
    pub(super) fn is_beside(&self, base: &str) -> bool {
        self.ghost(base).is_some_and(|(ghost, host)| host != ghost.host && ghost.hosts.contains(&ghost.host))
    }

    fn ghost(&self, base: &str) -> Option<(&Ghost, String)> {
        let uri: Uri = base.parse().ok()?;
        let host = host_without_port(uri.authority()?.as_str()).to_ascii_lowercase();
        let named = self.ghosts.iter().find(|ghost| ghost.hosts.contains(&host));
        Some((named.or_else(|| self.ghosts.iter().find(|ghost| ghost.hosts.is_empty()))?, host))
    }

    /// Takes note of an address that the operator or the server itself named: a site for every host may be asked for its host.
    pub(super) fn name(&mut self, url: &str) {
        if let Some(host) = url.parse::<Uri>().ok().as_ref().and_then(Uri::authority) {
            self.named.insert(host_without_port(host.as_str()).to_ascii_lowercase());
        }
    }

    /// Lists where sites are looked for when nothing was named: for each its addresses, scheme and host, the one that readers use first.
    ///
    /// A site for every host is looked for under the name that its software tells readers, or else where the server listens.
    ///
    /// Over TLS, where it is spoken; while a host has no certificate, without. Those that a proxy in front serves over TLS have `https` in their
    /// keys; that is so if it is believed when it says so.
    pub(super) fn bases(&self, listeners: &Listeners) -> Result<Vec<Vec<String>>, WarmError> {
        let schemes: &[&str] = match (self.speaks_tls, self.trusts_loopback) {
            (true, _) => &["https", "http"],
            (false, true) => &["https"],
            (false, false) => &["http"],
        };
        let of = |host: &String| schemes.iter().map(|scheme| format!("{scheme}://{host}")).collect();
        let exact = self.served.iter().filter(|host| !host.starts_with('*'));
        let told = || self.ghosts.iter().find(|ghost| ghost.hosts.is_empty() && ghost.has_name());
        let mut hosts: Vec<Vec<String>> = match (&self.only, &listeners.tls, &listeners.plain) {
            (Some(host), ..) => vec![of(host)],
            (None, ..) if !self.served.is_empty() => exact.map(of).collect(),
            (None, ..) if let Some(ghost) = told() => vec![of(&ghost.authority)],
            (None, Some(Listener::Tls(tls)), Listener::Tcp(plain)) => vec![vec![format!("https://{tls}"), format!("http://{plain}")]],
            (None, _, Listener::Tcp(address)) => vec![vec![format!("http://{address}")]],
            (None, ..) => Vec::new(),
        };
        if hosts.is_empty() {
            return Err(WarmError::NoHost);
        }
        hosts.sort_by_key(|bases| bases.first().is_some_and(|base| self.is_beside(base)));
        Ok(hosts)
    }

    /// Returns the address if it may be asked for.
    ///
    /// # Errors
    /// Why not, in words.
    pub(super) fn admit(&mut self, url: &str) -> Result<Uri, String> {
        let not_an_address = || "no address".to_owned();
        let uri: Uri = url.parse().map_err(|_| not_an_address())?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(not_an_address)?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https")).ok_or_else(not_an_address)?;
        let host = host_without_port(authority.as_str()).to_ascii_lowercase();
        let is_served = self.served.iter().any(|name| match name.strip_prefix('*') {
            Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
            None => *name == host,
        });
        let is_wanted = self.only.as_ref().is_none_or(|only| host_without_port(only) == host);
        if !is_wanted || !(is_served || (self.any && self.named.contains(&host))) {
            if self.skipped.len() < HINTED_MAX {
                self.skipped.insert(host);
            }
            return Err("another host".to_owned());
        }
        self.https |= scheme == "https";
        Ok(uri)
    }

    /// Returns a host whose pages were skipped, though the server serves it: nobody named it.
    pub(super) fn unnamed(&self) -> Option<&str> {
        if self.any && self.only.is_none() { self.skipped.first().map(String::as_str) } else { None }
    }

    /// Tells the operator about pages that were skipped or may have been asked for in vain.
    pub(super) fn hint(&self) -> Option<String> {
        if let Some(first) = self.unnamed() {
            let skipped = self.skipped.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Some(format!("Skipped pages of {skipped}. If that is this site, say --host {first}."));
        }
        (self.https && !self.trusts_loopback && !self.speaks_tls).then(|| {
            "These pages were stored as http, since 127.0.0.1 is not among trusted_proxies. If readers come over TLS through a proxy that is, \
             add it: trusted_proxies = [\"127.0.0.1\"] in [server], or --trusted-proxies 127.0.0.1."
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use admin_api::{CacheHealth, ListenerHealth, Readiness};

    use super::*;

    fn hosts(sites: &[&[&str]], host: Option<&str>, trusts_loopback: bool) -> Hosts {
        let site = |hosts: &&[&str]| SiteHealth {
            name: "site".to_owned(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            redirect_from: vec![],
            source: "http://127.0.0.1:2368".to_owned(),
            kind: "generic".to_owned(),
            kind_known: None,
            url: None,
            schedule: None,
            remarks: Vec::new(),
            origin_up: None,
            signals: None,
        };
        let status = Status {
            status: Readiness::Ok,
            version: "1.2.3".to_owned(),
            uptime_seconds: 1.0,
            workers: 1,
            listening: vec![],
            trusts_loopback,
            listeners: vec![],
            sites: sites.iter().map(site).collect(),
            origins: vec![],
            cache: CacheHealth::default(),
            cluster: None,
            alerts: vec![],
            metrics: BTreeMap::new(),
        };
        let host = host.map(str::to_owned);
        let options = Options { urls: vec![], sitemaps: vec![], stored: false, host, concurrency: 2, rate: None };
        Hosts::new(&status, &options)
    }

    fn tcp() -> Listeners {
        let listener = ListenerHealth { address: "127.0.0.1:8080".to_owned(), protocol: "http".to_owned() };
        Listeners::of(&[listener], [127, 0, 0, 1].into()).expect("a listener")
    }

    #[test]
    fn only_hosts_that_are_served_may_be_asked_for() {
        for (mut hosts, url, expected) in [
            (hosts(&[&["a.example"]], None, false), "https://A.example:443/x", true),
            (hosts(&[&["a.example"]], None, false), "https://b.example/x", false),
            (hosts(&[&["a.example"]], None, false), "https://a.example@b.example/x", false),
            (hosts(&[&["a.example"]], None, false), "ftp://a.example/x", false),
            (hosts(&[&["a.example"]], None, false), "/x", false),
            (hosts(&[&["*.a.example"]], None, false), "https://b.a.example/x", true),
            (hosts(&[&["*.a.example"]], None, false), "https://a.example/x", false),
            (hosts(&[&["a.example"], &["b.example"]], Some("b.example"), false), "https://a.example/x", false),
            (hosts(&[&["a.example"], &["b.example"]], Some("B.example"), false), "https://b.example/x", true),
            // Every host is served, but nobody named this one.
            (hosts(&[&[]], None, false), "https://a.example/x", false),
            (hosts(&[&[]], Some("a.example"), false), "https://a.example/x", true),
            (hosts(&[&[]], Some("127.0.0.1:8080"), false), "http://127.0.0.1:8080/x", true),
        ] {
            assert_eq!(hosts.admit(url).is_ok(), expected, "{url} {hosts:?}");
        }
        let mut any = hosts(&[&[]], None, false);
        any.name("https://a.example/sitemap.xml");
        assert!(any.admit("https://a.example/x").is_ok() && any.admit("https://cdn.example/x").is_err());
        assert!(any.hint().expect("a hint").contains("--host cdn.example"));
    }

    #[test]
    fn sites_are_looked_for_where_readers_find_them() {
        for (hosts, expected) in [
            (hosts(&[&["a.example", "*.b.example"]], None, false), Some(vec!["http://a.example"])),
            (hosts(&[&["a.example"], &["b.example"]], None, true), Some(vec!["https://a.example", "https://b.example"])),
            (hosts(&[&["a.example"], &["b.example"]], Some("b.example"), true), Some(vec!["https://b.example"])),
            (hosts(&[&[]], None, true), Some(vec!["http://127.0.0.1:8080"])),
            (hosts(&[&["*.b.example"]], None, true), None),
        ] {
            assert_eq!(
                hosts.bases(&tcp()).ok(),
                expected.map(|bases| bases.into_iter().map(|base| vec![base.to_owned()]).collect()),
                "{hosts:?}"
            );
        }
    }

    #[test]
    fn a_ghost_is_looked_for_where_it_says_that_it_is() {
        let at = |mut hosts: Hosts, url: &str| {
            let site = hosts.served.clone();
            let uri: Uri = url.parse().expect("an address");
            let host = uri.host().expect("a host").to_owned();
            hosts.ghosts.push(Ghost { hosts: site, authority: host.clone(), host, path: uri.path().trim_end_matches('/').to_owned() });
            let bases = hosts.bases(&tcp()).expect("hosts");
            bases.iter().map(|bases| (bases[0].clone(), hosts.base_path(&bases[0]).to_owned(), hosts.is_beside(&bases[0]))).collect()
        };
        let row = |base: &str, path: &str, beside| (base.to_owned(), path.to_owned(), beside);
        for (hosts, url, expected) in [
            (
                hosts(&[&["old.example", "a.example"]], None, false),
                "https://a.example/",
                vec![row("http://a.example", "", false), row("http://old.example", "", true)],
            ),
            (hosts(&[&["a.example"]], None, false), "https://a.example/blog/", vec![row("http://a.example", "/blog", false)]),
            // A site for every host has the name that its Ghost tells readers.
            (hosts(&[&[]], None, false), "https://a.example/blog/", vec![row("http://a.example", "/blog", false)]),
            (hosts(&[&[]], None, true), "https://a.example/", vec![row("https://a.example", "", false)]),
            (hosts(&[&[]], None, false), "http://127.0.0.1:2368/", vec![row("http://127.0.0.1:8080", "", false)]),
            // It is not known which of them it is.
            (hosts(&[&["b.example"]], None, false), "https://a.example/", vec![row("http://b.example", "", false)]),
        ] {
            let found: Vec<(String, String, bool)> = at(hosts, url);
            assert_eq!(found, expected, "{url}");
        }
    }

    #[test]
    fn who_is_not_believed_about_tls_is_told() {
        let mut hosts = hosts(&[&["a.example"]], None, false);
        assert_eq!(hosts.hint(), None);
        hosts.admit("http://a.example/").expect("served");
        assert_eq!(hosts.hint(), None);
        hosts.admit("https://a.example/").expect("served");
        assert!(hosts.hint().expect("a hint").contains("trusted_proxies"));
    }
}
