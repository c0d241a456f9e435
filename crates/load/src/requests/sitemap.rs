//! The URLs of a site, as its sitemap lists them (sitemaps.org).
//!
//! Sites write their own address into their sitemaps, while a run often asks another one: a copy, or the server behind the proxy. So each URL is asked at
//! the address where the sitemap was found, and the number of those that name another is told.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use quick_xml::{Reader, events::Event};

use super::{
    content::{Unreadable, decoded, gunzip},
    url::Url,
};
use crate::{
    fetch::{FetchError, Fetched},
    output::printable,
};

/// The largest sitemap, without its coding (the protocol's own bound).
pub const BYTES_MAX: usize = 50 << 20;

/// The most URLs that are taken from a file: the protocol's own bound.
const URLS_OF_A_FILE_MAX: usize = 50_000;

/// The most files that are read.
const FILES_MAX: usize = 500;

/// Says where reading ends.
struct Bounds {
    /// The most URLs that are taken in all.
    urls: usize,
    /// The most bytes of all files, without their coding. The last one may be above it.
    bytes: usize,
    /// The time during which files are read. The last one may take longer, as long as a request may take.
    time: Duration,
}

const BOUNDS: Bounds = Bounds { urls: 500_000, bytes: 512 << 20, time: Duration::from_mins(3) };

/// The depth to which indexes are followed: an index may name another one.
const DEPTH_MAX: u8 = 2;

/// The deepest element that is looked at.
const ELEMENTS_MAX: usize = 32;

/// Holds what a sitemap lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// The URLs, at the server where the sitemap was found.
    pub urls: Vec<Url>,
    /// The number of URLs that name another server.
    pub elsewhere: usize,
    /// The files that were asked for.
    pub files: usize,
    /// The number of sitemaps that could not be read, where there are others.
    pub failed: usize,
    /// The reason why the first of those could not be read.
    pub failure: Option<String>,
    /// Whether bounds kept some out.
    pub is_cut: bool,
}

