//! Query parameters that only trackers read.
//!
//! On the day of the crowd every link carries its own `fbclid`; each would be a page of its own (hestiacp/hestiacp#5514). They leave the key *and* the
//! request to the origin, since WordPress prints them into its links. The reader's address bar keeps them.

use std::borrow::Cow;

/// Exact names, from the lists that APO and LSCache publish and what was seen since.
const TRACKERS: &[&str] = &[
    "_ga",
    "_gl",
    "_ke",
    "_kx",
    "adgroupid",
    "campaignid",
    "ck_subscriber_id",
    "cn-reloaded",
    "dclid",
    "epik",
    "fb_action_ids",
    "fb_action_types",
    "fb_source",
    "fbclid",
    "gbraid",
    "gclid",
    "gclsrc",
    "igsh",
    "igshid",
    "li_fat_id",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "msclkid",
    "s_kwcid",
    "srsltid",
    "ttclid",
    "twclid",
    "usqp",
    "vero_id",
    "wbraid",
    "wickedid",
    "yclid",
    "ysclid",
];

/// Names that begin so.
const TRACKER_PREFIXES: &[&str] = &["utm_", "gad_", "_hs", "hsa_", "mtm_", "pk_", "piwik_", "matomo_"];

/// Which parameters a site's pages do not depend on.
#[derive(Debug, Clone, Default)]
pub struct QueryFilter {
    ignored: Vec<Pattern>,
    kept: Vec<Pattern>,
}

#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: String,
    prefix: bool,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) => Self { text: prefix.to_owned(), prefix: true },
            None => Self { text: text.to_owned(), prefix: false },
        }
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        if self.prefix { name.starts_with(&self.text) } else { name == self.text }
    }
}

impl QueryFilter {
    /// The known trackers and `ignored`, without `kept`.
    #[must_use]
    pub fn new(ignored: &[String], kept: &[String]) -> Self {
        let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect();
        Self { ignored: patterns(ignored), kept: patterns(kept) }
    }

    /// What is left of a query; `None` if nothing is. The order stays: some origins mind it.
    #[must_use]
    pub fn clean<'q>(&self, query: &'q str) -> Option<Cow<'q, str>> {
        if !query.split('&').any(|parameter| self.drops(parameter)) {
            return Some(Cow::Borrowed(query));
        }
        let mut left = String::with_capacity(query.len());
        for parameter in query.split('&').filter(|parameter| !self.drops(parameter)) {
            if !left.is_empty() {
                left.push('&');
            }
            left.push_str(parameter);
        }
        (!left.is_empty()).then_some(Cow::Owned(left))
    }

    /// What [`clean`](Self::clean) does with a query, in words.
    pub(crate) fn describe(&self, query: Option<&str>) -> String {
        let Some(query) = query else { return "none".to_owned() };
        let left = self.clean(query).unwrap_or(Cow::Borrowed("nothing left"));
        let name = |parameter: &str| parameter.split_once('=').map_or(parameter, |(name, _)| name).to_owned();
        let removed: Vec<String> = query.split('&').filter(|parameter| self.drops(parameter)).map(name).collect();
        if removed.is_empty() { left.into_owned() } else { format!("{left}; removed: {}", removed.join(", ")) }
    }

    fn drops(&self, parameter: &str) -> bool {
        let name = parameter.split_once('=').map_or(parameter, |(name, _)| name);
        let tracker = TRACKERS.contains(&name)
            || TRACKER_PREFIXES.iter().any(|p| name.starts_with(p))
            || self.ignored.iter().any(|p| p.matches(name));
        tracker && !self.kept.iter().any(|p| p.matches(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trackers_go_and_the_rest_keeps_its_order() {
        let filter = QueryFilter::new(&["session_*".into(), "src".into()], &["utm_id".into()]);
        let cases = [
            ("page=2", Some("page=2")),
            ("fbclid=abc", None),
            ("b=1&fbclid=abc&a=2", Some("b=1&a=2")),
            ("utm_source=x&utm_medium=y&s=hello", Some("s=hello")),
            ("utm_id=7", Some("utm_id=7")),
            ("session_x=1&src=2&z", Some("z")),
            ("fbclid", None),
            ("xfbclid=1", Some("xfbclid=1")),
            ("", Some("")),
            ("a=&b", Some("a=&b")),
        ];
        for (query, left) in cases {
            assert_eq!(filter.clean(query).as_deref(), left, "{query}");
        }
    }
}
