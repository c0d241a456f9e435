//! Live reload: an author's browser shows a page again when that has changed.
//!
//! Only for whoever writes on this machine: the site must listen on nothing but loopback addresses, and the page must be asked for by a name of
//! loopback. The host is in the cache's key, so what is stored for other names never has the script.
//!
//! The script opens a stream of events for its page. A stream says what number the page has now (`Site::version`), at once and whenever a rebuild
//! gave it another one; the script compares that with the number that its page was sent with.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use http_body::Frame;
use http_body_util::StreamBody;
use origins::{Arrival, Body, OriginError};
use semantics::target::host_without_port;
use tokio::sync::watch;

/// The beginning of the addresses here.
pub(crate) const PREFIX: &str = "/.seawall/";

const SCRIPT_PATH: &str = "/.seawall/reload.js";
const EVENTS_PATH: &str = "/.seawall/reload";

const SCRIPT: &str = include_str!("reload.js");

/// The most streams at once. A browser opens one for each visible tab; a further one is told to stop asking.
const STREAMS_MAX: usize = 32;

/// The time after which a stream says that it is still there. So it is noticed when the browser is not.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Fields by which a proxy says that it asks for somebody else. Who comes through one is a reader, although the proxy runs on this machine.
const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// The names by which a browser on this machine asks for it.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The state of live reload for one blog.
#[derive(Debug)]
pub(crate) struct Reload {
    allowed: OnceLock<()>,
    streams: Arc<AtomicUsize>,
    /// Rises with every rebuild that was announced; `None` once the server stops.
    builds: watch::Sender<Option<u64>>,
}

impl Default for Reload {
    fn default() -> Self {
        Self { allowed: OnceLock::new(), streams: Arc::default(), builds: watch::Sender::new(Some(0)) }
    }
}

/// The permit of one stream to be open: it counts among [`STREAMS_MAX`] until it is dropped.
struct StreamPermit(Arc<AtomicUsize>);

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Reload {
    pub(crate) fn allow(&self) {
        let _ = self.allowed.set(());
    }

    /// Tells all streams that there is a new site.
    pub(crate) fn announce(&self) {
        self.builds.send_modify(|build| *build = build.map(|build| build + 1));
    }

    /// Ends all streams, so that a server that stops need not wait for them.
    pub(crate) fn end(&self) {
        self.builds.send_replace(None);
    }

    /// Tells whether a request is for somebody who writes on this machine.
    pub(crate) fn is_for(&self, arrival: &Arrival<'_>, host: &str) -> bool {
        let is_near =
            |caller: &origins::Caller<'_>| caller.way.is_empty() && caller.peer.is_some_and(|peer| peer.to_canonical().is_loopback());
        // Seawall's own requests renew what is stored under the same name.
        self.allowed.get().is_some() && is_loopback(host) && arrival.caller.as_ref().is_none_or(is_near)
    }

    /// Answers for the script and for the stream of events. `version` returns the number of the page at a path, or `None` when the blog is gone.
    /// Returns `None` if there is nothing at `path`.
    pub(crate) fn answer(
        &self,
        (path, query): (&str, Option<&str>),
        fields: &HeaderMap,
        version: impl Fn(&str) -> Option<u128> + Send + 'static,
    ) -> Option<Response<Body>> {
        match path {
            SCRIPT_PATH => Some(uncached(StatusCode::OK, "text/javascript; charset=utf-8", Bytes::from_static(SCRIPT.as_bytes()).into())),
            EVENTS_PATH => Some(self.events(query.unwrap_or_default(), fields, version)),
            _ => None,
        }
    }

    fn events(&self, page: &str, fields: &HeaderMap, version: impl Fn(&str) -> Option<u128> + Send + 'static) -> Response<Body> {
        // Another site in the author's browser could take all places.
        let is_own = fields.get("sec-fetch-site").is_none_or(|site| site == "same-origin");
        // And so could readers, where a proxy in front keeps no `Host`.
        let is_own = is_own && !FORWARDED.iter().any(|name| fields.contains_key(*name));
        let take = || self.streams.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < STREAMS_MAX).then_some(count + 1));
        let permit = is_own.then(take).and_then(Result::ok).map(|_| StreamPermit(Arc::clone(&self.streams)));
        let Some(permit) = permit else {
            // The one answer after which a browser does not try again, and does not complain either.
            return uncached(StatusCode::NO_CONTENT, "text/event-stream", Body::Empty);
        };
        let page = crate::slug::decode_path(page).unwrap_or_default();
        let state = Stream { _permit: permit, page, builds: self.builds.subscribe(), version, told: None };
        let events = stream::unfold(state, |mut state| async move {
            let text = state.next().await?;
            Some((Ok::<_, OriginError>(Frame::data(Bytes::from(text))), state))
        });
        uncached(StatusCode::OK, "text/event-stream", Body::stream(StreamBody::new(events)))
    }
}

