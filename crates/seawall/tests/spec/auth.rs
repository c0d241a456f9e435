//! Passwords (RFC 7617, RFC 9110 §11): who has one sees what the cache has; who has none sees nothing, however the path is spelt.

use std::fs;

use testkit::{Answer, Gate, Req, get, ok, post, secs};

use crate::site::{Site, site, site_with};

/// "secret", by `htpasswd -nbs` and, with cost 4, `htpasswd -nbB`.
const SHA: &str = "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=";
pub(crate) const BCRYPT: &str = "$2y$04$ZOlm2gmsD9P0G0L60nZfAe99.npf49SEJ3E5lflgNgrneDy.suZba";
/// "ada:secret", "bob:secret", "ada:wrong".
pub(crate) const ADA: &str = "Basic YWRhOnNlY3JldA==";
const BOB: &str = "Basic Ym9iOnNlY3JldA==";
const WRONG: &str = "Basic YWRhOndyb25n";

/// Returns a site that asks for passwords, and its origin; ada's is "secret".
pub(crate) async fn guarded(toml: &str) -> (testkit::Origin, Site) {
    let (origin, mut site) = site().await;
    fs::write(site.folder().join("users"), format!("ada:{BCRYPT}\n")).expect("written");
    site.reload(&format!("source = \"{}\"\n[auth]\nfile = \"users\"\n{toml}", origin.url())).expect("reloaded");
    (origin, site)
}

async fn with(site: &Site, target: &str, authorization: &str) -> Answer {
    site.request(Req::get(target).field("authorization", authorization)).await
}

/// Nobody gets the page without a password or with a wrong one, and everybody with the right one; and the origin hears of the last one
/// alone.
#[tokio::test]
async fn a_page_is_for_those_who_have_a_password() {
    let (origin, site) = guarded("realm = \"The \\\"drafts\\\"\"").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "public, max-age=60"));
    let answer = site.get("/post").await.status(401).field("www-authenticate", "Basic realm=\"The \\\"drafts\\\"\", charset=\"UTF-8\"");
    answer.field("cache-control", "no-store");
    for wrong in [WRONG, BOB, "Basic", "Basic !!", "Bearer YWRhOnNlY3JldA==", "Digest username=\"ada\""] {
        with(&site, "/post", wrong).await.status(401).has_field("www-authenticate");
    }
    assert_eq!(origin.count("/post"), 0);
    with(&site, "/post", ADA).await.status(200).body("text");
    assert_eq!(origin.last("/post").field("authorization"), None);
}

/// Everybody with a password shares what is stored, and nobody without; other caches are told that it is private.
#[tokio::test]
async fn what_a_password_opens_is_stored_here_and_nowhere_else() {
    let (origin, site) = guarded("").await;
    fs::write(site.folder().join("users"), format!("ada:{SHA}\nbob:{SHA}\n")).expect("written");
    let reply = ok("text").field("cache-control", "public, max-age=60, s-maxage=600").field("etag", "\"a\"");
    origin.on(get("/post")).reply(reply.field("cdn-cache-control", "max-age=600"));
    with(&site, "/post", ADA).await.cache_status("stored").field("cache-control", "private, max-age=60");
    with(&site, "/post", BOB)
        .await
        .cache_status("hit")
        .body("text")
        .field("cache-control", "private, max-age=60")
        .no_field("cdn-cache-control");
    let again = Req::get("/post").field("authorization", BOB).field("if-none-match", "\"a\"");
    site.request(again).await.status(304).field("cache-control", "private, max-age=60");
    let mut client = site.client().await;
    for _ in 0..3 {
        client.get("/post").await.status(401);
    }
    site.request(Req::head("/post")).await.status(401);
    site.request(Req::get("/post").field("cache-control", "only-if-cached")).await.status(401);
    site.request(Req::get("/post").field("range", "bytes=0-1")).await.status(401);
    assert_eq!(origin.count("/post"), 1);
}

/// The rest of the site stays as it was, on the shortest path too.
#[tokio::test]
async fn only_what_is_named_is_protected() {
    let (origin, site) = guarded("paths = [\"/drafts\"]").await;
    origin.on(get("/*")).reply(ok("text").field("cache-control", "public, max-age=60"));
    let mut client = site.client().await;
    for status in ["fwd=uri-miss", "hit", "hit", "hit"] {
        client.get("/post").await.status(200).cache_status(status).field("cache-control", "public, max-age=60");
    }
    client.get("/drafts/one").await.status(401);
    with(&site, "/drafts/one", ADA).await.status(200);
    for _ in 0..3 {
        client.get("/drafts/one").await.status(401);
    }
}

