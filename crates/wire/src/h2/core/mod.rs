//! One connection's state: what both sides have said, frames in, frames out, windows and streams (RFC 9113).
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
    HeadLimits,
    head::{Built, HeadBuilder, HeadText, Reject},
    hpack::{Decoder, Encoder},
};

/// The most streams that a client may have open at once.
const STREAMS_MAX: usize = 128;

/// The number of bytes of content that a client may send before it is read, on one stream.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The number of bytes of content that a client may send before it is read, on all streams together.
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// The window of every stream and connection at first (RFC 9113 §6.9.2).
const FIRST_WINDOW: i64 = 65_535;
/// The largest window (RFC 9113 §6.9.1).
const WINDOW_MAX: i64 = 0x7fff_ffff;

/// The most bytes that wait for the socket. Stored pages among them are not copied; everything else is in our memory.
pub const OUTPUT_MAX: usize = 64 * 1024;

/// The number of bytes of a stream that may wait for its window, without stored pages.
const QUEUE_MAX: usize = 64 * 1024;
/// The number of bytes of all streams that may wait for their windows, without stored pages.
const QUEUES_MAX: usize = 512 * 1024;
/// The number of bytes of each stream that may wait in any case, so that clients that take nothing do not hold up the others.
const QUEUE_MIN: usize = 4 * 1024;

/// The length of a coded head as a multiple of the decoded limit: a code may be longer than its text (RFC 7541 §5.2), but not for usual
/// text.
const BLOCK_FACTOR: usize = 2;

/// The size of the dynamic tables of both directions (RFC 7541 §4.2), in bytes.
const TABLE_BYTES: usize = 4096;

/// The number of streams that one client may make us reset before its connection is closed.
const MISBEHAVIOURS_MAX: usize = 128;

/// The number of streams that are remembered after their end, so that frames that were still under way can be told from errors.
const ENDED_MAX: usize = 64;

/// The number of bytes that a client may still send when its request is answered.
const LEFT_MAX: usize = 256 * 1024;
/// The time for which a client may still send when its request is answered.
const LEFT_TIMEOUT: Duration = Duration::from_secs(2);

/// The ping between the two goodbyes (RFC 9113 §6.8).
const GOODBYE: [u8; 8] = *b"goodbye.";

/// The reason why the connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The code that the client is told.
    pub code: Code,
    /// The description of what the client did, for the log.
    pub reason: &'static str,
    /// Whether the client sent nothing wrong, but too much. These are counted.
    pub is_flood: bool,
}

const fn wrong(code: Code, reason: &'static str) -> Fault {
    Fault { code, reason, is_flood: false }
}

const fn flood(reason: &'static str) -> Fault {
    Fault { code: Code::ENHANCE_YOUR_CALM, reason, is_flood: true }
}

/// An event that the client's bytes caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A request has come, whose text [`Core::lend_text`] has.
    Request {
        /// The number of its stream.
        stream: u32,
        /// Whether it has no content.
        ends: bool,
        /// Whether it asks for a tunnel (RFC 8441).
        is_websocket: bool,
    },
    /// A request has come that is to be refused.
    Refuse {
        /// The number of its stream.
        stream: u32,
        /// The reason, and the status of the refusal.
        reject: Reject,
    },
}

/// Says how a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Everything to be sent is in the output.
    Complete,
    /// The stream was reset, by either side.
    Reset,
}

#[derive(Debug)]
struct Stream<H> {
    id: u32,
    /// Whether the client has sent END_STREAM.
    incoming_ended: bool,
    /// The reader of its content.
    feed: Option<Feed>,
    /// The length that the head announced; `received` is what came.
    expected: Option<u64>,
    received: u64,
    /// The number of bytes that the client may still send; `credit` is what it may be allowed again.
    receive_window: i64,
    credit: u32,
    /// The bytes that came after the answer, and that nobody reads.
    left: usize,
    send_window: i64,
    queue: VecDeque<Piece<H>>,
    queued: usize,
    /// Whether END_STREAM follows the queue.
    ends: bool,
    over: Option<Over>,
    /// Whether it is being answered: the stream stays here until the answer has seen its end.
    held: bool,
    waker: Option<Waker>,
    priority: Priority,
    /// The number of its last turn among its equals.
    turn: u64,
    /// The time at which some of its data last left, or its window was opened.
    moved: Instant,
    sent: u64,
}

impl<H: AsRef<[u8]>> Stream<H> {
    /// Returns whether some of its data could leave, as far as its own window allows.
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

/// A header block that continues in CONTINUATION frames.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends: bool,
    depends_on_itself: bool,
    bytes: Vec<u8>,
}

/// Says how much of the connection's beginning has arrived (RFC 9113 §3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Began {
    No,
    Preface,
    Yes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    /// The client has been told, and a ping was sent: requests that the client sent before it saw the ping are still accepted.
    Told,
    /// New requests are not accepted.
    Yes,
}

