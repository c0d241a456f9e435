//! The account of what happened: what it is told, and where that is counted.

use std::sync::Arc;

use admin_api::{COLUMNS, Moment, PurgeLine, Recent, RequestLine, Series};
use parking_lot::{Mutex, RwLock};

use crate::{
    CacheResult, EndedRequest, Filter, InVain, Row, SampledHit, Span, Unreadable,
    address::Address,
    agents,
    amount::Amount,
    disk,
    disk::{put, put_part, put_text},
    keys::Keys,
    memory::{MEMORY_MAX, of_text},
    names::{Name, Names},
    outages::{Outages, Purges},
    reasons::Room,
    recent::{Entry, Ring, micros},
    referrers,
    series::{Columns, Track, bytes_max, columns},
    site::{Cost, CountedRequest, Family, SITE_BYTES_MAX, Sketches, Slot, State, TableSizes, read_sums, write_sums},
    text::shortened,
    totals::Sums,
};

/// Sites that are counted apart. Those beyond are counted as one, `(other sites)`.
pub const SITES_MAX: usize = 256;

/// The length of a period, in milliseconds: a day. What is shown is the sum of this one and the one before.
pub const PERIOD: u64 = 86_400_000;

/// The rule of an answer to a condition of the client. Its status is 504, although no server has failed.
const ONLY_IF_CACHED: &str = "only-if-cached";

/// The site of those that are not counted apart.
const OTHER_SITES: &str = "(other sites)";

/// Programs whose family is remembered, so that it is not looked for each time.
const AGENTS_REMEMBERED: usize = 512;

/// Requests that one look at the list takes at a time: as long as that, it is locked.
const RECENT_AT_ONCE: usize = 64;
/// Requests in a moment.
const MOMENT_REQUESTS_MAX: usize = 20;
/// Bytes of the requests in a moment, as far as their texts go.
const MOMENT_TEXT_MAX: usize = 4_096;
/// Sites in a moment: those with most requests.
const MOMENT_SITES_MAX: usize = 64;

/// The account of what happened. All workers share one; what they tell it takes the lock of one site for a microsecond.
pub struct Insight {
    /// The keys by which names are hashed: nobody else knows them.
    pub(crate) keys: Keys,
    pub(crate) names: Names,
    room: Room,
    pub(crate) sketches: Sketches,
    pub(crate) sites: RwLock<Sites>,
    pub(crate) all: Mutex<All>,
    ring: Mutex<Ring>,
    pub(crate) purges: Mutex<Purges>,
    pub(crate) outages: Mutex<Outages>,
    /// The families of programs, by the hash of what they say.
    agents: Box<[Mutex<Option<RememberedAgent>>]>,
}

/// The hash of what a program says, and its family.
type RememberedAgent = (u64, Family);

/// The sites, and what is kept of each.
#[derive(Debug)]
pub(crate) struct Sites {
    /// The sites of the configuration, in its order.
    pub(crate) configured: Vec<Arc<Slot>>,
    /// The sites of the configuration by their numbers, in the order of the numbers.
    by_number: Vec<(u16, Arc<Slot>)>,
    /// All sites of which something is known, also those that are not configured any more.
    pub(crate) known: Vec<Arc<Slot>>,
    /// Requests that reached no site, and those of sites beyond the bound.
    pub(crate) none: Arc<Slot>,
    pub(crate) others: Arc<Slot>,
}

/// All sites together.
#[derive(Debug, Default)]
pub(crate) struct All {
    pub(crate) sums: Sums,
    pub(crate) track: Track,
    /// The time at which this period began, in milliseconds, and that of the one before, if there is one.
    pub(crate) began: u64,
    pub(crate) began_before: Option<u64>,
    /// The last second: when it ended, all together, and each site in which something happened.
    second: u64,
    last: Columns,
    last_of: Vec<(Arc<str>, Columns)>,
}

impl Slot {
    fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: shortened(name, SITE_BYTES_MAX).into(), state: Mutex::default() })
    }
}

impl Default for Sites {
    fn default() -> Self {
        let (none, others) = (Slot::new(""), Slot::new(OTHER_SITES));
        let known = vec![Arc::clone(&none), Arc::clone(&others)];
        Self { configured: Vec::new(), by_number: Vec::new(), known, none, others }
    }
}

