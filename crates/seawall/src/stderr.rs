//! Messages for whoever runs Seawall go to standard error, through a thread of its own.
//!
//! Telling never fails and never waits: a reader that is gone, a full disk, a pipe that nobody empties lose messages and nothing else. So
//! nothing else in the process writes to standard error; `clippy.toml` sees to that.

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::{fd::AsFd, unix::fs::MetadataExt},
    panic::PanicHookInfo,
    sync::{LazyLock, OnceLock},
    time::Duration,
};

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use crate::writer::{Destination, Piece, Writer};

/// The longest wait at the end of the process for a reader of the last messages.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The longest wait of a command for a reader of one message, such as a person who reads page by page.
const PATIENCE: Duration = Duration::from_hours(24);

/// The writer of standard error, or `None` if not even a thread could be started. Then messages are lost.
static STDERR: OnceLock<Option<Writer>> = OnceLock::new();

/// Whether standard error is the journal: the service manager says so in `JOURNAL_STREAM` (systemd.exec(5)).
static IS_JOURNAL: LazyLock<bool> = LazyLock::new(|| {
    let own = || File::from(stderr().as_fd().try_clone_to_owned().ok()?).metadata().ok();
    let told = std::env::var("JOURNAL_STREAM").ok();
    told.zip(own()).is_some_and(|(told, own)| told == format!("{}:{}", own.dev(), own.ino()))
});

#[expect(clippy::disallowed_methods, reason = "the one place that may write to it")]
fn stderr() -> io::Stderr {
    io::stderr()
}

/// Tells whether a person reads standard error on a terminal.
pub(crate) fn is_terminal() -> bool {
    stderr().is_terminal()
}

/// Tells whether the journal keeps standard error. It notes the time of each line itself.
pub(crate) fn is_journal() -> bool {
    *IS_JOURNAL
}

/// Writes `text` to standard error. Its last line must end.
pub(crate) fn tell(level: Level, text: &str) {
    let writer = STDERR.get_or_init(|| {
        let destination = Destination::stream(&stderr()).ok()?;
        // There is nobody to tell.
        Writer::start("messages", destination, |_| {}, Some(|lost| marked(Level::WARN, &format!("{lost} messages were lost here\n")))).ok()
    });
    if let Some(writer) = writer {
        writer.sink().send(Piece { bytes: marked(level, text), lines: 1 });
    }
}

/// Writes as [`tell`] does, and waits for the reader: for commands that are there to tell, of which nothing may be lost.
pub(crate) fn tell_all(level: Level, text: &str) {
    tell(level, text);
    if let Some(Some(writer)) = STDERR.get() {
        let _ = writer.sink().flush(PATIENCE);
    }
}

/// Waits until everything is written, but not for a reader that does not read. Called at the end of the process.
pub(crate) fn settle() {
    if let Some(Some(writer)) = STDERR.get() {
        let _ = writer.sink().flush(LAST_WORDS);
    }
}

/// Returns the number of messages that were lost.
pub(crate) fn lost() -> u64 {
    STDERR.get().and_then(Option::as_ref).map_or(0, |writer| writer.sink().lost())
}

/// Puts the priority before each line if the journal reads it (sd-daemon(3)).
fn marked(level: Level, text: &str) -> Vec<u8> {
    if !is_journal() {
        return text.as_bytes().to_vec();
    }
    with_priority(level, text).into_bytes()
}

fn with_priority(level: Level, text: &str) -> String {
    let priority = match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    };
    text.lines().filter(|line| !line.is_empty()).map(|line| format!("<{priority}>{line}\n")).collect()
}

/// The messages that are written unless told otherwise. The library that speaks HTTP/2 warns of what any stranger may send; those that draw letters warn of each
/// for which there is no font, of which the blog tells by itself, once for each text.
const DIAGNOSTICS: &str = "info,h2=error,usvg=off,fontdb=off";

/// Diagnostics go to standard error, so that the access log may have standard output. `SEAWALL_LOG` chooses how much.
pub(crate) fn start_diagnostics() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("SEAWALL_LOG").unwrap_or_else(|_| DIAGNOSTICS.into());
    let messages = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(StderrWriter)
        .with_ansi(is_terminal())
        .with_target(false)
        // It would tell its own troubles on standard error, and panic where that is gone.
        .log_internal_errors(false);
    if is_journal() {
        messages.without_time().init();
    } else {
        messages.init();
    }
}

/// Tells a panic, as the standard library would do with nobody to wait for.
pub(crate) fn panicked(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let trace = std::backtrace::Backtrace::capture();
    let trace = if trace.status() == std::backtrace::BacktraceStatus::Captured { format!("{trace}\n") } else { String::new() };
    tell(Level::ERROR, &format!("thread '{}' {info}\n{trace}", thread.name().unwrap_or("?")));
}

/// A writer of diagnostics for the `tracing` subscriber.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StderrWriter;

/// One message on its way to standard error.
#[derive(Debug)]
pub(crate) struct Message(Level);

impl<'a> MakeWriter<'a> for StderrWriter {
    type Writer = Message;

    fn make_writer(&'a self) -> Message {
        Message(Level::INFO)
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Message {
        Message(*metadata.level())
    }
}

impl io::Write for Message {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        tell(self.0, &String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blog tells of titles without a font, once for each text; `usvg` would write a line for each letter.
    #[test]
    fn libraries_that_draw_letters_say_nothing_by_themselves() {
        let diagnostics = tracing_subscriber::fmt().with_env_filter(DIAGNOSTICS).with_writer(io::sink).finish();
        tracing::subscriber::with_default(diagnostics, || {
            assert!(!tracing::enabled!(target: "usvg::text::layout", Level::ERROR) && !tracing::enabled!(target: "fontdb", Level::WARN));
            assert!(tracing::enabled!(target: "blog::watch", Level::INFO));
        });
    }

    #[test]
    fn each_line_of_a_message_has_its_priority_in_the_journal() {
        assert_eq!(with_priority(Level::ERROR, "one\n  two\n"), "<3>one\n<3>  two\n");
        assert_eq!(with_priority(Level::INFO, "\nSeawall\n\n  site\n\n"), "<6>Seawall\n<6>  site\n");
    }
}
