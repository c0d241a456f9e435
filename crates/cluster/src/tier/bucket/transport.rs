//! Requests to the bucket: over TCP, with TLS for `https`, bounded in size.
//!
//! There are no deadlines here but that of connecting: whoever asks has one for the whole, and drops the request when it has passed.

use std::{error::Error, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode,
    header::{CONTENT_LENGTH, USER_AGENT},
};
use http_body_util::{BodyExt as _, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector as Tcp},
    rt::{TokioExecutor, TokioTimer},
};
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody, HttpService,
    },
};
use rustls::ClientConfig;

use super::OBJECT_BYTES_MAX;

/// The time limit for opening a connection; another address is tried after that.
const CONNECT: Duration = Duration::from_secs(2);
/// The time for which a connection is kept that is not used. Servers of buckets close theirs after some 20 s.
const IDLE: Duration = Duration::from_secs(15);
/// The most connections that are kept and not used.
const IDLE_MAX: usize = 16;
/// The most bytes that are read of an answer that is not an object.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Says in which region a bucket is, if it is in another one.
const REGION: &str = "x-amz-bucket-region";

const AGENT: HeaderValue = HeaderValue::from_static(concat!("seawall/", env!("CARGO_PKG_VERSION")));

/// Makes the transport for the library, which would bring another one.
#[derive(Debug)]
pub(super) struct Connector {
    /// The configuration for TLS; `None`: there is no TLS.
    pub(super) tls: Option<Arc<ClientConfig>>,
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_nodelay(true);
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).pool_max_idle_per_host(IDLE_MAX);
        Ok(match &self.tls {
            Some(tls) => {
                let mut tls = ClientConfig::clone(tls);
                // The connector sets the protocols.
                tls.alpn_protocols.clear();
                let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().wrap_connector(tcp);
                HttpClient::new(Transport::Tls(client.build(connector)))
            }
            None => HttpClient::new(Transport::Plain(client.build(tcp))),
        })
    }
}

enum Transport {
    Tls(Client<HttpsConnector<Tcp>, HttpRequestBody>),
    Plain(Client<Tcp, HttpRequestBody>),
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

impl HttpService for Transport {
    fn call<'a, 'f>(&'a self, mut request: HttpRequest) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        request.headers_mut().insert(USER_AGENT, AGENT);
        let reads = *request.method() == Method::GET;
        let response = match self {
            Self::Tls(client) => client.request(request),
            Self::Plain(client) => client.request(request),
        };
        Box::pin(async move {
            let response = response.await.map_err(|error| {
                let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Interrupted };
                HttpError::new(kind, Failed(chain(&error)))
            })?;
            let (mut head, body) = response.into_parts();
            let bytes_max = if reads && head.status.is_success() { OBJECT_BYTES_MAX } else { ANSWER_BYTES_MAX };
            let body = Limited::new(body, bytes_max).map_err(|error| HttpError::new(HttpErrorKind::Interrupted, Failed(chain(&*error))));
            if !head.status.is_redirection() {
                return Ok(Response::from_parts(head, HttpResponseBody::new(body)));
            }
            // The library would not pass on what a redirection says: that the bucket is in another region.
            let body = region_of(&head.headers).into_bytes();
            head.status = StatusCode::BAD_REQUEST;
            head.headers.remove(CONTENT_LENGTH);
            Ok(Response::from_parts(head, body.into()))
        })
    }
}

/// Writes what a redirection says as S3 writes it elsewhere.
fn region_of(fields: &HeaderMap) -> String {
    let region = fields.get(REGION).and_then(|region| region.to_str().ok()).unwrap_or_default();
    format!("<Error><Code>PermanentRedirect</Code><Region>{region}</Region></Error>")
}

/// The reason why a request has no answer, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

/// Returns an error and everything beneath it, in words.
fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut beneath = error.source();
    while let Some(error) = beneath {
        let more = error.to_string();
        if !words.ends_with(&more) {
            words = format!("{words}: {more}");
        }
        beneath = error.source();
    }
    words
}
