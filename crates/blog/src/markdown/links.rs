//! Finds where links and pictures lead: to other files of the folder by their paths, to addresses of this site, to anchors, or elsewhere.

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use unicode_normalization::UnicodeNormalization;

use super::{OutLink, Text, lines::Lines};
use crate::{
    error::Problem,
    picture::Picture,
    slug,
    targets::{Target, Targets},
};

/// The largest number of problems of one text that are told, of each severity.
const PROBLEMS_MAX: usize = 20;

/// Says what is at the end of a link.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The target as it stands in HTML, but for the escaping. `None` if following it would run a script, or if it is a picture that is left out.
    pub(super) href: Option<String>,
    /// The path of the file in the folder, if it leads to one.
    pub(super) file: Option<String>,
}

/// Finds the targets of the links of one text, and takes note of what is wrong with them.
#[derive(Debug)]
pub(super) struct Links<'t> {
    text: &'t Text<'t>,
    targets: &'t Targets,
    lines: Lines<'t>,
    /// Links to anchors of this text, with their lines.
    own: Vec<(String, usize)>,
    pub(super) out: Vec<OutLink>,
    pub(super) errors: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl<'t> Links<'t> {
    pub(super) const fn new(text: &'t Text<'t>, targets: &'t Targets, lines: Lines<'t>) -> Self {
        Self { text, targets, lines, own: Vec::new(), out: Vec::new(), errors: Vec::new(), warnings: Vec::new() }
    }

    /// Takes note of something that does not keep the text from being published.
    pub(super) fn warn(&mut self, offset: usize, message: impl Into<String>) {
        let line = self.lines.at(offset);
        if self.warnings.len() < PROBLEMS_MAX {
            self.warnings.push(Problem::warning(self.text.file, line, message));
        }
    }

    fn error(&mut self, offset: usize, message: String) {
        let line = self.lines.at(offset);
        if self.errors.len() < PROBLEMS_MAX {
            self.errors.push(Problem::new(self.text.file, line, message));
        }
    }

    /// Checks the links to anchors of this text itself.
    pub(super) fn check_own(&mut self, anchors: &BTreeSet<String>) {
        let missing =
            |(anchor, _): &(String, usize)| !anchors.contains(anchor) && !anchor.is_empty() && !anchor.eq_ignore_ascii_case("top");
        for (anchor, line) in std::mem::take(&mut self.own).into_iter().filter(missing).take(PROBLEMS_MAX) {
            let message = format!("link to \"#{anchor}\": no section of this text has that anchor");
            self.warnings.push(Problem::warning(self.text.file, line, message));
        }
    }

    /// Finds the target of a link or picture at this place of the text.
    pub(super) fn resolve(&mut self, url: &str, offset: usize, is_image: bool) -> Resolved {
        if runs_script(url, is_image) {
            self.warn(offset, format!("link to {:?}: it would run a script, so it leads nowhere; write it as HTML if it should", cut(url)));
            return Resolved::default();
        }
        let elsewhere = |url: &str| Resolved { href: Some(encode(url)), file: None };
        if url.is_empty() || url.starts_with('?') || url.starts_with("//") || scheme(url).is_some() {
            return elsewhere(url);
        }
        if let Some(anchor) = url.strip_prefix('#') {
            let line = self.lines.at(offset);
            self.own.push((decoded(anchor), line));
            return elsewhere(url);
        }
        let (path, suffix) = url.split_at(url.find(['#', '?']).unwrap_or(url.len()));
        let path = decoded(path);
        let fragment = suffix.split_once('#').map(|(_, anchor)| decoded(anchor)).filter(|anchor| !anchor.is_empty());
        let name = if path.starts_with('/') { join("", &path) } else { join(self.text.folder, &path) };
        if let Some((name, target)) = name.as_deref().and_then(|name| self.find(name)) {
            if target.is_left_out {
                return Resolved::default();
            }
            let is_seen = target.address.starts_with('/');
            if is_seen && !target.is_published {
                self.warn(offset, format!("link to {:?}: it is not published yet, so readers will find nothing there", cut(url)));
            } else if is_seen && fragment.is_some() {
                let line = self.lines.at(offset);
                self.out.push(OutLink { path: target.address.clone(), fragment, line });
            }
            return Resolved { href: Some(format!("{}{}", slug::encode_path(&target.address), encode(suffix))), file: Some(name) };
        }
        if path.starts_with('/') || !(is_image || is_markdown(&path)) {
            // It may be an address of the site, which is known when all texts are.
            let line = self.lines.at(offset);
            self.out.push(OutLink { path, fragment, line });
            return elsewhere(url);
        }
        let similar = name.filter(|_| self.errors.len() < PROBLEMS_MAX).and_then(|name| self.targets.similar(&name));
        let what = match similar {
            Some(similar) => format!("the file is called {similar:?}; large and small letters differ"),
            None if is_image => "there is no such file to show; paths are relative to this file".to_owned(),
            None => "no published post or page has that name; paths are relative to this file".to_owned(),
        };
        self.error(offset, format!("link to {:?}: {what}", cut(url)));
        elsewhere(url)
    }

    /// Returns the picture in a file that was [resolved](Self::resolve), with these words for those who do not see it.
    pub(super) fn picture(&self, file: &str, alt: &str) -> Option<Picture> {
        self.targets.picture(file, alt)
    }

    /// Finds a file by its path in the folder, whichever way its name is written: file systems keep `ü` as one character or as two.
    fn find(&self, name: &str) -> Option<(String, Target)> {
        let known = |name: &str| {
            let target = self.targets.text(name).or_else(|| self.targets.file(name))?;
            Some((name.to_owned(), target))
        };
        known(name).or_else(|| {
            let other = |other: String| if other == name { None } else { known(&other) };
            if name.is_ascii() { None } else { other(name.nfc().collect()).or_else(|| other(name.nfd().collect())) }
        })
    }
}

