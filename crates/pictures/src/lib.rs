//! Pictures of a blog in the sizes and forms that readers need, made in the background and kept.
//!
//! [`Source`] is a picture of an author: what its head says ([`Facts`]), and the [`Variant`]s that are made of it. A [`Workshop`] makes them
//! on threads of their own, those that somebody waits for first, and keeps them on a [`Shelf`]. [`clean`](fn@clean) takes out of a file what
//! is not for readers: where a photograph was taken, with what, and by whom. The author's files themselves are only read.
//!
//! Absent from this room: blogs, addresses, HTTP.

mod clean;
mod digest;
mod facts;
mod fault;
mod make;
#[cfg(test)]
mod sample;
mod shelf;
mod source;
mod variants;
mod whole;
mod workshop;

pub use clean::{Cleaned, check_clean, clean};
pub use facts::{Facts, Format};
pub use fault::Fault;
pub use shelf::Shelf;
pub use source::Source;
pub use variants::{Form, Variant, variants};
pub use workshop::{Counts, Desk, Workshop};

/// Larger files are not read as pictures.
pub const FILE_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// The most pixels of a picture of which variants are made. Reading one takes up to twelve bytes for each of them: three for its colours, six for the
/// coefficients of a progressive JPEG, three for what is made of it; so 600 MB at worst, and 180 MB for an ordinary JPEG.
pub const PIXELS_MAX: u64 = 50_000_000;

/// The largest width and height of a picture of which variants are made.
pub const SIDE_MAX: u32 = 30_000;
