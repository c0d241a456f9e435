//! Threads that do what would hold a worker up: few of them, at low priority, with a queue that has an end.

use std::{
    collections::VecDeque,
    fmt,
    num::NonZeroUsize,
    sync::Arc,
    thread::{self, JoinHandle},
};

use parking_lot::{Condvar, Mutex};

/// Jobs that wait, of each urgency. A job holds on to the content it is about, which nearly always is stored anyway.
const WAITING_MAX: usize = 1_024;
/// Threads: a quarter of the cores, one at least.
const CORES_PER_THREAD: usize = 4;
/// Behind whatever else the machine has to do; the least is 19.
const NICENESS: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

/// A few threads that make forms of content. They are started when there is something to do for the first time.
///
/// Bounds: 1,024 urgent jobs and 1,024 others wait; a further one is refused and counted. Dropping it ends the threads with the jobs that they
/// are at; what waits is left undone.
pub struct Workshop {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    threads_max: usize,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    rested: Condvar,
}

#[derive(Default)]
struct Queue {
    urgent: VecDeque<Job>,
    others: VecDeque<Job>,
    at_work: usize,
    idle: usize,
    closed: bool,
    done: u64,
    refused: u64,
}

/// The queue was full: the job was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy;

/// What a workshop has done and has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Jobs that wait or are being done.
    pub waiting: usize,
    /// Jobs done since the start.
    pub done: u64,
    /// Jobs refused since the start, because too many waited.
    pub refused: u64,
}

impl Default for Workshop {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self::of(cores / CORES_PER_THREAD)
    }
}

impl Workshop {
    fn of(threads: usize) -> Self {
        Self { shared: Arc::default(), threads: Mutex::default(), threads_max: threads.max(1) }
    }

    /// Has a job done as soon as a thread is free: urgent ones first, then those that came first.
    ///
    /// # Errors
    /// If too many wait already.
    pub fn submit(&self, urgent: bool, job: impl FnOnce() + Send + 'static) -> Result<(), Busy> {
        let mut queue = self.shared.queue.lock();
        let waiting = if urgent { &mut queue.urgent } else { &mut queue.others };
        if waiting.len() >= WAITING_MAX {
            queue.refused += 1;
            return Err(Busy);
        }
        waiting.push_back(Box::new(job));
        let hands = queue.idle;
        drop(queue);
        if hands == 0 {
            self.hire();
        }
        self.shared.arrived.notify_one();
        Ok(())
    }

    /// What it has done and has to do.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let queue = self.shared.queue.lock();
        Counts { waiting: queue.urgent.len() + queue.others.len() + queue.at_work, done: queue.done, refused: queue.refused }
    }

    /// Waits until nothing is left to do: for tests, and for those who want to see what comes of it.
    pub fn wait_until_idle(&self) {
        let mut queue = self.shared.queue.lock();
        while !queue.urgent.is_empty() || !queue.others.is_empty() || queue.at_work > 0 {
            self.shared.rested.wait(&mut queue);
        }
    }

    /// One thread more, if there may be one. If the system has none to give, the others do it, or the next attempt does.
    fn hire(&self) {
        let mut threads = self.threads.lock();
        if threads.len() >= self.threads_max {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let name = format!("coder-{}", threads.len());
        if let Ok(thread) = thread::Builder::new().name(name).spawn(move || work(&shared)) {
            threads.push(thread);
        }
    }
}

fn work(shared: &Shared) {
    // Linux takes this for the thread alone. Where it is refused, the thread is like any other.
    let _ = rustix::process::nice(NICENESS);
    let mut queue = shared.queue.lock();
    loop {
        if queue.closed {
            return;
        }
        let Some(job) = queue.urgent.pop_front().or_else(|| queue.others.pop_front()) else {
            queue.idle += 1;
            shared.arrived.wait(&mut queue);
            queue.idle -= 1;
            continue;
        };
        queue.at_work += 1;
        drop(queue);
        // A coder that panics costs its job, not the thread.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
        queue = shared.queue.lock();
        queue.at_work -= 1;
        queue.done += u64::from(outcome.is_ok());
        if queue.at_work == 0 && queue.urgent.is_empty() && queue.others.is_empty() {
            shared.rested.notify_all();
        }
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let (urgent, others) = {
            let mut queue = self.shared.queue.lock();
            queue.closed = true;
            (std::mem::take(&mut queue.urgent), std::mem::take(&mut queue.others))
        };
        drop((urgent, others));
        self.shared.arrived.notify_all();
        for thread in self.threads.get_mut().drain(..) {
            // The last owner may be a job of this very workshop.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl fmt::Debug for Workshop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workshop").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, sync_channel};

    use super::*;

    fn one_thread() -> Workshop {
        Workshop::of(1)
    }

    /// Keeps the only thread busy until the sender is dropped.
    fn occupied(workshop: &Workshop) -> mpsc::SyncSender<()> {
        let (gate, closed) = sync_channel::<()>(0);
        let (tell, begun) = sync_channel::<()>(1);
        let job = move || {
            let _ = tell.send(());
            let _ = closed.recv();
        };
        workshop.submit(true, job).expect("there is room");
        begun.recv().expect("the thread is at it");
        gate
    }

    #[test]
    fn the_urgent_comes_first_and_the_rest_in_order() {
        let workshop = one_thread();
        let gate = occupied(&workshop);
        let order = Arc::new(Mutex::new(Vec::new()));
        for (urgent, name) in [(false, "a"), (true, "b"), (false, "c"), (true, "d")] {
            let order = Arc::clone(&order);
            workshop.submit(urgent, move || order.lock().push(name)).expect("there is room");
        }
        assert_eq!(workshop.counts().waiting, 5);
        drop(gate);
        workshop.wait_until_idle();
        assert_eq!(*order.lock(), ["b", "d", "a", "c"]);
        assert_eq!(workshop.counts(), Counts { waiting: 0, done: 5, refused: 0 });
    }

    #[test]
    fn a_full_queue_refuses_and_counts() {
        let workshop = one_thread();
        let gate = occupied(&workshop);
        for _ in 0..WAITING_MAX {
            workshop.submit(false, || {}).expect("there is room");
        }
        assert_eq!(workshop.submit(false, || {}), Err(Busy));
        assert_eq!(workshop.submit(true, || {}), Ok(()), "the urgent have room of their own");
        assert_eq!(workshop.counts().refused, 1);
        drop(gate);
        workshop.wait_until_idle();
        assert_eq!(workshop.submit(false, || {}), Ok(()));
    }

    #[test]
    fn a_job_that_panics_costs_itself_alone() {
        let workshop = one_thread();
        workshop.submit(true, || std::panic::resume_unwind(Box::new("a bug"))).expect("there is room");
        workshop.submit(true, || {}).expect("there is room");
        workshop.wait_until_idle();
        assert_eq!(workshop.counts(), Counts { waiting: 0, done: 1, refused: 0 });
    }

    #[test]
    fn what_waits_is_left_undone_at_the_end() {
        let workshop = one_thread();
        let gate = occupied(&workshop);
        let done = Arc::new(Mutex::new(false));
        let flag = Arc::clone(&done);
        workshop.submit(false, move || *flag.lock() = true).expect("there is room");
        let shared = Arc::clone(&workshop.shared);
        let closing = thread::spawn(move || drop(workshop));
        while !shared.queue.lock().closed {
            thread::yield_now();
        }
        drop(gate);
        closing.join().expect("it ends");
        assert!(!*done.lock());
    }
}
