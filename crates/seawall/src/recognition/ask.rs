//! The question: which site a server is, as Ghost's own admin API answers everybody.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::BodyExt;
use origins::{
    Arrival, Body, Fault, Origin,
    http::HttpOrigin,
    server::{Address, ServerOptions, tls_config},
};
use semantics::Scheme;
use serde::Deserialize;

use super::{Finding, GhostSite, Question, keeper::SharedKnown};
use crate::config::settings::{Settings, Site, Source};

/// The longest time that a server has to answer, with everything that it is asked.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// How often an answer may lead to another name or scheme of the same server.
const REDIRECTS_MAX: usize = 2;

/// Where Ghost says which site it is, below its base path. Nobody has to be signed in for it.
const PATH: &str = "/ghost/api/admin/site/";

/// The path that a Ghost in a subdirectory most often has.
const LIKELY_BASE_PATH: &str = "/blog";

/// A server, as it is to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    addresses: Vec<Address>,
    tls: Arc<rustls::ClientConfig>,
    /// The host that readers ask for. `None`: the one in the address.
    host: Option<String>,
    /// The scheme that readers use, as far as is known.
    scheme: Scheme,
}

/// A question, and whom to ask.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) question: Question,
    pub(crate) server: Server,
    /// The base paths under which a Ghost may be, the likeliest first.
    base_paths: Vec<String>,
}

impl Server {
    /// Makes it for a site. Returns `None` if no server is behind the site, or its certificates cannot be read: then nothing works there.
    pub(crate) fn of(site: &Site, settings: &Settings) -> Option<Self> {
        let Source::Http(addresses) = &site.source else { return None };
        let question = Question::new(addresses.first()?, &site.hosts, &site.origin.host);
        Some(Self {
            addresses: addresses.iter().map(|address| address.to_string().parse().ok()).collect::<Option<_>>()?,
            tls: tls_config(site.origin.ca_file.as_deref()).ok()?,
            host: question.host,
            scheme: if settings.tls.is_some() { Scheme::Https } else { Scheme::Http },
        })
    }

    /// Tells it the name and the scheme that its readers use, as it has said itself.
    #[must_use]
    pub(crate) fn for_readers_of(mut self, ghost: &GhostSite) -> Self {
        self.scheme = if ghost.is_https() { Scheme::Https } else { Scheme::Http };
        self
    }

    fn origin(&self) -> Result<HttpOrigin, String> {
        let mut options = ServerOptions::new(self.addresses.clone(), Arc::clone(&self.tls));
        options.pool_idle_max = 1;
        options.connect_timeout = PATIENCE;
        HttpOrigin::new(Arc::new(options), None).map_err(|error| error.to_string())
    }

    /// Begins to ask. What is asked one after the other goes over one connection.
    pub(crate) fn open(&self) -> Result<Open<'_>, String> {
        Ok(Open { server: self, origin: self.origin()? })
    }
}

/// A server that is being asked.
pub(crate) struct Open<'a> {
    server: &'a Server,
    origin: HttpOrigin,
}

/// An answer, as far as it was read.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether the body is whole.
    pub(crate) is_whole: bool,
}

