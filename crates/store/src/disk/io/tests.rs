use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::Wake;

use super::*;

fn io() -> Io {
    Io::start().expect("threads")
}

/// Returns a job that reports when it has begun, and ends when it is told to.
fn gate() -> (impl FnOnce() + Send + 'static, Receiver<()>, SyncSender<()>) {
    let ((began, begun), (open, opened)) = (sync_channel(1), sync_channel(1));
    let job = move || {
        let _ = began.send(());
        let _ = opened.recv();
    };
    (job, begun, open)
}

/// Holds both threads: one with a write, one with a read.
fn hold(io: &Io) -> (SyncSender<()>, SyncSender<()>) {
    let ((write, writing, write_on), (read, reading, read_on)) = (gate(), gate());
    drop(io.write(1, write).expect("room"));
    writing.recv().expect("begun");
    let held = io.read(read).expect("room");
    reading.recv().expect("begun");
    drop(held);
    (write_on, read_on)
}

/// Makes a gathered write of a job to which it does not matter what follows.
fn gathered(job: impl FnOnce() + Send + 'static) -> impl FnOnce(Batch) + Send + 'static {
    move |_| job()
}

#[test]
fn results_come_back() {
    let io = io();
    assert_eq!(io.read(|| 1).expect("room").wait(), Some(1));
    assert_eq!(io.write(9, || 2).expect("room").wait(), Some(2));
}

#[test]
fn writes_run_one_at_a_time_and_in_order_while_reads_go_on() {
    let io = io();
    let (job, begun, open) = gate();
    drop(io.write(1, job).expect("room"));
    begun.recv().expect("begun");
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut last = None;
    for number in 0..100 {
        let order = Arc::clone(&order);
        last = Some(io.write(1, move || order.lock().push(number)).expect("room"));
    }
    // The other thread goes on reading, and writes nothing meanwhile.
    assert_eq!(io.read(|| "read").expect("room").wait(), Some("read"));
    assert!(order.lock().is_empty());
    open.send(()).expect("open");
    last.expect("queued").wait().expect("done");
    assert_eq!(*order.lock(), Vec::from_iter(0..100));
}

#[test]
fn writes_that_nobody_waits_for_run_by_themselves_and_in_order_with_the_others() {
    let io = io();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (done, ended) = sync_channel(1);
    let note = |what: &'static str| {
        let order = Arc::clone(&order);
        move || order.lock().push(what)
    };
    io.write_gathered(1, gathered(note("gathered"))).expect("room");
    io.write(1, note("waited for")).expect("room").wait().expect("done");
    io.write_gathered(1, gathered(note("gathered later"))).expect("room");
    io.write_gathered(1, move |_| done.send(()).expect("asked for")).expect("room");
    // Nothing else is queued that would begin them.
    ended.recv().expect("they ran");
    assert_eq!(*order.lock(), ["gathered", "waited for", "gathered later"]);
    assert_eq!(io.read(|| "read").expect("room").wait(), Some("read"));
}

#[test]
fn gathered_writes_run_beside_readers_and_before_the_end() {
    let io = io();
    let (job, begun, open) = gate();
    let held = io.read(job).expect("room");
    begun.recv().expect("begun");
    let written = Arc::new(AtomicUsize::new(0));
    let (done, ended) = sync_channel(1);
    for number in 0..100 {
        let (written, done) = (Arc::clone(&written), done.clone());
        let job = move |_| {
            written.fetch_add(1, Ordering::Relaxed);
            if number == 99 {
                done.send(()).expect("asked for");
            }
        };
        io.write_gathered(GATHERED_BYTES_MAX / 30, job).expect("room");
    }
    // One thread is held by a reader: the other one writes.
    ended.recv().expect("they ran");
    open.send(()).expect("open");
    held.wait().expect("done");
    for _ in 0..10 {
        let written = Arc::clone(&written);
        io.write_gathered(1, move |_| {
            written.fetch_add(1, Ordering::Relaxed);
        })
        .expect("room");
    }
    assert!(io.close(Duration::from_secs(60)), "nothing is dropped");
    assert_eq!(written.load(Ordering::Relaxed), 110);
    assert_eq!(io.write_gathered(1, |_| ()), Err(Busy));
}

#[test]
fn a_gathered_write_is_told_whether_another_one_follows() {
    let io = io();
    let (write_on, read_on) = hold(&io);
    let told = Arc::new(Mutex::new(Vec::new()));
    let note = |name: char| {
        let told = Arc::clone(&told);
        move |batch| told.lock().push((name, batch))
    };
    io.write_gathered(1, note('a')).expect("room");
    io.write_gathered(1, note('b')).expect("room");
    io.write(1, || ()).expect("room");
    io.write_gathered(1, note('c')).expect("room");
    write_on.send(()).expect("open");
    read_on.send(()).expect("open");
    assert!(io.close(Duration::from_secs(60)), "nothing is dropped");
    assert_eq!(*told.lock(), [('a', Batch::GoesOn), ('b', Batch::Ends), ('c', Batch::Ends)]);
}

