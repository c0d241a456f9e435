//! The result as one HTML file that can be shared: charts, tables, and where the figures come from. It has no script and asks for nothing.

use minijinja::{Environment, Value, context};
use serde::Serialize;

use super::{
    chart::{COLOURS, ChartStyle},
    pictures::Picture,
    quantity::{bytes, count, milliseconds, number, seconds, share},
    series::{Point, has_cache, points},
    summary::percentiles,
    words,
};
use crate::{
    answer::Outcome,
    record::ErrorClass,
    results::{Limit, Results, Times},
};

/// The widths for which charts are drawn: a page's, and a phone's.
const WIDTHS: [f64; 2] = [824.0, 340.0];

/// Rows of the table that says second by second what the charts show.
const ROWS_MAX: usize = 60;

#[derive(Serialize)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

#[derive(Serialize)]
pub(super) struct Figure {
    title: String,
    description: String,
    wide: Value,
    narrow: Value,
}

#[derive(Serialize)]
pub(super) struct Section {
    pub(super) heading: String,
    pub(super) figures: Vec<Figure>,
    pub(super) tables: Vec<Table>,
    pub(super) folded: Option<Table>,
}

#[derive(Serialize)]
pub(super) struct Fact {
    name: &'static str,
    value: String,
    code: bool,
}

#[derive(Serialize)]
pub(super) struct Tile {
    name: &'static str,
    value: String,
    more: String,
    bad: bool,
}

