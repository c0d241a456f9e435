//! Turns what was written into what is meant: defaults, bounds, and values that contradict each other. The process here, the sites in
//! `sites.rs`.

use std::{
    fmt::Display,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZero,
    ops::{Range, RangeInclusive},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use access::SPARE;
use pipeline::Redirect;
use toml::Spanned;

use super::{
    addresses::AdminAddress,
    error::{ConfigError, ConfigErrors, Document, Mistake, Place},
    file::{self, File, Given},
    overrides::{Overrides, WithPlace},
    settings::{AccessLog, Disk, Limits, Listen, Log, LogFormat, Logins, Requests, Server, Settings, Tls},
    units::{ByteSize, Count, Period},
};
use crate::recognition::Findings;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

/// The bounds of every wait for a peer: it is never zero and never endless.
const WAIT: RangeInclusive<Period> = Period(Duration::from_millis(1))..=Period(Duration::from_secs(3_600));

const ADMIN_ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 9180);
const LISTEN_ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 8080);
/// The requests that many pages take, with all that belongs to them.
const OF_A_PAGE: u64 = 20;
/// The port of `--domain` for plain HTTP.
const DOMAIN_PORT: u16 = 80;

/// Turns values into settings and notes every error on the way.
pub(super) struct Resolver<'a> {
    document: Option<&'a Document>,
    /// The folder in which relative paths of flags and variables begin.
    pub(super) working_folder: &'a Path,
    errors: Vec<ConfigError>,
    /// Warnings about settings that are possible, but were hardly meant.
    pub(super) warnings: Vec<String>,
    /// Whether the file has faults of form. A value that seems to be absent may then be the faulty one, so its absence is not reported.
    file_is_faulty: bool,
    /// The findings about servers that were asked.
    pub(super) known: Findings,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(document: Option<&'a Document>, working_folder: &'a Path, errors: Vec<ConfigError>) -> Self {
        let file_is_faulty = errors.iter().any(|error| matches!(error.place, Place::Line { .. }));
        Self { document, working_folder, errors, warnings: Vec::new(), file_is_faulty, known: Findings::default() }
    }

    /// Tells it what is known of servers that were asked.
    pub(super) fn knowing(self, known: &Findings) -> Self {
        Self { known: known.clone(), ..self }
    }

    /// Returns the errors, each of them once: a value in `[cache]` is checked for every site.
    pub(super) fn into_errors(self) -> ConfigErrors {
        let mut once: Vec<ConfigError> = Vec::new();
        for error in self.errors {
            if !once.contains(&error) {
                once.push(error);
            }
        }
        ConfigErrors(once)
    }

    /// Resolves all settings. Returns `None` if there is nothing to serve; then there is an error.
    pub(super) fn settings(&mut self, file: &File, overrides: &Overrides, env: &impl Fn(&str) -> Option<String>) -> Option<Settings> {
        let server = self.server(&file.server, overrides, env);
        let tls = self.tls(file, overrides, &server, env);
        let (limits, requests, logins) = (self.limits(&file.limits), self.requests(&file.limits), self.logins(&file.limits));
        let log = self.log(&file.log, overrides);
        let traces = self.traces(&file.traces, env);
        let memory = self.pick(overrides.memory.clone(), &file.cache.memory);
        let ByteSize(cache_memory) = self.within("memory", memory, ByteSize(256 * MIB), ByteSize(MIB)..=ByteSize(16 * TIB));
        let (purge, refill) = (self.purge(&file.purge), self.refill(&file.refill));
        let alerts = self.alerts(&file.alerts);
        let cluster = self.cluster(&file.cluster, overrides, env);
        let cache_disk = self.disk(&file.cache, overrides, env);
        let sites = self.sites(file, overrides, cache_memory);
        self.refuse_itself(file, overrides, &sites, &listened_on(&server, tls.as_ref()));
        let listens_for_tcp_alone = !server.listen.iter().any(|listen| matches!(listen, Listen::Unix(_)));
        if sites.iter().any(|site| site.https_redirect == Redirect::Always)
            && server.trusted_proxies.is_empty()
            && listens_for_tcp_alone
            && tls.is_none()
        {
            self.warnings.push(
                "nobody is sent to https, because no proxy is trusted to say who came over http: name the proxy in trusted_proxies (--trusted-proxies)"
                    .to_owned(),
            );
        }
        let warnings = std::mem::take(&mut self.warnings);
        (!sites.is_empty()).then_some(Settings {
            server,
            tls,
            limits,
            requests,
            logins,
            log,
            traces,
            cache_memory,
            cache_disk,
            purge,
            refill,
            alerts,
            cluster,
            sites,
            warnings,
        })
    }

    fn disk(&mut self, file: &file::Cache, overrides: &Overrides, env: &impl Fn(&str) -> Option<String>) -> Option<Disk> {
        let size = self.said(&file.disk);
        let place = size.as_ref().map(|size| size.place.clone());
        let ByteSize(size_max) = self.within("disk", size, ByteSize(4 << 30), ByteSize(0)..=ByteSize(16 * TIB));
        if let Some(place) = place.filter(|_| size_max > 0 && size_max < 16 * MIB) {
            let problem = format!("{} is too little for disk", ByteSize(size_max));
            self.wrong(Mistake::new(problem, "possible: 16MiB to 16TiB, or 0 to keep everything in memory; default: 4GiB"), place);
        }
        let dir = match self.pick(overrides.cache_dir.clone(), &file.dir) {
            Some(WithPlace { value, place }) if value.is_empty() || self.folder_of(&place).join(&value).is_file() => {
                let mistake = Mistake::new(
                    format!("\"{value}\" is not a folder for stored responses"),
                    "write a folder's path, such as \"/var/cache/seawall\"",
                );
                self.wrong(mistake, place);
                None
            }
            Some(WithPlace { value, place }) => Some(self.folder_of(&place).join(value)),
            None => own_cache_dir(env),
        };
        (size_max > 0).then_some(Disk { dir, size_max })
    }

    fn server(&mut self, file: &file::Server, overrides: &Overrides, env: &impl Fn(&str) -> Option<String>) -> Server {
        let (admin, _) = self.admin(file, overrides);
        let workers = self.pick(overrides.workers.clone(), &file.workers);
        let cores = Count(thread::available_parallelism().map_or(1, NonZero::get).try_into().unwrap_or(1));
        let shutdown_timeout = self.said(&file.shutdown_timeout);
        let trusted_proxies = match &overrides.trusted_proxies[..] {
            networks @ [_, ..] => networks.iter().flat_map(|said| said.value.0.clone()).collect(),
            [] => file.trusted_proxies.iter().flat_map(Spanned::get_ref).flat_map(|network| network.get_ref().0.clone()).collect(),
        };
        let mut trusted_fields: Vec<String> =
            file.trusted_fields.iter().flat_map(Spanned::get_ref).map(|field| field.get_ref().0.clone()).collect();
        trusted_fields.sort_unstable();
        trusted_fields.dedup();
        Server {
            listen: self.listen(file, overrides, admin),
            admin,
            admin_token_file: self.token_file(file, env),
            workers: as_usize(self.within("workers", workers, cores, Count(1)..=Count(1024)).0),
            h2c: file.h2c.as_ref().is_some_and(|h2c| *h2c.get_ref()),
            trusted_proxies,
            trusted_fields,
            health_path: file.health_path.as_ref().map(|path| path.get_ref().0.clone()),
            shutdown_timeout: self.within("shutdown_timeout", shutdown_timeout, seconds(30), seconds(0)..=seconds(3_600)).0,
        }
    }

    /// Resolves the address of the admin API, and the place where it was written.
    pub(super) fn admin(&self, file: &file::Server, overrides: &Overrides) -> (Option<SocketAddr>, Place) {
        match self.pick(overrides.admin.clone(), &file.admin) {
            Some(WithPlace { value: AdminAddress(address), place }) => (address, place),
            None => (Some(ADMIN_ADDRESS.into()), Place::Default),
        }
    }

    pub(super) fn token_file(&mut self, file: &file::Server, env: &impl Fn(&str) -> Option<String>) -> PathBuf {
        let Some(path) = &file.admin_token_file else {
            let state = xdg(env, "XDG_STATE_HOME", ".local/state");
            return state.unwrap_or_else(|| PathBuf::from("/var/lib")).join("seawall/admin-token");
        };
        let full = self.file_folder().join(path.get_ref());
        if path.get_ref().is_empty() || full.is_dir() {
            let mistake =
                Mistake::new("admin_token_file is not the path of a file", "write a file's path, such as \"/var/lib/seawall/admin-token\"");
            self.wrong_at(mistake, path.span());
        }
        full
    }

    fn listen(&mut self, file: &file::Server, overrides: &Overrides, admin: Option<SocketAddr>) -> Vec<Listen> {
        let said: Vec<WithPlace<Listen>> = match &file.listen {
            _ if !overrides.listen.is_empty() => overrides.listen.clone(),
            Some(list) if list.get_ref().is_empty() => {
                let mistake = Mistake::new(
                    "listen is empty, so nobody could reach the site",
                    "name an address, or leave listen out: \"127.0.0.1:8080\"",
                );
                self.wrong_at(mistake, list.span());
                Vec::new()
            }
            Some(list) => list.get_ref().iter().map(|listen| self.said_of(listen)).collect(),
            None if !overrides.domain.is_empty() => every_address(DOMAIN_PORT),
            None => vec![WithPlace { value: Listen::Tcp(LISTEN_ADDRESS.into()), place: Place::Default }],
        };
        let mut listen: Vec<Listen> = Vec::with_capacity(said.len());
        for WithPlace { value, place } in said {
            if listen.iter().any(|other| collide(other, &value)) {
                self.wrong(Mistake::new(format!("{value} conflicts with an earlier address in the list"), "remove one of the two"), place);
            } else if admin.is_some_and(|admin| collide(&Listen::Tcp(admin), &value)) {
                let remedy = "give one of them another port; visitors and the admin API cannot share one";
                self.wrong(Mistake::new(format!("{value} is already used by the admin API"), remedy), place);
            }
            listen.push(value);
        }
        listen
    }

    fn limits(&mut self, file: &file::Limits) -> Limits {
        let connections = self.count("connections", &file.connections, 20_000, 1..=1_000_000);
        let header_bytes = self.size("header_bytes", &file.header_bytes, 32 * KIB, KIB..=MIB);
        let per_address = self.count("connections_per_address", &file.connections_per_address, connections.min(256), 1..=1_000_000);
        if let Some(value) = file.connections_per_address.as_ref().filter(|_| per_address > connections) {
            let problem = format!("connections_per_address ({per_address}) is never reached: there are {connections} connections in all");
            self.wrong_at(Mistake::new(problem, "lower it, or raise connections"), value.span());
        }
        let target_bytes = self.size("target_bytes", &file.target_bytes, header_bytes.min(8 * KIB), 256..=MIB);
        if let Some(value) = file.target_bytes.as_ref().filter(|_| target_bytes > header_bytes) {
            let problem = format!(
                "target_bytes ({}) is never reached: the target is part of header_bytes ({})",
                ByteSize(target_bytes),
                ByteSize(header_bytes)
            );
            self.wrong_at(Mistake::new(problem, "lower it, or raise header_bytes"), value.span());
        }
        Limits {
            connections: as_usize(connections),
            connections_per_address: as_usize(per_address),
            header_bytes: as_usize(header_bytes),
            header_fields: as_usize(self.count("header_fields", &file.header_fields, 100, 8..=256)),
            target_bytes: as_usize(target_bytes),
            body_bytes: self.size("body_bytes", &file.body_bytes, 1024 * MIB, 1..=TIB),
            header_timeout: self.wait("header_timeout", &file.header_timeout, 10),
            body_timeout: self.wait("body_timeout", &file.body_timeout, 30),
            write_timeout: self.wait("write_timeout", &file.write_timeout, 30),
            idle_timeout: self.wait("idle_timeout", &file.idle_timeout, 60),
        }
    }

    fn requests(&mut self, file: &file::Limits) -> Option<Requests> {
        let per_second = file.requests_per_second.as_ref().and_then(|said| said.get_ref().0);
        let Some(per_second) = per_second else {
            if let Some(value) = &file.requests_burst {
                let mistake = Mistake::new(
                    "requests_burst says nothing without requests_per_second",
                    "set requests_per_second, or leave requests_burst out",
                );
                self.wrong_at(mistake, value.span());
            }
            return None;
        };
        #[expect(clippy::cast_possible_truncation, reason = "it is at most a million")]
        let of_one_second = per_second.ceil() as u64;
        let burst = self.count("requests_burst", &file.requests_burst, of_one_second, 1..=1_000_000);
        if burst < OF_A_PAGE {
            self.warnings.push(format!(
                "one address may send {burst} requests at once, which is less than many pages take with their pictures and styles: raise requests_burst in [limits]"
            ));
        }
        Some(Requests { per_second, burst: burst as f64 })
    }

    fn logins(&mut self, file: &file::Limits) -> Option<Logins> {
        let concurrency = as_usize(self.count("login_concurrency", &file.login_concurrency, 2, 1..=1000));
        let attempts = file.login_attempts.as_ref().map_or(Some(SPARE), |said| said.get_ref().0)?;
        Some(Logins { attempts, concurrency })
    }

    fn log(&mut self, file: &file::Log, overrides: &Overrides) -> Log {
        let access = match self.pick(overrides.access_log.clone(), &file.access) {
            None => AccessLog::Stdout,
            Some(WithPlace { value: AccessLog::File(path), place }) => {
                let path = self.folder_of(&place).join(path);
                if !path.parent().is_some_and(|folder| folder.as_os_str().is_empty() || folder.is_dir()) || path.is_dir() {
                    let mistake = Mistake::new(
                        format!("the access log cannot be written to \"{}\": there is no such folder", path.display()),
                        "make the folder, or write \"stdout\" or \"off\"",
                    );
                    self.wrong(mistake, place);
                }
                AccessLog::File(path)
            }
            Some(WithPlace { value, .. }) => value,
        };
        let format = self.pick(overrides.log_format.clone(), &file.format).map_or(LogFormat::Combined, |format| format.value);
        Log { access, format }
    }
}

