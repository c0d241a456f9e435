use std::{fs, fs::File, os::unix::fs::symlink};

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt;
use semantics::{Scheme, coding::Coding};
use tempfile::TempDir;

use super::*;
use crate::{FileForms, Forms};

/// Creates a folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let root = TempDir::new().expect("a folder");
    for (name, content) in files {
        write(&root, name, content.as_bytes());
    }
    root
}

fn write(root: &TempDir, name: &str, content: &[u8]) {
    let path = root.path().join(name);
    fs::create_dir_all(path.parent().expect("has one")).expect("made");
    fs::write(path, content).expect("written");
}

/// Creates a site with `/index.html`, `/a b.txt`, `/docs/index.html`, `/bare/x.css`, `/big.bin`, `/empty.txt`, `/.env`, and links.
fn site() -> (TempDir, TempDir, Files) {
    let root = folder(&[
        ("index.html", "home"),
        ("a b.txt", "text"),
        ("docs/index.html", "docs"),
        ("bare/x.css", "css"),
        ("empty.txt", ""),
        (".env", "secret"),
    ]);
    write(&root, "big.bin", &big());
    let outside = folder(&[("secret.txt", "secret")]);
    let link = |to: &Path, name: &str| symlink(to, root.path().join(name)).expect("linked");
    link(Path::new("docs"), "inside");
    link(&root.path().join("docs/index.html"), "whole-path.html");
    link(Path::new("../docs/index.html"), "bare/up.html");
    link(outside.path(), "outside");
    link(&outside.path().join("secret.txt"), "leak.txt");
    link(Path::new("../../../../../../../../etc"), "etc");
    link(Path::new(".env"), "env.txt");
    link(Path::new("loop"), "loop");
    let files = Files::new(root.path()).expect("a folder");
    (root, outside, files)
}

fn big() -> Vec<u8> {
    (0..400_000_u32).flat_map(u32::to_le_bytes).collect()
}

/// Nothing runs PHP here: a script could only be sent as its source, which has the password of a database.
#[tokio::test]
async fn source_and_passwords_are_sent_by_no_name() {
    let root = folder(&[
        ("index.html", "home"),
        ("wp-config.php", "<?php define('DB_PASSWORD', 'x');"),
        ("wp-config.txt", "x"),
        ("blog/index.php", "<?php"),
        ("blog/dump.sql.gz", "x"),
        ("debug.log.1", "x"),
        ("server.key", "x"),
        ("saved.php.html", "page"),
    ]);
    symlink("wp-config.php", root.path().join("linked.txt")).expect("linked");
    let files = Files::open(root.path(), FilesOptions { listing: true, ..FilesOptions::default() }).expect("a folder");
    for path in [
        "/wp-config.php",
        "/wp-config%2ephp",
        "/wp-config.txt",
        "/blog/index.php",
        "/blog/dump.sql.gz",
        "/debug.log.1",
        "/server.key",
        "/linked.txt",
    ] {
        for method in [Method::GET, Method::HEAD] {
            assert_eq!(send(&files, method, path, &[]).await.status(), 404, "{path}");
        }
    }
    assert_eq!(send(&files, Method::GET, "/saved.php", &[]).await.status(), 200);
    let list = send(&files, Method::GET, "/blog/", &[]).await.into_body().collect().await.expect("a list").to_bytes();
    let list = String::from_utf8_lossy(&list);
    assert!(!list.contains("index.php") && !list.contains("dump"), "{list}");
}

async fn send(files: &Files, method: Method, uri: &str, fields: &[(&'static str, &str)]) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    files.fetch(request.body(Body::Empty).expect("a request"), &Arrival::of_our_own(Scheme::Http, ""), None).await.expect("an answer")
}

async fn ask(files: &Files, method: Method, uri: &str) -> (Response<()>, Bytes) {
    let (head, body) = send(files, method, uri, &[]).await.into_parts();
    (Response::from_parts(head, ()), body.collect().await.expect("the body").to_bytes())
}

/// Returns the status of an answer, and its content or where it leads.
async fn get(files: &Files, uri: &str) -> (u16, String) {
    let (head, body) = ask(files, Method::GET, uri).await;
    let leads = head.headers().get("location").map(|to| to.to_str().expect("text").to_owned());
    (head.status().as_u16(), leads.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned()))
}

fn text<'a>(fields: &'a HeaderMap, name: &str) -> &'a str {
    fields.get(name).map_or("", |value| value.to_str().expect("text"))
}

