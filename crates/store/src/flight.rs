//! Collapsing: of all requests that miss the same key at once, one leads and fetches, the others follow (RFC 9111 §4, "collapse requests").
//!
//! The leader is a task of its own, detached from any client, so nobody notices when the client that began it goes away. A leader that
//! is dropped without an outcome abandons its followers, who join again: exactly one of them leads then.
//!
//! Locks are taken in the order table, flight, body, and wakers are called with none of them held.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::fetches::Fetching;
use crate::growing::{Bounds, Budget, Growing, Reader, Refused};
use crate::hash::{AsIs, KeyHash};
use crate::options::StoreOptions;
use crate::purge::Generation;
use crate::resource::{Record, Stored};
use crate::spool::Spool;
use crate::wakers::{self, WakerSlot, Wakers};
use crate::writer::Writer;

/// The reason why a fetch failed, in the pipeline's words. Every follower gets a copy.
pub trait Failure: Clone + Send + Sync + 'static {}

impl<T: Clone + Send + Sync + 'static> Failure for T {}

/// Says when a request joins, in the caller's milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// The time. If the request leads, its flight is from then.
    pub now: u64,
    /// The time since which a flight must be that the request follows.
    pub since: u64,
}

/// The role of a request that missed.
#[derive(Debug)]
pub enum Joined<R: Record, E: Failure> {
    /// Nobody fetches this: the caller has to fetch it. Look into the store once more first: a flight that was there before may have ended
    /// since.
    Lead(Lead<R, E>),
    /// Somebody fetches this: wait for the outcome.
    Follow(Follow<R, E>),
    /// Too many wait, or too many flights are open: go to the origin alone.
    Full,
}

/// The outcome of a flight.
#[derive(Debug)]
pub enum Outcome<R: Record, E: Failure> {
    /// The head has arrived, and the body follows.
    Serve {
        /// The head.
        record: Arc<R>,
        /// The body, from its first byte.
        body: Reader<E>,
    },
    /// The origin confirmed the stored response (304).
    Stored(Arc<Stored<R>>),
    /// The response was fetched while its followers were held back, and is stored.
    Fetched(Arc<Stored<R>>),
    /// The answer is for one client only: each follower goes to the origin.
    Uncacheable,
    /// The leader gave up without an answer: join again.
    Abandoned,
    /// The fetch failed.
    Failed(E),
}

/// The right, and the duty, to fetch. The fetch task owns it; dropping it abandons the flight.
pub struct Lead<R: Record, E: Failure> {
    /// The seat, which is taken with the outcome, so that dropping knows whether there was one.
    seat: Option<Seat<R, E>>,
    begun: Generation,
    memory_max: u64,
    disk_max: u64,
}

impl<R: Record, E: Failure> Lead<R, E> {
    /// Bounds the body. Up to `memory_max` bytes are kept in memory, though no more than [`StoreOptions::object_max`]; above that, up to
    /// `disk_max` on the disk, if there is a disk tier. Without this call, there is no other bound on memory, and nothing goes to the disk.
    #[must_use]
    pub const fn within(mut self, memory_max: u64, disk_max: u64) -> Self {
        (self.memory_max, self.disk_max) = (memory_max, disk_max);
        self
    }

    /// Returns whether a body of this length is within the bounds.
    #[must_use]
    pub fn keeps(&self, length: u64) -> bool {
        let spools = || self.seat.as_ref().is_some_and(|seat| seat.flights.spool.get().is_some());
        length <= self.memory_max || (length <= self.disk_max && spools())
    }

    /// Returns the generation at which the fetch began.
    pub fn begun(&self) -> Generation {
        self.begun
    }

    /// Tells followers what was asked: a number that the caller compares.
    pub fn mark(&self, mark: u64) {
        if let Some(seat) = &self.seat {
            seat.flight.mark.store(mark, Ordering::Relaxed);
        }
    }

