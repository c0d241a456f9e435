//! The site: every address with its answer, built whole.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::SystemTime,
};

use bytes::Bytes;
use http::StatusCode;
use semantics::Timestamp;

use crate::{
    blog::Rebuilt,
    card::{self, Card},
    config::{self, BlogOptions},
    context::{page_path, pages_of},
    digest::{entity_tag, fingerprint},
    error::{BuildError, Problem},
    feed::BASE,
    gallery::{Shown, Wanted},
    head::cover,
    large_file::LargeFile,
    links::{self, LeftOut},
    machine::Machine,
    markdown_form,
    memory::Memory,
    model::{Model, year_path},
    parallel,
    post::{Post, Standing},
    search,
    static_file::StaticFile,
    view::{LIST_LINES, LIST_TAGS, View},
};

const HTML: &str = "text/html; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// The number of pages that a rebuild draws to see whether they are other pages than before. If more may differ, all of them count as changed:
/// drawing them would take longer than drawing those for which somebody asks.
const COMPARED_MAX: usize = 256;

/// Texts for programs that stay in memory as they were written, and their bytes.
const WRITTEN_MAX: usize = 64;
const WRITTEN_BYTES_MAX: usize = 16 << 20;

/// Kinds of pages. Callers decide by them how long a page is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// A list of posts: the front page and those that continue it.
    Index,
    /// A post.
    Post,
    /// A page in the navigation of the header, which the index does not list.
    Page,
    /// The posts of a tag, or the list of tags.
    Tag,
    /// Another list: the archive, a year, the authors, an author, a series; and the page for searching.
    List,
    /// The feed, `/feed.xml`.
    Feed,
    /// The sitemap, `/sitemap.xml`.
    Sitemap,
    /// The rules for crawlers, `/robots.txt`.
    Robots,
    /// Another text for programs: `/llms.txt`, and the index of the search.
    Text,
    /// A picture in one of the sizes and forms in which pages show it. Its address changes with its content.
    Picture,
    /// A part of the theme. Its address changes with its content, so what is at one address never changes.
    Asset,
    /// A file of the author.
    File,
    /// The way from an address that a text had before to the one that it has.
    Moved,
    /// The answer for addresses that do not exist.
    NotFound,
}

impl PageKind {
    /// Tells whether what is at such an address never changes, as another content has another address.
    #[must_use]
    pub const fn is_immutable(self) -> bool {
        matches!(self, Self::Asset | Self::Picture)
    }
}

/// An answer, ready to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The status: 404 for the page that says so, 200 for all others.
    pub status: StatusCode,
    /// The media type, with its charset.
    pub content_type: &'static str,
    /// The whole content.
    pub body: Bytes,
    /// A strong entity tag with its quotes, made from the content (RFC 9110 §8.8.3).
    pub etag: String,
    /// The kind of the page.
    pub kind: PageKind,
}

impl Page {
    fn new(kind: PageKind, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self { status: StatusCode::OK, content_type, etag: entity_tag(&body), body, kind }
    }
}