/// Everything that a page says.
pub(super) struct Page {
    /// The text above the large text, the large text, and what stands below.
    pub(super) hero: [String; 3],
    /// Whether the large text is a warning.
    pub(super) bad: bool,
    pub(super) target: String,
    pub(super) how: String,
    /// The colour's name, the sentence, and the reasons.
    pub(super) verdict: (&'static str, String, Vec<String>),
    pub(super) tiles: Vec<Tile>,
    pub(super) sections: Vec<Section>,
    pub(super) facts: Vec<Fact>,
    pub(super) notes: Vec<String>,
    pub(super) seawall: String,
}

impl Page {
    pub(super) fn render(self) -> String {
        let mut templates = Environment::new();
        templates
            .add_template("report.html", include_str!("../../templates/report.html"))
            .expect("the template is valid: a test renders it");
        templates.add_filter("tight", words::tight);
        templates.add_filter("pieces", |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let template = templates.get_template("report.html").expect("it was added above");
        let colours: Vec<_> = COLOURS.iter().map(|(_, name, light, dark)| context! { name, light, dark }).collect();
        let [before, text, after] = self.hero;
        let (colour, verdict, reasons) = self.verdict;
        template
            .render(context! {
                title => format!("{}{text}: {}", if before.is_empty() { String::new() } else { format!("{before} ") }, self.target),
                hero => context! { before, text, after, bad => self.bad },
                target => self.target,
                how => self.how,
                verdict => context! { colour, text => verdict, reasons },
                tiles => self.tiles,
                sections => self.sections,
                facts => self.facts,
                notes => self.notes,
                seawall => self.seawall,
                colours,
            })
            .expect("the template uses what is given: a test renders it")
    }
}

/// Writes the result as one HTML file.
#[must_use]
pub fn html(results: &Results) -> String {
    let mut sections = vec![Section {
        heading: "Charts".to_owned(),
        figures: Picture::ALL.into_iter().filter_map(|picture| figure(picture.name(), &|look| picture.draw(results, look))).collect(),
        tables: Vec::new(),
        folded: second_by_second(results),
    }];
    sections.push(Section { heading: "Tables".to_owned(), figures: Vec::new(), tables: tables(results), folded: None });
    // A run of which nothing is known has no charts.
    sections.retain(|section| !section.figures.is_empty() || !section.tables.is_empty());
    let words::Headline { before, text, after, bad } = words::Headline::new(results);
    Page {
        hero: [before, text, after],
        bad,
        target: words::target(&results.run),
        how: words::how(&results.run),
        verdict: (verdict_colour(results), words::verdict(results), words::reasons(results).collect()),
        tiles: tiles(results),
        sections,
        facts: facts(results),
        notes: notes(results),
        seawall: results.run.seawall.clone(),
    }
    .render()
}

pub(super) const fn verdict_colour(results: &Results) -> &'static str {
    match results.verdict.limit {
        _ if results.found.is_some() => "green",
        Limit::Server | Limit::Schedule => "green",
        Limit::Generator | Limit::Network | Limit::PortsOrDescriptors | Limit::Machine | Limit::Unknown => "orange",
    }
}

/// Draws a chart for both widths, and takes its title and description from it.
pub(super) fn figure(name: &str, draw: &dyn Fn(ChartStyle<'_>) -> Option<String>) -> Option<Figure> {
    let wide = draw(ChartStyle::page(&format!("{name}-w"), WIDTHS[0]))?;
    let narrow = draw(ChartStyle::page(&format!("{name}-n"), WIDTHS[1]))?;
    // Both are ours, and so is their form.
    let part = |element: &str| {
        let begin = wide.find(&format!("<{element} ")).and_then(|at| Some(at + wide[at..].find('>')? + 1));
        let text = begin.and_then(|begin| Some(&wide[begin..begin + wide[begin..].find("</")?])).unwrap_or_default();
        Value::from_safe_string(text.to_owned())
    };
    let (title, description) = (part("title").to_string(), part("desc").to_string());
    Some(Figure {
        title: unescaped(&title),
        description: unescaped(&description),
        wide: Value::from_safe_string(wide),
        narrow: Value::from_safe_string(narrow),
    })
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&")
}

fn tiles(results: &Results) -> Vec<Tile> {
    let failed = results.errors_count();
    let part = |count: u64| share(count as f64 / results.requests.max(1) as f64);
    let mut tiles = vec![
        Tile { name: "Requests", value: count(results.requests), more: format!("in {}", seconds(results.duration)), bad: false },
        Tile { name: "Failures", value: count(failed), more: if failed > 0 { part(failed) } else { String::new() }, bad: failed > 0 },
    ];
    if results.latency.count > 0 {
        tiles.push(Tile { name: "Median latency", value: milliseconds(results.latency.p50), more: String::new(), bad: false });
        tiles.push(Tile { name: "99 % within", value: milliseconds(results.latency.p99), more: String::new(), bad: false });
    }
    if has_cache(results) {
        let from_cache =
            [Outcome::Hit, Outcome::Stale].iter().filter_map(|outcome| results.cache.get(outcome)).map(|part| part.share).sum();
        let origin = results.origin_share.map(|reached| format!("{} reached the origin", share(reached))).unwrap_or_default();
        let origin = words::shared(results).map_or_else(|| origin.clone(), |shared| format!("{origin}; {shared}"));
        tiles.push(Tile { name: "From the cache", value: share(from_cache), more: origin, bad: false });
    }
    if results.bytes > 0 {
        let per_second =
            if results.duration > 0.0 { format!("{} a second", bytes(results.bytes as f64 / results.duration)) } else { String::new() };
        tiles.push(Tile { name: "Received", value: bytes(results.bytes as f64), more: per_second, bad: false });
    }
    tiles
}

pub(super) fn table(caption: &str, head: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table { caption: caption.to_owned(), head: head.iter().map(|cell| (*cell).to_owned()).collect(), rows }
}

pub(super) fn tables(results: &Results) -> Vec<Table> {
    let mut tables = Vec::new();
    if let Some(found) = &results.found {
        tables.push(table("The rates that were tried", &words::STEPS, found.tried.iter().map(words::step).collect()));
    }
    if results.latency.count > 0 {
        tables.push(latencies(results));
    }
    if results.errors_count() > 0 {
        let part = |count: u64| share(count as f64 / results.requests.max(1) as f64);
        let rows = results
            .errors
            .iter()
            .filter(|(_, times)| **times > 0)
            .map(|(class, times)| vec![words::failure(*class).to_owned(), count(*times), part(*times)]);
        tables.push(table("Failures", &["What failed", "Requests", "Share"], rows.collect()));
    }
    if !results.leaks.is_empty() {
        let rows = results.leaks.iter().map(|leak| {
            let owner = leak.owner.map_or_else(|| "of an earlier run".to_owned(), |owner| owner.to_string());
            [&leak.url, &leak.client.to_string(), &owner, &leak.place].map(|text| words::printable(text)).to_vec()
        });
        tables.push(table("Leaks", &["What was asked", "By client", "Belongs to client", "Where"], rows.collect()));
    }
    if has_cache(results) {
        let rows = results.cache.iter().map(|(outcome, part)| {
            let times = [part.latency.p50, part.latency.p90, part.latency.p99].map(milliseconds);
            [vec![words::outcome(*outcome).to_owned(), count(part.requests), share(part.share)], times.to_vec()].concat()
        });
        tables.push(table("What the cache did", &["Outcome", "Answers", "Share", "50 %", "90 %", "99 %"], rows.collect()));
    }
    if results.statuses.keys().any(|status| *status != 200) {
        let rows = results.statuses.iter().map(|(status, times)| vec![status.to_string(), count(*times)]);
        tables.push(table("Statuses", &["Status", "Answers"], rows.collect()));
    }
    if results.connect.count > 0 {
        let row = |name: &str, times: &Times| {
            vec![name.to_owned(), count(times.count), milliseconds(times.p50), milliseconds(times.p99), milliseconds(times.max)]
        };
        let mut rows = vec![row("connected", &results.connect)];
        if results.handshake.count > 0 {
            rows.push(row(&format!("TLS handshake ({} resumed)", count(results.resumed)), &results.handshake));
        }
        tables.push(table("Connections", &["Step", "Number", "50 %", "99 %", "Longest"], rows));
    }
    tables
}

fn latencies(results: &Results) -> Table {
    let mut columns = vec![("Last byte", &results.latency)];
    if results.run.open {
        columns.push(("Uncorrected", &results.latency_uncorrected));
    }
    if results.first_byte.count > 0 {
        columns.push(("First byte", &results.first_byte));
    }
    if results.page.count > 0 {
        columns.push(("Whole page", &results.page));
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (name, _) in percentiles(&results.latency) {
        let cells = columns.iter().map(|(_, times)| {
            let found = percentiles(times).into_iter().find(|(other, _)| *other == name);
            found.map_or_else(|| "–".to_owned(), |(_, value)| milliseconds(value))
        });
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    rows.push(std::iter::once("mean".to_owned()).chain(columns.iter().map(|(_, times)| milliseconds(times.mean))).collect());
    let head: Vec<_> = std::iter::once("Requests").chain(columns.iter().map(|(name, _)| *name)).collect();
    table("Latency", &head, rows)
}

fn second_by_second(results: &Results) -> Option<Table> {
    let points = points(results, ROWS_MAX);
    if points.is_empty() {
        return None;
    }
    let cached = has_cache(results);
    let failed = results.errors_count() > 0;
    let mut head = vec!["From", "Answers a second", "50 %", "99 %", "Longest", "Clients"];
    if failed {
        head.push("Failures a second");
    }
    if cached {
        head.push("Hits");
    }
    let row = |point: &Point| {
        let latency = |index: usize| point.latency.map_or_else(|| "–".to_owned(), |latency| milliseconds(latency[index]));
        let mut row = vec![seconds(point.begin), number(point.rate[0]), latency(0), latency(2), latency(3), count(point.clients.into())];
        if failed {
            row.push(number(point.errors_rate()));
        }
        if cached {
            row.push(share(point.share(Outcome::Hit)));
        }
        row
    };
    Some(table("The charts as a table", &head, points.iter().map(row).collect()))
}

pub(super) fn facts(results: &Results) -> Vec<Fact> {
    let (run, machine, generator) = (&results.run, &results.machine, &results.generator);
    let mut facts = Vec::new();
    let mut say = |name, value: String, code| {
        if !value.is_empty() {
            facts.push(Fact { name, value: words::printable(&value), code });
        }
    };
    say("Command", run.command.clone(), true);
    if run.urls.len() > 1 {
        let more = if run.urls_count > run.urls.len() as u64 {
            format!(", and {} more", count(run.urls_count - run.urls.len() as u64))
        } else {
            String::new()
        };
        say("URLs", format!("{}{more}", run.urls.join(", ")), false);
    }
    say("Began", run.began.replace('T', " ").replace('Z', " UTC"), false);
    say("Shape", run.shape.clone(), false);
    say("From", run.shape_sources.join("; "), false);
    if run.leak_check && results.errors.get(&ErrorClass::Leak).is_none_or(|leaks| *leaks == 0) {
        say("Leaks", words::no_leak(results), false);
    }
    say("Ended", words::ended_early(results).unwrap_or_default(), false);
    say("Seed", run.seed.to_string(), false);
    say("Timeout", if run.timeout > 0.0 { seconds(run.timeout) } else { String::new() }, false);
    let memory = if machine.memory > 0 { format!(", {} of memory", memory(machine.memory)) } else { String::new() };
    let cores = match machine.cores {
        0 => String::new(),
        1 => ", 1 core".to_owned(),
        cores => format!(", {cores} cores"),
    };
    say("Machine", format!("{}{cores}{memory}", if machine.cpu.is_empty() { "unknown CPU" } else { &machine.cpu }), false);
    say("Kernel", machine.kernel.clone(), false);
    if generator.cpu_seconds > 0.0 {
        let steal =
            if generator.steal > 0.0 { format!("; {} of CPU time was stolen by the host", share(generator.steal)) } else { String::new() };
        let busiest = if generator.busiest_worker > 0.0 {
            format!("; busiest thread {} of a core", share(generator.busiest_worker))
        } else {
            String::new()
        };
        let each = milliseconds(generator.cpu_us_per_request / 1e3);
        say("Load tester", format!("{} of CPU, {each} a request{busiest}{steal}", seconds(generator.cpu_seconds)), false);
    }
    if results.send_lag.count > 0 {
        let lag = &results.send_lag;
        say(
            "Sent late by",
            format!("median {}, 99 % {}, at most {}", milliseconds(lag.p50), milliseconds(lag.p99), milliseconds(lag.max)),
            false,
        );
    }
    if results.missed > 0 {
        say("Never sent", words::never_sent(results), false);
    }
    if let Some(resent) = words::resent(results) {
        say("Sent again", resent, false);
    }
    if results.warm_up.requests > 0 {
        say(
            "Warm-up",
            format!(
                "{} requests in {}, in no figure but the charts over time",
                count(results.warm_up.requests),
                seconds(results.warm_up.seconds)
            ),
            false,
        );
    }
    say("Version", format!("Seawall {}", run.seawall), false);
    facts
}

/// Writes an amount of memory as machines are sold: in GiB.
fn memory(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64)
}

pub(super) fn notes(results: &Results) -> Vec<String> {
    vec![
        words::correction(results.run.open).to_owned(),
        "Timeouts are part of the distribution, with the time that was waited. Percentiles beyond which there is no request are left out."
            .to_owned(),
    ]
}
