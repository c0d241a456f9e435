use std::os::unix::fs::MetadataExt;

use tempfile::TempDir;

use super::*;
use crate::hash::Secret;

fn secret() -> Secret {
    Secret::of([1, 2])
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn open(&self) -> Packs {
        Packs::open(self.0.path().to_owned(), secret(), true).expect("opened")
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(self.0.path()).expect("there").map(|entry| entry.expect("a file").path()).collect();
        files.sort();
        files
    }

    /// Returns the number of the blocks of 4 KiB that the system has given to all packs.
    fn blocks(&self) -> u64 {
        self.files().iter().map(|path| fs::metadata(path).expect("there").blocks() * 512 / BLOCK).sum()
    }
}

fn hash(number: u64) -> KeyHash {
    secret().key(&number.to_le_bytes())
}

/// Writes an entry of so many bytes behind the label.
fn append(packs: &Packs, number: u64, length: usize) -> Located {
    append_all(packs, &[(number, length)]).remove(0)
}

/// Writes several at a time.
fn append_all(packs: &Packs, entries: &[(u64, usize)]) -> Vec<Located> {
    let new = |(number, length): &(u64, usize)| entry(*number, vec![b'x'; length - 1]);
    let (new, mut extents): (Vec<_>, _) = (entries.iter().map(new).collect(), Vec::new());
    packs.append(&new, &mut extents).expect("written");
    assert_eq!(extents.len(), entries.len());
    let located = |(entry, extent): (&NewEntry, _)| Located {
        hash: entry.hash,
        file: Entry::new(entry.sequence, entry.bytes() as u64, Some(extent)),
    };
    new.iter().zip(extents).map(located).collect()
}

fn entry(number: u64, body: Vec<u8>) -> NewEntry {
    NewEntry { hash: hash(number), sequence: number, body: body.into(), tail: b"y".to_vec() }
}

fn read(packs: &Packs, entry: Located) -> io::Result<Vec<u8>> {
    packs.read(entry.file.extent.expect("in a pack"), entry.hash, entry.file.sequence)
}

fn remove(packs: &Packs, entry: Located) {
    remove_all(packs, &[entry]);
}

fn remove_all(packs: &Packs, entries: &[Located]) {
    packs.remove(entries.iter().map(|entry| entry.file.extent.expect("in a pack")));
}

#[test]
fn entries_stand_one_behind_the_other() {
    let folder = Folder::new();
    let packs = folder.open();
    // With their labels, they take 1, 18, 18 and 2 units of 512 bytes.
    let lengths = [1, 9_000, 8_700, 1_000 - LABEL];
    let entries = lengths.map(|length| append(&packs, length as u64, length));
    assert_eq!(entries.map(|entry| entry.file.extent.expect("in a pack").first), [0, 1, 19, 37]);
    assert_eq!((folder.files().len(), folder.blocks()), (1, 5), "39 units are five blocks");
    for (length, entry) in lengths.into_iter().zip(entries) {
        let found = read(&packs, entry).expect("there");
        assert_eq!((found.len(), found.last()), (length, Some(&b'y')));
    }
    assert!(packs.accept(ENTRY_MAX - LABEL) && !packs.accept(ENTRY_MAX - LABEL + 1));
}

/// The sizes that count for the limit of the disk are those of the blocks that each needs alone, and they must hold for whatever is left.
#[test]
fn an_entry_lies_in_no_more_blocks_than_it_needs() {
    let begins = |lengths: &[u64]| {
        let extents = lengths.iter().scan(0, |end, length| {
            let at = beginning(*end, *length);
            *end = (at + length).next_multiple_of(UNIT);
            Some(at)
        });
        extents.collect::<Vec<_>>()
    };
    assert_eq!(begins(&[4096, 1, 4096]), [0, 4096, 8192]);
    assert_eq!(begins(&[2500, 2500, 1500]), [0, 4096, 4096 + 2560]);
    assert_eq!(begins(&[9000, 9000, 9000, 9000]), [0, 9216, 18_432, 27_648]);
    assert_eq!(begins(&[3584, 512, 512]), [0, 3584, 4096]);
    for (end, length) in (0..64).flat_map(|end| (1..3 * 4096).step_by(97).map(move |length| (end * UNIT, length))) {
        let at = beginning(end, length);
        assert!(at >= end && at - end < BLOCK && at.is_multiple_of(UNIT));
        assert_eq!((at + length).div_ceil(BLOCK) - at / BLOCK, length.div_ceil(BLOCK), "{length} behind {end}");
    }
}

