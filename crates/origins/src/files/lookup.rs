//! Finds what a path stands for.
//!
//! | path | answered with | or |
//! |---|---|---|
//! | `/about` | the file `about`, then `about.html` | a redirect to `/about/`, if `about/index.html` is there |
//! | `/about/` | `about/index.html` | a redirect to `/about`, if only `about.html` is there |

use std::{io, path::Path};

use super::{
    path::Target,
    root::{Entry, Root},
    rules::{HEADERS, REDIRECTS},
};

const INDEX: &str = "index.html";

/// The result of looking up a path.
#[derive(Debug)]
pub(super) enum PathLookup {
    /// The path names a file.
    File(Entry),
    /// The path names a folder without an index, and ends with a slash.
    Folder(Entry),
    /// There is something under this path with a slash at its end.
    WithSlash,
    /// There is something under this path without the slash at its end.
    WithoutSlash,
    /// The path names something that we may not read.
    Forbidden,
    /// The path names nothing.
    Nothing,
}

/// Looks a path up. It blocks. A folder without an index is found only where it is `listed`.
pub(super) fn find(root: &Root, target: &Target, listed: bool) -> io::Result<PathLookup> {
    match look(root, target, listed) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(PathLookup::Forbidden),
        found => found,
    }
}

fn look(root: &Root, target: &Target, listed: bool) -> io::Result<PathLookup> {
    let below = target.below.as_path();
    if target.slash {
        if let Some(index) = file(root, &below.join(INDEX))? {
            return Ok(PathLookup::File(index));
        }
        if listed && let Some(folder) = root.find(below)?.filter(|entry| entry.metadata.is_dir()) {
            return Ok(PathLookup::Folder(folder));
        }
        let page = with_html(below);
        return Ok(if page.is_some_and(|page| matches!(file(root, &page), Ok(Some(_)))) {
            PathLookup::WithoutSlash
        } else {
            PathLookup::Nothing
        });
    }
    let named = root.find(below)?;
    let is_folder = named.as_ref().is_some_and(|entry| entry.metadata.is_dir());
    if let Some(entry) = named.filter(|entry| entry.metadata.is_file() && is_public(entry)) {
        return Ok(PathLookup::File(entry));
    }
    if let Some(page) = with_html(below)
        && let Some(entry) = file(root, &page)?
    {
        return Ok(PathLookup::File(entry));
    }
    let has_page = is_folder && (listed || file(root, &below.join(INDEX))?.is_some());
    Ok(if has_page { PathLookup::WithSlash } else { PathLookup::Nothing })
}

fn file(root: &Root, below: &Path) -> io::Result<Option<Entry>> {
    Ok(root.find_file(below)?.filter(is_public))
}

/// Returns whether a file may be served. The files of rules are only for us, by whatever name they are asked for, and source and passwords for nobody.
fn is_public(entry: &Entry) -> bool {
    entry.real != Path::new(REDIRECTS) && entry.real != Path::new(HEADERS) && !entry.is_secret()
}

fn with_html(below: &Path) -> Option<std::path::PathBuf> {
    let mut name = below.file_name()?.to_owned();
    name.push(".html");
    Some(below.with_file_name(name))
}

/// Returns the page of this name in the nearest folder above `below`; for the root, in the root itself.
pub(super) fn nearest(root: &Root, below: &Path, name: &str) -> Option<Entry> {
    below
        .ancestors()
        .skip(1)
        .chain(below.as_os_str().is_empty().then_some(below))
        .find_map(|folder| file(root, &folder.join(name)).ok().flatten())
}
