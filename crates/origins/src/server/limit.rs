//! Limits how many requests an origin gets at once, from all workers together.
//!
//! The cap may change at any time, as machines that share an origin share its places. A smaller one takes effect as requests end.

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::{Fault, OriginError};

/// A cap on concurrent requests to an origin, with a bounded queue in front of it. Shared by all workers.
///
/// A request holds its place until its response body has ended or was dropped. An upgraded connection (101) holds it no longer than
/// the handshake: a thousand open WebSockets are not a thousand requests at work.
pub struct Budget {
    places: Arc<Places>,
    /// The cap that it was made with. No other one is larger.
    most: usize,
    waiting: AtomicUsize,
    queue_max: usize,
    queue_timeout: Duration,
    /// Tells that somebody has begun to wait.
    wanted: Notify,
    /// Tells whoever could raise the cap that somebody has begun to wait.
    missed: OnceLock<Arc<Notify>>,
}

/// The places: those that are free lie in the semaphore.
#[derive(Debug)]
struct Places {
    free: Arc<Semaphore>,
    cap: AtomicUsize,
    /// The places that requests hold beyond the cap: they are not given back.
    surplus: Mutex<usize>,
}

impl Places {
    /// Returns how many there are, with those beyond the cap.
    fn all(&self) -> usize {
        let surplus = self.surplus.lock();
        self.cap.load(Ordering::Relaxed) + *surplus
    }

    fn set_cap(&self, cap: usize) {
        let mut surplus = self.surplus.lock();
        let before = self.cap.swap(cap, Ordering::Relaxed);
        if cap >= before {
            let kept = (cap - before).min(*surplus);
            *surplus -= kept;
            self.free.add_permits(cap - before - kept);
        } else {
            *surplus += before - cap;
            *surplus -= self.free.forget_permits(*surplus);
        }
    }
}

/// A place within a [`Budget`]; given back when dropped, on any thread.
#[derive(Debug)]
pub struct Permit {
    place: Option<OwnedSemaphorePermit>,
    places: Arc<Places>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut surplus = self.places.surplus.lock();
        if let Some(place) = self.place.take()
            && *surplus > 0
        {
            *surplus -= 1;
            place.forget();
        }
    }
}

impl Budget {
    /// Makes a cap of `concurrency` (at least 1) requests at once, with at most `queue_max` waiting for a place, each at most `queue_timeout`.
    #[must_use]
    pub fn new(concurrency: usize, queue_max: usize, queue_timeout: Duration) -> Self {
        let concurrency = concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            places: Arc::new(Places {
                free: Arc::new(Semaphore::new(concurrency)),
                cap: AtomicUsize::new(concurrency),
                surplus: Mutex::default(),
            }),
            most: concurrency,
            waiting: AtomicUsize::new(0),
            queue_max,
            queue_timeout,
            wanted: Notify::new(),
            missed: OnceLock::new(),
        }
    }

    /// Changes the cap, to at most that which this was made with. With a smaller one, requests that hold a place keep it until they end; 0 admits nobody.
    pub fn set_concurrency(&self, concurrency: usize) {
        self.places.set_cap(concurrency.min(self.most));
    }

    /// Tells `missed` each time that somebody begins to wait, for whoever could raise the cap. Only the first call counts.
    pub fn tell_missed(&self, missed: Arc<Notify>) {
        let _ = self.missed.set(missed);
    }

    /// Returns how many requests hold a place.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.places.all().saturating_sub(self.places.free.available_permits())
    }

    /// Returns how many requests wait for a place.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits until somebody waits for a place, for whoever could do without its own.
    pub async fn wanted(&self) {
        let mut wanted = pin!(self.wanted.notified());
        wanted.as_mut().enable();
        if self.waiting() == 0 {
            wanted.await;
        }
    }

    /// Returns the cap.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        self.places.cap.load(Ordering::Relaxed)
    }

    /// Returns the cap that this was made with.
    #[must_use]
    pub const fn concurrency_max(&self) -> usize {
        self.most
    }

    /// Returns the longest wait for a place.
    #[must_use]
    pub const fn queue_timeout(&self) -> Duration {
        self.queue_timeout
    }

    /// Takes a place if there is one at once.
    #[must_use]
    pub fn try_acquire(&self) -> Option<Permit> {
        Arc::clone(&self.places.free).try_acquire_owned().ok().map(|place| self.permit(place))
    }

    fn permit(&self, place: OwnedSemaphorePermit) -> Permit {
        Permit { place: Some(place), places: Arc::clone(&self.places) }
    }

    /// Takes a place, first come first served. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// [`Fault::Overloaded`]: at once when the queue is full, else when the wait was too long.
    pub async fn acquire(&self) -> Result<Permit, OriginError> {
        if let Some(permit) = self.try_acquire() {
            return Ok(permit);
        }
        let _queued = Queued::enter(self)?;
        self.wanted.notify_waiters();
        if let Some(missed) = self.missed.get() {
            missed.notify_one();
        }
        match tokio::time::timeout(self.queue_timeout, Arc::clone(&self.places.free).acquire_owned()).await {
            Ok(Ok(place)) => Ok(self.permit(place)),
            // The semaphore is never closed; were it, there would be no place either.
            Ok(Err(_)) | Err(_) => Err(OriginError::new(
                Fault::Overloaded,
                format!("waited {:?} for one of {} places", self.queue_timeout, self.concurrency()),
            )),
        }
    }
}

