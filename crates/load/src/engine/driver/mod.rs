//! Follows a schedule for protocols that have several requests under way on a connection: HTTP/2 and HTTP/3.
//!
//! Each worker has a runtime of one thread. One task follows the schedule to the microsecond ([`Timer`]), and each client is one task ([`Client`]) that
//! looks after its visitors, its connections and all requests under way on them, so an answer wakes one task and costs no allocation. A protocol is
//! a [`Link`]: a connection that takes requests and tells a [`Sink`] what became of them.

mod calls;
mod client;
mod queue;
mod timer;

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    future::Future,
    io,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use rustix::io::Errno;
use tokio::{sync::Notify, task::LocalSet};

use self::{
    client::{Client, Kind, Orders, Whose},
    queue::{Job, Queue},
    timer::Timer,
};
use super::{Budget, Clock, Target, Throttle, Tls, Worker};
use crate::{
    answer::Answer,
    plan::Plan,
    record::{ErrorClass, Exhausted, Recorder, Tally},
    requests::VisitorRequest,
    schedule::{ClientEvent, Due, Schedule},
};

/// The longest time for which nobody looks whether the run was stopped, or a second is over.
const TICK: Duration = Duration::from_millis(100);

/// Limits how much of the schedule is done before clients have their turn.
const DUES_AT_A_TIME: usize = 256;

/// The time after which somebody who waits for one of a limited number of connections looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The requests that may wait for a connection, on each worker. What is due beyond that is missed. 50 MB.
const WAITING_MAX: usize = 1 << 20;

/// Visitors of a log that keep their connections while they have nothing to do, on each worker.
const REPLAYS_IDLE_MAX: u32 = 4096;

/// A connection of a protocol that has several requests under way on it.
pub(super) trait Link: Sized + Unpin + 'static {
    /// Holds what all connections of a worker share: requests in the protocol's form, buffers.
    type Shared: 'static;

    /// Makes what connections share, on the worker's runtime.
    ///
    /// # Errors
    /// Says why the worker cannot work.
    fn share(worker: &Worker) -> Result<Self::Shared, String>;

    /// Connects to an origin of the plan, and records how long it took. `number` counts the worker's connections.
    fn open(hub: Rc<Hub<Self>>, origin: u16, number: u64) -> impl Future<Output = Result<Self, ErrorClass>> + 'static;

    /// Tells how many requests the connection would take now. None after it has failed or the server has said that it will take no more.
    fn room(&self) -> Room;

    /// Takes a request that there is room for. It leaves with the next poll.
    fn send(&mut self, call: u32, asked: &VisitorRequest, hub: &Hub<Self>, now: Duration);

    /// Gives a request up, and tells the server. Returns what there is of its answer, if that is known.
    fn cancel(&mut self, call: u32) -> Option<Arrival>;

    /// Writes and reads what it can, and tells `sink`. Ready: the connection has ended, and nothing is under way on it.
    fn poll(&mut self, cx: &mut Context<'_>, hub: &Hub<Self>, sink: &mut impl Sink) -> Poll<()>;

    /// Ends what connections share, when they are gone.
    fn end(shared: &Self::Shared) -> impl Future<Output = ()> {
        let _ = shared;
        std::future::ready(())
    }
}

/// Says how many more requests a connection takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// It takes so many requests now.
    For(usize),
    /// It takes no more for good: a new request needs a new connection.
    Never,
}

/// Is told by a connection what became of requests. Each request is told once.
pub(super) trait Sink {
    /// Tells that a whole answer has come.
    fn answered(&mut self, call: u32, answer: &Answer<'_>, arrival: Arrival);
    /// Tells that a request has failed.
    fn failed(&mut self, call: u32, class: ErrorClass, arrival: Arrival);
    /// Tells that the server has not looked at the request, as it says itself, so that it can be asked again.
    fn refused(&mut self, call: u32, arrival: Arrival);
}

/// Holds what came of an answer, and when.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrival {
    /// The moment of its first byte.
    pub(super) first_byte: Option<Duration>,
    /// The moment of its end, or of the failure.
    pub(super) ended: Duration,
    /// The status, if there is one.
    pub(super) status: u16,
    /// The bytes that came.
    pub(super) bytes: u64,
}

