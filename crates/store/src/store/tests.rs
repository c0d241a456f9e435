mod disk;
mod forms;

use std::collections::BTreeMap;

use bytes::Bytes as Body;
use proptest::prelude::*;

use super::*;
use crate::resource::Scope;

/// A page: the name of a variant, and the heap bytes it claims to own.
#[derive(Debug, Clone, PartialEq)]
struct Page {
    variant: u8,
    heap: usize,
}

impl Record for Page {
    fn weight(&self) -> usize {
        self.heap
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.variant);
        out.extend_from_slice(&(self.heap as u64).to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (variant, heap) = bytes.split_first()?;
        Some(Self { variant: *variant, heap: usize::try_from(u64::from_le_bytes(heap.try_into().ok()?)).ok()? })
    }
}

type TestStore = Store<Page, ()>;

const SITE: u16 = 1;

fn store(memory: u64) -> TestStore {
    Store::new(StoreOptions::with_memory(memory))
}

fn page(begun: Generation, variant: u8, url: &str, tags: &[&str], length: usize) -> Stored<Page> {
    let scope = Scope { site: SITE, url: url.as_bytes().into(), tags: tags.iter().map(|tag| (*tag).into()).collect() };
    Stored::new(Page { variant, heap: 0 }, Body::from(vec![variant; length]), begun, scope)
}

/// Stores a variant under `url` (the key is the URL with its query) as if it had been fetched just now.
fn put(store: &TestStore, url: &str, variant: u8) -> Arc<Stored<Page>> {
    put_begun(store, store.generation(), url, variant)
}

fn put_begun(store: &TestStore, begun: Generation, url: &str, variant: u8) -> Arc<Stored<Page>> {
    let path = url.split('?').next().expect("split yields something");
    let stored = page(begun, variant, path, &["all"], 100);
    store.insert(store.hash(url.as_bytes()), url.as_bytes(), stored, |held| held.variant == variant)
}

fn held(store: &TestStore, url: &str) -> Vec<u8> {
    let resource = store.get(store.hash(url.as_bytes()), url.as_bytes());
    resource.map_or_else(Vec::new, |resource| resource.variants().iter().map(|stored| stored.record.variant).collect())
}

fn url(url: &str) -> PurgeTarget {
    PurgeTarget::Url { site: SITE, url: url.into() }
}

#[test]
fn looking_finds_what_asking_finds() {
    let store = store(1 << 20);
    let (key, other) = (store.hash(b"/a"), store.hash(b"/b"));
    assert!(store.peek(key, b"/a").is_none() && store.resources().next().is_none());
    put(&store, "/a", 7);
    assert_eq!(store.peek(key, b"/a").map(|resource| resource.variants().len()), Some(1));
    assert!(store.peek(key, b"/b").is_none(), "another key of the same hash");
    assert_eq!(store.resources().map(|resource| resource.key().to_vec()).collect::<Vec<_>>(), [b"/a"]);

    assert_eq!(store.uncacheable_until(key), None);
    store.mark_uncacheable(key, 1_000);
    assert_eq!((store.uncacheable_until(key), store.uncacheable_until(other)), (Some(1_000), None));

    assert_eq!(store.flight(key, b"/a", (SITE, b"h/a"), Moment::default()), None);
    let Joined::Lead(lead) = store.join(key, b"/a") else { panic!("nobody fetches") };
    let Joined::Follow(follow) = store.join(key, b"/a") else { panic!("somebody fetches") };
    assert_eq!(store.flight(key, b"/a", (SITE, b"h/a"), Moment::default()), Some(FlightView { followers: 1, arriving: false }));
    assert_eq!(store.flight(key, b"/b", (SITE, b"h/b"), Moment::default()), None);
    store.purge(&PurgeTarget::All, Hardness::Soft);
    assert_eq!(store.flight(key, b"/a", (SITE, b"h/a"), Moment::default()), None, "nobody follows a fetch that began before a purge");
    drop((lead, follow));
}

#[test]
fn a_store_is_shared_by_threads() {
    const fn shared<T: Send + Sync + 'static>() {}
    const fn sent<T: Send + 'static>() {}
    shared::<TestStore>();
    sent::<Joined<Page, ()>>();
    sent::<crate::Writer<Page, ()>>();
    sent::<crate::FlightGuard<Page, ()>>();
    sent::<crate::Reader<()>>();
}

