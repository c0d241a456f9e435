//! A list of fields as it stood on the wire: in order, in the sender's own case, repeated lines kept apart.

use std::fmt;

/// Field lines in the order they were sent. Names compare without regard to case (RFC 9110 §5.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Returns the value of the first line of that name.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&str> {
        self.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns the values of all lines of that name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.iter().filter(move |(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns the combined field value (RFC 9110 §5.2): all lines of that name, joined by a comma and a space.
    #[must_use]
    pub fn combined(&self, name: &str) -> Option<String> {
        let lines: Vec<&str> = self.all(name).collect();
        (!lines.is_empty()).then(|| lines.join(", "))
    }

    /// Returns whether there is a line of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// Returns whether the combined value, read as a comma-separated list, has that member (compared without regard to case).
    #[must_use]
    pub fn lists(&self, name: &str, member: &str) -> bool {
        self.all(name).flat_map(|line| line.split(',')).any(|given| given.trim().eq_ignore_ascii_case(member))
    }

    /// Returns name and value of every line, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// Reads one field line without its line end (RFC 9112 §5), strictly: neither the proxy's requests nor its responses have an
    /// excuse for anything a recipient would have to repair.
    pub(crate) fn push_line(&mut self, line: &[u8]) -> Result<(), String> {
        let quoted = || String::from_utf8_lossy(line).into_owned();
        let colon = line.iter().position(|&byte| byte == b':').ok_or_else(|| format!("field line without a colon: {:?}", quoted()))?;
        let (name, value) = (&line[..colon], trim_ows(&line[colon + 1..]));
        if name.is_empty() || !name.iter().copied().all(is_token) {
            return Err(format!("field name is not a token: {:?}", quoted()));
        }
        if value.iter().any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
            return Err(format!("control character in a field value: {:?}", quoted()));
        }
        self.push(text(name), text(value));
        Ok(())
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(name, value)| writeln!(f, "{name}: {value}"))
    }
}

/// Removes the optional whitespace around it (RFC 9110 §5.6.3). `trim_ascii` would also remove a stray CR or form feed.
pub(crate) fn trim_ows(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Returns whether `byte` may be part of a token (RFC 9110 §5.6.2).
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Decodes UTF-8, else ISO-8859-1, in which every byte has a character: a test sees everything that was sent.
pub(crate) fn text(bytes: &[u8]) -> String {
    str::from_utf8(bytes).map_or_else(|_| bytes.iter().copied().map(char::from).collect(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_case_and_repeated_lines() {
        let mut fields = Fields::default();
        for line in ["Vary: accept", "X-A:1", "vary:\tcookie ", "Empty:"] {
            fields.push_line(line.as_bytes()).expect("valid");
        }
        assert_eq!(fields.to_string(), "Vary: accept\nX-A: 1\nvary: cookie\nEmpty: \n");
        assert_eq!(fields.combined("VARY").as_deref(), Some("accept, cookie"));
        assert_eq!(fields.first("empty"), Some(""));
        assert!(fields.lists("vary", "Cookie") && !fields.lists("vary", "cook"));
        assert_eq!(fields.combined("absent"), None);
    }

    #[test]
    fn refuses_what_a_recipient_would_have_to_repair() {
        for line in
            ["no colon", ": empty name", "a : b", " a: b", "a b: c", "a: b\rc", "a: \0", "a: \x7f", "a: b\r", "a\u{e9}: b", "a:\x0bb"]
        {
            assert!(Fields::default().push_line(line.as_bytes()).is_err(), "{line:?}");
        }
    }

    #[test]
    fn a_value_that_is_not_utf8_keeps_every_byte() {
        let mut fields = Fields::default();
        fields.push_line(b"a: caf\xe9").expect("obs-text is allowed");
        assert_eq!(fields.first("a"), Some("caf\u{e9}"));
    }
}
