//! The ledger: which version of each page there is, which one no reader may fall behind, and what readers were shown.
//!
//! A change raises a page's version at the origin. When a purge of it is said to hold everywhere, that version is the page's *floor*: an answer
//! that is begun afterwards and shows an older one is wrong. When a purge is merely answered, the time of that is kept, so that it is known how
//! stale an answer was.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// The groups of pages: each has a tag and a beginning of its addresses.
pub(crate) const GROUPS: usize = 6;
/// The pages of a site of which nobody knows what it is.
pub(crate) const BLOG: Range<usize> = 0..42;
/// The pages of a Ghost.
pub(crate) const GHOST: Range<usize> = 42..60;
/// All pages.
pub(crate) const PAGES: usize = 60;
/// The most wrong answers that are kept in words.
const WRONG_TOLD: usize = 20;

/// Returns the host of a page's site.
pub(crate) fn host_of(page: usize) -> &'static str {
    if BLOG.contains(&page) { "blog.example" } else { "ghost.example" }
}

/// Returns the path of a page.
pub(crate) fn path_of(page: usize) -> String {
    format!("/g{}/page-{page}/", page % GROUPS)
}

/// Returns the page at a path.
pub(crate) fn page_at(path: &str) -> Option<usize> {
    path.trim_end_matches('/').rsplit_once("/page-")?.1.parse().ok().filter(|page| *page < PAGES)
}

/// Pages, and the versions to which a change has raised them.
pub(crate) type Change = Vec<(usize, u64)>;

#[derive(Debug, Default)]
struct Page {
    version: AtomicU64,
    floor: AtomicU64,
    answered: Mutex<Vec<Answered>>,
}

/// A purge of a page that was answered.
#[derive(Debug, Clone, Copy)]
struct Answered {
    version: u64,
    when: Instant,
    kind: &'static str,
}

/// Says what a reader expects who asks now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    page: usize,
    floor: u64,
    begun: Instant,
}

