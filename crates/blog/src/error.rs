//! Why a folder did not become a site: every problem at once, each with file, line and remedy.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// One mistake that the author has to correct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, relative to the blog's folder.
    pub file: PathBuf,
    /// The line in the file, counted from 1, if it is known.
    pub line: Option<usize>,
    /// The message: the mistake, and what to do about it.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(file: &Path, line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: line.into(), message: message.into() }
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
