//! Sitemaps as bytes (sitemaps.org 0.9): a list of pages, an index of further sitemaps, or plain text with an address on each line; any of
//! them gzipped. And where a `robots.txt` says that they are.
//!
//! An XML parser that knows no entities but the five predefined ones: there is nothing in a sitemap that could grow while it is read.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use quick_xml::{Reader, escape::resolve_predefined_entity, events::Event};

/// The most bytes of one sitemap, decompressed, by their definition.
pub(super) const BYTES_MAX: u64 = 50 << 20;

/// The most addresses in one sitemap, by their definition.
pub(super) const ADDRESSES_MAX: usize = 50_000;

/// The longest address that is taken, by their definition.
const ADDRESS_BYTES_MAX: usize = 2_048;

/// Holds what a sitemap names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sitemap {
    /// The addresses of pages.
    pub(super) pages: Vec<String>,
    /// The addresses of further sitemaps.
    pub(super) sitemaps: Vec<String>,
}

/// Says why bytes are not a sitemap.
#[derive(Debug, thiserror::Error)]
pub enum BadSitemap {
    /// Its first bytes are those of gzip, and the rest is damaged.
    #[error("its gzip is damaged")]
    Gzip(#[source] std::io::Error),
    /// It has more bytes than a sitemap may have.
    #[error("it is longer than 50 MiB, the most that a sitemap may have")]
    TooLong,
    /// It has more addresses than a sitemap may have.
    #[error("it has more than 50,000 addresses, the most that a sitemap may have")]
    TooMany,
    /// It is not XML.
    #[error("it is not well-formed XML")]
    Xml(#[source] quick_xml::Error),
    /// It is XML of another kind, such as the page that says that there is none.
    #[error("it is not a sitemap: neither <urlset> nor <sitemapindex>")]
    Foreign,
}

/// Reads a sitemap.
pub(super) fn parse(bytes: &[u8]) -> Result<Sitemap, BadSitemap> {
    let unpacked;
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        unpacked = unpack(bytes)?;
        &unpacked
    } else {
        bytes
    };
    if bytes.len() as u64 > BYTES_MAX {
        return Err(BadSitemap::TooLong);
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('<') { parse_xml(text) } else { parse_lines(text) }
}

fn unpack(bytes: &[u8]) -> Result<Vec<u8>, BadSitemap> {
    let mut unpacked = Vec::new();
    // One more than allowed, so that too long is told from just long enough.
    MultiGzDecoder::new(bytes).take(BYTES_MAX + 1).read_to_end(&mut unpacked).map_err(BadSitemap::Gzip)?;
    Ok(unpacked)
}

fn parse_lines(text: &str) -> Result<Sitemap, BadSitemap> {
    let mut sitemap = Sitemap::default();
    for line in text.lines().map(str::trim) {
        if line.starts_with("http://") || line.starts_with("https://") {
            add(&mut sitemap.pages, line)?;
        }
    }
    if sitemap.pages.is_empty() { Err(BadSitemap::Foreign) } else { Ok(sitemap) }
}

fn parse_xml(text: &str) -> Result<Sitemap, BadSitemap> {
    let mut reader = Reader::from_str(text);
    let mut sitemap = Sitemap::default();
    let mut path: Vec<String> = Vec::new();
    let mut address = String::new();
    let mut known = false;
    loop {
        match reader.read_event().map_err(BadSitemap::Xml)? {
            Event::Start(start) => {
                // An image of a page has a `loc` too, but no `url` around it.
                let name = start.local_name().as_ref().to_owned();
                known |= path.is_empty() && matches!(name.as_str(), "urlset" | "sitemapindex");
                path.push(name);
                address.clear();
            }
            Event::Text(text) => address.push_str(&text.xml10_content()),
            Event::CData(text) => address.push_str(&text.xml10_content()),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(character)) => address.push(character),
                _ => address.push_str(resolve_predefined_entity(&reference).unwrap_or_default()),
            },
            Event::End(_) => {
                match path.as_slice() {
                    [_, parent, name] if name == "loc" && parent == "url" => add(&mut sitemap.pages, &address)?,
                    [_, parent, name] if name == "loc" && parent == "sitemap" => add(&mut sitemap.sitemaps, &address)?,
                    _ => {}
                }
                path.pop();
                address.clear();
            }
            Event::Eof if !known => return Err(BadSitemap::Foreign),
            Event::Eof => return Ok(sitemap),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

fn add(addresses: &mut Vec<String>, address: &str) -> Result<(), BadSitemap> {
    let address = address.trim();
    if addresses.len() == ADDRESSES_MAX {
        return Err(BadSitemap::TooMany);
    }
    if !address.is_empty() && address.len() <= ADDRESS_BYTES_MAX {
        addresses.push(address.to_owned());
    }
    Ok(())
}

/// Finds the sitemaps that a `robots.txt` names (RFC 9309 §2.2.4).
pub(super) fn in_robots(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let value = value.split('#').next().unwrap_or_default().trim();
        (name.trim().eq_ignore_ascii_case("sitemap") && !value.is_empty()).then(|| value.to_owned())
    };
    text.trim_start_matches('\u{feff}').lines().filter_map(value).take(ADDRESSES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    /// A sitemap as sitemaps.org shows it, with what Yoast SEO adds: images, and CDATA.
    const PAGES: &str = r#"<?xml version="1.0" encoding="UTF-8"?><?xml-stylesheet type="text/xsl" href="//a/main-sitemap.xsl"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
  <!-- <url><loc>http://a/hidden</loc></url> -->
  <url>
    <loc>
      http://a/1
    </loc>
    <lastmod>2026-01-01</lastmod>
    <image:image><image:loc>http://a/1.jpg</image:loc></image:image>
  </url>
  <url><loc>http://a/?x=1&amp;y=&#50;</loc></url>
  <url><loc><![CDATA[http://a/3?x=1&y=2]]></loc></url>
  <url><loc/></url>
</urlset>"#;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("written");
        encoder.finish().expect("written")
    }

    #[test]
    fn every_form_is_read() {
        let pages = ["http://a/1", "http://a/?x=1&y=2", "http://a/3?x=1&y=2"];
        for bytes in [PAGES.as_bytes().to_vec(), gzip(PAGES.as_bytes()), [b"\xef\xbb\xbf", PAGES.as_bytes()].concat()] {
            assert_eq!(parse(&bytes).expect("a sitemap"), Sitemap { pages: pages.map(String::from).to_vec(), sitemaps: vec![] });
        }
        let index = r#"<s:sitemapindex xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9">
            <s:sitemap><s:loc>http://a/s1.xml.gz</s:loc></s:sitemap></s:sitemapindex>"#;
        assert_eq!(parse(index.as_bytes()).expect("an index").sitemaps, ["http://a/s1.xml.gz"]);
        let lines = "http://a/1\r\n\nhttps://a/2\nnonsense\n";
        assert_eq!(parse(lines.as_bytes()).expect("text").pages, ["http://a/1", "https://a/2"]);
    }

    #[test]
    fn what_is_no_sitemap_says_why() {
        let long = format!("<urlset>{}</urlset>", "<url><loc>http://a/</loc></url>".repeat(ADDRESSES_MAX + 1));
        let bomb = gzip(&vec![b' '; usize::try_from(BYTES_MAX).expect("fits") + 1]);
        for (bytes, expected) in [
            (&b"<!doctype html><html><body>Not found</body></html>"[..], "neither <urlset>"),
            (b"", "neither <urlset>"),
            (b"<urlset><url><loc>http://a/</url></urlset>", "not well-formed"),
            (b"\x1f\x8b\x08\x00nonsense", "damaged"),
            (long.as_bytes(), "50,000"),
            (&bomb, "50 MiB"),
        ] {
            let error = parse(bytes).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
        let address = format!("<urlset><url><loc>http://a/{}</loc></url></urlset>", "x".repeat(ADDRESS_BYTES_MAX));
        assert_eq!(parse(address.as_bytes()).expect("a sitemap").pages, Vec::<String>::new());
    }

    /// RFC 9309 §2.2.4 leaves `Sitemap` lines to crawlers; their name has no case.
    #[test]
    fn a_robots_txt_names_sitemaps() {
        let text = "User-agent: *\nDisallow: /ghost/\nSitemap: https://a/sitemap.xml\nsitemap:https://a/b.xml # more\nSitemap:\n";
        assert_eq!(in_robots(text.as_bytes()), ["https://a/sitemap.xml", "https://a/b.xml"]);
    }
}
