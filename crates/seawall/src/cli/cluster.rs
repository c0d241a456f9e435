//! `seawall cluster`.

use std::{io, process::ExitCode};

use clap::Args;
use operator::{cluster, terminal::has_colour};

use super::{Run, access::Access, output::say, serve::Inherited};

const EXAMPLES: &str = "\
Examples:
  seawall cluster
      The machines, their versions, whether each has a lease, and how far it is behind.

  seawall cluster --json
      The same for scripts.";

/// Show the machines of the cluster, and whether purges hold on each
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cluster {
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,

    /// The running Seawall.
    #[command(flatten)]
    access: Access,
}

impl Run for Cluster {
    const NAME: &'static str = "cluster";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let client = self.access.client()?;
        if self.json {
            let state: serde_json::Value = client.get("/cluster")?;
            say(&format!("{}\n", serde_json::to_string_pretty(&state)?))?;
        } else {
            say(&cluster::text(&client, has_colour(&io::stdout()))?)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;

    #[test]
    fn the_cluster_is_shown_as_text_or_as_json() {
        assert_eq!(typed::<Cluster>("seawall cluster").expect("text"), Cluster::default());
        assert!(typed::<Cluster>("seawall cluster --json --admin 127.0.0.1:1").expect("JSON").json);
    }
}
