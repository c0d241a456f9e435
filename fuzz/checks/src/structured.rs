//! Structured fields (RFC 9651), and the directives that a targeted field gives (RFC 9213).

use std::time::Duration;

use http::HeaderValue;
use semantics::{
    cache_control::ResponseDirectives,
    structured::{Value, dictionary, list},
    targeted::{TARGETS, directives},
};

use crate::input::{blocks, field, values};

/// Blocks: the lines of a structured field; the lines of `Cache-Control`. How a field is cut into lines at its commas means nothing; a member
/// more is one member more; and a targeted field speaks alone, or not at all.
pub fn structured(data: &[u8]) {
    let [field_lines, cache_control] = blocks(data);
    let lines = values(field_lines);
    let members = dictionary(&lines);
    let items = list(&lines);
    // Of a string that is cut in two, the blank behind the comma would be a part (RFC 9651 §4.2 calls what comes of it unpredictable), and so
    // would be those at the end of a line, which no field has (RFC 9110 §5.5).
    let joined = lines.iter().map(|line| line.as_bytes().trim_ascii()).collect::<Vec<_>>().join(&b","[..]);
    // An empty first line adds no member, while a comma in its place would.
    if lines.first().is_none_or(|line| !line.as_bytes().trim_ascii().is_empty())
        && let Ok(joined) = HeaderValue::from_bytes(&joined)
    {
        assert_eq!(dictionary([&joined]), members, "lines are not what their list is");
        assert_eq!(list([&joined]), items, "lines are not what their list is");
    }
    let more = HeaderValue::from_static("zz-more=7");
    if let Some(members) = &members {
        let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        let longer = dictionary(lines.iter().chain([&more])).unwrap_or_default();
        assert_eq!(longer.last(), Some(&("zz-more".to_owned(), Value::Integer(7))));
        assert_eq!(longer.len(), members.len() + usize::from(!names.contains(&"zz-more")));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), members.len(), "a key twice");
    }
    if let Some(items) = &items {
        let more = HeaderValue::from_static("\"more\"");
        let longer = list(lines.iter().chain([&more])).unwrap_or_default();
        assert_eq!(longer.len(), items.len() + 1);
    }

    let mut headers = field("cdn-cache-control", &lines);
    headers.extend(field("cache-control", &values(cache_control)));
    let obeyed = directives(&headers, &TARGETS);
    let speaks = members.is_some_and(|members| !members.is_empty());
    assert_eq!(obeyed.targeted, speaks);
    if !speaks {
        assert_eq!(obeyed, ResponseDirectives::of(&headers), "what cannot be read is not there");
    }
    for lifetime in [obeyed.max_age, obeyed.s_maxage, obeyed.stale_while_revalidate, obeyed.stale_if_error].into_iter().flatten() {
        assert!(lifetime.as_duration() <= Duration::from_secs(1 << 31));
    }
}
