//! The counters of a worker. Each worker has its own; a reader sums them up.
//!
//! A counter has one writer, so it is read and written, not added to atomically: a shared cache line per request is the classic way to
//! make many cores slower than one.

use std::{
    array,
    collections::BTreeMap,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use semantics::cache_status::{Forwarded, Outcome};

use crate::{
    CLASSES, Note,
    login::{LOGIN_REFUSALS, LoginRefusal},
    proof::{PROOF_RESULTS, ProofResult},
};

/// The outcome of a request in the cache, as far as requests are counted apart by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheOutcome {
    /// It answered with a fresh stored response.
    Hit,
    /// It answered with a stale one, which is refreshed meanwhile.
    Updating,
    /// It answered with a stale one, as the origin failed.
    Stale,
    /// The origin said that what is stored is still right.
    Revalidated,
    /// The stored response was stale, and the origin answered anew.
    Expired,
    /// Nothing was stored that fits, and the origin answered.
    Miss,
    /// It was not asked.
    Bypass,
    /// The message was refused before it was a request.
    Refused,
    /// The request never got to it.
    None,
}

/// The outcomes, in the order in which they are counted and shown.
pub const OUTCOMES: [CacheOutcome; 9] = {
    use CacheOutcome::{Bypass, Expired, Hit, Miss, None, Refused, Revalidated, Stale, Updating};
    [Hit, Updating, Stale, Revalidated, Expired, Miss, Bypass, Refused, None]
};

impl CacheOutcome {
    /// Returns the name in metrics, logs and traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Updating => "updating",
            Self::Stale => "stale",
            Self::Revalidated => "revalidated",
            Self::Expired => "expired",
            Self::Miss => "miss",
            Self::Bypass => "bypass",
            Self::Refused => "refused",
            Self::None => "none",
        }
    }

    /// Returns the place in [`OUTCOMES`].
    #[must_use]
    pub const fn place(self) -> usize {
        self as usize
    }

    /// Returns whether the cache answered by itself, without waiting for the origin.
    #[must_use]
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Hit | Self::Updating | Self::Stale)
    }

    /// Returns whether the cache was asked.
    #[must_use]
    pub const fn is_lookup(self) -> bool {
        self.is_hit() || matches!(self, Self::Revalidated | Self::Expired | Self::Miss)
    }

    const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Hit => Self::Hit,
            Outcome::Updating => Self::Updating,
            Outcome::Stale { .. } => Self::Stale,
            Outcome::Revalidated => Self::Revalidated,
            Outcome::Forwarded(Forwarded::Stale) => Self::Expired,
            Outcome::Forwarded(Forwarded::UriMiss | Forwarded::VaryMiss | Forwarded::Miss | Forwarded::Partial) => Self::Miss,
            Outcome::Forwarded(Forwarded::Bypass | Forwarded::Method | Forwarded::Request) => Self::Bypass,
        }
    }
}

/// The number of pairs of an outcome and a class.
const TALLIES: usize = OUTCOMES.len() * CLASSES.len();

/// The upper bounds of the buckets in which durations are counted, in microseconds: from ten of them, which only hits are below, to half a minute. One
/// bucket without a bound follows.
pub const BUCKET_MICROS: [u64; 20] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 30_000_000,
];

const BUCKETS: usize = BUCKET_MICROS.len() + 1;

/// Sites are found by the high and the low half of their number: tables of this length take any `u16` apart.
const HALF: usize = 256;

/// The part of a response that was sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Its status.
    pub status: u16,
    /// Bytes of its content.
    pub body_bytes: u64,
    /// The time since its request came.
    pub took: Duration,
    /// Whether it reached its end: otherwise its client left, or its content broke off.
    pub complete: bool,
}

