use std::sync::atomic::AtomicUsize;
use std::task::Wake;

use super::*;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn growing(object_max: usize) -> (Arc<Growing<&'static str>>, Arc<Budget>) {
    let budget = Arc::new(Budget::new(u64::MAX));
    (Arc::new(Growing::new(None, in_memory(object_max, &budget), 0)), budget)
}

fn in_memory(object_max: usize, budget: &Arc<Budget>) -> Bounds {
    Bounds { memory_max: object_max as u64, spool: None, budget: Arc::clone(budget) }
}

fn reader(growing: &Arc<Growing<&'static str>>) -> Reader<&'static str> {
    growing.enter(usize::MAX).expect("open");
    Reader::entered(Arc::clone(growing))
}

fn chunk(length: usize) -> Bytes {
    Bytes::from(vec![b'x'; length])
}

/// A waker that counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Bell {
    fn rung(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Polls once, with a waker that does nothing.
fn poll(reader: &mut Reader<&'static str>) -> Poll<Option<Result<Bytes, Broken<&'static str>>>> {
    reader.poll_chunk(&mut Context::from_waker(Waker::noop()))
}

/// Returns everything that is there, and how it ended, if it did.
fn drain(reader: &mut Reader<&'static str>) -> (Vec<u8>, Option<Result<(), Broken<&'static str>>>) {
    let mut all = Vec::new();
    loop {
        match poll(reader) {
            Poll::Ready(Some(Ok(chunk))) => all.extend_from_slice(&chunk),
            Poll::Ready(Some(Err(broken))) => return (all, Some(Err(broken))),
            Poll::Ready(None) => return (all, Some(Ok(()))),
            Poll::Pending => return (all, None),
        }
    }
}

#[test]
fn early_and_late_readers_get_the_same_bytes() {
    let (growing, _) = growing(1 << 20);
    let mut early = reader(&growing);
    assert_eq!(drain(&mut early), (vec![], None));
    growing.append(Bytes::from_static(b"one "));
    growing.append(Bytes::new());
    assert_eq!(drain(&mut early), (b"one ".to_vec(), None));
    let (mut middle, mut behind) = (reader(&growing), reader(&growing));
    assert!(poll(&mut behind).is_ready());
    growing.append(Bytes::from_static(b"two "));
    growing.append(Bytes::from_static(b"three"));
    assert_eq!(growing.complete().as_deref(), Some(&b"one two three"[..]));
    let mut late = reader(&growing);
    assert_eq!(drain(&mut early), (b"two three".to_vec(), Some(Ok(()))));
    assert_eq!(drain(&mut behind), (b"two three".to_vec(), Some(Ok(()))));
    assert_eq!(drain(&mut middle), (b"one two three".to_vec(), Some(Ok(()))));
    assert_eq!(drain(&mut late), (b"one two three".to_vec(), Some(Ok(()))));
    assert!(matches!(poll(&mut late), Poll::Ready(None)), "the end stays the end");
}

#[test]
fn an_empty_body_ends() {
    let (growing, budget) = growing(1 << 20);
    let mut early = reader(&growing);
    assert_eq!(growing.complete().as_deref(), Some(&b""[..]));
    assert_eq!(drain(&mut early), (vec![], Some(Ok(()))));
    assert_eq!(drain(&mut reader(&growing)), (vec![], Some(Ok(()))));
    assert_eq!(budget.held(), 0);
}

#[test]
fn a_broken_body_gives_its_bytes_then_the_error_then_the_end() {
    let (growing, _) = growing(1 << 20);
    let mut early = reader(&growing);
    growing.append(Bytes::from_static(b"half"));
    growing.break_off(Broken::Failed("reset"));
    assert_eq!(drain(&mut early), (b"half".to_vec(), Some(Err(Broken::Failed("reset")))));
    assert!(matches!(poll(&mut early), Poll::Ready(None)));
    assert_eq!(growing.enter(usize::MAX), Err(Refused::Gone));
}

#[test]
fn readers_wake_on_bytes_and_on_the_end_and_a_waiter_is_woken_once() {
    let (growing, _) = growing(1 << 20);
    let (bell, mut one) = (Arc::new(Bell::default()), reader(&growing));
    let waker = Waker::from(Arc::clone(&bell));
    for _ in 0..10 {
        assert!(one.poll_chunk(&mut Context::from_waker(&waker)).is_pending());
    }
    growing.append(chunk(1));
    growing.append(chunk(1));
    assert_eq!(bell.rung(), 1);
    drain(&mut one);
    assert!(one.poll_chunk(&mut Context::from_waker(&waker)).is_pending());
    growing.complete();
    assert_eq!(bell.rung(), 2);
    let mut gone = reader(&growing);
    assert!(gone.poll_chunk(&mut Context::from_waker(&waker)).is_ready());
    drop(gone);
    assert_eq!(bell.rung(), 2);
}

#[test]
fn a_reader_that_left_is_not_woken_and_holds_nothing() {
    let (growing, _) = growing(1 << 20);
    let (bell, mut one) = (Arc::new(Bell::default()), reader(&growing));
    assert!(one.poll_chunk(&mut Context::from_waker(&Waker::from(Arc::clone(&bell)))).is_pending());
    drop(one);
    growing.append(chunk(1));
    assert_eq!((bell.rung(), Arc::strong_count(&bell)), (0, 1));
    assert!(growing.body.lock().offsets.is_empty());
}

#[test]
fn readers_are_bounded() {
    let (growing, _) = growing(1 << 20);
    let both = (reader(&growing), reader(&growing));
    assert_eq!(growing.enter(2), Err(Refused::Full));
    drop(both);
    assert_eq!(growing.enter(2), Ok(()));
}

#[test]
fn the_whole_body_owns_exactly_its_bytes_and_the_budget_is_given_back() {
    let (growing, budget) = growing(1 << 20);
    for _ in 0..10 {
        growing.append(chunk(4 * KIB));
    }
    assert!(budget.held() > 40 * KIB as u64);
    let whole = growing.complete().expect("within the limit");
    assert_eq!(whole.len(), 40 * KIB);
    assert_eq!(budget.held(), whole.len() as u64);
    drop(growing);
    assert_eq!(budget.held(), 0);
    // Once nobody else holds it, it is one allocation without surplus.
    assert_eq!(Vec::from(whole).capacity(), 40 * KIB);
}

#[test]
fn a_small_chunk_does_not_keep_the_buffer_it_was_cut_from() {
    let (growing, _) = growing(1 << 20);
    let buffer = chunk(64 * KIB);
    growing.append(buffer.slice(..10));
    assert!(buffer.is_unique());
}

/// The promise of windowed mode: memory is bounded by the longest body plus a window, and then by the window alone.
#[test]
fn a_windowed_body_holds_a_window_and_the_writer_waits_for_the_slowest() {
    const PIECE: usize = 64 * KIB;
    let object_max = 2 << 20;
    let (growing, budget) = growing(object_max);
    let (bell, mut slow, mut fast) = (Arc::new(Bell::default()), reader(&growing), reader(&growing));
    let waker = Waker::from(Arc::clone(&bell));
    let cx = Context::from_waker(&waker);
    let (mut pushed, mut peak, mut windowed) = (0, 0, false);
    while pushed < 8 << 20 {
        windowed = growing.append(chunk(PIECE)) == Retention::Windowed;
        pushed += PIECE;
        drain(&mut fast);
        let held = budget.held();
        peak = peak.max(held);
        assert_eq!(windowed, pushed > object_max);
        let mut waited = false;
        while growing.poll_room(&cx).is_pending() {
            waited = true;
            let rung = bell.rung();
            assert!(growing.body.lock().lag() > WINDOW);
            assert!(matches!(poll(&mut slow), Poll::Ready(Some(Ok(_)))));
            if growing.body.lock().lag() <= WINDOW {
                assert_eq!(bell.rung(), rung + 1, "the slowest reader wakes the writer");
            }
        }
        if waited {
            assert!(budget.held() <= WINDOW + (WINDOW / PIECE as u64 + 1) * CHUNK);
        }
    }
    assert!(windowed);
    let most = (object_max + PIECE) as u64 + (object_max / PIECE + 1) as u64 * CHUNK;
    assert!(peak <= most, "{peak} > {most}");
    assert_eq!(growing.enter(usize::MAX), Err(Refused::Gone), "the first bytes are gone");
    assert_eq!(growing.complete(), None, "and it cannot be stored");
    let (rest, end) = drain(&mut slow);
    assert!(rest.len() as u64 <= WINDOW && end == Some(Ok(())));
    assert_eq!(drain(&mut fast), (vec![], Some(Ok(()))));
    assert_eq!(budget.held(), 0, "passed by all");
}

#[test]
fn a_reader_that_leaves_lets_the_writer_go_on_and_without_readers_it_stops() {
    let (growing, budget) = growing(0);
    let (bell, stuck, mut fast) = (Arc::new(Bell::default()), reader(&growing), reader(&growing));
    let waker = Waker::from(Arc::clone(&bell));
    let cx = Context::from_waker(&waker);
    growing.append(chunk(3 << 20));
    drain(&mut fast);
    assert!(growing.poll_room(&cx).is_pending());
    drop(stuck);
    assert_eq!(bell.rung(), 1);
    assert_eq!(growing.poll_room(&cx), Poll::Ready(Ok(())));
    assert_eq!(budget.held(), 0);
    growing.append(chunk(3 << 20));
    assert!(growing.poll_room(&cx).is_pending());
    drop(fast);
    assert_eq!(bell.rung(), 2);
    assert_eq!(growing.poll_room(&cx), Poll::Ready(Err(NobodyReads)));
    assert_eq!(budget.held(), 0);
}

/// A reader that holds up all the others for too long is dropped, and no other.
#[test]
fn the_slowest_readers_can_be_dropped() {
    let (growing, _) = growing(64 * KIB);
    let (mut stuck, mut also_stuck, mut fast) = (reader(&growing), reader(&growing), reader(&growing));
    let cx = Context::from_waker(Waker::noop());
    assert_eq!(growing.drop_slowest(), 0, "nobody waits for anybody");
    for _ in 0..3 {
        growing.append(chunk(MIB));
        drain(&mut fast);
    }
    assert!(growing.poll_room(&cx).is_pending());
    assert_eq!(growing.drop_slowest(), 2);
    assert!(growing.poll_room(&cx).is_ready());
    assert_eq!(growing.drop_slowest(), 0);
    for slow in [&mut stuck, &mut also_stuck] {
        assert_eq!(drain(slow), (vec![], Some(Err(Broken::TooSlow))));
        assert!(matches!(poll(slow), Poll::Ready(None)));
    }
    growing.append(chunk(1));
    assert_eq!(drain(&mut fast), (vec![b'x'], None));
    // They leave like all others, and the last reader is noticed all the same.
    drop((stuck, also_stuck));
    growing.append(chunk(1));
    assert_eq!(drain(&mut fast), (vec![b'x'], None));
    drop(fast);
    assert_eq!(growing.poll_room(&cx), Poll::Ready(Err(NobodyReads)));
    let body = growing.body.lock();
    assert_eq!((body.readers, body.offsets.len()), (0, 0));
}

#[test]
fn a_body_beyond_the_budget_of_all_becomes_windowed() {
    let budget = Arc::new(Budget::new(100 * KIB as u64));
    let make = || Arc::new(Growing::<&str>::new(None, in_memory(1 << 20, &budget), 0));
    let (first, second) = (make(), make());
    assert_eq!(first.append(chunk(60 * KIB)), Retention::Whole);
    assert_eq!(second.append(chunk(60 * KIB)), Retention::Windowed);
    assert_eq!(second.complete(), None);
    assert!(first.complete().is_some());
    drop((first, second));
    assert_eq!(budget.held(), 0);
}

#[test]
fn a_body_announced_as_too_long_is_windowed_from_the_start() {
    for (hint, windowed) in [(None, false), (Some(1_000), false), (Some(1_001), true)] {
        let growing = Growing::<&str>::new(hint, in_memory(1_000, &Arc::new(Budget::new(u64::MAX))), 1);
        assert_eq!(growing.is_windowed(), windowed);
    }
}
