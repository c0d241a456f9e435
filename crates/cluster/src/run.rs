//! Drives a [`Machine`]: a thread with a runtime of its own, the connections, and the calls of [`Local`].
//!
//! Three things go on at the same time on that thread: steps on the connection, one after another; the waiting connection, which only wakes; and the
//! clock. Whoever purges puts the order into the machine itself and never waits for this thread.

use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use admin_api::{ClusterState, Spread};
use parking_lot::Mutex;
use policy::purge::{Order, What};
use semantics::hex;
use tokio::{
    runtime::{Builder, Handle},
    sync::{Notify, oneshot},
    time::{sleep, sleep_until, timeout},
};

use crate::{
    Local, Options,
    limits::{self, Limits},
    link::{Append, Ask, Confirmation, ENTRIES_AT_ONCE_MAX, Engine, Link, LinkError},
    machine::{Act, Machine, Settings, Ticket, Unsent},
    shelf::Shelf,
    stream::{EntryId, Position},
    tier::{Tier, TierOptions, bucket::BucketError, ring::Ring},
};

/// The first pause before connecting again, and the longest one.
const PAUSE_MIN: Duration = Duration::from_millis(25);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The first pause before the driving begins anew after a panic, and the longest one. Whoever went well for longer begins with the first one.
const RESTARTS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// The time that stopping may take altogether, and each of its steps.
const STOP_MAX: Duration = Duration::from_secs(2);
const STOP_STEP_MAX: Duration = Duration::from_millis(600);
/// The longest time that the waiting connection waits before it looks whether it is still of use.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// A machine that is being driven.
#[derive(Debug)]
pub(crate) struct Running {
    shared: Arc<Shared>,
    engine: Engine,
    handle: Handle,
    tier: Option<Tier>,
    limits: OnceLock<Limits>,
    ended: Mutex<mpsc::Receiver<()>>,
}

struct Shared {
    machine: Mutex<Machine>,
    local: Arc<dyn Local>,
    /// The meaning of the stream's positions here, where there is a tier.
    ring: Option<Arc<Ring>>,
    /// Whoever waits to hear how far a purge went. As many as the machine has tickets.
    askers: Mutex<HashMap<Ticket, oneshot::Sender<Spread>>>,
    /// There is something to send.
    work: Notify,
    /// There is another time to wait for.
    clock: Notify,
    /// A round has ended, well or badly.
    rounded: Notify,
    is_stopping: AtomicBool,
    cluster: String,
    /// The server, and whether the last line in the log said that there is a lease.
    shown: Mutex<ShownStatus>,
}

#[derive(Debug, Default)]
struct ShownStatus {
    engine: String,
    is_leased: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl Running {
    /// Starts the thread that drives a machine of the cluster, and the tier if there are options for one.
    ///
    /// # Errors
    /// When the options of the tier's bucket cannot be used.
    pub(crate) fn start(options: Options, tier: Option<TierOptions>, local: Arc<dyn Local>) -> Result<Self, BucketError> {
        let Options { engine, cluster, machine: name, version, lease, doubt_hold, position } = options;
        let settings = Settings { name, session: session(), version, lease, doubt_hold, position };
        let machine = Machine::new(settings, Instant::now());
        let ring = tier.is_some().then(|| Arc::new(Ring::default()));
        let shared = Arc::new(Shared {
            machine: Mutex::new(if ring.is_some() { machine.following() } else { machine }),
            local,
            ring: ring.clone(),
            askers: Mutex::default(),
            work: Notify::new(),
            clock: Notify::new(),
            rounded: Notify::new(),
            is_stopping: AtomicBool::new(false),
            cluster,
            shown: Mutex::default(),
        });
        let runtime = Builder::new_current_thread().enable_all().build().expect("the system has room for a runtime");
        let handle = runtime.handle().clone();
        let tier = tier.zip(ring).map(|(tier, ring)| Tier::start(tier, &engine, ring, &handle)).transpose()?;
        let (end, ended) = mpsc::sync_channel(1);
        let (driven, connects) = (shared.clone(), engine.clone());
        thread::Builder::new()
            .name("cluster".to_owned())
            .spawn(move || {
                runtime.block_on(driven.drive(&connects));
                // Nobody may be there to hear it.
                let _ = end.send(());
            })
            .expect("the system has room for a thread");
        Ok(Self { shared, engine, handle, tier, limits: OnceLock::new(), ended: Mutex::new(ended) })
    }

    pub(crate) fn tier(&self) -> Option<&Tier> {
        self.tier.as_ref()
    }

    pub(crate) fn share_limits(&self, shared: Arc<dyn limits::Shared>) {
        let driven = Arc::clone(&self.shared);
        let machines = move || driven.machine.lock().machines();
        self.limits.get_or_init(|| Limits::start(&self.engine, &self.handle, Box::new(machines), shared));
    }

    pub(crate) fn purged(&self, order: &Order) -> impl Future<Output = Spread> + Send + 'static + use<> {
        let (told, hears) = oneshot::channel();
        let acts = {
            // Both locks, so that no ticket is told before it is known who waits for it.
            let mut machine = self.shared.machine.lock();
            let (ticket, acts) = machine.purge(order.clone(), Instant::now());
            // Nobody tells of anything any more when this machine is being stopped.
            if !self.shared.is_stopping() {
                self.shared.askers.lock().insert(ticket, told);
            }
            acts
        };
        self.shared.do_here(acts);
        self.shared.work.notify_one();
        self.shared.clock.notify_one();
        async move {
            let stopped = || "this machine is being stopped".to_owned();
            hears.await.unwrap_or_else(|_| Spread { why: Some(stopped()), ..Spread::default() })
        }
    }

