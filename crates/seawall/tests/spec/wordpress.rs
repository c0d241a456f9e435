//! The kind `wordpress`, before an origin that answers as WordPress 6.8.7 does: what it is asked, and who shares its answers.
//!
//! Which requests pass and what is kept is in `policy/tests/wordpress.rs`.

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use ::operator::explain;
use admin::Explanation;
use testkit::{Client, Origin, Reply, Req, exposition, get, head, ok, post, secs, status};

use crate::{
    operator::Operator,
    site::{HOST, Site, site_with},
};

/// The `Cache-Control` that WordPress gives to what is somebody's, and to a "not found" (`wp_get_nocache_headers`).
const NOBODY_ELSES: &str = "no-cache, must-revalidate, max-age=0, no-store, private";

/// Half of the life of a nonce, in seconds.
const TICK: u64 = 43_200;

async fn wordpress() -> (Origin, Site) {
    wordpress_with("").await
}

async fn wordpress_with(toml: &str) -> (Origin, Site) {
    site_with(&format!("kind = \"wordpress\"\n{toml}")).await
}

/// Returns a page of WordPress: it has neither a lifetime nor a validator.
fn page(text: impl Into<bytes::Bytes>) -> Reply {
    ok(text).field("content-type", "text/html; charset=UTF-8").field("link", "<http://blog.example/wp-json/>; rel=\"https://api.w.org/\"")
}

fn with(target: &str, cookie: &str) -> Req {
    Req::get(target).field("cookie", cookie)
}

fn explained(site: &Site, target: &str, fields: &[String]) -> Explanation {
    let command = explain::command(&format!("http://{HOST}{target}"), "GET", fields).expect("a command");
    explain::run(&Operator::of(site).client(), &command).expect("an explanation")
}

/// A plugin's page may depend on any cookie. What others get was made for nobody.
#[tokio::test]
async fn a_page_for_all_is_made_for_a_request_without_any_cookie() {
    let (origin, site) = wordpress().await;
    origin.on(get("/")).reply_with(|seen| page(format!("page for {}", seen.field("cookie").unwrap_or_else(|| "nobody".to_owned()))));
    for cookie in ["some_plugin=Ada; _ga=1", "some_plugin=Bob", "wordpress_test_cookie=WP%20Cookie%20check; wp-settings-1=a"] {
        site.request(with("/", cookie)).await.body("page for nobody");
    }
    site.get("/").await.body("page for nobody").cache_status("hit");
    assert_eq!(origin.count("/"), 1);
    for name in ["cookie", "user-agent", "accept-language"] {
        let said = origin.last("/").field(name);
        assert!(said.is_none_or(|said| said.starts_with("Seawall/")), "{name}");
    }
}

/// woocommerce#30329, woocommerce#8504: neither the shop's page nor its carts go to anybody else, and an empty cart keeps nobody from the cache.
#[tokio::test]
async fn two_carts_never_mix() {
    let (origin, site) = wordpress().await;
    for target in ["/shop/", "/cart/", "/winkelwagen/"] {
        origin.on(get(target)).reply_with(move |seen| {
            let cookie = seen.field("cookie").unwrap_or_default();
            let whose =
                cookie.split("wp_woocommerce_session_ab=").nth(1).map_or("nobody", |rest| rest.split(';').next().unwrap_or_default());
            let page = page(format!("{target}: the cart of {whose}"));
            // WooCommerce says so of its own pages, whatever language their names are in.
            if target == "/shop/" { page } else { page.field("cache-control", NOBODY_ELSES) }
        });
    }
    let cart = |who: &str| format!("woocommerce_items_in_cart=1; woocommerce_cart_hash=abc; wp_woocommerce_session_ab={who}");
    for _ in 0..2 {
        for target in ["/shop/", "/cart/", "/winkelwagen/"] {
            site.request(with(target, &cart("Ada"))).await.body(format!("{target}: the cart of Ada")).no_cache_status("stored");
            site.get(target).await.body(format!("{target}: the cart of nobody"));
            site.request(with(target, &cart("Bob"))).await.body(format!("{target}: the cart of Bob")).no_cache_status("stored");
        }
    }
    let empty = "woocommerce_items_in_cart=0; woocommerce_cart_hash=";
    site.request(with("/shop/", empty)).await.body("/shop/: the cart of nobody").cache_status("hit");
    // An action is nobody's page.
    origin.on(get("/shop/?add-to-cart=12")).reply(page("added").field("set-cookie", "woocommerce_items_in_cart=1"));
    for _ in 0..2 {
        site.get("/shop/?add-to-cart=12").await.body("added").has_field("set-cookie").cache_status("detail=woocommerce-action");
    }
}

