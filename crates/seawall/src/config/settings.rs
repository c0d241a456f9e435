//! What a configuration means, valid by construction: no option is absent without a meaning, no value is out of its bounds, no two
//! contradict.
//!
//! [`File`](super::file::File) is what was typed; [`load`](super::load) turns it, the flags and the environment into this. The bounds
//! and the worst cases in bytes are documented there, at the keys, and in `doc/configuration.md`.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use access::Protected;
pub use edge::Limits;
use http::{HeaderName, HeaderValue};
use ipnet::IpNet;
pub use policy::{Compress, Kind};
use policy::{EarlyHints, SourceForm};

/// Everything that `seawall serve` needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Listeners, workers, the admin address.
    pub server: Server,
    /// HTTPS. None: not spoken.
    pub tls: Option<Tls>,
    /// What one client, and all of them together, may take.
    pub limits: Limits,
    /// The access log.
    pub log: Log,
    /// Bytes of stored responses in memory, all sites together.
    pub cache_memory: u64,
    /// Where they are kept beyond that. None: in memory alone.
    pub cache_disk: Option<Disk>,
    /// Purge requests on the sites' own addresses.
    pub purge: Purge,
    /// What comes back by itself after a soft purge.
    pub refill: Refill,
    /// At least one; their hosts do not overlap, and only a single site may answer for every host.
    pub sites: Vec<Site>,
    /// What is possible and hardly meant, in words.
    pub warnings: Vec<String>,
}

/// Purge requests on the sites' own addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Purge {
    /// From whom they are taken without the admin token.
    pub allow: Vec<IpNet>,
    /// Below which a GET is one; begins with a slash, ends without one. None: nowhere.
    pub path: Option<String>,
}

/// What comes back by itself after a soft purge.
#[derive(Clone, Debug, PartialEq)]
pub struct Refill {
    /// Requests at once for one site; 0: nothing comes back by itself.
    pub concurrency: usize,
}

/// The disk tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its folder. None: nobody named one, and the user has no home.
    pub dir: Option<PathBuf>,
    /// Bytes of files.
    pub size_max: u64,
}

/// The process.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// At least one, none twice.
    pub listen: Vec<Listen>,
    /// None: no admin API.
    pub admin: Option<SocketAddr>,
    /// Where the token of the admin API is kept.
    pub admin_token_file: PathBuf,
    /// Threads, at least one.
    pub workers: usize,
    /// Whether HTTP/2 is spoken without TLS.
    pub h2c: bool,
    /// Peers that are believed who their client is, and which scheme that used.
    pub trusted_proxies: Vec<IpNet>,
    /// Further fields in which they may speak, in lower case, sorted, none twice.
    pub trusted_fields: Vec<String>,
    /// Where visitors' addresses answer health checks. None: nowhere.
    pub health_path: Option<String>,
    /// How long responses in progress may take after the signal to stop.
    pub shutdown_timeout: Duration,
}

/// HTTPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// At least one, none twice.
    pub listen: Vec<SocketAddr>,
    /// None twice; at least one, if none come by themselves.
    pub certificates: Vec<CertificateFiles>,
    /// Those that come by themselves.
    pub acme: Option<Acme>,
    /// HTTP/3 at the same addresses. None: not spoken.
    pub http3: Option<Http3>,
}

/// HTTP/3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http3 {
    /// The port that visitors are told of. None: the one that is listened on.
    pub port: Option<u16>,
}

/// Certificates that come by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acme {
    /// From whom, and how.
    pub options: acme::Options,
    /// Certificates (PEM) that are trusted besides the system's, of the authority itself.
    pub ca_file: Option<PathBuf>,
    /// For these, unless there are files for them.
    pub names: Vec<String>,
    /// Other forms of these, if they lead here: the twin, and the name.
    pub twins: Vec<(String, String)>,
}

/// A certificate in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate and those that lead to a root.
    pub certificate: PathBuf,
    /// Its key; may be the same file.
    pub key: PathBuf,
    /// Shown to clients that name nobody, or somebody unknown.
    pub is_default: bool,
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listen {
    /// An address and a port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A Unix socket, by its absolute path.
    Unix(PathBuf),
}

/// The access log.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// Where to.
    pub access: AccessLog,
    /// In which form.
    pub format: LogFormat,
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// Appended to a file.
    File(PathBuf),
}

/// The form of a line of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// The line that Apache and nginx call "combined".
    Combined,
    /// One JSON object a line.
    Json,
}

