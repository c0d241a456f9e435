//! Two results beside each other: before and after, or A and B.

use super::{
    Ink,
    ab::distribution,
    chart::{self, Bar, Bars, ChartStyle, Colour, Curve, Over},
    quantity::{capital, count, counted, milliseconds, number, seconds, share, whole},
    report::{Page, Section, facts, figure, notes, table as html_table, tables},
    table, words,
};
use crate::{
    answer::Outcome,
    compare::{Comparison, Differences, Ratio, Ratios},
    results::{Results, Run, Times},
};

/// Two results beside each other.
#[derive(Debug, Clone)]
pub struct Beside<'a> {
    /// The names of the two: `before` and `after`, `A` and `B`.
    pub names: [&'a str; 2],
    /// The results.
    pub results: [&'a Results; 2],
    /// The ratios by which they differ.
    pub ratios: Ratios,
    /// The rates of both in each pair of rounds, if there were rounds. Then their seconds are rounds, and no chart shows them over time.
    pub rounds: Vec<[f64; 2]>,
    /// The claim, in a sentence; empty: nothing beyond the figures.
    pub said: String,
    /// The doubts about it, for people.
    pub remarks: Vec<String>,
}

impl<'a> From<&'a Comparison> for Beside<'a> {
    fn from(comparison: &'a Comparison) -> Self {
        Self {
            names: ["A", "B"],
            results: [&comparison.a, &comparison.b],
            ratios: comparison.ratio,
            rounds: comparison.rounds.iter().map(|round| [round.a.rate, round.b.rate]).collect(),
            said: comparison.verdict.said.clone(),
            remarks: comparison.verdict.warnings.clone(),
        }
    }
}

impl<'a> Beside<'a> {
    /// Puts two results that were kept beside each other, with how they differ.
    #[must_use]
    pub fn old_and_new(old: &'a Results, new: &'a Results, differences: &Differences) -> Self {
        let Differences { rate, p50, p90, p99, .. } = differences;
        Self {
            names: ["old", "new"],
            results: [old, new],
            ratios: Ratios { rate: rate.ratio, p50: p50.ratio, p90: p90.ratio, p99: p99.ratio },
            rounds: Vec::new(),
            said: String::new(),
            remarks: differences.not_the_same.iter().chain([&differences.unknown]).cloned().collect(),
        }
    }

    /// Gives both other names, such as `before` and `after`.
    #[must_use]
    pub fn named(self, first: &'a str, second: &'a str) -> Self {
        Self { names: [first, second], ..self }
    }
}

/// The note that explains the rates and the ratios of a comparison in rounds.
const RATIO_OF_ROUNDS: &str = "Rate: the middle one of all rounds. Ratio: the middle one of the pairs of rounds, with its 95 % interval.";

/// The share of failed requests from which values of a side are doubtful.
const FAILED: f64 = 0.01;

/// The share of failed requests from which a side is overloaded.
const OVERLOADED: f64 = 0.1;

fn interval(ratio: Ratio) -> String {
    format!("{} ({} to {})", times(ratio.ratio), times(ratio.low), times(ratio.high))
}

/// Writes a ratio: two digits after the point where it is small, as `0.97` and `1.03` differ.
fn times(value: f64) -> String {
    if value < 0.1 { format!("{value:.3}") } else { number(value) }
}

/// A row of the table: its name, the values in words, and the ratio.
struct Row {
    name: &'static str,
    values: [String; 2],
    ratio: Option<Ratio>,
}

