//! Early Hints (RFC 8297): while the origin is asked for a page, its browser is told what the page will need.
//!
//! It is learnt from pages that are stored for everybody, as they are stored, and told where somebody has to wait: never on a hit. Two things
//! are known. Of a **page**, what its last version needed; that goes with whatever purges the page, and after a day. Of a **host**, what its
//! last few pages had in common; that is for pages that are not known themselves, and goes when the whole site is purged. Once a new page
//! has another style sheet, the old one is no longer common, so what a deploy replaced is not hinted for long.
//!
//! No visitor learns from a hint what another's page holds: nothing is learnt from an answer to somebody who is known, from one that varies
//! on what might name a person, and about other pages from one behind a password. An origin that sends hints of its own knows better: its
//! host gets none of ours for a day.
//!
//! Known for [`PAGES_MAX`] pages in [`PAGES_BYTES_MAX`] bytes and for [`HOSTS_MAX`] hosts of at most 13 KiB each (3.3 MiB), oldest first.
//! What is forgotten only costs its reader the hint. Learning looks at a page once, as it is stored: 8 us of processor time for a head of 1
//! KiB before 22 KiB of text, and half a millisecond for the worst 64 KiB that anybody could write.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use policy::{EarlyHints as Wanted, Hint, hints, link_field, purge_url};
use semantics::{Timestamp, vary::Vary};
use store::{AsIs, Generation, KeyHash, Scope};

use crate::{Class, Pipeline, Shared, Store, Stored, question::Question};

/// Pages whose hints are known, and bytes of them.
const PAGES_MAX: usize = 8_192;
const PAGES_BYTES_MAX: usize = 4 << 20;
/// Bytes that a page costs beside what it says.
const PAGE_OVERHEAD: usize = 160;
/// Hosts whose pages' common hints are known.
const HOSTS_MAX: usize = 256;
/// Pages whose common hints count for their host; those of one alone are its own.
const COMMON_TO: usize = 4;
const COMMON_TO_MIN: usize = 2;
/// The time for which a page's hints are believed, and for which an origin is left alone that sends its own.
const BELIEVED: Duration = Duration::from_secs(86_400);

/// Fields that a page may vary on without being somebody's. The request that it was learnt from had neither a cookie that could be
/// somebody's nor credentials.
const NOBODYS: [HeaderName; 7] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::AUTHORIZATION,
    header::COOKIE,
    header::ORIGIN,
    header::USER_AGENT,
];

/// The hints that are known. All workers share them.
#[derive(Default)]
pub(crate) struct EarlyHints(Mutex<HintTables>);

#[derive(Default)]
struct HintTables {
    pages: HashMap<KeyHash, Page, AsIs>,
    oldest_pages: VecDeque<KeyHash>,
    page_bytes: usize,
    hosts: HashMap<HostName, Host>,
    oldest_hosts: VecDeque<HostName>,
}

/// A site's number, and a host as keys have it.
type HostName = (u16, Box<[u8]>);

/// The last version of a page.
struct Page {
    link: HeaderValue,
    scope: Scope,
    begun: Generation,
    learnt: Timestamp,
}

#[derive(Default)]
struct Host {
    /// Its last pages, newest last.
    pages: VecDeque<(KeyHash, Generation, Vec<Hint>)>,
    /// The hints that they have in common.
    common: Option<HeaderValue>,
    /// The end of the time for which it is left alone, as its origin sent hints itself.
    left_alone_until: Timestamp,
}

impl Page {
    fn bytes(&self) -> usize {
        PAGE_OVERHEAD + self.link.len() + self.scope.url.len() + self.scope.tags.iter().map(|tag| 16 + tag.len()).sum::<usize>()
    }
}

impl HintTables {
    fn learn_page(&mut self, name: KeyHash, page: Option<Page>) {
        let before = self.pages.remove(&name);
        self.page_bytes -= before.as_ref().map_or(0, Page::bytes);
        match (before, page) {
            // A fetch that was overtaken brings nothing new.
            (Some(before), Some(page)) if before.begun > page.begun => self.put_page(name, before),
            (before, Some(page)) => {
                if before.is_none() {
                    self.oldest_pages.push_back(name);
                }
                self.put_page(name, page);
            }
            (Some(_), None) => self.oldest_pages.retain(|other| *other != name),
            (None, None) => {}
        }
        while self.pages.len() > PAGES_MAX || self.page_bytes > PAGES_BYTES_MAX {
            let Some(oldest) = self.oldest_pages.pop_front() else { break };
            self.page_bytes -= self.pages.remove(&oldest).map_or(0, |page| page.bytes());
        }
    }

    fn put_page(&mut self, name: KeyHash, page: Page) {
        self.page_bytes += page.bytes();
        self.pages.insert(name, page);
    }

    fn host(&mut self, name: HostName) -> &mut Host {
        if !self.hosts.contains_key(&name) {
            self.oldest_hosts.push_back(name.clone());
            if self.oldest_hosts.len() > HOSTS_MAX
                && let Some(oldest) = self.oldest_hosts.pop_front()
            {
                self.hosts.remove(&oldest);
            }
        }
        self.hosts.entry(name).or_default()
    }
}

