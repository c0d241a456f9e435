//! A folder as applications have it, and what answers for a path in it.

use std::{fs, os::unix::fs::symlink, sync::Arc};

use bytes::Bytes;
use http_body_util::BodyExt;
use semantics::Scheme;
use tempfile::TempDir;
use testkit::FastCgiServer as Server;

use super::*;
use crate::{
    fastcgi::FastCgiServer,
    files::Root,
    server::{Address, ServerOptions, with_roots},
};

/// A site like WordPress, and what must not get out of it.
struct Site {
    place: TempDir,
}

impl Site {
    fn new() -> Self {
        let site = Self { place: TempDir::new().expect("a folder") };
        for path in [
            "index.php",
            "wp-login.php",
            "wp-admin/index.php",
            "wp-admin/admin.php",
            "wp-content/index.php",
            "wp-content/uploads/2024/photo.jpg",
            "wp-content/uploads/2024/evil.php",
            "wp-content/uploads/index.php",
            "wp-content/uploads/2024/x.jpg",
            "wp-content/themes/style.css",
            "docs/index.html",
            "empty/deep/a.txt",
            "wp-config.php.bak",
            "wp-config.php~",
            "wp-config.php",
            "wp-config-backup.php",
            "wp-config copy.php",
            "lib.inc",
            "dump.sql",
            ".htaccess",
            ".git/config",
            ".well-known/security.txt",
            "UPPER.PHP",
            "about",
            "café.txt",
        ] {
            site.write(path, path);
        }
        site
    }

