//! Hits: a request is answered from the store, inside the read that brought it.

use std::{rc::Rc, time::Instant};

use semantics::{RequestFields, RequestHead};
use wire::head::Head;

use super::log_line::LogLine;
use crate::{
    service::{HitOf, Peer, Service},
    worker::{Terms, Worker},
};

impl<S: Service> Worker<S> {
    /// Answers a head that was a hit before, byte for byte, without reading it. `send` is given the response's head, the hit, what the log wants
    /// to know, and whether the client wants the connection kept. `None` means that the head has to be read.
    #[inline]
    pub(crate) fn hit_again<T>(
        &self,
        terms: &Rc<Terms>,
        peer: Peer,
        text: &[u8],
        started: Instant,
        send: impl FnOnce(&mut Vec<u8>, HitOf<S>, LogLine<'_>, bool) -> T,
    ) -> Option<T> {
        let recall = self.recall.borrow();
        let repeated = recall.find(terms, peer.scheme, text)?;
        let mut out = self.head_buffer.borrow_mut();
        out.clear();
        let hit = self.service.again(peer, repeated.known(), started, &mut out)?;
        Some(send(&mut out, hit, repeated.log_line(), repeated.keep_alive()))
    }

    /// Answers from the store, if that can be done at once, a head for which [`may_be_hit`](super::head::may_be_hit) is true; `text` is what it
    /// was read from. `send` is given the response's head, the hit, and what the log wants to know.
    #[inline]
    pub(crate) fn hit<T>(
        &self,
        terms: &Rc<Terms>,
        peer: Peer,
        text: &[u8],
        (head, fields): (&Head<'_>, &RequestFields<'_>),
        started: Instant,
        send: impl FnOnce(&mut Vec<u8>, HitOf<S>, LogLine<'_>) -> T,
    ) -> Option<T> {
        let request = RequestHead {
            method: &head.method,
            scheme: peer.scheme,
            authority: head.authority,
            path: head.path,
            query: head.query,
            fields,
        };
        let mut out = self.head_buffer.borrow_mut();
        out.clear();
        let mut hit = self.service.hit(peer, &request, started, &mut out)?;
        let line = LogLine::of(head, fields);
        if let Some(known) = hit.known.take() {
            self.recall.borrow_mut().remember(terms, peer.scheme, text, &line, head.keep_alive, known);
        }
        Some(send(&mut out, hit, line))
    }
}
