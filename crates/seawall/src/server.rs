//! A running server: workers, their listeners, and what tells them to stop or to change.

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::sync_channel,
    },
    time::{Duration, Instant},
};

use acme::Challenges;
use admin::{ReloadDone, ReloadRefused};
use anyhow::Context;
use arc_swap::{ArcSwap, ArcSwapOption};
use edge::{
    Gauges, Socket,
    tls::{Certificates, Tls},
};
use pipeline::{Clock, Counters, Shared, Snapshot};
use policy::purge::{Maker, Order, What};
use semantics::Timestamp;
use store::{DiskOptions, DiskState, DiskTrouble, SiteNumbers, StoreOptions};
use tokio::sync::{mpsc, watch};

use crate::{
    alerts,
    automatic::{self, Automatic},
    blogs,
    certificates::Files,
    cluster::Joined,
    config::settings::{AccessLog as LogDestination, Acme, Settings, Site},
    console::ServerConsole,
    listening::{Bound, OwnPaths},
    log_writer,
    metrics::ShownNames,
    passed::PassedSockets,
    plan::Plan,
    recognition::{
        keeper::{self, Keeper, SharedFindings},
        schedule,
    },
    seeing::{self, SecondHand, Seeing},
    shelf::{self, SharedTickets},
    spans::Export,
    warming::Warmer,
    worker::{Start, WorkerHandle},
    worker_questions::WorkerQuestion,
    writer::{Sink, Writer},
};

/// The longest wait at the end of the process for the last lines to be written.
const LOG_WAIT: Duration = Duration::from_secs(3);

/// The number of questions of the admin API that may wait for a worker. It answers each within microseconds.
const QUESTIONS: usize = 16;

/// The longest wait of a reload until all workers have taken it. One that is held up takes it when it comes to it.
const RECONFIGURED_WITHIN: Duration = Duration::from_secs(1);

/// A server that serves. Dropping it stops it at once; [`Server::stop`] lets requests end.
#[derive(Debug)]
pub struct Server {
    state: Arc<State>,
    listening: Vec<Socket>,
    numbers: SiteNumbers,
    stop: watch::Sender<Option<Duration>>,
    workers: Vec<WorkerHandle>,
    log: Option<Writer>,
    /// Removes this process's own Unix sockets when it is dropped.
    _own_paths: OwnPaths,
    certificates: Arc<Files>,
    automatic: Option<Automatic>,
    /// The thread that shares the keys of TLS tickets with other machines.
    tickets: Option<SharedTickets>,
    /// Ends the thread that looks at certificate files when it is dropped.
    _looking: std::sync::mpsc::SyncSender<()>,
    /// The thread that asks servers what they are.
    recognising: Option<Keeper>,
    /// The thread that looks for what is wrong, and tells of it.
    watching: Option<alerts::Keeper>,
    /// The thread that takes what was counted in each second.
    seconds: Option<SecondHand>,
    /// The part that sends spans to a collector.
    export: Option<Export>,
}

/// The state of a running server that the admin API may see.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) shared: Arc<Shared>,
    pub(crate) gauges: Arc<Gauges>,
    /// The TLS state for the whole life of the process: tickets are good as long as it exists.
    pub(crate) tls: Tls,
    /// The answers to challenges that certificate authorities look for on the plain port.
    pub(crate) challenges: Challenges,
    /// The keeper of certificates that Seawall gets by itself.
    pub(crate) keeper: ArcSwapOption<acme::Keeper>,
    pub(crate) plan: ArcSwap<Plan>,
    pub(crate) counters: Vec<Arc<Counters>>,
    /// The knowledge of the traffic.
    pub(crate) seeing: Seeing,
    pub(crate) began: Instant,
    /// The time by the wall clock at which the server began to serve.
    pub(crate) started: Timestamp,
    /// The bytes that stored responses may take in memory, and on the disk. A reload does not change them.
    pub(crate) store_max: (u64, u64),
    pub(crate) draining: AtomicBool,
    /// The sockets on which visitors are served.
    pub(crate) listening: Vec<Socket>,
    /// The access log, if there is one.
    pub(crate) log: Option<Sink>,
    /// A function that reads the configuration again, if the server was started with one.
    pub(crate) reload: OnceLock<Reloader>,
    /// The channels by which the admin API asks each worker a question.
    pub(crate) questions: Vec<mpsc::Sender<WorkerQuestion>>,
    /// The notes of the watch over Ghosts.
    pub(crate) watched: keeper::Notes,
    /// The notes on the schedules that are run from here.
    pub(crate) schedules: schedule::Notes,
    /// The counts of what became of spans.
    pub(crate) span_counts: Arc<traces::Counts>,
    /// The number of runs of all schedules that were done, and the number of those that failed.
    pub(crate) schedule_runs: [AtomicU64; 2],
    /// The names that have lines of their own in the metrics.
    pub(crate) shown: ShownNames,
    /// The board of alerts: what is wrong, and what is told of it.
    pub(crate) alerts: alerts::Board,
    /// The pages that are being fetched at the wish of an operator.
    pub(crate) warmer: Warmer,
    /// The part that this machine has in a cluster, if it has one.
    pub(crate) cluster: Option<Joined>,
}

