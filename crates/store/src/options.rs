//! The bounds of a store. Every one of them is a promise about memory; the table in the crate's documentation adds them up.

/// The limits of a store. [`StoreOptions::with_memory`] derives everything from one number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// The most bytes of stored responses, overhead included.
    pub memory: u64,
    /// The longest body that is stored in memory, in bytes. A longer one goes to the [disk](crate::Lead::within), or streams through a
    /// window and is not kept. Never more than half of `memory`.
    pub object_max: u64,
    /// The most variants of one resource; the oldest is removed first.
    pub variants_max: usize,
    /// The most followers and readers of one flight; later requests go to the origin alone.
    pub followers_max: usize,
    /// The most keys remembered as uncacheable.
    pub uncacheable_max: usize,
    /// The most URLs and tags that the purge table tells apart. Beyond it, the oldest half becomes a purge of their whole sites.
    pub purge_targets_max: usize,
    /// The most flights open at once; a further miss goes to the origin alone.
    pub flights_max: usize,
    /// The most bytes of all bodies that are growing, overhead included. Beyond it, a growing body switches to its window and is not
    /// stored.
    pub growing_max: u64,
}

impl StoreOptions {
    /// Returns the defaults for `memory` bytes: a thirty-second part for one body (between 64 KiB and 32 MiB), a quarter more for bodies
    /// that are still arriving.
    #[must_use]
    pub const fn with_memory(memory: u64) -> Self {
        let object_max = memory / 32;
        let object_max = if object_max < 64 << 10 { 64 << 10 } else { object_max };
        let object_max = if object_max > 32 << 20 { 32 << 20 } else { object_max };
        Self {
            memory,
            object_max,
            variants_max: 8,
            followers_max: 10_000,
            uncacheable_max: 65_536,
            purge_targets_max: 65_536,
            flights_max: 1_024,
            growing_max: if memory / 4 < object_max { object_max } else { memory / 4 },
        }
    }

    /// Returns the number of locks of the memory tier. More of them contend less, but each guards its own share of `memory`, and a share
    /// must hold a few of the longest bodies or those push everything else out.
    pub(crate) fn shards(&self) -> usize {
        let shares = self.memory / self.object_max.max(1).saturating_mul(4);
        let shares = usize::try_from(shares.clamp(1, 64)).expect("at most 64");
        1 << shares.ilog2()
    }

    /// Returns the bytes that each shard may hold: rounded down, so that all of them together stay within `memory`.
    pub(crate) fn shard_bytes(&self) -> u64 {
        self.memory / self.shards() as u64
    }

    /// Returns the weight of the heaviest resource that is admitted: half of a shard. A heavier one would empty its shard for a single
    /// resource.
    pub(crate) fn resource_max(&self) -> u64 {
        self.shard_bytes() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_few_when_bodies_are_long() {
        const MIB: u64 = 1 << 20;
        // memory, object_max, shards
        for (memory, object_max, shards) in [
            (256 * MIB, 8 * MIB, 8),
            (256 * MIB, 64 * MIB, 1),
            (8 << 30, 32 * MIB, 64),
            (MIB, 64 << 10, 4),
            (0, 0, 1),
            (24 * MIB, 2 * MIB, 2),
        ] {
            let options = StoreOptions { object_max, ..StoreOptions::with_memory(memory) };
            assert_eq!(options.shards(), shards, "{memory} {object_max}");
            assert!(options.shard_bytes() * shards as u64 <= memory);
        }
    }

    #[test]
    fn a_body_of_the_greatest_length_is_admitted() {
        for memory in [1 << 20, 64 << 20, 256 << 20, 4 << 30] {
            let options = StoreOptions::with_memory(memory);
            assert!(options.object_max + 4096 <= options.resource_max(), "{memory}");
        }
    }
}
