//! The times at which requests are made: a pure function of time.
//!
//! A schedule knows no clock, no connection and no protocol. It says at which moments after the beginning what is due ([`Due`]), and an engine waits
//! for these moments. In a *closed* schedule, clients come and stay, and each asks again as soon as it has its answer: a slow server is asked less.
//! In an *open* one, requests or visitors come when they come, as a crowd does, and a slow server has more and more of them waiting.

mod profile;
mod read;
pub mod replay;

use std::{sync::Arc, time::Duration};

pub use self::{
    profile::Profile,
    read::{CLIENTS_MAX, PHASES_MAX, ProfileError, RATE_MAX, TIME_MAX},
};

/// Says when requests are made.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// Clients that stay and ask again as soon as they were answered: so many at a time.
    Closed {
        /// The number of clients.
        clients: Profile,
    },
    /// New visitors, each with a connection of its own, who do what a visitor does and leave.
    Arrivals {
        /// Visitors a second.
        rate: Profile,
        /// The way in which they follow one another.
        spacing: Spacing,
    },
    /// Requests over a set of connections that stay.
    Rate {
        /// Requests a second.
        rate: Profile,
        /// The way in which they follow one another.
        spacing: Spacing,
        /// The connections; more are opened if all are busy, up to this number.
        clients: u32,
    },
    /// Makes the requests of a log, at its moments.
    Replay {
        /// The moments, in order.
        moments: Arc<[ReplayedLine]>,
    },
}

/// Says how events of a rate follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spacing {
    /// They come at equal distances.
    #[default]
    Even,
    /// Independent of each other, as strangers come: a Poisson process.
    Poisson,
}

/// A line of a log that is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayedLine {
    /// The time from the beginning.
    pub at: Duration,
    /// The number of the request in the set.
    pub request: u32,
    /// The number of the visitor: requests of one visitor use the same connections.
    pub visitor: u32,
}

/// Says what happens at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEvent {
    /// A client comes and stays: it asks, waits for its answer, and asks again.
    Join,
    /// The client that came last leaves when it has its answer.
    Leave,
    /// A visitor comes with a connection of its own, does what visitors do, and leaves.
    Visit,
    /// A request is made on a connection that is free.
    Ask {
        /// The request of the set; `None` means that the set chooses.
        request: Option<u32>,
        /// The visitor whose connection is used; `None` means any.
        visitor: Option<u32>,
    },
}

/// Something that is due at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The moment, from the beginning of the run.
    pub at: Duration,
    /// The event that is due.
    pub what: ClientEvent,
}

/// One worker's part of a schedule: the parts of all workers together are the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The number of the worker, from 0.
    pub worker: u32,
    /// The number of all workers.
    pub of: u32,
}

impl Share {
    /// The whole.
    pub const ALL: Self = Self { worker: 0, of: 1 };

    /// Returns whether number `n` of all, counted from 0, is this worker's.
    fn has(self, n: u64) -> bool {
        n % u64::from(self.of.max(1)) == u64::from(self.worker)
    }
}

/// Returns the moments of a worker's events.
///
/// A Poisson process whose rate changes is one of rate 1 on another axis: that of the integral. Distances there are exponential with mean 1, and each
/// moment follows from its place on that axis, however the rate changes. Each worker makes all places (some 5 ns each) and keeps its own: that costs
/// less than a thousandth of a request, and the moments of a run are the same for any number of workers.
fn events(rate: &Profile, spacing: Spacing, share: Share, seed: u64) -> Box<dyn Iterator<Item = Duration> + Send> {
    let rate = rate.clone();
    match spacing {
        Spacing::Even => {
            let mine = (u64::from(share.worker)..).step_by(share.of.max(1) as usize);
            Box::new(mine.map_while(move |n| rate.accumulates(n as f64)))
        }
        Spacing::Poisson => {
            let mut random = fastrand::Rng::with_seed(seed ^ POISSON);
            let places = std::iter::repeat_with(move || -(1.0 - random.f64()).ln()).scan(0.0, |place, distance| {
                *place += distance;
                Some(*place)
            });
            let mine = places.zip(0_u64..).filter(move |(_, n)| share.has(*n));
            Box::new(mine.map_while(move |(place, _)| rate.accumulates(place)))
        }
    }
}

/// Keeps the random numbers of a schedule apart from others that are made of the same seed.
const POISSON: u64 = 0x9E37_79B9_7F4A_7C15;

/// The events that are due, in the order of time. They may never end: the [`Stop`](crate::Stop) does.
pub type Dues = Box<dyn Iterator<Item = Due> + Send>;

