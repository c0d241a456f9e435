//! The blog as an origin: a look-up in the current site.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::X_CONTENT_TYPE_OPTIONS,
    header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HOST, LOCATION, RETRY_AFTER},
};
use origins::{Arrival, Body, LocalFuture, OnInterim, Origin, OriginError};
use semantics::{
    RequestFields, Timestamp,
    conditional::{self, Precondition},
};

use crate::{
    card::{self, Card, Studio},
    config::BlogOptions,
    digest::entity_tag,
    error::{BuildError, Problem},
    memory::{Memory, Work},
    site::{Found, Page, PageKind, Site},
    slug,
};

const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const HTML: &str = "text/html; charset=utf-8";

/// A folder of Markdown, built and ready. Clones share the current site.
#[derive(Debug, Clone)]
pub struct Blog {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    site: ArcSwap<Site>,
    /// Held by whoever builds. Readers never wait for it.
    memory: Mutex<Memory>,
    studio: Studio,
}

/// What a rebuild changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// The paths whose answers changed, new and removed ones included, percent-decoded and in order.
    pub paths: Vec<String>,
    /// The paths of texts for their authors alone that changed ([`Site::draft`]), new and removed ones included.
    pub drafts: Vec<String>,
    /// Whether the answer for addresses that do not exist changed.
    pub not_found: bool,
    /// The number of texts that were read from disk.
    pub read: usize,
    /// The number of texts that were rendered: those that changed, and those whose links lead elsewhere now.
    pub rendered: usize,
    /// The problems that were not there before.
    pub problems: Vec<Problem>,
    /// The problems that are gone.
    pub mended: Vec<Problem>,
}

impl Rebuilt {
    /// Tells whether nothing changed that anybody could see.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { paths, drafts, not_found, read: _, rendered: _, problems, mended } = self;
        paths.is_empty() && drafts.is_empty() && !not_found && problems.is_empty() && mended.is_empty()
    }
}

impl Blog {
    /// Builds the site from `folder`, as of `now`. It reads files, so do not call it on a worker's loop.
    ///
    /// # Errors
    /// When the folder cannot be listed, or `blog.toml` is wrong.
    pub fn open(folder: impl Into<PathBuf>, options: BlogOptions, now: Timestamp) -> Result<Self, BuildError> {
        let folder = folder.into();
        let mut memory = Memory::new(folder.clone(), options);
        let (site, Work { read, rendered }) = memory.build(now)?;
        tracing::debug!(read, rendered, "the blog was built");
        Ok(Self { shared: Arc::new(Shared { folder, site: ArcSwap::from_pointee(site), memory: Mutex::new(memory), studio: Studio::default() }) })
    }

    /// Returns the current site.
    #[must_use]
    pub fn site(&self) -> Arc<Site> {
        self.shared.site.load_full()
    }

    /// Returns the folder from which the site is built.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Builds the site again, as of `now`, puts it in place and tells what changed. Only what has changed in the folder is read and rendered;
    /// a mistake leaves the last good version of its file in place. It reads files, so do not call it on a worker's loop.
    ///
    /// # Errors
    /// When the folder cannot be listed; the old site stays.
    pub fn rebuild(&self, now: Timestamp) -> Result<Rebuilt, BuildError> {
        let mut memory = self.shared.memory.lock().unwrap_or_else(|poisoned| {
            // A bug broke the build before this one off. What it had read may be half of it.
            let mut memory = poisoned.into_inner();
            memory.clear();
            self.shared.memory.clear_poison();
            memory
        });
        let (new, Work { read, rendered }) = memory.build(now)?;
        let rebuilt = Rebuilt { read, rendered, ..self.site().difference(&new) };
        self.shared.site.store(Arc::new(new));
        Ok(rebuilt)
    }
}

impl Origin for Blog {
    fn fetch<'a>(
        &'a self,
        request: Request<Body>,
        arrival: &'a Arrival<'a>,
        _: Option<&'a OnInterim<'a>>,
    ) -> LocalFuture<'a, Result<Response<Body>, OriginError>> {
        let site = self.site();
        Box::pin(async move {
            let (head, _) = request.into_parts();
            let is_head = head.method == Method::HEAD;
            let mut response = answer(&site, &self.shared.studio, &head, arrival).await?;
            if is_head {
                *response.body_mut() = Body::Empty;
            }
            Ok(response)
        })
    }
}

