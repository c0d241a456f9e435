//! Content codings: bytes become gzip, Brotli or Zstandard.
//!
//! Two ways, since they have different prices. What is stored is coded [whole](encode), once, as small as it gets, by the threads of a
//! [`Workshop`] that nobody waits for. What only passes is coded as a [`Stream`], cheaply, and flushed whenever its origin pauses.
//!
//! The way back is there for gzip alone: its own checksum says whether [decoded](Decoding) content is what was coded.
//!
//! Absent from this room: sockets, async, fields. Which coding a client gets is decided elsewhere ([`semantics::coding`]).

mod dictionary;
mod stream;
mod whole;
mod workshop;

pub use dictionary::{DictionaryHash, dictionary_hash, encode_with_dictionary};
pub use stream::Stream;
pub use whole::{Damaged, Decoding, decode_gzip, encode, is_gzip_of};
pub use workshop::{Busy, Counts, Workshop};
