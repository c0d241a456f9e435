//! A head without the lines on which no answer rests.
//!
//! No two browsers send the same head, and yet most of what they send is the same question: they differ in what they are called, in their
//! language and in the page that they come from ([`INCIDENTAL_FIELDS`]). What is left of a head without those lines comes again and again,
//! and is remembered as whole heads are.
//!
//! A line that is left out must be one that the parser would have let through. All of them are looked at here: the name is one of the list,
//! letter by letter, a colon follows at once, and there is no control character in the whole head but the line ends. Everything else stays in
//! what is compared, so it was judged when it came first. Whatever is not so plain is read as always.
//!
//! [`INCIDENTAL_FIELDS`]: semantics::request::INCIDENTAL_FIELDS

use crate::limits::{FIELDS_CEILING, HeadLimits};

/// The length of the longest head whose essentials are looked for: what is in longer ones is rarely the same twice.
const HEAD_MAX: usize = 4096;

/// Holds what a head says beside its essential lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incidentals<'h> {
    /// The length of the whole head in bytes, with the empty line.
    pub head_len: usize,
    /// The value of `Referer`, or nothing.
    pub referer: &'h [u8],
    /// The value of `User-Agent`, or nothing.
    pub user_agent: &'h [u8],
}

/// Writes the lines of the head at the start of `bytes` that may matter to `out`, each with its end but without the empty line, so that they are
/// no head of themselves. `None` if the head is not whole, not plain, or has no other lines.
#[must_use]
pub fn essentials<'h>(bytes: &'h [u8], limits: &HeadLimits, out: &mut Vec<u8>) -> Option<Incidentals<'h>> {
    out.clear();
    let bytes = bytes.get(..HEAD_MAX).unwrap_or(bytes);
    let (mut referer, mut user_agent) = (None, None);
    // The lines that have not been looked at, and those that are to be copied with what follows them.
    let mut rest = bytes.get(line_end(bytes, 0)?..)?;
    let mut kept = bytes;
    let mut fields = 0;
    while !rest.starts_with(b"\r\n") {
        fields += 1;
        let Some((field, name_len)) = incidental(rest) else {
            if is_logged(rest) {
                return None;
            }
            rest = &rest[line_end(rest, 0)?..];
            continue;
        };
        copy_before(kept, rest, out);
        let end = line_end(rest, name_len)?;
        let told = match field {
            Incidental::Referer => Some(&mut referer),
            Incidental::UserAgent => Some(&mut user_agent),
            Incidental::Other => None,
        };
        if let Some(told) = told
            && told.replace(rest[name_len..end].trim_ascii()).is_some()
        {
            // The log says nothing of a field that is there twice.
            return None;
        }
        rest = &rest[end..];
        kept = rest;
    }
    copy_before(kept, rest, out);
    let lines_len = bytes.len() - rest.len();
    let head_len = lines_len + 2;
    let sound =
        lines_len > 2 && fields <= limits.header_fields.min(FIELDS_CEILING) && head_len <= limits.header_bytes && out.len() < lines_len;
    sound.then(|| Incidentals { head_len, referer: referer.unwrap_or_default(), user_agent: user_agent.unwrap_or_default() })
}