    /// Requests that wait for the outcome.
    #[must_use]
    pub fn followers(&self) -> usize {
        self.seat.as_ref().map_or(0, |seat| seat.flight.state.lock().waiting)
    }

    /// Makes a follower for the client that began this flight; `followers_max` never refuses it. Take it before the fetch begins: the client then
    /// waits like any other, and the fetch outlives it.
    #[must_use]
    pub fn follow(&self) -> Follow<R, E> {
        let seat = self.seat.as_ref().expect("a lead has its seat until an outcome consumes it");
        seat.flight.enter(usize::MAX).expect("a flight without an outcome takes any number");
        Follow::new(Arc::clone(&seat.flight), Arc::clone(&seat.flights))
    }

    /// Announces that the head is known and may be stored: followers get [`Outcome::Serve`] at once, and so do those who join until the
    /// flight ends.
    ///
    /// A `length_hint` above what may be stored closes the flight to newcomers now; one above what memory holds begins a file.
    #[must_use = "dropping the writer breaks the body off"]
    pub fn serve(mut self, record: Arc<R>, length_hint: Option<u64>) -> Writer<R, E> {
        let seat = self.seat.take().expect("a lead has its seat until an outcome consumes it");
        let bounds = seat.flights.bounds(self.memory_max, self.disk_max);
        let growing = seat.flight.serve(record, |readers| Growing::new(length_hint, bounds, readers));
        Writer::new(growing, seat)
    }

    /// Begins the body for the leader's own client alone: followers, and those who join until the flight ends, go on waiting. Whoever holds them
    /// back lets them in with [`Writer::let_in`] while the body grows, or tells them the outcome when it is whole, with the [`FlightGuard`].
    #[must_use = "dropping the writer breaks the body off"]
    pub fn serve_leader(mut self, length_hint: Option<u64>) -> Writer<R, E> {
        let seat = self.seat.take().expect("a lead has its seat until an outcome consumes it");
        let bounds = seat.flights.bounds(self.memory_max, self.disk_max);
        Writer::new(Arc::new(Growing::new(length_hint, bounds, 0)), seat)
    }

    /// Announces that a 304 freshened the stored response (RFC 9111 §4.3.4). Insert that before, so that latecomers find it.
    pub fn stored(self, stored: Arc<Stored<R>>) {
        self.settle(Phase::Stored(stored));
    }

    /// Announces that the answer may not be shared. Mark the key as uncacheable before, so that latecomers do not wait again.
    pub fn uncacheable(self) {
        self.settle(Phase::Uncacheable);
    }

    /// Announces that there is no answer.
    pub fn failed(self, error: E) {
        self.settle(Phase::Failed(error));
    }

    fn settle(mut self, phase: Phase<R, E>) {
        if let Some(seat) = self.seat.take() {
            seat.settle(phase);
        }
    }
}

impl<R: Record, E: Failure> Drop for Lead<R, E> {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            seat.settle(Phase::Abandoned);
        }
    }
}

/// A request that waits for another's fetch. Dropping it, or the future of [`outcome`](Self::outcome), takes it off the list.
pub struct Follow<R: Record, E: Failure> {
    flight: Arc<Flight<R, E>>,
    flights: Arc<Flights<R, E>>,
    slot: WakerSlot,
    /// Whether it has become a reader, which leaves by itself.
    left: bool,
}

