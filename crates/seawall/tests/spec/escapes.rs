//! A folder of files, and everything beside it that must never come out: RFC 3986 §6.2.2, RFC 9110 §17.3 (attacks based on file names).
//!
//! The root lies between secrets: files beside it, a folder whose name begins as its own does, dotfiles within it, links that lead out.
//! Every target of the corpus is sent as raw bytes. Nothing of it may be answered with anything but an error, and no answer to whatever
//! request may hold a byte of a secret, or tell where on the disk the site is.

use std::{fs, os::unix::fs::symlink, os::unix::net::UnixListener, path::Path};

use testkit::Client;

use crate::site::{HOST, Site};

/// The text that is in every file that must not come out. Its length betrays it to a HEAD, so no public file is as long.
const SECRET: &str = "top-secret-5d1f8a: nobody may read this";
/// The beginning of every file that may come out.
const PUBLIC: &str = "public ";

/// Returns a site in `DIR/site`, with secrets beside it.
fn site() -> (tempfile::TempDir, Site) {
    site_with("", "")
}

/// Returns a site in `DIR/site` with `_redirects` and settings, and secrets beside it.
fn site_with(redirects: &str, settings: &str) -> (tempfile::TempDir, Site) {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("site");
    for (name, _) in HARD_NAMES {
        write(&root, name, &format!("{PUBLIC}{name}"));
    }
    for name in
        ["index.html", "a.txt", "sub/index.html", "sub/b.css", "sub/deep/c.js", ".well-known/security.txt", "linked.html", "folder/x"]
    {
        write(&root, name, &format!("{PUBLIC}{name}"));
    }
    for name in [
        "../secret.txt",
        "../index.html",
        "../site-secret/secret.txt",
        "../site-secret/index.html",
        "../site.html",
        "../seawall.toml",
        ".env",
        ".env.gz",
        ".htpasswd",
        ".git/config",
        ".git/HEAD",
        ".svn/entries",
        ".ssh/id_rsa",
        ".DS_Store",
        ".hidden/index.html",
        ".well-known/.key",
        "sub/.htpasswd",
        "sub/.git/config",
        ".../index.html",
        "..secret.txt",
    ] {
        write(&root, name, SECRET);
    }
    for (to, name) in [
        ("../secret.txt", "out.txt"),
        ("../secret.txt", "out.html"),
        ("out.txt", "chain.txt"),
        ("..", "up"),
        ("../site-secret", "beside"),
        (".git", "git"),
        (".env", "env.txt"),
        ("/etc", "etc"),
        ("/", "disk"),
        ("/proc/self", "process"),
        ("loop", "loop"),
        ("nowhere", "dangling"),
        ("../../secret.txt", "folder/index.html"),
        ("../secret.txt", "linked.html.gz"),
        ("../secret.txt", "linked.html.br"),
        ("../secret.txt", "linked.html.zst"),
        ("../secret.txt", "404.html"),
        ("../secret.txt", "403.html"),
        ("../secret.txt", "50x.html"),
        // These two stay inside.
        ("a.txt", "inside.txt"),
        ("sub", "docs"),
    ] {
        symlink(to, root.join(name)).expect("linked");
    }
    write(&root, "_redirects", redirects);
    write(&root, "_headers", "/*\n  X-Note: public\n");
    // Reading it would wait for somebody to speak.
    UnixListener::bind(root.join("socket.txt")).expect("a socket");
    let site = Site::start(&format!("source = \"{}\"\n{settings}", root.display()));
    (place, site)
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// Ways to say "the folder above" that some software or other has understood so.
const UP: &[&str] = &[
    "../",
    "./../",
    ".././",
    "..//",
    "//../",
    "/../",
    "..;/",
    "..;a=b/",
    "..%00/",
    "..%20/",
    "..%09/",
    "..%0d%0a/",
    "..%01/",
    "..%3b/",
    "..%3f/",
    "..%23/",
    "%2e%2e/",
    "%2E%2E/",
    "%2e./",
    ".%2e/",
    ".%2E/",
    "%2e%2e%2f",
    "%2E%2E%2F",
    "..%2f",
    "..%2F",
    "%2e%2e%5c",
    "..%5c",
    "..%5C",
    "..\\",
    "..\\/",
    ".\\..\\",
    "%2e%2e\\",
    // Decoded twice, thrice.
    "%252e%252e/",
    "%252e%252e%252f",
    "..%252f",
    "..%255c",
    "%25252e%25252e%25252f",
    "%%32%65%%32%65/",
    "%%32%65%%32%65%%32%66",
    "%2%65%2%65/",
    "..%u2215",
    "%u002e%u002e/",
    "%u002e%u002e%u2216",
    // UTF-8 longer than need be, of a dot, a slash, a backslash.
    "%c0%ae%c0%ae/",
    "%c0%ae%c0%ae%c0%af",
    "..%c0%af",
    "..%c1%9c",
    "..%e0%80%af",
    "..%f0%80%80%af",
    "%e0%80%ae%e0%80%ae/",
    "%f8%80%80%80%ae%f8%80%80%80%ae/",
    "..%c0%2f",
    "..%c0%5c",
    "..%fc%80%80%80%80%af",
    // What looks like a dot or a slash: fullwidth, one dot leader, two dot leader, division slash, fraction slash, big solidus, fullwidth
    // backslash, ideographic full stop.
    "%ef%bc%8e%ef%bc%8e/",
    "%ef%bc%8e%ef%bc%8e%ef%bc%8f",
    "..%ef%bc%8f",
    "%e2%80%a4%e2%80%a4/",
    "%e2%80%a5/",
    "..%e2%88%95",
    "..%e2%81%84",
    "..%e2%a7%b8",
    "..%ef%bc%bc",
    "%e3%80%82%e3%80%82/",
    // Zero width and other characters that are dropped by some.
    "..%e2%80%8b/",
    ".%e2%80%8b./",
    ".%ad./",
    ".%c2%ad./",
    "%ef%bb%bf../",
    "..%cc%b8/",
    // Dots that are more than two, or followed by something that a file system drops.
    ".../",
    "..../",
    "....//",
    "....\\/",
    "..././",
    ". ./",
    "..%c2%a0/",
    "..::$INDEX_ALLOCATION/",
    "~/",
    "%7e/",
    "$HOME/../",
    "%24%7bHOME%7d/../",
    // UTF-7, UTF-16.
    "+AC4-+AC4-+AC8-",
    "%fe%ff%00.%00./",
    "%00%2e%00%2e%00%2f",
    "..%00%2f",
];

/// Targets that name what there is, but is not for the public; and those that confuse.
const REFUSED: &[&str] = &[
    // Dotfiles, by every name.
    "/.env",
    "/%2eenv",
    "/%2Eenv",
    "/./.env",
    "/sub/../.env",
    "/sub/%2e%2e/.env",
    "/.env/",
    "/.env/.",
    "/.env%00",
    "/.env%00.html",
    "/.env;.html",
    "/.env%20",
    "/.env?.html",
    "/.env%3f.html",
    "/.env%23",
    "/%252eenv",
    "/%c0%aeenv",
    "/%ef%bc%8eenv",
    "/.%65nv",
    "/.env.gz",
    "/.htpasswd",
    "/sub/.htpasswd",
    "/sub//.htpasswd",
    "//.htpasswd",
    "/docs/.htpasswd",
    "/.git",
    "/.git/",
    "/.git/config",
    "/.git/HEAD",
    "/.git//config",
    "/.git/./config",
    "/.git%2fconfig",
    "/.git%5cconfig",
    "/.git\\config",
    "/%2egit/config",
    "/%2e%67it/config",
    "/.Git/config",
    "/sub/.git/config",
    "/.well-known/../.git/config",
    "/.well-known/.key",
    "/.well-known/%2ekey",
    "/.well-known/..%2f.env",
    "/.svn/entries",
    "/.ssh/id_rsa",
    "/.DS_Store",
    "/.hidden",
    "/.hidden/",
    "/.hidden/index.html",
    "/.../",
    "/.../index.html",
    "/..secret.txt",
    "/%2e.secret.txt",
    // What the folder says to us alone.
    "/_redirects",
    "/_headers",
    "/%5fredirects",
    "/%5Fheaders",
    "/./_headers",
    "/sub/../_headers",
    "/_headers/",
    // Links that lead out, or to a dotfile, or nowhere.
    "/out.txt",
    "/out.html",
    "/out",
    "/chain.txt",
    "/up",
    "/up/",
    "/up/secret.txt",
    "/up/index.html",
    "/up/site/.env",
    "/up/site/index.html/../../../secret.txt",
    "/up/site-secret/secret.txt",
    "/beside",
    "/beside/",
    "/beside/secret.txt",
    "/beside/index.html",
    "/git/config",
    "/git/",
    "/env.txt",
    "/etc/passwd",
    "/etc/",
    "/disk/etc/passwd",
    "/disk/",
    "/process/environ",
    "/process/cwd/",
    "/process/root/etc/passwd",
    "/process/fd/0",
    "/loop",
    "/loop/",
    "/dangling",
    "/folder/",
    "/folder/index.html",
    "/folder",
    "/linked.html.gz",
    "/linked.html.br",
    "/linked.html.zst",
    "/404.html",
    "/socket.txt",
    "/socket.txt/",
    // A file is not a folder.
    "/index.html/",
    "/index.html/x",
    "/index.html/.env",
    "/index.html/../../secret.txt",
    "/index.html/..%2f..%2fsecret.txt",
    "/index.html%00",
    "/index.html%00.png",
    "/index.html%20",
    "/index.html%2f",
    "/index.html\\",
    "/index.html::$DATA",
    "/index.html:stream",
    // What Windows would take for something else.
    "/C:/secret.txt",
    "/C:\\secret.txt",
    "/c%3a%5csecret.txt",
    "/c|/secret.txt",
    "/CON",
    "/aux.txt",
    "/nul",
    "/SECRET~1.TXT",
    "/\\\\server\\share",
    "/%5c%5cserver%5cshare",
    "/\\\\?\\C:\\secret.txt",
    "//server/share",
    // Slashes that mean a host, or the disk.
    "//",
    "///",
    "//etc/passwd",
    "///etc/passwd",
    "/%2fetc%2fpasswd",
    "/%2Fetc/passwd",
    "//sub/index.html",
    "/sub//index.html",
    "/sub%2findex.html",
    "/sub%5cindex.html",
    "/sub\\index.html",
    "/file:///etc/passwd",
    "/http://127.0.0.1/",
    "/http:%2f%2f127.0.0.1/",
    // No path at all.
    "../secret.txt",
    "secret.txt",
    "\\secret.txt",
    "?/../secret.txt",
    "%2fsecret.txt",
    "*",
    "file:///etc/passwd",
    "blog.example/../secret.txt",
    "blog.example:80",
    // Absolute-form.
    "http://blog.example/../secret.txt",
    "http://blog.example/%2e%2e/secret.txt",
    "http://blog.example/..%2fsecret.txt",
    "http://blog.example/.env",
    "http://blog.example//etc/passwd",
    "http://blog.example/up/secret.txt",
    "http://blog.example\\..\\secret.txt",
    "http://../secret.txt",
    "http:///secret.txt",
    "http:/../secret.txt",
    "http://blog.example#/../secret.txt",
    "http://a@blog.example/../secret.txt",
    // Broken escapes.
    "/%",
    "/%2",
    "/%zz",
    "/%+1",
    "/%-1",
    "/% 2e",
    "/%2%65",
    "/%ff",
    "/%80",
    "/%ed%a0%80",
    "/%f4%90%80%80",
    "/%00",
    "/%0a",
    "/%0d%0aSet-Cookie:%20a=b",
    "/%7f",
    "/#/../secret.txt",
    "/\u{2025}/secret.txt",
    "/\u{ff0e}\u{ff0e}/secret.txt",
    // What a template or a shell would make of it.
    "/{secret.txt,.env}",
    "/$(cat%20.env)",
    "/`cat%20.env`",
    "/|cat%20.env",
    "/*",
    "/.e*",
    "/~root/.profile",
    "/*.txt",
    "/%2a%2a/secret.txt",
];

/// Bytes that no text has.
const RAW: &[&[u8]] = &[
    b"/\xc0\xae\xc0\xae/secret.txt",
    b"/..\xc0\xafsecret.txt",
    b"/\xff\xfe.\x00.\x00/\x00secret.txt",
    b"/..\x00/secret.txt",
    b"/..\x01/secret.txt",
    b"/..\x7f/secret.txt",
    b"/..\t/secret.txt",
    b"/..\x0b/secret.txt",
    b"/..\r/secret.txt",
    b"/..\n/secret.txt",
    b"/index.html\x00.env",
    b"/.env\xa0",
    b"/\xe9/../secret.txt",
];

/// Returns everything that has to be refused.
fn corpus(place: &Path) -> Vec<Vec<u8>> {
    let mut targets: Vec<Vec<u8>> = REFUSED.iter().map(|target| target.as_bytes().to_vec()).collect();
    targets.extend(RAW.iter().map(|target| target.to_vec()));
    for up in UP {
        for target in [
            format!("/{up}secret.txt"),
            format!("/{up}site-secret/secret.txt"),
            format!("/sub/{}secret.txt", up.repeat(2)),
            format!("/sub/deep/{}site-secret/secret.txt", up.repeat(3)),
            format!("/{}etc/passwd", up.repeat(12)),
            format!("/{up}.env"),
        ] {
            targets.push(target.into_bytes());
        }
    }
    let disk = place.to_str().expect("a path in UTF-8");
    for target in [
        format!("{disk}/secret.txt"),
        format!("/{disk}/secret.txt"),
        format!("//{disk}/secret.txt"),
        format!("{disk}/site/index.html"),
        format!("/disk{disk}/secret.txt"),
        format!("/disk{disk}/site/a.txt"),
        format!("file://{disk}/secret.txt"),
        format!("/{}", disk.replace('/', "%2f")),
        // Longer than a name may be, than a path may be, than a head may be.
        format!("/{}", "a".repeat(256)),
        format!("/{}.env", "./".repeat(900)),
        format!("/{}secret.txt", "../".repeat(900)),
        format!("/{}", "a/".repeat(2047)),
        format!("/{}../secret.txt", "%2e%2e%2f".repeat(400)),
        format!("/{}", "..%2f".repeat(20_000)),
    ] {
        targets.push(target.into_bytes());
    }
    targets
}

/// Returns what `method target` with `fields` is answered, byte for byte.
async fn ask(site: &Site, method: &str, target: &[u8], fields: &str) -> Vec<u8> {
    let mut client: Client = site.client().await;
    let head = [
        method.as_bytes(),
        b" ",
        target,
        b" HTTP/1.1\r\nHost: ",
        HOST.as_bytes(),
        b"\r\nConnection: close\r\n",
        fields.as_bytes(),
        b"\r\n",
    ];
    client.send_raw(head.concat()).await;
    client.read_to_close().await
}

fn holds(answer: &[u8], what: &str) -> bool {
    answer.windows(what.len()).any(|window| window == what.as_bytes())
}

fn code(answer: &[u8]) -> u16 {
    let code = answer.strip_prefix(b"HTTP/1.1 ").and_then(|rest| std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok());
    code.unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(answer)))
}

