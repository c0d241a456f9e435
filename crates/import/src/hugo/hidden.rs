//! Finds what keeps a text from readers in Hugo, other than that it is a draft.

use jiff::Timestamp;
use serde_json::Value;

use crate::front_matter::{Table, flag, instant, list, text, written};

/// The keys of the date on which a text expires, unless the site names others.
const EXPIRING: [&str; 2] = ["expirydate", "unpublishdate"];

/// The date that stands for none in Go.
const NO_DATE: Timestamp = Timestamp::constant(-62_135_596_800, 0);

/// Says why readers do not see a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    /// The state of the text in the account.
    pub(super) status: &'static str,
    pub(super) why: String,
}

/// Says when texts expire.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    keys: Vec<String>,
    /// Whether the site shows texts that have expired.
    is_ignored: bool,
}

impl Expiry {
    /// Reads the configuration, whose keys are in lower case, too.
    pub(super) fn new(config: &Table) -> Self {
        let of_dates = config.get("frontmatter").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut keys = Vec::new();
        for key in list(&of_dates, &["expiryDate", "expirydate"], &[]) {
            match key.strip_prefix(':') {
                Some("default") => keys.extend(EXPIRING.map(str::to_owned)),
                Some(_) => {}
                None => keys.push(key.to_lowercase()),
            }
        }
        if keys.is_empty() {
            keys = EXPIRING.map(str::to_owned).to_vec();
        }
        Self { keys, is_ignored: flag(config, "buildexpired") == Some(true) }
    }

    /// Returns what front matter says of when the text expires.
    pub(super) fn date(&self, front: &Table) -> Option<String> {
        self.keys.iter().find_map(|key| text(front, &[key]))
    }
}

/// Tells why readers do not see a text with this front matter, whose keys are in lower case, too.
pub(super) fn hidden(front: &Table, expiry: &Expiry, now: Timestamp) -> Option<Hidden> {
    let of = |status, why: String| Some(Hidden { status, why });
    if let Some(date) = expiry.date(front).filter(|_| !expiry.is_ignored) {
        match instant(&date) {
            Some(at) if at > NO_DATE && at < now => {
                return of("expired", format!("has expired on {}: Hugo does not show it any more", written(at)));
            }
            Some(_) => {}
            None => return of("expired", format!("expires on a day that cannot be read, {date:?}, so it may have expired")),
        }
    }
    if flag(front, "headless") == Some(true) {
        return of("headless", "is headless: Hugo makes no page of it".to_owned());
    }
    let build = front.get("build").or_else(|| front.get("_build")).and_then(Value::as_object)?;
    let value = |key: &str| {
        let (_, value) = build.iter().find(|(known, _)| known.eq_ignore_ascii_case(key))?;
        let is_off = flag(&Table::from_iter([(key.to_owned(), value.clone())]), key) == Some(false);
        if is_off { Some("never".to_owned()) } else { value.as_str().map(str::to_lowercase) }
    };
    match (value("render").as_deref(), value("list").as_deref()) {
        (Some(render @ ("never" | "link")), _) => of("not rendered", format!("has `render: {render}`: Hugo makes no page of it")),
        (_, Some(list @ ("never" | "local"))) => {
            of("unlisted", format!("has `list: {list}`: Hugo does not list it everywhere, and the blog would list it"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `resources/page/pagemeta/pagemeta.go` and Hugo's documentation, "Build options".
    #[test]
    fn what_hugo_does_not_show_is_hidden() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().expect("a time");
        let config = json!({ "frontmatter": { "expiryDate": ["ends", ":default"] } });
        let cases = [
            (json!({ "expirydate": "2026-03-01" }), Some("expired")),
            (json!({ "expirydate": "2026-03-01T12:00:01Z" }), None),
            (json!({ "expirydate": "0001-01-01T00:00:00Z" }), None),
            (json!({ "expirydate": "soon" }), Some("expired")),
            (json!({ "unpublishdate": "2020-01-01" }), Some("expired")),
            (json!({ "ends": "2020-01-01" }), Some("expired")),
            (json!({ "headless": true }), Some("headless")),
            (json!({ "headless": false }), None),
            (json!({ "build": { "list": "never" } }), Some("unlisted")),
            (json!({ "_build": { "List": "Local" } }), Some("unlisted")),
            (json!({ "_build": { "list": false } }), Some("unlisted")),
            (json!({ "build": { "render": "never", "list": "always" } }), Some("not rendered")),
            (json!({ "build": { "render": false } }), Some("not rendered")),
            (json!({ "build": { "render": "link" } }), Some("not rendered")),
            (json!({ "build": { "render": "always", "list": true, "publishResources": false } }), None),
            (json!({ "title": "x" }), None),
        ];
        for (front, expected) in cases {
            let expiry = Expiry::new(config.as_object().expect("a table"));
            let found = hidden(front.as_object().expect("a table"), &expiry, now);
            assert_eq!(found.map(|hidden| hidden.status), expected, "{front}");
        }
        let kept = Expiry::new(json!({ "buildexpired": true }).as_object().expect("a table"));
        assert_eq!(hidden(json!({ "expirydate": "2020-01-01" }).as_object().expect("a table"), &kept, now), None);
    }
}