/// One publication.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Its first host, or `default`; unique.
    pub name: String,
    /// Lower-case host names without a port; `*.example.org` stands for every name below example.org, and an exact name goes before it.
    /// Empty: every host.
    pub hosts: Vec<String>,
    /// Where its responses come from.
    pub source: Source,
    /// The preset of its policy. It is for sources of the form that `source` has.
    pub kind: Kind,
    /// What is stored, and for how long.
    pub cache: Cache,
    /// How the origin is treated; only for [`Source::Http`].
    pub origin: OriginSettings,
    /// Only for [`Source::Blog`].
    pub blog: BlogSettings,
    /// Only for [`Source::Files`].
    pub files: FilesSettings,
    /// Whether visitors over plain http are sent to https.
    pub https_redirect: pipeline::Redirect,
    /// What its responses carry beside what the origin sends.
    pub headers: Headers,
    /// Where a password is asked for.
    pub auth: Option<Auth>,
    /// Which of them get a content coding.
    pub compress: Compress,
    /// Names whose visitors are sent to `redirect_to`; in no site's hosts.
    pub redirect_from: Vec<String>,
    /// Parts that other servers answer for; no path twice.
    pub routes: Vec<Route>,
}

impl Site {
    /// The name to which visitors of `redirect_from` are sent; there is one if that is not empty.
    #[must_use]
    pub fn redirect_to(&self) -> Option<&str> {
        self.hosts.iter().map(String::as_str).find(|host| !host.starts_with('*'))
    }

    /// Whether a server answers for it, or for a part of it.
    #[must_use]
    pub fn has_server(&self) -> bool {
        self.source.is_server() || !self.routes.is_empty()
    }
}

/// A part of a site that another server answers for.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// In normal form, without a slash at its end.
    pub path: String,
    /// The server's addresses; never empty, none twice.
    pub addresses: Vec<OriginAddress>,
    /// Whether the server is asked for what follows `path`.
    pub strip_prefix: bool,
    /// Whether the cache is asked.
    pub is_cached: bool,
    /// How the server is treated.
    pub origin: OriginSettings,
    /// What is stored of its responses, and for how long.
    pub cache: Cache,
    /// What they carry beside what the server sends.
    pub headers: Headers,
}

impl Route {
    /// The preset of the policy for what its server answers: nothing is known of that.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        SourceForm::Server.usual_kind()
    }
}

/// A password for a site, or for parts of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// The users; it could be read.
    pub file: PathBuf,
    /// Where they are asked; at least one.
    pub paths: Protected,
    /// `WWW-Authenticate`.
    pub challenge: HeaderValue,
    /// Whether the origin sees it.
    pub forward: bool,
}

/// Fields that are added to responses, and taken from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Taken from what the origin sends.
    pub remove: Vec<HeaderName>,
    /// Added where there is none.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// The same, on documents alone.
    pub set_on_documents: Vec<(HeaderName, HeaderValue)>,
    /// `Strict-Transport-Security`, over https alone.
    pub hsts: Option<HeaderValue>,
}

/// Where a site's responses come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A server: its addresses, the first one preferred; never empty, none twice.
    Http(Vec<OriginAddress>),
    /// A folder of finished files.
    Files(PathBuf),
    /// A folder of Markdown.
    Blog(PathBuf),
}

impl Source {
    /// Returns what the source is, whichever software it runs.
    #[must_use]
    pub const fn form(&self) -> SourceForm {
        match self {
            Self::Http(_) => SourceForm::Server,
            Self::Files(_) => SourceForm::Files,
            Self::Blog(_) => SourceForm::Markdown,
        }
    }

    /// Returns whether a program answers, which can be down and may take its time.
    #[must_use]
    pub const fn is_server(&self) -> bool {
        match self.form() {
            SourceForm::Server => true,
            SourceForm::Files | SourceForm::Markdown => false,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(addresses) => f.write_str(&addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
            Self::Files(folder) | Self::Blog(folder) => folder.display().fmt(f),
        }
    }
}

/// An address of an origin server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OriginAddress {
    /// `http://host:port`.
    Http {
        /// A name or an IP address, without brackets.
        host: String,
        /// 80 if none was written.
        port: u16,
    },
    /// `https://host:port`.
    Https {
        /// A name or an IP address, without brackets.
        host: String,
        /// 443 if none was written.
        port: u16,
    },
    /// `unix:/path`: HTTP without TLS over a Unix socket.
    Unix(PathBuf),
}

