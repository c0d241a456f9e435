//! Reloading the settings: nothing that works is interrupted, nothing that is wrong is taken over.

use policy::purge::{Order, What};
use testkit::{Gate, Origin, Req, get, ok, secs};

use crate::site::{Site, site};

/// Connections and requests under way go on, and the next request follows the new settings.
#[tokio::test]
async fn a_reload_interrupts_nobody() {
    let (origin, mut site) = site().await;
    let source = format!("source = \"{}\"\n", origin.url());
    let gate = Gate::new();
    origin.on(get("/slow")).reply(ok("slow").gate(&gate));
    origin.on(get("/post")).reply(ok("text"));
    let (mut open, mut slow) = (site.client().await, site.client().await);
    open.get("/post").await.no_cache_status("stored");
    slow.send(Req::get("/slow")).await;
    gate.arrived().await;

    assert_eq!(site.reload(&format!("{source}[cache]\nhold = \"60s\"")), Ok(vec![]));
    open.get("/post").await.body("text").cache_status("stored");
    open.get("/post").await.body("text").cache_status("hit");
    gate.open();
    slow.read_answer().await.status(200).body("slow");
}

/// What is stored stays, as long as its site is as it was.
#[tokio::test]
async fn stored_pages_survive_where_nothing_changed() {
    let (one, two) = (Origin::start(), Origin::start());
    for origin in [&one, &two] {
        origin.on(get("/")).reply(ok("text").field("cache-control", "max-age=60"));
    }
    let sites = |hold: &str| {
        format!(
            "[[site]]\nhosts = [\"one.example\"]\nsource = \"{}\"\n[[site]]\nhosts = [\"two.example\"]\nsource = \"{}\"\n{hold}",
            one.url(),
            two.url()
        )
    };
    let mut site = Site::start(&sites(""));
    for host in ["one.example", "two.example"] {
        site.client().await.with_host(host).get("/").await.status(200);
    }
    site.reload(&sites("[site.cache]\nhold = \"1h\"\n")).expect("reloaded");
    site.client().await.with_host("one.example").get("/").await.cache_status("hit");
    site.client().await.with_host("two.example").get("/").await.cache_status("fwd=uri-miss");
}

/// A setting on which no answer depends costs nobody what is stored.
#[tokio::test]
async fn a_reload_keeps_what_does_not_depend_on_the_setting_that_changed() {
    let (origin, mut site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    let source = format!("source = \"{}\"\n", origin.url());
    site.get("/post").await.cache_status("stored");
    for keys in ["[origin]\nconcurrency = 7\n", "[cache]\nobject_max = \"1MiB\"\n", "[compress]\npassed = \"off\"\n"] {
        site.reload(&format!("{source}{keys}")).expect("reloaded");
        site.get("/post").await.body("text").cache_status("hit");
    }
    site.reload(&format!("{source}[headers]\nset = [\"X-A: b\"]\n")).expect("reloaded");
    site.get("/post").await.field("x-a", "b").cache_status("fwd=uri-miss");
}

/// Sites come and go.
#[tokio::test]
async fn a_site_may_be_added_and_taken_away() {
    let (one, two) = (Origin::start(), Origin::start());
    one.on(get("/")).reply(ok("one"));
    two.on(get("/")).reply(ok("two"));
    let site_of = |host: &str, origin: &Origin| format!("[[site]]\nhosts = [\"{host}\"]\nsource = \"{}\"\n", origin.url());
    let mut site = Site::start(&site_of("one.example", &one));
    let mut client = site.client().await.with_host("two.example");
    client.get("/").await.status(421);
    site.reload(&format!("{}{}", site_of("one.example", &one), site_of("two.example", &two))).expect("reloaded");
    client.get("/").await.status(200).body("two");
    site.reload(&site_of("two.example", &two)).expect("reloaded");
    client.get("/").await.status(200).body("two");
    client.with_host("one.example").get("/").await.status(421);
}

/// A host that goes to another site and comes back brings nothing along: what was purged meanwhile stays purged.
#[tokio::test]
async fn a_host_that_comes_back_brings_no_old_pages() {
    let (one, two) = (Origin::start(), Origin::start());
    one.on(get("/")).reply(ok("one").field("cache-control", "max-age=600"));
    two.on(get("/")).reply(ok("two").field("cache-control", "max-age=600"));
    let sites = |of_one: &str, of_two: &str| {
        let site = |hosts: &str, origin: &Origin| format!("[[site]]\nhosts = [{hosts}]\nsource = \"{}\"\n", origin.url());
        site(of_one, &one) + &site(of_two, &two)
    };
    for before in ["\"one.example\", \"moves.example\"", "\"*.example\""] {
        let after = before.replace(", \"moves.example\"", "");
        let mut site = Site::start(&sites(before, "\"two.test\""));
        site.client().await.with_host("moves.example").get("/").await.body("one").cache_status("stored");
        site.reload(&sites(&after, "\"two.test\", \"moves.example\"")).expect("reloaded");
        site.reload(&format!("{}[limits]\nbody_bytes = \"1MiB\"\n", sites(&after, "\"two.test\", \"moves.example\""))).expect("reloaded");
        let order = Order::by_operator(What::host("moves.example").expect("a host"), true);
        site.server.console().purge(&order).expect("purged");
        site.reload(&sites(before, "\"two.test\"")).expect("reloaded");
        site.client().await.with_host("moves.example").get("/").await.body("one").cache_status("fwd=uri-miss");
    }
}

/// A mistake is told with its line; the running settings stay.
#[tokio::test]
async fn a_mistake_changes_nothing() {
    let (origin, mut site) = site().await;
    let source = format!("source = \"{}\"\n", origin.url());
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    site.get("/post").await.cache_status("stored");

    let mistake = site.reload(&format!("{source}[cache]\nhold = \"soon\"")).expect_err("no duration");
    assert!(mistake.contains("hold") && mistake.contains("soon"), "{mistake}");
    // What can only be found out by opening it.
    std::fs::write(site.folder().join("ca.pem"), "this is not a certificate").expect("written");
    let mistake = site.reload(&format!("{source}[origin]\nca_file = \"ca.pem\"")).expect_err("no certificate");
    assert!(mistake.contains("ca.pem"), "{mistake}");
    site.get("/post").await.cache_status("hit");
}

/// What cannot change without a restart is named.
#[tokio::test]
async fn what_needs_a_restart_is_named() {
    let (origin, mut site) = site().await;
    origin.on(get("/post")).reply(ok("text"));
    let settings = format!("source = \"{}\"\n[server]\nworkers = 2\n[cache]\nmemory = \"32MiB\"", origin.url());
    assert_eq!(site.reload(&settings), Ok(vec!["server.workers", "cache.memory"]));
    site.get("/post").await.status(200);
}

/// New limits hold for connections that come after them.
#[tokio::test]
async fn new_limits_are_for_new_connections() {
    let (origin, mut site) = site().await;
    origin.on(get("/*")).reply(ok("text"));
    let long = format!("/{}", "a".repeat(1_000));
    site.get(&long).await.status(200);
    site.reload(&format!("source = \"{}\"\n[limits]\ntarget_bytes = \"512B\"", origin.url())).expect("reloaded");
    site.get(&long).await.status(414);
    site.clock.advance(secs(1));
    site.get("/a").await.status(200);
}
