//! A console that shows invented numbers: what the dashboard looks like before a server that has just started, on a calm day, in a crowd, when the origin is
//! gone, and when everything that strangers sent was meant to harm whoever looks at it.

#![expect(clippy::cast_possible_truncation, reason = "invented numbers are small")]

use std::{
    sync::Mutex,
    time::{Duration, SystemTime},
};

use admin::{
    BadExpression, CacheHealth, CertificateState, ClusterState, Console, DirectField, DirectRefused, ExplainCommand, ExplainRefused,
    Explanation, Health, Inventory, ListenerHealth, MachineState, Metric, Moment, OriginHealth, PurgeDone, PurgeRefused, Recent,
    ReloadDone, ReloadRefused, RevokeRefused, Seen, Series, SiteHealth, StoredCommand, WarmCommand, WarmRefused, Warming,
};
use admin_api::{
    AlertLine, COLUMNS, CookieLine, ErrorLine, Latency, Line, NamedCount, Outage, PageLine, PurgeLine, Reason, RequestLine, TierState,
    Totals,
};
use policy::purge::{Order, What};
use serde_json::json;

/// Says what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    /// The server has just started, and nobody has come.
    Empty,
    /// An ordinary day.
    Calm,
    /// A link to the shop is on the front page of a newspaper, and a plugin starts a session for everybody.
    Crowd,
    /// It is as before, and the origin of the shop has gone away four minutes ago.
    Down,
    /// It is as on a calm day, and everything that a stranger can choose was chosen to do harm.
    Hostile,
}

