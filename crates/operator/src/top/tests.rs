//! What somebody sees on terminals of several sizes: before anything has happened, on a calm day, in a crowd, while the origin is away, and of what
//! strangers wrote.

use admin_api::{
    AlertLine, COLUMNS, CookieLine, ErrorLine, Latency, Line, Moment, NamedCount, Outage, PageLine, PurgeLine, Reason, Recent, RequestLine,
    Seen, Series, Totals,
};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, style::Color};

use super::{
    ansi,
    panels::{PANELS, Panel},
    picture::{Answer, Picture},
    screen::Screen,
    view,
};

/// Narrow, usual, wide.
const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 60)];

/// 2026-11-22 19:02:11 UTC, in seconds since the epoch.
const NOW: u64 = 1_795_374_131;

/// Returns the counts of one second: requests, hits, requests to the origin, failures of the origin, its milliseconds.
fn second([requests, hits, asked, failed, millis]: [u64; 5]) -> Vec<u64> {
    let mut row = vec![0; COLUMNS.len()];
    let mut set = |name: &str, value| row[COLUMNS.iter().position(|column| *column == name).expect(name)] = value;
    set("requests", requests);
    set("hits", hits);
    set("misses", requests - hits);
    set("server_errors", failed);
    set("bytes", requests * 10_000);
    set("hit_bytes", hits * 10_000);
    set("origin_requests", asked);
    set("origin_failures", failed);
    set("origin_micros", millis * 1_000);
    set("p50_micros", 210);
    set("p99_micros", 31_000);
    row
}

/// Returns a server with two sites at which this happens each second.
fn answer(each: [u64; 5]) -> Answer {
    let row = second(each);
    let rows = (0..600).map(|_| Some(row.clone())).collect();
    Answer {
        seen: Seen {
            at: NOW * 1_000,
            since: (NOW - 90_000) * 1_000,
            sites: vec!["blog.example".to_owned(), "shop.example".to_owned()],
            totals: Totals {
                requests: 1_000_000,
                hits: 971_000,
                lookups: 990_000,
                bytes: 10_000_000_000,
                hit_bytes: 9_800_000_000,
                saved_micros: 11_520_000_000,
                ..Totals::default()
            },
            ..Seen::default()
        },
        moment: Moment {
            at: NOW,
            total: row.clone(),
            sites: vec![("blog.example".to_owned(), row)],
            connections: 1_203,
            memory: (12 << 20, 256 << 20),
            ..Moment::default()
        },
        series: Some(Series {
            step: 1,
            from: NOW - 600,
            columns: COLUMNS.iter().map(|name| (*name).to_owned()).collect(),
            rows,
            ..Series::default()
        }),
        ..Answer::default()
    }
}

fn reason(rule: &str, detail: &str, requests: u64, millis: u64) -> Reason {
    Reason {
        site: "shop.example".to_owned(),
        rule: rule.to_owned(),
        detail: detail.to_owned(),
        requests,
        origin_micros: millis * 1_000,
        example: "https://shop.example/cart/?item=…".to_owned(),
        remedy: "Start the session where it is needed alone.".to_owned(),
    }
}

fn page(url: &str, rule: &str, requests: u64, millis: u64) -> PageLine {
    PageLine {
        site: "shop.example".to_owned(),
        url: url.to_owned(),
        requests,
        bytes: requests * 10_000,
        origin_micros: millis * 1_000,
        rule: rule.to_owned(),
        ..PageLine::default()
    }
}

fn request(number: u64, status: u16, result: &str, rule: &str) -> RequestLine {
    RequestLine {
        number,
        at: NOW * 1_000,
        site: "shop.example".to_owned(),
        scheme: "https".to_owned(),
        host: "shop.example".to_owned(),
        method: "GET".to_owned(),
        path: "/cart/?item=…".to_owned(),
        version: "2.0".to_owned(),
        status,
        result: result.to_owned(),
        rule: rule.to_owned(),
        class: "document".to_owned(),
        complete: true,
        bytes: 7_390,
        micros: 31_402,
        origin_micros: Some(30_911),
        agent: "Firefox".to_owned(),
        ..RequestLine::default()
    }
}

fn empty() -> Picture {
    let mut answer = answer([0; 5]);
    answer.seen.totals = Totals::default();
    answer.series = None;
    Picture::new("127.0.0.1:9180".to_owned(), answer)
}

