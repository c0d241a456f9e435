//! Every chart of a result, for a page or for a file of its own.

use super::{
    ab::distribution,
    chart::{self, Bar, Bars, Colour, Curve, Look, Over},
    quantity::{milliseconds, number},
};
use crate::results::Results;

/// The charts of one result, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Picture {
    Over(Over),
    Percentiles,
}

impl Picture {
    pub(super) const ALL: [Self; 6] = [
        Self::Over(Over::Rate),
        Self::Over(Over::Latency),
        Self::Percentiles,
        Self::Over(Over::Cache),
        Self::Over(Over::Errors),
        Self::Over(Over::Clients),
    ];

    /// The name of its file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Over(Over::Rate) => "rate",
            Self::Over(Over::Latency) => "latency",
            Self::Over(Over::Errors) => "errors",
            Self::Over(Over::Clients) => "clients",
            Self::Over(Over::Cache) => "cache",
            Self::Percentiles => "percentiles",
        }
    }

    /// Draws it. None if there is nothing to show.
    pub(super) fn draw(self, results: &Results, look: Look<'_>) -> Option<String> {
        match self {
            Self::Over(over) => chart::over_time(results, over, look),
            Self::Percentiles => {
                let latency = distribution(&results.histograms.latency);
                let uncorrected = distribution(&results.histograms.latency_uncorrected);
                let mut curves = vec![Curve { name: "latency", times: &latency, colour: Colour::Blue, dash: "" }];
                if results.run.open {
                    curves.push(Curve { name: "uncorrected", times: &uncorrected, colour: Colour::Grey, dash: "5 3" });
                }
                chart::percentiles(&curves, look)
            }
        }
    }
}

/// Draws each chart of a result as a picture of its own, with the name of its file. Charts that would show nothing are left out.
///
/// They are for editors that strip scripts and styles: all is in presentation attributes.
#[must_use]
pub fn svg(results: &Results) -> Vec<(&'static str, String)> {
    Picture::ALL.into_iter().filter_map(|picture| Some((picture.name(), picture.draw(results, Look::alone())?))).collect()
}

/// Two results beside each other, with their names.
pub(super) type Pair<'a> = [(&'a str, &'a Results); 2];

/// Draws both as bars: more is better, then less is better.
pub(super) fn pair_bars(pair: Pair<'_>, notes: &[(&str, String)], look: Look<'_>) -> String {
    let group = |heading: &str, what: &str, of: &dyn Fn(&Results) -> (f64, String)| Bars {
        heading: heading.to_owned(),
        note: notes.iter().find(|(name, _)| *name == what).map(|(_, note)| note.clone()).unwrap_or_default(),
        bars: [(pair[0], Colour::Grey), (pair[1], Colour::Blue)]
            .into_iter()
            .map(|((name, results), colour)| {
                let (value, words) = of(results);
                Bar { name: name.to_owned(), value, words, colour }
            })
            .collect(),
    };
    let time = |of: fn(&Results) -> f64| move |results: &Results| (of(results), milliseconds(of(results)));
    let groups = [
        group("Requests a second", "rate", &|results| (results.rate, number(results.rate))),
        group("Median latency", "p50", &time(|results| results.latency.p50)),
        group("99 % of the requests within", "p99", &time(|results| results.latency.p99)),
    ];
    let [(before, _), (after, _)] = pair;
    let described: Vec<_> = groups
        .iter()
        .map(|group| {
            let values: Vec<_> = group.bars.iter().map(|bar| format!("{} {}", bar.name, bar.words)).collect();
            format!("{}: {}", group.heading, values.join(", "))
        })
        .collect();
    chart::bars(&format!("{before} and {after}"), &format!("{}.", described.join(". ")), &groups, look)
}

/// Draws the percentile curves of both in one picture.
pub(super) fn pair_percentiles(pair: Pair<'_>, look: Look<'_>) -> Option<String> {
    let [before, after] = pair.map(|(_, results)| distribution(&results.histograms.latency));
    let curves = [
        Curve { name: pair[1].0, times: &after, colour: Colour::Blue, dash: "" },
        Curve { name: pair[0].0, times: &before, colour: Colour::Grey, dash: "5 3" },
    ];
    chart::percentiles(&curves, look)
}