/// WordPress sends a commenter to a link that shows what nobody has approved yet. It is nobody else's.
#[tokio::test]
async fn a_commenter_sees_the_comment_that_waits_and_nobody_else_does() {
    let (origin, site) = wordpress().await;
    let post_path = "/2025/06/rye-bread/";
    let pending = "/2025/06/rye-bread/?unapproved=7&moderation-hash=abc";
    origin.on(get(post_path)).reply(page("bread"));
    origin.on(get(pending)).reply(page("bread; your comment awaits moderation"));
    origin.on(get(post_path).field("cookie", "comment_author_ab=Ada")).reply(page("bread; Ada's comment awaits moderation"));
    let sent = status(302).field("location", format!("http://blog.example{pending}#comment-7")).field("cache-control", NOBODY_ELSES);
    origin.on(post("/wp-comments-post.php")).reply(sent.field("set-cookie", "comment_author_ab=Ada; path=/"));
    site.get(post_path).await.body("bread");
    site.request(Req::post("/wp-comments-post.php").body("comment=x")).await.status(302).has_field("set-cookie");
    for _ in 0..2 {
        site.get(pending).await.body("bread; your comment awaits moderation").cache_status("detail=wordpress-pending-comment");
        let answer = site.request(with(post_path, "comment_author_ab=Ada")).await.body("bread; Ada's comment awaits moderation");
        answer.cache_status("detail=wordpress-commenter").no_cache_status("stored");
        site.get(post_path).await.body("bread");
    }
}

/// Since 6.8 WordPress says that a post with a password is nobody else's; before, it says nothing.
#[tokio::test]
async fn who_has_the_password_of_a_post_alone_sees_it() {
    for is_said in [true, false] {
        let (origin, site) = wordpress().await;
        let said = |reply: Reply| if is_said { reply.field("cache-control", NOBODY_ELSES) } else { reply };
        origin.on(get("/secret/")).reply(said(page("enter the password")));
        origin.on(get("/secret/").field("cookie", "wp-postpass_ab=1")).reply(said(page("the secret")));
        for _ in 0..2 {
            site.request(with("/secret/", "wp-postpass_ab=1")).await.body("the secret").cache_status("detail=wordpress-post-password");
            site.get("/secret/").await.body("enter the password");
        }
        assert_eq!(origin.count("/secret/"), if is_said { 4 } else { 3 });
    }
}

#[tokio::test]
async fn an_editors_pages_and_previews_are_the_editors() {
    let (origin, site) = wordpress().await;
    let signed_in = "wordpress_logged_in_ab=mira%7C1; wp-settings-time-1=1";
    origin.on(get("/")).reply(page("page"));
    origin.on(get("/").field("cookie", signed_in)).reply(page("page with the admin bar of mira"));
    origin.on(get("/?p=89&preview=true")).reply(status(404).field("cache-control", NOBODY_ELSES));
    origin.on(get("/?p=89&preview=true").field("cookie", signed_in)).reply(page("a draft"));
    for _ in 0..2 {
        site.request(with("/", signed_in)).await.body("page with the admin bar of mira").cache_status("detail=wordpress-user-cookie");
        site.get("/").await.body("page");
        site.request(with("/?p=89&preview=true", signed_in)).await.body("a draft").cache_status("detail=wordpress-preview");
        site.get("/?p=89&preview=true").await.status(404).cache_status("detail=wordpress-preview");
    }
    assert_eq!(origin.requests().iter().filter(|seen| seen.target == "/" && seen.field("cookie").is_none()).count(), 1);
}