fn calm() -> Picture {
    let mut answer = answer([3, 3, 0, 0, 0]);
    answer.seen.reasons = vec![reason("cold", "", 12, 900)];
    answer.seen.missed = vec![page("https://shop.example/", "cold", 12, 900)];
    answer.seen.hot = vec![page("https://blog.example/hello/", "", 900, 0)];
    answer.recent = Recent { next: 2, requests: vec![request(1, 200, "miss", "cold")], lost: 0 };
    Picture::new("127.0.0.1:9180".to_owned(), answer)
}

fn crowd() -> Picture {
    let mut answer = answer([12_345, 12_000, 345, 0, 34_500]);
    answer.moment.waiting = 17;
    let seen = &mut answer.seen;
    seen.reasons = vec![reason("cookie", "PHPSESSID", 1_203, 41_000), reason("no-store", "", 99, 3_100)];
    seen.reasons.extend((0..30).map(|n| reason("query", &format!("utm_{n}"), 30 - n, 30 - n)));
    seen.missed = (0..40).map(|n| page(&format!("https://shop.example/page-{n}/"), "cookie", 400 - n, 41_000 - n)).collect();
    seen.cookies = vec![CookieLine {
        site: "shop.example".to_owned(),
        name: "PHPSESSID".to_owned(),
        requests: 1_203,
        answers: 12,
        share: 0.31,
        origin_micros: 41_000_000,
        set_by: "https://shop.example/cart/".to_owned(),
        known_for: "PHP sessions".to_owned(),
        remedy: "Start the session where it is needed alone.".to_owned(),
    }];
    seen.hot = vec![page("https://blog.example/hello/", "", 900_000, 0)];
    seen.by_result = vec![Line { name: "hit".to_owned(), requests: 971_000, bytes: 1 << 30, origin_micros: 0 }];
    seen.by_class = vec![Line { name: "document".to_owned(), requests: 800_000, bytes: 1 << 30, origin_micros: 41_000_000 }];
    seen.latencies = vec![Latency { name: "hit".to_owned(), count: 971_000, p50: 210, p95: 900, p99: 31_000 }];
    seen.agents = vec![NamedCount { name: "Firefox".to_owned(), requests: 500_000, error: 12 }];
    seen.referrers = vec![NamedCount { name: "news.example".to_owned(), requests: 400_000, error: 12 }];
    seen.purges = vec![PurgeLine {
        at: (NOW - 180) * 1_000,
        site: "blog.example".to_owned(),
        by: "the admin API".to_owned(),
        covered: "every page of the host blog.example".to_owned(),
        count: Some(1_234),
        hard: true,
    }];
    answer.recent.requests = (1..=300).map(|number| request(number, 200, "bypass", "cookie")).collect();
    Picture::new("127.0.0.1:9180".to_owned(), answer)
}

fn away() -> Picture {
    let mut answer = answer([200, 150, 50, 50, 0]);
    answer.moment.down = vec!["shop.example".to_owned()];
    answer.moment.alerts = vec![AlertLine {
        name: "origin-down".to_owned(),
        about: "shop.example".to_owned(),
        text: "The origin of shop.example cannot be reached.".to_owned(),
        from: (NOW - 190) * 1_000,
        ..AlertLine::default()
    }];
    answer.seen.outages = vec![
        Outage { site: "shop.example".to_owned(), address: "http://127.0.0.1:2368".to_owned(), from: (NOW - 200) * 1_000, until: None },
        Outage { site: "shop.example".to_owned(), from: (NOW - 9_000) * 1_000, until: Some((NOW - 8_940) * 1_000), ..Outage::default() },
    ];
    answer.seen.errors = vec![ErrorLine {
        site: "shop.example".to_owned(),
        status: 502,
        failure: "connection_refused".to_owned(),
        requests: 9_000,
        last: (NOW - 1) * 1_000,
        example: "https://shop.example/cart/".to_owned(),
    }];
    answer.recent.requests = vec![request(1, 502, "none", "connection_refused")];
    Picture::new("127.0.0.1:9180".to_owned(), answer)
}

/// Returns a text that would clear the screen, turn text around, break a line, look like a border, or take all the room.
fn hostile_text() -> String {
    format!(
        "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\n\t\u{202e}gpj.exe\u{2066}<script>alert(1)</script>\u{200b}{}",
        "東京x".repeat(8 << 10)
    )
}

