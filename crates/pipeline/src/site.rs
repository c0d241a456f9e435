//! Sites, which of them a host name means, and which part of a site a path means.

use std::{
    cell::Cell,
    collections::{BTreeSet, HashMap},
    fmt,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use origins::{Fault, Origin};
use policy::Policy;
use semantics::{Timestamp, target::normal_path};
use store::Generation;

use crate::{
    Auth, Collapse, Https, LoginLimits, Refill, RequestLimit, ResponseFields, Schedule, WebhookSecret,
    hosts::{Hosts, is_among, is_same_host, lower_host},
    learnt::trouble::{Failures, Trouble},
};

/// A site as one worker sees it, or a part of a site that another origin answers for, with the rules of that origin.
///
/// A part has its site's number, name, and hosts: purges and pages are the site's. Its policy, origin, and what is known of that origin are
/// its own.
pub struct Site {
    /// Its number, which is part of every key. The same site keeps its number when the configuration is reloaded.
    pub id: u16,
    /// Its name in logs.
    pub name: String,
    /// Its host names in lower case; none: every host. `*.example.org` stands for every name below it.
    pub hosts: Vec<String>,
    /// Its rules.
    pub policy: Policy,
    /// The origin of its responses.
    pub origin: Rc<dyn Origin>,
    /// `Host` for the origin, if it is not to be the client's.
    pub origin_host: Option<String>,
    /// Bytes of content of one response stored in memory.
    pub object_max: u64,
    /// Bytes of content of one response stored on the disk, if there is a disk tier. 0: none goes there through a file of its own.
    pub disk_object_max: u64,
    /// The time for which one client that reads slowly may hold up all who read the same content, where that cannot be stored.
    pub reader_wait_max: Duration,
    /// Whether its responses may be stored on the disk.
    pub on_disk: bool,
    /// Whether its responses may go to the tier that machines share: its origin is farther away than that.
    pub is_shared: bool,
    /// Whether the origin counts as down, and until when.
    pub origin_state: OriginState,
    /// The rules by which its requests share fetches.
    pub collapse: Collapse,
    /// The rules by which it is refilled after a soft purge.
    pub refill: Refill,
    /// Its rules for plain http.
    pub https: Https,
    /// The paths for which a password is asked, and the passwords.
    pub auth: Option<Auth>,
    /// The limits for requests with passwords. `None`: there are none.
    pub logins: Option<LoginLimits>,
    /// The secret with which its origin signs webhooks. `None`: whoever may purge may send them.
    pub webhook_secret: Option<WebhookSecret>,
    /// The schedule of its software, if that is run from here.
    pub schedule: Option<Arc<Schedule>>,
    /// The fields that are added to its origin's responses, and taken from them.
    pub fields: ResponseFields,
    /// The route of the part of a site that this is; `None`: the site.
    pub route: Option<Route>,
    /// Its parts. A part has none.
    pub parts: Parts,
}

impl Site {
    /// Finds what answers for a path: the part with the longest route that covers it, or the site itself.
    ///
    /// The path is looked at in its normal form, which is the one in the key and the one that the origin gets: a path that is spelled
    /// differently cannot lead elsewhere than its key says. A path without a normal form belongs to the site, which refuses it.
    #[must_use]
    pub fn part<'a>(self: &'a Rc<Self>, path: &str) -> &'a Rc<Self> {
        if self.parts.0.is_empty() {
            return self;
        }
        let Ok(path) = normal_path(path) else { return self };
        self.parts.0.iter().find(|part| part.route.as_ref().is_some_and(|route| route.covers(&path))).unwrap_or(self)
    }

    /// Returns whether a host is one of this site's. `asked` is the authority under which the site was asked: the router has found it by that, whatever
    /// its names say.
    pub(crate) fn has_host(&self, host: &str, asked: &str) -> bool {
        is_among(host, &self.hosts) || is_same_host(host, asked)
    }

    /// Returns the host under which the site was asked, and those of its hosts that are named in full.
    pub(crate) fn named_hosts<'a>(&'a self, asked: &'a str) -> BTreeSet<&'a str> {
        let named = self.hosts.iter().map(String::as_str).filter(|host| !host.starts_with('*'));
        named.chain([asked]).collect()
    }

    /// Returns the site, and then each of its parts.
    pub(crate) fn with_parts(self: &Rc<Self>) -> impl Iterator<Item = &Rc<Self>> {
        std::iter::once(self).chain(&self.parts.0)
    }

    /// Returns whether no response of this site is ever stored.
    pub(crate) fn passes(&self) -> bool {
        self.route.as_ref().is_some_and(|route| !route.cache)
    }
}