impl<R: Record, E: Failure> Follow<R, E> {
    /// Returns the number that the leader was [marked](Lead::mark) with; zero if it was not.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.flight.mark.load(Ordering::Relaxed)
    }

    /// Returns the generation at which the fetch began.
    #[must_use]
    pub fn begun(&self) -> Generation {
        self.flight.begun
    }

    /// Makes a view of how long the leader thinks that a follower should wait: see [`FlightGuard::be_patient`]. `None` as long as it has not
    /// said so.
    pub fn patience(&self) -> impl Fn() -> Option<Duration> + use<R, E> {
        let flight = Arc::clone(&self.flight);
        move || match flight.patience.load(Ordering::Relaxed) {
            0 => None,
            millis => Some(Duration::from_millis(millis)),
        }
    }

    /// Waits for the outcome. Has no limit of its own: the caller sets one. Cancel-safe.
    pub async fn outcome(mut self) -> Outcome<R, E> {
        poll_fn(|cx| self.poll_outcome(cx)).await
    }

    fn poll_outcome(&mut self, cx: &Context<'_>) -> Poll<Outcome<R, E>> {
        let mut state = self.flight.state.lock();
        Poll::Ready(match &state.phase {
            Phase::Waiting => {
                let before = state.followers.wait(&mut self.slot, cx.waker());
                drop(state);
                drop(before);
                return Poll::Pending;
            }
            Phase::Serve { record, growing } => {
                self.left = true;
                Outcome::Serve { record: Arc::clone(record), body: Reader::entered(Arc::clone(growing)) }
            }
            Phase::Stored(stored) => Outcome::Stored(Arc::clone(stored)),
            Phase::Fetched(stored) => Outcome::Fetched(Arc::clone(stored)),
            Phase::Uncacheable => Outcome::Uncacheable,
            Phase::Abandoned => Outcome::Abandoned,
            Phase::Failed(error) => Outcome::Failed(error.clone()),
        })
    }

    fn new(flight: Arc<Flight<R, E>>, flights: Arc<Flights<R, E>>) -> Self {
        flights.followers.fetch_add(1, Ordering::Relaxed);
        Self { flight, flights, slot: None, left: false }
    }
}

impl<R: Record, E: Failure> Drop for Follow<R, E> {
    fn drop(&mut self) {
        self.flights.followers.fetch_sub(1, Ordering::Relaxed);
        self.flight.leave(&mut self.slot, self.left);
    }
}

/// An open flight, as shown to somebody who only looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlightView {
    /// The number of requests that wait for its outcome or read its body, including the one that began it once it reads.
    pub followers: usize,
    /// Whether the head has arrived, and the body follows.
    pub arriving: bool,
}

/// Keeps a completed flight open to latecomers until the response is stored. Dropping it ends the flight.
pub struct FlightGuard<R: Record, E: Failure> {
    seat: Seat<R, E>,
}

impl<R: Record, E: Failure> FlightGuard<R, E> {
    pub(crate) const fn new(seat: Seat<R, E>) -> Self {
        Self { seat }
    }

    /// Returns the generation at which the fetch began.
    pub fn begun(&self) -> Generation {
        self.seat.begun()
    }

    /// Returns how many followers wait for the outcome.
    #[must_use]
    pub fn followers(&self) -> usize {
        self.seat.flight.followers()
    }

    /// Tells the followers that were [held back](Lead::serve_leader) how long they should wait: at least a millisecond.
    pub fn be_patient(&self, patience: Duration) {
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX).max(1);
        self.seat.flight.patience.store(millis, Ordering::Relaxed);
    }

    /// Makes a counter of the followers who wait for the outcome, for later.
    pub fn followers_later(&self) -> impl Fn() -> usize + use<R, E> {
        let flight = Arc::clone(&self.seat.flight);
        move || flight.followers()
    }

    /// Gives what was stored to the followers that were [held back](Lead::serve_leader). Those who read already are not affected.
    pub fn fetched(self, stored: Arc<Stored<R>>) {
        self.seat.settle(Phase::Fetched(stored));
    }

    /// Tells the followers that were [held back](Lead::serve_leader) that the answer may not be shared. Mark the key as uncacheable before, so
    /// that latecomers do not wait again.
    pub fn uncacheable(self) {
        self.seat.settle(Phase::Uncacheable);
    }
}

/// A leader's seat: the flight's line in the table, and its share of `flights_max`. Dropping it gives both back.
pub(crate) struct Seat<R: Record, E: Failure> {
    flights: Arc<Flights<R, E>>,
    flight: Arc<Flight<R, E>>,
    /// The fetch, which is open as long as the seat is taken: the response is stored before it is given back.
    _fetching: Fetching,
}

