//! `seawall bench`: the command line of the load tester. The crate `load` does what is said here.
//!
//! `flags` is what can be typed, `together` what contradicts itself, `wanted` what it means.

mod compare;
mod connect;
mod direct;
mod flags;
mod go;
mod help;
mod interrupt;
mod kept;
mod read;
mod shown;
mod together;
mod wanted;
mod what;
mod written;

use std::process::ExitCode;

use clap::Args;

use self::{
    flags::{Action, Flags},
    go::Failed,
};
use super::{Run, output::complain, serve::Inherited};

/// The exit code of what was mistyped.
const MISTYPED: u8 = 2;

/// Load a site as a crowd does, and say what it can take
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(
    after_help = help::EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_value_name = "ACTION",
    subcommand_help_heading = "With results that are there already"
)]
pub(crate) struct Bench {
    /// The flags of a run.
    #[command(flatten)]
    flags: Flags,

    /// What to do with results.
    #[command(subcommand)]
    action: Option<Action>,
}

impl Run for Bench {
    const NAME: &'static str = "bench";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let done = match &self.action {
            Some(action) => kept::run(action),
            None if self.flags.compare => compare::run(&self.flags),
            None if self.flags.find_limit => go::limit(&self.flags),
            None => go::once(&self.flags),
        };
        match done {
            Ok(code) => Ok(code),
            Err(Failed::Mistyped(what)) => {
                complain(&anyhow::Error::msg(what));
                Ok(ExitCode::from(MISTYPED))
            }
            Err(Failed::Undone(why)) => Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;

    /// The flags that a line means.
    pub(super) fn flags(line: impl AsRef<str>) -> Flags {
        typed::<Bench>(line.as_ref()).unwrap_or_else(|error| panic!("{}: {error}", line.as_ref())).flags
    }

    /// A time with a sign is not a flag: it is told what is wrong with it, and no tip leads elsewhere.
    #[test]
    fn a_value_below_zero_is_refused_as_a_value() {
        for (typed_in, said) in [
            ("-d -3s", "longer than 0"),
            ("--timeout -500ms", "longer than 0"),
            ("--warm-up=-1m", "longer than 0"),
            ("-c -5", "a whole number"),
            ("-n -5k", "a whole number"),
            ("--find-limit --limit-errors -1%", "a share from 0 to 1"),
        ] {
            let error = typed::<Bench>(&format!("seawall bench http://127.0.0.1/ {typed_in}")).expect_err(typed_in).to_string();
            assert!(error.contains(said) && !error.contains("tip:"), "{typed_in}: {error}");
        }
    }

    #[test]
    fn results_are_compared_and_merged() {
        let bench: Bench = typed("seawall bench compare old.json new.json --fail-if p99>200ms").expect("compare");
        assert!(matches!(bench.action, Some(Action::Compare { fail_if, .. }) if fail_if.len() == 1));
        let bench: Bench = typed("seawall bench merge a.json b.json -o all.json").expect("merge");
        assert!(matches!(bench.action, Some(Action::Merge { files, .. }) if files.len() == 2));
        assert!(typed::<Bench>("seawall bench merge a.json").is_err());
        let bench: Bench = typed("seawall bench compare proof.json").expect("what --compare has written");
        assert!(matches!(bench.action, Some(Action::Compare { new: None, .. })));
    }
}
