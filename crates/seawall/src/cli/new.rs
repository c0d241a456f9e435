//! `seawall new`.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};
use clap::Args;

use super::{Run, output::confirm, serve::Taken};

/// Write an example blog to start from
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(crate) struct New {
    /// The folder to write to; it must be empty or not exist yet
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Run for New {
    const NAME: &'static str = "new";

    fn run(self, _: Option<Taken>) -> anyhow::Result<ExitCode> {
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
        let folder = folder.display();
        confirm(&format!(
            "Wrote a blog to {folder}.\n\n  seawall serve {folder}    serve it: http://127.0.0.1:8080\n\nEdit a post while it runs: the next request shows it.\n"
        ));
        Ok(ExitCode::SUCCESS)
    }
}
