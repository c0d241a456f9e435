//! Keeps exact what is stored: a change in the folder is told as soon as the system tells it, and a folder that takes the place of another
//! is taken over at once.
//!
//! A thread looks after the folder. Events of single names become the [tags](super::stem) of what depends on them; whatever cannot be told
//! apart concerns everything, which is never wrong. Where the system tells nothing (network file systems, too few watches), responses are
//! told to be true for a second; the thread still looks once a second whether the folder has been replaced.
//!
//! **No mixture.** A version is replaced with its write lock held until everybody knows. A response made of the old one asked for it before
//! that, so its fetch began before the purge, which covers it; one made of the new one can only be seen after the purge.

use std::{
    collections::BTreeSet,
    fmt, fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{Relaxed, Release},
        },
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use notify::{
    Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode, ModifyKind},
};

use super::{
    Files, Shared, Version,
    root::is_hidden,
    rules::{HEADERS, Mistake, REDIRECTS, Rules},
    stem,
};

/// The interval at which the folder is checked, whether or not a change was reported.
const LOOK: Duration = Duration::from_secs(1);
/// The time that a change waits for others: they are reported at once, but those within this time of the last one together, because a build
/// writes a thousand files.
const TOGETHER: Duration = Duration::from_millis(5);
/// The time after which everything is reported once more, because files in a new folder may come before it is watched.
const SETTLED: Duration = Duration::from_millis(250);
/// The most events that may wait. Beyond that, everything counts as changed.
const EVENTS_MAX: usize = 4_096;
/// The most names that are reported one by one. Beyond that, everything counts as changed.
const TAGS_MAX: usize = 64;
/// The most links on the way to the root that are watched.
const LINKS_MAX: usize = 40;

/// A change in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Responses with one of these tags have changed.
    Tags(Vec<String>),
    /// All responses have changed.
    Everything,
    /// All responses have changed, because the folder or its rules have been replaced. These are the mistakes in the new rules.
    Replaced(Vec<Mistake>),
}

/// Watches the folder until it is dropped; dropping waits for the thread.
pub struct Watcher {
    alarm: Arc<Alarm>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").finish_non_exhaustive()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.alarm.stop.store(true, Relaxed);
        self.alarm.wake();
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
            && thread.join().is_err()
        {
            tracing::error!("the thread that watches a folder had panicked");
        }
    }
}

/// The signal that wakes the thread.
struct Alarm {
    events: SyncSender<Option<Event>>,
    /// Whether events were lost.
    lost: AtomicBool,
    stop: AtomicBool,
}

impl Alarm {
    /// Wakes the thread. A full channel means that it has something to do; it will see everything else then.
    fn wake(&self) {
        let _ = self.events.try_send(None);
    }

    fn tell(&self, event: notify::Result<Event>) {
        let lost = match event {
            Ok(event) if event.need_rescan() => true,
            Ok(event) => matters(event.kind) && self.events.try_send(Some(event)).is_err(),
            Err(_) => true,
        };
        if lost {
            self.lost.store(true, Relaxed);
            self.wake();
        }
    }
}

/// Returns whether an event is a change. Reading is not, or our own would cause the next event.
fn matters(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    }
}

impl Files {
    /// Watches the folder on a thread of its own, and calls `on_change` there. While it is called for a [`Change::Replaced`], no request is
    /// answered. A cache that stores responses purges them, hard and before it returns.
    ///
    /// # Errors
    /// Fails when the thread cannot be started. A folder that cannot be watched is not an error: it is checked once a second.
    pub fn watch(&self, on_change: impl Fn(Change) + Send + 'static) -> io::Result<Watcher> {
        let (events, told) = sync_channel(EVENTS_MAX);
        let alarm = Arc::new(Alarm { events, lost: AtomicBool::new(false), stop: AtomicBool::new(false) });
        let mut keeper = Keeper { shared: Arc::clone(&self.shared), alarm: Arc::clone(&alarm), on_change, notify: None, settle: None };
        let thread = thread::Builder::new().name("files".to_owned()).spawn(move || {
            keeper.begin();
            keeper.keep(&told);
        })?;
        Ok(Watcher { alarm, thread: Some(thread) })
    }
}