/// Spellings that mean a protected page to one server or another. The corpus is in the room `access`; here it comes as bytes.
#[tokio::test]
async fn no_spelling_leads_past_the_question() {
    let (origin, site) = guarded("paths = [\"/drafts\"]").await;
    let spellings = [
        "/drafts",
        "/drafts/",
        "/drafts?x",
        "/Drafts/one",
        "//drafts/one",
        "/./drafts/one",
        "/x/../drafts/one",
        "/x/%2e%2e/drafts/one",
        "/x/..%2fdrafts/one",
        "/drafts/..%2fpost",
        "/%64rafts/one",
        "/%2564rafts/one",
        "/drafts%2Fone",
        "/drafts;x/one",
        "/;/drafts/one",
        "/x/..;/drafts/one",
        "/drafts.html",
        "/drafts%00.html",
        "/drafts%20/one",
        "/drafts./one",
        "/%C0%AFdrafts/one",
        "/%EF%BD%84rafts/one",
        "/\\drafts/one",
        // What reads a request's target as a reference takes the first segment for a host.
        "//x/drafts/one",
        "///x/drafts",
        "/\\x/drafts/one",
        // What ignorable characters hide.
        "/dra%E2%80%8Bfts/one",
        // UTF-8 longer than any has it, or that only a lenient decoder reads.
        "/%F8%80%80%80%AFdrafts/one",
        "/%C1%24rafts/one",
    ];
    for target in spellings {
        site.get(target).await.status(401);
    }
    // An escape that is none may mean anything behind: IIS reads `%u0064` as a letter.
    for target in ["/%u0064rafts/one", "/%U0064rafts/one", "/%zzdrafts", "/drafts%", "/post%2", "/%%364rafts", "/%+64rafts/one"] {
        site.get(target).await.status(400);
        with(&site, target, ADA).await.status(400);
    }
    site.get("/%25u0064rafts/one").await.status(401);
    site.request(Req::get("http://blog.example/drafts/one")).await.status(401);
    for method in ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"] {
        site.request(Req::new(method, "/drafts/one")).await.status(401);
    }
    assert_eq!(origin.requests().len(), 0);
}

/// HTTP/1.0 needs no `Host`, and a site that answers for every host answers such a request, too: with the question.
#[tokio::test]
async fn a_request_without_a_host_is_asked_like_any_other() {
    let (origin, site) = guarded("").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "public, max-age=60"));
    with(&site, "/post", ADA).await.status(200);
    for head in ["GET /post HTTP/1.0\r\n\r\n", "HEAD /post HTTP/1.0\r\n\r\n", "POST /post HTTP/1.0\r\nContent-Length: 0\r\n\r\n"] {
        let mut client = site.client().await;
        client.send_raw(head).await;
        client.read_head().await.status(401);
    }
    assert_eq!(origin.count("/post"), 1);
}

/// A password that a browser sends along beside its page is ours, and not the origin's. Another's is the origin's affair.
#[tokio::test]
async fn our_password_never_reaches_the_origin_unless_it_is_to() {
    let (origin, site) = guarded("paths = [\"/drafts\"]").await;
    origin.on(get("/*")).reply_with(|seen| ok(seen.field("authorization").unwrap_or_default()).field("cache-control", "max-age=60"));
    with(&site, "/post", ADA).await.status(200).body("").cache_status("stored");
    with(&site, "/post", ADA).await.cache_status("hit");
    for theirs in [WRONG, BOB, "Bearer token"] {
        with(&site, "/other", theirs).await.body(theirs);
    }

    let (origin, site) = guarded("forward = true").await;
    origin.on(get("/*")).reply_with(|seen| ok(seen.field("authorization").unwrap_or_default()).field("cache-control", "max-age=60"));
    for _ in 0..2 {
        with(&site, "/post", ADA).await.body(ADA).cache_status("fwd=uri-miss; detail=authorization");
    }
    site.get("/post").await.status(401);
}

/// A change of the file counts within a second; without the file nobody gets in.
#[tokio::test]
async fn the_file_is_looked_at_while_it_runs() {
    let (origin, site) = guarded("").await;
    origin.on(get("/post")).reply(ok("text"));
    let users = site.folder().join("users");
    with(&site, "/post", ADA).await.status(200);
    fs::write(&users, format!("bob:{SHA}\n")).expect("written");
    site.clock.advance(secs(1));
    with(&site, "/post", ADA).await.status(401);
    with(&site, "/post", BOB).await.status(200);
    fs::remove_file(&users).expect("removed");
    site.clock.advance(secs(1));
    with(&site, "/post", BOB).await.status(401);
    fs::write(&users, format!("ada:{SHA}\n")).expect("written");
    site.clock.advance(secs(1));
    with(&site, "/post", ADA).await.status(200);
}

