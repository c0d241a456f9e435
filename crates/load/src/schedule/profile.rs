//! A number that changes with time along straight lines: clients, or events a second.

use std::time::Duration;

/// A number that changes with time along straight lines, and then stays.
///
/// [`Profile::clients`] and [`Profile::rate`] read it from text, in phases: `500`, `0..5000/60s`, `0..5000/60s,5000/2m,5000..0/30s`.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Corners in the order of time; never empty, and the first is at zero. Two corners at one moment are a jump.
    corners: Vec<Corner>,
    /// Whether the last corner is the end of what was meant.
    ends: bool,
}

/// A point at which a line of a profile begins or ends.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Corner {
    at: Duration,
    value: f64,
    /// The integral of the profile up to here.
    sum: f64,
}

impl Profile {
    /// Makes a profile that has the same value all the time; for `time`, if it is given.
    #[must_use]
    pub fn constant(value: f64, time: Option<Duration>) -> Self {
        Self::of([(value, value, time)])
    }

    /// Makes a profile that goes from one value to another in `time`.
    #[must_use]
    pub fn ramp(from: f64, to: f64, time: Duration) -> Self {
        Self::of([(from, to, Some(time))])
    }

    /// Makes a profile that goes along straight lines from point to point, and ends at the last one. The first is at zero, and the others are in the order
    /// of time.
    #[must_use]
    pub fn through(points: &[(Duration, f64)]) -> Self {
        Self::of(points.windows(2).map(|pair| (pair[0].1, pair[1].1, Some(pair[1].0.saturating_sub(pair[0].0)))))
    }

    /// Makes a profile of phases: the value at the beginning, at the end, and the time between. A phase without a time has no end, and is the last one.
    pub(super) fn of(phases: impl IntoIterator<Item = (f64, f64, Option<Duration>)>) -> Self {
        let (mut corners, mut ends) = (Vec::new(), true);
        let (mut at, mut sum) = (Duration::ZERO, 0.0);
        for (from, to, time) in phases {
            corners.push(Corner { at, value: from, sum });
            let Some(time) = time else {
                ends = false;
                break;
            };
            at += time;
            sum += time.as_secs_f64() * (from + to) / 2.0;
            corners.push(Corner { at, value: to, sum });
        }
        // Where one line goes on from the end of the one before, one corner is enough.
        corners.dedup();
        if corners.is_empty() {
            corners.push(Corner { at, value: 0.0, sum });
        }
        Self { corners, ends }
    }

    /// Returns the moments at which its direction changes, with the values there, in the order of time.
    #[must_use]
    pub fn points(&self) -> Vec<(Duration, f64)> {
        self.corners.iter().map(|corner| (corner.at, corner.value)).collect()
    }

    /// Returns the end of what the profile describes, if it has one.
    #[must_use]
    pub fn end(&self) -> Option<Duration> {
        self.ends.then(|| self.last().at)
    }

    /// Returns the largest value.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.corners.iter().fold(0.0, |most, corner| corner.value.max(most))
    }

    /// Returns the value at a moment. At a jump it is the value after it; behind the end it is the last value.
    #[must_use]
    pub fn value(&self, at: Duration) -> f64 {
        let next = self.corners.partition_point(|corner| corner.at <= at);
        let before = self.corners[next.saturating_sub(1)];
        let Some(after) = self.corners.get(next) else { return before.value };
        before.value + (after.value - before.value) * ((at - before.at).as_secs_f64() / (after.at - before.at).as_secs_f64())
    }

    /// Returns the integral from the beginning to `at`: how many events are due by then, for a profile of events a second. Behind the end nothing is added.
    /// It is what [`accumulates`](Self::accumulates) undoes.
    #[cfg(test)]
    pub(super) fn integral(&self, at: Duration) -> f64 {
        let next = self.corners.partition_point(|corner| corner.at <= at);
        let before = self.corners[next.saturating_sub(1)];
        let time = (at - before.at).as_secs_f64();
        match self.corners.get(next) {
            Some(_) => before.sum + time * (before.value + self.value(at)) / 2.0,
            None if self.ends => before.sum,
            None => before.sum + time * before.value,
        }
    }

    /// Returns the moment at which the integral begins to exceed `sum`: when event number `sum` is due, counted from 0, for a profile of events a second.
    /// `None` means that it never does.
    #[must_use]
    pub fn accumulates(&self, sum: f64) -> Option<Duration> {
        // The first corner whose integral exceeds it: where the value is zero for a while, the event is due when the while is over.
        let next = self.corners.partition_point(|corner| corner.sum <= sum);
        let before = self.corners[next.saturating_sub(1)];
        let rest = (sum - before.sum).max(0.0);
        let Some(after) = self.corners.get(next) else {
            return (!self.ends && before.value > 0.0).then(|| before.at + Duration::from_secs_f64(rest / before.value));
        };
        // value·t + slope·t²/2 = rest, solved without a difference of nearly equal numbers, which a small slope would make.
        let time = (after.at - before.at).as_secs_f64();
        let slope = (after.value - before.value) / time;
        let root = (before.value * before.value + 2.0 * slope * rest).max(0.0).sqrt();
        let t = if rest > 0.0 { 2.0 * rest / (before.value + root) } else { 0.0 };
        Some(before.at + Duration::from_secs_f64(t.min(time)))
    }

    /// Returns the steps of a profile of clients, in the order of time: [`Step::up`] when the value reaches the client's number, down when it falls below.
    pub(super) fn steps(&self) -> impl Iterator<Item = Step> + Send + use<> {
        let first = self.corners[0];
        let start = Corner { value: 0.0, ..first };
        let corners = self.corners.clone();
        let lines = std::iter::once((start, first)).chain((1..corners.len()).map(move |n| (corners[n - 1], corners[n])));
        lines.flat_map(|(before, after)| {
            let (from, to) = (whole(before.value), whole(after.value));
            let at = move |number: u64| {
                let part = (number as f64 - before.value) / (after.value - before.value);
                before.at + (after.at - before.at).mul_f64(part.clamp(0.0, 1.0))
            };
            let ups = (from + 1..=to).map(move |number| Step { at: at(number), number: number - 1, up: true });
            let downs = (to + 1..=from).rev().map(move |number| Step { at: at(number), number: number - 1, up: false });
            ups.chain(downs)
        })
    }

    fn last(&self) -> Corner {
        self.corners[self.corners.len() - 1]
    }
}

