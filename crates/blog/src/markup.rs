//! HTML as a finished text: its links made absolute, its words, its pictures.

use html5gum::{DefaultEmitter, HtmlString, StartTag, State, Token, Tokenizer};

use crate::{
    feed::{BASE, push_escaped_with_base},
    slug::encode_path,
};

/// Makes every link of `html` absolute, as feeds need it: `href`, `src`, `srcset`, `poster`, `cite` and `data`, in Markdown and in HTML of
/// the author's own. A relative link is resolved against `path`, the address of the text. Scripts are left out, as readers of feeds run none.
pub(crate) fn absolute(html: &str, path: &str) -> String {
    let mut out = String::with_capacity(html.len() + html.len() / 8);
    let mut copied = 0;
    let mut script_start = None;
    for token in tokens(html) {
        match token {
            Token::StartTag(tag) if *tag.name == b"script"[..] => script_start = script_start.or(Some(tag.span.start)),
            Token::EndTag(tag) if *tag.name == b"script"[..] => {
                if let Some(start) = script_start.take() {
                    out.push_str(html.get(copied..start).unwrap_or_default());
                    copied = tag.span.end;
                }
            }
            Token::StartTag(tag) if script_start.is_none() => {
                let Some(changed) = absolute_tag(&tag, path) else { continue };
                out.push_str(html.get(copied..tag.span.start).unwrap_or_default());
                out.push_str(&changed);
                copied = tag.span.end;
            }
            _ => {}
        }
    }
    let end = script_start.unwrap_or(html.len());
    out.push_str(html.get(copied..end).unwrap_or_default());
    out
}

/// Returns the words of `html`, with a space between the elements that stand apart.
pub(crate) fn text(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut hidden = 0_usize;
    for token in tokens(html) {
        match token {
            Token::StartTag(tag) if is_hidden(&tag.name) && !tag.self_closing => hidden += 1,
            Token::EndTag(tag) if is_hidden(&tag.name) => hidden = hidden.saturating_sub(1),
            Token::StartTag(tag) if !is_inline(&tag.name) => out.push(' '),
            Token::EndTag(tag) if !is_inline(&tag.name) => out.push(' '),
            Token::String(text) if hidden == 0 => out.push_str(&String::from_utf8_lossy(&text)),
            _ => {}
        }
    }
    out
}

/// Returns the addresses of the pictures in `html`, in order, each once: those of this site begin with [`BASE`].
pub(crate) fn pictures(html: &str, path: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if !html.contains("<img") {
        return found;
    }
    for token in tokens(html) {
        let Token::StartTag(tag) = token else { continue };
        let Some(src) = tag.attributes.get(&HtmlString(b"src".to_vec())).filter(|_| *tag.name == b"img"[..]) else { continue };
        let src = resolve(&String::from_utf8_lossy(src), path);
        if !src.starts_with("data:") && !found.contains(&src) {
            found.push(src);
        }
    }
    found
}

/// Resolves `url` against the address `path` of this site (RFC 3986 §5.2). The result begins with [`BASE`] unless it leads elsewhere.
pub(crate) fn resolve(url: &str, path: &str) -> String {
    let url = url.trim_matches([' ', '\t', '\n', '\r', '\u{c}']);
    let is_scheme =
        |s: &str| s.starts_with(|c: char| c.is_ascii_alphabetic()) && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    if url.starts_with(BASE) || url.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)) {
        return url.to_owned();
    }
    if url.starts_with("//") {
        return format!("https:{url}");
    }
    let path = encode_path(path);
    if url.is_empty() || url.starts_with(['#', '?']) {
        return format!("{BASE}{path}{url}");
    }
    let (target, suffix) = url.split_at(url.find(['#', '?']).unwrap_or(url.len()));
    let folder = if target.starts_with('/') { "" } else { path.rsplit_once('/').map_or("", |(folder, _)| folder) };
    let mut names: Vec<&str> = folder.split('/').skip(1).collect();
    let mut segments = target.trim_start_matches('/').split('/').peekable();
    while let Some(name) = segments.next() {
        let is_last = segments.peek().is_none();
        match name {
            "." | ".." => {
                if name == ".." {
                    names.pop();
                }
                if is_last {
                    names.push("");
                }
            }
            name => names.push(name),
        }
    }
    format!("{BASE}/{}{suffix}", names.join("/"))
}

fn tokens(html: &str) -> impl Iterator<Item = Token<usize>> + '_ {
    let mut tokenizer = Tokenizer::new_with_emitter(html, DefaultEmitter::<usize>::new_with_span());
    std::iter::from_fn(move || {
        let Some(Ok(token)) = tokenizer.next() else { return None };
        if let Token::StartTag(tag) = &token {
            let state = match &**tag.name {
                b"script" => Some(State::ScriptData),
                b"style" | b"iframe" | b"noembed" | b"noframes" | b"xmp" => Some(State::RawText),
                b"textarea" | b"title" => Some(State::RcData),
                _ => None,
            };
            if let Some(state) = state {
                tokenizer.set_state(state);
            }
        }
        Some(token)
    })
}

fn absolute_tag(tag: &StartTag<usize>, path: &str) -> Option<String> {
    let absolute = |name: &[u8], value: &str| match name {
        b"href" | b"src" | b"poster" | b"cite" | b"data" => Some(resolve(value, path)),
        b"srcset" | b"imagesrcset" => Some(srcset(value, path)),
        _ => None,
    };
    let attributes: Vec<_> = tag.attributes.iter().map(|(name, value)| (name, String::from_utf8_lossy(value))).collect();
    let changed: Vec<_> = attributes.iter().map(|(name, value)| absolute(name, value).filter(|new| new != value)).collect();
    if changed.iter().all(Option::is_none) {
        return None;
    }
    let mut out = format!("<{}", String::from_utf8_lossy(&tag.name));
    for ((name, value), changed) in attributes.iter().zip(&changed) {
        out.push_str(&format!(" {}=\"", String::from_utf8_lossy(name)));
        push_escaped_with_base(&mut out, changed.as_deref().unwrap_or(value));
        out.push('"');
    }
    out.push_str(if tag.self_closing { "/>" } else { ">" });
    Some(out)
}

