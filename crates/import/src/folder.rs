//! The folder of the new blog. Nothing is written outside of it, and nothing that is there is overwritten.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use crate::error::ImportError;

/// The longest name of a file or folder, in bytes, as file systems have it.
const NAME_BYTES_MAX: usize = 200;

/// A folder that is being filled.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    files: usize,
}

impl Folder {
    /// Takes a folder that is empty or does not exist yet.
    pub(crate) fn new(root: &Path) -> Result<Self, ImportError> {
        match fs::read_dir(root) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    let message = format!("{} is not empty\n  Nothing was written. Name a folder that does not exist yet.", root.display());
                    return Err(ImportError::Folder { message });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(ImportError::Write { path: root.to_owned(), source }),
        }
        Ok(Self { root: root.to_owned(), files: 0 })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the number of files that were written.
    pub(crate) const fn files(&self) -> usize {
        self.files
    }

    /// Writes a file.
    pub(crate) fn write(&mut self, name: &str, content: &[u8]) -> Result<(), ImportError> {
        let path = self.place(name)?;
        let written = fs::OpenOptions::new().write(true).create_new(true).open(&path).and_then(|mut file| file.write_all(content));
        written.map_err(|source| ImportError::Write { path, source })?;
        self.files += 1;
        Ok(())
    }

    /// Opens a file that only its owner may read, for what is not for readers.
    pub(crate) fn private(&mut self, name: &str) -> Result<fs::File, ImportError> {
        let path = self.place(name)?;
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        self.files += 1;
        file.map_err(|source| ImportError::Write { path, source })
    }

    /// Copies a file, piece by piece.
    pub(crate) fn copy(&mut self, from: &Path, name: &str) -> Result<(), ImportError> {
        let mut source = fs::File::open(from).map_err(ImportError::read(from))?;
        let path = self.place(name)?;
        let copied = fs::OpenOptions::new().write(true).create_new(true).open(&path).and_then(|mut file| io::copy(&mut source, &mut file));
        copied.map_err(|source| ImportError::Write { path, source })?;
        self.files += 1;
        Ok(())
    }

    fn place(&self, name: &str) -> Result<PathBuf, ImportError> {
        if !is_safe(name) {
            return Err(ImportError::Folder { message: format!("{name:?} cannot be the name of a file in the blog") });
        }
        let path = self.root.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|source| ImportError::Write { path: parent.to_owned(), source })?;
        }
        Ok(path)
    }
}

/// Tells whether a path with `/` between names stays in its folder, and can be written on any system.
pub(crate) fn is_safe(name: &str) -> bool {
    let is_name =
        |name: &str| !matches!(name, "" | "." | "..") && name.len() <= NAME_BYTES_MAX && !name.chars().any(|c| c.is_control() || c == '\\');
    name.split('/').all(is_name)
}

/// Resolves `path` from `folder`, without `.` and `..`. Returns `None` if it leaves the root.
pub(crate) fn join(folder: &str, path: &str) -> Option<String> {
    let mut names: Vec<&str> = if path.starts_with('/') { Vec::new() } else { folder.split('/').filter(|name| !name.is_empty()).collect() };
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

/// Returns the way from a folder to a file of the same root.
pub(crate) fn relative(folder: &str, file: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (folder.split('/').filter(|name| !name.is_empty()).collect(), file.split('/').collect());
    let shared = from.iter().zip(&to[..to.len() - 1]).take_while(|(a, b)| a == b).count();
    let mut path = "../".repeat(from.len() - shared);
    path.push_str(&to[shared..].join("/"));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "a\0b", "a\\b", "a/..", &"x".repeat(300)] {
            assert!(!is_safe(name), "{name}");
        }
        for name in ["a", "content/images/2024/a b.jpg", "posts/日本.md", "..a"] {
            assert!(is_safe(name), "{name}");
        }
    }

    #[test]
    fn nothing_is_overwritten_and_nothing_is_written_outside() {
        let outer = tempfile::tempdir().expect("a folder");
        let mut folder = Folder::new(&outer.path().join("blog")).expect("new");
        folder.write("posts/a.md", b"1").expect("written");
        assert!(folder.write("posts/a.md", b"2").is_err());
        assert!(folder.write("../b.md", b"3").is_err());
        assert_eq!((folder.files(), fs::read(outer.path().join("blog/posts/a.md")).expect("there")), (1, b"1".to_vec()));
        assert!(Folder::new(&outer.path().join("blog")).expect_err("full").to_string().contains("not empty"));
        assert_eq!(fs::read_dir(outer.path()).expect("listed").count(), 1);
    }

    #[test]
    fn ways_between_files() {
        assert_eq!(relative("posts", "content/images/a.jpg"), "../content/images/a.jpg");
        assert_eq!(relative("posts/trip", "posts/trip/a.jpg"), "a.jpg");
        assert_eq!(relative("", "a.jpg"), "a.jpg");
        assert_eq!(join("posts/trip", "../a.jpg").as_deref(), Some("posts/a.jpg"));
        assert_eq!((join("posts", "../../x"), join("posts", "/y").as_deref()), (None, Some("y")));
    }
}
