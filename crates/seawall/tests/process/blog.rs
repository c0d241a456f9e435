//! A blog as its author meets it: what is said of mistakes and changes, private links of drafts, and the whole site as a folder.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Output, Stdio},
    sync::mpsc::{Receiver, sync_channel},
    thread,
};

use super::running::{PATIENCE, Running, TestFolder, get};

/// Lines of standard error as they come.
struct Said(Receiver<String>);

impl Said {
    fn of(running: &mut Running) -> Self {
        let lines = BufReader::new(running.stderr()).lines().map_while(Result::ok);
        let (tell, told) = sync_channel(4096);
        thread::spawn(move || lines.for_each(|line| drop(tell.send(line))));
        Self(told)
    }

    /// Waits for a line with this text, and returns it.
    fn line(&self, part: &str) -> String {
        let mut heard = String::new();
        loop {
            match self.0.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(part) => return line,
                Ok(line) => heard += &format!("{line}\n"),
                Err(error) => panic!("{part:?} is never said ({error}):\n{heard}"),
            }
        }
    }
}

fn serve(place: &TestFolder, arguments: &[&str]) -> (Running, Said) {
    let mut running = Running::spawn(place.serve(arguments).stdout(Stdio::null()).stderr(Stdio::piped()));
    let said = Said::of(&mut running);
    running.told("READY=1");
    (running, said)
}

