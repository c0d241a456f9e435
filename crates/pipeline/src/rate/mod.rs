//! How many requests one address may send, and how the machines of a cluster share that.
//!
//! Each address has a [bucket](bucket). `governor` is not used, as its cells cannot be charged with what other machines have admitted. A request is
//! counted where it is answered: a hit where it is found ([`Pipeline::hit`](crate::Pipeline::hit)), any other request among the first
//! steps. What nobody admits changes no bucket, so a hit that is refused is asked about once more, on the long way, where it gets its answer.
//!
//! Nothing here waits for other machines. What they tell each other is a value ([`RateReport`]); who carries it is not known here.

mod bucket;
mod exchange;
#[cfg(test)]
mod model;
mod table;
mod tags;

use std::{
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    time::Duration,
};

use access::group;
use ipnet::IpNet;
use parking_lot::Mutex;
use semantics::Timestamp;

pub use self::exchange::{AddressRequests, RateReport};
use self::{table::Table, tags::Tags};

/// The time in which one line of the log tells of refusals.
const TOLD_EVERY: Duration = Duration::from_mins(1);
/// The addresses that wait to be told to other machines. Those beyond that wait until there is room. 64 KiB.
const LISTED_MAX: usize = 8_192;

/// The number of requests that one address may send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// The requests in a second, on average: more than 0.
    pub per_second: f64,
    /// The requests at once after a time of silence: at least 1.
    pub burst: f64,
}

/// The limit for requests of one address, and who is exempt from it. Loopback always is.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestLimit {
    /// The limit.
    pub rate: Rate,
    /// The networks that are exempt.
    pub exempt: Arc<[IpNet]>,
}

impl RequestLimit {
    /// Returns the address by which a request is counted: an IPv6 /64 is one. `None`: it is not counted.
    fn counted(&self, address: Option<IpAddr>) -> Option<IpAddr> {
        let address = address?.to_canonical();
        let is_exempt = address.is_loopback() || self.exempt.iter().any(|network| network.contains(&address));
        if is_exempt { None } else { group(Some(address)) }
    }
}

/// The machines that share the limits for addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitSharing {
    /// This machine has them for itself.
    #[default]
    Alone,
    /// `machines` machines share them, this one included, and tell each other what they admit.
    With {
        /// The number of machines.
        machines: u32,
    },
    /// This machine hears nothing from the others. It takes one part of `machines`.
    Apart {
        /// The number of machines.
        machines: u32,
    },
}

impl LimitSharing {
    /// Returns the number of machines: at least 1.
    #[must_use]
    pub fn machines(self) -> u32 {
        match self {
            Self::Alone => 1,
            Self::With { machines } | Self::Apart { machines } => machines.max(1),
        }
    }

    const fn to_bits(self) -> u64 {
        match self {
            Self::Alone => 0,
            Self::With { machines } => 1 << 32 | machines as u64,
            Self::Apart { machines } => 2 << 32 | machines as u64,
        }
    }

    fn from_bits(bits: u64) -> Self {
        let machines = u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(1);
        match bits >> 32 {
            0 => Self::Alone,
            1 => Self::With { machines },
            _ => Self::Apart { machines },
        }
    }
}

/// The requests of all addresses. All workers share it.
#[derive(Debug, Default)]
pub struct Rates {
    tags: Tags,
    together: AtomicU64,
    /// The limit that is in force, for what other machines tell.
    rate: Mutex<Option<Rate>>,
    /// Made with the first request that is counted.
    table: OnceLock<Table>,
    /// The numbers of the addresses that the other machines are to be told of.
    listed: Mutex<Vec<u64>>,
    /// The numbers that the other machines were told of, until it is known that they were told.
    settling: Mutex<Vec<u64>>,
    refused: AtomicU64,
    /// The time when the log told of a refusal last, and the number that was passed over in silence since.
    last_line: Mutex<Option<(Timestamp, u64)>>,
}

impl Rates {
    /// Counts a request of an address, if it is counted at all.
    ///
    /// # Errors
    /// Returns how long it is until the next one is admitted, if no other comes.
    pub(crate) fn ask(&self, limit: &RequestLimit, address: Option<IpAddr>, now: Timestamp) -> Result<(), Duration> {
        let Some(who) = limit.counted(address) else { return Ok(()) };
        let (tag, together) = (self.tags.of_requests(who), self.together());
        let asked = self.table().with(tag, limit.rate, together, now.as_millis(), |bucket| {
            let asked = bucket.ask(limit.rate, together, now.as_millis());
            if together != LimitSharing::Alone && !bucket.is_listed {
                let mut listed = self.listed.lock();
                if listed.len() < LISTED_MAX {
                    listed.push(tag);
                    bucket.is_listed = true;
                }
            }
            asked
        });
        asked.map_err(Duration::from_millis)
    }