/// A crowd that searches the same costs one search, and a minute later it is a new one. A broken link costs a page each ten seconds.
#[tokio::test]
async fn searches_and_what_is_not_there_are_held_for_moments() {
    let (origin, site) = wordpress().await;
    origin.on(get("/?s=bread")).reply(page("three posts"));
    origin.on(get("/no-such-page/")).reply(status(404).body("nothing").field("cache-control", NOBODY_ELSES));
    for (target, hold) in [("/?s=bread", 30), ("/no-such-page/", 10)] {
        site.get(target).await.cache_status("fwd=uri-miss; stored");
        site.clock.advance(secs(hold - 1));
        site.get(target).await.cache_status("hit");
        assert_eq!(origin.count(target), 1);
    }
    site.clock.advance(secs(61));
    for target in ["/?s=bread", "/no-such-page/"] {
        site.get(target).await;
        assert_eq!(origin.count(target), 2, "{target}");
    }
    // A reader is told what WordPress says.
    site.get("/no-such-page/").await.field("cache-control", NOBODY_ELSES);
}

/// A nonce says who asks, and so does an application's password; a script of another site is answered by its name.
#[tokio::test]
async fn the_api_is_shared_among_those_who_are_not_signed_in() {
    let (origin, site) = wordpress().await;
    let posts = "/wp-json/wp/v2/posts";
    let json = |text: &'static str| ok(text).field("content-type", "application/json; charset=UTF-8").field("vary", "Origin");
    origin.on(get(posts)).reply(json("public"));
    origin.on(get(posts).field("x-wp-nonce", "3fc92f3572")).reply(json("drafts"));
    origin.on(get(posts).field("authorization", "Basic bWlyYQ==")).reply(json("drafts"));
    origin
        .on(get(posts).field("origin", "https://app.example"))
        .reply(json("public").field("access-control-allow-origin", "https://app.example"));
    for _ in 0..2 {
        site.request(Req::get(posts).field("x-wp-nonce", "3fc92f3572")).await.body("drafts").no_cache_status("stored");
        site.get(posts).await.body("public").no_field("access-control-allow-origin");
        site.request(Req::get(posts).field("authorization", "Basic bWlyYQ==")).await.body("drafts").no_cache_status("stored");
        let cross = site.request(Req::get(posts).field("origin", "https://app.example")).await;
        cross.body("public").field("access-control-allow-origin", "https://app.example").no_cache_status("stored");
    }
    assert_eq!(
        origin
            .requests()
            .iter()
            .filter(|seen| seen.field("x-wp-nonce").is_none() && seen.field("authorization").is_none() && seen.field("origin").is_none())
            .count(),
        1
    );
    // A cart of WooCommerce for blocks, and whatever else plugins answer there.
    origin.on(get("/wp-json/wc/store/v1/cart")).reply_with({
        let n = AtomicUsize::new(0);
        move |_| ok(format!("cart {}", n.fetch_add(1, SeqCst))).field("content-type", "application/json")
    });
    site.get("/wp-json/wc/store/v1/cart").await.body("cart 0");
    site.get("/wp-json/wc/store/v1/cart").await.body("cart 1");
}

/// A GET with `X-HTTP-Method-Override` brings what WordPress says to OPTIONS, or nothing at all with 200.
#[tokio::test]
async fn a_get_that_is_meant_as_another_method_poisons_nothing() {
    let overrides = ["x-http-method-override", "x-http-method", "x-method-override", "x_http_method_override"];
    for kind in ["wordpress", "generic"] {
        let (origin, site) = site_with(&format!("kind = \"{kind}\"")).await;
        for target in ["/wp-json/wp/v2/posts", "/page/"] {
            origin.on(get(target)).reply_with(move |seen| {
                let is_overridden = seen.fields.iter().any(|(name, _)| name.to_ascii_lowercase().contains("method"));
                let text = if is_overridden { "" } else { "posts" };
                ok(text).field("content-type", "application/json").field("cache-control", "max-age=60")
            });
            for name in overrides {
                for method in ["OPTIONS", "HEAD", "DELETE", "post"] {
                    let target = format!("{target}?{name}{method}");
                    // A stranger may not write, and is told so.
                    let is_write = matches!(method, "DELETE" | "post");
                    origin.on(get(&target)).reply_with(move |seen| {
                        let is_overridden = seen.fields.iter().any(|(name, _)| name.to_ascii_lowercase().contains("method"));
                        let said = if is_overridden { "" } else { "posts" };
                        let refused = if is_overridden && is_write { status(401) } else { ok(said) };
                        refused.field("cache-control", "max-age=60")
                    });
                    site.request(Req::get(&target).field(name, method)).await;
                    site.get(&target).await.body("posts");
                    site.request(Req::get(&target).field(name, method)).await;
                    site.get(&target).await.body("posts").cache_status("hit");
                }
            }
        }
        // The parameter that means the same is in the key.
        let meant = "/wp-json/wp/v2/posts?_method=DELETE";
        origin.on(get(meant)).reply(ok("").field("cache-control", "max-age=60"));
        site.get(meant).await.body("");
        site.get("/wp-json/wp/v2/posts").await.body("posts");
    }
}