/// Tells whether a file of this name is Markdown.
pub(crate) fn is_markdown(name: &str) -> bool {
    let extension = Path::new(name).extension().map(|e| e.to_ascii_lowercase());
    extension.is_some_and(|e| e == "md" || e == "markdown")
}

/// Returns the scheme of an address, in lower case.
pub(crate) fn scheme(url: &str) -> Option<String> {
    let is_scheme =
        |s: &str| s.starts_with(|c: char| c.is_ascii_alphabetic()) && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    url.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme)).map(str::to_ascii_lowercase)
}

/// Tells whether a browser would run a script at this address. Browsers skip white space and controls in it (URL Standard, 4.4).
fn runs_script(url: &str, is_image: bool) -> bool {
    let seen: String = url.chars().filter(|c| !c.is_control()).take(64).collect();
    let seen = seen.trim_start();
    match scheme(seen).as_deref() {
        Some("javascript" | "vbscript") => true,
        Some("data") => !is_image || !seen.get(..11).is_some_and(|start| start.eq_ignore_ascii_case("data:image/")),
        _ => false,
    }
}

/// Percent-encodes what cannot stand in a URI. A percent sign stays: the author may have encoded already.
pub(super) fn encode(url: &str) -> String {
    let mut uri = String::with_capacity(url.len());
    for byte in url.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$%&'()*+,-./:;=?@_~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

fn decoded(path: &str) -> String {
    slug::decode_path(path).unwrap_or_else(|| path.to_owned())
}

/// Shortens an address for a message.
fn cut(url: &str) -> String {
    match url.char_indices().nth(100) {
        Some((at, _)) => format!("{}…", &url[..at]),
        None => url.to_owned(),
    }
}

/// Resolves `path` from `folder`, without `.` and `..`. Returns `None` if it leaves the blog.
pub(crate) fn join(folder: &str, path: &str) -> Option<String> {
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_however_they_hide() {
        let cases = [
            ("javascript:alert(1)", true),
            ("JavaScript:alert(1)", true),
            ("\u{1} java\nscript:alert(1)", true),
            ("\tvbscript:x", true),
            ("data:text/html,<script>", true),
            ("https://x.test/javascript:", false),
            ("mailto:a@x.test", false),
            ("a/javascript:x", false),
        ];
        for (url, expected) in cases {
            assert_eq!(runs_script(url, false), expected, "{url:?}");
        }
        assert!(!runs_script("data:image/png;base64,AA", true) && runs_script("data:image/png;base64,AA", false));
    }

    #[test]
    fn addresses_are_encoded_once() {
        assert_eq!(encode("https://x.test/a b/ü?q=\"1\"&x=%20"), "https://x.test/a%20b/%C3%BC?q=%221%22&x=%20");
    }
}
