//! `seawall build`: a blog as a folder of files, for a server that serves folders.

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use blog::{Blog, BlogOptions, ExportError, Problem, Severity};
use clap::Args;
use tracing::Level;

use super::{Run, env, output::confirm, serve::Inherited};
use crate::{
    config::{ConfigErrors, cache_dir, error::Place, words::BaseUrl},
    pictures::workshop_of_command,
    stderr,
};

const EXAMPLES: &str = "\
Examples:
  seawall build my-blog public --base-url https://blog.example.org
      Write the whole site into the folder public: pages, feeds, pictures, _redirects and _headers.

  seawall serve public
      Look at it. Any other server of files shows the same.

Run it again after a change: files that are the same stay as they are, and what is gone is removed. Files that it has not written are never touched.";

/// Write a blog as a folder of finished files, for any server
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Build {
    /// The folder of the blog
    #[arg(value_name = "SOURCE")]
    source: PathBuf,

    /// The folder to write to: a new one, an empty one, or one that an earlier build wrote
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The public address of the site, for feeds and the sitemap [default: base_url in the folder's blog.toml]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// Also write drafts and the posts whose time has not come, marked as what they are
    #[arg(long)]
    drafts: bool,
}

impl Run for Build {
    const NAME: &'static str = "build";

    #[expect(clippy::disallowed_methods, reason = "which posts are to come depends on the machine's time")]
    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let options = BlogOptions { base_url: self.base_url()?, drafts: self.drafts, ..BlogOptions::default() };
        let source = &self.source;
        if !source.is_dir() {
            bail!("{} is not a folder\n  Name the folder of a blog; `seawall new DIR` writes one.", source.display());
        }
        // Before the pictures are made, which may take minutes.
        blog::check_export(source, &self.folder).map_err(not_written)?;
        let now = std::time::SystemTime::now().into();
        let problems = match Blog::open_in(source, options, &workshop_of_command(cache_dir(env)), now) {
            Ok(blog) => {
                let base = self.base_of(&blog)?;
                if blog.make_pictures() > 0 {
                    // Pages show what the pictures look like before they are there.
                    blog.rebuild(now)?;
                }
                let problems = blog.problems();
                // The site is whole without a picture that must not be published.
                if problems.iter().all(|problem| problem.is_warning() || problem.is_about_a_picture()) {
                    self.tell(&problems);
                    return self.write(&blog, &base).map(|()| ExitCode::SUCCESS);
                }
                problems
            }
            Err(error) => error.problems,
        };
        self.tell(&problems);
        bail!("{} has mistakes, so nothing was written: a text with a mistake would be missing", source.display());
    }
}

impl Build {
    fn base_url(&self) -> anyhow::Result<Option<String>> {
        let Some(text) = &self.base_url else { return Ok(None) };
        match text.parse::<BaseUrl>() {
            Ok(BaseUrl(url)) => Ok(Some(url)),
            Err(mistake) => Err(ConfigErrors(vec![mistake.at(Place::Flag("--base-url", text.clone()))]).into()),
        }
    }

    /// Returns the public address of the site.
    fn base_of(&self, blog: &Blog) -> anyhow::Result<String> {
        let Some(base) = blog.site().base_url().map(str::to_owned) else {
            bail!(
                "feeds and the sitemap need the public address of the site\n  Add --base-url https://blog.example.org, or base_url to {}.",
                self.source.join("blog.toml").display()
            );
        };
        Ok(base)
    }

    fn write(&self, blog: &Blog, base: &str) -> anyhow::Result<()> {
        let folder = self.folder.display();
        let blog::Exported { files, written, removed } = blog.export(&self.folder, base).map_err(not_written)?;
        let removed = if removed > 0 { format!(", {removed} removed") } else { String::new() };
        confirm(&format!("Wrote {base} to {folder}: {files} files, {written} new or changed{removed}.\n"));
        Ok(())
    }

    fn tell(&self, problems: &[Problem]) {
        for problem in problems {
            let (level, word) = match problem.severity {
                Severity::Error => (Level::ERROR, "error"),
                Severity::Warning => (Level::WARN, "warning"),
            };
            stderr::tell_all(level, &format!("{word}: {}/{problem}\n", self.source.display()));
        }
    }
}

fn not_written(error: ExportError) -> anyhow::Error {
    let error = match error {
        ExportError::File { path, source } => anyhow::Error::new(source).context(format!("cannot write {}", path.display())),
        other => other.into(),
    };
    error.context("the site was not written")
}