/// Copies what stands in `from` before `rest`, its end.
fn copy_before(from: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    if from.len() > rest.len() {
        out.extend_from_slice(&from[..from.len() - rest.len()]);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Incidental {
    Referer,
    UserAgent,
    Other,
}

/// Tells which of the incidental fields the line has that `rest` begins with, and how long its name is with the colon.
///
/// In the spellings in which browsers send them over HTTP/1.1 and over HTTP/2: comparing with a constant takes a few instructions. The first letter says
/// which of the two it can be.
#[inline(always)]
fn incidental(rest: &[u8]) -> Option<(Incidental, usize)> {
    #[inline(always)]
    fn is<const N: usize>(rest: &[u8], field: Incidental, usual: &[u8; N], small: &[u8; N]) -> Option<(Incidental, usize)> {
        let begin = rest.first_chunk::<N>()?;
        let is = if begin[0].is_ascii_lowercase() { begin == small } else { begin == usual };
        is.then_some((field, N))
    }
    #[inline(always)]
    fn other<const N: usize>(rest: &[u8], usual: &[u8; N], small: &[u8; N]) -> Option<(Incidental, usize)> {
        is(rest, Incidental::Other, usual, small)
    }
    match rest.first()? | 0x20 {
        b'a' => other(rest, b"Accept-Language:", b"accept-language:"),
        b'd' => other(rest, b"DNT:", b"dnt:"),
        b'r' => is(rest, Incidental::Referer, b"Referer:", b"referer:"),
        b's' => match rest.get(4)? | 0x20 {
            b'c' => match (rest.get(9)?, rest.get(10)? | 0x20) {
                (b':', _) => other(rest, b"Sec-CH-UA:", b"sec-ch-ua:"),
                (b'-', b'm') => other(rest, b"Sec-CH-UA-Mobile:", b"sec-ch-ua-mobile:"),
                (b'-', b'p') => other(rest, b"Sec-CH-UA-Platform:", b"sec-ch-ua-platform:"),
                _ => None,
            },
            b'f' => match rest.get(10)? | 0x20 {
                b'd' => other(rest, b"Sec-Fetch-Dest:", b"sec-fetch-dest:"),
                b'm' => other(rest, b"Sec-Fetch-Mode:", b"sec-fetch-mode:"),
                b's' => other(rest, b"Sec-Fetch-Site:", b"sec-fetch-site:"),
                b'u' => other(rest, b"Sec-Fetch-User:", b"sec-fetch-user:"),
                _ => None,
            },
            b'g' => other(rest, b"Sec-GPC:", b"sec-gpc:"),
            _ => None,
        },
        b'u' => match rest.get(1)? | 0x20 {
            b's' => is(rest, Incidental::UserAgent, b"User-Agent:", b"user-agent:"),
            b'p' => other(rest, b"Upgrade-Insecure-Requests:", b"upgrade-insecure-requests:"),
            _ => None,
        },
        _ => None,
    }
}

/// Tells whether the log wants to know what a line says that is not in one of the usual spellings.
fn is_logged(line: &[u8]) -> bool {
    let is = |name: &[u8]| line.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    matches!(line.first(), Some(b'R' | b'r' | b'U' | b'u')) && (is(b"referer") || is(b"user-agent"))
}

/// The bytes that are looked at together. The compiler makes a few vector instructions of what is done with each of them.
const BLOCK: usize = 16;

/// Finds where the line ends that `rest` begins with, and in which there is no control character from `from` on.
#[inline(always)]
fn line_end(rest: &[u8], from: usize) -> Option<usize> {
    let end = first_control(rest, from)?;
    rest[end..].starts_with(b"\r\n").then_some(end + 2)
}

/// Finds the first control character at or behind `from`.
#[inline(always)]
fn first_control(bytes: &[u8], from: usize) -> Option<usize> {
    let is_control = |b: u8| (b < 0x20) | (b == 0x7f);
    let mut rest = bytes.get(from..)?;
    while let Some((block, behind)) = rest.split_first_chunk::<BLOCK>() {
        if block.iter().fold(false, |found, &b| found | is_control(b)) {
            // A byte that is 0xff for each control character, the first in the lowest place.
            let mut marks = [0; BLOCK];
            for (mark, &b) in marks.iter_mut().zip(block) {
                *mark = if is_control(b) { 0xff } else { 0 };
            }
            return Some(bytes.len() - rest.len() + u128::from_le_bytes(marks).trailing_zeros() as usize / 8);
        }
        rest = behind;
    }
    Some(bytes.len() - rest.len() + rest.iter().position(|&b| is_control(b))?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use semantics::{
        FieldLines, RequestFields,
        request::{INCIDENTAL_FIELDS, Slot},
    };

    use super::*;
    use crate::head::{Parsed, field_table, parse};

    /// A head may have as many lines as the limits allow, and no more, wherever they stand.
    #[test]
    fn lines_that_are_left_out_count() {
        let limits = HeadLimits { header_fields: 5, ..HeadLimits::default() };
        let mut out = Vec::new();
        let head = |fields: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "DNT: 1\r\n".repeat(fields - 1));
        assert!(essentials(head(5).as_bytes(), &limits, &mut out).is_some());
        assert!(essentials(head(6).as_bytes(), &limits, &mut out).is_none());
    }

    /// A list of the fields stands where decisions are made, the spellings here.
    #[test]
    fn every_incidental_field_is_known_here() {
        for name in INCIDENTAL_FIELDS {
            let (head, mut out) = (format!("GET / HTTP/1.1\r\nHost: a\r\n{name}: x\r\n\r\n"), Vec::new());
            assert!(essentials(head.as_bytes(), &HeadLimits::default(), &mut out).is_some(), "{name}");
            assert_eq!(out, b"GET / HTTP/1.1\r\nHost: a\r\n", "{name}");
        }
    }

    #[test]
    fn the_first_control_character_is_found_wherever_it_stands() {
        for byte in 0..=255_u8 {
            for length in [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK] {
                for at in 0..length {
                    let mut bytes = vec![b'a'; length];
                    bytes[at] = byte;
                    // No second one is taken for the first.
                    bytes[length - 1] = if at + 1 == length { byte } else { b'\r' };
                    for from in 0..=length {
                        let expected = (from..length).find(|&at| bytes[at].is_ascii_control());
                        assert_eq!(first_control(&bytes, from), expected, "{byte} at {at} of {length} from {from}");
                    }
                }
            }
        }
    }

    proptest! {
        /// What is left out, the parser would have let through, and read as it is read here; and it reads the rest as if it were all.
        #[test]
        fn nothing_is_left_out_that_the_parser_refuses(
            lines in prop::collection::vec(
                prop_oneof![
                    4 => (prop::sample::select(&INCIDENTAL_FIELDS[..]), "[ -~]{0,12}").prop_map(|(name, value)| format!("{name}:{value}\r\n")),
                    3 => (prop::sample::select(vec!["Host", "Accept", "cookie", "Content-Length", "Transfer-Encoding", "X-A"]), "[ -~]{0,8}")
                        .prop_map(|(name, value)| format!("{name}: {value}\r\n")),
                    1 => "[A-Za-z: \t\r\n\\x00-]{0,10}".prop_map(|text| text + "\r\n"),
                    1 => ("[Uu]ser-[Aa]gent", "[ :]{1,2}", "[\\x00-\\xff]{0,6}").prop_map(|(name, colon, value)| format!("{name}{colon}{value}\r\n")),
                ],
                0..8,
            ),
            behind in "[A-Z /\r\n]{0,4}",
        ) {
            let limits = HeadLimits::default();
            let text = format!("GET /a HTTP/1.1\r\nHost: a\r\n{}\r\n{behind}", lines.concat());
            let mut out = Vec::new();
            if let Some(incidentals) = essentials(text.as_bytes(), &limits, &mut out) {
                out.extend_from_slice(b"\r\n");
                let (mut table, mut rest_table) = (field_table(), field_table());
                let whole = parse(text.as_bytes(), &mut table, "", &limits);
                match parse(&out, &mut rest_table, "", &limits) {
                    Ok(Parsed::Complete(rest, rest_fields)) => {
                        let Ok(Parsed::Complete(head, fields)) = whole else { panic!("refused: {text:?}: {whole:?}") };
                        prop_assert_eq!(head.len, incidentals.head_len);
                        prop_assert_eq!(rest.len, out.len());
                        prop_assert_eq!((head.method, head.target, head.authority, head.minor_version), (rest.method, rest.target, rest.authority, rest.minor_version));
                        prop_assert_eq!((head.framing, head.keep_alive, head.negotiates), (rest.framing, rest.keep_alive, rest.negotiates));
                        let value = |slot: Slot<'_>| slot.one().unwrap_or_default().to_vec();
                        prop_assert_eq!(value(fields.user_agent), incidentals.user_agent);
                        prop_assert_eq!(value(fields.referer), incidentals.referer);
                        let names = |fields: &RequestFields<'_>| match fields.lines {
                            FieldLines::Raw(lines) => lines.iter().map(|line| (line.name.to_owned(), line.value.to_vec())).collect::<Vec<_>>(),
                            FieldLines::Map(_) => Vec::new(),
                        };
                        let mut kept = names(&fields);
                        kept.retain(|(name, _)| !INCIDENTAL_FIELDS.contains(&&*name.to_ascii_lowercase()) );
                        let mut rest = names(&rest_fields);
                        rest.retain(|(name, _)| !INCIDENTAL_FIELDS.contains(&&*name.to_ascii_lowercase()) );
                        prop_assert_eq!(kept, rest);
                    }
                    Ok(Parsed::Partial) => prop_assert!(false, "half a head: {text:?}"),
                    Err(_) => prop_assert!(whole.is_err(), "let through with the lines: {text:?}"),
                }
            }
        }
    }
}