/// One worker's counters.
#[derive(Debug)]
pub struct Counters {
    collapsed: AtomicU64,
    aborted: AtomicU64,
    coded: [AtomicU64; 3],
    hinted: AtomicU64,
    direct: AtomicU64,
    /// The counters of each site, by the site's number. A table or a site is made when its first request ends, and then stays: 1.6 KiB for a site, and
    /// some 200 bytes for each pair of an outcome and a class that it has had, of which a busy site has a dozen.
    sites: Box<[OnceLock<SiteTable>; HALF]>,
    /// Requests that belong to no site.
    siteless: SiteCounters,
    /// The refusals of what was not a request yet, by the hundreds of the status with which it was answered; index 0: without an answer.
    refused: [AtomicU64; 6],
    /// Refusals are rare, and a reader comes once in a while: the lock is free.
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    /// The cost of rules, by the site's number and the rule: at most [`RULES_MAX`] entries and one. Hits never come here.
    rules: Mutex<BTreeMap<(u16, &'static str), RuleCount>>,
}

type SiteTable = Box<[OnceLock<Box<SiteCounters>>; HALF]>;

/// The counters of one site.
#[derive(Debug)]
struct SiteCounters {
    responses: [AtomicU64; 6],
    /// One tally for each outcome and class, made when the first response of the two has ended: the classes of an outcome lie side by side.
    tallies: [OnceLock<Box<TallyCounter>>; TALLIES],
    origin_failures: AtomicU64,
    origin_durations: DurationCounter,
    origin_given_up: AtomicU64,
    origin_given_up_micros: AtomicU64,
    proofs: [AtomicU64; PROOF_RESULTS.len()],
    logins_refused: [AtomicU64; LOGIN_REFUSALS.len()],
}

/// The counters of the responses of a site that have an outcome and a class in common.
///
/// A response is counted by the bucket of its duration alone: the sum of the buckets is the number of responses, and nothing is added twice.
#[derive(Debug, Default)]
struct TallyCounter {
    durations: DurationCounter,
    body_bytes: AtomicU64,
    origin_micros: AtomicU64,
    /// The longest duration since [`Counters::take_slowest`] was called last, in microseconds.
    slowest: AtomicU64,
}

/// Durations, counted in buckets.
#[derive(Debug, Default)]
struct DurationCounter {
    buckets: [AtomicU64; BUCKETS],
    micros: AtomicU64,
}

/// Pairs of a site and a rule that are counted apart. There are some sixty rules.
const RULES_MAX: usize = 1_024;

/// The name under which pairs beyond that bound are counted.
const OTHER_RULE: &str = "other";

/// The counts of the requests that were not plain hits for the same reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// Requests.
    pub requests: u64,
    /// The time that the origin took for them until the heads of its responses, in microseconds.
    pub origin_micros: u64,
}

/// The sum of several workers' counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Responses by the hundreds of their status, those to what was refused included; index 0: not HTTP.
    pub responses: [u64; 6],
    /// The refusals of what was not a request yet, by the hundreds of the status with which it was answered; index 0: without an answer.
    pub refused: [u64; 6],
    /// Responses of all sites and of none by outcome, in the order of [`OUTCOMES`].
    pub outcomes: [u64; OUTCOMES.len()],
    /// The times that responses took until they were sent or their client had left, by outcome, in the order of [`OUTCOMES`].
    pub durations: [Durations; OUTCOMES.len()],
    /// Content bytes sent.
    pub body_bytes: u64,
    /// Requests that shared another's way to the origin.
    pub collapsed: u64,
    /// Responses that did not reach their end.
    pub aborted: u64,
    /// Responses by their content coding: gzip, br, zstd.
    pub coded: [u64; 3],
    /// Requests whose browser was told early what the page will need.
    pub hinted: u64,
    /// Requests that went past the cache because the load tester had them signed.
    pub direct: u64,
    /// The counts of each site, by its number.
    pub sites: BTreeMap<u16, SiteSnapshot>,
    /// The counts of requests that belong to no site.
    pub siteless: SiteSnapshot,
    /// Messages and connections that were refused, by reason: as many entries as the program has reasons.
    pub refusals: BTreeMap<&'static str, u64>,
    /// The counts of the requests that were not plain hits, by the number of their site and the rule or failure that decided.
    pub rules: BTreeMap<(u16, &'static str), RuleCount>,
}

