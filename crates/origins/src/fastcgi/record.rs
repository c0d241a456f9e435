//! Records: the frames of FastCGI. Written whole, read in pieces.
//!
//! A connection carries one request at a time, under the number 1: no server in use does more, and one that died would take all requests of a
//! connection with it. No sockets here.

use bytes::{BufMut, Bytes, BytesMut};

/// The bytes before a record's content.
pub const HEADER_BYTES: usize = 8;
/// The most content of one record: its length has 16 bits.
pub const CONTENT_BYTES_MAX: usize = 65_535;

const VERSION: u8 = 1;
/// The number of every request. Management records have 0.
const REQUEST: u16 = 1;
const END_BYTES: usize = 8;
/// The longest answer to [`write_question`]: values for three names. php-fpm sends less than a hundred bytes.
const VALUES_BYTES_MAX: usize = 1024;

/// The types of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Begin = 1,
    End = 3,
    Params = 4,
    Stdin = 5,
    Stdout = 6,
    Stderr = 7,
    GetValues = 9,
    GetValuesResult = 10,
    Unknown = 11,
}

/// Writes the head of a record with `content_bytes` of content, which is at most [`CONTENT_BYTES_MAX`].
pub(super) fn header(kind: Kind, content_bytes: usize) -> [u8; HEADER_BYTES] {
    let id = if kind == Kind::GetValues { 0 } else { REQUEST };
    let [id_high, id_low] = id.to_be_bytes();
    let length = u16::try_from(content_bytes).expect("whoever writes a record keeps to CONTENT_BYTES_MAX");
    let [length_high, length_low] = length.to_be_bytes();
    [VERSION, kind as u8, id_high, id_low, length_high, length_low, 0, 0]
}

/// Writes the record that begins a request: the role of a responder, on a connection that we close.
pub(super) fn write_begin(out: &mut Vec<u8>) {
    const RESPONDER_KEPT: [u8; 8] = [0, 1, 1, 0, 0, 0, 0, 0];
    out.extend_from_slice(&header(Kind::Begin, RESPONDER_KEPT.len()));
    out.extend_from_slice(&RESPONDER_KEPT);
}

/// Writes a question that every server answers as soon as it reads the next record: how many connections it takes.
pub(super) fn write_question(out: &mut impl BufMut) {
    const MAX_CONNS: &[u8] = b"\x0e\x00FCGI_MAX_CONNS";
    out.put_slice(&header(Kind::GetValues, MAX_CONNS.len()));
    out.put_slice(MAX_CONNS);
}

/// A piece of what a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of the response. They come as they are read: a long record is not waited for.
    Output(Bytes),
    /// Bytes of messages for the log.
    Messages(Bytes),
    /// The request has ended: with the program's exit status, and whether the server carried it out.
    End(u32, Verdict),
    /// The answer to a question between requests.
    Values,
}

/// A server's word on what became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was carried out.
    Complete,
    /// The server has no room for it.
    Overloaded,
    /// The server does not do such things.
    Refused,
}

/// A reader of records.
#[derive(Debug, Default)]
pub struct Records {
    position: Position,
    /// Whether the output of the request under way has ended: an empty record ends a stream.
    has_ended: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The reader is before a record.
    #[default]
    Header,
    /// The reader is in a record's content, of which so many bytes are still to come, and then so many of padding.
    Content(RecordType, usize, usize),
    Padding(usize),
}

/// A type of record that a server may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordType {
    Output,
    Messages,
    End,
    Values,
}

impl Records {
    /// Returns whether what was taken ends with a whole record, but for its padding.
    #[must_use]
    pub const fn is_between(&self) -> bool {
        matches!(self.position, Position::Header | Position::Padding(_))
    }

