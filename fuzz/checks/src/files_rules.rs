//! A folder's own rules, `_redirects` and `_headers`, and who asks there.

use std::{cell::RefCell, fs};

use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use origins::{Arrival, Body, Origin, files::Files};
use semantics::Scheme;
use semantics::target::{Target, parse_target};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::input::{blocks, lines, text};

/// What every file begins with that may be served.
const PUBLIC: &[u8] = b"public";
/// Fields that say how a response is sent; a file of rules cannot say that.
const FRAMING: [&str; 6] = ["connection", "transfer-encoding", "upgrade", "te", "trailer", "keep-alive"];
/// Targets asked for by one input at most.
const TARGETS_MAX: usize = 8;

struct Folder {
    place: TempDir,
    runtime: Runtime,
}

thread_local!(static FOLDER: RefCell<Folder> = RefCell::new(Folder::new()));

impl Folder {
    fn new() -> Self {
        let place = TempDir::new().expect("a temporary folder");
        let root = place.path().join("root");
        for (path, text) in [
            ("index.html", "public"),
            ("a.txt", "public"),
            ("sub/index.html", "public"),
            ("sub/b.css", "public"),
            ("404.html", "public"),
            (".env", "secret"),
            ("sub/.htpasswd", "secret"),
            ("../secret.txt", "secret"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        std::os::unix::fs::symlink("../secret.txt", root.join("out.txt")).expect("a link");
        Self { place, runtime: tokio::runtime::Builder::new_current_thread().build().expect("a runtime") }
    }
}

/// `_redirects`, then `_headers`, then targets, a line each. Whatever the rules say, what comes back is a public file or says that there is
/// none; a redirect leads to a path of this host, or to another one only if the rules name it; problems name lines that exist; the length is
/// the length, and nothing says how the response is sent.
pub fn files_rules(data: &[u8]) {
    let [redirects, headers, targets] = blocks::<3>(data);
    FOLDER.with_borrow(|Folder { place, runtime }| {
        let root = place.path().join("root");
        for (name, rules) in [("_redirects", redirects), ("_headers", headers)] {
            fs::write(root.join(name), rules).expect("a file");
        }
        let files = Files::new(&root).expect("a folder");
        for mistake in files.mistakes() {
            let rules = if mistake.file == "_redirects" { redirects } else { headers };
            assert!((1..=text(rules).lines().count().max(1)).contains(&mistake.line), "{mistake}");
        }
        for target in lines(targets).take(TARGETS_MAX).map(text) {
            let Ok(Target::Origin { .. }) = parse_target(&target) else { continue };
            let Ok(uri) = target.parse::<http::Uri>() else { continue };
            let mut request = Request::new(Body::Empty);
            *request.uri_mut() = uri;
            let (head, body) = runtime
                .block_on(files.fetch(request, &Arrival::of_our_own(Scheme::Http, ""), None))
                .expect("nothing here fails for a reason of ours")
                .into_parts();
            let body = runtime.block_on(body.collect()).expect("a file that can be read").to_bytes();
            assert!(!body.starts_with(b"secret"), "{target}");
            match head.status.as_u16() {
                200 => assert!(body.starts_with(PUBLIC), "{target} gave out {:?}", String::from_utf8_lossy(&body)),
                301 | 302 | 303 | 307 | 308 => leads_where_it_may(&head.headers, &text(redirects), &target),
                304 | 403 | 404 | 410 => {}
                status => panic!("{target} is answered {status}"),
            }
            let length = head.headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
            assert_eq!(length, Some(body.len()), "{target}");
            assert!(FRAMING.iter().all(|name| !head.headers.contains_key(*name)), "{target}: {:?}", head.headers);
        }
    });
}

/// To a path of this host, or to a host that stands in the rules.
fn leads_where_it_may(fields: &HeaderMap, rules: &str, target: &str) {
    let location = fields["location"].to_str().expect("a location is ASCII");
    if let Some((scheme, rest)) = location.split_once("://").filter(|_| !location.starts_with('/')) {
        let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        assert!(["http", "https"].contains(&scheme) && !host.is_empty(), "{target} leads to {location}");
        assert!(rules.contains(&format!("{scheme}://{host}")), "{target} leads to {location}, a host that no rule names");
    } else {
        assert!(location.starts_with('/') && !location.starts_with("//") && !location.starts_with("/\\"), "{target} leads to {location}");
    }
}
