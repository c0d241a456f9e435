//! Ratios with the interval in which they lie, found by bootstrap: the data are resampled many times, and what their mean does is what it could have
//! been.

use serde::{Deserialize, Serialize};

/// The number of times that data are resampled.
const RESAMPLES: usize = 2_000;

/// The part of the values that is left out at either end of a mean: rounds in which the machine did something else count no more than the others. On a
/// machine where one round of four is disturbed, simulations find a server that is 10 % slower in 85 of 100 comparisons with a third, and in 48 with a
/// tenth; on a quiet one the intervals are a tenth wider.
const TRIMMED: f64 = 0.35;

/// The fewest values that an interval can be made of.
pub(super) const VALUES_MIN: usize = 5;

/// The factor by which one side is as large as the other, and the interval in which that lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The second side divided by the first.
    pub ratio: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Ratio {
    /// Returns whether the interval excludes that both sides are the same.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// Makes a ratio of paired differences of logarithms. None: there are fewer than five.
    pub(super) fn paired(differences: &[f64], seed: u64) -> Option<Self> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut drawn = Vec::with_capacity(differences.len());
        Self::bootstrap(differences.len(), trimmed_mean(&mut differences.to_vec()), || {
            drawn.clear();
            drawn.extend((0..differences.len()).map(|_| differences[random.usize(..differences.len())]));
            trimmed_mean(&mut drawn)
        })
    }

    /// Makes a ratio of two series of logarithms that have nothing to do with each other. Neighbours within a series are alike, so blocks of them are
    /// drawn together. None: one of them has fewer than five blocks, which is some 25 values.
    pub(super) fn unpaired(first: &[f64], second: &[f64], seed: u64) -> Option<Self> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mean = |values: &[f64]| trimmed_mean(&mut values.to_vec());
        let mut drawn = Vec::new();
        // A machine's mood lasts for several seconds: blocks of √n values keep it within one, where the n^(1/3) of theory would not.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the root of a length")]
        let block = |values: &[f64]| (values.len() as f64).sqrt().round() as usize;
        let mut draw = |values: &[f64]| {
            drawn.clear();
            while drawn.len() < values.len() {
                let begin = random.usize(..values.len());
                drawn.extend((begin..begin + block(values)).map(|at| values[at % values.len()]));
            }
            drawn.truncate(values.len());
            trimmed_mean(&mut drawn)
        };
        let fewest = first.len().min(second.len()) / block(first).max(block(second)).max(1);
        Self::bootstrap(fewest, mean(second) - mean(first), || draw(second) - draw(first))
    }

    /// Draws again and again. The percentiles that are taken as ends lie a little further outside than 2.5 % and 97.5 %, as a mean of few values asks
    /// for: the factor of n/(n-1) and Student's t instead of the normal distribution (Hesterberg, "What Teachers Should Know about the Bootstrap",
    /// 2015, section 4.1).
    fn bootstrap(values: usize, difference: f64, draw: impl FnMut() -> f64) -> Option<Self> {
        if values < VALUES_MIN || !difference.is_finite() {
            return None;
        }
        let n = values as f64;
        let outside = normal(-(n / (n - 1.0)).sqrt() * student(n - 1.0));
        let mut drawn: Vec<f64> = std::iter::repeat_with(draw).take(RESAMPLES).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of the resamples")]
        let at = (outside * RESAMPLES as f64) as usize;
        Some(Self { ratio: difference.exp(), low: drawn[at].exp(), high: drawn[RESAMPLES - 1 - at].exp() })
    }
}

/// Returns the mean of the values without the largest and smallest of them.
fn trimmed_mean(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of the values")]
    let out = (values.len() as f64 * TRIMMED) as usize;
    let kept = &values[out..values.len() - out];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// Returns the part of a normal distribution below `x` (Abramowitz and Stegun 26.2.17; the error is below 10⁻⁷).
fn normal(x: f64) -> f64 {
    if x < 0.0 {
        return 1.0 - normal(-x);
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    1.0 - density * t * (0.319_381_53 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))))
}

