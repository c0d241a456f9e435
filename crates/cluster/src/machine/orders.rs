//! This machine's own purges, from the order to the word how far it went.
//!
//! An order waits to be appended, is appended (again and again until a reply comes), and then waits for the machines that were registered in that
//! step: for their confirmation, or for the end of their lease.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use admin_api::Spread;
use policy::purge::{Maker, Order, Sites, What};

use super::{
    Act, PATIENCE, Ticket, Unsent, name_of,
    others::{Other, OtherMachines},
    passed,
};
use crate::{
    link::{Appended, Confirmed},
    stream::{EntryId, EntryMaker, Run},
};

/// The most orders that wait to be appended. More become one purge of everything of the sites concerned.
pub(super) const UNSENT_MAX: usize = 65_536;
/// The most bytes that they have as JSON; likewise.
pub(super) const UNSENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The most orders that are appended in one step.
pub(super) const BATCH_MAX: usize = 128;
/// The most makers that wait to hear how far their purge went. The next ones hear at once that it is not known.
const TICKETS_MAX: usize = 65_536;
/// The most bytes that an order has as JSON. A longer one is split.
const ORDER_BYTES_MAX: usize = 12 * 1024;
/// The most sites that are named when many purges become one for each site. With more it is all sites.
const FOLDED_SITES_MAX: usize = 64;

/// All orders of this machine that are on their way.
#[derive(Debug)]
pub(super) struct Orders {
    session: String,
    lease: Duration,
    hold: Duration,
    unsent: VecDeque<WaitingOrder>,
    unsent_bytes: usize,
    /// The number of the first of them that are on their way to the server.
    in_flight: usize,
    retry_at: Option<Instant>,
    /// The makers who wait for orders that are not appended, by the order's number.
    askers: BTreeMap<u64, Vec<Asker>>,
    batches: VecDeque<Batch>,
    tickets: usize,
    next_number: u64,
    next_ticket: u64,
    is_unreplicated: bool,
    /// The last entry of this machine that was appended; it may not be read yet.
    last: Option<EntryId>,
}

#[derive(Debug)]
struct WaitingOrder {
    number: u64,
    order: Order,
    bytes: usize,
}

/// Somebody who waits to hear how far a purge went.
#[derive(Debug, Clone)]
struct Asker {
    ticket: Ticket,
    ordered: Instant,
    /// Whether it wants to wait until pages that were validated in doubt are old, too.
    is_thorough: bool,
    limit: Instant,
}

/// Orders that were appended in one step.
#[derive(Debug)]
struct Batch {
    orders: usize,
    last: EntryId,
    run: Run,
    born: String,
    /// The time at which no machine has a lease any more that the server may have forgotten.
    complete_at: Instant,
    waits: Vec<Wait>,
    strangers: Vec<String>,
    askers: Vec<Asker>,
}

/// A machine that an appended purge waits for.
#[derive(Debug)]
struct Wait {
    field: String,
    /// The beat of what it had said last when the purge was appended.
    beat: u64,
    /// The time at which it surely has no lease any more from before the purge.
    lease_by: Instant,
    /// The time that it shows in doubt what its origin was asked for.
    hold: Duration,
}

/// Says how a batch is doing.
struct BatchProgress {
    /// The number of machines that may still have a lease, and have not confirmed it.
    waiting: usize,
    expired: usize,
    /// Whether machines that the server may have forgotten have no lease any more.
    is_complete: bool,
    /// The time after an order during which an expired machine may show what it validated before.
    hold: Duration,
}

/// Says how a machine stands to a batch.
enum BatchState {
    Confirmed,
    /// It has no lease any more from before the purge.
    Expired,
    Waiting,
}

impl Orders {
    pub(super) fn new(session: String, lease: Duration, hold: Duration) -> Self {
        Self {
            session,
            lease,
            hold,
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            in_flight: 0,
            retry_at: None,
            askers: BTreeMap::new(),
            batches: VecDeque::new(),
            tickets: 0,
            next_number: 1,
            next_ticket: 1,
            is_unreplicated: false,
            last: None,
        }
    }

    /// Returns whether all orders were appended, and none after this entry.
    pub(super) fn are_read(&self, id: EntryId) -> bool {
        self.unsent.is_empty() && self.last.is_none_or(|last| last <= id)
    }

    /// Takes note that the stream is another one: what was appended is not read any more.
    pub(super) fn forget_what_was_appended(&mut self) {
        self.last = None;
    }

