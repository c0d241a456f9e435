use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::StoreOptions;
use crate::purge::{Generation, Hardness, PurgeTarget, Purged};
use crate::resource::{Scope, Stored};

/// The version of a page.
struct Version(u32);

impl Record for Version {
    fn weight(&self) -> usize {
        0
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self(u32::from_le_bytes(bytes.try_into().ok()?)))
    }
}

type TestStore = Store<Version, ()>;

fn store(memory: u64) -> TestStore {
    Store::new(StoreOptions::with_memory(memory))
}

fn put(store: &TestStore, url: &str, version: u32, length: usize) {
    put_begun(store, store.generation(), url, version, length);
}

fn put_begun(store: &TestStore, begun: Generation, url: &str, version: u32, length: usize) {
    let scope = Scope { site: 1, url: url.as_bytes().into(), tags: [].into() };
    let stored = Stored::new(Version(version), Bytes::from(vec![b'x'; length]), begun, scope);
    store.insert(store.hash(url.as_bytes()), url.as_bytes(), stored, |_| true);
}

fn get(hot: &mut HotPages<Version>, store: &TestStore, url: &str) -> Option<HotOrStored<Version>> {
    hot.get(store, store.hash(url.as_bytes()), url.as_bytes())
}

/// Returns the version that is served, and whether it came from the hot pages.
fn served(hot: &mut HotPages<Version>, store: &TestStore, url: &str) -> Option<(u32, bool)> {
    let found = get(hot, store, url)?;
    let stored = &found.resource().variants()[0];
    (store.verdict(stored) == Purged::No).then_some((stored.record.0, matches!(found, HotOrStored::Hot(_))))
}

fn keep(hot: &mut HotPages<Version>, store: &TestStore, url: &str) {
    for _ in 0..2 {
        get(hot, store, url);
    }
    assert!(matches!(get(hot, store, url), Some(HotOrStored::Hot(_))), "{url} is a hot page");
}

#[test]
fn what_is_asked_for_twice_takes_a_place() {
    let (store, mut hot) = (store(1 << 20), HotPages::new(1 << 20));
    assert_eq!(served(&mut hot, &store, "h/a"), None);
    put(&store, "h/a", 1, 100);
    assert_eq!(served(&mut hot, &store, "h/a"), Some((1, false)));
    assert_eq!(served(&mut hot, &store, "h/a"), Some((1, true)));
    assert_eq!(served(&mut hot, &store, "h/a"), Some((1, true)));
    let weight = get(&mut hot, &store, "h/a").map(|found| found.resource().weight());
    assert_eq!(Some(hot.bytes()), weight);
}

#[test]
fn every_change_is_seen_at_once() {
    let (store, mut hot) = (store(1 << 20), HotPages::new(1 << 20));
    let url = || PurgeTarget::Url { site: 1, url: b"h/a".as_slice().into() };
    type Change<'a> = (&'a str, &'a dyn Fn(), Option<u32>);
    let changes: [Change<'_>; 7] = [
        ("another version", &|| put(&store, "h/a", 2, 100), Some(2)),
        ("removed", &|| store.remove(store.hash(b"h/a"), b"h/a"), None),
        (
            "a hard purge of its URL",
            &|| {
                store.purge(&url(), Hardness::Hard);
            },
            None,
        ),
        (
            "a soft purge of its URL",
            &|| {
                store.purge(&url(), Hardness::Soft);
            },
            None,
        ),
        (
            "a purge of its prefix",
            &|| {
                store.purge(&PurgeTarget::Prefix { site: 1, url: b"h/".as_slice().into() }, Hardness::Hard);
            },
            None,
        ),
        (
            "a purge of its site",
            &|| {
                store.purge(&PurgeTarget::Site(1), Hardness::Soft);
            },
            None,
        ),
        (
            "a purge of everything",
            &|| {
                store.purge(&PurgeTarget::All, Hardness::Hard);
            },
            None,
        ),
    ];
    for (name, change, expected) in changes {
        put(&store, "h/a", 1, 100);
        keep(&mut hot, &store, "h/a");
        change();
        assert_eq!(served(&mut hot, &store, "h/a").map(|(version, _)| version), expected, "{name}");
    }
}

