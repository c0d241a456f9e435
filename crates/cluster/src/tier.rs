//! The tier: pages that one machine has fetched, for all of them, and the locks by which one of them fetches.
//!
//! What lies there is sealed with the cluster's secret under a name that is hashed with it, and says up to where its machine had carried out the
//! stream of purges when it asked for the page. Nothing else decides whether it is of use ([`ring`]): no clock, and no order in which anything was
//! written. Bodies are not encrypted: only what everybody may read is put there.
//!
//! Everything is bounded. A page has [`PAGE_BYTES_MAX`], all of them together what the operator says ([`TierOptions::memory`]): the server keeps
//! account of them, and those that expire soonest go first. A read has [`READ_DEADLINE`]; a tier that is late three times in a row is left alone for a
//! second. What waits here to be written has [`WAITING_BYTES_MAX`].

mod breaker;
pub mod ring;
mod scripts;
mod seal;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use admin_api::TierState;
use aws_lc_rs::rand;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::mpsc, task::JoinSet, time::MissedTickBehavior};

use self::{
    breaker::Breaker,
    ring::{Ring, Since},
    seal::{FRAME, Keys, Refused, beginning},
};
use crate::link::{Engine, Values};

/// The most bytes of a page as it is given here.
pub const PAGE_BYTES_MAX: usize = (1 << 20) + (48 << 10);
/// How long a read may take. Then the origin is asked.
pub const READ_DEADLINE: Duration = Duration::from_millis(50);
/// How long a page may take to be written.
const WRITE_DEADLINE: Duration = Duration::from_secs(2);
/// The most bytes of pages that wait to be written; further ones are not written, and counted.
pub const WAITING_BYTES_MAX: usize = 32 << 20;
/// The most pages and words that wait to be written.
const WAITING_MAX: usize = 1_024;
/// The most of them that are under way at once.
const AT_ONCE_MAX: usize = 16;
/// The most pages that this machine fetches for all at once. Further ones are fetched without a lock.
const HELD_MAX: usize = 1_024;
/// How long a lock is held without being renewed: what others wait when its holder dies.
const LOCK: Duration = Duration::from_secs(2);
/// The interval at which locks are renewed.
const RENEWAL: Duration = Duration::from_millis(500);
/// How long it is remembered for all machines that what was fetched is not for everybody.
const REFUSED: Duration = Duration::from_secs(5);
/// The first interval at which those who wait for another machine look again, and the longest.
const LOOK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));
/// The interval at which refused pages are told in the log.
const TELL: Duration = Duration::from_secs(60);

/// The options of the tier.
#[derive(Debug, Clone, Copy)]
pub struct TierOptions {
    /// The most bytes of pages that the server is to hold, with some 300 for each of them.
    pub memory: u64,
    /// How long a read may take: [`READ_DEADLINE`], but in tests.
    pub read_deadline: Duration,
}

/// The tier of a cluster. A clone is the same one; any runtime may use it.
#[derive(Clone)]
pub struct Tier(Arc<Inner>);

struct Inner {
    options: TierOptions,
    keys: Keys,
    ring: Arc<Ring>,
    values: Values,
    breaker: Breaker,
    /// The locks that this machine holds, by the id of the page.
    held: Mutex<HashMap<String, Token>>,
    work: mpsc::Sender<Work>,
    waiting_bytes: AtomicUsize,
    counts: Counts,
}

/// A random word that tells whose lock it is.
type Token = [u8; 16];

#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    written: AtomicU64,
    not_written: AtomicU64,
    refused: AtomicU64,
    /// Milliseconds from the start until when refused pages are not told in the log.
    quiet_until: AtomicU64,
}

/// Something to be written, in the order in which it was said.
enum Work {
    Put {
        id: String,
        sealed: Bytes,
        lasts: Duration,
        token: Option<Token>,
    },
    Remove {
        id: String,
    },
    /// Gives a lock back; `refused`: with a word for those who wait.
    Release {
        id: String,
        token: Token,
        refused: bool,
    },
}

