//! Hugo's shortcodes: those that every site has become Markdown; others stay, and are told with their line.

use crate::html::{card_of, destination, escape, fenced, folded, indented, shortened};

/// Knows what the arguments of shortcodes stand for.
pub(super) trait Names {
    /// Returns the address of a text, by the path of its file.
    fn address(&self, path: &str) -> Option<String>;
    /// Returns a value of the text or the site.
    fn value(&self, name: &str) -> Option<String>;
}

/// Boxes that themes have in many names, and the alert that each becomes.
const BOXES: [(&str, &str); 18] = [
    ("note", "NOTE"),
    ("info", "NOTE"),
    ("notice", "NOTE"),
    ("callout", "NOTE"),
    ("admonition", "NOTE"),
    ("alert", "NOTE"),
    ("box", "NOTE"),
    ("tip", "TIP"),
    ("hint", "TIP"),
    ("success", "TIP"),
    ("important", "IMPORTANT"),
    ("warning", "WARNING"),
    ("warn", "WARNING"),
    ("attention", "WARNING"),
    ("caution", "CAUTION"),
    ("danger", "CAUTION"),
    ("error", "CAUTION"),
    ("bug", "CAUTION"),
];

/// The depth to which shortcodes may stand in one another.
const DEPTH_MAX: usize = 16;

/// A shortcode in a text.
struct Shortcode<'t> {
    name: &'t str,
    arguments: Vec<(String, String)>,
    is_end: bool,
    is_closed: bool,
    length: usize,
}

impl Shortcode<'_> {
    /// Returns an argument by its name, or by its place.
    fn get(&self, key: &str, place: usize) -> Option<&str> {
        let named = self.arguments.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
        let placed = || self.arguments.iter().filter(|(known, _)| known.is_empty()).nth(place).map(|(_, value)| value.as_str());
        named.or_else(placed).filter(|value| !value.is_empty())
    }

    fn named(&self, key: &str) -> Option<&str> {
        self.get(key, usize::MAX)
    }
}

/// Replaces the shortcodes in a text, whose first line is `line` of `file`. Returns it with what is to be told.
pub(super) fn replace(text: &str, file: &str, line: usize, names: &dyn Names) -> (String, Vec<String>) {
    let mut notes = Vec::new();
    let text = replaced(text, file, line, names, &mut notes, 0);
    (text, notes)
}

