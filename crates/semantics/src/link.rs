//! The `Link` field (RFC 8288 §3): targets, and what they are to the page that names them.
//!
//! A line is read up to the first thing that is not a link, as its appendix B.2 does. What the relations mean is not known here.

use std::borrow::Cow;

use crate::list::trim_ows;

/// How many parameters of one link are read; later ones are ignored.
const PARAMETERS_MAX: usize = 16;

/// One link of a `Link` field (RFC 8288 §3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<'a> {
    /// The reference between the angle brackets, as written.
    pub target: &'a [u8],
    parameters: Vec<Parameter<'a>>,
}

/// The name of a parameter, and its value without quotes.
type Parameter<'a> = (&'a [u8], Cow<'a, [u8]>);

impl Link<'_> {
    /// Returns the first parameter of this name, without its quotes; empty if it has no value. Names are case-insensitive (RFC 8288 §3).
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&[u8]> {
        self.parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| &**value)
    }

    /// Returns whether the link has this relation among its relations (RFC 8288 §3.3).
    #[must_use]
    pub fn is(&self, relation: &str) -> bool {
        self.parameter("rel")
            .is_some_and(|rel| rel.split(u8::is_ascii_whitespace).any(|name| name.eq_ignore_ascii_case(relation.as_bytes())))
    }
}

/// Returns the links on one field line.
#[must_use]
pub const fn links(line: &[u8]) -> Links<'_> {
    Links { rest: line }
}

/// An iterator over the links on one field line; see [`links`].
#[derive(Debug, Clone)]
pub struct Links<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Links<'a> {
    type Item = Link<'a>;

    fn next(&mut self) -> Option<Link<'a>> {
        let mut rest = trim_ows(self.rest);
        while let Some(after) = rest.strip_prefix(b",") {
            rest = trim_ows(after);
        }
        self.rest = b"";
        let (target, after) = split_at_byte(rest.strip_prefix(b"<")?, b'>')?;
        let mut rest = trim_ows(after);
        let mut parameters = Vec::new();
        while let Some(after) = rest.strip_prefix(b";") {
            let (parameter, after) = parameter(trim_ows(after));
            rest = trim_ows(after);
            if !parameter.0.is_empty() && parameters.len() < PARAMETERS_MAX {
                parameters.push(parameter);
            }
        }
        // Text before the next comma that is not a parameter belongs to no link either.
        self.rest = rest.strip_prefix(b",").unwrap_or_default();
        Some(Link { target, parameters })
    }
}

/// Returns a parameter, and the text after it.
fn parameter(text: &[u8]) -> (Parameter<'_>, &[u8]) {
    let (name, rest) = text.split_at(text.iter().take_while(|byte| !matches!(byte, b'=' | b';' | b',' | b' ' | b'\t')).count());
    let Some(value) = trim_ows(rest).strip_prefix(b"=").map(trim_ows) else { return ((name, Cow::Borrowed(b"")), rest) };
    if let Some(quoted) = value.strip_prefix(b"\"") {
        let (value, rest) = unquoted(quoted);
        return ((name, value), rest);
    }
    let (value, rest) = value.split_at(value.iter().take_while(|byte| !matches!(byte, b';' | b',')).count());
    ((name, Cow::Borrowed(trim_ows(value))), rest)
}

/// Returns the value of a quoted string after its opening quote (RFC 9110 §5.6.4), and the text after it. A string that does not end takes
/// the rest of the line.
fn unquoted(text: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let mut escaped = Vec::new();
    let mut bytes = text.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' if escaped.is_empty() => return (Cow::Borrowed(&text[..at]), &text[at + 1..]),
            b'"' => return (Cow::Owned(escaped), &text[at + 1..]),
            b'\\' => {
                if escaped.is_empty() {
                    escaped.extend_from_slice(&text[..at]);
                }
                escaped.extend(bytes.next().map(|(_, byte)| *byte));
            }
            byte if !escaped.is_empty() => escaped.push(*byte),
            _ => {}
        }
    }
    (Cow::Borrowed(b""), b"")
}

fn split_at_byte(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns each link as `target name=value name=value`.
    fn read(line: &str) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let read = |link: Link<'_>| {
            let parameters = link.parameters.iter().map(|(name, value)| format!(" {}={}", text(name), text(value)));
            text(link.target) + &parameters.collect::<String>()
        };
        links(line.as_bytes()).map(read).collect()
    }

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 8288 §3.5.
        let chapter = "<http://example.com/TheBook/chapter2>; rel=\"previous\"; title=\"previous chapter\"";
        assert_eq!(read(chapter), ["http://example.com/TheBook/chapter2 rel=previous title=previous chapter"]);
        assert_eq!(read("</>; rel=\"http://example.net/foo\""), ["/ rel=http://example.net/foo"]);
        assert_eq!(read("</terms>; rel=\"copyright\"; anchor=\"#foo\""), ["/terms rel=copyright anchor=#foo"]);
        let two = "</TheBook/chapter2>; rel=\"previous\"; title*=UTF-8'de'letztes%20Kapitel, </TheBook/chapter4>; rel=\"next\"";
        assert_eq!(read(two), ["/TheBook/chapter2 rel=previous title*=UTF-8'de'letztes%20Kapitel", "/TheBook/chapter4 rel=next"]);
        // RFC 8297 §2.
        let hint = links(b"</style.css>; rel=preload; as=style").next().expect("a link");
        assert!(hint.is("preload") && hint.is("PRELOAD") && !hint.is("pre") && hint.parameter("AS") == Some(b"style"));
    }

    #[test]
    fn tolerated_and_not() {
        let cases: &[(&str, &[&str])] = &[
            ("  , ,<a>", &["a"]),
            ("<a,b;c>;rel=x", &["a,b;c rel=x"]),
            ("<a> ; rel = x ;crossorigin;as=\"b, c; \\\"d\\\"\" , <e>", &["a rel=x crossorigin= as=b, c; \"d\"", "e"]),
            ("<a>;;crossorigin", &["a crossorigin="]),
            ("<a>;as=\"\\\\\"", &["a as=\\"]),
            // Text that is not a link has no known end.
            ("", &[]),
            ("a", &[]),
            ("<a", &[]),
            ("x, <a>", &[]),
            ("<a>; rel=\"x, <b>", &["a rel="]),
            ("<a> x, <b>", &["a"]),
        ];
        for (line, expected) in cases {
            assert_eq!(read(line), *expected, "{line}");
        }
    }

    /// RFC 8288 §3.3: a second `rel` does not count.
    #[test]
    fn the_first_parameter_of_a_name_counts() {
        let link = links(b"<a>; rel=icon; rel=preload").next().expect("a link");
        assert!(link.is("icon") && !link.is("preload"));
        let several = links(b"<a>; rel=\"preload  stylesheet\"").next().expect("a link");
        assert!(several.is("preload") && several.is("stylesheet"));
    }
}
