//! What a run found, where it was asked for: standard output, files, the exit code.

use std::{
    fs,
    io::{self, IsTerminal as _},
    path::Path,
    process::ExitCode,
};

use anyhow::Context as _;
use load::{
    Results,
    compare::{Comparison, EXIT_CODE, FailIf},
    find_limit::Found,
    output::{self, Beside, Format, Ink},
};
use serde_json::json;

use super::{
    compare,
    flags::Flags,
    go::{Failed, note},
};
use crate::cli::output::say;

/// The exit code of a run in which somebody got what is another's.
const LEAKED: u8 = 4;

/// Reads the form of the result.
///
/// # Errors
/// When there is no such form, or not here.
pub(super) fn format(typed: Option<&str>, possible: &[Format]) -> Result<Format, Failed> {
    let Some(name) = typed else { return Ok(Format::Text) };
    possible.iter().copied().find(|format| format.name() == name).ok_or_else(|| {
        let names: Vec<&str> = possible.iter().map(|format| format.name()).collect();
        Failed::Mistyped(format!("--format {name}: write one of {}", names.join(", ")))
    })
}

fn ink() -> Ink {
    Ink::for_terminal(io::stdout().is_terminal())
}

/// Writes a result to standard output.
pub(super) fn result(format: Format, results: &Results) -> anyhow::Result<()> {
    say(&format.write(results, ink())).context("standard output cannot be written")
}

/// Writes what a search has found to standard output.
pub(super) fn found(format: Format, found: &Found, held: Option<&Results>) -> anyhow::Result<()> {
    let text = match (format, held) {
        (Format::Json, _) => format!("{}\n", serde_json::to_string_pretty(&json!({"limit": found, "held": held}))?),
        (_, Some(held)) => format!("{}\nlimit       {found}\n", format.write(held, ink()).trim_end()),
        (_, None) => format!("limit       {found}\n"),
    };
    say(&text).context("standard output cannot be written")
}

/// Writes the files that were asked for.
pub(super) fn files(flags: &Flags, results: &Results) -> anyhow::Result<()> {
    if let Some(path) = &flags.output {
        file(path, &output::json(results))?;
    }
    if let Some(path) = &flags.html {
        file(path, &output::html(results))?;
    }
    if let Some(path) = &flags.hgrm {
        file(path, &output::hgrm(results).context("the distribution of latencies cannot be read")?)?;
    }
    flags.svg.as_deref().map_or(Ok(()), |folder| pictures(folder, output::svg(results)))
}

/// Writes charts to a folder, which is made if it is not there.
fn pictures(folder: &Path, pictures: Vec<(&'static str, String)>) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    pictures.into_iter().try_for_each(|(name, picture)| file(&folder.join(format!("{name}.svg")), &picture))
}

/// Writes two results beside each other.
pub(super) fn side_by_side(format: Format, beside: &Beside<'_>) -> String {
    if format == Format::Markdown { beside.markdown() } else { beside.summary(ink()) }
}

pub(super) fn file(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// Writes a comparison to standard output, and the files that were asked for.
pub(super) fn comparison(format: Format, flags: &Flags, comparison: &Comparison) -> anyhow::Result<()> {
    let json = || anyhow::Ok(format!("{}\n", serde_json::to_string_pretty(comparison).context("no JSON")?));
    let beside = compare::beside(comparison, flags.direct);
    let text = if format == Format::Json { json()? } else { side_by_side(format, &beside) };
    say(&text).context("standard output cannot be written")?;
    if let Some(path) = &flags.output {
        file(path, &json()?)?;
    }
    if let Some(path) = &flags.html {
        file(path, &beside.html())?;
    }
    flags.svg.as_deref().map_or(Ok(()), |folder| pictures(folder, beside.svg()))
}

/// Reads the bounds that results must keep.
///
/// # Errors
/// When one is none.
pub(super) fn bounds(typed: &[String]) -> Result<Vec<FailIf>, Failed> {
    let read = |text: &String| FailIf::read(text).map_err(|error| Failed::Mistyped(format!("--fail-if {error}")));
    Ok(typed.iter().map(read).collect::<Result<Vec<_>, _>>()?.concat())
}

/// Says how a process ends whose results should keep bounds: which ones they exceed is told.
pub(super) fn kept(bounds: &[FailIf], results: &Results) -> ExitCode {
    let failures: Vec<String> = bounds.iter().filter_map(|bound| bound.failure(results)).collect();
    failures.iter().for_each(|failure| note(&format!("failed: {failure}")));
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_CODE) }
}

/// Says how the process ends.
pub(super) fn code(flags: &Flags, results: &Results) -> Result<ExitCode, Failed> {
    if !results.leaks.is_empty() || results.errors.get(&load::record::ErrorClass::Leak).is_some_and(|count| *count > 0) {
        return Ok(ExitCode::from(LEAKED));
    }
    code_of(flags, results, results.answered > 0)
}

/// Says how the process ends after a run in which something was answered, or nothing was.
pub(super) fn code_of(flags: &Flags, results: &Results, answered: bool) -> Result<ExitCode, Failed> {
    let code = kept(&bounds(&flags.fail_if)?, results);
    Ok(if code == ExitCode::SUCCESS && !answered { ExitCode::FAILURE } else { code })
}
