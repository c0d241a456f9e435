use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::task::Waker;

use super::*;
use crate::content::Content;
use crate::disk::io::Io;
use crate::growing::{Bounds, Broken, Budget, Reader, Retention};
use crate::spool::Spool;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

type Body = Arc<Growing<&'static str>>;

/// A disk in a folder that is removed with it.
struct Disk {
    io: Arc<Io>,
    folder: tempfile::TempDir,
    spool: Arc<Spool>,
    budget: Arc<Budget>,
}

impl Disk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let io = Arc::new(Io::start().expect("threads"));
        let spool = Arc::new(Spool::new(Arc::clone(&io), folder.path().to_owned()));
        Self { io, folder, spool, budget: Arc::new(Budget::new(u64::MAX)) }
    }

    fn body(&self, hint: Option<u64>, memory_max: usize, spool_max: usize) -> Body {
        let bounds = Bounds {
            memory_max: memory_max as u64,
            spool: Some((Arc::clone(&self.spool), spool_max as u64)),
            budget: Arc::clone(&self.budget),
        };
        Arc::new(Growing::new(hint, bounds, 0))
    }

    /// Waits until every job so far is done.
    async fn settle(&self) {
        self.io.write(0, || ()).expect("room").await.expect("done");
    }

    async fn files(&self) -> Vec<PathBuf> {
        // A running batch may be the last owner of its file, which is removed by a job that comes after the first of these.
        self.settle().await;
        self.settle().await;
        std::fs::read_dir(self.folder.path()).expect("the folder").map(|entry| entry.expect("an entry").path()).collect()
    }

    /// Holds all writes until the sender sends.
    fn hold(&self) -> SyncSender<()> {
        let ((began, begun), (open, opened)) = (sync_channel(1), sync_channel(1));
        drop(self.io.write(0, move || {
            let _ = began.send(());
            let _ = opened.recv();
        }));
        begun.recv().expect("begun");
        open
    }
}

fn reader(body: &Body) -> Reader<&'static str> {
    body.enter(usize::MAX).expect("open");
    Reader::entered(Arc::clone(body))
}

/// Returns the bytes at these offsets of every body here: no two pieces are alike.
fn pattern(range: std::ops::Range<usize>) -> Bytes {
    const PERIOD: usize = 1_000_003;
    static TWICE: OnceLock<Bytes> = OnceLock::new();
    let byte = |at: usize| u8::try_from((at % PERIOD / 251 + at % PERIOD) % 256).expect("below 256");
    let twice = TWICE.get_or_init(|| (0..2 * PERIOD).map(byte).collect());
    let mut bytes = Vec::with_capacity(range.len());
    while bytes.len() < range.len() {
        let at = (range.start + bytes.len()) % PERIOD;
        bytes.extend_from_slice(&twice[at..at + PERIOD.min(range.len() - bytes.len())]);
    }
    bytes.into()
}

async fn push(body: &Body, chunk: Bytes) -> Result<(), NobodyReads> {
    match body.append(chunk) {
        Retention::Whole => Ok(()),
        Retention::Spooled | Retention::Windowed => std::future::poll_fn(|cx| body.poll_room(cx)).await,
    }
}

/// Reads on until `to`, and compares every byte.
async fn read(reader: &mut Reader<&'static str>, from: &mut usize, to: usize) {
    while *from < to {
        let chunk = reader.chunk().await.expect("not the end").expect("not broken");
        assert!(chunk == pattern(*from..*from + chunk.len()), "other bytes at {from}");
        *from += chunk.len();
    }
}

async fn finish(body: &Body) -> Option<Content> {
    match body.complete() {
        Some(whole) => Some(Content::Memory(whole)),
        None => body.spooled().await.map(Content::Disk),
    }
}

