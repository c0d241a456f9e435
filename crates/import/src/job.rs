//! One import under way, whatever the engine: the folder that is filled, what leads where, and the account.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
    fs::File,
    io::{BufWriter, Write as _},
};

use serde::Serialize;

use crate::{
    error::ImportError,
    folder::Folder,
    links::Addresses,
    location::{Location, TakenLocations},
    report::{Entry, Outcome, Redirect, Report, TextEntry},
    slug::{encoded, tag_slug},
    text::{Front, quoted},
};

/// The largest file that the blog reads as a text.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The blog's limits for `_redirects`: rules, bytes of the file, bytes of a line.
const RULES_MAX: usize = 5_000;
const RULES_BYTES_MAX: usize = 1_000_000;
const RULE_BYTES_MAX: usize = 2_000;

/// The folder with what is kept and never published.
const KEPT: &str = ".import";

/// Somebody who wrote texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) name: String,
    pub(crate) bio: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) picture: Option<String>,
}

/// Holds what `blog.toml` says.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) language: Option<String>,
    /// The authors, by the name that texts call them.
    pub(crate) authors: BTreeMap<String, Author>,
    /// Titles and addresses.
    pub(crate) navigation: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) folder: Folder,
    pub(crate) report: Report,
    pub(crate) addresses: Addresses,
    pub(crate) places: TakenLocations,
    pub(crate) settings: Settings,
    comments: Option<BufWriter<File>>,
    redirected: HashSet<String>,
}

impl Job {
    pub(crate) fn new(folder: Folder) -> Self {
        Self {
            folder,
            report: Report::default(),
            addresses: Addresses::default(),
            places: TakenLocations::default(),
            settings: Settings::default(),
            comments: None,
            redirected: HashSet::new(),
        }
    }

    /// Notes that an old path leads elsewhere now.
    pub(crate) fn redirect(&mut self, from: &str, to: &str) {
        self.addresses.insert(from, to);
        self.redirect_pattern(&encoded(from), to);
    }

    /// Notes a redirect for many paths.
    pub(crate) fn redirect_pattern(&mut self, from: &str, to: &str) {
        let is_circle = from.trim_end_matches('/') == to.trim_end_matches('/');
        if !is_circle && self.redirected.insert(from.to_owned()) {
            self.report.redirects.push(Redirect { from: from.to_owned(), to: to.to_owned() });
        }
    }

    /// Returns the tag's address in the blog; `None` if the blog cannot have the tag.
    pub(crate) fn tag(&mut self, name: &str) -> Option<String> {
        let slug = tag_slug(name);
        let known = self.report.tags.iter().any(|tag| tag.name == name);
        let new = (!slug.is_empty()).then(|| format!("/tags/{slug}/"));
        if !known {
            let why = new.is_none().then(|| "it has neither letter nor digit to make an address of".to_owned());
            let outcome = if new.is_some() { Outcome::Written } else { Outcome::LeftOut };
            self.report.tags.push(Entry { name: name.to_owned(), new: new.clone(), outcome, why });
        }
        new
    }

    /// Writes a text, and accounts for it.
    pub(crate) fn write(&mut self, location: &Location, mut front: Front, body: &str, mut entry: TextEntry) -> Result<(), ImportError> {
        location.set(&mut front);
        front.tags.retain(|tag| !tag_slug(tag).is_empty());
        if front.title.trim().is_empty() {
            front.title = location.address.trim_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
            entry.notes.push("has no title; its address stands for it".to_owned());
        }
        let file = front.file(body);
        if file.len() > TEXT_BYTES_MAX {
            entry.notes.push(format!("is larger than {} MiB, so the blog leaves it out; split it", TEXT_BYTES_MAX / 1024 / 1024));
        }
        self.folder.write(&location.file, file.as_bytes())?;
        entry.outcome = if front.draft { Outcome::Draft } else { Outcome::Written };
        entry.old.clone_from(&location.old);
        entry.new = Some(location.address.clone());
        entry.file = Some(location.file.clone());
        self.report.texts.push(entry);
        Ok(())
    }

    /// Keeps a comment in a file that is not published.
    pub(crate) fn keep_comment(&mut self, comment: &impl Serialize) -> Result<(), ImportError> {
        let name = format!("{KEPT}/comments.jsonl");
        if self.comments.is_none() {
            self.comments = Some(BufWriter::new(self.folder.private(&name)?));
            self.report.comments.file = Some(name.clone());
        }
        if let Some(file) = &mut self.comments {
            let line = serde_json::to_string(comment).unwrap_or_default();
            writeln!(file, "{line}").map_err(|source| ImportError::Write { path: self.folder.root().join(name), source })?;
        }
        self.report.comments.count += 1;
        Ok(())
    }

