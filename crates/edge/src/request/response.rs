//! The head of a response, for protocols whose frames say where its content ends.

use http::{HeaderMap, Method, StatusCode, header, response::Parts};
use http_body::Body;
use semantics::request::content_length;

/// Says what follows a response's head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// Nothing follows.
    Nothing,
    /// Content follows, of the length that the head says, if it does.
    Content(AnnouncedLength),
}

/// Completes a head: where the length of `body` is known, the head says it. `None` means that this is not a response to send: nobody asked for an
/// upgrade, which HTTP/2 and 3 do not have (RFC 9113 §8.6, RFC 9114 §4.5).
pub(crate) fn complete_head(parts: &mut Parts, body: &impl Body, method: &Method) -> Option<Follows> {
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        return None;
    }
    if *method == Method::HEAD || parts.status == StatusCode::NO_CONTENT || parts.status == StatusCode::NOT_MODIFIED {
        return Some(Follows::Nothing);
    }
    if let Some(exact) = body.size_hint().exact().filter(|_| !parts.headers.contains_key(header::CONTENT_LENGTH)) {
        parts.headers.insert(header::CONTENT_LENGTH, exact.into());
    }
    Some(Follows::Content(AnnouncedLength::by(&parts.headers)))
}

/// The number of bytes of content that a head announced and that have not come yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AnnouncedLength(Option<u64>);

impl AnnouncedLength {
    fn by(fields: &HeaderMap) -> Self {
        Self(content_length(fields))
    }

    /// Counts content that comes. `false` means that it is more than was promised: the message is broken.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let Some(left) = &mut self.0 else { return true };
        let rest = left.checked_sub(bytes as u64);
        *left = rest.unwrap_or(0);
        rest.is_some()
    }

    /// Returns whether all of it has come, so that the message may end here.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_none_or(|left| left == 0)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Response};
    use http_body_util::Full;

    use super::*;

    fn completed(status: u16, length: Option<&'static str>, method: Method) -> (Option<Follows>, Option<HeaderValue>) {
        let (mut parts, body) = Response::builder().status(status).body(Full::new(&b"hello"[..])).expect("a response").into_parts();
        if let Some(length) = length {
            parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static(length));
        }
        let follows = complete_head(&mut parts, &body, &method);
        (follows, parts.headers.get(header::CONTENT_LENGTH).cloned())
    }

    /// RFC 9110 §6.4.1, §8.6.
    #[test]
    fn a_head_says_the_length_of_content_that_follows_and_no_other() {
        let promised = |length| Some(Follows::Content(AnnouncedLength(Some(length))));
        let five = Some(HeaderValue::from_static("5"));
        assert_eq!(completed(200, None, Method::GET), (promised(5), five));
        assert_eq!(completed(200, Some("9"), Method::GET), (promised(9), Some(HeaderValue::from_static("9"))));
        assert_eq!(completed(200, None, Method::HEAD), (Some(Follows::Nothing), None));
        assert_eq!(completed(204, None, Method::GET), (Some(Follows::Nothing), None));
        assert_eq!(completed(304, None, Method::GET), (Some(Follows::Nothing), None));
        assert_eq!(completed(101, None, Method::GET).0, None);
    }

    #[test]
    fn a_promise_is_kept_by_as_much_as_was_promised() {
        let mut promised = AnnouncedLength(Some(5));
        assert!(promised.take(3) && !promised.is_kept());
        assert!(promised.take(2) && promised.is_kept());
        assert!(!promised.take(1));
        let mut nothing = AnnouncedLength(None);
        assert!(nothing.take(usize::MAX) && nothing.is_kept());
    }
}