impl Sites {
    fn slot(&self, site: Option<u16>) -> &Arc<Slot> {
        let Some(number) = site else { return &self.none };
        match self.by_number.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(at) => &self.by_number[at].1,
            Err(_) => &self.others,
        }
    }

    pub(crate) fn places(&self) -> TableSizes {
        TableSizes::for_sites(self.configured.len())
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Slot>> {
        self.configured.iter().chain([&self.others]).find(|slot| *slot.name == *name)
    }
}

impl Row {
    fn add(&mut self, other: &Self) {
        for (sum, new) in self.sums.iter_mut().flatten().zip(other.sums.iter().flatten()) {
            sum.requests = sum.requests.saturating_add(new.requests);
            sum.bytes = sum.bytes.saturating_add(new.bytes);
            sum.origin_micros = sum.origin_micros.saturating_add(new.origin_micros);
        }
        for (sum, new) in self.latencies.iter_mut().flatten().zip(other.latencies.iter().flatten()) {
            *sum = sum.saturating_add(*new);
        }
        for (slowest, new) in self.slowest.iter_mut().zip(other.slowest) {
            *slowest = new.max(*slowest);
        }
        self.server_errors = self.server_errors.saturating_add(other.server_errors);
        self.client_errors = self.client_errors.saturating_add(other.client_errors);
        self.origin_requests = self.origin_requests.saturating_add(other.origin_requests);
        self.origin_failures = self.origin_failures.saturating_add(other.origin_failures);
        self.origin_micros = self.origin_micros.saturating_add(other.origin_micros);
    }
}

impl Insight {
    /// Begins to count at this time, in milliseconds since the epoch.
    #[must_use]
    pub fn new(now: u64) -> Self {
        Self {
            keys: Keys::new(),
            names: Names::default(),
            room: Room::default(),
            sketches: Sketches::default(),
            sites: RwLock::default(),
            all: Mutex::new(All { began: now, ..All::default() }),
            ring: Mutex::default(),
            purges: Mutex::default(),
            outages: Mutex::default(),
            agents: (0..AGENTS_REMEMBERED).map(|_| Mutex::new(None)).collect(),
        }
    }

    /// Sets the sites, by number and name, in the order of the configuration. What was counted for a name stays with that name, whatever number it
    /// gets. Due at the start, after [`from_bytes`](Self::from_bytes) too, and whenever the configuration changes. `now` is in milliseconds since the
    /// epoch.
    pub fn set_sites(&self, named: &[(u16, &str)], now: u64) {
        let mut sites = self.sites.write();
        let mut next = Sites { none: Arc::clone(&sites.none), others: Arc::clone(&sites.others), ..Sites::default() };
        for (number, name) in named.iter().take(SITES_MAX) {
            let name = shortened(name, SITE_BYTES_MAX);
            let known = next.configured.iter().chain(&sites.known).find(|slot| *slot.name == *name && !name.is_empty());
            let slot = known.map_or_else(|| Slot::new(&name), Arc::clone);
            if !next.configured.iter().any(|other| Arc::ptr_eq(other, &slot)) {
                next.configured.push(Arc::clone(&slot));
            }
            next.by_number.push((*number, slot));
        }
        next.by_number.sort_by_key(|(number, _)| *number);
        next.known = [&next.none, &next.others].into_iter().chain(&next.configured).cloned().collect();
        // Those that are gone may come back, if there is room for them.
        let gone: Vec<_> = sites.known.iter().filter(|slot| !next.known.iter().any(|other| Arc::ptr_eq(other, slot))).cloned().collect();
        let (kept, lost) = gone.split_at(gone.len().min((SITES_MAX + 2).saturating_sub(next.known.len())));
        for slot in lost {
            let mut state = slot.state.lock();
            // What it had of the room that all share is given back.
            (0..2).for_each(|_| state.reasons.turn(&self.room));
        }
        next.known.extend_from_slice(kept);
        next.known.iter().for_each(|slot| slot.state.lock().settle(next.places()));
        let names: Vec<&str> = next.configured.iter().map(|slot| &*slot.name).collect();
        self.outages.lock().end_all_but(&names, now);
        *sites = next;
    }

