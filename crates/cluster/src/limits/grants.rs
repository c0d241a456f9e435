//! The number of requests that a machine may send to the origins that it shares with others: a value, to which time is an argument.
//!
//! The server grants places for [`GRANT_LASTS`], which this machine counts from when it asked. After that it keeps at most its equal part, and a little
//! later, when the grants of all others have ended too, it takes that part. So the machines together have no more than the limit, but for requests that are
//! at the origin already.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::{Origin, PlaceDemand, scripts::GRANT_LASTS};

/// The time by which the grants of others may end later than this machine's own: an interval, and a deadline.
const LATER: Duration = Duration::from_millis(500);
/// The exchanges for which a need is remembered, so that a pause of a moment gives nothing away.
const REMEMBERED: usize = 3;
/// The places of a machine at an origin before it has heard of the server.
const FIRST: usize = 1;

/// The grants of one machine.
#[derive(Debug)]
pub(super) struct Grants {
    by_name: HashMap<String, Grant>,
    started: Instant,
    machines: u32,
}

#[derive(Debug)]
struct Grant {
    limit: usize,
    places: usize,
    /// The time at which those places were asked for.
    asked: Instant,
    needs: [usize; REMEMBERED],
    /// Whether the limit is kept by this machine alone, as the server does not answer.
    is_apart: bool,
}

impl Grants {
    pub(super) fn new(now: Instant) -> Self {
        Self { by_name: HashMap::new(), started: now, machines: 1 }
    }

    /// Notes how many machines there are.
    pub(super) const fn count_machines(&mut self, machines: u32) {
        self.machines = if machines == 0 { 1 } else { machines };
    }

    /// Takes the needs of these origins, and returns what is to be asked for. Others are forgotten.
    pub(super) fn ask(&mut self, origins: &[Origin]) -> Vec<PlaceDemand> {
        self.by_name.retain(|name, _| origins.iter().any(|origin| origin.name == *name));
        let started = self.started;
        let places = |origin: &Origin| {
            let new = || Grant { limit: origin.limit, places: FIRST, asked: started, needs: [0; REMEMBERED], is_apart: false };
            let grant = self.by_name.entry(origin.name.clone()).or_insert_with(new);
            grant.limit = origin.limit;
            grant.needs.rotate_right(1);
            grant.needs[0] = origin.in_flight + origin.waiting;
            let need = grant.needs.iter().copied().max().unwrap_or(0);
            PlaceDemand { limit: origin.limit, need, held: origin.in_flight.max(origin.concurrency) }
        };
        origins.iter().map(places).collect()
    }

    /// Takes what the server has granted for what was asked at `asked`.
    pub(super) fn granted(&mut self, name: &str, places: usize, asked: Instant) {
        if let Some(grant) = self.by_name.get_mut(name) {
            (grant.places, grant.asked, grant.is_apart) = (places.min(grant.limit), asked, false);
        }
    }

    /// Returns how many places this machine may use at an origin now.
    pub(super) fn places(&mut self, name: &str, now: Instant) -> Option<usize> {
        let machines = usize::try_from(self.machines).unwrap_or(usize::MAX);
        let grant = self.by_name.get_mut(name)?;
        let part = (grant.limit / machines).max(1);
        let age = now.saturating_duration_since(grant.asked);
        if age >= GRANT_LASTS + LATER {
            (grant.places, grant.is_apart) = (part, true);
        } else if age >= GRANT_LASTS {
            grant.places = grant.places.min(part);
        }
        Some(grant.places)
    }

    /// Returns whether the server has granted the places of an origin.
    pub(super) fn is_granted(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|grant| !grant.is_apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(concurrency: usize, in_flight: usize, waiting: usize) -> Origin {
        Origin { name: "blog".to_owned(), limit: 6, concurrency, in_flight, waiting }
    }

    #[test]
    fn a_grant_lasts_from_its_question_and_then_each_has_its_part() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut grants = Grants::new(start);
        grants.count_machines(3);
        assert_eq!(grants.ask(&[origin(6, 0, 0)]).len(), 1);
        assert_eq!(grants.places("blog", start), Some(1), "nothing is known yet");
        grants.granted("blog", 6, at(100));
        assert_eq!(grants.places("blog", at(2_099)), Some(6));
        // Less at once, more only when the grants of all others have ended.
        assert_eq!(grants.places("blog", at(2_100)), Some(2));
        grants.granted("blog", 0, at(3_000));
        assert_eq!(grants.places("blog", at(5_499)), Some(0));
        assert_eq!(grants.places("blog", at(5_500)), Some(2));
        assert!(!grants.is_granted("blog"));
        // More machines than places: one each.
        grants.count_machines(20);
        assert_eq!(grants.places("blog", at(5_500)), Some(1));
        assert_eq!(grants.places("other", at(5_500)), None);
    }

    #[test]
    fn what_is_asked_for_is_the_need_of_the_last_moments_and_what_is_held_is_never_less_than_at_the_origin() {
        let mut grants = Grants::new(Instant::now());
        let mut ask = |concurrency, in_flight, waiting| grants.ask(&[origin(concurrency, in_flight, waiting)])[0];
        assert_eq!(ask(1, 1, 4), PlaceDemand { limit: 6, need: 5, held: 1 });
        assert_eq!(ask(2, 5, 0), PlaceDemand { limit: 6, need: 5, held: 5 });
        assert_eq!(ask(6, 0, 0), PlaceDemand { limit: 6, need: 5, held: 6 });
        assert_eq!(ask(6, 0, 0), PlaceDemand { limit: 6, need: 5, held: 6 });
        assert_eq!(ask(0, 0, 0), PlaceDemand { limit: 6, need: 0, held: 0 });
    }
}
