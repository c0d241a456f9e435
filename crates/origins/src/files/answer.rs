//! Answers a request, on a thread that may block.

use std::{
    fs::File,
    hash::Hasher as _,
    io::{self, Read as _},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use semantics::{
    RequestFields,
    coding::Coding,
    conditional::{Precondition, evaluate, not_modified_fields},
    date::parse_http_date,
    targeted::SEAWALL_CACHE_CONTROL,
};
use siphasher::sip128::{Hasher128, SipHasher13};

use super::{
    Shared, Version,
    lifetime::{REVALIDATED, cache_control},
    listing,
    lookup::{PathLookup, find, nearest},
    path::{Target, target},
    pattern::canonical,
    redirects::Leads,
    root::{Entry, Root},
    stem,
};
use crate::{
    Body, FileBody, FileForms, FileRegion, Forms,
    media_type::{self, is_compressible},
};

/// The largest file that is stored whole although no coding makes it smaller. Beyond that the kernel's own cache serves it as well, without
/// a second copy in ours.
const WHOLE_MAX: u64 = 1 << 20;
/// The largest file of text that is stored whole: text is worth more once it is compressed.
const WHOLE_TEXT_MAX: u64 = 8 << 20;

const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");

/// The time for which an answer is valid: until we purge it, or, where changes are not reported, for a second.
const UNTIL_CHANGED: HeaderValue = HeaderValue::from_static("max-age=31536000");
const ONE_SECOND: HeaderValue = HeaderValue::from_static("max-age=1");

/// Returns whether an answer with these fields stays valid until a change is reported.
pub(super) fn is_true_until_changed(fields: &HeaderMap) -> bool {
    fields.get(SEAWALL_CACHE_CONTROL) == Some(&UNTIL_CHANGED)
}

/// The pages for errors of the disk.
const TROUBLE: [&str; 2] = ["50x.html", "500.html"];

/// The time by which a compressed sibling may be older than its file: they were written one after the other.
const SIBLING_OLDER_MAX: Duration = Duration::from_secs(2);

/// A response while it is made.
struct Answer<'a> {
    version: &'a Version,
    shared: &'a Shared,
    parts: &'a Parts,
    /// The request's path below the root; empty if no file can have it.
    below: PathBuf,
    tags: Vec<String>,
    /// Whether we would notice if the answer were not valid any more.
    sure: bool,
}

/// Answers a GET or HEAD. Blocks.
pub(super) fn answer(version: &Version, shared: &Shared, parts: &Parts, watched: bool) -> io::Result<Response<Body>> {
    let asked = target(parts.uri.path());
    let below = asked.as_ref().map(|target| target.below.clone()).unwrap_or_default();
    let mut answer = Answer { version, shared, parts, below, tags: Vec::new(), sure: watched };
    answer.depends_on(&answer.below.clone());
    let mut response = match answer.respond(asked) {
        Err(error) => answer.failed(error)?,
        answered => answered?,
    };
    answer.mark(response.headers_mut())?;
    // A body that is still in a file costs nothing yet, and the sender of the head wants to know which form of it there is.
    if parts.method == Method::HEAD && !matches!(response.body(), Body::File(_)) {
        *response.body_mut() = Body::Empty;
    }
    Ok(response)
}

/// Answers a GET or HEAD with a file that somebody else has looked up. Blocks.
pub(super) fn send(version: &Version, shared: &Shared, parts: &Parts, entry: Entry) -> io::Result<Response<Body>> {
    let mut answer = Answer { version, shared, parts, below: entry.name.clone(), tags: Vec::new(), sure: false };
    let mut response = answer.file(StatusCode::OK, entry)?;
    answer.mark(response.headers_mut())?;
    if parts.method == Method::HEAD && !matches!(response.body(), Body::File(_)) {
        *response.body_mut() = Body::Empty;
    }
    Ok(response)
}