/// Adds to a reply what PHP sends when a script begins a session.
fn session(reply: Reply, id: usize) -> Reply {
    reply
        .field("set-cookie", format!("PHPSESSID=secret{id}; path=/"))
        .field("expires", "Thu, 19 Nov 1981 08:52:00 GMT")
        .field("cache-control", "no-store, no-cache, must-revalidate")
        .field("pragma", "no-cache")
}

/// Scripts a WordPress with a plugin that begins a session for everybody who has none.
fn with_sessions(origin: &Origin) {
    static SESSIONS: AtomicUsize = AtomicUsize::new(0);
    for target in ["/", "/wp-login.php", "/private/"] {
        origin.on(get(target)).reply_with(move |seen| {
            let cookie = seen.field("cookie").unwrap_or_default();
            let reply = page(if cookie.contains("PHPSESSID=") { "page with a session" } else { "page" });
            match (target, cookie.contains("PHPSESSID=")) {
                ("/private/", _) => reply.field("cache-control", NOBODY_ELSES).field("set-cookie", "PHPSESSID=secret"),
                (_, true) => reply.field("cache-control", "no-store, no-cache, must-revalidate"),
                (_, false) => session(reply, SESSIONS.fetch_add(1, SeqCst)),
            }
        });
    }
    origin.on(post("/")).reply_with(|_| session(ok("sent"), 1));
    origin.on(head("/")).reply_with(|_| session(status(200), 2));
}

/// popups#7, givewp#521, EDD#4405: one plugin turns the cache off for everybody, and nobody knows which.
#[tokio::test]
async fn the_cookie_that_keeps_a_page_out_is_named() {
    let (origin, site) = wordpress_with("[log]\naccess = \"./access.log\"\nformat = \"json\"").await;
    with_sessions(&origin);
    for _ in 0..2 {
        let answer = site.get("/").await.body("page").has_field("set-cookie");
        answer
            .cache_status("detail=\"set-cookie PHPSESSID\"")
            .no_cache_status("stored")
            .field("cache-control", "no-store, no-cache, must-revalidate");
    }
    site.request(with("/", "PHPSESSID=secret1; a=b")).await.body("page with a session").cache_status("detail=php-session");
    origin.on(get("/traffic/")).reply(page("x").field("set-cookie", "wfvt_3127453980=1"));
    site.get("/traffic/").await.cache_status("detail=\"set-cookie wfvt_*\"");

    let not_kept = explained(&site, "/", &[]).not_kept.expect("a reason");
    assert_eq!((not_kept.reason.as_str(), not_kept.cookie.as_deref()), ("set-cookie", Some("PHPSESSID")));
    assert!(not_kept.cookie_of.is_some_and(|whose| whose.contains("PHP session")));
    let told = explain::text(&explained(&site, "/", &[]), false);
    for words in ["PHPSESSID: a PHP session", "drop_set_cookies = [\"PHPSESSID\"]"] {
        assert!(told.contains(words), "{told}");
    }
    let told = explain::text(&explained(&site, "/", &["Cookie: PHPSESSID=secret1".to_owned()]), false);
    assert!(told.contains("php-session (PHPSESSID)") && !told.contains("secret"), "{told}");

    let operator = Operator::of(&site);
    let mut client = Client::connect(operator.address).await.with_host("127.0.0.1");
    let families = exposition::parse(&client.get("/metrics").await.status(200).text());
    let count = |name: &str, cookie: &str| {
        let family = families.iter().find(|family| family.name == name).expect("the metric");
        family.value(&[("site", "default"), ("cookie", cookie)])
    };
    assert_eq!(count("seawall_responses_not_stored_for_cookie_total", "PHPSESSID").to_string(), "2");
    assert_eq!(count("seawall_responses_not_stored_for_cookie_total", "wfvt_*").to_string(), "1");
    assert_eq!(count("seawall_requests_passed_by_cookie_total", "PHPSESSID").to_string(), "1");

    let folder = site.stop(secs(5));
    let log = fs::read_to_string(folder.path().join("access.log")).expect("a log");
    let named: Vec<String> = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["cookie"].as_str().unwrap_or("-").to_owned())
        .collect();
    assert_eq!(named, ["PHPSESSID", "PHPSESSID", "PHPSESSID", "wfvt_*"]);
    assert!(!log.contains("secret"), "{log}");
}

