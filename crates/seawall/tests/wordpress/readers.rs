//! Readers who have signed in nowhere and written nothing: what PHP is asked for them, and what they get.

use std::{sync::Barrier, thread};

use super::{
    blog::{Blog, FACTS, Form, Setup, path_of},
    client::{Answer, Connection},
};

/// Returns the pages of the blog, each of which is the same for all.
fn pages() -> Vec<&'static str> {
    let mut pages = vec!["/", "/page/2/", "/category/tides/", "/tag/how-to/", "/author/ada/", "/2024/12/", "/feed/", "/comments/feed/"];
    pages.extend(["/wp-sitemap.xml", "/wp-sitemap-posts-post-1.xml", "/robots.txt"]);
    pages.extend(["post-01", "post-60", "lake", "about", "crew"].map(path_of));
    pages
}

fn are_fetched_for_the_first_reader_only(form: Form) {
    let blog = Setup::default().form(form).start();
    for path in pages() {
        let first = blog.stored(path).status(200).without("set-cookie");
        let asked = blog.witness.count(path);
        for _ in 0..3 {
            let again = blog.reader().get(path).status(200).hit();
            assert!(again.content == first.content, "{path}");
        }
        assert_eq!(blog.witness.count(path), asked, "{path}");
        let direct = blog.wordpress().with("Accept", "text/html").get(path).status(200);
        assert_eq!(direct.value("content-type"), first.value("content-type"), "{path}");
    }
}

#[test]
fn every_page_that_is_the_same_for_all_is_fetched_for_the_first_reader_only() {
    are_fetched_for_the_first_reader_only(Form::Folder);
}

#[test]
fn every_page_of_a_wordpress_behind_an_nginx_is_fetched_for_the_first_reader_only() {
    are_fetched_for_the_first_reader_only(Form::Server);
}

#[test]
fn what_readers_get_is_what_wordpress_says() {
    let blog = Blog::new();
    blog.stored("/").has("Title of post-01").has("Title of post-10").lacks("Title of post-11");
    blog.stored(path_of("post-01")).has("Words of post-01").has("First comment on post-01");
    blog.stored(path_of("lake")).has("Words of the station by the lake");
    blog.stored("/feed/").has("<title>Title of post-01</title>").field("content-type", "application/rss+xml");
    blog.stored("/wp-sitemap-posts-post-1.xml").has(path_of("post-60"));
    blog.stored("/robots.txt").has("/wp-admin/").field("content-type", "text/plain");
}

#[test]
fn files_never_reach_php() {
    let blog = Blog::new();
    let page = blog.stored(path_of("post-03")).text();
    // Every size that the page names: `src` and all of `srcset`.
    let pictures: Vec<_> = page
        .split(['"', ' ', ','])
        .filter(|part| part.contains("/wp-content/uploads/"))
        .map(|part| part.trim_start_matches(&blog.url).to_owned())
        .collect();
    assert!(pictures.len() >= 4, "{pictures:?}");
    let asked = blog.witness.total();
    for path in &pictures {
        let whole = blog.reader().get(path).status(200).field("content-type", "image/jpeg");
        let part = blog.reader().with("Range", "bytes=10-19").get(path).status(206);
        assert!(part.content == whole.content[10..20], "{path}");
    }
    for path in [
        "/wp-includes/css/dist/block-library/style.min.css?ver=1",
        "/wp-includes/js/jquery/jquery.min.js",
        "/wp-content/themes/seaside/style.css",
    ] {
        blog.reader().get(path).status(200);
    }
    assert_eq!(blog.witness.total(), asked);
}

#[test]
fn ten_thousand_click_identifiers_are_one_page_and_one_request() {
    let blog = Blog::new();
    let path = path_of("post-02");
    let page = blog.stored(path).content;
    let asked = blog.witness.total();
    let mut reader = Connection::of(&blog.reader());
    for n in 0..10_000 {
        let answer = reader.exchange("GET", &format!("{path}?fbclid=IwAR{n}x{}", n * 7919), &[]);
        assert!(answer.status == 200 && answer.content == page, "{answer}");
    }
    assert_eq!(blog.witness.total(), asked);
}

