//! `seawall import`: a blog for Seawall, made of what another engine has exported.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};
use clap::Args;
use import::Engine;

use super::{Run, output::confirm, serve::Inherited};

const EXAMPLES: &str = "\
Examples:
  seawall import my.ghost.2026-03-01.json my-blog --content /var/www/ghost/content
      A Ghost's export (Settings > Import/Export > Export), and its pictures.

  seawall import wordpress.xml my-blog --content /srv/wordpress/wp-content/uploads
      A WordPress's export (Tools > Export > All content), and its uploads. Several files: name them all before the folder.

  seawall import ~/jekyll-site my-blog
  seawall import ~/hugo-site my-blog
      The source of a Jekyll or Hugo site.

  seawall check my-blog && seawall serve my-blog
      Look at it then.

Texts keep their addresses, or the old ones redirect.
Drafts stay drafts. What was for members alone, behind a password, expired or unlisted becomes a draft.
Comments are kept in DIR/.import, which is never published. The whole account is there, too.
Nothing is fetched from a network.
Exit code 0: it was written; 1: it was not, or not wholly.";

/// Move a blog in: from Ghost, WordPress, Jekyll or Hugo
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_help = EXAMPLES, override_usage = "seawall import [OPTIONS] <EXPORT>... <DIR>")]
pub(crate) struct Import {
    /// What the other engine has exported, and last the folder to write to, which must be empty or not exist yet
    #[arg(value_names = ["EXPORT", "DIR"], num_args = 2.., required = true)]
    paths: Vec<PathBuf>,

    /// The engine, if it is not recognised: ghost, wordpress, jekyll or hugo
    #[arg(long, value_name = "ENGINE", value_parser = |text: &str| text.parse::<Engine>())]
    from: Option<Engine>,

    /// The folder with the pictures: Ghost's content, WordPress's wp-content/uploads
    #[arg(long, value_name = "FOLDER")]
    content: Option<PathBuf>,

    /// Publish for everybody what only members of a Ghost could read
    #[arg(long)]
    include_paid: bool,

    /// Write what became of every item to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Run for Import {
    const NAME: &'static str = "import";

    #[expect(clippy::disallowed_methods, reason = "what has expired depends on the machine's time")]
    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let Some((folder, exports)) = self.paths.split_last() else { bail!("nothing to import was named") };
        let now = jiff::Timestamp::now();
        let options = import::Options { now, from: self.from, content: self.content, include_paid: self.include_paid };
        let report = import::import(exports, folder, &options)?;
        if let Some(file) = &self.report {
            let json = serde_json::to_vec_pretty(&report).context("the report cannot be written as JSON")?;
            fs::write(file, json).with_context(|| format!("cannot write {}; the blog was written", file.display()))?;
        }
        let folder = folder.display();
        confirm(&format!(
            "{}\nWrote a blog to {folder}. The whole account is in {folder}/.import/report.json.\n\n  \
             seawall check {folder}    look for what is wrong\n  seawall serve {folder}    serve it: http://127.0.0.1:8080\n",
            report.text()
        ));
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cli::typed;

    /// Where a terminal breaks long lines, too, a sentence over two lines is in shreds.
    #[test]
    fn no_sentence_of_the_help_goes_on_in_the_next_line() {
        for line in EXAMPLES.lines().filter(|line| !line.is_empty() && !line.starts_with("  seawall ")) {
            assert!(line.ends_with(['.', ':']), "{line}");
        }
    }

    #[test]
    fn the_last_path_is_the_folder() {
        let import: Import = typed("seawall import a.xml b.xml blog --from wordpress --include-paid").expect("import");
        assert_eq!(import.paths.last().map(PathBuf::as_path), Some(Path::new("blog")));
        assert_eq!((import.paths.len(), import.from, import.include_paid), (3, Some(Engine::WordPress), true));
        for wrong in ["a.xml", "a.xml blog --from drupal", ""] {
            assert!(typed::<Import>(&format!("seawall import {wrong}")).is_err(), "{wrong}");
        }
    }
}
