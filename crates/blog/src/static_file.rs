//! The files that are served as they are.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Cursor, Read as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;

use crate::{
    HELD_BYTES_MAX, HELD_FILE_BYTES_MAX,
    digest::{entity_tag, fingerprint},
    error::Problem,
    folder::{Listed, Stamp},
    gallery::is_picture,
    targets::Target,
};

/// A file that is served as it is.
#[derive(Debug, Clone)]
pub(crate) struct StaticFile {
    /// The path in the folder, with `/` between names.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) content_type: &'static str,
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
    pub(crate) etag: String,
    /// The content, if it is held in memory.
    pub(crate) body: Option<Bytes>,
    /// Whether it lies in a folder for drafts.
    pub(crate) is_draft: bool,
    /// Whether it is sent without the metadata of its pictures.
    pub(crate) is_cleaned: bool,
    pub(crate) stamp: Stamp,
}

impl StaticFile {
    /// Returns the address of the file, not percent-encoded.
    pub(crate) fn address(&self) -> String {
        format!("/{}", self.name)
    }

    /// Returns what a link to the file leads to. With `drafts`, files for authors alone are published, too.
    pub(crate) fn target(&self, drafts: bool) -> Target {
        let is_published = drafts || !self.is_draft;
        Target { address: self.address(), is_published, is_left_out: false, version: fingerprint(&self.stamp), picture: None }
    }
}

/// The files that were read, by path in the folder.
#[derive(Debug, Default)]
pub(crate) struct Files {
    remembered: HashMap<String, RememberedFile>,
    /// The pictures that are not published, as their metadata cannot be told from their pixels.
    left_out: HashMap<String, LeftOutFile>,
    /// Whether pictures are sent without their metadata.
    cleans: bool,
}

#[derive(Debug)]
struct RememberedFile {
    /// Whether another version of the file would have another stamp.
    is_settled: bool,
    file: StaticFile,
}

#[derive(Debug)]
struct LeftOutFile {
    is_settled: bool,
    stamp: Stamp,
    problem: Problem,
}

impl Files {
    /// Returns what links to the pictures that are left out lead to, by path in the folder. Their fault is told, so links to them are none.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (String, Target)> {
        self.left_out.iter().map(|(name, LeftOutFile { stamp, .. })| {
            let version = fingerprint(stamp);
            (name.clone(), Target { address: format!("/{name}"), is_published: true, is_left_out: true, version, picture: None })
        })
    }

    /// Tells whether a file is a picture that is left out.
    pub(crate) fn is_left_out(&self, name: &str) -> bool {
        self.left_out.contains_key(name)
    }

    /// Sets whether pictures are sent without their metadata.
    pub(crate) fn clean(&mut self, cleans: bool) {
        if self.cleans != cleans {
            *self = Self { cleans, ..Self::default() };
        }
    }

    /// Reads those of the files that have changed and are held in memory, and looks at the pictures among the others. Tells about those that cannot be
    /// read or cleaned, and leaves them out.
    pub(crate) fn read(&mut self, listed: Vec<(Listed, &'static str)>, clock: SystemTime, problems: &mut Vec<Problem>) -> Vec<StaticFile> {
        let mut before = std::mem::take(&mut self.remembered);
        let mut left_out_before = std::mem::take(&mut self.left_out);
        let mut files = Vec::with_capacity(listed.len());
        let mut held = 0;
        for (file, content_type) in listed {
            let is_held = file.stamp.bytes <= HELD_FILE_BYTES_MAX && held + file.stamp.bytes <= HELD_BYTES_MAX;
            let holds = |known: &RememberedFile| known.is_settled && known.file.stamp == file.stamp && known.file.body.is_some() == is_held;
            let is_settled = !file.stamp.is_fresh(clock);
            let (name, stamp) = (file.name.clone(), file.stamp);
            if let Some(known) = left_out_before.remove(&name).filter(|known| known.is_settled && known.stamp == stamp) {
                problems.push(known.problem.clone());
                self.left_out.insert(name, known);
                continue;
            }
            let remembered = match before.remove(&name).filter(holds) {
                Some(known) => known,
                None => match read(file, content_type, is_held, self.cleans && is_picture(content_type)) {
                    Ok(file) => RememberedFile { is_settled, file },
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => {
                        let problem = unread(&name, &error);
                        problems.push(problem.clone());
                        if fault_of(&error).is_some() {
                            self.left_out.insert(name, LeftOutFile { is_settled, stamp, problem });
                        }
                        continue;
                    }
                },
            };
            held += remembered.file.body.as_ref().map_or(0, |body| body.len() as u64);
            files.push(remembered.file.clone());
            self.remembered.insert(name, remembered);
        }
        files
    }
}

