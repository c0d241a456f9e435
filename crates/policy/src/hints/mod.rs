//! What a page will need first, read off the page: the links of Early Hints (RFC 8297).
//!
//! From its `Link` fields and from its head: style sheets and scripts that hold up the first picture, what the page itself preloads, and hosts
//! that it says to connect to. Browsers take `preload`, `modulepreload` and `preconnect` from a 103 and nothing else, so nothing else is hinted.
//! A hint that the page would not use is a wasted download, so whatever is uncertain is left out: sheets for other media, candidates of
//! `srcset`, whatever has an `integrity` (a preload without it is fetched twice), a page whose `base` changes what its addresses mean.
//!
//! Absent: who may be told. See [`EarlyHints`] and the pipeline.

mod head;

use std::{borrow::Cow, fmt};

use http::{HeaderMap, HeaderValue, Method, Version, header::RANGE};
use semantics::{
    link::{Link, links},
    reference::resolve,
    target::valid_authority,
};

use head::{Head, Name, Tag};

/// The bytes of a page that are searched for its head.
const HINTS_PAGE_BYTES_MAX: usize = 64 << 10;
/// The most hints that are kept of one page; browsers have a limit, too.
pub const HINTS_MAX: usize = 16;
/// The most bytes of the hints of one page; browsers have a limit, too.
pub const HINTS_BYTES_MAX: usize = 3 << 10;
/// The most bytes of one address.
const ADDRESS_BYTES_MAX: usize = 1 << 10;

/// The clients that hints are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EarlyHints {
    /// No client.
    Off,
    /// Browsers that open a page over HTTP/2 or 3.
    #[default]
    On,
    /// Browsers that open a page over any version, including HTTP/1.1. Software in between may take the first response that it sees for the
    /// answer.
    Http1,
}

impl EarlyHints {
    /// Returns whether the client of a request uses hints: it is a browser that opens a page in a tab, and waits for it. Browsers ignore
    /// them everywhere else. A page that is fetched before it is asked for (`Sec-Purpose`) need not hurry.
    #[must_use]
    pub fn are_for(self, method: &Method, version: Version, request: &HeaderMap) -> bool {
        let spoken = match self {
            Self::Off => false,
            Self::On => version >= Version::HTTP_2,
            Self::Http1 => version >= Version::HTTP_11,
        };
        let says = |name: &str, value: &str| request.get(name).is_some_and(|said| said.as_bytes() == value.as_bytes());
        spoken
            && *method == Method::GET
            && says("sec-fetch-mode", "navigate")
            && says("sec-fetch-dest", "document")
            && !request.contains_key("sec-purpose")
            && !request.contains_key(RANGE)
    }
}

/// One link of a hint, as written in `Link`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    address: String,
    relation: &'static str,
    parameters: String,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>; rel={}{}", self.address, self.relation, self.parameters)
    }
}

impl Hint {
    /// Returns the bytes on the wire, with the separator from the next.
    fn len(&self) -> usize {
        self.address.len() + self.relation.len() + self.parameters.len() + "<>; rel=, ".len()
    }
}

/// Returns the hints of a page under `target` (path and query) of `authority`, with these values of `Link` and this content. Content can be read only
/// without a coding; otherwise the fields alone count.
#[must_use]
pub fn hints<'a>(authority: &str, target: &str, fields: impl IntoIterator<Item = &'a [u8]>, content: &[u8]) -> Vec<Hint> {
    let mut found = HintCollection { base: (authority, target), hints: Vec::new(), bytes: 0 };
    for link in fields.into_iter().flat_map(links) {
        found.add(of_link(&link));
    }
    let content = &content[..content.len().min(HINTS_PAGE_BYTES_MAX)];
    let of_fields = found.hints.len();
    for tag in Head::of(content) {
        if tag.name == Name::Base && tag.has("href") {
            found.hints.truncate(of_fields);
            break;
        }
        if found.hints.len() < HINTS_MAX {
            found.add(of_tag(&tag));
        }
    }
    found.hints
}

/// Returns a `Link` field with these hints; `None` if there are none.
#[must_use]
pub fn link_field(hints: &[Hint]) -> Option<HeaderValue> {
    if hints.is_empty() {
        return None;
    }
    let text: Vec<String> = hints.iter().map(Hint::to_string).collect();
    HeaderValue::from_str(&text.join(", ")).ok()
}

/// A collection of hints, each once, within the bounds.
struct HintCollection<'a> {
    base: (&'a str, &'a str),
    hints: Vec<Hint>,
    bytes: usize,
}

impl HintCollection<'_> {
    fn add(&mut self, wish: Option<LoadLink<'_>>) {
        let Some(hint) = wish.and_then(|wish| wish.hint(self.base)) else { return };
        let known = |other: &Hint| other.address == hint.address && other.relation == hint.relation;
        if self.hints.len() < HINTS_MAX && self.bytes + hint.len() <= HINTS_BYTES_MAX && !self.hints.iter().any(known) {
            self.bytes += hint.len();
            self.hints.push(hint);
        }
    }
}

