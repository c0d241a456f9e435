//! Published is live: a change in the folder becomes a new site.
//!
//! Every event means the same, "look again", so they need no queue: one mark says that something happened. Events that the system lost
//! are then no loss, as long as it says so. A post whose date lies ahead is published when its time comes, without any event.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime},
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};

use semantics::Timestamp;

use crate::{
    blog::{Blog, Rebuilt},
    error::BuildError,
    folder::is_private,
};

/// The pause after which the author's program counts as done with writing.
const QUIET: Duration = Duration::from_millis(150);

/// The longest time between rebuilds of a folder that keeps changing.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest wait for a post that becomes due. Clocks are set: whoever sets one forward sees the post after this time.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// The result of a change in the folder.
#[derive(Debug)]
pub enum Change {
    /// The new site is in place. A rebuild that changes nothing is not reported.
    Published(Rebuilt),
    /// The folder could not be built, and the old site stays.
    Failed(BuildError),
}

/// Error of a folder that cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch {folder}; changes will need a restart")]
pub struct WatchError {
    folder: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Watches a folder until it is dropped. Dropping it waits for a rebuild that is under way.
pub struct Watcher {
    // Dropped first: it holds the sender, whose end is the thread's.
    notify: Option<RecommendedWatcher>,
    sender: Option<Arc<SyncSender<()>>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").finish_non_exhaustive()
    }
}

/// Rebuilds `blog` on a thread of its own whenever its folder changes. Calls `on_change` on that thread when the new site is in place.
///
/// # Errors
/// When the system refuses: the folder is gone, or the limit of watches is reached.
#[expect(clippy::disallowed_methods, reason = "a post that lies ahead waits for the machine's time")]
pub fn watch(blog: &Blog, on_change: impl Fn(Change) + Send + 'static) -> Result<Watcher, WatchError> {
    watch_by(blog, || Timestamp::from(SystemTime::now()), on_change)
}

fn watch_by(
    blog: &Blog,
    clock: impl Fn() -> Timestamp + Send + 'static,
    on_change: impl Fn(Change) + Send + 'static,
) -> Result<Watcher, WatchError> {
    let refused = |source: Box<dyn std::error::Error + Send + Sync>| WatchError { folder: blog.folder().display().to_string(), source };
    let (sender, receiver) = sync_channel(1);
    let root = blog.folder().canonicalize().map_err(|error| refused(error.into()))?;
    let mut notify = notify::recommended_watcher({
        let (sender, root) = (sender.clone(), root.clone());
        move |event: notify::Result<Event>| {
            if event.is_err() || event.is_ok_and(|event| matters(&event, &root)) {
                mark(&sender);
            }
        }
    })
    .map_err(|error| refused(error.into()))?;
    notify.watch(&root, RecursiveMode::Recursive).map_err(|error| refused(error.into()))?;
    // What changed between the first build and this line.
    mark(&sender);
    let sender = Arc::new(sender);
    blog.on_pictures({
        // The thread ends when nobody is left who could mark anything.
        let sender = Arc::downgrade(&sender);
        move || {
            if let Some(sender) = sender.upgrade() {
                mark(&sender);
            }
        }
    });

    let blog = blog.clone();
    let thread = thread::Builder::new()
        .name("blog".to_owned())
        .spawn(move || rebuild_when_needed(&receiver, &blog, &clock, &on_change))
        .map_err(|error| refused(error.into()))?;
    Ok(Watcher { notify: Some(notify), sender: Some(sender), thread: Some(thread) })
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop((self.notify.take(), self.sender.take()));
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
            && thread.join().is_err()
        {
            tracing::error!("the thread that rebuilds the blog had panicked");
        }
    }
}

fn mark(sender: &SyncSender<()>) {
    // Full means that a look is already due.
    let _ = sender.try_send(());
}

