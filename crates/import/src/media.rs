//! Pictures and other files of the old site: what of them is copied, and where each is now.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use crate::{
    error::ImportError,
    folder::{Folder, is_safe},
    report::{Entry, Outcome, Report},
};

/// The largest number of files that are looked at, and how deeply their folders may be nested.
const FILES_MAX: usize = 200_000;
const DEPTH_MAX: usize = 16;

/// Folders of tools, which are not looked into.
const TOOLS: [&str; 6] = [".git", "node_modules", ".bundle", ".jekyll-cache", ".sass-cache", ".cache"];

/// Extensions of files that the blog sends.
const SENT: [&str; 44] = [
    "avif",
    "bmp",
    "css",
    "csv",
    "epub",
    "flac",
    "gif",
    "gz",
    "htm",
    "html",
    "ico",
    "ics",
    "jpeg",
    "jpg",
    "js",
    "json",
    "jxl",
    "m4a",
    "m4v",
    "mjs",
    "mov",
    "mp3",
    "mp4",
    "oga",
    "ogg",
    "ogv",
    "opus",
    "otf",
    "pdf",
    "png",
    "svg",
    "tgz",
    "ttf",
    "txt",
    "vtt",
    "wasm",
    "wav",
    "webm",
    "webmanifest",
    "webp",
    "woff",
    "woff2",
    "xml",
    "zip",
];

/// The files of the blog, by the addresses that they had.
#[derive(Debug, Default)]
pub(crate) struct Media {
    /// Names in the blog, by old path without the slash before it.
    names: HashMap<String, String>,
    /// Names in the blog, by path in the source of a site. Of generators alone.
    sources: HashMap<String, String>,
}

/// A file that was found.
#[derive(Debug)]
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    /// The path below the folder that was searched.
    pub(crate) name: String,
}

/// Holds what a folder has.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) files: Vec<FoundFile>,
    /// The paths that are not looked into, with the reason.
    pub(crate) skipped: Vec<(String, &'static str)>,
}

/// Lists the files of a folder and of the folders in it. Symbolic links are not followed.
pub(crate) fn list(root: &Path) -> Result<Listing, ImportError> {
    let mut listing = Listing::default();
    let mut open = vec![(root.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = open.pop() {
        let entries = fs::read_dir(&folder).map_err(ImportError::read(&folder))?;
        let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(ImportError::read(&folder))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let own = entry.file_name();
            let Some(own) = own.to_str() else {
                listing.skipped.push((format!("{prefix}{}", own.to_string_lossy()), "its name is not UTF-8"));
                continue;
            };
            let name = format!("{prefix}{own}");
            let kind = entry.file_type().map_err(ImportError::read(&entry.path()))?;
            if kind.is_symlink() {
                listing.skipped.push((name, "a symbolic link"));
            } else if kind.is_dir() {
                if TOOLS.contains(&own) {
                    listing.skipped.push((name, "a folder of tools"));
                } else if depth >= DEPTH_MAX {
                    listing.skipped.push((name, "nested too deeply"));
                } else {
                    open.push((entry.path(), format!("{name}/"), depth + 1));
                }
            } else if kind.is_file() {
                if listing.files.len() == FILES_MAX {
                    let message = format!("has more than {FILES_MAX} files; give a smaller folder");
                    return Err(ImportError::of_file(root, message));
                }
                listing.files.push(FoundFile { path: entry.path(), name });
            }
        }
    }
    listing.files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listing)
}

/// Tells why a file is not copied, by its name.
pub(crate) fn refusal(name: &str) -> Option<&'static str> {
    let leaf = name.rsplit('/').next().unwrap_or(name);
    let extension = leaf.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    if name.split('/').any(|part| part.starts_with(['.', '_']) && part != ".well-known" && part != ".nojekyll") {
        Some("its name begins with a dot or an underscore: such files are never sent")
    } else if !is_safe(name) {
        Some("its name cannot stand in an address")
    } else if !extension.is_some_and(|extension| SENT.contains(&extension.as_str())) {
        Some("not a file of the web")
    } else {
        None
    }
}

impl Media {
    /// Copies the files below `root` to `prefix` in the blog, and notes them in the report. `refused` tells why a file is not wanted.
    pub(crate) fn copy_all(
        &mut self,
        root: &Path,
        prefix: &str,
        refused: impl Fn(&str, &HashSet<&str>) -> Option<&'static str>,
        folder: &mut Folder,
        report: &mut Report,
    ) -> Result<(), ImportError> {
        let listing = list(root)?;
        let names: HashSet<&str> = listing.files.iter().map(|file| file.name.as_str()).collect();
        for file in &listing.files {
            let name = format!("{prefix}{}", file.name);
            match refused(&file.name, &names).or_else(|| refusal(&name)) {
                Some(why) => report.files.push(left(name, why)),
                None => self.copy(&file.path, &name, &name, folder, report)?,
            }
        }
        report.files.extend(listing.skipped.into_iter().map(|(name, why)| left(format!("{prefix}{name}"), why)));
        Ok(())
    }