    /// Takes an order.
    pub(super) fn add(&mut self, order: Order, now: Instant) -> (Ticket, Vec<Act>) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let is_thorough = order.by == Maker::Operator;
        for order in split(order) {
            let bytes = bytes_of(&order);
            self.push(order, bytes);
        }
        // The last part is appended after the others, so it speaks for all of them.
        let number = self.next_number - 1;
        let asker = Asker { ticket, ordered: now, is_thorough, limit: now + self.lease + PATIENCE };
        let mut acts = Vec::new();
        if self.tickets >= TICKETS_MAX {
            acts.push(Act::Tell(ticket, unknown(&asker, "too many purges are on their way; it is one of them", now)));
        } else {
            self.tickets += 1;
            self.askers.entry(number).or_default().push(asker);
        }
        if self.unsent.len() > UNSENT_MAX || self.unsent_bytes > UNSENT_BYTES_MAX {
            self.fold();
        }
        (ticket, acts)
    }

    fn push(&mut self, order: Order, bytes: usize) {
        self.unsent.push_back(WaitingOrder { number: self.next_number, order, bytes });
        self.unsent_bytes += bytes;
        self.next_number += 1;
    }

    /// Makes all orders that are not on their way one purge of everything for each site concerned. It is hard if one of them was.
    fn fold(&mut self) {
        let mut sites: BTreeMap<Option<String>, bool> = BTreeMap::new();
        let mut askers = Vec::new();
        for waiting in self.unsent.drain(self.in_flight..) {
            self.unsent_bytes -= waiting.bytes;
            let site = match waiting.order.sites {
                Sites::All => None,
                Sites::Named(name) => Some(name),
            };
            *sites.entry(site).or_default() |= waiting.order.hard;
            askers.extend(self.askers.remove(&waiting.number).into_iter().flatten());
        }
        if sites.len() > FOLDED_SITES_MAX {
            sites = BTreeMap::from([(None, sites.values().any(|hard| *hard))]);
        }
        for (site, hard) in sites {
            let sites = site.map_or(Sites::All, Sites::Named);
            let order = Order { sites, what: vec![What::Everything], hard, by: Maker::Origin };
            let bytes = bytes_of(&order);
            self.push(order, bytes);
        }
        if !askers.is_empty() {
            self.askers.entry(self.next_number - 1).or_default().extend(askers);
        }
    }

    pub(super) fn batch(&mut self, now: Instant) -> Option<Vec<Unsent>> {
        if self.in_flight > 0 || self.unsent.is_empty() || self.retry_at.is_some_and(|at| now < at) {
            return None;
        }
        self.in_flight = self.unsent.len().min(BATCH_MAX);
        let made = |number| EntryMaker { session: self.session.clone(), number };
        let unsent = self.unsent.iter().take(self.in_flight);
        Some(unsent.map(|waiting| Unsent { made: made(waiting.number), order: waiting.order.clone() }).collect())
    }

    pub(super) fn batch_at(&self) -> Option<Instant> {
        if self.in_flight == 0 && !self.unsent.is_empty() { self.retry_at } else { None }
    }

    /// Takes note that the server answers again.
    pub(super) fn reached(&mut self) {
        if !self.is_unreplicated {
            self.retry_at = None;
        }
    }

    /// Takes note that whatever was on its way may have got lost.
    pub(super) fn failed(&mut self, retry_at: Instant) {
        self.in_flight = 0;
        self.retry_at = Some(retry_at);
    }

    /// Takes note that the batch was appended, but that too few replicas have it: it is appended again.
    pub(super) fn unreplicated(&mut self, retry_at: Instant) {
        self.is_unreplicated = true;
        self.failed(retry_at);
    }

    pub(super) fn appended(&mut self, own: &str, appended: &Appended, others: &OtherMachines) {
        self.is_unreplicated = false;
        self.retry_at = None;
        let Some(last) = appended.ids.last().copied() else { return self.in_flight = 0 };
        self.last = Some(last);
        let mut askers = Vec::new();
        for waiting in self.unsent.drain(..self.in_flight) {
            self.unsent_bytes -= waiting.bytes;
            askers.extend(self.askers.remove(&waiting.number).into_iter().flatten());
        }
        let orders = std::mem::take(&mut self.in_flight);
        let wait = |(field, other): (&String, &Other)| Wait {
            field: field.clone(),
            beat: other.member.beat,
            // What it said last was said before this machine saw it, and its lease counts from before that.
            lease_by: appended.replied.min(other.since) + passed(other.lease()),
            hold: other.hold(),
        };
        if askers.is_empty() {
            return;
        }
        let waits: Vec<Wait> = others.iter().filter(|(field, _)| *field != own).map(wait).collect();
        let longest = waits.iter().map(|wait| wait.hold).fold(self.lease.max(self.hold), Duration::max);
        for asker in askers.iter_mut().filter(|asker| asker.is_thorough) {
            asker.limit = asker.ordered + longest + PATIENCE;
        }
        self.batches.push_back(Batch {
            orders,
            last,
            run: appended.run.clone(),
            born: appended.born.clone(),
            complete_at: others.complete_at().unwrap_or_else(|| appended.replied + passed(self.lease)),
            waits,
            strangers: appended.strangers.iter().map(|stranger| name_of(&stranger.name).to_owned()).collect(),
            askers,
        });
    }

    /// Tells those what became of their purge for whom it is known, or who have waited long enough. `lost` is why the server cannot be reached, and
    /// says that this machine has no lease either.
    pub(super) fn tell(&mut self, name: &str, others: &OtherMachines, lost: Option<&str>, now: Instant) -> Vec<Act> {
        let mut acts = Vec::new();
        self.tell_unsent(lost, now, &mut acts);
        for batch in &mut self.batches {
            let judged = batch.judge(others, now);
            let mut askers = std::mem::take(&mut batch.askers);
            askers.retain(|asker| match judged.verdict(batch, asker, now) {
                Some(everywhere) => {
                    acts.push(Act::Tell(asker.ticket, batch.spread(&judged, name, others, asker, everywhere, now)));
                    self.tickets -= 1;
                    false
                }
                None => true,
            });
            batch.askers = askers;
        }
        self.batches.retain(|batch| !batch.askers.is_empty());
        acts
    }

    /// Tells those whose orders are not appended, if they have waited long enough or there is nothing to wait for.
    pub(super) fn tell_unsent(&mut self, lost: Option<&str>, now: Instant, acts: &mut Vec<Act>) {
        let why = match (lost, self.is_unreplicated) {
            (Some(why), _) => format!("the server cannot be reached ({why}); the purge is sent again until it is"),
            (None, true) => "too few replicas of the server have it; it is sent again until they do".to_owned(),
            (None, false) => "the server has not taken it yet; it is sent again until it does".to_owned(),
        };
        // All have the same patience, so the first one's ends first.
        let is_time = self.askers.values().flatten().next().is_some_and(|asker| now >= asker.limit);
        if !is_time && lost.is_none() {
            return;
        }
        let mut told = 0;
        self.askers.retain(|_, askers| {
            askers.retain(|asker| {
                let is_told = now >= asker.limit || lost.is_some() && !asker.is_thorough;
                if is_told {
                    told += 1;
                    acts.push(Act::Tell(asker.ticket, unknown(asker, &why, now)));
                }
                !is_told
            });
            !askers.is_empty()
        });
        self.tickets -= told;
    }

    pub(super) fn time_at(&self, now: Instant) -> Option<Instant> {
        let unsent = self.askers.values().flatten().next().map(|asker| asker.limit);
        let sent = self.batches.iter().flat_map(Batch::times).filter(|at| *at > now);
        sent.chain(unsent).min()
    }

    pub(super) fn pending(&self) -> usize {
        self.unsent.len() + self.batches.iter().map(|batch| batch.orders).sum::<usize>()
    }
}

