//! A crowd of strangers who invent addresses, cookies, programs and hosts: what leads stays in order, and memory within its bound.
//!
//! Alone in its process, whose memory it measures.

use std::time::Duration;

use insight::{CacheResult, CookiePart, EndedRequest, Insight, MEMORY_MAX, Row, Sum};

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

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    status.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4_096
}

/// The ten leaders of each list, in the order in which they have to come out: each comes a seventh less often than the one before.
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
const COOKIES: [&str; 10] =
    ["PHPSESSID", "wfvt_*", "edd_wp_session*", "pll_language", "elementor", "sbjs_*", "pvc_*", "_wp_session*", "itsec-*", "shop"];

#[test]
fn the_costliest_stay_in_order_although_a_million_invented_ones_come_between() {
    let before = resident();
    let insight = Insight::new(START * 1_000);
    let names: Vec<String> = (0..20).map(|n| format!("site {n}")).collect();
    let sites: Vec<(u16, &str)> = (0..20).zip(&names).map(|(number, name)| (number, name.as_str())).collect();
    insight.set_sites(&sites, START * 1_000);
    let mut random = fastrand::Rng::with_seed(18);
    let mut truth = [[(0_u64, 0_u64); 10]; 3];
    for n in 0..1_000_000_u64 {
        // What was invented costs something, too: a "not found" of 4 to 8 ms; and everything about it was never seen before.
        let site = u16::try_from(n % 20).expect("few");
        let (target, agent, referrer) =
            (format!("/invented/{n}?a{}=1", n / 7), format!("Invented{n}/1.0 (bot)"), format!("https://invented{n}.example/x"));
        let (cookie, host) = (format!("invented{n}"), format!("host{n}.example"));
        let took = millis(4 + random.u64(..5));
        let invented = EndedRequest {
            status: 404,
            rule: if n % 2 == 0 { "cookie" } else { "cold" },
            detail: if n % 2 == 0 { &cookie } else { "" },
            cookie: (n % 2 == 0).then_some(CookiePart::Carried),
            agent: &agent,
            referrer: &referrer,
            host: &host,
            ..miss(site, &target, took)
        };
        insight.ended(&invented);
        // One request in fifty is one of a leader's.
        if n % 50 == 0 {
            let leader = (0..10).find(|_| random.f64() < 0.25).unwrap_or(9);
            let (rule, took) = (RULES[leader], millis(50 + random.u64(..10)));
            let (target, at) = (format!("/leader/{leader}/"), u16::try_from(leader).expect("few"));
            let part = if leader % 2 == 0 { CookiePart::Set } else { CookiePart::Carried };
            // Each list has leaders of its own: their pages, rules and cookies are drawn apart.
            let (page_of_rule, page_of_cookie) = (format!("/r/{}", n % 4_000), format!("/c/{}", n % 4_000));
            let of_rule = EndedRequest { rule, ..miss(at, &page_of_rule, took) };
            let of_page = EndedRequest { rule: "cold", ..miss(at, &target, took) };
            let of_cookie = EndedRequest { rule: "cookie", detail: COOKIES[leader], cookie: Some(part), ..miss(at, &page_of_cookie, took) };
            insight.ended(&of_rule);
            insight.ended(&of_page);
            insight.ended(&of_cookie);
            for list in &mut truth {
                list[leader].0 += 1;
                list[leader].1 += u64::try_from(took.as_micros()).expect("few");
            }
        }
        if n % 1_000 == 0 {
            let rows: Vec<(Option<u16>, Row)> = (0..20).map(|site| (Some(site), row(50, 300_000))).collect();
            insight.second(START + 1 + n / 1_000, &rows);
        }
    }
    let seen = insight.seen(None, (START + 1_001) * 1_000).expect("all sites");

    // Expected: the order of what was really asked for.
    let order = |list: usize| {
        let mut leaders: Vec<usize> = (0..10).collect();
        leaders.sort_by_key(|leader| std::cmp::Reverse(truth[list][*leader].1));
        leaders
    };

    // Reasons are exact. Those of the strangers stand among them: they have cost most, and are no more than two a site.
    let of_leaders = seen.reasons.iter().filter(|reason| RULES.contains(&&*reason.rule));
    let reasons: Vec<_> = of_leaders.map(|reason| (reason.rule.as_str(), (reason.requests, reason.origin_micros))).collect();
    let expected: Vec<_> = order(0).into_iter().map(|leader| (RULES[leader], truth[0][leader])).collect();
    assert_eq!(reasons, expected);

    // Pages: the order is right, and the counts are within what is said of them.
    let pages: Vec<_> = seen.missed.iter().take(10).map(|page| page.url.clone()).collect();
    let expected: Vec<_> = order(1).into_iter().map(|leader| format!("https://a.example/leader/{leader}/")).collect();
    assert_eq!(pages, expected);
    for (page, leader) in seen.missed.iter().zip(order(1)) {
        let (requests, micros) = truth[1][leader];
        assert!(page.requests.abs_diff(requests) <= page.error, "{page:?}: {requests}");
        assert!(page.origin_micros.abs_diff(micros) * 20 <= micros, "{page:?}: {micros}");
    }

    let cookies: Vec<_> = seen.cookies.iter().take(10).map(|cookie| cookie.name.as_str()).collect();
    let expected: Vec<_> = order(2).into_iter().map(|leader| COOKIES[leader]).collect();
    assert_eq!(cookies, expected);
    let worst = &seen.cookies[0];
    assert_eq!((worst.known_for.as_str(), worst.set_by.is_empty()), ("PHP sessions", false), "{worst:?}");

    let (bytes, bound) = insight.memory();
    let grown = resident().saturating_sub(before);
    assert!(bytes <= bound && bound == MEMORY_MAX, "{bytes} of {bound}");
    assert!(grown <= MEMORY_MAX, "the process has grown by {grown} bytes");
}
