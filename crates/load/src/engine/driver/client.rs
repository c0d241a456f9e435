//! One client: its visitors, its connections, and the requests under way on them.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::time::{Instant, Sleep};

use super::{
    Arrival, Hub, LOOK_AGAIN, Link, REPLAYS_IDLE_MAX, Room, Sink,
    calls::{Call, Calls},
    queue::{Job, Queue},
};
use crate::{
    answer::{Answer, JudgedAnswer, Outcome},
    record::{ErrorClass, Recorder, Sample},
    requests::{Next, Visitor},
};

/// The time that a client waits after its first failed attempt to connect, and the longest such time. Each failure doubles it.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];

/// Says what a client is there for.
#[derive(Debug)]
pub(super) enum Kind {
    /// It asks again as soon as it was answered.
    Stays,
    /// It comes at this moment, makes one visit, and leaves.
    Visits(Duration),
    /// It asks what is due.
    Serves(Rc<Queue>, Whose),
}

/// Says whose requests a queue has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Several clients take from it.
    Anybodys,
    /// They are those of one visitor of a log.
    OneVisitors,
}

/// Holds what a client is told, and what it tells of itself.
#[derive(Debug, Default)]
pub(super) struct Orders {
    leaves: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// Whether it waits until the permitted load lets it send.
    pub(super) is_in_line: Cell<bool>,
    /// Whether the permitted load lets it send one request.
    pub(super) may_send: Cell<bool>,
    /// Whether it has connections.
    pub(super) has_lines: Cell<bool>,
    /// Whether it has connections and does nothing with them.
    pub(super) is_idle: Cell<bool>,
    /// Whether it is to close its connections if it does nothing with them.
    pub(super) yields: Cell<bool>,
    /// The number of requests that it has room for, if it is parked in a queue.
    pub(super) room: Cell<usize>,
    /// Whether a queue has it among those with room.
    pub(super) is_parked: Cell<bool>,
}

