//! The site as a folder that any server serves: every address as a file, byte for byte what is served live.
//!
//! A folder is written in full before it has its name. One that was written before is brought up to date in place: what pages need first,
//! pages next, and what is gone is removed last. Each file is replaced whole. [`MARKER`] lists what was written, so nothing else is ever removed, and says
//! whether it was written to the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Component, Path, PathBuf},
};

use bytes::Bytes;
use origins::media_type;

use crate::{
    answer::{MARKDOWN_NAME, NOT_FOUND_PATH},
    blog::Blog,
    card::{self, Card},
    gallery::WantedVariant,
    large_file::{LargeFile, OpenFile},
    site::{PageKind, Site, SiteResource},
    slug::encode_path,
};

/// The file that says that a folder was written here, and lists what was written.
const MARKER: &str = ".seawall-build";
const MARKER_HEAD: &str = "This folder was written by `seawall build`, which replaces and removes the files below.";
const COMPLETE: &str = "complete";
const INCOMPLETE: &str = "incomplete: it was interrupted, so run it again";

/// The most addresses with a media type of their own that are listed one by one.
const TYPES_MAX: usize = 20;

const REDIRECTS: &str = "_redirects";
const HEADERS: &str = "_headers";

/// Says what was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// The number of files of the site.
    pub files: usize,
    /// The number of those that were new or different, and so were written.
    pub written: usize,
    /// The number of files that were written before and are no longer part of the site.
    pub removed: usize,
}

/// The reason why a site was not written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The folder has something in it that was not written here.
    #[error("{} is not empty, and `seawall build` has not written it; name an empty folder, or one that does not exist yet", .0.display())]
    NotOurs(PathBuf),
    /// The folder and the blog's own lie within each other.
    #[error("{} and the blog's folder lie within each other; name a folder elsewhere", .0.display())]
    Within(PathBuf),
    /// An address cannot be the name of a file, or two cannot be in one folder.
    #[error("the address {path} cannot be a file: {why}")]
    Address {
        /// The address.
        path: String,
        /// The reason.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// The content of a file.
enum Content {
    Held(Bytes),
    /// It is too large to hold.
    At(LargeFile),
    /// It is drawn when it is written. Its address is that of what is on it, so one that is there need not be drawn again.
    Drawn(Card),
    /// It is made when it is written.
    Picture(WantedVariant),
}

impl Blog {
    /// Writes the site into the folder `into`, with absolute addresses that begin with `base` unless the blog's settings name another. It reads and writes
    /// files, so do not call it on a worker's loop.
    ///
    /// # Errors
    /// When the folder is not empty and was not written by this, or a file cannot be written.
    pub fn export(&self, into: &Path, base: &str) -> Result<Exported, ExportError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ExportError::File { path, source }
        };
        let source = self.folder().canonicalize().map_err(failed(self.folder()))?;
        let parent = into.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(parent).map_err(failed(parent))?;
        let name = into.file_name();
        let real = match (into.canonicalize(), name) {
            (Ok(real), _) => real,
            (Err(_), Some(name)) => parent.canonicalize().map_err(failed(parent))?.join(name),
            (Err(error), None) => return Err(failed(into)(error)),
        };
        let before = written_into(&real, &source, into)?;
        let files = files(&self.site(), &self.own(REDIRECTS)?, &self.own(HEADERS)?, base)?;
        if let Some(before) = before {
            return bring_up_to_date(&real, &files, before);
        }
        // Nobody takes half of it for the whole.
        let mut new = real.clone().into_os_string();
        new.push(format!(".new-{}", std::process::id()));
        let new = PathBuf::from(new);
        fs::create_dir(&new).map_err(failed(&new))?;
        let written = bring_up_to_date(&new, &files, BTreeSet::new());
        let put = written.and_then(|written| {
            // An empty folder is replaced.
            fs::rename(&new, &real).map_err(failed(into))?;
            Ok(written)
        });
        if put.is_err() {
            let _ = fs::remove_dir_all(&new);
        }
        put
    }

    /// Returns the author's own text of this name; an empty one if there is none.
    fn own(&self, name: &str) -> Result<String, ExportError> {
        let path = self.folder().join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(source) => Err(ExportError::File { path, source }),
        }
    }
}

/// Returns why the site of the blog in the folder `from` could not be written into `into`, as far as that is known before the blog is read.
///
/// # Errors
/// When the folder is not empty and was not written by [`Blog::export`], or one of the folders lies within the other.
pub fn check_export(from: &Path, into: &Path) -> Result<(), ExportError> {
    let real = into.ancestors().find_map(|there| {
        let folder = if there.as_os_str().is_empty() { Path::new(".") } else { there };
        Some(folder.canonicalize().ok()?.join(into.strip_prefix(there).ok()?))
    });
    // What cannot be told yet is told by the export.
    let (Ok(source), Some(real)) = (from.canonicalize(), real) else { return Ok(()) };
    written_into(&real, &source, into).map(drop)
}

