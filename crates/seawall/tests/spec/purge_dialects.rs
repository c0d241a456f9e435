//! Purge requests on a site's own address, as plugins send them: what each covers, and who may send them.

use policy::purge::{Order, What};
use testkit::{Gate, Origin, Req, get, ok, post};

use crate::site::{HOST, Site, site, site_with};

const ALL: [&str; 5] = ["/", "/hello/", "/hello/?page=2", "/tag/a/", "/tag/b/"];
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn purge(target: &str) -> Req {
    Req::new("PURGE", target)
}

async fn store_all(origin: &Origin, site: &Site) {
    for target in ALL {
        let tag = if target.starts_with("/tag/") { "list" } else { "post-7" };
        origin.on(get(target)).reply(ok("text").field("cache-control", "max-age=600").field("surrogate-key", format!("all {tag}")));
        site.get(target).await.status(200);
        site.get(target).await.x_cache("HIT");
    }
}

/// Returns an origin that expects GETs alone, so that a purge request which reaches it fails the test.
async fn stored_site(toml: &str) -> (Origin, Site) {
    let (origin, site) = site_with(toml).await;
    store_all(&origin, &site).await;
    (origin, site)
}

/// Checks that these were purged, and no others: MISS after a hard purge, UPDATING after a soft one.
async fn assert_covered(site: &Site, covered: &[&str], x_cache: &str, what: &str) {
    for page in ALL {
        let expected = if covered.contains(&page) { x_cache } else { "HIT" };
        let answer = site.get(page).await.status(200);
        assert_eq!(answer.value("x-cache").as_deref(), Some(expected), "{what}: {page}");
    }
}

#[tokio::test]
async fn every_dialect_purges_what_it_names_and_nothing_else() {
    const HELLO: &[&str] = &["/hello/", "/hello/?page=2"];
    const TAGS: &[&str] = &["/tag/a/", "/tag/b/"];
    let souin = |rest: &str| purge(&format!("/souin-api/souin{rest}"));
    let regex = |target| purge(target).field("x-purge-method", "regex");
    let cases: Vec<(Req, &[&str], &str)> = vec![
        (purge("/hello/"), HELLO, "MISS"),
        (purge("/hello/").field("x-purge-soft", "1"), HELLO, "UPDATING"),
        (purge("/hello/").field("fastly-soft-purge", "1"), HELLO, "UPDATING"),
        (purge("/hello/").field("x-purge-method", "default"), HELLO, "MISS"),
        (regex("/tag/.*"), TAGS, "MISS"),
        (regex("/.*"), &ALL, "MISS"),
        (Req::new("BAN", "/tag/.*"), TAGS, "MISS"),
        (purge("/").field("x-purge-method", "tags").field("x-cache-tags-pattern", "post-8|list"), TAGS, "MISS"),
        (Req::get("/purge/hello/"), HELLO, "MISS"),
        (purge("/purgeall"), &ALL, "MISS"),
        (purge("/").field("surrogate-key", "list other"), TAGS, "MISS"),
        (Req::post("/service/abc/purge").field("fastly-key", "k").field("surrogate-key", "list"), TAGS, "MISS"),
        (Req::post("/service/abc/purge/list").field("fastly-key", "k").field("fastly-soft-purge", "1"), TAGS, "UPDATING"),
        (Req::post("/service/abc/purge_all").field("fastly-key", "k").field("fastly-soft-purge", "1"), &ALL, "MISS"),
        (souin("").field("surrogate-key", "other, list"), TAGS, "MISS"),
        (souin("/flush"), &ALL, "MISS"),
        (souin(&format!("/GET-http-{HOST}-/hello/")), HELLO, "MISS"),
        (purge("/").field("xkey-purge", "list"), TAGS, "MISS"),
        (purge("/").field("xkey-softpurge", "list"), TAGS, "UPDATING"),
    ];
    for (request, covered, x_cache) in cases {
        let what = format!("{request:?}");
        let (_origin, site) = stored_site("[purge]\npath = \"/purge\"\n[refill]\nconcurrency = 0").await;
        site.request(request).await.status(200).field("cache-control", "no-store");
        assert_covered(&site, covered, x_cache, &what).await;
    }
}

