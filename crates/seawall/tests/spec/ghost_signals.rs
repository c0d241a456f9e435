//! A Ghost says what has changed, and the next reader sees it: what was purged is validated before anybody sees it, the signals in its
//! answers, and what its answers end by themselves.

use store::{Hardness, PurgeTarget};
use testkit::{Gate, Origin, Reply, Req, get, not_modified, ok, post, put, secs, status};

use crate::site::{HOST, Site, site_with};

/// A Ghost. The proof that a page is the same for two visitors would ask for each page twice, and is not the subject here.
const GHOST: &str = "kind = \"ghost\"\n[cache]\ntwo_visitor_proof = false\n[refill]\nconcurrency = 0\n";

/// Returns what Ghost says with each of its public pages.
fn page(text: &'static str) -> Reply {
    ok(text)
        .field("cache-control", "public, max-age=0")
        .field("content-type", "text/html; charset=utf-8")
        .field("etag", format!("\"{text}\""))
}

async fn ghost() -> (Origin, Site) {
    site_with(GHOST).await
}

/// Returns a Ghost whose readers are under one host.
fn ghost_with_host() -> (Origin, Site) {
    let origin = Origin::start();
    let site = Site::start(&format!(
        "[cache]\ntwo_visitor_proof = false\n[refill]\nconcurrency = 0\n\
         [[site]]\nhosts = [\"{HOST}\"]\nsource = \"{}\"\nkind = \"ghost\"\n",
        origin.url()
    ));
    (origin, site)
}

fn url(path: &str) -> PurgeTarget {
    PurgeTarget::Url { site: 0, url: format!("{HOST}{path}").into_bytes() }
}

/// The reader after an edit waits for the origin, whatever the page's lifetime and its windows say.
#[tokio::test]
async fn what_was_purged_softly_is_validated_before_anybody_sees_it() {
    // Within its hold of a day, and a day after it, when it may be shown while it is refreshed.
    for age in [0, 30 * 3600] {
        let (origin, site) = ghost().await;
        origin.on(get("/post/")).reply(page("old"));
        site.get("/post/").await.body("old");
        site.clock.advance(secs(age));
        origin.on(get("/post/")).reply(page("new"));
        site.purge(&url("/post/"), Hardness::Soft);
        site.get("/post/").await.status(200).body("new").cache_status("fwd=stale; fwd-status=200");
        site.get("/post/").await.body("new").x_cache("HIT");
    }
}

/// RFC 9111 §4.3: an origin that has nothing new says so in a few bytes.
#[tokio::test]
async fn what_was_purged_softly_and_has_not_changed_is_confirmed() {
    let (origin, site) = ghost().await;
    origin.on(get("/post/")).reply(page("same"));
    site.get("/post/").await.body("same");
    origin.on(get("/post/").field("if-none-match", "\"same\"")).reply(not_modified().field("etag", "\"same\""));
    site.purge(&url("/post/"), Hardness::Soft);
    site.get("/post/").await.status(200).body("same").cache_status("fwd=stale; fwd-status=304");
    site.get("/post/").await.body("same").x_cache("HIT");
}

/// Without a purge, a page past its hold is still shown at once, and refreshed behind its reader.
#[tokio::test]
async fn what_is_merely_old_is_shown_while_it_is_refreshed() {
    let (origin, site) = ghost().await;
    origin.on(get("/post/")).reply(page("old"));
    site.get("/post/").await.body("old");
    site.clock.advance(secs(25 * 3600));
    let gate = Gate::new();
    origin.on(get("/post/")).reply(page("new").gate(&gate));
    site.get("/post/").await.body("old").x_cache("UPDATING");
    gate.open();
}

/// An origin that does not answer, or answers with an error, is no reason to show nothing.
#[tokio::test]
async fn what_was_purged_softly_stands_in_for_an_origin_that_fails() {
    let (origin, site) = site_with(&format!("{GHOST}[origin]\ncollapse_wait = \"100ms\"\n")).await;
    for path in ["/refused/", "/error/", "/hangs/"] {
        origin.on(get(path)).reply(page("old"));
        site.get(path).await.body("old");
    }
    site.purge(&PurgeTarget::All, Hardness::Soft);
    origin.on(get("/error/")).reply(status(500));
    site.get("/error/").await.status(200).body("old").x_cache("STALE");
    let never = Gate::new();
    origin.on(get("/hangs/")).reply(page("new").gate(&never));
    site.get("/hangs/").await.status(200).body("old").x_cache("STALE");
    // Whoever comes next need not wait for the same.
    let asked = origin.count("/hangs/");
    site.get("/hangs/").await.status(200).body("old").x_cache("STALE");
    assert!(origin.count("/hangs/") <= asked + 1);
    origin.kill();
    site.get("/refused/").await.status(200).body("old").x_cache("STALE");
    never.open();
}

