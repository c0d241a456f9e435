//! Purges in the path: fields of a source's answer that say what is to be purged before anybody sees the answer.
//!
//! | field | from | value |
//! |---|---|---|
//! | `Seawall-Purge` | Seawall's plugin | `post-12, list-post, url=/feed/, *`; a first item `soft` makes them all soft |
//! | `X-LiteSpeed-Purge`, `X-LiteSpeed-Purge2` | LiteSpeed's plugins | `public,TAG,tag=TAG,url=/PATH,*;private,...`, with `stale` for soft |
//!
//! The kind says whether they count ([`Preset::obeys_purge_fields`](crate::Preset::obeys_purge_fields)). They are removed from every answer, and
//! no client can send them: see [`is_for_sources_only`].

use http::{HeaderMap, HeaderName};
use semantics::{
    field_name::with_hyphens,
    target::{host_without_port, normal_path, valid_authority},
};

use super::What;
use crate::Policy;

/// The most things that one answer or message may name. More of them are everything.
pub const ITEMS_MAX: usize = 256;

/// The longest path of a page that can be purged by its path alone. A longer one in a purge is everything.
const PATH_BYTES_MAX: usize = 512;

/// The field with which Seawall's plugin says that it is there: then it says by itself what a write has changed.
const SEAWALL_PLUGIN: HeaderName = HeaderName::from_static("seawall-plugin");
const SEAWALL_PURGE: HeaderName = HeaderName::from_static("seawall-purge");
const LITESPEED_PURGE: [HeaderName; 2] = [HeaderName::from_static("x-litespeed-purge"), HeaderName::from_static("x-litespeed-purge2")];

/// One purge that a field of an answer asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedPurge {
    /// The things that are to be purged: at least one.
    pub what: Vec<What>,
    /// Whether that is never to be seen again.
    pub hard: bool,
}

/// Returns whether the field of this name, in lower case, is one that only a source may send. Some of them switch on what a plugin for LiteSpeed
/// does for its server, and a client must not (CVE-2024-47374).
#[must_use]
pub fn is_for_sources_only(name: &str) -> bool {
    if let Some(name) = with_hyphens(name) {
        return is_for_sources_only(&name);
    }
    name.starts_with("x-litespeed-")
        || name.starts_with("x-lscache")
        || name.starts_with("lsc-")
        || name == SEAWALL_PURGE.as_str()
        || name == SEAWALL_PLUGIN.as_str()
}

/// The hosts of a site, as a purge asks for them.
pub type IsOwnHost<'a> = &'a dyn Fn(&str) -> bool;

impl Policy {
    /// Returns whether fields of the source's answers can order a purge.
    #[must_use]
    pub const fn obeys_purge_fields(&self) -> bool {
        self.preset.obeys_purge_fields
    }

    /// Returns whether an answer says that the source's plugin is there, which tells by itself what has changed.
    #[must_use]
    pub fn speaks_for_itself(&self, headers: &HeaderMap) -> bool {
        self.preset.obeys_purge_fields && headers.contains_key(SEAWALL_PLUGIN)
    }

    /// Returns what an answer says of the source's plugin: the plugin's name and version, or `Some(None)` from a page that the plugin would have marked. `None`: it
    /// says nothing, as it may be a file.
    #[must_use]
    pub fn plugin_of<'a>(&self, headers: &'a HeaderMap) -> Option<Option<&'a str>> {
        if !self.preset.obeys_purge_fields {
            return None;
        }
        if let Some(plugin) = headers.get(SEAWALL_PLUGIN) {
            return Some(plugin.to_str().ok());
        }
        // WordPress names its API on each page that it makes.
        let is_page =
            headers.get_all(http::header::LINK).iter().any(|link| link.to_str().is_ok_and(|link| link.contains("https://api.w.org/")));
        is_page.then_some(None)
    }

    /// Returns a thing to be purged as it is asked for, for whoever asked.
    #[must_use]
    pub fn as_asked(&self, what: &What) -> String {
        match what {
            What::Tag(tag) => tag.strip_prefix("path ").map_or_else(|| tag.clone(), |path| format!("url={path}")),
            What::Everything => "*".to_owned(),
            What::Url(address) | What::Prefix(address) => address.to_string(),
            What::Host(host) => host.to_string(),
        }
    }

    /// Reads what the fields of an answer ask to be purged. What is not understood means everything.
    #[must_use]
    pub fn asked_purges(&self, headers: &HeaderMap, is_own_host: IsOwnHost<'_>) -> Vec<RequestedPurge> {
        if !self.preset.obeys_purge_fields {
            return Vec::new();
        }
        let mut asked = Vec::new();
        for line in headers.get_all(SEAWALL_PURGE) {
            asked.extend(asked_by_plugin(line.to_str().unwrap_or("*"), is_own_host));
        }
        for line in LITESPEED_PURGE.iter().flat_map(|name| headers.get_all(name)) {
            asked.extend(line.to_str().unwrap_or("*").split(';').filter_map(|segment| asked_by_litespeed(segment, is_own_host)));
        }
        asked
    }
}

