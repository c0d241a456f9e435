//! The machine: what one machine of a cluster believes of the others, as a value without sockets, threads and a clock.
//!
//! Whoever drives it ([`run`](crate::run)) asks what is to be sent ([`ask`](Machine::ask), [`batch`](Machine::batch)), hands it what came back, and has
//! this machine do what it says ([`Act`]). Time is an argument, and only one clock is ever read: this machine's monotonic one.
//!
//! Why a lease is safe: the server executes a round after it was sent. An entry that the round did not show was appended after that. So whoever
//! appended it got the reply later than this machine sent its round, and a lease after the reply, this machine's lease has ended. "A lease after"
//! has one per cent and 20 ms to spare ([`passed`]), as two clocks may run differently.

#[cfg(test)]
mod following;
mod orders;
mod others;
mod seen;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use admin_api::{ClusterState, MachineState, Spread};
use policy::purge::Order;

use self::{
    orders::Orders,
    others::{GONE_AFTER, OtherMachines},
    seen::SeenNumbers,
};
use crate::{
    link::{Appended, Confirmed, Member, Round, Stranger, Woken},
    stream::{Entry, EntryContent, EntryId, EntryMaker, Position},
};

/// The time that a purge is waited for beyond the lease: a slow round trip, and the end of a deadline.
pub const PATIENCE: Duration = Duration::from_millis(1500);
/// The interval at which the log says that entries are refused.
const REFUSALS_EVERY: Duration = Duration::from_secs(60);
/// The shortest time that a machine counts among those that share limits, after it was heard of.
const HEARD: Duration = Duration::from_secs(2);
/// The number of the latest entries that are remembered by their ids, to say how far behind another machine is.
const RECENT_MAX: usize = 1024;

/// Returns after how long on this machine's clock a time of another machine's clock has surely passed: one per cent for clocks that run
/// differently, and 20 ms for how finely they are read.
#[must_use]
pub fn passed(duration: Duration) -> Duration {
    duration + duration / 100 + Duration::from_millis(20)
}

/// Holds what a machine is told at its start.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of this machine.
    pub name: String,
    /// The session of its process: random.
    pub session: String,
    /// The version of Seawall.
    pub version: String,
    /// The lease of the machine.
    pub lease: Duration,
    /// The time for which a page is fresh in doubt, from when its origin was asked.
    pub doubt_hold: Duration,
    /// Up to where the stream was applied to what is stored.
    pub position: Option<Position>,
}

impl Settings {
    /// Returns the field of this machine in the hash of machines.
    #[must_use]
    pub fn field(&self) -> String {
        format!("{}/{}", self.name, self.session)
    }
}

/// Returns the name of a machine by its field in the hash of machines.
#[must_use]
pub fn name_of(field: &str) -> &str {
    field.rsplit_once('/').map_or(field, |(name, _)| name)
}

/// The number of a purge whose maker waits to hear how far it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A thing to do. Things are done in the order in which they are listed, each before the next one.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Carry out the order of another machine. If that fails, doubt everything.
    Apply(Order),
    /// Doubt everything that is stored.
    Doubt(String),
    /// Give a lease until then.
    Lease(Instant),
    /// Take the lease away.
    GiveUp,
    /// Take note that everything up to an entry was carried out: for machines that [follow](Machine::following) the stream's past.
    Reached(Position),
    /// Keep the position with what is stored.
    Keep(Position),
    /// Tell the others up to where this machine has come.
    Confirm(Confirmed),
    /// Remove the field of a machine that is gone, if it is still this.
    Remove {
        /// The field in the hash of machines.
        field: String,
        /// The member as it was seen.
        member: Member,
    },
    /// Remove a field that does not bear the cluster's seal, if it is still the same.
    RemoveStranger(Stranger),
    /// Tell the maker of a purge how far it went.
    Tell(Ticket, Spread),
    /// Say something of weight in the log.
    Warn(String),
}

/// A purge that is to be appended.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsent {
    /// The machine that made it, and its number.
    pub made: EntryMaker,
    /// The purge.
    pub order: Order,
}

/// One machine of a cluster.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    field: String,
    beat: u64,
    position: Option<Position>,
    confirmed: Option<Confirmed>,
    lease_until: Option<Instant>,
    in_doubt_since: Instant,
    is_stopping: bool,
    name_is_taken: bool,
    why: String,
    round_at: Instant,
    is_reached: bool,
    others: OtherMachines,
    orders: Orders,
    seen: SeenNumbers,
    recent: VecDeque<EntryId>,
    counts: Counts,
    refusal_told: Option<Instant>,
    follows: bool,
    /// Whether everything was doubted already since the continuity broke.
    has_doubted: bool,
    /// Up to where the past is carried out once more, also what was made here: pages that others fetched between two entries are judged by it.
    past: Option<EntryId>,
}

