//! Purges: a number that only rises, and a table of what was purged when.
//!
//! A stored response is purged if a purge that covers it is younger than the beginning of its fetch. So it does not matter whether the
//! response was stored before the purge or is stored after it by a fetch that was slower: both lose to the same comparison. A purge costs
//! one line in the table; stored responses are judged when they are next asked for, once per generation.
//!
//! The table never forgets. When it is full, the older half of its lines becomes one line per site that covers the whole site: some
//! responses are then validated without need, none is served that was purged. With a disk tier, neither does a restart: the table is kept
//! in a [log](crate::disk::purge_log) as well, and a purge is in it before anybody is told that it happened.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};

use crate::disk::purge_log::{History, Logged, LoggedTarget, PurgeLog};
use crate::hash::{AsIs, KeyHash, Secret};
use crate::resource::{Scope, Stored};

/// The most prefixes that the table tells apart. They are few (a person types them), and judging a response visits all of them.
const PREFIXES_MAX: usize = 1_024;
/// The most bytes of a prefix that are compared. A longer one is cut: it then covers more than was asked, never less.
pub const PREFIX_BYTES_MAX: usize = 4_096;

/// A number that every purge raises. It belongs to one store: without a disk tier it starts anew with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub(crate) u64);

impl Generation {
    /// Returns the number, to show to people.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// One thing that a purge covers, in the store's own terms: the number of a site, and host and path as they stand in keys.
///
/// The store knows no names of sites and no spellings of hosts. Whoever wants something purged says it in those, and the room above brings
/// it into this form before it comes here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgeTarget {
    /// Every variant and query form of a URL, spelled as in [`Scope::url`].
    Url {
        /// The site.
        site: u16,
        /// Host and path.
        url: Vec<u8>,
    },
    /// Every URL that begins with these bytes.
    Prefix {
        /// The site.
        site: u16,
        /// The beginning of host and path.
        url: Vec<u8>,
    },
    /// Every response that carries a tag.
    Tag {
        /// The site.
        site: u16,
        /// The tag.
        tag: String,
    },
    /// All of one site.
    Site(u16),
    /// Everything.
    All,
}

impl PurgeTarget {
    /// Returns whether a response with this scope is covered, whenever it was fetched.
    #[must_use]
    pub fn covers(&self, scope: &Scope) -> bool {
        match self {
            Self::All => true,
            Self::Site(site) => scope.site == *site,
            Self::Url { site, url } => scope.site == *site && *scope.url == **url,
            Self::Prefix { site, url } => scope.site == *site && scope.url.starts_with(&url[..url.len().min(PREFIX_BYTES_MAX)]),
            Self::Tag { site, tag } => scope.site == *site && scope.tags.iter().any(|own| **own == **tag),
        }
    }
}

/// Says how thoroughly to purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hardness {
    /// Marks responses stale: they may still be served while they are refreshed, or if the origin is down.
    Soft,
    /// Makes sure that responses are never served again.
    Hard,
}

/// Says whether a stored response was purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purged {
    /// It was not purged.
    No,
    /// Nobody knows whether it was purged: it was fetched before a [doubt](crate::Store::doubt). It must be validated before it is used as
    /// fresh.
    Doubted,
    /// It was purged softly: it is stale, whatever its lifetime says.
    Soft,
    /// It was purged hard: it must not be used.
    Hard,
}

/// The target of a purge that covers a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgedBy {
    /// Everything.
    All,
    /// Its site.
    Site,
    /// Its URL, by the answer to an unsafe method (RFC 9111 §4.4).
    Invalidation,
    /// Its URL.
    Url,
    /// One of its tags.
    Tag,
    /// A beginning of its URL.
    Prefix,
}

/// The result of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgeReceipt {
    /// The generation that the purge made: a fetch that begins now is not covered.
    pub generation: Generation,
    /// The number of variants that were stored for a URL, in all its query forms (the first 4,096 forms are counted); `None` for other targets.
    pub variants: Option<usize>,
}

/// The table of purges, and the generation that the last one made.
pub(crate) struct PurgeTable {
    /// The lock that a purge holds from beginning to end: purges come one after another, in the log as in the table. Readers never wait for
    /// it, and so never for the disk.
    log: Mutex<Option<PurgeLog>>,
    /// The current generation. It is written only under the lock of `lines`, after the line is in: a reader of the new generation finds its
    /// line.
    generation: AtomicU64,
    /// The generation of the last purge by an operator. Those count for every fetch; an invalidation counts for fetches of its URL alone.
    purged: AtomicU64,
    lines: RwLock<Lines>,
    targets_max: usize,
    secret: Secret,
}