    fn root(&self) -> PathBuf {
        self.place.path().join("site")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// Returns what a path stands for, in a few words.
    fn looked_up(&self, links: Links, path: &str) -> String {
        let root = Root::open_with(&self.root(), links).expect("a folder");
        match lookup::find(&root, path, &PhpOptions::default().not_run).expect("a disk that works") {
            ScriptLookup::Script { name, path_info } if path_info.is_empty() => format!("run {name}"),
            ScriptLookup::Script { name, path_info } => format!("run {name} with {path_info}"),
            ScriptLookup::File(entry) => format!("send {}", entry.name.display()),
            ScriptLookup::WithSlash => "add a slash".to_owned(),
            ScriptLookup::Forbidden => "forbidden".to_owned(),
            ScriptLookup::Nothing => "nothing".to_owned(),
        }
    }
}

#[test]
fn a_path_is_a_file_then_a_folders_index_then_index_php() {
    let site = Site::new();
    for (path, answer) in [
        ("/", "run /index.php"),
        ("/index.php", "run /index.php"),
        ("/2024/hello-world/", "run /index.php"),
        ("/missing.jpg", "run /index.php"),
        ("/missing.php", "run /index.php"),
        ("/wp-login.php", "run /wp-login.php"),
        ("/%77p-login.php", "run /wp-login.php"),
        ("/wp-admin", "add a slash"),
        ("/wp-admin/", "run /wp-admin/index.php"),
        ("/docs/", "send docs/index.html"),
        ("/docs", "add a slash"),
        ("/empty", "run /index.php"),
        ("/empty/", "run /index.php"),
        ("/empty/deep/a.txt", "send empty/deep/a.txt"),
        ("/empty/deep/a.txt/", "run /index.php"),
        ("/about", "send about"),
        ("/caf%C3%A9.txt", "send café.txt"),
        ("/wp-content/uploads/2024/photo.jpg", "send wp-content/uploads/2024/photo.jpg"),
        ("/.well-known/security.txt", "send .well-known/security.txt"),
        ("/.well-known/webfinger", "run /index.php"),
        ("/index.php/2024/caf%C3%A9", "run /index.php with /2024/café"),
        ("/index.php/", "run /index.php with /"),
        ("/wp-admin/admin.php/a/b/", "run /wp-admin/admin.php with /a/b/"),
        // No file has these names, but an application may have such addresses.
        ("/tag/c%2Fc++/", "run /index.php"),
        ("//wp-login.php", "run /index.php"),
        ("/%E4%F6", "run /index.php"),
        ("/100%", "run /index.php"),
    ] {
        assert_eq!(site.looked_up(Links::Beneath, path), answer, "{path}");
    }
}

/// A WordPress below another application, or beside it, answers for what is below its folder. The many folders of WordPress whose `index.php` says
/// nothing do not.
#[test]
fn the_nearest_application_answers_for_what_names_no_file() {
    let site = Site::new();
    site.write("shop/index.php", "shop");
    site.write("shop/.htaccess", "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^ index.php [L]\n");
    site.write("plugin/index.php", "silence");
    site.write("plugin/.htaccess", "<Files index.php>\nallow from all\n</Files>");
    for path in ["blog/index.php", "blog/wp-load.php", "blog/wp-content/index.php", "blog/wp-content/plugins/index.php", "blog/2024/a.txt"]
    {
        site.write(path, path);
    }
    for (path, answer) in [
        ("/blog", "add a slash"),
        ("/blog/", "run /blog/index.php"),
        ("/blog/2024/hello/", "run /blog/index.php"),
        ("/blog/hello", "run /blog/index.php"),
        ("/blog/index.php/hello", "run /blog/index.php with /hello"),
        ("/blog/wp-content/plugins/missing.js", "run /blog/index.php"),
        ("/blog/missing.php", "run /blog/index.php"),
        ("/shop/cart", "run /shop/index.php"),
        ("/plugin/missing", "run /index.php"),
        ("/bloggy/", "run /index.php"),
        ("/wp-content/missing.js", "run /index.php"),
        ("/wp-admin/missing", "run /index.php"),
    ] {
        assert_eq!(site.looked_up(Links::Beneath, path), answer, "{path}");
    }
}

#[test]
fn a_folder_that_the_application_closes_is_closed() {
    let site = Site::new();
    for folder in ["wp-content/uploads/woocommerce_uploads", "wp-content/updraft", "open"] {
        site.write(&format!("{folder}/2024/a.zip"), "zip");
        site.write(&format!("{folder}/a.php"), "php");
        site.write(&format!("{folder}/.htaccess"), if folder == "open" { "Options -Indexes" } else { "deny from all" });
    }
    symlink("wp-content/updraft/2024/a.zip", site.root().join("a.zip")).expect("a link");
    for (path, answer) in [
        ("/wp-content/uploads/woocommerce_uploads/2024/a.zip", "nothing"),
        ("/wp-content/updraft/2024/a.zip", "nothing"),
        ("/wp-content/updraft/a.php", "nothing"),
        ("/a.zip", "nothing"),
        ("/open/2024/a.zip", "send open/2024/a.zip"),
        ("/open/a.php", "run /open/a.php"),
        ("/wp-content/uploads/2024/photo.jpg", "send wp-content/uploads/2024/photo.jpg"),
    ] {
        assert_eq!(site.looked_up(Links::Beneath, path), answer, "{path}");
    }
}

#[test]
fn only_a_script_that_is_there_is_run_and_source_is_never_sent() {
    let site = Site::new();
    for (path, answer) in [
        // What visitors leave behind is not run, and its source is not sent.
        ("/wp-content/uploads/2024/evil.php", "nothing"),
        ("/wp-content/uploads/2024/evil.php/photo.jpg", "nothing"),
        ("/wp-content/uploads/index.php", "nothing"),
        ("/wp-content/uploads/", "run /index.php"),
        // A picture is not a folder of scripts.
        ("/wp-content/uploads/2024/x.jpg/evil.php", "run /index.php"),
        ("/wp-content/themes/style.css/a.php", "run /index.php"),
        ("/index.php%0a", "nothing"),
        ("/index.php%0A/a", "nothing"),
        ("/index.php%00.jpg", "nothing"),
        ("/a%0d%0ab", "nothing"),
        ("/wp-content/uploads/2024/x.jpg%00.php", "nothing"),
        ("/wp-config.php.bak", "nothing"),
        ("/wp-config.php~", "nothing"),
        ("/wp-config.php", "nothing"),
        ("/wp-config.php/x", "nothing"),
        ("/wp-config-backup.php", "nothing"),
        ("/wp-config%20copy.php", "nothing"),
        ("/lib.inc", "nothing"),
        ("/dump.sql", "nothing"),
        ("/UPPER.PHP", "nothing"),
        ("/.htaccess", "nothing"),
        ("/%2ehtaccess", "nothing"),
        ("/.git/config", "nothing"),
        ("/a/..%2f.git/config", "nothing"),
        ("/.env", "nothing"),
        ("/../site/index.php", "nothing"),
        ("/a/../../etc/passwd", "nothing"),
        ("/..%5c..%5cetc", "nothing"),
    ] {
        assert_eq!(site.looked_up(Links::Beneath, path), answer, "{path}");
    }
}

#[test]
fn a_link_to_source_or_out_of_the_folder_gives_nothing_away() {
    let site = Site::new();
    let root = site.root();
    let other = site.place.path().join("other");
    fs::create_dir_all(other.join("wp-content/uploads")).expect("a folder");
    fs::write(other.join("lib.js"), "lib").expect("a file");
    fs::write(other.join("plugin.php"), "plugin").expect("a file");
    fs::write(other.join("wp-content/uploads/evil.php"), "evil").expect("a file");
    for (to, from) in [
        ("wp-config.php~", "config.txt"),
        ("about", "about.php"),
        ("wp-content/uploads/2024/evil.php", "alias.php"),
        ("index.php", "same.php"),
    ] {
        symlink(to, root.join(from)).expect("a link");
    }
    symlink("../other/lib.js", root.join("lib.js")).expect("a link");
    symlink(&other, root.join("other")).expect("a link");
    symlink("../../../other", root.join("wp-content/themes/up")).expect("a link");
    for (path, beneath, of_one_owner) in [
        ("/config.txt", "nothing", "nothing"),
        ("/about.php", "nothing", "nothing"),
        ("/alias.php", "nothing", "nothing"),
        ("/same.php", "run /same.php", "run /same.php"),
        ("/lib.js", "run /index.php", "send lib.js"),
        ("/other/lib.js", "run /index.php", "send other/lib.js"),
        ("/wp-content/themes/up/lib.js", "run /index.php", "send wp-content/themes/up/lib.js"),
        ("/other/plugin.php", "run /index.php", "run /other/plugin.php"),
        ("/other/wp-content/uploads/evil.php", "run /index.php", "nothing"),
        ("/other/../../etc/passwd", "nothing", "nothing"),
    ] {
        assert_eq!(site.looked_up(Links::Beneath, path), beneath, "{path}");
        assert_eq!(site.looked_up(Links::OfOneOwner, path), of_one_owner, "{path}");
    }
}

/// Whoever may make links in the folder could otherwise publish whatever the server can read.
#[test]
fn a_link_that_leads_to_what_is_somebody_elses_is_not_followed() {
    let site = Site::new();
    let link = site.root().join("passwd.txt");
    symlink("/etc/passwd", &link).expect("a link");
    let owner = |path: &Path| std::os::unix::fs::MetadataExt::uid(&fs::symlink_metadata(path).expect("there"));
    let theirs = owner(Path::new("/etc/passwd"));
    if owner(&link) == theirs {
        // As root: the link is made somebody else's.
        std::os::unix::fs::lchown(&link, Some(theirs + 12_345), None).expect("root may");
    }
    assert_eq!(site.looked_up(Links::OfOneOwner, "/passwd.txt"), "run /index.php");
}

/// Runs a test as a worker runs: one thread, tasks that stay on it.
fn on_a_worker<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).expect("a runtime").block_on(test)
}

