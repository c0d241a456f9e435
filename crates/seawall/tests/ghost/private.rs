//! A blog behind a password: the public days are over with the next request, for everything that can be read.

use super::blog::{Blog, FACTS};

const PAGES: [&str; 6] = ["/", "/post-01/", "/tag/tides/", "/about/", "/sitemap.xml", "/post-01.md"];

fn counts() -> String {
    format!("/members/api/comments/counts/?ids={}", super::editor::Editor::post("post-01"))
}

#[track_caller]
fn is_locked(blog: &Blog) {
    for path in PAGES {
        let seen = blog.reader().get(path);
        let ghost = blog.ghost().get(path);
        assert_eq!((seen.status, seen.value("location")), (ghost.status, ghost.value("location")), "{path}: {seen}");
        assert!(!seen.contains("Words of post-01"), "{seen}");
    }
    blog.reader().get("/").status(302).field("location", "/private/");
    blog.reader().get("/robots.txt").status(200).has("Disallow: /").lacks("Sitemap:");
    let rss = blog.reader().get("/rss/");
    assert!(!rss.contains("post-01"), "{rss}");
    let ghost = blog.ghost().get(&counts());
    assert_eq!(blog.reader().get(&counts()).status, ghost.status);
}

fn lock(blog: &Blog) {
    blog.editor().send(
        "PUT",
        "settings/",
        &serde_json::json!({"settings": [{"key": "is_private", "value": true}, {"key": "password", "value": "tell-nobody"}]}),
    );
}

#[test]
fn a_blog_that_becomes_private_is_locked_for_the_next_request() {
    let blog = Blog::new();
    for path in PAGES.into_iter().chain(["/robots.txt", "/rss/"]) {
        blog.stored(path).status(200);
    }
    for _ in 0..3 {
        blog.reader().get(&counts()).status(200);
    }
    lock(&blog);
    is_locked(&blog);
    is_locked(&blog);
}

/// Whoever has the password reads, and opens the blog to nobody else.
#[test]
fn who_has_the_password_reads_and_nobody_else() {
    let blog = Blog::new();
    lock(&blog);
    let login =
        blog.reader().with("Content-Type", "application/x-www-form-urlencoded").send("POST", "/private/?r=%2F", b"password=tell-nobody");
    let friend = blog.reader().after(&login.status(302));
    assert!(friend.cookie_names().contains(&"ghost-private"));
    for _ in 0..3 {
        for path in ["/", "/post-01/"] {
            let seen = friend.get(path).status(200).has("post-01");
            assert!(!seen.is_hit(), "{seen}");
        }
        is_locked(&blog);
    }
}

/// Nothing of the public days comes back because Ghost is away: what has been seen to be locked stays so.
#[test]
fn nothing_of_the_public_days_comes_back_when_ghost_goes_away() {
    let mut blog = Blog::new();
    for path in ["/", "/post-01/", "/rss/"] {
        blog.stored(path).status(200);
    }
    lock(&blog);
    for path in ["/", "/post-01/", "/rss/"] {
        blog.reader().get(path);
    }
    blog.stop_ghost();
    for path in ["/", "/post-01/", "/rss/"] {
        let seen = blog.reader().get(path);
        assert!(seen.status != 200, "{seen}");
        seen.lacks("Words of post-01");
    }
}

#[test]
fn a_blog_that_becomes_public_again_is_read_with_the_next_request() {
    let blog = Blog::new();
    lock(&blog);
    is_locked(&blog);
    blog.editor().set("is_private", &false.into());
    blog.reader().get("/").status(200).has("Title of post-01");
    blog.reader().get("/post-01/").status(200).has("Words of post-01");
    blog.reader().get("/rss/").status(200).has("post-01");
    blog.reader().get("/robots.txt").status(200).has("Sitemap:");
}

/// The feed of a private blog has a secret address.
#[test]
fn the_secret_feed_of_a_private_blog_is_not_stored() {
    let blog = Blog::new();
    lock(&blog);
    let settings = blog.editor().get("settings/");
    let hash = settings["settings"].as_array().unwrap().iter().find(|one| one["key"] == "public_hash").expect("a hash")["value"].clone();
    let feed = format!("/{}/rss/", hash.as_str().unwrap());
    for n in 1..=3 {
        blog.reader().get(&feed).status(200).has("post-01");
        assert_eq!(blog.tap.count(&feed), n);
    }
}

/// The content API with its key is not behind the password: Ghost has it so.
#[test]
fn the_content_api_answers_as_ghost_does() {
    let blog = Blog::new();
    let target = format!("/ghost/api/content/posts/?key={}&limit=1", FACTS["content_key"].as_str().unwrap());
    blog.reader().get(&target).status(200);
    lock(&blog);
    assert_eq!(blog.reader().get(&target).status, blog.ghost().get(&target).status);
}
