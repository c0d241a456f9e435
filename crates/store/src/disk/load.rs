//! One reading of the disk for everybody who asks for the same key.
//!
//! The first one queues the job; all wait for it; whoever is polled first after it puts the result into memory, and all get what is stored
//! then, whether memory had room for it or not. The job is given up when nobody waits any more before it began.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::io::{Busy, Done};
use crate::hash::{AsIs, KeyHash};
use crate::resource::{Resource, Stored};
use crate::wakers::{self, WakerSlot, Wakers};

/// The reads that are running. There are at most as many as the disk's queue accepts, each with 200 bytes and the responses that it has
/// just read.
pub(crate) struct Loads<R> {
    open: Mutex<HashMap<KeyHash, Arc<Load<R>>, AsIs>>,
}

struct Load<R> {
    key: Box<[u8]>,
    state: Mutex<State<R>>,
}

struct State<R> {
    /// The job's handle. It is kept, or the job would not be begun.
    job: Option<Done<()>>,
    read: Option<Vec<Stored<R>>>,
    promoted: Option<Arc<Resource<R>>>,
    done: bool,
    waiting: usize,
    wakers: Wakers,
}

impl<R> Default for Loads<R> {
    fn default() -> Self {
        Self { open: Mutex::default() }
    }
}

/// The place where the job puts what it has read. When it is dropped empty, all who wait go on without a result.
pub(crate) struct Slot<R>(Arc<Load<R>>);

impl<R> Slot<R> {
    pub(crate) fn fill(self, read: Vec<Stored<R>>) {
        self.0.state.lock().read = Some(read);
    }
}

impl<R> Drop for Slot<R> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.done = true;
        let woken = state.wakers.take();
        drop(state);
        wakers::wake(woken);
    }
}

impl<R> Loads<R> {
    /// Waits for a read of this key and for what `promote` makes of it; begins the read with `begin`, if nobody has. Also returns `None` if
    /// the disk is busy. Cancel-safe.
    /// is busy. Cancel-safe.
    pub(crate) async fn join(
        &self,
        hash: KeyHash,
        key: &[u8],
        begin: impl FnOnce(Slot<R>) -> Result<Done<()>, Busy>,
        promote: impl Fn(Vec<Stored<R>>) -> Option<Arc<Resource<R>>>,
    ) -> Option<Arc<Resource<R>>> {
        let mut waiting = self.enter(hash, key, begin)?;
        poll_fn(|cx| waiting.poll(cx, &promote)).await
    }

    fn enter(&self, hash: KeyHash, key: &[u8], begin: impl FnOnce(Slot<R>) -> Result<Done<()>, Busy>) -> Option<LoadWait<'_, R>> {
        let mut open = self.open.lock();
        if let Some(load) = open.get(&hash) {
            if *load.key != *key {
                return None;
            }
            load.state.lock().waiting += 1;
            let load = Arc::clone(load);
            return Some(LoadWait { loads: self, hash, load, slot: None });
        }
        let state = State { job: None, read: None, promoted: None, done: false, waiting: 1, wakers: Wakers::default() };
        let load = Arc::new(Load { key: key.into(), state: Mutex::new(state) });
        let job = begin(Slot(Arc::clone(&load))).ok()?;
        load.state.lock().job = Some(job);
        open.insert(hash, Arc::clone(&load));
        Some(LoadWait { loads: self, hash, load, slot: None })
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.open.lock().len()
    }
}

struct LoadWait<'a, R> {
    loads: &'a Loads<R>,
    hash: KeyHash,
    load: Arc<Load<R>>,
    slot: WakerSlot,
}

impl<R> LoadWait<'_, R> {
    fn poll(&mut self, cx: &Context<'_>, promote: &impl Fn(Vec<Stored<R>>) -> Option<Arc<Resource<R>>>) -> Poll<Option<Arc<Resource<R>>>> {
        let mut state = self.load.state.lock();
        if !state.done {
            let before = state.wakers.wait(&mut self.slot, cx.waker());
            drop(state);
            drop(before);
            return Poll::Pending;
        }
        // This happens under the lock: the others wait for the task that does it.
        if let Some(read) = state.read.take() {
            state.promoted = promote(read);
        }
        Poll::Ready(state.promoted.clone())
    }
}

impl<R> Drop for LoadWait<'_, R> {
    fn drop(&mut self) {
        let mut open = self.loads.open.lock();
        let mut state = self.load.state.lock();
        let waker = state.wakers.leave(&mut self.slot);
        state.waiting -= 1;
        let last = (state.waiting == 0).then(|| (state.job.take(), state.read.take(), state.promoted.take()));
        drop(state);
        if last.is_some() && open.get(&self.hash).is_some_and(|held| Arc::ptr_eq(held, &self.load)) {
            open.remove(&self.hash);
        }
        drop(open);
        drop((waker, last));
    }
}
