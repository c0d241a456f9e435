//! Looks after deadlines of many connections at once.
//!
//! Each connection is on a wheel once, however many requests it makes, and is looked at when its slot comes round: then it says when its deadline
//! really is, and is put there, or is late. So a request costs nothing here, and a connection a look per timeout.

use std::time::Duration;

use super::slots::Key;

/// The shortest and the longest turn from slot to slot. A deadline is noticed at most so much later; the time that is recorded is exact.
const TURN: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(250)];

/// The parts of a timeout in which lateness is noticed.
const PARTS: u32 = 16;

/// Connections by the time of their deadline, in slots.
#[derive(Debug)]
pub(super) struct Deadlines {
    slots: Vec<Vec<Key>>,
    turn: Duration,
    /// The number of turns since the beginning; its slot was looked at.
    turns: u64,
}

impl Deadlines {
    /// Deadlines that are at most `timeout` away.
    pub(super) fn new(timeout: Duration) -> Self {
        let turn = (timeout / PARTS).clamp(TURN[0], TURN[1]);
        let slots = usize::try_from(timeout.as_nanos() / turn.as_nanos()).unwrap_or(usize::MAX).saturating_add(3);
        Self { slots: vec![Vec::new(); slots.min(1 << 16)], turn, turns: 0 }
    }

    /// Puts a connection on the wheel.
    pub(super) fn put(&mut self, key: Key, deadline: Duration) {
        let turns = u64::try_from(deadline.as_nanos() / self.turn.as_nanos()).unwrap_or(u64::MAX);
        // Later than the wheel is long: it is looked at earlier, and put back.
        let turns = turns.saturating_add(1).clamp(self.turns + 1, self.turns + self.slots.len() as u64 - 1);
        let slot = self.slot(turns);
        self.slots[slot].push(key);
    }

    /// Puts those whose slots have come round until `now` into `into`.
    pub(super) fn due(&mut self, now: Duration, into: &mut Vec<Key>) {
        while self.turn * u32::try_from(self.turns + 1).unwrap_or(u32::MAX) <= now {
            self.turns += 1;
            let slot = self.slot(self.turns);
            into.append(&mut self.slots[slot]);
        }
    }

    fn slot(&self, turns: u64) -> usize {
        usize::try_from(turns % self.slots.len() as u64).expect("a remainder of a usize")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_comes_round_after_its_time_and_not_much_later() {
        let timeout = Duration::from_secs(30);
        let mut deadlines = Deadlines::new(timeout);
        let milliseconds = [0, 1, 249, 250, 251, 15_000, 29_999, 30_000];
        for (key, deadline) in milliseconds.into_iter().enumerate() {
            deadlines.put(Key::of(key as u64), Duration::from_millis(deadline));
        }
        let mut found = Vec::new();
        for now in 0..=30_600 {
            let before = found.len();
            deadlines.due(Duration::from_millis(now), &mut found);
            for key in &found[before..] {
                let deadline = milliseconds[usize::try_from(key.number()).expect("an index")];
                assert!((deadline..=deadline + 500).contains(&now), "{deadline} at {now}");
            }
        }
        assert_eq!(found.len(), milliseconds.len(), "each comes round once");
    }

    #[test]
    fn a_deadline_beyond_the_wheel_comes_round_early_and_can_be_put_back() {
        let mut deadlines = Deadlines::new(Duration::from_millis(16));
        let mut found = Vec::new();
        deadlines.due(Duration::from_secs(5), &mut found);
        deadlines.put(Key::of(1), Duration::from_secs(9));
        deadlines.due(Duration::from_secs(6), &mut found);
        assert_eq!(found, [Key::of(1)]);
    }
}
