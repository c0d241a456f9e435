//! Which stored responses a response to an unsafe method makes invalid (RFC 9111 §4.4).
//!
//! Names URIs only; finding and dropping what is stored under them, in every variant, is the store's work.

use http::{
    HeaderMap, Method, StatusCode,
    header::{CONTENT_LOCATION, LOCATION},
};
use smallvec::SmallVec;

use crate::reference::resolve;

/// Returns whether the response invalidates stored responses: it is not an error, and the method is unsafe or unknown.
///
/// The safe methods are those that RFC 9110 §9.2.1 lists; only the origin knows what an extension method does.
#[must_use]
pub fn invalidates(method: &Method, status: StatusCode) -> bool {
    !is_safe(method) && (status.is_success() || status.is_redirection())
}

/// Returns whether the method is known to be safe (RFC 9110 §9.2.1).
#[must_use]
pub fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE].contains(method)
}

/// Returns the paths and queries to invalidate on the target's authority: the target's own, then those of `Location` and
/// `Content-Location`, each once.
///
/// References to another authority are ignored: no origin may invalidate responses of another.
#[must_use]
pub fn invalidated(target_authority: &str, target_path_and_query: &str, response: &HeaderMap) -> SmallVec<[String; 3]> {
    let mut found = SmallVec::new();
    found.push(target_path_and_query.to_owned());
    for value in [LOCATION, CONTENT_LOCATION].iter().filter_map(|name| response.get(name)) {
        if let Some(uri) = resolve(target_authority, target_path_and_query, value.as_bytes()).filter(|uri| !found.contains(uri)) {
            found.push(uri);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successes_and_redirects_of_unsafe_and_unknown_methods_invalidate() {
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "FOO", "get"] {
            let method = method.parse().expect("a method");
            for (status, expected) in [(200, true), (201, true), (204, true), (302, true), (303, true), (399, true)] {
                assert_eq!(invalidates(&method, StatusCode::from_u16(status).expect("a status")), expected, "{method} {status}");
            }
            for status in [100, 400, 404, 409, 500, 503, 600] {
                assert!(!invalidates(&method, StatusCode::from_u16(status).expect("a status")), "{method} {status}");
            }
        }
        for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
            assert!(!invalidates(&method, StatusCode::OK), "{method}");
        }
    }

    #[test]
    fn the_target_and_what_it_points_to_on_its_own_origin() {
        for (location, content_location, expected) in [
            (None, None, &["/a/b?c"][..]),
            (Some("/x"), None, &["/a/b?c", "/x"]),
            (None, Some("y?z"), &["/a/b?c", "/a/y?z"]),
            (Some("https://A.example/x#f"), Some("//a.example/y"), &["/a/b?c", "/x", "/y"]),
            (Some("/x"), Some("/x"), &["/a/b?c", "/x"]),
            (Some(""), Some("/a/b?c"), &["/a/b?c"]),
            (Some("https://b.example/x"), Some("http://a.example:8080/y"), &["/a/b?c"]),
            (Some("mailto:x@a.example"), Some("/not a reference"), &["/a/b?c"]),
        ] {
            let mut response = HeaderMap::new();
            for (name, value) in [(LOCATION, location), (CONTENT_LOCATION, content_location)] {
                if let Some(value) = value {
                    response.insert(name, value.parse().expect("a field value"));
                }
            }
            let found = invalidated("a.example", "/a/b?c", &response);
            assert_eq!(found.as_slice(), expected, "{location:?} {content_location:?}");
        }
    }
}
