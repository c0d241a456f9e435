//! The account that is kept of one site, and of requests that reached none.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{
    address::{ADDRESS_BYTES_MAX, Address},
    agents::AGENT_BYTES_MAX,
    amount::{Amount, Lately},
    disk::{Broken, Reader, put, put_text},
    errors::{self, Errors},
    facts::{BUCKETS, CLASSES, CookiePart, RESULTS, Sum},
    keys::Keys,
    leaders::{CostShare, Leader, Leaders},
    memory::of_text,
    names::{NAME_BYTES_MAX, Name, Names},
    reasons::{self, DETAIL_BYTES_MAX, Reasons, Room, is_time_for_example},
    referrers::REFERRER_BYTES_MAX,
    series::Track,
    sketch::Sketch,
    text::shortened,
    totals::{Period, Sums},
};

/// Bytes of the longest name of a cookie.
pub(crate) const COOKIE_BYTES_MAX: usize = 64;
/// Bytes of the longest name of a site.
pub(crate) const SITE_BYTES_MAX: usize = 64;

/// Bytes that the examples of all reasons take at most; each site has its share.
const EXAMPLE_BYTES_MAX: usize = 128 << 10;

/// Cells of a row of each sketch.
const MISSED_CELLS: usize = 8_192;
const HOT_CELLS: usize = 8_192;
const COOKIE_CELLS: usize = 2_048;
const NAME_CELLS: usize = 2_048;

/// The sketches in which what has no place is counted, for all sites.
#[derive(Debug)]
pub(crate) struct Sketches {
    pub(crate) missed: Sketch,
    pub(crate) hot: Sketch,
    pub(crate) cookies: Sketch,
    pub(crate) agents: Sketch,
    pub(crate) referrers: Sketch,
}

impl Default for Sketches {
    fn default() -> Self {
        Self {
            missed: Sketch::of_costs(MISSED_CELLS),
            hot: Sketch::of_requests(HOT_CELLS),
            cookies: Sketch::of_costs(COOKIE_CELLS),
            agents: Sketch::of_requests(NAME_CELLS),
            referrers: Sketch::of_requests(NAME_CELLS),
        }
    }
}

impl Sketches {
    fn all(&self) -> [&Sketch; 5] {
        [&self.missed, &self.hot, &self.cookies, &self.agents, &self.referrers]
    }

    pub(crate) fn halve(&self) {
        self.all().into_iter().for_each(Sketch::halve);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.all().into_iter().map(Sketch::bytes).sum()
    }
}

/// The places that each site has: the more sites, the fewer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableSizes {
    missed: usize,
    hot: usize,
    cookies: usize,
    names: usize,
    example_bytes: usize,
}

impl TableSizes {
    pub(crate) fn for_sites(sites: usize) -> Self {
        let sites = sites.max(1);
        let share = |all: usize, least: usize, most: usize| (all / sites).clamp(least, most);
        Self {
            missed: share(2_048, 10, 256),
            hot: share(1_024, 5, 128),
            cookies: share(1_024, 5, 64),
            names: share(1_024, 5, 48),
            example_bytes: EXAMPLE_BYTES_MAX / sites,
        }
    }
}

/// A site by its name, and what is kept of it.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) name: Arc<str>,
    pub(crate) state: Mutex<State>,
}

/// Holds what is kept of a site.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) sums: Sums,
    pub(crate) track: Track,
    pub(crate) reasons: Reasons,
    pub(crate) errors: Errors,
    pub(crate) missed: Leaders<Missed>,
    pub(crate) hot: Leaders<()>,
    pub(crate) cookies: Leaders<Cookie>,
    pub(crate) agents: Leaders<()>,
    pub(crate) referrers: Leaders<()>,
}

/// Holds what else is kept of a page that missed.
#[derive(Debug, Default)]
pub(crate) struct Missed {
    /// The rule that decided most lately.
    pub(crate) rule: Name,
}

/// Holds what else is kept of a cookie.
#[derive(Debug, Default)]
pub(crate) struct Cookie {
    /// Responses that were not stored because they set it.
    pub(crate) answers: Lately<u64>,
    /// A page whose response sets it.
    pub(crate) set_by: Box<str>,
}