fn text(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A post with a mistake is left out and told with file and line; the blog lives. When the mistake is gone, that is said.
#[test]
fn one_bad_post_does_not_keep_the_blog_from_starting() {
    let place = TestFolder::with_blog();
    place.write("blog/bad.md", "---\ntitle: Bad\ndate: soon\n---\ntext\n");
    place.write("blog/link.md", "# Link\n\n[nowhere](gone.md)\n");
    place.write("blog/empty.md", "");
    let (running, said) = serve(&place, &["blog"]);
    for expected in ["blog/bad.md:3: `date`", "blog/empty.md", "blog/link.md:3: link to \"gone.md\""] {
        said.line(expected);
    }
    assert!(get(&place, "/first/").starts_with("HTTP/1.1 200 "));
    assert!(get(&place, "/bad/").starts_with("HTTP/1.1 404 "));
    place.write("blog/bad.md", "---\ntitle: Bad\ndate: 2026-01-01\n---\ntext\n");
    said.line("mended: blog/bad.md:3:");
    running.until("the post is there", || get(&place, "/bad/").starts_with("HTTP/1.1 200 "));
    assert!(running.stop().success());
}

/// The last good version of a post stays while its new one has a mistake; what a change concerned is counted.
#[test]
fn a_change_is_told_with_what_it_concerned() {
    let place = TestFolder::with_blog();
    for number in 0..20 {
        place.write(&format!("blog/post-{number}.md"), &format!("---\ntitle: Post {number}\ndate: 2025-01-{:02}\n---\ntext\n", number + 1));
    }
    let (running, said) = serve(&place, &["blog"]);
    place.write("blog/post-3.md", "---\ntitle: Post 3\ndate: 2025-01-04\n---\nother text\n");
    let line = said.line("the blog was rebuilt:");
    assert!(line.contains("1 file read"), "{line}");
    let pages: usize = line.split(", ").nth(1).and_then(|rest| rest.split(' ').next()).and_then(|n| n.parse().ok()).expect("a number");
    assert!((1..12).contains(&pages), "the post, the lists and feeds that show it, and not the other posts: {line}");
    place.write("blog/post-3.md", "---\ntitle: Post 3\ndate: never\n---\nno text\n");
    said.line("blog/post-3.md:3:");
    assert!(get(&place, "/post-3/").contains("other text"), "the last good version stays");
    assert!(running.stop().success());
}

/// Every problem is told with its line, without serving; a warning alone is not a failure.
#[test]
fn check_tells_all_problems_of_a_blog() {
    let place = TestFolder::with_blog();
    let check = |arguments: &[&str]| place.seawall(&[&["check"], arguments].concat()).output().expect("it runs");
    let fine = check(&["blog"]);
    assert_eq!((fine.status.code(), text(&fine).0.contains("blog is fine.")), (Some(0), true), "{fine:?}");

    place.write("blog/first.md", "---\ntitle: First\nlayout: wide\n---\ntext\n");
    place.write("blog/_headers", "nonsense\n");
    place.write("blog/_redirects", "/old /first/\n/first /old 302\n");
    let warned = check(&["blog"]);
    let (out, err) = text(&warned);
    assert_eq!(warned.status.code(), Some(0), "{warned:?}");
    assert!(
        err.contains("warning: ")
            && err.contains("blog/_headers:1: ")
            && err.contains("blog/_redirects:2: /first is an address")
            && out.contains("is fine, with "),
        "{out}{err}"
    );

    place.write("blog/bad.md", "---\ntitle: Bad\ndate: soon\n---\n\n");
    place.write("blog/worse.md", "---\ntitle: [\n---\n");
    for arguments in [&["blog"][..], &["blog", "--kind", "blog"]] {
        let wrong = check(arguments);
        let (out, err) = text(&wrong);
        assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
        for expected in ["error: ", "blog/bad.md:3: `date`", "blog/worse.md:", "warning: "] {
            assert!(err.contains(expected), "{expected} in {err}");
        }
        assert!(out.contains("has 2 faults"), "{out}");
    }
}

/// The link of a draft is said at the start and by `check`, opens the draft alone, stays the same after a restart, and is kept by nobody.
#[test]
fn a_draft_has_a_private_link_that_survives_a_restart() {
    let place = TestFolder::with_blog();
    place.write("blog/plans.md", "---\ntitle: Secret plans\ndraft: true\n---\nnot yet\n");
    place.write("blog/_drafts/idea.md", "# An idea\n\n![sketch](sketch.png)\n");
    place.write("blog/_drafts/sketch.png", "a picture");
    let link = |line: &str| {
        let from = line.find("/preview/").unwrap_or_else(|| panic!("no link in {line}"));
        line[from..].split_whitespace().next().expect("a link").to_owned()
    };
    let (running, said) = serve(&place, &["blog"]);
    let mut lines = [said.line("/preview/"), said.line("/preview/")];
    lines.sort();
    let (idea, plans) = (link(&lines[0]), link(&lines[1]));
    let answer = get(&place, &plans);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("Secret plans"), "{answer}");
    let lower = answer.to_ascii_lowercase();
    for field in ["cache-control: private, no-store", "x-robots-tag: noindex", "referrer-policy: no-referrer"] {
        assert!(lower.contains(field), "{field} in {answer}");
    }
    assert!(!lower.contains("\nage:") && !lower.contains("etag:"), "{answer}");
    // The picture beside it, too, and nothing else: not the other draft.
    let idea_text = get(&place, &idea);
    assert!(idea_text.contains("An idea"), "{idea_text}");
    let (token, other) = (idea.split('/').nth(2).expect("a token"), plans.split('/').nth(2).expect("a token"));
    assert_ne!(token, other);
    assert!(get(&place, &format!("/preview/{token}/_drafts/sketch.png")).contains("a picture"));
    for wrong in [
        format!("/preview/{token}/plans/"),
        format!("/preview/{other}/_drafts/sketch.png"),
        format!("/preview/{token}0/idea/"),
        format!("/preview/{token}/"),
    ] {
        assert!(get(&place, &wrong).starts_with("HTTP/1.1 404 "), "{wrong}");
    }
    let check = place.seawall(&["check", "blog"]).output().expect("it runs");
    assert!(text(&check).0.contains(&plans), "{check:?}");
    // An edit of a draft is seen, and said with its link.
    place.write("blog/plans.md", "---\ntitle: Secret plans\ndraft: true\n---\nsoon\n");
    assert_eq!(link(&said.line("plans.md is not published yet")), plans);
    assert!(get(&place, &plans).contains("soon"));
    assert!(running.stop().success());

    let (running, said) = serve(&place, &["blog"]);
    let mut lines = [said.line("/preview/"), said.line("/preview/")];
    lines.sort();
    assert_eq!((link(&lines[0]), link(&lines[1])), (idea, plans.clone()));
    assert!(get(&place, &plans).contains("soon"));
    assert!(running.stop().success());
}

/// With `--drafts`, drafts are among the posts.
#[test]
fn drafts_are_shown_when_asked_for() {
    let place = TestFolder::with_blog();
    place.write("blog/plans.md", "---\ntitle: Secret plans\ndraft: true\n---\nnot yet\n");
    let (running, _said) = serve(&place, &["blog", "--drafts"]);
    assert!(get(&place, "/").contains("Secret plans") && get(&place, "/plans/").contains("not yet"));
    assert!(running.stop().success());
    let place = TestFolder::with_site();
    let wrong = place.seawall(&["check", "site", "--drafts"]).output().expect("it runs");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong).1.contains("--drafts is for folders of Markdown"), "{wrong:?}");
}

