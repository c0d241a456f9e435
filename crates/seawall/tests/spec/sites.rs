//! Several sites in one process: RFC 9110 §7.4, §15.5.20 (421).

use testkit::{Origin, get, ok};

use crate::site::Site;

fn page(text: &'static str) -> testkit::Reply {
    ok(text).field("cache-control", "max-age=60")
}

/// Each host is answered by its own site, from its own pages.
#[tokio::test]
async fn each_host_has_its_site() {
    let (one, two) = (Origin::start(), Origin::start());
    one.on(get("/")).reply(page("one"));
    two.on(get("/")).reply(page("two"));
    let site = Site::start(&format!(
        "[[site]]\nhosts = [\"one.example\", \"*.one.example\"]\nsource = \"{}\"\n\
         [[site]]\nhosts = [\"two.example\", \"special.one.example\"]\nsource = \"{}\"\n",
        one.url(),
        two.url()
    ));
    for (host, text) in [
        ("one.example", "one"),
        ("ONE.example:8080", "one"),
        ("www.one.example", "one"),
        ("a.b.one.example", "one"),
        ("two.example", "two"),
        ("special.one.example", "two"),
        ("two.example.", "two"),
    ] {
        let mut client = site.client().await.with_host(host);
        client.get("/").await.status(200).body(text);
        client.get("/").await.status(200).body(text).cache_status("hit");
    }
    for host in ["three.example", "one.example.evil.example", "xone.example", "www.two.example", "127.0.0.1"] {
        site.client().await.with_host(host).get("/").await.status(421);
    }
}

/// A request for nobody is refused, and the connection lives on.
#[tokio::test]
async fn a_connection_may_ask_for_several_hosts() {
    let (one, two) = (Origin::start(), Origin::start());
    one.on(get("/")).reply(page("one"));
    two.on(get("/")).reply(page("two"));
    let site = Site::start(&format!(
        "[[site]]\nhosts = [\"one.example\"]\nsource = \"{}\"\n[[site]]\nhosts = [\"two.example\"]\nsource = \"{}\"\n",
        one.url(),
        two.url()
    ));
    let mut client = site.client().await;
    for (host, code) in [("one.example", 200), ("nobody.example", 421), ("two.example", 200), ("one.example", 200)] {
        client = client.with_host(host);
        client.get("/").await.status(code);
    }
}

/// Sites differ in their rules.
#[tokio::test]
async fn each_site_has_its_own_rules() {
    let (one, two) = (Origin::start(), Origin::start());
    for origin in [&one, &two] {
        origin.on(get("/")).reply(ok("text"));
    }
    let site = Site::start(&format!(
        "[[site]]\nhosts = [\"one.example\"]\nsource = \"{}\"\n[site.cache]\nhold = \"60s\"\n\
         [[site]]\nhosts = [\"two.example\"]\nsource = \"{}\"\n",
        one.url(),
        two.url()
    ));
    for (host, requests) in [("one.example", 1), ("two.example", 2)] {
        let mut client = site.client().await.with_host(host);
        for _ in 0..2 {
            client.get("/").await.status(200).body("text");
        }
        let origin = if host == "one.example" { &one } else { &two };
        assert_eq!(origin.count("/"), requests, "{host}");
    }
}
