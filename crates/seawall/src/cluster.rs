//! This machine's part in a cluster: what `[cluster]` starts, and what the other machines have done here.
//!
//! The cluster's own thread calls [`Here`]; it must never wait for a disk that has stopped. So the position is written by a thread of its own, which
//! writes the newest one that there is.

use std::{
    collections::BTreeSet,
    fmt,
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use admin::{ClusterState, Spread};
use anyhow::Context;
use cluster::{
    Cluster, Local, Options,
    link::{Address, Engine, EngineOptions, Examination, Secret},
    shelf::Shelf,
    stream::Position,
    tier::{
        READ_DEADLINE, TierOptions,
        bucket::{self, BucketExamination, BucketOptions},
    },
};
use origins::server::Budget;
use parking_lot::{Condvar, Mutex};
use pipeline::{Acknowledgement, Machines, Shared};
use policy::purge::Order;
use serde::{Deserialize, Serialize};
use store::DiskState;
use tokio::runtime::Builder;

use crate::{config::settings, shared_limits::SharedLimits, tier::SharedTier};

/// The file of the position, in the folder of stored responses.
const FILE: &str = "cluster.json";
const TEMPORARY: &str = "cluster.json.new";
/// The version of the file.
const VERSION: u32 = 2;
/// The largest file that is read: with the numbers of 65,536 sites.
const FILE_BYTES_MAX: u64 = 512 << 10;
/// The time between two writes of the position: a restarted machine applies again what came in between.
const WRITES: Duration = Duration::from_secs(1);
/// The longest time that one round trip to the server may take, and one step of connecting. With a short lease it is shorter.
const DEADLINE: Duration = Duration::from_secs(2);
/// The longest time for which `seawall check` looks at the server.
const LOOK: Duration = Duration::from_secs(5);
/// The time between two lines of the log about sites that only other machines know.
const STRANGE_SITES: Duration = Duration::from_secs(60);
/// The time between two lines of the log about purges that are not known to hold everywhere.
const WARNINGS: Duration = Duration::from_secs(10);

/// This machine's part in a cluster.
#[derive(Debug)]
pub(crate) struct Joined {
    cluster: Arc<Cluster>,
    counts: Arc<Counts>,
    limits: Arc<SharedLimits>,
    positions: Mutex<Option<Positions>>,
    address: Address,
}

impl Joined {
    /// Starts to take part. The fence closes at once, and opens with the first lease: nothing may be served before this returns. The places of `budgets` are
    /// shared with the other machines from here on. `sites` are the numbers of all sites, and how many numbers were given before them.
    pub(crate) fn start(
        settings: &settings::Cluster,
        dir: Option<&Path>,
        shared: &Arc<Shared>,
        (sites, given): (BTreeSet<u16>, u32),
        budgets: Vec<(String, Arc<Budget>)>,
    ) -> anyhow::Result<Self> {
        // What is kept there is judged by the position, and the other way round.
        let dir = dir.filter(|_| shared.store.usage().disk != DiskState::Off);
        let may_be_stored: BTreeSet<u16> = sites.iter().copied().filter(|number| u32::from(*number) < given).collect();
        let position = dir.and_then(|dir| read(dir, &settings.name, &may_be_stored));
        let engine = engine(settings)?;
        shared.rates.join(engine.seals().addresses());
        let options = Options {
            engine,
            cluster: settings.name.clone(),
            machine: settings.machine.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            lease: settings.lease,
            doubt_hold: settings.doubt_hold,
            position,
        };
        let weak = Arc::downgrade(shared);
        let positions = dir.map(|dir| Positions::start(dir.to_owned(), settings.name.clone(), sites, Weak::clone(&weak))).transpose()?;
        let here = Here { shared: weak, told: Mutex::default(), slot: positions.as_ref().map(|positions| Arc::clone(&positions.slot)) };
        let counts = Arc::new(Counts::default());
        let cluster = Arc::new(match tier(settings)? {
            None => Cluster::start(options, Arc::new(here)),
            Some(tier) => {
                // From before the first position of the stream.
                shared.store.expect_others();
                Cluster::start_with_tier(options, tier, Arc::new(here)).context("the bucket of [cluster] cannot be used")?
            }
        });
        if let Some(tier) = cluster.tier() {
            shared.join_tier(Box::new(SharedTier(tier.clone())));
        }
        let limits = Arc::new(SharedLimits::new(shared));
        limits.replace(budgets);
        cluster.share_limits(Arc::clone(&limits) as _);
        let others = OtherMachines { cluster: Arc::clone(&cluster), counts: Arc::clone(&counts) };
        shared.fence.join(Box::new(others), settings.doubt_hold);
        Ok(Self { cluster, counts, limits, positions: Mutex::new(positions), address: settings.address.clone() })
    }

    /// Returns how the cluster is doing.
    pub(crate) fn state(&self) -> ClusterState {
        let state = self.cluster.state();
        // Before the first answer, nothing but the address is known.
        if state.engine.is_empty() { ClusterState { engine: self.address.to_string(), ..state } } else { state }
    }

    /// Returns the shelf that the machines share.
    pub(crate) fn shelf(&self) -> Shelf {
        self.cluster.shelf()
    }

    /// Takes note of which sites are served from here on. Purges of others are not carried out here.
    pub(crate) fn serves(&self, sites: BTreeSet<u16>) {
        if let Some(positions) = &*self.positions.lock() {
            positions.slot.next.lock().sites = sites;
        }
    }

    /// Replaces the origins whose places are shared.
    pub(crate) fn share_places(&self, budgets: Vec<(String, Arc<Budget>)>) {
        self.limits.replace(budgets);
    }

    /// Returns what has become of purges.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Ends taking part, within seconds: the fence closes, and nobody waits for this machine any more. Only the first call counts.
    pub(crate) fn stop(&self) {
        self.cluster.stop();
        let positions = self.positions.lock().take();
        if let Some(positions) = positions {
            positions.stop();
        }
    }
}

/// Returns the options of the tier that the machines share, if there is one.
fn tier(settings: &settings::Cluster) -> anyhow::Result<Option<TierOptions>> {
    let bucket = match &settings.tier {
        settings::Tier::None => return Ok(None),
        settings::Tier::Valkey => None,
        settings::Tier::Bucket { options, ca_file } => Some(with_authorities(options, ca_file.as_deref())?),
    };
    Ok(Some(TierOptions { memory: settings.tier_memory, bucket, read_deadline: READ_DEADLINE }))
}

fn with_authorities(options: &BucketOptions, file: Option<&Path>) -> anyhow::Result<BucketOptions> {
    let authorities = file.map(|path| fs::read(path).with_context(|| format!("cannot read {}", path.display()))).transpose()?;
    Ok(BucketOptions { authorities, ..options.clone() })
}

/// Looks at a bucket, for `seawall check`: writes, reads and removes a small object there. It takes some seconds at most.
///
/// # Errors
/// When it cannot be used, in words.
pub(crate) fn examine_bucket(options: &BucketOptions, ca_file: Option<&Path>) -> anyhow::Result<BucketExamination> {
    let options = with_authorities(options, ca_file)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(bucket::examine(&options))?)
}