#[test]
fn the_full_key_is_compared() {
    let store = store(1 << 20);
    put(&store, "h/a", 1);
    assert!(store.get(store.hash(b"h/a"), b"h/a").is_some());
    assert!(store.get(store.hash(b"h/b"), b"h/b").is_none());
    assert!(store.get(store.hash(b"h/a"), b"h/b").is_none(), "a hash alone proves nothing");
    store.remove(store.hash(b"h/a"), b"h/b");
    assert_eq!(held(&store, "h/a"), [1]);
}

#[test]
fn variants_are_replaced_newest_first_and_bounded() {
    let store = store(1 << 20);
    // what is stored, what is then held
    let steps: [(u8, &[u8]); 5] = [(1, &[1]), (2, &[2, 1]), (3, &[3, 2, 1]), (2, &[2, 3, 1]), (2, &[2, 3, 1])];
    for (variant, expected) in steps {
        put(&store, "h/a", variant);
        assert_eq!(held(&store, "h/a"), expected);
    }
    for variant in 10..30 {
        put(&store, "h/a", variant);
    }
    assert_eq!(held(&store, "h/a"), [29, 28, 27, 26, 25, 24, 23, 22], "eight, the oldest gone");
    store.remove(store.hash(b"h/a"), b"h/a");
    assert_eq!(held(&store, "h/a"), [0; 0]);
    assert_eq!((store.usage().bytes, store.usage().resources, store.urls.len()), (0, 0, 0));
}

/// The fence, in every order of purge (P), fetch (F) and insert (I).
#[test]
fn a_purge_covers_every_fetch_that_began_before_it() {
    for (hardness, purged) in [(Hardness::Soft, Purged::Soft), (Hardness::Hard, Purged::Hard)] {
        // F I P
        let store_1 = store(1 << 20);
        let stored = put(&store_1, "h/a", 1);
        store_1.purge(&url("h/a"), hardness);
        assert_eq!(store_1.verdict(&stored), purged);
        // F P I
        let store_2 = store(1 << 20);
        let begun = store_2.generation();
        store_2.purge(&url("h/a"), hardness);
        let stored = put_begun(&store_2, begun, "h/a", 1);
        assert_eq!(store_2.verdict(&stored), purged);
        // P F I
        let store_3 = store(1 << 20);
        store_3.purge(&url("h/a"), hardness);
        let stored = put(&store_3, "h/a", 1);
        assert_eq!(store_3.verdict(&stored), Purged::No);
        assert_eq!(held(&store_3, "h/a"), [1]);
    }
}

#[test]
fn a_slow_fetch_does_not_push_out_what_was_fetched_after_the_purge() {
    let store = store(1 << 20);
    let slow = store.generation();
    store.purge(&url("h/a"), Hardness::Soft);
    let fresh = put(&store, "h/a", 1);
    put_begun(&store, slow, "h/a", 1);
    let resource = store.get(store.hash(b"h/a"), b"h/a").expect("stored");
    assert!(Arc::ptr_eq(&resource.variants()[0], &fresh) && resource.variants().len() == 1);
    // Once that is purged too, there is nothing to protect.
    store.purge(&url("h/a"), Hardness::Soft);
    let late = put_begun(&store, slow, "h/a", 1);
    let resource = store.get(store.hash(b"h/a"), b"h/a").expect("stored");
    assert!(Arc::ptr_eq(&resource.variants()[0], &late) && resource.variants().len() == 1);
}

#[test]
fn a_url_purge_counts_all_query_forms_and_a_hard_one_frees_them() {
    let store = store(1 << 20);
    for form in ["h/a", "h/a?page=2", "h/a?page=3"] {
        put(&store, form, 1);
        put(&store, form, 2);
    }
    put(&store, "h/other", 1);
    assert_eq!(store.purge(&url("h/a"), Hardness::Soft).variants, Some(6));
    assert_eq!(held(&store, "h/a?page=2"), [2, 1], "still there, as stale");
    assert_eq!(store.purge(&PurgeTarget::All, Hardness::Soft).variants, None);

    let begun = put(&store, "h/a", 3).begun();
    assert_eq!(store.purge(&url("h/a"), Hardness::Hard).variants, Some(7));
    for form in ["h/a", "h/a?page=2", "h/a?page=3"] {
        assert_eq!(held(&store, form), [0; 0]);
    }
    assert_eq!(store.purge(&url("h/a"), Hardness::Hard).variants, Some(0));
    assert_eq!(store.usage().resources, 1);
    assert_eq!(store.urls.len(), 1);
    assert_eq!(held(&store, "h/other"), [1]);

    // A latecomer from before the hard purge is stored and judged; it is removed with the next one that is stored.
    put_begun(&store, begun, "h/a", 3);
    assert_eq!(held(&store, "h/a"), [3]);
    put(&store, "h/a", 4);
    assert_eq!(held(&store, "h/a"), [4]);
}

