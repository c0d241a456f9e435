//! The disk's own threads: what a disk does may take a second, and a worker's loop must not stand still for a microsecond of it.
//!
//! Two threads, two bounded queues. A *read* has somebody waiting for it, so reads go first; when too many wait, the next is told that the
//! disk is busy, which is a miss. A *write* has nobody waiting, or can wait; writes are bounded in bytes, and what does not fit is refused.
//!
//! **Writes run one at a time, in the order in which they were queued.** So a job may rely on what an earlier one left on the disk (a file
//! queued before its unlinking exists when that comes), and one thread is always there for readers.
//!
//! **A write that nobody waits for gathers company first**: to wake a thread costs more than to write a small file, so such writes wait a few
//! milliseconds for others, and one waking is for all of them. Each is told whether another of them [follows](Batch::GoesOn), so that they can go to the
//! system together.
//!
//! Results come back through a `tokio::sync::oneshot`, which needs no runtime: any executor can wait for them.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use thiserror::Error;
use tokio::sync::oneshot;

/// The number of threads. More do not make a disk faster, and each has a stack.
pub(crate) const THREADS: usize = 2;
/// The most reads that may wait, some 200 bytes each. At a tenth of a millisecond each, the last one waits for 50 ms.
pub(crate) const READS_MAX: usize = 1_024;
/// The most bytes of writes that may wait or be running.
pub(crate) const WRITE_BYTES_MAX: u64 = 64 << 20;
/// The most writes that may wait, whatever they weigh: unlinking weighs nothing.
pub(crate) const WRITES_MAX: usize = 16_384;
/// The most reads that may overtake a waiting write: many readers must not keep a response off the disk for good.
const OVERTAKING_MAX: usize = 16;
/// The time that a write that nobody waits for may wait for others.
const GATHERING: Duration = Duration::from_millis(5);
/// The bytes of gathered writes with which they begin, however short they have waited.
const GATHERED_BYTES_MAX: u64 = 1 << 20;
/// The time that a pool that is dropped without being closed waits for its writes.
const DROP_WAIT: Duration = Duration::from_secs(5);

/// The queue accepts no more jobs. A read then counts as a miss, a write as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the disk is busy: its queue is full")]
pub(crate) struct Busy;

/// The threads and their queues. Dropping it waits some seconds for the writes; [`close`](Self::close) takes the time as an argument.
pub(crate) struct Io {
    pool: Arc<Pool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Io {
    /// Starts the threads. Fails if the system does not start them.
    pub(crate) fn start() -> io::Result<Self> {
        let io = Self { pool: Arc::default(), threads: Mutex::default() };
        for number in 1..=THREADS {
            let pool = Arc::clone(&io.pool);
            pool.queues.lock().threads += 1;
            let thread = thread::Builder::new().name(format!("seawall-disk-{number}")).spawn(move || pool.work());
            match thread {
                Ok(thread) => io.threads.lock().push(thread),
                Err(error) => {
                    io.pool.queues.lock().threads -= 1;
                    return Err(error);
                }
            }
        }
        Ok(io)
    }

    /// Queues a job that somebody waits for. The job is not begun after its [`Done`] is dropped.
    pub(crate) fn read<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<Done<T>, Busy> {
        let (done, waiting) = oneshot::channel();
        let job: Job = Box::new(move || {
            if !done.is_closed() {
                let _ = done.send(job());
            }
        });
        let mut queues = self.pool.queues.lock();
        if queues.closing || queues.reads.len() >= READS_MAX {
            return Err(Busy);
        }
        queues.reads.push_back(job);
        drop(queues);
        self.pool.work.notify_one();
        Ok(Done(waiting))
    }

    /// Queues a job that keeps `bytes` in memory until it is done. It runs after all writes queued before it, even if its [`Done`] is
    /// dropped. A job heavier than the bound is accepted if it is alone.
    pub(crate) fn write<T: Send + 'static>(&self, bytes: u64, job: impl FnOnce() -> T + Send + 'static) -> Result<Done<T>, Busy> {
        let (done, waiting) = oneshot::channel();
        let job: Job = Box::new(move || {
            let _ = done.send(job());
        });
        self.queue(Write { bytes, job: WriteJob::Alone(job) })?;
        Ok(Done(waiting))
    }

    /// Queues a job like [`write`](Self::write) that nobody waits for: it begins some milliseconds later, with those that are queued meanwhile.
    pub(crate) fn write_gathered(&self, bytes: u64, job: impl FnOnce(Batch) + Send + 'static) -> Result<(), Busy> {
        self.queue(Write { bytes, job: WriteJob::Gathered(Box::new(job)) })
    }

