//! The facts by which alerts are judged: read from counters, servers, certificates and disks, each as often as it is worth.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    time::Duration,
};

use admin::CertificateState;
use futures_util::future::join_all;
use insight::alerts::{Alerts, DiskFact, Facts, Notice, OriginFact, Rules, TrafficFact};
use pipeline::{CacheOutcome, ONLY_IF_CACHED, OUTCOMES, SiteSnapshot};
use semantics::Timestamp;
use store::DiskState;
use tokio::{
    net::{TcpStream, UnixStream},
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    automatic,
    config::settings::AccessLog,
    plan::{Plan, ServerState, SitePlan},
    server::State,
};

/// The interval at which the servers are looked at: that costs nothing.
const ORIGINS_EVERY: Duration = Duration::from_secs(1);

/// The interval at which the counters of all workers are summed.
const TRAFFIC_EVERY: Duration = Duration::from_secs(5);

/// The interval at which certificates and disks are looked at.
const SLOW_EVERY: Duration = Duration::from_secs(30);

/// The interval at which a server that counts as down is connected to, and the time that this may take.
const PROBE_EVERY: Duration = Duration::from_secs(5);
const PROBE_WITHIN: Duration = Duration::from_secs(2);

/// The most addresses that are connected to at once.
const PROBES_MAX: usize = 64;

/// The time after a failed request during which its server is not believed to be back, although it can be connected to.
const FAILED_LATELY: Duration = Duration::from_secs(30);

/// The memory of the looks before.
#[derive(Debug, Default)]
pub(super) struct Watching {
    pub(super) alerts: Alerts,
    /// The sums of each site when they were looked at last, by the site's number.
    counted: BTreeMap<u16, SiteCounts>,
    /// Addresses of servers that count as down, and whether they could be connected to.
    probed: BTreeMap<String, bool>,
    origins: Option<Timestamp>,
    traffic: Option<Timestamp>,
    slow: Option<Timestamp>,
}

/// Holds what was counted of a site.
#[derive(Clone, Copy, Debug, Default)]
struct SiteCounts {
    requests: u64,
    lookups: u64,
    hits: u64,
    server_errors: u64,
    failures: u64,
    /// The time at which requests to its origin had failed last.
    failed_at: Option<Timestamp>,
}

impl Watching {
    /// Looks at what is due, and returns what has begun and what has ended.
    pub(super) fn look(&mut self, state: &State, plan: &Plan, rules: &Rules) -> Vec<Notice> {
        let now = state.shared.clock.now();
        let traffic = is_due(&mut self.traffic, now, TRAFFIC_EVERY).then(|| self.traffic(state, plan, now));
        let origins = is_due(&mut self.origins, now, ORIGINS_EVERY).then(|| self.origins(plan, now));
        let is_slow_due = is_due(&mut self.slow, now, SLOW_EVERY);
        let certificates = is_slow_due.then(|| certificates(state, now));
        let disks = is_slow_due.then(|| disks(state, plan));
        let facts = Facts {
            origins: origins.as_deref(),
            traffic: traffic.as_deref(),
            certificates: certificates.as_deref(),
            disks: disks.as_deref(),
        };
        self.alerts.step(now, rules, &facts)
    }

    fn origins(&self, plan: &Plan, now: Timestamp) -> Vec<OriginFact> {
        let mut facts = Vec::new();
        for site in &plan.sites {
            let failed_at = self.counted.get(&site.id).and_then(|counted| counted.failed_at);
            let has_failed_lately = failed_at.is_some_and(|at| now.since(at) < FAILED_LATELY);
            for ServerState { route, up, asked, addresses, .. } in site.servers() {
                let is_back = || addresses.iter().any(|(address, _)| self.probed.get(address) == Some(&true)) && !has_failed_lately;
                let up = if up { asked.then_some(true) } else { Some(is_back()) };
                let about = format!("{}{}", site.name(), route.as_deref().unwrap_or_default());
                let address = addresses.iter().map(|(address, _)| address.as_str()).collect::<Vec<_>>().join(", ");
                facts.push(OriginFact { about, address, up });
            }
        }
        facts
    }

    fn traffic(&mut self, state: &State, plan: &Plan, now: Timestamp) -> Vec<TrafficFact> {
        let snapshot = state.snapshot();
        let mut counted = BTreeMap::new();
        let mut fact = |site: &SitePlan| {
            let before = self.counted.get(&site.id).copied().unwrap_or_default();
            let mut sums = snapshot.sites.get(&site.id).map(sums).unwrap_or_default();
            // The answer to a client's own condition, which has the status of an error.
            let conditions = snapshot.rules.get(&(site.id, ONLY_IF_CACHED)).map_or(0, |rule| rule.requests);
            sums.server_errors = sums.server_errors.saturating_sub(conditions);
            sums.failed_at = if sums.failures > before.failures { Some(now) } else { before.failed_at };
            counted.insert(site.id, sums);
            TrafficFact {
                site: site.name().to_owned(),
                requests: sums.requests.saturating_sub(before.requests),
                lookups: sums.lookups.saturating_sub(before.lookups),
                hits: sums.hits.saturating_sub(before.hits),
                server_errors: sums.server_errors.saturating_sub(before.server_errors),
            }
        };
        let facts = plan.sites.iter().map(&mut fact).collect();
        self.counted = counted;
        facts
    }
}

