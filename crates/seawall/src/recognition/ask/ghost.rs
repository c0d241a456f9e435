//! The question for a Ghost: its own admin API says to everybody which site it is.

use http::StatusCode;
use serde::Deserialize;

use super::{ANSWER_BYTES_MAX, Answer, AskedServer, Asks, base_paths, wordpress};
use crate::{
    config::settings::Site,
    recognition::{Finding, Software},
};

/// The path at which Ghost says which site it is, below its base path. Nobody has to be signed in for it.
const PATH: &str = "/ghost/api/admin/site/";

/// The path that a Ghost in a subdirectory most often has.
const LIKELY_BASE_PATH: &str = "/blog";

/// Asks whether a server is a Ghost.
pub(super) async fn ask(open: &AskedServer<'_>, site: &Site) -> Finding {
    let mut first = None;
    for base_path in base_paths(site.ghost.path.as_deref(), &["", LIKELY_BASE_PATH]) {
        match ask_below(open, &base_path).await {
            Ok(finding) => return finding,
            Err(OtherAnswer { what, is_wordpress }) => {
                first.get_or_insert(what);
                // What it is, is the next question.
                if is_wordpress {
                    break;
                }
            }
        }
    }
    Finding::Other(first.unwrap_or_default())
}

/// An answer that is none of a Ghost.
struct OtherAnswer {
    what: String,
    /// Whether it calls itself a WordPress.
    is_wordpress: bool,
}

async fn ask_below(open: &AskedServer<'_>, base_path: &str) -> Result<Finding, OtherAnswer> {
    let path = format!("{base_path}{PATH}");
    let otherwise = |what| OtherAnswer { what, is_wordpress: false };
    let asks = Asks { accept: "application/json", bytes_max: ANSWER_BYTES_MAX, ..Asks::for_path(&path) };
    let answer = match open.ask_wherever(&asks).await {
        Ok(answer) => answer.map_err(otherwise)?,
        Err(why) => return Ok(Finding::Silent(why)),
    };
    match answer.status {
        StatusCode::OK => match read(&answer) {
            Ok(software) => Ok(Finding::Recognised { software, remembered: false }),
            Err(what) => Err(otherwise(format!("{path} answers otherwise than a Ghost: {what}"))),
        },
        // A failure says nothing of what it is, but for one of a server that cannot do more.
        status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
            Ok(Finding::Silent(format!("it answers {}", status.as_u16())))
        }
        status => Err(OtherAnswer {
            what: format!("{path} answers {}", status.as_u16()),
            is_wordpress: wordpress::root(&answer.fields).is_some(),
        }),
    }
}

/// The answer of a Ghost. Other keys are there, too.
#[derive(Deserialize)]
struct Says {
    site: SiteAnswer,
}

#[derive(Deserialize)]
struct SiteAnswer {
    #[serde(rename = "title")]
    _title: String,
    url: String,
    version: String,
    /// Ghosts before 5.100 do not have one.
    site_uuid: Option<String>,
}

/// Reads the answer. All of it has to be as a Ghost says it.
fn read(answer: &Answer) -> Result<Software, String> {
    let Says { site } = serde_json::from_slice(answer.json()?).map_err(|_| "its JSON says nothing of a site".to_owned())?;
    if answer.field("content-version").strip_prefix('v') != Some(&site.version) {
        return Err("it has no Content-Version, or another one".to_owned());
    }
    if !site.site_uuid.as_deref().is_none_or(is_uuid) {
        return Err("the site has no identity".to_owned());
    }
    Software::ghost(&site.version, &site.url)
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| if [8, 13, 18, 23].contains(&at) { b == b'-' } else { b.is_ascii_hexdigit() })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    /// The answer of Ghost 6.65.
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
        assert_eq!((ghost.version(), ghost.url()), (Some("6.65"), "http://127.0.0.1:2368/"));
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
}
