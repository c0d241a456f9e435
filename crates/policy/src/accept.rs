//! Which of the few forms of a page a client asks for.
//!
//! The fediverse asks for `application/activity+json`, language models for `text/markdown`, at the very address of the page, and many origins answer
//! accordingly without saying `Vary: Accept`. So the class is part of every key, whatever `Vary` says
//! (pfefferle/wordpress-activitypub#783, TryGhost/Ghost#30259).

use semantics::{
    accept::{MediaType, prefers},
    request::{RequestFields, Slot},
};

/// The class of an `Accept` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AcceptClass {
    /// HTML: a browser's navigation, an image, a script, or a client that accepts anything. This is what an origin sends unless asked
    /// otherwise.
    Html = 0,
    /// ActivityPub.
    ActivityPub = 1,
    /// Markdown.
    Markdown = 2,
    /// A feed, for a reader that accepts nothing else.
    Feed = 3,
    /// Another form, asked for by name: JSON of an API, for example.
    Other = 4,
    /// HTML and another form in one field, or a form that is named only to be refused. Some origins decide by weight, some answer in any
    /// form that is mentioned at all; so only requests with the same field get the answer.
    Mixed = 5,
}

impl AcceptClass {
    /// All classes.
    pub const ALL: [Self; 6] = [Self::Html, Self::ActivityPub, Self::Markdown, Self::Feed, Self::Other, Self::Mixed];

    /// Returns the class's name, to show to people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::ActivityPub => "activitypub",
            Self::Markdown => "markdown",
            Self::Feed => "feed",
            Self::Other => "other",
            Self::Mixed => "mixed",
        }
    }

    /// Returns an `Accept` field of this class, as clients send it. [`Mixed`](Self::Mixed) has none: each of its fields is a case of its
    /// own.
    #[must_use]
    pub const fn typical(self) -> Option<&'static str> {
        match self {
            Self::Html => Some("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
            Self::ActivityPub => Some("application/activity+json"),
            Self::Markdown => Some("text/markdown"),
            Self::Feed => Some("application/rss+xml"),
            Self::Other => Some("application/json"),
            Self::Mixed => None,
        }
    }

    /// Returns an `Accept` field of this class for a request of our own, without a browser's preferences. [`Mixed`](Self::Mixed) has none.
    #[must_use]
    pub const fn plain(self) -> Option<&'static str> {
        match self {
            Self::Html => Some("*/*"),
            Self::ActivityPub | Self::Markdown | Self::Feed | Self::Other | Self::Mixed => self.typical(),
        }
    }

    /// Returns the class of a request.
    #[must_use]
    pub fn of(fields: &RequestFields<'_>) -> Self {
        Self::by(fields, Self::of_value)
    }

    /// Returns the class that the client of a request likes best. It is never [`Mixed`](Self::Mixed).
    pub(crate) fn preferred_by(fields: &RequestFields<'_>) -> Self {
        Self::by(fields, Self::preferred)
    }

    /// Returns `other` if the client prefers that form to HTML by its weights (RFC 9110 §12.5.1), else HTML: for a source that has no further form.
    pub(crate) fn html_or(other: Self, fields: &RequestFields<'_>) -> Self {
        let is_other = other.media_type().is_some_and(|media| prefers(fields, media, ("text", "html")));
        if is_other { other } else { Self::Html }
    }

    /// Returns the media type of a form that has only one.
    const fn media_type(self) -> Option<MediaType> {
        match self {
            Self::Html => Some(("text", "html")),
            Self::Markdown => Some(("text", "markdown")),
            Self::ActivityPub | Self::Feed | Self::Other | Self::Mixed => None,
        }
    }

    fn by(fields: &RequestFields<'_>, of_value: impl Fn(&[u8]) -> Self) -> Self {
        match fields.accept {
            Slot::Absent | Slot::One(b"*/*") => Self::Html,
            Slot::One(value) => of_value(value),
            Slot::Many => {
                let mut all = Vec::new();
                fields.lines.for_each("accept", |line| {
                    all.extend_from_slice(line);
                    all.push(b',');
                });
                of_value(&all)
            }
        }
    }

    fn of_value(value: &[u8]) -> Self {
        let preferred = Self::preferred(value);
        if !mentions_another_form(value) {
            return preferred;
        }
        let html = [&b"text/html"[..], b"application/xhtml+xml"].iter().any(|name| contains(value, name));
        if html || preferred == Self::Html { Self::Mixed } else { preferred }
    }

    /// Returns the preferred class by the rules of RFC 9110 §12.5.1, as far as they matter: a client that names HTML prefers it.
    fn preferred(value: &[u8]) -> Self {
        let mut named = None;
        for range in value.split(|&b| b == b',') {
            let mut parts = range.split(|&b| b == b';');
            let media = parts.next().unwrap_or_default().trim_ascii();
            // This is a weight of zero (RFC 9110 §12.4.2), whose letter has no case.
            let refused = parts.any(|parameter| match parameter.trim_ascii() {
                [b'q' | b'Q', b'=', b'0'] => true,
                [b'q' | b'Q', b'=', b'0', b'.', zeros @ ..] => zeros.iter().all(|&digit| digit == b'0'),
                _ => false,
            });
            if refused {
                continue;
            }
            let is = |name: &str| media.eq_ignore_ascii_case(name.as_bytes());
            if is("text/html") || is("application/xhtml+xml") {
                return Self::Html;
            }
            let class = if is("application/activity+json") || is("application/ld+json") {
                Self::ActivityPub
            } else if is("text/markdown") {
                Self::Markdown
            } else if is("application/rss+xml") || is("application/atom+xml") || is("application/feed+json") {
                Self::Feed
            } else if media.len() > 12 && media[..12].eq_ignore_ascii_case(b"application/") {
                Self::Other
            } else {
                continue;
            };
            // The most specific class wins: `application/activity+json, application/json` is ActivityPub.
            named = Some(named.map_or(class, |before: Self| if (class as u8) < (before as u8) { class } else { before }));
        }
        named.unwrap_or(Self::Html)
    }
}