struct Stream<V> {
    _permit: StreamPermit,
    page: String,
    builds: watch::Receiver<Option<u64>>,
    version: V,
    told: Option<u128>,
}

impl<V: Fn(&str) -> Option<u128>> Stream<V> {
    /// Waits for the next thing to say. Returns `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            // Marked as seen before it is looked at: a rebuild in between is seen again.
            (*self.builds.borrow_and_update())?;
            let version = (self.version)(&self.page)?;
            if self.told != Some(version) {
                self.told = Some(version);
                return Some(format!("retry: 1000\ndata: {version:032x}\n\n"));
            }
            match tokio::time::timeout(HEARTBEAT, self.builds.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => return Some(":\n\n".to_owned()),
            }
        }
    }
}

/// Adds the script to a page of this number.
pub(crate) fn with_script(page: &[u8], version: u128) -> Bytes {
    let tag = format!("<script src=\"{SCRIPT_PATH}\" data-page=\"{version:032x}\" async></script>\n");
    let end = b"</body>";
    let at = page.windows(end.len()).rposition(|window| window.eq_ignore_ascii_case(end)).unwrap_or(page.len());
    [&page[..at], tag.as_bytes(), &page[at..]].concat().into()
}

/// Tells whether the policy in these fields lets a page run the script and listen to its events. Without a policy, it does.
pub(crate) fn is_allowed_by(fields: &HeaderMap) -> bool {
    let allows = |policy: &str, directives: &[&str]| {
        let sources = |name: &str| {
            policy.split(';').find_map(|directive| directive.trim().split_once(' ').filter(|(own, _)| own.eq_ignore_ascii_case(name)))
        };
        let found = directives.iter().find_map(|name| sources(name));
        found.is_none_or(|(_, list)| list.split_whitespace().any(|source| matches!(source, "'self'" | "*")))
    };
    fields
        .get_all(http::header::CONTENT_SECURITY_POLICY)
        .iter()
        .filter_map(|policy| policy.to_str().ok())
        .all(|policy| allows(policy, &["script-src-elem", "script-src", "default-src"]) && allows(policy, &["connect-src", "default-src"]))
}

fn is_loopback(host: &str) -> bool {
    let name = host_without_port(host);
    LOOPBACK.iter().any(|loopback| name.eq_ignore_ascii_case(loopback))
}

fn uncached(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_the_last_of_the_body() {
        let page = with_script(b"<p>a</p></body></html>", 1);
        let expected = format!("<p>a</p><script src=\"/.seawall/reload.js\" data-page=\"{:032x}\" async></script>\n</body></html>", 1);
        assert_eq!(page, expected.as_bytes());
    }

    #[test]
    fn only_names_of_loopback_count() {
        for (host, expected) in [
            ("localhost", true),
            ("localhost:8080", true),
            ("LOCALHOST:1", true),
            ("127.0.0.1:8080", true),
            ("[::1]:8080", true),
            ("", false),
            ("blog.example", false),
            ("localhost.example", false),
            ("127.0.0.1.example", false),
            ("192.168.0.1", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }

    /// A proxy on this machine that keeps no `Host` makes readers look like the author; what it adds tells them apart.
    #[test]
    fn readers_behind_a_proxy_take_no_stream() {
        let reload = Reload::default();
        let status = |name: &'static str| {
            let fields = HeaderMap::from_iter([(http::HeaderName::from_static(name), HeaderValue::from_static("192.0.2.7"))]);
            reload.answer((EVENTS_PATH, Some("/")), &fields, |_| Some(1)).expect("an answer").status()
        };
        for name in FORWARDED {
            assert_eq!(status(name), StatusCode::NO_CONTENT, "{name}");
        }
        assert_eq!(reload.streams.load(Ordering::Relaxed), 0);
        assert_eq!(status("accept"), StatusCode::OK);
    }

    /// CSP 3: `script-src-elem` falls back to `script-src`, and that to `default-src`; so does `connect-src`.
    #[test]
    fn a_policy_may_forbid_it() {
        for (policies, expected) in [
            (&[][..], true),
            (&["frame-ancestors 'none'"], true),
            (&["default-src 'self'"], true),
            (&["default-src 'none'"], false),
            (&["default-src 'none'; script-src 'self'; connect-src 'self'"], true),
            (&["default-src 'none'; script-src 'self'"], false),
            (&["script-src 'sha256-abc'"], false),
            (&["default-src 'self'", "script-src 'none'"], false),
        ] {
            let mut fields = HeaderMap::new();
            for policy in policies {
                fields.append("content-security-policy", HeaderValue::from_static(policy));
            }
            assert_eq!(is_allowed_by(&fields), expected, "{policies:?}");
        }
    }
}
