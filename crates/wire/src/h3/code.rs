//! Why a stream or a connection is ended, as the other end is told (RFC 9114 §8.1, RFC 9204 §6).

use quinn::VarInt;

/// An error code of HTTP/3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Code {
    NoError = 0x100,
    InternalError = 0x102,
    StreamCreationError = 0x103,
    ClosedCriticalStream = 0x104,
    FrameUnexpected = 0x105,
    FrameError = 0x106,
    ExcessiveLoad = 0x107,
    IdError = 0x108,
    SettingsError = 0x109,
    MissingSettings = 0x10a,
    RequestRejected = 0x10b,
    RequestCancelled = 0x10c,
    RequestIncomplete = 0x10d,
    MessageError = 0x10e,
    DecompressionFailed = 0x200,
    EncoderStreamError = 0x201,
    DecoderStreamError = 0x202,
}

impl From<Code> for VarInt {
    fn from(code: Code) -> Self {
        Self::from_u32(code as u32)
    }
}

/// What ends a stream, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The client has left the stream, or is gone altogether.
    Gone,
    /// The message is malformed: its stream is reset, the others go on.
    Stream(Code),
    /// The client breaks the protocol: the connection is closed.
    Connection(Code),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone => f.write_str("the client has gone"),
            Self::Stream(code) => write!(f, "a malformed message ({code:?})"),
            Self::Connection(code) => write!(f, "the client breaks the protocol ({code:?})"),
        }
    }
}

impl std::error::Error for Fault {}
