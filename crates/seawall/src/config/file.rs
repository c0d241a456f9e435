//! `seawall.toml` as it is typed: every key optional, nothing decided yet, each value with its place in the text.
//!
//! The comments here *are* the manual: `doc/configuration.md` is made of them (see the test in `manual.rs`). So each key says its
//! purpose, its unit, its default in the very form in which it is written, and, where it bounds memory, the worst case.

use serde::Deserialize;
use toml::Spanned;

use super::{
    addresses::{AdminAddress, TrustedProxy},
    auth::{ProtectedPath, Realm},
    compress::{PassedWord, PathPattern, TypePattern},
    headers::{FieldLine, FieldName},
    purge::{PurgePath, PurgeSource},
    routes::RoutePath,
    settings::{AccessLog, Kind, Listen, LogFormat, OriginAddress, OriginHost},
    units::{ByteSize, Count, Period},
    words::{BaseUrl, CookiePattern, HostPattern, NamePattern},
};

/// A value, and where it stands.
pub type Given<T> = Option<Spanned<T>>;

/// A list, where it stands, and where each of its values does.
pub type Listed<T> = Option<Spanned<Vec<Spanned<T>>>>;

/// The top of the file.
///
/// One site needs no `[[site]]`: `source` names what is served, for every host name. Keys without a section stand at the top of the
/// file, before the first section.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// What is served: a server (`"http://127.0.0.1:2368"`, `"https://..."`, `"unix:/run/ghost.sock"`), a folder of finished files (it
    /// has an `index.html`), or a folder of Markdown. A relative folder is looked for beside the file. The short form for one site; it
    /// excludes `[[site]]`. A SOURCE from the command line or the environment replaces it, and `kind` and `[origin] addresses` with it.
    ///
    /// Default: none; without it there must be a `[[site]]` or a SOURCE on the command line. Environment: `SEAWALL_SOURCE`.
    pub source: Given<String>,

    /// What the source is: `"generic"` (any server; what its responses say decides, RFC 9111), `"blog"` (a folder of Markdown),
    /// `"static"` (a folder of finished files). `"ghost"` and `"wordpress"` come in a later version; until then such a server is
    /// `"generic"`.
    ///
    /// Default: none; it follows from the source. Flag: `--kind`. Environment: `SEAWALL_KIND`.
    pub kind: Given<Kind>,

    /// Names whose visitors are sent to the name of the site, such as `["www.example.org"]`: with 301 (308 for what is not GET or HEAD), path and
    /// query kept. They get certificates as the site's own name does. Needs a name to send them to: `--domain`, or `hosts` of a `[[site]]`, which
    /// has a `redirect_from` of its own.
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
    pub cache: Cache,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub origin: Origin,
    #[expect(missing_docs, reason = "the section's own comment is the manual's")]
    pub blog: Blog,
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

    /// The file that holds the secret for the admin API; made at the first start, readable by its owner alone.
    ///
    /// Default: none; then it is `seawall/admin-token` in the XDG state folder (`$XDG_STATE_HOME`, or `~/.local/state`), and
    /// `/var/lib/seawall/admin-token` for a user without a home.
    pub admin_token_file: Given<String>,

    /// Threads that serve; 1 to 1024. Each has its own event loop and its own connections to the origin.
    ///
    /// Default: none; then one for each processor core. Flag: `--workers`. Environment: `SEAWALL_WORKERS`.
    pub workers: Given<Count>,

    /// Whether HTTP/2 is spoken without TLS too, on `listen`, to clients that begin with it (RFC 9113 §3.3, "prior knowledge"). For proxies of
    /// your own; browsers never do.
    ///
    /// Default: `false`.
    pub h2c: Given<bool>,

    /// Whether HTTP/3 is spoken too: over UDP, at each address where TLS is spoken and with the same certificates. Visitors are told of it with
    /// `Alt-Svc`, and come over it the next time. UDP has to get through to the same port: a firewall or a container that only lets TCP in keeps
    /// everybody on HTTP/2.
    ///
    /// Default: `false`. Flag: `--http3`. Environment: `SEAWALL_HTTP3`.
    pub http3: Given<bool>,

    /// The UDP port that visitors are told of, where it is not the one that Seawall listens on, as behind a port that is forwarded; 1 to 65535.
    ///
    /// Default: none; then it is the port of the first address in `[tls] listen`.
    pub http3_port: Given<Count>,

    /// Networks of your own proxies (a load balancer, a CDN), such as `"10.0.0.0/8"`. What they say about the client (`X-Forwarded-For`,
    /// `X-Forwarded-Proto`) is believed; what anybody else says is removed. `"private"` stands for every private network and this machine: right
    /// where nobody but the proxy can reach Seawall, as on a platform that gives a `PORT`, or in a network of containers.
    ///
    /// Default: `[]`. Flag: `--trusted-proxies`, separated by commas. Environment: `SEAWALL_TRUSTED_PROXIES`.
    pub trusted_proxies: Listed<TrustedProxy>,

    /// A path that is answered with 200 on the addresses of visitors, whatever the host, for platforms and load balancers that ask there; the
    /// origin is not asked, and no page of a site can live there. The admin API has its own, `/healthz`.
    ///
    /// Default: none.
    pub health_path: Given<PurgePath>,

    /// How long responses in progress may go on after the signal to stop; up to one hour. `"0s"` cuts them at once.
    ///
    /// Default: `"30s"`.
    pub shutdown_timeout: Given<Period>,
}

