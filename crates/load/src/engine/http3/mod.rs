//! HTTP/3, a preview: on the crates `quinn` and `h3` (RFC 9114).
//!
//! It costs several times what HTTP/2 costs here, and the report says so where the generator was the limit. Early data is never sent: a server may answer
//! it twice. A closed UDP port is told by nobody, so a refused connection is a timeout here, and so is a server that was killed. A request that has waited
//! for half of its timeout asks the server for a sign of life; if none has come when it times out, its connection is left, and the next request makes
//! a new one. A server that is killed later than that costs one more timeout. Whether a session was resumed is not told by `quinn`.

mod endpoint;
mod exchange;
mod look;

use std::{
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use quinn::VarInt;
use smallvec::SmallVec;
use tokio::{
    task::{AbortHandle, JoinSet},
    time::{Instant, Sleep, sleep},
};

pub use self::look::{NotMet, look};
use self::{
    endpoint::Endpoints,
    exchange::{Finished, Outgoing},
};
use super::{
    Worker,
    driver::{self, Arrival, Hub, Link, Room, Sink},
    target::Target,
};
use crate::{
    answer::{Answer, Field},
    record::{ErrorClass, Handshake, Tally},
    requests::VisitorRequest,
};

/// Runs a worker.
pub(super) fn work(worker: Worker, streams: u16) -> Tally {
    driver::work::<Connection>(worker, streams)
}

/// Holds what the connections of a worker share.
pub(super) struct Shared {
    requests: Vec<Outgoing>,
    endpoints: Endpoints,
}

/// A connection.
pub(super) struct Connection {
    quic: quinn::Connection,
    control: h3::client::Connection<h3_quinn::Connection, Bytes>,
    sender: h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>,
    exchanges: JoinSet<Finished>,
    under_way: Vec<PendingRequest>,
    streams: usize,
    is_going_away: bool,
    signs: Signs,
}

/// A request under way.
struct PendingRequest {
    call: u32,
    exchange: AbortHandle,
    /// The time at which the server is asked for a sign of life; none: it was asked.
    asks_at: Option<Duration>,
    /// The datagrams that had come on the connection when it was sent, or when the server was asked for a sign of life.
    heard: u64,
}

/// The means to ask the server for a sign of life.
struct Signs {
    /// Set to the earliest moment at which a request may ask, or to one before it.
    timer: Pin<Box<Sleep>>,
    is_set: bool,
    /// The number of times that the server was asked.
    asked: u32,
}

impl Link for Connection {
    type Shared = Shared;

    fn share(worker: &Worker) -> Result<Shared, String> {
        let plan = &worker.plan;
        let set = &plan.requests;
        if plan.connections.unix.is_some() {
            return Err("HTTP/3 goes over UDP, and not over a Unix socket".to_owned());
        }
        let prepare = |request: &crate::requests::Request| {
            let authority = set.origins[usize::from(request.origin)].authority();
            exchange::prepare(&authority, &request.method, &request.target, &request.fields, &request.body)
                .map_err(|why| format!("{} {}: {why}", request.method, request.target))
        };
        Ok(Shared {
            requests: set.requests.iter().map(prepare).collect::<Result<_, _>>()?,
            endpoints: Endpoints::new(plan, worker.tls.as_deref())?,
        })
    }

    async fn open(hub: Rc<Hub<Self>>, origin: u16, number: u64) -> Result<Self, ErrorClass> {
        let began = hub.clock.now();
        let tls = hub.tls.as_ref().ok_or(ErrorClass::Tls)?;
        let Target::Address(address) = hub.targets[usize::from(origin)] else { return Err(ErrorClass::Connect) };
        let whom = &hub.plan.requests.origins[usize::from(origin)];
        let connecting = hub.shared.endpoints.connect(address, &whom.host, number, tls.resumes(number));
        let connecting = connecting.map_err(|error| error.map_or(ErrorClass::Connect, |error| hub.not_connected(&error)))?;
        let quic = connecting.await.map_err(|error| {
            if endpoint::lacks_http3(&error) {
                hub.give_up(format!("{whom} does not offer HTTP/3 (h3 by ALPN)"));
            }
            endpoint::class(&error)
        })?;
        let took = hub.clock.now().saturating_sub(began);
        let mut builder = h3::client::builder();
        builder.send_grease(false);
        let (control, sender) = builder.build(h3_quinn::Connection::new(quic.clone())).await.map_err(|_| ErrorClass::Reset)?;
        let now = hub.clock.now();
        let handshake = Handshake { took, resumed: false };
        hub.record(|recorder| recorder.connected(now, now.saturating_sub(began), Some(handshake)));
        let (exchanges, under_way, streams) = (JoinSet::new(), Vec::new(), hub.streams);
        let signs = Signs { timer: Box::pin(sleep(Duration::ZERO)), is_set: false, asked: 0 };
        Ok(Self { quic, control, sender, exchanges, under_way, streams, is_going_away: false, signs })
    }

    fn room(&self) -> Room {
        if self.is_going_away { Room::Never } else { Room::For(self.streams.saturating_sub(self.under_way.len())) }
    }

    fn send(&mut self, call: u32, asked: &VisitorRequest, hub: &Hub<Self>, now: Duration) {
        let outgoing = match &asked.own {
            None => Ok(hub.shared.requests[asked.request as usize].clone()),
            Some(own) => {
                let authority = hub.plan.requests.origins[usize::from(asked.origin)].authority();
                exchange::prepare(&authority, &own.method, &own.target, &own.fields, &own.body)
            }
        };
        let (sender, clock, wants_body) = (self.sender.clone(), hub.clock.clone(), asked.wants_body);
        let exchange = async move { Finished { call, ended: exchange::run(sender, outgoing, wants_body, clock).await } };
        let (exchange, heard) = (self.exchanges.spawn_local(exchange), self.heard());
        self.under_way.push(PendingRequest { call, exchange, asks_at: Some(now + hub.plan.timeout / 2), heard });
    }

    fn cancel(&mut self, call: u32) -> Option<Arrival> {
        let at = self.under_way.iter().position(|it| it.call == call)?;
        let PendingRequest { exchange, heard, .. } = self.under_way.swap_remove(at);
        exchange.abort();
        // A server that is there acknowledges what it gets, also where it does not answer. One that was killed may have acknowledged the request before,
        // but no sign of life that it was asked for later. One that was started anew knows nothing of this connection.
        self.is_going_away |= self.heard() == heard;
        None
    }

    fn poll(&mut self, cx: &mut Context<'_>, hub: &Hub<Self>, sink: &mut impl Sink) -> Poll<()> {
        if !self.is_going_away && self.control.poll_close(cx).is_ready() {
            self.is_going_away = true;
        }
        while let Poll::Ready(Some(finished)) = self.exchanges.poll_join_next(cx) {
            // An exchange that was given up has ended for everybody.
            let Ok(Finished { call, ended }) = finished else { continue };
            let Some(at) = self.under_way.iter().position(|it| it.call == call) else { continue };
            self.under_way.swap_remove(at);
            match ended {
                exchange::Ended::Answered { head, body, arrival } => {
                    let fields: SmallVec<[Field<'_>; 24]> =
                        head.headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes())).collect();
                    let answer = Answer { status: head.status.as_u16(), fields: &fields, body: body.as_deref() };
                    sink.answered(call, &answer, arrival);
                }
                exchange::Ended::Failed(class, arrival) => sink.failed(call, class, arrival),
                exchange::Ended::Refused { by_connection, arrival } => {
                    self.is_going_away |= by_connection;
                    sink.refused(call, arrival);
                }
            }
        }
        if self.is_going_away && self.under_way.is_empty() {
            return Poll::Ready(());
        }
        self.ask_for_signs(cx, hub);
        Poll::Pending
    }

    async fn end(shared: &Shared) {
        shared.endpoints.close();
        // Their tasks send what says so.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }
}

impl Connection {
    /// Returns the number of datagrams that have come.
    fn heard(&self) -> u64 {
        self.quic.stats().udp_rx.datagrams
    }

    /// Asks the server for a sign of life, for the requests that have waited for half of their timeout.
    ///
    /// `quinn` has no call that sends a PING. What it can be made to send, and the server must acknowledge (RFC 9000 §13.2.1), is MAX_DATA: each asking
    /// widens the window by a byte. Keep-alive packets would do, too, but would go to every idle connection of a run.
    fn ask_for_signs(&mut self, cx: &mut Context<'_>, hub: &Hub<Self>) {
        // The timer is moved only when it has rung, or was not set: most requests are answered long before.
        while !self.signs.is_set || self.signs.timer.as_mut().poll(cx).is_ready() {
            let now = hub.clock.now();
            let is_due = |request: &PendingRequest| request.asks_at.is_some_and(|at| at <= now);
            if self.under_way.iter().any(is_due) {
                let heard = self.heard();
                for request in self.under_way.iter_mut().filter(|request| is_due(request)) {
                    (request.asks_at, request.heard) = (None, heard);
                }
                self.signs.asked += 1;
                self.quic.set_receive_window(VarInt::from_u32(endpoint::WINDOW + self.signs.asked));
            }
            let next = self.under_way.iter().filter_map(|request| request.asks_at).min();
            self.signs.is_set = next.is_some();
            let Some(next) = next else { return };
            self.signs.timer.as_mut().reset(Instant::now() + next.saturating_sub(now));
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.quic.close(endpoint::NO_ERROR, b"");
    }
}
