//! Advice as files: what would change, and the changing.
//!
//! Nothing is lost: each file is copied before it is replaced, all of them are tried by the programs that read them, and if one of those refuses, all are
//! put back.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{MetadataExt as _, chown},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{advise::Advice, conf::Style, diff::unified, facts::Stack, find::Root};

/// Says what could not be done.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// A file cannot be read.
    #[error("{} cannot be read", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// A file cannot be written; what was written before it was put back.
    #[error("{} cannot be written; everything is as it was", .0.display())]
    Unwritable(PathBuf, #[source] io::Error),
    /// A program refuses its new configuration; everything was put back.
    #[error("{program} refuses the new settings; everything is as it was\n{said}")]
    Refused {
        /// The program.
        program: String,
        /// The text that it wrote.
        said: String,
    },
    /// A file could not be put back.
    #[error("{} could not be put back; its copy is {}", .file.display(), .backup.display())]
    Lost {
        /// The file.
        file: PathBuf,
        /// The copy of the file.
        backup: PathBuf,
        /// The reason that the system gives.
        source: io::Error,
    },
}

/// Files that would be other than they are.
#[derive(Debug)]
pub struct Changes {
    root: Root,
    files: Vec<FileChange>,
    checks: Vec<Check>,
}

#[derive(Debug)]
struct FileChange {
    file: PathBuf,
    /// The text that is there. `None`: nothing.
    old: Option<String>,
    new: String,
    service: String,
}

/// A program that can try its configuration.
#[derive(Debug)]
struct Check {
    program: PathBuf,
    arguments: Vec<String>,
}

/// Says what the changes have done to the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The files that were written, each with its copy if there was something before.
    pub written: Vec<(PathBuf, Option<PathBuf>)>,
    /// The programs that have tried the new settings.
    pub tried: Vec<String>,
    /// The services that read them when they are restarted.
    pub services: Vec<String>,
}

impl Changes {
    /// Finds out what would change.
    ///
    /// # Errors
    /// Fails when a file that is to be changed cannot be read.
    pub fn new(root: &Root, stack: &Stack, advice: &Advice) -> Result<Self, TuneError> {
        let mut texts: BTreeMap<&Path, FileChange> = BTreeMap::new();
        for setting in advice.settings.iter().filter(|setting| setting.is_change()) {
            let file = setting.place.file.as_path();
            if !texts.contains_key(file) {
                let old = match fs::read_to_string(root.path(file)) {
                    Ok(text) => Some(text),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    Err(error) => return Err(TuneError::Unreadable(root.path(file), error)),
                };
                let new = old.clone().unwrap_or_else(|| heading(setting.place.style));
                texts.insert(file, FileChange { file: root.path(file), old, new, service: setting.service.clone() });
            }
            if let Some(change) = texts.get_mut(file) {
                change.new = setting.place.style.set(&change.new, setting.place.section.as_deref(), &setting.key, &setting.value);
            }
        }
        Ok(Self { files: texts.into_values().collect(), checks: checks(root, stack), root: root.clone() })
    }

    /// Returns whether nothing would change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the differences, as `diff -u` shows them.
    #[must_use]
    pub fn diff(&self) -> String {
        let of_file = |change: &FileChange| {
            let name = change.file.display().to_string();
            unified(if change.old.is_some() { &name } else { "/dev/null" }, &name, change.old.as_deref().unwrap_or_default(), &change.new)
        };
        self.files.iter().map(of_file).collect()
    }

    /// Writes the files, and has them tried. `stamp` is the end of the names of copies.
    ///
    /// # Errors
    /// Fails when a file cannot be written, or a program refuses its new settings. Then everything is as it was.
    pub fn write(&self, stamp: &str) -> Result<Outcome, TuneError> {
        let mut written = Vec::new();
        for change in &self.files {
            match replace(change, stamp) {
                Ok(done) => written.push(done),
                Err(error) => {
                    put_back(&written)?;
                    return Err(TuneError::Unwritable(change.file.clone(), error));
                }
            }
        }
        let mut tried = Vec::new();
        for check in &self.checks {
            if let Err(said) = check.run() {
                put_back(&written)?;
                return Err(TuneError::Refused { program: check.program.display().to_string(), said });
            }
            tried.push(format!("{} {}", check.program.display(), check.arguments.join(" ")));
        }
        let mut services: Vec<String> = self.files.iter().map(|change| change.service.clone()).collect();
        services.sort();
        services.dedup();
        Ok(Outcome { written, tried, services })
    }

