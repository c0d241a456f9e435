use proptest::prelude::*;

use super::*;
use crate::hash::Secret;
use crate::purge::{Generation, PurgeTable, PurgeTarget, Purged};
use crate::resource::{Scope, Stored};

/// A folder that is removed at the end of the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn log(&self) -> PathBuf {
        self.path().join(NAME)
    }

    /// Opens the table as a process does at its start.
    fn start(&self, secret: Secret) -> (PurgeTable, History) {
        PurgeTable::open(64, secret, self.path()).expect("a folder that can be written")
    }
}

struct Nothing;

impl crate::resource::Record for Nothing {
    fn weight(&self) -> usize {
        0
    }

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &[u8]) -> Option<Self> {
        Some(Self)
    }
}

/// Returns a response of site 1 at h/a/b with the tags "x" and "y".
fn stored(begun: Generation) -> Stored<Nothing> {
    let scope = Scope { site: 1, url: (*b"h/a/b").into(), tags: ["x".into(), "y".into()].into() };
    Stored::new(Nothing, bytes::Bytes::new(), begun, scope)
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
fn a_purge_holds_after_a_restart_and_covers_what_it_covered() {
    // target, covered?
    let cases = [
        (url(1, "h/a/b"), true),
        (url(1, "h/a"), false),
        (url(2, "h/a/b"), false),
        (prefix(1, "h/a/"), true),
        (prefix(1, ""), true),
        (prefix(1, "h/b"), false),
        (prefix(2, "h/a"), false),
        (tag(1, "x"), true),
        (tag(1, "z"), false),
        (tag(2, "x"), false),
        (PurgeTarget::Site(1), true),
        (PurgeTarget::Site(2), false),
        (PurgeTarget::All, true),
    ];
    for (target, covered) in cases {
        for (hardness, purged) in [(Hardness::Soft, Purged::Soft), (Hardness::Hard, Purged::Hard)] {
            let (folder, secret) = (Folder::new(), Secret::new());
            let (table, history) = folder.start(secret);
            assert_eq!(history, History::Lost, "nothing is known of a new folder");
            let before = table.generation();
            let receipt = table.purge(&target, hardness);
            // The process is killed: nothing is closed. This happens twice: the lines that were read must be written again.
            drop(table);
            drop(folder.start(secret));
            let (table, history) = folder.start(secret);
            assert_eq!(history, History::Whole);
            let expected = if covered { purged } else { Purged::No };
            assert_eq!(table.verdict(&stored(before)), expected, "{target:?} {hardness:?}");
            assert_eq!(table.verdict(&stored(receipt)), Purged::No, "fetched after the purge: {target:?}");
            assert!(table.generation() > receipt);
            assert_eq!(table.verdict(&stored(table.generation())), Purged::No);
        }
    }
}

#[test]
fn a_doubt_holds_after_a_restart() {
    let (folder, secret) = (Folder::new(), Secret::new());
    let (table, _) = folder.start(secret);
    let before = table.generation();
    let hard = table.purge(&url(1, "h/a/b"), Hardness::Hard);
    let doubted = table.doubt();
    drop(table);
    drop(folder.start(secret));
    let (table, history) = folder.start(secret);
    assert_eq!(history, History::Whole);
    let verdicts = [before, hard, doubted].map(|begun| table.verdict(&stored(begun)));
    assert_eq!(verdicts, [Purged::Hard, Purged::Doubted, Purged::No]);
}

/// Responses stored by a process must look older than every purge of the next one.
#[test]
fn generations_rise_from_start_to_start() {
    let (folder, secret) = (Folder::new(), Secret::new());
    let mut last = None;
    for round in 0..5 {
        let (table, _) = folder.start(secret);
        if let Some(last) = last {
            assert!(table.generation() > last, "{round}");
            assert_eq!(table.verdict(&stored(last)), Purged::No, "a start purges nothing");
        }
        for _ in 0..round {
            table.purge(&url(9, "else"), Hardness::Hard);
        }
        last = Some(table.generation());
        if round % 2 == 0 {
            table.close();
        }
    }
}

#[test]
fn a_soft_and_a_hard_purge_of_one_target_are_both_kept() {
    let (folder, secret) = (Folder::new(), Secret::new());
    for target in [url(1, "h/a/b"), prefix(1, "h"), tag(1, "x"), PurgeTarget::Site(1), PurgeTarget::All] {
        let (table, _) = folder.start(secret);
        let oldest = table.generation();
        let hard = table.purge(&target, Hardness::Hard);
        let soft = table.purge(&target, Hardness::Soft);
        drop(table);
        drop(folder.start(secret));
        let (table, _) = folder.start(secret);
        let verdicts = [oldest, hard, soft].map(|begun| table.verdict(&stored(begun)));
        assert_eq!(verdicts, [Purged::Hard, Purged::Soft, Purged::No], "{target:?}");
    }
}

/// However many lines were folded into others, before or after the restart: nothing that was purged comes back.
#[test]
fn folding_forgets_nothing() {
    let (folder, secret) = (Folder::new(), Secret::new());
    let (table, _) = PurgeTable::open(512, secret, folder.path()).expect("open");
    let before = table.generation();
    table.purge(&url(1, "h/a/b"), Hardness::Hard);
    for number in 0..500 {
        table.purge(&url(2, &format!("h/{number}")), Hardness::Soft);
    }
    drop(table);
    let (table, _) = PurgeTable::open(32, secret, folder.path()).expect("open");
    assert!(table.len() <= 34);
    assert_eq!(table.verdict(&stored(before)), Purged::Hard);
}

#[test]
fn an_unfinished_line_is_dropped_and_the_others_hold() {
    let (folder, secret) = (Folder::new(), Secret::new());
    let (table, _) = folder.start(secret);
    let before = table.generation();
    table.purge(&tag(1, "x"), Hardness::Hard);
    let whole = fs::read(folder.log()).expect("read");
    let start = whole.len();
    let after = table.purge(&prefix(1, "h/a"), Hardness::Soft);
    drop(table);
    let longer = fs::read(folder.log()).expect("read");
    for end in start..longer.len() {
        fs::write(folder.log(), &longer[..end]).expect("write");
        let (table, history) = folder.start(secret);
        assert_eq!(history, History::Whole, "{end}");
        assert_eq!(table.verdict(&stored(before)), Purged::Hard, "{end}");
        assert!(table.generation() > after);
    }
}

/// Whatever a byte is changed to, a purged response stays at least stale; and nothing panics.
#[test]
fn damage_anywhere_purges_everything_softly() {
    let secret = Secret::new();
    let folder = Folder::new();
    let (table, _) = folder.start(secret);
    let before = table.generation();
    table.purge(&tag(1, "x"), Hardness::Hard);
    let between = table.generation();
    table.purge(&url(7, "else"), Hardness::Hard);
    let last = table.generation();
    drop(table);
    let whole = fs::read(folder.log()).expect("read");
    for at in 0..whole.len() {
        for flip in [1, 0x80] {
            let mut damaged = whole.clone();
            damaged[at] ^= flip;
            let replay = replay(&damaged, &boot_of(&whole));
            let expected = if at < HEADER.len() { History::Lost } else { History::Damaged };
            if at + 1 < whole.len() {
                assert_eq!(replay.history, expected, "{at}");
            }
            if replay.history == History::Damaged {
                assert!(replay.generation > last.number() + LEAP, "more than the starts that may be missing");
            }
        }
    }
    let mut damaged = whole.clone();
    let at = whole.len() - 20;
    damaged[at] ^= 1;
    fs::write(folder.log(), damaged).expect("write");
    let (table, history) = folder.start(secret);
    assert_eq!(history, History::Damaged);
    assert_eq!(table.verdict(&stored(before)), Purged::Hard, "what is still known holds");
    assert_eq!(table.verdict(&stored(between)), Purged::Soft);
    assert_eq!(table.verdict(&stored(last)), Purged::Soft);
    assert_eq!(table.verdict(&stored(table.generation())), Purged::No);
    assert!(table.is_doubted(last) && !table.is_doubted(table.generation()), "what is missing may have been a hard purge");
    drop(table);
    let (table, history) = folder.start(secret);
    assert_eq!(history, History::Whole, "it is said once");
    assert!(table.is_doubted(last), "and counts until what was stored before is gone");
}

/// Returns the machine's run in the start line of a log.
fn boot_of(log: &[u8]) -> String {
    let begun = log.split(|&byte| byte == b'\n').filter_map(Line::read).find_map(|line| match line {
        Line::Begun { boot, .. } => Some(boot),
        Line::Purge(_) | Line::Closed(_) => None,
    });
    begun.expect("a start line")
}

#[test]
fn lines_may_have_been_lost_with_the_power_unless_the_log_was_closed() {
    let purge = Logged { generation: 8, hardness: Hardness::Hard, what: LoggedTarget::All };
    let begun = |boot: &str| Line::Begun { generation: 7, boot: boot.to_owned() };
    // lines, history at a start of the machine named "now"
    let cases = [
        (vec![begun("now")], History::Whole),
        (vec![begun("now"), Line::Purge(purge.clone())], History::Whole),
        (vec![begun("before")], History::Damaged),
        (vec![begun("before"), Line::Purge(purge.clone())], History::Damaged),
        (vec![begun("before"), Line::Purge(purge.clone()), Line::Closed(8)], History::Whole),
        (vec![begun("before"), Line::Closed(8), Line::Purge(purge.clone())], History::Damaged),
        // The table that a start writes ends with its start line: without it, the table is incomplete.
        (vec![Line::Purge(purge)], History::Damaged),
        (vec![], History::Damaged),
    ];
    for (lines, history) in cases {
        let mut log = HEADER.to_vec();
        lines.iter().for_each(|line| line.write(&mut log));
        assert_eq!(replay(&log, "now").history, history, "{lines:?}");
    }
    for foreign in [&b""[..], b"seawall-purges 2\n", b"\x7fELF", b"seawall-purges 1"] {
        assert_eq!(replay(foreign, "now").history, History::Lost, "{foreign:?}");
    }
}

#[test]
fn a_log_much_longer_than_its_table_is_written_anew() {
    let (folder, secret) = (Folder::new(), Secret::new());
    let (table, _) = folder.start(secret);
    let before = table.generation();
    for _ in 0..3 * SURPLUS_MAX {
        table.purge(&url(1, "h/a/b"), Hardness::Soft);
    }
    let lines = fs::read(folder.log()).expect("read").iter().filter(|&&byte| byte == b'\n').count();
    assert!(lines <= SURPLUS_MAX + 4, "{lines}");
    let last = table.generation();
    drop(table);
    let (table, history) = folder.start(secret);
    assert_eq!(history, History::Whole);
    assert_eq!(table.verdict(&stored(before)), Purged::Soft);
    assert!(table.generation() > last);
}

/// The log's own file is replaced by a device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn a_log_that_cannot_be_written_is_removed_and_comes_back_whole() {
    let folder = Folder::new();
    let purge = |generation| Logged { generation, hardness: Hardness::Hard, what: LoggedTarget::Site(1) };
    let (mut log, replay) = PurgeLog::open(folder.path()).expect("open");
    log.begin(replay.generation, Vec::new).expect("begun");
    assert!(folder.log().exists() && !log.is_failing());
    log.file = Some(OpenOptions::new().append(true).open("/dev/full").expect("a full disk"));
    // There is no room for a new one either.
    fs::create_dir(folder.path().join(NEW_NAME)).expect("a folder in its place");
    log.append(&purge(replay.generation + 1));
    log.tidy(replay.generation + 1, 1, || vec![purge(replay.generation + 1)]);
    assert!(log.is_failing());
    assert!(!folder.log().exists(), "what is not true must not be found");
    assert_eq!(PurgeLog::open(folder.path()).expect("open").1.history, History::Lost);
    // There is room again: one of the next purges brings the whole table back.
    fs::remove_dir(folder.path().join(NEW_NAME)).expect("removed");
    let mut generation = replay.generation + 1;
    while log.is_failing() {
        generation += 1;
        assert!(generation <= replay.generation + 2 + u64::from(RETRY_EVERY));
        log.append(&purge(generation));
        log.tidy(generation, 1, || vec![purge(generation)]);
    }
    let (_, replay) = PurgeLog::open(folder.path()).expect("open");
    assert_eq!((replay.history, replay.lines), (History::Whole, vec![purge(generation)]));
}

