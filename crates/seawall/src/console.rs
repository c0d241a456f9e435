//! The part of the server that the admin API shows and commands: snapshots of the server's state, and purges.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use admin::{
    AlertTestRefused, AlertsState, AlertsTested, BadExpression, CacheHealth, CertificateState, ClusterState, Console, DirectField,
    DirectRefused, ExplainCommand, ExplainRefused, Explanation, Health, Inventory, ListenerHealth, Metric, Moment, OriginHealth,
    Publication, PurgeDone, PurgeRefused, Recent, ReloadDone, ReloadRefused, RevokeRefused, ScheduleHealth, Seen, Series, SignalHealth,
    SiteHealth, StoredCommand, WarmCommand, WarmRefused, Warming,
};
use edge::Socket;
use pipeline::{CacheOutcome, DIRECT_FIELD, OUTCOMES, Shared};
use policy::purge::{Order, Signals};
use semantics::{
    Scheme,
    date::format_http_date,
    target::{canonical_authority, host_without_port},
};
use store::DiskState;

use tokio::runtime::Builder;

use crate::{
    alerts, automatic,
    cluster::Joined,
    metrics, php_server,
    plan::{ServerState, SitePlan},
    recognition::{
        how_known,
        keeper::{PublishedPastSeawall, remedy},
        leads_past,
        schedule::Noted,
        sends_to_https, software,
    },
    seeing,
    server::{Reloader, State},
    warming, worker_questions,
};

/// Stored responses in one list: some 10 MB of JSON.
const STORED_MAX: usize = 50_000;

/// The time for which a new certificate is waited for; the admin listener ends its connections after a minute.
const REVOKE_WAIT: Duration = Duration::from_secs(50);

/// The console of a running server.
#[derive(Debug)]
pub(crate) struct ServerConsole(Arc<State>);

impl ServerConsole {
    pub(crate) const fn new(state: Arc<State>) -> Self {
        Self(state)
    }
}

fn socket_name(socket: &Socket) -> String {
    match socket {
        Socket::Tcp(address) | Socket::Tls(address) => address.to_string(),
        Socket::Quic(address) => format!("udp:{address}"),
        Socket::Unix(path) => format!("unix:{}", path.display()),
    }
}

fn listener(socket: &Socket) -> ListenerHealth {
    let (address, protocol) = match socket {
        Socket::Tcp(address) => (address.to_string(), "http"),
        Socket::Tls(address) => (address.to_string(), "https"),
        Socket::Quic(address) => (address.to_string(), "http3"),
        Socket::Unix(path) => (format!("unix:{}", path.display()), "http"),
    };
    ListenerHealth { address, protocol: protocol.to_owned() }
}

fn site_health(site: &SitePlan, state: &State) -> SiteHealth {
    let settings = site.settings();
    SiteHealth {
        name: site.name().to_owned(),
        hosts: site.hosts().to_vec(),
        redirect_from: settings.redirect_from.clone(),
        source: settings.source.to_string(),
        kind: settings.kind.name().to_owned(),
        kind_known: how_known(settings),
        url: software(settings).map(|software| software.url().to_owned()),
        remarks: remarks(site, state),
        origin_up: site.origin_up(),
        schedule: schedule_health(site, state),
        signals: (settings.kind.preset().signals != Signals::None).then(|| signal_health(site, &state.shared)),
    }
}

/// Says how the schedule of a site's software runs, if it is run from here.
fn schedule_health(site: &SitePlan, state: &State) -> Option<ScheduleHealth> {
    site.schedule()?;
    let Noted { ran_at, runs, failures, trouble, .. } = state.schedules.lock().get(site.name()).cloned().unwrap_or_default();
    Some(ScheduleHealth {
        every_seconds: site.settings().wordpress.cron.unwrap_or_default().as_secs(),
        ran_seconds_ago: ran_at.map(|at| state.shared.clock.now().since(at).as_secs()),
        runs,
        failures,
        trouble,
        plugin: state.shared.signalled.of(site.name()).plugin,
    })
}