impl Answer<'_> {
    fn root(&self) -> &Root {
        &self.version.root
    }

    fn respond(&mut self, asked: Option<Target>) -> io::Result<Response<Body>> {
        let Some(asked) = asked else { return self.error(StatusCode::NOT_FOUND) };
        let version = self.version;
        let (path, query) = (canonical(&asked.below), self.parts.uri.query());
        let leads = |is_forced: bool| version.rules.redirect(&path, query, is_forced);
        if let Some(leads) = leads(true) {
            return self.led(leads);
        }
        match find(self.root(), &asked, self.shared.options.listing)? {
            PathLookup::File(entry) => self.file(StatusCode::OK, entry),
            PathLookup::Folder(folder) => self.listing(&folder),
            PathLookup::WithSlash => self.moved(format!("{}/", self.parts.uri.path())),
            PathLookup::WithoutSlash => self.moved(self.parts.uri.path().trim_end_matches('/').to_owned()),
            PathLookup::Forbidden => self.error(StatusCode::FORBIDDEN),
            PathLookup::Nothing => match leads(false) {
                Some(leads) => self.led(leads),
                None => self.missing(),
            },
        }
    }

    /// Answers as a rule says.
    fn led(&mut self, leads: Leads) -> io::Result<Response<Body>> {
        match leads {
            Leads::Away(status, to) => redirect(status, to),
            Leads::Within(status, to) => {
                let path = to.split(['?', '#']).next().unwrap_or_default();
                match self.within(path)? {
                    Some(entry) => self.file(status, entry),
                    None if status == StatusCode::OK => self.error(StatusCode::NOT_FOUND),
                    None => self.error(status),
                }
            }
        }
    }

    /// Returns the file that answers for `path`, without a redirect of the client.
    fn within(&mut self, path: &str) -> io::Result<Option<Entry>> {
        let Some(mut asked) = target(path) else { return Ok(None) };
        self.depends_on(&asked.below);
        for _ in 0..2 {
            asked.slash = match find(self.root(), &asked, false)? {
                PathLookup::File(entry) => return Ok(Some(entry)),
                PathLookup::WithSlash => true,
                PathLookup::WithoutSlash => false,
                PathLookup::Folder(_) | PathLookup::Forbidden | PathLookup::Nothing => return Ok(None),
            };
        }
        Ok(None)
    }

    fn missing(&mut self) -> io::Result<Response<Body>> {
        let looks_like_a_page = self.below.file_name().is_none_or(|name| !name.as_encoded_bytes().contains(&b'.'));
        if let Some(fallback) = self.shared.options.fallback.as_ref().filter(|_| looks_like_a_page)
            && let Some(entry) = self.root().find_file(fallback)?
        {
            return self.file(StatusCode::OK, entry);
        }
        self.error(StatusCode::NOT_FOUND)
    }

    /// Answers with an error, with the site's own page if it has one.
    fn error(&mut self, status: StatusCode) -> io::Result<Response<Body>> {
        // When a permission is given back, no event tells it from others.
        self.sure &= status != StatusCode::FORBIDDEN;
        match nearest(self.root(), &self.below, &format!("{}.html", status.as_str())) {
            Some(page) => self.file(status, page),
            None => {
                let mut response = plain(status);
                self.finish(response.headers_mut());
                Ok(response)
            }
        }
    }

    /// Answers for an error of the disk.
    fn failed(&mut self, error: io::Error) -> io::Result<Response<Body>> {
        self.sure = false;
        let Some(page) = TROUBLE.iter().find_map(|name| nearest(self.root(), Path::new(""), name)) else { return Err(error) };
        tracing::error!(path = %self.parts.uri.path(), %error, "a file cannot be read");
        let mut response = self.file(StatusCode::INTERNAL_SERVER_ERROR, page)?;
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    /// Redirects to another path on this host, whatever its name and port: the path has passed [`target`], so it begins with one slash.
    fn moved(&self, mut to: String) -> io::Result<Response<Body>> {
        if let Some(query) = self.parts.uri.query() {
            to.push('?');
            to.push_str(query);
        }
        redirect(StatusCode::MOVED_PERMANENTLY, to)
    }

    fn listing(&mut self, folder: &Entry) -> io::Result<Response<Body>> {
        self.tags.push(stem::listing_tag(&folder.real));
        self.depends_on(&folder.real);
        let page = listing::page(self.root(), folder, self.parts.uri.path(), self.parts.uri.query())?;
        let mut response = whole(StatusCode::OK, "text/html; charset=utf-8", page.into(), None)?;
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(REVALIDATED));
        self.finish(response.headers_mut());
        self.conditional(response)
    }

    fn file(&mut self, status: StatusCode, entry: Entry) -> io::Result<Response<Body>> {
        self.depends_on(&entry.name);
        self.depends_on(&entry.real);
        let media_type = media_type::of_file(&entry.name);
        let whole_max = self.shared.options.whole_max.min(if is_compressible(media_type) { WHOLE_TEXT_MAX } else { WHOLE_MAX });
        let lifetime = if status == StatusCode::OK { cache_control(&entry.name) } else { REVALIDATED };
        let modified = entry.metadata.modified().ok().filter(|_| status == StatusCode::OK);
        let siblings = if status == StatusCode::OK && is_compressible(media_type) { self.siblings(&entry) } else { Vec::new() };
        let small = if entry.metadata.len() <= whole_max { content(&entry.file, whole_max)? } else { None };
        let is_whole = small.is_some();
        let mut response = match small {
            Some(content) => {
                let forms = forms(siblings, content.len(), whole_max);
                let mut response = whole(status, media_type, content, modified)?;
                if !forms.0.is_empty() {
                    response.extensions_mut().insert(forms);
                }
                response
            }
            None => large(status, media_type, entry, siblings)?,
        };
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(lifetime));
        self.finish(response.headers_mut());
        // The sender of a large file evaluates its conditions, because it knows the form.
        if is_whole { self.conditional(response) } else { Ok(response) }
    }

    /// Returns the compressed siblings of a file that are not older than it.
    fn siblings(&mut self, entry: &Entry) -> Vec<(Coding, Entry)> {
        let mut siblings = Vec::new();
        for coding in Coding::ALL {
            let mut name = entry.name.clone().into_os_string();
            name.push(".");
            name.push(coding.extension());
            let Ok(Some(sibling)) = self.root().find_file(name.as_ref()) else { continue };
            let is_old = match (sibling.metadata.modified(), entry.metadata.modified()) {
                (Ok(sibling), Ok(file)) => sibling + SIBLING_OLDER_MAX < file,
                _ => false,
            };
            if !is_old && sibling.metadata.len() > 0 {
                self.depends_on(&sibling.real);
                siblings.push((coding, sibling));
            }
        }
        siblings
    }

    /// Sets the site's own fields.
    fn finish(&self, fields: &mut HeaderMap) {
        self.version.rules.set_fields(&canonical(&self.below), fields);
    }

    /// Answers 304 or 412, if the request says so. The request may be our own, to validate a stored response.
    fn conditional(&self, response: Response<Body>) -> io::Result<Response<Body>> {
        if response.status() != StatusCode::OK {
            return Ok(response);
        }
        let fields = response.headers();
        let etag = fields.get(header::ETAG).map(HeaderValue::as_bytes);
        let modified = fields.get(header::LAST_MODIFIED).and_then(|value| parse_http_date(value.as_bytes()));
        match evaluate(&self.parts.method, &RequestFields::from_map(&self.parts.headers), etag, modified) {
            Precondition::Proceed => Ok(response),
            Precondition::Failed => Ok(plain(StatusCode::PRECONDITION_FAILED)),
            Precondition::NotModified => {
                let mut confirmation = Response::new(Body::Empty);
                *confirmation.status_mut() = StatusCode::NOT_MODIFIED;
                *confirmation.headers_mut() = not_modified_fields(response.headers());
                Ok(confirmation)
            }
        }
    }

    fn depends_on(&mut self, below: &Path) {
        let tag = stem::tag(below);
        if !self.tags.contains(&tag) {
            self.tags.push(tag);
        }
        self.shared.folders.lock().above(below);
    }

    /// Sets the fields that only the cache sees: how long the answer is valid, and the tags by which it is purged.
    fn mark(&self, fields: &mut HeaderMap) -> io::Result<()> {
        fields.insert(SEAWALL_CACHE_CONTROL, if self.sure { UNTIL_CHANGED } else { ONE_SECOND });
        let own = fields.get(SURROGATE_KEY).and_then(|own| own.to_str().ok()).map(str::to_owned);
        let tags: Vec<String> = own.into_iter().chain(self.tags.iter().cloned()).collect();
        fields.insert(SURROGATE_KEY, HeaderValue::try_from(tags.join(" ")).map_err(io::Error::other)?);
        Ok(())
    }
}