/// nginx-helper tells by the status whether the page was cached.
#[tokio::test]
async fn the_reply_says_what_was_covered() {
    let (_origin, site) = stored_site("[purge]\npath = \"/purge\"").await;
    site.request(purge("/hello/")).await.status(200).body_contains("purged: blog.example/hello/ (generation ").body_contains("; 2 stored)");
    let json = site.request(purge("/tag/a/").field("accept", "application/json").field("x-purge-soft", "1")).await;
    let json = json.status(200).field("content-type", "application/json").text();
    for part in [r#""status":"ok""#, r#""covered":["blog.example/tag/a/"]"#, r#""variants":1"#, r#""hard":false"#, r#""generation":"#] {
        assert!(json.contains(part), "{part} in {json}");
    }
    site.get("/hello/").await.status(200);
    site.get("/purge/hello/").await.status(200);
    site.get("/purge/hello/").await.status(404);
    let answer = site.request(purge("/a(b)/.*").field("x-purge-method", "regex")).await.status(400);
    answer.body_contains("nothing was purged").body_contains(".*");
}

/// Nobody but this machine, and whoever has the token, may purge; the origin hears of neither.
#[tokio::test]
async fn a_stranger_purges_nothing() {
    // Visitors come through a proxy: one that was not made known, and one that was.
    let (unknown, known) = ("", "[server]\ntrusted_proxies = [\"127.0.0.1/32\"]");
    let through = |fields: &[(&str, &str)]| fields.iter().fold(purge("/.*"), |request, (name, value)| request.field(name, *value));
    let cases = [
        (unknown, through(&[("x-forwarded-for", "203.0.113.9")])),
        // Forged: it does not make a visitor local.
        (unknown, through(&[("x-forwarded-for", "127.0.0.1")])),
        (unknown, through(&[("forwarded", "for=127.0.0.1")])),
        (unknown, through(&[("x-real-ip", "127.0.0.1")])),
        (unknown, through(&[("via", "1.1 proxy")])),
        (known, through(&[("x-forwarded-for", "203.0.113.9")])),
        (known, through(&[("x-forwarded-for", "127.0.0.1, 203.0.113.9")])),
        (known, through(&[("x-forwarded-for", "127.0.0.1, unknown")])),
        (known, through(&[("forwarded", "for=203.0.113.9")])),
        // A web page that is open in a browser on this machine.
        (unknown, through(&[("origin", "http://evil.example")])),
        (unknown, through(&[("sec-fetch-site", "cross-site")])),
        // Without the token, or with one that is nearly right.
        ("[purge]\nallow = []", through(&[])),
        ("[purge]\nallow = [\"192.0.2.7/32\"]", through(&[("authorization", "Bearer 0123456789abcdef0123456789abcdee")])),
        ("[purge]\nallow = []", through(&[("x-purge-token", "")])),
        ("[purge]\nallow = []", through(&[("authorization", &format!("Basic {TOKEN}"))])),
        ("[purge]\nallow = []\npath = \"/purge\"", Req::get("/purge/hello/")),
        ("[purge]\nallow = []", Req::post("/service/abc/purge_all").field("fastly-key", "guess")),
        ("[purge]\nallow = []", purge("/souin-api/souin/flush")),
    ];
    for (toml, request) in cases {
        let what = format!("{toml} {request:?}");
        let (origin, site) = stored_site(toml).await;
        site.server.accept_purge_token(admin::Token::new(TOKEN).expect("a token"));
        let asked = origin.requests().len();
        for _ in 0..2 {
            site.request(request.clone()).await.status(403).body_contains("[purge] allow").no_field("age");
        }
        assert_covered(&site, &[], "HIT", &what).await;
        assert_eq!(origin.requests().len(), asked, "{what}");
    }
}