#[test]
fn entries_that_are_written_together_stand_as_if_they_had_come_one_by_one() {
    let lengths = [1, 4096 - LABEL, 4096 - LABEL + 1, 20_000, ENTRY_MAX - LABEL];
    let entries: Vec<_> = (1..).zip(lengths).collect();
    let (together, alone) = (Folder::new(), Folder::new());
    let (packs, one_by_one) = (together.open(), alone.open());
    let written = append_all(&packs, &entries);
    let expected: Vec<_> = entries.iter().map(|(number, length)| append(&one_by_one, *number, *length)).collect();
    assert_eq!(written, expected);
    assert_eq!(fs::read(&together.files()[0]).expect("there"), fs::read(&alone.files()[0]).expect("there"));
    for (located, length) in written.iter().zip(lengths) {
        assert_eq!(read(&packs, *located).expect("there").len(), length);
    }
    // Each goes by itself.
    remove(&packs, written[1]);
    drop(packs);
    let (mut listed, damaged) = together.open().list();
    listed.sort_unstable_by_key(|entry| entry.file.sequence);
    assert_eq!((listed, damaged), ([&written[..1], &written[2..]].concat(), 0));
}

#[test]
fn more_entries_than_one_call_takes_are_written_by_several() {
    let folder = Folder::new();
    let packs = folder.open();
    let entries: Vec<_> = (0..600).map(|number| (number, 10)).collect();
    let written = append_all(&packs, &entries);
    assert_eq!(folder.files().len(), 1);
    assert_eq!(written.iter().filter(|entry| read(&packs, **entry).is_ok()).count(), 600);
}

#[test]
fn what_a_pack_has_no_room_for_goes_into_the_next_ones() {
    let folder = Folder::new();
    let packs = folder.open();
    // Fifteen blocks each: 69 fill a pack.
    let entries: Vec<_> = (0..140).map(|number| (number, 60_000)).collect();
    let written = append_all(&packs, &entries);
    assert_eq!(folder.files().len(), 3);
    assert_eq!(written.iter().filter(|entry| read(&packs, **entry).is_ok()).count(), 140);
}

/// The process is killed, or the power goes, at any moment of a write of several entries: what is whole is there, and nothing else.
#[test]
fn of_a_torn_batch_what_is_whole_is_there() {
    let lengths = [100, 5_000, 9_000];
    // They begin at 0, 512 and 5,632.
    let ends = [LABEL + 100, 512 + LABEL + 5_000, 5_632 + LABEL + 9_000];
    for cut in [0, 1, LABEL, LABEL + 99, LABEL + 100, 512, 513, 5_559, 5_560, 5_631, 5_632, 5_633, 14_679] {
        let folder = Folder::new();
        let packs = folder.open();
        let written = append_all(&packs, &[(1, lengths[0]), (2, lengths[1]), (3, lengths[2])]);
        drop(packs);
        File::options().write(true).open(&folder.files()[0]).and_then(|file| file.set_len(cut as u64)).expect("cut short");
        let packs = folder.open();
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let (listed, _) = packs.list();
        assert!(written.iter().zip([0, 512, 5_632]).all(|(entry, at)| entry.file.extent.is_some_and(|extent| extent.at() == at)));
        assert_eq!(listed, written[..whole], "{cut}");
        assert!(listed.iter().all(|entry| read(&packs, *entry).is_ok()));
    }
}

#[test]
fn entries_that_cannot_be_written_are_counted() {
    let folder = Folder::new();
    let packs = folder.open();
    fs::remove_dir_all(folder.0.path()).expect("removed");
    let mut extents = Vec::new();
    let lost = packs.append(&[entry(1, vec![0; 9]), entry(2, vec![0; 9])], &mut extents).expect_err("there is no folder");
    assert_eq!((lost.entries, lost.error.kind(), extents.len()), (2, io::ErrorKind::NotFound, 0));
}