/// Counts what readers and purgers have met.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// The number of answers with a page.
    pub(crate) served: u64,
    /// The number of those without one, and of requests without an answer, by machine and reason.
    pub(crate) errors: BTreeMap<(String, String), u64>,
    /// The number of answers that a purge forbade that was said to hold everywhere.
    pub(crate) wrong: u64,
    /// The first of them in words.
    pub(crate) wrong_in_words: Vec<String>,
    /// The number of answers that showed what a purge had covered that was answered before, whatever it was said to be.
    pub(crate) stale: u64,
    /// The longest time by which such an answer came after the answer to the purge.
    pub(crate) stale_max: Duration,
    /// The number of such answers by the kind of the purge.
    pub(crate) stale_after: BTreeMap<&'static str, u64>,
    /// The number of purges that were said to hold everywhere.
    pub(crate) everywhere: u64,
    /// The number of purges of which that was not known.
    pub(crate) not_known: u64,
    /// The number of writes that were answered: of them nothing is said.
    pub(crate) writes: u64,
    /// The number of purges and writes without a good answer.
    pub(crate) refused: u64,
    /// The reasons, by machine and kind.
    pub(crate) refused_why: BTreeMap<(String, &'static str, String), u64>,
    /// The times that acknowledgements took, by kind.
    pub(crate) took: Vec<(&'static str, Duration)>,
}

/// The ledger.
#[derive(Debug)]
pub(crate) struct Ledger {
    pages: Vec<Page>,
    tally: Mutex<Tally>,
    begun: Instant,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    /// Opens a ledger in which each page has its first version.
    pub(crate) fn new() -> Self {
        let pages = (0..PAGES).map(|_| Page::default()).collect();
        Self { pages, tally: Mutex::default(), begun: Instant::now() }
    }

    /// Returns the version of a page.
    pub(crate) fn version(&self, page: usize) -> u64 {
        self.pages[page].version.load(SeqCst)
    }

    /// Changes pages at the origin.
    pub(crate) fn change(&self, pages: impl IntoIterator<Item = usize>) -> Change {
        pages.into_iter().map(|page| (page, self.pages[page].version.fetch_add(1, SeqCst) + 1)).collect()
    }

    /// Notes that a purge of these pages was answered a moment ago.
    pub(crate) fn is_answered(&self, change: &Change, kind: &'static str) {
        for (page, version) in change {
            let mut answered = lock(&self.pages[*page].answered);
            let at = answered.partition_point(|own| own.version < *version);
            answered.insert(at, Answered { version: *version, when: Instant::now(), kind });
        }
    }

    /// Notes that a purge of these pages is said to hold everywhere.
    pub(crate) fn holds_everywhere(&self, change: &Change) {
        for (page, version) in change {
            self.pages[*page].floor.fetch_max(*version, SeqCst);
        }
    }

    /// Notes that every purge that was answered holds everywhere by now.
    pub(crate) fn all_that_was_answered_holds(&self) {
        for page in &self.pages {
            if let Some(last) = lock(&page.answered).last() {
                page.floor.fetch_max(last.version, SeqCst);
            }
        }
    }

    /// Returns what is expected of a request that begins after this call.
    pub(crate) fn expected(&self, page: usize) -> Expected {
        Expected { page, floor: self.pages[page].floor.load(SeqCst), begun: Instant::now() }
    }

    /// Judges the content of an answer to such a request.
    pub(crate) fn judge(&self, expected: Expected, content: &str, who: &str, cache: &str) {
        let mut words = content.split_ascii_whitespace();
        let told: Option<(usize, u64)> = (|| {
            let page = words.nth(1)?.parse().ok()?;
            Some((page, words.nth(1)?.parse().ok()?))
        })();
        let Some((page, version)) = told.filter(|(page, _)| *page == expected.page) else {
            self.wrong(format!("{who}: page {} is not itself: {content:.60}", expected.page));
            return;
        };
        if version < expected.floor {
            self.wrong(format!(
                "{who} showed version {version} of page {page} {:.3} s after the start; {} held everywhere before it was asked; {cache}",
                expected.begun.duration_since(self.begun).as_secs_f64(),
                expected.floor,
            ));
        }
        let since = {
            let answered = lock(&self.pages[page].answered);
            // Of the purges that cover this version, the one that was answered first.
            let at = answered.partition_point(|own| own.version <= version);
            answered[at..].iter().min_by_key(|own| own.when).copied()
        };
        let mut tally = lock(&self.tally);
        tally.served += 1;
        if let Some(since) = since.filter(|since| since.when < expected.begun) {
            tally.stale += 1;
            tally.stale_max = tally.stale_max.max(expected.begun.duration_since(since.when));
            *tally.stale_after.entry(since.kind).or_default() += 1;
        }
    }

    fn wrong(&self, words: String) {
        let mut tally = lock(&self.tally);
        tally.wrong += 1;
        if tally.wrong_in_words.len() < WRONG_TOLD {
            tally.wrong_in_words.push(words);
        }
    }

    /// Notes something else that must not be, such as an answer that contradicts itself.
    pub(crate) fn must_not_be(&self, words: String) {
        self.wrong(words);
    }

    /// Notes that a reader got no page.
    pub(crate) fn error(&self, machine: &str, why: String) {
        *lock(&self.tally).errors.entry((machine.to_owned(), why)).or_default() += 1;
    }

    /// Changes what was counted.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut lock(&self.tally));
    }

    /// Returns what was counted.
    pub(crate) fn tally(&self) -> Tally {
        lock(&self.tally).clone()
    }

    /// Returns the number of answers with a page.
    pub(crate) fn served(&self) -> u64 {
        lock(&self.tally).served
    }

    /// Counts an acknowledgement.
    pub(crate) fn took(&self, kind: &'static str, time: Duration) {
        lock(&self.tally).took.push((kind, time));
    }
}

/// The judge itself, of answers that are made up.
mod of_the_judge {
    use super::*;

    #[test]
    fn an_older_version_than_a_purge_that_holds_everywhere_is_wrong() {
        let ledger = Ledger::new();
        let before = ledger.expected(7);
        let change = ledger.change([7]);
        ledger.is_answered(&change, "PURGE");
        ledger.judge(ledger.expected(7), "page 7 version 0", "a", "");
        assert_eq!((ledger.tally().wrong, ledger.tally().stale), (0, 1), "nobody said that it holds everywhere");
        ledger.holds_everywhere(&change);
        ledger.judge(before, "page 7 version 0", "a", "");
        assert_eq!(ledger.tally().wrong, 0, "it was asked before");
        ledger.judge(ledger.expected(7), "page 7 version 1", "a", "");
        assert_eq!(ledger.tally().wrong, 0);
        ledger.judge(ledger.expected(7), "page 7 version 0", "a", "");
        assert_eq!(ledger.tally().wrong, 1);
        ledger.judge(ledger.expected(8), "page 7 version 1", "a", "");
        assert_eq!(ledger.tally().wrong, 2, "another page");
    }
}
