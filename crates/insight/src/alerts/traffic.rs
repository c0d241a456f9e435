//! The numbers that the rules about traffic compare: the last hour of each site by minutes, and the hit ratio of each hour of the last
//! week.
//!
//! A site takes 2 KiB, so all of them take 512 KiB at most.

use std::collections::BTreeMap;

use semantics::Timestamp;
use serde::{Deserialize, Serialize};

use super::TrafficFact;

/// The sites that are looked at: the first ones of the configuration.
pub const SITES_MAX: usize = 256;

/// The fewest lookups in an hour from which a hit ratio is more than chance.
pub const HOUR_LOOKUPS_MIN: u64 = 200;

/// The minutes in which errors are counted together.
const ERROR_MINUTES: u64 = 5;

/// The fewest minutes that must have been seen before a hit ratio counts as that of the last hour: a cache that has just started is empty.
const RATIO_MINUTES_MIN: u64 = 30;

const HOUR_MINUTES: usize = 60;
const WEEK_HOURS: u64 = 7 * 24;
/// A week, the hour before it that the hour up to now may reach into, and the present one.
const HOURS: usize = 170;

/// The traffic of all sites.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    sites: BTreeMap<String, Box<Site>>,
}

/// The traffic of one site.
#[derive(Clone, Debug)]
struct Site {
    /// The minute in which it was seen first since the start.
    first: u64,
    minutes: [Minute; HOUR_MINUTES],
    week: Week,
}

#[derive(Clone, Copy, Debug, Default)]
struct Minute {
    /// The number of the minute since the epoch.
    number: u64,
    requests: u32,
    errors: u32,
    lookups: u32,
    hits: u32,
}

/// The hit ratios of a week by the hour, as they are kept over a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Week {
    /// The number of the present hour since the epoch.
    hour: u64,
    /// Lookups and hits in it.
    lookups: u64,
    hits: u64,
    /// Hit ratios in hundredths of a per cent, by the number of their hour modulo the length; below zero if it is not known.
    ratios: Vec<i16>,
}

impl Week {
    const UNKNOWN: i16 = -1;

    fn new(hour: u64) -> Self {
        Self { hour, lookups: 0, hits: 0, ratios: vec![Self::UNKNOWN; HOURS] }
    }

    /// Tells whether it can be one that was kept.
    pub(super) fn is_sound(&self) -> bool {
        self.ratios.len() == HOURS && self.ratios.iter().all(|ratio| (Self::UNKNOWN..=10_000).contains(ratio)) && self.hits <= self.lookups
    }

    fn at(&mut self, hour: u64) {
        if hour == self.hour {
            return;
        }
        let of_last = (self.lookups >= HOUR_LOOKUPS_MIN).then(|| self.hits * 10_000 / self.lookups);
        self.ratios[slot(self.hour)] = of_last.and_then(|ratio| i16::try_from(ratio).ok()).unwrap_or(Self::UNKNOWN);
        // The hours in between nobody has seen; all of them if the clock was put back.
        let unseen = if hour > self.hour { self.hour + 1..hour.min(self.hour + 1 + HOURS as u64) } else { 0..HOURS as u64 };
        for hour in unseen {
            self.ratios[slot(hour)] = Self::UNKNOWN;
        }
        (self.hour, self.lookups, self.hits) = (hour, 0, 0);
    }

    fn ratio(&self, hour: u64) -> Option<f64> {
        let is_held = hour < self.hour && hour + (HOURS as u64) > self.hour;
        let ratio = is_held.then(|| self.ratios[slot(hour)]).filter(|ratio| *ratio >= 0)?;
        Some(f64::from(ratio) / 10_000.0)
    }
}

fn slot(hour: u64) -> usize {
    usize::try_from(hour % HOURS as u64).unwrap_or_default()
}

const fn minute(now: Timestamp) -> u64 {
    now.as_secs() / 60
}

fn add(to: &mut u32, more: u64) {
    *to = to.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
}

