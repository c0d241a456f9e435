//! The codes of a frame (GIF89a, appendix F): how many bytes of them its pixels need. Which colours they make is of no interest here, so it is only
//! remembered how many pixels each code stands for.

/// The most bits of a code, and the number of codes that there can be.
const BITS_MAX: u32 = 12;
const CODES_MAX: usize = 1 << BITS_MAX;

/// A reader of the codes of one frame, byte by byte.
pub(super) struct Codes {
    /// The code that clears the table. The next one is the end, and those before stand for one pixel each.
    clear: usize,
    /// The number of pixels that each code stands for, of those that have a meaning so far.
    pixels: Vec<u16>,
    /// The number of bits of a code.
    bits: u32,
    /// The number of pixels that the code before stands for, unless the table was just cleared.
    before: Option<u16>,
    held: u32,
    held_bits: u32,
    /// The number of pixels of the frame that are still to come.
    missing: u64,
    is_over: bool,
}

impl Codes {
    /// Begins a frame of so many pixels. Returns `None` if no decoder reads codes that begin with so few or so many bits.
    pub(super) fn new(colour_bits: u8, pixels: u64) -> Option<Self> {
        let colour_bits = u32::from(colour_bits);
        if !(1..BITS_MAX).contains(&colour_bits) {
            return None;
        }
        let clear = 1 << colour_bits;
        let mut codes =
            Self { clear, pixels: vec![1; clear + 2], bits: 0, before: None, held: 0, held_bits: 0, missing: pixels, is_over: false };
        codes.start();
        Some(codes)
    }

    /// Takes the next byte. Returns whether a part of the picture, or its end, ends in it.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        if self.is_over {
            return false;
        }
        self.held |= u32::from(byte) << self.held_bits;
        self.held_bits += 8;
        let mut is_needed = false;
        while self.held_bits >= self.bits && !self.is_over {
            let code = self.held & ((1 << self.bits) - 1);
            self.held >>= self.bits;
            self.held_bits -= self.bits;
            is_needed |= self.next(code as usize);
        }
        is_needed
    }

    /// Tells whether the frame needs no further bytes.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Tells whether all pixels are there.
    pub(super) const fn is_complete(&self) -> bool {
        self.missing == 0
    }

    fn start(&mut self) {
        self.pixels.truncate(self.clear + 2);
        self.bits = self.clear.trailing_zeros() + 1;
        self.before = None;
    }

    /// Takes a code. Returns whether it is needed.
    fn next(&mut self, code: usize) -> bool {
        if code == self.clear {
            self.start();
            return !self.is_complete();
        }
        if code == self.clear + 1 {
            self.is_over = true;
            return true;
        }
        let new = self.before.map(|before| before + 1).filter(|_| self.pixels.len() < CODES_MAX);
        // Only what was said before can be said again, and what is just about to get a meaning.
        let known = self.pixels.get(code).copied().filter(|_| code < self.clear || self.before.is_some());
        let Some(count) = known.or_else(|| new.filter(|_| code == self.pixels.len())).filter(|_| !self.is_complete()) else {
            self.is_over = true;
            return false;
        };
        self.pixels.extend(new);
        if self.pixels.len() == 1 << self.bits && self.bits < BITS_MAX {
            self.bits += 1;
        }
        self.before = Some(count);
        self.missing = self.missing.saturating_sub(count.into());
        true
    }
}
