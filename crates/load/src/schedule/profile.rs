//! A number that changes with time along straight lines: clients, or events a second.

use std::time::Duration;

/// A number that changes with time along straight lines, and then stays.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Moments and values, in the order of time; never empty, and the first is at zero. Two points at one moment are a jump.
    points: Vec<(Duration, f64)>,
    /// Whether the last point is the end of what was meant.
    ends: bool,
}

impl Profile {
    /// The same value all the time; for `time`, if it is given.
    #[must_use]
    pub fn constant(value: f64, time: Option<Duration>) -> Self {
        let mut points = vec![(Duration::ZERO, value)];
        points.extend(time.map(|time| (time, value)));
        Self { points, ends: time.is_some() }
    }

    /// From one value to another in `time`.
    #[must_use]
    pub fn ramp(from: f64, to: f64, time: Duration) -> Self {
        Self { points: vec![(Duration::ZERO, from), (time, to)], ends: true }
    }

    /// The end of what the profile describes, if it has one.
    #[must_use]
    pub fn end(&self) -> Option<Duration> {
        self.ends.then(|| self.points.last().map_or(Duration::ZERO, |point| point.0))
    }

    /// The largest value.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.points.iter().fold(0.0, |most, point| point.1.max(most))
    }

    /// The first moment at which the value is at least `value`.
    #[must_use]
    pub fn reaches(&self, value: f64) -> Option<Duration> {
        if self.points[0].1 >= value {
            return Some(Duration::ZERO);
        }
        self.points.windows(2).find(|pair| pair[1].1 >= value).map(|pair| {
            let [(begin, from), (end, to)] = [pair[0], pair[1]];
            let part = if to > from { (value - from) / (to - from) } else { 0.0 };
            begin + (end - begin).mul_f64(part.clamp(0.0, 1.0))
        })
    }

    /// The moment at which the sum over time has reached `sum`: when the event of that number is due, for a profile of events a second.
    #[must_use]
    pub fn accumulates(&self, sum: f64) -> Option<Duration> {
        let mut so_far = 0.0;
        for pair in self.points.windows(2) {
            let [(begin, from), (end, to)] = [pair[0], pair[1]];
            let time = (end - begin).as_secs_f64();
            let area = time * (from + to) / 2.0;
            if so_far + area > sum {
                // from*t + slope*t²/2 = rest
                let (rest, slope) = (sum - so_far, (to - from) / time);
                let t = if slope.abs() < 1e-12 { rest / from } else { ((from * from + 2.0 * slope * rest).max(0.0).sqrt() - from) / slope };
                return Some(begin + Duration::from_secs_f64(t.max(0.0)));
            }
            so_far += area;
        }
        let (end, value) = *self.points.last()?;
        (!self.ends && value > 0.0).then(|| end + Duration::from_secs_f64((sum - so_far) / value))
    }
}
