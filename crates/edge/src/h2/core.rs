//! What both sides of a connection have said: frames in, frames out, windows and streams (RFC 9113). No socket, no task, no service.
//!
//! [`Core::next`] takes bytes as they come and says what they ask for; what is answered is put into the [`Output`], in the order that
//! priorities and windows allow. Every request is in `streams` until both its sides have ended and nobody holds it.

use std::{
    collections::VecDeque,
    ops::ControlFlow,
    rc::Rc,
    task::Waker,
    time::{Duration, Instant},
};

use bytes::{Buf as _, Bytes};
use http::{HeaderMap, StatusCode};

use super::{
    content::{Feed, Taken},
    frame::{self, Code, Head, PAYLOAD_MAX, PREFACE, flag, kind, setting},
    guard::{Guard, name_of_flood},
    output::Output,
    piece::Piece,
    priority::{self, Priority},
};
use crate::{
    h1::head::Reject,
    head::{Gathering, Nature, Said, Text},
    hpack::{Decoder, Encoder},
    limits::Limits,
};

/// Streams that a client may have at once.
pub(super) const STREAMS_MAX: usize = 128;

/// What a client may send of contents before they are read: for a stream, and for all of them together.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// The window that everybody has at first (RFC 9113 §6.9.2), and the largest (§6.9.1).
const FIRST_WINDOW: i64 = 65_535;
const WINDOW_MAX: i64 = 0x7fff_ffff;

/// Bytes that wait for the socket. Stored pages among them lie where they are; everything else is ours.
pub(super) const OUTPUT_MAX: usize = 64 * 1024;

/// What a stream may have waiting for its window, beyond stored pages; what all of them may; and what each may in any case, so that those whose
/// client takes nothing do not hold up the others.
const QUEUE_MAX: usize = 64 * 1024;
const QUEUES_MAX: usize = 512 * 1024;
const QUEUE_MIN: usize = 4 * 1024;

/// Bytes of a head on its way in, still coded: a code may be longer than what it stands for (RFC 7541 §5.2), but not for text.
const BLOCK_FACTOR: usize = 2;

/// The dynamic tables of both directions (RFC 7541 §4.2), in bytes.
const TABLE_BYTES: usize = 4096;

/// Streams that one client may make us reset before it is cut off.
const MISBEHAVIOURS_MAX: usize = 128;

/// Streams that are remembered after their end, so that what was under way then is told from what is wrong.
const ENDED_MAX: usize = 64;

/// What a client may still send when its request is answered, and for how long.
const LEFT_MAX: usize = 256 * 1024;
const LEFT_TIMEOUT: Duration = Duration::from_secs(2);

/// The ping between the two goodbyes (RFC 9113 §6.8).
const GOODBYE: [u8; 8] = *b"goodbye.";

/// Why the connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: Code,
    pub(super) reason: &'static str,
    /// It was not wrong, but too much: counted.
    pub(super) is_flood: bool,
}

const fn wrong(code: Code, reason: &'static str) -> Fault {
    Fault { code, reason, is_flood: false }
}

const fn flood(reason: &'static str) -> Fault {
    Fault { code: Code::ENHANCE_YOUR_CALM, reason, is_flood: true }
}

/// What bytes asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A request, whose text [`Core::lend_text`] has; `ends`: it has no content.
    Request { stream: u32, ends: bool, nature: Nature },
    /// A request that is not let through.
    Refuse { stream: u32, reject: Reject },
}

/// How far a stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// Everything that was to be sent is in the output.
    Complete,
    /// Reset, by whichever side.
    Reset,
}

#[derive(Debug)]
struct Stream<H> {
    id: u32,
    /// The client has sent END_STREAM.
    incoming_ended: bool,
    /// Who wants its content.
    feed: Option<Feed>,
    /// The length that its head announced, and what came.
    expected: Option<u64>,
    received: u64,
    /// What the client may still send, and what it may be allowed again.
    receive_window: i64,
    credit: u32,
    /// What came after the answer: nobody wants it.
    left: usize,
    send_window: i64,
    queue: VecDeque<Piece<H>>,
    queued: usize,
    /// END_STREAM follows the queue.
    ends: bool,
    over: Option<Over>,
    /// Somebody answers it: it stays here until that has seen its end.
    held: bool,
    waker: Option<Waker>,
    priority: Priority,
    /// When it was last its turn among its equals.
    turn: u64,
    /// When something of it last left, or its window was opened.
    moved: Instant,
    sent: u64,
}

impl<H: AsRef<[u8]>> Stream<H> {
    /// Whether something of it could leave, as far as its own window goes.
    fn is_ready(&self) -> bool {
        self.over.is_none() && (self.queue.is_empty() && self.ends || !self.queue.is_empty() && self.send_window > 0)
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    const fn is_waiting(&self) -> bool {
        self.over.is_none() && (self.queued > 0 || self.ends)
    }
}

/// A header block that goes on in CONTINUATION frames.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends: bool,
    depends_on_itself: bool,
    bytes: Vec<u8>,
}

/// How far the connection's beginning has come (RFC 9113 §3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Began {
    No,
    Preface,
    Yes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    /// The client has been told, and a ping is on its way: requests that were sent before it came are still taken.
    Told,
    /// What comes now is not taken.
    Yes,
}

/// Numbers of the last streams that ended, as a ring.
#[derive(Debug)]
struct Ended([u32; ENDED_MAX], usize);

impl Ended {
    const fn push(&mut self, stream: u32) {
        self.0[self.1 % ENDED_MAX] = stream;
        self.1 += 1;
    }

    fn contains(&self, stream: u32) -> bool {
        self.0.contains(&stream)
    }
}

#[derive(Debug)]
pub(super) struct Core<H> {
    limits: Limits,
    decoder: Decoder,
    encoder: Encoder,
    text: Text,
    guard: Guard,
    /// In the order of their numbers.
    streams: Vec<Stream<H>>,
    /// The client's last.
    last: u32,
    ended: Ended,
    /// Those that ended because we reset them: their frames may still be under way.
    reset: Ended,
    began: Began,
    block: Option<Box<Block>>,
    /// What the client takes at first on a stream, in a frame, and for the whole connection.
    client_window: i64,
    client_frame: usize,
    send_window: i64,
    receive_window: i64,
    credit: u32,
    misbehaviours: usize,
    /// Streams with something in their queues.
    waiting: usize,
    /// Bytes in all queues, beyond stored pages.
    queued: usize,
    turns: u64,
    leaving: Leaving,
    client_left: bool,
    /// The time of this turn.
    pub(super) now: Instant,
    pub(super) output: Output<H>,
}