/// The operator knows that readers need no session: then the page is everybody's, and a session that somebody has is still somebody's.
#[tokio::test]
async fn a_page_whose_session_nobody_needs_is_stored_once_the_operator_says_so() {
    let (origin, site) = wordpress_with("[cache]\ndrop_set_cookies = [\"PHPSESSID\"]").await;
    with_sessions(&origin);
    let first = site.get("/").await.body("page").no_field("set-cookie").no_field("expires").no_field("pragma");
    first.cache_status("fwd=uri-miss; fwd-status=200; stored").field("cache-control", "no-cache");
    site.get("/").await.body("page").no_field("set-cookie").cache_status("hit").field("cache-control", "no-cache");
    assert_eq!(origin.count("/"), 1);
    // Whoever has one passes, and keeps it.
    for _ in 0..2 {
        site.request(with("/", "PHPSESSID=1")).await.body("page with a session").cache_status("detail=php-session");
    }
    site.get("/").await.body("page").cache_status("hit");
    // What passes, and what is not stored anyhow, stays as it is.
    for _ in 0..2 {
        site.get("/wp-login.php").await.has_field("set-cookie").field("cache-control", "no-store, no-cache, must-revalidate");
        site.get("/private/").await.has_field("set-cookie").field("cache-control", NOBODY_ELSES).cache_status("detail=no-store");
        site.request(Req::post("/").body("a=1")).await.body("sent").has_field("set-cookie");
    }
}

/// Any server may begin sessions; its own word on the page counts.
#[tokio::test]
async fn a_server_of_any_kind_can_have_its_sessions_dropped() {
    let (origin, site) = site_with("[cache]\ndrop_set_cookies = [\"sid\"]").await;
    origin.on(get("/page")).reply(ok("text").field("cache-control", "max-age=60").field("set-cookie", "sid=1"));
    origin
        .on(get("/own"))
        .reply(ok("text").field("cache-control", "max-age=60").field("set-cookie", "sid=1").field("set-cookie", "user=Ada"));
    origin.on(get("/page").field("cookie", "sid=7")).reply(ok("own").field("cache-control", "private").field("set-cookie", "sid=8"));
    site.get("/page").await.body("text").no_field("set-cookie").cache_status("stored");
    site.get("/page").await.body("text").no_field("set-cookie").cache_status("hit");
    for _ in 0..2 {
        site.get("/own").await.has_field("set-cookie").cache_status("detail=\"set-cookie user\"");
    }
    // Another reader's session is another page: the server said `max-age=60` to all, so it is not asked at all.
    site.request(with("/page", "sid=7")).await.status(200);
    site.get("/page").await.body("text").no_field("set-cookie");
}

