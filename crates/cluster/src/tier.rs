//! The tier: pages that one machine has fetched, for all of them, and the locks by which one of them fetches.
//!
//! What lies there is sealed with the cluster's secret under a name that is hashed with it, and says up to where its machine had carried out the
//! stream of purges when it asked for the page. Nothing else decides whether it is of use ([`ring`]): no clock, and no order in which anything was
//! written. Bodies are not encrypted: only what everybody may read is put there.
//!
//! Pages lie in the server itself, or in a [bucket]. Then the server has what finds them, and everything else: locks, expiries, the account.
//!
//! Everything is bounded. A page has [`Tier::page_bytes_max`], all of them together what the operator says ([`TierOptions::memory`]): the server keeps
//! account of them, and those that expire soonest go first. A read has [`READ_DEADLINE`]; a tier that is late three times in a row is left alone for a
//! second. What waits here to be written has [`WAITING_BYTES_MAX`].

mod breaker;
pub mod bucket;
pub mod ring;
mod scripts;
mod seal;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::pin,
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
use tokio::{
    runtime::Handle,
    sync::mpsc,
    task::JoinSet,
    time::{MissedTickBehavior, timeout},
};

use self::{
    breaker::Breaker,
    bucket::{BUCKET_PAGE_BYTES_MAX, Bucket, BucketError, BucketOptions, Got, STUB, Stub},
    ring::{Ring, Since},
    seal::{FRAME, Keys, Refused, beginning},
};
use crate::link::{Engine, Values};

/// The most bytes that a page has beside its content.
pub const HEAD_BYTES_MAX: usize = 48 << 10;
/// The most bytes of a page in the server.
pub const PAGE_BYTES_MAX: usize = (1 << 20) + HEAD_BYTES_MAX;
/// The time that a look at the tier may take, with all that it asks. Then the origin is asked.
pub const READ_DEADLINE: Duration = Duration::from_millis(50);
/// The time that a page may take to be written, or to be removed.
const WRITE_DEADLINE: Duration = Duration::from_secs(2);
/// The most bytes of pages that wait to be written; further ones are not written, and counted.
pub const WAITING_BYTES_MAX: usize = 32 << 20;
/// The most pages and words that wait to be written.
const WAITING_MAX: usize = 1_024;
/// The most of them that are under way at once.
const AT_ONCE_MAX: usize = 16;
/// The most pages that this machine fetches for all at once. Further ones are fetched without a lock.
const HELD_MAX: usize = 1_024;
/// The time that those who wait for a page wait for it to be written to a bucket. Then they ask the origin.
const HAND_OVER: Duration = Duration::from_millis(250);
/// The time that a lock is held without being renewed: others wait for so long when its holder dies.
const LOCK: Duration = Duration::from_secs(2);
/// The interval at which locks are renewed.
const RENEWAL: Duration = Duration::from_millis(500);
/// The time for which it is remembered for all machines that what was fetched is not for everybody.
const REFUSED: Duration = Duration::from_secs(5);
/// The first interval at which those who wait for another machine look again, and the longest.
const LOOK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));
/// The interval at which refused pages are told in the log.
const TELL: Duration = Duration::from_secs(60);

