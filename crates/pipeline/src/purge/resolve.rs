//! From an order to what the store understands: names of sites become numbers, hosts and paths become the bytes of keys.
//!
//! Nobody else does this, whoever the order is from. Either the whole order is understood, or nothing of it is carried out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use policy::{
    purge::{Address, HostName, Order, Sites, What},
    purge_url,
};
use semantics::{
    Scheme,
    target::{canonical_authority, host_without_port},
};
use store::PurgeTarget;

use super::receipt::Covered;
use crate::{Router, hosts::Hosts};

/// The sites as orders name them.
///
/// While a new configuration is taken over, some workers may still work by the one before. So the numbers of that one are kept until the
/// next change: a purge covers them too, which costs nothing where they are the same.
#[derive(Debug, Default)]
pub(super) struct Directory {
    now: Arc<KnownSites>,
    before: Arc<KnownSites>,
}

/// The sites of one configuration.
#[derive(Debug, Default)]
struct KnownSites {
    numbers: BTreeMap<String, u16>,
    hosts: Hosts<u16>,
}

/// An order, as the store understands it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The things that are to be purged: at least one.
    pub(super) targets: Vec<PurgeTarget>,
    /// The descriptions of these targets for people, with hosts and paths as they stand in keys.
    pub(super) covered: Vec<Covered>,
}

/// The reason why an order is not carried out, in words for whoever gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unresolved {
    /// It names nothing.
    Nothing,
    /// No site has this name.
    NoSuchSite(String),
    /// No site has this host.
    NotServed(String),
    /// This host is not one of the site that the order is for.
    NotOfTheSite(String),
    /// This address has a path that no request can have.
    NoPath(Address),
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("the order names nothing to purge"),
            Self::NoSuchSite(name) => write!(f, "no site is called {name}"),
            Self::NotServed(host) => write!(f, "no site is served under {host}"),
            Self::NotOfTheSite(host) => write!(f, "{host} does not belong to the site that got the purge request"),
            Self::NoPath(address) if address.scheme().is_none() => write!(f, "{} is not a valid path", address.path()),
            Self::NoPath(address) => write!(f, "{address} has no valid path"),
        }
    }
}

impl std::error::Error for Unresolved {}

impl Directory {
    /// Makes the directory for the sites of `router`, which come after those of this one.
    pub(super) fn followed_by(&self, router: &Router) -> Self {
        let hosts = router.hosts().map(|site| site.id);
        let numbers = router.hosts().values().map(|site| (site.name.clone(), site.id)).collect();
        Self { now: Arc::new(KnownSites { numbers, hosts }), before: Arc::clone(&self.now) }
    }

    /// Tells whether no sites are known yet.
    pub(super) fn is_empty(&self) -> bool {
        self.now.numbers.is_empty()
    }

    /// Makes the directory of one site that has every host.
    #[cfg(test)]
    pub(super) fn of_one(name: &str, number: u16) -> Self {
        let mut known = KnownSites::default();
        known.numbers.insert(name.to_owned(), number);
        known.hosts.insert_for_any(number);
        Self { now: Arc::new(known), before: Arc::default() }
    }

    /// Finds out what an order means.
    ///
    /// # Errors
    /// When a part of it means nothing, or something of another site than the one it is for.
    pub(super) fn resolve(&self, order: &Order) -> Result<Resolved, Unresolved> {
        let mut targets = Vec::with_capacity(order.what.len());
        let mut covered = Vec::with_capacity(order.what.len());
        for what in &order.what {
            match what {
                What::Everything => match &order.sites {
                    Sites::All => {
                        targets.push(PurgeTarget::All);
                        covered.push(Covered::Everything);
                    }
                    Sites::Named(name) => {
                        targets.extend(self.numbers(&order.sites)?.into_iter().map(PurgeTarget::Site));
                        covered.push(Covered::Site(name.clone()));
                    }
                },
                What::Tag(tag) => {
                    let numbers = self.numbers(&order.sites)?.into_iter();
                    targets.extend(numbers.map(|site| PurgeTarget::Tag { site, tag: tag.clone() }));
                    covered.push(Covered::Tag(tag.clone()));
                }
                What::Host(host) => {
                    let (name, beginnings) = beginnings(host);
                    let numbers = self.numbers_under(&name, &name, &order.sites)?;
                    let prefix = |site| move |url: &Vec<u8>| PurgeTarget::Prefix { site, url: url.clone() };
                    targets.extend(numbers.into_iter().flat_map(|site| beginnings.iter().map(prefix(site))));
                    covered.push(Covered::Host(name));
                }
                What::Url(address) => {
                    let (numbers, urls) = self.addressed(address, &order.sites)?;
                    let url = |site| move |url: &Vec<u8>| PurgeTarget::Url { site, url: url.clone() };
                    targets.extend(numbers.into_iter().flat_map(|site| urls.iter().map(url(site))));
                    covered.extend(urls.iter().map(|url| Covered::Url(String::from_utf8_lossy(url).into_owned())));
                }
                What::Prefix(address) => {
                    let (numbers, urls) = self.addressed(address, &order.sites)?;
                    let prefix = |site| move |url: &Vec<u8>| PurgeTarget::Prefix { site, url: url.clone() };
                    targets.extend(numbers.into_iter().flat_map(|site| urls.iter().map(prefix(site))));
                    covered.extend(urls.iter().map(|url| Covered::Prefix(String::from_utf8_lossy(url).into_owned())));
                }
            }
        }
        if targets.is_empty() { Err(Unresolved::Nothing) } else { Ok(Resolved { targets, covered }) }
    }

