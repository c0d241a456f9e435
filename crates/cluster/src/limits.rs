//! Limits that machines share: how often a client may come, and how many requests an origin gets at once.
//!
//! Ten times a second a machine [tells](Report) the others what it has admitted and hears what they have, in one step of the server, and asks for places at
//! the origins in another. No request ever waits for that. What a machine may admit between two exchanges is not decided here: who is told ([`Shared`])
//! knows it.
//!
//! A machine that has had no answer for [`APART_AFTER`] is apart: it takes its part, one of as many as there were machines when it last knew.

mod grants;
mod report;
mod scripts;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use admin_api::{LimitsState, OriginPlaces};
use aws_lc_rs::hmac;
use bytes::Bytes;
use parking_lot::Mutex;
use semantics::hex;
use tokio::{
    runtime::Handle,
    sync::Notify,
    time::{sleep_until, timeout_at},
};

pub use self::report::{REPORT_ADDRESSES_MAX, Report};
use self::{
    grants::Grants,
    report::Reader,
    scripts::{ORIGINS_AT_ONCE_MAX, REPORTS},
};
use crate::link::{Engine, LinkError, Values, random_word};

/// The interval of exchanges.
pub const INTERVAL: Duration = Duration::from_millis(100);
/// The time that a step may take.
const DEADLINE: Duration = Duration::from_millis(250);
/// The time after the question of the last answer from which on a machine is apart.
pub const APART_AFTER: Duration = Duration::from_secs(1);
/// The time after which places are asked for again: where somebody waits, and where this machine has some to give.
const SOON: Duration = Duration::from_millis(20);
/// The time after a returned answer during which this machine counts no fewer machines than before: the others come back as well.
const RETURNING: Duration = Duration::from_secs(5);
/// The most origins whose places are shared. At each further one, this machine keeps to its part.
const ORIGINS_MAX: usize = 1_024;
/// The interval at which the log tells of what is refused.
const TELL: Duration = Duration::from_secs(60);

/// An origin whose places are shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The name of the origin, which it has at all machines.
    pub name: String,
    /// The most requests that it gets at once from all machines together.
    pub limit: usize,
    /// The most that it gets from this one now.
    pub concurrency: usize,
    /// The requests that are there.
    pub in_flight: usize,
    /// The requests that wait for a place.
    pub waiting: usize,
}

/// The places that a machine asks for at an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlaceDemand {
    limit: usize,
    need: usize,
    held: usize,
}

/// Shares its limits with other machines. All of it returns at once.
pub trait Shared: Send + Sync + 'static {
    /// Takes what the others have not been told: at most so many addresses of each kind.
    fn tell(&self, addresses_max: usize) -> Report;

    /// Takes what the others have told. An exchange is over: they have this machine's report, too, and there are so many machines.
    fn hear(&self, reports: Vec<Report>, machines: u32);

    /// Takes note that nothing is heard of the others. There were so many machines, this one included.
    fn stand_apart(&self, machines: u32);

    /// Returns the origins.
    fn origins(&self) -> Vec<Origin>;

    /// Changes the most requests that an origin gets from this machine at once.
    fn set_places(&self, name: &str, places: usize);

    /// Returns what tells that a request has begun to wait for a place at an origin.
    fn wanted(&self) -> Arc<Notify>;
}

/// Counts what has become of exchanges.
#[derive(Debug)]
pub(crate) struct Counts {
    answered: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
    is_apart: AtomicBool,
    machines: AtomicU32,
    origins: Mutex<Vec<OriginPlaces>>,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            answered: AtomicU64::default(),
            failed: AtomicU64::default(),
            refused: AtomicU64::default(),
            is_apart: AtomicBool::default(),
            // This one, before any other is known.
            machines: AtomicU32::new(1),
            origins: Mutex::default(),
        }
    }
}

/// The limits that a machine shares.
#[derive(Debug, Clone)]
pub(crate) struct Limits(Arc<Counts>);