/// What the server has said, and what it means here.
enum Answered {
    Found(Page),
    Locked,
    Held,
    /// There is a page from farther on in the stream than this machine has come.
    Ahead,
    Nothing,
    Failed,
}

/// What a look at the tier comes to.
#[derive(Debug)]
pub enum Looked {
    /// There is a page.
    Found(Page),
    /// There is none, and this machine is to fetch it.
    Turn(Turn),
    /// Another machine fetches it: look again after so long.
    Wait(Duration),
    /// The tier says nothing.
    Away,
}

/// A page of this cluster.
#[derive(Debug, Clone)]
pub struct Page {
    /// What was put.
    pub page: Bytes,
    /// The generation of this machine's store from which on purges count.
    pub since: u64,
    /// How long ago it was put, by the server's clock.
    pub rested: Duration,
    /// What tells it from every other page.
    pub mark: u128,
}

/// The turn to fetch a page for all machines. It is given back when it is dropped.
pub struct Turn {
    tier: Tier,
    id: String,
}

impl Turn {
    /// Tells those who wait that what was fetched is not for all. Changes nothing if a page was put.
    pub fn refuse(self) {
        self.tier.release(&self.id, true);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.tier.release(&self.id, false);
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tier").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl Tier {
    /// Begins to use the tier. What is written is written by a task on this runtime, which ends with the last clone.
    #[must_use]
    pub fn start(options: TierOptions, engine: &Engine, ring: Arc<Ring>, runtime: &Handle) -> Self {
        let (work, works) = mpsc::channel(WAITING_MAX);
        let inner = Arc::new(Inner {
            options,
            keys: Keys::new(engine.seals()),
            ring,
            values: engine.values(runtime.clone()),
            breaker: Breaker::new(Instant::now()),
            held: Mutex::default(),
            work,
            waiting_bytes: AtomicUsize::new(0),
            counts: Counts::default(),
        });
        let weak = Arc::downgrade(&inner);
        runtime.spawn(write(works, weak));
        Self(inner)
    }

    /// Looks for a page. If there is none but the one with the mark `known`, takes the lock to fetch it; `waited` is how long others have been waited
    /// for already. Never takes longer than twice [`TierOptions::read_deadline`].
    pub fn look(&self, name: &[u8], known: Option<u128>, waited: Duration) -> impl Future<Output = Looked> + Send + 'static {
        let (tier, id) = (self.clone(), self.0.keys.id(name));
        async move {
            if !tier.0.breaker.admits(Instant::now()) {
                return Looked::Away;
            }
            // Should this future be dropped, the lock that the server may have given is given back.
            let turn = tier.hold(&id);
            let (looked, token) = (tier.look_as(&id, known, turn.as_ref().map(|turn| turn.1)), turn.is_some());
            match looked.await {
                Answered::Found(page) => {
                    tier.forget(&id, token);
                    Looked::Found(page)
                }
                Answered::Locked => turn.map_or(Looked::Away, |turn| Looked::Turn(turn.0)),
                Answered::Ahead => {
                    tier.forget(&id, token);
                    Looked::Wait(LOOK.0)
                }
                Answered::Held => {
                    tier.forget(&id, token);
                    // Without a token, another fetch of this machine has the lock, or too many do.
                    if token { Looked::Wait((waited / 8).clamp(LOOK.0, LOOK.1)) } else { Looked::Away }
                }
                Answered::Nothing => {
                    tier.forget(&id, token);
                    Looked::Away
                }
                Answered::Failed => Looked::Away,
            }
        }
    }