    /// Finds out what an order means that another machine has carried out: as much of it as means something here. Also returns why a part of it may
    /// be missing: no site has the name of that which it is for.
    ///
    /// The other machine has seen to it that the order goes no further than its maker may. Where its sites have other hosts than those here, a page
    /// is found under its host.
    pub(super) fn resolve_elsewheres(&self, order: &Order) -> (Resolved, Option<Unresolved>) {
        let mut all = Resolved { targets: Vec::with_capacity(order.what.len()), covered: Vec::with_capacity(order.what.len()) };
        let mut missing = if order.what.is_empty() { Some(Unresolved::Nothing) } else { None };
        for what in &order.what {
            let one =
                |sites: &Sites| self.resolve(&Order { sites: sites.clone(), what: vec![what.clone()], hard: order.hard, by: order.by });
            let resolved = one(&order.sites).or_else(|why| match what {
                What::Url(_) | What::Prefix(_) | What::Host(_) => one(&Sites::All),
                What::Tag(_) | What::Everything => Err(why),
            });
            match resolved {
                Ok(resolved) => {
                    all.targets.extend(resolved.targets);
                    all.covered.extend(resolved.covered);
                }
                Err(why @ Unresolved::NoSuchSite(_)) => missing = Some(why),
                // Such a page cannot be stored here.
                Err(Unresolved::Nothing | Unresolved::NotServed(_) | Unresolved::NotOfTheSite(_) | Unresolved::NoPath(_)) => {}
            }
        }
        (all, missing)
    }

    /// Returns the numbers of the sites that an order may touch.
    fn numbers(&self, sites: &Sites) -> Result<BTreeSet<u16>, Unresolved> {
        match sites {
            Sites::All => Ok(self.each().flat_map(|known| known.numbers.values().copied()).collect()),
            Sites::Named(name) => {
                let numbers: BTreeSet<u16> = self.each().filter_map(|known| known.numbers.get(name).copied()).collect();
                if numbers.is_empty() { Err(Unresolved::NoSuchSite(name.clone())) } else { Ok(numbers) }
            }
        }
    }

    /// Returns the numbers of those among them that have a host.
    ///
    /// An order for one site goes no further than the requests that this site answers. An order for all sites takes every site that has
    /// the host among its names: one of them may have answered for it under an earlier configuration.
    fn numbers_under(&self, host: &str, written: &str, sites: &Sites) -> Result<BTreeSet<u16>, Unresolved> {
        match sites {
            Sites::All if self.now.hosts.find_all(host).is_empty() => Err(Unresolved::NotServed(written.to_owned())),
            Sites::All => Ok(self.each().flat_map(|known| known.hosts.find_all(host)).copied().collect()),
            Sites::Named(name) => {
                let numbers = self.numbers(sites)?;
                let answers = |known: &KnownSites| known.numbers.get(name).is_some_and(|number| known.hosts.find(host) == Some(number));
                if self.each().any(answers) { Ok(numbers) } else { Err(Unresolved::NotOfTheSite(host.to_owned())) }
            }
        }
    }

    /// Returns the sites that an address may belong to, and what it is in keys: two things, if both schemes are meant and the port is the
    /// default of one of them.
    fn addressed(&self, address: &Address, sites: &Sites) -> Result<(BTreeSet<u16>, BTreeSet<Vec<u8>>), Unresolved> {
        let host = canonical_authority(Scheme::Http, address.authority());
        let numbers = self.numbers_under(&host, address.authority(), sites)?;
        let schemes = address.scheme().map_or(&[Scheme::Http, Scheme::Https][..], |scheme| match scheme {
            Scheme::Http => &[Scheme::Http],
            Scheme::Https => &[Scheme::Https],
        });
        let urls: Option<_> = schemes.iter().map(|scheme| purge_url(*scheme, address.authority(), address.path())).collect();
        urls.map(|urls| (numbers, urls)).ok_or_else(|| Unresolved::NoPath(address.clone()))
    }

    fn each(&self) -> impl Iterator<Item = &KnownSites> {
        [&*self.now, &*self.before].into_iter()
    }
}

/// Returns a host in its one spelling, and what the keys of its pages begin with: with a port, that port's alone; without one, every
/// port's.
fn beginnings(host: &HostName) -> (String, BTreeSet<Vec<u8>>) {
    let spelling = |scheme| canonical_authority(scheme, host.as_str()).into_owned();
    let (over_http, over_https) = (spelling(Scheme::Http), spelling(Scheme::Https));
    let has_port = host_without_port(host.as_str()).len() < host.as_str().trim_end_matches(':').len();
    let beginnings = if has_port {
        // A scheme's own port is not in its keys, and the other one's is.
        [format!("{over_http}/"), format!("{over_https}/")]
    } else {
        [format!("{over_http}/"), format!("{over_http}:")]
    };
    (over_http, beginnings.into_iter().map(String::into_bytes).collect())
}

#[cfg(test)]
mod tests;
