//! Holds what all workers know of a FastCGI server together: who waits for one of its children, and which idle connections hold one.
//!
//! A child of php-fpm serves one connection until that is closed, idle or not. So an idle connection is worth keeping only while there are children
//! for everybody, and whoever opens one, not knowing whether a child is left for it, ends all that are idle.

use std::{
    hash::{BuildHasher as _, RandomState},
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
};

use parking_lot::Mutex;

use super::{Times, ahead::Room, connection::Connection, line::Line, spool::Spool};
use crate::server::{Pool, ServerOptions};

pub(super) type Connections = Pool<Box<Connection>>;

/// A FastCGI server, as all workers know it.
#[derive(Debug)]
pub struct FastCgiServer {
    pub(super) options: Arc<ServerOptions>,
    pub(super) spool: Spool,
    pub(super) room: Room,
    pub(super) times: Times,
    /// Requests that wait for a child.
    waiting: AtomicUsize,
    ids: Ids,
    pools: Mutex<Vec<Weak<Connections>>>,
}

impl FastCgiServer {
    /// Describes a server that is reached by these options. Files for what is too long for the memory are made in the folder that `TMPDIR` names, else in
    /// `/var/tmp`, as `/tmp` is often a part of the memory.
    #[must_use]
    pub fn new(options: Arc<ServerOptions>) -> Self {
        Self::with_files_in(options, folder_for_files())
    }

    /// Describes a server as [`FastCgiServer::new`] does. Long uploads, and long responses to clients that read slowly, go to files in `folder`. They have no
    /// names there: nothing stays behind.
    #[must_use]
    pub fn with_files_in(options: Arc<ServerOptions>, folder: PathBuf) -> Self {
        Self {
            options,
            spool: Spool::new(folder.clone()),
            room: Room::new(folder),
            times: Times::default(),
            waiting: AtomicUsize::new(0),
            ids: Ids::default(),
            pools: Mutex::default(),
        }
    }

    /// Makes the id of a request: in it nobody can see how many there were.
    pub(super) fn next_id(&self) -> String {
        format!("{:016x}", self.ids.secret.hash_one(self.ids.made.fetch_add(1, SeqCst)))
    }

    /// Makes the connections of one worker.
    pub(super) fn pool(&self) -> Arc<Connections> {
        let pool = Arc::new(Pool::new(Arc::clone(&self.options)));
        let mut pools = self.pools.lock();
        pools.retain(|other| other.strong_count() > 0);
        pools.push(Arc::downgrade(&pool));
        pool
    }

    /// Notes that a request waits for a child at an address, and closes the connections that hold one for nothing.
    pub(super) fn wait_for_child(self: &Arc<Self>, address: usize) -> ChildWait {
        self.waiting.fetch_add(1, SeqCst);
        for pool in self.pools.lock().iter().filter_map(Weak::upgrade) {
            pool.forget_idle(address);
        }
        ChildWait(Arc::clone(self))
    }
}

/// Returns the folder for files without names, if nobody names another one.
fn folder_for_files() -> PathBuf {
    const ON_A_DISK: &str = "/var/tmp";
    let is_said = std::env::var_os("TMPDIR").is_some_and(|folder| !folder.is_empty());
    if !is_said && std::fs::metadata(ON_A_DISK).is_ok_and(|folder| folder.is_dir()) { ON_A_DISK.into() } else { std::env::temp_dir() }
}

/// The ids of requests that were made.
#[derive(Debug, Default)]
struct Ids {
    secret: RandomState,
    made: AtomicU64,
}

/// A request that waits for a child, until it is dropped.
#[derive(Debug)]
pub(super) struct ChildWait(Arc<FastCgiServer>);

impl Drop for ChildWait {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, SeqCst);
    }
}

/// Holds what a request keeps until its response has ended, beside its connection.
#[derive(Debug)]
pub(super) struct HeldForRequest {
    pub(super) server: Arc<FastCgiServer>,
    /// The requests of this worker that wait for a child at the address that answers.
    pub(super) line: Arc<Line>,
    /// Keeps the worker looking for idle connections to be closed.
    pub(super) _busy: Arc<()>,
}

impl HeldForRequest {
    /// Returns whether an idle connection keeps nobody waiting.
    pub(super) fn may_keep(&self) -> bool {
        self.server.waiting.load(SeqCst) == 0
    }
}
