//! What an editor changes: everybody sees it with the next request after Ghost's answer.

use serde_json::{Value, json};

use super::{
    blog::{Blog, FACTS, long_tests_run, until, while_a_crowd_reads},
    client::Answer,
    editor::Editor,
};

#[test]
fn a_published_post_is_everywhere_with_the_next_request() {
    let blog = Blog::new();
    for path in ["/", "/rss/", "/sitemap-posts.xml", "/tag/tides/", "/tag/tides/rss/", "/author/ada/", "/llms.txt"] {
        blog.stored(path).lacks("news");
    }
    blog.reader().get("/news/").status(404);
    blog.editor().write(&json!({
        "title": "Title of news", "slug": "news", "html": "<p>Words of news.</p>", "status": "published",
        "tags": [{"slug": "tides"}], "authors": [{"email": "ada@blog.example"}],
    }));
    blog.reader().get("/news/").status(200).has("Words of news.");
    for path in ["/", "/rss/", "/sitemap-posts.xml", "/tag/tides/", "/tag/tides/rss/", "/author/ada/", "/llms.txt"] {
        blog.reader().get(path).status(200).has("news");
    }
}

#[test]
fn an_edit_is_seen_and_the_old_words_are_gone() {
    let blog = Blog::new();
    for path in ["/post-01/", "/", "/rss/", "/post-01.md"] {
        blog.stored(path).status(200);
    }
    blog.editor().edit(Editor::post("post-01"), &json!({"title": "Another title", "html": "<p>Other words.</p>"}));
    blog.reader().get("/post-01/").status(200).has("Another title").has("Other words.").lacks("Words of post-01");
    blog.reader().get("/").has("Another title").lacks("Title of post-01");
    blog.reader().get("/rss/").has("Another title").lacks("Words of post-01");
    blog.reader().get("/post-01.md").has("Other words.").lacks("Words of post-01");
}

/// A browser that has the old page asks with its validator. Ghost's is weak, and the new page has another.
#[test]
fn a_returning_readers_validator_gets_no_304_for_an_edited_page() {
    let blog = Blog::new();
    let old = blog.stored("/post-01/");
    let returning = blog.reader().with("If-None-Match", old.value("etag").expect("a validator"));
    returning.get("/post-01/").status(304);
    blog.editor().edit(Editor::post("post-01"), &json!({"html": "<p>Other words.</p>"}));
    for _ in 0..3 {
        returning.get("/post-01/").status(200).has("Other words.");
    }
}

#[test]
fn an_unpublished_post_is_gone_and_comes_back_when_it_is_published_again() {
    let blog = Blog::new();
    let (editor, reader) = (blog.editor(), blog.reader());
    blog.stored("/post-02/").status(200);
    blog.stored("/").has("Title of post-02");
    editor.edit(Editor::post("post-02"), &json!({"status": "draft"}));
    reader.get("/post-02/").status(404).lacks("Words of post-02");
    reader.get("/").status(200).lacks("Title of post-02");
    reader.get("/rss/").lacks("Title of post-02");
    editor.edit(Editor::post("post-02"), &json!({"status": "published"}));
    reader.get("/post-02/").status(200).has("Words of post-02");
    reader.get("/").has("Title of post-02");
}

#[test]
fn a_deleted_post_leaves_nothing() {
    let blog = Blog::new();
    for path in ["/post-03/", "/", "/rss/", "/tag/tides/", "/post-03.md"] {
        blog.stored(path).status(200);
    }
    blog.editor().delete(Editor::post("post-03"));
    for path in ["/post-03/", "/post-03.md"] {
        blog.reader().get(path).status(404).lacks("Words of post-03");
    }
    for path in ["/", "/rss/", "/tag/tides/", "/sitemap-posts.xml"] {
        blog.reader().get(path).status(200).lacks("post-03");
    }
}

