//! The site: 2,000 pages that Hugo makes, twice, with another stamp on each page.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use crate::random::Random;

/// Posts. With their tags, lists and archives they are some 2,300 pages.
const POSTS: u64 = 1_700;
/// Longer than what a server keeps in memory of a file.
const FILM_BYTES: usize = 8 << 20;
/// Titles and tags that are hard to put into an address.
const TAGS: [&str; 8] = ["café", "c++", "100% wool", "日本", "it's", "garden", "a & b", "Straße"];

const CONFIG: &str = r#"
baseURL = "http://site.example/"
title = "A garden"
enableRobotsTXT = true
timeout = "120s"
[markup.goldmark.renderer]
unsafe = true
"#;

const PAGE: &str = r#"<!doctype html>
<html><head><title>{{ .Title }}</title>
{{ $style := resources.Get "style.css" | fingerprint }}<link rel="stylesheet" href="{{ $style.RelPermalink }}">
<link rel="alternate" type="application/rss+xml" href="/index.xml"></head>
<body><p>stamp {{ os.Getenv "HUGO_STAMP" }}</p>
{{ block "main" . }}{{ end }}
<p><a href="/">home</a> <a href="/tags/">tags</a> <a href="/posts/">posts</a> <a href="/film.bin">film</a> <a href='/sitemap.xml'>map</a></p>
<p>stamp {{ os.Getenv "HUGO_STAMP" }}</p></body></html>
"#;

const SINGLE: &str = r#"{{ define "main" }}<h1>{{ .Title }}</h1>{{ .Content }}
{{ range .GetTerms "tags" }}<a href="{{ .RelPermalink }}">{{ .Title }}</a> {{ end }}
{{ with .PrevInSection }}<a href="{{ .RelPermalink }}">before</a>{{ end }} {{ with .NextInSection }}<a href="{{ .RelPermalink }}">after</a>{{ end }}{{ end }}
"#;

const LIST: &str = r#"{{ define "main" }}<h1>{{ .Title }}</h1>
{{ $pages := .Pages }}{{ if .IsHome }}{{ $pages = site.RegularPages }}{{ end }}
{{ range (.Paginate $pages 20).Pages }}<h2><a href="{{ .RelPermalink }}">{{ .Title }}</a></h2>{{ .Summary }}{{ end }}
{{ template "_internal/pagination.html" . }}{{ end }}
"#;

/// A site as its generator left it.
pub(crate) struct Built {
    pub(crate) folder: PathBuf,
    /// Every file by its path below the folder, with its content.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

/// Makes the same site twice in `place`: all pages differ by their stamp, one post is in the first alone and one in the second.
///
/// Both have the same names, lengths and times, as two builds have that were made to be reproducible: only what is in the files tells them
/// apart.
pub(crate) fn build(place: &Path) -> [Built; 2] {
    let source = place.join("source");
    write_source(&source);
    [("a", "only-a"), ("b", "only-b")].map(|(stamp, only)| {
        let alone = source.join(format!("content/posts/{only}.md"));
        write(&alone, post("Only here", "a post of one build alone", &["garden"]).as_bytes());
        write(&source.join("static/film.bin"), &noise(stamp.len() as u64 + u64::from(stamp.as_bytes()[0]), FILM_BYTES));
        let folder = place.join(stamp);
        run_hugo(&source, &folder, stamp);
        fs::remove_file(alone).expect("the post that is here alone");
        let mut files = BTreeMap::new();
        collect(&folder, &folder, &mut files);
        Built { folder, files }
    })
}

fn run_hugo(source: &Path, target: &Path, stamp: &str) {
    let made = Command::new("hugo")
        .args(["--quiet", "--noTimes", "--source"])
        .arg(source)
        .arg("--destination")
        .arg(target)
        .arg("--cacheDir")
        .arg(source.join("cache"))
        .env("HUGO_STAMP", format!("build-{stamp}"))
        .output()
        .unwrap_or_else(|error| panic!("hugo: {error}. Install it with `make hugo`, or from https://gohugo.io"));
    assert!(made.status.success(), "hugo: {}{}", String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&made.stderr));
}

fn write_source(source: &Path) {
    let write = |name: &str, text: &str| write(&source.join(name), text.as_bytes());
    write("config.toml", CONFIG);
    write("layouts/_default/baseof.html", PAGE);
    write("layouts/_default/single.html", SINGLE);
    write("layouts/_default/list.html", LIST);
    write("layouts/404.html", "{{ define \"main\" }}<h1>Nothing grows here</h1>{{ end }}");
    write("assets/style.css", "body { font: 1.1rem/1.6 serif; max-width: 40rem; margin: auto }\n");
    for number in 0..POSTS {
        let tags = [TAGS[usize::try_from(number % 8).unwrap()], &format!("plot {}", number % 60)];
        let mut text = words(number);
        let _ = write!(text, "\n\n![a picture](/pictures/{}.jpg)\n", number % 40);
        write(&format!("content/posts/{number}.md"), &post(&format!("Post {number}: beds & borders"), &text, &tags));
    }
    for number in 0..40 {
        let picture = noise(number + 1, 10_000 + 1_500 * usize::try_from(number).unwrap());
        self::write(&source.join(format!("static/pictures/{number}.jpg")), &picture);
    }
}

fn post(title: &str, text: &str, tags: &[&str]) -> String {
    format!("---\ntitle: \"{title}\"\ndate: 2026-01-10\ntags: {tags:?}\n---\n{text}\n")
}

/// Returns text that looks like some, and differs from number to number.
fn words(number: u64) -> String {
    const WORDS: [&str; 16] = [
        "quiet", "garden", "morning", "*frost*", "seed", "under", "glass", "window", "the", "a", "**slow**", "wet", "clay", "and", "turns",
        "`spade`",
    ];
    let mut random = Random::new(number + 1);
    let mut text = String::new();
    for word in 0..150 + random.below(600) {
        text.push_str(WORDS[usize::try_from(random.below(16)).unwrap()]);
        text.push_str(if word % 80 == 79 { "\n\n" } else { " " });
    }
    text
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

pub(crate) fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
    fs::write(path, bytes).expect("a file");
}

/// Takes in what `folder` holds, and gives all of it one time.
fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            File::options().write(true).open(&path).and_then(|file| file.set_modified(time)).expect("its time");
            let name = path.strip_prefix(root).expect("below the root").to_str().expect("a name in UTF-8").to_owned();
            files.insert(name, fs::read(&path).expect("a file"));
        }
    }
}
