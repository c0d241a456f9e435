//! Finds where a response's content ends, and takes its bytes without their framing (RFC 9112 §6, §7.1). No sockets here.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode, Version, header::CONTENT_LENGTH, header::TRANSFER_ENCODING};

use semantics::request::has_any;

use crate::request::elements;

/// The longest line with a chunk's size and its extensions.
const SIZE_LINE_MAX: usize = 4096;
/// The longest trailer section, and its most lines. Trailers are not passed on (RFC 9110 §6.5.1), only read over.
const TRAILER_BYTES_MAX: usize = 16 * 1024;
const TRAILER_LINES_MAX: usize = 100;

/// The part of a response's content that is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// The number of bytes that are still to come.
    Length(u64),
    /// Chunks, and where in them we are.
    Chunked(Chunk),
    /// All that comes until the connection is closed.
    Close,
}

/// The part of chunked content that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    /// A line with a size.
    Size,
    /// Data: the number of its bytes that are still to come.
    Data(u64),
    /// The line end behind them.
    LineEnd,
    /// Trailers and the empty line.
    Trailers,
    /// Nothing comes any more.
    End,
}

/// The result of taking content off a buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ContentStep {
    /// Content.
    Data(Bytes),
    /// The content has ended.
    End,
    /// More has to be read.
    More,
}

impl Content {
    /// Finds how long a response's content is (RFC 9112 §6.3), by its transfer coding and the length that it says. That both are given is refused
    /// elsewhere, whatever the status.
    ///
    /// # Errors
    /// When it is not certain where the content ends.
    pub(super) fn of(
        method: &Method,
        (status, version): (StatusCode, Version),
        coding: Option<Coding>,
        length: Option<u64>,
    ) -> Result<Self, &'static str> {
        if *method == Method::HEAD || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return Ok(Self::Length(0));
        }
        match coding {
            Some(_) if version < Version::HTTP_11 => return Err("a transfer coding in HTTP/1.0"),
            Some(Coding::Chunked) => return Ok(Self::Chunked(Chunk::Size)),
            Some(Coding::Unknown) => return Ok(Self::Close),
            None => {}
        }
        Ok(length.map_or(Self::Close, Self::Length))
    }

    /// Returns whether nothing more is to come.
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunk::End))
    }

    /// Takes content off what has been read.
    ///
    /// # Errors
    /// When the framing is broken.
    pub(super) fn take(&mut self, buffer: &mut BytesMut) -> Result<ContentStep, &'static str> {
        match self {
            Self::Length(0) | Self::Chunked(Chunk::End) => Ok(ContentStep::End),
            Self::Length(left) => Ok(take_up_to(left, buffer)),
            Self::Close if buffer.is_empty() => Ok(ContentStep::More),
            Self::Close => Ok(ContentStep::Data(buffer.split().freeze())),
            Self::Chunked(chunk) => chunk.take(buffer),
        }
    }
}

impl Chunk {
    fn take(&mut self, buffer: &mut BytesMut) -> Result<ContentStep, &'static str> {
        loop {
            match self {
                Self::Size => match size_line(buffer)? {
                    Some((line, 0)) => {
                        drop(buffer.split_to(line));
                        *self = Self::Trailers;
                    }
                    Some((line, size)) => {
                        drop(buffer.split_to(line));
                        *self = Self::Data(size);
                    }
                    None => return Ok(ContentStep::More),
                },
                Self::Data(left) => {
                    let taken = take_up_to(left, buffer);
                    if *left == 0 {
                        *self = Self::LineEnd;
                    }
                    return Ok(taken);
                }
                Self::LineEnd => match buffer.get(..2) {
                    Some(b"\r\n") => {
                        drop(buffer.split_to(2));
                        *self = Self::Size;
                    }
                    Some(_) => return Err("a chunk longer than its size"),
                    None => return Ok(ContentStep::More),
                },
                Self::Trailers => match trailers(buffer)? {
                    Some(length) => {
                        drop(buffer.split_to(length));
                        *self = Self::End;
                    }
                    None => return Ok(ContentStep::More),
                },
                Self::End => return Ok(ContentStep::End),
            }
        }
    }
}

