//! Clients whose handshake waits for a certificate that is being got.
//!
//! What becomes of the certificate is decided elsewhere, and looked up there; here it is only said that it is decided.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The most clients that wait, for all names together. One more is refused at once, and comes again.
const WAITING_MAX: usize = 64;

/// The clients that wait, by the name that they wait for.
#[derive(Debug, Default)]
pub(crate) struct WaitingClients(Mutex<HashMap<String, Vec<oneshot::Sender<()>>>>);

impl WaitingClients {
    /// Adds a client that waits for a name. The second value says whether it is the first for its name. Returns `None` if too many wait.
    pub(crate) fn join(&self, name: &str) -> Option<(oneshot::Receiver<()>, bool)> {
        let mut waiting = self.0.lock();
        if waiting.values().map(Vec::len).sum::<usize>() >= WAITING_MAX {
            // Clients that have hung up do not wait any more.
            waiting.values_mut().for_each(|clients| clients.retain(|client| !client.is_closed()));
            if waiting.values().map(Vec::len).sum::<usize>() >= WAITING_MAX {
                return None;
            }
        }
        let (tell, told) = oneshot::channel();
        let clients = waiting.entry(name.to_owned()).or_default();
        clients.push(tell);
        Some((told, clients.len() == 1))
    }

    /// Tells those who wait for a name that it is decided, one way or the other.
    pub(crate) fn decided(&self, name: &str) {
        for client in self.0.lock().remove(name).into_iter().flatten() {
            // The client may have gone.
            let _ = client.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_wait_for_a_name_are_told_and_their_number_is_bounded() {
        let waiting = WaitingClients::default();
        let (mut one, first) = waiting.join("a.example").expect("room");
        let (mut two, second) = waiting.join("a.example").expect("room");
        let (mut other, _) = waiting.join("b.example").expect("room");
        assert_eq!((first, second), (true, false));
        waiting.decided("a.example");
        assert_eq!((one.try_recv(), two.try_recv()), (Ok(()), Ok(())));
        assert!(other.try_recv().is_err());
        let held: Vec<_> = (1..WAITING_MAX).map(|_| waiting.join("c.example").expect("room")).collect();
        assert!(waiting.join("d.example").is_none());
        // A client that has hung up makes room.
        drop(held);
        assert!(waiting.join("d.example").is_some());
    }
}