    /// Puts a page, and gives the lock back if this machine has it. `begun` is the generation of this machine's store at which its fetch began.
    pub fn put(&self, name: &[u8], page: &[u8], begun: u64, lasts: Duration) {
        let inner = &*self.0;
        let id = inner.keys.id(name);
        let Some(place) = inner.ring.place(begun).filter(|_| page.len() <= PAGE_BYTES_MAX) else {
            return self.release(&id, false);
        };
        let mut random = [0; 12];
        let sealed = rand::fill(&mut random).ok().and_then(|()| inner.keys.seal(&id, page, &place, lasts, random));
        let Some(sealed) = sealed else { return self.release(&id, false) };
        let bytes = sealed.len();
        let waiting = inner.waiting_bytes.fetch_add(bytes, Relaxed) + bytes;
        let place = (waiting <= WAITING_BYTES_MAX && !inner.breaker.is_open()).then(|| inner.work.try_reserve().ok()).flatten();
        let Some(place) = place else {
            inner.waiting_bytes.fetch_sub(bytes, Relaxed);
            inner.counts.not_written.fetch_add(1, Relaxed);
            return self.release(&id, false);
        };
        let token = inner.held.lock().remove(&id);
        place.send(Work::Put { id, sealed, lasts, token });
    }

    /// Removes a page.
    pub fn remove(&self, name: &[u8]) {
        // What cannot be removed expires.
        let _ = self.0.work.try_send(Work::Remove { id: self.0.keys.id(name) });
    }

    /// Returns how the tier is doing.
    #[must_use]
    pub fn state(&self) -> TierState {
        let counts = &self.0.counts;
        TierState {
            place: "valkey".to_owned(),
            hits: counts.hits.load(Relaxed),
            misses: counts.misses.load(Relaxed),
            written: counts.written.load(Relaxed),
            refused: counts.refused.load(Relaxed),
            open: self.0.breaker.is_open(),
        }
    }

    /// Notes that this machine is about to hold a lock. Returns `None` if it does already, or holds too many.
    fn hold(&self, id: &str) -> Option<(Turn, Token)> {
        let mut token = [0; 16];
        let mut held = self.0.held.lock();
        if held.len() >= HELD_MAX || held.contains_key(id) || rand::fill(&mut token).is_err() {
            return None;
        }
        held.insert(id.to_owned(), token);
        Some((Turn { tier: self.clone(), id: id.to_owned() }, token))
    }

    /// Notes that this machine does not hold the lock that it tried to take.
    fn forget(&self, id: &str, tried: bool) {
        if tried {
            self.0.held.lock().remove(id);
        }
    }

    async fn look_as(&self, id: &str, known: Option<u128>, token: Option<Token>) -> Answered {
        let inner = &*self.0;
        let mut known = known.map(|mark| Bytes::copy_from_slice(&beginning(mark)));
        // What is of no use lies in the way of the lock: the second time, it is passed over.
        for _ in 0..2 {
            let answer = match scripts::look(inner, id, known.as_ref(), token, inner.options.read_deadline).await {
                Ok(answer) => answer,
                Err(why) => {
                    if inner.breaker.failed(Instant::now()) {
                        tracing::warn!(%why, "the shared tier is slow or fails: it is left alone for a second at a time until it answers");
                    }
                    inner.counts.misses.fetch_add(1, Relaxed);
                    return Answered::Failed;
                }
            };
            inner.breaker.answered();
            let (bytes, expires) = match answer {
                scripts::Answer::Page { bytes, expires } => (bytes, expires),
                scripts::Answer::Held => return Answered::Held,
                scripts::Answer::Locked => {
                    inner.counts.misses.fetch_add(1, Relaxed);
                    return Answered::Locked;
                }
                scripts::Answer::Nothing | scripts::Answer::Refused => {
                    inner.counts.misses.fetch_add(1, Relaxed);
                    return Answered::Nothing;
                }
            };
            let mark = bytes.slice(..bytes.len().min(seal::MARK));
            match self.open(id, bytes, expires) {
                Ok(Some(page)) => return Answered::Found(page),
                Ok(None) => return Answered::Ahead,
                Err(()) => known = Some(mark),
            }
        }
        // It is replaced as fast as it is read.
        Answered::Nothing
    }

