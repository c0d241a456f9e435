//! SVG and other texts: what stands there in words stays, as its author can read it. Pictures within it, which drawing programs embed as `data:` URLs (RFC 2397), are
//! cleaned like others.

use std::{
    io::{Cursor, Read, Seek},
    ops::Range,
};

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use memchr::memmem;

use super::Scan;
use crate::{Fault, Format};

/// The largest drawing that is read.
const BYTES_MAX: u64 = 32 * 1024 * 1024;
/// The most bytes between `data:` and the data: the media type and its parameters.
const TYPE_BYTES_MAX: usize = 200;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent).with_decode_allow_trailing_bits(true),
);

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    if scan.bytes > BYTES_MAX {
        return Err(Fault::TooLong);
    }
    let content = scan.some(scan.bytes)?;
    // PDF and others begin with words, and say in what follows more than they show.
    if !super::is_text(&content) {
        return Err(Fault::Unknown);
    }
    let mut at = 0;
    for place in memmem::find_iter(&content, b"base64,") {
        let begin = place + b"base64,".len();
        let before = &content[place.saturating_sub(TYPE_BYTES_MAX)..place];
        let Some(kind) = before.windows(5).rposition(|bytes| bytes.eq_ignore_ascii_case(b"data:")) else { continue };
        let is_image = before[kind + 5..].trim_ascii_start().get(..6).is_some_and(|kind| kind.eq_ignore_ascii_case(b"image/"));
        let written = begin..begin + end_of_data(&content[begin..]);
        let is_whole = content.get(written.end).is_none_or(|end| b"\"')<>".contains(end));
        let Some(embedded) = decoded(&content[written.clone()]).filter(|_| is_whole) else {
            // It may be a font, say; a browser reads it in another way, or not at all.
            if is_image { return Err(unreadable()) } else { continue }
        };
        if !is_image && Format::of(&embedded).is_none() {
            continue;
        }
        let plan = super::clean(Cursor::new(&embedded))?;
        if !plan.is_whole(embedded.len() as u64) {
            scan.keep(range(at..written.start))?;
            scan.add(BASE64.encode(plan.of(&embedded)?).into_bytes())?;
            at = written.end;
        }
    }
    scan.keep(range(at..content.len()))
}

fn unreadable() -> Fault {
    Fault::damaged("a picture within it cannot be read")
}

/// Returns where data ends: at the first byte that cannot stand in it, a quotation mark or a bracket usually. A comma cannot either, so no byte is in the
/// data of two places.
fn end_of_data(rest: &[u8]) -> usize {
    let is_of_data = |byte: &u8| byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"+/=%&#;".contains(byte);
    rest.iter().position(|byte| !is_of_data(byte)).unwrap_or(rest.len())
}

/// Decodes data, in which there may be white space, and characters that are written as in addresses.
fn decoded(written: &[u8]) -> Option<Vec<u8>> {
    let mut digits = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'%' => {
                let (hex, behind) = behind.split_at_checked(2)?;
                let byte = u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?;
                if !byte.is_ascii_whitespace() {
                    digits.push(byte);
                }
                rest = behind;
            }
            // White space, as a character of XML: `&#10;`.
            b'&' => {
                let end = behind.iter().position(|&byte| byte == b';')?;
                [&b"#10"[..], b"#13", b"#9", b"#32", b"#xA", b"#xD", b"#xa", b"#xd", b"#x9", b"#x20"]
                    .contains(&&behind[..end])
                    .then_some(())?;
                rest = &behind[end + 1..];
            }
            byte if byte.is_ascii_whitespace() => {}
            byte => digits.push(byte),
        }
    }
    BASE64.decode(digits).ok()
}

fn range(places: Range<usize>) -> Range<u64> {
    places.start as u64..places.end as u64
}
