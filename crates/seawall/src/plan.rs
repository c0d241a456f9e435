//! Makes sites of settings: what all workers share of a site is made once, and each worker makes its own origin of it.

use std::{collections::BTreeSet, path::Path, rc::Rc, sync::Arc, time::Duration};

use access::Lock;
use anyhow::Context;
use edge::Socket;
use origins::{
    Origin,
    fastcgi::{FastCgi, FastCgiServer},
    files::{self, Files, FilesOptions},
    http::HttpOrigin,
    php::{Php, PhpFolder, PhpOptions},
    server::{Address, Budget, ServerOptions, tls_config},
};
use pipeline::{
    Auth, Collapse, Https, LoginLimits, OriginState, Parts, Rate, Refill, RequestLimit, ResponseFields, Route, Router, Schedule, Shared,
    SharedOriginState, WebhookSecret,
};
use policy::{
    Policy,
    purge::{Maker, Order, What},
};
use store::{SiteNumber, SiteNumbers};
use traces::Spans;

use crate::{
    blogs, companions,
    config::settings::{self, Cache, Headers, Kind, OriginAddress, OriginHost, OriginSettings, Settings, Site, Source},
    fingerprint::fingerprint,
    pictures::Pictures,
    recognition::{Software, schedule::core_path, software},
    wordpress::{self, Secrets},
};

/// The sites of a configuration, ready for every worker to use.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    pub(crate) sites: Vec<SitePlan>,
    /// The queue for spans, if requests are traced.
    pub(crate) spans: Option<Spans>,
    secrets: Secrets,
    pictures: Pictures,
}

/// One site of a plan.
#[derive(Debug)]
pub(crate) struct SitePlan {
    pub(crate) id: u16,
    site: Site,
    auth: Option<Auth>,
    /// The secret with which the site's software signs what it says.
    secret: Option<WebhookSecret>,
    /// The schedule of its software, if that is run from here.
    schedule: Option<Arc<Schedule>>,
    whole: PartPlan,
    /// The parts in the order of the site's routes, then those of its companions.
    parts: Vec<PartPlan>,
}

/// A site or a part of it: its origin and its rules.
#[derive(Debug)]
struct PartPlan {
    route: Option<Route>,
    policy: policy::Settings,
    cache: Cache,
    collapse_wait: Duration,
    headers: Headers,
    source: SharedSource,
    origin_host: Option<String>,
    contact: Arc<SharedOriginState>,
    /// Whether its responses may be stored on the disk.
    on_disk: bool,
    is_shared: bool,
    logins: Option<LoginLimits>,
}

/// A server behind a site, with its state.
#[derive(Debug)]
pub(crate) struct ServerState {
    /// The path of the part for which it answers, or `None` if it answers for the whole site.
    pub(crate) route: Option<String>,
    /// Whether the last attempt to connect to it succeeded.
    pub(crate) up: bool,
    /// Whether a request was ever sent there.
    pub(crate) asked: bool,
    /// The number of times that nobody listened there any more.
    pub(crate) falls: u64,
    /// The addresses of the server. The flag says whether an address is in use: requests go to it as to any other.
    pub(crate) addresses: Vec<(String, bool)>,
    pub(crate) in_flight: usize,
    pub(crate) waiting: usize,
}

#[derive(Debug)]
enum SharedSource {
    Http { options: Arc<ServerOptions>, budget: Arc<Budget> },
    Files { files: Files, watcher: Arc<files::Watcher> },
    Blog(blogs::Served),
    Php { folder: Arc<PhpFolder>, server: Arc<FastCgiServer>, options: Arc<ServerOptions>, budget: Arc<Budget> },
}