/// The parts of a site, in the order in which they are tried.
#[derive(Debug, Default)]
pub struct Parts(Vec<Rc<Site>>);

impl Parts {
    /// Puts the longest path first, so that the first one that covers a path is the one that is meant.
    #[must_use]
    pub fn new(parts: Vec<Site>) -> Self {
        let mut parts: Vec<Rc<Site>> = parts.into_iter().map(Rc::new).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.route.as_ref().map_or(0, |route| route.path.len())));
        Self(parts)
    }
}

/// The path of a part, and what is done with requests below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The path in normal form, without a slash at its end: `/api` covers `/api` and `/api/x`, and not `/apis`.
    pub path: String,
    /// Whether the origin is asked for what comes after the path: for `/x` instead of `/api/x`.
    pub strip_prefix: bool,
    /// Whether the cache is asked. Otherwise each request goes to the origin as it came.
    pub cache: bool,
    /// Whether the origin is told the visitor's cookies. They are the site's, and a server of somebody else's has no business with them.
    pub sends_cookies: bool,
}

impl Route {
    /// Returns whether a path in normal form is the path of this route, or below it.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        path.strip_prefix(self.path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Makes the target that the origin is asked for of `target`, a path in normal form with its query; `None`: the origin is asked for the
    /// same.
    pub(crate) fn stripped(&self, target: &str) -> Option<String> {
        let rest = target.strip_prefix(self.path.as_str()).filter(|_| self.strip_prefix)?;
        Some(if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") })
    }
}

/// Whether one worker can connect to its origin. Only failed connections count, and not failed requests.
#[derive(Debug, Default)]
pub struct OriginState {
    failures: Cell<Failures>,
    contact: Arc<SharedOriginState>,
}

/// The part of an origin's state that all threads may read: the dashboard, alerts, recognition.
#[derive(Debug, Default)]
pub struct SharedOriginState {
    is_down: AtomicBool,
    was_asked: AtomicBool,
    falls: AtomicU64,
}

impl SharedOriginState {
    /// Returns whether the origin could not be connected to when that was tried last.
    pub fn is_down(&self) -> bool {
        self.is_down.load(Relaxed)
    }

    /// Returns whether it was ever asked.
    pub fn was_asked(&self) -> bool {
        self.was_asked.load(Relaxed)
    }

    /// Returns how often the origin stopped listening: it refused a connection after it had accepted others. A change shows a fall that is over already. An
    /// origin that is too busy to accept connections does not refuse them, and that does not count.
    pub fn falls(&self) -> u64 {
        self.falls.load(Relaxed)
    }

    /// Notes that it can be connected to, although nobody has asked for anything.
    pub fn reached(&self) {
        self.is_down.store(false, Relaxed);
    }

    fn failed(&self, fault: Fault) {
        if !self.is_down.swap(true, Relaxed) && fault == Fault::ConnectionRefused {
            self.falls.fetch_add(1, Relaxed);
        }
        self.was_asked.store(true, Relaxed);
    }
}

impl OriginState {
    /// Makes a state that also tells others.
    #[must_use]
    pub fn telling(contact: Arc<SharedOriginState>) -> Self {
        Self { contact, ..Self::default() }
    }

    pub(crate) fn at(&self, now: Timestamp) -> Trouble {
        self.failures.get().at(now)
    }

    /// Returns the failures to connect to it.
    pub(crate) fn failures(&self) -> Failures {
        self.failures.get()
    }

    /// Returns whether the origin counts as down, so that only requests that must ask it do.
    pub(crate) fn is_down(&self, now: Timestamp) -> bool {
        self.at(now) == Trouble::Pause
    }

    /// Returns the time until which it counts as down.
    pub(crate) fn until(&self) -> Timestamp {
        self.failures.get().until()
    }

    /// Notes that somebody asks. If the origin was down, others who need not ask wait for what comes of it.
    pub(crate) fn tried(&self, now: Timestamp) {
        let mut failures = self.failures.get();
        if failures.at(now) == Trouble::Due {
            failures.tried(now);
            self.failures.set(failures);
        }
    }

    /// Notes that the origin could not be connected to for a request that began at this generation.
    pub(crate) fn failed(&self, now: Timestamp, begun: Generation, fault: Fault) {
        let mut failures = self.failures.get();
        failures.pause(now, begun);
        self.failures.set(failures);
        self.contact.failed(fault);
    }