/// What is at an address.
#[derive(Debug)]
pub enum Found<'s> {
    /// A page, with everything in it.
    Page(Page),
    /// A file that is too large to hold in memory.
    File(&'s LargeFile),
    /// A picture that is made when it is asked for.
    Picture(&'s Wanted),
    /// Nothing but the way to where it is now: this path.
    Moved(&'s str),
    /// A picture that is drawn when it is asked for. Its address is that of its content.
    Card(Card),
}

/// A text that readers do not see yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draft<'s> {
    /// The path at which [`Site::draft`] finds it, which will be its address.
    pub path: &'s str,
    /// The title.
    pub title: &'s str,
    /// The path of its file in the folder.
    pub file: &'s str,
    /// When it is published by itself, if its date lies ahead.
    pub due: Option<jiff::Timestamp>,
}

/// A whole site: its addresses, and the model of which their answers are made when somebody asks. Two builds of an unchanged folder have the
/// same answers.
#[derive(Debug)]
pub struct Site {
    model: Model,
    /// What answers at a path, which is percent-decoded and begins with `/`.
    addresses: BTreeMap<String, Address>,
    /// What answers at the paths of texts and files that only their authors see.
    drafts: BTreeMap<String, Address>,
    pictures: Vec<Arc<Shown>>,
    /// A number that differs if the answer for addresses that do not exist would differ.
    not_found: u128,
    problems: Vec<Problem>,
    next_due: Option<jiff::Timestamp>,
    /// The index of the search once somebody asked for it: it is the same whatever the scheme and authority, and the most work of all.
    search_index: OnceLock<Page>,
    /// Texts for programs that were written, with [`BASE`] where absolute addresses begin: another name of the host costs no other writing.
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Address {
    kind: PageKind,
    content: Content,
    /// A number that differs if the answer would differ.
    fingerprint: u128,
}

impl Address {
    /// Returns what differs if the answer may differ.
    const fn version(&self) -> (PageKind, u128) {
        (self.kind, self.fingerprint)
    }
}

/// Contents of addresses. Whatever can be made of the model is made when it is asked for: the cache in front keeps it.
#[derive(Debug)]
enum Content {
    View(View),
    Machine(Machine),
    Held {
        content_type: &'static str,
        body: Bytes,
        etag: String,
    },
    File(LargeFile),
    Picture(Wanted),
    /// The path of where it is now.
    Moved(String),
    Card(Subject),
}

/// What a card is about.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Site,
    /// A post, by its place in [`Model::posts`].
    Post(usize),
    /// A page, by its place in [`Model::pages`].
    Page(usize),
}

/// Texts that were written last, of [`WRITTEN_BYTES_MAX`] together at most.
#[derive(Debug, Default)]
struct Written {
    texts: VecDeque<(Machine, Arc<str>)>,
    bytes: usize,
}

impl Written {
    fn get(&self, machine: &Machine) -> Option<Arc<str>> {
        self.texts.iter().find(|(of, _)| of == machine).map(|(_, text)| Arc::clone(text))
    }

    fn keep(&mut self, machine: Machine, text: &Arc<str>) {
        if text.len() > WRITTEN_BYTES_MAX || self.get(&machine).is_some() {
            return;
        }
        self.bytes += text.len();
        self.texts.push_back((machine, Arc::clone(text)));
        while self.bytes > WRITTEN_BYTES_MAX || self.texts.len() > WRITTEN_MAX {
            let Some((_, oldest)) = self.texts.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }
}

impl Subject {
    fn card(self, model: &Model) -> Card {
        match self {
            Self::Site => Card::of_site(model),
            Self::Post(index) => Card::of_post(model, &model.posts[index]),
            Self::Page(index) => Card::of_post(model, &model.pages[index]),
        }
    }

    /// Returns the title on the card, and the file that says it.
    fn title(self, model: &Model) -> (&str, &str) {
        let text = match self {
            Self::Site => return (config::FILE_NAME, &model.settings.title),
            Self::Post(index) => &model.posts[index],
            Self::Page(index) => &model.pages[index],
        };
        (&text.name, &text.title)
    }
}

impl Site {
    pub(crate) fn new(
        model: Model,
        files: Vec<StaticFile>,
        pictures: Vec<Arc<Shown>>,
        mut problems: Vec<Problem>,
        left_out: &[LeftOut],
        next_due: Option<jiff::Timestamp>,
    ) -> Self {
        let Tables { addresses, drafts, problems: more } = Tables::new(&model, files, &pictures, left_out);
        problems.extend(more);
        problems.sort_by(|a, b| (&a.file, a.line, a.severity).cmp(&(&b.file, b.line, b.severity)));
        let site = Self {
            model,
            addresses,
            drafts,
            pictures,
            not_found: 0,
            problems,
            next_due,
            search_index: OnceLock::new(),
            written: Mutex::default(),
        };
        Self { not_found: fingerprint(&site.not_found("").body), ..site }
    }

    /// Returns the pictures of which texts show variants.
    pub(crate) fn pictures(&self) -> &[Arc<Shown>] {
        &self.pictures
    }

    /// Returns what is at `path`, or `None` if there is nothing. `base` is the scheme and authority by which the site was asked.
    #[must_use]
    pub fn find(&self, path: &str, base: &str) -> Option<Found<'_>> {
        Some(self.found(self.addresses.get(path)?, base))
    }

    /// Returns what only authors see at `path`: a draft, a post whose time has not come, or a file beside one. Its links to others of this
    /// kind are relative, so that they hold wherever it is shown.
    #[must_use]
    pub fn draft(&self, path: &str, base: &str) -> Option<Found<'_>> {
        Some(self.found(self.drafts.get(path)?, base))
    }

    /// Returns all texts that only their authors see, newest first. With [`BlogOptions::drafts`] there are none, as all are published.
    pub fn drafts(&self) -> impl Iterator<Item = Draft<'_>> {
        self.model.drafts.iter().map(|post| Draft {
            path: &post.path,
            title: &post.title,
            file: &post.name,
            due: if let Standing::Due(due) = post.standing { Some(due) } else { None },
        })
    }

    fn found<'s>(&'s self, address: &'s Address, base: &str) -> Found<'s> {
        let Address { kind, content, .. } = address;
        match content {
            Content::View(view) => Found::Page(self.page(*kind, HTML, &view.draw(&self.model), base)),
            Content::Machine(Machine::Search) => {
                let written = || self.page(*kind, Machine::Search.content_type(), &Machine::Search.write(&self.model), base);
                Found::Page(self.search_index.get_or_init(written).clone())
            }
            Content::Machine(machine) => Found::Page(self.page(*kind, machine.content_type(), &self.written(machine), base)),
            Content::Held { content_type, body, etag } => {
                Found::Page(Page { status: StatusCode::OK, content_type, body: body.clone(), etag: etag.clone(), kind: *kind })
            }
            Content::File(file) => Found::File(file),
            Content::Picture(wanted) => Found::Picture(wanted),
            Content::Moved(path) => Found::Moved(path),
            Content::Card(subject) => Found::Card(subject.card(&self.model)),
        }
    }

    /// Returns a text for programs as it was written before, or writes it.
    fn written(&self, machine: &Machine) -> Arc<str> {
        let lock = || self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = lock().get(machine) {
            return text;
        }
        let text: Arc<str> = machine.write(&self.model).into();
        lock().keep(machine.clone(), &text);
        text
    }

    /// Returns the answer for an address at which there is nothing.
    #[must_use]
    pub fn not_found(&self, base: &str) -> Page {
        let page = self.page(PageKind::NotFound, HTML, &View::NotFound.draw(&self.model), base);
        Page { status: StatusCode::NOT_FOUND, ..page }
    }

    /// Returns where a reader of `path` ends up within the site: there, or where it has moved to. `None`: there is nothing.
    pub(crate) fn end_of<'s>(&'s self, path: &'s str) -> Option<&'s str> {
        Some(match &self.addresses.get(path)?.content {
            Content::Moved(to) => to,
            Content::View(_) | Content::Machine(_) | Content::Held { .. } | Content::File(_) | Content::Card(_) | Content::Picture(_) => {
                path
            }
        })
    }

    /// Returns the public address of the blog, if its settings have one.
    #[must_use]
    pub fn base_url(&self) -> Option<&str> {
        self.model.settings.base_url.as_deref()
    }

    /// Returns the Markdown of the post or page at `path`, if there is one.
    #[must_use]
    pub fn markdown(&self, path: &str, base: &str) -> Option<Page> {
        self.markdown_of(self.addresses.get(path)?, base)
    }

    fn markdown_of(&self, address: &Address, base: &str) -> Option<Page> {
        let Address { kind, content: Content::View(view), .. } = address else { return None };
        let post = match *view {
            View::Post(index) => self.model.posts.get(index)?,
            View::Page(index) => self.model.pages.get(index)?,
            _ => return None,
        };
        Some(self.page(*kind, MARKDOWN, &markdown_form::of(post), base))
    }

    /// Returns a number that differs if the page at `path` would look different: by itself, or by a file of the author that it may show.
    pub(crate) fn version(&self, path: &str) -> u128 {
        fingerprint(&(self.addresses.get(path).map_or(self.not_found, |address| address.fingerprint), self.files_version()))
    }

    /// Returns the [version](Self::version) of what only authors see at `path`.
    pub(crate) fn draft_version(&self, path: &str) -> u128 {
        fingerprint(&(self.drafts.get(path).map_or(self.not_found, |address| address.fingerprint), self.files_version()))
    }

    fn files_version(&self) -> u128 {
        let files = self.addresses.iter().chain(&self.drafts).filter(|(_, address)| address.kind == PageKind::File);
        fingerprint(&files.map(|(path, address)| (path, address.fingerprint)).collect::<Vec<_>>())
    }

    /// Tells whether what is at `path` is made of many texts, which can take longer than a worker's loop may stand still.
    pub(crate) fn takes_long(&self, path: &str) -> bool {
        let content = self.addresses.get(path).map(|address| &address.content);
        matches!(content, Some(Content::Machine(_)))
    }

    /// Tells whether there is something at `path`.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        self.addresses.contains_key(path)
    }

    /// Returns every address with the kind of its page, in order.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, PageKind)> {
        self.addresses.iter().map(|(path, address)| (path.as_str(), address.kind))
    }

    /// Returns every problem of the folder, ordered by file and line.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the time at which the next post becomes due, if there is one to come.
    #[must_use]
    pub const fn next_due(&self) -> Option<jiff::Timestamp> {
        self.next_due
    }

    /// Returns every path that answers differently in `other`, in order.
    ///
    /// A page that came or went is named without its slash as well: that address redirects to it, or did.
    #[must_use]
    pub fn changed_paths(&self, other: &Self) -> Vec<String> {
        self.changed(other, |site| &site.addresses)
    }

    fn changed(&self, new: &Self, table: fn(&Self) -> &BTreeMap<String, Address>) -> Vec<String> {
        let (olds, news) = (table(self), table(new));
        let differs = |path: &&String| olds.get(*path).map(Address::version) != news.get(*path).map(Address::version);
        let suspects: BTreeSet<&String> = olds.keys().chain(news.keys()).filter(differs).collect();
        let is_compared = suspects.len() <= COMPARED_MAX;
        let mut paths = BTreeSet::new();
        for path in suspects {
            if let (Some(old), Some(other)) = (olds.get(path), news.get(path)) {
                if is_compared && self.is_drawn_alike(old, new, other) {
                    continue;
                }
            } else if let Some(bare) = path.strip_suffix('/').filter(|bare| !bare.is_empty()) {
                paths.insert(bare.to_owned());
            }
            paths.insert(path.clone());
        }
        paths.into_iter().collect()
    }

    /// Draws the page at `old` of this site and at `other` of the site `new`, and tells whether both look the same. They can, though they are made of
    /// different values: a template need not show all that it is given.
    fn is_drawn_alike(&self, old: &Address, new: &Self, other: &Address) -> bool {
        let drawn = |site: &Self, address: &Address| {
            let is_drawn = matches!(address.content, Content::View(_));
            let Found::Page(page) = is_drawn.then(|| site.found(address, ""))? else { return None };
            Some((page, site.markdown_of(address, "")))
        };
        drawn(self, old).is_some_and(|page| drawn(new, other).is_some_and(|other| page == other))
    }

    /// Compares this site with the `new` one that replaces it: returns the pages and drafts that changed, and the problems that came and went.
    pub(crate) fn difference(&self, new: &Self) -> Rebuilt {
        let problems = not_among(&new.problems, &self.problems);
        let mut mended = not_among(&self.problems, &new.problems);
        // A file with a new mistake is not read any further, so nobody knows what else is still wrong in it.
        mended.retain(|gone| problems.iter().all(|problem| problem.is_warning() || problem.file != gone.file));
        Rebuilt {
            paths: self.changed_paths(new),
            drafts: self.changed(new, |site| &site.drafts),
            not_found: self.not_found != new.not_found,
            problems,
            mended,
            ..Rebuilt::default()
        }
    }

    #[cfg(test)]
    pub(crate) const fn model(&self) -> &Model {
        &self.model
    }

    /// Makes a page of a text in which addresses that must be absolute begin with [`BASE`].
    fn page(&self, kind: PageKind, content_type: &'static str, text: &str, base: &str) -> Page {
        let base = self.model.settings.base_url.as_deref().unwrap_or(base);
        Page::new(kind, content_type, text.replace(BASE, base))
    }
}

