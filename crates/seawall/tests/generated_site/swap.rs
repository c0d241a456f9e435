//! The next build takes the place of the last one while readers read: no answer is wrong, cut short or of two builds, and whoever asks after
//! somebody has seen the new build gets the new one.
//!
//! Both builds have the same names, lengths and times for nearly all files, so nothing but their bytes tells them apart.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    net::SocketAddr,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    crawl::path_of,
    hugo::{self, Built},
    random::Random,
    reader::Reader,
    server::Server,
};

const READERS: usize = 4;
/// The number of times that the site is swapped, back and forth.
const SWAPS: usize = 6;
/// Answers of the new build that every reader gets before the next swap.
const ENOUGH: usize = 60;
/// The longest that a new build may stay unseen: where nobody tells of changes, a look a second has to do.
const UNSEEN_MAX: Duration = Duration::from_secs(3);

/// `current` is a symbolic link; the next build's is renamed over it.
#[test]
fn a_symbolic_link_to_the_next_build() {
    let place = tempfile::tempdir().expect("a folder");
    let builds = hugo::build(place.path());
    let current = place.path().join("current");
    symlink("a", &current).expect("linked");
    swap_under_load(place.path(), &current, &builds, |number| {
        let next = place.path().join("next");
        symlink(if number % 2 == 0 { "a" } else { "b" }, &next).expect("linked");
        fs::rename(&next, &current).expect("renamed");
    });
}

/// `mv public old; mv next public`: for a moment there is no folder of that name at all.
#[test]
fn a_folder_renamed_to_the_place_of_another() {
    let place = tempfile::tempdir().expect("a folder");
    let builds = hugo::build(place.path());
    let (public, a, b) = (place.path().join("public"), place.path().join("a"), place.path().join("b"));
    fs::rename(&a, &public).expect("renamed");
    swap_under_load(place.path(), &public, &builds, |number| {
        let (old, new): (&PathBuf, &PathBuf) = if number % 2 == 0 { (&b, &a) } else { (&a, &b) };
        fs::rename(&public, old).expect("renamed");
        fs::rename(new, &public).expect("renamed");
    });
}

/// Holds what everybody knows of the builds that have been published so far: number 0 is there at the start, even numbers are the first
/// build and odd ones the second.
struct State {
    /// The number whose publication has begun.
    begun: AtomicUsize,
    /// The greatest that a reader has seen.
    seen: AtomicUsize,
    stop: AtomicBool,
    /// The number of answers of build `seen` that each reader has got.
    counts: Mutex<[usize; READERS]>,
    changed: Condvar,
}

impl State {
    /// Waits until `done` with the counts, or until somebody has failed.
    fn wait(&self, what: &str, limit: Duration, done: impl Fn(&[usize; READERS]) -> bool) {
        let counts = self.counts.lock().expect("the counts");
        let waiting = |counts: &mut [usize; READERS]| !done(counts) && !self.stop.load(SeqCst);
        let (counts, waited) = self.changed.wait_timeout_while(counts, limit, waiting).expect("the counts");
        assert!(!waited.timed_out(), "waited {} s for {what}: {counts:?}", limit.as_secs());
    }

    fn wait_until_seen(&self, number: usize, limit: Duration) {
        self.wait(&format!("a first answer of build {number}"), limit, |_| self.seen.load(SeqCst) == number);
    }

    /// Waits until every reader has got enough of build `number`.
    fn wait_until_read(&self, number: usize) {
        let what = format!("all readers to have read in build {number}");
        self.wait(&what, Duration::from_secs(30), |counts| self.seen.load(SeqCst) == number && counts.iter().all(|&count| count >= ENOUGH));
    }
}

/// Ends the readers, however the test ends.
struct Stop<'a>(&'a State);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, SeqCst);
        self.0.changed.notify_all();
    }
}

/// Every path of either build, and what each build answers there.
struct Pages {
    paths: Vec<String>,
    /// The content, or `None` where the build has no such file.
    contents: BTreeMap<String, [Option<Vec<u8>>; 2]>,
    missing: [Vec<u8>; 2],
}

