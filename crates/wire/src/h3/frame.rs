//! Variable-length integers (RFC 9000 §16) and the heads of frames (RFC 9114 §7.1): bytes in, numbers out, without a stream or waiting.

use bytes::{Buf, Bytes};

/// The type of a frame that carries content.
pub const DATA: u64 = 0x0;
/// The type of a frame that carries a field section.
pub const HEADERS: u64 = 0x1;
/// The type of a frame that cancels a push.
pub const CANCEL_PUSH: u64 = 0x3;
/// The type of a frame that carries settings.
pub const SETTINGS: u64 = 0x4;
/// The type of a frame that announces a push.
pub const PUSH_PROMISE: u64 = 0x5;
/// The type of a frame that says goodbye.
pub const GOAWAY: u64 = 0x7;
/// The type of a frame that allows pushes.
pub const MAX_PUSH_ID: u64 = 0xd;

/// Returns whether a type of frame is one that HTTP/2 had and HTTP/3 forbids (RFC 9114 §7.2.8).
#[must_use]
pub const fn is_of_http2(kind: u64) -> bool {
    matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
}

/// The length of the longest head of a frame: two integers of eight bytes.
const HEAD_MAX: usize = 16;

/// The type and the length of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// The type.
    pub kind: u64,
    /// The bytes of payload that follow.
    pub length: u64,
}

/// Returns how many bytes an integer has that begins with `first`.
const fn width(first: u8) -> usize {
    1 << (first >> 6)
}

/// Reads the integer at the start of `bytes`, and returns its width too; nothing, if it is not all there.
#[must_use]
pub fn integer(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let width = width(first);
    let rest = bytes.get(1..width)?;
    Some((rest.iter().fold(u64::from(first & 0x3f), |value, &byte| value << 8 | u64::from(byte)), width))
}

/// Writes `value`, which is below 2^62, in as few bytes as it needs.
pub fn write_integer(value: u64, out: &mut Vec<u8>) {
    debug_assert!(value < 1 << 62);
    let bytes = value.to_be_bytes();
    let (from, mark) = match value {
        0..0x40 => (7, 0x00),
        0x40..0x4000 => (6, 0x40),
        0x4000..0x4000_0000 => (4, 0x80),
        _ => (0, 0xc0),
    };
    let at = out.len();
    out.extend_from_slice(&bytes[from..]);
    out[at] |= mark;
}

/// Writes the head of a frame.
pub fn write_head(kind: u64, length: usize, out: &mut Vec<u8>) {
    write_integer(kind, out);
    write_integer(length as u64, out);
}

/// Collects the head of a frame as it comes, cut in pieces as the stream happens to be.
#[derive(Debug, Default)]
pub struct Partial {
    bytes: [u8; HEAD_MAX],
    len: usize,
}

impl Partial {
    /// Takes from `input` what belongs to the head; then it is whole, or there is nothing left of `input`.
    pub fn take(&mut self, input: &mut Bytes) -> Option<FrameHead> {
        loop {
            let known = &self.bytes[..self.len];
            // The first bytes of either integer say how long it is.
            let needed = match integer(known) {
                None => known.first().map_or(1, |&first| width(first)),
                Some((kind, kind_width)) => match integer(&known[kind_width..]) {
                    Some((length, _)) => {
                        self.len = 0;
                        return Some(FrameHead { kind, length });
                    }
                    None => kind_width + known.get(kind_width).map_or(1, |&first| width(first)),
                },
            };
            if input.is_empty() {
                return None;
            }
            let taken = (needed - self.len).min(input.len());
            self.bytes[self.len..self.len + taken].copy_from_slice(&input[..taken]);
            self.len += taken;
            input.advance(taken);
        }
    }

    /// Returns whether the last head was whole, so that a stream may end here.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 appendix A.1.
    #[test]
    fn integers_are_read_and_written() {
        let cases: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in cases {
            assert_eq!(integer(bytes), Some((value, bytes.len())));
            assert_eq!(integer(&bytes[..bytes.len() - 1]), None);
            let mut out = Vec::new();
            write_integer(value, &mut out);
            assert_eq!(out, bytes);
        }
        // Longer than needed is allowed.
        assert_eq!(integer(&[0x40, 0x25]), Some((37, 2)));
        for edge in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, (1 << 62) - 1] {
            let mut out = Vec::new();
            write_integer(edge, &mut out);
            assert_eq!(integer(&out), Some((edge, out.len())));
        }
    }

    #[test]
    fn heads_are_found_however_the_stream_is_cut() {
        let mut stream = Vec::new();
        let heads = [(DATA, 0), (HEADERS, 63), (0x21, 64), (0x0f07_0000_0000, 1 << 40), (GOAWAY, 16_384)];
        for (kind, length) in heads {
            write_head(kind, length, &mut stream);
        }
        for cut in 1..stream.len() {
            let mut partial = Partial::default();
            let mut found = Vec::new();
            for piece in stream.chunks(cut) {
                let mut piece = Bytes::copy_from_slice(piece);
                while let Some(head) = partial.take(&mut piece) {
                    found.push((head.kind, usize::try_from(head.length).expect("of 64 bits")));
                }
                assert!(piece.is_empty());
            }
            assert_eq!(found, heads, "cut every {cut}");
            assert!(partial.is_empty());
        }
    }
}
