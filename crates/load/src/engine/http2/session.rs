//! One connection of HTTP/2 without its socket: bytes in, bytes out (RFC 9113).
//!
//! It has no buffer for what it reads: contents are counted where they lie, and only a frame that is cut by the end of a read is kept. A request of the set
//! is a copy of bytes that were made before the run.

use std::time::Duration;

use bytes::Bytes;
use smallvec::SmallVec;

use super::{
    frame::{self, HEADER, Header, PAYLOAD_MAX, WINDOW, WINDOW_AT_FIRST, code, flag, kind, setting},
    hpack::{Decoder, Malformed},
};
use crate::{
    answer::{Answer, Field, content_length},
    engine::driver::{Arrival, Room, Sink},
    record::ErrorClass,
    requests::WANTED_MAX,
};

/// The longest block of fields that a server may send.
const BLOCK_MAX: usize = 256 << 10;

/// The frames in a row that bring no answer forward. A server that sends more has no answer to give, and costs this side work.
const IDLE_FRAMES_MAX: u32 = 10_000;

/// The acknowledgements that may wait to be written: 17 KB. A server that wants more does not read them.
const ACKNOWLEDGEMENTS_MAX: u32 = 1000;

/// The largest memory for fields that a connection keeps for its next streams.
const HEAD_KEPT: usize = 4096;

/// The streams that are begun before the server has said how many it takes (§6.5.2 recommends that it is no fewer).
const STREAMS_AT_FIRST: usize = 100;

/// The last number that a stream may have.
const STREAM_MAX: u32 = 0x7fff_ffff;

/// The shortest time after which a server may close a connection as idle. A server that closes one earlier has something against the
/// request.
const IDLE_MIN: Duration = Duration::from_millis(500);

/// The most memory that a connection keeps for frames that were cut.
const PARTIAL_KEPT: usize = 1024;

/// The server has said something that is not HTTP/2, and the connection is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

impl From<Malformed> for Broken {
    fn from(_: Malformed) -> Self {
        Self
    }
}

/// A request as it is put on a stream.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    /// The block of its fields.
    pub(super) block: &'a [u8],
    /// The content of the request.
    pub(super) body: &'a Bytes,
    /// Whether its answer has no content, whatever its length says.
    pub(super) is_head: bool,
    /// Whether the content of the answer must be kept.
    pub(super) wants_body: bool,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Session {
    /// The bytes that are to be written.
    pub(super) out: Vec<u8>,
    /// The acknowledgements in it.
    acknowledgements: u32,
    /// The frames since the last one that brought an answer forward.
    idle_frames: u32,
    streams: Streams,
    streams_max: usize,
    /// The number of streams that the server takes at a time.
    server_max: usize,
    next: u32,
    decoder: Decoder,
    /// The beginning of a frame whose rest has not come.
    partial: Vec<u8>,
    /// The DATA frame that is being read.
    data: Option<Data>,
    /// The block of fields that is being read: of which stream, whether it ends it, and its beginning.
    block: Option<(u32, bool, Vec<u8>)>,
    /// The bytes that have come since the server was last told that there is room for more.
    unsaid: u32,
    /// The number of bytes that may be sent, on the connection and on a new stream.
    window: i64,
    window_of_stream: i64,
    /// Streams whose content is not wholly sent.
    sending: usize,
    has_begun: bool,
    is_going_away: bool,
    /// The time since which nothing has been under way, after an answer.
    idle_since: Option<Duration>,
}

/// The rest of a DATA frame.
#[derive(Debug, Clone, Copy)]
struct Data {
    stream: u32,
    is_end: bool,
    /// Whether the next byte is the length of the padding.
    is_padded: bool,
    content: usize,
    padding: usize,
}

/// Streams under way, with their numbers apart: a stream is found by a look along the numbers.
#[derive(Debug, Default)]
struct Streams {
    numbers: Vec<u32>,
    streams: Vec<Stream>,
    /// Memory of heads of streams that have ended.
    spare: Vec<Head>,
}

