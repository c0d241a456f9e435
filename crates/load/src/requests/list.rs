//! Lists of URLs in a file.
//!
//! A line is a URL, or a path of the server that was named before. A method may stand before it, and its weight beside the others behind it, as `3`
//! or `weight=3`. Empty lines and those that begin with `#` are passed over.

use std::path::{Path, PathBuf};

use super::url::{Url, UrlError};

/// The largest list.
const BYTES_MAX: usize = 64 << 20;

/// The most lines with a URL.
const LINES_MAX: usize = 1_000_000;

/// A line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) method: Option<String>,
    pub(super) url: Url,
    pub(super) weight: u32,
}

/// Says what is wrong with a list.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The file cannot be read.
    #[error("{}: cannot be read", .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    /// It is too large.
    #[error("{}: a list has at most {BYTES_MAX} bytes and {LINES_MAX} URLs", .0.display())]
    TooLarge(PathBuf),
    /// There is nothing in it.
    #[error("{}: there is no URL in it", .0.display())]
    Empty(PathBuf),
    /// A line has no URL.
    #[error("{}:{line}: {error}", .file.display())]
    Url {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error.
        error: UrlError,
    },
    /// A line is something else.
    #[error("{}:{line}: {what}", .file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The description of the error.
        what: String,
    },
}

/// Reads a list. `base` is the server of lines that have a path alone; without it, they are those of the line before.
pub(super) fn read(file: &Path, base: Option<&Url>) -> Result<Vec<Line>, ListError> {
    let length = std::fs::metadata(file).map_err(|error| ListError::Read(file.to_owned(), error))?.len();
    if length > BYTES_MAX as u64 {
        return Err(ListError::TooLarge(file.to_owned()));
    }
    let text = std::fs::read_to_string(file).map_err(|error| ListError::Read(file.to_owned(), error))?;
    parse(file, &text, base)
}

fn parse(file: &Path, text: &str, base: Option<&Url>) -> Result<Vec<Line>, ListError> {
    let mut lines: Vec<Line> = Vec::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = number + 1;
        let wrong = |what: String| ListError::Line { file: file.to_owned(), line: number, what };
        let mut words = line.split_ascii_whitespace().peekable();
        let method = words.next_if(|word| word.bytes().all(|byte| byte.is_ascii_uppercase())).map(str::to_owned);
        let Some(text) = words.next() else { return Err(wrong("there is a method, and no URL".to_owned())) };
        let url = match base.or_else(|| lines.last().map(|line| &line.url)) {
            Some(base) if text.starts_with('/') && !text.starts_with("//") => {
                Url::read_with_placeholders(&format!("{}{text}", base.origin))
            }
            _ => Url::read_with_placeholders(text),
        };
        let url = url.map_err(|error| ListError::Url { file: file.to_owned(), line: number, error })?;
        let mut weight = 1;
        for word in words {
            let value = word.strip_prefix("weight=").unwrap_or(word).parse().ok();
            weight = value.ok_or_else(|| wrong(format!("{word:?} is nothing that stands behind a URL: write weight=3")))?;
        }
        lines.push(Line { method, url, weight });
        if lines.len() > LINES_MAX {
            return Err(ListError::TooLarge(file.to_owned()));
        }
    }
    if lines.is_empty() { Err(ListError::Empty(file.to_owned())) } else { Ok(lines) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<Vec<String>, String> {
        let base = Url::read("http://base:81/x").expect("valid");
        let lines = parse(Path::new("urls.txt"), text, Some(&base)).map_err(|error| error.to_string())?;
        Ok(lines.iter().map(|line| format!("{} {} {}", line.method.as_deref().unwrap_or("-"), line.url, line.weight)).collect())
    }

    #[test]
    fn a_line_is_a_url_with_method_and_weight() {
        let text = "\u{feff}# ours\n\nhttp://h/a\r\n  POST https://h/b?{unique} weight=3\n/path\nHEAD /x 0\n";
        let expected = ["- http://h/a 1", "POST https://h/b?{unique} 3", "- http://base:81/path 1", "HEAD http://base:81/x 0"];
        assert_eq!(list(text).expect("valid"), expected);
    }

    #[test]
    fn a_path_is_asked_of_the_server_of_the_line_before() {
        let lines = parse(Path::new("urls.txt"), "http://a/x\n/y\nhttp://b/\n/z\n", None).expect("valid");
        let urls: Vec<_> = lines.iter().map(|line| line.url.to_string()).collect();
        assert_eq!(urls, ["http://a/x", "http://a/y", "http://b/", "http://b/z"]);
        assert!(parse(Path::new("urls.txt"), "/y\n", None).is_err());
    }

    #[test]
    fn errors_name_file_and_line() {
        for (text, expected) in [
            ("http://h/\nftp://h/\n", "urls.txt:2: ftp: is not supported"),
            ("GET\n", "urls.txt:1: there is a method"),
            ("http://h/ three\n", "urls.txt:1: \"three\" is nothing"),
            ("http://h/ weight=-1\n", "urls.txt:1: \"weight=-1\" is nothing"),
            ("http://h/ weight=x\n", "write weight=3"),
            ("# nothing\n", "urls.txt: there is no URL in it"),
        ] {
            let error = list(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(read(Path::new("/nowhere/urls.txt"), None).expect_err("no file").to_string().contains("/nowhere/urls.txt: cannot be read"));
    }
}