/// A link or a tag that asks for something to be loaded.
struct LoadLink<'a> {
    address: Cow<'a, [u8]>,
    relation: &'static str,
    /// The value of `as`; empty where the relation needs none.
    destination: &'static str,
    cross_origin: Option<Cow<'a, [u8]>>,
    media_type: Option<Cow<'a, [u8]>>,
    priority: Option<Cow<'a, [u8]>>,
}

impl LoadLink<'_> {
    fn hint(self, (authority, target): (&str, &str)) -> Option<Hint> {
        let address = address(authority, target, &self.address)?;
        let mut parameters = String::new();
        if !self.destination.is_empty() {
            parameters = format!("; as={}", self.destination);
        }
        match self.cross_origin.as_deref() {
            None if self.destination == "font" => return None,
            None => {}
            Some(with) if with.eq_ignore_ascii_case(b"use-credentials") => parameters.push_str("; crossorigin=use-credentials"),
            Some(_) => parameters.push_str("; crossorigin"),
        }
        if let Some(media_type) = self.media_type.as_deref().filter(|name| is_media_type(name)) {
            parameters.push_str(&format!("; type=\"{}\"", std::str::from_utf8(media_type).ok()?));
        }
        let priority = ["high", "low"]
            .into_iter()
            .find(|known| self.priority.as_deref().is_some_and(|said| said.eq_ignore_ascii_case(known.as_bytes())));
        if let Some(priority) = priority {
            parameters.push_str(&format!("; fetchpriority={priority}"));
        }
        Some(Hint { address, relation: self.relation, parameters })
    }
}

/// Returns whether this is a media type without parameters.
fn is_media_type(name: &[u8]) -> bool {
    name.contains(&b'/') && name.len() <= 64 && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/+-.".contains(byte))
}

/// Returns the address of a reference, written so that it means the same on every page of the site.
fn address(authority: &str, target: &str, reference: &[u8]) -> Option<String> {
    let reference = reference.trim_ascii();
    if reference.is_empty() || reference.len() > ADDRESS_BYTES_MAX {
        return None;
    }
    let address = match resolve(authority, target, reference) {
        // Two slashes would begin a host.
        Some(path) if path.starts_with("//") => return None,
        Some(path) => path,
        None => elsewhere(std::str::from_utf8(reference).ok()?)?,
    };
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"<>\"\\".contains(&byte);
    (address.len() <= ADDRESS_BYTES_MAX && address.bytes().all(is_plain)).then_some(address)
}

/// Returns an address on another host, if it uses HTTPS.
fn elsewhere(reference: &str) -> Option<String> {
    let reference = reference.split('#').next()?;
    let rest = match reference.split_once("//")? {
        ("", rest) => rest,
        (scheme, rest) if scheme.eq_ignore_ascii_case("https:") => rest,
        _ => return None,
    };
    let authority = rest.split(['/', '?']).next()?;
    (valid_authority(authority) && !authority.contains('@')).then(|| format!("https://{rest}"))
}