    pub(crate) fn state(&self) -> ClusterState {
        let state = self.shared.machine.lock().state(Instant::now());
        ClusterState {
            cluster: self.shared.cluster.clone(),
            engine: self.shared.shown.lock().engine.clone(),
            tier: self.tier.as_ref().map(Tier::state),
            limits: self.limits.get().map(Limits::state),
            ..state
        }
    }

    pub(crate) fn shelf(&self) -> Shelf {
        self.engine.shelf(self.handle.clone())
    }

    pub(crate) fn position(&self) -> Option<Position> {
        let machine = self.shared.machine.lock();
        if machine.is_leased(Instant::now()) { machine.position().cloned() } else { None }
    }

    pub(crate) fn stop(&self) {
        if !self.shared.is_stopping.swap(true, SeqCst) {
            // Whatever the server does, the fence is closed before this returns.
            {
                let mut machine = self.shared.machine.lock();
                machine.stop(Instant::now());
                self.shared.local.give_up();
            }
            self.shared.work.notify_one();
            self.shared.clock.notify_one();
            self.shared.rounded.notify_one();
            if self.ended.lock().recv_timeout(STOP_MAX).is_err() {
                tracing::warn!(
                    "left the cluster without telling the other machines, because its server does not answer; purges may take a lease longer once"
                );
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The end of the driving: whoever waits hears that there will be no word.
struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.is_stopping.store(true, SeqCst);
        let _machine = self.0.machine.lock();
        self.0.local.give_up();
        self.0.askers.lock().clear();
    }
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.is_stopping.load(SeqCst)
    }

    /// Drives the machine until it is stopped. A panic is a fault of ours, and nobody knows what was done before it: everything is doubted, and the
    /// driving begins anew.
    async fn drive(&self, engine: &Engine) {
        let _end = End(self);
        let mut pause = RESTARTS.0;
        loop {
            let begun = Instant::now();
            if caught(self.drive_on(engine)).await.is_some() || self.is_stopping() {
                return;
            }
            self.local.give_up();
            self.machine.lock().broken_off(Instant::now());
            let why = "this machine's part in the cluster has failed and begins anew; the purge is told to the others then";
            for (_, asker) in self.askers.lock().drain() {
                // Nobody has to wait for it.
                let _ = asker.send(Spread { why: Some(why.to_owned()), ..Spread::default() });
            }
            if begun.elapsed() > RESTARTS.1 {
                pause = RESTARTS.0;
            }
            tracing::error!(
                "this machine's part in the cluster has failed, which is a fault of Seawall: it is in doubt, and begins anew in {pause:?}"
            );
            let waiting = async {
                tokio::select! {
                    () = self.watch_the_clock() => {}
                    () = self.until_stopping() => {}
                    () = sleep(pause) => {}
                }
            };
            if caught(waiting).await.is_none() {
                sleep(pause).await;
            }
            pause = (pause * 2).min(RESTARTS.1);
        }
    }

    async fn drive_on(&self, engine: &Engine) {
        let mut steps = pin!(self.steps(engine));
        let mut waiting = pin!(self.wait(engine));
        let mut clock = pin!(self.watch_the_clock());
        // The two others never end.
        tokio::select! {
            () = &mut steps => {}
            () = &mut waiting => {}
            () = &mut clock => {}
        }
    }

    /// Lets time pass: leases end and purges are told of, whatever the connection is waiting for.
    async fn watch_the_clock(&self) {
        loop {
            let now = Instant::now();
            let (acts, next) = {
                let mut machine = self.machine.lock();
                (machine.time(now), machine.time_at(now))
            };
            self.do_here(acts);
            self.show_lease(now);
            match next {
                Some(at) => {
                    let _ = tokio::time::timeout_at(at.into(), self.clock.notified()).await;
                }
                None => self.clock.notified().await,
            }
        }
    }

    /// Says in the log when the lease was lost or came back.
    fn show_lease(&self, now: Instant) {
        let (is_leased, why) = {
            let machine = self.machine.lock();
            (machine.is_leased(now), machine.why().to_owned())
        };
        let mut shown = self.shown.lock();
        if shown.is_leased != is_leased && !self.is_stopping() {
            shown.is_leased = is_leased;
            if is_leased {
                tracing::info!("this machine takes part in the cluster {}, at {}", self.cluster, shown.engine);
            } else {
                tracing::warn!("this machine is in doubt and validates what it has stored before it shows it: {why}");
            }
        }
    }

    /// Makes steps on one connection after another, until this machine is stopped.
    async fn steps(&self, engine: &Engine) {
        let mut pause = PAUSE_MIN;
        let mut last = String::new();
        while !self.is_stopping() {
            let ended = match engine.connect().await {
                Ok(link) => {
                    let server = link.server();
                    self.shown.lock().engine = format!("{}, {} {}", server.address, server.software, server.version);
                    self.machine.lock().connected(Instant::now());
                    let ended = self.steps_on(engine, &link, &mut pause).await;
                    if self.is_stopping() {
                        self.leave(engine, &link).await;
                        return;
                    }
                    if pause == PAUSE_MIN {
                        // It went well in between, so the same once more is news.
                        last.clear();
                    }
                    ended
                }
                Err(error) => {
                    self.failed(&error);
                    error.to_string()
                }
            };
            if ended != last {
                tracing::warn!("the cluster's server: {ended}; trying again");
                last = ended;
            }
            let _ = timeout(pause, self.until_stopping()).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn until_stopping(&self) {
        while !self.is_stopping() {
            self.work.notified().await;
        }
    }

    /// Makes steps on one connection. Returns why it is of no use any more.
    async fn steps_on(&self, engine: &Engine, link: &Link, pause: &mut Duration) -> String {
        while !self.is_stopping() {
            let now = Instant::now();
            let is_due = self.machine.lock().round_at() <= now;
            if is_due {
                match self.round(link).await {
                    Ok(()) => *pause = PAUSE_MIN,
                    Err(error) if error.ends_link() => return error.to_string(),
                    Err(_) => {}
                }
                self.rounded.notify_one();
            }
            let batch = self.machine.lock().batch(Instant::now());
            if let Some(batch) = batch {
                if let Err(error) = self.append(engine, link, batch).await
                    && error.ends_link()
                {
                    return error.to_string();
                }
            } else if !is_due {
                let next = {
                    let machine = self.machine.lock();
                    machine.batch_at().map_or_else(|| machine.round_at(), |at| at.min(machine.round_at()))
                };
                tokio::select! {
                    () = self.work.notified() => {}
                    () = sleep_until(next.into()) => {}
                }
            }
        }
        String::new()
    }

    async fn round(&self, link: &Link) -> Result<(), LinkError> {
        let (field, member, position) = {
            let mut machine = self.machine.lock();
            let member = machine.ask(Instant::now());
            (machine.field().to_owned(), member, machine.position().cloned())
        };
        let ask = Ask { field: &field, member: &member, position: position.as_ref(), entries_max: ENTRIES_AT_ONCE_MAX };
        match link.round(ask).await {
            Ok(round) => {
                let acts = self.machine.lock().round(round, Instant::now());
                let done = self.perform(link, acts).await;
                self.show_lease(Instant::now());
                self.clock.notify_one();
                done
            }
            Err(error) => {
                self.failed(&error);
                Err(error)
            }
        }
    }

    async fn append(&self, engine: &Engine, link: &Link, batch: Vec<Unsent>) -> Result<(), LinkError> {
        let seals = engine.seals();
        let sealed = |unsent: Unsent| {
            let Unsent { made, order } = unsent;
            // The machine has split what is too long, so that the second way is not taken. An order must not get lost, though.
            seals.purge(made.clone(), &order).or_else(|| seals.purge(made, &Order { what: vec![What::Everything], ..order }))
        };
        let entries: Vec<Append> = batch.into_iter().filter_map(sealed).collect();
        match link.append(&entries).await {
            Ok(appended) => {
                let acts = self.machine.lock().appended(&appended, Instant::now());
                self.do_here(acts);
                self.clock.notify_one();
                Ok(())
            }
            Err(error) => {
                self.failed(&error);
                Err(error)
            }
        }
    }

    fn failed(&self, error: &LinkError) {
        let acts = self.machine.lock().failed(&error.to_string(), Instant::now());
        self.do_here(acts);
        self.clock.notify_one();
    }

    /// Does what a round has said, in its order.
    async fn perform(&self, link: &Link, acts: Vec<Act>) -> Result<(), LinkError> {
        let mut done = Ok(());
        // The acts of this machine come first: the lease does not wait for the network, and what is confirmed was carried out.
        let (there, here): (Vec<_>, Vec<_>) =
            acts.into_iter().partition(|act| matches!(act, Act::Confirm(_) | Act::Remove { .. } | Act::RemoveStranger(_)));
        self.do_here(here);
        for act in there {
            let on_the_link = match act {
                Act::Confirm(confirmed) => {
                    let field = self.machine.lock().field().to_owned();
                    link.confirm(&Confirmation { field, confirmed }).await
                }
                Act::Remove { field, member } => link.remove_member_if_unchanged(&field, &member).await.map(drop),
                Act::RemoveStranger(stranger) => link.remove_stranger_if_unchanged(&stranger).await.map(drop),
                Act::Apply(_)
                | Act::Doubt(_)
                | Act::Reached(_)
                | Act::Lease(_)
                | Act::GiveUp
                | Act::Keep(_)
                | Act::Tell(..)
                | Act::Warn(_) => Ok(()),
            };
            // The lease is of the round, which is over: what fails here only makes other machines wait.
            if done.is_ok() {
                done = on_the_link;
            }
        }
        done.inspect_err(|error| self.failed(error))
    }

    fn do_here(&self, acts: Vec<Act>) {
        acts.into_iter().for_each(|act| self.perform_here(act));
    }

    fn doubt(&self, why: &str) {
        // What other machines have fetched before is in doubt, too.
        if let Some(ring) = &self.ring {
            ring.clear();
        }
        self.local.doubt(why);
    }

    fn reached(&self, position: &Position) {
        let Some(ring) = &self.ring else { return };
        // The generation first: what is purged here later is not told yet, or not read yet.
        let (generation, is_told) = self.local.told_up_to();
        let is_quiet = is_told && self.machine.lock().has_read_its_own(position.id);
        ring.applied(&position.run, position.id, position.made.as_ref(), generation, is_quiet);
    }

    fn perform_here(&self, act: Act) {
        match act {
            Act::Apply(order) => {
                if let Err(why) = self.local.apply(&order) {
                    tracing::warn!(by = order.by.name(), "a purge of another machine was taken as one of everything: {why}");
                    self.doubt("a purge of another machine could not be carried out");
                }
            }
            Act::Doubt(why) => self.doubt(&why),
            Act::Reached(position) => self.reached(&position),
            Act::Lease(until) => {
                // A machine that is being stopped has given its lease up for good: it does so under the same lock.
                let _machine = self.machine.lock();
                if !self.is_stopping() {
                    self.local.lease(until);
                }
            }
            Act::GiveUp => self.local.give_up(),
            Act::Keep(position) => self.local.keep(&position),
            Act::Tell(ticket, spread) => {
                let asker = self.askers.lock().remove(&ticket);
                if let Some(asker) = asker {
                    // Nobody has to wait for it.
                    let _ = asker.send(spread);
                }
            }
            Act::Warn(what) => tracing::warn!("{what}"),
            // They need a connection, and come of rounds alone.
            Act::Confirm(_) | Act::Remove { .. } | Act::RemoveStranger(_) => {}
        }
    }

    /// Waits on a connection of its own for entries and confirmations, and wakes the others.
    async fn wait(&self, engine: &Engine) {
        let mut pause = PAUSE_MIN;
        loop {
            if let Ok(mut waiter) = engine.waiter().await {
                loop {
                    let seen = self.machine.lock().position().map_or_else(EntryId::default, |position| position.id);
                    let Ok(woken) = waiter.wait(seen, WAIT_MAX).await else { break };
                    pause = PAUSE_MIN;
                    let acts = self.machine.lock().woken(&woken, Instant::now());
                    self.do_here(acts);
                    self.clock.notify_one();
                    if woken.entries {
                        // The round that reads them moves the position; before that, this would wake again and again.
                        self.work.notify_one();
                        let _ = timeout(PAUSE_MAX, self.rounded.notified()).await;
                    }
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Leaves in order: what is pending is appended, and this machine is taken from the list.
    async fn leave(&self, engine: &Engine, link: &Link) {
        let leaving = async {
            loop {
                let batch = self.machine.lock().batch(Instant::now());
                let Some(batch) = batch else { break };
                if self.append(engine, link, batch).await.is_err() {
                    break;
                }
            }
        };
        let _ = timeout(STOP_STEP_MAX, leaving).await;
        let (field, session) = {
            let machine = self.machine.lock();
            (machine.field().to_owned(), machine.session().to_owned())
        };
        if timeout(STOP_STEP_MAX, link.remove_member_of(&field, &session)).await.is_ok_and(|removed| removed.is_ok()) {
            tracing::info!("this machine has left the cluster {}", self.cluster);
        }
    }
}

/// Returns what a future comes to, or `None` if it panics.
async fn caught<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// Returns a random word: the session of a process.
fn session() -> String {
    let mut bytes = [0; 12];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system has random numbers");
    hex::encoded(&bytes)
}
