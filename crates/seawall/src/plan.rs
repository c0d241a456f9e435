//! From settings to sites: what all workers share of a site is made once, and each worker makes its own origin of it.

use std::{
    path::{Path, PathBuf},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use access::Lock;
use anyhow::Context;
use blog::{Blog, BlogOptions, Change, Watcher};
use origins::{
    Origin,
    files::{self, Files, FilesOptions},
    http::{Address, Budget, HttpOptions, HttpOrigin, tls_config},
};
use pipeline::{Auth, Collapse, Down, Https, Refill, ResponseFields, Router, Shared};
use policy::{EarlyHints, Policy};
use store::{Hardness, SiteNumber, SiteNumbers, Target};

use crate::config::settings::{self, Cache, Headers, Kind, OriginHost, OriginSettings, Settings, Site, Source};
use crate::origin_health::{OriginHealth, OriginWatch};

/// The sites of a configuration, ready for every worker to use.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    pub(crate) sites: Vec<SitePlan>,
}

/// One site.
#[derive(Debug)]
pub(crate) struct SitePlan {
    pub(crate) id: u16,
    site: Site,
    policy: policy::Settings,
    source: SharedSource,
    origin_host: Option<String>,
    auth: Option<Auth>,
    down: Arc<AtomicBool>,
    /// Whether its responses may be stored on the disk.
    on_disk: bool,
}

#[derive(Debug)]
enum SharedSource {
    Http { options: Arc<HttpOptions>, budget: Arc<Budget>, health: Arc<OriginHealth> },
    Files { files: Files, watcher: Arc<files::Watcher> },
    Blog { blog: Blog, _watcher: Option<Watcher> },
}

impl Plan {
    /// Opens what the settings name, unless a folder is the same as `before`: that stays watched without a gap.
    ///
    /// # Errors
    /// When a folder or a certificate file cannot be read.
    pub(crate) fn new(settings: Settings, numbers: &mut SiteNumbers, shared: &Arc<Shared>, before: Option<&Self>) -> anyhow::Result<Self> {
        let sites = settings
            .sites
            .iter()
            .map(|site| {
                SitePlan::new((site, &settings.server.trusted_fields), numbers, shared, before)
                    .with_context(|| format!("site {}", site.name))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { settings, sites })
    }

    /// The sites for one worker. Replaces `watches`, through which the worker tells how their origins are, unless it fails.
    pub(crate) fn router(&self, watches: &mut Vec<OriginWatch>) -> anyhow::Result<Router> {
        let mut new = Vec::new();
        let sites = self.sites.iter().map(|site| site.for_worker(&self.settings, &mut new)).collect::<anyhow::Result<_>>()?;
        *watches = new;
        Ok(Router::new(sites).with_health_path(self.settings.server.health_path.clone()))
    }

    /// Sites whose rules or source are not what they were: what is stored for them may be wrong now.
    pub(crate) fn changed_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = u16> + 'a {
        let has_changed =
            |site: &SitePlan, old: &SitePlan| old.site != site.site || old.policy.trusted_fields != site.policy.trusted_fields;
        self.sites.iter().filter(move |site| before.sites.iter().any(|old| old.id == site.id && has_changed(site, old))).map(|site| site.id)
    }
}

