//! What a run found, where it was asked for: standard output, files, the exit code.

use std::{
    fs,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use load::{
    Results,
    compare::{Comparison, EXIT_CODE, FailIf},
    find_limit::SearchResult,
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
pub(super) fn found(format: Format, found: &SearchResult, held: Option<&Results>) -> anyhow::Result<()> {
    let text = match (format, held) {
        (Format::Json, _) => format!("{}\n", serde_json::to_string_pretty(&json!({"limit": found, "held": held}))?),
        // The summary says the limit itself.
        (_, Some(held)) => format.write(held, ink()),
        (_, None) => format!("limit       {found}\n"),
    };
    say(&text).context("standard output cannot be written")
}

/// Says that no files were written, where some were asked for: they hold the result of a rate that was held.
pub(super) fn nothing_held(flags: &Flags) {
    let Flags { output, html, svg, hgrm, .. } = flags;
    let asked = [("--output", output.is_some()), ("--html", html.is_some()), ("--svg", svg.is_some()), ("--hgrm", hgrm.is_some())];
    let asked: Vec<&str> = asked.iter().filter(|(_, asked)| *asked).map(|(name, _)| *name).collect();
    if !asked.is_empty() {
        note(&format!("note: nothing is written for {}, because no rate was held.", asked.join(", ")));
    }
}

/// Looks whether the files that a run writes can be written. A run of an hour must not end without its result because of a typo.
///
/// # Errors
/// When one cannot be, or two results would go to one file.
pub(super) fn writable(flags: &Flags) -> Result<(), Failed> {
    can_be_written(&[("--output", flags.output.as_deref()), ("--html", flags.html.as_deref()), ("--hgrm", flags.hgrm.as_deref())])?;
    let Some(folder) = &flags.svg else { return Ok(()) };
    let not = |error: io::Error| Failed::Mistyped(format!("--svg {}: no charts can be written to it: {error}", folder.display()));
    if folder.exists() && !folder.is_dir() {
        return Err(Failed::Mistyped(format!("--svg {} is a file\n  Name a folder: each chart is a file in it.", folder.display())));
    }
    fs::create_dir_all(folder).map_err(not)?;
    opened(&folder.join(".seawall-bench")).map_err(not)
}

/// Looks whether files can be written, each with the flag that names it. Nothing in a file is changed by that, and none is left behind.
///
/// # Errors
/// When one cannot be, or two flags name one file.
pub(super) fn can_be_written(files: &[(&str, Option<&Path>)]) -> Result<(), Failed> {
    let named: Vec<(&str, &Path)> = files.iter().filter_map(|(flag, path)| path.map(|path| (*flag, path))).collect();
    for (at, (flag, path)) in named.iter().enumerate() {
        if path.is_dir() {
            return Err(Failed::Mistyped(format!("{flag} {} is a folder\n  Name a file.", path.display())));
        }
        if let Some((other, _)) = named[..at].iter().find(|(_, other)| other == path && !is_special(path)) {
            return Err(Failed::Mistyped(format!("{other} and {flag} name the same file, {}\n  Name two.", path.display())));
        }
        opened(path).map_err(|error| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
            let remedy = folder.map_or_else(String::new, |folder| format!("\n  There is no folder {}.", folder.display()));
            Failed::Mistyped(format!("{flag} {} cannot be written: {error}{remedy}", path.display()))
        })?;
    }
    Ok(())
}

/// A pipe or a device: to open one may wait for a reader.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn opened(path: &Path) -> io::Result<()> {
    if is_special(path) {
        return Ok(());
    }
    let is_new = !path.exists();
    fs::OpenOptions::new().append(true).create(true).open(path)?;
    if is_new { fs::remove_file(path) } else { Ok(()) }
}

/// Writes the files that were asked for. One that cannot be written keeps no other from being written; the first failure is told.
pub(super) fn files(flags: &Flags, results: &Results) -> anyhow::Result<()> {
    let hgrm = |path: &PathBuf| file(path, &output::hgrm(results).context("the distribution of latencies cannot be read")?);
    let written = [
        flags.output.as_ref().map(|path| file(path, &output::json(results))),
        flags.html.as_ref().map(|path| file(path, &output::html(results))),
        flags.hgrm.as_ref().map(hgrm),
        flags.svg.as_ref().map(|folder| pictures(folder, output::svg(results))),
    ];
    written.into_iter().flatten().collect()
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

/// Writes a comparison in one of its forms.
pub(super) fn comparison_text(format: Format, comparison: &Comparison) -> anyhow::Result<String> {
    if format == Format::Json {
        return Ok(format!("{}\n", serde_json::to_string_pretty(comparison).context("no JSON")?));
    }
    Ok(side_by_side(format, &compare::beside(comparison)))
}

/// Writes a comparison to standard output, and the files that were asked for.
pub(super) fn comparison(format: Format, flags: &Flags, comparison: &Comparison) -> anyhow::Result<()> {
    let beside = compare::beside(comparison);
    let text = comparison_text(format, comparison)?;
    let written = [
        flags.output.as_ref().map(|path| file(path, &comparison_text(Format::Json, comparison)?)),
        flags.html.as_ref().map(|path| file(path, &beside.html())),
        flags.svg.as_ref().map(|folder| pictures(folder, beside.svg())),
        // The files are there, whether or not anybody reads this.
        Some(say(&text).context("standard output cannot be written")),
    ];
    written.into_iter().flatten().collect()
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
