//! Hits: a request is answered from the store, inside the read that brought it.

use std::{rc::Rc, time::Instant};

use semantics::RequestHead;

use super::{
    head::ParsedHead,
    log_line::LogLine,
    recall::{HeadText, RecallHit, RecallMiss},
};
use crate::{
    service::{HitOf, Peer, Service},
    worker::{Terms, Worker},
};

impl<S: Service> Worker<S> {
    /// Answers the head at the start of `text` if it is like one that was a hit before, without parsing it. `send` is given the response's head,
    /// the hit, and what is known about the request.
    ///
    /// # Errors
    /// When the head has to be parsed: with what [`hit`](Self::hit) may remember it by.
    #[inline]
    pub(crate) fn hit_again<T>(
        &self,
        terms: &Rc<Terms>,
        peer: Peer,
        text: &[u8],
        started: Instant,
        send: impl FnOnce(&mut Vec<u8>, HitOf<S>, &RecallHit<'_, '_, S::HitFacts>) -> T,
    ) -> Result<T, RecallMiss> {
        let recall = self.recall.borrow();
        let recognised = recall.recognise(terms, peer.scheme, text)?;
        let mut out = self.head_buffer.borrow_mut();
        out.clear();
        // Without a combinator: it would copy the hit once more.
        match self.service.again(peer, recognised.known(), started, &mut out) {
            Some(hit) => Ok(send(&mut out, hit, &recognised)),
            None => Err(recognised.as_miss()),
        }
    }

    /// Answers from the store, if that can be done at once, a head for which [`may_be_hit`](super::head::may_be_hit) is true; `text` is what it
    /// was read from, and what [`hit_again`](Self::hit_again) said of it. `send` is given the response's head, the hit, and what the log wants to know.
    #[inline]
    pub(crate) fn hit<T>(
        &self,
        terms: &Rc<Terms>,
        peer: Peer,
        text: HeadText<'_>,
        parsed: ParsedHead<'_>,
        started: Instant,
        send: impl FnOnce(&mut Vec<u8>, HitOf<S>, LogLine<'_>) -> T,
    ) -> Option<T> {
        let ParsedHead { head, fields } = parsed;
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
