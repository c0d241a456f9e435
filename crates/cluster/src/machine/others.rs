//! The other machines, as this one has seen them change, on its own clock.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::name_of;
use crate::{
    link::{Confirmed, Member, Stranger},
    stream::Run,
};

/// The time for which a machine is remembered that the server has forgotten: it may be cut off from the server and go on serving.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);
/// The time that a machine that has said nothing new stays on the server's list. Until then every purge counts it among those whose lease
/// has passed, and an operator's waits for its `doubt_hold`. One that is gone for good (a container of yesterday) must not do so for ever.
/// One that comes back registers anew before it gets a lease.
pub(super) const GONE_AFTER: Duration = Duration::from_secs(600);
/// The most fields without this cluster's seal that are watched.
const STRANGERS_MAX: usize = 256;
/// The most machines that are remembered although the server has forgotten them. Whoever was seen last stays.
const FORGOTTEN_MAX: usize = 256;
/// The longest lease that anybody can have (and the longest `doubt_hold` that is waited for).
pub(super) const LEASE_MAX: Duration = Duration::from_secs(30);

/// All other machines that this one knows of.
#[derive(Debug)]
pub(super) struct OtherMachines {
    by_field: BTreeMap<String, Other>,
    /// The fields that do not bear this cluster's seal, and since when exactly each has been there.
    strangers: Vec<(Stranger, Instant)>,
    era: Option<Era>,
    lease_max: Duration,
    /// The time at which the list was read last.
    read: Option<Instant>,
}

/// Says how long the server's list of machines has been known to be complete.
#[derive(Debug, Clone)]
struct Era {
    run: Run,
    born: String,
    /// The time at which this machine first met it. Everybody who has a lease from before has lost it a lease later.
    since: Instant,
}

/// Another machine.
#[derive(Debug)]
pub(super) struct Other {
    /// The last thing that it said of itself.
    pub(super) member: Member,
    /// The time at which this machine first saw exactly that: its last round is older.
    pub(super) since: Instant,
    /// Whether it said something else before: it is alive, or was.
    pub(super) has_risen: bool,
    /// Up to where it has come, by the latest that anybody said of it.
    confirmed: Option<Confirmed>,
    /// Whether the server's list has it. Otherwise the server has lost its list since.
    is_listed: bool,
}

impl Other {
    pub(super) fn lease(&self) -> Duration {
        Duration::from_millis(self.member.lease_ms).min(LEASE_MAX)
    }

    pub(super) fn confirmed(&self) -> Option<&Confirmed> {
        self.confirmed.as_ref()
    }

    pub(super) fn hold(&self) -> Duration {
        Duration::from_millis(self.member.hold_ms).min(LEASE_MAX)
    }
}

impl OtherMachines {
    pub(super) fn new(lease: Duration) -> Self {
        Self { by_field: BTreeMap::new(), strangers: Vec::new(), era: None, lease_max: lease, read: None }
    }

    /// Learns from a step of the server who there is. `now` is not before that step.
    pub(super) fn learn(
        &mut self,
        own: &str,
        run: Run,
        born: &str,
        members: &BTreeMap<String, Member>,
        strangers: &[Stranger],
        now: Instant,
    ) {
        self.read = Some(now);
        let is_same = self.era.as_ref().is_some_and(|era| era.run == run && era.born == born);
        if !is_same {
            self.era = Some(Era { run, born: born.to_owned(), since: now });
        }
        for (field, member) in members.iter().filter(|(field, _)| *field != own) {
            self.lease_max = self.lease_max.max(Duration::from_millis(member.lease_ms).min(LEASE_MAX));
            let confirmed = member.confirmed.clone();
            match self.by_field.get_mut(field) {
                Some(other) => {
                    other.is_listed = true;
                    if other.member != *member {
                        other.member = member.clone();
                        other.since = now;
                        other.has_risen = true;
                    }
                }
                None => {
                    let other = Other { member: member.clone(), since: now, has_risen: false, confirmed: None, is_listed: true };
                    self.by_field.insert(field.clone(), other);
                }
            }
            if let Some(confirmed) = confirmed {
                self.confirmed(field, &confirmed);
            }
        }
        let is_gone = |field: &String| !members.contains_key(field) && !strangers.iter().any(|stranger| stranger.name == *field);
        if is_same {
            // The list is as complete as before, so whoever is not on it any more was taken from it: it was stopped.
            self.by_field.retain(|field, other| !(other.is_listed && is_gone(field)));
        }
        for (field, other) in &mut self.by_field {
            other.is_listed &= !is_gone(field);
        }
        self.forget(members, now);
        let before = std::mem::take(&mut self.strangers);
        self.strangers = strangers
            .iter()
            .take(STRANGERS_MAX)
            .map(|stranger| {
                let since = before.iter().find(|(known, _)| known == stranger).map_or(now, |(_, since)| *since);
                (stranger.clone(), since)
            })
            .collect();
    }

