//! `seawall.toml` as it is typed: every key optional, nothing decided yet, each value with its place in the text.
//!
//! The comments here *are* the manual: `doc/configuration.md` is made of them (see the test in `manual.rs`). So each key says its
//! purpose, its unit, its default in the very form in which it is written, and, where it bounds memory, the worst case.

use serde::Deserialize;
use toml::Spanned;

use super::{
    addresses::{AdminAddress, TrustedProxy},
    alerts::{AlertWord, WebhookField, WebhookUrl},
    auth::{ProtectedPath, Realm},
    bucket::{StorageAddress, StorageWord, TierWord},
    cluster::{ClusterName, ClusterUrls},
    compress::{PassedWord, PathPattern, TypePattern},
    ghost::{MemberSecret, SecretText},
    headers::{FieldLine, FieldName},
    php::{LinksWord, PhpServer, SendFiles},
    purge::{PurgePath, PurgeSource},
    routes::RoutePath,
    settings::{AccessLog, Listen, LogFormat, OriginAddress, OriginHost},
    traces::{Collector, CollectorField, Share},
    units::{ByteSize, Count, Period},
    words::{
        BaseUrl, CompanionServer, CookiePattern, CronPeriod, DroppedCookie, HostPattern, KindWord, LoginAttempts, NamePattern,
        RequestsPerSecond, TrustedField,
    },
};

/// A value and its place in the text, if the key was written.
pub type Given<T> = Option<Spanned<T>>;

/// A list and its place in the text, with the place of each of its values.
pub type Listed<T> = Option<Spanned<Vec<Spanned<T>>>>;

/// The top of the file.
///
/// If there is one site, no `[[site]]` is needed: `source` names what is served, for every host name. Keys without a section stand at the
/// top of the file, before the first section.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// The site: a server (`"http://127.0.0.1:2368"`, `"https://..."`, `"unix:/run/ghost.sock"`), a folder of finished files (it has an
    /// `index.html`), or a folder of Markdown. A relative folder is looked for beside the file. The address of a Ghost or a WordPress may end with the
    /// path at which it is: `"http://127.0.0.1:2368/blog"`. This is the short form for one site; it
    /// cannot be combined with `[[site]]`. A SOURCE from the command line or the environment replaces it, and `kind` and `[origin]
    /// addresses` with it.
    ///
    /// Default: none; without it there must be a `[[site]]` or a SOURCE on the command line. Environment: `SEAWALL_SOURCE`.
    pub source: Given<String>,

    /// The kind of the source: `"ghost"` (a server that is a Ghost), `"wordpress"` (a server or a folder that is a WordPress), `"generic"` (any other
    /// server; its responses say what may be stored, RFC 9111), `"blog"` (a folder of Markdown), `"static"` (a folder of finished files), or `"php"`
    /// (a folder with another application in PHP).
    ///
    /// Default: none; it follows from the source. A server is asked whether it is a Ghost or a WordPress, at the start and now and then. A folder with
    /// `wp-load.php` and `wp-includes/version.php` is a WordPress. Flag: `--kind`. Environment: `SEAWALL_KIND`.
    pub kind: Given<KindWord>,

    /// Names whose visitors are sent to the name of the site, such as `["www.example.org"]`. GET and HEAD are answered with 301, other
    /// methods with 308; path and query are kept. The names get certificates, as the site's own name does. The site needs a name of its
    /// own: `--domain`, or `hosts` in a `[[site]]`, which has its own `redirect_from`.
    ///
    /// Default: `[]`. Flag: `--redirect-from`, repeatable. Environment: `SEAWALL_REDIRECT_FROM`, separated by commas.
    pub redirect_from: Listed<HostPattern>,

    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub server: Server,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub tls: Tls,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub acme: Acme,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub limits: Limits,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub log: Log,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub traces: Traces,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub cache: Cache,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub origin: Origin,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub blog: Blog,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub ghost: Ghost,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub wordpress: WordPress,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub php: Php,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub r#static: Static,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub https: Https,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub headers: Headers,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub auth: Auth,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub compress: Compress,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub purge: Purge,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub refill: Refill,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub alerts: Alerts,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub cluster: Cluster,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub route: Vec<Spanned<Route>>,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub site: Vec<Spanned<Site>>,
}

/// `[server]`: where to listen, and the process itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Addresses with a port, or Unix sockets by their whole path (`"unix:/run/seawall.sock"`). `"0.0.0.0:80"` is every IPv4 address of
    /// the machine.
    ///
    /// Default: `["127.0.0.1:8080"]`. Flag: `--listen`, repeatable. Environment: `SEAWALL_LISTEN`, separated by commas; or `PORT`,
    /// which means `0.0.0.0:$PORT`.
    pub listen: Listed<Listen>,

    /// Where the admin API (status, metrics, purge) listens, or `"off"`. Keep it on an address that visitors cannot reach.
    ///
    /// Default: `"127.0.0.1:9180"`. Flag: `--admin`. Environment: `SEAWALL_ADMIN`.
    pub admin: Given<AdminAddress>,

    /// The file with the secret for the admin API. Seawall makes it at the first start; only its owner can read it.
    ///
    /// Default: none; then it is `seawall/admin-token` in the XDG state folder (`$XDG_STATE_HOME`, or `~/.local/state`), and
    /// `/var/lib/seawall/admin-token` for a user without a home.
    pub admin_token_file: Given<String>,

    /// The number of threads that serve; 1 to 1024. Each thread has its own event loop and its own connections to the origin.
    ///
    /// Default: none; then one for each processor core. Flag: `--workers`. Environment: `SEAWALL_WORKERS`.
    pub workers: Given<Count>,

    /// Whether `listen` also takes HTTP/2 without TLS, from clients that begin with it (RFC 9113 §3.3, "prior knowledge"). For your own
    /// proxies; browsers never do this.
    ///
    /// Default: `false`.
    pub h2c: Given<bool>,

    /// Whether Seawall also speaks HTTP/3: over UDP, at each address where it speaks TLS, with the same certificates. `Alt-Svc` tells
    /// browsers about it, and they use it the next time. UDP must reach the same port: if a firewall or a container lets in only TCP,
    /// everybody stays on HTTP/2.
    ///
    /// Default: `false`. Flag: `--http3`. Environment: `SEAWALL_HTTP3`.
    pub http3: Given<bool>,

    /// The UDP port that `Alt-Svc` names, if it differs from the one that Seawall listens on, as behind a forwarded port; 1 to 65535.
    ///
    /// Default: none; then it is the port of the first address in `[tls] listen`.
    pub http3_port: Given<Count>,

    /// Networks of your own proxies (a load balancer, a CDN), such as `"10.0.0.0/8"`. Seawall believes what they say about the client
    /// (`X-Forwarded-For`, `X-Forwarded-Proto`), and removes these fields from everybody else's requests. A Unix socket counts as one of them. `"private"` stands for every
    /// private network and this machine: right where nobody but the proxy can reach Seawall, as on a platform that gives a `PORT`, or in a
    /// network of containers.
    ///
    /// Default: `[]`. Flag: `--trusted-proxies`, separated by commas. Environment: `SEAWALL_TRUSTED_PROXIES`.
    pub trusted_proxies: Listed<TrustedProxy>,

    /// Further fields from the proxies in `trusted_proxies` that decide what the page looks like, such as `"X-Forwarded-Prefix"`,
    /// `"X-Forwarded-Port"` or `"CF-IPCountry"`. They go to the origin and are part of the cache key, so each value has pages of its own.
    /// They are removed from everybody else's requests. Without this setting, Seawall believes what a trusted proxy says about the client's
    /// address and scheme, and removes fields such as `X-Forwarded-*` and `X-Original-URL` from its requests too: most proxies pass on
    /// whatever their clients invent. Name only what your proxy sets itself, on every request.
    ///
    /// Default: `[]`.
    pub trusted_fields: Listed<TrustedField>,

    /// A path that Seawall answers with 200 on the addresses of visitors, for every host and without asking the origin. Platforms and load
    /// balancers can check it. No page of a site can have this path. The admin API has `/healthz`.
    ///
    /// Default: none.
    pub health_path: Given<PurgePath>,

    /// How long responses in progress may take after the signal to stop; up to one hour. `"0s"` ends them at once.
    ///
    /// Default: `"30s"`.
    pub shutdown_timeout: Given<Period>,
}

