//! A WordPress is written to, and the next reader sees it: by what it accepts, by what its answers ask to be purged, and by
//! `POST /.seawall/wordpress`. The signatures are those of OpenSSL's `dgst -sha256 -hmac`.

use testkit::{Gate, Matcher, Origin, Reply, Req, get, method, ok, post, secs, status};

use crate::site::{HOST, Site, site_with};

const WORDPRESS: &str = "kind = \"wordpress\"\n[refill]\nconcurrency = 0\n";
const COOKIE: &str = "wordpress_logged_in_ab=mira%7C1";
const PAGES: [&str; 4] = ["/", "/post/", "/about/", "/feed/"];

fn page(text: &'static str) -> Reply {
    ok(text).field("content-type", "text/html; charset=UTF-8")
}

fn redirect(location: &str) -> Reply {
    status(302).field("location", location)
}

async fn wordpress() -> (Origin, Site) {
    stored(WORDPRESS).await
}

/// Returns a WordPress of which some pages are stored, and have changed since then.
async fn stored(toml: &str) -> (Origin, Site) {
    let (origin, site) = site_with(toml).await;
    for path in PAGES {
        origin.on(get(path)).reply(page("old"));
        site.get(path).await.body("old");
        site.get(path).await.x_cache("HIT");
        origin.on(get(path)).reply(page("new"));
    }
    (origin, site)
}

async fn all_are(site: &Site, text: &str) {
    for path in PAGES {
        site.get(path).await.status(200).body(text);
    }
}

/// Has an editor open the list of posts, who is known from then on.
async fn editor_comes(origin: &Origin, site: &Site) {
    origin.on(get("/wp-admin/edit.php")).reply(page("the posts").field("expires", "Wed, 11 Jan 1984 05:00:00 GMT"));
    site.request(Req::get("/wp-admin/edit.php").field("cookie", COOKIE)).await.status(200);
}

fn form(target: &str, content: &str) -> Req {
    Req::post(target).field("content-type", "application/x-www-form-urlencoded").body(content)
}

/// One request and the answer of WordPress.
struct Write(Matcher, Reply, Req);

fn written(matcher: Matcher, reply: Reply, request: Req) -> Write {
    Write(matcher, reply, request)
}

impl Write {
    async fn happens(self, origin: &Origin, site: &Site) {
        let Self(matcher, reply, request) = self;
        origin.on(matcher).reply(reply);
        site.request(request).await;
    }
}

const POST_PHP: &str = "/wp-admin/post.php";
const AJAX: &str = "/wp-admin/admin-ajax.php";
const REST: &str = "/wp-json/wp/v2/posts/12";
const NEW_POST: &str = "<methodCall><methodName>wp.newPost</methodName></methodCall>";

/// The answer of WordPress 6.8 about a comment that it does not have.
const NO_COMMENT: &str = "<?xml version='1.0' encoding='UTF-8' standalone='yes'?><wp_ajax><response action='dim-comment_0'>\
    <comment id='0' position='1'><wp_error code='invalid_comment'><![CDATA[Comment 999999 does not exist]]></wp_error></comment></response></wp_ajax>";

/// Returns the writes for which nobody needs to be known: WordPress answers so only whoever may write.
fn accepted() -> Vec<Write> {
    let by_cookie = |request: Req| request.field("cookie", COOKIE);
    let link = "action=trash&post=12&_wpnonce=a";
    vec![
        written(post(POST_PHP), redirect("/wp-admin/post.php?post=12&action=edit&message=1"), by_cookie(form(POST_PHP, "action=editpost"))),
        written(get(POST_PHP).query(link), redirect("edit.php?trashed=1"), by_cookie(Req::get(&format!("{POST_PHP}?{link}")))),
        written(post("/wp-admin/options.php"), redirect("/wp-admin/options-general.php"), by_cookie(form("/wp-admin/options.php", "a=b"))),
        written(post(AJAX), ok("<tr>"), by_cookie(form(AJAX, "action=inline-save&post_ID=12"))),
        written(post(REST), ok("{}"), by_cookie(Req::post(REST).field("x-http-method-override", "PUT").body("{}"))),
        written(post(REST), ok("{}"), Req::post(REST).field("authorization", "Basic bWlyYTp4").body("{}")),
        written(method("DELETE", REST), ok("{}"), by_cookie(Req::new("DELETE", REST))),
        // WordPress takes this GET for the method in the field.
        written(get(REST), ok("{}"), by_cookie(Req::get(REST).field("x-http-method-override", "DELETE"))),
        written(
            post("/?rest_route=/wp/v2/posts"),
            ok("{}").field("content-type", "application/json"),
            by_cookie(Req::post("/?rest_route=/wp/v2/posts").body("{}")),
        ),
        written(post("/xmlrpc.php"), ok("<methodResponse><params/></methodResponse>"), Req::post("/xmlrpc.php").body(NEW_POST)),
        // A WordPress in a folder of its own.
        written(
            post("/wp/wp-admin/post.php"),
            redirect("/wp/wp-admin/post.php?post=12")
                .field("expires", "Wed, 11 Jan 1984 05:00:00 GMT")
                .field("x-frame-options", "SAMEORIGIN"),
            by_cookie(form("/wp/wp-admin/post.php", "action=editpost")),
        ),
        // In pieces, as an upload that is still coming.
        written(
            post(AJAX),
            ok("1"),
            by_cookie(Req::post(AJAX).field("content-type", "application/x-www-form-urlencoded").chunks(["action=inline", "-save"])),
        ),
    ]
}

#[tokio::test]
async fn what_an_editor_writes_is_seen_by_the_next_request() {
    for write in accepted() {
        let (origin, site) = wordpress().await;
        write.happens(&origin, &site).await;
        all_are(&site, "new").await;
        site.get("/post/").await.x_cache("HIT");
    }
}

/// What was purged softly stands in as long as PHP is away.
#[tokio::test]
async fn after_a_write_the_site_outlives_its_wordpress() {
    let (origin, site) = wordpress().await;
    accepted().remove(0).happens(&origin, &site).await;
    origin.kill();
    for path in PAGES {
        site.get(path).await.status(200).body("old").x_cache("STALE");
    }
}

