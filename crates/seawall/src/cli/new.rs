//! `seawall new`.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};
use clap::Args;

use super::{Run, output::confirm, serve::Inherited};

/// Write an example blog to start from
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(crate) struct New {
    /// The folder to write to; it must be empty or not exist yet
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Run for New {
    const NAME: &'static str = "new";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let folder = &self.folder;
        if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            bail!("{} is not empty\n  Nothing was written. Name a folder that does not exist yet.", folder.display());
        }
        for (name, content) in blog::starter() {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
            }
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        confirm(&next_steps(&folder.display().to_string()));
        Ok(ExitCode::SUCCESS)
    }
}

/// Says what was written, and what to type next. Each command works as it is printed.
fn next_steps(folder: &str) -> String {
    let steps = [
        (format!("seawall serve {folder}"), "Read it on http://127.0.0.1:8080. What you save shows at once."),
        (format!("seawall serve {folder} --drafts"), "The same with drafts, and with posts whose date has not come."),
        (format!("seawall check {folder}"), "Everything that is wrong, with file and line."),
        (format!("seawall build {folder} public --base-url https://blog.example.org"), "The whole site as a folder, for any server."),
    ];
    let steps: String = steps.iter().map(|(command, what)| format!("  {command}\n      {what}\n\n")).collect();
    format!("Wrote a blog to {folder}.\n\n{steps}Its first post says how to write: {folder}/posts/2026-01-10-hello.md\n")
}
