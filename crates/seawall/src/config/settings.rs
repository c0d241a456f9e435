//! The meaning of a configuration, valid by construction: no option is absent without a meaning, no value is out of its bounds, no two
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
use cluster::{link::Address, tier::bucket::BucketOptions};
pub use edge::Limits;
use http::{HeaderName, HeaderValue, Uri};
use insight::alerts::Rules;
use ipnet::IpNet;
use origins::php::PhpOptions;
pub use policy::{Compress, Kind};
use policy::{EarlyHints, SourceForm};

use crate::recognition::Finding;

/// The settings of `seawall serve`, checked and complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The listeners, the workers and the admin address.
    pub server: Server,
    /// HTTPS, or `None` if it is off.
    pub tls: Option<Tls>,
    /// The limits for one client, and for all of them together.
    pub limits: Limits,
    /// The limit for requests of one address, or `None` if there is none.
    pub requests: Option<Requests>,
    /// The limits for attempts to sign in at a site, or `None` if there are none.
    pub logins: Option<Logins>,
    /// The access log.
    pub log: Log,
    /// The traces, or `None` if nothing is traced.
    pub traces: Option<Traces>,
    /// The bytes that stored responses may take in memory, all sites together.
    pub cache_memory: u64,
    /// The disk tier, or `None` to keep stored responses in memory only.
    pub cache_disk: Option<Disk>,
    /// Rules for purge requests on the sites' own addresses.
    pub purge: Purge,
    /// The refill after a soft purge.
    pub refill: Refill,
    /// The alerts, and how they are sent.
    pub alerts: Alerts,
    /// The cluster of which this machine is a part, or `None` if it stands alone.
    pub cluster: Option<Cluster>,
    /// The sites; at least one. Their hosts do not overlap, and only a single site may answer for every host.
    pub sites: Vec<Site>,
    /// Warnings about settings that are possible, but were hardly meant.
    pub warnings: Vec<String>,
}

/// The limit for requests of one address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requests {
    /// The requests in a second.
    pub per_second: f64,
    /// The requests at once.
    pub burst: f64,
}

/// The limits for attempts to sign in at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logins {
    /// The number of wrong passwords that one address may send.
    pub attempts: u32,
    /// The number of attempts that a site's server gets at once.
    pub concurrency: usize,
}

/// Rules for purge requests on the sites' own addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Purge {
    /// The networks from which they are obeyed without the admin token.
    pub allow: Vec<IpNet>,
    /// The path below which a GET purges. It begins with a slash and ends without one. `None`: there is no such path.
    pub path: Option<String>,
}

/// The refill after a soft purge.
#[derive(Clone, Debug, PartialEq)]
pub struct Refill {
    /// The number of requests at the same time for one site; 0 turns refilling off.
    pub concurrency: usize,
}

/// The alerts, and how they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alerts {
    /// The limits beyond which something is wrong.
    pub rules: Rules,
    /// The name of this server in what is sent.
    pub server: String,
    /// The webhook, or `None` if there is none.
    pub webhook: Option<Webhook>,
    /// The program, or `None` if there is none.
    pub command: Option<AlertCommand>,
}

/// A webhook to which alerts are sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The address; it may be a secret.
    pub url: Uri,
    /// The address for the end of an alert, if it is another one.
    pub resolved: Option<Uri>,
    /// The secret by which content is signed.
    pub secret: Option<String>,
    /// Fields of the request.
    pub fields: Vec<(HeaderName, HeaderValue)>,
}

/// Shows no secret.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("host", &self.url.host()).finish_non_exhaustive()
    }
}

/// A program that is told of alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertCommand {
    /// The program.
    pub program: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<String>,
    /// The time after which it is killed.
    pub timeout: Duration,
}