#[derive(Debug, Default)]
struct Counts {
    doubts: u64,
    breaks: u64,
    applied: u64,
    refused: u64,
}

impl Machine {
    /// Makes a machine that has no lease and has heard of nobody.
    #[must_use]
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self {
            field: settings.field(),
            beat: 0,
            position: settings.position.clone(),
            confirmed: None,
            lease_until: None,
            in_doubt_since: now,
            is_stopping: false,
            name_is_taken: false,
            why: "the server has not answered yet".to_owned(),
            round_at: now,
            is_reached: false,
            others: OtherMachines::new(settings.lease),
            orders: Orders::new(settings.session.clone(), settings.lease, settings.doubt_hold),
            seen: SeenNumbers::default(),
            recent: VecDeque::new(),
            counts: Counts::default(),
            refusal_told: None,
            follows: false,
            has_doubted: false,
            past: None,
            settings,
        }
    }

    /// Makes the machine one that begins with the oldest entry of the stream where it cannot go on, instead of its end, and says of each entry when
    /// it was [reached](Act::Reached): so it can judge what other machines have fetched before.
    #[must_use]
    pub fn following(self) -> Self {
        Self { follows: true, ..self }
    }

    /// Returns whether all purges that were made here have come back by the stream, up to this entry.
    #[must_use]
    pub fn has_read_its_own(&self, id: EntryId) -> bool {
        self.orders.are_read(id)
    }

    /// Returns the field of this machine in the hash of machines.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the session of this machine's process.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.settings.session
    }

    /// Returns when the next round is due.
    #[must_use]
    pub fn round_at(&self) -> Instant {
        self.round_at
    }

    /// Returns whether this machine has a lease.
    #[must_use]
    pub fn is_leased(&self, now: Instant) -> bool {
        self.lease_until.is_some_and(|until| now < until)
    }

    /// Returns up to where this machine has applied the stream.
    #[must_use]
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// Begins a round: returns what this machine says of itself. Ask with [`position`](Self::position), and note the time before.
    pub fn ask(&mut self, now: Instant) -> Member {
        self.beat += 1;
        self.round_at = now + self.lease() / 4;
        Member {
            session: self.settings.session.clone(),
            beat: self.beat,
            confirmed: self.confirmed.clone(),
            lease_ms: millis(self.settings.lease),
            hold_ms: millis(self.settings.doubt_hold),
            version: self.settings.version.clone(),
            leased: self.is_leased(now),
        }
    }

    /// Takes what a round found.
    pub fn round(&mut self, round: Round, now: Instant) -> Vec<Act> {
        let mut acts = Vec::new();
        self.is_reached = true;
        self.others.learn(&self.field, round.run.clone(), &round.born, &round.members, &round.strangers, now);
        for (field, other) in self.others.gone(now).filter(|(field, _)| **field != self.field) {
            acts.push(Act::Warn(format!(
                "machine {} has not been heard of for {} s: it counts no more",
                name_of(field),
                GONE_AFTER.as_secs()
            )));
            acts.push(Act::Remove { field: field.clone(), member: other.member.clone() });
        }
        acts.extend(self.others.gone_strangers(now).cloned().map(Act::RemoveStranger));
        let before = self.position.clone();
        let is_at_end = if round.continuous { self.go_on(&round, now, &mut acts) } else { self.begin_anew(&round, now, &mut acts) };
        self.confirmed =
            self.position.as_ref().map(|position| Confirmed { run: round.run.clone(), born: round.born.clone(), id: position.id });
        if self.position != before {
            acts.extend(self.position.clone().map(Act::Keep));
            let is_news = !round.continuous || round.entries.iter().any(|entry| !self.is_own(entry));
            acts.extend(self.confirmed.clone().filter(|_| is_news).map(Act::Confirm));
        }
        if !is_at_end {
            self.round_at = now;
        }
        self.grant(&round, is_at_end, now, &mut acts);
        self.orders.reached();
        acts.extend(self.time(now));
        acts
    }

    /// Applies the entries after the position. Returns whether that is all of them.
    fn go_on(&mut self, round: &Round, now: Instant, acts: &mut Vec<Act>) -> bool {
        self.has_doubted = false;
        acts.extend(self.position.clone().filter(|_| self.follows).map(Act::Reached));
        for entry in &round.entries {
            self.take(entry, now, acts);
            let position = Position { run: round.run.clone(), id: entry.id, made: entry.made.clone() };
            acts.extend(self.follows.then(|| Act::Reached(position.clone())));
            self.position = Some(position);
        }
        self.position.as_ref().is_some_and(|position| position.id == round.end.id)
    }

    /// Goes on from the end of the stream, as nobody knows what was purged before. What is stored and being fetched is in doubt from here on, so
    /// that nothing is missed: what the stream says up to its end was said before.
    fn begin_anew(&mut self, round: &Round, now: Instant, acts: &mut Vec<Act>) -> bool {
        let why = match &self.position {
            None => "it is not known which purges were carried out on what is stored".to_owned(),
            Some(position) if position.run != round.run => {
                "the server was started anew or is another one, and may have lost purges".to_owned()
            }
            Some(position) => format!("the stream of purges has no entry {} any more, so purges may be missing", position.id),
        };
        if self.position.is_some() {
            self.counts.breaks += 1;
        }
        if !std::mem::take(&mut self.has_doubted) {
            acts.push(Act::Doubt(why));
        }
        self.recent.clear();
        self.orders.forget_what_was_appended();
        if self.follows {
            // Pages that others have fetched for this stream say nothing of what was read in another one.
            self.seen = SeenNumbers::default();
            self.past = Some(round.end.id);
            if self.position.take().is_some() {
                // The next round shows the beginning.
                self.has_doubted = true;
                return false;
            }
            if !round.entries.is_empty() {
                return self.go_on(round, now, acts);
            }
        }
        self.remember(round.end.id);
        self.position = Some(Position { run: round.run.clone(), id: round.end.id, made: round.end.made.clone() });
        true
    }

    fn take(&mut self, entry: &Entry, now: Instant, acts: &mut Vec<Act>) {
        self.remember(entry.id);
        match &entry.said {
            EntryContent::Begun => {}
            EntryContent::Unreadable { sealed: true, why } => {
                acts.push(Act::Doubt(format!("an entry of another version was taken as a purge of everything: {why}")));
                self.counts.applied += 1;
            }
            EntryContent::Unreadable { sealed: false, why } => {
                self.counts.refused += 1;
                if self.refusal_told.is_none_or(|told| now >= told + REFUSALS_EVERY) {
                    self.refusal_told = Some(now);
                    let count = self.counts.refused;
                    acts.push(Act::Warn(format!(
                        "entry {} of the stream of purges was left out ({count} since the start): {why}",
                        entry.id
                    )));
                }
            }
            EntryContent::Purge(_) if !self.is_past(entry) && (self.is_own(entry) || !self.seen.is_new(entry.made.as_ref())) => {}
            EntryContent::Purge(order) => {
                acts.push(Act::Apply(order.clone()));
                self.counts.applied += 1;
            }
        }
    }

    fn remember(&mut self, id: EntryId) {
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(id);
    }

    /// Returns whether an entry is of the past that is carried out once more.
    fn is_past(&self, entry: &Entry) -> bool {
        self.past.is_some_and(|past| entry.id <= past)
    }

    /// Returns whether this process made an entry: it carried the order out before it was appended.
    fn is_own(&self, entry: &Entry) -> bool {
        entry.made.as_ref().is_some_and(|made| made.session == self.settings.session)
    }

    /// Returns how long this machine takes a lease. A machine that starts with an empty disk beside a server that has lost its list knows of no lease but its
    /// own: it says that a purge holds everywhere when that has passed, so nobody who has heard of it may have a longer one.
    fn lease(&self) -> Duration {
        self.others.shortest_lease().map_or(self.settings.lease, |shortest| shortest.min(self.settings.lease))
    }

    /// Gives a lease for a round, if nothing speaks against it.
    fn grant(&mut self, round: &Round, is_at_end: bool, now: Instant, acts: &mut Vec<Act>) {
        if self.is_stopping {
            return;
        }
        let rival = self.rival(now, acts);
        let until = round.sent + self.lease();
        if let Some(why) = rival {
            self.why = why;
            if self.lease_until.take().is_some() {
                self.in_doubt_since = now;
                self.counts.doubts += 1;
                acts.push(Act::GiveUp);
            }
        } else if !is_at_end {
            "there are more entries of the stream to apply".clone_into(&mut self.why);
        } else if !round.replicated {
            "too few replicas of the server have answered".clone_into(&mut self.why);
        } else if until <= now {
            "the server answers too slowly".clone_into(&mut self.why);
        } else {
            let is_new = !self.is_leased(now);
            self.lapse(now);
            self.lease_until = Some(self.lease_until.map_or(until, |last| last.max(until)));
            self.why.clear();
            if is_new {
                self.round_at = self.round_at.min(now + self.lease() / 4);
            }
            acts.push(Act::Lease(until));
        }
    }

    /// Returns why another process of this name keeps this one from a lease, and has what is left of dead ones removed.
    fn rival(&mut self, now: Instant, acts: &mut Vec<Act>) -> Option<String> {
        let was_taken = std::mem::take(&mut self.name_is_taken);
        let is_leased = self.is_leased(now);
        let mut why = None;
        for (field, other) in self.others.listed() {
            if name_of(field) != self.settings.name || *field == self.field {
                continue;
            }
            if now >= other.since + passed(other.lease()) {
                acts.push(Act::Remove { field: field.clone(), member: other.member.clone() });
            } else if is_leased && !(other.has_risen && other.member.leased && other.member.session < self.settings.session) {
                // It came later, or woke up later: it is the one without a lease. If both have come by one, one of them gives it up.
            } else if !other.has_risen {
                why.get_or_insert_with(|| {
                    format!("the process before this one, also named {}, may still have its lease", self.settings.name)
                });
            } else if other.member.leased || other.member.session < self.settings.session {
                self.name_is_taken = true;
                why = Some(format!("another machine is named {}, too: give each its own name", self.settings.name));
            }
        }
        if self.name_is_taken && !was_taken {
            acts.push(Act::Warn(format!(
                "Another machine of the cluster is named {}, too. This one has no lease and validates every page until one of them is renamed.",
                self.settings.name
            )));
        }
        why
    }

    /// Takes note of a new connection: a round is due.
    pub fn connected(&mut self, now: Instant) {
        self.round_at = now;
    }

    /// Returns why there is no lease, or what failed last.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Takes note of a round, an append or a connection that failed.
    pub fn failed(&mut self, why: &str, now: Instant) -> Vec<Act> {
        self.is_reached = false;
        why.clone_into(&mut self.why);
        self.orders.failed(now + self.settings.lease / 4);
        self.time(now)
    }

    /// Takes an order that was carried out here before. The ticket is told how far it went.
    pub fn purge(&mut self, order: Order, now: Instant) -> (Ticket, Vec<Act>) {
        let (ticket, mut acts) = self.orders.add(order, now);
        // Nothing else is new: thousands may come at once, and others look at the clock.
        let is_lost = !self.is_reached && !self.is_leased(now);
        self.orders.tell_unsent(is_lost.then_some(self.why.as_str()), now, &mut acts);
        (ticket, acts)
    }

    /// Returns the orders that are to be appended next in one step, if none is on its way. [`appended`](Self::appended) or [`failed`](Self::failed)
    /// follows.
    pub fn batch(&mut self, now: Instant) -> Option<Vec<Unsent>> {
        self.orders.batch(now)
    }

    /// Returns when orders are to be appended again, if there are any, none is on its way, and the last time failed.
    #[must_use]
    pub fn batch_at(&self) -> Option<Instant> {
        self.orders.batch_at()
    }

    /// Takes what appending the last batch came to.
    pub fn appended(&mut self, appended: &Appended, now: Instant) -> Vec<Act> {
        self.is_reached = true;
        self.others.learn(&self.field, appended.run.clone(), &appended.born, &appended.members, &appended.strangers, appended.replied);
        if appended.replicated {
            self.orders.appended(&self.field, appended, &self.others);
        } else {
            self.orders.unreplicated(now + self.settings.lease / 4);
        }
        self.time(now)
    }

    /// Takes what the waiting connection was woken by.
    pub fn woken(&mut self, woken: &Woken, now: Instant) -> Vec<Act> {
        if woken.entries {
            self.round_at = self.round_at.min(now);
        }
        for confirmation in &woken.confirmations {
            self.others.confirmed(&confirmation.field, &confirmation.confirmed);
        }
        self.time(now)
    }

    /// Lets time pass: leases end, and makers of purges hear how far they went.
    pub fn time(&mut self, now: Instant) -> Vec<Act> {
        self.lapse(now);
        let is_lost = !self.is_reached && !self.is_leased(now);
        self.orders.tell(&self.settings.name, &self.others, is_lost.then_some(self.why.as_str()), now)
    }

    fn lapse(&mut self, now: Instant) {
        if let Some(until) = self.lease_until
            && until <= now
        {
            self.lease_until = None;
            self.in_doubt_since = until;
            self.counts.doubts += 1;
        }
    }

    /// Returns when [`time`](Self::time) has something to do at the latest, if nothing comes before.
    #[must_use]
    pub fn time_at(&self, now: Instant) -> Option<Instant> {
        let lease = self.lease_until;
        let orders = self.orders.time_at(now);
        [lease, orders].into_iter().flatten().min()
    }

    /// Takes note that whoever drives this machine has failed, and that acts may not have been carried out: there is no lease any more, and with the next
    /// round everything is doubted.
    pub fn broken_off(&mut self, now: Instant) {
        if self.lease_until.take().is_some_and(|until| now < until) {
            self.in_doubt_since = now;
            self.counts.doubts += 1;
        }
        self.position = None;
        self.confirmed = None;
        self.has_doubted = false;
        self.is_reached = false;
        self.round_at = now;
        "this machine's part in the cluster has failed, and begins anew".clone_into(&mut self.why);
        self.orders.failed(now);
    }

    /// Ends taking part: there is no lease any more. The driver removes this machine's field after this.
    pub fn stop(&mut self, now: Instant) -> Vec<Act> {
        self.is_stopping = true;
        if self.is_leased(now) {
            self.in_doubt_since = now;
        }
        self.lease_until = None;
        "this machine is being stopped".clone_into(&mut self.why);
        vec![Act::GiveUp]
    }

    /// Returns how many of this machine's purges are not known to hold everywhere.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.orders.pending()
    }

    /// Returns how the cluster is doing, but for what this value does not know: its name, the engine and the tier.
    #[must_use]
    pub fn state(&self, now: Instant) -> ClusterState {
        let leased = self.is_leased(now);
        let position = |id: Option<EntryId>| id.map(|id| id.to_string()).unwrap_or_default();
        let mut machines = vec![MachineState {
            name: self.settings.name.clone(),
            version: self.settings.version.clone(),
            leased,
            position: position(self.position.as_ref().map(|position| position.id)),
            behind: self.position.as_ref().map(|_| 0),
            seen_ms: 0,
        }];
        machines.extend(self.others.iter().map(|(field, other)| {
            let confirmed = other.confirmed();
            let behind = confirmed.filter(|confirmed| self.is_here(confirmed)).and_then(|confirmed| self.behind(confirmed.id));
            MachineState {
                name: name_of(field).to_owned(),
                version: other.member.version.clone(),
                leased: other.member.leased && now < other.since + passed(other.lease()),
                position: position(confirmed.map(|confirmed| confirmed.id)),
                behind,
                seen_ms: millis(now.saturating_duration_since(other.since)),
            }
        }));
        machines.sort_by(|a, b| a.name.cmp(&b.name));
        ClusterState {
            machine: self.settings.name.clone(),
            leased,
            why: (!leased).then(|| self.why.clone()),
            in_doubt_ms: if leased { 0 } else { millis(now.saturating_duration_since(self.in_doubt_since)) },
            doubts: self.counts.doubts,
            breaks: self.counts.breaks,
            position: position(self.position.as_ref().map(|position| position.id)),
            applied: self.counts.applied,
            refused: self.counts.refused,
            pending: u64::try_from(self.pending()).unwrap_or(u64::MAX),
            machines,
            name_is_taken: self.name_is_taken,
            ..ClusterState::default()
        }
    }

    /// Returns how many machines there are: this one, and those on the list that were heard of shortly before the list was read last.
    #[must_use]
    pub fn machines(&self) -> u32 {
        u32::try_from(1 + self.others.heard_within((self.settings.lease * 2).max(HEARD))).unwrap_or(u32::MAX)
    }

    fn is_here(&self, confirmed: &Confirmed) -> bool {
        self.confirmed.as_ref().is_some_and(|own| own.run == confirmed.run && own.born == confirmed.born)
    }

    /// Returns how many entries lie between that one and the last one that this machine knows of.
    fn behind(&self, id: EntryId) -> Option<u64> {
        let oldest = self.recent.front()?;
        let after = self.recent.iter().filter(|recent| **recent > id).count();
        (id >= *oldest || after == 0).then(|| u64::try_from(after).unwrap_or(u64::MAX))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