/// The counters of one site, as they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteSnapshot {
    /// Responses to requests by the hundreds of their status; index 0: not HTTP.
    pub responses: [u64; 6],
    /// Responses by outcome, in the order of [`OUTCOMES`].
    pub outcomes: [u64; OUTCOMES.len()],
    /// The counts of the responses that have an outcome and a class in common, by their places in [`OUTCOMES`] and [`CLASSES`].
    pub tallies: BTreeMap<(usize, usize), Tally>,
    /// Requests to its origin that got no response.
    pub origin_failures: u64,
    /// The times that its origin took to the head of a response, for the requests that got one.
    pub origin_durations: Durations,
    /// Requests to its origin that were given up, as their clients had left.
    pub origin_given_up: u64,
    /// The time that those had taken by then, in microseconds.
    pub origin_given_up_micros: u64,
    /// Two-visitor proofs by their result, in the order of [`PROOF_RESULTS`].
    pub proofs: [u64; PROOF_RESULTS.len()],
    /// Requests with passwords that were refused, by the reason, in the order of [`LOGIN_REFUSALS`].
    pub logins_refused: [u64; LOGIN_REFUSALS.len()],
}

/// The counts of the responses of a site that have an outcome and a class in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// The times that they took until they were sent or their client had left. There are as many as responses.
    pub durations: Durations,
    /// Content bytes sent.
    pub body_bytes: u64,
    /// The time that the origin took for them until the heads of its responses, in microseconds.
    pub origin_micros: u64,
}

/// A histogram of durations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Durations {
    /// The number of durations that fell into each bucket of [`BUCKET_MICROS`] and no earlier one; the last entry has no bound.
    pub buckets: [u64; BUCKETS],
    /// The sum of all durations, in microseconds.
    pub micros: u64,
}

impl Durations {
    /// Returns how many durations were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Adds other durations to these.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, u64::wrapping_add);
    }

    fn combine(&mut self, other: &Self, change: impl Fn(u64, u64) -> u64) {
        for (to, from) in self.buckets.iter_mut().zip(&other.buckets) {
            *to = change(*to, *from);
        }
        self.micros = change(self.micros, other.micros);
    }
}

impl SiteSnapshot {
    /// Returns how long the responses took that have an outcome, by its place in [`OUTCOMES`].
    #[must_use]
    pub fn durations_of_outcome(&self, outcome: usize) -> Durations {
        self.durations_if(|(of, _)| of == outcome)
    }

    /// Returns how long the responses took whose content is of a class, by its place in [`CLASSES`].
    #[must_use]
    pub fn durations_of_class(&self, class: usize) -> Durations {
        self.durations_if(|(_, of)| of == class)
    }

    /// Returns how long all responses took.
    #[must_use]
    pub fn durations(&self) -> Durations {
        self.durations_if(|_| true)
    }

    fn durations_if(&self, wanted: impl Fn((usize, usize)) -> bool) -> Durations {
        let mut sum = Durations::default();
        self.tallies.iter().filter(|(of, _)| wanted(**of)).for_each(|(_, tally)| sum.add(&tally.durations));
        sum
    }

    /// Changes every counter by `change`, which is given it and the same counter of `other`.
    pub fn combine(&mut self, other: &Self, change: impl Fn(u64, u64) -> u64) {
        let each = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(to, from)| *to = change(*to, *from));
        // Whoever adds a counter is told here that it is missing.
        let Self {
            responses,
            outcomes,
            tallies,
            origin_failures,
            origin_durations,
            origin_given_up,
            origin_given_up_micros,
            proofs,
            logins_refused,
        } = self;
        each(responses, &other.responses);
        each(outcomes, &other.outcomes);
        for (of, from) in &other.tallies {
            let Tally { durations, body_bytes, origin_micros } = tallies.entry(*of).or_default();
            durations.combine(&from.durations, &change);
            *body_bytes = change(*body_bytes, from.body_bytes);
            *origin_micros = change(*origin_micros, from.origin_micros);
        }
        *origin_failures = change(*origin_failures, other.origin_failures);
        origin_durations.combine(&other.origin_durations, &change);
        *origin_given_up = change(*origin_given_up, other.origin_given_up);
        *origin_given_up_micros = change(*origin_given_up_micros, other.origin_given_up_micros);
        each(proofs, &other.proofs);
        each(logins_refused, &other.logins_refused);
    }

    /// Returns the content bytes that were sent.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.tallies.values().map(|tally| tally.body_bytes).sum()
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            collapsed: AtomicU64::default(),
            aborted: AtomicU64::default(),
            coded: Default::default(),
            hinted: AtomicU64::default(),
            direct: AtomicU64::default(),
            sites: Box::new(array::from_fn(|_| OnceLock::new())),
            siteless: SiteCounters::default(),
            refused: Default::default(),
            refusals: Mutex::default(),
            rules: Mutex::default(),
        }
    }
}