fn php(site: &Site, server: &Server, options: PhpOptions) -> Php {
    let tls = with_roots(rustls::RootCertStore::empty()).expect("a configuration");
    let server = ServerOptions::new(vec![Address::Unix(server.socket())], tls);
    let client = FastCgi::new(Arc::new(FastCgiServer::new(Arc::new(server))), None);
    Php::new(Arc::new(PhpFolder::open(site.root(), options).expect("a folder")), client)
}

async fn ask(php: &Php, method: Method, target: &str) -> Response<Body> {
    let mut request = Request::new(Body::Empty);
    *request.method_mut() = method;
    *request.uri_mut() = target.parse().expect("a target");
    php.fetch(request, &Arrival::of_our_own(Scheme::Http, "blog.example"), None).await.expect("a response")
}

async fn content(response: Response<Body>) -> Bytes {
    response.into_body().collect().await.expect("whole").to_bytes()
}

#[test]
fn a_script_is_run_where_it_lies() {
    on_a_worker(async {
        let (site, server) = (Site::new(), Server::start());
        let php = php(&site, &server, PhpOptions::default());
        let runs = async {
            let mut peer = server.accept().await;
            let heard = peer.request().await;
            peer.answer("\r\nhello").await;
            heard
        };
        let (response, heard) = futures_util::future::join(ask(&php, Method::POST, "/wp-admin/admin.php/x%20y?a=b"), runs).await;
        let root = site.root().canonicalize().expect("there").to_string_lossy().into_owned();
        assert_eq!(heard.param("DOCUMENT_ROOT"), root);
        assert_eq!(heard.param("SCRIPT_FILENAME"), format!("{root}/wp-admin/admin.php"));
        assert_eq!(heard.param("SCRIPT_NAME"), "/wp-admin/admin.php");
        assert_eq!(heard.param("PATH_INFO"), "/x y");
        assert_eq!(heard.param("REQUEST_URI"), "/wp-admin/admin.php/x%20y?a=b");
        assert_eq!(content(response).await, "hello");
    });
}

