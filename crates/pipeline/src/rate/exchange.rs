//! What the machines of a cluster tell each other: requests that were admitted, and wrong passwords, by the numbers of the addresses.

use std::collections::HashSet;

use super::{LimitSharing, Rates};
use crate::Shared;

/// The report of a machine to the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RateReport {
    /// Requests.
    pub requests: Vec<AddressRequests>,
    /// Wrong passwords: the number of the address, and how many there were.
    pub wrong: Vec<(u64, u32)>,
}

/// The requests of one address since the last exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRequests {
    /// The number of the address.
    pub address: u64,
    /// The requests that were admitted.
    pub admitted: u32,
    /// The requests that were asked for: at least as many as were admitted.
    pub asked: u32,
}

impl Shared {
    /// Takes what the other machines have not been told yet: at most `addresses_max` addresses, of each kind, those with the most requests first. What is
    /// left stays for the next time.
    ///
    /// A machine that is apart tells nothing: what it admits is its own part.
    pub fn tell_others(&self, addresses_max: usize) -> RateReport {
        if matches!(self.rates.together(), LimitSharing::Apart { .. }) {
            return RateReport::default();
        }
        RateReport { requests: self.rates.tell(addresses_max), wrong: self.logins.tell(addresses_max) }
    }

    /// Takes what the other machines have told, when they have this one's, too: an exchange is over.
    pub fn hear_others(&self, reports: &[RateReport], machines: u32) {
        let together = LimitSharing::With { machines };
        if !matches!(self.rates.together(), LimitSharing::With { .. }) {
            // What was admitted apart was within this machine's part.
            let _ = (self.rates.tell(usize::MAX), self.logins.tell(usize::MAX));
        }
        self.rates.stand(together);
        let now = self.clock.now();
        self.rates.hear(reports.iter().flat_map(|report| &report.requests), together, now.as_millis());
        for (address, count) in reports.iter().flat_map(|report| &report.wrong) {
            self.logins.hear(*address, *count, now);
        }
    }

    /// Notes that nothing was heard of the other machines for so long that each takes its part: one of `machines`.
    pub fn stand_apart(&self, machines: u32) {
        self.rates.stand(LimitSharing::Apart { machines });
    }
}

impl Rates {
    pub(super) fn tell(&self, addresses_max: usize) -> Vec<AddressRequests> {
        let Some(table) = self.table.get() else { return Vec::new() };
        let mut listed = std::mem::take(&mut *self.listed.lock());
        if listed.len() > addresses_max {
            // A bucket that was lost to another address has nothing to tell.
            let mut by_asked: Vec<(u32, u64)> =
                listed.iter().filter_map(|tag| Some((table.find(*tag, |bucket| bucket.untold().asked)?, *tag))).collect();
            by_asked.sort_unstable_by_key(|(asked, _)| std::cmp::Reverse(*asked));
            listed = by_asked.into_iter().map(|(_, tag)| tag).collect();
            let rest = listed.split_off(addresses_max.min(listed.len()));
            self.listed.lock().extend(rest);
        }
        let mut told: Vec<AddressRequests> = Vec::with_capacity(listed.len());
        for tag in listed {
            let untold = table.find(tag, |bucket| {
                bucket.is_listed = false;
                bucket.tell()
            });
            if let Some(untold) = untold.filter(|untold| untold.asked > 0) {
                told.push(AddressRequests { address: tag, admitted: untold.admitted, asked: untold.asked });
            }
        }
        *self.settling.lock() = told.iter().map(|told| told.address).collect();
        told
    }

    pub(super) fn hear<'a>(&self, told: impl Iterator<Item = &'a AddressRequests>, together: LimitSharing, now: u64) {
        let mut settling: HashSet<u64> = std::mem::take(&mut *self.settling.lock()).into_iter().collect();
        let Some(rate) = *self.rate.lock() else { return };
        let table = self.table();
        for AddressRequests { address, admitted, asked } in told {
            table.with(*address, rate, together, now, |bucket| bucket.charge(*admitted, *asked, rate, together, now));
            settling.insert(*address);
        }
        for tag in settling {
            table.find(tag, |bucket| bucket.settle(rate, together, now));
        }
    }
}