/// Returns what was written into the folder `real` before, if it is not empty. `into` is what it was called.
fn written_into(real: &Path, source: &Path, into: &Path) -> Result<Option<BTreeSet<String>>, ExportError> {
    if real.starts_with(source) || source.starts_with(real) {
        return Err(ExportError::Within(into.to_owned()));
    }
    let is_empty = match fs::read_dir(real) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(source) => return Err(ExportError::File { path: into.to_owned(), source }),
    };
    if is_empty {
        return Ok(None);
    }
    written_before(real).map(Some).ok_or_else(|| ExportError::NotOurs(into.to_owned()))
}

/// Returns every file of the site by its path in the folder, with `/` between names.
fn files(site: &Site, redirects: &str, headers: &str, base: &str) -> Result<BTreeMap<String, Content>, ExportError> {
    let mut files = BTreeMap::new();
    let mut moved = String::from("/page/1 / 301\n");
    let (mut immutable, mut types) = (BTreeSet::new(), BTreeMap::new());
    for (path, kind) in site.addresses() {
        let name = name_of(path)?;
        let (content_type, content) = match site.find(path, base) {
            Some(SiteResource::Page(page)) => (page.content_type, Content::Held(page.body)),
            Some(SiteResource::File(file)) => (file.content_type, Content::At(file.clone())),
            Some(SiteResource::Picture(wanted)) => (wanted.content_type(), Content::Picture(wanted.clone())),
            Some(SiteResource::Card(card)) => (card::MEDIA_TYPE, Content::Drawn(card)),
            Some(SiteResource::Moved(to)) => {
                let _ = writeln!(moved, "{} {} 301", encode_path(path), encode_path(to));
                continue;
            }
            None => continue,
        };
        if kind.is_immutable() {
            immutable.insert(path.split('/').nth(1).unwrap_or_default().to_owned());
        }
        if content_type != media_type::of_file(Path::new(&name)) {
            types.insert(path.to_owned(), content_type);
        }
        if matches!(kind, PageKind::Post | PageKind::Page)
            && path.ends_with('/')
            && let Some(markdown) = site.markdown(path, base)
        {
            files.insert(name_of(&format!("{path}{MARKDOWN_NAME}"))?, Content::Held(markdown.body));
        }
        files.insert(name, content);
    }
    files.entry(name_of(NOT_FOUND_PATH)?).or_insert_with(|| Content::Held(site.not_found(base).body));
    files.insert(REDIRECTS.to_owned(), Content::Held((moved + redirects).into()));
    files.insert(HEADERS.to_owned(), Content::Held((fields(&immutable, &types) + headers).into()));
    Ok(files)
}

/// Writes the lines of `_headers` that say what a server cannot know of the names.
fn fields(immutable: &BTreeSet<String>, types: &BTreeMap<String, &'static str>) -> String {
    let mut lines = String::new();
    for folder in immutable {
        let _ = writeln!(lines, "/{folder}/*\n  Cache-Control: public, max-age=31536000, immutable");
    }
    // With a feed for each of a thousand tags, one line for their name is enough.
    let mut by_name: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (path, content_type) in types {
        by_name.entry((path.rsplit('/').next().unwrap_or(path), content_type)).or_default().push(path);
    }
    for ((name, content_type), paths) in by_name {
        let patterns =
            if paths.len() > TYPES_MAX { vec![format!("/*{}", encode_path(name))] } else { paths.into_iter().map(encode_path).collect() };
        for pattern in patterns {
            let _ = writeln!(lines, "{pattern}\n  Content-Type: {content_type}");
        }
    }
    lines
}

/// Returns the name of the file for an address.
fn name_of(path: &str) -> Result<String, ExportError> {
    let name = path.trim_start_matches('/');
    let is_plain = |name: &str| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain(name) || name.contains("//") {
        return Err(ExportError::Address { path: path.to_owned(), why: "it leads out of the folder".to_owned() });
    }
    Ok(if name.is_empty() || name.ends_with('/') { format!("{name}index.html") } else { name.to_owned() })
}

/// Returns the files that were written into the folder before; `None` if it was not written here.
fn written_before(folder: &Path) -> Option<BTreeSet<String>> {
    let text = fs::read_to_string(folder.join(MARKER)).ok()?;
    let mut lines = text.lines();
    (lines.next()? == MARKER_HEAD).then(|| lines.skip(1).map(str::to_owned).filter(|name| name_of(&format!("/{name}")).is_ok()).collect())
}

