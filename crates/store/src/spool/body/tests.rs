use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::disk::format::Pieces;
use crate::purge::Generation;
use crate::resource::Scope;
use crate::spool::{Spool, SpoolFile};

const LENGTH: usize = 3 * PIECE + 1_000;

struct Disk {
    io: Arc<Io>,
    folder: tempfile::TempDir,
}

impl Disk {
    fn new() -> Self {
        Self { io: Arc::new(Io::start().expect("threads")), folder: tempfile::tempdir().expect("a folder") }
    }

    fn spool(&self, body: &[u8]) -> (Arc<SpoolFile>, DiskBody) {
        let file = Spool::new(Arc::clone(&self.io), self.folder.path().to_owned()).file();
        let chunks: Vec<_> = body.chunks(10_000).map(Bytes::copy_from_slice).collect();
        file.write(0, &chunks).expect("written");
        let body = file.into_body(body.len() as u64).expect("whole");
        (file, body)
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("object")
    }

    /// Returns a stored body, as a later process finds it.
    fn stored(&self, body: &[u8]) -> DiskBody {
        let (_file, spooled) = self.spool(body);
        spooled.finish(&head(body).tail().expect("a short head"), &self.place()).expect("finished");
        let found = Head::read(&File::open(self.place()).expect("there")).expect("read").expect("ours");
        assert_eq!(found, head(body));
        DiskBody::stored(&self.io, self.place(), &found)
    }

    async fn files(&self) -> usize {
        self.io.write(0, || ()).expect("room").await.expect("done");
        fs::read_dir(self.folder.path()).expect("the folder").count()
    }
}

fn head(body: &[u8]) -> Head {
    let scope = Scope { site: 3, url: (*b"h/film").into(), tags: ["x".into()].into() };
    let (key, record) = ((*b"key").into(), b"record".to_vec());
    Head { key, scope, begun: Generation(7), sequence: 9, record, body_len: body.len() as u64, pieces: Pieces::of(body) }
}

fn content() -> Vec<u8> {
    (0..LENGTH).map(|at| u8::try_from((at / 251 + at) % 256).expect("below 256")).collect()
}

async fn all(open: &OpenBody, mut range: Range<u64>) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    while !range.is_empty() {
        let piece = open.read(&range).await?;
        assert!(!piece.is_empty() && piece.len() <= PIECE);
        range.start += piece.len() as u64;
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

#[tokio::test]
async fn every_range_is_what_was_stored() {
    let (disk, content) = (Disk::new(), content());
    let (file, spooled) = disk.spool(&content);
    let stored = disk.stored(&content);
    let (length, piece) = (LENGTH as u64, PIECE as u64);
    for body in [&spooled, &stored] {
        let open = body.open().await.expect("there");
        for range in [0..length, 0..1, length - 1..length, piece - 1..piece + 1, piece..2 * piece, 5..length - 5, 3 * piece..length] {
            let inside = usize::try_from(range.start).expect("short")..usize::try_from(range.end).expect("short");
            assert_eq!(all(&open, range.clone()).await.expect("sound"), content[inside], "{range:?}");
        }
        for outside in [0..0, 9..9, length..length + 1, length - 1..length + 1, u64::MAX - 1..u64::MAX] {
            assert!(open.read(&outside).await.is_err(), "{outside:?}");
        }
        assert!(!body.is_damaged());
    }
    drop(file);
}

#[tokio::test]
async fn damage_is_found_where_it_is_and_the_file_is_removed() {
    let (disk, content) = (Disk::new(), content());
    let body = disk.stored(&content);
    let mut bytes = fs::read(disk.place()).expect("there");
    bytes[PIECE + 5] ^= 1;
    fs::write(disk.place(), bytes).expect("written");
    let open = body.open().await.expect("there");
    let piece = PIECE as u64;
    assert_eq!(all(&open, 0..piece).await.expect("sound"), content[..PIECE]);
    assert!(all(&open, piece + 100..piece + 101).await.is_err(), "the checksum is that of the whole piece");
    assert!(body.is_damaged());
    assert_eq!(disk.files().await, 0);
    // A reader of sound bytes is served to the end.
    assert_eq!(all(&open, 2 * piece..3 * piece).await.expect("sound"), content[2 * PIECE..3 * PIECE]);
}

#[tokio::test]
async fn a_file_that_is_gone_or_cut_off_is_a_miss() {
    for cut in [None, Some(LENGTH as u64 - 1), Some(0)] {
        let disk = Disk::new();
        let body = disk.stored(&content());
        match cut {
            None => fs::remove_file(disk.place()).expect("there"),
            Some(length) => File::options().write(true).open(disk.place()).expect("there").set_len(length).expect("cut"),
        }
        assert!(body.open().await.is_err(), "{cut:?}");
        assert!(body.is_damaged());
        assert_eq!(disk.files().await, 0);
    }
}

/// The body is evicted while it is delivered: the delivery goes on, the next one does not begin.
#[tokio::test]
async fn whoever_has_it_open_reads_it_to_its_end() {
    let (disk, content) = (Disk::new(), content());
    let body = disk.stored(&content);
    let open = body.open().await.expect("there");
    fs::remove_file(disk.place()).expect("there");
    let also = body.open().await.expect("they share the open file");
    assert_eq!(all(&open, 0..LENGTH as u64).await.expect("sound"), content);
    assert_eq!(all(&also, 0..9).await.expect("sound"), content[..9]);
    drop((open, also));
    assert!(body.open().await.is_err());
}

#[tokio::test]
async fn a_temporary_file_goes_with_its_last_owner_and_a_finished_one_stays() {
    let (disk, content) = (Disk::new(), content());
    let (file, body) = disk.spool(&content);
    drop(file);
    assert_eq!(disk.files().await, 1);
    assert!(!body.is_finished());
    drop(body);
    assert_eq!(disk.files().await, 0);
    let (file, body) = disk.spool(&content);
    // It is delivered before and while it moves.
    let before = body.open().await.expect("there");
    let length = body.finish(&head(&content).tail().expect("a short head"), &disk.place()).expect("finished");
    assert!(body.is_finished());
    let metadata = fs::metadata(disk.place()).expect("there");
    assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (length, 0o600));
    assert_eq!(all(&before, 0..LENGTH as u64).await.expect("sound"), content);
    drop((file, before));
    let after = body.open().await.expect("at its new place");
    assert_eq!(all(&after, 0..LENGTH as u64).await.expect("sound"), content);
    drop((body, after));
    assert_eq!(disk.files().await, 1);
}

#[tokio::test]
async fn a_file_that_cannot_be_finished_is_served_and_goes_with_its_owner() {
    let (disk, content) = (Disk::new(), content());
    let (file, body) = disk.spool(&content);
    assert!(body.finish(&head(&content).tail().expect("a short head"), &disk.folder.path().join("no/such/folder")).is_err());
    drop(file);
    let open = body.open().await.expect("where it was");
    assert_eq!(all(&open, 0..LENGTH as u64).await.expect("sound"), content);
    drop((open, body));
    assert_eq!(disk.files().await, 0);
}