impl Scene {
    pub(crate) const ALL: [(&'static str, Self); 5] =
        [("empty", Self::Empty), ("calm", Self::Calm), ("crowd", Self::Crowd), ("down", Self::Down), ("hostile", Self::Hostile)];
}

const SITES: [&str; 3] = ["shop.example", "blog.example", "docs.example"];

/// The texts that strangers send to harm whoever looks at it. None of it may become markup, run, or turn the text around it.
pub(crate) const HOSTILE: [&str; 6] = [
    "<script>globalThis.harmed=1</script>",
    "<img src=x onerror=globalThis.harmed=1>",
    "\"><svg onload=globalThis.harmed=1>",
    "\u{202e}txt.exe\u{2066}\u{200b}\u{0}\u{1b}[31m\u{7f}",
    "javascript:globalThis.harmed=1",
    "</title></textarea><iframe srcdoc='<script>parent.harmed=1</script>'>",
];

/// Holds what was commanded.
#[derive(Debug)]
pub(crate) struct Fake {
    scene: Scene,
    pub(crate) purges: Mutex<Vec<Order>>,
    pub(crate) explained: Mutex<Vec<ExplainCommand>>,
    pub(crate) warmed: Mutex<Vec<String>>,
}

impl Fake {
    pub(crate) fn new(scene: Scene) -> Self {
        Self { scene, purges: Mutex::default(), explained: Mutex::default(), warmed: Mutex::default() }
    }

    /// Returns a text that a stranger chose.
    fn text(&self, number: usize, usual: &str) -> String {
        if self.scene != Scene::Hostile {
            return usual.to_owned();
        }
        let harm = HOSTILE[number % HOSTILE.len()];
        if number % 4 == 3 { format!("{usual}{}", harm.repeat(8192 / harm.len())) } else { format!("{usual}{harm}") }
    }

    /// Returns the sums of the second that ended so many seconds ago, in the order of `COLUMNS`.
    fn row(&self, now: u64, ago: u64, share: f64) -> Vec<u64> {
        let second = now - ago;
        if self.scene == Scene::Empty {
            return vec![0; COLUMNS.len()];
        }
        let noise = |salt: u64| (hashed(second.wrapping_mul(31).wrapping_add(salt)) % 1000) as f64 / 1000.0;
        let day = 1.0 + 0.45 * ((second % 86_400) as f64 / 86_400.0 * std::f64::consts::TAU).sin();
        let crowd = matches!(self.scene, Scene::Crowd | Scene::Down) && ago < 900;
        let is_down = self.scene == Scene::Down && ago < 240;
        let surge = if crowd { 1.0 + 18.0 * (1.0 - (ago as f64 / 900.0)).powf(1.6) } else { 1.0 };
        let requests = (42.0 * day * surge * (0.8 + 0.4 * noise(1)) * share).round();
        let passed = requests * if crowd { 0.09 } else { 0.025 } * (0.6 + 0.8 * noise(2));
        let missed = if is_down { 0.0 } else { requests * if crowd { 0.05 } else { 0.03 } * (0.5 + noise(3)) };
        let stale = requests * if is_down { 0.22 } else { 0.004 };
        let hits = requests - passed - missed;
        let failures = if is_down { 3.0 + 4.0 * noise(4) } else { 0.0 };
        let origin = if is_down { failures } else { passed + missed };
        let slow = if is_down { 3.0 } else { surge.powf(0.8) };
        let errors = if is_down { passed } else { 0.0 };
        let values = [
            requests,
            hits,
            stale,
            missed,
            passed,
            errors,
            requests * 0.006,
            requests * 31_000.0,
            requests * 31_000.0 * (0.94 + 0.05 * noise(5)) * if crowd { 0.97 } else { 1.0 },
            origin,
            failures,
            origin * 160_000.0 * slow.min(6.0),
            130.0 + 60.0 * noise(6),
            180_000.0 * slow * (0.7 + 0.6 * noise(7)),
        ];
        values.map(|value| value.max(0.0).round() as u64).to_vec()
    }

    fn share(site: Option<&str>) -> Option<f64> {
        match site {
            None => Some(1.0),
            Some("shop.example") => Some(0.55),
            Some("blog.example") => Some(0.35),
            Some("docs.example") => Some(0.1),
            Some(_) => None,
        }
    }

    fn request(&self, number: u64, at: u64) -> RequestLine {
        let n = hashed(number) as usize;
        let kinds = [
            ("shop.example", "/cart", "bypass", "cookie", "PHPSESSID", 200, "document", 212_000),
            ("shop.example", "/product/tide-clock?colour=…", "miss", "cold", "", 200, "document", 340_000),
            ("blog.example", "/2026/11/the-long-pier/", "expired", "expired", "", 200, "document", 96_000),
            ("shop.example", "/?wc-ajax=get_refreshed_fragments", "bypass", "cookie", "wp_woocommerce_session_*", 200, "api", 181_000),
            ("docs.example", "/search?q=…", "miss", "set-cookie", "_docs", 200, "document", 61_000),
            ("blog.example", "/feed/", "revalidated", "expired", "", 200, "feed", 23_000),
            ("shop.example", "/wp-login.php", "bypass", "method", "", 302, "other", 144_000),
        ];
        let (site, path, result, rule, detail, status, class, micros) = kinds[n % kinds.len()];
        let is_down = self.scene == Scene::Down && site == "shop.example";
        let (result, rule, status) = match (is_down, n % 3) {
            (true, 0) => ("stale", "connection_refused", 200),
            (true, _) => ("bypass", "connection_refused", 502),
            (false, _) => (result, rule, status),
        };
        RequestLine {
            number,
            at,
            site: site.to_owned(),
            scheme: "https".to_owned(),
            host: self.text(n, site),
            method: if rule == "method" { "POST" } else { "GET" }.to_owned(),
            path: self.text(n + 1, path),
            version: "2.0".to_owned(),
            status,
            result: result.to_owned(),
            rule: rule.to_owned(),
            detail: if is_down { String::new() } else { self.text(n + 2, detail) },
            class: class.to_owned(),
            collapsed: n.is_multiple_of(9),
            complete: !n.is_multiple_of(40),
            bytes: 4_000 + n as u64 % 60_000,
            micros: if is_down { 900 } else { micros + n as u64 % 50_000 },
            origin_micros: (!is_down).then_some(micros + n as u64 % 48_000),
            agent: self.text(n + 3, ["Firefox", "Chrome", "Safari", "Googlebot", "curl"][n % 5]),
            ..RequestLine::default()
        }
    }

    fn requests(&self, now: u64, count: u64) -> Vec<RequestLine> {
        if self.scene == Scene::Empty {
            return Vec::new();
        }
        // Four each second.
        (0..count).rev().map(|n| self.request(now * 4 - n, now * 1000 - n * 250)).collect()
    }

    fn alerts(&self, now: u64) -> Vec<AlertLine> {
        let ms = now * 1000;
        let line = |name: &str, about: &str, text: String, from, until| AlertLine {
            name: name.to_owned(),
            about: about.to_owned(),
            text,
            from,
            until,
            right_since: None,
        };
        let over = line(
            "hit-ratio",
            "blog.example",
            "The hit ratio of blog.example was 61 %; in this hour of last week it was 93 %.".to_owned(),
            ms - 26 * 3_600_000,
            Some(ms - 25 * 3_600_000),
        );
        match self.scene {
            Scene::Empty => Vec::new(),
            Scene::Calm | Scene::Crowd => vec![over],
            Scene::Down => vec![
                line(
                    "origin-down",
                    "shop.example",
                    "The origin of shop.example cannot be reached: it refuses connections. What is stored is served.".to_owned(),
                    ms - 240_000,
                    None,
                ),
                AlertLine {
                    right_since: Some(ms - 45_000),
                    ..line(
                        "server-errors",
                        "docs.example",
                        "6 % of the responses of docs.example in the last five minutes were server errors: 12 of 190. Each error counts for five minutes."
                            .to_owned(),
                        ms - 300_000,
                        None,
                    )
                },
                over,
            ],
            Scene::Hostile => {
                vec![line("origin-down", &self.text(1, "shop.example"), self.text(2, "The origin cannot be reached. "), ms - 60_000, None)]
            }
        }
    }
}

/// Mixes a number (SplitMix64), so that neighbours look unlike.
const fn hashed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[expect(clippy::disallowed_methods, reason = "a browser compares it with its own clock")]
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs()
}

impl Console for Fake {
    fn seen(&self, site: Option<&str>) -> Option<Seen> {
        let share = Self::share(site)?;
        let now = now();
        let ms = now * 1000;
        let base = Seen {
            at: ms,
            since: ms,
            site: site.map(str::to_owned),
            sites: SITES.map(str::to_owned).to_vec(),
            memory: (180_000, 8 << 20),
            ..Seen::default()
        };
        if self.scene == Scene::Empty {
            return Some(base);
        }
        let busy = matches!(self.scene, Scene::Crowd | Scene::Down);
        let of = |value: f64| (value * share).round() as u64;
        let hour = 3_600_000_000.0;
        let origin = if busy { 31.0 } else { 12.4 } * hour;
        let of_site = |name: &str| site.is_none_or(|site| site == name);
        let reason = |at: usize, name: &str, rule: &str, detail: &str, part: f64, requests: f64, example: &str, remedy: &str| {
            of_site(name).then(|| Reason {
                site: name.to_owned(),
                rule: rule.to_owned(),
                detail: self.text(at, detail),
                requests: requests as u64,
                origin_micros: (origin * part) as u64,
                example: self.text(at + 1, example),
                remedy: remedy.to_owned(),
            })
        };
        let session = "Start the session only where somebody signs in or puts something into the cart; or set drop_set_cookies = [\"PHPSESSID\"] in [cache] if readers do not need it.";
        let reasons = [
            busy.then(|| {
                reason(0, "shop.example", "cookie", "PHPSESSID", 0.46, 118_400.0, "https://shop.example/product/tide-clock", session)
            })
            .flatten(),
            reason(
                1,
                "shop.example",
                "cold",
                "",
                0.19,
                61_200.0,
                "https://shop.example/product/sea-glass",
                "Warm the cache after a change: seawall warm, or Warm on this page.",
            ),
            reason(2, "shop.example", "cookie", "wp_woocommerce_session_*", 0.12, 31_900.0, "https://shop.example/cart", ""),
            reason(
                3,
                "blog.example",
                "expired",
                "",
                0.09,
                40_100.0,
                "https://blog.example/2026/11/the-long-pier/",
                "Let the origin say stale-while-revalidate=60, so that readers never wait for a page that is stored.",
            ),
            reason(
                4,
                "docs.example",
                "set-cookie",
                "_docs",
                0.05,
                9_800.0,
                "https://docs.example/search?q=…",
                "Set drop_set_cookies = [\"_docs\"] in [cache], if readers do not need it.",
            ),
            reason(
                5,
                "blog.example",
                "no-cache",
                "",
                0.03,
                4_020.0,
                "https://blog.example/feed/",
                "The origin sends Cache-Control: no-cache; let it send max-age=60.",
            ),
            reason(6, "shop.example", "method", "", 0.02, 3_400.0, "https://shop.example/wp-login.php", ""),
        ];
        let page = |at: usize, name: &str, path: &str, requests: f64, part: f64, rule: &str| {
            of_site(name).then(|| PageLine {
                site: name.to_owned(),
                url: self.text(at, &format!("https://{name}{path}")),
                requests: requests as u64,
                error: if at % 3 == 2 { requests as u64 / 9 } else { 3 },
                bytes: (requests * 31_000.0) as u64,
                origin_micros: (origin * part) as u64,
                rule: rule.to_owned(),
            })
        };
        let known = |name: &str, requests: u64| NamedCount { name: name.to_owned(), requests, error: requests / 300 };
        let totals = Totals {
            requests: of(if busy { 4.91e6 } else { 3.6e6 }),
            hits: of(if busy { 4.43e6 } else { 3.4e6 }),
            lookups: of(3.5e6),
            bytes: of(1.21e11),
            hit_bytes: of(1.17e11),
            origin_requests: of(if busy { 4.4e5 } else { 1.9e5 }),
            origin_failures: if self.scene == Scene::Down { 1_310 } else { 4 },
            origin_micros: of(origin),
            saved_micros: of(188.0 * hour),
            server_errors: if self.scene == Scene::Down { 2_930 } else { 12 },
            client_errors: of(21_000.0),
        };
        let line = |name: &str, part: f64, cost: f64| Line {
            name: name.to_owned(),
            requests: (totals.requests as f64 * part) as u64,
            bytes: (totals.bytes as f64 * part) as u64,
            origin_micros: (origin * share * cost) as u64,
        };
        let latency = |name: &str, part: f64, p50, p95, p99| Latency {
            name: name.to_owned(),
            count: (totals.requests as f64 * part) as u64,
            p50,
            p95,
            p99,
        };
        let cookie = |at: usize,
                      name: &str,
                      cookie: &str,
                      requests: u64,
                      answers,
                      part: f64,
                      cost: f64,
                      set_by: &str,
                      known_for: &str,
                      remedy: &str| {
            of_site(name).then(|| CookieLine {
                site: name.to_owned(),
                name: self.text(at, cookie),
                requests,
                answers,
                share: part,
                origin_micros: (origin * cost) as u64,
                set_by: self.text(at + 1, set_by),
                known_for: known_for.to_owned(),
                remedy: remedy.to_owned(),
            })
        };
        let purge = |at: usize, ago: u64, by: &str, covered: &str, count, hard| PurgeLine {
            at: ms - ago * 1000,
            site: SITES[at % 2].to_owned(),
            by: self.text(at, by),
            covered: self.text(at + 1, covered),
            count,
            hard,
        };
        let outage = |from: u64, until: Option<u64>| Outage {
            site: SITES[0].to_owned(),
            address: "http://127.0.0.1:8081".to_owned(),
            from: ms - from * 1000,
            until: until.map(|ago| ms - ago * 1000),
        };
        let error = |status, failure: &str, requests, ago: u64, example: &str| ErrorLine {
            site: SITES[0].to_owned(),
            status,
            failure: failure.to_owned(),
            requests,
            last: ms - ago * 1000,
            example: self.text(1, example),
        };
        let is_down = self.scene == Scene::Down;
        Some(Seen {
            since: ms - 11 * 86_400_000,
            totals,
            by_result: vec![line("hit", 0.9, 0.0), line("miss", 0.04, 0.4), line("bypass", 0.05, 0.5), line("expired", 0.01, 0.1)],
            by_class: vec![
                line("document", 0.31, 0.74),
                line("picture", 0.4, 0.04),
                line("script", 0.12, 0.01),
                line("style", 0.09, 0.01),
                line("api", 0.05, 0.17),
                line("feed", 0.03, 0.03),
            ],
            latencies: vec![
                latency("hit", 0.9, 140, 410, 1_300),
                latency("stale", 0.02, 160, 500, 1_700),
                latency("miss", 0.04, 182_000, 610_000, 1_900_000),
                latency("bypass", 0.05, 214_000, 830_000, 2_600_000),
            ],
            reasons: reasons.into_iter().flatten().collect(),
            missed: [
                page(0, "shop.example", "/product/tide-clock", 41_000.0, 0.14, if busy { "cookie" } else { "expired" }),
                page(1, "shop.example", "/cart", 31_900.0, 0.12, "cookie"),
                page(2, "shop.example", "/?wc-ajax=…", 22_040.0, 0.07, "cookie"),
                page(3, "docs.example", "/search?q=…", 9_800.0, 0.05, "set-cookie"),
                page(4, "blog.example", "/feed/", 4_020.0, 0.03, "no-cache"),
                page(5, "blog.example", "/2026/11/the-long-pier/", 3_100.0, 0.02, "expired"),
                page(6, "blog.example", "/", 1_800.0, 0.01, "expired"),
            ]
            .into_iter()
            .flatten()
            .collect(),
            hot: [
                page(1, "shop.example", "/product/tide-clock", 910_000.0, 0.1, ""),
                page(2, "blog.example", "/2026/11/the-long-pier/", 402_000.0, 0.1, ""),
                page(3, "blog.example", "/", 311_000.0, 0.1, ""),
                page(4, "shop.example", "/", 260_000.0, 0.1, ""),
                page(5, "docs.example", "/getting-started/", 70_000.0, 0.1, ""),
            ]
            .into_iter()
            .flatten()
            .collect(),
            cookies: [
                busy.then(|| {
                    cookie(
                        0,
                        "shop.example",
                        "PHPSESSID",
                        118_400,
                        41_000,
                        0.093,
                        0.46,
                        "https://shop.example/product/tide-clock",
                        "PHP sessions",
                        session,
                    )
                })
                .flatten(),
                cookie(
                    1,
                    "shop.example",
                    "wp_woocommerce_session_*",
                    31_900,
                    2_100,
                    0.021,
                    0.12,
                    "https://shop.example/cart",
                    "WooCommerce: a cart with something in it",
                    "",
                ),
                cookie(
                    2,
                    "docs.example",
                    "_docs",
                    0,
                    9_800,
                    0.014,
                    0.05,
                    "https://docs.example/search?q=…",
                    "",
                    "Set drop_set_cookies = [\"_docs\"] in [cache], if readers do not need it.",
                ),
            ]
            .into_iter()
            .flatten()
            .collect(),
            agents: [("Chrome", 1_720_000), ("Safari", 1_100_000), ("Firefox", 402_000), ("Googlebot", 61_000), ("curl", 900)]
                .into_iter()
                .enumerate()
                .map(|(at, (name, requests))| known(&self.text(at, name), requests))
                .collect(),
            referrers: [("news.example.org", 940_000), ("search.example", 310_000), ("social.example", 52_000)]
                .into_iter()
                .enumerate()
                .map(|(at, (name, requests))| known(&self.text(at + 2, name), requests))
                .collect(),
            errors: [
                is_down.then(|| error(502, "connection_refused", 2_930, 1, "https://shop.example/cart")),
                is_down.then(|| error(200, "connection_refused", 48_110, 1, "https://shop.example/product/tide-clock")),
                Some(error(500, "", 12, 7_300, "https://shop.example/checkout")),
                Some(error(504, "http_response_timeout", 4, 93_000, "https://shop.example/wp-admin/admin-ajax.php")),
            ]
            .into_iter()
            .flatten()
            .collect(),
            purges: vec![
                purge(0, 420, "the admin API", "https://shop.example/product/tide-clock", Some(3), true),
                purge(1, 4_000, "Ghost, in an answer to an editor", "everything with the tag post-1204", Some(41), false),
                purge(0, 93_000, "a POST to /wp-comments-post.php", "https://shop.example/product/sea-glass", None, false),
            ],
            outages: [is_down.then(|| outage(240, None)), Some(outage(200_000, Some(199_100)))].into_iter().flatten().collect(),
            alerts: self.alerts(now),
            memory: (5_100_000, 8 << 20),
            ..base
        })
    }