impl Batch {
    /// Returns how far the batch has been confirmed. It is asked again whenever something happens, so it makes no lists.
    fn judge(&self, others: &OtherMachines, now: Instant) -> BatchProgress {
        let mut judged = BatchProgress { waiting: 0, expired: 0, is_complete: now >= self.complete_at, hold: Duration::ZERO };
        for wait in &self.waits {
            match self.standing(wait, others, now) {
                BatchState::Confirmed => {}
                BatchState::Expired => {
                    judged.expired += 1;
                    judged.hold = judged.hold.max(wait.hold);
                }
                BatchState::Waiting => judged.waiting += 1,
            }
        }
        judged
    }

    fn standing(&self, wait: &Wait, others: &OtherMachines, now: Instant) -> BatchState {
        let other = others.get(&wait.field);
        let is_far_enough = |confirmed: &Confirmed| confirmed.run == self.run && confirmed.born == self.born && confirmed.id >= self.last;
        // It has made a whole round since, which showed it the entry if that was still there, and it says that it has a lease. So somebody may have removed
        // the entry before it came. Once it says no more, its lease ends like any other.
        let goes_on = |other: &Other| other.member.leased && other.member.beat > wait.beat + 1 && now < other.since + passed(other.lease());
        match other {
            Some(other) if other.confirmed().is_some_and(is_far_enough) => BatchState::Confirmed,
            Some(other) if goes_on(other) => BatchState::Waiting,
            // Also of one that is not known any more: it may have been forgotten, and still have its lease.
            _ if now >= wait.lease_by => BatchState::Expired,
            _ => BatchState::Waiting,
        }
    }

