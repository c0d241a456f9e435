//! Runs two plans alternately, in short rounds and random order, so that whatever drifts on the machine drifts for both.

use std::{ops::ControlFlow, time::Duration};

use super::{Comparison, Round, Side};
use crate::{Error, Plan, Results, Stop, Watch, results::Second};

/// The pairs of rounds of a comparison. More and shorter rounds follow drift better, and leave more of them undisturbed; but they cost time to settle.
/// Sets the number of pairs. In 30 s, 30 pairs leave half a second for each round.
pub const PAIRS: usize = 30;

/// The time of a comparison, unless another is given.
pub const TIME: Duration = Duration::from_secs(30);

/// The shortest comparison: below, rounds are too short to settle.
pub const TIME_MIN: Duration = Duration::from_secs(10);

/// The part of a round in which connections are made and not yet measured.
const SETTLE: f64 = 1.0 / 3.0;

/// Looks on while two plans are compared.
pub trait CompareWatch: Watch {
    /// Tells that a round begins.
    fn round(&mut self, round: usize, of: usize, side: Side);
}

impl CompareWatch for () {
    fn round(&mut self, _: usize, _: usize, _: Side) {}
}

/// Says for each pair of rounds whether A comes first: in half of the pairs, in random order.
pub(super) fn order(seed: u64, pairs: usize) -> Vec<bool> {
    let mut order: Vec<bool> = (0..pairs).map(|pair| pair % 2 == 0).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    order
}

/// Compares what two plans measure, in `time` altogether. Stop and warm-up of the plans are replaced for each round. It ends early if the watch says so.
///
/// # Errors
/// When a round cannot be run at all.
pub fn compare(a: &Plan, b: &Plan, time: Duration, watch: &mut dyn CompareWatch) -> Result<Comparison, Error> {
    let round = time.max(TIME_MIN) / u32::try_from(2 * PAIRS).unwrap_or(u32::MAX);
    let settle = round.mul_f64(SETTLE);
    let mut look = RoundWatch { watch, stopped: false };
    let mut rounds = Vec::new();
    let mut results: [Vec<Results>; 2] = Default::default();
    'pairs: for (pair, a_first) in order(a.seed, PAIRS).into_iter().enumerate() {
        let mut of_pair = [None, None];
        for side in if a_first { [Side::A, Side::B] } else { [Side::B, Side::A] } {
            look.watch.round(rounds.len() * 2 + usize::from(of_pair.iter().any(Option::is_some)), 2 * PAIRS, side);
            let mut plan = if side == Side::A { a.clone() } else { b.clone() };
            plan.warm_up = settle;
            plan.stop = Stop { requests: None, after: Some(round - settle) };
            // Both sides of a pair make the same random choices.
            plan.seed = a.seed.wrapping_add(pair as u64);
            let measured = crate::run(&plan, &mut look)?;
            if look.stopped {
                break 'pairs;
            }
            of_pair[side as usize] = Some(measured);
        }
        if let [Some(of_a), Some(of_b)] = of_pair {
            rounds.push(Round::new(a_first, &of_a, &of_b));
            results[0].push(of_a);
            results[1].push(of_b);
        }
    }
    let [of_a, of_b] = results;
    let mut comparison = Comparison::new(&of_a, &of_b, rounds, a.seed).map_err(|error| Error::Worker(error.to_string()))?;
    if look.stopped {
        comparison.end_early();
    }
    Ok(comparison)
}

struct RoundWatch<'a> {
    watch: &'a mut dyn CompareWatch,
    stopped: bool,
}

impl Watch for RoundWatch<'_> {
    fn second(&mut self, second: &Second) -> ControlFlow<()> {
        let flow = self.watch.second(second);
        self.stopped |= flow.is_break();
        flow
    }

    fn stops(&mut self) -> bool {
        self.stopped |= self.watch.stops();
        self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_comes_first_equally_often_and_the_seed_decides_when() {
        let first = order(1, PAIRS);
        assert_eq!(first.iter().filter(|a_first| **a_first).count(), PAIRS / 2);
        assert_eq!(first, order(1, PAIRS));
        assert_ne!(first, order(2, PAIRS));
    }
}