impl Limits {
    /// Begins to share, on this runtime, and ends with it. `machines` tells how many machines there are, this one included.
    pub(crate) fn start(engine: &Engine, handle: &Handle, machines: Box<dyn Fn() -> u32 + Send + Sync>, shared: Arc<dyn Shared>) -> Self {
        let counts = Arc::new(Counts::default());
        let now = Instant::now();
        let seals = engine.seals();
        let sharing = Sharing {
            values: engine.values(handle.clone()),
            session: random_word(),
            key: seals.limits().clone(),
            reader: Reader::new(seals.limits().clone()),
            shared,
            count_machines: machines,
            counts: Arc::clone(&counts),
            number: 0,
            unsent: None,
            after: None,
            heard: now,
            machines: 1,
            returned: None,
            grants: Grants::new(now),
            told: [None; 3],
        };
        handle.spawn(sharing.drive());
        Self(counts)
    }

    /// Returns how sharing goes.
    pub(crate) fn state(&self) -> LimitsState {
        let counts = &self.0;
        LimitsState {
            apart: counts.is_apart.load(Relaxed),
            machines: counts.machines.load(Relaxed),
            answered: counts.answered.load(Relaxed),
            failed: counts.failed.load(Relaxed),
            refused: counts.refused.load(Relaxed),
            origins: counts.origins.lock().clone(),
        }
    }
}

struct Sharing {
    values: Values,
    session: String,
    key: hmac::Key,
    reader: Reader,
    shared: Arc<dyn Shared>,
    count_machines: Box<dyn Fn() -> u32 + Send + Sync>,
    counts: Arc<Counts>,
    /// The number of the last report.
    number: u64,
    /// A report that may not have arrived. It is sent again as it is, so that it counts once.
    unsent: Option<Bytes>,
    /// The last report that was read; `None` before the first answer.
    after: Option<Bytes>,
    /// The time at which the last exchange was sent that was answered.
    heard: Instant,
    /// The number of machines, by the last answer.
    machines: u32,
    /// The time at which an answer came again after a time without.
    returned: Option<Instant>,
    grants: Grants,
    /// The time at which the log told of a refusal last, by what was refused.
    told: [Option<Instant>; 3],
}

/// The kinds of values that are refused.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    /// The value is not a report at all.
    Garbage,
    /// A report that cannot be opened.
    Report,
    /// A line in an account of places.
    Places,
}

