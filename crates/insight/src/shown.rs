//! Shows what was counted, as an operator sees it: the lists of all sites brought together, with what would end each reason.

use std::cmp::Reverse;

use admin_api::{CookieLine, ErrorLine, NamedCount, PageLine, Reason, Seen};

use crate::{
    CookiePart, Insight,
    insight::Sites,
    leaders::{Leader, Leaders},
    remedies,
    site::{Slot, State},
};

/// Lines of each list.
const LINES_MAX: usize = 25;
/// Lines of the reasons: there are so few that nearly all are shown.
const REASONS_MAX: usize = 100;

/// Lines of all sites with what each is ranked by.
#[derive(Debug, Default)]
struct Ranked<T>(Vec<(u64, T)>);

impl<T> Ranked<T> {
    /// Returns the first lines, the highest rank first; what has the same rank stays in its order.
    fn first(mut self, most: usize) -> Vec<T> {
        self.0.sort_by_key(|(rank, _)| Reverse(*rank));
        self.0.truncate(most);
        self.0.into_iter().map(|(_, line)| line).collect()
    }
}

/// The lists as they are brought together.
#[derive(Debug, Default)]
struct Lists {
    reasons: Ranked<Reason>,
    missed: Ranked<PageLine>,
    hot: Ranked<PageLine>,
    cookies: Ranked<CookieLine>,
    agents: Ranked<NamedCount>,
    referrers: Ranked<NamedCount>,
    errors: Ranked<ErrorLine>,
}

impl Insight {
    /// Returns what was counted, for one site by its name or for all together. `alerts` is left empty. `now` is in milliseconds since the epoch.
    /// `None`: there is no such site.
    #[must_use]
    pub fn seen(&self, site: Option<&str>, now: u64) -> Option<Seen> {
        let sites = self.sites.read();
        let slot = match site {
            Some(name) => Some(sites.named(name)?),
            None => None,
        };
        let mut lists = Lists::default();
        for slot in slot.map_or(&*sites.known, std::slice::from_ref) {
            lists.add(self, slot);
        }
        let names = Self::names_of(&sites);
        drop(sites);
        let memory = self.memory();
        let sums = |of: &crate::totals::Sums| (of.totals(), of.by_result(), of.by_class(), of.latencies());
        let slot = site.and_then(|name| self.sites.read().named(name).cloned());
        let all = self.all.lock();
        let since = all.began_before.unwrap_or(all.began);
        let (totals, by_result, by_class, latencies) = match slot {
            Some(slot) => {
                drop(all);
                sums(&slot.state.lock().sums)
            }
            None => sums(&all.sums),
        };
        Some(Seen {
            at: now,
            since,
            site: site.map(ToOwned::to_owned),
            sites: names,
            totals,
            by_result,
            by_class,
            latencies,
            reasons: lists.reasons.first(REASONS_MAX),
            missed: lists.missed.first(LINES_MAX),
            hot: lists.hot.first(LINES_MAX),
            cookies: lists.cookies.first(LINES_MAX),
            agents: merged(lists.agents),
            referrers: merged(lists.referrers),
            errors: lists.errors.first(LINES_MAX),
            purges: self.purges.lock().of(site),
            outages: self.outages.lock().of(site),
            alerts: Vec::new(),
            memory,
        })
    }

    fn names_of(sites: &Sites) -> Vec<String> {
        sites.configured.iter().map(|slot| slot.name.to_string()).collect()
    }
}

impl Lists {
    fn add(&mut self, insight: &Insight, slot: &Slot) {
        let state = slot.state.lock();
        let (site, names) = (&slot.name, &insight.names);
        for entry in state.reasons.entries() {
            let (cost, rule) = (entry.cost.sum(), names.text(entry.rule));
            let line = Reason {
                site: site.to_string(),
                remedy: remedies::remedy(&rule, &entry.detail),
                rule,
                detail: entry.detail.to_string(),
                requests: cost.requests,
                origin_micros: cost.micros,
                example: entry.example.to_string(),
            };
            self.reasons.0.push((cost.weight(), line));
        }
        for entry in state.errors.entries() {
            let line = ErrorLine {
                site: site.to_string(),
                status: entry.status,
                failure: names.text(entry.failure),
                requests: entry.requests.total(),
                last: entry.last,
                example: entry.example.to_string(),
            };
            self.errors.0.push((line.requests, line));
        }
        self.missed.0.extend(leading(&state.missed).map(|place| (place.certain(), page(site, place, names.text(place.more.rule)))));
        self.hot.0.extend(leading(&state.hot).map(|place| (place.certain(), page(site, place, String::new()))));
        self.add_cookies(site, &state);
        self.agents.0.extend(leading(&state.agents).map(named));
        self.referrers.0.extend(leading(&state.referrers).map(named));
    }

    fn add_cookies(&mut self, site: &str, state: &State) {
        let all = state.sums.requests();
        for place in leading(&state.cookies) {
            let (cost, answers) = (place.cost.sum(), place.more.answers.total());
            let line = CookieLine {
                site: site.to_owned(),
                name: place.name.to_string(),
                requests: cost.requests.saturating_sub(answers),
                answers,
                share: share(cost.requests, all),
                origin_micros: cost.micros,
                set_by: place.more.set_by.to_string(),
                known_for: remedies::known_for(&place.name).to_owned(),
                remedy: remedies::cookie(&place.name, if answers > 0 { CookiePart::Set } else { CookiePart::Carried }),
            };
            self.cookies.0.push((place.certain(), line));
        }
    }
}

/// Returns the places of a site that lead: no more than are shown.
fn leading<T>(leaders: &Leaders<T>) -> impl Iterator<Item = &Leader<T>> {
    let mut places: Vec<_> = leaders.places().iter().collect();
    places.sort_by_key(|place| Reverse(place.certain()));
    places.into_iter().take(LINES_MAX)
}

fn page<T>(site: &str, place: &Leader<T>, rule: String) -> PageLine {
    let cost = place.cost.sum();
    PageLine {
        site: site.to_owned(),
        url: place.name.to_string(),
        requests: cost.requests,
        error: place.error.requests,
        bytes: cost.bytes,
        origin_micros: cost.micros,
        rule,
    }
}

fn named(place: &Leader<()>) -> (u64, NamedCount) {
    (place.certain(), NamedCount { name: place.name.to_string(), requests: place.cost.sum().requests, error: place.error.requests })
}

/// Brings the lines of several sites with one name together.
fn merged(lines: Ranked<NamedCount>) -> Vec<NamedCount> {
    let mut merged: Ranked<NamedCount> = Ranked::default();
    for (rank, line) in lines.0 {
        match merged.0.iter_mut().find(|(_, other)| other.name == line.name) {
            Some((sum, other)) => {
                *sum += rank;
                other.requests += line.requests;
                other.error += line.error;
            }
            None => merged.0.push((rank, line)),
        }
    }
    merged.first(LINES_MAX)
}

/// Returns the share of a part, from 0 to 1. The whole is counted a second later than its parts.
#[expect(clippy::cast_precision_loss, reason = "a share has no need of more than 52 bits")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}
