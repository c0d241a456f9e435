//! The texts of Ghost's earlier editor (Mobiledoc), where an export has no HTML of them.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{
    html::{Targets as _, escape, escape_text},
    links::Links,
};

pub(super) fn html(value: &Value, links: &Links<'_>) -> String {
    let mut html = String::new();
    for section in list(value.get("sections")) {
        let number = section.get(0).and_then(Value::as_u64);
        match number {
            Some(1) => {
                let tag = tag(section.get(1), "p");
                let _ = write!(html, "<{tag}>{}</{tag}>", markers(value, section.get(2)));
            }
            Some(2) => {
                let _ = write!(html, "<img src=\"{}\" alt=\"\">", escape(section.get(1).and_then(Value::as_str).unwrap_or_default()));
            }
            Some(3) => {
                let tag = tag(section.get(1), "ul");
                let items = list(section.get(2)).iter().map(|item| format!("<li>{}</li>", markers(value, Some(item)))).collect::<String>();
                let _ = write!(html, "<{tag}>{items}</{tag}>");
            }
            Some(10) => {
                let card = section.get(1).and_then(Value::as_u64).and_then(|at| list(value.get("cards")).get(usize::try_from(at).ok()?));
                card.into_iter().for_each(|card| write_card(card, &mut html, links));
            }
            _ => {}
        }
    }
    html
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns a tag that a text may have.
fn tag(value: Option<&Value>, other: &'static str) -> String {
    const KNOWN: [&str; 20] = [
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "blockquote",
        "aside",
        "ul",
        "ol",
        "strong",
        "em",
        "a",
        "code",
        "s",
        "b",
        "i",
        "u",
        "sup",
    ];
    value
        .and_then(Value::as_str)
        .map(str::to_ascii_lowercase)
        .filter(|tag| KNOWN.contains(&tag.as_str()))
        .unwrap_or_else(|| other.to_owned())
}

fn markers(document: &Value, markers: Option<&Value>) -> String {
    let (mut html, mut open): (String, Vec<String>) = (String::new(), Vec::new());
    for marker in list(markers) {
        // What kind of text, which marks begin, how many end, and the text or the number of an atom.
        for at in list(marker.get(1)).iter().filter_map(Value::as_u64) {
            let markup = usize::try_from(at).ok().and_then(|at| list(document.get("markups")).get(at));
            let name = tag(markup.and_then(|markup| markup.get(0)), "span");
            let attributes = list(markup.and_then(|markup| markup.get(1)));
            let href = attributes
                .chunks(2)
                .find(|pair| pair.first().and_then(Value::as_str) == Some("href"))
                .and_then(|pair| pair.get(1)?.as_str());
            let href = href.map(|href| format!(" href=\"{}\"", escape(href))).unwrap_or_default();
            let _ = write!(html, "<{name}{href}>");
            open.push(name);
        }
        match marker.get(3) {
            Some(Value::String(text)) => html.push_str(&escape_text(text)),
            Some(Value::Number(_)) => html.push_str("<br>"),
            _ => {}
        }
        for _ in 0..marker.get(2).and_then(Value::as_u64).unwrap_or_default() {
            let Some(name) = open.pop() else { break };
            let _ = write!(html, "</{name}>");
        }
    }
    html
}

fn write_card(card: &Value, html: &mut String, links: &Links<'_>) {
    let (kind, payload) = (card.get(0).and_then(Value::as_str).unwrap_or_default(), card.get(1).unwrap_or(&Value::Null));
    let of = |key: &str| payload.get(key).and_then(Value::as_str).unwrap_or_default();
    let _ = match kind {
        "html" => write!(html, "<!--kg-card-begin: html-->{}<!--kg-card-end: html-->", of("html")),
        "image" => {
            write!(
                html,
                "<figure><img src=\"{}\" alt=\"{}\"><figcaption>{}</figcaption></figure>",
                escape(of("src")),
                escape(of("alt")),
                of("caption")
            )
        }
        "code" => write!(html, "<pre><code class=\"language-{}\">{}</code></pre>", escape(of("language")), escape_text(of("code"))),
        "hr" => write!(html, "<hr>"),
        "embed" | "bookmark" => write!(html, "<p><a href=\"{0}\">{0}</a></p>", escape(of("url"))),
        "markdown" | "card-markdown" => {
            links.note("has a Markdown card that Ghost had not rendered; it is shown as code".to_owned());
            write!(html, "<pre>{}</pre>", escape_text(of("markdown")))
        }
        other => {
            links.note(format!("had a card `{other}` that is not known, and is left out"));
            Ok(())
        }
    };
}
