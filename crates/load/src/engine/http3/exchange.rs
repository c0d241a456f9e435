//! One request and its answer.

use bytes::{Buf as _, Bytes};
use h3::error::{Code, ConnectionError, StreamError};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header, response};

use crate::{
    engine::{Clock, driver::Arrival},
    record::ErrorClass,
    requests::WANTED_MAX,
};

/// A request in the form that the crate `h3` takes.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    method: Method,
    uri: Uri,
    fields: HeaderMap,
    body: Bytes,
}

/// An exchange that has ended.
pub(super) struct Finished {
    pub(super) call: u32,
    pub(super) ended: Ended,
}

/// Says how an exchange has ended.
pub(super) enum Ended {
    Answered {
        head: Box<response::Parts>,
        body: Option<Vec<u8>>,
        arrival: Arrival,
    },
    Failed(ErrorClass, Arrival),
    /// The server has not looked at it. `by_connection`: nor will it look at others on this connection.
    Refused {
        by_connection: bool,
        arrival: Arrival,
    },
}

/// Makes a request from its parts.
///
/// # Errors
/// Says what HTTP does not allow.
pub(super) fn prepare(authority: &str, method: &str, target: &str, fields: &[(String, String)], body: &Bytes) -> Result<Outgoing, String> {
    let method = Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?;
    let authority = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host")).map_or(authority, |(_, host)| host.as_str());
    let uri = format!("https://{authority}{target}").parse::<Uri>().map_err(|error| error.to_string())?;
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
        // Those that HTTP/3 has not (RFC 9114 §4.2), and `Host`, which is part of the URI.
        if matches!(name.as_str(), "host" | "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade") {
            continue;
        }
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).map_err(|error| error.to_string())?);
    }
    if !body.is_empty() && !map.contains_key(header::CONTENT_LENGTH) {
        map.insert(header::CONTENT_LENGTH, body.len().into());
    }
    Ok(Outgoing { method, uri, fields: map, body: body.clone() })
}

/// Asks, and reads the answer to its end.
pub(super) async fn run(
    sender: h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>,
    outgoing: Result<Outgoing, String>,
    wants_body: bool,
    clock: Clock,
) -> Ended {
    let mut arrival = Arrival::default();
    let Ok(outgoing) = outgoing else {
        return Ended::Failed(ErrorClass::Protocol, Arrival { ended: clock.now(), ..arrival });
    };
    match exchange(sender, outgoing, wants_body, &clock, &mut arrival).await {
        Ok((head, body)) => Ended::Answered { head: Box::new(head), body, arrival },
        Err(failure) => {
            arrival.ended = clock.now();
            let so_far = if arrival.status == 0 { ErrorClass::Reset } else { ErrorClass::Truncated };
            match failure {
                Failure::Class(class) => Ended::Failed(class, arrival),
                Failure::Stream(StreamError::RemoteClosing { .. }) => Ended::Refused { by_connection: true, arrival },
                Failure::Stream(StreamError::RemoteTerminate { code, .. }) if code == Code::H3_REQUEST_REJECTED && arrival.status == 0 => {
                    Ended::Refused { by_connection: false, arrival }
                }
                Failure::Stream(
                    StreamError::RemoteTerminate { .. }
                    | StreamError::ConnectionError { 0: ConnectionError::Remote { .. } | ConnectionError::Timeout { .. }, .. },
                ) => Ended::Failed(so_far, arrival),
                Failure::Stream(_) => Ended::Failed(ErrorClass::Protocol, arrival),
            }
        }
    }
}

enum Failure {
    Stream(StreamError),
    Class(ErrorClass),
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}

async fn exchange(
    mut sender: h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>,
    outgoing: Outgoing,
    wants_body: bool,
    clock: &Clock,
    arrival: &mut Arrival,
) -> Result<(response::Parts, Option<Vec<u8>>), Failure> {
    let is_head = outgoing.method == Method::HEAD;
    let mut request = http::Request::new(());
    *request.method_mut() = outgoing.method;
    *request.uri_mut() = outgoing.uri;
    *request.headers_mut() = outgoing.fields;
    let mut stream = sender.send_request(request).await?;
    drop(sender);
    let mut sent = Ok(());
    if !outgoing.body.is_empty() {
        sent = stream.send_data(outgoing.body).await;
    }
    if sent.is_ok() {
        sent = stream.finish().await;
    }
    let head = match (stream.recv_response().await, sent) {
        (Ok(head), _) => head.into_parts().0,
        // A server that has answered may take no more of the request, so it is the answer that decides. Without one, the first error does.
        (Err(_), Err(error)) | (Err(error), Ok(())) => return Err(error.into()),
    };
    arrival.first_byte = Some(clock.now());
    arrival.status = head.status.as_u16();
    arrival.bytes += head.headers.iter().map(|(name, value)| (name.as_str().len() + value.len()) as u64).sum::<u64>();
    let mut received = 0;
    let mut body = wants_body.then(Vec::new);
    while let Some(mut data) = stream.recv_data().await? {
        received += data.remaining() as u64;
        arrival.bytes += data.remaining() as u64;
        if let Some(body) = &mut body {
            let wanted = data.remaining().min(WANTED_MAX - body.len());
            body.extend_from_slice(&data.copy_to_bytes(wanted));
        }
    }
    arrival.ended = clock.now();
    let length = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let has_content = !is_head && !matches!(arrival.status, 204 | 304);
    match length.filter(|_| has_content).map(|length| received.cmp(&length)) {
        Some(std::cmp::Ordering::Less) => Err(Failure::Class(ErrorClass::Truncated)),
        Some(std::cmp::Ordering::Greater) => Err(Failure::Class(ErrorClass::Protocol)),
        _ => Ok((head, body)),
    }
}
