//! Readers who are not signed in: what Ghost is asked for them, and what their browsers are told.

use std::{sync::Barrier, thread};

use super::{
    blog::{Blog, FACTS, Setup},
    client::Connection,
};

/// Returns the pages of a blog, and its files: each is the same for all.
fn pages_and_files(blog: &Blog) -> Vec<String> {
    let front = blog.reader().get("/").status(200).text();
    let stylesheet = front.split(['"', '\'']).find(|part| part.contains("/assets/built/screen.css?v=")).expect("a stylesheet");
    let picture = FACTS["picture"].as_str().expect("a picture");
    let mut paths: Vec<_> = [
        "/",
        "/page/2/",
        "/post-01/",
        "/post-04/",
        "/about/",
        "/tag/tides/",
        "/author/ada/",
        "/rss/",
        "/tag/tides/rss/",
        "/sitemap.xml",
        "/sitemap-posts.xml",
        "/robots.txt",
        "/llms.txt",
        "/post-01.md",
        "/favicon.ico",
        "/public/cards.min.css",
    ]
    .map(str::to_owned)
    .into();
    paths.extend([
        stylesheet.trim_start_matches(&blog.url).to_owned(),
        picture.to_owned(),
        picture.replace("/images/", "/images/size/w600/"),
    ]);
    paths
}

#[test]
fn every_page_and_file_that_is_the_same_for_all_is_fetched_for_the_first_reader_only() {
    let blog = Blog::new();
    for path in pages_and_files(&blog) {
        let first = blog.stored(&path).status(200);
        let asked = blog.tap.count(&path);
        for _ in 0..5 {
            let again = blog.reader().get(&path).status(200).hit();
            assert!(again.content == first.content, "{path}");
        }
        assert_eq!(blog.tap.count(&path), asked, "{path}");
    }
}

/// What is stored until it is purged is none of the browser's business: it asks again each time, as Ghost wants it to.
#[test]
fn a_browser_is_told_what_ghost_says() {
    let blog = Blog::new();
    for path in pages_and_files(&blog) {
        let ghost = blog.ghost().get(&path).status(200);
        for seen in [blog.reader().get(&path), blog.stored(&path)] {
            for name in ["cache-control", "content-type", "link", "x-llms-txt"] {
                assert_eq!(seen.value(name), ghost.value(name), "{name} of {path}");
            }
            seen.without("set-cookie").without_signal();
        }
    }
}

#[test]
fn a_crowd_that_comes_at_once_to_a_cold_page_is_one_request_and_its_proof() {
    let blog = Blog::new();
    let ready = Barrier::new(200);
    thread::scope(|crowd| {
        for _ in 0..200 {
            crowd.spawn(|| {
                let reader = blog.reader();
                ready.wait();
                reader.get("/post-07/").status(200).has("Words of post-07");
            });
        }
    });
    let asked = blog.tap.count("/post-07/");
    assert!((1..=2).contains(&asked), "asked {asked} times");
}

/// Nobody waits for another's answer when that cannot be theirs: all previews are rendered at the same time.
#[test]
fn a_crowd_on_a_page_that_is_not_stored_does_not_queue_up() {
    let blog = Blog::new();
    let preview = format!("/p/{}/", FACTS["draft"]["uuid"].as_str().unwrap());
    blog.reader().get(&preview).status(200).has("Words of the draft");
    let held = blog.tap.hold(&preview);
    thread::scope(|readers| {
        let slow = readers.spawn(|| blog.reader().get(&preview).status(200));
        held.is_answered();
        for _ in 0..10 {
            blog.reader().get(&preview).status(200).has("Words of the draft");
        }
        held.release();
        slow.join().unwrap();
    });
    assert_eq!(blog.tap.count(&preview), 12, "each reader is a request");
}

#[test]
fn ten_thousand_click_identifiers_are_one_page() {
    let blog = Blog::new();
    let page = blog.stored("/post-02/").content;
    let asked = blog.tap.count_of_path("/post-02/");
    let mut reader = Connection::of(&blog.reader());
    for n in 0..10_000 {
        let answer = reader.exchange("GET", &format!("/post-02/?fbclid=IwAR{n}x{}", n * 7919), &[]);
        assert!(answer.status == 200 && answer.content == page, "{answer}");
    }
    assert_eq!(blog.tap.count_of_path("/post-02/"), asked);
}

