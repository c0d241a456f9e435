//! `seawall status`.

use std::{io, process::ExitCode};

use clap::Args;
use operator::{foreign::visible_json, status, terminal::has_colour};

use super::{Run, access::Access, output::say, serve::Inherited};

const EXAMPLES: &str = "\
Examples:
  seawall status
      Version, sites, whether the servers behind them are up, the cache and its hit ratio, certificates.

  seawall status --json
      The same and all metrics, for scripts.";

/// Show what runs: sites, the servers behind them, the cache, certificates
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Status {
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,

    /// The running Seawall.
    #[command(flatten)]
    access: Access,
}

impl Run for Status {
    const NAME: &'static str = "status";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let client = self.access.client()?;
        if self.json {
            say(&format!("{}\n", visible_json(&serde_json::to_string_pretty(&status::json(&client)?)?)))?;
        } else {
            say(&status::text(&client, has_colour(&io::stdout()))?)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
