//! The files that lie in the blog's folder.
//!
//! Markdown files and files with the extensions in [`PUBLISHED`] are published; everything else stays private: names that begin with a dot
//! (except `.well-known`) or an underscore, `theme/`, `blog.toml`, `seawall.toml`, a `README.md` at the top, and any type not in the list.
//! Folders named `drafts` or `_drafts` are for their authors alone. Symbolic links to files are followed as long as they stay inside the
//! folder; those to folders are not.
//!
//! A look at the folder reads no file: [`Stamp`]s tell which ones have changed. A file that cannot be read is a problem of its own; nothing
//! but the blog's folder itself has to be there.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use origins::{is_secret, media_type};

use crate::{config, error::Problem, markdown::is_markdown};

/// The largest size of a Markdown file, and of all files that say how others are published. A longer one is a mistake, not a post.
pub(crate) const TEXT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The number of files and folders that are looked at.
const FILES_MAX: usize = 50_000;

/// The number of folders inside each other.
const DEPTH_MAX: usize = 16;

/// The folder in which authors override the theme.
const THEME: &str = "theme";

/// File systems count time in steps. A file that is written twice within one step can look as if it was written once. Linux counts in steps
/// of up to 10 ms, so twice that.
const STEP: Duration = Duration::from_millis(20);

/// The longest step, of file systems that count in whole or even seconds.
const LONG_STEP: Duration = Duration::from_secs(2);

/// Tells one version of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
    /// The time at which name, permissions or content last changed: it tells of a copy that kept its date.
    changed: (i64, i64),
    file: (u64, u64),
}

/// A file that was seen and not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The path in the folder, with `/` between names.
    pub(crate) name: String,
    /// The path of the file, links followed.
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
    pub(crate) modified: SystemTime,
    /// Whether it lies in a folder for drafts.
    pub(crate) is_draft: bool,
}

/// The content of the folder, in the order of names.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    /// `blog.toml`.
    pub(crate) config: Option<Listed>,
    /// The Markdown files.
    pub(crate) texts: Vec<Listed>,
    /// The files that are served as they are, with their media types.
    pub(crate) files: Vec<(Listed, &'static str)>,
    /// The files in `theme/`.
    pub(crate) theme: Vec<Listed>,
    /// `_redirects`.
    pub(crate) redirects: Option<Listed>,
    /// `_headers`.
    pub(crate) headers: Option<Listed>,
    pub(crate) problems: Vec<Problem>,
    /// Folders whose content could not be listed, by path in the folder.
    pub(crate) unreadable: Vec<String>,
}

/// The reason why a file could not be read.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    /// It is gone: an editor saved by renaming. The watcher will be back.
    Gone,
    Wrong(Problem),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            file: (metadata.dev(), metadata.ino()),
        }
    }

    /// Makes the stamp of a text that is not a file.
    pub(crate) fn of_text(text: &str) -> Self {
        Self { bytes: text.len() as u64, modified: (0, 0), changed: (0, 0), file: (0, 0) }
    }

    /// Tells whether the file may be written again without getting another stamp, as it was written only just before `now`.
    pub(crate) fn is_fresh(&self, now: SystemTime) -> bool {
        let (secs, nanos) = self.modified;
        let step = if nanos == 0 { LONG_STEP } else { STEP };
        let modified = u64::try_from(secs).ok().zip(u32::try_from(nanos).ok()).map(|(secs, nanos)| UNIX_EPOCH + Duration::new(secs, nanos));
        modified.is_some_and(|modified| modified + step >= now && modified <= now + step)
    }
}

/// Looks at the folder `root`.
///
/// # Errors
/// When the folder itself cannot be listed.
pub(crate) fn look(root: &Path) -> Result<Folder, Problem> {
    let canonical = root.canonicalize().map_err(|error| unreadable(root, &error))?;
    let mut walk = Walk { root: canonical.clone(), count: 0, is_full: false, folder: Folder::default() };
    let names = names_in(&canonical).map_err(|error| unreadable(root, &error))?;
    walk.all(&canonical, names, &CurrentFolder::default());
    Ok(walk.folder)
}