#[derive(Default)]
struct Lines {
    all: Mark,
    /// The generation of the last doubt; 0: there was none. It covers everything.
    doubted: u64,
    /// The lines of sites. At most 65,536 of 24 bytes: sites are numbered by the operator's configuration, and these lines are never
    /// folded.
    sites: BTreeMap<u16, Mark>,
    /// The lines of URLs and tags by their secret hash, so that a line's size does not depend on what was purged. If two ever shared a
    /// hash, one would be purged with the other.
    exact: HashMap<KeyHash, Line, AsIs>,
    /// The lines of URLs that the answer to an unsafe method invalidated (RFC 9111 §4.4). Anybody may send those, so they have a table of
    /// their own: they push out nobody's purge, and fold into a soft purge of the site.
    invalidated: HashMap<KeyHash, Line, AsIs>,
    prefixes: Vec<PrefixLine>,
}

/// The latest purge of each hardness. Both are kept: a soft purge after a hard one must not soften it.
#[derive(Clone, Copy, Default)]
struct Mark {
    soft: u64,
    hard: u64,
}

#[derive(Clone, Copy)]
struct Line {
    mark: Mark,
    site: u16,
}

struct PrefixLine {
    line: Line,
    prefix: Box<[u8]>,
}

const URL: u8 = 0;
const TAG: u8 = 1;

impl PurgeTable {
    pub(crate) fn new(targets_max: usize, secret: Secret) -> Self {
        let (generation, purged) = (AtomicU64::new(1), AtomicU64::new(1));
        Self { log: Mutex::new(None), generation, purged, lines: RwLock::default(), targets_max: targets_max.max(1), secret }
    }

    /// Creates a table that continues the log in `dir`, and keeps that log. The secret must be the one that the log was written with.
    ///
    /// Blocks for as long as the log takes to be read and written once: call it at the start, not on a worker. Fails if nothing can be
    /// written in `dir`: then nothing that is stored there may be used, because purges could not be kept with it.
    pub(crate) fn open(targets_max: usize, secret: Secret, dir: &Path) -> io::Result<(Self, History)> {
        let (mut log, replay) = PurgeLog::open(dir)?;
        let mut lines = Lines::default();
        for logged in &replay.lines {
            lines.apply(logged, targets_max.max(1));
        }
        if replay.history != History::Whole {
            // The missing purges may have covered anything, and some of them may have been hard.
            lines.purge_all(Mark::of(replay.generation, Hardness::Soft));
            lines.doubted = replay.generation;
        }
        log.begin(replay.generation, || lines.logged())?;
        let table = Self {
            log: Mutex::new(Some(log)),
            generation: AtomicU64::new(replay.generation),
            purged: AtomicU64::new(replay.generation),
            lines: RwLock::new(lines),
            targets_max: targets_max.max(1),
            secret,
        };
        Ok((table, replay.history))
    }

    /// Ends the log in order: every purge is on the disk for good.
    pub(crate) fn close(&self) {
        if let Some(log) = &mut *self.log.lock() {
            log.close(self.generation().0, || self.lines.read().logged());
        }
    }

    /// Returns whether the disk accepts no purges. If it does not accept them again before the next start, what is stored on it is then
    /// given up.
    pub(crate) fn log_is_failing(&self) -> bool {
        self.log.lock().as_ref().is_some_and(PurgeLog::is_failing)
    }

    pub(crate) fn generation(&self) -> Generation {
        Generation(self.generation.load(Ordering::Acquire))
    }

    /// Returns the name of a URL, as the table and the index know it.
    pub(crate) fn url(&self, site: u16, url: &[u8]) -> KeyHash {
        self.secret.name(URL, site, url)
    }

    /// Returns the number of lines held: URLs, tags, prefixes and sites.
    pub(crate) fn len(&self) -> usize {
        let lines = self.lines.read();
        lines.exact.len() + lines.invalidated.len() + lines.prefixes.len() + lines.sites.len()
    }

