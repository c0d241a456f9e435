//! The names that cost most among any number of them: exact for those that lead from the start, and with a stated error for those that come late.
//!
//! Each site has a table of its own with a few places, so no site's strangers push out what leads another. A name that has a place is counted there,
//! exactly. Any other is only counted in a [`Sketch`], and gets a place when what it has *certainly* cost exceeds the least that has one; who
//! loses the place goes back into the sketch with all it has cost, and can come back (Roy, Khan and Alonso, 2016: Augmented Sketch). Space-saving
//! counts alone (Metwally, Agrawal and El Abbadi, 2005) would give each newcomer the place of the least, and with it its count as an error: a million
//! invented addresses would then have a thousandth of all they cost as an error on each of a thousand places. Here each of them has to outdo the
//! least by its own cost, while one that comes again and again is remembered, however many strangers come between.

use crate::{
    amount::{Amount, Lately},
    sketch::Sketch,
};

/// Places by which a table grows.
const GROWTH: usize = 8;
/// Places that are looked at together.
const BLOCK: usize = 16;

/// The names that cost one site most.
#[derive(Debug)]
pub(crate) struct Leaders<T> {
    /// A byte of the hash of each place's name: all that is looked at for a name that has none, a block of places at a time.
    tags: Vec<u8>,
    /// The cost that each place has certainly had.
    certain: Vec<u64>,
    /// The lower bound of what each place of a block has certainly cost: of most blocks, it is all that is looked at to find the least of
    /// all places. It may be out of date, as places only gain.
    bounds: Vec<u64>,
    places: Vec<Leader<T>>,
    /// The lower bound of what each place has certainly cost. It may be out of date, as places only gain.
    least: u64,
    /// Whether there were more names than places at some time. Until then, a name without a place was never seen before.
    is_crowded: bool,
}

/// A name that leads, and what it has cost.
#[derive(Debug)]
pub(crate) struct Leader<T> {
    /// The hash of its name.
    hash: u64,
    pub(crate) name: Box<str>,
    pub(crate) cost: Lately<Amount>,
    /// The largest part of the cost that may be others', whose cells it shared before it got this place.
    pub(crate) error: CostShare,
    /// The part of the cost that the sketch knows already.
    sketched: CostShare,
    /// Whether the error is one of the period before.
    error_is_old: bool,
    /// The other things that are kept of it.
    pub(crate) more: T,
}

/// A part of a cost, without bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CostShare {
    pub(crate) micros: u64,
    pub(crate) requests: u64,
}

impl CostShare {
    const fn of(amount: Amount) -> Self {
        Self { micros: amount.micros, requests: amount.requests }
    }

    const fn amount(self) -> Amount {
        Amount { micros: self.micros, requests: self.requests, bytes: 0 }
    }
}

impl<T> Default for Leaders<T> {
    fn default() -> Self {
        Self { tags: Vec::new(), certain: Vec::new(), bounds: Vec::new(), places: Vec::new(), least: 0, is_crowded: false }
    }
}

impl<T> Leader<T> {
    /// Returns the cost that the name has certainly had, by which names are ranked.
    pub(crate) const fn certain(&self) -> u64 {
        self.cost.sum().minus(self.error.amount()).weight()
    }
}