fn hostile() -> Picture {
    let text = hostile_text();
    let mut answer = answer([12, 10, 2, 0, 20]);
    let seen = &mut answer.seen;
    seen.sites = vec![text.clone(), "shop.example".to_owned()];
    seen.reasons = vec![Reason {
        site: text.clone(),
        rule: text.clone(),
        detail: text.clone(),
        requests: u64::MAX,
        origin_micros: u64::MAX,
        example: text.clone(),
        remedy: text.clone(),
    }];
    seen.missed = vec![page(&text, &text, u64::MAX / 20_000, 1), page(&format!("https://{text}/"), &text, 1, 1)];
    seen.hot.clone_from(&seen.missed);
    seen.cookies = vec![CookieLine {
        site: text.clone(),
        name: text.clone(),
        share: f64::NAN,
        set_by: text.clone(),
        known_for: text.clone(),
        remedy: text.clone(),
        ..CookieLine::default()
    }];
    seen.agents = vec![NamedCount { name: text.clone(), ..NamedCount::default() }];
    seen.referrers.clone_from(&seen.agents);
    seen.by_result = vec![Line { name: text.clone(), requests: 1, ..Line::default() }];
    seen.errors =
        vec![ErrorLine { site: text.clone(), failure: text.clone(), example: text.clone(), last: u64::MAX, ..ErrorLine::default() }];
    seen.purges = vec![PurgeLine { by: text.clone(), covered: text.clone(), site: text.clone(), ..PurgeLine::default() }];
    seen.outages = vec![Outage { site: text.clone(), address: text.clone(), from: u64::MAX, until: None }];
    seen.alerts = vec![AlertLine { name: text.clone(), about: text.clone(), text: text.clone(), ..AlertLine::default() }];
    answer.moment.down = vec![text.clone()];
    answer.moment.alerts.clone_from(&answer.seen.alerts);
    answer.recent.requests = vec![RequestLine {
        host: text.clone(),
        path: text.clone(),
        method: text.clone(),
        agent: text.clone(),
        referrer: text.clone(),
        detail: text.clone(),
        id: text.clone(),
        ..request(1, 200, &text, &text)
    }];
    Picture::new("127.0.0.1:9180".to_owned(), answer)
}

/// Returns every picture, by its name.
fn pictures() -> [(&'static str, Picture); 5] {
    [("empty", empty()), ("calm", calm()), ("crowd", crowd()), ("away", away()), ("hostile", hostile())]
}

/// Returns what a terminal of that size shows.
fn drawn(picture: &Picture, screen: &Screen, (width, height): (u16, u16)) -> (Buffer, String) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| view::draw(frame.buffer_mut(), picture, screen)).expect("drawn");
    let buffer = terminal.backend().buffer().clone();
    let text = ansi::lines(&buffer, false);
    (buffer, text)
}

fn alone(panel: Panel) -> Screen {
    Screen { panel: Some(panel), ..Screen::default() }
}

/// Returns every screen that there is.
fn screens() -> Vec<Screen> {
    let mut screens: Vec<Screen> = PANELS.into_iter().map(|(panel, _)| alone(panel)).collect();
    screens.push(Screen::default());
    screens.push(Screen { is_help: true, ..Screen::default() });
    screens.push(Screen { is_paused: true, ..Screen::default() });
    screens
}

fn assert_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

/// Each letter of every screen is one that a terminal shows, whatever strangers wrote, on terminals of any size.
#[test]
fn what_strangers_wrote_stays_text() {
    let sizes = SIZES.into_iter().chain([(1, 1), (2, 3), (7, 2), (20, 5), (64, 17), (131, 18), (300, 100)]);
    for size in sizes {
        for (name, picture) in pictures() {
            for screen in screens() {
                let (buffer, text) = drawn(&picture, &screen, size);
                for cell in &buffer.content {
                    let acts = |letter: char| {
                        letter.is_control() || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
                    };
                    assert!(!cell.symbol().contains(acts), "{name} at {size:?}: {:?}", cell.symbol());
                }
                assert!(text.lines().all(|line| crate::foreign::columns(line) <= size.0.into()), "{name} at {size:?}:\n{text}");
            }
        }
    }
    let (_, text) = drawn(&hostile(), &alone(Panel::Reasons), (200, 60));
    assert_all(
        &text,
        &[r"\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{d}\u{a}\u{9}\u{202e}gpj.exe\u{2066}<script>alert(1)</script>\u{200b}東京x"],
    );
    // A command that is copied from the screen runs nothing but itself.
    assert!(text.contains("seawall explain") && text.contains(r"'\u{1b}[2J"), "{text}");
}