/// `[tls]` and `[site.tls]`: HTTPS.
///
/// TLS 1.2 and 1.3, HTTP/1.1 and HTTP/2. Certificates are files here; they are looked at every few seconds, and a pair that has changed is
/// taken over without a restart once both files fit together. Each is shown for the names in it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Addresses with a port, where TLS is spoken. Only in `[tls]`.
    ///
    /// Default: none; with a certificate, `["127.0.0.1:8443"]`, and with `--domain`, `["0.0.0.0:443", "[::]:443"]`. Flag: `--tls-listen`, repeatable.
    /// Environment: `SEAWALL_TLS_LISTEN`, separated by commas.
    pub listen: Listed<Listen>,

    /// The certificate and those that lead to a root (PEM, the server's own first), such as `fullchain.pem`; ECDSA or RSA. The one in `[tls]`
    /// is also shown to clients that ask for no name, or an unknown one; without it they are refused.
    ///
    /// Default: none. Flag: `--tls-cert`. Environment: `SEAWALL_TLS_CERT`.
    pub cert: Given<String>,

    /// Its key (PEM, without a password).
    ///
    /// Default: none; then it is in the file of `cert`. Flag: `--tls-key`. Environment: `SEAWALL_TLS_KEY`.
    pub key: Given<String>,
}