impl Orders {
    /// Tells the client to leave when it has its answers.
    pub(super) fn leave(&self) {
        self.leaves.set(true);
        self.wake();
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

/// A client, as a task.
pub(super) struct Client<L: Link> {
    crew: Crew<L>,
    links: Vec<Line<L>>,
    timer: Timer,
    /// The time that the client waits after the next failed attempt to connect.
    back_off: Duration,
    /// The time until which it does not try to connect.
    rests_until: Duration,
    /// Whether it is one of the visitors of a log that keep their connections while they have nothing to do.
    is_kept: bool,
}

/// A connection, and to whom.
struct Line<L> {
    origin: u16,
    state: State<L>,
    /// Whether it had a request: without keep-alive it takes no other.
    is_used: bool,
    /// Counts it.
    _counted: ConnectionCount,
}

/// Counts a connection while it is there.
struct ConnectionCount(Rc<Cell<usize>>);

impl ConnectionCount {
    fn new(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

enum State<L> {
    Opening(Pin<Box<dyn Future<Output = Result<L, ErrorClass>>>>),
    Open(L),
}

/// The part of a client that knows requests and nothing of connections.
struct Crew<L: Link> {
    hub: Rc<Hub<L>>,
    kind: Kind,
    orders: Rc<Orders>,
    seats: Vec<Seat>,
    /// Seats whose visitors may have something to ask.
    free: Vec<usize>,
    calls: Calls,
    /// Requests that wait for a connection, in their order.
    queue: VecDeque<u32>,
    /// Whether the next request waited until the permitted load let it be sent.
    is_held: bool,
    /// Whether it has asked something.
    has_begun: bool,
    /// Whether the visit of a client that makes one is over.
    is_over: bool,
}

/// A visitor of the client.
struct Seat {
    visitor: Visitor,
    is_free: bool,
}

/// A timer that is moved only when it must be earlier.
struct Timer {
    sleep: Pin<Box<Sleep>>,
    at: Option<Duration>,
}

impl Timer {
    fn want(&mut self, at: Duration, now: Duration) {
        if self.at.is_none_or(|set| at < set) {
            self.sleep.as_mut().reset(Instant::now() + at.saturating_sub(now));
            self.at = Some(at);
        }
    }

    /// Tells whether its moment has come, once. It looks at the time itself: a task whose connections always have something to read is told of no
    /// sleep that is over.
    fn poll(&mut self, cx: &mut Context<'_>, now: Duration) -> bool {
        let is_due = self.at.is_some_and(|at| at <= now || self.sleep.as_mut().poll(cx).is_ready());
        if is_due {
            self.at = None;
        }
        is_due
    }
}

impl<L: Link> Client<L> {
    pub(super) fn new(hub: Rc<Hub<L>>, kind: Kind) -> Self {
        let visitor = || Visitor::new(Arc::clone(&hub.plan.requests), hub.next_visitor(), hub.plan.seed);
        let mut seats = vec![Seat { visitor: visitor(), is_free: true }];
        // A visitor who fetches pages uses all streams of its connection; of others each stream has its own.
        if seats[0].visitor.connections_max() == 1 && !matches!(kind, Kind::Visits(_)) {
            seats.extend((1..hub.streams).map(|_| Seat { visitor: visitor(), is_free: true }));
        }
        hub.clients_now(1);
        let free = (0..seats.len()).rev().collect();
        let orders = Rc::default();
        let crew = Crew {
            hub,
            kind,
            orders,
            seats,
            free,
            calls: Calls::default(),
            queue: VecDeque::new(),
            is_held: false,
            has_begun: false,
            is_over: false,
        };
        let timer = Timer { sleep: Box::pin(tokio::time::sleep(Duration::ZERO)), at: None };
        Self { crew, links: Vec::new(), timer, back_off: BACK_OFF[0], rests_until: Duration::ZERO, is_kept: false }
    }

    pub(super) fn orders(&self) -> Rc<Orders> {
        Rc::clone(&self.crew.orders)
    }

    /// Looks after the connections. Returns whether something has changed.
    fn poll_links(&mut self, cx: &mut Context<'_>) -> bool {
        let mut has_changed = false;
        let mut at = 0;
        while at < self.links.len() {
            let line = &mut self.links[at];
            match &mut line.state {
                State::Opening(opening) => match opening.as_mut().poll(cx) {
                    Poll::Pending => {}
                    Poll::Ready(Ok(link)) => {
                        line.state = State::Open(link);
                        self.back_off = BACK_OFF[0];
                        // It is polled in the next round, so that its first requests leave with what the connection begins with.
                        has_changed = true;
                    }
                    Poll::Ready(Err(class)) => {
                        let origin = line.origin;
                        self.not_connected(at, origin, class);
                        has_changed = true;
                        continue;
                    }
                },
                State::Open(link) => {
                    if link.poll(cx, &self.crew.hub.clone(), &mut self.crew).is_ready() {
                        self.links.swap_remove(at);
                        has_changed = true;
                        continue;
                    }
                }
            }
            at += 1;
        }
        has_changed
    }

    /// Ends the requests that wait for a connection that could not be made, and rests before the next attempt.
    fn not_connected(&mut self, at: usize, origin: u16, class: ErrorClass) {
        self.links.swap_remove(at);
        let now = self.crew.hub.clock.now();
        self.rests_until = now + self.back_off;
        self.back_off = (self.back_off * 2).min(BACK_OFF[1]);
        let calls = &self.crew.calls;
        let failed: Vec<_> =
            self.crew.queue.iter().copied().filter(|call| calls.get(*call).is_some_and(|call| call.asked.origin == origin)).collect();
        for call in failed {
            self.crew.failed(call, class, Arrival { ended: now, ..Arrival::default() });
        }
    }

    /// Gives up what has taken too long.
    fn expire(&mut self, now: Duration) {
        for call in self.crew.calls.late(now) {
            let arrival = self.cancel(call).unwrap_or_default();
            let Some((deadline, origin, is_sent)) = self.crew.calls.get(call).map(|call| (call.deadline, call.asked.origin, call.is_sent))
            else {
                continue;
            };
            self.crew.failed(call, ErrorClass::Timeout, Arrival { ended: deadline, ..arrival });
            if !is_sent {
                // It is the connection that takes too long.
                self.links.retain(|line| line.origin != origin || matches!(line.state, State::Open(_)));
            }
        }
        if let Some(next) = self.crew.calls.next_deadline() {
            self.timer.want(next, now);
        }
    }

    /// Ends what is still under way when the run is over, if it has waited for so long.
    fn give_up(&mut self, at: Duration, least: Duration) {
        if matches!(self.crew.kind, Kind::Visits(_)) && !self.crew.has_begun && !self.crew.is_over && !self.crew.hub.is_exhausted.get() {
            self.crew.hub.record(|recorder| recorder.missed(1));
        }
        for number in self.crew.calls.late(Duration::MAX) {
            let Some(call) = self.crew.calls.get(number) else { continue };
            let origin = call.asked.origin;
            let is_connected = self.links.iter().any(|line| line.origin == origin && matches!(line.state, State::Open(_)));
            if !call.is_sent && is_connected {
                // The connections that there are had no room for it.
                let missed = u64::from(call.intended.is_some());
                self.crew.hub.record(|recorder| recorder.missed(missed));
            } else if at.saturating_sub(call.sent) >= least {
                let arrival = self.cancel(number).unwrap_or_default();
                self.crew.failed(number, ErrorClass::Unfinished, Arrival { ended: at, ..arrival });
            }
        }
    }

    /// Gives a request up. Returns what there is of its answer.
    fn cancel(&mut self, call: u32) -> Option<Arrival> {
        let open = self.links.iter_mut().filter_map(|line| match &mut line.state {
            State::Open(link) => Some(link),
            State::Opening(_) => None,
        });
        open.filter_map(|link| link.cancel(call)).next()
    }

    /// Puts waiting requests on connections, and asks visitors for more while there is room. Returns whether a connection has something to do.
    fn fill(&mut self) -> bool {
        let mut has_changed = false;
        let now = self.crew.hub.clock.now();
        for _ in 0..self.crew.queue.len() {
            let Some(call) = self.crew.queue.pop_front() else { break };
            if self.place(call, now, &mut has_changed) {
                continue;
            }
            self.crew.queue.push_back(call);
        }
        if now < self.rests_until && self.links.is_empty() {
            self.timer.want(self.rests_until, now);
            return has_changed;
        }
        while self.crew.queue.is_empty()
            && self.crew.calls.len() < self.crew.hub.streams
            && let Some(call) = self.crew.ask(now)
        {
            has_changed = true;
            if !self.place(call, now, &mut has_changed) {
                if let Some(call) = self.crew.calls.get_mut(call)
                    && std::mem::take(&mut call.is_prompt)
                    && let Some(intended) = call.intended
                {
                    self.crew.hub.record(|recorder| recorder.sent(intended, now));
                }
                self.crew.queue.push_back(call);
            }
        }
        if let Kind::Serves(queue, _) = &self.crew.kind {
            let streams = self.crew.hub.streams;
            let room = if self.crew.queue.is_empty() { streams - self.crew.calls.len().min(streams) } else { 0 };
            queue.park(&self.crew.orders, room);
        }
        has_changed
    }

    /// Tells whether it has connections and needs them, where their number is limited.
    fn tell_lines(&mut self) {
        if self.crew.hub.throttle.is_none() {
            return;
        }
        let is_idle = self.crew.calls.len() == 0;
        if self.crew.orders.yields.replace(false) && is_idle {
            self.links.clear();
        }
        let orders = &self.crew.orders;
        let has = !self.links.is_empty();
        orders.is_idle.set(is_idle && has);
        if orders.has_lines.replace(has) != has {
            let mut holders = self.crew.hub.holders.borrow_mut();
            if has {
                holders.push(Rc::clone(orders));
            } else {
                holders.retain(|holder| !Rc::ptr_eq(holder, orders));
            }
        }
    }

    /// Lets the connections of a visitor of a log go if it has nothing to do, and enough others keep theirs.
    fn keep_or_leave(&mut self) {
        if !matches!(self.crew.kind, Kind::Serves(_, Whose::OneVisitors)) {
            return;
        }
        let keeps = self.crew.calls.len() == 0 && !self.links.is_empty();
        let kept = &self.crew.hub.replays_idle;
        match (self.is_kept, keeps) {
            (false, true) if kept.get() >= REPLAYS_IDLE_MAX => self.links.clear(),
            (false, true) => kept.set(kept.get() + 1),
            (true, false) => kept.set(kept.get() - 1),
            _ => return,
        }
        self.is_kept = keeps && !self.links.is_empty();
    }

    /// Puts a request on a connection, or opens one. Returns whether it is on one.
    fn place(&mut self, number: u32, now: Duration, has_changed: &mut bool) -> bool {
        let Some(call) = self.crew.calls.get_mut(number) else { return true };
        let origin = call.asked.origin;
        let hub = &self.crew.hub;
        let no_keepalive = hub.plan.connections.no_keepalive;
        if no_keepalive {
            self.links.retain(|line| {
                line.origin != origin || !line.is_used || !matches!(&line.state, State::Open(link) if link.room() == Room::For(hub.streams))
            });
        }
        let mut is_coming = false;
        for line in self.links.iter_mut().filter(|line| line.origin == origin && !(no_keepalive && line.is_used)) {
            match &mut line.state {
                State::Opening(_) => is_coming = true,
                State::Open(link) => match link.room() {
                    Room::Never => {}
                    Room::For(0) => is_coming = true,
                    Room::For(_) => {
                        line.is_used = true;
                        link.send(number, &call.asked, hub, now);
                        if !call.is_again {
                            call.sent = now;
                            call.deadline = now + hub.plan.timeout;
                        }
                        call.is_sent = true;
                        self.timer.want(call.deadline, now);
                        if call.is_prompt
                            && let Some(intended) = call.intended
                        {
                            call.is_prompt = false;
                            hub.record(|recorder| recorder.sent(intended, now));
                        }
                        *has_changed = true;
                        return true;
                    }
                },
            }
        }
        self.timer.want(call.deadline, now);
        if is_coming {
            return false;
        }
        if now < self.rests_until {
            self.timer.want(self.rests_until, now);
            return false;
        }
        if matches!(self.crew.kind, Kind::Visits(_))
            && call.is_prompt
            && let Some(intended) = call.intended
        {
            // A visitor's first act is to connect.
            call.is_prompt = false;
            hub.record(|recorder| recorder.sent(intended, now));
        }
        if hub.lines.get() >= hub.lines_max {
            // Its own ones to other origins go first; others' are waited for.
            let streams = hub.streams;
            let idle = self.links.iter().position(|line| matches!(&line.state, State::Open(link) if link.room() == Room::For(streams)));
            match idle {
                Some(idle) => drop(self.links.swap_remove(idle)),
                None => {
                    hub.ask_for_a_line();
                    self.timer.want(now + LOOK_AGAIN, now);
                    return false;
                }
            }
        }
        let counted = ConnectionCount::new(&hub.lines);
        let opening = L::open(Rc::clone(hub), origin, hub.next_connection());
        self.links.push(Line { origin, state: State::Opening(Box::pin(opening)), is_used: false, _counted: counted });
        *has_changed = true;
        false
    }
}

impl<L: Link> Future for Client<L> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let client = &mut *self;
        {
            let mut waker = client.crew.orders.waker.borrow_mut();
            if waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
        }
        loop {
            let mut has_changed = client.poll_links(cx);
            has_changed |= client.fill();
            if client.crew.has_ended() {
                return Poll::Ready(());
            }
            // The timer may have been set in this round, so it is polled last.
            let now = client.crew.hub.clock.now();
            if client.timer.poll(cx, now) {
                client.expire(now);
                has_changed = true;
            }
            if !has_changed {
                client.keep_or_leave();
                client.tell_lines();
                return Poll::Pending;
            }
        }
    }
}

impl<L: Link> Drop for Client<L> {
    fn drop(&mut self) {
        self.crew.orders.room.set(0);
        if let Some((at, least)) = self.crew.hub.gives_up.get() {
            self.give_up(at, least);
        }
        self.links.clear();
        self.tell_lines();
        if self.crew.orders.may_send.take() {
            self.crew.hub.give_back();
        }
        self.crew.hub.clients_now(-1);
    }
}

impl<L: Link> fmt::Debug for Client<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("kind", &self.crew.kind).finish_non_exhaustive()
    }
}

