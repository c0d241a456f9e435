//! Finds in a stylesheet what a browser loads for it.
//!
//! Which rules match a page is not known without laying it out, so this is a choice: other sheets (`@import`) and pictures are all loaded; of a font, the
//! first source of each `@font-face` that covers Latin letters, WOFF2 before others, as pages are mostly written in these and browsers load the parts
//! of a font that the text needs.

use super::{Kind, REFERENCES_MAX, Reference};

/// Finds what a stylesheet refers to, in its order.
pub(crate) fn references(sheet: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut scanner = Scanner { text: sheet, at: 0 };
    let mut imports_may_follow = true;
    while found.len() < REFERENCES_MAX {
        let Some(item) = scanner.next() else { break };
        match item {
            Item::At("import") => {
                if let Some(Item::Url(url) | Item::Text(url)) = scanner.next()
                    && imports_may_follow
                {
                    found.push(Reference { url, kind: Kind::Style });
                }
            }
            Item::At("font-face") => found.extend(font(&mut scanner)),
            Item::At("namespace") => scanner.skip_to(b";{"),
            Item::At(_) | Item::Text(_) | Item::Other(_) => {}
            Item::Open => imports_may_follow = false,
            Item::Url(url) => found.push(Reference { url, kind: Kind::Image }),
        }
    }
    found
}

/// Reads the block of `@font-face`, and returns the source that is loaded.
fn font(scanner: &mut Scanner<'_>) -> Option<Reference> {
    scanner.skip_to(b"{");
    let end = scanner.text[scanner.at..].find('}').map_or(scanner.text.len(), |end| scanner.at + end);
    let block = &scanner.text[scanner.at..end];
    scanner.at = end;
    let lower = block.to_ascii_lowercase();
    if let Some((_, range)) = lower.split_once("unicode-range") {
        let range = range.trim_start_matches([':', ' ', '\n', '\r', '\t']).split([';', '}']).next().unwrap_or_default();
        if !range.split(',').any(covers_latin) {
            return None;
        }
    }
    let mut inner = Scanner { text: block, at: 0 };
    let mut first = None;
    while let Some(item) = inner.next() {
        let Item::Url(url) = item else { continue };
        let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let after = lower[inner.at..].split([',', ';']).next().unwrap_or_default();
        if path.ends_with(".woff2") || after.contains("woff2") {
            first = Some(url);
            break;
        }
        // Sources for browsers that are gone.
        if !(path.ends_with(".eot") || path.ends_with(".svg")) {
            first.get_or_insert(url);
        }
    }
    first.map(|url| Reference { url, kind: Kind::Font })
}

/// Returns whether a range of `unicode-range` has the letter A in it.
fn covers_latin(range: &str) -> bool {
    let Some(range) = range.trim().strip_prefix("u+") else { return false };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let bound = |text: &str, wildcard: &str| u32::from_str_radix(&text.trim().replace('?', wildcard), 16);
    let (Ok(first), Ok(last)) = (bound(first, "0"), bound(last, "f")) else { return false };
    (first..=last).contains(&0x41)
}

#[derive(Debug)]
enum Item<'a> {
    /// The name of an at-rule.
    At(&'a str),
    Url(String),
    /// A string.
    Text(String),
    Open,
    Other(()),
}