/// A function that reads the configuration again.
pub(crate) struct Reloader(Box<dyn Fn() -> Result<ReloadDone, ReloadRefused> + Send + Sync>);

impl Reloader {
    pub(crate) fn reload(&self) -> Result<ReloadDone, ReloadRefused> {
        (self.0)()
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reloader")
    }
}

impl State {
    /// Returns the sum of all workers' counters.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut sum = Snapshot::default();
        for counters in &self.counters {
            counters.add_to(&mut sum);
        }
        sum
    }

    /// Returns the longest durations of responses since this was called last, as [`Counters::take_slowest`] tells them.
    pub(crate) fn take_slowest(&self) -> BTreeMap<Option<u16>, [u64; pipeline::OUTCOMES.len()]> {
        let mut slowest = BTreeMap::new();
        for counters in &self.counters {
            counters.take_slowest(&mut slowest);
        }
        slowest
    }
}

impl Server {
    /// Binds, starts the workers, and returns when all of them serve.
    ///
    /// # Errors
    /// When an address cannot be listened on, or a folder or file that the settings name cannot be read.
    pub fn start(settings: Settings, clock: Clock) -> anyhow::Result<Self> {
        Self::start_with(settings, clock, PassedSockets::default())
    }

    /// Starts with sockets that another process has bound, where the settings name the same address.
    pub(crate) fn start_with(settings: Settings, clock: Clock, mut passed: PassedSockets) -> anyhow::Result<Self> {
        warn(&settings);
        let workers = settings.server.workers;
        let mut options = StoreOptions::with_memory(settings.cache_memory);
        options.object_max = settings.sites.iter().map(|site| site.cache.object_max).max().unwrap_or(options.object_max);
        let store_max = (settings.cache_memory, settings.disk_tier().map_or(0, |(_, size_max)| size_max));
        let started = clock.now();
        let shared = Arc::new(Shared::open(options, disk(&settings), clock));
        shared.purging.allow(settings.purge.allow.clone());
        let seeing = Seeing::open(seen_folder(&settings, &shared), &settings, started.as_millis());
        let insight = Arc::clone(&seeing.insight);
        shared.purging.watch(move |purge| seeing::watch::tell(&insight, purge));
        let insight = Arc::clone(&seeing.insight);
        shared.in_vain.watch(move |fetched| seeing::facts::tell_in_vain(&insight, fetched));
        let mut numbers = shared.store.site_numbers();
        // Its addresses are told to whatever runs behind it.
        let Bound { mut listeners, listening, own_paths } = Bound::to(&settings, workers, &mut passed)?;
        let given = numbers.given();
        let mut plan = Plan::new(settings, &mut numbers, &shared, &listening, None)?;
        let span_counts = Arc::default();
        let export = Export::start(&plan.settings, &span_counts)?;
        plan.spans = export.as_ref().map(|export| export.spans().clone());
        let plan = Arc::new(plan);
        let cluster = join_cluster(&plan, &shared, given)?;
        let tls = Tls::new(Certificates::new()).context("cannot make keys for TLS tickets")?;
        let certificates = Arc::new(Files::new(Arc::clone(tls.certificates())));
        certificates.watch(plan.settings.tls.as_ref().map_or(&[], |tls| &tls.certificates))?;
        let shown = Arc::clone(tls.certificates());
        shared.tell_certified(Box::new(move |host| shown.covers(&host.to_ascii_lowercase())));
        let challenges = Challenges::default();
        let proofs = challenges.clone();
        shared.tell_challenges(Box::new(move |path| proofs.content(path)));
        let others = challenges.clone();
        shared.tell_challenge_look_ups(Box::new(move |path| others.look_up(path)));
        let clock = shared.clock.clone();
        let automatic = plan
            .settings
            .acme_in_force()
            .map(|acme| Automatic::start(acme, tls.certificates(), challenges.clone(), common_shelf(cluster.as_ref()), clock))
            .transpose()?;
        let tickets = share_tickets(cluster.as_ref(), &plan.settings, &tls)?;
        let looking = Arc::clone(&certificates).keep_looking()?;
        let log = start_log(&plan.settings)?;
        let (questions, asked): (Vec<_>, Vec<_>) = (0..workers).map(|_| mpsc::channel(QUESTIONS)).unzip();
        let state = Arc::new(State {
            shared,
            gauges: Arc::default(),
            tls,
            challenges,
            keeper: ArcSwapOption::new(automatic.as_ref().map(|automatic| Arc::clone(automatic.keeper()))),
            plan: ArcSwap::new(Arc::clone(&plan)),
            counters: (0..workers).map(|_| Arc::default()).collect(),
            seeing,
            began: Instant::now(),
            started,
            store_max,
            draining: AtomicBool::new(false),
            listening: listening.clone(),
            log: log.as_ref().map(|log| log.sink().clone()),
            reload: OnceLock::new(),
            questions,
            watched: keeper::Notes::default(),
            schedules: schedule::Notes::default(),
            span_counts,
            schedule_runs: Default::default(),
            shown: ShownNames::default(),
            alerts: alerts::Board::default(),
            warmer: Warmer::default(),
            cluster,
        });
        state.seeing.know_sites(&plan, started.as_millis());
        let seconds = SecondHand::start(Arc::clone(&state))?;
        let (stop, stopped) = watch::channel(None);
        let handles = Vec::with_capacity(workers);
        let mut server = Self {
            state,
            listening,
            numbers,
            stop,
            workers: handles,
            log,
            _own_paths: own_paths,
            certificates,
            automatic,
            tickets,
            _looking: looking,
            recognising: None,
            watching: None,
            seconds: Some(seconds),
            export,
        };
        for (number, asked) in asked.into_iter().enumerate() {
            let listeners = listeners.iter_mut().filter_map(Vec::pop).collect();
            let start = Start { number, listeners, questions: asked, plan: Arc::clone(&plan), stop: stopped.clone() };
            server.workers.push(WorkerHandle::start(&server.state, start)?);
        }
        Ok(server)
    }

