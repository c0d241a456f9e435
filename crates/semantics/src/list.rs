//! List-based fields (RFC 9110 §5.6.1): where one member ends and the next begins.
//!
//! A comma inside a quoted string separates nothing (§5.6.4). A string that never closes runs to the end of its line, so that two
//! different values are never taken for the same list.

/// Returns `value` without the optional whitespace around it (RFC 9110 §5.6.3).
#[must_use]
pub const fn trim_ows(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Returns the members of one field line, trimmed, including the empty ones. There is always at least one.
#[must_use]
pub fn members(line: &[u8]) -> Members<'_> {
    Members { rest: Some(line) }
}

/// An iterator over the members of one field line; see [`members`].
#[derive(Debug, Clone)]
pub struct Members<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let end = separator(rest, b',');
        let (member, after) = rest.split_at(end);
        self.rest = after.get(1..);
        Some(trim_ows(member))
    }
}

/// Returns the position of the first `separator` outside quoted strings, or the length if there is none.
pub(crate) fn separator(value: &[u8], separator: u8) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (at, &byte) in value.iter().enumerate() {
        if escaped {
            escaped = false;
        } else if quoted {
            match byte {
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
        } else if byte == b'"' {
            quoted = true;
        } else if byte == separator {
            return at;
        }
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_split_at_commas_outside_quotes() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[""]),
            ("a", &["a"]),
            (" a ,\tb", &["a", "b"]),
            ("a,,b,", &["a", "", "b", ""]),
            (r#""a,b", c"#, &[r#""a,b""#, "c"]),
            (r#""a\",b", c"#, &[r#""a\",b""#, "c"]),
            (r#"a, "b, c"#, &["a", r#""b, c"#]),
            ("\"", &["\""]),
            ("\"\\", &["\"\\"]),
        ];
        for (line, expected) in cases {
            let found: Vec<&[u8]> = members(line.as_bytes()).collect();
            let expected: Vec<&[u8]> = expected.iter().map(|m| m.as_bytes()).collect();
            assert_eq!(found, expected, "{line}");
        }
    }
}
