//! The fence: whether this machine may show what it has stored as fresh, although other machines may have purged it.
//!
//! A machine that stands alone always may. One of a cluster may while it has a lease. Without a lease it is *in doubt*: only what its origin has
//! confirmed a few seconds ago is fresh, and everything else is validated first, once for all who wait; if the origin fails, it stands in.
//!
//! What a lease is and who gets one is the business of `cluster`, which this room does not know.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release, SeqCst},
        },
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use admin_api::Spread;
use futures_util::future::join_all;
use parking_lot::Mutex;
use policy::purge::Order;
use semantics::Timestamp;
use store::Moment;
use tokio::time::timeout;

/// The longest time for which an answer waits until it is known how far a purge went: the longest lease, and a little.
const KNOWN_WITHIN: Duration = Duration::from_secs(35);

/// The other machines, as whoever purges sees them.
pub trait Machines: Send + Sync + 'static {
    /// Tells the other machines of an order that was carried out here a moment ago. Returns at once.
    fn purged(&self, order: &Order) -> Acknowledgement;
}

/// The word of the other machines on how far a purge went. It is bounded in time by the cluster's lease, and a little.
pub type Acknowledgement = Pin<Box<dyn Future<Output = Spread> + Send>>;

/// The news that is still to come of a purge that was carried out here: how far it went. Whoever drops it does not wait for that; the other machines are
/// told all the same.
#[derive(Default)]
pub struct Elsewhere(Option<Acknowledgement>);

impl Elsewhere {
    /// Waits until it is known how far the purge went, for so long at most as a lease can last. `None`: there are no other machines.
    pub async fn known(self) -> Option<Spread> {
        Some(timeout(KNOWN_WITHIN, self.0?).await.unwrap_or_else(|_| unknown()))
    }

    /// Waits on this thread until it is known how far the purge went, like [`known`](Self::known). Not for a worker.
    pub fn wait(self) -> Option<Spread> {
        let mut acknowledgement = self.0?;
        let waker = Waker::from(Arc::new(Unparking(thread::current())));
        let ends = Instant::now() + KNOWN_WITHIN;
        loop {
            if let Poll::Ready(spread) = acknowledgement.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Some(spread);
            }
            let left = ends.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(unknown());
            }
            thread::park_timeout(left);
        }
    }
}

/// Returns what is said of a purge of which nothing was heard in time.
fn unknown() -> Spread {
    let why = "nothing was heard of the other machines in time; they are told as soon as that is possible";
    Spread { why: Some(why.to_owned()), ..Spread::default() }
}

/// Wakes a thread that waits for a future.
struct Unparking(Thread);

impl Wake for Unparking {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Elsewhere").field(&self.0.is_some()).finish()
    }
}

/// The purges that a request or an answer has caused. The answer waits until it is known how far they went, as whoever gets it may look at another
/// machine next.
#[derive(Debug, Default)]
pub(crate) struct PendingPurges(Mutex<Vec<Elsewhere>>);

impl PendingPurges {
    /// Adds one more.
    pub(crate) fn add(&self, elsewhere: Elsewhere) {
        if elsewhere.0.is_some() {
            self.0.lock().push(elsewhere);
        }
    }

    /// Waits until it is known how far all of them went. Returns whether they hold everywhere; `None`: there are no other machines.
    pub(crate) async fn known(&self) -> Option<bool> {
        let caused = std::mem::take(&mut *self.0.lock());
        if caused.is_empty() {
            return None;
        }
        let known = join_all(caused.into_iter().map(Elsewhere::known)).await;
        Some(known.iter().flatten().all(|spread| spread.everywhere))
    }
}

/// The fence. It opens and closes by time alone, so that a machine that was cut off or frozen closes it without anybody's doing.
pub struct Fence {
    /// The end of the lease, in milliseconds of [`Clock`](crate::Clock). `u64::MAX`: there is no cluster.
    until: AtomicU64,
    /// The milliseconds for which a page counts as fresh in doubt, from when its origin was asked.
    doubt_hold: AtomicU64,
    machines: OnceLock<Box<dyn Machines>>,
    /// The number of orders that are being carried out here, and that the other machines are not told of yet.
    untold: AtomicUsize,
}

/// An order that is being carried out here. It is held until the other machines are told.
#[derive(Debug)]
pub(crate) struct UntoldOrder<'a>(&'a AtomicUsize);

impl Drop for UntoldOrder<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Default for Fence {
    fn default() -> Self {
        Self { until: AtomicU64::new(u64::MAX), doubt_hold: AtomicU64::new(0), machines: OnceLock::new(), untold: AtomicUsize::new(0) }
    }
}

impl Fence {
    /// Joins a cluster, without a lease yet. Only the first call counts.
    pub fn join(&self, machines: Box<dyn Machines>, doubt_hold: Duration) {
        if self.machines.set(machines).is_ok() {
            self.doubt_hold.store(u64::try_from(doubt_hold.as_millis()).unwrap_or(u64::MAX), Relaxed);
            self.until.store(0, Release);
        }
    }

    /// Extends the lease, after everything was carried out that it rests on. It is never shortened, but by its end.
    pub fn lease(&self, until: Timestamp) {
        if self.machines.get().is_some() {
            // Whoever sees this lease sees the purges that came before it.
            self.until.fetch_max(until.as_millis(), Release);
        }
    }

    /// Gives the lease up at once.
    pub fn give_up(&self) {
        if self.machines.get().is_some() {
            self.until.store(0, Release);
        }
    }

    /// Returns whether what is stored may be shown as fresh. Ask for the [verdict](crate::Store::verdict) after it: a lease rests on purges that
    /// were carried out before.
    #[inline]
    pub fn holds(&self, now: Timestamp) -> bool {
        now.as_millis() < self.until.load(Acquire)
    }