/// Tells whether something that is done every so often is due, and notes that it is done.
fn is_due(last: &mut Option<Timestamp>, now: Timestamp, every: Duration) -> bool {
    let is_due = last.is_none_or(|last| now.since(last) >= every || now < last);
    if is_due {
        *last = Some(now);
    }
    is_due
}

fn sums(site: &SiteSnapshot) -> SiteCounts {
    let of = |counts: fn(CacheOutcome) -> bool| {
        let counted = OUTCOMES.into_iter().zip(site.outcomes).filter(|(outcome, _)| counts(*outcome));
        counted.map(|(_, count)| count).sum::<u64>()
    };
    SiteCounts {
        requests: site.outcomes.iter().sum(),
        lookups: of(CacheOutcome::is_lookup),
        hits: of(CacheOutcome::is_hit),
        server_errors: site.responses[5],
        failures: site.origin_failures,
        failed_at: None,
    }
}

fn certificates(state: &State, now: Timestamp) -> Vec<CertificateState> {
    let of_files = automatic::of_files(state.tls.certificates());
    state.keeper.load_full().map(|keeper| automatic::kept(&keeper, now)).unwrap_or_default().into_iter().chain(of_files).collect()
}

/// Lists the disks to which Seawall writes, each of them once.
fn disks(state: &State, plan: &Plan) -> Vec<DiskFact> {
    let usage = state.shared.store.usage();
    let trouble = match usage.disk {
        DiskState::Off | DiskState::Working => None,
        DiskState::Full => Some("is full"),
        DiskState::ReadOnly => Some("is read-only"),
        DiskState::Failing => Some("fails"),
    };
    let stored = plan.settings.disk_tier().filter(|_| usage.disk != DiskState::Off);
    let stored = stored.map(|(folder, _)| (folder.to_owned(), trouble));
    let log = match &plan.settings.log.access {
        AccessLog::File(path) => path.parent().map(|folder| (folder.to_owned(), None)),
        AccessLog::Off | AccessLog::Stdout => None,
    };
    let mut seen = BTreeSet::new();
    let mut fact = |(folder, trouble): (PathBuf, Option<&'static str>)| {
        let device = fs::metadata(&folder).ok().map(|of| of.dev());
        let is_new = device.is_none_or(|device| seen.insert(device));
        let free = || rustix::fs::statvfs(&folder).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        is_new.then(|| DiskFact { folder: folder.display().to_string(), free: free(), trouble })
    };
    stored.into_iter().chain(log).filter_map(&mut fact).collect()
}

/// Connects to servers that count as down, again and again: perhaps nobody asks for them, and they are back. Nothing is sent there.
pub(super) async fn probe(state: &State) {
    let mut tick = interval(PROBE_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let addresses: BTreeSet<String> = {
            let plan = state.plan.load();
            let down = plan.sites.iter().flat_map(|site| site.servers()).filter(|server| !server.up);
            down.flat_map(|server| server.addresses.into_iter().map(|(address, _)| address)).take(PROBES_MAX).collect()
        };
        let probe = async |address: String| {
            let connected = timeout(PROBE_WITHIN, connects(&address)).await;
            (address, connected.unwrap_or_default())
        };
        let probed = join_all(addresses.into_iter().map(probe)).await;
        let plan = state.plan.load();
        for (address, _) in probed.iter().filter(|(_, is_connected)| *is_connected) {
            plan.sites.iter().for_each(|site| site.reached(address));
        }
        drop(plan);
        state.alerts.watching.lock().probed = probed.into_iter().collect();
    }
}

/// Tells whether something listens at the address of a server.
async fn connects(address: &str) -> bool {
    if let Some(path) = address.strip_prefix("unix:") {
        return UnixStream::connect(path).await.is_ok();
    }
    let (scheme, authority) = address.split_once("://").unwrap_or(("http", address));
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match (has_port, scheme) {
        (true, _) => TcpStream::connect(authority).await.is_ok(),
        (false, "https") => TcpStream::connect(format!("{authority}:443")).await.is_ok(),
        (false, _) => TcpStream::connect(format!("{authority}:80")).await.is_ok(),
    }
}