/// The family of a program.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) name: Arc<str>,
    /// The hash of the name.
    pub(crate) hash: u64,
}

/// Says what a request has cost, and why.
#[derive(Debug)]
pub(crate) struct Cost<'a> {
    pub(crate) amount: Amount,
    pub(crate) address: Address,
    /// The hash of the address.
    pub(crate) address_hash: u64,
    pub(crate) rule: Name,
    pub(crate) detail: &'a str,
    pub(crate) cookie: Option<CookiePart>,
}

/// A request as a site counts it: all that takes time was done before the site is locked.
#[derive(Debug)]
pub(crate) struct CountedRequest<'a> {
    pub(crate) at: u64,
    pub(crate) status: u16,
    pub(crate) cost: Cost<'a>,
    pub(crate) agent: Family,
    pub(crate) referrer: String,
    /// Whether the origin was asked, so that there is a reason.
    pub(crate) is_fetched: bool,
    /// Whether it is an error, and by which failure if the origin did not answer so itself.
    pub(crate) error: Option<Name>,
    /// Whether it is something to read, so that it counts among the pages that are read.
    pub(crate) is_read: bool,
    /// The number of requests that it stands for.
    pub(crate) stands_for: u32,
}

impl State {
    /// Counts a request.
    pub(crate) fn count(&mut self, counted: &CountedRequest<'_>, shared: (&Keys, &Sketches, &Room), places: TableSizes) {
        self.cost(&counted.cost, counted.is_fetched, shared, places);
        let (keys, sketches, _) = shared;
        let Cost { address, amount, .. } = &counted.cost;
        if let Some(failure) = counted.error {
            self.errors.add((counted.status, failure), counted.at, address);
        }
        let times = u64::from(counted.stands_for);
        let read = Amount { micros: 0, requests: times, bytes: amount.bytes.saturating_mul(times) };
        if counted.is_read {
            self.hot.add(&sketches.hot, counted.cost.address_hash, read, places.hot, || address.text.as_str().into());
            if !counted.referrer.is_empty() {
                let name = || counted.referrer.as_str().into();
                self.referrers.add(&sketches.referrers, keys.hash(&counted.referrer), read, places.names, name);
            }
        }
        let Family { name, hash } = &counted.agent;
        self.agents.add(&sketches.agents, *hash, read, places.names, || (&**name).into());
    }

    /// Counts what a request has cost. There is a reason for it only if the origin was asked.
    pub(crate) fn cost(&mut self, cost: &Cost<'_>, is_fetched: bool, shared: (&Keys, &Sketches, &Room), places: TableSizes) {
        let (keys, sketches, room) = shared;
        let Cost { address, amount, rule, .. } = cost;
        if is_fetched {
            self.reasons.add(room, (*rule, cost.detail), *amount, address, places.example_bytes);
            if let Some(place) =
                self.missed.add(&sketches.missed, cost.address_hash, *amount, places.missed, || address.text.as_str().into())
            {
                // What was turned away without asking says nothing of why a page costs.
                if amount.micros > 0 || place.more.rule == Name::default() {
                    place.more.rule = *rule;
                }
            }
        }
        if let Some(part) = cost.cookie.filter(|_| !cost.detail.is_empty()) {
            let name = shortened(cost.detail, COOKIE_BYTES_MAX);
            let hash = keys.hash(&name);
            if let Some(place) = self.cookies.add(&sketches.cookies, hash, *amount, places.cookies, || name.as_str().into())
                && part == CookiePart::Set
            {
                let cookie = &mut place.more;
                cookie.answers.now += 1;
                if cookie.set_by.is_empty() || is_time_for_example(cookie.answers.total()) {
                    cookie.set_by = address.text.as_str().into();
                }
            }
        }
    }

    /// Begins another period.
    pub(crate) fn turn(&mut self, room: &Room, places: TableSizes) {
        self.sums.turn();
        self.reasons.turn(room);
        self.errors.turn();
        self.missed.turn(places.missed, |_| {});
        self.hot.turn(places.hot, |()| {});
        self.cookies.turn(places.cookies, |cookie| cookie.answers.turn());
        self.agents.turn(places.names, |()| {});
        self.referrers.turn(places.names, |()| {});
    }