impl Default for SiteCounters {
    fn default() -> Self {
        Self {
            responses: Default::default(),
            tallies: array::from_fn(|_| OnceLock::new()),
            origin_failures: AtomicU64::default(),
            origin_durations: DurationCounter::default(),
            origin_given_up: AtomicU64::default(),
            origin_given_up_micros: AtomicU64::default(),
            proofs: Default::default(),
            logins_refused: Default::default(),
        }
    }
}

/// Returns a duration in microseconds. Half a million years are the most.
const fn micros(took: Duration) -> u64 {
    took.as_secs().saturating_mul(1_000_000).saturating_add(took.subsec_micros() as u64)
}

impl DurationCounter {
    /// Counts a duration, and returns it in microseconds.
    #[inline]
    fn count(&self, took: Duration) -> u64 {
        let micros = micros(took);
        // Nearly every hit ends in one of the first buckets.
        let bucket = BUCKET_MICROS.iter().position(|bound| micros <= *bound).unwrap_or(BUCKET_MICROS.len());
        add(&self.buckets[bucket], 1);
        add(&self.micros, micros);
        micros
    }

    fn add_to(&self, sum: &mut Durations) {
        for (to, from) in sum.buckets.iter_mut().zip(&self.buckets) {
            *to += from.load(Relaxed);
        }
        sum.micros = sum.micros.wrapping_add(self.micros.load(Relaxed));
    }
}

impl SiteCounters {
    fn add_to(&self, sum: &mut SiteSnapshot) {
        for (to, from) in sum.responses.iter_mut().zip(&self.responses) {
            *to += from.load(Relaxed);
        }
        for (at, tally) in self.tallies.iter().enumerate() {
            let Some(tally) = tally.get() else { continue };
            let (outcome, class) = (at / CLASSES.len(), at % CLASSES.len());
            let to = sum.tallies.entry((outcome, class)).or_default();
            let before = to.durations.count();
            tally.durations.add_to(&mut to.durations);
            to.body_bytes += tally.body_bytes.load(Relaxed);
            to.origin_micros += tally.origin_micros.load(Relaxed);
            sum.outcomes[outcome] += to.durations.count() - before;
        }
        sum.origin_failures += self.origin_failures.load(Relaxed);
        self.origin_durations.add_to(&mut sum.origin_durations);
        sum.origin_given_up += self.origin_given_up.load(Relaxed);
        sum.origin_given_up_micros = sum.origin_given_up_micros.wrapping_add(self.origin_given_up_micros.load(Relaxed));
        for (to, from) in sum.proofs.iter_mut().zip(&self.proofs) {
            *to += from.load(Relaxed);
        }
        for (to, from) in sum.logins_refused.iter_mut().zip(&self.logins_refused) {
            *to += from.load(Relaxed);
        }
    }
}

impl Counters {
    /// Counts a response that was sent, or whose client left.
    pub fn responded(&self, note: &Note, sent: &Sent) {
        let Sent { status, body_bytes, took, complete } = *sent;
        let outcome = note.result().place();
        let site = self.site(note.site);
        add(&site.responses[usize::from(status / 100).min(5)], 1);
        let tally = site.tallies[outcome * CLASSES.len() + note.class as usize].get_or_init(Box::default);
        let micros_taken = tally.durations.count(took);
        if micros_taken > tally.slowest.load(Relaxed) {
            tally.slowest.store(micros_taken, Relaxed);
        }
        add(&tally.body_bytes, body_bytes);
        if let Some(time) = note.origin_time {
            add(&tally.origin_micros, micros(time));
        }
        if let (Some(rule), Some(site)) = (note.rule, note.site) {
            self.ruled(site, rule, note.origin_time);
        }
        if let Some(coding) = note.coding {
            add(&self.coded[coding as usize], 1);
        }
        if note.collapsed {
            add(&self.collapsed, 1);
        }
        if !complete {
            add(&self.aborted, 1);
        }
    }

