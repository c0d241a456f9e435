//! `seawall theme`.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use super::{Run, output::confirm, serve::Inherited};

const EXAMPLES: &str = "\
Examples:
  seawall theme export my-blog
      Write every template and the style into my-blog/theme. Delete those that you do not change.

  seawall theme export my-blog --only post.html --look magazine
      One template of another look.";

/// Write the look of a blog as files, to change it
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Theme {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone, Debug, PartialEq, Eq)]
enum Command {
    /// Write templates and style of a look into the folder `theme` of a blog
    Export(Export),
}

/// Write templates and style of a look into the folder `theme` of a blog
#[derive(Args, Clone, Debug, PartialEq, Eq)]
struct Export {
    /// The folder of the blog
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Write this file alone, such as `post.html`; can be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// The look to write: `seawall`, `plain`, `magazine` or `terminal`
    #[arg(long, value_name = "LOOK", default_value = "seawall")]
    look: String,
}

impl Run for Theme {
    const NAME: &'static str = "theme";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let Command::Export(export) = self.command;
        export.run()
    }
}

impl Export {
    fn run(self) -> anyhow::Result<ExitCode> {
        let Self { folder, only, look } = self;
        if !folder.is_dir() {
            bail!("{} is not a folder\n  Name the folder of a blog; `seawall new DIR` writes one.", folder.display());
        }
        let Some(files) = blog::theme_files(&look) else {
            bail!("there is no look {look:?}\n  The looks are {}.", blog::looks().collect::<Vec<_>>().join(", "));
        };
        for name in &only {
            if !files.iter().any(|(other, _)| other == name) {
                let names: Vec<_> = files.iter().map(|(name, _)| *name).collect();
                bail!("the look has no file {name:?}\n  Its files are {}.", names.join(", "));
            }
        }
        let theme = folder.join("theme");
        fs::create_dir_all(&theme).with_context(|| format!("cannot make {}", theme.display()))?;
        let wanted = files.into_iter().filter(|(name, _)| only.is_empty() || only.iter().any(|other| other == name));
        let (mut written, mut kept) = (Vec::new(), Vec::new());
        for (name, text) in wanted {
            // What its author has changed is never overwritten.
            if write_new(&theme.join(name), &text)? { written.push(name) } else { kept.push(name) }
        }
        let mut told = format!("Wrote {} to {}.\n", named(&written), theme.display());
        if !kept.is_empty() {
            told += &format!("Left as they are, because they are there already: {}.\n", kept.join(", "));
        }
        told +=
            "\nKeep the files that you change and delete the others, so that they are renewed with Seawall. A saved file shows at once.\n";
        confirm(&told);
        Ok(ExitCode::SUCCESS)
    }
}

fn named(files: &[&str]) -> String {
    match files {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        many => format!("{} files", many.len()),
    }
}

/// Writes a file that is not there yet. Returns whether it did.
fn write_new(path: &Path, text: &str) -> anyhow::Result<bool> {
    let failed = || format!("cannot write {}", path.display());
    match fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).with_context(failed).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).with_context(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;

    fn export(line: &str) -> anyhow::Result<ExitCode> {
        typed::<Theme>(line)?.run(None)
    }

    #[test]
    fn a_look_is_written_out_and_nothing_is_overwritten() {
        let blog = tempfile::tempdir().expect("a folder");
        let (root, theme) = (blog.path().display(), blog.path().join("theme"));
        export(&format!("seawall theme export {root} --only base.html")).expect("written");
        assert_eq!(fs::read_dir(&theme).expect("a folder").count(), 1);
        fs::write(theme.join("base.html"), "mine").expect("written");
        export(&format!("seawall theme export {root} --look magazine")).expect("written");
        assert_eq!(fs::read_to_string(theme.join("base.html")).expect("there"), "mine");
        assert!(fs::read_to_string(theme.join("style.css")).expect("there").contains("magazine"));
    }

    #[test]
    fn what_cannot_be_written_is_told_with_what_can() {
        let blog = tempfile::tempdir().expect("a folder");
        let root = blog.path().display();
        let message = |line: &str| export(line).expect_err(line).to_string();
        assert!(
            message(&format!("seawall theme export {root} --look shiny")).contains("The looks are seawall, plain, magazine, terminal.")
        );
        assert!(message(&format!("seawall theme export {root} --only psot.html")).contains("post.html"));
        assert!(message(&format!("seawall theme export {root}/gone")).contains("is not a folder"));
        assert!(!blog.path().join("theme").exists(), "nothing was written");
    }
}