    fn series(&self, site: Option<&str>, step: u64) -> Option<Series> {
        let share = Self::share(site)?;
        let now = now();
        let rows = match step {
            1 => 3600,
            60 => 1440,
            _ => 1008,
        };
        let end = now.div_ceil(step) * step;
        let row = |at: u64| {
            let ago = (rows - at) * step;
            let mut row = self.row(end, ago, share);
            let seconds = step.min(now - (end - ago));
            row[..12].iter_mut().for_each(|value| *value *= seconds);
            // For a while, Seawall did not run.
            let missing = step == 600 && (300..312).contains(&at) && self.scene != Scene::Empty;
            (!missing).then_some(row)
        };
        Some(Series {
            site: site.map(str::to_owned),
            step,
            from: end - rows * step,
            until: now,
            columns: COLUMNS.map(str::to_owned).to_vec(),
            rows: (0..rows).map(row).collect(),
        })
    }

    fn recent(&self, after: u64, _: Option<&str>, limit: usize) -> Result<Recent, BadExpression> {
        let requests: Vec<_> = self.requests(now(), limit as u64).into_iter().filter(|line| line.number > after).collect();
        Ok(Recent { next: requests.last().map_or(after, |line| line.number), lost: 0, requests })
    }

    fn moment(&self) -> Moment {
        let now = now();
        let of = |site: &&str| ((*site).to_owned(), self.row(now, 0, Self::share(Some(site)).expect("known")));
        let is_down = self.scene == Scene::Down;
        let is_empty = self.scene == Scene::Empty;
        Moment {
            at: now,
            total: self.row(now, 0, 1.0),
            sites: SITES.iter().map(of).collect(),
            connections: if is_empty { 0 } else { 312 + now % 17 },
            waiting: if is_down { 14 } else { 0 },
            down: if is_down { vec![SITES[0].to_owned()] } else { Vec::new() },
            memory: (210 << 20, 256 << 20),
            recent: self.requests(now, 4),
            alerts: self.alerts(now).into_iter().filter(|alert| alert.until.is_none()).collect(),
        }
    }

