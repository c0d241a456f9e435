//! The loop's work on its connections: it opens them, sends, reads, and tells what became of the requests on those that end.

use std::{cmp::Reverse, time::Duration};

use rustix::{event::epoll, io::Errno};

use super::{
    super::{
        client::{Kind, PendingRequest},
        connection::{Connection, Stage},
        response::{Closed, Expected, Progress},
        slots::Key,
        tls::{Plain, Session},
    },
    IDLE_MIN, Loop, Placed, REST_MAX, REST_MIN,
};
use crate::{
    answer::Outcome,
    record::{ErrorClass, Exhausted, Handshake, Sample},
};

/// Reads of one connection, one after the other, before others have their turn: 1 MB.
const READS_AT_ONCE: u32 = 16;

impl Loop {
    /// Puts a request on a connection of its client that has room, or on a new one. If the client has as many as it may have, the request comes back.
    pub(super) fn place(&mut self, key: Key, under_way: PendingRequest, now: Duration) -> Placed {
        let Some(client) = self.clients.get_mut(key) else { return Placed::Failed };
        let origin = under_way.asked.origin;
        let mut others = 0;
        let mut free = None;
        for key in &client.connections {
            let Some(connection) = self.connections.get(*key) else { continue };
            if connection.origin == origin {
                others += 1;
                if connection.under_way.len() < usize::from(self.pipeline) {
                    free = Some(*key);
                    break;
                }
            }
        }
        if let Some(connection) = free {
            client.under_way += 1;
            self.send(connection, under_way, now);
            return Placed::Yes;
        }
        let most = client.voices.first().map_or(1, |voice| voice.visitor.connections_max()).max(1);
        if others >= most {
            return Placed::NoRoom(under_way);
        }
        if self.connections.len() >= self.connections_max && !self.drop_idle() {
            return Placed::Full(under_way);
        }
        let Some(client) = self.clients.get_mut(key) else { return Placed::Failed };
        client.under_way += 1;
        let Some(target) = self.worker.targets.get(usize::from(origin)) else {
            self.not_connected(key, under_way, ErrorClass::Resolve, now);
            return Placed::Failed;
        };
        let connection = self.connections.next_key();
        let begun = Connection::begin(target, &mut self.sources, origin, key, now).and_then(|begun| {
            let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
            epoll::add(&self.epoll, begun.socket(), epoll::EventData::new_u64(connection.number()), flags)?;
            Ok(begun)
        });
        match begun {
            Ok(mut begun) => {
                let deadline = now + self.worker.plan.timeout;
                begun.deadline = Some(deadline);
                begun.under_way.push_back(under_way);
                client.connections.push(connection);
                self.connections.insert(begun);
                self.deadlines.put(connection, deadline);
                Placed::Yes
            }
            Err(error) => {
                match error {
                    Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => self.worker.recorder.exhausted(Exhausted::Ports),
                    Errno::MFILE | Errno::NFILE => self.worker.recorder.exhausted(Exhausted::Descriptors),
                    _ => {}
                }
                self.not_connected(key, under_way, class_of_connect(error), now);
                Placed::Failed
            }
        }
    }

    /// Sends a request on a connection, or lets it wait until the connection is made.
    fn send(&mut self, key: Key, mut under_way: PendingRequest, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.stage != Stage::Open {
            connection.under_way.push_back(under_way);
            return;
        }
        let sent = *under_way.sent.get_or_insert(now);
        under_way.after_idleness = connection.idle_since.is_some_and(|since| now.saturating_sub(since) >= IDLE_MIN);
        connection.idle_since = None;
        let bytes = match &under_way.asked.own {
            None => &self.messages.made(under_way.asked.request).bytes,
            Some(own) => {
                self.out.clear();
                self.messages.write_own(&mut self.out, under_way.asked.origin, own);
                &self.out
            }
        };
        let done = if self.pipeline > 1 {
            if self.held.last() != Some(&key) {
                self.held.push(key);
            }
            connection.keep(bytes)
        } else {
            connection.send(bytes)
        };
        connection.under_way.push_back(under_way);
        connection.deadline.get_or_insert(sent + self.worker.plan.timeout);
        if done.is_err() {
            // What the server said before it went is still to be read.
            self.suspects.push(key);
        }
    }

    // Connections.

