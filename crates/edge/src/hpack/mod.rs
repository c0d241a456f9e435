//! HPACK (RFC 7541): the fields of HTTP/2, from bytes to bytes, for a server.
//!
//! A [`Decoder`] hands out names and values as slices that live for one call; an [`Encoder`] writes those of a response as it is handed them.
//! Both work without allocating, once their tables have grown to what a connection uses. Deliberately not here: what a field may be, how
//! many of them there may be, and everything about frames. This module knows nothing but the standard library.

mod decode;
mod encode;
pub(crate) mod huffman;
mod inspect;
pub(crate) mod integer;
mod statics;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use decode::Decoder;
pub(crate) use encode::Encoder;
pub use inspect::InspectedHpack;

/// One field of a block. The slices live for the call only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Exactly if the name, byte for byte, is in the static table: the index of its first entry there, however the client sent it.
    pub(crate) index: Option<u8>,
}

/// Why a block could not be decoded. It leaves the table unusable, so whatever it is, the connection ends with COMPRESSION_ERROR
/// (RFC 9113 §4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HpackError {
    /// The block ends within a field.
    #[error("a header block ends within a field")]
    Truncated,
    /// RFC 7541 §5.1: a number that no header block can need.
    #[error("a number in a header block is too large, or longer than it has to be")]
    Integer,
    /// RFC 7541 §2.3.3, §6.1: no entry has this index.
    #[error("an index in a header block stands for nothing")]
    Index,
    /// RFC 7541 §5.2: end-of-string symbol, or padding that is longer than seven bits or not a part of that symbol.
    #[error("malformed Huffman coding in a header block")]
    Huffman,
    /// RFC 7541 §4.2, §6.3: after the first field, or beyond what was announced.
    #[error("an update of the table's size that is not allowed")]
    SizeUpdate,
}
