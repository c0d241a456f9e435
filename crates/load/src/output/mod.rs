//! Shows results: to people, to programs, and as pictures.
//!
//! Everything here is made from [`Results`] alone, so that a file of an earlier run can be shown in any form.

mod ab;
mod beside;
mod chart;
mod hgrm;
mod keys;
mod lines;
mod live;
mod markdown;
mod pictures;
pub mod quantity;
mod report;
mod series;
mod summary;
mod table;
mod words;
mod wrk;

use std::{ops::ControlFlow, str::FromStr};

pub use self::{
    ab::ab,
    beside::Beside,
    hgrm::hgrm,
    keys::restore_terminal,
    lines::{LineForm, Lines, csv},
    live::{Live, Progress},
    markdown::markdown,
    pictures::svg,
    report::html,
    summary::{Ink, summary, summary_in},
    words::printable,
    wrk::wrk,
};
use crate::{
    engine::Watch,
    results::{Results, Second},
};

/// The forms in which a result can be written on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The summary for people.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// A line of JSON for each second as it happens, and one for the result.
    Ndjson,
    /// A line of comma-separated values for each second as it happens.
    Csv,
    /// The layout of ApacheBench.
    Ab,
    /// The layout of wrk.
    Wrk,
    /// Tables of Markdown.
    Markdown,
}

impl Format {
    /// Every form.
    pub const ALL: [Self; 7] = [Self::Text, Self::Json, Self::Ndjson, Self::Csv, Self::Ab, Self::Wrk, Self::Markdown];

    /// Returns its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Ab => "ab",
            Self::Wrk => "wrk",
            Self::Markdown => "markdown",
        }
    }

    /// Returns the form of the lines that are written while the run goes on ([`Lines`]), if it has such lines. Then nothing else is written at the end.
    #[must_use]
    pub const fn lines(self) -> Option<LineForm> {
        match self {
            Self::Ndjson => Some(LineForm::Json),
            Self::Csv => Some(LineForm::Csv),
            Self::Text | Self::Json | Self::Ab | Self::Wrk | Self::Markdown => None,
        }
    }

    /// Writes a result. `ink` is for people's eyes alone.
    #[must_use]
    pub fn write(self, results: &Results, ink: Ink) -> String {
        match self {
            Self::Text => summary_in(results, ink),
            Self::Json => json(results),
            Self::Ndjson => {
                let mut text = Vec::new();
                let mut lines = Lines::new(LineForm::Json, &mut text);
                for second in &results.seconds {
                    let _ = lines.second(second);
                }
                let _ = lines.finish(results);
                String::from_utf8(text).expect("JSON is UTF-8")
            }
            Self::Csv => csv(results),
            Self::Ab => ab(results),
            Self::Wrk => wrk(results),
            Self::Markdown => markdown(results),
        }
    }
}

/// A name that is not a form.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a form of a result: use text, json, ndjson, csv, ab, wrk or markdown")]
pub struct NoFormat(String);

impl FromStr for Format {
    type Err = NoFormat;

    fn from_str(name: &str) -> Result<Self, NoFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| NoFormat(name.to_owned()))
    }
}

/// Writes a result as one JSON object.
#[must_use]
pub fn json(results: &Results) -> String {
    serde_json::to_string_pretty(results).expect("results have names that are strings") + "\n"
}

/// Several who look on at the same run. It ends when one of them ends it.
#[expect(missing_debug_implementations, reason = "a watch need not have one")]
pub struct All<'a>(pub Vec<&'a mut dyn Watch>);

impl Watch for All<'_> {
    fn second(&mut self, second: &Second) -> ControlFlow<()> {
        let ended = self.0.iter_mut().filter_map(|watch| watch.second(second).break_value()).count();
        if ended > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn stops(&mut self) -> bool {
        self.0.iter_mut().map(|watch| watch.stops()).fold(false, |one, other| one | other)
    }
}