#[test]
fn what_is_removed_gives_its_blocks_back_and_the_rest_stays() {
    let folder = Folder::new();
    let packs = folder.open();
    // Twenty units each: they lie in the blocks 0 to 2, 2 to 4, and 5 to 7.
    let [a, b, c] = [1, 2, 3].map(|number| append(&packs, number, 10_000));
    assert_eq!([a, b, c].map(|entry| entry.file.extent.expect("in a pack").first), [0, 20, 40]);
    let before = folder.blocks();
    remove(&packs, b);
    assert_eq!(before - folder.blocks(), 2, "the first of its blocks is another one's as well");
    assert_eq!(read(&packs, b).expect_err("removed").kind(), io::ErrorKind::NotFound);
    assert!(read(&packs, a).is_ok() && read(&packs, c).is_ok());
    remove(&packs, a);
    assert_eq!(before - folder.blocks(), 5, "who goes last takes the block along");
    // The one that is written now stays until it is full.
    [a, c, c].into_iter().for_each(|entry| remove(&packs, entry));
    assert_eq!(folder.files().len(), 1);
    assert!(read(&packs, append(&packs, 4, 10)).is_ok());
}

/// Small pages lie side by side in a block, and go in any order: what is left can be read, by the next process as well, and in the end nothing is left.
#[test]
fn neighbours_go_one_by_one() {
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
        let folder = Folder::new();
        let packs = folder.open();
        let entries: Vec<_> = append_all(&packs, &[(0, 1_000), (1, 700), (2, 6_000), (3, 100), (4, 100)]);
        let mut left: Vec<_> = entries.clone();
        for gone in order {
            remove(&packs, entries[gone]);
            left.retain(|entry| *entry != entries[gone]);
            assert!(left.iter().all(|entry| read(&packs, *entry).is_ok()));
            assert_eq!(read(&packs, entries[gone]).expect_err("removed").kind(), io::ErrorKind::NotFound);
            assert_eq!(folder.open().list(), (left.clone(), 0));
        }
        assert!(folder.blocks() <= 1, "the block in which the next one would begin");
    }
}

/// The block in which an entry ends belongs to the next one as well, which may be on its way while the first is removed.
#[test]
fn what_is_given_back_is_not_written() {
    let folder = Folder::new();
    let packs = folder.open();
    let free = |entry: Located| packs.state.lock().free(entry.file.extent.expect("in a pack"));
    let at = |entry: Located| entry.file.extent.expect("in a pack").at();
    let a = append(&packs, 1, 1_000);
    assert_eq!((free(a), free(a)), (Some(0..4_096), None));
    let b = append(&packs, 2, 1_000);
    let c = append(&packs, 3, 5_000);
    assert_eq!((at(b), at(c)), (4_096, 4_096 + 1_536), "the first block is being cut out");
    assert_eq!(free(b), Some(4_096..5_632), "the next one begins in this block");
    assert_eq!(free(c), Some(4_096..12_288), "now nobody is left in it");
    assert!(packs.state.lock().take(NonZeroU32::MAX, [1_000].into_iter()).is_none(), "this pack was given up");
}

/// Pages are purged as soon as they are stored, over and over: nothing but the one that stays takes room.
#[test]
fn what_goes_before_the_next_one_comes_leaves_nothing() {
    for lengths in [[3_072 - LABEL, 3_072 - LABEL], [1_102, 2_600], [2_600, 700], [9_000, 9_000]] {
        let folder = Folder::new();
        let packs = folder.open();
        let stays = append(&packs, 0, 5_000);
        for number in 1..200 {
            let written = append_all(&packs, &[(number, lengths[0]), (1_000 + number, lengths[1])]);
            remove(&packs, written[1]);
            remove(&packs, written[0]);
        }
        assert!(folder.blocks() <= 3, "{} blocks", folder.blocks());
        assert!(read(&packs, stays).is_ok());
    }
}

