//! The account as a whole: what it is told, what it shows, and that it survives a restart.

use std::time::Duration;

use admin_api::{COLUMNS, PurgeLine};
use insight::{
    BUCKET_MICROS, CLASSES, CacheResult, CookiePart, EndedRequest, Filter, Insight, PERIOD, RESULTS, Row, SampledHit, Span, Sum, Unreadable,
};

const START: u64 = 1_800_000_000;
const SITES: [(u16, &str); 2] = [(0, "blog"), (1, "shop")];

fn insight() -> Insight {
    let insight = Insight::new(START * 1_000);
    insight.set_sites(&SITES, START * 1_000);
    insight
}

fn request(target: &str) -> EndedRequest<'_> {
    EndedRequest {
        at: START * 1_000,
        id: "0a1b",
        site: Some(0),
        scheme: "https",
        host: "blog.example",
        method: "GET",
        target,
        version: "1.1",
        status: 200,
        result: CacheResult::Miss,
        rule: "cold",
        class: "document",
        complete: true,
        bytes: 100,
        took: Duration::from_millis(25),
        origin_time: Some(Duration::from_millis(20)),
        agent: "curl/8.5.0",
        ..EndedRequest::default()
    }
}

/// Returns a row of requests with one result.
fn row(result: CacheResult, requests: u64) -> Row {
    let mut row = Row::default();
    let at = result.place();
    row.sums[at][0] = Sum { requests, bytes: requests * 10, origin_micros: if result == CacheResult::Miss { requests * 1_000 } else { 0 } };
    let slow = BUCKET_MICROS.iter().position(|bound| *bound == 5_000).expect("a bound");
    row.latencies[at][if result == CacheResult::Miss { slow } else { 0 }] = requests;
    if result == CacheResult::Miss {
        (row.origin_requests, row.origin_micros) = (requests, requests * 1_000);
    }
    row
}

fn column(name: &str) -> usize {
    COLUMNS.iter().position(|column| *column == name).expect("a column")
}

#[test]
fn a_plugin_that_begins_a_session_is_blamed_by_its_cookie() {
    let insight = insight();
    let set = EndedRequest { rule: "set-cookie", detail: "PHPSESSID", cookie: Some(CookiePart::Set), ..request("/products/?page=2") };
    insight.ended(&set);
    for _ in 0..3 {
        insight.ended(&EndedRequest {
            result: CacheResult::Bypass,
            rule: "php-session",
            detail: "PHPSESSID",
            cookie: Some(CookiePart::Carried),
            ..request("/")
        });
    }
    insight.second(START + 1, &[(Some(0), row(CacheResult::Hit, 6)), (Some(0), row(CacheResult::Miss, 4))]);
    let seen = insight.seen(Some("blog"), START * 1_000).expect("a site");
    let cookie = &seen.cookies[0];
    assert_eq!((cookie.name.as_str(), cookie.requests, cookie.answers), ("PHPSESSID", 3, 1));
    assert_eq!((cookie.set_by.as_str(), cookie.known_for.as_str()), ("https://blog.example/products/?page=…", "PHP sessions"));
    assert!((cookie.share - 0.4).abs() < 1e-9, "{}", cookie.share);
    assert!(cookie.remedy.contains("drop_set_cookies = [\"PHPSESSID\"]"), "{}", cookie.remedy);
    let reasons: Vec<_> = seen.reasons.iter().map(|reason| (reason.rule.as_str(), reason.detail.as_str(), reason.requests)).collect();
    assert_eq!(reasons, [("php-session", "PHPSESSID", 3), ("set-cookie", "PHPSESSID", 1)]);
    assert_eq!(seen.reasons[0].example, "https://blog.example/");
}

#[test]
fn what_is_right_as_it_is_has_no_remedy() {
    let insight = insight();
    let signed_in = "wordpress_logged_in_*";
    insight.ended(&EndedRequest {
        result: CacheResult::Bypass,
        rule: "wordpress-user-cookie",
        detail: signed_in,
        cookie: Some(CookiePart::Carried),
        ..request("/")
    });
    let seen = insight.seen(None, START * 1_000).expect("all");
    assert_eq!((seen.reasons[0].remedy.as_str(), seen.cookies[0].remedy.as_str()), ("", ""));
}