/// What failed before an edit says nothing about the page after it: readers wait for the origin again.
#[tokio::test]
async fn trouble_from_before_an_edit_keeps_no_page_old_after_it() {
    let (origin, site) = site_with(&format!("{GHOST}[origin]\ncollapse_wait = \"100ms\"\n")).await;
    for path in ["/error/", "/hangs/", "/refused/"] {
        origin.on(get(path)).reply(page("old"));
        site.get(path).await.body("old");
    }
    site.purge(&PurgeTarget::All, Hardness::Soft);
    let never = Gate::new();
    origin.on(get("/error/")).reply(status(500));
    origin.on(get("/hangs/")).reply(page("older").gate(&never));
    site.get("/error/").await.body("old").x_cache("STALE");
    site.get("/hangs/").await.body("old").x_cache("STALE");
    origin.kill();
    site.get("/refused/").await.body("old").x_cache("STALE");
    origin.revive();
    for path in ["/error/", "/hangs/", "/refused/"] {
        origin.on(get(path)).reply(page("new"));
    }
    // The edit.
    site.purge(&PurgeTarget::All, Hardness::Soft);
    for path in ["/error/", "/hangs/", "/refused/"] {
        site.get(path).await.status(200).body("new");
        site.get(path).await.body("new").x_cache("HIT");
    }
    never.open();
}

/// Returns an editor's write, which Ghost answers with this field.
fn edited(path: &str, signal: &str) -> (testkit::Matcher, Reply) {
    (put(path), ok("{}").field("content-type", "application/json").field("x-cache-invalidate", signal))
}

/// Waits until something holds.
async fn until(holds: impl AsyncFn() -> bool) {
    for _ in 0..5_000 {
        if holds().await {
            return;
        }
    }
    panic!("waited in vain");
}

async fn edit(origin: &Origin, site: &Site, signal: &str) {
    let path = "/ghost/api/admin/posts/1/";
    let (write, reply) = edited(path, signal);
    origin.on(write).reply(reply);
    site.request(Req::new("PUT", path).body("{}")).await.status(200).no_field("x-cache-invalidate");
}

async fn stored(origin: &Origin, site: &Site, paths: &[&str]) {
    for &path in paths {
        origin.on(get(path)).reply(page("old"));
        site.get(path).await.body("old");
        site.get(path).await.x_cache("HIT");
        origin.on(get(path)).reply(page("new"));
    }
}

/// Ghost says `/*` for whatever readers can see of an edit: the next request shows it.
#[tokio::test]
async fn what_an_editor_publishes_is_seen_by_the_next_request() {
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/", "/post/", "/tag/a/", "/robots.txt"]).await;
    edit(&origin, &site, "/*").await;
    for path in ["/", "/post/", "/tag/a/", "/robots.txt"] {
        site.get(path).await.body("new");
        site.get(path).await.body("new").x_cache("HIT");
    }
}

/// A post for members is not shown to others, not even when Ghost is away: no form of its page, and nothing that has its text in it. All else is.
#[tokio::test]
async fn a_post_that_is_for_members_now_is_gone_although_ghost_is_away() {
    let (origin, site) = ghost().await;
    let of_post =
        ["/post/", "/post.md", "/ghost/api/content/posts/slug/post/?key=0123456789abcdef", "/llms-full.txt", "/rss/", "/tag/news/rss/"];
    let others = ["/", "/another/", "/post-2/", "/tag/news/"];
    stored(&origin, &site, &of_post).await;
    stored(&origin, &site, &others).await;
    // The editor uses another name of the site than its readers.
    let path = "/ghost/api/admin/posts/1/";
    let answer = format!(
        r#"{{"posts":[{{"status":"published","visibility":"paid","url":"http://{HOST}/post/","tags":[{{"url":"http://{HOST}/tag/news/"}}]}}]}}"#
    );
    origin.on(put(path)).reply(ok(answer).field("content-type", "application/json").field("x-cache-invalidate", "/*"));
    site.request(Req::new("PUT", path).field("host", "admin.example").body("{}")).await.status(200);
    origin.kill();
    for path in of_post {
        assert_eq!(site.get(path).await.code, 502, "{path}");
    }
    for path in others {
        site.get(path).await.status(200).body("old").x_cache("STALE");
    }
}