/// WordPress answers many a request with a success or a redirect that it has refused, or that changes no page.
#[tokio::test]
async fn a_strangers_request_purges_nothing() {
    let forged = |request: Req| request.field("cookie", COOKIE);
    let login = "/wp-login.php?redirect_to=%2Fwp-admin%2Fpost.php&reauth=1";
    let fault = "<methodResponse><fault><name>faultCode</name></fault></methodResponse>";
    let feedback = "/wp-json/contact-form-7/v1/contact-forms/5/feedback";
    let comment = "/wp-comments-post.php";
    for write in [
        written(post("/wp-login.php"), ok("wrong"), form("/wp-login.php", "log=mira&pwd=x")),
        written(post("/wp-login.php?action=postpass"), redirect("/post/"), form("/wp-login.php?action=postpass", "post_password=x")),
        written(post(POST_PHP), redirect(login), forged(form(POST_PHP, "action=editpost"))),
        written(post(POST_PHP), redirect("/404/"), forged(form(POST_PHP, "action=editpost"))),
        written(post(POST_PHP), status(403), forged(form(POST_PHP, "action=editpost&_wpnonce=bad"))),
        written(post("/wp-admin/upgrade.php"), ok("nothing to do"), forged(form("/wp-admin/upgrade.php", ""))),
        written(post("/wp-admin/admin-post.php"), redirect("/thanks/"), forged(form("/wp-admin/admin-post.php", "action=survey"))),
        written(post(AJAX), status(400), forged(form(AJAX, "action=inline-save"))),
        written(post(AJAX), ok("-1"), forged(form(AJAX, "action=delete-comment&id=1"))),
        written(post(AJAX), ok("{}"), forged(form(AJAX, "action=add_to_wishlist"))),
        written(post(AJAX), ok("{}"), form(AJAX, "action=heartbeat")),
        written(post(REST), status(401), forged(Req::post(REST).body("{}"))),
        written(post(feedback), ok("{}"), forged(Req::post(feedback).body("{}"))),
        written(post(feedback), ok("{}"), Req::post(feedback).field("authorization", "Basic eA==").body("{}")),
        written(post("/?wc-ajax=add_to_cart"), ok("{}"), form("/?wc-ajax=add_to_cart", "product_id=5")),
        written(post("/xmlrpc.php"), ok(fault), Req::post("/xmlrpc.php").body(NEW_POST)),
        written(post("/xmlrpc.php"), ok("<methodResponse/>"), Req::post("/xmlrpc.php").body("<methodName>demo.sayHello</methodName>")),
        written(post(comment), redirect("/post/?unapproved=5&moderation-hash=a#comment-5"), form(comment, "comment=x")),
        written(post(comment), status(409), form(comment, "comment=x")),
        written(post("/wp-cron.php?doing_wp_cron"), ok(""), form("/wp-cron.php?doing_wp_cron", "")),
        // What looks like an editor's is lost.
        written(post("/xmlrpc.php"), status(500), Req::post("/xmlrpc.php").body("<methodName>wp.getUsersBlogs</methodName>")),
        written(post(POST_PHP), status(500), form(POST_PHP, "action=editpost")),
        // PHP fails before WordPress has looked at the password, which is a list; and WordPress says 500 where it refuses.
        written(post("/xmlrpc.php"), status(500), Req::post("/xmlrpc.php").body(NEW_POST)),
        written(post("/wp-admin/comment.php"), status(500), forged(form("/wp-admin/comment.php", "action=none"))),
        // A comment that is not there: WordPress answers before it has looked who asks.
        written(post(AJAX), ok("1795854394"), forged(form(AJAX, "action=delete-comment&id=999999"))),
        written(post(AJAX), ok(NO_COMMENT), forged(form(AJAX, "action=dim-comment&id=999999"))),
        // WordPress shows its front page for what it does not know.
        written(post("/x/wp-admin/post.php"), page("front"), forged(form("/x/wp-admin/post.php", ""))),
        written(get("/wp-admin/edit.php"), page("front"), forged(Req::get("/wp-admin/edit.php"))),
        written(post("/wp-admin/"), ok("the dashboard"), forged(form("/wp-admin/", ""))),
    ]
    .into_iter()
    .chain(answered_whoever_asks())
    {
        let what = format!("{:?}", write.2);
        let (origin, site) = wordpress().await;
        write.happens(&origin, &site).await;
        for path in PAGES {
            let answer = site.get(path).await;
            assert_eq!(answer.value("x-cache").as_deref(), Some("HIT"), "{path} after {what}");
        }
    }
}

