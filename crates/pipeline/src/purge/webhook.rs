//! Webhooks: `POST /.seawall/ghost` of a Ghost and `POST /.seawall/wordpress` of the plugin in a WordPress, on any host of the site. They tell of
//! changes that were made past Seawall, and of a source on another machine.
//!
//! A Ghost says that something has changed, the plugin what is to be purged. How each of them writes and signs that is a table in `policy`. Each signature
//! counts once. With a secret, only webhooks count that are signed with it; without one, those of senders who may purge.

use std::{collections::BTreeMap, future::poll_fn, net::IpAddr, pin::Pin, rc::Rc, sync::Arc, time::Duration};

use access::group;
use aws_lc_rs::{constant_time::verify_slices_are_equal, digest, hmac};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use http_body::Body as _;
use origins::Fault;
use parking_lot::Mutex;
use policy::purge::{Addresses, Maker, Signed, Webhook, WebhookFormat, WebhookRefusal, What};
use semantics::{Timestamp, hex, request::content_length};
use tokio::time::timeout;

use super::permission::vouched_address;
use crate::{
    Body, Client, Pipeline, Shared, Site,
    fence::PendingPurges,
    own_response::{JSON, TEXT, own_response},
    pipeline::Config,
};

/// The most bytes of webhooks from one address that are kept while they are read. A Ghost sends some at once; what does not fit is not kept.
const KEPT_OF_ONE_BYTES_MAX: usize = 2 << 20;
/// The most bytes of all webhooks that are kept while they are read.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// The time within which a webhook has to arrive as a whole.
const WEBHOOK_WITHIN: Duration = Duration::from_secs(10);
/// The time by which the clock of a webhook's sender may differ from ours.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_mins(5);

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
struct Verification {
    context: hmac::Context,
    signed: Signed,
    /// The last byte that is no space.
    last: Option<u8>,
}

impl Verification {
    fn begin(format: &WebhookFormat, secret: &WebhookSecret, signature: &Signature) -> Self {
        let mut context = secret.context();
        if format.signed == Signed::TimeThenContent {
            context.update(signature.at.as_bytes());
            context.update(b".");
        }
        Self { context, signed: format.signed, last: None }
    }

    fn update(&mut self, data: &[u8]) {
        self.context.update(data);
        self.last = data.trim_ascii_end().last().copied().or(self.last);
    }

    /// Returns whether this is the signature of what was verified.
    fn agrees_with(mut self, signature: &Signature) -> bool {
        let is_of = |context: hmac::Context| verify_slices_are_equal(context.sign().as_ref(), &signature.hmac).is_ok();
        match self.signed {
            Signed::TimeThenContent => is_of(self.context),
            Signed::ContentThenTime => {
                // Whoever has overheard a signature of both could send the two as the content, which would end in the digits of the time.
                let alone = (self.last == Some(b'}')).then(|| self.context.clone());
                self.context.update(signature.at.as_bytes());
                is_of(self.context) || alone.is_some_and(is_of)
            }
        }
    }
}

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret")
    }
}

/// The bytes of webhooks that are kept while they are read.
///
/// Nobody is refused because others send too many: what cannot be kept is verified all the same, and may say anything.
#[derive(Debug, Default)]
pub(super) struct Reading(Mutex<KeptBytes>);

#[derive(Debug, Default)]
struct KeptBytes {
    of_all: usize,
    /// By the addresses of their senders. An IPv6 /64 is one.
    by_address: BTreeMap<Option<IpAddr>, usize>,
}

impl Reading {
    /// Takes room for more bytes from an address. Returns `false` if there is none.
    fn take(&self, address: Option<IpAddr>, bytes: usize) -> bool {
        let mut kept = self.0.lock();
        let of_address = kept.by_address.get(&address).copied().unwrap_or_default() + bytes;
        if of_address > KEPT_OF_ONE_BYTES_MAX || kept.of_all + bytes > KEPT_BYTES_MAX {
            return false;
        }
        if bytes > 0 {
            kept.by_address.insert(address, of_address);
            kept.of_all += bytes;
        }
        true
    }

