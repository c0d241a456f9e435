//! Requests that are due and wait for a connection.

use std::{cell::RefCell, collections::VecDeque, rc::Rc, time::Duration};

use super::client::Orders;

/// A request that is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// The time at which it was due.
    pub(super) at: Duration,
    /// The request of the set; none: as the set chooses.
    pub(super) request: Option<u32>,
    /// Whether no connection was free at that moment. The generator is not to blame for the time until one is.
    pub(super) waited: bool,
}

impl Job {
    pub(super) const fn new(at: Duration, request: Option<u32>) -> Self {
        Self { at, request, waited: false }
    }
}

/// Requests that wait, and the clients that have room for one.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: RefCell<VecDeque<Job>>,
    /// Clients with room, the one that has waited longest first.
    parked: RefCell<VecDeque<Rc<Orders>>>,
}

impl Queue {
    /// Hands a request to the client that has had room for the longest time. Returns whether there was one.
    pub(super) fn push(&self, mut job: Job) -> bool {
        let mut parked = self.parked.borrow_mut();
        let mut found = false;
        while !found && let Some(orders) = parked.pop_front() {
            let room = orders.room.get();
            orders.room.set(room.saturating_sub(1));
            orders.is_parked.set(room > 1);
            if room > 0 {
                orders.wake();
                found = true;
            }
            if room > 1 {
                parked.push_back(orders);
            }
        }
        job.waited = !found;
        self.waiting.borrow_mut().push_back(job);
        found
    }

    pub(super) fn first(&self) -> Option<Job> {
        self.waiting.borrow().front().copied()
    }

    pub(super) fn take_first(&self) {
        self.waiting.borrow_mut().pop_front();
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Says that a client has room for so many requests.
    pub(super) fn park(&self, orders: &Rc<Orders>, room: usize) {
        orders.room.set(room);
        if room > 0 && !orders.is_parked.replace(true) {
            self.parked.borrow_mut().push_back(Rc::clone(orders));
        }
    }
}