/// A body of 64 MiB passes through a memory of one: the leader's client keeps up, another reads nothing until the end, a third comes in the
/// middle. Memory stays within what may be kept, and what may wait for the disk.
#[tokio::test]
async fn a_long_body_passes_through_its_file_and_nobody_waits_for_anybody() {
    const LENGTH: usize = 64 * MIB;
    const CHUNK: usize = 48 * KIB;
    for hint in [None, Some(LENGTH as u64)] {
        let disk = Disk::new();
        let body = disk.body(hint, MIB, 1 << 30);
        let (mut fast, mut fast_at) = (reader(&body), 0);
        let (mut slow, mut slow_at) = (reader(&body), 0);
        let (mut late, mut late_at) = (None, 0);
        let (mut pushed, mut peak) = (0, 0);
        while pushed < LENGTH {
            let end = LENGTH.min(pushed + CHUNK);
            push(&body, pattern(pushed..end)).await.expect("wanted");
            pushed = end;
            peak = peak.max(disk.budget.held());
            read(&mut fast, &mut fast_at, pushed).await;
            if pushed > LENGTH / 2 {
                read(late.get_or_insert_with(|| reader(&body)), &mut late_at, pushed / 3).await;
            }
        }
        let most = 2 * MIB + 2 * CHUNK;
        assert!(peak <= (most + most / KIB) as u64, "{peak}");
        let Some(Content::Disk(whole)) = finish(&body).await else { panic!("it goes to the disk") };
        assert_eq!(whole.len(), LENGTH as u64);
        assert_eq!(disk.budget.held(), 0, "nothing is left in memory");
        read(&mut slow, &mut slow_at, LENGTH).await;
        read(late.as_mut().expect("came"), &mut late_at, LENGTH).await;
        for reader in [&mut fast, &mut slow, late.as_mut().expect("came")] {
            assert_eq!(reader.chunk().await, None);
        }
        let mut last = reader(&body);
        read(&mut last, &mut 0, LENGTH).await;
        assert_eq!(disk.files().await.len(), 1);
        // A reader that still reads it may go on: the file is removed with the last of them.
        drop(whole);
        assert_eq!(disk.files().await.len(), 1);
        drop((fast, slow, late, last, body));
        assert!(disk.files().await.is_empty());
    }
}

#[tokio::test]
async fn a_body_that_nobody_reads_any_more_is_stored_all_the_same() {
    let disk = Disk::new();
    let body = disk.body(None, 64 * KIB, MIB);
    let mut leaves = reader(&body);
    push(&body, pattern(0..100 * KIB)).await.expect("wanted");
    read(&mut leaves, &mut 0, 1).await;
    drop(leaves);
    push(&body, pattern(100 * KIB..200 * KIB)).await.expect("wanted");
    let Some(Content::Disk(whole)) = finish(&body).await else { panic!("it goes to the disk") };
    assert_eq!(whole.len(), 200 * KIB as u64);
}