#[tokio::test]
async fn files_and_indexes_are_served() {
    let (_root, _outside, files) = site();
    for (uri, media_type, content) in [
        ("/", "text/html; charset=utf-8", &b"home"[..]),
        ("/?x=1", "text/html; charset=utf-8", b"home"),
        ("/index.html", "text/html; charset=utf-8", b"home"),
        ("/a%20b.txt", "text/plain; charset=utf-8", b"text"),
        ("/docs/", "text/html; charset=utf-8", b"docs"),
        ("/inside/", "text/html; charset=utf-8", b"docs"),
        ("/whole-path.html", "text/html; charset=utf-8", b"docs"),
        ("/bare/up.html", "text/html; charset=utf-8", b"docs"),
        ("/bare/x.css", "text/css; charset=utf-8", b"css"),
        ("/empty.txt", "text/plain; charset=utf-8", b""),
        ("/big.bin", "application/octet-stream", &big()),
    ] {
        let (head, body) = ask(&files, Method::GET, uri).await;
        assert_eq!(head.status(), 200, "{uri}");
        assert_eq!(head.headers()["content-type"], media_type, "{uri}");
        assert_eq!(head.headers()["content-length"], content.len().to_string(), "{uri}");
        assert!(text(head.headers(), "etag").starts_with('"'), "{uri}: a strong validator");
        assert!(httpdate::parse_http_date(text(head.headers(), "last-modified")).is_ok(), "{uri}");
        assert_eq!(head.headers()["cache-control"], "public, max-age=0, must-revalidate", "{uri}");
        assert!(body == content, "{uri}");
        let (same, nothing) = ask(&files, Method::HEAD, uri).await;
        assert_eq!(same.headers(), head.headers(), "RFC 9110 §9.3.2: HEAD {uri}");
        assert!(nothing.is_empty() || uri == "/big.bin", "what is only offered is left to whoever sends the head");
    }
}

#[tokio::test]
async fn what_is_not_public_is_not_found() {
    let (_root, _outside, files) = site();
    for uri in [
        "/missing",
        "/bare/",
        "/bare",
        "/index.html/",
        "/index.html/x",
        "/.env",
        "/env.txt",
        "/outside/secret.txt",
        "/outside/",
        "/leak.txt",
        "/etc/passwd",
        "/loop",
        "/../secret",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/a%2fb",
        "/docs//",
        "/x%00",
        "*",
    ] {
        let (head, body) = ask(&files, Method::GET, uri).await;
        assert_eq!((head.status().as_u16(), &body[..]), (404, &b"404 Not Found\n"[..]), "{uri}");
        assert!(ask(&files, Method::HEAD, uri).await.1.is_empty(), "{uri}");
    }
    let long = format!("/{}", "x".repeat(5000));
    assert_eq!(ask(&files, Method::GET, &long).await.0.status(), 404);
}

#[tokio::test]
async fn a_folder_without_its_slash_is_a_redirect_on_this_host() {
    let (_root, _outside, files) = site();
    for (uri, location) in [("/docs", "/docs/"), ("/docs?a=b", "/docs/?a=b"), ("/%64ocs", "/%64ocs/"), ("http://x.example/docs", "/docs/")]
    {
        let (head, _) = ask(&files, Method::GET, uri).await;
        assert_eq!(head.status(), 301, "{uri}");
        assert_eq!(head.headers()["location"], location);
        assert_eq!(head.headers()["cache-control"], "public, max-age=0, must-revalidate", "a redirect can be taken back");
    }
    assert_eq!(ask(&files, Method::GET, "//docs").await.0.status(), 404, "never a Location that begins with two slashes");
}