fn replaced(text: &str, file: &str, line: usize, names: &dyn Names, notes: &mut Vec<String>, depth: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut at_line) = (text, line);
    while let Some(at) = next(rest) {
        at_line += rest[..at].matches('\n').count();
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let closing = if rest.starts_with("{{<") { ">}}" } else { "%}}" };
        if rest[3..].trim_start().starts_with("/*") {
            // A comment in it shows a shortcode instead of running it.
            let Some(end) = rest.find(closing).map(|end| end + 3) else { break };
            out.push_str(&rest[..end].replacen("/*", "", 1).replacen("*/", "", 1));
            rest = &rest[end..];
            continue;
        }
        let Some(shortcode) = parse(rest, closing) else {
            out.push_str(&rest[..3]);
            rest = &rest[3..];
            continue;
        };
        let own = &rest[..shortcode.length];
        let after = &rest[shortcode.length..];
        let content = if shortcode.is_end || shortcode.is_closed { None } else { content(after, shortcode.name) };
        let inner_line = at_line + own.matches('\n').count();
        let result = if shortcode.is_end || depth > DEPTH_MAX {
            None
        } else {
            markdown(&shortcode, content.map(|(inner, _)| inner), names, &mut |inner| {
                replaced(inner, file, inner_line, names, notes, depth + 1)
            })
        };
        let length = match result {
            Some(markdown) => {
                out.push_str(&markdown);
                shortcode.length + content.map_or(0, |(_, length)| length)
            }
            None => {
                if !shortcode.is_end {
                    notes.push(format!("{file}:{at_line}: the shortcode `{}` stays as it is: only Hugo knows it", shortened(own)));
                }
                out.push_str(own);
                shortcode.length
            }
        };
        at_line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

fn next(text: &str) -> Option<usize> {
    text.find("{{<").into_iter().chain(text.find("{{%")).min()
}

fn parse<'t>(text: &'t str, closing: &str) -> Option<Shortcode<'t>> {
    let inner = &text[3..];
    let mut at = inner.len() - inner.trim_start().len();
    let is_end = inner[at..].starts_with('/');
    if is_end {
        at += 1;
        at += inner[at..].len() - inner[at..].trim_start().len();
    }
    let end = inner[at..].find(|c: char| c.is_whitespace() || "%>".contains(c))? + at;
    let name = inner[at..end].trim_end_matches('/');
    if name.is_empty() {
        return None;
    }
    let (mut arguments, mut at) = (Vec::new(), end);
    loop {
        let rest = &inner[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if trimmed.starts_with(closing) {
            return Some(Shortcode { name, arguments, is_end, is_closed: inner[..end].ends_with('/'), length: 3 + at + 3 });
        }
        if let Some(after) = trimmed.strip_prefix('/')
            && after.trim_start().starts_with(closing)
        {
            let length = 3 + at + 1 + (after.len() - after.trim_start().len()) + 3;
            return Some(Shortcode { name, arguments, is_end, is_closed: true, length });
        }
        let (first, length) = word(trimmed)?;
        at += length;
        match inner[at..].strip_prefix('=').filter(|_| !trimmed.starts_with(['"', '`', '\''])) {
            Some(value) => {
                let (value, length) = word(value)?;
                at += 1 + length;
                arguments.push((first, value));
            }
            None => arguments.push((String::new(), first)),
        }
    }
}

/// Reads a word or a quoted text. Returns it with its length in the source.
fn word(text: &str) -> Option<(String, usize)> {
    let quote = text.chars().next()?;
    if matches!(quote, '"' | '`') {
        let mut at = 1;
        loop {
            let found = text[at..].find(quote)? + at;
            if quote == '"' && text[..found].ends_with('\\') {
                at = found + 1;
                continue;
            }
            return Some((text[1..found].replace("\\\"", "\""), found + 1));
        }
    }
    let end = text.find(|c: char| c.is_whitespace() || c == '=' || c == '}').unwrap_or(text.len());
    let end = text[..end].find(">}}").or_else(|| text[..end].find("%}}")).unwrap_or(end);
    (end > 0).then(|| (text[..end].to_owned(), end))
}

/// Returns what stands before the end of a shortcode, and the length with that end.
fn content<'t>(text: &'t str, name: &str) -> Option<(&'t str, usize)> {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        let found = next(&text[at..])? + at;
        let closing = if text[found..].starts_with("{{<") { ">}}" } else { "%}}" };
        let Some(shortcode) = parse(&text[found..], closing) else {
            at = found + 3;
            continue;
        };
        at = found + shortcode.length;
        if shortcode.name != name || shortcode.is_closed {
            continue;
        }
        if !shortcode.is_end {
            depth += 1;
        } else if depth == 0 {
            return Some((&text[..found], at));
        } else {
            depth -= 1;
        }
    }
}

