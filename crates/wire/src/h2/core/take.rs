//! Incoming frames: what the client says, one frame after the other.

use std::{collections::VecDeque, ops::ControlFlow};

use super::{
    BLOCK_FACTOR, Began, Block, Built, CONNECTION_WINDOW, Code, Core, Event, Fault, Feed, GOODBYE, Head, HeadBuilder, LEFT_MAX, Leaving,
    Over, STREAM_WINDOW, STREAMS_MAX, Stream, TABLE_BYTES, WINDOW_MAX, flood, wrong,
};
use crate::h2::{
    content::ContentTaken,
    frame::{self, PAYLOAD_MAX, PREFACE, flag, kind, setting},
    guard::name_of_flood,
    priority,
};

impl<H: AsRef<[u8]>> Core<H> {
    /// Takes one frame, or the preface, from the beginning of `bytes`. Returns how many bytes that was (0: it is not complete), and what it
    /// asks for.
    ///
    /// # Errors
    /// Fails when the connection is over; the caller then calls [`Core::fail`].
    pub fn next(&mut self, bytes: &[u8]) -> Result<(usize, Option<Event>), Fault> {
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
            // RFC 9113 §4.1: unknown frames are ignored.
            _ => Ok(None),
        }
    }

    /// Returns the stream of a frame that may come late; `None` if it has ended already.
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
            // The client may not know yet that we reset it (§5.1).
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
        // §8.1.1: the sum must be what the head announced.
        if stream.expected.is_some_and(|expected| stream.received > expected || ends && stream.received != expected) {
            self.allow_connection(payload.len());
            return self.misbehaved(at, Code::PROTOCOL_ERROR);
        }
        let unread = if let Some(feed) = &stream.feed {
            if !ends && stream.expected == Some(stream.received) {
                feed.await_end();
            }
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

    /// Takes a whole header block. It is decoded in any case: the table must stay the same as the client's (§4.3).
    fn take_block(&mut self, id: u32, block: &[u8], ends: bool, depends_on_itself: bool) -> Result<Option<Event>, Fault> {
        let is_new = id > self.last;
        let mut builder = HeadBuilder::new(&mut self.text, &self.limits, !is_new);
        let decoded = self.decoder.decode(block, |field| {
            builder.take(field.name, field.value, field.index.is_some());
            if builder.has_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let built = builder.end();
        decoded.map_err(|_| wrong(Code::COMPRESSION_ERROR, "a head that cannot be decoded"))?;
        if !is_new {
            return self.take_trailers(id, &built, ends).map(|()| None);
        }
        self.last = id;
        if self.leaving == Leaving::Yes {
            // §6.8: the client was told that nobody looks at it.
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
        match built {
            Built::Request { is_websocket } => Ok(Some(Event::Request { stream: id, ends, is_websocket })),
            Built::Refused(reject) => Ok(Some(Event::Refuse { stream: id, reject })),
            Built::Malformed(_) | Built::Trailers => self.misbehaved(at, Code::PROTOCOL_ERROR).map(|()| None),
        }
    }

    fn take_trailers(&mut self, id: u32, built: &Built, ends: bool) -> Result<(), Fault> {
        let Some(at) = self.find_whole(id) else { return Ok(()) };
        let stream = &mut self.streams[at];
        if stream.incoming_ended {
            return self.misbehaved(at, Code::STREAM_CLOSED);
        }
        let is_short = stream.expected.is_some_and(|expected| expected != stream.received);
        if !ends || is_short || !matches!(built, Built::Trailers) {
            return self.misbehaved(at, Code::PROTOCOL_ERROR);
        }
        if let Some(feed) = &stream.feed {
            feed.push(&[], true);
        }
        self.end_incoming(at);
        Ok(())
    }

    /// Checks a priority of RFC 9113 §5.3.2. It has no effect, but it must be correct.
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

    /// Takes a PRIORITY_UPDATE frame (RFC 9218 §7.1).
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
        // Streams that have not begun are not remembered: their field says it again.
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

    /// Sets the client's window for streams, including those that are open (§6.9.2).
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

    /// Notes that the client may send so many bytes more on the connection, and tells it from time to time.
    pub(super) fn allow_connection(&mut self, bytes: usize) {
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

    /// Opens the windows for content that its readers have taken.
    pub fn collect(&mut self) {
        for at in 0..self.streams.len() {
            let Some(feed) = &self.streams[at].feed else { continue };
            let ContentTaken { bytes, abandoned } = feed.taken();
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

    /// Sends the content of a request to `feed`. `expected` is its length, if the head says it.
    pub fn receive(&mut self, id: u32, feed: Feed, expected: Option<u64>) {
        if let Some(at) = self.find(id) {
            self.streams[at].expected = expected;
            self.streams[at].feed = Some(feed);
        }
    }

    /// Resets a request without content whose head announced some (§8.1.1).
    ///
    /// # Errors
    /// Fails when the client has made too many such mistakes; the connection is then over.
    pub fn refuse_malformed(&mut self, id: u32) -> Result<(), Fault> {
        self.find(id).map_or(Ok(()), |at| self.misbehaved(at, Code::PROTOCOL_ERROR))
    }
}
