//! When requests are made: a pure function of time.
//!
//! A schedule knows no clock, no connection and no protocol. It says at which moments after the beginning what is due ([`Due`]), and an engine waits
//! for these moments. In a *closed* schedule, clients come and stay, and each asks again as soon as it has its answer: a slow server is asked less.
//! In an *open* one, requests or visitors come when they come, as a crowd does, and a slow server has more and more of them waiting.

mod profile;

use std::{sync::Arc, time::Duration};

pub use self::profile::Profile;

/// When requests are made.
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
        /// How they follow one another.
        spacing: Spacing,
    },
    /// Requests over a set of connections that stay.
    Rate {
        /// Requests a second.
        rate: Profile,
        /// How they follow one another.
        spacing: Spacing,
        /// The connections; more are opened if all are busy, up to this number.
        clients: u32,
    },
    /// What a log says, at its moments.
    Replay {
        /// The moments, in order.
        moments: Arc<[Moment]>,
    },
}

/// How events of a rate follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spacing {
    /// At equal distances.
    #[default]
    Even,
    /// Independent of each other, as strangers come: a Poisson process.
    Poisson,
}

/// A line of a log that is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// When, from the beginning.
    pub at: Duration,
    /// Which request of the set.
    pub request: u32,
    /// Whose: requests of one visitor use the same connections.
    pub visitor: u32,
}

/// What happens at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A client comes and stays: it asks, waits for its answer, and asks again.
    Join,
    /// The client that came last leaves when it has its answer.
    Leave,
    /// A visitor comes with a connection of its own, does what visitors do, and leaves.
    Visit,
    /// A request is made on a connection that is free.
    Ask {
        /// Which request of the set; none: as the set chooses.
        request: Option<u32>,
        /// Whose connection; none: any.
        visitor: Option<u32>,
    },
}

/// Something that is due at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// When, from the beginning of the run.
    pub at: Duration,
    /// What.
    pub what: What,
}

/// One worker's part of a schedule: the parts of all workers together are the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Which worker, from 0.
    pub worker: u32,
    /// Of how many.
    pub of: u32,
}

impl Share {
    /// The whole.
    pub const ALL: Self = Self { worker: 0, of: 1 };
}

/// What is due, in the order of time. It may never end: the [`Stop`](crate::Stop) does.
pub type Dues = Box<dyn Iterator<Item = Due> + Send>;

impl Schedule {
    /// What is due for one worker, in the order of time.
    #[must_use]
    pub fn dues(&self, share: Share, seed: u64) -> Dues {
        let _ = seed;
        match self {
            Self::Closed { clients } => {
                let clients = clients.clone();
                let mine = (u64::from(share.worker)..).step_by(share.of as usize);
                Box::new(mine.map_while(move |n| clients.reaches(n as f64 + 1.0)).map(|at| Due { at, what: What::Join }))
            }
            Self::Arrivals { rate, .. } => {
                let rate = rate.clone();
                let mine = (u64::from(share.worker)..).step_by(share.of as usize);
                Box::new(mine.map_while(move |n| rate.accumulates(n as f64)).map(|at| Due { at, what: What::Visit }))
            }
            Self::Rate { rate, .. } => {
                let rate = rate.clone();
                let mine = (u64::from(share.worker)..).step_by(share.of as usize);
                Box::new(
                    mine.map_while(move |n| rate.accumulates(n as f64))
                        .map(|at| Due { at, what: What::Ask { request: None, visitor: None } }),
                )
            }
            Self::Replay { moments } => {
                let moments = Arc::clone(moments);
                let all = (0..moments.len()).map(move |n| moments[n]);
                Box::new(
                    all.filter(move |moment| moment.visitor % share.of == share.worker).map(|moment| Due {
                        at: moment.at,
                        what: What::Ask { request: Some(moment.request), visitor: Some(moment.visitor) },
                    }),
                )
            }
        }
    }

    /// Whether requests come whether or not earlier ones were answered: then latencies count from the intended moment.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self, Self::Closed { .. })
    }

    /// The moment of the last change that the schedule itself describes. A run without another [`Stop`](crate::Stop) ends there.
    #[must_use]
    pub fn end(&self) -> Option<Duration> {
        match self {
            Self::Closed { clients: profile } | Self::Arrivals { rate: profile, .. } | Self::Rate { rate: profile, .. } => profile.end(),
            Self::Replay { moments } => moments.last().map(|moment| moment.at),
        }
    }

    /// The most clients at a time, where the schedule says so.
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
    use super::*;

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
}