#[test]
fn before_anything_has_happened_the_lists_say_what_will_stand_there() {
    for size in SIZES {
        let (_, text) = drawn(&empty(), &Screen::default(), size);
        assert_all(
            &text,
            &["19:02:11 UTC", "all 2 sites", "0/s", "Why the origin was asked", "No request has asked the origin yet", "q end"],
        );
    }
    let (_, text) = drawn(&empty(), &Screen::default(), (200, 60));
    assert_all(
        &text,
        &["No page has missed yet.", "No cookie keeps anything from the cache.", "No errors.", "origin    not asked", "failed    none"],
    );
}

#[test]
fn on_a_calm_day_the_means_are_those_of_what_happened() {
    for size in SIZES {
        let (_, text) = drawn(&calm(), &Screen::default(), size);
        assert_all(&text, &["3.0/s", "hits", "100 %", "cold"]);
        assert!(!text.contains("DOWN"), "{text}");
    }
    let (_, text) = drawn(&calm(), &Screen::default(), (80, 24));
    assert_all(
        &text,
        &[
            "Seawall 127.0.0.1:9180  all 2 sites",
            "hits      100 %, in bytes 100 %",
            "latency   median 210 µs, 99 % 31 ms",
            "open      1,203 connections; memory 12.0 MiB of 256.0 MiB",
            "in all    1,000,000 in 1 d: hits 97.1 %, in bytes 98.0 %; saved 3 h 12 min",
        ],
    );
}

#[test]
fn in_a_crowd_what_costs_most_is_first_at_any_size() {
    for size in SIZES {
        let (_, text) = drawn(&crowd(), &Screen::default(), size);
        assert_all(&text, &["12,345/s", "97.2 %", "345/s", "41 s", "cookie PHPS"]);
    }
    let (_, text) = drawn(&crowd(), &Screen::default(), (80, 24));
    // 34.5 s of the origin's time for 345 requests.
    assert_all(
        &text,
        &[
            "origin    345/s, 100 ms each",
            "17 wait for an origin",
            "Pages that missed",
            "shop.example/page-0/",
            "Cookies that keep readers from the cache",
            "31.0 %",
            "PHP sessions",
        ],
    );
    let (_, text) = drawn(&crowd(), &Screen::default(), (200, 60));
    assert_all(
        &text,
        &[
            "Last requests that were not plain hits",
            "blog.example/hello/",
            "purged by the admin API: every page of the host blog.example, 1,234",
            "3 min ago",
            "Firefox",
            "news.example",
            "By result and by class",
            "Sites, in the last second",
        ],
    );
}

#[test]
fn one_list_alone_says_all_that_is_known_of_the_row_that_is_chosen() {
    let (buffer, text) = drawn(&crowd(), &alone(Panel::Reasons), (80, 24));
    assert_all(
        &text,
        &[
            "cookie PHPSESSID at shop.example",
            "1,203 requests, 41 s of the origin's time",
            "what would end it Start the session where it is needed alone.",
            "seawall explain 'https://shop.example/cart/?item=…'",
            "with what you mean for each …",
        ],
    );
    let reversed: Vec<u16> = (0..24).filter(|y| buffer[(0, *y)].modifier.contains(ratatui::style::Modifier::REVERSED)).collect();
    assert_eq!(reversed.len(), 1, "one row is chosen:\n{text}");
    // The last row is shown when it is chosen, however many there are.
    let picture = crowd();
    let last = Panel::Reasons.table(&picture).rows.pop().expect("a row").key;
    for size in SIZES {
        let (_, text) = drawn(&picture, &Screen { chosen: Some(last.clone()), ..alone(Panel::Reasons) }, size);
        assert!(text.contains("query utm_29") && text.contains("1.0 ms"), "{size:?}:\n{text}");
    }
}

#[test]
fn an_origin_that_is_away_is_said_first_at_any_size_and_without_colour() {
    for size in SIZES {
        let (_, text) = drawn(&away(), &Screen::default(), size);
        assert_all(&text, &["DOWN: the origin of shop.example", "ALERT: The origin of shop.example", "50/s 5xx"]);
        let list = |text: &str| text.find('─');
        assert!(text.find("DOWN") < list(&text), "{text}");
    }
    let (_, text) = drawn(&away(), &Screen::default(), (80, 24));
    assert_all(&text, &["DOWN: the origin of shop.example (http://127.0.0.1:2368) for 3 min 20 s", "502", "connection_refused"]);
    let (_, text) = drawn(&away(), &alone(Panel::Events), (80, 24));
    assert_all(&text, &["http://127.0.0.1:2368 could not be reached, for 3 min 20 s now", "2 h ago", "for 1 min"]);
    // Of another site nothing is wrong.
    let (_, text) = drawn(&Picture { site: Some("blog.example".to_owned()), ..away() }, &Screen::default(), (80, 24));
    assert!(!text.contains("DOWN"), "{text}");
}

