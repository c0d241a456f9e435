//! The fingerprint of a site's rules: whether what was stored by them may be answered with.
//!
//! A stored response was made, judged and dressed by rules that hold no longer once an operator changes them. So a site whose fingerprint changes
//! gets another number, and begins with nothing stored: after a reload in memory, after a restart on the disk. A fingerprint has to have
//! two properties. Whatever decides which stored responses may be used is in it, or people get what they must not get. And nothing else is,
//! nor a trace of how this program is written, or an upgrade would empty every operator's disk.
//!
//! It is therefore written out field by field. A field has a tag that outlives its name in the code, and one with its default is left out: a
//! new setting does not change the fingerprint of a site that does not use it. Structs are taken apart without `..`, so whoever adds a
//! field has to decide here. Absent: `Debug`, `Hash`, and the order in which sets were typed.

use std::{collections::BTreeSet, path::Path, time::Duration};

use http::{HeaderName, HeaderValue};
use origins::{files::Links, php::PhpOptions};
use policy::{Compress, Kind};

use crate::config::settings::{
    Auth, BlogSettings, Cache, FilesSettings, GhostSettings, Headers, OriginAddress, OriginHost, OriginSettings, PhpSettings, Product,
    Route, Server, Settings, Site, Source, WordPressSettings,
};

/// The version of what fingerprints mean.
///
/// Raise it when stored responses may no longer be used although no setting has changed: a default or a row of a preset has become stricter, or
/// a rule that was wrong is mended. That empties every disk tier, and needs a line in the changelog.
const VERSION: u64 = 1;

/// Returns the fingerprint of a site's rules. Equal rules have equal bytes, in this and in every later version of the program that has not
/// raised [`VERSION`].
pub(crate) fn fingerprint(settings: &Settings, site: &Site) -> Vec<u8> {
    let Settings {
        server,
        tls: _,          // how the site is reached; the scheme is part of every key
        limits: _,       // what one client may take
        requests: _,     // how often it may come
        logins: _,       // who may try a password: no answer to that is stored
        log: _,          // nobody's answer depends on it
        traces: _,       // who is told of requests
        cache_memory: _, // how much is stored
        cache_disk: _,   // where and how much is stored
        purge: _,        // who may purge, and where: a purge request is never answered with a page
        refill: _,       // how soon something comes back
        cluster: _,      // which other machines there are
        alerts: _,       // what the operator is told
        sites,
        warnings: _,
    } = settings;
    let Server {
        listen: _,
        admin: _,
        admin_token_file: _,
        workers: _,
        h2c: _,
        trusted_proxies: _, // who may speak in the fields below; what they say is part of every key
        trusted_fields,
        health_path: _,
        shutdown_timeout: _,
    } = server;
    let Site {
        name: _, // what the fingerprint is kept under
        hosts,
        source,
        kind,
        kind_is_given: _, // what it is counts, and not how that is known
        finding: _,       // likewise: its path and its kind are below
        cache,
        origin,
        blog,
        ghost: _,     // those of the product that makes it are below
        wordpress: _, // likewise
        files,
        php,
        https_redirect: _, // a redirect of ours is never stored
        headers,
        auth,
        compress,
        redirect_from: _, // a redirect of ours is never stored
        routes,
    } = site;
    let mut print = Fingerprint(Vec::new());
    print.number("version", VERSION);
    // The host is part of every key. But who answers for a host is whose pages a purge of that host finds: what is stored for one that went to
    // another site must not come back with it, however often it was purged there.
    print.set("hosts", hosts, &[]);
    if hosts.iter().any(|host| host.starts_with("*.")) {
        let elsewhere: Vec<String> = sites.iter().filter(|other| other.name != site.name).flat_map(|other| other.hosts.clone()).collect();
        print.set("hosts.elsewhere", &elsewhere, &[]);
    }
    // Which fields from a trusted proxy the origin saw, and the key has.
    print.set("trusted_fields", trusted_fields, &[]);
    print.source(source);
    print.kind(*kind);
    print.cache("cache", cache, *kind);
    print.origin("origin", origin);
    print.headers("headers", headers);
    print.compress(compress);
    print.blog(blog);
    match site.product() {
        Product::Ghost(ghost) => print.ghost(ghost),
        Product::WordPress(wordpress) => print.wordpress(wordpress),
        Product::Any => {}
    }
    print.files(files);
    if let Some(php) = php {
        print.php(php);
    }
    if let Some(auth) = auth {
        print.auth(auth);
    }
    for route in routes {
        print.route(route);
    }
    print.0
}