impl Open<'_> {
    /// Asks for a path, as its readers would.
    pub(crate) async fn get(&self, path: &str, accept: &'static str, bytes_max: usize) -> Result<Answer, String> {
        self.get_as((self.server.host.as_deref(), self.server.scheme), path, accept, bytes_max).await
    }

    async fn get_as(
        &self,
        (host, scheme): (Option<&str>, Scheme),
        path: &str,
        accept: &'static str,
        bytes_max: usize,
    ) -> Result<Answer, String> {
        let mut request = Request::new(Body::Empty);
        *request.uri_mut() = path.parse::<Uri>().map_err(|_| format!("{path} is no path"))?;
        let fields = request.headers_mut();
        fields.insert(header::ACCEPT, HeaderValue::from_static(accept));
        fields.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        fields.insert(header::USER_AGENT, HeaderValue::from_static(concat!("seawall/", env!("CARGO_PKG_VERSION"))));
        if let Some(host) = host {
            fields.insert(header::HOST, HeaderValue::from_str(host).map_err(|_| format!("{host} is no host"))?);
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
pub(crate) fn askings(settings: &Settings) -> Vec<Asking> {
    let mut asked = BTreeSet::new();
    let asking = |site: &Site| {
        let question = Question::of(site).filter(|question| asked.insert(question.clone()))?;
        let mut base_paths = vec![site.ghost.path.clone().unwrap_or_default()];
        for path in ["", LIKELY_BASE_PATH] {
            if !base_paths.iter().any(|known| known == path) {
                base_paths.push(path.to_owned());
            }
        }
        Some(Asking { question, server: Server::of(site, settings)?, base_paths })
    };
    settings.sites.iter().filter_map(asking).collect()
}

/// Asks all servers of these settings of which nothing is known yet, or all of them, at the same time. Takes what they answer.
pub(crate) async fn ask_all(settings: &Settings, known: &SharedKnown, is_wanted: impl Fn(&Finding) -> bool) {
    let mut wanted = askings(settings);
    wanted.retain(|asking| is_wanted(&known.lock().of(&asking.question)));
    let findings = join_all(wanted.iter().map(ask)).await;
    let mut known = known.lock();
    for (asking, finding) in wanted.into_iter().zip(findings) {
        known.take(asking.question, finding);
    }
}

/// Asks a server what it is.
pub(crate) async fn ask(asking: &Asking) -> Finding {
    match tokio::time::timeout(PATIENCE, ask_each(asking)).await {
        Ok(finding) => finding,
        Err(_) => Finding::Silent(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

async fn ask_each(asking: &Asking) -> Finding {
    let open = match asking.server.open() {
        Ok(open) => open,
        Err(error) => return Finding::Silent(error),
    };
    let mut first = None;
    for base_path in &asking.base_paths {
        match ask_below(&open, base_path).await {
            Finding::Other(what) => drop(first.get_or_insert(what)),
            certain => return certain,
        }
    }
    Finding::Other(first.unwrap_or_default())
}

/// Asks for the site below a base path, by other names too if the answer leads there: a Ghost whose readers use https sends everybody
/// there who does not seem to, and one with a name of its own for its admin sends there whoever asks for that.
async fn ask_below(open: &Open<'_>, base_path: &str) -> Finding {
    let path = format!("{base_path}{PATH}");
    let (mut host, mut scheme) = (open.server.host.clone(), open.server.scheme);
    for _ in 0..=REDIRECTS_MAX {
        let answer = match open.get_as((host.as_deref(), scheme), &path, "application/json", ANSWER_BYTES_MAX).await {
            Ok(answer) => answer,
            Err(why) => return Finding::Silent(why),
        };
        match answer.status {
            StatusCode::OK => {
                return match read(&answer) {
                    Ok(site) => Finding::Ghost { site, remembered: false },
                    Err(what) => Finding::Other(format!("{path} answers otherwise than a Ghost: {what}")),
                };
            }
            status if status.is_redirection() => {
                let Some((there, over)) = leads_to(&answer.fields, &path, host.as_deref()) else {
                    return Finding::Other(format!("{path} answers {}", status.as_u16()));
                };
                (host, scheme) = (there, over);
            }
            // A failure says nothing of what it is, but for one of a server that cannot do more.
            status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
                return Finding::Silent(format!("it answers {}", answer.status.as_u16()));
            }
            status => return Finding::Other(format!("{path} answers {}", status.as_u16())),
        }
    }
    Finding::Other(format!("{path} redirects again and again"))
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

/// The answer of a Ghost. Other keys are there, too.
#[derive(Deserialize)]
struct Says {
    site: SaysOfSite,
}

#[derive(Deserialize)]
struct SaysOfSite {
    #[serde(rename = "title")]
    _title: String,
    url: String,
    version: String,
    /// Ghosts before 5.100 do not have one.
    site_uuid: Option<String>,
}

/// Reads the answer. All of it has to be as a Ghost says it.
fn read(answer: &Answer) -> Result<GhostSite, String> {
    let field = |name: &str| {
        let mut values = answer.fields.get_all(name).iter();
        let value = values.next().filter(|_| values.next().is_none());
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    if !field("content-type").starts_with("application/json") {
        return Err("it is not JSON".to_owned());
    }
    if !answer.is_whole {
        return Err("it is too long, or breaks off".to_owned());
    }
    let Says { site } = serde_json::from_slice(&answer.body).map_err(|_| "its JSON says nothing of a site".to_owned())?;
    if field("content-version").strip_prefix('v') != Some(&site.version) {
        return Err("it has no Content-Version, or another one".to_owned());
    }
    if !site.site_uuid.as_deref().is_none_or(is_uuid) {
        return Err("the site has no identity".to_owned());
    }
    GhostSite::new(&site.version, &site.url)
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| if [8, 13, 18, 23].contains(&at) { b == b'-' } else { b.is_ascii_hexdigit() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Ghost 6.65 says it.
    const BODY: &str = r##"{"site":{"title":"The Slow Almanac","description":"Gardens","logo":null,"icon":null,"cover_image":null,"accent_color":"#FF1A75","locale":"en","timezone":"Etc/UTC","url":"http://127.0.0.1:2368/","version":"6.65","allow_external_signup":true,"site_uuid":"91e42c58-6160-48c2-bcaa-45f4e116a00e"}}"##;

    fn answer(version: &str, content_type: &str, body: &str) -> Answer {
        let mut fields = HeaderMap::new();
        fields.insert("content-version", HeaderValue::from_str(version).expect("a value"));
        fields.insert("content-type", HeaderValue::from_str(content_type).expect("a value"));
        Answer { status: StatusCode::OK, fields, body: body.as_bytes().to_vec(), is_whole: true }
    }

    #[test]
    fn a_ghost_is_one_by_all_that_it_says() {
        let json = "application/json; charset=utf-8";
        let ghost = read(&answer("v6.65", json, BODY)).expect("a Ghost");
        assert_eq!((ghost.version(), ghost.url()), ("6.65", "http://127.0.0.1:2368/"));
        for (version, content_type, body) in [
            ("v6.64", json, BODY.to_owned()),
            ("", json, BODY.to_owned()),
            ("v6.65", "text/html", BODY.to_owned()),
            ("v6.65", json, "{}".to_owned()),
            ("v6.65", json, "<!DOCTYPE html>".to_owned()),
            ("v6.65", json, BODY.replace("\"6.65\"", "6.65")),
            ("v6.65", json, BODY.replace("\"title\"", "\"name\"")),
            ("v6.65", json, BODY.replace("91e42c58-", "91e42c58")),
            ("v6.65", json, BODY.replace("http://127.0.0.1:2368/", "2368")),
        ] {
            assert!(read(&answer(version, content_type, &body)).is_err(), "{version} {content_type} {body}");
        }
        assert!(read(&Answer { is_whole: false, ..answer("v6.65", json, BODY) }).is_err());
    }

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
