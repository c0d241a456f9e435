//! The page that a folder without an index shows, if the operator wants it: its names, sizes and dates.

use std::{fmt::Write as _, io, os::unix::fs::MetadataExt, time::SystemTime};

use rustix::fs::{AtFlags, Dir, FileType};

use super::{
    path::encode_segment,
    root::{Entry, Root, is_hidden},
    rules::{HEADERS, REDIRECTS},
};
use crate::names::is_secret;

/// The most names that a list shows. If the folder has more, the list says so.
const NAMES_MAX: usize = 10_000;

/// The order of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Name,
    Size,
    Date,
}

/// One name of the list.
#[derive(Debug)]
struct Row {
    name: String,
    folder: bool,
    bytes: u64,
    /// The date in seconds since 1970.
    modified: i64,
}

/// Returns the page that lists an opened folder at `path`, which is percent-encoded and ends with a slash. `query` says how it is sorted:
/// `?sort=size&order=desc`.
pub(super) fn page(root: &Root, folder: &Entry, path: &str, query: Option<&str>) -> io::Result<String> {
    let (mut rows, more) = rows(root, folder)?;
    let (sort, descending) = order(query);
    rows.sort_by(|a, b| {
        let by_name = || a.name.to_lowercase().cmp(&b.name.to_lowercase()).then_with(|| a.name.cmp(&b.name));
        let order = match sort {
            Sort::Name => by_name(),
            Sort::Size => a.bytes.cmp(&b.bytes).then_with(by_name),
            Sort::Date => a.modified.cmp(&b.modified).then_with(by_name),
        };
        // Folders stay on top, in whichever direction the files are sorted.
        b.folder.cmp(&a.folder).then(if descending { order.reverse() } else { order })
    });
    Ok(html(&rows, more, path, sort, descending))
}

fn rows(root: &Root, folder: &Entry) -> io::Result<(Vec<Row>, bool)> {
    let mut rows = Vec::new();
    for entry in Dir::read_from(&folder.file)? {
        let entry = entry?;
        // A name that is not UTF-8 has no address that could be asked for.
        let Ok(name) = entry.file_name().to_str() else { continue };
        let of_the_root = folder.real.as_os_str().is_empty() && [REDIRECTS, HEADERS].contains(&name);
        if name == "." || name == ".." || is_hidden(name.as_ref()) || of_the_root {
            continue;
        }
        if rows.len() == NAMES_MAX {
            return Ok((rows, true));
        }
        let Some((kind, bytes, modified)) = look(root, folder, name) else { continue };
        let is_folder = kind == FileType::Directory;
        if !is_folder && is_secret(name.as_ref(), bytes) {
            continue;
        }
        rows.push(Row { name: name.to_owned(), folder: is_folder, bytes: if is_folder { 0 } else { bytes }, modified });
    }
    Ok((rows, false))
}

/// Returns kind, bytes and date of a name, if they can be read. A link that leads out of the root is not followed, or it would reveal the
/// length of a file that nobody may read.
fn look(root: &Root, folder: &Entry, name: &str) -> Option<(FileType, u64, i64)> {
    let stat = rustix::fs::statat(&folder.file, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let metadata = root.find(&folder.real.join(name)).ok()??.metadata;
            (FileType::from_raw_mode(metadata.mode()), metadata.len(), metadata.mtime())
        }
        kind => (kind, u64::try_from(stat.st_size).unwrap_or(0), stat.st_mtime),
    };
    matches!(found.0, FileType::RegularFile | FileType::Directory).then_some(found)
}

