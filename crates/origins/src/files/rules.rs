//! `_redirects` and `_headers`, as static hosts have them: a site that moves from there brings its rules along.

use std::{
    fmt,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::Path,
    time::SystemTime,
};

use http::HeaderMap;

use super::{
    headers::FieldRules,
    path::target,
    pattern::canonical,
    redirects::{Leads, Redirects},
    root::Root,
};

/// The name of the file with redirects.
pub const REDIRECTS: &str = "_redirects";
pub(super) const HEADERS: &str = "_headers";

/// The most bytes that are read of a file; a longer one is cut off here.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The most rules in one file; further ones are ignored. Static hosts allow some two thousand.
pub(super) const RULES_MAX: usize = 5_000;
/// The longest line; longer ones are ignored.
pub(super) const LINE_BYTES_MAX: usize = 2_000;
/// The most mistakes that are remembered for one file.
const MISTAKES_MAX: usize = 20;

/// A line that is ignored because of a mistake; the others are valid without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The name of the file: `_redirects` or `_headers`.
    pub file: &'static str,
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The text about what is wrong with the line, and what would be right.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.problem)
    }
}

/// The rules of a folder: its redirects, and the fields that it sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    redirects: Redirects,
    fields: FieldRules,
    mistakes: Vec<Mistake>,
}

/// Returns the path of a request as rules compare it: percent-encoded in one way, and without a slash at its end. `None` for a path that no file
/// of a folder can have.
#[must_use]
pub fn canonical_path(path: &str) -> Option<String> {
    target(path).map(|target| canonical(&target.below))
}

/// The state of the two files, which differs between versions: number, length, and date.
pub(super) type RuleFilesState = [Option<(u64, u64, Option<SystemTime>)>; 2];

impl Rules {
    /// Returns the current state of the two files.
    pub(super) fn seen(root: &Root) -> RuleFilesState {
        [REDIRECTS, HEADERS].map(|name| {
            let entry = root.find_file(name.as_ref()).ok().flatten()?;
            Some((entry.metadata.ino(), entry.metadata.len(), entry.metadata.modified().ok()))
        })
    }

    /// Reads the rules of the folder at `path`. It blocks.
    ///
    /// # Errors
    /// Fails when that is not a folder that can be read.
    pub fn of_folder(path: &Path) -> io::Result<Self> {
        Ok(Self::read(&Root::open(path)?))
    }

    /// Returns where the rules lead from a [canonical](canonical_path) path. The first rule for the path counts. `is_forced` asks for a rule that also
    /// applies where there is something at the path; otherwise for one that does not.
    #[must_use]
    pub fn redirect(&self, path: &str, query: Option<&str>, is_forced: bool) -> Option<Leads> {
        let (rule, captures) = self.redirects.find(path)?;
        if rule.forced == is_forced { rule.leads(&captures, path, query) } else { None }
    }

    /// Returns the redirects from one path alone that apply only where nothing else is: the number of the line in `_redirects`, counted from 1, and the
    /// [canonical](canonical_path) path.
    pub fn giving_way(&self) -> impl Iterator<Item = (usize, &str)> {
        self.redirects.giving_way()
    }

    /// Sets the fields that the rules name for a [canonical](canonical_path) path.
    pub fn set_fields(&self, path: &str, fields: &mut HeaderMap) {
        self.fields.apply(path, fields);
    }

    /// Returns the lines that are ignored because of a mistake.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// Reads the rules of the folder. A file that cannot be read is a mistake like a line that cannot be read.
    pub(super) fn read(root: &Root) -> Self {
        let mut mistakes = Vec::new();
        let redirects = text(root, REDIRECTS, &mut mistakes);
        let redirects = Redirects::parse(&redirects, &mut Complain::new(REDIRECTS, &mut mistakes));
        let fields = text(root, HEADERS, &mut mistakes);
        let fields = FieldRules::parse(&fields, &mut Complain::new(HEADERS, &mut mistakes));
        Self { redirects, fields, mistakes }
    }
}

fn text(root: &Root, name: &'static str, mistakes: &mut Vec<Mistake>) -> String {
    let read = || -> io::Result<String> {
        let Some(entry) = root.find_file(name.as_ref())? else { return Ok(String::new()) };
        let mut bytes = Vec::new();
        entry.file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut text = read().unwrap_or_else(|error| {
        mistakes.push(Mistake { file: name, line: 1, problem: format!("cannot be read: {error}") });
        String::new()
    });
    if text.len() as u64 >= FILE_BYTES_MAX {
        let cut = text.rfind('\n').unwrap_or(0);
        text.truncate(cut);
        mistakes.push(Mistake {
            file: name,
            line: text.lines().count() + 1,
            problem: "from here on left out: the file is longer than 1 MiB".to_owned(),
        });
    }
    text
}

/// A collection of the mistakes in one file.
pub(super) struct Complain<'a> {
    file: &'static str,
    mistakes: &'a mut Vec<Mistake>,
    taken: usize,
}

impl<'a> Complain<'a> {
    pub(super) const fn new(file: &'static str, mistakes: &'a mut Vec<Mistake>) -> Self {
        Self { file, mistakes, taken: 0 }
    }

    pub(super) fn of(&mut self, line: usize, problem: impl Into<String>) {
        self.taken += 1;
        let problem = match self.taken {
            ..=MISTAKES_MAX => problem.into(),
            n if n == MISTAKES_MAX + 1 => "and further lines that mean nothing".to_owned(),
            _ => return,
        };
        self.mistakes.push(Mistake { file: self.file, line, problem });
    }
}

/// Returns the lines with rules, numbered from 1: trimmed, without empty ones, comments, and those that are too long.
pub(super) fn lines<'t>(text: &'t str, complain: &mut Complain<'_>) -> Vec<(usize, &'t str)> {
    let mut lines = Vec::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.len() > LINE_BYTES_MAX {
            complain.of(number + 1, format!("longer than {LINE_BYTES_MAX} bytes"));
        } else {
            lines.push((number + 1, line));
        }
    }
    lines
}