/// Returns the whole content, if it is no longer than `bytes_max`: a file may grow while it is read, but the bytes that were read are the
/// answer.
fn content(file: &File, bytes_max: u64) -> io::Result<Option<Bytes>> {
    let mut content = Vec::with_capacity(usize::try_from(file.metadata()?.len().min(bytes_max)).unwrap_or(0) + 1);
    file.take(bytes_max + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= bytes_max).then(|| content.into()))
}

fn forms(siblings: Vec<(Coding, Entry)>, length: usize, bytes_max: u64) -> Forms {
    let smaller = |content: &Bytes| content.len() < length;
    let read = |(coding, sibling): (Coding, Entry)| {
        content(&sibling.file, bytes_max).ok().flatten().filter(smaller).map(|content| (coding, content))
    };
    Forms(siblings.into_iter().filter_map(read).collect())
}

/// Returns a response with content in memory. Its tag is made of the content: a site that is built again has new dates, but mostly the same
/// pages.
fn whole(status: StatusCode, media_type: &'static str, content: Bytes, modified: Option<SystemTime>) -> io::Result<Response<Body>> {
    let etag = (status == StatusCode::OK).then(|| {
        let mut hasher = SipHasher13::new();
        hasher.write(&content);
        format!("\"{:032x}\"", hasher.finish128().as_u128())
    });
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    describe(response.headers_mut(), media_type, content.len() as u64, etag, modified)?;
    *response.body_mut() = content.into();
    Ok(response)
}

