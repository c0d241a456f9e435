//! The parameters of a request: what CGI (RFC 3875) calls meta-variables, in the records that php-fpm takes.
//!
//! php-fpm resets a connection on which a pair begins in one record and ends in the next, so a record holds whole pairs, and a pair that no
//! record can hold is the client's fault.

use std::{fmt::Write as _, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use semantics::{Scheme, decimal, target::host_without_port};

use super::record::{CONTENT_BYTES_MAX, HEADER_BYTES, Kind, header as record_header};
use crate::{Arrival, Fault, OriginError};

/// A script, and the part of the request's path that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The folder of the site, as the server sees it.
    pub document_root: String,
    /// The path of the script below that folder, which begins with a slash.
    pub name: String,
    /// The decoded rest of the request's path behind the script's, empty for none.
    pub path_info: String,
    /// Parameters beside those of CGI. One replaces the parameter of the same name that CGI has, or that a field of the request would become.
    pub more: Arc<[(String, String)]>,
}

/// The name by which we call ourselves, and that of a server which needs no `.htaccess` either.
///
/// WordPress offers addresses without `index.php` only behind servers that it knows, and plugins ask for them by name: whoever finds `Apache` or
/// `LiteSpeed` writes an `.htaccess` and relies on it, whoever finds `nginx` does not, and hands files over with `X-Accel-Redirect`, which is taken
/// here as well. Versions of WordPress before 6.8 do not know `Caddy`.
pub(crate) const SOFTWARE: &str = concat!("Seawall/", env!("CARGO_PKG_VERSION"), " (nginx)");

const LENGTH: &str = "CONTENT_LENGTH";

/// A request's pairs, in records.
#[derive(Debug)]
pub(super) struct Params {
    out: Vec<u8>,
    /// The place of the head of the record that is being filled.
    record: usize,
    /// Parameters that replace others of the same name.
    more: Arc<[(String, String)]>,
}

impl Params {
    /// Begins the parameters behind what is in `out`.
    pub(super) fn new(mut out: Vec<u8>) -> Self {
        let record = out.len();
        out.extend_from_slice(&record_header(Kind::Params, 0));
        Self { out, record, more: Arc::default() }
    }

    /// Adds a pair, unless the parameters beside those of CGI have one of this name.
    ///
    /// # Errors
    /// When it is longer than a record.
    pub(super) fn add(&mut self, name: &str, value: &[u8]) -> Result<(), OriginError> {
        if self.more.iter().any(|(other, _)| other == name) { Ok(()) } else { self.add_joined(name, &[value], b"") }
    }

    /// Adds the length of the content, which nothing replaces: a script that is told another one waits forever, or not at all.
    pub(super) fn add_length(&mut self, bytes: u64) -> Result<(), OriginError> {
        self.add_joined(LENGTH, &[bytes.to_string().as_bytes()], b"")
    }

