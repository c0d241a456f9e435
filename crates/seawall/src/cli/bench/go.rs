//! Makes the run that was asked for, from the flags to what is written.

use std::{fs, ops::ControlFlow, path::Path, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use load::{Plan, Results, Watch, results::Second};

use super::{connect, direct, flags::Flags, interrupt::Interrupt, shown, what};
use crate::cli::output::say;

/// Why there is no result.
pub(super) enum Failed {
    /// What was typed means nothing, or contradicts itself.
    Mistyped(String),
    /// It could not be done.
    Undone(anyhow::Error),
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self::Undone(error)
    }
}

/// Makes a run, and writes what it found.
pub(super) fn once(flags: &Flags) -> Result<ExitCode, Failed> {
    flags.agree().map_err(Failed::Mistyped)?;
    let plan = plan(flags)?;
    connect::reachable(&plan).map_err(|why| Failed::Undone(anyhow::Error::msg(why)))?;
    let interrupt = Interrupt::listen().context("no thread for Ctrl-C").map_err(Failed::Undone)?;
    let must_bypass = direct::MustBypass::default();
    let mut watches: Vec<Box<dyn Watch>> = vec![Box::new(interrupt.clone())];
    if flags.direct {
        watches.push(Box::new(must_bypass));
    }
    let mut results = load::run(&plan, &mut Several(watches)).context("the run ended early").map_err(Failed::Undone)?;
    results.run.command = shown::command(std::env::args());
    if flags.direct {
        direct::went_past(&results).map_err(|why| Failed::Undone(anyhow::Error::msg(why)))?;
    }
    write(flags, &results)?;
    Ok(ExitCode::SUCCESS)
}

fn plan(flags: &Flags) -> Result<Plan, Failed> {
    let (schedule, stop) = flags.schedule().map_err(Failed::Mistyped)?;
    let protocol = flags.protocol().map_err(Failed::Mistyped)?;
    let connections = flags.connections().map_err(Failed::Mistyped)?;
    let workers = flags.workers(&schedule).map_err(Failed::Mistyped)?;
    let plain = what::set(flags, &[]).map_err(Failed::Mistyped)?;
    flags.fit(&plain.origins).map_err(Failed::Mistyped)?;
    let warm_up = flags.warm_up.unwrap_or(Duration::ZERO);
    let mut further = Vec::new();
    if flags.direct {
        let seconds = direct::seconds(stop, schedule.end(), warm_up).map_err(Failed::Mistyped)?;
        further.push(direct::field(&flags.access, seconds)?);
    }
    let requests = Arc::new(what::set(flags, &further).map_err(Failed::Mistyped)?);
    Ok(Plan { requests, schedule, protocol, stop, connections, timeout: flags.patience(), warm_up, workers, seed: flags.seed() })
}

fn write(flags: &Flags, results: &Results) -> Result<(), Failed> {
    let text = if flags.format.as_deref() == Some("json") {
        format!("{}\n", serde_json::to_string_pretty(results).context("no JSON")?)
    } else {
        load::output::summary(results)
    };
    say(&text).context("standard output cannot be written")?;
    if let Some(path) = &flags.output {
        file(path, &format!("{}\n", serde_json::to_string_pretty(results).context("no JSON")?))?;
    }
    Ok(())
}

fn file(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// Several who look on at a run. It ends when one of them ends it.
struct Several(Vec<Box<dyn Watch>>);

impl Watch for Several {
    fn second(&mut self, second: &Second) -> ControlFlow<()> {
        let ended = self.0.iter_mut().map(|watch| watch.second(second)).filter(|flow| flow.is_break()).count();
        if ended > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
