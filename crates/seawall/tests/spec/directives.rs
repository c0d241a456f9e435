//! Cache-Control, cookies and credentials: RFC 9111 §3, §3.5, §5.2; RFC 9110 §11.6.2. The first promise is kept here: nobody sees
//! another person's page.

use testkit::{Req, get, not_modified, ok, secs};

use crate::site::{site, site_with};

/// §5.2.2.5, §5.2.2.7, and Set-Cookie: what is never stored.
#[tokio::test]
async fn what_the_origin_forbids_is_not_stored() {
    let (origin, site) = site_with("[cache]\nhold = \"60s\"").await;
    let rows: &[(&str, &[(&str, &str)])] = &[
        ("/no-store", &[("cache-control", "no-store")]),
        ("/no-store-max-age", &[("cache-control", "max-age=60, no-store")]),
        ("/private", &[("cache-control", "private")]),
        ("/private-max-age", &[("cache-control", "private, max-age=60")]),
        ("/cookie", &[("set-cookie", "session=1")]),
        ("/cookie-public", &[("cache-control", "public, max-age=60"), ("set-cookie", "session=1")]),
    ];
    for (target, fields) in rows {
        origin.on(get(target)).reply(fields.iter().fold(ok("text"), |reply, (name, value)| reply.field(name, *value)));
        for _ in 0..2 {
            let answer = site.get(target).await.body("text").no_cache_status("hit; stored");
            assert_eq!(answer.fields.has("set-cookie"), target.starts_with("/cookie"), "{target}");
        }
        assert_eq!(origin.count(target), 2, "{target}");
    }
}

/// TryGhost/Ghost#27942: a cookie is handed to the one who is meant, and the page for all others comes without.
#[tokio::test]
async fn a_cookie_is_never_replayed() {
    let (origin, site) = site().await;
    let page = || ok("text").field("cache-control", "public, max-age=60");
    origin.on(get("/")).reply(page());
    origin.on(get("/").field("cookie", "member=1")).reply(page().field("set-cookie", "member=; Max-Age=0"));
    site.request(Req::get("/").field("cookie", "member=1")).await.field("set-cookie", "member=; Max-Age=0");
    site.get("/").await.no_field("set-cookie").cache_status("fwd=uri-miss; stored");
    site.get("/").await.no_field("set-cookie").cache_status("hit");
}

/// Without a lifetime from the origin, the answer to a cookie is for its owner alone, also under a hold.
#[tokio::test]
async fn nobody_sees_another_persons_page() {
    let (origin, site) = site_with("[cache]\nhold = \"60s\"").await;
    origin.on(get("/account")).reply_with(|seen| ok(seen.field("cookie").unwrap_or_else(|| "a stranger".to_owned())));
    let of = |person: &str| Req::get("/account").field("cookie", format!("session={person}"));
    for person in ["anna", "bert", "anna"] {
        site.request(of(person)).await.body(format!("session={person}")).no_cache_status("hit; stored");
    }
    site.get("/account").await.body("a stranger").cache_status("stored");
    site.get("/account").await.body("a stranger").cache_status("hit");
    // The stored page of strangers is not for members either.
    site.request(of("anna")).await.body("session=anna").cache_status("fwd=bypass");
    site.get("/account").await.body("a stranger").cache_status("hit");
}

/// With `cacheMembersContent`, Ghost calls the page of a paying member public, and names the tier that it is for. A Ghost that was away when it was
/// asked what it is, is a server like any other for a while.
#[tokio::test]
async fn a_member_of_a_ghost_that_is_not_recognised_yet_leaves_nothing_to_strangers() {
    const PAID: &str = "ghost-members-ssr=ann%40blog.example; ghost-members-ssr.sig=x; ghost-access=1:2";
    for (settings, member, has_tier) in [
        ("", PAID, true),
        ("", PAID, false),
        ("", "theme=dark; ghost-members-ssr=ann", false),
        ("", "members-ssr=ann", false),
        ("", "ghost-admin-api-session=x", false),
        ("[cache]\nhold = \"60s\"", PAID, false),
        // What the cookie's name does not say, the answer does.
        ("", "session=1", true),
    ] {
        let (origin, site) = site_with(settings).await;
        let public = |text: &'static str| ok(text).field("cache-control", "public, max-age=600");
        origin.on(get("/paid/")).reply(public("the beginning"));
        let whole = public("all of it");
        let whole = if has_tier { whole.field("x-member-cache-tier", "6a5e8f1d2b3c4d5e6f708192") } else { whole };
        origin.on(get("/paid/").field("cookie", member)).reply(whole);
        let of_member = || Req::get("/paid/").field("cookie", member);
        site.request(of_member()).await.body("all of it").no_cache_status("stored");
        site.request(of_member()).await.body("all of it").no_cache_status("hit");
        site.get("/paid/").await.body("the beginning").cache_status("stored");
        site.get("/paid/").await.body("the beginning").cache_status("hit");
    }
}

