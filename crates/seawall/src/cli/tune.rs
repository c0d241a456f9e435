//! `seawall tune`.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::Args;
use operator::terminal::{Style, has_colour, styled};
use semantics::date::format_http_date;
use tune::{Advice, Changes, Facts, Outcome, Root, Seawall, Setting, in_words};

use super::{
    Run, env,
    output::say,
    serve::{Inherited, Serve},
};
use crate::config::{
    self,
    settings::{Settings, Source},
    units::ByteSize,
};

const EXAMPLES: &str = "\
Examples:
  seawall tune
      What to set for php-fpm, OPcache, MariaDB and Redis on this machine, and why.

  seawall tune --diff
      The same as differences to the files that are there.

  sudo seawall tune --write
      Write them. Each file is copied first, and if php-fpm or MariaDB refuses its new settings, all is put back.

  seawall tune --memory 2GiB --cores 2
      For another machine than this one.

Nothing is written without --write, and no service is restarted. Run it as root, and when php-fpm has served some pages: then it sees how large the database and the children of php-fpm are.";

/// The memory for stored pages if no configuration says how much.
const CACHE: u64 = 256 << 20;
/// The system's own configuration of Seawall.
const SYSTEM_CONFIG: &str = "/etc/seawall/seawall.toml";
/// The width of reasons.
const WIDTH: usize = 110;

/// Advise on settings for php-fpm, OPcache, MariaDB, and Redis on this machine
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Tune {
    /// The folder of a WordPress; can be given several times [default: those of the configuration, or where distributions put them]
    #[arg(long, value_name = "DIR")]
    site: Vec<PathBuf>,

    /// Show the differences to the files that are there
    #[arg(long, conflicts_with = "write")]
    diff: bool,

    /// Write the files, after a copy of each: FILE.seawall-DATE
    #[arg(long)]
    write: bool,

    /// The memory to plan for, such as 2GiB [default: that of this machine, or of its control group]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,

    /// The cores to plan for [default: those of this machine, or of its control group]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cores: Option<u16>,

    /// Seawall's configuration file [default: ./seawall.toml or /etc/seawall/seawall.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The folder below which the machine is read; for tests
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    root: PathBuf,
}

fn memory(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(ByteSize(bytes)) if (tune::MIB * 64..1 << 50).contains(&bytes) => Ok(bytes),
        _ => Err("write a size such as 2GiB, 64MiB at least".to_owned()),
    }
}