/// Returns the problems in `some` that are not in `others`. A problem that has only moved to another line counts as the same.
pub(crate) fn not_among(some: &[Problem], others: &[Problem]) -> Vec<Problem> {
    let mut counts: HashMap<_, usize> = HashMap::new();
    for problem in others {
        *counts.entry(problem.key()).or_default() += 1;
    }
    let mut found = Vec::new();
    for problem in some {
        match counts.get_mut(&problem.key()) {
            Some(count) if *count > 0 => *count -= 1,
            _ => found.push(problem.clone()),
        }
    }
    found
}

/// Reads `folder` and makes the site. A post whose date lies after `now` is not published yet; a text with a problem is left out
/// ([`Site::problems`]).
///
/// Depends on nothing but the folder's content, its modification times, `options` and `now`.
///
/// # Errors
/// When the folder cannot be listed, or `blog.toml` is wrong.
pub fn build(folder: &Path, options: &BlogOptions, now: Timestamp) -> Result<Site, BuildError> {
    Memory::new(folder.to_owned(), options.clone()).build(now).map(|(site, _)| site)
}

/// Makes a site, as [`build`] does, from Markdown texts: pairs of a path in the folder, with `/` between names, and its text. It does not
/// touch the disk. Without a title, the blog is called `Blog`.
///
/// # Errors
/// As [`build`].
pub fn build_texts(texts: &[(&str, &str)], options: &BlogOptions, now: Timestamp) -> Result<Site, BuildError> {
    let title = options.title.clone().or_else(|| Some("Blog".to_owned()));
    Memory::new(PathBuf::new(), BlogOptions { title, ..options.clone() }).build_texts(texts, now).map(|(site, _)| site)
}

