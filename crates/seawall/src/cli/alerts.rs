//! `seawall alerts`, and `seawall alerts test`.

use std::{io, process::ExitCode};

use clap::{Args, Subcommand};
use operator::{alerts, terminal::has_colour};

use super::{Run, access::Access, output::say, serve::Inherited};

const EXAMPLES: &str = "\
Examples:
  seawall alerts
      What is wrong now, what was, and who is told of it.

  seawall alerts test
      Sends a test alert to the webhook and the command of [alerts], and then its end; says what came of both.";

/// List what is wrong, or test how you are told
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Alerts {
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,

    /// The running Seawall.
    #[command(flatten)]
    access: Access,

    /// What to do.
    #[command(subcommand)]
    action: Option<AlertAction>,
}

/// What can be done with alerts.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum AlertAction {
    /// Send a test by the webhook and the command of [alerts], and say what came of it; the exit code is 1 if one of them failed
    Test {
        /// The running Seawall.
        #[command(flatten)]
        access: Access,
    },
}

impl Run for Alerts {
    const NAME: &'static str = "alerts";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let colour = has_colour(&io::stdout());
        match self.action {
            Some(AlertAction::Test { access }) => {
                let (said, arrived) = alerts::test(access.client()?, colour)?;
                say(&said)?;
                return Ok(if arrived { ExitCode::SUCCESS } else { ExitCode::FAILURE });
            }
            None if self.json => {
                let state: serde_json::Value = self.access.client()?.get("/alerts")?;
                say(&format!("{}\n", serde_json::to_string_pretty(&state)?))?;
            }
            None => say(&alerts::list(&self.access.client()?, colour)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;

    #[test]
    fn alerts_are_listed_unless_a_test_is_wanted() {
        let list: Alerts = typed("seawall alerts --json --admin 127.0.0.1:1").expect("a list");
        assert_eq!((list.json, list.access.admin.as_deref(), list.action), (true, Some("127.0.0.1:1"), None));
        let test: Alerts = typed("seawall alerts test --admin 127.0.0.1:1").expect("a test");
        let access = Access { admin: Some("127.0.0.1:1".to_owned()), ..Access::default() };
        assert_eq!(test.action, Some(AlertAction::Test { access }));
        assert!(typed::<Alerts>("seawall alerts tset").is_err());
    }
}