    fn spread(&self, judged: &BatchProgress, own: &str, others: &OtherMachines, asker: &Asker, everywhere: bool, now: Instant) -> Spread {
        let mut missing: BTreeSet<&str> = self.strangers.iter().map(String::as_str).collect();
        let (mut expired, mut confirmed) = (BTreeSet::new(), BTreeSet::new());
        for wait in &self.waits {
            let list = match self.standing(wait, others, now) {
                BatchState::Confirmed => &mut confirmed,
                BatchState::Expired => &mut expired,
                BatchState::Waiting => &mut missing,
            };
            list.insert(name_of(&wait.field));
        }
        // Two processes of one name may be in two lists: the worst one counts.
        expired.retain(|name| !missing.contains(name));
        confirmed.retain(|name| *name != own && !missing.contains(name) && !expired.contains(name));
        let list = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
        let why = if everywhere {
            None
        } else if !self.strangers.is_empty() {
            Some(format!("{} has another secret, or none, and cannot be told", self.strangers.join(", ")))
        } else if !missing.is_empty() {
            Some(format!("{} has not confirmed it, and may still have a lease; it is told as soon as it is reached", list(&missing)))
        } else if !judged.is_complete {
            Some("the server has lost its list of machines, and one of them may not have heard of it yet".to_owned())
        } else {
            let seconds = judged.hold.as_secs_f64();
            let names = list(&expired);
            Some(format!("{names} is cut off or gone; it validates what it has stored, but shows for {seconds} s what it validated before"))
        };
        let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        Spread {
            everywhere,
            confirmed: [own.to_owned()].into_iter().chain(owned(confirmed)).collect(),
            expired: owned(expired),
            missing: owned(missing),
            why,
            took_ms: super::millis(now.saturating_duration_since(asker.ordered)),
        }
    }

    /// Returns when something may be known that is not known now.
    fn times(&self) -> impl Iterator<Item = Instant> {
        let hold = self.waits.iter().map(|wait| wait.hold).max().unwrap_or_default();
        // They ordered one after another, and those of a kind have the same patience, so the first one's time comes first.
        let first = move |is_thorough| self.askers.iter().find(|asker| asker.is_thorough == is_thorough);
        let askers = [first(false), first(true)].into_iter().flatten();
        let askers = askers.flat_map(move |asker| [asker.limit, asker.ordered + passed(hold)]);
        self.waits.iter().map(|wait| wait.lease_by).chain([self.complete_at]).chain(askers)
    }
}

impl BatchProgress {
    /// Returns whether it holds everywhere, if that is to be told now.
    fn verdict(&self, batch: &Batch, asker: &Asker, now: Instant) -> Option<bool> {
        let is_settled = self.is_complete && self.waiting == 0;
        let everywhere = is_settled && batch.strangers.is_empty() && (self.expired == 0 || now >= asker.ordered + passed(self.hold));
        (everywhere || now >= asker.limit || is_settled && !asker.is_thorough).then_some(everywhere)
    }
}

/// Says that it is not known how far a purge went.
fn unknown(asker: &Asker, why: &str, now: Instant) -> Spread {
    let took_ms = super::millis(now.saturating_duration_since(asker.ordered));
    Spread { everywhere: false, why: Some(why.to_owned()), took_ms, ..Spread::default() }
}

fn bytes_of(order: &Order) -> usize {
    serde_json::to_vec(order).map_or(0, |json| json.len())
}

/// Splits an order by what it covers, so that each part fits into an entry. One thing alone that does not fit becomes everything.
fn split(order: Order) -> Vec<Order> {
    let mut parts = Vec::new();
    let mut rest = vec![order];
    while let Some(mut order) = rest.pop() {
        if bytes_of(&order) <= ORDER_BYTES_MAX {
            parts.push(order);
        } else if order.what.len() > 1 {
            let what = order.what.split_off(order.what.len() / 2);
            rest.push(Order { what, ..order.clone() });
            rest.push(order);
        } else {
            order.what = vec![What::Everything];
            parts.push(order);
        }
    }
    parts
}