    /// Returns the machine whose files these are.
    #[must_use]
    pub const fn root(&self) -> &Root {
        &self.root
    }
}

/// Begins a new file.
fn heading(style: Style) -> String {
    let sign = if style == Style::Php { ';' } else { '#' };
    format!("{sign} Made by `seawall tune`, which gives the reason of each line. It is read after the other files of this folder.\n")
}

fn checks(root: &Root, stack: &Stack) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some((php, program)) = stack.php.as_ref().and_then(|php| Some((php, php.program.as_ref()?))) {
        let config = root.path(&php.config).display().to_string();
        checks.push(Check { program: root.path(program), arguments: vec!["-t".to_owned(), "-y".to_owned(), config] });
    }
    if let Some(program) = stack.database.as_ref().and_then(|database| database.program.as_ref()) {
        // MariaDB has no flag for this: its help is made after it has read its settings, and fails if it does not know one.
        let arguments = match stack.database.as_ref().map(|database| database.flavour) {
            Some(crate::facts::Flavour::MySql) => vec!["--validate-config".to_owned()],
            Some(crate::facts::Flavour::MariaDb) | None => vec!["--help".to_owned(), "--verbose".to_owned()],
        };
        checks.push(Check { program: root.path(program), arguments });
    }
    checks
}

impl Check {
    fn run(&self) -> Result<(), String> {
        let ran = Command::new(&self.program).args(&self.arguments).stdin(Stdio::null()).output();
        match ran {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let said = [output.stdout, output.stderr].concat();
                let said = String::from_utf8_lossy(&said);
                // The help of a database is long, and its errors are at the end of it or before it.
                let lines: Vec<&str> = said.lines().filter(|line| line.to_ascii_lowercase().contains("error")).collect();
                Err(if lines.is_empty() { said.lines().take(20).collect::<Vec<_>>().join("\n") } else { lines.join("\n") })
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Replaces a file as a whole. Links are followed: what they lead to is replaced.
fn replace(change: &FileChange, stamp: &str) -> io::Result<(PathBuf, Option<PathBuf>)> {
    let file = match &change.old {
        Some(_) => fs::canonicalize(&change.file)?,
        None => change.file.clone(),
    };
    let beside = |ending: &str| {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        file.with_file_name(name)
    };
    let backup = match &change.old {
        Some(_) => {
            let backup = beside(&format!(".seawall-{stamp}"));
            fs::copy(&file, &backup)?;
            Some(backup)
        }
        None => None,
    };
    let new = beside(".seawall-new");
    let write = || {
        fs::write(&new, &change.new)?;
        if let Some(backup) = &backup {
            let like = fs::metadata(backup)?;
            fs::set_permissions(&new, like.permissions())?;
            let owner = fs::metadata(&file)?;
            chown(&new, Some(owner.uid()), Some(owner.gid()))?;
        }
        fs::File::open(&new)?.sync_all()?;
        fs::rename(&new, &file)
    };
    if let Err(error) = write() {
        // They are only in the way now.
        let _ = fs::remove_file(&new);
        if let Some(backup) = &backup {
            let _ = fs::remove_file(backup);
        }
        return Err(error);
    }
    Ok((file, backup))
}

fn put_back(written: &[(PathBuf, Option<PathBuf>)]) -> Result<(), TuneError> {
    for (file, backup) in written {
        let done = match backup {
            Some(backup) => fs::rename(backup, file),
            None => fs::remove_file(file),
        };
        done.map_err(|source| TuneError::Lost { file: file.clone(), backup: backup.clone().unwrap_or_default(), source })?;
    }
    Ok(())
}
