//! The panels: what each lists, and what it says of a row that is chosen.

use admin_api::{AlertLine, ErrorLine, PageLine, PurgeLine, Reason, RequestLine};
use ratatui::style::Color;
use semantics::shown;

use super::{
    history::{Column, of_site},
    picture::Picture,
    table::{Cell, Row, Table, coloured, foreign, number, text},
};
use crate::{
    foreign::{shell_word, visible},
    units::{about, bytes, count, micros, number as digits, share, span, time_of_day},
};

/// A list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Panel {
    /// The reasons why the origin was asked.
    Reasons,
    /// The pages that missed.
    Missed,
    /// The cookies that keep something from the cache.
    Cookies,
    /// The last requests that were not plain hits.
    Requests,
    /// The errors that readers got.
    Errors,
    /// The pages that are read most.
    Hot,
    /// Purges, outages and alerts.
    Events,
    /// Sums by what the cache did, and by class of content.
    Kinds,
    /// The programs that ask, and where readers come from.
    Readers,
    /// All sites.
    Sites,
}

/// Every panel, in the order in which they matter, with the key that shows it alone.
pub(super) const PANELS: [(Panel, char); 10] = [
    (Panel::Reasons, '1'),
    (Panel::Missed, '2'),
    (Panel::Cookies, '3'),
    (Panel::Requests, '4'),
    (Panel::Errors, '5'),
    (Panel::Hot, '6'),
    (Panel::Events, '7'),
    (Panel::Kinds, '8'),
    (Panel::Readers, '9'),
    (Panel::Sites, '0'),
];

impl Panel {
    /// Returns what stands above it.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Reasons => "Why the origin was asked",
            Self::Missed => "Pages that missed",
            Self::Cookies => "Cookies that keep readers from the cache",
            Self::Requests => "Last requests that were not plain hits",
            Self::Errors => "Errors",
            Self::Hot => "Pages that are read most",
            Self::Events => "Purges, outages, alerts",
            Self::Kinds => "By result and by class",
            Self::Readers => "Who asks, and from where",
            Self::Sites => "Sites, in the last second",
        }
    }

    /// Returns the key that shows it alone.
    pub(super) fn key(self) -> char {
        PANELS.into_iter().find(|(panel, _)| *panel == self).map_or(' ', |(_, key)| key)
    }

    /// Returns what it lists.
    pub(super) fn table(self, picture: &Picture) -> Table {
        match self {
            Self::Reasons => reasons(picture),
            Self::Missed => missed(picture),
            Self::Cookies => cookies(picture),
            Self::Requests => requests(picture),
            Self::Errors => errors(picture),
            Self::Hot => hot(picture),
            Self::Events => events(picture),
            Self::Kinds => kinds(picture),
            Self::Readers => readers(picture),
            Self::Sites => sites(picture),
        }
    }
}

/// Returns the cell that names the site of a row. It is empty where only one site is shown.
fn of(picture: &Picture, site: &str) -> Cell {
    if picture.shows_several() { foreign(site) } else { Cell::default() }
}

/// Writes an address without what is the same in all of them: the scheme, and the host where only one site is shown.
fn address(picture: &Picture, url: &str) -> Cell {
    let Some((_, rest)) = url.split_once("://") else { return foreign(url) };
    let path = rest.find('/').map_or("/", |at| &rest[at..]);
    foreign(if picture.shows_several() { rest } else { path })
}

/// Writes a rule with what it was about: `cookie PHPSESSID`.
fn rule(rule: &str, detail: &str) -> String {
    visible(&if detail.is_empty() { rule.to_owned() } else { format!("{rule} {detail}") }).into_owned()
}

fn ago(picture: &Picture, at: u64) -> String {
    format!("{} ago", about(picture.now().saturating_sub(at) / 1_000))
}

fn asked(requests: u64) -> String {
    count(requests, "request", "requests")
}

fn answered(responses: u64) -> String {
    count(responses, "response", "responses")
}

/// Returns the command that explains a page, and what to do first where something in its address is hidden.
fn explain(url: &str) -> Vec<(&'static str, String)> {
    let hidden = url.contains(shown::HIDDEN).then(|| ("", "with what you mean for each …".to_owned()));
    [("to see why", format!("seawall explain {}", shell_word(url)))].into_iter().chain(hidden).collect()
}

