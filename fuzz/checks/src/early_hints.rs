//! What a page is said to need (RFC 8297, RFC 8288).

use http::HeaderValue;
use policy::{HINTS_BYTES_MAX, HINTS_MAX, Hint, hints, link_field};
use semantics::{
    link::links,
    target::{Target, normal_path, parse_target, valid_authority},
};

use crate::input::{blocks, text, values};

/// Blocks: an authority; a target; lines of `Link`; a page. Whatever the page is, its hints are few, short, and lead to its own host or to
/// another of the encrypted web; who reads them reads what was written; and a page that came only in part is said to need nothing else.
pub fn early_hints(data: &[u8]) {
    let [authority, target, lines, page] = blocks(data);
    let (authority, target) = (text(authority), text(target));
    if !valid_authority(&authority) {
        return;
    }
    let Ok(Target::Origin { path, query }) = parse_target(&target) else { return };
    // Targets reach this point in normal form.
    let Ok(path) = normal_path(path) else { return };
    let target = query.map_or_else(|| path.clone().into_owned(), |query| format!("{path}?{query}"));
    let fields = values(lines);
    let hints_of = |page: &[u8]| -> Vec<Hint> { hints(&authority, &target, fields.iter().map(HeaderValue::as_bytes), page) };

    let found = hints_of(page);
    assert!(found.len() <= HINTS_MAX);
    let Some(field) = link_field(&found) else { return assert!(found.is_empty()) };
    assert!(field.len() <= HINTS_BYTES_MAX);
    let read: Vec<_> = links(field.as_bytes()).collect();
    assert_eq!(read.len(), found.len(), "{field:?}");
    for link in &read {
        let address = text(link.target);
        assert!(address.starts_with('/') && !address.starts_with("//") || address.starts_with("https://"), "{address}");
        assert!(address.bytes().all(|byte| byte.is_ascii_graphic()) && !address.contains('#'), "{address}");
        assert_eq!(["preload", "modulepreload", "preconnect"].iter().filter(|relation| link.is(relation)).count(), 1);
        assert_eq!(link.is("preload"), link.parameter("as").is_some());
    }
    // They mean the same on every page of the site.
    let again = hints(&authority, "/", [field.as_bytes()], b"");
    assert_eq!(again, found);

    let without_body = hints_of(&[b"<body>", page].concat());
    assert_eq!(without_body, hints_of(b""));
    // A base changes what came before it.
    if !page.to_ascii_lowercase().windows(5).any(|bytes| bytes == b"<base") {
        for cut in [page.len() / 4, page.len() / 2, page.len().saturating_sub(1)] {
            let part = hints_of(&page[..cut]);
            assert!(found.starts_with(&part), "{part:?} and {found:?}");
        }
    }
}