    /// Takes the next piece off `buffer`; `None` if more has to be read.
    ///
    /// # Errors
    /// When what came is not what a FastCGI server says to its only request.
    pub fn take(&mut self, buffer: &mut BytesMut) -> Result<Option<Piece>, &'static str> {
        loop {
            match self.position {
                Position::Header => {
                    let Some(header) = buffer.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
                    self.position = opened(header)?;
                    self.follow()?;
                    drop(buffer.split_to(HEADER_BYTES));
                }
                Position::Padding(left) | Position::Content(RecordType::Output | RecordType::Messages, 0, left) => {
                    let skipped = left.min(buffer.len());
                    drop(buffer.split_to(skipped));
                    if skipped < left {
                        self.position = Position::Padding(left - skipped);
                        return Ok(None);
                    }
                    self.position = Position::Header;
                }
                Position::Content(part @ (RecordType::Output | RecordType::Messages), left, padding) => {
                    if buffer.is_empty() {
                        return Ok(None);
                    }
                    let bytes = buffer.split_to(left.min(buffer.len())).freeze();
                    self.position = Position::Content(part, left - bytes.len(), padding);
                    return Ok(Some(if part == RecordType::Output { Piece::Output(bytes) } else { Piece::Messages(bytes) }));
                }
                Position::Content(part, left, padding) => {
                    if buffer.len() < left {
                        return Ok(None);
                    }
                    let content = buffer.split_to(left);
                    self.position = Position::Padding(padding);
                    return Ok(Some(if part == RecordType::End { end(&content)? } else { Piece::Values }));
                }
            }
        }
    }
}

impl Records {
    /// Takes note of the record that has begun. Fails if it goes on with an output that has ended.
    fn follow(&mut self) -> Result<(), &'static str> {
        match self.position {
            Position::Content(RecordType::Output, 0, _) => self.has_ended = true,
            Position::Content(RecordType::Output, _, _) if self.has_ended => return Err("output after its end"),
            Position::Content(RecordType::End, ..) => self.has_ended = false,
            Position::Header | Position::Content(..) | Position::Padding(_) => {}
        }
        Ok(())
    }
}

fn opened(header: &[u8; HEADER_BYTES]) -> Result<Position, &'static str> {
    let &[version, kind, id_high, id_low, length_high, length_low, padding, _] = header;
    if version != VERSION {
        return Err("what came is not FastCGI");
    }
    let (id, length) = (u16::from_be_bytes([id_high, id_low]), usize::from(u16::from_be_bytes([length_high, length_low])));
    let part = match (kind, id) {
        (kind, REQUEST) if kind == Kind::Stdout as u8 => RecordType::Output,
        (kind, REQUEST) if kind == Kind::Stderr as u8 => RecordType::Messages,
        (kind, REQUEST) if kind == Kind::End as u8 && length == END_BYTES => RecordType::End,
        // A server that does not know the question says so, which answers it as well. php-fpm leaves an answer without values empty.
        (kind, 0) if (kind == Kind::GetValuesResult as u8 || kind == Kind::Unknown as u8) && length <= VALUES_BYTES_MAX => {
            RecordType::Values
        }
        _ => return Err("a record that nobody asked for"),
    };
    Ok(Position::Content(part, length, usize::from(padding)))
}