fn plain(text: &str) -> String {
    visible(text).into_owned()
}

fn reasons(picture: &Picture) -> Table {
    let row = |reason: &Reason| {
        let Reason { site, rule: name, detail, requests, origin_micros, example, remedy } = reason;
        let mut details = vec![
            ("reason", format!("{} at {}", rule(name, detail), plain(site))),
            ("cost", format!("{}, {} of the origin's time", asked(*requests), micros(*origin_micros))),
        ];
        if !remedy.is_empty() {
            details.push(("what would end it", plain(remedy)));
        }
        if !example.is_empty() {
            details.push(("one of them", plain(example)));
            details.extend(explain(example));
        }
        Row {
            key: format!("{site} {name} {detail}"),
            cells: vec![
                micros(*origin_micros).into(),
                digits(*requests).into(),
                coloured(rule(name, detail), Color::Yellow),
                of(picture, site),
                address(picture, example),
            ],
            details,
        }
    };
    Table {
        columns: vec![number("origin", 0), number("requests", 2), text("reason", 32, 0), text("site", 24, 1), text("for example", 0, 0)],
        rows: picture.seen.reasons.iter().map(row).collect(),
        empty: "No request has asked the origin yet. The reasons will stand here, those first that cost most of its time.",
    }
}

fn page(line: &PageLine) -> Vec<(&'static str, String)> {
    let error = if line.error > 0 { format!(" (at most {} too many)", digits(line.error)) } else { String::new() };
    let mut details =
        vec![("page", plain(&line.url)), ("requests", format!("{}{error}, {} sent", digits(line.requests), bytes(line.bytes)))];
    if line.origin_micros > 0 {
        details.push(("cost", format!("{} of the origin's time", micros(line.origin_micros))));
    }
    if !line.rule.is_empty() {
        details.push(("rule, lately", plain(&line.rule)));
    }
    details.extend(explain(&line.url));
    details
}

fn missed(picture: &Picture) -> Table {
    let row = |line: &PageLine| Row {
        key: line.url.clone(),
        cells: vec![
            micros(line.origin_micros).into(),
            digits(line.requests).into(),
            coloured(plain(&line.rule), Color::Yellow),
            address(picture, &line.url),
        ],
        details: page(line),
    };
    Table {
        columns: vec![number("origin", 0), number("requests", 1), text("rule", 18, 2), text("page", 0, 0)],
        rows: picture.seen.missed.iter().map(row).collect(),
        empty: "No page has missed yet.",
    }
}

fn hot(picture: &Picture) -> Table {
    let row = |line: &PageLine| Row {
        key: line.url.clone(),
        cells: vec![digits(line.requests).into(), bytes(line.bytes).into(), address(picture, &line.url)],
        details: page(line),
    };
    Table {
        columns: vec![number("requests", 0), number("sent", 1), text("page", 0, 0)],
        rows: picture.seen.hot.iter().map(row).collect(),
        empty: "No page has been read yet.",
    }
}

fn cookies(picture: &Picture) -> Table {
    let row = |line: &admin_api::CookieLine| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 0 to 1; it saturates")]
        let kept_out = share((line.share * 1e9).round() as u64, 1_000_000_000);
        let mut details = vec![
            ("cookie", format!("{} at {}", plain(&line.name), plain(&line.site))),
            ("it kept out", format!("{kept_out} of all requests: {} that carried it", asked(line.requests))),
            ("not stored", format!("{} that set it", answered(line.answers))),
            ("cost", format!("{} of the origin's time", micros(line.origin_micros))),
        ];
        let known = [("known for it", &line.known_for), ("set by", &line.set_by), ("what to do", &line.remedy)];
        details.extend(known.into_iter().filter(|(_, text)| !text.is_empty()).map(|(label, text)| (label, plain(text))));
        if !line.set_by.is_empty() {
            details.extend(explain(&line.set_by));
        }
        Row {
            key: format!("{} {}", line.site, line.name),
            cells: vec![
                kept_out.into(),
                digits(line.requests).into(),
                digits(line.answers).into(),
                coloured(plain(&line.name), Color::Magenta),
                foreign(&line.known_for),
                of(picture, &line.site),
                if line.set_by.is_empty() { Cell::default() } else { address(picture, &line.set_by) },
            ],
            details,
        }
    };
    Table {
        columns: vec![
            number("kept out", 0),
            number("carried", 3),
            number("set", 4),
            text("cookie", 28, 0),
            text("known for", 22, 1),
            text("site", 24, 5),
            text("set by", 0, 0),
        ],
        rows: picture.seen.cookies.iter().map(row).collect(),
        empty: "No cookie keeps anything from the cache.",
    }
}

