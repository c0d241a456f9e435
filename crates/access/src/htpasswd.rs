//! A file of users, as Apache's `htpasswd` writes it: `name:hash`, one a line.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::hash::{BadHash, Hash};

/// The largest file that is read: a larger one is some other file.
const FILE_BYTES_MAX: u64 = 1 << 20;
const NAME_BYTES_MAX: usize = 255;

/// The users of a file, with their hashes.
#[derive(Debug, Default)]
pub(crate) struct Users(HashMap<Box<str>, Hash>);

/// A line that lets nobody in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// The number of the line, counted from one.
    pub line: usize,
    /// The fault, without the text of the line.
    pub problem: String,
}

/// The reason why a file cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read the users in {path}", path = .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// The file is not a file of users.
    #[error("{path} is not a file of users: {1}", path = .0.display())]
    NoUsers(PathBuf, &'static str),
    /// The system has no random bytes.
    #[error("the system gave no random bytes")]
    NoRandomness,
}

impl Users {
    /// Returns the users in `text`, and the lines that are not understood. Such a line lets nobody in, and does not affect the other users.
    pub(crate) fn parse(text: &str) -> (Self, Vec<BadLine>) {
        let mut users: HashMap<Box<str>, Hash> = HashMap::new();
        let mut bad = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut wrong = |problem: String| bad.push(BadLine { line: at + 1, problem });
            let Some((name, rest)) = line.split_once(':').filter(|(name, _)| !name.is_empty() && name.len() <= NAME_BYTES_MAX) else {
                wrong("this is not a name, a colon and a hash".to_owned());
                continue;
            };
            // nginx lets a comment follow after another colon.
            let hash = rest.split(':').next().unwrap_or_default();
            match Hash::parse(hash) {
                Ok(_) if users.contains_key(name) => wrong(format!("\"{name}\" stands twice, and the first one counts")),
                Ok(hash) => drop(users.insert(name.into(), hash)),
                Err(why @ (BadHash::Empty | BadHash::Broken | BadHash::Cost(_) | BadHash::Unknown | BadHash::Plain)) => {
                    wrong(format!("\"{name}\": {why}"));
                }
            }
        }
        (Self(users), bad)
    }

    /// Reads a file of users.
    pub(crate) fn read(path: &Path) -> Result<(Self, Vec<BadLine>), FileError> {
        let unreadable = |error| FileError::Unreadable(path.to_owned(), error);
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(FileError::NoUsers(path.to_owned(), "it is a folder or a device"));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(FileError::NoUsers(path.to_owned(), "it is larger than 1 MiB"));
        }
        let text = String::from_utf8(bytes).map_err(|_| FileError::NoUsers(path.to_owned(), "it is not UTF-8 text"))?;
        Ok(Self::parse(&text))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Hash> {
        self.0.get(name)
    }

    /// Returns a hash to compute for a name that does not exist, so that the time does not tell which names exist.
    pub(crate) fn decoy(&self) -> Option<&Hash> {
        self.0.values().next()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The identity, size and times of a file, which change when the file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark([i64; 6], u64);

impl Mark {
    /// Returns the mark of the file at `path`; `None` if there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec(), file.ino().cast_signed(), file.dev().cast_signed()];
        Some(Self(times, file.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=";

    #[test]
    fn lines_are_users() {
        let text = format!("# editors\n\nada:{HASH}\r\nbob:{HASH}:of the garden\n# eve:{HASH}\n");
        let (users, bad) = Users::parse(&text);
        assert_eq!((users.len(), bad), (2, Vec::new()));
        assert!(users.get("ada").is_some() && users.get("bob").is_some() && users.get("eve").is_none() && users.get("Ada").is_none());
    }

    /// A line that is wrong lets nobody in, keeps nobody out, and is not repeated in the log: it may be a password.
    #[test]
    fn bad_lines_are_told_without_what_stands_there() {
        let text = format!("ada\nbob:hunter2\n:{HASH}\neve:{HASH}\neve:{HASH}\ncarl:$1$abc$def");
        let (users, bad) = Users::parse(&text);
        assert_eq!(users.len(), 1);
        assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [1, 2, 3, 5, 6]);
        assert!(bad[1].problem.contains("the password itself") && bad[4].problem.contains("not understood"));
        assert!(!format!("{bad:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_no_file_of_users_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users");
        assert!(matches!(Users::read(&path), Err(FileError::Unreadable(..))));
        assert!(matches!(Users::read(folder.path()), Err(FileError::NoUsers(..))));
        fs::write(&path, [0xff, 0xfe]).expect("written");
        assert!(matches!(Users::read(&path), Err(FileError::NoUsers(..))));
        fs::write(&path, vec![b'#'; (1 << 20) + 1]).expect("written");
        assert!(matches!(Users::read(&path), Err(FileError::NoUsers(..))));
    }
}
