//! The counts that are shown under a name of their own where there may be too many: the busiest, and all others as one.
//!
//! Prometheus takes a counter that falls for one that began anew, and its whole value for an increase. So nothing that is shown may fall when a name
//! moves between the busiest and the others: what was counted while a name was among the others stays there, and what was counted under the name
//! comes back with it. Sums over all names are exact as long as every name that was ever shown is shown.

use std::collections::{BTreeMap, BTreeSet};

/// The factor by which a name has to be busier than the least of those that are shown before it takes that one's place. Names that are
/// about as busy as each other would change places at every scrape otherwise.
const BUSIER: u64 = 2;

/// Several counters of one name.
pub(crate) trait Counts: Clone + Default {
    /// Changes every counter by `change`, which is given it and the same counter of `other`.
    fn combine(&mut self, other: &Self, change: fn(u64, u64) -> u64);

    /// Returns how busy the name is.
    fn weight(&self) -> u64;
}

/// The names that are shown, and what each has counted elsewhere.
#[derive(Debug)]
pub(crate) struct Leading<K, V> {
    max: usize,
    /// The names that are or were shown.
    known: BTreeMap<K, CountState<V>>,
    /// Whether there were ever more names than may be shown. From then on, there are others.
    is_crowded: bool,
}

/// The part of a name's counts that is not where the rest is.
#[derive(Debug)]
enum CountState<V> {
    /// The name is shown. What it counted while it was not stays with the others.
    Shown { elsewhere: V },
    /// The name is one of the others. What it counted while it was shown comes back with it.
    Hidden { own: V },
}

/// Holds what is shown at one time.
#[derive(Debug)]
pub(crate) struct Board<K, V> {
    pub(crate) shown: BTreeMap<K, V>,
    /// The sum of all others, if there are any.
    pub(crate) other: Option<V>,
}

impl<K: Ord + Clone, V: Counts> Leading<K, V> {
    /// Creates one that shows at most `max` names, and the others as one more.
    pub(crate) const fn new(max: usize) -> Self {
        Self { max, known: BTreeMap::new(), is_crowded: false }
    }

    /// Returns whether there are others.
    pub(crate) const fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Decides who is shown. `counted` has the present counts of every name, and never loses one; `may_be_shown` says of a name whether it is still in
    /// use: the counts of one that is not belong to the others.
    pub(crate) fn board(&mut self, counted: &BTreeMap<K, V>, may_be_shown: impl Fn(&K) -> bool) -> Board<K, V> {
        let candidates: BTreeSet<&K> = counted.keys().filter(|name| may_be_shown(name)).collect();
        let all_fit = candidates.len() <= self.max;
        let was_crowded = self.is_crowded;
        self.is_crowded |= !all_fit;
        let shown: Vec<K> = self.shown().cloned().collect();
        for name in shown.iter().filter(|name| !candidates.contains(name)) {
            self.hide(name, counted);
        }
        if !self.is_crowded {
            // Nobody is shown who was counted elsewhere, so nothing needs to be known of who has gone.
            self.known.retain(|name, _| candidates.contains(name));
        }
        // The busiest first; of names that are equally busy, the first.
        let mut waiting: Vec<(u64, &K)> =
            candidates.iter().filter(|name| !self.is_shown(name)).map(|name| (counted[*name].weight(), *name)).collect();
        waiting.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
        let mut waiting = waiting.into_iter().filter(|(weight, _)| all_fit || *weight > 0);
        while self.shown().count() < self.max
            && let Some((_, name)) = waiting.next()
        {
            self.show(name, counted, was_crowded);
        }
        while let Some((weight, name)) = waiting.next()
            && let Some((least, leaving)) = self.shown().map(|name| (counted[name].weight(), name.clone())).min()
            && weight > least.saturating_mul(BUSIER)
        {
            self.hide(&leaving, counted);
            self.show(name, counted, was_crowded);
        }
        self.sums(counted)
    }

    fn shown(&self) -> impl Iterator<Item = &K> {
        self.known.iter().filter(|(_, known)| matches!(known, CountState::Shown { .. })).map(|(name, _)| name)
    }

    fn is_shown(&self, name: &K) -> bool {
        matches!(self.known.get(name), Some(CountState::Shown { .. }))
    }

    fn hide(&mut self, name: &K, counted: &BTreeMap<K, V>) {
        if let Some(known) = self.known.get_mut(name)
            && let CountState::Shown { elsewhere } = known
        {
            let own = minus(counted.get(name), elsewhere);
            *known = CountState::Hidden { own };
        }
    }

    /// Shows a name. Before there were others, nobody has counted elsewhere.
    fn show(&mut self, name: &K, counted: &BTreeMap<K, V>, was_crowded: bool) {
        let elsewhere = match self.known.get(name) {
            Some(CountState::Hidden { own }) => minus(counted.get(name), own),
            None if was_crowded => counted.get(name).cloned().unwrap_or_default(),
            Some(CountState::Shown { .. }) | None => V::default(),
        };
        self.known.insert(name.clone(), CountState::Shown { elsewhere });
    }

    fn sums(&self, counted: &BTreeMap<K, V>) -> Board<K, V> {
        let (mut shown, mut other) = (BTreeMap::new(), V::default());
        for (name, now) in counted {
            match self.known.get(name) {
                Some(CountState::Shown { elsewhere }) => {
                    other.combine(elsewhere, u64::wrapping_add);
                    shown.insert(name.clone(), minus(Some(now), elsewhere));
                }
                Some(CountState::Hidden { own }) => other.combine(&minus(Some(now), own), u64::wrapping_add),
                None => other.combine(now, u64::wrapping_add),
            }
        }
        Board { shown, other: self.is_crowded.then_some(other) }
    }
}

