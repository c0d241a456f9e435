//! Parts of a site that another server answers for, and names that lead to the site's own.

use std::time::Duration;

use policy::purge::What;
use store::{Hardness, PurgeTarget};
use testkit::{Gate, Origin, Req, get, ok, post, secs, status};

use crate::{
    operator::Operator,
    site::{HOST, Site},
    tls::Authority,
};

fn page(text: &'static str) -> testkit::Reply {
    ok(text).field("cache-control", "max-age=60")
}

/// Returns a site, and a second server for a part of it.
fn site_with_route(route: &str) -> (Origin, Origin, Site) {
    let (site, api) = (Origin::start(), Origin::start());
    let toml = format!("source = \"{}\"\n[[route]]\nsource = \"{}\"\n{route}", site.url(), api.url());
    let running = Site::start(&toml);
    (site, api, running)
}

/// The path in its normal form decides (RFC 3986 §6.2.2), at the end of a segment.
#[tokio::test]
async fn a_route_covers_its_path_and_what_is_below_it_however_it_is_spelled() {
    let (whole, api, site) = site_with_route("path = \"/api\"\n");
    for (target, asked, is_routed) in [
        ("/api", "/api", true),
        ("/api/", "/api/", true),
        ("/api/x", "/api/x", true),
        ("/%61pi/y", "/api/y", true),
        ("/a/../api/z", "/api/z", true),
        ("/%2e/api/u", "/api/u", true),
        ("/api/../other", "/other", false),
        ("/apis", "/apis", false),
        ("/api%2Fx", "/api%2Fx", false),
        ("//api/x", "//api/x", false),
        ("/", "/", false),
    ] {
        let (here, there) = if is_routed { (&api, &whole) } else { (&whole, &api) };
        here.on(get(asked)).reply(page("answered"));
        site.get(target).await.status(200).body("answered");
        assert_eq!((here.count(asked), there.count(asked)), (1, 0), "{target}");
        site.get(target).await.x_cache("HIT");
    }
}

#[tokio::test]
async fn the_longest_path_counts() {
    let (whole, one, two) = (Origin::start(), Origin::start(), Origin::start());
    let toml = format!(
        "source = \"{}\"\n[[route]]\npath = \"/a\"\nsource = \"{}\"\n[[route]]\npath = \"/a/b\"\nsource = \"{}\"\n",
        whole.url(),
        one.url(),
        two.url()
    );
    let site = Site::start(&toml);
    one.on(get("/a/c")).reply(page("one"));
    two.on(get("/a/b/c")).reply(page("two"));
    site.get("/a/c").await.body("one");
    site.get("/a/b/c").await.body("two");
}

/// The server is asked for what follows the path, and told what was taken away.
#[tokio::test]
async fn a_prefix_can_be_stripped() {
    let (_whole, api, site) = site_with_route("path = \"/api\"\nstrip_prefix = true\n");
    api.on(get("/x").query("y=1")).reply(page("x"));
    api.on(get("/")).reply(page("root"));
    site.get("/api/x?y=1").await.body("x");
    assert_eq!(api.last("/x?y=1").field("x-forwarded-prefix").as_deref(), Some("/api"));
    site.get("/api").await.body("root");
    site.get("/api/x?y=1").await.x_cache("HIT");
}

/// With `cache = false` each request goes to the server, with what its client sent.
#[tokio::test]
async fn a_route_can_pass_the_cache_by() {
    let (_whole, api, site) = site_with_route("path = \"/api\"\ncache = false\n");
    api.on(get("/api/x")).reply(page("x"));
    for _ in 0..2 {
        site.request(Req::get("/api/x").field("cookie", "session=1")).await.body("x").x_cache("BYPASS").cache_status("detail=route");
    }
    // A campaign is what a server that counts wants to hear of.
    api.on(get("/api/x?utm_source=mail&a=1")).reply(page("counted"));
    site.get("/api/x?utm_source=mail&a=1").await.body("counted");
    assert_eq!((api.count("/api/x"), api.last("/api/x").field("cookie").as_deref()), (2, Some("session=1")));
}