/// The bytes of a fingerprint, as they are written: `tag:length=value` and a line feed for each field. The length says where a value ends,
/// so no value can look like another field.
struct Fingerprint(Vec<u8>);

impl Fingerprint {
    fn source(&mut self, source: &Source) {
        match source {
            Source::Http(addresses) => self.addresses("source.http", addresses),
            Source::Files(folder) => self.path("source.files", folder),
            Source::Blog(folder) => self.path("source.blog", folder),
            Source::Php(folder) => self.path("source.php", folder),
        }
    }

    /// Writes the addresses in their order: the first one is preferred.
    fn addresses(&mut self, tag: &str, addresses: &[OriginAddress]) {
        for address in addresses {
            let text = match address {
                OriginAddress::Http { host, port } => format!("http {port} {host}"),
                OriginAddress::Https { host, port } => format!("https {port} {host}"),
                OriginAddress::Unix(path) => {
                    self.path(&format!("{tag}.unix"), path);
                    continue;
                }
            };
            self.text(tag, &text);
        }
    }

    fn kind(&mut self, kind: Kind) {
        self.text("kind", kind.name());
    }

    fn cache(&mut self, tag: &str, cache: &Cache, kind: Kind) {
        let Cache {
            object_max: _,      // how much of what comes is stored
            disk_object_max: _, // the same on the disk
            hold,
            stale_if_error,
            stale_while_revalidate,
            ignore_cookies,
            ignore_query,
            keep_query,
            honour_request_directives,
            store_set_cookie,
            drop_set_cookies,
            two_visitor_proof: _, // it can only keep something out of the store
            early_hints: _,       // a hint is not stored with a page
            early_hints_http1: _, // likewise
        } = cache;
        let preset = kind.preset();
        let tag = |name: &str| format!("{tag}.{name}");
        // How long a response is fresh, and of use when it is not, is decided when it is stored.
        self.period(&tag("hold"), *hold, preset.hold);
        self.period(&tag("stale_if_error"), *stale_if_error, preset.stale_if_error);
        self.period(&tag("stale_while_revalidate"), *stale_while_revalidate, preset.stale_while_revalidate);
        // For whom a response may be.
        self.set(&tag("ignore_cookies"), ignore_cookies, &[]);
        self.flag(&tag("store_set_cookie"), *store_set_cookie, false);
        // What was stored without a cookie is not stored where that counts.
        self.set(&tag("drop_set_cookies"), drop_set_cookies, &[]);
        // For which addresses it may be.
        self.set(&tag("ignore_query"), ignore_query, &[]);
        self.set(&tag("keep_query"), keep_query, &[]);
        // Whether it was stored although its request forbade that.
        self.flag(&tag("honour_request_directives"), *honour_request_directives, preset.honours_request_directives);
    }

    fn origin(&mut self, tag: &str, origin: &OriginSettings) {
        let OriginSettings {
            // How much the server is asked, and how long it may take: the same answers come back.
            concurrency: _,
            queue: _,
            queue_timeout: _,
            collapse_wait: _,
            connect_timeout: _,
            first_byte_timeout: _,
            between_bytes_timeout: _,
            host,
            ca_file,
        } = origin;
        // Which site of the server was asked.
        match host {
            OriginHost::Client => {}
            OriginHost::Origin => self.text(&format!("{tag}.host"), "origin"),
            OriginHost::Name(name) => self.text(&format!("{tag}.host.name"), name),
        }
        // Whom the answers came from.
        if let Some(path) = ca_file {
            self.path(&format!("{tag}.ca_file"), path);
        }
    }

