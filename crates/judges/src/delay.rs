//! How long each request waits, and what a load tester must therefore find.

use std::time::Duration;

/// How long the server lets each request wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delay {
    /// All the same.
    Fixed(Duration),
    /// Most wait `fast`; the last of each `every` requests waits `slow`.
    Bimodal {
        /// The usual delay.
        fast: Duration,
        /// The other one.
        slow: Duration,
        /// One request of so many is slow.
        every: u64,
    },
    /// A server that stands still once: who comes in that time waits until it is over, and then the usual delay.
    Stall {
        /// The usual delay.
        usual: Duration,
        /// When it begins, from the first request.
        begins: Duration,
        /// How long it takes.
        lasts: Duration,
    },
}

impl Delay {
    /// Returns the delay of the request with this number, from 0, that arrives `at` after the first one.
    #[must_use]
    pub fn of(&self, number: u64, at: Duration) -> Duration {
        match *self {
            Self::Fixed(delay) => delay,
            Self::Bimodal { fast, slow, every } => {
                if number % every == every - 1 {
                    slow
                } else {
                    fast
                }
            }
            Self::Stall { usual, begins, lasts } => {
                let ends = begins + lasts;
                if at >= begins && at < ends { usual + (ends - at) } else { usual }
            }
        }
    }

    /// Computes what even arrivals find: `requests` at `rate` a second on `connections`, one request at a time on each. Each request is due at its moment
    /// and is sent then, or as soon as a connection is free. Returns the latencies from the due moment, and from the moment of sending.
    #[must_use]
    pub fn percentiles(&self, rate: f64, requests: u64, connections: usize) -> (Percentiles, Percentiles) {
        // When each connection is free again. Requests wait for the one that is free first, in the order in which they were due.
        let mut free = std::collections::BinaryHeap::from(vec![std::cmp::Reverse(Duration::ZERO); connections]);
        let (mut from_due, mut from_sent) = (Vec::new(), Vec::new());
        for number in 0..requests {
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let due = Duration::from_secs_f64(number as f64 / rate);
            let std::cmp::Reverse(earliest) = free.pop().expect("there is a connection");
            let sent = due.max(earliest);
            let ended = sent + self.of(number, sent);
            free.push(std::cmp::Reverse(ended));
            from_due.push(ended - due);
            from_sent.push(ended - sent);
        }
        (Percentiles::of(from_due), Percentiles::of(from_sent))
    }
}

/// Times in order of length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Percentiles(Vec<Duration>);

impl Percentiles {
    /// Puts times in order.
    #[must_use]
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// Returns the shortest time that at least `quantile` of all do not exceed: 0.99 is the 99th percentile.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a rank, below the number of times"
    )]
    pub fn at(&self, quantile: f64) -> Duration {
        // Without the slack, 0.999 of 1,000 would be rank 1,000: 0.999 is a little more than that in binary.
        let rank = (self.0.len() as f64 * quantile - 1e-9).ceil() as usize;
        self.0.get(rank.clamp(1, self.0.len().max(1)) - 1).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    #[test]
    fn a_percentile_is_the_shortest_time_that_its_share_does_not_exceed() {
        let times = Percentiles::of((1..=1000).map(ms).collect());
        assert_eq!([0.5, 0.99, 0.999, 1.0].map(|quantile| times.at(quantile)), [ms(500), ms(990), ms(999), ms(1000)]);
    }

    #[test]
    fn a_fixed_delay_is_every_percentile() {
        let (due, sent) = Delay::Fixed(ms(20)).percentiles(100.0, 300, 50);
        assert_eq!((due.at(0.5), due.at(0.999), sent.at(0.999)), (ms(20), ms(20), ms(20)));
    }

    #[test]
    fn one_slow_request_of_fifty_is_the_99th_percentile_and_not_the_95th() {
        let (due, _) = Delay::Bimodal { fast: ms(5), slow: ms(200), every: 50 }.percentiles(100.0, 1000, 100);
        assert_eq!((due.at(0.95), due.at(0.98), due.at(0.99)), (ms(5), ms(5), ms(200)));
    }

    /// 10 s at 100/s; who comes in the two seconds from 4.005 s on waits for what is left of them: 1,995 ms, 1,985 ms, ...
    #[test]
    fn a_stall_is_waited_for_by_all_who_come_in_it() {
        let stall = Delay::Stall { usual: ms(5), begins: ms(4005), lasts: ms(2000) };
        let (due, sent) = stall.percentiles(100.0, 1000, 1000);
        assert_eq!(due.at(1.0), ms(2000)); // at 4.010 s: 1,995 ms, and the usual 5
        assert_eq!(due.at(0.999), ms(1990));
        assert_eq!(due.at(0.9), ms(1000)); // 100 of the 200 wait longer than a second
        assert_eq!(due.at(0.8), ms(5));
        assert_eq!(due, sent);
    }

    /// With one connection, one request waits for the server and 199 for the connection: who measures from the moment of sending does not see them.
    #[test]
    fn what_waits_for_a_connection_is_late_from_its_due_moment_alone() {
        let stall = Delay::Stall { usual: Duration::ZERO, begins: ms(4005), lasts: ms(2000) };
        let (due, sent) = stall.percentiles(100.0, 1000, 1);
        assert_eq!((due.at(0.999), sent.at(0.999), sent.at(1.0)), (ms(1985), ms(0), ms(1995)));
    }
}