/// The state of the thread.
struct Keeper<F> {
    shared: Arc<Shared>,
    alarm: Arc<Alarm>,
    on_change: F,
    notify: Option<RecommendedWatcher>,
    /// The time at which everything is to be reported once more.
    settle: Option<Instant>,
}

/// The combined result of several events.
#[derive(Debug, Default, PartialEq, Eq)]
struct Batch {
    tags: BTreeSet<String>,
    everything: bool,
    /// Whether a folder was added.
    unsettled: bool,
    rules: bool,
}

impl<F: Fn(Change)> Keeper<F> {
    fn keep(&mut self, told: &Receiver<Option<Event>>) {
        let mut last = None::<Instant>;
        loop {
            let wait = self.settle.map_or(LOOK, |at| at.saturating_duration_since(Instant::now()).min(LOOK));
            let mut batch = Batch::default();
            match told.recv_timeout(wait) {
                Ok(event) => {
                    self.take(event, &mut batch);
                    let until = last.map(|last| last + TOGETHER);
                    while let Some(event) = next(told, until) {
                        self.take(event, &mut batch);
                    }
                    last = Some(Instant::now());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.alarm.stop.load(Relaxed) {
                return;
            }
            batch.everything |= self.alarm.lost.swap(false, Relaxed);
            if self.settle.is_some_and(|at| at <= Instant::now()) {
                self.settle = None;
                batch.everything = true;
            }
            if batch.unsettled {
                self.settle = Some(Instant::now() + SETTLED);
            }
            // What breaks the program once must not leave the folder without anybody who looks after it.
            if catch_unwind(AssertUnwindSafe(|| self.tell(batch))).is_err() {
                tracing::error!("a bug in Seawall lost track of a change in a folder; everything in it now counts as changed");
                self.alarm.lost.store(true, Relaxed);
            }
        }
    }

    fn take(&self, event: Option<Event>, batch: &mut Batch) {
        let Some(event) = event else { return };
        let version = Arc::clone(&self.shared.version.read());
        batch.add(&event, version.root.path(), &self.shared);
    }

    /// Reports the changes. It checks the root first: if that has been replaced, nothing else matters.
    fn tell(&mut self, batch: Batch) {
        let version = Arc::clone(&self.shared.version.read());
        if version.root.is_replaced() == Some(true) {
            return self.replace();
        }
        if batch.rules || version.rules_were != Rules::seen(&version.root) {
            return self.reread();
        }
        if batch.everything || batch.tags.len() > TAGS_MAX {
            self.changed(Change::Everything);
        } else if !batch.tags.is_empty() {
            self.changed(Change::Tags(batch.tags.into_iter().collect()));
        }
    }

    fn changed(&self, change: Change) {
        self.shared.opened.lock().forget();
        (self.on_change)(change);
    }

    /// Opens the folder that is now at the root's path.
    fn replace(&mut self) {
        match Version::open(&self.shared.given) {
            Ok(version) => {
                self.put(version, false);
                self.begin();
            }
            // Perhaps it is just being moved: the old one goes on, and the next check will tell.
            Err(error) => tracing::debug!(folder = %self.shared.given.display(), %error, "cannot be opened yet"),
        }
    }

    fn reread(&mut self) {
        let version = Arc::clone(&self.shared.version.read());
        self.put(version.reread(), true);
    }

    /// Makes a version the current one. No request is answered from it before all caches have purged the responses of the old one.
    fn put(&self, version: Version, watched: bool) {
        let mistakes = version.rules.mistakes().to_vec();
        let mut current = self.shared.version.write();
        *current = Arc::new(version);
        if !watched {
            self.shared.watched.store(false, Release);
        }
        self.shared.folders.lock().forget();
        self.changed(Change::Replaced(mistakes));
        drop(current);
    }

    /// Begins to watch the current root. After this, answers are valid until a change is reported.
    fn begin(&mut self) {
        let version = Arc::clone(&self.shared.version.read());
        self.notify = None;
        if let Some(name) = version.root.silent_file_system() {
            tracing::info!(folder = %self.shared.given.display(), "the file system {name} does not report changes: Seawall checks each file at most once a second");
            return;
        }
        match self.watched(version.root.path()) {
            Ok(notify) => {
                self.notify = Some(notify);
                // Otherwise the watched folder is another one of the same name.
                if version.root.is_replaced() == Some(false) {
                    self.shared.watched.store(true, Release);
                }
                self.alarm.wake();
            }
            Err(error) => {
                let remedy = if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) {
                    "; more watches: sysctl fs.inotify.max_user_watches"
                } else {
                    ""
                };
                tracing::warn!(folder = %self.shared.given.display(), "cannot be watched ({error}): files are looked at once a second{remedy}");
            }
        }
    }

    fn watched(&self, root: &Path) -> notify::Result<RecommendedWatcher> {
        let alarm = Arc::clone(&self.alarm);
        let config = Config::default().with_follow_symlinks(false);
        let mut notify = RecommendedWatcher::new(move |event| alarm.tell(event), config)?;
        for place in places(&self.shared.given) {
            if !place.starts_with(root) {
                notify.watch(&place, RecursiveMode::NonRecursive)?;
            }
        }
        notify.watch(root, RecursiveMode::Recursive)?;
        Ok(notify)
    }
}

fn next(told: &Receiver<Option<Event>>, until: Option<Instant>) -> Option<Option<Event>> {
    match until.and_then(|until| until.checked_duration_since(Instant::now())) {
        Some(left) => told.recv_timeout(left).ok(),
        None => told.try_recv().ok(),
    }
}

/// Returns the folders in which a rename can make `given` lead elsewhere: those of each link on the way, and the one that the root is in.
fn places(given: &Path) -> BTreeSet<PathBuf> {
    let mut places = BTreeSet::new();
    let Ok(mut path) = std::path::absolute(given) else { return places };
    for _ in 0..LINKS_MAX {
        let mut so_far = PathBuf::new();
        let mut names = path.components();
        let mut led = None;
        while let Some(name) = names.next() {
            so_far.push(name);
            if let (Ok(to), Some(folder)) = (fs::read_link(&so_far), so_far.parent()) {
                places.insert(folder.to_owned());
                led = Some(folder.join(to).join(names.as_path()));
                break;
            }
        }
        match led {
            Some(led) => path = led,
            None => {
                places.extend(path.parent().map(Path::to_owned));
                break;
            }
        }
    }
    places
}

impl Batch {
    fn add(&mut self, event: &Event, root: &Path, shared: &Shared) {
        for path in &event.paths {
            // This is an event in the folders around the root, which is checked in any case.
            let Ok(below) = path.strip_prefix(root) else { continue };
            if below.as_os_str().is_empty() || below.iter().any(is_hidden) {
                continue;
            }
            if below == Path::new(REDIRECTS) || below == Path::new(HEADERS) {
                self.rules = true;
                continue;
            }
            self.add_name(event.kind, path, below, shared);
        }
    }

