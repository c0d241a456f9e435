//! A line for each second, while the run goes on: as JSON or as CSV.

use std::{
    io::{self, Write},
    ops::ControlFlow,
};

use serde::Serialize;

use crate::{
    answer::Outcome,
    engine::Watch,
    record::ErrorClass,
    results::{Encoded, Results, Second},
};

/// The form of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineForm {
    /// A JSON object: `{"type": "second", ...}`, and at the end `{"type": "result", ...}`.
    Json,
    /// Comma-separated values (RFC 4180), with a line of names.
    Csv,
}

/// Writes a line for each second, as soon as the second is over.
#[derive(Debug)]
pub struct Lines<W> {
    form: LineForm,
    to: W,
    began: bool,
    failed: Option<io::Error>,
}

#[derive(Serialize)]
struct Line<'a, T> {
    r#type: &'a str,
    #[serde(flatten)]
    what: &'a T,
}

impl<W: Write> Lines<W> {
    /// Makes a writer of lines.
    pub const fn new(form: LineForm, to: W) -> Self {
        Self { form, to, began: false, failed: None }
    }

    /// Writes the end: the result, where the form has a line for it. A reader that has seen enough (`| head`) is not a failure.
    ///
    /// # Errors
    /// When this, or an earlier line, could not be written.
    pub fn finish(mut self, results: &Results) -> io::Result<()> {
        let written = self.failed.take().map_or_else(|| self.end(results), Err);
        written.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
    }

    fn end(&mut self, results: &Results) -> io::Result<()> {
        match self.form {
            LineForm::Json => self.json("result", results),
            // A run that ended at once has the names all the same.
            LineForm::Csv => self.head(),
        }?;
        self.to.flush()
    }

    fn json<T: Serialize>(&mut self, r#type: &str, what: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line { r#type, what })?;
        line.push(b'\n');
        self.to.write_all(&line)
    }

    fn head(&mut self) -> io::Result<()> {
        if self.began {
            return Ok(());
        }
        self.began = true;
        self.to.write_all(csv_head().as_bytes())
    }

    fn write(&mut self, second: &Second) -> io::Result<()> {
        match self.form {
            LineForm::Json => self.json("second", &Second { histogram: Encoded::default(), ..second.clone() })?,
            LineForm::Csv => {
                self.head()?;
                self.to.write_all(csv_line(second).as_bytes())?;
            }
        }
        self.to.flush()
    }
}

impl<W: Write> Watch for Lines<W> {
    /// Ends the run when nobody reads any more.
    fn second(&mut self, second: &Second) -> ControlFlow<()> {
        match self.write(second) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Writes the seconds of a run that is over.
#[must_use]
pub fn csv(results: &Results) -> String {
    results.seconds.iter().fold(csv_head(), |text, second| text + &csv_line(second))
}

fn csv_head() -> String {
    let outcomes = Outcome::ALL.map(name_of).join(",");
    let errors = ErrorClass::ALL.map(|class| format!("error_{}", class.name())).join(",");
    format!("second,length,requests,answered,rate,bytes,connections,clients,p50_ms,p90_ms,p99_ms,max_ms,{outcomes},errors,{errors}\r\n")
}

fn csv_line(second: &Second) -> String {
    let Second { length, requests, answered, bytes, connections, clients, latency, .. } = second;
    let outcomes = Outcome::ALL.map(|outcome| second.cache.get(&outcome).copied().unwrap_or_default().to_string()).join(",");
    let errors = ErrorClass::ALL.map(|class| second.errors.get(&class).copied().unwrap_or_default().to_string()).join(",");
    format!(
        "{},{length:.3},{requests},{answered},{:.3},{bytes},{connections},{clients},{:.6},{:.6},{:.6},{:.6},{outcomes},{},{errors}\r\n",
        second.second,
        second.rate(),
        latency.p50,
        latency.p90,
        latency.p99,
        latency.max,
        second.errors_count()
    )
}

/// Returns the name of an outcome in the JSON form.
pub(super) const fn name_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Hit => "hit",
        Outcome::Stale => "stale",
        Outcome::Miss => "miss",
        Outcome::Bypass => "bypass",
        Outcome::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        record::Tally,
        results::{Limit, Run, Verdict},
    };

    /// A reader that takes nothing, for this reason.
    struct Closed(io::ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn whatever_takes_no_line_ends_the_run_and_only_a_reader_that_is_gone_is_no_failure() {
        let verdict = Verdict { limit: Limit::Schedule, at_least: false, reason: String::new(), hint: None };
        let results = Results::new(Run::default(), Duration::ZERO, &Tally::new(), Vec::new(), verdict);
        for form in [LineForm::Json, LineForm::Csv] {
            for (kind, well) in [(io::ErrorKind::BrokenPipe, true), (io::ErrorKind::StorageFull, false)] {
                let mut lines = Lines::new(form, Closed(kind));
                assert!(lines.second(&Second::default()).is_break());
                assert_eq!(lines.finish(&results).is_ok(), well, "{form:?} {kind:?}");
                // A run that ended before its first second.
                assert_eq!(Lines::new(form, Closed(kind)).finish(&results).is_ok(), well, "{form:?} {kind:?}");
            }
        }
    }
}