    /// Counts a request that has ended and was not a plain hit.
    pub fn ended(&self, ended: &EndedRequest<'_>) {
        let agent = self.agent(ended.agent);
        let referrer = referrers::host(ended.referrer, ended.host);
        let is_fetched = ended.result.is_fetched() || ended.origin_time.is_some();
        let rule = match (ended.rule, ended.result) {
            ("", CacheResult::Miss) => "cold",
            ("", result @ (CacheResult::Expired | CacheResult::Revalidated)) => result.name(),
            ("", CacheResult::Bypass) => "request",
            (rule, _) => rule,
        };
        let (number, is_failure) = self.names.rule(rule);
        let reason = if ended.reason.is_empty() || ended.reason == rule { number } else { self.names.rule(ended.reason).0 };
        let error = if is_failure || rule == ONLY_IF_CACHED {
            Some(number)
        } else if ended.status >= 500 {
            Some(Name::NONE)
        } else {
            // What was refused here.
            (ended.status >= 400 && ended.result == CacheResult::None).then_some(number)
        };
        let address = Address::of(ended.scheme, ended.host, ended.target);
        let counted = CountedRequest {
            at: ended.at,
            status: ended.status,
            cost: Cost {
                amount: Amount { micros: ended.origin_time.map_or(0, micros), requests: 1, bytes: ended.bytes },
                address_hash: self.keys.hash(&address.text),
                address,
                rule: reason,
                detail: ended.detail,
                cookie: ended.cookie,
            },
            agent,
            referrer,
            is_fetched,
            error,
            is_read: is_read(ended.class) && ended.status < 400 && ended.method == "GET",
            stands_for: 1,
        };
        let sites = self.sites.read();
        let (slot, places) = (sites.slot(ended.site), sites.places());
        slot.state.lock().count(&counted, (&self.keys, &self.sketches, &self.room), places);
        let entry = Entry::of(ended, Arc::clone(&slot.name), number, &counted.agent.name, &counted.referrer);
        drop(sites);
        self.ring.lock().push(entry);
    }

    /// Counts what a fetch has cost its origin although its client had left. The list of the last requests has the request already.
    pub fn fetched_in_vain(&self, fetched: &InVain<'_>) {
        let amount = Amount { micros: micros(fetched.origin_time), requests: 1, bytes: 0 };
        let address = Address::of(fetched.scheme, fetched.host, fetched.target);
        let cost = Cost {
            amount,
            address_hash: self.keys.hash(&address.text),
            address,
            rule: self.names.rule(fetched.rule).0,
            detail: fetched.detail,
            cookie: fetched.cookie,
        };
        let sites = self.sites.read();
        let (slot, places) = (sites.slot(Some(fetched.site)), sites.places());
        slot.state.lock().cost(&cost, true, (&self.keys, &self.sketches, &self.room), places);
    }

    /// Counts a hit of a sample.
    pub fn sampled_hit(&self, hit: &SampledHit<'_>) {
        let address = Address::of(hit.scheme, hit.host, hit.target);
        let counted = CountedRequest {
            at: 0,
            status: 200,
            cost: Cost {
                amount: Amount { micros: 0, requests: 1, bytes: hit.bytes },
                address_hash: self.keys.hash(&address.text),
                address,
                rule: Name::NONE,
                detail: "",
                cookie: None,
            },
            agent: self.agent(hit.agent),
            referrer: referrers::host(hit.referrer, hit.host),
            is_fetched: false,
            error: None,
            is_read: is_read(hit.class),
            stands_for: hit.stands_for,
        };
        let sites = self.sites.read();
        let (slot, places) = (sites.slot(hit.site), sites.places());
        slot.state.lock().count(&counted, (&self.keys, &self.sketches, &self.room), places);
    }

    /// Returns the family of a program. What the same program said before is not looked at again.
    fn agent(&self, agent: &str) -> Family {
        let hash = self.keys.hash(agent);
        let place = usize::try_from(hash % AGENTS_REMEMBERED as u64).expect("less than a few hundred");
        let mut remembered = self.agents[place].lock();
        match &*remembered {
            Some((of, family)) if *of == hash => family.clone(),
            Some(_) | None => {
                let name: Arc<str> = agents::family(agent).into();
                let family = Family { hash: self.keys.hash(&name), name };
                *remembered = Some((hash, family.clone()));
                family
            }
        }
    }