/// `[acme]`: certificates that come by themselves.
///
/// Where TLS is spoken, each host of each site gets a certificate and keeps it: by ACME (RFC 8555) from Let's Encrypt, to whose terms of
/// service you agree with it, or from a root of this machine's own for local names (`localhost`, `nas.local`, `192.168.1.2`). The names must lead
/// here, and ports 80 and 443 must be reachable from outside; `seawall check --acme` says what is not so. While there is no certificate, a site
/// is served over plain HTTP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Acme {
    /// Whether certificates are got.
    ///
    /// Default: `true`; with `cert` in `[tls]`, `false`.
    pub enabled: Given<bool>,

    /// The authority: `"letsencrypt"`, `"letsencrypt-staging"` (a rehearsal: certificates that no browser trusts, and generous limits), or the
    /// address of another's directory.
    ///
    /// Default: `"letsencrypt"`.
    pub directory: Given<String>,

    /// Where the authority may write to.
    ///
    /// Default: none.
    pub email: Given<String>,

    /// A kind of certificate, if the authority has several, such as Let's Encrypt's `"shortlived"`: six days.
    ///
    /// Default: none; the authority's own.
    pub profile: Given<String>,

    /// The folder for account, keys and certificates, for Seawall's user alone. Keep it over restarts and in containers: who orders anew each
    /// time is soon refused, for a week. Several Seawalls may share it; one of them orders.
    ///
    /// Default: none; then it is `seawall/acme` in the XDG state folder (`$XDG_STATE_HOME`, or `~/.local/state`), and `/var/lib/seawall/acme`
    /// for a user without a home.
    pub dir: Given<String>,

    /// Certificates (PEM) that are trusted besides the system's when the authority is connected to: for one of your own.
    ///
    /// Default: none.
    pub ca_file: Given<String>,

    /// Whether `www.example.org` gets a certificate with `example.org`, and the other way round, if it leads to the same place.
    ///
    /// Default: `true`.
    pub www: Given<bool>,

    /// A program that writes DNS records, for wildcards and for machines that cannot be reached from outside (DNS-01). It is run as
    /// `PROGRAM present _acme-challenge.example.org VALUE`, returns 0 when the TXT record can be seen, and is run with `cleanup` afterwards.
    ///
    /// Default: none.
    pub dns_hook: Given<String>,

    /// How long it may take; up to 1h.
    ///
    /// Default: `"2m"`.
    pub dns_hook_timeout: Given<Period>,

    /// For authorities that want an account from their web site (ZeroSSL, Google): its key's id.
    ///
    /// Default: none.
    pub eab_key_id: Given<String>,

    /// The file with that key, base64url as the authority gave it.
    ///
    /// Default: none.
    pub eab_key_file: Given<String>,

    /// Whether a name gets its certificate when somebody first connects to it: those below a host such as `"*.example.org"`, and those that `ask`
    /// approves of. Who connects first waits for it, nine seconds at most, and up to 64 at a time; others do not wait with them. At most 20 new
    /// names an hour, 1000 in all.
    ///
    /// Default: `false`.
    pub on_demand: Given<bool>,

    /// An address that is asked about other names, with `?domain=NAME` added: 200 means yes.
    ///
    /// Default: none.
    pub ask: Given<String>,
}

/// `[limits]`: what one client, and all of them together, may take.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Open connections of clients, all listeners together; 1 to 1000000. One more is answered with 503 and closed. Worst case in
    /// memory: this times `header_bytes` (625 MiB with the defaults), if every client fills its head and sends no more until
    /// `header_timeout` ends it.
    ///
    /// Default: `20000`.
    pub connections: Given<Count>,

    /// Open connections from one address (IPv6: one /64), at most `connections`. Loopback and `trusted_proxies` are exempt: behind them
    /// are many people. Worst case for one address: this times `header_bytes` (8 MiB with the defaults).
    ///
    /// Default: `256`, or `connections` where that is less.
    pub connections_per_address: Given<Count>,

    /// Size of a request's head: request line and fields; 1KiB to 1MiB. A larger one is answered with 431 (RFC 6585 §5).
    ///
    /// Default: `"32KiB"`.
    pub header_bytes: Given<ByteSize>,

    /// Number of fields in a request's head; 8 to 256. More are answered with 431.
    ///
    /// Default: `100`.
    pub header_fields: Given<Count>,

    /// Size of the request target (path and query); 256 bytes up to `header_bytes`. A longer one is answered with 414 (RFC 9110 §15.5.15).
    ///
    /// Default: `"8KiB"`, or `header_bytes` where that is less.
    pub target_bytes: Given<ByteSize>,

    /// Size of a request's body, such as an upload; 1 byte to 1TiB. A larger one is answered with 413. Bodies are passed on in pieces
    /// and never kept whole, so this costs no memory.
    ///
    /// Default: `"1GiB"`.
    pub body_bytes: Given<ByteSize>,

    /// From the first byte of a request's head to its last; 1ms to 1h. With TLS, a handshake may take as long before it.
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
}

