//! The places at the origin for requests with passwords, and the queue in front of them, which is fair by address.
//!
//! One address never holds all places, and whoever was served least goes first: who sends many requests waits behind whoever sends one.

use std::{collections::VecDeque, net::IpAddr, sync::Arc, time::Duration};

use origins::server::Budget;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// The requests of which is remembered whose they were.
const SERVED_MAX: usize = 64;
/// The requests of one address that count for nothing: somebody has mistyped a password.
const FREE: usize = 2;

/// Places at the origin. All workers share them.
#[derive(Debug)]
pub(super) struct Places {
    state: Mutex<State>,
    concurrency: usize,
    /// The bound on the requests at the origin. Its cap may change.
    budget: Option<Arc<Budget>>,
    waiting_max: usize,
    wait_max: Duration,
}

#[derive(Debug)]
struct State {
    concurrency: usize,
    /// The addresses that hold the places that are taken. `None`: many people are behind that address.
    taken: Vec<Option<IpAddr>>,
    /// Those who wait, the longest first.
    queue: VecDeque<LoginWaiter>,
    next: u64,
    /// The addresses that were served, the latest last.
    served: VecDeque<IpAddr>,
}

#[derive(Debug)]
struct LoginWaiter {
    number: u64,
    who: Option<IpAddr>,
    call: oneshot::Sender<()>,
}

/// A permit for one login at the origin: it has a place there, which is given back when this is dropped.
#[derive(Debug)]
pub(super) struct LoginPermit {
    places: Arc<Places>,
    who: Option<IpAddr>,
}

/// There is no place, and none within the longest wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoPlace;

impl State {
    /// Returns whether an address may have one more place: one is left for all others, if there are several.
    fn may_take(&self, who: Option<IpAddr>) -> bool {
        let held = self.taken.iter().filter(|holder| who.is_some() && **holder == who).count();
        self.taken.len() < self.concurrency && held < self.concurrency.saturating_sub(1).max(1)
    }

    fn take(&mut self, who: Option<IpAddr>) {
        self.taken.push(who);
        if let Some(who) = who {
            if self.served.len() >= SERVED_MAX {
                self.served.pop_front();
            }
            self.served.push_back(who);
        }
    }

    fn give_back(&mut self, who: Option<IpAddr>) {
        if let Some(at) = self.taken.iter().position(|holder| *holder == who) {
            self.taken.swap_remove(at);
        }
        self.call_next();
    }

    /// Returns the turn of a request of this address, before which there are `ahead` others of it in the queue: the lower, the sooner.
    fn turn(&self, who: Option<IpAddr>, ahead: usize) -> (usize, usize) {
        let Some(who) = who else { return (0, 0) };
        let held = self.taken.iter().filter(|holder| **holder == Some(who)).count();
        let served = self.served.iter().filter(|served| **served == who).count();
        (held, served.saturating_sub(FREE) + ahead)
    }

    /// Returns the turns of all who wait.
    fn turns(&self) -> impl Iterator<Item = (usize, (usize, usize))> {
        self.queue.iter().enumerate().map(|(at, waiting)| {
            let ahead = self.queue.iter().take(at).filter(|other| other.who == waiting.who).count();
            (at, self.turn(waiting.who, ahead))
        })
    }

    /// Calls whoever is next as long as there are places. The place is theirs from here on.
    fn call_next(&mut self) {
        while let Some((at, _)) = self.turns().filter(|(at, _)| self.may_take(self.queue[*at].who)).min_by_key(|(_, turn)| *turn) {
            let Some(next) = self.queue.remove(at) else { break };
            // Whoever has left meanwhile needs none.
            if next.call.send(()).is_ok() {
                self.take(next.who);
            }
        }
    }

    /// Makes room in a full queue for a request whose turn comes before that of somebody who waits.
    fn make_room(&mut self, who: Option<IpAddr>) -> bool {
        let ahead = self.queue.iter().filter(|waiting| waiting.who == who).count();
        let own = self.turn(who, ahead);
        match self.turns().max_by_key(|(_, turn)| *turn) {
            Some((at, last)) if own < last => self.queue.remove(at).is_some(),
            _ => false,
        }
    }
}

impl Places {
    /// Makes `concurrency` places, for which at most `waiting_max` wait, each for `wait_max`.
    pub(super) fn new(concurrency: usize, waiting_max: usize, wait_max: Duration) -> Self {
        let concurrency = concurrency.max(1);
        let state = State { concurrency, taken: Vec::new(), queue: VecDeque::new(), next: 0, served: VecDeque::new() };
        Self { state: Mutex::new(state), concurrency, budget: None, waiting_max, wait_max }
    }

    /// Allows no more places than a quarter of those at the origin, and at least one.
    pub(super) fn within(self, budget: Option<Arc<Budget>>) -> Self {
        Self { budget, ..self }
    }

