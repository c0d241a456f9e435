//! Webhooks of a Ghost: `POST /.seawall/ghost` on any host of its site. They tell of changes that were made past Seawall, and of a Ghost on
//! another machine.
//!
//! With a secret, only webhooks count that are signed with it; without one, those of senders who may purge. A Ghost deletes a webhook that is
//! answered with 410, so none is.

use std::{
    future::poll_fn,
    net::IpAddr,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use http_body::Body as _;
use origins::Fault;
use policy::purge::{Maker, Webhook};
use semantics::Timestamp;

use super::permission::vouched_address;
use crate::{Body, Client, Pipeline, Shared, Site, pipeline::Config};

/// The most bytes of one webhook. A post with all its forms is some 100 KiB.
const WEBHOOK_BYTES_MAX: usize = 16 << 20;
/// The most bytes of all webhooks that are being read.
const WEBHOOKS_BYTES_MAX: usize = 64 << 20;
/// The time by which the clock of a Ghost may differ from ours.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_mins(5);

/// The field with the signature of a webhook: `sha256=HEX, t=MS`.
const SIGNATURE: &str = "x-ghost-signature";

/// The secret with which a site's webhooks are signed.
#[derive(Clone)]
pub struct WebhookSecret(Arc<hmac::Key>);

impl WebhookSecret {
    /// Takes the secret as it is typed into Ghost.
    #[must_use]
    pub fn new(secret: &str) -> Self {
        Self(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())))
    }

    /// Returns whether these bytes are the HMAC-SHA256 of these parts, one behind the other.
    fn has_signed(&self, parts: &[&[u8]], signature: &[u8]) -> bool {
        let mut context = hmac::Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        verify_slices_are_equal(context.sign().as_ref(), signature).is_ok()
    }
}

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret")
    }
}

/// The bytes of webhooks that are being read.
#[derive(Debug, Default)]
pub(super) struct Reading(AtomicUsize);

/// The content of a webhook while it is read.
struct Content<'a> {
    all: &'a Reading,
    bytes: Vec<u8>,
}

impl Content<'_> {
    fn push(&mut self, data: &[u8]) -> Result<(), Refused> {
        if self.bytes.len() + data.len() > WEBHOOK_BYTES_MAX {
            return Err(Refused(StatusCode::PAYLOAD_TOO_LARGE, "a webhook has 16 MiB at most"));
        }
        if self.all.0.fetch_add(data.len(), Relaxed) + data.len() > WEBHOOKS_BYTES_MAX {
            self.all.0.fetch_sub(data.len(), Relaxed);
            return Err(Refused(StatusCode::SERVICE_UNAVAILABLE, "too many webhooks at once"));
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}

impl Drop for Content<'_> {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.bytes.len(), Relaxed);
    }
}

