//! HPACK (RFC 7541): the fields of HTTP/2, from bytes to bytes, as a server needs it.
//!
//! A [`Decoder`] hands out names and values as slices that live for one call; an [`Encoder`] writes those of a response as it is handed them.
//! Both work without allocating, once their tables have grown to what a connection uses. Deliberately not here: what a field may be, how
//! many of them there may be, and everything about frames. This module knows nothing but the standard library.

mod decode;
mod encode;
pub(crate) mod huffman;
pub(crate) mod integer;
mod statics;
mod table;
#[cfg(test)]
mod tests;

pub use decode::Decoder;
pub use encode::Encoder;

/// One field of a block. The slices are valid during the call only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name, in small letters where the client keeps to the rules.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The index of the first entry of the static table with exactly this name, if there is one, however the client sent it.
    pub index: Option<u8>,
}

/// The reason why a block could not be decoded. The table is then unusable, so any of them ends the connection with COMPRESSION_ERROR (RFC
/// 9113 §4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// The block ends within a field.
    #[error("a header block ends within a field")]
    Truncated,
    /// A number is larger than any header block can need (RFC 7541 §5.1).
    #[error("a number in a header block is too large, or longer than it has to be")]
    Integer,
    /// No entry has this index (RFC 7541 §2.3.3, §6.1).
    #[error("an index in a header block stands for nothing")]
    Index,
    /// A code has an end-of-string symbol, or padding that is longer than seven bits or not a part of that symbol (RFC 7541 §5.2).
    #[error("malformed Huffman coding in a header block")]
    Huffman,
    /// A size update comes after the first field, or is beyond what was announced (RFC 7541 §4.2, §6.3).
    #[error("an update of the table's size that is not allowed")]
    SizeUpdate,
}
