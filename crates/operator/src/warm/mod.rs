//! `seawall warm`: fills the cache before readers come.
//!
//! Pages come from sitemaps, from what is stored and stale, or from the command line; each is asked for through the running server's own
//! listener, as a browser would ask, so that what is stored is what readers will find. Every connection goes to that listener: an
//! address on a host that the server does not serve is skipped, never asked for elsewhere.
//!
//! | what | bounded by |
//! |---|---|
//! | pages | [`PAGES_MAX`], of 2,048 bytes at most; sitemaps of sites have some thousands |
//! | sitemaps followed | [`SITEMAPS_MAX`], one after the other, 50 MiB each |
//! | requests at the same time | `--concurrency`, 64 at most |

mod hosts;
mod listener;
mod pace;
mod report;
mod screen;
mod sitemap;

use std::{
    collections::{HashSet, VecDeque},
    error::Error,
    pin::pin,
    time::{Duration, Instant},
};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http::{HeaderMap, Uri, header};

use self::{
    hosts::Hosts,
    listener::{Answer, Listeners},
    pace::Pace,
};
pub use self::{
    listener::NoAnswer,
    report::{Outcome, Summary},
    screen::Screen,
    sitemap::BadSitemap,
};
use crate::{
    admin_client::{AdminClient, AdminError},
    units::count,
};

/// The most pages of one run.
const PAGES_MAX: usize = 500_000;

/// The most sitemaps of one run.
const SITEMAPS_MAX: usize = 1_000;

/// The number of times that a page is asked for whose server had too much to do.
const ATTEMPTS: u32 = 3;

/// Says which pages are to be fetched, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The addresses of pages.
    pub urls: Vec<String>,
    /// The addresses of sitemaps whose pages are fetched.
    pub sitemaps: Vec<String>,
    /// Whether pages are fetched that are stored and stale or purged.
    pub stored: bool,
    /// The one host whose pages are fetched.
    pub host: Option<String>,
    /// The number of requests at the same time.
    pub concurrency: usize,
    /// The most requests a second.
    pub rate: Option<f64>,
}

/// Hears how a run goes.
pub trait Progress {
    /// Hears how many pages will be asked for.
    fn begin(&mut self, pages: usize);
    /// Hears that one more page is done.
    fn done(&mut self, url: &str, outcome: &Outcome);
    /// Hears something that the operator should know, on a line of its own.
    fn say(&mut self, words: &str);
}

/// Holds a page to ask for.
#[derive(Debug, Clone)]
struct Page {
    uri: Uri,
    fields: Vec<(String, String)>,
    attempts: u32,
    /// Whether it was fetched a second time, to see that it is the same for two visitors.
    proven: bool,
}

/// Fetches what `options` name. When `stop` is ready, nothing further is asked; what was done so far is in the summary.
///
/// # Errors
/// When the server cannot be asked at all, or nothing was found to ask for.
pub async fn warm(
    client: &AdminClient,
    options: &Options,
    progress: &mut impl Progress,
    stop: impl Future<Output = ()>,
) -> Result<Summary, WarmError> {
    let status: admin_api::Status = client.get("/status")?;
    let listeners = Listeners::of(&status.listeners, client.address().ip())?;
    let mut stop = pin!(stop);
    let mut run = Run {
        hosts: Hosts::new(&status, options),
        listeners,
        progress,
        pages: VecDeque::new(),
        seen: HashSet::new(),
        optional: HashSet::new(),
        summary: Summary::default(),
    };
    tokio::select! {
        collected = run.collect(client, options) => collected?,
        () = &mut stop => return Err(WarmError::Stopped),
    }
    run.progress.begin(run.pages.len());
    run.fetch_all(options, stop).await;
    if let Some(hint) = run.hosts.hint() {
        run.progress.say(&hint);
    }
    Ok(run.summary)
}

/// The most redirects that are followed to a `robots.txt` or a sitemap (RFC 9309 §2.3.1.2).
const REDIRECTS_MAX: usize = 5;