/// A request under way.
#[derive(Debug)]
struct Stream {
    call: u32,
    arrival: Arrival,
    head: Head,
    /// The length of the content, if the head says it.
    length: Option<u64>,
    received: u64,
    body: Option<Vec<u8>>,
    is_head: bool,
    unsaid: u32,
    window: i64,
    /// The content that is still to be sent.
    sending: Option<Bytes>,
    /// Whether it was sent on a connection that had been idle for so long that the server may have closed it in the same moment.
    follows_idleness: bool,
}

/// The fields of an answer: names and values one behind the other, and where each ends.
#[derive(Debug, Default)]
struct Head {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl Head {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn fields(&self) -> SmallVec<[Field<'_>; 24]> {
        let mut begin = 0;
        let field = |&(name, value): &(usize, usize)| {
            let field = (&self.bytes[begin..name], &self.bytes[name..value]);
            begin = value;
            field
        };
        self.ends.iter().map(field).collect()
    }
}

impl Streams {
    fn at(&self, number: u32) -> Option<usize> {
        self.numbers.iter().position(|it| *it == number)
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Stream> {
        self.at(number).map(|at| &mut self.streams[at])
    }

    fn push(&mut self, number: u32, stream: Stream) {
        self.numbers.push(number);
        self.streams.push(stream);
    }

    fn remove(&mut self, at: usize) -> Stream {
        self.numbers.swap_remove(at);
        self.streams.swap_remove(at)
    }

    fn keep(&mut self, mut head: Head) {
        head.clear();
        if head.bytes.capacity() <= HEAD_KEPT {
            self.spare.push(head);
        }
    }
}

impl Session {
    /// Makes a connection that has said what every connection begins with.
    pub(super) fn new(streams_max: usize) -> Self {
        let mut out = Vec::new();
        frame::write_preface(&mut out);
        Self {
            out,
            acknowledgements: 0,
            idle_frames: 0,
            streams: Streams::default(),
            streams_max,
            server_max: STREAMS_AT_FIRST,
            next: 1,
            decoder: Decoder::new(),
            partial: Vec::new(),
            data: None,
            block: None,
            unsaid: 0,
            window: i64::from(WINDOW_AT_FIRST),
            window_of_stream: i64::from(WINDOW_AT_FIRST),
            sending: 0,
            has_begun: false,
            is_going_away: false,
            idle_since: None,
        }
    }

    pub(super) fn room(&self) -> Room {
        if self.is_going_away || self.next > STREAM_MAX {
            return Room::Never;
        }
        Room::For(self.streams_max.min(self.server_max).saturating_sub(self.streams.numbers.len()))
    }

    /// Tells whether nothing is under way and nothing will be.
    pub(super) fn has_ended(&self) -> bool {
        self.is_going_away && self.streams.numbers.is_empty()
    }

    /// Tells whether the server has said anything of HTTP/2.
    pub(super) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Writes a request.
    pub(super) fn send(&mut self, call: u32, request: &Outgoing<'_>, now: Duration) {
        let follows_idleness = self.idle_since.is_some_and(|since| now.saturating_sub(since) >= IDLE_MIN);
        let number = self.next;
        self.next += 2;
        frame::write_headers(&mut self.out, number, request.block, request.body.is_empty());
        let stream = Stream {
            call,
            arrival: Arrival::default(),
            head: self.streams.spare.pop().unwrap_or_default(),
            length: None,
            received: 0,
            body: request.wants_body.then(Vec::new),
            is_head: request.is_head,
            unsaid: 0,
            window: self.window_of_stream,
            sending: (!request.body.is_empty()).then(|| request.body.clone()),
            follows_idleness,
        };
        self.idle_since = None;
        self.sending += usize::from(stream.sending.is_some());
        self.streams.push(number, stream);
        if self.sending > 0 {
            self.send_content(self.streams.numbers.len() - 1);
        }
    }

    /// Gives a request up. Returns what there is of its answer.
    pub(super) fn cancel(&mut self, call: u32) -> Option<Arrival> {
        let at = self.streams.streams.iter().position(|stream| stream.call == call)?;
        let number = self.streams.numbers[at];
        frame::write_number(&mut self.out, kind::RST_STREAM, number, code::CANCEL);
        Some(self.remove(at).arrival)
    }