impl Pages {
    fn new(builds: &[Built; 2]) -> Self {
        let names: BTreeSet<&String> = builds.iter().flat_map(|build| build.files.keys()).filter(|name| *name != "404.html").collect();
        let contents: BTreeMap<_, _> =
            names.iter().map(|name| (path_of(name), [0, 1].map(|build: usize| builds[build].files.get(*name).cloned()))).collect();
        assert!(contents.values().any(|[a, _]| a.is_none()) && contents.values().any(|[_, b]| b.is_none()), "a page of one build alone");
        Self {
            paths: contents.keys().cloned().collect(),
            contents,
            missing: [0, 1].map(|build: usize| builds[build].files["404.html"].clone()),
        }
    }

    /// Tells whether `build` answers a request for `path` so.
    fn is_of(&self, build: usize, path: &str, status: u16, content: &[u8]) -> bool {
        match &self.contents[path][build] {
            Some(file) => status == 200 && content == file,
            None => status == 404 && content == self.missing[build],
        }
    }
}

fn swap_under_load(place: &Path, root: &Path, builds: &[Built; 2], publish: impl Fn(usize)) {
    let pages = Pages::new(builds);
    let server = Server::start(root, &place.join("cache"));
    let state = State {
        begun: AtomicUsize::new(0),
        seen: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        counts: Mutex::new([0; READERS]),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        let _stop = Stop(&state);
        for number in 0..READERS {
            let (state, pages, address) = (&state, &pages, server.address);
            scope.spawn(move || {
                // A reader that fails ends the others and the test.
                let _stop = Stop(state);
                read_until_stopped(number, state, pages, address);
            });
        }
        state.wait_until_read(0);
        for number in 1..=SWAPS {
            // Somebody is in the middle of a long file, and stays with the one that was begun.
            let (old, new) = (&builds[(number - 1) % 2].files["film.bin"], &builds[number % 2].files["film.bin"]);
            let mut slow = Reader::connect(server.address);
            slow.send("/film.bin", "");
            let head = slow.head("/film.bin");
            let length = slow.length(&head, "/film.bin");
            let mut film = slow.take(300_000, "/film.bin");

            state.begun.store(number, SeqCst);
            publish(number);
            state.wait_until_seen(number, UNSEEN_MAX);
            state.wait_until_read(number);
            if state.stop.load(SeqCst) {
                return;
            }

            film.extend(slow.take(length - film.len(), "/film.bin"));
            assert!(film == *old, "the film of build {} that was begun before {number}", number - 1);
            // Whoever has one film, or a part of it, is told nothing of the other: it is as long, and as old.
            let tag = head.value("etag").expect("a validator");
            let whole = slow.get("/film.bin", &format!("If-None-Match: {tag}\r\n"));
            assert!(whole.status == 200 && whole.content == *new, "{} to the tag of build {}", whole.status, number - 1);
            let rest = slow.get("/film.bin", &format!("Range: bytes=300000-\r\nIf-Range: {tag}\r\n"));
            assert!(rest.status == 200 && rest.content == *new, "{} to a part of build {}", rest.status, number - 1);
        }
    });
}

/// `rsync`: file by file, each renamed to its place, and what is gone removed. Pages of both builds stand side by side meanwhile, but each is
/// whole, none goes back, and once the last file is in its place all are new.
#[test]
fn a_folder_filled_file_by_file() {
    let place = tempfile::tempdir().expect("a folder");
    let builds = hugo::build(place.path());
    let (public, mut pages) = (place.path().join("a"), Pages::new(&builds));
    // Between the removal of a page and the new page for what is missing, that is of no build.
    pages.paths.retain(|path| pages.contents[path].iter().all(Option::is_some));
    let server = Server::start(&public, &place.path().join("cache"));
    let seen: BTreeMap<&str, AtomicBool> = pages.paths.iter().map(|path| (path.as_str(), AtomicBool::new(false))).collect();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|number| {
                let (pages, seen, stop, address) = (&pages, &seen, &stop, server.address);
                scope.spawn(move || {
                    let mut reader = Browser::new(number, address);
                    while !stop.load(SeqCst) {
                        let path = reader.choose(pages);
                        let before = seen[path].load(SeqCst);
                        let Some(build) = reader.read(pages, path) else { continue };
                        assert!(build == 1 || !before, "{path} is of the old build, though the new one had been seen");
                        seen[path].store(build == 1, SeqCst);
                    }
                })
            })
            .collect();
        let mut first = Browser::new(READERS, server.address);
        for name in builds[0].files.keys().filter(|name| !builds[1].files.contains_key(*name)) {
            fs::remove_file(public.join(name)).expect("removed");
        }
        for (name, content) in &builds[1].files {
            hugo::write(&public.join(".next"), content);
            fs::create_dir_all(public.join(name).parent().expect("a file is in a folder")).expect("a folder");
            fs::rename(public.join(".next"), public.join(name)).expect("renamed");
        }
        let end = Instant::now() + UNSEEN_MAX;
        loop {
            let last = Instant::now() >= end || readers.iter().any(thread::ScopedJoinHandle::is_finished);
            let old = pages.paths.iter().find(|path| first.read(&pages, path) == Some(0));
            if old.is_none() || last {
                stop.store(true, SeqCst);
                assert_eq!(old, None, "still of the old build");
                break;
            }
        }
    });
}