/// `[log]`: the access log.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// Where each request is written down: `"stdout"`, `"off"`, or a file with its folder (`"/var/log/seawall/access.log"`,
    /// `"./access.log"`).
    ///
    /// Default: `"stdout"`. Flag: `--access-log`. Environment: `SEAWALL_ACCESS_LOG`.
    pub access: Given<AccessLog>,

    /// `"combined"`, the line of Apache and nginx that every log reader knows, or `"json"`, one object a line.
    ///
    /// Default: `"combined"`. Flag: `--log-format`. Environment: `SEAWALL_LOG_FORMAT`.
    pub format: Given<LogFormat>,
}

/// `[cache]` and `[site.cache]`: what is stored, and for how long.
///
/// A site takes every key from `[cache]` that it does not set itself in `[site.cache]`. A list replaces the list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    /// Memory for stored responses, all sites together; 1MiB to 16TiB. Fields, bodies and compressed copies count. Only in `[cache]`,
    /// as it belongs to the whole process.
    ///
    /// Default: `"256MiB"`. Flag: `--memory`. Environment: `SEAWALL_MEMORY`.
    pub memory: Given<ByteSize>,

    /// The folder for stored responses, so that they outlive a restart. It must be empty, or a cache of Seawall's; two running Seawalls
    /// cannot share one: the second keeps its pages in memory alone, and says so. A relative folder is looked for beside the file. Only in
    /// `[cache]`, and only used when there is a server among the sources: folders are on a disk already.
    ///
    /// Default: none; then it is `seawall` in the XDG cache folder (`$XDG_CACHE_HOME`, or `~/.cache`), and for a user without a home
    /// nothing is kept on disk. Flag: `--cache-dir`. Environment: `SEAWALL_CACHE_DIR`.
    pub dir: Given<String>,

    /// Disk space for stored responses, all sites together; 16MiB to 16TiB, or `"0"` to keep them in memory alone. When it is used up, or
    /// the disk is full, the least wanted go. Worst case in memory: 27 MB for the list of 250000 files, beyond which the space is shared
    /// out among fewer, and 64 MiB for what waits to be written. Only in `[cache]`.
    ///
    /// Default: `"4GiB"`.
    pub disk: Given<ByteSize>,

    /// The largest single response that is stored; 1KiB up to half of `memory`. A larger one is passed through.
    ///
    /// Default: `"16MiB"`, or half of `memory` where that is less.
    pub object_max: Given<ByteSize>,

    /// The largest single response that is stored on the disk, if there is a disk tier; up to 1TiB, `"0B"`: none but those that memory takes.
    /// One that is larger than `object_max` (a video, a download) passes through the disk without passing memory: while it arrives, each
    /// reader reads it from there at a pace of its own. One that is larger than this as well is passed through.
    ///
    /// Default: `"1GiB"`; for a blog or a folder, whose files are on a disk already, `"0B"`. At worst, a response that is on its way to a
    /// client takes 128KiB of memory, and one that arrives 1MiB.
    pub disk_object_max: Given<ByteSize>,

    /// Keep stored responses fresh for this long, whatever lifetime the origin gave; 1ms to 365d. Browsers are still told the origin's
    /// own. What the origin forbids to store is not stored, and requests with cookies get what the origin's own lifetime allows. A
    /// purge, or an edit that is noticed, ends it early.
    ///
    /// Default: none; the response's own lifetime counts. What is in a folder is fresh until that changes. Flag: `--hold`. Environment: `SEAWALL_HOLD`.
    pub hold: Given<Period>,

    /// How long after its end a stored response may stand in while the origin fails (RFC 5861 §4), if it does not say so itself; up to
    /// 365d. `"0s"`: never.
    ///
    /// Default: 7 days: a cache that cannot reach its origin may go on with what it has (RFC 9111 §4.2.4), unless the response forbids it.
    pub stale_if_error: Given<Period>,

    /// How long after its end a stored response may be served while a fresh one is fetched (RFC 5861 §3), if it does not say so itself;
    /// up to 365d. `"0s"`: never.
    ///
    /// Default: none; only what the response says.
    pub stale_while_revalidate: Given<Period>,

    /// Cookies that do not change the page, besides those of well-known analytics tools; `"_ga*"` stands for all names that begin so.
    /// Any other cookie may make a page personal: the answer is stored only if the origin itself gives it a lifetime. Name a login
    /// cookie here, and one reader sees another's page.
    ///
    /// Default: `[]`.
    pub ignore_cookies: Listed<CookiePattern>,

    /// Query parameters that do not change the page, besides the well-known ones of trackers (`utm_*`, `fbclid`, ...). They leave the
    /// cache key and the request to the origin. `"*"` stands for all but those in `keep_query`.
    ///
    /// Default: `[]`.
    pub ignore_query: Listed<NamePattern>,

    /// Query parameters that do change the page, although a pattern or the list of trackers names them.
    ///
    /// Default: `[]`.
    pub keep_query: Listed<NamePattern>,

    /// Whether a client's `Cache-Control: no-cache`, `max-age=0` and the like are obeyed (RFC 9111 §5.2.1). `false` keeps clients from
    /// sending requests past the cache.
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

    /// Whether a browser that has to wait for a page is told meanwhile what the page will need (103 Early Hints, RFC 8297): style sheets, fonts,
    /// scripts that hold it up, and hosts to connect to, as the stored pages named them last. It fetches those while the origin works. Told to
    /// browsers that open a page over HTTP/2 or 3, and only when the origin has to be asked. What was learnt from a page goes when that is
    /// purged, and after a day at the latest: until then, a page whose style sheet got another name without a purge costs its next visitor a
    /// download in vain; and what browsers may not keep (`no-store`) is fetched twice. An origin that sends hints itself is left to it.
    ///
    /// Default: `true`; for a folder or a blog `false`, as nobody waits for those.
    pub early_hints: Given<bool>,

    /// Whether they are told over HTTP/1.1 as well. Software between, such as a proxy before Seawall, may take the first response that it sees
    /// for the answer; try it.
    ///
    /// Default: `false`.
    pub early_hints_http1: Given<bool>,
}

