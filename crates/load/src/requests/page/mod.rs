//! Pages with all that belongs to them, as a browser fetches them.
//!
//! What belongs to a page is the same for each visitor, so it is found once: the [`Library`] is shared, and a page or sheet is read again only when its
//! validators change. A visitor has a [`Page`] while it loads one: what is still to ask. What belongs to another origin is asked only if that origin is
//! one of the set's; otherwise it is left out, and counted.

mod css;
mod html;
mod kept;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use self::kept::field;
pub(super) use self::kept::{Validators, VisitorCache, key};
use super::{Origin, WANTED_MAX, content::decoded, url::Url};
use crate::answer::Answer;

/// The most references that are taken from a page or sheet.
const REFERENCES_MAX: usize = 500;

/// The path at which browsers look for the icon of a site whose page names none.
pub(super) const FAVICON: &str = "/favicon.ico";

/// The most requests of a page.
const PARTS_MAX: usize = 1000;

/// The most pages and sheets whose references are remembered: some 100 KB each at most, 10 KB mostly.
const KNOWN_MAX: usize = 4096;

/// The beginning of the paths that the blog engine puts into pages for their author alone: readers' browsers do not load them.
const AUTHORS_PREFIX: &str = "/.seawall/";

/// Says what a reference leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Style,
    Script,
    Image,
    Font,
    Other,
}

impl Kind {
    /// Returns what browsers say in `Accept`.
    pub(super) const fn accept(self) -> &'static str {
        match self {
            Self::Style => "text/css,*/*;q=0.1",
            Self::Image => "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
            Self::Script | Self::Font | Self::Other => "*/*",
        }
    }
}

/// A reference, as it stands in a page or sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) url: String,
    pub(crate) kind: Kind,
}

/// Something that belongs to a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PagePart {
    pub(super) origin: u16,
    pub(super) target: String,
    pub(super) kind: Kind,
    pub(super) key: u64,
}

/// Holds what a page or sheet needs.
#[derive(Debug, Default)]
struct KnownPage {
    /// Stands for the version that was read.
    stamp: u64,
    parts: Vec<Arc<PagePart>>,
    /// References to origins that are not asked.
    left_out: u64,
}

/// Holds what is known of pages to all visitors of a run.
#[derive(Debug, Default)]
pub struct Library {
    /// The known pages by their requests, as their URLs may differ for each visitor. Sheets are found by their URLs.
    pages: RwLock<HashMap<u32, Arc<KnownPage>>>,
    sheets: RwLock<HashMap<u64, Arc<KnownPage>>>,
    left_out: AtomicU64,
}

impl Library {
    /// Returns how many parts of pages were not asked, because they belong to other origins.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Returns whether the content of a page is needed: it was not read yet.
    pub(super) fn wants_page(&self, request: u32) -> bool {
        !self.pages.read().unwrap_or_else(PoisonError::into_inner).contains_key(&request)
    }

    /// Returns whether the content of a part is needed.
    pub(super) fn wants_part(&self, part: &PagePart) -> bool {
        part.kind == Kind::Style && !self.sheets.read().unwrap_or_else(PoisonError::into_inner).contains_key(&part.key)
    }

    fn page(&self, origins: &[Origin], origin: u16, request: u32, url: &Url, answer: &Answer<'_>) -> Arc<KnownPage> {
        known(&self.pages, request, answer, |content| {
            let found = html::references(content);
            let base = found.base.as_deref().and_then(|base| url.join(base)).unwrap_or_else(|| url.clone());
            let own = found.canonical.as_deref().and_then(|canonical| url.join(canonical)).map(|canonical| canonical.origin);
            parts(origins, origin, &base, own.as_ref(), found.references)
        })
    }

    fn sheet(&self, origins: &[Origin], part: &PagePart, answer: Option<&Answer<'_>>) -> Option<Arc<KnownPage>> {
        let Some(answer) = answer else {
            return self.sheets.read().unwrap_or_else(PoisonError::into_inner).get(&part.key).cloned();
        };
        let url = Url { origin: origins.get(usize::from(part.origin))?.clone(), target: part.target.clone() };
        let find = |content: &[u8]| parts(origins, part.origin, &url, None, css::references(&String::from_utf8_lossy(content)));
        Some(known(&self.sheets, part.key, answer, find))
    }
}

