//! The world of the model: machines, servers, an origin and the network between them, in simulated time, by a random schedule.
//!
//! What is judged, whenever anything has happened: a page that a machine would show as fresh right now must not be older than a purge that was
//! said to hold everywhere; and not older than a purge whose entry the server took a lease and a `doubt_hold` ago.

mod faults;
mod judge;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::{Duration, Instant},
};

use admin_api::Spread;
use cluster::{
    link::{Appended, Confirmation, Confirmed, Member, Round, Woken},
    machine::{Act, Machine, Settings},
};
use fastrand::Rng;
use policy::purge::{Order, What};

use crate::{
    server::{Plain, RoundQuestion, Server, ServerDump},
    site::{Extra, Link, Page, Site},
};

/// A safeguard that is taken out of the machines, to see that the model notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Nothing is.
    Nothing,
    /// Some machines are given shorter leases than others, against what the manual asks for.
    SameLease,
    /// Machines show what they have without a lease.
    Leases,
    /// Entries reach who is there, as pub/sub does: some get lost, and nobody looks whether any are missing.
    Stream,
    /// A machine that cannot go on from where it was goes on from the end as if nothing had happened.
    Doubts,
    /// Fields are those of names, so that the list of machines is lost with each flush without anybody noticing.
    Lists,
}

const MS: u64 = 1000;
const DEADLINE: u64 = 1000 * MS;
const DISPATCH_MAX: usize = 400_000;

/// Says what came of a schedule.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    pub(crate) purges: u64,
    pub(crate) everywhere: u64,
    pub(crate) not_everywhere: u64,
    pub(crate) shown: u64,
    pub(crate) leased: u64,
    pub(crate) in_doubt: u64,
    pub(crate) faults: u64,
    /// Pages that were left out of the judgement: shown in doubt by a machine of which the server has lost every trace.
    pub(crate) unknown: u64,
    pub(crate) violation: Option<String>,
}

#[derive(Debug, Clone)]
enum Op {
    Round(RoundQuestion),
    Append(Vec<Plain>),
    Confirm(String, Confirmed),
    Remove(String, Option<Member>),
}

#[derive(Debug)]
enum Reply {
    Round(Box<Round>),
    Appended(Appended),
    Done,
    Refused,
}

#[derive(Debug)]
enum Event {
    /// The machine's turn.
    Turn {
        site: usize,
        process: u32,
    },
    Connected {
        site: usize,
        connection: u64,
    },
    Arrives {
        site: usize,
        server: usize,
        connection: u64,
        number: u64,
        op: Op,
    },
    Replies {
        site: usize,
        connection: u64,
        number: u64,
        reply: Reply,
    },
    TooLate {
        site: usize,
        connection: u64,
        number: u64,
    },
    Wakes {
        site: usize,
        process: u32,
        woken: Woken,
    },
    Fetched {
        site: usize,
        process: u32,
        page: Page,
        version: u64,
        begun: u64,
        asked: Instant,
    },
    Visit,
    Fault,
}