/// WP-API#470, wp-rocket#400: forms on a page that is older than its nonce fail.
#[tokio::test]
async fn a_page_with_a_nonce_lives_no_longer_than_the_nonce() {
    let (origin, site) = wordpress_with("[cache]\nhold = \"7d\"").await;
    // In the tick's first second.
    site.clock.advance(secs(1));
    let forms = [
        ("/form/", page(r#"<input type="hidden" name="_wpnonce" value="3fc92f3572" />"#)),
        // A nonce that lies in two pieces, and a body that cannot be read.
        ("/split/", page("").chunks(["<script>var x = {\"nonce\":\"3fc9", "2f3572\"};</script>"])),
        ("/gzip/", page(b"not really gzip".as_slice()).field("content-encoding", "gzip")),
    ];
    for (target, reply) in forms {
        origin.on(get(target)).reply(reply);
        site.get(target).await.cache_status("stored");
    }
    origin.on(get("/text/")).reply(page("no form at all"));
    site.get("/text/").await.cache_status("stored");
    let targets = ["/form/", "/split/", "/gzip/"];
    // Until the end of the tick it is fresh,
    site.clock.advance(secs(TICK - 3));
    for target in targets {
        site.get(target).await.cache_status("hit");
        assert_eq!(origin.count(target), 1, "{target}");
    }
    // in the next tick it is shown while it is made anew,
    site.clock.advance(secs(TICK));
    for target in targets {
        site.get(target).await.status(200);
        origin.until_count(target, 2).await;
    }
    // and later it is not shown any more.
    site.clock.advance(secs(2 * TICK + 3));
    for target in targets {
        site.get(target).await.cache_status("fwd=stale");
        assert_eq!(origin.count(target), 3, "{target}");
    }
    site.get("/text/").await.cache_status("hit");
    assert_eq!(origin.count("/text/"), 1);
}

/// A confirmation would say that the page is the same, and its nonce would be as old as it was.
#[tokio::test]
async fn no_confirmation_makes_a_nonce_younger() {
    let (origin, site) = wordpress_with("[cache]\nhold = \"10h\"\nstale_while_revalidate = \"0s\"").await;
    site.clock.advance(secs(1));
    let form = || page(r#"{"nonce":"3fc92f3572"}"#).field("etag", "\"a\"");
    origin.on(get("/form/")).reply(form());
    origin.on(get("/form/").field("if-none-match", "\"a\"")).reply(testkit::not_modified().field("etag", "\"a\""));
    site.get("/form/").await.cache_status("stored");
    site.clock.advance(Duration::from_hours(11));
    site.get("/form/").await.cache_status("fwd=stale; fwd-status=200; stored");
    site.clock.advance(secs(3_590));
    site.get("/form/").await.cache_status("hit");
    assert_eq!(origin.count("/form/"), 2);
    site.clock.advance(secs(20));
    site.get("/form/").await.body(r#"{"nonce":"3fc92f3572"}"#).cache_status("fwd-status=200; stored");
    assert_eq!(origin.count("/form/"), 3);
    site.get("/form/").await.cache_status("hit").no_field("seawall-nonce-made");
}

/// The plugin says of every page that it may stay for a day. It does not know what other plugins print into it.
#[tokio::test]
async fn a_page_with_a_nonce_outlives_it_by_no_word_of_the_plugin() {
    let (origin, site) = wordpress().await;
    site.clock.advance(secs(1));
    let a_day = |text: &'static str| page(text).field("seawall-plugin", "wordpress/1").field("seawall-cache-control", "max-age=86400");
    origin.on(get("/form/")).reply(a_day(r#"<input type="hidden" name="_wpnonce" value="3fc92f3572" />"#));
    origin.on(get("/text/")).reply(a_day("no form at all"));
    for target in ["/form/", "/text/"] {
        site.get(target).await.cache_status("stored");
    }
    site.clock.advance(secs(TICK - 3));
    site.get("/form/").await.cache_status("hit");
    assert_eq!(origin.count("/form/"), 1);
    site.clock.advance(secs(3));
    site.get("/form/").await.status(200);
    origin.until_count("/form/", 2).await;
    // The other one stays for its day.
    site.clock.advance(secs(86_400 - TICK - 5));
    site.get("/text/").await.cache_status("hit");
    assert_eq!(origin.count("/text/"), 1);
}

/// Where nothing answers, a form is of no use; a page can still be read.
#[tokio::test]
async fn a_page_with_an_old_nonce_stands_in_for_a_wordpress_that_is_away() {
    let (origin, site) = wordpress().await;
    origin.on(get("/form/")).reply(page(r#"<input name="_wpnonce" value="3fc92f3572" />"#));
    site.get("/form/").await.status(200);
    origin.kill();
    site.clock.advance(Duration::from_hours(72));
    site.get("/form/").await.status(200).body_contains("_wpnonce");
    site.get("/form/").await.status(200).body_contains("_wpnonce");
}

#[tokio::test]
async fn what_is_said_to_other_caches_counts_here() {
    let (origin, site) = wordpress().await;
    let not_stored = [
        ("cf-edge-cache", "no-cache", "cf-edge-cache"),
        ("x-litespeed-cache-control", "no-cache", "x-litespeed-cache-control"),
        ("x-litespeed-cache-control", "private,max-age=1800", "x-litespeed-cache-control"),
        ("x-litespeed-vary", "cookie=currency", "x-litespeed-vary"),
        ("x-accel-expires", "0", "x-accel-expires"),
        ("seawall-cache-control", "no-store", "no-store"),
    ];
    for (at, (field, value, rule)) in not_stored.into_iter().enumerate() {
        let target = format!("/{at}/");
        origin.on(get(&target)).reply(page("page").field(field, value));
        for _ in 0..2 {
            site.get(&target).await.body("page").cache_status(&format!("detail={rule}")).no_cache_status("stored");
        }
        let told = explained(&site, &target, &[]).not_kept.expect("a reason");
        assert_eq!(told.reason, rule);
    }
    let until = site.clock.secs() + 60;
    let for_a_minute = [
        ("x-litespeed-cache-control", "public,max-age=60".to_owned()),
        ("x-accel-expires", "60".to_owned()),
        ("x-accel-expires", format!("@{until}")),
        ("seawall-cache-control", "max-age=60".to_owned()),
    ];
    for (at, (field, value)) in for_a_minute.iter().enumerate() {
        let target = format!("/minute/{at}/");
        origin.on(get(&target)).reply(page("page").field(field, value.as_str()));
        // What was said to this cache goes to nobody.
        site.get(&target).await.cache_status("stored").no_field(field);
    }
    origin.on(get("/edge/")).reply(page("page").field("cf-edge-cache", "cache,platform=wordpress"));
    site.get("/edge/").await.cache_status("stored");
    site.clock.advance(secs(59));
    for at in 0..for_a_minute.len() {
        site.get(&format!("/minute/{at}/")).await.cache_status("hit").no_field("x-accel-expires").no_field("x-litespeed-cache-control");
    }
    site.clock.advance(secs(2));
    for at in 0..for_a_minute.len() {
        assert!(!explained(&site, &format!("/minute/{at}/"), &[]).stored[0].fresh, "{at}");
    }
    site.get("/edge/").await.cache_status("hit");
}

/// A feed was last changed a year ago, and a browser that is told nothing keeps it for a tenth of that; a redirect it keeps for good.
#[tokio::test]
async fn a_browser_keeps_nothing_that_could_be_purged_here() {
    let (origin, site) = wordpress().await;
    let old = "Sun, 29 Jun 2025 16:30:00 GMT";
    let feed = || ok("feed").field("content-type", "application/rss+xml").field("last-modified", old).field("etag", "\"a\"");
    origin.on(get("/")).reply(page("page"));
    origin.on(get("/feed/")).reply(feed());
    origin.on(get("/feed/").field("if-none-match", "\"a\"")).reply(testkit::not_modified().field("etag", "\"a\""));
    origin.on(get("/hello")).reply(status(301).field("location", "http://blog.example/hello/"));
    origin.on(get("/wp-includes/a.js?ver=6.8.7")).reply(ok("js").field("last-modified", old));
    origin.on(get("/own/")).reply(page("page").field("cache-control", "max-age=60"));
    for _ in 0..2 {
        for target in ["/", "/feed/", "/hello"] {
            site.get(target).await.field("cache-control", "no-cache").no_field("seawall-cache-control");
            site.get(target).await.field("cache-control", "no-cache").no_field("seawall-cache-control").cache_status("hit");
        }
        // A version has an address of its own, and what is said is said.
        site.get("/wp-includes/a.js?ver=6.8.7").await.no_field("cache-control");
        site.get("/own/").await.field("cache-control", "max-age=60");
        // After its hold, a feed is fetched, and then held again.
        site.clock.advance(secs(3_601));
        site.get("/feed/").await;
        origin.until_count("/feed/", 2).await;
    }
    // A reader of feeds who has it is told so: by the tag that it has from us.
    let tag = site.get("/feed/").await.value("etag").expect("a tag");
    site.request(Req::get("/feed/").field("if-none-match", tag)).await.status(304).field("cache-control", "no-cache");
}