impl Plan {
    /// Opens what the settings name, for a server that listens on `listening`. A folder that `before` has too stays watched without a gap.
    ///
    /// # Errors
    /// When a folder or a certificate file cannot be read.
    pub(crate) fn new(
        settings: Settings,
        numbers: &mut SiteNumbers,
        shared: &Arc<Shared>,
        listening: &[Socket],
        before: Option<&Self>,
    ) -> anyhow::Result<Self> {
        let secrets = wordpress::secrets(&settings, shared, before.map(|before| &before.secrets))?;
        let pictures = Pictures::of(&settings, before.map(|before| &before.pictures));
        let sites = settings
            .sites
            .iter()
            .map(|site| {
                SitePlan::new((site, &settings), numbers, shared, (&secrets, &pictures, listening), before)
                    .with_context(|| format!("site {}", site.name))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { settings, sites, spans: None, secrets, pictures })
    }

    /// Makes the sites for one worker.
    pub(crate) fn router(&self) -> anyhow::Result<Router> {
        let sites = self.sites.iter().map(|site| site.for_worker(&self.settings)).collect::<anyhow::Result<_>>()?;
        let router = Router::new(sites)
            .with_health_path(self.settings.server.health_path.clone())
            .with_request_limit(self.settings.requests.map(|requests| self.request_limit(requests)));
        let moved = self.settings.sites.iter().flat_map(|site| {
            let there = site.redirect_to().unwrap_or_default();
            site.redirect_from.iter().map(move |host| (host.clone(), there.to_owned()))
        });
        // The other form of a name leads there where no site has it.
        let twins = self.settings.tls.iter().filter_map(|tls| tls.acme.as_ref()).flat_map(|acme| acme.twins.iter());
        let twins: Vec<_> = twins.filter(|(twin, _)| router.site(twin).is_none()).cloned().collect();
        Ok(router.with_moved(twins).with_moved(moved))
    }

    fn request_limit(&self, requests: settings::Requests) -> RequestLimit {
        let settings::Requests { per_second, burst } = requests;
        let exempt = self.settings.server.trusted_proxies.iter().chain(&self.settings.purge.allow).copied().collect();
        RequestLimit { rate: Rate { per_second, burst }, exempt }
    }

    /// Returns what bounds the requests at each server behind the sites, by a name that the machines of a cluster have in common.
    pub(crate) fn budgets(&self) -> Vec<(String, Arc<Budget>)> {
        let of_site = |site: &SitePlan| -> Vec<(String, Arc<Budget>)> {
            let parts = std::iter::once(&site.whole).chain(&site.parts);
            let named = |part: &PartPlan| {
                let path = part.route.as_ref().map_or("", |route| route.path.as_str());
                Some((format!("{}{path}", site.name()), Arc::clone(part.source.budget()?)))
            };
            parts.filter_map(named).collect()
        };
        self.sites.iter().flat_map(of_site).collect()
    }

    /// Ends what never ends by itself: streams that tell browsers of changes.
    pub(crate) fn end_streams(&self) {
        for blog in self.sites.iter().filter_map(SitePlan::blog) {
            blog.end();
        }
    }

    /// Returns the names of the sites whose software is of another version than before: it may make other pages of the same posts.
    pub(crate) fn upgraded<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a str> + 'a {
        let is_upgraded = |site: &SitePlan, old: &SitePlan| {
            let versions = (software(&site.site).and_then(Software::version), software(&old.site).and_then(Software::version));
            // Who does not say its version any more may be the same.
            old.id == site.id && matches!(versions, (Some(now), Some(then)) if now != then)
        };
        self.sites.iter().filter(move |site| before.sites.iter().any(|old| is_upgraded(site, old))).map(SitePlan::name)
    }

    /// Returns the numbers of all sites.
    pub(crate) fn numbers(&self) -> BTreeSet<u16> {
        self.sites.iter().map(|site| site.id).collect()
    }

    /// Returns whether a site is served again that was not served just before: what was purged of it meanwhile nobody here has heard. `given` is how many
    /// numbers of sites were given before this plan.
    pub(crate) fn brings_back(&self, before: &Self, given: u32) -> bool {
        let (now, before) = (self.numbers(), before.numbers());
        now.difference(&before).any(|number| u32::from(*number) < given)
    }

    /// Returns the names of the sites whose folder was opened anew although their rules are what they were: what changed in it meanwhile
    /// nobody has seen.
    ///
    /// A site whose rules have changed has another number, and nothing stored.
    pub(crate) fn opened_anew<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a str> + 'a {
        let is_anew = |site: &SitePlan, old: &SitePlan| old.id == site.id && old.site != site.site && !site.site.source.is_server();
        self.sites.iter().filter(move |site| before.sites.iter().any(|old| is_anew(site, old))).map(SitePlan::name)
    }
}

