//! A folder of files as an origin.
//!
//! Serves `GET` and `HEAD` of regular files below a root, and nothing that is not below it, by whatever name. Not here: conditional and
//! range requests (the cache answers them from the whole), freshness (the site's kind decides), listings of folders.

mod mime;
mod path;
mod read;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};

use crate::{Body, Fault, LocalFuture, Origin, OriginError};
use read::{FileBody, PIECE_BYTES};

/// What a folder answers with.
const INDEX: &str = "index.html";
/// What answers for what is not there.
const NOT_FOUND: &str = "404.html";

/// The files below a root.
#[derive(Debug, Clone)]
pub struct Files {
    root: Arc<Path>,
}

impl Files {
    /// The files below `root`, which may itself be a symbolic link. Looks at the disk once, so call it at start.
    ///
    /// # Errors
    /// When `root` is not a folder that can be read.
    pub fn new(root: impl AsRef<Path>) -> io::Result<Self> {
        let root = root.as_ref().canonicalize()?;
        fs::read_dir(&root)?;
        Ok(Self { root: root.into() })
    }

    async fn serve(&self, request: Request<Body>) -> Result<Response<Body>, OriginError> {
        let head = request.method() == Method::HEAD;
        if !head && request.method() != Method::GET {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, head);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return Ok(response);
        }
        let (root, uri) = (Arc::clone(&self.root), request.uri().clone());
        let found = tokio::task::spawn_blocking(move || find(&root, uri.path(), head))
            .await
            .map_err(|e| OriginError::new(Fault::Internal, "looking for a file").because(e))?
            .map_err(|e| OriginError::new(Fault::Internal, format!("read {}", request.uri().path())).because(e))?;
        match found {
            Found::File(status, file) => file.respond(status),
            Found::Folder => redirect(request.uri(), head),
            Found::Nothing => Ok(plain(StatusCode::NOT_FOUND, head)),
        }
    }
}

impl Origin for Files {
    fn fetch(&self, request: Request<Body>) -> LocalFuture<'_, Result<Response<Body>, OriginError>> {
        Box::pin(self.serve(request))
    }
}

/// What a path names.
enum Found {
    /// A file that answers with this status.
    File(StatusCode, Opened),
    /// A folder, asked for without its slash.
    Folder,
    Nothing,
}

/// A regular file, ready to be sent.
struct Opened {
    media_type: &'static str,
    length: u64,
    modified: Option<SystemTime>,
    content: Content,
}

enum Content {
    /// `HEAD` wants none.
    None,
    /// It fits into one piece, and has been read with the same visit to the disk.
    Whole(Bytes),
    Rest(File),
}

/// Looks a path up. Blocks.
fn find(root: &Path, path: &str, head: bool) -> io::Result<Found> {
    if let Some(target) = path::target(path)
        && let Some(real) = below(root, &target.below)?
    {
        // A file has no slash behind it; `canonicalize` has removed what would have said so.
        if real.is_dir() {
            if !target.slash {
                return Ok(if below(root, &target.below.join(INDEX))?.is_some() { Found::Folder } else { missing(root, head)? });
            }
            if let Some(index) = below(root, &target.below.join(INDEX))?
                && let Some(file) = open(&index, INDEX.as_ref(), head)?
            {
                return Ok(Found::File(StatusCode::OK, file));
            }
        } else if !target.slash
            && let Some(file) = open(&real, &target.below, head)?
        {
            return Ok(Found::File(StatusCode::OK, file));
        }
    }
    missing(root, head)
}

/// The real place of `name`, if it exists and is below the root. Symbolic links count for where they lead; one that leads to a dotfile
/// of the root does not make it public. Between this look and the opening a link could be changed, but only by somebody who can write
/// below the root, and so publish what he likes anyway.
fn below(root: &Path, name: &Path) -> io::Result<Option<PathBuf>> {
    let real = match root.join(name).canonicalize() {
        Ok(real) => real,
        Err(e) if is_nothing(&e) => return Ok(None),
        Err(e) => return Err(e),
    };
    let Ok(inside) = real.strip_prefix(root) else { return Ok(None) };
    let hidden =
        |part: std::path::Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".") && part.as_os_str() != ".well-known";
    Ok(if inside.components().any(hidden) { None } else { Some(real) })
}

