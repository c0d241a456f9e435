//! Webhooks of a Ghost: `POST /.seawall/ghost`, signed with a secret or sent by somebody who may purge. The signatures are those of OpenSSL's
//! `dgst -sha256 -hmac`.

use testkit::{Origin, Reply, Req, get, ok, secs, status};

use crate::site::{HOST, Site, site_with};

const GHOST: &str = "kind = \"ghost\"\n[cache]\ntwo_visitor_proof = false\n[refill]\nconcurrency = 0\n";
const SECRET: &str = "[ghost]\nwebhook_secret = \"a secret of sixteen characters\"\n";

const SITE_CHANGED: &str = r#"{"event":"site.changed"}"#;
/// The time at which the clock of a test begins, and the signature of then.
const NOW: &str = "1767225600000";
const SIGNED_NOW: &str = "752c1f84ced3be3e1b35cf6dc548592a2be99b92327b686f6f4ed3146569410b";

fn page(text: &'static str) -> Reply {
    ok(text).field("cache-control", "public, max-age=0").field("content-type", "text/html").field("etag", format!("\"{text}\""))
}

async fn stored(toml: &str) -> (Origin, Site) {
    let (origin, site) = site_with(&format!("{GHOST}{toml}")).await;
    for path in ["/", "/post/"] {
        origin.on(get(path)).reply(page("old"));
        site.get(path).await.body("old");
        origin.on(get(path)).reply(page("new"));
    }
    (origin, site)
}

fn webhook(content: &str) -> Req {
    Req::post("/.seawall/ghost").field("content-type", "application/json").body(content)
}

fn signed(hmac: &str, at: &str) -> Req {
    webhook(SITE_CHANGED).field("x-ghost-signature", format!("sha256={hmac}, t={at}"))
}

#[tokio::test]
async fn a_webhook_that_is_signed_purges_softly_what_readers_see() {
    for (hmac, at) in [
        (SIGNED_NOW, NOW),
        // Clocks differ.
        ("a6c8cedc5df465955546541666e002008f61c11a9a9e471ef5cf73d56b4a3d6d", "1767225900000"),
        // As older Ghosts sign.
        ("c26524a5ba602875c693389b1bcdbefec8e6f8d555551062d2e09ce35f803f26", NOW),
    ] {
        let (origin, site) = stored(SECRET).await;
        site.request(signed(hmac, at)).await.status(200).field("cache-control", "no-store");
        site.get("/").await.body("new");
        origin.kill();
        site.get("/post/").await.body("old").x_cache("STALE");
    }
}

/// Every host of the site has it, and Ghost never sees it.
#[tokio::test]
async fn a_webhook_may_be_sent_to_any_host_of_the_site() {
    let (_origin, site) = stored(SECRET).await;
    site.client().await.with_host("other.example").request(signed(SIGNED_NOW, NOW)).await.status(200);
    site.get("/").await.body("new");
}

#[tokio::test]
async fn a_webhook_that_is_not_signed_rightly_is_refused_with_the_remedy() {
    for (request, code) in [
        (webhook(SITE_CHANGED), 401),
        (webhook(SITE_CHANGED).field("x-ghost-signature", "sha256"), 401),
        (webhook(SITE_CHANGED).field("x-ghost-signature", format!("sha256={SIGNED_NOW}")), 401),
        (webhook(SITE_CHANGED).field("x-ghost-signature", format!("sha256=zz, t={NOW}")), 401),
        (signed("00", NOW), 403),
        (signed(SIGNED_NOW, "1767225600001"), 403),
        // Signed rightly, and long ago or ahead.
        (signed("595476cb85e49badef4eb146f5d11b7fc894d78ed1f3fcd7de4ae629fc8a7db8", "1767225299999"), 403),
        (signed("0fa932246aa953a90cca09a4fbe3dee610cca03119b9d30c6e84c3a0910a17e6", "1767225900001"), 403),
        (webhook("{}").field("x-ghost-signature", format!("sha256={SIGNED_NOW}, t={NOW}")), 403),
        // An address that may purge is no signature.
        (webhook(SITE_CHANGED).field("x-purge-token", "x"), 401),
    ] {
        let (_origin, site) = stored(SECRET).await;
        let answer = site.request(request).await.status(code);
        assert!(answer.text().contains("Ghost") || answer.text().contains("clocks"), "{answer}");
        site.get("/").await.body("old").x_cache("HIT");
    }
}

/// Sent again later, the same webhook is worth nothing.
#[tokio::test]
async fn a_webhook_is_not_taken_again_after_five_minutes() {
    let (_origin, site) = stored(SECRET).await;
    site.clock.advance(secs(301));
    site.request(signed(SIGNED_NOW, NOW)).await.status(403);
}