/// Returns the server of a cluster, to which nothing is sent yet.
fn engine(settings: &settings::Cluster) -> anyhow::Result<Engine> {
    let authorities = settings.ca_file.as_ref().map(|path| fs::read(path).with_context(|| format!("cannot read {}", path.display())));
    Ok(Engine::new(EngineOptions {
        address: settings.address.clone(),
        cluster: settings.name.clone(),
        secret: Secret::new(&settings.secret)?,
        replicas: settings.replicas,
        deadline: (settings.lease / 2).min(DEADLINE),
        authorities: authorities.transpose()?,
    })?)
}

/// Looks at the server of a cluster, for `seawall check`. It takes some seconds at most.
///
/// # Errors
/// When it cannot be reached, in words.
pub(crate) fn examine(settings: &settings::Cluster) -> anyhow::Result<Examination> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let engine = engine(settings)?;
    runtime.block_on(async { Ok(tokio::time::timeout(LOOK, engine.examine()).await.context("it does not answer in time")??) })
}

/// Counts what has become of purges that were told to the other machines, since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    everywhere: AtomicU64,
    elsewhere: AtomicU64,
    millis: AtomicU64,
    warned: Mutex<Option<(Instant, u64)>>,
}

impl Counts {
    /// Returns how many purges are known to hold everywhere, and how many are not.
    pub(crate) fn purges(&self) -> [u64; 2] {
        [self.everywhere.load(Relaxed), self.elsewhere.load(Relaxed)]
    }

    /// Returns the milliseconds that were waited for all of them together.
    pub(crate) fn millis(&self) -> u64 {
        self.millis.load(Relaxed)
    }