    /// Takes places away, if there are fewer now.
    pub(crate) fn settle(&mut self, places: TableSizes) {
        self.missed.settle(places.missed);
        self.hot.settle(places.hot);
        self.cookies.settle(places.cookies);
        self.agents.settle(places.names);
        self.referrers.settle(places.names);
    }

    /// Returns the bytes that it takes beyond its own size, without its series.
    pub(crate) fn bytes(&self) -> usize {
        self.reasons.bytes()
            + self.errors.bytes()
            + self.missed.bytes(|_| 0)
            + self.hot.bytes(|()| 0)
            + self.cookies.bytes(|cookie| of_text(&cookie.set_by))
            + self.agents.bytes(|()| 0)
            + self.referrers.bytes(|()| 0)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>, names: &Names) {
        write_sums(out, &self.sums);
        self.track.write(out);
        put(out, self.reasons.entries().len() as u64);
        for entry in self.reasons.entries() {
            put_text(out, &names.text(entry.rule));
            put_text(out, &entry.detail);
            write_cost(out, &entry.cost);
            put_text(out, &entry.example);
        }
        put(out, self.errors.entries().len() as u64);
        for entry in self.errors.entries() {
            put(out, u64::from(entry.status));
            put_text(out, &names.text(entry.failure));
            put(out, entry.requests.now);
            put(out, entry.requests.before);
            put(out, entry.last);
            put_text(out, &entry.example);
        }
        write_leaders(out, &self.missed, |out, missed| put_text(out, &names.text(missed.rule)));
        write_leaders(out, &self.hot, |_, ()| {});
        write_leaders(out, &self.cookies, |out, cookie| {
            put(out, cookie.answers.now);
            put(out, cookie.answers.before);
            put_text(out, &cookie.set_by);
        });
        write_leaders(out, &self.agents, |_, ()| {});
        write_leaders(out, &self.referrers, |_, ()| {});
    }

    pub(crate) fn read(reader: &mut Reader<'_>, keys: &Keys, names: &Names, room: &Room) -> Result<Self, Broken> {
        let mut state = Self { sums: read_sums(reader)?, track: Track::read(reader)?, ..Self::default() };
        if reader.has_unhidden_lists() {
            reader.leave();
            return Ok(state);
        }
        for _ in 0..reader.number()? {
            let rule = names.number(reader.text_within(NAME_BYTES_MAX)?);
            let detail = reader.text_within(DETAIL_BYTES_MAX)?.into();
            let cost = read_cost(reader)?;
            let example = reader.text_within(ADDRESS_BYTES_MAX)?.into();
            state.reasons.restore(room, reasons::Entry { rule, detail, cost, example });
        }
        for _ in 0..reader.number()? {
            let status = reader.number_of()?;
            let failure = names.number(reader.text_within(NAME_BYTES_MAX)?);
            let requests = Lately { now: reader.number()?, before: reader.number()? };
            let last = reader.number()?;
            let example = reader.text_within(ADDRESS_BYTES_MAX)?.into();
            state.errors.restore(errors::Entry { status, failure, requests, last, example });
        }
        state.missed =
            read_leaders(reader, keys, ADDRESS_BYTES_MAX, |reader| Ok(Missed { rule: names.number(reader.text_within(NAME_BYTES_MAX)?) }))?;
        state.hot = read_leaders(reader, keys, ADDRESS_BYTES_MAX, |_| Ok(()))?;
        state.cookies = read_leaders(reader, keys, COOKIE_BYTES_MAX, |reader| {
            let answers = Lately { now: reader.number()?, before: reader.number()? };
            Ok(Cookie { answers, set_by: reader.text_within(ADDRESS_BYTES_MAX)?.into() })
        })?;
        state.agents = read_leaders(reader, keys, AGENT_BYTES_MAX, |_| Ok(()))?;
        state.referrers = read_leaders(reader, keys, REFERRER_BYTES_MAX, |_| Ok(()))?;
        Ok(state)
    }
}