impl Schedule {
    /// Returns what is due for one worker, in the order of time. The moments depend on the seed, not on the number of workers: the parts of all
    /// workers together are always the whole.
    #[must_use]
    pub fn dues(&self, share: Share, seed: u64) -> Dues {
        match self {
            Self::Closed { clients } => {
                let mine = clients.steps().filter(move |step| share.has(step.number));
                Box::new(mine.map(|step| Due { at: step.at, what: if step.up { ClientEvent::Join } else { ClientEvent::Leave } }))
            }
            Self::Arrivals { rate, spacing } => {
                Box::new(events(rate, *spacing, share, seed).map(|at| Due { at, what: ClientEvent::Visit }))
            }
            Self::Rate { rate, spacing, .. } => {
                let what = ClientEvent::Ask { request: None, visitor: None };
                Box::new(events(rate, *spacing, share, seed).map(move |at| Due { at, what }))
            }
            Self::Replay { moments } => {
                let moments = Arc::clone(moments);
                let all = (0..moments.len()).map(move |n| moments[n]);
                let mine = all.filter(move |moment| share.has(moment.visitor.into()));
                Box::new(mine.map(|moment| Due {
                    at: moment.at,
                    what: ClientEvent::Ask { request: Some(moment.request), visitor: Some(moment.visitor) },
                }))
            }
        }
    }