/// The reason why a sitemap cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SitemapError {
    /// It cannot be had.
    #[error("{0} cannot be had")]
    Fetch(String, #[source] FetchError),
    /// It was answered with another status.
    #[error("{0} was answered with {1}")]
    Status(String, u16),
    /// It leads elsewhere, and redirects are not followed.
    #[error("{0} redirects to {to}: name that URL", to = printable(.1))]
    Redirect(String, String),
    /// Its coding is wrong.
    #[error("{0} cannot be read")]
    Unreadable(String, #[source] Unreadable),
    /// It is not a sitemap.
    #[error("{0} is not a sitemap: {what}", what = printable(.1))]
    NoSitemap(String, String),
    /// There is nothing in it.
    #[error("{0} lists no URL")]
    Empty(String),
}

/// Reads a sitemap and those that it names. A URL without a path stands for the site: its `robots.txt` says where the sitemap is, or it is
/// `/sitemap.xml`.
///
/// # Errors
/// When there is no URL in any of the files, or none can be read.
pub fn read_sitemap(url: &Url, fetch: &dyn Fn(&Url) -> Result<Fetched, FetchError>) -> Result<Sitemap, SitemapError> {
    let begin = Instant::now();
    read_within(url, fetch, &BOUNDS, &|| begin.elapsed())
}

fn read_within(
    url: &Url,
    fetch: &dyn Fn(&Url) -> Result<Fetched, FetchError>,
    bounds: &Bounds,
    passed: &dyn Fn() -> Duration,
) -> Result<Sitemap, SitemapError> {
    let mut sitemap = Sitemap::default();
    let (mut bytes, mut failure) = (0, None);
    let mut files: Vec<(Url, u8)> = Vec::new();
    if url.target == "/" {
        let robots = Url { target: "/robots.txt".to_owned(), ..url.clone() };
        let named =
            fetch(&robots).ok().filter(|fetched| fetched.status == 200).map(|fetched| robots_sitemaps(&fetched, url)).unwrap_or_default();
        files.extend(named.into_iter().map(|url| (url, 0)));
        if files.is_empty() {
            files.push((Url { target: "/sitemap.xml".to_owned(), ..url.clone() }, 0));
        }
    } else {
        files.push((url.clone(), 0));
    }
    let mut seen: HashSet<String> = files.iter().map(|(file, _)| file.target.clone()).collect();
    let mut known: HashSet<String> = HashSet::new();
    let mut next = 0;
    while let Some((file, depth)) = files.get(next).cloned() {
        if sitemap.urls.len() >= bounds.urls || bytes >= bounds.bytes || passed() >= bounds.time {
            sitemap.is_cut = true;
            break;
        }
        next += 1;
        sitemap.files += 1;
        let listed = match read_file(&file, fetch) {
            Ok(listed) => listed,
            // The others are read all the same.
            Err(error) => {
                sitemap.failed += 1;
                failure.get_or_insert(error);
                continue;
            }
        };
        bytes += listed.bytes;
        sitemap.is_cut |= listed.is_cut;
        for location in listed.urls {
            let Ok(found) = Url::read(&location) else { continue };
            if sitemap.urls.len() >= bounds.urls {
                sitemap.is_cut = true;
                break;
            }
            if known.insert(found.target.clone()) {
                sitemap.elsewhere += usize::from(found.origin != url.origin);
                sitemap.urls.push(Url { origin: url.origin.clone(), ..found });
            }
        }
        for location in listed.sitemaps {
            let Ok(found) = Url::read(&location) else { continue };
            if depth >= DEPTH_MAX || files.len() >= FILES_MAX {
                sitemap.is_cut = true;
            } else if seen.insert(found.target.clone()) {
                files.push((Url { origin: url.origin.clone(), ..found }, depth + 1));
            }
        }
    }
    if sitemap.urls.is_empty() {
        return Err(failure.unwrap_or_else(|| SitemapError::Empty(url.to_string())));
    }
    sitemap.failure = failure.map(|error| error.to_string());
    Ok(sitemap)
}

fn robots_sitemaps(fetched: &Fetched, url: &Url) -> Vec<Url> {
    let text = String::from_utf8_lossy(&fetched.body);
    let lines = text.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.trim().eq_ignore_ascii_case("sitemap"));
    lines
        .filter_map(|(_, value)| Url::read(value.trim()).ok())
        .map(|found| Url { origin: url.origin.clone(), ..found })
        .take(FILES_MAX)
        .collect()
}

#[derive(Debug, Default)]
struct Listed {
    urls: Vec<String>,
    sitemaps: Vec<String>,
    is_cut: bool,
    /// The number of bytes that were read, without their coding.
    bytes: usize,
}

fn read_file(file: &Url, fetch: &dyn Fn(&Url) -> Result<Fetched, FetchError>) -> Result<Listed, SitemapError> {
    let name = || file.to_string();
    let fetched = fetch(file).map_err(|error| SitemapError::Fetch(name(), error))?;
    match fetched.status {
        200 => {}
        300..400 => {
            let location = fetched.field("location").map(|location| String::from_utf8_lossy(location).into_owned());
            return Err(SitemapError::Redirect(name(), location.unwrap_or_else(|| "an unnamed URL".to_owned())));
        }
        status => return Err(SitemapError::Status(name(), status)),
    }
    let fields: Vec<_> = fetched.fields.iter().map(|(name, value)| (name.as_bytes(), value.as_slice())).collect();
    let unreadable = |error| SitemapError::Unreadable(name(), error);
    let mut content = decoded(&fields, &fetched.body, BYTES_MAX + 1).map_err(unreadable)?.into_owned();
    if content.len() > BYTES_MAX {
        return Err(unreadable(Unreadable::TooLarge(BYTES_MAX)));
    }
    // A file `sitemap.xml.gz` is gzip by itself.
    if content.starts_with(&[0x1f, 0x8b]) {
        content = gunzip(&content, BYTES_MAX).map_err(unreadable)?;
    }
    let text = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&content);
    let is_xml = text.trim_ascii_start().starts_with(b"<");
    let listed = if is_xml { read_xml(text) } else { read_text(text) };
    let listed = listed.map_err(|what| SitemapError::NoSitemap(name(), what))?;
    Ok(Listed { bytes: content.len(), ..listed })
}