    fn explain(&self, command: &ExplainCommand) -> Result<Explanation, ExplainRefused> {
        self.explained.lock().expect("no panic").push(command.clone());
        if command.url.contains("elsewhere") {
            return Err(ExplainRefused::NoSite { host: "elsewhere".to_owned(), hosts: SITES.map(str::to_owned).to_vec() });
        }
        let explanation = json!({
            "method": command.method, "url": command.url,
            "site": {"name": "shop.example", "kind": "wordpress", "hosts": ["shop.example"], "route": null},
            "rules": [
                {"rule": "method", "decided": false, "detail": "GET"}, {"rule": "path", "decided": false, "detail": self.text(1, "/product/tide-clock")},
                {"rule": "query", "decided": false, "detail": "nothing left; removed: utm_source"}, {"rule": "cookies", "decided": false, "detail": "ignored: _ga"},
            ],
            "verdict": "lookup", "key": {"scheme": "https", "accept": "html", "host": "shop.example", "target": self.text(2, "/product/tide-clock")},
            "lookup": [{"rule": "stored", "decided": false, "detail": "one variant under this key"}, {"rule": "reuse", "decided": true, "detail": "fresh"}],
            "stored": [{
                "selected": true, "refused": null, "status": 200, "vary": [["accept-language", self.text(3, "en")]], "age_seconds": 35,
                "lifetime_seconds": 300, "fresh": true, "fresh_seconds": 265, "freshness_source": "explicit", "validate_always": false,
                "stale_while_revalidate_seconds": 60, "stale_if_error_seconds": 604_800, "purged": "no", "purges": [], "tags": ["post-1204", self.text(4, "author-1")],
                "head_bytes": 251, "body_bytes": 31_204, "weight_bytes": 33_000, "content_type": "text/html; charset=utf-8", "content_coding": null,
                "forms": [["br", 7201]], "etag": "\"a\"", "for_cookies": true, "for_authorization": false, "tiers": ["memory", "disk"],
            }],
            "stored_under_other_scheme": false, "uncacheable_seconds": null,
            "not_kept": {"reason": "set-cookie", "words": "It sets a cookie, so it is meant for one reader.", "status": 200, "seconds_ago": 41, "cookie": self.text(0, "PHPSESSID"), "cookie_of": "PHP sessions"},
            "flight": null, "origin_down_seconds": null,
            "now": {"cache_status": "seawall; hit; ttl=265", "x_cache": "HIT", "words": ["It is answered from the store."]},
        });
        Ok(serde_json::from_value(explanation).expect("an explanation"))
    }