/// Reads what matters of a stylesheet: comments, strings and URLs are taken as a whole.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn next(&mut self) -> Option<Item<'a>> {
        loop {
            let text = self.text;
            let rest = &text[self.at..];
            let first = *rest.as_bytes().first()?;
            match first {
                b'/' if rest.starts_with("/*") => self.at += rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
                b'"' | b'\'' => return Some(Item::Text(self.string(first))),
                b'@' => {
                    let name = &rest[1..];
                    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(name.len());
                    self.at += 1 + end;
                    let known = ["import", "font-face", "namespace"].into_iter().find(|known| known.eq_ignore_ascii_case(&name[..end]));
                    return Some(Item::At(known.unwrap_or(&name[..end])));
                }
                b'{' => {
                    self.at += 1;
                    return Some(Item::Open);
                }
                b'u' | b'U' if rest.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("url(")) => {
                    self.at += 4;
                    return Some(self.url().map_or(Item::Other(()), Item::Url));
                }
                // A word is passed as a whole, so that `myurl(` is not one.
                _ if first.is_ascii_alphanumeric() || first == b'-' || first == b'_' => {
                    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')).unwrap_or(rest.len());
                    self.at += end;
                }
                _ => self.at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
    }

    /// Reads the string at whose quote the scanner stands.
    fn string(&mut self, quote: u8) -> String {
        let mut value = String::new();
        let mut characters = self.text[self.at + 1..].char_indices();
        let mut end = self.text.len() - self.at;
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => {
                    if let Some((_, next)) = characters.next()
                        && next != '\n'
                    {
                        value.push(next);
                    }
                }
                '\n' => {
                    end = at + 1;
                    break;
                }
                _ if character == char::from(quote) => {
                    end = at + 2;
                    break;
                }
                _ => value.push(character),
            }
        }
        self.at = (self.at + end).min(self.text.len());
        value
    }

    /// Reads the rest of `url(`.
    fn url(&mut self) -> Option<String> {
        let rest = &self.text[self.at..];
        let start = rest.trim_start();
        self.at += rest.len() - start.len();
        let url = match start.as_bytes().first()? {
            quote @ (b'"' | b'\'') => self.string(*quote),
            _ => {
                let end = start.find([')', '\n', '{', '}']).unwrap_or(start.len());
                self.at += end;
                start[..end].trim().to_owned()
            }
        };
        (!url.is_empty()).then_some(url)
    }

    /// Goes behind the next of these characters, without looking at what stands before it.
    fn skip_to(&mut self, any: &[u8]) {
        let found = self.text.as_bytes()[self.at..].iter().position(|byte| any.contains(byte));
        self.at = found.map_or(self.text.len(), |found| self.at + found + 1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn find(sheet: &str) -> String {
        references(sheet).iter().map(|found| format!("{:?} {}", found.kind, found.url)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn sheets_pictures_and_one_source_of_each_latin_font() {
        for (sheet, expected) in [
            ("@import 'a.css'; @IMPORT url(b.css) screen;", "Style a.css, Style b.css"),
            ("@charset \"utf-8\"; @import url(\"a.css\");", "Style a.css"),
            ("p{} @import 'late.css';", ""),
            ("a{background:url(x.png)} b{background: URL( 'y z.png' )}", "Image x.png, Image y z.png"),
            ("/* url(no.png) */ a{b:url(/*)}", "Image /*"),
            ("a::before{content:\"url(no.png)\"}", ""),
            ("a{b:myurl(no.png)}", ""),
            ("a{b:url()}", ""),
            ("a{b:url(a\\", "Image a\\"),
            (
                "@font-face{src:url(a.eot);src:url(a.eot?#iefix) format('embedded-opentype'),url(a.woff) format('woff'),url(a.woff2) format('woff2')}",
                "Font a.woff2",
            ),
            ("@font-face{src:local('x'),url('a.ttf')}", "Font a.ttf"),
            ("@font-face{src:url(c.woff2);unicode-range:U+0400-045F, U+2116}", ""),
            ("@font-face{src:url(l.woff2);unicode-range:U+0000-00FF, U+0131}", "Font l.woff2"),
            ("@font-face{src:url(l.woff2);unicode-range:U+4?}", "Font l.woff2"),
            ("@media (min-width:1px){a{b:url(m.png)}}", "Image m.png"),
            ("@namespace url(http://www.w3.org/1999/xhtml);", ""),
        ] {
            assert_eq!(find(sheet), expected, "{sheet}");
        }
    }

    proptest! {
        #[test]
        fn no_sheet_makes_the_finder_panic(sheet in "(@import|@font-face|url\\(|[{}'\"/*\\\\;(),:é \n]|src:|a|unicode-range:|U\\+4){0,30}") {
            prop_assert!(references(&sheet).len() <= REFERENCES_MAX);
        }
    }
}