/// `[tls]` and `[site.tls]`: HTTPS.
///
/// Seawall speaks TLS 1.2 and 1.3 with HTTP/1.1 and HTTP/2. This section has certificates in files. Seawall checks the files every few
/// seconds, and uses a changed pair without a restart once both files fit together. Each certificate is used for the names in it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Addresses with a port, where Seawall speaks TLS. Only in `[tls]`.
    ///
    /// Default: none; with a certificate, `["127.0.0.1:8443"]`, and with `--domain`, `["0.0.0.0:443", "[::]:443"]`. Flag: `--tls-listen`, repeatable.
    /// Environment: `SEAWALL_TLS_LISTEN`, separated by commas.
    pub listen: Listed<Listen>,

    /// The certificate and those that lead to a root, such as `fullchain.pem` (PEM, the server's own certificate first; ECDSA or RSA). The
    /// certificate in `[tls]` is also used for clients that ask for no name or an unknown one; without it, they are refused.
    ///
    /// Default: none. Flag: `--tls-cert`. Environment: `SEAWALL_TLS_CERT`.
    pub cert: Given<String>,

    /// The key of the certificate (PEM, without a password).
    ///
    /// Default: none; then it is in the file of `cert`. Flag: `--tls-key`. Environment: `SEAWALL_TLS_KEY`.
    pub key: Given<String>,
}

/// `[acme]`: certificates that Seawall gets by itself.
///
/// If Seawall speaks TLS, it gets a certificate for each host of each site and renews it. It uses ACME (RFC 8555) with Let's Encrypt, or,
/// for local names (`localhost`, `nas.local`, `192.168.1.2`), a root of this machine's own. By using Let's Encrypt you accept its terms of
/// service. The names must lead to this machine, and ports 80 and 443 must be reachable from outside; `seawall check --acme` says what is
/// wrong. Until there is a certificate, a site is served over plain HTTP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Acme {
    /// Whether Seawall gets certificates by itself.
    ///
    /// Default: `true`; with `cert` in `[tls]`, `false`.
    pub enabled: Given<bool>,

    /// The authority: `"letsencrypt"`, `"letsencrypt-staging"` (for trying: browsers do not trust its certificates, and its limits are
    /// generous), or the address of another authority's directory.
    ///
    /// Default: `"letsencrypt"`.
    pub directory: Given<String>,

    /// The address to which the authority may send mail.
    ///
    /// Default: none.
    pub email: Given<String>,

    /// A kind of certificate, if the authority has several, such as Let's Encrypt's `"shortlived"`: six days.
    ///
    /// Default: none; the authority's own.
    pub profile: Given<String>,

    /// The folder for account, keys and certificates; only Seawall's user may read it. Keep it over restarts and in containers: an
    /// installation that orders new certificates at each start is soon refused for a week. Several Seawalls may share the folder; only one
    /// of them orders.
    ///
    /// Default: none; then it is `seawall/acme` in the XDG state folder (`$XDG_STATE_HOME`, or `~/.local/state`), and `/var/lib/seawall/acme`
    /// for a user without a home.
    pub dir: Given<String>,

    /// Certificates (PEM) that are trusted, in addition to the system's, for connections to the authority. For an authority of your own.
    ///
    /// Default: none.
    pub ca_file: Given<String>,

    /// Whether `www.example.org` gets a certificate with `example.org`, and the other way round, if it leads to the same place.
    ///
    /// Default: `true`.
    pub www: Given<bool>,

    /// A program that writes DNS records (DNS-01), for wildcards and for machines that cannot be reached from outside. Seawall runs
    /// `PROGRAM present _acme-challenge.example.org VALUE`; the program returns 0 when the TXT record can be seen. Afterwards Seawall runs
    /// it with `cleanup`.
    ///
    /// Default: none.
    pub dns_hook: Given<String>,

    /// How long the program in `dns_hook` may take; up to 1h.
    ///
    /// Default: `"2m"`.
    pub dns_hook_timeout: Given<Period>,

    /// The id of an account key, for authorities that want an account from their web site (ZeroSSL, Google).
    ///
    /// Default: none.
    pub eab_key_id: Given<String>,

    /// The file with the key that belongs to `eab_key_id`, in base64url as the authority gave it.
    ///
    /// Default: none.
    pub eab_key_file: Given<String>,

    /// Whether a name gets its certificate when somebody first connects to it. This covers names below a host such as `"*.example.org"`,
    /// and names that `ask` approves. The first client waits for the certificate, nine seconds at most; up to 64 clients wait at a time,
    /// and they hold up no others. At most 20 new names an hour, 1000 in all.
    ///
    /// Default: `false`.
    pub on_demand: Given<bool>,

    /// An address that Seawall asks about other names, with `?domain=NAME` added; 200 means yes.
    ///
    /// Default: none.
    pub ask: Given<String>,
}