    /// Ends all that is under way, because the connection has ended: with `class` or, without it, by how far each answer had come.
    pub(super) fn close(&mut self, class: Option<ErrorClass>, now: Duration, sink: &mut impl Sink) {
        self.is_going_away = true;
        while let Some(stream) = self.streams.streams.first() {
            // The server has closed an idle connection, and the request came too late for it. It has seen nothing of it.
            if class.is_none() && stream.follows_idleness && stream.arrival.first_byte.is_none() {
                self.refuse(0, now, sink);
            } else {
                self.fail(0, class, now, sink);
            }
        }
    }

    /// Takes what has come. `scratch` is room for strings.
    pub(super) fn read(&mut self, mut input: &[u8], now: Duration, scratch: &mut Vec<u8>, sink: &mut impl Sink) -> Result<(), Broken> {
        while !input.is_empty() || self.data.is_some_and(|data| data.content + data.padding == 0 && !data.is_padded) {
            if let Some(data) = self.data {
                self.read_data(data, &mut input, now, sink)?;
                continue;
            }
            if self.partial.is_empty()
                && let Some((header, rest)) = input.split_first_chunk::<HEADER>()
            {
                let header = self.check(Header::read(header))?;
                if header.kind == kind::DATA {
                    input = rest;
                    self.begin_data(header, now)?;
                    continue;
                }
                if let Some((payload, rest)) = rest.split_at_checked(header.length) {
                    input = rest;
                    self.frame(header, payload, now, scratch, sink)?;
                    continue;
                }
            }
            // Something was cut: the header, or a frame that is not DATA.
            let header = self.partial.first_chunk::<HEADER>().map(Header::read);
            let whole = HEADER + header.map_or(0, |header| header.length);
            let (part, rest) = input.split_at(input.len().min(whole - self.partial.len()));
            self.partial.extend_from_slice(part);
            input = rest;
            if self.partial.len() < whole {
                continue;
            }
            let header = match header {
                Some(header) => header,
                None => {
                    let bytes = self.partial.first_chunk::<HEADER>().expect("it has been filled up to there");
                    let header = self.check(Header::read(bytes))?;
                    if header.kind == kind::DATA {
                        self.partial.clear();
                        self.begin_data(header, now)?;
                        continue;
                    }
                    if header.length > 0 {
                        continue;
                    }
                    header
                }
            };
            let mut partial = std::mem::take(&mut self.partial);
            self.frame(header, &partial[HEADER..], now, scratch, sink)?;
            partial.clear();
            partial.shrink_to(PARTIAL_KEPT);
            self.partial = partial;
        }
        Ok(())
    }

    /// Checks what holds for every frame.
    fn check(&mut self, header: Header) -> Result<Header, Broken> {
        let is_expected = match &self.block {
            Some((stream, ..)) => header.kind == kind::CONTINUATION && header.stream == *stream,
            None => header.kind != kind::CONTINUATION,
        };
        let is_first = !self.has_begun && (header.kind != kind::SETTINGS || header.flags & flag::ACK != 0);
        if header.length > PAYLOAD_MAX || !is_expected || is_first {
            return Err(Broken);
        }
        self.has_begun = true;
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES_MAX {
            return Err(Broken);
        }
        Ok(header)
    }

    /// Writes an acknowledgement.
    fn acknowledge(&mut self, kind: u8, payload: &[u8]) -> Result<(), Broken> {
        if self.out.is_empty() {
            self.acknowledgements = 0;
        }
        self.acknowledgements += 1;
        if self.acknowledgements > ACKNOWLEDGEMENTS_MAX {
            return Err(Broken);
        }
        Header { length: payload.len(), kind, flags: flag::ACK, stream: 0 }.write(&mut self.out);
        self.out.extend_from_slice(payload);
        Ok(())
    }

