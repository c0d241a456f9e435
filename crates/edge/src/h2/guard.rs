//! Frames that cost us work and their sender nothing: pings, settings, resets, window updates, priorities, empty data, headers in crumbs.
//!
//! Each of them has an honest use and a flood named after it (CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2024-27316). So they are not
//! forbidden but counted: a client has a purse, a request answered to its end fills it, time does slowly, and who empties it is cut off.
//! Only frame heads are looked at, as they come; what they say is the library's to judge.

/// What a purse holds at most, and at first: a page with five hundred pictures that is left while it loads passes.
const PURSE: u32 = 2_000;
/// For a second.
const PER_SECOND: u32 = 50;
/// For a request that was answered to its end.
const PER_ANSWER: u32 = 10;

/// For each piece that is sent, and for so many bytes of it: a client that reads has windows to update.
const PER_PIECE: u32 = 2;
const BYTES_PER_COIN: usize = 2048;

/// The connection preface (RFC 9113 §3.4).
const PREFACE: usize = 24;
const FRAME_HEAD: usize = 9;

/// One connection's purse, and where in its frames it is.
#[derive(Debug)]
pub(super) struct Guard {
    purse: u32,
    /// Bytes until the next frame head.
    skip: usize,
    /// A frame head that was cut in two by reads.
    partial: [u8; FRAME_HEAD],
    partial_len: usize,
    flooded: bool,
}

impl Guard {
    pub(super) const fn new() -> Self {
        Self { purse: PURSE, skip: PREFACE, partial: [0; FRAME_HEAD], partial_len: 0, flooded: false }
    }

    /// Pays for the frames in `bytes`, the next that came. `false`: it cannot.
    pub(super) fn passes(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let taken = (FRAME_HEAD - self.partial_len).min(bytes.len());
            self.partial[self.partial_len..self.partial_len + taken].copy_from_slice(&bytes[..taken]);
            self.partial_len += taken;
            bytes = &bytes[taken..];
            if self.partial_len == FRAME_HEAD {
                self.partial_len = 0;
                let [a, b, c, kind, flags, ..] = self.partial;
                let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                self.skip = length;
                let Some(left) = self.purse.checked_sub(price(kind, flags, length)) else {
                    self.flooded = true;
                    return false;
                };
                self.purse = left;
            }
        }
        true
    }

    pub(super) fn answered(&mut self) {
        self.purse = (self.purse + PER_ANSWER).min(PURSE);
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        let coins = u32::try_from(bytes / BYTES_PER_COIN).unwrap_or(PURSE);
        self.purse = self.purse.saturating_add(PER_PIECE).saturating_add(coins).min(PURSE);
    }

    pub(super) fn tick(&mut self, seconds: u32) {
        self.purse = self.purse.saturating_add(seconds.saturating_mul(PER_SECOND)).min(PURSE);
    }

    pub(super) const fn is_flooded(&self) -> bool {
        self.flooded
    }
}

/// RFC 9113 §6. A reset is the dearest: a request was begun for it.
const fn price(kind: u8, flags: u8, length: usize) -> u32 {
    const END: u8 = 0x1;
    match kind {
        // DATA: empty and not the end says nothing.
        0 if length == 0 && flags & END == 0 => 5,
        // DATA and HEADERS are requests: bounded elsewhere.
        0 | 1 => 0,
        // RST_STREAM.
        3 => 4,
        // PRIORITY, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION, and what nobody knows.
        4 | 6 | 9 => 5,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, length, kind, flags, 0, 0, 0, 1];
        frame.resize(FRAME_HEAD + usize::from(length), 0xff);
        frame
    }

    fn begun() -> Guard {
        let mut guard = Guard::new();
        assert!(guard.passes(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
        guard
    }

    #[test]
    fn frames_are_found_however_reads_cut_them() {
        let bytes: Vec<u8> = [frame(4, 0, 18), frame(6, 0, 8), frame(0, 1, 0), frame(3, 0, 4), frame(8, 0, 4)].concat();
        for cut in 1..bytes.len() {
            let mut guard = begun();
            assert!(bytes.chunks(cut).all(|piece| guard.passes(piece)));
            assert_eq!(PURSE - guard.purse, 5 + 5 + 4 + 1, "cut every {cut}");
        }
    }

    #[test]
    fn every_flood_is_cut_off_and_honest_clients_are_not() {
        let floods = [("ping", frame(6, 0, 8)), ("settings", frame(4, 0, 0)), ("reset", frame(3, 0, 4)), ("window", frame(8, 0, 4))];
        let more =
            [("priority", frame(2, 0, 5)), ("empty data", frame(0, 0, 0)), ("continuation", frame(9, 0, 1)), ("unknown", frame(99, 0, 0))];
        for (name, frame) in floods.into_iter().chain(more) {
            let mut guard = begun();
            let passed = (0..10_000).take_while(|_| guard.passes(&frame)).count();
            assert!((400..=2_000).contains(&passed), "{name}: {passed}");
            assert!(guard.is_flooded());
        }
        // An endless crowd of requests, each with its reset; time that passes; a download with two updates for each kilobyte.
        let mut guard = begun();
        for _ in 0..10_000 {
            assert!(guard.passes(&frame(1, 5, 30)) && guard.passes(&frame(3, 0, 4)));
            guard.answered();
        }
        for _ in 0..10_000 {
            assert!((0..PER_SECOND).all(|_| guard.passes(&frame(8, 0, 4))));
            guard.tick(1);
        }
        for _ in 0..10_000 {
            assert!(guard.passes(&frame(8, 0, 4)) && guard.passes(&frame(8, 0, 4)));
            guard.sent(1024);
        }
    }
}
