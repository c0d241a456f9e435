//! A folder of finished files: what is published is live, a deploy leaves no mixture, and the folder's own rules hold.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    time::{Duration, Instant},
};

use testkit::{Answer, Req, secs};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::site::Site;

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    fs::write(file, text).expect("written");
}

/// Returns a site whose source is the folder `public` beside its settings, filled before the start.
fn site_of(files: &[(&str, &str)], settings: &str) -> (tempfile::TempDir, Site) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        write(&folder.path().join("public"), name, text);
    }
    let site = Site::start(&format!("source = \"{}\"\n{settings}", folder.path().join("public").display()));
    (folder, site)
}

/// Asks until `seen`, as the system tells of a change when it likes.
async fn until(site: &Site, target: &str, seen: impl Fn(&Answer) -> bool) -> Answer {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = site.get(target).await;
        if seen(&answer) {
            return answer;
        }
        assert!(Instant::now() < patience, "{target} is still {answer:?}");
    }
}

/// Pages are asked for again each time; what carries a fingerprint never.
#[tokio::test]
async fn browsers_are_told_how_long_to_keep_what() {
    let (_folder, site) = site_of(&[("index.html", "home"), ("app.3f2a9c1b.js", "js"), ("app.js", "js")], "");
    for (target, lifetime) in [
        ("/", "public, max-age=0, must-revalidate"),
        ("/app.js", "public, max-age=0, must-revalidate"),
        ("/nothing", "public, max-age=0, must-revalidate"),
        ("/app.3f2a9c1b.js", "public, max-age=31536000, immutable"),
    ] {
        for status in ["fwd=uri-miss; stored", "hit"] {
            site.get(target)
                .await
                .cache_status(status)
                .field("cache-control", lifetime)
                .no_field("seawall-cache-control")
                .no_field("surrogate-key");
        }
    }
}

/// An edit, a new page and a removed one are on the next response once the system has told; nothing else is fetched again.
#[tokio::test]
async fn what_is_published_is_live() {
    let (folder, site) = site_of(&[("index.html", "old"), ("other.html", "other"), ("gone.html", "here")], "");
    let public = folder.path().join("public");
    for (target, body) in [("/", "old"), ("/other", "other"), ("/gone", "here")] {
        site.get(target).await.status(200).body(body);
    }
    site.get("/new").await.status(404);
    // Until the folder is watched, answers are true for a second, and this clock stands still.
    site.clock.advance(secs(1));
    for target in ["/", "/other", "/gone", "/new"] {
        site.get(target).await;
    }
    write(&public, "index.html", "new");
    until(&site, "/", |answer| answer.text() == "new").await;
    write(&public, "new.html", "is here");
    until(&site, "/new", |answer| answer.code == 200).await.body("is here");
    fs::remove_file(public.join("gone.html")).expect("removed");
    until(&site, "/gone", |answer| answer.code == 404).await;
    site.get("/other").await.body("other").cache_status("hit");
}

/// A deploy that changes a link, and one that renames folders. Once a page of the new version was seen, no page of the old one is.
#[tokio::test]
async fn a_deploy_leaves_no_mixture() {
    let place = tempfile::tempdir().expect("a folder");
    for version in ["one", "two", "three"] {
        for page in ["index.html", "a.html", "b/index.html"] {
            write(&place.path().join(version), page, version);
        }
    }
    let current = place.path().join("current");
    symlink("one", &current).expect("linked");
    let site = Site::start(&format!("source = \"{}\"", current.display()));
    let pages = ["/", "/a", "/b/"];
    for page in pages {
        site.get(page).await.body("one");
    }
    let swap = |version: &str| {
        symlink(version, place.path().join("next")).expect("linked");
        fs::rename(place.path().join("next"), &current).expect("swapped");
    };
    swap("two");
    until(&site, "/", |answer| answer.text() == "two").await;
    for page in pages {
        site.get(page).await.status(200).body("two");
    }
    fs::rename(place.path().join("two"), place.path().join("old")).expect("renamed");
    fs::rename(place.path().join("three"), place.path().join("two")).expect("renamed");
    until(&site, "/a", |answer| answer.text() == "three").await;
    for page in pages {
        site.get(page).await.status(200).body("three");
    }
}

/// `_redirects` and `_headers` are read at the start and whenever they change.
#[tokio::test]
async fn the_folders_own_rules_hold_and_change() {
    let files = [("index.html", "home"), ("_redirects", "/old /new 302\nnonsense\n"), ("_headers", "/*\n  X-Frame-Options: DENY\n")];
    let (folder, site) = site_of(&files, "");
    site.get("/old").await.status(302).field("location", "/new");
    site.get("/").await.field("x-frame-options", "DENY");
    site.get("/_redirects").await.status(404);
    write(&folder.path().join("public"), "_redirects", "/old /newer 302\n");
    until(&site, "/old", |answer| answer.value("location").as_deref() == Some("/newer")).await;
}

/// `[static]`: names of folders, and one page for all addresses.
#[tokio::test]
async fn listings_and_fallbacks_are_for_those_who_want_them() {
    let files = [("index.html", "app"), ("files/a.txt", "a"), ("files/b & c.txt", "b")];
    let (_folder, site) = site_of(&files, "[static]\nlisting = true\nfallback = \"index.html\"");
    site.get("/files/").await.status(200).body_contains("b &amp; c.txt").field_contains("content-type", "text/html");
    site.get("/any/where").await.status(200).body("app");
    site.get("/missing.css").await.status(404);
    let (_folder, site) = site_of(&files, "");
    site.get("/files/").await.status(404);
}

