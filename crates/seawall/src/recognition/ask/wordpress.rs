//! The question for a WordPress: the root of its REST API says to everybody which site it is.
//!
//! It answers `/?rest_route=/` whichever form its permalinks have, and each of its pages names the address of that API in a `Link`. An API that is
//! closed to strangers refuses in its own form.

use http::{HeaderMap, StatusCode, Uri, header};
use serde::Deserialize;

use super::{AskedServer, Asks, base_paths};
use crate::{
    config::settings::{Site, Source},
    recognition::{Finding, Software, folder},
};

/// The query for the part of the API's root that is wanted: all of it is some 200 KB. With the last parameter, WordPress does not begin its
/// own schedule because of the question: it would set a lock for a minute, and tell its value while nobody listens yet.
const FIELDS: &str = "_fields=name,url,home,namespaces&doing_wp_cron";

/// The relation by which a page names its API.
const RELATION: &str = "https://api.w.org/";

/// A script of each WordPress that says its version, and little more.
const SAYS_VERSION: &str = "/wp-links-opml.php?doing_wp_cron";

/// The most bytes of it that are read.
const VERSION_BYTES_MAX: usize = 8 * 1024;

/// Asks whether a server is a WordPress.
pub(super) async fn ask(open: &AskedServer<'_>, site: &Site) -> Finding {
    let mut first = None;
    for base_path in base_paths(site.wordpress.path.as_deref(), &[""]) {
        match ask_below(open, &base_path).await {
            Ok(Finding::Recognised { software, .. }) => {
                return Finding::Recognised { software: with_version(open, site, software).await, remembered: false };
            }
            Ok(finding) => return finding,
            Err(what) => {
                first.get_or_insert(what);
            }
        }
    }
    Finding::Other(first.unwrap_or_default())
}

async fn ask_below(open: &AskedServer<'_>, base_path: &str) -> Result<Finding, String> {
    let mut path = format!("{base_path}/?rest_route=/&{FIELDS}");
    let mut named = None;
    loop {
        let answer = match open.ask_wherever(&Asks { accept: "application/json", ..Asks::for_path(&path) }).await {
            Ok(answer) => answer?,
            Err(why) => return Ok(Finding::Silent(why)),
        };
        let shown = path.trim_end_matches(FIELDS).trim_end_matches(['?', '&']);
        let root = root(&answer.fields);
        let found = match answer.status {
            StatusCode::OK => read(answer.json()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => read_refusal(answer.json(), root.as_deref()),
            status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
                return Ok(Finding::Silent(format!("it answers {}", status.as_u16())));
            }
            status => Err(format!("it answers {}", status.as_u16())),
        };
        match found {
            Ok(software) => return Ok(Finding::Recognised { software, remembered: false }),
            // Something in front of it may not let the parameter through; the page says where else the API is.
            Err(_) if named.is_none() && root.is_some() => {
                let root: Uri = root.and_then(|root| root.parse().ok()).ok_or("its link is none")?;
                let target = root.path_and_query().map_or("/", |target| target.as_str());
                path = format!("{target}{}{FIELDS}", if root.query().is_some() { '&' } else { '?' });
                named = Some(());
            }
            Err(what) => return Err(format!("{shown} answers otherwise than a WordPress: {what}")),
        }
    }
}

/// Returns the address of the REST API that a response names.
pub(super) fn root(fields: &HeaderMap) -> Option<String> {
    let lines = fields.get_all(header::LINK).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).find_map(|link| {
        let (target, rest) = link.trim().strip_prefix('<')?.split_once('>')?;
        rest.contains(&format!("rel=\"{RELATION}\"")).then(|| target.to_owned())
    })
}

/// The root of the API. Other keys are there, too.
#[derive(Deserialize)]
struct Says {
    #[serde(rename = "name")]
    _name: String,
    /// The address of its own files.
    url: String,
    /// The address that its readers use.
    home: String,
    namespaces: Vec<String>,
}

/// Reads what the root of the API says. All of it has to be as a WordPress says it.
fn read(content: Result<&[u8], String>) -> Result<Software, String> {
    let says: Says = serde_json::from_slice(content?).map_err(|_| "its JSON says nothing of a site".to_owned())?;
    if !says.namespaces.iter().any(|namespace| namespace == "wp/v2") {
        return Err("its API has no wp/v2".to_owned());
    }
    Software::wordpress(None, &says.home)?.with_core(&says.url)
}

/// The form in which the API refuses.
#[derive(Deserialize)]
struct Refusal {
    code: String,
    data: Option<RefusalData>,
}

#[derive(Deserialize)]
struct RefusalData {
    status: u16,
}