impl<T: Default> Leaders<T> {
    /// Counts for a name. Returns its place, if it has one now.
    ///
    /// `name` is asked for only if the name gets a place. `most` is the number of places that this site has.
    pub(crate) fn add(
        &mut self,
        sketch: &Sketch,
        hash: u64,
        amount: Amount,
        most: usize,
        name: impl FnOnce() -> Box<str>,
    ) -> Option<&mut Leader<T>> {
        if let Some(at) = self.find(hash) {
            let place = &mut self.places[at];
            place.cost.add(amount);
            self.certain[at] = place.certain();
            return Some(place);
        }
        let has_room = self.places.len() < most;
        if has_room && !self.is_crowded {
            self.grow(most);
            let (error, sketched) = (CostShare::default(), CostShare::default());
            self.push(Leader { hash, name: name(), cost: Lately::of(amount), error, sketched, error_is_old: false, more: T::default() });
            return self.places.last_mut();
        }
        self.is_crowded = true;
        let estimate = sketch.add(hash, amount);
        let at = if has_room {
            self.grow(most);
            self.places.len()
        } else {
            let certain = estimate.certain.weight();
            if certain <= self.least {
                return None;
            }
            let (least, at) = self.least()?;
            self.least = least;
            if certain <= least {
                return None;
            }
            let leaving = &self.places[at];
            sketch.add(leaving.hash, leaving.cost.sum().minus(leaving.sketched.amount()));
            at
        };
        let error = CostShare::of(estimate.likely.minus(estimate.certain));
        let sketched = CostShare::of(estimate.likely);
        let place =
            Leader { hash, name: name(), cost: Lately::of(estimate.likely), error, sketched, error_is_old: false, more: T::default() };
        if at == self.places.len() {
            self.push(place);
            // What comes with little may be less than all others.
            self.least = 0;
        } else {
            (self.tags[at], self.certain[at]) = (tag(hash), place.certain());
            self.bounds[at / BLOCK] = self.bounds[at / BLOCK].min(place.certain());
            self.places[at] = place;
        }
        self.places.get_mut(at)
    }

    fn grow(&mut self, most: usize) {
        if self.places.len() == self.places.capacity() {
            let growth = GROWTH.min(most - self.places.len());
            self.places.reserve_exact(growth);
            self.tags.reserve_exact(growth);
            self.certain.reserve_exact(growth);
        }
    }

    /// Takes a place up that was left on disk.
    pub(crate) fn restore(&mut self, place: Leader<T>) {
        if self.find(place.hash).is_none() {
            self.push(place);
            self.least = 0;
        }
    }

    /// Begins another period: what has cost nothing in the last two loses its place.
    pub(crate) fn turn(&mut self, most: usize, mut each: impl FnMut(&mut T)) {
        for place in &mut self.places {
            place.cost.turn();
            if std::mem::replace(&mut place.error_is_old, true) {
                place.error = CostShare::default();
            }
            place.sketched = CostShare { micros: place.sketched.micros / 2, requests: place.sketched.requests / 2 };
            each(&mut place.more);
        }
        self.settle(most);
    }

    /// Takes their places from those that have cost nothing, and from those that have cost least if there are more than `most`.
    pub(crate) fn settle(&mut self, most: usize) {
        let old = std::mem::take(self);
        let mut places = old.places;
        places.retain(|place| place.cost.sum().requests > 0);
        self.is_crowded = old.is_crowded || places.len() > most;
        places.sort_by_key(|place| std::cmp::Reverse(place.certain()));
        places.truncate(most);
        places.shrink_to_fit();
        self.tags = places.iter().map(|place| tag(place.hash)).collect();
        self.certain = places.iter().map(Leader::certain).collect();
        self.bounds = self.certain.chunks(BLOCK).map(|block| block.iter().copied().min().unwrap_or_default()).collect();
        self.places = places;
    }
}

/// Returns the byte of a hash by which most others are told apart at a glance. The lowest ones choose cells of a sketch.
const fn tag(hash: u64) -> u8 {
    hash.to_be_bytes()[0]
}

impl<T> Leaders<T> {
    /// Finds the place of a name by its hash.
    fn find(&self, hash: u64) -> Option<usize> {
        let tag = tag(hash);
        self.tags.chunks(BLOCK).enumerate().find_map(|(block, tags)| {
            // All of a block are looked at, as the compiler makes vectors of that.
            if !tags.iter().fold(false, |found, other| found | (*other == tag)) {
                return None;
            }
            let first = block * BLOCK;
            self.places[first..first + tags.len()].iter().position(|place| place.hash == hash).map(|at| first + at)
        })
    }

