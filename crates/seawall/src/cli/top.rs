//! `seawall top`.

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use clap::Args;
use operator::{terminal::has_colour, top};
use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{SignalKind, signal};

use super::{Run, access::Access, env, output::say, serve::Inherited};

const EXAMPLES: &str = "\
Examples:
  seawall top
      Requests, hits and what the origin has to do, each second; why it is asked, by which pages and cookies. `?` lists the keys.

  seawall top --site blog.example.org
      One site alone.

  seawall top --once
      One picture as text, for a pipe or a mail.

  seawall top --json | jq '.seen.reasons[0]'
      All that is known, for scripts.";

/// Show what happens now: what misses, why, and what that costs the server behind
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Top {
    /// Begin with this site [default: all together]
    #[arg(long, value_name = "NAME")]
    site: Option<String>,

    /// Write one picture as text and end. Without a terminal, that is the default
    #[arg(long)]
    once: bool,

    /// Write what is known as JSON and end: `seen`, sums since counting began, and `moment`, the last second
    #[arg(long, conflicts_with = "once")]
    json: bool,

    /// The running Seawall.
    #[command(flatten)]
    access: Access,
}

impl Run for Top {
    const NAME: &'static str = "top";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let client = self.access.client()?;
        let stdout = io::stdout();
        if self.json {
            say(&top::json(client, self.site)?)?;
        } else if self.once || !stdout.is_terminal() {
            say(&top::once(client, self.site, width(), has_colour(&stdout))?)?;
        } else {
            let is_over = hear_signals()?;
            top::watch(client, self.site, has_colour(&stdout), || is_over.load(Ordering::Relaxed))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns how wide the terminal is, or how wide somebody wants a picture for a pipe (`COLUMNS`).
fn width() -> Option<u16> {
    let of_terminal = tcgetwinsize(io::stdout()).map(|size| size.ws_col).ok();
    of_terminal.or_else(|| env("COLUMNS")?.parse().ok()).filter(|width| *width > 0)
}

/// Hears the signals that ask a process to end: the terminal has to be given back before. Ctrl-C is a key while the terminal is taken.
fn hear_signals() -> io::Result<Arc<AtomicBool>> {
    let is_over = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&is_over);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _context = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?, signal(SignalKind::interrupt())?)
    };
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = signals.0.recv() => {}
                _ = signals.1.recv() => {}
                _ = signals.2.recv() => {}
            }
        });
        heard.store(true, Ordering::Relaxed);
    })?;
    Ok(is_over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;

    #[test]
    fn a_picture_is_text_or_json() {
        let top: Top = typed("seawall top --once --site blog.example --admin 127.0.0.1:1").expect("top");
        assert_eq!((top.once, top.site.as_deref(), top.access.admin.as_deref()), (true, Some("blog.example"), Some("127.0.0.1:1")));
        assert!(typed::<Top>("seawall top --once --json").is_err());
    }
}