/// Reads a refusal of an API that is closed to strangers. The address of that API says where the site is.
fn read_refusal(content: Result<&[u8], String>, root: Option<&str>) -> Result<Software, String> {
    let refusal: Refusal = serde_json::from_slice(content?).map_err(|_| "it refuses, and not as an API of WordPress".to_owned())?;
    let is_its_own = refusal.data.is_some_and(|data| matches!(data.status, 401 | 403)) && !refusal.code.is_empty();
    let root = root.filter(|_| is_its_own).ok_or("it refuses, and does not say where its API is")?;
    let site = root.split("?rest_route=").next().unwrap_or_default().trim_end_matches("index.php");
    Software::wordpress(None, site.trim_end_matches('/').trim_end_matches("/wp-json"))
}

/// Adds the version: of the files in the folder, or as the server says it.
async fn with_version(open: &AskedServer<'_>, site: &Site, software: Software) -> Software {
    let version = match &site.source {
        Source::Php(path) => folder::look(path, site.wordpress.path.as_deref()).map(|found| found.version),
        Source::Http(_) | Source::Files(_) | Source::Blog(_) => {
            let core = software.core_url().parse::<Uri>().map(|core| core.path().trim_end_matches('/').to_owned()).unwrap_or_default();
            let answer = open.get(&format!("{core}{SAYS_VERSION}"), "text/xml", VERSION_BYTES_MAX).await.ok();
            answer.filter(|answer| answer.status == StatusCode::OK).and_then(|answer| said_version(&answer.body))
        }
    };
    let with = |version: &str| Software::wordpress(Some(version), software.url())?.with_core(software.core_url());
    version.and_then(|version| with(&version).ok()).unwrap_or(software)
}

/// Returns the version in `<!-- generator="WordPress/6.8.7" -->`.
fn said_version(content: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(content);
    let (version, _) = text.split_once("generator=\"WordPress/")?.1.split_once('"')?;
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// The answer of WordPress 6.8.7.
    const BODY: &str = r#"{"name":"The Slow Almanac","url":"http:\/\/127.0.0.1:8180\/wp","home":"http:\/\/127.0.0.1:8180","namespaces":["oembed\/1.0","wp\/v2","wp-site-health\/v1","wp-block-editor\/v1"]}"#;

    #[test]
    fn a_wordpress_is_one_by_all_that_it_says() {
        let found = read(Ok(BODY.as_bytes())).expect("a WordPress");
        assert_eq!((found.url(), found.core_url()), ("http://127.0.0.1:8180", "http://127.0.0.1:8180/wp"));
        for body in [
            "{}".to_owned(),
            "<!DOCTYPE html>".to_owned(),
            BODY.replace("wp\\/v2", "wp\\/v3"),
            BODY.replace("\"home\"", "\"house\""),
            BODY.replace("\"home\":\"http:", "\"home\":\""),
        ] {
            assert!(read(Ok(body.as_bytes())).is_err(), "{body}");
        }
    }

    #[test]
    fn an_api_that_is_closed_to_strangers_refuses_in_its_own_form() {
        let closed = br#"{"code":"rest_not_logged_in","message":"You are not currently logged in.","data":{"status":401}}"#;
        for (root, home) in [
            ("https://a.example/wp-json/", "https://a.example"),
            ("https://a.example/blog/wp-json/", "https://a.example/blog"),
            ("https://a.example/index.php?rest_route=/", "https://a.example"),
            ("https://a.example/?rest_route=/", "https://a.example"),
        ] {
            assert_eq!(read_refusal(Ok(closed), Some(root)).expect(root).url().trim_end_matches('/'), home);
        }
        assert!(read_refusal(Ok(closed), None).is_err());
        for other in [&br#"{"error":"unauthorized"}"#[..], br#"{"code":"x","data":null}"#, b"Unauthorized"] {
            assert!(read_refusal(Ok(other), Some("https://a.example/wp-json/")).is_err());
        }
    }

    #[test]
    fn a_page_names_the_address_of_its_api() {
        let mut fields = HeaderMap::new();
        fields.append("link", HeaderValue::from_static("</style.css>; rel=preload"));
        assert_eq!(root(&fields), None);
        fields.append("link", HeaderValue::from_static("<http://a/wp-json/>; rel=\"https://api.w.org/\", <http://a/?p=1>; rel=shortlink"));
        assert_eq!(root(&fields).as_deref(), Some("http://a/wp-json/"));
    }

    #[test]
    fn a_version_is_read_where_it_is_said() {
        assert_eq!(said_version(b"<head><!-- generator=\"WordPress/6.8.7\" --></head>").as_deref(), Some("6.8.7"));
        assert_eq!(said_version(b"<head></head>"), None);
    }
}