    /// Takes what happened in the second that ends now, in seconds since the epoch: a row for each site in which something happened, and one without
    /// a site for requests that reached none. Due each second, with no rows if nothing happened: a second without a call is one in which
    /// Seawall did not run.
    pub fn second(&self, now: u64, rows: &[(Option<u16>, Row)]) {
        let second = now.saturating_sub(1);
        let sites = self.sites.read();
        let (mut total, mut of) = (Row::default(), Vec::new());
        for (site, row) in rows {
            total.add(row);
            let slot = sites.slot(*site);
            let mut state = slot.state.lock();
            state.sums.add(row);
            state.track.second(second, row);
            of.push((Arc::clone(&slot.name), columns(row)));
        }
        let mut all = self.all.lock();
        all.sums.add(&total);
        all.track.second(second, &total);
        (all.second, all.last, all.last_of) = (now, columns(&total), of);
        let millis = now.saturating_mul(1_000);
        if millis.saturating_add(PERIOD) < all.began {
            // The clock was put back.
            (all.began, all.began_before) = (millis, None);
        }
        let due = millis.saturating_sub(all.began) / PERIOD;
        if due > 0 {
            all.began_before = Some(all.began + (due - 1) * PERIOD);
            all.began += due * PERIOD;
            let places = sites.places();
            for _ in 0..due.min(2) {
                all.sums.turn();
                sites.known.iter().for_each(|slot| slot.state.lock().turn(&self.room, places));
                self.sketches.halve();
            }
        }
        let of_all = all.track.bytes();
        drop(all);
        Self::bound_series(&sites, of_all, second);
    }

    /// Has tracks give up rows until all are within their bound: each time the one that holds most.
    fn bound_series(sites: &Sites, of_all: usize, second: u64) {
        let mut bytes: Vec<usize> = sites.known.iter().map(|slot| slot.state.lock().track.bytes()).collect();
        let mut total = of_all + bytes.iter().sum::<usize>();
        let most_of_all = bytes_max(sites.known.len());
        while total > most_of_all {
            let Some((at, most)) = bytes.iter().copied().enumerate().max_by_key(|(_, bytes)| *bytes) else { return };
            let track = &mut sites.known[at].state.lock().track;
            if !track.give_up(second) {
                return;
            }
            bytes[at] = track.bytes();
            total -= most - bytes[at];
        }
    }

    /// Takes a purge that was carried out.
    pub fn purged(&self, purge: &PurgeLine) {
        self.purges.lock().push(purge);
    }

    /// Notes that the origin of a site cannot be reached since `at`, in milliseconds since the epoch. Once for each outage is enough; more do no harm.
    pub fn origin_is_down(&self, site: u16, address: &str, at: u64) {
        let name = Arc::clone(&self.sites.read().slot(Some(site)).name);
        self.outages.lock().begin(&name, address, at);
    }

    /// Notes that the origin of a site could be reached again at this time. Without an outage it does nothing.
    pub fn origin_is_up(&self, site: u16, address: &str, at: u64) {
        let name = Arc::clone(&self.sites.read().slot(Some(site)).name);
        self.outages.lock().end(&name, address, at);
    }

    /// Returns what happened when, up to `now` in seconds since the epoch, with what has happened so far of the last step. `None`: there is no such site.
    #[must_use]
    pub fn series(&self, site: Option<&str>, span: Span, now: u64) -> Option<Series> {
        let (tier, count) = match span {
            Span::Hour => (0, 3_600),
            Span::Day => (1, 1_440),
            Span::Week => (2, 1_008),
            Span::WeekInMinutes => (1, 10_080),
        };
        let ((step, from, rows), newest) = self.with_track(site, |track, ran| (track.last(ran, tier, count, now), ran.newest()))?;
        let rows = rows.into_iter().map(|row| row.map(|row| row.to_vec())).collect();
        let until = newest.map_or(now, |newest| now.min(newest + 1));
        Some(Series { site: site.map(ToOwned::to_owned), step, from, until, columns: COLUMNS.map(ToOwned::to_owned).to_vec(), rows })
    }

