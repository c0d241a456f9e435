//! Reads responses (RFC 9112 §6), however they are cut into pieces.
//!
//! A response that comes in one piece is read where it lies. Of one that comes in several, the head is kept until the end, and the content only if
//! somebody wants it.

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::chunked::Chunks;
use crate::{
    answer::{Answer, Field, content_length},
    requests::WANTED_MAX,
};

/// The longest head.
const HEAD_MAX: usize = 64 << 10;

/// The most fields of a head.
const FIELDS_MAX: usize = 128;

/// The most memory that a connection keeps from one response to the next.
const KEPT_BETWEEN_MAX: usize = 4 << 10;

/// What came is not a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Says how far a content goes.
#[derive(Debug, Clone, Copy)]
enum Content {
    /// There are so many bytes more.
    Length(u64),
    /// It comes in chunks.
    Chunks(Chunks),
    /// It ends with the connection.
    UntilClose,
}

/// Holds what is known of the request whose response is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Whether its method is `HEAD`: then there is no content.
    pub(super) head: bool,
    /// Whether the content is wanted.
    pub(super) content: bool,
}

/// A whole response.
#[derive(Debug)]
pub(super) struct Whole<'a> {
    /// The answer itself.
    pub(super) answer: Answer<'a>,
    /// The bytes of the answer on the connection, with those of interim responses before it.
    pub(super) bytes: u64,
    /// Whether the connection can be used for another request.
    pub(super) keeps: bool,
}

/// Says how far reading has come.
#[derive(Debug)]
pub(super) enum Progress<R> {
    /// All was read, and the response goes on.
    Incomplete,
    /// The response is whole.
    Whole {
        /// The number of bytes that it took; behind them is the next response.
        used: usize,
        /// The result of what was done with it.
        done: R,
    },
}

/// Says what the end of a connection means for the response that is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Closed<R> {
    /// Nothing of the response has come.
    Before,
    /// It ends here.
    Whole(R),
    /// It has begun, and should go on.
    Within,
}

/// A head, parsed.
struct Head<'a> {
    status: u16,
    length: usize,
    content: Content,
    keeps: bool,
    fields: SmallVec<[Field<'a>; 32]>,
}

/// Reads the responses of one connection.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// A head that is not complete, or the head of the response whose content is being read.
    head: Vec<u8>,
    /// The content, if it is wanted.
    content: Vec<u8>,
    /// The rest of the content; none: the head is being read.
    left: Option<Content>,
    bytes: u64,
}