    /// Returns the addresses of its listeners, with the ports that the system chose.
    #[must_use]
    pub fn listening(&self) -> &[Socket] {
        &self.listening
    }

    /// Lets the server fetch pages at the wish of an operator: what it has to know for that, it asks its own admin listener at this address. Only the first
    /// call counts.
    pub fn warm_by(&self, admin: SocketAddr, token: admin::Token) {
        self.state.warmer.ask_at(admin, token);
    }

    /// Returns what the admin API needs: a view of this server, and its commands.
    #[must_use]
    pub fn console(&self) -> Arc<dyn admin::Console> {
        Arc::new(ServerConsole::new(Arc::clone(&self.state)))
    }

    /// Takes purge requests on the sites' own addresses from whoever has the admin token too. Only the first call counts.
    pub fn accept_purge_token(&self, token: admin::Token) {
        self.state.shared.purging.accept_token(Box::new(move |given| token.matches(given)));
    }

    /// Lets the admin API reload the configuration: it calls `reloader` on a thread that may wait. Only the first call counts.
    pub fn accept_reloads(&self, reloader: impl Fn() -> Result<ReloadDone, ReloadRefused> + Send + Sync + 'static) {
        let _ = self.state.reload.set(Reloader(Box::new(reloader)));
    }

    /// Asks servers again what they are from now on, and watches Ghosts. `changed` is called when something else is `known` than before.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn keep_recognising(&mut self, known: SharedFindings, changed: impl Fn() + Send + 'static) -> anyhow::Result<()> {
        let keeper = Keeper::start(Arc::clone(&self.state), known, changed).context("servers cannot be asked what they are")?;
        self.recognising = Some(keeper);
        Ok(())
    }

    /// Looks for what is wrong from now on, and tells of it as `[alerts]` says.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn keep_watching(&mut self) -> anyhow::Result<()> {
        self.watching = Some(alerts::Keeper::start(Arc::clone(&self.state)).context("nobody can be told of alerts")?);
        Ok(())
    }

    /// Looks on this thread for what is wrong, as far as that is due by the server's clock. For tests and tools.
    pub fn look_for_alerts(&self) {
        self.state.alerts.look(&self.state);
    }

    /// Carries out an order to purge, as the admin API does.
    ///
    /// # Errors
    /// When the order cannot be understood: then nothing is purged.
    pub fn purge(&self, order: &Order) -> Result<pipeline::Receipt, pipeline::Unresolved> {
        self.state.shared.purge(order)
    }

    /// Returns a line for each text of a site's blog that readers do not see yet, with its private link below `base`.
    pub(crate) fn drafts(&self, site: &str, base: &str) -> Vec<String> {
        let plan = self.state.plan.load();
        let blog = plan.sites.iter().find(|plan| plan.name() == site).and_then(|plan| plan.blog());
        blog.map(|blog| blogs::drafts(blog, base)).unwrap_or_default()
    }

    /// Returns the part of the pipeline that all workers share: for a cluster, and for tests.
    #[must_use]
    pub fn shared(&self) -> &Arc<pipeline::Shared> {
        &self.state.shared
    }

    /// Returns what the store holds.
    #[must_use]
    pub fn usage(&self) -> store::Usage {
        self.state.shared.store.usage()
    }

    /// Tells whether a client that asks for `name` would be shown a certificate for it.
    pub(crate) fn is_certified(&self, name: &str) -> bool {
        self.state.tls.certificates().covers(name)
    }

    /// Returns what all workers have counted.
    #[must_use]
    pub fn counted(&self) -> Snapshot {
        self.state.snapshot()
    }

    /// Waits on this thread until all forms of stored responses are made that have been asked for. For tests and tools.
    pub fn settle_codings(&self) {
        self.state.shared.workshop.wait_until_idle();
    }

    /// Takes what was counted since the last second, as if one were over now. For tests and tools.
    pub fn settle_seeing(&self) {
        self.state.seeing.take(&self.state);
    }

    /// Packs what nobody has read as it is for long enough, if it is time to look for it, and waits for that on this thread; before that, for what
    /// the disk is still to write. For tests and tools.
    pub fn settle_packing(&self) {
        self.state.shared.store.settle_disk();
        self.state.shared.pack_unread();
        self.settle_codings();
    }

    /// Replaces the settings without dropping a connection. Returns the names of changed settings that need a restart.
    ///
    /// # Errors
    /// When the new settings name what cannot be read; the old ones stay.
    pub fn reload(&mut self, mut settings: Settings) -> anyhow::Result<Vec<&'static str>> {
        self.reopen_log();
        warn(&settings);
        let before = self.state.plan.load_full();
        let fixed = [
            (before.settings.server.listen != settings.server.listen, "server.listen"),
            (before.settings.tls_listen() != settings.tls_listen(), "tls.listen"),
            (before.settings.tls_listen().is_empty() && settings.tls.as_ref().is_some_and(|tls| tls.acme.is_some()), "acme"),
            (before.settings.http3().is_some() != settings.http3().is_some(), "server.http3"),
            (before.settings.server.workers != settings.server.workers, "server.workers"),
            (before.settings.server.admin != settings.server.admin, "server.admin"),
            (before.settings.cache_memory != settings.cache_memory, "cache.memory"),
            (before.settings.cache_disk != settings.cache_disk, "cache.dir and cache.disk"),
            (before.settings.log != settings.log, "log"),
            (before.settings.cluster != settings.cluster, "cluster"),
        ];
        // Nobody is sent to https where it is not spoken.
        if let Some(tls) = &mut settings.tls {
            tls.listen = before.settings.tls_listen().to_vec();
        }
        let given = self.numbers.given();
        let mut plan = Plan::new(settings, &mut self.numbers, &self.state.shared, &self.listening, Some(&before))?;
        // One collector after the other: workers still have the queue of the one before.
        let export = match &self.export {
            Some(export) if export.is_for(&plan.settings) => None,
            _ => Some(Export::start(&plan.settings, &self.state.span_counts)?),
        };
        plan.spans = export.as_ref().unwrap_or(&self.export).as_ref().map(|export| export.spans().clone());
        let plan = Arc::new(plan);
        // Whatever can fail fails here, before the first worker has changed.
        let router = plan.router()?;
        self.certificates.watch(plan.settings.tls.as_ref().map_or(&[], |tls| &tls.certificates))?;
        self.keep_certificates(before.settings.acme_in_force(), plan.settings.acme_in_force())?;
        // Before the first worker stores anything for a new site: a purge that comes then must find it.
        self.state.shared.purging.know_sites(&router);
        if let Some(cluster) = &self.state.cluster {
            if plan.brings_back(&before, given) {
                self.state.shared.doubt("a site is served again, and other machines may have purged pages of it meanwhile");
            }
            cluster.serves(plan.numbers());
            cluster.share_places(plan.budgets());
        }
        let (taken, taking) = sync_channel(self.workers.len());
        for worker in &self.workers {
            worker.reconfigure(Arc::clone(&plan), taken.clone())?;
        }
        drop(taken);
        // From here on nobody is answered by the rules before: neither who asks next, nor who asks for an explanation.
        let deadline = Instant::now() + RECONFIGURED_WITHIN;
        while taking.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {}
        if let Some(before) = export.and_then(|export| std::mem::replace(&mut self.export, export)) {
            before.stop();
        }
        self.state.shared.purging.allow(plan.settings.purge.allow.clone());
        for site in plan.opened_anew(&before) {
            let order = Order::for_site(site, vec![What::Everything], true, Maker::Reload);
            self.state.shared.purge(&order).context("what was stored by the rules before is still there")?;
        }
        for site in plan.upgraded(&before) {
            let order = Order::for_site(site, vec![What::Everything], false, Maker::Watch);
            self.state.shared.purge(&order).context("what was stored before the upgrade still counts as fresh")?;
        }
        self.state.seeing.know_sites(&plan, self.state.shared.clock.now().as_millis());
        self.state.plan.store(plan);
        Ok(fixed.into_iter().filter_map(|(changed, name)| changed.then_some(name)).collect())
    }

    /// Opens the access log again, after a rotation. It does not depend on whether the new settings are valid.
    pub(crate) fn reopen_log(&self) {
        if let Some(log) = &self.log {
            log.sink().reopen();
        }
    }

    /// Replaces the settings for getting certificates. If that fails, the settings before stay in force.
    fn keep_certificates(&mut self, before: Option<&Acme>, acme: Option<&Acme>) -> anyhow::Result<()> {
        let certificates = self.state.tls.certificates();
        let is_same = |before: &Acme, acme: &Acme| before.options == acme.options && before.ca_file == acme.ca_file;
        if let (Some(automatic), Some(before), Some(acme)) = (&self.automatic, before, acme)
            && is_same(before, acme)
        {
            automatic.want(acme, certificates);
            return Ok(());
        }
        // One after the other: the folder may be the same, and it has one owner.
        certificates.when_missed(None);
        self.state.keeper.store(None);
        self.automatic = None;
        let start = |acme: &Acme| {
            let clock = self.state.shared.clock.clone();
            Automatic::start(acme, certificates, self.state.challenges.clone(), common_shelf(self.state.cluster.as_ref()), clock)
        };
        let started = acme.map(start).transpose();
        let (automatic, outcome) = match started {
            Ok(automatic) => {
                automatic::withdraw_others(certificates, acme);
                (automatic, Ok(()))
            }
            Err(error) => (before.and_then(|before| start(before).ok()), Err(error)),
        };
        self.state.keeper.store(automatic.as_ref().map(|automatic| Arc::clone(automatic.keeper())));
        self.automatic = automatic;
        outcome
    }

    /// Stops the server: accepts no more, lets requests under way end for at most `grace`, and returns when all is done.
    pub fn stop(mut self, grace: Duration) {
        self.state.draining.store(true, Ordering::Relaxed);
        self.state.plan.load().end_streams();
        let _ = self.stop.send(Some(grace));
        self.join();
    }

    fn join(&mut self) {
        self.recognising = None;
        self.watching = None;
        for worker in self.workers.drain(..) {
            worker.join();
        }
        // Nobody asks any more; what was counted and stored last is written.
        self.seconds = None;
        // They use what the cluster shares.
        self.automatic = None;
        self.tickets = None;
        if let Some(cluster) = &self.state.cluster {
            cluster.stop();
        }
        self.state.shared.store.close();
        if let Some(export) = self.export.take() {
            export.stop();
        }
        if self.log.take().is_some_and(|log| !log.close(LOG_WAIT)) {
            tracing::warn!("the last lines of the access log are lost, because the reader of standard output does not take them");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.send(Some(Duration::ZERO));
        self.join();
    }
}