    pub(super) fn event(&mut self, key: Key, flags: epoll::EventFlags) {
        use epoll::EventFlags as Flags;
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.stage == Stage::Connecting {
            let now = self.worker.clock.now();
            if flags.intersects(Flags::ERR | Flags::HUP)
                && let Some(error) = connection.error()
            {
                self.lose(key, class_of_connect(error), now);
                return;
            }
            if !flags.contains(Flags::OUT) {
                return;
            }
            let origin = connection.origin;
            if self.pipeline > 1 {
                let _ = connection.send_at_once();
            }
            match self.worker.tls.as_ref().filter(|_| self.worker.plan.requests.origins[usize::from(origin)].tls) {
                None => self.connected(key, None, now),
                Some(tls) => {
                    let Ok(mut session) = Session::begin(tls, origin, self.secured, now) else {
                        self.lose(key, ErrorClass::Tls, now);
                        return;
                    };
                    self.secured += 1;
                    let _ = connection.send_at_once();
                    // If this fails, the socket says so when it is read.
                    let _ = session.flush(connection.socket());
                    connection.stage = Stage::Handshaking;
                    connection.tls = Some(Box::new(session));
                }
            }
        } else if flags.contains(Flags::OUT) && connection.flush().is_err() {
            self.read(key, true);
            return;
        }
        let ends = flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR);
        if ends && let Some(connection) = self.connections.get_mut(key) {
            connection.is_closing = true;
        }
        if ends || flags.contains(Flags::IN) {
            self.read(key, ends);
        }
    }

    /// Sends the requests that have waited for a connection.
    fn connected(&mut self, key: Key, handshake: Option<Handshake>, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.stage = Stage::Open;
        connection.deadline = None;
        let took = now.saturating_sub(connection.began);
        let wait = std::mem::take(&mut connection.under_way);
        if let Some(client) = self.clients.get_mut(connection.client) {
            client.failures = 0;
        }
        self.worker.recorder.connected(now, took, handshake);
        for under_way in wait {
            self.send(key, under_way, now);
        }
        self.send_held();
    }

    /// Reads what has come. If `to_the_end`, a short read is not taken as a sign that there is no more.
    pub(super) fn read(&mut self, key: Key, to_the_end: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut reads = 0;
        while let Some(connection) = self.connections.get_mut(key) {
            if reads == READS_AT_ONCE {
                self.unread.push(key);
                break;
            }
            reads += 1;
            let received = connection.receive(&mut buffer);
            let now = self.worker.clock.now();
            if self.gives_up.is_some_and(|gives_up| now > gives_up) {
                // It was unfinished.
                break;
            }
            match received {
                Ok(None) => break,
                // Servers close a connection whose handshake they do not like. One that was killed resets those that it had not taken yet.
                Ok(Some(0)) if connection.stage == Stage::Handshaking => self.lose(key, ErrorClass::Tls, now),
                // Without the end that TLS has of its own, an answer may have been cut off by somebody else.
                Ok(Some(0)) if connection.tls.is_some() => self.lose(key, ErrorClass::Reset, now),
                Ok(Some(0)) => self.closed(key, now),
                Err(_) => self.lose(key, ErrorClass::Reset, now),
                Ok(Some(length)) => {
                    if connection.tls.is_some() {
                        self.received_secured(key, &buffer[..length], now);
                    } else {
                        self.received(key, &buffer[..length], now);
                    }
                    if length < buffer.len() && !to_the_end {
                        break;
                    }
                }
            }
        }
        self.buffer = buffer;
        self.send_held();
    }

    /// Takes what has come over a connection with TLS.
    fn received_secured(&mut self, key: Key, mut bytes: &[u8], now: Duration) {
        let mut plain = std::mem::take(&mut self.plain);
        while !bytes.is_empty()
            && let Some(connection) = self.connections.get_mut(key)
        {
            if connection.take_secured(&mut bytes).is_err() {
                self.lose(key, ErrorClass::Tls, now);
                break;
            }
            if connection.stage == Stage::Handshaking {
                let Some(handshake) = connection.tls.as_ref().and_then(|tls| tls.handshake(now)) else { continue };
                self.connected(key, Some(handshake), now);
            }
            while let Some(tls) = self.connections.get_mut(key).and_then(|connection| connection.tls.as_mut()) {
                match tls.read(&mut plain) {
                    Plain::Bytes(length) => self.received(key, &plain[..length], now),
                    Plain::Closed => self.closed(key, now),
                    Plain::NoMore => break,
                }
            }
        }
        self.plain = plain;
    }

    /// Takes what has come over a connection.
    fn received(&mut self, key: Key, mut bytes: &[u8], now: Duration) {
        while !bytes.is_empty() {
            let Some(connection) = self.connections.get_mut(key) else { return };
            if connection.deadline.is_some_and(|deadline| deadline < now) {
                self.lose(key, ErrorClass::Timeout, now);
                return;
            }
            let Some(front) = connection.under_way.front() else {
                // Nobody has asked for this: the connection is of no use any more.
                self.drop_connection(key);
                return;
            };
            let first_byte = *connection.first_byte.get_or_insert(now);
            let Some(client) = self.clients.get_mut(connection.client) else { return };
            let visitor = &mut client.voices[usize::from(front.voice)].visitor;
            let expected = Expected { head: front.head, content: front.asked.wants_body };
            let progress = connection.reader.read(bytes, expected, |whole| {
                (visitor.answered(&front.asked, &whole.answer, now), whole.answer.status, whole.bytes, whole.keeps)
            });
            let (used, (judged, status, length, keeps)) = match progress {
                Ok(Progress::Incomplete) => return,
                Ok(Progress::Whole { used, done }) => (used, done),
                Err(_) => {
                    self.lose(key, ErrorClass::Protocol, now);
                    return;
                }
            };
            bytes = &bytes[used..];
            connection.first_byte = None;
            let Some(front) = connection.under_way.pop_front() else { return };
            let timeout = self.worker.plan.timeout;
            connection.deadline = connection.under_way.front().map(|next| next.sent.unwrap_or(now) + timeout);
            connection.idle_since = connection.under_way.is_empty().then_some(now);
            client.under_way -= 1;
            self.unended -= 1;
            self.worker.recorder.ended(&Sample {
                intended: front.intended,
                sent: front.sent.unwrap_or(now),
                first_byte: Some(first_byte),
                ended: now,
                status,
                bytes: length,
                outcome: judged.outcome,
                origin_reached: judged.origin_reached,
                page: judged.page,
                error: judged.error,
            });
            let client = connection.client;
            // More bytes than were asked for: what follows them cannot be trusted.
            let is_last = connection.under_way.is_empty();
            let goes_on = keeps && !self.no_keepalive && (bytes.is_empty() || !is_last) && !(connection.is_closing && is_last);
            if !goes_on {
                connection.ends = true;
                self.lose(key, ErrorClass::Reset, now);
                bytes = &[];
            }
            self.ask(client, front.voice, now);
        }
    }

    /// Ends a connection that the server has closed in good order.
    fn closed(&mut self, key: Key, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if let Some(front) = connection.under_way.front()
            && let Some(client) = self.clients.get_mut(connection.client)
        {
            let visitor = &mut client.voices[usize::from(front.voice)].visitor;
            let expected = Expected { head: front.head, content: front.asked.wants_body };
            let closed = connection
                .reader
                .closed(expected, |whole| (visitor.answered(&front.asked, &whole.answer, now), whole.answer.status, whole.bytes));
            if let Closed::Whole((judged, status, bytes)) = closed
                && let Some(front) = connection.under_way.pop_front()
            {
                client.under_way -= 1;
                self.unended -= 1;
                self.worker.recorder.ended(&Sample {
                    intended: front.intended,
                    sent: front.sent.unwrap_or(now),
                    first_byte: connection.first_byte.take(),
                    ended: now,
                    status,
                    bytes,
                    outcome: judged.outcome,
                    origin_reached: judged.origin_reached,
                    page: judged.page,
                    error: judged.error,
                });
                self.ready.push_back((connection.client, front.voice));
            }
        }
        self.lose(key, ErrorClass::Reset, now);
    }

    /// Ends a connection. `class` is what that means for the request whose answer was to come next; those behind it were not answered.
    pub(super) fn lose(&mut self, key: Key, class: ErrorClass, now: Duration) {
        let Some(connection) = self.drop_connection(key) else { return };
        let came = connection.reader.bytes();
        let begun = came > 0;
        let connecting = connection.stage != Stage::Open;
        let timeout = self.worker.plan.timeout;
        for (place, mut under_way) in connection.under_way.into_iter().enumerate() {
            if connecting {
                let late = if class == ErrorClass::Timeout { connection.began + timeout } else { now };
                self.not_connected(connection.client, under_way, class, late);
                continue;
            }
            let Some(client) = self.clients.get_mut(connection.client) else { return };
            client.under_way -= 1;
            let began = begun && place == 0;
            let class = match class {
                ErrorClass::Reset if began => ErrorClass::Truncated,
                class if place == 0 || class == ErrorClass::Unfinished => class,
                _ => ErrorClass::Reset,
            };
            // A server may close a connection that has been idle, just when the next request is on its way; and those in a pipeline behind one that
            // is the last have not been looked at (RFC 9112 §9.3.2, §9.5).
            let behind = place > 0 || connection.ends;
            let idle = !behind && under_way.after_idleness && !under_way.again;
            if class == ErrorClass::Reset && (idle || behind) && under_way.idempotent {
                under_way.again |= idle;
                self.worker.recorder.resent();
                self.ready.push_back((connection.client, under_way.voice));
                client.again.push_back(under_way);
                continue;
            }
            let sent = under_way.sent.unwrap_or(now);
            let ended = if class == ErrorClass::Timeout { sent + timeout } else { now };
            let first_byte = connection.first_byte.filter(|_| began);
            self.failed(connection.client, &under_way, class, first_byte, if began { came } else { 0 }, ended);
            self.ready.push_back((connection.client, under_way.voice));
        }
    }

    /// Ends a request for which no connection could be made. A client that stays rests before it tries again.
    fn not_connected(&mut self, key: Key, under_way: PendingRequest, class: ErrorClass, now: Duration) {
        let Some(client) = self.clients.get_mut(key) else { return };
        client.under_way -= 1;
        client.failures += 1;
        let rest = (REST_MIN * 2_u32.saturating_pow(client.failures - 1)).min(REST_MAX);
        let rests = client.kind == Kind::Stays || client.failures > 1 && client.kind == Kind::Visits;
        self.failed(key, &under_way, class, None, 0, now);
        if rests {
            self.resting.push(Reverse((now + rest, key.number(), under_way.voice)));
        } else {
            self.ready.push_back((key, under_way.voice));
        }
    }

    /// Counts a request that has failed, and tells its visitor.
    pub(super) fn failed(
        &mut self,
        key: Key,
        under_way: &PendingRequest,
        class: ErrorClass,
        first_byte: Option<Duration>,
        bytes: u64,
        ended: Duration,
    ) {
        self.unended -= 1;
        let page = self.clients.get_mut(key).and_then(|client| {
            let voice = &mut client.voices[usize::from(under_way.voice)];
            voice.visitor.failed(&under_way.asked, ended)
        });
        self.worker.recorder.ended(&Sample {
            intended: under_way.intended,
            sent: under_way.sent.unwrap_or(under_way.intended),
            first_byte,
            ended,
            status: 0,
            bytes,
            outcome: Outcome::Unknown,
            origin_reached: None,
            page,
            error: Some(class),
        });
    }

    /// Looks whether a connection has waited too long, and sees to it that it is looked at again.
    pub(super) fn look_at_deadline(&mut self, key: Key, now: Duration) {
        let Some(connection) = self.connections.get(key) else { return };
        match connection.deadline {
            Some(deadline) if deadline <= now => self.lose(key, ErrorClass::Timeout, now),
            Some(deadline) => self.deadlines.put(key, deadline),
            None => self.deadlines.put(key, now + self.worker.plan.timeout),
        }
    }

    pub(super) fn drop_connection(&mut self, key: Key) -> Option<Connection> {
        let connection = self.connections.remove(key)?;
        if let Some(client) = self.clients.get_mut(connection.client) {
            client.connections.retain(|other| *other != key);
        }
        Some(connection)
    }
}

/// Returns the class of a failure to connect.
const fn class_of_connect(error: Errno) -> ErrorClass {
    match error {
        Errno::CONNREFUSED => ErrorClass::Refused,
        Errno::CONNRESET => ErrorClass::Reset,
        _ => ErrorClass::Connect,
    }
}