/// Returns the colour of a status: failures stand out.
const fn status_colour(status: u16) -> Color {
    match status {
        500.. => Color::Red,
        400..500 => Color::Yellow,
        _ => Color::Reset,
    }
}

/// Returns the colour for what the cache did.
fn result_colour(result: &str) -> Color {
    match result {
        "hit" | "updating" | "stale" => Color::Green,
        "miss" | "expired" | "revalidated" => Color::Yellow,
        "bypass" => Color::Magenta,
        _ => Color::Reset,
    }
}

fn requests(picture: &Picture) -> Table {
    let row = |line: &RequestLine| {
        let url = format!("{}://{}{}", line.scheme, line.host, line.path);
        let origin = line.origin_micros.map_or_else(|| "-".to_owned(), micros);
        let mut marks = vec![format!("HTTP/{}", plain(&line.version)), plain(&line.class)];
        marks.extend(line.collapsed.then(|| "shared another request's way to the origin".to_owned()));
        marks.extend((!line.complete).then(|| "broke off before its end".to_owned()));
        let mut details = vec![
            ("request", format!("{} {}", plain(&line.method), plain(&url))),
            ("answer", format!("{}, {} sent, {}", line.status, bytes(line.bytes), marks.join(", "))),
            ("cache", format!("{} {}", plain(&line.result), rule(&line.rule, &line.detail)).trim_end().to_owned()),
            ("time", format!("{} in all, origin {origin}", micros(line.micros))),
        ];
        let more = [("program", &line.agent), ("came from", &line.referrer), ("id", &line.id), ("trace", &line.trace)];
        details.extend(more.into_iter().filter(|(_, text)| !text.is_empty()).map(|(label, text)| (label, plain(text))));
        if line.method == "GET" {
            details.extend(explain(&url));
        }
        let shown = if picture.shows_several() { format!("{}{}", line.host, line.path) } else { line.path.clone() };
        Row {
            key: line.number.to_string(),
            cells: vec![
                time_of_day(line.at).into(),
                coloured(line.status.to_string(), status_colour(line.status)),
                coloured(plain(&line.result), result_colour(&line.result)),
                rule(&line.rule, &line.detail).into(),
                micros(line.micros).into(),
                origin.into(),
                bytes(line.bytes).into(),
                foreign(&if line.method == "GET" { shown } else { format!("{} {shown}", line.method) }),
            ],
            details,
        }
    };
    Table {
        columns: vec![
            text("time", 8, 3),
            number("", 0),
            text("result", 11, 0),
            text("rule", 28, 1),
            number("took", 2),
            number("origin", 4),
            number("sent", 5),
            text("request", 0, 0),
        ],
        rows: picture.requests_shown().map(row).collect(),
        empty: "No request yet that was not a plain hit.",
    }
}

fn errors(picture: &Picture) -> Table {
    let row = |line: &ErrorLine| {
        let what = if line.failure.is_empty() { "the origin's own answer" } else { &line.failure };
        let mut details = vec![
            (
                "error",
                format!(
                    "{}, {}, at {}",
                    line.status,
                    plain(what),
                    if line.site.is_empty() { "no site".to_owned() } else { plain(&line.site) }
                ),
            ),
            ("how often", format!("{}, last at {}", digits(line.requests), time_of_day(line.last))),
        ];
        if line.status < 500 && !line.failure.is_empty() {
            details.push(("readers", "got a stored page instead".to_owned()));
        }
        if !line.example.is_empty() {
            details.push(("one of them", plain(&line.example)));
            details.extend(explain(&line.example));
        }
        Row {
            key: format!("{} {} {}", line.site, line.status, line.failure),
            cells: vec![
                digits(line.requests).into(),
                coloured(line.status.to_string(), status_colour(line.status)),
                foreign(what),
                ago(picture, line.last).into(),
                of(picture, &line.site),
                address(picture, &line.example),
            ],
            details,
        }
    };
    Table {
        columns: vec![
            number("requests", 0),
            number("", 0),
            text("error", 28, 0),
            number("last", 1),
            text("site", 24, 2),
            text("for example", 0, 0),
        ],
        rows: picture.seen.errors.iter().map(row).collect(),
        empty: "No errors.",
    }
}