impl<R: Record, E: Failure> Seat<R, E> {
    pub(crate) fn begun(&self) -> Generation {
        self.flight.begun
    }

    /// Keeps newcomers from joining. The flight still counts as open.
    pub(crate) fn close(&self) {
        self.flights.close(&self.flight);
    }

    /// Returns how many followers wait for the outcome.
    pub(crate) fn waiting(&self) -> usize {
        self.flight.followers()
    }

    /// Lets the followers that were held back read a body.
    pub(crate) fn let_in(&self, record: Arc<R>, growing: &Arc<Growing<E>>) {
        self.flight.let_in(record, growing);
    }

    /// Ends the flight: its followers each go to the origin.
    pub(crate) fn uncacheable(self) {
        self.settle(Phase::Uncacheable);
    }

    /// Ends the flight with a failure for the followers that were held back.
    pub(crate) fn fail(self, error: E) {
        self.settle(Phase::Failed(error));
    }

    /// Ends the flight with an outcome for those who wait for one. It leaves the table first: a request that learns the outcome and joins again
    /// must not find this flight.
    fn settle(self, phase: Phase<R, E>) {
        self.close();
        self.flight.settle(phase);
    }
}

impl<R: Record, E: Failure> Drop for Seat<R, E> {
    fn drop(&mut self) {
        self.close();
        self.flights.open.fetch_sub(1, Ordering::Relaxed);
        self.flight.settle(Phase::Abandoned);
    }
}

/// All open flights of a store.
pub(crate) struct Flights<R: Record, E: Failure> {
    stripes: Box<[Stripe<R, E>]>,
    open: AtomicUsize,
    followers: AtomicUsize,
    budget: Arc<Budget>,
    flights_max: usize,
    followers_max: usize,
    object_max: u64,
    /// The disk tier's spool, once that is open.
    spool: OnceLock<Arc<Spool>>,
}

type Stripe<R, E> = Mutex<HashMap<KeyHash, Arc<Flight<R, E>>, AsIs>>;

const STRIPES: usize = 16;