/// A client that comes or leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) at: Duration,
    /// The number of the client, from 0.
    pub(super) number: u64,
    pub(super) up: bool,
}

/// Returns the number of whole clients in a value.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "values are not negative, and far below 2^53")]
fn whole(value: f64) -> u64 {
    value.floor() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_integral_of_lines_is_the_area_below_them() {
        let profile = Profile::of([(0.0, 10.0, Some(secs(4))), (10.0, 10.0, Some(secs(2))), (10.0, 0.0, Some(secs(10)))]);
        for (at, sum) in [(0, 0.0), (2, 5.0), (4, 20.0), (5, 30.0), (6, 40.0), (11, 77.5), (16, 90.0), (20, 90.0)] {
            assert!((profile.integral(secs(at)) - sum).abs() < 1e-9, "after {at} s: {}", profile.integral(secs(at)));
        }
    }

    #[test]
    fn an_event_due_while_the_rate_is_zero_is_due_when_it_no_longer_is() {
        let profile = Profile::of([(10.0, 10.0, Some(secs(1))), (0.0, 0.0, Some(secs(5))), (10.0, 10.0, Some(secs(1)))]);
        assert_eq!(profile.accumulates(9.0), Some(Duration::from_millis(900)));
        assert_eq!(profile.accumulates(10.0), Some(secs(6)));
        assert_eq!(profile.accumulates(19.0), Some(Duration::from_millis(6900)));
        assert_eq!(profile.accumulates(20.0), None);
    }

    #[test]
    fn a_value_jumps_where_two_phases_do_not_meet() {
        let profile = Profile::of([(5.0, 5.0, Some(secs(1))), (50.0, 50.0, None)]);
        assert_eq!([profile.value(Duration::from_millis(999)), profile.value(secs(1)), profile.value(secs(100))], [5.0, 50.0, 50.0]);
        assert_eq!(profile.end(), None);
    }

    fn profiles() -> impl Strategy<Value = Profile> {
        let value = prop_oneof![Just(0.0), (0_u32..400).prop_map(|value| f64::from(value) / 2.0)];
        let phase = (value.clone(), value, 1_u64..5_000).prop_map(|(from, to, time)| (from, to, Some(Duration::from_millis(time))));
        prop::collection::vec(phase, 1..6).prop_map(Profile::of)
    }

    proptest! {
        #[test]
        fn accumulating_undoes_the_integral(profile in profiles(), part in 0.0..1.0_f64) {
            let sum = profile.last().sum * part;
            if let Some(at) = profile.accumulates(sum) {
                // A nanosecond of the highest value is the precision.
                prop_assert!((profile.integral(at) - sum).abs() < 1e-6, "{} is not {sum}", profile.integral(at));
            } else {
                prop_assert!(sum >= profile.last().sum);
            }
        }

        #[test]
        fn at_any_time_there_are_as_many_clients_as_the_profile_has_whole_ones(profile in profiles(), millis in 0_u64..30_000) {
            let at = Duration::from_micros(millis * 1000 + 500);
            let (mut clients, mut last) = (Vec::new(), Duration::ZERO);
            for step in profile.steps() {
                prop_assert!(step.at >= last, "steps are in the order of time");
                last = step.at;
                if step.at > at {
                    break;
                }
                if step.up { clients.push(step.number) } else { prop_assert_eq!(clients.pop(), Some(step.number), "who came last leaves") }
            }
            let value = profile.value(at);
            // On a slope, the moment of a step is precise to a nanosecond only.
            let flat = profile.value(at - Duration::from_nanos(1)).to_bits() == value.to_bits();
            prop_assume!((value - value.round()).abs() > 1e-6 || flat);
            prop_assert_eq!(clients.len() as u64, whole(value), "clients at {}", value);
        }
    }
}