    fn begin_data(&mut self, header: Header, now: Duration) -> Result<(), Broken> {
        if header.stream == 0 || header.stream >= self.next {
            return Err(Broken);
        }
        let length = u32::try_from(header.length).map_err(|_| Broken)?;
        self.unsaid += length;
        if self.unsaid > WINDOW / 2 {
            frame::write_number(&mut self.out, kind::WINDOW_UPDATE, 0, self.unsaid);
            self.unsaid = 0;
        }
        if let Some(stream) = self.streams.get_mut(header.stream) {
            stream.arrival.first_byte.get_or_insert(now);
            stream.arrival.bytes += (HEADER + header.length) as u64;
            stream.unsaid += length;
            if stream.unsaid > WINDOW / 2 {
                frame::write_number(&mut self.out, kind::WINDOW_UPDATE, header.stream, stream.unsaid);
                stream.unsaid = 0;
            }
        }
        let is_padded = header.flags & flag::PADDED != 0;
        let is_end = header.flags & flag::END_STREAM != 0;
        self.data = Some(Data { stream: header.stream, is_end, is_padded, content: header.length, padding: 0 });
        if is_padded && header.length == 0 { Err(Broken) } else { Ok(()) }
    }

    fn read_data(&mut self, mut data: Data, input: &mut &[u8], now: Duration, sink: &mut impl Sink) -> Result<(), Broken> {
        if data.is_padded
            && let Some((padding, rest)) = input.split_first()
        {
            *input = rest;
            data.is_padded = false;
            data.padding = usize::from(*padding);
            data.content = (data.content - 1).checked_sub(data.padding).ok_or(Broken)?;
        }
        let (content, rest) = input.split_at(input.len().min(data.content));
        let padding = rest.len().min(data.padding);
        *input = &rest[padding..];
        data.content -= content.len();
        data.padding -= padding;
        let has_ended = data.content + data.padding == 0;
        self.data = (!has_ended).then_some(data);
        let Some(at) = self.streams.at(data.stream) else { return Ok(()) };
        let stream = &mut self.streams.streams[at];
        if stream.arrival.status == 0 {
            // Content before its head.
            self.reset(at, now, sink);
            return Ok(());
        }
        stream.received += content.len() as u64;
        if !content.is_empty() {
            self.idle_frames = 0;
        }
        if let Some(body) = &mut stream.body {
            body.extend_from_slice(&content[..content.len().min(WANTED_MAX - body.len())]);
        }
        if has_ended && data.is_end {
            self.finish(at, now, sink);
        }
        Ok(())
    }

    /// Takes a whole frame that is not DATA.
    fn frame(&mut self, header: Header, payload: &[u8], now: Duration, scratch: &mut Vec<u8>, sink: &mut impl Sink) -> Result<(), Broken> {
        let number = || payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)).ok_or(Broken);
        match header.kind {
            kind::HEADERS => {
                let fragment = fragment(header, payload)?;
                if header.stream == 0 || header.stream >= self.next {
                    return Err(Broken);
                }
                let is_end = header.flags & flag::END_STREAM != 0;
                if let Some(stream) = self.streams.get_mut(header.stream) {
                    stream.arrival.first_byte.get_or_insert(now);
                    stream.arrival.bytes += (HEADER + payload.len()) as u64;
                }
                if header.flags & flag::END_HEADERS != 0 {
                    return self.fields(header.stream, is_end, fragment, now, scratch, sink);
                }
                self.block = Some((header.stream, is_end, fragment.to_vec()));
            }
            kind::CONTINUATION => {
                let Some((number, is_end, mut block)) = self.block.take() else { return Err(Broken) };
                if block.len() + payload.len() > BLOCK_MAX {
                    return Err(Broken);
                }
                block.extend_from_slice(payload);
                if let Some(stream) = self.streams.get_mut(number) {
                    stream.arrival.bytes += (HEADER + payload.len()) as u64;
                }
                if header.flags & flag::END_HEADERS != 0 {
                    return self.fields(number, is_end, &block, now, scratch, sink);
                }
                self.block = Some((number, is_end, block));
            }
            kind::RST_STREAM => {
                let code = number()?;
                if let Some(at) = self.streams.at(header.stream) {
                    if code == code::REFUSED_STREAM {
                        self.refuse(at, now, sink);
                    } else {
                        self.fail(at, None, now, sink);
                    }
                }
            }
            kind::SETTINGS if header.flags & flag::ACK == 0 => self.settings(payload)?,
            kind::PING if header.flags & flag::ACK == 0 => {
                let opaque: &[u8; 8] = payload.try_into().map_err(|_| Broken)?;
                self.acknowledge(kind::PING, opaque)?;
            }
            kind::GOAWAY => {
                let last = number()? & STREAM_MAX;
                self.is_going_away = true;
                // What is above was not looked at (§6.8). A graceful server says it twice, first with the highest number.
                while let Some(at) = self.streams.numbers.iter().position(|number| *number > last) {
                    self.refuse(at, now, sink);
                }
            }
            kind::WINDOW_UPDATE => {
                let more = i64::from(number()? & STREAM_MAX);
                if header.stream == 0 {
                    self.window += more;
                    self.send_contents();
                } else if let Some(at) = self.streams.at(header.stream) {
                    self.streams.streams[at].window += more;
                    self.send_content(at);
                }
            }
            kind::PUSH_PROMISE => return Err(Broken),
            // Acknowledgements, priorities, and what later versions may bring (§4.1).
            _ => {}
        }
        Ok(())
    }