fn end(content: &[u8]) -> Result<Piece, &'static str> {
    let Some(&[a, b, c, d, verdict]) = content.first_chunk::<5>() else { return Err("an end that says nothing") };
    let verdict = match verdict {
        0 => Verdict::Complete,
        2 => Verdict::Overloaded,
        1 | 3 => Verdict::Refused,
        _ => return Err("an end for a reason that does not exist"),
    };
    Ok(Piece::End(u32::from_be_bytes([a, b, c, d]), verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all that is said in `bytes`, read in pieces of `step`; bytes of the same stream joined.
    fn read(bytes: &[u8], step: usize) -> Result<(Vec<Piece>, bool), &'static str> {
        let (mut records, mut buffer, mut said) = (Records::default(), BytesMut::new(), Vec::<Piece>::new());
        for piece in bytes.chunks(step) {
            buffer.extend_from_slice(piece);
            while let Some(piece) = records.take(&mut buffer)? {
                match (said.last_mut(), piece) {
                    (Some(Piece::Output(one)), Piece::Output(other)) => *one = [&one[..], &other[..]].concat().into(),
                    (Some(Piece::Messages(one)), Piece::Messages(other)) => *one = [&one[..], &other[..]].concat().into(),
                    (_, piece) => said.push(piece),
                }
            }
        }
        Ok((said, records.is_between() && buffer.is_empty()))
    }

    /// FastCGI specification, 3.3: an empty record ends a stream. Each request has its own.
    #[test]
    fn an_output_that_has_ended_does_not_go_on() {
        let (some, none) = (b"\x01\x06\x00\x01\x00\x02\x00\x00hi", b"\x01\x06\x00\x01\x00\x00\x00\x00");
        let end = b"\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00zzz";
        assert_eq!(read(&[&some[..], none, some].concat(), 3), Err("output after its end"));
        assert!(read(&[&some[..], none, none, end, some, none, end].concat(), 3).is_ok());
    }

    /// FastCGI specification, 3.3 and 8: a record is version, type, request id, content length, padding length, reserved, content, padding.
    #[test]
    fn records_are_read_in_whatever_pieces_they_come() {
        let bytes = b"\x01\x06\x00\x01\x00\x02\x03\x00hi...\
            \x01\x07\x00\x01\x00\x03\x00\x00bad\
            \x01\x06\x00\x01\x00\x00\x00\x00\
            \x01\x03\x00\x01\x00\x08\x01\x00\x00\x00\x01\x02\x00zzz.\
            \x01\x0a\x00\x00\x00\x00\x02\x00..";
        for step in [1, 2, 3, 7, 8, 9, 1000] {
            let (said, is_whole) = read(bytes, step).expect("FastCGI");
            let expected = [Piece::Output("hi".into()), Piece::Messages("bad".into()), Piece::End(0x102, Verdict::Complete), Piece::Values];
            assert_eq!(said, expected, "by {step}");
            assert!(is_whole, "by {step}");
        }
        assert_eq!(read(&bytes[..9], 100), Ok((vec![Piece::Output("h".into())], false)), "a record is not waited for");
    }

    #[test]
    fn what_no_server_says_is_refused() {
        for bytes in [
            &b"HTTP/1.1 200 OK"[..],
            b"\x02\x06\x00\x01\x00\x02\x00\x00hi",
            b"\x01\x06\x00\x02\x00\x02\x00\x00hi",
            b"\x01\x06\x00\x00\x00\x02\x00\x00hi",
            b"\x01\x01\x00\x01\x00\x08\x00\x00........",
            b"\x01\x03\x00\x01\x00\x07\x00\x00.......",
            b"\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x09...",
            b"\x01\x0c\x00\x01\x00\x00\x00\x00",
            b"\x01\x0a\x00\x00\xff\xff\x00\x00",
        ] {
            assert!(read(bytes, 1).is_err(), "{bytes:?}");
        }
        for (verdict, meaning) in [(1, Verdict::Refused), (2, Verdict::Overloaded), (3, Verdict::Refused)] {
            let bytes = [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, verdict, 0, 0, 0];
            assert_eq!(read(&bytes, 100), Ok((vec![Piece::End(0, meaning)], true)));
        }
    }

    /// FastCGI specification, 5.1 and 4.1.
    #[test]
    fn what_we_write_is_what_the_specification_says() {
        let mut out = Vec::new();
        write_begin(&mut out);
        assert_eq!(out, b"\x01\x01\x00\x01\x00\x08\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00");
        out.clear();
        write_question(&mut out);
        assert_eq!(out, b"\x01\x09\x00\x00\x00\x10\x00\x00\x0e\x00FCGI_MAX_CONNS");
        assert_eq!(header(Kind::Stdin, 65_535), *b"\x01\x05\x00\x01\xff\xff\x00\x00");
    }
}