/// Makes the addresses of a `srcset` absolute (HTML, "Srcset attributes"): an address ends at white space, or at the comma that follows it.
fn srcset(value: &str, path: &str) -> String {
    let mut candidates = Vec::new();
    let mut rest = value.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}', ',']);
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        let bare = url.trim_end_matches(',');
        // A comma right behind the address ends the candidate; otherwise a descriptor follows, up to the next comma.
        let (descriptor, after) = if bare.len() < url.len() { ("", after) } else { after.split_at(after.find(',').unwrap_or(after.len())) };
        candidates.push(format!("{} {}", resolve(bare, path), descriptor.trim()).trim_end().to_owned());
        rest = after.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}', ',']);
    }
    candidates.join(", ")
}

fn is_hidden(name: &[u8]) -> bool {
    matches!(name, b"script" | b"style" | b"template" | b"math" | b"svg")
}

fn is_inline(name: &[u8]) -> bool {
    matches!(
        name,
        b"a" | b"abbr"
            | b"b"
            | b"bdi"
            | b"bdo"
            | b"cite"
            | b"code"
            | b"del"
            | b"dfn"
            | b"em"
            | b"i"
            | b"ins"
            | b"kbd"
            | b"mark"
            | b"q"
            | b"s"
            | b"small"
            | b"span"
            | b"strong"
            | b"sub"
            | b"sup"
            | b"u"
            | b"var"
            | b"wbr"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3986 §5.4.1, moved to this site: base `http://a/b/c/d;p`.
    #[test]
    fn references_resolve_as_in_rfc_3986() {
        let cases = [
            ("g:h", "g:h"),
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("#s", "/b/c/d;p#s"),
            ("g#s", "/b/c/g#s"),
            ("g?y#s", "/b/c/g?y#s"),
            (";x", "/b/c/;x"),
            ("g;x?y#s", "/b/c/g;x?y#s"),
            ("", "/b/c/d;p"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../", "/"),
            ("../../g", "/g"),
            ("../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            ("..g", "/b/c/..g"),
        ];
        for (reference, expected) in cases {
            let expected = if expected.starts_with('/') { format!("{BASE}{expected}") } else { expected.to_owned() };
            assert_eq!(resolve(reference, "/b/c/d;p"), expected, "{reference}");
        }
        assert_eq!(resolve("//g/x", "/a/"), "https://g/x");
    }

    #[test]
    fn links_of_all_kinds_become_absolute_and_the_rest_stays_as_it_was() {
        let b = |text: &str| text.replace('§', BASE);
        let cases = [
            ("<p>Zürich <a href=\"/b/\">x</a> &amp; <b class=x>y</b>", "<p>Zürich <a href=\"§/b/\">x</a> &amp; <b class=x>y</b>"),
            ("<img src=cat.png alt='a \"b\"'>", "<img alt=\"a &quot;b&quot;\" src=\"§/a/cat.png\">"),
            ("<IMG SRC='../cat.png'/>", "<img src=\"§/cat.png\"/>"),
            (
                "<img srcset=\"/a-1.webp 1x, b.webp 2x,https://x.test/c,d.webp 3x\">",
                "<img srcset=\"§/a-1.webp 1x, §/a/b.webp 2x, https://x.test/c,d.webp 3x\">",
            ),
            (
                "<video poster=p.jpg src=\"v.mp4?a=1&amp;b=2\"></video>",
                "<video poster=\"§/a/p.jpg\" src=\"§/a/v.mp4?a=1&amp;b=2\"></video>",
            ),
            ("<a href=\"#fn-1\">1</a>", "<a href=\"§/a/#fn-1\">1</a>"),
            ("<a href=\"§/b/\">x</a><a href=\"mailto:a@x.test\">y</a>", "<a href=\"§/b/\">x</a><a href=\"mailto:a@x.test\">y</a>"),
            ("a<script>x = '<a href=\"b\">'</script>b<script src=\"x.js\"></script>", "ab"),
            ("a\r\n<a href=b>c</a>\r\nd", "a\r\n<a href=\"§/a/b\">c</a>\r\nd"),
            ("<!-- <a href=\"b\"> --><textarea><a href=b></textarea>", "<!-- <a href=\"b\"> --><textarea><a href=b></textarea>"),
            ("1 < 2 <a href=", "1 < 2 <a href="),
        ];
        for (html, expected) in cases {
            assert_eq!(absolute(&b(html), "/a/"), b(expected), "{html}");
        }
    }

    #[test]
    fn words_of_different_elements_stay_apart() {
        let words = |html: &str| text(html).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words("<h2>A</h2><p>b<em>c</em> &amp; d</p><script>e</script><ul><li>f</li><li>g</li></ul>"), "A bc & d f g");
    }

    #[test]
    fn pictures_are_named_once() {
        let html =
            "<img src=\"/a.png\"><p><img src='b.png'><img src=\"/a.png\"><img src=\"data:image/png;base64,AA\"><a href=\"/c.png\">c</a>";
        assert_eq!(pictures(html, "/x/"), [format!("{BASE}/a.png"), format!("{BASE}/x/b.png")]);
    }
}
