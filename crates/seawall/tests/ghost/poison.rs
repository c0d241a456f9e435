//! What strangers send in order to change what others get, or to have it fetched again and again.

use super::blog::{Blog, FACTS};

/// Fields that shape a page or purge a cache elsewhere, from a client that has nothing to say here.
const FOREIGN: [(&str, &str); 14] = [
    ("X-Cache-Invalidate", "/*"),
    ("X-LSCACHE", "on"),
    ("X-LiteSpeed-Purge", "*"),
    ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Prefix", "/evil"),
    ("X-Original-URL", "/post-02/"),
    ("X-Rewrite-URL", "/post-02/"),
    ("X-Host", "evil.example"),
    ("Forwarded", "host=evil.example;proto=https"),
    ("X-HTTP-Method-Override", "PURGE"),
    ("X-Member-Cache-Tier", "gold"),
    ("Accept-Version", "v1.0"),
    ("Origin", "http://localhost:1"),
];

#[test]
fn fields_from_strangers_change_nothing_for_others() {
    let blog = Blog::new();
    for (n, (name, value)) in FOREIGN.iter().enumerate() {
        // Pages without a picture, each as cold as the one before.
        let path = format!("/post-{:02}/", [1, 2, 7, 8, 10, 11, 13, 16, 17, 19, 20][n % 11]);
        blog.editor().set("description", &format!("Cold again: {name}").into());
        blog.reader().with(name, value).get(&path);
        let ghost = blog.ghost().get(&path);
        for _ in 0..2 {
            let seen = blog.reader().get(&path).status(200).lacks("evil").without("access-control-allow-origin");
            assert_eq!(seen.value("etag"), ghost.value("etag"), "{path} after {name}: {value}");
        }
    }
}

#[test]
fn strangers_purge_nothing() {
    let blog = Blog::new();
    let target = "/post-01/";
    blog.stored(target);
    let asked = blog.tap.count(target);
    for (name, value) in FOREIGN.iter().filter(|(name, _)| !name.starts_with("X-Forwarded") && *name != "Forwarded") {
        for (method, path) in [
            ("GET", "/post-01/"),
            ("POST", "/members/api/events/"),
            ("POST", "/no-such-page/"),
            ("DELETE", "/post-02/"),
            ("PURGE", "/post-02/"),
        ] {
            blog.reader().with(name, value).send(method, path, &[]);
        }
    }
    blog.reader().get(target).status(200).hit();
    assert_eq!(blog.tap.count(target), asked);
}

/// RFC 9111 §4.4 lets an answered POST invalidate its own target, and that is all that a stranger can do.
#[test]
fn a_strangers_post_touches_no_other_page() {
    let blog = Blog::new();
    for path in ["/", "/post-01/", "/rss/"] {
        blog.stored(path);
    }
    blog.reader().with("Content-Location", "/post-01/").send("POST", "/", b"anything");
    blog.reader().send_json("POST", "/members/api/comments/", &serde_json::json!({"comments": [{"post_id": "0", "html": "x"}]}));
    blog.reader().send_json("POST", "/members/api/send-magic-link/", &serde_json::json!({"email": "a@b.example"}));
    for path in ["/post-01/", "/rss/"] {
        blog.reader().get(path).status(200).hit();
    }
}

/// The designer of a theme sees their own colours; nobody else does, and the designer never gets the stored page.
#[test]
fn a_preview_of_settings_reaches_ghost_each_time_and_stays_its_askers() {
    let blog = Blog::new();
    let path = "/post-01/";
    let designer = blog.reader().with("x-ghost-preview", "c=ff0011");
    let page = blog.stored(path);
    for n in 1..=3 {
        let before = blog.tap.count(path);
        designer.get(path).status(200).has("ff0011");
        assert_eq!(blog.tap.count(path), before + 1, "time {n}");
        assert!(blog.reader().get(path).lacks("ff0011").content == page.content);
    }
    // The first to ask, too.
    designer.get("/post-02/").status(200).has("ff0011");
    blog.reader().get("/post-02/").status(200).lacks("ff0011");
}

/// Someone with a key of the API gets their answer, and nobody else does.
#[test]
fn a_request_with_authorization_is_answered_by_ghost_alone() {
    let blog = Blog::new();
    let path = "/post-01/";
    blog.stored(path);
    for _ in 0..2 {
        let before = blog.tap.count(path);
        blog.reader().with("Authorization", "Bearer anything").get(path);
        assert_eq!(blog.tap.count(path), before + 1);
    }
    let key = FACTS["content_key"].as_str().unwrap();
    blog.reader().get(&format!("/ghost/api/admin/posts/?key={key}")).status(403);
}

/// Errors are answers to one reader: for the next, Ghost is asked.
#[test]
fn errors_are_not_stored() {
    let blog = Blog::new();
    for (path, status) in [("/unsubscribe/", 400), ("/ghost/api/content/posts/?key=0123456789abcdef0123456789", 401)] {
        for n in 1..=3 {
            let seen = blog.reader().get(path).status(status);
            assert!(!seen.is_hit(), "{seen}");
            assert!(blog.tap.count(path) >= n, "{path}");
        }
    }
    // `Origin: ::::` makes any page of Ghost an error.
    let broken = blog.reader().with("Origin", "::::").get("/post-07/");
    assert!(matches!(broken.status, 200 | 400), "{broken}");
    blog.reader().get("/post-07/").status(200);
}