#[test]
fn files_are_sent_without_php_and_only_to_who_reads() {
    on_a_worker(async {
        let (site, server) = (Site::new(), Server::start());
        let php = php(&site, &server, PhpOptions::default());
        let style = ask(&php, Method::GET, "/wp-content/themes/style.css").await;
        assert_eq!(style.status(), 200);
        assert_eq!(style.headers()["content-type"], "text/css; charset=utf-8");
        assert!(style.headers().contains_key("etag") && style.headers().contains_key("last-modified"));
        assert_eq!(content(style).await, "wp-content/themes/style.css");
        let head = ask(&php, Method::HEAD, "/wp-content/themes/style.css").await;
        assert_eq!((head.headers()["content-length"].clone(), content(head).await), ("27".parse().expect("a value"), Bytes::new()));
        for (method, target, status) in [
            (Method::POST, "/wp-content/themes/style.css", 405),
            (Method::GET, "/wp-config.php~", 404),
            (Method::GET, "/wp-content/uploads/2024/evil.php", 404),
        ] {
            assert_eq!(ask(&php, method, target).await.status(), status, "{target}");
        }
        let moved = ask(&php, Method::GET, "/wp-admin?a=b").await;
        assert_eq!((moved.status().as_u16(), moved.headers()["location"].clone()), (301, "/wp-admin/?a=b".parse().expect("a value")));
        assert!(server.is_idle().await, "PHP was not asked");
    });
}

/// The recipe of WP Super Cache: a page for everybody is sent from its file, and PHP is asked where there is none.
#[test]
fn a_page_of_wp_super_cache_is_sent_without_php_while_it_is_there() {
    on_a_worker(async {
        let (site, server) = (Site::new(), Server::start());
        site.write("wp-content/cache/supercache/blog.example/hello/index.html", "a page");
        site.write("wp-content/cache/supercache/blog.example/hello/index-https.html", "another page");
        site.write("wp-content/cache/supercache/blog.example/hello/index.html.gz", "gz");
        let php = php(&site, &server, PhpOptions::default());
        let asked_of_php = async |method: Method, target: &str| {
            let runs = async {
                let mut peer = server.accept().await;
                let heard = peer.request().await;
                peer.answer("\r\nfrom PHP").await;
                peer.question().await;
                heard
            };
            let (response, _) = futures_util::future::join(ask(&php, method, target), runs).await;
            assert_eq!(content(response).await, "from PHP", "{target}");
        };
        // The plugin is switched off: its files may be old.
        asked_of_php(Method::GET, "/hello/").await;
        site.write("wp-content/advanced-cache.php", "<?php");
        let page = ask(&php, Method::GET, "/hello/").await;
        assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
        assert_eq!(page.headers()["seawall-cache-control"], "max-age=1");
        assert_eq!(page.headers()["cache-control"], "max-age=0, must-revalidate");
        assert_eq!(page.headers()["vary"], "Cookie");
        assert!(page.headers().contains_key("last-modified"));
        assert_eq!(page.extensions().get::<crate::Forms>().map(|forms| forms.0.len()), Some(1), "the compressed form");
        assert_eq!(content(page).await, "a page");
        assert!(server.is_idle().await);
        for (method, target) in [(Method::POST, "/hello/"), (Method::GET, "/hello/?a=b"), (Method::GET, "/other/")] {
            asked_of_php(method, target).await;
        }
        fs::remove_file(site.root().join("wp-content/cache/supercache/blog.example/hello/index.html")).expect("removed");
        asked_of_php(Method::GET, "/hello/").await;
    });
}

