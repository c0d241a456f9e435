//! Webhooks: `POST /.seawall/ghost` of a Ghost and `POST /.seawall/wordpress` of the plugin in a WordPress, on any host of the site. They tell of
//! changes that were made past Seawall, and of a source on another machine.
//!
//! A Ghost says that something has changed, and its signature is over content and time. The plugin says what is to be purged, and its signature is
//! over time and content. Each signature counts once. With a secret, only webhooks count that are signed with it; without one, those of senders who may purge. A Ghost deletes a webhook that is
//! answered with 410, so none is.

use std::{collections::BTreeMap, future::poll_fn, net::IpAddr, pin::Pin, rc::Rc, sync::Arc, time::Duration};

use aws_lc_rs::{constant_time::verify_slices_are_equal, digest, hmac};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use http_body::Body as _;
use origins::Fault;
use parking_lot::Mutex;
use policy::purge::{Maker, Signals, Webhook, What, wordpress_order};
use semantics::{Timestamp, hex};
use tokio::time::timeout;

use super::permission::vouched_address;
use crate::{Body, Client, Pipeline, Shared, Site, fence::PendingPurges, pipeline::Config};

/// The most bytes of one webhook. A post with all its forms is some 100 KiB.
const WEBHOOK_BYTES_MAX: usize = 16 << 20;
/// The most bytes of a webhook that are kept to see what it says. Of a larger one, only its sender counts.
const KEPT_BYTES_MAX: usize = 256 << 10;
/// The most webhooks from one address that are kept while they are read. A Ghost sends some at once.
const KEPT_OF_ONE_MAX: usize = 4;
/// The most webhooks that are kept while they are read: 16 MiB.
const KEPT_MAX: usize = 64;
/// The time within which a webhook has to arrive as a whole.
const WEBHOOK_WITHIN: Duration = Duration::from_secs(10);
/// The most bytes of a purge of the plugin, all of which are kept.
const PURGE_BYTES_MAX: usize = 64 << 10;
/// The time by which the clock of a webhook's sender may differ from ours.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_mins(5);

/// The properties by which the webhooks of one kind of source differ from those of another.
struct Dialect {
    /// The field with the signature: `sha256=HEX, t=TIME`.
    signature: &'static str,
    /// The scheme by which that is asked for.
    scheme: &'static str,
    /// The number of milliseconds that the time of the signature counts in.
    time_unit: u64,
    bytes_max: usize,
    too_large: Refused,
    unsigned: Refused,
    wrongly_signed: Refused,
    /// Whether a signature counts once for each site, and not once for all: contents of other sites may be the same.
    counts_for_each_site: bool,
    /// The answer to a message that comes again.
    again: Refused,
    /// The remedy where there is no secret.
    without_secret: &'static str,
}

static OF_GHOST: Dialect = Dialect {
    signature: "x-ghost-signature",
    scheme: "X-Ghost-Signature",
    time_unit: 1,
    bytes_max: WEBHOOK_BYTES_MAX,
    too_large: Refused(StatusCode::PAYLOAD_TOO_LARGE, "a webhook has 16 MiB at most"),
    unsigned: Refused(
        StatusCode::UNAUTHORIZED,
        "this webhook is not signed: give it the secret in Ghost's settings that is set as webhook_secret in [ghost]",
    ),
    wrongly_signed: Refused(
        StatusCode::FORBIDDEN,
        "the signature of this webhook is wrong: its secret in Ghost's settings must be the same as webhook_secret in [ghost]",
    ),
    // "Site changed" has the same content in every Ghost.
    counts_for_each_site: true,
    // Whoever has sent it twice has nothing to mend.
    again: Refused(StatusCode::OK, "nothing to purge: this webhook came before, and has counted"),
    without_secret: "Or set webhook_secret in [ghost], and the same secret in Ghost's settings.",
};

static OF_WORDPRESS: Dialect = Dialect {
    signature: "seawall-signature",
    scheme: "Seawall-Signature",
    time_unit: 1_000,
    bytes_max: PURGE_BYTES_MAX,
    too_large: Refused(StatusCode::PAYLOAD_TOO_LARGE, "a purge has 64 KiB at most: purge everything instead"),
    unsigned: Refused(
        StatusCode::UNAUTHORIZED,
        "this purge is not signed (Seawall-Signature: t=SECONDS, sha256=HEX): give the plugin the secret that is set as secret in [wordpress]",
    ),
    wrongly_signed: Refused(
        StatusCode::FORBIDDEN,
        "the signature of this purge is wrong: SEAWALL_SECRET in WordPress must be the same as secret in [wordpress]",
    ),
    counts_for_each_site: false,
    again: Refused(
        StatusCode::FORBIDDEN,
        "this purge came before, and a signature counts once: sign it again, with another time or another id in its content",
    ),
    without_secret: "Or set secret in [wordpress], and the same as SEAWALL_SECRET in WordPress.",
};