/// The cluster of which this machine is a part.
#[derive(Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The Valkey or the Redis.
    pub address: Address,
    /// The name of the cluster; all keys begin with it.
    pub name: String,
    /// The name of this machine.
    pub machine: String,
    /// The secret that all machines have.
    pub secret: String,
    /// The time for which a machine may serve what it has stored without a word from the server.
    pub lease: Duration,
    /// The time for which a page is fresh in doubt, from when its origin was asked.
    pub doubt_hold: Duration,
    /// The number of replicas that must have a purge before it is acknowledged.
    pub replicas: u32,
    /// The tier that the machines share.
    pub tier: Tier,
    /// The bytes that the shared tier may take.
    pub tier_memory: u64,
    /// Certificates (PEM) that are trusted for connections to the server, in place of the system's.
    pub ca_file: Option<PathBuf>,
}

/// Shows no secret.
impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, name, machine, secret: _, lease, doubt_hold, replicas, tier, tier_memory, ca_file } = self;
        f.debug_struct("Cluster")
            .field("address", address)
            .field("name", name)
            .field("machine", machine)
            .field("lease", lease)
            .field("doubt_hold", doubt_hold)
            .field("replicas", replicas)
            .field("tier", tier)
            .field("tier_memory", tier_memory)
            .field("ca_file", ca_file)
            .finish_non_exhaustive()
    }
}

/// The tier that the machines of a cluster share, behind memory and disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tier {
    /// There is none.
    None,
    /// It is in the Valkey or the Redis of the cluster.
    Valkey,
    /// Its pages are in a bucket.
    Bucket {
        /// The bucket.
        options: Box<BucketOptions>,
        /// Certificates (PEM) that are trusted for connections to it, in place of the system's. They are not in `options` yet.
        ca_file: Option<PathBuf>,
    },
}

/// The disk tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The folder of the disk tier. `None`: nobody named one, and the user has no home.
    pub dir: Option<PathBuf>,
    /// The bytes that files may take.
    pub size_max: u64,
}

/// The process and its listeners.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The addresses to listen on; at least one, none twice.
    pub listen: Vec<Listen>,
    /// The address of the admin API, or `None` if it is off.
    pub admin: Option<SocketAddr>,
    /// The file of the admin API's token.
    pub admin_token_file: PathBuf,
    /// The number of threads; at least one.
    pub workers: usize,
    /// Whether HTTP/2 is spoken without TLS.
    pub h2c: bool,
    /// Peers that Seawall believes about their client's address and scheme.
    pub trusted_proxies: Vec<IpNet>,
    /// Further fields that Seawall believes from these peers: in lower case, sorted, none twice.
    pub trusted_fields: Vec<String>,
    /// The path that answers health checks on visitors' addresses, or `None`.
    pub health_path: Option<String>,
    /// The time that responses in progress may take after the signal to stop.
    pub shutdown_timeout: Duration,
}

/// HTTPS and its certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The addresses to listen on; at least one, none twice.
    pub listen: Vec<SocketAddr>,
    /// Certificates in files, none twice; at least one if Seawall gets none by itself.
    pub certificates: Vec<CertificateFiles>,
    /// The certificates that Seawall gets by itself.
    pub acme: Option<Acme>,
    /// HTTP/3 at the same addresses, or `None` if it is off.
    pub http3: Option<Http3>,
}

/// HTTP/3 over UDP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http3 {
    /// The port that visitors are told, or `None` for the one that Seawall listens on.
    pub port: Option<u16>,
}

/// Certificates that Seawall gets by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acme {
    /// The authority, and how it is asked.
    pub options: acme::Options,
    /// Certificates (PEM) that are trusted for connections to the authority, besides the system's.
    pub ca_file: Option<PathBuf>,
    /// The names that get a certificate, unless there are files for them.
    pub names: Vec<String>,
    /// Twins of these names that get a certificate if they lead here: the twin, then the name.
    pub twins: Vec<(String, String)>,
}

/// A certificate in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, and those that lead to a root.
    pub certificate: PathBuf,
    /// The key of the certificate; it may be in the same file.
    pub key: PathBuf,
    /// Whether clients get it that ask for no name or for an unknown one.
    pub is_default: bool,
}

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listen {
    /// An address and a port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A Unix socket, by its absolute path.
    Unix(PathBuf),
}