impl Site {
    fn new(minute: u64) -> Box<Self> {
        Box::new(Self { first: minute, minutes: [Minute::default(); HOUR_MINUTES], week: Week::new(minute / 60) })
    }

    fn add(&mut self, number: u64, fact: &TrafficFact) {
        let slot = usize::try_from(number % HOUR_MINUTES as u64).unwrap_or_default();
        let minute = &mut self.minutes[slot];
        if minute.number != number {
            *minute = Minute { number, ..Minute::default() };
        }
        add(&mut minute.requests, fact.requests);
        add(&mut minute.errors, fact.server_errors);
        add(&mut minute.lookups, fact.lookups);
        add(&mut minute.hits, fact.hits.min(fact.lookups));
        self.week.at(number / 60);
        self.week.lookups += fact.lookups;
        self.week.hits += fact.hits.min(fact.lookups);
        self.first = self.first.min(number);
    }

    /// Returns the last so many minutes up to this one, as far as something was counted.
    fn last(&self, number: u64, minutes: u64) -> impl Iterator<Item = &Minute> {
        self.minutes.iter().filter(move |minute| minute.number <= number && minute.number + minutes > number)
    }
}

impl Traffic {
    /// Adds what sites were asked, and forgets sites that are no longer there.
    pub(super) fn add(&mut self, now: Timestamp, facts: &[TrafficFact]) {
        let facts = &facts[..facts.len().min(SITES_MAX)];
        self.sites.retain(|name, _| facts.iter().any(|fact| fact.site == *name));
        let number = minute(now);
        for fact in facts {
            match self.sites.get_mut(&fact.site) {
                Some(site) => site.add(number, fact),
                None => {
                    let mut site = Site::new(number);
                    site.add(number, fact);
                    self.sites.insert(fact.site.clone(), site);
                }
            }
        }
    }

    /// Returns how many responses of the last minutes were errors of the server, and how many there were.
    pub(super) fn errors(&self, now: Timestamp, site: &str) -> (u64, u64) {
        let minutes = self.sites.get(site).into_iter().flat_map(|site| site.last(minute(now), ERROR_MINUTES));
        minutes.fold((0, 0), |(errors, all), minute| (errors + u64::from(minute.errors), all + u64::from(minute.requests)))
    }

    /// Returns the hit ratio of the last hour, if there was enough traffic for one.
    pub(super) fn ratio(&self, now: Timestamp, site: &str) -> Option<f64> {
        let site = self.sites.get(site).filter(|site| site.first + RATIO_MINUTES_MIN <= minute(now))?;
        let minutes = site.last(minute(now), HOUR_MINUTES as u64);
        let (hits, lookups) = minutes.fold((0, 0), |(hits, all), minute| (hits + u64::from(minute.hits), all + u64::from(minute.lookups)));
        (lookups >= HOUR_LOOKUPS_MIN).then(|| hits as f64 / lookups as f64)
    }

    /// Returns the hit ratio of the same hour of the week before, if it is known. That hour lies in two hours of the clock, each of which counts by how
    /// much of it belongs to it.
    pub(super) fn ratio_before(&self, now: Timestamp, site: &str) -> Option<f64> {
        let site = self.sites.get(site)?;
        let (hour, of_hour) = (minute(now) / 60, minute(now) % 60 + 1);
        let later = hour.checked_sub(WEEK_HOURS).and_then(|hour| site.week.ratio(hour));
        let earlier = hour.checked_sub(WEEK_HOURS + 1).and_then(|hour| site.week.ratio(hour));
        let of_later = of_hour as f64 / 60.0;
        match (earlier, later) {
            (Some(earlier), Some(later)) => Some(later.mul_add(of_later, earlier * (1.0 - of_later))),
            (one, other) => one.or(other),
        }
    }

    pub(super) fn weeks(&self) -> impl Iterator<Item = (&String, &Week)> {
        self.sites.iter().map(|(name, site)| (name, &site.week))
    }