    /// Opens what was found. `Ok(None)`: it is of use, but not before this machine has come as far in the stream. `Err`: it is of no use.
    fn open(&self, id: &str, bytes: Bytes, expires: Option<Duration>) -> Result<Option<Page>, ()> {
        let inner = &*self.0;
        let opened = if bytes.len() > PAGE_BYTES_MAX + FRAME { Err(Refused::TooLong) } else { inner.keys.open(id, bytes) };
        let opened = opened.and_then(|opened| Ok((opened, expires.ok_or(Refused::NoExpiry)?)));
        let (opened, expires) = match opened {
            Ok(opened) => opened,
            Err(why) => {
                inner.counts.refused.fetch_add(1, Relaxed);
                self.tell_refused(id, why);
                return Err(());
            }
        };
        match inner.ring.since(&opened.place) {
            Since::Generation(since) => {
                inner.counts.hits.fetch_add(1, Relaxed);
                let rested = opened.lasts.saturating_sub(expires);
                Ok(Some(Page { page: opened.page, since, rested, mark: opened.mark }))
            }
            Since::Ahead => Ok(None),
            Since::Unknown => {
                inner.counts.refused.fetch_add(1, Relaxed);
                Err(())
            }
        }
    }

    fn tell_refused(&self, id: &str, why: Refused) {
        let (now, until) = (self.0.breaker.now(), &self.0.counts.quiet_until);
        let quiet = until.load(Relaxed);
        let next = now + u64::try_from(TELL.as_millis()).unwrap_or(u64::MAX);
        if now >= quiet && until.compare_exchange(quiet, next, Relaxed, Relaxed).is_ok() {
            let refused = self.0.counts.refused.load(Relaxed);
            tracing::warn!(key = %scripts::page(id), %why, refused, "what lies in the shared tier is refused");
        }
    }

    fn release(&self, id: &str, refused: bool) {
        let token = self.0.held.lock().remove(id);
        if let Some(token) = token {
            // What cannot be said ends with the lock's expiry.
            let _ = self.0.work.try_send(Work::Release { id: id.to_owned(), token, refused });
        }
    }
}

impl Inner {
    async fn carry_out(self: Arc<Self>, work: Work) {
        match work {
            Work::Put { id, sealed, lasts, token } => {
                let bytes = sealed.len();
                let put = scripts::put(&self, &id, sealed, lasts, token).await;
                self.waiting_bytes.fetch_sub(bytes, Relaxed);
                match put {
                    Ok(()) => self.counts.written.fetch_add(1, Relaxed),
                    Err(why) => {
                        tracing::debug!(%why, "a page was not written to the shared tier");
                        self.counts.not_written.fetch_add(1, Relaxed)
                    }
                };
            }
            Work::Remove { id } => {
                let _ = scripts::remove(&self, &id).await;
            }
            Work::Release { id, token, refused } => {
                let _ = scripts::release(&self, &id, token, refused.then_some(REFUSED)).await;
            }
        }
    }

    async fn renew(self: Arc<Self>) {
        let held: Vec<(String, Token)> = self.held.lock().iter().map(|(id, token)| (id.clone(), *token)).collect();
        // One that is late is given to another machine, which costs a request.
        if !held.is_empty() {
            let _ = scripts::renew(&self, &held).await;
        }
    }
}

/// Writes what is to be written, and renews the locks, until the tier is gone.
async fn write(mut works: mpsc::Receiver<Work>, tier: std::sync::Weak<Inner>) {
    let mut under_way = JoinSet::new();
    let mut renewal = tokio::time::interval(RENEWAL);
    renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            work = works.recv(), if under_way.len() < AT_ONCE_MAX => {
                let (Some(work), Some(tier)) = (work, tier.upgrade()) else { break };
                under_way.spawn(tier.carry_out(work));
            }
            _ = under_way.join_next(), if !under_way.is_empty() => {}
            _ = renewal.tick() => {
                let Some(tier) = tier.upgrade() else { break };
                under_way.spawn(tier.renew());
            }
        }
    }
    while under_way.join_next().await.is_some() {}
}