/// Spans for an OpenTelemetry collector.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// The whole address of the collector.
    pub endpoint: Uri,
    /// Fields that go with each request to it.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Certificates (PEM) that are trusted for connections to it, besides the system's.
    pub ca_file: Option<PathBuf>,
    /// The name under which the spans appear.
    pub service_name: String,
    /// The share of requests that are traced, from 0 to 1, where a trace begins here.
    pub sample: f64,
    /// Whether plain hits are traced.
    pub hits: bool,
}

/// The access log.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The destination.
    pub access: AccessLog,
    /// The format of its lines.
    pub format: LogFormat,
}

/// The destination of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// The log is not written.
    Off,
    /// Standard output.
    Stdout,
    /// Lines are appended to this file.
    File(PathBuf),
}

/// The format of a line of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// The line that Apache and nginx call "combined".
    Combined,
    /// One JSON object a line.
    Json,
}

/// One site: its hosts, its source and its rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The name of the site: its first host, or `default`; unique.
    pub name: String,
    /// Host names in lower case without a port; empty: every host. `*.example.org` stands for every name below example.org, and an exact
    /// name takes precedence.
    pub hosts: Vec<String>,
    /// The source of its responses.
    pub source: Source,
    /// The preset of its policy. It is for sources of the form that `source` has.
    pub kind: Kind,
    /// Whether the operator has said the kind. Otherwise it follows from the source, and from what is known of it.
    pub kind_is_given: bool,
    /// The finding about the server behind the site.
    pub finding: Finding,
    /// The rules for storing: which responses, and for how long.
    pub cache: Cache,
    /// Settings for the origin; only for [`Source::Http`] and [`Source::Php`].
    pub origin: OriginSettings,
    /// Settings for a blog; only for [`Source::Blog`].
    pub blog: BlogSettings,
    /// Settings for a Ghost; only for [`Kind::Ghost`].
    pub ghost: GhostSettings,
    /// Settings for a WordPress; only for [`Kind::WordPress`].
    pub wordpress: WordPressSettings,
    /// Settings for a folder; only for [`Source::Files`].
    pub files: FilesSettings,
    /// Settings for PHP; only, and always, for [`Source::Php`].
    pub php: Option<PhpSettings>,
    /// Whether visitors over plain http are sent to https.
    pub https_redirect: pipeline::Redirect,
    /// Fields that are added to the origin's responses, and fields that are removed.
    pub headers: Headers,
    /// The password for the site, or for parts of it.
    pub auth: Option<Auth>,
    /// The rules for compression.
    pub compress: Compress,
    /// Names whose visitors are sent to `redirect_to`. They are in no site's hosts.
    pub redirect_from: Vec<String>,
    /// Parts of the site for which other servers answer; no path twice.
    pub routes: Vec<Route>,
}

impl Site {
    /// Returns the name to which visitors of `redirect_from` are sent. There is one if `redirect_from` is not empty.
    #[must_use]
    pub fn redirect_to(&self) -> Option<&str> {
        self.hosts.iter().map(String::as_str).find(|host| !host.starts_with('*'))
    }

    /// Returns the settings for the product that makes the site.
    #[must_use]
    pub const fn product(&self) -> Product<'_> {
        match self.kind {
            Kind::Ghost => Product::Ghost(&self.ghost),
            Kind::WordPress => Product::WordPress(&self.wordpress),
            Kind::Generic | Kind::Php | Kind::Blog | Kind::Static => Product::Any,
        }
    }

    /// Returns the path at which its software is, without a slash at its end. `None`: it has the whole host, as far as is known.
    #[must_use]
    pub fn base_path(&self) -> Option<&str> {
        match self.product() {
            Product::Ghost(ghost) => ghost.path.as_deref(),
            Product::WordPress(wordpress) => wordpress.path.as_deref(),
            Product::Any => None,
        }
    }

    /// Returns the secret with which its software signs what it says, if one was set.
    #[must_use]
    pub fn signing_secret(&self) -> Option<&str> {
        match self.product() {
            Product::Ghost(ghost) => ghost.webhook_secret.as_deref(),
            Product::WordPress(wordpress) => wordpress.secret.as_deref(),
            Product::Any => None,
        }
    }

    /// Returns the secret by which its software signs a member's tier, if one was set.
    #[must_use]
    pub fn member_secret(&self) -> Option<&[u8]> {
        match self.product() {
            Product::Ghost(ghost) => ghost.member_secret.as_deref(),
            Product::WordPress(_) | Product::Any => None,
        }
    }

    /// Returns the time between two runs of its software's schedule. `None`: that is not run from here.
    #[must_use]
    pub const fn cron(&self) -> Option<Duration> {
        match self.product() {
            Product::WordPress(wordpress) => wordpress.cron,
            Product::Ghost(_) | Product::Any => None,
        }
    }

    /// Tells whether a server answers for the site or for a part of it.
    #[must_use]
    pub fn has_server(&self) -> bool {
        self.source.is_server() || !self.routes.is_empty()
    }
}