impl<H: AsRef<[u8]>> Core<H> {
    /// A connection of which nothing is known; our half of the preface is in its output.
    pub(super) fn new(limits: Limits, now: Instant) -> Self {
        let mut output = Output::new();
        let list_max = u32::try_from(limits.header_bytes).unwrap_or(u32::MAX);
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, u32::try_from(STREAMS_MAX).unwrap_or(u32::MAX)),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (setting::MAX_HEADER_LIST_SIZE, list_max),
            (setting::ENABLE_CONNECT_PROTOCOL, 1),
            (setting::NO_RFC7540_PRIORITIES, 1),
        ];
        output.write(|out| {
            frame::write_settings(&settings, out);
            frame::write_window_update(0, CONNECTION_WINDOW - 65_535, out);
        });
        Self {
            limits,
            decoder: Decoder::new(TABLE_BYTES),
            encoder: Encoder::new(),
            text: Text::default(),
            guard: Guard::new(),
            streams: Vec::new(),
            last: 0,
            ended: Ended([0; ENDED_MAX], 0),
            reset: Ended([0; ENDED_MAX], 0),
            began: Began::No,
            block: None,
            client_window: FIRST_WINDOW,
            client_frame: PAYLOAD_MAX,
            send_window: FIRST_WINDOW,
            receive_window: i64::from(CONNECTION_WINDOW),
            credit: 0,
            misbehaviours: 0,
            waiting: 0,
            queued: 0,
            turns: 0,
            leaving: Leaving::No,
            client_left: false,
            now,
            output,
        }
    }

    /// Lends the head of the request that came last, so that it can be answered while it is read.
    pub(super) fn lend_text(&mut self) -> Text {
        std::mem::take(&mut self.text)
    }

    pub(super) fn give_back(&mut self, text: Text) {
        self.text = text;
    }

    /// Gives back memory that is not needed while nothing happens.
    pub(super) fn shrink(&mut self) {
        self.output.shrink();
        self.text.shrink();
    }

    /// Whether part of a head has come.
    pub(super) const fn is_within_head(&self) -> bool {
        self.block.is_some()
    }

    /// Whether the client has begun as it must.
    pub(super) fn has_begun(&self) -> bool {
        self.began == Began::Yes
    }

    /// A request has been answered to its end: its client is worth some patience.
    pub(super) fn answered(&mut self) {
        self.guard.answered();
    }

    pub(super) fn tick(&mut self, seconds: u32) {
        self.guard.tick(seconds);
    }

    pub(super) fn left(&mut self, bytes: usize) {
        self.output.advance(bytes);
        self.guard.sent(bytes);
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// Whether there is nothing left to do, after either side has said goodbye.
    pub(super) fn is_finished(&self) -> bool {
        (self.client_left || self.leaving == Leaving::Yes) && self.streams.is_empty()
    }

    // --- what the client says ---

    /// Takes one frame, or the preface, from the beginning of `bytes`. Returns how many bytes that was (0: it is not all there) and what it
    /// asks for.
    ///
    /// # Errors
    /// When the connection is over; [`Core::fail`] is to be told.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<(usize, Option<Event>), Fault> {
        if self.began == Began::No {
            let here = bytes.len().min(PREFACE.len());
            if bytes[..here] != PREFACE[..here] {
                return Err(wrong(Code::PROTOCOL_ERROR, "not the preface"));
            }
            if here < PREFACE.len() {
                return Ok((0, None));
            }
            self.began = Began::Preface;
            return Ok((PREFACE.len(), None));
        }
        let Some(head) = Head::read(bytes) else { return Ok((0, None)) };
        if head.length > PAYLOAD_MAX {
            return Err(wrong(Code::FRAME_SIZE_ERROR, "a frame that is too long"));
        }
        let Some(payload) = bytes.get(frame::HEAD..frame::HEAD + head.length) else { return Ok((0, None)) };
        if !self.guard.passes(head) {
            return Err(flood(name_of_flood(head)));
        }
        let event = self.take(head, payload)?;
        Ok((frame::HEAD + head.length, event))
    }

    fn take(&mut self, head: Head, payload: &[u8]) -> Result<Option<Event>, Fault> {
        if self.began == Began::Preface {
            if head.kind != kind::SETTINGS || head.has(flag::ACK) {
                return Err(wrong(Code::PROTOCOL_ERROR, "no settings at first"));
            }
            self.began = Began::Yes;
        }
        if let Some(block) = &self.block
            && (head.kind != kind::CONTINUATION || head.stream != block.stream)
        {
            return Err(wrong(Code::PROTOCOL_ERROR, "a frame within a head"));
        }
        match head.kind {
            kind::DATA => self.take_data(head, payload).map(|()| None),
            kind::HEADERS => self.take_headers(head, payload),
            kind::CONTINUATION => self.take_continuation(head, payload),
            kind::PRIORITY => self.take_priority(head, payload).map(|()| None),
            kind::RST_STREAM => self.take_reset(head, payload).map(|()| None),
            kind::SETTINGS => self.take_settings(head, payload).map(|()| None),
            kind::PUSH_PROMISE => Err(wrong(Code::PROTOCOL_ERROR, "a push from a client")),
            kind::PING => self.take_ping(head, payload).map(|()| None),
            kind::GOAWAY if head.stream != 0 => Err(wrong(Code::PROTOCOL_ERROR, "a goodbye on a stream")),
            kind::GOAWAY if payload.len() < 8 => Err(wrong(Code::FRAME_SIZE_ERROR, "a short goodbye")),
            kind::GOAWAY => {
                self.client_left = true;
                Ok(None)
            }
            kind::WINDOW_UPDATE => self.take_window_update(head, payload).map(|()| None),
            kind::PRIORITY_UPDATE => self.take_priority_update(head, payload).map(|()| None),
            // RFC 9113 §4.1: what nobody knows is left alone.
            _ => Ok(None),
        }
    }

    fn find(&self, stream: u32) -> Option<usize> {
        // Nearly always the last one.
        match self.streams.last() {
            Some(last) if last.id == stream => Some(self.streams.len() - 1),
            _ => self.streams.binary_search_by_key(&stream, |stream| stream.id).ok(),
        }
    }

    /// Where a stream is that has not been reset.
    fn find_whole(&self, stream: u32) -> Option<usize> {
        self.find(stream).filter(|&at| self.streams[at].over != Some(Over::Reset))
    }

    /// The stream of a frame that may come late: `None`, where it has ended already.
    fn known(&self, head: Head) -> Result<Option<usize>, Fault> {
        if head.stream == 0 {
            return Err(wrong(Code::PROTOCOL_ERROR, "a frame without a stream"));
        }
        if head.stream > self.last || head.stream.is_multiple_of(2) {
            return Err(wrong(Code::PROTOCOL_ERROR, "a frame of a stream that has not begun"));
        }
        Ok(self.find_whole(head.stream))
    }

    fn take_data(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        let at = self.known(head)?;
        let data = frame::unpadded(head, payload).ok_or(wrong(Code::PROTOCOL_ERROR, "more padding than frame"))?;
        let flow = payload.len() as i64;
        self.receive_window -= flow;
        if self.receive_window < 0 {
            return Err(wrong(Code::FLOW_CONTROL_ERROR, "more content than the connection has room for"));
        }
        let Some(at) = at else {
            self.allow_connection(payload.len());
            // What we reset, the client may not know of yet (§5.1).
            if self.reset.contains(head.stream) {
                return Ok(());
            }
            return Err(wrong(Code::STREAM_CLOSED, "content after its end"));
        };
        let stream = &mut self.streams[at];
        if stream.incoming_ended {
            self.allow_connection(payload.len());
            return self.misbehaved(at, Code::STREAM_CLOSED);
        }
        stream.receive_window -= flow;
        stream.received += data.len() as u64;
        let ends = head.has(flag::END_STREAM);
        if stream.receive_window < 0 {
            self.allow_connection(payload.len());
            return self.misbehaved(at, Code::FLOW_CONTROL_ERROR);
        }
        // §8.1.1: the sum must be what the head said.
        if stream.expected.is_some_and(|expected| stream.received > expected || ends && stream.received != expected) {
            self.allow_connection(payload.len());
            return self.misbehaved(at, Code::PROTOCOL_ERROR);
        }
        let unread = if let Some(feed) = &stream.feed {
            feed.push(data, ends);
            payload.len() - data.len()
        } else {
            stream.left += data.len();
            payload.len()
        };
        self.allow_connection(unread);
        self.allow(at, unread);
        if ends {
            self.end_incoming(at);
        } else if self.streams[at].left > LEFT_MAX {
            self.end_by_reset(at, Code::NO_ERROR);
        }
        Ok(())
    }

    fn take_headers(&mut self, head: Head, payload: &[u8]) -> Result<Option<Event>, Fault> {
        if head.stream == 0 || head.stream.is_multiple_of(2) {
            return Err(wrong(Code::PROTOCOL_ERROR, "a head on a stream that is not the client's"));
        }
        let mut fragment = frame::unpadded(head, payload).ok_or(wrong(Code::PROTOCOL_ERROR, "more padding than frame"))?;
        let mut depends_on_itself = false;
        if head.has(flag::PRIORITY) {
            let Some((priority, rest)) = fragment.split_at_checked(5) else {
                return Err(wrong(Code::FRAME_SIZE_ERROR, "a head without its priority"));
            };
            depends_on_itself = frame::u32_of(priority).is_some_and(|on| on & 0x7fff_ffff == head.stream);
            fragment = rest;
        }
        if head.stream <= self.last && self.find_whole(head.stream).is_none() && !self.reset.contains(head.stream) {
            let was_there = self.ended.contains(head.stream) || self.find(head.stream).is_some();
            let code = if was_there { Code::STREAM_CLOSED } else { Code::PROTOCOL_ERROR };
            return Err(wrong(code, "a head on a stream that has ended"));
        }
        let ends = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.take_block(head.stream, fragment, ends, depends_on_itself);
        }
        self.block = Some(Box::new(Block { stream: head.stream, ends, depends_on_itself, bytes: fragment.to_vec() }));
        Ok(None)
    }

    fn take_continuation(&mut self, head: Head, payload: &[u8]) -> Result<Option<Event>, Fault> {
        let Some(mut block) = self.block.take() else {
            return Err(wrong(Code::PROTOCOL_ERROR, "the rest of no head"));
        };
        if block.bytes.len() + payload.len() > self.limits.header_bytes.saturating_mul(BLOCK_FACTOR) {
            return Err(flood("a head without end"));
        }
        block.bytes.extend_from_slice(payload);
        if head.has(flag::END_HEADERS) {
            return self.take_block(block.stream, &block.bytes, block.ends, block.depends_on_itself);
        }
        self.block = Some(block);
        Ok(None)
    }

    /// A whole header block. It is decoded whatever becomes of it: the table must stay the client's (§4.3).
    fn take_block(&mut self, id: u32, block: &[u8], ends: bool, depends_on_itself: bool) -> Result<Option<Event>, Fault> {
        let is_new = id > self.last;
        let mut gathering = Gathering::new(&mut self.text, &self.limits, !is_new);
        let decoded = self.decoder.decode(block, |field| {
            gathering.take(field.name, field.value, field.index.is_some());
            if gathering.has_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let (said, nature) = gathering.end();
        decoded.map_err(|_| wrong(Code::COMPRESSION_ERROR, "a head that cannot be decoded"))?;
        if !is_new {
            return self.take_trailers(id, &said, ends).map(|()| None);
        }
        self.last = id;
        if self.leaving == Leaving::Yes {
            // §6.8: it was told that nobody looks at it.
            return Ok(None);
        }
        if self.streams.len() >= STREAMS_MAX {
            self.reset.push(id);
            self.output.write(|out| frame::write_reset(id, Code::REFUSED_STREAM, out));
            return Ok(None);
        }
        self.streams.push(Stream {
            id,
            incoming_ended: ends,
            feed: None,
            expected: None,
            received: 0,
            receive_window: i64::from(STREAM_WINDOW),
            credit: 0,
            left: 0,
            send_window: self.client_window,
            queue: VecDeque::new(),
            queued: 0,
            ends: false,
            over: None,
            held: false,
            waker: None,
            priority: priority::of(self.text.priority()),
            turn: 0,
            moved: self.now,
            sent: 0,
        });
        let at = self.streams.len() - 1;
        if depends_on_itself {
            return self.misbehaved(at, Code::PROTOCOL_ERROR).map(|()| None);
        }
        match said {
            Said::Request => Ok(Some(Event::Request { stream: id, ends, nature })),
            Said::Refused(reject) => Ok(Some(Event::Refuse { stream: id, reject })),
            Said::Malformed(_) | Said::Trailers => self.misbehaved(at, Code::PROTOCOL_ERROR).map(|()| None),
        }
    }

    fn take_trailers(&mut self, id: u32, said: &Said, ends: bool) -> Result<(), Fault> {
        let Some(at) = self.find_whole(id) else { return Ok(()) };
        let stream = &mut self.streams[at];
        if stream.incoming_ended {
            return self.misbehaved(at, Code::STREAM_CLOSED);
        }
        let is_short = stream.expected.is_some_and(|expected| expected != stream.received);
        if !ends || is_short || !matches!(said, Said::Trailers) {
            return self.misbehaved(at, Code::PROTOCOL_ERROR);
        }
        if let Some(feed) = &stream.feed {
            feed.push(&[], true);
        }
        self.end_incoming(at);
        Ok(())
    }

    /// RFC 9113 §5.3.2: not heeded, but it has to be right.
    fn take_priority(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        if head.stream == 0 {
            return Err(wrong(Code::PROTOCOL_ERROR, "a priority without a stream"));
        }
        let on = frame::u32_of(payload).map(|on| on & 0x7fff_ffff);
        let code = if payload.len() == 5 { Code::PROTOCOL_ERROR } else { Code::FRAME_SIZE_ERROR };
        if payload.len() != 5 || on == Some(head.stream) {
            match self.find_whole(head.stream) {
                Some(at) => return self.misbehaved(at, code),
                // A stream that has not begun cannot be reset (§5.1), so all of the connection is at fault (§5.4.1).
                None => return Err(wrong(code, "a malformed priority")),
            }
        }
        Ok(())
    }

    /// RFC 9218 §7.1.
    fn take_priority_update(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(wrong(Code::PROTOCOL_ERROR, "an update of a priority on a stream"));
        }
        let (Some(id), Some(value)) = (frame::u32_of(payload), payload.get(4..)) else {
            return Err(wrong(Code::FRAME_SIZE_ERROR, "a short update of a priority"));
        };
        if id & 0x7fff_ffff == 0 {
            return Err(wrong(Code::PROTOCOL_ERROR, "an update of the priority of no stream"));
        }
        // Those that have not begun are not remembered: their field says it again.
        if let Some(at) = self.find(id & 0x7fff_ffff) {
            self.streams[at].priority = priority::of(value);
        }
        Ok(())
    }

    fn take_reset(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        let at = self.known(head)?;
        if payload.len() != 4 {
            return Err(wrong(Code::FRAME_SIZE_ERROR, "a reset of the wrong length"));
        }
        if let Some(at) = at {
            self.end(at, Over::Reset);
        }
        Ok(())
    }

    fn take_settings(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(wrong(Code::PROTOCOL_ERROR, "settings of a stream"));
        }
        if !payload.len().is_multiple_of(6) || head.has(flag::ACK) && !payload.is_empty() {
            return Err(wrong(Code::FRAME_SIZE_ERROR, "settings of the wrong length"));
        }
        if head.has(flag::ACK) {
            return Ok(());
        }
        for (name, value) in frame::settings(payload) {
            match name {
                setting::HEADER_TABLE_SIZE => self.encoder.set_max_size(TABLE_BYTES.min(value as usize)),
                setting::ENABLE_PUSH if value > 1 => return Err(wrong(Code::PROTOCOL_ERROR, "neither push nor no push")),
                setting::INITIAL_WINDOW_SIZE => self.set_client_window(i64::from(value))?,
                setting::MAX_FRAME_SIZE if !(16_384..=16_777_215).contains(&value) => {
                    return Err(wrong(Code::PROTOCOL_ERROR, "a frame size out of bounds"));
                }
                setting::MAX_FRAME_SIZE => self.client_frame = (value as usize).min(PAYLOAD_MAX),
                _ => {}
            }
        }
        self.output.write(frame::write_settings_ack);
        Ok(())
    }

    /// §6.9.2: it holds for the streams that there are, too.
    fn set_client_window(&mut self, window: i64) -> Result<(), Fault> {
        if window > WINDOW_MAX {
            return Err(wrong(Code::FLOW_CONTROL_ERROR, "a window out of bounds"));
        }
        let more = window - self.client_window;
        self.client_window = window;
        for stream in &mut self.streams {
            stream.send_window += more;
            if stream.send_window > WINDOW_MAX {
                return Err(wrong(Code::FLOW_CONTROL_ERROR, "a window out of bounds"));
            }
        }
        Ok(())
    }

    fn take_ping(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(wrong(Code::PROTOCOL_ERROR, "a ping on a stream"));
        }
        if payload.len() != 8 {
            return Err(wrong(Code::FRAME_SIZE_ERROR, "a ping of the wrong length"));
        }
        if !head.has(flag::ACK) {
            self.output.write(|out| frame::write_ping(flag::ACK, payload, out));
        } else if self.leaving == Leaving::Told && payload == GOODBYE {
            self.leaving = Leaving::Yes;
            self.output.write(|out| frame::write_goaway(self.last, Code::NO_ERROR, out));
        }
        Ok(())
    }

    fn take_window_update(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        if payload.len() != 4 {
            return Err(wrong(Code::FRAME_SIZE_ERROR, "a window update of the wrong length"));
        }
        let more = i64::from(frame::u32_of(payload).unwrap_or_default() & 0x7fff_ffff);
        if head.stream == 0 {
            if more == 0 {
                return Err(wrong(Code::PROTOCOL_ERROR, "a window update of nothing"));
            }
            self.send_window += more;
            if self.send_window > WINDOW_MAX {
                return Err(wrong(Code::FLOW_CONTROL_ERROR, "a window out of bounds"));
            }
            return Ok(());
        }
        let Some(at) = self.known(head)? else { return Ok(()) };
        let stream = &mut self.streams[at];
        stream.send_window += more;
        if more == 0 {
            return self.misbehaved(at, Code::PROTOCOL_ERROR);
        }
        if stream.send_window > WINDOW_MAX {
            return self.misbehaved(at, Code::FLOW_CONTROL_ERROR);
        }
        Ok(())
    }

    // --- ends ---

    /// Resets a stream because of what the client did (§5.4.2, §8.1.1). Each such reset leaves a request behind that was begun for nothing
    /// (CVE-2025-8671), so too many of them are the connection's end.
    fn misbehaved(&mut self, at: usize, code: Code) -> Result<(), Fault> {
        self.misbehaviours += 1;
        if self.misbehaviours > MISBEHAVIOURS_MAX {
            return Err(flood("a flood of malformed requests"));
        }
        self.end_by_reset(at, code);
        Ok(())
    }

    fn end_by_reset(&mut self, at: usize, code: Code) {
        let id = self.streams[at].id;
        self.reset.push(id);
        self.output.write(|out| frame::write_reset(id, code, out));
        self.end(at, Over::Reset);
    }

    fn end_incoming(&mut self, at: usize) {
        self.streams[at].incoming_ended = true;
        self.streams[at].feed = None;
        self.remove_if_done(at);
    }

    /// Our side has ended, or both. What had all left stays so.
    fn end(&mut self, at: usize, over: Over) {
        let stream = &mut self.streams[at];
        self.waiting -= usize::from(stream.is_waiting());
        stream.over.get_or_insert(over);
        self.queued -= stream.queue.iter().map(Piece::own_len).sum::<usize>();
        stream.queue = VecDeque::new();
        stream.queued = 0;
        stream.moved = self.now;
        if over == Over::Reset {
            stream.incoming_ended = true;
            stream.feed = None;
        }
        stream.wake();
        self.remove_if_done(at);
    }

    fn remove_if_done(&mut self, at: usize) {
        let stream = &self.streams[at];
        if stream.over.is_some() && stream.incoming_ended && !stream.held {
            self.ended.push(stream.id);
            self.streams.remove(at);
        }
    }

    /// The client has gone: whoever answers it is told.
    pub(super) fn abandon(&mut self) {
        for at in (0..self.streams.len()).rev() {
            self.end(at, Over::Reset);
        }
    }

    /// The connection is over because of what the client did.
    pub(super) fn fail(&mut self, fault: Fault) {
        self.output.write(|out| frame::write_goaway(self.last, fault.code, out));
    }

    /// Says goodbye (§6.8): first so that nothing on its way is lost, and, when the client has surely heard it, for good.
    pub(super) fn leave(&mut self) {
        if self.leaving == Leaving::No {
            self.leaving = Leaving::Told;
            self.output.write(|out| {
                frame::write_goaway(0x7fff_ffff, Code::NO_ERROR, out);
                frame::write_ping(0, &GOODBYE, out);
            });
        }
    }

    // --- what the client may send ---

    fn allow_connection(&mut self, bytes: usize) {
        self.credit = self.credit.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if self.credit >= CONNECTION_WINDOW / 2 {
            self.receive_window += i64::from(self.credit);
            let more = std::mem::take(&mut self.credit);
            self.output.write(|out| frame::write_window_update(0, more, out));
        }
    }

    fn allow(&mut self, at: usize, bytes: usize) {
        let Some(stream) = self.streams.get_mut(at) else { return };
        stream.credit = stream.credit.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if !stream.incoming_ended && stream.credit >= STREAM_WINDOW / 2 {
            stream.receive_window += i64::from(stream.credit);
            let (id, more) = (stream.id, std::mem::take(&mut stream.credit));
            self.output.write(|out| frame::write_window_update(id, more, out));
        }
    }

    /// Makes room for what the readers of contents have taken.
    pub(super) fn collect(&mut self) {
        for at in 0..self.streams.len() {
            let Some(feed) = &self.streams[at].feed else { continue };
            let Taken { bytes, abandoned } = feed.taken();
            if bytes > 0 {
                self.allow_connection(bytes);
                self.allow(at, bytes);
            }
            if abandoned {
                let stream = &mut self.streams[at];
                stream.feed = None;
                stream.left += bytes;
                stream.moved = self.now;
            }
        }
    }

    /// Has the content of a request go to `feed`. `expected`: its length, if its head says it.
    pub(super) fn receive(&mut self, id: u32, feed: Feed, expected: Option<u64>) {
        if let Some(at) = self.find(id) {
            self.streams[at].expected = expected;
            self.streams[at].feed = Some(feed);
        }
    }

    /// A request without content, whose head announced one (§8.1.1).
    pub(super) fn refuse_malformed(&mut self, id: u32) -> Result<(), Fault> {
        self.find(id).map_or(Ok(()), |at| self.misbehaved(at, Code::PROTOCOL_ERROR))
    }

    // --- what is answered ---

    /// Somebody answers this request until [`Core::release`].
    pub(super) fn hold(&mut self, id: u32) {
        if let Some(at) = self.find(id) {
            self.streams[at].held = true;
        }
    }

    pub(super) fn release(&mut self, id: u32) {
        let Some(at) = self.find(id) else { return };
        self.streams[at].held = false;
        if self.streams[at].over.is_none() && !self.streams[at].ends {
            // Its answer was given up.
            return self.end_by_reset(at, Code::INTERNAL_ERROR);
        }
        self.remove_if_done(at);
    }

    /// What became of a stream, and how many bytes of content left. A stream that nobody knows any more has been reset.
    pub(super) fn state(&self, id: u32) -> (Option<Over>, u64) {
        self.find(id).map_or((Some(Over::Reset), 0), |at| (self.streams[at].over, self.streams[at].sent))
    }

    /// `waker` is woken when the stream has ended or has room.
    pub(super) fn watch(&mut self, id: u32, waker: &Waker) {
        if let Some(at) = self.find(id) {
            match &mut self.streams[at].waker {
                Some(known) if known.will_wake(waker) => {}
                place => *place = Some(waker.clone()),
            }
        }
    }

    /// Bytes that may be queued now.
    pub(super) fn room(&self, id: u32) -> usize {
        let Some(at) = self.find(id) else { return 0 };
        let queued = self.streams[at].queued;
        let shared = QUEUE_MAX.saturating_sub(queued).min(QUEUES_MAX.saturating_sub(self.queued));
        shared.max(QUEUE_MIN.saturating_sub(queued))
    }

    /// Sends an interim or the final head, with the fields of a map.
    pub(super) fn send_head(&mut self, id: u32, status: StatusCode, fields: &HeaderMap, ends: bool) {
        self.write_head(id, status.as_u16(), ends, |encoder, out| {
            for (name, value) in fields {
                if !is_of_the_connection(name.as_str().as_bytes()) {
                    encoder.field(name.as_str().as_bytes(), value.as_bytes(), out);
                }
            }
        });
    }

    /// Sends a head that is kept as HTTP/1 writes it.
    pub(super) fn send_stored_head(&mut self, id: u32, status: u16, text: &[u8], ends: bool) {
        self.write_head(id, status, ends, |encoder, out| {
            let mut from = None;
            for end in memchr::memchr_iter(b'\n', text) {
                // The first line is the status line.
                if let Some(from) = from.replace(end + 1) {
                    let line = &text[from..end];
                    encoder.line(line.strip_suffix(b"\r").unwrap_or(line), |name| !is_of_the_connection(name), out);
                }
            }
        });
    }

    fn write_head(&mut self, id: u32, status: u16, ends: bool, fields: impl FnOnce(&mut Encoder, &mut Vec<u8>)) {
        let Some(at) = self.find(id).filter(|&at| self.streams[at].over.is_none()) else { return };
        let (encoder, frame_max) = (&mut self.encoder, self.client_frame);
        self.output.write(|out| {
            let begin = out.len();
            out.extend_from_slice(&[0; frame::HEAD]);
            encoder.begin(out);
            encoder.status(status, out);
            fields(encoder, out);
            frame::enclose_block(out, begin, id, if ends { flag::END_STREAM } else { 0 }, frame_max);
        });
        if ends {
            self.end(at, Over::Complete);
        }
    }

    /// Queues content; `ends`: it is the last.
    pub(super) fn send(&mut self, id: u32, piece: Option<Piece<H>>, ends: bool) {
        let Some(at) = self.find(id).filter(|&at| self.streams[at].over.is_none()) else { return };
        let stream = &mut self.streams[at];
        let was_waiting = stream.is_waiting();
        if let Some(piece) = piece.filter(|piece| piece.has_remaining()) {
            if stream.queue.is_empty() {
                stream.moved = self.now;
            }
            stream.queued += piece.remaining();
            self.queued += piece.own_len();
            stream.queue.push_back(piece);
        }
        stream.ends |= ends;
        self.waiting = self.waiting + usize::from(stream.is_waiting()) - usize::from(was_waiting);
    }

    /// Sends a whole stored page as content. `true`: it is all in the output.
    pub(super) fn send_stored(&mut self, id: u32, page: H) -> bool {
        let len = page.as_ref().len();
        let Some(at) = self.find(id) else { return false };
        let stream = &self.streams[at];
        let fits = len <= self.client_frame && len as i64 <= stream.send_window.min(self.send_window);
        if fits && self.waiting == 0 && self.output.len() < OUTPUT_MAX {
            self.emit(at, Piece::Stored(page, 0), true);
            return true;
        }
        self.send(id, Some(Piece::Part(Rc::new(page), 0, len)), true);
        false
    }

    /// Ends a stream without having said all.
    pub(super) fn reset(&mut self, id: u32, code: Code) {
        if let Some(at) = self.find(id).filter(|&at| self.streams[at].over.is_none()) {
            self.end_by_reset(at, code);
        }
    }

    /// Moves what the windows allow into the output, as long as that has room.
    pub(super) fn pump(&mut self) {
        while self.waiting > 0 && self.output.len() < OUTPUT_MAX {
            let Some(at) = self.pick() else { return };
            let room =
                usize::try_from(self.streams[at].send_window.min(self.send_window).max(0)).unwrap_or(usize::MAX).min(self.client_frame);
            let stream = &mut self.streams[at];
            stream.turn = self.turns;
            self.turns += 1;
            let Some(front) = stream.queue.front_mut() else {
                self.emit(at, Piece::Bytes(Bytes::new()), true);
                continue;
            };
            let (piece, is_whole) = front.take(room);
            let was_full = self.queued >= QUEUES_MAX;
            self.queued -= piece.own_len();
            if was_full && self.queued < QUEUES_MAX {
                self.streams.iter_mut().for_each(Stream::wake);
            }
            let stream = &mut self.streams[at];
            if is_whole {
                stream.queue.pop_front();
            }
            let ends = stream.ends && stream.queue.is_empty();
            self.emit(at, piece, ends);
        }
    }

    /// Whose turn it is (RFC 9218 §10): the most urgent first; among equals those that are of use only when they are whole, one after the
    /// other; then the others by turns.
    fn pick(&self) -> Option<usize> {
        let has_window = self.send_window > 0;
        let ready = self.streams.iter().enumerate().filter(|(_, stream)| stream.is_ready() && (has_window || stream.queue.is_empty()));
        let (at, _) = ready.min_by_key(|(_, stream)| {
            let Priority { urgency, incremental } = stream.priority;
            (urgency, incremental, if incremental { stream.turn } else { 0 }, stream.id)
        })?;
        Some(at)
    }

    /// A DATA frame.
    fn emit(&mut self, at: usize, piece: Piece<H>, ends: bool) {
        let stream = &mut self.streams[at];
        let length = piece.remaining();
        let was_waiting = stream.is_waiting();
        let flags = if ends { flag::END_STREAM } else { 0 };
        let head = Head { length, kind: kind::DATA, flags, stream: stream.id };
        self.output.write(|out| head.write(out));
        if length > 0 {
            self.output.piece(piece);
        }
        self.send_window -= length as i64;
        stream.send_window -= length as i64;
        stream.sent += length as u64;
        stream.queued = stream.queued.saturating_sub(length);
        stream.moved = self.now;
        if ends {
            return self.end(at, Over::Complete);
        }
        self.waiting = self.waiting + usize::from(stream.is_waiting()) - usize::from(was_waiting);
        if stream.queued < QUEUE_MAX {
            stream.wake();
        }
    }

    /// Whether a stream waits for its client: for a window, or for the rest of a content that nobody wants.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0 || self.streams.iter().any(|stream| stream.over.is_some() && !stream.held)
    }

    /// Ends the streams that have waited for their client longer than `patience`.
    pub(super) fn expire(&mut self, patience: Duration) {
        for at in (0..self.streams.len()).rev() {
            let stream = &self.streams[at];
            let idle = self.now.saturating_duration_since(stream.moved);
            if stream.is_waiting() && idle >= patience {
                self.end_by_reset(at, Code::CANCEL);
            } else if stream.over == Some(Over::Complete) && !stream.held && idle >= LEFT_TIMEOUT {
                self.end_by_reset(at, Code::NO_ERROR);
            }
        }
    }
}

