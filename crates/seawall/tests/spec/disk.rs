//! The disk tier: what is stored outlives a restart, what was purged does not, and nothing that a disk can do keeps a page from its reader.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

use store::{DiskState, Hardness, PurgeTarget};
use tempfile::TempDir;
use testkit::{Gate, Origin, Req, get, not_modified, ok, secs};

use crate::site::{HOST, Site};

fn place() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn start(origin: &Origin, place: &TempDir) -> Site {
    start_with(origin, place, "")
}

/// Returns a server in front of the origin, with its stored responses in `place`.
fn start_with(origin: &Origin, place: &TempDir, keys: &str) -> Site {
    let dir = place.path().join("cache");
    Site::start(&format!("source = \"{}\"\n[cache]\ndir = \"{}\"\ndisk = \"64MiB\"\n{keys}", origin.url(), dir.display()))
}

/// Stops in order, as for an upgrade.
fn stop(site: Site) {
    thread::spawn(move || site.stop(secs(5))).join().expect("stopped");
}

fn files(place: &TempDir) -> Vec<PathBuf> {
    let list = |dir: &Path| fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>();
    list(&place.path().join("cache/objects")).iter().flat_map(|bucket| list(bucket)).collect()
}

#[tokio::test]
async fn a_restart_serves_what_was_stored_without_asking_the_origin() {
    let (origin, place) = (Origin::start(), place());
    let page = ok("text").field("cache-control", "max-age=600").field("etag", "\"a\"").field("vary", "accept-language");
    origin.on(get("/post")).reply(page.field("content-language", "en"));
    let site = start(&origin, &place);
    let request = || Req::get("/post").field("accept-language", "en");
    let before = site.request(request()).await.status(200).body("text").cache_status("fwd=uri-miss; stored");
    stop(site);

    let site = start(&origin, &place);
    let after = site.request(request()).await.status(200).body("text").cache_status("hit").field("content-language", "en");
    for field in ["date", "etag", "vary", "content-length", "content-type"] {
        assert_eq!(after.value(field), before.value(field), "{field}");
    }
    site.request(request()).await.cache_status("hit");
    assert_eq!(site.server.usage().disk_loads, 1, "from memory from then on");
    // Its validator works, and its variants are told apart.
    site.request(request().field("if-none-match", "\"a\"")).await.status(304);
    site.request(Req::get("/post").field("accept-language", "de")).await.cache_status("fwd=vary-miss; stored");
    assert_eq!(origin.count("/post"), 2);
}

#[tokio::test]
async fn with_the_origin_down_a_restart_serves_stale_pages() {
    let (origin, place) = (Origin::start(), place());
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=10"));
    let site = start(&origin, &place);
    site.get("/post").await.status(200);
    stop(site);
    let site = start(&origin, &place);
    origin.kill();
    site.clock.advance(secs(11));
    site.get("/post").await.status(200).body("text").cache_status("fwd=stale");
}

#[tokio::test]
async fn a_stale_page_from_the_disk_is_validated_and_written_anew() {
    let (origin, place) = (Origin::start(), place());
    origin.on(get("/post").without("if-none-match")).reply(ok("text").field("cache-control", "max-age=10").field("etag", "\"a\""));
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(not_modified().field("cache-control", "max-age=600"));
    let site = start(&origin, &place);
    site.get("/post").await.status(200);
    stop(site);
    let site = start(&origin, &place);
    site.clock.advance(secs(11));
    site.get("/post").await.status(200).body("text").cache_status("fwd=stale; fwd-status=304");
    stop(site);
    assert_eq!(files(&place).len(), 1);
    let site = start(&origin, &place);
    site.clock.advance(secs(60));
    site.get("/post").await.status(200).body("text").cache_status("hit");
    assert_eq!(origin.count("/post"), 2);
}

#[tokio::test]
async fn a_purge_survives_a_restart() {
    let url = || format!("{HOST}/post").into_bytes();
    for target in
        [PurgeTarget::Url { site: 0, url: url() }, PurgeTarget::Prefix { site: 0, url: url() }, PurgeTarget::Site(0), PurgeTarget::All]
    {
        let (origin, place) = (Origin::start(), place());
        origin.on(get("/post")).reply(ok("old").field("cache-control", "max-age=600"));
        let site = start(&origin, &place);
        site.get("/post").await.body("old");
        site.purge(&target, Hardness::Hard);
        stop(site);

        origin.on(get("/post")).reply(ok("new").field("cache-control", "max-age=600"));
        let site = start(&origin, &place);
        site.get("/post").await.body("new").cache_status("fwd=uri-miss");
        stop(site);
        let site = start(&origin, &place);
        site.get("/post").await.body("new").cache_status("hit");
    }
}

