//! Makes a set of requests of what people write.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
};

use bytes::Bytes;

use super::{
    Behaviour, Origin, Request, RequestSet,
    behaviour::{Class, Step, Templates},
    check::{Checks, is_field_name},
    leak::LeakCheck,
    list::{self, ListError},
    template::{Braces, Template, TemplateError},
    url::{Url, UrlError},
};
use crate::shape::Shape;

/// The largest content of a request.
const BODY_MAX: u64 = 256 << 20;

/// The `User-Agent` of the load tester, unless another `User-Agent` is given.
const USER_AGENT: &str = concat!("seawall-bench/", env!("CARGO_PKG_VERSION"));

/// Says what a run asks, as people write it.
///
/// Fields are few unless somebody gives more: `User-Agent: seawall-bench/...` and `Accept: */*`, as of ab, and no `Accept-Encoding`, as of ab and wrk, so
/// that figures compare. Pages are asked with `Accept-Encoding: gzip`.
#[derive(Debug, Clone, Default)]
pub struct RequestOptions {
    /// URLs; path and query may have placeholders.
    pub urls: Vec<String>,
    /// Files with URLs.
    pub lists: Vec<PathBuf>,
    /// URLs that were found in a sitemap: without placeholders.
    pub found: Vec<Url>,
    /// The method of requests that have none of their own; none: GET, or POST where there is a content.
    pub method: Option<String>,
    /// Fields of each request: `Name: value`; `Name:` leaves a field out that is sent otherwise.
    pub fields: Vec<String>,
    /// The content of each request.
    pub body: Option<Body>,
    /// Whether placeholders in the content are filled in.
    pub body_placeholders: bool,
    /// Ask in the given order, not by weight.
    pub in_order: bool,
    /// Take cookies and send them back.
    pub cookies: bool,
    /// The checks that answers must pass.
    pub checks: Checks,
    /// Ask what belongs to pages, too.
    pub page: bool,
    /// Other origins whose parts of pages are asked.
    pub page_origins: Vec<String>,
    /// The cookies by which the leak check knows its clients, with `{marker}`; none: there is no leak check.
    pub leak_cookie: Option<String>,
    /// The shape of a crowd; none: each visitor asks one of the URLs.
    pub shape: Option<Shape>,
    /// The time during which the crowd of the shape comes; none: as the shape says.
    pub over: Option<std::time::Duration>,
    /// A random number that only this run has.
    pub run: u32,
    /// The beginning of the run: milliseconds since 1970.
    pub began: u64,
}

/// The content of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// The text is the content, as it stands.
    Literal(String),
    /// The content is in a file.
    File(PathBuf),
}

impl Body {
    /// Reads what stands behind a flag: `@FILE`, or the content itself.
    #[must_use]
    pub fn read(text: &str) -> Self {
        text.strip_prefix('@').map_or_else(|| Self::Literal(text.to_owned()), |file| Self::File(file.into()))
    }
}