/// The parameters that Ghost's own edge keeps, but that change no page, are as cheap as those that it does not know.
#[test]
fn parameters_that_change_nothing_cost_nothing() {
    let blog = Blog::new();
    let page = blog.stored("/post-02/").content;
    let asked = blog.tap.count_of_path("/post-02/");
    for query in [
        "?",
        "?x=1",
        "?page=2",
        "?limit=3",
        "?v=1",
        "?order=asc",
        "?filter=id:1",
        "?fields=id",
        "?include=tags",
        "?formats=html",
        "?ref=a",
        "?source=b",
        "?utm_source=a&utm_medium=b",
        "?attribution_id=1&attribution_type=post",
        "?a=1&b=2&c=3",
        "?%61=b",
        "?nothing",
        "?utm_campaign=%F0%9F%A6%AD",
    ] {
        let answer = blog.reader().get(&format!("/post-02/{query}")).status(200);
        assert!(answer.content == page, "{query} changes the page");
    }
    assert_eq!(
        blog.tap.count_of_path("/post-02/"),
        asked,
        "{:?}",
        blog.tap.all().iter().map(|seen| seen.target.clone()).collect::<Vec<_>>()
    );
}

#[test]
fn pictures_are_given_in_ranges() {
    let blog = Blog::new();
    let path = FACTS["picture"].as_str().unwrap();
    let whole = blog.stored(path).status(200).content;
    let asked = blog.tap.count(path);
    for (range, expected) in
        [("bytes=0-99", &whole[..100]), ("bytes=1000-1999", &whole[1000..2000]), ("bytes=-50", &whole[whole.len() - 50..])]
    {
        let part = blog.reader().with("Range", range).get(path).status(206);
        assert!(part.content == expected, "{range}");
    }
    assert_eq!(blog.tap.count(path), asked);
}

/// A range that comes first must not be all that is stored.
#[test]
fn a_range_that_is_asked_first_does_not_cut_the_picture_for_others() {
    let blog = Blog::new();
    let path = FACTS["picture"].as_str().unwrap();
    let whole = blog.ghost().get(path).content;
    let part = blog.reader().with("Range", "bytes=10-19").get(path).status(206);
    assert!(part.content == whole[10..20]);
    assert!(blog.reader().get(path).status(200).content == whole);
}

/// Ghost sends everybody who came by http to https, for a year. That redirect must never be what a reader on https gets, or it goes round for ever.
#[test]
fn the_redirect_to_https_is_never_given_to_a_reader_on_https() {
    let blog = Setup::default().https().seawall("trusted_proxies = [\"127.0.0.1\"]").start();
    let (plain, secure) = (blog.reader().with("X-Forwarded-Proto", "http"), blog.reader().with("X-Forwarded-Proto", "https"));
    for path in ["/", "/post-01/"] {
        for _ in 0..3 {
            plain.get(path).status(301).field("location", &format!("{}{path}", blog.url));
            secure.get(path).status(200).has("Title of post-01");
        }
    }
}

#[test]
fn a_blog_below_a_path_is_stored_and_its_changes_are_seen() {
    let blog = Setup::default().below("/blog").start();
    for path in ["/blog/", "/blog/post-01/", "/blog/rss/", "/blog/sitemap.xml"] {
        blog.stored(path).status(200);
        let asked = blog.tap.count(path);
        blog.reader().get(path).status(200).hit();
        assert_eq!(blog.tap.count(path), asked, "{path}");
    }
    blog.editor().publish("below", "Words below a path.");
    blog.reader().get("/blog/").status(200).has("Title of below");
    blog.reader().get("/blog/below/").status(200).has("Words below a path.");
    let asked = blog.tap.count("/blog/ghost/");
    for _ in 0..2 {
        blog.reader().get("/blog/ghost/").status(200);
    }
    assert_eq!(blog.tap.count("/blog/ghost/"), asked + 2, "the admin pages are not stored");
}
