//! HTTP/2, over TLS by ALPN and over plain connections with prior knowledge (RFC 9113 §3.2, §3.3).
//!
//! The framing is our own. A generator must cost little, since it shares the machine with what it measures. With 32 connections of 10 streams and
//! answers of 8 KB from nginx, a client made of the crate `h2` needed as much processor time as `h2load` (11.5 and 11.2 µs for an answer, interleaved)
//! before it recorded anything; this room needs 5.3 µs where `h2load` needs 7.4, records included. A client's side is small: requests are bytes
//! that are made once ([`Prepared`]), and answers are counted where they were read ([`session`]).

mod frame;
mod hpack;
mod session;
mod socket;

use std::{
    cell::RefCell,
    io,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::io::ReadBuf;

use self::{
    session::{Outgoing, Session},
    socket::Stream,
};
use super::{
    Worker,
    driver::{self, Arrival, Hub, Link, Room, Sink},
    sources::Sources,
};
use crate::{
    plan::Plan,
    record::{ErrorClass, Tally},
    requests::VisitorRequest,
};

/// The buffer that all connections of a worker read into, one after the other. What it has not taken is read next. A larger one leaves the
/// processor's cache: 256 KB cost 5 % more.
const BUFFER: usize = 64 << 10;

/// Reads of one connection, one after the other, before others have their turn: 1 MB.
const READS_AT_ONCE: u32 = 16;

/// Runs a worker.
pub(super) fn work(worker: Worker, streams: u16) -> Tally {
    driver::work::<Connection>(worker, streams)
}

/// Holds what the connections of a worker share.
pub(super) struct Shared {
    sources: RefCell<Sources>,
    requests: Vec<Prepared>,
    authorities: Vec<String>,
    buffer: RefCell<Vec<u8>>,
    scratch: RefCell<Vec<u8>>,
}

/// A request of the set, as bytes.
struct Prepared {
    block: Vec<u8>,
    body: Bytes,
    is_head: bool,
}

impl Prepared {
    fn all(plan: &Plan, authorities: &[String]) -> Vec<Self> {
        let set = &plan.requests;
        let prepare = |request: &crate::requests::Request| {
            let origin = usize::from(request.origin);
            let mut block = Vec::new();
            let scheme = if set.origins[origin].tls { "https" } else { "http" };
            let (method, fields, length) = (&request.method, &request.fields, request.body.len());
            frame::write_fields(&mut block, method, scheme, &authorities[origin], &request.target, fields, length);
            Self { block, body: request.body.clone(), is_head: method == "HEAD" }
        };
        set.requests.iter().map(prepare).collect()
    }
}

/// A connection.
pub(super) struct Connection {
    stream: Stream,
    session: Session,
    origin: u16,
    /// The number of bytes of the output that were written.
    written: usize,
    /// Whether TLS may have kept something back.
    must_flush: bool,
    /// Whether the server takes nothing any more. It may have answered before.
    is_deaf: bool,
}

impl Link for Connection {
    type Shared = Shared;

    fn share(worker: &Worker) -> Result<Shared, String> {
        let plan = &worker.plan;
        let authorities: Vec<_> = plan.requests.origins.iter().map(crate::requests::Origin::authority).collect();
        Ok(Shared {
            sources: RefCell::new(Sources::new(&plan.connections.sources, worker.share)),
            requests: Prepared::all(plan, &authorities),
            authorities,
            buffer: RefCell::new(vec![0; BUFFER]),
            scratch: RefCell::default(),
        })
    }

    async fn open(hub: Rc<Hub<Self>>, origin: u16, number: u64) -> Result<Self, ErrorClass> {
        let began = hub.clock.now();
        let target = &hub.targets[usize::from(origin)];
        let begun = hub.shared.sources.borrow_mut().connect(target).map_err(io::Error::from);
        let socket = match begun {
            Ok(begun) => socket::connected(begun, target).await,
            Err(error) => Err(error),
        };
        let socket = socket.map_err(|error| hub.not_connected(&error))?;
        let (stream, handshake) = if hub.plan.requests.origins[usize::from(origin)].tls {
            let tls = hub.tls.as_ref().ok_or(ErrorClass::Tls)?;
            let (stream, handshake) = socket::secure(socket, tls, origin, number, &hub.clock).await.map_err(|failure| match failure {
                socket::NotSecured::NoHttp2 => {
                    let whom = &hub.plan.requests.origins[usize::from(origin)];
                    hub.give_up(format!("{whom} does not offer HTTP/2 (h2 by ALPN): ask it with HTTP/1.1"));
                    ErrorClass::Protocol
                }
                socket::NotSecured::Handshake => ErrorClass::Tls,
                socket::NotSecured::Reset => ErrorClass::Reset,
            })?;
            (stream, Some(handshake))
        } else {
            (Stream::Plain(socket), None)
        };
        let now = hub.clock.now();
        hub.record(|recorder| recorder.connected(now, now.saturating_sub(began), handshake));
        Ok(Self { stream, session: Session::new(hub.streams), origin, written: 0, must_flush: false, is_deaf: false })
    }

    fn room(&self) -> Room {
        if self.is_deaf { Room::Never } else { self.session.room() }
    }

    fn send(&mut self, call: u32, asked: &VisitorRequest, hub: &Hub<Self>, now: Duration) {
        let wants_body = asked.wants_body;
        match &asked.own {
            None => {
                let Prepared { block, body, is_head } = &hub.shared.requests[asked.request as usize];
                self.session.send(call, &Outgoing { block, body, is_head: *is_head, wants_body }, now);
            }
            Some(own) => {
                let origin = usize::from(asked.origin);
                let scheme = if hub.plan.requests.origins[origin].tls { "https" } else { "http" };
                let mut block = hub.shared.scratch.borrow_mut();
                block.clear();
                let authority = &hub.shared.authorities[origin];
                frame::write_fields(&mut block, &own.method, scheme, authority, &own.target, &own.fields, own.body.len());
                let is_head = own.method == "HEAD";
                self.session.send(call, &Outgoing { block: &block, body: &own.body, is_head, wants_body }, now);
            }
        }
    }

    fn cancel(&mut self, call: u32) -> Option<Arrival> {
        self.session.cancel(call)
    }

    fn poll(&mut self, cx: &mut Context<'_>, hub: &Hub<Self>, sink: &mut impl Sink) -> Poll<()> {
        let mut reads = 0;
        loop {
            self.write(cx);
            if reads == READS_AT_ONCE {
                cx.waker().wake_by_ref();
                break;
            }
            reads += 1;
            let mut buffer = hub.shared.buffer.borrow_mut();
            let mut read = ReadBuf::new(&mut buffer);
            let came = match self.stream.poll_read(cx, &mut read) {
                Poll::Pending => break,
                Poll::Ready(came) => came,
            };
            let now = hub.clock.now();
            if came.is_err() || read.filled().is_empty() {
                self.session.close(None, now, sink);
                return Poll::Ready(());
            }
            let has_begun = self.session.has_begun();
            if self.session.read(read.filled(), now, &mut hub.shared.scratch.borrow_mut(), sink).is_err() {
                if !has_begun && read.filled().starts_with(b"HTTP/1") {
                    let whom = &hub.plan.requests.origins[usize::from(self.origin)];
                    hub.give_up(format!("{whom} does not speak HTTP/2 without TLS: it answers with HTTP/1"));
                }
                self.session.close(Some(ErrorClass::Protocol), now, sink);
                return Poll::Ready(());
            }
        }
        if self.session.has_ended() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Connection {
    /// Writes what there is to write, as far as the system takes it.
    fn write(&mut self, cx: &mut Context<'_>) {
        let out = &mut self.session.out;
        while self.written < out.len() && !self.is_deaf {
            match self.stream.poll_write(cx, &out[self.written..]) {
                Poll::Pending => return,
                Poll::Ready(Ok(written @ 1..)) => self.written += written,
                Poll::Ready(_) => self.is_deaf = true,
            }
            self.must_flush = true;
        }
        if self.must_flush && self.stream.poll_flush(cx).is_ready() {
            self.must_flush = false;
        }
        out.clear();
        self.written = 0;
    }
}
