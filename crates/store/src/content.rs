//! The body of a stored response: in memory, or too long for it and in a file.

use bytes::Bytes;

use crate::spool::DiskBody;

/// Where a stored body is.
#[derive(Debug, Clone)]
pub enum Content {
    /// In memory. Should own an allocation of exactly its size, as [`Writer::complete`](crate::Writer::complete) makes it: a slice of a
    /// larger buffer would keep all of it alive while only the slice is weighed.
    Memory(Bytes),
    /// In the disk tier's file, to be read in pieces.
    Disk(DiskBody),
}

impl Content {
    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Disk(body) => body.len(),
        }
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they are at hand.
    #[must_use]
    pub const fn memory(&self) -> Option<&Bytes> {
        match self {
            Self::Memory(bytes) => Some(bytes),
            Self::Disk(_) => None,
        }
    }

    /// Whether a read has found the file damaged or gone: then the response is of no use any more.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Disk(body) => body.is_damaged(),
        }
    }

    /// Bytes in memory.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::Disk(body) => body.weight(),
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
