//! Answers a request: what the current site has at an address, and for how long whom it may be kept.
//!
//! Browsers ask for pages each time, which costs an answer of a few bytes, so that an edit is seen at once. The cache in front keeps everything until
//! it is told of a change: each response carries tags for the addresses that it was made of, and a [`Rebuilt`] names those that changed.

use std::{hash::Hasher as _, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{
        ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HOST, LOCATION,
        REFERRER_POLICY, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
    },
    request::Parts,
};
use origins::{
    Arrival, Body, OriginError,
    files::{Leads, Rules, canonical_path},
};
use semantics::{
    RequestFields,
    accept::prefers,
    conditional::{self, Precondition, not_modified_fields},
    targeted::SEAWALL_CACHE_CONTROL,
};
use siphasher::sip::SipHasher13;

use crate::{
    blog::{Rebuilt, Shared},
    card::{self, Card},
    digest::entity_tag,
    gallery::{self, WantedVariant},
    large_file::blocking,
    preview, reload,
    site::{Page, PageKind, Site, SiteResource},
    slug,
};

const HTML: &str = "text/html; charset=utf-8";
const SVG: &str = "image/svg+xml";
const PLAIN: &str = "text/plain; charset=utf-8";

const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const VALIDATED: HeaderValue = HeaderValue::from_static("public, max-age=0, must-revalidate");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// The time that browsers keep the way to a picture that took the place of another: it may soon lead to a third one.
const BRIEFLY: HeaderValue = HeaderValue::from_static("public, max-age=60");
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-store");

/// The policy for a drawing that is opened by itself: it may be looked at and lead elsewhere, and nothing else. A drawing often comes from
/// somebody else than the author, and a script in it would be one of the blog. In a page it may do no more anyway.
const DRAWING: HeaderValue = HeaderValue::from_static("script-src 'none'; object-src 'none'; sandbox allow-popups");

/// The time that the cache in front keeps an answer: until a rebuild purges it.
const UNTIL_CHANGED: HeaderValue = HeaderValue::from_static("max-age=31536000");

const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");
const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// The file that a post is as Markdown, below its address.
pub(crate) const MARKDOWN_NAME: &str = "index.md";

/// The most tags that are purged one by one; a rebuild that changed more purges all pages at once.
const TAGS_MAX: usize = 1_000;

/// The file with an author's own answer for addresses that do not exist.
pub(crate) const NOT_FOUND_PATH: &str = "/404.html";

/// The tag of every answer that says that there is nothing.
const NOT_FOUND_TAG: &str = "not-found";

impl Rebuilt {
    /// Returns the tags of the stored answers that are no longer true; `None`: any answer may be another one now.
    #[must_use]
    pub fn tags(&self) -> Option<Vec<String>> {
        if self.rules || self.paths.len() > TAGS_MAX {
            return None;
        }
        Some(self.paths.iter().map(|path| tag(path)).chain(self.not_found.then(|| NOT_FOUND_TAG.to_owned())).collect())
    }
}

/// Returns the tag of every answer that was made of what is at `path`. Two paths with one tag are purged together, which is never wrong.
fn tag(path: &str) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(path.as_bytes());
    format!("p-{:016x}", hasher.finish())
}

/// A response while it is made.
struct Answer<'a> {
    shared: &'a Arc<Shared>,
    site: &'a Arc<Site>,
    rules: &'a Rules,
    head: &'a Parts,
    /// The scheme and authority by which the blog was asked.
    base: String,
    /// Whether the client is its author's browser, which is told of changes.
    is_live: bool,
    /// The path that was asked for, as rules compare it.
    canonical: Option<String>,
    /// The paths of which the answer is made.
    tags: Vec<String>,
}