#[test]
fn a_post_that_moves_leaves_nothing_at_its_old_address() {
    let blog = Blog::new();
    let lists = [
        "/",
        "/rss/",
        "/tag/stones/",
        "/tag/stones/rss/",
        "/author/ada/",
        "/author/ada/rss/",
        "/sitemap-posts.xml",
        "/llms.txt",
        "/llms-full.txt",
    ];
    for path in lists.into_iter().chain(["/post-01/", "/post-01.md"]) {
        blog.stored(path).status(200).has("post-01");
    }
    blog.editor().edit(Editor::post("post-01"), &json!({"slug": "moved", "title": "Title of moved", "html": "<p>Words.</p>"}));
    for path in ["/post-01/", "/post-01.md"] {
        let old = blog.reader().get(path);
        assert!(matches!(old.status, 301 | 404), "{old}");
    }
    blog.reader().get("/moved/").status(200).has("Title of moved");
    blog.reader().get("/moved.md").status(200).has("Words.");
    for path in lists {
        blog.reader().get(path).status(200).has("moved").lacks("post-01");
    }
}

#[test]
fn a_post_that_becomes_paid_is_cut_for_strangers_at_once() {
    let blog = Blog::new();
    blog.stored("/post-07/").has("And more.");
    blog.editor().edit(Editor::post("post-07"), &json!({"visibility": "paid"}));
    blog.reader().get("/post-07/").status(200).lacks("And more.");
    blog.editor().edit(Editor::post("post-07"), &json!({"visibility": "public"}));
    blog.reader().get("/post-07/").status(200).has("And more.");
}

#[test]
fn changes_of_tags_authors_navigation_and_settings_are_on_every_page() {
    let blog = Blog::new();
    let (editor, reader) = (blog.editor(), blog.reader());
    let pages = ["/", "/post-01/", "/about/", "/tag/tides/"];
    for path in pages {
        blog.stored(path).status(200);
    }

    let tag = editor.get("tags/slug/tides/")["tags"][0].clone();
    editor.send(
        "PUT",
        &format!("tags/{}/", tag["id"].as_str().unwrap()),
        &json!({"tags": [{"name": "High tides", "updated_at": tag["updated_at"]}]}),
    );
    reader.get("/tag/tides/").status(200).has("High tides");
    reader.get("/post-03/").has("High tides");

    let ada = editor.get("users/slug/ada/")["users"][0].clone();
    editor.send("PUT", &format!("users/{}/", ada["id"].as_str().unwrap()), &json!({"users": [{"name": "Ada Renamed"}]}));
    reader.get("/author/ada/").status(200).has("Ada Renamed");
    reader.get("/post-01/").has("Ada Renamed").lacks("Ada Author");

    editor.set("navigation", &json!([{"label": "Lighthouse", "url": "/about/"}]).to_string().into());
    for path in pages {
        reader.get(path).has("Lighthouse");
    }
    editor.set("title", &"The Other Wall".into());
    for path in pages {
        reader.get(path).has("The Other Wall");
    }
    reader.get("/rss/").has("The Other Wall").lacks("The Sea Wall");
    editor.set("codeinjection_head", &"<!-- injected into the head -->".into());
    for path in pages {
        reader.get(path).has("injected into the head");
    }
}

#[test]
fn a_tag_that_is_deleted_leaves_the_posts_and_its_own_page() {
    let blog = Blog::new();
    let editor = blog.editor();
    blog.stored("/tag/birds/").status(200);
    blog.stored("/post-02/").has("/tag/birds/");
    let id = editor.get("tags/slug/birds/")["tags"][0]["id"].as_str().unwrap().to_owned();
    editor.send("DELETE", &format!("tags/{id}/"), &json!({}));
    blog.reader().get("/tag/birds/").status(404);
    blog.reader().get("/post-02/").status(200).lacks("/tag/birds/");
}

