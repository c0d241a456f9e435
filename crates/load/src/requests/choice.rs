//! Chooses by weight.

/// Chooses among numbered things by their weights, in the same time however many there are (the alias method of Walker and Vose).
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    /// The columns: for each one, the share of it that is its own, as a part of 2^32, and whose the rest is.
    columns: Vec<(u32, u32)>,
}

impl Choice {
    /// Prepares a choice among as many things as there are weights. Those without weight are never chosen, unless no weight is above zero.
    #[must_use]
    pub(crate) fn new(weights: &[f64]) -> Self {
        let sum: f64 = weights.iter().sum();
        let count = weights.len() as f64;
        let mut left: Vec<f64> = weights.iter().map(|weight| if sum > 0.0 { weight * count / sum } else { 1.0 }).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..left.len()).partition(|&n| left[n] < 1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of one column, below 1")]
        let share = |part: f64| (part * f64::from(u32::MAX)) as u32;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut columns: Vec<(u32, u32)> = (0..left.len()).map(|n| (u32::MAX, number(n))).collect();
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            columns[poor] = (share(left[poor]), number(rich));
            left[rich] -= 1.0 - left[poor];
            if left[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        // Rounding may leave something without weight alone in its column.
        for n in small {
            if weights[n] <= 0.0 && sum > 0.0 {
                let other = weights.iter().position(|weight| *weight > 0.0).unwrap_or_default();
                columns[n] = (0, number(other));
            }
        }
        Self { columns }
    }

    /// Chooses one at random. Returns `None` if there is nothing to choose from.
    #[must_use]
    pub(crate) fn choose(&self, random: &mut fastrand::Rng) -> Option<usize> {
        if self.columns.len() <= 1 {
            return (!self.columns.is_empty()).then_some(0);
        }
        let column = random.usize(..self.columns.len());
        let (own, other) = self.columns[column];
        Some(if own == u32::MAX || random.u32(..) < own { column } else { other as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_follow_the_weights() {
        let choice = Choice::new(&[1.0, 0.0, 3.0, 6.0]);
        let mut random = fastrand::Rng::with_seed(7);
        let mut counts = [0_i32; 4];
        for _ in 0..100_000 {
            counts[choice.choose(&mut random).expect("there is something")] += 1;
        }
        assert_eq!(counts[1], 0);
        // Four standard deviations of a binomial with n = 100,000.
        for (count, expected, bound) in [(counts[0], 10_000, 380), (counts[2], 30_000, 580), (counts[3], 60_000, 620)] {
            assert!((count - expected).abs() < bound, "{counts:?}");
        }
    }

    #[test]
    fn nothing_one_thing_and_no_weights() {
        let mut random = fastrand::Rng::with_seed(7);
        assert_eq!(Choice::new(&[]).choose(&mut random), None);
        assert_eq!(Choice::new(&[0.0]).choose(&mut random), Some(0));
        let all: std::collections::BTreeSet<_> = (0..100).filter_map(|_| Choice::new(&[0.0, 0.0]).choose(&mut random)).collect();
        assert_eq!(all.len(), 2);
    }
}