/// `[limits]`: limits for one client, and for all of them together.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The number of open connections of clients, on all listeners together; 1 to 1000000. A further one is answered with 503 and closed.
    /// Worst case in memory: this times `header_bytes` (625 MiB with the defaults), if every client fills its head and sends no more until
    /// `header_timeout` ends it.
    ///
    /// Default: `20000`.
    pub connections: Given<Count>,

    /// The number of open connections from one address (IPv6: one /64), at most `connections`, at each machine of a cluster. Loopback and `trusted_proxies` are exempt,
    /// because many people are behind them. Worst case for one address: this times `header_bytes` (8 MiB with the defaults).
    ///
    /// Default: `256`, or `connections` where that is less.
    pub connections_per_address: Given<Count>,

    /// The largest head of a request (request line and fields); 1KiB to 1MiB. A larger one is answered with 431 (RFC 6585 §5).
    ///
    /// Default: `"32KiB"`.
    pub header_bytes: Given<ByteSize>,

    /// The largest number of fields in a request's head; 8 to 256. A request with more is answered with 431.
    ///
    /// Default: `100`.
    pub header_fields: Given<Count>,

    /// The largest request target (path and query); 256 bytes up to `header_bytes`. A longer one is answered with 414 (RFC 9110 §15.5.15).
    ///
    /// Default: `"8KiB"`, or `header_bytes` where that is less.
    pub target_bytes: Given<ByteSize>,

    /// The largest body of a request, such as an upload; 1 byte to 1TiB. A larger one is answered with 413. Bodies are passed on in pieces
    /// and never kept whole, so this costs no memory.
    ///
    /// Default: `"1GiB"`.
    pub body_bytes: Given<ByteSize>,

    /// The longest time from the first byte of a request's head to its last; 1ms to 1h. With TLS, the handshake before it may take as long
    /// again, and so may the wait for its turn in a crowd.
    ///
    /// Default: `"10s"`.
    pub header_timeout: Given<Period>,

    /// The longest pause within a request's body; 1ms to 1h.
    ///
    /// Default: `"30s"`.
    pub body_timeout: Given<Period>,

    /// The longest time in which a client takes nothing of its response; 1ms to 1h.
    ///
    /// Default: `"30s"`.
    pub write_timeout: Given<Period>,

    /// How long a connection may wait for its next request; 1ms to 1h.
    ///
    /// Default: `"60s"`.
    pub idle_timeout: Given<Period>,

    /// The number of requests that one address (IPv6: one /64) may send in a second, on average, over all connections and protocols; 0.01 to 1000000, or
    /// `"off"`. More are answered with 429 (RFC 6585 §4) and `Retry-After`, whether they are stored or not. Loopback, `trusted_proxies` and the addresses
    /// in `[purge] allow` are exempt, and so are health checks and challenges of certificate authorities; behind a trusted proxy, the client that it
    /// names counts. A page and what belongs to it are many requests at once, and an office may have one address: see `requests_burst`. The machines of a
    /// [cluster](cluster.md#limits) share this limit. Worst case in memory: 6.5 MiB, for 65536 addresses; those that have sent least are forgotten first.
    ///
    /// Default: `"off"`.
    pub requests_per_second: Given<RequestsPerSecond>,

    /// The number of requests that one address may send at once after a time of silence, with `requests_per_second`; 1 to 1000000.
    ///
    /// Default: those of one second, at least 1.
    pub requests_burst: Given<Count>,

    /// The number of wrong passwords that one address (IPv6: one /64) may send to the sign-in of a WordPress or a Ghost; 1 to 1000, or `"off"`. After
    /// that, one is forgiven every six seconds, and further attempts are answered with 429 (RFC 6585 §4) without asking the site. For a WordPress that
    /// is `wp-login.php`, `xmlrpc.php`, and every request with `Authorization`. Right passwords are not counted, and loopback is exempt: name a proxy in
    /// front in `trusted_proxies`. The machines of a [cluster](cluster.md#limits) count together. Worst case in memory: 1 MiB.
    ///
    /// Default: `10`.
    pub login_attempts: Given<LoginAttempts>,

    /// The number of attempts to sign in that a site's server gets at once, from all addresses together; 1 to 1000, and never more than a quarter of
    /// `[origin] concurrency` (but at least one). 32 more wait for up to ten seconds, at most four of one address; one more is answered with 429. One address
    /// never holds all places, and whoever was served least goes first. So guesses from everywhere leave the server free for readers. Requests with
    /// credentials that were right before are not counted. Calls of XML-RPC that take no password, such as pings, have one place of their own.
    ///
    /// Default: `2`.
    pub login_concurrency: Given<Count>,
}

/// `[log]`: the access log.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// Where the access log is written: `"stdout"`, `"off"`, or a file with its folder (`"/var/log/seawall/access.log"`, `"./access.log"`).
    ///
    /// Default: `"stdout"`. Flag: `--access-log`. Environment: `SEAWALL_ACCESS_LOG`.
    pub access: Given<AccessLog>,

    /// `"combined"`, the format of Apache and nginx that log readers know, or `"json"`, one object a line. [log.md](log.md) lists every
    /// field.
    ///
    /// Default: `"combined"`. Flag: `--log-format`. Environment: `SEAWALL_LOG_FORMAT`.
    pub format: Given<LogFormat>,
}

/// `[traces]`: spans for an OpenTelemetry collector.
///
/// Each request becomes a span, and each request to an origin one below it. [traces.md](traces.md) says what is in them. Spans are sent from a thread of
/// their own: a collector that is slow, or gone, delays nobody, and what it does not take is dropped and counted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Traces {
    /// The collector's address for OTLP over HTTP, such as `"http://127.0.0.1:4318"`, or `"off"`. `/v1/traces` is added if the address does not end so.
    /// Only protobuf is spoken, no gRPC.
    ///
    /// Default: none; then `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` (the whole address) or `OTEL_EXPORTER_OTLP_ENDPOINT` counts, unless
    /// `OTEL_SDK_DISABLED` is `true`. Without any of them, nothing is traced.
    pub endpoint: Given<Collector>,

    /// The share of requests that are traced, from `0` to `1`: `0.1` is a tenth. It decides where a trace begins here. A request that a trusted proxy has
    /// put into a trace (`traceparent`) is traced if the proxy traces it.
    ///
    /// Default: `1`.
    pub sample: Given<Share>,

    /// Whether plain hits are traced, too. They are nearly all requests, cost nobody's server anything, and each of their spans costs more than the hit.
    ///
    /// Default: `false`.
    pub hits: Given<bool>,

    /// The name under which the spans appear (`service.name`).
    ///
    /// Default: none; then it is the value of `OTEL_SERVICE_NAME`, or `seawall`.
    pub service_name: Given<String>,

    /// Fields for each request to the collector, such as `["Authorization: Bearer ..."]`; at most 32. Keep the file readable for its owner alone.
    ///
    /// Default: none; then they are the pairs `name=value` in `OTEL_EXPORTER_OTLP_TRACES_HEADERS` or `OTEL_EXPORTER_OTLP_HEADERS`, separated by commas.
    pub headers: Listed<CollectorField>,

    /// A PEM file with certificates to trust for an `https` collector, besides the system's.
    ///
    /// Default: none.
    pub ca_file: Given<String>,
}

