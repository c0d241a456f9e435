//! Outgoing frames: heads, contents in the order of their urgency, ends.

use std::{rc::Rc, task::Waker, time::Duration};

use bytes::{Buf as _, Bytes};
use http::{HeaderMap, StatusCode};

use super::{Code, Core, Encoder, Head, LEFT_TIMEOUT, OUTPUT_MAX, Over, Piece, Priority, QUEUE_MAX, QUEUE_MIN, QUEUES_MAX, Stream};
use crate::h2::frame::{self, flag, kind};

impl<H: AsRef<[u8]>> Core<H> {
    /// Marks a stream as being answered, until [`Core::release`].
    pub fn hold(&mut self, id: u32) {
        if let Some(at) = self.find(id) {
            self.streams[at].held = true;
        }
    }

    /// Ends what [`Core::hold`] began: nobody answers the stream any more. An answer that has not ended is given up.
    pub fn release(&mut self, id: u32) {
        let Some(at) = self.find(id) else { return };
        self.streams[at].held = false;
        if self.streams[at].over.is_none() && !self.streams[at].ends {
            // Its answer was given up.
            return self.end_by_reset(at, Code::INTERNAL_ERROR);
        }
        self.remove_if_done(at);
    }

    /// Returns how a stream ended, if it did, and how many bytes of content left. A stream that is not known any more counts as reset.
    pub fn state(&self, id: u32) -> (Option<Over>, u64) {
        self.find(id).map_or((Some(Over::Reset), 0), |at| (self.streams[at].over, self.streams[at].sent))
    }

    /// Registers `waker`, which is woken when the stream has ended or has room.
    pub fn watch(&mut self, id: u32, waker: &Waker) {
        if let Some(at) = self.find(id) {
            match &mut self.streams[at].waker {
                Some(known) if known.will_wake(waker) => {}
                place => *place = Some(waker.clone()),
            }
        }
    }

    /// Returns how many bytes may be queued now.
    pub fn room(&self, id: u32) -> usize {
        let Some(at) = self.find(id) else { return 0 };
        let queued = self.streams[at].queued;
        let shared = QUEUE_MAX.saturating_sub(queued).min(QUEUES_MAX.saturating_sub(self.queued));
        shared.max(QUEUE_MIN.saturating_sub(queued))
    }

    /// Sends an interim or the final head, with the fields of a map.
    pub fn send_head(&mut self, id: u32, status: StatusCode, fields: &HeaderMap, ends: bool) {
        self.write_head(id, status.as_u16(), ends, |encoder, out| {
            for (name, value) in fields {
                if !is_of_the_connection(name.as_str().as_bytes()) {
                    encoder.field(name.as_str().as_bytes(), value.as_bytes(), out);
                }
            }
        });
    }

    /// Sends a head that is kept as HTTP/1 writes it.
    pub fn send_stored_head(&mut self, id: u32, status: u16, text: &[u8], ends: bool) {
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

    /// Queues content; `ends` says that it is the last.
    pub fn send(&mut self, id: u32, piece: Option<Piece<H>>, ends: bool) {
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

    /// Sends a whole stored page as content. Returns `true` if all of it is in the output.
    pub fn send_stored(&mut self, id: u32, page: H) -> bool {
        let len = page.as_ref().len();
        let Some(at) = self.find(id).filter(|&at| self.streams[at].over.is_none()) else { return false };
        let stream = &self.streams[at];
        let fits = len <= self.client_frame && len as i64 <= stream.send_window.min(self.send_window);
        if fits && self.waiting == 0 && self.output.len() < OUTPUT_MAX {
            self.emit(at, Piece::Stored(page, 0), true);
            return true;
        }
        self.send(id, Some(Piece::Part(Rc::new(page), 0, len)), true);
        false
    }

    /// Ends a stream before everything was sent.
    pub fn reset(&mut self, id: u32, code: Code) {
        if let Some(at) = self.find(id).filter(|&at| self.streams[at].over.is_none()) {
            self.end_by_reset(at, code);
        }
    }

    /// Moves the data that the windows allow into the output, as long as that has room.
    pub fn pump(&mut self) {
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

    /// Returns the stream whose turn it is (RFC 9218 §10). The most urgent come first. Among equals, those that are of use only when they
    /// are whole come one after the other; then the others take turns.
    fn pick(&self) -> Option<usize> {
        let has_window = self.send_window > 0;
        let ready = self.streams.iter().enumerate().filter(|(_, stream)| stream.is_ready() && (has_window || stream.queue.is_empty()));
        let (at, _) = ready.min_by_key(|(_, stream)| {
            let Priority { urgency, incremental } = stream.priority;
            (urgency, incremental, if incremental { stream.turn } else { 0 }, stream.id)
        })?;
        Some(at)
    }

    /// Writes a DATA frame.
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

    /// Returns whether a stream waits for its client: for a window, or for the rest of content that nobody reads.
    pub fn has_waiting(&self) -> bool {
        self.waiting > 0 || self.streams.iter().any(|stream| stream.over.is_some() && !stream.held)
    }

    /// Ends the streams that have waited for their client longer than `patience`.
    pub fn expire(&mut self, patience: Duration) {
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

/// Returns whether a field belongs to HTTP/1 alone (RFC 9113 §8.2.2).
fn is_of_the_connection(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] = [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];
    matches!(name.len(), 7 | 10 | 16 | 17) && NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}