/// Holds what all tasks of a worker share.
pub(super) struct Hub<L: Link> {
    pub(super) plan: Arc<Plan>,
    pub(super) clock: Clock,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) targets: Arc<[Target]>,
    pub(super) shared: L::Shared,
    /// Requests at a time on a connection.
    pub(super) streams: usize,
    worker: RefCell<Worker>,
    budget: Arc<Budget>,
    throttle: Option<Arc<Throttle>>,
    /// Clients that wait until the permitted load lets them send: who came first is first.
    line: RefCell<VecDeque<Rc<Orders>>>,
    /// Clients that have connections, where their number is limited.
    holders: RefCell<Vec<Rc<Orders>>>,
    /// The connections that there are, and the most of them.
    lines: Rc<Cell<usize>>,
    lines_max: usize,
    mine: Cell<u64>,
    /// Whether no request may be made any more.
    is_exhausted: Cell<bool>,
    /// Requests that were permitted and have not ended.
    under_way: Cell<u64>,
    clients: Cell<u32>,
    /// Visitors of a log that have nothing to do, and connections.
    replays_idle: Cell<u32>,
    visitors: Cell<u64>,
    connections: Cell<u64>,
    answered: Cell<bool>,
    /// Whether nothing more is due.
    is_ending: Cell<bool>,
    /// The time at which the run ends: then no more requests are made.
    ends: Option<Duration>,
    /// The time at which what is under way is given up, and the wait from which on it counts as unfinished. Known when the run ends.
    gives_up: Cell<Option<(Duration, Duration)>>,
    /// Something has changed that may end the run.
    changed: Notify,
}

impl<L: Link> Hub<L> {
    /// Records with the worker's recorder.
    pub(super) fn record(&self, record: impl FnOnce(&mut Recorder)) {
        record(&mut self.worker.borrow_mut().recorder);
    }

    /// Returns the class of a connection that the system could not make, and counts it if that was this machine's doing.
    pub(super) fn not_connected(&self, error: &io::Error) -> ErrorClass {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => self.record(|recorder| recorder.exhausted(Exhausted::Ports)),
            Some(Errno::MFILE | Errno::NFILE) => self.record(|recorder| recorder.exhausted(Exhausted::Descriptors)),
            Some(Errno::CONNREFUSED) => return ErrorClass::Refused,
            Some(Errno::CONNRESET) => return ErrorClass::Reset,
            _ => {}
        }
        ErrorClass::Connect
    }

    /// Ends the run with an error, unless an answer has come: the server does not speak the protocol at all.
    pub(super) fn give_up(&self, why: String) {
        if !self.answered.get() {
            self.worker.borrow().give_up(why);
            self.changed.notify_one();
        }
    }

    /// Lets a client send a request if the permitted load lets it; if not, the client is woken when it may.
    fn lets_send(&self, orders: &Rc<Orders>) -> bool {
        let Some(throttle) = &self.throttle else { return true };
        if orders.may_send.replace(false) {
            return true;
        }
        let mut line = self.line.borrow_mut();
        let is_first = line.is_empty() && !orders.is_in_line.get();
        if is_first && (orders.has_lines.get() || self.lines.get() < self.lines_max) && throttle.take(self.clock.now()).is_ok() {
            return true;
        }
        if !orders.is_in_line.replace(true) {
            line.push_back(Rc::clone(orders));
            if line.len() == 1 {
                self.changed.notify_one();
            }
        }
        false
    }

    /// Gives back what a request took of the permitted load that was not made.
    fn give_back(&self) {
        if let Some(throttle) = &self.throttle {
            throttle.give_back();
        }
    }

    /// Lets those in line send whom the permitted load lets. Returns when the next may try.
    fn move_line(&self, now: Duration) -> Option<Duration> {
        let throttle = self.throttle.as_ref()?;
        let mut line = self.line.borrow_mut();
        while let Some(first) = line.front() {
            if !first.has_lines.get() && self.lines.get() >= self.lines_max {
                self.ask_for_a_line();
                return Some(now + LOOK_AGAIN);
            }
            if let Err(then) = throttle.take(now) {
                return Some(then);
            }
            first.is_in_line.set(false);
            first.may_send.set(true);
            first.wake();
            line.pop_front();
        }
        None
    }

    /// Asks a client that does nothing with its connections to close them.
    fn ask_for_a_line(&self) {
        let holders = self.holders.borrow();
        if let Some(idle) = holders.iter().find(|holder| holder.is_idle.get()) {
            idle.yields.set(true);
            idle.wake();
        }
    }

    /// Takes permission for a request, which is then under way.
    fn take(&self, intended: Duration) -> bool {
        let mut mine = self.mine.get();
        let is_permitted = !self.is_exhausted.get() && self.budget.take(&mut mine, intended);
        self.mine.set(mine);
        if is_permitted {
            self.under_way.set(self.under_way.get() + 1);
        } else if !self.is_exhausted.replace(true) {
            self.changed.notify_one();
        }
        is_permitted
    }

    /// Notes that a request has ended.
    fn done(&self) {
        self.under_way.set(self.under_way.get() - 1);
        if self.under_way.get() == 0 && (self.is_exhausted.get() || self.is_ending.get()) {
            self.changed.notify_one();
        }
    }

    /// Returns a number that no other visitor of the run has.
    fn next_visitor(&self) -> u64 {
        let number = self.visitors.get();
        self.visitors.set(number + 1);
        let share = self.worker.borrow().share;
        number * u64::from(share.of) + u64::from(share.worker)
    }

    fn next_connection(&self) -> u64 {
        self.connections.replace(self.connections.get() + 1)
    }

    fn clients_now(&self, change: i32) {
        self.clients.set(self.clients.get().saturating_add_signed(change));
        let now = self.clients.get();
        self.record(|recorder| recorder.clients(now));
        if change < 0 {
            self.changed.notify_one();
        }
    }
}