/// The numbers of the last streams that ended, as a ring.
#[derive(Debug)]
struct EndedStreams([u32; ENDED_MAX], usize);

impl EndedStreams {
    const fn push(&mut self, stream: u32) {
        self.0[self.1 % ENDED_MAX] = stream;
        self.1 += 1;
    }

    fn contains(&self, stream: u32) -> bool {
        self.0.contains(&stream)
    }
}

/// One connection: what both sides have said. `H` is the content of a stored page, which is shared and not copied.
#[derive(Debug)]
pub struct Core<H> {
    limits: HeadLimits,
    decoder: Decoder,
    encoder: Encoder,
    text: HeadText,
    guard: Guard,
    /// The open streams, in the order of their numbers.
    streams: Vec<Stream<H>>,
    /// The highest stream number that the client has used.
    last: u32,
    ended: EndedStreams,
    /// The streams that ended because we reset them: frames for them may still be under way.
    reset: EndedStreams,
    began: Began,
    block: Option<Box<Block>>,
    /// The client's initial window of a stream, its largest frame, and its window of the connection.
    client_window: i64,
    client_frame: usize,
    send_window: i64,
    receive_window: i64,
    credit: u32,
    misbehaviours: usize,
    /// The number of streams with data in their queues.
    waiting: usize,
    /// The bytes in all queues, without stored pages.
    queued: usize,
    turns: u64,
    leaving: Leaving,
    client_left: bool,
    /// The time at the beginning of this turn.
    pub now: Instant,
    /// The output that is ready to leave.
    pub output: Output<H>,
}

impl<H: AsRef<[u8]>> Core<H> {
    /// Creates a connection at its start; our half of the preface is in its output.
    pub fn new(limits: HeadLimits, now: Instant) -> Self {
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
            text: HeadText::default(),
            guard: Guard::new(),
            streams: Vec::new(),
            last: 0,
            ended: EndedStreams([0; ENDED_MAX], 0),
            reset: EndedStreams([0; ENDED_MAX], 0),
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

    /// Lends the head of the latest request, so that it can be answered while it is read.
    pub fn lend_text(&mut self) -> HeadText {
        std::mem::take(&mut self.text)
    }

    /// Takes back the text that was lent, for the next head.
    pub fn give_back(&mut self, text: HeadText) {
        self.text = text;
    }

    /// Frees memory that is not needed while nothing happens.
    pub fn shrink(&mut self) {
        self.output.shrink();
        self.text.shrink();
    }

    /// Returns whether part of a head has arrived.
    pub const fn is_within_head(&self) -> bool {
        self.block.is_some()
    }

    /// Returns whether the client has begun the connection correctly.
    pub fn has_begun(&self) -> bool {
        self.began == Began::Yes
    }

    /// Notes that a request has been answered to its end: its client deserves some patience.
    pub fn answered(&mut self) {
        self.guard.answered();
    }

    /// Notes that so many seconds have passed.
    pub fn tick(&mut self, seconds: u32) {
        self.guard.tick(seconds);
    }

    /// Notes that so many bytes of the output have left.
    pub fn left(&mut self, bytes: usize) {
        self.output.advance(bytes);
        self.guard.sent(bytes);
    }

    /// Returns whether no stream is open.
    pub const fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// Returns whether there is nothing left to do, after either side has said goodbye.
    pub fn is_finished(&self) -> bool {
        (self.client_left || self.leaving == Leaving::Yes) && self.streams.is_empty()
    }

    fn find(&self, stream: u32) -> Option<usize> {
        // It is nearly always the last one.
        match self.streams.last() {
            Some(last) if last.id == stream => Some(self.streams.len() - 1),
            _ => self.streams.binary_search_by_key(&stream, |stream| stream.id).ok(),
        }
    }

    /// Returns the position of a stream that has not been reset.
    fn find_whole(&self, stream: u32) -> Option<usize> {
        self.find(stream).filter(|&at| self.streams[at].over != Some(Over::Reset))
    }

    /// Resets a stream because of what the client did (§5.4.2, §8.1.1). Each such reset leaves a request that was begun in vain
    /// (CVE-2025-8671), so too many of them end the connection.
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

    /// Ends our side of a stream, or both. A stream whose data had all left stays complete.
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

    /// Counts the unread content of this stream as read for the connection's window, because nobody reads it any more.
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

    /// Notes that the client has gone, and tells the tasks that answer it.
    pub fn abandon(&mut self) {
        for at in (0..self.streams.len()).rev() {
            self.end(at, Over::Reset);
        }
    }

    /// Ends the connection because of what the client did.
    pub fn fail(&mut self, fault: Fault) {
        self.output.write(|out| frame::write_goaway(self.last, fault.code, out));
    }

    /// Says goodbye (§6.8): first so that no request under way is lost, and, when the client has surely received that, for good.
    pub fn leave(&mut self) {
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
