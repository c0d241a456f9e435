//! HTTP/1.1: a loop on epoll for each worker.
//!
//! A socket is registered once, edge-triggered, and then costs one write and one read for each answer that fits into a buffer: a read that brings less
//! than there is room for has drained it. The worker has one buffer for all connections. A request that no visitor has changed is sent from bytes that
//! were made once. A timer of the system wakes the loop at the moments of the schedule.
//!
//! A worker has [`client`]s, these have [`connection`]s, and a connection has requests under way. Everything that fails is told to the client's visitor
//! and to the recorder; nothing that a server does ends a run.

pub(crate) mod chunked;
mod client;
mod connection;
mod deadlines;
mod event_loop;
mod message;
mod pacing;
mod response;
mod slots;
mod tls;

use self::event_loop::Loop;
use super::{Error, Worker};
use crate::record::Tally;

pub(super) fn work(worker: Worker) -> Result<Tally, Error> {
    let begins = worker.starting_line();
    match Loop::new(worker) {
        Ok(ready) => Ok(ready.run()),
        Err(error) => {
            // The others wait for this worker.
            begins.wait();
            Err(Error::Worker(format!("a worker has no socket to wait with: {error}")))
        }
    }
}
