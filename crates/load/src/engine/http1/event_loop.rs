//! The loop of a worker: it waits for sockets and for the schedule, and does what is due.

mod sockets;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
    io,
    iter::Peekable,
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::{
    buffer::spare_capacity,
    event::{Timespec, epoll},
    io::Errno,
};

use super::{
    client::{Client, Kind, PendingRequest},
    connection::Connection,
    deadlines::Deadlines,
    message::{Messages, is_idempotent},
    pacing::Timer,
    slots::{Key, Slots},
};
use crate::{
    engine::{Worker, sources::Sources},
    plan::Protocol,
    record::{ErrorClass, Tally},
    requests::{Next, Visitor},
    schedule::{ClientEvent, Dues, Schedule},
};

/// The size of the worker's buffer. What is longer is read in pieces.
const BUFFER: usize = 64 << 10;

/// Events that are taken at a time.
const EVENTS: usize = 1024;

/// Dues that are followed before sockets are looked at again, so that a crowd at the door does not delay those who are in.
const DUES_AT_ONCE: usize = 64;

/// Events after which the schedule is looked at.
const EVENTS_AT_ONCE: usize = 32;

/// The longest that the loop waits: so soon it sees that somebody has stopped the run.
const LOOK_UP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Requests that may wait for a free client, for each worker: 6 MB. One more is missed.
const WAITING_MAX: usize = 1 << 18;

/// Visitors of a log that keep their connections while they have nothing to do, for each worker.
const REPLAYS_IDLE_MAX: usize = 4096;

/// Visits in which nothing is asked, one after the other, until a client rests: it must not keep the loop from the others.
const EMPTY_VISITS_MAX: u32 = 64;

/// The time that a client rests after its first failed attempt to connect. It doubles with each failure.
const REST_MIN: Duration = Duration::from_millis(10);

/// The longest time that a client that could not connect rests.
const REST_MAX: Duration = Duration::from_secs(1);

/// The shortest time after which a server may close a connection as idle. A server that closes one earlier has something against the
/// request.
const IDLE_MIN: Duration = Duration::from_millis(500);

/// The time after which somebody who waits for one of a limited number of connections looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The number of the timer among events.
const TIMER: u64 = u64::MAX;

/// Says what became of a request that was to be put on a connection.
enum Placed {
    /// It is on one.
    Yes,
    /// The client has no room for it yet.
    NoRoom(PendingRequest),
    /// It waits: no more connections are permitted now.
    Full(PendingRequest),
    /// There is no connection, and the request has failed. Its client goes on later.
    Failed,
}

/// The loop of a worker.
pub(super) struct Loop {
    worker: Worker,
    epoll: OwnedFd,
    timer: Timer,
    dues: Peekable<Dues>,
    messages: Messages,
    sources: Sources,
    connections: Slots<Connection>,
    clients: Slots<Client>,
    deadlines: Deadlines,
    /// Voices that rest after a failure, by the end of their rest.
    resting: BinaryHeap<Reverse<(Duration, u64, u16)>>,
    /// Voices that wait until the permitted load lets them send: who came first is first.
    line: VecDeque<(Key, u16)>,
    /// The time at which the first of them may try.
    line_moves: Duration,
    /// Whether it is the first of them who asks.
    is_first: bool,
    /// The most connections.
    connections_max: usize,
    /// Voices that can go on.
    ready: VecDeque<(Key, u16)>,
    /// Connections that must be read though no event says so.
    suspects: Vec<Key>,
    /// Connections that have more to read than may be read at once.
    unread: Vec<Key>,
    /// Connections with requests of a pipeline that are to be sent together.
    held: Vec<Key>,
    /// Voices of clients that wait for the schedule.
    free: Vec<(Key, u16)>,
    /// Requests of the schedule that wait for a free voice.
    waiting: VecDeque<(Duration, Option<u32>)>,
    /// Requests that wait for a certain client.
    waiting_for_one: usize,
    /// Clients that stay, in the order of their coming.
    stay: Vec<Key>,
    /// The client of each visitor of a log.
    replays: HashMap<u32, Key>,
    /// The clients of visitors of a log that have nothing to do, or had, the longest time first.
    idle_replays: VecDeque<Key>,
    visitors: u64,
    /// The most clients that answer the schedule's requests.
    asks_max: usize,
    pipeline: u16,
    no_keepalive: bool,
    open: bool,
    /// The time at which the run ends: then no more requests are made.
    ends: Option<Duration>,
    /// The time at which what is still under way after the end is given up. It is known when the run ends.
    gives_up: Option<Duration>,
    /// Permissions in store.
    mine: u64,
    /// Requests that have a permission, and have not ended.
    unended: u64,
    /// Whether there is no permission any more.
    exhausted: bool,
    /// The connections that were begun over TLS.
    secured: u64,
    buffer: Vec<u8>,
    /// The buffer for the plain text of what comes over TLS.
    plain: Vec<u8>,
    out: Vec<u8>,
}