    fn php(&mut self, php: &PhpSettings) {
        // Which server runs the scripts changes no page, nor where files lie meanwhile.
        let PhpSettings { server: _, is_found: _, also_found: _, folder, temporary_folder: _ } = php;
        let PhpOptions { document_root: _, not_run, links, handed_over, params: _ } = folder;
        for folders in not_run {
            self.path("php.not_run", folders);
        }
        self.flag("php.links", *links == Links::OfOneOwner, false);
        for (prefix, folder) in handed_over {
            self.text("php.sent.prefix", prefix.as_deref().unwrap_or_default());
            self.path("php.sent", folder);
        }
    }

    fn ghost(&mut self, ghost: &GhostSettings) {
        let GhostSettings {
            path,
            activitypub: _, // what these answer is never stored
            analytics: _,
            webhook_secret: _, // who may purge
            member_secret,
        } = ghost;
        // Which paths may be stored.
        if let Some(path) = path {
            self.text("ghost.path", path);
        }
        // Whether pages for members were. With another secret they are the same pages: a request comes to them by its tier, which that proves.
        self.flag("ghost.members", member_secret.is_some(), false);
    }

    fn wordpress(&mut self, wordpress: &WordPressSettings) {
        let WordPressSettings {
            path,
            secret: _, // who may purge
            cron: _,   // when something is run
        } = wordpress;
        // Which paths may be stored.
        if let Some(path) = path {
            self.text("wordpress.path", path);
        }
    }

    /// Writes the fields that are added and removed before a response is stored.
    fn headers(&mut self, tag: &str, headers: &Headers) {
        let Headers { remove, set, set_on_documents, hsts } = headers;
        let names: Vec<String> = remove.iter().map(HeaderName::to_string).collect();
        self.set(&format!("{tag}.remove"), &names, &[]);
        let mut lines = |name: &str, fields: &[(HeaderName, HeaderValue)]| {
            for (field, value) in fields {
                self.write(&format!("{tag}.{name}"), &[field.as_str().as_bytes(), b": ", value.as_bytes()].concat());
            }
        };
        lines("set", set);
        lines("set_on_documents", set_on_documents);
        if let Some(value) = hsts {
            self.write(&format!("{tag}.hsts"), value.as_bytes());
        }
    }

    /// Writes what decides in which forms a response is stored, and what it says of them.
    fn compress(&mut self, compress: &Compress) {
        let Compress {
            enabled,
            types,
            min_size,
            exclude,
            passed: _, // responses that pass are not stored
            dictionaries,
        } = compress;
        let preset = Compress::default();
        self.flag("compress.enabled", *enabled, preset.enabled);
        self.set("compress.types", types, &preset.types);
        self.set("compress.exclude", exclude, &preset.exclude);
        self.flag("compress.dictionaries", *dictionaries, preset.dictionaries);
        if *min_size != preset.min_size {
            self.number("compress.min_size", *min_size);
        }
    }

    /// Writes what the blog prints into its pages.
    fn blog(&mut self, BlogSettings { title, base_url, drafts }: &BlogSettings) {
        self.flag("blog.drafts", *drafts, false);
        for (tag, value) in [("blog.title", title), ("blog.base_url", base_url)] {
            if let Some(value) = value {
                self.text(tag, value);
            }
        }
    }

    /// Writes what a folder answers for addresses without a file.
    fn files(&mut self, FilesSettings { listing, fallback }: &FilesSettings) {
        self.flag("static.listing", *listing, false);
        if let Some(path) = fallback {
            self.path("static.fallback", path);
        }
    }

