//! A blog in a real browser: what readers see after an edit, and what its author's own tab does. Long: it needs Chromium and its driver, which
//! `make spec-blog` installs.
#![expect(clippy::expect_used, reason = "tests")]

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, UNIX_EPOCH},
};

/// Tells whether tests run that need a browser.
fn long() -> bool {
    std::env::var_os("SEAWALL_BLOG_LONG").is_some()
}

/// Returns where `bring-up --browser` of the tests of Ghost puts the browser's driver.
fn driver() -> PathBuf {
    let home = PathBuf::from(std::env::var("HOME").unwrap_or_default());
    let caches = std::env::var("XDG_CACHE_HOME").map_or_else(|_| home.join(".cache"), PathBuf::from);
    let driver = std::env::var("SEAWALL_GHOST_DIR").map_or_else(|_| caches.join("seawall-ghost"), PathBuf::from).join("browser");
    assert!(driver.join("node_modules/playwright-core").exists(), "run `make spec-blog`, which installs the browser's driver");
    driver
}

/// A running server. Dropping it kills it.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(folder: &Path, listen: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_seawall"))
            .args(["serve", "blog", "--admin", "off", "--workers", "1", "--access-log", "off", "--listen", listen])
            .current_dir(folder)
            .env("HOME", folder)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let line = lines.by_ref().find(|line| line.trim().starts_with("listening")).expect("it says where it listens");
        let port = line.trim_end_matches('/').rsplit(':').next().expect("a port").to_owned();
        thread::spawn(move || lines.for_each(drop));
        Self { child, url: format!("http://localhost:{port}") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a journey of `browser.mjs`, which says what it misses.
fn journey(name: &str, url: &str, folder: &Path) {
    let facts = serde_json::json!({
        "modules": driver(), "chromium": "/usr/bin/chromium", "url": url, "post": folder.join("blog/posts/hello.md"),
        "template": "---\ntitle: Hello\ndate: 2026-01-10\n---\nTEXT\n",
    });
    let mut node = Command::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/blog/browser.mjs"))
        .arg(name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("node");
    node.stdin.take().expect("piped").write_all(facts.to_string().as_bytes()).expect("taken");
    let output = node.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{name}: {}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}

fn blog() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("blog/posts")).expect("made");
    let post = folder.path().join("blog/posts/hello.md");
    fs::write(&post, "---\ntitle: Hello\ndate: 2026-01-10\n---\nversion one\n").expect("written");
    // As posts mostly are: a browser that is told nothing keeps what is old for long.
    let old = UNIX_EPOCH + Duration::from_hours(24 * 365 * 50);
    File::options().write(true).open(&post).and_then(|file| file.set_modified(old)).expect("dated");
    folder
}

/// A post that is loaded, edited, and opened again by a link shows the new text: the browser asks again.
#[test]
fn a_reader_who_opens_an_edited_post_again_sees_the_new_text() {
    if !long() {
        return;
    }
    let folder = blog();
    // Not only on loopback, so no page reloads itself.
    let server = Server::start(folder.path(), "0.0.0.0:0");
    journey("reader", &server.url, folder.path());
}

/// A post that is open in its author's browser shows what was saved, without a touch of the browser.
#[test]
fn an_open_tab_of_the_author_shows_what_was_saved() {
    if !long() {
        return;
    }
    let folder = blog();
    let server = Server::start(folder.path(), "127.0.0.1:0");
    journey("author", &server.url, folder.path());
}