#[tokio::test]
async fn pages_have_addresses_without_their_extension() {
    let root =
        folder(&[("about.html", "about"), ("both.html", "page"), ("both/index.html", "index"), ("file", "plain"), ("file.html", "page")]);
    let files = Files::new(root.path()).expect("opens");
    for (uri, status, expected) in [
        ("/about", 200, "about"),
        ("/about.html", 200, "about"),
        ("/about/", 301, "/about"),
        ("/about/?q=1", 301, "/about?q=1"),
        ("/both", 200, "page"),
        ("/both/", 200, "index"),
        ("/file", 200, "plain"),
        ("/about/x", 404, "404 Not Found\n"),
    ] {
        assert_eq!(get(&files, uri).await, (status, expected.to_owned()), "{uri}");
    }
    assert_eq!(ask(&files, Method::GET, "/about").await.0.headers()["content-type"], "text/html; charset=utf-8");
}

#[tokio::test]
async fn the_sites_own_404_page_answers_for_what_is_missing_and_the_nearest_first() {
    let (root, _outside, files) = site();
    write(&root, "404.html", b"gone fishing");
    write(&root, "docs/404.html", b"no such page of the documentation");
    for uri in ["/missing", "/../x", "/.env", "/bare/x", "/missing/docs/x"] {
        let (head, body) = ask(&files, Method::GET, uri).await;
        assert_eq!((head.status().as_u16(), &body[..]), (404, &b"gone fishing"[..]), "{uri}");
        assert_eq!(head.headers()["content-type"], "text/html; charset=utf-8");
        assert!(!head.headers().contains_key("etag"), "no validator for what is not there");
    }
    assert_eq!(get(&files, "/docs/x/y").await, (404, "no such page of the documentation".to_owned()));
}

#[tokio::test]
async fn other_methods_are_refused_with_what_is_allowed() {
    let (_root, _outside, files) = site();
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let (head, _) = ask(&files, method, "/").await;
        assert_eq!(head.status(), 405);
        assert_eq!(head.headers()["allow"], "GET, HEAD");
    }
}

#[tokio::test]
async fn the_validator_of_a_small_file_is_made_of_its_content() {
    let (root, _outside, files) = site();
    let before = ask(&files, Method::HEAD, "/index.html").await.0.headers()["etag"].clone();
    write(&root, "index.html", b"home, edited");
    assert_ne!(ask(&files, Method::HEAD, "/index.html").await.0.headers()["etag"], before);
    // The page is built again, with another date.
    write(&root, "index.html", b"home");
    File::options().write(true).open(root.path().join("index.html")).expect("open").set_modified(std::time::UNIX_EPOCH).expect("dated");
    assert_eq!(ask(&files, Method::HEAD, "/index.html").await.0.headers()["etag"], before);
    let tag = before.to_str().expect("text");
    let confirmed = send(&files, Method::GET, "/", &[("if-none-match", tag)]).await;
    assert_eq!((confirmed.status().as_u16(), confirmed.headers().get("etag")), (304, Some(&before)));
    assert_eq!(send(&files, Method::GET, "/", &[("if-match", "\"other\"")]).await.status(), 412);
}

#[tokio::test]
async fn a_large_file_is_not_read_but_offered() {
    let (root, _outside, files) = site();
    let response = send(&files, Method::GET, "/big.bin", &[]).await;
    let before = response.headers()["etag"].clone();
    assert!(matches!(response.body(), Body::File(file) if file.left() == big().len() as u64));
    File::options().write(true).open(root.path().join("big.bin")).expect("open").set_len(100_000).expect("cut");
    let error = response.into_body().collect().await.expect_err("its length was promised");
    assert_eq!(error.fault, Fault::ConnectionTerminated);
    assert_ne!(send(&files, Method::GET, "/big.bin", &[]).await.headers()["etag"], before);
}

