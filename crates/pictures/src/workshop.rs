//! Threads that make variants: few of them, at low priority, first what somebody waits for.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use crate::{Fault, Shelf, Source, Variant, make::Master};

/// The most variants that are asked for and not made yet. A further one is refused.
const ASKED_MAX: usize = 1_024;
/// The most callers that wait for one variant.
const WAITING_MAX: usize = 1_024;
/// The most threads, and so the most pictures that are decoded at once.
const THREADS_MAX: usize = 2;
/// The number of cores for each thread.
const CORES_PER_THREAD: usize = 4;
/// The niceness of the threads: they come after everything else the machine has to do.
const NICENESS: i32 = 15;
/// The room on the shelf that is left for what somebody asks for.
const SPARE_BYTES: u64 = 4 * 1024 * 1024;

type Tell = Box<dyn FnOnce(Result<Bytes, Fault>) + Send>;
type OnRest = Arc<dyn Fn() + Send + Sync>;

/// Makes variants of pictures and keeps them on a shelf. One process needs one: all its sites have a [`Desk`] there.
///
/// Dropping it ends the threads after the variant that each is making; who waits is told that it is busy.
pub struct Workshop {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    threads_max: usize,
}

/// The place of one site in a workshop: what is made ahead for it, and whom it tells.
///
/// Dropping it forgets both.
pub struct Desk {
    workshop: Arc<Workshop>,
    number: u64,
}

struct Shared {
    shelf: Shelf,
    queue: Mutex<Queue>,
    arrived: Condvar,
    rested: Condvar,
    on_rest: Mutex<HashMap<u64, OnRest>>,
    desks: AtomicU64,
}

#[derive(Default)]
struct Queue {
    /// The variants that somebody waits for, in the order in which they were asked for.
    asked: VecDeque<(Arc<Source>, Variant)>,
    waiting: HashMap<String, Vec<Tell>>,
    /// The pictures that nobody waits for yet, with the number of the desk.
    ahead: VecDeque<(u64, Arc<Source>)>,
    at_work: usize,
    idle: usize,
    closed: bool,
    /// Whether something became known since the last rest.
    news: bool,
    counts: Counts,
}

/// The numbers of a workshop since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Variants that were made.
    pub made: u64,
    /// Pictures of which nothing can be made.
    pub failed: u64,
    /// Variants that were refused because too many waited.
    pub refused: u64,
    /// Times that a picture was decoded.
    pub decoded: u64,
}

impl Workshop {
    /// Makes a workshop for a quarter of the cores, one at least and two at most. Threads start when there is something to do.
    #[must_use]
    pub fn new(shelf: Shelf) -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let shared = Shared {
            shelf,
            queue: Mutex::default(),
            arrived: Condvar::new(),
            rested: Condvar::new(),
            on_rest: Mutex::default(),
            desks: AtomicU64::new(0),
        };
        let threads_max = (cores / CORES_PER_THREAD).clamp(1, THREADS_MAX);
        Self { shared: Arc::new(shared), threads: Mutex::default(), threads_max }
    }

    /// Makes a place for a site.
    #[must_use]
    pub fn desk(self: &Arc<Self>) -> Desk {
        Desk { workshop: Arc::clone(self), number: self.shared.desks.fetch_add(1, Ordering::Relaxed) }
    }

    /// Returns a variant that was made before. It reads a file.
    #[must_use]
    pub fn made(&self, source: &Source, variant: &Variant) -> Option<Bytes> {
        self.shared.shelf.take(&name(source, variant))
    }

    /// Returns the placeholder of a picture that was decoded before: a `data:` address. It reads a file.
    #[must_use]
    pub fn placeholder(&self, source: &Source) -> Option<String> {
        let held = self.shared.shelf.take(&placeholder_name(source))?;
        std::str::from_utf8(&held).ok().filter(|data| data.starts_with("data:")).map(str::to_owned)
    }

    /// Makes a variant before all that nobody waits for, and tells on a thread of the workshop what came of it. All who ask for one variant
    /// get the same one.
    pub fn ask(&self, source: &Arc<Source>, variant: Variant, tell: impl FnOnce(Result<Bytes, Fault>) + Send + 'static) {
        if let Some(fault) = source.fault() {
            return tell(Err(fault));
        }
        let mut queue = self.shared.queue.lock();
        let name = name(source, &variant);
        let is_full = match queue.waiting.get(&name) {
            Some(waiting) => waiting.len() >= WAITING_MAX,
            None => queue.asked.len() >= ASKED_MAX,
        };
        if is_full || queue.closed {
            queue.counts.refused += 1;
            drop(queue);
            return tell(Err(Fault::Busy));
        }
        let waiting = queue.waiting.entry(name).or_default();
        waiting.push(Box::new(tell));
        if waiting.len() == 1 {
            queue.asked.push_back((Arc::clone(source), variant));
        }
        self.called(queue);
    }

    /// Makes all variants of a picture that are missing, on the calling thread, and hands every one of them over.
    ///
    /// # Errors
    /// When nothing can be made of the picture. Its source remembers that.
    pub fn make_all(&self, source: &Source, each: impl FnMut(&Variant, Bytes)) -> Result<(), Fault> {
        let made = self.try_all(source, each);
        if let Err(fault) = &made
            && !fault.is_passing()
        {
            source.fail(fault);
        }
        made
    }

    fn try_all(&self, source: &Source, mut each: impl FnMut(&Variant, Bytes)) -> Result<(), Fault> {
        let mut master = None;
        for variant in source.variants() {
            let made = match self.made(source, variant) {
                Some(made) => made,
                None => {
                    let master = match &mut master {
                        Some(master) => master,
                        none => none.insert(self.shared.decode(source)?),
                    };
                    self.shared.make(master, source, variant)?
                }
            };
            each(variant, made);
        }
        Ok(())
    }

    /// Returns the numbers of what was done.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.queue.lock().counts
    }

    /// Returns how many bytes are kept.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        self.shared.shelf.bytes()
    }

    /// Waits until nothing is left to do.
    pub fn wait_until_idle(&self) {
        let mut queue = self.shared.queue.lock();
        while !queue.is_done() {
            self.shared.rested.wait(&mut queue);
        }
    }

    /// Gets a thread to look at the queue.
    fn called(&self, queue: parking_lot::MutexGuard<'_, Queue>) {
        let is_hiring = queue.idle == 0;
        drop(queue);
        if is_hiring {
            self.hire();
        }
        self.shared.arrived.notify_one();
    }

    fn hire(&self) {
        let mut threads = self.threads.lock();
        if threads.len() >= self.threads_max {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let name = format!("pictures-{}", threads.len());
        if let Ok(thread) = thread::Builder::new().name(name).spawn(move || shared.work()) {
            threads.push(thread);
        }
    }
}

