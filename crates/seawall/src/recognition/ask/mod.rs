//! The question: which software a server runs. Each one is asked in its own way: [`ghost`], [`wordpress`].

mod ghost;
mod wordpress;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::BodyExt;
use origins::{
    Arrival, Body, Fault, Origin,
    fastcgi::{FastCgi, FastCgiServer},
    http::HttpOrigin,
    php::{Php, PhpFolder},
    server::{Address, ServerOptions, tls_config},
};
use semantics::Scheme;

use super::{Finding, Question, Software, keeper::SharedFindings};
use crate::config::settings::{Kind, Settings, Site, Source};

/// The longest time that a server has to answer, with everything that it is asked.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The number of times that an answer may lead to another name or scheme of the same server.
const REDIRECTS_MAX: usize = 2;

/// The host by which a folder is asked that has none of its own.
const NO_HOST: &str = "localhost";

/// The `User-Agent` of Seawall when it asks.
const OURSELVES: &str = concat!("seawall/", env!("CARGO_PKG_VERSION"));

/// A server, as it is to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    endpoint: Endpoint,
    /// The host that readers ask for. `None`: the one in the address.
    host: Option<String>,
    /// The scheme that readers use, as far as is known.
    scheme: Scheme,
}

/// The endpoint at which a server is asked.
#[derive(Clone, Debug)]
enum Endpoint {
    Http { addresses: Vec<Address>, tls: Arc<rustls::ClientConfig> },
    Php { folder: Arc<PhpFolder>, server: Arc<FastCgiServer> },
}

/// A question, and whom to ask.
#[derive(Clone, Debug)]
pub(crate) struct Inquiry {
    pub(crate) question: Question,
    pub(crate) server: Server,
    /// The software for which it is asked.
    kinds: Vec<Kind>,
    /// The site, for what it says of its path and its folder.
    site: Site,
}

impl Server {
    /// Makes it for a site. Returns `None` if no server is behind the site, or its certificates cannot be read: then nothing works there.
    pub(crate) fn of(site: &Site, settings: &Settings) -> Option<Self> {
        let (endpoint, question) = match &site.source {
            Source::Http(addresses) => {
                let endpoint = Endpoint::Http {
                    addresses: addresses.iter().map(|address| address.to_string().parse().ok()).collect::<Option<_>>()?,
                    tls: tls_config(site.origin.ca_file.as_deref()).ok()?,
                };
                (endpoint, Question::new(addresses.first()?, &site.hosts, &site.origin.host))
            }
            Source::Php(path) => {
                let php = site.php.as_ref()?;
                let mut options = ServerOptions::new(vec![php.server.to_string().parse().ok()?], tls_config(None).ok()?);
                options.connect_timeout = PATIENCE;
                let folder = Arc::new(PhpFolder::open(path, php.folder.clone()).ok()?);
                (Endpoint::Php { folder, server: Arc::new(FastCgiServer::new(Arc::new(options))) }, Question::of_folder(path, &site.hosts))
            }
            Source::Files(_) | Source::Blog(_) => return None,
        };
        let scheme = if settings.tls.is_some() { Scheme::Https } else { Scheme::Http };
        Some(Self { endpoint, host: question.host, scheme })
    }

    /// Tells it the scheme that its readers use, as it has said itself.
    #[must_use]
    pub(crate) fn for_readers_of(mut self, software: &Software) -> Self {
        self.scheme = if software.is_https() { Scheme::Https } else { Scheme::Http };
        self
    }

    /// Tells it the name and the scheme by which it calls its own files, as it has said itself. A name in the settings goes before that.
    #[must_use]
    pub(crate) fn for_core_of(mut self, software: &Software) -> Self {
        if let Ok(core) = software.core_url().parse::<Uri>() {
            self.scheme = if core.scheme_str() == Some("https") { Scheme::Https } else { Scheme::Http };
            self.host = self.host.or_else(|| core.authority().map(ToString::to_string));
        }
        self
    }

    fn origin(&self) -> Result<Box<dyn Origin>, String> {
        match &self.endpoint {
            Endpoint::Http { addresses, tls } => {
                let mut options = ServerOptions::new(addresses.clone(), Arc::clone(tls));
                options.pool_idle_max = 1;
                options.connect_timeout = PATIENCE;
                Ok(Box::new(HttpOrigin::new(Arc::new(options), None).map_err(|error| error.to_string())?))
            }
            Endpoint::Php { folder, server } => Ok(Box::new(Php::new(Arc::clone(folder), FastCgi::new(Arc::clone(server), None)))),
        }
    }

