//! What lies in the blog's folder.
//!
//! Markdown files and files with the extensions in [`PUBLISHED`] are published; everything else stays private: names that begin with a dot
//! (except `.well-known`), `blog.toml`, `seawall.toml`, a `README.md` at the top, and any type not in the list. Symbolic links to
//! files are followed as long as they stay inside the folder; those to folders are not.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use bytes::Bytes;
use origins::{is_secret, media_type};
use semantics::Timestamp;

use crate::{HELD_BYTES_MAX, HELD_FILE_BYTES_MAX, config, error::Problem, markdown::is_markdown};

/// The largest size of a Markdown file. A longer one is a mistake, not a post.
const MARKDOWN_BYTES_MAX: u64 = 4 * 1024 * 1024;
const FILES_MAX: usize = 50_000;
const DEPTH_MAX: usize = 16;

/// A Markdown file.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path in the folder, with `/` between names.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) modified: Timestamp,
}

/// A file that is served as it is.
#[derive(Debug)]
pub(crate) struct StaticFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) content_type: &'static str,
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
    /// The content, if it is held in memory.
    pub(crate) body: Option<Bytes>,
}

/// The content of the folder, read once.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    pub(crate) config: Option<String>,
    pub(crate) sources: Vec<Source>,
    pub(crate) files: Vec<StaticFile>,
    /// The time of the last change of anything in the folder.
    pub(crate) newest: Timestamp,
}

/// Reads the folder `root`. Every file that cannot be read is a problem of its own.
#[expect(clippy::disallowed_methods, reason = "files carry the machine's time, and are compared with it")]
pub(crate) fn read(root: &Path) -> Result<Folder, Vec<Problem>> {
    let canonical = root.canonicalize().map_err(|error| vec![unreadable(root, &error)])?;
    let mut walk =
        Walk { root: canonical.clone(), now: SystemTime::now(), held: 0, count: 0, folder: Folder::default(), problems: Vec::new() };
    walk.folder(&canonical, "", 0);
    if walk.problems.is_empty() { Ok(walk.folder) } else { Err(walk.problems) }
}

struct Walk {
    root: PathBuf,
    now: SystemTime,
    held: u64,
    count: usize,
    folder: Folder,
    problems: Vec<Problem>,
}