#[test]
fn a_request_without_a_rule_has_the_reason_of_its_result() {
    let insight = insight();
    for result in [CacheResult::Miss, CacheResult::Expired, CacheResult::Revalidated, CacheResult::Bypass] {
        insight.ended(&EndedRequest { result, rule: "", ..request("/") });
    }
    // These did not wait for the origin: there is no reason for anything.
    for result in [CacheResult::Updating, CacheResult::None, CacheResult::Stale] {
        insight.ended(&EndedRequest { result, rule: "", origin_time: None, ..request("/") });
    }
    let seen = insight.seen(None, START * 1_000).expect("all");
    let mut rules: Vec<_> = seen.reasons.iter().map(|reason| reason.rule.as_str()).collect();
    rules.sort_unstable();
    assert_eq!(rules, ["cold", "expired", "request", "revalidated"]);
}

#[test]
fn errors_are_those_of_origins_and_what_was_refused_here() {
    let insight = insight();
    insight.ended(&EndedRequest { status: 502, rule: "connection_refused", ..request("/a") });
    insight.ended(&EndedRequest { status: 200, result: CacheResult::Stale, rule: "connection_refused", ..request("/b") });
    insight.ended(&EndedRequest { status: 500, rule: "http_response_status", ..request("/c") });
    insight.ended(&EndedRequest { status: 500, rule: "no-store", ..request("/d") });
    insight.ended(&EndedRequest {
        site: None,
        status: 421,
        result: CacheResult::None,
        rule: "no-such-site",
        origin_time: None,
        ..request("/e")
    });
    // The origin's own "not found" is a page.
    insight.ended(&EndedRequest { status: 404, ..request("/f") });
    let seen = insight.seen(None, START * 1_000).expect("all");
    let mut errors: Vec<_> =
        seen.errors.iter().map(|error| (error.site.as_str(), error.status, error.failure.as_str(), error.example.as_str())).collect();
    errors.sort_unstable();
    assert_eq!(
        errors,
        [
            ("", 421, "no-such-site", "https://blog.example/e"),
            ("blog", 200, "connection_refused", "https://blog.example/b"),
            ("blog", 500, "", "https://blog.example/d"),
            ("blog", 500, "http_response_status", "https://blog.example/c"),
            ("blog", 502, "connection_refused", "https://blog.example/a"),
        ]
    );
}

#[test]
fn pages_that_are_read_are_those_of_the_sample_and_those_that_missed() {
    let insight = insight();
    let hit =
        SampledHit { site: Some(0), scheme: "https", host: "blog.example", class: "document", stands_for: 256, ..SampledHit::default() };
    let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36";
    for _ in 0..3 {
        insight.sampled_hit(&SampledHit {
            target: "/hot?utm_source=x",
            agent: chrome,
            referrer: "https://news.example/1",
            bytes: 10,
            ..hit
        });
    }
    insight.sampled_hit(&SampledHit { target: "/style.css", class: "style", agent: chrome, ..hit });
    insight.ended(&request("/hot?utm_source=y"));
    let seen = insight.seen(Some("blog"), START * 1_000).expect("a site");
    let hot: Vec<_> = seen.hot.iter().map(|page| (page.url.as_str(), page.requests, page.bytes)).collect();
    assert_eq!(hot, [("https://blog.example/hot", 769, 7_780)]);
    let agents: Vec<_> = seen.agents.iter().map(|agent| (agent.name.as_str(), agent.requests)).collect();
    assert_eq!(agents, [("Chrome", 1_024), ("curl", 1)]);
    assert_eq!((seen.referrers[0].name.as_str(), seen.referrers[0].requests), ("news.example", 768));
}

