//! The connection that waits for entries and confirmations. It only wakes: entries are read by rounds.

use std::{sync::Arc, time::Duration};

use redis::cmd;

use super::{CONFIRMATION, LinkError, Woken, connection::Connection, engine::Engine, mend::mended, reply};
use crate::stream::EntryId;

/// The most entries and the most confirmations that one waking brings.
const AT_ONCE_MAX: usize = 32;

/// A connection of its own that waits until there is something new.
#[derive(Debug)]
pub struct Waiter {
    engine: Engine,
    connection: Arc<Connection>,
    /// The last entry that it has told of.
    told: EntryId,
    /// The last confirmation that it has told of.
    confirmed: EntryId,
}

impl Waiter {
    /// Begins to wait after the confirmations that are there.
    pub(super) async fn begin(engine: Engine, connection: Arc<Connection>) -> Result<Self, LinkError> {
        let deadline = engine.deadline();
        let mut last = cmd("XREVRANGE");
        last.arg(&engine.keys().confirmed).arg("+").arg("-").arg("COUNT").arg(1);
        let last = reply::entries(mended(&engine, connection.one(last, deadline)).await?, CONFIRMATION);
        let last = last.ok_or_else(|| connection.garbled("a list of confirmations"))?;
        let confirmed = last.last().map_or_else(EntryId::default, |(id, _)| *id);
        Ok(Self { engine, connection, told: EntryId::default(), confirmed })
    }

    /// Waits until there are entries after `seen`, or confirmations that it has not told yet, at most for `patience`; then it returns without
    /// either. It tells of an entry only once. The deadline of a round trip comes on top. It is not cancel-safe: after it was dropped half-way, the
    /// waiter is to be made anew.
    ///
    /// # Errors
    /// When the connection was lost or the server does not answer. The waiter is of no use then.
    pub async fn wait(&mut self, seen: EntryId, patience: Duration) -> Result<Woken, LinkError> {
        let keys = self.engine.keys();
        // 0 would be for ever.
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut wait = cmd("XREAD");
        wait.arg("COUNT").arg(AT_ONCE_MAX).arg("BLOCK").arg(millis).arg("STREAMS").arg(&keys.purges).arg(&keys.confirmed);
        wait.arg(seen.max(self.told).to_string()).arg(self.confirmed.to_string());
        let reply = mended(&self.engine, self.connection.one(wait, patience + self.engine.deadline())).await?;
        let garbled = || self.connection.garbled("a list of streams");
        let mut woken = Woken::default();
        for stream in reply::list(reply).ok_or_else(garbled)? {
            let mut parts = reply::list(stream).ok_or_else(garbled)?.into_iter();
            let (Some(key), Some(entries)) = (parts.next().and_then(reply::bytes), parts.next()) else { return Err(garbled()) };
            let entries = reply::entries(entries, CONFIRMATION).ok_or_else(garbled)?;
            let Some((last, _)) = entries.last().cloned() else { continue };
            if key == keys.confirmed {
                self.confirmed = last;
                let sealed = entries.iter().filter_map(|(_, sealed)| sealed.as_ref());
                woken.confirmations.extend(sealed.filter_map(|sealed| self.engine.seals().read_confirmation(sealed)));
            } else {
                self.told = last;
                woken.entries = true;
            }
        }
        Ok(woken)
    }
}
