//! Readers who ask at the same time, and waiting for what other processes do.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::client::{Answer, Client, PATIENCE};

/// Waits for a moment, in which a process may do something.
#[expect(clippy::disallowed_methods, reason = "waits for another process, which tells nobody")]
pub(crate) fn pause() {
    thread::sleep(Duration::from_millis(20));
}

/// Asks until `is_so`: for what another process does a moment later.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        pause();
    }
}

/// Ends a crowd, however the test ends.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does something while a crowd reads: each reader asks for one of the paths, again and again, and checks each answer. Returns how often they asked.
pub(crate) fn while_a_crowd_reads(
    client: &Client,
    readers: usize,
    paths: &[&str],
    check: impl Fn(&Answer) + Sync,
    what: impl FnOnce(),
) -> usize {
    let is_over = AtomicBool::new(false);
    let asked = AtomicUsize::new(0);
    thread::scope(|scope| {
        for n in 0..readers {
            let (is_over, asked, check) = (&is_over, &asked, &check);
            scope.spawn(move || {
                for path in paths.iter().cycle().skip(n) {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    check(&client.get(path));
                    asked.fetch_add(1, Ordering::Relaxed);
                    pause();
                }
            });
        }
        let _end = End(&is_over);
        what();
    });
    asked.into_inner()
}
