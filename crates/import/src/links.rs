//! Addresses in texts: those of the old site become those of the blog.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet, HashMap},
};

use crate::{
    folder::{join, relative},
    html::{Targets, shortened},
    media::Media,
    slug::{decoded, encoded},
};

/// The placeholder for the blog's own address in Ghost's exports.
const GHOST_URL: &str = "__GHOST_URL__";

/// Servers of WordPress's that send reduced pictures of other sites, whose address follows theirs.
const PROXIES: [&str; 4] = ["i0.wp.com", "i1.wp.com", "i2.wp.com", "i3.wp.com"];

/// Knows which address leads where.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// The hosts of the old site, without `www.`.
    hosts: BTreeSet<String>,
    /// The scheme and authority of the old site, if they are known.
    origin: Option<String>,
    /// New addresses by old path, without a slash at the end.
    known: HashMap<String, String>,
    /// New addresses by path in the source of a site.
    sources: HashMap<String, String>,
    pub(crate) media: Media,
    /// Addresses of the old site's own files that are not at hand.
    missing: RefCell<BTreeSet<String>>,
    /// Addresses of reduced pictures, and the pictures.
    reduced: RefCell<BTreeMap<String, String>>,
    elsewhere: Cell<usize>,
}

/// An address on the old site.
#[derive(Debug, PartialEq, Eq)]
struct Local {
    /// The path, decoded.
    path: String,
    /// The query and the fragment as they were written.
    suffix: String,
}

impl Addresses {
    /// Notes an address of the old site. Returns the path in it, without a slash at the end.
    pub(crate) fn add_site(&mut self, url: &str) -> String {
        let Some((scheme, rest)) = url.split_once("://") else { return String::new() };
        let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
        if authority.is_empty() {
            return String::new();
        }
        self.hosts.insert(bare(authority));
        self.origin.get_or_insert_with(|| format!("{scheme}://{authority}"));
        let path = path.trim_matches('/');
        if path.is_empty() { String::new() } else { format!("/{path}") }
    }

    pub(crate) fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// Notes where an old path leads.
    pub(crate) fn insert(&mut self, old: &str, new: &str) {
        self.known.insert(key(&decoded(old)), new.to_owned());
    }

    pub(crate) fn insert_source(&mut self, source: &str, new: &str) {
        self.sources.insert(source.to_owned(), new.to_owned());
    }

    pub(crate) fn find_source(&self, source: &str) -> Option<&str> {
        self.sources.get(source).map(String::as_str)
    }

    /// Returns the address of the text whose file has a name, in whatever folder, if there is one such file alone.
    pub(crate) fn find_named(&self, name: &str) -> Option<&str> {
        let (file, folder) = (format!("/{name}.md"), format!("/{name}/index.md"));
        let mut found = self
            .sources
            .iter()
            .filter(|(source, _)| source.ends_with(&file) || source.ends_with(&folder))
            .map(|(_, address)| address.as_str());
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }

    pub(crate) fn find(&self, old: &str) -> Option<&str> {
        self.known.get(&key(old)).map(String::as_str)
    }

    /// Returns the path of an address of the old site; `None` for others.
    pub(crate) fn path_of(&self, url: &str) -> Option<String> {
        self.local(url).map(|local| local.path)
    }

    pub(crate) fn missing(&self) -> Vec<String> {
        self.missing.borrow().iter().cloned().collect()
    }

    pub(crate) fn reduced(&self) -> Vec<(String, String)> {
        self.reduced.borrow().iter().map(|(from, to)| (from.clone(), to.clone())).collect()
    }

    /// Returns how many pictures stay on other hosts.
    pub(crate) const fn elsewhere(&self) -> usize {
        self.elsewhere.get()
    }