/// The reason why nothing can be asked.
#[derive(Debug, thiserror::Error)]
pub enum RequestOptionsError {
    /// A URL is none.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A list of URLs is none.
    #[error(transparent)]
    List(#[from] ListError),
    /// Placeholders are wrong.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// Nothing is asked.
    #[error("there is no URL: name one, or a list, or a sitemap")]
    Nothing,
    /// The method is none.
    #[error("{0:?} is not a method: methods are words like GET and POST")]
    Method(String),
    /// A field is none.
    #[error("{0:?} is not a field: write 'Name: value'")]
    Field(String),
    /// A field is made by the load tester itself.
    #[error("{0} cannot be given: {1}")]
    OwnField(String, &'static str),
    /// The content cannot be read.
    #[error("{}: cannot be read", .0.display())]
    Body(PathBuf, #[source] std::io::Error),
    /// The content is too large.
    #[error("{}: a content has at most {BODY_MAX} bytes", .0.display())]
    BodyTooLarge(PathBuf),
    /// Two things cannot be together.
    #[error("{0}")]
    Contradiction(&'static str),
    /// There are too many servers.
    #[error("the URLs name more than 65,535 servers")]
    Origins,
}

impl RequestOptions {
    /// Makes an empty [`RequestOptions`] for a run that begins at `began` (milliseconds since 1970). It has a random number of its own, so that what is
    /// unique in it is unique among all runs, whatever the seed of its choices.
    #[must_use]
    pub fn new(began: u64) -> Self {
        // Without the system's random numbers, the moment tells runs apart well enough.
        let run = getrandom::u32().unwrap_or_else(|_| u32::try_from(began % (1 << 32)).unwrap_or_default());
        Self { run, began, ..Self::default() }
    }

    /// Returns the servers that are asked. Reads the lists, so it tells errors in them.
    ///
    /// # Errors
    /// When a URL or a list is none.
    pub fn origins(&self) -> Result<Vec<Origin>, RequestOptionsError> {
        let mut origins: Vec<Origin> = Vec::new();
        let all = self.urls()?.into_iter().map(|(_, url, _, _)| url.origin);
        for origin in all.chain(self.page_origins()?) {
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        }
        Ok(origins)
    }

    fn page_origins(&self) -> Result<Vec<Origin>, RequestOptionsError> {
        Ok(self.page_origins.iter().map(|url| Url::read(url).map(|url| url.origin)).collect::<Result<_, _>>()?)
    }

    /// Returns all URLs, with method, weight, and whether they may have placeholders.
    #[expect(clippy::type_complexity, reason = "a tuple of this file")]
    fn urls(&self) -> Result<Vec<(Option<String>, Url, u32, bool)>, RequestOptionsError> {
        let mut all = Vec::new();
        for url in &self.urls {
            all.push((None, Url::read_with_placeholders(url)?, 1, true));
        }
        let base = all.first().map(|(_, url, _, _)| url.clone());
        for file in &self.lists {
            let lines = list::read(file, base.as_ref())?;
            all.extend(lines.into_iter().map(|line| (line.method, line.url, line.weight, true)));
        }
        all.extend(self.found.iter().map(|url| (None, url.clone(), 1, false)));
        Ok(all)
    }

    /// Makes the set.
    ///
    /// # Errors
    /// When what was written cannot be asked.
    pub fn set(&self) -> Result<RequestSet, RequestOptionsError> {
        self.contradictions()?;
        let body = self.content()?;
        let method = self.method.clone().unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned());
        let fields = self.all_fields()?;
        let mut origins: Vec<Origin> = Vec::new();
        let (mut requests, mut templates) = (Vec::new(), Vec::new());
        for (own_method, url, weight, has_placeholders) in self.urls()? {
            let method = own_method.unwrap_or_else(|| method.clone());
            if !is_field_name(&method) {
                return Err(RequestOptionsError::Method(method));
            }
            if method == "CONNECT" {
                return Err(RequestOptionsError::Contradiction("CONNECT asks for a tunnel, which is not measured"));
            }
            let origin = index(&mut origins, url.origin)?;
            let mut request = Request { origin, method, target: url.target, fields: fields.clone(), body: body.clone(), weight };
            let own = match has_placeholders {
                true => Templates::read(&mut request, self.body_placeholders)?,
                false => {
                    // Braces of a sitemap's URL are percent-encoded already; those of fields are placeholders all the same.
                    let target = std::mem::take(&mut request.target);
                    let own = Templates::read(&mut request, self.body_placeholders)?;
                    request.target.clone_from(&target);
                    own.map(|own| Box::new(Templates { target: Template::literal(&target), ..*own }))
                }
            };
            requests.push(request);
            templates.push(own);
        }
        if requests.is_empty() {
            return Err(RequestOptionsError::Nothing);
        }
        if requests.iter().all(|request| request.weight == 0) {
            return Err(RequestOptionsError::Contradiction(
                "every URL has the weight 0, so nothing would be asked: write weight=1 for one of them at least",
            ));
        }
        if self.in_order && requests.iter().any(|request| request.weight != 1) {
            return Err(RequestOptionsError::Contradiction("what is asked in order has no weights"));
        }
        for origin in self.page_origins()? {
            index(&mut origins, origin)?;
        }
        let leak = match &self.leak_cookie {
            None => None,
            Some(cookie) => {
                let cookie = Template::read(cookie, Braces::Cookie)?;
                if !cookie.has_marker() {
                    return Err(RequestOptionsError::Contradiction("the cookie of the leak check needs a {marker}: 'name={marker}'"));
                }
                Some(LeakCheck::new(cookie, self.run))
            }
        };
        let classes = match &self.shape {
            Some(shape) => shape.classes(self, &mut requests, &mut templates)?,
            None => {
                let all = (0..u32::try_from(requests.len()).unwrap_or(u32::MAX)).collect();
                vec![Class { arrivals: Vec::new(), steps: vec![Step { page: self.page, ..Step::of(all, &requests) }] }]
            }
        };
        let reads = leak.is_some() || self.checks.want_body();
        let pages = classes.iter().flat_map(|class| &class.steps).any(|step| step.page);
        if reads || pages {
            self.only_gzip(&mut requests)?;
        }
        let behaviour = Behaviour {
            classes,
            templates: if templates.iter().all(Option::is_none) { Vec::new() } else { templates },
            in_order: self.in_order.then(|| Arc::new(AtomicU64::new(0))),
            cookies: self.cookies || self.shape.as_ref().is_some_and(Shape::has_cookies),
            checks: self.checks.clone(),
            leak,
            shape: self.shape.as_ref().map(|shape| (shape.name.clone(), shape.sources())),
            run: self.run,
            began: self.began,
            ..Behaviour::default()
        };
        Ok(RequestSet { origins, requests, behaviour })
    }

    /// Gives the visitors of a set that was made elsewhere (of a log) what they do beyond its requests: fields, cookies, checks, the leak check and
    /// pages. Fields that are given replace those of the set.
    ///
    /// # Errors
    /// When what was written cannot be asked.
    pub fn behave(&self, set: RequestSet) -> Result<RequestSet, RequestOptionsError> {
        let own = Self { urls: Vec::new(), lists: Vec::new(), shape: None, in_order: false, ..self.clone() };
        let found = set
            .requests
            .iter()
            .map(|request| Url { origin: set.origins[usize::from(request.origin)].clone(), target: request.target.clone() });
        let mut asked = Self { found: found.collect(), ..own }.set()?;
        let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
        let given = |name: &str| self.fields.iter().any(|text| text.split_once(':').is_some_and(|(other, _)| is(other, name)));
        for (at, (request, of_set)) in asked.requests.iter_mut().zip(set.requests).enumerate() {
            let mut own = asked.behaviour.templates.get_mut(at).and_then(Option::as_deref_mut);
            if let Some(own) = &mut own {
                own.body = None;
            }
            for (name, value) in of_set.fields.into_iter().filter(|(name, _)| !given(name)) {
                if let Some(own) = &mut own {
                    own.fields.retain(|(other, _)| !is(other, &name));
                    own.fields.push((name.clone(), Template::literal(&value)));
                }
                request.fields.retain(|(other, _)| !is(other, &name));
                request.fields.push((name, value));
            }
            (request.method, request.body, request.weight) = (of_set.method, of_set.body, of_set.weight);
        }
        Ok(asked)
    }

    fn contradictions(&self) -> Result<(), RequestOptionsError> {
        let contradiction = |cond: bool, text| if cond { Err(RequestOptionsError::Contradiction(text)) } else { Ok(()) };
        contradiction(
            self.page && (self.body.is_some() || self.method.as_deref().is_some_and(|method| method != "GET")),
            "pages are asked with GET: --page goes with no other method and no content",
        )?;
        contradiction(!self.page_origins.is_empty() && !self.page && self.shape.is_none(), "--page-origin belongs to --page")?;
        contradiction(self.in_order && self.shape.is_some(), "a shape says what its visitors ask: --in-order does not go with it")?;
        contradiction(
            self.shape.is_some() && (self.body.is_some() || self.method.is_some()),
            "a shape says how its visitors ask: no method and no content go with it",
        )?;
        contradiction(self.body_placeholders && self.body.is_none(), "there is no content that could have placeholders")
    }

    fn content(&self) -> Result<Bytes, RequestOptionsError> {
        match &self.body {
            None => Ok(Bytes::new()),
            Some(Body::Literal(text)) => Ok(Bytes::from(text.clone())),
            Some(Body::File(file)) => {
                let error = |error| RequestOptionsError::Body(file.clone(), error);
                if fs::metadata(file).map_err(error)?.len() > BODY_MAX {
                    return Err(RequestOptionsError::BodyTooLarge(file.clone()));
                }
                fs::read(file).map(Bytes::from).map_err(error)
            }
        }
    }

    fn all_fields(&self) -> Result<Vec<(String, String)>, RequestOptionsError> {
        let mut fields = vec![("User-Agent".to_owned(), USER_AGENT.to_owned()), ("Accept".to_owned(), "*/*".to_owned())];
        if self.page {
            fields.push(("Accept-Encoding".to_owned(), "gzip".to_owned()));
        }
        let mut given: Vec<(String, String)> = Vec::new();
        for text in &self.fields {
            let (name, value) = read_field(text)?;
            fields.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
            if !value.is_empty() {
                given.push((name, value));
            }
        }
        fields.extend(given);
        Ok(fields)
    }

    /// Leaves no coding to servers that could not be taken off an answer.
    fn only_gzip(&self, requests: &mut [Request]) -> Result<(), RequestOptionsError> {
        let codings = |value: &str| {
            value.split(',').map(|coding| coding.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()).collect::<Vec<_>>()
        };
        let known = |value: &str| codings(value).iter().all(|coding| matches!(coding.as_str(), "gzip" | "deflate" | "identity" | "x-gzip"));
        for text in &self.fields {
            let (name, value) = read_field(text)?;
            if name.eq_ignore_ascii_case("accept-encoding") && !known(&value) {
                return Err(RequestOptionsError::Contradiction(
                    "contents are read, and only gzip and deflate can be: give no other Accept-Encoding",
                ));
            }
        }
        // Those of a shape name what browsers name.
        for (name, value) in requests.iter_mut().flat_map(|request| &mut request.fields) {
            if name.eq_ignore_ascii_case("accept-encoding") && !known(value) {
                "gzip".clone_into(value);
            }
        }
        Ok(())
    }
}

fn index(origins: &mut Vec<Origin>, origin: Origin) -> Result<u16, RequestOptionsError> {
    let at = origins.iter().position(|other| *other == origin).unwrap_or_else(|| {
        origins.push(origin);
        origins.len() - 1
    });
    u16::try_from(at).map_err(|_| RequestOptionsError::Origins)
}

/// Reads a field: `Name: value`.
pub(crate) fn read_field(text: &str) -> Result<(String, String), RequestOptionsError> {
    let error = || RequestOptionsError::Field(text.to_owned());
    let (name, value) = text.split_once(':').ok_or_else(error)?;
    let value = value.trim();
    if !is_field_name(name) || value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return Err(error());
    }
    let own = match name.to_ascii_lowercase().as_str() {
        "host" => Some("name the host in the URL, and the server with --connect-to ADDRESS:PORT"),
        "content-length" | "transfer-encoding" => Some("it follows from the content"),
        "connection" | "keep-alive" | "proxy-connection" => Some("connections are kept, unless --no-keepalive is given"),
        "upgrade" | "te" | "expect" => Some("what follows from it is not measured"),
        _ => None,
    };
    match own {
        Some(why) => Err(RequestOptionsError::OwnField(name.to_owned(), why)),
        None => Ok((name.to_owned(), value.to_owned())),
    }
}
