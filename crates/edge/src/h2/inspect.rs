//! The protocol without a socket and without a service: what bytes of a client ask for, and what is sent to it.

use std::{
    io::IoSlice,
    task::Waker,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::{
    content::{Content, content},
    core::{Core, Event},
    frame::Code,
    output::SLICES,
    piece::Piece,
};
use crate::limits::Limits;

/// What bytes asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InspectedEvent {
    /// A request.
    Request {
        /// Its stream.
        stream: u32,
        /// It has no content.
        ends: bool,
        /// Its head, as HTTP/1 writes it.
        text: Vec<u8>,
    },
    /// A request that is answered with this status by ourselves.
    Refuse {
        /// Its stream.
        stream: u32,
        /// The status.
        status: u16,
    },
}

/// One connection, driven by hand. Copies, so not meant for serving.
#[derive(Debug)]
pub struct InspectedHttp2 {
    core: Core<Vec<u8>>,
    pending: Vec<u8>,
    contents: Vec<(u32, Content)>,
    limits: Limits,
    is_over: bool,
}

impl InspectedHttp2 {
    /// A connection that begins now.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let core = Core::new(limits.clone(), Instant::now());
        Self { core, pending: Vec::new(), contents: Vec::new(), limits, is_over: false }
    }

    /// Takes the client's next bytes. Nothing is taken any more once the connection is over.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<InspectedEvent> {
        let mut events = Vec::new();
        if self.is_over {
            return events;
        }
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut rest = &pending[..];
        loop {
            match self.core.next(rest) {
                Ok((0, _)) => break,
                Ok((taken, event)) => {
                    rest = &rest[taken..];
                    events.extend(event.map(|event| self.inspected(event)));
                }
                Err(fault) => {
                    self.core.fail(fault);
                    self.is_over = true;
                    return events;
                }
            }
        }
        self.pending = rest.to_vec();
        events
    }

    fn inspected(&mut self, event: Event) -> InspectedEvent {
        match event {
            Event::Request { stream, ends, .. } => {
                let text = self.core.lend_text();
                let bytes = text.bytes().to_vec();
                self.core.give_back(text);
                if !ends {
                    let (feed, content) = content(Waker::noop().clone());
                    self.core.receive(stream, feed, None);
                    self.contents.push((stream, content));
                }
                self.core.hold(stream);
                InspectedEvent::Request { stream, ends, text: bytes }
            }
            Event::Refuse { stream, reject } => InspectedEvent::Refuse { stream, status: reject.status },
        }
    }

    /// Answers with a stored page: its head as HTTP/1 writes it, and its content.
    pub fn answer_stored(&mut self, stream: u32, head: &[u8], page: Vec<u8>) {
        self.core.send_stored_head(stream, 200, head, page.is_empty());
        if !page.is_empty() {
            self.core.send_stored(stream, page);
        }
    }

    /// Begins an answer whose content comes piece by piece.
    pub fn begin_answer(&mut self, stream: u32, status: u16, fields: &HeaderMap) {
        self.core.send_head(stream, StatusCode::from_u16(status).unwrap_or_default(), fields, false);
    }

    /// Goes on with it, as far as there is room. Returns the bytes that were taken.
    pub fn go_on(&mut self, stream: u32, piece: &[u8], ends: bool) -> usize {
        let taken = self.core.room(stream).min(piece.len());
        let is_all = taken == piece.len();
        self.core.send(stream, Some(Piece::Bytes(Bytes::copy_from_slice(&piece[..taken]))), ends && is_all);
        taken
    }

    /// Has nothing more to do with a request. Its answer is given up where it has not ended.
    pub fn let_go(&mut self, stream: u32) {
        self.contents.retain(|(id, _)| *id != stream);
        self.core.release(stream);
    }

    /// Ends an answer before its end.
    pub fn reset(&mut self, stream: u32) {
        self.core.reset(stream, Code::INTERNAL_ERROR);
    }

    /// Looks at the contents of requests, and takes what has come.
    pub fn read_contents(&mut self) -> usize {
        let mut context = std::task::Context::from_waker(Waker::noop());
        let mut read = 0;
        for (_, content) in &mut self.contents {
            while let std::task::Poll::Ready(Some(Ok(piece))) = content.poll_data(&mut context) {
                read += piece.len();
            }
        }
        self.core.collect();
        read
    }

    /// Time passes.
    pub fn wait(&mut self, seconds: u32) {
        self.core.now += Duration::from_secs(seconds.into());
        self.core.tick(seconds);
        self.core.expire(self.limits.write_timeout);
    }

    /// Says goodbye.
    pub fn leave(&mut self) {
        self.core.leave();
    }

    /// What leaves next, at most `max` bytes.
    pub fn output(&mut self, max: usize) -> Vec<u8> {
        let mut sent = Vec::new();
        loop {
            self.core.pump();
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = self.core.output.slices(&mut slices);
            let before = sent.len();
            for slice in &slices[..filled] {
                sent.extend_from_slice(&slice[..slice.len().min(max - sent.len())]);
            }
            let more = sent.len() - before;
            if more == 0 {
                return sent;
            }
            self.core.left(more);
        }
    }

    /// Bytes that are ready to leave.
    #[must_use]
    pub const fn output_len(&self) -> usize {
        self.core.output.len()
    }

    /// Part of a frame: bytes that wait for the rest.
    #[must_use]
    pub const fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// Whether the client made a mistake that ended the connection.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }
}
