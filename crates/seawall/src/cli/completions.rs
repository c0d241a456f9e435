//! `seawall completions`.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Args;
use clap_complete::Shell;

use super::{Run, definition, serve::Inherited};

const EXAMPLES: &str = "\
Examples:
  seawall completions bash > ~/.local/share/bash-completion/completions/seawall
  seawall completions zsh > ~/.zfunc/_seawall
  seawall completions fish > ~/.config/fish/completions/seawall.fish";

/// Print a script with which a shell completes commands and flags
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

impl Run for Completions {
    const NAME: &'static str = "completions";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut definition(), "seawall", &mut script);
        io::stdout().lock().write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
