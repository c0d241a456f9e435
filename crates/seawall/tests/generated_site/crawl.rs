//! Every link of the site is followed from its front page, and what comes is what the folder holds.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Write as _,
};

use crate::{hugo, reader::Reader, server::Server};

#[test]
fn every_link_leads_to_the_bytes_in_the_folder() {
    let place = tempfile::tempdir().expect("a folder");
    let [site, _] = hugo::build(place.path());
    let server = Server::start(&site.folder, &place.path().join("cache"));
    let mut reader = Reader::connect(server.address);

    let (mut waiting, mut known) = (VecDeque::from(["/".to_owned()]), BTreeSet::from(["/".to_owned()]));
    let (mut read, mut tags, mut pages) = (BTreeSet::new(), BTreeMap::new(), 0);
    while let Some(path) = waiting.pop_front() {
        let name = file_of(&path);
        let file = site.files.get(&name).unwrap_or_else(|| panic!("{path} is a link to {name}, which Hugo did not write"));
        let answer = reader.get(&path, "");
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.content == *file, "{path}: {} bytes differ from the {} of {name}", answer.content.len(), file.len());
        tags.insert(path.clone(), answer.value("etag").unwrap_or_else(|| panic!("{path}: no validator")).to_owned());
        if name.ends_with(".html") || name.ends_with(".xml") {
            pages += usize::from(name.ends_with(".html"));
            for link in links(&String::from_utf8_lossy(&answer.content)) {
                if known.insert(link.clone()) {
                    waiting.push_back(link);
                }
            }
        }
        read.insert(name);
    }
    assert!(pages >= 2_000, "only {pages} pages were found");

    // What no link leads to is there as well.
    for (name, file) in site.files.iter().filter(|(name, _)| !read.contains(*name) && *name != "404.html") {
        let path = path_of(name);
        let answer = reader.get(&path, "");
        assert!(answer.status == 200 && answer.content == *file, "{path}: {}", answer.status);
    }
    let missing = reader.get("/nothing/here/", "");
    assert!(missing.status == 404 && missing.content == site.files["404.html"], "{}", missing.status);

    // Once more over what is stored by now: no byte has changed for whoever has it, and what is coded means the same.
    for (path, tag) in &tags {
        let again = reader.get(path, &format!("If-None-Match: {tag}\r\n"));
        assert_eq!(again.status, 304, "{path} {tag}");
        let content = reader.get(path, "Accept-Encoding: gzip\r\n").decoded().content;
        assert!(content == site.files[&file_of(path)], "{path}, with Accept-Encoding: gzip");
    }
}

/// Returns the path of a file.
pub(crate) fn path_of(name: &str) -> String {
    let mut path = String::from("/");
    for byte in name.strip_suffix("index.html").unwrap_or(name).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}

/// Returns the file that a path names.
fn file_of(path: &str) -> String {
    let mut name = Vec::new();
    let mut bytes = path[1..].bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next().expect("two digits"), bytes.next().expect("two digits")];
            name.push(u8::from_str_radix(std::str::from_utf8(&digits).expect("ASCII"), 16).expect("two digits"));
        } else {
            name.push(byte);
        }
    }
    let name = String::from_utf8(name).expect("a name in UTF-8");
    if name.is_empty() || name.ends_with('/') { name + "index.html" } else { name }
}

/// Returns what a page or a feed leads to on its own site.
fn links(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (before, after) in [("href=\"", "\""), ("href='", "'"), ("src=\"", "\""), ("<loc>", "<"), ("<link>", "<")] {
        for piece in text.split(before).skip(1) {
            let link = piece.split(after).next().expect("split gives one at least");
            let link = link.replace("&amp;", "&").replace("&#43;", "+").replace("&#39;", "'");
            let link = link.strip_prefix("http://site.example").unwrap_or(&link).split(['#', '?']).next().expect("one at least").to_owned();
            if link.starts_with('/') {
                found.insert(link);
            }
        }
    }
    found
}
