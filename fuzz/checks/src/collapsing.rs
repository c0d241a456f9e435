//! Collapsed requests: leaders, followers and growing bodies, in any order, against a model.

use std::{
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use store::{Broken, Generation, Hardness, Joined, Lead, Outcome, PurgeTarget, Record, Store, StoreOptions, Writer};

use crate::input::Reader;

const KEYS: u8 = 3;
const OBJECT_MAX: usize = 64 << 10;
const FLIGHTS_MAX: usize = 4;
const OPERATIONS_MAX: usize = 300;

/// Which flight it came from.
#[derive(Debug)]
struct Head(usize);

impl Record for Head {
    fn weight(&self) -> usize {
        0
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(usize::from_le_bytes).map(Self)
    }
}

type Body = store::Reader<u8>;

/// What the model knows of a flight.
struct Flight {
    key: u8,
    begun: Generation,
    /// In the table: a newcomer may join.
    open: bool,
    phase: Phase,
    written: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Growing,
    Complete,
    Uncacheable,
    Abandoned,
    Failed(u8),
}

/// Whether its task was woken since it last waited.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// Somebody who waits for a flight, and whether it was told to wait.
struct Waiting<T> {
    flight: usize,
    what: T,
    woken: Arc<Woken>,
    pending: bool,
}

impl<T> Waiting<T> {
    fn new(flight: usize, what: T) -> Self {
        Self { flight, what, woken: Arc::default(), pending: false }
    }
}

type Follower = Waiting<Pin<Box<dyn Future<Output = Outcome<Head, u8>>>>>;

struct Model {
    store: Store<Head, u8>,
    flights: Vec<Flight>,
    leads: Vec<(usize, Lead<Head, u8>)>,
    writers: Vec<(usize, Writer<Head, u8>)>,
    followers: Vec<Follower>,
    readers: Vec<Waiting<(Body, Vec<u8>)>>,
}

/// The input is a list of operations. A key has one leader at a time, or one more for each purge; every follower learns what became of its
/// flight and reads all of its body; whoever waits is woken; and in the end nothing is counted that is not there.
pub fn collapsing(data: &[u8]) {
    let mut input = Reader::new(data);
    let options = StoreOptions {
        object_max: OBJECT_MAX as u64,
        flights_max: FLIGHTS_MAX,
        followers_max: 4,
        growing_max: 1 << 30,
        uncacheable_max: 16,
        ..StoreOptions::with_memory(1 << 20)
    };
    let (flights, leads, writers, followers, readers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut model = Model { store: Store::new(options), flights, leads, writers, followers, readers };
    for _ in 0..OPERATIONS_MAX {
        if input.is_empty() {
            break;
        }
        model.step(&mut input);
        assert_eq!(model.store.usage().flights, model.leads.len() + model.writers.len());
    }
    model.end();
}

/// Takes the one that a byte names, if there is any.
fn take<T>(list: &mut Vec<T>, input: &mut Reader<'_>) -> Option<T> {
    let at = usize::from(input.byte()).checked_rem(list.len())?;
    Some(list.swap_remove(at))
}

impl Model {
    fn step(&mut self, input: &mut Reader<'_>) {
        match input.below(12) {
            0..=2 => self.join(input.below(KEYS)),
            3 => self.serve(input),
            4 | 5 => self.push(input),
            6 => {
                if let Some((flight, writer)) = take(&mut self.writers, input) {
                    self.finish(flight, writer, input);
                }
            }
            7 => self.settle(input),
            8 => {
                if let Some(follower) = take(&mut self.followers, input) {
                    self.follow(follower);
                }
            }
            9 => {
                if let Some(reader) = take(&mut self.readers, input) {
                    self.read(reader);
                }
            }
            10 => {
                // Somebody goes away.
                if input.byte() & 1 == 0 {
                    drop(take(&mut self.followers, input));
                } else {
                    drop(take(&mut self.readers, input));
                }
            }
            _ => drop(self.store.purge(&PurgeTarget::Site(1), Hardness::Soft)),
        }
    }

    fn join(&mut self, key: u8) {
        let now = self.store.generation();
        let open = self.flights.iter().rposition(|flight| flight.key == key && flight.open);
        let joinable = open.filter(|&flight| self.flights[flight].begun == now);
        match self.store.join(self.store.hash(&[key]), &[key]) {
            Joined::Lead(lead) => {
                assert_eq!(joinable, None, "two fetch the same");
                assert_eq!(lead.begun(), now);
                if let Some(overtaken) = open {
                    self.flights[overtaken].open = false;
                }
                let id = self.flights.len();
                self.flights.push(Flight { key, begun: now, open: true, phase: Phase::Waiting, written: Vec::new() });
                self.followers.push(Waiting::new(id, Box::pin(lead.follow().outcome())));
                self.leads.push((id, lead));
            }
            Joined::Follow(follow) => {
                let flight = joinable.expect("there is a flight to follow, and no purge has overtaken it");
                self.followers.push(Waiting::new(flight, Box::pin(follow.outcome())));
            }
            Joined::Full => {
                let waiting = |flight| {
                    let followers = self.followers.iter().filter(|follower| follower.flight == flight).count();
                    followers + self.readers.iter().filter(|reader| reader.flight == flight).count()
                };
                let full = match joinable {
                    Some(flight) => waiting(flight) >= 4,
                    None => self.leads.len() + self.writers.len() >= FLIGHTS_MAX,
                };
                assert!(full, "sent away while there is room");
            }
        }
    }

    fn serve(&mut self, input: &mut Reader<'_>) {
        let Some((id, lead)) = take(&mut self.leads, input) else { return };
        let hint = [None, Some(5), Some(OBJECT_MAX as u64 + 1)][usize::from(input.below(3))];
        let writer = lead.serve(Arc::new(Head(id)), hint);
        self.flights[id].phase = Phase::Growing;
        self.flights[id].open &= hint != Some(OBJECT_MAX as u64 + 1);
        self.writers.push((id, writer));
        self.woken(id);
    }

    fn push(&mut self, input: &mut Reader<'_>) {
        let Some((id, mut writer)) = take(&mut self.writers, input) else { return };
        let chunk = vec![input.byte(); usize::from(input.byte()) * 40];
        let pushed = {
            let mut push = pin!(writer.push(Bytes::from(chunk.clone())));
            push.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        };
        let flight = &mut self.flights[id];
        flight.written.extend_from_slice(&chunk);
        let too_long = flight.written.len() > OBJECT_MAX;
        flight.open &= !too_long;
        match pushed {
            Poll::Ready(Ok(())) | Poll::Pending => {
                self.writers.push((id, writer));
                if !chunk.is_empty() {
                    self.woken(id);
                }
            }
            Poll::Ready(Err(store::NobodyReads)) => {
                let read =
                    self.followers.iter().any(|follower| follower.flight == id) || self.readers.iter().any(|reader| reader.flight == id);
                assert!(!read, "somebody reads it");
                drop(writer);
                self.over(id, Phase::Abandoned);
            }
        }
    }

    fn finish(&mut self, id: usize, writer: Writer<Head, u8>, input: &mut Reader<'_>) {
        match input.below(4) {
            0 => {
                drop(writer);
                self.over(id, Phase::Abandoned);
            }
            1 => {
                writer.fail(7);
                self.over(id, Phase::Failed(7));
            }
            _ => {
                let Poll::Ready(completed) = pin!(writer.complete()).poll(&mut Context::from_waker(Waker::noop())) else {
                    panic!("there is no disk to wait for");
                };
                if let Some((whole, guard)) = completed {
                    assert_eq!(whole.memory().map(AsRef::as_ref), Some(&self.flights[id].written[..]));
                    assert_eq!(guard.begun(), self.flights[id].begun);
                    drop(guard);
                } else {
                    assert!(!self.flights[id].open, "what may be stored is not given back");
                }
                self.over(id, Phase::Complete);
            }
        }
    }

    fn settle(&mut self, input: &mut Reader<'_>) {
        let Some((id, lead)) = take(&mut self.leads, input) else { return };
        match input.below(3) {
            0 => {
                drop(lead);
                self.over(id, Phase::Abandoned);
            }
            1 => {
                lead.uncacheable();
                self.over(id, Phase::Uncacheable);
            }
            _ => {
                lead.failed(9);
                self.over(id, Phase::Failed(9));
            }
        }
    }

    fn over(&mut self, id: usize, phase: Phase) {
        self.flights[id].phase = phase;
        self.flights[id].open = false;
        self.woken(id);
    }

    /// Something happened to a flight: all who were told to wait for it have been woken.
    fn woken(&self, id: usize) {
        let followers = self.followers.iter().map(|follower| (follower.flight, follower.pending, &follower.woken));
        let readers = self.readers.iter().map(|reader| (reader.flight, reader.pending, &reader.woken));
        for (_, _, woken) in followers.chain(readers).filter(|(flight, pending, _)| *flight == id && *pending) {
            assert!(woken.0.load(Relaxed), "somebody sleeps on");
        }
    }

    fn follow(&mut self, mut follower: Follower) {
        let waker = Waker::from(Arc::clone(&follower.woken));
        let flight = &self.flights[follower.flight];
        follower.woken.0.store(false, Relaxed);
        match (follower.what.as_mut().poll(&mut Context::from_waker(&waker)), flight.phase) {
            (Poll::Pending, Phase::Waiting) => {
                follower.pending = true;
                self.followers.push(follower);
            }
            // Once there was a head, the body tells how it ended.
            (Poll::Ready(Outcome::Serve { record, body }), Phase::Growing | Phase::Complete | Phase::Abandoned | Phase::Failed(7)) => {
                assert_eq!(record.0, follower.flight, "another flight's head");
                self.readers.push(Waiting::new(follower.flight, (body, Vec::new())));
            }
            (Poll::Ready(Outcome::Uncacheable), Phase::Uncacheable) | (Poll::Ready(Outcome::Abandoned), Phase::Abandoned) => {}
            (Poll::Ready(Outcome::Failed(error)), Phase::Failed(was)) => assert_eq!(error, was),
            (polled, phase) => panic!("{polled:?} of a flight that is {phase:?}"),
        }
    }

    fn read(&mut self, mut reader: Waiting<(Body, Vec<u8>)>) {
        let waker = Waker::from(Arc::clone(&reader.woken));
        let flight = &self.flights[reader.flight];
        let (body, got) = &mut reader.what;
        reader.woken.0.store(false, Relaxed);
        let all = flight.written.len();
        match (body.poll_chunk(&mut Context::from_waker(&waker)), flight.phase) {
            (Poll::Ready(Some(Ok(chunk))), _) => {
                assert!(!chunk.is_empty());
                got.extend_from_slice(&chunk);
                assert!(flight.written.starts_with(got), "other bytes than were written");
                reader.pending = false;
                self.readers.push(reader);
            }
            (Poll::Pending, Phase::Growing) => {
                assert_eq!(got.len(), all, "made to wait before bytes that are there");
                reader.pending = true;
                self.readers.push(reader);
            }
            (Poll::Ready(None), Phase::Complete) => assert_eq!(got.len(), all, "the end came early"),
            (Poll::Ready(Some(Err(Broken::Abandoned))), Phase::Abandoned) => assert_eq!(got.len(), all),
            (Poll::Ready(Some(Err(Broken::Failed(7)))), Phase::Failed(7)) => assert_eq!(got.len(), all),
            (polled, phase) => panic!("{polled:?} of a body that is {phase:?}"),
        }
    }

    /// Everybody gets what is left for them, and goes.
    fn end(mut self) {
        for (id, lead) in std::mem::take(&mut self.leads) {
            drop(lead);
            self.over(id, Phase::Abandoned);
        }
        for (id, writer) in std::mem::take(&mut self.writers) {
            writer.fail(7);
            self.over(id, Phase::Failed(7));
        }
        while let Some(follower) = self.followers.pop() {
            self.follow(follower);
        }
        while let Some(reader) = self.readers.pop() {
            self.read(reader);
        }
        let usage = self.store.usage();
        assert_eq!((usage.flights, usage.followers, usage.growing_bytes), (0, 0, 0), "counted, but gone");
        for key in 0..KEYS {
            let joined = self.store.join(self.store.hash(&[key]), &[key]);
            assert!(matches!(joined, Joined::Lead(_)), "a flight that is over is still in the table");
        }
    }
}
