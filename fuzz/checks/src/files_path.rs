//! A folder of files, asked for by strangers.

use std::{fs, path::Path};

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use origins::{Arrival, Body, Origin, files::Files};
use semantics::Scheme;
use semantics::target::{Target, parse_target};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::input::text;

/// What every file begins with that may be served.
const PUBLIC: &[u8] = b"public";

/// A folder that has what must not get out beside what may.
struct Folder {
    files: Files,
    runtime: Runtime,
    _place: TempDir,
}

impl Folder {
    fn new() -> Self {
        let place = TempDir::new().expect("a temporary folder");
        let root = place.path().join("root");
        let write = |path: &str, text: &str| write(&root, path, text);
        for path in
            ["index.html", "a.txt", "sub/index.html", "sub/b.css", "sub/deep/c.js", ".well-known/security.txt", "caf\u{e9}.txt", "a b.txt"]
        {
            write(path, "public");
        }
        for path in
            [".env", ".git/config", "sub/.htpasswd", "../secret.txt", "../root-beside/index.html", "../index.html", ".well-known/.key"]
        {
            write(path, "secret");
        }
        link("../secret.txt", &root.join("out.txt"));
        link("..", &root.join("up"));
        link(".env", &root.join("env.txt"));
        link("a.txt", &root.join("inside.txt"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        Self { files: Files::new(&root).expect("a folder"), runtime, _place: place }
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn link(to: &str, from: &Path) {
    std::os::unix::fs::symlink(to, from).expect("a link");
}

thread_local!(static FOLDER: Folder = Folder::new());

/// The input is a path and query. Whatever it is, what comes back is a public file of the folder, or says that there is none; and a redirect
/// stays on this host.
pub fn files_path(data: &[u8]) {
    // Nothing else gets through the front.
    let target = text(data);
    let Ok(Target::Origin { .. }) = parse_target(&target) else { return };
    let Ok(uri) = target.parse::<http::Uri>() else { return };
    FOLDER.with(|Folder { files, runtime, .. }| {
        runtime.block_on(async {
            let mut request = Request::new(Body::Empty);
            *request.uri_mut() = uri.clone();
            let response =
                files.fetch(request, &Arrival::of_our_own(Scheme::Http, ""), None).await.expect("nothing here fails for a reason of ours");
            let (head, body) = response.into_parts();
            let body = body.collect().await.expect("a file that can be read").to_bytes();
            match head.status {
                StatusCode::OK => assert!(body.starts_with(PUBLIC), "{uri} gave out {:?}", String::from_utf8_lossy(&body)),
                StatusCode::NOT_FOUND => assert!(!body.starts_with(b"secret")),
                StatusCode::MOVED_PERMANENTLY => {
                    let location = head.headers["location"].to_str().expect("a location is ASCII");
                    assert!(location.starts_with('/') && !location.starts_with("//") && !location.starts_with("/\\"), "{location}");
                }
                status => panic!("{uri} is answered {status}"),
            }
            let length = head.headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
            assert_eq!(length, Some(body.len()), "{uri}");
        });
    });
}
