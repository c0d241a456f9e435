//! The id by which one request is told from all others, in logs and at its origin: `X-Request-Id`.
//!
//! It is not a standard, but what proxies and applications agree on. It has 128 bits, so that nobody has to ask whether it was used before.

use std::fmt;

use crate::{FieldLines, hex};

/// The field, in lower case.
pub const REQUEST_ID: &str = "x-request-id";

/// Where the dashes of a UUID are (RFC 9562 §4).
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// The id of a request: 32 hexadecimal digits in lower case, or a UUID with its dashes where a proxy in front gave one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId {
    bytes: [u8; 16],
    has_dashes: bool,
}

impl RequestId {
    /// Makes an id of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self { bytes, has_dashes: false }
    }

    /// Reads the id that a proxy has given a request. `None`: it gave none, several, or one of another form.
    #[must_use]
    pub fn of(lines: FieldLines<'_>) -> Option<Self> {
        let (mut found, mut count) = (None, 0);
        lines.for_each(REQUEST_ID, |line| {
            count += 1;
            found = Self::parse(line);
        });
        found.filter(|_| count == 1)
    }

    /// Reads an id as nginx and most other servers write it, or as a UUID in lower case.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let number = |digits: &[u8]| hex::number(digits).map(u128::to_be_bytes);
        match value.trim_ascii() {
            digits if digits.len() == 32 => Some(Self { bytes: number(digits)?, has_dashes: false }),
            uuid if uuid.len() == 36 && DASHES.iter().all(|&at| uuid[at] == b'-') => {
                let digits: Vec<u8> = uuid.iter().copied().filter(|&b| b != b'-').collect();
                let bytes = if digits.len() == 32 { number(&digits)? } else { return None };
                Some(Self { bytes, has_dashes: true })
            }
            _ => None,
        }
    }
}

/// An id as text, without an allocation: every request that is forwarded has one, twice.
#[derive(Debug, Clone, Copy)]
pub struct RequestIdText {
    text: [u8; 36],
    length: usize,
}

impl RequestIdText {
    /// Returns the text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).expect("digits and dashes")
    }
}

impl RequestId {
    /// Writes the id as text.
    #[must_use]
    pub fn written(&self) -> RequestIdText {
        let mut text = [0; 36];
        for (digits, bytes) in text.as_chunks_mut().0.iter_mut().zip(self.bytes.as_chunks().0) {
            *digits = hex_digits(u32::from_be_bytes(*bytes)).to_be_bytes();
        }
        if !self.has_dashes {
            return RequestIdText { text, length: 32 };
        }
        let digits = text;
        for (to, from) in [(0..8, 0..8), (9..13, 8..12), (14..18, 12..16), (19..23, 16..20), (24..36, 20..32)] {
            text[to].copy_from_slice(&digits[from]);
        }
        DASHES.into_iter().for_each(|at| text[at] = b'-');
        RequestIdText { text, length: 36 }
    }
}

/// Writes four bytes as eight digits, all of them at once in one register.
const fn hex_digits(bytes: u32) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let halves = bytes as u64;
    let halves = (halves | halves << 16) & 0x0000_ffff_0000_ffff;
    let halves = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    let halves = (halves | halves << 4) & (ONES * 0x0f);
    // Ten and more become 16 and more, and need the way from the digits to the letters.
    let letters = ((halves + ONES * 6) >> 4) & ONES;
    halves + ONES * b'0' as u64 + letters * (b'a' - b'0' - 10) as u64
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.written().as_str())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_as_it_came() {
        for id in ["0123456789abcdef0123456789abcdef", "01234567-89ab-cdef-0123-456789abcdef", "00000000000000000000000000000000"] {
            assert_eq!(RequestId::parse(id.as_bytes()).map(|id| id.to_string()).as_deref(), Some(id));
        }
        assert_eq!(RequestId::new([0xab; 16]).to_string(), "ab".repeat(16));
    }

    #[test]
    fn what_has_another_form_is_no_id() {
        for text in [
            "",
            "abc",
            "0123456789ABCDEF0123456789abcdef",
            "0123456789abcdef0123456789abcdeg",
            "0123456789abcdef0123456789abcdef0",
            "0123456-789ab-cdef-0123-456789abcdef",
            "01234567-89ab-cdef-0123-4567-9abcdef",
            "01234567-89ab-cdef-0123-456789abcdef0",
            "\"><script>",
        ] {
            assert_eq!(RequestId::parse(text.as_bytes()), None, "{text}");
        }
    }
}