/// Brings `Content-Length` into its one form, and returns what it says; `None` if it is not there. The form is a single line with a number, without zeros before it. Whoever reads the response next need not
/// agree with us about any other (RFC 9110 §8.6), and over HTTP/2 a client breaks it off.
///
/// Holds for the answers to HEAD and for a 304, too: there it is the length of what is stored elsewhere.
///
/// # Errors
/// When it is not a number, or several that differ.
pub(crate) fn settle_length(fields: &mut HeaderMap) -> Result<Option<u64>, &'static str> {
    if !has_any(fields, &[CONTENT_LENGTH]) {
        return Ok(None);
    }
    let mut lines = fields.get_all(CONTENT_LENGTH).iter();
    if let (Some(only), None) = (lines.next(), lines.next())
        && let Some(length) = plain_length(only.as_bytes())
    {
        return Ok(Some(length));
    }
    let length = length_of(fields)?;
    if let Some(length) = length {
        fields.insert(CONTENT_LENGTH, length.into());
    }
    Ok(length)
}

/// Reads a length in its one form: digits alone, without zeros before it.
fn plain_length(line: &[u8]) -> Option<u64> {
    let digits = 1..=LENGTH_DIGITS;
    if !digits.contains(&line.len()) || (line.len() > 1 && line.first() == Some(&b'0')) {
        return None;
    }
    line.iter().try_fold(0, |length, digit| digit.is_ascii_digit().then(|| length * 10 + u64::from(digit - b'0')))
}

/// Digits of which any number of them is a length.
const LENGTH_DIGITS: usize = 19;

/// Returns what `Content-Length` says; `None` if it is not there.
fn length_of(fields: &HeaderMap) -> Result<Option<u64>, &'static str> {
    let mut lengths = fields.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lengths.next() else { return Ok(None) };
    let first = length(first.as_bytes())?;
    // The same one several times is still one (RFC 9110 §8.6).
    for other in lengths {
        if length(other.as_bytes())? != first {
            return Err("two lengths that differ");
        }
    }
    Ok(Some(first))
}

/// The transfer coding of a response, as `Transfer-Encoding` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// Chunks.
    Chunked,
    /// Names that stand for no coding: the content is what comes, up to the end of the connection.
    Unknown,
}

/// The registered codings but chunked, and their old names (RFC 9112 §7.2, §7.3).
const REGISTERED: [&str; 6] = ["compress", "deflate", "gzip", "trailers", "x-compress", "x-gzip"];

/// Returns the transfer coding of a response.
///
/// We send no `TE`, so no coding but chunked may come (RFC 9112 §7.4). Content under another registered one is refused, chunked or not:
/// its bytes are not the representation's, and whoever gets them without the field takes them for it. A name that the registry does not
/// have names no transformation that anybody could have agreed on or could undo: it can only be a slip of the origin's, and its bytes are
/// what it meant to send. They end with the connection (§6.3, rule 4), which is then of no further use, and go on in a framing of our
/// own without the field, which is for one connection (§6.1). A connection that breaks instead of being closed leaves them incomplete.
///
/// # Errors
/// When a length is given beside it (§6.1: two readers would see two messages), or when the coding cannot be taken off.
pub(super) fn transfer_coding(fields: &HeaderMap) -> Result<Option<Coding>, &'static str> {
    if !has_any(fields, &[TRANSFER_ENCODING]) {
        return Ok(None);
    }
    let mut lines = fields.get_all(TRANSFER_ENCODING).iter();
    let Some(first) = lines.next() else { return Ok(None) };
    if fields.contains_key(CONTENT_LENGTH) {
        return Err("both Transfer-Encoding and Content-Length (RFC 9112 §6.1)");
    }
    if first.as_bytes().eq_ignore_ascii_case(b"chunked") && lines.next().is_none() {
        return Ok(Some(Coding::Chunked));
    }
    let mut named = false;
    for line in fields.get_all(TRANSFER_ENCODING) {
        // What cannot be read may be anything.
        let line = line.to_str().map_err(|_| "a transfer coding that is not a name")?;
        for member in elements(line.as_bytes()) {
            let name = member.split(';').next().unwrap_or_default().trim();
            if name.eq_ignore_ascii_case("chunked") || REGISTERED.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                return Err("a transfer coding other than chunked");
            }
            if !is_token(name) {
                return Err("a transfer coding that is not a name");
            }
            named = true;
        }
    }
    if named { Ok(Some(Coding::Unknown)) } else { Err("an empty Transfer-Encoding") }
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn take_up_to(left: &mut u64, buffer: &mut BytesMut) -> ContentStep {
    if buffer.is_empty() {
        return ContentStep::More;
    }
    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
    *left -= length as u64;
    ContentStep::Data(buffer.split_to(length).freeze())
}