/// Errors that mean no more than that there is nothing for the public: a name too long, a file used as a folder, a loop of links, no
/// permission.
fn is_nothing(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound, PermissionDenied};
    // Its `ErrorKind` is not stable yet. The number is that of Linux on all but MIPS and SPARC, and that of the BSDs and macOS.
    const ELOOP: i32 = if cfg!(target_os = "linux") { 40 } else { 62 };
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied | InvalidInput | InvalidFilename)
        || error.raw_os_error() == Some(ELOOP)
}

fn missing(root: &Path, head: bool) -> io::Result<Found> {
    if let Some(page) = below(root, NOT_FOUND.as_ref())?
        && let Some(file) = open(&page, NOT_FOUND.as_ref(), head)?
    {
        return Ok(Found::File(StatusCode::NOT_FOUND, file));
    }
    Ok(Found::Nothing)
}

/// Opens `real`, whose media type follows from the `name` it was asked by. `None` if it is not a regular file: opening a pipe would
/// wait for somebody to write into it.
fn open(real: &Path, name: &Path, head: bool) -> io::Result<Option<Opened>> {
    match fs::metadata(real) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Ok(None),
        Err(e) if is_nothing(&e) => return Ok(None),
        Err(e) => return Err(e),
    }
    let mut file = match File::open(real) {
        Ok(file) => file,
        Err(e) if is_nothing(&e) => return Ok(None),
        Err(e) => return Err(e),
    };
    // Of the open file: the name may have got another one since.
    let metadata = file.metadata()?;
    let length = metadata.len();
    let content = if head {
        Content::None
    } else if length <= PIECE_BYTES as u64 {
        Content::Whole(read::piece(&mut file, length)?)
    } else {
        Content::Rest(file)
    };
    Ok(Some(Opened { media_type: mime::media_type(name), length, modified: metadata.modified().ok(), content }))
}

impl Opened {
    fn respond(self, status: StatusCode) -> Result<Response<Body>, OriginError> {
        let mut response = Response::new(match self.content {
            Content::None => Body::Empty,
            Content::Whole(bytes) => Body::from(bytes),
            Content::Rest(file) => Body::stream(FileBody::new(file, self.length)),
        });
        *response.status_mut() = status;
        let fields = response.headers_mut();
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        fields.insert(header::CONTENT_LENGTH, self.length.into());
        if let Some(modified) = self.modified.filter(|_| status == StatusCode::OK) {
            fields.insert(header::LAST_MODIFIED, field(httpdate::fmt_http_date(modified))?);
            fields.insert(header::ETAG, field(etag(self.length, modified))?);
        }
        Ok(response)
    }
}

/// Changes whenever the file is written, as far as the file system's clock can tell: strong for all who do not write twice within its
/// nanoseconds.
fn etag(length: u64, modified: SystemTime) -> String {
    let nanos = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("\"{length:x}-{nanos:x}\"")
}

/// To the same path with a slash. The path has passed [`path::target`], so it begins with one slash and means this host.
fn redirect(uri: &http::Uri, head: bool) -> Result<Response<Body>, OriginError> {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut response = plain(StatusCode::MOVED_PERMANENTLY, head);
    response.headers_mut().insert(header::LOCATION, field(format!("{}/{query}", uri.path()))?);
    Ok(response)
}

/// A response that says what its status says.
fn plain(status: StatusCode, head: bool) -> Response<Body> {
    let text = format!("{status}\n");
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(header::CONTENT_LENGTH, text.len().into());
    if !head {
        *response.body_mut() = Body::Full(text.into());
    }
    response
}

fn field(value: String) -> Result<HeaderValue, OriginError> {
    HeaderValue::try_from(value).map_err(|e| OriginError::new(Fault::Internal, "a value that no field can hold").because(e))
}

#[cfg(test)]
mod tests;
