//! Work on many texts at once, by a bounded number of threads.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// The number of threads that read and render texts. A blog is rebuilt beside its readers, whose requests need the other cores.
const THREADS_MAX: usize = 2;

/// The stack of such a thread. It is the same for one text as for many: what was rendered at the start must not be too deep at an edit.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// The number of items that a thread takes at once.
const PIECE: usize = 8;

/// Calls `work` for each of `items` and returns the results in their order.
///
/// # Panics
/// When the system refuses a thread, or `work` panics.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let start = next.fetch_add(PIECE, Ordering::Relaxed);
            if start >= items.len() {
                return done;
            }
            done.extend(items.iter().enumerate().skip(start).take(PIECE).map(|(index, item)| (index, work(item))));
        }
    };
    let threads = THREADS_MAX.min(items.len().div_ceil(PIECE));
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|_| {
                let builder = thread::Builder::new().name("blog texts".to_owned()).stack_size(STACK_BYTES);
                builder.spawn_scoped(scope, take).expect("the system has room for a thread")
            })
            .collect();
        started.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_their_items() {
        for count in [0, 1, 7, 8, 9, 1000] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(map(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        }
    }
}