    /// Returns whether it is a folder, whose scripts are run from here.
    pub(crate) const fn is_folder(&self) -> bool {
        matches!(self.endpoint, Endpoint::Php { .. })
    }

    /// Begins to ask. What is asked one after the other goes over one connection.
    pub(crate) fn open(&self) -> Result<AskedServer<'_>, String> {
        Ok(AskedServer { server: self, origin: self.origin()? })
    }
}

/// A server that is being asked.
pub(crate) struct AskedServer<'a> {
    server: &'a Server,
    origin: Box<dyn Origin>,
}

/// Holds what is asked.
struct Asks<'a> {
    method: Method,
    path: &'a str,
    accept: &'static str,
    user_agent: &'static str,
    bytes_max: usize,
}

impl<'a> Asks<'a> {
    fn for_path(path: &'a str) -> Self {
        Self { method: Method::GET, path, accept: "*/*", user_agent: OURSELVES, bytes_max: ANSWER_BYTES_MAX }
    }
}

/// An answer, as far as it was read.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether the body is whole.
    pub(crate) is_whole: bool,
}

impl Answer {
    /// Returns the value of a field, if there is one line of it; otherwise nothing.
    fn field(&self, name: &str) -> &str {
        let mut values = self.fields.get_all(name).iter();
        let value = values.next().filter(|_| values.next().is_none());
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the content if it is JSON, and there as a whole.
    fn json(&self) -> Result<&[u8], String> {
        if !self.field("content-type").starts_with("application/json") {
            return Err("it is not JSON".to_owned());
        }
        if !self.is_whole {
            return Err("it is too long, or breaks off".to_owned());
        }
        Ok(&self.body)
    }
}

impl AskedServer<'_> {
    /// Asks for a path, as its readers would.
    pub(crate) async fn get(&self, path: &str, accept: &'static str, bytes_max: usize) -> Result<Answer, String> {
        self.ask(&Asks { accept, bytes_max, ..Asks::for_path(path) }).await
    }

    /// Asks for the head of what is at a path, as its readers would.
    pub(crate) async fn head(&self, path: &str) -> Result<Answer, String> {
        self.ask(&Asks { method: Method::HEAD, ..Asks::for_path(path) }).await
    }

    /// Asks for a path under a name of its own.
    pub(crate) async fn get_named(&self, path: &str, user_agent: &'static str, bytes_max: usize) -> Result<Answer, String> {
        self.ask(&Asks { user_agent, bytes_max, ..Asks::for_path(path) }).await
    }

    async fn ask(&self, asks: &Asks<'_>) -> Result<Answer, String> {
        self.ask_as((self.server.host.as_deref(), self.server.scheme), asks).await
    }

    /// Asks by other names too if the answer leads there: software whose readers use https sends everybody there who does not seem to, and one with
    /// a name of its own for its admin sends there whoever asks for that.
    async fn ask_wherever(&self, asks: &Asks<'_>) -> Result<Result<Answer, String>, String> {
        let path = asks.path.split('?').next().unwrap_or_default();
        let (mut host, mut scheme) = (self.server.host.clone(), self.server.scheme);
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.ask_as((host.as_deref(), scheme), asks).await?;
            if !answer.status.is_redirection() {
                return Ok(Ok(answer));
            }
            let Some(there) = leads_to(&answer.fields, path, host.as_deref()) else {
                return Ok(Err(format!("{} answers {}", asks.path, answer.status.as_u16())));
            };
            (host, scheme) = there;
        }
        Ok(Err(format!("{} redirects again and again", asks.path)))
    }

    async fn ask_as(&self, (host, scheme): (Option<&str>, Scheme), asks: &Asks<'_>) -> Result<Answer, String> {
        let Asks { ref method, path, accept, user_agent, bytes_max } = *asks;
        // A script counts on there being one.
        let host = host.or_else(|| self.server.is_folder().then_some(NO_HOST));
        let mut request = Request::new(Body::Empty);
        *request.method_mut() = method.clone();
        *request.uri_mut() = path.parse::<Uri>().map_err(|_| format!("{path} is not a path"))?;
        let fields = request.headers_mut();
        fields.insert(header::ACCEPT, HeaderValue::from_static(accept));
        fields.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        fields.insert(header::USER_AGENT, HeaderValue::from_static(user_agent));
        if let Some(host) = host {
            fields.insert(header::HOST, HeaderValue::from_str(host).map_err(|_| format!("{host} is not a host"))?);
        }
        let arrival = Arrival::of_our_own(scheme, host.unwrap_or_default());
        let failed = |error: origins::OriginError| match error.fault {
            Fault::ConnectionRefused => "the connection was refused".to_owned(),
            _ => error.to_string(),
        };
        let (head, mut body) = self.origin.fetch(request, &arrival, None).await.map_err(failed)?.into_parts();
        let (mut read, mut is_whole) = (Vec::new(), true);
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                is_whole = false;
                break;
            };
            let Some(data) = frame.data_ref() else { continue };
            let room = bytes_max - read.len();
            read.extend_from_slice(&data[..data.len().min(room)]);
            if data.len() > room {
                is_whole = false;
                break;
            }
        }
        Ok(Answer { status: head.status, fields: head.headers, body: read, is_whole })
    }
}