/// Returns the length of a chunk's first line with its end, and the size in it. Extensions mean nothing to us (RFC 9112 §7.1.1).
fn size_line(bytes: &[u8]) -> Result<Option<(usize, u64)>, &'static str> {
    let Some(end) = bytes.iter().take(SIZE_LINE_MAX).position(|&b| b == b'\n') else {
        // What cannot become a size need not be waited for.
        let impossible = bytes.first().is_some_and(|b| !b.is_ascii_hexdigit());
        return if impossible || bytes.len() >= SIZE_LINE_MAX { Err("malformed chunk size") } else { Ok(None) };
    };
    let line = bytes[..end].strip_suffix(b"\r").ok_or("a bare line feed in a chunk size")?;
    if line.contains(&b'\r') {
        return Err("a bare carriage return in a chunk size");
    }
    let digits = line.iter().position(|b| !b.is_ascii_hexdigit()).unwrap_or(line.len());
    let rest = line[digits..].trim_ascii_start();
    if digits == 0 || !(rest.is_empty() || rest[0] == b';') {
        return Err("malformed chunk size");
    }
    let text = std::str::from_utf8(&line[..digits]).map_err(|_| "malformed chunk size")?;
    let size = u64::from_str_radix(text, 16).map_err(|_| "a chunk size beyond 64 bits")?;
    Ok(Some((end + 1, size)))
}

/// Returns the length of the trailer section with its empty line.
fn trailers(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    if bytes.starts_with(b"\r\n") {
        return Ok(Some(2));
    }
    match httparse::parse_headers(bytes, &mut [httparse::EMPTY_HEADER; TRAILER_LINES_MAX]) {
        Ok(httparse::Status::Complete((length, _))) if length <= TRAILER_BYTES_MAX => Ok(Some(length)),
        Ok(httparse::Status::Partial) if bytes.len() < TRAILER_BYTES_MAX => Ok(None),
        Ok(_) => Err("more trailers than allowed"),
        Err(_) => Err("malformed trailers"),
    }
}

