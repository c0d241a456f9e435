//! The HTTP RFCs as pure functions: values in, a decision out.
//!
//! Absent from this room: sockets, async, disk, locks, and the clock. Time is always an argument ([`Timestamp`]), so that every rule
//! can be tested as a table. Names are those of RFC 9110, 9111 and 9211.

pub mod accept;
pub mod cache_control;
pub mod cache_status;
pub mod coding;
pub mod combine;
pub mod conditional;
pub mod date;
pub mod decimal;
pub mod dictionary;
pub mod entity_tag;
pub mod field_name;
pub mod freshness;
pub mod hex;
pub mod hop_by_hop;
pub mod invalidation;
pub mod link;
pub mod list;
pub mod omitted;
pub mod percent;
pub mod range;
pub mod reference;
pub mod request;
pub mod request_id;
pub mod reuse;
pub mod shown;
pub mod storable;
pub mod structured;
pub mod target;
pub mod targeted;
#[cfg(test)]
mod test_fields;
pub mod timestamp;
pub mod trace_context;
pub mod validation;
pub mod vary;

pub use request::{FieldLines, RequestFields, RequestHead, Scheme};
pub use request_id::RequestId;
pub use timestamp::Timestamp;
pub use trace_context::TraceIds;
