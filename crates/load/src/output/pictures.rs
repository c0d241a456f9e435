//! Every chart of a result, for a page or for a file of its own.

use super::{
    ab::distribution,
    chart::{self, ChartStyle, Colour, Curve, Over},
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

    /// Returns the name of its file.
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
    pub(super) fn draw(self, results: &Results, look: ChartStyle<'_>) -> Option<String> {
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
    Picture::ALL.into_iter().filter_map(|picture| Some((picture.name(), picture.draw(results, ChartStyle::alone())?))).collect()
}
