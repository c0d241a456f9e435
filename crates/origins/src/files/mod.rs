//! A folder of files as an origin.
//!
//! Serves `GET` and `HEAD` of regular files below a root, and nothing that is not below it, by whatever name. What a path stands for is
//! said in `lookup.rs`. Small files are answered whole, to be stored; large ones as [`Body::File`], to be sent from where they lie. Not here:
//! conditions and ranges of large files and the choice of a coding (whoever sends them does that), and what is kept.
//!
//! Every response carries tags for the names it was made of. [`Files::watch`] tells which of them a change in the folder concerns, so that
//! what is stored is exact; where it cannot be watched, responses say that they are to be looked at again after a second.

mod answer;
mod folder;
mod headers;
mod lifetime;
mod listing;
mod lookup;
mod open_files;
mod path;
mod pattern;
mod redirects;
mod root;
mod rules;
mod stem;
mod watch;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use parking_lot::{Mutex, RwLock};

use crate::{Arrival, Body, Fault, LocalFuture, OnInterim, Origin, OriginError};
pub(crate) use answer::{plain, redirect};
pub(crate) use folder::Folder;
pub(crate) use path::target;
pub use redirects::Leads;
pub use root::Links;
pub(crate) use root::{Entry, Root, is_hidden};
pub use rules::{Mistake, REDIRECTS, Rules, canonical_path};
pub use watch::{Change, Watcher};

/// The options for serving a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesOptions {
    /// Whether a folder without an index shows its names.
    pub listing: bool,
    /// The file that answers, with 200, for paths that no file has and that do not look like files: for sites whose pages are made in the
    /// browser.
    pub fallback: Option<PathBuf>,
    /// The largest file that is answered whole; a larger one is never read whole.
    pub whole_max: u64,
}

impl Default for FilesOptions {
    fn default() -> Self {
        Self { listing: false, fallback: None, whole_max: 16 << 20 }
    }
}

/// The files below a root. Clones share it.
#[derive(Debug, Clone)]
pub struct Files {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    given: PathBuf,
    options: FilesOptions,
    /// The version from which requests are answered. It is replaced whole, and with the write lock held until all caches know: see
    /// `watch.rs`.
    version: RwLock<Arc<Version>>,
    /// Whether every change is reported.
    watched: AtomicBool,
    /// The folders that responses were made of: if such a name is removed, so is all that was below it.
    folders: Mutex<stem::SeenFolders>,
    opened: Mutex<open_files::OpenFiles>,
}

impl Shared {
    /// Returns the current version, and whether all later changes are reported. Call it before anything is read.
    fn current(&self) -> (Arc<Version>, bool) {
        let version = self.version.read();
        (Arc::clone(&version), self.watched.load(Ordering::Acquire))
    }
}

/// One version of a site: its opened root and the rules in it.
#[derive(Debug)]
struct Version {
    root: Arc<root::Root>,
    rules: rules::Rules,
    /// The state of the files of rules, from before they were read.
    rules_were: rules::RuleFilesState,
}

impl Version {
    fn open(given: &Path) -> io::Result<Self> {
        Ok(Self::of(Arc::new(root::Root::open(given)?)))
    }

    fn of(root: Arc<root::Root>) -> Self {
        let rules_were = rules::Rules::seen(&root);
        Self { rules: rules::Rules::read(&root), root, rules_were }
    }

    /// Opens the same folder again, with its current rules.
    fn reread(&self) -> Self {
        Self::of(Arc::clone(&self.root))
    }
}

impl Files {
    /// Opens the files below `root`, which may itself be a symbolic link, with default options. It reads from the disk, so call it at
    /// start.
    ///
    /// # Errors
    /// Fails when `root` is not a folder that can be read.
    pub fn new(root: impl AsRef<Path>) -> io::Result<Self> {
        Self::open(root, FilesOptions::default())
    }

    /// Opens the files below `root`, like [`Files::new`], with these options.
    ///
    /// # Errors
    /// Fails as [`Files::new`] does.
    pub fn open(root: impl AsRef<Path>, options: FilesOptions) -> io::Result<Self> {
        let given = root.as_ref().to_owned();
        let version = RwLock::new(Arc::new(Version::open(&given)?));
        Ok(Self {
            shared: Arc::new(Shared {
                given,
                options,
                version,
                watched: AtomicBool::new(false),
                folders: Mutex::default(),
                opened: Mutex::default(),
            }),
        })
    }

    /// Returns the mistakes in the current `_redirects` and `_headers`.
    #[must_use]
    pub fn mistakes(&self) -> Vec<Mistake> {
        self.shared.version.read().rules.mistakes().to_vec()
    }

    async fn serve(&self, request: Request<Body>) -> Result<Response<Body>, OriginError> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut response = answer::plain(StatusCode::METHOD_NOT_ALLOWED);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return Ok(response);
        }
        if let Some(response) = self.shared.opened.lock().answer(request.uri().path()) {
            return Ok(response);
        }
        let shared = Arc::clone(&self.shared);
        let (parts, _) = request.into_parts();
        let uri = parts.uri.clone();
        let answered = tokio::task::spawn_blocking(move || {
            let generation = shared.opened.lock().generation();
            let (version, watched) = shared.current();
            let response = answer::answer(&version, &shared, &parts, watched)?;
            if answer::is_true_until_changed(response.headers()) {
                shared.opened.lock().keep(generation, parts.uri.path(), &response);
            }
            Ok::<_, io::Error>(response)
        });
        answered
            .await
            .map_err(|e| OriginError::new(Fault::Internal, "looking for a file").because(e))?
            .map_err(|e| OriginError::new(Fault::Internal, format!("read {}", uri.path())).because(e))
    }
}

impl Origin for Files {
    fn fetch<'a>(
        &'a self,
        request: Request<Body>,
        _: &'a Arrival<'a>,
        _: Option<&'a OnInterim<'a>>,
    ) -> LocalFuture<'a, Result<Response<Body>, OriginError>> {
        Box::pin(self.serve(request))
    }
}

#[cfg(test)]
mod tests;
