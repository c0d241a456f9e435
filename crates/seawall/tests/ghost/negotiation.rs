//! What a client accepts: Ghost answers by it for some paths without saying so in `Vary`.

use std::{sync::Barrier, thread};

use super::{
    blog::{Blog, FACTS},
    client::{Answer, Client},
};

/// The `Accept` values that browsers, readers of feeds, the social web, crawlers and scripts send.
const KINDS: [Option<&str>; 10] = [
    Some("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    Some("application/activity+json"),
    Some("application/ld+json; profile=\"https://www.w3.org/ns/activitystreams\""),
    Some("text/markdown"),
    Some("text/markdown, text/html;q=0.5"),
    Some("application/json"),
    Some("application/rss+xml, application/xml;q=0.9"),
    Some("image/webp,*/*"),
    Some("*/*"),
    None,
];

/// Pages, and what is negotiable or looks so: for each, Ghost itself says what is right.
const PATHS: [&str; 7] = ["/post-03/", "/post-03.md", "/", "/rss/", "/post-3", "/no-such-page/", "/tag/tides/"];

/// Returns what a client sees of an answer. A render holds a moment and an address of the picture that may differ, so its kind and title
/// must do.
fn seen(answer: &Answer) -> (u16, Option<String>, Option<String>, bool) {
    let kind = answer.value("content-type").map(str::to_owned);
    (answer.status, kind, answer.value("location").map(str::to_owned), answer.contains("<!DOCTYPE html>"))
}

fn who_accepts(client: Client, kind: Option<&str>) -> Client {
    match kind {
        Some(kind) => client.with("Accept", kind),
        None => client,
    }
}

#[test]
fn ten_kinds_of_accept_never_mix_whoever_comes_first() {
    let blog = Blog::new();
    for path in PATHS {
        let right: Vec<_> = KINDS.map(|kind| seen(&who_accepts(blog.ghost(), kind).get(path))).into();
        // A browser first, the social web first, a reader of Markdown first, a client that says nothing first.
        for first in [0, 1, 3, 9] {
            blog.editor().set("description", &format!("So that all is cold: {first}").into());
            for n in 0..KINDS.len() {
                let at = (first + n) % KINDS.len();
                let client = who_accepts(blog.anybody(), KINDS[at]);
                assert_eq!(seen(&client.get(path)), right[at], "{path} for {:?}, after {:?}", KINDS[at], KINDS[first]);
            }
        }
    }
}

#[test]
fn ten_kinds_of_accept_that_come_at_once_to_a_cold_page_never_mix() {
    let blog = Blog::new();
    for path in PATHS {
        let right: Vec<_> = KINDS.map(|kind| seen(&who_accepts(blog.ghost(), kind).get(path))).into();
        let ready = Barrier::new(KINDS.len() * 3);
        thread::scope(|crowd| {
            for at in (0..KINDS.len()).cycle().take(KINDS.len() * 3) {
                let (blog, ready, right) = (&blog, &ready, &right);
                crowd.spawn(move || {
                    let client = who_accepts(blog.anybody(), KINDS[at]);
                    ready.wait();
                    assert_eq!(seen(&client.get(path)), right[at], "{path} for {:?}", KINDS[at]);
                });
            }
        });
    }
}

/// The address of the social web belongs to another server: a page at the same address must not be stored in its place, nor the other way round.
#[test]
fn the_markdown_of_a_post_and_its_page_are_two_things() {
    let blog = Blog::new();
    for accept in ["text/html", "text/markdown", "*/*"] {
        let client = blog.anybody().with("Accept", accept);
        for _ in 0..2 {
            client.get("/post-01/").status(200).has("<!DOCTYPE html>");
            client.get("/post-01.md").status(200).lacks("<!DOCTYPE html>").has("Words of post-01");
        }
    }
}

/// What a client sends for itself must not shape what the next one gets: Ghost mirrors `Origin`, and cuts and codes what it is asked to.
#[test]
fn fields_of_the_first_reader_do_not_reach_the_others() {
    let blog = Blog::new();
    let picture = FACTS["picture"].as_str().unwrap();
    for (path, name, value) in [
        ("/post-01/", "Origin", "http://localhost:9"),
        ("/post-02/", "Origin", "::::"),
        ("/post-07/", "If-None-Match", "\"anything\""),
        ("/post-08/", "Accept-Encoding", "br"),
        ("/post-10/", "Accept-Language", "de"),
        (picture, "Range", "bytes=0-0"),
    ] {
        let first = blog.reader().with(name, value).get(path);
        assert!(first.status < 400 || name == "Origin", "{first}");
        let second = blog.reader().get(path).status(200);
        assert!(second.value("content-encoding").is_none_or(|coding| coding == "identity"), "{second}");
        let ghost = blog.ghost().get(path);
        assert_eq!(second.content.len(), ghost.content.len(), "{path}, after {name}: {value}");
        let allowed = "access-control-allow-origin";
        assert_eq!(second.value(allowed), ghost.value(allowed), "{path}, after {name}: {value}");
    }
}
