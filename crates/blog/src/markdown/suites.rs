//! The examples of the CommonMark specification and of GitHub's, and where we differ on purpose.
//!
//! The specifications are under CC BY-SA 4.0 and are not part of this repository. Their examples come with the source of the parser, which
//! every build has.

use std::{collections::BTreeMap, path::PathBuf, process::Command, sync::Arc};

use super::{lines::Lines, survey::Survey, writer::Writer, *};
use crate::targets::{LinkTargets, Targets};

const AUTOLINK: &str = "an address without marks is a link (GitHub Flavored Markdown 6.9)";

/// The examples whose HTML differs, with the reason. What is only decoration ([`plain`]) is not a difference.
const DIFFERENCES: &[(&str, usize, &str)] = &[("spec", 608, AUTOLINK), ("spec", 611, AUTOLINK), ("spec", 612, AUTOLINK)];

/// Returns the examples in a file of the parser's tests: their numbers, Markdown and HTML.
fn examples(suite: &str) -> Vec<(usize, String, String)> {
    let path = parser_source().join("tests/suite").join(format!("{suite}.rs"));
    let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let raw = |text: &str, name: &str| {
        let (_, rest) = text.split_once(&format!("let {name} = r##\""))?;
        Some(rest.split_once("\"##;")?.0.to_owned())
    };
    let example = |(index, text): (usize, &str)| Some((index, raw(text, "original")?, raw(text, "expected")?));
    source.split("#[test]").enumerate().filter_map(example).collect()
}

/// Returns the folder of the parser's source, as cargo unpacked it.
fn parser_source() -> PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path", manifest])
        .output()
        .expect("cargo answers");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let parser = packages.iter().find(|package| package["name"] == "pulldown-cmark").expect("the parser");
    PathBuf::from(parser["manifest_path"].as_str().expect("a path")).parent().expect("a folder").to_owned()
}

/// Renders an example as a post, whatever its links lead to.
fn render_example(body: &str) -> String {
    let text = Text {
        file: Path::new("a.md"),
        folder: "",
        body,
        body_line: 1,
        language: "",
        words: Words::of("en"),
        title: Some("\u{1}"),
        has_math: true,
        has_toc: false,
        has_cover: false,
    };
    let targets = Targets::new(Arc::new(LinkTargets::default()));
    let survey = Survey::new(&text);
    Writer::new(&text, &survey, &targets, Lines::new(body, 1)).write().0
}

/// Takes away what a blog puts around the elements: anchors, frames, classes, attributes for browsers. White space between blocks, and how
/// quotation marks are written, mean nothing.
fn plain(html: &str) -> String {
    let mut html = html.replace("&quot;", "\"").replace("&#39;", "'").replace("&#x27;", "'").replace(" />", ">").replace("/>", ">");
    cut(&mut html, "<a class=\"anchor\"", "</a>");
    cut(&mut html, "<figcaption class=\"language\">", "</figcaption>");
    cut(&mut html, "<span class=\"", "\">");
    for part in [
        "</span>",
        "<figure class=\"code\">",
        "</pre></figure>",
        " tabindex=\"0\"",
        " fetchpriority=\"high\"",
        " loading=\"lazy\"",
        " decoding=\"async\"",
    ] {
        html = html.replace(part, if part == "</pre></figure>" { "</pre>" } else { "" });
    }
    for level in 1..=6 {
        cut_attribute(&mut html, &format!("<h{level} id=\""));
    }
    for (ours, theirs) in [
        ("<figure class=\"picture\">", "<p>"),
        ("</figcaption></figure>", "</figcaption></p>"),
        (" style=\"text-align: ", " align=\""),
        (" style=\"text-align:", " align=\""),
        ("<label>", ""),
        ("</label>", ""),
        ("<li class=\"task\">", "<li>"),
        ("<input type=\"checkbox\" disabled checked>", "<input checked=\"\" disabled=\"\" type=\"checkbox\">"),
        ("<input type=\"checkbox\" disabled>", "<input disabled=\"\" type=\"checkbox\">"),
        ("<input disabled=\"\" type=\"checkbox\" checked=\"\">", "<input checked=\"\" disabled=\"\" type=\"checkbox\">"),
    ] {
        html = html.replace(ours, theirs);
    }
    cut(&mut html, "<div class=\"table\"", ">");
    html = html.replace("</table></div>", "</table>").replace("<tbody>\n</tbody>", "").replace("<tbody></tbody>", "");
    // A caption is the title of its picture.
    while let Some((before, rest)) = html.split_once("<figcaption>") {
        let (caption, after) = rest.split_once("</figcaption>").expect("closed");
        let (img, end) = before.rsplit_once('>').expect("a picture");
        html = format!("{img} title=\"{caption}\">{end}{after}");
    }
    for name in [
        "p",
        "ul",
        "ol",
        "li",
        "blockquote",
        "pre",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "dl",
        "dt",
        "dd",
    ] {
        html = html.replace(&format!("\n<{name}>"), &format!("<{name}>")).replace(&format!("\n<{name} "), &format!("<{name} "));
        html = html.replace(&format!("\n</{name}>"), &format!("</{name}>")).replace(&format!("</{name}>\n"), &format!("</{name}>"));
        html = html.replace(&format!("<{name}>\n"), &format!("<{name}>"));
    }
    html = html
        .replace("<hr>\n", "<hr>")
        .replace("\n<hr>", "<hr>")
        .replace("disabled=\"\" type=\"checkbox\">\n", "disabled=\"\" type=\"checkbox\"> ");
    html.trim().to_owned()
}

/// Cuts out everything from `start` to the next `end`, both included.
fn cut(html: &mut String, start: &str, end: &str) {
    while let Some(at) = html.find(start) {
        let length = html[at..].find(end).expect("closed") + end.len();
        html.replace_range(at..at + length, "");
    }
}

/// Cuts out the attribute at the end of `start`, which begins an element.
fn cut_attribute(html: &mut String, start: &str) {
    let keep = start.rfind(' ').expect("an attribute");
    while let Some(at) = html.find(start) {
        let value = html[at + start.len()..].find('"').expect("closed") + 1;
        html.replace_range(at + keep..at + start.len() + value, "");
    }
}

/// Moves the headings of an example down by one where it has one of level 1: the title of the page stands above it.
fn below_title(html: &str) -> String {
    let mut html = html.to_owned();
    if html.contains("<h1") {
        for level in (1..=5).rev() {
            for mark in ["<h", "</h"] {
                html = html.replace(&format!("{mark}{level}"), &format!("{mark}{}", level + 1));
            }
        }
    }
    html
}

#[test]
fn the_examples_of_the_specifications_become_what_they_say() {
    let known: BTreeMap<(&str, usize), &str> = DIFFERENCES.iter().map(|&(suite, number, why)| ((suite, number), why)).collect();
    let (mut count, mut wrong) = (0, Vec::new());
    for (suite, least) in [("spec", 652), ("gfm_table", 8), ("gfm_strikethrough", 2), ("gfm_tasklist", 2)] {
        let examples = examples(suite);
        assert!(examples.len() >= least, "{suite}: {} examples", examples.len());
        count += examples.len();
        for (number, markdown, expected) in examples {
            let (ours, theirs) = (plain(&render_example(&markdown)), plain(&below_title(&expected)));
            let differs = ours != theirs;
            if differs != known.contains_key(&(suite, number)) {
                wrong.push(format!("{suite} {number}: {markdown:?}\n  expected {theirs:?}\n  became   {ours:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}