fn minus<V: Counts>(counted: Option<&V>, part: &V) -> V {
    let mut rest = counted.cloned().unwrap_or_default();
    rest.combine(part, u64::saturating_sub);
    rest
}

impl Counts for u64 {
    fn combine(&mut self, other: &Self, change: fn(u64, u64) -> u64) {
        *self = change(*self, *other);
    }

    fn weight(&self) -> u64 {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Counted = BTreeMap<&'static str, u64>;

    fn show(leading: &mut Leading<&'static str, u64>, counted: &Counted) -> (Vec<(&'static str, u64)>, Option<u64>) {
        let board = leading.board(counted, |name| !name.starts_with("gone"));
        (board.shown.into_iter().collect(), board.other)
    }

    #[test]
    fn everybody_is_shown_as_long_as_there_is_room() {
        let mut leading = Leading::new(2);
        assert_eq!(show(&mut leading, &Counted::from([("a", 0), ("b", 5), ("gone", 9)])), (vec![("a", 0), ("b", 5)], None));
        assert_eq!(show(&mut leading, &Counted::from([("a", 1), ("b", 6), ("gone", 9)])), (vec![("a", 1), ("b", 6)], None));
    }

    #[test]
    fn the_busiest_are_shown_and_the_others_are_one() {
        let mut leading = Leading::new(2);
        let counted = Counted::from([("a", 1), ("b", 5), ("c", 4), ("d", 0)]);
        assert_eq!(show(&mut leading, &counted), (vec![("b", 5), ("c", 4)], Some(1)));
    }

    #[test]
    fn a_name_that_nobody_asked_for_takes_no_place() {
        let mut leading = Leading::new(2);
        assert_eq!(show(&mut leading, &Counted::from([("a", 0), ("b", 0), ("c", 0)])), (vec![], Some(0)));
        assert_eq!(show(&mut leading, &Counted::from([("a", 0), ("b", 0), ("c", 3)])), (vec![("c", 0)], Some(3)));
    }

    /// What a name counted before it was shown stays with the others, and what it counted while it was shown comes back with it.
    #[test]
    fn nothing_falls_when_a_name_comes_goes_and_comes_back() {
        let mut leading = Leading::new(1);
        assert_eq!(show(&mut leading, &Counted::from([("a", 10), ("b", 4)])), (vec![("a", 10)], Some(4)));
        // Not twice as busy: nothing changes.
        assert_eq!(show(&mut leading, &Counted::from([("a", 10), ("b", 20)])), (vec![("a", 10)], Some(20)));
        assert_eq!(show(&mut leading, &Counted::from([("a", 11), ("b", 23)])), (vec![("b", 0)], Some(23)));
        assert_eq!(show(&mut leading, &Counted::from([("a", 13), ("b", 25)])), (vec![("b", 2)], Some(25)));
        // 11 of its requests were counted under its name, 2 with the others, and what comes in the moment of change, with them, too.
        assert_eq!(show(&mut leading, &Counted::from([("a", 60), ("b", 25)])), (vec![("a", 11)], Some(72)));
        assert_eq!(show(&mut leading, &Counted::from([("a", 61), ("b", 26)])), (vec![("a", 12)], Some(73)));
    }

    #[test]
    fn one_that_is_no_longer_in_use_leaves_its_counts_to_nobody_and_its_place_to_another() {
        let mut leading = Leading::new(1);
        let counted = Counted::from([("a", 10), ("b", 4)]);
        assert_eq!(show(&mut leading, &counted), (vec![("a", 10)], Some(4)));
        let board = leading.board(&Counted::from([("a", 12), ("b", 5)]), |name| *name != "a");
        assert_eq!((board.shown, board.other), (Counted::from([("b", 0)]), Some(5)));
        let board = leading.board(&Counted::from([("a", 13), ("b", 6)]), |name| *name != "a");
        assert_eq!((board.shown, board.other), (Counted::from([("b", 1)]), Some(6)));
    }

    /// Whatever is counted in whatever order, and whoever is in use: no line falls while it stands, nor from one time that it stands to the next; the others never
    /// do, and always stand once they did.
    #[test]
    fn nothing_ever_falls() {
        let names: Vec<String> = (0..40).map(|n| format!("site-{n}")).collect();
        let mut counted: BTreeMap<usize, u64> = (0..names.len()).map(|n| (n, 0)).collect();
        let mut leading = Leading::new(5);
        let mut last: BTreeMap<usize, u64> = BTreeMap::new();
        let mut last_other = None;
        // A linear congruential generator: the same numbers each time.
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut changes = 0;
        for round in 0..5_000_u64 {
            for _ in 0..random(20) {
                // Each few hundred rounds others are busy.
                let name = usize::try_from((random(8) * random(6) + round / 300 * 3) % 40).expect("few");
                *counted.get_mut(&name).expect("there") += random(1 + round / 50 * 10);
            }
            let out_of_use = usize::try_from(round / 500).expect("few");
            let board = leading.board(&counted, |name| *name != out_of_use);
            assert!(board.shown.len() <= 5);
            changes += board.shown.keys().filter(|name| !last.contains_key(name)).count();
            for (name, value) in &board.shown {
                assert!(
                    last.get(name).is_none_or(|before| before <= value),
                    "round {round}: {name} fell from {:?} to {value}",
                    last.get(name)
                );
                last.insert(*name, *value);
            }
            assert!(board.other >= last_other, "round {round}: {last_other:?} fell to {:?}", board.other);
            last_other = board.other;
            let total: u64 = counted.values().sum();
            assert!(board.shown.values().sum::<u64>() + board.other.unwrap_or_default() <= total, "nothing is counted twice");
        }
        assert!(changes > 5, "the test is of no use if nobody moves: {changes}");
    }
}