impl SitePlan {
    fn new(
        (site, trusted_fields): (&Site, &[String]),
        numbers: &mut SiteNumbers,
        shared: &Arc<Shared>,
        before: Option<&Plan>,
    ) -> anyhow::Result<Self> {
        // What would be purged when it changes in a running server must not be found after a restart either.
        let mut print = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            site.source, site.kind, site.cache, site.origin, site.blog, site.headers, site.compress
        ) + &site.auth.as_ref().map(|auth| format!(" {:?}", auth.paths)).unwrap_or_default();
        if !trusted_fields.is_empty() {
            print += &format!(" {trusted_fields:?}");
        }
        let SiteNumber { number: id, kept } = numbers.number(&site.name, print.as_bytes())?;
        let source = match &site.source {
            Source::Http(addresses) => {
                let addresses = addresses
                    .iter()
                    .map(|address| address.to_string().parse::<Address>().with_context(|| address.to_string()))
                    .collect::<anyhow::Result<Vec<_>>>()?;
                SharedSource::Http {
                    health: OriginHealth::of(&addresses),
                    options: Arc::new(http_options(addresses, &site.origin)?),
                    budget: Arc::new(budget(&site.origin)),
                }
            }
            Source::Files(folder) => {
                let same = before.and_then(|before| before.sites.iter().find(|old| old.id == id && old.site == *site));
                match same.map(|old| &old.source) {
                    Some(SharedSource::Files { files, watcher }) => {
                        SharedSource::Files { files: files.clone(), watcher: Arc::clone(watcher) }
                    }
                    _ => open_files(folder, site, id, shared).with_context(|| folder.display().to_string())?,
                }
            }
            Source::Blog(folder) => open_blog(folder, site, id, shared)?,
        };
        let origin_host = match &site.origin.host {
            OriginHost::Client => None,
            OriginHost::Name(name) => Some(name.clone()),
            OriginHost::Origin => match &source {
                SharedSource::Http { options, .. } => options.addresses().first().map(Address::authority),
                SharedSource::Files { .. } | SharedSource::Blog { .. } => None,
            },
        };
        // Folders are on a disk already, and a number that was not written down is another site's after a restart.
        let on_disk = kept && matches!(site.source, Source::Http(_));
        Ok(Self {
            id,
            on_disk,
            site: site.clone(),
            policy: policy::Settings {
                compress: site.compress.clone(),
                trusted_fields: trusted_fields.to_vec(),
                ..policy_settings(site.kind, &site.cache)
            },
            source,
            origin_host,
            auth: site.auth.as_ref().map(auth).transpose()?,
            down: Arc::default(),
        })
    }

    fn for_worker(&self, settings: &Settings, watches: &mut Vec<OriginWatch>) -> anyhow::Result<pipeline::Site> {
        let budget = match &self.source {
            SharedSource::Http { budget, .. } => Some(Arc::clone(budget)),
            SharedSource::Files { .. } | SharedSource::Blog { .. } => None,
        };
        let origin: Rc<dyn Origin> = match &self.source {
            SharedSource::Http { options, budget, health } => {
                let origin = Rc::new(HttpOrigin::new(Arc::clone(options), Some(Arc::clone(budget)))?);
                watches.push(OriginWatch::new(Rc::clone(&origin), Arc::clone(health)));
                origin
            }
            SharedSource::Files { files, .. } => Rc::new(files.clone()),
            SharedSource::Blog { blog, .. } => Rc::new(blog.clone()),
        };
        Ok(pipeline::Site {
            id: self.id,
            name: self.site.name.clone(),
            hosts: self.site.hosts.clone(),
            policy: Policy::new(policy::Settings { purge_path: settings.purge.path.clone(), ..self.policy.clone() }),
            origin,
            origin_host: self.origin_host.clone(),
            object_max: self.site.cache.object_max,
            disk_object_max: if self.on_disk { self.site.cache.disk_object_max } else { 0 },
            reader_wait_max: settings.limits.write_timeout,
            on_disk: self.on_disk,
            down: Down::telling(Arc::clone(&self.down)),
            collapse: Collapse::new(self.site.origin.collapse_wait, budget.clone()),
            refill: Refill::new(settings.refill.concurrency, budget),
            https: Https {
                redirect: self.site.https_redirect,
                own_port: settings.tls.as_ref().and_then(|tls| tls.listen.first()).map(std::net::SocketAddr::port),
            },
            fields: response_fields(&self.site.headers),
            auth: self.auth.clone(),
        })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.site.name
    }

    /// Its host names; none: all.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.site.hosts
    }

    /// Whether its server could be connected to when that was tried last; nothing, if there is no server.
    pub(crate) fn origin_up(&self) -> Option<bool> {
        matches!(self.source, SharedSource::Http { .. }).then(|| !self.down.load(Ordering::Relaxed))
    }

    /// The addresses of its server, and whether each is in use. An only address is up if the last request there got a response; of
    /// several, one is up if no worker leaves it alone.
    pub(crate) fn addresses_up(&self) -> impl Iterator<Item = (&str, bool)> {
        let health = match &self.source {
            SharedSource::Http { health, .. } => Some(health),
            SharedSource::Files { .. } | SharedSource::Blog { .. } => None,
        };
        let last = self.origin_up().unwrap_or(true);
        health.into_iter().flat_map(move |health| {
            let is_only = health.addresses().count() == 1;
            health.addresses().map(move |(address, up)| (address, if is_only { last } else { up }))
        })
    }

    /// Requests at its origin, and requests waiting to be sent there.
    pub(crate) fn origin_load(&self) -> Option<(usize, usize)> {
        match &self.source {
            SharedSource::Http { budget, .. } => Some((budget.in_flight(), budget.waiting())),
            SharedSource::Files { .. } | SharedSource::Blog { .. } => None,
        }
    }
}

