//! The service: the seam between the protocols and everything that answers behind them.

use std::{fmt, future::Future, net::SocketAddr, rc::Rc, time::Instant};

use bytes::Bytes;
use http_body::Body;
use semantics::{RequestHead, Scheme};

use crate::{request::content::RequestBody, send_file::FileRegion};

/// The status in the log of a request whose client left before there was a response, as nginx has it.
pub const CLIENT_LEFT: u16 = 499;

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The address, unless the connection came over a Unix socket.
    pub address: Option<SocketAddr>,
    /// The scheme of what is asked for over the connection: `https` where it is encrypted.
    pub scheme: Scheme,
}

/// A stored response that is being sent: the head is in the buffer that [`Service::hit`] was given, the content is here.
#[derive(Debug)]
pub struct Hit<H, N, K> {
    /// The status in the head.
    pub status: u16,
    /// The content; `None` where the message has none (HEAD, 304).
    pub body: Option<H>,
    /// The note that the service wants back in [`Service::done`].
    pub note: N,
    /// The facts that [`Service::again`] needs, should such a head come again; `None` if the head alone does not decide.
    pub known: Option<Again<K>>,
}

/// The facts about a head, and the heads that are answered alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again<K> {
    /// Heads that are the same byte for byte.
    SameHead(K),
    /// Also heads that differ in [`INCIDENTAL_FIELDS`](semantics::request::INCIDENTAL_FIELDS) alone.
    SameEssentials(K),
}

/// The hit of a service.
pub type HitOf<S> = Hit<<S as Service>::Stored, <S as Service>::Note, <S as Service>::HitFacts>;

/// One request and what became of it, for logs and counters.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// Names the other end of the connection.
    pub peer: Peer,
    /// The method as sent.
    pub method: &'a str,
    /// Path and query as sent, without what a target in absolute form has before them; `*` for the whole server.
    pub target: &'a str,
    /// The version of HTTP in which it was sent.
    pub version: http::Version,
    /// The `Host` field as sent, or the authority of a target in absolute form, which replaces it (RFC 9112 §3.2.2); or nothing.
    pub host: &'a [u8],
    /// The `Referer` field, or nothing.
    pub referer: &'a [u8],
    /// The `User-Agent` field, or nothing.
    pub user_agent: &'a [u8],
    /// The status sent.
    pub status: u16,
    /// Content bytes sent, without framing.
    pub body_bytes: u64,
    /// The time when the head was complete.
    pub started: Instant,
    /// The time when the last byte was handed to the kernel, or the client was given up.
    pub ended: Instant,
    /// Whether the whole response was sent.
    pub complete: bool,
}

/// A function that the service tells an interim response's status and end-to-end fields.
pub type Interim = Rc<dyn Fn(http::StatusCode, &http::HeaderMap)>;

/// Answers requests. One instance belongs to one worker and never leaves its thread.
pub trait Service: 'static {
    /// Content of a stored response, kept until it is written.
    type Stored: AsRef<[u8]>;
    /// Content of any other response.
    type Body: Body<Data = Bytes, Error: fmt::Display + Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin + 'static;
    /// The note that the service wants back when the exchange has ended.
    type Note: Default;
    /// The facts about a head that it answered with a hit. It is kept with the head while that comes again and again.
    type HitFacts: 'static;

    /// Answers at once from what is stored, or not at all.
    ///
    /// It writes the status line and the fields, each with its line end, but not the empty line: the connection's own fields follow. It is called
    /// for GET and HEAD without content only. Must not block.
    fn hit(&self, peer: Peer, head: &RequestHead<'_>, started: Instant, out: &mut Vec<u8>) -> Option<HitOf<Self>>;

    /// Answers a head that is like one which was a hit before, as [`Again`] says, over the same scheme. `None` means that the head is to be
    /// parsed and judged as if it were new.
    fn again(&self, peer: Peer, known: &Self::HitFacts, started: Instant, out: &mut Vec<u8>) -> Option<HitOf<Self>>;

    /// Answers in its own time. The request's URI is in origin-form, its authority in `Host`. Interim responses may be told before the
    /// answer is ready, unless there is nothing to tell them to: a client of HTTP/1.0 would take one for the answer (RFC 9110 §15.2).
    ///
    /// The answer is boxed, as it is handed on through many futures.
    fn call(
        &self,
        peer: Peer,
        request: http::Request<RequestBody>,
        started: Instant,
        interim: Option<Interim>,
    ) -> impl Future<Output = Box<(http::Response<Self::Body>, Self::Note)>>;

    /// Returns another reference to stored content, for whoever keeps it until it has arrived at the client. It does not copy.
    fn share(stored: &Self::Stored) -> Bytes;

    /// Takes the next content of `body`, if that lies in a file: whoever takes it sends it, before anything else of the body. Asked for again
    /// after each piece.
    fn take_file(body: &mut Self::Body) -> Option<FileRegion>;

    /// Takes note that an exchange has ended.
    fn done(&self, exchange: &Exchange<'_>, note: &Self::Note);

    /// Takes note that a message was refused before there was a request; `status` was sent if the client still listened.
    fn refused(&self, peer: Peer, status: u16, reason: &'static str);
}
