//! Names in URLs, and lines in texts.

use std::fmt::Write as _;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Makes an address from a title: words of any script in lower case, with one hyphen between them. `Zürich, früh!` becomes `zürich-früh`.
///
/// Marks and joiners belong to the word that they stand in: without them, words of many scripts are other words or none. The result is
/// normalised (NFC), whichever way the title was typed or a file system keeps its name.
pub(crate) fn slugify(text: &str) -> String {
    // A large blog asks this for every tag of every post at each build, and there is nothing to normalise in most of them.
    if text.is_ascii() {
        return slugify_ascii(text);
    }
    let mut slug = String::with_capacity(text.len());
    let mut joiner = None;
    for c in text.nfc().flat_map(lower_case) {
        let in_word = !slug.is_empty() && !slug.ends_with('-');
        if c.is_alphanumeric() || is_mark_of_letters(c) && in_word {
            slug.extend(joiner.take());
            slug.push(c);
        } else if matches!(c, ZERO_WIDTH_NON_JOINER | ZERO_WIDTH_JOINER) {
            // At the end of a word it joins nothing.
            joiner = Some(c).filter(|_| in_word);
        } else if is_combining_mark(c) || is_invisible(c) || matches!(c, '\'' | '’') {
            // "don't" reads better as `dont` than as `don-t`.
        } else {
            joiner = None;
            if in_word {
                slug.push('-');
            }
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    // What was left out may have stood between a letter and its mark.
    slug.nfc().collect()
}

fn slugify_ascii(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            slug.push(char::from(byte.to_ascii_lowercase()));
        } else if byte != b'\'' && !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

const ZERO_WIDTH_NON_JOINER: char = '\u{200c}';
const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Converts `c` to lower case. `İ` becomes `i`, as in Turkish: the general rule leaves a second dot on it.
fn lower_case(c: char) -> impl Iterator<Item = char> {
    (if c == 'İ' { 'i' } else { c }).to_lowercase()
}

/// Tells whether a mark (general category M) belongs to letters. Marks that choose among forms or encircle symbols are mostly for emoji.
fn is_mark_of_letters(c: char) -> bool {
    let of_symbols = matches!(c, '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
    is_combining_mark(c) && !of_symbols
}

/// Tells whether `c` only controls how the text around it is broken or directed, such as the soft hyphen.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Makes the anchor of a heading, as GitHub and Hugo do: letters and digits of any script in lower case, hyphens and low lines stay, a space becomes a
/// hyphen, and everything else is left out. So links within a text that comes from there still lead to their sections.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() || is_mark_of_letters(c) => Some(c),
        _ => None,
    };
    let anchor: String = heading.trim().nfc().flat_map(lower_case).filter_map(kept).collect();
    if anchor.contains(char::is_alphanumeric) { anchor } else { String::new() }
}

/// Makes an address from a tag, as [`slugify`] does, but keeps `C`, `C++` and `C#` apart.
pub(crate) fn tag_slug(tag: &str) -> String {
    if tag.contains(['+', '#']) { slugify(&tag.replace('+', " plus ").replace('#', " sharp ")) } else { slugify(tag) }
}

/// Encodes `path` for a URI. Characters that RFC 3986 §3.3 allows in a path stay; the others are percent-encoded as UTF-8.
pub(crate) fn encode_path(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// Decodes the path of a URI. Returns `None` if it is malformed, is not UTF-8, or hides a slash or a control character.
pub(crate) fn decode_path(uri: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
        let decoded = u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?;
        if decoded == b'/' || decoded.is_ascii_control() {
            return None;
        }
        bytes.push(decoded);
    }
    String::from_utf8(bytes).ok()
}

/// Tells whether `text` can be a host with an optional port. Such a text needs no escaping in XML or HTML.
pub(crate) fn is_authority(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:[]%".contains(&b))
}

/// Returns the line of the byte `offset`, counted from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|&&b| b == b'\n').count()
}