/// Asks for one page after the other, and judges every answer.
fn read_until_stopped(me: usize, state: &State, pages: &Pages, address: SocketAddr) {
    let mut reader = Browser::new(me, address);
    while !state.stop.load(SeqCst) {
        let path = reader.choose(pages);
        let least = state.seen.load(SeqCst);
        let build = reader.read(pages, path);
        let most = state.begun.load(SeqCst);

        let Some(build) = build else { continue };
        let number = if most % 2 == build { Some(most) } else { most.checked_sub(1) };
        let number = number.unwrap_or_else(|| panic!("{path} is of a build that was never published"));
        assert!(number >= least, "{path} is of build {number}, though build {least} had been seen before it was asked for");

        let mut counts = state.counts.lock().expect("the counts");
        // Under the lock, or a count could be of the last build.
        if number > state.seen.load(SeqCst) {
            state.seen.store(number, SeqCst);
            *counts = [0; READERS];
        }
        if number == state.seen.load(SeqCst) {
            counts[me] += 1;
            state.changed.notify_all();
        }
    }
}

/// A reader that keeps what it has got, and at times asks only whether that still holds.
struct Browser {
    /// Every other one takes gzip.
    takes: &'static str,
    random: Random,
    address: SocketAddr,
    reader: Reader,
    /// Tag and content by path.
    kept: HashMap<String, (String, Vec<u8>)>,
}

impl Browser {
    fn new(number: usize, address: SocketAddr) -> Self {
        let takes = if number.is_multiple_of(2) { "" } else { "Accept-Encoding: gzip\r\n" };
        Self { takes, random: Random::new(number as u64 + 1), address, reader: Reader::connect(address), kept: HashMap::new() }
    }

    /// Chooses a page. A few pages are chosen again and again, as on any site.
    fn choose<'p>(&mut self, pages: &'p Pages) -> &'p str {
        let favourite = self.random.below(3) > 0;
        let number = if favourite { self.random.below(8) * 7 } else { self.random.below(pages.paths.len() as u64) };
        &pages.paths[usize::try_from(number).unwrap()]
    }

    /// Reads a page, and returns the build that answers for `path`; `None` if both do alike.
    fn read(&mut self, pages: &Pages, path: &str) -> Option<usize> {
        if self.random.below(10) == 0 {
            self.reader = Reader::connect(self.address);
        }
        let asks = self.random.below(2) == 0;
        let condition = self.kept.get(path).filter(|_| asks).map(|(tag, _)| format!("If-None-Match: {tag}\r\n"));
        let mut answer = self.reader.get(path, &(condition.unwrap_or_default() + self.takes)).decoded();
        if answer.status == 304 {
            // It says that what the reader has is right.
            answer.status = 200;
            answer.content.clone_from(&self.kept[path].1);
        }
        let of = [0, 1].map(|build| pages.is_of(build, path, answer.status, &answer.content));
        assert!(of != [false, false], "{path}: {} and {} bytes are of no build", answer.status, answer.content.len());
        if let Some(tag) = answer.value("etag").filter(|_| answer.status == 200) {
            self.kept.insert(path.to_owned(), (tag.to_owned(), answer.content));
        }
        (of != [true, true]).then_some(usize::from(of[1]))
    }
}