    fn local(&self, url: &str) -> Option<Local> {
        let url = url.trim();
        let rest = if let Some(rest) = url.strip_prefix(GHOST_URL) {
            rest
        } else if let Some(rest) = url.strip_prefix("//").or_else(|| url.strip_prefix("http://")).or_else(|| url.strip_prefix("https://")) {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            if PROXIES.contains(&authority) {
                let path = path.split('?').next().unwrap_or(path);
                let (host, inner) = path.trim_start_matches('/').split_once('/')?;
                return self.hosts.contains(&bare(host)).then(|| Local { path: decoded(&format!("/{inner}")), suffix: String::new() });
            }
            if !self.hosts.contains(&bare(authority)) {
                return None;
            }
            path
        } else if url.starts_with('/') {
            url
        } else {
            return None;
        };
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        let (path, suffix) = rest.split_at(end);
        let path = if path.is_empty() { "/".to_owned() } else { decoded(path) };
        let path = if path.split('/').any(|name| matches!(name, "." | "..")) {
            format!("/{}", join("", path.trim_start_matches('/')).unwrap_or_default())
        } else {
            path
        };
        Some(Local { path, suffix: suffix.to_owned() })
    }

    /// Returns the new address of a local one.
    fn new_address(&self, local: &Local) -> String {
        let Local { path, suffix } = local;
        let (query, fragment) = suffix.find('#').map_or((suffix.as_str(), ""), |at| suffix.split_at(at));
        if !query.is_empty()
            && let Some(new) = self.known.get(&format!("{}{}", key(path), query))
        {
            return format!("{}{fragment}", encoded(new));
        }
        if let Some(name) = self.file(path) {
            return format!("/{}{fragment}", encoded(&name));
        }
        let new = self.find(path).map_or_else(|| path.clone(), str::to_owned);
        format!("{}{suffix}", encoded(&new))
    }

    /// Returns the name of the file that had an address.
    fn file(&self, path: &str) -> Option<String> {
        let name = self.media.find(path)?.to_owned();
        if name != path.trim_start_matches('/') {
            self.reduced.borrow_mut().insert(path.to_owned(), format!("/{name}"));
        }
        Some(name)
    }
}

fn bare(authority: &str) -> String {
    let authority = authority.rsplit('@').next().unwrap_or(authority).to_ascii_lowercase();
    authority.strip_prefix("www.").map(str::to_owned).unwrap_or(authority)
}

fn key(path: &str) -> String {
    if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path.to_owned() }
}

/// The addresses as one text sees them.
#[derive(Debug)]
pub(crate) struct Links<'a> {
    pub(crate) addresses: &'a Addresses,
    /// The folder of the text's new file.
    pub(crate) folder: &'a str,
    /// The path at which the text was.
    pub(crate) old: &'a str,
    /// The folder of the text's file in the source of a site.
    pub(crate) source: Option<&'a str>,
    pub(crate) notes: RefCell<Vec<String>>,
}

/// Says what a relative or local address leads to.
enum Lead {
    /// A file of the blog.
    File(String, String),
    /// An address of the blog.
    Address(String),
    /// A file of the old site that is not at hand.
    Missing(String),
    /// Somewhere else.
    Elsewhere,
}

impl<'a> Links<'a> {
    pub(crate) fn new(addresses: &'a Addresses, folder: &'a str, old: Option<&'a str>) -> Self {
        Self {
            addresses,
            folder,
            old: old.filter(|old| !old.split('/').any(|name| name == "..")).unwrap_or("/"),
            source: None,
            notes: RefCell::default(),
        }
    }

    fn lead(&self, url: &str) -> Lead {
        let url = url.trim();
        if url.is_empty() || url.starts_with(['#', '?']) {
            return Lead::Elsewhere;
        }
        let has_scheme = url.split_once(':').is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        });
        let local = match self.addresses.local(url) {
            Some(local) => local,
            None if has_scheme || url.starts_with("//") => return Lead::Elsewhere,
            None => {
                let end = url.find(['?', '#']).unwrap_or(url.len());
                let (path, suffix) = url.split_at(end);
                let path = decoded(path);
                if let Some(name) = self.source.and_then(|folder| join(folder, &path)) {
                    let found = [name.clone(), format!("{name}.md"), format!("{name}/index.md"), format!("{name}/_index.md")];
                    if let Some(new) = found.iter().find_map(|name| self.addresses.find_source(name)) {
                        return Lead::Address(format!("{}{suffix}", encoded(new)));
                    }
                    if let Some(name) = self.addresses.media.find_source(&name) {
                        return Lead::File(name.to_owned(), suffix.to_owned());
                    }
                }
                // What is not a file of the source is meant as the old site's reader saw it.
                let here = self.old.rsplit_once('/').map_or("", |(folder, _)| folder);
                let is_folder = path.ends_with('/');
                let path = join(here, &path).unwrap_or_default();
                Local { path: format!("/{path}{}", if is_folder && !path.is_empty() { "/" } else { "" }), suffix: suffix.to_owned() }
            }
        };
        if let Some(name) = self.addresses.file(&local.path) {
            return Lead::File(name, local.suffix);
        }
        let is_text = self.addresses.find(&local.path).is_some();
        if !is_text && is_file(&local.path) {
            let origin = self.addresses.origin().unwrap_or_default();
            return Lead::Missing(format!("{origin}{}{}", encoded(&local.path), local.suffix));
        }
        Lead::Address(self.addresses.new_address(&local))
    }

    fn missed(&self, url: String) -> String {
        self.addresses.missing.borrow_mut().insert(url.clone());
        url
    }
}

