//! Heads of messages on connections of our own ([`super::wire`]): the request's is written, the response's is read.
//!
//! The reader takes what hyper's takes (obsolete line folding and spaces before the colon are refused), so that a response means the same
//! whichever of the two read it.

use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode, Version,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING, VIA},
};
use semantics::decimal;
use smallvec::SmallVec;

use super::{
    ArrivedRequest,
    client_fields::{self, X_FORWARDED_HOST},
};
use crate::{Fault, server::ServerOptions};

/// Field lines that are read on the stack; a higher limit costs an allocation per response.
const LINES_ON_STACK: usize = 100;

/// The reason why a head is refused.
pub(super) type Refused = (Fault, &'static str);

/// Writes the head of a request as it goes to an origin. Its length is that of the content at hand, whatever the fields say.
pub(super) fn write((request, arrival): ArrivedRequest<'_>, content: &Bytes, out: &mut Vec<u8>) {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    out.reserve(1024);
    for piece in [request.method().as_str(), " ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(piece.as_bytes());
    }
    let (mut measured, mut says_host) = (!content.is_empty(), false);
    for (name, value) in request.headers() {
        if *name == CONTENT_LENGTH {
            measured = true;
        } else if *name != TRANSFER_ENCODING && *name != VIA {
            says_host |= name.as_str() == X_FORWARDED_HOST;
            out.extend_from_slice(name.as_str().as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
    client_fields::write(arrival, request.headers(), says_host, out);
    if measured {
        out.extend_from_slice(b"content-length: ");
        decimal::write(content.len() as u64, out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// The head of a response.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) version: Version,
    pub(super) fields: HeaderMap,
}

impl Head {
    /// Returns whether another head follows (RFC 9110 §15.2). A 101 is the last of its connection.
    pub(super) fn is_interim(&self) -> bool {
        self.status.is_informational() && self.status != StatusCode::SWITCHING_PROTOCOLS
    }
}

/// The places of field lines in the buffer: beginning and end of each name and each value.
type LineBounds = SmallVec<[[usize; 4]; 24]>;

/// A parsed head, but for its field lines.
struct Parsed {
    length: usize,
    code: u16,
    minor_version: u8,
}

/// Takes a whole head off the buffer; `None` if it has not come yet.
///
/// # Errors
/// When it is not the head of an HTTP/1 response, or larger than allowed.
pub(super) fn read(buffer: &mut BytesMut, options: &ServerOptions) -> Result<Option<Head>, Refused> {
    let mut lines = LineBounds::new();
    let parsed = if options.response_fields_max <= LINES_ON_STACK {
        parse(buffer, &mut [const { MaybeUninit::uninit() }; LINES_ON_STACK][..options.response_fields_max], &mut lines)
    } else {
        parse(buffer, &mut vec![MaybeUninit::uninit(); options.response_fields_max], &mut lines)
    };
    let too_large = || (Fault::ResponseTooLarge, "the head is larger than allowed");
    let Some(parsed) = parsed? else {
        return if buffer.len() >= options.response_header_bytes_max { Err(too_large()) } else { Ok(None) };
    };
    if parsed.length > options.response_header_bytes_max {
        return Err(too_large());
    }
    let malformed = |_| (Fault::ProtocolError, "malformed head");
    // Values share the buffer that they were read into.
    let bytes = buffer.split_to(parsed.length).freeze();
    let mut fields = HeaderMap::with_capacity(lines.len() + FIELDS_OF_OURS);
    for &[name, name_end, value, value_end] in &lines {
        let name = HeaderName::from_bytes(&bytes[name..name_end]).map_err(|_| (Fault::ProtocolError, "malformed field name"))?;
        let value = HeaderValue::from_maybe_shared(bytes.slice(value..value_end)).map_err(malformed)?;
        fields.append(name, value);
    }
    let status = StatusCode::from_u16(parsed.code).map_err(|_| (Fault::ProtocolError, "malformed status code"))?;
    let version = if parsed.minor_version == 0 { Version::HTTP_10 } else { Version::HTTP_11 };
    Ok(Some(Head { status, version, fields }))
}

/// `Cache-Status`, `X-Cache`, `X-Request-Id` and `Vary`, which are added on the way to the client: the map need not grow for them.
const FIELDS_OF_OURS: usize = 4;

/// Parses a head. The places of its lines go to `lines`, which is empty: returned, they would be copied several times.
fn parse<'b>(bytes: &'b [u8], table: &mut [MaybeUninit<httparse::Header<'b>>], lines: &mut LineBounds) -> Result<Option<Parsed>, Refused> {
    let mut response = httparse::Response::new(&mut []);
    let length = match httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, table) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err((Fault::ResponseTooLarge, "more field lines than allowed")),
        Err(_) => return Err((Fault::ProtocolError, "what came is not HTTP")),
    };
    let (Some(code), Some(minor_version)) = (response.code, response.version) else { return Ok(None) };
    let place = |part: &[u8]| {
        let start = part.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
        // An empty value may lie anywhere.
        if part.is_empty() { (0, 0) } else { (start, start + part.len()) }
    };
    lines.extend(response.headers.iter().map(|line| {
        let ((name, name_end), (value, value_end)) = (place(line.name.as_bytes()), place(line.value));
        [name, name_end, value, value_end]
    }));
    Ok(Some(Parsed { length, code, minor_version }))
}