/// Whoever has overheard a webhook must not mark the site stale with it again and again. Its sender may repeat it, and has nothing to mend.
#[tokio::test]
async fn a_signature_counts_once_and_may_come_again() {
    // With the time in what is signed, and as older Ghosts sign: without it.
    for hmac in [SIGNED_NOW, "c26524a5ba602875c693389b1bcdbefec8e6f8d555551062d2e09ce35f803f26"] {
        let (_origin, site) = stored(SECRET).await;
        site.request(signed(hmac, NOW)).await.status(200).body_contains("marked stale");
        site.get("/").await.body("new");
        for later in [0, 1, 299] {
            site.clock.advance(secs(later));
            for again in [signed(hmac, NOW), signed(&hmac.to_uppercase(), NOW)] {
                site.request(again).await.status(200).body_contains("came before");
                site.get("/").await.body("new").x_cache("HIT");
            }
        }
    }
    // The same news, signed a second later, is another webhook.
    let (_origin, site) = stored(SECRET).await;
    site.request(signed(SIGNED_NOW, NOW)).await.status(200);
    site.get("/").await.body("new");
    let later = "f45680e60e98ea832d9cef5d2a552b9aedf107ce8d920cb0b2b6955371008db2";
    site.request(signed(later, "1767225601000")).await.status(200).body_contains("marked stale");
    // One that is refused does not keep the right one out.
    let (_origin, site) = stored(SECRET).await;
    site.request(webhook("{}").field("x-ghost-signature", format!("sha256={SIGNED_NOW}, t={NOW}"))).await.status(403);
    site.request(signed(SIGNED_NOW, NOW)).await.status(200).body_contains("marked stale");
}

/// Two Ghosts may have the same secret, and say the same at the same moment.
#[tokio::test]
async fn a_signature_counts_for_each_site() {
    let [one, two] = [Origin::start(), Origin::start()];
    let of = |host: &str, origin: &Origin| {
        format!(
            "[[site]]\nhosts = [\"{host}\"]\nsource = \"{}\"\nkind = \"ghost\"\n[site.ghost]\nwebhook_secret = \"a secret of sixteen characters\"\n",
            origin.url()
        )
    };
    let site = Site::start(&[of("one.example", &one), of("two.example", &two)].concat());
    for (host, origin) in [("one.example", &one), ("two.example", &two)] {
        origin.on(get("/")).reply(page("public"));
        let mut client = site.client().await.with_host(host);
        client.request(signed(SIGNED_NOW, NOW)).await.status(200).body_contains("marked stale");
        client.request(signed(SIGNED_NOW, NOW)).await.status(200).body_contains("came before");
    }
}

/// Without a secret, it is a purge request like any other: from this machine, or with the token.
#[tokio::test]
async fn without_a_secret_a_webhook_is_taken_from_whoever_may_purge() {
    let (_origin, site) = stored("").await;
    site.request(webhook(SITE_CHANGED)).await.status(200);
    site.get("/").await.body("new");

    for stranger in
        [webhook(SITE_CHANGED).field("x-forwarded-for", "192.0.2.7"), webhook(SITE_CHANGED).field("origin", "https://evil.example")]
    {
        let (_origin, site) = stored("").await;
        let answer = site.request(stranger).await.status(403);
        assert!(answer.text().contains("webhook_secret"), "{answer}");
        site.get("/").await.body("old").x_cache("HIT");
    }
}

