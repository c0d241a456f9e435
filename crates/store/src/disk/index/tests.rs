use super::*;
use crate::hash::Secret;

fn hashes(count: u64) -> Vec<KeyHash> {
    let secret = Secret::new();
    (0..count).map(|number| secret.key(&number.to_le_bytes())).collect()
}

fn index(files: u64) -> Index {
    Index::new(files * BLOCK, 1 << 20, 8)
}

fn id(hash: KeyHash, sequence: u64) -> FileId {
    FileId { hash, sequence }
}

/// Returns a file of one block.
fn file(hash: KeyHash, sequence: u64) -> Located {
    Located { hash, file: File::new(sequence, 1, None) }
}

fn nobody(_: KeyHash) -> bool {
    false
}

fn add(index: &Index, file: Located) -> Vec<Located> {
    index.add(file, || true, nobody)
}

fn sequences(index: &Index, hash: KeyHash) -> Vec<u64> {
    index.files(hash).iter().map(|file| file.sequence).collect()
}

#[test]
fn a_name_says_what_it_names() {
    let hash = Secret::new().key(b"/");
    let (first, second) = hash.words();
    let name = format!("{first:016x}{second:016x}-00000000000000ff");
    assert_eq!(FileId::parse(&name), Some(id(hash, 255)));
    let upper = format!("{}F", &name[..name.len() - 1]);
    for wrong in ["", "-", &name[1..], &name[..name.len() - 1], &format!("{name}0"), &name.replace('-', "_"), &upper, "lost+found"] {
        assert_eq!(FileId::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn files_come_and_go() {
    let (index, hash) = (index(100), hashes(1)[0]);
    assert!(add(&index, file(hash, 1)).is_empty() && add(&index, file(hash, 3)).is_empty() && add(&index, file(hash, 2)).is_empty());
    assert_eq!(sequences(&index, hash), [3, 2, 1], "newest first");
    assert_eq!(index.held(), IndexTotals { files: 3, bytes: 3 * BLOCK });
    assert_eq!(index.take(hash, || Some(2)), [file(hash, 2)]);
    assert_eq!(index.take(hash, || Some(2)), []);
    assert_eq!(index.take(hash, || None), []);
    assert!(index.contains(id(hash, 3)) && !index.contains(id(hash, 2)));
    assert_eq!(index.take_all(hash, 9, false).len(), 2);
    assert_eq!((index.held(), sequences(&index, hash).len()), (IndexTotals::default(), 0));
}

#[test]
fn what_died_while_it_was_written_is_not_added() {
    let (index, hash) = (index(100), hashes(1)[0]);
    assert_eq!(index.add(file(hash, 1), || false, nobody), [file(hash, 1)]);
    assert_eq!(index.held(), IndexTotals::default());
}

#[test]
fn the_oldest_variants_go() {
    let (index, hash) = (index(100), hashes(1)[0]);
    let gone: Vec<Located> = (1..=10).flat_map(|sequence| add(&index, file(hash, sequence))).collect();
    assert_eq!(gone, [file(hash, 1), file(hash, 2)]);
    assert_eq!(index.held().files, 8);
}

/// The files held and the files removed are together all files there were; and those held never exceed the limit.
#[test]
fn every_file_is_held_or_gone() {
    let (index, hashes) = (index(50), hashes(300));
    let mut gone = Vec::new();
    for (sequence, hash) in (1..).zip(hashes.iter().chain(&hashes[..100])) {
        gone.extend(index.add(file(*hash, sequence), || true, |hash| hash == hashes[7] || hash == hashes[120]));
        assert!(index.held().bytes <= 50 * BLOCK && index.held().files <= 50);
    }
    let held: usize = hashes.iter().map(|hash| sequences(&index, *hash).len()).sum();
    assert_eq!(held as u64, index.held().files);
    assert_eq!(held + gone.len(), 400);
    gone.sort_unstable_by_key(|gone| gone.file.sequence);
    gone.dedup();
    assert_eq!(held + gone.len(), 400, "none is unlinked twice");
}

#[test]
fn a_scan_does_not_push_out_what_memory_holds_or_what_is_asked_for() {
    let (index, hashes) = (index(100), hashes(5_000));
    let (popular, scanned) = hashes.split_at(60);
    let (in_memory, asked) = popular.split_at(30);
    let mut sequence = 0;
    for hash in popular.iter().chain(scanned) {
        sequence += 1;
        index.add(file(*hash, sequence), || true, |hash| in_memory.contains(&hash));
        for hash in asked {
            index.files(*hash);
        }
    }
    let left = |hashes: &[KeyHash]| hashes.iter().filter(|hash| !sequences(&index, **hash).is_empty()).count();
    assert_eq!((left(in_memory), left(asked)), (30, 30));
}

#[test]
fn a_file_counts_enough_for_their_number_to_be_bounded() {
    let index = Index::new(1_000 * BLOCK, 10, 8);
    for (sequence, hash) in (1..).zip(hashes(100)) {
        add(&index, file(hash, sequence));
    }
    assert!(index.held().files <= 10, "{:?}", index.held());
}

#[test]
fn what_is_listed_is_found_at_once_and_settles_by_age() {
    let (index, hashes) = (index(100), hashes(300));
    // A directory has no defined order.
    let listed = |from: usize, to: usize| (from..to).rev().map(|at| file(hashes[at], at as u64 + 1)).collect::<Vec<_>>();
    assert!(index.note(listed(0, 90)).is_empty());
    add(&index, file(hashes[5], 1_000));
    assert_eq!(sequences(&index, hashes[5]), [1_000, 6]);
    assert_eq!(index.take(hashes[6], || Some(7)), [file(hashes[6], 7)]);
    assert_eq!(index.take_all(hashes[150], 500, true), []);
    assert_eq!(index.note(listed(90, 300)), [file(hashes[150], 151)], "forgotten before it was found");
    assert_eq!(index.note(listed(90, 95)), [], "what is there is not noted twice");
    assert_eq!(sequences(&index, hashes[299]), [300]);
    assert_eq!(index.held().files, 299);
    let gone = index.settle();
    assert_eq!(index.held().files + gone.len() as u64, 299);
    assert!(index.held().bytes <= 100 * BLOCK);
    for at in (0..200).filter(|at| *at != 5) {
        assert!(sequences(&index, hashes[at]).is_empty(), "{at} is old");
    }
    let newest = (210..300).filter(|at| !sequences(&index, hashes[*at]).is_empty()).count();
    assert_eq!(newest, 90);
}

#[test]
fn a_full_disk_makes_room() {
    let index = index(1_000);
    for (sequence, hash) in (1..).zip(hashes(320)) {
        add(&index, file(hash, sequence));
    }
    let gone = index.shrink();
    assert_eq!((gone.len(), index.held().files), (20, 300));
    let most = |added| 300 + added / 16 + 1;
    for (added, hash) in (0..).zip(hashes(100)) {
        add(&index, file(hash, 1_000 + added));
        assert!(index.held().files <= most(added), "and keeps it");
    }
    // The disk has room again, whoever took it before.
    for (added, hash) in (100..).zip(hashes(20_000).into_iter().skip(100)) {
        add(&index, file(hash, 1_000 + added));
        assert!(index.held().files <= most(added).min(1_000));
    }
    assert_eq!(index.held().files, 1_000);
}
