//! The reasons why a picture is not what it should be.

use std::io;

/// Error of a picture. The messages continue a sentence that begins with the name of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The system does not give the file.
    #[error("cannot be read: {0}")]
    Unreadable(io::ErrorKind),
    /// The file has no bytes.
    #[error("is empty")]
    Empty,
    /// The file begins like no kind of picture that is known.
    #[error("is not a picture of a known kind (JPEG, PNG, GIF, WebP, AVIF, BMP, SVG)")]
    Unknown,
    /// The file ends where more should come.
    #[error("ends too early; it may have been copied only in part")]
    Truncated,
    /// The file contradicts its own format.
    #[error("is damaged: {0}")]
    Damaged(String),
    /// The picture has no width or no height.
    #[error("does not say how large it is")]
    NoSize,
    /// The picture is larger than [`PIXELS_MAX`](crate::PIXELS_MAX) or [`SIDE_MAX`](crate::SIDE_MAX) allow.
    #[error("has {width} × {height} pixels; the limit is 50 million, and 30,000 on a side: make it smaller")]
    TooLarge {
        /// The width in pixels.
        width: u32,
        /// The height in pixels.
        height: u32,
    },
    /// The file has more bytes than [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX).
    #[error("is larger than 128 MiB: make it smaller")]
    TooLong,
    /// The file is not the one that was there when the variants were planned.
    #[error("changed while it was read")]
    Changed,
    /// Too much waits to be made already.
    #[error("has to wait: many other pictures are being made")]
    Busy,
    /// The encoder failed.
    #[error("cannot be encoded: {0}")]
    Encoder(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Truncated } else { Self::Unreadable(error.kind()) }
    }
}

impl Fault {
    /// Returns what readers get of a picture with this fault, and what to do about it. It continues the message.
    ///
    /// Metadata is left out of what is broken, too, so nothing broken is sent as it is: bytes that cannot be told from metadata go with it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "check its permissions",
            Self::Empty => "readers see nothing there: copy the picture here again, or remove the file",
            Self::Unknown => "readers may see nothing there: save it as one of these, or give it the name of what it is",
            Self::Truncated | Self::Damaged(_) | Self::NoSize => {
                "no sizes are made of it, and readers get what can be read of it, without its metadata: copy it here again, or save it anew"
            }
            Self::TooLarge { .. } | Self::TooLong => "until then no sizes are made of it, and readers get it whole, without its metadata",
            Self::Changed | Self::Busy | Self::Encoder(_) => "for now, readers get it whole, without its metadata",
        }
    }

    /// Tells whether the same picture may have no fault at another time.
    pub(crate) const fn is_passing(&self) -> bool {
        matches!(self, Self::Changed | Self::Busy | Self::Unreadable(_))
    }

    pub(crate) fn damaged(why: impl Into<String>) -> Self {
        Self::Damaged(why.into())
    }
}