/// A folder looks at nobody's cookies; the server beside it does. Neither gets the other's rules.
#[tokio::test]
async fn a_server_beside_a_folder_is_a_server() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("index.html"), "home").expect("written");
    let api = Origin::start();
    let toml = format!("source = \"{}\"\n[[route]]\npath = \"/api\"\nsource = \"{}\"\n", folder.path().display(), api.url());
    let site = Site::start(&toml);
    api.on(get("/api/me").field("cookie", "session=alice")).reply(ok("alice").field("etag", "\"a\""));
    api.on(get("/api/me").field("cookie", "session=bob")).reply(ok("bob").field("etag", "\"b\""));
    api.on(post("/api/me")).reply(status(201));
    api.on(get("/api/news")).reply(page("news"));
    // RFC 9111 §4.2.2: a lifetime that is only guessed is not the server's word that the answer is for everybody.
    api.on(get("/api/guess").without("cookie")).reply(ok("nobody's").field("last-modified", site.clock.http_date_ago(secs(86_400))));
    api.on(get("/api/guess").field("cookie", "session=alice")).reply(ok("alice's"));
    for x_cache in ["MISS", "HIT"] {
        site.get("/api/guess").await.body("nobody's").x_cache(x_cache);
    }
    site.request(Req::get("/api/guess").field("cookie", "session=alice")).await.body("alice's").x_cache("BYPASS");
    let as_whom = |name: &str| Req::get("/api/me").field("cookie", format!("session={name}"));
    site.request(as_whom("alice")).await.body("alice").no_cache_status("stored");
    site.request(as_whom("bob")).await.body("bob");
    site.request(Req::post("/api/me").body("a")).await.status(201);
    site.get("/api/news").await.body("news");
    site.get("/api/news").await.x_cache("HIT");
    site.get("/").await.status(200).body("home");
    site.request(Req::get("/").field("cookie", "session=alice")).await.x_cache("HIT");
}

/// A server that is down is that of its part alone.
#[tokio::test]
async fn one_server_that_is_down_leaves_the_other_up() {
    let (whole, api, site) = site_with_route("path = \"/api\"\n[route.origin]\nhost = \"api.example\"\n");
    whole.on(get("/")).reply(ok("home").field("cache-control", "max-age=0"));
    api.on(get("/api/x")).reply(ok("x"));
    site.get("/api/x").await.status(200);
    assert_eq!(api.last("/api/x").field("host").as_deref(), Some("api.example"));
    api.kill();
    site.get("/api/x").await.status(502);
    site.get("/").await.status(200).body("home");
}

/// A purge names an address, whoever answers for it; and the explanation tells the route.
#[tokio::test]
async fn what_a_route_answers_is_purged_and_explained_as_any_page() {
    let (_whole, api, site) = site_with_route("path = \"/api\"\n");
    let operator = Operator::of(&site);
    api.on(get("/api/x")).reply(page("x"));
    site.get("/api/x").await.status(200);
    site.get("/api/x").await.x_cache("HIT");
    let command = ::operator::explain::command(&format!("http://{HOST}/%61pi/x"), "GET", &[]).expect("a command");
    let explained = ::operator::explain::run(&operator.client(), &command).expect("an explanation");
    assert_eq!((explained.site.route.as_deref(), explained.now.x_cache.as_str()), (Some("/api"), "HIT"));
    let what = What::url(&format!("http://{HOST}/api/x")).expect("an address");
    let said = ::operator::purge::run(operator.address, crate::operator::TOKEN, &what, true).expect("a purge").said;
    assert!(said.contains("1 stored response"), "{said}");
    site.get("/api/x").await.x_cache("MISS");
}

