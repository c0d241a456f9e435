//! Turns values into positions, and finds round values to write beside an axis.

/// Says how values become positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// Goes from zero, evenly.
    Linear {
        /// The value at the far end.
        most: f64,
    },
    /// Goes by powers of ten.
    Log {
        /// The value at the near end.
        least: f64,
        /// The value at the far end.
        most: f64,
    },
}

/// The ratio between the largest and the smallest value from which on an even scale would hide the small ones.
const LOG_FROM: f64 = 30.0;

impl Scale {
    /// Makes a linear scale that reaches a round value from `most` upwards.
    pub(super) fn linear(most: f64) -> Self {
        let most = if most > 0.0 && most.is_finite() { most } else { 1.0 };
        let step = step(most);
        Self::Linear { most: (most / step).ceil() * step }
    }

    /// Makes a scale for times: by powers of ten if they differ much. It uses values above zero.
    pub(super) fn of_times(values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values
            .filter(|value| *value > 0.0 && value.is_finite())
            .fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
        if most < least * LOG_FROM {
            return Self::linear(most);
        }
        let round = |value: f64, up: bool| {
            let power = 10_f64.powf(value.log10().floor());
            let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
            if up {
                steps.into_iter().find(|step| *step >= value * 0.999).unwrap_or(power * 10.0)
            } else {
                steps.into_iter().rev().find(|step| *step <= value * 1.001).unwrap_or(power)
            }
        };
        Self::Log { least: round(least, false), most: round(most, true) }
    }

    /// Returns where a value is: 0 is the near end, 1 the far one.
    pub(super) fn at(&self, value: f64) -> f64 {
        let part = match *self {
            Self::Linear { most } => value / most,
            Self::Log { least, most } => (value.max(least) / least).ln() / (most / least).ln(),
        };
        if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
    }

    pub(super) const fn is_log(&self) -> bool {
        matches!(self, Self::Log { .. })
    }

    /// Returns round values to write beside the axis.
    pub(super) fn marks(&self) -> Vec<f64> {
        match *self {
            Self::Linear { most } => {
                let step = step(most);
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most seven")]
                let count = (most / step).round() as u32;
                (0..=count).map(|n| f64::from(n) * step).collect()
            }
            Self::Log { least, most } => {
                let decades = (most / least).log10();
                let steps: &[f64] = if decades < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let mut power = 10_f64.powf(least.log10().floor());
                let mut marks = Vec::new();
                while power <= most * 1.001 {
                    marks.extend(steps.iter().map(|step| step * power).filter(|mark| *mark >= least * 0.999 && *mark <= most * 1.001));
                    power *= 10.0;
                }
                marks
            }
        }
    }
}

/// Returns the distance of marks: 1, 2 or 5 times a power of ten, so that there are three to six.
fn step(most: f64) -> f64 {
    let rough = most / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= rough * 0.999).unwrap_or(power * 10.0)
}

/// Marks of a time axis that is `length` seconds long: their distance.
pub(super) fn time_step(length: f64, marks_max: f64) -> f64 {
    let steps =
        [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 21_600.0, 86_400.0];
    steps.into_iter().find(|step| length / step <= marks_max).unwrap_or_else(|| length.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_few() {
        for most in [0.0, 0.003, 0.9, 1.0, 7.0, 99.0, 2871.0, 13_464.0, 1e9] {
            let scale = Scale::linear(most);
            let marks = scale.marks();
            assert!((2..=7).contains(&marks.len()), "{most}: {marks:?}");
            assert!(scale.at(most) <= 1.0 && (most == 0.0 || scale.at(most) > 0.7), "{most}: {marks:?}");
            assert_eq!(marks[0], 0.0);
        }
        assert_eq!(Scale::linear(2871.0).marks(), [0.0, 1000.0, 2000.0, 3000.0]);
    }

    #[test]
    fn times_that_differ_much_are_shown_by_powers_of_ten() {
        assert_eq!(Scale::of_times([10.0, 40.0].into_iter()), Scale::Linear { most: 40.0 });
        assert_eq!(Scale::of_times([12.0, 2046.0].into_iter()), Scale::Log { least: 10.0, most: 5000.0 });
        let scale = Scale::Log { least: 10.0, most: 1000.0 };
        assert_eq!(scale.marks(), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
        assert!((scale.at(100.0) - 0.5).abs() < 1e-9);
        assert_eq!(scale.at(0.0), 0.0);
        assert_eq!(Scale::Log { least: 0.01, most: 10_000.0 }.marks().len(), 7);
    }

    #[test]
    fn no_time_at_all_has_a_scale_too() {
        let scale = Scale::of_times(std::iter::empty());
        assert_eq!(scale.at(0.0), 0.0);
        assert!(!scale.marks().is_empty());
    }
}
