//! The head of a request, whichever version of HTTP it came over.
//!
//! There is one judge for all versions: [`parse`], which reads a head as HTTP/1 writes it. What came as fields over HTTP/2 or 3 is first
//! written so by a [`HeadBuilder`]. What is left of a head without what browsers differ in, [`essentials`] tells without reading it.

pub mod essentials;
mod from_fields;
mod parse;

pub use from_fields::{Built, HeadBuilder, HeadText};
pub use parse::{FieldTable, Framing, Head, Parsed, Reject, field_table, parse};