#[cfg(unix)]
#[test]
fn the_log_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    drop(folder.start(Secret::new()));
    assert_eq!(fs::metadata(folder.log()).expect("there").permissions().mode() & 0o777, 0o600);
}

fn line() -> impl Strategy<Value = Line> {
    let what = prop_oneof![
        Just(LoggedTarget::All),
        any::<u16>().prop_map(LoggedTarget::Site),
        (any::<u16>(), any::<u64>(), any::<u64>())
            .prop_map(|(site, first, second)| LoggedTarget::Exact { site, name: KeyHash::from_words(first, second) }),
        (any::<u16>(), prop::collection::vec(any::<u8>(), 0..64))
            .prop_map(|(site, prefix)| LoggedTarget::Prefix { site, prefix: prefix.into() }),
    ];
    let hardness = prop_oneof![Just(Hardness::Soft), Just(Hardness::Hard)];
    let generation = 0..GENERATION_MAX;
    prop_oneof![
        4 => (generation.clone(), hardness, what).prop_map(|(generation, hardness, what)| Line::Purge(Logged { generation, hardness, what })),
        1 => (generation.clone(), "[0-9a-f]{0,32}").prop_map(|(generation, boot)| Line::Begun { generation, boot }),
        1 => generation.prop_map(Line::Closed),
    ]
}

proptest! {
    #[test]
    fn a_line_reads_as_it_was_written(line in line()) {
        let mut written = Vec::new();
        line.write(&mut written);
        prop_assert_eq!(written.pop(), Some(b'\n'));
        prop_assert!(!written.contains(&b'\n'));
        prop_assert_eq!(Line::read(&written), Some(line));
    }

    #[test]
    fn no_bytes_are_too_odd_to_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Line::read(&bytes);
        let _ = replay(&[HEADER, &bytes].concat(), "");
    }
}
