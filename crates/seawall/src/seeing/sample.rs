//! The choice of the hits of which more is told than their number.
//!
//! A worker tells of at most some [`TOLD_MAX`] hits a second, chosen at random: of all of them where there are few, of one in a thousand in a crowd.
//! So what a sample costs a hit falls as there are more of them, and nobody who asks in turns can decide which of them are chosen.

use std::cell::Cell;

/// The hits of which a worker tells in a second.
const TOLD_MAX: u32 = 64;

/// The most hits that one can stand for.
const EVERY_MAX: u32 = 1 << 16;

/// One worker's choice.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// The hits until the next one that is told.
    left: Cell<u32>,
    /// One hit in so many is told.
    every: Cell<u32>,
    /// The hits that those stand for that were told since the rate was set.
    stood_for: Cell<u64>,
    random: Cell<u64>,
}

impl Sampler {
    /// Makes the choice of a worker. Another seed makes other choices.
    pub(crate) fn new(seed: u64) -> Self {
        Self { left: Cell::new(1), every: Cell::new(1), stood_for: Cell::new(0), random: Cell::new(seed | 1) }
    }

    /// Returns how many hits this one stands for, if it is to be told. Mostly one subtraction and one comparison.
    #[inline]
    pub(crate) fn stands_for(&self) -> Option<u32> {
        let left = self.left.get() - 1;
        self.left.set(left);
        if left == 0 { Some(self.draw()) } else { None }
    }

    #[cold]
    fn draw(&self) -> u32 {
        let every = self.every.get();
        // Xorshift (Marsaglia, 2003): it need not be good, only no pattern of requests.
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        // From 1 to twice `every` less one: that is `every` on average.
        let next = 1 + u32::try_from(random % u64::from(2 * every - 1)).unwrap_or_default();
        self.left.set(next);
        self.stood_for.set(self.stood_for.get() + u64::from(every));
        every
    }

    /// Sets the rate by the hits since the last call. It is due several times a second: `per_second` times.
    pub(crate) fn pace(&self, per_second: u32) {
        let hits = u32::try_from(self.stood_for.replace(0)).unwrap_or(u32::MAX);
        let wanted = (hits.saturating_mul(per_second) / TOLD_MAX).clamp(1, EVERY_MAX);
        // A crowd comes at once and leaves slowly: half the way down each time.
        let every = wanted.max(self.every.get() / 2).max(1);
        self.every.set(every);
        if self.left.get() > 2 * every {
            self.left.set(every);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks so many times, and returns how often it was told and for how many hits that stood.
    fn ask(sampler: &Sampler, hits: u32) -> (u32, u64) {
        let told = (0..hits).filter_map(|_| sampler.stands_for());
        told.fold((0, 0), |(told, sum), stands_for| (told + 1, sum + u64::from(stands_for)))
    }

    #[test]
    fn few_hits_are_all_told() {
        let sampler = Sampler::new(7);
        for _ in 0..10 {
            assert_eq!(ask(&sampler, 12), (12, 12));
            sampler.pace(5);
        }
    }

    #[test]
    fn of_a_crowd_a_bounded_number_is_told_and_stands_for_all() {
        let sampler = Sampler::new(7);
        for _ in 0..3 {
            ask(&sampler, 20_000);
            sampler.pace(5);
        }
        let (mut told, mut stood_for) = (0, 0);
        for _ in 0..50 {
            let (n, sum) = ask(&sampler, 20_000);
            (told, stood_for) = (told + n, stood_for + sum);
            sampler.pace(5);
        }
        assert!((400..=800).contains(&told), "ten seconds, 64 in each: {told}");
        assert!((900_000..=1_100_000).contains(&stood_for), "a million hits: {stood_for}");
    }

    /// Browsers ask for a page and its fifteen parts, again and again: each of them has its share.
    #[test]
    fn what_comes_in_turns_has_its_share() {
        let sampler = Sampler::new(7);
        let mut shares = [0_u64; 16];
        for round in 0..100_000_u32 {
            for share in &mut shares {
                *share += sampler.stands_for().map_or(0, u64::from);
            }
            if round % 1_000 == 0 {
                sampler.pace(5);
            }
        }
        assert!(shares.iter().all(|share| (70_000..=130_000).contains(share)), "{shares:?}");
    }
}
