//! Liquid in texts: the tags and values that texts use become what they stand for; others stay, and are told with their line.

use crate::html::{card_of, destination, fenced, shortened};

/// The names that themes give their templates for a picture with words below it, and the names by which they are given the picture.
const FIGURES: [&str; 6] = ["figure", "figure-image", "fig", "image", "img", "picture"];
const SOURCES: [&str; 7] = ["src", "image_path", "path", "url", "image", "img", "file"];

/// Knows what the names in a text stand for.
pub(super) trait Names {
    /// Returns the address of a post, by the name of its file.
    fn of_post(&self, name: &str) -> Option<String>;
    /// Returns the address of a file of the source.
    fn of_path(&self, path: &str) -> Option<String>;
    /// Returns the value of a name such as `site.title`.
    fn value(&self, name: &str) -> Option<String>;
}

/// A text with its Liquid replaced.
#[derive(Debug)]
pub(super) struct Liquid {
    pub(super) text: String,
    pub(super) notes: Vec<String>,
    /// Whether tags are left that decide or repeat.
    pub(super) is_template: bool,
}

/// Replaces the Liquid in a text, whose first line is `line` of `file`.
pub(super) fn replace(text: &str, file: &str, line: usize, names: &dyn Names) -> Liquid {
    let mut liquid = Liquid { text: String::with_capacity(text.len()), notes: Vec::new(), is_template: false };
    let (mut rest, mut at_line) = (text, line);
    while let Some(at) = rest.find("{{").into_iter().chain(rest.find("{%")).min() {
        at_line += rest[..at].matches('\n').count();
        liquid.text.push_str(&rest[..at]);
        rest = &rest[at..];
        let closing = if rest.starts_with("{{") { "}}" } else { "%}" };
        let Some(end) = rest.find(closing).map(|end| end + 2) else { break };
        let inner = rest[2..end - 2].trim().trim_matches('-').trim();
        let (replaced, length) = if closing == "}}" { (output(inner, names), end) } else { tag(inner, rest, end, names) };
        match replaced {
            Some(replaced) => liquid.text.push_str(&replaced),
            None => {
                let what = inner.split_whitespace().next().unwrap_or_default();
                liquid.is_template |=
                    matches!(what, "for" | "if" | "unless" | "include" | "assign" | "capture" | "case") || closing == "}}";
                if !what.starts_with("end") {
                    liquid.notes.push(format!("{file}:{at_line}: `{}` stays as it is: only Jekyll can fill it", shortened(&rest[..end])));
                }
                liquid.text.push_str(&rest[..length]);
            }
        }
        at_line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    liquid.text.push_str(rest);
    liquid
}

/// Returns the value of an output with its filters.
fn output(inner: &str, names: &dyn Names) -> Option<String> {
    let mut parts = inner.split('|').map(str::trim);
    let first = parts.next()?;
    let is_quoted =
        first.len() >= 2 && (first.starts_with('"') && first.ends_with('"') || first.starts_with('\'') && first.ends_with('\''));
    let mut value = if is_quoted {
        first[1..first.len() - 1].to_owned()
    } else if is_number(first) {
        first.to_owned()
    } else {
        names.value(first)?
    };
    for filter in parts {
        let (name, argument) = filter.split_once(':').map_or((filter, ""), |(name, argument)| (name.trim(), argument.trim()));
        match name {
            "relative_url" | "absolute_url" => {
                let base = names.value("site.baseurl").unwrap_or_default();
                value = format!("{base}/{}", value.trim_start_matches('/'));
            }
            "prepend" | "append" => {
                let added = output(argument, names)?;
                value = if name == "prepend" { added + &value } else { value + &added };
            }
            "escape" | "strip" | "xml_escape" | "markdownify" | "strip_html" | "url_encode" | "cgi_escape" => {}
            _ => return None,
        }
    }
    Some(value)
}

/// Returns what stands for a tag, and the length of what it stands for.
fn tag(inner: &str, rest: &str, end: usize, names: &dyn Names) -> (Option<String>, usize) {
    let (name, arguments) = inner.split_once(char::is_whitespace).map_or((inner, ""), |(name, arguments)| (name, arguments.trim()));
    let until = |name: &str| {
        let mut at = end;
        while let Some(found) = rest[at..].find("{%").map(|found| at + found) {
            let close = rest[found..].find("%}").map(|close| found + close + 2)?;
            if rest[found + 2..close - 2].trim().trim_matches('-').trim() == name {
                return Some((&rest[end..found], close));
            }
            at = close;
        }
        None
    };
    let value = |key: &str| argument(arguments, key, names);
    let plain = arguments.split_whitespace().next().unwrap_or_default().trim_matches(['"', '\'']);
    match name {
        "raw" => until("endraw").map_or((None, end), |(inner, length)| (Some(inner.to_owned()), length)),
        "comment" => until("endcomment").map_or((None, end), |(_, length)| (Some(String::new()), length)),
        "highlight" => until("endhighlight").map_or((None, end), |(inner, length)| {
            let inner = inner.trim_matches('\n').replace("{% raw %}", "").replace("{% endraw %}", "");
            let options = highlighted(arguments);
            let language = if plain == "text" && options.is_empty() { "" } else { plain };
            (Some(fenced(language, &options, inner.trim_end())), length)
        }),
        "post_url" => (names.of_post(plain), end),
        "link" => (names.of_path(plain), end),
        "gist" => (Some(card_of(&format!("https://gist.github.com/{plain}"))), end),
        "youtube" => (Some(card_of(&video(plain))), end),
        "vimeo" => (Some(card_of(&format!("https://vimeo.com/{plain}"))), end),
        "twitter" | "tweet" if plain.starts_with("http") => (Some(card_of(plain)), end),
        "include" if plain.to_ascii_lowercase().contains("youtube") => {
            let id = ["id", "video_id", "youtube_id", "video"].iter().find_map(|key| value(key));
            (id.map(|id| card_of(&video(&id))), end)
        }
        "include" if matches!(included(plain), "video" | "vimeo") => {
            let is_vimeo = included(plain) == "vimeo" || value("provider").is_some_and(|provider| provider.eq_ignore_ascii_case("vimeo"));
            let is_known = is_vimeo || value("provider").is_none_or(|provider| provider.eq_ignore_ascii_case("youtube"));
            let id = value("id").filter(|_| is_known);
            (id.map(|id| card_of(&if is_vimeo { format!("https://vimeo.com/{id}") } else { video(&id) })), end)
        }
        "include" if FIGURES.contains(&included(plain)) => (figure(&value, names), end),
        "include" if plain.contains("toc") => (Some(String::new()), end),
        _ => (None, end),
    }
}

/// Returns the name of a template that is included, without folders and extension.
fn included(template: &str) -> &str {
    let leaf = template.rsplit('/').next().unwrap_or(template);
    leaf.split_once('.').map_or(leaf, |(stem, _)| stem)
}

/// Returns the value of an argument that is named `key`: a quoted text, or what a name stands for.
fn argument(arguments: &str, key: &str, names: &dyn Names) -> Option<String> {
    let mark = format!("{key}=");
    let (at, _) = arguments.match_indices(&mark).find(|(at, _)| arguments[..*at].chars().next_back().is_none_or(char::is_whitespace))?;
    let text = &arguments[at + mark.len()..];
    match text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        Some(quote) => text[1..].split(quote).next().map(str::to_owned),
        None => {
            let word = text.split_whitespace().next()?;
            if is_number(word) { Some(word.to_owned()) } else { names.value(word) }
        }
    }
}

