//! From settings to sites: what all workers share of a site is made once, and each worker makes its own origin of it.

use std::{
    path::{Path, PathBuf},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use access::Lock;
use anyhow::Context;
use blog::{Blog, BlogOptions, Change, Watcher};
use origins::{
    Origin,
    files::{self, Files, FilesOptions},
    http::HttpOrigin,
    server::{Address, Budget, ServerOptions, tls_config},
};
use pipeline::{Auth, Collapse, Down, Https, Parts, Refill, ResponseFields, Route, Router, Shared};
use policy::{EarlyHints, Policy};
use store::{Hardness, SiteNumber, SiteNumbers, Target};

use crate::config::settings::{self, Cache, Headers, Kind, OriginAddress, OriginHost, OriginSettings, Settings, Site, Source};

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
    auth: Option<Auth>,
    whole: PartPlan,
    /// In the order of the site's routes.
    parts: Vec<PartPlan>,
}

/// A site or a part of it: what answers, and by which rules.
#[derive(Debug)]
struct PartPlan {
    route: Option<Route>,
    policy: policy::Settings,
    cache: Cache,
    collapse_wait: Duration,
    headers: Headers,
    source: SharedSource,
    origin_host: Option<String>,
    down: Arc<AtomicBool>,
    /// Whether its responses may be stored on the disk.
    on_disk: bool,
}

/// A server behind a site, and how it is doing.
#[derive(Debug)]
pub(crate) struct ServerState {
    /// The path of the part that it answers for; `None`: it answers for the site.
    pub(crate) route: Option<String>,
    /// Whether it could be connected to when that was tried last.
    pub(crate) up: bool,
    /// Where it listens, and whether requests go to each of these addresses as to any other.
    pub(crate) addresses: Vec<(String, bool)>,
    pub(crate) in_flight: usize,
    pub(crate) waiting: usize,
}

#[derive(Debug)]
enum SharedSource {
    Http { options: Arc<ServerOptions>, budget: Arc<Budget> },
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

    /// The sites for one worker.
    pub(crate) fn router(&self) -> anyhow::Result<Router> {
        let sites = self.sites.iter().map(|site| site.for_worker(&self.settings)).collect::<anyhow::Result<_>>()?;
        let router = Router::new(sites).with_health_path(self.settings.server.health_path.clone());
        let moved = self.settings.sites.iter().flat_map(|site| {
            let there = site.redirect_to().unwrap_or_default();
            site.redirect_from.iter().map(move |host| (host.clone(), there.to_owned()))
        });
        // The other form of a name leads there where no site has it.
        let twins = self.settings.tls.iter().filter_map(|tls| tls.acme.as_ref()).flat_map(|acme| acme.twins.iter());
        let twins: Vec<_> = twins.filter(|(twin, _)| router.site(twin).is_none()).cloned().collect();
        Ok(router.with_moved(twins).with_moved(moved))
    }