    /// Returns the sums of [`COLUMNS`] from one time to another, in seconds since the epoch, from the finest steps that are left. The percentiles are
    /// left zero: they cannot be added. `None`: there is no such site, or Seawall did not run then.
    #[must_use]
    pub fn sum(&self, site: Option<&str>, from: u64, until: u64) -> Option<[u64; COLUMNS.len()]> {
        self.with_track(site, |track, ran| track.sum(ran, from, until))?
    }

    /// Calls `with` with the track of a site, or of all, and with the one that says when Seawall ran.
    fn with_track<T>(&self, site: Option<&str>, with: impl FnOnce(&Track, &Track) -> T) -> Option<T> {
        let slot = match site {
            Some(name) => Some(Arc::clone(self.sites.read().named(name)?)),
            None => None,
        };
        // No lock is waited for while another is held: what is looked at is copied.
        let own = slot.map(|slot| slot.state.lock().track.clone());
        let all = self.all.lock();
        Some(with(own.as_ref().unwrap_or(&all.track), &all.track))
    }

    /// Returns the last requests that were not plain hits: those after a number that a filter lets through, the oldest first, at most `limit`. Where
    /// `after` is zero these are the last ones; else the first ones after that number, so that who follows misses nothing. A number that was not given out yet
    /// is one of a Seawall before this: then it begins again.
    #[must_use]
    pub fn recent(&self, after: u64, filter: Option<&Filter>, limit: usize) -> Recent {
        let (first, last) = {
            let ring = self.ring.lock();
            (ring.first(), ring.last())
        };
        let is_following = after > 0;
        let after = if after > last { 0 } else { after };
        let lost = if is_following && after > 0 { first.saturating_sub(after + 1) } else { 0 };
        let matches = |line: &RequestLine| filter.is_none_or(|filter| filter.matches(line));
        let mut requests = std::collections::VecDeque::new();
        let mut next = first.max(after + 1);
        while next <= last {
            let lines = self.ring.lock().from(next, RECENT_AT_ONCE, &self.names);
            let Some(end) = lines.last().map(|line| line.number) else { break };
            for line in lines.into_iter().filter(|line| line.number <= last) {
                next = line.number + 1;
                if !matches(&line) {
                    continue;
                }
                if requests.len() == limit {
                    if is_following {
                        return Recent { next: line.number - 1, lost, requests: requests.into() };
                    }
                    requests.pop_front();
                }
                if limit > 0 {
                    requests.push_back(line);
                }
            }
            next = next.max(end + 1);
        }
        Recent { next: last, lost, requests: requests.into() }
    }

    /// Returns the last second, with the last requests after a number. Left empty: `connections`, `waiting`, `memory`, `alerts`. Sites beyond the 64 that
    /// were asked most are left out, and so are requests beyond the last 20, or fewer if their texts are long.
    #[must_use]
    pub fn moment(&self, after: u64) -> Moment {
        let (at, total, mut sites) = {
            let all = self.all.lock();
            let sites: Vec<(String, Vec<u64>)> = all.last_of.iter().map(|(name, row)| (name.to_string(), row.to_vec())).collect();
            (all.second, all.last.to_vec(), sites)
        };
        sites.retain(|(name, _)| !name.is_empty());
        sites.sort_by_key(|(_, row)| std::cmp::Reverse(row[0]));
        sites.truncate(MOMENT_SITES_MAX);
        let ring = self.ring.lock();
        let from = ring
            .first()
            .max(if after > ring.last() { 0 } else { after + 1 })
            .max((ring.last() + 1).saturating_sub(MOMENT_REQUESTS_MAX as u64));
        let mut recent = ring.from(from, MOMENT_REQUESTS_MAX, &self.names);
        drop(ring);
        let mut left = MOMENT_TEXT_MAX;
        let fit = recent.iter().rev().take_while(|line| {
            let bytes = line.id.len() + line.trace.len() + line.host.len() + line.path.len() + line.detail.len() + line.referrer.len();
            left = left.saturating_sub(bytes);
            left > 0
        });
        let fit = fit.count();
        recent.drain(..recent.len() - fit);
        Moment { at, total, sites, recent, down: self.outages.lock().down(), ..Moment::default() }
    }