    fn take(&self, spread: &Spread) {
        let count = if spread.everywhere { &self.everywhere } else { &self.elsewhere };
        count.fetch_add(1, Relaxed);
        self.millis.fetch_add(spread.took_ms, Relaxed);
        if !spread.everywhere
            && let Some(others) = self.is_to_be_told(Instant::now())
        {
            let why = spread.why.as_deref().unwrap_or("not every machine has confirmed it");
            let others = if others == 0 { String::new() } else { format!("; {others} more since the last such line") };
            tracing::warn!("a purge is not known to hold on every machine: {why}{others}");
        }
    }

    /// Returns how many were passed over in silence if it is time for another line of the log.
    fn is_to_be_told(&self, now: Instant) -> Option<u64> {
        let mut warned = self.warned.lock();
        match &mut *warned {
            Some((at, silent)) if now.saturating_duration_since(*at) < WARNINGS => {
                *silent += 1;
                None
            }
            other => Some(other.replace((now, 0)).map_or(0, |(_, silent)| silent)),
        }
    }
}

/// The other machines, for whoever purges here.
struct OtherMachines {
    cluster: Arc<Cluster>,
    counts: Arc<Counts>,
}

impl Machines for OtherMachines {
    fn purged(&self, order: &Order) -> Acknowledgement {
        let (told, counts) = (self.cluster.purged(order), Arc::clone(&self.counts));
        Box::pin(async move {
            let spread = told.await;
            counts.take(&spread);
            spread
        })
    }
}

/// This machine, for the cluster. It does not keep what is stored from being closed.
struct Here {
    shared: Weak<Shared>,
    /// The time at which it was last told that another machine purges a site that is not known here.
    told: Mutex<Option<Instant>>,
    slot: Option<Arc<Slot>>,
}

impl Local for Here {
    fn apply(&self, order: &Order) -> Result<(), String> {
        let Some(shared) = self.shared.upgrade() else { return Ok(()) };
        // What is served nowhere here cannot be shown here either. But a site of another name may be meant, whose tags only the names of sites tell apart.
        if let Err(why) = shared.apply(order) {
            let mut told = self.told.lock();
            if told.is_none_or(|at| at.elapsed() >= STRANGE_SITES) {
                *told = Some(Instant::now());
                tracing::warn!(
                    "a purge of another machine was left out in part: {why}; the machines of a cluster have the same sites, by the same names"
                );
            }
        }
        Ok(())
    }

    fn doubt(&self, why: &str) {
        if let Some(shared) = self.shared.upgrade() {
            shared.doubt(why);
        }
    }

    fn lease(&self, until: Instant) {
        if let Some(shared) = self.shared.upgrade() {
            shared.fence.lease(shared.clock.at(until));
        }
    }

    fn give_up(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.fence.give_up();
        }
    }

    fn told_up_to(&self) -> (u64, bool) {
        self.shared.upgrade().map_or((0, false), |shared| shared.told_up_to())
    }

    fn keep(&self, position: &Position) {
        if let Some(slot) = &self.slot {
            slot.put(position.clone());
        }
    }
}

/// The newest position that is to be written.
#[derive(Debug, Default)]
struct Slot {
    next: Mutex<NextPosition>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct NextPosition {
    position: Option<Position>,
    /// The numbers of the sites of which purges are carried out.
    sites: BTreeSet<u16>,
    is_over: bool,
}

impl Slot {
    fn put(&self, position: Position) {
        self.next.lock().position = Some(position);
        self.changed.notify_one();
    }

    /// Waits for a position. Returns it with the sites for which it stands; `None` at the end.
    fn take(&self) -> Option<(Position, BTreeSet<u16>)> {
        let mut next = self.next.lock();
        loop {
            if let Some(position) = next.position.take() {
                return Some((position, next.sites.clone()));
            }
            if next.is_over {
                return None;
            }
            self.changed.wait(&mut next);
        }
    }

    /// Waits until the next write is due, or the end.
    fn rest(&self) {
        let mut next = self.next.lock();
        if !next.is_over {
            self.changed.wait_while_for(&mut next, |next| !next.is_over, WRITES);
        }
    }

    fn end(&self) {
        self.next.lock().is_over = true;
        self.changed.notify_one();
    }
}

/// The thread that writes the position beside what is stored.
struct Positions {
    slot: Arc<Slot>,
    thread: JoinHandle<()>,
}

impl fmt::Debug for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Positions")
    }
}