fn markdown(shortcode: &Shortcode<'_>, content: Option<&str>, names: &dyn Names, inner: &mut dyn FnMut(&str) -> String) -> Option<String> {
    let first = shortcode.get("", 0).or_else(|| shortcode.named("id"));
    match shortcode.name {
        "ref" | "relref" => names.address(shortcode.get("path", 0)?),
        "param" => names.value(shortcode.get("name", 0)?),
        "figure" | "img" | "image" => {
            let source = shortcode.get("src", 0)?;
            let alt = shortcode.named("alt").or_else(|| shortcode.named("caption")).unwrap_or_default().replace(['[', ']'], "");
            let mut image = format!("![{alt}]({})", destination(source));
            if let Some(link) = shortcode.named("link") {
                image = format!("[{image}]({})", destination(link));
            }
            let caption = [
                shortcode.named("title").map(|title| format!("<strong>{}</strong>", escape(title))),
                shortcode.named("caption").map(escape),
            ];
            let caption = caption.into_iter().flatten().collect::<Vec<_>>().join(" ");
            Some(if caption.is_empty() { image } else { format!("<figure>\n\n{image}\n\n<figcaption>{caption}</figcaption>\n</figure>") })
        }
        "highlight" | "code" => {
            let code = content?.trim_matches('\n').trim_end();
            Some(fenced(shortcode.get("lang", 0).unwrap_or_default(), "", code))
        }
        "youtube" => Some(card_of(&format!("https://www.youtube.com/watch?v={}", first?))),
        "vimeo" => Some(card_of(&format!("https://vimeo.com/{}", first?))),
        "gist" => Some(card_of(&format!("https://gist.github.com/{}/{}", shortcode.get("user", 0)?, shortcode.get("id", 1)?))),
        "tweet" | "twitter" | "twitter_simple" | "x" | "x_simple" => {
            let id = shortcode.named("id").or_else(|| shortcode.get("", 0))?;
            Some(card_of(&format!("https://twitter.com/{}/status/{id}", shortcode.named("user").unwrap_or("i"))))
        }
        "instagram" => Some(card_of(&format!("https://www.instagram.com/p/{}/", first?))),
        "details" | "expand" | "collapse" | "spoiler" => {
            let summary = shortcode.get("summary", 0).or_else(|| shortcode.named("title")).unwrap_or("Details");
            Some(folded(&escape(summary), &[inner(content?).trim().to_owned()]))
        }
        "comment" => content.map(|_| String::new()),
        "rawhtml" | "raw" => content.map(str::to_owned),
        name => {
            let (_, alert) = BOXES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?;
            let kind = shortcode.named("type").or_else(|| shortcode.named("color")).or_else(|| shortcode.get("", 0)).unwrap_or_default();
            let of_kind = BOXES.iter().find(|(known, _)| kind.eq_ignore_ascii_case(known)).map_or(*alert, |(_, alert)| *alert);
            let text = inner(content?).trim().to_owned();
            let title = shortcode.named("title").unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
            Some(indented(&format!("{}\n{text}", format!("[!{of_kind}] {title}").trim_end()), "> ", "> "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Names for Nothing {
        fn address(&self, _: &str) -> Option<String> {
            None
        }
        fn value(&self, _: &str) -> Option<String> {
            None
        }
    }

    /// Hugo's documentation, "Shortcodes": a quotation mark within quotation marks has a backslash, and a raw text stands between backticks.
    #[test]
    fn titles_may_have_quotation_marks() {
        let cases = [
            ("{{< note title=\"Say \\\"no\\\"\" >}}\nx\n{{< /note >}}", "> [!NOTE] Say \"no\"\n> x"),
            ("{{< note title=`Say \"no\"` >}}\nx\n{{< /note >}}", "> [!NOTE] Say \"no\"\n> x"),
            ("{{% note title=\"It's >}} \\\"\" %}}\nx\n{{% /note %}}", "> [!NOTE] It's >}} \"\n> x"),
            ("{{< figure src=\"a.png\" title=\"A \\\"b\\\"\" >}}", "<strong>A &quot;b&quot;</strong>"),
            ("{{< details title=\"A \\\"b\\\"\" >}}\nx\n{{< /details >}}", "A &quot;b&quot;"),
        ];
        for (text, expected) in cases {
            let (replaced, notes) = replace(text, "a.md", 1, &Nothing);
            assert!(replaced.contains(expected) && notes.is_empty(), "{text}: {replaced} {notes:?}");
        }
    }
}
