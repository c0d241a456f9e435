//! Patterns of paths, as `_redirects` and `_headers` have them: `/blog/:year/*`.
//!
//! Paths and patterns are compared in one spelling, percent-encoded in one way, so that what a pattern captures can stand in a `Location`
//! as it is.

use std::path::Path;

use super::path::{decode, encode_segment};

/// A pattern for paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// The segments before the splat.
    pieces: Vec<Piece>,
    /// The text after the splat; `None` if there is no splat.
    tail: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// A placeholder for one whole segment, with its name.
    Placeholder(String),
}

/// The values of a pattern's placeholders; the splat is called `splat`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Captures<'a>(Vec<(&'a str, &'a str)>);

/// Returns the path of a request in its one spelling. It has no slash at its end, except for the root.
pub(super) fn canonical(below: &Path) -> String {
    let mut path = String::new();
    for name in below {
        path.push('/');
        encode_segment(name.as_encoded_bytes(), &mut path);
    }
    if path.is_empty() { "/".to_owned() } else { path }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Returns what is wrong with the pattern.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let Some(inner) = text.strip_prefix('/') else { return Err(format!("\"{text}\" does not begin with a slash")) };
        let (before, tail) = match inner.split_once('*') {
            Some((before, tail)) if !tail.contains('*') && !tail.contains("/:") => (before, Some(tail)),
            Some(_) => return Err(format!("\"{text}\" has something other than plain text behind its *")),
            None => (inner.strip_suffix('/').unwrap_or(inner), None),
        };
        let mut pieces = Vec::new();
        let mut literal = String::new();
        for (number, segment) in before.split('/').enumerate() {
            if number > 0 || !before.is_empty() || tail.is_some() {
                literal.push('/');
            }
            match segment.strip_prefix(':') {
                Some(name) if is_name(name) => {
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                    pieces.push(Piece::Placeholder(name.to_owned()));
                }
                _ => encoded(segment, &mut literal)?,
            }
        }
        if pieces.is_empty() && literal.is_empty() {
            literal.push('/');
        }
        pieces.push(Piece::Text(literal));
        let tail = tail
            .map(|tail| {
                let mut text = String::new();
                for (number, segment) in tail.split('/').enumerate() {
                    if number > 0 {
                        text.push('/');
                    }
                    encoded(segment, &mut text)?;
                }
                Ok::<_, String>(text)
            })
            .transpose()?;
        Ok(Self { pieces, tail })
    }

    /// Returns the path that the pattern matches, if it matches no other.
    pub(super) fn only_path(&self) -> Option<&str> {
        match (&self.pieces[..], &self.tail) {
            ([Piece::Text(path)], None) => Some(path),
            _ => None,
        }
    }

    /// Returns whether the pattern has a placeholder of this name.
    pub(super) fn captures(&self, name: &str) -> bool {
        (name == "splat" && self.tail.is_some()) || self.pieces.iter().any(|piece| matches!(piece, Piece::Placeholder(own) if own == name))
    }

    /// Matches a [`canonical`] path.
    pub(super) fn matches<'a>(&'a self, path: &'a str) -> Option<Captures<'a>> {
        let mut rest = path;
        let mut captures = Captures::default();
        let last = self.pieces.len().saturating_sub(1);
        for (number, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => match rest.strip_prefix(text.as_str()) {
                    Some(tail) => rest = tail,
                    // `/blog/*` also matches `/blog`.
                    None if number == last && self.tail.as_deref() == Some("") && text.strip_suffix('/') == Some(rest) => rest = "",
                    None => return None,
                },
                Piece::Placeholder(name) => {
                    let (segment, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                    if segment.is_empty() {
                        return None;
                    }
                    captures.0.push((name, segment));
                    rest = tail;
                }
            }
        }
        match &self.tail {
            None => rest.is_empty().then_some(captures),
            Some(tail) => {
                captures.0.push(("splat", rest.strip_suffix(tail.as_str())?));
                Some(captures)
            }
        }
    }
}

fn encoded(segment: &str, out: &mut String) -> Result<(), String> {
    let name = decode(segment).ok_or_else(|| format!("\"{segment}\" is not percent-encoded as it should be"))?;
    encode_segment(name.as_bytes(), out);
    Ok(())
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Captures<'_> {
    /// Returns `template` with the captures in place of their names.
    pub(super) fn fill(&self, template: &str) -> String {
        let mut filled = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(at) = rest.find(':') {
            filled.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            match self.0.iter().find(|(name, _)| *name == &rest[..end]) {
                Some((_, value)) => {
                    filled.push_str(value);
                    rest = &rest[end..];
                }
                // It is an ordinary colon: `https:`, a port.
                None => filled.push(':'),
            }
        }
        filled.push_str(rest);
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(pattern: &str, path: &str) -> Option<Vec<(String, String)>> {
        let pattern = Pattern::parse(pattern).expect("a pattern");
        let captures = pattern.matches(path)?;
        Some(captures.0.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_pattern_matches_what_it_says() {
        for (pattern, path, expected) in [
            ("/", "/", Some(&[][..])),
            ("/", "/a", None),
            ("/a", "/a", Some(&[])),
            ("/a/", "/a", Some(&[])),
            ("/a", "/ab", None),
            ("/a", "/a/b", None),
            ("/f%C3%BCr", "/f%C3%BCr", Some(&[])),
            ("/für", "/f%C3%BCr", Some(&[])),
            ("/*", "/", Some(&[("splat", "")])),
            ("/*", "/a/b.html", Some(&[("splat", "a/b.html")])),
            ("/blog/*", "/blog/2026/a", Some(&[("splat", "2026/a")])),
            ("/blog/*", "/blog", Some(&[("splat", "")])),
            ("/blog/*", "/blogs", None),
            ("/blog*", "/blogs", Some(&[("splat", "s")])),
            ("/*.js", "/a/b.js", Some(&[("splat", "a/b")])),
            ("/*.js", "/a/b.css", None),
            ("/:year/:slug", "/2026/hello", Some(&[("year", "2026"), ("slug", "hello")])),
            ("/:year/:slug", "/2026", None),
            ("/:year/:slug", "/2026/a/b", None),
            ("/by/:who/*", "/by/me/x/y", Some(&[("who", "me"), ("splat", "x/y")])),
            ("/by/:who/*", "/by/me", Some(&[("who", "me"), ("splat", "")])),
        ] {
            let expected = expected.map(|all| all.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect::<Vec<_>>());
            assert_eq!(captured(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        for text in ["a", "", "/*/*", "/*/:a", "/%zz", "/%ff"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn captures_fill_a_template_and_other_colons_stay() {
        let pattern = Pattern::parse("/:a/*").expect("a pattern");
        let captures = pattern.matches("/x/y/z").expect("matches");
        assert_eq!(captures.fill("https://example.org:80/:splat/:a-:a/:b"), "https://example.org:80/y/z/x-x/:b");
    }
}
