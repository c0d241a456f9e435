use bytes::Bytes;

use super::*;
use crate::resource::Record;

struct Nothing;

impl Record for Nothing {
    fn weight(&self) -> usize {
        0
    }

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &[u8]) -> Option<Self> {
        Some(Self)
    }
}

fn table(targets_max: usize) -> PurgeTable {
    PurgeTable::new(targets_max, Secret::new())
}

fn stored(begun: Generation, site: u16, url: &str, tags: &[&str]) -> Stored<Nothing> {
    let scope = Scope { site, url: url.as_bytes().into(), tags: tags.iter().map(|tag| (*tag).into()).collect() };
    Stored::new(Nothing, Bytes::new(), begun, scope)
}

fn url(site: u16, url: &str) -> PurgeTarget {
    PurgeTarget::Url { site, url: url.into() }
}

fn prefix(site: u16, url: &str) -> PurgeTarget {
    PurgeTarget::Prefix { site, url: url.into() }
}

fn tag(site: u16, tag: &str) -> PurgeTarget {
    PurgeTarget::Tag { site, tag: tag.into() }
}

#[test]
fn a_target_covers_what_it_names_and_nothing_else() {
    // target, covered?, for a response of site 1 at h/a/b with the tags "x" and "y"
    let cases = [
        (url(1, "h/a/b"), true),
        (url(1, "h/a"), false),
        (url(1, "h/a/b/"), false),
        (url(2, "h/a/b"), false),
        (url(1, "x"), false),
        (prefix(1, "h/a/"), true),
        (prefix(1, "h/a/b"), true),
        (prefix(1, ""), true),
        (prefix(1, "h/a/b/c"), false),
        (prefix(1, "/a"), false),
        (prefix(2, "h/a/"), false),
        (tag(1, "x"), true),
        (tag(1, "y"), true),
        (tag(1, "X"), false),
        (tag(1, "xy"), false),
        (tag(1, "h/a/b"), false),
        (tag(2, "x"), false),
        (PurgeTarget::Site(1), true),
        (PurgeTarget::Site(2), false),
        (PurgeTarget::All, true),
    ];
    for (target, covered) in cases {
        for (hardness, purged) in [(Hardness::Soft, Purged::Soft), (Hardness::Hard, Purged::Hard)] {
            let table = table(8);
            let stored = stored(table.generation(), 1, "h/a/b", &["x", "y"]);
            assert_eq!(table.verdict(&stored), Purged::No);
            assert_eq!(target.covers(stored.scope()), covered, "{target:?}");
            table.purge(&target, hardness);
            let expected = if covered { purged } else { Purged::No };
            assert_eq!(table.verdict(&stored), expected, "{target:?} {hardness:?}");
            assert_eq!(table.verdict(&stored), expected, "the remembered answer: {target:?} {hardness:?}");
        }
    }
}

#[test]
fn a_fetch_that_began_before_the_purge_is_covered_whenever_it_ends() {
    for target in [url(1, "h/a"), prefix(1, "h/"), tag(1, "t"), PurgeTarget::Site(1), PurgeTarget::All] {
        let table = table(8);
        let (before, during) = (table.generation(), stored(table.generation(), 1, "h/a", &["t"]));
        let made_early = stored(before, 1, "h/a", &["t"]);
        let receipt = table.purge(&target, Hardness::Soft);
        let made_late = stored(before, 1, "h/a", &["t"]);
        let after = stored(table.generation(), 1, "h/a", &["t"]);
        assert_eq!(receipt, table.generation());
        assert!(receipt > before);
        for purged in [&during, &made_early, &made_late] {
            assert_eq!(table.verdict(purged), Purged::Soft, "{target:?}");
        }
        assert_eq!(table.verdict(&after), Purged::No, "{target:?}");
        // A purge of another target changes neither.
        table.purge(&url(9, "else"), Hardness::Hard);
        assert_eq!(table.verdict(&made_late), Purged::Soft);
        assert_eq!(table.verdict(&after), Purged::No);
    }
}