/// Runs a worker.
pub(super) fn work<L: Link>(worker: Worker, streams: u16) -> Tally {
    let clock = worker.clock.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return worker.unable(format!("no runtime for a worker: {error}")),
    };
    let entered = runtime.enter();
    let shared = match L::share(&worker) {
        Ok(shared) => shared,
        Err(why) => return worker.unable(why),
    };
    drop(entered);
    let hub = Rc::new(Hub::<L> {
        plan: Arc::clone(&worker.plan),
        clock: clock.clone(),
        tls: worker.tls.clone(),
        targets: Arc::clone(&worker.targets),
        shared,
        streams: usize::from(streams.max(1)),
        budget: Arc::clone(&worker.budget),
        throttle: worker.throttle.clone(),
        line: RefCell::default(),
        holders: RefCell::default(),
        lines: Rc::default(),
        lines_max: worker.throttle.as_ref().map_or(usize::MAX, |limit| limit.connections(worker.share.worker, worker.share.of)),
        ends: worker.ends(),
        gives_up: Cell::new(None),
        worker: RefCell::new(worker),
        mine: Cell::new(0),
        is_exhausted: Cell::new(false),
        under_way: Cell::new(0),
        clients: Cell::new(0),
        replays_idle: Cell::new(0),
        visitors: Cell::new(0),
        connections: Cell::new(0),
        answered: Cell::new(false),
        is_ending: Cell::new(false),
        changed: Notify::new(),
    });
    hub.worker.borrow().begin();
    let tasks = LocalSet::new();
    let missed = tasks.block_on(&runtime, Follower::new(&hub).follow());
    // What is under way is given up: its tasks go.
    drop(tasks);
    let now = hub.ends.map_or_else(|| clock.now(), |ends| ends.min(clock.now()));
    runtime.block_on(L::end(&hub.shared));
    drop(runtime);
    let hub = Rc::into_inner(hub).expect("the tasks that had it are gone with their runtime");
    let mut recorder = hub.worker.into_inner().recorder;
    recorder.missed(missed);
    recorder.finish(now)
}

/// Follows the schedule.
struct Follower<L: Link> {
    hub: Rc<Hub<L>>,
    /// The clients that stay, the last one last.
    staying: Vec<Rc<Orders>>,
    /// The requests that any connection may take.
    pool: Rc<Queue>,
    /// The most connections of the pool.
    pool_max: u32,
    pool_clients: u32,
    /// The requests that belong to one visitor of a log, by visitor.
    of_visitors: HashMap<u32, Rc<Queue>>,
    missed: u64,
}

impl<L: Link> Follower<L> {
    fn new(hub: &Rc<Hub<L>>) -> Self {
        let share = hub.worker.borrow().share;
        let clients = match hub.plan.schedule {
            Schedule::Rate { clients, .. } => clients,
            _ => 0,
        };
        // Each worker has at least one connection: what is due there could not be asked otherwise.
        let pool_max = (clients / share.of + u32::from(share.worker < clients % share.of)).max(1);
        Self {
            hub: Rc::clone(hub),
            staying: Vec::new(),
            pool: Rc::default(),
            pool_max,
            pool_clients: 0,
            of_visitors: HashMap::new(),
            missed: 0,
        }
    }

