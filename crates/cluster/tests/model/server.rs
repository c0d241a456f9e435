//! A server as a value: what one step does to the stream and the list of machines.

use std::collections::{BTreeMap, VecDeque};

use cluster::{
    link::{Appended, Member, Round},
    stream::{Entry, EntryContent, EntryId, EntryMaker, Position, Run},
};
use fastrand::Rng;
use std::time::Instant;

/// Holds what a server keeps. A dump and a replica are copies of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerDump {
    stream: Option<VecDeque<Entry>>,
    last: EntryId,
    pub(crate) members: BTreeMap<String, Member>,
    pub(crate) born: Option<String>,
}

/// A server.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) kept: ServerDump,
    pub(crate) run: Run,
    /// The replica's data.
    pub(crate) replica: ServerDump,
    /// Whether the replica can be reached.
    pub(crate) has_replica: bool,
    /// The milliseconds by which its wall clock is off. It is in the ids of entries.
    pub(crate) wall: i64,
    pub(crate) is_up: bool,
}

/// An order as the model server takes it: unsealed.
pub(crate) type Plain = (EntryMaker, policy::purge::Order);

impl Server {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self { kept: ServerDump::default(), run: run(rng), replica: ServerDump::default(), has_replica: true, wall: 0, is_up: true }
    }

    fn id(&mut self, now_ms: u64) -> EntryId {
        let millis = (1_700_000_000_000 + now_ms).saturating_add_signed(self.wall);
        let last = self.kept.last;
        let next = if millis > last.millis {
            EntryId { millis, sequence: 0 }
        } else {
            EntryId { millis: last.millis, sequence: last.sequence + 1 }
        };
        self.kept.last = next;
        next
    }

    /// Writes `count` replicas, if there are any; returns whether that is enough. Without being asked, a replica follows now and then.
    fn replicate(&mut self, replicas: u32, rng: &mut Rng) -> bool {
        if self.has_replica && (replicas > 0 || rng.u8(..4) > 0) {
            self.replica = self.kept.clone();
        }
        replicas == 0 || self.has_replica && replicas == 1
    }

    pub(crate) fn round(&mut self, ask: &RoundQuestion, now_ms: u64, replicas: u32, rng: &mut Rng) -> Round {
        if self.kept.stream.is_none() {
            self.kept.last = EntryId::default();
            let id = self.id(now_ms);
            self.kept.stream = Some(VecDeque::from([Entry {
                id,
                made: Some(EntryMaker { session: format!("begun-{}", rng.u64(..)), number: 0 }),
                said: EntryContent::Begun,
            }]));
            self.kept.members.clear();
            self.kept.born = None;
        }
        let born = self.kept.born.get_or_insert_with(|| format!("{:016x}", rng.u64(..))).clone();
        self.kept.members.insert(ask.field.clone(), ask.member.clone());
        let stream = self.kept.stream.as_ref().expect("it was begun");
        let at = ask
            .position
            .as_ref()
            .filter(|position| position.run == self.run)
            .and_then(|position| stream.iter().position(|entry| entry.id == position.id && entry.made == position.made));
        let entries = at.map(|at| stream.iter().skip(at + 1).take(ask.entries_max).cloned().collect()).unwrap_or_default();
        let end = stream.back().expect("a stream that was begun has an entry").clone();
        let members = self.kept.members.clone();
        let replicated = self.replicate(replicas, rng);
        Round {
            sent: ask.sent,
            run: self.run.clone(),
            continuous: at.is_some(),
            entries,
            end,
            members,
            strangers: Vec::new(),
            born,
            replicated,
        }
    }

    pub(crate) fn append(&mut self, orders: &[Plain], keep: usize, now_ms: u64, replicas: u32, rng: &mut Rng) -> Option<Appended> {
        self.kept.stream.as_ref()?;
        let mut ids = Vec::new();
        for (made, order) in orders {
            let id = self.id(now_ms);
            let stream = self.kept.stream.as_mut().expect("looked at before");
            stream.push_back(Entry { id, made: Some(made.clone()), said: EntryContent::Purge(order.clone()) });
            while stream.len() > keep {
                stream.pop_front();
            }
            ids.push(id);
        }
        let born = self.kept.born.get_or_insert_with(|| format!("{:016x}", rng.u64(..))).clone();
        let members = self.kept.members.clone();
        let replicated = self.replicate(replicas, rng);
        // Whoever asked notes when the reply is there.
        Some(Appended { replied: Instant::now(), run: self.run.clone(), ids, members, strangers: Vec::new(), born, replicated })
    }

    pub(crate) fn flush(&mut self) {
        self.kept = ServerDump::default();
    }

    /// Starts anew with something that was kept before.
    pub(crate) fn restart(&mut self, kept: ServerDump, rng: &mut Rng) {
        self.kept = kept;
        self.run = run(rng);
        self.is_up = true;
    }
}

/// A question for a round, as it travels.
#[derive(Debug, Clone)]
pub(crate) struct RoundQuestion {
    pub(crate) field: String,
    pub(crate) member: Member,
    pub(crate) position: Option<Position>,
    pub(crate) entries_max: usize,
    pub(crate) sent: Instant,
}

fn run(rng: &mut Rng) -> Run {
    Run(format!("{:016x}", rng.u64(..)))
}