    /// Raises the generation and notes the target. It adds one line, except when the table is full: then it visits the whole table, every
    /// `targets_max / 2` purges.
    ///
    /// The line is in the log first, by one write(2) of at most 9 KiB: into the system's memory, not to the disk's plates, so `kill -9`
    /// cannot lose it and a worker can afford it.
    pub(crate) fn purge(&self, target: &PurgeTarget, hardness: Hardness) -> Generation {
        let what = match target {
            PurgeTarget::All => LoggedTarget::All,
            PurgeTarget::Site(site) => LoggedTarget::Site(*site),
            PurgeTarget::Url { site, url } => LoggedTarget::Exact { site: *site, name: self.url(*site, url) },
            PurgeTarget::Tag { site, tag } => LoggedTarget::Exact { site: *site, name: self.secret.name(TAG, *site, tag.as_bytes()) },
            PurgeTarget::Prefix { site, url } => {
                LoggedTarget::Prefix { site: *site, prefix: url[..url.len().min(PREFIX_BYTES_MAX)].into() }
            }
        };
        self.note(hardness, what)
    }

    /// Raises the generation and notes that purges may have been lost: whatever was fetched before is doubted. It is in the log like a purge.
    pub(crate) fn doubt(&self) -> Generation {
        self.note(Hardness::Soft, LoggedTarget::Doubt)
    }

    /// Raises the generation and notes a URL that the answer to an unsafe method invalidated, like [`purge`](Self::purge).
    pub(crate) fn invalidate(&self, site: u16, name: KeyHash) -> Generation {
        self.note(Hardness::Hard, LoggedTarget::Invalidated { site, name })
    }

    /// Returns whether a fetch of a URL that began at `begun` may bring what was purged or invalidated since.
    pub(crate) fn overtook(&self, name: KeyHash, begun: Generation) -> bool {
        if begun.0 < self.purged.load(Ordering::Acquire) {
            return true;
        }
        let lines = self.lines.read();
        lines.invalidated.get(&name).is_some_and(|line| begun.0 < line.mark.latest())
    }

    fn note(&self, hardness: Hardness, what: LoggedTarget) -> Generation {
        let mut log = self.log.lock();
        let generation = self.generation.load(Ordering::Relaxed) + 1;
        let logged = Logged { generation, hardness, what };
        if let Some(log) = &mut *log {
            log.append(&logged);
        }
        let mut lines = self.lines.write();
        lines.apply(&logged, self.targets_max);
        if !matches!(logged.what, LoggedTarget::Invalidated { .. }) {
            self.purged.store(generation, Ordering::Release);
        }
        self.generation.store(generation, Ordering::Release);
        drop(lines);
        if let Some(log) = &mut *log {
            log.tidy(generation, self.len(), || self.lines.read().logged());
        }
        Generation(generation)
    }

    /// Raises the generation alone: fetches that began before can be told from those that begin now.
    pub(crate) fn raise(&self) -> Generation {
        // The lock is taken as every purge does: of two that read the same generation one would be lost.
        let _log = self.log.lock();
        let _lines = self.lines.write();
        let generation = self.generation.load(Ordering::Relaxed) + 1;
        self.generation.store(generation, Ordering::Release);
        Generation(generation)
    }

    /// Judges a stored response: one comparison if nothing was purged since it was last judged, else a search that is remembered.
    pub(crate) fn verdict<R>(&self, stored: &Stored<R>) -> Purged {
        stored.verdict_at(self.generation()).unwrap_or_else(|| self.judge(stored))
    }

    #[cold]
    fn judge<R>(&self, stored: &Stored<R>) -> Purged {
        let lines = self.lines.read();
        // The generation cannot rise while the lines are read, so this answer belongs to it and to no other.
        let generation = self.generation();
        let purged = self.mark(&lines, stored.scope()).verdict(stored.begun()).max(lines.doubt(stored.begun()));
        stored.remember(generation, purged);
        purged
    }

    /// Returns whether a purge since `begun` covers a scope, softly or hard, or may do so, as there was a doubt.
    pub(crate) fn is_purged(&self, scope: &Scope, begun: Generation) -> bool {
        if begun >= self.generation() {
            return false;
        }
        let lines = self.lines.read();
        lines.doubt(begun) != Purged::No || self.mark(&lines, scope).verdict(begun) != Purged::No
    }

    /// Returns whether what was fetched at `begun` may have been purged hard without our knowledge, whatever else has purged it since.
    pub(crate) fn is_doubted(&self, begun: Generation) -> bool {
        self.lines.read().doubt(begun) != Purged::No
    }

    /// Returns the current generation if no purge since `begun` covers a scope.
    pub(crate) fn uncovered(&self, scope: &Scope, begun: Generation) -> Option<Generation> {
        let lines = self.lines.read();
        // The generation cannot rise while the lines are read.
        let generation = self.generation();
        (begun <= generation && self.mark(&lines, scope).verdict(begun) == Purged::No).then_some(generation)
    }

