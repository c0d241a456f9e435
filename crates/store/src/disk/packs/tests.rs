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

    /// The blocks of 4 KiB that the system has given to all packs.
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
    let (new, mut places): (Vec<_>, _) = (entries.iter().map(new).collect(), Vec::new());
    packs.append(&new, &mut places).expect("written");
    assert_eq!(places.len(), entries.len());
    let located =
        |(entry, place): (&NewEntry, _)| Located { hash: entry.hash, file: Entry::new(entry.sequence, entry.bytes() as u64, Some(place)) };
    new.iter().zip(places).map(located).collect()
}

fn entry(number: u64, body: Vec<u8>) -> NewEntry {
    NewEntry { hash: hash(number), sequence: number, body: body.into(), tail: b"y".to_vec() }
}

fn read(packs: &Packs, entry: Located) -> io::Result<Vec<u8>> {
    packs.read(entry.file.place.expect("in a pack"), entry.hash, entry.file.sequence, entry.file.bytes())
}

fn remove(packs: &Packs, entry: Located) {
    remove_all(packs, &[entry]);
}

fn remove_all(packs: &Packs, entries: &[Located]) {
    packs.remove(entries.iter().map(|entry| (entry.file.place.expect("in a pack"), entry.file.bytes())));
}

#[test]
fn entries_stand_one_behind_the_other_in_whole_blocks() {
    let folder = Folder::new();
    let packs = folder.open();
    let lengths = [1, 4096 - LABEL, 4096 - LABEL + 1, ENTRY_MAX - LABEL];
    let entries = lengths.map(|length| append(&packs, length as u64, length));
    assert_eq!(folder.files().len(), 1);
    assert_eq!((fs::metadata(&folder.files()[0]).expect("there").len(), folder.blocks()), ((1 + 1 + 2 + 16) * BLOCK, 1 + 1 + 2 + 16));
    for (length, entry) in lengths.into_iter().zip(entries) {
        let found = read(&packs, entry).expect("there");
        assert_eq!((found.len(), found.last()), (length, Some(&b'y')));
    }
    assert!(packs.accept(ENTRY_MAX - LABEL) && !packs.accept(ENTRY_MAX - LABEL + 1));
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
    let ends = [LABEL + 100, BLOCK_LEN + LABEL + 5_000, 3 * BLOCK_LEN + LABEL + 9_000];
    for cut in [0, 1, LABEL, LABEL + 99, LABEL + 100, 4096, 4097, 9_143, 9_144, 12_287, 12_288, 12_289, 21_335] {
        let folder = Folder::new();
        let packs = folder.open();
        let written = append_all(&packs, &[(1, lengths[0]), (2, lengths[1]), (3, lengths[2])]);
        drop(packs);
        File::options().write(true).open(&folder.files()[0]).and_then(|file| file.set_len(cut as u64)).expect("cut short");
        let packs = folder.open();
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let (listed, _) = packs.list();
        assert_eq!(listed, written[..whole], "{cut}");
        assert!(listed.iter().all(|entry| read(&packs, *entry).is_ok()));
    }
}

#[test]
fn entries_that_cannot_be_written_are_counted() {
    let folder = Folder::new();
    let packs = folder.open();
    fs::remove_dir_all(folder.0.path()).expect("removed");
    let mut places = Vec::new();
    let lost = packs.append(&[entry(1, vec![0; 9]), entry(2, vec![0; 9])], &mut places).expect_err("there is no folder");
    assert_eq!((lost.entries, lost.error.kind(), places.len()), (2, io::ErrorKind::NotFound, 0));
}

#[test]
fn what_is_removed_gives_its_blocks_back_and_the_rest_stays() {
    let folder = Folder::new();
    let packs = folder.open();
    let [a, b, c] = [1, 2, 3].map(|number| append(&packs, number, 10_000));
    let before = folder.blocks();
    remove(&packs, b);
    assert_eq!(before - folder.blocks(), 3);
    assert_eq!(read(&packs, b).expect_err("removed").kind(), io::ErrorKind::NotFound);
    assert!(read(&packs, a).is_ok() && read(&packs, c).is_ok());
    // The one that is written now stays until it is full.
    [a, c, c].into_iter().for_each(|entry| remove(&packs, entry));
    assert_eq!(folder.files().len(), 1);
    assert!(read(&packs, append(&packs, 4, 10)).is_ok());
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
    assert_ne!(d.file.place.expect("in a pack").pack, a.file.place.expect("in a pack").pack);
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
    let [a, _] = [1, 2].map(|number| append(&packs, number, 20_000));
    drop(packs);
    let path = folder.files().remove(0);
    File::options().write(true).open(&path).and_then(|file| file.set_len(5 * BLOCK + 9_000)).expect("cut short");
    let packs = folder.open();
    assert_eq!(packs.list(), (vec![a], 0), "that is no damage");
    assert_eq!(folder.blocks(), 5);
    assert!(read(&packs, a).is_ok());
}

/// A page holds what looks like an entry, and its own is torn: nothing in it is taken for one.
#[test]
fn a_page_that_holds_labels_holds_no_entries() {
    let folder = Folder::new();
    let packs = folder.open();
    let mut body = vec![b'x'; 4096 - LABEL];
    let place = Place { pack: NonZeroU32::MIN, block: 1 };
    let forged = Label { length: 100, hash: hash(7), sequence: 7 }.encode(place, &Secret::of([3, 4]));
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
    let packs = folder.open();
    assert_eq!(packs.list(), (vec![], 1));
    assert_eq!(folder.files(), [] as [PathBuf; 0]);
    append(&packs, 1, 10);
    assert_eq!(folder.files(), [folder.0.path().join("00000002")], "a number is used once");
}

#[test]
fn an_entry_is_read_under_its_own_key_and_number_alone() {
    let folder = Folder::new();
    let packs = folder.open();
    let entry = append(&packs, 1, 10);
    let place = entry.file.place.expect("in a pack");
    for (key, sequence) in [(2, 1), (1, 2)] {
        let error = packs.read(place, hash(key), sequence, entry.file.bytes()).expect_err("another one's");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

#[test]
fn a_label_that_was_changed_or_stands_elsewhere_is_none() {
    let label = Label { length: 77, hash: hash(1), sequence: 9 };
    let place = Place { pack: NonZeroU32::MIN, block: 3 };
    let bytes = label.encode(place, &secret());
    assert_eq!(Label::parse(&bytes, place, &secret()), Some(label));
    for bit in 0..LABEL * 8 {
        let mut changed = bytes;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Label::parse(&changed, place, &secret()), None, "bit {bit}");
    }
    assert_eq!(Label::parse(&bytes[1..], place, &secret()), None);
    assert_eq!(Label::parse(&bytes, Place { block: 4, ..place }, &secret()), None);
    assert_eq!(Label::parse(&bytes, place, &Secret::of([1, 3])), None, "who does not know the secret makes none");
    let longer = Label { length: u32::MAX, ..label };
    assert_eq!(Label::parse(&longer.encode(place, &secret()), place, &secret()), None, "longer than an entry can be");
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
