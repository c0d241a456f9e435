//! The tags in the head of an HTML page, as browsers find them (HTML §13.2.5), as far as hints need it.
//!
//! What is not markup to a browser is none here: comments, scripts, styles, what stands in `noscript`. The head ends where a browser ends it:
//! at its end tag, or at the first tag that can only be of the body. Bytes that make no sense are skipped. Every byte is looked at a bounded
//! number of times, whatever the page is.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};
use smallvec::SmallVec;

/// The most tags, comments and the like that are read: a few times as many as the longest heads have. A page full of angle brackets costs
/// no more.
const MARKUP_MAX: usize = 512;

/// The most attributes of one tag that are read; later ones are ignored.
const ATTRIBUTES_MAX: usize = 32;

/// An iterator over the start tags in the head of a page.
#[derive(Debug, Clone)]
pub(super) struct Head<'a> {
    rest: &'a [u8],
    /// The amount of markup that is still read.
    left: usize,
}

/// One start tag.
#[derive(Debug, Clone)]
pub(super) struct Tag<'a> {
    pub(super) name: Name,
    attributes: Attributes<'a>,
}

/// The names and values as they are written.
type Attributes<'a> = SmallVec<[(&'a [u8], &'a [u8]); 8]>;

/// The elements of a head that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Link,
    Script,
    Base,
    /// An element that is allowed in a head, and of no interest.
    Other,
}

impl<'a> Head<'a> {
    pub(super) const fn of(page: &'a [u8]) -> Self {
        Self { rest: page, left: MARKUP_MAX }
    }

    /// Moves past the next of these bytes; to the end, if there is none.
    fn skip_past(&mut self, byte: u8) {
        self.rest = memchr(byte, self.rest).map_or(&[], |at| &self.rest[at + 1..]);
    }

    /// Moves past a comment, after its `<!--`.
    fn skip_comment(&mut self) {
        // `<!-->` and `<!--->` are whole comments.
        for abrupt in [&b">"[..], b"->"] {
            if let Some(rest) = self.rest.strip_prefix(abrupt) {
                self.rest = rest;
                return;
            }
        }
        let text = self.rest;
        let end = |at: usize| [&b"-->"[..], b"--!>"].into_iter().find_map(|end| text[at..].strip_prefix(end));
        self.rest = memchr_iter(b'-', text).find_map(end).unwrap_or_default();
    }

    /// Moves past an element whose content is not markup: from after its start tag to its end tag.
    fn skip_content(&mut self, name: &[u8]) {
        let text = self.rest;
        let is_end = |at: &usize| {
            let after = text[at + 1..].strip_prefix(b"/").and_then(|rest| rest.split_at_checked(name.len()));
            after.is_some_and(|(own, rest)| {
                own.eq_ignore_ascii_case(name) && rest.first().is_some_and(|byte| is_space(*byte) || matches!(byte, b'/' | b'>'))
            })
        };
        self.rest = memchr_iter(b'<', text).find(is_end).map_or(&[], |at| &text[at..]);
        self.skip_past(b'>');
    }

    /// Reads the attributes of a tag, after its name (HTML §13.2.5.32 and following). Returns `None` if the tag does not end.
    fn attributes(&mut self) -> Option<Attributes<'a>> {
        let mut attributes = Attributes::new();
        loop {
            self.skip_while(|byte| is_space(byte) || byte == b'/');
            if self.rest.first()? == &b'>' {
                self.rest = &self.rest[1..];
                return Some(attributes);
            }
            // An equals sign at the beginning belongs to the name.
            let from = self.rest;
            let equals = usize::from(from.starts_with(b"="));
            self.rest = &from[equals..];
            let name = &from[..equals + self.take_while(|byte| !is_space(byte) && !matches!(byte, b'/' | b'>' | b'=')).len()];
            self.skip_while(is_space);
            let mut value = &b""[..];
            if self.rest.first()? == &b'=' {
                self.rest = &self.rest[1..];
                self.skip_while(is_space);
                value = match *self.rest.first()? {
                    quote @ (b'"' | b'\'') => {
                        let quoted = &self.rest[1..];
                        let end = memchr(quote, quoted)?;
                        self.rest = &quoted[end + 1..];
                        &quoted[..end]
                    }
                    _ => self.take_while(|byte| !is_space(byte) && byte != b'>'),
                };
            }
            if attributes.len() < ATTRIBUTES_MAX {
                attributes.push((name, value));
            }
        }
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(self.rest.iter().take_while(|byte| wanted(**byte)).count());
        self.rest = rest;
        taken
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        let _ = self.take_while(wanted);
    }
}