impl Walk {
    fn folder(&mut self, path: &Path, prefix: &str, depth: usize) {
        let mut names: Vec<_> = match fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
            Ok(found) => found.into_iter().map(|found| found.file_name()).collect(),
            Err(error) => return self.problems.push(unreadable(Path::new(if prefix.is_empty() { "." } else { prefix }), &error)),
        };
        // A file that was removed leaves its trace here alone.
        if let Ok(modified) = fs::metadata(path).and_then(|metadata| metadata.modified()) {
            self.folder.newest = self.folder.newest.max(modified.min(self.now).into());
        }
        // The order of a directory is the file system's whim; the site must not depend on it.
        names.sort();
        for name in names {
            let Some(text) = name.to_str() else { continue };
            let is_ours = prefix.is_empty() && (text == "seawall.toml" || text.eq_ignore_ascii_case("README.md"));
            if is_hidden(text) || is_ours || text.chars().any(char::is_control) {
                continue;
            }
            let name = if prefix.is_empty() { text.to_owned() } else { format!("{prefix}/{text}") };
            self.count += 1;
            if self.count > FILES_MAX || depth > DEPTH_MAX {
                let limit = format!("more than {FILES_MAX} files or {DEPTH_MAX} folders deep; serve a smaller folder");
                return self.problems.push(Problem::new(Path::new(&name), None, limit));
            }
            self.one(&path.join(text), name, depth);
        }
    }

    fn one(&mut self, path: &Path, name: String, depth: usize) {
        // A link may name a file outside; what is outside is not the author's to publish by accident.
        let Ok(real) = path.canonicalize() else { return };
        let Ok(inside) = real.strip_prefix(&self.root) else {
            tracing::debug!(file = name, "skipped: a symbolic link out of the blog");
            return;
        };
        if inside.iter().any(|part| is_hidden(&part.to_string_lossy())) {
            return;
        }
        let metadata = match fs::metadata(&real) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.problems.push(unreadable(Path::new(&name), &error)),
        };
        if metadata.is_dir() {
            // A link to a folder above it would never end.
            let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
            return if is_link { tracing::debug!(file = name, "skipped: a link to a folder") } else { self.folder(path, &name, depth + 1) };
        }
        if !metadata.is_file() {
            return;
        }
        // An origin must not send a Last-Modified that lies ahead (RFC 9110 §8.8.2.1).
        let modified = metadata.modified().unwrap_or(self.now).min(self.now);
        let result = if name == config::FILE_NAME || is_markdown(&name) {
            self.text(&real, &name, modified, metadata.len())
        } else {
            self.file(real, &name, modified, metadata.len())
        };
        match result {
            Ok(()) => self.folder.newest = self.folder.newest.max(modified.into()),
            // Gone between listing and reading: an editor saved by renaming. The watcher will be back.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.problems.push(unreadable(Path::new(&name), &error)),
        }
    }

    fn text(&mut self, path: &Path, name: &str, modified: SystemTime, bytes: u64) -> io::Result<()> {
        if bytes > MARKDOWN_BYTES_MAX {
            let message = format!("larger than {} MiB; split it", MARKDOWN_BYTES_MAX / (1024 * 1024));
            self.problems.push(Problem::new(Path::new(name), None, message));
            return Ok(());
        }
        let content = fs::read(path)?;
        let text = String::from_utf8(content).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count();
            self.problems.push(Problem::new(Path::new(name), line, "not UTF-8; save the file with that encoding"));
        });
        let Ok(text) = text else { return Ok(()) };
        if name == config::FILE_NAME {
            self.folder.config = Some(text);
        } else {
            self.folder.sources.push(Source { name: name.to_owned(), text, modified: modified.into() });
        }
        Ok(())
    }

    fn file(&mut self, path: PathBuf, name: &str, modified: SystemTime, bytes: u64) -> io::Result<()> {
        let leaf = name.rsplit('/').next().unwrap_or(name);
        if [Some(leaf.as_ref()), path.file_name()].into_iter().flatten().any(|name| is_secret(name, bytes)) {
            tracing::debug!(file = name, "not published: source, or passwords");
            return Ok(());
        }
        let Some(content_type) = content_type(name) else {
            tracing::debug!(file = name, "not published: no type of the web");
            return Ok(());
        };
        let is_held = bytes <= HELD_FILE_BYTES_MAX && self.held + bytes <= HELD_BYTES_MAX;
        let body = if is_held { Some(Bytes::from(fs::read(&path)?)) } else { None };
        self.held += body.as_ref().map_or(0, |body| body.len() as u64);
        self.folder.files.push(StaticFile { name: name.to_owned(), path, content_type, bytes, modified, body });
        Ok(())
    }
}

/// Tells whether a file or folder of this name stays out of the site.
pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') && name != ".well-known" || name.ends_with('~')
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

    #[test]
    fn private_files_stay_private() {
        let root = tempfile::tempdir().expect("a folder");
        let outside = tempfile::tempdir().expect("another");
        fs::write(outside.path().join("secret.txt"), "s").expect("written");
        for (name, text) in [
            ("a.md", "x"),
            ("README.md", "x"),
            ("seawall.toml", "x"),
            ("blog.toml", "x"),
            (".env", "x"),
            ("dump.sql", "x"),
            ("a.md~", "x"),
            ("cat.JPG", "x"),
            (".git/config.txt", "x"),
            (".well-known/security.txt", "x"),
            ("posts/README.md", "x"),
        ] {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("inside")).expect("made");
            fs::write(path, text).expect("written");
        }
        let link = |from: &Path, to: &str| std::os::unix::fs::symlink(from, root.path().join(to)).expect("linked");
        link(&outside.path().join("secret.txt"), "link.txt");
        link(&root.path().join(".git/config.txt"), "inner.txt");
        link(root.path(), "loop");
        let folder = read(root.path()).expect("read");
        let names: Vec<_> = folder.sources.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["a.md", "posts/README.md"]);
        let files: Vec<_> = folder.files.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(files, [".well-known/security.txt", "cat.JPG"]);
    }

    #[test]
    fn large_files_are_not_held() {
        let root = tempfile::tempdir().expect("a folder");
        let size = usize::try_from(HELD_FILE_BYTES_MAX).expect("fits");
        fs::write(root.path().join("a.png"), vec![0; size]).expect("written");
        fs::write(root.path().join("b.png"), vec![0; size + 1]).expect("written");
        let folder = read(root.path()).expect("read");
        assert_eq!(folder.files.iter().map(|f| f.body.is_some()).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        fs::write(root.path().join("a.md"), b"one\ntwo \xff").expect("written");
        let problems = read(root.path()).expect_err("not UTF-8");
        assert_eq!(problems[0].to_string(), "a.md:2: not UTF-8; save the file with that encoding");
        assert!(read(&root.path().join("gone")).expect_err("no folder")[0].message.contains("cannot be read"));
    }
}