/// The options of the tier.
#[derive(Debug, Clone)]
pub struct TierOptions {
    /// The most bytes of pages that the server is to hold, with some 300 for each of them. Of a page in a bucket it holds 20.
    pub memory: u64,
    /// The bucket where pages lie; `None`: in the server itself.
    pub bucket: Option<BucketOptions>,
    /// The time that a read may take: [`READ_DEADLINE`], but in tests.
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
    bucket: Option<Bucket>,
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
    Put(PendingPut),
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

struct PendingPut {
    id: String,
    sealed: Bytes,
    /// The time at which it was sealed, and the time for which it is of use from then on.
    sealed_at: Instant,
    lasts: Duration,
    token: Option<Token>,
}

/// Says what the server has replied, and what it means here.
enum TierReply {
    Found(Page),
    Locked,
    Held,
    /// There is a page from farther on in the stream than this machine has come.
    Ahead,
    Nothing,
    Failed,
}

/// Says what a look at the tier comes to.
#[derive(Debug)]
pub enum LookOutcome {
    /// There is a page.
    Found(Page),
    /// There is none, and this machine is to fetch it.
    Turn(Turn),
    /// Another machine fetches it: look again after so long.
    Wait(Duration),
    /// The tier says nothing.
    Away,
}

/// Says what a bucket has of what the server says is there.
enum Fetched {
    /// An object, and the mark of the page that was written last.
    Object(Bytes, u128),
    /// It has nothing of use.
    Useless,
    /// It did not answer in time, or fails.
    Failed,
}

/// A page of this cluster.
#[derive(Debug, Clone)]
pub struct Page {
    /// The page that was put.
    pub page: Bytes,
    /// The generation of this machine's store from which on purges count.
    pub since: u64,
    /// The time since it was put, by the server's clock.
    pub rested: Duration,
    /// The number that tells it from every other page.
    pub mark: u128,
}

/// The turn to fetch a page for all machines. It is given back when it is dropped.
pub struct Turn {
    tier: Tier,
    id: String,
    token: Token,
}

impl Turn {
    /// Tells those who wait that what was fetched is not for all. Changes nothing if a page was put.
    pub fn refuse(self) {
        self.tier.release(&self.id, Some(self.token), true);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.tier.release(&self.id, Some(self.token), false);
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
    /// Begins to use the tier. What is written is written by a task on this runtime, which ends with the last clone. A bucket is in use when a first
    /// trial has succeeded.
    ///
    /// # Errors
    /// When the options of the bucket cannot be used. It is not asked yet.
    pub fn start(options: TierOptions, engine: &Engine, ring: Arc<Ring>, runtime: &Handle) -> Result<Self, BucketError> {
        let (work, works) = mpsc::channel(WAITING_MAX);
        let bucket = options.bucket.as_ref().map(|bucket| Bucket::new(bucket, runtime)).transpose()?;
        let inner = Arc::new(Inner {
            options,
            keys: Keys::new(engine.seals()),
            ring,
            values: engine.values(runtime.clone()),
            breaker: Breaker::new(Instant::now()),
            bucket,
            held: Mutex::default(),
            work,
            waiting_bytes: AtomicUsize::new(0),
            counts: Counts::default(),
        });
        let weak = Arc::downgrade(&inner);
        runtime.spawn(write(works, weak));
        Ok(Self(inner))
    }

    /// Returns the most bytes of a page as it is given here.
    #[must_use]
    pub fn page_bytes_max(&self) -> usize {
        self.0.page_bytes_max()
    }

    /// Looks for a page. If there is none but the one with the mark `known`, takes the lock to fetch it; `waited` is how long others have been waited
    /// for already. Never takes longer than [`TierOptions::read_deadline`].
    ///
    /// A look that is late does not say whether the lock was given. The first one counts as if it were: whoever asks next then waits for this machine.
    /// A later one is repeated, as another machine is known to be fetching the page; three in a row are enough.
    pub fn look(&self, name: &[u8], known: Option<u128>, waited: Duration) -> impl Future<Output = LookOutcome> + Send + 'static {
        let (tier, id) = (self.clone(), self.0.keys.id(name));
        async move {
            // The bucket is tried elsewhere, the server by one of those who come.
            if tier.0.bucket.as_ref().is_some_and(Bucket::is_away) || !tier.0.breaker.admits(Instant::now()) {
                return LookOutcome::Away;
            }
            // Should this future be dropped, the lock that the server may have given is given back.
            let turn = tier.hold(&id);
            let token = turn.as_ref().map(|turn| turn.token);
            match tier.look_as(&id, known, token).await {
                TierReply::Found(page) => {
                    tier.forget(&id, token);
                    LookOutcome::Found(page)
                }
                TierReply::Locked => turn.map_or(LookOutcome::Away, LookOutcome::Turn),
                TierReply::Ahead => {
                    tier.forget(&id, token);
                    LookOutcome::Wait(LOOK.0)
                }
                TierReply::Held => {
                    tier.forget(&id, token);
                    // Without a token, another fetch of this machine has the lock, or too many do.
                    if token.is_some() { LookOutcome::Wait(interval(waited)) } else { LookOutcome::Away }
                }
                TierReply::Nothing => {
                    tier.forget(&id, token);
                    LookOutcome::Away
                }
                // Dropping the turn gives back the lock, should the server give it now.
                TierReply::Failed if !waited.is_zero() && !tier.0.breaker.is_open() => LookOutcome::Wait(interval(waited)),
                TierReply::Failed => turn.map_or(LookOutcome::Away, LookOutcome::Turn),
            }
        }
    }

