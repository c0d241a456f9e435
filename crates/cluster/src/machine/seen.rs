//! The entries that were carried out before: one that is appended twice is carried out once.
//!
//! A machine appends its orders as they are numbered, and goes on to the next ones only when those before were appended. So an entry whose number is not
//! above all that were met of its session was met, or stands for one that was, or was repeated by somebody who can write on the server.

use std::collections::HashMap;

use crate::stream::EntryMaker;

/// The most sessions that are remembered. Whoever made an entry last stays longest.
const SESSIONS_MAX: usize = 1024;

/// The highest number of each session.
#[derive(Debug, Default)]
pub(super) struct SeenNumbers {
    sessions: HashMap<String, Numbers>,
    clock: u64,
}

#[derive(Debug, Default)]
struct Numbers {
    highest: u64,
    used: u64,
}

impl SeenNumbers {
    /// Returns whether an entry has not been met, and remembers it. One without a maker is always new: twice does no harm.
    pub(super) fn is_new(&mut self, made: Option<&EntryMaker>) -> bool {
        let Some(made) = made else { return true };
        self.clock += 1;
        if !self.sessions.contains_key(&made.session) {
            if self.sessions.len() >= SESSIONS_MAX
                && let Some(oldest) = self.sessions.iter().min_by_key(|(_, numbers)| numbers.used).map(|(session, _)| session.clone())
            {
                self.sessions.remove(&oldest);
            }
            self.sessions.insert(made.session.clone(), Numbers { highest: made.number, used: self.clock });
            return true;
        }
        let Some(numbers) = self.sessions.get_mut(&made.session) else { return true };
        numbers.used = self.clock;
        let is_new = made.number > numbers.highest;
        numbers.highest = numbers.highest.max(made.number);
        is_new
    }
}