/// What answers where.
#[derive(Debug, Default)]
struct Tables {
    addresses: BTreeMap<String, Address>,
    drafts: BTreeMap<String, Address>,
    problems: Vec<Problem>,
}

impl Tables {
    fn new(model: &Model, files: Vec<StaticFile>, pictures: &[Arc<Shown>], left_out: &[LeftOut]) -> Self {
        let mut tables = Self::default();
        tables.views(model);
        tables.cards(model);
        for (path, kind, machine) in Machine::all(model) {
            // Whatever has absolute addresses changes with the base.
            let base_url = model.settings.base_url.as_ref().filter(|_| machine.is_absolute());
            let fingerprint = fingerprint(&(machine.fingerprint(model), base_url));
            tables.addresses.insert(path, Address { kind, content: Content::Machine(machine), fingerprint });
        }
        for (path, content_type, body) in model.theme.assets() {
            let etag = entity_tag(&body);
            tables.addresses.insert(path, held(PageKind::Asset, content_type, body, etag));
        }
        for (path, wanted) in pictures.iter().flat_map(Shown::addresses) {
            tables.addresses.insert(path, Address { kind: PageKind::Picture, content: Content::Picture(wanted), fingerprint: 0 });
        }
        for file in files {
            let table = if file.is_draft && !model.settings.drafts { &mut tables.drafts } else { &mut tables.addresses };
            // An author's own robots.txt or feed.xml replaces ours.
            table.insert(file.address(), of_file(file));
        }
        tables.aliases(model);
        let texts = model.posts.iter().chain(&model.pages).map(|text| &**text);
        let problems = links::check(texts, left_out, |path| tables.addresses.contains_key(path));
        tables.problems.extend(problems);
        tables
    }