/// `[origin]` and `[site.origin]`: how the server behind the cache is treated.
///
/// A site takes every key from `[origin]` that it does not set itself in `[site.origin]`. Only for sources that are servers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Origin {
    /// Requests that the origin handles at the same time, per site; 1 to 65535. A small server is faster with few.
    ///
    /// Default: `256`.
    pub concurrency: Given<Count>,

    /// Requests that may wait for their turn beyond these, per site; 0 to 1000000. One more gets the stale copy, or 503. Worst case in
    /// memory: this times `header_bytes` (32 MiB with the defaults).
    ///
    /// Default: `1024`.
    pub queue: Given<Count>,

    /// How long a request may wait for its turn; 1ms to 1h. Then: the stale copy, or 503.
    ///
    /// Default: `"10s"`.
    pub queue_timeout: Given<Period>,

    /// How long the connection may take to stand, TLS included; 1ms to 1h. Then the next address is tried.
    ///
    /// Default: `"5s"`.
    pub connect_timeout: Given<Period>,

    /// How long the origin may think before its response begins; 1ms to 1h. Then: the stale copy, or 504.
    ///
    /// Default: `"60s"`.
    pub first_byte_timeout: Given<Period>,

    /// The longest pause within a response; 1ms to 1h. Then the response ends there, and is not stored.
    ///
    /// Default: `"60s"`.
    pub between_bytes_timeout: Given<Period>,

    /// Which `Host` the origin is asked for: `"client"` (what the client asked for), `"origin"` (the name in the origin's address), or
    /// a name of its own. Origins put it into links and redirects.
    ///
    /// Default: `"client"`.
    pub host: Given<OriginHost>,

    /// A file of certificates (PEM) that are trusted besides the system's, for an `https` origin with a certificate of its own making.
    ///
    /// Default: none.
    pub ca_file: Given<String>,

    /// More addresses of the same origin, tried when `source` cannot be reached; at most 16. `source` itself may be repeated. In
    /// `[origin]` only together with the short form; they belong to the `source` in the file, and go with it when a SOURCE from outside
    /// replaces it.
    ///
    /// Default: `[]`.
    pub addresses: Listed<OriginAddress>,
}