#[test]
fn a_crowd_that_comes_at_once_to_a_cold_page_is_one_request() {
    let blog = Blog::new();
    let path = path_of("post-07");
    let ready = Barrier::new(500);
    thread::scope(|crowd| {
        for _ in 0..500 {
            crowd.spawn(|| {
                let reader = blog.reader();
                ready.wait();
                reader.get(path).status(200).has("Words of post-07");
            });
        }
    });
    assert_eq!(blog.witness.count(path), 1);
}

#[test]
fn a_head_is_answered_from_the_stored_page() {
    let blog = Blog::new();
    let path = path_of("post-05");
    let page = blog.stored(path);
    let asked = blog.witness.total();
    let head = blog.reader().send("HEAD", path, &[]).status(200);
    assert!(head.content.is_empty());
    assert_eq!(head.value("content-type"), page.value("content-type"));
    assert_eq!(blog.witness.total(), asked);
}

#[test]
fn a_head_that_comes_first_stores_no_empty_page() {
    let blog = Blog::new();
    let path = path_of("post-06");
    assert!(blog.reader().send("HEAD", path, &[]).status(200).content.is_empty());
    blog.reader().get(path).status(200).has("Words of post-06");
}

/// A search costs PHP much, and strangers can invent as many as they like; so one answer serves all who search for the same in some seconds.
#[test]
fn a_search_is_asked_once_for_all_who_search_for_the_same() {
    let blog = Blog::new();
    let first = blog.reader().get("/?s=post-33").status(200).has("for &#8220;post-33").has("Title of post-33");
    for _ in 0..5 {
        assert!(blog.reader().get("/?s=post-33").status(200).content == first.content);
    }
    assert_eq!(blog.witness.count("/?s=post-33"), 1);
    blog.reader().get("/?s=post-34").status(200).has("for &#8220;post-34").lacks("for &#8220;post-33");
}

#[test]
fn a_page_that_is_not_there_is_asked_once_in_some_seconds() {
    let blog = Blog::new();
    for _ in 0..5 {
        blog.reader().get("/no-such-page/").status(404);
    }
    assert_eq!(blog.witness.count("/no-such-page/"), 1);
}

#[test]
fn a_feed_reader_that_asks_again_gets_a_304_from_the_stored_feed() {
    let blog = Blog::new();
    let feed = blog.stored("/feed/").status(200);
    let asked = blog.witness.total();
    let validators: Vec<_> = [("If-None-Match", "etag"), ("If-Modified-Since", "last-modified")]
        .into_iter()
        .filter_map(|(field, name)| feed.value(name).map(|value| (field, value.to_owned())))
        .collect();
    assert!(!validators.is_empty(), "{feed}");
    for (field, value) in validators {
        blog.anybody().with(field, &value).get("/feed/").status(304);
    }
    assert_eq!(blog.witness.total(), asked);
}

#[test]
fn the_old_address_of_a_post_is_a_redirect_for_all() {
    let blog = Blog::new();
    let target = format!("/?p={}", FACTS["posts"]["post-02"]["id"]);
    for _ in 0..3 {
        blog.reader().get(&target).status(301).field("location", path_of("post-02"));
    }
    blog.reader().get(path_of("post-02").trim_end_matches('/')).status(301).field("location", path_of("post-02"));
    // The page of a picture leads to its file.
    let picture = format!("/?attachment_id={}", FACTS["picture"]["id"]);
    let answer = blog.reader().get(&picture).status(301).field("location", "/wp-content/uploads/");
    let file = answer.value("location").expect("an address").trim_start_matches(&blog.url);
    blog.reader().get(file).status(200).field("content-type", "image/jpeg");
}

