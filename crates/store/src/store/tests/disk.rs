//! What outlives the process, and what a disk can do to it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex as Lock;
use tempfile::TempDir;

use super::*;
use crate::disk::io::{Done, THREADS};
use crate::disk::{DiskOptions, DiskState, Tiers, Trouble};

/// A folder, and the reports that an operator got about it.
struct TestFolder {
    dir: TempDir,
    told: Arc<Lock<Vec<Trouble>>>,
    packs: bool,
}

impl TestFolder {
    /// Makes a folder in which each response has a file of its own.
    fn of_files() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder"), told: Arc::default(), packs: false }
    }

    /// Makes a folder in which small responses share a file.
    fn of_packs() -> Self {
        Self { packs: true, ..Self::of_files() }
    }

    fn both() -> [Self; 2] {
        [Self::of_files(), Self::of_packs()]
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn options(&self, size_max: u64) -> DiskOptions {
        let told = Arc::clone(&self.told);
        DiskOptions {
            report: Arc::new(move |trouble| told.lock().push(trouble.clone())),
            packs: self.packs,
            ..DiskOptions::new(self.path(), size_max)
        }
    }

    fn open(&self) -> TestStore {
        Store::open(StoreOptions::with_memory(4 << 20), Some(self.options(1 << 30)))
    }

    fn told(&self) -> Vec<Trouble> {
        std::mem::take(&mut *self.told.lock())
    }

    /// Returns the files of stored responses.
    fn files(&self) -> Vec<PathBuf> {
        let buckets = fs::read_dir(self.path().join("objects")).expect("objects");
        let mut files: Vec<PathBuf> = buckets
            .flat_map(|bucket| fs::read_dir(bucket.expect("a bucket").path()).expect("a bucket"))
            .map(|file| file.expect("a file").path())
            .collect();
        files.sort();
        files
    }

    /// Counts the responses in these files: what was cut out of a pack reads as zeros.
    fn stored(&self) -> usize {
        let in_pack = |path: &PathBuf| fs::read(path).expect("there").chunks(512).filter(|unit| unit.starts_with(b"seapack")).count();
        self.files().iter().map(|path| if self.packs { in_pack(path) } else { 1 }).sum()
    }

    fn file(&self) -> PathBuf {
        match self.files().as_slice() {
            [file] => file.clone(),
            files => panic!("{files:?}"),
        }
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

/// Returns what a request finds: in memory, then on the disk.
fn found(store: &TestStore, url: &str) -> Option<Arc<Resource<Page>>> {
    let hash = store.hash(url.as_bytes());
    if store.get(hash, url.as_bytes()).is_none() && store.may_be_on_disk(hash) {
        return wait(store.load(hash, url.as_bytes()));
    }
    store.get(hash, url.as_bytes())
}

fn loaded(store: &TestStore, url: &str) -> Vec<u8> {
    found(store, url).map_or_else(Vec::new, |found| found.variants().iter().map(|stored| stored.record.variant).collect())
}

fn tiers(store: &TestStore, url: &str) -> Tiers {
    store.tiers(store.hash(url.as_bytes()), url.as_bytes())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

#[test]
fn what_is_stored_is_there_after_a_restart() {
    for place in TestFolder::both() {
        let store = place.open();
        put(&store, "h/a", 1);
        let stored = put(&store, "h/a", 2);
        put(&store, "h/b?c", 3);
        store.settle_disk();
        assert_eq!(tiers(&store, "h/a"), Tiers { memory: true, disk: true, disk_bytes: 2 * 4096 });
        let usage = store.usage();
        assert_eq!((usage.disk, usage.disk_objects, usage.disk_writes, usage.disk_bytes), (DiskState::Working, 3, 3, 3 * 4096));
        assert!(place.files().iter().all(|file| mode(file) == 0o600));
        drop(store);

        let store = place.open();
        assert!(!tiers(&store, "h/b?c").memory);
        assert_eq!(loaded(&store, "h/a"), [2, 1], "newest first");
        assert_eq!(loaded(&store, "h/b?c"), [3]);
        assert_eq!(loaded(&store, "h/c"), []);
        let resource = store.get(store.hash(b"h/a"), b"h/a").expect("loaded");
        let again = &resource.variants()[0];
        assert_eq!((again.body.memory(), again.begun(), again.scope()), (stored.body.memory(), stored.begun(), stored.scope()));
        assert_eq!(store.verdict(again), Purged::No);
        assert_eq!(store.usage().disk_loads, 3);
        assert!(!store.may_be_on_disk(store.hash(b"h/a")), "it is in memory");
        assert_eq!(place.told(), []);
    }
}

#[test]
fn a_purge_survives_a_restart() {
    for (hardness, expected) in [(Hardness::Hard, None), (Hardness::Soft, Some(Purged::Soft))] {
        let targets = [
            url("h/a"),
            PurgeTarget::Prefix { site: SITE, url: b"h/".to_vec() },
            PurgeTarget::Tag { site: SITE, tag: "all".into() },
            PurgeTarget::Site(SITE),
            PurgeTarget::All,
        ];
        for target in targets {
            let place = TestFolder::of_packs();
            let store = place.open();
            put(&store, "h/a", 1);
            store.settle_disk();
            store.purge(&target, hardness);
            drop(store);

            let store = place.open();
            loaded(&store, "h/a");
            let resource = store.get(store.hash(b"h/a"), b"h/a");
            assert_eq!(resource.map(|resource| store.verdict(&resource.variants()[0])), expected, "{target:?}");
            // A response that is fetched now is not covered by it.
            put(&store, "h/a", 1);
            store.settle_disk();
            drop(store);
            let store = place.open();
            assert_eq!(loaded(&store, "h/a"), [1]);
            let resource = store.get(store.hash(b"h/a"), b"h/a").expect("loaded");
            assert_eq!(store.verdict(&resource.variants()[0]), Purged::No, "{target:?}");
            assert_eq!(place.stored(), 1, "{target:?}: what was replaced or purged is unlinked");
        }
    }
}

/// A purge after the restart covers what was stored before it.
#[test]
fn what_was_stored_before_a_restart_is_not_younger_than_a_purge_after_it() {
    for place in TestFolder::both() {
        let store = place.open();
        for _ in 0..100 {
            store.purge(&url("h/other"), Hardness::Hard);
        }
        put(&store, "h/a", 1);
        drop(store);
        let store = place.open();
        store.purge(&url("h/a"), Hardness::Hard);
        assert_eq!(loaded(&store, "h/a"), []);
        assert_eq!(place.told(), []);
    }
}

#[test]
fn what_is_replaced_or_removed_leaves_no_file() {
    for place in TestFolder::both() {
        let store = place.open();
        for round in 0..20 {
            put(&store, "h/a", 1);
            if round % 3 == 0 {
                store.settle_disk();
            }
        }
        store.settle_disk();
        assert_eq!((place.stored(), store.usage().disk_objects), (1, 1));
        store.remove(store.hash(b"h/a"), b"h/a");
        store.settle_disk();
        assert_eq!(place.stored(), 0);
        // This also holds while it is being written.
        put(&store, "h/b", 1);
        store.remove(store.hash(b"h/b"), b"h/b");
        store.settle_disk();
        // The next case is a hard purge of a URL.
        put(&store, "h/c", 1);
        put(&store, "h/c?d", 2);
        store.settle_disk();
        assert_eq!(place.stored(), 2);
        store.purge(&url("h/c"), Hardness::Hard);
        store.settle_disk();
        assert_eq!((place.stored(), store.usage().disk_objects, store.usage().disk_bytes), (0, 0, 0));
        // The next case is a response on the disk alone.
        put(&store, "h/d", 1);
        drop(store);
        let store = place.open();
        store.settle_disk();
        store.remove(store.hash(b"h/d"), b"h/d");
        store.settle_disk();
        assert_eq!((place.stored(), loaded(&store, "h/d")), (0, vec![]));
        // The next case is a purge before the folder is listed, by a process that ends at once.
        put(&store, "h/e", 1);
        drop(store);
        let store = place.open();
        store.remove(store.hash(b"h/e"), b"h/e");
        drop(store);
        assert_eq!((place.stored(), loaded(&place.open(), "h/e")), (0, vec![]));
    }
}

#[test]
fn what_memory_evicts_stays_on_the_disk() {
    for place in TestFolder::both() {
        let store: TestStore = Store::open(StoreOptions::with_memory(1 << 20), Some(place.options(1 << 30)));
        let urls: Vec<String> = (0..100).map(|number| format!("h/{number}")).collect();
        for url in &urls {
            let stored = page(store.generation(), 1, url, &[], 30_000);
            store.insert(store.hash(url.as_bytes()), url.as_bytes(), stored, |_| true);
        }
        store.settle_disk();
        let usage = store.usage();
        assert!(usage.resources < 50 && usage.disk_objects == 100, "{usage:?}");
        for url in &urls {
            assert_eq!(loaded(&store, url), [1], "{url}");
        }
        // Reading it back writes nothing.
        store.settle_disk();
        assert_eq!(store.usage().disk_writes, 100);
    }
}

#[test]
fn what_is_to_stay_in_memory_does() {
    for place in TestFolder::both() {
        let store = place.open();
        let stored = page(store.generation(), 1, "h/a", &[], 10).in_memory_only();
        store.insert(store.hash(b"h/a"), b"h/a", stored, |_| true);
        store.settle_disk();
        assert_eq!((place.stored(), tiers(&store, "h/a").disk), (0, false));
    }
}

#[test]
fn the_disk_is_bounded_in_bytes() {
    for place in TestFolder::both() {
        let store: TestStore = Store::open(StoreOptions::with_memory(1 << 20), Some(place.options(50 * 4096)));
        for number in 0..200 {
            put(&store, &format!("h/{number}"), 1);
        }
        store.settle_disk();
        let usage = store.usage();
        assert!(usage.disk_bytes <= 50 * 4096 && usage.disk_objects >= 40, "{usage:?}");
        assert_eq!(place.stored() as u64, usage.disk_objects, "what is evicted is unlinked");
        drop(store);
        // With less room, the oldest are removed.
        let store: TestStore = Store::open(StoreOptions::with_memory(1 << 20), Some(place.options(10 * 4096)));
        while store.usage().disk_is_loading {
            store.settle_disk();
        }
        store.settle_disk();
        assert!(store.usage().disk_objects <= 10);
        assert_eq!(place.stored() as u64, store.usage().disk_objects);
    }
}

#[test]
fn a_damaged_file_is_a_miss_and_goes() {
    type Spoil = fn(&Path);
    fn change(path: &Path, change: fn(&mut Vec<u8>)) {
        let mut bytes = fs::read(path).expect("there");
        change(&mut bytes);
        fs::write(path, bytes).expect("written");
    }
    let cases: [(&str, Spoil); 8] = [
        ("empty", |path| change(path, Vec::clear)),
        ("torn", |path| change(path, |bytes| bytes.truncate(bytes.len() / 2))),
        ("the last byte is gone", |path| change(path, |bytes| bytes.truncate(bytes.len() - 1))),
        ("longer", |path| change(path, |bytes| bytes.push(0))),
        ("a bit of the body", |path| change(path, |bytes| bytes[50] ^= 1)),
        ("a bit of the head", |path| change(path, |bytes| bytes[105] ^= 0x80)),
        ("a bit of the footer", |path| change(path, |bytes| *bytes.last_mut().expect("bytes") ^= 4)),
        ("foreign", |path| {
            change(path, |bytes| *bytes = b"a letter to a friend, quite long enough to have a footer in it ......".to_vec())
        }),
    ];
    for (case, spoil) in cases {
        let place = TestFolder::of_files();
        let store = place.open();
        put(&store, "h/a", 1);
        drop(store);
        spoil(&place.file());
        let store = place.open();
        assert_eq!(loaded(&store, "h/a"), [], "{case}");
        assert_eq!((store.usage().disk_damaged, store.usage().disk_objects, place.files().len()), (1, 0, 0), "{case}");
        assert!(!store.may_be_on_disk(store.hash(b"h/a")), "{case}");
        // It can be stored again.
        put(&store, "h/a", 2);
        drop(store);
        assert_eq!(loaded(&place.open(), "h/a"), [2], "{case}");
    }
}

#[test]
fn foreign_files_are_removed_and_missing_ones_missed() {
    let place = TestFolder::of_files();
    let store = place.open();
    put(&store, "h/a", 1);
    put(&store, "h/b", 2);
    store.settle_disk();
    drop(store);
    let files = place.files();
    let [a, b] = files.as_slice() else { panic!("{files:?}") };
    // One file gets the other's name: it is whole, but of another key and number.
    fs::copy(a, b).expect("copied");
    fs::write(a.with_file_name("notes.txt"), "x").expect("written");
    let store = place.open();
    let found = [loaded(&store, "h/a"), loaded(&store, "h/b")].concat();
    assert_eq!(found.len(), 1, "{found:?}");
    while store.usage().disk_is_loading {
        store.settle_disk();
    }
    assert_eq!((store.usage().disk_damaged, place.files().len()), (2, 1));
    // Somebody removes a file while the store runs.
    drop(store);
    let store = place.open();
    while store.usage().disk_is_loading {
        store.settle_disk();
    }
    fs::remove_file(place.file()).expect("removed");
    assert_eq!([loaded(&store, "h/a"), loaded(&store, "h/b")].concat(), []);
    assert_eq!((store.usage().disk_damaged, store.usage().disk_objects), (0, 0));
}

#[test]
fn a_disk_that_takes_nothing_leaves_memory_alone() {
    let place = TestFolder::of_files();
    let store = place.open();
    // Nothing can be written: the folder for it is not a folder any more. (Permissions would not stop every user.)
    let temporary = place.path().join("tmp");
    fs::remove_dir(&temporary).expect("removed");
    fs::write(&temporary, "").expect("written");
    for number in 0..10 {
        put(&store, &format!("h/{number}"), 1);
        assert_eq!(held(&store, &format!("h/{number}")), [1]);
    }
    store.settle_disk();
    let usage = store.usage();
    assert_eq!((usage.disk, usage.disk_objects), (DiskState::Failing, 0));
    assert!(usage.disk_write_failures >= 1 && usage.disk_write_failures + usage.disk_dropped == 10, "{usage:?}");
    assert!(matches!(place.told().as_slice(), [Trouble::Failing { dir, .. }] if *dir == place.path()), "said once");
    assert!(!tiers(&store, "h/0").disk);

    fs::remove_file(&temporary).expect("removed");
    fs::create_dir(&temporary).expect("made");
    for number in 10..100 {
        put(&store, &format!("h/{number}"), 1);
    }
    store.settle_disk();
    let usage = store.usage();
    assert!(usage.disk == DiskState::Working && usage.disk_objects > 30, "{usage:?}");
    assert_eq!(place.told(), [Trouble::Recovered { dir: place.path() }]);
}

#[test]
fn a_folder_that_cannot_be_used_leaves_memory_alone() {
    for place in TestFolder::both() {
        let first = place.open();
        let second = place.open();
        assert_eq!(place.told(), [Trouble::InUse { dir: place.path() }]);
        put(&second, "h/a", 1);
        second.settle_disk();
        assert_eq!((held(&second, "h/a"), second.usage().disk), (vec![1], DiskState::Off));
        assert!(!second.may_be_on_disk(second.hash(b"h/a")));
        assert!(wait(second.load(second.hash(b"h/a"), b"h/a")).is_none());
        drop((first, second));

        let file = place.dir.path().join("file");
        fs::write(&file, "").expect("written");
        let below = DiskOptions { dir: file.join("cache"), ..place.options(1 << 20) };
        let store: TestStore = Store::open(StoreOptions::with_memory(1 << 20), Some(below));
        put(&store, "h/a", 1);
        assert_eq!(held(&store, "h/a"), [1]);
        assert!(matches!(place.told().as_slice(), [Trouble::Unusable { .. }]));
    }
}

#[test]
fn without_its_purges_or_its_numbers_a_cache_is_given_up() {
    for lost in ["purges", "sites", "secret", "seawall-cache"] {
        let place = TestFolder::of_packs();
        let store = place.open();
        store.site_numbers().number("h", b"").expect("a number");
        store.purge(&url("h/b"), Hardness::Hard);
        put(&store, "h/a", 1);
        drop(store);
        fs::write(place.path().join(lost), "nonsense\n").expect("written");
        let store = place.open();
        assert_eq!(loaded(&store, "h/a"), [], "{lost}");
        assert!(matches!(place.told().as_slice(), [Trouble::Emptied { .. }]), "{lost}");
        put(&store, "h/a", 2);
        drop(store);
        assert_eq!(loaded(&place.open(), "h/a"), [2], "{lost}");
        assert_eq!(place.told(), [], "{lost}: once");
    }
}

#[test]
fn a_crowd_reads_the_disk_once() {
    for place in TestFolder::both() {
        let store = place.open();
        put(&store, "h/a", 1);
        drop(store);
        let store = place.open();
        let hash = store.hash(b"h/a");
        // The disk is busy until all three are there: if a read ended before the second request came, that would begin another one.
        let busy: Vec<_> = (0..THREADS).map(|_| hold(&store)).collect();
        wait(async {
            let mut given_up = Box::pin(store.load(hash, b"h/a"));
            let mut other = Box::pin(store.load(hash, b"h/a"));
            let mut third = Box::pin(store.load(hash, b"h/a"));
            let poll = |load: &mut std::pin::Pin<Box<_>>| futures_poll(load);
            let _ = (poll(&mut given_up), poll(&mut other), poll(&mut third));
            assert_eq!(store.loads.len(), 1);
            drop(given_up);
            drop(busy);
            assert!(other.await.is_some() && third.await.is_some());
        });
        assert_eq!((store.usage().disk_loads, store.loads.len()), (1, 0));
    }
}

/// Occupies one thread of the disk until the returned value is dropped.
fn hold(store: &TestStore) -> (Done<()>, std::sync::mpsc::SyncSender<()>) {
    let (release, released) = std::sync::mpsc::sync_channel(0);
    let job = store.disk.as_ref().expect("a disk tier").io().read(move || assert!(released.recv().is_err())).expect("room");
    (job, release)
}

/// Polls once, without a waker.
fn futures_poll<F: Future>(future: &mut std::pin::Pin<Box<F>>) -> std::task::Poll<F::Output> {
    future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

/// Nobody knows which of the unread files a new response replaces: if one of them were kept, it could come back in its place.
#[test]
fn what_was_not_read_before_it_was_fetched_anew_is_gone() {
    for place in TestFolder::both() {
        let store = place.open();
        put(&store, "h/a", 1);
        put(&store, "h/a", 2);
        drop(store);
        let store = place.open();
        let hash = store.hash(b"h/a");
        let new = put(&store, "h/a", 1);
        store.settle_disk();
        let resource = wait(store.load(hash, b"h/a")).expect("stored");
        assert!(Arc::ptr_eq(&resource.variants()[0], &new));
        assert_eq!(held(&store, "h/a"), [1]);
        drop(store);
        assert_eq!(loaded(&place.open(), "h/a"), [1]);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Purge(u8, Hardness),
    PurgeAll(Hardness),
    Remove(u8),
    Load(u8),
    Settle,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let hardness = || prop_oneof![Just(Hardness::Soft), Just(Hardness::Hard)];
    prop_oneof![
        6 => (0..4u8, 0..3u8).prop_map(|(url, variant)| Step::Put(url, variant)),
        2 => (0..4u8, hardness()).prop_map(|(url, hardness)| Step::Purge(url, hardness)),
        1 => hardness().prop_map(Step::PurgeAll),
        1 => (0..4u8).prop_map(Step::Remove),
        3 => (0..4u8).prop_map(Step::Load),
        1 => Just(Step::Settle),
        2 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// What the model holds is found, restarts or not, with the verdict that the model has; and nothing else is.
    #[test]
    fn a_restart_changes_nothing(packs: bool, steps in prop::collection::vec(step(), 1..40)) {
        let place = if packs { TestFolder::of_packs() } else { TestFolder::of_files() };
        let mut store = place.open();
        // URL to variants, newest first, each with whether it was purged softly.
        let mut model: BTreeMap<u8, Vec<(u8, bool)>> = BTreeMap::new();
        let purge = |variants: &mut Vec<(u8, bool)>, hardness| match hardness {
            Hardness::Hard => variants.clear(),
            Hardness::Soft => variants.iter_mut().for_each(|(_, soft)| *soft = true),
        };
        let name = |url: u8| format!("h/{url}");
        for step in steps {
            match step {
                Step::Put(url, variant) => {
                    // This is what the pipeline does: it looks before it fetches.
                    loaded(&store, &name(url));
                    put(&store, &name(url), variant);
                    let variants = model.entry(url).or_default();
                    variants.retain(|(held, _)| *held != variant);
                    variants.insert(0, (variant, false));
                }
                Step::Purge(url, hardness) => {
                    store.purge(&super::url(&name(url)), hardness);
                    purge(model.entry(url).or_default(), hardness);
                }
                Step::PurgeAll(hardness) => {
                    store.purge(&PurgeTarget::All, hardness);
                    model.values_mut().for_each(|variants| purge(variants, hardness));
                }
                Step::Remove(url) => {
                    store.remove(store.hash(name(url).as_bytes()), name(url).as_bytes());
                    model.remove(&url);
                }
                Step::Load(url) => drop(loaded(&store, &name(url))),
                Step::Settle => store.settle_disk(),
                Step::Restart => {
                    drop(store);
                    store = place.open();
                }
            }
        }
        for url in 0..4 {
            let resource = found(&store, &name(url));
            let found: Vec<(u8, bool)> = resource
                .iter()
                .flat_map(|resource| resource.variants())
                .map(|stored| (stored.record.variant, store.verdict(stored)))
                .filter(|(_, purged)| *purged != Purged::Hard)
                .map(|(variant, purged)| (variant, purged == Purged::Soft))
                .collect();
            prop_assert_eq!(found, model.remove(&url).unwrap_or_default(), "{}", url);
        }
        store.settle_disk();
        while store.usage().disk_is_loading {
            store.settle_disk();
        }
        prop_assert_eq!(place.stored() as u64, store.usage().disk_objects);
        prop_assert_eq!(place.told(), []);
    }
}

/// The file of the body is there for the next start, and goes with it.
#[test]
fn a_body_in_its_forms_alone_keeps_its_file() {
    for place in TestFolder::both() {
        let store = place.open();
        let hash = store.hash(b"h/a");
        let pack = |stored: &Arc<Stored<Page>>| store.replace_body(hash, b"h/a", stored, Content::Packed { length: 100 });
        let stored = put(&store, "h/a", 1);
        store.settle_disk();
        let packed = pack(&stored).expect("it is stored");
        assert!(!store.may_be_on_disk(hash), "it need not be read");
        assert!(tiers(&store, "h/a").disk);
        drop(packed);
        let newer = put(&store, "h/a", 1);
        store.settle_disk();
        assert_eq!(store.usage().disk_objects, 1, "the file of what was replaced is gone");
        pack(&newer).expect("it is stored");
        drop(store);

        let store = place.open();
        let found = found(&store, "h/a").expect("it is on the disk");
        assert_eq!(found.variants()[0].body.memory(), newer.body.memory());
        store.remove(hash, b"h/a");
        store.settle_disk();
        assert!(place.stored() == 0);
    }
}

/// The writer tells the response that it was given, and no other, where the file is.
#[test]
fn a_body_whose_file_is_being_written_stays_as_it_is() {
    for place in TestFolder::both() {
        let store = place.open();
        let hash = store.hash(b"h/a");
        let busy: Vec<_> = (0..THREADS).map(|_| hold(&store)).collect();
        let stored = put(&store, "h/a", 1);
        assert!(store.replace_body(hash, b"h/a", &stored, Content::Packed { length: 100 }).is_none());
        drop(busy);
        store.settle_disk();
        assert!(store.replace_body(hash, b"h/a", &stored, Content::Packed { length: 100 }).is_some());
    }
}

/// Damage in a pack costs the entry that it is in, and no other.
#[test]
fn a_damaged_entry_is_a_miss_and_goes() {
    for (case, at) in [("a bit of the label", 20), ("a bit of the body", 60), ("a bit of the head", 150), ("a bit of the footer", 0)] {
        let place = TestFolder::of_packs();
        let store = place.open();
        put(&store, "h/a", 1);
        put(&store, "h/b", 2);
        drop(store);
        let path = place.file();
        let mut bytes = fs::read(&path).expect("there");
        let last = bytes[..512].iter().rposition(|byte| *byte != 0).expect("an entry");
        bytes[if at == 0 { last } else { at }] ^= 1;
        fs::write(&path, bytes).expect("written");
        let store = place.open();
        assert_eq!((loaded(&store, "h/a"), loaded(&store, "h/b")), (vec![], vec![2]), "{case}");
        assert_eq!((place.stored(), store.usage().disk_objects), (1, 1), "{case}");
        put(&store, "h/a", 3);
        drop(store);
        let store = place.open();
        assert_eq!((loaded(&store, "h/a"), loaded(&store, "h/b")), (vec![3], vec![2]), "{case}");
    }
}

#[test]
fn a_disk_that_takes_no_packs_leaves_memory_alone() {
    let place = TestFolder::of_packs();
    let store = place.open();
    let packs = place.path().join("objects/packs");
    fs::remove_dir(&packs).expect("removed");
    put(&store, "h/a", 1);
    store.settle_disk();
    assert_eq!((held(&store, "h/a"), store.usage().disk), (vec![1], DiskState::Failing));
    assert!(matches!(place.told().as_slice(), [Trouble::Failing { .. }]));
    fs::create_dir(&packs).expect("made");
    for number in 0..100 {
        put(&store, &format!("h/{number}"), 1);
    }
    store.settle_disk();
    assert!(store.usage().disk == DiskState::Working && place.stored() > 50, "{:?}", store.usage());
}

#[test]
fn a_folder_that_is_removed_is_told_with_the_next_page() {
    let place = TestFolder::of_packs();
    let store = place.open();
    put(&store, "h/a", 1);
    store.settle_disk();
    assert_eq!((store.usage().disk, place.told()), (DiskState::Working, vec![]));
    fs::remove_dir_all(place.path()).expect("removed");
    put(&store, "h/b", 2);
    store.settle_disk();
    assert_eq!((store.usage().disk, held(&store, "h/b")), (DiskState::Failing, vec![2]));
    assert!(matches!(place.told().as_slice(), [Trouble::Failing { .. }]));
}

/// A cache that was written with files of their own is read with packs as well, and the other way round.
#[test]
fn both_kinds_of_files_are_read_whatever_is_written() {
    let mut place = TestFolder::of_files();
    for (url, packs) in [("h/a", true), ("h/b", false), ("h/c", true)] {
        put(&place.open(), url, 1);
        place.packs = packs;
    }
    let store = place.open();
    assert_eq!(["h/a", "h/b", "h/c"].map(|url| loaded(&store, url)), [vec![1], vec![1], vec![1]]);
}