    fn give_back(&self, address: Option<IpAddr>, bytes: usize) {
        let mut kept = self.0.lock();
        if let Some(of_address) = kept.by_address.get_mut(&address) {
            *of_address -= bytes;
            if *of_address == 0 {
                kept.by_address.remove(&address);
            }
            kept.of_all -= bytes;
        }
    }
}

/// The content of a webhook while it is read.
struct WebhookContent<'a> {
    reading: &'a Reading,
    address: Option<IpAddr>,
    /// `None`: it is not kept.
    bytes: Option<Vec<u8>>,
    length: usize,
    format: &'static WebhookFormat,
}

impl WebhookContent<'_> {
    fn push(&mut self, data: &[u8]) -> Result<(), WebhookRefusal> {
        self.length += data.len();
        if self.length > self.format.bytes_max {
            return Err(self.format.too_large);
        }
        if self.bytes.is_some() && !self.reading.take(self.address, data.len()) {
            self.forget();
        }
        if let Some(bytes) = &mut self.bytes {
            bytes.extend_from_slice(data);
        }
        Ok(())
    }

    /// Returns the content if it was kept.
    fn kept(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    fn forget(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            self.reading.give_back(self.address, bytes.len());
        }
    }
}

impl Drop for WebhookContent<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}

/// The refusals that are the same for all kinds.
const TOO_SLOW: WebhookRefusal = WebhookRefusal(StatusCode::REQUEST_TIMEOUT, "the webhook took too long to arrive");
const AT_ANOTHER_TIME: WebhookRefusal = WebhookRefusal(
    StatusCode::FORBIDDEN,
    "this webhook was signed more than five minutes ago or ahead: set the clocks of both machines right",
);