/// Reads one line of `Content-Length`: digits, or the same digits several times over (RFC 9110 §8.6).
fn length(value: &[u8]) -> Result<u64, &'static str> {
    let mut length = None;
    for member in value.split(|&b| b == b',') {
        let digits = member.trim_ascii();
        // Digits only: `parse` alone would take a sign.
        let number = std::str::from_utf8(digits).ok().filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
        let number = number.and_then(|text| text.parse().ok()).ok_or("malformed Content-Length")?;
        if *length.get_or_insert(number) != number {
            return Err("two lengths that differ");
        }
    }
    length.ok_or("malformed Content-Length")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Returns all that `content` yields from `bytes`, read in pieces of `step`, and how it ended: `None` if more is needed.
    fn read(mut content: Content, bytes: &[u8], step: usize) -> (Vec<u8>, Option<Result<usize, &'static str>>) {
        let (mut buffer, mut data) = (BytesMut::new(), Vec::new());
        let mut pieces = bytes.chunks(step);
        loop {
            match content.take(&mut buffer) {
                Ok(ContentStep::Data(piece)) => data.extend_from_slice(&piece),
                Ok(ContentStep::End) => return (data, Some(Ok(buffer.len() + pieces.map(<[u8]>::len).sum::<usize>()))),
                Ok(ContentStep::More) => match pieces.next() {
                    Some(piece) => buffer.extend_from_slice(piece),
                    None => return (data, None),
                },
                Err(why) => return (data, Some(Err(why))),
            }
        }
    }

    #[test]
    fn content_ends_where_its_framing_says_however_it_arrives() {
        const CHUNKED: Content = Content::Chunked(Chunk::Size);
        for (content, bytes, data, left) in [
            (Content::Length(5), "hello", "hello", Some(0)),
            (Content::Length(5), "hello, and more", "hello", Some(10)),
            (Content::Length(0), "x", "", Some(1)),
            (Content::Length(6), "hello", "hello", None),
            (Content::Close, "hello", "hello", None),
            (CHUNKED, "5\r\nhello\r\n0\r\n\r\n", "hello", Some(0)),
            (CHUNKED, "5\r\nhello\r\n0\r\n\r\nmore", "hello", Some(4)),
            (CHUNKED, "2;a=\"b\"\r\nhe\r\n3 \t;c\r\nllo\r\n000\r\n\r\n", "hello", Some(0)),
            (CHUNKED, "A\r\n0123456789\r\n0\r\nx-a: b\r\nx-c: d\r\n\r\n", "0123456789", Some(0)),
            (CHUNKED, "5\r\nhello\r\n0\r\n", "hello", None),
            (CHUNKED, "5\r\nhel", "hel", None),
            (CHUNKED, "", "", None),
        ] {
            for step in [1, 2, 3, 100] {
                assert_eq!(read(content, bytes.as_bytes(), step), (data.as_bytes().to_vec(), left.map(Ok)), "{bytes:?} by {step}");
            }
        }
    }

    #[test]
    fn broken_chunks_are_refused() {
        let long_extension = format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(SIZE_LINE_MAX));
        let many_trailers = format!("0\r\n{}\r\n", "x: y\r\n".repeat(TRAILER_LINES_MAX + 1));
        let long_trailer = format!("0\r\nx: {}\r\n\r\n", "y".repeat(TRAILER_BYTES_MAX));
        for bytes in [
            "five\r\nhello",
            "-5\r\nhello",
            "\r\nhello",
            ";a\r\nhello",
            "5 5\r\nhello",
            "5\nhello\r\n0\r\n\r\n",
            "5\r;\r\nhello\r\n0\r\n\r\n",
            "10000000000000005\r\nhello",
            "5\r\nhello0\r\n\r\n",
            "0\r\nno colon\r\n\r\n",
            &long_extension,
            &many_trailers,
            &long_trailer,
        ] {
            for step in [1, 7, usize::MAX] {
                let (_, end) = read(Content::Chunked(Chunk::Size), bytes.as_bytes(), step.min(bytes.len()));
                assert!(matches!(end, Some(Err(_))), "{:?} by {step}: {end:?}", &bytes[..bytes.len().min(40)]);
            }
        }
    }

    #[test]
    fn the_head_says_where_the_content_ends() {
        const CHUNKED: Result<Content, ()> = Ok(Content::Chunked(Chunk::Size));
        let length = |n| Ok(Content::Length(n));
        for (method, status, version, fields, expected) in [
            (Method::GET, 200, Version::HTTP_11, &[("content-length", "5")][..], length(5)),
            (Method::GET, 200, Version::HTTP_11, &[("content-length", "5"), ("content-length", "5")], length(5)),
            (Method::GET, 200, Version::HTTP_11, &[("content-length", "5, 5")], length(5)),
            (Method::GET, 200, Version::HTTP_11, &[("content-length", "5"), ("content-length", "6")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[("content-length", "+5")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[("content-length", "")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[("content-length", "5,")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[("content-length", "18446744073709551616")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[("transfer-encoding", "chunked")], CHUNKED),
            (Method::GET, 200, Version::HTTP_10, &[("transfer-encoding", "chunked")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[("transfer-encoding", "x-own")], Ok(Content::Close)),
            (Method::GET, 200, Version::HTTP_11, &[("transfer-encoding", "x-own; q=1"), ("transfer-encoding", "abc")], Ok(Content::Close)),
            (Method::GET, 200, Version::HTTP_11, &[("transfer-encoding", "x-own"), ("content-length", "5")], Err(())),
            (Method::GET, 200, Version::HTTP_10, &[("transfer-encoding", "x-own")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[("transfer-encoding", "chunked, x-own")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[("transfer-encoding", "x-own, chunked")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[("transfer-encoding", "x-own, GZIP")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[("transfer-encoding", "x own")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[("transfer-encoding", ",")], Err(())),
            (Method::GET, 200, Version::HTTP_11, &[], Ok(Content::Close)),
            (Method::HEAD, 200, Version::HTTP_11, &[("content-length", "5")], length(0)),
            (Method::HEAD, 200, Version::HTTP_11, &[("transfer-encoding", "chunked")], length(0)),
            (Method::GET, 204, Version::HTTP_11, &[("content-length", "5")], length(0)),
            (Method::GET, 304, Version::HTTP_11, &[("content-length", "5")], length(0)),
            (Method::GET, 205, Version::HTTP_11, &[("content-length", "0")], length(0)),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in fields {
                map.append(*name, HeaderValue::from_static(value));
            }
            let status = StatusCode::from_u16(status).expect("a status");
            let said = transfer_coding(&map).and_then(|coding| Ok((coding, settle_length(&mut map)?)));
            let content = said.and_then(|(coding, length)| Content::of(&method, (status, version), coding, length));
            assert_eq!(content.map_err(drop), expected, "{method} {status} {fields:?}");
        }
    }

    /// RFC 9110 §8.6.
    #[test]
    fn a_length_has_one_form() {
        for (lines, expected) in [
            (&["5"][..], Ok("5")),
            (&["0"], Ok("0")),
            (&["000"], Ok("0")),
            (&["5, 5"], Ok("5")),
            (&["5,5 ,\t05"], Ok("5")),
            (&["05", "5"], Ok("5")),
            (&["0000000000000000000000018446744073709551615"], Ok("18446744073709551615")),
            (&["18446744073709551616"], Err(())),
            (&["5", "6"], Err(())),
            (&["5, 6"], Err(())),
            (&["5,"], Err(())),
            (&[",5"], Err(())),
            (&["5,,5"], Err(())),
            (&[""], Err(())),
            (&["+5"], Err(())),
            (&["-0"], Err(())),
            (&["5 5"], Err(())),
            (&["0x5"], Err(())),
        ] {
            let mut fields = HeaderMap::new();
            for line in lines {
                fields.append(CONTENT_LENGTH, HeaderValue::from_static(line));
            }
            let settled = settle_length(&mut fields).map_err(drop);
            let left: Vec<_> = fields.get_all(CONTENT_LENGTH).iter().map(HeaderValue::as_bytes).collect();
            match expected {
                Ok(length) => assert_eq!((settled, left), (Ok(length.parse().ok()), vec![length.as_bytes()]), "{lines:?}"),
                Err(()) => assert_eq!(settled, Err(()), "{lines:?}"),
            }
        }
        assert_eq!(settle_length(&mut HeaderMap::new()), Ok(None));
    }
}