    /// Returns the bytes of memory that it takes, and their bound.
    #[must_use]
    pub fn memory(&self) -> (u64, u64) {
        let sites = self.sites.read();
        let of_sites: usize = sites
            .known
            .iter()
            .map(|slot| {
                let state = slot.state.lock();
                size_of::<Slot>() + 64 + of_text(&slot.name) + state.bytes() + state.track.bytes()
            })
            .sum();
        let of_all = {
            let all = self.all.lock();
            all.track.bytes() + all.last_of.capacity() * size_of::<(Arc<str>, Columns)>()
        };
        let lists = self.ring.lock().bytes() + self.purges.lock().bytes() + self.outages.lock().bytes();
        let agents: usize = self.agents.iter().map(|place| place.lock().as_ref().map_or(0, |(_, family)| of_text(&family.name) + 16)).sum();
        let fixed = size_of::<Self>() + size_of_val(&*self.agents) + self.sketches.bytes() + self.names.bytes() + sites.known.len() * 64;
        let bytes = of_sites + of_all + lists + agents + fixed;
        (bytes as u64, MEMORY_MAX)
    }

    /// Returns its form on disk: with a version and checksums.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing into memory does not fail.
        let _ = self.write(&mut out);
        out
    }

    /// Writes its form on disk, one site at a time: so it takes no more memory than one site's part.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        let mut part = Vec::new();
        disk::begin(&mut part);
        let slots = self.sites.read().known.clone();
        put_part(&mut part, |part| {
            let all = self.all.lock();
            put(part, all.began);
            put(part, all.began_before.map_or(0, |began| began + 1));
            write_sums(part, &all.sums);
            all.track.write(part);
            drop(all);
            put(part, self.ring.lock().last());
            self.purges.lock().write(part);
            self.outages.lock().write(part);
            put(part, slots.len() as u64);
        });
        out.write_all(&part)?;
        for slot in slots {
            part.clear();
            put_part(&mut part, |part| {
                put_text(part, &slot.name);
                slot.state.lock().write(part, &self.names);
            });
            out.write_all(&part)?;
        }
        Ok(())
    }

    /// Takes up the account where [`to_bytes`](Self::to_bytes) left it. [`set_sites`](Self::set_sites) has to follow.
    ///
    /// # Errors
    /// When the bytes are damaged, or another version's. The account has to begin anew then.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Unreadable> {
        let insight = Self::new(0);
        let mut reader = disk::open(bytes)?;
        let mut first = reader.part()?;
        let (began, began_before) = (first.number()?, first.number()?.checked_sub(1));
        *insight.all.lock() = All { began, began_before, sums: read_sums(&mut first)?, track: Track::read(&mut first)?, ..All::default() };
        insight.ring.lock().go_on_from(first.number()?);
        let purges = Purges::read(&mut first)?;
        if !first.has_unhidden_lists() {
            *insight.purges.lock() = purges;
        }
        *insight.outages.lock() = Outages::read(&mut first)?;
        let count = first.number()?;
        first.end()?;
        if count > SITES_MAX as u64 + 2 {
            return Err(Unreadable::Damaged);
        }
        {
            let mut sites = insight.sites.write();
            for _ in 0..count {
                let mut part = reader.part()?;
                let name = part.text_within(SITE_BYTES_MAX)?;
                let state = State::read(&mut part, &insight.keys, &insight.names, &insight.room)?;
                part.end()?;
                match name {
                    "" => *sites.none.state.lock() = state,
                    OTHER_SITES => *sites.others.state.lock() = state,
                    _ => sites.known.push(Arc::new(Slot { name: name.into(), state: Mutex::new(state) })),
                }
            }
        }
        reader.end()?;
        Ok(insight)
    }
}

/// Returns whether content of a class is something to read, and not a part of a page.
fn is_read(class: &str) -> bool {
    matches!(class, "document" | "feed" | "api")
}

impl std::fmt::Debug for Insight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Insight").field("memory", &self.memory()).finish_non_exhaustive()
    }
}