/// Returns the destination, if it can be preloaded: a preload with another one does nothing, or is fetched in another way than it is used.
fn destination(name: &[u8]) -> Option<&'static str> {
    ["style", "script", "font", "image"].into_iter().find(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Returns whether a condition on media is true on every screen.
fn is_for_screens(media: Option<&[u8]>) -> bool {
    media.is_none_or(|media| {
        let media = media.trim_ascii();
        media.is_empty() || media.eq_ignore_ascii_case(b"all") || media.eq_ignore_ascii_case(b"screen")
    })
}

fn of_link<'a>(link: &'a Link<'a>) -> Option<LoadLink<'a>> {
    let has = |name| link.parameter(name).is_some();
    // With an anchor it is about another page.
    if has("anchor") || has("integrity") || has("imagesrcset") || !is_for_screens(link.parameter("media")) {
        return None;
    }
    let parameter = |name| link.parameter(name).map(Cow::Borrowed);
    let relation = ["preload", "modulepreload", "preconnect"].into_iter().find(|relation| link.is(relation))?;
    let destination = if relation == "preload" { destination(link.parameter("as")?)? } else { "" };
    Some(LoadLink {
        address: Cow::Borrowed(link.target),
        relation,
        destination,
        cross_origin: parameter("crossorigin"),
        media_type: parameter("type"),
        priority: parameter("fetchpriority"),
    })
}

fn of_tag<'a>(tag: &Tag<'a>) -> Option<LoadLink<'a>> {
    if tag.has("integrity") {
        return None;
    }
    let wish = |address, relation, destination| LoadLink {
        address,
        relation,
        destination,
        cross_origin: tag.attribute("crossorigin"),
        media_type: None,
        priority: tag.attribute("fetchpriority"),
    };
    match tag.name {
        Name::Link => {
            let (rel, href) = (tag.attribute("rel")?, tag.attribute("href")?);
            let is = |relation: &str| rel.split(u8::is_ascii_whitespace).any(|name| name.eq_ignore_ascii_case(relation.as_bytes()));
            if tag.has("imagesrcset") || tag.has("disabled") || !is_for_screens(tag.attribute("media").as_deref()) {
                return None;
            }
            if is("stylesheet") {
                let css = |name: &[u8]| name.is_empty() || name.eq_ignore_ascii_case(b"text/css");
                let applies = !is("alternate") && tag.attribute("type").is_none_or(|name| css(&name));
                return applies.then(|| wish(href, "preload", "style"));
            }
            if is("preload") {
                let destination = destination(&tag.attribute("as")?)?;
                return Some(LoadLink { media_type: tag.attribute("type"), ..wish(href, "preload", destination) });
            }
            let relation = ["modulepreload", "preconnect"].into_iter().find(|relation| is(relation))?;
            Some(wish(href, relation, ""))
        }
        Name::Script => {
            let (src, kind) = (tag.attribute("src")?, tag.attribute("type").unwrap_or_default());
            let is = |name: &str| kind.eq_ignore_ascii_case(name.as_bytes());
            if tag.has("async") || tag.has("nomodule") {
                None
            } else if is("module") {
                Some(wish(src, "modulepreload", ""))
            } else {
                let classic = kind.is_empty() || is("text/javascript") || is("application/javascript");
                (classic && !tag.has("defer")).then(|| wish(src, "preload", "script"))
            }
        }
        Name::Base | Name::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_page(page: &str) -> Vec<String> {
        hints("blog.example", "/posts/one?p=1", [], page.as_bytes()).iter().map(Hint::to_string).collect()
    }

    fn of_fields(lines: &[&'static str]) -> Vec<String> {
        hints("blog.example", "/posts/one", lines.iter().map(|line| line.as_bytes()), b"").iter().map(Hint::to_string).collect()
    }

    #[test]
    fn what_holds_up_the_first_picture_is_hinted() {
        let cases: &[(&str, &str)] = &[
            ("<link rel=stylesheet href=/style.css?ver=1>", "</style.css?ver=1>; rel=preload; as=style"),
            ("<link rel=stylesheet href=../style.css media=all type=text/css>", "</style.css>; rel=preload; as=style"),
            ("<link rel=stylesheet href=https://blog.example/a.css#x>", "</a.css>; rel=preload; as=style"),
            ("<link rel=stylesheet href=//cdn.example/a.css>", "<https://cdn.example/a.css>; rel=preload; as=style"),
            (
                "<link rel=stylesheet href='https://fonts.example/css2?family=A:ital@0&amp;display=swap'>",
                "<https://fonts.example/css2?family=A:ital@0&display=swap>; rel=preload; as=style",
            ),
            (
                "<link rel=preload as=font type=font/woff2 href=/a.woff2 crossorigin>",
                "</a.woff2>; rel=preload; as=font; crossorigin; type=\"font/woff2\"",
            ),
            ("<link rel=preload as=image href=/hero.avif fetchpriority=high>", "</hero.avif>; rel=preload; as=image; fetchpriority=high"),
            (
                "<link rel=preconnect href=https://fonts.example crossorigin=anonymous>",
                "<https://fonts.example>; rel=preconnect; crossorigin",
            ),
            ("<link rel='dns-prefetch preconnect' href=//fonts.example>", "<https://fonts.example>; rel=preconnect"),
            ("<link rel=modulepreload href=/a.js>", "</a.js>; rel=modulepreload"),
            ("<script src=/a.js></script>", "</a.js>; rel=preload; as=script"),
            (
                "<script type=module src=/a.js crossorigin=use-credentials></script>",
                "</a.js>; rel=modulepreload; crossorigin=use-credentials",
            ),
        ];
        for (page, expected) in cases {
            assert_eq!(of_page(page), [*expected], "{page}");
        }
    }

    #[test]
    fn what_is_uncertain_is_not() {
        let pages = [
            "<link rel='alternate stylesheet' href=/a.css>",
            "<link rel=stylesheet href=/a.css media=print onload=\"this.media='all'\">",
            "<link rel=stylesheet href=/a.css media='(min-width: 50em)'>",
            "<link rel=stylesheet href=/a.css disabled>",
            "<link rel=stylesheet href=/a.css integrity=sha256-x>",
            "<link rel=stylesheet/less href=/a.less>",
            "<link rel=stylesheet href=/a.less type=text/less>",
            "<link rel=stylesheet href=''>",
            "<link rel=stylesheet href='data:text/css,a{}'>",
            "<link rel=stylesheet href=http://cdn.example/a.css>",
            "<link rel=stylesheet href=https://user@cdn.example/a.css>",
            "<link rel=stylesheet href=https://blog.example//evil.example/a.css>",
            "<link rel=stylesheet href='/a.css>; rel=preload'>",
            "<link rel=stylesheet href='/a\nb.css'>",
            "<link rel=icon href=/a.png>",
            "<link rel=dns-prefetch href=//a.example>",
            "<link rel=preload as=image href=/a.png imagesrcset='/b.png 2x'>",
            "<link rel=preload as=fetch href=/a.json crossorigin>",
            "<link rel=preload href=/a.css>",
            // Fonts are always fetched with CORS.
            "<link rel=preload as=font href=/a.woff2>",
            "<script src=/a.js defer></script>",
            "<script src=/a.js async></script>",
            "<script src=/a.js nomodule></script>",
            "<script src=/a.js type=application/json></script>",
            "<script>let a</script>",
            "<base href=/b/><link rel=stylesheet href=/a.css>",
            "<body><link rel=stylesheet href=/a.css>",
        ];
        for page in pages {
            assert!(of_page(page).is_empty(), "{page}: {:?}", of_page(page));
        }
    }

    #[test]
    fn link_fields_count_as_well() {
        assert_eq!(
            of_fields(&[
                "</a.css>; rel=preload; as=style; nopush, <b.js>; rel=\"preload\"; as=\"script\"",
                "<https://c.example>; rel=preconnect"
            ]),
            ["</a.css>; rel=preload; as=style", "</posts/b.js>; rel=preload; as=script", "<https://c.example>; rel=preconnect"]
        );
        for none in [
            "</a>; rel=next",
            "</a.css>; rel=preload; as=style; anchor=\"/b\"",
            "</a.css>; rel=preload; as=style; media=print",
            "</a>; rel=stylesheet",
        ] {
            assert!(of_fields(&[none]).is_empty(), "{none}");
        }
        let field = b"</a.css>; rel=preload; as=style";
        let both = hints("blog.example", "/", [&field[..]], b"<link rel=stylesheet href=/a.css><link rel=stylesheet href=/b.css>");
        let field = link_field(&both).expect("hints");
        assert_eq!(field, "</a.css>; rel=preload; as=style, </b.css>; rel=preload; as=style");
        assert_eq!(link_field(&[]), None);
    }

    #[test]
    fn a_page_of_many_links_is_bounded() {
        let many: String = (0..100).map(|n| format!("<link rel=stylesheet href=/{n}.css>")).collect();
        assert_eq!(of_page(&many).len(), HINTS_MAX);
        let long: String = (0..100).map(|n| format!("<link rel=stylesheet href=/{n}{}>", "x".repeat(900))).collect();
        let total: usize = of_page(&long).iter().map(String::len).sum();
        assert!(total > HINTS_BYTES_MAX / 2 && total <= HINTS_BYTES_MAX, "{total}");
        let deep = format!("{}<link rel=stylesheet href=/a.css>", "<meta>".repeat(2_000));
        assert!(of_page(&deep).is_empty());
        let late = format!("<!--{}--><link rel=stylesheet href=/a.css>", "x".repeat(HINTS_PAGE_BYTES_MAX));
        assert!(of_page(&late).is_empty());
    }

    #[test]
    fn who_takes_hints() {
        let navigation: &[(&'static str, &'static str)] = &[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        let fields = |lines: &[(&'static str, &'static str)]| {
            lines.iter().map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value))).collect::<HeaderMap>()
        };
        let takes = |who: EarlyHints, version, lines: &[_]| who.are_for(&Method::GET, version, &fields(lines));
        for version in [Version::HTTP_2, Version::HTTP_3] {
            assert!(takes(EarlyHints::On, version, navigation) && !takes(EarlyHints::Off, version, navigation));
        }
        assert!(!takes(EarlyHints::On, Version::HTTP_11, navigation) && takes(EarlyHints::Http1, Version::HTTP_11, navigation));
        // RFC 9110 §15.2: a client of HTTP/1.0 knows no interim responses.
        assert!(!takes(EarlyHints::Http1, Version::HTTP_10, navigation));
        let others: [&[(&'static str, &'static str)]; 5] = [
            &[],
            &[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")],
            &[("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "document")],
            &[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"), ("sec-purpose", "prefetch")],
            &[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"), ("range", "bytes=0-1")],
        ];
        for lines in others {
            assert!(!takes(EarlyHints::On, Version::HTTP_2, lines), "{lines:?}");
        }
        assert!(!EarlyHints::On.are_for(&Method::HEAD, Version::HTTP_2, &fields(navigation)));
    }
}