/// Returns whether one of the other forms is mentioned anywhere, even in a parameter or with a weight of zero. A browser's field has none,
/// so this searches for single bytes three times.
fn mentions_another_form(value: &[u8]) -> bool {
    let ends_with = |at: usize, name: &[u8]| at.checked_sub(name.len()).is_some_and(|from| value[from..at].eq_ignore_ascii_case(name));
    memchr::memchr2_iter(b'j', b'J', value).any(|at| value.get(at..at + 4).is_some_and(|word| word.eq_ignore_ascii_case(b"json")))
        || memchr::memchr2_iter(b'k', b'K', value).any(|at| ends_with(at + 1, b"mark"))
        || memchr::memchr_iter(b'+', value).any(|at| ends_with(at, b"rss") || ends_with(at, b"atom"))
}

fn contains(value: &[u8], name: &[u8]) -> bool {
    value.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typical_field_is_of_its_class() {
        for class in AcceptClass::ALL {
            for field in [class.typical(), class.plain()] {
                assert_eq!(field.map_or(AcceptClass::Mixed, |value| AcceptClass::of_value(value.as_bytes())), class);
            }
        }
    }

    #[test]
    fn classes_of_what_clients_really_send() {
        let cases = [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", AcceptClass::Html),
            ("image/avif,image/webp,image/apng,image/*,*/*;q=0.8", AcceptClass::Html),
            ("text/css,*/*;q=0.1", AcceptClass::Html),
            ("*/*", AcceptClass::Html),
            ("", AcceptClass::Html),
            ("application/activity+json", AcceptClass::ActivityPub),
            ("application/ld+json; profile=\"https://www.w3.org/ns/activitystreams\", application/json", AcceptClass::ActivityPub),
            ("application/activity+json, text/html;q=0.1", AcceptClass::Mixed),
            ("application/activity+json, text/html;q=0", AcceptClass::Mixed),
            // An origin that looks for the name anywhere answers these with JSON.
            ("text/html, application/activity+json", AcceptClass::Mixed),
            ("application/activity+json;q=0", AcceptClass::Mixed),
            ("x/y;a=\"application/activity+json\"", AcceptClass::Mixed),
            ("text/html, application/JSON;q=0.5", AcceptClass::Mixed),
            ("text/html;Q=0.0, application/json", AcceptClass::Mixed),
            ("text/markdown, */*", AcceptClass::Markdown),
            ("TEXT/Markdown", AcceptClass::Markdown),
            ("application/rss+xml, application/xml;q=0.5", AcceptClass::Feed),
            ("application/json, text/plain, */*", AcceptClass::Other),
        ];
        for (value, class) in cases {
            assert_eq!(AcceptClass::of_value(value.as_bytes()), class, "{value}");
        }
    }
}