/// What was fetched before is doubted; a purge says more than a doubt, before it or after it.
#[test]
fn a_doubt_covers_everything_that_was_fetched_before_it_and_softens_no_purge() {
    let table = table(8);
    let before = table.generation();
    let fetched = |begun| stored(begun, 1, "h/a", &["t"]);
    let (early, hard, soft) = (fetched(before), stored(before, 1, "h/hard", &[]), stored(before, 1, "h/soft", &[]));
    table.purge(&url(1, "h/hard"), Hardness::Hard);
    let doubted = table.doubt();
    let overtook = |begun| table.overtook(table.url(1, b"h/a"), begun);
    assert!(overtook(before) && !overtook(doubted), "nobody follows an older fetch");
    table.purge(&url(1, "h/soft"), Hardness::Soft);
    assert!(doubted > before);
    assert_eq!([&early, &hard, &soft].map(|stored| table.verdict(stored)), [Purged::Doubted, Purged::Hard, Purged::Soft]);
    assert_eq!(table.verdict(&early), Purged::Doubted, "the remembered answer");
    assert_eq!(table.verdict(&fetched(before)), Purged::Doubted, "it began before, whenever it ends");
    assert_eq!(table.verdict(&fetched(doubted)), Purged::No);
    assert!(table.is_purged(early.scope(), before) && !table.is_purged(early.scope(), doubted));
    assert!(table.covering(&early).is_empty(), "no purge covers it, as far as is known");
    // The next one covers what was fetched since.
    let later = fetched(table.generation());
    table.doubt();
    assert_eq!(table.verdict(&later), Purged::Doubted);
    table.purge(&PurgeTarget::All, Hardness::Soft);
    assert_eq!([&early, &hard].map(|stored| table.verdict(stored)), [Purged::Soft, Purged::Hard]);
    assert!(table.is_doubted(before), "the purge that is not known may have been a hard one");
    table.purge(&PurgeTarget::All, Hardness::Hard);
    assert!(!table.is_doubted(before), "nothing of it is shown any more");
}

#[test]
fn a_soft_purge_does_not_soften_a_hard_one() {
    use Hardness::{Hard, Soft};
    // purges in order; what becomes of a response from before the first, between them, and after both
    let cases = [
        (Soft, Hard, [Purged::Hard, Purged::Hard, Purged::No]),
        (Hard, Soft, [Purged::Hard, Purged::Soft, Purged::No]),
        (Soft, Soft, [Purged::Soft, Purged::Soft, Purged::No]),
        (Hard, Hard, [Purged::Hard, Purged::Hard, Purged::No]),
    ];
    let targets = [url(1, "h/a"), prefix(1, "h/"), tag(1, "t"), PurgeTarget::Site(1), PurgeTarget::All];
    for first_target in &targets {
        for second_target in &targets {
            for (first, second, expected) in cases {
                let table = table(8);
                let make = || stored(table.generation(), 1, "h/a", &["t"]);
                let mut all = vec![make()];
                table.purge(first_target, first);
                all.push(make());
                table.purge(second_target, second);
                all.push(make());
                let verdicts: Vec<_> = all.iter().map(|stored| table.verdict(stored)).collect();
                assert_eq!(verdicts, expected, "{first:?} {first_target:?}, {second:?} {second_target:?}");
            }
        }
    }
}

/// Whatever is folded, a response that a purge covered stays purged, at least as hard.
#[test]
fn a_full_table_never_forgets() {
    for hard_at in [None, Some(0), Some(20), Some(99)] {
        let table = table(8);
        let old: Vec<_> = (0..100).map(|n| stored(table.generation(), 1, &format!("h/{n}"), &[])).collect();
        let bystander = stored(table.generation(), 2, "h/0", &[]);
        for n in 0..100 {
            let hardness = if hard_at == Some(n) { Hardness::Hard } else { Hardness::Soft };
            table.purge(&url(1, &format!("h/{n}")), hardness);
            assert!(table.len() <= 9, "eight targets and a site, not {}", table.len());
            for (index, stored) in old.iter().enumerate().take(n + 1) {
                let least = if hard_at == Some(index) { Purged::Hard } else { Purged::Soft };
                assert!(table.verdict(stored) >= least, "{index} after {n}");
            }
        }
        // A fetch that begins now is not covered, and neither is a site that nobody purged.
        assert_eq!(table.verdict(&stored(table.generation(), 1, "h/0", &[])), Purged::No);
        assert_eq!(table.verdict(&bystander), Purged::No);
    }
}

#[test]
fn folding_hardens_only_what_is_older_than_the_hard_purge() {
    let table = table(2);
    let oldest = stored(table.generation(), 1, "h/never-purged", &[]);
    table.purge(&url(1, "h/hard"), Hardness::Hard);
    let younger = stored(table.generation(), 1, "h/never-purged", &[]);
    table.purge(&url(1, "h/soft-1"), Hardness::Soft);
    table.purge(&url(1, "h/soft-2"), Hardness::Soft);
    table.purge(&url(1, "h/soft-3"), Hardness::Soft);
    assert_eq!(table.verdict(&oldest), Purged::Hard);
    assert_eq!(table.verdict(&younger), Purged::Soft);
}

