//! The HTTP RFCs as pure functions: values in, a decision out.
//!
//! Absent from this room: sockets, async, disk, locks, and the clock. Time is always an argument ([`Timestamp`]), so that every rule
//! can be tested as a table. Names are those of RFC 9110, 9111 and 9211.

pub mod request;
pub mod timestamp;

pub use request::{FieldLines, RequestFields, RequestHead, Scheme};
pub use timestamp::Timestamp;