/// Steps that every section uses.
impl Resolver<'_> {
    /// Returns the folder of the file. Relative paths in the file begin there, wherever Seawall was started.
    pub(super) fn file_folder(&self) -> PathBuf {
        let parent = self.document.and_then(|document| document.path.parent());
        parent.map_or_else(|| self.working_folder.to_owned(), |parent| self.working_folder.join(parent))
    }

    pub(super) fn folder_of(&self, place: &Place) -> PathBuf {
        match place {
            Place::Line { .. } | Place::File(_) => self.file_folder(),
            Place::Flag(..) | Place::Environment(..) | Place::Default => self.working_folder.to_owned(),
        }
    }

    pub(super) fn file_place(&self) -> Place {
        self.document.map_or(Place::Default, |document| Place::File(document.path.clone()))
    }

    pub(super) fn place(&self, span: Range<usize>) -> Place {
        self.document.map_or(Place::Default, |document| document.place(span))
    }

    pub(super) fn wrong(&mut self, mistake: Mistake, place: Place) {
        self.errors.push(mistake.at(place));
    }

    pub(super) const fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Notes an error about something that is missing altogether.
    pub(super) fn absent(&mut self, mistake: Mistake, place: Place) {
        if !self.file_is_faulty {
            self.wrong(mistake, place);
        }
    }

    pub(super) fn wrong_at(&mut self, mistake: Mistake, span: Range<usize>) {
        let place = self.place(span);
        self.wrong(mistake, place);
    }

    pub(super) fn said_of<T: Clone>(&self, given: &Spanned<T>) -> WithPlace<T> {
        WithPlace { value: given.get_ref().clone(), place: self.place(given.span()) }
    }

    pub(super) fn said<T: Clone>(&self, given: &Given<T>) -> Option<WithPlace<T>> {
        given.as_ref().map(|given| self.said_of(given))
    }

    /// Chooses between a value from outside the file and one in the file. The one from outside takes precedence.
    pub(super) fn pick<T: Clone>(&self, outside: Option<WithPlace<T>>, given: &Given<T>) -> Option<WithPlace<T>> {
        outside.or_else(|| self.said(given))
    }

    /// Returns the value or the default. Notes an error if the value is out of its bounds.
    pub(super) fn within<T: Copy + PartialOrd + Display>(
        &mut self,
        key: &str,
        said: Option<WithPlace<T>>,
        default: T,
        bounds: RangeInclusive<T>,
    ) -> T {
        let Some(WithPlace { value, place }) = said else { return default };
        if !bounds.contains(&value) {
            let (low, high) = bounds.into_inner();
            let size = if value < low { "too little" } else { "too much" };
            self.wrong(
                Mistake::new(format!("{value} is {size} for ‹{key}›"), format!("possible: {low} to {high}; default: {default}")),
                place,
            );
        }
        value
    }

    fn count(&mut self, key: &str, given: &Given<Count>, default: u64, bounds: RangeInclusive<u64>) -> u64 {
        let said = self.said(given);
        self.within(key, said, Count(default), Count(*bounds.start())..=Count(*bounds.end())).0
    }

    fn size(&mut self, key: &str, given: &Given<ByteSize>, default: u64, bounds: RangeInclusive<u64>) -> u64 {
        let said = self.said(given);
        self.within(key, said, ByteSize(default), ByteSize(*bounds.start())..=ByteSize(*bounds.end())).0
    }

    fn wait(&mut self, key: &str, given: &Given<Period>, default: u64) -> Duration {
        let said = self.said(given);
        self.within(key, said, seconds(default), WAIT).0
    }

    /// Returns the time that a peer may take, as [`Self::within`] does for its bounds.
    pub(super) fn wait_for(&mut self, key: &str, said: Option<WithPlace<Period>>, default: u64) -> Duration {
        self.within(key, said, seconds(default), WAIT).0
    }
}

