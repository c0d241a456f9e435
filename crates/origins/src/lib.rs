//! Whatever can answer a request: an HTTP server, a folder of files.
//!
//! Absent from this room: caching. An [`Origin`] takes a request that was rebuilt for it and answers; what to send, what to keep and
//! whom to tell is decided elsewhere.

pub mod files;
pub mod http;
pub mod server;

mod body;
mod error;
mod file_body;
mod forms;

use std::{future::Future, pin::Pin};

pub use body::Body;
pub use error::{Fault, OriginError};
pub use file_body::{FileBody, FileRegion};
pub use forms::{FileForms, Forms};

/// A future that stays on its worker's thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Is told of an interim response: its status and its fields.
pub type OnInterim<'a> = dyn Fn(::http::StatusCode, &::http::HeaderMap) + 'a;

/// Anything behind the cache. One instance belongs to one worker: pools and connections are not shared between threads.
///
/// The request is final: target in origin-form, `Host` set, hop-by-hop fields gone. The response's body streams, and its fields are
/// end-to-end: whatever concerned a connection has been taken out (RFC 9110 §7.6.1).
pub trait Origin {
    /// Asks for a response. Dropping the future gives the request up, which closes its connection.
    ///
    /// # Errors
    /// When no usable final response came: see [`Fault`].
    fn fetch(&self, request: ::http::Request<Body>) -> LocalFuture<'_, Result<::http::Response<Body>, OriginError>>;

    /// The same; the interim responses that come before the final one (RFC 9110 §15.2) are told as they come, with their end-to-end fields.
    /// A 100 is not among them: what it answers was not the client's to ask.
    ///
    /// # Errors
    /// As [`Origin::fetch`].
    fn fetch_with_interim<'a>(
        &'a self,
        request: ::http::Request<Body>,
        _interim: &'a OnInterim<'a>,
    ) -> LocalFuture<'a, Result<::http::Response<Body>, OriginError>> {
        self.fetch(request)
    }
}
