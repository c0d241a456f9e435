//! Keeps a certificate for every name that is wanted.
//!
//! [`Keeper::run`] is the loop; all that it does at one moment is [`Keeper::step`], to which the time is an argument.

mod account;
mod attempt;
mod entries;
mod errands;
mod on_demand;
mod revocation;
mod together;
mod windows;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream, stream::FuturesUnordered};
use parking_lot::Mutex;
use semantics::Timestamp;
use tokio::sync::{Notify, mpsc};

pub use self::entries::Status;
use self::{
    entries::Entry,
    errands::{ERRANDS, Errand},
    together::{OrderReason, SharedShelf},
};
use crate::{
    challenges::Challenges,
    demand::Demand,
    folder::{Folder, FolderError},
    local::LocalRoot,
    options::Options,
    sink::Sink,
    transport::Transport,
    waiting::WaitingClients,
};

/// The most orders at the same time.
const ORDERS: usize = 4;
/// The longest time between two looks at the clock: it may have been set, and a machine may have slept.
const LOOK_AT_LEAST: Duration = Duration::from_secs(10 * 60);
/// The time between two looks at what another process with the same folder wrote into it.
const LOOK_AT_OTHERS: Duration = Duration::from_secs(60);

/// Orders, stores, shows and renews the certificates of all wanted names.
pub struct Keeper {
    options: Options,
    folder: Folder,
    seed: u64,
    root: LocalRoot,
    transport: Arc<dyn Transport>,
    challenges: Challenges,
    sink: Arc<dyn Sink>,
    entries: Mutex<BTreeMap<String, Entry>>,
    /// The lock that is held by the task that registers the account, while the others wait for it.
    registering: tokio::sync::Mutex<()>,
    demand: Option<Demand>,
    errands: (mpsc::Sender<Errand>, tokio::sync::Mutex<mpsc::Receiver<Errand>>),
    waiting: WaitingClients,
    changed: Notify,
    /// The part that other machines share.
    together: Option<SharedShelf>,
}

impl Keeper {
    /// Opens the folder. Nothing is ordered yet.
    ///
    /// # Errors
    /// Fails when the folder cannot be used.
    pub fn open(options: Options, transport: Arc<dyn Transport>, challenges: Challenges, sink: Arc<dyn Sink>) -> Result<Self, FolderError> {
        let folder = Folder::open(&options.folder, &options.directory)?;
        let root = LocalRoot::new(folder.root_file("local-root.pem"), folder.root_file("local-root.key"));
        let (sender, receiver) = mpsc::channel(ERRANDS);
        Ok(Self {
            seed: folder.seed(),
            folder,
            root,
            transport,
            challenges,
            sink,
            entries: Mutex::default(),
            registering: tokio::sync::Mutex::default(),
            demand: options.demand.clone().map(Demand::new),
            errands: (sender, tokio::sync::Mutex::new(receiver)),
            waiting: WaitingClients::default(),
            changed: Notify::new(),
            together: None,
            options,
        })
    }

    /// Returns the URL of the authority's directory.
    #[must_use]
    pub fn directory(&self) -> &str {
        &self.options.directory
    }

    /// Returns the root that certifies local names.
    #[must_use]
    pub const fn root(&self) -> &LocalRoot {
        &self.root
    }

    /// Works until `stop` is ready. Orders that are running are then given up; their results so far are kept.
    pub async fn run(&self, now: impl Fn() -> Timestamp, stop: impl Future<Output = ()>) {
        let now = &now;
        let renewals = async {
            loop {
                let next = self.step(now()).await;
                let pause = next.since(now()).clamp(Duration::from_secs(1), LOOK_AT_LEAST);
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = self.changed.notified() => {}
                }
            }
        };
        // Errands run beside the orders, because somebody waits for them.
        let errands = async {
            let mut errands = self.errands.1.lock().await;
            let mut under_way = FuturesUnordered::new();
            loop {
                tokio::select! {
                    Some(errand) = errands.recv(), if under_way.len() < ORDERS => under_way.push(self.run_errand(errand, now())),
                    Some(()) = under_way.next() => self.changed.notify_one(),
                }
            }
        };
        // These run beside the orders too: what other machines have must not wait for what this one orders.
        let looks = async {
            loop {
                let next = self.look(now()).await;
                let pause = next.since(now()).clamp(Duration::from_secs(1), LOOK_AT_LEAST);
                tokio::time::sleep(pause).await;
            }
        };
        tokio::select! {
            () = renewals => {}
            () = errands => {}
            () = looks => {}
            () = self.look_up_challenges() => {}
            () = stop => {}
        }
    }

    /// Does what is due at `now`, and returns when something is due again.
    pub async fn step(&self, now: Timestamp) -> Timestamp {
        if !self.folder.is_ours() {
            self.look_at_others();
            return now + LOOK_AT_OTHERS;
        }
        self.ask_for_windows(now).await;
        let due: Vec<String> = {
            let entries = self.entries.lock();
            entries.iter().filter(|(_, entry)| !entry.busy && entry.due(now) <= now).map(|(name, _)| name.clone()).collect()
        };
        stream::iter(due).for_each_concurrent(ORDERS, |name| async move { drop(self.obtain(&name, OrderReason::Due, now).await) }).await;
        let entries = self.entries.lock();
        let next = |entry: &Entry| {
            let asks = entry.certificate.is_some().then_some(entry.ask_at);
            entry.due(now).min(asks.unwrap_or(Timestamp::from_millis(u64::MAX)))
        };
        entries.values().map(next).min().unwrap_or(now + LOOK_AT_LEAST)
    }

    fn look_at_others(&self) {
        for (name, entry) in &mut *self.entries.lock() {
            self.load_certificate(name, entry);
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: BTreeSet<String> = self.entries.lock().keys().cloned().collect();
        f.debug_struct("Keeper").field("options", &self.options).field("names", &names).finish_non_exhaustive()
    }
}
