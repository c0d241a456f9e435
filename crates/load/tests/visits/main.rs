//! Visits, as a server sees them: pages with all that belongs to them, cookies, sitemaps, checks, leaks, and what a crowd asks.

mod site;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use judges::Leaking;
use load::{
    Plan, Protocol, Results, Schedule, Stop,
    permission::Permission,
    plan::Connections,
    prepare::prepare,
    record::ErrorClass,
    requests::{Checks, LEAK_COOKIE, RequestOptions},
    schedule::{Profile, Spacing},
    shape::Shape,
};

use self::site::Site;

/// Makes a run as the command line does.
fn run(asking: &RequestOptions, sitemap: Option<&str>, schedule: Schedule, requests: Option<u64>, protocol: Protocol) -> Results {
    let connections = Connections::default();
    let prepared = prepare(asking, sitemap, &connections, &Permission::default()).expect("loopback is permitted");
    let plan = Plan {
        requests: Arc::new(prepared.requests),
        schedule,
        protocol,
        stop: Stop { requests, after: None },
        connections: Connections { addresses: prepared.addresses, ..connections },
        timeout: Duration::from_secs(10),
        warm_up: Duration::ZERO,
        workers: 1,
        seed: 1,
        cap: None,
    };
    load::run(&plan, &mut ()).expect("the plan can be run")
}

fn asking(urls: &[String]) -> RequestOptions {
    RequestOptions { urls: urls.to_vec(), run: 1, ..RequestOptions::default() }
}

const HTTP1: Protocol = Protocol::Http1 { pipeline: 1 };

fn clients(number: f64) -> Schedule {
    Schedule::Closed { clients: Profile::constant(number, None) }
}

/// Makes a schedule of so many visitors in a second, each on connections of its own.
fn visitors(number: f64) -> Schedule {
    Schedule::Arrivals { rate: Profile::constant(number, Some(Duration::from_secs(1))), spacing: Spacing::Even }
}

#[test]
fn visitors_fetch_a_page_as_browsers_do() {
    let site = Site::start();
    let results = run(&RequestOptions { page: true, ..asking(&[site.url("/post")]) }, None, visitors(20.0), None, HTTP1);
    let seen = site.seen();
    let counts: BTreeMap<&str, usize> = seen.iter().fold(BTreeMap::new(), |mut counts, request| {
        *counts.entry(request.target.as_str()).or_default() += 1;
        counts
    });
    // Each visitor is a new one: nobody has anything in a cache.
    let expected = ["/font.woff2", "/header.png", "/icon.png", "/large.png", "/post", "/script.js", "/style.css"];
    assert_eq!(counts, expected.into_iter().map(|target| (target, 20)).collect());
    assert_eq!((results.requests, results.answered, results.page.count), (140, 140, 20));
    assert!(results.page.p50 >= results.latency.min, "{:?}", results.page);
    assert_eq!(results.left_out, 20, "one part of each page is another site's");
    let connections = seen.iter().map(|request| request.connection).max().unwrap_or_default();
    assert!(connections <= 20 * 6, "{connections} connections for 20 visitors");
}

#[test]
fn a_client_that_stays_validates_and_reuses() {
    let site = Site::start();
    // A first visit of 7 requests; then the page and what is stale, with validators, 4 each time.
    let results = run(&RequestOptions { page: true, ..asking(&[site.url("/post")]) }, None, clients(1.0), Some(7 + 4 + 4), HTTP1);
    let seen = site.seen();
    let later: Vec<_> = seen[7..].iter().map(|request| (request.target.as_str(), request.is_conditional)).collect();
    let mut visit = later[..4].to_vec();
    visit.sort_unstable();
    assert_eq!(visit, [("/header.png", true), ("/icon.png", true), ("/large.png", true), ("/post", true)], "{later:?}");
    assert_eq!(results.statuses, BTreeMap::from([(200, 7), (304, 8)]));
}