/// `[cache]` and `[site.cache]`: what is stored, and for how long.
///
/// For a key that `[site.cache]` does not set, the value in `[cache]` counts. Its lists replace those of `[cache]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    /// Memory for stored responses, all sites together; 1MiB to 16TiB. Fields, bodies and compressed copies count; what nobody has read
    /// uncompressed for a minute or two counts with its compressed copies alone. Only in `[cache]`, as it belongs to the whole process.
    ///
    /// Default: `"256MiB"`. Flag: `--memory`. Environment: `SEAWALL_MEMORY`.
    pub memory: Given<ByteSize>,

    /// The folder for stored responses, so that they survive a restart. It must be empty, or already be a cache of Seawall. Two running
    /// Seawalls cannot share a folder: the second one keeps its pages in memory only, and says so. A relative folder is looked for beside
    /// the file. Only in `[cache]`, and only used if a source is a server, as folders are on a disk already, or if a blog shows pictures: what was
    /// made of those is kept in `pictures` in this folder.
    ///
    /// Default: none; then it is `seawall` in the XDG cache folder (`$XDG_CACHE_HOME`, or `~/.cache`), and for a user without a home
    /// nothing is kept on disk. Flag: `--cache-dir`. Environment: `SEAWALL_CACHE_DIR`.
    pub dir: Given<String>,

    /// Disk space for stored responses, all sites together; 16MiB to 16TiB, or `"0"` to keep them in memory alone. When this space is used
    /// up or the disk is full, the responses that are wanted least are removed. Worst case in memory: 27 MB for the list of at most 250000
    /// files, and 64 MiB for responses that wait to be written. What was made of the pictures of blogs may take as much again. Only in `[cache]`.
    ///
    /// Default: `"4GiB"`.
    pub disk: Given<ByteSize>,

    /// The largest single response that is stored; 1KiB up to half of `memory`. Larger ones are passed through.
    ///
    /// Default: `"16MiB"`, or half of `memory` where that is less.
    pub object_max: Given<ByteSize>,

    /// The largest single response that is stored on the disk, if there is a disk tier; up to 1TiB. With `"0B"`, only responses that fit
    /// into memory are stored there. A response that is larger than `object_max` (a video, a download) goes to the disk and not into
    /// memory; while it arrives, each reader reads it from there at their own pace. A response that is larger than this limit is passed
    /// through.
    ///
    /// Default: `"1GiB"`; for a blog or a folder, whose files are on a disk already, `"0B"`. At worst, a response that is on its way to a
    /// client takes 128KiB of memory, and one that arrives 1MiB.
    pub disk_object_max: Given<ByteSize>,

    /// How long stored responses are kept fresh, whatever lifetime the origin gave; 1ms to 365d. Browsers are still told the origin's own
    /// lifetime. Responses that the origin forbids to store are still not stored. For requests with cookies, the origin's own lifetime
    /// counts. A purge ends this time early, and so does a change in a folder.
    ///
    /// Default: none; the response's own lifetime counts. What is in a folder is fresh until that changes. Flag: `--hold`. Environment: `SEAWALL_HOLD`.
    pub hold: Given<Period>,

    /// How long a stale response may be served while the origin fails (RFC 5861 §4), if the response does not say so itself; up to 365d.
    /// `"0s"`: never.
    ///
    /// Default: 7 days: a cache that cannot reach its origin may go on with what it has (RFC 9111 §4.2.4), unless the response forbids it.
    pub stale_if_error: Given<Period>,

    /// How long a stale response may be served while a fresh one is fetched (RFC 5861 §3), if the response does not say so itself; up to
    /// 365d. `"0s"`: never.
    ///
    /// Default: none; only what the response says.
    pub stale_while_revalidate: Given<Period>,

    /// Cookies that do not change the page, besides those of well-known analytics tools; `"_ga*"` stands for all names that begin so.
    /// A request with no others is anybody's, and goes to the origin without them. Any other cookie may make a page personal: the answer is
    /// stored only if the origin itself gives it a lifetime. That holds for the cookie of a consent banner, too (`CookieConsent`,
    /// `OptanonConsent`, `cookieyes-consent`, ...): if the banner does its work in the browser, as most do, name it here. Name a login
    /// cookie here, and one reader sees another's page.
    ///
    /// Default: `[]`.
    pub ignore_cookies: Listed<CookiePattern>,

    /// Query parameters that do not change the page, besides the well-known ones of trackers (`utm_*`, `fbclid`, ...). They are removed
    /// from the cache key and from the request to the origin. `"*"` stands for all but those in `keep_query`.
    ///
    /// Default: `[]`.
    pub ignore_query: Listed<NamePattern>,

    /// Query parameters that change the page, although `ignore_query` or the list of trackers names them.
    ///
    /// Default: `[]`.
    pub keep_query: Listed<NamePattern>,

    /// Whether Seawall obeys `Cache-Control: no-cache`, `max-age=0` and similar directives of clients (RFC 9111 §5.2.1). With `false`,
    /// clients cannot get past the cache.
    ///
    /// Default: `true`; for a folder `false`, as there is nobody to ask.
    pub honour_request_directives: Given<bool>,

    /// Whether responses with `Set-Cookie` are stored, as RFC 9111 §7.3 allows. **Dangerous**: the cookie that one visitor was given is then
    /// given to everybody, and if it is a session, everybody is that visitor. Worst case: a stranger is logged in as the owner of the site.
    /// Only for origins whose every cookie is the same for all; `ignore_cookies` is what most sites need instead. An origin can also say
    /// itself that only the cookie is personal: `Cache-Control: private="set-cookie"`, which is obeyed in either case.
    ///
    /// Default: `false`.
    pub store_set_cookie: Given<bool>,

    /// Cookies that readers of pages do not need although the site sets them, such as a PHP session that a plugin begins for everybody:
    /// `["PHPSESSID"]`; `"sess_*"` stands for all names that begin so. A response that sets a cookie is not stored. Where these are the only
    /// cookies that it sets, and nothing else forbids to store it, Seawall takes them off, and stores it. What PHP says by itself when a script begins
    /// a session (`Cache-Control: no-store, no-cache, must-revalidate` with an `Expires` in 1981) then does not forbid it. Nothing is taken off
    /// a response that is not stored, or to a request that passes (a POST, the sign-in page). A request that carries one of these cookies is its
    /// reader's alone, as before. `seawall explain`, the access log and the metrics name the cookie that keeps pages from being stored. Before you
    /// name it here: a form that is checked by the session fails on a page that is stored.
    ///
    /// Default: `[]`.
    pub drop_set_cookies: Listed<DroppedCookie>,

    /// Whether a page (HTML, up to 2 MiB) is fetched a second time, without any cookie, before it is stored for the first time. If the two differ,
    /// the page is not stored: it may be made for one visitor. `seawall explain` shows what differs. It is tried again after ten minutes. A page that only
    /// differed the first time is stored: a Ghost that has just started makes some pages so. A redirect, an error such as 403 or 404, or another
    /// content type at the second time is a difference, too. If the origin fails at the second time (a status of 500 or above, or no answer within
    /// 5 seconds), the page is stored. Readers who ask meanwhile wait for the second response: for a second, or four times as long as the page
    /// took, if that is longer. Then a few at a time ask the origin themselves. If there is no time for a second response, because many new pages
    /// are asked for at once or the origin is busy, the page is not stored, and it is tried again after two seconds. A page of more than 2 MiB is
    /// not stored. One in 64 later storings of a page is checked as well.
    ///
    /// Default: `false`; for a Ghost `true`.
    pub two_visitor_proof: Given<bool>,

    /// Whether Seawall sends early hints (103, RFC 8297): while a browser waits for the origin, it is told which style sheets, fonts,
    /// blocking scripts and hosts the page needed last time, and can fetch them meanwhile. Browsers that open a page over HTTP/2 or 3 get
    /// them, and only when the origin is asked. Hints are forgotten when their page is purged, and after a day at the latest. Until then, a
    /// style sheet that got another name without a purge costs the next visitor a useless download. What browsers may not keep (`no-store`)
    /// is fetched twice. If an origin sends hints itself, Seawall sends none.
    ///
    /// Default: `true`; for a folder or a blog `false`, as nobody waits for those.
    pub early_hints: Given<bool>,

    /// Whether Seawall sends early hints over HTTP/1.1 as well. Other software on the way, such as a proxy in front of Seawall, may take
    /// the hints for the response. Try it first.
    ///
    /// Default: `false`.
    pub early_hints_http1: Given<bool>,
}