    /// Does what is due when it is due, until the run ends. Returns how many requests were due and never sent.
    async fn follow(mut self) -> u64 {
        let hub = Rc::clone(&self.hub);
        let mut timer = match Timer::new() {
            Ok(timer) => timer,
            Err(error) => {
                hub.give_up(format!("no timer for a worker: {error}"));
                return 0;
            }
        };
        let mut dues = hub.worker.borrow().dues().peekable();
        let ends = hub.worker.borrow().ends();
        loop {
            let now = hub.clock.now();
            hub.record(|recorder| recorder.tick(now));
            if hub.worker.borrow().is_stopped() {
                // What has waited for no longer than is normal had no time to end.
                let least = hub.gives_up.get().map_or_else(|| hub.worker.borrow().recorder.grace(hub.plan.timeout), |gives_up| gives_up.1);
                hub.gives_up.set(Some((now, least)));
                break;
            }
            if let Some(end) = ends.filter(|end| now >= *end) {
                let grace = hub.worker.borrow().recorder.grace(hub.plan.timeout);
                let (gives_up, _) = hub.gives_up.get().unwrap_or((end + grace, Duration::ZERO));
                hub.gives_up.set(Some((gives_up, Duration::ZERO)));
                hub.is_ending.set(true);
                if now >= gives_up || hub.under_way.get() == 0 {
                    break;
                }
                tokio::select! {
                    () = timer.wait(gives_up.min(now + TICK), now) => {}
                    () = hub.changed.notified() => {}
                }
                continue;
            }
            let mut acted = 0;
            while acted < DUES_AT_A_TIME
                && !hub.is_exhausted.get()
                && let Some(due) = dues.next_if(|due| due.at <= now)
            {
                self.act(due);
                acted += 1;
            }
            if acted == DUES_AT_A_TIME {
                tokio::task::yield_now().await;
                continue;
            }
            let line = hub.move_line(now);
            let next = dues.peek().map(|due| due.at).filter(|_| !hub.is_exhausted.get());
            hub.is_ending.set(next.is_none());
            if next.is_none() && self.is_over() {
                break;
            }
            let wake = [next, line, ends].into_iter().flatten().fold(now + TICK, Duration::min);
            tokio::select! {
                () = timer.wait(wake, now) => {}
                () = hub.changed.notified() => {}
            }
        }
        if !hub.is_exhausted.get() {
            // What was due within the time, and was not even looked at because this thread came too late.
            while let Some(end) = ends
                && !hub.worker.borrow().is_stopped()
                && let Some(due) = dues.next_if(|due| due.at < end)
            {
                self.missed += u64::from(matches!(due.what, ClientEvent::Ask { .. } | ClientEvent::Visit));
            }
            self.missed += (self.pool.len() + self.of_visitors.values().map(|queue| queue.len()).sum::<usize>()) as u64;
        }
        self.missed
    }

    /// Tells whether nothing is left to be done, when nothing more will be due.
    fn is_over(&self) -> bool {
        let hub = &self.hub;
        if hub.under_way.get() > 0 {
            return false;
        }
        let visiting = hub.clients.get() > self.pool_clients + u32::try_from(self.of_visitors.len()).unwrap_or(u32::MAX);
        hub.is_exhausted.get() || !visiting && self.pool.len() == 0 && self.of_visitors.values().all(|queue| queue.len() == 0)
    }

    fn act(&mut self, due: Due) {
        match due.what {
            ClientEvent::Join => {
                let orders = self.spawn(Kind::Stays);
                self.staying.push(orders);
            }
            ClientEvent::Leave => {
                if let Some(orders) = self.staying.pop() {
                    orders.leave();
                }
            }
            ClientEvent::Visit => {
                self.spawn(Kind::Visits(due.at));
            }
            ClientEvent::Ask { request, visitor: None } => {
                if self.pool.len() >= WAITING_MAX {
                    self.missed += 1;
                } else if !self.push(&Rc::clone(&self.pool), due.at, request) && self.pool_clients < self.pool_max {
                    self.pool_clients += 1;
                    self.spawn(Kind::Serves(Rc::clone(&self.pool), Whose::Anybodys));
                }
            }
            ClientEvent::Ask { request, visitor: Some(visitor) } => {
                if let Some(queue) = self.of_visitors.get(&visitor) {
                    if queue.len() >= WAITING_MAX {
                        self.missed += 1;
                    } else {
                        self.push(queue, due.at, request);
                    }
                } else {
                    let queue = Rc::<Queue>::default();
                    self.push(&queue, due.at, request);
                    self.of_visitors.insert(visitor, Rc::clone(&queue));
                    self.spawn(Kind::Serves(queue, Whose::OneVisitors));
                }
            }
        }
    }

    /// Puts a request into a queue. Returns whether a client has room for it. If none has, it is late by the generator's fault until now, and waits for
    /// the server from now on.
    fn push(&self, queue: &Queue, at: Duration, request: Option<u32>) -> bool {
        let has_room = queue.push(Job::new(at, request));
        if !has_room {
            let now = self.hub.clock.now();
            self.hub.record(|recorder| recorder.sent(at, now));
        }
        has_room
    }

    fn spawn(&self, kind: Kind) -> Rc<Orders> {
        let client = Client::new(Rc::clone(&self.hub), kind);
        let orders = client.orders();
        tokio::task::spawn_local(client);
        orders
    }
}
