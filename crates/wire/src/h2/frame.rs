//! Frames as bytes (RFC 9113 §4, §6).

/// The length of what every frame begins with.
pub(crate) const HEAD: usize = 9;

/// The length of the longest payload that we take: we announce no other (RFC 9113 §4.2).
pub(crate) const PAYLOAD_MAX: usize = 16_384;

/// The bytes that a client begins with (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The types of frames.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
    /// RFC 9218 §7.1.
    pub(crate) const PRIORITY_UPDATE: u8 = 16;
}

/// The flags of frames.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// The identifiers of settings.
pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
    /// RFC 8441 §3.
    pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 8;
    /// RFC 9218 §2.1.
    pub(crate) const NO_RFC7540_PRIORITIES: u16 = 9;
}

/// Says why a stream or a connection ends (RFC 9113 §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub(super) u32);

impl Code {
    /// There is no error.
    pub const NO_ERROR: Self = Self(0);
    /// The other end broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// We have failed.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// More was sent than a window allowed, or a window is out of bounds.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// A frame came for a stream that had ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame has the wrong length.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The request was not looked at: it may be sent again.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is not wanted any more.
    pub const CANCEL: Self = Self(8);
    /// A header block cannot be decoded.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The connection behind a tunnel has failed.
    pub const CONNECT_ERROR: Self = Self(10);
    /// The other end makes more work than it may.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
}

/// The first nine bytes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl Head {
    /// Reads a head from the beginning of `bytes`. `None` means that it is not all there.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, kind, flags, w, x, y, z] = bytes.first_chunk::<HEAD>()?;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        Some(Self { length, kind, flags, stream: u32::from_be_bytes([w, x, y, z]) & 0x7fff_ffff })
    }

    pub(crate) const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    #[expect(clippy::cast_possible_truncation, reason = "a payload has less than 2^24 bytes")]
    fn bytes(self) -> [u8; HEAD] {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [w, x, y, z] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, w, x, y, z]
    }
}

/// Takes padding off (RFC 9113 §6.1). `None` means that there is more of it than of the frame.
pub(crate) fn unpadded(head: Head, payload: &[u8]) -> Option<&[u8]> {
    if !head.has(flag::PADDED) {
        return Some(payload);
    }
    let (&padding, rest) = payload.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(padding))?)
}

pub(crate) fn u32_of(payload: &[u8]) -> Option<u32> {
    payload.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Returns the settings in a payload (RFC 9113 §6.5.1).
pub(crate) fn settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload.chunks_exact(6).filter_map(|setting| match *setting {
        [a, b, w, x, y, z] => Some((u16::from_be_bytes([a, b]), u32::from_be_bytes([w, x, y, z]))),
        _ => None,
    })
}

pub(crate) fn write_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    Head { length: settings.len() * 6, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(out);
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(crate) fn write_settings_ack(out: &mut Vec<u8>) {
    Head { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(out);
}

pub(crate) fn write_ping(flags: u8, payload: &[u8], out: &mut Vec<u8>) {
    Head { length: payload.len(), kind: kind::PING, flags, stream: 0 }.write(out);
    out.extend_from_slice(payload);
}

pub(crate) fn write_reset(stream: u32, code: Code, out: &mut Vec<u8>) {
    Head { length: 4, kind: kind::RST_STREAM, flags: 0, stream }.write(out);
    out.extend_from_slice(&code.0.to_be_bytes());
}

pub(crate) fn write_window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    Head { length: 4, kind: kind::WINDOW_UPDATE, flags: 0, stream }.write(out);
    out.extend_from_slice(&increment.to_be_bytes());
}

pub(crate) fn write_goaway(last_stream: u32, code: Code, out: &mut Vec<u8>) {
    Head { length: 8, kind: kind::GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Puts frame heads around the header block that `out` ends with: from `at`, where room for the first head was left. A block that is longer
/// than a frame of the client's may be goes on in CONTINUATION frames (RFC 9113 §6.10).
pub(crate) fn enclose_block(out: &mut Vec<u8>, at: usize, stream: u32, flags: u8, frame_max: usize) {
    let block = at + HEAD;
    let length = out.len() - block;
    if length <= frame_max {
        let head = Head { length, kind: kind::HEADERS, flags: flags | flag::END_HEADERS, stream };
        out[at..block].copy_from_slice(&head.bytes());
        return;
    }
    let whole = out.split_off(block);
    out.truncate(at);
    let pieces = whole.chunks(frame_max);
    let last = pieces.len() - 1;
    for (number, piece) in pieces.enumerate() {
        let (kind, flags) = if number == 0 { (kind::HEADERS, flags) } else { (kind::CONTINUATION, 0) };
        let ends = if number == last { flag::END_HEADERS } else { 0 };
        Head { length: piece.len(), kind, flags: flags | ends, stream }.write(out);
        out.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9113 §4.1, §6.10.
    #[test]
    fn a_long_block_goes_on_in_continuations() {
        let mut out = b"before".to_vec();
        out.extend_from_slice(&[0; HEAD]);
        out.extend_from_slice(b"0123456789");
        enclose_block(&mut out, 6, 3, flag::END_STREAM, 4);
        let expected: [&[u8]; 4] =
            [b"before", b"\0\0\x04\x01\x01\0\0\0\x030123", b"\0\0\x04\x09\x00\0\0\0\x034567", b"\0\0\x02\x09\x04\0\0\0\x0389"];
        assert_eq!(out, expected.concat());
        let mut out = vec![0; HEAD];
        out.extend_from_slice(b"0123");
        enclose_block(&mut out, 0, 1, 0, 4);
        assert_eq!(out, b"\0\0\x04\x01\x04\0\0\0\x010123");
    }

    /// RFC 9113 §6.1: padding that fills the whole payload is an error, its length counts.
    #[test]
    fn padding_is_taken_off() {
        let head = Head { length: 0, kind: kind::DATA, flags: flag::PADDED, stream: 1 };
        assert_eq!(unpadded(head, b"\x02ab\0\0"), Some(&b"ab"[..]));
        assert_eq!(unpadded(head, b"\x02\0\0"), Some(&b""[..]));
        assert_eq!(unpadded(head, b"\x03\0\0"), None);
        assert_eq!(unpadded(head, b""), None);
    }
}