    fn settings(&mut self, payload: &[u8]) -> Result<(), Broken> {
        if !payload.len().is_multiple_of(6) {
            return Err(Broken);
        }
        for setting in payload.chunks_exact(6) {
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            match u16::from_be_bytes([setting[0], setting[1]]) {
                setting::MAX_CONCURRENT_STREAMS => self.server_max = usize::try_from(value).unwrap_or(usize::MAX),
                setting::INITIAL_WINDOW_SIZE => {
                    let change = i64::from(value) - self.window_of_stream;
                    self.window_of_stream = i64::from(value);
                    for stream in &mut self.streams.streams {
                        stream.window += change;
                    }
                }
                // Our frames are as short as every server takes them.
                setting::MAX_FRAME_SIZE => {}
                _ => {}
            }
        }
        self.acknowledge(kind::SETTINGS, &[])?;
        self.send_contents();
        Ok(())
    }

    /// Takes a block of fields: a head, an interim one, or trailers.
    fn fields(
        &mut self,
        number: u32,
        is_end: bool,
        block: &[u8],
        now: Duration,
        scratch: &mut Vec<u8>,
        sink: &mut impl Sink,
    ) -> Result<(), Broken> {
        let Some(at) = self.streams.at(number) else {
            // It was given up. The table must know its fields nevertheless.
            self.decoder.decode(block, scratch, |_, _| {})?;
            return Ok(());
        };
        let stream = &mut self.streams.streams[at];
        if stream.arrival.status != 0 {
            self.decoder.decode(block, scratch, |_, _| {})?;
        } else {
            let Stream { head, length, arrival, .. } = stream;
            head.clear();
            let mut has_length = true;
            self.decoder.decode(block, scratch, |name, value| match name {
                b":status" => {
                    let status = std::str::from_utf8(value).ok().and_then(|status| status.parse().ok());
                    arrival.status = status.filter(|status| (100..1000).contains(status)).unwrap_or_default();
                }
                _ => {
                    if name == b"content-length" {
                        let said = content_length(value);
                        has_length &= said.is_some() && length.is_none_or(|before| Some(before) == said);
                        *length = said;
                    }
                    head.bytes.extend_from_slice(name);
                    let name = head.bytes.len();
                    head.bytes.extend_from_slice(value);
                    head.ends.push((name, head.bytes.len()));
                }
            })?;
            // 101 has no meaning here (RFC 9113 §8.6).
            if matches!(arrival.status, 0 | 101) || !has_length {
                self.reset(at, now, sink);
                return Ok(());
            }
            if arrival.status < 200 {
                arrival.status = 0;
                *length = None;
            }
        }
        if is_end {
            self.finish(at, now, sink);
        }
        Ok(())
    }