#[test]
fn a_series_has_a_row_for_each_second_in_which_seawall_ran() {
    let insight = insight();
    insight.second(START + 1, &[(Some(0), row(CacheResult::Hit, 3)), (None, row(CacheResult::None, 1))]);
    insight.second(START + 2, &[]);
    // Seawall does not run for a second.
    insight.second(START + 4, &[(Some(1), row(CacheResult::Miss, 2))]);
    let hour = insight.series(None, Span::Hour, START + 4).expect("all");
    assert_eq!((hour.step, hour.rows.len(), hour.from), (1, 3_600, START + 4 - 3_600));
    let requests = |rows: &[Option<Vec<u64>>]| rows.iter().map(|row| row.as_ref().map(|row| row[0])).collect::<Vec<_>>();
    assert_eq!(requests(&hour.rows[3_595..]), [None, Some(4), Some(0), None, Some(2)]);
    let last = hour.rows[3_599].as_ref().expect("it ran");
    assert_eq!((last[column("misses")], last[column("origin_requests")], last[column("origin_micros")]), (2, 2, 2_000));
    assert!(last[column("p50_micros")] > 2_500 && last[column("p99_micros")] <= 5_000);
    // The percentile of a second is no longer than its slowest response took, though it may be written a little shorter.
    let mut slow = row(CacheResult::Miss, 9);
    slow.slowest = [2_700; RESULTS.len()];
    insight.second(START + 5, &[(Some(1), slow)]);
    let moment = insight.moment(0).total;
    assert!((2_500..=2_700).contains(&moment[column("p99_micros")]), "{moment:?}");
    let blog = insight.series(Some("blog"), Span::Hour, START + 4).expect("a site");
    assert_eq!(requests(&blog.rows[3_595..]), [None, Some(3), Some(0), None, Some(0)]);
    assert_eq!(insight.series(Some("nobody"), Span::Hour, START + 4), None);
}

#[test]
fn minutes_and_ten_minutes_are_the_sums_of_their_seconds() {
    let insight = insight();
    let start = START / 600 * 600;
    for second in 0..1_800 {
        insight.second(start + second + 1, &[(Some(0), row(CacheResult::Hit, 1)), (Some(1), row(CacheResult::Miss, second / 60))]);
    }
    let now = start + 1_800;
    let day = insight.series(Some("shop"), Span::Day, now).expect("a site");
    assert_eq!((day.step, day.rows.len(), day.from + 1_440 * 60), (60, 1_440, now));
    let last: Vec<u64> = day.rows[1_410..].iter().flatten().map(|row| row[0]).collect();
    assert_eq!(last, (0..30).map(|minute| minute * 60).collect::<Vec<_>>());
    assert!(day.rows[..1_410].iter().all(Option::is_none));
    let week = insight.series(None, Span::Week, now).expect("all");
    assert_eq!((week.step, week.rows.len()), (600, 1_008));
    let last: Vec<u64> = week.rows.iter().flatten().map(|row| row[column("requests")]).collect();
    // 600 hits, and 60 times the sum of ten minutes' numbers of misses.
    assert_eq!(last, [600 + 60 * 45, 600 + 60 * 145, 600 + 60 * 245]);
    assert_eq!(insight.series(None, Span::WeekInMinutes, now).expect("all").rows.iter().flatten().count(), 30);
    let sum = insight.sum(Some("shop"), start + 600, start + 1_200).expect("it ran");
    assert_eq!((sum[column("misses")], sum[column("p50_micros")]), (60 * 145, 0));
    assert_eq!(insight.sum(None, start - 7_200, start - 3_600), None);
}

/// A day has the hour in it, and what is now is a part of all three.
#[test]
fn an_hour_a_day_and_a_week_have_what_happened_in_the_last_second() {
    let insight = insight();
    let start = START / 600 * 600;
    let requests = |span, now| {
        let series = insight.series(Some("blog"), span, now).expect("a site");
        assert_eq!((series.until, series.from % series.step), (now, 0));
        assert_eq!(series.from + series.rows.len() as u64 * series.step, now.div_ceil(series.step) * series.step);
        series.rows.iter().flatten().map(|row| row[0]).sum::<u64>()
    };
    for second in 1..=4_000 {
        insight.second(start + second, &[(Some(0), row(CacheResult::Hit, 1))]);
        if [1, 59, 60, 61, 599, 600, 601, 3_601, 3_659, 4_000].contains(&second) {
            let sums = [Span::Hour, Span::Day, Span::Week].map(|span| requests(span, start + second));
            assert_eq!(sums, [second.min(3_600), second, second], "after {second} seconds");
        }
    }
}

