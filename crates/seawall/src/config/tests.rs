//! Whole configurations: files, flags and environment together, in a folder of their own.

use std::{net::SocketAddr, time::Duration};

use ::cluster::tier::bucket::BucketOptions;
use pipeline::Redirect;

use super::{
    settings::{AccessLog, Kind, Listen, LogFormat, OriginAddress, OriginHost, Source},
    *,
};
use crate::{
    cli,
    recognition::{Finding, Question, Software},
};

/// A folder with a `seawall.toml`, a static site in `public`, Markdown in `posts`, and an empty folder.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(toml: &str) -> Self {
        let place = Self::without_file();
        fs::write(place.0.path().join("seawall.toml"), toml).expect("a file");
        place
    }

    fn without_file() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in [("public/index.html", "hi"), ("posts/hello.md", "# Hi"), ("ca.pem", "-")] {
            fs::create_dir_all(folder.path().join(path).parent().expect("a parent")).expect("folders");
            fs::write(folder.path().join(path), text).expect("a file");
        }
        fs::create_dir(folder.path().join("empty")).expect("a folder");
        Self(folder)
    }

    fn load(&self, arguments: &str, variables: Variables) -> Result<Settings, ConfigErrors> {
        let serve = cli::typed(&format!("seawall serve {arguments}")).expect("serve");
        load_in(self.0.path(), &serve, |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }
}

fn of_file(toml: &str) -> Result<Settings, ConfigErrors> {
    Folder::new(toml).load("", &[])
}

type Variables = &'static [(&'static str, &'static str)];

const SOURCE: &str = "source = \"http://127.0.0.1:2368\"\n";

fn tcp(text: &str) -> Listen {
    Listen::Tcp(text.parse::<SocketAddr>().expect(text))
}

fn server(text: &str) -> Source {
    Source::Http(vec![text.parse().expect(text)])
}

#[test]
fn a_source_is_enough() {
    let place = Folder::without_file();
    let settings = place.load("http://127.0.0.1:2368", &[("HOME", "/home/ada")]).expect("settings");
    assert_eq!(settings.server.listen, [tcp("127.0.0.1:8080")]);
    assert_eq!(settings.server.admin, Some("127.0.0.1:9180".parse().expect("an address")));
    assert_eq!(settings.server.admin_token_file, Path::new("/home/ada/.local/state/seawall/admin-token"));
    assert_eq!(settings.cache_memory, 256 << 20);
    assert_eq!(settings.log.access, AccessLog::Stdout);
    let [site] = &settings.sites[..] else { panic!("one site") };
    assert_eq!(
        (site.name.as_str(), site.hosts.len(), &site.source, site.kind),
        ("default", 0, &server("http://127.0.0.1:2368"), Kind::Generic)
    );
    assert_eq!((site.cache.object_max, site.cache.disk_object_max), (16 << 20, 1 << 30));
    assert_eq!(site.origin.host, OriginHost::Client);

    let site = |source: &str| place.load(source, &[]).expect(source).sites.remove(0);
    assert!(matches!(site("public"), settings::Site { source: Source::Files(path), kind: Kind::Static, .. } if path.ends_with("public")));
    assert!(matches!(site("posts"), settings::Site { source: Source::Blog(path), kind: Kind::Blog, .. } if path.ends_with("posts")));
    assert_eq!(site("public --kind static").kind, Kind::Static);
    assert_eq!((site("public").cache.disk_object_max, site("posts").cache.disk_object_max), (0, 0), "their files are on a disk already");
    assert!(site("http://a").cache.honour_request_directives && !site("public").cache.honour_request_directives);
}

