//! What the origin does for clients that leave before there is an answer: its time is counted, with the reason why it was asked.
//!
//! A request that asks for its client alone ends with it, and what it has cost until then goes into the note of that request ([`Expense`]). A fetch that others
//! may share goes on, and is told of when it has ended ([`InVain::watch`]): the note has been read by then.

use std::{
    fmt,
    sync::OnceLock,
    time::{Duration, Instant},
};

use semantics::{RequestId, Scheme};

use crate::{Note, Pipeline, note::DecidingCookie, question::Question};

/// A fetch that has ended after the client that began it had left.
#[derive(Debug, Clone, Copy)]
pub struct FetchedInVain<'a> {
    /// The number of the site.
    pub site: u16,
    /// The scheme that the client asked for.
    pub scheme: Scheme,
    /// The host that it asked for.
    pub host: &'a str,
    /// Path and query as the origin was asked for them.
    pub target: &'a str,
    /// The rule that decided, or the reason why the origin was asked.
    pub rule: &'static str,
    /// The cookie for which the response is not stored.
    pub cookie: Option<DecidingCookie>,
    /// The time that the origin took until the head of its response.
    pub origin_time: Duration,
}

/// Whoever wants to know of such fetches.
#[derive(Default)]
pub struct InVain(OnceLock<Watcher>);

/// A function that is told of such a fetch.
type Watcher = Box<dyn Fn(&FetchedInVain<'_>) + Send + Sync>;

impl InVain {
    /// Tells `watcher` of every such fetch, on the thread of its worker. Only the first call counts.
    pub fn watch(&self, watcher: impl Fn(&FetchedInVain<'_>) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(watcher));
    }
}

impl fmt::Debug for InVain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InVain")
    }
}

impl Pipeline {
    /// Counts what a fetch has cost that the client that began it did not wait for.
    pub(crate) fn fetched_in_vain(&self, question: &Question, rule: &'static str, cookie: Option<DecidingCookie>, origin_time: Duration) {
        let site = question.site.id;
        self.counters.ruled(site, rule, Some(origin_time));
        if let Some(watcher) = self.shared.in_vain.0.get() {
            let (scheme, host, target) = (question.client.scheme, &question.authority, &question.target);
            watcher(&FetchedInVain { site, scheme, host, target, rule, cookie, origin_time });
        }
    }
}

/// The cost of a request to its origin until its client left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spent {
    request: RequestId,
    rule: &'static str,
    cookie: Option<DecidingCookie>,
    origin_time: Duration,
}

impl Spent {
    /// Adds it to the note of the request, if it is that one's.
    pub(crate) fn note(self, note: &mut Note) {
        if note.id == Some(self.request) {
            (note.rule, note.cookie, note.origin_time) = (Some(self.rule), self.cookie, Some(self.origin_time));
        }
    }
}

/// A request to the origin for one client alone, until it is answered. If its client leaves before, it is dropped.
#[derive(Debug)]
pub(crate) struct Expense<'a> {
    /// `None` as soon as there is an answer.
    pipeline: Option<&'a Pipeline>,
    question: &'a Question,
    rule: &'static str,
    cookie: Option<DecidingCookie>,
    /// Whether the origin is asked on without the client, and counted when it answers.
    goes_on: bool,
    began: Instant,
}

impl<'a> Expense<'a> {
    /// Begins when the origin is asked: by this rule, or for this reason.
    pub(crate) fn of(pipeline: &'a Pipeline, question: &'a Question, rule: &'static str, cookie: Option<DecidingCookie>) -> Self {
        Self { pipeline: Some(pipeline), question, rule, cookie, goes_on: false, began: Instant::now() }
    }

    /// Sets whether the origin is asked on without the client.
    pub(crate) const fn that_goes_on(mut self, goes_on: bool) -> Self {
        self.goes_on = goes_on;
        self
    }

    /// Ends it: there is an answer, whose note says what it has cost.
    pub(crate) fn answered(mut self) {
        self.pipeline = None;
    }
}

impl Drop for Expense<'_> {
    fn drop(&mut self) {
        let Some(pipeline) = self.pipeline else { return };
        let origin_time = self.began.elapsed();
        if !self.goes_on {
            pipeline.counters.origin_given_up(self.question.site.id, origin_time);
        }
        let request = self.question.identity.request_id();
        pipeline.spent.set(Some(Spent { request, rule: self.rule, cookie: self.cookie, origin_time }));
    }
}
