//! The command line: a file for each command, with what can be typed, the help for it, and what is then done.
//!
//! A new command is a file here and a line in [`GROUPS`]: help, manual page and completions take it from there. Values of flags stay text;
//! [`config`](crate::config) reads them with the same words, and the same errors, as the file and the environment.

mod access;
mod alerts;
mod bench;
mod build;
mod certificates;
mod check;
mod cluster;
mod completions;
mod explain;
mod health;
mod help;
mod import;
mod log;
mod manual;
mod mistyped;
mod new;
mod output;
mod purge;
mod reload;
mod serve;
mod status;
mod theme;
mod top;
mod tune;
mod warm;

use std::{ffi::OsString, panic, process::ExitCode};

use clap::{ArgMatches, Args};

pub(crate) use self::check::route_line;
pub use self::{access::Access, serve::Serve};
#[cfg(test)]
pub(crate) use self::{check::look, purge::Purge};
use self::{output::complain, serve::Inherited};
use crate::stderr;

/// Makes a command of the flags that can be typed after its name. The first line of their type's doc is what the list of commands says about it.
pub(crate) trait Run: Args {
    /// The word to type.
    const NAME: &'static str;

    /// Does what was typed. `taken` is there if the process was started to serve.
    ///
    /// # Errors
    /// When it could not be done.
    fn run(self, taken: Option<Inherited>) -> anyhow::Result<ExitCode>;
}

/// Holds a command, whatever its type.
struct Entry {
    name: &'static str,
    define: fn(clap::Command) -> clap::Command,
    run: fn(&ArgMatches, Option<Inherited>) -> anyhow::Result<ExitCode>,
}

const fn entry<C: Run>() -> Entry {
    Entry { name: C::NAME, define: C::augment_args, run: |matches, taken| C::from_arg_matches(matches)?.run(taken) }
}

impl Entry {
    fn definition(&self) -> clap::Command {
        (self.define)(clap::Command::new(self.name))
    }
}

/// Every command, in groups, in the order in which they are needed.
const GROUPS: [(&str, &[Entry]); 6] = [
    (
        "Begin",
        &[
            entry::<serve::Serve>(),
            entry::<check::Check>(),
            entry::<new::New>(),
            entry::<import::Import>(),
            entry::<build::Build>(),
            entry::<theme::Theme>(),
            entry::<tune::Tune>(),
        ],
    ),
    (
        "Manage a running Seawall",
        &[
            entry::<status::Status>(),
            entry::<alerts::Alerts>(),
            entry::<reload::Reload>(),
            entry::<certificates::Certificates>(),
            entry::<cluster::Cluster>(),
            entry::<health::Health>(),
        ],
    ),
    ("See", &[entry::<top::Top>(), entry::<log::Log>()]),
    ("Measure", &[entry::<bench::Bench>()]),
    ("Manage the cache", &[entry::<explain::Explain>(), entry::<purge::Purge>(), entry::<warm::Warm>()]),
    ("More", &[entry::<help::Help>(), entry::<completions::Completions>(), entry::<manual::Manual>()]),
];

fn entries() -> impl Iterator<Item = &'static Entry> {
    GROUPS.iter().flat_map(|(_, entries)| entries.iter())
}

const EXAMPLES: &str = "\
Examples:
  seawall serve http://127.0.0.1:2368    in front of Ghost, WordPress, or any other server
  seawall serve /srv/wordpress           a folder with WordPress: Seawall runs its PHP by php-fpm
  seawall serve ./public                 a folder with an index.html
  seawall serve ./public --domain blog.example.org
                                         for everybody, with an automatic certificate
  seawall new my-blog                    write an example blog ...
  seawall serve my-blog                  ... and serve it: http://127.0.0.1:8080

`seawall help <COMMAND>` shows what can be changed, with examples.
";

/// Writes the help of `seawall` alone: every command in its group.
fn top_help() -> String {
    let mut help = "{about}\n\n{usage-heading} {usage}\n\n".to_owned();
    for (title, entries) in GROUPS {
        help += &format!("{title}:\n");
        for command in entries.iter().map(Entry::definition).filter(|command| !command.is_hide_set()) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            help += &format!("  {:<12}  {about}\n", command.get_name());
        }
        help.push('\n');
    }
    help + "Options:\n{options}\n\n" + EXAMPLES
}

/// Defines the whole command line.
fn definition() -> clap::Command {
    clap::Command::new("seawall")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Keeps your site fast, correct, and up when the crowd comes")
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .help_template(top_help())
        .subcommands(entries().map(Entry::definition))
}

/// Reads a command line.
fn read(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<(&'static Entry, ArgMatches), clap::Error> {
    let mut matches = definition().try_get_matches_from(arguments).map_err(mistyped::with_a_guess)?;
    let (name, matches) = matches.remove_subcommand().expect("a command is required");
    let entry = entries().find(|entry| entry.name == name).expect("it was defined by an entry");
    Ok((entry, matches))
}

/// Runs what was typed. Exit code 0: done; 1: it could not be done, and the reason is on standard error; 2: it was mistyped. Further ones are of
/// single commands.
#[must_use]
pub fn run() -> ExitCode {
    // Before anything else: until then a signal would end the process. Other commands are ended by signals, as is usual.
    let taken = std::env::args_os().nth(1).is_some_and(|command| command == Serve::NAME).then(Inherited::take);
    let (entry, matches) = read(std::env::args_os()).unwrap_or_else(|mistake| mistake.exit());
    stderr::start_diagnostics();
    panic::set_hook(Box::new(stderr::panicked));
    let code = (entry.run)(&matches, taken).unwrap_or_else(|error| {
        complain(&error);
        ExitCode::FAILURE
    });
    stderr::settle();
    code
}

/// Reads a variable of the environment. One that is not text is none.
pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Reads the command that a line means. For tests.
#[cfg(test)]
pub(crate) fn typed<C: Run>(line: &str) -> Result<C, clap::Error> {
    typed_words(line.split_whitespace())
}

#[cfg(test)]
fn typed_words<'a, C: Run>(words: impl IntoIterator<Item = &'a str>) -> Result<C, clap::Error> {
    let (entry, matches) = read(words)?;
    assert_eq!(entry.name, C::NAME);
    C::from_arg_matches(&matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
        for command in definition().get_subcommands() {
            assert!(command.get_about().is_some(), "{} says what it is for", command.get_name());
        }
    }

    #[test]
    fn the_help_lists_every_command_once() {
        let help = definition().render_help().to_string();
        for command in definition().get_subcommands().filter(|command| !command.is_hide_set()) {
            let lines = help.lines().filter(|line| line.starts_with(&format!("  {} ", command.get_name())));
            assert_eq!(lines.count(), 1, "{}: {help}", command.get_name());
        }
        assert!(!help.contains("manual"), "it is for packages alone");
    }
}
