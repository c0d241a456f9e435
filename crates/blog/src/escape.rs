//! Text into HTML and XML.

/// Escapes `text` for element content and for quoted attribute values. Drops control characters that XML 1.0 §2.2 forbids, so that no text
/// of an author can break the feed. [`crate::feed::BASE`] is one of them, so no author can write it.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    push_escaped(&mut escaped, text);
    escaped
}

/// Appends the escaped `text` to `out`, as [`escape`] does.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    push(out, text, true);
}

/// Appends `text` to the content of an element. Quotation marks stay, as they end nothing there.
pub(crate) fn push_text(out: &mut String, text: &str) {
    push(out, text, false);
}

fn push(out: &mut String, text: &str, with_quotes: bool) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if with_quotes => out.push_str("&quot;"),
            '\'' if with_quotes => out.push_str("&#39;"),
            c if is_xml_char(c) => out.push(c),
            _ => {}
        }
    }
}

/// Tells whether `c` is a `Char` of XML 1.0 §2.2.
pub(crate) fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::{escape, push_text};

    #[test]
    fn markup_becomes_text() {
        assert_eq!(escape("<a href=\"x\">Tom & 'Jerry'</a>"), "&lt;a href=&quot;x&quot;&gt;Tom &amp; &#39;Jerry&#39;&lt;/a&gt;");
        assert_eq!(escape("a\u{1}b\u{0}c\td\u{ffff}"), "abc\td");
        let mut text = "<p>".to_owned();
        push_text(&mut text, "Tom & \"Jerry\"'s\u{1} <b>");
        assert_eq!(text, "<p>Tom &amp; \"Jerry\"'s &lt;b&gt;");
    }
}