/// `[origin]` and `[site.origin]`: how the server behind the cache is treated.
///
/// For a key that `[site.origin]` does not set, the value in `[origin]` counts. Only for sources that are servers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Origin {
    /// The number of requests that an origin gets at the same time, per site; 1 to 65535. A small server is faster with few. The machines of a
    /// [cluster](cluster.md#limits) share them by need.
    ///
    /// Default: `256`.
    pub concurrency: Given<Count>,

    /// The number of further requests that may wait for their turn, per site; 0 to 1000000. One more gets a stale copy, or 503. Worst case
    /// in memory: this times `header_bytes` (32 MiB with the defaults).
    ///
    /// Default: `1024`.
    pub queue: Given<Count>,

    /// How long a request may wait for its turn; 1ms to 1h. Then it gets a stale copy, or 503.
    ///
    /// Default: `"10s"`.
    pub queue_timeout: Given<Period>,

    /// How long a request waits for the response to another request for the same page; 1ms to 1h. Then its reader gets a stale copy, if one may
    /// stand in for the origin, and the other request goes on. Without a stale copy the request goes to the origin itself, unless it says
    /// exactly what the other one said: a slow answer to one client's fields must not hold up everybody.
    ///
    /// Default: `"5s"`.
    pub collapse_wait: Given<Period>,

    /// How long it may take to open a connection, TLS included; 1ms to 1h. Then the next address is tried.
    ///
    /// Default: `"5s"`.
    pub connect_timeout: Given<Period>,

    /// How long the origin may take until its response begins; 1ms to 1h. Then the client gets a stale copy, or 504.
    ///
    /// Default: `"60s"`.
    pub first_byte_timeout: Given<Period>,

    /// The longest pause within a response; 1ms to 1h. Then the response ends there, and is not stored.
    ///
    /// Default: `"60s"`.
    pub between_bytes_timeout: Given<Period>,

    /// The `Host` in requests to the origin: `"client"` (the one that the client asked for), `"origin"` (the name in the origin's address),
    /// or a name that you choose. Origins put it into links and redirects.
    ///
    /// Default: `"client"`.
    pub host: Given<OriginHost>,

    /// A file of certificates (PEM) that are trusted in addition to the system's, for an `https` origin with a certificate from an
    /// authority of your own.
    ///
    /// Default: none.
    pub ca_file: Given<String>,

    /// More addresses of the same origin, tried when `source` cannot be reached; at most 16. `source` itself may be repeated. In `[origin]`
    /// only together with the short form; they belong to the `source` in the file, and a SOURCE from the command line or the environment
    /// replaces both.
    ///
    /// Default: `[]`.
    pub addresses: Listed<OriginAddress>,
}

/// `[blog]` and `[site.blog]`: for a folder of Markdown.
///
/// Keys that are set here override the `blog.toml` in the folder.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Blog {
    /// The name of the blog, for pages and feeds.
    ///
    /// Default: none; from the folder's `blog.toml`, or the folder's name.
    pub title: Given<String>,

    /// The public address, such as `"https://blog.example.org"`: feeds and the sitemap need whole addresses.
    ///
    /// Default: none; from the folder's `blog.toml`, or the host that the client asked for.
    pub base_url: Given<BaseUrl>,

    /// Whether drafts and posts whose time has not come are published with the others, marked as what they are: for a blog that only you see.
    ///
    /// Default: `false`, or as the folder's `blog.toml` says. Flag: `--drafts`. Environment: `SEAWALL_DRAFTS`.
    pub drafts: Given<bool>,
}

/// `[ghost]` and `[site.ghost]`: for a server that is a Ghost.
///
/// Nothing here must be set. [ghost.md](ghost.md) says what Seawall does for a Ghost. For a key that `[site.ghost]` does not set, the value in
/// `[ghost]` counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ghost {
    /// The path at which the blog is, if its address has one: `"/blog"` for `https://example.org/blog/`.
    ///
    /// Default: none; Seawall asks the Ghost.
    pub path: Given<RoutePath>,

    /// The server for Ghost's social web (ActivityPub), that is for `/.ghost/activitypub`, `/.well-known/webfinger` and
    /// `/.well-known/nodeinfo`: its address, or `"off"` if the Ghost itself answers there.
    ///
    /// Default: `"https://ap.ghost.org"`.
    pub activitypub: Given<CompanionServer>,

    /// The server for Ghost's own visitor statistics, that is for `/.ghost/analytics`: its address, or `"off"` if the Ghost itself answers
    /// there. It is asked for what follows that path.
    ///
    /// Default: `"off"`.
    pub analytics: Given<CompanionServer>,

    /// The secret of the webhooks that this Ghost sends to `/.seawall/ghost`. With a secret, only webhooks with its signature count; without one,
    /// those from addresses that may purge.
    ///
    /// Default: none. Environment, for a site without `[[site]]`: `SEAWALL_GHOST_WEBHOOK_SECRET`.
    pub webhook_secret: Given<SecretText>,

    /// Ghost's own `cacheMembersContent.hmacSecret`. With it, pages for members are stored too, apart for each tier. It needs
    /// `cacheMembersContent.enabled` in the Ghost's configuration.
    ///
    /// Default: none; requests of members go to the Ghost. Environment, for a site without `[[site]]`: `SEAWALL_GHOST_MEMBER_SECRET`.
    pub member_secret: Given<MemberSecret>,
}

/// `[wordpress]` and `[site.wordpress]`: for a WordPress.
///
/// Nothing here must be set. For a key that `[site.wordpress]` does not set, the value in `[wordpress]` counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WordPress {
    /// The path at which the site is, if its address has one: `"/blog"` for `https://example.org/blog/`. What WordPress says of itself takes
    /// precedence.
    ///
    /// Default: none; the path in `source`, or the one that WordPress says.
    pub path: Given<RoutePath>,

    /// The secret with which the plugin signs what it says. Set the same one in the plugin. Without a secret, the addresses in
    /// `[purge] allow` are believed.
    ///
    /// Default: none. For a WordPress in a folder, Seawall makes a secret, keeps it in the folder of the cache, and tells it PHP. Environment, for a
    /// site without `[[site]]`: `SEAWALL_WORDPRESS_SECRET`.
    pub secret: Given<SecretText>,

    /// The time between two runs of WordPress's own schedule (`wp-cron.php`), 10s to 24h; or `"off"`. Seawall starts these runs, and answers
    /// readers' requests for `wp-cron.php` itself. It looks at what WordPress has published after each run. With `"off"`, readers start the
    /// schedule, as without Seawall.
    ///
    /// Default: `"60s"`.
    pub cron: Given<CronPeriod>,
}

/// `[php]` and `[site.php]`: for a folder with an application in PHP.
///
/// Nothing here must be set. `[origin]` says how long php-fpm is waited for, and how many requests it gets at once. For a key that `[site.php]` does
/// not set, the value in `[php]` counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Php {
    /// Where php-fpm listens, which runs the scripts: its socket (`"unix:/run/php/php8.2-fpm.sock"`), or its host and port (`"127.0.0.1:9000"`). It
    /// need not be there when Seawall starts.
    ///
    /// Default: where distributions put its socket. Flag: `--php`. Environment: `SEAWALL_PHP`.
    pub server: Given<PhpServer>,

    /// The path of the folder as php-fpm sees it, if that is another one: in a container, `"/var/www/html"` say.
    ///
    /// Default: the path of the folder.
    pub document_root: Given<String>,

    /// Folders below which no script is run, because visitors leave files there. Each is a name or several, one below the other, and counts wherever
    /// it stands in a path.
    ///
    /// Default: `["wp-content/uploads", "wp-content/blogs.dir"]`.
    pub never_run: Listed<String>,

    /// The symbolic links that are followed: `"beneath"` for those that lead to something in the folder, `"owner"` for all whose owner is also the
    /// owner of what they lead to. Debian's package of WordPress needs `"owner"`.
    ///
    /// Default: `"beneath"`.
    pub links: Given<LinksWord>,

    /// Folders whose files a script may have sent, with `X-Sendfile`, or with `X-Accel-Redirect` if a prefix is written before the folder:
    /// `["/private=/srv/private"]`.
    ///
    /// Default: `[]`; such a field is answered with 404.
    pub send_files: Listed<SendFiles>,

    /// The folder for uploads longer than 64 KiB, and for what clients that read slowly have not yet taken of responses longer than 256 KiB, so that
    /// neither holds a child of php-fpm. Its files have no names, and none stays behind.
    ///
    /// Default: the folder that `TMPDIR` names, else `/var/tmp`.
    pub temporary_folder: Given<String>,
}