    /// Returns whether requests come whether or not earlier ones were answered: then latencies count from the intended moment.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self, Self::Closed { .. })
    }

    /// Returns the moment of the last change that the schedule itself describes. A run without another [`Stop`](crate::Stop) ends there.
    #[must_use]
    pub fn end(&self) -> Option<Duration> {
        match self {
            Self::Closed { clients: profile } | Self::Arrivals { rate: profile, .. } | Self::Rate { rate: profile, .. } => profile.end(),
            Self::Replay { moments } => moments.last().map(|moment| moment.at),
        }
    }

    /// Returns the most clients at a time, where the schedule says so.
    #[must_use]
    pub fn clients_max(&self) -> Option<u32> {
        match self {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of clients, checked when it was read")]
            Self::Closed { clients } => Some(clients.most() as u32),
            Self::Rate { clients, .. } => Some(*clients),
            Self::Arrivals { .. } | Self::Replay { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn moments(schedule: &Schedule, worker: u32, of: u32, count: usize) -> Vec<u64> {
        schedule.dues(Share { worker, of }, 0).take(count).map(|due| u64::try_from(due.at.as_millis()).expect("small")).collect()
    }

    #[test]
    fn an_even_rate_is_shared_by_workers_without_a_gap() {
        let rate = Schedule::Rate { rate: Profile::constant(10.0, None), spacing: Spacing::Even, clients: 4 };
        assert_eq!(moments(&rate, 0, 2, 3), [0, 200, 400]);
        assert_eq!(moments(&rate, 1, 2, 3), [100, 300, 500]);
    }

    #[test]
    fn clients_that_stay_come_at_once_or_along_a_ramp() {
        let at_once = Schedule::Closed { clients: Profile::constant(3.0, None) };
        assert_eq!(moments(&at_once, 0, 1, 9), [0, 0, 0]);
        let ramp = Schedule::Closed { clients: Profile::ramp(0.0, 4.0, Duration::from_secs(8)) };
        assert_eq!(moments(&ramp, 0, 1, 9), [2000, 4000, 6000, 8000]);
    }

    #[test]
    fn clients_leave_along_a_falling_ramp_each_from_the_worker_that_it_came_to() {
        let hill = Schedule::Closed { clients: Profile::clients("0..4/4s,4/10s,4..0/4s").expect("a profile") };
        let of = |worker| -> Vec<_> { hill.dues(Share { worker, of: 2 }, 0).map(|due| (due.at.as_secs(), due.what)).collect() };
        assert_eq!(of(0), [(1, ClientEvent::Join), (3, ClientEvent::Join), (15, ClientEvent::Leave), (17, ClientEvent::Leave)]);
        assert_eq!(of(1), [(2, ClientEvent::Join), (4, ClientEvent::Join), (14, ClientEvent::Leave), (16, ClientEvent::Leave)]);
    }

    #[test]
    fn ten_thousand_arrivals_a_second_for_a_minute_are_six_hundred_thousand() {
        let arrivals = Schedule::Arrivals { rate: Profile::rate("10000/60s").expect("a profile"), spacing: Spacing::Even };
        assert_eq!(arrivals.dues(Share::ALL, 0).count(), 600_000);
        assert_eq!(arrivals.end(), Some(SECOND * 60));
    }

    #[test]
    fn distances_of_a_poisson_process_are_exponential() {
        let rate = Schedule::Rate { rate: Profile::constant(1000.0, None), spacing: Spacing::Poisson, clients: 1 };
        let at: Vec<f64> = rate.dues(Share::ALL, 7).take(100_001).map(|due| due.at.as_secs_f64() * 1000.0).collect();
        let distances: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = distances.iter().sum::<f64>() / 1e5;
        let variance = distances.iter().map(|distance| (distance - mean).powi(2)).sum::<f64>() / 1e5;
        // Mean and variance of an exponential distribution are 1; the standard errors are 0.003 and 0.009.
        assert!((mean - 1.0).abs() < 0.013, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.04, "variance {variance}");
        let long = distances.iter().filter(|distance| **distance > 3.0).count() as f64 / 1e5;
        assert!((long - (-3.0_f64).exp()).abs() < 0.003, "{long} of the distances are longer than three means");
    }

    #[test]
    fn counts_of_a_poisson_process_vary_as_much_as_their_mean_also_while_its_rate_changes() {
        let ramp = Schedule::Rate { rate: Profile::ramp(0.0, 200.0, SECOND * 10), spacing: Spacing::Poisson, clients: 1 };
        // Between 2 s and 3 s the rate is 50 on average.
        let counts: Vec<f64> = (0..2000)
            .map(|seed| ramp.dues(Share::ALL, seed).filter(|due| (SECOND * 2..SECOND * 3).contains(&due.at)).count() as f64)
            .collect();
        let mean = counts.iter().sum::<f64>() / 2000.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 1999.0;
        // Standard errors: 0.16 and 1.6.
        assert!((mean - 50.0).abs() < 0.7, "mean {mean}");
        assert!((variance - 50.0).abs() < 7.0, "variance {variance}");
    }

    #[test]
    fn the_seed_decides_the_moments_of_a_poisson_process() {
        let rate = Schedule::Arrivals { rate: Profile::constant(50.0, None), spacing: Spacing::Poisson };
        let of = |seed| rate.dues(Share::ALL, seed).take(100).map(|due| due.at).collect::<Vec<_>>();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    fn schedules() -> impl Strategy<Value = Schedule> {
        let phase = (0_u32..300, 0_u32..300, 1_u64..3_000);
        let profile = prop::collection::vec(phase, 1..5).prop_map(|phases| {
            Profile::of(phases.into_iter().map(|(from, to, time)| (from.into(), to.into(), Some(Duration::from_millis(time)))))
        });
        let spacing = prop_oneof![Just(Spacing::Even), Just(Spacing::Poisson)];
        let moment = (0_u64..9_000, 0_u32..9, 0_u32..50);
        prop_oneof![
            profile.clone().prop_map(|clients| Schedule::Closed { clients }),
            (profile.clone(), spacing.clone()).prop_map(|(rate, spacing)| Schedule::Arrivals { rate, spacing }),
            (profile, spacing).prop_map(|(rate, spacing)| Schedule::Rate { rate, spacing, clients: 4 }),
            prop::collection::vec(moment, 0..100).prop_map(|mut moments| {
                moments.sort_unstable();
                let moments = moments.into_iter();
                let moments = moments.map(|(at, request, visitor)| ReplayedLine { at: Duration::from_millis(at), request, visitor });
                Schedule::Replay { moments: moments.collect() }
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn the_shares_of_all_workers_together_are_the_whole_and_each_is_in_order(schedule in schedules(), of in 1_u32..5, seed: u64) {
            let whole: Vec<Due> = schedule.dues(Share::ALL, seed).collect();
            let mut together = Vec::new();
            for worker in 0..of {
                let mine: Vec<Due> = schedule.dues(Share { worker, of }, seed).collect();
                prop_assert!(mine.is_sorted_by_key(|due| due.at));
                together.extend(mine);
            }
            prop_assert!(whole.is_sorted_by_key(|due| due.at));
            let key = |due: &Due| (due.at, format!("{:?}", due.what));
            let (mut whole, mut together) = (whole, together);
            whole.sort_by_key(key);
            together.sort_by_key(key);
            prop_assert_eq!(whole, together);
        }

        #[test]
        fn as_many_even_events_are_due_by_a_moment_as_the_integral_says(
            phases in prop::collection::vec((0_u32..300, 0_u32..300, 1_u64..3_000), 1..5), millis in 0_u64..15_000,
        ) {
            let phases = phases.into_iter().map(|(from, to, time)| (from.into(), to.into(), Some(Duration::from_millis(time))));
            let rate = Profile::of(phases);
            let at = Duration::from_millis(millis);
            let schedule = Schedule::Rate { rate: rate.clone(), spacing: Spacing::Even, clients: 1 };
            let due = schedule.dues(Share::ALL, 0).take_while(|due| due.at < at).count() as f64;
            prop_assert!((due - rate.integral(at)).abs() <= 1.0 + 1e-6, "{due} of {} are due at {at:?}", rate.integral(at));
        }
    }
}
