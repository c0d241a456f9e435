//! The metrics, as Prometheus reads them: the format, the values, and the page that describes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use policy::purge::{Order, What};
use testkit::{
    Req,
    exposition::{self, Family},
    get, ok, post, secs,
};

use crate::{
    operator::Operator,
    site::{Site, site_with},
};

/// Scrapes when everything before is counted. A worker counts a response before it takes up the next request, so it is enough that one more
/// is answered; that one is sent past the cache.
async fn scrape_after(site: &Site, last: Req) -> Vec<Family> {
    site.request(last.field("cache-control", "no-cache")).await.status(200);
    scrape(site).await
}

async fn scrape(site: &Site) -> Vec<Family> {
    let operator = Operator::of(site);
    let mut client = testkit::Client::connect(operator.address).await.with_host("127.0.0.1");
    let answer = client.get("/metrics").await.status(200).field("content-type", "text/plain; version=0.0.4; charset=utf-8");
    exposition::parse(&answer.text())
}

fn family<'a>(families: &'a [Family], name: &str) -> &'a Family {
    families.iter().find(|family| family.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// <https://prometheus.io/docs/instrumenting/exposition_formats/>: a strict reader takes it, also after requests of all kinds.
#[tokio::test]
async fn the_metrics_are_what_prometheus_reads() {
    let (origin, site) = site_with("").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=10"));
    for _ in 0..3 {
        site.get("/post").await.status(200);
    }
    site.client().await.send_raw(b"GET / HTTP/1.1\r\n\r\n").await;
    let families = scrape_after(&site, Req::get("/post")).await;
    let requests = family(&families, "seawall_requests_total");
    let of = |cache| requests.value(&[("site", "default"), ("cache", cache)]);
    assert_eq!((of("miss"), of("hit"), of("stale")), (1.0, 2.0, 0.0), "{requests:?}");

    let durations = family(&families, "seawall_request_duration_seconds");
    assert_eq!(durations.kind, "histogram");
    assert_eq!(durations.value(&[("site", "default"), ("cache", "hit"), ("le", "+Inf")]), 2.0);
    assert_eq!(family(&families, "seawall_origin_first_byte_seconds").value(&[("site", "default"), ("le", "+Inf")]), 2.0);
    assert_eq!(family(&families, "seawall_origin_requests_total").value(&[("site", "default")]), 2.0);

    let build = &family(&families, "seawall_build_info").samples[0];
    assert_eq!((build.value, build.labels["version"].as_str()), (1.0, env!("CARGO_PKG_VERSION")));
    // The simulated clock begins on 1 January 2026.
    assert_eq!(family(&families, "process_start_time_seconds").value(&[]), 1_767_225_600.0);
}

/// Every purge is counted with who ordered it; what is refused is not.
#[tokio::test]
async fn every_purge_is_counted_by_who_ordered_it() {
    let (origin, mut site) = site_with("").await;
    origin.on(post("/form")).reply(ok("thanks"));
    let by_operator = |what: What| Order::by_operator(what, true);
    site.server.console().purge(&by_operator(What::Everything)).expect("everything");
    site.server.console().purge(&by_operator(What::url("http://blog.example/a").expect("an address"))).expect("an address");
    site.request(Req::new("PURGE", "/a")).await.status(200);
    site.request(Req::new("PURGE", "/a(b)/.*").field("x-purge-method", "regex")).await.status(400);
    site.request(Req::new("PURGE", "/a").field("origin", "http://evil.example")).await.status(403);
    for _ in 0..3 {
        site.request(Req::post("/form").body("a=b")).await.status(200);
    }
    // A folder that is opened anew may have changed meanwhile.
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("index.html"), "a page").expect("written");
    let with = |more: &str| {
        let files = format!("[[site]]\nhosts = [\"files.example\"]\nsource = \"{}\"\n{more}\n", folder.path().display());
        format!("[[site]]\nhosts = [\"blog.example\"]\nsource = \"{}\"\n{files}", origin.url())
    };
    site.reload(&with("")).expect("reloaded");
    site.reload(&with("redirect_from = [\"www.files.example\"]")).expect("reloaded");
    let families = scrape(&site).await;
    let purges = family(&families, "seawall_purges_total");
    for (by, count) in [("operator", 2.0), ("plugin", 1.0), ("origin", 0.0), ("unsafe-method", 3.0), ("folder", 0.0), ("reload", 1.0)] {
        assert_eq!(purges.value(&[("by", by)]), count, "{by}: {purges:?}");
    }
    assert_eq!(family(&families, "seawall_purge_requests_total").value(&[("dialect", "varnish")]), 1.0);
}

