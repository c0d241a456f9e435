//! Huffman coding of strings (RFC 7541 §5.2, appendix B).
//!
//! The code is canonical: codes of one length follow each other in the order of their symbols, and longer ones follow shorter ones. So all of
//! it can be made from the lengths, at compile time. Codes of up to eight bits, which nearly all that occurs in fields has, are found by
//! the next byte; the others by their length, in as many steps as there are longer lengths.

#![expect(clippy::cast_possible_truncation, reason = "parts are taken of codes, which have thirty bits, and of numbers of symbols")]

use super::HpackError;

/// The length of each symbol's code, in bits. The last is that of the end of string, which never occurs.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6, 10,
    10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6,
    7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23,
    21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22,
    22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27,
    26, 30,
];

const LENGTH_MAX: usize = 30;

/// The code of each symbol, in its low bits.
const CODES: [u32; 257] = {
    let mut codes = [0; 257];
    let mut length = 1;
    let mut next = 0;
    while length <= LENGTH_MAX {
        let mut symbol = 0;
        while symbol < codes.len() {
            if LENGTHS[symbol] as usize == length {
                codes[symbol] = next;
                next += 1;
            }
            symbol += 1;
        }
        next <<= 1;
        length += 1;
    }
    codes
};

/// The length and symbol of the code of up to eight bits with which each byte begins. Length 0: a longer code begins so.
const SHORT: [(u8, u8); 256] = {
    let mut short = [(0, 0); 256];
    let mut symbol = 0;
    while symbol < 256 {
        let length = LENGTHS[symbol];
        if length <= 8 {
            let first = (CODES[symbol] as usize) << (8 - length);
            let mut index = first;
            while index < first + (1 << (8 - length)) {
                short[index] = (length, symbol as u8);
                index += 1;
            }
        }
        symbol += 1;
    }
    short
};

/// The codes of one length.
#[derive(Clone, Copy)]
struct Length {
    bits: u32,
    /// The upper bound of the next 32 bits as a number: below it, the code has this length or a shorter one.
    end: u64,
    /// The first code; `sorted` is the position of its symbol in `SORTED`.
    first: u32,
    sorted: usize,
}

const LONG_COUNT: usize = LENGTH_MAX - 8;

/// The codes of the lengths from 9 to 30.
const LONG: [Length; LONG_COUNT] = {
    let mut long = [Length { bits: 0, end: 0, first: 0, sorted: 0 }; LONG_COUNT];
    let mut sorted = 0;
    let mut first = 0;
    let mut length = 1;
    while length <= LENGTH_MAX {
        let mut count = 0;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                count += 1;
            }
            symbol += 1;
        }
        if length > 8 {
            let end = ((first + count) as u64) << (32 - length);
            long[length - 9] = Length { bits: length as u32, end, first: first as u32, sorted };
        }
        sorted += count;
        first = (first + count) << 1;
        length += 1;
    }
    long
};

/// All symbols, by the lengths of their codes.
const SORTED: [u16; 257] = {
    let mut sorted = [0; 257];
    let mut count = 0;
    let mut length = 1;
    while length <= LENGTH_MAX {
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                sorted[count] = symbol as u16;
                count += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    sorted
};

/// Decodes `coded` and appends the result to `out`: at most eight bytes for five.
///
/// # Errors
/// Fails at an end of string, or at an end that is not padding.
pub(crate) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let start = out.len();
    // There is room for one more step than can be filled.
    out.resize(start + coded.len() * 8 / 5 + STEP, 0);
    let mut symbols = Symbols { rest: coded, window: 0, held: 0 };
    let mut len = start;
    while symbols.refill() {
        let mut taken = 0;
        for place in &mut out[len..len + STEP] {
            let (length, symbol) = SHORT[(symbols.window >> 56) as usize];
            if length == 0 {
                break;
            }
            *place = symbol;
            symbols.take(u32::from(length));
            taken += 1;
        }
        len += taken;
        if taken < STEP {
            let (length, symbol) = long(symbols.window)?;
            if length > symbols.held {
                // The end of the code is not there yet: more bytes follow, so the next round has it.
                continue;
            }
            out[len] = symbol.ok_or(HpackError::Huffman)?;
            symbols.take(length);
            len += 1;
        }
    }
    let decoded = symbols.last(out, &mut len);
    out.truncate(len);
    decoded
}

/// The number of short codes that are certainly there after a refill.
const STEP: usize = 7;

/// A position in a coded string.
struct Symbols<'a> {
    rest: &'a [u8],
    /// The next bits, the first of them on top. Below those that are held there may be some of the following ones, or zeros.
    window: u64,
    held: u32,
}

impl Symbols<'_> {
    /// Fills the window with at least 56 bits. Returns `false` near the end, where the bytes must be read one by one.
    #[inline]
    fn refill(&mut self) -> bool {
        let Some(eight) = self.rest.first_chunk::<8>() else { return false };
        self.window |= u64::from_be_bytes(*eight) >> self.held;
        let bytes = (63 - self.held) / 8;
        self.rest = &self.rest[bytes as usize..];
        self.held += bytes * 8;
        true
    }

    #[inline]
    fn take(&mut self, length: u32) {
        self.window <<= length;
        self.held -= length;
    }

    /// Decodes the last few symbols, and checks the padding.
    fn last(self, out: &mut [u8], len: &mut usize) -> Result<(), HpackError> {
        let Self { mut rest, window, mut held } = self;
        // All bits are inverted: zeros come from below, and mean that padding goes on without end. The rest is then a symbol, or the
        // beginning of one.
        let mut turned = !window & !u64::MAX.checked_shr(held).unwrap_or(0);
        loop {
            if held < 32 {
                while held <= 56
                    && let Some((&byte, behind)) = rest.split_first()
                {
                    turned |= u64::from(!byte) << (56 - held);
                    held += 8;
                    rest = behind;
                }
            }
            let (length, symbol) = match SHORT[(!turned >> 56) as usize] {
                (0, _) => long(!turned)?,
                (length, symbol) => (u32::from(length), Some(symbol)),
            };
            if length > held {
                let is_padding = held < 8 && turned == 0;
                return if is_padding { Ok(()) } else { Err(HpackError::Huffman) };
            }
            out[*len] = symbol.ok_or(HpackError::Huffman)?;
            *len += 1;
            turned <<= length;
            held -= length;
        }
    }
}

