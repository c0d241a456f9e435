//! What commands say, and where: answers to standard output, errors to standard error.

use std::io::{self, Write as _};

use tracing::Level;

use crate::{config::ConfigErrors, stderr};

/// Writes what was asked for. A reader that has seen enough (`| head`) is not a failure.
pub(super) fn say(text: &str) -> io::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Confirms what was done. It is done, whether or not anybody reads this.
pub(super) fn confirm(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Tells why a command failed: each layer of the error on a line of its own. Errors of the configuration have a form of their own, with the lines
/// that are wrong.
pub(super) fn complain(error: &anyhow::Error) {
    if let Some(errors) = error.downcast_ref::<ConfigErrors>() {
        return stderr::tell(Level::ERROR, &errors.render(stderr::is_terminal()));
    }
    let mut text = format!("error: {error}\n");
    for cause in error.chain().skip(1) {
        text.push_str(&format!("  because: {cause}\n"));
    }
    stderr::tell(Level::ERROR, &text);
}
