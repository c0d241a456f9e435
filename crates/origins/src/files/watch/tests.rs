use std::{os::unix::fs::symlink, sync::mpsc};

use http::{Method, Request};
use notify::event::{CreateKind, DataChange, MetadataKind, RemoveKind, RenameMode};
use tempfile::TempDir;

use super::*;
use crate::files::{FilesOptions, answer::answer};

fn folder(files: &[(&str, &str)]) -> TempDir {
    let root = TempDir::new().expect("a folder");
    for (name, content) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("has one")).expect("made");
        fs::write(path, content).expect("written");
    }
    root
}

/// Asks for `path`, so that its dependencies are known. Returns its tags and how long it is valid.
fn asked(files: &Files, path: &str) -> (Vec<String>, String) {
    let (parts, ()) = Request::builder().method(Method::GET).uri(path).body(()).expect("a request").into_parts();
    let (version, watched) = files.shared.current();
    let response = answer(&version, &files.shared, &parts, watched).expect("an answer");
    let field = |name| response.headers()[name].to_str().expect("text").to_owned();
    (field("surrogate-key").split(' ').map(str::to_owned).collect(), field("seawall-cache-control"))
}

const CREATED: EventKind = EventKind::Create(CreateKind::File);
const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
const REMOVED: EventKind = EventKind::Remove(RemoveKind::File);
const MOVED_AWAY: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::From));
const MOVED_HERE: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));
const TOUCHED: EventKind = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));

/// Returns the result of an event for `name`.
fn batch(files: &Files, kind: EventKind, name: &str) -> Batch {
    let root = files.shared.version.read().root.path().to_owned();
    let mut batch = Batch::default();
    batch.add(&Event::new(kind).add_path(root.join(name)), &root, &files.shared);
    batch
}

/// A change of any file concerns the requests that it answers, or would answer.
#[test]
fn a_change_concerns_what_depends_on_it() {
    let root = folder(&[("about.html", "a"), ("blog/index.html", "b"), ("app.js", "c"), ("404.html", "d")]);
    let files = Files::new(root.path()).expect("opens");
    for (name, kind, paths) in [
        ("about.html", WRITTEN, &["/about", "/about.html", "/about/"][..]),
        ("about.html", REMOVED, &["/about"]),
        ("about.html.br", CREATED, &["/about"]),
        ("blog/index.html", WRITTEN, &["/blog", "/blog/", "/blog/index.html"]),
        ("app.js.gz", REMOVED, &["/app.js"]),
        ("new.html", CREATED, &["/new", "/new.html"]),
        ("new.html", MOVED_HERE, &["/new"]),
        ("404.html", WRITTEN, &["/missing", "/also/missing"]),
        ("about.html", TOUCHED, &["/about"]),
    ] {
        let batch = batch(&files, kind, name);
        assert!(!batch.everything && !batch.rules && batch.tags.len() == 1, "{name}: {batch:?}");
        for path in paths {
            let (tags, _) = asked(&files, path);
            assert!(tags.iter().any(|tag| batch.tags.contains(tag)), "{name} {path}");
        }
        assert!(!asked(&files, "/other").0.iter().any(|tag| batch.tags.contains(tag)) || name == "404.html");
    }
}

#[test]
fn what_cannot_be_told_apart_concerns_everything() {
    let root = folder(&[("blog/a.html", "a"), ("unseen/b.html", "b"), ("index.html", "")]);
    symlink("blog", root.path().join("linked")).expect("linked");
    let options = FilesOptions { fallback: Some("index.html".into()), listing: true, ..FilesOptions::default() };
    let files = Files::open(root.path(), options).expect("opens");
    asked(&files, "/blog/a");
    for (name, kind) in [
        ("blog", REMOVED),
        ("blog", MOVED_AWAY),
        ("blog", EventKind::Create(CreateKind::Folder)),
        ("blog", MOVED_HERE),
        ("linked", CREATED),
        ("404.html", CREATED),
        ("blog/404.html", REMOVED),
        ("50x.html", MOVED_HERE),
        ("index.html", REMOVED),
    ] {
        assert!(batch(&files, kind, name).everything, "{name} {kind:?}");
    }
    for (name, kind, tags) in [
        ("gone", REMOVED, 2),
        ("blog", TOUCHED, 0),
        (".git/index", WRITTEN, 0),
        ("blog/.a.swp", CREATED, 0),
        ("", TOUCHED, 0),
        (".well-known/x", WRITTEN, 2),
    ] {
        let batch = batch(&files, kind, name);
        assert!(!batch.everything && batch.tags.len() == tags, "{name} {kind:?} {batch:?}");
    }
    assert!(batch(&files, WRITTEN, "_redirects").rules && batch(&files, CREATED, "_headers").rules);
    assert!(!batch(&files, WRITTEN, "blog/_headers").rules);
}