impl Pipeline {
    /// Answers a webhook of a site's origin: purges, if it says that readers see a change. It is answered when that is done, and told how far it went.
    pub(crate) async fn webhook(
        self: &Rc<Self>,
        config: &Config,
        site: &Rc<Site>,
        client: &Client,
        parts: &Parts,
        authority: &str,
        body: origins::Body,
    ) -> Response<Body> {
        let Some(format) = site.policy.webhook_format() else { return own_response(StatusCode::NOT_FOUND, TEXT, "") };
        let address = vouched_address(client, &parts.headers, &config.trusted_proxies);
        let content = match self.admitted_content(site, format, &parts.headers, address, body).await {
            Ok(content) => content,
            Err((status, why)) => {
                tracing::debug!(site = %site.name, %status, why, "did not obey a webhook");
                let mut refusal = refusal(format, status, &why);
                if status == StatusCode::UNAUTHORIZED {
                    refusal.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(format.scheme));
                }
                return refusal;
            }
        };
        let said = site.policy.webhook(content.kept(), &|host| site.has_host(host, authority));
        drop(content);
        let Some(said) = said else {
            let WebhookRefusal(status, why) = format.not_understood;
            return refusal(format, status, why);
        };
        self.shared.signalled.webhook_came(&site.name, self.shared.clock.now());
        match said {
            Webhook::Nothing => reply(StatusCode::OK, "nothing to purge: readers see no change"),
            Webhook::Changed(about) => self.changed_past_us(site, client, authority, about).await,
            Webhook::Purge { what, soft } => self.purge_as_asked(site, format, what, soft).await,
        }
    }

    /// Purges what has changed past Seawall: everything of the site may have.
    async fn changed_past_us(
        self: &Rc<Self>,
        site: &Rc<Site>,
        client: &Client,
        authority: &str,
        about: Option<Addresses>,
    ) -> Response<Body> {
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

    /// Purges what a webhook asks for. The status is the same however far that went, as another one means to a plugin that nothing was purged.
    async fn purge_as_asked(&self, site: &Rc<Site>, format: &WebhookFormat, what: Vec<What>, soft: bool) -> Response<Body> {
        let purged = what.len();
        let covered: Vec<String> = what.iter().map(|what| site.policy.as_asked(what)).collect();
        let caused = PendingPurges::default();
        if !what.is_empty() && !self.publish_asked(site, what, !soft, Maker::Webhook, &caused) {
            let why = "nothing was purged: the site is not served any more; send it again";
            return refusal(format, StatusCode::SERVICE_UNAVAILABLE, why);
        }
        let everywhere = caused.known().await;
        if !format.is_answered_in_json {
            return reply(StatusCode::OK, "purged: everything of the site");
        }
        let mut said = serde_json::json!({ "purged": purged, "covered": covered, "soft": soft });
        if let Some(everywhere) = everywhere {
            said["everywhere"] = everywhere.into();
        }
        own_response(StatusCode::OK, JSON, format!("{said}\n"))
    }

    /// Reads the content of a webhook whose sender may send it.
    async fn admitted_content(
        &self,
        site: &Site,
        format: &'static WebhookFormat,
        headers: &HeaderMap,
        address: Option<IpAddr>,
        body: origins::Body,
    ) -> Result<WebhookContent<'_>, (StatusCode, String)> {
        let refused = |WebhookRefusal(status, why)| (status, why.to_owned());
        let Some(secret) = &site.webhook_secret else {
            self.shared
                .purging
                .admit(headers, address)
                .map_err(|why| (StatusCode::FORBIDDEN, format!("{why} {}", format.without_secret)))?;
            return read(&self.shared, format, headers, address, body, |_| ()).await.map_err(refused);
        };
        let signature = Signature::of(format, headers).ok_or_else(|| refused(format.unsigned))?;
        let Some(until) = signature.accepted_until(format, self.shared.clock.now()) else { return Err(refused(AT_ANOTHER_TIME)) };
        let mut verified = Verification::begin(format, secret, &signature);
        let content = read(&self.shared, format, headers, address, body, |data| verified.update(data)).await.map_err(refused)?;
        if !verified.agrees_with(&signature) {
            return Err(refused(format.wrongly_signed));
        }
        let used_key = signature.used_key(format, &site.name);
        if !self.shared.signalled.once.is_first(used_key, until, self.shared.clock.now()) {
            return Err(refused(format.again));
        }
        Ok(content)
    }
}

/// Reads content within the bounds, and shows all of it to `see`.
async fn read<'a>(
    shared: &'a Shared,
    format: &'static WebhookFormat,
    headers: &HeaderMap,
    address: Option<IpAddr>,
    body: origins::Body,
    see: impl FnMut(&[u8]),
) -> Result<WebhookContent<'a>, WebhookRefusal> {
    if content_length(headers).is_some_and(|length| length > format.bytes_max as u64) {
        return Err(format.too_large);
    }
    let content =
        WebhookContent { reading: &shared.signalled.reading, address: group(address), bytes: Some(Vec::new()), length: 0, format };
    timeout(WEBHOOK_WITHIN, read_into(content, body, see)).await.unwrap_or(Err(TOO_SLOW))
}