impl Host {
    /// Learns that one of its pages needs these hints. `is_purged` says whether the whole site was purged since a generation.
    fn learn(&mut self, page: KeyHash, begun: Generation, hints: Vec<Hint>, is_purged: impl Fn(Generation) -> bool) {
        self.pages.retain(|(known, begun, _)| *known != page && !is_purged(*begun));
        self.pages.push_back((page, begun, hints));
        if self.pages.len() > COMMON_TO {
            self.pages.pop_front();
        }
        self.common = None;
        if self.pages.len() >= COMMON_TO_MIN
            && let Some((_, _, newest)) = self.pages.back()
        {
            let in_all = |hint: &&Hint| self.pages.iter().all(|(_, _, hints)| hints.contains(hint));
            let common: Vec<Hint> = newest.iter().filter(in_all).cloned().collect();
            self.common = link_field(&common);
        }
    }

    /// Returns the generation at which the oldest of its pages was asked for.
    fn begun(&self) -> Option<Generation> {
        self.pages.iter().map(|(_, begun, _)| *begun).min()
    }
}

/// Returns the host in host and path.
fn host_of(url: &[u8]) -> &[u8] {
    &url[..url.iter().position(|byte| *byte == b'/').unwrap_or(url.len())]
}

/// Makes a scope that is covered by whatever purges all of a host, and by no purge of a page.
fn whole_host(site: u16, host: &[u8]) -> Scope {
    // No path has a question mark.
    Scope { site, url: [host, b"/?"].concat().into(), tags: Box::default() }
}

/// Returns whether what lies under a path may be a page: it has no ending, or one that pages have.
fn may_be_a_page(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').is_none_or(|(_, ending)| ["html", "htm", "xhtml", "php", "aspx", "asp", "jsp"].contains(&ending))
}

/// Returns whether, by the fields in its `Vary`, a response is the same page for all requests that do not identify anybody.
fn is_nobodys(vary: &Vary) -> bool {
    match vary {
        Vary::Star => false,
        Vary::Nominated(fields) => fields.iter().all(|(name, _)| NOBODYS.contains(name) || *name == "available-dictionary"),
    }
}

/// Returns whether a media type is that of HTML, whatever its parameters.
fn is_html(media_type: &[u8]) -> bool {
    let essence = media_type.split(|&byte| byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"text/html")
}

/// Learns from a page that is stored: its next reader is told what it needs.
pub(crate) fn learn(shared: &Shared, question: &Question, stored: &Stored) {
    let record = &stored.record;
    let wanted = question.site.policy.settings().early_hints != Wanted::Off;
    if !wanted || record.status != StatusCode::OK || question.is_personal() || !is_nobodys(&record.vary) || record.part().is_some() {
        return;
    }
    if record.class != Class::Document {
        return;
    }
    let (mut content_type, mut is_plain, mut links) = (None, true, Vec::new());
    // All three in one pass: a line is found by its end.
    for (name, value) in record.lines() {
        match name {
            b"content-type" if content_type.is_none() => content_type = Some(value),
            b"content-encoding" => is_plain = false,
            b"link" => links.push(value),
            _ => {}
        }
    }
    if !content_type.is_some_and(is_html) {
        return;
    }
    let content = stored.body.memory().filter(|_| is_plain).map_or(&[][..], AsRef::as_ref);
    let hints = hints(&question.authority, &question.target, links, content);
    let (site, url) = question.url();
    let name = page_name(&shared.store, site, url);
    let mut known = shared.early_hints.0.lock();
    // Another query may be another page.
    if question.uri.query().is_none() {
        let page = |link| Page { link, scope: stored.scope().clone(), begun: stored.begun(), learnt: record.freshness.response_time };
        known.learn_page(name, link_field(&hints).map(page));
    }
    let is_behind_a_password = question.site.auth.as_ref().is_some_and(|auth| auth.paths.covers(question.uri.path()));
    if !hints.is_empty() && !is_behind_a_password {
        let host = host_of(url);
        let scope = whole_host(site, host);
        known.host((site, host.into())).learn(name, stored.begun(), hints, |begun| shared.store.is_purged(&scope, begun));
    }
}

/// Tells the browser of a request that will have to wait, if it takes hints and there are any.
pub(crate) fn tell(pipeline: &Pipeline, question: &Question) {
    let Some(interim) = &question.interim else { return };
    if !question.takes_hints {
        return;
    }
    if let Some(link) = hints_for(&pipeline.shared, question) {
        (interim.tell())(StatusCode::EARLY_HINTS, &HeaderMap::from_iter([(header::LINK, link)]));
        pipeline.counters.hinted();
    }
}

