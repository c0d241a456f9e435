//! Whatever can answer a request: an HTTP server, PHP, a folder of files.
//!
//! Absent from this room: caching. An [`Origin`] takes a request that is ready to be sent, and is told of its client by an [`Arrival`]; what
//! to ask, what to keep and whom to tell is decided elsewhere.

pub mod fastcgi;
pub mod files;
pub mod http;
pub mod media_type;
pub mod php;
pub mod server;

mod arrival;
mod body;
mod error;
mod file_body;
mod forms;
mod names;
mod request;

use std::{future::Future, pin::Pin};

pub use arrival::{Arrival, Caller};
pub use body::Body;
pub use error::{Fault, OriginError};
pub use file_body::{FileBody, FileRegion};
pub use forms::{FileForms, Forms};
pub use names::is_secret;
pub use request::{end_to_end, is_for_proxies_only, keep_upgrade};

/// Marks a response, in its extensions, that a folder has given and not the server beside it: it says nothing of whether that can be reached.
#[derive(Clone, Copy, Debug)]
pub struct OfFolder;

/// A future that stays on its worker's thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A function that is told of an interim response: its status and its fields.
pub type OnInterim<'a> = dyn Fn(::http::StatusCode, &::http::HeaderMap) + 'a;

/// Anything behind the cache. One instance belongs to one worker: pools and connections are not shared between threads.
pub trait Origin {
    /// Asks for a response. Dropping the future gives the request up, which closes its connection.
    ///
    /// The request is final: target in origin-form, `Host` set, and no fields but end-to-end ones ([`end_to_end`]). Nothing in it tells of the
    /// client: `arrival` does, and each kind of origin says it in its own way, or not at all. The response's content streams, and its fields are
    /// end-to-end: whatever concerned a connection has been taken out (RFC 9110 §7.6.1).
    ///
    /// `interim` is told of the interim responses that come before the final one (RFC 9110 §15.2), as they come, with their end-to-end
    /// fields. A 100 is not among them: what it answers was not the client's to ask.
    ///
    /// # Errors
    /// Fails when no usable final response came: see [`Fault`].
    fn fetch<'a>(
        &'a self,
        request: ::http::Request<Body>,
        arrival: &'a Arrival<'a>,
        interim: Option<&'a OnInterim<'a>>,
    ) -> LocalFuture<'a, Result<::http::Response<Body>, OriginError>>;
}