    /// Adds a pair whose value is made of several, with `between` between them.
    fn add_joined(&mut self, name: &str, values: &[&[u8]], between: &[u8]) -> Result<(), OriginError> {
        let value_bytes = values.iter().map(|value| value.len()).sum::<usize>() + between.len() * values.len().saturating_sub(1);
        let pair = length_bytes(name.len()) + length_bytes(value_bytes) + name.len() + value_bytes;
        if pair > CONTENT_BYTES_MAX {
            let detail = format!("{name} has {value_bytes} bytes: FastCGI takes {CONTENT_BYTES_MAX} with its name");
            return Err(OriginError::new(Fault::RequestHeadTooLarge, detail));
        }
        if self.record_bytes() + pair > CONTENT_BYTES_MAX {
            self.close_record();
            self.record = self.out.len();
            self.out.extend_from_slice(&record_header(Kind::Params, 0));
        }
        write_length(name.len(), &mut self.out);
        write_length(value_bytes, &mut self.out);
        self.out.extend_from_slice(name.as_bytes());
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.out.extend_from_slice(between);
            }
            self.out.extend_from_slice(value);
        }
        Ok(())
    }

    /// Ends the parameters, and returns all that was written.
    pub(super) fn end(mut self) -> Vec<u8> {
        if self.record_bytes() > 0 {
            self.close_record();
            self.out.extend_from_slice(&record_header(Kind::Params, 0));
        }
        self.out
    }

    fn record_bytes(&self) -> usize {
        self.out.len() - self.record - HEADER_BYTES
    }

    fn close_record(&mut self) {
        let head = record_header(Kind::Params, self.record_bytes());
        self.out[self.record..self.record + HEADER_BYTES].copy_from_slice(&head);
    }

    /// Adds what is said about a request to `script`, but the length of its content.
    ///
    /// A stored response answers clients of every version of HTTP, so PHP is always told the same one.
    ///
    /// # Errors
    /// When a pair is longer than a record.
    pub(super) fn describe(&mut self, script: &Script, request: &http::request::Parts, arrival: &Arrival<'_>) -> Result<(), OriginError> {
        let Script { document_root, name, path_info, more } = script;
        for (name, value) in more.iter().filter(|(name, _)| name != LENGTH) {
            self.add(name, value.as_bytes())?;
        }
        self.more = Arc::clone(more);
        let prefix = arrival.prefix.unwrap_or_default().trim_end_matches('/');
        let target = request.uri.path_and_query().map_or("/", |target| target.as_str());
        let with_prefix = |path: &str| [prefix, path].concat();
        self.add("GATEWAY_INTERFACE", b"CGI/1.1")?;
        self.add("SERVER_SOFTWARE", SOFTWARE.as_bytes())?;
        self.add("SERVER_PROTOCOL", b"HTTP/1.1")?;
        self.add("REQUEST_METHOD", request.method.as_str().as_bytes())?;
        self.add("REQUEST_URI", with_prefix(target).as_bytes())?;
        self.add("QUERY_STRING", request.uri.query().unwrap_or_default().as_bytes())?;
        self.add("DOCUMENT_ROOT", document_root.as_bytes())?;
        self.add("SCRIPT_FILENAME", [document_root.as_str(), name].concat().as_bytes())?;
        self.add("SCRIPT_NAME", with_prefix(name).as_bytes())?;
        self.add("PATH_INFO", path_info.as_bytes())?;
        self.add("CONTENT_TYPE", request.headers.get(header::CONTENT_TYPE).map_or(b"", HeaderValue::as_bytes))?;
        // php-fpm is for requests that a server has taken: without this, PHP that was built so refuses to run.
        self.add("REDIRECT_STATUS", b"200")?;
        self.add_arrival(arrival)?;
        self.add_fields(&request.headers, arrival)
    }

    fn add_arrival(&mut self, arrival: &Arrival<'_>) -> Result<(), OriginError> {
        /// The address of the client for requests that have no client, or one on this machine: an address that is never a stranger's.
        const HERE: &str = "127.0.0.1";
        let mut address = String::new();
        match arrival.caller.and_then(|caller| caller.client) {
            Some(client) => write!(address, "{}", client.to_canonical()).expect("a string takes all"),
            None => HERE.clone_into(&mut address),
        }
        self.add("REMOTE_ADDR", address.as_bytes())?;
        // An address of this machine, and always the same one: what is stored is for everybody, whichever way they came.
        self.add("SERVER_ADDR", HERE.as_bytes())?;
        let host = host_without_port(arrival.authority);
        self.add("SERVER_NAME", if host.is_empty() { b"localhost" } else { host.as_bytes() })?;
        let mut port = Vec::new();
        decimal::write(arrival.port().into(), &mut port);
        self.add("SERVER_PORT", &port)?;
        if arrival.scheme == Scheme::Https {
            self.add("HTTPS", b"on")?;
        }
        Ok(())
    }

    /// Adds the request's fields (RFC 3875 §4.1.18). Only names of letters, digits and hyphens become variables: PHP would make the same one
    /// of several others, so that a client could overwrite what a proxy says.
    fn add_fields(&mut self, fields: &HeaderMap, arrival: &Arrival<'_>) -> Result<(), OriginError> {
        if !fields.contains_key(header::HOST) && !arrival.authority.is_empty() {
            self.add("HTTP_HOST", arrival.authority.as_bytes())?;
        }
        for name in fields.keys().filter(|name| becomes_a_variable(name)) {
            let values: Vec<&[u8]> = fields.get_all(name).iter().map(HeaderValue::as_bytes).collect();
            // RFC 9113 §8.2.3, RFC 9110 §5.3.
            let between: &[u8] = if *name == header::COOKIE { b"; " } else { b", " };
            let name = variable(name);
            if !self.more.iter().any(|(other, _)| *other == name) {
                self.add_joined(&name, &values, between)?;
            }
        }
        Ok(())
    }
}

fn becomes_a_variable(name: &HeaderName) -> bool {
    let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    // The first two have variables of their own. `Proxy` would set the proxy of whatever PHP asks for itself.
    !matches!(name.as_str(), "content-length" | "content-type" | "proxy") && is_plain(name.as_str())
}

fn variable(name: &HeaderName) -> String {
    let mut variable = String::with_capacity(5 + name.as_str().len());
    variable.push_str("HTTP_");
    variable.extend(name.as_str().chars().map(|letter| if letter == '-' { '_' } else { letter.to_ascii_uppercase() }));
    variable
}

/// Returns whether a request may be sent again if nothing came of it: only what changes nothing may (RFC 9110 §9.2.1).
pub(super) fn may_be_repeated(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

const fn length_bytes(length: usize) -> usize {
    if length < 128 { 1 } else { 4 }
}

/// Writes a length as name-value pairs have it: one byte, or four with the highest bit set (FastCGI specification, 3.4).
fn write_length(length: usize, out: &mut Vec<u8>) {
    match u8::try_from(length) {
        Ok(length @ 0..128) => out.push(length),
        _ => {
            let length = u32::try_from(length).expect("no longer than a record");
            out.extend_from_slice(&(length | 1 << 31).to_be_bytes());
        }
    }
}
