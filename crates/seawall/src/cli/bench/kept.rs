//! `seawall bench compare` and `seawall bench merge`: what is done with results that are there already.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use load::{
    Results,
    compare::{Comparison, FailIf, differences, merge},
    output::{self, Beside, Format},
    results::Unreadable,
};

use super::{
    compare,
    flags::Action,
    go::{Failed, undone},
    written,
};
use crate::cli::output::say;

/// The largest result that is read: a run of days.
const BYTES_MAX: u64 = 256 << 20;

/// Does it.
pub(super) fn run(action: &Action) -> Result<ExitCode, Failed> {
    match action {
        Action::Compare { old, new, fail_if, format, html } => {
            let format = written::format(format.as_deref(), &[Format::Text, Format::Json, Format::Markdown])?;
            let bounds = written::bounds(fail_if)?;
            written::can_be_written(&[("--html", html.as_deref())])?;
            let Some(new) = new else { return show(old, format, html.as_deref(), &bounds) };
            let alone = |path: &Path| format!("Name it alone: seawall bench compare {}", path.display());
            let (old, new) = (result(old, alone)?, result(new, alone)?);
            let differences = differences(&old, &new);
            let text = match format {
                Format::Json => format!("{}\n", serde_json::to_string_pretty(&differences).context("no JSON")?),
                Format::Markdown => Beside::old_and_new(&old, &new, &differences).markdown(),
                _ => differences.to_string(),
            };
            let page = || Beside::old_and_new(&old, &new, &differences).html();
            let filed = html.as_ref().map_or(Ok(()), |path| written::file(path, &page()));
            let printed = say(&text).context("standard output cannot be written");
            let code = written::kept(&bounds, &new);
            filed.and(printed)?;
            Ok(code)
        }
        Action::Merge { files, format, output, html, fail_if } => {
            let possible = [Format::Text, Format::Json, Format::Ab, Format::Wrk, Format::Markdown];
            let format = written::format(format.as_deref(), &possible)?;
            let bounds = written::bounds(fail_if)?;
            written::can_be_written(&[("--output", output.as_deref()), ("--html", html.as_deref())])?;
            if let Some(twice) = named_twice(files) {
                return Err(Failed::Mistyped(format!("{} is named twice\n  Name the result of each machine once.", twice.display())));
            }
            let elsewhere = |path: &Path| format!("Only results of runs are added. To see it: seawall bench compare {}", path.display());
            let results = files.iter().map(|path| result(path, elsewhere)).collect::<Result<Vec<_>, _>>()?;
            let sum = merge(&results).map_err(undone)?;
            let filed = [
                output.as_ref().map(|path| written::file(path, &output::json(&sum))),
                html.as_ref().map(|path| written::file(path, &output::html(&sum))),
            ];
            let printed = written::result(format, &sum);
            let code = written::kept(&bounds, &sum);
            filed.into_iter().flatten().collect::<anyhow::Result<()>>().and(printed)?;
            Ok(code)
        }
    }
}

/// Finds a file that is named a second time, perhaps by another path.
fn named_twice(files: &[PathBuf]) -> Option<&Path> {
    let mut seen = HashSet::new();
    files.iter().find(|path| !seen.insert(fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()))).map(PathBuf::as_path)
}

/// Shows again what `--compare` has written.
fn show(path: &Path, format: Format, html: Option<&Path>, bounds: &[FailIf]) -> Result<ExitCode, Failed> {
    let text = read(path)?;
    match Results::read(&text) {
        Err(Unreadable::Comparison) => {}
        Ok(_) => {
            let path = path.display();
            return Err(Failed::Mistyped(format!(
                "{path} is one result\n  Name another one to compare it with: seawall bench compare {path} NEW.json. What --compare has written can stand \
                 alone."
            )));
        }
        Err(why) => return Err(unreadable(path, why)),
    }
    let comparison = Comparison::read(&text).with_context(|| format!("{} is not a whole comparison of seawall bench", path.display()))?;
    let filed = html.map_or(Ok(()), |path| written::file(path, &compare::beside(&comparison).html()));
    let printed = say(&written::comparison_text(format, &comparison)?).context("standard output cannot be written");
    let code = written::kept(bounds, &comparison.b);
    filed.and(printed)?;
    Ok(code)
}

/// Reads a result. `remedy` says what to do with a comparison, which is none.
fn result(path: &Path, remedy: impl Fn(&Path) -> String) -> Result<Results, Failed> {
    Results::read(&read(path)?).map_err(|why| match why {
        Unreadable::Comparison => Failed::Mistyped(format!("{} is not a result: {why}\n  {}", path.display(), remedy(path))),
        why => unreadable(path, why),
    })
}

/// Says what a file is that has no result in it, and what to do.
fn unreadable(path: &Path, why: Unreadable) -> Failed {
    if matches!(why, Unreadable::NotHeld) {
        let remedy = "Let a search hold the rate that it finds (--hold says for how long), or allow more (--limit-p99, --limit-errors).";
        return Failed::Mistyped(format!("{} is not a result: {why}\n  {remedy}", path.display()));
    }
    let words = format!("{} is not a result of seawall bench (--output, or --format json)", path.display());
    Failed::Undone(anyhow::Error::new(why).context(words))
}

fn read(path: &Path) -> anyhow::Result<String> {
    let unreadable = || format!("{} cannot be read", path.display());
    if fs::metadata(path).with_context(unreadable)?.len() > BYTES_MAX {
        bail!("{} is larger than any result", path.display());
    }
    fs::read_to_string(path).with_context(unreadable)
}