/// `[blog]` and `[site.blog]`: for a folder of Markdown.
///
/// What is set here goes before the `blog.toml` in the folder.
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
}

/// `[static]` and `[site.static]`: for a folder of finished files.
///
/// What else such a folder can say, by `_redirects`, `_headers` and its own error pages, is in [static.md](static.md). A site takes every key
/// from `[static]` that it does not set itself in `[site.static]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Static {
    /// Whether a folder without an `index.html` shows its names, sizes and dates. Dotfiles are never shown.
    ///
    /// Default: `false`; such a folder is answered with 404.
    pub listing: Given<bool>,

    /// The file that answers, with 200, for paths at which nothing is: for sites that find their way in the browser, mostly
    /// `"index.html"`. A path that ends like a file's name (`/app.js`) is still answered with 404.
    ///
    /// Default: none; what is not there is answered with 404.
    pub fallback: Given<String>,
}

/// `[https]` and `[site.https]`: what is done so that visitors use https.
///
/// A site takes every key from `[https]` that it does not set itself in `[site.https]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Https {
    /// Send visitors who come over plain http to https: GET and HEAD with 301, everything else with 308. Where another server ends TLS in
    /// front, such as the router of a platform, only its word counts: it must be in `trusted_proxies` and say `X-Forwarded-Proto: http`. A
    /// request about which nothing is said is served as it came, so that there is never a loop. `/.well-known/acme-challenge/` is excepted.
    ///
    /// Default: `false`; with `--domain`, `true` for each name from the moment when there is a certificate for it, and until then it is served
    /// as it is asked for. Flag: `--https-redirect`, for all sites. Environment: `SEAWALL_HTTPS_REDIRECT`.
    pub redirect: Given<bool>,

    /// How long browsers shall use nothing but https for this site (`Strict-Transport-Security`, RFC 6797); up to 730d. Sent over https alone, and
    /// only where the origin says nothing of it. Begin with `"1d"`: whoever has seen it cannot go back to http until it is over. `"0s"` tells
    /// browsers to forget it.
    ///
    /// Default: none; nothing is said.
    pub hsts: Given<Period>,

    /// Whether `hsts` is meant for all names below this one, too (`includeSubDomains`).
    ///
    /// Default: `false`.
    pub hsts_subdomains: Given<bool>,

    /// Whether browser makers may put this site into the list that they deliver (`preload`). They ask for `hsts` of at least `"365d"` and
    /// `hsts_subdomains`, and leaving the list takes months.
    ///
    /// Default: `false`.
    pub hsts_preload: Given<bool>,
}

/// `[headers]` and `[site.headers]`: fields that are added to the origin's responses, and taken from them.
///
/// A site takes every key from `[headers]` that it does not set itself in `[site.headers]`. A list replaces the list. A change shows on the
/// next response: what is stored for the site is purged.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Headers {
    /// Whether responses get the usual security fields: `X-Content-Type-Options: nosniff`, and, on documents (HTML, SVG, XML),
    /// `Referrer-Policy: strict-origin-when-cross-origin` and `X-Frame-Options: SAMEORIGIN`. What the origin sends itself is never
    /// overridden.
    ///
    /// Default: none; then a blog gets all three, a folder the first two (its pages may be meant for frames elsewhere), and a server none: what
    /// it needs, only its author knows.
    pub security: Given<bool>,

    /// Fields to add where the origin does not send them, as `"Permissions-Policy: camera=()"`; at most 32. What caching lives by
    /// (`Cache-Control`, `ETag`, `Vary`, ...) cannot be set here: the origin says that, or `[cache]`.
    ///
    /// Default: `[]`.
    pub set: Listed<FieldLine>,

    /// Fields to take from what the origin sends, such as `"X-Powered-By"`; at most 32. Together with `set`, a field of the origin's is
    /// replaced.
    ///
    /// Default: `[]`.
    pub remove: Listed<FieldName>,
}