    fn add_name(&mut self, kind: EventKind, path: &Path, below: &Path, shared: &Shared) {
        let now = fs::symlink_metadata(path).ok();
        let is_more_than_a_file = now.as_ref().is_some_and(|now| !now.is_file());
        let metadata_alone = matches!(kind, EventKind::Modify(ModifyKind::Metadata(_)));
        if is_more_than_a_file && metadata_alone {
            // Every rsync changes the dates of folders. A folder that can no longer be read is no longer public.
            self.everything |= fs::read_dir(path).is_err();
            return;
        }
        if is_more_than_a_file {
            self.everything = true;
            self.unsettled = true;
            return;
        }
        let is_content = matches!(kind, EventKind::Access(_) | EventKind::Modify(ModifyKind::Data(_))) || metadata_alone;
        if !is_content && (shared.folders.lock().has(below) || answers_for_others(below, shared)) {
            self.everything = true;
            return;
        }
        self.tags.insert(stem::tag(below));
        if shared.options.listing {
            self.tags.insert(stem::listing_tag(below.parent().unwrap_or_else(|| Path::new(""))));
        }
    }
}

/// Returns whether a page answers for paths that have no file.
fn answers_for_others(below: &Path, shared: &Shared) -> bool {
    let is_error_page =
        |name: &str| name.strip_suffix(".html").is_some_and(|status| matches!(status, "403" | "404" | "410" | "50x" | "500"));
    below.file_name().and_then(|name| name.to_str()).is_some_and(is_error_page) || shared.options.fallback.as_deref() == Some(below)
}

#[cfg(test)]
mod tests;