#[tokio::test]
async fn the_token_opens_from_everywhere() {
    for (name, value) in
        [("authorization", format!("Bearer {TOKEN}")), ("x-purge-token", TOKEN.to_owned()), ("fastly-key", TOKEN.to_owned())]
    {
        let (_origin, site) = stored_site("[purge]\nallow = []").await;
        site.server.accept_purge_token(admin::Token::new(TOKEN).expect("a token"));
        let request = purge("/hello/").field("x-forwarded-for", "203.0.113.9").field(name, value);
        site.request(request).await.status(200);
        assert_covered(&site, &["/hello/", "/hello/?page=2"], "MISS", name).await;
    }
}

/// The client whom a trusted proxy names may be allowed.
#[tokio::test]
async fn an_allowed_client_behind_a_trusted_proxy_purges() {
    let (_origin, site) = stored_site("[server]\ntrusted_proxies = [\"127.0.0.1/32\"]\n[purge]\nallow = [\"192.0.2.0/24\"]").await;
    site.request(purge("/hello/").field("x-forwarded-for", "192.0.2.7")).await.status(200);
    site.get("/hello/").await.x_cache("MISS");
}

/// Host names the site: nobody purges another host by its path, nor another site at all.
#[tokio::test]
async fn a_purge_stays_on_its_host() {
    let (origin, site) = stored_site("").await;
    let other = |target: &str| Req::get(target).field("host", "other.example");
    site.request(other("/hello/")).await.status(200).x_cache("MISS");
    for request in [purge("/hello/"), purge("/.*").field("x-purge-method", "regex")] {
        site.request(request).await.status(200);
        site.request(other("/hello/")).await.x_cache("HIT");
    }
    // An address of the machine, and the site's name in Host: what a plugin sends that was given the server's address.
    site.request(purge("/hello/").field("host", "OTHER.example:80")).await.status(200);
    site.request(other("/hello/")).await.x_cache("MISS");
    drop(origin);

    let (one, two) = (Origin::start(), Origin::start());
    let site = Site::start(&format!(
        "[[site]]\nhosts = [\"{HOST}\"]\nsource = \"{}\"\n[[site]]\nhosts = [\"two.example\"]\nsource = \"{}\"",
        one.url(),
        two.url()
    ));
    store_all(&one, &site).await;
    two.on(get("/hello/")).reply(ok("two").field("cache-control", "max-age=600").field("surrogate-key", "all"));
    let hello = || Req::get("/hello/").field("host", "two.example");
    site.request(hello()).await.body("two");
    for request in [purge("/purgeall"), purge("/").field("surrogate-key", "all"), purge("/souin-api/souin/flush")] {
        site.request(request).await.status(200);
        site.request(hello()).await.x_cache("HIT");
    }
    site.request(purge("/souin-api/souin/GET-http-two.example-/hello/"))
        .await
        .status(400)
        .body_contains("two.example does not belong to the site");
    site.request(hello()).await.x_cache("HIT");
    site.request(purge("/hello/").field("host", "three.example")).await.status(421);
}

/// A site that came with a reload is purged like any other: by its plugin, by the operator, and by what its writers change.
#[tokio::test]
async fn a_site_that_came_with_a_reload_is_purged() {
    let (one, two) = (Origin::start(), Origin::start());
    let section = |host: &str, origin: &Origin| format!("[[site]]\nhosts = [\"{host}\"]\nsource = \"{}\"\n", origin.url());
    let mut site = Site::start(&section(HOST, &one));
    let there = |request: Req| request.field("host", "two.example");
    site.request(there(Req::get("/hello/"))).await.status(421);
    site.reload(&(section(HOST, &one) + &section("two.example", &two))).expect("reloaded");
    two.on(get("/hello/")).reply(ok("two").field("cache-control", "max-age=600").field("surrogate-key", "all"));
    two.on(post("/hello/")).reply(ok("thanks"));
    let url = What::url("http://two.example/hello/").expect("an address");
    let purge_by_operator = || drop(site.server.console().purge(&Order::by_operator(url.clone(), true)).expect("it is served"));
    for way in ["plugin", "tag", "operator", "writer"] {
        site.request(there(Req::get("/hello/"))).await.x_cache("MISS");
        site.request(there(Req::get("/hello/"))).await.x_cache("HIT");
        match way {
            "plugin" => drop(site.request(there(purge("/hello/"))).await.status(200)),
            "tag" => drop(site.request(there(purge("/").field("surrogate-key", "all"))).await.status(200)),
            "operator" => purge_by_operator(),
            _ => drop(site.request(there(Req::post("/hello/").body("a"))).await.status(200)),
        }
    }
    site.request(there(Req::get("/hello/"))).await.x_cache("MISS");
}

