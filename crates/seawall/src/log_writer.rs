//! The writer of the access log.

use std::{io, path::PathBuf};

use crate::writer::{Destination, Writer};

/// Starts the writer of the access log. `None` writes to standard output.
///
/// # Errors
/// When the file cannot be opened.
pub(crate) fn start(path: Option<PathBuf>) -> io::Result<Writer> {
    let destination = match path {
        Some(path) => Destination::file(path)?,
        None => Destination::stream(&io::stdout())?,
    };
    let troubled = |error: &io::Error| tracing::error!(%error, "cannot write the access log; lines are dropped until it is writable");
    Writer::start("access-log", destination, troubled, None)
}