/// The origin waits for the disk, and for nothing else; memory is bounded meanwhile.
#[tokio::test]
async fn the_writer_waits_for_the_disk() {
    let disk = Disk::new();
    let held = disk.hold();
    let body = disk.body(Some(16 * MIB as u64), MIB, 1 << 30);
    let cx = Context::from_waker(Waker::noop());
    let mut pushed = 0;
    while body.poll_room(&cx).is_ready() {
        body.append(pattern(pushed..pushed + 64 * KIB));
        pushed += 64 * KIB;
        assert!(pushed <= 2 * MIB, "nothing holds it");
    }
    assert!(pushed as u64 > WINDOW && disk.budget.held() <= WINDOW + 80 * KIB as u64);
    // Readers do not wait: bytes that are not on the disk are in memory.
    let (mut fast, mut at) = (reader(&body), 0);
    read(&mut fast, &mut at, pushed).await;
    held.send(()).expect("held");
    while pushed < 16 * MIB {
        push(&body, pattern(pushed..pushed + 64 * KIB)).await.expect("wanted");
        pushed += 64 * KIB;
    }
    assert!(finish(&body).await.is_some());
    read(&mut fast, &mut at, pushed).await;
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_nothing_behind() {
    let disk = Disk::new();
    let body = disk.body(None, 64 * KIB, 1 << 30);
    let mut follower = reader(&body);
    push(&body, pattern(0..3 * MIB)).await.expect("wanted");
    body.break_off(Broken::Failed("reset"));
    read(&mut follower, &mut 0, 3 * MIB).await;
    assert_eq!(follower.chunk().await, Some(Err(Broken::Failed("reset"))));
    assert_eq!(follower.chunk().await, None);
    drop((follower, body));
    assert!(disk.files().await.is_empty());
}

/// A missing folder simulates every disk that fails at once: readers get the whole body through the window.
#[tokio::test]
async fn a_disk_that_fails_leaves_the_window() {
    let disk = Disk::new();
    std::fs::remove_dir(disk.folder.path()).expect("removed");
    let body = disk.body(None, 64 * KIB, 1 << 30);
    let (mut fast, mut at, mut pushed) = (reader(&body), 0, 0);
    while pushed < 8 * MIB {
        push(&body, pattern(pushed..pushed + 64 * KIB)).await.expect("wanted");
        pushed += 64 * KIB;
        disk.settle().await;
        read(&mut fast, &mut at, pushed).await;
    }
    assert!(body.is_windowed());
    assert!(finish(&body).await.is_none(), "it cannot be stored");
    assert_eq!(fast.chunk().await, None);
    assert!(disk.budget.held() <= WINDOW);
}

/// A disk that is closed in the middle leaves nobody waiting either.
#[tokio::test]
async fn a_disk_that_is_closed_leaves_the_window() {
    let disk = Disk::new();
    let body = disk.body(None, 64 * KIB, 1 << 30);
    let (mut fast, mut at, mut pushed) = (reader(&body), 0, 0);
    while pushed < 8 * MIB {
        if pushed == 4 * MIB {
            assert!(disk.io.close(std::time::Duration::from_secs(60)));
        }
        push(&body, pattern(pushed..pushed + 64 * KIB)).await.expect("wanted");
        pushed += 64 * KIB;
        read(&mut fast, &mut at, pushed).await;
    }
    assert!(finish(&body).await.is_none());
    assert_eq!(fast.chunk().await, None);
}

/// A body that has outgrown the disk is not stored; a reader that lags still reads the beginning from the file.
#[tokio::test]
async fn a_body_too_long_for_the_disk_too_goes_on_through_the_window() {
    let disk = Disk::new();
    let body = disk.body(None, 64 * KIB, 2 * MIB);
    let (mut fast, mut fast_at) = (reader(&body), 0);
    let (mut slow, mut slow_at) = (reader(&body), 0);
    let mut pushed = 0;
    while pushed < 3 * MIB {
        assert!(!body.is_windowed() || pushed > 2 * MIB);
        body.append(pattern(pushed..pushed + 64 * KIB));
        pushed += 64 * KIB;
        let _ = body.poll_room(&Context::from_waker(Waker::noop()));
        disk.settle().await;
    }
    assert!(body.is_windowed());
    read(&mut fast, &mut fast_at, pushed).await;
    assert!(body.poll_room(&Context::from_waker(Waker::noop())).is_pending(), "the slow one holds it up now");
    read(&mut slow, &mut slow_at, pushed).await;
    assert!(finish(&body).await.is_none());
    drop((fast, slow, body));
    assert!(disk.files().await.is_empty());
}

#[tokio::test]
async fn a_body_announced_as_too_long_for_the_disk_makes_no_file() {
    let disk = Disk::new();
    let body = disk.body(Some(2 * MIB as u64 + 1), 64 * KIB, 2 * MIB);
    assert!(body.is_windowed());
    let mut only = reader(&body);
    push(&body, pattern(0..MIB)).await.expect("wanted");
    read(&mut only, &mut 0, MIB).await;
    assert!(disk.files().await.is_empty());
}