    /// Counts a request for which a rule decided.
    #[cold]
    pub(crate) fn ruled(&self, site: u16, rule: &'static str, origin_time: Option<Duration>) {
        let mut rules = self.rules.lock();
        let is_known = rules.len() < RULES_MAX || rules.contains_key(&(site, rule));
        let place = if is_known { (site, rule) } else { (u16::MAX, OTHER_RULE) };
        let count = rules.entry(place).or_default();
        count.requests += 1;
        count.origin_micros += origin_time.map_or(0, micros);
    }

    pub(crate) fn hinted(&self) {
        add(&self.hinted, 1);
    }

    pub(crate) fn went_direct(&self) {
        add(&self.direct, 1);
    }

    /// Counts a message that was refused before it was a request, or a connection that was ended for what came on it.
    pub fn refused(&self, status: u16, reason: &'static str) {
        add(&self.refused[usize::from(status / 100).min(5)], 1);
        *self.refusals.lock().entry(reason).or_default() += 1;
    }

    /// Counts a request to the origin of a site: how long it took to the head of the response, or that there was none.
    pub(crate) fn origin_answered(&self, site: u16, took: Duration, failed: bool) {
        let site = self.site(Some(site));
        if failed {
            add(&site.origin_failures, 1);
        } else {
            site.origin_durations.count(took);
        }
    }

    /// Counts a request to the origin of a site that was given up after this time, as its client had left.
    pub(crate) fn origin_given_up(&self, site: u16, took: Duration) {
        let site = self.site(Some(site));
        add(&site.origin_given_up, 1);
        add(&site.origin_given_up_micros, micros(took));
    }

    /// Counts a two-visitor proof of a site's page.
    pub(crate) fn proven(&self, site: u16, result: ProofResult) {
        add(&self.site(Some(site)).proofs[result as usize], 1);
    }

    /// Counts a request with a password that was refused.
    pub(crate) fn login_refused(&self, site: u16, why: LoginRefusal) {
        add(&self.site(Some(site)).logins_refused[why as usize], 1);
    }

    fn site(&self, number: Option<u16>) -> &SiteCounters {
        let Some([high, low]) = number.map(u16::to_be_bytes) else { return &self.siteless };
        let table = self.sites[usize::from(high)].get_or_init(|| Box::new(array::from_fn(|_| OnceLock::new())));
        table[usize::from(low)].get_or_init(Box::default)
    }

    /// Raises `slowest` to the longest durations, in microseconds, since this was called last: by the site's number and the place of the outcome in
    /// [`OUTCOMES`]. Zero: there was none. A response that ends at this very moment may be in the next call's, although its bucket was counted before.
    pub fn take_slowest(&self, slowest: &mut BTreeMap<Option<u16>, [u64; OUTCOMES.len()]>) {
        let numbers = (0..=u8::MAX).zip(&*self.sites).flat_map(|(high, table)| {
            let sites = table.get().into_iter().flat_map(|table| &**table);
            (0..=u8::MAX).zip(sites).filter_map(move |(low, site)| Some((Some(u16::from_be_bytes([high, low])), &**site.get()?)))
        });
        for (number, site) in numbers.chain([(None, &self.siteless)]) {
            for (at, tally) in site.tallies.iter().enumerate() {
                let micros = tally.get().map_or(0, |tally| tally.slowest.swap(0, Relaxed));
                if micros > 0 {
                    let of_site = slowest.entry(number).or_default();
                    let longest = &mut of_site[at / CLASSES.len()];
                    *longest = micros.max(*longest);
                }
            }
        }
    }