    /// Makes the traffic of sites of which the last week was kept. The last hour is not: the minutes since the start have to show what the cache does.
    pub(super) fn of(now: Timestamp, weeks: BTreeMap<String, Week>) -> Self {
        let site = |week: Week| Box::new(Site { week, ..*Site::new(minute(now)) });
        let weeks = weeks.into_iter().filter(|(_, week)| week.is_sound()).take(SITES_MAX);
        Self { sites: weeks.map(|(name, week)| (name, site(week))).collect() }
    }

    pub(super) fn bytes(&self) -> usize {
        self.sites.keys().map(|name| name.capacity() + size_of::<Site>() + HOURS * size_of::<i16>() + 64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(lookups: u64, hits: u64) -> TrafficFact {
        TrafficFact { site: "a".to_owned(), requests: lookups, lookups, hits, server_errors: 0 }
    }

    /// Returns minute `n` of a time that begins with an hour.
    fn at(n: u64) -> Timestamp {
        Timestamp::from_secs(1_767_225_600 + n * 60)
    }

    #[test]
    fn errors_are_those_of_the_last_five_minutes() {
        let mut traffic = Traffic::default();
        for n in 0..70 {
            let errors = u64::from((60..66).contains(&n));
            traffic.add(at(n), &[TrafficFact { server_errors: errors, ..fact(10, 10) }]);
        }
        assert_eq!(traffic.errors(at(69), "a"), (1, 50));
        assert_eq!(traffic.errors(at(70), "a"), (0, 40));
        assert_eq!(traffic.errors(at(200), "a"), (0, 0));
        assert_eq!(traffic.errors(at(69), "b"), (0, 0));
    }

    #[test]
    fn a_hit_ratio_needs_half_an_hour_and_some_traffic() {
        let mut traffic = Traffic::default();
        for n in 0..60 {
            assert_eq!(traffic.ratio(at(n), "a").is_some(), n >= 30, "minute {n}");
            traffic.add(at(n), &[fact(100, 75)]);
        }
        assert_eq!(traffic.ratio(at(59), "a"), Some(0.75));
        traffic.add(at(150), &[fact(HOUR_LOOKUPS_MIN - 1, 0)]);
        assert_eq!(traffic.ratio(at(150), "a"), None);
        traffic.add(at(151), &[fact(1, 1)]);
        assert_eq!(traffic.ratio(at(151), "a"), Some(1.0 / HOUR_LOOKUPS_MIN as f64));
    }

    /// At half past, half of the hour up to now lies in each of two hours of the clock.
    #[test]
    fn the_hour_of_the_week_before_is_made_of_the_two_hours_that_it_lies_in() {
        let mut traffic = Traffic::default();
        let week = 7 * 24 * 60;
        for n in 0..60 {
            traffic.add(at(n), &[fact(100, 90)]);
        }
        for n in 60..120 {
            traffic.add(at(n), &[fact(100, 50)]);
        }
        traffic.add(at(week), &[fact(0, 0)]);
        let before = |n: u64| traffic.ratio_before(at(week + n), "a");
        // The hour before the first one was not seen.
        assert_eq!(before(0), Some(0.9));
        traffic.add(at(week + 89), &[fact(0, 0)]);
        let half_past = traffic.ratio_before(at(week + 89), "a").expect("known");
        assert!((half_past - 0.7).abs() < 1e-9, "{half_past}");
        traffic.add(at(week + 300), &[fact(0, 0)]);
        assert_eq!(traffic.ratio_before(at(week + 300), "a"), None);
    }

    #[test]
    fn what_was_not_seen_is_not_known() {
        let mut traffic = Traffic::default();
        for n in 0..60 {
            traffic.add(at(n), &[fact(100, 90)]);
        }
        let weeks = 3 * 7 * 24 * 60;
        traffic.add(at(weeks), &[fact(0, 0)]);
        assert_eq!(traffic.ratio_before(at(weeks), "a"), None);
        // The clock was put back.
        traffic.add(at(0), &[fact(0, 0)]);
        assert_eq!(traffic.ratio_before(at(weeks), "a"), None);
        traffic.add(at(1), &[]);
        assert_eq!(traffic.bytes(), 0);
    }
}