/// Reads a sitemap of text: a URL a line.
fn read_text(text: &[u8]) -> Result<Listed, String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is neither XML nor text".to_owned())?;
    let mut listed = Listed::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        Url::read(line).map_err(|error| format!("{:?}: {error}", line.chars().take(60).collect::<String>()))?;
        if listed.urls.len() >= URLS_OF_A_FILE_MAX {
            listed.is_cut = true;
            break;
        }
        listed.urls.push(line.to_owned());
    }
    Ok(listed)
}

fn read_xml(text: &[u8]) -> Result<Listed, String> {
    let text = String::from_utf8_lossy(text);
    let mut reader = Reader::from_str(&text);
    let mut listed = Listed::default();
    // Local names: other vocabularies have a `loc`, too, but not right below `url`.
    let mut path: Vec<String> = Vec::new();
    let mut location: Option<String> = None;
    let mut is_sitemap = false;
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(tag) => {
                let name = tag.local_name().as_ref().to_owned();
                is_sitemap |= path.is_empty() && matches!(&*name, "urlset" | "sitemapindex");
                if path.is_empty() && !is_sitemap {
                    return Err(format!("its root is <{}>", name));
                }
                if path.len() >= ELEMENTS_MAX {
                    return Err("its elements are too deep".to_owned());
                }
                let below = path.last().is_some_and(|parent| matches!(&**parent, "url" | "sitemap"));
                if name == "loc" && below {
                    location = Some(String::new());
                }
                path.push(name);
            }
            Event::Text(piece) => {
                if let Some(location) = &mut location {
                    location.push_str(&piece);
                }
            }
            Event::CData(piece) => {
                if let Some(location) = &mut location {
                    location.push_str(&piece);
                }
            }
            Event::GeneralRef(reference) => {
                if let Some(location) = &mut location {
                    match reference.resolve_char_ref() {
                        Ok(Some(character)) => location.push(character),
                        _ => location.push_str(quick_xml::escape::resolve_predefined_entity(&reference).unwrap_or_default()),
                    }
                }
            }
            Event::End(_) => {
                if path.pop().as_deref() == Some("loc")
                    && let Some(location) = location.take()
                {
                    let list = if path.last().is_some_and(|parent| *parent == "sitemap") { &mut listed.sitemaps } else { &mut listed.urls };
                    if list.len() >= URLS_OF_A_FILE_MAX {
                        listed.is_cut = true;
                        return Ok(listed);
                    }
                    list.push(location.trim().to_owned());
                }
            }
            Event::Eof if path.is_empty() && is_sitemap => return Ok(listed),
            Event::Eof => return Err("it ends before its end".to_owned()),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::requests::content::gzip;

    fn urlset(urls: &[&str]) -> String {
        let urls: String = urls.iter().map(|url| format!("<url>\n <loc> {url} </loc><lastmod>2026-01-01</lastmod></url>")).collect();
        format!("<?xml version=\"1.0\"?><!-- x --><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{urls}</urlset>")
    }

    fn index(urls: &[&str]) -> String {
        let urls: String = urls.iter().map(|url| format!("<sitemap><loc>{url}</loc></sitemap>")).collect();
        format!("<sitemapindex>{urls}</sitemapindex>")
    }

    /// Reads a sitemap of a server at `http://127.0.0.1:81` with these files.
    fn read(start: &str, files: &[(&str, Vec<u8>)]) -> Result<Sitemap, String> {
        let fetch = |url: &Url| {
            assert_eq!(url.origin.to_string(), "http://127.0.0.1:81", "nobody else is asked");
            let found = files.iter().find(|(target, _)| *target == url.target);
            Ok(Fetched {
                status: if found.is_some() { 200 } else { 404 },
                fields: Vec::new(),
                body: found.map(|(_, body)| body.clone()).unwrap_or_default(),
            })
        };
        read_sitemap(&Url::read(&format!("http://127.0.0.1:81{start}")).expect("valid"), &fetch).map_err(|error| error.to_string())
    }

    fn targets(sitemap: &Sitemap) -> Vec<&str> {
        sitemap.urls.iter().map(|url| url.target.as_str()).collect()
    }

    #[test]
    fn urls_are_asked_where_the_sitemap_was_found() {
        let file = urlset(&[
            "https://blog.example/a?x=1&amp;y=2",
            "http://127.0.0.1:81/b",
            "https://blog.example/&#x41;",
            "https://blog.example/b",
            "nonsense",
        ]);
        let sitemap = read("/map.xml", &[("/map.xml", file.into_bytes())]).expect("valid");
        assert_eq!(targets(&sitemap), ["/a?x=1&y=2", "/b", "/A"]);
        assert_eq!((sitemap.elsewhere, sitemap.files, sitemap.is_cut), (2, 1, false));
    }

    #[test]
    fn indexes_gzip_and_text_are_read() {
        let sitemap = read(
            "/sitemap.xml",
            &[
                (
                    "/sitemap.xml",
                    index(&["https://b.example/pages.xml.gz", "https://b.example/more.xml", "https://b.example/pages.xml.gz"]).into_bytes(),
                ),
                ("/pages.xml.gz", gzip(urlset(&["https://b.example/1"]).as_bytes())),
                ("/more.xml", index(&["https://b.example/list.txt", "https://b.example/sitemap.xml"]).into_bytes()),
                ("/list.txt", b"\xef\xbb\xbfhttps://b.example/2\r\n\r\nhttps://b.example/3\n".to_vec()),
            ],
        );
        let sitemap = sitemap.expect("valid");
        assert_eq!(targets(&sitemap), ["/1", "/2", "/3"]);
        assert_eq!((sitemap.files, sitemap.is_cut), (4, false));
    }

    #[test]
    fn indexes_are_followed_to_a_depth() {
        let file = |n: usize| index(&[format!("https://b.example/{n}").as_str()]).into_bytes();
        let files = [("/0", file(1)), ("/1", file(2)), ("/2", file(3)), ("/3", urlset(&["https://b.example/p"]).into_bytes())];
        assert_eq!(read("/0", &files).expect_err("too deep"), "http://127.0.0.1:81/0 lists no URL");
        assert_eq!(targets(&read("/1", &files).expect("valid")), ["/p"]);
    }

    #[test]
    fn a_site_says_in_robots_txt_where_its_sitemap_is() {
        let robots = b"User-agent: *\nsitemap: https://b.example/s.xml\n".to_vec();
        let map = urlset(&["https://b.example/p"]).into_bytes();
        assert_eq!(targets(&read("", &[("/robots.txt", robots), ("/s.xml", map.clone())]).expect("valid")), ["/p"]);
        assert_eq!(targets(&read("/", &[("/sitemap.xml", map)]).expect("valid")), ["/p"]);
    }

    #[test]
    fn what_is_no_sitemap_is_named() {
        for (file, part) in [
            ("<html><body>", "its root is <html>"),
            ("<rss></rss>", "its root is <rss>"),
            ("hello", "\"hello\""),
            ("<urlset><url>", "it ends before its end"),
            ("<urlset></urlset>", "lists no URL"),
            ("<urlset><url><loc>http://h/</url></urlset>", "/s.xml is not a sitemap"),
        ] {
            let error = read("/s.xml", &[("/s.xml", file.as_bytes().to_vec())]).expect_err(file);
            assert!(error.contains(part), "{file}: {error}");
        }
        assert_eq!(read("/s.xml", &[]).expect_err("missing"), "http://127.0.0.1:81/s.xml was answered with 404");
        let moved = |_: &Url| Ok(Fetched { status: 301, fields: vec![("location".to_owned(), b"/other".to_vec())], body: Vec::new() });
        let error = read_sitemap(&Url::read("http://h/s.xml").expect("valid"), &moved).expect_err("moved").to_string();
        assert_eq!(error, "http://h/s.xml redirects to /other: name that URL");
    }

    #[test]
    fn a_file_of_an_index_that_cannot_be_read_is_told_and_the_others_are_read() {
        let files = [
            ("/s.xml", index(&["http://h/missing.xml", "http://h/a.xml", "http://h/page.html"]).into_bytes()),
            ("/a.xml", urlset(&["http://h/p"]).into_bytes()),
            ("/page.html", b"<html></html>".to_vec()),
        ];
        let sitemap = read("/s.xml", &files).expect("one can be read");
        assert_eq!((targets(&sitemap), sitemap.files, sitemap.failed), (vec!["/p"], 4, 2));
        assert_eq!(sitemap.failure.as_deref(), Some("http://127.0.0.1:81/missing.xml was answered with 404"));
        assert_eq!(read("/s.xml", &files[..1]).expect_err("none can be read"), "http://127.0.0.1:81/missing.xml was answered with 404");
    }

    #[test]
    fn reading_ends_at_each_bound() {
        let start = Url::read("http://127.0.0.1:81/0").expect("valid");
        let names: Vec<String> = (1..400).map(|n| format!("http://h/{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let answer = |body: Vec<u8>| Ok(Fetched { status: 200, fields: Vec::new(), body });
        let start_with_index = |url: &Url, other: &dyn Fn(&str) -> Vec<u8>| match url.target.as_str() {
            "/0" => answer(index(&names).into_bytes()),
            target => answer(other(target)),
        };
        let bounds = Bounds { urls: 500, bytes: 1 << 20, time: Duration::from_mins(3) };
        // Each file lists fifty URLs: ten files are all that is taken.
        let fifty = |target: &str| (0..50).map(|n| format!("http://h{target}/{n}\n")).collect::<String>().into_bytes();
        let urls = read_within(&start, &|url| start_with_index(url, &fifty), &bounds, &|| Duration::ZERO).expect("valid");
        assert_eq!((urls.urls.len(), urls.files, urls.is_cut), (500, 11, true));
        // Each file takes a minute.
        let passed = std::cell::Cell::new(Duration::ZERO);
        let slow = |url: &Url| {
            passed.set(passed.get() + Duration::from_mins(1));
            start_with_index(url, &|target| format!("http://h{target}/p").into_bytes())
        };
        let late = read_within(&start, &slow, &bounds, &|| passed.get()).expect("valid");
        assert_eq!((late.files, late.is_cut), (3, true));
        // Each file has 256 KiB beside its URL, packed well.
        let padded = format!("<urlset><url><loc>http://h/p</loc></url><!--{}--></urlset>", "x".repeat(256 << 10));
        let packed = gzip(padded.as_bytes());
        let large = read_within(&start, &|url| start_with_index(url, &|_| packed.clone()), &bounds, &|| Duration::ZERO).expect("valid");
        assert_eq!((large.files, large.is_cut), (5, true));
    }

    #[test]
    fn nothing_that_a_server_wrote_reaches_the_terminal_as_it_is() {
        for file in ["<ht\u{9b}ml>", "<a\u{202e}>", "<urlset><\u{90}", "x\u{1b}[2J", "<urlset></u\u{9b}>", "<urlset><url></\u{1b}>"] {
            let error = read("/s.xml", &[("/s.xml", file.as_bytes().to_vec())]).expect_err(file);
            assert_eq!(error, printable(&error), "{file:?}");
        }
        let moved =
            |_: &Url| Ok(Fetched { status: 301, fields: vec![("location".to_owned(), "/\u{9b}\u{202e}".into())], body: Vec::new() });
        let error = read_sitemap(&Url::read("http://h/s.xml").expect("valid"), &moved).expect_err("moved").to_string();
        assert_eq!(error, "http://h/s.xml redirects to /\u{fffd}\u{fffd}: name that URL");
    }

    #[test]
    fn pictures_of_a_page_are_no_pages() {
        let file = "<urlset><url><loc>http://h/p</loc><image:image><image:loc>http://h/i.png</image:loc></image:image></url></urlset>";
        assert_eq!(targets(&read("/s", &[("/s", file.as_bytes().to_vec())]).expect("valid")), ["/p"]);
    }

    proptest! {
        #[test]
        fn no_file_makes_the_reader_panic(file in "(<urlset>|</urlset>|<url>|</url>|<loc>|</loc>|http://h/|&amp;|&#65;|&x;|<!\\[CDATA\\[|\\]\\]>|<|é| ){0,20}") {
            let _ = read("/s", &[("/s", file.into_bytes())]);
        }
    }
}