/// Says why nothing was asked for.
#[derive(Debug, thiserror::Error)]
pub enum WarmError {
    /// The admin API gave no answer.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The server names no listener that speaks HTTP/1.1.
    #[error("the server names no listener of its own")]
    NoListener,
    /// TLS cannot be had on this machine.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The configuration names no host, so that it is not known whose sitemap to read.
    #[error("the configuration names no host whose sitemap could be read\n  --host or --sitemap names one.")]
    NoHost,
    /// A `robots.txt` could not be read.
    #[error("{url} could not be read")]
    RobotsUnread {
        /// The address of the `robots.txt`.
        url: String,
        /// The reason.
        source: ListingError,
    },
    /// No sitemap could be read. Each is here with its reason.
    #[error("no sitemap could be read\n  {}\n  {}", .failures.join("\n  "), other_sitemap(.unnamed.as_deref()))]
    NoSitemap {
        /// The sitemaps, each with the reason.
        failures: Vec<String>,
        /// A host that the server serves, of which nobody said that its pages are wanted.
        unnamed: Option<String>,
    },
    /// The sitemaps are empty.
    #[error("the sitemaps name no page\n  --sitemap names another one.")]
    NoPage,
    /// Whoever asked for it stopped it.
    #[error("stopped before anything was asked for")]
    Stopped,
}

/// Says what to do when no sitemap could be read.
fn other_sitemap(unnamed: Option<&str>) -> String {
    unnamed.map_or_else(
        || "--sitemap names another one; addresses of pages can be named as well.".to_owned(),
        |host| format!("If {host} is this site, say --host {host}."),
    )
}

/// Says why a `robots.txt` or a sitemap was not read.
#[derive(Debug, thiserror::Error)]
pub enum ListingError {
    /// It was asked for in vain.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// It leads to a host that is not served; with the reason.
    #[error("{0}")]
    Elsewhere(String),
    /// It was answered with this status.
    #[error("status {0}")]
    Status(u16),
    /// It is not a sitemap.
    #[error(transparent)]
    Sitemap(#[from] BadSitemap),
    /// It leads back to itself.
    #[error(
        "it is redirected again and again. If the server sends visitors to https, and a proxy in front ends TLS, add 127.0.0.1 to trusted_proxies"
    )]
    Circle,
}

struct Run<'a, P> {
    hosts: Hosts,
    listeners: Listeners,
    progress: &'a mut P,
    pages: VecDeque<Page>,
    seen: HashSet<(String, Vec<(String, String)>)>,
    /// The sitemaps that need not be there.
    optional: HashSet<String>,
    summary: Summary,
}