/// RFC 9110 §14: a file that is too large to be stored is sent from where it lies, in parts too.
#[tokio::test]
async fn a_large_file_is_sent_whole_and_in_parts() {
    let text: String = (0..20_000).map(|number| format!("{number:09}\n")).collect();
    let (_folder, site) = site_of(&[("index.html", ""), ("film.bin", &text)], "[cache]\nobject_max = \"1KiB\"");
    let whole = site.get("/film.bin").await.status(200).body(&text).field("accept-ranges", "bytes");
    let etag = whole.value("etag").expect("a validator");
    for _ in 0..2 {
        site.request(Req::head("/film.bin")).await.status(200).field("content-length", "200000").body("");
        site.request(Req::get("/film.bin").field("range", "bytes=10-29"))
            .await
            .status(206)
            .body(&text[10..30])
            .field("content-range", "bytes 10-29/200000");
        site.request(Req::get("/film.bin").field("range", "bytes=-10")).await.status(206).body(&text[199_990..]);
        site.request(Req::get("/film.bin").field("range", "bytes=200000-")).await.status(416).field("content-range", "bytes */200000");
        let parts = site.request(Req::get("/film.bin").field("range", "bytes=0-9,100000-100009")).await.status(206);
        parts.field_contains("content-type", "multipart/byteranges").body_contains("000000000\n\r\n").body_contains("000010000\n\r\n");
        site.request(Req::get("/film.bin").field("if-none-match", etag.as_str())).await.status(304).body("").field("etag", &etag);
        site.request(Req::get("/film.bin").field("if-match", "\"other\"")).await.status(412);
        let resumed = Req::get("/film.bin").field("range", "bytes=150000-").field("if-range", etag.as_str());
        site.request(resumed).await.status(206).body(&text[150_000..]);
        let changed = Req::get("/film.bin").field("range", "bytes=150000-").field("if-range", "\"other\"");
        site.request(changed).await.status(200).body(&text);
    }
    // Further requests on the connection that a file went over.
    let mut client = site.client().await;
    for _ in 0..3 {
        client.request(Req::get("/film.bin")).await.status(200).body(&text);
        client.request(Req::get("/nothing")).await.status(404);
    }
}

/// RFC 9110 §14.2: a part of a large file is whole wherever in a page of memory it begins and ends, alone and among others, and the connection goes on.
#[tokio::test]
async fn a_part_of_a_large_file_begins_and_ends_anywhere() {
    let text: String = (0..30_000).map(|number| format!("{number:09}\n")).collect();
    let (_folder, site) = site_of(&[("index.html", ""), ("film.bin", &text)], "[cache]\nobject_max = \"1KiB\"");
    let mut client = site.client().await;
    let part = |start: usize, length: usize| format!("{start}-{}", start + length - 1);
    for start in [0, 1, 4095, 4096, 4097, 70_000] {
        for length in [1, 4095, 4096, 8191, 8192, 8193, 65_535, 65_536, 65_537, 200_000] {
            let asked = Req::get("/film.bin").field("range", format!("bytes={}", part(start, length)));
            client.request(asked).await.status(206).body(&text[start..start + length]);
        }
    }
    let two = Req::get("/film.bin").field("range", format!("bytes={},{}", part(4095, 65_536), part(100_001, 10)));
    let answer = client.request(two).await.status(206);
    answer.body_contains(&text[4095..4095 + 65_536]).body_contains(&text[100_001..100_011]);
    client.request(Req::get("/nothing")).await.status(404);
}

/// What lies coded beside a large file is sent to those who accept it (RFC 9110 §8.8.3.3: with a tag of its own).
#[tokio::test]
async fn a_large_file_is_sent_in_the_coding_that_lies_beside_it() {
    let text = "text ".repeat(1000);
    let (_folder, site) =
        site_of(&[("index.html", ""), ("a.txt", &text), ("a.txt.gz", "not really gzip")], "[cache]\nobject_max = \"1KiB\"");
    for _ in 0..2 {
        let plain = site.get("/a.txt").await.status(200).body(&text).field("vary", "accept-encoding").no_field("content-encoding");
        let coded = site.request(Req::get("/a.txt").field("accept-encoding", "gzip")).await.status(200).body("not really gzip");
        let coded = coded.field("content-encoding", "gzip").field("vary", "accept-encoding").field("content-length", "15");
        let etag = coded.value("etag").expect("a validator");
        assert_ne!(Some(&etag), plain.value("etag").as_ref());
        let again = Req::get("/a.txt").field("accept-encoding", "gzip").field("if-none-match", etag.as_str());
        site.request(again).await.status(304).field("etag", &etag);
        site.request(Req::get("/a.txt").field("accept-encoding", "gzip").field("range", "bytes=4-9")).await.status(206).body("really");
    }
}

/// RFC 9112 §8: a file that is cut short while it is sent breaks the connection, as its length was promised; nobody waits for the rest.
#[tokio::test]
async fn a_file_cut_short_on_its_way_breaks_the_connection() {
    const PROMISED: u64 = 256 << 20;
    let (folder, site) = site_of(&[("index.html", "")], "");
    // A hole: it costs no disk. No socket's buffers hold so much, so what is not read yet is not sent yet.
    let film = fs::File::create(folder.path().join("public/film.bin")).expect("made");
    film.set_len(PROMISED).expect("lengthened");
    let mut stream = tokio::net::TcpStream::connect(site.address()).await.expect("connected");
    stream.write_all(b"GET /film.bin HTTP/1.1\r\nHost: blog.example\r\n\r\n").await.expect("asked");
    let mut piece = vec![0; 1 << 16];
    let begun = stream.read(&mut piece).await.expect("begins");
    assert!(piece.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&piece[..begun.min(200)]));
    film.set_len(1000).expect("cut");
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await.expect("the connection ends");
    assert!(ended.is_err() || (rest.len() as u64) < PROMISED);
    site.get("/film.bin").await.status(200).field("content-length", "1000");
}
