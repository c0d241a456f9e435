//! Before a request is judged: it may be sent to https first, and be asked for a password where its path wants one.
//!
//! A password of ours is for us: it does not go on to the origin, and what it opens is still the same page for everybody who has one, so it
//! is stored like any other. Outside it is private: no cache but ours knows who may see it.
//!
//! Hashes are slow on purpose. They are computed on threads of their own, few at once, while a bounded number of requests waits; what was
//! right once is remembered.

use std::{
    net::IpAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use access::{Credentials, Lock, Protected};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header, request::Parts};
use policy::{Trace, Verdict};
use semantics::{RequestFields, RequestHead, Scheme, cache_control::ResponseDirectives, target::normal_path};
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    Body, Client, Pipeline, Redirect, Site, failure,
    pipeline::{Config, authority},
    question,
};

/// Hashes computed at the same time, all workers together: a core more than one is for those who are in already.
const VERIFYING_MAX: usize = 2;
/// Requests that wait for that.
const WAITING_MAX: usize = 64;
/// And for how long.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Where a site asks for a password, and whose is right.
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
    /// Whether a request can be answered without a look at who sends it.
    pub(crate) fn is_open(&self, head: &RequestHead<'_>) -> bool {
        !head.fields.authorization.is_present()
            && normal_path(head.path).is_ok_and(|path| !self.paths.is_in_doubt(&path) && !self.paths.covers(&path))
    }
}

/// The bounds of computing hashes. Shared by all workers.
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

/// How a request comes in.
pub(crate) enum Entry {
    /// As anybody's.
    Open,
    /// With a password: what it gets is for its client alone, outside.
    Private,
    /// Not at all: this is the answer.
    Answered(Box<Response<Body>>),
}

/// What came of a password.
enum Verified {
    Right,
    Wrong,
    /// Too many wrong ones came from there: wait so long.
    TooMany(Duration),
    /// Too many wait already.
    Busy,
}

impl Pipeline {
    /// Takes our own credentials out of a request, and says how it comes in.
    pub(crate) async fn enter(&self, config: &Config, client: &Client, parts: &mut Parts) -> Entry {
        let authority = authority(&parts.headers);
        let Some(site) = config.router.site(authority).map(Rc::clone) else { return Entry::Open };
        if let Some(redirect) = site.https.redirect(client, parts, authority, |host| self.shared.is_certified(host)) {
            return Entry::Answered(Box::new(redirect));
        }
        let Some(auth) = &site.auth else { return Entry::Open };
        // What cannot be understood is refused later on, without a look at what is behind.
        let path = if parts.uri.path() == "*" { "*".into() } else { normal_path(parts.uri.path()).unwrap_or_default() };
        if auth.paths.is_in_doubt(&path) {
            return refusal(&site, auth, client, StatusCode::BAD_REQUEST, None);
        }
        let is_protected = auth.paths.covers(&path) && !is_purge(&site, parts, authority, client);
        let credentials = credentials(&parts.headers);
        if !is_protected {
            // A browser sends a password along for whatever lies beside the page that asked for it (RFC 7617 §2.2).
            let ours = credentials.filter(|said| !auth.forward && auth.lock.has_user(said.user()));
            if let Some(said) = ours
                && matches!(self.verify(&auth.lock, said, client.address).await, Verified::Right)
            {
                parts.headers.remove(header::AUTHORIZATION);
            }
            return Entry::Open;
        }
        let Some(said) = credentials else { return refusal(&site, auth, client, StatusCode::UNAUTHORIZED, None) };
        if !auth.forward {
            parts.headers.remove(header::AUTHORIZATION);
        }
        match self.verify(&auth.lock, said, client.address).await {
            Verified::Right => Entry::Private,
            Verified::Wrong => refusal(&site, auth, client, StatusCode::UNAUTHORIZED, None),
            Verified::TooMany(wait) => refusal(&site, auth, client, StatusCode::TOO_MANY_REQUESTS, Some(wait)),
            Verified::Busy => refusal(&site, auth, client, StatusCode::SERVICE_UNAVAILABLE, None),
        }
    }

    async fn verify(&self, lock: &Arc<Lock>, said: Credentials, client: Option<IpAddr>) -> Verified {
        let now = self.shared.clock.now();
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
        let verifying = &self.shared.verifying;
        if verifying.waiting.fetch_add(1, Relaxed) >= WAITING_MAX {
            verifying.waiting.fetch_sub(1, Relaxed);
            return Verified::Busy;
        }
        let _waiting = Waiting(&verifying.waiting);
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
}

/// A place among those who wait.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Of several lines nobody could say which one counts.
fn credentials(headers: &HeaderMap) -> Option<Credentials> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let only = lines.next().filter(|_| lines.next().is_none())?;
    Credentials::basic(only.as_bytes())
}

/// To whoever asks whether this server is there.
pub(crate) fn healthy() -> Response<Body> {
    let mut response = Response::new(Body::Full(Bytes::from_static(b"ok\n")));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Tells `trace` what a request would meet before it is judged, and goes on as if the right password had come with it.
pub(crate) fn explained(site: &Site, scheme: Scheme, parts: &mut Parts, trace: &mut impl Trace) {
    if site.https.redirect != Redirect::Never && scheme == Scheme::Http {
        let once = if site.https.redirect == Redirect::OnceCertified { ", once there is a certificate for the host" } else { "" };
        let who = if site.https.own_port.is_some() {
            "who came here without TLS"
        } else {
            "of whom a trusted proxy says that they came over http"
        };
        trace.notes("https", || format!("visitors {who} are sent to https{once}; what follows is for the others"));
    }
    let Some(auth) = &site.auth else { return };
    if normal_path(parts.uri.path()).is_ok_and(|path| auth.paths.is_in_doubt(&path)) {
        trace.notes("password", || "refused: nobody can say what the broken escape in this path means behind".to_owned());
        return;
    }
    let is_protected = normal_path(parts.uri.path()).is_ok_and(|path| auth.paths.covers(&path));
    let said = if is_protected { "asked for; what follows is for those who have it" } else { "not asked for this path" };
    trace.notes("password", || said.to_owned());
    if is_protected && !auth.forward {
        parts.headers.remove(header::AUTHORIZATION);
    }
}

/// A purge request shows nothing, and who may send one is judged by its own rules.
fn is_purge(site: &Site, parts: &Parts, authority: &str, client: &Client) -> bool {
    let fields = RequestFields::from_map(&parts.headers);
    site.policy.verdict(site.id, &question::head(parts, &fields, authority, client.scheme), &mut Vec::new()) == Verdict::Purge
}

fn refusal(site: &Site, auth: &Auth, client: &Client, status: StatusCode, wait: Option<Duration>) -> Entry {
    let reason = match status {
        StatusCode::UNAUTHORIZED => "password",
        StatusCode::TOO_MANY_REQUESTS => "too-many-passwords",
        StatusCode::BAD_REQUEST => "target",
        _ => "busy",
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
    Entry::Answered(Box::new(response))
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