/// Returns a response that is sent from the file. Nobody has read it, so its tag is made of length, number, and the date of its last change
/// of any kind. The date of the file is not used, as tools set that, and two builds may have it in common. The tag is strong for all who do
/// not write twice into the same file within a tick of the file system's clock.
fn large(status: StatusCode, media_type: &'static str, entry: Entry, siblings: Vec<(Coding, Entry)>) -> io::Result<Response<Body>> {
    let (length, modified) = (entry.metadata.len(), entry.metadata.modified().ok().filter(|_| status == StatusCode::OK));
    let (number, seconds, nanos) = (entry.metadata.ino(), entry.metadata.ctime(), entry.metadata.ctime_nsec());
    let etag = (status == StatusCode::OK).then(|| format!("\"{length:x}-{number:x}-{seconds:x}.{nanos:x}\""));
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    describe(response.headers_mut(), media_type, length, etag, modified)?;
    *response.body_mut() = Body::File(Box::new(FileBody::new(Arc::new(entry.file), length)));
    let forms: Vec<_> = siblings
        .into_iter()
        .filter(|(_, sibling)| sibling.metadata.len() < length)
        .map(|(coding, sibling)| (coding, FileRegion { range: 0..sibling.metadata.len(), file: Arc::new(sibling.file) }))
        .collect();
    if !forms.is_empty() {
        response.extensions_mut().insert(FileForms(forms));
    }
    Ok(response)
}

fn describe(
    fields: &mut HeaderMap,
    media_type: &'static str,
    length: u64,
    etag: Option<String>,
    modified: Option<SystemTime>,
) -> io::Result<()> {
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    fields.insert(header::CONTENT_LENGTH, length.into());
    if let Some(etag) = etag {
        fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        fields.insert(header::ETAG, value(etag)?);
    }
    if let Some(modified) = modified {
        fields.insert(header::LAST_MODIFIED, value(httpdate::fmt_http_date(modified))?);
    }
    Ok(())
}

/// Answers with a redirect that browsers ask for again, so that a page can come back: they would keep some kinds for ever.
pub(crate) fn redirect(status: StatusCode, to: String) -> io::Result<Response<Body>> {
    let mut response = plain(status);
    response.headers_mut().insert(header::LOCATION, value(to)?);
    Ok(response)
}

/// Returns a response whose text is that of its status.
pub(crate) fn plain(status: StatusCode) -> Response<Body> {
    let text = format!("{status}\n");
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(header::CONTENT_LENGTH, text.len().into());
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static(REVALIDATED));
    *response.body_mut() = Body::Full(text.into());
    response
}

fn value(text: String) -> io::Result<HeaderValue> {
    HeaderValue::try_from(text).map_err(io::Error::other)
}