/// `[static]` and `[site.static]`: for a folder of finished files.
///
/// [static.md](static.md) says what such a folder can contain: `_redirects`, `_headers` and its own error pages. For a key that
/// `[site.static]` does not set, the value in `[static]` counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Static {
    /// Whether a folder without an `index.html` is answered with a list of its files, with sizes and dates. Files whose names begin with a
    /// dot are never shown.
    ///
    /// Default: `false`; such a folder is answered with 404.
    pub listing: Given<bool>,

    /// The file that answers, with 200, for paths without a file. For sites with routing in the browser; usually `"index.html"`. A path
    /// that ends like a file's name (`/app.js`) is still answered with 404.
    ///
    /// Default: none; what is not there is answered with 404.
    pub fallback: Given<String>,
}

/// `[https]` and `[site.https]`: sending visitors to https.
///
/// For a key that `[site.https]` does not set, the value in `[https]` counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Https {
    /// Whether visitors who come over plain http are sent to https: GET and HEAD with 301, everything else with 308. If another server in
    /// front ends TLS, such as the router of a platform, it must be in `trusted_proxies` and say `X-Forwarded-Proto: http`. A request
    /// without that field is served as it came, so that there is never a loop. `/.well-known/acme-challenge/` is never redirected.
    ///
    /// Default: `false`; with `--domain`, `true` for each name as soon as there is a certificate for it. Flag: `--https-redirect`, for all
    /// sites. Environment: `SEAWALL_HTTPS_REDIRECT`.
    pub redirect: Given<bool>,

    /// How long browsers use only https for this site (`Strict-Transport-Security`, RFC 6797); up to 730d. The field is sent over https, if
    /// the origin does not send it itself. Begin with `"1d"`: a browser that has seen it cannot go back to http before that time is over.
    /// `"0s"` tells browsers to forget it.
    ///
    /// Default: none; the field is not sent.
    pub hsts: Given<Period>,

    /// Whether `hsts` is also for all names below this one (`includeSubDomains`).
    ///
    /// Default: `false`.
    pub hsts_subdomains: Given<bool>,

    /// Whether browser makers may put this site into the list that browsers come with (`preload`). They require `hsts` of at least `"365d"`
    /// and `hsts_subdomains`. Leaving the list takes months.
    ///
    /// Default: `false`.
    pub hsts_preload: Given<bool>,
}

/// `[headers]` and `[site.headers]`: fields to add to the origin's responses, and to remove from them.
///
/// For a key that `[site.headers]` does not set, the value in `[headers]` counts. Its lists replace those of `[headers]`. A change counts
/// for the next response: it purges what is stored for the site.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Headers {
    /// Whether responses get the usual security fields: `X-Content-Type-Options: nosniff`, and, on documents (HTML, SVG, XML) only,
    /// `Referrer-Policy: strict-origin-when-cross-origin` and `X-Frame-Options: SAMEORIGIN`. A field that the origin sends is never
    /// overridden.
    ///
    /// Default: none; then a blog gets all three, a folder the first two (its pages may be meant for frames elsewhere), and a server none:
    /// only its author knows what it needs.
    pub security: Given<bool>,

    /// Fields to add if the origin does not send them, such as `"Permissions-Policy: camera=()"`; at most 32. Fields that control caching
    /// (`Cache-Control`, `ETag`, `Vary`, ...) cannot be set here; the origin or `[cache]` does that.
    ///
    /// Default: `[]`.
    pub set: Listed<FieldLine>,

    /// Fields to remove from the origin's responses, such as `"X-Powered-By"`; at most 32. A field that is in `set` too is replaced.
    ///
    /// Default: `[]`.
    pub remove: Listed<FieldName>,
}

/// `[auth]` and `[site.auth]`: a password for a site, or for parts of it (HTTP Basic, RFC 7617).
///
/// Protected pages are cached, and served to everybody who has a password; for browsers and other caches they are marked `private`. After
/// ten wrong passwords, an address must wait six seconds for each further attempt. Without https, others can read the password on its way:
/// set `redirect` in `[https]` too. For a key that `[site.auth]` does not set, the value in `[auth]` counts; `paths = []` opens the site.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// The file of users, as `htpasswd -B` writes it: bcrypt (up to cost 14), `$apr1$` and `{SHA}`; at most 1 MiB. A relative path begins
    /// at the folder of this file. Seawall checks it once a second, so a change counts at once. While it is missing, nobody gets in.
    ///
    /// Default: none; nobody is asked for a password.
    pub file: Given<String>,

    /// The paths that need a password, each with everything below it. `"/drafts"` covers `/drafts.html` too. A path is covered in every
    /// spelling: upper case, `//`, `;x`, `%64`, `%2e%2e/`. It is also covered behind a script, which takes it for its own path:
    /// `/index.php/drafts` (`.php`, `.cgi`, `.pl`, `.py`, `.rb`, `.aspx`, `.jsp`, `.cfm` and the like). Where only a part of the site needs a
    /// password, a path with a broken escape (`%u0064`, `%zz`) is refused with 400. Pages that differ only in the query (`/?p=12`) cannot
    /// be told apart.
    ///
    /// Default: none; then `["/"]`, the whole site.
    pub paths: Listed<ProtectedPath>,

    /// The name that browsers may show when they ask for the password.
    ///
    /// Default: none; then `"Protected"`.
    pub realm: Given<Realm>,

    /// Whether the password (`Authorization`) is sent to the origin. Its responses are then stored only if it explicitly allows that.
    ///
    /// Default: `false`.
    pub forward: Given<bool>,
}

/// `[compress]` and `[site.compress]`: gzip, Brotli and Zstandard.
///
/// Stored responses are compressed once, by threads that no reader waits for. Each reader gets the smallest form that exists and that their
/// browser accepts. The origin is asked for the uncompressed page. For a key that `[site.compress]` does not set, the value in `[compress]`
/// counts. Its lists replace those of `[compress]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compress {
    /// Whether Seawall compresses. With `false`, the origin is asked for the forms that browsers accept, and each form is stored
    /// separately.
    ///
    /// Default: `true`.
    pub enabled: Given<bool>,

    /// Media types to compress; at most 64. `"text/*"` stands for all that begin so, `"*+json"` for all that end so. Event streams are
    /// never compressed, and neither are responses that the origin has compressed itself or marked `no-transform`.
    ///
    /// Default: none; then it is `text/*`, JSON, XML, SVG, scripts, WebAssembly, and the types of fonts and pictures that are not
    /// compressed already.
    pub types: Listed<TypePattern>,

    /// The size from which content is compressed; up to 8MiB. Stored content of more than 8 MiB is not compressed.
    ///
    /// Default: `"512B"`.
    pub min_size: Given<ByteSize>,

    /// Paths that Seawall does not compress, such as `"/account/*"`; at most 64. The origin may compress them.
    ///
    /// Default: `[]`.
    pub exclude: Listed<PathPattern>,

    /// Whether responses that are not shared are compressed. If a page contains a secret and something that a stranger can choose (a search
    /// term), the length of the compressed page reveals the secret (BREACH). `"safe"`: compressed if the request has neither cookies nor
    /// credentials, or if it is for styles, scripts, fonts or pictures. `"all"`: whenever it is not compressed yet. `"off"`: as the origin
    /// sends them.
    ///
    /// Default: `"safe"`.
    pub passed: Given<PassedWord>,

    /// Whether a page is used as the dictionary of its next version (RFC 9842): a browser that has the old version gets little more than
    /// what has changed, as `dcz`. For browsers that support it, over https. Worst case in memory: 32 MiB for the last versions, most of
    /// which are stored anyway, and 8 MiB for the changes.
    ///
    /// Default: `false`.
    pub dictionaries: Given<bool>,
}