#[test]
fn what_happened_in_the_same_hour_a_week_ago_is_still_there() {
    let insight = insight();
    let start = START / 3_600 * 3_600;
    let hours = 7 * 24 + 1;
    for minute in 0..hours * 60 {
        insight.second(start + minute * 60 + 60, &[(Some(0), row(CacheResult::Hit, 1 + minute / 60))]);
    }
    let now = start + hours * 3_600;
    let (this, last) = (insight.sum(Some("blog"), now - 3_600, now), insight.sum(Some("blog"), start, start + 3_600));
    assert_eq!((this.expect("it ran")[0], last.expect("it ran")[0]), (hours * 60, 60));
}

#[test]
fn a_clock_that_is_put_back_loses_no_more_than_what_it_goes_back_over() {
    let insight = insight();
    for second in 1..=100 {
        insight.second(START + second, &[(Some(0), row(CacheResult::Hit, 1))]);
    }
    // By two seconds: they are added to what is there.
    insight.second(START + 98, &[(Some(0), row(CacheResult::Hit, 5))]);
    insight.second(START + 101, &[]);
    let rows = insight.series(None, Span::Hour, START + 101).expect("all").rows;
    assert_eq!(rows.iter().flatten().map(|row| row[0]).sum::<u64>(), 105);
    // By a day: what comes is counted there, and nothing panics.
    for second in 1..=10 {
        insight.second(START - 86_400 + second, &[(Some(0), row(CacheResult::Hit, 7))]);
    }
    let rows = insight.series(None, Span::Hour, START - 86_400 + 10).expect("all").rows;
    assert_eq!(rows.iter().flatten().map(|row| row[0]).sum::<u64>(), 70);
}

#[test]
fn what_is_older_than_two_days_is_forgotten() {
    let insight = insight();
    insight.ended(&request("/old"));
    insight.second(START + 1, &[(Some(0), row(CacheResult::Miss, 1))]);
    let of = |now: u64| {
        let seen = insight.seen(None, now * 1_000).expect("all");
        (seen.missed.len(), seen.reasons.len(), seen.totals.requests, seen.since)
    };
    let day = PERIOD / 1_000;
    insight.second(START + day + 1, &[]);
    assert_eq!(of(START + day + 1), (1, 1, 1, START * 1_000));
    insight.second(START + 2 * day + 1, &[]);
    assert_eq!(of(START + 2 * day + 1), (0, 0, 0, (START + day) * 1_000));
    // After a week without Seawall, nothing of before is left.
    insight.ended(&request("/new"));
    insight.second(START + 9 * day, &[]);
    assert_eq!(of(START + 9 * day).0, 0);
}

