//! Redirects for many: each reader takes along the query parameters that the origin was not told.
//!
//! A link such as `/post?ref=newsletter` has no slash at its end, and the origin's redirect to `/post/` is stored for everybody. Scripts in
//! the page look for `ref` in the reader's address. So what was left out of the request comes back into `Location`.

use http::{HeaderMap, HeaderValue, StatusCode, header};
use semantics::reference::resolve;

use crate::question::Question;

/// Adds the parameters that the origin was not told to a redirect within the site. A parameter that the redirect has already stays as it is
/// there.
pub(crate) fn take_along(question: &Question, status: StatusCode, headers: &mut HeaderMap) {
    let Some(left_out) = question.left_out.as_deref().filter(|_| status.is_redirection() && status != StatusCode::NOT_MODIFIED) else {
        return;
    };
    let Some(location) = headers.get(header::LOCATION).and_then(|location| location.to_str().ok()) else { return };
    // Elsewhere they mean nothing, and are nobody else's business.
    if resolve(&question.authority, &question.target, location.as_bytes()).is_none() {
        return;
    }
    if let Ok(location) = HeaderValue::from_str(&with_parameters(location, left_out)) {
        headers.insert(header::LOCATION, location);
    }
}

/// Writes parameters behind the query of a reference.
fn with_parameters(reference: &str, parameters: &str) -> String {
    let (bare, fragment) = reference.split_once('#').map_or((reference, None), |(bare, fragment)| (bare, Some(fragment)));
    let name = |parameter: &'_ str| parameter.split('=').next().unwrap_or_default().to_owned();
    let query = bare.split_once('?').map(|(_, query)| query);
    let has = |parameter: &str| query.is_some_and(|query| query.split('&').any(|own| name(own) == name(parameter)));
    let mut text = bare.to_owned();
    for parameter in parameters.split('&').filter(|parameter| !has(parameter)) {
        text.push(match text.split_once('?') {
            None => '?',
            Some((_, "")) => {
                text.push_str(parameter);
                continue;
            }
            Some(_) => '&',
        });
        text.push_str(parameter);
    }
    match fragment {
        Some(fragment) => text + "#" + fragment,
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::with_parameters;

    #[test]
    fn parameters_stand_behind_the_query_and_before_the_fragment() {
        for (reference, parameters, expected) in [
            ("/post/", "ref=a", "/post/?ref=a"),
            ("/post/?page=2", "ref=a&utm_source=b", "/post/?page=2&ref=a&utm_source=b"),
            ("/post/?", "ref=a", "/post/?ref=a"),
            ("/post/#part", "ref=a", "/post/?ref=a#part"),
            ("https://blog.example/post/?ref=own", "ref=a&fbclid=1", "https://blog.example/post/?ref=own&fbclid=1"),
        ] {
            assert_eq!(with_parameters(reference, parameters), expected, "{reference} {parameters}");
        }
    }
}
