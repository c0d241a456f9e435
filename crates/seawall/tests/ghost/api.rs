//! What browsers ask besides pages: who am I, search, the content API. Without a cookie, the answer is the same for all.

use std::time::{Duration, Instant};

use super::blog::{Blog, FACTS, pause};

fn questions(blog: &Blog) -> Vec<String> {
    let key = FACTS["content_key"].as_str().unwrap();
    let page = blog.reader().get("/").text();
    // The search in the page says with which key it asks.
    let search = page.split("data-key=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or(key);
    vec![
        "/members/api/member/".to_owned(),
        "/ghost/auth-frame/".to_owned(),
        format!("/ghost/api/content/posts/?key={key}&limit=5"),
        format!("/ghost/api/content/settings/?key={key}"),
        format!("/ghost/api/content/tiers/?key={key}&limit=all"),
        format!("/ghost/api/content/search-index/posts/?key={search}"),
        format!("/ghost/api/content/search-index/tags/?key={search}"),
        format!("/ghost/api/content/search-index/authors/?key={search}"),
    ]
}

#[test]
fn a_crowd_without_cookies_asks_ghost_seldom_for_what_is_the_same_for_all() {
    let blog = Blog::new();
    for question in questions(&blog) {
        let ghost = blog.ghost().with("Accept", "*/*").get(&question);
        let before = blog.tap.count(&question);
        let started = Instant::now();
        let mut asked = 0;
        while started.elapsed() < Duration::from_millis(1500) {
            let seen = blog.reader().get(&question).status(ghost.status);
            assert_eq!(seen.content, ghost.content, "{question}");
            // The browser gets what Ghost said: it must ask again after signing in.
            assert_eq!(seen.value("cache-control"), ghost.value("cache-control"), "{question}");
            asked += 1;
            pause();
        }
        let reached = blog.tap.count(&question) - before;
        assert!(reached * 5 < asked, "{question}: {reached} of {asked} reached Ghost");
    }
}

/// The next question after signing in must not be answered with "nobody".
#[test]
fn whoever_signs_in_is_known_with_the_next_question() {
    let blog = Blog::new();
    for _ in 0..3 {
        blog.reader().get("/members/api/member/").status(204);
    }
    let member = blog.member("free");
    for _ in 0..3 {
        member.get("/members/api/member/").status(200).has("Freda");
        blog.reader().get("/members/api/member/").status(204).lacks("Freda");
    }
}

#[test]
fn the_content_api_shows_an_edit_with_the_next_request() {
    let blog = Blog::new();
    let target = format!("/ghost/api/content/posts/slug/post-01/?key={}", FACTS["content_key"].as_str().unwrap());
    let list = format!("/ghost/api/content/posts/?key={}&limit=3", FACTS["content_key"].as_str().unwrap());
    for _ in 0..3 {
        blog.reader().get(&target).status(200).has("Title of post-01");
        blog.reader().get(&list).status(200).has("Title of post-01");
    }
    blog.editor().edit(super::editor::Editor::post("post-01"), &serde_json::json!({"title": "Another title"}));
    blog.reader().get(&target).status(200).has("Another title");
    blog.reader().get(&list).status(200).has("Another title");
}

#[test]
fn parameters_of_the_content_api_are_told_apart() {
    let blog = Blog::new();
    let key = FACTS["content_key"].as_str().unwrap();
    for query in [
        "limit=1",
        "limit=2",
        "limit=2&page=2",
        "order=title%20asc",
        "filter=tag:tides",
        "include=tags",
        "fields=id,slug",
        "formats=plaintext",
    ] {
        let target = format!("/ghost/api/content/posts/?key={key}&{query}");
        let ghost = blog.ghost().get(&target).status(200);
        for _ in 0..2 {
            assert_eq!(blog.reader().get(&target).status(200).json(), ghost.json(), "{query}");
        }
    }
    let wrong = "/ghost/api/content/posts/?key=0123456789abcdef0123456789&limit=1";
    blog.reader().get(wrong).status(401);
    blog.reader().get("/ghost/api/content/posts/?limit=1").status(403);
}

/// The token says when it was made, and is good for a short time.
#[test]
fn a_token_against_robots_is_made_for_each_reader() {
    let blog = Blog::new();
    for n in 1..=4 {
        blog.reader().get("/members/api/integrity-token/").status(200);
        assert_eq!(blog.tap.count("/members/api/integrity-token/"), n);
    }
}

/// The frame through which a page finds out whether its reader is staff, for the comments.
#[test]
fn the_frame_for_staff_is_ghosts_own_for_staff() {
    let blog = Blog::new();
    for _ in 0..3 {
        blog.reader().get("/ghost/auth-frame/").status(204);
    }
    let editor = blog.editor().client().clone();
    for _ in 0..2 {
        let frame = editor.get("/ghost/auth-frame/").status(200);
        assert!(!frame.is_hit(), "{frame}");
        blog.reader().get("/ghost/auth-frame/").status(204);
    }
}