/// Files of a folder, by path below it.
fn files(folder: &Path) -> Vec<String> {
    fn walk(folder: &Path, prefix: &str, names: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let name = format!("{prefix}{}", entry.file_name().to_str().expect("text"));
            if entry.path().is_dir() {
                walk(&entry.path(), &format!("{name}/"), names);
            } else {
                names.push(name);
            }
        }
    }
    let mut names = Vec::new();
    walk(folder, "", &mut names);
    names.sort();
    names
}

fn content(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head").1
}

/// Every byte is what is served live; and the folder, served as one, answers the same at every address.
#[test]
fn a_site_that_is_written_is_the_site_that_is_served() {
    let place = TestFolder::with_blog();
    place.write("blog/blog.toml", "title = \"A blog\"\nbase_url = \"https://blog.example\"\n");
    place.write(
        "blog/posts/zweite.md",
        "---\ntitle: Zweite\ndate: 2026-01-02\ntags: [Über, b]\naliases: [/alt/]\n---\n[first](../first.md) ![cat](cat.svg)\n",
    );
    place.write("blog/posts/cat.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"2\" height=\"1\"/>");
    place.write("blog/pages/about.md", "# About\n");
    place.write("blog/plans.md", "---\ntitle: Plans\ndraft: true\n---\ntext\n");
    place.write("blog/_redirects", "/old /first/ 302\n");
    place.write("blog/_headers", "/about/\n  X-Page: about\n");
    place.write("blog/notes/large.txt", &"large ".repeat(400_000));
    let build = place.seawall(&["build", "blog", "public"]).output().expect("it runs");
    assert!(build.status.success(), "{build:?}");
    let public = place.path().join("public");
    let names = files(&public);
    let (running, _said) = serve(&place, &["blog"]);
    for name in names.iter().filter(|name| !name.starts_with(['.', '_'])) {
        let path = format!("/{}", name.strip_suffix("index.html").unwrap_or(name)).replace('ü', "%C3%BC");
        let live = get(&place, &path);
        let expected = if name == "404.html" { "HTTP/1.1 404 " } else { "HTTP/1.1 200 " };
        assert!(live.starts_with(expected), "{path}: {live}");
        assert!(content(&live) == String::from_utf8_lossy(&fs::read(public.join(name)).expect("read")), "{path} differs");
    }
    for expected in [
        "index.html",
        "first/index.html",
        "first/index.md",
        "feed.xml",
        "sitemap.xml",
        "robots.txt",
        "404.html",
        "tags/über/index.html",
        "posts/cat.svg",
        "notes/large.txt",
    ] {
        assert!(names.iter().any(|name| name == expected), "{expected} in {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("plans")), "{names:?}");
    let others = ["/alt/", "/alt", "/old", "/about", "/page/1/", "/nothing/", "/plans/"];
    let seen = |place: &TestFolder| {
        let field =
            |answer: &str, name: &str| answer.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix(name).map(str::to_owned));
        others.map(|path| {
            let answer = get(place, path);
            (path, answer[..12].to_owned(), field(&answer, "location: "))
        })
    };
    let live = (seen(&place), get(&place, "/about/").to_ascii_lowercase().contains("x-page: about"));
    let feed_type =
        |answer: &str| answer.lines().find(|line| line.to_ascii_lowercase().starts_with("content-type")).map(str::to_ascii_lowercase);
    let live_type = feed_type(&get(&place, "/feed.xml"));
    assert!(running.stop().success());
    let (running, _said) = serve(&place, &["public"]);
    let written = (seen(&place), get(&place, "/about/").to_ascii_lowercase().contains("x-page: about"));
    assert_eq!(written, live);
    assert_eq!(feed_type(&get(&place, "/feed.xml")), live_type);
    let style = names.iter().find(|name| name.starts_with("theme/") && name.ends_with(".css")).expect("a style");
    assert!(get(&place, &format!("/{style}")).to_ascii_lowercase().contains("cache-control: public, max-age=31536000, immutable"));
    assert!(running.stop().success());
}

/// A blog stores no responses, but pictures, alerts and what was seen are kept in the folder of the cache. A later source stores its pages there.
#[test]
fn the_folder_that_a_blog_has_begun_takes_the_pages_of_a_server() {
    let place = TestFolder::with_blog();
    let cache = ["--cache-dir", "cache"];
    let (running, _said) = serve(&place, &[&["blog"][..], &cache].concat());
    assert!(get(&place, "/first/").starts_with("HTTP/1.1 200 "));
    assert!(running.stop().success());
    let kept = files(&place.path().join("cache"));
    assert!(kept.iter().any(|name| name == "alerts.json") && !kept.iter().any(|name| name == "seawall-cache"), "{kept:?}");
    let (running, _said) = serve(&place, &[&["http://127.0.0.1:9", "--kind", "generic"][..], &cache].concat());
    assert!(running.stop().success());
    let kept = files(&place.path().join("cache"));
    assert!(kept.iter().any(|name| name == "seawall-cache"), "{kept:?}");
}

/// A TIFF may say where it was taken, whatever it is called: it is not published, and the site is whole without it. Each is told, however many they are.
#[test]
fn pictures_that_must_not_be_published_keep_no_site_back() {
    let place = TestFolder::with_blog();
    for number in 0..400 {
        place.write(&format!("blog/p{number}.jpg"), "II*\0\u{8}\0\0\0SECRET");
    }
    for arguments in [&["build", "blog", "public", "--base-url", "https://blog.example"][..], &["check", "blog"]] {
        let output = place.seawall(arguments).output().expect("it runs");
        let told = text(&output).1;
        assert_eq!(told.matches("so it is left out").count(), 400, "{told}");
        assert!((0..400).all(|number| told.contains(&format!("blog/p{number}.jpg:"))) && !told.contains("lost"), "{told}");
        assert_eq!(output.status.success(), arguments[0] == "build", "{output:?}");
    }
    let written = files(&place.path().join("public"));
    assert!(
        written.iter().any(|name| name == "index.html") && !written.iter().any(|name| name.ends_with(".jpg") && name.starts_with('p')),
        "{written:?}"
    );
}

/// A later build changes what differs, removes what is gone, and leaves what it has not written.
#[test]
fn a_build_is_repeated_and_touches_nothing_else() {
    let place = TestFolder::with_blog();
    place.write("blog/second.md", "# Second\n");
    let build = |folder: &str| place.seawall(&["build", "blog", folder, "--base-url", "https://blog.example"]).output().expect("it runs");
    assert!(build("public").status.success());
    place.write("public/CNAME", "blog.example");
    let again = build("public");
    assert!(text(&again).0.contains(" 0 new or changed"), "{again:?}");
    fs::remove_file(place.path().join("blog/second.md")).expect("removed");
    place.write("blog/third.md", "# Third\n");
    let third = build("public");
    assert!(third.status.success(), "{third:?}");
    let names = files(&place.path().join("public"));
    assert!(names.iter().any(|name| name == "third/index.html") && names.iter().any(|name| name == "CNAME"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("second/")) && !place.path().join("public/second").exists(), "{names:?}");

    place.write("other/own.txt", "mine");
    place.write("blog/inner/x.md", "# X\n");
    for (folder, expected) in [("other", "is not empty"), ("blog/inner/site", "within each other"), (".", "within each other")] {
        let refused = build(folder);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(text(&refused).1.contains(expected), "{refused:?}");
    }
    assert_eq!(files(&place.path().join("other")), ["own.txt"]);

    let no_base = place.seawall(&["build", "blog", "new"]).output().expect("it runs");
    assert!(no_base.status.code() == Some(1) && text(&no_base).1.contains("--base-url https://"), "{no_base:?}");
    let wrong_base = place.seawall(&["build", "blog", "new", "--base-url", "blog.example"]).output().expect("it runs");
    assert!(wrong_base.status.code() == Some(1) && text(&wrong_base).1.contains("https://blog.example"), "{wrong_base:?}");
    assert!(text(&wrong_base).1.starts_with("error: \"blog.example\""), "{wrong_base:?}");
    let no_blog = place.seawall(&["build", "gone", "new", "--base-url", "https://blog.example"]).output().expect("it runs");
    assert!(no_blog.status.code() == Some(1) && text(&no_blog).1.starts_with("error: gone is not a folder"), "{no_blog:?}");
    place.write("blog/bad.md", "---\ndate: soon\n---\n# Bad\n");
    let bad = build("new");
    assert!(bad.status.code() == Some(1) && text(&bad).1.contains("blog/bad.md:2:"), "{bad:?}");
    assert!(!place.path().join("new").exists(), "nothing was written");
    // What refuses the folder is told before anything is read or made.
    for (folder, expected) in [("other", "is not empty"), ("blog/inner/site", "within each other")] {
        let refused = text(&build(folder)).1;
        assert!(refused.contains(expected) && !refused.contains("bad.md"), "{refused}");
    }
}