/// Returns the folder in an XDG variable, or its default in the user's home. The XDG rules say to ignore a relative path.
fn own_cache_dir(env: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    xdg(env, "XDG_CACHE_HOME", ".cache").map(|folder| folder.join("seawall"))
}

/// Returns the folder for what is kept by commands that have no settings.
pub(crate) fn cache_dir(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = env("SEAWALL_CACHE_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    named.or_else(|| own_cache_dir(&env))
}

pub(super) fn xdg(env: &impl Fn(&str) -> Option<String>, variable: &str, at_home: &str) -> Option<PathBuf> {
    let folder = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder(variable).or_else(|| folder("HOME").map(|home| home.join(at_home)))
}

/// Returns the whole path of a program. A bare name would be looked for elsewhere when it is run.
pub(super) fn whole(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

pub(super) const fn seconds(seconds: u64) -> Period {
    Period(Duration::from_secs(seconds))
}

/// Converts a number to `usize`. It loses nothing within the bounds; a value beyond them is an error anyway.
pub(super) fn as_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Returns every address of this machine, for IPv4 and IPv6: a domain is for everybody, whether its record is A or AAAA.
pub(super) fn every_address(port: u16) -> Vec<WithPlace<Listen>> {
    let addresses = [SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))];
    addresses.map(|address| WithPlace { value: Listen::Tcp(address), place: Place::Default }).into()
}

/// Tells whether both addresses cannot be listened on: they are equal, or one of them is every address. Port 0 never collides, because the
/// system chooses a new port each time.
pub(super) fn collide(one: &Listen, other: &Listen) -> bool {
    let (Listen::Tcp(one), Listen::Tcp(other)) = (one, other) else { return one == other };
    let same_family = one.is_ipv4() == other.is_ipv4();
    let overlap = one.ip() == other.ip() || same_family && (one.ip().is_unspecified() || other.ip().is_unspecified());
    one.port() == other.port() && one.port() != 0 && overlap
}

/// Returns the addresses at which visitors are served.
fn listened_on(server: &Server, tls: Option<&Tls>) -> Vec<SocketAddr> {
    let plain = server.listen.iter().filter_map(|listen| match listen {
        Listen::Tcp(address) => Some(*address),
        Listen::Unix(_) => None,
    });
    plain.chain(tls.into_iter().flat_map(|tls| tls.listen.iter().copied())).collect()
}
