//! The list of directives on one line: `#( token [ "=" ( token / quoted-string ) ] )` (RFC 9111 §5.2, RFC 9110 §5.6).
//!
//! Nothing is thrown away at a syntax error. What stands between it and the next comma is still read, but marked as not sound, so that
//! `no-cache; no-store` forbids storing while `max-age=60; public` permits nothing.

use std::borrow::Cow;

use super::DeltaSeconds;

/// One directive of a `Cache-Control` line.
#[derive(Debug)]
pub(super) struct Directive<'a> {
    /// The name, in any case.
    pub(super) name: &'a [u8],
    /// The argument after the `=`, without quotes and escapes.
    argument: Option<Cow<'a, [u8]>>,
    /// Whether it is written as the grammar says, with nothing malformed beside it.
    sound: bool,
}

impl Directive<'_> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    pub(super) fn sound_argument(&self) -> Option<&[u8]> {
        self.argument.as_deref().filter(|_| self.sound)
    }

    pub(super) const fn is_sound_flag(&self) -> bool {
        self.sound && self.argument.is_none()
    }

    /// Returns the argument as a lifetime; zero if it is anything but a whole number.
    pub(super) fn lifetime(&self) -> DeltaSeconds {
        self.sound_argument().and_then(DeltaSeconds::parse).unwrap_or_default()
    }
}

/// An iterator over the directives of one line.
#[derive(Debug)]
pub(super) struct Directives<'a> {
    rest: &'a [u8],
    /// Whether something malformed was seen since the last comma.
    malformed: bool,
    /// Whether a quote was opened and not closed: commas after it no longer separate.
    unterminated: bool,
}

impl<'a> Directives<'a> {
    pub(super) const fn of(line: &'a [u8]) -> Self {
        Self { rest: line, malformed: false, unterminated: false }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn skip_spaces(&mut self) {
        self.skip(self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count());
    }

    fn token(&mut self) -> &'a [u8] {
        let (token, rest) = self.rest.split_at(self.rest.iter().take_while(|byte| is_tchar(**byte)).count());
        self.rest = rest;
        token
    }

    /// Returns the quoted string that begins here, without its quotes; if it never ends, only the opening quote is consumed.
    fn quoted(&mut self) -> Option<&'a [u8]> {
        self.skip(1);
        if self.unterminated {
            // Looking for the end again at every further quote would make the line cost its length squared.
            return None;
        }
        let mut escaped = false;
        let end = self.rest.iter().position(|&byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        });
        let Some(end) = end else {
            self.unterminated = true;
            return None;
        };
        let content = &self.rest[..end];
        self.skip(end + 1);
        Some(content)
    }

    /// Returns the argument that follows a `=`.
    fn argument(&mut self) -> Option<Cow<'a, [u8]>> {
        if self.rest.first() == Some(&b'"') {
            return self.quoted().map(unescape);
        }
        let token = self.token();
        self.malformed |= token.is_empty();
        Some(Cow::Borrowed(token))
    }
}

impl<'a> Iterator for Directives<'a> {
    type Item = Directive<'a>;

    fn next(&mut self) -> Option<Directive<'a>> {
        loop {
            self.skip_spaces();
            match *self.rest.first()? {
                b',' => {
                    self.malformed = false;
                    self.skip(1);
                }
                b'"' => {
                    self.malformed = true;
                    self.quoted();
                }
                byte if is_tchar(byte) => break,
                _ => {
                    self.malformed = true;
                    self.skip(1);
                }
            }
        }
        let name = self.token();
        let argument = if self.rest.first() == Some(&b'=') {
            self.skip(1);
            self.argument()
        } else {
            None
        };
        self.skip_spaces();
        self.malformed |= !matches!(self.rest.first(), None | Some(b','));
        Some(Directive { name, argument, sound: !self.malformed && !self.unterminated })
    }
}

const fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

fn unescape(content: &[u8]) -> Cow<'_, [u8]> {
    if !content.contains(&b'\\') {
        return Cow::Borrowed(content);
    }
    let mut plain = Vec::with_capacity(content.len());
    let mut bytes = content.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(if byte == b'\\' { *bytes.next().unwrap_or(&byte) } else { byte });
    }
    Cow::Owned(plain)
}