#[test]
fn a_fetch_begun_before_a_purge_is_not_served_from_the_hot_pages_either() {
    let (store, mut hot) = (store(1 << 20), HotPages::new(1 << 20));
    let before = store.generation();
    store.purge(&PurgeTarget::All, Hardness::Hard);
    put_begun(&store, before, "h/a", 1, 100);
    for _ in 0..4 {
        assert_eq!(served(&mut hot, &store, "h/a"), None);
    }
}

#[test]
fn a_reference_that_was_kept_knows_when_it_is_no_longer_current() {
    let (store, mut hot) = (store(1 << 20), HotPages::new(1 << 20));
    put(&store, "h/a", 1, 100);
    keep(&mut hot, &store, "h/a");
    let Some(HotOrStored::Hot(page)) = get(&mut hot, &store, "h/a") else { panic!("it is a hot page") };
    for _ in 0..3 * TOUCH {
        assert!(page.is_current(&store));
    }
    // Changes of other keys, some in the same stripe, make it look again, but it keeps its page.
    for other in 0..2 * 512 {
        put(&store, &format!("h/{other}"), 1, 1);
        assert!(page.is_current(&store));
    }
    put(&store, "h/a", 2, 100);
    assert!(!page.is_current(&store));
    assert_eq!(page.resource().variants()[0].record.0, 1, "what it refers to stays whole");
}

#[test]
fn a_walk_through_the_site_leaves_everything_where_it_was() {
    let (store, mut hot) = (store(64 << 20), HotPages::new(1 << 20));
    put(&store, "h/a", 1, 100);
    keep(&mut hot, &store, "h/a");
    let bytes = hot.bytes();
    for page in 0..10_000 {
        put(&store, &format!("h/{page}"), 1, 100);
        assert_eq!(served(&mut hot, &store, &format!("h/{page}")), Some((1, false)));
    }
    assert_eq!(hot.bytes(), bytes);
    assert_eq!(served(&mut hot, &store, "h/a"), Some((1, true)));
}

#[test]
fn its_bytes_are_bounded_and_the_hottest_stay() {
    const MAX: u64 = 256 << 10;
    const QUARTER: usize = 64 << 10;
    let (store, mut hot) = (store(64 << 20), HotPages::new(MAX));
    put(&store, "h/hot", 1, 1 << 10);
    put(&store, "h/huge", 1, QUARTER);
    keep(&mut hot, &store, "h/hot");
    for page in 0..2_000 {
        let url = format!("h/{page}");
        put(&store, &url, 1, 4 << 10);
        for _ in 0..3 {
            get(&mut hot, &store, &url);
        }
        for _ in 0..8 {
            get(&mut hot, &store, "h/hot");
        }
        assert!(hot.bytes() <= MAX);
    }
    assert!(hot.bytes() > MAX / 2, "{}", hot.bytes());
    assert_eq!(served(&mut hot, &store, "h/hot"), Some((1, true)));
    for _ in 0..4 {
        assert_eq!(served(&mut hot, &store, "h/huge"), Some((1, false)), "one page does not take all the room");
    }
}

#[test]
fn what_was_evicted_or_replaced_is_let_go_by_the_next_sweep() {
    let (store, mut hot) = (store(1 << 20), HotPages::new(1 << 20));
    let mut bodies = Vec::new();
    for page in 0..40 {
        let url = format!("h/{page}");
        put(&store, &url, 1, 16 << 10);
        keep(&mut hot, &store, &url);
        let found = get(&mut hot, &store, &url).expect("it is a hot page");
        bodies.push(Arc::downgrade(&found.resource().variants()[0]));
    }
    put(&store, "h/0", 2, 10);
    store.purge(&PurgeTarget::Url { site: 1, url: b"h/1".as_slice().into() }, Hardness::Hard);
    for page in 0..200 {
        let url = format!("other/{page}");
        put(&store, &url, 1, 16 << 10);
        // These are read as well, or the memory tier would rather evict them.
        assert!(store.get(store.hash(url.as_bytes()), url.as_bytes()).is_some());
    }
    hot.sweep(&store);
    let stored = |page: usize| {
        let url = format!("h/{page}");
        store.get(store.hash(url.as_bytes()), url.as_bytes()).is_some_and(|resource| resource.variants()[0].record.0 == 1)
    };
    let mut gone = 0;
    for (page, body) in bodies.iter().enumerate() {
        assert_eq!(body.upgrade().is_some(), stored(page), "page {page}");
        gone += usize::from(!stored(page));
    }
    assert!(gone > 2, "some were evicted: {gone}");
}