/// Tells whether a word is a number, which stands for itself.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    digits.starts_with(|c: char| c.is_ascii_digit()) && digits.parse::<f64>().is_ok()
}

/// Returns a picture with its caption, as an include is given them.
fn figure(value: &dyn Fn(&str) -> Option<String>, names: &dyn Names) -> Option<String> {
    let source = SOURCES.iter().find_map(|key| value(key)).filter(|source| !source.contains(['{', '\n']))?;
    let source = names.of_path(&source).unwrap_or(source);
    let caption = value("caption").or_else(|| value("title")).unwrap_or_default();
    let alt = value("alt").unwrap_or_else(|| caption.clone()).replace(['[', ']'], "");
    let caption = caption.replace('\\', "\\\\").replace('"', "\\\"");
    Some(if caption.is_empty() {
        format!("![{alt}]({})", destination(&source))
    } else {
        format!("![{alt}]({} \"{caption}\")", destination(&source))
    })
}

/// Returns what a tag `highlight` says beside the language as the blog has it: numbers of lines, and marked lines.
fn highlighted(arguments: &str) -> String {
    let words = || arguments.split_whitespace().skip(1);
    // Whatever its value, Jekyll numbers the lines.
    let mut options =
        if words().any(|word| word == "linenos" || word.starts_with("linenos=")) { " linenos".to_owned() } else { String::new() };
    let marks = ["mark_lines=\"", "hl_lines=\""].iter().find_map(|key| arguments.split_once(key)?.1.split('"').next());
    let marks: Vec<&str> = marks.into_iter().flat_map(str::split_whitespace).filter(|mark| mark.parse::<u32>().is_ok()).collect();
    if !marks.is_empty() {
        options += &format!(" {{{}}}", marks.join(","));
    }
    options
}