/// Returns why an answer says more than it may, if it does.
fn indiscretion(answer: &[u8], place: &Path) -> Option<&'static str> {
    if holds(answer, "top-secret") || holds(answer, "root:") {
        return Some("it holds a secret");
    }
    if holds(answer, &format!("ontent-length: {}\r\n", SECRET.len())) || holds(answer, &format!("ontent-Length: {}\r\n", SECRET.len())) {
        return Some("it tells how long the secret is");
    }
    if holds(answer, &format!("/{}\r\n", SECRET.len())) {
        return Some("it tells how long the secret is");
    }
    holds(answer, place.to_str().expect("a path in UTF-8")).then_some("it tells where the site is on the disk")
}

/// The fields that could open another way to a file: a coding, a part, a condition, a proxy's word about the target.
const FIELDS: [&str; 5] = [
    "",
    "Accept-Encoding: br, gzip, zstd\r\n",
    "Range: bytes=0-9\r\n",
    "If-None-Match: *\r\n",
    "X-Original-URL: /../secret.txt\r\nX-Rewrite-URL: /.env\r\nX-Forwarded-Prefix: /..\r\n",
];

/// Every target of the corpus is an error, whatever else the request says, and no answer tells anything.
#[tokio::test]
async fn nothing_leaks_by_whatever_name() {
    let (place, site) = site();
    let targets = corpus(place.path());
    assert!(targets.len() > 700, "{}", targets.len());
    let mut failures = Vec::new();
    for target in &targets {
        for (method, fields) in FIELDS.map(|fields| ("GET", fields)).into_iter().chain([("HEAD", "")]) {
            let answer = ask(&site, method, target, fields).await;
            let wrong = if matches!(code(&answer), 400..=499) { indiscretion(&answer, place.path()) } else { Some("it is not an error") };
            if let Some(wrong) = wrong {
                let (target, answer) = (String::from_utf8_lossy(target), String::from_utf8_lossy(&answer));
                failures.push(format!("{method} {target} {fields:?}: {wrong}\n{answer}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), targets.len() * 6, failures.join("\n---\n"));
}

/// A folder's own rules lead nowhere that a request could not go by itself.
#[tokio::test]
async fn no_rule_leads_to_a_secret() {
    let rules = "\
        /up /../secret.txt 200\n\
        /encoded /%2e%2e/secret.txt 200\n\
        /slash /..%2fsecret.txt 200\n\
        /dot /.env 200\n\
        /link /out.txt 200\n\
        /disk /disk/etc/passwd 200\n\
        /self /_redirects 200\n\
        /missing /.env 404\n\
        /gone /out.txt 410!\n\
        /name/:name /:name 200\n\
        /inner/:name/x /sub/:name/secret.txt 200\n\
        /to/* /:splat 200\n\
        /sub/* /:splat 200\n\
        /away/* /:splat 302\n\
        /beside/* /:splat/../../secret.txt 200!\n";
    let (place, site) = site_with(rules, "");
    let mut targets: Vec<Vec<u8>> = ["/up", "/encoded", "/slash", "/dot", "/link", "/disk", "/self", "/missing", "/gone"]
        .map(|target| target.as_bytes().to_vec())
        .into();
    for target in corpus(place.path()).into_iter().filter(|target| target.starts_with(b"/")) {
        for rule in ["/to", "/name", "/away", "/inner", "/sub", "/beside"] {
            targets.push([rule.as_bytes(), &target, if rule == "/inner" { b"/x" } else { b"" }].concat());
        }
    }
    let mut failures = Vec::new();
    for target in &targets {
        let answer = ask(&site, "GET", target, "").await;
        let mut wrong = indiscretion(&answer, place.path());
        if let Some(location) = location(&answer) {
            // Another host, or what a browser takes for one (`/\\host`), is nobody's to choose who writes a link.
            if !location.starts_with('/') || location.starts_with("//") || location.starts_with("/\\") {
                wrong = Some("it leads to another host");
            }
        } else if code(&answer) == 200 && !holds(&answer, &format!("\r\n\r\n{PUBLIC}")) {
            wrong = Some("it is not a public file");
        }
        if let Some(wrong) = wrong {
            failures.push(format!("{}: {wrong}\n{}", String::from_utf8_lossy(target), String::from_utf8_lossy(&answer)));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), targets.len(), failures.join("\n---\n"));
}

fn location(answer: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(answer);
    head.lines().find_map(|line| line.to_ascii_lowercase().starts_with("location: ").then(|| line[10..].to_owned()))
}

/// A listing names what can be had, by addresses that lead there, and nothing else: not how long a secret is to which a link leads.
#[tokio::test]
async fn a_listing_shows_nothing_that_is_not_served() {
    let (place, site) = site_with("", "[static]\nlisting = true");
    let list = place.path().join("site/list");
    let names = [
        "a.txt",
        "a b.txt",
        "<b>.txt",
        "\"quoted\".txt",
        "it's & so.txt",
        "100%.txt",
        "%2e%2e",
        "javascript:alert(1)",
        "#x?y",
        "sub2/x.txt",
    ];
    for name in names {
        write(&list, name, &format!("{PUBLIC}{name}"));
    }
    for name in [".env", ".git/config"] {
        write(&list, name, SECRET);
    }
    for (to, name) in [
        ("../../secret.txt", "out"),
        ("../..", "above"),
        ("../../site-secret", "beside"),
        ("/etc", "etc"),
        ("../.env", "env"),
        ("gone", "gone"),
    ] {
        symlink(to, list.join(name)).expect("linked");
    }
    symlink("a.txt", list.join("inside.txt")).expect("linked");
    let answer = ask(&site, "GET", b"/list/", "").await;
    assert_eq!((code(&answer), indiscretion(&answer, place.path())), (200, None), "{}", String::from_utf8_lossy(&answer));
    let page = String::from_utf8(answer).expect("text");
    assert!(!page.contains("<b>") && !page.contains("it's & so"), "names are text: {page}");
    let mut found = 0;
    for link in page.split("href=\"").skip(1).map(|rest| rest.split('"').next().expect("one at least")) {
        let link = link.replace("&amp;", "&").replace("&#39;", "'").replace("&#x27;", "'");
        assert!(!link.split('/').next().expect("one at least").contains(':'), "{link} is an address of another kind");
        if link.starts_with('?') || link.starts_with("..") || link == "/" {
            continue;
        }
        let link = link.strip_prefix("./").unwrap_or(&link);
        let target = if link.starts_with('/') { link.to_owned() } else { format!("/list/{link}") };
        let answer = ask(&site, "GET", target.as_bytes(), "").await;
        let shown = code(&answer) == 200 && (holds(&answer, PUBLIC) || target.ends_with("/"));
        assert!(shown, "{target} is listed and answered {}", String::from_utf8_lossy(&answer));
        assert_eq!(indiscretion(&answer, place.path()), None, "{target}");
        found += 1;
    }
    assert_eq!(found, names.len() + 1, "{page}");
}

/// What stands in for a path that is nothing is a public file as well.
#[tokio::test]
async fn a_fallback_is_no_way_out() {
    let (place, site) = site();
    for file in ["out.txt", ".env", "up/secret.txt", "../secret.txt", "/etc/passwd"] {
        let settings = format!("source = \"{}\"\n[static]\nfallback = \"{file}\"", place.path().join("site").display());
        // Refused at once, or never served.
        if site.settings(&settings).is_ok() {
            let site = Site::start(&settings);
            let answer = ask(&site, "GET", b"/any/where", "").await;
            assert_eq!((code(&answer), indiscretion(&answer, place.path())), (404, None), "{file}");
        }
    }
}

/// Other spellings of what is public name the same file, and say nothing of a secret either.
#[tokio::test]
async fn other_spellings_of_public_names_stay_inside() {
    let (place, site) = site();
    for (target, name) in [
        ("/index.html?/../../secret.txt", "index.html"),
        ("/index.html?file=../secret.txt", "index.html"),
        ("/sub/../a.txt", "a.txt"),
        ("/sub/%2e%2e/a.txt", "a.txt"),
        ("/../../a.txt", "a.txt"),
        ("/./a.txt", "a.txt"),
        ("/%61.txt", "a.txt"),
        ("/sub/deep/../b.css", "sub/b.css"),
        ("/inside.txt", "a.txt"),
        ("/docs/", "sub/index.html"),
        ("/docs/deep/c.js", "sub/deep/c.js"),
        ("/.well-known/security.txt", ".well-known/security.txt"),
        ("http://blog.example/a.txt", "a.txt"),
        // Its precompressed forms are links that lead out.
        ("/linked.html", "linked.html"),
    ] {
        for fields in FIELDS.into_iter().filter(|fields| !fields.starts_with("Range") && !fields.starts_with("If-")) {
            let answer = ask(&site, "GET", target.as_bytes(), fields).await;
            assert_eq!(code(&answer), 200, "{target} {fields:?}");
            assert!(answer.ends_with(format!("{PUBLIC}{name}").as_bytes()), "{target} {fields:?}: {}", String::from_utf8_lossy(&answer));
            assert_eq!(indiscretion(&answer, place.path()), None, "{target} {fields:?}");
        }
    }
}

/// Names that are hard to write, and how a client writes them. Each is a file that must be found: whoever refuses too much breaks a site.
const HARD_NAMES: &[(&str, &str)] = &[
    ("a b.txt", "/a%20b.txt"),
    (" leading.txt", "/%20leading.txt"),
    ("trailing.txt ", "/trailing.txt%20"),
    ("two  spaces/in  it.txt", "/two%20%20spaces/in%20%20it.txt"),
    ("100%.txt", "/100%25.txt"),
    ("50%25.txt", "/50%2525.txt"),
    ("%2e%2e.txt", "/%252e%252e.txt"),
    ("%2e%2e/found.txt", "/%252e%252e/found.txt"),
    ("%41.txt", "/%2541.txt"),
    ("plus+plus.txt", "/plus+plus.txt"),
    ("plus+too.txt", "/plus%2Btoo.txt"),
    ("amp&amp;.txt", "/amp&amp;.txt"),
    ("semi;colon.txt", "/semi;colon.txt"),
    ("a=b,c.txt", "/a=b,c.txt"),
    ("question?.txt", "/question%3F.txt"),
    ("hash#tag.txt", "/hash%23tag.txt"),
    ("colon: it.txt", "/colon:%20it.txt"),
    ("at@sign.txt", "/at@sign.txt"),
    ("it's.txt", "/it's.txt"),
    ("\"quoted\".txt", "/%22quoted%22.txt"),
    ("<b>bold.txt", "/%3Cb%3Ebold.txt"),
    ("[brackets] {braces}.txt", "/%5Bbrackets%5D%20%7Bbraces%7D.txt"),
    ("(round)!$*.txt", "/(round)!$*.txt"),
    ("caret^pipe|tick`.txt", "/caret%5Epipe%7Ctick%60.txt"),
    ("tilde~.txt", "/tilde~.txt"),
    ("~tilde.txt", "/%7Etilde.txt"),
    ("caf\u{e9}.txt", "/caf%C3%A9.txt"),
    ("cafe\u{301}-nfd.txt", "/cafe%CC%81-nfd.txt"),
    ("lower-hex-\u{e9}.txt", "/lower-hex-%c3%a9.txt"),
    ("\u{65e5}\u{672c}\u{8a9e}/\u{8a18}\u{4e8b}.html", "/%E6%97%A5%E6%9C%AC%E8%AA%9E/%E8%A8%98%E4%BA%8B.html"),
    ("\u{1f980}.txt", "/%F0%9F%A6%80.txt"),
    ("\u{ff0e}\u{ff0e}.txt", "/%EF%BC%8E%EF%BC%8E.txt"),
    ("a..b.txt", "/a..b.txt"),
    ("a...txt", "/a...txt"),
    ("ends.", "/ends."),
    ("ends..", "/ends.."),
    ("-dash.txt", "/-dash.txt"),
    ("CON.txt", "/CON.txt"),
    ("index.html.txt", "/index.html.txt"),
    ("no-extension", "/no-extension"),
    ("UPPER.TXT", "/UPPER.TXT"),
    ("a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/deep.txt", "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/deep.txt"),
    (
        "lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll.txt",
        "/lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll.txt",
    ),
];

#[tokio::test]
async fn names_that_are_hard_to_write_are_found() {
    let (_place, site) = site();
    let mut failures = Vec::new();
    for (name, target) in HARD_NAMES {
        for _ in 0..2 {
            let answer = ask(&site, "GET", target.as_bytes(), "").await;
            if code(&answer) != 200 || !answer.ends_with(format!("\r\n\r\n{PUBLIC}{name}").as_bytes()) {
                failures.push(format!("{name:?} by {target}: {}", String::from_utf8_lossy(&answer)));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n---\n"));
}

/// The corpus would notice: with the folder above as the root, it finds the secret.
#[tokio::test]
async fn the_secret_is_there_to_be_found() {
    let (place, _site) = site();
    let above = Site::start(&format!("source = \"{}\"", place.path().display()));
    for (method, target) in [("GET", "/secret.txt"), ("GET", "/site-secret/secret.txt"), ("HEAD", "/secret.txt")] {
        let answer = ask(&above, method, target.as_bytes(), "").await;
        assert_eq!((code(&answer), indiscretion(&answer, place.path()).is_some()), (200, true), "{method} {target}");
    }
}