    /// Adds the pictures of the site and of every text that has none of its own, and the script of the search.
    fn cards(&mut self, model: &Model) {
        let bare = |posts: &[Arc<Post>], subject: fn(usize) -> Subject| -> Vec<Subject> {
            posts.iter().enumerate().filter(|(_, post)| cover(post).is_none()).map(|(index, _)| subject(index)).collect()
        };
        let texts = bare(&model.posts, Subject::Post).into_iter().chain(bare(&model.pages, Subject::Page));
        let subjects: Vec<Subject> = texts.chain([Subject::Site]).collect();
        self.problems.extend(card::warnings(subjects.iter().map(|subject| subject.title(model))));
        for subject in subjects {
            let path = subject.card(model).path();
            let fingerprint = fingerprint(&path);
            self.addresses.insert(path, Address { kind: PageKind::Asset, content: Content::Card(subject), fingerprint });
        }
        let script = Bytes::from_static(search::SCRIPT.as_bytes());
        let etag = entity_tag(&script);
        self.addresses.insert(search::script_path(), held(PageKind::Asset, "text/javascript; charset=utf-8", script, etag));
    }

    fn views(&mut self, model: &Model) {
        let mut views: Vec<(String, PageKind, View)> = Vec::new();
        let mut view = |path: String, kind, view: View| views.push((path, kind, view));
        for (index, post) in model.posts.iter().enumerate() {
            view(post.path.clone(), PageKind::Post, View::Post(index));
        }
        for (index, page) in model.pages.iter().enumerate() {
            view(page.path.clone(), PageKind::Page, View::Page(index));
        }
        view("/archive/".to_owned(), PageKind::List, View::Archive);
        view("/search/".to_owned(), PageKind::List, View::Search);
        let mut list = |path: &str, kind, items, size, page: &dyn Fn(usize) -> View| {
            for number in 1..=pages_of(items, size) {
                view(page_path(path, number), kind, page(number));
            }
        };
        list("/", PageKind::Index, model.posts.len(), model.settings.posts_per_page, &View::Index);
        list("/tags/", PageKind::Tag, model.tags.len(), LIST_TAGS, &View::Tags);
        for (path, group) in &model.tags {
            list(path, PageKind::Tag, group.posts.len(), LIST_LINES, &|number| View::Tag(path.clone(), number));
        }
        for (&year, posts) in &model.years {
            list(&year_path(year), PageKind::List, posts.len(), LIST_LINES, &|number| View::Year(year, number));
        }
        for (path, group) in &model.series {
            list(path, PageKind::List, group.posts.len(), LIST_LINES, &|number| View::Series(path.clone(), number));
        }
        if model.has_authors() {
            list("/authors/", PageKind::List, model.authors.len(), LIST_LINES, &View::Authors);
            for (path, group) in &model.authors {
                list(path, PageKind::List, group.posts.len(), LIST_LINES, &|number| View::Author(path.clone(), number));
            }
        }
        let kind = |draft: &Post| if draft.is_page { PageKind::Page } else { PageKind::Post };
        let drafts = model.drafts.iter().enumerate().map(|(index, draft)| (draft.path.clone(), kind(draft), View::Draft(index)));
        for (list, table) in [(views, &mut self.addresses), (drafts.collect(), &mut self.drafts)] {
            // Whatever has absolute addresses changes with the base.
            let fingerprints = parallel::map(&list, |(.., view)| fingerprint(&(view.fingerprint(model), &model.settings.base_url)));
            // Of two texts at one address, which only drafts can be, the first is seen.
            for ((path, kind, view), fingerprint) in list.into_iter().zip(fingerprints).rev() {
                table.insert(path, Address { kind, content: Content::View(view), fingerprint });
            }
        }
    }