struct Due {
    at: u64,
    sequence: u64,
    event: Event,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// A purge whose entry was taken by the server.
struct Taken {
    version: u64,
    at: u64,
}

pub(crate) struct World {
    rng: Rng,
    base: Instant,
    now: u64,
    sequence: u64,
    queue: BinaryHeap<Reverse<Due>>,
    sites: Vec<Site>,
    servers: Vec<Server>,
    dumps: Vec<ServerDump>,
    /// The version of each page at the origin.
    origin: Vec<u64>,
    /// The versions that must at least be shown by whoever has a lease, as it was said to hold everywhere.
    everywhere: Vec<u64>,
    /// The versions that must at least be shown in doubt, by machine: of one that the server has never heard of, or of which it has lost
    /// every trace, nobody can know whether it has fetched something just before.
    everywhere_known: Vec<Vec<u64>>,
    taken: Vec<Vec<Taken>>,
    /// The machines that the server knew of when it took a purge, by the purger, its process, and the number of the purge.
    known: BTreeMap<(usize, u32, u64), Vec<bool>>,
    replicas: u32,
    keep: usize,
    entries_max: usize,
    broken: Broken,
    faults_end: u64,
    end: u64,
    number: u64,
    outcome: Outcome,
    trace: Option<Vec<String>>,
}

/// Runs one schedule.
pub(crate) fn run(seed: u64, broken: Broken, is_traced: bool) -> (Outcome, Vec<String>) {
    let mut world = World::new(seed, broken, is_traced);
    world.go();
    (world.outcome, world.trace.unwrap_or_default())
}

impl World {
    fn new(seed: u64, broken: Broken, is_traced: bool) -> Self {
        let mut rng = Rng::with_seed(seed);
        let lease = Duration::from_millis([500, 2000, 2000, 5000][rng.usize(..4)]);
        let hold = Duration::from_millis([0, 500, 5000, 5000][rng.usize(..4)]);
        let count = 2 + rng.usize(..2);
        let mut sites: Vec<Site> = (0..count)
            .map(|number| {
                // Clocks differ by one per cent at most, and begin anywhere.
                let (rate, ahead) = (rng.i64(-4900..4900), Duration::from_millis(rng.u64(..10_000_000)));
                let is_shorter = rng.u8(..8) == 0 && broken == Broken::SameLease;
                let lease = if is_shorter { lease / 2 } else { lease };
                Site::new(format!("web{number}"), lease, hold, rate, ahead)
            })
            .collect();
        if rng.u8(..8) == 0 {
            let twin = Site::new("web0".to_owned(), lease, hold, rng.i64(-4900..4900), Duration::ZERO);
            sites.push(twin);
        }
        let pages = 3;
        let server = Server::new(&mut rng);
        let faults_end = (10 + rng.u64(..40)) * 1000 * MS;
        Self {
            // Early enough that a clock may run behind.
            base: Instant::now() + Duration::from_secs(1000),
            now: 0,
            sequence: 0,
            queue: BinaryHeap::new(),
            servers: vec![server],
            dumps: vec![ServerDump::default()],
            origin: vec![1; pages],
            everywhere: vec![0; pages],
            everywhere_known: vec![vec![0; pages]; sites.len()],
            sites,
            taken: (0..pages).map(|_| Vec::new()).collect(),
            known: BTreeMap::new(),
            replicas: u32::from(rng.u8(..3) == 0),
            keep: [4, 16, 1000][rng.usize(..3)],
            entries_max: [1, 3, 128][rng.usize(..3)],
            broken,
            faults_end,
            end: faults_end + 25_000 * MS,
            number: 0,
            outcome: Outcome::default(),
            trace: is_traced.then(Vec::new),
            rng,
        }
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>10.3} ms  {}", self.now as f64 / 1000.0, what()));
        }
    }

    /// Returns a machine's own time.
    fn local(&self, site: usize) -> Instant {
        let site = &self.sites[site];
        let drifted =
            self.now.saturating_add_signed(self.now as i64 / 1_000_000 * site.rate + self.now as i64 % 1_000_000 * site.rate / 1_000_000);
        self.base + site.ahead + Duration::from_micros(drifted)
    }

    /// Returns when it is that time on a machine's clock, or a little later.
    fn real(&self, site: usize, at: Instant) -> u64 {
        let now = self.local(site);
        let left = micros(at.saturating_duration_since(now));
        self.now + left + left / 100 + 1
    }

    fn at(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.queue.push(Reverse(Due { at, sequence: self.sequence, event }));
    }

    fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    fn go(&mut self) {
        for site in 0..self.sites.len() {
            self.start(site);
        }
        self.after(0, Event::Visit);
        self.after(2000 * MS, Event::Fault);
        let mut dispatched = 0;
        while let Some(Reverse(due)) = self.queue.pop() {
            if due.at > self.end || self.outcome.violation.is_some() {
                break;
            }
            dispatched += 1;
            assert!(dispatched < DISPATCH_MAX, "the world turns without end");
            self.now = due.at;
            self.dispatch(due.event);
            self.judge();
        }
        if self.outcome.violation.is_none() {
            self.judge_the_end();
        }
    }

    fn start(&mut self, site: usize) {
        let now = self.local(site);
        let session = format!("{:016x}", self.rng.u64(..));
        let position = self.sites[site].disk();
        self.note(|| format!("web {site} starts as {session} from {position:?}"));
        let it = &mut self.sites[site];
        it.process += 1;
        let settings = Settings { name: it.name.clone(), session, version: "1".to_owned(), lease: it.lease, doubt_hold: it.hold, position };
        it.machine = Some(Machine::new(settings, now));
        self.turn_at(site, self.now);
    }

    fn turn_at(&mut self, site: usize, at: u64) {
        if at < self.sites[site].timer {
            self.sites[site].timer = at;
            let process = self.sites[site].process;
            self.at(at, Event::Turn { site, process });
        }
    }

    fn dispatch(&mut self, event: Event) {
        let frozen = |site: usize| self.sites[site].frozen_until;
        let until = match &event {
            Event::Turn { site, .. }
            | Event::Connected { site, .. }
            | Event::Replies { site, .. }
            | Event::TooLate { site, .. }
            | Event::Wakes { site, .. }
            | Event::Fetched { site, .. } => frozen(*site),
            Event::Arrives { .. } | Event::Visit | Event::Fault => 0,
        };
        if until > self.now {
            return self.at(until, event);
        }
        match event {
            Event::Turn { site, process } => {
                if self.sites[site].process == process {
                    self.sites[site].timer = u64::MAX;
                    self.turn(site);
                }
            }
            Event::Connected { site, connection } => self.connected(site, connection),
            Event::Arrives { site, server, connection, number, op } => self.arrives(site, server, connection, number, op),
            Event::Replies { site, connection, number, reply } => self.replies(site, connection, number, reply),
            Event::TooLate { site, connection, number } => {
                let it = &self.sites[site];
                if it.connection == connection && matches!(it.link, Link::Up { in_flight: Some(on_its_way) } if on_its_way == number) {
                    self.lose(site, "the server did not answer");
                }
            }
            Event::Wakes { site, process, woken } => {
                let now = self.local(site);
                if self.sites[site].process == process
                    && let Some(machine) = &mut self.sites[site].machine
                {
                    let acts = machine.woken(&woken, now);
                    self.perform(site, acts);
                    self.turn(site);
                }
            }
            Event::Fetched { site, process, page, version, begun, asked } => {
                let it = &mut self.sites[site];
                if it.process == process && it.machine.is_some() {
                    it.store(page, version, begun, asked);
                }
            }
            Event::Visit => self.visit(),
            Event::Fault => self.fault(),
        }
    }

    /// Has a visitor ask a machine for a page: what is not fresh is asked of the origin, if that can be reached.
    fn visit(&mut self) {
        let next = self.rng.u64(1..60) * MS;
        self.after(next, Event::Visit);
        let (site, page) = (self.rng.usize(..self.sites.len()), self.rng.usize(..self.origin.len()));
        let now = self.local(site);
        let it = &self.sites[site];
        if it.machine.is_none() || it.frozen_until > self.now || it.origin_cut {
            return;
        }
        let is_leased = it.is_leased(now) || self.broken == Broken::Leases;
        if it.shows(page, is_leased, now).is_some() {
            self.outcome.shown += 1;
            if is_leased {
                self.outcome.leased += 1;
            } else {
                self.outcome.in_doubt += 1;
            }
            return;
        }
        // The origin reads what it answers at once; the answer takes its time.
        let (begun, version, process) = (it.generation(), self.origin[page], it.process);
        let delay = if self.rng.u8(..10) == 0 { self.rng.u64(..1500) } else { self.rng.u64(..30) } * MS;
        self.after(delay, Event::Fetched { site, process, page, version, begun, asked: now });
    }

    fn turn(&mut self, site: usize) {
        let now = self.local(site);
        let Some(machine) = &mut self.sites[site].machine else { return };
        let acts = machine.time(now);
        self.perform(site, acts);
        match self.sites[site].link {
            Link::Down => {
                self.sites[site].link = Link::Connecting;
                self.sites[site].connection += 1;
                let connection = self.sites[site].connection;
                let delay = self.rng.u64(20..500) * MS;
                self.after(delay, Event::Connected { site, connection });
            }
            Link::Connecting | Link::Up { in_flight: Some(_) } => {}
            Link::Up { in_flight: None } => self.send_next(site),
        }
        let it = &self.sites[site];
        let Some(machine) = &it.machine else { return };
        let is_idle = matches!(it.link, Link::Up { in_flight: None });
        let work = is_idle.then(|| machine.batch_at().into_iter().chain([machine.round_at()]).min());
        if let Some(at) = [work.flatten(), machine.time_at(now)].into_iter().flatten().min() {
            let at = self.real(site, at);
            self.turn_at(site, at);
        }
    }

    fn send_next(&mut self, site: usize) {
        let now = self.local(site);
        let entries_max = self.entries_max;
        let it = &mut self.sites[site];
        let Some(machine) = &mut it.machine else { return };
        let field = machine.field().to_owned();
        let op = if let Some(extra) = it.extras.pop_front() {
            Some(match extra {
                Extra::Confirm(confirmed) => Op::Confirm(field, confirmed),
                Extra::Remove(field, member) => Op::Remove(field, Some(member)),
            })
        } else if machine.round_at() <= now {
            let member = machine.ask(now);
            let position = machine.position().cloned();
            Some(Op::Round(RoundQuestion { field, member, position, entries_max, sent: now }))
        } else {
            machine.batch(now).map(|batch| Op::Append(batch.into_iter().map(|unsent| (unsent.made, unsent.order)).collect()))
        };
        let Some(op) = op else { return };
        self.number += 1;
        let number = self.number;
        it.link = Link::Up { in_flight: Some(number) };
        let (connection, server) = (it.connection, it.server);
        let deadline = self.real(site, now + Duration::from_micros(DEADLINE));
        self.at(deadline, Event::TooLate { site, connection, number });
        if self.sites[site].requests_cut {
            // It may come through later: what was written is sent again until the system gives up.
            if self.rng.u8(..3) > 0 {
                return;
            }
            let delay = self.rng.u64(500..6000) * MS;
            return self.after(delay, Event::Arrives { site, server, connection, number, op });
        }
        let delay = self.delay();
        self.after(delay, Event::Arrives { site, server, connection, number, op });
    }

    /// Returns how long something travels: mostly shortly, and always so once nothing is broken any more.
    fn delay(&mut self) -> u64 {
        match self.rng.u8(..30) {
            _ if self.now > self.faults_end => self.rng.u64(100..1000),
            0 => self.rng.u64(100..2500) * MS,
            1..4 => self.rng.u64(1..100) * MS,
            _ => self.rng.u64(100..1000),
        }
    }

    fn connected(&mut self, site: usize, connection: u64) {
        let now = self.local(site);
        let it = &self.sites[site];
        if it.connection != connection || it.machine.is_none() {
            return;
        }
        // It asks where the primary is. Some hear of a new one late.
        let newest = self.servers.len() - 1;
        let server = if it.server == newest || self.rng.u8(..3) > 0 { newest } else { it.server };
        let it = &mut self.sites[site];
        it.server = server;
        if it.requests_cut || it.replies_cut || !self.servers[server].is_up {
            it.link = Link::Down;
            let acts = it.machine.as_mut().map(|machine| machine.failed("the server cannot be reached", now)).unwrap_or_default();
            self.perform(site, acts);
            let retry = self.now + 100 * MS;
            return self.turn_at(site, retry);
        }
        it.link = Link::Up { in_flight: None };
        if let Some(machine) = &mut it.machine {
            machine.connected(now);
        }
        self.turn(site);
    }

    /// Gives up the connection.
    fn lose(&mut self, site: usize, why: &str) {
        let now = self.local(site);
        let it = &mut self.sites[site];
        it.link = Link::Down;
        it.connection += 1;
        it.extras.clear();
        if let Some(machine) = &mut it.machine {
            let acts = machine.failed(why, now);
            self.perform(site, acts);
            self.turn(site);
        }
    }

    /// Has the server execute something, although its connection may be gone on the other side.
    fn arrives(&mut self, site: usize, at: usize, connection: u64, number: u64, op: Op) {
        let now_ms = self.now / MS;
        let (replicas, keep) = (self.replicas, self.keep);
        let server = &mut self.servers[at];
        if !server.is_up {
            return;
        }
        let is_full = self.now <= self.faults_end && self.rng.u8(..200) == 0;
        let reply = match op {
            _ if is_full => Reply::Refused,
            Op::Round(ask) => {
                let begins = server.kept.born.is_none();
                let mut round = server.round(&ask, now_ms, replicas, &mut self.rng);
                if self.broken == Broken::Stream {
                    self.lossy(&ask, &mut round);
                } else if self.broken == Broken::Lists {
                    round.born.clear();
                }
                let current = at == self.servers.len() - 1;
                if begins && current {
                    self.sites.iter_mut().for_each(|site| site.is_known = false);
                }
                let field = self.sites[site].machine.as_ref().map(Machine::field);
                if current && field == Some(ask.field.as_str()) {
                    self.sites[site].is_known = true;
                }
                self.note(|| {
                    format!(
                        "server {at}: round of {} from {:?}: continuous {}, {} entries, end {}, replicated {}",
                        ask.field,
                        ask.position.map(|p| p.id.to_string()),
                        round.continuous,
                        round.entries.len(),
                        round.end.id,
                        round.replicated
                    )
                });
                Reply::Round(Box::new(round))
            }
            Op::Append(orders) => match server.append(&orders, keep, now_ms, replicas, &mut self.rng) {
                Some(mut appended) => {
                    if self.broken == Broken::Lists {
                        appended.born.clear();
                    }
                    let known: Vec<bool> = self.sites.iter().map(|site| site.is_known).collect();
                    let process = self.sites[site].process;
                    for (made, _) in &orders {
                        let before = self.known.entry((site, process, made.number)).or_insert_with(|| known.clone());
                        before.iter_mut().zip(&known).for_each(|(before, known)| *before &= known);
                    }
                    if appended.replicated && at == self.servers.len() - 1 {
                        for (made, order) in &orders {
                            self.taken(&made.session, made.number, order);
                        }
                    }
                    self.note(|| {
                        format!(
                            "server {at}: {} appends {:?}: ids {:?}, members {:?}, replicated {}",
                            site,
                            orders.iter().map(|(made, _)| made.number).collect::<Vec<_>>(),
                            appended.ids.iter().map(ToString::to_string).collect::<Vec<_>>(),
                            appended.members.keys().collect::<Vec<_>>(),
                            appended.replicated
                        )
                    });
                    self.wake_all(at, &Woken { entries: true, confirmations: Vec::new() });
                    Reply::Appended(appended)
                }
                None => Reply::Refused,
            },
            Op::Confirm(field, confirmed) => {
                self.wake_all(at, &Woken { entries: false, confirmations: vec![Confirmation { field, confirmed }] });
                Reply::Done
            }
            Op::Remove(field, member) => {
                let members = &mut server.kept.members;
                if member.as_ref().is_none_or(|member| members.get(&field) == Some(member)) && members.remove(&field).is_some() {
                    self.note(|| format!("server {at}: removed {field}"));
                    for it in &mut self.sites {
                        if it.machine.as_ref().is_some_and(|machine| machine.field() == field) {
                            it.is_known = false;
                        }
                    }
                }
                Reply::Done
            }
        };
        if self.sites[site].replies_cut {
            return;
        }
        let delay = self.delay();
        self.after(delay, Event::Replies { site, connection, number, reply });
    }

    /// Reduces a round to what pub/sub would bring: only what came while one was listening, and nobody notices what is missing.
    fn lossy(&mut self, ask: &RoundQuestion, round: &mut Round) {
        if !round.continuous && ask.position.is_some() {
            round.continuous = true;
            round.entries.clear();
        }
        let mut kept = Vec::new();
        for entry in round.entries.drain(..) {
            if self.rng.u8(..4) > 0 {
                kept.push(entry);
            }
        }
        // Whoever misses something is at the end all the same.
        if kept.last().is_none_or(|last| last.id != round.end.id) {
            kept.push(cluster::stream::Entry { said: cluster::stream::EntryContent::Begun, ..round.end.clone() });
        }
        round.entries = kept;
    }

    /// Notes the purges of this process whose entry is in the stream: from here on, others must hear of them in time.
    fn taken(&mut self, session: &str, number: u64, order: &Order) {
        let _ = (session, number);
        let pages = crate::site::covered(order, self.origin.len());
        // The text of the order has the version that the origin had then.
        let version = |page: Page| {
            order.what.iter().find_map(|what| match what {
                What::Tag(tag) => tag.strip_prefix(&format!("version-{page}-")).and_then(|version| version.parse().ok()),
                _ => None,
            })
        };
        for page in pages {
            if let Some(version) = version(page) {
                self.taken[page].push(Taken { version, at: self.now });
            }
        }
    }

    fn wake_all(&mut self, at: usize, woken: &Woken) {
        for site in 0..self.sites.len() {
            let it = &self.sites[site];
            let (process, is_here) = (it.process, it.server == at && it.machine.is_some() && !it.replies_cut);
            // It only makes things quicker, so it may get lost.
            if is_here && self.rng.u8(..8) > 0 {
                let delay = self.delay();
                self.after(delay, Event::Wakes { site, process, woken: woken.clone() });
            }
        }
    }

    fn replies(&mut self, site: usize, connection: u64, number: u64, reply: Reply) {
        let now = self.local(site);
        let it = &mut self.sites[site];
        if it.connection != connection || !matches!(it.link, Link::Up { in_flight: Some(on_its_way) } if on_its_way == number) {
            return;
        }
        it.link = Link::Up { in_flight: None };
        let Some(machine) = &mut it.machine else { return };
        let acts = match reply {
            Reply::Round(round) => machine.round(*round, now),
            Reply::Appended(appended) => machine.appended(&Appended { replied: now, ..appended }, now),
            Reply::Done => Vec::new(),
            Reply::Refused => machine.failed("the server is full", now),
        };
        self.perform(site, acts);
        self.turn(site);
    }

    fn perform(&mut self, site: usize, acts: Vec<Act>) {
        let pages = self.origin.len();
        for act in acts {
            self.note(|| format!("web {site}: {act:?}"));
            let it = &mut self.sites[site];
            match act {
                Act::Apply(order) => it.apply(&order, pages),
                Act::Doubt(_) => {
                    if self.broken != Broken::Doubts {
                        it.doubt();
                    }
                }
                Act::Lease(until) => it.fence = it.fence.max(Some(until)),
                Act::GiveUp => it.fence = None,
                Act::Keep(position) => {
                    // It is written now and then.
                    if self.rng.u8(..3) == 0 {
                        it.keep(&position);
                    }
                }
                Act::Confirm(confirmed) => it.extras.push_back(Extra::Confirm(confirmed)),
                Act::Remove { field, member } => it.extras.push_back(Extra::Remove(field, member)),
                Act::Tell(ticket, spread) => {
                    // Each purge is one order here, so both have the same number.
                    let (wanted, number) = (it.tickets.remove(&ticket), (site, it.process, ticket.0));
                    self.told(wanted, number, &spread);
                }
                // There are no strangers in these worlds.
                Act::RemoveStranger(_) | Act::Reached(_) | Act::Warn(_) => {}
            }
        }
    }

    fn told(&mut self, wanted: Option<BTreeMap<Page, u64>>, number: (usize, u32, u64), spread: &Spread) {
        let Some(wanted) = wanted else { return };
        let known = self.known.get(&number).map_or(&[][..], Vec::as_slice);
        if spread.everywhere {
            self.outcome.everywhere += 1;
            for (page, version) in wanted {
                self.everywhere[page] = self.everywhere[page].max(version);
                let known = self.everywhere_known.iter_mut().zip(known).filter(|(_, is_known)| **is_known);
                for (known, _) in known {
                    known[page] = known[page].max(version);
                }
            }
        } else {
            assert!(spread.why.is_some(), "whoever is not told that it holds everywhere is told why");
            self.outcome.not_everywhere += 1;
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