/// Holds what the list shows of an event: when it began, what it is, about what, in words.
struct Event {
    at: u64,
    kind: Cell,
    about: String,
    words: String,
    details: Vec<(&'static str, String)>,
}

fn purged(line: &PurgeLine) -> Event {
    let how = if line.hard { "purged" } else { "marked stale" };
    let count = line.count.map(|count| format!(", {}", answered(count))).unwrap_or_default();
    Event {
        at: line.at,
        kind: coloured("purge", Color::Cyan),
        about: line.site.clone(),
        words: format!("{how} by {}: {}{count}", plain(&line.by), plain(&line.covered)),
        details: vec![
            ("purge", format!("{how}: {}{count}", plain(&line.covered))),
            ("by", plain(&line.by)),
            ("at", format!("{} UTC", time_of_day(line.at))),
        ],
    }
}

/// Says how long something lasted.
fn lasted(picture: &Picture, from: u64, until: Option<u64>) -> String {
    match until {
        Some(until) => format!("for {}", span(until.saturating_sub(from) / 1_000)),
        None => format!("for {} now", span(picture.now().saturating_sub(from) / 1_000)),
    }
}

/// Returns the colour of an outage: red while it lasts, and no colour when it is over.
const fn while_it_lasts(until: Option<u64>) -> Color {
    if until.is_none() { Color::Red } else { Color::Reset }
}

/// Returns the colour of an alert: red while something is wrong, and green while all is right again but the alert still stands.
const fn while_it_stands(alert: &AlertLine) -> Color {
    if alert.right_since.is_some() { Color::Green } else { while_it_lasts(alert.until) }
}

fn events(picture: &Picture) -> Table {
    let mut events: Vec<Event> = picture.seen.purges.iter().map(purged).collect();
    events.extend(picture.seen.outages.iter().map(|outage| {
        let words = format!("{} could not be reached, {}", plain(&outage.address), lasted(picture, outage.from, outage.until));
        Event {
            at: outage.from,
            kind: coloured("outage", while_it_lasts(outage.until)),
            about: outage.site.clone(),
            details: vec![
                ("outage", format!("the origin of {}", plain(&outage.site))),
                ("from", format!("{} UTC", time_of_day(outage.from))),
                ("what", words.clone()),
            ],
            words,
        }
    }));
    events.extend(picture.seen.alerts.iter().map(|alert| {
        let mut lasted = lasted(picture, alert.from, alert.until);
        if let Some(right_since) = alert.right_since {
            lasted = format!("right again for {}", span(picture.now().saturating_sub(right_since) / 1_000));
        }
        Event {
            at: alert.from,
            kind: coloured("alert", while_it_stands(alert)),
            about: alert.about.clone(),
            words: format!("{}, {lasted}", plain(&alert.text)),
            details: vec![
                ("alert", format!("{} {}", plain(&alert.name), plain(&alert.about)).trim_end().to_owned()),
                ("from", format!("{} UTC, {lasted}", time_of_day(alert.from))),
                ("what", plain(&alert.text)),
            ],
        }
    }));
    events.sort_by_key(|event| std::cmp::Reverse(event.at));
    let row = |event: Event| Row {
        key: format!("{} {} {}", event.at, event.kind.text, event.about),
        cells: vec![ago(picture, event.at).into(), event.kind, foreign(&event.about), event.words.into()],
        details: event.details,
    };
    Table {
        columns: vec![number("when", 0), text("what", 6, 0), text("about", 24, 1), text("", 0, 0)],
        rows: events.into_iter().map(row).collect(),
        empty: "No purge, no outage and no alert yet.",
    }
}

fn kinds(picture: &Picture) -> Table {
    let seen = &picture.seen;
    let all = seen.totals.requests;
    let mut rows = Vec::new();
    for (kind, lines) in [("result", &seen.by_result), ("class", &seen.by_class)] {
        for line in lines.iter().filter(|line| line.requests > 0) {
            let latency = seen.latencies.iter().find(|latency| kind == "result" && latency.name == line.name && latency.count > 0);
            let colour = if kind == "result" { result_colour(&line.name) } else { Color::Reset };
            let mut details = vec![
                (kind, plain(&line.name)),
                ("requests", format!("{}, {} of all; {} sent", digits(line.requests), share(line.requests, all), bytes(line.bytes))),
                ("cost", format!("{} of the origin's time", micros(line.origin_micros))),
            ];
            if let Some(latency) = latency {
                let [half, most, nearly_all] = [latency.p50, latency.p95, latency.p99].map(micros);
                details.push(("it took", format!("{half} in the middle, at most {most} in 95 of 100, {nearly_all} in 99 of 100")));
            }
            rows.push(Row {
                key: format!("{kind} {}", line.name),
                cells: vec![
                    kind.to_owned().into(),
                    coloured(plain(&line.name), colour),
                    digits(line.requests).into(),
                    share(line.requests, all).into(),
                    bytes(line.bytes).into(),
                    micros(line.origin_micros).into(),
                    latency.map(|latency| micros(latency.p50)).unwrap_or_default().into(),
                    latency.map(|latency| micros(latency.p99)).unwrap_or_default().into(),
                    Cell::default(),
                ],
                details,
            });
        }
    }
    Table {
        columns: vec![
            text("", 6, 5),
            text("name", 12, 0),
            number("requests", 0),
            number("share", 3),
            number("sent", 2),
            number("origin", 1),
            number("median", 4),
            number("99 %", 4),
            text("", 0, 0),
        ],
        rows,
        empty: "No request yet.",
    }
}

fn readers(picture: &Picture) -> Table {
    let lists = [("program", &picture.seen.agents), ("from", &picture.seen.referrers)];
    let rows = lists.into_iter().flat_map(|(kind, list)| list.iter().map(move |named| (kind, named)));
    let row = |(kind, named): (&'static str, &admin_api::NamedCount)| Row {
        key: format!("{kind} {}", named.name),
        cells: vec![digits(named.requests).into(), kind.to_owned().into(), foreign(&named.name)],
        details: vec![
            (kind, plain(&named.name)),
            ("requests", format!("{}, at most {} too many", digits(named.requests), digits(named.error))),
        ],
    };
    Table {
        columns: vec![number("requests", 0), text("", 7, 1), text("name", 0, 0)],
        rows: rows.map(row).collect(),
        empty: "Nobody has asked for anything yet.",
    }
}

fn sites(picture: &Picture) -> Table {
    let row = |site: &String| {
        let second = of_site(&picture.moment, Some(site));
        let value = |column: Column| second[column as usize];
        let is_down = picture.moment.down.contains(site);
        let state = if is_down { coloured("down", Color::Red) } else { Cell::default() };
        let details = vec![
            ("site", plain(site)),
            ("Enter", "shows this site alone".to_owned()),
            ("origin", if is_down { "cannot be reached" } else { "no trouble is known" }.to_owned()),
        ];
        Row {
            key: site.clone(),
            cells: vec![
                digits(value(Column::Requests)).into(),
                share(value(Column::Hits), value(Column::Requests)).into(),
                digits(value(Column::OriginRequests)).into(),
                digits(value(Column::ServerErrors)).into(),
                state,
                foreign(site),
            ],
            details,
        }
    };
    Table {
        columns: vec![
            number("requests", 0),
            number("hits", 1),
            number("to origin", 2),
            number("5xx", 3),
            text("origin", 6, 4),
            text("site", 0, 0),
        ],
        rows: picture.seen.sites.iter().map(row).collect(),
        empty: "No site is configured.",
    }
}
