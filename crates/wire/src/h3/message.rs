//! A request as it comes on its stream (RFC 9114 §4.1): its head, its content, and what may stand around them.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::{Buf, Bytes};

use super::{
    code::{Code, Fault},
    frame::{self, Partial},
    purse::{self, Purse},
};
use crate::qpack;

/// Brings the bytes of one stream: the transport does, or a test.
pub trait Source {
    /// Returns the next bytes, in order; nothing at the end.
    ///
    /// # Errors
    /// Fails when the client has left the stream, or is gone.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>>;
}

/// Reads a stream of frames.
#[derive(Debug)]
pub(crate) struct Frames<R> {
    source: R,
    /// The bytes that have been read and not looked at yet.
    chunk: Bytes,
    partial: Partial,
    /// The number of bytes of the frame at hand that are still to come.
    left: u64,
}

impl<R: Source> Frames<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, chunk: Bytes::new(), partial: Partial::default(), left: 0 }
    }

    pub(crate) const fn source(&mut self) -> &mut R {
        &mut self.source
    }

    /// Returns whether there is something in `chunk`; `false` at the end of the stream.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Fault>> {
        while self.chunk.is_empty() {
            match ready!(self.source.poll_bytes(cx))? {
                Some(bytes) => self.chunk = bytes,
                None => return Poll::Ready(Ok(false)),
            }
        }
        Poll::Ready(Ok(true))
    }

    /// Returns the head of the next frame; nothing at the end of the stream. The frame before it must have been read to its end.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<frame::FrameHead>, Fault>> {
        debug_assert_eq!(self.left, 0, "the frame before has been read");
        loop {
            if let Some(head) = self.partial.take(&mut self.chunk) {
                self.left = head.length;
                return Poll::Ready(Ok(Some(head)));
            }
            if !ready!(self.poll_fill(cx))? {
                // RFC 9114 §7.1.
                return Poll::Ready(if self.partial.is_empty() { Ok(None) } else { Err(Fault::Connection(Code::FrameError)) });
            }
        }
    }

    /// Returns the next bytes of the frame at hand; nothing at its end.
    pub(crate) fn poll_payload(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        if self.left == 0 {
            return Poll::Ready(Ok(None));
        }
        if !ready!(self.poll_fill(cx))? {
            return Poll::Ready(Err(Fault::Connection(Code::FrameError)));
        }
        let len = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.chunk.len());
        self.left -= len as u64;
        Poll::Ready(Ok(Some(self.chunk.split_to(len))))
    }

    /// Adds the whole of the frame at hand to `whole`. The caller has seen that it is short.
    pub(crate) fn poll_whole(&mut self, cx: &mut Context<'_>, whole: &mut Vec<u8>) -> Poll<Result<(), Fault>> {
        while let Some(bytes) = ready!(self.poll_payload(cx))? {
            whole.extend_from_slice(&bytes);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads the frame at hand away.
    pub(crate) fn poll_skip(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        while ready!(self.poll_payload(cx))?.is_some() {}
        Poll::Ready(Ok(()))
    }
}

/// Says where in a message its stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessagePart {
    /// Between frames, before the head or after it.
    Between,
    /// The reader is inside a HEADERS frame.
    Section,
    /// The reader is inside a DATA frame.
    Data,
    /// The reader is inside a frame of an unknown type.
    Unknown,
    End,
}

/// Says how far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MessageProgress {
    Nothing,
    Head,
    Trailers,
}

/// One request as it comes on its stream.
pub struct Message<R> {
    frames: Frames<R>,
    purse: Arc<Purse>,
    part: MessagePart,
    seen: MessageProgress,
    /// A field section, as far as it has come: at most `section_max` bytes.
    section: Vec<u8>,
    section_max: usize,
    /// The length that the head promised, if it did, and the number of bytes that have come.
    promised: Option<u64>,
    received: u64,
    /// Content that was read before somebody wanted it.
    peeked: Option<Bytes>,
}

impl<R> fmt::Debug for Message<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("part", &self.part).field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl<R: Source> Message<R> {
    /// Begins a message whose field sections have at most `section_max` bytes, packed as they come.
    pub fn new(source: R, purse: Arc<Purse>, section_max: usize) -> Self {
        let frames = Frames::new(source);
        Self {
            frames,
            purse,
            part: MessagePart::Between,
            seen: MessageProgress::Nothing,
            section: Vec::new(),
            section_max,
            promised: None,
            received: 0,
            peeked: None,
        }
    }

    /// Returns the stream itself.
    pub const fn source(&mut self) -> &mut R {
        self.frames.source()
    }

