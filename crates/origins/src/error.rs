//! The errors that can occur on the way to an origin, in the words of RFC 9209.

use std::error::Error;

use http::StatusCode;

/// The reason why there is no response. Its names are proxy error types (RFC 9209 §2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The origin's name has no address.
    DnsError,
    /// Nobody listens there.
    ConnectionRefused,
    /// No connection was made within `connect_timeout`.
    ConnectionTimeout,
    /// The connection ended before the response did.
    ConnectionTerminated,
    /// The TLS handshake failed or the certificate is not trusted.
    TlsError,
    /// No response head came within `first_byte_timeout`.
    ReadTimeout,
    /// The body paused longer than `between_bytes_timeout`.
    BodyTimeout,
    /// What came is not HTTP.
    ProtocolError,
    /// The response's head or a field is larger than allowed.
    ResponseTooLarge,
    /// The cap on concurrent requests is reached and its queue is full, or the wait in it was too long.
    Overloaded,
    /// The client's own request body broke off or was too large: not the origin's fault.
    RequestBody,
    /// The client paused too long in its request body (408).
    RequestTimeout,
    /// The request body is larger than allowed (413).
    RequestTooLarge,
    /// A field of the request is larger than the origin's protocol can carry (431).
    RequestHeadTooLarge,
    /// A fault of ours.
    Internal,
}

impl Fault {
    /// Returns the name in `Proxy-Status`, logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DnsError => "dns_error",
            Self::ConnectionRefused => "connection_refused",
            Self::ConnectionTimeout => "connection_timeout",
            Self::ConnectionTerminated => "connection_terminated",
            Self::TlsError => "tls_protocol_error",
            Self::ReadTimeout => "connection_read_timeout",
            Self::BodyTimeout => "http_response_timeout",
            Self::ProtocolError => "http_protocol_error",
            Self::ResponseTooLarge => "http_response_header_section_size",
            Self::Overloaded => "connection_limit_reached",
            Self::RequestBody => "http_request_error",
            Self::RequestTimeout => "http_request_timeout",
            Self::RequestTooLarge => "http_request_too_large",
            Self::RequestHeadTooLarge => "http_request_error",
            Self::Internal => "proxy_internal_error",
        }
    }

    /// Returns the status that a client gets when nothing better is stored.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::ConnectionTimeout | Self::ReadTimeout | Self::BodyTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::RequestBody => StatusCode::BAD_REQUEST,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::RequestTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::RequestHeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::DnsError
            | Self::ConnectionRefused
            | Self::ConnectionTerminated
            | Self::TlsError
            | Self::ProtocolError
            | Self::ResponseTooLarge => StatusCode::BAD_GATEWAY,
        }
    }
}

/// The error of an origin that did not answer.
#[derive(Debug, thiserror::Error)]
#[error("{}: {detail}", fault.name())]
pub struct OriginError {
    /// The fault: who failed, and how.
    pub fault: Fault,
    /// The text about what was being done, with the address; for the log, never for the visitor.
    pub detail: String,
    /// The error that lay beneath.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl OriginError {
    /// Makes an error of a fault and what was being done.
    pub fn new(fault: Fault, detail: impl Into<String>) -> Self {
        Self { fault, detail: detail.into(), source: None }
    }

    /// Adds the error that lay beneath.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}