/// Fills a pack: its last entry ends behind 4 MiB.
fn full(length: usize) -> (Folder, Packs, Vec<Located>) {
    let folder = Folder::new();
    let packs = folder.open();
    let mut entries = Vec::new();
    while entries.last().is_none_or(|last: &Located| last.file.extent.expect("in a pack").end() <= PACK) {
        entries.push(append(&packs, entries.len() as u64, length));
    }
    (folder, packs, entries)
}

#[test]
fn what_stands_behind_the_last_entry_costs_no_other_one() {
    for length in [9_000, 17 * 512 - LABEL] {
        let (folder, packs, entries) = full(length);
        drop(packs);
        let path = folder.files().remove(0);
        let bytes = fs::read(&path).expect("there");
        let (last, others) = entries.split_last().expect("some");
        let at = last.file.extent.map_or(0, |extent| usize::from(extent.first) * UNIT_LEN);
        let mut changed = bytes.clone();
        changed[at + 20] ^= 1;
        let whole = &entries[..];
        let cases = [
            ("nothing", bytes.clone(), whole, 0),
            ("a bit of its label", changed, others, 1),
            ("half a kilobyte more", [&bytes[..], &[b'?'; 512]].concat(), whole, 0),
            ("a block of zeros more", [&bytes[..], &[0; 4096]].concat(), whole, 0),
            ("zeros where it was", [&bytes[..at], &vec![0; bytes.len() - at]].concat(), others, 0),
        ];
        for (case, bytes, left, damaged) in cases {
            fs::write(&path, bytes).expect("written");
            assert_eq!(folder.open().list(), (left.to_vec(), damaged), "{case}");
            let length = fs::metadata(&path).expect("there").len();
            assert!(length <= last.file.extent.expect("in a pack").end(), "{case}: {length}");
        }
    }
}

/// The entry that fills a pack is removed before the next one comes.
#[test]
fn the_last_entry_of_a_full_pack_can_go_first() {
    for length in [9_000, 17 * 512 - LABEL] {
        let (folder, packs, mut entries) = full(length);
        remove(&packs, entries.pop().expect("the last"));
        drop(packs);
        assert_eq!(folder.open().list(), (entries, 0));
    }
}

/// What stood in the packs of earlier versions, where each entry began at a block, is read, listed and removed.
#[test]
fn packs_of_earlier_versions_are_read() {
    let folder = Folder::new();
    let mut bytes = Vec::new();
    for (block, number) in [(0, 1_u64), (1, 2), (4, 3)] {
        let (first, second) = hash(number).words();
        let mut label = b"seapack\x1a".to_vec();
        label.extend(10_000_u32.to_le_bytes().into_iter().chain([0; 4]));
        [first, second, number].iter().for_each(|word| label.extend(word.to_le_bytes()));
        let extent = [1_u32, block].map(u32::to_le_bytes).concat();
        label.extend(secret().key(&[label.clone(), extent].concat()).words().0.to_le_bytes());
        bytes.resize(block as usize * BLOCK_LEN, 0);
        bytes.extend(label.into_iter().chain([b'x'; 9_999]).chain([b'y']));
        if block == 0 {
            bytes.splice(8..12, 3_000_u32.to_le_bytes());
        }
    }
    fs::write(folder.0.path().join("00000001"), bytes).expect("written");
    let packs = folder.open();
    let (listed, damaged) = packs.list();
    assert_eq!((listed.len(), damaged), (2, 1), "the first one's seal is of another length");
    let extent = |entry: &Located| entry.file.extent.map(|extent| (extent.at(), extent.bytes()));
    assert_eq!(listed.iter().map(extent).collect::<Vec<_>>(), [Some((4_096, 12_288)), Some((16_384, 12_288))]);
    assert!(listed.iter().all(|entry| read(&packs, *entry).is_ok_and(|found| found.len() == 10_000 && found.last() == Some(&b'y'))));
    assert_eq!(folder.blocks(), 6, "what was damaged is cut out");
    remove(&packs, listed[0]);
    assert_eq!(folder.blocks(), 3);
    assert_eq!(folder.open().list(), (vec![listed[1]], 0));
    remove(&packs, listed[1]);
    assert_eq!(folder.files(), [] as [PathBuf; 0]);
}