    fn purge(&self, order: &Order) -> Result<PurgeDone, PurgeRefused> {
        if order.what[0] == What::Tag("unknown".to_owned()) {
            return Err(PurgeRefused::new("nothing has the tag unknown"));
        }
        self.purges.lock().expect("no panic").push(order.clone());
        Ok(PurgeDone {
            generation: 7,
            variants: Some(3),
            complete: true,
            covered: self.text(0, "https://shop.example/product/tide-clock"),
            spread: None,
        })
    }

    fn cluster(&self) -> Option<ClusterState> {
        let leased = match self.scene {
            Scene::Crowd | Scene::Hostile => true,
            Scene::Down => false,
            Scene::Empty | Scene::Calm => return None,
        };
        let machine = |name: &str, leased, behind, seen_ms| MachineState {
            name: self.text(4, name),
            version: "0.1.0".to_owned(),
            leased,
            position: "1764000000000-0".to_owned(),
            behind,
            seen_ms,
        };
        Some(ClusterState {
            cluster: "seawall".to_owned(),
            machine: "web1".to_owned(),
            engine: "redis://10.0.0.5:6379, valkey 8.1.1".to_owned(),
            leased,
            why: (!leased).then(|| "redis://10.0.0.5:6379 did not answer within 1000 ms".to_owned()),
            in_doubt_ms: if leased { 0 } else { 74_000 },
            machines: vec![machine("web1", leased, Some(0), 120), machine("web2", true, Some(3), 431)],
            tier: Some(TierState {
                place: self.text(5, "s3://pages/seawall"),
                hits: 1_200,
                misses: 3,
                written: 4,
                refused: 0,
                open: !leased,
                why: (!leased).then(|| self.text(6, "there is no bucket of this name")),
            }),
            ..ClusterState::default()
        })
    }