/// Answers a request. It reads only files that are too large to hold in memory, and those off the worker's loop.
pub(crate) async fn answer(shared: &Arc<Shared>, head: &Parts, arrival: &Arrival<'_>) -> Result<Response<Body>, OriginError> {
    if head.method != Method::GET && head.method != Method::HEAD {
        let mut response = short(StatusCode::METHOD_NOT_ALLOWED, "A blog is only read: GET and HEAD.\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(response);
    }
    let Some(host) = head.headers.get(HOST).and_then(|host| host.to_str().ok()).filter(|host| slug::is_authority(host)) else {
        return Ok(short(StatusCode::BAD_REQUEST, "A blog is asked with a valid Host field.\n"));
    };
    let (site, rules) = (shared.site(), shared.rules());
    let is_live = shared.reload.is_for(arrival, host);
    let mut answer = Answer {
        shared,
        site: &site,
        rules: &rules,
        head,
        base: format!("{}://{host}", arrival.scheme.as_str()),
        is_live,
        canonical: canonical_path(head.uri.path()),
        tags: Vec::new(),
    };
    let mut response = answer.respond().await?;
    answer.mark(response.headers_mut());
    if head.method == Method::HEAD {
        *response.body_mut() = Body::Empty;
    }
    Ok(response)
}

impl Answer<'_> {
    async fn respond(&mut self) -> Result<Response<Body>, OriginError> {
        let (head, rules) = (self.head, self.rules);
        let (asked, query) = (head.uri.path(), head.uri.query());
        if self.is_live && asked.starts_with(reload::PREFIX) {
            let versions = self.shared.versions();
            if let Some(response) = self.shared.reload.answer((asked, query), &head.headers, versions) {
                return Ok(response);
            }
        }
        let Some(path) = slug::decode_path(asked) else { return Ok(self.not_found()) };
        if path.starts_with(preview::PREFIX) {
            return self.preview(&path).await;
        }
        self.depends_on(&path);
        let canonical = self.canonical.clone();
        let leads = |is_forced| canonical.as_ref().and_then(|canonical| rules.redirect(canonical, query, is_forced));
        if let Some(leads) = leads(true) {
            return self.led(leads).await;
        }
        if let Some(response) = self.at(&path, StatusCode::OK).await? {
            return Ok(response);
        }
        if let Some(leads) = leads(false) {
            return self.led(leads).await;
        }
        if let Some(response) = self.elsewhere(&path) {
            return Ok(response);
        }
        Ok(self.replaced(&path).unwrap_or_else(|| self.not_found()))
    }

    /// Answers with what is at `path`, if there is something.
    async fn at(&mut self, path: &str, status: StatusCode) -> Result<Option<Response<Body>>, OriginError> {
        let site = self.site;
        if let Some(text) = path.strip_suffix(MARKDOWN_NAME).filter(|text| text.ends_with('/')) {
            self.depends_on(text);
            if let Some(page) = site.markdown(text, &self.base) {
                return Ok(Some(self.whole(page, status)));
            }
        }
        if site.takes_long(path) {
            let (site, path, base) = (Arc::clone(site), path.to_owned(), self.base.clone());
            let found = move || if let Some(SiteResource::Page(page)) = site.find(&path, &base) { Some(page) } else { None };
            return Ok(blocking(found).await?.map(|page| self.whole(page, status)));
        }
        let response = match site.find(path, &self.base) {
            Some(SiteResource::Page(page)) => {
                let is_markdown = matches!(page.kind, PageKind::Post | PageKind::Page) && self.prefers_markdown();
                match is_markdown.then(|| site.markdown(path, &self.base)).flatten() {
                    Some(markdown) => {
                        let mut response = self.whole(markdown, status);
                        let place = HeaderValue::try_from(format!("{}{MARKDOWN_NAME}", slug::encode_path(path)));
                        response.headers_mut().insert(CONTENT_LOCATION, place.expect("an encoded path is printable ASCII"));
                        response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
                        response
                    }
                    None => {
                        let has_forms = matches!(page.kind, PageKind::Post | PageKind::Page);
                        let mut response = self.whole(page, status);
                        if has_forms {
                            response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
                        }
                        response
                    }
                }
            }
            Some(SiteResource::File(file)) => {
                let mut response = Response::new(Body::Empty);
                *response.status_mut() = status;
                describe(response.headers_mut(), file.content_type, file.bytes);
                self.finish(response.headers_mut(), PageKind::File, Some(&file.etag));
                if let Some(answered) = self.precondition(&response) {
                    return Ok(Some(answered));
                }
                let Some(opened) = file.open().await? else { return Ok(None) };
                describe(response.headers_mut(), file.content_type, opened.bytes);
                *response.body_mut() = file.body(opened);
                response
            }
            Some(SiteResource::Picture(wanted)) => return self.picture(wanted, status).await,
            Some(SiteResource::Moved(to)) => {
                self.depends_on(to);
                self.moved(to)
            }
            Some(SiteResource::Card(card)) => self.drawn(card, status).await,
            None => return Ok(None),
        };
        Ok(Some(response))
    }

    /// Answers with a card, which is drawn unless the client has it.
    async fn drawn(&self, card: Card, status: StatusCode) -> Response<Body> {
        // Its address is that of its content, so it tells the content without drawing it.
        let etag = entity_tag(card.path().as_bytes());
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = status;
        self.finish(response.headers_mut(), PageKind::Asset, Some(&etag));
        if let Some(answered) = self.precondition(&response) {
            return answered;
        }
        let Some(body) = self.shared.studio.draw(card).await else {
            let mut response = short(StatusCode::SERVICE_UNAVAILABLE, "Too many pictures are being drawn. Come again in a moment.\n");
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
            return response;
        };
        self.whole(Page { status: StatusCode::OK, content_type: card::MEDIA_TYPE, body, etag, kind: PageKind::Asset }, status)
    }

    /// Answers with a variant of a picture. While it is being made for too long, and if it cannot be made, the author's own file stands for it,
    /// which nobody keeps.
    async fn picture(&self, wanted: &WantedVariant, status: StatusCode) -> Result<Option<Response<Body>>, OriginError> {
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = status;
        self.finish(response.headers_mut(), PageKind::Picture, Some(&wanted.etag()));
        if let Some(answered) = self.precondition(&response) {
            return Ok(Some(answered));
        }
        let content = match wanted.content().await {
            Ok(made) => {
                describe(response.headers_mut(), wanted.content_type(), made.len() as u64);
                made
            }
            Err(why) => {
                tracing::debug!(path = self.head.uri.path(), %why, "the author's own picture is sent");
                let wanted = wanted.clone();
                let Ok((own, content_type)) = blocking(move || wanted.instead()).await? else { return Ok(None) };
                let fields = response.headers_mut();
                describe(fields, content_type, own.len() as u64);
                fields.remove(ETAG);
                fields.insert(CACHE_CONTROL, NO_STORE);
                own
            }
        };
        *response.body_mut() = Body::from(content);
        Ok(Some(response))
    }

    /// Answers as a rule of `_redirects` says.
    async fn led(&mut self, leads: Leads) -> Result<Response<Body>, OriginError> {
        match leads {
            Leads::Away(status, to) => {
                let Ok(to) = HeaderValue::try_from(to) else { return Ok(self.not_found()) };
                let mut response = short(status, "");
                response.headers_mut().insert(LOCATION, to);
                self.finish(response.headers_mut(), PageKind::NotFound, None);
                Ok(response)
            }
            Leads::Within(status, to) => {
                let path = to.split(['?', '#']).next().and_then(slug::decode_path).unwrap_or_default();
                self.depends_on(&path);
                let found = match self.at(&path, status).await? {
                    None if !path.is_empty() && !path.ends_with('/') => self.at(&format!("{path}/"), status).await?,
                    found => found,
                };
                Ok(found.unwrap_or_else(|| {
                    let mut response = self.not_found();
                    if status.is_client_error() {
                        *response.status_mut() = status;
                    }
                    response
                }))
            }
        }
    }

    /// Makes a redirect if `path` differs from an existing address only in its slash.
    fn elsewhere(&mut self, path: &str) -> Option<Response<Body>> {
        let target = if path == "/page/1" || path == "/page/1/" { "/".to_owned() } else { format!("{path}/") };
        self.depends_on(&target);
        let to = self.site.end_of(&target)?;
        self.depends_on(to);
        Some(self.moved(to))
    }

    /// Redirects to another address of this site. The target is relative, so it holds on every host, and nobody can make it lead elsewhere.
    fn moved(&self, to: &str) -> Response<Body> {
        let query = self.head.uri.query().map_or_else(String::new, |query| format!("?{query}"));
        let mut response = short(StatusCode::MOVED_PERMANENTLY, "");
        let to = HeaderValue::try_from(format!("{}{query}", slug::encode_path(to)));
        response.headers_mut().insert(LOCATION, to.expect("a path is encoded, and a query was part of a URI"));
        self.finish(response.headers_mut(), PageKind::NotFound, None);
        response
    }

    /// Makes a redirect to the picture that has taken the place of one that pages named at `path`: those pages are still in caches and in
    /// feed readers.
    fn replaced(&mut self, path: &str) -> Option<Response<Body>> {
        let to = gallery::replaced(self.site.pictures(), path)?;
        self.depends_on(&to);
        let mut response = self.moved(&to);
        *response.status_mut() = StatusCode::FOUND;
        response.headers_mut().insert(CACHE_CONTROL, BRIEFLY);
        Some(response)
    }

    fn not_found(&mut self) -> Response<Body> {
        self.tags.push(NOT_FOUND_TAG.to_owned());
        self.depends_on(NOT_FOUND_PATH);
        // An author's own page replaces ours.
        let page = match self.site.find(NOT_FOUND_PATH, &self.base) {
            Some(SiteResource::Page(page)) => page,
            _ => self.site.not_found(&self.base),
        };
        self.whole(page, StatusCode::NOT_FOUND)
    }

    /// Answers under a private link. Whatever the answer is, nobody keeps it.
    async fn preview(&mut self, path: &str) -> Result<Response<Body>, OriginError> {
        let site = self.site;
        let found = self.shared.previews().and_then(|previews| previews.find(site, path));
        let found = found.and_then(|(draft, below)| {
            // Beside the text itself, its link opens the files that lie with it: in its folder, and below it if the folder is that of this text.
            let (folder, name) = draft.file.rsplit_once('/').unwrap_or_default();
            let beside = below.trim_start_matches('/').strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
            let is_beside = !folder.is_empty() && beside.is_some_and(|rest| !rest.contains('/') || name.starts_with("index."));
            let found = site.draft(below, &self.base)?;
            let is_text = matches!(&found, SiteResource::Page(page) if page.content_type == HTML);
            (below == draft.path || is_beside && !is_text).then_some(found)
        });
        let mut response = match found {
            Some(SiteResource::Page(page)) => self.whole(Page { etag: String::new(), ..page }, StatusCode::OK),
            Some(SiteResource::File(file)) => match file.open().await? {
                Some(opened) => {
                    let bytes = opened.bytes;
                    let mut response = Response::new(file.body(opened));
                    describe(response.headers_mut(), file.content_type, bytes);
                    response
                }
                None => self.not_found(),
            },
            Some(SiteResource::Moved(_) | SiteResource::Card(_) | SiteResource::Picture(_)) | None => self.not_found(),
        };
        let is_found = response.status() == StatusCode::OK;
        let fields = response.headers_mut();
        fields.remove(ETAG);
        fields.insert(CACHE_CONTROL, PRIVATE);
        if is_found {
            fields.insert(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
            // The address is the secret.
            fields.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        }
        Ok(response)
    }

    fn prefers_markdown(&self) -> bool {
        prefers(&RequestFields::from_map(&self.head.headers), ("text", "markdown"), ("text", "html"))
    }

    fn whole(&self, page: Page, status: StatusCode) -> Response<Body> {
        let Page { status: own, content_type, mut body, mut etag, kind } = page;
        let status = if own == StatusCode::OK { status } else { own };
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = status;
        // Validators describe a representation of the target; an error has none.
        let has_validators = status == StatusCode::OK && !etag.is_empty();
        if self.is_live && content_type == HTML {
            let mut fields = HeaderMap::new();
            self.finish(&mut fields, kind, None);
            if reload::is_allowed_by(&fields) {
                let asked = slug::decode_path(self.head.uri.path()).unwrap_or_default();
                body = reload::with_script(&body, self.shared.version(self.site, &asked));
                etag = entity_tag(&body);
            }
        }
        describe(response.headers_mut(), content_type, body.len() as u64);
        self.finish(response.headers_mut(), kind, has_validators.then_some(etag.as_str()));
        if has_validators && let Some(answered) = self.precondition(&response) {
            return answered;
        }
        *response.body_mut() = Body::from(body);
        response
    }

    /// Sets for how long browsers keep the answer, its validator, and the author's own fields. There is no `Last-Modified`: a page changes with
    /// others, whose files may be older than it.
    fn finish(&self, fields: &mut HeaderMap, kind: PageKind, etag: Option<&str>) {
        fields.insert(CACHE_CONTROL, if kind.is_immutable() { IMMUTABLE } else { VALIDATED });
        if let Some(etag) = etag {
            fields.insert(ETAG, HeaderValue::try_from(etag).expect("an entity tag is quoted hexadecimal digits"));
        }
        if let Some(path) = &self.canonical {
            self.rules.set_fields(path, fields);
        }
    }

    /// Evaluates the request's conditions for a response that would be 200. Returns a 304, a 412, or nothing.
    fn precondition(&self, response: &Response<Body>) -> Option<Response<Body>> {
        if response.status() != StatusCode::OK {
            return None;
        }
        let fields = RequestFields::from_map(&self.head.headers);
        let etag = response.headers().get(ETAG).map(HeaderValue::as_bytes);
        match conditional::evaluate(&self.head.method, &fields, etag, None) {
            Precondition::Proceed => None,
            Precondition::Failed => Some(short(StatusCode::PRECONDITION_FAILED, "It has changed.\n")),
            Precondition::NotModified => {
                let mut confirmation = Response::new(Body::Empty);
                *confirmation.status_mut() = StatusCode::NOT_MODIFIED;
                *confirmation.headers_mut() = not_modified_fields(response.headers());
                Some(confirmation)
            }
        }
    }

    fn depends_on(&mut self, path: &str) {
        let tag = tag(path);
        if !self.tags.contains(&tag) {
            self.tags.push(tag);
        }
    }

    /// Sets the fields that only the cache sees: how long the answer is true, and the tags by which it is purged.
    fn mark(&self, fields: &mut HeaderMap) {
        let is_kept = fields.get(CACHE_CONTROL).is_some_and(|said| *said != PRIVATE && said != "no-store");
        if !is_kept || self.tags.is_empty() {
            return;
        }
        fields.insert(SEAWALL_CACHE_CONTROL, UNTIL_CHANGED);
        let own = fields.get(SURROGATE_KEY).and_then(|own| own.to_str().ok()).map(str::to_owned);
        let tags: Vec<String> = own.into_iter().chain(self.tags.iter().cloned()).collect();
        fields.insert(SURROGATE_KEY, HeaderValue::try_from(tags.join(" ")).expect("tags are printable ASCII"));
    }
}

fn describe(fields: &mut HeaderMap, content_type: &'static str, bytes: u64) {
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    fields.insert(CONTENT_LENGTH, bytes.into());
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if content_type.starts_with(SVG) {
        fields.insert(CONTENT_SECURITY_POLICY, DRAWING);
    }
}

fn short(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    describe(response.headers_mut(), if text.is_empty() { HTML } else { PLAIN }, text.len() as u64);
    response
}
