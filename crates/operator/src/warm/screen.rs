//! Shows how it goes, for whoever watches: a bar on a terminal, a line for each page elsewhere.

use std::io::{self, Write as _};

use indicatif::{ProgressBar, ProgressStyle};

use super::{Outcome, Progress};
use crate::foreign::visible;

/// Shows the progress on the screen. The bar is drawn on standard error, lines go to standard output.
#[derive(Debug)]
pub struct Screen {
    bar: Option<ProgressBar>,
    colour: bool,
}

impl Screen {
    /// Makes a screen, with a bar if a person watches both streams on a terminal.
    #[must_use]
    pub fn new(has_bar: bool, colour: bool) -> Self {
        let bar = has_bar.then(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {per_sec:.0}  {eta} left  {wide_msg}");
            let bar = ProgressBar::new(0);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, colour }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            // A reader that is gone (`| head`) is no reason to stop warming.
            None => drop(writeln!(io::stdout().lock(), "{line}")),
        }
    }
}

impl Progress for Screen {
    fn begin(&mut self, pages: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(pages as u64);
        }
    }

    fn done(&mut self, url: &str, outcome: &Outcome) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
            bar.set_message(visible(url).into_owned());
        }
        // With a bar, only what somebody should look at.
        if self.bar.is_none() || matches!(outcome, Outcome::Failed(_)) {
            self.line(&outcome.line(url, self.colour));
        }
    }

    fn say(&mut self, words: &str) {
        self.line(words);
    }
}