impl Beside<'_> {
    fn rows(&self) -> Vec<Row> {
        let row = |name, ratio, of: &dyn Fn(&Results) -> Option<String>| Row {
            name,
            values: self.results.map(|results| of(results).unwrap_or_else(|| "-".to_owned())),
            ratio,
        };
        let time = |of: fn(&Times) -> f64| move |results: &Results| (results.latency.count > 0).then(|| milliseconds(of(&results.latency)));
        let mut rows = vec![
            Row { name: "good answers a second", values: self.rates().map(number), ratio: self.ratios.rate },
            row("median latency", self.ratios.p50, &time(|times| times.p50)),
            row("90 % within", self.ratios.p90, &time(|times| times.p90)),
            row("99 % within", self.ratios.p99, &time(|times| times.p99)),
            row("longest", None, &time(|times| times.max)),
            row("requests", None, &|results| Some(count(results.requests))),
            row("failures", None, &|results| Some(failures(results))),
        ];
        if self.results.iter().any(|results| results.origin_share.is_some()) {
            rows.push(row("from the cache", None, &|results| {
                let outcomes = [Outcome::Hit, Outcome::Stale];
                results
                    .origin_share
                    .map(|_| share(outcomes.iter().filter_map(|outcome| results.cache.get(outcome)).map(|part| part.share).sum()))
            }));
            rows.push(row("reached the origin", None, &|results| results.origin_share.map(share)));
        }
        rows
    }

    fn cells(&self) -> Vec<Vec<String>> {
        let [first, second] = self.names;
        let mut cells = vec![vec![String::new(), first.to_owned(), second.to_owned()]];
        let ratios = self.rows().iter().any(|row| row.ratio.is_some());
        if ratios {
            cells[0].push("ratio".to_owned());
        }
        for Row { name, values, ratio } in self.rows() {
            let mut row = vec![name.to_owned()];
            row.extend(values);
            if ratios {
                row.push(ratio.map_or_else(String::new, interval));
            }
            cells.push(row);
        }
        cells
    }

    /// Returns the good answers a second of both. Of a comparison in rounds these are the rates of the middle rounds: what a round leaves unanswered at
    /// its end is not the same share of a fast side and of a slow one.
    fn rates(&self) -> [f64; 2] {
        if self.rounds.is_empty() {
            return self.results.map(words::good_rate);
        }
        [0, 1].map(|side| {
            let mut rates: Vec<f64> = self.rounds.iter().map(|round| round[side]).collect();
            rates.sort_by(f64::total_cmp);
            f64::midpoint(rates[(rates.len() - 1) / 2], rates[rates.len() / 2])
        })
    }

    /// Says in a few words how the second rate stands to the first: `300 times as many as before`. None: there is nothing to compare.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        let first = self.names[0];
        // Too few rounds prove nothing, so nothing is claimed of them.
        let quotient = || plain(self.results.map(words::good_rate)).filter(|_| self.rounds.is_empty());
        let Ratio { ratio, .. } = self.ratios.rate.or_else(quotient)?;
        if self.ratios.rate.is_some_and(|ratio| !ratio.differs()) {
            return Some(format!("no difference from {first} was found"));
        }
        let percent = |part: f64| share(part.abs());
        Some(match ratio {
            _ if ratio >= 1.995 => format!("{} times as many as {first}", if ratio >= 10.0 { whole(ratio) } else { number(ratio) }),
            _ if ratio > 1.0 => format!("{} more than {first}", percent(ratio - 1.0)),
            _ if ratio < 1.0 => format!("{} fewer than {first}", percent(1.0 - ratio)),
            _ => format!("as many as {first}"),
        })
    }

    fn sentences(&self) -> impl Iterator<Item = String> {
        let said = std::iter::once(&self.said).chain(&self.remarks).cloned().chain(self.failing()).chain(self.limits());
        let ratios = (!self.rounds.is_empty() && self.ratios.rate.is_some()).then(|| RATIO_OF_ROUNDS.to_owned());
        said.chain(ratios).filter(|text| !text.is_empty()).map(|text| words::printable(&text))
    }

    /// Says what failures do to the values.
    fn failing(&self) -> Vec<String> {
        let mut said = Vec::new();
        let sides = || self.names.iter().zip(self.results).map(|(name, results)| (capital(name), words::failed(results)));
        if sides().any(|(_, failed)| failed >= FAILED) {
            said.push("Latencies are those of all answers and timeouts: the ones that failed are among them.".to_owned());
        }
        for (name, _) in sides().filter(|(_, failed)| *failed >= OVERLOADED) {
            said.push(format!("{name} was overloaded: repeat with fewer clients, such as -c 5."));
        }
        said
    }

    /// Says for each side whose limit was measured.
    fn limits(&self) -> Vec<String> {
        let sides = self.names.iter().zip(self.results).filter(|(_, results)| results.requests > 0);
        sides.map(|(name, results)| format!("{}: {}", capital(name), words::verdict(results))).collect()
    }

    /// Says how a side was asked. What of rounds is told is how many there were, not what each was told to do.
    fn how(&self, results: &Results) -> String {
        let Some(rounds) = u32::try_from(self.rounds.len()).ok().filter(|rounds| *rounds > 0) else { return words::how(&results.run) };
        let each = results.run.seconds.unwrap_or_else(|| results.duration / f64::from(rounds));
        let stop = format!("{} of {} each, alternately", counted(rounds.into(), "round"), seconds(each));
        words::how(&Run { stop, warm_up: 0.0, ..results.run.clone() })
    }

    /// Returns what is said first: the rate of the second side, and how it stands to that of the first. `None` means that nothing can be said of both.
    fn headline(&self) -> Option<(String, String)> {
        let words = self.in_words()?;
        let (name, rate) = (self.names[1], self.rates()[1]);
        let what = if words::failed(self.results[1]) > 0.0 { "good answers" } else { "requests" };
        Some((format!("{}: {} {what} a second", capital(name), number(rate)), words))
    }

    /// Writes what people read on a terminal.
    #[must_use]
    pub fn summary(&self, ink: Ink) -> String {
        let mut text = String::new();
        for (name, results) in self.names.iter().zip(self.results) {
            text += &format!("{} {}\n", ink.bold(&format!("{name:<8}")), words::target(&results.run));
            text += &format!("{:8} {}\n", "", self.how(results));
        }
        if let Some((rate, words)) = self.headline() {
            text += &format!("\n  {}\n", ink.bold(&format!("{rate}, {words}")));
        }
        text += &format!("\n{}", table::columns(&self.cells(), "  "));
        for (index, sentence) in self.sentences().enumerate() {
            text += &format!("{}{sentence}\n", if index == 0 { "\n" } else { "" });
        }
        text
    }

    /// Writes a table of Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        if let Some((rate, words)) = self.headline() {
            text += &format!("**{rate}, {words}**\n\n");
        }
        text += &table::markdown(&self.cells());
        for sentence in self.sentences() {
            // A sentence may name what a result's file says.
            text += &format!("\n{}\n", sentence.replace('<', "&lt;"));
        }
        text
    }

    fn bars(&self, look: ChartStyle<'_>) -> String {
        let group = |heading: &str, ratio: Option<Ratio>, note: fn(Ratio) -> String, [first, second]: [(f64, String); 2]| {
            let range = ratio.filter(|ratio| ratio.ratio > 0.0);
            let range = range.map(|ratio| (second.0 * ratio.low / ratio.ratio, second.0 * ratio.high / ratio.ratio));
            Bars {
                heading: heading.to_owned(),
                note: ratio.map_or_else(String::new, note),
                bars: vec![
                    Bar { name: self.names[0].to_owned(), value: first.0, interval: None, words: first.1, colour: Colour::Grey },
                    Bar { name: self.names[1].to_owned(), value: second.0, interval: range, words: second.1, colour: Colour::Blue },
                ],
            }
        };
        let time = |of: fn(&Times) -> f64| self.results.map(|results| (of(&results.latency), milliseconds(of(&results.latency))));
        let groups = [
            group("Good answers a second", self.ratios.rate, as_many, self.rates().map(|rate| (rate, number(rate)))),
            group("Median latency", self.ratios.p50, as_fast, time(|times| times.p50)),
            group("99 % of the requests within", self.ratios.p99, as_fast, time(|times| times.p99)),
        ];
        let described: Vec<_> =
            groups.iter().map(|group| format!("{}: {}, then {}.", group.heading, group.bars[0].words, group.bars[1].words)).collect();
        let whiskers = if [self.ratios.rate, self.ratios.p50, self.ratios.p99].iter().any(Option::is_some) {
            " The thin line on a bar is the range in which the value lies with 95 % confidence, if the other side's is certain."
        } else {
            ""
        };
        let [first, second] = self.names;
        chart::bars(&capital(&format!("{first} and {second}")), &(described.join(" ") + whiskers), &groups, look)
    }

    fn percentiles(&self, look: ChartStyle<'_>) -> Option<String> {
        let [first, second] = self.results.map(|results| distribution(&results.histograms.latency));
        let curves = [
            Curve { name: self.names[1], times: &second, colour: Colour::Blue, dash: "" },
            Curve { name: self.names[0], times: &first, colour: Colour::Grey, dash: "5 3" },
        ];
        chart::percentiles(&curves, look)
    }

    /// Draws the charts as pictures of their own, each with the name of its file.
    #[must_use]
    pub fn svg(&self) -> Vec<(&'static str, String)> {
        let percentiles = self.percentiles(ChartStyle::alone()).map(|picture| ("percentiles", picture));
        let rounds = chart::rounds(self.names, &self.rounds, ChartStyle::alone()).map(|picture| ("rounds", picture));
        std::iter::once(("comparison", self.bars(ChartStyle::alone()))).chain(percentiles).chain(rounds).collect()
    }

    /// Writes one HTML file.
    #[must_use]
    pub fn html(&self) -> String {
        let cells = self.cells();
        let head: Vec<_> = cells[0].iter().enumerate().map(|(index, cell)| if index == 0 { "Value" } else { cell.as_str() }).collect();
        let [first, second] = self.names;
        let mut sections = vec![Section {
            heading: "Side by side".to_owned(),
            figures: [
                figure("bars", &|look| Some(self.bars(look))),
                figure("curves", &|look| self.percentiles(look)),
                figure("rounds", &|look| chart::rounds(self.names, &self.rounds, look)),
            ]
            .into_iter()
            .flatten()
            .collect(),
            tables: vec![html_table(&capital(&format!("{first} and {second}")), &head, cells[1..].to_vec())],
            folded: None,
        }];
        for ((name, results), id) in self.names.iter().zip(self.results).zip(["first", "second"]) {
            let over = |over| {
                figure(&format!("{id}-{}", if over == Over::Rate { "rate" } else { "latency" }), &|look| {
                    chart::over_time(results, over, look)
                })
            };
            let mut tables = tables(results);
            for table in &mut tables {
                table.caption = format!("{}, {name}", table.caption);
            }
            let figures =
                if self.rounds.is_empty() { [over(Over::Rate), over(Over::Latency)].into_iter().flatten().collect() } else { Vec::new() };
            sections.push(Section {
                heading: format!("{}: {}", capital(name), words::target(&results.run)),
                figures,
                tables,
                folded: None,
            });
        }
        let (rate, after) = self.headline().unwrap_or_else(|| ("No comparison".to_owned(), String::new()));
        let mut reasons: Vec<_> = self.sentences().collect();
        let said = if reasons.is_empty() { words::verdict(self.results[1]) } else { reasons.remove(0) };
        let same = self.results[0].run.urls == self.results[1].run.urls;
        Page {
            hero: [String::new(), rate, after],
            bad: words::failed(self.results[1]) >= FAILED,
            target: if same {
                words::target(&self.results[1].run)
            } else {
                format!("{} and {}", words::target(&self.results[0].run), words::target(&self.results[1].run))
            },
            how: self.how(self.results[1]),
            verdict: (self.colour(), said, reasons),
            tiles: Vec::new(),
            sections,
            facts: facts(self.results[1]),
            notes: notes(self.results[1]),
            seawall: self.results[1].run.seawall.clone(),
        }
        .render()
    }

    fn colour(&self) -> &'static str {
        let better = |ratio: Option<Ratio>, more: bool| ratio.filter(Ratio::differs).map(|ratio| (ratio.ratio > 1.0) == more);
        let open = self.results[1].run.open;
        match if open { better(self.ratios.p50, false) } else { better(self.ratios.rate, true) } {
            Some(true) => "green",
            Some(false) => "orange",
            None => "grey",
        }
    }
}

fn as_many(ratio: Ratio) -> String {
    if ratio.differs() { format!("{} times as many", interval(ratio)) } else { format!("{}: no difference", interval(ratio)) }
}

/// Words a ratio of times: what takes a ninth of the time is nine times as fast.
fn as_fast(ratio: Ratio) -> String {
    let Ratio { ratio: of, low, high } = ratio;
    match () {
        () if !ratio.differs() => format!("{}: no difference", interval(ratio)),
        () if of < 1.0 && low > 0.0 => {
            format!("{} times as fast", interval(Ratio { ratio: 1.0 / of, low: 1.0 / high, high: 1.0 / low }))
        }
        () => format!("{} times as long", interval(ratio)),
    }
}

fn failures(results: &Results) -> String {
    let failed = results.errors_count();
    if failed == 0 { "0".to_owned() } else { format!("{} ({})", count(failed), share(failed as f64 / results.requests.max(1) as f64)) }
}

/// Returns the ratio of two values, as if it were certain; `None` if there is none.
fn plain([first, second]: [f64; 2]) -> Option<Ratio> {
    (first > 0.0 && second > 0.0).then(|| second / first).map(|ratio| Ratio { ratio, low: ratio, high: ratio })
}