impl Dialect {
    const fn of(site: &Site) -> &'static Self {
        match site.policy.signals() {
            Signals::WordPress => &OF_WORDPRESS,
            Signals::None | Signals::Ghost => &OF_GHOST,
        }
    }
}

/// The secret with which a site's webhooks are signed.
#[derive(Clone)]
pub struct WebhookSecret(Arc<hmac::Key>);

impl WebhookSecret {
    /// Takes the secret as it is typed into the source's settings.
    #[must_use]
    pub fn new(secret: &str) -> Self {
        Self(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())))
    }

    fn context(&self) -> hmac::Context {
        hmac::Context::with_key(&self.0)
    }
}

/// The verification of a signature, while the content arrives.
enum Verification {
    /// A Ghost signs the content with the time behind it, or, in older versions, the content alone.
    Ghost(hmac::Context),
    /// A WordPress signs the time, a dot and the content.
    WordPress(hmac::Context),
}

impl Verification {
    fn begin(site: &Site, secret: &WebhookSecret, signature: &Signature) -> Self {
        let mut context = secret.context();
        match site.policy.signals() {
            Signals::WordPress => {
                context.update(signature.at.as_bytes());
                context.update(b".");
                Self::WordPress(context)
            }
            Signals::None | Signals::Ghost => Self::Ghost(context),
        }
    }

    fn update(&mut self, data: &[u8]) {
        match self {
            Self::Ghost(context) | Self::WordPress(context) => context.update(data),
        }
    }

    /// Returns whether this is the signature of what was verified.
    fn agrees_with(self, signature: &Signature) -> bool {
        let is_of = |context: hmac::Context| verify_slices_are_equal(context.sign().as_ref(), &signature.hmac).is_ok();
        match self {
            Self::WordPress(context) => is_of(context),
            Self::Ghost(mut content) => {
                let alone = content.clone();
                content.update(signature.at.as_bytes());
                is_of(content) || is_of(alone)
            }
        }
    }
}

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret")
    }
}

/// The webhooks that are kept while they are read, by the addresses of their senders.
///
/// Nobody is refused because others send too many: what cannot be kept is verified all the same, and says that something has changed.
#[derive(Debug, Default)]
pub(super) struct Reading(Mutex<BTreeMap<Option<IpAddr>, usize>>);

impl Reading {
    /// Takes a permit to keep a webhook. `None`: there is none, so it is not kept.
    fn permit(&self, address: Option<IpAddr>) -> Option<KeepPermit<'_>> {
        let mut kept = self.0.lock();
        let of_address = kept.get(&address).copied().unwrap_or_default();
        if of_address >= KEPT_OF_ONE_MAX || kept.values().sum::<usize>() >= KEPT_MAX {
            return None;
        }
        kept.insert(address, of_address + 1);
        Some(KeepPermit { all: self, address })
    }
}

/// A permit to keep the content of a webhook while it is read.
struct KeepPermit<'a> {
    all: &'a Reading,
    address: Option<IpAddr>,
}

impl Drop for KeepPermit<'_> {
    fn drop(&mut self) {
        let mut kept = self.all.0.lock();
        if let Some(count) = kept.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                kept.remove(&self.address);
            }
        }
    }
}

/// The content of a webhook while it is read.
struct Content<'a> {
    /// `None`: it is not kept.
    permit: Option<KeepPermit<'a>>,
    bytes: Vec<u8>,
    length: usize,
    dialect: &'static Dialect,
}

impl Content<'_> {
    fn push(&mut self, data: &[u8]) -> Result<(), Refused> {
        self.length += data.len();
        if self.length > self.dialect.bytes_max {
            return Err(self.dialect.too_large);
        }
        if self.length > KEPT_BYTES_MAX {
            self.permit = None;
            self.bytes = Vec::new();
        }
        if self.permit.is_some() {
            self.bytes.extend_from_slice(data);
        }
        Ok(())
    }

    /// Returns the content if it was kept.
    fn kept(&self) -> Option<&[u8]> {
        self.permit.is_some().then_some(&self.bytes)
    }
}