    /// Sites whose rules or source are not what they were: what is stored for them may be wrong now.
    pub(crate) fn changed_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = u16> + 'a {
        let has_changed =
            |site: &SitePlan, old: &SitePlan| old.site != site.site || old.whole.policy.trusted_fields != site.whole.policy.trusted_fields;
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
        ) + &(if site.routes.is_empty() { String::new() } else { format!(" {:?}", site.routes) })
            + &site.auth.as_ref().map(|auth| format!(" {:?}", auth.paths)).unwrap_or_default();
        if !trusted_fields.is_empty() {
            print += &format!(" {trusted_fields:?}");
        }
        let SiteNumber { number: id, kept } = numbers.number(&site.name, print.as_bytes())?;
        let source = match &site.source {
            Source::Http(addresses) => SharedSource::server(addresses, &site.origin)?,
            Source::Files(folder) => {
                let same = before.and_then(|before| before.sites.iter().find(|old| old.id == id && old.site == *site));
                match same.map(|old| &old.whole.source) {
                    Some(SharedSource::Files { files, watcher }) => {
                        SharedSource::Files { files: files.clone(), watcher: Arc::clone(watcher) }
                    }
                    _ => open_files(folder, site, id, shared).with_context(|| folder.display().to_string())?,
                }
            }
            Source::Blog(folder) => open_blog(folder, site, id, shared)?,
        };
        // Folders are on a disk already, and a number that was not written down is another site's after a restart.
        let on_disk = kept && matches!(site.source, Source::Http(_));
        let policy = |kind: Kind, cache: &Cache| policy::Settings {
            compress: site.compress.clone(),
            trusted_fields: trusted_fields.to_vec(),
            ..policy_settings(kind, cache)
        };
        let whole = PartPlan {
            route: None,
            policy: policy(site.kind, &site.cache),
            cache: site.cache.clone(),
            collapse_wait: site.origin.collapse_wait,
            headers: site.headers.clone(),
            origin_host: source.host(&site.origin.host),
            source,
            down: Arc::default(),
            on_disk,
        };
        let part = |route: &settings::Route| -> anyhow::Result<PartPlan> {
            let source = SharedSource::server(&route.addresses, &route.origin).with_context(|| format!("route {}", route.path))?;
            Ok(PartPlan {
                route: Some(Route { path: route.path.clone(), strip_prefix: route.strip_prefix, cache: route.is_cached }),
                policy: policy(Kind::Generic, &route.cache),
                cache: route.cache.clone(),
                collapse_wait: route.origin.collapse_wait,
                headers: route.headers.clone(),
                origin_host: source.host(&route.origin.host),
                source,
                down: Arc::default(),
                on_disk: kept,
            })
        };
        let parts = site.routes.iter().map(part).collect::<anyhow::Result<_>>()?;
        Ok(Self { id, site: site.clone(), auth: site.auth.as_ref().map(auth).transpose()?, whole, parts })
    }

    fn for_worker(&self, settings: &Settings) -> anyhow::Result<pipeline::Site> {
        let parts = self.parts.iter().map(|part| self.part_for_worker(part, settings)).collect::<anyhow::Result<_>>()?;
        Ok(pipeline::Site { parts: Parts::new(parts), ..self.part_for_worker(&self.whole, settings)? })
    }

    fn part_for_worker(&self, part: &PartPlan, settings: &Settings) -> anyhow::Result<pipeline::Site> {
        let budget = match &part.source {
            SharedSource::Http { budget, .. } => Some(Arc::clone(budget)),
            SharedSource::Files { .. } | SharedSource::Blog { .. } => None,
        };
        let origin: Rc<dyn Origin> = match &part.source {
            SharedSource::Http { options, budget } => Rc::new(HttpOrigin::new(Arc::clone(options), Some(Arc::clone(budget)))?),
            SharedSource::Files { files, .. } => Rc::new(files.clone()),
            SharedSource::Blog { blog, .. } => Rc::new(blog.clone()),
        };
        Ok(pipeline::Site {
            id: self.id,
            name: self.site.name.clone(),
            hosts: self.site.hosts.clone(),
            policy: Policy::new(policy::Settings { purge_path: settings.purge.path.clone(), ..part.policy.clone() }),
            origin,
            origin_host: part.origin_host.clone(),
            object_max: part.cache.object_max,
            disk_object_max: if part.on_disk { part.cache.disk_object_max } else { 0 },
            reader_wait_max: settings.limits.write_timeout,
            on_disk: part.on_disk,
            down: Down::telling(Arc::clone(&part.down)),
            collapse: Collapse::new(part.collapse_wait, budget.clone()),
            refill: Refill::new(settings.refill.concurrency, budget),
            https: Https {
                redirect: self.site.https_redirect,
                own_port: settings.tls.as_ref().and_then(|tls| tls.listen.first()).map(std::net::SocketAddr::port),
            },
            fields: response_fields(&part.headers),
            auth: self.auth.clone(),
            route: part.route.clone(),
            parts: Parts::default(),
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

    /// Its settings.
    pub(crate) const fn settings(&self) -> &Site {
        &self.site
    }

    /// The servers behind it, that of the whole site first.
    pub(crate) fn servers(&self) -> impl Iterator<Item = ServerState> {
        std::iter::once(&self.whole).chain(&self.parts).filter_map(|part| match &part.source {
            SharedSource::Http { options, budget } => {
                let up = !part.down.load(Ordering::Relaxed);
                Some(ServerState {
                    route: part.route.as_ref().map(|route| route.path.clone()),
                    up,
                    addresses: options
                        .known()
                        .map(|(address, is_up)| (address.to_string(), is_up && (up || options.addresses().len() > 1)))
                        .collect(),
                    in_flight: budget.in_flight(),
                    waiting: budget.waiting(),
                })
            }
            SharedSource::Files { .. } | SharedSource::Blog { .. } => None,
        })
    }

    /// Whether the server of the whole site could be connected to when that was tried last; nothing, if a folder is behind it.
    pub(crate) fn origin_up(&self) -> Option<bool> {
        self.servers().find(|server| server.route.is_none()).map(|server| server.up)
    }

    /// Requests at its servers, and requests waiting to be sent there.
    pub(crate) fn origin_load(&self) -> Option<(usize, usize)> {
        let loads = self.servers().map(|server| (server.in_flight, server.waiting));
        loads.reduce(|(one, other), (in_flight, waiting)| (one + in_flight, other + waiting))
    }
}

impl SharedSource {
    fn server(addresses: &[OriginAddress], origin: &OriginSettings) -> anyhow::Result<Self> {
        let addresses = addresses
            .iter()
            .map(|address| address.to_string().parse::<Address>().with_context(|| address.to_string()))
            .collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self::Http { options: Arc::new(server_options(addresses, origin)?), budget: Arc::new(budget(origin)) })
    }

    /// The host that it is asked for, if that is not the client's.
    fn host(&self, said: &OriginHost) -> Option<String> {
        match (said, self) {
            (OriginHost::Name(name), _) => Some(name.clone()),
            (OriginHost::Origin, Self::Http { options, .. }) => options.addresses().first().map(Address::authority),
            (OriginHost::Client | OriginHost::Origin, _) => None,
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

fn server_options(addresses: Vec<Address>, origin: &OriginSettings) -> anyhow::Result<ServerOptions> {
    let mut options = ServerOptions::new(addresses, tls_config(origin.ca_file.as_deref())?);
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

/// Makes the options with which a folder of finished files is opened.
pub(crate) fn files_options(site: &Site) -> FilesOptions {
    FilesOptions { listing: site.files.listing, fallback: site.files.fallback.clone(), whole_max: site.cache.object_max }
}

/// Makes the options with which a folder of Markdown is opened.
pub(crate) fn blog_options(site: &Site) -> BlogOptions {
    BlogOptions { title: site.blog.title.clone(), base_url: site.blog.base_url.clone(), ..BlogOptions::default() }
}

fn open_files(folder: &Path, site: &Site, id: u16, shared: &Arc<Shared>) -> anyhow::Result<SharedSource> {
    let files = Files::open(folder, files_options(site))?;
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
    let blog = Blog::open(folder, blog_options(site))?;
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