    fn queue(&self, write: Write) -> Result<(), Busy> {
        let mut queues = self.pool.queues.lock();
        let heavy = queues.write_bytes > 0 && queues.write_bytes.saturating_add(write.bytes) > WRITE_BYTES_MAX;
        if queues.closing || heavy || queues.writes.len() >= WRITES_MAX {
            return Err(Busy);
        }
        queues.write_bytes += write.bytes;
        let is_wanted = matches!(write.job, WriteJob::Alone(_));
        queues.writes.push_back(write);
        let begins = !queues.due && (is_wanted || queues.write_bytes >= GATHERED_BYTES_MAX);
        queues.due |= begins;
        // A thread that writes looks for more by itself, and one that gathers is woken by its own clock.
        let wakes = !queues.writing && (begins || queues.due || !queues.gathering);
        drop(queues);
        if wakes {
            self.pool.work.notify_one();
        }
        Ok(())
    }

    /// Returns whether half of the room for writes is free. If not, wakes the caller when it is, or when the pool is closed. It is for
    /// callers that can wait instead of losing a write: bodies on their way in, whose origin waits with them.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut queues = self.pool.queues.lock();
        if queues.has_room() {
            return Poll::Ready(());
        }
        if !queues.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            queues.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Returns whether half of the room for reads is free, like [`poll_room`](Self::poll_room). It is for bodies on their way out, which
    /// must not break off because others read as well.
    pub(crate) fn poll_read_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut queues = self.pool.queues.lock();
        if queues.has_read_room() {
            return Poll::Ready(());
        }
        if !queues.reading.iter().any(|waker| waker.will_wake(cx.waker())) {
            queues.reading.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Accepts no more jobs, waits for the queued ones, at most for `wait`, and drops the rest. Returns whether all were done.
    pub(crate) fn close(&self, wait: Duration) -> bool {
        let mut queues = self.pool.queues.lock();
        queues.closing = true;
        self.pool.work.notify_all();
        let mut threads = self.threads.lock();
        // The last owner may be a job: a thread cannot wait for itself.
        if !threads.iter().any(|thread| thread.thread().id() == thread::current().id()) {
            let deadline = Instant::now() + wait;
            while queues.threads > 0 && !self.pool.gone.wait_until(&mut queues, deadline).timed_out() {}
        }
        let (reads, writes) = (std::mem::take(&mut queues.reads), std::mem::take(&mut queues.writes));
        let (waiting, reading) = (std::mem::take(&mut queues.waiting), std::mem::take(&mut queues.reading));
        queues.write_bytes = 0;
        let drained = reads.is_empty() && writes.is_empty() && queues.threads == 0;
        drop(queues);
        if drained {
            threads.drain(..).for_each(|thread| drop(thread.join()));
        }
        drop((reads, writes));
        waiting.into_iter().chain(reading).for_each(Waker::wake);
        drained
    }

    /// Returns whether the pool is closed, and accepts no more jobs for good.
    pub(crate) fn is_closed(&self) -> bool {
        self.pool.queues.lock().closing
    }

    /// Returns the bytes of writes that wait or are running.
    pub(crate) fn write_bytes(&self) -> u64 {
        self.pool.queues.lock().write_bytes
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        self.close(DROP_WAIT);
    }
}

/// The future result of a job; `None` if there never will be one, because the pool was closed or the job panicked. Cancel-safe.
#[derive(Debug)]
pub(crate) struct Done<T>(oneshot::Receiver<T>);

impl<T> Future for Done<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0).poll(cx).map(Result::ok)
    }
}

impl<T> Done<T> {
    /// Waits on this thread for the result.
    #[cfg(test)]
    pub(crate) fn wait(self) -> Option<T> {
        self.0.blocking_recv().ok()
    }
}

type Job = Box<dyn FnOnce() + Send>;

struct Write {
    bytes: u64,
    job: WriteJob,
}

enum WriteJob {
    /// Somebody may wait for it.
    Alone(Job),
    Gathered(Box<dyn FnOnce(Batch) + Send>),
}

/// Says what comes after a gathered write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batch {
    /// Another gathered write comes next, so this one may leave work for it.
    GoesOn,
    /// Something else comes next, or nothing: what was left must be done now.
    Ends,
}

