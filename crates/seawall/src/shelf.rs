//! The place where `acme` and `edge` meet the cluster: certificates and the keys of tickets on the shelf that the machines share.

use std::{
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use acme::{ShelfError, ShelfLock, Shelved, Shelving, Version};
use cluster::{shelf, tickets::Tickets};
use edge::tls::{TicketKeys, Tls};
use tokio::{runtime::Builder, sync::oneshot};

/// The time between two looks at the keys of tickets. They are known for hours before they are used.
const LOOK: Duration = Duration::from_secs(10);

/// The shelf of the cluster, as `acme` knows shelves.
#[derive(Debug)]
pub(crate) struct Certificates(pub(crate) shelf::Shelf);

struct HeldLock(shelf::Lock);

fn failed(error: shelf::ShelfError) -> ShelfError {
    match error {
        shelf::ShelfError::Refused { .. } => ShelfError::Foreign(error.to_string()),
        shelf::ShelfError::Link(_) | shelf::ShelfError::TooLong(_) => ShelfError::Unreachable(error.to_string()),
    }
}

impl acme::Shelf for Certificates {
    fn get<'a>(&'a self, name: &'a str) -> Shelving<'a, Option<Shelved>> {
        Box::pin(async move {
            let kept = self.0.get(name).await.map_err(failed)?;
            Ok(kept.map(|kept| Shelved { value: kept.value.to_vec(), version: Version(kept.version.0) }))
        })
    }

    fn put<'a>(&'a self, name: &'a str, value: Vec<u8>, keep: Duration) -> Shelving<'a, ()> {
        Box::pin(async move { self.0.put(name, &value, keep).await.map(drop).map_err(failed) })
    }

    fn swap<'a>(&'a self, name: &'a str, before: Option<&'a Version>, value: Vec<u8>, keep: Duration) -> Shelving<'a, bool> {
        Box::pin(async move {
            let put = match before {
                Some(Version(before)) => self.0.put_instead_of(name, shelf::Version(*before), &value, keep).await,
                None => self.0.put_if_absent(name, &value, keep).await,
            };
            put.map(|put| put.is_some()).map_err(failed)
        })
    }

    fn lock<'a>(&'a self, name: &'a str, keep: Duration) -> Shelving<'a, Option<Box<dyn ShelfLock>>> {
        Box::pin(async move {
            let lock = self.0.lock(name, keep).await.map_err(failed)?;
            Ok(lock.map(|lock| Box::new(HeldLock(lock)) as _))
        })
    }
}

impl ShelfLock for HeldLock {
    fn number(&self) -> u64 {
        self.0.number()
    }

    fn renew(&self, keep: Duration) -> Shelving<'_, bool> {
        Box::pin(async move { self.0.renew(keep).await.map_err(failed) })
    }

    fn release(self: Box<Self>) -> Shelving<'static, ()> {
        Box::pin(async move { self.0.release().await.map(drop).map_err(failed) })
    }
}

/// The keys of tickets, shared while this lives. Dropping it ends its thread; the keys in use stay.
#[derive(Debug)]
pub(crate) struct SharedTickets {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SharedTickets {
    /// Shares the keys with the machines that have the same shelf.
    pub(crate) fn start(shelf: shelf::Shelf, tls: Tls) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, mut stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("tickets".to_owned()).spawn(move || {
            runtime.block_on(async {
                let mut tickets = Tickets::new(shelf);
                loop {
                    tokio::select! {
                        _ = &mut stopped => return,
                        has_changed = tickets.look(Instant::now()) => if has_changed {
                            let keys = tickets.ring().map(|ring| TicketKeys { current: *ring.current(), accepted: ring.accepted() });
                            tls.share_tickets(keys.as_ref());
                        }
                    }
                    tokio::select! {
                        _ = &mut stopped => return,
                        () = tokio::time::sleep(LOOK) => {}
                    }
                }
            });
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for SharedTickets {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