#[test]
fn the_rest_api_answers_strangers_from_the_store() {
    let blog = Blog::new();
    for target in ["/wp-json/wp/v2/posts?per_page=5", "/wp-json/wp/v2/posts?per_page=5&page=2", "/wp-json/"] {
        let first = blog.anybody().get(target).status(200).field("content-type", "application/json");
        for _ in 0..3 {
            assert!(blog.anybody().get(target).status(200).content == first.content, "{target}");
        }
        assert_eq!(blog.witness.count(target), 1, "{target}");
    }
    let first = blog.anybody().get("/wp-json/wp/v2/posts?per_page=5").json();
    let second = blog.anybody().get("/wp-json/wp/v2/posts?per_page=5&page=2").json();
    assert_ne!(first, second);
}

#[test]
fn a_card_for_other_sites_is_stored_by_the_address_that_it_is_of() {
    let blog = Blog::new();
    let card = |slug: &str| blog.anybody().get(&format!("/wp-json/oembed/1.0/embed?url={}{}", blog.url, path_of(slug)));
    for _ in 0..2 {
        assert_eq!(card("post-01").status(200).json()["title"], "Title of post-01");
        assert_eq!(card("post-02").status(200).json()["title"], "Title of post-02");
    }
}

/// Each answer has another secret in it, with which the frame recognises its page.
#[test]
fn the_frame_of_a_card_is_given_whole() {
    let blog = Blog::new();
    for _ in 0..3 {
        blog.reader().get(&format!("{}embed/", path_of("post-01"))).status(200).has("Title of post-01").has("</html>");
    }
}

#[test]
fn xmlrpc_reaches_wordpress_every_time() {
    let blog = Blog::new();
    let call = "<?xml version=\"1.0\"?><methodCall><methodName>demo.sayHello</methodName></methodCall>";
    for _ in 0..2 {
        blog.anybody().with("Content-Type", "text/xml").send("POST", "/xmlrpc.php", call.as_bytes()).status(200).has("Hello!");
        blog.anybody().get("/xmlrpc.php").status(405);
    }
    assert_eq!(blog.witness.count("/xmlrpc.php"), 4);
}

#[test]
fn readers_have_no_cookies_and_the_cookies_of_their_tools_cost_nothing() {
    let blog = Blog::new();
    let path = path_of("post-08");
    let page = blog.stored(path);
    let asked = blog.witness.total();
    for cookie in ["_ga", "_gid", "_fbp", "wordpress_test_cookie", "wp-settings-1", "wp-settings-time-1"] {
        let answer = blog.reader().with_cookie(cookie, "1").get(path).status(200).hit();
        assert!(answer.content == page.content, "{cookie}");
    }
    assert_eq!(blog.witness.total(), asked);
}

/// What is fetched for all is asked for as nobody in particular.
#[test]
fn wordpress_is_asked_for_the_crowd_without_any_cookie_or_field_of_the_first_reader() {
    let blog = Blog::new();
    let path = path_of("post-09");
    let first = blog
        .reader()
        .with_cookie("_ga", "GA1.2.3")
        .with("Accept-Language", "de")
        .with("Referer", "http://elsewhere.example/")
        .with("X-Forwarded-Host", "evil.example");
    first.get(path).status(200).lacks("evil.example");
    let seen = blog.witness.last(path);
    for name in ["HTTP_COOKIE", "HTTP_ACCEPT_LANGUAGE", "HTTP_REFERER"] {
        assert_eq!(seen.sent(name), None, "{name}");
    }
    assert_ne!(seen.sent("HTTP_X_FORWARDED_HOST"), Some("evil.example"));
    blog.stored(path).status(200).lacks("evil.example");
}

/// Fediverse servers ask for the same addresses with another Accept, and plugins answer them something else.
#[test]
fn what_is_asked_for_as_activity_is_never_what_browsers_get() {
    let blog = Setup::default().mu_plugin("activity").start();
    let path = path_of("post-10");
    let activity = || blog.anybody().with("Accept", "application/activity+json").get(path);
    let is_activity = |answer: Answer| answer.status(200).field("content-type", "application/activity+json").has("\"Note\"");
    for _ in 0..3 {
        is_activity(activity());
        blog.reader().get(path).status(200).field("content-type", "text/html").has("Words of post-10");
    }
}