/// Softly purged, a page may be shown while it is refreshed; but fresh it is not.
#[tokio::test]
async fn a_soft_purge_survives_a_restart() {
    let (origin, place) = (Origin::start(), place());
    origin.on(get("/post")).reply(ok("old").field("cache-control", "max-age=600"));
    let site = start(&origin, &place);
    site.get("/post").await.body("old");
    site.purge(&PurgeTarget::All, Hardness::Soft);
    stop(site);
    origin.on(get("/post")).reply(ok("new").field("cache-control", "max-age=600"));
    let site = start(&origin, &place);
    site.get("/post").await.body("old").x_cache("UPDATING");
    origin.until_count("/post", 2).await;
    // Its refreshing is the stop's to wait for.
    stop(site);
    let site = start(&origin, &place);
    site.get("/post").await.body("new").cache_status("hit");
}

/// RFC 9111 §4.4: a restart does not undo an invalidation by an unsafe method.
#[tokio::test]
async fn an_invalidation_survives_a_restart() {
    let (origin, place) = (Origin::start(), place());
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=600"));
    origin.on(testkit::post("/post")).reply(ok("thanks"));
    let site = start(&origin, &place);
    site.get("/post").await.status(200);
    site.request(Req::post("/post").body("a comment")).await.status(200);
    stop(site);
    let site = start(&origin, &place);
    site.get("/post").await.cache_status("fwd=uri-miss");
}

#[tokio::test]
async fn a_crowd_after_a_restart_reads_the_disk_once_and_never_the_origin() {
    let (origin, place) = (Origin::start(), place());
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=600"));
    let site = start(&origin, &place);
    site.get("/post").await.status(200);
    stop(site);
    let site = start(&origin, &place);
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = site.client().await;
        client.send(Req::get("/post")).await;
        clients.push(client);
    }
    for mut client in clients {
        client.read_answer().await.status(200).body("text").cache_status("hit");
    }
    assert_eq!((origin.count("/post"), site.server.usage().disk_loads), (1, 1));
}

