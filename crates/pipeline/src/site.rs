//! Sites, and which of them a host name means.

use std::{
    cell::Cell,
    collections::HashMap,
    fmt,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use origins::Origin;
use policy::Policy;
use semantics::{Timestamp, target::host_without_port};

use crate::{
    Auth, Collapse, Https, Refill, ResponseFields,
    trouble::{Failures, Trouble},
};

/// One publication, as one worker sees it.
pub struct Site {
    /// Its number: part of every key. The same site keeps its number when the configuration is reloaded.
    pub id: u16,
    /// Its name in logs.
    pub name: String,
    /// Its host names in lower case; none: every host. `*.example.org` stands for every name below it.
    pub hosts: Vec<String>,
    /// Its rules.
    pub policy: Policy,
    /// Where its responses come from.
    pub origin: Rc<dyn Origin>,
    /// `Host` for the origin, if it is not to be the client's.
    pub origin_host: Option<String>,
    /// Bytes of content of one response stored in memory.
    pub object_max: u64,
    /// Bytes of content of one response stored on the disk, if there is a disk tier. 0: none goes there through a file of its own.
    pub disk_object_max: u64,
    /// How long one client that reads slowly may hold up all who read the same content, where that cannot be stored.
    pub reader_wait_max: Duration,
    /// Whether its responses may be stored on the disk.
    pub on_disk: bool,
    /// Since when, and until when, the origin counts as down.
    pub down: Down,
    /// How its requests share fetches.
    pub collapse: Collapse,
    /// How it comes back after a soft purge.
    pub refill: Refill,
    /// What is done about plain http.
    pub https: Https,
    /// Where a password is asked for.
    pub auth: Option<Auth>,
    /// What is added to its origin's responses, and taken from them.
    pub fields: ResponseFields,
}

/// Whether the origin is known to be down: it could not be connected to. What single requests come to says nothing about the others.
#[derive(Debug, Default)]
pub struct Down {
    failures: Cell<Failures>,
    seen: Arc<AtomicBool>,
}

impl Down {
    /// One that also tells others, through `seen`, whether the origin could not be connected to when that was tried last.
    #[must_use]
    pub fn telling(seen: Arc<AtomicBool>) -> Self {
        Self { seen, ..Self::default() }
    }

    pub(crate) fn at(&self, now: Timestamp) -> Trouble {
        self.failures.get().at(now)
    }

    /// Whether nobody is to ask who need not.
    pub(crate) fn is_down(&self, now: Timestamp) -> bool {
        self.at(now) == Trouble::Pause
    }

    /// Until when.
    pub(crate) fn until(&self) -> Timestamp {
        self.failures.get().until()
    }

    /// Somebody asks. If the origin was down, others who need not ask wait for what comes of it.
    pub(crate) fn tried(&self, now: Timestamp) {
        let mut failures = self.failures.get();
        if failures.at(now) == Trouble::Due {
            failures.tried(now);
            self.failures.set(failures);
        }
    }

    pub(crate) fn failed(&self, now: Timestamp) {
        let mut failures = self.failures.get();
        failures.pause(now);
        self.failures.set(failures);
        self.seen.store(true, Relaxed);
    }

    pub(crate) fn answered(&self) {
        // Nearly always it was up before: then nothing that is shared is written.
        if self.failures.get().until() != Timestamp::default() || self.seen.load(Relaxed) {
            self.failures.set(Failures::default());
            self.seen.store(false, Relaxed);
        }
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("id", &self.id).field("name", &self.name).field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// Finds the site of a host.
#[derive(Debug, Default)]
pub struct Router {
    exact: HashMap<String, Rc<Site>>,
    below: Vec<(String, Rc<Site>)>,
    any: Option<Rc<Site>>,
    health_path: Option<String>,
}

impl Router {
    /// Of these sites. Names must be unique; the configuration sees to that.
    #[must_use]
    pub fn new(sites: Vec<Site>) -> Self {
        let mut router = Self::default();
        for site in sites.into_iter().map(Rc::new) {
            if site.hosts.is_empty() {
                router.any = Some(Rc::clone(&site));
            }
            for host in &site.hosts {
                match host.strip_prefix('*') {
                    Some(suffix) => router.below.push((suffix.to_owned(), Rc::clone(&site))),
                    None => drop(router.exact.insert(host.clone(), Rc::clone(&site))),
                }
            }
        }
        router.below.sort_by_key(|(suffix, _)| std::cmp::Reverse(suffix.len()));
        router
    }

    /// The site that `authority` means: an exact name, then the longest `*.` name, then the site for every host.
    #[must_use]
    pub fn site(&self, authority: &str) -> Option<&Rc<Site>> {
        if self.exact.is_empty() && self.below.is_empty() {
            return self.any.as_ref();
        }
        let mut lower = [0_u8; 255];
        let host = host_without_port(authority).as_bytes();
        let host = host.strip_suffix(b".").unwrap_or(host);
        let lower = lower.get_mut(..host.len())?;
        lower.copy_from_slice(host);
        lower.make_ascii_lowercase();
        let host = std::str::from_utf8(lower).ok()?;
        self.exact
            .get(host)
            .or_else(|| {
                self.below.iter().find(|(suffix, _)| host.len() > suffix.len() && host.ends_with(suffix.as_str())).map(|(_, site)| site)
            })
            .or(self.any.as_ref())
    }

    /// The same, answering health checks at this path for whatever host.
    #[must_use]
    pub fn with_health_path(mut self, path: Option<String>) -> Self {
        self.health_path = path;
        self
    }

    /// Whether `path` is that of health checks.
    pub(crate) fn is_health(&self, path: &str) -> bool {
        self.health_path.as_ref().is_some_and(|health| health == path)
    }

    /// The site with this number.
    #[must_use]
    pub fn by_id(&self, id: u16) -> Option<&Rc<Site>> {
        self.sites().find(|site| site.id == id)
    }

    /// Every site, once for each of its names.
    pub(crate) fn sites(&self) -> impl Iterator<Item = &Rc<Site>> {
        self.exact.values().chain(self.below.iter().map(|(_, site)| site)).chain(&self.any)
    }
}
