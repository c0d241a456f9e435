//! The compressed pixels of a picture or a frame (PNG §10): how many bytes of them are needed. They are unpacked and thrown away piece by piece.

use flate2::{Decompress, FlushDecompress, Status};

/// The bytes that are unpacked at once.
const PIECE_BYTES: usize = 32 * 1024;

/// A reader of one stream, which may lie in many chunks.
pub(super) struct Stream {
    inflate: Decompress,
    /// The number of bytes that the pixels have when they are unpacked.
    pixels: u64,
    unpacked: Vec<u8>,
    is_over: bool,
}

impl Stream {
    /// Begins a stream with so many bytes of pixels.
    pub(super) fn new(pixels: u64) -> Self {
        Self { inflate: Decompress::new(true), pixels, unpacked: vec![0; PIECE_BYTES], is_over: false }
    }

    /// Returns how many bytes were unpacked.
    pub(super) fn unpacked(&self) -> u64 {
        self.inflate.total_out()
    }

    /// Tells whether no further bytes are needed.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes the next bytes. Returns how many of them are needed: all, unless the stream ends among them, has all its pixels, or cannot be read any further.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let before = self.inflate.total_in();
        let mut taken = 0;
        while !self.is_over {
            let (had_in, had_out) = (self.inflate.total_in(), self.inflate.total_out());
            // One byte more than there should be tells that the end does not come.
            let room = usize::try_from(self.pixels - had_out).unwrap_or(usize::MAX).clamp(1, PIECE_BYTES);
            let status = self.inflate.decompress(&bytes[taken..], &mut self.unpacked[..room], FlushDecompress::None);
            let (now_in, now_out) = (self.inflate.total_in(), self.inflate.total_out());
            self.is_over = !matches!(status, Ok(Status::Ok | Status::BufError)) || now_out > self.pixels;
            if now_out <= self.pixels {
                taken = usize::try_from(now_in - before).unwrap_or(usize::MAX).min(bytes.len());
            }
            if (now_in, now_out) == (had_in, had_out) {
                break;
            }
        }
        taken
    }
}

/// The size and form of pixels.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) depth: u8,
    pub(super) colours: u8,
    pub(super) is_interlaced: bool,
}

impl Layout {
    /// Returns how many bytes the pixels have, with the filter of each line (§7.2, §8.1). Of a kind that no standard knows, they are as many as there are.
    pub(super) fn bytes(self) -> u64 {
        let channels = match self.colours {
            0 | 3 => 1,
            2 => 3,
            4 => 2,
            6 => 4,
            _ => return u64::MAX,
        };
        let bits = channels * u64::from(self.depth);
        // Where a pass begins, and how far its pixels are from each other.
        let passes: &[(u32, u32, u32, u32)] = if self.is_interlaced {
            &[(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        } else {
            &[(0, 0, 1, 1)]
        };
        let pass = |&(x, y, step_x, step_y): &(u32, u32, u32, u32)| {
            let count = |all: u32, first: u32, step: u32| u64::from(all.saturating_sub(first).div_ceil(step));
            let (width, height) = (count(self.width, x, step_x), count(self.height, y, step_y));
            if width == 0 { 0 } else { height.saturating_mul(1 + (width * bits).div_ceil(8)) }
        };
        passes.iter().map(pass).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PNG §8.1: the passes of a picture of eight by eight pixels have 1, 1, 2, 4, 8, 16 and 32 of them.
    #[test]
    fn the_bytes_of_pixels_are_known() {
        let bytes = |width, height, depth, colours, is_interlaced| Layout { width, height, depth, colours, is_interlaced }.bytes();
        assert_eq!(bytes(8, 8, 8, 2, false), 8 * (1 + 24));
        assert_eq!(bytes(9, 3, 1, 0, false), 3 * (1 + 2));
        assert_eq!(bytes(8, 8, 8, 0, true), 64 + 1 + 1 + 1 + 2 + 2 + 4 + 4);
        assert_eq!(bytes(1, 1, 16, 6, true), 1 + 8);
        assert_eq!(bytes(u32::MAX, u32::MAX, 255, 6, true), u64::MAX);
        assert_eq!(bytes(1, 1, 8, 5, false), u64::MAX);
    }
}