    /// Copies one file to `name` in the blog. It had the address `old`.
    pub(crate) fn copy(&mut self, from: &Path, old: &str, name: &str, folder: &mut Folder, report: &mut Report) -> Result<(), ImportError> {
        if self.names.contains_key(old) || folder.root().join(name).exists() {
            report.files.push(left(old.to_owned(), "another file has the same address"));
            return Ok(());
        }
        folder.copy(from, name)?;
        self.names.insert(old.to_owned(), name.to_owned());
        report.files.push(Entry { name: old.to_owned(), new: Some(format!("/{name}")), outcome: Outcome::Written, why: None });
        Ok(())
    }

    /// Notes another address that a file had.
    pub(crate) fn insert(&mut self, old: &str, name: &str) {
        self.names.entry(old.to_owned()).or_insert_with(|| name.to_owned());
    }

    /// Notes where a file of a site's source is now.
    pub(crate) fn insert_source(&mut self, source: &str, name: &str) {
        self.sources.insert(source.to_owned(), name.to_owned());
    }

    /// Returns the file that had an address: also that of which a smaller copy had it.
    pub(crate) fn find(&self, path: &str) -> Option<&str> {
        let path = path.trim_start_matches('/');
        let found = |path: &str| self.names.get(path).map(String::as_str);
        found(path).or_else(|| found(&without_ghost_size(path)?)).or_else(|| {
            let (stem, extension) = path.rsplit_once('.')?;
            let whole = without_wordpress_size(stem)?;
            found(&format!("{whole}.{extension}")).or_else(|| found(&format!("{whole}-scaled.{extension}")))
        })
    }

    /// Returns the file that was at a path in the source of a site.
    pub(crate) fn find_source(&self, path: &str) -> Option<&str> {
        self.sources.get(path).map(String::as_str)
    }
}

fn left(name: String, why: &str) -> Entry {
    Entry { name, new: None, outcome: Outcome::LeftOut, why: Some(why.to_owned()) }
}

/// Removes Ghost's `size/w600/` and `format/webp/` from a path.
pub(crate) fn without_ghost_size(path: &str) -> Option<String> {
    let (before, mut rest) = path.split_once("/size/")?;
    rest = rest.split_once('/')?.1;
    if let Some(after) = rest.strip_prefix("format/") {
        rest = after.split_once('/')?.1;
    }
    Some(format!("{before}/{rest}"))
}

/// Removes WordPress's `-300x200` from the end of a name.
pub(crate) fn without_wordpress_size(stem: &str) -> Option<&str> {
    let (whole, size) = stem.rsplit_once('-')?;
    let (width, height) = size.split_once('x')?;
    let is_number = |text: &str| !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(width) && is_number(height)).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_copies_lead_to_the_picture() {
        let names = [
            "content/images/2024/05/a.jpg",
            "wp-content/uploads/b.jpg",
            "wp-content/uploads/c-scaled.jpg",
            "wp-content/uploads/d-10x10.png",
        ];
        let media = Media { names: names.iter().map(|name| ((*name).to_owned(), (*name).to_owned())).collect(), ..Media::default() };
        let cases = [
            ("/content/images/2024/05/a.jpg", Some(0)),
            ("/content/images/size/w600/2024/05/a.jpg", Some(0)),
            ("/content/images/size/w256h256/format/webp/2024/05/a.jpg", Some(0)),
            ("/wp-content/uploads/b-300x200.jpg", Some(1)),
            ("/wp-content/uploads/c-1024x768.jpg", Some(2)),
            ("/wp-content/uploads/d-10x10.png", Some(3)),
            ("/wp-content/uploads/e-300x200.jpg", None),
            ("/wp-content/uploads/../../etc/passwd", None),
        ];
        for (path, expected) in cases {
            assert_eq!(media.find(path), expected.map(|at: usize| names[at]), "{path}");
        }
    }

    #[test]
    fn links_out_of_the_folder_are_not_followed() {
        let root = tempfile::tempdir().expect("a folder");
        fs::write(root.path().join("a.jpg"), "a").expect("written");
        fs::write(root.path().join("a.php"), "a").expect("written");
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("b.jpg")).expect("linked");
        std::os::unix::fs::symlink("/", root.path().join("c")).expect("linked");
        let target = tempfile::tempdir().expect("a folder");
        let mut folder = Folder::new(target.path()).expect("new");
        let (mut media, mut report) = (Media::default(), Report::default());
        media.copy_all(root.path(), "up/", |_, _| None, &mut folder, &mut report).expect("copied");
        let written: Vec<_> = report.files.iter().map(|file| (file.name.as_str(), file.outcome)).collect();
        let left = Outcome::LeftOut;
        assert_eq!(written, [("up/a.jpg", Outcome::Written), ("up/a.php", left), ("up/b.jpg", left), ("up/c", left)]);
        assert_eq!(folder.files(), 1);
    }
}