#[test]
fn another_folder_in_its_place_is_noticed() {
    on_a_worker(async {
        let (site, server) = (Site::new(), Server::start());
        let current = site.place.path().join("current");
        symlink(site.root(), &current).expect("a link");
        let folder = Folder::open(&current, Links::Beneath).expect("a folder");
        assert_eq!(folder.root().path(), site.root().canonicalize().expect("there"));
        let next = site.place.path().join("next");
        fs::create_dir(&next).expect("a folder");
        fs::remove_file(&current).expect("removed");
        symlink(&next, &current).expect("a link");
        // A second later.
        folder.forget_look();
        assert_eq!(folder.root().path(), next.canonicalize().expect("there"));
        assert!(server.is_idle().await);
    });
}

#[test]
fn a_script_may_hand_over_a_file_below_a_configured_folder_and_no_other() {
    on_a_worker(async {
        let (site, server) = (Site::new(), Server::start());
        let private = site.place.path().join("private");
        fs::create_dir_all(private.join("2024")).expect("a folder");
        fs::write(private.join("2024/a b.zip"), "zipped").expect("a file");
        fs::write(site.place.path().join("secret"), "secret").expect("a file");
        symlink("../secret", private.join("link")).expect("a link");
        let options = PhpOptions { handed_over: vec![(Some("/private/".to_owned()), private.clone())], ..PhpOptions::default() };
        let php = php(&site, &server, options);
        let path = |name: &str| private.join(name).to_string_lossy().into_owned();
        for (fields, status, said) in [
            ("X-Accel-Redirect: /private/2024/a%20b.zip".to_owned(), 200, "zipped"),
            (format!("X-Sendfile: {}", path("2024/a b.zip")), 200, "zipped"),
            ("X-Accel-Redirect: /private/../secret".to_owned(), 404, "404 Not Found\n"),
            ("X-Accel-Redirect: /private/link".to_owned(), 404, "404 Not Found\n"),
            ("X-Accel-Redirect: /wp-login.php".to_owned(), 404, "404 Not Found\n"),
            (format!("X-Sendfile: {}", path("../secret")), 404, "404 Not Found\n"),
            ("X-Sendfile: /etc/passwd".to_owned(), 404, "404 Not Found\n"),
        ] {
            let runs = async {
                let mut peer = server.accept().await;
                peer.request().await;
                let orders = "X-Accel-Buffering: no\r\nX-Accel-Limit-Rate: 100\r\n";
                let _ = peer.answer(format!("{fields}\r\n{orders}Content-Type: application/zip\r\nSet-Cookie: a=1\r\n\r\n")).await;
            };
            let (response, ()) = futures_util::future::join(ask(&php, Method::GET, "/download"), runs).await;
            assert_eq!(response.status(), status, "{fields}");
            assert!(!response.headers().keys().any(|name| name.as_str().starts_with("x-accel") || name.as_str().starts_with("x-send")));
            if status == 200 {
                assert!(response.headers().contains_key("set-cookie"));
                assert_eq!(response.headers()["content-type"], "application/zip");
                assert_eq!(response.headers()["content-length"], "6");
            }
            assert_eq!(content(response).await, said, "{fields}");
        }
    });
}
