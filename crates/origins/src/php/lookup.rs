//! Finds what a path stands for: a file, else the index of a folder, else the `index.php` of the application.
//!
//! | path | answered by |
//! |---|---|
//! | `/photo.jpg` | the file |
//! | `/page.php/rest` | the script, which is told `/rest` |
//! | `/shop` | a redirect to `/shop/`, if that folder has an index |
//! | `/shop/` | `shop/index.php`, `shop/index.html` |
//! | anything else | `index.php` of the application: of the root, or of the nearest folder above that has an application of its own |

use std::{
    io,
    path::{Path, PathBuf},
};

use semantics::percent;

use super::htaccess::{is_closed, leads_to};
use crate::{
    files::{Entry, Root, is_hidden, target},
    names::{is_configuration, lies_below},
};

/// The index of a folder: a script before a page, which an installation often leaves behind.
const INDEXES: [&str; 3] = ["index.php", "index.html", "index.htm"];
/// The script that answers where nothing else does.
const FRONT: &str = "index.php";
/// The file that tells a WordPress from a folder whose `index.php` is there only so that nobody sees its names: WordPress has dozens of those.
const WORDPRESS: &str = "wp-load.php";
/// The longest way up on which an application is looked for.
const FOLDERS_MAX: usize = 8;
const SCRIPT: &str = ".php";

/// The result of looking up a path.
#[derive(Debug)]
pub(super) enum ScriptLookup {
    /// A script answers.
    Script {
        /// The path of the script, which begins with a slash.
        name: String,
        /// The rest of the request's path, decoded.
        path_info: String,
    },
    /// The path names a file.
    File(Entry),
    /// The path names a folder with an index, without the slash at its end.
    WithSlash,
    /// The path names something that we may not read.
    Forbidden,
    /// The path names nothing, or what is not for the public.
    Nothing,
}

/// Looks up the path of a URI. Nothing is run below the folders `not_run`. Blocks.
pub(super) fn find(root: &Root, path: &str, not_run: &[PathBuf]) -> io::Result<ScriptLookup> {
    match (Lookup { root, not_run }).find(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(ScriptLookup::Forbidden),
        found => found,
    }
}

struct Lookup<'a> {
    root: &'a Root,
    not_run: &'a [PathBuf],
}

impl Lookup<'_> {
    fn find(&self, path: &str) -> io::Result<ScriptLookup> {
        let Some(asked) = target(path) else {
            // No file has such a name, but an application may: `/tag/c%2Fc++/`.
            return if is_suspicious(path) { Ok(ScriptLookup::Nothing) } else { self.front(Path::new("")) };
        };
        if let Some(found) = self.script(&asked.below, asked.slash)? {
            return Ok(found);
        }
        let Some(entry) = self.root.find(&asked.below)? else { return self.front(&asked.below) };
        if entry.metadata.is_dir() {
            return match self.index(&asked.below)? {
                Some(_) if !asked.slash => Ok(ScriptLookup::WithSlash),
                Some(index) => Ok(index),
                None => self.front(&asked.below),
            };
        }
        if asked.slash || !entry.metadata.is_file() {
            return self.front(&asked.below);
        }
        Ok(if !entry.is_secret() && !is_closed(self.root, &entry)? { ScriptLookup::File(entry) } else { ScriptLookup::Nothing })
    }

    /// Returns what answers if a script is named somewhere in the path. Names that only look like one are passed over.
    fn script(&self, below: &Path, slash: bool) -> io::Result<Option<ScriptLookup>> {
        let mut name = PathBuf::new();
        let mut rest = below.iter();
        while let Some(part) = rest.next() {
            name.push(part);
            if !part.as_encoded_bytes().ends_with(SCRIPT.as_bytes()) {
                continue;
            }
            let Some(entry) = self.root.find_file(&name)? else { continue };
            if !self.may_run(&entry) || is_closed(self.root, &entry)? {
                return Ok(Some(ScriptLookup::Nothing));
            }
            let mut path_info: String = rest.flat_map(|part| ["/".into(), part.to_string_lossy()]).collect();
            if slash {
                path_info.push('/');
            }
            return Ok(Some(ScriptLookup::Script { name: absolute(&name), path_info }));
        }
        Ok(None)
    }

    fn index(&self, folder: &Path) -> io::Result<Option<ScriptLookup>> {
        for name in INDEXES {
            let Some(entry) = self.root.find_file(&folder.join(name))? else { continue };
            if !name.ends_with(SCRIPT) {
                return Ok(Some(ScriptLookup::File(entry)));
            }
            if self.may_run(&entry) {
                return Ok(Some(ScriptLookup::Script { name: absolute(&entry.name), path_info: String::new() }));
            }
        }
        Ok(None)
    }

    /// Returns the script of the application to which a path belongs that names no file.
    fn front(&self, below: &Path) -> io::Result<ScriptLookup> {
        let mut folders = Vec::new();
        for folder in below.iter().take(FOLDERS_MAX) {
            let folder = folders.last().map_or_else(PathBuf::new, PathBuf::clone).join(folder);
            // Most addresses begin with a name that no folder has.
            if self.root.find(&folder)?.is_none_or(|entry| !entry.metadata.is_dir()) {
                break;
            }
            folders.push(folder);
        }
        for folder in folders.iter().rev() {
            let Some(front) = self.runs(&folder.join(FRONT))? else { continue };
            if self.root.find_file(&folder.join(WORDPRESS))?.is_some() || leads_to(self.root, folder, FRONT)? {
                return Ok(front);
            }
        }
        Ok(self.runs(FRONT.as_ref())?.unwrap_or(ScriptLookup::Nothing))
    }

    /// Returns the script of this name, if there is one that is run.
    fn runs(&self, name: &Path) -> io::Result<Option<ScriptLookup>> {
        let script = self.root.find_file(name)?.filter(|entry| self.may_run(entry));
        Ok(script.map(|entry| ScriptLookup::Script { name: absolute(&entry.name), path_info: String::new() }))
    }

    /// Returns whether a file is run: not where visitors may leave files, by whatever name it is asked for.
    fn may_run(&self, entry: &Entry) -> bool {
        let real_is_script = entry.real.as_os_str().as_encoded_bytes().ends_with(SCRIPT.as_bytes());
        let has_passwords = [&entry.name, &entry.real].iter().any(|path| path.file_name().is_some_and(is_configuration));
        real_is_script
            && !has_passwords
            && !self.not_run.iter().any(|folders| lies_below(&entry.name, folders) || lies_below(&entry.real, folders))
    }
}

fn absolute(below: &Path) -> String {
    format!("/{}", below.to_string_lossy())
}

/// Returns whether a path that no file can have is one that nobody asks for in good faith: hidden files, the way up, and bytes that end a
/// name for somebody.
fn is_suspicious(path: &str) -> bool {
    let bytes = percent::decoded(path.as_bytes());
    bytes.iter().any(u8::is_ascii_control)
        || bytes.split(|byte| matches!(byte, b'/' | b'\\')).any(|name| is_hidden(std::ffi::OsStr::new(&*String::from_utf8_lossy(name))))
}