/// Returns what a browser that asks this could be told.
pub(crate) fn hints_for(shared: &Shared, question: &Question) -> Option<HeaderValue> {
    if question.site.policy.settings().early_hints == Wanted::Off {
        return None;
    }
    let passes = question.key.is_empty();
    let site = question.site.id;
    let url = if passes { purge_url(question.client.scheme, &question.authority, question.uri.path())? } else { question.url().1.to_vec() };
    let now = shared.clock.now();
    let store = &shared.store;
    let known = shared.early_hints.0.lock();
    let host = known.hosts.get(&(site, host_of(&url).into()) as &HostName);
    if host.is_some_and(|host| now < host.left_alone_until) {
        return None;
    }
    let page = known.pages.get(&page_name(store, site, &url)).filter(|_| question.uri.query().is_none());
    if let Some(page) = page.filter(|page| now.since(page.learnt) < BELIEVED && !store.is_purged(&page.scope, page.begun)) {
        return Some(page.link.clone());
    }
    // What passes, an editor's pages for one, may have nothing in common with what is stored.
    if passes || !may_be_a_page(question.uri.path()) {
        return None;
    }
    let host = host?;
    let is_purged = host.begun().is_none_or(|begun| store.is_purged(&whole_host(site, host_of(&url)), begun));
    host.common.clone().filter(|_| !is_purged)
}

/// Leaves the origin of a request alone for a day, as it sent hints of its own.
pub(crate) fn origin_hinted(shared: &Shared, question: &Question) {
    let Some(url) = purge_url(question.client.scheme, &question.authority, "/") else { return };
    let name = (question.site.id, host_of(&url).into());
    shared.early_hints.0.lock().host(name).left_alone_until = shared.clock.now() + BELIEVED;
}

fn page_name(store: &Store, site: u16, url: &[u8]) -> KeyHash {
    store.hash(&[&site.to_be_bytes()[..], url].concat())
}

impl fmt::Debug for EarlyHints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.lock();
        f.debug_struct("EarlyHints").field("pages", &known.pages.len()).field("hosts", &known.hosts.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    fn hints_of(names: &[&str]) -> Vec<Hint> {
        let page: String = names.iter().map(|name| format!("<link rel=stylesheet href=/{name}.css>")).collect();
        hints("a.example", "/", [], page.as_bytes())
    }

    fn shared() -> Shared {
        Shared::new(store::StoreOptions::with_memory(1 << 20), Clock::system())
    }

    #[test]
    fn what_the_last_pages_have_in_common_is_a_hosts() {
        let shared = shared();
        let begun = shared.store.generation();
        let mut host = Host::default();
        let mut learn = |page: &str, names: &[&str]| {
            host.learn(shared.store.hash(page.as_bytes()), begun, hints_of(names), |_| false);
            host.common.as_ref().map(|link| link.to_str().expect("text").matches("</").count()).unwrap_or_default()
        };
        assert_eq!(learn("/a", &["all", "a"]), 0, "one page alone says nothing of others");
        assert_eq!(learn("/a", &["all", "a"]), 0, "nor twice");
        assert_eq!(learn("/b", &["all", "too"]), 1);
        assert_eq!(learn("/c", &["all", "too"]), 1);
        // A deploy: the old sheet is common no longer, the new one only when enough pages have it.
        assert_eq!(learn("/d", &["new"]), 0);
        assert_eq!(learn("/e", &["new"]), 0);
        assert_eq!(learn("/f", &["new"]), 0);
        assert_eq!(learn("/g", &["new"]), 1);
    }

    #[test]
    fn pages_and_hosts_are_bounded() {
        let shared = shared();
        let begun = shared.store.generation();
        let mut known = HintTables::default();
        let name = |n: usize| shared.store.hash(n.to_string().as_bytes());
        let page = |link: &str| {
            let link = HeaderValue::from_str(link).expect("a value");
            Some(Page { link, scope: Scope::default(), begun, learnt: Timestamp::default() })
        };
        for n in 0..=PAGES_MAX {
            known.learn_page(name(n), page("</a.css>"));
        }
        assert_eq!((known.pages.len(), known.oldest_pages.len()), (PAGES_MAX, PAGES_MAX));
        assert!(!known.pages.contains_key(&name(0)) && known.pages.contains_key(&name(PAGES_MAX)));
        known.learn_page(name(1), None);
        assert_eq!((known.pages.len(), known.oldest_pages.len()), (PAGES_MAX - 1, PAGES_MAX - 1));
        let long = "x".repeat(3_000);
        for n in 0..2_000 {
            known.learn_page(name(n), page(&long));
        }
        assert!(known.page_bytes <= PAGES_BYTES_MAX);
        assert_eq!(known.page_bytes, known.pages.values().map(Page::bytes).sum::<usize>());
        assert_eq!(known.pages.len(), known.oldest_pages.len());
        for n in 0..2 * HOSTS_MAX {
            known.host((1, n.to_string().into_bytes().into()));
        }
        assert_eq!((known.hosts.len(), known.oldest_hosts.len()), (HOSTS_MAX, HOSTS_MAX));
    }

    #[test]
    fn endings_of_pages() {
        for page in ["/", "/a", "/a/", "/a.html", "/v1.2/a", "/index.php"] {
            assert!(may_be_a_page(page), "{page}");
        }
        for other in ["/a.pdf", "/sitemap.xml", "/a/b.jpg"] {
            assert!(!may_be_a_page(other), "{other}");
        }
    }
}
