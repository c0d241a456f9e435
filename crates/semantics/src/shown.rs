//! The parts of a request target that may be shown to whoever reads lists, spans and messages: what a client sent there may be a secret of its own.
//!
//! It is one rule for all places that show targets, so that none of them tells what another one hides. The access log is no such place: it has targets as they came.

use std::borrow::Cow;

/// What stands in a path in place of what may be a secret.
pub const HIDDEN: &str = "…";

/// Bytes of the longest name of a parameter that is shown.
const NAME_BYTES_MAX: usize = 32;

/// Bytes of the longest parameter without a value that is shown, as it may be a value without a name.
const WORD_BYTES_MAX: usize = 24;

/// The number of hexadecimal digits from which on a number is of the kind that is handed out to one person.
const HEX_DIGITS_MIN: usize = 24;

/// The length from which on letters of both cases mixed with digits are no word any more.
const MIXED_MIN: usize = 20;

/// The shortest JSON Web Token that is looked for: none that is signed has fewer bytes.
const WEB_TOKEN_MIN: usize = 40;

/// What may be shown of a parameter of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter<'a> {
    /// This is its name; it has a value, which is not shown.
    Named(&'a str),
    /// It is this word and has no value.
    Word(&'a str),
    /// Nothing: it may be a value without a name, or have a secret for a name.
    Hidden,
}

impl<'a> Parameter<'a> {
    /// Reads one parameter, as it stands between the `&` of a query.
    #[must_use]
    pub fn of(pair: &'a str) -> Self {
        match pair.split_once('=') {
            Some((name, _)) if name.len() <= NAME_BYTES_MAX && !is_token(name) => Self::Named(name),
            None if is_word(pair) => Self::Word(pair),
            Some(_) | None => Self::Hidden,
        }
    }
}

/// Returns whether a character says something to whoever shows it, instead of being shown: a control character, or a mark that turns writing round.
#[must_use]
pub fn is_order(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Returns a path with `…` in place of what may be a secret: parameters of a segment (`;jsessionid=…`), a query or a fragment that was written as a part
/// of the path (`%3F`, `%23`), and segments that are of the kind that is handed out to one person, as Ghost's links to drafts (`/p/UUID/`) and links to set a
/// new password are, or that are addresses for mail.
#[must_use]
pub fn path(path: &str) -> Cow<'_, str> {
    if !may_hide(path) {
        return Cow::Borrowed(path);
    }
    let is_end = |at: usize| match path.as_bytes()[at] {
        b';' => true,
        b'%' => {
            path.as_bytes().get(at + 1..at + 3).is_some_and(|hex| [b"3f", b"3b", b"23"].iter().any(|end| hex.eq_ignore_ascii_case(*end)))
        }
        _ => false,
    };
    let end = (0..path.len()).find(|at| is_end(*at)).unwrap_or(path.len());
    if end == path.len() && !path.split('/').any(is_token) {
        return Cow::Borrowed(path);
    }
    let segments: Vec<&str> = path[..end].split('/').map(|segment| if is_token(segment) { HIDDEN } else { segment }).collect();
    let mut shown = segments.join("/");
    if end < path.len() {
        shown.push_str(HIDDEN);
    }
    Cow::Owned(shown)
}

/// Returns whether a path has a sign of what is not shown. Few have, and one look at each byte tells.
fn may_hide(path: &str) -> bool {
    let bytes = path.as_bytes();
    // All of them, as the compiler makes vectors of that.
    let has_sign = bytes.iter().fold(false, |found, byte| found | matches!(byte, b';' | b'%' | b'@'));
    has_sign || (bytes.len() >= MIXED_MIN && bytes.split(|byte| *byte == b'/').any(|segment| segment.len() >= MIXED_MIN))
}

/// Returns whether a segment has something in it that is one person's: a long number, letters and digits without a meaning, an address for mail. The name
/// of a file is none, as its version often is such a number.
fn is_token(segment: &str) -> bool {
    let digits = segment.bytes().filter(u8::is_ascii_hexdigit).count();
    if digits >= HEX_DIGITS_MIN && segment.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return true;
    }
    if is_mail_address(segment) {
        return true;
    }
    if segment.contains('.') {
        // A JSON Web Token begins with `{"` in base64 (RFC 7519 §3.1).
        return segment.len() >= WEB_TOKEN_MIN && segment.starts_with("eyJ");
    }
    segment.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| {
        let has = |is: fn(&u8) -> bool| run.as_bytes().iter().any(is);
        let is_number = run.len() >= HEX_DIGITS_MIN && run.bytes().all(|b| b.is_ascii_hexdigit());
        let is_mixed = run.len() >= MIXED_MIN && has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
        is_number || is_mixed
    })
}

