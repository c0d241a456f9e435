//! The filter of query parameters.

use policy::{Kind, QueryFilter};

use crate::input::{blocks, lines, text};

/// Blocks: a query; parameters to ignore, one per line; parameters to keep. What is left is a part of what was sent, in its order; nothing
/// that is to go is left, nothing that is to stay has gone, and cleaning twice is cleaning once.
pub fn query_filter(data: &[u8]) {
    let [query, ignored, kept] = blocks(data);
    let patterns = |block| lines(block).take(8).map(|line| text(line).into_owned()).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let (query, ignored, kept) = (text(query), patterns(ignored), patterns(kept));
    let filter = QueryFilter::new(&ignored, &kept);
    let of_kind = &Kind::Generic.preset().rules.parameters;
    let left = filter.clean(of_kind, &query);
    let left = left.as_deref();

    if let Some(left) = left {
        assert!(left.len() <= query.len());
        assert_eq!(filter.clean(of_kind, left).as_deref(), Some(left), "cleaned twice");
        let mut sent = query.split('&');
        for parameter in left.split('&') {
            assert!(sent.any(|other| other == parameter), "{parameter:?} came from nowhere or has moved");
        }
    }
    let stays = |parameter: &str| left.is_some_and(|left| left.split('&').any(|other| other == parameter));
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let name = parameter.split('=').next().unwrap_or_default();
        let matches = |pattern: &String| pattern.strip_suffix('*').map_or(name == pattern, |prefix| name.starts_with(prefix));
        let tracker = name.starts_with("utm_") || ["fbclid", "gclid", "msclkid", "mc_cid"].contains(&name) || ignored.iter().any(matches);
        let page = ["p", "page", "s", "id", "preview", "lang", "q"].contains(&name) && !ignored.iter().any(matches);
        if kept.iter().any(matches) || page {
            assert!(stays(parameter), "{parameter:?} has gone");
        } else if tracker {
            assert!(!stays(parameter), "{parameter:?} is left");
        }
    }
}