/// What is stored, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// Bytes of one stored response; at most half of [`Settings::cache_memory`].
    pub object_max: u64,
    /// Bytes of one response stored on the disk, if there is a disk tier.
    pub disk_object_max: u64,
    /// Keep responses to requests without cookies fresh for this long, whatever the origin says. None: what the origin, or the kind, says.
    pub hold: Option<Duration>,
    /// How long a stale copy may stand in for a failing origin, if it does not say so itself. None: the kind's preset.
    pub stale_if_error: Option<Duration>,
    /// How long a stale copy may be served while a fresh one is fetched, if it does not say so itself. None: the kind's preset.
    pub stale_while_revalidate: Option<Duration>,
    /// Cookies, besides the built-in ones, that do not make a request personal. A trailing `*` stands for anything.
    pub ignore_cookies: Vec<String>,
    /// Query parameters, besides the built-in ones, that change nothing. A trailing `*` stands for anything.
    pub ignore_query: Vec<String>,
    /// Query parameters that stay although they are ignored by a list or a pattern.
    pub keep_query: Vec<String>,
    /// Whether `Cache-Control` in requests is obeyed (RFC 9111 §5.2.1). Unless it was set: as the kind's preset says.
    pub honour_request_directives: bool,
    /// Whether responses with `Set-Cookie` are stored (RFC 9111 §7.3). Dangerous.
    pub store_set_cookie: bool,
    /// Whether browsers are told early what a page will need (RFC 8297). Unless it was set: as the kind's preset says.
    pub early_hints: bool,
    /// Over HTTP/1.1 too.
    pub early_hints_http1: bool,
}

impl Cache {
    /// Returns the rules of a site of this kind: what is set here goes before the kind's preset.
    #[must_use]
    pub fn rules(&self, kind: Kind) -> policy::Settings {
        let preset = policy::Settings::preset(kind);
        policy::Settings {
            hold: self.hold.or(preset.hold),
            stale_if_error: self.stale_if_error.or(preset.stale_if_error),
            stale_while_revalidate: self.stale_while_revalidate.or(preset.stale_while_revalidate),
            ignore_cookies: self.ignore_cookies.clone(),
            ignore_query: self.ignore_query.clone(),
            keep_query: self.keep_query.clone(),
            honour_request_directives: self.honour_request_directives,
            store_set_cookie: self.store_set_cookie,
            early_hints: match (self.early_hints, self.early_hints_http1) {
                (false, _) => EarlyHints::Off,
                (true, false) => EarlyHints::On,
                (true, true) => EarlyHints::Http1,
            },
            ..preset
        }
    }
}

/// How an origin server is treated.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginSettings {
    /// Requests at the same time.
    pub concurrency: usize,
    /// Requests that may wait for their turn.
    pub queue: usize,
    /// How long they may wait.
    pub queue_timeout: Duration,
    /// How long a request waits for the response to another one.
    pub collapse_wait: Duration,
    /// Until the connection stands.
    pub connect_timeout: Duration,
    /// From the request to the first byte of the response.
    pub first_byte_timeout: Duration,
    /// Between two pieces of the response.
    pub between_bytes_timeout: Duration,
    /// The `Host` that the origin is asked for.
    pub host: OriginHost,
    /// Certificates (PEM) that are trusted besides the system's.
    pub ca_file: Option<PathBuf>,
}

/// The `Host` that the origin is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginHost {
    /// What the client asked for.
    Client,
    /// The name in the origin's own address.
    Origin,
    /// This one.
    Name(String),
}

/// What a folder of finished files is served with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilesSettings {
    /// Whether folders without an index show their names.
    pub listing: bool,
    /// What answers for pages that are not there; below the folder.
    pub fallback: Option<PathBuf>,
}

/// What the built-in blog cannot find in its folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlogSettings {
    /// None: from `blog.toml`, or the folder's name.
    pub title: Option<String>,
    /// The address that feeds and the sitemap print, without a trailing slash. None: from `blog.toml`, or the request's host.
    pub base_url: Option<String>,
}

impl Settings {
    /// The folder of the disk tier and its size, if there is one to open: not if all sources are folders, which are on a disk already.
    #[must_use]
    pub fn disk_tier(&self) -> Option<(&Path, u64)> {
        let disk = self.cache_disk.as_ref().filter(|_| self.sites.iter().any(Site::has_server))?;
        Some((disk.dir.as_deref()?, disk.size_max))
    }
}
