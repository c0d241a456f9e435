//! The page that is shared, and its pictures.

use std::{fs, path::PathBuf, sync::LazyLock};

use load::{
    Results,
    output::{html, svg},
    record::ErrorClass,
    results::Limit,
};

use crate::samples::{self, Like};

/// Leaves a file where a person, or a browser, can look at it.
pub(crate) fn keep(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("output").join(name);
    fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn page(name: &str, results: &Results) -> String {
    let page = html(results);
    keep(&format!("{name}.html"), &page);
    for (picture, text) in svg(results) {
        keep(&format!("{name}/{picture}.svg"), &text);
    }
    page
}

static PAGES: LazyLock<Vec<(&str, Results)>> = LazyLock::new(|| {
    let mut late = samples::results(&Like { open: true, warm_up: 5, ..Like::default() });
    late.verdict.limit = Limit::Generator;
    late.verdict.at_least = true;
    late.verdict.hint = Some("Use more workers, or another machine.".to_owned());
    vec![
        ("closed", samples::results(&Like::default())),
        ("open", late),
        ("failing", samples::results(&Like { failing: 9, class: ErrorClass::Status, missing: 0, ..Like::default() })),
        ("refused", samples::results(&Like { failing: 1, class: ErrorClass::Refused, seconds: 5, ..Like::default() })),
        ("one", samples::results(&Like { seconds: 1, rate: 1, clients: 1, missing: 0, ..Like::default() })),
        ("nothing", samples::nothing()),
        ("hostile", samples::hostile()),
        ("hour", samples::results(&Like { seconds: 3600, rate: 40, failing: 31, ..Like::default() })),
    ]
});

/// Goes through the elements as a browser does, and fails where one is not closed.
pub(crate) fn elements(page: &str) -> Vec<String> {
    let without_doctype = page.replace("<!doctype html>", "").replace("tabindex=\"0\"", "");
    let mut closed = without_doctype;
    for void in ["meta", "link"] {
        let mut rest = closed.as_str();
        let mut out = String::new();
        while let Some(at) = rest.find(&format!("<{void} ")) {
            let end = at + rest[at..].find('>').expect("it ends");
            out += &rest[..end];
            out += "/>";
            rest = &rest[end + 1..];
        }
        closed = out + rest;
    }
    let mut reader = quick_xml::Reader::from_str(&closed);
    reader.config_mut().check_end_names = true;
    let mut names = Vec::new();
    let mut open = 0;
    loop {
        match reader.read_event().expect("well-formed") {
            quick_xml::events::Event::Start(element) => {
                open += 1;
                names.push(element.name().as_ref().to_owned());
            }
            quick_xml::events::Event::Empty(element) => names.push(element.name().as_ref().to_owned()),
            quick_xml::events::Event::End(_) => open -= 1,
            quick_xml::events::Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open, 0, "every element is closed");
    names
}

#[test]
fn a_page_is_whole_and_asks_for_nothing() {
    for (name, results) in PAGES.iter() {
        let page = page(name, results);
        let elements = elements(&page);
        for forbidden in ["script", "iframe", "object", "img", "foreignObject", "use", "image", "base", "form"] {
            assert!(!elements.iter().any(|element| element == forbidden), "{name} has <{forbidden}>");
        }
        // Whatever a browser would fetch. The addresses of what was asked are text.
        for fetching in ["src=", "@import", "url(", "srcset", "xlink:href"] {
            assert!(!without_text(&page).contains(fetching), "{name} has {fetching}");
        }
        assert_eq!(page.matches(" href=").count(), usize::from(page.contains("href=\"data:,\"")), "{name}");
        assert!(page.len() < 300_000, "{name} has {} bytes", page.len());
        assert!(!page.contains("NaN") && !page.contains(">inf"), "{name}");
    }
}

/// Returns the tags of a page without what stands between them.
fn without_text(page: &str) -> String {
    let tags = page.split('<').filter_map(|part| part.split_once('>')).map(|(tag, _)| tag);
    let style = page.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>")).expect("it has a style").0;
    tags.collect::<Vec<_>>().join("\n") + style
}

#[test]
fn the_first_thing_in_a_page_is_the_rate() {
    let page = html(&samples::results(&Like::default()));
    assert!(page.contains("<h1>2,000 requests a second</h1>"), "{}", &page[page.find("<h1").expect("a heading")..][..200]);
    let (_, late) = &PAGES[1];
    assert!(html(late).contains("<h1><small>at least</small>"));
    assert!(page.find("<h1>").expect("it is there") < page.find("class=\"verdict\"").expect("it is there"));
    assert!(page.find("class=\"verdict\"").expect("it is there") < page.find("<svg").expect("it is there"));
}

#[test]
fn every_picture_has_a_title_and_a_description_and_a_table_says_the_same() {
    let page = html(&samples::results(&Like { failing: 9, ..Like::default() }));
    let pictures = page.matches("<svg ").count();
    assert_eq!(pictures, 12, "six charts, each for two widths");
    assert_eq!(page.matches("<title id=").count(), pictures);
    assert_eq!(page.matches("<desc id=").count(), pictures);
    for part in [
        "role=\"img\"",
        "The charts as a table",
        "<caption>Latency</caption>",
        "<caption>Failures</caption>",
        "<caption>What the cache did</caption>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let mut ids: Vec<_> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "names are unique");
}

#[test]
fn a_picture_by_itself_needs_no_style_no_script_and_no_font_and_brings_its_background() {
    for (name, results) in PAGES.iter() {
        for (picture, text) in svg(results) {
            let document = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{name}/{picture}: {error}"));
            let root = document.root_element();
            assert_eq!(root.attribute("role"), Some("img"));
            assert!(root.attribute("width").is_some() && root.attribute("viewBox").is_some());
            for node in document.descendants().filter(roxmltree::Node::is_element) {
                let element = node.tag_name().name();
                assert!(["svg", "title", "desc", "rect", "text", "line", "path"].contains(&element), "{name}/{picture}: <{element}>");
                for attribute in node.attributes() {
                    assert!(!["class", "style", "id", "href"].contains(&attribute.name()), "{name}/{picture}: {}", attribute.name());
                    assert!(
                        !attribute.value().contains("var(") && !attribute.value().contains("NaN"),
                        "{name}/{picture}: {}",
                        attribute.value()
                    );
                }
            }
            let paper = document.descendants().find(|node| node.tag_name().name() == "rect").expect("a background");
            assert_eq!(paper.attribute("fill"), Some("#ffffff"));
        }
    }
}

/// A Ghost writes an uploaded picture anew by the rules of HTML, which has names for letters that XML has no names for.
#[test]
fn a_picture_is_well_formed_when_it_was_written_anew_as_html() {
    for (name, results) in PAGES.iter() {
        for (picture, text) in svg(results) {
            let as_html = text.replace('\u{a0}', "&nbsp;");
            roxmltree::Document::parse(&as_html).unwrap_or_else(|error| panic!("{name}/{picture}: {error}"));
        }
    }
}

#[test]
fn nothing_is_drawn_outside_of_a_picture() {
    for (name, results) in PAGES.iter() {
        for (picture, text) in svg(results) {
            let document = roxmltree::Document::parse(&text).expect("well-formed");
            let size =
                |attribute| document.root_element().attribute(attribute).and_then(|value| value.parse::<f64>().ok()).expect("a number");
            let (width, height) = (size("width"), size("height"));
            for node in document.descendants().filter(roxmltree::Node::is_element) {
                for (attribute, most) in [("x", width), ("x1", width), ("x2", width), ("y", height), ("y1", height), ("y2", height)] {
                    let Some(value) = node.attribute(attribute).and_then(|value| value.parse::<f64>().ok()) else { continue };
                    assert!((0.0..=most).contains(&value), "{name}/{picture}: {attribute}={value}");
                }
            }
        }
    }
}

#[test]
fn what_strangers_write_is_text_in_a_page() {
    let page = html(&samples::hostile());
    assert!(!page.contains("<img") && !page.contains("</script"), "it is escaped");
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"), "and still there to read");
    assert!(!page.contains('\u{1b}'));
}

#[test]
fn charts_that_would_show_nothing_are_left_out() {
    let names = |results: &Results| svg(results).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&samples::nothing()), Vec::<&str>::new());
    assert_eq!(names(&samples::results(&Like { missing: 0, ..Like::default() })), ["rate", "latency", "percentiles", "clients"]);
    assert_eq!(names(&PAGES[3].1), ["rate", "errors", "clients"], "nobody was answered");
}
