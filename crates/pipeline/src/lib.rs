//! The life of a request.
//!
//! [`Pipeline::respond`] is that life, top to bottom; everything it calls is a room of its own. [`Pipeline::hit`] is its beginning cut
//! short: the same judgement and the same lookup, for the case in which nothing has to wait.
//!
//! Absent from this room: parsing, and sockets.

mod ask;
mod body;
mod changed;
mod clock;
mod coded;
mod coded_body;
mod collapse;
mod counters;
mod deliver;
mod dictionaries;
mod disk_body;
mod early_hints;
mod entry;
pub mod explain;
mod failure;
mod fetch;
mod file;
mod forward;
mod hit;
mod https;
mod interim;
mod inventory;
mod kept_body;
mod moved;
mod next;
mod note;
mod parts;
mod pipeline;
mod popularity;
mod purge;
mod question;
mod record;
mod refill;
mod refusals;
mod response_fields;
mod shared;
mod site;
mod store_body;
mod trouble;

pub use body::{Body, BodyError};
pub use clock::Clock;
pub use collapse::Collapse;
pub use counters::{BUCKET_MICROS, Counters, Durations, OUTCOMES, SiteSnapshot, Snapshot};
pub use entry::Auth;
pub use explain::Explanation;
pub use failure::Failure;
pub use hit::{Content, Hit, Known};
pub use https::{Https, Redirect};
pub use interim::Interim;
pub use inventory::{Covered, Inventory, StoredPage};
pub use note::Note;
pub use pipeline::Pipeline;
pub use purge::{Purging, TokenCheck};
pub use question::Client;
pub use record::Record;
pub use refill::{Refill, Refilling};
pub use response_fields::ResponseFields;
pub use shared::Shared;
pub use site::{Down, Parts, Route, Router, Site};

/// The store, as this room fills it.
pub type Store = store::Store<Record, Failure>;

/// One stored response, as this room fills it.
pub type Stored = store::Stored<Record>;
/// All that is stored under one key.
pub type Resource = store::Resource<Record>;