#[test]
fn memory_is_never_exceeded_and_evictions_are_counted() {
    const MEMORY: u64 = 1 << 20;
    let store = store(MEMORY);
    for n in 0..2_000 {
        let name = format!("h/{n}");
        let stored = page(store.generation(), 0, &name, &[], n % 7_000);
        store.insert(store.hash(name.as_bytes()), name.as_bytes(), stored, |_| true);
        assert!(store.usage().bytes <= MEMORY);
    }
    let usage = store.usage();
    assert!(usage.bytes > MEMORY / 2, "room is used: {}", usage.bytes);
    assert_eq!(usage.evicted + usage.resources as u64, 2_000);
    assert_eq!(store.urls.len(), usage.resources, "the index forgets what is evicted");
}

#[test]
fn what_is_too_long_is_not_stored_but_supersedes() {
    let store = store(1 << 20);
    put(&store, "h/a", 1);
    put(&store, "h/a", 2);
    let long = page(store.generation(), 1, "h/a", &[], (64 << 10) + 1);
    let returned = store.insert(store.hash(b"h/a"), b"h/a", long, |held| held.variant == 1);
    assert_eq!(returned.body.len(), (64 << 10) + 1);
    assert_eq!(held(&store, "h/a"), [2]);
    let heavy = Stored::new(Page { variant: 2, heap: 1 << 20 }, Body::new(), store.generation(), Scope::default());
    store.insert(store.hash(b"h/a"), b"h/a", heavy, |held| held.variant == 2);
    assert_eq!((store.usage().bytes, store.usage().resources, store.urls.len()), (0, 0, 0));
}

#[test]
fn variants_that_are_too_heavy_together_leave_from_the_oldest() {
    let store = store(1 << 20);
    // A shard holds 256 KiB, a resource half of it: two bodies of 60 KiB.
    for variant in 0..6 {
        let long = page(store.generation(), variant, "h/a", &[], 60 << 10);
        store.insert(store.hash(b"h/a"), b"h/a", long, |held| held.variant == variant);
    }
    assert_eq!(held(&store, "h/a"), [5, 4]);
}

#[test]
fn uncacheable_marks_expire_and_are_bounded() {
    let store: TestStore = Store::new(StoreOptions { uncacheable_max: 100, ..StoreOptions::with_memory(1 << 20) });
    let hash = store.hash(b"h/a");
    assert!(!store.uncacheable(hash, 0));
    store.mark_uncacheable(hash, 1_000);
    assert!(store.uncacheable(hash, 999));
    assert!(!store.uncacheable(hash, 1_000));
    store.mark_uncacheable(hash, 2_000);
    assert!(store.uncacheable(hash, 1_000));
    store.unmark_uncacheable(hash);
    assert!(!store.uncacheable(hash, 0));
    for n in 0..10_000_u32 {
        store.mark_uncacheable(store.hash(&n.to_le_bytes()), 1);
    }
    assert_eq!(store.usage().uncacheable, 100);
}

#[test]
fn writers_of_one_key_do_not_lose_each_other() {
    let store = store(1 << 20);
    std::thread::scope(|scope| {
        for variant in 0..8 {
            let store = &store;
            scope.spawn(move || (0..200).for_each(|_| drop(put(store, "h/a", variant))));
        }
    });
    let mut variants = held(&store, "h/a");
    variants.sort_unstable();
    assert_eq!(variants, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn storing_purging_and_evicting_at_once_leaves_the_index_true() {
    let store = store(256 << 10);
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let store = &store;
            scope.spawn(move || {
                for n in 0..1_500_usize {
                    let name = format!("h/{}?{}", (n * 7 + thread) % 20, n % 13);
                    match n % 9 {
                        0 => drop(store.purge(&url(&format!("h/{}", n % 20)), Hardness::Hard)),
                        1 => store.remove(store.hash(name.as_bytes()), name.as_bytes()),
                        variant => drop(put(store, &name, u8::try_from(variant).expect("below 9"))),
                    }
                }
            });
        }
    });
    assert!(store.usage().bytes <= 256 << 10);
    assert_eq!(store.urls.len(), store.usage().resources);
    let indexed: usize = (0..20).map(|n| store.urls.keys(store.purges.url(SITE, format!("h/{n}").as_bytes()), usize::MAX).len()).sum();
    assert_eq!(indexed, store.usage().resources);
}

