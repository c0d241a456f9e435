use std::io::Write;

use proptest::prelude::*;

use super::*;

fn head(body: &[u8]) -> Head {
    Head {
        key: b"\0key".as_slice().into(),
        scope: Scope { site: 7, url: b"example.org/a".as_slice().into(), tags: ["post-1".into(), "".into(), "\u{e9}".into()].into() },
        begun: Generation(1 << 40),
        sequence: 99,
        record: b"status, fields".to_vec(),
        body_len: body.len() as u64,
        pieces: Pieces::of(body),
    }
}

fn whole(body: &[u8]) -> Vec<u8> {
    let mut file = body.to_vec();
    file.extend(head(body).tail().expect("a short head"));
    file
}

/// Returns the head and body that are read from a file of these bytes.
fn read(bytes: &[u8]) -> Option<(Head, Vec<u8>)> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    let head = Head::read(&file).expect("readable")?;
    let body = head.read_body(&file).expect("readable")?;
    Some((head, body))
}

#[test]
fn a_response_comes_back_as_it_was() {
    for length in [0, 1, 5_000, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
        let body: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).expect("small")).collect();
        assert_eq!(read(&whole(&body)), Some((head(&body), body)), "{length}");
    }
}

#[test]
fn a_body_in_chunks_has_the_checksums_of_the_whole() {
    let body: Vec<u8> = (0..2 * PIECE + 77).map(|at| u8::try_from(at % 253).expect("small")).collect();
    for chunk in [1_000, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, body.len()] {
        let mut pieces = Pieces::default();
        body.chunks(chunk).for_each(|chunk| pieces.push(chunk));
        assert_eq!(pieces.finish(), Pieces::of(&body), "{chunk}");
    }
    assert_eq!(Pieces::default().finish(), Pieces::of(b""));
}

#[test]
fn what_is_cut_anywhere_is_nothing() {
    let file = whole(b"the body");
    for length in 0..file.len() {
        assert_eq!(read(&file[..length]), None, "{length}");
    }
}

/// The lengths wrap, or would ask for more memory than there is, under a checksum that is right.
#[test]
fn a_length_is_not_believed() {
    let file = whole(b"the body");
    let footer = file.len() - FOOTER;
    for at in (12..28).step_by(4).chain([32, 36]) {
        for value in [u32::MAX, u32::MAX - 7, 1 << 31, 0x0100_0000] {
            let mut lie = file.clone();
            lie[footer + at..footer + at + 4].copy_from_slice(&value.to_le_bytes());
            let sum = crc32fast::hash(&lie[footer..footer + FOOTER - 4]);
            lie[footer + FOOTER - 4..].copy_from_slice(&sum.to_le_bytes());
            assert_eq!(read(&lie), None, "{at} {value}");
        }
    }
}

#[test]
fn a_head_that_would_not_be_believed_is_not_written() {
    let mut head = head(b"");
    head.record = vec![0; HEAD_MAX];
    assert_eq!(head.tail(), None);
}

/// The damage that may happen to a file.
#[derive(Debug, Clone)]
enum Damage {
    Flip(usize, u8),
    Overwrite(usize, Vec<u8>),
    Cut(usize),
    Append(Vec<u8>),
    Remove(usize, usize),
    Double,
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<usize>(), 0..8u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (any::<usize>(), prop::collection::vec(any::<u8>(), 1..80)).prop_map(|(at, bytes)| Damage::Overwrite(at, bytes)),
        any::<usize>().prop_map(Damage::Cut),
        prop::collection::vec(any::<u8>(), 0..100).prop_map(Damage::Append),
        (any::<usize>(), 1..100usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        Just(Damage::Double),
    ]
}

fn damaged(mut file: Vec<u8>, damage: Damage) -> Vec<u8> {
    let length = file.len().max(1);
    match damage {
        Damage::Flip(at, bit) => {
            if let Some(byte) = file.get_mut(at % length) {
                *byte ^= 1 << bit;
            }
        }
        Damage::Overwrite(at, bytes) => {
            for (byte, new) in file.iter_mut().skip(at % length).zip(bytes) {
                *byte = new;
            }
        }
        Damage::Cut(at) => file.truncate(at % length),
        Damage::Append(bytes) => file.extend(bytes),
        Damage::Remove(at, count) => {
            let at = (at % length).min(file.len());
            file.drain(at..(at + count).min(file.len()));
        }
        Damage::Double => file.extend(file.clone()),
    }
    file
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Whatever happens to a file, it yields what was stored, or nothing at all.
    #[test]
    fn a_damaged_file_never_lies(body in prop::collection::vec(any::<u8>(), 0..600), all in prop::collection::vec(damage(), 1..4)) {
        let file = all.into_iter().fold(whole(&body), damaged);
        if let Some(read) = read(&file) {
            prop_assert_eq!(read, (head(&body), body));
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert_eq!(read(&bytes), None);
    }
}