    /// Returns the state with as many places as there are now. Whoever waits is called when one is given back, and then all that there are are given away.
    fn state(&self) -> MutexGuard<'_, State> {
        let quarter = self.budget.as_ref().map_or(usize::MAX, |budget| (budget.concurrency() / 4).max(1));
        let mut state = self.state.lock();
        state.concurrency = self.concurrency.min(quarter);
        state
    }

    /// Waits for a place. Dropping the future leaves the queue.
    pub(super) async fn acquire(self: Arc<Self>, who: Option<IpAddr>) -> Result<LoginPermit, NoPlace> {
        let (call, called) = oneshot::channel();
        let number = {
            let mut state = self.state();
            if state.may_take(who) {
                // Whoever waits although there is a place may not have this one.
                state.take(who);
                return Ok(LoginPermit { places: Arc::clone(&self), who });
            }
            if state.queue.len() >= self.waiting_max && !state.make_room(who) {
                return Err(NoPlace);
            }
            state.next += 1;
            let number = state.next;
            state.queue.push_back(LoginWaiter { number, who, call });
            number
        };
        let mut queued = Queued { places: &self, who, number, called, is_over: false };
        let called = tokio::time::timeout(self.wait_max, &mut queued.called).await;
        // A call that comes with the end of the wait is given back by the drop.
        match called {
            Ok(Ok(())) => {
                queued.is_over = true;
                drop(queued);
                Ok(LoginPermit { places: self, who })
            }
            Ok(Err(_)) | Err(_) => Err(NoPlace),
        }
    }
}

/// A place in the queue, given back however the wait ends.
struct Queued<'a> {
    places: &'a Places,
    who: Option<IpAddr>,
    number: u64,
    called: oneshot::Receiver<()>,
    is_over: bool,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.places.state();
        let before = state.queue.len();
        state.queue.retain(|waiting| waiting.number != self.number);
        if state.queue.len() == before && self.called.try_recv().is_ok() {
            state.give_back(self.who);
        }
    }
}

impl Drop for LoginPermit {
    fn drop(&mut self) {
        self.places.state().give_back(self.who);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn address(number: u8) -> Option<IpAddr> {
        Some([192, 0, 2, number].into())
    }

    fn places(concurrency: usize, waiting: usize) -> Arc<Places> {
        Arc::new(Places::new(concurrency, waiting, Duration::from_secs(10)))
    }

    #[tokio::test]
    async fn one_address_never_has_all_places() {
        let places = places(2, 8);
        let take = |number| Box::pin(Arc::clone(&places).acquire(address(number)));
        let first = take(1).now_or_never().expect("at once").expect("a place");
        let mut second = take(1);
        assert!(second.as_mut().now_or_never().is_none(), "the other place is for others");
        let other = take(2).now_or_never().expect("at once").expect("a place");
        drop(other);
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert!(second.now_or_never().expect("called").is_ok());
    }

    #[tokio::test]
    async fn sign_ins_never_have_more_than_a_quarter_of_the_origins_places_but_one() {
        let budget = Arc::new(Budget::new(16, 1, Duration::from_secs(1)));
        let places = Arc::new(Places::new(3, 8, Duration::from_secs(10)).within(Some(Arc::clone(&budget))));
        let all = |places: &Arc<Places>| {
            let takes = |number| Arc::clone(places).acquire(address(number)).now_or_never()?.ok();
            (1..10).map_while(takes).collect::<Vec<LoginPermit>>().len()
        };
        for (cap, sign_ins) in [(16, 3), (8, 2), (7, 1), (1, 1), (0, 1), (12, 3)] {
            budget.set_concurrency(cap);
            assert_eq!(all(&places), sign_ins, "of {cap} places");
        }
    }

    #[tokio::test]
    async fn whoever_sends_one_request_goes_before_whoever_sends_many() {
        let places = places(1, 8);
        let take = |number| Box::pin(Arc::clone(&places).acquire(address(number)));
        for _ in 0..FREE {
            drop(take(1).await.expect("a place"));
        }
        let first = take(9).await.expect("a place");
        let mut many: Vec<_> = (0..4).map(|_| take(1)).collect();
        many.iter_mut().for_each(|one| assert!(one.as_mut().now_or_never().is_none()));
        let mut one = take(2);
        assert!(one.as_mut().now_or_never().is_none());
        drop(first);
        let place = many[0].as_mut().now_or_never().expect("was first").expect("a place");
        drop(place);
        let place = one.now_or_never().expect("before the others").expect("a place");
        drop(place);
        assert!(many[1].as_mut().now_or_never().expect("called").is_ok());
    }

    #[tokio::test]
    async fn a_full_queue_has_room_for_whoever_is_not_in_it() {
        let places = places(1, 3);
        let take = |number| Box::pin(Arc::clone(&places).acquire(address(number)));
        let first = take(9).await.expect("a place");
        let mut many: Vec<_> = (0..3).map(|_| take(1)).collect();
        many.iter_mut().for_each(|one| assert!(one.as_mut().now_or_never().is_none()));
        assert_eq!(take(1).now_or_never().expect("at once").expect_err("full"), NoPlace);
        let mut person = take(2);
        assert!(person.as_mut().now_or_never().is_none(), "waits");
        assert!(many.pop().expect("three").now_or_never().expect("sent away").is_err());
        drop(many);
        drop(first);
        drop(person.now_or_never().expect("called").expect("a place"));
        // Whoever leaves after the call gives the place back.
        let held = take(1).await.expect("a place");
        let mut gone = take(2);
        assert!(gone.as_mut().now_or_never().is_none());
        drop(held);
        drop(gone);
        let held = take(3).now_or_never().expect("at once").expect("a place");
        drop(held);
        assert!(places.state.lock().taken.is_empty() && places.state.lock().queue.is_empty());
    }
}
