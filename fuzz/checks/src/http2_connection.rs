//! A connection of HTTP/2 that is driven by hand: it does with [`Core`] what a server does, without a socket and without a service.

use std::{
    io::IoSlice,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use wire::{
    HeadLimits,
    h2::{Content, Core, Event, Piece, SLICES, content},
};

/// How long a client may take nothing before its stream is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the client's bytes asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A request, and the text of its head.
    Request { stream: u32, ends: bool, text: Vec<u8> },
    /// A request that is to be refused with this status.
    Refuse { stream: u32, status: u16 },
}

pub(crate) struct Connection {
    core: Core<Vec<u8>>,
    pending: Vec<u8>,
    contents: Vec<(u32, Content)>,
    is_over: bool,
}

impl Connection {
    pub(crate) fn new() -> Self {
        let core = Core::new(HeadLimits::default(), Instant::now());
        Self { core, pending: Vec::new(), contents: Vec::new(), is_over: false }
    }

    /// Takes the client's next bytes. Nothing is taken any more once the connection is over.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Asked> {
        let mut asked = Vec::new();
        if self.is_over {
            return asked;
        }
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut rest = &pending[..];
        loop {
            match self.core.next(rest) {
                Ok((0, _)) => break,
                Ok((taken, event)) => {
                    rest = &rest[taken..];
                    asked.extend(event.map(|event| self.begin(event)));
                }
                Err(fault) => {
                    self.core.fail(fault);
                    self.is_over = true;
                    return asked;
                }
            }
        }
        self.pending = rest.to_vec();
        asked
    }

    fn begin(&mut self, event: Event) -> Asked {
        match event {
            Event::Request { stream, ends, .. } => {
                let lent = self.core.lend_text();
                let text = lent.bytes().to_vec();
                self.core.give_back(lent);
                if !ends {
                    let (feed, content) = content(Waker::noop().clone());
                    self.core.receive(stream, feed, None);
                    self.contents.push((stream, content));
                }
                self.core.hold(stream);
                Asked::Request { stream, ends, text }
            }
            Event::Refuse { stream, reject } => Asked::Refuse { stream, status: reject.status },
        }
    }

    /// Answers with a stored page: its head as HTTP/1 writes it, and its content.
    pub(crate) fn answer_stored(&mut self, stream: u32, head: &[u8], page: Vec<u8>) {
        self.core.send_stored_head(stream, 200, head, page.is_empty());
        if !page.is_empty() {
            self.core.send_stored(stream, page);
        }
    }

    /// Begins an answer whose content comes piece by piece.
    pub(crate) fn begin_answer(&mut self, stream: u32, status: u16) {
        self.core.send_head(stream, StatusCode::from_u16(status).unwrap_or_default(), &HeaderMap::new(), false);
    }

    /// Goes on with it, as far as there is room. Returns how many bytes were taken.
    pub(crate) fn go_on(&mut self, stream: u32, piece: &[u8], ends: bool) -> usize {
        let taken = self.core.room(stream).min(piece.len());
        let is_all = taken == piece.len();
        self.core.send(stream, Some(Piece::Bytes(Bytes::copy_from_slice(&piece[..taken]))), ends && is_all);
        taken
    }

    /// Has nothing more to do with a request. Its answer is given up where it has not ended.
    pub(crate) fn let_go(&mut self, stream: u32) {
        self.contents.retain(|(id, _)| *id != stream);
        self.core.release(stream);
    }

    /// Takes what has come of the contents of requests.
    pub(crate) fn read_contents(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        for (_, content) in &mut self.contents {
            while let Poll::Ready(Some(Ok(_))) = content.poll_data(&mut cx) {}
        }
        self.core.collect();
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, seconds: u32) {
        self.core.now += Duration::from_secs(seconds.into());
        self.core.tick(seconds);
        self.core.expire(PATIENCE);
    }

    /// Says goodbye.
    pub(crate) fn leave(&mut self) {
        self.core.leave();
    }

    /// Returns what leaves next, at most `max` bytes.
    pub(crate) fn output(&mut self, max: usize) -> Vec<u8> {
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

    /// Returns how many bytes are ready to leave.
    pub(crate) fn output_len(&self) -> usize {
        self.core.output.len()
    }

    /// Returns how many bytes wait for the rest of their frame.
    pub(crate) fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// Returns whether the client made a mistake that ended the connection.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}
