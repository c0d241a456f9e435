//! Turns what other engines wrote into a folder of Markdown.
//!
//! [`import`] reads an export of Ghost or WordPress, or the source of a Jekyll or Hugo site, and writes a blog for Seawall into a new folder: texts
//! with front matter, pictures, `blog.toml`, and redirects for addresses that cannot stay. The [`Report`] accounts for every item of the export.
//!
//! An export is read twice: first for what leads where, then text by text, so that memory holds one text and an index, however large the export.
//! Nothing is written outside of the new folder, and nothing is fetched from a network.
//!
//! Absent from this room: serving, sockets, and the blog itself. What a blog makes of the folder is its own business; the tests ask it.

mod error;
mod folder;
mod front_matter;
mod ghost;
mod html;
mod hugo;
mod jekyll;
mod job;
mod limit;
mod links;
mod location;
mod markdown;
mod media;
mod report;
mod site_source;
mod slug;
mod text;
mod wordpress;

use std::{
    fmt, fs,
    io::Read as _,
    path::{Path, PathBuf},
    str::FromStr,
};

use jiff::Timestamp;

pub use self::{
    error::ImportError,
    report::{Comments, Entry, LeftOut, Outcome, Redirect, Report, TextEntry},
};
use self::{folder::Folder, job::Job};

/// An engine from which a site can move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Ghost's export: a JSON file, or a folder with one and `content/`.
    Ghost,
    /// WordPress's export: one or more files of WXR.
    WordPress,
    /// The source of a Jekyll site.
    Jekyll,
    /// The source of a Hugo site.
    Hugo,
}

impl Engine {
    const ALL: [Self; 4] = [Self::Ghost, Self::WordPress, Self::Jekyll, Self::Hugo];

    const fn name(self) -> &'static str {
        match self {
            Self::Ghost => "ghost",
            Self::WordPress => "wordpress",
            Self::Jekyll => "jekyll",
            Self::Hugo => "hugo",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|engine| engine.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("{text:?} is not one of ghost, wordpress, jekyll, hugo"))
    }
}

/// Holds what the caller decides.
#[derive(Debug, Clone)]
pub struct Options {
    /// The time: texts may have expired by now, or appear later.
    pub now: Timestamp,
    /// The engine, if it is not to be recognised.
    pub from: Option<Engine>,
    /// The folder with pictures and other uploads: Ghost's `content`, WordPress's `wp-content` or `uploads`.
    pub content: Option<PathBuf>,
    /// Whether posts that only members could read become public.
    pub include_paid: bool,
}

impl Options {
    /// Leaves everything but the time as it is by default.
    #[must_use]
    pub const fn at(now: Timestamp) -> Self {
        Self { now, from: None, content: None, include_paid: false }
    }
}

/// Finds out of which engine an export is.
///
/// # Errors
/// When it is of none, or cannot be read.
pub fn recognise(exports: &[PathBuf]) -> Result<Engine, ImportError> {
    let Some(first) = exports.first() else {
        return Err(ImportError::Folder { message: "nothing to import was named".to_owned() });
    };
    let metadata = fs::metadata(first).map_err(ImportError::read(first))?;
    if metadata.is_dir() {
        return recognise_folder(first);
    }
    let mut head = Vec::new();
    fs::File::open(first).and_then(|file| file.take(64 * 1024).read_to_end(&mut head)).map_err(ImportError::read(first))?;
    let text = String::from_utf8_lossy(&head);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    if head.starts_with(b"PK\x03\x04") || head.starts_with(&[0x1f, 0x8b]) {
        let message = "is packed; unpack it first (unzip FILE -d FOLDER, or tar -xf FILE), and give the folder or the file in it";
        return Err(ImportError::of_file(first, message));
    }
    if text.starts_with('{') || text.starts_with('[') {
        return Ok(Engine::Ghost);
    }
    if text.starts_with("<?xml") || text.starts_with("<rss") {
        if text.contains("wordpress.org/export") {
            return Ok(Engine::WordPress);
        }
        let message = "is XML, but not WordPress's export (Tools > Export > All content); a feed has too little of a site to import it";
        return Err(ImportError::of_file(first, message));
    }
    let message = "is not an export that is known: give Ghost's JSON file, WordPress's XML files, or the folder of a Jekyll or Hugo site";
    Err(ImportError::of_file(first, message))
}

fn recognise_folder(folder: &Path) -> Result<Engine, ImportError> {
    let has = |name: &str| folder.join(name).exists();
    if ["hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json", "config/_default"].iter().any(|name| has(name)) {
        return Ok(Engine::Hugo);
    }
    if ["_config.yml", "_config.yaml", "_config.toml", "_posts"].iter().any(|name| has(name)) {
        return Ok(Engine::Jekyll);
    }
    if ["config.toml", "config.yaml", "config.yml", "config.json"].iter().any(|name| has(name)) && has("content") {
        return Ok(Engine::Hugo);
    }
    if ghost::export_in(folder)?.is_some() {
        return Ok(Engine::Ghost);
    }
    if !wordpress::exports_in(folder)?.is_empty() {
        return Ok(Engine::WordPress);
    }
    if has("wp-config.php") || has("wp-includes") {
        let message = "is a WordPress itself; export it first (Tools > Export > All content), give that file, and this folder as --content";
        return Err(ImportError::of_file(folder, message));
    }
    let message = "has no _config.yml (Jekyll), no hugo.toml or config.toml with content/ (Hugo), and no export of Ghost or WordPress";
    Err(ImportError::of_file(folder, message))
}

/// Writes a blog into `folder`, which must be empty or not exist yet, from what another engine exported.
///
/// # Errors
/// When the export is not one or is broken, or when the folder cannot be written to. What was written until then stays there, and the error says so.
pub fn import(exports: &[PathBuf], folder: &Path, options: &Options) -> Result<Report, ImportError> {
    let engine = options.from.map_or_else(|| recognise(exports), Ok)?;
    let mut job = Job::new(Folder::new(folder)?);
    job.report.sources = exports.iter().map(|path| path.display().to_string()).collect();
    job.report.folder = folder.display().to_string();
    let done = match engine {
        Engine::Ghost => ghost::import(exports, options, &mut job),
        Engine::WordPress => wordpress::import(exports, options, &mut job),
        Engine::Jekyll => jekyll::import(exports, options.now, &mut job),
        Engine::Hugo => hugo::import(exports, options.now, &mut job),
    };
    let done = done.and_then(|()| job.finish());
    match done {
        Ok(()) => Ok(job.report),
        Err(source) if job.folder.files() > 0 => {
            Err(ImportError::HalfWay { files: job.folder.files(), folder: folder.to_owned(), source: Box::new(source) })
        }
        Err(error) => Err(error),
    }
}