/// Places of a table that are taken up from disk: more than any site has.
const PLACES_MAX: u64 = 256;

fn write_amount(out: &mut Vec<u8>, amount: Amount) {
    put(out, amount.micros);
    put(out, amount.requests);
    put(out, amount.bytes);
}

fn read_amount(reader: &mut Reader<'_>) -> Result<Amount, Broken> {
    Ok(Amount { micros: reader.number()?, requests: reader.number()?, bytes: reader.number()? })
}

fn write_cost(out: &mut Vec<u8>, cost: &Lately<Amount>) {
    write_amount(out, cost.now);
    write_amount(out, cost.before);
}

fn read_cost(reader: &mut Reader<'_>) -> Result<Lately<Amount>, Broken> {
    Ok(Lately { now: read_amount(reader)?, before: read_amount(reader)? })
}

fn write_leaders<T: Default>(out: &mut Vec<u8>, leaders: &Leaders<T>, mut more: impl FnMut(&mut Vec<u8>, &T)) {
    put(out, leaders.places().len() as u64);
    for place in leaders.places() {
        put_text(out, &place.name);
        write_cost(out, &place.cost);
        put(out, place.error.micros);
        put(out, place.error.requests);
        more(out, &place.more);
    }
}

fn read_leaders<T: Default>(
    reader: &mut Reader<'_>,
    keys: &Keys,
    name_max: usize,
    mut more: impl FnMut(&mut Reader<'_>) -> Result<T, Broken>,
) -> Result<Leaders<T>, Broken> {
    let count = reader.number()?;
    if count > PLACES_MAX {
        return Err(Broken);
    }
    let mut leaders = Leaders::default();
    for _ in 0..count {
        let name = reader.text_within(name_max)?;
        let cost = read_cost(reader)?;
        let error = CostShare { micros: reader.number()?, requests: reader.number()? };
        let more = more(reader)?;
        leaders.restore(Leader::restored((keys.hash(name), name.into()), cost, error, more));
    }
    Ok(leaders)
}

pub(crate) fn write_sums(out: &mut Vec<u8>, sums: &Sums) {
    for period in [&sums.lately.now, &sums.lately.before] {
        for sum in period.by_result.iter().chain(&period.by_class) {
            put(out, sum.requests);
            put(out, sum.bytes);
            put(out, sum.origin_micros);
        }
        for (hits, fetched, micros) in period.saved {
            [hits, fetched, micros].into_iter().for_each(|value| put(out, value));
        }
        period.others.iter().chain(&period.slowest).for_each(|value| put(out, *value));
    }
    sums.latencies.0.iter().flatten().for_each(|count| put(out, u64::from(*count)));
}

pub(crate) fn read_sums(reader: &mut Reader<'_>) -> Result<Sums, Broken> {
    let mut sums = Sums::default();
    for period in [&mut sums.lately.now, &mut sums.lately.before] {
        *period = read_period(reader)?;
    }
    for count in sums.latencies.0.iter_mut().flatten() {
        *count = reader.number_of()?;
    }
    Ok(sums)
}

fn read_period(reader: &mut Reader<'_>) -> Result<Period, Broken> {
    let mut read_sum = || Ok(Sum { requests: reader.number()?, bytes: reader.number()?, origin_micros: reader.number()? });
    let (mut by_result, mut by_class) = ([Sum::default(); RESULTS.len()], [Sum::default(); CLASSES.len()]);
    for sum in by_result.iter_mut().chain(&mut by_class) {
        *sum = read_sum()?;
    }
    let mut saved = [(0, 0, 0); CLASSES.len()];
    for class in &mut saved {
        *class = (reader.number()?, reader.number()?, reader.number()?);
    }
    let mut others = [0; 5];
    for value in &mut others {
        *value = reader.number()?;
    }
    let mut slowest = [0; RESULTS.len()];
    for value in &mut slowest {
        *value = reader.slowest()?;
    }
    Ok(Period { by_result, by_class, saved, others, slowest })
}

/// Buckets of latencies that are on disk: another number of them is another version of the form.
const _: () = assert!(BUCKETS == 21 && RESULTS.len() == 9 && CLASSES.len() == 8, "another form on disk needs another version");
