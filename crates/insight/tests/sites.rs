//! Several sites, and several workers: none of them takes anything from another.

use std::time::Duration;

use insight::{CacheResult, CookiePart, EndedRequest, Insight, Row, Sum};

const START: u64 = 1_800_000_000;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Returns a request that missed.
fn miss<'a>(site: u16, target: &'a str, took: Duration) -> EndedRequest<'a> {
    EndedRequest {
        at: START * 1_000,
        site: Some(site),
        scheme: "https",
        host: "a.example",
        method: "GET",
        target,
        version: "2.0",
        status: 200,
        result: CacheResult::Miss,
        rule: "no-store",
        class: "document",
        complete: true,
        bytes: 10_000,
        took,
        origin_time: Some(took),
        agent: "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        ..EndedRequest::default()
    }
}

fn row(requests: u64, micros: u64) -> Row {
    let mut row = Row { origin_requests: requests, origin_micros: micros, ..Row::default() };
    let result = CacheResult::Miss.place();
    row.sums[result][0] = Sum { requests, bytes: requests * 10_000, origin_micros: micros };
    row.latencies[result][7] = requests;
    row
}

const RULES: [&str; 10] = [
    "php-session",
    "no-store",
    "set-cookie",
    "wordpress-plugin-api",
    "private",
    "unfresh",
    "method",
    "wordpress-nonce",
    "vary-star",
    "authorization",
];

#[test]
fn one_sites_strangers_push_nothing_out_at_another() {
    let insight = Insight::new(START * 1_000);
    insight.set_sites(&[(1, "quiet"), (2, "flooded")], START * 1_000);
    let visit = |n: u64| {
        for page in 0..10 {
            if n.is_multiple_of(page + 2) {
                let target = format!("/page/{page}");
                insight.ended(&EndedRequest { rule: RULES[usize::try_from(page).expect("few")], ..miss(1, &target, millis(1)) });
            }
        }
    };
    for n in 0..60_000_u64 {
        let (target, cookie) = (format!("/{n}"), format!("c{n}"));
        insight.ended(&EndedRequest { detail: &cookie, cookie: Some(CookiePart::Set), ..miss(2, &target, millis(500)) });
        if n % 20 == 0 {
            visit(n / 20);
        }
        // Somebody invents addresses at the quiet one, too.
        if n % 10 == 0 {
            insight.ended(&miss(1, &format!("/invented/{n}"), millis(1)));
        }
    }
    let seen = insight.seen(Some("quiet"), START * 1_000).expect("a site");
    let pages: Vec<_> = seen.missed.iter().take(10).map(|page| page.url.clone()).collect();
    assert_eq!(pages, (0..10).map(|page| format!("https://a.example/page/{page}")).collect::<Vec<_>>());
    assert!(seen.reasons.len() >= 10 && seen.reasons.iter().all(|reason| reason.site == "quiet" && reason.rule != "(others)"));
}

#[test]
fn a_configuration_with_more_sites_leaves_each_fewer_places() {
    let insight = Insight::new(START * 1_000);
    insight.set_sites(&[(0, "first")], START * 1_000);
    for n in 0..200_u64 {
        (0..=n / 10).for_each(|_| insight.ended(&miss(0, &format!("/{n}"), millis(1))));
    }
    let pages = || insight.seen(Some("first"), 0).expect("a site").missed;
    assert_eq!(pages().len(), 25, "as many as are shown");
    let before = insight.memory().0;
    let names: Vec<String> = (1..256).map(|n| format!("site {n}")).collect();
    let sites: Vec<(u16, &str)> =
        [(0, "first")].into_iter().chain((1..).zip(&names).map(|(number, name)| (number, name.as_str()))).collect();
    insight.set_sites(&sites, START * 1_000);
    let left = pages();
    assert_eq!(left.len(), 10);
    assert!(left.iter().all(|page| page.requests == 20), "the costliest are left: {left:?}");
    assert!(insight.memory().0 < before + 255 * 4_096);
}

#[test]
fn workers_that_count_at_once_lose_nothing() {
    let insight = std::sync::Arc::new(Insight::new(START * 1_000));
    insight.set_sites(&[(1, "a"), (2, "b")], START * 1_000);
    std::thread::scope(|scope| {
        for worker in 0..4_u64 {
            let insight = &insight;
            scope.spawn(move || {
                for n in 0..5_000_u64 {
                    let site = u16::try_from(1 + n % 2).expect("few");
                    insight.ended(&miss(site, "/leader", millis(10)));
                    insight.ended(&miss(site, &format!("/{worker}/{n}"), millis(5)));
                    if n % 500 == 0 {
                        let _ = (insight.seen(None, 0), insight.moment(0), insight.to_bytes(), insight.recent(0, None, 100));
                        insight.set_sites(&[(1, "a"), (2, "b")], START * 1_000);
                        insight.second(START + n, &[(Some(site), row(1, 1))]);
                    }
                }
            });
        }
    });
    let seen = insight.seen(None, 0).expect("all");
    assert_eq!(seen.reasons.iter().map(|reason| reason.requests).sum::<u64>(), 40_000);
    let first: Vec<_> = seen.missed.iter().take(2).map(|page| (page.site.as_str(), page.requests, page.error)).collect();
    assert_eq!(first, [("a", 10_000, 0), ("b", 10_000, 0)]);
}
