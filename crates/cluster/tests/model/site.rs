//! A machine of the model: the real [`Machine`], a cache of a few pages behind a fence, and what drives both.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use cluster::{
    link::{Confirmed, Member},
    machine::{Machine, Ticket},
    stream::Position,
};
use policy::purge::{Order, What};

/// A page, by its number.
pub(crate) type Page = usize;

/// A stored page, as far as readers see it.
#[derive(Debug, Clone)]
struct Stored {
    version: u64,
    /// The generation at which its fetch began.
    begun: u64,
    /// The time at which its origin was asked, and the process that asked.
    asked: (Instant, u32),
}

/// Holds what a machine has on the way to the server.
#[derive(Debug)]
pub(crate) enum Link {
    Down,
    Connecting,
    Up { in_flight: Option<u64> },
}

/// Something to send that does not come from the machine's own turn.
#[derive(Debug, Clone)]
pub(crate) enum Extra {
    Confirm(Confirmed),
    Remove(String, Member),
}

/// A machine.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) name: String,
    /// Counts its starts.
    pub(crate) process: u32,
    pub(crate) machine: Option<Machine>,
    pub(crate) lease: Duration,
    pub(crate) hold: Duration,
    /// The number of millionths by which its clock is faster, and the time by which it is ahead.
    pub(crate) rate: i64,
    pub(crate) ahead: Duration,
    pub(crate) fence: Option<Instant>,
    pub(crate) link: Link,
    pub(crate) connection: u64,
    pub(crate) extras: VecDeque<Extra>,
    pub(crate) frozen_until: u64,
    pub(crate) requests_cut: bool,
    pub(crate) replies_cut: bool,
    pub(crate) origin_cut: bool,
    /// The number of the server that it uses, of the two.
    pub(crate) server: usize,
    pub(crate) timer: u64,
    /// Whether the server's list has had it since members were lost.
    pub(crate) is_known: bool,
    pub(crate) tickets: BTreeMap<Ticket, BTreeMap<Page, u64>>,
    disk: Option<Position>,
    cache: BTreeMap<Page, Stored>,
    generation: u64,
    marks: BTreeMap<Page, u64>,
    doubted: u64,
}

/// Returns the pages that an order covers.
pub(crate) fn covered(order: &Order, pages: usize) -> Vec<Page> {
    let covers = |page: &Page| {
        order.what.iter().any(|what| match what {
            What::Tag(tag) => *tag == format!("page-{page}"),
            _ => true,
        })
    };
    (0..pages).filter(covers).collect()
}

impl Site {
    pub(crate) fn new(name: String, lease: Duration, hold: Duration, rate: i64, ahead: Duration) -> Self {
        Self {
            name,
            process: 0,
            machine: None,
            lease,
            hold,
            rate,
            ahead,
            fence: None,
            link: Link::Down,
            connection: 0,
            extras: VecDeque::new(),
            frozen_until: 0,
            requests_cut: false,
            replies_cut: false,
            origin_cut: false,
            server: 0,
            timer: u64::MAX,
            is_known: false,
            tickets: BTreeMap::new(),
            disk: None,
            cache: BTreeMap::new(),
            generation: 1,
            marks: BTreeMap::new(),
            doubted: 0,
        }
    }

    /// Ends the process, with its memory. Without a disk, everything stored is gone as well.
    pub(crate) fn crash(&mut self, keeps_disk: bool) {
        self.machine = None;
        self.fence = None;
        self.link = Link::Down;
        self.connection += 1;
        self.extras.clear();
        self.tickets.clear();
        self.is_known = false;
        self.timer = u64::MAX;
        if !keeps_disk {
            self.cache.clear();
            self.disk = None;
        }
    }

    pub(crate) fn disk(&self) -> Option<Position> {
        self.disk.clone()
    }

    pub(crate) fn keep(&mut self, position: &Position) {
        self.disk = Some(position.clone());
    }

    /// Carries an order out.
    pub(crate) fn apply(&mut self, order: &Order, pages: usize) {
        self.generation += 1;
        for page in covered(order, pages) {
            self.marks.insert(page, self.generation);
        }
    }

    pub(crate) fn doubt(&mut self) {
        self.generation += 1;
        self.doubted = self.generation;
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn store(&mut self, page: Page, version: u64, begun: u64, asked: Instant) {
        if self.cache.get(&page).is_none_or(|stored| stored.begun <= begun) {
            self.cache.insert(page, Stored { version, begun, asked: (asked, self.process) });
        }
    }

    pub(crate) fn is_leased(&self, now: Instant) -> bool {
        self.fence.is_some_and(|until| now < until)
    }

    /// Returns the version of a page that is shown as fresh, if one is; everything else is asked of the origin first. The fence is taken as given.
    pub(crate) fn shows(&self, page: Page, is_leased: bool, now: Instant) -> Option<u64> {
        let stored = self.cache.get(&page)?;
        let is_purged = self.marks.get(&page).is_some_and(|mark| stored.begun < *mark) || stored.begun < self.doubted;
        let is_held = stored.asked.1 == self.process && now.saturating_duration_since(stored.asked.0) < self.hold;
        (!is_purged && (is_leased || is_held)).then_some(stored.version)
    }
}