impl<P: Progress> Run<'_, P> {
    /// Gathers what is to be asked for.
    async fn collect(&mut self, client: &AdminClient, options: &Options) -> Result<(), WarmError> {
        for url in &options.urls {
            self.hosts.name(url);
            self.add(url, browser_fields());
        }
        if options.stored {
            let command = admin_api::StoredCommand { host: options.host.clone() };
            let inventory: admin_api::Inventory = client.post("/stored", &command.to_json())?;
            for page in inventory.pages {
                self.hosts.name(&page.url);
                self.add(&page.url, page.fields);
            }
            if inventory.left_off > 0 {
                let more = count(inventory.left_off as u64, "more stored response is", "more stored responses are");
                self.progress.say(&format!("{more} stale: run this again for them."));
            }
        }
        if !options.sitemaps.is_empty() {
            for url in &options.sitemaps {
                self.hosts.name(url);
            }
            self.follow(options.sitemaps.iter().cloned().collect()).await
        } else if options.urls.is_empty() && !options.stored {
            let sitemaps = self.find_sitemaps().await?;
            self.follow(sitemaps).await
        } else {
            Ok(())
        }
    }

    /// Finds the sitemaps of every host that has a name: those in its `robots.txt`, or the one at the usual place.
    async fn find_sitemaps(&mut self) -> Result<VecDeque<String>, WarmError> {
        let mut sitemaps = VecDeque::new();
        for bases in self.hosts.bases(&self.listeners)? {
            let last = bases.len() - 1;
            for (at, base) in bases.iter().enumerate() {
                self.hosts.name(base);
                let robots = format!("{base}/robots.txt");
                let named = match self.follow_redirects(&robots, ROBOTS_BYTES_MAX).await {
                    Ok(Answer { status: 200, content, .. }) => sitemap::in_robots(&content),
                    Ok(_) | Err(ListingError::NoAnswer(NoAnswer::TooLong(_)) | ListingError::Elsewhere(_)) => Vec::new(),
                    // Not certified yet: readers come without TLS.
                    Err(ListingError::NoAnswer(NoAnswer::Handshake(_))) if at < last => continue,
                    Err(source) => return Err(WarmError::RobotsUnread { url: robots, source }),
                };
                if named.is_empty() {
                    let sitemap = format!("{base}{}/sitemap.xml", self.hosts.base_path(base));
                    if self.hosts.is_beside(base) {
                        self.optional.insert(sitemap.clone());
                    }
                    sitemaps.push_back(sitemap);
                }
                sitemaps.extend(named);
                break;
            }
        }
        Ok(sitemaps)
    }

    /// Asks for what is read and not kept, and follows where it leads, as crawlers do (RFC 9309 §2.3.1.2).
    async fn follow_redirects(&mut self, url: &str, content_max: u64) -> Result<Answer, ListingError> {
        let mut uri = self.hosts.admit(url).map_err(ListingError::Elsewhere)?;
        for _ in 0..REDIRECTS_MAX {
            let answer = self.listeners.get(&uri, &[], Some(content_max)).await?;
            let Some(location) = answer.location() else { return Ok(answer) };
            let there = if location.starts_with('/') && !location.starts_with("//") {
                let authority = uri.authority().map_or("", |authority| authority.as_str());
                format!("{}://{authority}{location}", uri.scheme_str().unwrap_or("http"))
            } else {
                location.to_owned()
            };
            uri = self.hosts.admit(&there).map_err(|why| ListingError::Elsewhere(format!("it leads to {there}: {why}")))?;
        }
        Err(ListingError::Circle)
    }

    /// Reads sitemaps, and those that they name in turn.
    async fn follow(&mut self, mut sitemaps: VecDeque<String>) -> Result<(), WarmError> {
        let mut read = HashSet::new();
        let mut failures = Vec::new();
        while let Some(url) = sitemaps.pop_front() {
            if !read.insert(url.clone()) {
                continue;
            }
            if read.len() > SITEMAPS_MAX {
                self.progress.say(&format!("More than {SITEMAPS_MAX} sitemaps: the rest is left out."));
                break;
            }
            match self.read_sitemap(&url).await {
                Ok(found) => {
                    found.pages.iter().for_each(|page| self.add(page, browser_fields()));
                    sitemaps.extend(found.sitemaps);
                }
                Err(ListingError::Status(404)) if self.optional.contains(&url) => {}
                Err(error) => failures.push(format!("{url}: {}", with_causes(&error))),
            }
        }
        if failures.is_empty() && self.pages.is_empty() && self.summary.is_success() {
            return Err(WarmError::NoPage);
        }
        if failures.len() == read.len() {
            return Err(WarmError::NoSitemap { failures, unnamed: self.hosts.unnamed().map(str::to_owned) });
        }
        for failure in failures {
            self.progress.say(&format!("This sitemap is left out: {failure}"));
            self.summary.count(Outcome::Failed("unreadable sitemap".to_owned()));
        }
        Ok(())
    }

    async fn read_sitemap(&mut self, url: &str) -> Result<sitemap::Sitemap, ListingError> {
        let answer = self.follow_redirects(url, sitemap::BYTES_MAX).await?;
        if answer.status != 200 {
            return Err(ListingError::Status(answer.status));
        }
        Ok(sitemap::parse(&answer.content)?)
    }

    fn add(&mut self, url: &str, fields: Vec<(String, String)>) {
        let uri = match self.hosts.admit(url) {
            Ok(uri) => uri,
            Err(why) => return self.summary.count(Outcome::Skipped(why)),
        };
        if self.pages.len() < PAGES_MAX && self.seen.insert((uri.to_string(), fields.clone())) {
            self.pages.push_back(Page { uri, fields, attempts: 0, proven: false });
        }
    }

    /// Asks for all pages, some at a time, until there are none left or it makes no sense to go on.
    async fn fetch_all(&mut self, options: &Options, stop: impl Future<Output = ()>) {
        self.seen = HashSet::new();
        let mut stop = pin!(stop);
        let mut pace = Pace::new(options.rate, Instant::now());
        let listeners = self.listeners.clone();
        let mut under_way = FuturesUnordered::new();
        loop {
            while under_way.len() < options.concurrency {
                let Some(mut page) = self.pages.pop_front() else { break };
                let at = pace.turn(Instant::now());
                let listeners = &listeners;
                under_way.push(async move {
                    tokio::time::sleep_until(at.into()).await;
                    let mut answer = listeners.page(&page.uri, &page.fields).await;
                    if answer.as_ref().is_ok_and(is_being_proven) {
                        // Whoever asks again waits until it is known whether it is stored.
                        page.proven = true;
                        answer = listeners.page(&page.uri, &page.fields).await;
                    }
                    (page, answer)
                });
            }
            let (page, answer) = tokio::select! {
                biased;
                () = &mut stop => break self.give_up(under_way.len(), "stopped"),
                next = under_way.next() => match next {
                    Some(done) => done,
                    None => break,
                },
            };
            self.take(page, answer, &mut pace);
            if pace.is_hopeless() {
                break self.give_up(under_way.len(), "the server fails again and again");
            }
        }
    }

    /// Takes one answer, and decides whether the page is asked for again.
    fn take(&mut self, mut page: Page, answer: Result<Answer, NoAnswer>, pace: &mut Pace) {
        page.attempts += 1;
        let outcome = match answer {
            Ok(answer) if answer.status == 429 || answer.status >= 500 => {
                let pause = pace.failed(retry_after(&answer.headers), Instant::now());
                if matches!(answer.status, 429 | 503) && page.attempts < ATTEMPTS {
                    self.progress.say(&format!("{}: status {}; nothing is asked for {} s.", page.uri, answer.status, pause.as_secs()));
                    self.pages.push_back(page);
                    return;
                }
                Outcome::of(answer.status, "", "")
            }
            Ok(answer) => {
                pace.succeeded();
                match Outcome::of(answer.status, &text(&answer.headers, "x-cache"), &text(&answer.headers, "cache-status")) {
                    Outcome::Hit if page.proven => Outcome::Stored,
                    outcome => outcome,
                }
            }
            Err(error) => {
                pace.failed(None, Instant::now());
                Outcome::Failed(error.to_string())
            }
        };
        self.progress.done(&page.uri.to_string(), &outcome);
        self.summary.count(outcome);
    }

    fn give_up(&mut self, under_way: usize, why: &str) {
        let left = self.pages.len() + under_way;
        if left > 0 {
            self.summary.stopped = Some((left, why.to_owned()));
        }
    }
}

/// Writes an error and what caused it on one line.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// The most bytes of a `robots.txt` that are read: as many as crawlers read (RFC 9309 §2.5).
const ROBOTS_BYTES_MAX: u64 = 500 << 10;

/// The `Accept` of a browser that opens a page.
const BROWSER_ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";

/// Returns the fields that browsers send and that cache keys may depend on.
fn browser_fields() -> Vec<(String, String)> {
    [("accept", BROWSER_ACCEPT), ("accept-encoding", "gzip, deflate, br, zstd"), ("accept-language", "en-US,en;q=0.5")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

/// Joins all lines of a field to one value.
/// Returns whether a page is being fetched a second time, as another visitor would, before it is stored.
fn is_being_proven(answer: &Answer) -> bool {
    text(&answer.headers, "cache-status").ends_with("detail=two-visitor-proof")
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect::<Vec<_>>().join(", ")
}

/// Reads a `Retry-After` in seconds (RFC 9110 §10.2.3). A date is not worth a clock here: the usual pause will do.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}