/// Returns the writes that WordPress answers everybody, or every user of the site, with what looks like a page of `wp-admin` or a success.
fn answered_whoever_asks() -> Vec<Write> {
    let of_admin = |reply: Reply| {
        let reply = reply.field("expires", "Wed, 11 Jan 1984 05:00:00 GMT").field("x-frame-options", "SAMEORIGIN");
        reply.field("cache-control", "no-cache, must-revalidate, max-age=0")
    };
    let forged = |request: Req| request.field("cookie", COOKIE);
    let mut writes = Vec::new();
    // The script that runs is the first one; what follows it is a parameter of it.
    for path in [
        "/wp-admin/upgrade.php/",
        "/wp-admin/upgrade.php/x.php",
        "/wp-admin/install.php/x.php",
        "/wp-admin/network/upgrade.php/x.php",
        "/wp/wp-admin/upgrade.php/wp-admin/post.php",
        "/wp-login.php/wp-admin/post.php",
        "/wp-login.php/wp-json/wp/v2/posts",
        "/wp-admin/moderation.php",
        "/wp-admin/about.php",
        "/wp-admin/credits.php",
        "/wp-admin/my-sites.php",
        "/wp-admin/update.php",
    ] {
        let link = format!("{path}?_wpnonce=1");
        writes.push(written(post(path), of_admin(ok("a page")), forged(form(path, ""))));
        writes.push(written(get(path).query("_wpnonce=1"), of_admin(ok("a page")), forged(Req::get(&link))));
    }
    for path in ["/wp-admin/includes/nav-menu.php", "/wp-admin/menu-header.php", "/wp-admin/my-sites.php"] {
        writes.push(written(post(path), status(500), forged(form(path, ""))));
    }
    let heartbeat = "/wp-admin/admin-ajax.php/x.php";
    let query = "action=heartbeat&_wpnonce=1";
    writes.push(written(get(heartbeat).query(query), of_admin(ok("{}")), forged(Req::get(&format!("{heartbeat}?{query}")))));
    writes.push(written(post(POST_PHP), of_admin(redirect("/wp-admin/edit.php")), forged(form(POST_PHP, ""))));
    // Each of several writes was refused.
    let (batch, refused) = ("/wp-json/batch/v1", r#"{"responses":[{"status":401}]}"#);
    let json = |reply: Reply| reply.field("content-type", "application/json; charset=UTF-8");
    let several = || Req::post(batch).body(r#"{"requests":[{"path":"/wp/v2/posts"}]}"#);
    writes.push(written(post(batch), json(status(207).body(refused)), several()));
    let enveloped = "/wp-json/wp/v2/posts?_envelope=1";
    let refusal = r#"{"body":{"code":"rest_cannot_create"},"status":401,"headers":{}}"#;
    writes.push(written(post("/wp-json/wp/v2/posts").query("_envelope=1"), json(ok(refusal)), Req::post(enveloped).body("{}")));
    let within = "<![CDATA[<name>methodName</name><value>wp.newPost</value>]]>";
    let call = format!(
        "<methodCall><methodName>system.multicall</methodName><params><param><value><array><data><value><struct><member><name>methodName</name>\
         <value>demo.sayHello</value></member><member><name>params</name><value><string>{within}</string></value></member></struct></value>\
         </data></array></value></param></params></methodCall>"
    );
    let hello = "<methodResponse><params><param><value><array><data><value><array><data><value><string>Hello!</string></value></data></array>\
                 </value></data></array></value></param></params></methodResponse>";
    writes.push(written(post("/xmlrpc.php"), ok(hello), Req::post("/xmlrpc.php").body(call)));
    writes
}

/// The script that runs is another one, and shows its page to everybody.
#[tokio::test]
async fn a_stranger_does_not_become_an_editor_by_what_follows_the_script() {
    for path in ["/wp-login.php/wp-admin/edit.php", "/wp-admin/upgrade.php/wp-admin/edit.php"] {
        let (origin, site) = wordpress().await;
        let reply = page("sign in").field("expires", "Wed, 11 Jan 1984 05:00:00 GMT").field("x-frame-options", "SAMEORIGIN");
        origin.on(get(path)).reply(reply.field("cache-control", "no-cache"));
        site.request(Req::get(path).field("cookie", COOKIE)).await.status(200);
        origin.on(post(AJAX)).reply(ok("{}"));
        site.request(form(AJAX, "action=plugin_saves").field("cookie", COOKIE)).await.status(200);
        all_are(&site, "old").await;
    }
}

/// Every user of the site may do this, so it must not keep pages cold; an editor who has just signed in is not known yet.
#[tokio::test]
async fn a_user_who_changes_his_own_name_purges_now_and_then() {
    const PROFILE: &str = "/wp-admin/profile.php";
    const USER: &str = "/wp-json/wp/v2/users/1";
    let basic = |request: Req| request.field("authorization", "Basic bWlyYTp4");
    for (matcher, reply, request) in [
        (post(PROFILE), redirect("/wp-admin/profile.php?updated=1"), || form(PROFILE, "action=update").field("cookie", COOKIE)),
        (post(USER), ok("{}"), || Req::post(USER).field("authorization", "Basic bWlyYTp4").body(r#"{"name":"Mira"}"#)),
    ] as [(Matcher, Reply, fn() -> Req); 2]
    {
        let (origin, site) = wordpress().await;
        origin.on(matcher).reply(reply);
        site.request(request()).await;
        all_are(&site, "new").await;
        for path in PAGES {
            origin.on(get(path)).reply(page("newer"));
        }
        site.request(request()).await;
        all_are(&site, "new").await;
    }
    // Nobody but editors may do this.
    for target in ["/wp-json/wp/v2/comments/5", "/wp-json/wp/v2/comments/5?force=true", "/wp-json/wp/v2/users/7?force=true&reassign=1"] {
        let (origin, site) = wordpress().await;
        let path = target.split('?').next().expect("a path");
        let matcher = target.split_once('?').map_or_else(|| method("DELETE", path), |(path, query)| method("DELETE", path).query(query));
        origin.on(matcher).reply(ok("{}"));
        site.request(basic(Req::new("DELETE", target))).await.status(200);
        all_are(&site, "new").await;
    }
}

/// RFC 9111 §4.4: the page that was posted to, and not the one that its answer leads to: a stranger can choose that.
#[tokio::test]
async fn a_strangers_form_costs_its_own_page() {
    let (origin, site) = wordpress().await;
    origin.on(post("/about/")).reply(redirect("/post/"));
    site.request(form("/about/", "message=x")).await.status(302);
    site.get("/about/").await.body("new");
    for path in ["/", "/post/", "/feed/"] {
        site.get(path).await.body("old").x_cache("HIT");
    }
}

/// Every fifteen seconds an open editor says that it is there, and it saves what it has.
#[tokio::test]
async fn what_an_editors_browser_sends_by_itself_purges_nothing() {
    let autosaves = "/wp-json/wp/v2/posts/12/autosaves";
    let me = "/wp-json/wp/v2/users/me";
    let search = "/wp-admin/edit.php?s=bread&_wpnonce=a&_wp_http_referer=x&action=-1";
    let preferences = r#"{"meta":{"persisted_preferences":{}}}"#;
    for write in [
        written(post(AJAX), ok("{}"), form(AJAX, "interval=15&_nonce=a&action=heartbeat&data%5Bwp_autosave%5D%5Bpost_id%5D=12")),
        written(post(AJAX), status(500), form(AJAX, "action=heartbeat")),
        written(post(AJAX), ok("1"), form(AJAX, "action=wp-remove-post-lock")),
        written(post(AJAX), ok("{}"), form(AJAX, "action=query-attachments")),
        written(post(AJAX), ok("{}"), form(AJAX, "action=customize_save&customize_changeset_status=auto-draft")),
        written(post(autosaves), ok("{}"), Req::post(autosaves).body("{}")),
        written(post(me), ok("{}"), Req::post(me).field("x-http-method-override", "PUT").body(preferences)),
        written(get(search), redirect("/wp-admin/edit.php?s=bread"), Req::get(search)),
    ] {
        let what = format!("{:?}", write.2);
        let (origin, site) = wordpress().await;
        editor_comes(&origin, &site).await;
        let Write(matcher, reply, request) = write;
        written(matcher, reply, request.field("cookie", COOKIE)).happens(&origin, &site).await;
        for path in PAGES {
            let answer = site.get(path).await;
            assert_eq!(answer.value("x-cache").as_deref(), Some("HIT"), "{path} after {what}");
        }
    }
}

/// Strangers can have the same answers. Somebody whom WordPress has shown a page for editors counts.
#[tokio::test]
async fn what_anybody_could_send_counts_from_a_known_editor() {
    let by_cookie = |request: Req| request.field("cookie", COOKIE);
    for write in [
        written(post(AJAX), ok("{}"), by_cookie(form(AJAX, "action=plugin_saves"))),
        written(post("/wp-admin/admin-post.php"), redirect("/"), by_cookie(form("/wp-admin/admin-post.php", "action=import"))),
        written(post("/wp-json/forms/v1/form"), ok("{}"), by_cookie(Req::post("/wp-json/forms/v1/form").body("{}"))),
        written(post(POST_PHP), redirect("/post/"), by_cookie(form(POST_PHP, "action=editpost"))),
    ] {
        let (origin, site) = wordpress().await;
        editor_comes(&origin, &site).await;
        write.happens(&origin, &site).await;
        all_are(&site, "new").await;
    }
    // Another one's cookie, or a page that every user of the site gets, is no proof.
    let (origin, site) = wordpress().await;
    editor_comes(&origin, &site).await;
    origin.on(get("/wp-admin/profile.php")).reply(page("you"));
    origin.on(post(AJAX)).reply(ok("{}"));
    for cookie in ["wordpress_logged_in_ab=other", "wordpress_logged_in_cd=mira%7C1"] {
        site.request(Req::get("/wp-admin/profile.php").field("cookie", cookie)).await.status(200);
        site.request(form(AJAX, "action=plugin_saves").field("cookie", cookie)).await.status(200);
    }
    all_are(&site, "old").await;
}

#[tokio::test]
async fn a_comment_that_is_published_at_once_is_on_its_page() {
    let (origin, site) = wordpress().await;
    origin.on(post("/wp-comments-post.php")).reply(redirect("/post/#comment-5"));
    site.request(form("/wp-comments-post.php", "comment=hello")).await.status(302).field("location", "/post/#comment-5");
    site.get("/post/").await.body("new");
    // The front page may count comments; other pages do not.
    site.get("/").await.body("new");
    for path in ["/about/", "/feed/"] {
        site.get(path).await.body("old").x_cache("HIT");
    }
}

/// Scripts a feed as WordPress makes it: its validators are the time of the newest post, to the second, whatever else is in it
/// (`WP::send_headers`).
fn feed(origin: &Origin, path: &str, text: &'static str) {
    const NEWEST: &str = "Sun, 01 Jun 2025 12:00:00 GMT";
    const TAG: &str = "\"c4ca4238a0b923820dcc509a6f75849b\"";
    origin.on(get(path)).reply_with(move |seen| {
        let is_same = |tag: String| tag.trim_start_matches("W/") == TAG;
        let is_current = seen.field("if-none-match").is_some_and(is_same) || seen.field("if-modified-since").is_some_and(|at| at == NEWEST);
        let reply = if is_current { status(304) } else { ok(text).field("content-type", "application/rss+xml; charset=UTF-8") };
        reply.field("last-modified", NEWEST).field("etag", TAG)
    });
}

/// A post was trashed, the site has another name, a post was changed twice in one second: WordPress would say 304.
#[tokio::test]
async fn a_feed_is_new_after_a_write_though_its_validators_are_the_old_ones() {
    for path in ["/feed/", "/post/feed/", "/tag/bread/feed/atom/"] {
        let (origin, site) = site_with(WORDPRESS).await;
        feed(&origin, path, "old words");
        site.get(path).await.body("old words");
        feed(&origin, path, "new words");
        accepted().remove(0).happens(&origin, &site).await;
        site.get(path).await.status(200).body("new words");
        site.get(path).await.body("new words").x_cache("HIT");
        // The same holds when its time is over.
        feed(&origin, path, "other words");
        site.clock.advance(secs(3600 * 30));
        site.get(path).await.body("other words");
    }
}

/// RFC 9110 §8.8.1: a validator that stays the same when the content changes is none. Readers of feeds ask whether there is anything new, and are
/// told so by what is in the feed.
#[tokio::test]
async fn a_reader_of_feeds_is_told_by_their_content_whether_they_are_new() {
    let (origin, site) = site_with(WORDPRESS).await;
    feed(&origin, "/feed/", "old words");
    let first = site.get("/feed/").await.body("old words");
    assert_eq!((first.value("etag"), first.value("last-modified")), (None, None), "nothing that is wrong later");
    let stored = site.get("/feed/").await.body("old words").x_cache("HIT");
    assert_eq!(stored.value("last-modified"), None);
    // SHA-256 of the content, of which the first half is enough.
    assert_eq!(stored.value("etag").as_deref(), Some("\"8bc14f296d5a4835d96eb5e7733367aa\""));
    let asks = |name: &str, value: &str| Req::get("/feed/").field(name, value);
    site.request(asks("if-none-match", "\"8bc14f296d5a4835d96eb5e7733367aa\"")).await.status(304);
    feed(&origin, "/feed/", "new words");
    accepted().remove(0).happens(&origin, &site).await;
    for _ in 0..2 {
        for request in [
            asks("if-none-match", "\"8bc14f296d5a4835d96eb5e7733367aa\""),
            // What readers have kept from the time before Seawall.
            asks("if-none-match", "W/\"c4ca4238a0b923820dcc509a6f75849b\""),
            asks("if-modified-since", "Sun, 01 Jun 2025 12:00:00 GMT"),
        ] {
            site.request(request).await.status(200).body("new words");
        }
    }
    site.request(asks("if-none-match", "W/\"f029add4643cff404aedea0f0dd6c50d\"")).await.status(304);
}

/// The validators of files are good, and clients resume their downloads by them.
#[tokio::test]
async fn the_validators_of_files_stay_as_they_are() {
    let (origin, site) = site_with(WORDPRESS).await;
    let path = "/wp-content/uploads/2025/06/bread.jpg";
    let tag = "\"5f-65a\"";
    origin.on(get(path)).reply(ok("picture").field("content-type", "image/jpeg").field("etag", tag));
    site.get(path).await.field("etag", tag);
    accepted().remove(0).happens(&origin, &site).await;
    origin.on(get(path).field("if-none-match", tag)).reply(status(304).field("etag", tag));
    site.get(path).await.status(200).body("picture").field("etag", tag);
    assert_eq!(origin.last(path).field("if-none-match").as_deref(), Some(tag));
}

/// Only whoever may moderate changes a comment that is there, so the status that it has then says nothing: what is spam now was on the page before.
#[tokio::test]
async fn a_comment_that_is_moderated_over_rest_is_on_its_page_or_not() {
    let comment = "/wp-json/wp/v2/comments/5";
    let link = "https://blog.example/post/#comment-5";
    for (now, verb) in [("spam", "PUT"), ("hold", "PATCH"), ("trash", "DELETE"), ("approved", "POST")] {
        let (origin, site) = wordpress().await;
        origin.on(method(verb, comment)).reply(ok(format!(r#"{{"id":5,"status":"{now}","link":"{link}"}}"#)));
        site.request(Req::new(verb, comment).field("cookie", COOKIE).body("{}")).await.status(200);
        all_are(&site, "new").await;
    }
    // A stranger is refused.
    let (origin, site) = wordpress().await;
    origin.on(post(comment)).reply(status(401));
    site.request(Req::post(comment).field("cookie", COOKIE).body(r#"{"status":"spam"}"#)).await.status(401);
    all_are(&site, "old").await;
}

/// Nobody can tell what came of it.
#[tokio::test]
async fn a_write_that_is_not_answered_purges_now_and_then() {
    let by_editor = || form(POST_PHP, "action=editpost").field("cookie", COOKIE);
    for (reply, only_if_known) in [(testkit::raw(""), false), (status(500), true), (status(502), false)] {
        let (origin, site) = wordpress().await;
        if only_if_known {
            editor_comes(&origin, &site).await;
        }
        origin.on(post(POST_PHP)).reply(reply);
        site.request(by_editor()).await;
        all_are(&site, "new").await;
        // Who sends such writes keeps no page cold.
        for path in PAGES {
            origin.on(get(path)).reply(page("newer"));
        }
        site.request(by_editor()).await;
        all_are(&site, "new").await;
    }
}

/// Who invents a cookie and provokes errors keeps his own time only.
#[tokio::test]
async fn a_strangers_lost_write_does_not_defer_an_editors() {
    let (origin, site) = wordpress().await;
    editor_comes(&origin, &site).await;
    origin.on(post(POST_PHP)).reply(status(502));
    for cookie in ["wordpress_logged_in_ab=x", "wordpress_logged_in_ab=y"] {
        site.request(form(POST_PHP, "").field("cookie", cookie)).await;
    }
    all_are(&site, "new").await;
    for path in PAGES {
        origin.on(get(path)).reply(page("newer"));
    }
    site.request(form(POST_PHP, "").field("cookie", "wordpress_logged_in_ab=z")).await;
    all_are(&site, "new").await;
    site.request(form(POST_PHP, "action=editpost").field("cookie", COOKIE)).await;
    all_are(&site, "newer").await;
}

/// The purge comes before the head of the answer does.
#[tokio::test]
async fn the_change_is_there_before_the_editor_is_told() {
    let (origin, site) = wordpress().await;
    let gate = Gate::new();
    origin.on(post(REST)).reply(ok("{\"id\":12}").gate_after(1, &gate));
    let mut editor = site.client().await;
    editor.send(Req::post(REST).field("cookie", COOKIE).body("{}")).await;
    gate.arrived().await;
    site.get("/post/").await.body("new");
    gate.open();
    editor.read_answer().await.status(200).body("{\"id\":12}");
}

/// WordPress has published even if the editor's connection breaks before the answer is there.
#[tokio::test]
async fn an_editor_who_leaves_has_published_all_the_same() {
    let (origin, site) = wordpress().await;
    let gate = Gate::new();
    origin.on(post(REST)).reply(ok("{}").gate(&gate));
    let mut editor = site.client().await;
    editor.send(Req::post(REST).field("cookie", COOKIE).body("{}")).await;
    gate.arrived().await;
    drop(editor);
    site.get("/post/").await.body("old");
    gate.open();
    for _ in 0..5_000 {
        if site.get("/post/").await.text() == "new" {
            return;
        }
    }
    panic!("the old page is still there");
}

/// The answer that is looked at reaches its client as it came.
#[tokio::test]
async fn an_answer_that_is_read_to_judge_a_write_is_passed_on_whole() {
    let (origin, site) = wordpress().await;
    let long = "x".repeat(200_000);
    for text in ["1".to_owned(), String::new(), long] {
        origin.on(post(AJAX)).reply(ok(text.clone()));
        site.request(form(AJAX, "action=inline-save").field("cookie", COOKIE)).await.status(200).body(&text);
        origin.on(post(AJAX)).reply(ok("").chunks([text.clone().into_bytes(), b"end".to_vec()]));
        site.request(form(AJAX, "action=inline-save").field("cookie", COOKIE)).await.status(200).body(format!("{text}end"));
    }
    assert_eq!(origin.last(AJAX).text(), "action=inline-save");
    assert_eq!(origin.last(AJAX).field("accept-encoding").as_deref(), Some("identity"));
}

/// RFC 9111 §4: what was asked for before a write shows the page as it was before it.
#[tokio::test]
async fn a_page_that_was_asked_for_before_a_write_is_not_stored_after_it() {
    let (origin, site) = site_with(WORDPRESS).await;
    let gate = Gate::new();
    origin.on(get("/post/")).reply(page("old").gate(&gate));
    let mut reader = site.client().await;
    reader.send(Req::get("/post/")).await;
    gate.arrived().await;
    origin.on(post(REST)).reply(ok("{}"));
    site.request(Req::post(REST).field("cookie", COOKIE).body("{}")).await.status(200);
    origin.on(get("/post/")).reply(page("new"));
    // A reader who comes after the write does not join the older fetch.
    site.get("/post/").await.body("new");
    gate.open();
    reader.read_answer().await.body("old");
    site.get("/post/").await.body("new");
}

/// What is published now may have been missing a moment ago.
#[tokio::test]
async fn a_not_found_of_the_seconds_after_a_write_is_not_stored() {
    let (origin, site) = wordpress().await;
    accepted().remove(0).happens(&origin, &site).await;
    origin.on(get("/next/")).reply(status(404));
    site.get("/next/").await.status(404);
    origin.on(get("/next/")).reply(page("published"));
    site.get("/next/").await.status(200).body("published");
}

/// Editors may work under another host than readers read.
#[tokio::test]
async fn a_write_purges_every_host_of_the_site() {
    let origin = Origin::start();
    let site = Site::start(&format!(
        "[refill]\nconcurrency = 0\n[[site]]\nhosts = [\"{HOST}\", \"admin.example\", \"*.wiki.example\"]\nsource = \"{}\"\nkind = \"wordpress\"\n\
         [[site]]\nhosts = [\"other.example\"]\nsource = \"{}\"\nkind = \"wordpress\"\n",
        origin.url(),
        origin.url()
    ));
    let hosts = [HOST, "admin.example", "a.wiki.example", "other.example"];
    origin.on(post("/wp-comments-post.php")).reply(redirect("/post/#comment-5"));
    origin.on(post(REST)).reply(ok("{}"));
    origin.on(post("/plugin")).reply(ok("").field("seawall-plugin", "wordpress/1.0").field("seawall-purge", "url=/post/"));
    for (request, is_for_all) in
        [(Req::post(REST).body("{}"), true), (Req::post("/plugin"), true), (form("/wp-comments-post.php", ""), false)]
    {
        origin.on(get("/post/")).reply(page("old"));
        site.server.purge(&policy::purge::Order::by_operator(policy::purge::What::Everything, true)).expect("purged");
        for host in hosts {
            site.client().await.with_host(host).get("/post/").await.body("old");
        }
        origin.on(get("/post/")).reply(page("new"));
        site.client().await.with_host("admin.example").request(request).await;
        for host in hosts {
            // Which of the hosts below a name there are, nobody knows; a comment is on the page where it was written.
            let is_new = host != "other.example" && (is_for_all || !host.ends_with("wiki.example"));
            site.client().await.with_host(host).get("/post/").await.body(if is_new { "new" } else { "old" });
        }
    }
}

/// Returns a page of a WordPress with the plugin.
fn tagged(text: &'static str, tags: &str) -> Reply {
    page(text).field("seawall-plugin", "wordpress/1.0").field("cache-tag", tags)
}

async fn with_plugin() -> (Origin, Site) {
    let (origin, site) = site_with(WORDPRESS).await;
    for (path, tags) in [("/", "list-post"), ("/post/", "post-12"), ("/about/", "post-2"), ("/feed/", "list-post")] {
        origin.on(get(path)).reply(tagged("old", tags));
        site.get(path).await.body("old").no_field("seawall-plugin").no_field("cache-tag");
        origin.on(get(path)).reply(tagged("new", tags));
    }
    (origin, site)
}

#[tokio::test]
async fn with_the_plugin_only_what_it_names_is_purged() {
    for (purge, changed) in [
        (Some("post-12"), &["/post/"][..]),
        (Some("post-12, list-post"), &["/", "/post/", "/feed/"]),
        (Some("url=/feed/, url=http://blog.example/about/?x=1"), &["/about/", "/feed/"]),
        (Some("soft, post-2"), &["/about/"]),
        (Some("*"), &PAGES),
        (Some("soft, *"), &PAGES),
        (None, &[]),
    ] {
        let (origin, site) = with_plugin().await;
        let reply = ok("{}").field("seawall-plugin", "wordpress/1.0");
        origin.on(post(REST)).reply(match purge {
            Some(purge) => reply.field("seawall-purge", purge),
            None => reply,
        });
        let answer = site.request(Req::post(REST).field("cookie", COOKIE).body("{}")).await.status(200);
        answer.no_field("seawall-plugin").no_field("seawall-purge");
        for path in PAGES {
            site.get(path).await.body(if changed.contains(&path) { "new" } else { "old" });
        }
    }
}

#[tokio::test]
async fn what_the_plugin_purges_hard_never_comes_back() {
    for (purge, code) in [("*", 502), ("soft, *", 200)] {
        let (origin, site) = with_plugin().await;
        origin.on(post(REST)).reply(ok("{}").field("seawall-plugin", "wordpress/1.0").field("seawall-purge", purge));
        site.request(Req::post(REST).body("{}")).await.status(200);
        origin.kill();
        site.get("/post/").await.status(code);
    }
}

/// A request that passes may change something by whatever method, and one that asks the cache may, too.
#[tokio::test]
async fn a_purge_in_an_answer_counts_whatever_was_asked() {
    for request in [Req::get("/wp-admin/tools.php"), Req::post("/anything"), Req::get("/view/"), Req::head("/view/")] {
        let (origin, site) = with_plugin().await;
        for matcher in [testkit::any("/wp-admin/tools.php"), testkit::any("/anything"), testkit::any("/view/")] {
            origin.on(matcher).reply(ok("").field("seawall-purge", "post-12"));
        }
        site.request(request).await.status(200).no_field("seawall-purge");
        site.get("/post/").await.body("new");
        site.get("/about/").await.body("old");
    }
}

/// The plugin says what it purges when WordPress has ended, which may be after the head.
#[tokio::test]
async fn a_write_whose_answer_breaks_off_purges_softly_with_the_plugin_too() {
    let (origin, site) = with_plugin().await;
    origin.on(post(POST_PHP)).reply(ok("saved").field("seawall-plugin", "wordpress/1.0").break_off_after(2));
    let mut editor = site.client().await;
    editor.send(form(POST_PHP, "action=editpost").field("cookie", COOKIE)).await;
    editor.read_to_close().await;
    all_are(&site, "new").await;
}

#[tokio::test]
async fn a_client_says_nothing_of_what_is_to_be_purged() {
    let (origin, site) = wordpress().await;
    origin.on(testkit::any("/about/x")).reply(page("seen"));
    let fields = [
        ("seawall-purge", "*"),
        ("seawall-plugin", "wordpress/1.0"),
        ("x-litespeed-purge", "*"),
        ("x-litespeed-vary", "cookie=x"),
        ("x-lscache", "on"),
        ("x-lscache-vary", "<script>"),
        ("lsc-cookie", "a=b"),
        ("x_lscache", "on"),
    ];
    for verb in ["GET", "POST"] {
        let request = fields.iter().fold(Req::new(verb, "/about/x"), |request, (name, value)| request.field(name, *value));
        site.request(request).await.status(200);
        let seen = origin.last("/about/x");
        assert!(fields.iter().all(|(name, _)| seen.field(name).is_none()), "{seen:?}");
    }
    all_are(&site, "old").await;
}

#[tokio::test]
async fn the_purges_of_plugins_for_litespeed_are_obeyed() {
    for (field, value, changed) in [
        ("x-litespeed-purge", "public,3f2_Po.12", &["/post/"][..]),
        ("x-litespeed-purge", "public,stale,3f2_Po.12;private,*", &["/post/"]),
        ("x-litespeed-purge2", "tag=3f2_F", &["/"]),
        ("x-litespeed-purge", "/feed/", &["/feed/"]),
        ("x-litespeed-purge", "public,3f2_", &PAGES),
        ("x-litespeed-purge", "*", &PAGES),
        ("x-litespeed-purge", "private,*", &[]),
    ] {
        let (origin, site) = site_with(WORDPRESS).await;
        for (path, tags) in [("/", "3f2_F,3f2_"), ("/post/", "3f2_Po.12,3f2_"), ("/about/", "3f2_Po.2,3f2_"), ("/feed/", "public:3f2_FD")] {
            origin.on(get(path)).reply(page("old").field("x-litespeed-tag", tags));
            site.get(path).await.body("old").no_field("x-litespeed-tag");
            origin.on(get(path)).reply(page("new"));
        }
        origin.on(get("/wp-admin/tools.php")).reply(ok("done").field(field, value));
        site.get("/wp-admin/tools.php").await.status(200).no_field(field);
        for path in PAGES {
            let answer = site.get(path).await;
            assert_eq!(answer.text(), if changed.contains(&path) { "new" } else { "old" }, "{path} after {value}");
        }
    }
}

/// Any server may write such a field; only those of which it is known are obeyed.
#[tokio::test]
async fn other_kinds_of_site_obey_no_such_field() {
    let (origin, site) = stored("kind = \"generic\"\n[refill]\nconcurrency = 0\n[cache]\nhold = \"1h\"\n").await;
    origin
        .on(post("/x"))
        .reply(ok("").field("seawall-purge", "*").field("x-litespeed-purge", "*").field("seawall-plugin", "wordpress/1.0"));
    let answer = site.request(Req::post("/x")).await.status(200);
    answer.no_field("seawall-purge").no_field("x-litespeed-purge").no_field("seawall-plugin");
    all_are(&site, "old").await;
}

const SECRET: &str = "[wordpress]\nsecret = \"a secret of sixteen characters\"\n";
const PURGE: &str = r#"{"purge":["post-12","url=/post/"],"soft":false,"reason":"transition_post_status"}"#;
/// The time at which the clock of a test begins, in seconds, and the signature of then.
const NOW: &str = "1767225600";
const SIGNED_NOW: &str = "1783c0b9abd89d5892ae4528ab48b7ae6846f74ec796b0c7e62bc895d6c5670c";

fn purge(content: &str) -> Req {
    Req::post("/.seawall/wordpress").field("content-type", "application/json").body(content)
}

fn signed(hmac: &str, at: &str, content: &str) -> Req {
    purge(content).field("seawall-signature", format!("t={at}, sha256={hmac}"))
}

#[tokio::test]
async fn a_signed_purge_is_carried_out_before_it_is_answered() {
    for (hmac, at) in [(SIGNED_NOW, NOW), ("afcf822c79155c2d5e0fcff01a35c0025d355416f2306597a0d4dce5cd9470c6", "1767225900")] {
        let (origin, site) = stored(&format!("{WORDPRESS}{SECRET}")).await;
        let client = site.client().await;
        let answer = client.with_host("any.example").request(signed(hmac, at, PURGE)).await.status(200).field("cache-control", "no-store");
        let said: serde_json::Value = serde_json::from_str(&answer.text()).expect("JSON");
        assert_eq!((&said["purged"], &said["covered"]), (&2.into(), &serde_json::json!(["post-12", "url=/post/"])));
        site.get("/post/").await.body("new");
        for path in ["/", "/about/", "/feed/"] {
            site.get(path).await.body("old").x_cache("HIT");
        }
        origin.kill();
    }
}

/// Hard is what a plugin says if it says nothing.
#[tokio::test]
async fn a_purge_is_soft_if_it_says_so() {
    let soft = r#"{"purge":["*"],"soft":true}"#;
    let (origin, site) = stored(&format!("{WORDPRESS}{SECRET}")).await;
    site.request(signed("db7f5d870e13c2c51b7e71c6e0ef87b58a0236b925bc9f49312a5ee619304025", NOW, soft)).await.status(200);
    site.get("/").await.body("new");
    origin.kill();
    site.get("/post/").await.body("old").x_cache("STALE");

    let (origin, site) = stored(&format!("{WORDPRESS}{SECRET}")).await;
    site.request(signed(SIGNED_NOW, NOW, PURGE)).await.status(200);
    origin.kill();
    site.get("/post/").await.status(502);
    site.get("/").await.body("old");
}

#[tokio::test]
async fn a_purge_that_is_not_signed_rightly_is_refused_with_the_remedy() {
    for (request, code, words) in [
        (purge(PURGE), 401, "not signed"),
        (purge(PURGE).field("seawall-signature", "sha256"), 401, "not signed"),
        (purge(PURGE).field("seawall-signature", format!("sha256={SIGNED_NOW}")), 401, "not signed"),
        (purge(PURGE).field("seawall-signature", format!("t={NOW}, sha256=zz")), 401, "not signed"),
        // A Ghost's field is none here.
        (purge(PURGE).field("x-ghost-signature", format!("sha256={SIGNED_NOW}, t={NOW}")), 401, "not signed"),
        (signed("00", NOW, PURGE), 403, "SEAWALL_SECRET"),
        (signed(SIGNED_NOW, "1767225601", PURGE), 403, "SEAWALL_SECRET"),
        (signed(SIGNED_NOW, NOW, r#"{"purge":["*"]}"#), 403, "SEAWALL_SECRET"),
        // Over the content alone, and with the time behind it.
        (signed("891b2cd3edea105fffc8f78b6340bd200dd92668ee65d15d889dfd42ff801ebe", NOW, PURGE), 403, "SEAWALL_SECRET"),
        (signed("48ddb2b2d9a4d39d4286de82dca6e1ff38bc8c38657c37512e6297ff7be8c9da", NOW, PURGE), 403, "SEAWALL_SECRET"),
        // Signed rightly, and long ago or ahead.
        (signed("74505e24a752c2fab0c5071239bc65c52a4c7fcc7e399aba2c3199514fb48449", "1767225299", PURGE), 403, "clocks"),
        (signed("3cdc31e33e49fa5cf913be9547be12f3bb19830b46033943c92813adbaf0918b", "1767225901", PURGE), 403, "clocks"),
        (signed(SIGNED_NOW, "18446744073709551615", PURGE), 403, "clocks"),
    ] {
        let (_origin, site) = stored(&format!("{WORDPRESS}{SECRET}")).await;
        site.request(request).await.status(code).body_contains(words);
        all_are(&site, "old").await;
    }
    let (_origin, site) = stored(&format!("{WORDPRESS}{SECRET}")).await;
    site.clock.advance(secs(301));
    site.request(signed(SIGNED_NOW, NOW, PURGE)).await.status(403).body_contains("clocks");
}

/// Whoever has overheard a purge must not empty the cache with it again and again.
#[tokio::test]
async fn a_signature_counts_once() {
    let (_origin, site) = stored(&format!("{WORDPRESS}{SECRET}")).await;
    site.request(signed(SIGNED_NOW, NOW, PURGE)).await.status(200);
    site.get("/post/").await.body("new");
    for later in [0, 1, 299] {
        site.clock.advance(secs(later));
        site.request(signed(SIGNED_NOW, NOW, PURGE)).await.status(403).body_contains("came before");
        site.request(signed(&SIGNED_NOW.to_uppercase(), NOW, PURGE)).await.status(403).body_contains("came before");
        site.get("/post/").await.body("new").x_cache("HIT");
    }
    site.clock.advance(secs(1));
    site.request(signed(SIGNED_NOW, NOW, PURGE)).await.status(403).body_contains("clocks");
    // The same order, signed a second later, is another message.
    let (_origin, site) = stored(&format!("{WORDPRESS}{SECRET}")).await;
    site.request(signed(SIGNED_NOW, NOW, PURGE)).await.status(200);
    site.get("/post/").await.x_cache("MISS");
    site.request(signed("27412251a7d5e6c20cd534e9121cc2322eea70f69b4a2d271019d02ad8dc0c35", "1767225601", PURGE)).await.status(200);
    site.get("/post/").await.x_cache("MISS");
    // One that is refused does not keep the right one out.
    let (_origin, site) = stored(&format!("{WORDPRESS}{SECRET}")).await;
    site.request(signed(SIGNED_NOW, NOW, "{}")).await.status(403).body_contains("SEAWALL_SECRET");
    site.request(signed(SIGNED_NOW, NOW, PURGE)).await.status(200);
}

#[tokio::test]
async fn without_a_secret_a_purge_is_taken_from_whoever_may_purge() {
    let (_origin, site) = wordpress().await;
    site.request(purge(PURGE)).await.status(200);
    site.get("/post/").await.body("new");
    for stranger in
        [purge(PURGE).field("x-forwarded-for", "192.0.2.7"), purge(PURGE).field("origin", "https://evil.example").field("cookie", "a=b")]
    {
        let (_origin, site) = wordpress().await;
        site.request(stranger).await.status(403).body_contains("secret in [wordpress]");
        all_are(&site, "old").await;
    }
}

#[tokio::test]
async fn a_purge_that_is_not_understood_is_refused_and_one_of_nothing_is_not() {
    let (origin, site) = wordpress().await;
    for content in ["", "{}", "*", r#"{"purge":"*"}"#] {
        site.request(purge(content)).await.status(400).body_contains("JSON");
    }
    let large = format!(r#"{{"purge":["{}"]}}"#, "a".repeat(64 << 10));
    site.request(purge(&large)).await.status(413).body_contains("64 KiB");
    site.request(Req::post("/.seawall/wordpress").chunks(vec![vec![b' '; 16 << 10]; 5])).await.status(413);
    site.request(purge(r#"{"purge":[]}"#)).await.status(200);
    all_are(&site, "old").await;
    // More things than can be named are everything.
    let tags = (0..257).map(|n| format!("\"t{n}\"")).collect::<Vec<_>>().join(",");
    site.request(purge(&format!("{{\"purge\":[{tags}]}}"))).await.status(200);
    all_are(&site, "new").await;
    // WordPress has seen none of them.
    assert_eq!(origin.count("/.seawall/wordpress"), 0);
}

/// As `wp_remote_request` of WordPress 6.8.7 sends them for Proxy Cache Purge and nginx-helper, from PHP on this machine.
#[tokio::test]
async fn plugins_that_send_purge_requests_work_as_they_are() {
    let by_php = |verb: &str, target: &str| {
        Req::new(verb, target)
            .field("user-agent", "WordPress/6.8.7; http://blog.example")
            .field("accept", "*/*")
            .field("accept-encoding", "deflate, gzip, br, zstd")
            .field("connection", "close")
    };
    for (request, changed) in [
        (by_php("PURGE", "/post/").field("x-purge-method", "default"), &["/post/"][..]),
        (by_php("PURGE", "/.*").field("x-purge-method", "regex"), &PAGES),
        (by_php("GET", "/purge/post/"), &["/post/"]),
        (by_php("PURGE", "/purgeall"), &PAGES),
    ] {
        let (_origin, site) = stored(&format!("{WORDPRESS}[purge]\npath = \"/purge\"\n")).await;
        site.request(request).await.status(200);
        for path in PAGES {
            site.get(path).await.body(if changed.contains(&path) { "new" } else { "old" });
        }
    }
    // Without the setting, it is a path like any other: a page may be there.
    let (origin, site) = wordpress().await;
    origin.on(get("/purge/post/")).reply(status(404));
    site.request(by_php("GET", "/purge/post/")).await.status(404);
    all_are(&site, "old").await;
}
