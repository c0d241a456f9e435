//! Compression dictionaries: what a client says it has (RFC 9842).

use crate::{
    coding::accepts_token,
    request::{RequestFields, Slot},
};

/// Returns the dictionary that a client has and offers to use: its SHA-256, if the client accepts `dcz` (RFC 9842 §2.2, §5).
///
/// Returns `None` if the field is missing, is there more than once, or is not a byte sequence of 32 bytes.
#[must_use]
pub fn available(request: &RequestFields<'_>) -> Option<[u8; 32]> {
    let mut slot = Slot::Absent;
    request.lines.for_each("available-dictionary", |line| {
        slot = if slot == Slot::Absent { Slot::One(line) } else { Slot::Many };
    });
    let hash = byte_sequence(slot.one()?)?;
    accepts_token(request, b"dcz").then_some(hash)
}

/// Returns whether a request has any field about dictionaries.
#[must_use]
pub fn is_mentioned(request: &RequestFields<'_>) -> bool {
    let mut mentioned = false;
    request.lines.for_each("available-dictionary", |_| mentioned = true);
    mentioned
}

/// Returns the value of `Use-As-Dictionary` for a page that is to be the dictionary of its own next version (§2.1). `None` for a path that
/// would have to be escaped as a pattern: few paths have such characters, and they only lose the saving.
#[must_use]
pub fn use_for_itself(path: &str) -> Option<String> {
    let is_literal = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.~-%".contains(&byte);
    (path.starts_with('/') && path.bytes().all(is_literal)).then(|| format!("match=\"{path}\""))
}

/// Reads 32 bytes between colons, which RFC 9651 §3.3.5 writes in base64. Parameters are ignored.
fn byte_sequence(value: &[u8]) -> Option<[u8; 32]> {
    let rest = value.trim_ascii().strip_prefix(b":")?;
    let end = rest.iter().position(|byte| *byte == b':')?;
    let digits = rest.get(..end)?.strip_suffix(b"=").filter(|digits| digits.len() == 43)?;
    let mut bytes = [0; 32];
    let (mut bits, mut held, mut at) = (0_u32, 0, 0);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            *bytes.get_mut(at)? = u8::try_from(bits >> held & 0xff).ok()?;
            at += 1;
        }
    }
    (at == bytes.len()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fields::map;

    /// The example of RFC 9842 §2.2.
    const EXAMPLE: &str = ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:";

    #[test]
    fn what_a_client_has() {
        let cases: &[(&[(&str, &str)], bool)] = &[
            (&[("available-dictionary", EXAMPLE), ("accept-encoding", "gzip, br, zstd, dcb, dcz")], true),
            (&[("available-dictionary", EXAMPLE), ("accept-encoding", "gzip, dcz;q=0")], false),
            (&[("available-dictionary", EXAMPLE), ("accept-encoding", "gzip, dcb")], false),
            (&[("available-dictionary", EXAMPLE), ("available-dictionary", EXAMPLE), ("accept-encoding", "dcz")], false),
            (&[("available-dictionary", ":AAAA:"), ("accept-encoding", "dcz")], false),
            (&[("available-dictionary", "pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4="), ("accept-encoding", "dcz")], false),
            (&[("accept-encoding", "dcz")], false),
        ];
        for (fields, expected) in cases {
            let fields = map(fields);
            let found = available(&RequestFields::from_map(&fields));
            assert_eq!(found.is_some(), *expected, "{fields:?}");
        }
        assert_eq!(byte_sequence(EXAMPLE.as_bytes()).expect("a hash")[..4], [0xa5, 0x91, 0xa6, 0xd4]);
    }

    #[test]
    fn a_page_is_for_itself() {
        assert_eq!(use_for_itself("/a-post/").as_deref(), Some("match=\"/a-post/\""));
        for path in ["/a*", "/(a)", "/:a", "/a\"", "*", "/a?b", "/{a}"] {
            assert_eq!(use_for_itself(path), None, "{path}");
        }
    }
}
