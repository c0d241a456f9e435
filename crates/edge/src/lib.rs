//! Connections of clients: listeners, TLS, QUIC, and HTTP/1.1, 2 and 3 as they are spoken over them.
//!
//! Absent from this room: sites, caching, routing, and the meaning of bytes, which is the room `wire`'s. A [`Service`] answers; this room only
//! speaks the protocol, keeps the limits and lets nothing ambiguous through. Two ways lead to the service: [`Service::hit`], called without leaving the read that brought the request, and
//! [`Service::call`] for everything that has to wait.

mod accept;
mod connection;
mod h1;
mod h2;
mod h3;
mod limits;
mod listen;
mod request;
mod send_file;
mod service;
mod stream;
pub mod tls;
mod worker;

pub use accept::Gauges;
pub use h3::endpoint::{Quic, quic_settings, quic_socket};
pub use limits::Limits;
pub use listen::{BindError, Listener, PassedSocket, Socket, bind};
pub use request::content::{RequestBody, RequestBodyError};
pub use send_file::FileRegion;
pub use service::{Again, CLIENT_LEFT, Exchange, Hit, HitOf, Interim, Peer, Service};
pub use worker::{Config, Listeners, Worker};