    fn auth(&mut self, auth: &Auth) {
        let Auth {
            file: _, // who is let in; a stored page is asked for by nobody else
            paths,
            challenge: _, // an answer of ours is never stored
            forward,
        } = auth;
        // Where credentials came before the cache, and whether the server saw them.
        let roots: Vec<String> = paths.roots().map(|segments| segments.join("/")).collect();
        self.set("auth.paths", &roots, &[]);
        self.flag("auth.forward", *forward, false);
    }

    /// Writes a route. Its path begins it, so that the fields of two routes cannot be taken for each other's.
    fn route(&mut self, route: &Route) {
        let Route {
            path,
            addresses,
            strip_prefix,
            sends_cookies: _, // false for servers alone whose answers are never stored
            is_cached,
            origin,
            cache,
            headers,
        } = route;
        self.text("route", path);
        self.addresses("route.source.http", addresses);
        self.flag("route.strip_prefix", *strip_prefix, false);
        self.flag("route.cached", *is_cached, true);
        self.cache("route.cache", cache, route.kind());
        self.origin("route.origin", origin);
        self.headers("route.headers", headers);
    }

    /// Writes the members of a set, in an order of their own, unless they are those of `default`.
    fn set(&mut self, tag: &str, members: &[String], default: &[String]) {
        let (members, default): (BTreeSet<_>, BTreeSet<_>) = (members.iter().collect(), default.iter().collect());
        if members == default {
            return;
        }
        self.number(&format!("{tag}.number"), members.len() as u64);
        for member in members {
            self.text(tag, member);
        }
    }

    fn period(&mut self, tag: &str, period: Option<Duration>, default: Option<Duration>) {
        if let Some(period) = period.filter(|_| period != default) {
            self.text(tag, &format!("{}ms", period.as_millis()));
        }
    }

    fn flag(&mut self, tag: &str, flag: bool, default: bool) {
        if flag != default {
            self.text(tag, if flag { "yes" } else { "no" });
        }
    }

    fn number(&mut self, tag: &str, number: u64) {
        self.text(tag, &number.to_string());
    }

    fn path(&mut self, tag: &str, path: &Path) {
        self.write(tag, path.as_os_str().as_encoded_bytes());
    }

    fn text(&mut self, tag: &str, text: &str) {
        self.write(tag, text.as_bytes());
    }