/// A link that is removed may have been a folder.
#[test]
fn what_was_reached_over_a_link_goes_with_it() {
    let root = folder(&[("blog/a.html", "a")]);
    symlink("blog", root.path().join("linked")).expect("linked");
    let files = Files::new(root.path()).expect("opens");
    asked(&files, "/linked/a");
    fs::remove_file(root.path().join("linked")).expect("removed");
    assert!(batch(&files, REMOVED, "linked").everything);
}

#[test]
fn reading_is_no_change() {
    assert!(!matters(EventKind::Access(AccessKind::Open(AccessMode::Any))));
    assert!(!matters(EventKind::Access(AccessKind::Close(AccessMode::Read))));
    assert!(matters(EventKind::Access(AccessKind::Close(AccessMode::Write))));
}

#[test]
fn every_link_on_the_way_to_the_root_is_looked_after() {
    let place = folder(&[("releases/1/index.html", "")]);
    let base = place.path().canonicalize().expect("is there");
    fs::create_dir(base.join("www")).expect("made");
    symlink("../current", base.join("www/site")).expect("linked");
    symlink("releases/1", base.join("current")).expect("linked");
    let places = places(&base.join("www/site"));
    for expected in [base.join("www"), base.clone(), base.join("releases")] {
        assert!(places.iter().any(|place| place.canonicalize().is_ok_and(|place| place == expected)), "{expected:?} {places:?}");
    }
}

/// Waits for a change that is as `expected`; those before it do not matter.
fn until(told: &mpsc::Receiver<Change>, expected: impl Fn(&Change) -> bool) -> Change {
    loop {
        let change = told.recv_timeout(Duration::from_secs(20)).expect("a change is told");
        if expected(&change) {
            return change;
        }
    }
}

#[test]
fn changes_swaps_and_rules_are_told() {
    let place = folder(&[("one/a.html", "1"), ("two/a.html", "2"), ("two/_redirects", "/x /y\nnonsense\n")]);
    let site = place.path().join("site");
    symlink("one", &site).expect("linked");
    let files = Files::open(&site, FilesOptions::default()).expect("opens");
    let (tell, told) = mpsc::sync_channel(64);
    let watcher = files.watch(move |change| drop(tell.send(change))).expect("watches");

    // The watch has begun once a change is reported by name.
    let tags = asked(&files, "/a").0;
    let written = || fs::write(place.path().join("one/a.html"), "3").expect("written");
    let change = loop {
        written();
        if let Ok(change) = told.recv_timeout(Duration::from_millis(50)) {
            break change;
        }
    };
    assert_eq!(change, Change::Tags(vec![tags[0].clone()]));
    assert_eq!(asked(&files, "/a").1, "max-age=31536000");

    symlink("two", place.path().join("next")).expect("linked");
    fs::rename(place.path().join("next"), &site).expect("swapped");
    let change = until(&told, |change| matches!(change, Change::Replaced(_)));
    assert!(matches!(&change, Change::Replaced(mistakes) if mistakes.len() == 1 && mistakes[0].line == 2), "{change:?}");

    fs::write(place.path().join("two/_redirects"), "/x /z\n").expect("written");
    until(&told, |change| *change == Change::Replaced(Vec::new()));
    drop(watcher);
    assert!(told.iter().count() < 64, "the thread has ended, and with it the channel");
}

/// Whoever breaks while being told is told once more that everything has changed, and of what comes after.
#[test]
fn a_change_that_breaks_its_listener_is_not_the_last_one() {
    let root = folder(&[("a.html", "a")]);
    let files = Files::new(root.path()).expect("opens");
    let (tell, told) = mpsc::sync_channel(64);
    let broken = AtomicBool::new(false);
    let _watcher = files
        .watch(move |change| {
            let is_first = !broken.swap(true, Relaxed);
            let _ = tell.send(change);
            assert!(!is_first, "as a bug would");
        })
        .expect("watches");
    let mut first = None;
    while first.is_none() {
        fs::write(root.path().join("a.html"), "b").expect("written");
        first = told.recv_timeout(Duration::from_millis(50)).ok();
    }
    until(&told, |change| *change == Change::Everything);
    fs::write(root.path().join("c.html"), "c").expect("written");
    until(&told, |change| matches!(change, Change::Tags(tags) if tags.contains(&stem::tag(Path::new("c.html")))));
}
