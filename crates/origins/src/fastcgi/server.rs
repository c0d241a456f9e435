//! What all workers know of a FastCGI server together: who waits for one of its children, and which idle connections hold one.
//!
//! A child of php-fpm serves one connection until that is closed, idle or not. So an idle connection is worth keeping only while there are children
//! for everybody, and whoever opens one, not knowing whether a child is left for it, ends all that are idle.

use std::{
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use parking_lot::Mutex;

use super::{connection::Connection, spool::Spool};
use crate::server::{Pool, ServerOptions};

pub(super) type Connections = Pool<Box<Connection>>;

/// A FastCGI server, as all workers know it.
#[derive(Debug)]
pub struct FastCgiServer {
    pub(super) options: Arc<ServerOptions>,
    pub(super) spool: Spool,
    /// Requests over new connections to which nothing has come yet: each may be waiting for a child.
    waiting: AtomicUsize,
    pools: Mutex<Vec<Weak<Connections>>>,
}

impl FastCgiServer {
    /// Describes a server that is reached by these options. Long uploads go to a file in the system's folder for such files.
    #[must_use]
    pub fn new(options: Arc<ServerOptions>) -> Self {
        Self::with_uploads_in(options, std::env::temp_dir())
    }

    /// Describes a server as [`FastCgiServer::new`] does. Long uploads go to a file in `folder`.
    #[must_use]
    pub fn with_uploads_in(options: Arc<ServerOptions>, folder: PathBuf) -> Self {
        Self { options, spool: Spool::new(folder), waiting: AtomicUsize::new(0), pools: Mutex::default() }
    }

    /// Makes the connections of one worker.
    pub(super) fn pool(&self) -> Arc<Connections> {
        let pool = Arc::new(Pool::new(Arc::clone(&self.options)));
        let mut pools = self.pools.lock();
        pools.retain(|other| other.strong_count() > 0);
        pools.push(Arc::downgrade(&pool));
        pool
    }

    /// Notes that a new connection to an address is about to wait for a child, and closes those that hold one for nothing.
    pub(super) fn wait_for_child(self: &Arc<Self>, address: usize) -> Waiting {
        self.waiting.fetch_add(1, SeqCst);
        for pool in self.pools.lock().iter().filter_map(Weak::upgrade) {
            pool.forget_idle(address);
        }
        Waiting(Arc::clone(self))
    }
}

/// A request that may be waiting for a child, until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting(Arc<FastCgiServer>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, SeqCst);
    }
}

/// What a request holds until its response has ended, beside its connection.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) server: Arc<FastCgiServer>,
    /// Keeps the worker looking for idle connections to be closed.
    pub(super) _busy: Arc<()>,
}

impl Held {
    /// Returns whether an idle connection keeps nobody waiting.
    pub(super) fn may_keep(&self) -> bool {
        self.server.waiting.load(SeqCst) == 0
    }
}
