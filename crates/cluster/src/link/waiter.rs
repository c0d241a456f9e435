//! The connection that waits for entries and confirmations. It only wakes: entries are read by rounds.

use std::time::Duration;

use super::{LinkError, Woken};
use crate::stream::EntryId;

/// A connection of its own that waits until there is something new.
#[derive(Debug)]
pub struct Waiter {}

impl Waiter {
    /// Waits until there are entries after `seen`, or confirmations that it has not told yet, at most for `patience`; then it returns without
    /// either. The deadline of a round trip comes on top. It is not cancel-safe: after it was dropped half-way, the waiter is to be made anew.
    ///
    /// # Errors
    /// When the connection was lost or the server does not answer. The waiter is of no use then.
    pub async fn wait(&mut self, seen: Option<EntryId>, patience: Duration) -> Result<Woken, LinkError> {
        let _ = (seen, patience);
        todo!()
    }
}