/// Who guesses has to wait, and who knows has not, also behind the same address.
#[tokio::test]
async fn guessing_is_slowed_down() {
    let (origin, site) = guarded("").await;
    origin.on(get("/post")).reply(ok("text"));
    with(&site, "/post", ADA).await.status(200);
    for _ in 0..10 {
        with(&site, "/post", WRONG).await.status(401);
    }
    with(&site, "/post", WRONG).await.status(429).has_field("retry-after").no_field("www-authenticate");
    with(&site, "/post", ADA).await.status(200);
    site.get("/post").await.status(401);
    site.clock.advance(secs(6));
    with(&site, "/post", WRONG).await.status(401);
    with(&site, "/post", WRONG).await.status(429);
}

/// First to https, and then the question: a password is not to be asked for in the clear.
#[tokio::test]
async fn a_password_is_asked_for_over_https() {
    let (origin, mut site) = guarded("").await;
    let settings = "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n[https]\nredirect = true\nhsts = \"1d\"\n[auth]\nfile = \"users\"";
    site.reload(&format!("source = \"{}\"\n{settings}", origin.url())).expect("reloaded");
    site.request(Req::get("/post").field("x-forwarded-proto", "http")).await.status(301);
    let answer = site.request(Req::get("/post").field("x-forwarded-proto", "https")).await.status(401);
    answer.field("strict-transport-security", "max-age=86400");
}

/// A purge request shows nothing: who may send one is judged by its own rules, and a password opens none.
#[tokio::test]
async fn purge_requests_have_their_own_rules() {
    let (origin, site) = guarded("").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    with(&site, "/post", ADA).await.cache_status("stored");
    site.request(Req::new("PURGE", "/post")).await.status(200);
    with(&site, "/post", ADA).await.cache_status("fwd=uri-miss");
    site.request(Req::new("PURGE", "/post").field("x-forwarded-for", "192.0.2.1").field("authorization", ADA)).await.status(403);
}

/// What was open and is protected now is not shown to those who had it before; nor the other way round.
#[tokio::test]
async fn a_reload_locks_at_once() {
    let (origin, mut site) = guarded("paths = []").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "public, max-age=60"));
    origin.on(post("/form")).reply(ok("done"));
    let mut client = site.client().await;
    for status in ["fwd=uri-miss", "hit", "hit", "hit"] {
        client.get("/post").await.cache_status(status);
    }
    site.reload(&format!("source = \"{}\"\n[auth]\nfile = \"users\"", origin.url())).expect("reloaded");
    client.get("/post").await.status(401);
    client.request(Req::post("/form").body("x")).await.status(401);
    site.reload(&format!("source = \"{}\"", origin.url())).expect("reloaded");
    site.get("/post").await.status(200).field("cache-control", "public, max-age=60");
}

/// A crowd with the same password waits for one computation or two, not for one each.
#[tokio::test]
async fn a_crowd_with_one_password_comes_in() {
    let (origin, site) = guarded("").await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(ok("text").gate(&gate).field("cache-control", "max-age=60"));
    let mut clients = Vec::new();
    for _ in 0..50 {
        let mut client = site.client().await;
        client.send(Req::get("/post").field("authorization", ADA)).await;
        clients.push(client);
    }
    gate.arrived().await;
    gate.open();
    for mut client in clients {
        client.read_answer().await.status(200).body("text");
    }
    assert_eq!(origin.count("/post"), 1);
}

/// What is wrong with a file of users is said with its line, before anybody is kept out by it.
#[tokio::test]
async fn a_file_that_lets_nobody_in_is_refused() {
    let (origin, mut site) = site_with("").await;
    let source = origin.url();
    let mut reload = |users: &str, auth: &str| {
        fs::write(site.folder().join("users"), users).expect("written");
        site.reload(&format!("source = \"{source}\"\n[auth]\n{auth}")).expect_err(auth)
    };
    let cases = [
        ("", "file = \"nobody\"", "htpasswd -B -c"),
        ("", "file = \".\"", "not a file of users"),
        ("ada:hunter2", "file = \"users\"", "line 1: \"ada\": the password itself"),
        ("# x\nada:$6$x$y", "file = \"users\"", "line 2: \"ada\": this kind of hash"),
        ("", "paths = [\"/drafts\"]", "there is no file of users"),
        ("", "file = \"users\"\npaths = [\"drafts\"]", "did you mean \"/drafts\"?"),
        ("", "file = \"users\"\nrealm = \"\"", "not a realm"),
    ];
    for (users, auth, expected) in cases {
        let mistake = reload(users, auth);
        assert!(mistake.contains(expected) && !mistake.contains("hunter2"), "{mistake}");
    }
}