impl<R: Record, E: Failure> Flights<R, E> {
    pub(crate) fn new(options: &StoreOptions) -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            open: AtomicUsize::new(0),
            followers: AtomicUsize::new(0),
            budget: Arc::new(Budget::new(options.growing_max)),
            flights_max: options.flights_max,
            followers_max: options.followers_max,
            object_max: options.object_max.min(options.resource_max()),
            spool: OnceLock::new(),
        }
    }

    /// Allows bodies that are too long for memory to go to the disk.
    pub(crate) fn spool_to(&self, spool: Spool) {
        // A store opens its disk tier once.
        let _ = self.spool.set(Arc::new(spool));
    }

    /// Makes the caller lead or follow; `begin` opens the leader's fetch.
    ///
    /// A flight that a purge has `overtaken` since it began accepts nobody any more: it may bring what was purged, and a request that comes
    /// after a purge must not see that. Which purges cover it cannot be known before its tags are, so any purge counts, and the newcomer
    /// leads a flight of its own. That costs one more fetch for each key that is being fetched while something is purged. Neither does one that is
    /// older than the newcomer accepts.
    pub(crate) fn join(
        self: &Arc<Self>,
        hash: KeyHash,
        key: &[u8],
        moment: Moment,
        overtaken: impl FnOnce(Generation) -> bool,
        begin: impl FnOnce() -> Fetching,
    ) -> Joined<R, E> {
        let mut stripe = self.stripe(hash).lock();
        if let Some(flight) = stripe.get(&hash) {
            // Two keys with one hash do not happen; if they did, the second would have to go alone rather than read the first one's answer.
            if *flight.key != *key {
                return Joined::Full;
            }
            let entered =
                if flight.asked < moment.since || overtaken(flight.begun) { Err(Refused::Gone) } else { flight.enter(self.followers_max) };
            match entered {
                Ok(()) => return Joined::Follow(Follow::new(Arc::clone(flight), Arc::clone(self))),
                Err(Refused::Full) => return Joined::Full,
                // The flight was overtaken by a purge, or is closed and about to leave the table: a new one takes its line.
                Err(Refused::Gone) => {}
            }
        }
        let opened = self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| (open < self.flights_max).then_some(open + 1));
        if opened.is_err() {
            return Joined::Full;
        }
        // This comes after the newcomer's lookup: no purge that it knows of is younger.
        let fetching = begin();
        let begun = fetching.begun();
        let flight = Arc::new(Flight {
            hash,
            key: key.into(),
            begun,
            asked: moment.now,
            mark: AtomicU64::new(0),
            patience: AtomicU64::new(0),
            state: Mutex::new(State::default()),
        });
        stripe.insert(hash, Arc::clone(&flight));
        drop(stripe);
        Joined::Lead(Lead {
            seat: Some(Seat { flights: Arc::clone(self), flight, _fetching: fetching }),
            begun,
            memory_max: u64::MAX,
            disk_max: 0,
        })
    }

    /// Returns the flight that a newcomer would follow.
    pub(crate) fn view(&self, hash: KeyHash, key: &[u8], moment: Moment, overtaken: impl Fn(Generation) -> bool) -> Option<FlightView> {
        let stripe = self.stripe(hash).lock();
        let flight = stripe.get(&hash).filter(|flight| *flight.key == *key && flight.asked >= moment.since && !overtaken(flight.begun))?;
        let state = flight.state.lock();
        match &state.phase {
            Phase::Waiting => Some(FlightView { followers: state.waiting, arriving: false }),
            Phase::Serve { growing, .. } => Some(FlightView { followers: growing.readers(), arriving: true }),
            Phase::Stored(_) | Phase::Fetched(_) | Phase::Uncacheable | Phase::Abandoned | Phase::Failed(_) => None,
        }
    }

    /// Returns the number of open flights, including those that are closed to newcomers.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that wait for an outcome.
    pub(crate) fn followers(&self) -> usize {
        self.followers.load(Ordering::Relaxed)
    }

    /// Returns the bytes of growing bodies.
    pub(crate) fn growing_bytes(&self) -> u64 {
        self.budget.held()
    }

    fn bounds(&self, memory_max: u64, disk_max: u64) -> Bounds {
        let spool = self.spool.get().filter(|_| disk_max > 0).map(|spool| (Arc::clone(spool), disk_max));
        Bounds { memory_max: self.object_max.min(memory_max), spool, budget: Arc::clone(&self.budget) }
    }

    /// Takes this flight out of the table, but no other one that has taken its line.
    fn close(&self, flight: &Arc<Flight<R, E>>) {
        let mut stripe = self.stripe(flight.hash).lock();
        if stripe.get(&flight.hash).is_some_and(|held| Arc::ptr_eq(held, flight)) {
            stripe.remove(&flight.hash);
        }
    }

    fn stripe(&self, hash: KeyHash) -> &Stripe<R, E> {
        &self.stripes[hash.stripe(STRIPES)]
    }
}

/// One fetch and the requests that wait for it.
struct Flight<R: Record, E: Failure> {
    hash: KeyHash,
    key: Box<[u8]>,
    begun: Generation,
    /// The time at which the first request joined, in the caller's milliseconds.
    asked: u64,
    mark: AtomicU64,
    /// The milliseconds that a follower should wait at most; zero if nobody has said so.
    patience: AtomicU64,
    state: Mutex<State<R, E>>,
}

struct State<R, E> {
    phase: Phase<R, E>,
    /// The number of followers while waiting. After that the body counts them, so that no byte is dropped before a follower had a chance to
    /// read it.
    waiting: usize,
    followers: Wakers,
}

