//! Texts with placeholders: `/?fbclid={unique}`.
//!
//! A placeholder is a word in braces; `{{` and `}}` are braces themselves. In URLs and fields a word that is none of ours is an error, for a
//! misspelt placeholder would be sent a million times. In contents ([`Braces::Content`]) other braces are text: JSON is full of them.

use std::{fmt::Write as _, sync::Arc};

use super::url::push_encoded;

/// The words that stand in braces.
const WORDS: &str = "{unique}, {random:1..1000}, {client}, {n}, {time}";

/// A text in which some parts differ for each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(Arc<str>),
    Unique,
    Random { from: u64, to: u64 },
    Client,
    N,
    Time,
    Marker,
}

/// Says what braces mean beside placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Braces {
    /// Path and query: `{{` is a brace, percent-encoded.
    Target,
    /// The value of a field: `{{` is a brace.
    Field,
    /// A content: all that is not a placeholder is text, `{{` too.
    Content,
    /// A cookie of the leak check: as in a field, and `{marker}` is the client's marker.
    Cookie,
}

/// Says what is wrong with the placeholders of a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}, at byte {at} of {text:?}")]
pub struct TemplateError {
    /// The text.
    pub text: String,
    /// The byte at which it is wrong.
    pub at: usize,
    what: String,
}

/// Holds what placeholders are filled with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values {
    /// A number that only this run has.
    pub(crate) run: u32,
    /// The visitor's number.
    pub(crate) client: u64,
    /// The number of the visitor's request, from 1.
    pub(crate) n: u64,
    /// Milliseconds since 1970.
    pub(crate) time: u64,
}

impl Template {
    /// Reads a text.
    ///
    /// # Errors
    /// When a brace has no partner, or a word in braces is not a placeholder; never in a content.
    pub(crate) fn read(text: &str, braces: Braces) -> Result<Self, TemplateError> {
        let error = |at: usize, what: String| TemplateError { text: text.to_owned(), at, what };
        let lenient = braces == Braces::Content;
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut at = 0;
        while let Some(found) = text[at..].find(['{', '}']).map(|found| at + found) {
            plain.push_str(&text[at..found]);
            let rest = &text[found..];
            if !lenient && (rest.starts_with("{{") || rest.starts_with("}}")) {
                push_brace(&mut plain, rest.as_bytes()[0], braces);
                at = found + 2;
                continue;
            }
            let word = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(word, _)| word);
            let part = match word.map(|word| (word, read_word(word, braces))) {
                Some((word, Some(part))) => {
                    at = found + word.len() + 2;
                    part
                }
                _ if lenient => {
                    plain.push(char::from(rest.as_bytes()[0]));
                    at = found + 1;
                    continue;
                }
                Some((word, None)) => {
                    return Err(error(
                        found,
                        format!("{{{word}}} is not a placeholder: there are {WORDS}; a brace itself is {{{{ or }}}}"),
                    ));
                }
                None => return Err(error(found, "a brace has no partner: a brace itself is {{ or }}".to_owned())),
            };
            if !plain.is_empty() {
                parts.push(TemplatePart::Text(std::mem::take(&mut plain).into()));
            }
            parts.push(part);
        }
        plain.push_str(&text[at..]);
        if !plain.is_empty() {
            parts.push(TemplatePart::Text(plain.into()));
        }
        Ok(Self { parts })
    }

    /// Makes a template of a text in which braces mean nothing.
    pub(crate) fn literal(text: &str) -> Self {
        Self { parts: vec![TemplatePart::Text(text.into())] }
    }

    /// Returns the text, if nothing in it differs for each request.
    #[must_use]
    pub(crate) fn fixed(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns whether `{marker}` stands in it.
    #[must_use]
    pub(crate) fn has_marker(&self) -> bool {
        self.parts.contains(&TemplatePart::Marker)
    }

    /// Returns the text with its placeholders filled in.
    #[must_use]
    pub(crate) fn fill(&self, values: &Values, marker: &str, random: &mut fastrand::Rng) -> String {
        let mut text = String::with_capacity(64);
        for part in &self.parts {
            // Writing into a string never fails.
            let _ = match part {
                TemplatePart::Text(part) => text.write_str(part),
                TemplatePart::Unique => write!(text, "{:08x}{:x}x{:x}", values.run, values.client, values.n),
                TemplatePart::Random { from, to } => write!(text, "{}", random.u64(*from..=*to)),
                TemplatePart::Client => write!(text, "{}", values.client),
                TemplatePart::N => write!(text, "{}", values.n),
                TemplatePart::Time => write!(text, "{}", values.time),
                TemplatePart::Marker => text.write_str(marker),
            };
        }
        text
    }
}