/// Http and https are one address to a plugin.
#[tokio::test]
async fn a_purge_covers_http_and_https() {
    let (origin, site) = site_with("[server]\ntrusted_proxies = [\"127.0.0.1/32\"]").await;
    origin.on(get("/hello/")).reply(ok("text").field("cache-control", "max-age=600"));
    let over = |scheme: &'static str| Req::get("/hello/").field("x-forwarded-proto", scheme);
    for host in [HOST, "blog.example:443", "blog.example:80"] {
        for scheme in ["http", "https"] {
            site.request(over(scheme)).await.x_cache("MISS");
            site.request(over(scheme)).await.x_cache("HIT");
        }
        site.request(purge("/hello/").field("host", host)).await.status(200);
    }
    site.request(over("https")).await.x_cache("MISS");
    // Https on the port of http is an address of its own, and a purge that is sent there covers it.
    let odd = || over("https").field("host", "blog.example:80");
    site.request(odd()).await.x_cache("MISS");
    site.request(odd()).await.x_cache("HIT");
    let local = purge("/hello/").field("x-forwarded-proto", "https").field("x-forwarded-for", "127.0.0.1");
    site.request(local.field("host", "blog.example:80")).await.status(200);
    site.request(odd()).await.x_cache("MISS");
}

/// A blog may have a post about purging.
#[tokio::test]
async fn the_path_for_purges_is_a_page_unless_it_is_set() {
    let (origin, mut site) = site().await;
    origin.on(get("/purge/hello/")).reply(ok("how to purge").field("cache-control", "max-age=600"));
    origin.on(post("/service/abc/purge")).reply(ok("a form"));
    site.get("/purge/hello/").await.status(200).body("how to purge");
    site.request(Req::post("/service/abc/purge").body("a=b")).await.status(200).body("a form");
    site.reload(&format!("source = \"{}\"\n[purge]\npath = \"/purge\"", origin.url())).expect("reloaded");
    site.get("/purge/hello/").await.status(404).body_contains("purged: blog.example/hello/");
    // And who may purge can be changed while it runs.
    site.reload(&format!("source = \"{}\"\n[purge]\nallow = []", origin.url())).expect("reloaded");
    site.request(purge("/hello/")).await.status(403);
}

/// A fetch begun before the purge request is not served after it.
#[tokio::test]
async fn a_fetch_begun_before_the_purge_is_not_served_after_it() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/hello/")).reply(ok("new").field("cache-control", "max-age=600"));
    origin.on(get("/hello/")).once().reply(ok("old").field("cache-control", "max-age=600").gate(&gate));
    let mut before = site.client().await;
    before.send(Req::get("/hello/")).await;
    gate.arrived().await;
    site.request(purge("/hello/")).await.status(200);
    gate.open();
    before.read_answer().await.body("old");
    site.get("/hello/").await.body("new");
}

/// Programs send a purge and close: PHP's streams, and whoever does not wait for an answer.
#[tokio::test]
async fn a_purge_counts_although_its_sender_does_not_wait_for_the_answer() {
    for half in [false, true] {
        for _ in 0..20 {
            let (origin, site) = site_with("").await;
            origin.on(get("/post")).reply(ok("old").field("cache-control", "max-age=600"));
            site.get("/post").await.body("old");
            origin.on(get("/post")).reply(ok("new").field("cache-control", "max-age=600"));
            let mut sender = site.client().await;
            sender.send(purge("/post")).await;
            if half {
                sender.half_close().await;
            } else {
                drop(sender);
            }
            let is_new = async || site.get("/post").await.text() == "new";
            let mut looks = 0;
            while !is_new().await {
                looks += 1;
                assert!(looks < 2_000, "the purge was lost");
            }
        }
    }
}