/// A hot page that is hit all the time would look unread to the memory tier, which would evict it.
#[test]
fn what_is_hit_here_is_not_evicted_there() {
    let (store, mut hot) = (store(1 << 20), HotPages::new(1 << 20));
    put(&store, "h/a", 1, 1 << 10);
    keep(&mut hot, &store, "h/a");
    for page in 0..2_000 {
        put(&store, &format!("other/{page}"), 1, 8 << 10);
        for _ in 0..4 {
            assert_eq!(served(&mut hot, &store, "h/a"), Some((1, true)), "after {page}");
        }
    }
}

/// There is one page more than there are places, and all are read in turn: most are served from the hot pages, and not each pushed out by the
/// next.
#[test]
fn one_page_too_many_does_not_push_out_all_the_others() {
    let (store, mut hot) = (store(64 << 20), HotPages::new(8 << 20));
    // These pages share a set.
    let set = |url: &String| store.hash(url.as_bytes()).stripe(SETS);
    let first = set(&"h/0".to_owned());
    let urls: Vec<String> = (0..).map(|page| format!("h/{page}")).filter(|url| set(url) == first).take(WAYS + 1).collect();
    for url in &urls {
        put(&store, url, 1, 100);
    }
    let mut hits = 0;
    for _ in 0..100 {
        hits += urls.iter().filter(|url| served(&mut hot, &store, url) == Some((1, true))).count();
    }
    assert!(hits >= 95 * WAYS, "{hits} of {}", 100 * urls.len());
    // A page that is read more often than they are finds a place.
    let url = (1_000_000..).map(|page| format!("h/{page}")).find(|url| set(url) == first).expect("there is one");
    put(&store, &url, 1, 100);
    for _ in 0..20 {
        served(&mut hot, &store, &url);
    }
    assert_eq!(served(&mut hot, &store, &url), Some((1, true)));
}

/// A step with two workers' tables, and what may happen to what is stored.
#[derive(Debug, Clone)]
enum Step {
    Put(usize),
    Remove(usize),
    Purge(usize, bool),
    PurgeAll(bool),
    Sweep(usize),
    Get(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = || 0..6_usize;
    let step = prop_oneof![
        3 => page().prop_map(Step::Put),
        1 => page().prop_map(Step::Remove),
        1 => (page(), any::<bool>()).prop_map(|(page, hard)| Step::Purge(page, hard)),
        1 => any::<bool>().prop_map(Step::PurgeAll),
        1 => (0..2_usize).prop_map(Step::Sweep),
        20 => (0..2_usize, page()).prop_map(|(hot, page)| Step::Get(hot, page)),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    /// Hot pages are a shorter way to the same answer, after any history.
    #[test]
    fn a_front_answers_as_the_store_does(steps in steps()) {
        let hardness = |hard| if hard { Hardness::Hard } else { Hardness::Soft };
        // There is room for a few of the pages: some are evicted, and some do not fit among the hot pages.
        let store = store(256 << 10);
        let mut tables = [HotPages::new(64 << 10), HotPages::new(40 << 10)];
        for (version, step) in (0_u32..).zip(steps) {
            match step {
                Step::Put(page) => put(&store, &format!("h/{page}"), version, 1 << (10 + page)),
                Step::Remove(page) => store.remove(store.hash(format!("h/{page}").as_bytes()), format!("h/{page}").as_bytes()),
                Step::Purge(page, hard) => {
                    let url = format!("h/{page}").into_bytes();
                    store.purge(&PurgeTarget::Url { site: 1, url }, hardness(hard));
                }
                Step::PurgeAll(hard) => {
                    store.purge(&PurgeTarget::All, hardness(hard));
                }
                Step::Sweep(hot) => tables[hot].sweep(&store),
                Step::Get(hot, page) => {
                    let url = format!("h/{page}");
                    let stored = store.peek(store.hash(url.as_bytes()), url.as_bytes());
                    let expected = stored.filter(|resource| store.verdict(&resource.variants()[0]) == Purged::No);
                    let answer = served(&mut tables[hot], &store, &url).map(|(version, _)| version);
                    prop_assert_eq!(answer, expected.map(|resource| resource.variants()[0].record.0));
                    prop_assert!(tables[hot].bytes() <= 64 << 10);
                }
            }
        }
    }
}