    /// Returns how many machines on the list had said something new so shortly before it was read last.
    pub(super) fn heard_within(&self, time: Duration) -> usize {
        self.read.map_or(0, |read| self.listed().filter(|(_, other)| read < other.since + time).count())
    }

    /// Returns the machines on the list that have said nothing new for so long that they count as gone.
    pub(super) fn gone(&self, now: Instant) -> impl Iterator<Item = (&String, &Other)> {
        self.listed().filter(move |(_, other)| now >= other.since + GONE_AFTER)
    }

    /// Returns the fields without the seal that have not changed for as long.
    pub(super) fn gone_strangers(&self, now: Instant) -> impl Iterator<Item = &Stranger> {
        self.strangers.iter().filter(move |(_, since)| now >= *since + GONE_AFTER).map(|(stranger, _)| stranger)
    }

    /// Forgets who is not on the list: after a day, when a process of the same name is on it, and if there are too many.
    fn forget(&mut self, members: &BTreeMap<String, Member>, now: Instant) {
        self.by_field.retain(|field, other| {
            other.is_listed || now < other.since + FORGOTTEN_AFTER && !members.keys().any(|member| name_of(member) == name_of(field))
        });
        let mut lost: Vec<(Instant, String)> =
            self.by_field.iter().filter(|(_, other)| !other.is_listed).map(|(field, other)| (other.since, field.clone())).collect();
        if lost.len() > FORGOTTEN_MAX {
            lost.sort();
            for (_, field) in lost.drain(..).rev().skip(FORGOTTEN_MAX) {
                self.by_field.remove(&field);
            }
        }
    }

    /// Learns up to where a machine has come.
    pub(super) fn confirmed(&mut self, field: &str, confirmed: &Confirmed) {
        let Some(other) = self.by_field.get_mut(field) else { return };
        let is_known = other.confirmed.as_ref().is_some_and(|known| {
            // What is of another stream than this machine knows of says nothing here, and must not hide what says something.
            known.run == confirmed.run && known.born == confirmed.born && known.id >= confirmed.id
                || self.era.as_ref().is_some_and(|era| {
                    (known.run == era.run && known.born == era.born) && !(confirmed.run == era.run && confirmed.born == era.born)
                })
        });
        if !is_known {
            other.confirmed = Some(confirmed.clone());
        }
    }

    /// Returns a machine; `None` if it is not known any more.
    pub(super) fn get(&self, field: &str) -> Option<&Other> {
        self.by_field.get(field)
    }

    /// Returns when whoever was left off the server's list has surely no lease any more: a list that was made anew may lack machines.
    pub(super) fn complete_at(&self) -> Option<Instant> {
        self.era.as_ref().map(|era| era.since + super::passed(self.lease_max))
    }

    /// Returns the shortest lease that any of them takes, also of those that the server has forgotten.
    pub(super) fn shortest_lease(&self) -> Option<Duration> {
        self.by_field.values().map(Other::lease).min()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Other)> {
        self.by_field.iter()
    }

    pub(super) fn listed(&self) -> impl Iterator<Item = (&String, &Other)> {
        self.by_field.iter().filter(|(_, other)| other.is_listed)
    }
}