/// A place in the queue, given back however the wait ends.
struct Queued<'a>(&'a AtomicUsize);

impl<'a> Queued<'a> {
    fn enter(budget: &'a Budget) -> Result<Self, OriginError> {
        let queued = Self(&budget.waiting);
        if budget.waiting.fetch_add(1, Ordering::Relaxed) < budget.queue_max {
            Ok(queued)
        } else {
            Err(OriginError::new(Fault::Overloaded, format!("{} requests in flight and {} waiting", budget.in_flight(), budget.queue_max)))
        }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("concurrency", &self.concurrency())
            .field("in_flight", &self.in_flight())
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_refuses_at_once_and_a_long_wait_in_time() {
        let budget = Budget::new(1, 1, Duration::from_secs(5));
        let first = budget.acquire().await.expect("the only place");
        let mut second = Box::pin(budget.acquire());
        assert!(second.as_mut().now_or_never().is_none(), "waits");
        assert_eq!((budget.in_flight(), budget.waiting()), (1, 1));

        let third = budget.acquire().now_or_never().expect("refused at once");
        assert_eq!(third.expect_err("the queue is full").fault, Fault::Overloaded);
        assert_eq!(budget.waiting(), 1, "a refusal leaves no trace");

        let start = tokio::time::Instant::now();
        assert_eq!(second.await.expect_err("nobody left").fault, Fault::Overloaded);
        assert_eq!(start.elapsed().as_secs(), 5);
        assert_eq!((budget.in_flight(), budget.waiting()), (1, 0));
        drop(first);
        assert_eq!(budget.in_flight(), 0);
    }

    #[tokio::test]
    async fn places_are_given_first_come_first_served_and_leaving_frees_the_queue() {
        let budget = Budget::new(1, 2, Duration::from_secs(5));
        let first = budget.acquire().await.expect("the only place");
        let mut gone = Box::pin(budget.acquire());
        let mut second = Box::pin(budget.acquire());
        assert!(gone.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(gone);
        assert_eq!(budget.waiting(), 1);
        drop(first);
        let second = second.await.expect("its turn");
        assert_eq!((budget.in_flight(), budget.waiting()), (1, 0));
        drop(second);
    }

    #[tokio::test]
    async fn whoever_could_do_without_its_place_is_told_that_it_is_wanted() {
        let budget = Budget::new(1, 2, Duration::from_secs(5));
        let first = budget.acquire().await.expect("the only place");
        let mut before = Box::pin(budget.wanted());
        assert!(before.as_mut().now_or_never().is_none());
        let mut second = Box::pin(budget.acquire());
        assert!(second.as_mut().now_or_never().is_none(), "waits");
        before.await;
        budget.wanted().await;
        drop(first);
        drop(second.await.expect("its turn"));
        assert!(budget.wanted().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_smaller_cap_takes_effect_as_requests_end_and_a_larger_one_at_once() {
        let budget = Budget::new(4, 8, Duration::from_secs(5));
        let mut held: Vec<_> = (0..3).map(|_| budget.try_acquire().expect("a place")).collect();
        budget.set_concurrency(1);
        assert_eq!((budget.concurrency(), budget.in_flight()), (1, 3), "whoever has a place keeps it");
        let mut waits = Box::pin(budget.acquire());
        assert!(waits.as_mut().now_or_never().is_none());
        held.truncate(1);
        assert!(waits.as_mut().now_or_never().is_none(), "one of one is held");
        held.clear();
        let place = waits.now_or_never().expect("its turn").expect("a place");
        assert_eq!(budget.in_flight(), 1);
        assert!(budget.try_acquire().is_none());

        budget.set_concurrency(0);
        drop(place);
        assert!(budget.try_acquire().is_none(), "nobody is admitted");
        let missed = Arc::new(Notify::new());
        budget.tell_missed(Arc::clone(&missed));
        let mut waits = Box::pin(budget.acquire());
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(missed.notified().now_or_never().is_some(), "somebody is told");
        budget.set_concurrency(100);
        assert_eq!(budget.concurrency(), 4, "never more than it was made with");
        let first = waits.now_or_never().expect("at once").expect("a place");
        let others: Vec<_> = std::iter::from_fn(|| budget.try_acquire()).collect();
        assert_eq!((others.len(), budget.in_flight()), (3, 4));
        // Down and up while all are held.
        budget.set_concurrency(2);
        budget.set_concurrency(3);
        drop((first, others));
        assert_eq!(budget.in_flight(), 0);
        assert_eq!(std::iter::from_fn(|| budget.try_acquire()).collect::<Vec<_>>().len(), 3);
    }

    #[test]
    fn a_queue_of_none_still_serves_and_is_shared_between_threads() {
        fn shared<T: Send + Sync>(_: &T) {}
        let budget = Budget::new(0, 0, Duration::ZERO);
        shared(&budget);
        assert_eq!(budget.concurrency(), 1);
        let place = budget.acquire().now_or_never().expect("at once").expect("one place");
        assert!(budget.acquire().now_or_never().expect("at once").is_err());
        std::thread::spawn(move || drop(place)).join().expect("no panic");
        assert_eq!(budget.in_flight(), 0);
    }
}
