//! HTTP/2 (RFC 9113) without a socket: [`Core`] is one connection, from bytes to requests and from answers to bytes.

mod content;
mod core;
mod frame;
mod guard;
mod output;
mod piece;
mod priority;

pub use self::core::{Core, Event, Fault, OUTPUT_MAX, Over};
pub use content::{BrokenOff, Content, Feed, content};
pub use frame::Code;
pub use output::{Output, SLICES};
pub use piece::Piece;