#[test]
fn the_disk_tier_has_a_folder_wherever_there_is_one() {
    let disk = |file: &str, arguments: &str, variables: Variables| {
        let place = Folder::new(&format!("source = \"http://a\"\n[cache]\n{file}"));
        let settings = place.load(arguments, variables).expect("settings");
        settings.cache_disk.map(|disk| {
            let below = |dir: PathBuf| dir.strip_prefix(place.0.path()).map(Path::to_owned).unwrap_or_else(|_| dir.clone());
            (disk.dir.map(below), disk.size_max)
        })
    };
    const HOME: Variables = &[("HOME", "/home/ada")];
    const ALL: Variables = &[("HOME", "/home/ada"), ("XDG_CACHE_HOME", "/xdg"), ("SEAWALL_CACHE_DIR", "/variable")];
    let some = |dir: &str, size: u64| Some((Some(PathBuf::from(dir)), size));
    let default = 4 << 30;
    assert_eq!(disk("", "", HOME), some("/home/ada/.cache/seawall", default));
    assert_eq!(disk("", "", &[("HOME", "/home/ada"), ("XDG_CACHE_HOME", "/xdg")]), some("/xdg/seawall", default));
    assert_eq!(disk("", "", &[("HOME", "/home/ada"), ("XDG_CACHE_HOME", "relative")]), some("/home/ada/.cache/seawall", default));
    assert_eq!(disk("", "", &[]), Some((None, default)), "no home");
    assert_eq!(disk("dir = \"below\"\ndisk = \"1GiB\"", "", HOME), some("below", 1 << 30), "beside the file");
    assert_eq!(disk("dir = \"/file\"", "", ALL), some("/variable", default));
    assert_eq!(disk("dir = \"/file\"", "--cache-dir /flag", ALL), some("/flag", default));
    assert_eq!(disk("disk = \"0\"", "", ALL), None);
    assert_eq!(disk("disk = 0", "", ALL), None);
    for (file, problem) in [
        ("disk = \"1MiB\"", "1MiB is too little for disk"),
        ("disk = \"17TiB\"", "17TiB is too much for disk"),
        ("dir = \"\"", "\"\" is not a folder for stored responses"),
        ("[[site]]\nsource = \"http://b\"\n[site.cache]\ndir = \"d\"", "dir belongs to the whole process, not to one site"),
    ] {
        let source = if file.contains("site") { "" } else { "source = \"http://a\"\n[cache]\n" };
        let place = Folder::new(&format!("{source}{file}"));
        let errors = place.load("", HOME).expect_err(file).to_string();
        assert!(errors.contains(problem), "{errors}");
    }
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file_and_that_before_defaults() {
    let file = "source = \"posts\"\n[server]\nlisten = [\"127.0.0.1:1\"]\nadmin = \"127.0.0.1:11\"\nworkers = 1\n[cache]\nmemory = \"1GiB\"\nhold = \"1s\"\n[log]\naccess = \"off\"\nformat = \"json\"";
    let place = Folder::new(file);
    const VARIABLES: Variables = &[
        ("SEAWALL_LISTEN", "127.0.0.1:2, 127.0.0.1:22"),
        ("PORT", "3000"),
        ("SEAWALL_ADMIN", "127.0.0.1:12"),
        ("SEAWALL_WORKERS", "2"),
        ("SEAWALL_MEMORY", "2GiB"),
        ("SEAWALL_HOLD", "2s"),
        ("SEAWALL_ACCESS_LOG", "./two.log"),
        ("SEAWALL_LOG_FORMAT", "combined"),
        ("SEAWALL_SOURCE", "public"),
    ];
    let arguments = "--listen 127.0.0.1:3 --admin off --workers 3 --memory 3GiB --hold 3s --access-log ./three.log --log-format json";
    let seen = |settings: Settings| {
        let site = settings.sites.into_iter().next().expect("a site");
        let kind = site.kind;
        (
            settings.server.listen,
            settings.server.admin.map(|admin| admin.port()),
            settings.server.workers,
            settings.cache_memory >> 30,
            site.cache.hold,
            kind,
        )
    };
    let hold = |seconds| Some(Duration::from_secs(seconds));

    let settings = place.load("", &[]).expect("the file");
    assert_eq!((settings.log.access.clone(), settings.log.format), (AccessLog::Off, LogFormat::Json));
    assert_eq!(seen(settings), (vec![tcp("127.0.0.1:1")], Some(11), 1, 1, hold(1), Kind::Blog));

    let settings = place.load("", VARIABLES).expect("the environment");
    assert_eq!(
        (settings.log.access.clone(), settings.log.format),
        (AccessLog::File(place.0.path().join("./two.log")), LogFormat::Combined)
    );
    assert_eq!(seen(settings), (vec![tcp("127.0.0.1:2"), tcp("127.0.0.1:22")], Some(12), 2, 2, hold(2), Kind::Static));

    let settings = place.load(arguments, VARIABLES).expect("the flags");
    assert_eq!((settings.log.access.clone(), settings.log.format), (AccessLog::File(place.0.path().join("./three.log")), LogFormat::Json));
    assert_eq!(seen(settings), (vec![tcp("127.0.0.1:3")], None, 3, 3, hold(3), Kind::Static));

    assert_eq!(place.load("", &[("PORT", "3000")]).expect("PORT").server.listen, [tcp("0.0.0.0:3000")]);
    // A SOURCE on the command line means: this, not the file beside it. Empty variables are absent.
    let settings = place.load("public", &[("SEAWALL_MEMORY", ""), ("PORT", " ")]).expect("a source");
    assert_eq!(seen(settings).3, 0);
    // A file that is named is read all the same.
    assert_eq!(place.load("public --config seawall.toml", &[]).map(seen).expect("both").5, Kind::Static);
    assert_eq!(place.load("public", &[("SEAWALL_CONFIG", "seawall.toml")]).map(seen).expect("both").3, 1);
}

#[test]
fn several_sites_take_what_they_do_not_set_from_the_common_sections() {
    let settings = of_file(
        r#"
        [cache]
        hold = "1h"
        ignore_query = ["ref"]
        [origin]
        concurrency = 8
        host = "origin"
        [[site]]
        hosts = ["Blog.Example.org", "*.blog.example.org"]
        source = "http://127.0.0.1:2368"
        [site.cache]
        hold = "5m"
        [site.origin]
        concurrency = 2
        addresses = ["http://127.0.0.1:2368", "http://127.0.0.1:2369"]
        [[site]]
        hosts = ["example.org"]
        source = "https://origin.example"
        [site.cache]
        ignore_query = ["a", "b*"]
        [[site]]
        hosts = ["files.example.org"]
        source = "public"
        "#,
    )
    .expect("settings");
    let [blog, other, files] = &settings.sites[..] else { panic!("three sites") };
    assert_eq!(
        (blog.name.as_str(), blog.hosts.as_slice()),
        ("blog.example.org", ["blog.example.org".to_owned(), "*.blog.example.org".to_owned()].as_slice())
    );
    let local = |port| OriginAddress::Http { host: "127.0.0.1".to_owned(), port };
    assert_eq!(blog.source, Source::Http(vec![local(2368), local(2369)]));
    assert_eq!((blog.cache.hold, blog.cache.ignore_query.as_slice()), (Some(Duration::from_secs(300)), ["ref".to_owned()].as_slice()));
    assert_eq!((blog.origin.concurrency, &blog.origin.host), (2, &OriginHost::Origin));
    assert_eq!((other.cache.hold, other.cache.ignore_query.len(), other.origin.concurrency), (Some(Duration::from_secs(3600)), 2, 8));
    assert!(matches!(&files.source, Source::Files(path) if path.is_absolute()));
    let wish = "[cache]\nhonour_request_directives = true\n[[site]]\nsource = \"public\"";
    assert!(of_file(wish).expect("settings").sites[0].cache.honour_request_directives);
    // One site's danger is not the others'.
    let danger = "[[site]]\nhosts = [\"a.example\"]\nsource = \"http://a\"\ncache.store_set_cookie = true\n[[site]]\nhosts = [\"b.example\"]\nsource = \"http://b\"";
    let stores = of_file(danger).expect("settings").sites.iter().map(|site| site.cache.store_set_cookie).collect::<Vec<_>>();
    assert_eq!(stores, [true, false]);
    // A flag goes before a site's own value.
    assert!(
        Folder::new("[[site]]\nsource = \"posts\"\n[site.cache]\nhold = \"1s\"")
            .load("--hold 9s", &[])
            .is_ok_and(|settings| { settings.sites[0].cache.hold == Some(Duration::from_secs(9)) })
    );
}

#[test]
fn relative_paths_begin_at_the_file() {
    let place = Folder::without_file();
    let folder = place.0.path();
    fs::create_dir(folder.join("etc")).expect("a folder");
    fs::write(folder.join("etc/my.toml"), "source = \"../posts\"\n[server]\nadmin_token_file = \"token\"\n[log]\naccess = \"./a.log\"")
        .expect("a file");
    let settings = place.load("--config etc/my.toml", &[]).expect("settings");
    assert_eq!(settings.sites[0].source, Source::Blog(folder.join("etc/../posts")));
    assert_eq!(settings.server.admin_token_file, folder.join("etc/token"));
    assert_eq!(settings.log.access, AccessLog::File(folder.join("etc/./a.log")));
}

/// A file without or beside a source, and a piece of the error with its line.
#[test]
fn values_that_make_no_sense_together() {
    let cases: [(&str, usize, &str); 62] = [
        ("[limits]\nrequests_per_second = 100\nrequests_burst = 200", 0, ""),
        ("[limits]\nrequests_per_second = 0.5", 0, ""),
        ("[limits]\nrequests_per_second = \"off\"", 0, ""),
        ("[limits]\nrequests_per_second = 0", 3, "possible: 0.01 to 1000000, or \"off\""),
        ("[limits]\nrequests_per_second = 10\nrequests_burst = 0", 4, "too little for requests_burst"),
        ("[limits]\nrequests_burst = 10", 3, "says nothing without requests_per_second"),
        ("[limits]\nconnections = 0", 3, "possible: 1 to 1000000; default: 20000"),
        ("[limits]\nconnections = 9000000", 3, "too much for connections"),
        ("[limits]\nconnections = 10\nconnections_per_address = 11", 4, "never reached"),
        ("[limits]\nheader_bytes = \"2KiB\"\ntarget_bytes = \"4KiB\"", 4, "never reached"),
        ("[limits]\nheader_bytes = 5", 3, "5B is too little for header_bytes"),
        ("[limits]\nheader_fields = 1", 3, "possible: 8 to 256"),
        ("[limits]\nbody_bytes = 0", 3, "too little"),
        ("[limits]\nheader_timeout = \"0s\"", 3, "possible: 1ms to 1h; default: 10s"),
        ("[limits]\nidle_timeout = \"2h\"", 3, "2h is too much for idle_timeout"),
        ("[server]\nworkers = 0", 3, "too little for workers"),
        ("[server]\nshutdown_timeout = \"2d\"", 3, "too much"),
        ("[server]\nlisten = []", 3, "nobody could reach"),
        ("[server]\nlisten = [\"0.0.0.0:80\", \"127.0.0.1:80\"]", 3, "127.0.0.1:80 conflicts"),
        ("[server]\nlisten = [\"unix:/a\", \"unix:/a\"]", 3, "unix:/a conflicts"),
        ("[server]\nlisten = [\"127.0.0.1:2368\"]", 1, "at http://127.0.0.1:2368 Seawall itself listens"),
        ("[server]\nlisten = [\"0.0.0.0:2368\"]", 1, "Seawall itself listens"),
        ("[server]\nlisten = [\"127.0.0.2:2368\"]", 0, ""),
        ("[server]\nlisten = [\"127.0.0.1:2368\"]\n[origin]\nhost = \"other.example\"", 0, ""),
        ("[server]\nlisten = [\"127.0.0.1:9180\"]", 3, "already used by the admin API"),
        ("[server]\ntrusted_proxies = [\"10.0.0.1\"]", 0, ""),
        ("[server]\ntrusted_proxies = [\"0.0.0.0/0\"]", 3, "trusts everybody"),
        ("[server]\ntrusted_fields = [\"X-Forwarded-For\"]", 3, "Seawall tells the origin itself"),
        ("[server]\ntrusted_fields = [\"Cookie\"]", 3, "already has a meaning in HTTP"),
        ("[server]\ntrusted_fields = [\"X_Real_IP\"]", 3, "Seawall tells the origin itself"),
        ("[server]\ntrusted_fields = [\"a b\"]", 3, "not a field name"),
        ("[server]\nadmin_token_file = \"posts\"", 3, "not the path of a file"),
        ("[purge]\nallow = [\"0.0.0.0/0\"]", 3, "any visitor could empty the cache"),
        ("[purge]\nallow = [\"10.0.0.1\"]", 0, ""),
        ("[purge]\npath = \"/\"", 3, "not a path for purge requests"),
        ("[refill]\nconcurrency = 65", 3, "possible: 0 to 64; default: 2"),
        ("[log]\naccess = \"no/such/folder.log\"", 3, "make the folder"),
        ("[cache]\nmemory = \"10KiB\"", 3, "possible: 1MiB to 16TiB; default: 256MiB"),
        ("[cache]\nmemory = \"16MiB\"\nobject_max = \"9MiB\"", 4, "more than half of memory (16MiB)"),
        ("[cache]\nobject_max = \"0B\"", 3, "too little"),
        ("[cache]\ndisk_object_max = \"2TiB\"", 3, "possible: 0B to 1TiB; default: 1GiB"),
        ("[cache]\nhold = \"0s\"", 3, "leave hold out"),
        ("[cache]\nhold = \"400d\"", 3, "up to 365d"),
        ("[cache]\nstale_if_error = \"400d\"", 3, "too much for stale_if_error"),
        ("[cache]\nignore_query = [\"page\"]\nkeep_query = [\"page\"]", 4, "stands in keep_query and in ignore_query"),
        ("[origin]\nconcurrency = 0", 3, "possible: 1 to 65535"),
        ("[origin]\nqueue_timeout = \"0ms\"", 3, "too little for queue_timeout"),
        ("[origin]\nca_file = \"no.pem\"", 3, "there is no file"),
        ("[origin]\nca_file = \"ca.pem\"", 0, ""),
        ("[origin]\naddresses = [\"http://a:1\", \"http://a:1\"]", 3, "is in the list twice"),
        ("[origin]\naddresses = [\"unix:/a\"]\nhost = \"origin\"", 4, "no host name"),
        ("[blog]\ntitle = \"A\"", 3, "[blog] is for folders of Markdown"),
        ("[[site]]\nsource = \"posts\"", 1, "source and [[site]] exclude each other"),
        ("kind = \"blog\"", 2, "is for a folder"),
        ("kind = \"satic\"", 2, "did you mean \"static\"?"),
        ("source = \"b\"", 2, "only once"),
        ("[cache]\nmemory = \"64mb\"", 3, "did you mean \"64MiB\"?"),
        ("[cahce]\nmemory = \"64MiB\"", 2, "did you mean `cache`?"),
        ("[server]\nport = 80", 3, "did you mean `listen`?"),
        ("[server]\nmemory = \"64MiB\"", 3, "`memory` belongs in [cache]"),
        ("[origin]\nhost = \"*.a.example\"", 3, "a request to the origin needs one"),
        ("[blog]\nbase_url = \"a.example\"", 3, "did you mean \"https://a.example\"?"),
    ];
    for (toml, line, piece) in cases {
        let outcome = of_file(&format!("{SOURCE}{toml}"));
        if line == 0 {
            assert!(outcome.is_ok(), "{toml}: {outcome:?}");
            continue;
        }
        let report = outcome.expect_err(toml).to_string();
        assert!(
            report.contains(piece) && report.contains(&format!("seawall.toml:{line}:")),
            "{toml}\nexpected {piece:?} in line {line}\n{report}"
        );
    }
}

#[test]
fn sites_that_make_no_sense_together() {
    let cases = [
        ("", 0, "nothing to serve"),
        ("source = \"empty\"", 1, "is empty"),
        ("source = \"nowhere\"", 1, "there is no folder"),
        ("source = \"localhost:2368\"", 1, "did you mean \"http://localhost:2368\"?"),
        ("source = \"posts\"\nkind = \"generic\"", 2, "is for the address of a server"),
        ("source = \"public\"\nkind = \"blog\"", 2, "needs Markdown"),
        ("source = \"public\"\n[origin]\nqueue = 1", 3, "[origin] is for servers"),
        ("[[site]]\nhosts = [\"a.example\"]", 1, "this site has no source"),
        ("[[site]]\nhosts = []\nsource = \"posts\"", 2, "no hosts"),
        ("[[site]]\nsource = \"posts\"\n[[site]]\nhosts = [\"a\"]\nsource = \"posts\"", 1, "no hosts"),
        (
            "[[site]]\nhosts = [\"a.example\"]\nsource = \"posts\"\n[[site]]\nhosts = [\"b\", \"A.example.\"]\nsource = \"posts\"",
            5,
            "already taken in line 2",
        ),
        ("[[site]]\nhosts = [\"a\", \"a\"]\nsource = \"posts\"", 2, "already taken"),
        ("[[site]]\nhosts = [\"https://a.example\"]\nsource = \"posts\"", 2, "did you mean \"a.example\"?"),
        ("[[site]]\nsource = \"posts\"\n[site.cache]\nmemory = \"1GiB\"", 4, "whole process"),
        ("[[site]]\nsource = \"posts\"\n[site.origin]\nqueue = 1", 4, "[site.origin] is for a server"),
        ("[[site]]\nsource = \"public\"\n[site.blog]\ntitle = \"x\"", 4, "[site.blog] is for a folder of Markdown"),
        ("source = \"posts\"\n[ghost]\npath = \"/blog\"", 3, "[ghost] is for a Ghost"),
        ("source = \"http://a\"\nkind = \"generic\"\n[ghost]\nanalytics = \"off\"", 4, "[ghost] is for a Ghost"),
        ("[[site]]\nsource = \"public\"\n[site.ghost]\nactivitypub = \"off\"", 4, "[site.ghost] is for a Ghost"),
        ("source = \"http://a/blog\"\nkind = \"generic\"", 1, "did you mean \"http://a\"?"),
        ("source = \"http://a\"\n[ghost]\nmember_secret = \"not base64!\"", 3, "cacheMembersContent.hmacSecret"),
        ("[[site]]\nsource = \"http://a\"\n[site.origin]\nca_file = \"ca.pem\"", 4, "ca_file is for https"),
        ("[[site]]\nsource = \"http://a\"\n[site.origin]\nconnect_timeout = \"0s\"", 4, "too little"),
        ("kind = \"blog\"\n[[site]]\nsource = \"posts\"", 1, "no meaning beside [[site]]"),
        ("[origin]\naddresses = [\"http://b\"]\n[[site]]\nsource = \"http://a\"", 2, "cannot share addresses"),
    ];
    for (toml, line, piece) in cases {
        let report = of_file(toml).expect_err(toml).to_string();
        let place = if line == 0 { "--> seawall.toml\n".to_owned() } else { format!("seawall.toml:{line}:") };
        assert!(report.contains(piece) && report.contains(&place), "{toml}\nexpected {piece:?} at {place}\n{report}");
    }
}

#[test]
fn flags_and_variables_are_told_their_own_mistakes() {
    let sites = "[[site]]\nsource = \"posts\"";
    let cases: [(&str, &str, Variables, &str, &str); 12] = [
        (SOURCE, "--memory 12QB", &[], "--memory 12QB", "is not a size"),
        (SOURCE, "--memory 1KiB", &[], "--memory 1KiB", "possible: 1MiB"),
        (SOURCE, "", &[("SEAWALL_MEMORY", "64m")], "SEAWALL_MEMORY=64m", "did you mean \"64MiB\"?"),
        (SOURCE, "--listen 8080", &[], "--listen 8080", "did you mean \"127.0.0.1:8080\"?"),
        (SOURCE, "", &[("SEAWALL_LISTEN", "127.0.0.1:1,:2")], "SEAWALL_LISTEN=:2", "0.0.0.0:2"),
        (SOURCE, "", &[("PORT", "http")], "PORT=http", "a number from 1 to 65535"),
        (SOURCE, "--hold 5", &[], "--hold 5", "did you mean \"5s\"?"),
        (SOURCE, "--config no.toml", &[], "--config no.toml", "there is no file"),
        (SOURCE, "--config posts", &[], "--config posts", "is a folder"),
        ("", "localhost:2368", &[], "| localhost:2368", "http://localhost:2368"),
        (sites, "", &[("SEAWALL_SOURCE", "posts")], "SEAWALL_SOURCE=posts", "cannot replace them"),
        (sites, "--kind blog", &[], "--kind blog", "one --kind cannot be for all"),
    ];
    for (toml, arguments, variables, place, piece) in cases {
        let errors = Folder::new(toml).load(arguments, variables).expect_err(piece);
        let report = errors.to_string();
        assert!(report.contains(place) && report.contains(piece) && errors.0.len() == 1, "expected {place:?} and {piece:?}\n{report}");
    }
}

/// The answer of a server decides where no kind is given, and whether a section for a Ghost means anything.
#[test]
fn what_a_server_answers_goes_into_the_settings() {
    let settings = |toml: &str, arguments: &str, finding: Finding| {
        let place = Folder::new(toml);
        let serve = cli::typed(&format!("seawall serve {arguments}")).expect("serve");
        let mut known = Findings::default();
        known.take(Question { source: "http://127.0.0.1:2368".to_owned(), host: None }, finding);
        let document = find_document(place.0.path(), None, true, &|_| None);
        resolve_in(place.0.path(), document, &serve, |_| None, &known)
    };
    let ghost = |url: &str| Finding::Recognised { software: Software::ghost("6.65", url).expect("a Ghost"), remembered: false };
    let (other, silent) = (Finding::Other("it answers 404".to_owned()), Finding::Silent("refused".to_owned()));
    let site = settings(SOURCE, "", ghost("https://blog.example/journal/")).expect("settings").sites.remove(0);
    assert_eq!((site.kind, site.kind_is_given, site.ghost.path.as_deref()), (Kind::Ghost, false, Some("/journal")));
    // What follows from the kind does too.
    assert!(site.cache.two_visitor_proof && !site.cache.honour_request_directives);
    let kind = |arguments: &str, finding: &Finding| settings(SOURCE, arguments, finding.clone()).expect("settings").sites[0].kind;
    assert_eq!(kind("", &other), Kind::Generic);
    assert_eq!(kind("", &silent), Kind::Generic);
    assert_eq!(kind("--kind ghost", &other), Kind::Ghost);
    assert_eq!(kind("--kind generic", &ghost("https://blog.example/")), Kind::Generic);
    // A Ghost that could not be asked may be one; what has answered otherwise is none.
    let section = format!("{SOURCE}[ghost]\npath = \"/blog\"\n");
    assert_eq!(settings(&section, "", silent).expect("settings").sites[0].ghost.path.as_deref(), Some("/blog"));
    assert!(settings(&section, "", ghost("https://blog.example/")).expect("settings").sites[0].ghost.path.is_none(), "it knows best");
    assert!(settings(&section, "", other.clone()).expect_err("refused").to_string().contains("[ghost] is for a Ghost"));
    settings(&section, "--kind ghost", other).expect("somebody knows better");
}

/// Who reads a message, a log or a dump learns no secret.
#[test]
fn secrets_are_shown_nowhere() {
    let variables: Variables = &[("SEAWALL_GHOST_WEBHOOK_SECRET", "hush-hook"), ("SEAWALL_GHOST_MEMBER_SECRET", "aHVzaC1tZW1iZXI=")];
    let settings = Folder::new(SOURCE).load("--kind ghost", variables).expect("settings");
    let ghost = &settings.sites[0].ghost;
    assert_eq!((ghost.webhook_secret.as_deref(), ghost.member_secret.as_deref()), (Some("hush-hook"), Some(&b"hush-member"[..])));
    let of_file =
        Folder::new(&format!("{SOURCE}kind = \"ghost\"\n[ghost]\nwebhook_secret = \"of-file\"")).load("", variables).expect("settings");
    assert_eq!(of_file.sites[0].ghost.webhook_secret.as_deref(), Some("hush-hook"), "a variable goes before the file");
    let mut shown = vec![format!("{settings:?}")];
    let wrong: [(&str, Variables); 6] = [
        ("[ghost]\nmember_secret = \"hush!\"", &[]),
        ("[ghost]\nmember_secret = 4711 # hush", &[]),
        ("[ghost]\nwebhook_secret = [\"hush\"]", &[]),
        ("[ghost]\nwebhook_secret = \"hush", &[]),
        ("ghost = { webhook_secret = \"hush\", member_secret = \"hush\", x = 1 }", &[]),
        ("", &[("SEAWALL_GHOST_MEMBER_SECRET", "hush!")]),
    ];
    for (toml, variables) in wrong {
        let errors = Folder::new(&format!("{SOURCE}{toml}")).load("", variables).expect_err(toml);
        shown.extend([errors.to_string(), format!("{errors:?}")]);
    }
    for shown in shown {
        assert!(!["hush", "4711", "aHVz"].iter().any(|secret| shown.contains(secret)), "{shown}");
        assert!(!shown.contains(&format!("{:?}", b"hush".to_vec()).replace(['[', ']'], "")), "{shown}");
    }
}

#[test]
fn the_settings_of_a_wordpress() {
    let known_as = |toml: &str, arguments: &str, variables: Variables| Folder::new(toml).load(arguments, variables);
    let of = |toml: &str, variables: Variables| known_as(&format!("{SOURCE}kind = \"wordpress\"\n{toml}"), "", variables);
    let plain = of("", &[]).expect("settings").sites.remove(0).wordpress;
    assert_eq!((plain.path, plain.secret, plain.cron), (None, None, Some(Duration::from_secs(60))));
    let variables: Variables = &[("SEAWALL_WORDPRESS_SECRET", "hush-word")];
    let set = of("[wordpress]\npath = \"/blog\"\nsecret = \"of-file\"\ncron = \"5m\"\n", variables).expect("settings");
    let wordpress = &set.sites[0].wordpress;
    assert_eq!((wordpress.path.as_deref(), wordpress.cron), (Some("/blog"), Some(Duration::from_mins(5))));
    assert_eq!(wordpress.secret.as_deref(), Some("hush-word"), "a variable goes before the file");
    assert!(!format!("{set:?}").contains("hush"));
    assert_eq!(of("[wordpress]\ncron = \"off\"\n", &[]).expect("settings").sites[0].wordpress.cron, None);
    for (wrong, why) in [
        ("[wordpress]\ncron = \"1s\"\n", "cron"),
        ("[wordpress]\ncron = \"2d\"\n", "cron"),
        ("[wordpress]\ncron = \"of\"\n", "cron"),
        ("[wordpress]\npath = \"blog/../x\"\n", "path"),
        ("[wordpress]\nsecret = \"\"\n", "secret"),
    ] {
        assert!(of(wrong, &[]).expect_err(wrong).to_string().contains(why), "{wrong}");
    }
    let foreign = known_as(&format!("{SOURCE}kind = \"generic\"\n[wordpress]\ncron = \"off\"\n"), "", &[]);
    assert!(foreign.expect_err("refused").to_string().contains("[wordpress] is for a WordPress"));
    // In a file with sites, a secret has to say for which of them it is.
    let sites =
        "[[site]]\nhosts = [\"a.example\"]\nsource = \"http://127.0.0.1:1\"\nkind = \"wordpress\"\n[site.wordpress]\nsecret = \"own\"\n";
    assert_eq!(known_as(sites, "", &[]).expect("settings").sites[0].wordpress.secret.as_deref(), Some("own"));
    assert!(known_as(sites, "", variables).expect_err("refused").to_string().contains("one WordPress's secret cannot be for all"));
}

/// The text of one report, whole.
#[test]
fn all_errors_are_shown_at_once() {
    let toml = "source = \"127.0.0.1:2368\"\n\n[server]\nlisen = [\"0.0.0.0:80\"]\n\n[cache]\nmemory = \"10mb\"\nhold = \"0s\"\n";
    let report = Folder::new(toml).load("--workers 0", &[]).expect_err("five errors").to_string();
    let expected = "\
error: `lisen` is not a key of [server]
 --> seawall.toml:4:1
  |
4 | lisen = [\"0.0.0.0:80\"]
  | ^^^^^ did you mean `listen`?
  |
  = keys here: listen, admin, admin_token_file, workers, h2c, http3, http3_port, trusted_proxies, trusted_fields, health_path, shutdown_timeout

error: \"10mb\" is not a size
 --> seawall.toml:7:10
  |
7 | memory = \"10mb\"
  |          ^^^^^^ did you mean \"10MiB\"?
  |
  = a size is a whole number and a unit: B, KiB, MiB, GiB, TiB (or KB, MB, GB, TB for powers of ten), such as \"64MiB\"

error: 0 is too little for --workers
 --> the command line
  |
  | --workers 0
  |           ^
  |
  = possible: 1 to 1024; default: CORES

error: a hold of zero would keep nothing
 --> seawall.toml:8:8
  |
8 | hold = \"0s\"
  |        ^^^^
  |
  = leave hold out to keep responses as long as they say themselves, or write at least \"1ms\"

error: \"127.0.0.1:2368\" is neither a folder nor the address of a server
 --> seawall.toml:1:10
  |
1 | source = \"127.0.0.1:2368\"
  |          ^^^^^^^^^^^^^^^^ did you mean \"http://127.0.0.1:2368\"?
  |
  = the address of a server begins with http:// or https://
";
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).to_string();
    assert_eq!(report, expected.replace("CORES", &cores));
}

#[test]
fn what_is_faulty_is_not_called_absent_too() {
    for toml in [
        "soruce = \"posts\"",
        "source = 5",
        "source = \"posts",
        "[[site]]\nhots = [\"a\"]\nsource = \"posts\"\n[[site]]\nhosts = [\"b\"]\nsource = 1",
    ] {
        let errors = of_file(toml).expect_err(toml);
        assert!(!errors.to_string().contains("no source") && !errors.to_string().contains("no hosts"), "{errors}");
    }
}

#[test]
fn an_error_in_a_common_section_is_shown_once() {
    let toml = "[cache]\nhold = \"0s\"\n[[site]]\nhosts = [\"a\"]\nsource = \"posts\"\n[[site]]\nhosts = [\"b\"]\nsource = \"posts\"";
    assert_eq!(of_file(toml).expect_err("one error").0.len(), 1);
}

#[test]
fn check_reads_the_file_alone() {
    let place = Folder::new("source = \"public\"");
    assert_eq!(check(&place.0.path().join("seawall.toml")).expect("settings").sites[0].kind, Kind::Static);
    assert!(check(&place.0.path().join("other.toml")).expect_err("missing").to_string().contains("there is no file"));
    fs::write(place.0.path().join("latin1.toml"), b"a = 1\nb = \"\xe4\"").expect("a file");
    assert!(check(&place.0.path().join("latin1.toml")).expect_err("not UTF-8").to_string().contains("not UTF-8 text (line 2)"));
}

#[test]
fn a_folder_of_files_has_its_own_section() {
    let files = |toml: &str| of_file(toml).map(|settings| settings.sites[0].files.clone());
    let settings = files("source = \"public\"\n[static]\nlisting = true\nfallback = \"/index.html\"").expect("settings");
    assert_eq!(settings, settings::FilesSettings { listing: true, fallback: Some("index.html".into()) });
    for name in ["missing.html", "../ca.pem", ".env", ""] {
        let error = files(&format!("source = \"public\"\n[static]\nfallback = \"{name}\"")).expect_err(name).to_string();
        assert!(error.contains("seawall.toml:3") && error.contains("there is no file"), "{error}");
    }
    let error = files("source = \"posts\"\n[static]\nlisting = true").expect_err("a blog").to_string();
    assert!(error.contains("[static] is for folders of finished files"), "{error}");
}

#[test]
fn where_php_runs_is_said_of_a_folder_with_php() {
    let folder = Folder::new("");
    for (arguments, kind) in [("public --php 127.0.0.1:9000", Kind::Php), ("public --kind php --php unix:/run/php.sock", Kind::Php)] {
        let settings = folder.load(arguments, &[]).expect(arguments);
        assert!(settings.sites[0].kind == kind && settings.sites[0].php.as_ref().is_some_and(|php| !php.is_found), "{arguments}");
    }
    for (arguments, problem) in [
        ("http://127.0.0.1:1 --php 127.0.0.1:9000", "the address of php-fpm is for a folder"),
        ("public --kind static --php 127.0.0.1:9000", "the address of php-fpm is for a folder"),
        ("public --php tcp://127.0.0.1:9000", "did you mean \"127.0.0.1:9000\"?"),
    ] {
        let error = folder.load(arguments, &[]).expect_err(arguments).to_string();
        assert!(error.contains(problem), "{arguments}: {error}");
    }
    let nowhere = "source = \"public\"\nkind = \"php\"\n[php]\nserver = \"127.0.0.1:9000\"\ntemporary_folder = \"nowhere\"";
    let error = of_file(nowhere).expect_err("no such folder").to_string();
    assert!(error.contains("there is no folder") && error.contains("nowhere"), "{error}");
    let error = of_file("source = \"public\"\n[php]\nnever_run = []").expect_err("no PHP").to_string();
    assert!(error.contains("[php] is for folders with an application in PHP"), "{error}");
}

#[test]
fn alerts_name_a_receiver_and_a_program_that_are_there() {
    let source = "source = \"http://127.0.0.1:2368\"\n[alerts]\n";
    let said = |keys: &str| of_file(&format!("{source}{keys}")).map(|settings| settings.alerts);
    let alerts =
        said("webhook = \"https://hooks.example.org/x\"\nwebhook_secret = \"key\"\nserver = \"web1\"\noff = [\"disk\"]").expect("settings");
    let webhook = alerts.webhook.as_ref().expect("a webhook");
    assert_eq!(
        (webhook.url.path(), webhook.secret.as_deref(), alerts.server.as_str(), alerts.rules.off.len()),
        ("/x", Some("key"), "web1", 1)
    );
    assert!(!format!("{alerts:?}").contains("key"), "{alerts:?}");
    for (keys, problem) in [
        ("webhook_secret = \"key\"", "webhook_secret has no effect without webhook"),
        ("webhook_fields = [\"X-A: b\"]", "webhook_fields has no effect without webhook"),
        ("webhook_resolved = \"https://a.example/\"", "webhook_resolved has no effect without webhook"),
        ("command = []", "command names no program"),
        ("command = [\"nowhere/notify\"]", "there is no file"),
        ("after = \"2d\"", "2d is too much for after"),
        ("certificate_left = \"1h\"", "1h is too little for certificate_left"),
        ("server_errors = 0", "0 is too little for server_errors"),
        ("server = \"\"", "this is not the name of a server"),
        ("off = [\"dsk\"]", "did you mean \"disk\"?"),
    ] {
        let error = said(keys).expect_err(keys).to_string();
        assert!(error.contains(problem), "{keys}: {error}");
    }
}

#[test]
fn a_machine_is_part_of_a_cluster_if_a_server_is_named() {
    let source = "source = \"http://127.0.0.1:2368\"\n";
    let place = |keys: &str| {
        let place = Folder::new(&format!("{source}[cluster]\n{keys}"));
        fs::write(place.0.path().join("secret"), "hush-0123456789abcdef\n").expect("a file");
        place
    };
    assert_eq!(of_file(source).expect("settings").cluster, None);
    let cluster = |keys: &str, variables| place(keys).load("", variables).map(|settings| settings.cluster.expect("a cluster"));
    let plain = cluster("url = \"redis://valkey:6379\"\nsecret_file = \"secret\"\nmachine = \"web1\"", &[]).expect("settings");
    assert_eq!(
        (plain.address.to_string().as_str(), plain.name.as_str(), plain.machine.as_str(), plain.secret.as_str()),
        ("redis://valkey:6379", "seawall", "web1", "hush-0123456789abcdef")
    );
    assert_eq!(
        (plain.lease, plain.doubt_hold, plain.replicas, plain.tier, plain.ca_file),
        (Duration::from_secs(2), Duration::from_secs(5), 0, settings::Tier::None, None)
    );
    const VARIABLES: Variables = &[
        ("SEAWALL_CLUSTER_URL", "redis+sentinel://:hush@a:26379,b:26379/blog"),
        ("SEAWALL_CLUSTER_SECRET", "hush-fedcba9876543210"),
        ("SEAWALL_CLUSTER_NAME", "two"),
        ("SEAWALL_CLUSTER_MACHINE", "web2"),
    ];
    let outside = cluster("url = \"redis://valkey:6379\"\nsecret_file = \"secret\"\nmachine = \"web1\"", VARIABLES).expect("settings");
    assert_eq!((outside.name.as_str(), outside.machine.as_str(), outside.secret.as_str()), ("two", "web2", "hush-fedcba9876543210"));
    assert!(!format!("{outside:?}").contains("hush"), "{outside:?}");
    let list = "url = [\"redis://a:1\", \"redis://b:1\"]\nsecret = \"0123456789abcdef\"";
    cluster(list, &[]).expect("a primary and its replica");
    let url = "url = \"rediss://:hush@a\"\n";
    let secret = "secret = \"hush-0123456789abcdef\"\n";
    for (keys, problem) in [
        ("url = \"redis://:hush@a\"".to_owned(), "a cluster needs a secret"),
        (format!("{url}secret = \"hush\""), "this secret is too short"),
        (format!("{url}{secret}secret_file = \"secret\""), "there are both secret and secret_file"),
        (format!("{url}secret_file = \"nowhere\""), "cannot read"),
        (format!("url = \"a:1\"\n{secret}"), "did you mean \"redis://a:1\"?"),
        (format!("url = [\"redis+cluster://:hush@a:1\", \"redis://:hush@b\"]\n{secret}"), "a list has plain addresses alone"),
        (format!("url = 6379\n{secret}"), "an address such as"),
        (format!("{url}{secret}lease = \"100ms\""), "100ms is too little for lease"),
        (format!("{url}{secret}lease = \"1m\""), "1m is too much for lease"),
        (format!("{url}{secret}machine = \"a b\""), "is not a name here"),
        (format!("{url}{secret}tier = \"redis\""), "did you mean \"valkey\"?"),
        (format!("{url}{secret}ca_file = \"nowhere.pem\""), "there is no file"),
        (format!("url = \"redis://a\"\n{secret}ca_file = \"secret\""), "ca_file has no effect without TLS"),
        ("lease = \"2s\"".to_owned(), "lease has no effect without url"),
        (format!("{url}{secret}leese = \"2s\""), "did you mean `lease`?"),
    ] {
        let errors = place(&keys).load("", &[]).expect_err(&keys).to_string();
        assert!(errors.contains(problem) && !errors.contains("hush"), "{keys}\n{errors}");
        assert_eq!(errors.matches("error: ").count(), 1, "{keys}\n{errors}");
    }
    let errors = place("").load("", &[("SEAWALL_CLUSTER_URL", "redis://:hush@a"), ("SEAWALL_CLUSTER_SECRET", "hush")]).expect_err("short");
    assert!(errors.to_string().contains("this secret is too short") && !errors.to_string().contains("hush"), "{errors}");
}

/// The file goes before Amazon's variables, and no part of a key is taken from both.
#[test]
fn a_tier_in_a_bucket_has_a_key_from_the_file_or_from_the_environment() {
    let place = |keys: &str| {
        let cluster = "url = \"redis://valkey\"\nsecret = \"0123456789abcdef\"\nmachine = \"web1\"";
        let place = Folder::new(&format!("source = \"http://127.0.0.1:2368\"\n[cluster]\n{cluster}\n{keys}"));
        fs::write(place.0.path().join("key"), "hush-of-the-file\n").expect("a file");
        place
    };
    let bucket = |keys: &str, variables| match place(keys).load("", variables).expect(keys).cluster.expect("a cluster").tier {
        settings::Tier::Bucket { options, ca_file: None } => *options,
        other => panic!("{other:?}"),
    };
    let tier = "tier = \"s3://pages/seawall\"\n";
    let own = format!(
        "{tier}tier_endpoint = \"http://10.0.0.9:9000/\"\ntier_region = \"garage\"\ntier_key_id = \"OWN\"\ntier_secret_key_file = \"key\""
    );
    const VARIABLES: Variables = &[
        ("AWS_ACCESS_KEY_ID", "AKIA"),
        ("AWS_SECRET_ACCESS_KEY", "hush-of-amazon"),
        ("AWS_SESSION_TOKEN", "hush-hush"),
        ("AWS_DEFAULT_REGION", "eu-west-1"),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ENDPOINT_URL", "https://s3.example.org"),
    ];
    let of_file = BucketOptions {
        name: "pages".to_owned(),
        prefix: "seawall".to_owned(),
        endpoint: Some("http://10.0.0.9:9000".to_owned()),
        region: "garage".to_owned(),
        key_id: "OWN".to_owned(),
        secret_key: "hush-of-the-file".to_owned(),
        token: None,
        authorities: None,
    };
    assert_eq!(bucket(&own, &[]), of_file);
    assert_eq!(bucket(&own, VARIABLES), of_file);
    let of_amazon = BucketOptions {
        endpoint: Some("https://s3.example.org".to_owned()),
        region: "eu-central-1".to_owned(),
        key_id: "AKIA".to_owned(),
        secret_key: "hush-of-amazon".to_owned(),
        token: Some("hush-hush".to_owned()),
        ..of_file
    };
    assert_eq!(bucket(tier, VARIABLES), of_amazon);
    let plain = bucket(tier, &VARIABLES[..2]);
    assert_eq!((plain.endpoint, plain.region.as_str(), plain.token), (None, "us-east-1", None));

    for (keys, variables, problem) in [
        (tier.to_owned(), &[][..], "the bucket has no access key"),
        (tier.to_owned(), &VARIABLES[..1], "the bucket has no access key"),
        (format!("{tier}tier_key_id = \"OWN\""), VARIABLES, "the bucket has no access key"),
        (format!("{own}\ntier_secret_key = \"hush\""), &[], "there are both tier_secret_key and tier_secret_key_file"),
        (format!("{own}\ntier_ca_file = \"key\""), &[], "tier_ca_file has no effect without TLS"),
        (format!("{own}\ntier_ca_file = \"nowhere\""), &[], "there is no file"),
        (tier.replace("pages", "Pages"), VARIABLES, "is not the name of a bucket"),
        (tier.replace("s3", "s3a"), VARIABLES, "did you mean \"s3://pages/seawall\"?"),
        ("tier_region = \"a\"".to_owned(), &[], "tier_region has no effect without a bucket"),
        ("tier = \"valkey\"\ntier_key_id = \"OWN\"".to_owned(), &[], "tier_key_id has no effect without a bucket"),
        (tier.to_owned(), &[("AWS_ENDPOINT_URL_S3", "s3.example.org:9000")], "is not the address of a storage"),
    ] {
        let errors = place(&keys).load("", variables).expect_err(&keys).to_string();
        assert!(errors.contains(problem) && !errors.contains("hush"), "{keys}\n{errors}");
    }
}

/// What the manual says a default is, it is: writing it down changes nothing.
#[test]
fn documented_defaults_are_the_defaults() {
    for section in manual::sections().into_iter().filter(|section| !matches!(section.name, "" | "site")) {
        let source = match section.name {
            "blog" => "source = \"posts\"",
            "static" => "source = \"public\"",
            "php" => "source = \"public\"\nkind = \"php\"",
            _ => "source = \"http://127.0.0.1:2368\"",
        };
        // Whether PHP is on this machine does not matter.
        let environment: &[(&str, &str)] = if section.name == "php" { &[("SEAWALL_PHP", "127.0.0.1:9000")] } else { &[] };
        let place = Folder::new(source);
        let plain = place.load("", environment).expect("settings");
        for key in &section.keys {
            let Some(default) = key.default() else { continue };
            let header = match section.name {
                "route" => "[[route]]\npath = \"/a\"\nsource = \"http://127.0.0.1:1\"".to_owned(),
                "cluster" => "[cluster]\nurl = \"redis://a\"\nmachine = \"m\"\nsecret = \"0123456789abcdef\"".to_owned(),
                name => format!("[{name}]"),
            };
            let write = |text: String| fs::write(place.0.path().join("seawall.toml"), text).expect("a file");
            write(format!("{source}\n{header}\n"));
            let plain =
                if matches!(section.name, "route" | "cluster") { place.load("", environment).expect("settings") } else { plain.clone() };
            write(format!("{source}\n{header}\n{} = {default}\n", key.name));
            assert_eq!(place.load("", environment).as_ref(), Ok(&plain), "[{}] {} = {default}", section.name, key.name);
        }
    }
}

/// Every example, from the root of the repository and from its own folder.
#[test]
fn examples_are_sound() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seen = 0;
    for entry in fs::read_dir(root.join("examples")).expect("the examples") {
        let name = entry.expect("an example").file_name().into_string().expect("a name");
        if !name.ends_with(".toml") {
            continue;
        }
        seen += 1;
        let sites = if name == "several-sites.toml" { 3 } else { 1 };
        for (folder, file) in [(root.clone(), format!("examples/{name}")), (root.join("examples"), name.clone())] {
            let flags = Serve { config: Some(file.into()), ..Serve::default() };
            let settings = load_in(&folder, &flags, |_| None).unwrap_or_else(|errors| panic!("{name}\n{errors}"));
            assert_eq!(settings.sites.len(), sites, "{name}");
            let found = cli::look(&name, &settings);
            assert!(found.faults.is_empty(), "{found:?}");
        }
    }
    assert_eq!(seen, 4);
}

