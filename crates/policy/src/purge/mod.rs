//! Purges, as values: the [order](Order) that everybody makes who wants something purged, the [dialects](Dialect) in which plugins ask for
//! one, and the [signals](Signals) of sources that say by themselves what has changed.
//!
//! Carrying an order out is not done here, and neither is the question of who may give one.

mod address;
mod dialect;
mod fields;
mod ghost;
mod order;
mod signals;
mod webhook;
mod wordpress;

pub use address::{Address, HostName};
pub use dialect::{Dialect, KEYS_MAX, Misunderstood};
pub(crate) use dialect::{below, is_purge};
pub use fields::{ITEMS_MAX, IsOwnHost, RequestedPurge, is_for_sources_only, items};
pub use ghost::{shown_of, written_addresses};
pub use order::{BadWhat, Maker, Order, Sites, What};
pub use signals::{Addresses, Signal, Signals, Withdrawal, WriteSubject};
pub use webhook::{Signed, Webhook, WebhookFormat, WebhookRefusal};
pub use wordpress::{AnswerContent, WriteAnswer, WriteAttempt, WriteContent, WriteEffect};