impl<L: Link> Crew<L> {
    /// Tells whether the client has nothing more to do.
    fn has_ended(&self) -> bool {
        self.calls.len() == 0 && (self.is_over || self.orders.leaves.get() || self.hub.is_exhausted.get())
    }

    /// Asks the visitors what comes next.
    fn ask(&mut self, now: Duration) -> Option<u32> {
        if self.is_over || self.orders.leaves.get() || self.hub.is_exhausted.get() || self.hub.ends.is_some_and(|end| now >= end) {
            return None;
        }
        let job = match &self.kind {
            Kind::Stays => None,
            Kind::Visits(at) => Some(Job::new(*at, None)),
            Kind::Serves(queue, _) => {
                let first = queue.first();
                if first.is_none() && self.orders.may_send.take() {
                    self.hub.give_back();
                }
                Some(first?)
            }
        };
        let intended = match self.kind {
            Kind::Visits(_) if self.has_begun => None,
            _ => job.map(|job| job.at),
        };
        if !self.hub.lets_send(&self.orders) {
            self.is_held = true;
            return None;
        }
        let mut over = 0;
        while let Some(at) = self.free.last().copied() {
            let seat = &mut self.seats[at];
            match seat.visitor.next(job.and_then(|job| job.request), intended.unwrap_or(now)) {
                Next::Ask(asked) => {
                    if !self.hub.take(intended.unwrap_or(now)) {
                        self.hub.give_back();
                        return None;
                    }
                    if let Kind::Serves(queue, _) = &self.kind {
                        queue.take_first();
                    }
                    self.has_begun = true;
                    return Some(self.calls.insert(Call {
                        seat: at,
                        asked,
                        intended,
                        sent: now,
                        deadline: now + self.hub.plan.timeout,
                        is_sent: false,
                        is_again: false,
                        is_prompt: job.is_some_and(|job| !job.waited) && !std::mem::take(&mut self.is_held),
                    }));
                }
                Next::Over if matches!(self.kind, Kind::Visits(_)) => {
                    self.is_over = true;
                    self.hub.give_back();
                    return None;
                }
                // A visitor who has nothing to ask in a whole visit has none later.
                Next::Over if over == 0 => over += 1,
                Next::Over | Next::Wait => {
                    over = 0;
                    seat.is_free = false;
                    self.free.pop();
                }
            }
        }
        self.hub.give_back();
        None
    }