fn video(id: &str) -> String {
    if id.contains("://") { id.to_owned() } else { format!("https://www.youtube.com/watch?v={id}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Names for Nothing {
        fn of_post(&self, _: &str) -> Option<String> {
            None
        }
        fn of_path(&self, path: &str) -> Option<String> {
            (path == "assets/a.png").then(|| "/n/assets/a.png".to_owned())
        }
        fn value(&self, name: &str) -> Option<String> {
            (name == "page.film").then(|| "xyz".to_owned())
        }
    }

    /// The manuals of Minimal Mistakes ("Helpers"), al-folio ("Images") and Chirpy ("Media").
    #[test]
    fn pictures_and_films_of_themes_become_those_of_the_blog() {
        let cases = [
            (
                "figure image_path=\"/b.jpg\" alt=\"A wall\" caption=\"The \u{201c}wall\u{201d}.\"",
                "![A wall](/b.jpg \"The \u{201c}wall\u{201d}.\")",
            ),
            ("figure.liquid loading=\"eager\" path=\"assets/a.png\" class=\"img-fluid\"", "![](/n/assets/a.png)"),
            ("image.html url='/a b.jpg' caption='say \"no\"'", "![say \"no\"](/a%20b.jpg \"say \\\"no\\\"\")"),
            ("video id=\"abc\" provider=\"youtube\"", "https://www.youtube.com/watch?v=abc"),
            ("video id=\"123\" provider=\"vimeo\"", "https://vimeo.com/123"),
            ("embed/youtube.html id='abc'", "https://www.youtube.com/watch?v=abc"),
            // Liquid's documentation, "Types": a number has no quotes.
            ("video id=123 provider=\"vimeo\"", "https://vimeo.com/123"),
            ("youtube.html id=page.film", "https://www.youtube.com/watch?v=xyz"),
        ];
        for (arguments, expected) in cases {
            let replaced = replace(&format!("{{% include {arguments} %}}"), "a.md", 1, &Nothing);
            assert_eq!((replaced.text.trim(), replaced.notes.len()), (expected, 0), "{arguments}");
        }
        for arguments in ["figure image_path=page.unknown", "video id=\"1\" provider=\"bilibili\"", "gallery", "form.html src-set=\"x\""] {
            let text = format!("{{% include {arguments} %}}");
            let replaced = replace(&text, "a.md", 1, &Nothing);
            assert_eq!((replaced.text, replaced.notes.len()), (text, 1), "{arguments}");
        }
    }

    /// Jekyll's documentation, "Liquid tags", "Code snippet highlighting".
    #[test]
    fn highlighted_code_keeps_its_numbers_and_marks() {
        let cases = [
            ("ruby", "```ruby"),
            ("ruby linenos", "```ruby linenos"),
            ("ruby linenos=table", "```ruby linenos"),
            ("ruby mark_lines=\"1 3\"", "```ruby {1,3}"),
            ("text linenos hl_lines=\"2\"", "```text linenos {2}"),
            ("text", "```"),
        ];
        for (arguments, expected) in cases {
            let text = format!("{{% highlight {arguments} %}}\nputs 1\n{{% endhighlight %}}\n");
            assert_eq!(replace(&text, "a.md", 1, &Nothing).text, format!("{expected}\nputs 1\n```\n"), "{arguments}");
        }
    }
}
