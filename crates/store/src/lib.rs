//! Stored responses: memory tier, collapsing, generations, purge.
//!
//! One [`Store`] is shared by all workers. It sees keys, bytes, generations and tags; what a stored response *means* is the pipeline's
//! [`Record`], opaque here. Absent from this room: field parsing, any CMS, sockets, tasks, and the clock. A deadline is a number that the
//! caller made and the caller compares ([`Store::mark_uncacheable`]). Of `tokio` it uses the one-shot channel, which needs no runtime.
//!
//! With a [disk tier](DiskOptions), what is stored survives the process: see [`Store::open`].
//!
//! Three ideas carry it:
//!
//! - **A purge is a number** ([`purge`](Store::purge)). Every purge raises the generation and notes its target; a stored response knows the
//!   generation at which its fetch began. Older than a purge that covers it: purged, whenever it came in. Nothing is searched.
//! - **A hit takes one read lock** ([`get`](Store::get)), or none where a worker keeps what it serves most ([`HotPages`]). Resources are
//!   immutable and shared; writers copy them.
//! - **A crowd is one flight** ([`join`](Store::join)). One leader fetches; the others read the same growing body while it arrives.
//!
//! # Bounds
//!
//! | what | bounded by | worst case in bytes |
//! |---|---|---|
//! | stored responses | [`StoreOptions::memory`] | the same: keys, records, bodies, their forms and overhead are weighed |
//! | their eviction history | a fraction of the places | 64 per 32 KiB of `memory` (0.2 %) |
//! | growing bodies | [`StoreOptions::growing_max`] | the same, then spooled or windowed: `flights_max` x ([`WINDOW`] + one chunk) |
//! | pieces of long bodies on their way from the disk | the responses that the caller lets in | 128 KiB each: one being sent, one read ahead |
//! | open files | spooled bodies under way, and stored ones under delivery | one descriptor each, however many read it |
//! | a body being completed | one per thread | [`StoreOptions::object_max`] per thread, while its chunks are joined |
//! | a worker's hot pages | [`HotPages::new`] | its bytes, and 160 KiB of its own |
//! | counters of changes | 512 of them | 32 KiB |
//! | followers and readers | `flights_max` x `followers_max`; sooner by the requests the caller lets in | 64 each |
//! | purge targets (URL, tag) | [`StoreOptions::purge_targets_max`] | 96 each: 6 MiB for 65,536 |
//! | invalidated URLs while older fetches are open | `INVALIDATIONS_MAX`, 4,096 | 96 each: 400 KiB |
//! | purge prefixes | `PREFIXES_MAX`, 1,024 of [`PREFIX_BYTES_MAX`] | 4 MiB |
//! | uncacheable keys | [`StoreOptions::uncacheable_max`] | 16 each: 1 MiB for 65,536 |
//! | the list of files, with a disk tier | [`DiskOptions::objects_max`] | 150 each: 38 MB for 250,000 |
//! | responses waiting to be written | 64 MiB | 64 MiB, or one response; most are in memory anyway |
//! | responses just read | 1,024 readings, two at a time | half a shard of `memory` each until its first waiter is polled |

mod changes;
mod content;
mod disk;
mod fetches;
mod flight;
mod forms;
mod growing;
mod hash;
mod hot_pages;
mod index;
mod marks;
mod options;
mod purge;
mod resource;
mod spool;
mod store;
mod wakers;
mod writer;

pub use content::Content;
pub use disk::{DiskOptions, DiskState, NumbersSpent, SiteNumber, SiteNumbers, Tiers, Trouble as DiskTrouble};
pub use fetches::Fetching;
pub use flight::{Failure, FlightGuard, FlightView, Follow, Joined, Lead, Moment, Outcome};
pub use forms::{FORMS, Forms};
pub use growing::{Broken, NobodyReads, Reader, WINDOW};
pub use hash::{AsIs, AsIsHasher, KeyHash};
pub use hot_pages::{HotOrStored, HotPages, Page};
pub use options::StoreOptions;
pub use purge::{Generation, Hardness, PREFIX_BYTES_MAX, PurgeReceipt, PurgeTarget, Purged, PurgedBy};
pub use resource::{Record, Resource, Scope, Stored};
pub use spool::{DiskBody, OpenBody, Reading, Unreadable};
pub use store::{Store, Usage};
pub use writer::Writer;
