//! Bytes of HTTP's versions to values and back: request heads, field lines, HPACK, QPACK, frames and what a stream's frames may be.
//!
//! Everything here is driven from outside: a caller brings bytes and the time, and takes away values and bytes. Where something has to wait
//! for more bytes, it says so with [`std::task::Poll`]; who reads them from where is not its affair.
//!
//! Absent from this room: sockets, tasks and any runtime (`Cargo.toml` names none), sites, caching.

pub mod h2;
pub mod h3;
pub mod head;
pub mod hpack;
mod limits;
pub mod qpack;

pub use limits::HeadLimits;
