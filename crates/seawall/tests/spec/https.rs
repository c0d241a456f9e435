//! To https, and never round in circles (RFC 9110 §15.4, RFC 6797).

use testkit::{Answer, Origin, Req, get, ok, post, secs};

use crate::site::{HOST, Site, site_with};

const BEHIND_A_ROUTER: &str = "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n[https]\nredirect = true\n";

async fn said(site: &Site, request: Req, scheme: &str) -> Answer {
    site.request(request.field("x-forwarded-proto", scheme)).await
}

/// A platform's router ends TLS and says so: http is sent to https, with host and target as they were.
#[tokio::test]
async fn what_the_router_calls_http_is_sent_to_https() {
    let (origin, site) = site_with(BEHIND_A_ROUTER).await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    said(&site, Req::get("/post"), "https").await.status(200).body("text").cache_status("stored");
    said(&site, Req::get("/post"), "https").await.status(200).cache_status("hit");
    let answer = said(&site, Req::get("/post?a=%20b"), "http").await;
    answer.status(301).field("location", &format!("https://{HOST}/post?a=%20b")).field_contains("cache-control", "private");
    said(&site, Req::head("/post"), "http").await.status(301);
    said(&site, Req::post("/post").body("x"), "http").await.status(308).field("location", &format!("https://{HOST}/post"));
    assert_eq!(origin.count("/post"), 1);
}

/// Nothing said is not "http": a health check that comes past the router is answered as it came. Nor is a stranger's word.
#[tokio::test]
async fn nothing_said_is_no_reason_to_redirect() {
    let (origin, site) = site_with(BEHIND_A_ROUTER).await;
    origin.on(get("/post")).reply(ok("text"));
    site.get("/post").await.status(200);
    said(&site, Req::get("/post"), "").await.status(200);
    said(&site, Req::get("/post"), "unknown").await.status(200);

    let (origin, site) = site_with("[https]\nredirect = true\n[server]\ntrusted_proxies = [\"192.0.2.0/24\"]").await;
    origin.on(get("/post")).reply(ok("text"));
    said(&site, Req::get("/post"), "http").await.status(200);
}

/// A proxy that says "http" of visitors who are on https would send them round for ever. Browsers show it: Sec-Fetch-* is sent over https.
#[tokio::test]
async fn a_proxy_that_is_wrong_makes_no_loop() {
    let (origin, site) = site_with(BEHIND_A_ROUTER).await;
    origin.on(get("/post")).reply(ok("text"));
    said(&site, Req::get("/post").field("sec-fetch-mode", "navigate"), "http").await.status(200);
    // Two proxies, of which the first has seen TLS.
    said(&site, Req::get("/post"), "https, http").await.status(200);
}

/// RFC 8555 §8.3: certificate authorities ask over http.
#[tokio::test]
async fn proofs_for_certificate_authorities_are_served_over_http() {
    let (origin, site) = site_with(BEHIND_A_ROUTER).await;
    origin.on(get("/.well-known/acme-challenge/token")).reply(ok("proof"));
    said(&site, Req::get("/.well-known/acme-challenge/token"), "http").await.status(200).body("proof");
    said(&site, Req::get("/.well-known/acme-challenge/../../post"), "http").await.status(301);
}

/// A platform's health check comes over plain http, for no host in particular, and wants to hear nothing but that we are there.
#[tokio::test]
async fn a_health_check_is_answered_as_it_comes() {
    let toml = BEHIND_A_ROUTER.replace("[https]", "health_path = \"/up\"\n[https]");
    let (origin, mut site) = site_with(&toml).await;
    said(&site, Req::get("/up"), "http").await.status(200).body("ok\n").field("cache-control", "no-store");
    site.client().await.with_host("10.0.0.5:8080").get("/up").await.status(200);
    said(&site, Req::get("/upper"), "http").await.status(301);
    // What was stored as a page before is none any more.
    origin.on(get("/up")).reply(ok("page").field("cache-control", "max-age=60"));
    let source = format!("source = \"{}\"\n", origin.url());
    site.reload(&source).expect("reloaded");
    let mut client = site.client().await;
    for status in ["fwd=uri-miss", "hit", "hit", "hit"] {
        client.get("/up").await.body("page").cache_status(status);
    }
    site.reload(&format!("{source}{toml}")).expect("reloaded");
    client.get("/up").await.body("ok\n");
}

/// A router with a private address, as platforms and containers have it; this machine is one of them.
#[tokio::test]
async fn private_networks_may_be_trusted_by_name() {
    let (origin, site) = site_with("[server]\ntrusted_proxies = [\"private\"]\n[https]\nredirect = true").await;
    origin.on(get("/post")).reply(ok("text"));
    said(&site, Req::get("/post"), "http").await.status(301);
    said(&site, Req::get("/post").field("x-forwarded-for", "203.0.113.9"), "https").await.status(200);
    assert_eq!(origin.last("/post").field("x-real-ip").as_deref(), Some("203.0.113.9"));
}