/// Reads a file of text.
pub(crate) fn read(file: &Listed) -> Result<String, ReadFailure> {
    let name = Path::new(&file.name);
    let wrong = |line: Option<usize>, message: String| ReadFailure::Wrong(Problem::new(name, line, message));
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ReadFailure::Gone,
        _ => ReadFailure::Wrong(unreadable(name, &error)),
    };
    let mut content = Vec::new();
    // It may have grown since it was looked at.
    File::open(&file.path).and_then(|opened| opened.take(TEXT_BYTES_MAX + 1).read_to_end(&mut content)).map_err(failed)?;
    if content.len() as u64 > TEXT_BYTES_MAX {
        return Err(wrong(None, format!("larger than {} MiB; split it", TEXT_BYTES_MAX / (1024 * 1024))));
    }
    String::from_utf8(content).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count();
        wrong(Some(line), "not UTF-8; save the file with that encoding".to_owned())
    })
}

/// The folder in which a walk is.
#[derive(Debug, Default)]
struct CurrentFolder {
    /// The path in the folder, with a slash at the end; empty at the top.
    prefix: String,
    depth: usize,
    is_draft: bool,
    is_theme: bool,
}

struct Walk {
    root: PathBuf,
    count: usize,
    /// Whether there are more files than are looked at.
    is_full: bool,
    folder: Folder,
}

impl Walk {
    fn all(&mut self, path: &Path, mut names: Vec<fs::DirEntry>, current: &CurrentFolder) {
        // The order of a directory is the file system's whim; the site must not depend on it.
        names.sort_by_key(fs::DirEntry::file_name);
        for entry in names {
            if self.is_full {
                return;
            }
            let name = entry.file_name();
            let Some(text) = name.to_str().filter(|text| !text.chars().any(char::is_control)) else {
                let name = format!("{}{}", current.prefix, name.to_string_lossy().escape_debug());
                self.wrong(&name, "has a name that cannot stand in an address; rename it in UTF-8 and without control characters");
                continue;
            };
            if is_private(text) {
                continue;
            }
            self.count += 1;
            let name = format!("{}{text}", current.prefix);
            if self.count > FILES_MAX {
                self.is_full = true;
                let limit = format!("more than {FILES_MAX} files: this one and those after it are left out; serve a smaller folder");
                return self.wrong(&name, &limit);
            }
            match self.one(path, &entry, text, &name, current) {
                // Gone between listing and looking: an editor saved by renaming. The watcher will be back.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.folder.problems.push(unreadable(Path::new(&name), &error)),
                Ok(()) => {}
            }
        }
    }

    fn one(&mut self, path: &Path, entry: &fs::DirEntry, text: &str, name: &str, current: &CurrentFolder) -> io::Result<()> {
        let (path, kind) = (path.join(text), entry.file_type()?);
        if kind.is_dir() {
            let is_top = current.depth == 0;
            let is_draft = current.is_draft || is_for_drafts(text);
            if text.starts_with('_') && !is_for_drafts(text) && !current.is_theme {
                return Ok(());
            }
            let is_theme = current.is_theme || is_top && text == THEME;
            let inner = CurrentFolder { prefix: format!("{name}/"), depth: current.depth + 1, is_draft, is_theme };
            self.inner(&path, name, &inner);
            return Ok(());
        }
        // A link may name a file outside; what is outside is not the author's to publish by accident.
        let (path, metadata) = if kind.is_symlink() {
            let real = path.canonicalize()?;
            let is_inside =
                real.strip_prefix(&self.root).is_ok_and(|inside| !inside.iter().any(|part| is_private(&part.to_string_lossy())));
            let metadata = fs::metadata(&real)?;
            if !is_inside || metadata.is_dir() {
                let message = "is a symbolic link out of the blog, or to a folder, so it is not published; put a copy in its place";
                self.folder.problems.push(Problem::warning(Path::new(name), None, message));
                return Ok(());
            }
            (real, metadata)
        } else {
            (path, entry.metadata()?)
        };
        if metadata.is_file() {
            let modified = metadata.modified()?;
            let file = Listed { name: name.to_owned(), path, stamp: Stamp::of(&metadata), modified, is_draft: current.is_draft };
            self.file(file, text, current);
        }
        Ok(())
    }