impl Targets for Links<'_> {
    fn link(&self, url: &str) -> String {
        match self.lead(url) {
            Lead::File(name, suffix) => format!("/{}{}", encoded(&name), fragment(&suffix)),
            Lead::Address(address) => address,
            Lead::Missing(url) => self.missed(url),
            Lead::Elsewhere => url.trim().to_owned(),
        }
    }

    fn picture(&self, url: &str) -> String {
        match self.lead(url) {
            Lead::File(name, _) => encoded(&relative(self.folder, &name)),
            Lead::Address(address) => address,
            Lead::Missing(url) => self.missed(url),
            Lead::Elsewhere => {
                self.addresses.elsewhere.set(self.addresses.elsewhere.get() + 1);
                url.trim().to_owned()
            }
        }
    }

    fn address(&self, url: &str) -> String {
        self.link(url)
    }

    fn note(&self, note: String) {
        let mut notes = self.notes.borrow_mut();
        let note = shortened_note(&note);
        if !notes.contains(&note) && notes.len() < NOTES_MAX {
            notes.push(note);
        }
    }
}

/// The largest number of notes on one text.
const NOTES_MAX: usize = 50;

fn shortened_note(note: &str) -> String {
    if note.chars().count() > 300 { shortened(note) } else { note.to_owned() }
}

fn fragment(suffix: &str) -> &str {
    suffix.find('#').map_or("", |at| &suffix[at..])
}

/// Tells whether a path is that of a file other than a page.
fn is_file(path: &str) -> bool {
    let leaf = path.rsplit('/').next().unwrap_or_default();
    let extension = leaf.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| {
        (2..=5).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric())
            && !matches!(&*extension, "html" | "htm" | "php" | "xml" | "md")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_old_site_become_those_of_the_blog() {
        let mut addresses = Addresses::default();
        assert_eq!(addresses.add_site("https://www.old.example/blog/"), "/blog");
        addresses.insert("/blog/2019/05/hello.html", "/hello/");
        addresses.insert("/?p=12", "/hello/");
        addresses.insert("/tag/x/", "/tags/x/");
        let links = Links::new(&addresses, "posts", Some("/blog/2019/05/hello.html"));
        let cases = [
            ("https://old.example/blog/2019/05/hello.html#part", "/hello/#part"),
            ("http://www.old.example/?p=12", "/hello/"),
            ("__GHOST_URL__/tag/x/", "/tags/x/"),
            ("/tag/x", "/tags/x/"),
            ("//old.example/unknown/?a=b", "/unknown/?a=b"),
            ("https://old.example", "/"),
            ("https://other.example/blog/", "https://other.example/blog/"),
            ("#part", "#part"),
            ("mailto:a@b.example", "mailto:a@b.example"),
            ("hello.html", "/hello/"),
            ("../06/next/", "/blog/2019/06/next/"),
            ("https://old.example/a.jpg", "https://www.old.example/a.jpg"),
            ("../../../../../../etc/passwd", "/"),
        ];
        for (url, expected) in cases {
            assert_eq!(links.link(url), expected, "{url}");
        }
        assert_eq!(addresses.missing(), ["https://www.old.example/a.jpg"]);
    }
}