/// Says which changes the origin of a site has told of.
fn signal_health(site: &SitePlan, shared: &Shared) -> SignalHealth {
    let (told, now) = (shared.signalled.of(site.name()), shared.clock.now());
    let ago = |at| now.since(at).as_secs();
    let publication = |told: pipeline::SignalledPurge| Publication { seconds_ago: ago(told.at), covered: told.covered, hard: told.hard };
    SignalHealth {
        in_path: told.in_path.map(publication),
        webhook: told.webhook.map(publication),
        webhook_seconds_ago: told.webhook_at.map(ago),
        refilled: told.refilled,
    }
}

/// Says what an operator should do something about: software that publishes past Seawall.
fn remarks(site: &SitePlan, state: &State) -> Vec<String> {
    let settings = site.settings();
    let away = settings.php.as_ref().filter(|_| site.origin_up() == Some(false)).and_then(php_server::trouble);
    let mut remarks: Vec<String> = away.map(|trouble| trouble.text).into_iter().collect();
    if settings.kind.product().is_none() {
        return remarks;
    }
    if let Some(why) = leads_past(settings, &state.listening) {
        let remedy = remedy(settings, &state.plan.load().settings, &state.listening);
        remarks.push(format!("{why}: {remedy}"));
    }
    remarks.extend(sends_to_https(settings, &state.plan.load().settings));
    if let Some(PublishedPastSeawall { past, past_at: Some(at) }) = state.watched.lock().get(site.name()) {
        let at = String::from_utf8_lossy(&format_http_date(*at)).into_owned();
        let times = if *past == 1 { "once".to_owned() } else { format!("{past} times") };
        remarks.push(format!("published past Seawall: {times}, seen last at {at}; that is live within a minute, and not at once"));
    }
    remarks
}

fn cache_health(state: &State) -> CacheHealth {
    let usage = state.shared.store.usage();
    let settings = &state.plan.load().settings;
    let counted = state.snapshot();
    let of = |counts: fn(CacheOutcome) -> bool| {
        let counted = OUTCOMES.into_iter().zip(counted.outcomes).filter(|(outcome, _)| counts(*outcome));
        counted.map(|(_, count)| count).sum::<u64>()
    };
    CacheHealth {
        memory_bytes: usage.bytes,
        memory_bytes_max: settings.cache_memory,
        resources: usage.resources as u64,
        disk: match usage.disk {
            DiskState::Off => "off",
            DiskState::Working => "working",
            DiskState::Full => "full",
            DiskState::ReadOnly => "read-only",
            DiskState::Failing => "failing",
        }
        .to_owned(),
        disk_bytes: usage.disk_bytes,
        disk_bytes_max: settings.disk_tier().map_or(0, |(_, size_max)| size_max),
        disk_objects: usage.disk_objects,
        requests: of(|outcome| outcome.is_lookup() || outcome == CacheOutcome::Bypass),
        hits: of(CacheOutcome::is_hit),
    }
}

impl Console for ServerConsole {
    fn metrics(&self) -> Vec<Metric> {
        metrics::all(&self.0)
    }

    fn health(&self) -> Health {
        let state = &self.0;
        let plan = state.plan.load();
        Health {
            ready: !state.draining.load(Ordering::Relaxed),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime: state.began.elapsed(),
            workers: state.counters.len(),
            listening: state.listening.iter().map(socket_name).collect(),
            listeners: state.listening.iter().map(listener).collect(),
            trusts_loopback: plan.settings.server.trusted_proxies.iter().any(|net| net.contains(&IpAddr::from(Ipv4Addr::LOCALHOST))),
            sites: plan.sites.iter().map(|site| site_health(site, state)).collect(),
            cache: cache_health(state),
        }
    }

    fn origins(&self) -> Vec<OriginHealth> {
        let plan = self.0.plan.load();
        let mut origins = Vec::new();
        for site in &plan.sites {
            for ServerState { route, addresses, asked, .. } in site.servers() {
                let of = |(address, up)| OriginHealth { site: site.name().to_owned(), route: route.clone(), address, up, asked };
                origins.extend(addresses.into_iter().map(of));
            }
        }
        origins
    }