fn auth(auth: &settings::Auth) -> anyhow::Result<Auth> {
    // Lines that are wrong were refused with the settings, or have become so this moment: then they let nobody in.
    let (lock, _) = Lock::open(&auth.file)?;
    Ok(Auth { lock: Arc::new(lock), paths: auth.paths.clone(), challenge: auth.challenge.clone(), forward: auth.forward })
}

fn response_fields(headers: &Headers) -> ResponseFields {
    let Headers { remove, set, set_on_documents, hsts } = headers.clone();
    ResponseFields { remove, set, set_on_documents, hsts }
}

fn http_options(addresses: Vec<Address>, origin: &OriginSettings) -> anyhow::Result<HttpOptions> {
    let mut options = HttpOptions::new(addresses, tls_config(origin.ca_file.as_deref())?);
    options.connect_timeout = origin.connect_timeout;
    options.first_byte_timeout = origin.first_byte_timeout;
    options.between_bytes_timeout = origin.between_bytes_timeout;
    // Whoever allows the origin more requests at once allows it the connections too.
    options.pool_idle_max = options.pool_idle_max.max(origin.concurrency);
    Ok(options)
}

fn budget(origin: &OriginSettings) -> Budget {
    Budget::new(origin.concurrency, origin.queue, origin.queue_timeout)
}

fn open_files(folder: &Path, site: &Site, id: u16, shared: &Arc<Shared>) -> anyhow::Result<SharedSource> {
    let options = FilesOptions { listing: site.files.listing, fallback: site.files.fallback.clone(), whole_max: site.cache.object_max };
    let files = Files::open(folder, options)?;
    warn_of(folder, &files.mistakes());
    let (shared, name) = (Arc::clone(shared), folder.to_owned());
    let watcher = files.watch(move |change| match change {
        files::Change::Tags(tags) => {
            for tag in tags {
                shared.purge(&Target::Tag { site: id, tag }, Hardness::Hard);
            }
        }
        files::Change::Everything => drop(shared.purge(&Target::Site(id), Hardness::Hard)),
        files::Change::Replaced(mistakes) => {
            shared.purge(&Target::Site(id), Hardness::Hard);
            tracing::info!(folder = %name.display(), "a new version of the folder is served");
            warn_of(&name, &mistakes);
        }
    })?;
    Ok(SharedSource::Files { files, watcher: Arc::new(watcher) })
}

/// Lines of `_redirects` and `_headers` that mean nothing. The others hold.
fn warn_of(folder: &Path, mistakes: &[files::Mistake]) {
    for mistake in mistakes {
        tracing::warn!("{}/{mistake}", folder.display());
    }
}

fn open_blog(folder: &PathBuf, site: &Site, id: u16, shared: &Arc<Shared>) -> anyhow::Result<SharedSource> {
    let options = BlogOptions { title: site.blog.title.clone(), base_url: site.blog.base_url.clone(), ..BlogOptions::default() };
    let blog = Blog::open(folder, options)?;
    let shared = Arc::clone(shared);
    let watcher = blog::watch(&blog, move |change| match change {
        Change::Published { paths } => {
            shared.purge(&Target::Site(id), Hardness::Hard);
            tracing::info!(changed = paths.len(), "the blog was rebuilt");
        }
        Change::Failed(error) => tracing::error!("the blog stays as it was:\n{error}"),
    });
    let watcher = match watcher {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!("{error}");
            None
        }
    };
    Ok(SharedSource::Blog { blog, _watcher: watcher })
}

fn policy_settings(kind: Kind, cache: &Cache) -> policy::Settings {
    let preset = policy::Settings::preset(match kind {
        Kind::Generic => policy::Kind::Generic,
        Kind::Blog => policy::Kind::Blog,
        Kind::Static => policy::Kind::Static,
    });
    policy::Settings {
        hold: cache.hold.or(preset.hold),
        stale_if_error: cache.stale_if_error.or(preset.stale_if_error),
        stale_while_revalidate: cache.stale_while_revalidate.or(preset.stale_while_revalidate),
        ignore_cookies: cache.ignore_cookies.clone(),
        ignore_query: cache.ignore_query.clone(),
        keep_query: cache.keep_query.clone(),
        honour_request_directives: cache.honour_request_directives,
        store_set_cookie: cache.store_set_cookie,
        early_hints: match (cache.early_hints, cache.early_hints_http1) {
            (false, _) => EarlyHints::Off,
            (true, false) => EarlyHints::On,
            (true, true) => EarlyHints::Http1,
        },
        ..preset
    }
}
