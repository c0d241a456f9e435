//! A request that passes and may change what readers see: one value, [`Write`], from the moment its request is made until its answer goes out.
//!
//! What a write is, and whether the origin has accepted it, is in `policy`. There are two ways to know what it has changed. An origin says so in its answer
//! ([`signal`](self::signal)): a Ghost does. Of another one it is told by what the origin accepts ([`attempt`]): of a WordPress, unless its plugin says so
//! in its answers' [fields](super::fields). Either way the purge is carried out before the answer goes out.

mod attempt;
mod editors;
mod signal;
mod unanswered;

use std::rc::Rc;

use http::{HeaderValue, Request, header, response::Parts};
use policy::purge::WriteSubject;
use semantics::invalidation::is_safe;
use store::Generation;

use self::attempt::Attempt;
use super::fields::SpeaksForItself;
use crate::{Failure, Pipeline, ask::Fetched, fence::PendingPurges, forward, question::Question};

use self::signal::is_of_a_gateway;
pub(super) use self::{editors::Editors, unanswered::Writer};

/// A request that passes, as far as it may change something. Most change nothing.
#[derive(Debug)]
pub(crate) struct Write {
    question: Rc<Question>,
    is_unsafe: bool,
    /// The subject of a write to the source's API for editors.
    subject: Option<WriteSubject>,
    /// Whether the origin may say in its answer what has changed.
    is_told: bool,
    /// The attempt that it is, at an origin that does not say what has changed.
    attempt: Option<Rc<Attempt>>,
    caused: Rc<PendingPurges>,
}

impl Write {
    /// Finds out what a request may change.
    pub(crate) fn of(question: &Rc<Question>) -> Self {
        let policy = &question.site.policy;
        let is_unsafe = !is_safe(&question.method);
        Self {
            is_unsafe,
            subject: policy.written(&question.method, question.uri.path()),
            is_told: is_unsafe && policy.signal_field().is_some(),
            attempt: Attempt::of(question).map(Rc::new),
            caused: Rc::default(),
            question: Rc::clone(question),
        }
    }

    /// Makes the request for the origin, whose content is read in passing if that says what it does.
    pub(crate) fn request(&self, body: origins::Body) -> Box<Request<origins::Body>> {
        let body = match &self.attempt {
            Some(attempt) => attempt.read_content(body),
            None => body,
        };
        let mut request = forward::passed(&self.question, body);
        if self.publishes() || self.attempt.as_ref().is_some_and(|attempt| attempt.reads_answer()) {
            // Its answer is read in passing.
            request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        request
    }

    /// Returns whether the origin is asked to the end although the client has left, and everything is purged that follows from its answer.
    pub(crate) fn must_finish_without_client(&self) -> bool {
        self.is_told || self.attempt.as_ref().is_some_and(|attempt| attempt.must_finish_without_client(&self.question))
    }

    /// Asks the origin, and purges by what its answer says or shows. For how far that went, [`settle`](Self::settle) waits.
    pub(crate) async fn send(&self, pipeline: &Rc<Pipeline>, request: Box<Request<origins::Body>>) -> Result<Box<Fetched>, Failure> {
        let answered = if self.is_told || self.attempt.is_some() {
            Box::pin(self.send_and_purge(pipeline, request)).await
        } else {
            pipeline.ask(&self.question, request, self.question.interim.as_ref()).await
        };
        // A Ghost's scheduler tries again after this one status, and after no other.
        let is_scheduler = self.subject == Some(WriteSubject::Schedule);
        let failure = match answered {
            Ok(fetched) if is_scheduler && is_of_a_gateway(fetched.response.status()) => {
                Failure::of_status(fetched.response.status()).to_be_tried_again()
            }
            Ok(fetched) => return Ok(fetched),
            // Nothing was asked yet, so whoever wrote something may send it again.
            Err(failure) if is_scheduler || (self.is_unsafe && failure.is_unreachable()) => failure.to_be_tried_again(),
            Err(failure) => failure,
        };
        self.caused.known().await;
        Err(failure)
    }

    async fn send_and_purge(&self, pipeline: &Rc<Pipeline>, request: Box<Request<origins::Body>>) -> Result<Box<Fetched>, Failure> {
        let (question, interim) = (Rc::clone(&self.question), self.question.interim.clone());
        let (subject, attempt, caused) = (self.subject, self.attempt.clone(), Rc::clone(&self.caused));
        let asked = Rc::clone(pipeline);
        let written = async move {
            let mut answered = asked.ask(&question, request, interim.as_ref()).await;
            match &attempt {
                Some(attempt) => asked.purge_for_attempt(&question, attempt, &mut answered, &caused).await,
                None => asked.purge_for_answer(&question, subject, &mut answered, &caused).await,
            }
            answered
        };
        if self.must_finish_without_client() {
            pipeline.tasks.spawn_local(written).await.unwrap_or_else(|_| Err(Failure::given_up("the write was given up")))
        } else {
            written.await
        }
    }

    /// Purges what the method and the fields of the answer stand for, and waits until it is known how far all went that this request has caused.
    ///
    /// Returns the new generation if this made the only purges since the generation `since`: see [`Pipeline::invalidate`].
    pub(crate) async fn settle(&self, pipeline: &Pipeline, answer: &Fetched, since: Generation) -> Option<Generation> {
        let (status, headers) = (answer.response.status(), answer.response.headers());
        pipeline.look_for_editor(&self.question, status, headers);
        let speaks = answer.response.extensions().get::<SpeaksForItself>().is_some();
        let since = pipeline.invalidate(&self.question, status, headers, speaks, since, &self.caused);
        self.caused.known().await;
        since
    }

    /// Watches the content of the answer, if that may still say that something has changed.
    pub(crate) fn watch_answer(&self, pipeline: &Pipeline, answer: &Parts, body: origins::Body) -> origins::Body {
        let speaks = self.is_unsafe && answer.extensions.get::<SpeaksForItself>().is_some();
        if speaks { pipeline.purge_if_broken(&self.question, body) } else { body }
    }

    /// Returns whether a post is written or published by it: its answer says what was.
    const fn publishes(&self) -> bool {
        matches!(self.subject, Some(WriteSubject::Post | WriteSubject::Schedule))
    }
}