    /// Returns whether a page whose origin was asked at `asked` may be shown as fresh: with a lease any page, in doubt one that was asked for a
    /// moment ago by this process.
    #[inline]
    pub fn shows(&self, now: Timestamp, asked: Timestamp) -> bool {
        self.holds(now) || self.shows_in_doubt(now, asked)
    }

    #[cold]
    fn shows_in_doubt(&self, now: Timestamp, asked: Timestamp) -> bool {
        now.since(asked) < self.doubt_hold()
    }

    /// Returns the moment at which a request asks for a page together with others: in doubt, it follows only a fetch whose page may be
    /// [shown](Self::shows).
    pub(crate) fn moment(&self, now: Timestamp) -> Moment {
        let held = self.doubt_hold.load(Relaxed);
        let since = if self.holds(now) { 0 } else { (now.as_millis() + 1).saturating_sub(held.max(1)) };
        Moment { now: now.as_millis(), since }
    }

    /// Returns whether there may be other machines.
    pub fn is_joined(&self) -> bool {
        self.machines.get().is_some()
    }

    /// Returns for how long a page is fresh in doubt, from when its origin was asked.
    pub fn doubt_hold(&self) -> Duration {
        Duration::from_millis(self.doubt_hold.load(Relaxed))
    }

    /// Takes note that an order is about to be carried out here. What it returns is held until the other machines were told.
    pub(crate) fn begin(&self) -> UntoldOrder<'_> {
        self.untold.fetch_add(1, SeqCst);
        UntoldOrder(&self.untold)
    }

    /// Returns whether the other machines were told of every order that was carried out here. Read the generation of the store before it.
    pub(crate) fn has_told_all(&self) -> bool {
        self.untold.load(SeqCst) == 0
    }

    /// Tells the other machines of an order that was carried out here, if there are any and they cannot see by themselves what it was for.
    pub fn purged(&self, order: &Order) -> Elsewhere {
        let machines = self.machines.get().filter(|_| !order.by.is_own_observation());
        Elsewhere(machines.map(|machines| machines.purged(order)))
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence").field("until", &self.until).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future;

    use policy::purge::What;

    use super::*;

    struct Others;

    impl Machines for Others {
        fn purged(&self, _: &Order) -> Acknowledgement {
            Box::pin(async {
                tokio::task::yield_now().await;
                Spread { everywhere: true, ..Spread::default() }
            })
        }
    }

    const HOLD: Duration = Duration::from_secs(5);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis)
    }

    fn joined() -> Fence {
        let fence = Fence::default();
        fence.join(Box::new(Others), HOLD);
        fence
    }

    #[test]
    fn a_machine_that_stands_alone_shows_everything() {
        let fence = Fence::default();
        fence.lease(at(0));
        fence.give_up();
        assert!(fence.holds(at(1)) && fence.shows(at(1), Timestamp::default()));
        assert_eq!(fence.moment(at(1)), Moment { now: at(1).as_millis(), since: 0 });
    }

    #[test]
    fn a_lease_ends_by_itself_and_is_never_shortened() {
        let fence = joined();
        assert!(!fence.holds(at(0)), "nobody has given one");
        fence.lease(at(2_000));
        fence.lease(at(1_000));
        assert_eq!([0, 1_999, 2_000].map(|now| fence.holds(at(now))), [true, true, false]);
        fence.give_up();
        assert!(!fence.holds(at(0)));
    }

    /// Exactly what may be shown is followed, too.
    #[test]
    fn in_doubt_is_shown_what_was_asked_for_less_than_the_hold_ago() {
        let fence = joined();
        for (asked, expected) in [(0, false), (1_000, false), (1_001, true), (6_000, true)] {
            assert_eq!(fence.shows(at(6_000), at(asked)), expected, "{asked}");
            assert_eq!(at(asked).as_millis() >= fence.moment(at(6_000)).since, expected, "{asked}");
        }
        assert!(!fence.shows(at(6_000), Timestamp::default()), "what another process asked for");
        fence.lease(at(7_000));
        assert!(fence.shows(at(6_000), at(0)));
        assert_eq!(fence.moment(at(6_000)).since, 0);
    }

    /// Clients that come in the same moment are one crowd, also without a hold.
    #[test]
    fn without_a_hold_everything_is_validated_and_a_crowd_is_one() {
        let fence = Fence::default();
        fence.join(Box::new(Others), Duration::ZERO);
        assert!(!fence.shows(at(5), at(5)));
        assert_eq!(fence.moment(at(5)), Moment { now: at(5).as_millis(), since: at(5).as_millis() });
    }

    #[tokio::test]
    async fn an_answer_waits_for_all_purges_that_it_has_caused() {
        let order = Order::by_operator(What::Everything, true);
        let caused = PendingPurges::default();
        caused.add(Fence::default().purged(&order));
        assert_eq!(caused.known().await, None, "there are no other machines");
        for _ in 0..2 {
            caused.add(joined().purged(&order));
        }
        assert_eq!(caused.known().await, Some(true));
        caused.add(joined().purged(&order));
        caused.add(Elsewhere(Some(Box::pin(future::ready(Spread::default())))));
        assert_eq!(caused.known().await, Some(false));
    }

    #[test]
    fn a_thread_waits_for_an_answer_from_another_one() {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let elsewhere = Elsewhere(Some(Box::pin(async { answered.await.expect("an answer") })));
        let waiting = thread::spawn(|| elsewhere.wait());
        answer.send(Spread { took_ms: 7, ..Spread::default() }).expect("it waits");
        assert_eq!(waiting.join().expect("no panic").map(|spread| spread.took_ms), Some(7));
    }
}