    /// Writes what belongs to the blog as a whole.
    pub(crate) fn finish(&mut self) -> Result<(), ImportError> {
        if let Some(mut file) = self.comments.take() {
            let path = self.folder.root().join(KEPT);
            file.flush().map_err(|source| ImportError::Write { path, source })?;
        }
        for url in self.addresses.missing() {
            let why = "is not in the folder of uploads; texts show it at this address. `--content FOLDER` copies such files";
            self.report.files.push(Entry { name: url, new: None, outcome: Outcome::LeftOut, why: Some(why.to_owned()) });
        }
        match self.addresses.elsewhere() {
            0 => {}
            count => self.report.notes.push(format!("pictures on other sites, which stay there: {count}")),
        }
        for (from, to) in self.addresses.reduced() {
            if !self.is_covered(&from) {
                self.redirect_pattern(&encoded(&from), &encoded(&to));
            }
        }
        let written: Vec<String> = self.report.texts.iter().filter_map(|text| text.new.clone()).collect();
        let taken: HashSet<&str> = written.iter().map(|address| address.trim_end_matches('/')).collect();
        self.report.redirects.retain(|redirect| !taken.contains(redirect.from.trim_end_matches('/')));
        self.write_redirects()?;
        let toml = self.settings.file();
        self.folder.write("blog.toml", toml.as_bytes())?;
        self.report.title = self.settings.title.clone().unwrap_or_default();
        let report = serde_json::to_vec_pretty(&self.report).unwrap_or_default();
        let mut file = self.folder.private(&format!("{KEPT}/report.json"))?;
        file.write_all(&report).map_err(|source| ImportError::Write { path: self.folder.root().join(KEPT), source })
    }

    /// Tells whether a pattern that was noted already leads from a path of Ghost's reduced pictures.
    fn is_covered(&self, from: &str) -> bool {
        from.contains("/size/") && self.report.redirects.iter().any(|redirect| redirect.from.contains("/size/:size/"))
    }

    fn write_redirects(&mut self) -> Result<(), ImportError> {
        // A placeholder takes what a later line would have, so that plain paths come first, and longer patterns before shorter ones.
        let rank = |redirect: &Redirect| {
            let is_pattern = redirect.from.contains("/:") || redirect.from.contains('*');
            (is_pattern, redirect.from.contains('*'), usize::MAX - redirect.from.len())
        };
        self.report.redirects.sort_by_key(rank);
        let mut file = String::new();
        let mut left = 0;
        for (number, Redirect { from, to }) in self.report.redirects.iter().enumerate() {
            let line = format!("{from} {to} 301\n");
            let is_plain = !from.contains([' ', '?', '#']) && (!from.contains('*') || from.ends_with("/*"));
            if !is_plain || number >= RULES_MAX || line.len() > RULE_BYTES_MAX || file.len() + line.len() > RULES_BYTES_MAX {
                left += 1;
            } else {
                file.push_str(&line);
            }
        }
        self.report.left_out("redirects", left, "`_redirects` holds 5,000 rules of paths; the report has them");
        if file.is_empty() { Ok(()) } else { self.folder.write("_redirects", file.as_bytes()) }
    }
}

impl Settings {
    fn file(&self) -> String {
        // Writing to a String cannot fail.
        let mut file = String::new();
        let author = (self.authors.len() == 1).then(|| self.authors.values().next().map(|author| author.name.clone())).flatten();
        let language = self.language.as_ref().map(|language| language.replace('_', "-"));
        let language =
            language.filter(|tag| !tag.is_empty() && tag.len() <= 35 && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
        for (key, value) in [("title", &self.title), ("description", &self.description), ("author", &author), ("language", &language)] {
            if let Some(value) = value.as_ref().filter(|value| !value.trim().is_empty()) {
                let _ = writeln!(file, "{key} = {}", quoted(value));
            }
        }
        if !self.navigation.is_empty() {
            let _ = writeln!(file, "\nnavigation = [");
            for (title, url) in &self.navigation {
                let _ = writeln!(file, "    {{ title = {}, url = {} }},", quoted(title), quoted(url));
            }
            let _ = writeln!(file, "]");
        }
        for (key, author) in &self.authors {
            let _ = writeln!(file, "\n[authors.{}]\nname = {}", quoted(key), quoted(&author.name));
            for (key, value) in [("bio", &author.bio), ("url", &author.url), ("picture", &author.picture)] {
                if let Some(value) = value.as_ref().filter(|value| !value.trim().is_empty()) {
                    let _ = writeln!(file, "{key} = {}", quoted(value));
                }
            }
        }
        file
    }
}
