//! Error codes: why a stream or a connection ends, as the other end is told (RFC 9114 §8.1, RFC 9204 §6).

/// An error code of HTTP/3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// There is no error: the stream or connection is only not needed any more.
    NoError = 0x100,
    /// We have failed.
    InternalError = 0x102,
    /// The client opened a stream that it may not open.
    StreamCreationError = 0x103,
    /// The client closed a stream that has to stay open.
    ClosedCriticalStream = 0x104,
    /// A frame came where it may not stand.
    FrameUnexpected = 0x105,
    /// A frame is malformed.
    FrameError = 0x106,
    /// The client makes more work than it may.
    ExcessiveLoad = 0x107,
    /// A number in a goodbye or a push goes the wrong way.
    IdError = 0x108,
    /// The settings are malformed.
    SettingsError = 0x109,
    /// The control stream does not begin with settings.
    MissingSettings = 0x10a,
    /// The request was not looked at: it may be sent again elsewhere.
    RequestRejected = 0x10b,
    /// The request or its answer is not wanted any more.
    RequestCancelled = 0x10c,
    /// The stream ended before the request did.
    RequestIncomplete = 0x10d,
    /// The message is malformed.
    MessageError = 0x10e,
    /// A field section cannot be read (RFC 9204).
    DecompressionFailed = 0x200,
    /// The encoder stream has an instruction that was not agreed to (RFC 9204).
    EncoderStreamError = 0x201,
    /// The decoder stream has an instruction that was not agreed to (RFC 9204).
    DecoderStreamError = 0x202,
}

/// Says what has to end: a stream, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The client has left the stream, or is gone altogether.
    Gone,
    /// The message is malformed: its stream is to be reset, the others go on.
    Stream(Code),
    /// The client breaks the protocol: the connection is to be closed.
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
