//! `--compare`: two URLs, or one past the cache and with it, in short rounds alternately.

use std::{ops::ControlFlow, process::ExitCode, time::Duration};

use anyhow::Context as _;
use load::{
    Watch,
    compare::{CompareWatch, Comparison, Side, TIME, TIME_MIN, compare},
    output::{Beside, Format},
    results::Second,
};

use super::{
    direct,
    flags::Flags,
    go::{Failed, Ready, note, remark_on, undone},
    interrupt::Interrupt,
    shown, written,
};

/// Compares, and writes what was found.
pub(super) fn run(flags: &Flags) -> Result<ExitCode, Failed> {
    let format = written::format(flags.format.as_deref(), &[Format::Text, Format::Json, Format::Markdown])?;
    let time = time(flags)?;
    written::writable(flags)?;
    let (mut a, mut b) = sides(flags)?;
    if flags.direct {
        // Both sides together take this long.
        a.plan.stop.after = Some(time);
        a.go_direct(flags)?;
    }
    a.look(flags)?;
    b.look(flags)?;
    // What is random is the same on both sides.
    b.plan.seed = a.plan.seed;
    let mut watch = Rounds { interrupt: Interrupt::listen().context("no thread for Ctrl-C")?, quiet: flags.quiet, told: 0 };
    let mut comparison = compare(&a.plan, &b.plan, time, &mut watch).map_err(undone)?;
    comparison.direct = flags.direct;
    shown::describe(&mut comparison.a.run);
    shown::describe(&mut comparison.b.run);
    if flags.direct
        && let Some(remark) = direct::went_past(&comparison.a).map_err(|why| Failed::Undone(anyhow::Error::msg(why)))?
    {
        note(&remark);
    }
    if !remark_on(flags, &b, &comparison.b) {
        remark_on(flags, &a, &comparison.a);
    }
    let written = written::comparison(format, flags, &comparison);
    let answered = comparison.a.answered > 0 && comparison.b.answered > 0;
    let code = written::code_of(flags, &comparison.b, answered);
    written?;
    code
}

/// The time of the whole comparison.
fn time(flags: &Flags) -> Result<Duration, Failed> {
    let time = flags.duration.unwrap_or(TIME);
    if time < TIME_MIN {
        let least = TIME_MIN.as_secs();
        return Err(Failed::Mistyped(format!(
            "a comparison takes {least} seconds at least, or its rounds are too short\n  Use --duration {least}s, or more."
        )));
    }
    Ok(time)
}

/// Makes both sides ready.
fn sides(flags: &Flags) -> Result<(Ready, Ready), Failed> {
    flags.agree().map_err(Failed::Mistyped)?;
    let with = |url: &String| Flags { urls: vec![url.clone()], duration: None, ..flags.clone() };
    let (a, b) = match (flags.direct, flags.urls.as_slice()) {
        (true, [url]) => (with(url), with(url)),
        (false, [a, b]) => (with(a), with(b)),
        (true, _) => {
            let words = "--compare --direct compares one page, past the cache and with it\n  Name one URL.";
            return Err(Failed::Mistyped(words.to_owned()));
        }
        (false, [_]) => {
            let words = "--compare compares two URLs, and one is named\n  Name another one; or add --direct to compare it past the cache with itself.";
            return Err(Failed::Mistyped(words.to_owned()));
        }
        (false, urls) => {
            let words = format!("--compare compares two URLs, and {} are named\n  Name two.", urls.len());
            return Err(Failed::Mistyped(words));
        }
    };
    let (a, b) = (Ready::of(&a)?, Ready::of(&b)?);
    if a.plan.schedule.end().is_some() {
        let words = "--compare needs a rate that stays, as its rounds are short\n  Write --rate 1000, without a time.";
        return Err(Failed::Mistyped(words.to_owned()));
    }
    Ok((a, b))
}

/// Tells now and then how far a comparison is.
struct Rounds {
    interrupt: Interrupt,
    quiet: bool,
    /// How many quarters were told.
    told: usize,
}

impl Watch for Rounds {
    fn second(&mut self, second: &Second) -> ControlFlow<()> {
        self.interrupt.second(second)
    }

    fn stops(&mut self) -> bool {
        self.interrupt.stops()
    }
}

impl CompareWatch for Rounds {
    fn round(&mut self, round: usize, of: usize, _: Side) {
        let quarter = round * 4 / of.max(1);
        if !self.quiet && quarter > self.told {
            self.told = quarter;
            note(&format!("round {round} of {of}"));
        }
    }
}

/// Lays both sides beside each other.
pub(super) fn beside(comparison: &Comparison) -> Beside<'_> {
    let beside = Beside::from(comparison);
    if !comparison.direct {
        return beside;
    }
    let said = format!("Before (A) is past the cache, after (B) is with it. {}", comparison.said(["before", "after"]));
    Beside { said, ..beside.named("before", "after") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::bench::tests::flags;

    fn refused(line: &str) -> String {
        match sides(&flags(format!("seawall bench {line}"))) {
            Err(Failed::Mistyped(words)) => words,
            Err(Failed::Undone(error)) => panic!("{line}: {error}"),
            Ok(_) => panic!("{line}"),
        }
    }

    #[test]
    fn two_urls_are_compared_or_one_past_the_cache() {
        for (line, expected) in [
            ("--compare http://127.0.0.1/", "add --direct"),
            ("--compare http://127.0.0.1/ http://127.0.0.2/ http://127.0.0.3/", "3 are named"),
            ("--compare --direct http://127.0.0.1/ http://127.0.0.2/", "Name one URL"),
            ("--compare --rate 10/5s http://127.0.0.1/ http://127.0.0.2/", "without a time"),
        ] {
            let words = refused(line);
            assert!(words.contains(expected), "{line}: {words}");
        }
        let (a, b) =
            sides(&flags("seawall bench --compare -c 5 http://127.0.0.1/a http://127.0.0.1/b")).unwrap_or_else(|_| panic!("two sides"));
        assert_eq!((a.plan.requests.requests[0].target.as_str(), b.plan.requests.requests[0].target.as_str()), ("/a", "/b"));
        assert!(time(&flags("seawall bench --compare -d 5s http://127.0.0.1/")).is_err());
    }
}
