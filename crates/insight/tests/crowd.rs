//! A crowd of strangers who invent addresses, cookies, programs and hosts: what leads stays in order, and memory within its bound.

use std::time::Duration;

use insight::{CLASSES, CookiePart, Ended, Insight, MEMORY_MAX, RESULTS, Row, SITES_MAX, SampledHit, Span, Sum};

const START: u64 = 1_800_000_000;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A request that missed.
fn miss<'a>(site: u16, target: &'a str, took: Duration) -> Ended<'a> {
    Ended {
        at: START * 1_000,
        site: Some(site),
        scheme: "https",
        host: "a.example",
        method: "GET",
        target,
        version: "2.0",
        status: 200,
        result: "miss",
        rule: "no-store",
        class: "document",
        complete: true,
        bytes: 10_000,
        took,
        origin_time: Some(took),
        agent: "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        ..Ended::default()
    }
}

fn row(requests: u64, micros: u64) -> Row {
    let mut row = Row { origin_requests: requests, origin_micros: micros, ..Row::default() };
    let result = RESULTS.iter().position(|name| *name == "miss").expect("a result");
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
        let invented = Ended {
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
            let of_rule = Ended { rule, ..miss(at, &page_of_rule, took) };
            let of_page = Ended { rule: "cold", ..miss(at, &target, took) };
            let of_cookie = Ended { rule: "cookie", detail: COOKIES[leader], cookie: Some(part), ..miss(at, &page_of_cookie, took) };
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
    println!("counted {bytes}, grown {grown}, on disk {}", insight.to_bytes().len());
}

#[test]
fn the_longest_texts_at_two_hundred_and_fifty_six_sites_stay_within_the_bound() {
    let insight = Insight::new(START * 1_000);
    let names: Vec<String> = (0..SITES_MAX).map(|n| format!("{n:064}")).collect();
    let sites: Vec<(u16, &str)> = (0..).zip(&names).map(|(number, name)| (number, name.as_str())).collect();
    insight.set_sites(&sites, START * 1_000);
    let long = "x".repeat(8_192);
    for n in 0..60_u64 {
        for site in 0..u16::try_from(SITES_MAX).expect("few") {
            let (target, host, name) = (format!("/{n}/{}", &long[..118]), format!("{n:030}.example"), format!("{n}{long}"));
            let ended = Ended {
                id: &long,
                trace: &long,
                host: &host,
                rule: ["cookie", "set-cookie", "private", "connection_refused"][usize::try_from(n % 4).expect("few")],
                detail: &name,
                cookie: Some(CookiePart::Set),
                status: 500 + u16::try_from(n % 30).expect("few"),
                agent: &name,
                referrer: &format!("https://{n}{long}/"),
                ..miss(site, &target, millis(n + 1))
            };
            insight.ended(&ended);
            insight.sampled_hit(&SampledHit {
                site: Some(site),
                scheme: "https",
                host: &host,
                target: &target,
                class: "document",
                bytes: 10,
                agent: &name,
                referrer: &format!("https://{n}{long}/"),
                stands_for: 256,
            });
            insight.origin_is_down(site, &long, START * 1_000);
        }
        insight.purged(&admin_api::PurgeLine {
            by: long.clone(),
            covered: long.clone(),
            site: long.clone(),
            ..admin_api::PurgeLine::default()
        });
    }
    // A busy day of all of them: seconds, minutes and ten minutes.
    let mut busy = row(1_234_567, 987_654_321);
    busy.sums.iter_mut().flatten().for_each(|sum| *sum = Sum { requests: 123_456, bytes: 1 << 35, origin_micros: 1 << 33 });
    let rows: Vec<(Option<u16>, Row)> = (0..u16::try_from(SITES_MAX).expect("few")).map(|site| (Some(site), busy.clone())).collect();
    for second in 0..1_500 {
        insight.second(START + second, &rows);
    }
    for minute in 0..600 {
        insight.second(START + 1_500 + minute * 60, &rows);
    }
    let (bytes, _) = insight.memory();
    println!("counted {bytes}");
    assert!(bytes <= MEMORY_MAX, "{bytes}");
    // What is there is still there of all of them: the last minute, and the hours in ten minutes.
    let now = START + 1_500 + 600 * 60;
    for (_, name) in &sites {
        let week = insight.series(Some(name), Span::Week, now).expect("a site");
        assert!(week.rows.iter().flatten().count() > 30, "{name}");
    }
    // And the form on disk brings all of it back within the bound.
    let again = Insight::from_bytes(&insight.to_bytes()).expect("what was written");
    again.set_sites(&sites, START * 1_000);
    assert!(again.memory().0 <= MEMORY_MAX, "{}", again.memory().0);
}

#[test]
fn one_sites_strangers_push_nothing_out_at_another() {
    let insight = Insight::new(START * 1_000);
    insight.set_sites(&[(1, "quiet"), (2, "flooded")], START * 1_000);
    let visit = |n: u64| {
        for page in 0..10 {
            if n % (page + 2) == 0 {
                let target = format!("/page/{page}");
                insight.ended(&Ended { rule: RULES[usize::try_from(page).expect("few")], ..miss(1, &target, millis(1)) });
            }
        }
    };
    for n in 0..60_000_u64 {
        let (target, cookie) = (format!("/{n}"), format!("c{n}"));
        insight.ended(&Ended { detail: &cookie, cookie: Some(CookiePart::Set), ..miss(2, &target, millis(500)) });
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
    assert_eq!(CLASSES.len(), 8);
}
