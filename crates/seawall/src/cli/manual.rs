//! The manual page, `seawall(1)`, made of the same definition as `--help`.
//!
//! It is written by `seawall manual` when a package is made, so that no copy can grow old. The format is the `man` macros of roff.

use std::{fmt::Write as _, process::ExitCode};

use clap::{Arg, Args, Command};

use super::{Run, definition, output::say, serve::Inherited};

/// Write the manual page, made of these help texts; for packages
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(hide = true)]
pub(crate) struct Manual {}

impl Run for Manual {
    const NAME: &'static str = "manual";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        say(&page())?;
        Ok(ExitCode::SUCCESS)
    }
}

const DESCRIPTION: &str = "\
Seawall stands in front of a site: a server such as Ghost or WordPress, a folder of finished files, or a folder of Markdown that it turns into a blog \
itself. It stores responses and answers from what is stored, by the rules of RFC 9111.";

/// The files that no help text names, with their meaning.
const FILES: [(&str, &str); 6] = [
    ("./seawall.toml", "The configuration, if there is neither --config nor SOURCE."),
    ("/etc/seawall/seawall.toml", "The configuration of the system's service."),
    ("~/.cache/seawall, /var/cache/seawall", "Stored responses, of a user and of the system's service."),
    ("~/.local/state/seawall/acme, /var/lib/seawall/acme", "Certificates and their keys, and the account with the authority."),
    ("~/.local/state/seawall/admin-token, /var/lib/seawall/admin-token", "The secret of the admin API."),
    ("/usr/share/doc/seawall/doc/README.md", "The other pages: every key of the configuration, metrics, the access log."),
];

const SIGNALS: [(&str, &str); 2] = [
    ("SIGHUP", "Reads the configuration again, without losing a connection, and opens the access log anew."),
    ("SIGTERM, SIGINT", "Ends the process when the requests under way have ended, at the latest after shutdown_timeout."),
];

const EXIT: [(&str, &str); 6] = [
    ("0", "It was done."),
    ("1", "It could not be done; the reason is on standard error."),
    ("2", "It was mistyped."),
    ("3", "seawall purge: it is done here, and not known to hold on every machine of the cluster."),
    ("3", "seawall bench: a bound of --fail-if was exceeded."),
    ("4", "seawall bench: --leak-check found a leak."),
];

/// Writes the whole page.
fn page() -> String {
    let mut seawall = definition();
    seawall.build();
    let commands: Vec<&Command> = seawall.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let mut page = Page(format!(".TH SEAWALL 1 \"\" \"Seawall {}\" \"User commands\"\n", env!("CARGO_PKG_VERSION")));
    page.section("Name");
    page.text(&format!("seawall - {}", about(&seawall)));
    page.section("Synopsis");
    for command in &commands {
        page.line(&usage(command));
    }
    page.section("Description");
    page.text(DESCRIPTION);
    for command in commands {
        page.command(command);
    }
    page.section("Files");
    page.list(&FILES);
    page.section("Signals");
    page.list(&SIGNALS);
    page.section("Exit status");
    page.list(&EXIT);
    page.0
}

struct Page(String);

impl Page {
    fn section(&mut self, title: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, ".SH {}", escaped(&title.to_uppercase()));
    }

    /// Writes a paragraph that is filled.
    fn text(&mut self, text: &str) {
        let _ = writeln!(self.0, "{}", escaped(text));
    }

    /// Writes a line of its own, in bold.
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.0, "\\fB{}\\fR\n.br", escaped(text));
    }

    fn list(&mut self, entries: &[(&str, &str)]) {
        for (name, meaning) in entries {
            self.entry(&format!("\\fI{}\\fR", escaped(name)), meaning);
        }
    }

    /// Writes an entry of a list. Its `name` is roff already.
    fn entry(&mut self, name: &str, meaning: &str) {
        let _ = writeln!(self.0, ".TP\n{name}\n{}", escaped(meaning));
    }

    fn command(&mut self, command: &Command) {
        self.section(command.get_bin_name().unwrap_or_default());
        self.text(&format!("{}.", about(command).trim_end_matches('.')));
        self.0 += ".PP\n";
        self.line(&usage(command));
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            self.entry(&name(arg), &arg.get_help().map(ToString::to_string).unwrap_or_default());
        }
        if let Some(help) = command.get_after_help() {
            self.help(&help.to_string());
        }
        for further in command.get_subcommands().filter(|command| command.get_name() != "help") {
            self.command(further);
        }
    }

    /// Writes what stands below the flags. Paragraphs with indented lines stay as they are; the others are filled.
    fn help(&mut self, help: &str) {
        for paragraph in help.split("\n\n") {
            if paragraph.lines().any(|line| line.starts_with(' ')) {
                let lines: Vec<String> = paragraph.lines().map(escaped).collect();
                let _ = writeln!(self.0, ".PP\n.nf\n{}\n.fi", lines.join("\n"));
            } else {
                let _ = writeln!(self.0, ".PP\n{}", escaped(paragraph));
            }
        }
    }
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn usage(command: &Command) -> String {
    command.clone().render_usage().to_string().trim_start_matches("Usage:").trim().lines().map(str::trim).collect::<Vec<_>>().join(" | ")
}

/// Writes `-H, --field 'FIELD: VALUE'`, with the names in bold and the value in italics.
fn name(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).map(|name| format!("\\fB{}\\fR", escaped(&name))).collect();
    let takes = arg.get_action().takes_values().then(|| arg.get_value_names()).flatten().unwrap_or_default();
    let value = takes.iter().map(|value| format!("\\fI{}\\fR", escaped(value))).collect::<Vec<_>>().join(" ");
    [names.join(", "), value].join(" ").trim().to_owned()
}

/// Writes a line of text as roff takes it: a backslash begins an escape, a dot or a quotation mark at the beginning a request, and `-` alone would
/// become a hyphen that cannot be copied.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &Command, page: &str) {
        for command in command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
            let name = command.get_bin_name().expect("built").to_uppercase();
            let (_, section) = page.split_once(&format!(".SH {}\n", escaped(&name))).unwrap_or_else(|| panic!("no {name}"));
            let section = section.split(".SH ").next().expect("a section");
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let entry = format!(".TP\n{}\n", super::name(arg));
                let (_, help) = section.split_once(&entry).unwrap_or_else(|| panic!("{name} has no {entry}"));
                assert!(help.lines().next().is_some_and(|line| line.len() > 5 && !line.starts_with('.')), "{entry} has no text");
            }
            check(command, page);
        }
    }

    #[test]
    fn the_manual_page_has_every_command_and_every_flag() {
        let mut seawall = definition();
        seawall.build();
        let page = page();
        check(&seawall, &page);
        for text in [".TP\n\\fB\\-\\-tls\\-listen\\fR \\fIADDR\\fR\n", "SEAWALL_HTTP3", ".SH SEAWALL CERTIFICATES REVOKE", "SIGHUP"] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("seawall manual"), "what only packages call");
    }

    /// A line that begins with a dot is a request: one that roff does not know would swallow the line.
    #[test]
    fn no_text_is_taken_for_a_request() {
        for line in page().lines().filter(|line| line.starts_with(['.', '\''])) {
            let request = line.split(' ').next().expect("a word");
            assert!([".TH", ".SH", ".TP", ".PP", ".nf", ".fi", ".br"].contains(&request), "{line}");
        }
        assert_eq!(escaped(".hidden 'a\\b' --c"), "\\&.hidden 'a\\eb' \\-\\-c");
    }
}
