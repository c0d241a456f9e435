//! Requests to the authority, and to whoever is asked about names: bounded in time and in size.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    str::FromStr,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{
    Request, Response, StatusCode,
    header::{DATE, HeaderValue, RETRY_AFTER, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full, Limited};
use httpdate::HttpDate;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use instant_acme::{BodyWrapper, BytesResponse, HttpClient};
use parking_lot::Mutex;
use semantics::Timestamp;

use crate::failure::chain;

/// The time limit from the first byte of a request to the last of its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The time limit for opening a connection; another address is tried after that.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a response. A certificate chain has some 10 KiB.
const RESPONSE_BYTES_MAX: usize = 1024 * 1024;

const AGENT: &str = concat!("seawall/", env!("CARGO_PKG_VERSION"), " (ACME)");

/// The reason why a request got no response.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TransportError(pub String);

/// The future of a response.
pub type Answer = Pin<Box<dyn Future<Output = Result<Response<Bytes>, TransportError>> + Send>>;

/// Sends requests. It is a trait, so that tests can stand between us and an authority.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request, and ends within bounded time.
    fn send(&self, request: Request<Bytes>) -> Answer;
}

/// Sends requests over TCP, with TLS for `https`.
#[derive(Clone)]
pub struct Https(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl Https {
    /// Creates a transport that trusts the authorities that `tls` trusts.
    #[must_use]
    pub fn new(tls: &rustls::ClientConfig) -> Self {
        let mut tls = tls.clone();
        // The connector sets the protocols.
        tls.alpn_protocols.clear();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(tcp);
        let mut client = Client::builder(TokioExecutor::new());
        Self(client.pool_timer(TokioTimer::new()).pool_idle_timeout(REQUEST_TIMEOUT).pool_max_idle_per_host(4).build(connector))
    }
}

impl fmt::Debug for Https {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Https").finish_non_exhaustive()
    }
}

impl Transport for Https {
    fn send(&self, request: Request<Bytes>) -> Answer {
        let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let response = self.0.request(request.map(Full::new));
        Box::pin(async move {
            let whole = async {
                let (parts, body) = response.await.map_err(|error| TransportError(format!("{authority}: {}", chain(&error))))?.into_parts();
                let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
                let body = body.map_err(|error| TransportError(format!("{authority}: {}", chain(&*error))))?;
                Ok(Response::from_parts(parts, body.to_bytes()))
            };
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, whole).await;
            answer.unwrap_or_else(|_| Err(TransportError(format!("{authority} did not answer within {REQUEST_TIMEOUT:?}"))))
        })
    }
}

/// The fields of the responses to one order that the ACME library does not pass on.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetryFieldsHeard(Arc<Mutex<RetryFields>>);

#[derive(Debug, Default)]
struct RetryFields {
    wait: Option<Duration>,
    date: Option<Timestamp>,
}

impl RetryFieldsHeard {
    /// Returns the `Retry-After` of the last refusal.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.0.lock().wait
    }

    fn note(&self, response: &Response<Bytes>) {
        let fields = response.headers();
        let date = |text: &str| HttpDate::from_str(text).ok().map(|date| Timestamp::from(std::time::SystemTime::from(date)));
        let mut said = self.0.lock();
        said.date = fields.get(DATE).and_then(|date| date.to_str().ok()).and_then(date).or(said.date);
        let refuses = matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let after = fields.get(RETRY_AFTER).filter(|_| refuses).and_then(|after| after.to_str().ok()).map(str::trim);
        // A date is measured by the response's own clock: ours may be wrong.
        let until = |text: &str| Some(date(text)?.since(said.date?));
        said.wait = after.and_then(|text| text.parse().ok().map(Duration::from_secs).or_else(|| until(text)));
    }
}

/// The client through which the ACME library reaches the authority.
pub(crate) struct AcmeClient {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) heard: RetryFieldsHeard,
}

impl HttpClient for AcmeClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, instant_acme::Error>> + Send>> {
        let transport = Arc::clone(&self.transport);
        let heard = self.heard.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            parts.headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
            let body = match body.collect().await {
                Ok(body) => body.to_bytes(),
                Err(never) => match never {},
            };
            let answer = transport.send(Request::from_parts(parts, body)).await;
            let response = answer.map_err(|error| instant_acme::Error::Other(Box::new(error)))?;
            heard.note(&response);
            // A server error without a problem document is an outage, not a protocol error.
            let status = response.status();
            if status.is_server_error() && serde_json::from_slice::<instant_acme::Problem>(response.body()).is_err() {
                return Err(instant_acme::Error::Other(Box::new(TransportError(format!("the authority answered {status}")))));
            }
            Ok(BytesResponse::from(response.map(Full::new)))
        })
    }
}

/// Returns a timestamp as the standard library's time.
pub(crate) fn system_time(at: Timestamp) -> std::time::SystemTime {
    UNIX_EPOCH + Duration::from_millis(at.as_millis())
}