/// Each site has its own numbers, and a host that no site has makes no series of its own.
#[tokio::test]
async fn requests_are_counted_for_the_site_that_they_are_for() {
    let origin = testkit::Origin::start();
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=10"));
    let two = |name: &str| format!("[[site]]\nhosts = [\"{name}.example\"]\nsource = \"{}\"\n", origin.url());
    let site = Site::start(&(two("one") + &two("two")));
    for host in ["one.example", "one.example", "two.example", "stranger-1.example", "stranger-2.example"] {
        site.client().await.with_host(host).get("/post").await;
    }
    let families = scrape_after(&site, Req::get("/post").no_host().field("host", "one.example")).await;
    let requests = family(&families, "seawall_requests_total");
    let of = |site, cache| requests.value(&[("site", site), ("cache", cache)]);
    assert_eq!(
        (of("one.example", "miss"), of("one.example", "hit"), of("two.example", "miss"), of("two.example", "hit")),
        (1.0, 1.0, 1.0, 0.0)
    );
    assert_eq!(of("", "none"), 2.0);
    let sites: BTreeSet<&str> = requests.samples.iter().map(|line| line.labels["site"].as_str()).collect();
    assert_eq!(sites, BTreeSet::from(["", "one.example", "two.example"]));
}

/// The most lines that Prometheus reads.
const LINES_MAX: usize = 2_000;

/// Returns every line that only rises, by its name and labels.
fn rising(families: &[Family]) -> BTreeMap<(String, Vec<(String, String)>), f64> {
    let lines = families.iter().filter(|family| family.kind != "gauge").flat_map(|family| &family.samples);
    lines.map(|line| ((line.name.clone(), line.labels.clone().into_iter().collect()), line.value)).collect()
}

fn shown_sites(family: &Family) -> BTreeSet<&str> {
    family.samples.iter().map(|line| line.labels["site"].as_str()).filter(|site| !site.is_empty()).collect()
}

/// With 256 sites, the busiest 50 have lines of their own and the others are one. When another becomes busy, it takes the place of one of them, and no counter falls, or
/// counts anything twice.
#[tokio::test]
async fn two_thousand_lines_are_enough_for_256_sites() {
    let origin = testkit::Origin::start();
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=10"));
    for n in 0..40 {
        let letters = char::from(b'a' + n % 26).to_string().repeat(1 + usize::from(n) / 26);
        origin.on(get(&format!("/mine-{n}"))).reply(ok("text").field("set-cookie", format!("plugin_{letters}=1")));
    }
    let sites = (0..256).map(|n| format!("[[site]]\nhosts = [\"{n}.example\"]\nsource = \"{}\"\n", origin.url()));
    let site = Site::start(&sites.collect::<String>());
    let mut client = site.client().await;
    let mut ask = async |site: u32, path: &str| {
        client.request(Req::get(path).no_host().field("host", format!("{site}.example"))).await.status(200);
    };
    for site in 0..256 {
        ask(site, "/post").await;
    }
    for site in 100..150 {
        ask(site, "/post").await;
        ask(site, &format!("/mine-{}", (site - 100) % 40)).await;
    }
    let families = scrape_after(&site, Req::get("/post").no_host().field("host", "149.example")).await;

    let requests = family(&families, "seawall_requests_total");
    let mut expected: BTreeSet<String> = (100..150).map(|n| format!("{n}.example")).collect();
    expected.insert("other".to_owned());
    assert_eq!(shown_sites(requests), expected.iter().map(String::as_str).collect());
    let of = |site, cache| requests.value(&[("site", site), ("cache", cache)]);
    assert_eq!((of("120.example", "miss"), of("120.example", "hit"), of("other", "miss"), of("other", "hit")), (2.0, 1.0, 206.0, 0.0));
    let bytes = family(&families, "seawall_response_bytes_total");
    assert_eq!(bytes.value(&[("site", "other"), ("cache", "miss"), ("class", "all")]), 4.0 * 206.0);
    assert_eq!(family(&families, "seawall_request_duration_seconds").value(&[("site", "all"), ("cache", "miss"), ("le", "+Inf")]), 306.0);
    assert_eq!(family(&families, "seawall_origin_requests_total").value(&[("site", "other")]), 206.0);
    assert_eq!(family(&families, "seawall_origin_up").samples.len(), 51);
    let cookies = family(&families, "seawall_responses_not_stored_for_cookie_total");
    assert_eq!((cookies.samples.len(), cookies.samples.iter().map(|line| line.value).sum::<f64>()), (26, 50.0));

    // Nothing here has a certificate, an alert or a schedule, and hardly anything was refused.
    let lines = |family: &Family| 2 + family.samples.len();
    let bounds = [
        ("seawall_alert", 30),
        ("seawall_certificate_end_seconds", 26),
        ("seawall_certificate_failures", 26),
        ("seawall_refused_total", 41),
        ("seawall_responses_not_stored_for_cookie_total", 26),
        ("seawall_requests_passed_by_cookie_total", 26),
        ("seawall_rule_requests_total", 26),
        ("seawall_rule_origin_seconds_total", 26),
        ("seawall_origin_up", 61),
    ];
    let to_come: usize = bounds.iter().map(|(name, max)| max - family(&families, name).samples.len()).sum();
    let total: usize = families.iter().map(lines).sum();
    assert!(total + to_come <= LINES_MAX, "{total} lines, and {to_come} that may come");

    for _ in 0..9 {
        ask(7, "/post").await;
    }
    let before = rising(&families);
    let families = scrape_after(&site, Req::get("/post").no_host().field("host", "149.example")).await;
    let requests = family(&families, "seawall_requests_total");
    let of = |site, cache| requests.value(&[("site", site), ("cache", cache)]);
    assert!(shown_sites(requests).contains("7.example") && shown_sites(requests).len() == 51);
    assert_eq!(
        (of("7.example", "hit"), of("other", "hit"), of("other", "miss")),
        (0.0, 9.0, 206.0),
        "what it counted until now stays where it was"
    );
    for (line, value) in rising(&families) {
        assert!(before.get(&line).is_none_or(|before| *before <= value), "{line:?} fell from {:?} to {value}", before.get(&line));
    }
    ask(7, "/post").await;
    let families = scrape_after(&site, Req::get("/post").no_host().field("host", "149.example")).await;
    assert_eq!(family(&families, "seawall_requests_total").value(&[("site", "7.example"), ("cache", "hit")]), 1.0);
}