impl SitePlan {
    fn new(
        (site, settings): (&Site, &Settings),
        numbers: &mut SiteNumbers,
        shared: &Arc<Shared>,
        (secrets, pictures, listening): (&Secrets, &Pictures, &[Socket]),
        before: Option<&Plan>,
    ) -> anyhow::Result<Self> {
        let secret = signing_secret(site, secrets);
        let SiteNumber { number: id, kept } = numbers.number(&site.name, &fingerprint(settings, site))?;
        let source = match &site.source {
            Source::Http(addresses) => SharedSource::server(addresses, &site.origin)?,
            Source::Files(folder) => {
                let same = before.and_then(|before| before.sites.iter().find(|old| old.id == id && old.site == *site));
                match same.map(|old| &old.whole.source) {
                    Some(SharedSource::Files { files, watcher }) => {
                        SharedSource::Files { files: files.clone(), watcher: Arc::clone(watcher) }
                    }
                    _ => open_files(folder, site, shared).with_context(|| folder.display().to_string())?,
                }
            }
            Source::Blog(folder) => {
                let same = before.and_then(|before| before.sites.iter().find(|old| old.id == id && old.site == *site));
                match same.map(|old| &old.whole.source) {
                    Some(SharedSource::Blog(served)) if served.is_for((site, settings), listening) => SharedSource::Blog(served.clone()),
                    _ => {
                        let purge = purge_for_folder(site, shared);
                        SharedSource::Blog(blogs::Served::open(folder, (site, settings), listening, &pictures.workshop(), purge)?)
                    }
                }
            }
            Source::Php(folder) => open_php(folder, site, wordpress::params(site, secret, listening))?,
        };
        // Folders are on a disk already, and a number that was not written down is another site's after a restart.
        let on_disk = kept && site.source.is_server();
        let policy = |kind: Kind, cache: &Cache| policy::Settings {
            compress: site.compress.clone(),
            trusted_fields: settings.server.trusted_fields.clone(),
            ..cache.rules(kind)
        };
        let logins = |source: &SharedSource| {
            settings.logins.map(|logins| LoginLimits::new(logins.attempts, logins.concurrency, source.budget().cloned()))
        };
        let whole = PartPlan {
            route: None,
            policy: of_product(site, policy(site.kind, &site.cache)),
            cache: site.cache.clone(),
            collapse_wait: site.origin.collapse_wait,
            headers: site.headers.clone(),
            origin_host: source.host(&site.origin.host),
            logins: logins(&source),
            source,
            contact: Arc::default(),
            on_disk,
            is_shared: site.source.is_server(),
        };
        let part = |route: &settings::Route| -> anyhow::Result<PartPlan> {
            let source = SharedSource::server(&route.addresses, &route.origin).with_context(|| format!("route {}", route.path))?;
            Ok(PartPlan {
                route: Some(Route {
                    path: route.path.clone(),
                    strip_prefix: route.strip_prefix,
                    cache: route.is_cached,
                    sends_cookies: route.sends_cookies,
                }),
                policy: policy(route.kind(), &route.cache),
                cache: route.cache.clone(),
                collapse_wait: route.origin.collapse_wait,
                headers: route.headers.clone(),
                origin_host: source.host(&route.origin.host),
                logins: logins(&source),
                source,
                contact: Arc::default(),
                on_disk: kept,
                is_shared: true,
            })
        };
        let parts = site.routes.iter().chain(&companions::routes(site)).map(part).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            id,
            site: site.clone(),
            auth: site.auth.as_ref().map(auth).transpose()?,
            secret: secret.map(WebhookSecret::new),
            schedule: schedule(site, before),
            whole,
            parts,
        })
    }

    fn for_worker(&self, settings: &Settings) -> anyhow::Result<pipeline::Site> {
        let parts = self.parts.iter().map(|part| self.part_for_worker(part, settings)).collect::<anyhow::Result<_>>()?;
        Ok(pipeline::Site { parts: Parts::new(parts), ..self.part_for_worker(&self.whole, settings)? })
    }

    fn part_for_worker(&self, part: &PartPlan, settings: &Settings) -> anyhow::Result<pipeline::Site> {
        let budget = part.source.budget().cloned();
        let origin: Rc<dyn Origin> = match &part.source {
            SharedSource::Http { options, budget } => Rc::new(HttpOrigin::new(Arc::clone(options), Some(Arc::clone(budget)))?),
            SharedSource::Files { files, .. } => Rc::new(files.clone()),
            SharedSource::Blog(served) => Rc::new(served.blog.clone()),
            SharedSource::Php { folder, server, budget, .. } => {
                Rc::new(Php::new(Arc::clone(folder), FastCgi::new(Arc::clone(server), Some(Arc::clone(budget)))))
            }
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
            is_shared: part.is_shared,
            origin_state: OriginState::telling(Arc::clone(&part.contact)),
            collapse: Collapse::new(part.collapse_wait, budget.clone()),
            refill: Refill::new(settings.refill.concurrency, budget),
            https: Https {
                redirect: self.site.https_redirect,
                own_port: settings.tls.as_ref().and_then(|tls| tls.listen.first()).map(std::net::SocketAddr::port),
            },
            logins: part.logins.clone(),
            webhook_secret: self.secret.clone(),
            schedule: self.schedule.clone(),
            fields: response_fields(&part.headers),
            auth: self.auth.clone(),
            route: part.route.clone(),
            parts: Parts::default(),
        })
    }

    /// Returns the blog of the site, if it is one.
    pub(crate) const fn blog(&self) -> Option<&blog::Blog> {
        if let SharedSource::Blog(served) = &self.whole.source { Some(&served.blog) } else { None }
    }

    /// Returns the name of the site.
    pub(crate) fn name(&self) -> &str {
        &self.site.name
    }

    /// Returns the host names of the site; none means all.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.site.hosts
    }

    /// Returns the settings of the site.
    pub(crate) const fn settings(&self) -> &Site {
        &self.site
    }

    /// Returns the schedule of the site's software, if that is run from here.
    pub(crate) fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_deref()
    }

    /// Returns the servers behind the site, beginning with that of the whole site.
    pub(crate) fn servers(&self) -> impl Iterator<Item = ServerState> {
        std::iter::once(&self.whole).chain(&self.parts).filter_map(|part| match &part.source {
            SharedSource::Http { options, budget } | SharedSource::Php { options, budget, .. } => {
                let up = !part.contact.is_down();
                Some(ServerState {
                    route: part.route.as_ref().map(|route| route.path.clone()),
                    up,
                    asked: part.contact.was_asked(),
                    falls: part.contact.falls(),
                    addresses: options
                        .known()
                        .map(|(address, is_up)| (address.to_string(), is_up && (up || options.addresses().len() > 1)))
                        .collect(),
                    in_flight: budget.in_flight(),
                    waiting: budget.waiting(),
                })
            }
            SharedSource::Files { .. } | SharedSource::Blog(_) => None,
        })
    }

    /// Notes that an address of its servers can be connected to again, although nobody has asked for anything.
    pub(crate) fn reached(&self, address: &str) {
        for part in std::iter::once(&self.whole).chain(&self.parts) {
            let (SharedSource::Http { options, .. } | SharedSource::Php { options, .. }) = &part.source else { continue };
            if options.known().any(|(known, _)| known.to_string() == address) {
                options.reached(address);
                part.contact.reached();
            }
        }
    }

    /// Tells whether the last attempt to connect to the server of the whole site succeeded. Returns `None` if a folder is behind the site.
    pub(crate) fn origin_up(&self) -> Option<bool> {
        self.servers().find(|server| server.route.is_none()).map(|server| server.up)
    }

    /// Returns how often nobody listened any more at the server of the whole site.
    pub(crate) fn origin_falls(&self) -> u64 {
        self.servers().find(|server| server.route.is_none()).map_or(0, |server| server.falls)
    }

    /// Returns the numbers of requests at its servers, and of requests that wait to be sent there.
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

    /// Returns what bounds the requests at the server, if it is one.
    const fn budget(&self) -> Option<&Arc<Budget>> {
        match self {
            Self::Http { budget, .. } | Self::Php { budget, .. } => Some(budget),
            Self::Files { .. } | Self::Blog(_) => None,
        }
    }

    /// Returns the host for requests to the origin, if it is not the client's.
    fn host(&self, said: &OriginHost) -> Option<String> {
        match (said, self) {
            (OriginHost::Name(name), _) => Some(name.clone()),
            (OriginHost::Origin, Self::Http { options, .. }) => options.addresses().first().map(Address::authority),
            (OriginHost::Client | OriginHost::Origin, _) => None,
        }
    }
}

