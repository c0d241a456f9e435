//! Passwords that a site asks for where a path wants one.
//!
//! A password of ours is for us: it does not go on to the origin, and what it opens is still the same page for everybody who has one, so it
//! is stored like any other. Outside it is private: no cache but ours knows who may see it.
//!
//! Hashes are slow on purpose. They are computed on threads of their own, few at once, while a bounded number of requests waits; what was
//! right once is remembered.

use std::{
    fmt,
    net::IpAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use access::{Credentials, Lock, Protected};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use policy::{Trace, Verdict};
use semantics::{RequestFields, RequestHead, cache_control::ResponseDirectives, target::normal_path};
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    Body, Client, Shared, Site,
    admission::{FirstStep, IncomingRequest},
    failure::{self, ErrorReason},
    question,
};

/// Hashes computed at the same time, all workers together: a core more than one is for those who are in already.
const VERIFYING_MAX: usize = 2;
/// Requests that wait to be verified.
const WAITING_MAX: usize = 64;
/// The longest time that a request waits to be verified.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The paths for which a site asks for a password, and the passwords that are right.
#[derive(Debug, Clone)]
pub struct Auth {
    /// The users.
    pub lock: Arc<Lock>,
    /// The paths for which it is asked.
    pub paths: Protected,
    /// `WWW-Authenticate` (RFC 7617 §2).
    pub challenge: HeaderValue,
    /// Whether the origin gets to see `Authorization`. What it answers is then stored only if it says so itself.
    pub forward: bool,
}

impl Auth {
    /// Returns whether a request can be answered without a look at who sends it.
    pub(crate) fn is_open(&self, head: &RequestHead<'_>) -> bool {
        !head.fields.authorization.is_present()
            && normal_path(head.path).is_ok_and(|path| !self.paths.is_in_doubt(&path) && !self.paths.covers(&path))
    }
}

/// The bounds of computing hashes, which all workers share.
#[derive(Debug)]
pub(crate) struct Verifying {
    threads: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Default for Verifying {
    fn default() -> Self {
        Self { threads: Arc::new(Semaphore::new(VERIFYING_MAX)), waiting: AtomicUsize::new(0) }
    }
}

/// The way in which a request was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It needed no password.
    Open,
    /// It had the right password: outside, the answer is for its client alone.
    Private,
}

/// A request whose credentials have to be verified before it goes on.
pub(crate) struct Locked {
    site: Rc<Site>,
    /// The credentials it carries, if they can be read.
    said: Option<Credentials>,
    /// Whether it needs a password. A request that needs none may still carry ours.
    is_protected: bool,
}

/// The result of verifying a password.
enum Verified {
    Right,
    Wrong,
    /// Too many wrong ones came from that address: it has to wait so long.
    TooMany(Duration),
    /// Too many requests wait to be verified already.
    Busy,
}

/// Finds out whether a request needs a password. Returns the lock that it has to open, or a refusal.
pub(crate) fn lock(site: &Rc<Site>, incoming: &IncomingRequest, trace: &mut impl Trace) -> Result<Option<Locked>, Box<Response<Body>>> {
    let Some(auth) = &site.auth else { return Ok(None) };
    // A path that cannot be understood is refused later on, without a look at what is behind.
    let path = if incoming.path() == "*" { "*".into() } else { normal_path(incoming.path()).unwrap_or_default() };
    if auth.paths.is_in_doubt(&path) {
        trace.decides(FirstStep::Password.name(), true, || "nobody can say what the broken escape in this path means behind".to_owned());
        return Err(refusal(site, auth, &incoming.client, StatusCode::BAD_REQUEST, None));
    }
    let is_protected = auth.paths.covers(&path) && !is_purge(site, incoming);
    trace.notes(FirstStep::Password.name(), || {
        if is_protected { "asked for; the rules below are for requests that have it" } else { "not asked for this path" }.to_owned()
    });
    let said = credentials(&incoming.parts.headers);
    // A browser sends a password along for whatever lies beside the page that asked for it (RFC 7617 §2.2).
    let is_ours = || said.as_ref().is_some_and(|said| !auth.forward && auth.lock.has_user(said.user()));
    let is_locked = is_protected || is_ours();
    Ok(is_locked.then(|| Locked { site: Rc::clone(site), said, is_protected }))
}