/// Returns the length of the code of nine bits or more that `window` begins with, and its symbol; `None` is the end of string.
fn long(window: u64) -> Result<(u32, Option<u8>), HpackError> {
    let code = window >> 32;
    let length = LONG.iter().find(|length| code < length.end).ok_or(HpackError::Huffman)?;
    let nth = (code >> (32 - length.bits)) as u32 - length.first;
    let symbol = SORTED.get(length.sorted + nth as usize).ok_or(HpackError::Huffman)?;
    Ok((length.bits, u8::try_from(*symbol).ok()))
}

/// Returns the length of `string` in bytes when it is coded.
pub(crate) fn encoded_len(string: &[u8]) -> usize {
    string.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum::<usize>().div_ceil(8)
}

/// Appends the code of `string`.
pub(crate) fn encode(string: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0_u64, 0_u32);
    for &byte in string {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        bits = bits << length | u64::from(CODES[usize::from(byte)]);
        held += length;
        if held >= 32 {
            held -= 32;
            out.extend_from_slice(&((bits >> held) as u32).to_be_bytes());
        }
    }
    // The padding is the beginning of the end of string, which is ones (RFC 7541 §5.2).
    let padding = (8 - held % 8) % 8;
    bits = bits << padding | ((1 << padding) - 1);
    held += padding;
    while held > 0 {
        held -= 8;
        out.push((bits >> held) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = b"before".to_vec();
        decode(coded, &mut out)?;
        Ok(out.strip_prefix(b"before").expect("what was there stays").to_vec())
    }

    fn encoded(string: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(string, &mut out);
        assert_eq!(out.len(), encoded_len(string));
        out
    }

    /// RFC 7541, appendix B: these are the first and the last code of some lengths.
    #[test]
    fn codes_are_those_of_the_rfc() {
        for (symbol, code) in [
            (usize::from(b'0'), 0x0),
            (usize::from(b't'), 0x9),
            (usize::from(b' '), 0x14),
            (usize::from(b'u'), 0x2d),
            (usize::from(b':'), 0x5c),
            (usize::from(b'z'), 0x7b),
            (usize::from(b'&'), 0xf8),
            (usize::from(b'!'), 0x3f8),
            (usize::from(b'|'), 0x7fc),
            (usize::from(b'\\'), 0x7fff0),
            (1, 0x7f_ffd8),
            (255, 0x3ff_ffee),
            (249, 0xfff_fffe),
            (22, 0x3fff_fffe),
            (256, 0x3fff_ffff),
        ] {
            assert_eq!(CODES[symbol], code, "{symbol}");
        }
    }

    /// RFC 7541 §C.4, §C.6.
    #[test]
    fn strings_are_those_of_the_rfc() {
        for (string, coded) in [
            (&b"www.example.com"[..], &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..]),
            (b"no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            (b"custom-key", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f]),
            (b"302", &[0x64, 0x02]),
            (b"", &[]),
        ] {
            assert_eq!(encoded(string), coded);
            assert_eq!(decoded(coded).expect("it is fine"), string);
        }
    }

    #[test]
    fn every_byte_comes_back_alone_and_among_all_others() {
        let all: Vec<u8> = (0..=255).collect();
        for byte in 0..=255 {
            for count in 1..20 {
                assert_eq!(decoded(&encoded(&vec![byte; count])).expect("it is fine"), vec![byte; count]);
            }
            for other in 0..=255 {
                assert_eq!(decoded(&encoded(&[byte, other])).expect("it is fine"), [byte, other]);
            }
        }
        assert_eq!(decoded(&encoded(&all)).expect("it is fine"), all);
    }

    #[test]
    fn wrong_padding_and_an_end_of_string_are_errors() {
        // "0" is five zeros, "a" is 00011.
        assert_eq!(decoded(&[0b0001_1111]), Ok(b"a".to_vec()));
        for (coded, what) in [
            (&[0b0001_1000][..], "padding of zeros"),
            (&[0b0001_1110], "padding with a zero in it"),
            (&[0b0001_1111, 0xff], "padding of eleven bits"),
            (&[0xff], "padding of eight bits"),
            (&[0xff, 0xff, 0xff], "padding of twenty-four bits"),
            (&[0xff, 0xff, 0xff, 0xff], "an end of string, and two bits of padding"),
            (&[0b0001_1111, 0xff, 0xff, 0xff, 0xff], "an end of string behind an a"),
            (&[0xff, 0xff, 0xff, 0xfc, 0b0001_1111], "an end of string, and an a"),
            (&[0xff, 0xff, 0xff], "the beginning of a long code"),
            (&[0xfe], "the beginning of a code of ten bits"),
        ] {
            assert_eq!(decoded(coded), Err(HpackError::Huffman), "{what}");
        }
    }
}
