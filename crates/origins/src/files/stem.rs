//! Tells which responses a file of the folder concerns.
//!
//! A request and a file meet in their *stem*: `/about`, `/about/`, `about.html`, `about/index.html` and `about.html.br` are all `about`. A
//! response is tagged with the stem of its request, whether that found something or not, and with those of the files that it was made of.

use std::{
    collections::HashSet,
    ffi::OsStr,
    hash::Hasher as _,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use siphasher::sip::SipHasher13;

/// The most folders that are remembered, at 16 bytes or so; beyond them, every name that is removed counts as a folder.
const FOLDERS_MAX: usize = 65_536;

/// Returns the name that stands for all files that can answer for a path, or for a file below the root.
fn stem(path: &Path) -> PathBuf {
    let mut stem = path.to_owned();
    for suffix in [&[".br", ".zst", ".gz"][..], &[".html"]] {
        let name = stem.file_name().map(OsStr::as_bytes).unwrap_or_default().to_owned();
        if let Some(rest) = suffix.iter().find_map(|suffix| name.strip_suffix(suffix.as_bytes())).filter(|rest| !rest.is_empty()) {
            stem.set_file_name(OsStr::from_bytes(rest));
        }
    }
    if stem.file_name().is_some_and(|name| name == "index") {
        stem.pop();
    }
    stem
}

/// Returns the tag of everything that depends on `path`.
pub(super) fn tag(path: &Path) -> String {
    format!("f-{:016x}", hash(stem(path).as_os_str().as_bytes()))
}

/// Returns the tag of the list of names in `folder`.
pub(super) fn listing_tag(folder: &Path) -> String {
    format!("l-{:016x}", hash(folder.as_os_str().as_bytes()))
}

/// Returns the hash of a name. Two names with one hash are purged together, which is never wrong.
fn hash(name: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(name);
    hasher.finish()
}

/// The folders that responses were made of.
#[derive(Debug, Default)]
pub(super) struct SeenFolders {
    folders: HashSet<u64>,
    full: bool,
}

impl SeenFolders {
    /// Remembers the folders above `path`.
    pub(super) fn above(&mut self, path: &Path) {
        for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            if self.folders.len() < FOLDERS_MAX {
                self.folders.insert(hash(folder.as_os_str().as_bytes()));
            } else {
                self.full = true;
            }
        }
    }

    /// Returns whether a response was made of something below `path`.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.full || self.folders.contains(&hash(path.as_os_str().as_bytes()))
    }

    /// Forgets all folders, because nothing that was made of them is stored any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_its_files_have_one_stem() {
        for (expected, paths) in [
            ("about", &["about", "about.html", "about/index.html", "about.html.gz", "about/index.html.br", "about/index"][..]),
            ("", &["", "index.html", "index.html.zst", "index"]),
            ("a/app.js", &["a/app.js", "a/app.js.br"]),
            ("a/.html", &["a/.html"]),
            ("backup.tar", &["backup.tar.gz"]),
        ] {
            for path in paths {
                assert_eq!(stem(path.as_ref()), Path::new(expected), "{path}");
            }
        }
        assert_ne!(tag("a".as_ref()), tag("b".as_ref()));
    }

    #[test]
    fn folders_are_remembered_up_to_a_bound() {
        let mut seen = SeenFolders::default();
        seen.above("a/b/c".as_ref());
        assert!(seen.has("a".as_ref()) && seen.has("a/b".as_ref()) && !seen.has("a/b/c".as_ref()) && !seen.has("".as_ref()));
        for number in 0..FOLDERS_MAX {
            seen.above(format!("{number}/x").as_ref());
        }
        assert!(seen.has("never seen".as_ref()) && seen.folders.len() == FOLDERS_MAX);
        seen.forget();
        assert!(!seen.has("a".as_ref()));
    }
}
