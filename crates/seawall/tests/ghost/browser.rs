//! Journeys in a real browser, beside a crowd without cookies. They are long: `make spec-ghost`.

use std::{
    io::Write,
    process::{Command, Stdio},
    time::Instant,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    blog::{Blog, FACTS, INSTALLED, Setup, WITHOUT_SEAWALL, long_tests_run, while_a_crowd_reads},
    client::Answer,
    editor::Editor,
};

/// Returns a blog whose pages load the scripts for members, comments and search from itself, as the CDN is on another machine.
fn with_scripts() -> Blog {
    let browser = INSTALLED.join("browser");
    assert!(browser.join(".complete").exists(), "there is no browser for journeys: run `make spec-ghost`, which installs one");
    let script = |package: &str, file: &str| format!("/assets/scripts/{package}/umd/{file}");
    let blog = Setup::default()
        .ghost(json!({
            "portal": {"url": script("portal", "portal.min.js")},
            "comments": {"url": script("comments-ui", "comments-ui.min.js")},
            "sodoSearch": {"url": script("sodo-search", "sodo-search.min.js"), "styles": script("sodo-search", "main.css")},
        }))
        .start();
    // As files of the theme: Ghost tells browsers not to run what was uploaded.
    let copied =
        Command::new("cp").arg("-a").arg(browser.join("scripts")).arg(blog.folder().join("ghost/content/themes/source/assets/")).status();
    assert!(copied.expect("cp").success());
    blog
}

/// Runs a journey of `browser.mjs`, which says what it misses.
fn journey(blog: &Blog, name: &str, mut facts: Value) {
    facts["url"] = blog.url.clone().into();
    facts["modules"] = INSTALLED.join("browser").display().to_string().into();
    facts["chromium"] = "/usr/bin/chromium".into();
    facts["pictures"] = std::env::var("SEAWALL_GHOST_PICTURES").ok().into();
    let mut output = Command::new(INSTALLED.join("node"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ghost/browser.mjs"))
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

/// Returns the link that signs a member in.
fn link(blog: &Blog, name: &str) -> String {
    let id = FACTS["members"][name]["id"].as_str().expect("a member");
    blog.editor().get(&format!("members/{id}/signin_urls/"))["member_signin_urls"][0]["url"].as_str().expect("a link").to_owned()
}

/// Asserts that an answer has nothing of a member: their addresses, what only they may read, their cookies. Under a comment, a name is public.
fn is_anonymous(answer: &Answer) {
    for marker in ["@member.example", "SECRET-OF-", "ghost-members-ssr", "\"liked\":true", "data-portal=\"account\""] {
        answer.clone().lacks(marker);
    }
    answer.clone().without("set-cookie");
    assert!(matches!(answer.status, 200 | 204), "{answer}");
}

fn beside_a_crowd(blog: &Blog, what: impl FnOnce()) {
    let id = Editor::post("post-01");
    let (list, counts) = (format!("/members/api/comments/post/{id}/"), format!("/members/api/comments/counts/?ids={id}"));
    let paths = ["/", "/post-01/", "/post-04/", "/post-05/", "/post-06/", "/members/api/member/", &list, &counts];
    let started = Instant::now();
    let readers = if *WITHOUT_SEAWALL { 1 } else { 8 };
    let asked = while_a_crowd_reads(&blog.reader(), readers, &paths, is_anonymous, what);
    let rate = asked as f64 / started.elapsed().as_secs_f64();
    assert!(rate > 50.0 || *WITHOUT_SEAWALL, "the crowd should ask 200 times a second, and asked {rate:.0} times");
}

#[test]
fn a_member_signs_in_reads_comments_and_signs_out_in_a_browser_while_a_crowd_reads_the_same_pages() {
    if !long_tests_run() {
        return;
    }
    let blog = with_scripts();
    let facts = json!({
        "link": link(&blog, "free"), "name": "Freda Freemarker", "before": "/post-04/", "secret": "SECRET-OF-MEMBERS-POSTS",
        "talk": "/post-01/", "words": "A comment out of a browser",
    });
    beside_a_crowd(&blog, || journey(&blog, "member", facts));
}

#[test]
fn two_members_of_different_tiers_read_in_browsers_while_a_crowd_reads_the_same_pages() {
    if !long_tests_run() {
        return;
    }
    let blog = with_scripts();
    let (paid, tiers) = (json!(["/post-05/", "SECRET-OF-PAID-POSTS"]), json!(["/post-06/", "SECRET-OF-TIERS-POSTS"]));
    let people = json!([
        {"link": link(&blog, "silver"), "name": "Sylvia Silvermarker", "reads": [paid], "misses": [tiers]},
        {"link": link(&blog, "gold"), "name": "Gordon Goldmarker", "reads": [paid, tiers], "misses": []},
        {"link": link(&blog, "free"), "name": "Freda Freemarker", "reads": [], "misses": [paid, tiers]},
    ]);
    beside_a_crowd(&blog, || journey(&blog, "tiers", json!({"people": people})));
}

#[test]
fn an_editor_writes_a_post_with_a_picture_in_a_browser_and_it_is_on_the_front_page() {
    if !long_tests_run() {
        return;
    }
    let blog = with_scripts();
    let picture = blog.ghost().get(FACTS["picture"].as_str().expect("a picture")).status(200).content;
    let facts = json!({
        "email": FACTS["owner"]["email"], "password": FACTS["owner"]["password"], "title": "Written in a browser", "words": "Words that were typed.",
        "picture": STANDARD.encode(picture),
    });
    beside_a_crowd(&blog, || journey(&blog, "editor", facts));
    blog.reader().get("/written-in-a-browser/").status(200).has("Words that were typed.");
}

/// The charts of `seawall bench --svg`: each as a picture of a post, uploaded as an editor does.
#[test]
fn charts_of_the_load_tester_are_shown_in_a_post() {
    if !long_tests_run() {
        return;
    }
    let blog = with_scripts();
    let charts = blog.folder().join("charts");
    let told = Command::new(env!("CARGO_BIN_EXE_seawall"))
        .args(["bench", "--quiet", "-c", "5", "-d", "3s", "--svg"])
        .arg(&charts)
        .arg(format!("{}/", blog.url))
        .output()
        .expect("the program can be run");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let mut html = String::new();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&charts).expect("charts") {
        let path = entry.expect("a file").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("text").to_owned();
        let content = std::fs::read(&path).expect("a chart");
        let uploaded = blog.editor().upload("images/upload/", "file", &name, "image/svg+xml", &content).json();
        html += &format!("<figure><img src=\"{}\" alt=\"{name}\"></figure>", uploaded["images"][0]["url"].as_str().expect("an address"));
        names.push(name);
    }
    assert!(!names.is_empty());
    blog.editor().write(&json!({"title": "Before and after", "slug": "charts", "html": html, "status": "published"}));
    journey(&blog, "charts", json!({"path": "/charts/", "names": names}));
}
