//! Content too long for memory: it passes through the disk tier, and is served from there (RFC 9110 §14: ranges; RFC 9111 §3: storing; §4:
//! collapsing).

use std::{fs, path::Path, time::Duration};

use bytes::Bytes;
use tempfile::TempDir;
use testkit::{Gate, Origin, Req, get, not_modified, ok};

use crate::site::Site;

const MIB: usize = 1 << 20;
const LENGTH: usize = 24 * MIB;

/// Returns a film, of which no two stretches are alike.
fn film() -> Bytes {
    (0..LENGTH / 8).flat_map(|word| (word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
}

/// A site with little memory, and with a disk: in a folder that outlives it.
struct Cinema {
    origin: Origin,
    folder: TempDir,
}

impl Cinema {
    fn new() -> Self {
        Self { origin: Origin::start(), folder: tempfile::tempdir().expect("a folder") }
    }

    fn cache(&self) -> &Path {
        self.folder.path()
    }

    fn open(&self) -> Site {
        self.open_with("")
    }

    fn open_with(&self, more: &str) -> Site {
        let (source, dir) = (self.origin.url(), self.cache().display());
        Site::start(&format!(
            "source = \"{source}\"\n[cache]\nmemory = \"8MiB\"\nobject_max = \"1MiB\"\ndir = \"{dir}\"\ndisk = \"1GiB\"\n{more}"
        ))
    }

    /// Bytes in files, of stored responses and of those that are on their way.
    fn bytes(&self, below: &str) -> u64 {
        fn below_it(path: &Path) -> u64 {
            let entries = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry"));
            entries
                .map(|entry| if entry.path().is_dir() { below_it(&entry.path()) } else { entry.metadata().map_or(0, |file| file.len()) })
                .sum()
        }
        below_it(&self.cache().join(below))
    }
}

/// Stored once, served whole and in ranges; after a restart as well, without the origin.
#[tokio::test]
async fn a_film_is_stored_on_the_disk_and_served_from_there() {
    let cinema = Cinema::new();
    let film = film();
    let reply = ok(film.clone()).field("etag", "\"a\"").field("cache-control", "max-age=600").field("content-type", "video/mp4");
    cinema.origin.on(get("/film")).reply(reply);
    let site = cinema.open();
    site.get("/film").await.status(200).body(&film).cache_status("fwd=uri-miss; fwd-status=200; stored");
    let check = async |site: &Site| {
        site.get("/film").await.status(200).body(&film).field("content-length", &LENGTH.to_string()).cache_status("hit");
        for (wanted, from, to) in [("bytes=0-0", 0, 1), ("bytes=65535-65536", 65_535, 65_537), ("bytes=-5", LENGTH - 5, LENGTH)] {
            let answer = site.request(Req::get("/film").field("range", wanted)).await.status(206).body(&film[from..to]).cache_status("hit");
            answer.field("content-range", &format!("bytes {from}-{}/{LENGTH}", to - 1)).field("content-length", &(to - from).to_string());
        }
        let several = site.request(Req::get("/film").field("range", "bytes=1-3,1000000-1100000")).await.status(206);
        let parts = several.content;
        assert!(parts.windows(3).any(|part| part == &film[1..4]) && parts.windows(100_001).any(|part| part == &film[1_000_000..1_100_001]));
        site.request(Req::get("/film").field("range", format!("bytes={LENGTH}-"))).await.status(416);
        site.request(Req::head("/film")).await.status(200).body("").field("content-length", &LENGTH.to_string()).cache_status("hit");
        site.request(Req::get("/film").field("if-none-match", "\"a\"")).await.status(304).body("").cache_status("hit");
    };
    until_stored(&site).await;
    check(&site).await;
    site.stop(Duration::from_secs(60));
    assert!(cinema.bytes("objects") > LENGTH as u64);
    assert_eq!(cinema.bytes("tmp"), 0);
    let site = cinema.open();
    check(&site).await;
    assert_eq!(cinema.origin.count("/film"), 1);
}

/// One who does not read holds up nobody, not even once the content has outgrown memory; and late comers begin at the first byte.
#[tokio::test]
async fn a_slow_viewer_holds_up_nobody() {
    let cinema = Cinema::new();
    let (film, half) = (film(), Gate::new());
    cinema.origin.on(get("/film")).reply(ok(film.clone()).field("cache-control", "max-age=60").gate_after(LENGTH / 2, &half));
    let site = cinema.open();
    let (mut slow, mut fast, mut late) = (site.client().await, site.client().await, site.client().await);
    for client in [&mut slow, &mut fast] {
        client.send(Req::get("/film")).await;
        client.read_head().await.status(200);
    }
    assert_eq!(fast.read_body_bytes(LENGTH / 2).await, film[..LENGTH / 2]);
    late.send(Req::get("/film")).await;
    late.read_head().await.status(200);
    assert_eq!(late.read_body_bytes(LENGTH / 2).await, film[..LENGTH / 2]);
    half.open();
    for client in [&mut fast, &mut late] {
        assert_eq!(client.read_body_bytes(LENGTH - LENGTH / 2).await, film[LENGTH / 2..]);
    }
    site.get("/film").await.status(200).body(&film);
    assert_eq!(slow.read_body_bytes(LENGTH).await, film);
    assert_eq!(cinema.origin.count("/film"), 1);
}

/// A film of unknown length is sent in the same way: it turns out to be long only while it arrives. Whoever began it may go.
#[tokio::test]
async fn whoever_began_it_may_leave() {
    let cinema = Cinema::new();
    let (film, half) = (film(), Gate::new());
    let chunks: Vec<_> = film.chunks(100_000).map(Bytes::copy_from_slice).collect();
    cinema.origin.on(get("/film")).reply(ok("").chunks(chunks).field("cache-control", "max-age=60").gate_after(LENGTH / 2, &half));
    let site = cinema.open();
    let mut first = site.client().await;
    first.send(Req::get("/film")).await;
    first.read_head().await.status(200);
    first.read_body_bytes(LENGTH / 4).await;
    let mut second = site.client().await;
    second.send(Req::get("/film")).await;
    second.read_head().await.status(200);
    first.reset();
    half.open();
    assert_eq!(second.read_body_bytes(LENGTH).await, film);
    until_stored(&site).await;
    site.get("/film").await.status(200).body(&film).cache_status("hit");
    assert_eq!(cinema.origin.count("/film"), 1);
}

/// RFC 9111 §3.3: what is incomplete is not stored; and nothing of it is left on the disk.
#[tokio::test]
async fn a_film_that_breaks_off_is_not_stored() {
    let cinema = Cinema::new();
    let film = film();
    cinema.origin.on(get("/film")).reply(ok(film.clone()).field("cache-control", "max-age=60").break_off_after(LENGTH / 2));
    let site = cinema.open();
    site.get("/film").await.status(200).truncated();
    site.get("/film").await.status(200).truncated();
    assert_eq!(cinema.origin.count("/film"), 2);
    site.stop(Duration::from_secs(60));
    assert_eq!((cinema.bytes("objects"), cinema.bytes("tmp")), (0, 0));
}

/// RFC 9111 §4.3.4: a 304 freshens it, and nothing is written again.
#[tokio::test]
async fn a_304_freshens_a_film_where_it_lies() {
    let cinema = Cinema::new();
    let film = film();
    let reply = ok(film.clone()).field("etag", "\"a\"").field("cache-control", "max-age=10");
    cinema.origin.on(get("/film").without("if-none-match")).reply(reply);
    cinema.origin.on(get("/film").field("if-none-match", "\"a\"")).reply(not_modified().field("cache-control", "max-age=600"));
    let site = cinema.open();
    site.get("/film").await.status(200).body(&film);
    until_stored(&site).await;
    site.clock.advance(Duration::from_secs(11));
    site.get("/film").await.status(200).body(&film).cache_status("fwd-status=304");
    site.clock.advance(Duration::from_secs(500));
    site.get("/film").await.status(200).body(&film).cache_status("hit");
    assert_eq!(cinema.origin.count("/film"), 2);
    site.stop(Duration::from_secs(60));
    let stored = cinema.bytes("objects");
    assert!(stored > LENGTH as u64 && stored < LENGTH as u64 + 64_000, "one file, and no more: {stored}");
}

/// A bit that has flipped is never served: the response breaks off before it, and the next one is the origin's.
#[tokio::test]
async fn a_damaged_film_is_fetched_anew() {
    let cinema = Cinema::new();
    let film = film();
    cinema.origin.on(get("/film")).reply(ok(film.clone()).field("cache-control", "max-age=600"));
    let site = cinema.open();
    site.get("/film").await.status(200).body(&film);
    until_stored(&site).await;
    site.stop(Duration::from_secs(60));
    damage(&cinema.cache().join("objects"), LENGTH / 2);
    let site = cinema.open();
    let answer = site.get("/film").await.status(200).cache_status("hit").truncated();
    assert!(answer.content.len() <= LENGTH / 2 && film.starts_with(&answer.content), "no byte that is not the film's");
    site.get("/film").await.status(200).body(&film).no_cache_status("hit");
    until_stored(&site).await;
    site.get("/film").await.status(200).body(&film).cache_status("hit");
    assert_eq!(cinema.origin.count("/film"), 2);
}

/// Returns once the film is stored: its last byte is with the clients a moment before it is with the disk.
async fn until_stored(site: &Site) {
    let mut client = site.client().await;
    while client.request(Req::head("/film").field("cache-control", "only-if-cached")).await.code != 200 {}
}

/// Flips a bit in the only file there is.
fn damage(folder: &Path, at: usize) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            damage(&path, at);
        } else {
            let mut bytes = fs::read(&path).expect("a file");
            bytes[at] ^= 1;
            fs::write(&path, bytes).expect("written");
        }
    }
}

/// The disk goes away while the film comes in: those who watch it see it to its end.
#[tokio::test]
async fn a_disk_that_fails_breaks_no_response() {
    let cinema = Cinema::new();
    let film = film();
    cinema.origin.on(get("/film")).reply(ok(film.clone()).field("cache-control", "max-age=600"));
    let site = cinema.open();
    fs::remove_dir_all(cinema.cache().join("tmp")).expect("removed");
    site.get("/film").await.status(200).body(&film);
    site.get("/film").await.status(200).body(&film);
    assert_eq!(cinema.origin.count("/film"), 2);
}

/// What is longer than the disk is to take passes through, for each client on its own.
#[tokio::test]
async fn a_film_longer_than_the_disk_is_to_take_is_not_stored() {
    let cinema = Cinema::new();
    let film = film();
    cinema.origin.on(get("/film")).reply(ok(film.clone()).field("cache-control", "max-age=600"));
    let site = cinema.open_with("disk_object_max = \"20MiB\"");
    for _ in 0..2 {
        site.get("/film").await.status(200).body(&film).cache_status("fwd=uri-miss");
    }
    assert_eq!((cinema.origin.count("/film"), cinema.bytes("tmp")), (2, 0));
}