/// A route that comes or goes with a reload leaves nothing behind that the other server had answered.
#[tokio::test]
async fn a_reload_that_adds_a_route_forgets_what_was_stored() {
    let (whole, api) = (Origin::start(), Origin::start());
    whole.on(get("/api/x")).reply(page("whole"));
    api.on(get("/api/x")).reply(page("api"));
    let mut site = Site::start(&format!("source = \"{}\"\n", whole.url()));
    site.get("/api/x").await.body("whole");
    site.reload(&format!("source = \"{}\"\n[[route]]\npath = \"/api\"\nsource = \"{}\"\n", whole.url(), api.url())).expect("reloaded");
    site.has_read_all().await;
    site.get("/api/x").await.body("api");
}

/// RFC 9110 §15.4.2 and §15.4.9: 301 for what is read, 308 for the rest; path and query are kept.
#[tokio::test]
async fn a_name_leads_to_the_sites_own() {
    let origin = Origin::start();
    origin.on(get("/")).reply(page("home"));
    let site = Site::start(&format!(
        "[[site]]\nhosts = [\"*.example.org\", \"example.org\"]\nredirect_from = [\"www.example.org\", \"old.example\"]\nsource = \"{}\"\n",
        origin.url()
    ));
    for (host, method, target, code, location) in [
        ("www.example.org", "GET", "/a%20b?c=d", 301, "http://example.org/a%20b?c=d"),
        ("WWW.example.org.", "HEAD", "/", 301, "http://example.org/"),
        ("old.example:8080", "GET", "/", 301, "http://example.org:8080/"),
        ("old.example", "POST", "/form", 308, "http://example.org/form"),
    ] {
        let mut client = site.client().await.with_host(host);
        let answer = client.request(Req::new(method, target)).await.status(code);
        assert_eq!(answer.value("location").as_deref(), Some(location), "{host} {method} {target}");
    }
    for host in ["example.org", "shop.example.org"] {
        site.client().await.with_host(host).get("/").await.status(200).body("home");
    }
    let operator = Operator::of(&site);
    let command = ::operator::explain::command("http://www.example.org/x", "GET", &[]).expect("a command");
    let explained = ::operator::explain::run(&operator.client(), &command).expect("an explanation");
    assert!(explained.now.words[0].contains("example.org"), "{:?}", explained.now);
}

/// What a soft purge marked stale comes back from the server that answers for it.
#[tokio::test]
async fn a_page_of_a_route_is_refilled_from_its_own_server() {
    let (whole, api, site) = site_with_route("path = \"/api\"\n[refill]\nconcurrency = 1\n");
    let long = |text: &'static str| ok(text).field("cache-control", "max-age=86400");
    let gates = [Gate::new(), Gate::new()];
    for (origin, target, gate) in [(&whole, "/home", &gates[0]), (&api, "/api/x", &gates[1])] {
        origin.on(get(target)).reply(long("new").gate(gate));
        origin.on(get(target)).once().reply(long("old"));
        site.request(Req::get(target).field("cache-control", "max-age=86400")).await.body("old");
    }
    site.purge(&PurgeTarget::All, Hardness::Soft);
    site.clock.advance(Duration::from_secs(1));
    for gate in &gates {
        gate.arrived().await;
        gate.open();
    }
    assert_eq!((whole.count("/home"), api.count("/api/x")), (2, 2));
}

/// Who comes over http to a name that leads elsewhere, where the site is on https, is sent there at once: one redirect, not two.
#[tokio::test]
async fn a_moved_name_leads_to_https_in_one_step() {
    let authority = Authority::new();
    let section = authority.section();
    let origin = Origin::start();
    let site = Site::start(&format!(
        "{section}[https]\nredirect = true\n[[site]]\nhosts = [\"{HOST}\"]\nredirect_from = [\"www.{HOST}\"]\nsource = \"{}\"\n",
        origin.url()
    ));
    let answer = site.client().await.with_host(&format!("www.{HOST}")).get("/a?b").await.status(301);
    let location = answer.value("location").expect("a redirect");
    assert!(location.starts_with(&format!("https://{HOST}:")) && location.ends_with("/a?b"), "{location}");
}
