//! Finds in a page what a browser loads for it, without running its scripts.
//!
//! The browser is one of 1,280 by 800 pixels with one dot a pixel: of `srcset` it takes the picture that fits this width. Pictures with
//! `loading=lazy` are not loaded, for most of them are below what is seen first. Scripts run in a browser, so what is in `noscript` is not loaded;
//! what scripts would load is not known.

use html5gum::{StartTag, State, Token, Tokenizer};

use super::{FAVICON, Kind, REFERENCES_MAX, Reference, css};

/// The width of the window.
const WIDTH: f64 = 1280.0;
/// The height of the window.
const HEIGHT: f64 = 800.0;

/// Holds what a page refers to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PageReferences {
    /// The base of its references, if the page has another one than its URL.
    pub(crate) base: Option<String>,
    /// The URL that the page names as its own.
    pub(crate) canonical: Option<String>,
    /// The references that are loaded, in the page's order.
    pub(crate) references: Vec<Reference>,
}

/// Finds what a page refers to.
pub(crate) fn references(page: &[u8]) -> PageReferences {
    let mut finder = Finder::default();
    let mut tokenizer = Tokenizer::new(page);
    // The content of `script` is not markup, and that of `style` is a sheet.
    while let Some(Ok(token)) = tokenizer.next() {
        match token {
            Token::StartTag(tag) => {
                let state = match &**tag.name {
                    b"script" => Some(State::ScriptData),
                    b"style" | b"iframe" | b"noembed" | b"noframes" | b"noscript" | b"xmp" => Some(State::RawText),
                    b"textarea" | b"title" => Some(State::RcData),
                    _ => None,
                };
                finder.begin(&tag);
                if let Some(state) = state {
                    tokenizer.set_state(state);
                }
            }
            Token::EndTag(tag) => finder.end(&tag.name),
            Token::String(text) if finder.in_style => {
                finder.push_all(css::references(&String::from_utf8_lossy(&text)));
            }
            Token::String(_) | Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
        if finder.found.references.len() >= REFERENCES_MAX {
            break;
        }
    }
    let icon = finder.icon.unwrap_or_else(|| FAVICON.to_owned());
    finder.found.references.push(Reference { url: icon, kind: Kind::Image });
    finder.found
}

#[derive(Debug, Default)]
struct Finder {
    found: PageReferences,
    /// The first icon of the page.
    icon: Option<String>,
    in_style: bool,
    /// The depth in `template` elements, whose content is not shown.
    templates: u32,
    /// The source that was chosen in a `picture` element; the outer `None`: no such element is open.
    picture: Option<Option<String>>,
}

impl Finder {
    fn push(&mut self, url: String, kind: Kind) {
        let url = url.trim();
        if !url.is_empty() && self.found.references.len() < REFERENCES_MAX {
            self.found.references.push(Reference { url: url.to_owned(), kind });
        }
    }

    fn push_all(&mut self, references: Vec<Reference>) {
        for Reference { url, kind } in references {
            self.push(url, kind);
        }
    }

    fn begin(&mut self, tag: &StartTag<()>) {
        let get = |name: &str| tag.attributes.get(name.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned());
        let name = &**tag.name;
        if name == b"template" && !tag.self_closing {
            self.templates += 1;
        }
        if self.templates > 0 {
            return;
        }
        let is_lazy = get("loading").is_some_and(|loading| loading.eq_ignore_ascii_case("lazy"));
        match name {
            b"base" => self.found.base = self.found.base.take().or_else(|| get("href")),
            b"link" => {
                if let Some(href) = get("href") {
                    self.link(href, &get("rel").unwrap_or_default().to_ascii_lowercase(), get("as"), get("disabled").is_some());
                }
            }
            b"script" => {
                let kind = get("type").unwrap_or_default().to_ascii_lowercase();
                let runs = matches!(kind.trim(), "" | "module" | "text/javascript" | "application/javascript" | "application/ecmascript");
                if let Some(src) = get("src").filter(|_| runs && get("nomodule").is_none()) {
                    self.push(src, Kind::Script);
                }
            }
            b"style" => self.in_style = true,
            b"picture" => self.picture = Some(None),
            b"source" => {
                if let Some(None) = &self.picture
                    && let Some(srcset) = get("srcset")
                    && get("media").is_none_or(|media| matches(&media))
                    && get("type").is_none_or(|kind| is_shown(&kind))
                {
                    self.picture = Some(choose(&srcset, get("sizes").as_deref()));
                }
            }
            b"img" => {
                let chosen = self.picture.as_mut().and_then(Option::take);
                let from_set = || get("srcset").and_then(|srcset| choose(&srcset, get("sizes").as_deref()));
                if let Some(url) = chosen.or_else(from_set).or_else(|| get("src")).filter(|_| !is_lazy) {
                    self.push(url, Kind::Image);
                }
            }
            b"input" if get("type").is_some_and(|kind| kind.eq_ignore_ascii_case("image")) => {
                if let Some(src) = get("src") {
                    self.push(src, Kind::Image);
                }
            }
            b"video" => {
                if let Some(poster) = get("poster") {
                    self.push(poster, Kind::Image);
                }
            }
            b"iframe" => {
                if let Some(src) = get("src").filter(|src| !is_lazy && src != "about:blank") {
                    self.push(src, Kind::Other);
                }
            }
            _ => {}
        }
        if let Some(style) = get("style") {
            self.push_all(css::references(&style));
        }
    }

    fn link(&mut self, href: String, rel: &str, of: Option<String>, disabled: bool) {
        let has = |word: &str| rel.split_ascii_whitespace().any(|rel| rel == word);
        if has("canonical") {
            self.found.canonical.get_or_insert(href);
        } else if has("stylesheet") {
            if !has("alternate") && !disabled {
                self.push(href, Kind::Style);
            }
        } else if has("icon") {
            self.icon.get_or_insert(href);
        } else if has("modulepreload") {
            self.push(href, Kind::Script);
        } else if has("preload") {
            let kind = match of.unwrap_or_default().to_ascii_lowercase().as_str() {
                "style" => Kind::Style,
                "script" => Kind::Script,
                "font" => Kind::Font,
                "image" => Kind::Image,
                _ => Kind::Other,
            };
            self.push(href, kind);
        }
    }

    fn end(&mut self, name: &[u8]) {
        match name {
            b"template" => self.templates = self.templates.saturating_sub(1),
            b"style" => self.in_style = false,
            b"picture" => self.picture = None,
            _ => {}
        }
    }
}

fn is_shown(kind: &str) -> bool {
    let kind = kind.trim().to_ascii_lowercase();
    matches!(kind.as_str(), "" | "image/avif" | "image/webp" | "image/jpeg" | "image/png" | "image/gif" | "image/svg+xml")
}

/// Returns whether a media query fits the window, as far as widths go. What else it asks for is taken to be so, except print.
fn matches(media: &str) -> bool {
    media.split(',').any(|query| {
        let query = query.trim().to_ascii_lowercase();
        !query.starts_with("print")
            && query.split("and").all(|part| {
                let part = part.trim().trim_start_matches('(').trim_end_matches(')');
                let Some((feature, value)) = part.split_once(':') else { return true };
                let Some(pixels) = pixels(value.trim()) else { return true };
                match feature.trim() {
                    "min-width" => WIDTH >= pixels,
                    "max-width" => WIDTH <= pixels,
                    "min-height" => HEIGHT >= pixels,
                    "max-height" => HEIGHT <= pixels,
                    _ => true,
                }
            })
    })
}

fn pixels(length: &str) -> Option<f64> {
    let unit = length.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = length[..unit].trim().parse().ok()?;
    match &length[unit..] {
        "px" => Some(number),
        "em" | "rem" => Some(number * 16.0),
        "vw" => Some(number * WIDTH / 100.0),
        _ => None,
    }
}

/// Returns the picture of `srcset` that fits: of those with a width, the smallest that is as wide as the place; of those with a density, the smallest of at
/// least 1.
fn choose(srcset: &str, sizes: Option<&str>) -> Option<String> {
    let place = sizes.map_or(WIDTH, place);
    let mut best: Option<(f64, &str)> = None;
    let mut rest = srcset;
    // A URL may have commas in it, but does not end with one (HTML, "parse a srcset attribute").
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t', '\n', '\r', '\u{c}']);
        if rest.is_empty() {
            break;
        }
        let end = rest.find([' ', '\t', '\n', '\r', '\u{c}']).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        let (descriptor, after) = if url.ends_with(',') { ("", after) } else { after.split_once(',').unwrap_or((after, "")) };
        rest = after;
        let descriptor = descriptor.trim();
        let number = |suffix: char| descriptor.strip_suffix(suffix).and_then(|number| number.trim().parse::<f64>().ok());
        let density =
            if descriptor.is_empty() { 1.0 } else { number('w').map(|width| width / place).or_else(|| number('x')).unwrap_or(f64::NAN) };
        if !density.is_finite() {
            continue;
        }
        let better =
            best.is_none_or(|(other, _)| if density >= 1.0 { other < 1.0 || density < other } else { other < 1.0 && density > other });
        if better {
            best = Some((density, url.trim_end_matches(',')));
        }
    }
    best.map(|(_, url)| url.to_owned()).filter(|url| !url.is_empty())
}

