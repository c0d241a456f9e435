//! How often somebody may be wrong.

use std::{
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use semantics::Timestamp;

/// How long it takes until one wrong password is forgiven.
const FORGIVEN_AFTER: Duration = Duration::from_secs(6);
/// The most addresses that are remembered; beyond that, the one that is forgiven soonest is forgotten. 256 KiB at worst.
const ADDRESSES_MAX: usize = 4096;

/// How many wrong passwords one address may send before it has to wait, unless somebody says another number.
pub const SPARE: u32 = 10;

/// The addresses that sent wrong passwords lately, or numbers that stand for them. For each, the moment is kept at which all is forgiven: each mistake
/// moves it. Whoever asks [groups](group) addresses first.
#[derive(Debug)]
pub struct Attempts<A = Option<IpAddr>>(HashMap<A, Timestamp>);

impl<A> Default for Attempts<A> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<A: Copy + Eq + Hash> Attempts<A> {
    /// Returns whether an address may try that may be wrong `spare` times before it has to wait.
    ///
    /// # Errors
    /// Returns how long it has to wait.
    pub fn may_try(&self, who: A, spare: u32, now: Timestamp) -> Result<(), Duration> {
        let owed = self.0.get(&who).map_or(Duration::ZERO, |forgiven| forgiven.since(now));
        match owed.checked_sub(FORGIVEN_AFTER.saturating_mul(spare.saturating_sub(1))) {
            None | Some(Duration::ZERO) => Ok(()),
            Some(wait) => Err(wait),
        }
    }

    /// Counts as many wrong passwords.
    pub fn was_wrong(&mut self, who: A, times: u32, now: Timestamp) {
        if self.0.len() >= ADDRESSES_MAX && !self.0.contains_key(&who) {
            self.0.retain(|_, forgiven| *forgiven > now);
            if self.0.len() >= ADDRESSES_MAX
                && let Some(soonest) = self.0.iter().min_by_key(|(_, forgiven)| **forgiven).map(|(who, _)| *who)
            {
                self.0.remove(&soonest);
            }
        }
        let forgiven = self.0.entry(who).or_insert(now);
        *forgiven = (*forgiven).max(now) + FORGIVEN_AFTER.saturating_mul(times);
    }
}

/// Returns the address by which attempts are counted: whoever has one address of an IPv6 /64 has them all.
#[must_use]
pub fn group(who: Option<IpAddr>) -> Option<IpAddr> {
    who.map(|address| match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))),
        v4 @ IpAddr::V4(_) => v4,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        group(Some(text.parse().expect(text)))
    }

    #[test]
    fn ten_mistakes_and_then_one_in_six_seconds() {
        let (mut attempts, who, start) = (Attempts::default(), address("192.0.2.1"), Timestamp::from_secs(1_000));
        for _ in 0..SPARE {
            assert_eq!(attempts.may_try(who, SPARE, start), Ok(()));
            attempts.was_wrong(who, 1, start);
        }
        assert_eq!(attempts.may_try(who, SPARE, start), Err(FORGIVEN_AFTER));
        assert_eq!(attempts.may_try(address("192.0.2.2"), SPARE, start), Ok(()));
        assert_eq!(attempts.may_try(who, SPARE, start + Duration::from_secs(5)), Err(Duration::from_secs(1)));
        assert_eq!(attempts.may_try(who, SPARE, start + FORGIVEN_AFTER), Ok(()));
        attempts.was_wrong(who, 1, start + FORGIVEN_AFTER);
        assert!(attempts.may_try(who, SPARE, start + FORGIVEN_AFTER).is_err());
        // A minute later all is forgiven.
        let later = start + FORGIVEN_AFTER * 20;
        for _ in 0..SPARE {
            assert_eq!(attempts.may_try(who, SPARE, later), Ok(()));
            attempts.was_wrong(who, 1, later);
        }
    }

    #[test]
    fn an_ipv6_network_is_one() {
        let (mut attempts, now) = (Attempts::default(), Timestamp::from_secs(1_000));
        for host in 0..SPARE {
            attempts.was_wrong(address(&format!("2001:db8:0:1::{host:x}")), 1, now);
        }
        assert!(attempts.may_try(address("2001:db8:0:1:ffff::1"), SPARE, now).is_err());
        assert_eq!(attempts.may_try(address("2001:db8:0:2::1"), SPARE, now), Ok(()));
    }

    #[test]
    fn there_is_room_for_so_many() {
        let (mut attempts, now) = (Attempts::default(), Timestamp::from_secs(1_000));
        for number in 0..ADDRESSES_MAX + 10 {
            attempts.was_wrong(Some(IpAddr::V4(std::net::Ipv4Addr::from_bits(u32::try_from(number).expect("small")))), 1, now);
        }
        assert_eq!(attempts.0.len(), ADDRESSES_MAX);
    }
}