impl Reader {
    /// Returns how much of the response that is being read has come.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads on. `end` is told of the response when it is whole.
    pub(super) fn read<R>(
        &mut self,
        mut bytes: &[u8],
        expected: Expected,
        end: impl FnOnce(&Whole<'_>) -> R,
    ) -> Result<Progress<R>, Malformed> {
        let given = bytes.len();
        loop {
            if self.left.is_some() {
                return self.read_content(bytes, given, expected, end);
            }
            if bytes.is_empty() {
                return Ok(Progress::Incomplete);
            }
            if !self.head.is_empty() {
                let before = self.head.len();
                self.head.extend_from_slice(bytes);
                let Some(head) = parse(&self.head, expected)? else {
                    self.bytes += bytes.len() as u64;
                    return Ok(Progress::Incomplete);
                };
                let (length, interim, content) = (head.length, is_interim(head.status), head.content);
                drop(head);
                // At most what was there before was incomplete, so the head ends in what came now.
                let used = length.checked_sub(before).ok_or(Malformed)?;
                bytes = &bytes[used..];
                self.bytes += used as u64;
                self.head.truncate(length);
                if interim {
                    self.head.clear();
                } else {
                    self.left = Some(content);
                }
                continue;
            }
            let Some(head) = parse(bytes, expected)? else {
                self.head.extend_from_slice(bytes);
                self.bytes += bytes.len() as u64;
                return Ok(Progress::Incomplete);
            };
            self.bytes += head.length as u64;
            if is_interim(head.status) {
                bytes = &bytes[head.length..];
                continue;
            }
            // The usual case: all is here, and nothing is copied.
            if let Content::Length(length) = head.content
                && let Ok(length) = usize::try_from(length)
                && let Some(content) = bytes[head.length..].get(..length)
            {
                let used = given - bytes.len() + head.length + length;
                let bytes = self.bytes + length as u64;
                self.bytes = 0;
                let answer = Answer {
                    status: head.status,
                    fields: &head.fields,
                    body: expected.content.then_some(&content[..length.min(WANTED_MAX)]),
                };
                return Ok(Progress::Whole { used, done: end(&Whole { answer, bytes, keeps: head.keeps }) });
            }
            self.head.extend_from_slice(&bytes[..head.length]);
            self.left = Some(head.content);
            bytes = &bytes[head.length..];
        }
    }

    fn read_content<R>(
        &mut self,
        bytes: &[u8],
        given: usize,
        expected: Expected,
        end: impl FnOnce(&Whole<'_>) -> R,
    ) -> Result<Progress<R>, Malformed> {
        let content = &mut self.content;
        let mut keep = |piece: &[u8]| {
            if expected.content {
                content.extend_from_slice(&piece[..piece.len().min(WANTED_MAX - content.len())]);
            }
        };
        let (used, ended) = match &mut self.left {
            Some(Content::Length(left)) => {
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                keep(&bytes[..length]);
                *left -= length as u64;
                (length, *left == 0)
            }
            Some(Content::Chunks(chunks)) => chunks.read(bytes, keep)?,
            Some(Content::UntilClose) | None => {
                keep(bytes);
                (bytes.len(), false)
            }
        };
        self.bytes += used as u64;
        if !ended {
            return Ok(Progress::Incomplete);
        }
        Ok(Progress::Whole { used: given - bytes.len() + used, done: self.finish(expected, end)? })
    }

    /// Ends the response whose head was kept.
    fn finish<R>(&mut self, expected: Expected, end: impl FnOnce(&Whole<'_>) -> R) -> Result<R, Malformed> {
        let head = parse(&self.head, expected)?.ok_or(Malformed)?;
        let answer = Answer { status: head.status, fields: &head.fields, body: expected.content.then_some(&self.content) };
        let done = end(&Whole { answer, bytes: self.bytes, keeps: head.keeps });
        drop(head);
        self.begin();
        Ok(done)
    }

    /// Takes note that the connection has ended in good order.
    pub(super) fn closed<R>(&mut self, expected: Expected, end: impl FnOnce(&Whole<'_>) -> R) -> Closed<R> {
        match self.left {
            Some(Content::UntilClose) => self.finish(expected, end).map_or(Closed::Within, Closed::Whole),
            None if self.bytes == 0 => Closed::Before,
            Some(_) | None => Closed::Within,
        }
    }

    /// Prepares for the next response.
    fn begin(&mut self) {
        self.head.clear();
        self.content.clear();
        for kept in [&mut self.head, &mut self.content] {
            if kept.capacity() > KEPT_BETWEEN_MAX {
                *kept = Vec::new();
            }
        }
        self.left = None;
        self.bytes = 0;
    }
}

/// Returns whether another response to the same request follows (RFC 9110 §15.2).
const fn is_interim(status: u16) -> bool {
    status >= 100 && status < 200
}

/// Parses a head; none: it is not complete.
fn parse(bytes: &[u8], expected: Expected) -> Result<Option<Head<'_>>, Malformed> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut []);
    let length = match httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut head, bytes, &mut fields) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_MAX => length,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_MAX => return Ok(None),
        Ok(_) | Err(_) => return Err(Malformed),
    };
    // A status has three digits, the first of which says its class (RFC 9110 §15). Nobody has asked for another protocol (101, §15.2.2).
    let (Some(status @ (100 | 102..)), Some(version)) = (head.code, head.version) else { return Err(Malformed) };
    let mut keeps = version == 1;
    let mut length_said: Option<u64> = None;
    let mut coded = None;
    let mut fields = SmallVec::<[Field<'_>; 32]>::new();
    for field in head.headers.iter() {
        let (name, value) = (field.name.as_bytes(), field.value);
        fields.push((name, value));
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = content_length(value).ok_or(Malformed)?;
                if length_said.is_some_and(|said| said != length) {
                    return Err(Malformed);
                }
                length_said = Some(length);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
                coded = Some(last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    if option.eq_ignore_ascii_case(b"close") {
                        keeps = false;
                    } else if version == 0 && option.eq_ignore_ascii_case(b"keep-alive") {
                        keeps = true;
                    }
                }
            }
            _ => {}
        }
    }
    let content = match (expected.head || matches!(status, 100..200 | 204 | 304), coded, length_said) {
        (true, ..) => Content::Length(0),
        (false, Some(true), _) => Content::Chunks(Chunks::new()),
        (false, None, Some(length)) => Content::Length(length),
        (false, Some(false), _) | (false, None, None) => Content::UntilClose,
    };
    keeps &= !matches!(content, Content::UntilClose);
    Ok(Some(Head { status, length, content, keeps, fields }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_below_100_is_no_http() {
        for (status, is_http) in [("000", false), ("001", false), ("099", false), ("100", true), ("200", true), ("999", true)] {
            let bytes = format!("HTTP/1.1 {status} OK\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(parse(bytes.as_bytes(), Expected { head: false, content: false }).is_ok(), is_http, "{status}");
        }
    }
}
