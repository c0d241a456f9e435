//! Decides which sites, cookies, rules and refusals have lines of their own.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use pipeline::{CookieCount, RuleCount, SiteSnapshot, Snapshot};
use policy::CookieName;

use super::leading::{Board, Counts, Leading};
use crate::plan::Plan;

/// The sites that have lines of their own.
const SITES_SHOWN: usize = 50;

/// The pairs of a site and a cookie, and of a site and a rule, that have lines of their own.
const PAIRS_SHOWN: usize = 25;

/// The reasons of refusals that have lines of their own.
const REFUSALS_SHOWN: usize = 40;

/// The label of those that have none.
pub(super) const OTHER: &str = "other";

/// The label of all together.
pub(super) const ALL: &str = "all";

/// Remembers who is shown from one answer to the next: whoever asks for metrics, and how many do, they read the same counters.
#[derive(Debug)]
pub(crate) struct ShownNames(Mutex<LeadingNames>);

#[derive(Debug)]
struct LeadingNames {
    sites: Leading<u16, SiteSnapshot>,
    cookies: Leading<(u16, String), CookieCount>,
    rules: Leading<(u16, &'static str), RuleCount>,
    refusals: Leading<&'static str, u64>,
}

/// Everything that is shown at one time, by the labels of its lines.
#[derive(Debug)]
pub(super) struct Boards {
    /// The sites in the order of the configuration, and the others.
    pub(super) sites: Vec<(String, SiteSnapshot)>,
    numbers: Vec<u16>,
    pub(super) cookies: Vec<((String, String), CookieCount)>,
    pub(super) rules: Vec<((String, &'static str), RuleCount)>,
    pub(super) refusals: Vec<(&'static str, u64)>,
}

impl Default for ShownNames {
    fn default() -> Self {
        Self(Mutex::new(LeadingNames {
            sites: Leading::new(SITES_SHOWN),
            cookies: Leading::new(PAIRS_SHOWN),
            rules: Leading::new(PAIRS_SHOWN),
            refusals: Leading::new(REFUSALS_SHOWN),
        }))
    }
}

impl ShownNames {
    /// Decides who is shown. `count` reads the counters while nobody else decides: a later decision never rests on earlier counts.
    pub(super) fn boards(
        &self,
        plan: &Plan,
        count: impl FnOnce() -> (Snapshot, Vec<(u16, CookieName, CookieCount)>),
    ) -> (Snapshot, Boards) {
        let mut remembered = self.0.lock();
        let (mut counted, cookies) = count();
        // A site with that name has to be one of the others, where there are any.
        let has_others = plan.sites.len() > SITES_SHOWN || remembered.sites.is_crowded();
        let may_be_shown = |name: &str| name != OTHER || !has_others;
        let names: BTreeMap<u16, &str> =
            plan.sites.iter().map(|site| (site.id, site.name())).filter(|(_, name)| may_be_shown(name)).collect();
        let name_of = |site: &u16| names.get(site).map_or(OTHER, |name| *name).to_owned();
        for site in &plan.sites {
            counted.sites.entry(site.id).or_default();
        }

        let mut board = remembered.sites.board(&counted.sites, |site| names.contains_key(site));
        let mut numbers: Vec<u16> = plan.sites.iter().map(|site| site.id).collect();
        numbers.retain(|site| board.shown.contains_key(site));
        let sites = numbers.iter().map(|site| (name_of(site), board.shown.remove(site).unwrap_or_default()));
        let sites = sites.chain(board.other.map(|other| (OTHER.to_owned(), other))).collect();

        let mut by_cookie: BTreeMap<_, CookieCount> = BTreeMap::new();
        for (site, cookie, count) in cookies {
            by_cookie.entry((site, cookie.to_string())).or_default().combine(&count, u64::wrapping_add);
        }
        let is_pair = |site: &u16, what: &str| names.get(site).is_some_and(|name| (*name, what) != (OTHER, OTHER));
        let Board { shown, other } = remembered.cookies.board(&by_cookie, |(site, cookie)| is_pair(site, cookie));
        let cookies = shown.into_iter().map(|((site, cookie), count)| ((name_of(&site), cookie), count));
        let cookies = cookies.chain(other.map(|other| ((OTHER.to_owned(), OTHER.to_owned()), other))).collect();

        let Board { shown, other } = remembered.rules.board(&counted.rules, |(site, rule)| is_pair(site, rule));
        let rules = shown.into_iter().map(|((site, rule), count)| ((name_of(&site), rule), count));
        let rules = rules.chain(other.map(|other| ((OTHER.to_owned(), OTHER), other))).collect();

        let Board { shown, other } = remembered.refusals.board(&counted.refusals, |_| true);
        let refusals = shown.into_iter().chain(other.map(|other| (OTHER, other))).collect();
        (counted, Boards { sites, numbers, cookies, rules, refusals })
    }
}

impl Boards {
    /// Returns whether a site has lines of its own.
    pub(super) fn shows(&self, site: u16) -> bool {
        self.numbers.contains(&site)
    }
}

impl Counts for SiteSnapshot {
    fn combine(&mut self, other: &Self, change: fn(u64, u64) -> u64) {
        Self::combine(self, other, change);
    }

    fn weight(&self) -> u64 {
        self.outcomes.iter().sum()
    }
}

impl Counts for CookieCount {
    fn combine(&mut self, other: &Self, change: fn(u64, u64) -> u64) {
        let Self { answers, requests } = self;
        (*answers, *requests) = (change(*answers, other.answers), change(*requests, other.requests));
    }

    fn weight(&self) -> u64 {
        self.answers + self.requests
    }
}

impl Counts for RuleCount {
    fn combine(&mut self, other: &Self, change: fn(u64, u64) -> u64) {
        let Self { requests, origin_micros } = self;
        (*requests, *origin_micros) = (change(*requests, other.requests), change(*origin_micros, other.origin_micros));
    }

    fn weight(&self) -> u64 {
        self.requests
    }
}
