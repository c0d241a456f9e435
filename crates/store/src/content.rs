//! The body of a stored response: in memory, too long for it and in a file, or in memory in the forms alone that are made of it.

use bytes::Bytes;

use crate::spool::DiskBody;

/// The place of a stored body.
#[derive(Debug, Clone)]
pub enum Content {
    /// A body in memory. It should own an allocation of exactly its size, as [`Writer::complete`](crate::Writer::complete) makes it: a
    /// slice of a larger buffer would keep all of it alive while only the slice is weighed.
    Memory(Bytes),
    /// A body in the disk tier's file, to be read in pieces.
    Disk(DiskBody),
    /// A body that is in memory in its [forms](crate::Forms) alone. Whoever wants the body itself makes it of one of them.
    Packed {
        /// The length of the body itself, in bytes.
        length: u64,
    },
}

impl Content {
    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Disk(body) => body.len(),
            Self::Packed { length } => *length,
        }
    }

    /// Returns whether the body is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes, if they are in memory as they are.
    #[must_use]
    pub const fn memory(&self) -> Option<&Bytes> {
        match self {
            Self::Memory(bytes) => Some(bytes),
            Self::Disk(_) | Self::Packed { .. } => None,
        }
    }

    /// Returns whether a read has found the file damaged or missing: then the response must not be used any more.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        match self {
            Self::Memory(_) | Self::Packed { .. } => false,
            Self::Disk(body) => body.is_damaged(),
        }
    }

    /// Returns the bytes that it takes in memory.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::Disk(body) => body.weight(),
            // The forms weigh themselves.
            Self::Packed { .. } => 0,
        }
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}

impl From<DiskBody> for Content {
    fn from(body: DiskBody) -> Self {
        Self::Disk(body)
    }
}
