//! Which query parameters a page depends on. The others leave the key *and* the request to the origin.

use std::borrow::Cow;

use crate::{names::Pattern, preset::Parameters};

/// The settings of a site for the query parameters that its pages depend on, beside those of its kind.
#[derive(Debug, Clone)]
pub struct QueryFilter {
    ignored: Vec<Pattern>,
    kept: Vec<Pattern>,
}

impl QueryFilter {
    /// Makes a filter that leaves out `ignored` and leaves in `kept`.
    #[must_use]
    pub fn new(ignored: &[String], kept: &[String]) -> Self {
        Self { ignored: Pattern::all(ignored), kept: Pattern::all(kept) }
    }

    /// Returns what is left of a query where the kind says `of_kind`; `None` if nothing is. The order stays: some origins mind it.
    #[must_use]
    pub fn clean<'q>(&self, of_kind: &Parameters, query: &'q str) -> Option<Cow<'q, str>> {
        if !query.split('&').any(|parameter| self.drops(of_kind, parameter)) {
            return Some(Cow::Borrowed(query));
        }
        let mut left = String::with_capacity(query.len());
        for parameter in query.split('&').filter(|parameter| !self.drops(of_kind, parameter)) {
            if !left.is_empty() {
                left.push('&');
            }
            left.push_str(parameter);
        }
        (!left.is_empty()).then_some(Cow::Owned(left))
    }

    /// Returns what [`clean`](Self::clean) takes away from a query; `None` if nothing.
    pub(crate) fn taken(&self, of_kind: &Parameters, query: &str) -> Option<String> {
        let taken: Vec<&str> = query.split('&').filter(|parameter| self.drops(of_kind, parameter) && !parameter.is_empty()).collect();
        (!taken.is_empty()).then(|| taken.join("&"))
    }

    /// Returns what [`clean`](Self::clean) does with a query, in words.
    pub(crate) fn describe(&self, of_kind: &Parameters, query: Option<&str>) -> String {
        let Some(query) = query else { return "none".to_owned() };
        let left = self.clean(of_kind, query).unwrap_or(Cow::Borrowed("nothing left"));
        let name = |parameter: &str| parameter.split_once('=').map_or(parameter, |(name, _)| name).to_owned();
        let removed: Vec<String> = query.split('&').filter(|parameter| self.drops(of_kind, parameter)).map(name).collect();
        if removed.is_empty() { left.into_owned() } else { format!("{left}; removed: {}", removed.join(", ")) }
    }

    fn drops(&self, of_kind: &Parameters, parameter: &str) -> bool {
        let name = parameter.split_once('=').map_or(parameter, |(name, _)| name);
        let of_kind = match of_kind {
            Parameters::AllBut(dropped) => dropped.iter().any(|names| names.have(name)),
            Parameters::Only(known) => !known.have(name),
        };
        (of_kind || self.ignored.iter().any(|p| p.matches(name))) && !self.kept.iter().any(|p| p.matches(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

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
            assert_eq!(filter.clean(&Kind::Generic.preset().rules.parameters, query).as_deref(), left, "{query}");
        }
    }
}