async fn answer(site: &Site, studio: &Studio, head: &http::request::Parts, arrival: &Arrival<'_>) -> Result<Response<Body>, OriginError> {
    if head.method != Method::GET && head.method != Method::HEAD {
        let mut response = short(StatusCode::METHOD_NOT_ALLOWED, "A blog is only read: GET and HEAD.\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(response);
    }
    let base = match head.headers.get(HOST).and_then(|host| host.to_str().ok()).filter(|host| slug::is_authority(host)) {
        Some(host) => format!("{}://{host}", arrival.scheme.as_str()),
        None => return Ok(short(StatusCode::BAD_REQUEST, "A blog is asked with a valid Host field.\n")),
    };
    let Some(path) = slug::decode_path(head.uri.path()) else { return Ok(whole(site.not_found(&base))) };
    match site.find(&path, &base) {
        Some(Found::Page(page)) => Ok(precondition(head, &page.etag, page.kind).unwrap_or_else(|| whole(page))),
        Some(Found::File(file)) => {
            if let Some(response) = precondition(head, &file.etag, PageKind::File) {
                return Ok(response);
            }
            let Some(opened) = file.open().await? else { return Ok(whole(site.not_found(&base))) };
            let mut response = Response::new(file.body(opened));
            describe(response.headers_mut(), file.content_type, file.bytes);
            validators(response.headers_mut(), &file.etag, PageKind::File);
            Ok(response)
        }
        Some(Found::Moved(target)) => Ok(moved(target, head.uri.query())),
        Some(Found::Card(card)) => Ok(drawn(head, studio, card).await),
        None => Ok(elsewhere(site, &path, head.uri.query()).unwrap_or_else(|| whole(site.not_found(&base)))),
    }
}

/// Makes a redirect if `path` differs from an existing address only in its slash. The target is relative, so it holds on every host. It is
/// an address of this site, so nobody can make it lead elsewhere.
fn elsewhere(site: &Site, path: &str, query: Option<&str>) -> Option<Response<Body>> {
    let target = if path == "/page/1" || path == "/page/1/" { "/".to_owned() } else { format!("{path}/") };
    site.contains(&target).then(|| moved(&target, query))
}

fn moved(target: &str, query: Option<&str>) -> Response<Body> {
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    let path = slug::encode_path(target);
    let location = HeaderValue::try_from(format!("{path}{query}")).or_else(|_| HeaderValue::try_from(path));
    let mut response = short(StatusCode::MOVED_PERMANENTLY, "");
    response.headers_mut().insert(LOCATION, location.expect("a percent-encoded path has visible ASCII characters alone"));
    response
}

/// Answers with a card, which is drawn unless the client has it.
async fn drawn(head: &http::request::Parts, studio: &Studio, card: Card) -> Response<Body> {
    // Its address is that of its content, so it tells the content without drawing it.
    let etag = entity_tag(card.path().as_bytes());
    if let Some(response) = precondition(head, &etag, PageKind::Asset) {
        return response;
    }
    let Some(body) = studio.draw(card).await else {
        let mut response = short(StatusCode::SERVICE_UNAVAILABLE, "Too many pictures are being drawn. Come again in a moment.\n");
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
        return response;
    };
    whole(Page { status: StatusCode::OK, content_type: card::MEDIA_TYPE, body, etag, kind: PageKind::Asset })
}

fn whole(page: Page) -> Response<Body> {
    let Page { status, content_type, body, etag, kind } = page;
    let bytes = body.len() as u64;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    describe(response.headers_mut(), content_type, bytes);
    // Validators describe a representation of the target; a 404 has none.
    if status == StatusCode::OK {
        validators(response.headers_mut(), &etag, kind);
    }
    response
}

/// Evaluates the request's conditions for an answer that would be 200. Returns a 304, a 412, or nothing.
fn precondition(request: &http::request::Parts, etag: &str, kind: PageKind) -> Option<Response<Body>> {
    let fields = RequestFields::from_map(&request.headers);
    match conditional::evaluate(&request.method, &fields, Some(etag.as_bytes()), None) {
        Precondition::Proceed => None,
        Precondition::Failed => Some(short(StatusCode::PRECONDITION_FAILED, "It has changed.\n")),
        Precondition::NotModified => {
            let mut response = Response::new(Body::Empty);
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            validators(response.headers_mut(), etag, kind);
            Some(response)
        }
    }
}

fn describe(fields: &mut HeaderMap, content_type: &'static str, bytes: u64) {
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    fields.insert(CONTENT_LENGTH, bytes.into());
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// Adds the fields by which a stored response is validated. There is no `Last-Modified`: a page changes with others, whose files may be
/// older than it.
fn validators(fields: &mut HeaderMap, etag: &str, kind: PageKind) {
    fields.insert(ETAG, HeaderValue::try_from(etag).expect("an entity tag is quoted hexadecimal digits"));
    if kind == PageKind::Asset {
        fields.insert(CACHE_CONTROL, IMMUTABLE);
    }
}

fn short(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let content_type = if text.is_empty() { HTML } else { "text/plain; charset=utf-8" };
    describe(response.headers_mut(), content_type, text.len() as u64);
    response
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;
    use semantics::Scheme;

    use super::*;
    use crate::HELD_FILE_BYTES_MAX;

    const NOW: Timestamp = Timestamp::from_secs(1_790_812_800);

    struct Fixture {
        blog: Blog,
        folder: tempfile::TempDir,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("posts")).expect("made");
        fs::write(folder.path().join("posts/Über uns.md"), "# Über\n\n![c](cat.png)").expect("written");
        fs::write(folder.path().join("posts/cat.png"), "png").expect("written");
        let large: Vec<u8> = (0..=HELD_FILE_BYTES_MAX).map(|n| (n % 251) as u8).collect();
        fs::write(folder.path().join("film.mp4"), large).expect("written");
        let blog = Blog::open(folder.path(), BlogOptions::default(), NOW).expect("builds");
        Fixture { blog, folder }
    }

    fn ask(blog: &Blog, method: &str, path: &str, fields: &[(&str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        ask_by(Scheme::Http, blog, method, path, fields)
    }

    fn ask_by(scheme: Scheme, blog: &Blog, method: &str, path: &str, fields: &[(&str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path);
        if !fields.iter().any(|(name, _)| *name == "host") {
            request = request.header(HOST, "blog.test");
        }
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::Empty).expect("a request");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (head, body) = blog.fetch(request, &Arrival::of_our_own(scheme, ""), None).await.expect("answers").into_parts();
            let body = body.collect().await.expect("a whole body").to_bytes();
            (head.status, head.headers, body.to_vec())
        })
    }

    #[test]
    fn pages_carry_validators_and_no_freshness() {
        let Fixture { blog, folder: _folder } = fixture();
        let (status, fields, body) = ask(&blog, "GET", "/%C3%BCber-uns/", &[]);
        assert_eq!((status, fields[CONTENT_TYPE].as_bytes()), (StatusCode::OK, HTML.as_bytes()));
        assert_eq!(fields[CONTENT_LENGTH], body.len().to_string().as_str());
        assert!(!fields.contains_key("last-modified") && !fields.contains_key(CACHE_CONTROL));
        let etag = fields[ETAG].to_str().expect("ascii");
        assert!(etag.starts_with('"') && etag.ends_with('"'));
    }

    #[test]
    fn head_is_get_without_content() {
        let Fixture { blog, folder: _folder } = fixture();
        for path in ["/", "/film.mp4", "/gone", "/feed.xml", "/posts/cat.png"] {
            let host = [("host", "a.test")];
            let (get, head) = (ask(&blog, "GET", path, &host), ask(&blog, "HEAD", path, &host));
            assert_eq!((get.0, &get.1), (head.0, &head.1), "{path}");
            assert!(head.2.is_empty() && !get.2.is_empty(), "{path}");
        }
    }

    #[test]
    fn other_methods_are_told_what_is_allowed() {
        let Fixture { blog, folder: _folder } = fixture();
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PURGE", "get"] {
            let (status, fields, _) = ask(&blog, method, "/", &[]);
            assert_eq!((status, fields[ALLOW].as_bytes()), (StatusCode::METHOD_NOT_ALLOWED, &b"GET, HEAD"[..]), "{method}");
        }
    }

    #[test]
    fn a_missing_slash_is_a_relative_redirect() {
        let Fixture { blog, folder: _folder } = fixture();
        let cases = [
            ("/%C3%BCber-uns", "/%C3%BCber-uns/"),
            ("/%c3%bcber-uns?a=b&c", "/%C3%BCber-uns/?a=b&c"),
            ("/tags", "/tags/"),
            ("/page/1/", "/"),
            ("/page/1?x", "/?x"),
        ];
        for (path, target) in cases {
            let (status, fields, _) = ask(&blog, "GET", path, &[]);
            assert_eq!((status, fields[LOCATION].to_str().ok()), (StatusCode::MOVED_PERMANENTLY, Some(target)), "{path}");
        }
    }

    #[test]
    fn odd_paths_are_not_found() {
        let Fixture { blog, folder: _folder } = fixture();
        let paths = [
            "/gone",
            "//",
            "/..",
            "/../",
            "/posts/../../etc/passwd",
            "/%2e%2e/film.mp4",
            "/posts%2Fcat.png",
            "/posts/cat.png/",
            "/%00",
            "/%ff",
            "/%",
            "//evil.test/",
            "/page/0/",
            "/page/2/",
            "/posts/",
            "/posts/%C3%9Cber%20uns.md",
            "/blog.toml",
            "/tags//",
            "/FEED.XML",
            "/index.html",
            "/.",
        ];
        for path in paths {
            let (status, fields, body) = ask(&blog, "GET", path, &[]);
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
            assert!(!fields.contains_key(ETAG) && body.starts_with(b"<!doctype html>"), "{path}");
        }
    }

    #[test]
    fn validators_are_honoured() {
        let Fixture { blog, folder: _folder } = fixture();
        for path in ["/", "/posts/cat.png", "/film.mp4", "/feed.xml"] {
            let host = ("host", "a.test");
            let (status, fields, _) = ask(&blog, "GET", path, &[host]);
            assert_eq!(status, StatusCode::OK, "{path}");
            let etag = fields[ETAG].to_str().expect("ascii");
            let weak = format!("\"x\", W/{etag}");
            let cases = [
                (vec![("if-none-match", etag)], 304),
                (vec![("if-none-match", weak.as_str())], 304),
                (vec![("if-none-match", "*")], 304),
                (vec![("if-none-match", "\"x\"")], 200),
                (vec![("if-match", etag)], 200),
                (vec![("if-match", "\"x\"")], 412),
            ];
            for (mut sent, expected) in cases {
                sent.push(host);
                let (status, fields, body) = ask(&blog, "GET", path, &sent);
                assert_eq!(status.as_u16(), expected, "{path} {sent:?}");
                assert!(status != StatusCode::NOT_MODIFIED || body.is_empty() && fields[ETAG] == etag, "{path} {sent:?}");
            }
        }
    }

    #[test]
    fn the_feed_takes_scheme_and_host_from_the_request() {
        let Fixture { blog, folder: _folder } = fixture();
        let (_, http, body) = ask(&blog, "GET", "/feed.xml", &[("host", "a.test:8080")]);
        let text = String::from_utf8(body).expect("text");
        assert!(text.contains("<id>http://a.test:8080/</id>") && !text.contains('\u{1}'), "{text}");
        let (_, https, body) = ask_by(Scheme::Https, &blog, "GET", "/feed.xml", &[("host", "a.test:8080")]);
        assert!(String::from_utf8(body).expect("text").contains("<id>https://a.test:8080/</id>"));
        assert_ne!(http[ETAG], https[ETAG]);
        for host in ["", "a b", "a\"><x", "a/b"] {
            assert_eq!(ask(&blog, "GET", "/sitemap.xml", &[("host", host)]).0, StatusCode::BAD_REQUEST, "{host}");
        }
    }

    #[test]
    fn theme_assets_are_immutable() {
        let Fixture { blog, folder: _folder } = fixture();
        let site = blog.site();
        let (path, _) = site.addresses().find(|(_, kind)| *kind == PageKind::Asset).expect("one");
        assert_eq!(ask(&blog, "GET", path, &[]).1[CACHE_CONTROL], IMMUTABLE);
    }

    #[test]
    fn large_files_stream_whole_and_never_lie_about_their_length() {
        let Fixture { blog, folder } = fixture();
        let path = folder.path().join("film.mp4");
        let (status, fields, body) = ask(&blog, "GET", "/film.mp4", &[]);
        assert_eq!((status, fields[CONTENT_TYPE].as_bytes()), (StatusCode::OK, &b"video/mp4"[..]));
        assert!(body == fs::read(&path).expect("read"));
        fs::write(&path, "shorter").expect("written");
        assert_eq!(ask(&blog, "GET", "/film.mp4", &[]).0, StatusCode::NOT_FOUND);
        fs::remove_file(&path).expect("removed");
        assert_eq!(ask(&blog, "GET", "/film.mp4", &[]).0, StatusCode::NOT_FOUND);
    }

    #[test]
    fn a_bad_post_is_left_out_until_it_is_mended() {
        let Fixture { blog, folder } = fixture();
        fs::write(folder.path().join("bad.md"), "---\ndate: soon\n---\n# Bad").expect("written");
        let rebuilt = blog.rebuild(NOW).expect("the rest lives");
        assert!(rebuilt.paths.is_empty() && !blog.site().contains("/bad/"));
        assert_eq!((rebuilt.problems.as_slice(), blog.site().problems().len()), (blog.site().problems(), 1));
        fs::write(folder.path().join("bad.md"), "# Good").expect("written");
        let again = blog.rebuild(NOW).expect("builds");
        assert!(again.paths.contains(&"/bad/".to_owned()) && again.paths.contains(&"/".to_owned()), "{again:?}");
        assert_eq!((again.problems, again.mended), (Vec::new(), rebuilt.problems));
        let request = Request::get("/bad/").header(HOST, "blog.test").body(Body::Empty).expect("a request");
        let arrival = Arrival::of_our_own(Scheme::Http, "");
        let response = blog.fetch(request, &arrival, None).now_or_never().expect("held pages need no wait").expect("answers");
        assert_eq!(response.status(), StatusCode::OK);
    }
}
