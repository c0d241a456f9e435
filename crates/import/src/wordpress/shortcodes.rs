//! Shortcodes: what WordPress itself knows becomes HTML, the rest stays and is told.

use crate::html::{Targets, escape, escape_text, shortened};

/// Knows what a shortcode can refer to.
pub(super) trait Attachments {
    /// Returns address, alternative text and caption of a picture.
    fn picture(&self, id: &str) -> Option<(String, String, String)>;
    /// Returns the pictures that were uploaded to the text.
    fn uploaded(&self) -> Vec<String>;
}

/// A shortcode in a text.
#[derive(Debug, PartialEq, Eq)]
struct Shortcode<'t> {
    name: &'t str,
    attributes: Vec<(String, String)>,
    /// The text between it and its end, if it has one.
    content: Option<&'t str>,
    /// The length of the whole.
    length: usize,
}

impl Shortcode<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// Replaces the shortcodes of a text. What is shown as code stays as it is.
pub(super) fn replace(text: &str, attachments: &dyn Attachments, targets: &dyn Targets) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['[', '<']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let skipped = if rest.starts_with('<') { code_length(rest).unwrap_or(1) } else { 0 };
        if skipped > 0 {
            out.push_str(&rest[..skipped]);
            rest = &rest[skipped..];
            continue;
        }
        if rest.starts_with("[[") {
            // Two brackets show a shortcode instead of running it.
            let end = rest.find("]]").filter(|end| !rest[..*end].contains('\n'));
            let shown = end.map_or(1, |end| end + 2);
            out.push_str(&escape_text(if shown > 2 { &rest[1..shown - 1] } else { "[" }));
            rest = &rest[shown..];
            continue;
        }
        match parse(rest) {
            Some(shortcode) => {
                match html(&shortcode, attachments, targets) {
                    Some(html) => out.push_str(&html),
                    None => out.push_str(&rest[..shortcode.length]),
                }
                rest = &rest[shortcode.length..];
            }
            None => {
                out.push('[');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns the length of an element with code at the beginning of a text.
fn code_length(text: &str) -> Option<usize> {
    let name = ["pre", "code", "script", "style"].into_iter().find(|name| {
        text.get(1..=name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
            && text.as_bytes().get(name.len() + 1).is_some_and(|byte| b" >\n\t".contains(byte))
    })?;
    let end = format!("</{name}>");
    text.find(&end).map(|at| at + end.len())
}

fn parse(text: &str) -> Option<Shortcode<'_>> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)))?;
    let name = &inner[..end];
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !inner[end..].starts_with([']', ' ', '\n', '/', '=', '\t', '\u{a0}']) {
        return None;
    }
    let (attributes, closed) = attributes(&inner[end..])?;
    let mut length = 1 + end + closed;
    let is_closed_at_once = text[..length].ends_with("/]");
    let closing = format!("[/{name}]");
    let content = (!is_closed_at_once).then(|| text[length..].find(&closing)).flatten().map(|at| {
        let content = &text[length..length + at];
        length += at + closing.len();
        content
    });
    Some(Shortcode { name, attributes, content, length })
}

/// Reads attributes up to the bracket. Returns them, and the length of the text with the bracket.
fn attributes(text: &str) -> Option<(Vec<(String, String)>, usize)> {
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        let rest = &text[at..];
        let c = rest.chars().next()?;
        if c == ']' {
            return Some((found, at + 1));
        }
        if c.is_whitespace() || c == '/' || c == '=' {
            at += c.len_utf8();
            continue;
        }
        if c == '[' || c == '<' || at > 4096 {
            return None;
        }
        let end = rest.find(|c: char| c.is_whitespace() || "=]".contains(c))?;
        let key = &rest[..end];
        at += end;
        let Some(value) = rest[end..].strip_prefix('=') else {
            found.push((String::new(), key.trim_matches(['"', '\'', '”', '“', '″']).to_owned()));
            continue;
        };
        at += 1;
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let value = match quote {
            Some(quote) => {
                let end = value[1..].find(quote)?;
                at += end + 2;
                &value[1..=end]
            }
            None => {
                let end = value.find(|c: char| c.is_whitespace() || c == ']')?;
                at += end;
                value[..end].trim_matches(['”', '“', '″'])
            }
        };
        found.push((key.to_ascii_lowercase(), value.to_owned()));
    }
}

fn html(shortcode: &Shortcode<'_>, attachments: &dyn Attachments, targets: &dyn Targets) -> Option<String> {
    let first = shortcode.attributes.iter().find(|(key, _)| key.is_empty()).map(|(_, value)| value.as_str());
    let content = shortcode.content.unwrap_or_default();
    match shortcode.name {
        "caption" | "wp_caption" => {
            let end = content.rfind("/>").map(|at| at + 2).or_else(|| content.rfind('>').map(|at| at + 1)).unwrap_or_default();
            // The link around the picture belongs to it; markup in the caption does not.
            let image = content.find("<img").and_then(|at| content[at..].find('>').map(|end| at + end + 1)).unwrap_or(end);
            let image = if content[image..].trim_start().starts_with("</a>") { image + content[image..].find("</a>")? + 4 } else { image };
            let caption =
                Some(content[image..].trim()).filter(|text| !text.is_empty()).or_else(|| shortcode.get("caption")).unwrap_or_default();
            Some(format!("\n\n<figure>{}<figcaption>{caption}</figcaption></figure>\n\n", content[..image].trim()))
        }
        "gallery" => {
            let ids = shortcode.get("ids").or_else(|| shortcode.get("include"));
            let ids: Vec<String> =
                ids.map_or_else(|| attachments.uploaded(), |ids| ids.split(',').map(|id| id.trim().to_owned()).collect());
            let mut pictures = String::new();
            for id in ids {
                match attachments.picture(&id) {
                    Some((url, alt, caption)) => {
                        let caption =
                            if caption.is_empty() { caption } else { format!("<figcaption>{}</figcaption>", escape_text(&caption)) };
                        pictures += &format!("<figure><img src=\"{}\" alt=\"{}\">{caption}</figure>", escape(&url), escape(&alt));
                    }
                    None => targets.note(format!("had a picture in a gallery that is not in the export: attachment {id}")),
                }
            }
            Some(format!("\n\n<figure class=\"wp-block-gallery\">{pictures}</figure>\n\n"))
        }
        "embed" => {
            let url = Some(content.trim()).filter(|url| !url.is_empty()).or_else(|| shortcode.get("src"))?;
            Some(embedded(url))
        }
        "youtube" | "vimeo" | "twitter" | "tweet" | "instagram" | "gist" | "soundcloud" => {
            let of_equals = shortcode.get("url").or_else(|| shortcode.get("id"));
            let value = first.or(of_equals).or_else(|| Some(content.trim()).filter(|text| !text.is_empty()))?;
            let url = match shortcode.name {
                _ if value.contains("://") => value.to_owned(),
                "youtube" => format!("https://www.youtube.com/watch?v={value}"),
                "vimeo" => format!("https://vimeo.com/{value}"),
                "twitter" | "tweet" => format!("https://twitter.com/i/status/{value}"),
                "gist" => format!("https://gist.github.com/{value}"),
                _ => return unknown(shortcode, targets),
            };
            Some(embedded(&url))
        }
        "audio" | "video" => {
            let keys = ["src", "mp3", "m4a", "ogg", "wav", "flac", "mp4", "m4v", "webm", "ogv"];
            let source = keys.iter().find_map(|key| shortcode.get(key)).or(first)?;
            let poster = shortcode.get("poster").map(|url| format!(" poster=\"{}\"", escape(url))).unwrap_or_default();
            let tag = shortcode.name;
            Some(format!("\n\n<figure><{tag} src=\"{}\"{poster}></{tag}></figure>\n\n", escape(source)))
        }
        "code" | "sourcecode" | "php" | "css" | "html" | "js" | "javascript" | "python" | "bash" | "sql" | "xml" | "java" | "ruby"
            if shortcode.content.is_some() =>
        {
            let given = shortcode.get("language").or_else(|| shortcode.get("lang"));
            let language = given.unwrap_or(if matches!(shortcode.name, "code" | "sourcecode") { "" } else { shortcode.name });
            let code = content.trim_matches('\n').replace('<', "&lt;").replace('>', "&gt;");
            Some(format!("\n\n<pre><code class=\"language-{}\">{code}</code></pre>\n\n", escape(language)))
        }
        _ => unknown(shortcode, targets),
    }
}

fn embedded(url: &str) -> String {
    format!("\n\n<figure class=\"wp-block-embed\"><div class=\"wp-block-embed__wrapper\">{}</div></figure>\n\n", escape_text(url))
}

/// Tells of a shortcode that stays. What may only be a word in brackets is not worth a note.
fn unknown(shortcode: &Shortcode<'_>, targets: &dyn Targets) -> Option<String> {
    let is_certain =
        shortcode.content.is_some() || shortcode.name.contains(['-', '_']) || shortcode.attributes.iter().any(|(key, _)| !key.is_empty());
    if is_certain {
        targets.note(format!("has the shortcode [{}] of a plugin, which stays in the text", shortened(shortcode.name)));
    }
    None
}