#[test]
fn a_full_pack_is_followed_by_the_next_and_goes_when_it_is_empty() {
    let folder = Folder::new();
    let packs = folder.open();
    let entries: Vec<_> = (0..130).map(|number| append(&packs, number, ENTRY_MAX - LABEL)).collect();
    assert_eq!(folder.files().len(), 3, "64 entries of 64 KiB are 4 MiB");
    remove_all(&packs, &entries[..63]);
    assert_eq!(folder.files().len(), 3);
    // To remove one twice takes nobody else's place away.
    remove(&packs, entries[0]);
    remove(&packs, entries[63]);
    assert_eq!(folder.files().len(), 2);
    assert!(entries[64..].iter().all(|entry| read(&packs, *entry).is_ok()));
}

#[test]
fn the_next_process_lists_what_is_left_and_begins_a_pack_of_its_own() {
    let folder = Folder::new();
    let packs = folder.open();
    let [a, b, c] = [5, 5_000, 60_000].map(|length| append(&packs, length as u64, length));
    remove(&packs, b);
    drop(packs);
    let packs = folder.open();
    let d = append(&packs, 4, 100);
    assert_eq!(packs.list(), (vec![a, c], 0));
    assert!([a, c, d].into_iter().all(|entry| read(&packs, entry).is_ok()));
    assert_ne!(d.file.extent.expect("in a pack").pack, a.file.extent.expect("in a pack").pack);
    remove_all(&packs, &[a, c]);
    assert_eq!(folder.files().len(), 1, "nothing is left of the old one");
    remove(&packs, d);
    drop(packs);
    assert_eq!(folder.open().list(), (vec![], 0));
    assert_eq!(folder.files(), [] as [PathBuf; 0]);
}

/// Killed in the middle of a write: the label says more than there is.
#[test]
fn a_torn_entry_is_not_listed_and_gives_its_blocks_back() {
    let folder = Folder::new();
    let packs = folder.open();
    let [a, b] = [1, 2].map(|number| append(&packs, number, 20_000));
    assert_eq!(b.file.extent.expect("in a pack").at(), 5 * BLOCK);
    drop(packs);
    let path = folder.files().remove(0);
    File::options().write(true).open(&path).and_then(|file| file.set_len(5 * BLOCK + 9_000)).expect("cut short");
    let packs = folder.open();
    assert_eq!(packs.list(), (vec![a], 0), "that is not damage");
    assert_eq!(folder.blocks(), 5);
    assert!(read(&packs, a).is_ok());
}

/// A page holds what looks like an entry, and its own is torn: nothing in it is taken for one.
#[test]
fn a_page_that_holds_labels_holds_no_entries() {
    let folder = Folder::new();
    let packs = folder.open();
    let mut body = vec![b'x'; 4096 - LABEL];
    let extent = PackExtent::new(NonZeroU32::MIN, BLOCK, 100).expect("a place");
    let forged = Label { length: 100, hash: hash(7), sequence: 7 }.encode(extent, &Secret::of([3, 4]));
    body.extend(forged.into_iter().chain([b'x'; 8000]));
    packs.append(&[entry(1, body)], &mut Vec::new()).expect("written");
    drop(packs);
    let path = folder.files().remove(0);
    File::options().write(true).open(&path).and_then(|file| file.set_len(2 * BLOCK)).expect("cut short");
    assert_eq!(folder.open().list(), (vec![], 0));
}

#[test]
fn what_is_no_entry_is_cut_out_and_what_is_no_pack_is_removed() {
    let folder = Folder::new();
    fs::write(folder.0.path().join("00000001"), vec![b'?'; 3 * 4096]).expect("written");
    fs::write(folder.0.path().join("a letter"), "dear").expect("written");
    let other = tempfile::NamedTempFile::new().expect("a file elsewhere");
    fs::write(other.path(), vec![b'?'; 3 * 4096]).expect("written");
    std::os::unix::fs::symlink(other.path(), folder.0.path().join("00000002")).expect("made");
    let packs = folder.open();
    assert_eq!(packs.list(), (vec![], 1));
    assert_eq!(folder.files(), [] as [PathBuf; 0]);
    assert_eq!(fs::read(other.path()).expect("there"), vec![b'?'; 3 * 4096], "what a link leads to is not touched");
    append(&packs, 1, 10);
    assert_eq!(folder.files(), [folder.0.path().join("00000002")], "a number is used once");
}