/// The settings for the product that makes a site. They go by its kind: those of other products mean nothing to it.
#[derive(Clone, Copy, Debug)]
pub enum Product<'a> {
    /// It is a Ghost.
    Ghost(&'a GhostSettings),
    /// It is a WordPress.
    WordPress(&'a WordPressSettings),
    /// It may be any software, and nothing can be set for it alone.
    Any,
}

/// A part of a site for which another server answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The path in normal form, without a slash at its end.
    pub path: String,
    /// The server's addresses; never empty, none twice.
    pub addresses: Vec<OriginAddress>,
    /// Whether the server is asked for what follows `path`.
    pub strip_prefix: bool,
    /// Whether the server is told the visitor's cookies.
    pub sends_cookies: bool,
    /// Whether the cache is asked.
    pub is_cached: bool,
    /// Settings for the server.
    pub origin: OriginSettings,
    /// The rules for storing: which responses, and for how long.
    pub cache: Cache,
    /// Fields that are added to the server's responses, and fields that are removed.
    pub headers: Headers,
}

impl Route {
    /// Returns the kind whose preset judges what the route's server answers: the usual kind of a server, because nothing is known of it.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        SourceForm::Server.usual_kind()
    }
}

/// A password for a site, or for parts of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// The file of the users. It could be read.
    pub file: PathBuf,
    /// The paths that need a password; at least one.
    pub paths: Protected,
    /// The value of `WWW-Authenticate`.
    pub challenge: HeaderValue,
    /// Whether the password goes to the origin.
    pub forward: bool,
}

/// Fields that are added to responses, and fields that are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Fields that are removed from the origin's responses.
    pub remove: Vec<HeaderName>,
    /// Fields that are added if the origin does not send them.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Fields that are added to documents only, if the origin does not send them.
    pub set_on_documents: Vec<(HeaderName, HeaderValue)>,
    /// The value of `Strict-Transport-Security`, which is sent over https only.
    pub hsts: Option<HeaderValue>,
}

/// The source of a site's responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A server with its addresses. The first is preferred; there is at least one, and none twice.
    Http(Vec<OriginAddress>),
    /// A folder of finished files.
    Files(PathBuf),
    /// A folder of Markdown.
    Blog(PathBuf),
    /// A folder with an application in PHP.
    Php(PathBuf),
}

impl Source {
    /// Returns what the source is, whichever software it runs.
    #[must_use]
    pub const fn form(&self) -> SourceForm {
        match self {
            Self::Http(_) => SourceForm::Server,
            Self::Files(_) => SourceForm::Files,
            Self::Blog(_) => SourceForm::Markdown,
            Self::Php(_) => SourceForm::Php,
        }
    }

