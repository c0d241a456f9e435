//! What tests of a proxy are written with: a scriptable origin, a client that can send anything, a clock that moves when told,
//! tables of requests and responses that no careful peer may accept, a FastCGI server, a certificate authority, real Valkey and Redis servers,
//! and buckets, of which one is real and one behaves as it is told.
//!
//! A test should read like what the origin says and what the client sees, side by side:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use testkit::{Client, Origin, get, not_modified, ok};
//!
//! let origin = Origin::start();
//! origin.on(get("/post")).reply(ok("v1").field("etag", "\"a\"").field("cache-control", "max-age=10"));
//! origin.on(get("/post").field("if-none-match", "\"a\"")).reply(not_modified());
//!
//! let mut client = Client::connect(origin.addr()).await;
//! client.get("/post").await.status(200).body("v1").field("etag", "\"a\"");
//! # }
//! ```
//!
//! Everything listens on port 0 and nothing sleeps: a [`Gate`] orders events, [`TestClock`] moves time, and whatever waits for a peer
//! gives up after [`PATIENCE`] with a panic that says what it waited for. That bound is real time, so these tools do not go together
//! with tokio's paused clock.
//!
//! Absent on purpose: production use, TLS, HTTP/2, and every other crate of the workspace. Neither the origin nor the client shares a
//! parser with what it tests.

mod bucket;
mod client;
mod clock;
pub mod exposition;
mod fastcgi;
mod fields;
mod gate;
pub mod malformed;
mod origin;
mod pebble;
mod port;
mod program;
mod told_address;
mod valkey;
mod wire;

pub use bucket::{BUCKET, BUCKET_KEY, BUCKET_SECRET, Mood, MoodyBucket, SeaweedFs, weed, weed_arguments};
pub use client::{Answer, Client, Interim, Req};
pub use clock::{TestClock, millis, secs};
pub use fastcgi::{FastCgiPeer, FastCgiRequest, FastCgiServer};
pub use fields::Fields;
pub use gate::Gate;
pub use origin::{
    Expecting, Matcher, Origin, Reply, SeenRequest, any, delete, get, head, method, not_modified, ok, options, post, purge, put, raw,
    status,
};
pub use pebble::{Pebble, PebbleOptions};
pub use port::free_port;
pub use program::write_program;
pub use told_address::told_address;
pub use valkey::{Software, Valkey};

use std::time::Duration;

/// How long anything here waits for a peer before the test fails. On a machine that does much else, five seconds were too few.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Awaits `event` for at most [`PATIENCE`]; a test that hangs says what it hung on instead of running into the harness's own limit.
///
/// # Panics
/// Panics if the event does not come.
pub async fn patiently<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, event).await {
        Ok(value) => value,
        Err(_) => panic!("waited {} s in vain: {what}", PATIENCE.as_secs()),
    }
}