/// Each site for itself.
#[tokio::test]
async fn a_site_may_stay_on_http() {
    let (origin, both) = (Origin::start(), Req::get("/"));
    origin.on(get("/")).reply(ok("text"));
    let site = |name: &str, rest: &str| format!("[[site]]\nhosts = [\"{name}\"]\nsource = \"{}\"\n{rest}", origin.url());
    let sites = format!("{BEHIND_A_ROUTER}{}{}", site("one.example", ""), site("two.example", "[site.https]\nredirect = false\n"));
    let site = Site::start(&sites);
    for (host, status) in [("one.example", 301), ("two.example", 200), ("three.example", 421)] {
        let mut client = site.client().await.with_host(host);
        client.request(both.clone().field("x-forwarded-proto", "http")).await.status(status);
    }
}

/// RFC 6797 §7.2: over https alone; on hits and confirmations too. What the origin says of it stays.
#[tokio::test]
async fn browsers_are_told_to_come_back_over_https() {
    let hsts = format!("{BEHIND_A_ROUTER}hsts = \"365d\"\nhsts_subdomains = true\n");
    let (origin, site) = site_with(&hsts).await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60").field("etag", "\"a\""));
    origin.on(get("/own")).reply(ok("text").field("strict-transport-security", "max-age=1"));
    for status in ["fwd=uri-miss", "hit"] {
        let answer = said(&site, Req::get("/post"), "https").await.status(200).cache_status(status);
        answer.field("strict-transport-security", "max-age=31536000; includeSubDomains");
    }
    said(&site, Req::get("/own"), "https").await.field("strict-transport-security", "max-age=1");
    said(&site, Req::get("/post"), "http").await.status(301).no_field("strict-transport-security");
    site.get("/post").await.status(200).no_field("strict-transport-security");
}

/// A server's answers are its own affair, unless it is asked for; and what it says itself stays.
#[tokio::test]
async fn security_fields_for_a_server_are_asked_for() {
    let (origin, site) = site_with("").await;
    origin.on(get("/post")).reply(ok("text").field("content-type", "text/html"));
    site.get("/post").await.no_field("x-content-type-options").no_field("x-frame-options").no_field("referrer-policy");

    let (origin, site) = site_with("[headers]\nsecurity = true").await;
    origin.on(get("/post")).reply(ok("text").field("content-type", "text/html").field("cache-control", "max-age=60"));
    origin.on(get("/own")).reply(ok("text").field("content-type", "text/html").field("x-frame-options", "DENY"));
    origin.on(get("/script.js")).reply(ok("text").field("content-type", "text/javascript"));
    for status in ["stored", "hit"] {
        let answer = site.get("/post").await.cache_status(status).field("x-content-type-options", "nosniff");
        answer.field("x-frame-options", "SAMEORIGIN").field("referrer-policy", "strict-origin-when-cross-origin");
    }
    site.get("/own").await.field("x-frame-options", "DENY");
    site.get("/script.js").await.field("x-content-type-options", "nosniff").no_field("x-frame-options");
}

/// A folder of files: its types are ours, so nobody need guess them. Its pages may be meant for frames.
#[tokio::test]
async fn a_folder_gets_what_breaks_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("index.html"), "<p>hi").expect("written");
    let source = format!("source = \"{}\"\n", folder.path().display());
    let site = Site::start(&source);
    let answer = site.get("/").await.status(200).field("x-content-type-options", "nosniff");
    answer.field("referrer-policy", "strict-origin-when-cross-origin").no_field("x-frame-options");
    let site = Site::start(&format!("{source}[headers]\nsecurity = false"));
    site.get("/").await.status(200).no_field("x-content-type-options").no_field("referrer-policy");
}

/// Added, taken away, replaced; on what passes and on what is stored, and the next response shows a change.
#[tokio::test]
async fn fields_are_added_and_taken_away() {
    let rules =
        "[headers]\nset = [\"X-Robots-Tag: noindex\", \"Server: none\", \"X-Own: ours\"]\nremove = [\"Server\", \"X-Powered-By\"]\n";
    let (origin, mut site) = site_with(rules).await;
    let reply = || ok("text").field("server", "nginx").field("x-powered-by", "PHP").field("x-own", "theirs").field("etag", "\"a\"");
    origin.on(get("/post")).once().reply(reply().field("cache-control", "max-age=60"));
    origin.on(post("/form")).reply(reply());
    for status in ["fwd=uri-miss", "hit"] {
        let answer = site.get("/post").await.cache_status(status).no_field("x-powered-by").field("server", "none");
        answer.field("x-robots-tag", "noindex").field("x-own", "theirs");
    }
    site.request(Req::post("/form").body("x")).await.no_field("x-powered-by").field("server", "none").field("x-robots-tag", "noindex");

    // A 304 brings nothing back that was taken away.
    site.clock.advance(secs(61));
    origin.on(get("/post")).once().reply(testkit::not_modified().field("server", "nginx").field("x-powered-by", "PHP"));
    site.get("/post").await.cache_status("fwd-status=304").field("server", "none").no_field("x-powered-by").field("x-own", "theirs");

    origin.on(get("/post")).reply(reply().field("cache-control", "max-age=60"));
    site.reload(&format!("source = \"{}\"\n", origin.url())).expect("reloaded");
    site.get("/post").await.field("server", "nginx").field("x-powered-by", "PHP").no_field("x-robots-tag");
}