impl fmt::Debug for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharing").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Sharing {
    async fn drive(mut self) {
        let wanted = self.shared.wanted();
        let (mut exchange_at, mut places_at) = (Instant::now(), Instant::now());
        loop {
            let now = Instant::now();
            if now >= exchange_at {
                exchange_at = now + INTERVAL;
                self.exchange(now).await;
            }
            if now >= places_at {
                places_at = now + if self.ask_for_places().await { SOON } else { INTERVAL };
            }
            let next = exchange_at.min(places_at);
            let asked = now;
            if timeout_at(next.into(), wanted.notified()).await.is_ok() {
                // Many begin to wait at once.
                places_at = places_at.min((asked + SOON).max(Instant::now()));
                sleep_until(places_at.min(exchange_at).into()).await;
            }
        }
    }

    /// Tells the others, and hears them.
    async fn exchange(&mut self, now: Instant) {
        let report = self.unsent.take().or_else(|| self.next_report());
        let exchanged = scripts::exchange(&self.values, &self.session, self.after.as_ref(), report.as_ref(), DEADLINE).await;
        match exchanged {
            Ok(found) => {
                self.counts.answered.fetch_add(1, Relaxed);
                self.refuse(Refusal::Garbage, found.refused, || format!("what lies in {REPORTS} is not a report of Seawall"));
                let mut reports = Vec::with_capacity(found.reports.len());
                for sealed in found.reports {
                    match self.reader.open(&sealed) {
                        Ok(report) => reports.push(report),
                        Err(why) => self.refuse(Refusal::Report, 1, || format!("a report in {REPORTS} is refused: {why}")),
                    }
                }
                // Where a stream was lost, it begins anew. So its end, and not what was read before, is where reading goes on.
                self.after = Some(if found.last.is_empty() { Bytes::from_static(b"0-0") } else { found.last });
                self.count(now);
                self.heard = now;
                self.counts.is_apart.store(false, Relaxed);
                self.shared.hear(reports, self.machines);
            }
            Err(error) => {
                self.failed(&error);
                self.unsent = report;
                self.look_whether_apart(Instant::now());
            }
        }
    }

    fn next_report(&mut self) -> Option<Bytes> {
        let report = self.shared.tell(REPORT_ADDRESSES_MAX);
        (!report.is_empty()).then(|| {
            self.number += 1;
            report.seal(&self.session, self.number, &self.key)
        })
    }

    /// Counts the machines. For a while after the server came back no fewer than before: the others are coming back, too.
    fn count(&mut self, now: Instant) {
        if now.saturating_duration_since(self.heard) >= APART_AFTER {
            self.returned = Some(now);
        }
        let counted = (self.count_machines)().max(1);
        let is_returning = self.returned.is_some_and(|returned| now.saturating_duration_since(returned) < RETURNING);
        self.machines = if is_returning { counted.max(self.machines) } else { counted };
        self.grants.count_machines(self.machines);
        self.counts.machines.store(self.machines, Relaxed);
    }

    fn look_whether_apart(&mut self, now: Instant) {
        if now.saturating_duration_since(self.heard) < APART_AFTER {
            return;
        }
        // What was admitted is old by now, and what is admitted from here on is this machine's own part.
        self.unsent = None;
        self.shared.stand_apart(self.machines);
        if !self.counts.is_apart.swap(true, Relaxed) {
            tracing::warn!("nothing is heard of the limits of other machines: this one takes one part of {}", self.machines);
        }
    }

    /// Asks for places at all origins, and gives back what is not granted any more. Returns whether it should soon ask again.
    async fn ask_for_places(&mut self) -> bool {
        let mut origins = self.shared.origins();
        let rest = origins.split_off(origins.len().min(ORIGINS_MAX));
        let asked: Vec<(String, PlaceDemand)> = {
            let places = self.grants.ask(&origins);
            origins.iter().zip(places).map(|(origin, places)| (self.hash(&origin.name), places)).collect()
        };
        let mut is_soon = false;
        for (origins, asked) in origins.chunks(ORIGINS_AT_ONCE_MAX).zip(asked.chunks(ORIGINS_AT_ONCE_MAX)) {
            let now = Instant::now();
            match scripts::grant(&self.values, &self.session, asked, DEADLINE).await {
                Ok((refused, granted)) => {
                    self.refuse(Refusal::Places, refused, || "what lies in the account of an origin's places is not of Seawall".to_owned());
                    for ((origin, (_, places)), granted) in origins.iter().zip(asked).zip(granted) {
                        self.grants.granted(&origin.name, granted, now);
                        is_soon |= granted < places.held || (origin.waiting > 0 && granted < origin.limit);
                    }
                }
                Err(error) => {
                    self.failed(&error);
                    break;
                }
            }
        }
        let now = Instant::now();
        let mut shown = Vec::with_capacity(origins.len());
        for origin in &origins {
            let places = self.grants.places(&origin.name, now).unwrap_or(1);
            if places != origin.concurrency {
                self.shared.set_places(&origin.name, places);
            }
            shown.push(OriginPlaces {
                origin: origin.name.clone(),
                limit: origin.limit as u64,
                granted: places as u64,
                needed: (origin.in_flight + origin.waiting) as u64,
                apart: !self.grants.is_granted(&origin.name),
            });
        }
        for origin in &rest {
            self.shared.set_places(&origin.name, (origin.limit / self.machines.max(1) as usize).max(1));
        }
        *self.counts.origins.lock() = shown;
        is_soon
    }

    /// Returns what an origin is called in the server.
    fn hash(&self, name: &str) -> String {
        let hash = hmac::sign(&self.key, &[b"origin\0", name.as_bytes()].concat());
        hex::encoded(&hash.as_ref()[..16])
    }

    fn failed(&self, error: &LinkError) {
        self.counts.failed.fetch_add(1, Relaxed);
        tracing::debug!("limits were not exchanged: {error}");
    }

    /// Counts what was refused, and names each kind of it in the log once a minute.
    fn refuse(&mut self, what: Refusal, count: u64, why: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        let refused = self.counts.refused.fetch_add(count, Relaxed) + count;
        let now = Instant::now();
        let told = &mut self.told[what as usize];
        if told.is_none_or(|told| now.saturating_duration_since(told) >= TELL) {
            *told = Some(now);
            tracing::warn!(refused, "{}; a machine has another secret, or another program writes into the cluster's keys", why());
        }
    }
}