    /// Counts a refusal, and says in the log once a minute that there are some.
    pub(crate) fn refused(&self, limit: &RequestLimit, address: Option<IpAddr>, now: Timestamp) {
        self.refused.fetch_add(1, Relaxed);
        let mut last = self.last_line.lock();
        let silent = match &mut *last {
            Some((at, silent)) if now.since(*at) < TOLD_EVERY => {
                *silent += 1;
                return;
            }
            last => last.replace((now, 0)).map_or(0, |(_, silent)| silent),
        };
        drop(last);
        let client = address.map(|address| address.to_string()).unwrap_or_default();
        tracing::warn!(client, silent, "this address sends more than {} requests in a second: it has to wait", limit.rate.per_second);
    }

    /// Returns how many requests were refused.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Returns who shares the limits.
    #[must_use]
    pub fn together(&self) -> LimitSharing {
        LimitSharing::from_bits(self.together.load(Acquire))
    }

    /// Sets the limit that is in force.
    pub(crate) fn set(&self, rate: Option<Rate>) {
        *self.rate.lock() = rate;
    }

    pub(crate) const fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Joins a cluster: addresses get the numbers that all machines with this secret give them. Only the first call counts, and only before the first
    /// request.
    pub fn join(&self, secret: [u8; 16]) {
        self.tags.set(secret);
        self.stand(LimitSharing::With { machines: 1 });
    }

    fn stand(&self, together: LimitSharing) {
        self.together.store(together.to_bits(), Release);
    }

    fn table(&self) -> &Table {
        self.table.get_or_init(Table::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(per_second: f64, burst: f64) -> RequestLimit {
        RequestLimit { rate: Rate { per_second, burst }, exempt: ["192.0.2.128/25".parse().expect("a network")].into() }
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect(text))
    }

    #[test]
    fn a_burst_is_admitted_and_then_as_many_as_flow_in() {
        let (rates, limit, start) = (Rates::default(), limit(10.0, 20.0), Timestamp::from_secs(1_000));
        let admitted = |at| (0..100).filter(|_| rates.ask(&limit, address("192.0.2.1"), at).is_ok()).count();
        assert_eq!(admitted(start), 20);
        assert_eq!(rates.ask(&limit, address("192.0.2.1"), start), Err(Duration::from_millis(100)));
        assert_eq!(admitted(start + Duration::from_millis(99)), 0);
        assert_eq!(admitted(start + Duration::from_millis(100)), 1);
        assert_eq!(admitted(start + Duration::from_millis(1_100)), 10);
        assert_eq!(admitted(start + Duration::from_secs(3_600)), 20);
        assert_eq!(rates.ask(&limit, address("192.0.2.2"), start), Ok(()), "another address");
    }

    #[test]
    fn loopback_and_exempt_networks_are_not_counted_and_an_ipv6_network_is_one() {
        let (rates, limit, now) = (Rates::default(), limit(1.0, 1.0), Timestamp::from_secs(1_000));
        for exempt in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "192.0.2.200", "::ffff:192.0.2.200"] {
            for _ in 0..3 {
                assert_eq!(rates.ask(&limit, address(exempt), now), Ok(()), "{exempt}");
            }
        }
        // A Unix socket has no address.
        assert!((0..3).all(|_| rates.ask(&limit, None, now).is_ok()));
        assert_eq!(rates.ask(&limit, address("2001:db8:0:1::1"), now), Ok(()));
        assert!(rates.ask(&limit, address("2001:db8:0:1:ffff::2"), now).is_err());
        assert_eq!(rates.ask(&limit, address("2001:db8:0:2::1"), now), Ok(()));
        assert_eq!(rates.ask(&limit, address("::ffff:192.0.2.3"), now), Ok(()));
        assert!(rates.ask(&limit, address("192.0.2.3"), now).is_err(), "the same address");
    }

    #[test]
    fn who_shares_a_limit_is_kept_in_one_word() {
        for together in [LimitSharing::Alone, LimitSharing::With { machines: 3 }, LimitSharing::Apart { machines: u32::MAX }] {
            assert_eq!(LimitSharing::from_bits(together.to_bits()), together);
        }
    }
}