    fn warm(&self, command: &WarmCommand) -> Result<(), WarmRefused> {
        self.warmed.lock().expect("no panic").push(command.host.clone());
        Ok(())
    }

    fn warming(&self) -> Warming {
        let warmed = self.warmed.lock().expect("no panic");
        let Some(host) = warmed.last() else { return Warming::default() };
        let of = |name: &str, requests| NamedCount { name: name.to_owned(), requests, error: 0 };
        Warming {
            host: host.clone(),
            running: true,
            pages: 412,
            done: 120,
            results: vec![of("stored", 97), of("hit", 23)],
            told: String::new(),
        }
    }

    fn health(&self) -> Health {
        let site = |name: &&str| SiteHealth {
            name: (*name).to_owned(),
            hosts: vec![(*name).to_owned()],
            redirect_from: Vec::new(),
            source: "http://127.0.0.1:8081".to_owned(),
            kind: "generic".to_owned(),
            kind_known: None,
            url: None,
            schedule: None,
            remarks: Vec::new(),
            origin_up: Some(true),
            signals: None,
        };
        Health {
            ready: true,
            version: "1.2.3".to_owned(),
            uptime: Duration::from_secs(11 * 86_400),
            workers: 2,
            listening: vec!["127.0.0.1:8080".to_owned()],
            listeners: vec![ListenerHealth { address: "127.0.0.1:8080".to_owned(), protocol: "http".to_owned() }],
            trusts_loopback: true,
            sites: SITES.iter().map(site).collect(),
            cache: CacheHealth::default(),
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    fn origins(&self) -> Vec<OriginHealth> {
        Vec::new()
    }

    fn reload(&self) -> Result<ReloadDone, ReloadRefused> {
        Err(ReloadRefused::Busy)
    }

    fn stored(&self, _: &StoredCommand) -> Inventory {
        Inventory { pages: Vec::new(), left_off: 0 }
    }

    fn direct(&self, _: Duration) -> Result<DirectField, DirectRefused> {
        Err(DirectRefused)
    }

    fn certificates(&self) -> Vec<CertificateState> {
        Vec::new()
    }

    fn revoke(&self, name: &str) -> Result<CertificateState, RevokeRefused> {
        Err(RevokeRefused::Unknown(name.to_owned()))
    }
}
