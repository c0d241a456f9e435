//! A notice as a `POST` with JSON. Redirects are not followed, and what the receiver answers is not shown: it may repeat the address.

use std::time::Duration;

use acme::Transport;
use aws_lc_rs::hmac;
use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT},
};
use insight::alerts::{Notice, State};
use semantics::{Timestamp, hex};
use tokio::time::timeout;

use super::outbox::Failure;
use crate::config::settings::Webhook;

/// The time in which the receiver has to answer, with everything that comes before it.
const WITHIN: Duration = Duration::from_secs(10);

const AGENT: &str = concat!("seawall/", env!("CARGO_PKG_VERSION"), " (alerts)");

const SIGNATURE: HeaderName = HeaderName::from_static("seawall-signature");

/// Sends a notice once.
pub(super) async fn send(
    transport: &dyn Transport,
    webhook: &Webhook,
    notice: &Notice,
    server: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    let request = request(webhook, notice, server, now);
    let response = match timeout(WITHIN, transport.send(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(Failure::passing(error.to_string(), None)),
        Err(_) => return Err(Failure::passing(format!("no answer within {} s", WITHIN.as_secs()), None)),
    };
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let why = format!("the receiver answers {}", status.as_u16());
    match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            Err(Failure::passing(why, asked_wait(response.headers().get(RETRY_AFTER))))
        }
        status if status.is_server_error() => Err(Failure::passing(why, asked_wait(response.headers().get(RETRY_AFTER)))),
        status if status.is_redirection() => {
            Err(Failure::last(format!("{why}, which leads elsewhere and is not followed: write the address that it leads to")))
        }
        _ => Err(Failure::last(why)),
    }
}

/// Reads how many seconds the receiver wants to be left alone (RFC 9110 §10.2.3). A date is none: our own waits are long enough.
fn asked_wait(value: Option<&HeaderValue>) -> Option<Duration> {
    value?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

fn request(webhook: &Webhook, notice: &Notice, server: &str, now: Timestamp) -> Request<Bytes> {
    let body = notice.json(server);
    let resolved = webhook.resolved.as_ref().filter(|_| notice.state == State::Resolved);
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = resolved.unwrap_or(&webhook.url).clone();
    let fields = request.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    fields.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    fields.insert(ACCEPT, HeaderValue::from_static("*/*"));
    for (name, value) in &webhook.fields {
        fields.insert(name, value.clone());
    }
    if let Some(signature) = webhook.secret.as_ref().and_then(|secret| HeaderValue::from_str(&signature(secret, now, &body)).ok()) {
        fields.insert(SIGNATURE, signature);
    }
    *request.body_mut() = Bytes::from(body);
    request
}

/// Signs time and content, as the plugin in a WordPress signs what it tells Seawall.
fn signature(secret: &str, now: Timestamp, body: &str) -> String {
    let seconds = now.as_secs();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{seconds}.{body}").as_bytes());
    format!("t={seconds}, sha256={}", hex::encoded(tag.as_ref()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use acme::{Answer, TransportError};
    use http::Response;
    use parking_lot::Mutex;

    use super::*;

    /// A receiver that answers so, and remembers what it got.
    #[derive(Default)]
    struct Receiver {
        status: u16,
        retry_after: Option<&'static str>,
        is_silent: bool,
        got: Arc<Mutex<Vec<Request<Bytes>>>>,
    }

    impl Transport for Receiver {
        fn send(&self, request: Request<Bytes>) -> Answer {
            self.got.lock().push(request);
            if self.is_silent {
                return Box::pin(std::future::pending());
            }
            let mut response = Response::builder().status(self.status);
            if let Some(after) = self.retry_after {
                response = response.header(RETRY_AFTER, after).header("location", "https://elsewhere.example/");
            }
            let response = response.body(Bytes::from_static(b"words of the receiver"));
            Box::pin(async move { response.map_err(|error| TransportError(error.to_string())) })
        }
    }

    fn webhook() -> Webhook {
        Webhook {
            url: "https://hooks.example.org/secret".parse().expect("an address"),
            resolved: Some("https://hooks.example.org/well".parse().expect("an address")),
            secret: Some("key".to_owned()),
            fields: vec![(http::header::AUTHORIZATION, HeaderValue::from_static("Bearer tk_1234"))],
        }
    }

    const NOW: Timestamp = Timestamp::from_secs(1_767_225_600);

    #[tokio::test]
    async fn a_notice_is_a_post_with_json_and_a_signature() {
        let receiver = Receiver { status: 200, ..Receiver::default() };
        for state in [State::Firing, State::Resolved] {
            send(&receiver, &webhook(), &Notice::trial(state, NOW), "web1", NOW).await.expect("sent");
        }
        let got = receiver.got.lock();
        assert_eq!((got[0].method(), got[0].uri().path(), got[1].uri().path()), (&Method::POST, "/secret", "/well"));
        let field = |name: &str| got[0].headers()[name].to_str().expect("text").to_owned();
        assert_eq!((field("content-type").as_str(), field("authorization").as_str()), ("application/json", "Bearer tk_1234"));
        assert!(field("user-agent").starts_with("seawall/"));
        let body: serde_json::Value = serde_json::from_slice(got[0].body()).expect("JSON");
        assert_eq!((&body["name"], &body["state"], &body["server"]), (&"test".into(), &"firing".into(), &"web1".into()));
    }

    /// RFC 4231 has no case with a time; the expected value is from `printf '1767225600.{}' | openssl dgst -sha256 -hmac key`.
    #[test]
    fn the_signature_is_the_hmac_of_seconds_a_dot_and_the_content() {
        let expected = "t=1767225600, sha256=df344de429b8ee672e1863e0008fdbd0080000536fbccdf0e4f89846acbbe872";
        assert_eq!(signature("key", NOW, "{}"), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_receiver_answers_says_whether_it_is_tried_again() {
        for (status, retry_after, again) in [
            (500, None, Some(None)),
            (503, Some("7"), Some(Some(Duration::from_secs(7)))),
            (429, Some("7"), Some(Some(Duration::from_secs(7)))),
            (429, Some("Wed, 21 Oct 2026 07:28:00 GMT"), Some(None)),
            (408, None, Some(None)),
            (301, Some("0"), None),
            (307, Some("0"), None),
            (400, None, None),
            (404, None, None),
            (410, None, None),
        ] {
            let receiver = Receiver { status, retry_after, ..Receiver::default() };
            let failure = send(&receiver, &webhook(), &Notice::trial(State::Firing, NOW), "web1", NOW).await.expect_err("failed");
            assert_eq!(failure.again, again, "{status}");
            assert!(failure.why.contains(&status.to_string()) && !failure.why.contains("secret"), "{failure:?}");
            // Nothing is followed.
            assert_eq!(receiver.got.lock().len(), 1);
        }
        let silent = Receiver { is_silent: true, ..Receiver::default() };
        let failure = send(&silent, &webhook(), &Notice::trial(State::Firing, NOW), "web1", NOW).await.expect_err("failed");
        assert_eq!((failure.why.as_str(), failure.again), ("no answer within 10 s", Some(None)));
    }
}
