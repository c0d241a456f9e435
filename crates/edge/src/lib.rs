//! Bytes to one request and back: listeners, connections, TLS, HTTP/1.1, 2 and 3.
//!
//! Absent from this room: sites, caching, routing. A [`Service`] answers; this room only speaks the protocol, keeps the limits and lets
//! nothing ambiguous through. Two ways lead to the service: [`Service::hit`], called without leaving the read that brought the request, and
//! [`Service::call`] for everything that has to wait.

mod accept;
mod connection;
mod h1;
mod h2;
mod h3;
mod head;
mod hpack;
mod inspect;
mod limits;
mod line;
mod listen;
mod send_file;
mod service;
mod stream;
pub mod tls;
mod worker;

pub use accept::Gauges;
pub use h2::{InspectedEvent, InspectedHttp2};
pub use h3::{
    endpoint::{Quic, quic_settings, quic_socket},
    inspect::{InspectedStream, inspect_section, write_section},
};
pub use hpack::InspectedHpack;
pub use inspect::{Inspected, InspectedContent, InspectedHead, inspect};
pub use limits::Limits;
pub use listen::{BindError, Listener, PassedSocket, Socket, bind};
pub use send_file::FileRegion;
pub use service::{Exchange, Hit, HitOf, Interim, Peer, RequestBody, RequestBodyError, Service};
pub use worker::{Listeners, Shared, Worker};
