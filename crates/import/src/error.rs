//! The reasons why nothing, or not all, could be moved in.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Error of an import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The source is not what was expected; the text says where, and what to do.
    #[error("{place}: {message}")]
    Source {
        /// The file, and the line in it if it is known.
        place: String,
        /// The text about what is wrong, and the remedy.
        message: String,
    },
    /// A file of the export could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The folder for the blog cannot be used.
    #[error("{message}")]
    Folder {
        /// The text about what is wrong, and the remedy.
        message: String,
    },
    /// A file of the blog could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The import ended half-way.
    #[error("stopped half-way: {files} files are in {} already; remove that folder before the next try", folder.display())]
    HalfWay {
        /// The number of files that were written.
        files: usize,
        /// The folder of the blog.
        folder: PathBuf,
        /// The reason.
        source: Box<Self>,
    },
}

impl ImportError {
    pub(crate) fn of_file(path: &Path, message: impl Into<String>) -> Self {
        Self::Source { place: path.display().to_string(), message: message.into() }
    }

    pub(crate) fn at_line(path: &Path, line: usize, message: impl Into<String>) -> Self {
        Self::Source { place: format!("{}:{line}", path.display()), message: message.into() }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }
}