/// RFC 9111 §7.3 leaves cookies to the origin: with an explicit lifetime it has said that the page is the same for all.
#[tokio::test]
async fn an_explicit_lifetime_is_for_requests_with_cookies_too() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    site.request(Req::get("/post").field("cookie", "session=1")).await.cache_status("stored");
    site.request(Req::get("/post").field("cookie", "session=2")).await.cache_status("hit");
    site.get("/post").await.cache_status("hit");
}

/// Cookies of analytics make nobody a person; those named in the settings neither.
#[tokio::test]
async fn cookies_that_mean_nothing_do_not_matter() {
    let (origin, site) = site_with("[cache]\nhold = \"60s\"\nignore_cookies = [\"theme\"]").await;
    origin.on(get("/post")).reply(ok("text"));
    site.get("/post").await.cache_status("stored");
    site.request(Req::get("/post").field("cookie", "_ga=GA1.2.3; theme=dark")).await.cache_status("hit");
    site.request(Req::get("/post").field("cookie", "_ga=GA1.2.3; session=1")).await.cache_status("fwd=bypass");
}

/// §3.5: an answer to credentials is shared only with `public`, `s-maxage` or `must-revalidate`.
#[tokio::test]
async fn credentials_need_the_origins_explicit_word() {
    let (origin, site) = site().await;
    let secret = |target: &str| Req::get(target).field("authorization", "Basic YTpi");
    for (target, cache_control, shared) in [
        ("/plain", "max-age=60", false),
        ("/public", "public, max-age=60", true),
        ("/s-maxage", "s-maxage=60", true),
        ("/must-revalidate", "max-age=60, must-revalidate", true),
    ] {
        origin.on(get(target)).reply(ok("text").field("cache-control", cache_control));
        site.request(secret(target)).await.body("text");
        let answer = site.request(secret(target)).await.body("text");
        if shared {
            answer.cache_status("hit")
        } else {
            answer.no_cache_status("hit; stored")
        };
        assert_eq!(origin.count(target), if shared { 1 } else { 2 }, "{target}");
    }
}

/// §5.2.1: what a client may ask of a fresh stored response that is 20 seconds old and lives 60.
#[tokio::test]
async fn request_directives_are_obeyed() {
    let (origin, site) = site().await;
    let page = || ok("text").field("etag", "\"a\"").field("cache-control", "max-age=60");
    for (number, (directive, served_from_the_store)) in [
        ("no-cache", false),
        ("max-age=0", false),
        ("max-age=19", false),
        ("max-age=20", true),
        ("max-age=100", true),
        ("min-fresh=41", false),
        ("min-fresh=40", true),
        ("max-stale=5", true),
        ("only-if-cached", true),
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("/{number}");
        origin.on(get(&target)).reply(page());
        site.get(&target).await.cache_status("stored");
        site.clock.advance(secs(20));
        let answer = site.request(Req::get(&target).field("cache-control", directive)).await.status(200).body("text");
        if served_from_the_store {
            answer.cache_status("hit")
        } else {
            answer.cache_status("fwd=request")
        };
        assert_eq!(origin.count(&target), if served_from_the_store { 1 } else { 2 }, "{directive}");
    }
}

/// §5.4: Pragma is what HTTP/1.0 clients have for no-cache.
#[tokio::test]
async fn pragma_no_cache_counts_where_there_is_no_cache_control() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("etag", "\"a\"").field("cache-control", "max-age=60"));
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(not_modified());
    site.get("/post").await;
    site.request(Req::get("/post").field("pragma", "no-cache")).await.body("text").cache_status("fwd-status=304");
    site.request(Req::get("/post").field("pragma", "no-cache").field("cache-control", "max-age=100")).await.cache_status("hit");
}