    fn write(&mut self, tag: &str, value: &[u8]) {
        self.0.extend_from_slice(format!("{tag}:{}=", value.len()).as_bytes());
        self.0.extend_from_slice(value);
        self.0.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a configuration of one site.
    fn settings(toml: &str) -> Settings {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("seawall.toml");
        std::fs::write(&file, toml).expect("written");
        std::fs::write(folder.path().join("users"), "ada:$2y$04$ZOlm2gmsD9P0G0L60nZfAe99.npf49SEJ3E5lflgNgrneDy.suZba").expect("written");
        crate::config::check(&file).expect("settings")
    }

    fn print(toml: &str) -> String {
        let settings = settings(toml);
        String::from_utf8(fingerprint(&settings, &settings.sites[0])).expect("text")
    }

    const SERVER: &str = "source = \"http://127.0.0.1:2368\"\n";

    /// What a fingerprint is in this version of the program, it is in every later one.
    ///
    /// If this test fails, every operator's disk tier would be emptied by an upgrade. A setting that is new must not be written where it has its
    /// default. A tag stays as it is when a field is renamed. Only where what was stored before must really not be used any longer, raise
    /// `VERSION`, change the constants here, and say so in the changelog.
    #[test]
    fn the_fingerprints_of_these_settings_stay_as_they_are() {
        assert_eq!(print(SERVER), "version:1=1\nsource.http:19=http 2368 127.0.0.1\nkind:7=generic\n");
        let much = r#"
            source = "https://origin.example"
            [server]
            trusted_fields = ["X-Prefix", "X-Country"]
            [cache]
            hold = "5m"
            stale_if_error = "1d"
            stale_while_revalidate = "500ms"
            ignore_cookies = ["theme", "lang"]
            ignore_query = ["ref"]
            keep_query = ["utm_id"]
            honour_request_directives = false
            store_set_cookie = true
            [origin]
            host = "blog.example"
            addresses = ["http://b:8080"]
            [headers]
            set = ["X-Robots-Tag: noindex"]
            remove = ["X-Powered-By"]
            [https]
            hsts = "1h"
            [compress]
            types = ["text/html"]
            min_size = "1KiB"
            exclude = ["/account/*"]
            dictionaries = true
            [[route]]
            path = "/api"
            source = "http://c"
            strip_prefix = true
            cache = false
        "#;
        assert_eq!(
            print(much),
            "version:1=1\ntrusted_fields.number:1=2\ntrusted_fields:9=x-country\ntrusted_fields:8=x-prefix\n\
             source.http:24=https 443 origin.example\nsource.http:11=http 8080 b\nkind:7=generic\n\
             cache.hold:8=300000ms\n\
             cache.stale_if_error:10=86400000ms\n\
             cache.stale_while_revalidate:5=500ms\n\
             cache.ignore_cookies.number:1=2\n\
             cache.ignore_cookies:4=lang\n\
             cache.ignore_cookies:5=theme\n\
             cache.store_set_cookie:3=yes\n\
             cache.ignore_query.number:1=1\n\
             cache.ignore_query:3=ref\n\
             cache.keep_query.number:1=1\n\
             cache.keep_query:6=utm_id\n\
             cache.honour_request_directives:2=no\n\
             origin.host.name:12=blog.example\n\
             headers.remove.number:1=1\n\
             headers.remove:12=x-powered-by\n\
             headers.set:21=x-robots-tag: noindex\n\
             headers.hsts:12=max-age=3600\n\
             compress.types.number:1=1\n\
             compress.types:9=text/html\n\
             compress.exclude.number:1=1\n\
             compress.exclude:10=/account/*\n\
             compress.dictionaries:3=yes\n\
             compress.min_size:4=1024\n\
             route:4=/api\n\
             route.source.http:9=http 80 c\n\
             route.strip_prefix:3=yes\n\
             route.cached:2=no\n\
             route.cache.hold:8=300000ms\n\
             route.cache.stale_if_error:10=86400000ms\n\
             route.cache.stale_while_revalidate:5=500ms\n\
             route.cache.ignore_cookies.number:1=2\n\
             route.cache.ignore_cookies:4=lang\n\
             route.cache.ignore_cookies:5=theme\n\
             route.cache.store_set_cookie:3=yes\n\
             route.cache.ignore_query.number:1=1\n\
             route.cache.ignore_query:3=ref\n\
             route.cache.keep_query.number:1=1\n\
             route.cache.keep_query:6=utm_id\n\
             route.cache.honour_request_directives:2=no\n\
             route.origin.host.name:12=blog.example\n\
             route.headers.remove.number:1=1\n\
             route.headers.remove:12=x-powered-by\n\
             route.headers.set:21=x-robots-tag: noindex\n\
             route.headers.hsts:12=max-age=3600\n"
        );
        let mut folder = settings("source = \"http://a\"\n[headers]\nsecurity = false");
        folder.sites[0].kind = Kind::Static;
        folder.sites[0].source = Source::Files("/srv/site".into());
        folder.sites[0].files = FilesSettings { listing: true, fallback: Some("404.html".into()) };
        assert_eq!(
            String::from_utf8(fingerprint(&folder, &folder.sites[0])).expect("text"),
            "version:1=1\nsource.files:9=/srv/site\nkind:6=static\ncache.honour_request_directives:3=yes\nstatic.listing:3=yes\nstatic.fallback:8=404.html\n"
        );
    }

    /// A setting with its default, written or not, is no other rule; and neither is one by which nobody gets another answer.
    #[test]
    fn what_changes_no_answer_changes_no_fingerprint() {
        for same in [
            "[cache]\nstore_set_cookie = false\nhonour_request_directives = true\nignore_cookies = []\ndrop_set_cookies = []",
            "[cache]\nobject_max = \"1MiB\"\ndisk_object_max = \"2MiB\"\nmemory = \"64MiB\"\nearly_hints = false",
            "[origin]\nconcurrency = 7\nqueue = 3\ncollapse_wait = \"1s\"\nconnect_timeout = \"1s\"\nfirst_byte_timeout = \"9s\"",
            "[compress]\nenabled = true\nmin_size = 512\npassed = \"off\"",
            "[server]\nworkers = 3\nhealth_path = \"/up\"\ntrusted_proxies = [\"10.0.0.0/8\"]",
            "[purge]\npath = \"/purge\"\nallow = [\"192.0.2.1\"]\n[refill]\nconcurrency = 1\n[log]\naccess = \"off\"",
        ] {
            assert_eq!(print(&format!("{SERVER}{same}")), print(SERVER), "{same}");
        }
        let ignoring = |names: &str| print(&format!("{SERVER}[cache]\nignore_query = [{names}]"));
        assert_eq!(ignoring("\"a\", \"b\""), ignoring("\"b\", \"a\""));
        assert_ne!(ignoring("\"a\", \"b\""), ignoring("\"a\""));
    }

    /// Whoever has an answer by another rule has another fingerprint, and no two of these have the same.
    #[test]
    fn what_changes_answers_changes_the_fingerprint() {
        let route = "[[route]]\npath = \"/api\"\nsource = \"http://c\"\n";
        let rules = [
            "",
            "[cache]\nhold = \"5m\"",
            "[cache]\nhold = \"6m\"",
            "[cache]\nstale_if_error = \"5m\"",
            "[cache]\nstale_while_revalidate = \"5m\"",
            "[cache]\nignore_cookies = [\"a\"]",
            "[cache]\nignore_query = [\"a\"]",
            "[cache]\nkeep_query = [\"a\"]",
            "[cache]\nhonour_request_directives = false",
            "[cache]\nstore_set_cookie = true",
            "[cache]\ndrop_set_cookies = [\"PHPSESSID\"]",
            "[origin]\nhost = \"origin\"",
            "[origin]\nhost = \"blog.example\"",
            "[origin]\naddresses = [\"http://b\"]",
            "[headers]\nset = [\"X-A: b\"]",
            "[headers]\nremove = [\"X-A\"]",
            "[headers]\nsecurity = true",
            "[https]\nhsts = \"1h\"",
            "[compress]\nenabled = false",
            "[compress]\ntypes = []",
            "[compress]\ntypes = [\"text/html\"]",
            "[compress]\nmin_size = 1",
            "[compress]\nexclude = [\"/a\"]",
            "[compress]\ndictionaries = true",
            "[auth]\nfile = \"users\"",
            "[auth]\nfile = \"users\"\npaths = [\"/drafts\"]",
            "[auth]\nfile = \"users\"\nforward = true",
            "[server]\ntrusted_fields = [\"X-Country\"]",
            route,
            &format!("{route}cache = false"),
            &format!("{route}strip_prefix = true"),
            &format!("{route}[route.origin]\nhost = \"origin\""),
            &format!("{route}[[route]]\npath = \"/b\"\nsource = \"http://c\""),
        ];
        let prints: Vec<String> = rules.iter().map(|rule| print(&format!("{SERVER}{rule}"))).collect();
        for (at, one) in prints.iter().enumerate() {
            assert!(!prints[..at].contains(one), "{}", rules[at]);
        }
    }
}