fn push_brace(text: &mut String, brace: u8, braces: Braces) {
    match braces {
        Braces::Target => push_encoded(text, brace),
        Braces::Field | Braces::Content | Braces::Cookie => text.push(char::from(brace)),
    }
}

fn read_word(word: &str, braces: Braces) -> Option<TemplatePart> {
    match word {
        "unique" => Some(TemplatePart::Unique),
        "client" => Some(TemplatePart::Client),
        "n" => Some(TemplatePart::N),
        "time" => Some(TemplatePart::Time),
        "marker" if braces == Braces::Cookie => Some(TemplatePart::Marker),
        _ => {
            let (from, to) = word.strip_prefix("random:")?.split_once("..")?;
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            (from <= to).then_some(TemplatePart::Random { from, to })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALUES: Values = Values { run: 0xabc, client: 17, n: 3, time: 1_700_000_000_000 };

    fn fill(text: &str, braces: Braces) -> String {
        match Template::read(text, braces) {
            Ok(template) => template.fill(&VALUES, "M", &mut fastrand::Rng::with_seed(1)),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn placeholders_are_filled_and_doubled_braces_are_braces() {
        for (text, braces, expected) in [
            ("/a", Braces::Target, "/a"),
            ("/?fbclid={unique}", Braces::Target, "/?fbclid=00000abc11x3"),
            ("/{client}/{n}?t={time}", Braces::Target, "/17/3?t=1700000000000"),
            ("/{random:5..5}", Braces::Target, "/5"),
            ("/{{n}}", Braces::Target, "/%7Bn%7D"),
            ("{{{n}}}", Braces::Field, "{3}"),
            ("{\"a\": {\"n\": \"{n}\"}}", Braces::Content, "{\"a\": {\"n\": \"3\"}}"),
            ("{{}}{nothing}{", Braces::Content, "{{}}{nothing}{"),
            ("a={marker}", Braces::Cookie, "a=M"),
        ] {
            assert_eq!(fill(text, braces), expected, "{text}");
        }
    }

    #[test]
    fn an_unknown_placeholder_is_an_error_with_its_place() {
        for (text, part) in [
            ("/?a={uniqe}", "{uniqe} is not a placeholder: there are {unique}, {random:1..1000}"),
            ("/?a={uniqe}", "at byte 4"),
            ("/?a={", "no partner"),
            ("/?a=}", "no partner"),
            ("/{random:9..1}", "is not a placeholder"),
            ("/{random:}", "is not a placeholder"),
            ("/{marker}", "is not a placeholder"),
            ("/{}", "{} is not a placeholder"),
        ] {
            assert!(fill(text, Braces::Target).contains(part), "{text}: {}", fill(text, Braces::Target));
        }
    }

    #[test]
    fn a_text_without_placeholders_is_fixed() {
        assert_eq!(Template::read("/a{{", Braces::Field).expect("valid").fixed(), Some("/a{"));
        assert_eq!(Template::read("/{n}", Braces::Field).expect("valid").fixed(), None);
    }

    #[test]
    fn unique_values_differ_between_clients_and_requests() {
        let template = Template::read("{unique}", Braces::Field).expect("valid");
        let mut seen = std::collections::HashSet::new();
        for client in 0..40 {
            for n in 0..40 {
                assert!(seen.insert(template.fill(&Values { client, n, ..VALUES }, "", &mut fastrand::Rng::with_seed(1))));
            }
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_text_without_braces_stays(text in "[a-z{}:.0-9é]{0,30}") {
            for braces in [Braces::Target, Braces::Field, Braces::Content, Braces::Cookie] {
                let read = Template::read(&text, braces);
                prop_assert!(braces != Braces::Content || read.is_ok());
                if !text.contains(['{', '}']) {
                    let read = read.expect("valid");
                    prop_assert_eq!(read.fixed(), Some(text.as_str()));
                }
            }
        }
    }
}