#[tokio::test]
async fn a_damaged_file_is_a_miss() {
    type Spoil = fn(&mut Vec<u8>);
    // A page stands behind a label of 48 bytes.
    let cases: [(&str, Spoil, u64); 6] = [
        ("empty", Vec::clear, 0),
        ("truncated, as by a kill", |bytes| bytes.truncate(bytes.len() - 3), 0),
        ("a flipped bit of the label", |bytes| bytes[20] ^= 1, 1),
        ("a flipped bit of the page", |bytes| bytes[50] ^= 1, 1),
        ("a flipped bit of its fields", |bytes| bytes[150] ^= 1, 1),
        ("foreign", |bytes| *bytes = b"nothing of ours".to_vec(), 1),
    ];
    for (case, spoil, damaged) in cases {
        let (origin, place) = (Origin::start(), place());
        origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=600"));
        let site = start(&origin, &place);
        site.get("/post").await.status(200);
        stop(site);
        let [file] = &files(&place)[..] else { panic!("one file") };
        let mut bytes = fs::read(file).expect("there");
        spoil(&mut bytes);
        fs::write(file, bytes).expect("written");
        let site = start(&origin, &place);
        site.get("/post").await.status(200).body("text").cache_status("fwd=uri-miss; stored");
        assert_eq!(site.server.usage().disk_damaged, damaged, "{case}");
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_leaves_the_memory_tier() {
    let (origin, place) = (Origin::start(), place());
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=600"));
    // A file stands where the folder would be made: no user can write there, whatever his rights.
    fs::write(place.path().join("file"), "").expect("written");
    let dir = place.path().join("file/cache");
    let site = Site::start(&format!("source = \"{}\"\n[cache]\ndir = \"{}\"\ndisk = \"64MiB\"\n", origin.url(), dir.display()));
    site.get("/post").await.status(200).cache_status("fwd=uri-miss; stored");
    site.get("/post").await.status(200).cache_status("hit");
    assert_eq!(site.server.usage().disk, DiskState::Off);
}

#[tokio::test]
async fn a_second_process_serves_from_memory() {
    let (origin, place) = (Origin::start(), place());
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=600"));
    let (first, second) = (start(&origin, &place), start(&origin, &place));
    assert_eq!((first.server.usage().disk, second.server.usage().disk), (DiskState::Working, DiskState::Off));
    for site in [&first, &second] {
        site.get("/post").await.status(200).cache_status("fwd=uri-miss; stored");
        site.get("/post").await.status(200).cache_status("hit");
    }
}

#[tokio::test]
async fn what_another_version_stored_is_given_up() {
    let (origin, place) = (Origin::start(), place());
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=600"));
    let site = start(&origin, &place);
    site.get("/post").await.status(200);
    stop(site);
    fs::write(place.path().join("cache/seawall-cache"), "seawall-cache 999\n").expect("written");
    let site = start(&origin, &place);
    assert!(files(&place).is_empty());
    site.get("/post").await.status(200).cache_status("fwd=uri-miss; stored");
    stop(site);
    let site = start(&origin, &place);
    site.get("/post").await.cache_status("hit");
}

/// Nobody sees the pages of another origin, or of the same under other rules, because they were stored under the same name.
#[tokio::test]
async fn what_was_stored_for_another_source_is_never_served() {
    let (one, other, place) = (Origin::start(), Origin::start(), place());
    one.on(get("/post")).reply(ok("one").field("cache-control", "max-age=600"));
    other.on(get("/post")).reply(ok("other").field("cache-control", "max-age=600"));
    let site = start(&one, &place);
    site.get("/post").await.body("one");
    stop(site);
    let site = start(&other, &place);
    site.get("/post").await.body("other").cache_status("fwd=uri-miss");
    stop(site);
    let site = start_with(&other, &place, "ignore_query = [\"*\"]\n");
    site.get("/post").await.body("other").cache_status("fwd=uri-miss");
    stop(site);
    // Not even when it is the source again: it may have been purged meanwhile, under another number.
    let site = start(&one, &place);
    site.get("/post").await.body("one").cache_status("fwd=uri-miss");
}

/// A setting on which no answer depends costs nobody what is stored. A rule that makes other answers does.
#[tokio::test]
async fn a_restart_with_another_setting_keeps_what_does_not_depend_on_it() {
    let (origin, place) = (Origin::start(), place());
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=600"));
    let site = start(&origin, &place);
    site.get("/post").await.cache_status("stored");
    stop(site);
    for keys in [
        "[origin]\nconcurrency = 7\nfirst_byte_timeout = \"9s\"\n",
        "early_hints = false\ndisk_object_max = \"2MiB\"\n",
        "store_set_cookie = false\n[compress]\nmin_size = 512\npassed = \"off\"\n",
    ] {
        let site = start_with(&origin, &place, keys);
        site.get("/post").await.body("text").cache_status("hit");
        stop(site);
    }
    let site = start_with(&origin, &place, "hold = \"1h\"\n");
    site.get("/post").await.body("text").cache_status("fwd=uri-miss");
}

#[tokio::test]
async fn what_comes_from_a_folder_is_not_written() {
    let place = place();
    let dir = place.path().join("cache");
    let folder = place.path().join("public");
    fs::create_dir(&folder).expect("made");
    fs::write(folder.join("index.html"), "home").expect("written");
    let site = Site::start(&format!("source = \"{}\"\n[cache]\ndir = \"{}\"\ndisk = \"64MiB\"\n", folder.display(), dir.display()));
    site.get("/").await.status(200).body("home");
    site.get("/").await.cache_status("hit");
    assert!(!dir.exists(), "there is nothing to keep there");

    // Beside a server, it is not written either.
    let origin = Origin::start();
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=600"));
    let site = Site::start(&format!(
        "[cache]\ndir = \"{}\"\ndisk = \"64MiB\"\n[[site]]\nhosts = [\"a.example\"]\nsource = \"{}\"\n[[site]]\nhosts = [\"{HOST}\"]\nsource = \"{}\"\n",
        dir.display(),
        folder.display(),
        origin.url()
    ));
    site.get("/post").await.status(200);
    site.request(Req::get("/").field("host", "a.example")).await.status(200).body("home");
    stop(site);
    assert_eq!(files(&place).len(), 1);
}

/// A response that broke off is none.
#[tokio::test]
async fn half_a_page_is_not_written() {
    let (origin, place) = (Origin::start(), place());
    let gate = Gate::new();
    origin.on(get("/post")).reply(ok("half and half").field("cache-control", "max-age=600").gate_after(4, &gate));
    let site = start(&origin, &place);
    let mut client = site.client().await;
    client.send(Req::get("/post")).await;
    gate.arrived().await;
    origin.kill();
    let _ = client.read_answer().await;
    stop(site);
    assert!(files(&place).is_empty());
}
