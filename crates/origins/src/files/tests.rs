use std::os::unix::fs::symlink;

use http_body_util::BodyExt;
use tempfile::TempDir;

use super::*;

/// `/index.html`, `/a b.txt`, `/docs/index.html`, `/bare/x.css`, `/big.bin`, `/empty.txt`, `/.env`, and links.
fn site() -> (TempDir, TempDir, Files) {
    let (root, outside) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    let write = |dir: &TempDir, name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("has one")).expect("made");
        fs::write(path, content).expect("written");
    };
    write(&root, "index.html", b"home");
    write(&root, "a b.txt", b"text");
    write(&root, "docs/index.html", b"docs");
    write(&root, "bare/x.css", b"css");
    write(&root, "big.bin", &big());
    write(&root, "empty.txt", b"");
    write(&root, ".env", b"secret");
    write(&outside, "secret.txt", b"secret");
    let link = |to: &Path, name: &str| symlink(to, root.path().join(name)).expect("linked");
    link(Path::new("docs"), "inside");
    link(outside.path(), "outside");
    link(&outside.path().join("secret.txt"), "leak.txt");
    link(Path::new("../../../../../../../../etc"), "etc");
    link(Path::new(".env"), "env.txt");
    link(Path::new("loop"), "loop");
    let files = Files::new(root.path()).expect("a folder");
    (root, outside, files)
}

fn big() -> Vec<u8> {
    (0..200_000_u32).flat_map(u32::to_le_bytes).collect()
}

async fn ask(files: &Files, method: Method, uri: &str) -> (Response<()>, Bytes) {
    let request = Request::builder().method(method).uri(uri).body(Body::Empty).expect("a request");
    let (head, body) = files.fetch(request).await.expect("an answer").into_parts();
    (Response::from_parts(head, ()), body.collect().await.expect("the body").to_bytes())
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
        ("/bare/x.css", "text/css; charset=utf-8", b"css"),
        ("/empty.txt", "text/plain; charset=utf-8", b""),
        ("/big.bin", "application/octet-stream", &big()),
    ] {
        let (head, body) = ask(&files, Method::GET, uri).await;
        assert_eq!(head.status(), 200, "{uri}");
        assert_eq!(head.headers()["content-type"], media_type, "{uri}");
        assert_eq!(head.headers()["content-length"], content.len().to_string(), "{uri}");
        assert!(head.headers()["etag"].to_str().expect("text").starts_with('"'), "{uri}: a strong validator");
        assert!(httpdate::parse_http_date(head.headers()["last-modified"].to_str().expect("text")).is_ok(), "{uri}");
        assert!(!head.headers().contains_key("cache-control"), "{uri}");
        assert!(body == content, "{uri}");
        let (same, nothing) = ask(&files, Method::HEAD, uri).await;
        assert_eq!(same.headers(), head.headers(), "RFC 9110 §9.3.2: HEAD {uri}");
        assert!(nothing.is_empty());
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
    }
    assert_eq!(ask(&files, Method::GET, "//docs").await.0.status(), 404, "never a Location that begins with two slashes");
}

#[tokio::test]
async fn the_sites_own_404_page_answers_for_what_is_missing() {
    let (root, _outside, files) = site();
    fs::write(root.path().join("404.html"), "gone fishing").expect("written");
    for uri in ["/missing", "/../x", "/.env"] {
        let (head, body) = ask(&files, Method::GET, uri).await;
        assert_eq!((head.status().as_u16(), &body[..]), (404, &b"gone fishing"[..]), "{uri}");
        assert_eq!(head.headers()["content-type"], "text/html; charset=utf-8");
        assert!(!head.headers().contains_key("etag"), "no validator for what is not there");
    }
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
async fn an_edit_changes_the_validator_and_a_file_cut_short_is_an_error() {
    let (root, _outside, files) = site();
    let before = ask(&files, Method::HEAD, "/index.html").await.0.headers()["etag"].clone();
    fs::write(root.path().join("index.html"), "home, edited").expect("written");
    assert_ne!(ask(&files, Method::HEAD, "/index.html").await.0.headers()["etag"], before);

    let request = Request::builder().uri("/big.bin").body(Body::Empty).expect("a request");
    let response = files.fetch(request).await.expect("an answer");
    File::options().write(true).open(root.path().join("big.bin")).expect("open").set_len(100_000).expect("cut");
    let error = response.into_body().collect().await.expect_err("its length was promised");
    assert_eq!(error.fault, Fault::ConnectionTerminated);
}

#[test]
fn a_root_that_is_no_folder_is_an_error() {
    let (root, _outside, _) = site();
    assert!(Files::new(root.path().join("index.html")).is_err());
    assert!(Files::new(root.path().join("nowhere")).is_err());
}