/// §5.2.1.2: a client may take what is stale by its own wish.
#[tokio::test]
async fn max_stale_takes_what_is_stale() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("etag", "\"a\"").field("cache-control", "max-age=10"));
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(not_modified().field("cache-control", "max-age=10"));
    site.get("/post").await;
    site.clock.advance(secs(15));
    site.request(Req::get("/post").field("cache-control", "max-stale=5")).await.status(200).body("text").cache_status("hit; ttl=-5");
}

/// §5.2.1.5: a client's `no-store` keeps its answer out of the store.
#[tokio::test]
async fn a_request_with_no_store_leaves_nothing() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    site.request(Req::get("/post").field("cache-control", "no-store")).await.no_cache_status("stored");
    site.get("/post").await.cache_status("fwd=uri-miss; stored");
}

/// §5.2.1.7: nothing is asked of the origin.
#[tokio::test]
async fn only_if_cached_is_504_when_nothing_is_stored() {
    let (origin, site) = site().await;
    site.request(Req::get("/post").field("cache-control", "only-if-cached")).await.status(504).cache_status("detail=only-if-cached");
    assert_eq!(origin.count("/post"), 0);
}

/// A site may decide that its clients have no say.
#[tokio::test]
async fn a_reload_button_does_not_reach_an_origin_that_is_shielded_from_it() {
    let (origin, site) = site_with("[cache]\nhonour_request_directives = false").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    site.get("/post").await;
    for directive in ["no-cache", "max-age=0", "no-store"] {
        site.request(Req::get("/post").field("cache-control", directive)).await.cache_status("hit");
    }
    assert_eq!(origin.count("/post"), 1);
}

/// TryGhost/Ghost#11578: a redirect to its own target, stored, would lock everybody out.
#[tokio::test]
async fn a_redirect_to_itself_is_not_stored() {
    let (origin, site) = site().await;
    let redirect = |to: &str| testkit::status(301).field("location", to).field("cache-control", "public, max-age=31536000");
    origin.on(get("/loop")).reply(redirect("https://blog.example/loop"));
    origin.on(get("/moved")).reply(redirect("/new"));
    for _ in 0..2 {
        site.get("/loop").await.status(301).no_cache_status("hit; stored");
    }
    site.get("/moved").await.status(301);
    site.get("/moved").await.status(301).field("location", "/new").cache_status("hit");
}

/// RFC 9110 §9.3.1: content in a GET has no meaning that a cache could know; it goes to the origin, and the answer to nobody else.
#[tokio::test]
async fn a_get_with_content_is_passed() {
    let (origin, site) = site().await;
    origin.on(get("/search")).reply_with(|seen| ok(seen.body.clone()).field("cache-control", "max-age=60"));
    for text in ["one", "two"] {
        let answer = site.request(Req::get("/search").body(text)).await.status(200).body(text);
        answer.cache_status("fwd=bypass; detail=content").no_cache_status("stored");
    }
    site.get("/search").await.body("").cache_status("fwd=uri-miss");
}

/// Promise 1: what is only stored to be validated must not come out for others when the origin is down.
#[tokio::test]
async fn an_answer_to_a_cookie_never_stands_in_for_others() {
    let (origin, site) = site().await;
    origin.on(get("/account")).reply(ok("alice").field("cache-control", "max-age=0").field("etag", "\"alice\""));
    site.request(Req::get("/account").field("cookie", "session=alice")).await.status(200).body("alice");

    origin.kill();
    site.request(Req::get("/account").field("cookie", "session=bob")).await.status(502);
    site.get("/account").await.status(502);
}

/// A hold is for those who send no cookies, and one who does send them takes nothing from the others.
#[tokio::test]
async fn a_cookie_does_not_undo_a_hold() {
    let (origin, site) = site_with("[cache]\nhold = \"60s\"\n").await;
    origin.on(get("/post")).reply(ok("page").field("cache-control", "public, max-age=0").field("etag", "\"a\""));
    site.get("/post").await.status(200).cache_status("stored");
    site.request(Req::get("/post").field("cookie", "session=alice")).await.status(200).body("page");
    site.get("/post").await.status(200).cache_status("hit");
    assert_eq!(origin.count("/post"), 2);
}