/// `[purge]`: purge requests on the sites' own addresses.
///
/// Plugins that purge Varnish (`PURGE`, `BAN`, xkey), nginx (nginx-helper), Fastly or Souin work without a change: point them at this
/// server. A client that may not purge gets 403, and the origin is not asked. The admin API and `seawall purge` do not depend on this
/// section.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Purge {
    /// Networks whose purge requests are obeyed, such as `"192.0.2.7/32"` for the web server. Everybody else needs the admin token
    /// (`Authorization: Bearer`, `X-Purge-Token` or `Fastly-Key`); with `[]`, everybody needs it. Behind a proxy in `trusted_proxies`, the
    /// client that the proxy names counts. A request through any other proxy needs the token. A proxy on this machine that sends neither
    /// `X-Forwarded-For` nor `Forwarded` makes its visitors look like this machine: write `[]` then. A Unix socket has no address: a
    /// request through it needs a client that a proxy names, or the token.
    ///
    /// Default: `["127.0.0.0/8", "::1/128"]`.
    pub allow: Listed<PurgeSource>,

    /// The path below which a GET purges, for nginx-helper and other plugins for `ngx_cache_purge`. With `"/purge"`, a GET of
    /// `/purge/hello/` purges `/hello/`. No page of the site can have such a path.
    ///
    /// Default: none; then such a path is a page like any other.
    pub path: Given<PurgePath>,
}

/// `[refill]`: fetching pages again after a soft purge.
///
/// A soft purge marks pages stale. A second later, Seawall begins to fetch the pages again that are read most. Meanwhile, readers still get
/// the old ones.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Refill {
    /// The number of such fetches at the same time, per site; 0 to 64, and never more than a quarter of the site's `concurrency` (but at
    /// least one). They wait while readers wait for the origin, and while it is down or slower than usual. `0` turns refilling off.
    ///
    /// Default: `2`.
    pub concurrency: Given<Count>,
}

/// `[alerts]`: what you are told without asking.
///
/// Seawall watches the servers behind your sites, hit ratios, certificates, disks, and errors. What is wrong stands in `seawall status`, in
/// `seawall alerts` and in the dashboard. With `webhook` or `command` you are told when it begins and when it is over; `seawall alerts test` tries
/// that. [alerts.md](alerts.md) says what each alert means, and shows this for Slack, ntfy and others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Alerts {
    /// The address to which an alert is sent when it begins and when it ends: `POST`, with JSON. Its `text` is what Slack, Mattermost and others
    /// show. Redirects are not followed. If there is no answer in 10 seconds, or one with a status of 408, 429 or 500 and above, Seawall tries again:
    /// five times in half an hour. At most 64 messages wait to be sent; further ones are lost, and counted. The address may be a secret: only its host is
    /// shown.
    ///
    /// Default: none.
    pub webhook: Given<WebhookUrl>,

    /// Another address for the end of an alert, such as that of a check at healthchecks.io, which has one for "failed" and one for "well".
    ///
    /// Default: none; then it is sent to `webhook` as well.
    pub webhook_resolved: Given<WebhookUrl>,

    /// A secret by which the receiver knows that Seawall sent it. The field `Seawall-Signature: t=SECONDS, sha256=HEX` then has the HMAC (SHA-256) of
    /// the seconds, a dot and the content.
    ///
    /// Default: none; the field is not sent.
    pub webhook_secret: Given<SecretText>,

    /// Fields of the request, such as `"Authorization: Bearer tk_1234"`; at most 16.
    ///
    /// Default: `[]`.
    pub webhook_fields: Listed<WebhookField>,

    /// A program that is run when an alert begins and when it ends, and its arguments: `["/usr/local/bin/notify", "--loud"]`. It gets the same JSON
    /// on its standard input. It is run without a shell, as Seawall's user, and once: a program that fails is not run again. A relative path begins at
    /// the folder of this file.
    ///
    /// Default: none.
    pub command: Listed<String>,

    /// How long the program may take; 1s to 10m. Then it is killed.
    ///
    /// Default: `"30s"`.
    pub command_timeout: Given<Period>,

    /// The name of this server in what is sent.
    ///
    /// Default: none; then the machine's own name.
    pub server: Given<String>,

    /// Alerts that you do not want: `"origin-down"`, `"hit-ratio"`, `"certificate"`, `"disk"`, `"server-errors"`.
    ///
    /// Default: `[]`.
    pub off: Listed<AlertWord>,

    /// How long something must be wrong, without a break, before the alert begins; up to 1d.
    ///
    /// Default: `"1m"`.
    pub after: Given<Period>,

    /// How long it must be right, without a break, before the alert ends; up to 7d. Something that comes and goes is one alert, and not many.
    ///
    /// Default: `"5m"`.
    pub clear_after: Given<Period>,

    /// The share of a site's responses in five minutes that may be server errors (a status of 500 and above), in per cent; 1 to 100. Fewer than ten
    /// errors are not an alert.
    ///
    /// Default: `5`.
    pub server_errors: Given<Count>,

    /// How far a site's hit ratio of the last hour may be below that of the same hour a week ago, in percentage points; 1 to 100. There must be 200
    /// requests in each hour, so that chance plays no part, and Seawall must have seen that week.
    ///
    /// Default: `20`.
    pub hit_ratio_fall: Given<Count>,

    /// The time before a certificate's end from which it is an alert; 1d to 90d. For a certificate that Seawall renews by itself, that is only so if
    /// the renewal fails, or on its last day.
    ///
    /// Default: `"7d"`.
    pub certificate_left: Given<Period>,

    /// The space that should be free on the disks of `dir` in `[cache]` and of the access log; up to 16TiB.
    ///
    /// Default: `"1GiB"`.
    pub disk_free: Given<ByteSize>,
}

