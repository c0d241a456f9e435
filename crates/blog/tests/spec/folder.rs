//! A blog's folder in the hands of its author.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::Path,
    time::{Duration, SystemTime},
};

use blog::{Blog, BlogOptions, Problem, Rebuilt, Site, SiteResource};
use semantics::Timestamp;

/// 1 October 2026.
pub(crate) const NOW: Timestamp = Timestamp::from_secs(1_790_812_800);

const BASE: &str = "http://blog.test";

/// A folder, and a clock that dates the files in it: each is a second younger than the one that was written before.
pub(crate) struct Folder {
    root: tempfile::TempDir,
    seconds: Cell<u64>,
}

impl Folder {
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let folder = Self { root: tempfile::tempdir().expect("a folder"), seconds: Cell::new(1_600_000_000) };
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("inside")).expect("made");
        fs::write(&path, content).expect("written");
        self.seconds.set(self.seconds.get() + 1);
        // Not whole: a file system that counts in seconds is another story.
        let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(self.seconds.get() * 1000 + 500);
        File::options().write(true).open(&path).and_then(|file| file.set_modified(modified)).expect("dated");
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(name)).expect("removed");
    }

    pub(crate) fn blog(&self) -> Blog {
        self.blog_with(BlogOptions::default())
    }

    pub(crate) fn blog_with(&self, options: BlogOptions) -> Blog {
        Blog::open(self.path(), options, NOW).expect("opens")
    }
}

/// Returns everything that can be asked for, with its answer: every address, and those that redirect because of a slash.
pub(crate) fn answers(site: &Site) -> BTreeMap<String, String> {
    let mut answers = BTreeMap::new();
    for (path, _) in site.addresses() {
        let markdown = site.markdown(path, BASE).map_or_else(String::new, |page| String::from_utf8_lossy(&page.body).into_owned());
        let found = site.find(path, BASE).expect("an answer at each address");
        answers.insert(path.to_owned(), text_of(found) + &markdown);
        if let Some(bare) = path.strip_suffix('/').filter(|bare| !bare.is_empty() && !site.contains(bare)) {
            answers.insert(bare.to_owned(), format!("moved to {path}"));
        }
    }
    answers
}

/// Returns what authors see beside that.
pub(crate) fn drafts(site: &Site) -> Vec<(&str, &str, String)> {
    let text = |path| text_of(site.draft(path, BASE).expect("a draft at its path"));
    site.drafts().map(|draft| (draft.path, draft.title, text(draft.path))).collect()
}

/// Returns the paths whose answers differ.
pub(crate) fn differing(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    paths.into_iter().filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

fn text_of(found: SiteResource<'_>) -> String {
    match found {
        SiteResource::Page(page) => String::from_utf8_lossy(&page.body).into_owned(),
        SiteResource::File(file) => format!("a file with {}", file.etag),
        SiteResource::Picture(wanted) => format!("a picture: {wanted:?}"),
        SiteResource::Moved(path) => format!("moved to {path}"),
        SiteResource::Card(card) => format!("a card at {}", card.path()),
    }
}

pub(crate) fn page(blog: &Blog, path: &str) -> String {
    blog.site().find(path, BASE).map_or_else(|| format!("nothing at {path}"), text_of)
}

/// Looks at the folder again at `now`, and tells what changed.
pub(crate) fn rebuilt_at(blog: &Blog, now: Timestamp) -> Rebuilt {
    blog.rebuild(now).expect("rebuilt")
}

pub(crate) fn rebuilt(blog: &Blog) -> Rebuilt {
    rebuilt_at(blog, NOW)
}

pub(crate) fn lines(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}
