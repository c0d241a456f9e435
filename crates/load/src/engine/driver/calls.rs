//! Requests under way, under numbers that are used again.

use std::time::Duration;

use crate::requests::VisitorRequest;

/// A request that a visitor has asked and that has not ended.
#[derive(Debug)]
pub(super) struct Call {
    /// The visitor who asks it.
    pub(super) seat: usize,
    /// The request.
    pub(super) asked: VisitorRequest,
    /// The time at which the schedule wanted it sent; none: as soon as possible.
    pub(super) intended: Option<Duration>,
    /// The time at which it was asked, and later the time at which it was sent.
    pub(super) sent: Duration,
    /// The time from which on its answer is too late.
    pub(super) deadline: Duration,
    /// Whether it is on a connection.
    pub(super) is_sent: bool,
    /// Whether a server has refused it, so that it was sent again.
    pub(super) is_again: bool,
    /// Whether nothing was in the way of sending it at once.
    pub(super) is_prompt: bool,
}

/// Requests under way. The numbers are small, and those of ended ones are used again.
#[derive(Debug, Default)]
pub(super) struct Calls {
    places: Vec<Option<Call>>,
    free: Vec<u32>,
}

impl Calls {
    pub(super) fn insert(&mut self, call: Call) -> u32 {
        if let Some(free) = self.free.pop() {
            self.places[free as usize] = Some(call);
            return free;
        }
        self.places.push(Some(call));
        u32::try_from(self.places.len() - 1).expect("requests under way on a client are far fewer than 2^32")
    }

    pub(super) fn get(&self, call: u32) -> Option<&Call> {
        self.places.get(call as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, call: u32) -> Option<&mut Call> {
        self.places.get_mut(call as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, call: u32) -> Option<Call> {
        let removed = self.places.get_mut(call as usize)?.take()?;
        self.free.push(call);
        Some(removed)
    }

    pub(super) const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Returns the numbers of those whose deadline has come.
    pub(super) fn late(&self, now: Duration) -> Vec<u32> {
        let late = |place: &Option<Call>| place.as_ref().is_some_and(|call| call.deadline <= now);
        (0..).zip(&self.places).filter(|(_, place)| late(place)).map(|(call, _)| call).collect()
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.places.iter().flatten().map(|call| call.deadline).min()
    }
}
