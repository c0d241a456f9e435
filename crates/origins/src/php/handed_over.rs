//! Files that a script hands over to be sent: `X-Accel-Redirect` and `X-Sendfile`.
//!
//! The script decides who may have a file, and is done; the file may be large, and its sending would hold a child all the time.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use crate::{
    Body, FileBody,
    files::{Entry, Root, plain, target},
};

const X_ACCEL_REDIRECT: HeaderName = HeaderName::from_static("x-accel-redirect");
const X_SENDFILE: HeaderName = HeaderName::from_static("x-sendfile");

/// The fields in which scripts tell other servers how a response is sent. A response is always sent as it comes; `X-Accel-Expires` is for
/// the cache.
const ORDERS: [HeaderName; 5] = [
    HeaderName::from_static("x-accel-buffering"),
    HeaderName::from_static("x-accel-charset"),
    HeaderName::from_static("x-accel-limit-rate"),
    HeaderName::from_static("x-lighttpd-send-file"),
    HeaderName::from_static("x-sendfile-temporary"),
];

/// Removes what is meant for a server and tells clients how the machine is arranged.
pub(super) fn remove_orders(fields: &mut HeaderMap) {
    for name in &ORDERS {
        fields.remove(name);
    }
}

/// The folders whose files a script may hand over.
#[derive(Debug)]
pub(super) struct AllowedFolders(Vec<AllowedFolder>);

#[derive(Debug)]
struct AllowedFolder {
    /// The beginning of the paths in `X-Accel-Redirect` that lead here; none: only `X-Sendfile` does.
    prefix: Option<String>,
    folder: PathBuf,
    root: Root,
}

/// Holds what a script hands over.
#[derive(Debug)]
pub(super) struct HandedOver {
    accel: Option<HeaderValue>,
    path: HeaderValue,
}

impl HandedOver {
    /// Takes the fields out of a response, if they are there: they are for us alone.
    pub(super) fn take(fields: &mut HeaderMap) -> Option<Self> {
        let (accel, sendfile) = (fields.remove(X_ACCEL_REDIRECT), fields.remove(X_SENDFILE));
        let path = accel.clone().or(sendfile)?;
        Some(Self { accel, path })
    }
}

impl AllowedFolders {
    /// Opens the folders. Each is reached through `X-Sendfile` by its path, and through `X-Accel-Redirect` by its prefix.
    pub(super) fn open(places: &[(Option<String>, PathBuf)]) -> io::Result<Self> {
        let open = |(prefix, folder): &(Option<String>, PathBuf)| {
            Ok(AllowedFolder { prefix: prefix.clone(), folder: folder.clone(), root: Root::open(folder)? })
        };
        places.iter().map(open).collect::<io::Result<_>>().map(Self)
    }

    /// Puts the file into the response, whose other fields stay as the script set them. Blocks.
    pub(super) fn send(&self, mut response: Response<Body>, handed: &HandedOver) -> io::Result<Response<Body>> {
        let found = if handed.accel.is_some() { self.by_prefix(&handed.path)? } else { self.by_path(&handed.path)? };
        let Some(entry) = found else {
            tracing::warn!(path = ?handed.path, "a script hands over a file that is not below a configured folder, or not there");
            return Ok(plain(StatusCode::NOT_FOUND));
        };
        let length = entry.metadata.len();
        let fields = response.headers_mut();
        fields.insert(header::CONTENT_LENGTH, length.into());
        fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if let Some(date) = entry.metadata.modified().ok().filter(|date| *date > SystemTime::UNIX_EPOCH)
            && !fields.contains_key(header::LAST_MODIFIED)
        {
            fields.insert(header::LAST_MODIFIED, HeaderValue::try_from(httpdate::fmt_http_date(date)).map_err(io::Error::other)?);
        }
        *response.body_mut() = Body::File(Box::new(FileBody::new(Arc::new(entry.file), length)));
        Ok(response)
    }

    fn by_prefix(&self, path: &HeaderValue) -> io::Result<Option<Entry>> {
        let path = String::from_utf8_lossy(path.as_bytes());
        let path = path.split('?').next().unwrap_or_default();
        let matching = |allowed: &&AllowedFolder| allowed.prefix.as_ref().is_some_and(|prefix| path.starts_with(prefix.as_str()));
        let longest = self.0.iter().filter(matching).max_by_key(|allowed| allowed.prefix.as_ref().map(String::len));
        let Some((allowed, prefix)) = longest.and_then(|allowed| Some((allowed, allowed.prefix.as_ref()?))) else { return Ok(None) };
        let below = format!("/{}", path[prefix.len()..].trim_start_matches('/'));
        let Some(below) = target(&below).filter(|below| !below.slash) else { return Ok(None) };
        allowed.root.find_file(&below.below)
    }

    fn by_path(&self, path: &HeaderValue) -> io::Result<Option<Entry>> {
        let path = String::from_utf8_lossy(path.as_bytes());
        for allowed in &self.0 {
            let below =
                [allowed.folder.as_path(), allowed.root.path()].into_iter().find_map(|root| Path::new(&*path).strip_prefix(root).ok());
            let is_plain = |below: &&Path| below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            if let Some(below) = below.filter(is_plain)
                && let Some(entry) = allowed.root.find_file(below)?
            {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}