    /// Puts a page, and gives the lock back if this machine has it. `begun` is the generation of this machine's store at which its fetch began.
    pub fn put(&self, name: &[u8], page: &[u8], begun: u64, lasts: Duration) {
        let inner = &*self.0;
        let id = inner.keys.id(name);
        let Some(position) = inner.ring.position(begun).filter(|_| page.len() <= inner.page_bytes_max()) else {
            return self.release(&id, None, false);
        };
        let mut random = [0; 12];
        let sealed = rand::fill(&mut random).ok().and_then(|()| inner.keys.seal(&id, page, &position, lasts, random));
        let Some(sealed) = sealed else { return self.release(&id, None, false) };
        let bytes = sealed.len();
        let waiting = inner.waiting_bytes.fetch_add(bytes, Relaxed) + bytes;
        let place = (waiting <= WAITING_BYTES_MAX && !inner.is_away()).then(|| inner.work.try_reserve().ok()).flatten();
        let Some(place) = place else {
            inner.waiting_bytes.fetch_sub(bytes, Relaxed);
            inner.counts.not_written.fetch_add(1, Relaxed);
            return self.release(&id, None, false);
        };
        let token = self.take(&id, None);
        place.send(Work::Put(PendingPut { id, sealed, sealed_at: Instant::now(), lasts, token }));
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
        let bucket = self.0.bucket.as_ref();
        TierState {
            place: bucket.map_or("valkey", Bucket::place).to_owned(),
            hits: counts.hits.load(Relaxed),
            misses: counts.misses.load(Relaxed),
            written: counts.written.load(Relaxed),
            refused: counts.refused.load(Relaxed),
            open: self.0.is_away(),
            why: bucket.and_then(Bucket::why),
        }
    }

    /// Notes that this machine is about to hold a lock. Returns `None` if it does already, or holds too many.
    fn hold(&self, id: &str) -> Option<Turn> {
        let mut token = [0; 16];
        let mut held = self.0.held.lock();
        if held.len() >= HELD_MAX || held.contains_key(id) || rand::fill(&mut token).is_err() {
            return None;
        }
        held.insert(id.to_owned(), token);
        Some(Turn { tier: self.clone(), id: id.to_owned(), token })
    }

    /// Notes that this machine does not hold the lock that it tried to take.
    fn forget(&self, id: &str, tried: Option<Token>) {
        if let Some(token) = tried {
            let _ = self.take(id, Some(token));
        }
    }

    /// Takes the token of a lock that this machine holds: this one, or whichever it is. Another fetch of the same page may hold it by now.
    fn take(&self, id: &str, token: Option<Token>) -> Option<Token> {
        let mut held = self.0.held.lock();
        if held.get(id).is_some_and(|held| token.is_none_or(|token| token == *held)) { held.remove(id) } else { None }
    }