/// Returns the width of the place of a picture, as `sizes` says.
fn place(sizes: &str) -> f64 {
    for size in sizes.split(',') {
        let size = size.trim();
        let (media, length) = size.rsplit_once(char::is_whitespace).map_or(("", size), |(media, length)| (media.trim(), length));
        if media.is_empty() || matches(media) {
            return pixels(&length.to_ascii_lowercase()).filter(|place| *place >= 1.0).unwrap_or(WIDTH);
        }
    }
    WIDTH
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn find(page: &str) -> String {
        let found = references(page.as_bytes());
        let all = found.references.iter().filter(|found| found.url != "/favicon.ico");
        all.map(|found| format!("{:?} {}", found.kind, found.url)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_a_browser_loads_is_found() {
        for (page, expected) in [
            ("<link rel=stylesheet href=a.css><link rel='alternate stylesheet' href=b.css>", "Style a.css"),
            ("<link rel=preload as=font href=f.woff2 crossorigin><link rel=modulepreload href=m.js>", "Font f.woff2, Script m.js"),
            ("<link rel=next href=/2><link rel=canonical href=https://b.example/><a href=/x>", ""),
            (
                "<script src=a.js></script><script type=module src=m.js></script><script nomodule src=n.js></script>",
                "Script a.js, Script m.js",
            ),
            ("<script type=text/template src=t></script><script>'<img src=no.png>'</script>", ""),
            ("<img src=a.png><img src=b.png loading=lazy><img src='  '>", "Image a.png"),
            ("<noscript><img src=no.png></noscript><template><img src=no.png></template><img src=a.png>", "Image a.png"),
            ("<!-- <img src=no.png> --><textarea><img src=no.png></textarea><title><img src=no.png></title>", ""),
            ("<video poster=p.jpg src=v.mp4></video>", "Image p.jpg"),
            ("<div style=\"background:url('d.png')\"></div><style>@import 'i.css';</style>", "Image d.png, Style i.css"),
            ("<iframe src=/embed></iframe><iframe src=/far loading=lazy></iframe>", "Other /embed"),
            ("<img src=a&amp;b.png>", "Image a&b.png"),
        ] {
            assert_eq!(find(page), expected, "{page}");
        }
    }

    #[test]
    fn one_picture_of_several_is_loaded() {
        for (page, expected) in [
            ("<img src=s.png srcset='a.png 600w, b.png 1200w, c.png 2000w'>", "Image c.png"),
            ("<img srcset='a.png 600w, b.png 1200w, c.png 2000w' sizes='(max-width: 600px) 100vw, 720px'>", "Image b.png"),
            ("<img srcset='a.png 600w, b.png 1200w' sizes='(min-width: 1200px) 50vw, 100vw'>", "Image b.png"),
            ("<img srcset='a.png 600w, b.png 1000w'>", "Image b.png"),
            ("<img src=s.png srcset='a.png, b.png 2x'>", "Image a.png"),
            ("<img srcset='a,b.png 1x, c.png 2x'>", "Image a,b.png"),
            (
                "<picture><source type=image/jxl srcset=a.jxl><source type=image/avif srcset=a.avif><img src=a.jpg></picture><img src=b.jpg>",
                "Image a.avif, Image b.jpg",
            ),
            ("<picture><source media='(max-width: 600px)' srcset=small.png><img src=a.jpg></picture>", "Image a.jpg"),
            ("<picture><source srcset=a.png><img src=a.jpg loading=lazy></picture>", ""),
        ] {
            assert_eq!(find(page), expected, "{page}");
        }
    }

    #[test]
    fn a_page_has_one_icon_a_base_and_a_name_of_its_own() {
        let found = references(
            b"<base href=/b/><link rel='shortcut icon' href=i.ico><link rel=icon href=j.png><link rel=canonical href=https://b.example/p>",
        );
        assert_eq!(found.references, [Reference { url: "i.ico".to_owned(), kind: Kind::Image }]);
        assert_eq!((found.base.as_deref(), found.canonical.as_deref()), (Some("/b/"), Some("https://b.example/p")));
        assert_eq!(references(b"").references, [Reference { url: "/favicon.ico".to_owned(), kind: Kind::Image }]);
    }

    proptest! {
        #[test]
        fn no_page_makes_the_finder_panic(page in "(<img |<source |<picture>|</picture>|<link |<style>|</style>|<script>|srcset=|sizes=|src=|href=|style=|rel=stylesheet|url\\(|['\"<>,é0-9wx() ]|\n){0,40}") {
            prop_assert!(references(page.as_bytes()).references.len() <= REFERENCES_MAX + 1);
        }
    }
}
