//! Cards for what lies elsewhere: a line with nothing but the address of a video, a message or a piece of code becomes a link that says what
//! it leads to. Nothing is loaded from there, neither script nor frame nor picture, until a reader follows it: the other site learns of a
//! reader when the reader wants it to.

use std::fmt::Write as _;

use crate::{escape::escape, words::Words};

/// Says what an address leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Video,
    Message,
    Code,
}

/// A card for an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Card<'a> {
    kind: Kind,
    site: &'static str,
    url: &'a str,
}

impl<'a> Card<'a> {
    /// Returns the card for `url`, if it is the address of something that one wants to see in place.
    pub(super) fn of(url: &'a str) -> Option<Self> {
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
        if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return None;
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, rest) = rest.split_at(end);
        let host = host.to_ascii_lowercase();
        let host = ["www.", "m.", "music.", "mobile."].iter().find_map(|prefix| host.strip_prefix(prefix)).unwrap_or(&host);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = path.split('#').next().unwrap_or_default().trim_matches('/');
        let parts: Vec<&str> = path.split('/').collect();
        let (kind, site) = match (host, parts.as_slice()) {
            ("youtube.com" | "youtube-nocookie.com", ["watch"]) if query.split('&').any(|pair| pair.starts_with("v=")) => {
                (Kind::Video, "YouTube")
            }
            ("youtube.com" | "youtube-nocookie.com", ["shorts" | "embed" | "live", _]) => (Kind::Video, "YouTube"),
            ("youtu.be", [id]) if !id.is_empty() => (Kind::Video, "YouTube"),
            ("vimeo.com", [id]) | ("vimeo.com", [id, _]) | ("player.vimeo.com", ["video", id]) if is_number(id) => (Kind::Video, "Vimeo"),
            ("bsky.app", ["profile", _, "post", _]) => (Kind::Message, "Bluesky"),
            ("x.com" | "twitter.com", [_, "status", id]) if is_number(id) => (Kind::Message, "X"),
            ("gist.github.com", [_, id]) if is_hexadecimal(id) => (Kind::Code, "GitHub Gist"),
            ("codepen.io", [_, "pen" | "full" | "details", _]) => (Kind::Code, "CodePen"),
            // These two are at home on many hosts.
            (_, ["w", id] | ["videos", "watch", id]) if matches!(id.len(), 22 | 36) => (Kind::Video, "PeerTube"),
            (_, [user, id]) if user.starts_with('@') && user.len() > 1 && id.len() >= 15 && is_number(id) => (Kind::Message, "Mastodon"),
            _ => return None,
        };
        Some(Self { kind, site, url })
    }

    /// Writes the card for a page. `title` is what the author calls it.
    pub(super) fn page_html(&self, title: &str, words: &Words) -> String {
        let kind = match self.kind {
            Kind::Video => words.video,
            Kind::Message => words.message,
            Kind::Code => words.code,
        };
        let mut out = format!("<p class=\"embed\"><a href=\"{}\">", escape(self.url));
        let _ = write!(out, "<span class=\"embed-kind\">{} · {}</span> ", escape(kind), escape(self.site));
        let _ = writeln!(out, "<span class=\"embed-title\">{}</span></a></p>", escape(self.title(title)));
        out
    }

    /// Writes the card for a feed.
    pub(super) fn feed_html(&self, title: &str) -> String {
        format!("<p><a href=\"{}\">{} ({})</a></p>\n", escape(self.url), escape(self.title(title)), self.site)
    }

    fn title<'t>(&'t self, title: &'t str) -> &'t str {
        let address = || self.url.split_once("://").map_or(self.url, |(_, rest)| rest.strip_prefix("www.").unwrap_or(rest));
        if title.trim().is_empty() || title == self.url { address() } else { title }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hexadecimal(text: &str) -> bool {
    text.len() >= 20 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_known_forms_have_cards() {
        let cases = [
            ("https://www.youtube.com/watch?v=dQw4w9WgXcQ", Some("YouTube")),
            ("https://youtube.com/watch?t=3&v=dQw4w9WgXcQ", Some("YouTube")),
            ("https://youtu.be/dQw4w9WgXcQ?t=3", Some("YouTube")),
            ("https://m.youtube.com/shorts/abc", Some("YouTube")),
            ("https://vimeo.com/76979871", Some("Vimeo")),
            ("https://player.vimeo.com/video/76979871", Some("Vimeo")),
            ("https://framatube.org/w/9c9de5e8-0a1e-484a-b099-e80766180a6d", Some("PeerTube")),
            ("https://tube.example/w/kkGMgK9ZtnKfYAgnEtQxbv", Some("PeerTube")),
            ("https://mastodon.social/@Gargron/100254678717223630", Some("Mastodon")),
            ("https://fosstodon.org/@a@b.example/109348299988893821", Some("Mastodon")),
            ("https://bsky.app/profile/bsky.app/post/3l6oveex3ii2l", Some("Bluesky")),
            ("https://x.com/jack/status/20", Some("X")),
            ("https://twitter.com/jack/status/20?s=20", Some("X")),
            ("https://gist.github.com/octocat/6cad326836d38bd3a7ae", Some("GitHub Gist")),
            ("https://codepen.io/team/codepen/pen/PNaGbb", None),
            ("https://codepen.io/chriscoyier/pen/gfdDu", Some("CodePen")),
            ("https://www.youtube.com/@channel", None),
            ("https://www.youtube.com/", None),
            ("https://vimeo.com/about", None),
            ("https://example.org/watch?v=1", None),
            ("https://example.org/@user", None),
            ("https://notyoutube.com/watch?v=1", None),
            ("https://youtube.com.evil.example/watch?v=1", None),
            ("javascript:alert(1)//https://youtu.be/x", None),
            ("youtu.be/dQw4w9WgXcQ", None),
        ];
        for (url, expected) in cases {
            assert_eq!(Card::of(url).map(|card| card.site), expected, "{url}");
        }
    }

    #[test]
    fn a_card_is_a_link_and_nothing_more() {
        let card = Card::of("https://youtu.be/a?x=1&y=\"<b>").expect("a card");
        let html = card.page_html("", Words::of("en"));
        assert!(html.contains("<span class=\"embed-kind\">Video · YouTube</span>"), "{html}");
        assert!(html.contains("youtu.be/a?x=1&amp;y=&quot;&lt;b&gt;</span>"), "{html}");
        assert!(card.page_html("My <talk>", Words::of("en")).contains(">My &lt;talk&gt;</span>"));
        assert!(card.feed_html("Talk").contains(">Talk (YouTube)</a>"));
        for part in ["<iframe", "<script", "<img", "src="] {
            assert!(!html.contains(part), "{html}");
        }
    }
}