/// An operation on a store; keys, variants and tags are few, so that they meet.
#[derive(Debug, Clone)]
enum Operation {
    Insert { key: u8, variant: u8, length: usize, heap: usize, late: bool },
    Get { key: u8 },
    Remove { key: u8 },
    Purge { target: PurgeTarget, hard: bool },
}

fn operation() -> impl Strategy<Value = Operation> {
    let path = |key: u8| format!("h/{key}").into_bytes();
    let target = prop_oneof![
        (0..30_u8).prop_map(move |key| PurgeTarget::Url { site: SITE, url: path(key) }),
        (0..4_u8).prop_map(move |key| PurgeTarget::Prefix { site: SITE, url: path(key) }),
        (0..4_u8).prop_map(|tag| PurgeTarget::Tag { site: SITE, tag: tag.to_string() }),
        (0..3_u16).prop_map(PurgeTarget::Site),
        Just(PurgeTarget::All),
    ];
    prop_oneof![
        6 => (0..30_u8, 0..12_u8, 0..40_000_usize, 0..4_000_usize, any::<bool>())
            .prop_map(|(key, variant, length, heap, late)| Operation::Insert { key, variant, length, heap, late }),
        2 => (0..30_u8).prop_map(|key| Operation::Get { key }),
        1 => (0..30_u8).prop_map(|key| Operation::Remove { key }),
        2 => (target, any::<bool>()).prop_map(|(target, hard)| Operation::Purge { target, hard }),
    ]
}