/// Takes part in the cluster, if there is one. Its first orders can come at once, so the sites are known before.
fn join_cluster(plan: &Plan, shared: &Arc<Shared>, given: u32) -> anyhow::Result<Option<Joined>> {
    let Some(settings) = &plan.settings.cluster else { return Ok(None) };
    shared.purging.know_sites(&plan.router()?);
    let dir = plan.settings.disk_tier().map(|(dir, _)| dir);
    Joined::start(settings, dir, shared, (plan.numbers(), given), plan.budgets()).map(Some)
}

/// Returns what certificates are shared on, if there is a cluster.
fn common_shelf(cluster: Option<&Joined>) -> Option<Arc<dyn acme::Shelf>> {
    cluster.map(|cluster| Arc::new(shelf::Certificates(cluster.shelf())) as _)
}

/// Shares the keys of TLS tickets, if there is a cluster and TLS is spoken.
fn share_tickets(cluster: Option<&Joined>, settings: &Settings, tls: &Tls) -> anyhow::Result<Option<SharedTickets>> {
    let Some(cluster) = cluster.filter(|_| !settings.tls_listen().is_empty()) else { return Ok(None) };
    SharedTickets::start(cluster.shelf(), tls.clone()).map(Some).context("the keys of TLS tickets cannot be shared")
}

