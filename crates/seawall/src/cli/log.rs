//! `seawall log`.

use std::{
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use insight::Filter;
use operator::{
    log::{self, KEPT, LogError, Options, Reader},
    terminal::has_colour,
};
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};
use tracing::Level;

use super::{Run, access::Access, serve::Inherited};
use crate::stderr;

/// How long a question may take. Ctrl-C waits for it.
const PATIENCE: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  seawall log
      The last 20 requests that were not plain hits: what the cache did, by which rule, what each took.

  seawall log --where 'status >= 500 or rule = cookie' --follow
      What fails or passes by a cookie, from now on, until Ctrl-C.

  seawall log -n 4096 --where 'took > 1s and path ~ \"/shop\"' --json
      All that are kept, as JSON, one a line.

Fields of --where: those of --json, and took, origin and url. Comparisons: = (or ==) != < <= > >=, and ~ for \"contains\"; and, or,
not, parentheses; times and sizes with units (500ms, 10KiB); text with spaces in quotation marks, 'a b' or \"a b\".";

/// Show the last requests that were not plain hits, and why
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Log {
    /// Only requests that match this expression, such as 'status >= 500 or rule = cookie'
    #[arg(long = "where", value_name = "EXPRESSION", value_parser = filter)]
    wanted: Option<Filter>,

    /// Go on with the requests that come, until Ctrl-C
    #[arg(long, short)]
    follow: bool,

    /// How many of the last requests to show first; the server keeps 4096
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(0..=i64::from(KEPT)))]
    lines: u16,

    /// Write each request as a JSON object on a line
    #[arg(long)]
    json: bool,

    /// The running Seawall.
    #[command(flatten)]
    access: Access,
}

fn filter(expression: &str) -> Result<Filter, String> {
    Filter::parse(expression).map_err(|error| format!("\n{}", error.shown(expression)))
}

impl Run for Log {
    const NAME: &'static str = "log";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let client = self.access.client()?.within(PATIENCE);
        let stdout = io::stdout();
        let options = Options {
            lines: self.lines.into(),
            follow: self.follow,
            json: self.json,
            titles: stdout.is_terminal(),
            colour: has_colour(&stdout),
        };
        let mut reader = Person::new(self.follow)?;
        let wanted = |request: &_| self.wanted.as_ref().is_none_or(|wanted| wanted.matches(request));
        match log::run(&client, &options, wanted, &mut reader) {
            // Who has seen enough (`| head`) has no failure.
            Err(LogError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
            outcome => outcome?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Whoever reads standard output. Who follows ends it by Ctrl-C, which is not a failure; anybody else is ended by it as is usual.
struct Person(Option<(Runtime, Signal)>);

impl Person {
    fn new(follows: bool) -> io::Result<Self> {
        if !follows {
            return Ok(Self(None));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let interrupt = {
            let _context = runtime.enter();
            signal(SignalKind::interrupt())?
        };
        Ok(Self(Some((runtime, interrupt))))
    }
}

impl Reader for Person {
    fn line(&mut self, line: &str) -> io::Result<()> {
        io::stdout().lock().write_all(line.as_bytes())
    }

    fn tell(&mut self, words: &str) {
        stderr::tell(Level::WARN, &format!("{words}\n"));
    }

    fn is_over_after(&mut self, time: Duration) -> bool {
        self.0.as_mut().is_none_or(|(runtime, interrupt)| runtime.block_on(async { timeout(time, interrupt.recv()).await.is_ok() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{typed, typed_words};

    #[test]
    fn log_takes_as_many_lines_as_are_kept() {
        let log: Log = typed("seawall log -f -n 4096 --json").expect("log");
        assert_eq!((log.follow, log.lines, log.json), (true, KEPT, true));
        assert_eq!(typed::<Log>("seawall log").expect("log").lines, 20);
        assert!(typed::<Log>("seawall log -n 4097").is_err());
    }

    #[test]
    fn the_expression_is_one_word() {
        let log: Log = typed_words(["seawall", "log", "--where", "status >= 500 or rule = cookie"]).expect("log");
        assert!(log.wanted.is_some());
    }
}