/// The refusal of a webhook: a status, and the reason in words for whoever set it up.
#[derive(Clone, Copy)]
struct Refused(StatusCode, &'static str);

const TOO_SLOW: Refused = Refused(StatusCode::REQUEST_TIMEOUT, "the webhook took too long to arrive");
const AT_ANOTHER_TIME: Refused =
    Refused(StatusCode::FORBIDDEN, "this webhook was signed more than five minutes ago or ahead: set the clocks of both machines right");

impl Pipeline {
    /// Answers a webhook of a site's origin: purges, if it says that readers see a change.
    pub(crate) async fn webhook(
        self: &Rc<Self>,
        config: &Config,
        site: &Rc<Site>,
        client: &Client,
        parts: &Parts,
        authority: &str,
        body: origins::Body,
    ) -> Response<Body> {
        let address = vouched_address(client, &parts.headers, &config.trusted_proxies);
        let content = match self.admitted_content(site, &parts.headers, address, body).await {
            Ok(content) => content,
            Err((status, why)) => {
                tracing::debug!(site = %site.name, %status, why, "did not obey a webhook");
                let mut refusal = refusal(site, status, &why);
                if status == StatusCode::UNAUTHORIZED {
                    let scheme = HeaderValue::from_static(Dialect::of(site).scheme);
                    refusal.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
                }
                return refusal;
            }
        };
        if site.policy.signals() == Signals::WordPress {
            return self.purge_of_plugin(site, authority, content).await;
        }
        // What was too much to be kept is signed, and may say anything.
        let said = content.kept().map_or(Some(Webhook::Changed(None)), |content| site.policy.webhook(content));
        drop(content);
        let now = self.shared.clock.now();
        match said {
            None => reply(StatusCode::BAD_REQUEST, "this is not a webhook of a Ghost: its content is not understood"),
            Some(Webhook::Nothing) => {
                self.shared.signalled.webhook_came(&site.name, now);
                reply(StatusCode::OK, "nothing to purge: readers see no change")
            }
            Some(Webhook::Changed(about)) => {
                self.shared.signalled.webhook_came(&site.name, now);
                let caused = PendingPurges::default();
                self.shared.publish_everything(site, false, Maker::Webhook, &caused);
                let may_be_settings = about.is_none();
                self.ripple_of_webhook(site, authority, about);
                if may_be_settings {
                    // A blog that has become private is found out now, and not by its next reader.
                    let (pipeline, site, scheme, host) = (Rc::clone(self), Rc::clone(site), client.scheme, authority.to_owned());
                    self.tasks.spawn_local(async move { pipeline.is_public(&site, scheme, &host).await });
                }
                let (status, how_far) = match caused.known().await {
                    None => (StatusCode::OK, ""),
                    Some(true) => (StatusCode::OK, ", on every machine"),
                    Some(false) => (StatusCode::ACCEPTED, "; that is not known of every machine"),
                };
                reply(status, &format!("marked stale: everything of the site{how_far}"))
            }
        }
    }

    /// Purges what the plugin in a WordPress asks for. It is answered when that is done, and told whether it is done everywhere; the status stays the
    /// same, as another one means to the plugin that nothing was purged.
    async fn purge_of_plugin(&self, site: &Rc<Site>, authority: &str, content: Content<'_>) -> Response<Body> {
        let is_own_host = |host: &str| site.has_host(host, authority);
        // What found no room to be kept is signed, and may say anything.
        let order = content.kept().map_or_else(|| Some((vec![What::Everything], false)), |content| wordpress_order(content, &is_own_host));
        drop(content);
        let Some((what, soft)) = order else {
            let why = "this is not a purge: it must be JSON such as {\"purge\": [\"post-12\", \"url=/feed/\", \"*\"], \"soft\": false}";
            return refusal(site, StatusCode::BAD_REQUEST, why);
        };
        self.shared.signalled.webhook_came(&site.name, self.shared.clock.now());
        let purged = what.len();
        let covered: Vec<String> = what.iter().map(|what| site.policy.as_asked(what)).collect();
        let caused = PendingPurges::default();
        if !what.is_empty() && !self.publish_asked(site, what, !soft, Maker::Webhook, &caused) {
            let why = "nothing was purged: the site is not served any more; send it again";
            return refusal(site, StatusCode::SERVICE_UNAVAILABLE, why);
        }
        let mut said = serde_json::json!({ "purged": purged, "covered": covered, "soft": soft });
        if let Some(everywhere) = caused.known().await {
            said["everywhere"] = everywhere.into();
        }
        reply_with(StatusCode::OK, "application/json", format!("{said}\n"))
    }

    /// Reads the content of a webhook whose sender may send it.
    async fn admitted_content(
        &self,
        site: &Site,
        headers: &HeaderMap,
        address: Option<IpAddr>,
        body: origins::Body,
    ) -> Result<Content<'_>, (StatusCode, String)> {
        let dialect = Dialect::of(site);
        let refused = |Refused(status, why)| (status, why.to_owned());
        let Some(secret) = &site.webhook_secret else {
            self.shared
                .purging
                .admit(headers, address)
                .map_err(|why| (StatusCode::FORBIDDEN, format!("{why} {}", dialect.without_secret)))?;
            return read(&self.shared, dialect, headers, address, body, |_| ()).await.map_err(refused);
        };
        let signature = Signature::of(dialect, headers).ok_or_else(|| refused(dialect.unsigned))?;
        let Some(until) = signature.accepted_until(dialect, self.shared.clock.now()) else { return Err(refused(AT_ANOTHER_TIME)) };
        let mut verified = Verification::begin(site, secret, &signature);
        let content = read(&self.shared, dialect, headers, address, body, |data| verified.update(data)).await.map_err(refused)?;
        if !verified.agrees_with(&signature) {
            return Err(refused(dialect.wrongly_signed));
        }
        let counted = signature.counted(dialect, &site.name);
        if !self.shared.signalled.once.is_first(counted, until, self.shared.clock.now()) {
            return Err(refused(dialect.again));
        }
        Ok(content)
    }
}

