//! Structured fields (RFC 9651, which takes the place of RFC 8941): dictionaries and lists, read strictly.
//!
//! One idea: a field is read whole or not at all (§4.2), because fields of this kind say so of themselves; what a reader makes of values of
//! the wrong type is its own business. Parameters are read, as their errors are errors of the field, and forgotten, as no field that is used
//! here gives them a meaning. A cache only reads such fields, so nothing here writes any.

use http::HeaderValue;

use crate::{hex, list::trim_ows};

/// A member: a bare item, or an inner list. The values of types that nothing here asks for are not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A whole number of at most 15 digits (§3.3.1).
    Integer(i64),
    /// A string (§3.3.3), without its quotes and escapes.
    String(String),
    /// A token (§3.3.4).
    Token(String),
    /// A boolean, `?1` or `?0`, or a member without a value (§3.3.6).
    Boolean(bool),
    /// Another type: a decimal, a date, a byte sequence, a display string (§3.3.2, §3.3.5, §3.3.7, §3.3.8), or an inner list (§3.1.1).
    Other,
}

/// Reads a dictionary from the lines of a field (§3.2), in order; of a repeated key, the last value counts. Returns an empty one if there
/// are not lines or nothing in them; `None` if they cannot be read.
#[must_use]
pub fn dictionary<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>) -> Option<Vec<(String, Value)>> {
    let text = joined(lines)?;
    let mut input = Input { rest: &text };
    let mut members: Vec<(String, Value)> = Vec::new();
    input.members(|input| {
        let key = input.key()?;
        let value = if input.take(b'=') {
            input.item_or_inner_list()?
        } else {
            input.parameters()?;
            Value::Boolean(true)
        };
        members.retain(|(known, _)| *known != key);
        members.push((key, value));
        Some(())
    })?;
    Some(members)
}

/// Reads a list from the lines of a field (§3.1). Returns an empty one if there are no lines or nothing in them; `None` if they cannot be
/// read.
#[must_use]
pub fn list<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>) -> Option<Vec<Value>> {
    let text = joined(lines)?;
    let mut input = Input { rest: &text };
    let mut members = Vec::new();
    input.members(|input| {
        members.push(input.item_or_inner_list()?);
        Some(())
    })?;
    Some(members)
}

/// Returns all lines as one, with a comma between (§4.2). A line that is not ASCII fails the field.
fn joined<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    for line in lines {
        if !text.is_empty() {
            text.push(b',');
        }
        text.extend_from_slice(trim_ows(line.as_bytes()));
    }
    text.is_ascii().then_some(text)
}

struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn skip(&mut self, skipped: impl Fn(u8) -> bool) {
        let bytes = self.rest.iter().take_while(|byte| skipped(**byte)).count();
        self.rest = &self.rest[bytes..];
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, wanted: u8) -> bool {
        let there = self.rest.first() == Some(&wanted);
        if there {
            self.rest = &self.rest[1..];
        }
        there
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(self.rest.iter().take_while(|byte| wanted(**byte)).count());
        self.rest = rest;
        taken
    }

    /// Reads members between commas (§4.2.1, §4.2.2). Nothing may follow the last one.
    fn members(&mut self, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.skip(|byte| byte == b' ');
        while !self.rest.is_empty() {
            member(self)?;
            self.skip(is_ows);
            if self.rest.is_empty() {
                break;
            }
            if !self.take(b',') {
                return None;
            }
            self.skip(is_ows);
            if self.rest.is_empty() {
                return None;
            }
        }
        Some(())
    }

    fn item_or_inner_list(&mut self) -> Option<Value> {
        let value = if self.take(b'(') { self.inner_list()? } else { self.bare_item()? };
        self.parameters()?;
        Some(value)
    }

    /// Reads the inner list that follows the parenthesis (§4.2.1.2).
    fn inner_list(&mut self) -> Option<Value> {
        loop {
            self.skip(|byte| byte == b' ');
            if self.take(b')') {
                return Some(Value::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.rest.first(), Some(b' ' | b')')) {
                return None;
            }
        }
    }

    /// Skips parameters (§4.2.3.2).
    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            self.skip(|byte| byte == b' ');
            self.key()?;
            if self.take(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    /// Reads a key (§4.2.3.3).
    fn key(&mut self) -> Option<String> {
        self.rest.first().filter(|first| first.is_ascii_lowercase() || **first == b'*')?;
        let key = self.take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'.' | b'*'));
        text(key)
    }

    /// Reads a bare item (§4.2.3.1).
    fn bare_item(&mut self) -> Option<Value> {
        match *self.rest.first()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string().map(Value::String),
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => {
                text(self.take_while(|byte| is_tchar(byte) || matches!(byte, b':' | b'/'))).map(Value::Token)
            }
            b':' => {
                self.next();
                self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
                self.take(b':').then_some(Value::Other)
            }
            b'?' => {
                self.next();
                match self.next()? {
                    b'1' => Some(Value::Boolean(true)),
                    b'0' => Some(Value::Boolean(false)),
                    _ => None,
                }
            }
            b'@' => {
                self.next();
                matches!(self.number()?, Value::Integer(_)).then_some(Value::Other)
            }
            b'%' => {
                self.next();
                self.display_string()
            }
            _ => None,
        }
    }

    /// Reads an integer or a decimal (§4.2.4).
    fn number(&mut self) -> Option<Value> {
        let negative = self.take(b'-');
        let whole = self.take_while(|byte| byte.is_ascii_digit());
        if whole.is_empty() {
            return None;
        }
        if self.take(b'.') {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            return (whole.len() <= 12 && (1..=3).contains(&fraction.len())).then_some(Value::Other);
        }
        let number: i64 = text(whole).filter(|digits| digits.len() <= 15)?.parse().ok()?;
        Some(Value::Integer(if negative { -number } else { number }))
    }

    /// Reads a string (§4.2.5).
    fn string(&mut self) -> Option<String> {
        self.next();
        let mut string = String::new();
        loop {
            match self.next()? {
                b'"' => return Some(string),
                b'\\' => match self.next()? {
                    escaped @ (b'"' | b'\\') => string.push(char::from(escaped)),
                    _ => return None,
                },
                byte @ 0x20..=0x7e => string.push(char::from(byte)),
                _ => return None,
            }
        }
    }

    /// Reads a display string (§4.2.10): percent-encoded UTF-8 with lower-case digits.
    fn display_string(&mut self) -> Option<Value> {
        if !self.take(b'"') {
            return None;
        }
        let mut decoded = Vec::new();
        loop {
            match self.next()? {
                b'"' => return std::str::from_utf8(&decoded).is_ok().then_some(Value::Other),
                b'%' => decoded.push(self.hex()? << 4 | self.hex()?),
                byte @ 0x20..=0x7e => decoded.push(byte),
                _ => return None,
            }
        }
    }

    fn hex(&mut self) -> Option<u8> {
        hex::lower_digit(self.next()?)
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

const fn is_ows(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

const fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(lines: &[&str]) -> Vec<HeaderValue> {
        lines.iter().map(|line| HeaderValue::from_bytes(line.as_bytes()).expect("a field value")).collect()
    }

    fn string(text: &str) -> Value {
        Value::String(text.to_owned())
    }

    fn token(text: &str) -> Value {
        Value::Token(text.to_owned())
    }

    #[test]
    fn dictionaries() {
        let yes = || Value::Boolean(true);
        type Members = Vec<(&'static str, Value)>;
        let cases: Vec<(&[&str], Option<Members>)> = vec![
            (&[], Some(vec![])),
            (&[""], Some(vec![])),
            (&["  "], Some(vec![])),
            (&["max-age=60, no-store"], Some(vec![("max-age", Value::Integer(60)), ("no-store", yes())])),
            (&["max-age=60", "public"], Some(vec![("max-age", Value::Integer(60)), ("public", yes())])),
            (&["a=1 \t,\t b=-2"], Some(vec![("a", Value::Integer(1)), ("b", Value::Integer(-2))])),
            // The last one counts, in its own place.
            (&["a=1, b=2, a=3"], Some(vec![("b", Value::Integer(2)), ("a", Value::Integer(3))])),
            (&["a=?0, b=?1, c;x=1;y"], Some(vec![("a", Value::Boolean(false)), ("b", yes()), ("c", yes())])),
            (&["a=\"x, \\\"y\\\\\", b=c:/d"], Some(vec![("a", string("x, \"y\\")), ("b", token("c:/d"))])),
            (
                &["a=(1 \"b\";x  c), b=:aGk=:, c=1.5, d=@1659578233, e=%\"f%c3%bc\""],
                Some(["a", "b", "c", "d", "e"].map(|key| (key, Value::Other)).into()),
            ),
            (&["*k=1, k_.-*9=2"], Some(vec![("*k", Value::Integer(1)), ("k_.-*9", Value::Integer(2))])),
            (&["a=999999999999999"], Some(vec![("a", Value::Integer(999_999_999_999_999))])),
        ];
        for (given, expected) in cases {
            let expected = expected.map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Vec<_>>());
            assert_eq!(dictionary(&lines(given)), expected, "{given:?}");
        }
    }

    /// With one error, the field counts as absent (§4.2).
    #[test]
    fn what_is_malformed_anywhere_is_refused_whole() {
        for line in [
            "max-age=60,",
            "max-age=60, ",
            ",max-age=60",
            "a,,b",
            "max-age =60",
            "max-age= 60",
            "Max-Age=60",
            "max-age=60, &&&&&",
            "max-age=60; ;",
            "a=",
            "a=\"x",
            "a=\"\\x\"",
            "a=\"x\ty\"",
            "a=1000000000000000",
            "a=1.",
            "a=.5",
            "a=1.2345",
            "a=1234567890123.1",
            "a=--1",
            "a=-",
            "a=?2",
            "a=?",
            "a=(1",
            "a=(1,2)",
            "a=(1\"b\")",
            "a=:aGk=",
            "a=:a b:",
            "a=@1.5",
            "a=%\"%C3\"",
            "a=%\"%c3\"",
            "a=%x",
            "a b",
            "9=1",
            "a;X=1",
            "a;",
            "a=1 2",
            "a=ü",
        ] {
            assert_eq!(dictionary(&lines(&[line])), None, "{line}");
        }
        assert_eq!(dictionary(&lines(&["a=1", ""])), None, "an empty line is an empty member");
    }

    #[test]
    fn lists() {
        for (given, expected) in [
            (&[][..], Some(vec![])),
            (&["\"a\", \"b c\"", "\"d\""], Some(vec![string("a"), string("b c"), string("d")])),
            (&["a, 1, ?0, (\"x\");y"], Some(vec![token("a"), Value::Integer(1), Value::Boolean(false), Value::Other])),
            (&["\"a\";x=1;y=\"z\""], Some(vec![string("a")])),
            (&["\"a\" \"b\""], None),
            (&["\"a\","], None),
            (&["a=1"], None),
        ] {
            assert_eq!(list(&lines(given)), expected, "{given:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\\t]{0,60}", near in "([a-c]=?(\"[a\\\\\"]{0,3}\"?|-?[0-9]{1,16}|\\(|\\)|:|\\?1)?[;, ]{0,2}){0,6}") {
            for line in [text, near] {
                let line = [HeaderValue::from_str(&line).expect("printable")];
                let members = dictionary(&line);
                let longest = line[0].len();
                prop_assert!(members.is_none_or(|members| members.len() <= longest));
                prop_assert!(list(&line).is_none_or(|members| members.len() <= longest));
            }
        }
    }
}
