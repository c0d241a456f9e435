//! Hexadecimal digits: bytes to text and back. What is written here is in lower case.

use std::fmt::Write as _;

/// Writes each byte as two digits in lower case.
#[must_use]
pub fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all");
    }
    text
}

/// Reads bytes of two digits each, in either case. Returns `None` if a digit is missing, or something else is among them.
#[must_use]
pub fn decoded(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks();
    if rest.is_empty() { pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect() } else { None }
}

/// Reads exactly so many bytes, of two digits in lower case each: there is one text for each value.
#[must_use]
pub fn decoded_exactly<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let (pairs, rest) = digits.as_chunks();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = lower_digit(*high)? << 4 | lower_digit(*low)?;
    }
    Some(bytes)
}

/// Reads a number of at most 32 digits in lower case. Returns `None` if something else is among them.
pub(crate) fn number(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number: u128, &digit| Some(number << 4 | u128::from(lower_digit(digit)?)))
}

/// Returns the value of a digit in either case.
pub(crate) const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => lower_digit(byte),
    }
}

/// Returns the value of a digit in lower case.
pub(crate) const fn lower_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_and_read() {
        let all: Vec<u8> = (0..=255).collect();
        let text = encoded(&all);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"), "{text}");
        assert_eq!(decoded(text.as_bytes()), Some(all.clone()));
        assert_eq!(decoded(text.to_uppercase().as_bytes()), Some(all));
        assert_eq!((encoded(b""), decoded(b"")), (String::new(), Some(Vec::new())));
        for text in ["0", "000", "0g", "g0", "+1", " 1", "0x", "é"] {
            assert_eq!(decoded(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn exactly_so_many_bytes_have_one_text() {
        for (text, bytes) in [
            ("00ff", Some([0, 255])),
            ("00FF", None),
            ("00fF", None),
            ("00f", None),
            ("00ff0", None),
            ("00ff00", None),
            ("", None),
            ("-0ff", None),
        ] {
            assert_eq!(decoded_exactly::<2>(text.as_bytes()), bytes, "{text}");
        }
    }

    #[test]
    fn a_number_has_digits_in_lower_case() {
        for (text, number_of) in
            [("", Some(0)), ("0a", Some(10)), ("ffffffffffffffffffffffffffffffff", Some(u128::MAX)), ("0A", None), ("0x1", None)]
        {
            assert_eq!(number(text.as_bytes()), number_of, "{text}");
        }
    }
}