fn bring_up_to_date(folder: &Path, files: &BTreeMap<String, Content>, before: BTreeSet<String>) -> Result<Exported, ExportError> {
    let all: BTreeSet<&str> = files.keys().map(String::as_str).chain(before.iter().map(String::as_str)).collect();
    write_marker(folder, INCOMPLETE, all.into_iter())?;
    let mut exported = Exported { files: files.len(), ..Exported::default() };
    let gone: Vec<&String> = before.iter().filter(|name| !files.contains_key(*name)).collect();
    // A page may stand where a folder stood, or the other way round.
    let is_in_the_way =
        |name: &str| files.keys().any(|file| file.starts_with(&format!("{name}/")) || name.starts_with(&format!("{file}/")));
    for name in gone.iter().filter(|name| is_in_the_way(name)) {
        exported.removed += usize::from(remove(folder, name)?);
    }
    let is_page = |name: &str| name.ends_with(".html") || name.ends_with(".xml");
    for pages in [false, true] {
        for (name, content) in files.iter().filter(|(name, _)| is_page(name) == pages) {
            exported.written += usize::from(put(folder, name, content)?);
        }
    }
    for name in gone.into_iter().filter(|name| !is_in_the_way(name)) {
        exported.removed += usize::from(remove(folder, name)?);
    }
    write_marker(folder, COMPLETE, files.keys().map(String::as_str))?;
    Ok(exported)
}

/// Writes a file unless it is there already. Returns whether it was written.
fn put(folder: &Path, name: &str, content: &Content) -> Result<bool, ExportError> {
    let path = folder.join(name);
    let failed = |source| ExportError::File { path: path.clone(), source };
    let parent = path.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(|error| match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            ExportError::Address { path: format!("/{name}"), why: "there is another page at an address above it".to_owned() }
        }
        _ => failed(error),
    })?;
    if path.is_dir() {
        return Err(ExportError::Address { path: format!("/{name}"), why: "there are other pages below it".to_owned() });
    }
    if is_same(&path, content).map_err(failed)? {
        return Ok(false);
    }
    let temporary = parent.join(format!(".new-{}", std::process::id()));
    let written = match content {
        Content::Held(bytes) => fs::write(&temporary, bytes),
        Content::At(source) => opened(source).and_then(|mut source| io::copy(&mut source, &mut File::create(&temporary)?).map(drop)),
        Content::Picture(wanted) => fs::write(&temporary, made(wanted).map_err(|fault| failed(io::Error::other(fault)))?),
        Content::Drawn(card) => fs::write(&temporary, card.draw()),
    };
    let put = written.and_then(|()| fs::rename(&temporary, &path));
    if put.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    put.map_err(failed).map(|()| true)
}

/// Opens a file that is too large to hold.
fn opened(file: &LargeFile) -> io::Result<OpenFile> {
    file.open_now()?.ok_or_else(|| io::Error::other("it changed meanwhile"))
}

/// Makes a variant of a picture. Where that cannot be done, the author's own file stands for it, as it does live.
fn made(wanted: &WantedVariant) -> Result<Bytes, pictures::Fault> {
    wanted.make().or_else(|_| wanted.instead().map(|(own, _)| own))
}

fn is_same(path: &Path, content: &Content) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let bytes = file.metadata()?.len();
    match content {
        Content::Drawn(_) => Ok(bytes > 0),
        Content::Held(own) => {
            if own.len() as u64 != bytes {
                return Ok(false);
            }
            let mut there = Vec::with_capacity(own.len());
            file.read_to_end(&mut there)?;
            Ok(there == *own)
        }
        // Another picture has another address.
        Content::Picture(_) => Ok(bytes > 0),
        Content::At(source) => {
            let mut source = opened(source)?;
            if source.bytes != bytes {
                return Ok(false);
            }
            let (mut one, mut other) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
            loop {
                let read = file.read(&mut one)?;
                if read == 0 {
                    return Ok(true);
                }
                if source.read_exact(&mut other[..read]).is_err() || one[..read] != other[..read] {
                    return Ok(false);
                }
            }
        }
    }
}

/// Removes a file and the folders that are empty without it. Returns whether it was there.
fn remove(folder: &Path, name: &str) -> Result<bool, ExportError> {
    let path = folder.join(name);
    match fs::remove_file(&path) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(false),
        Err(source) => return Err(ExportError::File { path, source }),
    }
    for parent in path.ancestors().skip(1).take_while(|parent| *parent != folder) {
        if fs::remove_dir(parent).is_err() {
            break;
        }
    }
    Ok(true)
}

fn write_marker<'a>(folder: &Path, state: &str, names: impl Iterator<Item = &'a str>) -> Result<(), ExportError> {
    let path = folder.join(MARKER);
    let temporary = folder.join(format!("{MARKER}.new"));
    let write = || -> io::Result<()> {
        let mut file = io::BufWriter::new(File::create(&temporary)?);
        writeln!(file, "{MARKER_HEAD}\n{state}")?;
        for name in names {
            writeln!(file, "{name}")?;
        }
        file.flush()?;
        drop(file);
        fs::rename(&temporary, &path)
    };
    write().map_err(|source| ExportError::File { path: path.clone(), source })
}
