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
    gallery::{PagePicture, WantedVariant},
    head::cover,
    large_file::LargeFile,
    links::{self, LeftOutText},
    machine::Machine,
    markdown_form,
    memory::Memory,
    model::{Model, year_path},
    parallel,
    post::{Post, Visibility},
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

/// Holds what is at an address.
#[derive(Debug)]
pub enum SiteResource<'s> {
    /// A page, with everything in it.
    Page(Page),
    /// A file that is too large to hold in memory.
    File(&'s LargeFile),
    /// A picture that is made when it is asked for.
    Picture(&'s WantedVariant),
    /// A redirect to where it is now: this path.
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
    /// The time at which it is published by itself, if its date lies ahead.
    pub due: Option<jiff::Timestamp>,
}

/// A whole site: its addresses, and the model of which their answers are made when somebody asks. Two builds of an unchanged folder have the
/// same answers.
#[derive(Debug)]
pub struct Site {
    model: Model,
    /// The addresses by the paths at which they answer; a path is percent-decoded and begins with `/`.
    addresses: BTreeMap<String, Address>,
    /// The addresses of texts and files that only their authors see, by path.
    drafts: BTreeMap<String, Address>,
    pictures: Vec<Arc<PagePicture>>,
    /// A number that differs if the answer for addresses that do not exist would differ.
    not_found: u128,
    problems: Vec<Problem>,
    next_due: Option<jiff::Timestamp>,
    /// The index of the search once somebody asked for it: it is the same whatever the scheme and authority, and the most work of all.
    search_index: OnceLock<Page>,
    /// Texts for programs that were written, with [`BASE`] where absolute addresses begin: another name of the host costs no other writing.
    written: Mutex<TextCache>,
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
    Picture(WantedVariant),
    /// The path of where it is now.
    Moved(String),
    Card(Subject),
}

/// Says what a card is about.
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
struct TextCache {
    texts: VecDeque<(Machine, Arc<str>)>,
    bytes: usize,
}

impl TextCache {
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
        pictures: Vec<Arc<PagePicture>>,
        mut problems: Vec<Problem>,
        left_out: &[LeftOutText],
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
    pub(crate) fn pictures(&self) -> &[Arc<PagePicture>] {
        &self.pictures
    }

    /// Returns what is at `path`, or `None` if there is nothing. `base` is the scheme and authority by which the site was asked.
    #[must_use]
    pub fn find(&self, path: &str, base: &str) -> Option<SiteResource<'_>> {
        Some(self.found(self.addresses.get(path)?, base))
    }

    /// Returns what only authors see at `path`: a draft, a post whose time has not come, or a file beside one. Its links to others of this
    /// kind are relative, so that they hold wherever it is shown.
    #[must_use]
    pub fn draft(&self, path: &str, base: &str) -> Option<SiteResource<'_>> {
        Some(self.found(self.drafts.get(path)?, base))
    }

    /// Returns all texts that only their authors see, newest first. With [`BlogOptions::drafts`] there are none, as all are published.
    pub fn drafts(&self) -> impl Iterator<Item = Draft<'_>> {
        self.model.drafts.iter().map(|post| Draft {
            path: &post.path,
            title: &post.title,
            file: &post.name,
            due: if let Visibility::Due(due) = post.standing { Some(due) } else { None },
        })
    }

    fn found<'s>(&'s self, address: &'s Address, base: &str) -> SiteResource<'s> {
        let Address { kind, content, .. } = address;
        match content {
            Content::View(view) => SiteResource::Page(self.page(*kind, HTML, &view.draw(&self.model), base)),
            Content::Machine(Machine::Search) => {
                let written = || self.page(*kind, Machine::Search.content_type(), &Machine::Search.write(&self.model), base);
                SiteResource::Page(self.search_index.get_or_init(written).clone())
            }
            Content::Machine(machine) => SiteResource::Page(self.page(*kind, machine.content_type(), &self.written(machine), base)),
            Content::Held { content_type, body, etag } => {
                SiteResource::Page(Page { status: StatusCode::OK, content_type, body: body.clone(), etag: etag.clone(), kind: *kind })
            }
            Content::File(file) => SiteResource::File(file),
            Content::Picture(wanted) => SiteResource::Picture(wanted),
            Content::Moved(path) => SiteResource::Moved(path),
            Content::Card(subject) => SiteResource::Card(subject.card(&self.model)),
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
            let SiteResource::Page(page) = is_drawn.then(|| site.found(address, ""))? else { return None };
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

/// The tables of what answers where.
#[derive(Debug, Default)]
struct Tables {
    addresses: BTreeMap<String, Address>,
    drafts: BTreeMap<String, Address>,
    problems: Vec<Problem>,
}

impl Tables {
    fn new(model: &Model, files: Vec<StaticFile>, pictures: &[Arc<PagePicture>], left_out: &[LeftOutText]) -> Self {
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
        for (path, wanted) in pictures.iter().flat_map(PagePicture::addresses) {
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
mod tests;