/// Reads content within the bounds, and shows all of it to `see`.
async fn read<'a>(
    shared: &'a Shared,
    dialect: &'static Dialect,
    headers: &HeaderMap,
    address: Option<IpAddr>,
    body: origins::Body,
    see: impl FnMut(&[u8]),
) -> Result<Content<'a>, Refused> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > dialect.bytes_max as u64) {
        return Err(dialect.too_large);
    }
    let content = Content { permit: shared.signalled.reading.permit(address), bytes: Vec::new(), length: 0, dialect };
    timeout(WEBHOOK_WITHIN, read_into(content, body, see)).await.unwrap_or(Err(TOO_SLOW))
}

async fn read_into<'a>(mut content: Content<'a>, mut body: origins::Body, mut see: impl FnMut(&[u8])) -> Result<Content<'a>, Refused> {
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame {
            Ok(frame) => {
                if let Ok(data) = frame.into_data() {
                    see(&data);
                    content.push(&data)?;
                }
            }
            Err(error) if error.fault == Fault::RequestTimeout => {
                return Err(TOO_SLOW);
            }
            Err(error) if error.fault == Fault::RequestTooLarge => {
                return Err(Refused(StatusCode::PAYLOAD_TOO_LARGE, "the webhook is larger than this server accepts"));
            }
            Err(_) => return Err(Refused(StatusCode::BAD_REQUEST, "the webhook broke off")),
        }
    }
    Ok(content)
}

/// The signature of a webhook.
struct Signature {
    hmac: Vec<u8>,
    /// The time at which it was signed, as it was written.
    at: String,
}

impl Signature {
    fn of(dialect: &Dialect, headers: &HeaderMap) -> Option<Self> {
        let (mut hmac, mut at) = (None, None);
        for part in headers.get(dialect.signature)?.to_str().ok()?.split(',') {
            match part.trim().split_once('=')? {
                ("sha256", digits) => hmac = Some(hex::decoded(digits.as_bytes())?),
                ("t", time) => at = Some(time.to_owned()),
                _ => {}
            }
        }
        Some(Self { hmac: hmac?, at: at? })
    }

    /// Returns what is remembered of this signature when it has counted.
    fn counted(&self, dialect: &Dialect, site: &str) -> [u8; 32] {
        let mut seen = digest::Context::new(&digest::SHA256);
        if dialect.counts_for_each_site {
            seen.update(site.as_bytes());
        }
        seen.update(b"\0");
        seen.update(&self.hmac);
        let mut counted = [0; 32];
        counted.copy_from_slice(seen.finish().as_ref());
        counted
    }

    /// Returns until when this signature is accepted, if it is now.
    fn accepted_until(&self, dialect: &Dialect, now: Timestamp) -> Option<Timestamp> {
        let at = self.at.parse().ok().and_then(|time: u64| time.checked_mul(dialect.time_unit))?;
        // As coarsely as the sender counts.
        let now = now.as_millis() / dialect.time_unit * dialect.time_unit;
        let is_recent = Duration::from_millis(now.abs_diff(at)) <= CLOCKS_DIFFER_MAX;
        is_recent.then(|| Timestamp::from_millis(at) + CLOCKS_DIFFER_MAX + Duration::from_millis(dialect.time_unit))
    }
}

/// Makes the answer to a webhook that is not obeyed. The plugin of a WordPress tells it by its JSON from the refusal of another server.
fn refusal(site: &Site, status: StatusCode, why: &str) -> Response<Body> {
    if site.policy.signals() == Signals::WordPress {
        return reply_with(status, "application/json", format!("{}\n", serde_json::json!({ "error": why })));
    }
    reply(status, why)
}

fn reply(status: StatusCode, text: &str) -> Response<Body> {
    reply_with(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

fn reply_with(status: StatusCode, content_type: &'static str, text: String) -> Response<Body> {
    let length = text.len();
    let mut response = Response::new(Body::Full(Bytes::from(text)));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
