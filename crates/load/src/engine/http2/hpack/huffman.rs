//! Huffman decoding of strings (RFC 7541 §5.2, appendix B).
//!
//! The code is canonical: codes of one length are consecutive numbers, in the order of their symbols. So the lengths are all that must be known.

use super::Malformed;

/// The length of each symbol's code, in bits. The last symbol is the end of a string.
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

/// The longest code.
const LENGTH_MAX: usize = 30;

/// The symbol that ends a string, and stands in none.
const END: u16 = 256;

/// The codes that begin with these 8 bits and have at most as many: symbol and length; length 0: the code is longer.
static SHORT: [(u8, u8); 256] = short();

/// The codes of each length: the first code, the number of codes that precede all of this length, and the number of codes of this length.
static OF_LENGTH: [(u32, u16, u16); LENGTH_MAX + 1] = of_length();

/// The symbols, in the order of their codes.
static SYMBOLS: [u16; 257] = symbols();

const fn symbols() -> [u16; 257] {
    let mut symbols = [0; 257];
    let (mut length, mut at) = (1, 0);
    while length <= LENGTH_MAX {
        let mut symbol = 0;
        while symbol < 257 {
            if LENGTHS[symbol as usize] as usize == length {
                symbols[at] = symbol;
                at += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    symbols
}

const fn of_length() -> [(u32, u16, u16); LENGTH_MAX + 1] {
    let mut all = [(0, 0, 0); LENGTH_MAX + 1];
    let (mut length, mut code, mut before) = (1, 0, 0);
    while length <= LENGTH_MAX {
        code <<= 1;
        let (mut symbol, mut count) = (0, 0);
        while symbol < 257 {
            if LENGTHS[symbol] as usize == length {
                count += 1;
            }
            symbol += 1;
        }
        all[length] = (code, before, count);
        code += count as u32;
        before += count;
        length += 1;
    }
    all
}

#[expect(clippy::cast_possible_truncation, reason = "the symbols of short codes are bytes")]
const fn short() -> [(u8, u8); 256] {
    let (of_length, symbols) = (of_length(), symbols());
    let mut short = [(0, 0); 256];
    let mut length = 5;
    while length <= 8 {
        let (first, before, count) = of_length[length];
        let mut nth = 0;
        while nth < count {
            let code = (first + nth as u32) << (8 - length);
            let mut rest = 0;
            while rest < 1 << (8 - length) {
                short[(code + rest) as usize] = (symbols[(before + nth) as usize] as u8, length as u8);
                rest += 1;
            }
            nth += 1;
        }
        length += 1;
    }
    short
}

/// Decodes a string, and appends it.
#[expect(clippy::cast_possible_truncation, reason = "symbols but the end are bytes")]
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut coded = coded.iter();
    // The bits that were not decoded yet, at the upper end.
    let (mut bits, mut count) = (0_u64, 0_u32);
    loop {
        while count <= 56
            && let Some(byte) = coded.next()
        {
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        let (symbol, length) = SHORT[(bits >> 56) as usize];
        if length > 0 && u32::from(length) <= count {
            out.push(symbol);
            bits <<= length;
            count -= u32::from(length);
            continue;
        }
        // What is left may be padding: fewer than 8 bits, all of them ones (§5.2).
        if count < 8 && bits == !(u64::MAX >> count) {
            return Ok(());
        }
        let long = (9..=LENGTH_MAX).find_map(|length| {
            let (first, before, codes) = OF_LENGTH[length];
            let nth = ((bits >> (64 - length)) as u32).checked_sub(first).filter(|nth| *nth < u32::from(codes))?;
            Some((SYMBOLS[usize::from(before) + nth as usize], length as u32))
        });
        let (symbol, length) = long.filter(|(symbol, length)| *symbol != END && *length <= count).ok_or(Malformed)?;
        out.push(symbol as u8);
        bits <<= length;
        count -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 §C.4.1, §C.6.1, and rows of appendix B, the longest code of a byte among them.
    #[test]
    fn strings_are_as_in_the_rfc() {
        let rows: [(&[u8], &[u8]); 5] = [
            (&[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff], b"www.example.com"),
            (&[0xae, 0xc3, 0x77, 0x1a, 0x4b], b"private"),
            (&[0xff, 0xff, 0xff, 0xf3], b"\x0a"),
            (&[0xff, 0xc7], b"\x00"),
            (&[], b""),
        ];
        for (coded, plain) in rows {
            let mut out = Vec::new();
            assert_eq!(decode(coded, &mut out), Ok(()), "{plain:?}");
            assert_eq!(out, plain);
        }
    }
}
