//! Certificates on demand: for names that nobody configured one by one, but that somebody approves of.
//!
//! A stranger can ask for any name, with a handshake that costs them nothing. So a name needs a pattern that the operator wrote or a yes of
//! the program that the operator named, and everything is counted: questions at once, names in all, new names an hour, refusals remembered.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use semantics::Timestamp;
use tokio::sync::Semaphore;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// The time for which a refusal is remembered, so that a stranger's next handshake costs no question.
const REFUSAL_LASTS: Duration = Duration::from_secs(10 * 60);
/// The most refusals that are remembered; beyond it the table is emptied.
const REFUSALS_MAX: usize = 4096;
/// The number of questions and orders for new names that run at the same time; further handshakes are turned away and have to come again.
const AT_ONCE: usize = 4;

/// The names for which a certificate may be ordered when somebody connects to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DemandOptions {
    /// Patterns of names that need no further question: `*.example.org` is one label below example.org.
    pub patterns: Vec<String>,
    /// The URL that is asked with `?domain=NAME`: 200 means yes.
    pub ask: Option<String>,
    /// The most names in all.
    pub names_max: usize,
    /// The most new names in any hour.
    pub names_an_hour: usize,
}

/// The reason why there is no certificate for a name that somebody connects to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The name cannot be certified: it is an address, a wildcard, or a local name.
    #[error("it is not a name that a certificate could be ordered for")]
    NoName,
    /// No pattern matches, and nobody said yes.
    #[error("neither a host pattern nor `ask` allows it")]
    NotApproved,
    /// The server that should be asked cannot be reached.
    #[error("{0} cannot be asked")]
    Unasked(String),
    /// There are too many names.
    #[error("there are too many names already")]
    TooMany,
    /// Too many are asked for or ordered at this moment.
    #[error("others are being ordered")]
    Busy,
    /// The order was tried, and failed.
    #[error("{0}")]
    Failed(String),
}

/// The state of names on demand: those refused lately, and the counts behind the limits.
#[derive(Debug)]
pub struct Demand {
    options: DemandOptions,
    permits: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    refused: HashMap<String, Timestamp>,
    begun: Vec<Timestamp>,
}

impl Demand {
    /// Creates the state at the start, when nothing is known yet.
    #[must_use]
    pub fn new(options: DemandOptions) -> Self {
        Self { options, permits: Semaphore::new(AT_ONCE), state: Mutex::default() }
    }

    /// Returns the URL to ask.
    #[must_use]
    pub(crate) fn ask(&self) -> Option<&str> {
        self.options.ask.as_deref()
    }

    /// Returns a place among the names that are asked for and ordered now.
    pub(crate) fn permit(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Refused> {
        self.permits.try_acquire().map_err(|_| Refused::Busy)
    }

    /// Returns whether the name was refused lately.
    pub(crate) fn is_refused(&self, name: &str, now: Timestamp) -> bool {
        self.state.lock().refused.get(name).is_some_and(|at| now.since(*at) < REFUSAL_LASTS && *at <= now)
    }

    pub(crate) fn refuse(&self, name: &str, now: Timestamp) {
        let mut state = self.state.lock();
        if state.refused.len() >= REFUSALS_MAX {
            state.refused.clear();
        }
        state.refused.insert(name.to_owned(), now);
    }

    /// Returns whether a pattern approves of the name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.options.patterns.iter().any(|pattern| match pattern.strip_prefix("*.") {
            Some(below) => name
                .strip_suffix(below)
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|label| !label.is_empty() && !label.contains('.')),
            None => pattern == name,
        })
    }

    /// Counts one more name, of which there are `names` now.
    pub(crate) fn begin(&self, names: usize, now: Timestamp) -> Result<(), Refused> {
        let mut state = self.state.lock();
        state.begun.retain(|at| now.since(*at) < HOUR && *at <= now);
        if names >= self.options.names_max || state.begun.len() >= self.options.names_an_hour {
            return Err(Refused::TooMany);
        }
        state.begun.push(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn demand(names_max: usize, names_an_hour: usize) -> Demand {
        let patterns = vec!["*.example.org".to_owned(), "shop.example.net".to_owned()];
        Demand::new(DemandOptions { patterns, ask: None, names_max, names_an_hour })
    }

    #[test]
    fn a_wildcard_approves_of_one_label() {
        let demand = demand(1, 1);
        for (name, expected) in [
            ("a.example.org", true),
            ("shop.example.net", true),
            ("example.org", false),
            ("a.b.example.org", false),
            ("aexample.org", false),
            (".example.org", false),
            ("a.shop.example.net", false),
        ] {
            assert_eq!(demand.matches(name), expected, "{name}");
        }
    }

    #[test]
    fn names_are_counted_by_the_hour_and_in_all() {
        let demand = demand(5, 2);
        assert_eq!([0, 1, 2].map(|names| demand.begin(names, NOW).is_ok()), [true, true, false]);
        let later = NOW + HOUR;
        assert!(demand.begin(4, later).is_ok());
        assert_eq!(demand.begin(5, later), Err(Refused::TooMany));
    }

    #[test]
    fn a_refusal_is_remembered_for_a_while_and_the_table_is_bounded() {
        let demand = demand(1, 1);
        demand.refuse("a.example", NOW);
        assert!(demand.is_refused("a.example", NOW + REFUSAL_LASTS / 2) && !demand.is_refused("a.example", NOW + REFUSAL_LASTS));
        for n in 0..3 * REFUSALS_MAX {
            demand.refuse(&format!("{n}.example"), NOW);
        }
        assert!(demand.state.lock().refused.len() <= REFUSALS_MAX);
    }

    #[test]
    fn few_are_ordered_at_once() {
        let demand = demand(1, 1);
        let held: Vec<_> = (0..AT_ONCE).map(|_| demand.permit().expect("a place")).collect();
        assert!(matches!(demand.permit(), Err(Refused::Busy)));
        drop(held);
        assert!(demand.permit().is_ok());
    }
}