    fn inner(&mut self, path: &Path, name: &str, current: &CurrentFolder) {
        if current.depth > DEPTH_MAX {
            return self.wrong(name, &format!("more than {DEPTH_MAX} folders inside each other; move it further up"));
        }
        match names_in(path) {
            Ok(names) => self.all(path, names, current),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                self.folder.problems.push(unreadable(Path::new(name), &error));
                self.folder.unreadable.push(current.prefix.clone());
            }
        }
    }

    fn file(&mut self, file: Listed, leaf: &str, current: &CurrentFolder) {
        let folder = &mut self.folder;
        if current.is_theme {
            return folder.theme.push(file);
        }
        if current.depth == 0 {
            match leaf {
                config::FILE_NAME => return folder.config = Some(file),
                "_redirects" => return folder.redirects = Some(file),
                "_headers" => return folder.headers = Some(file),
                "seawall.toml" => return,
                _ if leaf.eq_ignore_ascii_case("README.md") => return,
                _ => {}
            }
        }
        if leaf.starts_with('_') {
            return;
        }
        if is_markdown(leaf) {
            return folder.texts.push(file);
        }
        if [Some(leaf.as_ref()), file.path.file_name()].into_iter().flatten().any(|name| is_secret(name, file.stamp.bytes)) {
            return tracing::debug!(file = file.name, "not published: source, or passwords");
        }
        match content_type(leaf) {
            Some(content_type) => folder.files.push((file, content_type)),
            None => tracing::debug!(file = file.name, "not published: no type of the web"),
        }
    }

    fn wrong(&mut self, name: &str, message: &str) {
        self.folder.problems.push(Problem::new(Path::new(name), None, message));
    }
}

fn names_in(path: &Path) -> io::Result<Vec<fs::DirEntry>> {
    fs::read_dir(path)?.collect()
}

/// Tells whether a file or folder of this name is nobody's business but its programs': editors, git, the desktop.
pub(crate) fn is_private(name: &str) -> bool {
    name.starts_with('.') && name != ".well-known" || name.ends_with('~')
}

fn is_for_drafts(folder: &str) -> bool {
    folder.strip_prefix('_').unwrap_or(folder).eq_ignore_ascii_case("drafts")
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(path, None, format!("cannot be read ({error}); check that it exists and that its permissions let the server in"))
}

/// Lists the extensions of files that belong on a blog. A file with another one is not published.
const PUBLISHED: [&str; 46] = [
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
    "map",
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
    "xsl",
    "zip",
];

