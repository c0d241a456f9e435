//! The stored responses that are no longer fresh, as requests that would fetch it anew.

use admin_api::{Inventory, StoredPage, StoredState};
use http::header;
use policy::{Holds, Key};
use semantics::{Timestamp, vary::Vary};
use store::{PurgeTarget, Purged};

use crate::{Record, Shared};

/// The result of counting what a purge would cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PurgeCoverage {
    /// Stored responses in memory.
    pub(crate) responses: usize,
    /// Whether the disk has nothing that is not in memory, too.
    pub(crate) complete: bool,
}

impl Shared {
    /// Lists what is stored under keys that are `wanted`, and is stale or purged: at most `max` responses. Looking keeps nothing any longer.
    ///
    /// Left out are parts of representations, what was stored for one person's fields, what members of a tier share, and what nobody can ask for again by its key alone (a
    /// mixture in `Accept`).
    pub fn stale(&self, max: usize, wanted: impl Fn(&Key<'_>) -> bool) -> Inventory {
        let now = self.clock.now();
        let mut inventory = Inventory::default();
        for resource in self.store.resources() {
            let Some(key) = Key::read(resource.key()).filter(|key| key.holds == Holds::Whole && key.tier.is_none() && wanted(key)) else {
                continue;
            };
            for stored in resource.variants() {
                let Some(state) = self.state(stored, now) else { continue };
                let Some(fields) = selecting(&key, &stored.record) else { continue };
                if inventory.pages.len() < max {
                    inventory.pages.push(StoredPage { url: key.url(), fields, state });
                } else {
                    inventory.left_off += 1;
                }
            }
        }
        inventory
    }

    /// Counts what a purge of these targets would cover of what is in memory, without what is purged already. `None`: more than `max` target URIs
    /// are stored, too many to be looked at.
    pub(crate) fn covered(&self, targets: &[PurgeTarget], max: usize) -> Option<PurgeCoverage> {
        let usage = self.store.usage();
        if usage.resources > max {
            return None;
        }
        let mut covered = 0;
        let mut on_disk = 0;
        for resource in self.store.resources() {
            let is_covered = |stored: &crate::Stored| {
                self.store.verdict(stored) != Purged::Hard && targets.iter().any(|target| target.covers(stored.scope()))
            };
            covered += resource.variants().iter().filter(|stored| is_covered(stored)).count();
            on_disk += u64::from(usage.disk_objects > 0 && self.store.tiers(self.store.hash(resource.key()), resource.key()).disk);
        }
        // Each of them has at least one file: if there are no further files, memory knows them all.
        Some(PurgeCoverage { responses: covered, complete: on_disk >= usage.disk_objects && !usage.disk_is_loading })
    }

    fn state(&self, stored: &crate::Stored, now: Timestamp) -> Option<StoredState> {
        match self.store.verdict(stored) {
            Purged::Soft | Purged::Hard => Some(StoredState::Purged),
            Purged::Doubted => Some(StoredState::InDoubt),
            Purged::No => (!stored.record.freshness.is_fresh(now)).then_some(StoredState::Stale),
        }
    }
}

/// Returns the fields of a request that selects this response. `None`: nobody else can send such a request.
fn selecting(key: &Key<'_>, record: &Record) -> Option<Vec<(String, String)>> {
    let Vary::Nominated(nominated) = &record.vary else { return None };
    let said = |value: &[u8]| String::from_utf8(value.to_vec()).ok();
    let mut fields = Vec::new();
    for (name, value) in &key.trusted_fields {
        fields.push((name.to_string(), said(value)?));
    }
    if !nominated.iter().any(|(name, _)| *name == header::ACCEPT) {
        fields.push((header::ACCEPT.to_string(), key.class.typical()?.to_owned()));
    }
    for (name, value) in nominated {
        let Some(value) = value else { continue };
        if [header::COOKIE, header::AUTHORIZATION].contains(name) {
            return None;
        }
        fields.push((name.to_string(), said(value)?));
    }
    Some(fields)
}