    /// Records the end of a request.
    fn end(&mut self, call: &Call, judged: JudgedAnswer, arrival: Arrival) {
        if !self.seats[call.seat].is_free {
            self.seats[call.seat].is_free = true;
            self.free.push(call.seat);
        }
        let sample = Sample {
            intended: call.intended.unwrap_or(call.sent),
            sent: call.sent,
            first_byte: arrival.first_byte,
            ended: arrival.ended,
            status: arrival.status,
            bytes: arrival.bytes,
            outcome: judged.outcome,
            origin_reached: judged.origin_reached,
            page: judged.page,
            error: judged.error,
        };
        self.hub.record(|recorder| recorder.ended(&sample));
        self.hub.done();
    }
}

impl<L: Link> Sink for Crew<L> {
    fn answered(&mut self, call: u32, answer: &Answer<'_>, arrival: Arrival) {
        let Some(call) = self.calls.remove(call) else { return };
        let judged = self.seats[call.seat].visitor.answered(&call.asked, answer, arrival.ended);
        self.hub.answered.set(true);
        self.end(&call, judged, arrival);
    }

    fn failed(&mut self, number: u32, class: ErrorClass, arrival: Arrival) {
        let Some(call) = self.calls.remove(number) else { return };
        if !call.is_sent {
            self.queue.retain(|waiting| *waiting != number);
        }
        let page = self.seats[call.seat].visitor.failed(&call.asked, arrival.ended);
        let judged = JudgedAnswer { outcome: Outcome::Unknown, origin_reached: None, page, error: Some(class) };
        self.end(&call, judged, arrival);
    }

    fn refused(&mut self, number: u32, arrival: Arrival) {
        match self.calls.get_mut(number) {
            Some(call) if !call.is_again => {
                call.is_again = true;
                self.hub.record(Recorder::resent);
                if let Some(throttle) = &self.hub.throttle {
                    throttle.charge();
                }
                call.is_sent = false;
                self.queue.push_front(number);
            }
            _ => self.failed(number, ErrorClass::Reset, arrival),
        }
    }
}