#[tokio::test]
async fn what_lies_coded_beside_a_file_goes_along() {
    let long = "a{color:red}".repeat(100);
    let root = folder(&[
        ("a.css", &long),
        ("a.css.br", "br"),
        ("a.css.gz", "gz"),
        ("a.css.zst", ""),
        ("b.css", "x"),
        ("b.css.gz", "longer"),
        ("c.css", &long),
        ("c.css.gz", "old"),
    ]);
    let modified = File::open(root.path().join("c.css")).and_then(|file| file.metadata()?.modified()).expect("dated");
    let old = File::options().write(true).open(root.path().join("c.css.gz")).expect("open");
    old.set_modified(modified - std::time::Duration::from_secs(60)).expect("dated");
    let files = Files::new(root.path()).expect("opens");
    let forms = |response: Response<Body>| response.extensions().get::<Forms>().map(|forms| forms.0.clone());
    let both = vec![(Coding::Brotli, Bytes::from("br")), (Coding::Gzip, Bytes::from("gz"))];
    assert_eq!(forms(send(&files, Method::GET, "/a.css", &[]).await), Some(both));
    assert_eq!(forms(send(&files, Method::GET, "/b.css", &[]).await), None, "one that is no smaller");
    assert_eq!(forms(send(&files, Method::GET, "/c.css", &[]).await), None, "one that is older: its content is another");

    let options = FilesOptions { whole_max: 10, ..FilesOptions::default() };
    let files = Files::open(root.path(), options).expect("opens");
    let response = send(&files, Method::GET, "/a.css", &[]).await;
    assert!(matches!(response.body(), Body::File(_)));
    let lengths: Vec<_> =
        response.extensions().get::<FileForms>().expect("forms").0.iter().map(|(coding, form)| (*coding, form.range.end)).collect();
    assert_eq!(lengths, [(Coding::Brotli, 2), (Coding::Gzip, 2)]);
}

#[tokio::test]
async fn fingerprinted_names_are_kept_and_the_sites_own_fields_go_before() {
    let root = folder(&[
        ("index.html", "home"),
        ("404.html", "no"),
        ("app.3f2a9c1b.js", "js"),
        ("_headers", "/*\n  X-Frame-Options: DENY\n/app.*\n  Cache-Control: no-cache\nnonsense\n"),
        ("other.3f2a9c1b.js", "js"),
    ]);
    let files = Files::new(root.path()).expect("opens");
    let lifetime = async |uri| text(ask(&files, Method::GET, uri).await.0.headers(), "cache-control").to_owned();
    assert_eq!(lifetime("/other.3f2a9c1b.js").await, "public, max-age=31536000, immutable");
    assert_eq!(lifetime("/app.3f2a9c1b.js").await, "no-cache");
    assert_eq!(lifetime("/").await, "public, max-age=0, must-revalidate");
    for uri in ["/", "/missing"] {
        assert_eq!(ask(&files, Method::GET, uri).await.0.headers()["x-frame-options"], "DENY", "{uri}");
    }
    assert_eq!(
        files.mistakes().iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["_headers:5: \"nonsense\" is neither a path nor a field such as \"X-Frame-Options: DENY\""]
    );
    for uri in ["/_headers", "/_redirects"] {
        assert_eq!(get(&files, uri).await, (404, "no".to_owned()), "{uri}");
    }
}

#[tokio::test]
async fn rules_lead_elsewhere_unless_there_is_something() {
    let rules = "/here /elsewhere\n/forced /elsewhere 302!\n/old/* /new/:splat 308\n/app/* /app/index.html 200\n/folder /app 200\n/up /../secret 200\n/shut/* /shut.html 404!\n/gone 410\n/nowhere /missing 200\n";
    let root = folder(&[
        ("_redirects", rules),
        ("here.html", "here"),
        ("forced.html", "forced"),
        ("app/index.html", "app"),
        ("shut.html", "shut"),
        ("shut/a.html", "a"),
    ]);
    symlink("_redirects", root.path().join("rules.txt")).expect("linked");
    let files = Files::new(root.path()).expect("opens");
    assert_eq!(files.mistakes(), []);
    for (uri, status, expected) in [
        ("/here", 200, "here"),
        ("/forced", 302, "/elsewhere"),
        ("/old/a/b?c", 308, "/new/a/b?c"),
        ("/old/a%2F%2Fb", 404, "404 Not Found\n"),
        ("/old//evil.example", 404, "404 Not Found\n"),
        ("/app/any/where", 200, "app"),
        ("/folder", 200, "app"),
        ("/up", 404, "404 Not Found\n"),
        ("/shut/a", 404, "shut"),
        ("/gone", 410, "410 Gone\n"),
        ("/nowhere", 404, "404 Not Found\n"),
        ("/rules.txt", 404, "404 Not Found\n"),
        ("/_redirects", 404, "404 Not Found\n"),
    ] {
        assert_eq!(get(&files, uri).await, (status, expected.to_owned()), "{uri}");
    }
}