/// Returns what is known of a page or sheet. An answer of another version than the known one makes it forgotten: the next who asks wants the content. Until
/// then the old version's references are good enough.
fn known<K: Hash + Eq + Copy>(
    all: &RwLock<HashMap<K, Arc<KnownPage>>>,
    key: K,
    answer: &Answer<'_>,
    find: impl FnOnce(&[u8]) -> (Vec<Arc<PagePart>>, u64),
) -> Arc<KnownPage> {
    let before = all.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    let stamp = stamp(answer);
    if let Some(before) = before {
        if answer.status == 200 && before.stamp != stamp {
            all.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
        }
        return before;
    }
    let Some(body) = answer.body.filter(|_| answer.status == 200) else { return Arc::default() };
    let content = decoded(answer.fields, body, WANTED_MAX).unwrap_or_default();
    let (parts, left_out) = find(&content);
    let found = Arc::new(KnownPage { stamp, parts, left_out });
    let mut all = all.write().unwrap_or_else(PoisonError::into_inner);
    if all.len() < KNOWN_MAX {
        all.insert(key, Arc::clone(&found));
    }
    found
}

/// Stands for the version of an answer's content.
fn stamp(answer: &Answer<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match field(answer, "etag") {
        Some(etag) => etag.hash(&mut hasher),
        None => field(answer, "last-modified").hash(&mut hasher),
    }
    hasher.finish()
}

/// Finds out what is asked for references of a document. `own` is how the site calls itself: WordPress and Ghost write their own URL into pages, while
/// the run may ask another address.
fn parts(origins: &[Origin], origin: u16, base: &Url, own: Option<&Origin>, references: Vec<Reference>) -> (Vec<Arc<PagePart>>, u64) {
    let mut left_out = 0;
    let mut parts = Vec::new();
    for Reference { url, kind } in references {
        let Some(url) = base.join(&url) else { continue };
        let known = origins.iter().position(|known| *known == url.origin).and_then(|at| u16::try_from(at).ok());
        match known.or_else(|| (own == Some(&url.origin)).then_some(origin)) {
            Some(_) if url.target.starts_with(AUTHORS_PREFIX) => {}
            Some(origin) => {
                let key = key(origin, &url.target);
                parts.push(Arc::new(PagePart { origin, target: url.target, kind, key }));
            }
            None => left_out += 1,
        }
    }
    (parts, left_out)
}

/// A page that a visitor loads.
#[derive(Debug)]
pub(super) struct Page {
    began: Duration,
    /// The number of the request in the set.
    pub(super) request: u32,
    /// The fields that it was asked with, if they are not those of the request.
    pub(super) fields: Option<Vec<(String, String)>>,
    /// The URL of the page.
    pub(super) url: Url,
    queue: VecDeque<Arc<PagePart>>,
    /// The hashes of what was or will be asked, with the page itself.
    seen: HashSet<u64>,
    /// Whether the page itself came as it should.
    shown: bool,
}

impl Page {
    pub(super) fn new(began: Duration, request: u32, fields: Option<Vec<(String, String)>>, url: Url, key: u64) -> Self {
        Self { began, request, fields, url, queue: VecDeque::new(), seen: HashSet::from([key]), shown: false }
    }

    /// Returns what is asked next.
    pub(super) fn next(&mut self) -> Option<Arc<PagePart>> {
        self.queue.pop_front()
    }

    /// Returns whether nothing is left to ask.
    pub(super) fn is_done(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns how long it took, if it is shown.
    pub(super) fn took(&self, now: Duration) -> Option<Duration> {
        self.shown.then(|| now.saturating_sub(self.began))
    }

    /// Takes the page itself. Nothing belongs to a page that is an error, or leads elsewhere.
    pub(super) fn document(
        &mut self,
        library: &Library,
        set: (&[Origin], u16, u32),
        answer: &Answer<'_>,
        kept: &VisitorCache,
        now: Duration,
    ) {
        if !matches!(answer.status, 200 | 304) {
            return;
        }
        self.shown = true;
        let (origins, origin, request) = set;
        let known = library.page(origins, origin, request, &self.url, answer);
        self.add(library, origins, &known, kept, now);
    }

    /// Takes a part. A sheet needs more.
    pub(super) fn part(
        &mut self,
        library: &Library,
        origins: &[Origin],
        part: &PagePart,
        answer: &Answer<'_>,
        kept: &VisitorCache,
        now: Duration,
    ) {
        if part.kind == Kind::Style
            && matches!(answer.status, 200 | 304)
            && let Some(known) = library.sheet(origins, part, Some(answer))
        {
            self.add(library, origins, &known, kept, now);
        }
    }

    fn add(&mut self, library: &Library, origins: &[Origin], known: &Arc<KnownPage>, kept: &VisitorCache, now: Duration) {
        let mut all = vec![Arc::clone(known)];
        while let Some(known) = all.pop() {
            library.left_out.fetch_add(known.left_out, Ordering::Relaxed);
            for part in &known.parts {
                if self.seen.len() > PARTS_MAX || !self.seen.insert(part.key) {
                    continue;
                }
                if !kept.is_fresh(part.key, now) {
                    self.queue.push_back(Arc::clone(part));
                } else if part.kind == Kind::Style {
                    all.extend(library.sheet(origins, part, None));
                }
            }
        }
    }
}