    /// Adds the addresses that texts had before. Whatever is at one of them now wins.
    fn aliases(&mut self, model: &Model) {
        for post in model.posts.iter().chain(&model.pages) {
            for alias in &post.front.aliases {
                let alias = format!("/{}", alias.trim_start_matches('/'));
                if let Some(taken) = self.addresses.get(&alias) {
                    let by = if let Content::Moved(to) = &taken.content { to } else { &alias };
                    let message = format!("the alias {alias} leads to {by} already; remove it, or give the other one another address");
                    self.problems.push(Problem::warning(Path::new(&post.name), None, message));
                    continue;
                }
                let moved =
                    || Address { kind: PageKind::Moved, fingerprint: fingerprint(&post.path), content: Content::Moved(post.path.clone()) };
                // Hugo and Zola make a folder of it, which readers know with its slash.
                let name = alias.rsplit('/').next().unwrap_or_default();
                if !name.is_empty() && !name.contains('.') {
                    self.addresses.entry(format!("{alias}/")).or_insert_with(moved);
                }
                self.addresses.insert(alias, moved());
            }
        }
    }
}

fn held(kind: PageKind, content_type: &'static str, body: Bytes, etag: String) -> Address {
    Address { kind, fingerprint: fingerprint(&(&etag, content_type)), content: Content::Held { content_type, body, etag } }
}