fn warn(settings: &Settings) {
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
}

/// Returns the options of the disk tier to open.
fn disk(settings: &Settings) -> Option<DiskOptions> {
    let Some((dir, size_max)) = settings.disk_tier() else {
        let has_server = settings.sites.iter().any(Site::has_server);
        if has_server && settings.cache_disk.as_ref().is_some_and(|disk| disk.dir.is_none()) {
            tracing::warn!(
                "stored pages will be lost at a restart, because this user has no home folder to keep them in. Set cache.dir to a folder"
            );
        }
        return None;
    };
    let report = |trouble: &DiskTrouble| match trouble {
        DiskTrouble::Recovered { .. } => tracing::info!("{trouble}"),
        _ => tracing::warn!("{trouble}"),
    };
    Some(DiskOptions { report: Arc::new(report), ..DiskOptions::new(dir.to_owned(), size_max) })
}

/// Returns the folder in which what is seen of the traffic is kept: that of the cache, if it can be used.
pub(crate) fn seen_folder(settings: &Settings, shared: &Shared) -> Option<PathBuf> {
    let dir = settings.cache_disk.as_ref()?.dir.clone()?;
    let is_refused = settings.disk_tier().is_some() && shared.store.usage().disk == DiskState::Off;
    (!is_refused).then_some(dir)
}

fn start_log(settings: &Settings) -> anyhow::Result<Option<Writer>> {
    let path = match &settings.log.access {
        LogDestination::Off => return Ok(None),
        LogDestination::Stdout => None,
        LogDestination::File(path) => Some(path.clone()),
    };
    let name = path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    Ok(Some(log_writer::start(path).with_context(|| format!("cannot open the access log {name}"))?))
}