/// Reads the items of a purge that a plugin sends: tags, `url=` with a path or an address, `*`. `None`: there is no item.
#[must_use]
pub fn items<'a>(items: impl Iterator<Item = &'a str>, is_own_host: IsOwnHost<'_>) -> Option<Vec<What>> {
    let mut what: Vec<What> = Vec::new();
    for item in items.map(str::trim).filter(|item| !item.is_empty()) {
        let one = match item.strip_prefix("url=") {
            Some(url) => page(url.trim(), is_own_host),
            None if item == "*" || item.contains(char::is_whitespace) => What::Everything,
            None => What::Tag(item.strip_prefix("tag=").unwrap_or(item).to_owned()),
        };
        if !what.contains(&one) {
            what.push(one);
        }
        if what.len() > ITEMS_MAX || what.contains(&What::Everything) {
            return Some(vec![What::Everything]);
        }
    }
    (!what.is_empty()).then_some(what)
}

fn asked_by_plugin(line: &str, is_own_host: IsOwnHost<'_>) -> Option<RequestedPurge> {
    let line = line.trim();
    let (first, rest) = line.split_once(',').unwrap_or((line, ""));
    let is_soft = first.trim() == "soft";
    let what = items(if is_soft { rest } else { line }.split(','), is_own_host)?;
    Some(RequestedPurge { what, hard: !is_soft })
}

/// Reads one segment of LiteSpeed's field. What it says of one visitor's own pages concerns nothing that is stored here.
fn asked_by_litespeed(segment: &str, is_own_host: IsOwnHost<'_>) -> Option<RequestedPurge> {
    let (mut hard, mut tags) = (true, Vec::new());
    for (place, item) in segment.split(',').map(str::trim).filter(|item| !item.is_empty()).enumerate() {
        match item {
            "private" if place == 0 => return None,
            "public" if place == 0 => {}
            "stale" => hard = false,
            item if is_of_whole_blog(item) => tags.push("*".to_owned()),
            item if item.starts_with('/') || item.contains("://") => tags.push(format!("url={item}")),
            item => {
                let tag = item.strip_prefix("tag=").unwrap_or(item);
                tags.push(tag.strip_prefix("public:").unwrap_or(tag).to_owned());
            }
        }
    }
    Some(RequestedPurge { what: items(tags.iter().map(String::as_str), is_own_host)?, hard })
}