    fn reload(&self) -> Result<ReloadDone, ReloadRefused> {
        self.0.reload.get().map_or(Err(ReloadRefused::Busy), Reloader::reload)
    }

    fn purge(&self, order: &Order) -> Result<PurgeDone, PurgeRefused> {
        let (receipt, elsewhere) = self.0.shared.purge_counted(order).map_err(|why| PurgeRefused::new(why.to_string()))?;
        Ok(PurgeDone {
            generation: receipt.generation.number(),
            variants: receipt.variants,
            complete: receipt.complete,
            covered: receipt.in_words(),
            spread: elsewhere.wait(),
        })
    }

    fn explain(&self, command: &ExplainCommand) -> Result<Explanation, ExplainRefused> {
        worker_questions::explain(&self.0, command)
    }

    fn stored(&self, command: &StoredCommand) -> Inventory {
        let host = command.host.as_deref().map(|host| canonical_authority(Scheme::Http, host).into_owned());
        let wanted = |key: &policy::Key<'_>| host.as_deref().is_none_or(|host| key.host == host || host_without_port(key.host) == host);
        self.0.shared.stale(STORED_MAX, wanted)
    }

    fn seen(&self, site: Option<&str>) -> Option<Seen> {
        let state = &self.0;
        let seen = state.seeing.insight.seen(site, state.shared.clock.now().as_millis())?;
        Some(Seen { alerts: state.alerts.lines(), ..seen })
    }

    fn series(&self, site: Option<&str>, step: u64) -> Option<Series> {
        let state = &self.0;
        state.seeing.insight.series(site, seeing::span(step), state.shared.clock.now().as_secs())
    }

    fn recent(&self, after: u64, expression: Option<&str>, limit: usize) -> Result<Recent, BadExpression> {
        self.0.seeing.recent(after, expression, limit)
    }

    fn moment(&self) -> Moment {
        Moment { alerts: self.0.alerts.standing(), ..self.0.seeing.moment(&self.0) }
    }

    fn alerts(&self) -> AlertsState {
        self.0.alerts.state(&self.0.plan.load().settings.alerts)
    }

    fn test_alerts(&self) -> Result<AlertsTested, AlertTestRefused> {
        alerts::test(&self.0)
    }

    fn warm(&self, command: &WarmCommand) -> Result<(), WarmRefused> {
        warming::begin(&self.0, command)
    }

    fn warming(&self) -> Warming {
        self.0.warmer.now()
    }

    fn direct(&self, time: Duration) -> Result<DirectField, DirectRefused> {
        let shared = &self.0.shared;
        let (value, until) = shared.direct.sign(shared.clock.now(), time).ok_or(DirectRefused)?;
        Ok(DirectField { field: DIRECT_FIELD.to_owned(), value, until })
    }

    fn cluster(&self) -> Option<ClusterState> {
        self.0.cluster.as_ref().map(Joined::state)
    }

    fn certificates(&self) -> Vec<CertificateState> {
        let of_files = automatic::of_files(self.0.tls.certificates());
        let kept = self.0.keeper.load_full().map(|keeper| automatic::kept(&keeper, self.0.shared.clock.now())).unwrap_or_default();
        let mut all: Vec<CertificateState> = kept.into_iter().chain(of_files).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    fn revoke(&self, name: &str) -> Result<CertificateState, RevokeRefused> {
        let unknown = || RevokeRefused::Unknown(name.to_owned());
        let name = name.to_ascii_lowercase();
        let keeper = self.0.keeper.load_full().ok_or_else(unknown)?;
        let state = || automatic::kept(&keeper, self.0.shared.clock.now()).into_iter().find(|state| state.name == name);
        state().filter(|state| state.not_after.is_some()).ok_or_else(unknown)?;
        let runtime = Builder::new_current_thread().enable_time().build().map_err(|error| RevokeRefused::Failed(error.to_string()))?;
        let replaced = runtime.block_on(async { tokio::time::timeout(REVOKE_WAIT, keeper.replace(&name)).await });
        replaced.map_err(|_| RevokeRefused::Slow)?.map_err(|failure| RevokeRefused::Failed(failure.to_string()))?;
        state().ok_or_else(unknown)
    }
}