/// Lets a request in: verifies its credentials if there is a lock, and takes ours out of it, as they are not for the origin. Returns the
/// refusal if it must not go on.
pub(crate) async fn open(lock: Option<Locked>, shared: &Shared, incoming: &mut IncomingRequest) -> Result<Entry, Box<Response<Body>>> {
    match lock {
        Some(lock) => lock.open(shared, &incoming.client, &mut incoming.parts.headers).await,
        None => Ok(Entry::Open),
    }
}

impl Locked {
    async fn open(self, shared: &Shared, client: &Client, headers: &mut HeaderMap) -> Result<Entry, Box<Response<Body>>> {
        let site = &self.site;
        let Some(auth) = &site.auth else { return Ok(Entry::Open) };
        let Some(said) = self.said else { return Err(refusal(site, auth, client, StatusCode::UNAUTHORIZED, None)) };
        if !self.is_protected {
            if matches!(verify(shared, &auth.lock, said, client.address).await, Verified::Right) {
                headers.remove(header::AUTHORIZATION);
            }
            return Ok(Entry::Open);
        }
        if !auth.forward {
            headers.remove(header::AUTHORIZATION);
        }
        match verify(shared, &auth.lock, said, client.address).await {
            Verified::Right => Ok(Entry::Private),
            Verified::Wrong => Err(refusal(site, auth, client, StatusCode::UNAUTHORIZED, None)),
            Verified::TooMany(wait) => Err(refusal(site, auth, client, StatusCode::TOO_MANY_REQUESTS, Some(wait))),
            Verified::Busy => Err(refusal(site, auth, client, StatusCode::SERVICE_UNAVAILABLE, None)),
        }
    }

    /// Goes on as if the right password had come with a request that needs one: for explanations.
    pub(crate) fn presume_right(&self, headers: &mut HeaderMap) {
        if self.is_protected && self.site.auth.as_ref().is_some_and(|auth| !auth.forward) {
            headers.remove(header::AUTHORIZATION);
        }
    }
}

impl fmt::Debug for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").field("is_protected", &self.is_protected).finish_non_exhaustive()
    }
}

async fn verify(shared: &Shared, lock: &Arc<Lock>, said: Credentials, client: Option<IpAddr>) -> Verified {
    let now = shared.clock.now();
    if lock.is_due(now) {
        let lock = Arc::clone(lock);
        let _ = tokio::task::spawn_blocking(move || lock.look()).await;
    }
    if lock.knows(&said) {
        return Verified::Right;
    }
    if let Err(wait) = lock.may_try(client, now) {
        return Verified::TooMany(wait);
    }
    let verifying = &shared.verifying;
    if verifying.waiting.fetch_add(1, Relaxed) >= WAITING_MAX {
        verifying.waiting.fetch_sub(1, Relaxed);
        return Verified::Busy;
    }
    let _waiting = VerificationTicket(&verifying.waiting);
    let Ok(Ok(turn)) = timeout(WAIT_MAX, Arc::clone(&verifying.threads).acquire_owned()).await else { return Verified::Busy };
    // Meanwhile others may have come with the same, or with wrong ones from the same address.
    if lock.knows(&said) {
        return Verified::Right;
    }
    if let Err(wait) = lock.may_try(client, now) {
        return Verified::TooMany(wait);
    }
    let lock = Arc::clone(lock);
    // It counts also if its client does not wait for the answer, and keeps its place until it is done.
    let verified = tokio::task::spawn_blocking(move || {
        let right = lock.verify(&said);
        if !right {
            lock.was_wrong(client, now);
        }
        drop(turn);
        right
    });
    if verified.await.unwrap_or(false) { Verified::Right } else { Verified::Wrong }
}

/// The ticket of a request that waits to be verified.
struct VerificationTicket<'a>(&'a AtomicUsize);

