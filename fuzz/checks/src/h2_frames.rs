//! The protocol of HTTP/2 (RFC 9113), from a client's bytes to ours.

use std::collections::BTreeMap;

use wire::{HeadLimits, head::Parsed, hpack::Decoder};

use crate::{
    hpack::decoded,
    http2_connection::{Asked, Connection},
    input::Reader,
    request_head::judged,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What both sides begin with (RFC 9113 §6.9.2), and the largest frame that a client takes unless it says more.
const WINDOW: i64 = 65_535;
const FRAME_MAX: usize = 16_384;

/// Whatever a client sends, it is sent frames that it can read: whole ones, of streams that it began, none behind a stream's end, no more content than
/// it allowed for the connection, heads that another decoder reads. A request that is let through is one head, with nothing behind it, by
/// the rules of HTTP/1. What waits is bounded. And however the bytes are cut, they mean the same.
///
/// An input is a list of things that happen; see [`Conversation::happens`].
pub fn h2_frames(data: &[u8]) {
    let mut whole = Conversation::new();
    let mut cut = Conversation::new();
    whole.feed(PREFACE, PREFACE.len());
    cut.feed(PREFACE, 1);
    let mut reader = Reader::new(data);
    while !reader.is_empty() {
        let kind = reader.byte();
        let bytes = if kind < 200 { reader.bytes(usize::from(kind)) } else { &[] };
        whole.happens(kind, bytes, usize::MAX);
        cut.happens(kind, bytes, 1 + bytes.len() / 3);
        assert_eq!(whole.events, cut.events, "read otherwise in pieces");
        assert_eq!(whole.connection.is_over(), cut.connection.is_over());
    }
    whole.drain(usize::MAX);
    cut.drain(usize::MAX);
    assert_eq!(whole.sent.frames, cut.sent.frames, "answered otherwise in pieces");
}

struct Conversation {
    connection: Connection,
    events: Vec<Asked>,
    /// Requests that are being answered piece by piece.
    open: Vec<u32>,
    allowed: i64,
    fed: Frames,
    sent: Frames,
    client: Decoder,
    /// Streams that the client began, and whether we have ended them.
    streams: BTreeMap<u32, bool>,
    block: Option<(u32, bool, Vec<u8>)>,
}

impl Conversation {
    fn new() -> Self {
        Self {
            connection: Connection::new(),
            events: Vec::new(),
            open: Vec::new(),
            allowed: WINDOW,
            fed: Frames { skip: PREFACE.len(), ..Frames::default() },
            sent: Frames::default(),
            client: Decoder::new(4096),
            streams: BTreeMap::new(),
            block: None,
        }
    }

    /// Below 200: that many bytes come. Then: bytes leave; time passes; the oldest answer goes on, or is given up; contents are read; we say goodbye.
    fn happens(&mut self, kind: u8, bytes: &[u8], step: usize) {
        match kind {
            0..200 => self.feed(bytes, step),
            200..220 => self.drain(1 + usize::from(kind - 200) * 4_000),
            220..230 => self.connection.wait(u32::from(kind - 220) * 5),
            230..240 => {
                if let Some(&stream) = self.open.first() {
                    let piece = vec![b'x'; usize::from(kind - 230) * 9_000];
                    let ends = kind % 2 == 1;
                    if self.connection.go_on(stream, &piece, ends) == piece.len() && ends {
                        self.let_go();
                    }
                }
            }
            240..245 => self.let_go(),
            245..250 => self.connection.read_contents(),
            250.. => self.connection.leave(),
        }
    }

    fn let_go(&mut self) {
        if !self.open.is_empty() {
            let stream = self.open.remove(0);
            self.connection.let_go(stream);
        }
    }

    fn feed(&mut self, bytes: &[u8], step: usize) {
        let before = self.events.len();
        for piece in bytes.chunks(step.max(1)) {
            for (kind, _, stream, payload) in self.fed.next(piece) {
                match kind {
                    1 => {
                        self.streams.entry(stream).or_insert(false);
                    }
                    8 if stream == 0 && payload.len() == 4 => {
                        let more = i64::from(u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]]) & 0x7fff_ffff);
                        self.allowed = self.allowed.saturating_add(more);
                    }
                    _ => {}
                }
            }
            self.events.extend(self.connection.take(piece));
            assert!(self.connection.pending_len() < FRAME_MAX + 9, "waits for more than a frame");
        }
        // Afterwards, or what a request is answered would depend on where it was cut.
        for at in before..self.events.len() {
            let event = self.events[at].clone();
            self.answer(&event);
        }
        if self.connection.output_len() > 64 * 1024 {
            // Nothing more is read then.
            self.drain(usize::MAX);
        }
    }

    fn answer(&mut self, event: &Asked) {
        match event {
            Asked::Refuse { stream, status } => {
                assert!((400..=505).contains(status), "refused with {status}");
                self.connection.begin_answer(*stream, *status);
                self.connection.go_on(*stream, b"no", true);
                self.connection.let_go(*stream);
            }
            Asked::Request { stream, text, .. } => {
                judged(text, &HeadLimits::default(), |parsed| match parsed {
                    Ok(Parsed::Complete(head, _)) => assert_eq!(head.len, text.len(), "something behind a head"),
                    Ok(Parsed::Partial) => panic!("half a head: {}", text.escape_ascii()),
                    Err(_) => {}
                });
                assert!(text.ends_with(b"\r\n\r\n"));
                let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nETag: \"x\"\r\n\r\n";
                match stream / 2 % 4 {
                    0 => self.connection.answer_stored(*stream, head, vec![b'p'; 100]),
                    1 => self.connection.answer_stored(*stream, head, vec![b'p'; 70_000]),
                    2 => self.connection.answer_stored(*stream, head, Vec::new()),
                    _ => {
                        self.connection.begin_answer(*stream, 200);
                        return self.open.push(*stream);
                    }
                }
                self.connection.let_go(*stream);
            }
        }
    }

    /// Takes what leaves, and reads it as a client would.
    fn drain(&mut self, max: usize) {
        let bytes = self.connection.output(max);
        for (kind, flags, stream, payload) in self.sent.next(&bytes) {
            assert!(payload.len() <= FRAME_MAX, "a frame of {} bytes", payload.len());
            if let Some((block, _, _)) = &self.block {
                assert!(kind == 9 && stream == *block, "a frame within a head");
            }
            if matches!(kind, 0 | 1 | 9) {
                let ended = self.streams.get_mut(&stream).expect("an answer on a stream that nobody began");
                assert!(!*ended, "something behind the end of a stream");
                *ended = kind != 9 && flags & 1 != 0 && (kind == 0 || flags & 4 != 0);
            }
            match kind {
                0 => {
                    self.allowed -= payload.len() as i64;
                    assert!(self.allowed >= 0, "more content than was allowed");
                }
                1 => self.block = Some((stream, flags & 1 != 0, Vec::new())),
                3 => {
                    assert_eq!(payload.len(), 4);
                    *self.streams.get_mut(&stream).expect("a reset of a stream that nobody began") = true;
                }
                4 | 6 | 7 => assert_eq!(stream, 0),
                8 | 9 => {}
                other => panic!("a frame of the kind {other}"),
            }
            if let Some((_, ends, block)) = &mut self.block {
                block.extend_from_slice(&payload);
                if flags & 4 != 0 {
                    let ends = *ends;
                    let fields = decoded(&mut self.client, block).expect("a head that can be decoded");
                    assert_eq!(fields[0].0, b":status");
                    assert!(fields.iter().all(|(name, _)| name != b"connection" && !name.iter().any(u8::is_ascii_uppercase)));
                    if ends {
                        self.streams.insert(stream, true);
                    }
                    self.block = None;
                }
            }
        }
    }
}

/// Finds frames in a stream of bytes: kind, flags, stream, payload.
#[derive(Default)]
struct Frames {
    /// Bytes before the first one.
    skip: usize,
    rest: Vec<u8>,
    frames: usize,
}

impl Frames {
    fn next(&mut self, bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        self.rest.extend_from_slice(&bytes[skipped..]);
        let mut found = Vec::new();
        while let Some(&[a, b, c, kind, flags, w, x, y, z]) = self.rest.first_chunk::<9>() {
            let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            if self.rest.len() < 9 + length {
                break;
            }
            found.push((kind, flags, u32::from_be_bytes([w, x, y, z]) & 0x7fff_ffff, self.rest[9..9 + length].to_vec()));
            self.rest.drain(..9 + length);
            self.frames += 1;
        }
        found
    }
}