    /// Finds what has certainly cost least: returns how much, and its place.
    fn least(&mut self) -> Option<(u64, usize)> {
        loop {
            let (block, bound) = self.bounds.iter().copied().enumerate().min_by_key(|(_, bound)| *bound)?;
            let certain = self.certain.chunks(BLOCK).nth(block)?;
            let least = certain.iter().copied().min()?;
            if least == bound {
                let at = certain.iter().position(|certain| *certain == least)?;
                return Some((least, block * BLOCK + at));
            }
            // Its bound was out of date: another block may have less. Each block comes to this once at most.
            self.bounds[block] = least;
        }
    }

    fn push(&mut self, place: Leader<T>) {
        let certain = place.certain();
        match self.bounds.get_mut(self.places.len() / BLOCK) {
            Some(bound) => *bound = certain.min(*bound),
            None => self.bounds.push(certain),
        }
        self.tags.push(tag(place.hash));
        self.certain.push(certain);
        self.places.push(place);
    }

    pub(crate) fn places(&self) -> &[Leader<T>] {
        &self.places
    }

    /// Returns the bytes that it takes, beside what stands in `T`.
    pub(crate) fn bytes(&self, more: impl Fn(&T) -> usize) -> usize {
        let texts: usize = self.places.iter().map(|place| crate::memory::of_text(&place.name) + more(&place.more)).sum();
        self.places.capacity() * size_of::<Leader<T>>()
            + self.tags.capacity()
            + (self.certain.capacity() + self.bounds.capacity()) * size_of::<u64>()
            + texts
    }
}

impl<T> Leader<T> {
    /// Makes a place of what was left on disk.
    pub(crate) fn restored((hash, name): (u64, Box<str>), cost: Lately<Amount>, error: CostShare, more: T) -> Self {
        Self { hash, name, cost, error, sketched: CostShare { micros: 0, requests: 0 }, error_is_old: false, more }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashMap,
        hash::{BuildHasher, RandomState},
    };

    use proptest::prelude::*;

    use super::*;

    struct Table {
        keys: RandomState,
        sketch: Sketch,
        leaders: Leaders<()>,
        most: usize,
    }

    impl Table {
        fn new(width: usize, most: usize) -> Self {
            Self { keys: RandomState::new(), sketch: Sketch::of_costs(width), leaders: Leaders::default(), most }
        }

        fn ask(&mut self, name: &str, micros: u64) {
            let amount = Amount { micros, requests: 1, bytes: 1 };
            self.leaders.add(&self.sketch, self.keys.hash_one(name), amount, self.most, || name.into());
        }

        fn first(&self, n: usize) -> Vec<String> {
            let mut places: Vec<_> = self.leaders.places().iter().collect();
            places.sort_by_key(|place| std::cmp::Reverse(place.certain()));
            places.into_iter().take(n).map(|place| place.name.to_string()).collect()
        }
    }

    #[test]
    fn what_leads_from_the_start_is_counted_exactly() {
        let mut table = Table::new(1_024, 16);
        for n in 0..20_000 {
            table.ask("a", 30);
            table.ask(&format!("stranger {n}"), 100);
            if n % 2 == 0 {
                table.ask("b", 30);
            }
        }
        let a = table.leaders.places().iter().find(|place| &*place.name == "a").expect("it leads");
        assert_eq!((a.cost.sum(), a.error.requests), (Amount { micros: 600_000, requests: 20_000, bytes: 20_000 }, 0));
        assert_eq!(table.first(2), ["a", "b"]);
    }