impl Positions {
    fn start(dir: PathBuf, cluster: String, sites: BTreeSet<u16>, shared: Weak<Shared>) -> io::Result<Self> {
        let slot = Arc::new(Slot { next: Mutex::new(NextPosition { sites, ..NextPosition::default() }), ..Slot::default() });
        let newest = Arc::clone(&slot);
        let thread = thread::Builder::new().name("cluster-position".to_owned()).spawn(move || {
            let mut last = None;
            while let Some(next) = newest.take() {
                // A disk that took no line of the last purges must not look as if it had them.
                let works = shared.upgrade().is_some_and(|shared| shared.store.usage().disk == DiskState::Working);
                if works && last.as_ref() != Some(&next) {
                    match write(&dir, &cluster, &next.0, &next.1) {
                        Ok(()) => last = Some(next),
                        Err(error) => tracing::debug!("the position in the cluster cannot be written into {}: {error}", dir.display()),
                    }
                }
                newest.rest();
            }
        })?;
        Ok(Self { slot, thread })
    }

    /// Writes what is still to be written.
    fn stop(self) {
        self.slot.end();
        let _ = self.thread.join();
    }
}

#[derive(Serialize, Deserialize)]
struct KeptPosition {
    version: u32,
    cluster: String,
    position: Position,
    /// The numbers of the sites that were served: purges of others were not carried out.
    sites: BTreeSet<u16>,
}

/// Reads up to where the stream of this cluster was applied to what is kept of these sites in the folder `dir`. A file that is torn, of another version, or
/// does not stand for all of them is as good as none: then everything is validated once.
fn read(dir: &Path, cluster: &str, sites: &BTreeSet<u16>) -> Option<Position> {
    let mut text = String::new();
    File::open(dir.join(FILE)).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text)).ok()?;
    let kept: KeptPosition = serde_json::from_str(&text).ok()?;
    (kept.version == VERSION && kept.cluster == cluster && sites.is_subset(&kept.sites)).then_some(kept.position)
}

fn write(dir: &Path, cluster: &str, position: &Position, sites: &BTreeSet<u16>) -> io::Result<()> {
    let kept = KeptPosition { version: VERSION, cluster: cluster.to_owned(), position: position.clone(), sites: sites.clone() };
    let text = serde_json::to_string(&kept).map_err(io::Error::other)?;
    let temporary = dir.join(TEMPORARY);
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(text.as_bytes())?;
    // Not synced: after a loss of power the purges of the last seconds are not trusted either, and an older position is as good.
    fs::rename(temporary, dir.join(FILE))
}

#[cfg(test)]
mod tests {
    use cluster::stream::{EntryId, EntryMaker, Run};

    use super::*;

    fn position(millis: u64) -> Position {
        let made = EntryMaker { session: "a".to_owned(), number: 7 };
        Position { run: Run("run/repl".to_owned()), id: EntryId { millis, sequence: 1 }, made: Some(made) }
    }

    #[test]
    fn a_position_is_kept_for_its_own_cluster_and_a_torn_file_is_none() {
        let dir = tempfile::tempdir().expect("a folder");
        let (one, two) = (BTreeSet::from([1]), BTreeSet::from([1, 2]));
        assert_eq!(read(dir.path(), "a", &one), None);
        write(dir.path(), "a", &position(3), &one).expect("written");
        assert_eq!(read(dir.path(), "a", &one), Some(position(3)));
        assert_eq!(read(dir.path(), "b", &one), None, "another cluster's stream");
        assert_eq!(read(dir.path(), "a", &two), None, "purges of a site that was not served were not carried out");
        write(dir.path(), "a", &position(3), &two).expect("written");
        assert_eq!(read(dir.path(), "a", &one), Some(position(3)), "a site that is served no more is none that matters");
        let text = fs::read_to_string(dir.path().join(FILE)).expect("the file");
        for torn in [&text[..text.len() - 1], &text.replace("\"version\":2", "\"version\":3"), "", "x"] {
            fs::write(dir.path().join(FILE), torn).expect("written");
            assert_eq!(read(dir.path(), "a", &one), None, "{torn}");
        }
    }

    /// Whoever gives positions never waits, and the last one is there at the end.
    #[test]
    fn the_newest_position_is_written_and_those_before_it_need_not_be() {
        let slot = Slot::default();
        for millis in 0..1_000 {
            slot.put(position(millis));
        }
        slot.end();
        assert_eq!(slot.take(), Some((position(999), BTreeSet::new())));
        slot.rest();
        assert_eq!(slot.take(), None);
    }

    #[test]
    fn a_server_that_is_gone_fills_no_log() {
        let counts = Counts::default();
        let begin = Instant::now();
        let told: Vec<_> = (0..25).filter_map(|second| counts.is_to_be_told(begin + Duration::from_secs(second))).collect();
        assert_eq!(told, [0, 9, 9]);
    }
}