    /// Reads the packed head, as it came. `None` means that it is larger than allowed, and has not been read.
    ///
    /// # Errors
    /// Fails when something else stands where the head should be.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Vec<u8>>, Fault>> {
        loop {
            match self.part {
                MessagePart::Section => {
                    if self.frames.left > self.section_max as u64 && self.section.is_empty() {
                        return Poll::Ready(Ok(None));
                    }
                    ready!(self.frames.poll_whole(cx, &mut self.section))?;
                    (self.part, self.seen) = (MessagePart::Between, MessageProgress::Head);
                    return Poll::Ready(Ok(Some(std::mem::take(&mut self.section))));
                }
                // RFC 9114 §4.1: content before its head.
                MessagePart::Data => return Poll::Ready(Err(Fault::Connection(Code::FrameUnexpected))),
                MessagePart::End => return Poll::Ready(Err(Fault::Stream(Code::RequestIncomplete))),
                MessagePart::Between | MessagePart::Unknown => ready!(self.poll_next(cx))?,
            }
        }
    }

    /// Notes how much content has to come, neither more nor less.
    ///
    /// # Errors
    /// Fails when more has come already.
    pub fn promise(&mut self, length: Option<u64>) -> Result<(), Fault> {
        self.promised = length;
        if self.is_more_than_promised() { Err(Fault::Stream(Code::MessageError)) } else { Ok(()) }
    }

    /// Returns whether the message ends here, without (more) content. It waits until that is known.
    ///
    /// # Errors
    /// Fails as [`Message::poll_data`] does.
    pub fn poll_ends(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Fault>> {
        if self.peeked.is_none() {
            self.peeked = ready!(self.poll_data(cx))?;
        }
        Poll::Ready(Ok(self.peeked.is_none()))
    }

    /// Returns whether the message is known to have ended.
    pub const fn has_ended(&self) -> bool {
        matches!(self.part, MessagePart::End) && self.peeked.is_none()
    }

    fn is_more_than_promised(&self) -> bool {
        self.promised.is_some_and(|promised| promised < self.received)
    }

    /// Returns whether all content has come that was promised, but not the end: what comes in its place makes the whole message malformed.
    fn awaits_end(&self) -> bool {
        self.part != MessagePart::End && self.promised == Some(self.received)
    }

    /// Takes the next content, after the head; nothing at its end. The last of promised content is given out when the end has come, too:
    /// whoever counts on the length does not ask again, and would take a malformed message for a whole one.
    ///
    /// # Errors
    /// Fails when the message is malformed, breaks the protocol, or its client has left.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        if self.peeked.is_some() && !self.awaits_end() {
            return Poll::Ready(Ok(self.peeked.take()));
        }
        loop {
            match self.part {
                MessagePart::End => return Poll::Ready(Ok(self.peeked.take())),
                MessagePart::Data => match ready!(self.frames.poll_payload(cx))? {
                    Some(data) => {
                        // RFC 9114 §4.1.2: neither more content than promised, nor less.
                        self.received += data.remaining() as u64;
                        if self.is_more_than_promised() {
                            return Poll::Ready(Err(Fault::Stream(Code::MessageError)));
                        }
                        if !self.awaits_end() {
                            return Poll::Ready(Ok(Some(data)));
                        }
                        self.peeked = Some(data);
                    }
                    None => self.part = MessagePart::Between,
                },
                MessagePart::Section => {
                    if self.frames.left > self.section_max as u64 {
                        return Poll::Ready(Err(Fault::Stream(Code::ExcessiveLoad)));
                    }
                    ready!(self.frames.poll_whole(cx, &mut self.section))?;
                    (self.part, self.seen) = (MessagePart::Between, MessageProgress::Trailers);
                    let trailers = std::mem::take(&mut self.section);
                    let mut has_pseudo = false;
                    let readable = qpack::decode(&trailers, |name, _, _| has_pseudo |= name.first() == Some(&b':'));
                    readable.map_err(|_| Fault::Connection(Code::DecompressionFailed))?;
                    // RFC 9114 §4.3. Nobody is told of trailers otherwise.
                    if has_pseudo {
                        return Poll::Ready(Err(Fault::Stream(Code::MessageError)));
                    }
                }
                MessagePart::Between | MessagePart::Unknown => ready!(self.poll_next(cx))?,
            }
        }
    }

    /// Goes on to the next frame, which may be the end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if self.part == MessagePart::Unknown {
            ready!(self.frames.poll_skip(cx))?;
            self.part = MessagePart::Between;
        }
        let Some(head) = ready!(self.frames.poll_head(cx))? else {
            self.part = MessagePart::End;
            let is_short = self.promised.is_some_and(|promised| promised > self.received);
            return Poll::Ready(if is_short { Err(Fault::Stream(Code::MessageError)) } else { Ok(()) });
        };
        self.part = match head.kind {
            frame::HEADERS if self.seen < MessageProgress::Trailers => MessagePart::Section,
            frame::DATA if self.seen < MessageProgress::Trailers => MessagePart::Data,
            // RFC 9114 §7.2: of the control stream, of servers, of HTTP/2, or after the end.
            frame::HEADERS
            | frame::DATA
            | frame::CANCEL_PUSH
            | frame::SETTINGS
            | frame::PUSH_PROMISE
            | frame::GOAWAY
            | frame::MAX_PUSH_ID => {
                return Poll::Ready(Err(Fault::Connection(Code::FrameUnexpected)));
            }
            kind if frame::is_of_http2(kind) => return Poll::Ready(Err(Fault::Connection(Code::FrameUnexpected))),
            // RFC 9114 §9: what nobody knows is left out.
            _ => MessagePart::Unknown,
        };
        let says_nothing = self.part == MessagePart::Unknown || head.length == 0;
        if says_nothing && !self.purse.pay(purse::EMPTY_FRAME, Instant::now()) {
            return Poll::Ready(Err(Fault::Connection(Code::ExcessiveLoad)));
        }
        Poll::Ready(Ok(()))
    }
}