    pub(crate) fn answered(&self) {
        if !self.contact.was_asked() {
            self.contact.was_asked.store(true, Relaxed);
        }
        // Nearly always it was up before: then nothing that is shared is written.
        if self.failures.get().until() != Timestamp::default() || self.contact.is_down() {
            self.failures.set(Failures::default());
            self.contact.reached();
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
    hosts: Hosts<Rc<Site>>,
    health_path: Option<String>,
    /// Hosts that only lead to another one: the host, and that other.
    moved: HashMap<String, String>,
    request_limit: Option<RequestLimit>,
}

impl Router {
    /// Makes a router of these sites. Names must be unique; the configuration sees to that.
    #[must_use]
    pub fn new(sites: Vec<Site>) -> Self {
        let mut router = Self::default();
        for site in sites.into_iter().map(Rc::new) {
            if site.hosts.is_empty() {
                router.hosts.insert_for_any(Rc::clone(&site));
            }
            for host in &site.hosts {
                router.hosts.insert(host, Rc::clone(&site));
            }
        }
        router
    }

    /// Finds the site that `authority` means: by an exact name, then by the longest `*.` name, then the site for every host.
    #[must_use]
    pub fn site(&self, authority: &str) -> Option<&Rc<Site>> {
        self.hosts.find(authority)
    }

    /// Returns which host means which site.
    pub(crate) const fn hosts(&self) -> &Hosts<Rc<Site>> {
        &self.hosts
    }

    /// Adds hosts that only lead to another one: each with the name to which its visitors are sent. They belong to no site, also where
    /// one has all names.
    #[must_use]
    pub fn with_moved(mut self, moved: impl IntoIterator<Item = (String, String)>) -> Self {
        for (host, there) in moved {
            self.hosts.take_out(&host);
            self.moved.insert(host, there);
        }
        self
    }

    /// Returns the host to which visitors of this one are sent.
    pub(crate) fn moved_to(&self, authority: &str) -> Option<&str> {
        if self.moved.is_empty() {
            return None;
        }
        self.moved.get(lower_host(authority, &mut [0; 255])?).map(String::as_str)
    }

    /// Adds the path at which health checks are answered, for whatever host.
    #[must_use]
    pub fn with_health_path(mut self, path: Option<String>) -> Self {
        self.health_path = path;
        self
    }

    /// Adds the limit for requests of one address.
    #[must_use]
    pub fn with_request_limit(mut self, limit: Option<RequestLimit>) -> Self {
        self.request_limit = limit;
        self
    }

    /// Returns the limit for requests of one address, if there is one.
    pub(crate) const fn request_limit(&self) -> Option<&RequestLimit> {
        self.request_limit.as_ref()
    }

    /// Returns whether `path` is the path of health checks.
    pub(crate) fn is_health(&self, path: &str) -> bool {
        self.health_path.as_ref().is_some_and(|health| health == path)
    }

    /// Finds the site with this number.
    #[must_use]
    pub fn by_id(&self, id: u16) -> Option<&Rc<Site>> {
        self.sites().find(|site| site.id == id)
    }

    /// Returns every site, once for each of its names.
    pub(crate) fn sites(&self) -> impl Iterator<Item = &Rc<Site>> {
        self.hosts.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(path: &str, strip_prefix: bool) -> Route {
        Route { path: path.to_owned(), strip_prefix, cache: true, sends_cookies: true }
    }

    /// A whole site is asked for again after a fall, so what a crowd can bring about must not be one.
    #[test]
    fn an_origin_that_is_too_busy_to_take_connections_has_not_fallen() {
        let contact = SharedOriginState::default();
        for (fault, falls) in [(Fault::ConnectionTimeout, 0), (Fault::ConnectionRefused, 1), (Fault::DnsError, 1)] {
            contact.failed(fault);
            assert_eq!((contact.is_down(), contact.falls()), (true, falls), "{fault:?}");
            contact.failed(fault);
            assert_eq!(contact.falls(), falls, "it was down already");
            contact.reached();
            assert!(!contact.is_down());
        }
    }

    #[test]
    fn a_route_covers_its_path_and_what_is_below_it() {
        for (path, covered) in [
            ("/api", true),
            ("/api/", true),
            ("/api/x/y", true),
            ("/api//x", true),
            ("/apis", false),
            ("/api;x", false),
            ("/api.json", false),
            ("//api", false),
            ("/API", false),
            ("/x/api", false),
            ("/", false),
        ] {
            assert_eq!(route("/api", false).covers(path), covered, "{path}");
        }
    }

    #[test]
    fn a_prefix_is_stripped_and_a_path_is_left() {
        for (target, expected) in [
            ("/api/x?y=1", "/x?y=1"),
            ("/api/", "/"),
            ("/api", "/"),
            ("/api?y=/api", "/?y=/api"),
            ("/api/api/x", "/api/x"),
            ("/api//x", "//x"),
        ] {
            assert_eq!(route("/api", true).stripped(target).as_deref(), Some(expected), "{target}");
            assert_eq!(route("/api", false).stripped(target), None, "{target}");
        }
    }
}
