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

/// The digits in a row from which on they may be somebody's own number: of a phone, an order, an account. A date has eight, and those of pages and posts have
/// fewer.
const DIGITS_MIN: usize = 9;

/// The digits from which on what begins with `+` is a phone number.
const PHONE_DIGITS_MIN: usize = 7;

/// The endings of files that are parts of pages. Long numbers in their names are versions and what cameras count.
const PARTS_OF_PAGES: [&str; 24] = [
    "avif", "bmp", "css", "gif", "heic", "ico", "jpeg", "jpg", "js", "map", "mjs", "mov", "mp3", "mp4", "ogg", "otf", "png", "svg", "ttf",
    "wasm", "webm", "webp", "woff", "woff2",
];

/// The length from which on letters of both cases mixed with digits are not a word any more.
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
            Some((name, _)) if name.len() <= NAME_BYTES_MAX && shown_segment(name) == name => Self::Named(name),
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
/// of the path (`%3F`, `%23`), segments that are of the kind that is handed out to one person, as Ghost's links to drafts (`/p/UUID/`) and links to set a
/// new password are, or that are addresses for mail or phone numbers, and nine digits or more in a row, of which the rest of the segment stays: that may be
/// the number of an order. Dates, numbers of pages and posts, and names of pictures, scripts and the like stay as they are.
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
    let segments: Vec<Cow<'_, str>> = path[..end].split('/').map(shown_segment).collect();
    if end == path.len() && segments.iter().all(|segment| matches!(segment, Cow::Borrowed(text) if *text != HIDDEN)) {
        return Cow::Borrowed(path);
    }
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
    let has_sign = bytes.iter().fold(false, |found, byte| found | matches!(byte, b';' | b'%' | b'@' | b'+'));
    has_sign
        || bytes.iter().filter(|byte| byte.is_ascii_digit()).count() >= DIGITS_MIN
        || (bytes.len() >= MIXED_MIN && bytes.split(|byte| *byte == b'/').any(|segment| segment.len() >= MIXED_MIN))
}

/// Returns a segment of a path with `…` in place of all of it, or of long numbers in it, if these may be a secret.
fn shown_segment(segment: &str) -> Cow<'_, str> {
    if is_token(segment) || is_phone_number(segment) {
        return Cow::Borrowed(HIDDEN);
    }
    let ending = segment.rsplit_once('.').map_or("", |(_, ending)| ending);
    if PARTS_OF_PAGES.iter().any(|part| ending.eq_ignore_ascii_case(part)) {
        return Cow::Borrowed(segment);
    }
    without_long_numbers(segment)
}

/// Returns a text with `…` in place of long numbers. The digits of an octet that is written as `%20` belong to none.
fn without_long_numbers(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut shown, mut kept, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        if bytes[at] == b'%' {
            at += 3;
            continue;
        }
        let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits >= DIGITS_MIN {
            shown.push_str(&text[kept..at]);
            shown.push_str(HIDDEN);
            kept = at + digits;
        }
        at += digits.max(1);
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[kept..]);
    Cow::Owned(shown)
}

/// Returns whether a segment is a phone number as it is written in all countries: `+49-30-1234567`.
fn is_phone_number(segment: &str) -> bool {
    let number = segment.strip_prefix('+').or_else(|| segment.strip_prefix("%2B")).or_else(|| segment.strip_prefix("%2b"));
    number.is_some_and(|number| {
        let number = number.replace("%20", "-");
        number.bytes().filter(u8::is_ascii_digit).count() >= PHONE_DIGITS_MIN
            && number.bytes().all(|b| b.is_ascii_digit() || b"-.()".contains(&b))
    })
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
            // Dates, numbers of posts and of pages.
            ("/2026/11/28/", "/2026/11/28/"),
            ("/2026-11-28-1530-a-post/", "/2026-11-28-1530-a-post/"),
            ("/20261128/a-post/page/12/", "/20261128/a-post/page/12/"),
            ("/archives/12345678", "/archives/12345678"),
            // Numbers of orders, phones and accounts.
            ("/orders/123456789/", "/orders/…/"),
            ("/orders/0123456789/items/12", "/orders/…/items/12"),
            ("/my-account/view-order-2026112800017/", "/my-account/view-order-…/"),
            ("/invoices/invoice-123456789.pdf", "/invoices/invoice-….pdf"),
            ("/123456789/987654321", "/…/…"),
            ("/123456789-987654321a", "/…-…a"),
            ("/call/+49-30-123456", "/call/…"),
            ("/call/%2B49%2030%20123456", "/call/…"),
            ("/call/004930123456", "/call/…"),
            ("/c++/c+1", "/c++/c+1"),
            // The digits of octets are none of a number.
            ("/a%2012345678", "/a%2012345678"),
            ("/a%20123456789", "/a%20…"),
            ("/%", "/%"),
            ("/123456789%2", "/…%2"),
            // Names of files that are parts of pages.
            ("/uploads/2026/11/IMG_1234567890.JPG", "/uploads/2026/11/IMG_1234567890.JPG"),
            ("/assets/app.1234567890.js", "/assets/app.1234567890.js"),
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
            ("p=123456789", Parameter::Named("p")),
            ("123456789=1", Parameter::Hidden),
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

        #[test]
        fn no_long_number_is_shown(parts in prop::collection::vec("[0-9]{9,30}|[a-z/+-]{0,3}|[0-9]{0,4}|%[0-9A-F]{2}|é", 0..8)) {
            let sent = format!("/{}", parts.concat());
            let shown = path(&sent);
            // Without the octets, whose digits belong to no number.
            let mut octets = shown.split('%');
            let begin = octets.next().unwrap_or_default().to_owned();
            let rest: Vec<&str> = octets.map(|octet| octet.get(2..).unwrap_or_default()).collect();
            let runs = std::iter::once(&*begin).chain(rest).flat_map(|text| text.split(|c: char| !c.is_ascii_digit()));
            prop_assert!(runs.max_by_key(|run| run.len()).is_none_or(|run| run.len() < DIGITS_MIN), "{} of {}", shown, sent);
        }
    }
}
