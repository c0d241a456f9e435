//! What both sides of a connection have said: frames in, frames out, windows and streams (RFC 9113). No socket, no task, no service.
//!
//! [`Core::next`] takes bytes as they come and says what they ask for; what is answered is put into the [`Output`], in the order that
//! priorities and windows allow. Every request is in `streams` until both its sides have ended and nobody holds it.

mod answer;
mod take;

use std::{
    collections::VecDeque,
    task::Waker,
    time::{Duration, Instant},
};

use super::{
    content::Feed,
    frame::{self, Code, Head, PAYLOAD_MAX, setting},
    guard::Guard,
    output::Output,
    piece::Piece,
    priority::Priority,
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
        }
        stream.wake();
        if over == Over::Reset {
            self.settle(at);
        }
        self.remove_if_done(at);
    }

    /// Nobody reads the content of this stream for the connection any more: it counts as read.
    fn settle(&mut self, at: usize) {
        if let Some(feed) = self.streams[at].feed.take() {
            self.allow_connection(feed.settle());
        }
    }

    fn remove_if_done(&mut self, at: usize) {
        let stream = &self.streams[at];
        if stream.over.is_some() && stream.incoming_ended && !stream.held {
            self.ended.push(stream.id);
            self.settle(at);
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
}

#[cfg(test)]
mod tests;
