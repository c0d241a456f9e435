//! Journeys in a real browser, beside a crowd without cookies. They are long: `make spec-wordpress`.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    blog::{Blog, FACTS, INSTALLED, Setup, WITHOUT_SEAWALL, long_tests_run, path_of},
    client::Answer,
    crowd::while_a_crowd_reads,
};

/// Runs a journey of `browser.mjs`, which says what it misses.
fn journey(blog: &Blog, name: &str, mut facts: Value) {
    let browser = INSTALLED.join("browser");
    assert!(browser.join(".complete").exists(), "there is no browser for journeys: run `make spec-wordpress`, which installs one");
    facts["url"] = blog.url.clone().into();
    facts["modules"] = browser.display().to_string().into();
    facts["chromium"] = "/usr/bin/chromium".into();
    facts["pictures"] = std::env::var("SEAWALL_WORDPRESS_PICTURES").ok().into();
    let mut output = Command::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wordpress/browser.mjs"))
        .arg(name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("node");
    // It reads all of it before it says anything.
    output.stdin.take().expect("piped").write_all(facts.to_string().as_bytes()).expect("taken");
    let output = output.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{name}: {}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}

/// Asserts that an answer has nothing of somebody who signed in.
fn is_anonymous(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer}");
    for marker in ["wp-admin-bar", "Olga Owner</span>", "_wpnonce", "logged-in", "wpApiSettings"] {
        answer.clone().lacks(marker);
    }
    answer.clone().without("set-cookie");
}

fn beside_a_crowd(blog: &Blog, what: impl FnOnce()) {
    let paths = ["/", path_of("post-01"), "/feed/", path_of("about"), "/page/2/", "/category/tides/", path_of("post-04")];
    let readers = if *WITHOUT_SEAWALL { 1 } else { 8 };
    let asked = while_a_crowd_reads(&blog.reader(), readers, &paths, is_anonymous, what);
    assert!(asked > 100, "the crowd should read all the while, and asked {asked} times");
}

fn owner() -> Value {
    json!({"login": "owner", "password": FACTS["people"]["owner"]["password"]})
}

fn an_editor_writes(setup: Setup) {
    if !long_tests_run() {
        return;
    }
    let blog = setup.start();
    let picture = blog.wordpress().get(FACTS["picture"]["path"].as_str().expect("a picture")).status(200).content;
    let mut facts = owner();
    facts["title"] = "Written in a browser".into();
    facts["words"] = "Words that were typed.".into();
    facts["picture"] = STANDARD.encode(picture).into();
    beside_a_crowd(&blog, || journey(&blog, "editor", facts));
    blog.reader().get("/").status(200).has("Written in a browser, again");
}

#[test]
fn an_editor_writes_a_post_with_the_block_editor_and_it_is_on_the_front_page() {
    an_editor_writes(Setup::default());
}

#[test]
fn an_editor_writes_a_post_with_the_block_editor_and_the_plugin() {
    an_editor_writes(Setup::default().plugin());
}

#[test]
fn an_editor_writes_a_post_with_the_block_editor_in_front_of_a_server() {
    an_editor_writes(Setup::default().server());
}

#[test]
fn every_page_of_the_admin_loads_without_an_error() {
    if !long_tests_run() {
        return;
    }
    let blog = Setup::default().plugin().start();
    beside_a_crowd(&blog, || journey(&blog, "admin", owner()));
}

#[test]
fn a_reader_signs_in_comments_and_signs_out_while_a_crowd_reads_the_same_pages() {
    if !long_tests_run() {
        return;
    }
    let blog = Blog::new();
    let mut facts = json!({"login": "reader", "password": FACTS["people"]["reader"]["password"], "name": "Rita Reader"});
    facts["page"] = path_of("post-02").into();
    facts["words"] = "A comment out of a browser".into();
    beside_a_crowd(&blog, || journey(&blog, "reader", facts));
}

/// The charts of `seawall bench --svg`. WordPress takes no SVG as an upload, so that they are put into the post itself, as blocks of HTML.
#[test]
fn charts_of_the_load_tester_are_shown_in_a_post() {
    if !long_tests_run() {
        return;
    }
    let blog = Blog::new();
    let folder = tempfile::tempdir().expect("a folder");
    let told = Command::new(env!("CARGO_BIN_EXE_seawall"))
        .args(["bench", "--quiet", "-c", "5", "-d", "3s", "--svg"])
        .arg(folder.path())
        .arg(format!("{}/", blog.url))
        .output()
        .expect("the program can be run");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let mut content = String::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder.path()).expect("charts") {
        let chart = std::fs::read_to_string(entry.expect("a file").path()).expect("a chart");
        let svg = &chart[chart.find("<svg").expect("an SVG")..];
        content += &format!("<!-- wp:html -->\n<figure class=\"chart\">{svg}</figure>\n<!-- /wp:html -->\n\n");
        count += 1;
    }
    assert!(count > 0);
    let post = json!({"title": "Before and after", "slug": "charts", "content": content, "status": "publish"});
    let link = blog.editor().send("POST", "posts", &post)["link"].as_str().expect("an address").to_owned();
    let path = link.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| rest[at..].to_owned())).expect("a path");
    journey(&blog, "charts", json!({"path": path, "count": count}));
}