/// `[auth]` and `[site.auth]`: a password for a site, or for parts of it (HTTP Basic, RFC 7617).
///
/// Who has one gets the same pages from the cache as everybody who has one; outside they are marked `private`. After ten wrong passwords an
/// address has to wait six seconds for each further one. A password crosses the net readable unless the site is on https: set `redirect` in
/// `[https]` too. A site takes every key from `[auth]` that it does not set itself in `[site.auth]`; `paths = []` opens it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// The file of users, as `htpasswd -B` writes it: bcrypt (up to cost 14), `$apr1$` and `{SHA}`; at most 1 MiB. A relative path begins at
    /// the folder of this file. It is looked at once a second while anybody asks, so a change counts at once. While it is missing, nobody gets
    /// in.
    ///
    /// Default: none; nobody is asked for a password.
    pub file: Given<String>,

    /// The paths for which a password is asked; each with everything below it. `"/drafts"` covers `/drafts.html` too. A path is covered in
    /// whichever way it is spelt: upper case, `//`, `;x`, `%64`, `%2e%2e/`. What is chosen by the query alone (`/?p=12`) is not told apart.
    ///
    /// Default: none; then `["/"]`, the whole site.
    pub paths: Listed<ProtectedPath>,

    /// The name that browsers may show beside the question.
    ///
    /// Default: none; then `"Protected"`.
    pub realm: Given<Realm>,

    /// Whether the origin gets to see the password (`Authorization`). What it answers is then stored only if it says so itself.
    ///
    /// Default: `false`.
    pub forward: Given<bool>,
}

/// `[compress]` and `[site.compress]`: gzip, Brotli and Zstandard.
///
/// What is stored is compressed once, by threads that no reader waits for, and each reader gets the smallest form that is there and that
/// its browser takes. The origin is asked for the plain page. A site takes every key from `[compress]` that it does not set itself in
/// `[site.compress]`. A list replaces the list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compress {
    /// Whether anything is compressed here. With `false` the origin is asked for what browsers take, and each of its forms is stored apart.
    ///
    /// Default: `true`.
    pub enabled: Given<bool>,

    /// Media types to compress; at most 64. `"text/*"` stands for all that begin so, `"*+json"` for all that end so. Event streams, and
    /// what the origin has compressed itself or marks `no-transform`, are never touched.
    ///
    /// Default: none; then it is `text/*`, JSON, XML, SVG, scripts, WebAssembly, and those fonts and pictures that are not compressed in
    /// themselves.
    pub types: Listed<TypePattern>,

    /// Content shorter than this is left as it is; up to 8MiB. Content longer than 8 MiB is not compressed when it is stored.
    ///
    /// Default: `"512B"`.
    pub min_size: Given<ByteSize>,

    /// Paths that are left alone, such as `"/account/*"`; at most 64. The origin compresses them as it likes.
    ///
    /// Default: `[]`.
    pub exclude: Listed<PathPattern>,

    /// What is done about responses that are not shared. A compressed page that holds a secret beside something a stranger can choose (a
    /// search term) gives the secret away by its length (BREACH). `"safe"`: compressed if the request has neither cookies nor credentials,
    /// or if it is for styles, scripts, fonts or pictures. `"all"`: whenever it is not compressed yet. `"off"`: as the origin sends them.
    ///
    /// Default: `"safe"`.
    pub passed: Given<PassedWord>,

    /// Whether a page is the dictionary of its next version (RFC 9842): a browser that has the old one is sent little more than what has
    /// changed, as `dcz`. For browsers that announce it, over https. Worst case in memory: 32 MiB for the last versions, which are mostly those
    /// that are stored anyway, and 8 MiB for what has changed.
    ///
    /// Default: `false`.
    pub dictionaries: Given<bool>,
}