    async fn look_as(&self, id: &str, known: Option<u128>, token: Option<Token>) -> TierReply {
        let inner = &*self.0;
        let begun = tokio::time::Instant::now();
        let deadline = inner.options.read_deadline;
        let mut known = known.map(|mark| Bytes::copy_from_slice(&beginning(mark)));
        // What is of no use lies in the way of the lock: the second time, it is passed over.
        for _ in 0..2 {
            let left = deadline.saturating_sub(begun.elapsed());
            if left.is_zero() {
                // The bucket has taken it all.
                inner.counts.misses.fetch_add(1, Relaxed);
                return TierReply::Nothing;
            }
            let answer = match scripts::look(inner, id, known.as_ref(), token, left).await {
                Ok(answer) => answer,
                Err(why) => {
                    if inner.breaker.failed(Instant::now()) {
                        tracing::warn!(%why, "the shared tier is slow or fails: it is left alone for a second at a time until it answers");
                    }
                    inner.counts.misses.fetch_add(1, Relaxed);
                    return TierReply::Failed;
                }
            };
            inner.breaker.answered();
            let (bytes, expires) = match answer {
                scripts::Answer::Page { bytes, expires } => (bytes, expires),
                scripts::Answer::Held => return TierReply::Held,
                scripts::Answer::Locked { displaced } => {
                    inner.counts.misses.fetch_add(1, Relaxed);
                    if displaced {
                        self.refuse(scripts::lock(id), Refused::NoLock);
                    }
                    return TierReply::Locked;
                }
                scripts::Answer::Nothing | scripts::Answer::Refused => {
                    inner.counts.misses.fetch_add(1, Relaxed);
                    return TierReply::Nothing;
                }
            };
            let mark = bytes.slice(..bytes.len().min(seal::MARK));
            let page = match &inner.bucket {
                None => self.open(id, bytes, None, expires),
                Some(bucket) => match self.fetch(bucket, id, bytes, begun + deadline).await {
                    Fetched::Object(object, mark) => self.open(id, object, Some(mark), expires),
                    Fetched::Useless => Err(()),
                    Fetched::Failed => {
                        inner.counts.misses.fetch_add(1, Relaxed);
                        return TierReply::Nothing;
                    }
                },
            };
            match page {
                Ok(Some(page)) => return TierReply::Found(page),
                Ok(None) => return TierReply::Ahead,
                Err(()) => known = Some(mark),
            }
        }
        // It is replaced as fast as it is read.
        TierReply::Nothing
    }

    /// Fetches from the bucket what the server says is there.
    async fn fetch(&self, bucket: &Bucket, id: &str, stub: Bytes, until: tokio::time::Instant) -> Fetched {
        let refused = |why| {
            self.refuse(scripts::page(id), why);
            Fetched::Useless
        };
        let Some(stub) = Stub::read(stub) else { return refused(Refused::NoPage) };
        match bucket.get(id, stub.length, until, self.0.options.read_deadline).await {
            Ok(Got::Object(object)) => Fetched::Object(object, stub.mark),
            Ok(Got::Another) => refused(Refused::Another),
            // The bucket has removed it, or nobody has it any more.
            Ok(Got::Nothing) => Fetched::Useless,
            Ok(Got::Busy) => Fetched::Failed,
            Err(why) => {
                tracing::debug!(%why, "a page was not read from the bucket");
                Fetched::Failed
            }
        }
    }