    /// Returns the kinds of targets in the table that cover a response, with the hardness that each comes to for it.
    pub(crate) fn covering<R>(&self, stored: &Stored<R>) -> Vec<(PurgedBy, Hardness)> {
        let mut covering = Vec::new();
        self.each_mark(&self.lines.read(), stored.scope(), |kind, mark| match mark.verdict(stored.begun()) {
            Purged::No | Purged::Doubted => {}
            Purged::Soft => covering.push((kind, Hardness::Soft)),
            Purged::Hard => covering.push((kind, Hardness::Hard)),
        });
        covering
    }

    /// Returns everything in the table that covers `scope`, as one mark.
    fn mark(&self, lines: &Lines, scope: &Scope) -> Mark {
        let mut all = Mark::default();
        self.each_mark(lines, scope, |_, mark| all.raise(mark));
        all
    }

    /// Passes everything in the table that covers `scope` to `found`, with the kind of its target.
    fn each_mark(&self, lines: &Lines, scope: &Scope, mut found: impl FnMut(PurgedBy, Mark)) {
        found(PurgedBy::All, lines.all);
        if let Some(site) = lines.sites.get(&scope.site) {
            found(PurgedBy::Site, *site);
        }
        if !lines.invalidated.is_empty()
            && let Some(line) = lines.invalidated.get(&self.url(scope.site, &scope.url))
        {
            found(PurgedBy::Invalidation, line.mark);
        }
        if !lines.exact.is_empty() {
            if let Some(line) = lines.exact.get(&self.url(scope.site, &scope.url)) {
                found(PurgedBy::Url, line.mark);
            }
            for tag in &scope.tags {
                if let Some(line) = lines.exact.get(&self.secret.name(TAG, scope.site, tag.as_bytes())) {
                    found(PurgedBy::Tag, line.mark);
                }
            }
        }
        for prefix in &lines.prefixes {
            if prefix.line.site == scope.site && scope.url.starts_with(&prefix.prefix) {
                found(PurgedBy::Prefix, prefix.line.mark);
            }
        }
    }
}

impl Lines {
    fn apply(&mut self, logged: &Logged, targets_max: usize) {
        let mark = Mark::of(logged.generation, logged.hardness);
        match &logged.what {
            LoggedTarget::All => self.purge_all(mark),
            LoggedTarget::Doubt => self.doubted = self.doubted.max(logged.generation),
            LoggedTarget::Site(site) => self.sites.entry(*site).or_default().raise(mark),
            LoggedTarget::Exact { site, name } => self.purge_exact(*name, Line { mark, site: *site }, targets_max),
            LoggedTarget::Invalidated { site, name } => self.invalidate(*name, Line { mark, site: *site }, targets_max),
            LoggedTarget::Prefix { site, prefix } => self.purge_prefix(prefix, Line { mark, site: *site }),
        }
    }

    /// Returns the table as purges that rebuild it. They are in any order, except that those of everything come first, so that no line is
    /// added only to be dropped.
    fn logged(&self) -> Vec<Logged> {
        let all = self.all.logged(&LoggedTarget::All);
        let doubt = (self.doubted > 0).then_some(Logged { generation: self.doubted, hardness: Hardness::Soft, what: LoggedTarget::Doubt });
        let sites = self.sites.iter().flat_map(|(site, mark)| mark.logged(&LoggedTarget::Site(*site)));
        let exact = self.exact.iter().flat_map(|(name, line)| line.mark.logged(&LoggedTarget::Exact { site: line.site, name: *name }));
        let invalidated =
            self.invalidated.iter().flat_map(|(name, line)| line.mark.logged(&LoggedTarget::Invalidated { site: line.site, name: *name }));
        let prefixes = self
            .prefixes
            .iter()
            .flat_map(|held| held.line.mark.logged(&LoggedTarget::Prefix { site: held.line.site, prefix: held.prefix.clone() }));
        all.chain(doubt).chain(sites).chain(exact).chain(invalidated).chain(prefixes).collect()
    }

    /// Returns what the last doubt makes of a fetch that began at `begun`.
    const fn doubt(&self, begun: Generation) -> Purged {
        if begun.0 < self.doubted { Purged::Doubted } else { Purged::No }
    }