/// Returns the 97.5th percentile of Student's t with so many degrees of freedom (Abramowitz and Stegun 26.7.5; from 4 on, the error is below 0.01).
fn student(freedom: f64) -> f64 {
    let z = 1.959_964_f64;
    z + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_have_the_values_of_tables() {
        for (x, part) in [(0.0, 0.5), (1.0, 0.841_344_7), (-1.96, 0.024_997_9), (-3.0, 0.001_349_9)] {
            assert!((normal(x) - part).abs() < 1e-6, "{x}: {}", normal(x));
        }
        for (freedom, t) in [(4.0, 2.776), (9.0, 2.262), (19.0, 2.093), (100.0, 1.984)] {
            assert!((student(freedom) - t).abs() < 0.01, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn equal_differences_are_their_ratio_and_few_are_none() {
        let ratio = Ratio::paired(&[2.0_f64.ln(); 10], 1).expect("ten values");
        assert!([ratio.ratio, ratio.low, ratio.high].iter().all(|value| (value - 2.0).abs() < 1e-12), "{ratio:?}");
        assert_eq!(Ratio::paired(&[0.1; 4], 1), None);
        assert_eq!(Ratio::unpaired(&[0.1; 4], &[0.1; 50], 1), None);
    }

    #[test]
    fn the_seed_decides_the_interval() {
        let values: Vec<f64> = (1..20).map(|n| f64::from(n).ln() / 100.0).collect();
        assert_eq!(Ratio::paired(&values, 5), Ratio::paired(&values, 5));
        assert_ne!(Ratio::paired(&values, 5), Ratio::paired(&values, 6));
    }

    /// The noise of a machine that others use, too: it drifts over seconds, each round differs, and some rounds are disturbed.
    struct Noise {
        random: fastrand::Rng,
        drift: f64,
    }

    impl Noise {
        fn normal(&mut self) -> f64 {
            (-2.0 * (1.0 - self.random.f64()).ln()).sqrt() * (std::f64::consts::TAU * self.random.f64()).cos()
        }

        /// Returns the logarithm of what a round measures: drift of 5 % that is forgotten after some 7 rounds, 5 % of noise, and one disturbed round of 10.
        fn round(&mut self) -> f64 {
            let keeps = 0.86_f64;
            self.drift = keeps * self.drift + (1.0 - keeps * keeps).sqrt() * 0.05 * self.normal();
            let disturbed = if self.random.u32(..10) == 0 { self.random.f64() * 0.6 } else { 0.0 };
            self.drift + 0.05 * self.normal() - disturbed
        }

        fn pairs(&mut self, ratio: f64) -> Vec<f64> {
            let pair = |is_first_a: bool, noise: &mut Self| {
                let (first, second) = (noise.round(), noise.round());
                let (a, b) = if is_first_a { (first, second) } else { (second, first) };
                b + ratio.ln() - a
            };
            super::super::rounds::order(self.random.u64(..), super::super::PAIRS).into_iter().map(|a| pair(a, self)).collect()
        }
    }

    #[test]
    fn a_server_compared_with_itself_rarely_differs_and_a_slower_one_is_found() {
        let mut noise = Noise { random: fastrand::Rng::with_seed(2), drift: 0.0 };
        let runs = 100;
        let claims = (0..runs).filter(|seed| Ratio::paired(&noise.pairs(1.0), *seed).is_some_and(|ratio| ratio.differs())).count();
        let found = (0..runs).filter(|seed| Ratio::paired(&noise.pairs(0.9), *seed).is_some_and(|ratio| ratio.high < 1.0)).count();
        // 5 % are meant. At 8 %, one series of 20 runs in ten would have more than 3.
        assert!(claims <= 8, "{claims} of {runs} runs of A against A claim a difference");
        assert!(found >= 90, "{found} of {runs} runs find a server that is 10 % slower");
    }

    #[test]
    fn series_whose_neighbours_are_alike_rarely_differ_from_each_other() {
        let mut noise = Noise { random: fastrand::Rng::with_seed(3), drift: 0.0 };
        let mut series = |level: f64| -> Vec<f64> { (0..60).map(|_| noise.round() + level).collect() };
        let claims = (0..60).filter(|seed| Ratio::unpaired(&series(0.0), &series(0.0), *seed).is_some_and(|ratio| ratio.differs())).count();
        assert!(claims <= 9, "{claims} of 60");
        let found =
            (0..30).filter(|seed| Ratio::unpaired(&series(0.0), &series(-0.2), *seed).is_some_and(|ratio| ratio.high < 1.0)).count();
        assert!(found >= 27, "{found} of 30");
    }
}
