//! Requests to the collector: over TCP, with TLS for `https`, bounded in time and in size.

use std::{error::Error, io::Write as _, str::FromStr, sync::Arc, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, DATE, RETRY_AFTER, USER_AGENT},
    uri::Scheme,
};
use http_body_util::{BodyExt as _, Full, Limited};
use httpdate::HttpDate;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

use crate::{otlp, retry::CollectorAnswer};

/// The time limit of one attempt, from the connection to the last byte of the answer.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(10);
/// The time limit for opening a connection; another address is tried after that.
const CONNECT: Duration = Duration::from_secs(5);
/// The most bytes of an answer that are read.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The time for which a connection is kept that is not used.
const IDLE: Duration = Duration::from_secs(30);

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("seawall/", env!("CARGO_PKG_VERSION"), " (OTLP)"));

/// Sends batches to one collector.
pub(crate) struct Transport {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    endpoint: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// An answer, and words that describe it in the log if it is not the one that was hoped for.
#[derive(Debug)]
pub(crate) struct DescribedAnswer {
    pub(crate) answered: CollectorAnswer,
    pub(crate) words: String,
}

impl Transport {
    /// Makes one for this address. It uses the runtime that it is called on.
    pub(crate) fn new(endpoint: Uri, headers: Vec<(HeaderName, HeaderValue)>, tls: &Arc<rustls::ClientConfig>) -> Self {
        let mut tls = rustls::ClientConfig::clone(tls);
        // The connector sets the protocols.
        tls.alpn_protocols.clear();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(tcp);
        let mut client = Client::builder(TokioExecutor::new());
        let client = client.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).pool_max_idle_per_host(1).build(connector);
        Self { client, endpoint, headers }
    }

    /// Makes the content of a request. It is coded where it goes to another machine; within one, that costs more than it saves.
    pub(crate) fn content(&self, message: Vec<u8>) -> Bytes {
        if !self.is_coded() {
            return message.into();
        }
        let mut coder = GzEncoder::new(Vec::with_capacity(message.len() / 4), Compression::fast());
        let coded = coder.write_all(&message).and_then(|()| coder.finish());
        coded.expect("a vector takes everything").into()
    }

    fn is_coded(&self) -> bool {
        self.endpoint.scheme() == Some(&Scheme::HTTPS)
    }

    /// Makes one attempt.
    pub(crate) async fn send(&self, content: Bytes) -> DescribedAnswer {
        let answer = tokio::time::timeout(ATTEMPT, self.attempt(content)).await;
        answer.unwrap_or_else(|_| DescribedAnswer {
            answered: CollectorAnswer::Nothing,
            words: format!("it did not answer within {ATTEMPT:?}"),
        })
    }

    async fn attempt(&self, content: Bytes) -> DescribedAnswer {
        let nothing = |error: &dyn Error| DescribedAnswer { answered: CollectorAnswer::Nothing, words: chain(error) };
        let mut request = Request::new(Full::new(content));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.endpoint.clone();
        let fields = request.headers_mut();
        fields.insert(CONTENT_TYPE, PROTOBUF);
        fields.insert(ACCEPT, PROTOBUF);
        fields.insert(USER_AGENT, AGENT);
        if self.is_coded() {
            fields.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        for (name, value) in &self.headers {
            fields.insert(name, value.clone());
        }
        let response = match self.client.request(request).await {
            Ok(response) => response,
            Err(error) => return nothing(&error),
        };
        let (head, body) = response.into_parts();
        let answered = CollectorAnswer::of_status(head.status.as_u16(), retry_after(&head.headers));
        // Also of a refusal, so that the connection can be used again.
        let body = match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            // The status counts: the same spans sent again would be there twice.
            Err(_) => Bytes::new(),
        };
        match answered {
            CollectorAnswer::Taken { .. } => {
                let (refused, words) = otlp::refused(&body);
                DescribedAnswer { answered: CollectorAnswer::Taken { refused }, words }
            }
            answered => DescribedAnswer { answered, words: format!("it answered {}", head.status) },
        }
    }
}

/// Returns how long the collector wants to be left alone (RFC 9110 §10.2.3). A date is measured by its own clock: ours may be wrong.
fn retry_after(fields: &HeaderMap) -> Option<Duration> {
    let text = fields.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| HttpDate::from_str(text).ok().map(std::time::SystemTime::from);
    let now = date(fields.get(DATE)?.to_str().ok()?)?;
    Some(date(text)?.duration_since(now).unwrap_or_default())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_names_seconds_or_a_date() {
        let fields = |after: &'static str, date: Option<&'static str>| {
            let mut fields = HeaderMap::new();
            fields.insert(RETRY_AFTER, HeaderValue::from_static(after));
            date.map(|date| fields.insert(DATE, HeaderValue::from_static(date)));
            fields
        };
        let date = Some("Thu, 01 Jan 2026 00:00:00 GMT");
        for (fields, expected) in [
            (fields("7", None), Some(7)),
            (fields(" 0 ", None), Some(0)),
            (fields("Thu, 01 Jan 2026 00:00:07 GMT", date), Some(7)),
            (fields("Wed, 31 Dec 2025 00:00:00 GMT", date), Some(0)),
            (fields("Thu, 01 Jan 2026 00:00:07 GMT", None), None),
            (fields("soon", date), None),
            (fields("-1", date), None),
            (HeaderMap::new(), None),
        ] {
            assert_eq!(retry_after(&fields), expected.map(Duration::from_secs), "{fields:?}");
        }
    }
}