    /// Opens what was found; `mark` is that of the page that was written last, if it is known. `Ok(None)`: it is of use, but not before this machine has
    /// come as far in the stream. `Err`: it is of no use.
    fn open(&self, id: &str, bytes: Bytes, mark: Option<u128>, expires: Option<Duration>) -> Result<Option<Page>, ()> {
        let inner = &*self.0;
        let opened = if bytes.len() > inner.page_bytes_max() + FRAME { Err(Refused::TooLong) } else { inner.keys.open(id, bytes) };
        let opened = opened.and_then(|opened| match mark {
            Some(mark) if mark != opened.mark => Err(Refused::Another),
            _ => Ok((opened, expires.ok_or(Refused::NoExpiry)?)),
        });
        let (opened, expires) = opened.map_err(|why| self.refuse(scripts::page(id), why))?;
        match inner.ring.since(&opened.position) {
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

    /// Counts what was found under a name and is not ours, and says so in the log now and then.
    fn refuse(&self, name: String, why: Refused) {
        self.0.counts.refused.fetch_add(1, Relaxed);
        self.tell_refused(&name, why);
    }

    fn tell_refused(&self, name: &str, why: Refused) {
        let (now, until) = (self.0.breaker.now(), &self.0.counts.quiet_until);
        let quiet = until.load(Relaxed);
        let next = now + u64::try_from(TELL.as_millis()).unwrap_or(u64::MAX);
        if now >= quiet && until.compare_exchange(quiet, next, Relaxed, Relaxed).is_ok() {
            let refused = self.0.counts.refused.load(Relaxed);
            let place = self.0.bucket.as_ref().map_or("valkey", Bucket::place);
            tracing::warn!(place, key = name, %why, refused, "what lies in the shared tier is refused");
        }
    }

    /// Gives back the lock with this token, or whichever this machine holds.
    fn release(&self, id: &str, token: Option<Token>, refused: bool) {
        if let Some(token) = self.take(id, token) {
            // What cannot be said ends with the lock's expiry.
            let _ = self.0.work.try_send(Work::Release { id: id.to_owned(), token, refused });
        }
    }
}

/// Returns when it is worth looking again for somebody who has waited so long.
fn interval(waited: Duration) -> Duration {
    (waited / 8).clamp(LOOK.0, LOOK.1)
}

impl Inner {
    fn page_bytes_max(&self) -> usize {
        if self.bucket.is_some() { BUCKET_PAGE_BYTES_MAX } else { PAGE_BYTES_MAX }
    }

    /// Returns whether the tier is left alone.
    fn is_away(&self) -> bool {
        self.breaker.is_open() || self.bucket.as_ref().is_some_and(Bucket::is_away)
    }

    async fn carry_out(self: Arc<Self>, work: Work) {
        match work {
            Work::Put(put) => {
                let bytes = put.sealed.len();
                let is_written = match &self.bucket {
                    None => self.put(put).await,
                    Some(bucket) => self.put_into(bucket, put).await,
                };
                self.waiting_bytes.fetch_sub(bytes, Relaxed);
                let count = if is_written { &self.counts.written } else { &self.counts.not_written };
                count.fetch_add(1, Relaxed);
            }
            Work::Remove { id } => {
                let _ = scripts::remove(&self, &id).await;
                if let Some(bucket) = &self.bucket {
                    bucket.remove(&id).await;
                }
            }
            Work::Release { id, token, refused } => {
                let _ = scripts::release(&self, &id, token, refused.then_some(REFUSED)).await;
            }
        }
    }

    /// Writes a page to the server, and returns whether it is there.
    async fn put(&self, put: PendingPut) -> bool {
        let PendingPut { id, sealed, sealed_at, lasts, token } = put;
        // Its age is counted from the moment at which it was sealed.
        let written = scripts::put(self, &id, sealed, lasts.saturating_sub(sealed_at.elapsed()), token).await;
        written.map_err(|why| tracing::debug!(%why, "a page was not written to the shared tier")).is_ok()
    }

    /// Writes a page to the bucket, and then to the server that it is there.
    async fn put_into(&self, bucket: &Bucket, put: PendingPut) -> bool {
        let PendingPut { id, sealed, sealed_at, lasts, mut token } = put;
        let Some(stub) = Stub::of(&sealed) else { return false };
        let mut writing = pin!(bucket.put(&id, sealed));
        let written = match timeout(HAND_OVER, &mut writing).await {
            Ok(written) => written,
            Err(_) => {
                self.let_go(&id, token.take()).await;
                writing.await
            }
        };
        match written {
            Ok(()) => self.put(PendingPut { id: id.clone(), sealed: stub, sealed_at, lasts, token }).await,
            Err(why) => {
                tracing::debug!(%why, "a page was not written to the bucket");
                self.let_go(&id, token).await;
                false
            }
        }
    }

    /// Gives a lock back, if there is one, with the word that nobody need wait.
    async fn let_go(&self, id: &str, token: Option<Token>) {
        if let Some(token) = token {
            let _ = scripts::release(self, id, token, Some(REFUSED)).await;
        }
    }

    /// Tries a bucket that is left alone.
    async fn try_bucket(self: Arc<Self>) {
        let Some(bucket) = &self.bucket else { return };
        let (id, content) = self.keys.trial();
        bucket.try_out(&id, content, self.options.read_deadline).await;
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
                if tier.bucket.as_ref().is_some_and(Bucket::is_to_be_tried) {
                    under_way.spawn(Arc::clone(&tier).try_bucket());
                }
                under_way.spawn(tier.renew());
            }
        }
    }
    while under_way.join_next().await.is_some() {}
}
