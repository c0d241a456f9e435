//! `seawall reload`.

use std::process::ExitCode;

use clap::Args;
use operator::reload;

use super::{Run, access::Access, output::say, serve::Inherited};

const EXAMPLES: &str = "\
Examples:
  seawall reload
      After an edit of seawall.toml. No connection is dropped. Errors are shown with their lines, and everything stays as it was.

It does the same as SIGHUP, and shows the result. Exit code 0: done; 1: refused.";

/// Make a running Seawall read its configuration again
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Reload {
    /// The running Seawall.
    #[command(flatten)]
    access: Access,
}

impl Run for Reload {
    const NAME: &'static str = "reload";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        say(&reload::run(self.access.client()?)?)?;
        Ok(ExitCode::SUCCESS)
    }
}