#[derive(Default)]
struct Pool {
    queues: Mutex<Queues>,
    /// Signals that there is work, or that no more will come.
    work: Condvar,
    /// Signals that a thread has ended.
    gone: Condvar,
}

#[derive(Default)]
struct Queues {
    reads: VecDeque<Job>,
    writes: VecDeque<Write>,
    /// The bytes of `writes` and of the running one.
    write_bytes: u64,
    /// Whether one thread is writing; the other then only reads.
    writing: bool,
    /// Whether one thread waits until the writes have gathered.
    gathering: bool,
    /// Whether the writes have gathered, or somebody waits for one of them: all that are queued may run.
    due: bool,
    /// The number of reads begun since the oldest write began to wait.
    overtaking: usize,
    /// The tasks that wait for room for writes: at most one for each body on its way in.
    waiting: Vec<Waker>,
    /// The tasks that wait for room for reads: at most one for each body on its way out.
    reading: Vec<Waker>,
    closing: bool,
    threads: usize,
}

enum Next {
    Read(Job),
    Write(Write, Batch),
}

impl Queues {
    fn has_room(&self) -> bool {
        self.closing || (self.write_bytes <= WRITE_BYTES_MAX / 2 && self.writes.len() <= WRITES_MAX / 2)
    }

    fn has_read_room(&self) -> bool {
        self.closing || self.reads.len() <= READS_MAX / 2
    }

    fn may_write(&self) -> bool {
        !self.writing && !self.writes.is_empty() && (self.due || self.closing)
    }

    /// Returns whether writes wait for others, and nobody for that.
    fn gathers(&self) -> bool {
        !self.writing && !self.gathering && !self.due && !self.writes.is_empty()
    }

    fn next(&mut self) -> Option<Next> {
        let may_write = self.may_write();
        if (!may_write || self.overtaking < OVERTAKING_MAX)
            && let Some(job) = self.reads.pop_front()
        {
            self.overtaking += usize::from(may_write);
            return Some(Next::Read(job));
        }
        let write = if may_write { self.writes.pop_front() } else { None }?;
        self.writing = true;
        self.due = !self.writes.is_empty();
        self.overtaking = 0;
        let goes_on = matches!(self.writes.front(), Some(Write { job: WriteJob::Gathered(_), .. }));
        Some(Next::Write(write, if goes_on { Batch::GoesOn } else { Batch::Ends }))
    }
}

impl Pool {
    fn work(&self) {
        let mut queues = self.queues.lock();
        loop {
            match queues.next() {
                Some(next) => {
                    let more = queues.may_write();
                    drop(queues);
                    // This thread goes to read, so the other one has to write.
                    if more {
                        self.work.notify_one();
                    }
                    self.run(next);
                    queues = self.queues.lock();
                }
                None if queues.closing && queues.writes.is_empty() => break,
                None if queues.gathers() => {
                    queues.gathering = true;
                    // Who wakes this thread earlier has other work for it, and the writes begin with that.
                    let _ = self.work.wait_for(&mut queues, GATHERING);
                    queues.gathering = false;
                    queues.due = !queues.writes.is_empty();
                }
                None => self.work.wait(&mut queues),
            }
        }
        queues.threads -= 1;
        self.gone.notify_all();
    }

    /// Runs a job. A job that panics is lost, and its waiter is told; the thread and the other jobs go on.
    fn run(&self, next: Next) {
        let written = match &next {
            Next::Read(_) => None,
            Next::Write(write, _) => Some(write.bytes),
        };
        let _ = catch_unwind(AssertUnwindSafe(|| match next {
            Next::Read(job) | Next::Write(Write { job: WriteJob::Alone(job), .. }, _) => job(),
            Next::Write(Write { job: WriteJob::Gathered(job), .. }, batch) => job(batch),
        }));
        let mut queues = self.queues.lock();
        let Some(bytes) = written else {
            let woken = if queues.has_read_room() { std::mem::take(&mut queues.reading) } else { Vec::new() };
            drop(queues);
            woken.into_iter().for_each(Waker::wake);
            return;
        };
        queues.writing = false;
        // A closed pool has dropped its writes, and this one with them.
        queues.write_bytes = queues.write_bytes.saturating_sub(bytes);
        let woken = if queues.has_room() { std::mem::take(&mut queues.waiting) } else { Vec::new() };
        let closing = queues.closing;
        drop(queues);
        // This thread itself looks for the next write; the other one has to see that no more will come.
        if closing {
            self.work.notify_all();
        }
        woken.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io").field("write_bytes", &self.write_bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