/// Returns whether a purge must cover a page, written once more without hashes, tables or folding.
fn covers(target: &PurgeTarget, scope: &Scope) -> bool {
    match target {
        PurgeTarget::Url { site, url } => *site == scope.site && **url == *scope.url,
        PurgeTarget::Prefix { site, url } => *site == scope.site && scope.url.starts_with(url),
        PurgeTarget::Tag { site, tag } => *site == scope.site && scope.tags.iter().any(|held| **held == **tag),
        PurgeTarget::Site(site) => *site == scope.site,
        PurgeTarget::All => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// After any list of operations, the bytes counted are the bytes held, within `memory`; and every verdict is what the list of purges
    /// says, or harder where the small table was folded.
    #[test]
    fn bytes_counted_are_bytes_held(operations in prop::collection::vec(operation(), 1..120), folds in any::<bool>()) {
        const MEMORY: u64 = 512 << 10;
        let options = StoreOptions { purge_targets_max: if folds { 3 } else { 1_000 }, ..StoreOptions::with_memory(MEMORY) };
        let store: TestStore = Store::new(options);
        let mut purges: Vec<(Generation, PurgeTarget, Hardness)> = Vec::new();
        let mut newest: BTreeMap<u8, u8> = BTreeMap::new();
        let first = store.generation();
        for operation in operations {
            match operation {
                Operation::Insert { key, variant, length, heap, late } => {
                    let path = format!("h/{key}");
                    let scope = Scope { site: SITE, url: path.as_bytes().into(), tags: [(key % 4).to_string().into()].into() };
                    let begun = if late { first } else { store.generation() };
                    let stored = Stored::new(Page { variant, heap }, Body::from(vec![0; length]), begun, scope);
                    store.insert(store.hash(&[key]), &[key], stored, |held| held.variant == variant);
                    newest.insert(key, variant);
                }
                Operation::Get { key } => drop(store.get(store.hash(&[key]), &[key])),
                Operation::Remove { key } => {
                    store.remove(store.hash(&[key]), &[key]);
                    newest.remove(&key);
                }
                Operation::Purge { target, hard } => {
                    let hardness = if hard { Hardness::Hard } else { Hardness::Soft };
                    let receipt = store.purge(&target, hardness);
                    prop_assert_eq!(receipt.generation, store.generation());
                    purges.push((receipt.generation, target, hardness));
                }
            }
            let resources: Vec<_> = (0..30_u8).filter_map(|key| store.get(store.hash(&[key]), &[key])).collect();
            let usage = store.usage();
            prop_assert_eq!(usage.bytes, resources.iter().map(|resource| resource.weight()).sum::<u64>());
            prop_assert_eq!(usage.resources, resources.len());
            prop_assert_eq!(store.urls.len(), resources.len());
            prop_assert!(usage.bytes <= MEMORY);
            for resource in resources {
                let bodies: u64 = resource.variants().iter().map(|stored| stored.body.len()).sum();
                prop_assert!(resource.weight() >= bodies);
                prop_assert!(newest.contains_key(&resource.key()[0]));
                for stored in resource.variants() {
                    let covering = purges.iter().filter(|(at, target, _)| stored.begun() < *at && covers(target, stored.scope()));
                    let expected = covering.map(|(_, _, hardness)| hardness).max().map_or(Purged::No, |hardness| match hardness {
                        Hardness::Soft => Purged::Soft,
                        Hardness::Hard => Purged::Hard,
                    });
                    let verdict = store.verdict(stored);
                    prop_assert!(if folds { verdict >= expected } else { verdict == expected }, "{:?}, not {:?}", verdict, expected);
                }
            }
        }
    }
}

mod invalidation {
    use super::*;

    const PATH: &str = "h/post";

    fn invalidate(store: &TestStore) -> Option<usize> {
        store.invalidate(SITE, PATH.as_bytes(), true).variants
    }

    /// RFC 9111 §4.4: every variant and query form is removed.
    #[test]
    fn everything_under_the_url_goes_and_nothing_else() {
        let store = store(1 << 20);
        for (url, variant) in [("h/post", 1), ("h/post", 2), ("h/post?page=2", 1), ("h/poster", 1)] {
            put(&store, url, variant);
        }
        assert_eq!(invalidate(&store), Some(3));
        assert_eq!((held(&store, "h/post"), held(&store, "h/post?page=2"), held(&store, "h/poster")), (vec![], vec![], vec![1]));
        assert_eq!(invalidate(&store), Some(0));
        assert_eq!((store.usage().purges, store.usage().invalidations), (0, 0), "no fetch is open, so there is nothing to remember");
    }

    /// This was found by trying: with fifty comments a second anywhere, a crowd on another page was fifty crowds.
    #[test]
    fn one_writer_does_not_split_the_crowds_on_other_pages() {
        let store = store(1 << 20);
        let join = |url: &str| store.join_for(store.hash(url.as_bytes()), url.as_bytes(), (SITE, url.as_bytes()), Moment::default());
        let (Joined::Lead(other), Joined::Lead(own)) = (join("h/other"), join(PATH)) else { panic!("nobody else leads") };
        invalidate(&store);
        assert!(matches!(join("h/other"), Joined::Follow(_)));
        assert!(matches!(join(PATH), Joined::Lead(_)), "its own page may have changed");
        drop((other, own));
        let Joined::Lead(lead) = join("h/other") else { panic!("nobody else leads") };
        store.purge(&PurgeTarget::Tag { site: SITE, tag: "t".to_owned() }, Hardness::Hard);
        assert!(matches!(join("h/other"), Joined::Lead(_)), "a purge may cover it: its tags are not known yet");
        drop(lead);
    }

    #[test]
    fn nobody_follows_a_fetch_that_is_older_than_they_accept() {
        let store = store(1 << 20);
        let join =
            |now, since| store.join_for(store.hash(PATH.as_bytes()), PATH.as_bytes(), (SITE, PATH.as_bytes()), Moment { now, since });
        let Joined::Lead(first) = join(1_000, 0) else { panic!("nobody else leads") };
        assert!(matches!(join(6_000, 0), Joined::Follow(_)) && matches!(join(6_000, 1_000), Joined::Follow(_)));
        let view =
            |since| store.flight(store.hash(PATH.as_bytes()), PATH.as_bytes(), (SITE, PATH.as_bytes()), Moment { now: 6_000, since });
        assert!(view(1_000).is_some() && view(1_001).is_none());
        let Joined::Lead(second) = join(6_000, 1_001) else { panic!("the first is too old") };
        assert!(matches!(join(6_000, 0), Joined::Follow(_)), "the newest is followed");
        drop((first, second));
    }

    /// If two of them had one number, a page judged under the first would never be judged under the second.
    #[test]
    fn purges_and_invalidations_have_numbers_of_their_own() {
        let store = store(1 << 20);
        let numbers = |act: &(dyn Fn() -> PurgeReceipt + Sync)| (0..20_000).map(|_| act().generation.number()).collect::<Vec<_>>();
        let (mut purges, invalidations) = std::thread::scope(|scope| {
            let purging = scope.spawn(|| numbers(&|| store.purge(&PurgeTarget::Site(9), Hardness::Soft)));
            let invalidating = scope.spawn(|| {
                numbers(&|| {
                    let _open = store.begin();
                    store.invalidate(SITE, PATH.as_bytes(), true)
                })
            });
            (purging.join().expect("no panic"), invalidating.join().expect("no panic"))
        });
        purges.extend(invalidations);
        let count = purges.len();
        purges.sort_unstable();
        purges.dedup();
        assert_eq!(purges.len(), count);
    }

    #[test]
    fn what_an_earlier_fetch_brings_is_not_stored() {
        let store = store(1 << 20);
        let (old, other) = (store.begin(), store.begin());
        invalidate(&store);
        let new = store.begin();
        put_begun(&store, old.begun(), PATH, 1);
        assert_eq!(held(&store, PATH), [], "it may be what was there before the change");
        put_begun(&store, other.begun(), "h/other", 1);
        assert_eq!(held(&store, "h/other"), [1], "another URL's is not");
        put_begun(&store, new.begun(), PATH, 2);
        put_begun(&store, old.begun(), PATH, 1);
        assert_eq!(held(&store, PATH), [2], "and does not push out what came after it");
        drop((old, other, new));
        assert_eq!(store.usage().invalidations, 0);
    }

    #[test]
    fn a_flight_is_an_open_fetch_until_its_response_is_stored() {
        let store = store(1 << 20);
        let Joined::Lead(lead) = store.join(store.hash(PATH.as_bytes()), PATH.as_bytes()) else { panic!("nobody else leads") };
        let mut writer = lead.serve(Arc::new(Page { variant: 1, heap: 0 }), Some(1));
        invalidate(&store);
        now(writer.push(Body::from_static(b"a"))).expect("somebody reads");
        let (_, guard) = now(writer.complete()).expect("short enough");
        assert_eq!(store.usage().invalidations, 1);
        put_begun(&store, guard.begun(), PATH, 1);
        assert_eq!(held(&store, PATH), []);
        drop(guard);
        assert_eq!(store.usage().invalidations, 0);
    }

    /// Returns the output of a future that need not wait.
    fn now<T>(future: impl Future<Output = T>) -> T {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(future).poll(&mut context) {
            std::task::Poll::Ready(outcome) => outcome,
            std::task::Poll::Pending => panic!("it waits"),
        }
    }

    /// A stranger who writes to very many paths must not empty the cache, not even with a slow download under way.
    #[test]
    fn a_flood_of_invalidations_purges_nothing_else() {
        let store = store(1 << 20);
        put(&store, "h/a", 1);
        let download = store.begin();
        for n in 0..70_000 {
            store.invalidate(SITE, format!("h/{n}").as_bytes(), true);
        }
        assert!(store.usage().invalidations <= crate::fetches::INVALIDATIONS_MAX);
        assert_eq!(store.usage().purges, 0);
        let resource = store.get(store.hash(b"h/a"), b"h/a").expect("held");
        assert_eq!(store.verdict(&resource.variants()[0]), Purged::No);
        drop(download);
        assert_eq!(store.usage().invalidations, 0);
    }

    /// Where the index does not know everything, the line must stay: what was held elsewhere may come back.
    #[test]
    fn without_a_whole_index_it_is_a_purge() {
        let store = store(1 << 20);
        let begun = store.generation();
        store.invalidate(SITE, PATH.as_bytes(), false);
        assert_eq!(store.usage().purges, 1);
        let stored = put_begun(&store, begun, PATH, 1);
        assert_eq!(store.verdict(&stored), Purged::Hard);
    }

    /// Whatever the threads do to each other, an answer that was asked for before the change is not there after it.
    #[test]
    fn no_answer_from_before_survives_a_race() {
        for _ in 0..200 {
            let store = store(1 << 20);
            let fetching = store.begin();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    put_begun(&store, fetching.begun(), PATH, 1);
                    drop(fetching);
                });
                scope.spawn(|| invalidate(&store));
            });
            // Either the response came first and was freed, or it was not stored.
            assert_eq!(held(&store, PATH), []);
            assert_eq!(store.usage().invalidations, 0);
        }
    }
}