impl Loop {
    pub(super) fn new(worker: Worker) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = Timer::new()?;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        let plan = &worker.plan;
        let pipeline = match plan.protocol {
            Protocol::Http1 { pipeline } if !plan.connections.no_keepalive => pipeline.max(1),
            _ => 1,
        };
        let asks_max = match plan.schedule {
            Schedule::Rate { clients, .. } => {
                let (clients, share) = (clients.max(1), worker.share);
                (clients / share.of + u32::from(share.worker < clients % share.of)) as usize
            }
            _ => 0,
        };
        Ok(Self {
            dues: worker.dues().peekable(),
            messages: Messages::new(&plan.requests, plan.connections.no_keepalive),
            sources: Sources::new(&plan.connections.sources, worker.share),
            connections: Slots::new(),
            clients: Slots::new(),
            deadlines: Deadlines::new(plan.timeout),
            resting: BinaryHeap::new(),
            line: VecDeque::new(),
            line_moves: Duration::ZERO,
            is_first: false,
            connections_max: worker.throttle.as_ref().map_or(usize::MAX, |limit| limit.connections(worker.share.worker, worker.share.of)),
            ready: VecDeque::new(),
            suspects: Vec::new(),
            unread: Vec::new(),
            held: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            waiting_for_one: 0,
            stay: Vec::new(),
            replays: HashMap::new(),
            idle_replays: VecDeque::new(),
            visitors: 0,
            asks_max,
            pipeline,
            no_keepalive: plan.connections.no_keepalive,
            open: plan.schedule.is_open(),
            ends: worker.ends(),
            gives_up: None,
            mine: 0,
            unended: 0,
            exhausted: false,
            secured: 0,
            buffer: vec![0; BUFFER],
            plain: vec![0; if worker.tls.is_some() { BUFFER } else { 0 }],
            out: Vec::new(),
            epoll,
            timer,
            worker,
        })
    }

    pub(super) fn run(mut self) -> Tally {
        self.worker.begin();
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        let mut late = Vec::new();
        let end = loop {
            let now = self.worker.clock.now();
            if self.worker.is_stopped() {
                break now;
            }
            if let Some(end) = self.ends.filter(|end| now >= *end) {
                let grace = || end + self.worker.recorder.grace(self.worker.plan.timeout);
                let gives_up = *self.gives_up.get_or_insert_with(grace);
                if now >= gives_up {
                    break gives_up;
                }
            }
            self.worker.recorder.tick(now);
            self.wake_rested(now);
            self.move_line(now);
            let more = self.follow_schedule(now);
            self.go_on();
            if self.is_over() {
                break self.worker.clock.now();
            }
            self.deadlines.due(now, &mut late);
            for key in late.drain(..) {
                self.look_at_deadline(key, now);
            }
            for key in std::mem::take(&mut self.unread) {
                self.read(key, true);
            }
            self.go_on();
            let due = self.dues.peek().filter(|_| !self.exhausted).map(|due| due.at);
            let line = (!self.line.is_empty()).then_some(self.line_moves);
            let next = if self.gives_up.is_some() {
                [self.gives_up, None, None, None]
            } else {
                [due, self.resting.peek().map(|rest| rest.0.0), line, self.ends]
            };
            if let Some(next) = next.into_iter().flatten().min()
                && self.timer.wake_at(next, now).is_err()
            {
                break now;
            }
            let wait = if more || !self.ready.is_empty() || !self.unread.is_empty() { Timespec { tv_sec: 0, tv_nsec: 0 } } else { LOOK_UP };
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break now,
            }
            for (count, event) in events.iter().enumerate() {
                let number = event.data.u64();
                if number == TIMER {
                    self.timer.has_woken();
                    continue;
                }
                self.event(Key::of(number), event.flags);
                if count % EVENTS_AT_ONCE == EVENTS_AT_ONCE - 1 {
                    self.follow_schedule(self.worker.clock.now());
                    self.go_on();
                }
            }
        };
        self.end(end)
    }

    /// Returns whether nothing is left to do.
    fn is_over(&mut self) -> bool {
        if self.unended > 0 {
            return false;
        }
        let comes_more = self.dues.peek().is_some() || !self.waiting.is_empty() || self.waiting_for_one > 0 || !self.resting.is_empty();
        self.exhausted || self.gives_up.is_some() || !comes_more && (self.open || self.clients.len() == 0)
    }

    /// Counts what was not answered and what was not sent, and ends the recording.
    fn end(mut self, now: Duration) -> Tally {
        let at = self.ends.map_or(now, |ends| ends.min(now));
        self.give_up(now);
        // The schedule wanted these, and their clients had no time to ask.
        let unasked = |client: &Client| client.voices.iter().filter(|voice| voice.intended.is_some()).count();
        let unasked = if self.exhausted { 0 } else { self.clients.values().map(unasked).sum() };
        let waiting = self.waiting.len() + self.waiting_for_one + unasked;
        let late = if self.exhausted {
            0
        } else {
            self.dues.take_while(|due| due.at < at).filter(|due| matches!(due.what, ClientEvent::Ask { .. } | ClientEvent::Visit)).count()
        };
        self.worker.recorder.missed((waiting + late) as u64);
        self.worker.recorder.finish(at)
    }

    /// Ends all that is under way as unfinished. If somebody has stopped the run, only what has waited for longer than is normal: the rest had no
    /// time.
    fn give_up(&mut self, now: Duration) {
        let least = if self.gives_up.is_some() { Duration::ZERO } else { self.worker.recorder.grace(self.worker.plan.timeout) };
        let has_waited = |under_way: &PendingRequest| now.saturating_sub(under_way.sent.unwrap_or(under_way.intended)) >= least;
        for key in self.connections.keys() {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            connection.under_way.retain(has_waited);
            self.lose(key, ErrorClass::Unfinished, now);
        }
        for key in self.clients.keys() {
            let Some(client) = self.clients.get_mut(key) else { continue };
            for under_way in std::mem::take(&mut client.again).into_iter().filter(has_waited) {
                self.failed(key, &under_way, ErrorClass::Unfinished, None, 0, now);
            }
        }
    }

    /// Returns whether the time of the run is over, so that no more requests are made.
    fn has_ended(&self, now: Duration) -> bool {
        self.ends.is_some_and(|end| now >= end)
    }

    // The schedule.

    /// Does what is due. Returns whether there is more.
    fn follow_schedule(&mut self, now: Duration) -> bool {
        if self.has_ended(now) {
            return false;
        }
        for _ in 0..DUES_AT_ONCE {
            let Some(due) = self.dues.next_if(|due| due.at <= now && !self.exhausted) else { return false };
            let (at, now) = (due.at, self.worker.clock.now());
            match due.what {
                ClientEvent::Join => {
                    let client = self.client(Kind::Stays, self.pipeline);
                    self.stay.push(client);
                    self.ready.extend((0..self.pipeline).map(|voice| (client, voice)));
                }
                ClientEvent::Leave => {
                    if let Some(key) = self.stay.pop()
                        && let Some(client) = self.clients.get_mut(key)
                    {
                        client.leaves = true;
                        self.leave_if_done(key);
                    }
                }
                ClientEvent::Visit => {
                    let client = self.client(Kind::Visits, 1);
                    self.assign(client, 0, at, None, now);
                }
                ClientEvent::Ask { request, visitor: None } => {
                    if self.free.is_empty() && self.clients.len() < self.asks_max {
                        let client = self.client(Kind::Asks, self.pipeline);
                        self.free.extend((0..self.pipeline).map(|voice| (client, voice)));
                    }
                    match self.free.pop() {
                        Some((client, voice)) => self.assign(client, voice, at, request, now),
                        None if self.waiting.len() + self.waiting_for_one < WAITING_MAX => {
                            // That it comes late is the generator's fault until now, and the server's from now on.
                            self.worker.recorder.sent(at, now);
                            self.waiting.push_back((at, request));
                        }
                        None => self.worker.recorder.missed(1),
                    }
                }
                ClientEvent::Ask { request, visitor: Some(visitor) } => self.replay(visitor, request.unwrap_or_default(), at, now),
            }
            self.go_on();
        }
        true
    }

    /// Makes a new client.
    fn client(&mut self, kind: Kind, voices: u16) -> Key {
        let share = self.worker.share;
        let visitors = (0..voices).map(|_| {
            let number = u64::from(share.worker) + self.visitors * u64::from(share.of);
            self.visitors += 1;
            Visitor::new(std::sync::Arc::clone(&self.worker.plan.requests), number, self.worker.plan.seed)
        });
        let client = Client::new(kind, visitors);
        let key = self.clients.insert(client);
        self.tell_clients();
        key
    }

    fn tell_clients(&mut self) {
        self.worker.recorder.clients(u32::try_from(self.clients.len()).unwrap_or(u32::MAX));
    }

    /// Gives a voice that was free something to do.
    fn assign(&mut self, client: Key, voice: u16, intended: Duration, only: Option<u32>, now: Duration) {
        self.worker.recorder.sent(intended, now);
        self.tell(client, voice, intended, only);
    }

    fn tell(&mut self, key: Key, voice: u16, intended: Duration, only: Option<u32>) {
        if let Some(client) = self.clients.get_mut(key) {
            let told = &mut client.voices[usize::from(voice)];
            told.intended = Some(intended);
            told.only = only;
            self.ready.push_back((key, voice));
        }
    }

    /// Follows a log's line.
    fn replay(&mut self, visitor: u32, request: u32, at: Duration, now: Duration) {
        let key = match self.replays.get(&visitor) {
            Some(key) => *key,
            None => {
                let key = self.client(Kind::Replays(visitor), 1);
                self.replays.insert(visitor, key);
                self.assign(key, 0, at, Some(request), now);
                return;
            }
        };
        let waiting = self.waiting_for_one;
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.is_idle() {
            self.assign(key, 0, at, Some(request), now);
        } else if waiting < WAITING_MAX {
            client.waiting.push_back((at, request));
            self.waiting_for_one += 1;
            self.worker.recorder.sent(at, now);
        } else {
            self.worker.recorder.missed(1);
        }
    }

    /// Lets those go on whose rest is over.
    fn wake_rested(&mut self, now: Duration) {
        while let Some(Reverse((at, client, voice))) = self.resting.peek().copied()
            && at <= now
        {
            self.resting.pop();
            self.ready.push_back((Key::of(client), voice));
        }
    }

    // Clients.

    /// Lets those in line send whom the permitted load lets.
    fn move_line(&mut self, now: Duration) {
        while self.line_moves <= now
            && let Some((key, voice)) = self.line.pop_front()
        {
            if let Some(client) = self.clients.get_mut(key) {
                client.voices[usize::from(voice)].is_in_line = false;
            }
            self.is_first = true;
            self.ask(key, voice, now);
            self.is_first = false;
        }
    }

    /// Returns whether the permitted load lets a request be sent now. If not, its voice gets in line.
    fn may_send(&mut self, key: Key, voice: u16, now: Duration) -> bool {
        let Some(throttle) = &self.worker.throttle else { return true };
        if !self.is_first && !self.line.is_empty() {
            self.get_in_line(key, voice, self.line_moves);
            return false;
        }
        match throttle.take(now) {
            Ok(()) => true,
            Err(then) => {
                self.get_in_line(key, voice, then);
                false
            }
        }
    }

    /// Lets a voice wait. Who was the first in line stays the first.
    fn get_in_line(&mut self, key: Key, voice: u16, moves: Duration) {
        self.line_moves = moves;
        if let Some(client) = self.clients.get_mut(key) {
            client.voices[usize::from(voice)].is_in_line = true;
        }
        if std::mem::take(&mut self.is_first) {
            self.line.push_front((key, voice));
        } else {
            self.line.push_back((key, voice));
        }
    }

    /// Gives back what a request took of the permitted load that could not be sent.
    fn give_back(&self) {
        if let Some(throttle) = &self.worker.throttle {
            throttle.give_back();
        }
    }

    /// Closes a connection on which nothing is under way. Returns whether there was one.
    fn drop_idle(&mut self) -> bool {
        let idle = self.connections.find(|connection| connection.under_way.is_empty());
        idle.is_some_and(|key| self.drop_connection(key).is_some())
    }

    /// Lets all go on who can.
    fn go_on(&mut self) {
        loop {
            while let Some((client, voice)) = self.ready.pop_front() {
                let now = self.worker.clock.now();
                self.ask(client, voice, now);
            }
            self.send_held();
            let Some(key) = self.suspects.pop() else { return };
            self.read(key, true);
        }
    }

    /// Sends the requests of pipelines.
    fn send_held(&mut self) {
        while let Some(key) = self.held.pop() {
            if self.connections.get_mut(key).is_some_and(|connection| connection.flush().is_err()) {
                self.suspects.push(key);
            }
        }
    }

    /// Lets a voice ask as much as it wants and can.
    fn ask(&mut self, key: Key, voice: u16, now: Duration) {
        let mut overs = 0;
        loop {
            let Some(client) = self.clients.get_mut(key) else { return };
            if client.voices[usize::from(voice)].is_in_line {
                return;
            }
            if !client.again.is_empty() && !self.may_send(key, voice, now) {
                return;
            }
            let Some(client) = self.clients.get_mut(key) else { return };
            if let Some(again) = client.again.pop_front() {
                match self.place(key, again, now) {
                    Placed::Yes => {
                        self.is_first = false;
                        continue;
                    }
                    Placed::Failed => return,
                    Placed::Full(again) => {
                        self.give_back();
                        if let Some(client) = self.clients.get_mut(key) {
                            client.again.push_front(again);
                        }
                        self.get_in_line(key, voice, now + LOOK_AGAIN);
                        return;
                    }
                    Placed::NoRoom(again) => {
                        self.give_back();
                        if let Some(client) = self.clients.get_mut(key) {
                            client.again.push_front(again);
                        }
                        return;
                    }
                }
            }
            let speaker = &mut client.voices[usize::from(voice)];
            let is_over = self.ends.is_some_and(|end| now >= end);
            let asked = match speaker.pending.take() {
                Some(_) if is_over => {
                    self.unended -= 1;
                    return;
                }
                Some(asked) => asked,
                None => {
                    if client.leaves {
                        self.leave_if_done(key);
                        return;
                    }
                    if self.exhausted || is_over {
                        return;
                    }
                    let intended = speaker.intended.unwrap_or(now);
                    match speaker.visitor.next(speaker.only, intended) {
                        Next::Ask(asked) => {
                            if !self.worker.budget.take(&mut self.mine, intended) {
                                self.exhausted = true;
                                return;
                            }
                            self.unended += 1;
                            overs = 0;
                            asked
                        }
                        Next::Wait => return,
                        Next::Over => {
                            if !self.is_over_for(key, voice) {
                                return;
                            }
                            overs += 1;
                            if overs == EMPTY_VISITS_MAX {
                                self.resting.push(Reverse((now + REST_MIN, key.number(), voice)));
                                return;
                            }
                            continue;
                        }
                    }
                }
            };
            if !self.may_send(key, voice, now) {
                if let Some(client) = self.clients.get_mut(key) {
                    client.voices[usize::from(voice)].pending = Some(asked);
                }
                return;
            }
            let Some(client) = self.clients.get_mut(key) else { return };
            let intended = client.voices[usize::from(voice)].intended.take();
            let (head, idempotent) = match &asked.own {
                Some(own) => (own.method == "HEAD", is_idempotent(&own.method)),
                None => {
                    let made = self.messages.made(asked.request);
                    (made.head, made.idempotent)
                }
            };
            let under_way = PendingRequest {
                asked,
                voice,
                intended: intended.unwrap_or(now),
                sent: None,
                again: false,
                after_idleness: false,
                head,
                idempotent,
            };
            match self.place(key, under_way, now) {
                Placed::Yes => self.is_first = false,
                Placed::Failed => return,
                placed @ (Placed::NoRoom(_) | Placed::Full(_)) => {
                    self.give_back();
                    let is_full = matches!(placed, Placed::Full(_));
                    let (Placed::NoRoom(back) | Placed::Full(back)) = placed else { return };
                    if let Some(client) = self.clients.get_mut(key) {
                        let speaker = &mut client.voices[usize::from(voice)];
                        speaker.intended = intended;
                        speaker.pending = Some(back.asked);
                    }
                    if is_full {
                        self.get_in_line(key, voice, now + LOOK_AGAIN);
                    }
                    return;
                }
            }
        }
    }

    /// Ends a visit. Returns whether the voice goes on with another one.
    fn is_over_for(&mut self, key: Key, voice: u16) -> bool {
        let Some(client) = self.clients.get_mut(key) else { return false };
        let speaker = &mut client.voices[usize::from(voice)];
        speaker.intended = None;
        speaker.only = None;
        match client.kind {
            Kind::Stays => true,
            Kind::Visits => {
                self.remove_client(key);
                false
            }
            Kind::Asks => match self.waiting.pop_front() {
                Some((intended, only)) => {
                    (speaker.intended, speaker.only) = (Some(intended), only);
                    true
                }
                None => {
                    self.free.push((key, voice));
                    false
                }
            },
            Kind::Replays(_) => match client.waiting.pop_front() {
                Some((intended, only)) => {
                    self.waiting_for_one -= 1;
                    (speaker.intended, speaker.only) = (Some(intended), Some(only));
                    true
                }
                None => {
                    self.rest_of_replay(key);
                    false
                }
            },
        }
    }

    /// Keeps the connections of a log's visitor for its next line, unless too many others do.
    fn rest_of_replay(&mut self, key: Key) {
        self.idle_replays.push_back(key);
        if self.idle_replays.len() > REPLAYS_IDLE_MAX
            && let Some(first) = self.idle_replays.pop_front()
            && self.clients.get(first).is_some_and(Client::is_idle)
        {
            self.remove_client(first);
        }
    }

    fn leave_if_done(&mut self, key: Key) {
        if self.clients.get(key).is_some_and(|client| client.leaves && client.under_way == 0 && client.again.is_empty()) {
            self.remove_client(key);
        }
    }

    fn remove_client(&mut self, key: Key) {
        let Some(client) = self.clients.remove(key) else { return };
        let pending = client
            .voices
            .iter()
            .filter(|voice| voice.pending.is_some())
            .map(|voice| voice.intended.unwrap_or_else(|| self.worker.clock.now()));
        let mut given_up: Vec<Duration> = client.again.iter().map(|under_way| under_way.intended).chain(pending).collect();
        for connection in client.connections {
            let connection = self.connections.remove(connection);
            given_up.extend(connection.iter().flat_map(|connection| &connection.under_way).map(|under_way| under_way.intended));
        }
        // Others may make these requests. Those of the warm-up have taken no permission.
        self.unended -= given_up.len() as u64;
        self.mine += given_up.iter().filter(|intended| self.worker.budget.counts(**intended)).count() as u64;
        if let Kind::Replays(visitor) = client.kind {
            self.replays.remove(&visitor);
        }
        self.tell_clients();
    }
}