/// Anybody may send an unsafe method to any number of paths: that must neither empty a site nor push out what the operator purged.
#[test]
fn invalidations_fold_softly_and_push_out_no_purge() {
    let table = table(4);
    let (page, purged) = (stored(table.generation(), 1, "h/page", &[]), stored(table.generation(), 1, "h/purged", &[]));
    table.purge(&url(1, "h/purged"), Hardness::Hard);
    let edited = stored(table.generation(), 1, "h/edited", &[]);
    table.invalidate(1, table.url(1, b"h/edited"));
    assert_eq!(table.verdict(&edited), Purged::Hard);
    for path in 0..100 {
        table.invalidate(1, table.url(1, format!("h/{path}").as_bytes()));
    }
    assert_eq!((table.verdict(&page), table.verdict(&purged)), (Purged::Soft, Purged::Hard));
    assert!(table.len() <= 4 + 1 + 1);
    let last = stored(edited.begun(), 1, "h/99", &[]);
    assert_eq!(table.verdict(&last), Purged::Hard, "the newer half is told apart");
}

#[test]
fn prefixes_fold_as_well() {
    let table = table(8);
    let first = stored(table.generation(), 1, "h/0/page", &[]);
    for n in 0..3 * PREFIXES_MAX {
        table.purge(&prefix(1, &format!("h/{n}/")), Hardness::Hard);
        assert!(table.len() <= PREFIXES_MAX + 1);
    }
    assert_eq!(table.verdict(&first), Purged::Hard);
    assert_eq!(table.verdict(&stored(table.generation(), 1, "h/0/page", &[])), Purged::No);
}

#[test]
fn a_prefix_too_long_to_keep_covers_more_not_less() {
    let table = table(8);
    let long = "h/".to_owned() + &"a".repeat(PREFIX_BYTES_MAX);
    let covered = stored(table.generation(), 1, &(long.clone() + "/page"), &[]);
    table.purge(&prefix(1, &long), Hardness::Soft);
    assert_eq!(table.verdict(&covered), Purged::Soft);
}

#[test]
fn the_same_target_again_takes_no_further_line() {
    let table = table(8);
    for target in [url(1, "h/a"), tag(1, "t"), prefix(1, "h/"), PurgeTarget::Site(1)] {
        let before = table.len();
        for _ in 0..5 {
            table.purge(&target, Hardness::Soft);
        }
        assert_eq!(table.len(), before + 1, "{target:?}");
    }
    table.purge(&url(1, "h/hard"), Hardness::Hard);
    table.purge(&PurgeTarget::All, Hardness::Soft);
    assert_eq!(table.len(), 1, "a soft purge of everything leaves the hard one standing");
    table.purge(&PurgeTarget::All, Hardness::Hard);
    assert_eq!(table.len(), 0);
}

/// An operator who asks why is told every kind of target that covers a response, each with what it alone would make of it.
#[test]
fn what_purged_a_response_can_be_told() {
    let table = table(64);
    let page = stored(table.generation(), 1, "h/a/b", &["t"]);
    assert_eq!(table.covering(&page), []);
    table.purge(&url(1, "h/a/b"), Hardness::Soft);
    table.purge(&PurgeTarget::Tag { site: 1, tag: "t".to_owned() }, Hardness::Hard);
    table.purge(&PurgeTarget::Prefix { site: 1, url: b"h/a".to_vec() }, Hardness::Soft);
    table.purge(&PurgeTarget::Prefix { site: 2, url: b"h/a".to_vec() }, Hardness::Hard);
    let covering = table.covering(&page);
    assert_eq!(covering, [(PurgedBy::Url, Hardness::Soft), (PurgedBy::Tag, Hardness::Hard), (PurgedBy::Prefix, Hardness::Soft)]);
    assert_eq!(table.verdict(&page), Purged::Hard);
    let later = stored(table.generation(), 1, "h/a/b", &["t"]);
    assert_eq!((table.covering(&later), table.verdict(&later)), (vec![], Purged::No));
}

/// Judging goes on while purges are issued: whoever issued one sees it at once, and no remembered answer outlives its generation.
#[test]
fn a_purge_holds_from_the_moment_it_returns() {
    let table = table(64);
    std::thread::scope(|scope| {
        for thread in 0..4_u16 {
            let table = &table;
            scope.spawn(move || {
                for n in 0..500 {
                    let path = format!("h/{}", n % 7);
                    let [before, other] = [&path, "h/other"].map(|path| stored(table.generation(), thread, path, &[]));
                    assert_eq!(table.verdict(&before), Purged::No);
                    table.purge(&url(thread, &path), Hardness::Hard);
                    let after = stored(table.generation(), thread, &path, &[]);
                    let verdicts = [&before, &after, &other].map(|stored| table.verdict(stored));
                    assert_eq!(verdicts, [Purged::Hard, Purged::No, Purged::No]);
                }
            });
        }
    });
}
