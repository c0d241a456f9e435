//! Frames of HTTP/2 (RFC 9113 §4, §6), as a client writes and reads them.

use super::hpack;

/// The length of a frame's header.
pub(super) const HEADER: usize = 9;

/// The longest payload that either side may send, as both begin with it and we leave it (§4.2).
pub(super) const PAYLOAD_MAX: usize = 16_384;

/// The window for each stream and for the connection: answers never wait for us.
pub(super) const WINDOW: u32 = (1 << 30) - 1;

/// The window that both sides begin with (§6.9.2).
pub(super) const WINDOW_AT_FIRST: u32 = 65_535;

/// Types of frames.
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const RST_STREAM: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PUSH_PROMISE: u8 = 5;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
    pub(in super::super) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(super) mod flag {
    pub(in super::super) const END_STREAM: u8 = 0x1;
    pub(in super::super) const ACK: u8 = 0x1;
    pub(in super::super) const END_HEADERS: u8 = 0x4;
    pub(in super::super) const PADDED: u8 = 0x8;
    pub(in super::super) const PRIORITY: u8 = 0x20;
}

/// Settings (§6.5.2).
pub(super) mod setting {
    pub(in super::super) const ENABLE_PUSH: u16 = 2;
    pub(in super::super) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(in super::super) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(in super::super) const MAX_FRAME_SIZE: u16 = 5;
}

/// Codes of errors (§7) that we tell apart.
pub(super) mod code {
    pub(in super::super) const NO_ERROR: u32 = 0;
    pub(in super::super) const REFUSED_STREAM: u32 = 7;
    pub(in super::super) const CANCEL: u32 = 8;
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Header {
    pub(super) fn read(bytes: &[u8; HEADER]) -> Self {
        Self {
            length: usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2]),
            kind: bytes[3],
            flags: bytes[4],
            stream: u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]) & 0x7fff_ffff,
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "each byte has its part of the length")]
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let [a, b, c, d] = self.stream.to_be_bytes();
        out.extend_from_slice(&[(self.length >> 16) as u8, (self.length >> 8) as u8, self.length as u8, self.kind, self.flags, a, b, c, d]);
    }
}

/// Writes what a connection begins with (§3.4): no push, large windows.
pub(super) fn write_preface(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    Header { length: 12, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(out);
    for (setting, value) in [(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, WINDOW)] {
        out.extend_from_slice(&setting.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
    write_number(out, kind::WINDOW_UPDATE, 0, WINDOW - WINDOW_AT_FIRST);
}

/// Writes a frame whose payload is one number: WINDOW_UPDATE or RST_STREAM.
pub(super) fn write_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    Header { length: 4, kind, flags: 0, stream }.write(out);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Writes a block of fields, as HEADERS and as many CONTINUATIONs as it needs.
pub(super) fn write_headers(out: &mut Vec<u8>, stream: u32, block: &[u8], is_end: bool) {
    let end_stream = if is_end { flag::END_STREAM } else { 0 };
    let (mut kind, mut flags, mut rest) = (kind::HEADERS, end_stream, block);
    while rest.len() > PAYLOAD_MAX {
        let (part, behind) = rest.split_at(PAYLOAD_MAX);
        Header { length: part.len(), kind, flags, stream }.write(out);
        out.extend_from_slice(part);
        (kind, flags, rest) = (kind::CONTINUATION, 0, behind);
    }
    Header { length: rest.len(), kind, flags: flags | flag::END_HEADERS, stream }.write(out);
    out.extend_from_slice(rest);
}

/// Writes the fields of a request: its pseudo-fields (§8.3.1), and its own in lower case without those that HTTP/2 has not (§8.2.2).
pub(super) fn write_fields(
    out: &mut Vec<u8>,
    method: &str,
    scheme: &str,
    authority: &str,
    target: &str,
    fields: &[(String, String)],
    length: usize,
) {
    // A field `Host` names another host than the URL.
    let host = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host")).map_or(authority, |(_, host)| host.as_str());
    for (name, value) in [(":method", method), (":scheme", scheme), (":path", target), (":authority", host)] {
        hpack::write(out, name.as_bytes(), value.as_bytes());
    }
    let mut has_length = false;
    for (name, value) in fields {
        let name = name.to_ascii_lowercase();
        if matches!(name.as_str(), "host" | "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade") {
            continue;
        }
        has_length |= name == "content-length";
        hpack::write(out, name.as_bytes(), value.as_bytes());
    }
    if length > 0 && !has_length {
        hpack::write(out, b"content-length", length.to_string().as_bytes());
    }
}