    #[test]
    fn each_of_many_places_is_found_again() {
        let mut table = Table::new(64, 100);
        for _ in 0..2 {
            (0..100_u64).for_each(|n| table.ask(&n.to_string(), n + 1));
        }
        let mut found: Vec<_> = table.leaders.places().iter().map(|place| (place.cost.sum().requests, place.cost.sum().micros)).collect();
        found.sort_unstable();
        assert_eq!(found, (0..100).map(|n| (2, 2 * (n + 1))).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_cheap_but_often_asked_for_gets_its_place_although_each_stranger_costs_more() {
        let mut table = Table::new(8_192, 16);
        // Ten strangers, each at 5 ms, for one request at 2 ms. The places are long taken when it comes.
        (0..1_000).for_each(|n| table.ask(&format!("early {n}"), 5_000));
        for n in 0..20_000 {
            (0..10).for_each(|of| table.ask(&format!("stranger {n} {of}"), 5_000));
            table.ask("late", 2_000);
        }
        assert_eq!(table.first(1), ["late"]);
        let late = table.leaders.places().iter().find(|place| &*place.name == "late").expect("it leads");
        let (cost, error) = (late.cost.sum().micros, late.error.micros);
        assert!(cost - error <= 40_000_000 && 40_000_000 <= cost + error, "{cost} ± {error}");
        assert!(error < 1_000_000, "{error}");
    }

    #[test]
    fn the_order_does_not_depend_on_when_a_leader_comes() {
        for (start, step) in [(0, 1), (50_000, 1), (0, 10)] {
            let mut table = Table::new(8_192, 16);
            let mut random = fastrand::Rng::with_seed(start + step);
            for n in 0..100_000_u64 {
                table.ask(&format!("stranger {n}"), 1_000 + random.u64(..8_000));
                if n >= start && n % step == 0 {
                    // Ten leaders, each of which comes a tenth less often than the one before.
                    for leader in 0..10_u32 {
                        if random.f64()
                            < 0.05 * 0.8_f64.powi(i32::try_from(leader).expect("few")) * f64::from(u32::try_from(step).expect("few"))
                        {
                            table.ask(&format!("leader {leader}"), 20_000);
                        }
                    }
                }
            }
            let expected: Vec<String> = (0..10).map(|leader| format!("leader {leader}")).collect();
            assert_eq!(table.first(10), expected, "from {start} on, each {step}");
        }
    }

    #[test]
    fn what_was_not_asked_for_in_two_periods_is_forgotten() {
        let mut table = Table::new(1_024, 16);
        table.ask("old", 1_000);
        table.leaders.turn(16, |()| {});
        table.ask("new", 10);
        assert_eq!(table.first(2), ["old", "new"]);
        table.leaders.turn(16, |()| {});
        assert_eq!(table.first(2), ["new"]);
    }

    proptest! {
        #[test]
        fn with_places_for_all_everything_is_exact(asked in prop::collection::vec((0_u8..16, 1_u64..1_000), 0..300)) {
            let (mut table, mut truth) = (Table::new(64, 16), HashMap::<String, u64>::new());
            for (name, micros) in asked {
                table.ask(&name.to_string(), micros);
                *truth.entry(name.to_string()).or_default() += micros;
            }
            for place in table.leaders.places() {
                prop_assert_eq!((place.cost.sum().micros, place.error), (truth[&*place.name], CostShare::default()));
            }
            prop_assert_eq!(table.leaders.places().len(), truth.len());
        }

        /// Who loses its place is found by what stands beside the places.
        #[test]
        fn what_stands_beside_the_places_is_what_they_have_cost(
            asked in prop::collection::vec((0_u8..80, 1_u64..1_000, 0_u8..40), 0..300), most in 1_usize..50
        ) {
            let mut table = Table::new(64, most);
            for (name, micros, then) in asked {
                table.ask(&name.to_string(), micros);
                match then {
                    0 => table.leaders.turn(most, |()| {}),
                    1 => table.leaders.settle(most.div_ceil(2)),
                    _ => {}
                }
                let leaders = &table.leaders;
                let cost: Vec<u64> = leaders.places().iter().map(Leader::certain).collect();
                prop_assert_eq!(&leaders.certain, &cost);
                prop_assert!(cost.iter().all(|certain| *certain >= leaders.least));
                let least = cost.iter().copied().enumerate().map(|(at, certain)| (certain, at)).min();
                prop_assert_eq!(table.leaders.least(), least);
            }
        }

        #[test]
        fn there_are_never_more_places_than_the_bound(asked in prop::collection::vec((any::<u16>(), 1_u64..1_000), 0..300), most in 1_usize..20) {
            let mut table = Table::new(64, most);
            for (name, micros) in asked {
                table.ask(&name.to_string(), micros);
                prop_assert!(table.leaders.places().len() <= most && table.leaders.places.capacity() <= most.max(GROWTH));
            }
        }
    }
}