#[tokio::test]
async fn only_what_readers_see_is_purged() {
    let post = |now: &str, before: &str| format!(r#"{{"post":{{"current":{now},"previous":{before}}}}}"#);
    for (content, purges) in [
        ("{}".to_owned(), true),
        (post(r#"{"status":"published","html":"<p>a</p>"}"#, "{}"), true),
        (post(r#"{"status":"draft"}"#, r#"{"status":"published"}"#), true),
        (post("{}", r#"{"status":"published"}"#), true),
        (r#"{"page":{"current":{"status":"published"},"previous":{}}}"#.to_owned(), true),
        (r#"{"tag":{"current":{"name":"a"},"previous":{}}}"#.to_owned(), true),
        (post(r#"{"status":"draft"}"#, "{}"), false),
        (post(r#"{"status":"scheduled"}"#, r#"{"status":"draft"}"#), false),
        (r#"{"member":{"current":{"status":"free"},"previous":{}}}"#.to_owned(), false),
    ] {
        let (_origin, site) = stored("").await;
        site.request(webhook(&content)).await.status(200);
        site.get("/").await.body(if purges { "new" } else { "old" });
    }
}

/// Ghost deletes a webhook that is answered with 410; and no form of it makes another.
#[tokio::test]
async fn a_webhook_that_is_not_understood_is_refused() {
    let (_origin, site) = stored("").await;
    for content in ["", "[]", "site.changed"] {
        site.request(webhook(content)).await.status(400);
    }
    let large = Req::post("/.seawall/ghost").field("content-length", "16777217").field("connection", "close");
    site.request(large).await.status(413);
    site.request(Req::post("/.seawall/ghost").chunks(vec![vec![b' '; 1 << 20]; 17])).await.status(413);
    site.get("/").await.body("old").x_cache("HIT");
}

/// A post may be long. It is verified as a whole. What it says is not to be known, and it may be that a post was taken back.
#[tokio::test]
async fn a_webhook_that_is_too_large_to_be_kept_ends_everything_if_it_is_signed() {
    let content = format!(r#"{{"post":{{"current":{{"status":"published","html":"{}"}}}}}}"#, "a".repeat(3_000_000));
    for (hmac, code) in [("4d7bf01b5f9c193918943be0ab5da4c7a5f6280209ca95d8189af11065452497", 200), (SIGNED_NOW, 403)] {
        let (origin, site) = stored(SECRET).await;
        site.request(webhook(&content).field("x-ghost-signature", format!("sha256={hmac}, t={NOW}"))).await.status(code);
        site.get("/").await.body(if code == 200 { "new" } else { "old" });
        origin.kill();
        assert_eq!(site.get("/post/").await.code, if code == 200 { 502 } else { 200 });
    }
}

/// Older Ghosts sign the content alone, so a signature of content and time is one of the two as a content.
#[tokio::test]
async fn an_overheard_signature_is_not_one_of_content_that_has_the_time_in_it() {
    let long = format!(r#"{{"post":{{"current":{{"status":"published","html":"{}"}}}}}}"#, "a".repeat(3_000_000));
    let of_long = "4d7bf01b5f9c193918943be0ab5da4c7a5f6280209ca95d8189af11065452497";
    for (content, hmac) in [(SITE_CHANGED, SIGNED_NOW), (&*long, of_long)] {
        let (_origin, site) = stored(SECRET).await;
        site.clock.advance(secs(60));
        let replayed = webhook(&format!("{content}{NOW}")).field("x-ghost-signature", format!("sha256={hmac}, t=1767225660000"));
        site.request(replayed).await.status(403);
        site.get("/").await.body("old");
    }
}

/// A post may be as long as a book, and is gone all the same when it is a draft again.
#[tokio::test]
async fn a_long_post_that_was_taken_back_is_gone_although_ghost_is_away() {
    let (origin, site) = stored(SECRET).await;
    let (text, url) = ("a".repeat(1_000_000), format!("http://{HOST}/post/"));
    let content =
        format!(r#"{{"post":{{"current":{{"status":"draft","html":"{text}"}},"previous":{{"status":"published","url":"{url}"}}}}}}"#);
    let hmac = "b04312999a17b76ca153e9dafaa529395d555a6fe762dfe528a863a084dfe12f";
    site.request(webhook(&content).field("x-ghost-signature", format!("sha256={hmac}, t={NOW}"))).await.status(200);
    origin.kill();
    assert_eq!(site.get("/post/").await.code, 502);
    site.get("/").await.body("old").x_cache("STALE");
}

/// Whoever has no secret can begin as many webhooks as he likes.
#[tokio::test]
async fn webhooks_that_never_end_keep_no_other_from_being_taken() {
    let (_origin, site) = stored(SECRET).await;
    let mut held = Vec::new();
    for _ in 0..70 {
        let mut stranger = site.client().await;
        let head = format!("POST /.seawall/ghost HTTP/1.1\r\nhost: {HOST}\r\nx-ghost-signature: sha256={SIGNED_NOW}, t={NOW}\r\n");
        stranger.send_raw(format!("{head}content-length: 1000000\r\n\r\n{}", "x".repeat(1000))).await;
        held.push(stranger);
    }
    site.request(signed(SIGNED_NOW, NOW)).await.status(200);
    site.get("/").await.body("new");
}

/// Another kind of site has a page at that address like at any other.
#[tokio::test]
async fn only_a_ghost_has_webhooks() {
    let (origin, site) = site_with("").await;
    origin.on(testkit::post("/.seawall/ghost")).reply(status(404));
    site.client().await.with_host(HOST).request(webhook(SITE_CHANGED)).await.status(404);
}