/// Returns the first line that sets `key` at the top level, as `key = …` or `key: …`.
pub(crate) fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let sets = |line: &str| {
        let line = line.trim_start_matches(['"', '\'']);
        line.strip_prefix(key).is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(['=', ':']))
    };
    text.lines().position(sets).map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        let cases = [
            ("Hello, World!", "hello-world"),
            ("  --a--b--  ", "a-b"),
            ("Don't panic", "dont-panic"),
            ("Zürich früh", "zürich-früh"),
            ("日本 語", "日本-語"),
            ("../../etc/passwd", "etc-passwd"),
            ("<script>", "script"),
            ("!!!", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(slugify(text), expected, "{text}");
        }
        assert_eq!((tag_slug("C"), tag_slug("C++"), tag_slug("C#")), ("c".into(), "c-plus-plus".into(), "c-sharp".into()));
    }

    #[test]
    fn words_of_all_scripts_stay_whole() {
        let cases = [
            ("हिन्दी", "हिन्दी"),
            ("क्षत्रिय और ज़मीन", "क्षत्रिय-और-\u{91c}\u{93c}मीन"),
            ("বাংলা ভাষা", "বাংলা-ভাষা"),
            ("தமிழ்", "தமிழ்"),
            ("ភាសាខ្មែរ", "ភាសាខ្មែរ"),
            ("ภาษาไทย น้ำ", "ภาษาไทย-น้ำ"),
            ("עִבְרִית", "עִבְרִית"),
            // Marks have an order (Unicode Standard, 3.11): fatha before shadda.
            ("م\u{64f}ح\u{64e}م\u{651}\u{64e}د", "م\u{64f}ح\u{64e}م\u{64e}\u{651}د"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("ක්\u{200d}ෂ", "ක්\u{200d}ෂ"),
            ("Tiếng Việt", "tiếng-việt"),
            ("Tie\u{302}\u{301}ng Vie\u{323}\u{302}t", "tiếng-việt"),
            ("U\u{308}ber", "über"),
            ("Über", "über"),
            ("\u{1112}\u{1161}\u{11ab}글", "한글"),
            ("İstanbul'da ışık", "istanbulda-ışık"),
            ("I\u{307}zmir", "izmir"),
            ("Straße ΣΟΦΙΑ", "straße-σοφια"),
            ("Silben\u{ad}trennung \u{200f}x", "silbentrennung-x"),
            // What joins nothing is nothing.
            ("a\u{200d} b\u{200c}", "a-b"),
            ("\u{301}a -\u{301}b", "a-b"),
            ("👩\u{200d}💻 Code 👨\u{200d}👩\u{200d}👧", "code"),
            ("I ❤\u{fe0f} you", "i-you"),
            ("Step 1\u{fe0f}\u{20e3}", "step-1"),
            ("u\u{fe0f}\u{308}", "ü"),
            ("🇩🇪🏽", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(slugify(text), expected, "{text}: {:?}", slugify(text));
            assert_eq!(slugify(expected), expected, "{text}: once more");
        }
    }

    #[test]
    fn paths_survive_the_way_into_a_uri_and_back() {
        for path in ["/", "/a b/", "/zürich/", "/100%/", "/a?b#c/", "/\"<>/"] {
            let uri = encode_path(path);
            assert!(uri.parse::<http::Uri>().is_ok(), "{uri}");
            assert!(!uri.contains(['?', '#', '"', '<', ' ']), "{uri}");
            assert_eq!(decode_path(&uri).as_deref(), Some(path));
        }
    }

    #[test]
    fn malformed_paths_stand_for_nothing() {
        for uri in ["/%", "/%4", "/%zz", "/%00", "/%2f", "/a%2Fb", "/%ff", "/%0a"] {
            assert_eq!(decode_path(uri), None, "{uri}");
        }
    }

    #[test]
    fn keys_have_lines() {
        let text = "title = \"date: x\"\n\n\"date\": 1\ndated = 2\n";
        assert_eq!(line_of_key(text, "date"), Some(3));
        assert_eq!(line_of_key(text, "title"), Some(1));
        assert_eq!(line_of_key(text, "dat"), None);
    }
}