#[test]
fn the_account_survives_a_restart() {
    let before = insight();
    for n in 0..500 {
        before.ended(&EndedRequest { rule: "cookie", detail: "shop", cookie: Some(CookiePart::Set), ..request(&format!("/{n}")) });
        before.ended(&EndedRequest {
            site: Some(1),
            status: 502,
            rule: "connection_refused",
            referrer: "https://news.example/",
            ..request("/shop")
        });
        before.second(START + n + 1, &[(Some(0), row(CacheResult::Hit, n)), (Some(1), row(CacheResult::Miss, 1))]);
    }
    before.purged(&PurgeLine { at: 1, by: "the admin API".into(), covered: "everything".into(), count: Some(3), ..PurgeLine::default() });
    before.origin_is_down(1, "127.0.0.1:1", START * 1_000);
    let bytes = before.to_bytes();
    let after = Insight::from_bytes(&bytes).expect("what was written");
    // Their numbers may have changed.
    after.set_sites(&[(3, "blog"), (7, "shop")], START * 1_000);
    let now = START + 500;
    for site in [None, Some("blog"), Some("shop")] {
        let (before, after) = (before.seen(site, now).expect("known"), after.seen(site, now).expect("known"));
        assert_eq!(admin_api::Seen { memory: before.memory, sites: before.sites.clone(), ..after }, before);
    }
    for span in [Span::Hour, Span::Day, Span::Week] {
        assert_eq!(after.series(Some("blog"), span, now), before.series(Some("blog"), span, now));
        assert_eq!(after.series(None, span, now), before.series(None, span, now));
    }
    assert_eq!(after.moment(0).down, ["shop"]);
    // Who follows goes on from where they were.
    let next = before.recent(0, None, 1).next;
    after.ended(&EndedRequest { site: Some(3), ..request("/after") });
    let recent = after.recent(next, None, 10);
    assert_eq!((recent.lost, recent.requests.len(), recent.requests[0].number), (0, 1, next + 1));
    assert_eq!(recent.requests[0].site, "blog");
}

/// The file is what a build before version 2 wrote: 3 hits of the blog and a miss of the shop in the first second, 2 misses of the blog in the next, and a
/// request and a purge of `/orders/1234567890/`, which may be somebody's own.
#[test]
fn sums_and_charts_of_version_1_are_taken_up_and_nothing_that_is_hidden_now() {
    let insight = Insight::from_bytes(include_bytes!("version-1.seen")).expect("it is sound");
    insight.set_sites(&SITES, START * 1_000);
    let requests = |site, now| {
        let hour = insight.series(site, Span::Hour, now).expect("known");
        hour.rows.iter().flatten().map(|row| row[0]).collect::<Vec<_>>()
    };
    assert_eq!((requests(Some("blog"), START + 2), requests(Some("shop"), START + 2)), (vec![3, 2], vec![1, 0]));
    let blog = insight.seen(Some("blog"), START * 1_000).expect("a site");
    let results: Vec<_> = blog.by_result.iter().map(|line| (line.name.as_str(), line.requests)).collect();
    assert_eq!(results, [("hit", 3), ("miss", 2)]);
    assert!(blog.hot.is_empty() && blog.reasons.is_empty() && blog.purges.is_empty(), "{blog:?}");
    assert_eq!(insight.moment(0).down, ["shop"]);
    // It is written as the version of today.
    assert!(Insight::from_bytes(&insight.to_bytes()).is_ok());
}

#[test]
fn a_file_that_is_damaged_is_told_as_such() {
    let insight = insight();
    insight.ended(&request("/"));
    insight.second(START + 1, &[(Some(0), row(CacheResult::Hit, 1))]);
    let bytes = insight.to_bytes();
    let read = |bytes: &[u8]| Insight::from_bytes(bytes).map(drop);
    assert_eq!(read(&bytes), Ok(()));
    assert_eq!(read(b""), Err(Unreadable::NotOurs));
    assert_eq!(read(b"something else, which somebody put there"), Err(Unreadable::NotOurs));
    for length in (12..bytes.len()).step_by(7) {
        assert_eq!(read(&bytes[..length]), Err(Unreadable::Damaged), "cut at {length}");
    }
    for at in (12..bytes.len()).step_by(5) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert_eq!(read(&damaged), Err(Unreadable::Damaged), "byte {at}");
    }
    let mut newer = bytes.clone();
    newer[8] = 99;
    assert_eq!(read(&newer), Err(Unreadable::Version(99)));
    newer[8] = 0;
    assert_eq!(read(&newer), Err(Unreadable::Version(0)));
    assert_eq!(read(&[&bytes[..], b"more"].concat()), Err(Unreadable::Damaged));
}