impl Run for Tune {
    const NAME: &'static str = "tune";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let (seawall, mut sites) = self.seawall()?;
        if !self.site.is_empty() {
            sites.clone_from(&self.site);
        }
        let root = Root::at(&self.root);
        for site in &sites {
            if !root.path(site).is_dir() {
                bail!("{} is not a folder", site.display());
            }
        }
        let facts = tune::read(&root, seawall, &sites, (self.memory, self.cores.map(usize::from)));
        let advice = tune::advise(&facts);
        let changes = Changes::new(&root, &facts.stack, &advice).context("some settings cannot be compared with those that are there")?;
        if self.diff {
            say(&changes.diff())?;
        } else if self.write {
            say(&done(&changes.write(&stamp())?))?;
        } else {
            say(&report(&facts, &advice, has_colour(&io::stdout()) && io::stdout().is_terminal()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Tune {
    /// Returns what Seawall takes, and the folders that it serves with PHP.
    fn seawall(&self) -> anyhow::Result<(Seawall, Vec<PathBuf>)> {
        let usual = [Path::new("seawall.toml"), Path::new(SYSTEM_CONFIG)].into_iter().find(|path| path.is_file());
        let Some(file) = self.config.as_deref().or(usual) else { return Ok((Seawall { cache: CACHE, config: None }, Vec::new())) };
        let serve = Serve { config: Some(file.to_owned()), ..Serve::default() };
        let settings: Settings = config::load(&serve, env)?;
        let folders = settings.sites.iter().filter_map(|site| match &site.source {
            Source::Php(folder) => Some(folder.clone()),
            Source::Http(_) | Source::Files(_) | Source::Blog(_) => None,
        });
        Ok((Seawall { cache: settings.cache_memory, config: Some(file.to_owned()) }, folders.collect()))
    }
}

/// Returns the end of the names of copies: the present time, as `20261123-041500`.
fn stamp() -> String {
    let date = format_http_date(pipeline::Clock::system().now());
    let date = String::from_utf8_lossy(&date).into_owned();
    let words: Vec<&str> = date.split([' ', ':']).collect();
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    match words[..] {
        [_, day, month, year, hour, minute, second, ..] => {
            let month = months.iter().position(|name| *name == month).unwrap_or(0) + 1;
            format!("{year}{month:02}{day}-{hour}{minute}{second}")
        }
        _ => "before".to_owned(),
    }
}

/// Writes the whole advice: who gets which memory, and each setting with its reason, by file.
fn report(facts: &Facts, advice: &Advice, colour: bool) -> String {
    let bold = |text: &str| styled(text, Style::Bold, colour);
    let machine = &facts.machine;
    let mut text = format!(
        "{} {} ({}), {} ({})\n\n",
        bold("Machine:"),
        counted(machine.cores, "core"),
        machine.cores_from,
        in_words(machine.memory),
        machine.memory_from
    );
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{} {} of the {} that are handed out (75 %)", bold("Memory:"), in_words(advice.sum()), in_words(advice.budget));
    for share in &advice.shares {
        let _ = writeln!(text, "  {:<11}{:>9}  {}", share.name, in_words(share.bytes), wrapped(&share.why, 24));
    }
    let mut files: Vec<&Path> = Vec::new();
    for setting in &advice.settings {
        if !files.contains(&setting.place.file.as_path()) {
            files.push(&setting.place.file);
        }
    }
    for file in files {
        let _ = write!(text, "\n{}\n", bold(&file.display().to_string()));
        let mut section = None;
        for setting in advice.settings.iter().filter(|setting| setting.place.file == file) {
            if setting.place.section != section {
                section.clone_from(&setting.place.section);
                let _ = writeln!(text, "  [{}]", section.as_deref().unwrap_or_default());
            }
            let line = match setting.place.style {
                tune::Style::Redis => format!("{} {}", setting.key, setting.value),
                tune::Style::Php | tune::Style::MyCnf => format!("{} = {}", setting.key, setting.value),
            };
            let is_change = setting.is_change();
            let shown = styled(format!("{line:<42}"), if is_change { Style::Green } else { Style::Dim }, colour);
            let _ = writeln!(text, "  {shown} {}\n      {}", now(setting), wrapped(&setting.why, 6));
        }
    }
    if !advice.notes.is_empty() {
        let _ = write!(text, "\n{}\n", bold("Also"));
        for note in &advice.notes {
            let _ = writeln!(text, "  - {}", wrapped(note, 4));
        }
    }
    let changes = advice.settings.iter().filter(|setting| setting.is_change()).count();
    text += &match changes {
        0 if advice.settings.is_empty() => "\nThere is nothing here to give advice for.\n".to_owned(),
        0 => "\nAll of it is set already.\n".to_owned(),
        _ => format!(
            "\n{} would change. `seawall tune --diff` shows how; `seawall tune --write`, as root, writes them after a copy of each file.\n",
            counted(changes, "setting")
        ),
    };
    text
}

fn now(setting: &Setting) -> String {
    match (&setting.now, setting.default) {
        _ if !setting.is_change() => "stays".to_owned(),
        (Some(now), _) => format!("now {now}"),
        (None, Some(default)) => format!("now {default}, the default"),
        (None, None) => "new".to_owned(),
    }
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Breaks a text into lines that begin at a column.
fn wrapped(text: &str, column: usize) -> String {
    let (mut lines, mut length) = (String::new(), column);
    for (at, word) in text.split(' ').enumerate() {
        if at > 0 && length + 1 + word.chars().count() > WIDTH {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', column));
            length = column;
        } else if at > 0 {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += word.chars().count();
    }
    lines
}

/// Says what was written, and what is left to do.
fn done(outcome: &Outcome) -> String {
    if outcome.written.is_empty() {
        return "All of it is set already: nothing was written.\n".to_owned();
    }
    let mut text = "Written:\n".to_owned();
    for (file, copy) in &outcome.written {
        let copy = copy.as_ref().map_or_else(|| "a new file".to_owned(), |copy| format!("before: {}", copy.display()));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {}  ({copy})", file.display());
    }
    for command in &outcome.tried {
        let _ = writeln!(text, "Tried: {command}");
    }
    let _ = writeln!(text, "\nThey count when the services are restarted:\n  systemctl restart {}", outcome.services.join(" "));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;

    #[test]
    fn tune_takes_a_machine_to_plan_for() {
        let tune: Tune = typed("seawall tune --memory 2GiB --cores 2 --site /var/www/html").expect("tune");
        assert_eq!((tune.memory, tune.cores, tune.site), (Some(2 << 30), Some(2), vec![PathBuf::from("/var/www/html")]));
        for wrong in ["--memory 1MiB", "--memory much", "--cores 0", "--diff --write"] {
            assert!(typed::<Tune>(&format!("seawall tune {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_reason_is_broken_where_a_line_is_full() {
        let text = wrapped(&"word ".repeat(40), 6);
        assert!(text.lines().all(|line| line.len() <= WIDTH) && text.lines().count() == 2, "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("      word")), "{text}");
    }

    #[test]
    fn a_copy_has_the_time_in_its_name() {
        let stamp = stamp();
        assert!(stamp.len() == 15 && stamp.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'), "{stamp}");
    }
}