/// Uploaded redirects come before pages, before redirects, and before what was not there.
#[test]
fn uploaded_redirects_are_live_over_whatever_is_stored_and_gone_when_they_are_removed() {
    let blog = Blog::new();
    let reader = blog.reader();
    blog.stored("/post-01/").status(200);
    for _ in 0..3 {
        reader.get("/post-02").status(301).field("location", "/post-02/");
        reader.get("/not-there/").status(404);
    }
    let upload = |rules: Value| {
        blog.editor().upload("redirects/upload/", "redirects", "redirects.json", "application/json", rules.to_string().as_bytes());
    };
    let rules: Vec<_> = ["/post-01/", "/post-02", "/not-there/"]
        .iter()
        .map(|from| json!({"from": format!("^{from}$"), "to": "/about/", "permanent": true}))
        .collect();
    upload(rules.into());
    for path in ["/post-01/", "/post-02", "/not-there/"] {
        for _ in 0..3 {
            reader.get(path).status(301).field("location", "/about/");
        }
    }
    upload(json!([]));
    reader.get("/post-01/").status(200).has("Words of post-01");
    reader.get("/post-02").status(301).field("location", "/post-02/");
    reader.get("/not-there/").status(404);
}

/// Ghost's own scheduler publishes by a request to the blog's address.
#[test]
fn a_scheduled_post_is_on_the_front_page_and_in_the_feed_when_its_time_has_come() {
    let blog = Blog::new();
    let reader = blog.reader();
    for path in ["/", "/rss/", "/sitemap-posts.xml"] {
        blog.stored(path).lacks("scheduled-one");
    }
    // As Ghost's clock has it: its scheduler wants some seconds.
    let at = blog.editor().client().get("/ghost/api/admin/site/").value("date").expect("a date").to_owned();
    let id = blog.editor().write(&json!({
        "title": "Title of scheduled-one", "slug": "scheduled-one", "html": "<p>Words of scheduled-one.</p>",
        "status": "scheduled", "published_at": seconds_after(&at, 7),
    }));
    reader.get("/scheduled-one/").status(404);
    let published = || blog.editor_past_seawall().get(&format!("posts/{id}/?fields=id,status"))["posts"][0]["status"] == "published";
    until("the post is published", published);
    // Ghost's answer to its own request may still be on its way.
    until("the post is there", || reader.get("/scheduled-one/").status == 200);
    for path in ["/", "/rss/", "/sitemap-posts.xml"] {
        reader.get(path).status(200).has("scheduled-one");
    }
    let call = blog.tap.all().into_iter().find(|seen| seen.method == "PUT" && seen.target.contains("/schedules/"));
    assert!(call.is_some(), "Ghost publishes by a request to the blog's address");
}

/// Returns a time that is so many seconds after a `Date`, as Ghost wants it.
fn seconds_after(date: &str, seconds: u64) -> String {
    let date =
        std::process::Command::new("date").args(["-u", "-d", &format!("{date} + {seconds} seconds"), "+%Y-%m-%dT%H:%M:%S.000Z"]).output();
    String::from_utf8(date.expect("date").stdout).expect("text").trim().to_owned()
}

/// The preview of a draft is for who has its address, and is as new as the draft.
#[test]
fn a_preview_shows_the_draft_as_it_is_now() {
    let blog = Blog::new();
    let preview = format!("/p/{}/", FACTS["draft"]["uuid"].as_str().unwrap());
    let id = FACTS["draft"]["id"].as_str().unwrap();
    for n in 0..3 {
        blog.editor().edit(id, &json!({"html": format!("<p>Draft number {n}.</p>")}));
        for _ in 0..2 {
            let seen = blog.reader().get(&preview).status(200).has(&format!("Draft number {n}."));
            assert!(!seen.is_hit(), "{seen}");
        }
    }
}

#[test]
fn a_page_that_was_not_there_is_there_when_it_is_published_however_often_it_was_asked_for() {
    let blog = Blog::new();
    for n in 0..5 {
        let path = format!("/late-{n}/");
        for _ in 0..3 {
            blog.reader().get(&path).status(404);
        }
        blog.editor().publish(&format!("late-{n}"), &format!("Late words {n}."));
        blog.reader().get(&path).status(200).has(&format!("Late words {n}."));
    }
}