#[test]
fn cookies_are_each_clients_own() {
    let site = Site::start();
    run(&RequestOptions { cookies: true, ..asking(&[site.url("/cookie")]) }, None, clients(4.0), Some(40), HTTP1);
    let mut of: BTreeMap<usize, Vec<Option<String>>> = BTreeMap::new();
    for request in site.seen() {
        of.entry(request.connection).or_default().push(request.cookie);
    }
    assert_eq!(of.len(), 4);
    for (connection, cookies) in of {
        assert_eq!(cookies[0], None);
        assert!(cookies[1..].iter().all(|cookie| *cookie == Some(format!("visitor={connection}"))), "{cookies:?}");
    }
}

#[test]
fn every_url_of_a_sitemap_is_asked() {
    let site = Site::start();
    let asking = RequestOptions { in_order: true, ..asking(&[]) };
    let results = run(&asking, Some(&site.url("/sitemap.xml")), clients(1.0), Some(4), HTTP1);
    let targets: Vec<_> = site.seen().into_iter().map(|request| request.target).collect();
    assert_eq!(targets, ["/sitemap.xml", "/posts.xml.gz", "/post", "/other?a=1&b=2", "/post", "/other?a=1&b=2"]);
    assert_eq!(results.requests, 4);
}

#[test]
fn checks_of_contents_look_into_gzip_and_chunks() {
    let site = Site::start();
    let check = |text: &str| {
        let mut checks = Checks::default();
        checks.expect_body(text).expect("a check");
        let fields = vec!["Accept-Encoding: gzip".to_owned()];
        run(&RequestOptions { checks, fields, ..asking(&[site.url("/post")]) }, None, clients(1.0), Some(5), HTTP1).errors
            [&ErrorClass::Body]
    };
    assert_eq!((check("</html>"), check("no such text")), (0, 5));
}

#[test]
fn a_planted_leak_is_found_as_often_as_it_was_planted() {
    for (every, protocol) in [(0, HTTP1), (10, HTTP1)] {
        let server = Leaking::start(every);
        let asking = RequestOptions { leak_cookie: Some(LEAK_COOKIE.to_owned()), ..asking(&[server.url()]) };
        let results = run(&asking, None, clients(8.0), Some(500), protocol);
        let (requests, leaked) = server.counts();
        assert_eq!((requests, results.errors[&ErrorClass::Leak]), (500, leaked));
        assert_eq!(leaked > 0, every > 0);
        assert_eq!(results.leaks.len() as u64, leaked.min(10));
        assert!(
            results.leaks.iter().all(|leak| leak.place == "body" && leak.owner.is_some_and(|owner| owner != leak.client)),
            "{:?}",
            results.leaks
        );
    }
}

#[test]
fn a_crowd_of_a_shape_asks_what_the_shape_says() {
    let site = Site::start();
    let shape = Shape::load("fediverse").expect("built in");
    let over = Duration::from_secs(2);
    assert_eq!(shape.schedule(Some(60.0), Some(over)).end(), Some(over));
    let asking = RequestOptions { shape: Some(shape), over: Some(over), ..asking(&[site.url("/post")]) };
    let schedule = Schedule::Arrivals { rate: Profile::constant(50.0, Some(over)), spacing: Spacing::Even };
    let results = run(&asking, None, schedule, None, HTTP1);
    let seen = site.seen();
    assert_eq!(seen.len() as u64, results.requests);
    let is =
        |method: &str, accept: &str| seen.iter().filter(|request| request.method == method && request.accept.starts_with(accept)).count();
    let (previews, heads, objects) = (is("GET", "text/html"), is("HEAD", "text/html"), is("GET", "application/activity+json"));
    assert_eq!((previews + objects, previews + heads + objects), (100, seen.len()));
    // Eight in ten and two in ten of 100 visitors; half of the former ask for the head before. Four standard deviations.
    assert!((64..=96).contains(&previews) && (20..=60).contains(&heads), "{previews} {heads} {objects}");
}