fn rebuild_when_needed(receiver: &Receiver<()>, blog: &Blog, clock: &impl Fn() -> Timestamp, on_change: &impl Fn(Change)) {
    let (mut last_error, mut tried) = (None, None);
    loop {
        let next_due = blog.site().next_due();
        match next(receiver, wait(next_due, tried, clock())) {
            Ok(()) => {
                let first = Instant::now();
                while first.elapsed() < PATIENCE {
                    match receiver.recv_timeout(QUIET) {
                        Ok(()) => {}
                        Err(RecvTimeoutError::Timeout) => break,
                        Err(RecvTimeoutError::Disconnected) => return,
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) if until(next_due, clock()).is_some_and(|left| left.is_zero()) => tried = next_due,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        }
        // A post, or somebody who is told, that breaks the program must not be the last edit that is seen.
        if catch_unwind(AssertUnwindSafe(|| rebuild(blog, clock(), &mut last_error, on_change))).is_err() {
            tracing::error!("a bug in Seawall kept this change of the blog from being published; the next change will be published");
        }
    }
}

/// Waits for a mark, without end if `wait` is `None`.
fn next(receiver: &Receiver<()>, wait: Option<Duration>) -> Result<(), RecvTimeoutError> {
    match wait {
        Some(wait) => receiver.recv_timeout(wait),
        None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}

/// Returns how long to wait for a post that becomes due; `None` if there is none to come. One that was `tried` and is still to come is not
/// tried again at once.
fn wait(next_due: Option<jiff::Timestamp>, tried: Option<jiff::Timestamp>, now: Timestamp) -> Option<Duration> {
    let left = until(next_due, now)?;
    Some(if next_due == tried { WAIT_MAX } else { left.min(WAIT_MAX) })
}

/// Returns the time from `now` until `due`; zero if it has come.
fn until(due: Option<jiff::Timestamp>, now: Timestamp) -> Option<Duration> {
    let due = Duration::try_from(due?.as_duration()).unwrap_or_default();
    Some(due.saturating_sub(Duration::from_millis(now.as_millis())))
}

fn rebuild(blog: &Blog, now: Timestamp, last_error: &mut Option<BuildError>, on_change: &impl Fn(Change)) {
    match blog.rebuild(now) {
        Ok(rebuilt) => {
            *last_error = None;
            if !rebuilt.is_empty() {
                on_change(Change::Published(rebuilt));
            }
        }
        // An editor that saves twice must not have its author told twice.
        Err(error) if last_error.as_ref() == Some(&error) => {}
        Err(error) => {
            *last_error = Some(error.clone());
            on_change(Change::Failed(error));
        }
    }
}

/// Tells whether an event is a change. Reading is not one, or our own rebuild would cause the next one. Names that begin with a dot below the
/// folder belong to editors and git.
fn matters(event: &Event, root: &Path) -> bool {
    if event.need_rescan() {
        return true;
    }
    let is_change = match event.kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    };
    let is_private = |path: &Path| {
        let below = path.strip_prefix(root).unwrap_or(path);
        below.iter().any(|part| is_private(&part.to_string_lossy()))
    };
    is_change && (event.paths.is_empty() || event.paths.iter().any(|path| !is_private(path)))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::{
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
    };

    use notify::event::{CreateKind, ModifyKind};

    use super::*;
    use crate::config::BlogOptions;

    #[test]
    fn changes_are_published_and_mistakes_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.md"), "# One").expect("written");
        let blog = Blog::open(folder.path(), BlogOptions::default(), Timestamp::from_secs(1_790_812_800)).expect("builds");
        let (tell, told) = mpsc::sync_channel(8);
        let watcher = watch(&blog, {
            let blog = blog.clone();
            move |change| {
                let _ = tell.send((change, blog.site()));
            }
        })
        .expect("watches");
        let next = || told.recv_timeout(Duration::from_secs(20)).expect("a change is told");

        fs::write(folder.path().join("b.md"), "---\ndate: 2026-01-01\n---\n# Two").expect("written");
        let (change, site) = next();
        assert!(matches!(&change, Change::Published(it) if it.paths.iter().any(|path| path == "/b/")), "{change:?}");
        assert!(site.contains("/b/"), "the swap comes before the call");

        fs::write(folder.path().join("b.md"), "---\ndate: 2026-01-01\n---\nno title").expect("written");
        let (change, site) = next();
        let told = "b.md:1: has no title; set `title` in the front matter or begin the text with `# A heading`. Readers still see the version before";
        assert!(matches!(&change, Change::Published(it) if it.paths.is_empty() && it.problems == site.problems()), "{change:?}");
        assert_eq!(site.problems().iter().map(ToString::to_string).collect::<Vec<_>>(), [told]);
        assert!(site.contains("/b/"), "the last good version stays");

        fs::write(folder.path().join("b.md"), "---\ndate: 2026-01-01\n---\n# Two").expect("written");
        let (change, _) = next();
        assert!(matches!(&change, Change::Published(it) if it.paths.is_empty() && it.mended == site.problems()), "{change:?}");
        drop(watcher);
    }

    #[test]
    fn a_change_that_breaks_its_listener_is_not_the_last_one() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.md"), "# One").expect("written");
        let blog = Blog::open(folder.path(), BlogOptions::default(), Timestamp::from_secs(1_790_812_800)).expect("builds");
        let (tell, told) = mpsc::sync_channel(8);
        let _watcher = watch(&blog, move |change| {
            let Change::Published(Rebuilt { paths, .. }) = change else { return };
            let breaks = paths.iter().any(|path| path == "/b/");
            let _ = tell.send(paths);
            assert!(!breaks, "as a bug would");
        })
        .expect("watches");
        let next = || told.recv_timeout(Duration::from_secs(20)).expect("a change is told");
        fs::write(folder.path().join("b.md"), "# Two").expect("written");
        assert!(next().contains(&"/b/".to_owned()));
        fs::write(folder.path().join("c.md"), "# Three").expect("written");
        assert!(next().contains(&"/c/".to_owned()));
    }

    /// The clock is a simulated one, which goes on by itself when it is asked.
    #[test]
    fn a_post_appears_by_itself_when_its_time_comes() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.md"), "---\ndate: 2026-10-01T00:00:30Z\n---\n# Later").expect("written");
        let (start, due) = (Timestamp::from_millis(1_790_812_829_990), Timestamp::from_secs(1_790_812_830));
        let blog = Blog::open(folder.path(), BlogOptions::default(), start).expect("builds");
        assert!(!blog.site().contains("/a/") && blog.site().draft("/a/", "").is_some());
        let (tell, told) = mpsc::sync_channel(8);
        let asked = AtomicUsize::new(0);
        // It is asked how long to wait, which time the first look is for, how long to wait now, and whether the time has come.
        let clock = move || if asked.fetch_add(1, Ordering::Relaxed) < 3 { start } else { due };
        let _watcher = watch_by(&blog, clock, move |change| {
            let _ = tell.send(change);
        })
        .expect("watches");
        let change = told.recv_timeout(Duration::from_secs(20)).expect("told");
        let Change::Published(rebuilt) = change else { panic!("{change:?}") };
        assert!(rebuilt.paths.contains(&"/a/".to_owned()) && rebuilt.paths.contains(&"/".to_owned()), "{rebuilt:?}");
        assert_eq!((rebuilt.read, rebuilt.drafts), (0, vec!["/a".to_owned(), "/a/".to_owned()]));
        assert!(blog.site().contains("/a/") && blog.site().next_due().is_none());
    }

    #[test]
    fn the_wait_for_a_post_ends_with_its_time_and_trusts_no_clock_for_long() {
        let now = Timestamp::from_secs(1_000_000);
        let at = |millis: i64| jiff::Timestamp::from_millisecond(1_000_000_000 + millis).ok();
        let cases = [
            (None, None, None),
            (at(1500), None, Some(Duration::from_millis(1500))),
            (at(0), None, Some(Duration::ZERO)),
            (at(-5000), None, Some(Duration::ZERO)),
            (at(86_400_000), None, Some(WAIT_MAX)),
            // A build that failed is not tried again and again.
            (at(-5000), at(-5000), Some(WAIT_MAX)),
            (at(-5000), at(-9000), Some(Duration::ZERO)),
        ];
        for (due, tried, expected) in cases {
            assert_eq!(wait(due, tried, now), expected, "{due:?} {tried:?}");
        }
    }

    #[test]
    fn only_changes_to_published_names_matter() {
        let event = |kind, path: &str| Event::new(kind).add_path(path.into());
        let (create, modify) = (EventKind::Create(CreateKind::File), EventKind::Modify(ModifyKind::Any));
        let cases = [
            (event(create, "/home/.me/blog/a.md"), true),
            (event(modify, "/home/.me/blog/posts/a.md"), true),
            (event(create, "/home/.me/blog/.git/index.lock"), false),
            (event(modify, "/home/.me/blog/posts/.a.md.swp"), false),
            (event(modify, "/home/.me/blog/a.md~"), false),
            (event(modify, "/home/.me/blog/_drafts/a.md"), true),
            (event(modify, "/home/.me/blog/_redirects"), true),
            (event(modify, "/home/.me/blog/theme/post.html"), true),
            (event(EventKind::Access(AccessKind::Open(AccessMode::Read)), "/home/.me/blog/a.md"), false),
            (event(EventKind::Access(AccessKind::Close(AccessMode::Write)), "/home/.me/blog/a.md"), true),
            (Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan), true),
        ];
        for (event, expected) in cases {
            assert_eq!(matters(&event, Path::new("/home/.me/blog")), expected, "{event:?}");
        }
    }
}
