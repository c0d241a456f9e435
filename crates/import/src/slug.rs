//! Names in addresses, by the blog's rules: what is a valid slug there is one here.

use semantics::percent;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// First segments of addresses that the blog needs for itself.
pub(crate) const RESERVED: [&str; 17] = [
    "archive",
    "authors",
    "cards",
    "feed.json",
    "feed.xml",
    "llms.txt",
    "page",
    "pictures",
    "preview",
    "robots.txt",
    "rss.xml",
    "search",
    "search.json",
    "series",
    "sitemap.xml",
    "tags",
    "theme",
];

/// Makes an address from a title: words of any script in lower case, with one hyphen between them.
pub(crate) fn slugify(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    let mut joiner = None;
    for c in text.nfc().flat_map(|c| (if c == 'İ' { 'i' } else { c }).to_lowercase()) {
        let in_word = !slug.is_empty() && !slug.ends_with('-');
        let is_symbol_mark = matches!(c, '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
        if c.is_alphanumeric() || is_combining_mark(c) && !is_symbol_mark && in_word {
            slug.extend(joiner.take());
            slug.push(c);
        } else if matches!(c, '\u{200c}' | '\u{200d}') {
            joiner = Some(c).filter(|_| in_word);
        } else if is_combining_mark(c) || is_invisible(c) || matches!(c, '\'' | '’') {
            // Left out: "don't" becomes `dont`.
        } else {
            joiner = None;
            if in_word {
                slug.push('-');
            }
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug.nfc().collect()
}

const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Returns a text with its letters as ASCII has them, where it has them: WordPress makes addresses of names so.
pub(crate) fn without_accents(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.nfd().filter(|&c| !is_combining_mark(c)) {
        match c {
            'ø' => out.push('o'),
            'Ø' => out.push('O'),
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'Æ' => out.push_str("AE"),
            'œ' => out.push_str("oe"),
            'ł' => out.push('l'),
            'Ł' => out.push('L'),
            'đ' | 'ð' => out.push('d'),
            c => out.push(c),
        }
    }
    out
}

/// Makes an address from a tag.
pub(crate) fn tag_slug(tag: &str) -> String {
    slugify(&tag.replace('+', " plus ").replace('#', " sharp "))
}

/// Decodes the escapes of an address. What does not become text stays as it is.
pub(crate) fn decoded(url: &str) -> String {
    if !url.contains('%') {
        return url.to_owned();
    }
    let bytes = percent::decoded(url.as_bytes());
    String::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control)).unwrap_or_else(|| url.to_owned())
}

/// Encodes a path for an address, as the blog does.
pub(crate) fn encoded(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_those_of_the_blog() {
        let cases = [
            ("Hello, World!", "hello-world"),
            ("Don't panic", "dont-panic"),
            ("Zürich früh", "zürich-früh"),
            ("../../etc/passwd", "etc-passwd"),
            ("湖のほとり", "湖のほとり"),
            ("!!!", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(slugify(text), expected, "{text}");
        }
        assert_eq!((tag_slug("C++"), tag_slug("C#")), ("c-plus-plus".to_owned(), "c-sharp".to_owned()));
    }

    #[test]
    fn letters_without_accents() {
        assert_eq!(slugify(&without_accents("Søren Lindqvist, Tomás & Émile Groß")), "soren-lindqvist-tomas-emile-gross");
    }

    #[test]
    fn escapes_of_addresses_are_read_and_written() {
        assert_eq!(decoded("/a%20b/%e6%b9%96/"), "/a b/湖/");
        assert_eq!(decoded("/100%/%zz/%ff"), "/100%/%zz/%ff");
        assert_eq!(encoded("/a b/湖/"), "/a%20b/%E6%B9%96/");
    }
}