fn of_file(file: StaticFile) -> Address {
    let StaticFile { path, content_type, bytes, modified, etag, body, is_cleaned, .. } = file;
    if let Some(body) = body {
        return held(PageKind::File, content_type, body, etag);
    }
    let fingerprint = fingerprint(&(&etag, content_type));
    let file = LargeFile { path, content_type, bytes, etag, last_modified: SystemTime::into(modified), is_cleaned };
    Address { kind: PageKind::File, content: Content::File(file), fingerprint }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;
    use crate::{feed, slug, starter};

    /// What a site answers everywhere, asked as `http://blog.test`.
    fn pages(site: &Site) -> BTreeMap<String, Page> {
        let page = |path: &str| match site.find(path, "http://blog.test")? {
            Found::Page(page) => Some((path.to_owned(), page)),
            Found::File(_) | Found::Moved(_) | Found::Card(_) | Found::Picture(_) => None,
        };
        site.addresses().filter_map(|(path, _)| page(path)).collect()
    }

    fn built_of(folder: &Path) -> Site {
        build(folder, &BlogOptions::default(), NOW).expect("builds")
    }

    /// A day after the newest date in these tests.
    const NOW: Timestamp = Timestamp::from_secs(1_790_812_800);

    fn example() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/blog")
    }

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("inside")).expect("made");
            fs::write(path, text).expect("written");
        }
        root
    }

    fn built(files: &[(&str, &[u8])]) -> Site {
        built_of(folder(files).path())
    }

    fn text(site: &Site, path: &str) -> String {
        let Some(Found::Page(page)) = site.find(path, "http://blog.test") else { panic!("no {path}") };
        String::from_utf8(page.body.to_vec()).expect("text")
    }

    /// The values of `href` and `src` in `html`.
    fn links(html: &str) -> Vec<&str> {
        let after = |mark: &'static str| html.split(mark).skip(1).filter_map(|rest| rest.split_once('"').map(|(url, _)| url));
        after(" href=\"").chain(after(" src=\"")).collect()
    }

    /// However a file system keeps a name, and in whatever script.
    #[test]
    fn addresses_and_anchors_are_whole_words_of_any_script() {
        let hindi: &[u8] = "# हिन्दी\n\n## नमस्ते दुनिया\n".as_bytes();
        let site = built(&[("हिन्दी.md", hindi), ("U\u{308}ber uns.md", b"# Us\n")]);
        assert!(text(&site, "/हिन्दी/").contains("id=\"नमस्ते-दुनिया\""));
        text(&site, "/über-uns/");
    }

    fn assert_links_resolve(site: &Site) {
        let (all, mut seen) = (pages(site), BTreeSet::new());
        for (path, page) in all.iter().filter(|(_, page)| page.content_type.starts_with("text/html")) {
            let html = String::from_utf8_lossy(&page.body);
            for link in links(&html).into_iter().filter(|link| link.starts_with(['/', '#'])) {
                let (target, fragment) = link.split_once('#').map_or((link, None), |(target, fragment)| (target, Some(fragment)));
                let target = if target.is_empty() { path.clone() } else { slug::decode_path(target).expect("an address") };
                // Pictures are made when they are asked for.
                if matches!(site.find(&target, "http://blog.test"), Some(Found::Picture(_))) {
                    continue;
                }
                let found = all.get(&target).unwrap_or_else(|| panic!("{path} links to {link}, which is not there"));
                if let Some(fragment) = fragment {
                    let id = format!(" id=\"{}\"", slug::decode_path(fragment).expect("an id"));
                    assert!(String::from_utf8_lossy(&found.body).contains(&id), "{path} links to {link}: no such section");
                }
                seen.insert(target);
            }
        }
        for (path, page) in &all {
            let is_linked = matches!(page.kind, PageKind::Post | PageKind::Page | PageKind::Tag | PageKind::Index);
            assert!(!is_linked || seen.contains(path), "nothing links to {path}");
        }
    }

    #[test]
    fn every_link_of_the_example_and_the_starter_resolves() {
        let example = built_of(&example());
        assert!(pages(&example).values().filter(|page| page.kind == PageKind::Post).count() >= 12);
        assert_links_resolve(&example);
        assert_links_resolve(&built(starter::starter()));
    }

    #[test]
    fn the_example_says_what_it_should_be_about() {
        let example = built_of(&example());
        for page in pages(&example).values().filter(|page| page.kind == PageKind::Post) {
            let html = String::from_utf8_lossy(&page.body);
            assert!(!html.contains("TODO") && !html.contains("lorem"), "{html}");
        }
    }

    #[test]
    fn feed_and_sitemap_are_well_formed_and_absolute() {
        let post = "+++\ntitle = \"A <b> & \\\"c\\\" \\u0001\"\ndate = 2026-03-01T10:00:00+01:00\nupdated = 2026-04-01\ntags = [\"x<y\"]\n+++\n\
                    Text & ![i](cat.png) [l](b.md) \u{1} ]]>\n\n```\n<&\u{1}>\n```\n";
        let options = BlogOptions { base_url: Some("https://blog.test/".to_owned()), ..BlogOptions::default() };
        let root = folder(&[("a.md", post.as_bytes()), ("b.md", b"# B\n\n<p>raw</p>"), ("cat.png", b"png")]);
        let site = build(root.path(), &options, NOW).expect("builds");

        let feed = text(&site, "/feed.xml");
        let document = roxmltree::Document::parse(&feed).expect("well-formed");
        let atom = "http://www.w3.org/2005/Atom";
        let named = |node: roxmltree::Node<'_, '_>, name: &str| -> Vec<String> {
            node.children().filter(|n| n.has_tag_name((atom, name))).map(|n| n.text().unwrap_or_default().to_owned()).collect()
        };
        // RFC 4287 §4.1.1 and §4.1.2: what a feed and an entry must have.
        let root = document.root_element();
        assert!(root.has_tag_name((atom, "feed")));
        assert_eq!(named(root, "id"), ["https://blog.test/"]);
        assert_eq!((named(root, "title").len(), named(root, "updated").len()), (1, 1));
        let entries: Vec<_> = root.children().filter(|n| n.has_tag_name((atom, "entry"))).collect();
        assert_eq!(entries.len(), 2);
        for entry in &entries {
            for name in ["id", "title", "updated", "content"] {
                assert_eq!(named(*entry, name).len(), 1, "{name}");
            }
        }
        let first = entries.iter().find(|e| named(**e, "id") == ["https://blog.test/a/"]).expect("the post");
        assert_eq!(named(*first, "title"), ["A <b> & \"c\" "]);
        assert_eq!(named(*first, "published"), ["2026-03-01T09:00:00Z"]);
        assert_eq!(named(*first, "updated"), ["2026-04-01T00:00:00Z"]);
        let content = named(*first, "content").concat();
        assert!(content.contains("src=\"https://blog.test/cat.png\"") && content.contains("href=\"https://blog.test/b/\""), "{content}");

        let sitemap = text(&site, "/sitemap.xml");
        let document = roxmltree::Document::parse(&sitemap).expect("well-formed");
        let urls: Vec<_> = document.descendants().filter(|n| n.tag_name().name() == "loc").filter_map(|n| n.text()).collect();
        assert!(urls.contains(&"https://blog.test/a/") && urls.iter().all(|url| url.starts_with("https://blog.test/")), "{urls:?}");
        assert!(text(&site, "/robots.txt").ends_with("Sitemap: https://blog.test/sitemap.xml\n"));
    }

    #[test]
    fn what_authors_write_outside_of_texts_is_escaped() {
        let site = built(&[
            ("blog.toml", b"title = \"<script>1\"\nfooter = \"<script>2\"\ndescription = \"\\\"><script>3\""),
            ("a.md", b"---\ntitle: <script>4\nsummary: \"<script>5\"\ntags: [\"<script>6\"]\n---\nx"),
            ("pages/p.md", b"---\ntitle: <script>7\n---\nx"),
        ]);
        for (path, page) in &pages(&site) {
            let text = String::from_utf8_lossy(&page.body);
            // The JSON-LD and the script of the search have attributes. Where a text is no markup, it needs no escape.
            let is_markup = page.content_type.contains("html") || page.content_type.contains("xml");
            assert!(!is_markup || !text.contains("<script>"), "{path}");
        }
        assert!(text(&site, "/a/").contains("<h1>&lt;script&gt;4</h1>"));
    }

    #[test]
    fn ten_posts_to_a_page_newest_first() {
        let posts: Vec<_> = (1..=21).map(|n| (format!("2026-01-{n:02}-post-{n}.md"), format!("# Post {n}!"))).collect();
        let files: Vec<_> = posts.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
        let site = built(&files);
        let indexes: Vec<_> = site.addresses().filter(|(_, kind)| *kind == PageKind::Index).map(|(path, _)| path).collect();
        assert_eq!(indexes, ["/", "/page/2/", "/page/3/"]);
        let first = text(&site, "/");
        assert!(first.find("Post 21!") < first.find("Post 12!") && first.contains("Post 12!") && !first.contains("Post 11!"));
        assert!(text(&site, "/page/3/").contains("Post 1!"));
        let post = text(&site, "/post-5/");
        assert!(post.contains("href=\"/post-4/\"") && post.contains("href=\"/post-6/\""));
        assert!(post.contains("<time datetime=\"2026-01-05\">5 January 2026</time>"));
    }

    #[test]
    fn drafts_stay_home_and_pages_stay_out_of_the_index() {
        let site = built(&[
            ("a.md", b"# Alpha\n\n[about](pages/about.md)"),
            ("d.md", b"---\ndraft: true\n---\n# Delta"),
            ("pages/about.md", b"# About us"),
            ("contact.md", b"---\npage: true\n---\n# Contact"),
        ]);
        let kinds: Vec<_> = site.addresses().filter(|(path, _)| path.len() > 1).collect();
        assert!(kinds.contains(&("/about/", PageKind::Page)) && kinds.contains(&("/contact/", PageKind::Page)));
        assert!(pages(&site).values().all(|page| !String::from_utf8_lossy(&page.body).contains("Delta")));
        assert!(!text(&site, "/").contains("<h2><a href=\"/about/\"") && text(&site, "/").contains("<a href=\"/about/\">About us</a>"));
        assert!(!text(&site, "/feed.xml").contains("About us</title>"));
    }

    #[test]
    fn all_problems_come_at_once() {
        let root = folder(&[
            ("a.md", b"---\ndate: soon\n---\n# A"),
            ("b.md", b"no title"),
            ("c.md", b"# C\n\n[x](gone.md)"),
            ("d/one.md", b"# D"),
            ("e/one.md", b"# E"),
            ("tags.md", b"# T"),
        ]);
        let site = built_of(root.path());
        let lines: Vec<_> = site.problems().iter().map(ToString::to_string).collect();
        let expected = ["a.md:2:", "b.md:1: has no title", "c.md:3: link to \"gone.md\"", "e/one.md:1:", "tags.md:1:"];
        assert_eq!(lines.len(), expected.len(), "{lines:#?}");
        for (line, start) in lines.iter().zip(expected) {
            assert!(line.starts_with(start), "{line}");
        }
    }

    #[test]
    fn an_empty_folder_is_a_blog() {
        let site = built(&[]);
        assert!(text(&site, "/").contains("Nothing is published yet"));
        assert!(roxmltree::Document::parse(&text(&site, "/feed.xml").replace(feed::BASE, "http://x.test")).is_ok());
    }

    #[test]
    fn builds_are_repeatable_and_changes_are_named() {
        let root = folder(starter::starter());
        let options = BlogOptions::default();
        let (first, second) = (build(root.path(), &options, NOW).expect("builds"), build(root.path(), &options, NOW).expect("builds"));
        assert_eq!(pages(&first), pages(&second));
        fs::write(root.path().join("cat.png"), "x").expect("written");
        let third = build(root.path(), &options, NOW).expect("builds");
        assert_eq!(first.changed_paths(&third), ["/cat.png"]);
        fs::write(root.path().join("posts/cat.md"), "# A cat").expect("written");
        let fourth = build(root.path(), &options, NOW).expect("builds");
        let changed = third.changed_paths(&fourth);
        for path in ["/", "/cat", "/cat/", "/feed.xml", "/sitemap.xml"] {
            assert!(changed.iter().any(|other| other == path), "{path}: {changed:?}");
        }
        assert!(!changed.iter().any(|path| path == "/about/"), "{changed:?}");
    }

    #[test]
    fn an_authors_own_robots_txt_wins() {
        assert_eq!(text(&built(&[("robots.txt", b"mine")]), "/robots.txt"), "mine");
    }
}