    /// Returns whether a program answers, which can be down and may take its time.
    #[must_use]
    pub const fn is_server(&self) -> bool {
        match self.form() {
            SourceForm::Server | SourceForm::Php => true,
            SourceForm::Files | SourceForm::Markdown => false,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(addresses) => f.write_str(&addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
            Self::Files(folder) | Self::Blog(folder) | Self::Php(folder) => folder.display().fmt(f),
        }
    }
}

/// The settings for a folder with an application in PHP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhpSettings {
    /// The server that runs the scripts: a Unix socket, or host and port.
    pub server: OriginAddress,
    /// Whether it was found where distributions put it, as none was named.
    pub is_found: bool,
    /// Further sockets that were found there.
    pub also_found: Vec<PathBuf>,
    /// The options with which the folder is read.
    pub folder: PhpOptions,
    /// The folder for what is too long for the memory; the system's if there is none.
    pub temporary_folder: Option<PathBuf>,
}

impl PhpSettings {
    /// Writes the address as it is given: `unix:/path`, or `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        let text = self.server.to_string();
        text.strip_prefix("http://").unwrap_or(&text).to_owned()
    }
}

/// An address of an origin server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OriginAddress {
    /// A server with plain HTTP, `http://host:port`.
    Http {
        /// A name or an IP address, without brackets.
        host: String,
        /// The port; 80 if none was written.
        port: u16,
    },
    /// A server with TLS, `https://host:port`.
    Https {
        /// A name or an IP address, without brackets.
        host: String,
        /// The port; 443 if none was written.
        port: u16,
    },
    /// A Unix socket with plain HTTP, `unix:/path`.
    Unix(PathBuf),
}

/// Says what is stored, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// The largest stored response in bytes; at most half of [`Settings::cache_memory`].
    pub object_max: u64,
    /// The largest response on the disk in bytes, if there is a disk tier.
    pub disk_object_max: u64,
    /// The time for which responses to requests without cookies are kept fresh, whatever the origin says. `None`: as the origin or the kind
    /// says.
    pub hold: Option<Duration>,
    /// The time for which a stale copy may stand in for a failing origin, if the response does not say so itself. `None`: the kind's
    /// preset.
    pub stale_if_error: Option<Duration>,
    /// The time for which a stale copy may be served while a fresh one is fetched, if the response does not say so itself. `None`: the
    /// kind's preset.
    pub stale_while_revalidate: Option<Duration>,
    /// Cookies that do not make a request personal, besides the built-in ones. A trailing `*` stands for anything.
    pub ignore_cookies: Vec<String>,
    /// Query parameters that change nothing, besides the built-in ones. A trailing `*` stands for anything.
    pub ignore_query: Vec<String>,
    /// Query parameters that stay, although a list or a pattern ignores them.
    pub keep_query: Vec<String>,
    /// Whether `Cache-Control` in requests is obeyed (RFC 9111 §5.2.1). Unless it was set: as the kind's preset says.
    pub honour_request_directives: bool,
    /// Whether responses with `Set-Cookie` are stored (RFC 9111 §7.3). Dangerous.
    pub store_set_cookie: bool,
    /// Cookies that are taken off responses that are stored without them. A trailing `*` stands for anything.
    pub drop_set_cookies: Vec<String>,
    /// Whether a page is fetched a second time before it is stored for the first time. Unless it was set: as the kind's preset says.
    pub two_visitor_proof: bool,
    /// Whether browsers are told early what a page will need (RFC 8297). Unless it was set: as the kind's preset says.
    pub early_hints: bool,
    /// Whether they get them over HTTP/1.1 too.
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
            drop_set_cookies: self.drop_set_cookies.clone(),
            two_visitor_proof: self.two_visitor_proof,
            early_hints: match (self.early_hints, self.early_hints_http1) {
                (false, _) => EarlyHints::Off,
                (true, false) => EarlyHints::On,
                (true, true) => EarlyHints::Http1,
            },
            ..preset
        }
    }
}

/// Says how an origin server is treated.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginSettings {
    /// The number of requests at the same time.
    pub concurrency: usize,
    /// The number of requests that may wait for their turn.
    pub queue: usize,
    /// The time for which they may wait.
    pub queue_timeout: Duration,
    /// The time that a request waits for the response to another one.
    pub collapse_wait: Duration,
    /// The longest time for opening a connection.
    pub connect_timeout: Duration,
    /// The longest time from the request to the first byte of the response.
    pub first_byte_timeout: Duration,
    /// The longest pause between two pieces of the response.
    pub between_bytes_timeout: Duration,
    /// The `Host` of requests to the origin.
    pub host: OriginHost,
    /// Certificates (PEM) that are trusted besides the system's.
    pub ca_file: Option<PathBuf>,
}