impl<R, E> Default for State<R, E> {
    fn default() -> Self {
        Self { phase: Phase::Waiting, waiting: 0, followers: Wakers::default() }
    }
}

enum Phase<R, E> {
    Waiting,
    Serve { record: Arc<R>, growing: Arc<Growing<E>> },
    Stored(Arc<Stored<R>>),
    Fetched(Arc<Stored<R>>),
    Uncacheable,
    Abandoned,
    Failed(E),
}

impl<R: Record, E: Failure> Flight<R, E> {
    /// Returns how many followers wait for the outcome.
    fn followers(&self) -> usize {
        let state = self.state.lock();
        if matches!(state.phase, Phase::Waiting) { state.waiting } else { 0 }
    }

    /// Counts one more follower, here or in the body.
    fn enter(&self, followers_max: usize) -> Result<(), Refused> {
        let mut state = self.state.lock();
        match &state.phase {
            Phase::Waiting if state.waiting >= followers_max => Err(Refused::Full),
            Phase::Waiting => {
                state.waiting += 1;
                Ok(())
            }
            Phase::Serve { growing, .. } => growing.enter(followers_max),
            Phase::Stored(_) | Phase::Fetched(_) | Phase::Uncacheable | Phase::Abandoned | Phase::Failed(_) => Err(Refused::Gone),
        }
    }

    fn leave(&self, slot: &mut WakerSlot, left: bool) {
        let mut state = self.state.lock();
        let own = state.followers.leave(slot);
        let growing = match &state.phase {
            Phase::Waiting => {
                state.waiting -= 1;
                None
            }
            Phase::Serve { growing, .. } if !left => Some(Arc::clone(growing)),
            Phase::Serve { .. } | Phase::Stored(_) | Phase::Fetched(_) | Phase::Uncacheable | Phase::Abandoned | Phase::Failed(_) => None,
        };
        drop(state);
        drop(own);
        // A follower that leaves without having looked was a reader at the first byte.
        if let Some(growing) = growing {
            growing.leave(0, &mut None);
        }
    }

    fn serve(&self, record: Arc<R>, body: impl FnOnce(usize) -> Growing<E>) -> Arc<Growing<E>> {
        let mut state = self.state.lock();
        let growing = Arc::new(body(state.waiting));
        state.phase = Phase::Serve { record, growing: Arc::clone(&growing) };
        let followers = state.followers.take();
        drop(state);
        wakers::wake(followers);
        growing
    }

    /// Lets everybody who waits read a body. If its first bytes are gone, they join again.
    fn let_in(&self, record: Arc<R>, growing: &Arc<Growing<E>>) {
        let mut state = self.state.lock();
        if !matches!(state.phase, Phase::Waiting) {
            return;
        }
        // The body gets its bytes from the caller alone: either all of them enter or none.
        let entered = (0..state.waiting).all(|_| growing.enter(usize::MAX).is_ok());
        state.phase = if entered { Phase::Serve { record, growing: Arc::clone(growing) } } else { Phase::Abandoned };
        let followers = state.followers.take();
        drop(state);
        wakers::wake(followers);
    }

    /// Tells an outcome to those who wait for one. Does nothing if there is one already.
    fn settle(&self, phase: Phase<R, E>) {
        let mut state = self.state.lock();
        if !matches!(state.phase, Phase::Waiting) {
            return;
        }
        state.phase = phase;
        let followers = state.followers.take();
        drop(state);
        wakers::wake(followers);
    }
}

impl<R: Record, E: Failure> fmt::Debug for Lead<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lead").field("begun", &self.begun).finish_non_exhaustive()
    }
}

impl<R: Record, E: Failure> fmt::Debug for Follow<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow").finish_non_exhaustive()
    }
}

impl<R: Record, E: Failure> fmt::Debug for FlightGuard<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlightGuard").field("begun", &self.begun()).finish_non_exhaustive()
    }
}