/// Returns whether a segment is somebody's address for mail. A handle that begins with `@`, and the version of a library (`@18.2`) are none.
fn is_mail_address(segment: &str) -> bool {
    let at = segment.find('@').map(|at| (at, at + 1)).or_else(|| segment.find("%40").map(|at| (at, at + 3)));
    at.is_some_and(|(end, start)| {
        end > 0 && segment[start..].starts_with(|c: char| c.is_ascii_alphabetic()) && segment[start..].contains('.')
    })
}

/// Returns whether a parameter without a value is a name: what has digits in it, or is long, may be a token.
fn is_word(parameter: &str) -> bool {
    parameter.len() <= WORD_BYTES_MAX && parameter.bytes().all(|b| b.is_ascii_alphabetic() || b"_-[].".contains(&b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_is_shown_without_what_is_somebodys_own() {
        for (sent, shown) in [
            ("/", "/"),
            ("/a/b.html", "/a/b.html"),
            ("/2026/11/23/a-post/", "/2026/11/23/a-post/"),
            ("/10-things-you-did-not-know-about-lighthouses/", "/10-things-you-did-not-know-about-lighthouses/"),
            ("/Top-10-Things-To-Do-In-Berlin/", "/Top-10-Things-To-Do-In-Berlin/"),
            ("/caf%C3%A9/100%25", "/caf%C3%A9/100%25"),
            // RFC 3986 §3.3: parameters of a segment.
            ("/a;jsessionid=secret", "/a…"),
            ("/a;v=secret/b", "/a…"),
            ("/a%3Bjsessionid=secret", "/a…"),
            ("/a%3Ftoken=secret", "/a…"),
            ("/a%3ftoken=secret", "/a…"),
            ("/a%23access_token=secret", "/a…"),
            ("/p/0b6c2fbb-93d1-4c59-a8f1-7a3c1d2e4f50/", "/p/…/"),
            ("/feed/0123456789abcdef0123456789abcdef", "/feed/…"),
            ("/feed/0123456789ABCDEF01234567", "/feed/…"),
            // As Django and Laravel write the links to set a new password.
            ("/reset/MQ/c1x2b3-0123456789abcdef0123456789abcdef/", "/reset/MQ/…/"),
            ("/password/reset/5f2a9c1be07d4e6f8a3b5c7d9e1f20415f2a9c1be07d4e6f8a3b5c7d9e1f2041", "/password/reset/…"),
            ("/join/Zm9vYmFy1aGVsbG8gd29ybGQ", "/join/…"),
            ("/verify/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "/verify/…"),
            ("/unsubscribe/ada@mail.example", "/unsubscribe/…"),
            ("/unsubscribe/ada%40mail.example/all", "/unsubscribe/…/all"),
            ("/@ada@social.example", "/@ada@social.example"),
            ("/npm/react@18.2.0/logo@2x.png", "/npm/react@18.2.0/logo@2x.png"),
            // Versions of files are told apart.
            ("/assets/app-0123456789abcdef0123456789abcdef.js", "/assets/app-0123456789abcdef0123456789abcdef.js"),
        ] {
            assert_eq!(path(sent), shown);
        }
    }

    #[test]
    fn a_parameter_is_shown_by_its_name_alone() {
        for (pair, shown) in [
            ("s=secret", Parameter::Named("s")),
            ("a=1;b=secret", Parameter::Named("a")),
            ("=secret", Parameter::Named("")),
            ("preview", Parameter::Word("preview")),
            ("", Parameter::Word("")),
            ("0a1b2c", Parameter::Hidden),
            ("s%3Dsecret", Parameter::Hidden),
            ("abcdefghijklmnopqrstuvwxyz", Parameter::Hidden),
            ("0123456789abcdef01234567=1", Parameter::Hidden),
            ("a-name-that-is-longer-than-thirty-two-bytes=1", Parameter::Hidden),
        ] {
            assert_eq!(Parameter::of(pair), shown, "{pair}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_shown_of_what_follows_a_parameter_of_a_segment(before in "(/[a-z0-9%.-]{0,40}){0,5}", after in "[S;/%.-]{0,40}") {
            let sent = format!("{before};S{after}");
            prop_assert!(!path(&sent).contains(['S', ';']));
        }
    }
}
