//! The reasons why a folder did not become a site: every problem at once, each with file, line and remedy.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::{folder::content_type, gallery::is_picture};

/// Says what a problem does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The file is left out, or its last good version is kept.
    Error,
    /// The file is published nevertheless.
    Warning,
}

/// One mistake that the author has to correct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Whether the mistake keeps the file from being published.
    pub severity: Severity,
    /// The file, relative to the blog's folder.
    pub file: PathBuf,
    /// The line in the file, counted from 1, if it is known.
    pub line: Option<usize>,
    /// The message: the mistake, and what to do about it.
    pub message: String,
}

impl Problem {
    /// Describes a mistake that keeps the file from being published.
    pub(crate) fn new(file: &Path, line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, file: file.to_owned(), line: line.into(), message: message.into() }
    }

    /// Describes something that its author should know. The file is published nevertheless.
    pub(crate) fn warning(file: &Path, line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::new(file, line, message) }
    }

    /// Tells whether the file is published nevertheless.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        self.severity == Severity::Warning
    }

    /// Tells whether it is about a picture. Texts are published without a picture that is left out.
    #[must_use]
    pub fn is_about_a_picture(&self) -> bool {
        self.file.to_str().and_then(content_type).is_some_and(is_picture)
    }

    /// Returns what tells the mistake from others, wherever it stands in the file: an author who writes above it has not made a new one.
    pub(crate) fn key(&self) -> (Severity, &Path, &str) {
        (self.severity, &self.file, &self.message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.message)
    }
}

/// Error of a folder that cannot be published as a blog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct BuildError {
    /// Every problem that was found, ordered by file and line; never empty.
    pub problems: Vec<Problem>,
}

impl BuildError {
    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        Self { problems }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.len() {
            1 => f.write_str("the blog has a problem")?,
            count => write!(f, "the blog has {count} problems")?,
        }
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}
