//! `seawall help`.

use std::{io, process::ExitCode};

use anyhow::bail;
use clap::Args;
use operator::terminal::has_colour;

use super::{Run, definition, output::say, read, serve::Inherited};

/// Explain a command
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Help {
    /// The command, such as serve, or certificates revoke
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

impl Run for Help {
    const NAME: &'static str = "help";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let mut command = definition();
        command.build();
        let mut found = &mut command;
        for name in &self.command {
            if found.find_subcommand(name).is_none() {
                // With a guess at what was meant.
                if let Err(mistake) = read(["seawall"].into_iter().map(str::to_owned).chain(self.command.iter().cloned())) {
                    mistake.exit();
                }
                bail!("there is no command \"{}\"\n  `seawall help` lists them.", self.command.join(" "));
            }
            found = found.find_subcommand_mut(name).expect("it was found a moment ago");
        }
        // As `seawall` alone and `seawall COMMAND --help` have it.
        let text = if self.command.is_empty() { found.render_help() } else { found.render_long_help() };
        say(&if has_colour(&io::stdout()) { text.ansi().to_string() } else { text.to_string() })?;
        Ok(ExitCode::SUCCESS)
    }
}