/// Returns the questions of these settings, each of them once.
pub(crate) fn askings(settings: &Settings) -> Vec<Inquiry> {
    let mut asked = BTreeSet::new();
    let asking = |site: &Site| {
        let question = Question::of(site).filter(|question| asked.insert(question.clone()))?;
        let is_decided = site.kind_is_given || site.source.form() != policy::SourceForm::Server;
        let mut kinds: Vec<Kind> = Kind::of_products().filter(|kind| !is_decided || *kind == site.kind).collect();
        // It is most likely what it was.
        kinds.sort_by_key(|kind| site.finding.of_kind(*kind).is_none());
        Some(Inquiry { question, server: Server::of(site, settings)?, kinds, site: site.clone() })
    };
    settings.sites.iter().filter_map(asking).collect()
}

/// Asks all servers of these settings of which nothing is known yet, or all of them, at the same time. Takes what they answer.
pub(crate) async fn ask_all(settings: &Settings, known: &SharedFindings, is_wanted: impl Fn(&Finding) -> bool) {
    let mut wanted = askings(settings);
    wanted.retain(|asking| is_wanted(&known.lock().of(&asking.question)));
    let findings = join_all(wanted.iter().map(ask)).await;
    let mut known = known.lock();
    for (asking, finding) in wanted.into_iter().zip(findings) {
        known.take(asking.question, finding);
    }
}

/// Asks a server what it is.
pub(crate) async fn ask(asking: &Inquiry) -> Finding {
    match tokio::time::timeout(PATIENCE, ask_each(asking)).await {
        Ok(finding) => finding,
        Err(_) => Finding::Silent(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

async fn ask_each(asking: &Inquiry) -> Finding {
    let open = match asking.server.open() {
        Ok(open) => open,
        Err(error) => return Finding::Silent(error),
    };
    let mut others = Vec::new();
    for kind in &asking.kinds {
        let found = match kind {
            Kind::Ghost => ghost::ask(&open, &asking.site).await,
            Kind::WordPress => wordpress::ask(&open, &asking.site).await,
            Kind::Generic | Kind::Php | Kind::Blog | Kind::Static => continue,
        };
        match found {
            Finding::Other(what) => others.push(what),
            certain => return certain,
        }
    }
    Finding::Other(others.join(", and "))
}

/// Returns the base paths under which software may be, the likeliest first: the one that was written, and those that it `usually` has.
fn base_paths(written: Option<&str>, usually: &[&str]) -> Vec<String> {
    let mut paths = vec![written.unwrap_or_default().to_owned()];
    for path in usually {
        if !paths.iter().any(|known| known == path) {
            paths.push((*path).to_owned());
        }
    }
    paths
}

/// Returns the host and the scheme to which a redirect leads, if it leads to the same path.
fn leads_to(fields: &HeaderMap, path: &str, host: Option<&str>) -> Option<(Option<String>, Scheme)> {
    let location: Uri = fields.get(header::LOCATION)?.to_str().ok()?.parse().ok()?;
    if location.path() != path {
        return None;
    }
    let scheme = match location.scheme_str()? {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return None,
    };
    let authority = location.authority()?.as_str();
    // A Ghost sends whoever asked by the address itself to that address: the name stays unsaid.
    Some((if authority.contains('@') { host.map(str::to_owned) } else { Some(authority.to_owned()) }, scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/ghost/api/admin/site/";

    #[test]
    fn a_redirect_is_followed_to_the_same_path_alone() {
        let leads = |location: &str| {
            let mut fields = HeaderMap::new();
            fields.insert(header::LOCATION, HeaderValue::from_str(location).expect("a value"));
            leads_to(&fields, PATH, None)
        };
        assert_eq!(leads("https://blog.example/ghost/api/admin/site/"), Some((Some("blog.example".to_owned()), Scheme::Https)));
        for location in ["https://blog.example/", "/ghost/api/admin/site/", "ftp://a/ghost/api/admin/site/", ""] {
            assert_eq!(leads(location), None, "{location}");
        }
    }
}
