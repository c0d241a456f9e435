//! Frames that cost us work and their sender nothing: pings, settings, resets, window updates, priorities, empty data, headers in crumbs.
//!
//! Each of them has an honest use and a flood named after it (CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2024-27316). So they are not
//! forbidden but counted: a client has a purse, a request answered to its end fills it, time does slowly, and who empties it is cut off.
//! Only frame heads are looked at.

use super::frame::{Head, flag, kind};

/// The number of coins that a purse holds at most, and at first: a page with five hundred pictures that is left while it loads passes.
const PURSE: u32 = 2_000;
/// The number of coins that a second brings.
const PER_SECOND: u32 = 50;
/// The number of coins that a request brings that was answered to its end.
const PER_ANSWER: u32 = 10;

/// The number of coins that a sent piece brings: a client that reads has windows to update.
const PER_PIECE: u32 = 2;
/// The number of bytes of a piece that bring one coin more.
const BYTES_PER_COIN: usize = 2048;

/// The most bytes that may be padding and nothing else, with its length (RFC 9113 §6.1).
const PADDING_MAX: usize = 256;

/// One connection's purse.
#[derive(Debug)]
pub(crate) struct Guard {
    purse: u32,
}

impl Guard {
    pub(crate) const fn new() -> Self {
        Self { purse: PURSE }
    }

    /// Pays for a frame. `false` means that the client cannot.
    pub(crate) const fn passes(&mut self, head: Head) -> bool {
        let price = price(head);
        let passes = price <= self.purse;
        self.purse = self.purse.saturating_sub(price);
        passes
    }

    pub(crate) fn answered(&mut self) {
        self.purse = (self.purse + PER_ANSWER).min(PURSE);
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        let coins = u32::try_from(bytes / BYTES_PER_COIN).unwrap_or(PURSE);
        self.purse = self.purse.saturating_add(PER_PIECE).saturating_add(coins).min(PURSE);
    }

    pub(crate) fn tick(&mut self, seconds: u32) {
        self.purse = self.purse.saturating_add(seconds.saturating_mul(PER_SECOND)).min(PURSE);
    }
}

/// Names what a purse was emptied by, for the counters.
pub(crate) const fn name_of_flood(head: Head) -> &'static str {
    match head.kind {
        kind::DATA => "a flood of empty frames",
        kind::RST_STREAM => "a flood of resets",
        kind::SETTINGS => "a flood of settings",
        kind::PING => "a flood of pings",
        kind::CONTINUATION => "a flood of continuations",
        kind::WINDOW_UPDATE => "a flood of window updates",
        _ => "a flood of frames",
    }
}

/// Returns the price of a frame (RFC 9113 §6). A reset is dear: a request was begun for it.
const fn price(head: Head) -> u32 {
    match head.kind {
        // Empty and not the end says nothing.
        kind::DATA if (head.length == 0 || head.has(flag::PADDED) && head.length <= PADDING_MAX) && !head.has(flag::END_STREAM) => 5,
        // These are requests: bounded elsewhere.
        kind::DATA | kind::HEADERS => 0,
        kind::RST_STREAM => 4,
        kind::SETTINGS | kind::PING | kind::CONTINUATION => 5,
        // Also what nobody knows.
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn frame(kind: u8, flags: u8, length: usize) -> Head {
        Head { length, kind, flags, stream: 1 }
    }

    #[test]
    fn every_flood_is_cut_off_and_honest_clients_are_not() {
        let floods = [("ping", frame(6, 0, 8)), ("settings", frame(4, 0, 0)), ("reset", frame(3, 0, 4)), ("window", frame(8, 0, 4))];
        let more = [
            ("priority", frame(2, 0, 5)),
            ("empty data", frame(0, 0, 0)),
            ("padding", frame(0, 8, 256)),
            ("continuation", frame(9, 0, 1)),
            ("unknown", frame(99, 0, 0)),
        ];
        for (name, frame) in floods.into_iter().chain(more) {
            let mut guard = Guard::new();
            let passed = (0..10_000).take_while(|_| guard.passes(frame)).count();
            assert!((400..=2_000).contains(&passed), "{name}: {passed}");
        }
        // An endless crowd of requests, each with its reset; time that passes; a download with two updates for each kilobyte.
        let mut guard = Guard::new();
        for _ in 0..10_000 {
            assert!(guard.passes(frame(1, 5, 30)) && guard.passes(frame(3, 0, 4)));
            guard.answered();
        }
        for _ in 0..10_000 {
            assert!((0..PER_SECOND).all(|_| guard.passes(frame(8, 0, 4))));
            guard.tick(1);
        }
        for _ in 0..10_000 {
            assert!(guard.passes(frame(8, 0, 4)) && guard.passes(frame(8, 0, 4)));
            guard.sent(1024);
        }
    }
}
