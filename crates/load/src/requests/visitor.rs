//! One simulated client.

use std::{sync::Arc, time::Duration};

use super::{Asked, RequestSet};
use crate::answer::{Answer, Judged, judge};

/// What a visitor does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// It asks. There may be more to ask at the same time: ask again, while a connection is free.
    Ask(Asked),
    /// It waits for the answers that are under way.
    Wait,
    /// Its visit is over. A client that stays begins another one.
    Over,
}

/// One simulated client: what it asks, its cookies, what it has learnt.
#[derive(Debug)]
pub struct Visitor {
    set: Arc<RequestSet>,
    asked: bool,
    under_way: bool,
}

impl Visitor {
    /// A visitor who has done nothing yet. `number` differs for each visitor of a run.
    #[must_use]
    pub fn new(set: Arc<RequestSet>, number: u64, seed: u64) -> Self {
        let _ = (number, seed);
        Self { set, asked: false, under_way: false }
    }

    /// Says what the visitor asks. `only` is a request that the schedule names. `now` is the moment for which the request is meant: in an open
    /// schedule the intended one, which may be a little in the past.
    pub fn next(&mut self, only: Option<u32>, now: Duration) -> Next {
        let _ = now;
        if self.under_way {
            return Next::Wait;
        }
        self.asked = !self.asked;
        if !self.asked {
            return Next::Over;
        }
        self.under_way = true;
        let request = only.unwrap_or(0);
        let origin = self.set.requests[request as usize].origin;
        Next::Ask(Asked { request, origin, own: None, wants_body: false })
    }

    /// Takes an answer whose last byte came `now`, and judges it.
    pub fn answered(&mut self, asked: &Asked, answer: &Answer<'_>, now: Duration) -> Judged {
        let _ = (asked, now);
        self.under_way = false;
        judge(answer)
    }

    /// Learns that there will be no answer to a request. Returns how long the page took that is over with it, if it was the last that the page
    /// needed.
    pub fn failed(&mut self, asked: &Asked, now: Duration) -> Option<Duration> {
        let _ = (asked, now);
        self.under_way = false;
        None
    }

    /// How many connections the visitor uses at most, as a browser does, to one server over HTTP/1.1.
    #[must_use]
    pub const fn connections_max(&self) -> usize {
        1
    }
}