/// Nothing says where a post was that is a draft again, was deleted, or was one of many: the site decides how addresses are made.
#[tokio::test]
async fn a_post_that_was_taken_back_is_gone_although_ghost_is_away() {
    let draft = format!(r#"{{"posts":[{{"status":"draft","url":"http://{HOST}/p/0f4ca3a5-6d5b-4e4c-9a53-2a3b1c0d9e8f/"}}]}}"#);
    for (method, path, status, answer) in [
        ("PUT", "/ghost/api/admin/posts/1/", 200, &*draft),
        ("DELETE", "/ghost/api/admin/posts/1/", 200, ""),
        ("PUT", "/ghost/api/admin/posts/bulk/", 200, r#"{"bulk":{"action":"unpublish"}}"#),
    ] {
        let (origin, site) = ghost().await;
        stored(&origin, &site, &["/2026/01/post/", "/"]).await;
        let reply = ok(answer.to_owned()).field("content-type", "application/json").field("x-cache-invalidate", "/*");
        origin.on(testkit::method(method, path)).reply(reply);
        site.request(Req::new(method, path).body("{}")).await.status(status);
        origin.kill();
        for path in ["/2026/01/post/", "/"] {
            assert_eq!(site.get(path).await.code, 502, "{method} {path}");
        }
    }
}

/// An answer that cannot be read may say that a post was taken back.
#[tokio::test]
async fn a_post_may_have_been_taken_back_where_the_answer_cannot_be_read() {
    let draft = |text: String| format!(r#"{{"posts":[{{"status":"draft","html":"{text}","url":"http://{HOST}/p/1/"}}]}}"#);
    for (what, reply) in [
        ("too long", ok(draft("a".repeat(3_000_000)))),
        ("coded although nobody asked for that", ok(&b"\x1f\x8b\x08\0\0\0\0\0"[..]).field("content-encoding", "gzip")),
        ("empty", status(204)),
        ("broken off", ok(draft(String::new())).break_off_after(50)),
    ] {
        let (origin, site) = ghost().await;
        stored(&origin, &site, &["/post/"]).await;
        origin.on(put("/ghost/api/admin/posts/1/")).reply(reply.field("x-cache-invalidate", "/*"));
        let mut editor = site.client().await;
        editor.send(Req::new("PUT", "/ghost/api/admin/posts/1/").field("connection", "close").body("{}")).await;
        editor.read_to_close().await;
        origin.kill();
        assert_eq!(site.get("/post/").await.code, 502, "{what}");
    }
}

/// Whether or not the editor stays to see the answer.
#[tokio::test]
async fn a_post_that_was_taken_back_by_an_editor_who_leaves_is_gone() {
    let draft = format!(r#"{{"posts":[{{"status":"draft","url":"http://{HOST}/p/1/"}}]}}"#);
    for bytes_before in [0, 20] {
        let (origin, site) = ghost().await;
        stored(&origin, &site, &["/post/", "/about/"]).await;
        let gate = Gate::new();
        let reply = ok(draft.clone()).field("content-type", "application/json").field("x-cache-invalidate", "/*");
        let reply = if bytes_before == 0 { reply.gate(&gate) } else { reply.gate_after(bytes_before, &gate) };
        origin.on(put("/ghost/api/admin/posts/1/")).reply(reply);
        let mut editor = site.client().await;
        editor.send(Req::new("PUT", "/ghost/api/admin/posts/1/").body("{}")).await;
        gate.arrived().await;
        drop(editor);
        gate.open();
        until(async || site.get("/about/").await.text() == "new").await;
        origin.kill();
        until(async || site.get("/post/").await.code == 502).await;
    }
}

/// A returning reader's copy is as old as ours was.
#[tokio::test]
async fn a_validator_of_before_an_edit_gets_no_304() {
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/post/"]).await;
    site.request(Req::get("/post/").field("if-none-match", "\"old\"")).await.status(304);
    edit(&origin, &site, "/*").await;
    site.request(Req::get("/post/").field("if-none-match", "\"old\"")).await.status(200).body("new");
}

/// The purge comes before the head of Ghost's answer does.
#[tokio::test]
async fn the_change_is_there_before_the_editor_is_told() {
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/post/"]).await;
    let gate = Gate::new();
    let (write, reply) = edited("/ghost/api/admin/posts/1/", "/*");
    origin.on(write).reply(reply.gate_after(1, &gate));
    let mut editor = site.client().await;
    editor.send(Req::new("PUT", "/ghost/api/admin/posts/1/").body("{}")).await;
    gate.arrived().await;
    // The head is on its way to the editor, and the rest is still in Ghost.
    site.get("/post/").await.body("new");
    gate.open();
    editor.read_answer().await.status(200);
}

/// Ghost has published even if the editor's connection breaks before the answer is there.
#[tokio::test]
async fn an_editor_who_leaves_has_published_all_the_same() {
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/post/"]).await;
    let gate = Gate::new();
    let (write, reply) = edited("/ghost/api/admin/posts/1/", "/*");
    origin.on(write).reply(reply.gate(&gate));
    let mut editor = site.client().await;
    editor.send(Req::new("PUT", "/ghost/api/admin/posts/1/").body("{}")).await;
    gate.arrived().await;
    drop(editor);
    for _ in 0..3 {
        site.get("/post/").await.body("old");
    }
    gate.open();
    for _ in 0..5_000 {
        if site.get("/post/").await.text() == "new" {
            return;
        }
    }
    panic!("the old page is still there");
}

#[tokio::test]
async fn pages_that_are_named_are_purged_and_others_stay() {
    for (signal, purged) in [
        ("/post/", &["/post/"][..]),
        ("/post/?page=2, /tag/a/", &["/post/", "/tag/a/"]),
        (&format!("https://{HOST}/post/"), &["/post/"]),
        ("", &[]),
        ("/p/1234/, /p/1234/?member_status=anonymous", &[]),
        // Another site's, or nobody knows what: then everything.
        ("https://elsewhere.example/*", &["/", "/post/", "/tag/a/"]),
        ("/tag/*", &["/", "/post/", "/tag/a/"]),
        ("post", &["/", "/post/", "/tag/a/"]),
    ] {
        let (origin, site) = ghost_with_host();
        stored(&origin, &site, &["/", "/post/", "/tag/a/"]).await;
        edit(&origin, &site, signal).await;
        for path in ["/", "/post/", "/tag/a/"] {
            site.get(path).await.body(if purged.contains(&path) { "new" } else { "old" });
        }
    }
}

/// A site without hosts answers for any: a page that is named under one is read under another. Previews and comments are not pages.
#[tokio::test]
async fn a_page_that_is_named_on_a_site_with_any_host_is_everything() {
    for (signal, is_purged) in [
        ("/post/", true),
        ("https://elsewhere.example/post/", true),
        (&format!("https://{HOST}/post/"), true),
        ("/p/1234/", false),
        ("/api/members/comments/1/", false),
    ] {
        let (origin, site) = ghost().await;
        origin.on(get("/post/")).reply(page("old"));
        let read = || async { site.client().await.with_host("www.blog.example").request(Req::get("/post/")).await };
        read().await.body("old");
        origin.on(get("/post/")).reply(page("new"));
        edit(&origin, &site, signal).await;
        read().await.body(if is_purged { "new" } else { "old" });
    }
}

/// Ghost carried the write out, and nobody was told. An editor who is told of an error looks at the site next.
#[tokio::test]
async fn a_write_whose_answer_is_lost_may_have_changed_everything() {
    let path = "/ghost/api/admin/posts/1/";
    for lost in [
        testkit::raw(""),
        testkit::raw("HTTP/1.1 200 OK\r\nX-Cache-Inv"),
        testkit::raw("HTTP/1.1 200 OK\r\nX-Cache-Invalidate: /*\r\nbad field line\r\n\r\n"),
        ok("{}").field("x-cache-invalidate", "/*").field("x-big", "a".repeat(200_000)),
        // A proxy between says so.
        status(502),
        status(504),
    ] {
        let (origin, site) = ghost().await;
        stored(&origin, &site, &["/", "/post/"]).await;
        origin.on(put(path)).reply(lost);
        let write = || Req::new("PUT", path).field("cookie", "ghost-admin-api-session=1").body("{}");
        let code = site.request(write()).await.code;
        assert!([502, 504].contains(&code), "{code}");
        site.get("/post/").await.body("new");
        // Marked stale: the rest is there if Ghost has fallen over.
        origin.kill();
        site.get("/").await.body("old").x_cache("STALE");
    }
}

/// Nothing has changed if Ghost was not asked, or has said no; and a reader's writes are not an editor's.
#[tokio::test]
async fn a_write_that_never_reached_ghost_changes_nothing() {
    let path = "/ghost/api/admin/posts/1/";
    let write = || Req::new("PUT", path).body("{}");
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/post/"]).await;
    origin.on(put(path)).reply(testkit::raw(""));
    site.request(write()).await.status(502);
    origin.on(post("/members/api/x/")).reply(testkit::raw(""));
    site.request(Req::post("/members/api/x/").field("authorization", "Ghost 1")).await.status(502);
    for code in [401, 500, 503] {
        origin.on(put(path)).reply(status(code));
        site.request(write().field("authorization", "Ghost 1")).await.status(code);
    }
    site.get("/post/").await.body("old").x_cache("HIT");
    origin.kill();
    site.request(write().field("authorization", "Ghost 1")).await.status(503);
    origin.revive();
    site.get("/post/").await.body("old").x_cache("HIT");
}

/// Somebody who sends such writes all the time makes readers wait for a validation now and then, and the last write still counts.
#[tokio::test]
async fn writes_whose_answers_are_lost_purge_now_and_then() {
    let path = "/ghost/api/admin/posts/1/";
    let write = || Req::new("PUT", path).field("authorization", "Ghost 1").body("{}");
    let (origin, site) = ghost().await;
    origin.on(put(path)).reply(testkit::raw(""));
    stored(&origin, &site, &["/post/"]).await;
    site.request(write()).await.status(502);
    site.get("/post/").await.body("new");
    for _ in 0..5 {
        site.request(write()).await.status(502);
        site.get("/post/").await.body("new").x_cache("HIT");
    }

    let (origin, site) = ghost().await;
    origin.on(put(path)).reply(testkit::raw(""));
    site.request(write()).await.status(502);
    stored(&origin, &site, &["/post/"]).await;
    site.clock.advance(std::time::Duration::from_millis(9_999));
    site.request(write()).await.status(502);
    for _ in 0..5_000 {
        if site.get("/post/").await.text() == "new" {
            return;
        }
    }
    panic!("the old page is still there");
}

/// Ghost does not say what goes with a key of its API. Pages stay.
#[tokio::test]
async fn what_a_key_of_the_api_opened_ends_when_keys_change() {
    for path in ["/ghost/api/admin/integrations/1/api_key/2/refresh/", "/ghost/api/admin/integrations/1/", "/ghost/api/admin/api_keys/1/"] {
        let content = "/ghost/api/content/posts/?key=1";
        let (origin, site) = ghost().await;
        stored(&origin, &site, &["/post/", content]).await;
        origin.on(post(path)).reply(status(403));
        site.request(Req::post(path).body("{}")).await.status(403);
        site.get(content).await.body("old").x_cache("HIT");
        origin.on(post(path)).reply(status(200));
        site.request(Req::post(path).body("{}")).await.status(200);
        site.get("/post/").await.body("old").x_cache("HIT");
        origin.kill();
        site.get(content).await.status(502);
    }
}

/// What the whole site is told of survives an origin that is away; what is named is gone.
#[tokio::test]
async fn everything_is_purged_softly_and_a_page_hard() {
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/", "/post/"]).await;
    edit(&origin, &site, "/post/").await;
    edit(&origin, &site, "/*").await;
    origin.kill();
    site.get("/").await.status(200).body("old").x_cache("STALE");
    site.get("/post/").await.status(502);
}

/// The word is the origin's, in its answer to a write that it accepted.
#[tokio::test]
async fn nobody_else_can_purge_by_the_field() {
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/post/"]).await;
    // A client's, which Ghost does not even see.
    origin.on(post("/post/")).reply(ok("page"));
    origin.on(get("/other/")).reply(page("other"));
    site.request(Req::post("/post/").field("x-cache-invalidate", "/*")).await.status(200);
    site.request(Req::get("/other/").field("x-cache-invalidate", "/*")).await.status(200);
    for path in ["/post/", "/other/"] {
        assert_eq!(origin.last(path).field("x-cache-invalidate"), None);
    }
    // Of a write that was refused, and of a read.
    origin.on(put("/ghost/api/admin/posts/1/")).reply(status(403).field("x-cache-invalidate", "/*"));
    origin.on(get("/ghost/api/admin/posts/1/")).reply(ok("{}").field("x-cache-invalidate", "/*"));
    origin.on(get("/third/")).reply(page("third").field("x-cache-invalidate", "/*"));
    site.request(Req::new("PUT", "/ghost/api/admin/posts/1/")).await.status(403).no_field("x-cache-invalidate");
    site.get("/ghost/api/admin/posts/1/").await.status(200).no_field("x-cache-invalidate");
    site.get("/third/").await.no_field("x-cache-invalidate");
    site.get("/third/").await.x_cache("HIT").no_field("x-cache-invalidate");
    site.get("/post/").await.body("old").x_cache("HIT");
}

/// A stranger's write to a page keeps it no colder than a reader's GET would: Ghost itself says what has changed.
#[tokio::test]
async fn a_strangers_write_purges_nothing() {
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/", "/post/"]).await;
    origin.on(post("/")).reply(ok("page").field("location", "/post/"));
    site.request(Req::post("/")).await.status(200);
    site.get("/").await.body("old").x_cache("HIT");
    site.get("/post/").await.body("old").x_cache("HIT");
}

/// For another kind, the field is one like any other.
#[tokio::test]
async fn a_generic_server_says_nothing_by_the_field() {
    let (origin, site) = crate::site::site().await;
    origin.on(get("/post/")).reply(ok("old").field("cache-control", "max-age=600"));
    site.get("/post/").await.body("old");
    origin.on(put("/elsewhere")).reply(ok("{}").field("x-cache-invalidate", "/*"));
    site.request(Req::new("PUT", "/elsewhere")).await.field("x-cache-invalidate", "/*");
    site.get("/post/").await.body("old").x_cache("HIT");
}

/// A fetch begun before an edit is nobody's who comes after it: not while it lasts, not when it ends, not by a 304.
#[tokio::test]
async fn a_render_begun_before_an_edit_is_not_seen_after_it() {
    let (origin, site) = ghost().await;
    let gate = Gate::new();
    origin.on(get("/post/")).once().reply(page("old").gate(&gate));
    let mut early = site.client().await;
    early.send(Req::get("/post/")).await;
    gate.arrived().await;
    edit(&origin, &site, "/*").await;
    origin.on(get("/post/")).reply(page("new"));
    // Nobody waits for the old render.
    site.get("/post/").await.body("new");
    gate.open();
    early.read_answer().await.body("old");
    site.get("/post/").await.body("new").x_cache("HIT");
    // Nor does it come back when Ghost is away.
    edit(&origin, &site, "/*").await;
    origin.kill();
    site.get("/post/").await.body("new").x_cache("STALE");
}

/// Where nobody asks in between, what the old render brought is validated.
#[tokio::test]
async fn what_a_render_begun_before_an_edit_brings_is_validated() {
    let (origin, site) = ghost().await;
    let gate = Gate::new();
    origin.on(get("/post/")).once().reply(page("old").gate(&gate));
    let mut early = site.client().await;
    early.send(Req::get("/post/")).await;
    gate.arrived().await;
    edit(&origin, &site, "/*").await;
    gate.open();
    early.read_answer().await.body("old");
    origin.on(get("/post/")).reply(page("new"));
    site.get("/post/").await.body("new");
}

#[tokio::test]
async fn a_late_304_does_not_revive_the_page_of_before_the_edit() {
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/post/"]).await;
    site.purge(&url("/post/"), Hardness::Soft);
    let gate = Gate::new();
    origin.on(get("/post/").field("if-none-match", "\"old\"")).once().reply(not_modified().field("etag", "\"old\"").gate(&gate));
    let mut early = site.client().await;
    early.send(Req::get("/post/")).await;
    gate.arrived().await;
    edit(&origin, &site, "/*").await;
    gate.open();
    early.read_answer().await.body("old");
    site.get("/post/").await.body("new");
    site.get("/post/").await.body("new").x_cache("HIT");
}

/// A comment changes what is below `/members/`, on every host, and no page; a Ghost in a folder names the paths without it.
#[tokio::test]
async fn a_comment_purges_comments_and_no_page() {
    for base in ["", "/blog"] {
        let path = if base.is_empty() { String::new() } else { format!("[ghost]\npath = \"{base}\"\n") };
        let (origin, site) = site_with(&format!("{GHOST}{path}")).await;
        let post_path = format!("{base}/post/");
        let counts = format!("{base}/members/api/comments/counts/");
        stored(&origin, &site, &[&post_path, &counts]).await;
        let elsewhere = || async { site.client().await.with_host("www.blog.example").request(Req::get(&counts)).await };
        origin.on(get(&counts)).once().reply(page("old"));
        elsewhere().await.body("old");
        elsewhere().await.body("old").x_cache("HIT");
        let write = format!("{base}/members/api/comments/");
        let signal = "/api/members/comments/post/1/, /api/members/comments/2/";
        origin.on(post(&write)).reply(status(201).field("x-cache-invalidate", signal));
        site.request(Req::post(&write).body("{}")).await.status(201).no_field("x-cache-invalidate");
        site.get(&post_path).await.body("old").x_cache("HIT");
        // Gone, and not merely stale: what a reader has taken back does not come back.
        site.get(&counts).await.body("new").cache_status("fwd=uri-miss");
        origin.kill();
        elsewhere().await.status(502);
    }
}

/// Returns a Ghost with a password, as it answers whoever does not have it.
fn private(target: &str) -> Reply {
    status(302).field("location", format!("/private/?r={target}"))
}

/// From the first password page on, nothing of the public days comes back, for any path, and not when Ghost goes away.
#[tokio::test]
async fn a_blog_that_became_private_loses_all_that_was_public() {
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/", "/post/", "/robots.txt", "/members/api/comments/counts/"]).await;
    // Somebody changed it past Seawall; a page that is not stored is the first that shows it.
    origin.on(get("/")).reply(private("%2F"));
    origin.on(get("/other/")).reply(private("%2Fother%2F"));
    site.get("/other/").await.status(302);
    origin.kill();
    for path in ["/", "/post/", "/robots.txt", "/members/api/comments/counts/"] {
        site.get(path).await.status(502);
    }
}

/// Each redirect of a private blog does not purge anew; and what a client can bring about on a public one purges nothing.
#[tokio::test]
async fn a_private_blog_is_purged_once() {
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/content/images/a.png"]).await;
    origin.on(get("/private?r=x")).reply(status(301).field("location", "/private/?r=x"));
    origin.on(get("/private")).reply(status(301).field("location", "/private/"));
    site.get("/private?r=x").await.status(301);
    site.get("/content/images/a.png").await.body("old").x_cache("HIT");
    let count = || {
        let metrics = site.server.console().metrics();
        let metric = metrics.into_iter().find(|metric| metric.name == "seawall_purges_total").expect("a metric");
        metric.samples.iter().map(|sample| format!("{:?}", sample.value)).collect::<Vec<_>>()
    };
    let before = count();
    site.purge(&url("/nothing/"), Hardness::Soft);
    assert_ne!(count(), before);
    let mut after_first = None;
    origin.on(get("/")).reply(private("%2F"));
    for path in ["/a/", "/b/", "/c/"] {
        origin.on(get(path)).reply(private(path));
        site.get(path).await.status(302);
        assert_eq!(*after_first.get_or_insert_with(count), count(), "one purge");
    }
    // Public again, and private again: what was public in between goes as well.
    stored(&origin, &site, &["/post/"]).await;
    origin.on(get("/d/")).reply(private("/d/"));
    site.get("/d/").await.status(302);
    origin.kill();
    site.get("/post/").await.status(502);
}

/// Ghost's routes and redirects lead to where their author wants: the front page says whether the blog has a password.
#[tokio::test]
async fn a_redirect_that_looks_like_a_password_purges_nothing_on_a_public_blog() {
    for location in ["/private/club/", "/private/?r=x"] {
        let (origin, site) = ghost().await;
        stored(&origin, &site, &["/post/"]).await;
        origin.on(get("/")).reply(page("front"));
        origin.on(get("/club/")).reply(status(302).field("location", location).field("cache-control", "no-store"));
        for _ in 0..5 {
            site.get("/club/").await.status(302).field("location", location);
        }
        assert!(origin.count("/") <= 1, "{location}");
        site.get("/post/").await.body("old").x_cache("HIT");
        // A front page that cannot be had says nothing.
        site.clock.advance(secs(5));
        origin.on(get("/")).reply(status(500));
        site.get("/club/").await.status(302);
        site.get("/post/").await.body("old").x_cache("HIT");
    }
}

/// The write that makes a blog private looks like any other: Ghost is asked before its answer goes out.
#[tokio::test]
async fn settings_that_make_a_blog_private_purge_before_anybody_asks() {
    let settings = "/ghost/api/admin/settings/";
    for (front_page, is_gone) in [(page("new"), false), (private("%2F"), true), (status(500), true)] {
        let (origin, site) = ghost().await;
        stored(&origin, &site, &["/post/"]).await;
        origin.on(get("/")).reply(front_page);
        let (write, reply) = edited(settings, "/*");
        origin.on(write).reply(reply);
        let editor = Req::new("PUT", settings).field("cookie", "ghost-admin-api-session=1").field("authorization", "Ghost 1").body("{}");
        site.request(editor).await.status(200);
        // Asked as anybody would.
        let asked = origin.last("/");
        assert_eq!((asked.field("cookie"), asked.field("authorization")), (None, None));
        assert_eq!((origin.count("/"), asked.field("host").as_deref()), (1, Some(HOST)));
        origin.kill();
        site.get("/post/").await.status(if is_gone { 502 } else { 200 });
    }
}

/// Ghost hangs up right after the write: nobody can say that it is still public.
#[tokio::test]
async fn settings_after_which_ghost_goes_away_purge_hard() {
    let (origin, site) = ghost().await;
    stored(&origin, &site, &["/post/"]).await;
    origin.on(get("/")).reply(testkit::raw(""));
    let (write, reply) = edited("/ghost/api/admin/settings/", "/*");
    origin.on(write).reply(reply);
    site.request(Req::new("PUT", "/ghost/api/admin/settings/").body("{}")).await.status(200);
    origin.kill();
    site.get("/post/").await.status(502);
}

/// Ghost's scheduler asks again after a 503, and gives a post up after anything else. An editor who writes while Ghost cannot be reached is told
/// to come again as well: nothing was asked yet.
#[tokio::test]
async fn the_scheduler_is_told_to_come_again() {
    let (origin, site) = ghost().await;
    let schedule = || Req::new("PUT", "/ghost/api/admin/schedules/posts/1/?token=t").body("{}");
    for code in [502, 504] {
        origin.on(put("/ghost/api/admin/schedules/posts/1/").any_query()).reply(status(code));
        site.request(schedule()).await.status(503);
    }
    origin.on(put("/ghost/api/admin/schedules/posts/1/").any_query()).reply(testkit::raw(""));
    site.request(schedule()).await.status(503);
    origin.kill();
    site.request(schedule()).await.status(503);
    site.request(Req::new("PUT", "/ghost/api/admin/posts/1/").body("{}")).await.status(503).body_contains("does not answer right now");
}

/// An operator sees that signals arrive, and what the last one did.
#[tokio::test]
async fn the_status_says_what_was_published_last() {
    let (origin, site) = ghost().await;
    origin.on(get("/")).reply(page("new"));
    let signals = || site.server.console().health().sites[0].signals.clone().expect("a Ghost tells of changes");
    assert_eq!((signals().in_path, signals().webhook, signals().webhook_seconds_ago), (None, None, None));
    edit(&origin, &site, "/*").await;
    site.clock.advance(secs(62));
    let told = signals().in_path.expect("it was purged");
    assert_eq!((told.seconds_ago, told.hard), (62, false));
    assert!(told.covered.contains("every page of the site"), "{told:?}");
    // A comment is not a publication.
    edit(&origin, &site, "/api/members/comments/1/").await;
    assert_eq!(signals().in_path.as_ref(), Some(&told));
    site.request(Req::post("/.seawall/ghost").body("{\"member\":{\"current\":{},\"previous\":{}}}")).await.status(200);
    assert_eq!((signals().webhook, signals().webhook_seconds_ago), (None, Some(0)));
    site.request(Req::post("/.seawall/ghost").body("{}")).await.status(200);
    assert_eq!(signals().webhook.expect("it was purged").seconds_ago, 0);

    let (_origin, site) = crate::site::site().await;
    assert_eq!(site.server.console().health().sites[0].signals, None);
}