/// `[cluster]`: several Seawalls that act as one.
///
/// The machines talk to each other by way of a Valkey or a Redis (6.2 or newer). A purge through one of them holds on all of them when it is acknowledged.
/// Without the server, each machine serves on, and validates what it has stored before it shows it. [cluster.md](cluster.md) says how to set it up, and what
/// is promised when. Every machine has the same section; only `machine` differs. A change here needs a restart.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// The address of the server: `"redis://host:6379"`; with TLS, `"rediss://user:password@host:6379/0"`; found by Sentinels,
    /// `"redis+sentinel://host:26379,host:26379/NAME"`; a cluster of servers, `"redis+cluster://host:6379,host:6379"`. A list of plain addresses means a
    /// primary and its replicas: the one that is the primary is used. Keep the file readable for its owner alone if there is a password in it.
    ///
    /// Default: none; then this machine stands alone. Environment: `SEAWALL_CLUSTER_URL`; several addresses are separated by blanks.
    pub url: Option<Spanned<ClusterUrls>>,

    /// The name of the cluster. All its keys on the server begin with it, so several clusters can share a server.
    ///
    /// Default: `"seawall"`. Environment: `SEAWALL_CLUSTER_NAME`.
    pub name: Given<ClusterName>,

    /// The name of this machine; no other machine of the cluster may have it.
    ///
    /// Default: none; then it is the host name. Environment: `SEAWALL_CLUSTER_MACHINE`.
    pub machine: Given<ClusterName>,

    /// The secret of the cluster, the same on every machine; at least 16 characters. It seals what the machines tell each other, and encrypts keys of
    /// certificates. `openssl rand -hex 32` makes one. Either this or `secret_file` is required.
    ///
    /// Default: none. Environment: `SEAWALL_CLUSTER_SECRET`.
    pub secret: Given<SecretText>,

    /// A file with the secret, in place of `secret`.
    ///
    /// Default: none. Environment: `SEAWALL_CLUSTER_SECRET_FILE`.
    pub secret_file: Given<String>,

    /// How long a machine may show what it has stored without a word from the server; 500ms to 30s. A purge waits for so long, and a little, for a machine
    /// that does not answer. So a short time makes purges quick when a machine has died, and a long one bridges a server that restarts. Every machine must
    /// have the same: where they differ, the shortest one that is known counts.
    ///
    /// Default: `"2s"`.
    pub lease: Given<Period>,

    /// How long a page stays fresh that the origin has confirmed while the machine is in doubt, which is when it has no lease; up to 30s. It is what the
    /// origin gets to do while the server is gone: each page that is asked for is validated once in this time. While the origin answers, nobody sees a page
    /// that was purged longer than `lease` and this time ago.
    ///
    /// Default: `"5s"`.
    pub doubt_hold: Given<Period>,

    /// The number of replicas that must have a purge before it is acknowledged; up to 16. Without replicas, or with `0`, a server that fails over may lose a
    /// purge a moment after it was acknowledged; every machine then validates what it has stored, as soon as it sees the other server.
    ///
    /// Default: `0`.
    pub replicas: Given<Count>,

    /// A tier of stored pages that the machines share, behind their memory and their disks: `"none"`; `"valkey"`, in the server itself, for pages of up to
    /// 1 MiB; or `"s3://BUCKET/PREFIX"`, in a bucket of Amazon S3 or of a storage that speaks like it (MinIO, SeaweedFS, Garage, R2), for pages of up to
    /// 4 MiB. With it, a page is fetched from the origin once for all machines, and a new machine begins with the pages of the others.
    /// [cluster.md](cluster.md#the-shared-tier) says what a bucket needs, and what it costs.
    ///
    /// Default: `"none"`.
    pub tier: Given<TierWord>,

    /// The memory of the server that the shared tier may take; 1MiB to 16TiB. Beyond it, the pages that expire soonest are removed. If the pages lie in a
    /// bucket, the server has some 320 bytes for each of them, so that the default is enough for 800,000 pages.
    ///
    /// Default: `"256MiB"`.
    pub tier_memory: Given<ByteSize>,

    /// The address of the storage that has the bucket, such as `"http://10.0.0.9:9000"`: scheme, host and port.
    ///
    /// Default: none; then `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` counts, or else it is Amazon S3 in `tier_region`.
    pub tier_endpoint: Given<StorageAddress>,

    /// The region of the bucket.
    ///
    /// Default: none; then `AWS_REGION` or `AWS_DEFAULT_REGION` counts, or else it is `us-east-1`.
    pub tier_region: Given<StorageWord>,

    /// The name of the access key for the bucket. It must be allowed to read, write and delete objects below the prefix.
    ///
    /// Default: none; then `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` count.
    pub tier_key_id: Given<StorageWord>,

    /// The secret of the access key. Either this or `tier_secret_key_file` is required with `tier_key_id`.
    ///
    /// Default: none.
    pub tier_secret_key: Given<SecretText>,

    /// A file with the secret of the access key, in place of `tier_secret_key`. A relative path begins beside the file.
    ///
    /// Default: none.
    pub tier_secret_key_file: Given<String>,

    /// A PEM file with certificates to trust for a storage that is reached over TLS, in place of the system's. A relative path begins beside the file.
    ///
    /// Default: none.
    pub tier_ca_file: Given<String>,

    /// A PEM file with certificates to trust for a server that is reached over TLS, in place of the system's. A relative path begins beside the file.
    ///
    /// Default: none.
    pub ca_file: Given<String>,
}

/// `[[route]]` and `[[site.route]]`: a part of a site for which another server answers.
///
/// Repeat it for each part: `[[route]]` with the short form, `[[site.route]]` with a `[[site]]`. If several paths cover a request, the
/// longest one counts. The pages of a part are cached, purged and protected as the site's other pages are. Its server's own settings, such
/// as a lifetime, count as for any server, even if the site itself is a folder. `[route.origin]` and `[site.route.origin]` have the keys of
/// `[origin]`; a key that is not set there comes from `[origin]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Route {
    /// The path, with everything below it: `"/api"` covers `/api` and `/api/x`, and not `/apis`. It is compared with the path in normal form,
    /// so that `/%61pi/x` is the same as `/api/x`.
    ///
    /// Default: none; required. Flag: `--route`, repeatable, as `/api=http://127.0.0.1:3000`. Environment: `SEAWALL_ROUTE`, separated by commas.
    pub path: Given<RoutePath>,

    /// The address of the server. It takes the same addresses as `source` at the top.
    ///
    /// Default: none; required.
    pub source: Given<OriginAddress>,

    /// Whether Seawall removes `path` from the request to the server: it then asks for `/x` instead of `/api/x`. `X-Forwarded-Prefix` tells
    /// the server. Its links and redirects are passed on unchanged.
    ///
    /// Default: `false`.
    pub strip_prefix: Given<bool>,

    /// Whether the cache is asked. `false`: each request goes to the server as it came, and nothing is stored.
    ///
    /// Default: `true`.
    pub cache: Given<bool>,

    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub origin: Origin,
}

/// `[[site]]`: one of several sites.
///
/// Repeat it for each site. It cannot be combined with `source` at the top. A request for a host that no site has is answered with 421.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Site {
    /// The host names of the site. `"*.example.org"` stands for every name below example.org, but not example.org itself; an exact name
    /// takes precedence.
    ///
    /// Default: none; a single `[[site]]` may leave it out, and answers for every host. Without any `[[site]]`, the site's names are given by the flag
    /// `--domain`, repeatable. Environment: `SEAWALL_DOMAIN`, separated by commas.
    pub hosts: Listed<HostPattern>,

    /// The source of this site. It takes the same values as `source` at the top.
    ///
    /// Default: none; required.
    pub source: Given<String>,

    /// The kind of this site's source. It takes the same values as `kind` at the top.
    ///
    /// Default: none; it follows from the source.
    pub kind: Given<KindWord>,

    /// Names whose visitors are sent to the first of `hosts` that is not a pattern. See `redirect_from` at the top.
    ///
    /// Default: `[]`.
    pub redirect_from: Listed<HostPattern>,

    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub route: Vec<Spanned<Route>>,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub tls: Tls,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub cache: Cache,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub origin: Origin,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub blog: Blog,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub ghost: Ghost,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub wordpress: WordPress,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub php: Php,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub r#static: Static,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub https: Https,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub headers: Headers,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub auth: Auth,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub compress: Compress,
}
