//! `seawall health`: containers and monitors look at its exit code.

use std::{process::ExitCode, time::Duration};

use clap::Args;

use super::{Run, access::Access, output::confirm, serve::Inherited};

/// A server that takes longer to answer is not well. Docker and systemd wait longer than this.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Check that a running Seawall serves; for containers and monitors
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Health {
    /// The running Seawall.
    #[command(flatten)]
    access: Access,
}

impl Run for Health {
    const NAME: &'static str = "health";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let ready = self.access.client()?.within(TIMEOUT).is_ready()?;
        confirm(if ready { "ok\n" } else { "draining\n" });
        Ok(if ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