impl Drop for VerificationTicket<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Reads the credentials of a request. Of several lines nobody could say which one counts, so then there are none.
fn credentials(headers: &HeaderMap) -> Option<Credentials> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let only = lines.next().filter(|_| lines.next().is_none())?;
    Credentials::basic(only.as_bytes())
}

/// Returns whether a request is a purge request. It shows nothing, and who may send one is judged by its own rules.
fn is_purge(site: &Site, incoming: &IncomingRequest) -> bool {
    let fields = RequestFields::from_map(&incoming.parts.headers);
    let head = question::head(&incoming.parts, &fields, incoming.authority(), incoming.client.scheme);
    site.policy.verdict(site.id, &head, &mut Vec::new()) == Verdict::Purge
}

fn refusal(site: &Site, auth: &Auth, client: &Client, status: StatusCode, wait: Option<Duration>) -> Box<Response<Body>> {
    let reason = match status {
        StatusCode::UNAUTHORIZED => ErrorReason::Password,
        StatusCode::TOO_MANY_REQUESTS => ErrorReason::TooManyPasswords,
        StatusCode::BAD_REQUEST => ErrorReason::Target,
        _ => ErrorReason::Busy,
    };
    let mut response = failure::page(status, reason);
    let headers = response.headers_mut();
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, auth.challenge.clone());
    }
    if let Some(wait) = wait {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().saturating_add(1)));
    }
    site.fields.apply(status, headers, client.scheme);
    Box::new(response)
}

/// Marks a response as meant for its client alone: other caches do not know who may see it.
pub(crate) fn make_private(headers: &mut HeaderMap) {
    let said = ResponseDirectives::of(headers);
    let mut value = "private".to_owned();
    for (there, directive) in [
        (said.no_store, ", no-store"),
        (said.no_cache.is_present(), ", no-cache"),
        (said.must_revalidate || said.proxy_revalidate, ", must-revalidate"),
        (said.no_transform, ", no-transform"),
        (said.immutable, ", immutable"),
    ] {
        if there {
            value.push_str(directive);
        }
    }
    if let Some(age) = said.max_age {
        value += &format!(", max-age={}", age.as_secs());
    }
    if let Ok(value) = HeaderValue::from_str(&value) {
        headers.insert(header::CACHE_CONTROL, value);
    }
    // What is said to certain caches goes before what is said to all (RFC 9213 §2.2).
    while let Some(name) = headers.keys().find(|name| is_for_caches(name)).cloned() {
        headers.remove(name);
    }
}

/// Marks a response as meant for one member: the browser keeps it, and asks each time whether it may still show it.
pub(crate) fn make_members(headers: &mut HeaderMap) {
    make_private(headers);
    if !ResponseDirectives::of(headers).no_store {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=0, must-revalidate"));
    }
    headers.remove(header::EXPIRES);
}

fn is_for_caches(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.ends_with("cdn-cache-control") || matches!(name, "surrogate-control" | "edge-control" | "x-accel-expires")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_password_opens_is_private_outside() {
        let cases = [
            (None, "private"),
            (Some("public, max-age=600, s-maxage=3600"), "private, max-age=600"),
            (Some("no-store"), "private, no-store"),
            (Some("private=\"set-cookie\", no-cache=\"x, y\", max-age=5"), "private, no-cache, max-age=5"),
            (Some("max-age=0, must-revalidate"), "private, must-revalidate, max-age=0"),
            (Some("public, immutable, max-age=31536000"), "private, immutable, max-age=31536000"),
        ];
        for (said, expected) in cases {
            let mut headers = HeaderMap::new();
            if let Some(said) = said {
                headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(said));
            }
            headers.insert("cloudflare-cdn-cache-control", HeaderValue::from_static("public"));
            headers.insert("surrogate-control", HeaderValue::from_static("max-age=60"));
            make_private(&mut headers);
            assert_eq!((headers.len(), &headers[header::CACHE_CONTROL]), (1, &HeaderValue::from_static(expected)), "{said:?}");
        }
    }
}