/// Returns the colour of the line that begins with these words.
fn colour_of(buffer: &Buffer, text: &str, begin: &str) -> Color {
    let y = text.lines().position(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{begin} is missing:\n{text}"));
    buffer[(0, u16::try_from(y).expect("few lines"))].fg
}

#[test]
fn an_alert_that_is_right_again_is_said_to_be_so_and_is_not_red() {
    let mut picture = away();
    picture.moment.down.clear();
    picture.moment.alerts[0].right_since = Some((NOW - 45) * 1_000);
    picture.moment.alerts.push(AlertLine { name: "disk".to_owned(), text: "The disk is full.".to_owned(), ..AlertLine::default() });
    let (buffer, text) = drawn(&picture, &Screen::default(), (80, 24));
    assert_all(&text, &["RIGHT AGAIN for 45 s. It was: The origin of shop.example cannot be reached."]);
    assert_eq!(colour_of(&buffer, &text, "RIGHT AGAIN"), Color::Green);
    assert_eq!(colour_of(&buffer, &text, "ALERT: The disk is full."), Color::Red);
    assert!(text.find("ALERT") < text.find("RIGHT AGAIN"), "what is wrong now is said first:\n{text}");

    picture.seen.outages.clear();
    picture.seen.purges.clear();
    picture.seen.alerts = picture.moment.alerts[..1].to_vec();
    let (buffer, text) = drawn(&picture, &alone(Panel::Events), (110, 24));
    assert_all(&text, &["cannot be reached., right again for 45 s"]);
    let (y, line) = text.lines().enumerate().find(|(_, line)| line.contains(" alert ")).expect("the alert");
    let x = line.find("alert").expect("the word");
    assert_eq!(buffer[(u16::try_from(x).expect("near"), u16::try_from(y).expect("few"))].fg, Color::Green, "{text}");
}

#[test]
fn a_server_that_gives_no_answer_is_said_above_what_it_said_last() {
    let picture = Picture { trouble: Some("no answer: nothing listens at 127.0.0.1:9180".to_owned()), ..crowd() };
    for size in SIZES {
        let (_, text) = drawn(&picture, &Screen::default(), size);
        assert_all(&text, &["no answer: nothing listens at", "12,345/s"]);
    }
}

#[test]
fn without_colour_nothing_but_colour_is_missing() {
    let (mut buffer, text) = drawn(&crowd(), &Screen::default(), (80, 24));
    assert!(ansi::lines(&buffer, true).contains("\x1b[0;3"), "there is colour");
    view::without_colour(&mut buffer);
    let plain = ansi::lines(&buffer, true);
    assert!(!plain.contains(";3"), "{plain}");
    assert_eq!(ansi::lines(&buffer, false), text);
}

#[test]
fn a_picture_for_a_pipe_has_every_list_in_which_something_stands_and_nothing_but_text() {
    for width in [20, 80, 100, 200] {
        let text = ansi::lines(&view::whole(&crowd(), width, 10), false);
        let titles = PANELS.into_iter().map(|(panel, _)| panel.title()).filter(|title| *title != "Errors");
        assert!(width < 80 || titles.clone().all(|title| text.contains(title)), "{width}:\n{text}");
        assert!(!text.contains("No errors.") && !text.contains(|letter: char| letter.is_control() && letter != '\n'), "{width}:\n{text}");
        assert!(text.lines().all(|line| crate::foreign::columns(line) <= width.into()), "{width}:\n{text}");
        assert!(width < 80 || text.contains("page-9/") && !text.contains("page-10/"), "ten of each:\n{text}");
    }
    // Empty lists say nothing to a pipe.
    let text = ansi::lines(&view::whole(&empty(), 80, 10), false);
    assert_eq!(text.matches("──").count() > 0, text.contains("Sites, in the last second"), "{text}");
    assert!(!text.contains("yet.") && !text.contains("No errors."), "{text}");
}