fn order(query: Option<&str>) -> (Sort, bool) {
    let value = |key: &str| query.into_iter().flat_map(|query| query.split('&')).find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    let sort = match value("sort") {
        Some("size") => Sort::Size,
        Some("date") => Sort::Date,
        _ => Sort::Name,
    };
    (sort, value("order") == Some("desc"))
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#222;background:#fff}\
h1{font-size:1.4rem;overflow-wrap:anywhere}table{border-collapse:collapse;width:100%}td,th{padding:.3rem .5rem;text-align:left;\
border-bottom:1px solid #ddd}td:first-child{overflow-wrap:anywhere}td+td,th+th{text-align:right;white-space:nowrap;\
font-variant-numeric:tabular-nums}a{color:#0645ad;text-decoration:none}a:hover{text-decoration:underline}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}td,th{border-color:#333}a{color:#8ab4f8}}";

fn html(rows: &[Row], more: bool, path: &str, sort: Sort, descending: bool) -> String {
    let title = escape(&super::path::decode(path).unwrap_or_else(|| path.to_owned()));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<table>\n<thead><tr>"
    );
    for (heading, by, key) in [("Name", Sort::Name, "name"), ("Size", Sort::Size, "size"), ("Modified", Sort::Date, "date")] {
        let (arrow, next) = match (by == sort, descending) {
            (true, false) => (" \u{2191}", "desc"),
            (true, true) => (" \u{2193}", "asc"),
            (false, _) => ("", "asc"),
        };
        let _ = write!(page, "<th><a href=\"?sort={key}&amp;order={next}\">{heading}</a>{arrow}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    if path != "/" {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for row in rows {
        let slash = if row.folder { "/" } else { "" };
        // The link is relative, and begins with `./`: a name such as `javascript:x` must not be taken for a scheme.
        let mut href = "./".to_owned();
        encode_segment(row.name.as_bytes(), &mut href);
        let size = if row.folder { "\u{2013}".to_owned() } else { size(row.bytes) };
        let (href, name, date) = (escape(&href), escape(&row.name), date(row.modified));
        let _ = writeln!(page, "<tr><td><a href=\"{href}{slash}\">{name}{slash}</a></td><td>{size}</td><td>{date}</td></tr>");
    }
    page.push_str("</tbody>\n</table>\n");
    if more {
        let _ = writeln!(page, "<p>The first {NAMES_MAX} names; there are more.</p>");
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes.saturating_mul(10) / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// Returns a date as `2026-11-22 04:05`, in UTC. The format of dates in fields has all its parts, in another order.
fn date(seconds: i64) -> String {
    let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let text = httpdate::fmt_http_date(at);
    let words: Vec<&str> = text.split(' ').collect();
    let [_, day, month, year, time, _] = words[..] else { return text };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|name| *name == month).unwrap_or(0) + 1;
    format!("{year}-{month:02}-{day} {}", time.get(..5).unwrap_or(time))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn listed(names: &[(&str, &str)], query: Option<&str>) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, content) in names {
            let path = folder.path().join("a b").join(name);
            fs::create_dir_all(path.parent().expect("has one")).expect("made");
            fs::write(path, content).expect("written");
        }
        let root = Root::open(folder.path()).expect("opens");
        let folder = root.find("a b".as_ref()).expect("looked").expect("is there");
        page(&root, &folder, "/a%20b/", query).expect("a page")
    }

    fn names(page: &str) -> Vec<&str> {
        page.lines()
            .filter_map(|line| line.strip_prefix("<tr><td><a href=\"")?.split_once("\">")?.1.split_once("</a>").map(|(name, _)| name))
            .collect()
    }

    #[test]
    fn names_are_sorted_as_asked_with_folders_first() {
        let files =
            [("b.txt", "22"), ("A.txt", "333"), ("c.txt", "1"), ("sub/x", ""), (".env", "secret"), ("_redirects", "of a subfolder")];
        assert_eq!(names(&listed(&files, None)), ["../", "sub/", "_redirects", "A.txt", "b.txt", "c.txt"]);
        assert_eq!(names(&listed(&files, Some("sort=name&order=desc"))), ["../", "sub/", "c.txt", "b.txt", "A.txt", "_redirects"]);
        assert_eq!(names(&listed(&files, Some("sort=size"))), ["../", "sub/", "c.txt", "b.txt", "A.txt", "_redirects"]);
        assert_eq!(names(&listed(&files, Some("sort=nonsense&order=x")))[1..3], ["sub/", "_redirects"]);
    }

    #[test]
    fn names_are_escaped() {
        let page = listed(&[("<script>alert('&\").html", ""), ("javascript:x", "")], None);
        assert!(!page.contains("<script>"), "{page}");
        assert!(page.contains("&lt;script&gt;alert(&#39;&amp;&quot;).html"));
        assert!(page.contains("href=\"./javascript:x\""));
        assert!(page.contains("<h1>/a b/</h1>"));
    }

    #[test]
    fn sizes_and_dates_are_for_people() {
        for (bytes, expected) in
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (10 << 20, "10.0 MiB"), (u64::MAX, "1638.3 PiB")]
        {
            assert_eq!(size(bytes), expected);
        }
        assert_eq!(date(784_111_777), "1994-11-06 08:49");
    }
}