async fn read_into<'a>(
    mut content: WebhookContent<'a>,
    mut body: origins::Body,
    mut see: impl FnMut(&[u8]),
) -> Result<WebhookContent<'a>, WebhookRefusal> {
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
                return Err(WebhookRefusal(StatusCode::PAYLOAD_TOO_LARGE, "the webhook is larger than this server accepts"));
            }
            Err(_) => return Err(WebhookRefusal(StatusCode::BAD_REQUEST, "the webhook broke off")),
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
    fn of(format: &WebhookFormat, headers: &HeaderMap) -> Option<Self> {
        let (mut hmac, mut at) = (None, None);
        for part in headers.get(format.signature_field)?.to_str().ok()?.split(',') {
            match part.trim().split_once('=')? {
                ("sha256", digits) => hmac = Some(hex::decoded(digits.as_bytes())?),
                ("t", time) => at = Some(time.to_owned()),
                _ => {}
            }
        }
        Some(Self { hmac: hmac?, at: at? })
    }

    /// Returns the hash by which a used signature is remembered.
    fn used_key(&self, format: &WebhookFormat, site: &str) -> [u8; 32] {
        let mut seen = digest::Context::new(&digest::SHA256);
        if format.counts_for_each_site {
            seen.update(site.as_bytes());
        }
        seen.update(b"\0");
        seen.update(&self.hmac);
        let mut used_key = [0; 32];
        used_key.copy_from_slice(seen.finish().as_ref());
        used_key
    }

    /// Returns until when this signature is accepted, if it is now.
    fn accepted_until(&self, format: &WebhookFormat, now: Timestamp) -> Option<Timestamp> {
        let at = self.at.parse().ok().and_then(|time: u64| time.checked_mul(format.time_unit))?;
        // As coarsely as the sender counts.
        let now = now.as_millis() / format.time_unit * format.time_unit;
        let is_recent = Duration::from_millis(now.abs_diff(at)) <= CLOCKS_DIFFER_MAX;
        is_recent.then(|| Timestamp::from_millis(at) + CLOCKS_DIFFER_MAX + Duration::from_millis(format.time_unit))
    }
}

/// Makes the answer to a webhook that is not obeyed.
fn refusal(format: &WebhookFormat, status: StatusCode, why: &str) -> Response<Body> {
    if format.is_answered_in_json {
        return own_response(status, JSON, format!("{}\n", serde_json::json!({ "error": why })));
    }
    reply(status, why)
}

fn reply(status: StatusCode, text: &str) -> Response<Body> {
    own_response(status, TEXT, format!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn room_for_webhooks_ends_for_each_address_and_for_all_and_comes_back() {
        let reading = Reading::default();
        assert!(reading.take(address(1), KEPT_OF_ONE_BYTES_MAX));
        assert!(!reading.take(address(1), 1), "of one address");
        let others = KEPT_BYTES_MAX / KEPT_OF_ONE_BYTES_MAX;
        for last in (2..).take(others - 1) {
            assert!(reading.take(address(last), KEPT_OF_ONE_BYTES_MAX), "{last}");
        }
        assert!(!reading.take(address(200), 1), "of all");
        reading.give_back(address(1), KEPT_OF_ONE_BYTES_MAX);
        assert!(reading.take(address(200), 1));
        reading.give_back(address(200), 1);
        assert_eq!(reading.0.lock().by_address.len(), others - 1, "addresses without bytes are forgotten");
    }

    #[test]
    fn what_finds_no_room_is_read_to_its_end_and_gives_its_room_back() {
        let reading = Reading::default();
        let format = policy_of_ghost();
        let content = || WebhookContent { reading: &reading, address: address(1), bytes: Some(Vec::new()), length: 0, format };
        let (mut long, mut short) = (content(), content());
        let mebibyte = vec![b'x'; 1 << 20];
        for _ in 0..2 {
            assert!(long.push(&mebibyte).is_ok());
        }
        assert!(long.kept().is_some_and(|kept| kept.len() == 2 << 20));
        assert!(short.push(b"{}").is_ok());
        assert_eq!(short.kept(), None, "the other one has all of the room");
        assert!(long.push(b"x").is_ok());
        assert_eq!(long.kept(), None, "it is too long itself");
        let mut later = content();
        assert!(later.push(b"{}").is_ok());
        assert_eq!(later.kept(), Some(&b"{}"[..]));
        drop(later);
        assert!(reading.0.lock().by_address.is_empty());
    }

    fn policy_of_ghost() -> &'static WebhookFormat {
        let settings = policy::Settings::preset(policy::Kind::Ghost);
        policy::Policy::new(settings).webhook_format().expect("a Ghost has webhooks")
    }
}