    /// Ends a stream whose answer has ended.
    fn finish(&mut self, at: usize, now: Duration, sink: &mut impl Sink) {
        self.idle_frames = 0;
        let number = self.streams.numbers[at];
        let mut stream = self.remove(at);
        if stream.sending.is_some() {
            // The server has answered without waiting for the rest.
            frame::write_number(&mut self.out, kind::RST_STREAM, number, code::NO_ERROR);
        }
        stream.arrival.ended = now;
        let has_content = !stream.is_head && !matches!(stream.arrival.status, 204 | 304);
        let class = match stream.length {
            _ if stream.arrival.status == 0 => Some(ErrorClass::Protocol),
            Some(length) if has_content && stream.received < length => Some(ErrorClass::Truncated),
            Some(length) if has_content && stream.received > length => Some(ErrorClass::Protocol),
            _ => None,
        };
        match class {
            Some(class) => sink.failed(stream.call, class, stream.arrival),
            None => {
                let answer = Answer { status: stream.arrival.status, fields: &stream.head.fields(), body: stream.body.as_deref() };
                sink.answered(stream.call, &answer, stream.arrival);
            }
        }
        self.streams.keep(stream.head);
        if self.streams.numbers.is_empty() {
            self.idle_since = Some(now);
        }
    }

    /// Ends a stream on which something came that is not an answer, and tells the server.
    fn reset(&mut self, at: usize, now: Duration, sink: &mut impl Sink) {
        frame::write_number(&mut self.out, kind::RST_STREAM, self.streams.numbers[at], code::CANCEL);
        self.fail(at, Some(ErrorClass::Protocol), now, sink);
    }

    fn fail(&mut self, at: usize, class: Option<ErrorClass>, now: Duration, sink: &mut impl Sink) {
        let mut stream = self.remove(at);
        stream.arrival.ended = now;
        let so_far = if stream.arrival.status == 0 { ErrorClass::Reset } else { ErrorClass::Truncated };
        sink.failed(stream.call, class.unwrap_or(so_far), stream.arrival);
        self.streams.keep(stream.head);
    }

    fn refuse(&mut self, at: usize, now: Duration, sink: &mut impl Sink) {
        let stream = self.remove(at);
        sink.refused(stream.call, Arrival { ended: now, ..Arrival::default() });
        self.streams.keep(stream.head);
    }

    fn remove(&mut self, at: usize) -> Stream {
        let stream = self.streams.remove(at);
        self.sending -= usize::from(stream.sending.is_some());
        stream
    }

    fn send_contents(&mut self) {
        if self.sending > 0 {
            for at in 0..self.streams.numbers.len() {
                self.send_content(at);
            }
        }
    }

    /// Writes as much of a stream's content as the windows allow.
    fn send_content(&mut self, at: usize) {
        let (number, stream) = (self.streams.numbers[at], &mut self.streams.streams[at]);
        while let Some(content) = &mut stream.sending {
            let window = usize::try_from(self.window.min(stream.window)).unwrap_or_default();
            let length = content.len().min(window).min(PAYLOAD_MAX);
            if length == 0 {
                return;
            }
            self.idle_frames = 0;
            let part = content.split_to(length);
            let is_end = content.is_empty();
            let flags = if is_end { flag::END_STREAM } else { 0 };
            Header { length, kind: kind::DATA, flags, stream: number }.write(&mut self.out);
            self.out.extend_from_slice(&part);
            self.window -= length as i64;
            stream.window -= length as i64;
            if is_end {
                stream.sending = None;
                self.sending -= 1;
            }
        }
    }
}

/// Returns the part of a HEADERS frame that is the block (§6.2).
fn fragment(header: Header, mut payload: &[u8]) -> Result<&[u8], Broken> {
    let mut padding = 0;
    if header.flags & flag::PADDED != 0 {
        let (first, rest) = payload.split_first().ok_or(Broken)?;
        (padding, payload) = (usize::from(*first), rest);
    }
    if header.flags & flag::PRIORITY != 0 {
        payload = payload.get(5..).ok_or(Broken)?;
    }
    payload.get(..payload.len().checked_sub(padding).ok_or(Broken)?).ok_or(Broken)
}