/// Edits a post so many times while readers read: each edit is seen by the next request.
fn edits_under_load(blog: &Blog, edits: usize, readers: usize) {
    let editor = blog.editor();
    let id = editor.publish("busy", "Busy words 0.");
    let is_page = |answer: &Answer| assert!(matches!(answer.status, 200 | 404), "{answer}");
    while_a_crowd_reads(&blog.reader(), readers, &["/busy/", "/", "/rss/", "/post-01/"], is_page, || {
        for n in 1..=edits {
            let reader = blog.reader();
            editor.edit(&id, &json!({"title": format!("Busy title {n}"), "html": format!("<p>Busy words {n}.</p>")}));
            reader.get("/busy/").status(200).has(&format!("Busy words {n}.<"));
            reader.get("/").status(200).has(&format!("Busy title {n}<"));
            reader.get("/rss/").status(200).has(&format!("Busy words {n}.<"));
            if n % 10 == 0 {
                editor.edit(&id, &json!({"status": "draft"}));
                reader.get("/busy/").status(404);
                reader.get("/").status(200).lacks("Busy title");
                editor.edit(&id, &json!({"status": "published"}));
                reader.get("/busy/").status(200);
                reader.get("/").status(200).has("Busy title");
            }
        }
    });
}

#[test]
fn ten_edits_in_a_row_under_load_are_each_seen_by_the_next_request() {
    edits_under_load(&Blog::new(), 10, 4);
}

#[test]
fn a_hundred_edits_in_a_row_under_load_are_each_seen_by_the_next_request() {
    if long_tests_run() {
        edits_under_load(&Blog::new(), 100, 32);
    }
}

/// A hundred changes of every kind, each followed by the request that must show it.
#[test]
fn a_hundred_changes_of_every_kind_under_load_are_each_seen_by_the_next_request() {
    if !long_tests_run() {
        return;
    }
    let blog = Blog::new();
    let paths = ["/", "/rss/", "/post-01/", "/tag/tides/", "/author/ada/", "/post-09/", "/sitemap.xml", "/about/"];
    while_a_crowd_reads(&blog.reader(), 16, &paths, |_| {}, || every_kind(&blog));
}

fn every_kind(blog: &Blog) {
    let (editor, reader) = (blog.editor(), blog.reader());
    let ada = editor.get("users/slug/ada/")["users"][0]["id"].as_str().unwrap().to_owned();
    let tag = editor.get("tags/slug/tides/")["tags"][0]["id"].as_str().unwrap().to_owned();
    for n in 0..13 {
        let slug = format!("round-{n}");
        // Eight kinds, thirteen times.
        let id = editor.publish(&slug, "Words.");
        reader.get("/").has(&format!("Title of {slug}<"));
        editor.edit(&id, &json!({"slug": format!("moved-{n}")}));
        reader.get(&format!("/moved-{n}/")).status(200);
        assert!(reader.get(&format!("/{slug}/")).status != 200, "{slug}");
        editor.send("PUT", &format!("users/{ada}/"), &json!({"users": [{"name": format!("Ada the {n}th")}]}));
        reader.get("/author/ada/").has(&format!("Ada the {n}th"));
        let updated_at = editor.get(&format!("tags/{tag}/"))["tags"][0]["updated_at"].clone();
        editor.send("PUT", &format!("tags/{tag}/"), &json!({"tags": [{"name": format!("Tide {n}."), "updated_at": updated_at}]}));
        reader.get("/tag/tides/").has(&format!("Tide {n}."));
        editor.set("navigation", &json!([{"label": format!("Way {n}."), "url": "/"}]).to_string().into());
        reader.get("/about/").has(&format!("Way {n}."));
        editor.set("description", &format!("Description {n}.").into());
        reader.get("/rss/").has(&format!("Description {n}."));
        let rules = json!([{"from": "^/hop/$", "to": format!("/to-{n}/"), "permanent": true}]);
        editor.upload("redirects/upload/", "redirects", "redirects.json", "application/json", rules.to_string().as_bytes());
        reader.get("/hop/").status(301).field("location", &format!("/to-{n}/"));
        editor.delete(&id);
        reader.get(&format!("/moved-{n}/")).status(404);
        reader.get("/").lacks(&format!("Title of {slug}<"));
    }
}