/// Of HTTP/1 alone (RFC 9113 §8.2.2).
fn is_of_the_connection(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] = [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];
    matches!(name.len(), 7 | 10 | 16 | 17) && NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Frames = Vec<Vec<u8>>;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        Head { length: payload.len(), kind, flags, stream }.write(&mut frame);
        frame.extend_from_slice(payload);
        frame
    }

    /// `GET / https a`, without compression or a table.
    fn block() -> Vec<u8> {
        b"\x82\x87\x84\x01\x01a".to_vec()
    }

    fn get(stream: u32) -> Vec<u8> {
        frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &block())
    }

    /// `POST / https a`, whose content is yet to come.
    fn post(stream: u32) -> Vec<u8> {
        frame(kind::HEADERS, flag::END_HEADERS, stream, b"\x83\x87\x84\x01\x01a")
    }

    fn data(stream: u32, length: usize, flags: u8) -> Vec<u8> {
        frame(kind::DATA, flags, stream, &vec![b'x'; length])
    }

    fn begun() -> Core<Vec<u8>> {
        let mut core = Core::new(Limits::default(), Instant::now());
        say(&mut core, PREFACE).expect("a preface");
        say(&mut core, &frame(kind::SETTINGS, 0, 0, &[])).expect("settings");
        sent(&mut core);
        core
    }

    /// Everything in `bytes` is said; requests are noticed by nobody.
    fn say(core: &mut Core<Vec<u8>>, mut bytes: &[u8]) -> Result<Vec<Event>, Fault> {
        let mut events = Vec::new();
        loop {
            let (taken, event) = core.next(bytes)?;
            events.extend(event);
            bytes = &bytes[taken..];
            if taken == 0 {
                return Ok(events);
            }
        }
    }

    /// The frames that are ready to leave, and have left.
    fn sent(core: &mut Core<Vec<u8>>) -> Vec<(Head, Vec<u8>)> {
        core.pump();
        let mut bytes = Vec::new();
        while !core.output.is_empty() {
            let mut slices = [std::io::IoSlice::new(&[]); super::super::output::SLICES];
            let filled = core.output.slices(&mut slices);
            let piece: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            core.left(piece.len());
            bytes.extend(piece);
            core.pump();
        }
        let mut frames = Vec::new();
        let mut rest = &bytes[..];
        while let Some(head) = Head::read(rest) {
            frames.push((head, rest[frame::HEAD..frame::HEAD + head.length].to_vec()));
            rest = &rest[frame::HEAD + head.length..];
        }
        assert!(rest.is_empty(), "half a frame");
        frames
    }

    fn resets(core: &mut Core<Vec<u8>>) -> Vec<(u32, Code)> {
        let is_reset = |(head, payload): (Head, Vec<u8>)| (head.kind == kind::RST_STREAM).then_some((head.stream, payload));
        sent(core)
            .into_iter()
            .filter_map(is_reset)
            .map(|(stream, payload)| (stream, Code(frame::u32_of(&payload).unwrap_or_default())))
            .collect()
    }

    /// RFC 9113 §5.4.1: what ends the connection, with which code.
    #[test]
    fn errors_of_connections() {
        let own = |kind: u8, payload: &[u8]| vec![frame(kind, 0, 0, payload)];
        let setting = |name: u16, value: u32| {
            let payload = [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
            vec![frame(kind::SETTINGS, 0, 0, &payload)]
        };
        let rows: Vec<(&str, Frames, Code)> = vec![
            ("§4.2 a frame beyond the size that was announced", vec![frame(kind::DATA, 0, 1, &[0; 16_385])], Code::FRAME_SIZE_ERROR),
            ("§4.3 a head that cannot be decoded", vec![frame(kind::HEADERS, 5, 1, &[0xff; 4])], Code::COMPRESSION_ERROR),
            ("§5.1 content on a stream that has not begun", vec![data(1, 1, 0)], Code::PROTOCOL_ERROR),
            ("§5.1 a reset of one", vec![frame(kind::RST_STREAM, 0, 1, &[0; 4])], Code::PROTOCOL_ERROR),
            ("§5.1 a window of one", vec![frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])], Code::PROTOCOL_ERROR),
            (
                "§5.1 content after a reset by the client",
                vec![post(1), frame(kind::RST_STREAM, 0, 1, &[0; 4]), data(1, 1, 0)],
                Code::STREAM_CLOSED,
            ),
            ("§5.1 a head after a reset by the client", vec![post(1), frame(kind::RST_STREAM, 0, 1, &[0; 4]), get(1)], Code::STREAM_CLOSED),
            ("§5.1.1 a stream of the server's", vec![get(2)], Code::PROTOCOL_ERROR),
            ("§5.1.1 a lower number", vec![get(5), get(3)], Code::PROTOCOL_ERROR),
            ("§6.1 content without a stream", vec![data(0, 1, 0)], Code::PROTOCOL_ERROR),
            ("§6.1 more padding than frame", vec![post(1), frame(kind::DATA, flag::PADDED, 1, &[9, 0])], Code::PROTOCOL_ERROR),
            ("§6.2 a head without a stream", vec![get(0)], Code::PROTOCOL_ERROR),
            ("§6.2 a head with too much padding", vec![frame(kind::HEADERS, 5 | flag::PADDED, 1, &[9, 0])], Code::PROTOCOL_ERROR),
            ("§6.3 a priority without a stream", own(kind::PRIORITY, &[0; 5]), Code::PROTOCOL_ERROR),
            ("§6.4 a reset without a stream", own(kind::RST_STREAM, &[0; 4]), Code::PROTOCOL_ERROR),
            ("§6.4 a short reset", vec![post(1), frame(kind::RST_STREAM, 0, 1, &[0; 3])], Code::FRAME_SIZE_ERROR),
            ("§6.5 settings of a stream", vec![frame(kind::SETTINGS, 0, 1, &[])], Code::PROTOCOL_ERROR),
            ("§6.5 an acknowledgement that says something", vec![frame(kind::SETTINGS, flag::ACK, 0, &[0; 6])], Code::FRAME_SIZE_ERROR),
            ("§6.5 a part of a setting", own(kind::SETTINGS, &[0; 5]), Code::FRAME_SIZE_ERROR),
            ("§6.5.2 neither push nor not", setting(setting::ENABLE_PUSH, 2), Code::PROTOCOL_ERROR),
            ("§6.5.2 too large a window", setting(setting::INITIAL_WINDOW_SIZE, 1 << 31), Code::FLOW_CONTROL_ERROR),
            ("§6.5.2 too small a frame", setting(setting::MAX_FRAME_SIZE, 16_383), Code::PROTOCOL_ERROR),
            ("§6.5.2 too large a frame", setting(setting::MAX_FRAME_SIZE, 1 << 24), Code::PROTOCOL_ERROR),
            ("§6.6 a push", vec![frame(kind::PUSH_PROMISE, 4, 1, &[0; 4])], Code::PROTOCOL_ERROR),
            ("§6.7 a ping on a stream", vec![frame(kind::PING, 0, 1, &[0; 8])], Code::PROTOCOL_ERROR),
            ("§6.7 a short ping", own(kind::PING, &[0; 7]), Code::FRAME_SIZE_ERROR),
            ("§6.8 a goodbye on a stream", vec![frame(kind::GOAWAY, 0, 1, &[0; 8])], Code::PROTOCOL_ERROR),
            ("§6.9 a window of nothing", own(kind::WINDOW_UPDATE, &[0; 4]), Code::PROTOCOL_ERROR),
            ("§6.9 a short window", own(kind::WINDOW_UPDATE, &[0; 3]), Code::FRAME_SIZE_ERROR),
            ("§6.9.1 a window beyond all bounds", own(kind::WINDOW_UPDATE, &[0x7f, 0xff, 0xff, 0xff]), Code::FLOW_CONTROL_ERROR),
            ("§6.10 the rest of no head", vec![frame(kind::CONTINUATION, 4, 1, &block())], Code::PROTOCOL_ERROR),
            (
                "§6.10 another frame within a head",
                vec![frame(kind::HEADERS, 1, 1, &block()), own(kind::PING, &[0; 8])[0].clone()],
                Code::PROTOCOL_ERROR,
            ),
            (
                "§6.10 another stream within a head",
                vec![frame(kind::HEADERS, 1, 1, &block()), frame(kind::CONTINUATION, 4, 3, &[])],
                Code::PROTOCOL_ERROR,
            ),
            ("RFC 9218 §7.1 an update on a stream", vec![frame(kind::PRIORITY_UPDATE, 0, 1, &[0, 0, 0, 1])], Code::PROTOCOL_ERROR),
            ("RFC 9218 §7.1 an update of no stream", own(kind::PRIORITY_UPDATE, &[0; 4]), Code::PROTOCOL_ERROR),
        ];
        for (name, frames, code) in rows {
            let fault = say(&mut begun(), &frames.concat()).expect_err(name);
            assert_eq!((fault.code, fault.is_flood), (code, false), "{name}");
        }
        let mut core: Core<Vec<u8>> = Core::new(Limits::default(), Instant::now());
        assert_eq!(say(&mut core, b"GET / HTTP/1.1\r\n\r\n").expect_err("no preface").code, Code::PROTOCOL_ERROR);
        let mut core: Core<Vec<u8>> = Core::new(Limits::default(), Instant::now());
        let early = [&PREFACE[..], &frame(kind::PING, 0, 0, &[0; 8])].concat();
        assert_eq!(say(&mut core, &early).expect_err("§3.4: settings come first").code, Code::PROTOCOL_ERROR);
    }

    /// RFC 9113 §5.4.2: what ends a stream alone; the next one is served.
    #[test]
    fn errors_of_streams() {
        let priority = |length: usize, on: u8| frame(kind::PRIORITY, 0, 1, &[0, 0, 0, on, 0, 0][..length]);
        let rows: Vec<(&str, Frames, Code)> = vec![
            ("§5.1 content after the end", vec![get(1), data(1, 1, 0)], Code::STREAM_CLOSED),
            ("§5.1 a second head after the end", vec![get(1), get(1)], Code::STREAM_CLOSED),
            (
                "§5.3.1 a head that depends on itself",
                vec![frame(kind::HEADERS, 0x25, 1, &[&[0, 0, 0, 1, 0][..], &block()].concat())],
                Code::PROTOCOL_ERROR,
            ),
            ("§5.3.1 a priority that depends on itself", vec![post(1), priority(5, 1)], Code::PROTOCOL_ERROR),
            ("§6.3 a short priority", vec![post(1), priority(4, 0)], Code::FRAME_SIZE_ERROR),
            ("§6.9 a window of nothing", vec![post(1), frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4])], Code::PROTOCOL_ERROR),
            (
                "§6.9.1 a window beyond all bounds",
                vec![post(1), frame(kind::WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff])],
                Code::FLOW_CONTROL_ERROR,
            ),
            ("§6.9.1 more content than window", [vec![post(1)], vec![data(1, 16_384, 0); 5]].concat(), Code::FLOW_CONTROL_ERROR),
            ("§8.1 trailers that end nothing", vec![post(1), frame(kind::HEADERS, 4, 1, b"\x00\x01x\x01y")], Code::PROTOCOL_ERROR),
            ("§8.1 trailers with a pseudo-field", vec![post(1), frame(kind::HEADERS, 5, 1, b"\x82")], Code::PROTOCOL_ERROR),
        ];
        for (name, frames, code) in rows {
            let mut core = begun();
            // Somebody is to read the content, and does not.
            let mut content = None;
            for frame in frames {
                for event in say(&mut core, &frame).expect(name) {
                    if let Event::Request { stream, ends: false, .. } = event {
                        let (feed, end) = super::super::content::content(Waker::noop().clone());
                        content = Some(end);
                        core.receive(stream, feed, None);
                    }
                }
            }
            assert_eq!(resets(&mut core), [(1, code)], "{name}");
            assert!(matches!(say(&mut core, &get(3)).expect(name)[..], [Event::Request { stream: 3, ends: true, .. }]), "{name}");
            drop(content);
        }
    }

    /// §6.9: what is read makes room again, for the stream and for the connection; what nobody reads is let go.
    #[test]
    fn windows_open_as_content_is_read() {
        let mut core = begun();
        say(&mut core, &post(1)).expect("a request");
        let (feed, mut content) = super::super::content::content(Waker::noop().clone());
        core.receive(1, feed, None);
        core.hold(1);
        let mut cx = std::task::Context::from_waker(Waker::noop());
        for _ in 0..100 {
            say(&mut core, &data(1, 16_000, 0)).expect("within the window");
            assert!(matches!(content.poll_data(&mut cx), std::task::Poll::Ready(Some(Ok(data))) if data.len() == 16_000));
            core.collect();
            assert!(sent(&mut core).iter().all(|(head, _)| head.kind == kind::WINDOW_UPDATE));
        }
        drop(content);
        core.collect();
        for _ in 0..16 {
            say(&mut core, &data(1, 16_000, 0)).expect("within the window");
        }
        assert_eq!(resets(&mut core), []);
        say(&mut core, &data(1, 16_000, 0)).expect("within the window");
        assert_eq!(resets(&mut core), [(1, Code::NO_ERROR)], "§8.1: enough of what nobody wants");
    }

    /// §6.9.2: a setting changes the windows that there are, also to less than nothing.
    #[test]
    fn a_setting_changes_windows_under_way() {
        let mut core = begun();
        let window = |bytes: u32| frame(kind::SETTINGS, 0, 0, &[&[0, 4][..], &bytes.to_be_bytes()].concat());
        let contents = |core: &mut Core<Vec<u8>>| -> usize {
            sent(core).iter().filter(|(head, _)| head.kind == kind::DATA).map(|(head, _)| head.length).sum()
        };
        say(&mut core, &[window(10), get(1)].concat()).expect("a request");
        core.hold(1);
        assert!(!core.send_stored(1, vec![b'x'; 100]));
        assert_eq!(contents(&mut core), 10);
        say(&mut core, &window(0)).expect("a setting");
        say(&mut core, &frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 10])).expect("a window");
        assert_eq!(contents(&mut core), 0, "10 owed, 10 given");
        say(&mut core, &window(5)).expect("a setting");
        assert_eq!(contents(&mut core), 5);
        say(&mut core, &window(1_000)).expect("a setting");
        assert_eq!((contents(&mut core), core.state(1)), (85, (Some(Over::Complete), 100)));
        core.release(1);
        assert!(core.is_idle());
    }
}