#[tokio::test]
async fn a_fallback_answers_for_pages_and_not_for_missing_files() {
    let root = folder(&[("index.html", "app"), ("real.html", "real")]);
    let files = Files::open(root.path(), FilesOptions { fallback: Some("index.html".into()), ..FilesOptions::default() }).expect("opens");
    for (uri, status, expected) in
        [("/any/where", 200, "app"), ("/real", 200, "real"), ("/missing.js", 404, "404 Not Found\n"), ("/.env", 404, "404 Not Found\n")]
    {
        assert_eq!(get(&files, uri).await, (status, expected.to_owned()), "{uri}");
    }
}

#[tokio::test]
async fn a_folder_is_listed_if_that_is_wanted() {
    let root = folder(&[("a/one.txt", "1"), ("a/.hidden", "2"), ("b/index.html", "index")]);
    let files = Files::open(root.path(), FilesOptions { listing: true, ..FilesOptions::default() }).expect("opens");
    let (status, page) = get(&files, "/a/").await;
    assert!(status == 200 && page.contains("one.txt") && !page.contains("hidden"), "{page}");
    assert_eq!(get(&files, "/a").await, (301, "/a/".to_owned()));
    assert_eq!(get(&files, "/b/").await, (200, "index".to_owned()));
    assert_eq!(get(&Files::new(root.path()).expect("opens"), "/a/").await.0, 404);
}

/// Changes of this folder are not reported: what is stored of it is checked again after a second.
#[tokio::test]
async fn unwatched_answers_are_true_for_a_second() {
    let (_root, _outside, files) = site();
    for uri in ["/", "/missing", "/docs", "/big.bin"] {
        let (head, _) = ask(&files, Method::GET, uri).await;
        assert_eq!(head.headers()["seawall-cache-control"], "max-age=1", "{uri}");
        assert!(text(head.headers(), "surrogate-key").starts_with("f-"), "{uri}");
    }
}

/// The folder is swapped in the middle of a request, which goes on with the folder that it began with.
#[test]
fn an_opened_root_stays_the_folder_that_it_was() {
    let place = folder(&[("one/index.html", "one"), ("two/index.html", "two")]);
    let (one, two, site) = (place.path().join("one"), place.path().join("two"), place.path().join("site"));
    fs::rename(&one, &site).expect("renamed");
    let root = root::Root::open(&site).expect("opens");
    assert_eq!(root.is_replaced(), Some(false));
    fs::rename(&site, &one).expect("renamed");
    assert_eq!(root.is_replaced(), None, "nothing stands there now");
    fs::rename(&two, &site).expect("renamed");
    assert_eq!(root.is_replaced(), Some(true));
    let entry = root.find_file("index.html".as_ref()).expect("looked").expect("is there");
    assert_eq!(io::read_to_string(entry.file).expect("read"), "one");
}

/// `openat2(2)`, `RESOLVE_CACHED`: what is not found without waiting is looked for by a thread that may wait.
#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_must_not_wait_finds_what_the_system_has_in_memory() {
    let folder = folder(&[("index.php", "a")]);
    std::os::unix::fs::symlink("index.php", folder.path().join("link.php")).expect("a link");
    let root = root::Root::open(folder.path()).expect("opens");
    let whole = |name: &str| root.find(name.as_ref()).expect("no trouble").map(|found| found.real);
    assert_eq!((whole("index.php"), whole("link.php"), whole("none.php")), (Some("index.php".into()), Some("index.php".into()), None));
    // Kernels before 5.12, and some sandboxes, leave everything to the other thread.
    let Some(at_hand) = root.at_hand() else { return };
    let found = |name: &str| at_hand.find(name.as_ref()).map(|found| found.map(|found| found.real)).map_err(|e| e.kind());
    assert_eq!(found("index.php"), Ok(Some("index.php".into())));
    assert_eq!(found("link.php"), Err(std::io::ErrorKind::WouldBlock));
    assert_eq!(found("none.php"), Ok(None));
    assert_eq!(found("../none.php"), Err(std::io::ErrorKind::WouldBlock));
}

#[test]
fn a_root_that_is_no_folder_is_an_error() {
    let (root, _outside, _) = site();
    assert!(Files::new(root.path().join("index.html")).is_err());
    assert!(Files::new(root.path().join("nowhere")).is_err());
}