/// Returns whether this is the tag that LiteSpeed's plugin gives to all pages of its only blog: the prefix of its tags alone. Pages that others have
/// made have no tag.
fn is_of_whole_blog(tag: &str) -> bool {
    tag.len() == 4 && tag.ends_with('_') && tag[..3].bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Names a page of the site by a path or an address: on each of its hosts, and with every query. One that cannot be told is everything.
fn page(url: &str, is_own_host: IsOwnHost<'_>) -> What {
    let path = if url.starts_with('/') && !url.starts_with("//") {
        Some(url)
    } else {
        let rest = ["http://", "https://", "//"].iter().find_map(|scheme| url.strip_prefix(scheme));
        rest.and_then(|rest| {
            let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            let is_own = valid_authority(host) && is_own_host(host_without_port(host));
            is_own.then_some(if path.starts_with('/') { path } else { "/" })
        })
    };
    let path = path.and_then(|path| normal_path(path.split(['?', '#']).next().unwrap_or_default()).ok());
    path.filter(|path| !path.contains('*')).and_then(|path| path_tag(&path)).map_or(What::Everything, What::Tag)
}

/// Returns the tag of what is stored for a path, on whatever host: only so can a source purge a page that does not know by which hosts it is read. It
/// has a space in it, so no answer can give it to itself by a field.
pub(crate) fn path_tag(path: &str) -> Option<String> {
    (path.len() <= PATH_BYTES_MAX).then(|| format!("path {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Settings};

    fn asked(lines: &[(&'static str, &str)]) -> Vec<(Vec<String>, bool)> {
        let policy = Policy::new(Settings::preset(Kind::WordPress));
        let headers = lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value"))).collect();
        let said = |what: &What| match what {
            What::Tag(tag) => tag.clone(),
            What::Everything => "everything".to_owned(),
            other => panic!("{other:?}"),
        };
        let asked = policy.asked_purges(&headers, &|host| host.eq_ignore_ascii_case("blog.example"));
        asked.iter().map(|asked| (asked.what.iter().map(said).collect(), asked.hard)).collect()
    }

    #[test]
    fn a_page_says_whether_the_plugin_is_there_and_a_file_says_nothing() {
        let api = ("link", "<https://blog.example/wp-json/>; rel=\"https://api.w.org/\"");
        for (kind, lines, said) in [
            (Kind::WordPress, vec![("seawall-plugin", "wordpress/1.0.0"), api], Some(Some("wordpress/1.0.0"))),
            (Kind::WordPress, vec![("link", "</style.css>; rel=preload"), api], Some(None)),
            (Kind::WordPress, vec![("content-type", "text/css")], None),
            (Kind::Generic, vec![api], None),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in &lines {
                headers.append(HeaderName::from_static(name), value.parse().expect("a value"));
            }
            assert_eq!(Policy::new(Settings::preset(kind)).plugin_of(&headers), said, "{headers:?}");
        }
    }

    #[test]
    fn the_plugin_names_tags_pages_and_everything() {
        for (value, expected) in [
            ("post-12, list-post", Some((&["post-12", "list-post"][..], true))),
            ("soft, post-12,post-12", Some((&["post-12"], false))),
            ("post-1, soft", Some((&["post-1", "soft"], true))),
            ("url=/feed/, url=/a%62c/?x=1", Some((&["path /feed/", "path /abc/"], true))),
            ("url=https://Blog.example:8443/feed/", Some((&["path /feed/"], true))),
            ("url=https://blog.example", Some((&["path /"], true))),
            ("post-1, *", Some((&["everything"], true))),
            ("soft, *", Some((&["everything"], false))),
            // Nobody knows what these mean.
            ("url=https://elsewhere.example/feed/", Some((&["everything"], true))),
            ("url=", Some((&["everything"], true))),
            ("url=/tag/*", Some((&["everything"], true))),
            ("post 12", Some((&["everything"], true))),
            (" , ", None),
            ("soft", None),
        ] {
            let found = asked(&[("seawall-purge", value)]);
            let expected: Vec<_> =
                expected.map(|(what, hard)| (what.iter().map(ToString::to_string).collect(), hard)).into_iter().collect();
            assert_eq!(found, expected, "{value}");
        }
        let many = |n: usize| (0..n).map(|n| format!("t{n}")).collect::<Vec<_>>().join(",");
        assert_eq!(asked(&[("seawall-purge", &many(ITEMS_MAX))])[0].0.len(), ITEMS_MAX);
        assert_eq!(asked(&[("seawall-purge", &many(ITEMS_MAX + 1))])[0].0, ["everything"]);
        let long = format!("url=/{}", "a".repeat(PATH_BYTES_MAX));
        assert_eq!(asked(&[("seawall-purge", &long)])[0].0, ["everything"]);
    }

    /// As the plugin LiteSpeed Cache writes them, and as LiteSpeed's guide for developers does.
    #[test]
    fn the_plugins_for_litespeed_say_it_in_their_way() {
        for (value, expected) in [
            ("public,3f2_Po.12,3f2_H", vec![(&["3f2_Po.12", "3f2_H"][..], true)]),
            ("public,stale,3f2_Po.12", vec![(&["3f2_Po.12"], false)]),
            ("stale,tag=a", vec![(&["a"], false)]),
            ("private,*", vec![]),
            ("public,a;private,*", vec![(&["a"], true)]),
            ("private,*;public,a", vec![(&["a"], true)]),
            ("*", vec![(&["everything"], true)]),
            ("public,*", vec![(&["everything"], true)]),
            // The prefix alone is the plugin's "purge all".
            ("public,3f2_", vec![(&["everything"], true)]),
            ("public,3f2", vec![(&["3f2"], true)]),
            ("tag=a,tag=public:b,url=/c/", vec![(&["a", "b", "path /c/"], true)]),
            ("/c/?x", vec![(&["path /c/"], true)]),
            ("https://blog.example/c/", vec![(&["path /c/"], true)]),
        ] {
            for name in ["x-litespeed-purge", "x-litespeed-purge2"] {
                let expected: Vec<(Vec<String>, bool)> =
                    expected.iter().map(|(what, hard)| (what.iter().map(ToString::to_string).collect(), *hard)).collect();
                assert_eq!(asked(&[(name, value)]), expected, "{value}");
            }
        }
    }

    #[test]
    fn a_client_sends_no_field_of_a_source() {
        for name in
            ["x-litespeed-purge", "x_litespeed_vary", "x-lscache", "x-lscache-vary", "lsc-cookie", "seawall-purge", "seawall_plugin"]
        {
            assert!(is_for_sources_only(name), "{name}");
        }
        for name in ["seawall-signature", "x-ls", "lsc", "x-purge-method", "cookie"] {
            assert!(!is_for_sources_only(name), "{name}");
        }
    }
}