#[test]
fn a_site_that_is_taken_out_of_the_configuration_is_not_shown_and_comes_back() {
    let insight = insight();
    insight.ended(&EndedRequest { site: Some(1), ..request("/shop") });
    insight.origin_is_down(1, "o", START * 1_000);
    insight.set_sites(&SITES[..1], (START + 5) * 1_000);
    assert_eq!(insight.seen(Some("shop"), 0), None);
    assert_eq!(insight.seen(None, 0).expect("all").outages[0].until, Some((START + 5) * 1_000), "nobody looks at its origin any more");
    insight.set_sites(&SITES, START * 1_000);
    assert_eq!(insight.seen(Some("shop"), 0).expect("a site").missed.len(), 1);
    // A number that belongs to no site is counted all the same.
    insight.ended(&EndedRequest { site: Some(999), ..request("/other") });
    let seen = insight.seen(None, 0).expect("all");
    assert!(seen.missed.iter().any(|page| page.site == "(other sites)"));
    assert_eq!(seen.sites, ["blog", "shop"]);
}

#[test]
fn the_last_requests_are_shown_and_followed() {
    let insight = insight();
    for n in 1..=10_u16 {
        insight.ended(&EndedRequest { status: 200 + n, ..request("/") });
    }
    let statuses = |recent: &admin_api::Recent| recent.requests.iter().map(|line| line.status).collect::<Vec<_>>();
    let last = insight.recent(0, None, 3);
    assert_eq!((statuses(&last), last.next, last.lost), (vec![208, 209, 210], 10, 0));
    // Who follows gets what came after, in order, and no more than they asked for.
    let first = insight.recent(2, None, 3);
    assert_eq!((statuses(&first), first.next), (vec![203, 204, 205], 5));
    assert_eq!(statuses(&insight.recent(first.next, None, 100)), [206, 207, 208, 209, 210]);
    assert!(insight.recent(10, None, 100).requests.is_empty());
    let filter = Filter::parse("status >= 205 and status < 207").expect("an expression");
    assert_eq!(statuses(&insight.recent(0, Some(&filter), 100)), [205, 206]);
    let one = insight.recent(1, Some(&filter), 1);
    assert_eq!((statuses(&one), statuses(&insight.recent(one.next, Some(&filter), 9))), (vec![205], vec![206]));
    // A number of a Seawall before this one.
    assert_eq!(insight.recent(5_000, None, 100).requests.len(), 10);
    // 4,096 are kept.
    (0..5_000).for_each(|_| insight.ended(&request("/")));
    let late = insight.recent(2, None, 1);
    assert_eq!((late.lost, late.requests[0].number), (5_010 - 4_096 - 2, 5_010 - 4_095));
    assert_eq!(insight.recent(0, None, 0).requests.len(), 0);
}

#[test]
fn a_moment_is_the_last_second_and_is_small() {
    let insight = Insight::new(START * 1_000);
    let names: Vec<String> = (0..256).map(|n| format!("{n:060}")).collect();
    let sites: Vec<(u16, &str)> = (0..).zip(&names).map(|(number, name)| (number, name.as_str())).collect();
    insight.set_sites(&sites, START * 1_000);
    let mut rows: Vec<(Option<u16>, Row)> = (0..256).map(|site| (Some(site), row(CacheResult::Hit, 1_000_000 + u64::from(site)))).collect();
    rows.push((None, row(CacheResult::None, 5)));
    insight.second(START + 1, &rows);
    let long = "\"".repeat(8_192);
    for n in 0..100 {
        insight.ended(&EndedRequest {
            id: &long,
            host: &long,
            method: &long,
            detail: &long,
            agent: &long,
            ..request(&format!("/{n}?{long}"))
        });
    }
    let moment = insight.moment(0);
    assert_eq!((moment.at, moment.total[0]), (START + 1, 256_000_000 + 255 * 128 + 5));
    assert_eq!(moment.sites[0].0, names[255], "the busiest is first");
    assert_eq!(moment.recent.last().map(|line| line.number), Some(100));
    assert!(insight.moment(100).recent.is_empty());
    let bytes = serde_json::to_vec(&moment).expect("JSON").len();
    assert!(bytes < 30_000, "{bytes}");
    assert!(moment.recent.len() <= 20 && CLASSES.contains(&&*moment.recent[0].class));
}
