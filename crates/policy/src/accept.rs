//! Which of the few forms of a page a client asks for.
//!
//! The fediverse asks for `application/activity+json`, language models for `text/markdown`, at the very address of the page, and many origins answer
//! accordingly without saying `Vary: Accept`. So the class is part of every key, whatever `Vary` says
//! (pfefferle/wordpress-activitypub#783, TryGhost/Ghost#30259).

use semantics::request::{RequestFields, Slot};

/// The class of an `Accept` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AcceptClass {
    /// A browser's navigation, an image, a script, or a client that takes anything: what an origin sends unless asked otherwise.
    Html = 0,
    /// ActivityPub.
    ActivityPub = 1,
    /// Markdown.
    Markdown = 2,
    /// A feed, from a reader that takes nothing else.
    Feed = 3,
    /// Some other form, asked for by name: JSON of an API, for example.
    Other = 4,
}

impl AcceptClass {
    /// The class of a request. A client that names HTML gets HTML.
    #[must_use]
    pub fn of(fields: &RequestFields<'_>) -> Self {
        match fields.accept {
            Slot::Absent | Slot::One(b"*/*") => Self::Html,
            Slot::One(value) => Self::of_value(value),
            Slot::Many => {
                let mut all = Vec::new();
                fields.lines.for_each("accept", |line| {
                    all.extend_from_slice(line);
                    all.push(b',');
                });
                Self::of_value(&all)
            }
        }
    }

    fn of_value(value: &[u8]) -> Self {
        let mut named = None;
        for range in value.split(|&b| b == b',') {
            let mut parts = range.split(|&b| b == b';');
            let media = parts.next().unwrap_or_default().trim_ascii();
            // A weight of zero (RFC 9110 §12.4.2), whose letter has no case.
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
            // The most particular wins: `application/activity+json, application/json` is ActivityPub.
            named = Some(named.map_or(class, |before: Self| if (class as u8) < (before as u8) { class } else { before }));
        }
        named.unwrap_or(Self::Html)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("application/activity+json, text/html;q=0.1", AcceptClass::Html),
            ("application/activity+json, text/html;q=0", AcceptClass::ActivityPub),
            ("text/html;Q=0.0, application/json", AcceptClass::Other),
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