    /// Notes a purge of everything, and drops the lines that it includes.
    fn purge_all(&mut self, mark: Mark) {
        self.all.raise(mark);
        let all = self.all;
        self.sites.retain(|_, mark| mark.exceeds(all));
        self.exact.retain(|_, line| line.mark.exceeds(all));
        self.invalidated.retain(|_, line| line.mark.exceeds(all));
        self.prefixes.retain(|prefix| prefix.line.mark.exceeds(all));
        // A soft purge says less than a doubt: the purge that is not known may have been a hard one.
        if self.doubted <= all.hard {
            self.doubted = 0;
        }
    }

    fn purge_exact(&mut self, name: KeyHash, line: Line, max: usize) {
        if let Some(held) = self.exact.get_mut(&name) {
            held.mark.raise(line.mark);
            return;
        }
        if self.exact.len() >= max {
            let oldest = older_half(self.exact.values().map(|line| line.mark.latest()));
            let sites = &mut self.sites;
            self.exact.retain(|_, line| line.mark.latest() > oldest || fold(sites, *line));
        }
        self.exact.insert(name, line);
    }

    /// Notes an invalidated URL. The table folds softly: a stranger can cause a site to be validated again, and no more.
    fn invalidate(&mut self, name: KeyHash, line: Line, max: usize) {
        if self.invalidated.len() >= max && !self.invalidated.contains_key(&name) {
            let oldest = older_half(self.invalidated.values().map(|line| line.mark.latest()));
            let sites = &mut self.sites;
            let soft = |line: &Line| Line { mark: Mark { soft: line.mark.latest(), hard: 0 }, site: line.site };
            self.invalidated.retain(|_, line| line.mark.latest() > oldest || fold(sites, soft(line)));
        }
        self.invalidated.entry(name).or_insert(line).mark.raise(line.mark);
    }

    fn purge_prefix(&mut self, prefix: &[u8], line: Line) {
        if let Some(held) = self.prefixes.iter_mut().find(|held| held.line.site == line.site && *held.prefix == *prefix) {
            held.line.mark.raise(line.mark);
            return;
        }
        if self.prefixes.len() >= PREFIXES_MAX {
            let oldest = older_half(self.prefixes.iter().map(|prefix| prefix.line.mark.latest()));
            let sites = &mut self.sites;
            self.prefixes.retain(|prefix| prefix.line.mark.latest() > oldest || fold(sites, prefix.line));
        }
        self.prefixes.push(PrefixLine { line, prefix: prefix.into() });
    }
}

/// Returns the generation up to which lines belong to the older half; of one line, that line.
fn older_half(generations: impl Iterator<Item = u64>) -> u64 {
    let mut generations: Vec<u64> = generations.collect();
    let middle = generations.len().saturating_sub(1) / 2;
    generations.get(middle).copied().map_or(0, |_| *generations.select_nth_unstable(middle).1)
}

/// Lets the site's line count for this one. Soft and hard stay apart: one hard purge among many soft ones makes hard only what is older
/// than itself. Returns `false`, so that `retain` drops the line.
fn fold(sites: &mut BTreeMap<u16, Mark>, line: Line) -> bool {
    sites.entry(line.site).or_default().raise(line.mark);
    false
}

impl Mark {
    const fn of(generation: u64, hardness: Hardness) -> Self {
        match hardness {
            Hardness::Soft => Self { soft: generation, hard: 0 },
            Hardness::Hard => Self { soft: 0, hard: generation },
        }
    }

    /// Returns the purges that make this mark: one, two or none.
    fn logged(self, what: &LoggedTarget) -> impl Iterator<Item = Logged> + use<> {
        [(self.soft, Hardness::Soft), (self.hard, Hardness::Hard)].into_iter().filter(|(generation, _)| *generation > 0).map({
            let what = what.clone();
            move |(generation, hardness)| Logged { generation, hardness, what: what.clone() }
        })
    }

    fn raise(&mut self, other: Self) {
        self.soft = self.soft.max(other.soft);
        self.hard = self.hard.max(other.hard);
    }

    fn latest(self) -> u64 {
        self.soft.max(self.hard)
    }

    /// Returns whether this mark says anything that `other` does not: a hard purge that is later, or a soft one later than any in `other`.
    fn exceeds(self, other: Self) -> bool {
        self.hard > other.hard || self.soft > other.latest()
    }

    const fn verdict(self, begun: Generation) -> Purged {
        if begun.0 < self.hard {
            Purged::Hard
        } else if begun.0 < self.soft {
            Purged::Soft
        } else {
            Purged::No
        }
    }
}

#[cfg(test)]
mod tests;