#[test]
fn reads_overtake_writes_but_not_for_ever() {
    let io = io();
    let (write_on, read_on) = hold(&io);
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |what: char| {
        let order = Arc::clone(&order);
        move || order.lock().push(what)
    };
    drop(io.write(1, note('w')).expect("room"));
    let reads: Vec<_> = (0..100).map(|_| io.read(note('r')).expect("room")).collect();
    // The writing thread stays held: the other one does everything else, but the write has to wait for the held one.
    read_on.send(()).expect("open");
    for read in reads {
        read.wait().expect("done");
    }
    assert_eq!(order.lock().iter().filter(|what| **what == 'w').count(), 0);
    let (job, begun, open) = gate();
    let held = io.read(job).expect("room");
    begun.recv().expect("begun");
    let reads: Vec<_> = (0..100).map(|_| io.read(note('r')).expect("room")).collect();
    write_on.send(()).expect("open");
    for read in reads {
        read.wait().expect("done");
    }
    let at = order.lock().iter().skip(100).position(|what| *what == 'w');
    assert_eq!(at, Some(OVERTAKING_MAX));
    open.send(()).expect("open");
    held.wait().expect("done");
}

#[test]
fn queues_are_bounded() {
    let io = io();
    let (write_on, read_on) = hold(&io);
    let reads: Vec<_> = (0..READS_MAX).map(|_| io.read(|| ()).expect("room")).collect();
    assert_eq!(io.read(|| ()).err(), Some(Busy));
    drop(io.write(WRITE_BYTES_MAX - 1, || ()).expect("room"));
    assert_eq!(io.write(1, || ()).err(), Some(Busy));
    assert_eq!(io.write_bytes(), WRITE_BYTES_MAX);
    drop(io.write(0, || ()).expect("what weighs nothing goes in"));
    write_on.send(()).expect("open");
    read_on.send(()).expect("open");
    for read in reads {
        read.wait().expect("done");
    }
    io.write(0, || ()).expect("room").wait().expect("done");
    // A job that is heavier than the bound is accepted when it is alone.
    assert_eq!(io.write(2 * WRITE_BYTES_MAX, || 7).expect("alone").wait(), Some(7));
}

#[test]
fn a_read_that_nobody_waits_for_is_not_begun() {
    let io = io();
    let (write_on, read_on) = hold(&io);
    let begun = Arc::new(AtomicUsize::new(0));
    let count = |begun: &Arc<AtomicUsize>| {
        let begun = Arc::clone(begun);
        move || begun.fetch_add(1, Ordering::Relaxed)
    };
    drop(io.read(count(&begun)).expect("room"));
    let kept = io.read(count(&begun)).expect("room");
    read_on.send(()).expect("open");
    assert_eq!(kept.wait(), Some(0));
    write_on.send(()).expect("open");
}

#[test]
fn a_job_that_panics_takes_nobody_with_it() {
    let io = io();
    for _ in 0..2 * THREADS {
        assert_eq!(io.read(|| panic!("a read of the test")).expect("room").wait(), None::<()>);
        assert_eq!(io.write(5, || panic!("a write of the test")).expect("room").wait(), None::<()>);
    }
    assert_eq!(io.write(0, || 1).expect("room").wait(), Some(1));
    assert_eq!(io.write_bytes(), 0);
}

#[test]
fn who_waits_for_room_is_woken_when_half_of_it_is_free() {
    struct Bell(AtomicUsize);
    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (io, bell) = (io(), Arc::new(Bell(AtomicUsize::new(0))));
    let waker = Waker::from(Arc::clone(&bell));
    let cx = Context::from_waker(&waker);
    assert!(io.poll_room(&cx).is_ready());
    let (job, begun, open) = gate();
    let first = io.write(WRITE_BYTES_MAX, job).expect("room");
    begun.recv().expect("begun");
    for _ in 0..3 {
        assert!(io.poll_room(&cx).is_pending());
    }
    open.send(()).expect("open");
    first.wait().expect("done");
    io.write(0, || ()).expect("room").wait().expect("done");
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    assert!(io.poll_room(&cx).is_ready());
}

#[test]
fn closing_waits_for_writes_and_takes_no_more() {
    let io = io();
    let written = Arc::new(AtomicUsize::new(0));
    for _ in 0..1_000 {
        let written = Arc::clone(&written);
        drop(io.write(1, move || written.fetch_add(1, Ordering::Relaxed)).expect("room"));
    }
    assert!(io.close(Duration::from_secs(60)));
    assert_eq!(written.load(Ordering::Relaxed), 1_000);
    assert_eq!(io.read(|| ()).err(), Some(Busy));
    assert_eq!(io.write(0, || ()).err(), Some(Busy));
    assert!(io.close(Duration::ZERO), "and again");
}

#[test]
fn closing_does_not_wait_for_ever() {
    let io = io();
    let (write_on, read_on) = hold(&io);
    let lost = io.write(1, || ()).expect("room");
    assert!(!io.close(Duration::ZERO));
    assert_eq!(lost.wait(), None);
    write_on.send(()).expect("open");
    read_on.send(()).expect("open");
}

#[test]
fn the_last_owner_may_be_a_job() {
    let io = Arc::new(io());
    let (job, own) = (sync_channel::<Arc<Io>>(1), Arc::clone(&io));
    let (done, ended) = sync_channel(1);
    drop(io.write(0, move || {
        drop(job.1.recv().expect("handed over"));
        done.send(()).expect("listening");
    }));
    drop(io);
    job.0.send(own).expect("waiting");
    ended.recv().expect("it has not waited for itself");
}
