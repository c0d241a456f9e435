//! Which entries were carried out before: one that is appended twice is carried out once.

use std::collections::{HashMap, VecDeque};

use crate::stream::Made;

/// How many of the latest entries are remembered for each session.
pub(super) const NUMBERS_MAX: usize = 4096;
/// For how many sessions. Whoever made an entry last stays longest. At most 10 MiB altogether.
const SESSIONS_MAX: usize = 64;

/// The latest entries of each session.
#[derive(Debug, Default)]
pub(super) struct Seen {
    sessions: HashMap<String, Numbers>,
    clock: u64,
}

#[derive(Debug, Default)]
struct Numbers {
    latest: VecDeque<u64>,
    used: u64,
}

impl Seen {
    /// Returns whether an entry has not been met, and remembers it. One without a maker is always new: twice does no harm.
    pub(super) fn is_new(&mut self, made: Option<&Made>) -> bool {
        let Some(made) = made else { return true };
        self.clock += 1;
        if !self.sessions.contains_key(&made.session) {
            if self.sessions.len() >= SESSIONS_MAX
                && let Some(oldest) = self.sessions.iter().min_by_key(|(_, numbers)| numbers.used).map(|(session, _)| session.clone())
            {
                self.sessions.remove(&oldest);
            }
            self.sessions.insert(made.session.clone(), Numbers::default());
        }
        let Some(numbers) = self.sessions.get_mut(&made.session) else { return true };
        numbers.used = self.clock;
        // Numbers mostly rise, so that what was met lies at the end.
        if numbers.latest.back().is_some_and(|last| *last >= made.number)
            && numbers.latest.iter().rev().any(|number| *number == made.number)
        {
            return false;
        }
        if numbers.latest.len() >= NUMBERS_MAX {
            numbers.latest.pop_front();
        }
        numbers.latest.push_back(made.number);
        true
    }
}