/// Returns the secret with which the software of a site signs what it says. `None`: whoever may purge is believed.
fn signing_secret<'a>(site: &'a Site, made: &'a Secrets) -> Option<&'a str> {
    site.signing_secret().or_else(|| made.of(&site.name))
}

/// Makes the schedule of a site's software, if that is run from here. One that `before` has stays: WordPress tells the value of its lock once, and a
/// plan may be replaced before anybody has read it.
fn schedule(site: &Site, before: Option<&Plan>) -> Option<Arc<Schedule>> {
    site.cron().map(|_| {
        let path = format!("{}/wp-cron.php", core_path(site));
        let same = before.and_then(|before| before.sites.iter().find(|old| old.site.name == site.name && old.site.source == site.source));
        let same = same.and_then(|old| old.schedule.as_ref()).filter(|schedule| schedule.is_at(&path));
        same.map_or_else(|| Arc::new(Schedule::at(path)), Arc::clone)
    })
}

/// Adds what the product that makes a site has beside the rules of any site.
fn of_product(site: &Site, rules: policy::Settings) -> policy::Settings {
    policy::Settings {
        base_path: site.base_path().unwrap_or_default().to_owned(),
        member_secret: site.member_secret().map(<[u8]>::to_vec),
        ..rules
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

/// Makes what is called when files of a site's folder have changed: a purge of what was made of them.
fn purge_for_folder(site: &Site, shared: &Arc<Shared>) -> impl Fn(Vec<What>) + Send + Sync + 'static {
    let (shared, name) = (Arc::clone(shared), site.name.clone());
    move |what| {
        if let Err(why) = shared.purge(&Order::for_site(&name, what, true, Maker::Folder)) {
            // Not served yet, so nothing is stored for it; or nothing has changed.
            tracing::debug!(site = %name, %why, "a change of a folder purged nothing");
        }
    }
}

fn open_files(folder: &Path, site: &Site, shared: &Arc<Shared>) -> anyhow::Result<SharedSource> {
    let files = Files::open(folder, files_options(site))?;
    warn_of(folder, &files.mistakes());
    let (purge, name) = (purge_for_folder(site, shared), folder.to_owned());
    let watcher = files.watch(move |change| match change {
        files::Change::Tags(tags) => purge(tags.into_iter().map(What::Tag).collect()),
        files::Change::Everything => purge(vec![What::Everything]),
        files::Change::Replaced(mistakes) => {
            purge(vec![What::Everything]);
            tracing::info!(folder = %name.display(), "a new version of the folder is served");
            warn_of(&name, &mistakes);
        }
    })?;
    Ok(SharedSource::Files { files, watcher: Arc::new(watcher) })
}

/// Warns about lines of `_redirects` and `_headers` that are wrong. The other lines count.
fn warn_of(folder: &Path, mistakes: &[files::Mistake]) {
    for mistake in mistakes {
        tracing::warn!("{}/{mistake}", folder.display());
    }
}

/// Opens a folder with an application in PHP. Its server need not be there yet.
fn open_php(folder: &Path, site: &Site, params: Vec<(String, String)>) -> anyhow::Result<SharedSource> {
    let php = site.php.as_ref().context("nobody says where PHP runs")?;
    let address = php.server.to_string().parse::<Address>().with_context(|| php.address())?;
    let mut options = server_options(vec![address], &site.origin)?;
    options.health.remedy = ": start php-fpm, or say where it listens with --php";
    let options = Arc::new(options);
    let opened = PhpFolder::open(folder, PhpOptions { params, ..php.folder.clone() }).with_context(|| folder.display().to_string())?;
    Ok(SharedSource::Php {
        folder: Arc::new(opened),
        server: Arc::new(match &php.temporary_folder {
            Some(folder) => FastCgiServer::with_files_in(Arc::clone(&options), folder.clone()),
            None => FastCgiServer::new(Arc::clone(&options)),
        }),
        options,
        budget: Arc::new(budget(&site.origin)),
    })
}
