//! Threads that do what would hold a worker up: few of them, at low priority, with a queue that has an end.

use std::{
    collections::VecDeque,
    fmt,
    num::NonZeroUsize,
    sync::Arc,
    thread::{self, JoinHandle},
};

use parking_lot::{Condvar, Mutex};

/// The most waiting jobs of each urgency. A job holds on to its content, which nearly always is stored anyway.
const WAITING_MAX: usize = 1_024;
/// The number of cores for each thread: the workshop uses a quarter of the cores, and at least one thread.
const CORES_PER_THREAD: usize = 4;
/// The niceness of the threads: they come after everything else the machine has to do. The lowest priority is 19.
const NICENESS: i32 = 10;

struct Job {
    run: Box<dyn FnOnce() + Send>,
    /// Whether it encodes content, and so is counted when it is done.
    encodes: bool,
}

/// A few threads that encode content. They are started when there is something to do for the first time.
///
/// Bounds: 1,024 urgent jobs and 1,024 others wait; a further one is refused and counted. Dropping the workshop ends the threads after the
/// jobs that they are doing; jobs that wait are not done.
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

/// The queue was full, so the job was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy;

/// The numbers of jobs of a workshop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Jobs that wait or are being done.
    pub waiting: usize,
    /// Encoding jobs done since the start.
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

    /// Queues a job until a thread is free. Urgent jobs are done first, then those that came first.
    ///
    /// # Errors
    /// Fails if too many jobs wait already.
    pub fn submit(&self, urgent: bool, job: impl FnOnce() + Send + 'static) -> Result<(), Busy> {
        self.queue(urgent, Job { run: Box::new(job), encodes: true })
    }

    /// Queues an urgent job that encodes nothing. It is not counted when it is done.
    ///
    /// # Errors
    /// Fails if too many jobs wait already.
    pub fn submit_other(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Busy> {
        self.queue(true, Job { run: Box::new(job), encodes: false })
    }

    fn queue(&self, urgent: bool, job: Job) -> Result<(), Busy> {
        let mut queue = self.shared.queue.lock();
        let waiting = if urgent { &mut queue.urgent } else { &mut queue.others };
        if waiting.len() >= WAITING_MAX {
            queue.refused += 1;
            return Err(Busy);
        }
        waiting.push_back(job);
        let hands = queue.idle;
        drop(queue);
        if hands == 0 {
            self.hire();
        }
        self.shared.arrived.notify_one();
        Ok(())
    }

    /// Counts content that another job has encoded beside its own work.
    pub fn has_encoded(&self) {
        self.shared.queue.lock().done += 1;
    }

    /// Returns the numbers of jobs.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let queue = self.shared.queue.lock();
        Counts { waiting: queue.urgent.len() + queue.others.len() + queue.at_work, done: queue.done, refused: queue.refused }
    }

    /// Waits until nothing is left to do: for tests, and for callers that want to see the results.
    pub fn wait_until_idle(&self) {
        let mut queue = self.shared.queue.lock();
        while !queue.urgent.is_empty() || !queue.others.is_empty() || queue.at_work > 0 {
            self.shared.rested.wait(&mut queue);
        }
    }

    /// Starts one more thread, if there may be one. If the system cannot start it, the others do the work, or the next attempt succeeds.
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
    // Linux applies this to the thread alone. Where it is refused, the thread runs at normal priority.
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
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job.run));
        queue = shared.queue.lock();
        queue.at_work -= 1;
        queue.done += u64::from(outcome.is_ok() && job.encodes);
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
            // The last owner may be a job of this workshop itself.
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
        workshop.submit_other(|| {}).expect("there is room");
        drop(gate);
        workshop.wait_until_idle();
        assert_eq!(*order.lock(), ["b", "d", "a", "c"]);
        assert_eq!(workshop.counts(), Counts { waiting: 0, done: 5, refused: 0 }, "and one that encodes nothing");
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
