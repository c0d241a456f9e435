//! The bound on memory, with as many sites as there can be, and with the longest texts.
//!
//! Alone in its process, whose memory it measures.

use std::time::Duration;

use insight::{CacheResult, CookiePart, EndedRequest, Insight, MEMORY_MAX, Row, SITES_MAX, SampledHit, Span, Sum};

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

#[test]
fn the_longest_texts_at_two_hundred_and_fifty_six_sites_stay_within_the_bound() {
    // What the test itself needs, and the code, come before the measure.
    drop(Insight::new(START * 1_000).to_bytes());
    let mut busy = row(1_234_567, 987_654_321);
    busy.sums.iter_mut().flatten().for_each(|sum| *sum = Sum { requests: 123_456, bytes: 1 << 35, origin_micros: 1 << 33 });
    let rows: Vec<(Option<u16>, Row)> = (0..u16::try_from(SITES_MAX).expect("few")).map(|site| (Some(site), busy.clone())).collect();
    let before = resident();
    let insight = Insight::new(START * 1_000);
    let names: Vec<String> = (0..SITES_MAX).map(|n| format!("{n:064}")).collect();
    let sites: Vec<(u16, &str)> = (0..).zip(&names).map(|(number, name)| (number, name.as_str())).collect();
    insight.set_sites(&sites, START * 1_000);
    let long = "x".repeat(8_192);
    for n in 0..30_u64 {
        for site in 0..u16::try_from(SITES_MAX).expect("few") {
            let (target, host, name) = (format!("/{n}/{}", &long[..118]), format!("{n:030}.example"), format!("{n}{long}"));
            let ended = EndedRequest {
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
    for second in 0..700 {
        insight.second(START + second, &rows);
    }
    for minute in 0..300 {
        insight.second(START + 700 + minute * 60, &rows);
    }
    let (bytes, _) = insight.memory();
    let grown = resident().saturating_sub(before);
    // An allocator needs some room beside what it was asked for.
    assert!(bytes <= MEMORY_MAX && grown <= MEMORY_MAX + (2 << 20), "counted {bytes}, grown {grown}");
    // What is there is still there of all of them: the last minute, and the hours in ten minutes.
    let now = START + 700 + 300 * 60;
    for (_, name) in &sites {
        let week = insight.series(Some(name), Span::Week, now).expect("a site");
        assert!(week.rows.iter().flatten().count() > 20, "{name}");
    }
    // And the form on disk brings all of it back within the bound.
    let again = Insight::from_bytes(&insight.to_bytes()).expect("what was written");
    again.set_sites(&sites, START * 1_000);
    assert!(again.memory().0 <= MEMORY_MAX, "{}", again.memory().0);
}
