//! What failed a moment ago: an origin that could not be connected to, a page whose refresh failed.
//!
//! Readers of stale copies need not wait for the same failure again, so they get their copy at once, and now and then one asks behind them. A
//! site is in trouble only while connecting fails, as that concerns all its pages. Everything else concerns one page: whoever finds a
//! request over which the origin fails must not keep other pages old with it. Nor this one: what asks for a page that failed is a request
//! of the site's own, without any client's fields.
//!
//! Each failure knows the generation at which its fetch began: what failed before an edit says nothing about the page after it.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use semantics::Timestamp;
use store::{Generation, KeyHash};

/// The shortest pause after a failure; each further failure doubles it.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest pause for a page.
const PAGE_PAUSE_MAX: Duration = Duration::from_secs(5);
/// The longest pause for a site: an attempt to connect costs next to nothing, and a recovery should be seen soon.
const SITE_PAUSE_MAX: Duration = Duration::from_secs(1);
/// The time for which nobody else asks while one does.
const TRIED_FOR: Duration = Duration::from_secs(5);
/// The time after the last pause until readers wait for the origin again.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Pages in trouble that are remembered, of some 50 bytes each. When there are more, the readers of the others wait.
const PAGES_MAX: usize = 4_096;

/// The state of something that may have failed a moment ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No, as far as is known.
    None,
    /// Yes, and nobody is to ask again yet.
    Pause,
    /// Yes, and it is time to see whether it still does.
    Due,
}

/// The failures of one thing, until it succeeds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Failures {
    failed: bool,
    /// The generation at which the request began that failed last.
    begun: Option<Generation>,
    until: Timestamp,
    pause: Duration,
}

impl Failures {
    pub(crate) fn at(self, now: Timestamp) -> Trouble {
        if !self.failed || self.until + REMEMBERED <= now {
            Trouble::None
        } else if now < self.until {
            Trouble::Pause
        } else {
            Trouble::Due
        }
    }

    /// Returns the time until which nobody is to ask again.
    pub(crate) const fn until(self) -> Timestamp {
        self.until
    }

    /// Returns the generation at which the request began that failed last.
    pub(crate) const fn begun(self) -> Option<Generation> {
        self.begun
    }

    /// Notes that a site could not be connected to, or that it failed over a request of its own, which began at this generation.
    pub(crate) fn pause(&mut self, now: Timestamp, begun: Generation) {
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, SITE_PAUSE_MAX);
        *self = Self { failed: true, until: now + self.pause, begun: self.begun.max(Some(begun)), ..*self };
    }

    /// Notes that a page failed. The first time there is no pause: whose fault it was is seen when the site asks on its own.
    fn failed(&mut self, now: Timestamp, begun: Generation) {
        if self.at(now) == Trouble::None {
            *self = Self { failed: true, until: now, pause: Duration::ZERO, begun: Some(begun) };
        } else {
            self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAGE_PAUSE_MAX);
            *self = Self { until: now + self.pause, begun: self.begun.max(Some(begun)), ..*self };
        }
    }

    /// Notes that somebody asks again. The others have their copies while it is under way.
    pub(crate) fn tried(&mut self, now: Timestamp) {
        self.until = now + TRIED_FOR;
    }
}

/// The pages in trouble, by the hashes of their keys.
#[derive(Debug, Default)]
pub(crate) struct TroubledPages(Mutex<HashMap<KeyHash, Failures>>);

impl TroubledPages {
    pub(crate) fn at(&self, page: KeyHash, now: Timestamp) -> Trouble {
        self.of(page).at(now)
    }

    /// Returns the failures of a page.
    pub(crate) fn of(&self, page: KeyHash) -> Failures {
        self.0.lock().get(&page).copied().unwrap_or_default()
    }

    /// Notes that the refresh of a page, which began at this generation, takes too long to be waited for.
    pub(crate) fn late(&self, page: KeyHash, now: Timestamp, begun: Generation) {
        // Of a crowd, all who wait are late at once.
        let known = self.of(page);
        if known.at(now) == Trouble::None || known.begun() < Some(begun) {
            self.failed(page, now, begun);
        }
    }

    /// Notes that the refresh of a page failed, which began at this generation.
    pub(crate) fn failed(&self, page: KeyHash, now: Timestamp, begun: Generation) {
        let mut pages = self.0.lock();
        if pages.len() >= PAGES_MAX && !pages.contains_key(&page) {
            pages.retain(|_, failures| failures.at(now) != Trouble::None);
            if pages.len() >= PAGES_MAX {
                return;
            }
        }
        pages.entry(page).or_default().failed(now, begun);
    }

    /// Returns whether the caller may try the page again; for a while, nobody else may.
    pub(crate) fn tries(&self, page: KeyHash, now: Timestamp) -> bool {
        let mut pages = self.0.lock();
        let Some(failures) = pages.get_mut(&page).filter(|failures| failures.at(now) == Trouble::Due) else { return false };
        failures.tried(now);
        true
    }

    pub(crate) fn answered(&self, page: KeyHash) {
        self.0.lock().remove(&page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Shared};

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_secs(1_000) + Duration::from_millis(millis)
    }

    #[test]
    fn a_page_is_asked_for_at_once_and_then_at_longer_intervals() {
        let shared = Shared::new(store::StoreOptions::with_memory(1 << 20), Clock::system());
        let (pages, page) = (TroubledPages::default(), shared.store.hash(b"page"));
        let begun = shared.store.generation();
        assert_eq!(pages.at(page, at(0)), Trouble::None);
        pages.failed(page, at(0), begun);
        assert_eq!(pages.at(page, at(0)), Trouble::Due);
        let mut now = 0;
        for pause in [500, 1_000, 2_000, 4_000, 5_000, 5_000] {
            assert!(pages.tries(page, at(now)) && !pages.tries(page, at(now)), "one asks");
            pages.failed(page, at(now), begun);
            assert_eq!(pages.at(page, at(now + pause - 1)), Trouble::Pause);
            assert_eq!(pages.at(page, at(now + pause)), Trouble::Due);
            now += pause;
        }
        assert_eq!(pages.at(page, at(now + 10_000)), Trouble::None, "long ago");
        pages.answered(page);
        assert_eq!(pages.at(page, at(now)), Trouble::None);
    }

    #[test]
    fn pages_in_trouble_are_remembered_within_a_bound() {
        let shared = Shared::new(store::StoreOptions::with_memory(1 << 20), Clock::system());
        let (pages, page) = (TroubledPages::default(), |n: usize| shared.store.hash(n.to_string().as_bytes()));
        let begun = shared.store.generation();
        (0..=PAGES_MAX).for_each(|n| pages.failed(page(n), at(0), begun));
        assert_eq!((pages.at(page(0), at(0)), pages.at(page(PAGES_MAX), at(0))), (Trouble::Due, Trouble::None));
        pages.failed(page(PAGES_MAX), at(60_000), begun);
        assert_eq!(pages.0.lock().len(), 1, "what was long ago makes room");
    }

    #[test]
    fn a_site_is_tried_every_second_at_most() {
        let shared = Shared::new(store::StoreOptions::with_memory(1 << 20), Clock::system());
        let mut site = Failures::default();
        for (now, pause) in [(0, 500), (500, 1_000), (1_500, 1_000)] {
            site.pause(at(now), shared.store.generation());
            assert_eq!(site.at(at(now + pause - 1)), Trouble::Pause);
            assert_eq!(site.at(at(now + pause)), Trouble::Due);
        }
        site.tried(at(2_500));
        assert_eq!(site.at(at(7_499)), Trouble::Pause);
    }
}