fn read(file: Listed, content_type: &'static str, is_held: bool, is_cleaned: bool) -> io::Result<StaticFile> {
    let Listed { name, path, stamp, modified, is_draft } = file;
    let mut body = None;
    if is_held {
        let mut content = Vec::new();
        // It may have grown since it was looked at.
        File::open(&path)?.take(HELD_FILE_BYTES_MAX + 1).read_to_end(&mut content)?;
        body = Some(content)
            .filter(|content| content.len() as u64 <= HELD_FILE_BYTES_MAX)
            .map(|content| if is_cleaned { cleaned(content) } else { Ok(content) })
            .transpose()?
            .map(Bytes::from);
    } else if is_cleaned {
        pictures::check_clean(File::open(&path)?).map_err(io::Error::other)?;
    }
    let etag = body.as_ref().map_or_else(
        || {
            // Hashing gigabytes at every start would cost more than it tells: nanoseconds and length change with the content.
            let nanos = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
            // The number rises when more is taken out of pictures than before: what readers have is then no longer the same.
            format!("\"{nanos:x}-{:x}{}\"", stamp.bytes, if is_cleaned { "-c4" } else { "" })
        },
        |body| entity_tag(body),
    );
    let bytes = body.as_ref().map_or(stamp.bytes, |body| body.len() as u64);
    Ok(StaticFile { name, path, content_type, bytes, modified, etag, body, is_draft, is_cleaned, stamp })
}

/// Describes why a file is left out.
pub(crate) fn unread(name: &str, error: &io::Error) -> Problem {
    // A picture is no mere bytes: what may say where it was taken is told apart from its pixels.
    let what = match fault_of(error) {
        Some(fault) => format!("{fault}, so it is left out: its metadata cannot be told from its pixels; save it anew"),
        None => format!("cannot be read ({error}); check its permissions"),
    };
    Problem::new(Path::new(name), None, what)
}

/// Returns why a picture cannot be cleaned, if that is the error.
fn fault_of(error: &io::Error) -> Option<&pictures::Fault> {
    error.get_ref()?.downcast_ref()
}

/// Returns a picture without its metadata.
///
/// # Errors
/// When its metadata cannot be told from its pixels: then it must not be published.
pub(crate) fn cleaned(content: Vec<u8>) -> io::Result<Vec<u8>> {
    let plan = pictures::clean(Cursor::new(&content)).map_err(io::Error::other)?;
    if plan.is_whole(content.len() as u64) { Ok(content) } else { plan.of(&content).map_err(io::Error::other) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::folder;

    /// A look at the folder that finds the same files costs no reading of a large picture, and what is wrong with one is not forgotten.
    #[test]
    fn a_picture_is_looked_at_once() {
        let root = tempfile::tempdir().expect("a folder");
        let old = UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        let size = usize::try_from(HELD_FILE_BYTES_MAX).expect("fits") + 1;
        for (name, start) in [("good.png", "\u{89}PNG"), ("large.jpg", "II*\0"), ("small.jpg", "MM\0*")] {
            let start: Vec<u8> = start.chars().map(|c| u8::try_from(u32::from(c)).expect("Latin-1")).chain(*b"\r\n\x1a\n").collect();
            let zeros = vec![0; if name == "small.jpg" { 9 } else { size }];
            fs::write(root.path().join(name), [start, zeros].concat()).expect("written");
            File::options().write(true).open(root.path().join(name)).and_then(|file| file.set_modified(old)).expect("dated");
        }
        let clock = old + std::time::Duration::from_secs(3600);
        let mut files = Files::default();
        files.clean(true);
        let listed = folder::look(root.path()).expect("looked at").files;
        // Whoever reads these finds nothing.
        let gone: Vec<_> = listed.iter().map(|(file, kind)| (Listed { path: "/nowhere".into(), ..file.clone() }, *kind)).collect();
        for listed in [listed, gone] {
            let mut problems = Vec::new();
            let read = files.read(listed, clock, &mut problems);
            assert_eq!(read.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["good.png"]);
            assert_eq!(problems.len(), 2, "{problems:?}");
            let mut left_out: Vec<_> = files.left_out().map(|(name, _)| name).collect();
            left_out.sort();
            assert_eq!(left_out, ["large.jpg", "small.jpg"]);
        }
    }

    #[test]
    fn large_files_are_not_held_and_unchanged_ones_are_not_read_again() {
        let root = tempfile::tempdir().expect("a folder");
        let size = usize::try_from(HELD_FILE_BYTES_MAX).expect("fits");
        let old = UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        for (name, size) in [("a.png", size), ("b.png", size + 1)] {
            fs::write(root.path().join(name), vec![0; size]).expect("written");
            File::options().write(true).open(root.path().join(name)).and_then(|file| file.set_modified(old)).expect("dated");
        }
        let (mut files, mut problems) = (Files::default(), Vec::new());
        let clock = old + std::time::Duration::from_secs(3600);
        let mut read = || files.read(folder::look(root.path()).expect("looked at").files, clock, &mut problems);
        let first = read();
        assert_eq!(first.iter().map(|file| file.body.is_some()).collect::<Vec<_>>(), [true, false]);
        let second = read();
        assert_eq!(first[0].body.as_ref().map(|body| body.as_ptr()), second[0].body.as_ref().map(|body| body.as_ptr()), "the same memory");
        fs::write(root.path().join("a.png"), "other").expect("written");
        assert_eq!(read()[0].body.as_deref(), Some(&b"other"[..]));
        assert_eq!(problems, []);
    }
}
