//! One simulated client: who asks, and over which connections.

use std::{collections::VecDeque, time::Duration};

use smallvec::SmallVec;

use super::slots::Key;
use crate::requests::{Visitor, VisitorRequest};

/// Says why a client is there, and so when it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It stays, and asks again as soon as it has its answer.
    Stays,
    /// It does what a visitor does, and leaves.
    Visits,
    /// It asks when the schedule says so, and rests between.
    Asks,
    /// It asks what a log says that one visitor has asked.
    Replays(u32),
}

/// Somebody who asks over a client's connections. A client has one such voice, or, where requests are pipelined, one for each place in the pipeline.
#[derive(Debug)]
pub(super) struct Voice {
    /// Decides what is asked.
    pub(super) visitor: Visitor,
    /// The request that the schedule names, until the visit is over.
    pub(super) only: Option<u32>,
    /// The time at which the schedule wanted the next request; none: as soon as may be.
    pub(super) intended: Option<Duration>,
    /// The request that the visitor wants to ask, while no connection is free.
    pub(super) pending: Option<VisitorRequest>,
    /// Whether it waits until the permitted load lets it send.
    pub(super) is_in_line: bool,
}

impl Voice {
    pub(super) const fn new(visitor: Visitor) -> Self {
        Self { visitor, only: None, intended: None, pending: None, is_in_line: false }
    }
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) asked: VisitorRequest,
    /// The number of the client's voice that asks.
    pub(super) voice: u16,
    /// The time at which it should have been sent. In closed schedules: the time at which the client wanted to send it.
    pub(super) intended: Duration,
    /// The time at which it was sent; none: it waits for its connection.
    pub(super) sent: Option<Duration>,
    /// Whether this is the second attempt.
    pub(super) again: bool,
    /// Whether its connection was idle for a while when it was sent.
    pub(super) after_idleness: bool,
    /// Whether its method is `HEAD`.
    pub(super) head: bool,
    /// Whether it may be sent again.
    pub(super) idempotent: bool,
}

/// One simulated client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) kind: Kind,
    pub(super) voices: SmallVec<[Voice; 1]>,
    /// The connections of the client.
    pub(super) connections: SmallVec<[Key; 1]>,
    /// Requests that must be sent again over another connection.
    pub(super) again: VecDeque<PendingRequest>,
    /// Requests of the schedule that wait for this client, and their moments.
    pub(super) waiting: VecDeque<(Duration, u32)>,
    /// The number of attempts to connect that have failed since the last success.
    pub(super) failures: u32,
    /// Requests under way.
    pub(super) under_way: u32,
    /// Whether it leaves when it has its answers.
    pub(super) leaves: bool,
}

impl Client {
    pub(super) fn new(kind: Kind, visitors: impl IntoIterator<Item = Visitor>) -> Self {
        Self {
            kind,
            voices: visitors.into_iter().map(Voice::new).collect(),
            connections: SmallVec::new(),
            again: VecDeque::new(),
            waiting: VecDeque::new(),
            failures: 0,
            under_way: 0,
            leaves: false,
        }
    }

    /// Returns whether the client has nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        let silent = |voice: &Voice| voice.intended.is_none() && voice.pending.is_none();
        self.under_way == 0 && self.again.is_empty() && self.waiting.is_empty() && self.voices.iter().all(silent)
    }
}