/// Why a webhook is refused, in words for whoever set it up.
struct Refused(StatusCode, &'static str);

const UNSIGNED: Refused = Refused(
    StatusCode::UNAUTHORIZED,
    "this webhook is not signed: give it the secret in Ghost's settings that is set as webhook_secret in [ghost]",
);
const WRONGLY_SIGNED: Refused = Refused(
    StatusCode::FORBIDDEN,
    "the signature of this webhook is wrong: its secret in Ghost's settings must be the same as webhook_secret in [ghost]",
);
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
                tracing::debug!(site = %site.name, %status, why, "refused a webhook");
                return reply(status, &why);
            }
        };
        let said = site.policy.webhook(&content.bytes);
        drop(content);
        let now = self.shared.clock.now();
        match said {
            None => reply(StatusCode::BAD_REQUEST, "this is no webhook of a Ghost: its content is not understood"),
            Some(Webhook::Nothing) => {
                self.shared.signalled.webhook_came(&site.name, now);
                reply(StatusCode::OK, "nothing to purge: readers see no change")
            }
            Some(Webhook::Changed(about)) => {
                self.shared.signalled.webhook_came(&site.name, now);
                self.shared.publish_everything(site, false, Maker::Webhook);
                let may_be_settings = about.is_none();
                self.ripple_of_webhook(site, about);
                if may_be_settings {
                    // A blog that has become private is found out now, and not by its next reader.
                    let (pipeline, site, scheme, host) = (Rc::clone(self), Rc::clone(site), client.scheme, authority.to_owned());
                    self.tasks.spawn_local(async move { pipeline.is_public(&site, scheme, &host).await });
                }
                reply(StatusCode::OK, "marked stale: everything of the site")
            }
        }
    }

    /// Reads the content of a webhook whose sender may send it.
    async fn admitted_content(
        &self,
        site: &Site,
        headers: &HeaderMap,
        address: Option<IpAddr>,
        body: origins::Body,
    ) -> Result<Content<'_>, (StatusCode, String)> {
        let refused = |Refused(status, why)| (status, why.to_owned());
        let Some(secret) = &site.webhook_secret else {
            self.shared.purging.admit(headers, address).map_err(|why| {
                (StatusCode::FORBIDDEN, format!("{why} Or set webhook_secret in [ghost], and the same secret in Ghost's settings."))
            })?;
            return read(&self.shared, headers, body).await.map_err(refused);
        };
        let signature = Signature::of(headers).ok_or_else(|| refused(UNSIGNED))?;
        if !signature.is_recent(self.shared.clock.now()) {
            return Err(refused(AT_ANOTHER_TIME));
        }
        let content = read(&self.shared, headers, body).await.map_err(refused)?;
        let is_of = |parts: &[&[u8]]| secret.has_signed(parts, &signature.hmac);
        // Older Ghosts sign the content alone.
        if is_of(&[&content.bytes, signature.at.as_bytes()]) || is_of(&[&content.bytes]) {
            Ok(content)
        } else {
            Err(refused(WRONGLY_SIGNED))
        }
    }
}

/// Reads content within the bounds. A client that sends it slowly meets the limits for all contents.
async fn read<'a>(shared: &'a Shared, headers: &HeaderMap, mut body: origins::Body) -> Result<Content<'a>, Refused> {
    let mut content = Content { all: &shared.signalled.reading, bytes: Vec::new() };
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > WEBHOOK_BYTES_MAX as u64) {
        return Err(Refused(StatusCode::PAYLOAD_TOO_LARGE, "a webhook has 16 MiB at most"));
    }
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame {
            Ok(frame) => {
                if let Ok(data) = frame.into_data() {
                    content.push(&data)?;
                }
            }
            Err(error) if error.fault == Fault::RequestTimeout => {
                return Err(Refused(StatusCode::REQUEST_TIMEOUT, "the webhook took too long to arrive"));
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
    /// When it was signed, in milliseconds, as it was written.
    at: String,
}

impl Signature {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let (mut hmac, mut at) = (None, None);
        for part in headers.get(SIGNATURE)?.to_str().ok()?.split(',') {
            match part.trim().split_once('=')? {
                ("sha256", hex) => hmac = Some(bytes_of_hex(hex)?),
                ("t", millis) => at = Some(millis.to_owned()),
                _ => {}
            }
        }
        Some(Self { hmac: hmac?, at: at? })
    }

    fn is_recent(&self, now: Timestamp) -> bool {
        self.at.parse().is_ok_and(|millis: u64| Duration::from_millis(now.as_millis().abs_diff(millis)) <= CLOCKS_DIFFER_MAX)
    }
}

fn bytes_of_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    rest.is_empty().then_some(())?;
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

fn reply(status: StatusCode, text: &str) -> Response<Body> {
    let text = format!("{text}\n");
    let length = text.len();
    let mut response = Response::new(Body::Full(Bytes::from(text)));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::UNAUTHORIZED {
        fields.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("X-Ghost-Signature"));
    }
    response
}