impl Desk {
    /// Returns the workshop.
    #[must_use]
    pub const fn workshop(&self) -> &Arc<Workshop> {
        &self.workshop
    }

    /// Sets what is called on a thread of the workshop whenever it has nothing left to do and since the last time a placeholder became known, or a
    /// picture was found of which nothing can be made.
    pub fn on_rest(&self, call: impl Fn() + Send + Sync + 'static) {
        self.workshop.shared.on_rest.lock().insert(self.number, Arc::new(call));
    }

    /// Makes what most readers will ask for of all `sources`, in their order, when there is nothing else to do. Replaces what an earlier call
    /// for this desk left to do.
    pub fn make_ahead(&self, sources: impl IntoIterator<Item = Arc<Source>>) {
        let shared = &self.workshop.shared;
        let is_left = |source: &Arc<Source>| source.fault().is_none() && shared.is_left(source);
        let ahead: Vec<_> = sources.into_iter().filter(is_left).map(|source| (self.number, source)).collect();
        let mut queue = shared.queue.lock();
        queue.ahead.retain(|(desk, _)| *desk != self.number);
        if !ahead.is_empty() && !queue.closed {
            queue.ahead.extend(ahead);
            self.workshop.called(queue);
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let shared = &self.workshop.shared;
        shared.on_rest.lock().remove(&self.number);
        shared.queue.lock().ahead.retain(|(desk, _)| *desk != self.number);
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("number", &self.number).field("workshop", &self.workshop).finish()
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let waiting = {
            let mut queue = self.shared.queue.lock();
            queue.closed = true;
            queue.asked.clear();
            queue.ahead.clear();
            std::mem::take(&mut queue.waiting)
        };
        self.shared.arrived.notify_all();
        for tell in waiting.into_values().flatten() {
            tell(Err(Fault::Busy));
        }
        for thread in self.threads.get_mut().drain(..) {
            // The last owner may be a call of one of the threads.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Queue {
    fn is_done(&self) -> bool {
        self.asked.is_empty() && self.ahead.is_empty() && self.at_work == 0
    }
}

/// One thing to do.
enum Task {
    Asked(Arc<Source>, Variant),
    Ahead(u64, Arc<Source>),
}

impl Shared {
    fn work(&self) {
        // Linux applies this to the thread alone. Where it is refused, the thread runs at normal priority.
        let _ = rustix::process::nice(NICENESS);
        let mut queue = self.queue.lock();
        loop {
            if queue.closed {
                return;
            }
            let asked = queue.asked.pop_front().map(|(source, variant)| Task::Asked(source, variant));
            let Some(task) = asked.or_else(|| queue.ahead.pop_front().map(|(desk, source)| Task::Ahead(desk, source))) else {
                queue.idle += 1;
                self.arrived.wait(&mut queue);
                queue.idle -= 1;
                continue;
            };
            queue.at_work += 1;
            drop(queue);
            // A picture that breaks a decoder costs itself alone.
            let source = match &task {
                Task::Asked(source, _) | Task::Ahead(_, source) => Arc::clone(source),
            };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match task {
                Task::Asked(source, variant) => self.make_asked(&source, variant),
                Task::Ahead(desk, source) => self.make_ahead(desk, &source),
            }));
            if outcome.is_err() {
                self.failed(&source, &Fault::damaged("it breaks the decoder"));
                self.tell_all(&source, &Fault::damaged("it breaks the decoder"));
            }
            queue = self.queue.lock();
            queue.at_work -= 1;
            let is_done = queue.is_done();
            let is_news = is_done && std::mem::take(&mut queue.news);
            if is_done {
                self.rested.notify_all();
            }
            if is_news {
                drop(queue);
                let calls: Vec<OnRest> = self.on_rest.lock().values().cloned().collect();
                for call in calls {
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call()));
                }
                queue = self.queue.lock();
            }
        }
    }

    /// Makes a variant that somebody waits for, and the others that somebody waits for of the same picture.
    fn make_asked(&self, source: &Arc<Source>, first: Variant) {
        let mut variants = vec![first];
        {
            let mut queue = self.queue.lock();
            let others = queue.asked.iter().filter(|(other, _)| other.digest() == source.digest()).map(|(_, variant)| *variant);
            variants.extend(others);
            queue.asked.retain(|(other, _)| other.digest() != source.digest());
        }
        let mut master = None;
        for variant in &variants {
            let name = name(source, variant);
            let made = match self.shelf.take(&name) {
                Some(made) => Ok(made),
                None => {
                    if master.is_none() {
                        master = Some(self.decode(source));
                    }
                    match master.as_ref().expect("it was just decoded") {
                        Ok(master) => self.make(master, source, variant),
                        Err(fault) => Err(fault.clone()),
                    }
                }
            };
            if let Err(fault) = &made {
                self.failed(source, fault);
            }
            let waiting = self.queue.lock().waiting.remove(&name).unwrap_or_default();
            for tell in waiting {
                tell(made.clone());
            }
        }
    }

    /// Makes what is missing of a picture that nobody waits for. Gives way when somebody asks for anything.
    fn make_ahead(&self, desk: u64, source: &Arc<Source>) {
        if !self.is_left(source) || !self.shelf.has_room(SPARE_BYTES) {
            return;
        }
        let missing: Vec<_> = self.missing(source).collect();
        let master = match self.decode(source) {
            Ok(master) => master,
            Err(fault) => return self.failed(source, &fault),
        };
        for variant in missing {
            if let Err(fault) = self.make(&master, source, &variant) {
                return self.failed(source, &fault);
            }
            let mut queue = self.queue.lock();
            if queue.closed {
                return;
            }
            if !queue.asked.is_empty() {
                queue.ahead.push_front((desk, Arc::clone(source)));
                return;
            }
        }
    }

    fn missing<'a>(&'a self, source: &'a Source) -> impl Iterator<Item = Variant> + 'a {
        let ahead = source.variants().iter().filter(|variant| variant.is_made_ahead());
        ahead.filter(move |variant| !self.shelf.has(&name(source, variant))).copied()
    }

    fn is_left(&self, source: &Source) -> bool {
        self.missing(source).next().is_some() || !source.variants().is_empty() && !self.shelf.has(&placeholder_name(source))
    }

    /// Decodes a picture, and keeps its placeholder if that was not known.
    fn decode<'s>(&self, source: &'s Source) -> Result<Master<'s>, Fault> {
        let master = Master::new(source)?;
        let name = placeholder_name(source);
        let is_new = !self.shelf.has(&name);
        if is_new {
            self.shelf.put(&name, Bytes::from(master.placeholder()?.unwrap_or_else(|| "none".to_owned())));
        }
        let mut queue = self.queue.lock();
        queue.counts.decoded += 1;
        queue.news |= is_new;
        Ok(master)
    }

    fn make(&self, master: &Master<'_>, source: &Source, variant: &Variant) -> Result<Bytes, Fault> {
        let made = Bytes::from(master.make(variant)?);
        self.shelf.put(&name(source, variant), made.clone());
        self.queue.lock().counts.made += 1;
        Ok(made)
    }

    /// Remembers that nothing can be made of a picture, and says so once. A file that changes is read anew by whoever listed it.
    fn failed(&self, source: &Source, fault: &Fault) {
        if fault.is_passing() {
            return;
        }
        if source.fail(fault) {
            let mut queue = self.queue.lock();
            queue.counts.failed += 1;
            queue.news = true;
            drop(queue);
            tracing::warn!("{} {fault}; {}", source.path().display(), fault.remedy());
        }
    }

    fn tell_all(&self, source: &Source, fault: &Fault) {
        for variant in source.variants() {
            let waiting = self.queue.lock().waiting.remove(&name(source, variant)).unwrap_or_default();
            for tell in waiting {
                tell(Err(fault.clone()));
            }
        }
    }
}

fn name(source: &Source, variant: &Variant) -> String {
    format!("{}-{}.{}", source.digest(), variant.width, variant.form.extension())
}

fn placeholder_name(source: &Source) -> String {
    format!("{}-tiny.txt", source.digest())
}

impl fmt::Debug for Workshop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workshop").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