/// What was written on the command line is spoken of with its flag, what was written in the environment with its variable.
#[test]
fn a_mistake_is_told_in_the_words_of_where_it_was_made() {
    let place = Folder::without_file();
    let said = |arguments: &str, variables: Variables| place.load(arguments, variables).expect_err(arguments).to_string();
    for (arguments, variables, expected) in [
        ("public --kind generic", &[][..], "--kind generic is for the address of a server"),
        (
            "public --kind generic",
            &[],
            "write --kind static for finished files, --kind blog for Markdown, --kind php for an application in PHP or --kind wordpress for a WordPress, or leave --kind out",
        ),
        ("public", &[("SEAWALL_KIND", "generic")], "SEAWALL_KIND=generic is for the address of a server"),
        ("http://a --memory 1KiB", &[], "1KiB is too little for --memory"),
        ("http://a", &[("SEAWALL_MEMORY", "1KiB")], "1KiB is too little for SEAWALL_MEMORY"),
        ("http://a --workers 5000", &[], "5000 is too much for --workers"),
        ("http://a --hold 0s", &[], "leave --hold out"),
        ("http://a --tls-key /k", &[], "--tls-cert"),
    ] {
        let shown = said(arguments, variables);
        assert!(shown.contains(expected), "{arguments}: {expected}\n{shown}");
    }
    for (toml, expected) in [
        ("source = \"public\"\nkind = \"generic\"", "kind = \"generic\" is for the address of a server"),
        ("source = \"http://a\"\n[cache]\nmemory = \"1KiB\"", "1KiB is too little for memory"),
    ] {
        let shown = of_file(toml).expect_err(toml).to_string();
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
}

#[test]
fn routes_and_moved_names_say_what_is_wrong_with_them() {
    let route = |lines: &str| format!("{SOURCE}[[route]]\n{lines}");
    for (toml, expected) in [
        (route("path = \"/a\""), "this route has no source"),
        (route("source = \"http://a\""), "this route has no path"),
        (route("path = \"/\"\nsource = \"http://a\""), "is the whole site"),
        (route("path = \"api\"\nsource = \"http://a\""), "did you mean \"/api\"?"),
        (route("path = \"/a\"\nsource = \"public\""), "is not the address of an origin server"),
        (route("path = \"/a\"\nsource = \"http://a\"\nprefix = 1"), "`prefix` is not a key of [[route]]"),
        (route("path = \"/a\"\nsource = \"http://a\"\n[[route]]\npath = \"/a/\"\nsource = \"http://b\""), "taken by a route before it"),
        (format!("{SOURCE}[route]\npath = \"/a\""), "[[route]]"),
        (format!("{SOURCE}redirect_from = [\"www.a.example\"]"), "there is no name to which visitors of \"www.a.example\" could be sent"),
        ("[[site]]\nhosts = [\"a.example\"]\nredirect_from = [\"a.example\"]\nsource = \"http://a\"".to_owned(), "is the name of a site"),
        ("[[site]]\nhosts = [\"a.example\"]\nredirect_from = [\"*.a.example\"]\nsource = \"http://a\"".to_owned(), "stands for many names"),
        (
            "redirect_from = [\"w.example\"]\n[[site]]\nhosts = [\"a.example\"]\nsource = \"http://a\"".to_owned(),
            "has no meaning beside [[site]]",
        ),
    ] {
        let shown = of_file(&toml).expect_err(&toml).to_string();
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
    let place = Folder::without_file();
    let line = "http://a --domain a.example --redirect-from www.a.example --route /api=http://127.0.0.1:1 --tls-listen 127.0.0.1:0";
    let settings = place.load(line, &[("HOME", "/home/ada")]).expect("settings");
    let [site] = &settings.sites[..] else { panic!("one site") };
    assert_eq!((site.redirect_from.as_slice(), site.redirect_to()), (&["www.a.example".to_owned()][..], Some("a.example")));
    assert_eq!((site.routes[0].path.as_str(), site.routes[0].is_cached, site.routes[0].strip_prefix), ("/api", true, false));
    let acme = settings.tls.and_then(|tls| tls.acme).expect("certificates");
    assert_eq!((acme.names, acme.twins), (vec!["a.example".to_owned(), "www.a.example".to_owned()], vec![]));
    let shown = place.load("http://a --redirect-from www.a.example", &[]).expect_err("no name").to_string();
    assert!(shown.contains("--domain NAME"), "{shown}");
}

#[test]
fn a_purge_finds_the_admin_api() {
    let purge = |arguments: &str| cli::typed::<cli::Purge>(&format!("seawall purge --all {arguments}")).expect("purge").access;
    let home = |name: &str| (name == "XDG_STATE_HOME").then(|| "/state".to_owned());
    let place = Folder::new("nonsense = 1\n[server]\nadmin = \"127.0.0.1:1\"\nadmin_token_file = \"/token\"");
    let access = |address: &str, token: &str| AdminAccess { address: address.parse().expect(address), token_file: token.into() };
    assert_eq!(admin_access_in(place.0.path(), &purge(""), home), Ok(access("127.0.0.1:1", "/token")));
    assert_eq!(admin_access_in(place.0.path(), &purge("--admin 127.0.0.1:2 --token-file /t"), home), Ok(access("127.0.0.1:2", "/t")));
    let without = Folder::without_file();
    assert_eq!(admin_access_in(without.0.path(), &purge(""), home), Ok(access("127.0.0.1:9180", "/state/seawall/admin-token")));
    assert!(admin_access_in(without.0.path(), &purge("--admin off"), home).expect_err("off").to_string().contains("is off"));
    assert!(admin_access_in(without.0.path(), &purge("--admin 9180"), home).expect_err("a slip").to_string().contains("127.0.0.1:9180"));
}

/// Makes a folder with a certificate for `blog.example`, and its key.
fn with_certificate(toml: &str) -> Folder {
    let place = Folder::new(toml);
    let made = rcgen::generate_simple_self_signed(vec!["blog.example".to_owned()]).expect("a certificate");
    fs::write(place.0.path().join("cert.pem"), made.cert.pem()).expect("written");
    fs::write(place.0.path().join("key.pem"), made.signing_key.serialize_pem()).expect("written");
    place
}

#[test]
fn a_certificate_is_enough_for_https() {
    let place = with_certificate(SOURCE);
    let tls = |arguments: &str, variables| place.load(arguments, variables).expect(arguments).tls;
    assert_eq!(tls("", &[]), None);
    let by_default = tls("--tls-cert cert.pem --tls-key key.pem", &[]).expect("TLS");
    assert_eq!(by_default.listen, ["127.0.0.1:8443".parse().expect("an address")]);
    assert_eq!(by_default.certificates.len(), 1);
    assert!(by_default.certificates[0].is_default);
    let variables = &[("SEAWALL_TLS_LISTEN", "0.0.0.0:1,0.0.0.0:2"), ("SEAWALL_TLS_CERT", "cert.pem"), ("SEAWALL_TLS_KEY", "key.pem")];
    assert_eq!(tls("", variables).expect("TLS").listen.len(), 2);
    let domain = place.load("--domain Blog.example --tls-cert cert.pem --tls-key key.pem", &[]).expect("a domain");
    assert_eq!((domain.sites[0].hosts[0].as_str(), domain.server.listen), ("blog.example", vec![tcp("0.0.0.0:80"), tcp("[::]:80")]));
    assert_eq!(domain.tls.expect("TLS").listen, ["0.0.0.0:443", "[::]:443"].map(|address| address.parse().expect("an address")));

    let sites = "[[site]]\nhosts = [\"a.example\"]\nsource = \"public\"\ntls = { cert = \"cert.pem\", key = \"key.pem\" }\n";
    let tls = with_certificate(sites).load("", &[]).expect("a site's own").tls.expect("TLS");
    assert!(!tls.certificates[0].is_default);
}

#[test]
fn https_that_cannot_be_is_told_with_its_place() {
    let cases = [
        ("[tls]\nlisten = [\"127.0.0.1:8443\"]", "HTTPS needs a certificate"),
        ("[tls]\nkey = \"key.pem\"", "a key without its certificate"),
        ("[tls]\ncert = \"none.pem\"\nkey = \"key.pem\"", "none.pem cannot be read"),
        ("[tls]\ncert = \"cert.pem\"", "cert.pem holds no private key"),
        ("[tls]\ncert = \"key.pem\"\nkey = \"key.pem\"", "key.pem holds no certificate"),
        ("[tls]\nlisten = [\"127.0.0.1:8080\"]\ncert = \"cert.pem\"\nkey = \"key.pem\"", "is already used for plain HTTP"),
        ("[tls]\nlisten = [\"127.0.0.1:9180\"]\ncert = \"cert.pem\"\nkey = \"key.pem\"", "is already used by the admin API"),
        ("[tls]\nlisten = [\"unix:/run/a.sock\"]\ncert = \"cert.pem\"\nkey = \"key.pem\"", "TLS is not spoken on a Unix socket"),
        ("[tls]\nlisten = [\"[::1]:1\", \"[::1]:1\"]\ncert = \"cert.pem\"\nkey = \"key.pem\"", "conflicts with an earlier address"),
    ];
    for (section, expected) in cases {
        let errors = with_certificate(&format!("{SOURCE}{section}")).load("", &[]).expect_err(section).to_string();
        assert!(errors.contains(expected) && errors.contains("seawall.toml:"), "{section}\n{errors}");
    }
    let errors = Folder::new(SOURCE).load("--tls-cert none.pem", &[]).expect_err("no such file").to_string();
    assert!(errors.contains("--tls-cert none.pem"), "{errors}");
}

#[test]
fn a_platform_needs_no_file() {
    let folder = Folder::without_file();
    let by_flags = folder.load("public --trusted-proxies private --https-redirect", &[("PORT", "3000")]).expect("settings");
    let by_variables =
        folder.load("public", &[("PORT", "3000"), ("SEAWALL_TRUSTED_PROXIES", "private"), ("SEAWALL_HTTPS_REDIRECT", "true")]);
    assert_eq!(by_variables.as_ref(), Ok(&by_flags));
    assert_eq!(by_flags.server.listen, [tcp("0.0.0.0:3000")]);
    assert!(by_flags.sites[0].https_redirect == Redirect::Always && by_flags.warnings.is_empty());
    assert!(
        by_flags
            .server
            .trusted_proxies
            .iter()
            .any(|network| network.contains(&"10.0.0.1".parse::<std::net::IpAddr>().expect("an address")))
    );

    let of_file = Folder::new("source = \"public\"\n[server]\ntrusted_proxies = [\"10.0.0.0/8\"]\n[https]\nredirect = true");
    let overridden =
        of_file.load("--trusted-proxies 192.0.2.7/32,198.51.100.0/24", &[("SEAWALL_HTTPS_REDIRECT", "off")]).expect("settings");
    assert_eq!(overridden.server.trusted_proxies.len(), 2);
    assert_eq!(overridden.sites[0].https_redirect, Redirect::Never);

    let errors = folder.load("public --trusted-proxies localhost", &[("SEAWALL_HTTPS_REDIRECT", "maybe")]).expect_err("slips").to_string();
    assert!(errors.contains("did you mean \"127.0.0.1/32\"?") && errors.contains("neither true nor false"), "{errors}");
    // It would never redirect anybody: that is hardly meant.
    let in_vain = folder.load("public --https-redirect", &[]).expect("settings");
    assert!(in_vain.warnings[0].contains("trusted_proxies"), "{:?}", in_vain.warnings);
}

#[test]
fn a_domain_gets_its_certificate_by_itself() {
    let place = Folder::without_file();
    let settings = place.load("http://127.0.0.1:2368 --domain example.org", &[("HOME", "/home/ada")]).expect("settings");
    assert_eq!(settings.server.listen, [tcp("0.0.0.0:80"), tcp("[::]:80")]);
    assert_eq!(settings.sites[0].https_redirect, Redirect::OnceCertified);
    let tls = settings.tls.expect("TLS");
    assert_eq!(tls.listen, ["0.0.0.0:443", "[::]:443"].map(|address| address.parse::<SocketAddr>().expect("an address")));
    let acme = tls.acme.expect("certificates that come by themselves");
    assert_eq!(acme.names, ["example.org"]);
    assert_eq!(acme.twins, [("www.example.org".to_owned(), "example.org".to_owned())]);
    assert_eq!(acme.options.directory, "https://acme-v02.api.letsencrypt.org/directory");
    assert_eq!(acme.options.folder, Path::new("/home/ada/.local/state/seawall/acme"));
    assert_eq!(acme.options.methods, [::acme::Method::Http01, ::acme::Method::TlsAlpn01]);
}

#[test]
fn a_domain_brings_the_way_to_https_unless_somebody_says_otherwise() {
    for (redirect, expected) in
        [("", Redirect::OnceCertified), ("redirect = false", Redirect::Never), ("redirect = true", Redirect::Always)]
    {
        let place = Folder::new(&format!("source = \"http://127.0.0.1:2368\"\n[https]\n{redirect}"));
        let settings = place.load("--domain example.org", &[("HOME", "/home/ada")]).expect("settings");
        assert_eq!(settings.sites[0].https_redirect, expected, "{redirect}");
    }
    let off = Folder::without_file().load("public --domain example.org", &[("HOME", "/home/ada"), ("SEAWALL_HTTPS_REDIRECT", "off")]);
    assert_eq!(off.expect("settings").sites[0].https_redirect, Redirect::Never);
}

#[test]
fn certificates_come_for_all_hosts_but_not_where_they_are_off() {
    let hosts =
        "[tls]\nlisten = [\"127.0.0.1:8443\"]\n[[site]]\nhosts = [\"a.example.org\", \"b.example.org\"]\nsource = \"http://127.0.0.1:1\"\n";
    let settings = of_file(&format!("{hosts}[[site]]\nhosts = [\"c.example.org\"]\nsource = \"http://127.0.0.1:2\"\n")).expect("settings");
    let acme = settings.tls.expect("TLS").acme.expect("certificates");
    assert_eq!(acme.names, ["a.example.org", "b.example.org", "c.example.org"]);
    assert_eq!(acme.twins, []);
    let errors = of_file(&format!("[acme]\nenabled = false\n{hosts}")).expect_err("no certificate at all").to_string();
    assert!(errors.contains("HTTPS needs a certificate"), "{errors}");
}

#[test]
fn mistakes_about_certificates_are_told_with_their_remedy() {
    let hosts = "[tls]\nlisten = [\"127.0.0.1:8443\"]\n[[site]]\nhosts = [\"a.example.org\"]\nsource = \"http://127.0.0.1:1\"\n";
    for (keys, expected) in [
        ("directory = \"zerossl\"", "\"zerossl\" is not a certificate authority"),
        ("email = \"me\"", "\"me\" is not an e-mail address"),
        ("eab_key_id = \"kid-1\"", "eab_key_id and eab_key_file belong together"),
        ("eab_key_id = \"kid-1\"\neab_key_file = \"ca.pem\"", "holds no key"),
        ("dns_hook = \"absent\"", "there is no file"),
        ("on_demand = true", "on_demand does not say which names may get a certificate"),
        ("on_demand = true\nask = \"localhost\"", "\"localhost\" cannot be asked"),
        ("dns_hook_timeout = \"2h\"", "too much for dns_hook_timeout"),
    ] {
        let errors = of_file(&format!("[acme]\n{keys}\n{hosts}")).expect_err(keys).to_string();
        assert!(errors.contains(expected), "{keys}: {errors}");
    }
}