/// Returns the media type of a file that belongs on a blog.
pub(crate) fn content_type(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    let is_published = PUBLISHED.iter().any(|published| extension.eq_ignore_ascii_case(published));
    media_type::of_extension(extension).filter(|_| is_published)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the table of media types has beside these is for folders of finished files: drafts and settings are not published.
    #[test]
    fn every_published_file_has_a_type_and_sources_are_not_published() {
        for extension in PUBLISHED {
            assert!(content_type(&format!("a.{extension}")).is_some(), "{extension}");
        }
        assert_eq!(content_type("A.PNG"), Some("image/png"));
        for name in ["post.md", "post.markdown", "blog.toml", "a.yaml", "a.log", "a", "png", "a.unheard-of"] {
            assert_eq!(content_type(name), None, "{name}");
        }
    }

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for name in names {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("inside")).expect("made");
            fs::write(path, "x").expect("written");
        }
        root
    }

    fn names<'f>(files: impl IntoIterator<Item = &'f Listed>) -> Vec<&'f str> {
        files.into_iter().map(|file| file.name.as_str()).collect()
    }

    #[test]
    fn private_files_stay_private() {
        let outside = folder(&["secret.txt", "post.md"]);
        let root = folder(&[
            "a.md",
            "README.md",
            "seawall.toml",
            "blog.toml",
            ".env",
            "dump.sql",
            "a.md~",
            "cat.JPG",
            ".git/config.txt",
            ".well-known/security.txt",
            "posts/README.md",
            "_hidden.md",
            "_redirects",
            "_headers",
            "_site/a.md",
            "posts/_redirects",
            "posts/_hidden/a.md",
            "theme/post.html",
            "theme/_parts/x.html",
            "posts/theme/dark.md",
        ]);
        let link = |from: &Path, to: &str| std::os::unix::fs::symlink(from, root.path().join(to)).expect("linked");
        link(&outside.path().join("secret.txt"), "link.txt");
        link(&outside.path().join("post.md"), "link.md");
        link(&root.path().join(".git/config.txt"), "inner.txt");
        link(&root.path().join("cat.JPG"), "cat.png");
        link(&root.path().join("gone.png"), "broken.png");
        link(root.path(), "loop");
        link(outside.path(), "out");
        let folder = look(root.path()).expect("looked at");
        assert_eq!(names(&folder.texts), ["a.md", "posts/README.md", "posts/theme/dark.md"]);
        assert_eq!(names(folder.files.iter().map(|(file, _)| file)), [".well-known/security.txt", "cat.JPG", "cat.png"]);
        assert_eq!(names(&folder.theme), ["theme/_parts/x.html", "theme/post.html"]);
        assert_eq!(
            names([&folder.config, &folder.redirects, &folder.headers].into_iter().flatten()),
            ["blog.toml", "_redirects", "_headers"]
        );
        let told: Vec<_> = folder.problems.iter().map(|problem| (problem.is_warning(), problem.to_string())).collect();
        assert_eq!(told.len(), 5, "{told:?}");
        for (name, (is_warning, text)) in ["inner.txt", "link.md", "link.txt", "loop", "out"].iter().zip(&told) {
            assert!(*is_warning && text.starts_with(&format!("{name}: is a symbolic link")), "{told:?}");
        }
    }

    #[test]
    fn what_lies_in_a_folder_for_drafts_is_for_authors() {
        let root = folder(&[
            "a.md",
            "drafts/b.md",
            "drafts/c/c.md",
            "drafts/c/cat.png",
            "drafts/_old/x.md",
            "posts/drafts/d.md",
            "_drafts/e.md",
            "Drafts2/f.md",
        ]);
        let folder = look(root.path()).expect("looked at");
        let drafts: Vec<_> = folder.texts.iter().filter(|file| file.is_draft).collect();
        assert_eq!(names(drafts), ["_drafts/e.md", "drafts/b.md", "drafts/c/c.md", "posts/drafts/d.md"]);
        assert!(folder.files.iter().all(|(file, _)| file.is_draft));
    }

    #[test]
    fn what_cannot_be_read_is_named_and_the_rest_lives() {
        let root = folder(&["ok.md", "bad\u{1}name.md"]);
        fs::write(root.path().join("a.md"), b"one\ntwo \xff").expect("written");
        fs::write(root.path().join("long.md"), vec![b'x'; usize::try_from(TEXT_BYTES_MAX).expect("fits") + 1]).expect("written");
        let deep = root.path().join("d/".repeat(DEPTH_MAX + 1));
        fs::create_dir_all(&deep).expect("made");
        fs::write(deep.join("deep.md"), "x").expect("written");
        let folder = look(root.path()).expect("looked at");
        assert_eq!(names(&folder.texts), ["a.md", "long.md", "ok.md"]);
        let told: Vec<_> = folder.problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("bad\\u{1}name.md: has a name that cannot stand in an address"), "{told:?}");
        assert!(told[1].contains("more than 16 folders inside each other"), "{told:?}");
        let read = |index: usize| match read(&folder.texts[index]) {
            Ok(text) => text,
            Err(ReadFailure::Wrong(problem)) => problem.to_string(),
            Err(ReadFailure::Gone) => "gone".to_owned(),
        };
        assert_eq!(read(0), "a.md:2: not UTF-8; save the file with that encoding");
        assert_eq!(read(1), "long.md: larger than 4 MiB; split it");
        assert_eq!(read(2), "x");
        fs::remove_file(root.path().join("ok.md")).expect("removed");
        assert_eq!(read(2), "gone");
        assert!(look(&root.path().join("gone")).expect_err("no folder").message.contains("cannot be read"));
    }

    /// A file is judged as git judges its index: what was written just now may be written once more within the same tick of the file
    /// system's clock.
    #[test]
    fn a_file_that_was_written_just_now_is_not_trusted_to_have_another_stamp_next_time() {
        let at = |secs: u64, nanos: i64| Stamp { modified: (i64::try_from(secs).expect("fits"), nanos), ..Stamp::of_text("") };
        let now = UNIX_EPOCH + Duration::new(1000, 500_000_000);
        let cases = [
            (at(1000, 499_000_000), true),
            (at(1000, 501_000_000), true),
            (at(1000, 400_000_000), false),
            (at(999, 1), false),
            // A file system that counts seconds.
            (at(999, 0), true),
            (at(998, 0), false),
            (at(2000, 1), false),
        ];
        for (stamp, expected) in cases {
            assert_eq!(stamp.is_fresh(now), expected, "{stamp:?}");
        }
    }
}
