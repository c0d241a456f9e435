//! Published is live: a change in the folder becomes a new site.
//!
//! Every event means the same, "look again", so they need no queue: one mark says that something happened. Events that the system lost
//! are then no loss, as long as it says so.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime},
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};

use semantics::Timestamp;

use crate::{blog::Blog, error::BuildError, folder::is_hidden};

/// The pause after which the author's program counts as done with writing.
const QUIET: Duration = Duration::from_millis(150);

/// The longest time between rebuilds of a folder that keeps changing.
const PATIENCE: Duration = Duration::from_secs(2);

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
pub fn watch(blog: &Blog, on_change: impl Fn(Change) + Send + 'static) -> Result<Watcher, WatchError> {
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
    drop(sender);

    let blog = blog.clone();
    let thread = thread::Builder::new()
        .name("blog".to_owned())
        .spawn(move || rebuild_at_marks(&receiver, &blog, &on_change))
        .map_err(|error| refused(error.into()))?;
    Ok(Watcher { notify: Some(notify), thread: Some(thread) })
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.notify.take());
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

fn rebuild_at_marks(receiver: &Receiver<()>, blog: &Blog, on_change: &impl Fn(Change)) {
    let mut last_error = None;
    while receiver.recv().is_ok() {
        let first = Instant::now();
        while first.elapsed() < PATIENCE {
            match receiver.recv_timeout(QUIET) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        // A post, or somebody who is told, that breaks the program must not be the last edit that is seen.
        if catch_unwind(AssertUnwindSafe(|| rebuild(blog, &mut last_error, on_change))).is_err() {
            tracing::error!("a bug in Seawall kept this change of the blog from being published; the next change will be published");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a post that lies ahead waits for the machine's time")]
fn rebuild(blog: &Blog, last_error: &mut Option<BuildError>, on_change: &impl Fn(Change)) {
    match blog.rebuild(Timestamp::from(SystemTime::now())) {
        Ok(paths) => {
            *last_error = None;
            if !paths.is_empty() {
                on_change(Change::Published { paths });
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

/// Tells whether an event is a change. Reading is none, or our own rebuild would cause the next one. Names that begin with a dot below the
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
        below.iter().any(|part| is_hidden(&part.to_string_lossy()))
    };
    is_change && (event.paths.is_empty() || event.paths.iter().any(|path| !is_private(path)))
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::mpsc};

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

        fs::write(folder.path().join("b.md"), "# Two").expect("written");
        let (change, site) = next();
        assert!(matches!(&change, Change::Published { paths } if paths.iter().any(|path| path == "/b/")), "{change:?}");
        assert!(site.contains("/b/"), "the swap comes before the call");

        fs::write(folder.path().join("b.md"), "no title").expect("written");
        let (_, site) = next();
        assert_eq!(site.problems().iter().map(ToString::to_string).collect::<Vec<_>>().len(), 1);

        fs::remove_file(folder.path().join("b.md")).expect("removed");
        drop(watcher);
    }

    #[test]
    fn a_change_that_breaks_its_listener_is_not_the_last_one() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.md"), "# One").expect("written");
        let blog = Blog::open(folder.path(), BlogOptions::default(), Timestamp::from_secs(1_790_812_800)).expect("builds");
        let (tell, told) = mpsc::sync_channel(8);
        let _watcher = watch(&blog, move |change| {
            let Change::Published { paths } = change else { return };
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
            (event(EventKind::Access(AccessKind::Open(AccessMode::Read)), "/home/.me/blog/a.md"), false),
            (event(EventKind::Access(AccessKind::Close(AccessMode::Write)), "/home/.me/blog/a.md"), true),
            (Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan), true),
        ];
        for (event, expected) in cases {
            assert_eq!(matters(&event, Path::new("/home/.me/blog")), expected, "{event:?}");
        }
    }
}