#[test]
fn an_entry_is_read_under_its_own_key_and_number_alone() {
    let folder = Folder::new();
    let packs = folder.open();
    let entry = append(&packs, 1, 10);
    let extent = entry.file.extent.expect("in a pack");
    for (key, sequence) in [(2, 1), (1, 2)] {
        let error = packs.read(extent, hash(key), sequence).expect_err("another one's");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

#[test]
fn a_label_that_was_changed_or_stands_elsewhere_is_none() {
    let label = Label { length: 77, hash: hash(1), sequence: 9 };
    let pack = NonZeroU32::MIN;
    let extent = PackExtent::new(pack, 3 * UNIT, 125).expect("a place");
    let bytes = label.encode(extent, &secret());
    let parse = |bytes: &[u8], at: u64| Label::parse(bytes, pack, at, &secret());
    assert_eq!(parse(&bytes, extent.at()), Some((label, UNIT)));
    for bit in 0..LABEL * 8 {
        let mut changed = bytes;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(parse(&changed, extent.at()), None, "bit {bit}");
    }
    assert_eq!(parse(&bytes[1..], extent.at()), None);
    assert_eq!((parse(&bytes, 4 * UNIT), parse(&bytes, 3 * BLOCK)), (None, None));
    assert_eq!(Label::parse(&bytes, NonZeroU32::MAX, extent.at(), &secret()), None);
    assert_eq!(Label::parse(&bytes, pack, extent.at(), &Secret::of([1, 3])), None, "who does not know the secret makes none");
    let longer = Label { length: u32::MAX, ..label };
    assert_eq!(parse(&longer.encode(extent, &secret()), extent.at()), None, "longer than an entry can be");
}

/// Puts something in the place of a pack that opens and cannot be cut.
fn spoil(folder: &Folder, name: &str) -> PathBuf {
    let path = folder.0.path().join(name);
    fs::remove_file(&path).expect("there");
    std::os::unix::fs::symlink("/dev/null", &path).expect("made");
    path
}

/// What was removed and is still in the file would be back with the next start.
#[test]
fn a_pack_that_cannot_be_cut_goes_with_all_that_is_in_it() {
    let folder = Folder::new();
    let packs = folder.open();
    let [a, b] = [1, 2].map(|number| append(&packs, number, 100));
    let spoilt = spoil(&folder, "00000001");
    remove(&packs, a);
    assert!(!spoilt.is_symlink());
    assert_eq!(read(&packs, b).expect_err("gone as well").kind(), io::ErrorKind::NotFound);
    // It was the one that is written, so the next entry begins another one.
    let c = append(&packs, 3, 100);
    assert!(read(&packs, c).is_ok());
    assert_eq!(folder.files(), [folder.0.path().join("00000002")]);
    remove(&packs, b);
    assert!(read(&packs, c).is_ok());
}

#[test]
fn a_pack_that_cannot_be_listed_goes() {
    let folder = Folder::new();
    append(&folder.open(), 1, 100);
    let packs = folder.open();
    let spoilt = spoil(&folder, "00000001");
    assert_eq!(packs.list(), (vec![], 1));
    assert!(!spoilt.is_symlink());
}

#[test]
fn the_last_pack_of_the_process_before_goes_when_it_is_empty() {
    let folder = Folder::new();
    append(&folder.open(), 1, 100);
    let packs = folder.open();
    let (listed, _) = packs.list();
    remove_all(&packs, &listed);
    assert_eq!((listed.len(), folder.files().len()), (1, 0));
}

#[test]
fn a_pack_under_another_name_holds_nothing() {
    let folder = Folder::new();
    let entry = append(&folder.open(), 1, 100);
    for name in ["00000007", "+0000001", "0000000A", "00000000"] {
        fs::copy(folder.0.path().join("00000001"), folder.0.path().join(name)).expect("copied");
    }
    let packs = folder.open();
    assert_eq!(packs.list(), (vec![entry], 1));
    assert_eq!(folder.files(), [folder.0.path().join("00000001")]);
}