/// Where sites are few, bytes and the origin's time are told by the class of the content, and rules by what they cost.
#[tokio::test]
async fn bytes_are_counted_by_class_and_the_time_of_origins_by_rule() {
    let (origin, site) = site_with("").await;
    let typed = |kind: &'static str| ok("12345").field("content-type", kind).field("cache-control", "max-age=10");
    origin.on(get("/post")).reply(typed("text/html; charset=utf-8"));
    origin.on(get("/picture")).reply(typed("image/webp"));
    origin.on(get("/private")).reply(ok("123").field("content-type", "text/html").field("cache-control", "no-store"));
    for path in ["/post", "/post", "/post", "/picture", "/picture", "/private", "/private"] {
        site.get(path).await.status(200);
    }
    let families = scrape_after(&site, Req::get("/picture")).await;
    let bytes = family(&families, "seawall_response_bytes_total");
    let of = |cache, class| bytes.value(&[("site", "default"), ("cache", cache), ("class", class)]);
    assert_eq!(
        (of("hit", "document"), of("hit", "picture"), of("miss", "document"), of("miss", "picture"), of("hit", "script")),
        (10.0, 5.0, 11.0, 5.0, 0.0)
    );
    let durations = family(&families, "seawall_class_duration_seconds");
    assert_eq!(durations.value(&[("class", "document"), ("le", "+Inf")]), 5.0);
    let rules = family(&families, "seawall_rule_requests_total");
    let of = |rule| rules.value(&[("site", "default"), ("rule", rule)]);
    assert_eq!((of("cold"), of("no-store")), (2.0, 2.0), "{rules:?}");
    let seconds = |name: &str| family(&families, name).samples.iter().map(|line| line.value).sum::<f64>();
    let (by_class, by_rule) = (seconds("seawall_origin_seconds_total"), seconds("seawall_rule_origin_seconds_total"));
    assert!(
        by_class > 0.0 && (by_class - by_rule).abs() < 1e-9,
        "every request that waited for the origin has a class and a rule: {by_class}, {by_rule}"
    );
}

/// An only address is up as long as it could be connected to when that was tried last.
#[tokio::test]
async fn an_origin_that_is_gone_is_shown_as_down() {
    let (origin, site) = site_with("").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=10"));
    site.get("/post").await.status(200);
    let url = origin.url();
    let labels = [("site", "default"), ("route", ""), ("address", url.as_str())];
    assert_eq!(family(&scrape(&site).await, "seawall_origin_up").value(&labels), 1.0);

    origin.kill();
    site.clock.advance(secs(60));
    site.get("/post").await.status(200).x_cache("STALE");
    let families = scrape(&site).await;
    assert_eq!(family(&families, "seawall_origin_up").value(&labels), 0.0);
    assert_eq!(family(&families, "seawall_origin_failures_total").value(&[("site", "default")]), 1.0);
}

/// `doc/metrics.md` names every metric that `/metrics` has, with its type, its labels and its meaning, and no other.
#[tokio::test]
async fn the_page_names_every_metric_and_no_other() {
    let (origin, site) = site_with("").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=10"));
    site.get("/post").await.status(200);
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../doc/metrics.md")).expect("doc/metrics.md");
    let families = scrape(&site).await;
    for Family { name, kind, help, samples } in &families {
        let row =
            page.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap_or_else(|| panic!("{name} is not on the page"));
        assert!(row.contains(&format!("| {kind} |")) && row.contains(help), "{row}");
        for label in samples.iter().flat_map(|line| line.labels.keys()).filter(|label| *label != "le") {
            assert!(row.contains(&format!("`{label}`")), "{label} in {row}");
        }
    }
    let exposed: BTreeSet<&str> = families.iter().map(|family| family.name.as_str()).collect();
    let described: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(described, exposed);
}
