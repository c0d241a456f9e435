//! HTTP/3 (RFC 9114) without its transport: frames, what a stream's frames may be, and error codes.
//!
//! A [`Source`] brings the bytes of one stream. Frames are read as they are wanted: nothing is read ahead for which there was no question.

mod code;
pub mod control;
pub mod frame;
mod head;
mod message;
pub mod purse;

pub use code::{Code, Fault};
pub use head::head_of_section;
pub use message::{Message, Source};
pub use purse::Purse;