/// The `Host` of requests to the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginHost {
    /// The host that the client asked for.
    Client,
    /// The name in the origin's own address.
    Origin,
    /// A name that the operator chose.
    Name(String),
}

/// Settings for a folder of finished files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilesSettings {
    /// Whether a folder without an index shows a list of its files.
    pub listing: bool,
    /// The file that answers for pages that do not exist; below the folder.
    pub fallback: Option<PathBuf>,
}

/// Settings for the built-in blog that take precedence over its folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlogSettings {
    /// The title. `None`: from `blog.toml`, or the folder's name.
    pub title: Option<String>,
    /// The address that feeds and the sitemap print, without a trailing slash. `None`: from `blog.toml`, or the request's host.
    pub base_url: Option<String>,
    /// Whether drafts are published, whatever `blog.toml` says.
    pub drafts: bool,
}

/// Settings for a WordPress.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WordPressSettings {
    /// The path at which the site is, without a slash at its end. `None`: it has the whole host.
    pub path: Option<String>,
    /// The secret with which the plugin signs what it says. `None`: whoever may purge is believed.
    pub secret: Option<String>,
    /// The time between two runs of WordPress's own schedule. `None`: it is not run from here.
    pub cron: Option<Duration>,
}

/// Shows no secret.
impl fmt::Debug for WordPressSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, secret, cron } = self;
        f.debug_struct("WordPressSettings").field("path", path).field("secret", &secret.is_some()).field("cron", cron).finish()
    }
}

/// Settings for a Ghost.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct GhostSettings {
    /// The path at which the blog is, without a slash at its end. `None`: it has the whole host, as far as is known.
    pub path: Option<String>,
    /// The server for the paths of the social web. `None`: the Ghost itself.
    pub activitypub: Option<OriginAddress>,
    /// The server for the paths of visitor statistics. `None`: the Ghost itself.
    pub analytics: Option<OriginAddress>,
    /// The secret of webhooks. `None`: whoever may purge may send them.
    pub webhook_secret: Option<String>,
    /// The secret by which Ghost signs a member's tier. `None`: pages for members are not stored.
    pub member_secret: Option<Vec<u8>>,
}

/// Shows no secret.
impl fmt::Debug for GhostSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, activitypub, analytics, webhook_secret, member_secret } = self;
        f.debug_struct("GhostSettings")
            .field("path", path)
            .field("activitypub", activitypub)
            .field("analytics", analytics)
            .field("webhook_secret", &webhook_secret.is_some())
            .field("member_secret", &member_secret.is_some())
            .finish()
    }
}

impl Settings {
    /// Returns the folder of the disk tier and its size. Returns `None` if there is none to open, also if all sources are folders: those
    /// are on a disk already.
    #[must_use]
    pub fn disk_tier(&self) -> Option<(&Path, u64)> {
        let disk = self.cache_disk.as_ref().filter(|_| self.sites.iter().any(Site::has_server))?;
        Some((disk.dir.as_deref()?, disk.size_max))
    }

    /// Returns the addresses on which TLS is spoken.
    #[must_use]
    pub fn tls_listen(&self) -> &[SocketAddr] {
        self.tls.as_ref().map_or(&[], |tls| &tls.listen)
    }

    /// Returns the settings for HTTP/3, if it is on.
    #[must_use]
    pub fn http3(&self) -> Option<&Http3> {
        self.tls.as_ref()?.http3.as_ref()
    }

    /// Returns the settings for certificates, or `None` if no listener speaks TLS.
    #[must_use]
    pub fn acme_in_force(&self) -> Option<&Acme> {
        self.tls.as_ref().filter(|tls| !tls.listen.is_empty())?.acme.as_ref()
    }
}