    /// Adds what this worker has counted to `sum`.
    pub fn add_to(&self, sum: &mut Snapshot) {
        sum.collapsed += self.collapsed.load(Relaxed);
        sum.aborted += self.aborted.load(Relaxed);
        sum.hinted += self.hinted.load(Relaxed);
        sum.direct += self.direct.load(Relaxed);
        for (to, from) in sum.coded.iter_mut().zip(&self.coded) {
            *to += from.load(Relaxed);
        }
        for (high, table) in (0..=u8::MAX).zip(&*self.sites) {
            for (low, site) in (0..=u8::MAX).zip(table.get().into_iter().flat_map(|table| &**table)) {
                if let Some(site) = site.get() {
                    site.add_to(sum.sites.entry(u16::from_be_bytes([high, low])).or_default());
                }
            }
        }
        self.siteless.add_to(&mut sum.siteless);
        for (to, from) in sum.refused.iter_mut().zip(&self.refused) {
            let refused = from.load(Relaxed);
            *to += refused;
            sum.siteless.outcomes[CacheOutcome::Refused.place()] += refused;
        }
        let all = || sum.sites.values().chain([&sum.siteless]);
        sum.outcomes = all().fold([0; OUTCOMES.len()], |sum, of| array::from_fn(|index| sum[index] + of.outcomes[index]));
        sum.responses = all().fold(sum.refused, |sum, of| array::from_fn(|index| sum[index] + of.responses[index]));
        sum.body_bytes = all().map(SiteSnapshot::body_bytes).sum();
        let mut durations: [Durations; OUTCOMES.len()] = Default::default();
        for ((outcome, _), tally) in all().flat_map(|of| &of.tallies) {
            durations[*outcome].add(&tally.durations);
        }
        sum.durations = durations;
        for (reason, count) in &*self.refusals.lock() {
            *sum.refusals.entry(reason).or_default() += count;
        }
        for (place, count) in &*self.rules.lock() {
            let to = sum.rules.entry(*place).or_default();
            to.requests += count.requests;
            to.origin_micros += count.origin_micros;
        }
    }
}