impl<'a> Iterator for Head<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        while self.left > 0 {
            self.left -= 1;
            self.skip_past(b'<');
            match *self.rest.first()? {
                b'!' => match self.rest.strip_prefix(b"!--") {
                    Some(rest) => {
                        self.rest = rest;
                        self.skip_comment();
                    }
                    None => self.skip_past(b'>'),
                },
                b'?' => self.skip_past(b'>'),
                b'/' => {
                    self.rest = &self.rest[1..];
                    let name = self.take_while(|byte| byte.is_ascii_alphanumeric());
                    if [&b"head"[..], b"html", b"body"].iter().any(|end| name.eq_ignore_ascii_case(end)) {
                        self.rest = &[];
                        return None;
                    }
                    self.attributes()?;
                }
                byte if byte.is_ascii_alphabetic() => {
                    let name = self.take_while(|byte| !is_space(byte) && !matches!(byte, b'/' | b'>'));
                    let attributes = self.attributes()?;
                    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
                    let known = if is("link") {
                        Name::Link
                    } else if is("script") {
                        Name::Script
                    } else if is("base") {
                        Name::Base
                    } else if ["html", "head", "meta", "title", "style", "noscript", "noframes", "template"].into_iter().any(is) {
                        Name::Other
                    } else {
                        self.rest = &[];
                        return None;
                    };
                    if ["script", "title", "style", "noscript", "noframes", "template"].into_iter().any(is) {
                        self.skip_content(name);
                    }
                    return Some(Tag { name: known, attributes });
                }
                _ => {}
            }
        }
        None
    }
}

impl<'a> Tag<'a> {
    /// Returns the value of an attribute; empty if it has none. Of several with one name the first counts.
    pub(super) fn attribute(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| decoded(value))
    }

    /// Returns whether there is an attribute of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// Returns a value with its escaped ampersands decoded: these are the character references that occur in addresses. Others are left as they
/// are.
fn decoded(value: &[u8]) -> Cow<'_, [u8]> {
    const AMPERSANDS: [&[u8]; 5] = [b"&amp;", b"&#38;", b"&#038;", b"&#x26;", b"&#X26;"];
    let Some(first) = memchr(b'&', value) else { return Cow::Borrowed(value) };
    let mut text = value[..first].to_vec();
    let mut rest = &value[first..];
    while let [byte, after @ ..] = rest {
        text.push(*byte);
        rest = AMPERSANDS.iter().find_map(|reference| rest.strip_prefix(*reference)).unwrap_or(after);
    }
    Cow::Owned(text)
}

/// Returns whether a byte separates attributes (HTML §13.2.5.32).
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns each link, script and base with its attributes.
    fn tags(page: &str) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Head::of(page.as_bytes())
            .filter(|tag| tag.name != Name::Other)
            .map(|tag| {
                let attributes = tag.attributes.iter().map(|(name, value)| format!(" {}={}", text(name), text(&decoded(value))));
                format!("{:?}", tag.name).to_lowercase() + &attributes.collect::<String>()
            })
            .collect()
    }

    #[test]
    fn tags_are_found_however_they_are_written() {
        let cases: &[(&str, &[&str])] = &[
            ("<!DOCTYPE html><html><head><link rel=a href='/b'></head>", &["link rel=a href=/b"]),
            ("<LINK\nREL = \"a\"\tHREF=/b/ disabled/>", &["link REL=a HREF=/b/ disabled="]),
            ("<link rel=a href=/b/>", &["link rel=a href=/b/"]),
            ("<link rel=a href=\"/x?a=1&amp;b=2&#038;c=3&#x26;d&copy=1\">", &["link rel=a href=/x?a=1&b=2&c=3&d&copy=1"]),
            ("<link rel=\"a>b\" href='<link>'>", &["link rel=a>b href=<link>"]),
            ("<link =rel=a href=/b>", &["link =rel=a href=/b"]),
            (
                "<meta charset=utf-8><base href=/><script async src=a></script><link rel=b>",
                &["base href=/", "script async= src=a", "link rel=b"],
            ),
            ("5 < 6 <3 <link rel=a>", &["link rel=a"]),
            ("<links><link rel=a>", &[]),
            ("<link rel=a", &[]),
            ("<link rel=\"a>", &[]),
        ];
        for (page, expected) in cases {
            assert_eq!(tags(page), *expected, "{page}");
        }
    }

    #[test]
    fn what_is_no_markup_to_a_browser_is_none() {
        let hidden = [
            "<!-- <link rel=a> -->",
            "<!--[if lt IE 9]><link rel=a><![endif]-->",
            "<!-- -- > <link rel=a> --!>",
            "<!--<!-- --><!-->",
            "<!--->",
            "<title><link rel=a></title >",
            "<style>/* <link rel=a> </styles> */</STYLE>",
            "<noscript><link rel=a></noscript>",
            "<template><link rel=a></template>",
            "<? <link rel=a ?>",
            "<!x>",
            "</p <link rel=a>",
        ];
        for markup in hidden {
            assert_eq!(tags(&format!("<head>{markup}<link rel=z></head>")), ["link rel=z"], "{markup}");
        }
        let script = "<script>\"<link rel=a>\" < '</scripts>'</script\n><link rel=z>";
        assert_eq!(tags(script), ["script", "link rel=z"]);
    }

    #[test]
    fn the_head_ends_where_a_browser_ends_it() {
        for end in ["</head>", "<body>", "<div>", "<p", "</html>", "<svg>", "<h1>"] {
            assert_eq!(tags(&format!("<link rel=a>{end}<link rel=z>")), ["link rel=a"], "{end}");
        }
    }
}