/// `[purge]`: purge requests on the sites' own addresses.
///
/// Plugins that purge Varnish (`PURGE`, `BAN`, xkey), nginx (nginx-helper), Fastly or Souin work as they are: point them at this server. Who
/// may not purge gets 403, and the origin hears nothing of it. The admin API and `seawall purge` do not depend on this section.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Purge {
    /// Networks whose purge requests are obeyed, such as `"192.0.2.7/32"` for the web server. Everybody else needs the admin token
    /// (`Authorization: Bearer`, `X-Purge-Token` or `Fastly-Key`); with `[]` everybody does. Behind a proxy, the client that a member of
    /// `trusted_proxies` names counts, and a request that comes through any other proxy is nobody's. A proxy on this machine that sends
    /// neither `X-Forwarded-For` nor `Forwarded` makes its visitors look like this machine: write `[]` then. A Unix socket has no address: what
    /// comes through it needs a client that is named, or the token.
    ///
    /// Default: `["127.0.0.0/8", "::1/128"]`.
    pub allow: Listed<PurgeSource>,

    /// The path below which a GET purges, for the plugin nginx-helper and others that were made for `ngx_cache_purge`: with `"/purge"`,
    /// `/purge/hello/` purges `/hello/`, and no page of the site can live there.
    ///
    /// Default: none; then such a path is a page like any other.
    pub path: Given<PurgePath>,
}

/// `[refill]`: what comes back by itself after a soft purge.
///
/// A soft purge marks pages stale; those that are read most are then fetched again, from a second after the purge, while readers still get
/// the old ones.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Refill {
    /// Requests at the same time, per site, for refilling alone; 0 to 64, and never more than a quarter of the site's `concurrency` (but
    /// one). They wait while readers wait for the origin, and while it is down or slower than usual. `0` turns refilling off.
    ///
    /// Default: `2`.
    pub concurrency: Given<Count>,
}

/// `[[route]]` and `[[site.route]]`: a part of a site that another server answers for.
///
/// Repeat it for each part; `[[route]]` goes with the short form, `[[site.route]]` with a `[[site]]`. The longest `path` that covers a request
/// counts. The pages of a part are cached, purged, and protected as those of the site are; what its server sets, such as a lifetime, is obeyed as
/// for any server, also where the site itself is a folder. `[route.origin]` and `[site.route.origin]` have the keys of `[origin]`, and what is not
/// set there comes from `[origin]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Route {
    /// The path, with everything below it: `"/api"` covers `/api` and `/api/x`, and not `/apis`. It is compared with the path in normal form,
    /// so that `/%61pi/x` is the same as `/api/x`.
    ///
    /// Default: none; required. Flag: `--route`, repeatable, as `/api=http://127.0.0.1:3000`. Environment: `SEAWALL_ROUTE`, separated by commas.
    pub path: Given<RoutePath>,

    /// The address of the server, as in `source` at the top.
    ///
    /// Default: none; required.
    pub source: Given<OriginAddress>,

    /// Whether the server is asked for what follows `path`: for `/x` instead of `/api/x`. It is told with `X-Forwarded-Prefix`; the links and redirects
    /// that it sends are passed on as they are.
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
/// Repeat it for each site; excludes `source` at the top. A request for a host that no site has is answered with 421.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Site {
    /// The host names that the site answers for. `"*.example.org"` is every name below example.org, but not example.org itself; an
    /// exact name goes before it.
    ///
    /// Default: none; a single `[[site]]` may leave it out, and answers for every host.
    pub hosts: Listed<HostPattern>,

    /// As `source` at the top.
    ///
    /// Default: none; required.
    pub source: Given<String>,

    /// As `kind` at the top.
    ///
    /// Default: none; it follows from the source.
    pub kind: Given<Kind>,

    /// Names whose visitors are sent to the first of `hosts` that is a whole name, as `redirect_from` at the top.
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
