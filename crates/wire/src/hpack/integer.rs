//! Numbers (RFC 7541 §5.1): what fits the rest of a byte stands there, more follows in groups of seven bits.

use super::HpackError;

/// The most bytes that may follow the first one. Four of them already allow numbers beyond any block that is accepted; more are either that
/// or padding.
const FOLLOWING_MAX: u32 = 4;

/// Reads the number in the low `prefix` bits (1 to 8) of the first byte of `rest`, and moves `rest` past it. The number is at most 2^28 +
/// 254.
///
/// # Errors
/// Returns `Truncated` or `Integer`.
#[inline]
pub(crate) fn read(rest: &mut &[u8], prefix: u32) -> Result<usize, HpackError> {
    let (&first, behind) = rest.split_first().ok_or(HpackError::Truncated)?;
    *rest = behind;
    let mask = 0xff_u8 >> (8 - prefix);
    let value = usize::from(first & mask);
    if first & mask < mask { Ok(value) } else { read_following(rest, value) }
}

fn read_following(rest: &mut &[u8], mut value: usize) -> Result<usize, HpackError> {
    for step in 0..FOLLOWING_MAX {
        let (&byte, behind) = rest.split_first().ok_or(HpackError::Truncated)?;
        *rest = behind;
        value += usize::from(byte & 0x7f) << (7 * step);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(HpackError::Integer)
}

/// Writes `value` into the low `prefix` bits (1 to 8) of a byte whose other bits are `pattern`, and into as many more bytes as needed.
#[inline]
pub(crate) fn write(pattern: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let mask = 0xff_u8 >> (8 - prefix);
    match u8::try_from(value) {
        Ok(value) if value < mask => out.push(pattern | value),
        _ => {
            out.push(pattern | mask);
            write_following(value - usize::from(mask), out);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn write_following(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 §C.1.
    #[test]
    fn numbers_are_those_of_the_rfc() {
        for (pattern, prefix, value, bytes) in
            [(0, 5, 10, &[0b01010][..]), (0, 5, 1337, &[0b11111, 0b1001_1010, 0b1010]), (0, 8, 42, &[42]), (0xe0, 5, 31, &[0xff, 0])]
        {
            let mut out = Vec::new();
            write(pattern, prefix, value, &mut out);
            assert_eq!(out, bytes);
            let mut rest = bytes;
            assert_eq!(read(&mut rest, prefix), Ok(value));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn every_prefix_reads_what_it_wrote() {
        for prefix in 1..=8 {
            for value in (0..1000).chain([16_383, 16_384, 1 << 20, 1 << 28]) {
                let mut out = Vec::new();
                write(0, prefix, value, &mut out);
                assert_eq!(read(&mut &out[..], prefix), Ok(value), "{prefix} bits");
            }
        }
    }

    #[test]
    fn a_number_without_end_and_one_cut_short_are_errors() {
        assert_eq!(read(&mut &[][..], 5), Err(HpackError::Truncated));
        assert_eq!(read(&mut &[31][..], 5), Err(HpackError::Truncated));
        assert_eq!(read(&mut &[31, 0x80][..], 5), Err(HpackError::Truncated));
        assert_eq!(read(&mut &[31, 0xff, 0xff, 0xff, 0x7f][..], 5), Ok(31 + (1 << 28) - 1));
        // Five bytes that say nothing but zero are an attack of their own (RFC 7541 §7.4).
        assert_eq!(read(&mut &[31, 0x80, 0x80, 0x80, 0x80, 0x00][..], 5), Err(HpackError::Integer));
        assert_eq!(read(&mut &[31, 0xff, 0xff, 0xff, 0xff, 0x0f][..], 5), Err(HpackError::Integer));
    }
}
