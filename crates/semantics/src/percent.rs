//! Percent-encoding (RFC 3986 §2.1), decoded once. `+` is left as it is: only forms mean a space by it.

use crate::hex;

/// Decodes each `%` that two hexadecimal digits follow, and leaves every other byte as it is.
#[must_use]
pub fn decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        let octet = if *byte == b'%' { octet(after) } else { None };
        decoded.push(octet.unwrap_or(*byte));
        rest = if octet.is_some() { &after[2..] } else { after };
    }
    decoded
}

/// Decodes text in which each `%` must begin an escape. Returns `None` if two hexadecimal digits do not follow one.
#[must_use]
pub fn decoded_strictly(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        let (byte, after) = if *byte == b'%' { (octet(after)?, &after[2..]) } else { (*byte, after) };
        decoded.push(byte);
        rest = after;
    }
    Some(decoded)
}

/// Returns the octet that the two hexadecimal digits at the beginning of `rest`, which follows a `%`, stand for.
pub(crate) fn octet(rest: &[u8]) -> Option<u8> {
    let [high, low, ..] = rest else { return None };
    Some(hex::digit(*high)? << 4 | hex::digit(*low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_once() {
        for (text, strict, lenient) in [
            ("/a%2Fb%20c", Some("/a/b c"), "/a/b c"),
            ("%2525", Some("%25"), "%25"),
            ("a+b%2b", Some("a+b+"), "a+b+"),
            ("100%", None, "100%"),
            ("%4", None, "%4"),
            ("%+1%g0%0g", None, "%+1%g0%0g"),
            ("%%41", None, "%A"),
            ("", Some(""), ""),
        ] {
            assert_eq!(decoded_strictly(text.as_bytes()), strict.map(|strict| strict.as_bytes().to_vec()), "{text}");
            assert_eq!(decoded(text.as_bytes()), lenient.as_bytes(), "{text}");
        }
        assert_eq!(decoded(b"%ff%00"), [0xff, 0]);
    }
}
