//! The texts of Ghost's editor (Lexical), where an export has no HTML of them: HTML as Ghost would make it, with its classes.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{
    html::{Targets as _, escape, escape_text},
    links::Links,
};

/// Bits of a text's format.
const FORMATS: [(i64, &str); 7] = [(1, "strong"), (2, "em"), (4, "s"), (8, "u"), (16, "code"), (32, "sub"), (64, "sup")];

pub(super) fn html(value: &Value, links: &Links<'_>) -> String {
    let mut html = String::new();
    if let Some(root) = value.get("root") {
        children(root, &mut html, links);
    }
    html
}

fn children(node: &Value, html: &mut String, links: &Links<'_>) {
    for child in node.get("children").and_then(Value::as_array).into_iter().flatten() {
        write(child, html, links);
    }
}

fn within(tag: &str, node: &Value, html: &mut String, links: &Links<'_>) {
    let _ = write!(html, "<{tag}>");
    children(node, html, links);
    let _ = write!(html, "</{}>", tag.split(' ').next().unwrap_or(tag));
}

/// Returns a text of the node.
fn of<'n>(node: &'n Value, key: &str) -> &'n str {
    node.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn write(node: &Value, html: &mut String, links: &Links<'_>) {
    // Writing to a String cannot fail.
    let caption = match of(node, "caption") {
        "" => String::new(),
        caption => format!("<figcaption>{caption}</figcaption>"),
    };
    let src = escape(of(node, "src"));
    match of(node, "type") {
        "paragraph" => within("p", node, html, links),
        "heading" | "extended-heading" => {
            let tag = Some(of(node, "tag")).filter(|tag| matches!(*tag, "h1" | "h2" | "h3" | "h4" | "h5" | "h6")).unwrap_or("h2");
            within(tag, node, html, links);
        }
        "list" => within(if of(node, "listType") == "number" { "ol" } else { "ul" }, node, html, links),
        "listitem" => within("li", node, html, links),
        "quote" | "extended-quote" => within("blockquote", node, html, links),
        "aside" => within("blockquote class=\"kg-blockquote-alt\"", node, html, links),
        "link" | "autolink" => {
            let _ = write!(html, "<a href=\"{}\">", escape(of(node, "url")));
            children(node, html, links);
            html.push_str("</a>");
        }
        "text" | "extended-text" | "tk" => {
            let format = node.get("format").and_then(Value::as_i64).unwrap_or_default();
            let tags: Vec<&str> = FORMATS.iter().filter(|(bit, _)| format & bit != 0).map(|(_, tag)| *tag).collect();
            let open = tags.iter().map(|tag| format!("<{tag}>")).collect::<String>();
            let close = tags.iter().rev().map(|tag| format!("</{tag}>")).collect::<String>();
            let _ = write!(html, "{open}{}{close}", escape_text(of(node, "text")));
        }
        "linebreak" => html.push_str("<br>"),
        "tab" => html.push(' '),
        "horizontalrule" => html.push_str("<hr>"),
        "image" => {
            let image = format!("<img src=\"{src}\" alt=\"{}\">", escape(of(node, "alt")));
            let image = match of(node, "href") {
                "" => image,
                href => format!("<a href=\"{}\">{image}</a>", escape(href)),
            };
            let _ = write!(html, "<figure class=\"kg-card kg-image-card\">{image}{caption}</figure>");
        }
        "gallery" => {
            html.push_str("<figure class=\"kg-card kg-gallery-card\">");
            for image in node.get("images").and_then(Value::as_array).into_iter().flatten() {
                let _ = write!(html, "<img src=\"{}\" alt=\"{}\">", escape(of(image, "src")), escape(of(image, "alt")));
            }
            let _ = write!(html, "{caption}</figure>");
        }
        "codeblock" => {
            let code = escape_text(of(node, "code"));
            let language = escape(of(node, "language"));
            let _ = write!(
                html,
                "<figure class=\"kg-card kg-code-card\"><pre><code class=\"language-{language}\">{code}</code></pre>{caption}</figure>"
            );
        }
        "html" => {
            let _ = write!(html, "<!--kg-card-begin: html-->{}<!--kg-card-end: html-->", of(node, "html"));
        }
        // Markdown stands for itself; as HTML it would lose nothing but its looks in the editor.
        "markdown" => {
            let _ = write!(html, "<pre>{}</pre>", escape_text(of(node, "markdown")));
            links.note("has a Markdown card that Ghost had not rendered; it is shown as code".to_owned());
        }
        "embed" => {
            let inner = of(node, "html");
            let inner = if inner.contains('<') { inner.to_owned() } else { format!("<a href=\"{0}\">{0}</a>", escape(of(node, "url"))) };
            let _ = write!(html, "<figure class=\"kg-card kg-embed-card\">{inner}{caption}</figure>");
        }
        "bookmark" => {
            let about = node.get("metadata").unwrap_or(&Value::Null);
            let _ = write!(html, "<figure class=\"kg-card kg-bookmark-card\"><a href=\"{}\">", escape(of(node, "url")));
            for key in ["title", "description", "author", "publisher"] {
                if !of(about, key).is_empty() {
                    let _ = write!(html, "<div class=\"kg-bookmark-{key}\">{}</div>", escape_text(of(about, key)));
                }
            }
            let _ = write!(html, "</a>{caption}</figure>");
        }
        "callout" => {
            let colour = escape(of(node, "backgroundColor"));
            let (emoji, text) = (escape_text(of(node, "calloutEmoji")), of(node, "calloutText"));
            let _ = write!(
                html,
                "<div class=\"kg-card kg-callout-card kg-callout-card-{colour}\"><div class=\"kg-callout-emoji\">{emoji}</div>"
            );
            let _ = write!(html, "<div class=\"kg-callout-text\">{text}</div></div>");
        }
        "toggle" => {
            let (heading, content) = (of(node, "heading"), of(node, "content"));
            let _ = write!(html, "<div class=\"kg-card kg-toggle-card\"><h4 class=\"kg-toggle-heading-text\">{heading}</h4>");
            let _ = write!(html, "<div class=\"kg-toggle-content\">{content}</div></div>");
        }
        "button" => {
            let (url, text) = (escape(of(node, "buttonUrl")), escape_text(of(node, "buttonText")));
            let _ = write!(html, "<div class=\"kg-card kg-button-card\"><a href=\"{url}\">{text}</a></div>");
        }
        "video" => {
            let poster = [of(node, "customThumbnailSrc"), of(node, "thumbnailSrc")]
                .into_iter()
                .find(|url| !url.is_empty())
                .map(escape)
                .unwrap_or_default();
            let _ =
                write!(html, "<figure class=\"kg-card kg-video-card\"><video src=\"{src}\" poster=\"{poster}\"></video>{caption}</figure>");
        }
        "audio" => {
            let title = escape_text(of(node, "title"));
            let _ = write!(
                html,
                "<div class=\"kg-card kg-audio-card\"><audio src=\"{src}\"></audio><div class=\"kg-audio-title\">{title}</div></div>"
            );
        }
        "file" => {
            let part = |class: &str, text: &str| format!("<div class=\"kg-file-card-{class}\">{}</div>", escape_text(text));
            let title =
                part("title", of(node, "fileTitle")) + &part("caption", of(node, "fileCaption")) + &part("filename", of(node, "fileName"));
            let _ = write!(html, "<div class=\"kg-card kg-file-card\"><a href=\"{src}\">{title}</a></div>");
        }
        "product" => {
            let _ = write!(html, "<div class=\"kg-card kg-product-card\">");
            if !of(node, "productImageSrc").is_empty() {
                let _ = write!(html, "<img src=\"{}\" alt=\"\">", escape(of(node, "productImageSrc")));
            }
            let (title, about) = (of(node, "productTitle"), of(node, "productDescription"));
            let _ =
                write!(html, "<h4 class=\"kg-product-card-title\">{title}</h4><div class=\"kg-product-card-description\">{about}</div>");
            if !of(node, "productUrl").is_empty() {
                let (url, text) = (escape(of(node, "productUrl")), escape_text(of(node, "productButton")));
                let _ = write!(html, "<a class=\"kg-product-card-button\" href=\"{url}\">{text}</a>");
            }
            html.push_str("</div>");
        }
        "header" => {
            let _ = write!(html, "<h2>{}</h2><p>{}</p>", of(node, "header"), of(node, "subheader"));
        }
        "zwnj" | "at-link-search" => {}
        "paywall" | "email" | "email-cta" | "signup" | "call-to-action" | "transistor" => {
            links.note(format!("had a card `{}`, which is left out", of(node, "type")));
        }
        other => {
            if node.get("children").is_some() {
                children(node, html, links);
            } else {
                links.note(format!("had a card `{other}` that is not known, and is left out"));
            }
        }
    }
}
