//! Blogs as an operator meets them: what is said of changes and mistakes, the private links of drafts, and who is told to reload.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use admin::Token;
use blog::{Blog, BlogOptions, Change, Problem, Rebuilt, Severity, Watcher, Workshop};
use edge::Socket;
use policy::purge::What;

use crate::config::settings::{Settings, Site};

/// The file with the secret of which private links are made. It lies beside the token of the admin API, and never in the blog's folder.
const SECRET_FILE: &str = "preview-secret";

/// The most problems that are told at once.
const PROBLEMS_MAX: usize = 100;

/// The most private links that are written into one message.
const LINKS_MAX: usize = 10;

/// A blog that is served, and what watches its folder.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) blog: Blog,
    is_live: bool,
    watcher: Option<Arc<Watcher>>,
}

/// Makes the options with which a folder of Markdown is opened.
pub(crate) fn options(site: &Site) -> BlogOptions {
    let blog = site.blog.clone();
    BlogOptions { title: blog.title, base_url: blog.base_url, drafts: blog.drafts, ..BlogOptions::default() }
}

impl Served {
    /// Opens the blog in `folder`, has its pictures made by `workshop`, and watches it. `purge` is called with what was made of changed files.
    #[expect(clippy::disallowed_methods, reason = "a post that lies ahead waits for the machine's time")]
    pub(crate) fn open(
        folder: &Path,
        (site, settings): (&Site, &Settings),
        listening: &[Socket],
        workshop: &Arc<Workshop>,
        purge: impl Fn(Vec<What>) + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let blog = Blog::open_in(folder, options(site), workshop, std::time::SystemTime::now().into())?;
        tell(folder, &blog.problems());
        let secret_file = secret_file(settings);
        keep_previews(&blog, &secret_file);
        let is_live = is_live(site, settings, listening);
        if is_live {
            blog.allow_live_reload();
        }
        let watcher = blog::watch(&blog, {
            let (blog, folder) = (blog.clone(), folder.to_owned());
            move |change| match change {
                Change::Published(rebuilt) => {
                    keep_previews(&blog, &secret_file);
                    purge(to_purge(&rebuilt));
                    blog.announce();
                    tell_of_change(&folder, &blog, &rebuilt);
                }
                Change::Failed(error) => tracing::error!("the blog stays as it was:\n{error}"),
            }
        });
        let watcher = watcher.map_err(|error| tracing::warn!("{error}")).ok();
        Ok(Self { blog, is_live, watcher: watcher.map(Arc::new) })
    }

    /// Returns whether the same would be served by these settings: then it need not be opened again. A folder that is not watched may have changed.
    pub(crate) fn is_for(&self, (site, settings): (&Site, &Settings), listening: &[Socket]) -> bool {
        self.watcher.is_some() && self.is_live == is_live(site, settings, listening)
    }
}

/// Returns whether pages reload themselves when they have changed: only where nobody but people on this machine can ask for them.
fn is_live(site: &Site, settings: &Settings, listening: &[Socket]) -> bool {
    let is_near = |socket: &Socket| matches!(socket, Socket::Tcp(address) if address.ip().is_loopback());
    let is_public_name = |host: &String| !matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]");
    !listening.is_empty()
        && listening.iter().all(is_near)
        && settings.server.trusted_proxies.is_empty()
        && !site.hosts.iter().any(is_public_name)
}

fn to_purge(rebuilt: &Rebuilt) -> Vec<What> {
    match rebuilt.tags() {
        Some(tags) => tags.into_iter().map(What::Tag).collect(),
        None => vec![What::Everything],
    }
}

/// Returns where the secret of private links is kept.
pub(crate) fn secret_file(settings: &Settings) -> PathBuf {
    settings.server.admin_token_file.with_file_name(SECRET_FILE)
}

/// Gives the blog's drafts their private links, if it has drafts: nothing is written for a blog without any.
fn keep_previews(blog: &Blog, secret_file: &Path) {
    let drafts = blog.drafts();
    if drafts.iter().all(|draft| draft.link.is_some()) {
        return;
    }
    let kept = Token::load_or_create(secret_file).map_err(|error| {
        tracing::warn!("the private links of drafts are new ones at each start: {error}");
    });
    match kept.or_else(|()| Token::random()) {
        Ok(secret) => give_links(blog, &secret),
        Err(error) => tracing::warn!("drafts have no private links: {error}"),
    }
}

/// Gives the blog's drafts the private links that are made of this secret.
pub(crate) fn give_links(blog: &Blog, secret: &Token) {
    // Drafts of the same name in another folder have another link.
    let folder = blog.folder().canonicalize().unwrap_or_else(|_| blog.folder().to_owned());
    blog.keep_previews(format!("{} {}", secret.as_str(), folder.display()).as_bytes());
}

/// Returns a line for each text that readers do not see yet, with its private link below `base`.
pub(crate) fn drafts(blog: &Blog, base: &str) -> Vec<String> {
    let drafts = blog.drafts();
    let line = |draft: &blog::PrivateText| {
        let when = draft.due.map_or_else(|| "a draft".to_owned(), |due| format!("to be published at {due:.0}"));
        let link = draft.link.as_ref().map_or_else(|| "no private link yet".to_owned(), |link| format!("{base}{link}"));
        format!("{} ({when}): {link}", draft.file)
    };
    let mut lines: Vec<String> = drafts.iter().take(LINKS_MAX).map(line).collect();
    if drafts.len() > LINKS_MAX {
        lines.push(format!("and {} more drafts", drafts.len() - LINKS_MAX));
    }
    lines
}

fn tell(folder: &Path, problems: &[Problem]) {
    let folder = folder.display();
    for problem in problems.iter().take(PROBLEMS_MAX) {
        match problem.severity {
            Severity::Error => tracing::error!("{folder}/{problem}"),
            Severity::Warning => tracing::warn!("{folder}/{problem}"),
        }
    }
    if let Some(more) = problems.len().checked_sub(PROBLEMS_MAX).filter(|more| *more > 0) {
        tracing::error!("and {more} more: seawall check {folder} tells them all");
    }
}

fn tell_of_change(folder: &Path, blog: &Blog, rebuilt: &Rebuilt) {
    tell(folder, &rebuilt.problems);
    for problem in &rebuilt.mended {
        tracing::info!("mended: {}/{problem}", folder.display());
    }
    let changed = if rebuilt.rules { "all pages changed".to_owned() } else { count(rebuilt.paths.len(), "page", "changed") };
    tracing::info!("the blog was rebuilt: {}, {changed}", count(rebuilt.read, "file", "read"));
    for draft in blog.drafts().iter().filter(|draft| rebuilt.drafts.contains(&draft.path)).take(LINKS_MAX) {
        if let Some(link) = &draft.link {
            tracing::info!("{} is not published yet; its private link is {link}", draft.file);
        }
    }
}

fn count(number: usize, noun: &str, verb: &str) -> String {
    if number == 1 { format!("1 {noun} {verb}") } else { format!("{number} {noun}s {verb}") }
}