impl Note {
    /// Returns what the cache did, as it is counted.
    #[must_use]
    pub fn result(&self) -> CacheOutcome {
        self.outcome.map_or(CacheOutcome::None, CacheOutcome::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;

    #[test]
    fn refusals_of_all_workers_are_summed_up_by_reason() {
        let workers = [Counters::default(), Counters::default()];
        workers[0].refused(0, "a flood");
        workers[1].refused(0, "a flood");
        workers[1].refused(400, "no host");
        let mut sum = Snapshot::default();
        workers.iter().for_each(|worker| worker.add_to(&mut sum));
        assert_eq!(sum.refusals, BTreeMap::from([("a flood", 2), ("no host", 1)]));
        assert_eq!((sum.siteless.outcomes[CacheOutcome::Refused.place()], sum.responses[0], sum.responses[4]), (3, 2, 1));
        assert_eq!((sum.refused, sum.siteless.responses), ([2, 0, 0, 0, 1, 0], [0; 6]), "there was no request that they answer");
    }

    #[test]
    fn what_rules_cost_is_summed_up_by_site_and_rule_in_bounded_memory() {
        let workers = [Counters::default(), Counters::default()];
        let sent = Sent { status: 200, body_bytes: 10, took: Duration::ZERO, complete: true };
        let pass = Outcome::Forwarded(Forwarded::Bypass);
        for (worker, site, rule, micros) in
            [(0, 1, "cookie", Some(200)), (1, 1, "cookie", Some(300)), (0, 2, "cookie", None), (0, 1, "set-cookie", Some(7))]
        {
            let origin_time = micros.map(Duration::from_micros);
            workers[worker].responded(&Note { site: Some(site), rule: Some(rule), origin_time, ..Note::of(pass) }, &sent);
        }
        workers[0].responded(&Note { site: Some(1), ..Note::of(Outcome::Hit) }, &sent);
        let sum = |workers: &[Counters]| {
            let mut sum = Snapshot::default();
            workers.iter().for_each(|worker| worker.add_to(&mut sum));
            sum.rules
        };
        let count = |requests, origin_micros| RuleCount { requests, origin_micros };
        let expected = BTreeMap::from([((1, "cookie"), count(2, 500)), ((1, "set-cookie"), count(1, 7)), ((2, "cookie"), count(1, 0))]);
        assert_eq!(sum(&workers), expected);

        let many = [Counters::default()];
        for site in 0..2_000 {
            many[0].responded(&Note { site: Some(site), rule: Some("no-store"), ..Note::of(pass) }, &sent);
        }
        let rules = sum(&many);
        assert_eq!((rules.len(), rules[&(u16::MAX, "other")].requests), (RULES_MAX + 1, 2_000 - RULES_MAX as u64));
    }

    #[test]
    fn the_slowest_response_of_an_outcome_is_told_once() {
        let workers = [Counters::default(), Counters::default()];
        for (worker, site, outcome, micros) in [
            (0, Some(1), Outcome::Hit, 20),
            (0, Some(1), Outcome::Hit, 90),
            (1, Some(1), Outcome::Hit, 70),
            (1, Some(1), Outcome::Revalidated, 2_300_000),
            (1, Some(600), Outcome::Hit, 5),
            (0, None, Outcome::Hit, 3),
        ] {
            let sent = Sent { status: 200, body_bytes: 1, took: Duration::from_micros(micros), complete: true };
            workers[worker].responded(&Note { site, ..Note::of(outcome) }, &sent);
        }
        let take = || {
            let mut slowest = BTreeMap::new();
            workers.iter().for_each(|worker| worker.take_slowest(&mut slowest));
            slowest
        };
        let of = |hit, revalidated| array::from_fn(|outcome| [hit, 0, 0, revalidated].get(outcome).copied().unwrap_or(0));
        assert_eq!(take(), BTreeMap::from([(None, of(3, 0)), (Some(1), of(90, 2_300_000)), (Some(600), of(5, 0))]));
        assert_eq!(take(), BTreeMap::new());
    }

    #[test]
    fn two_snapshots_of_a_site_are_combined_counter_by_counter() {
        let counters = Counters::default();
        let note = Note { site: Some(3), origin_time: Some(Duration::from_micros(30)), ..Note::of(Outcome::Revalidated) };
        let snapshot = || {
            let mut sum = Snapshot::default();
            counters.add_to(&mut sum);
            sum.sites.remove(&3).unwrap_or_default()
        };
        let mut all = SiteSnapshot::default();
        let mut before = snapshot();
        for n in 1..4 {
            counters.responded(&note, &Sent { status: 200, body_bytes: n, took: Duration::from_micros(n), complete: true });
            counters.origin_answered(3, Duration::from_micros(n), n == 2);
            counters.origin_given_up(3, Duration::from_micros(n));
            counters.proven(3, ProofResult::Same);
            counters.login_refused(3, LoginRefusal::Busy);
            let now = snapshot();
            let mut new = now.clone();
            new.combine(&before, u64::wrapping_sub);
            assert_eq!(new.outcomes.iter().sum::<u64>(), 1);
            all.combine(&new, u64::wrapping_add);
            assert_eq!(all, now, "the differences add up to the whole");
            before = now;
        }
    }

    #[test]
    fn requests_of_all_workers_are_summed_up_by_site() {
        let workers = [Counters::default(), Counters::default()];
        let note = |site| Note { site, ..Note::of(Outcome::Hit) };
        for (worker, site) in [(0, Some(0)), (1, Some(0)), (1, Some(255)), (0, Some(256)), (0, Some(u16::MAX)), (1, None)] {
            workers[worker].responded(&note(site), &Sent { status: 200, body_bytes: 10, took: Duration::ZERO, complete: true });
        }
        workers[0].origin_answered(256, Duration::from_millis(30), false);
        workers[1].origin_answered(256, Duration::from_secs(60), true);
        let mut sum = Snapshot::default();
        workers.iter().for_each(|worker| worker.add_to(&mut sum));
        let hits: Vec<(u16, u64)> = sum.sites.iter().map(|(number, site)| (*number, site.outcomes[0])).collect();
        assert_eq!(hits, [(0, 2), (255, 1), (256, 1), (u16::MAX, 1)]);
        assert_eq!((sum.siteless.outcomes[0], sum.outcomes[0], sum.responses[2], sum.body_bytes), (1, 6, 6, 60));
        assert_eq!((sum.sites[&0].responses[2], sum.sites[&0].body_bytes(), sum.sites[&0].durations().count()), (2, 20, 2));
        let origin = &sum.sites[&256];
        assert_eq!((origin.origin_failures, origin.origin_durations.count(), origin.origin_durations.micros), (1, 1, 30_000));
    }

    #[test]
    fn what_is_counted_of_an_outcome_and_a_class_adds_up_to_what_is_counted_of_the_site() {
        let counters = Counters::default();
        let sent = |status, micros| Sent { status, body_bytes: 100, took: Duration::from_micros(micros), complete: true };
        let miss = Outcome::Forwarded(Forwarded::UriMiss);
        for (outcome, class, status, took, origin) in [
            (Outcome::Hit, Class::Document, 200, 5, None),
            (Outcome::Hit, Class::Document, 304, 20, None),
            (Outcome::Hit, Class::Picture, 200, 30, None),
            (miss, Class::Document, 200, 7_000, Some(6_000)),
            (miss, Class::Document, 502, 2_000, Some(1_500)),
        ] {
            let origin_time = origin.map(Duration::from_micros);
            counters.responded(&Note { site: Some(7), class, origin_time, ..Note::of(outcome) }, &sent(status, took));
        }
        let mut sum = Snapshot::default();
        counters.add_to(&mut sum);
        let site = &sum.sites[&7];
        let tallies: Vec<_> = site
            .tallies
            .iter()
            .map(|((outcome, class), tally)| {
                let Tally { durations, body_bytes, origin_micros } = tally;
                (OUTCOMES[*outcome].name(), CLASSES[*class], durations.count(), durations.micros, *body_bytes, *origin_micros)
            })
            .collect();
        assert_eq!(
            tallies,
            [("hit", "document", 2, 25, 200, 0), ("hit", "picture", 1, 30, 100, 0), ("miss", "document", 2, 9_000, 200, 7_500),]
        );
        assert_eq!((site.outcomes[0], site.outcomes[5], site.responses), (3, 2, [0, 0, 3, 1, 0, 1]));
        assert_eq!((sum.durations[0].count(), sum.durations[5].micros, sum.body_bytes), (3, 9_000, 500));
        assert_eq!((site.durations_of_class(Class::Document as usize).count(), site.durations_of_outcome(0).micros), (4, 55));
    }

    #[test]
    fn a_duration_falls_into_the_first_bucket_whose_bound_it_does_not_exceed() {
        for (micros, bucket) in [(0, 0), (10, 0), (11, 1), (100, 3), (101, 4), (1_000, 6), (30_000_000, 19), (30_000_001, 20)] {
            let counter = DurationCounter::default();
            counter.count(Duration::from_micros(micros));
            let mut sum = Durations::default();
            counter.add_to(&mut sum);
            assert_eq!((sum.buckets.iter().position(|count| *count == 1), sum.count(), sum.micros), (Some(bucket), 1, micros));
        }
        assert!(BUCKET_MICROS.is_sorted());
    }

    #[test]
    fn outcomes_have_the_names_of_x_cache() {
        for outcome in [
            Outcome::Hit,
            Outcome::Updating,
            Outcome::Stale { forwarded: true },
            Outcome::Revalidated,
            Outcome::Forwarded(Forwarded::Stale),
            Outcome::Forwarded(Forwarded::UriMiss),
            Outcome::Forwarded(Forwarded::Bypass),
        ] {
            assert_eq!(CacheOutcome::of(outcome).name().to_uppercase(), outcome.x_cache());
        }
        for (place, outcome) in OUTCOMES.into_iter().enumerate() {
            assert_eq!(outcome.place(), place, "{outcome:?}");
        }
    }
}
