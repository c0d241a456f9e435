//! A file that should be a picture: its head, its variants, and a copy of it without metadata.

use std::io::{Cursor, Read as _};

use pictures::{Facts, Format, check_clean, clean, variants};

/// The input is a file. Its variants are never larger than it says it is; a copy without metadata is shown as the file is, is the same however
/// it is read, and has nothing left to take out.
pub fn picture_file(data: &[u8]) {
    let facts = Facts::read(Cursor::new(data));
    if let Ok(facts) = &facts {
        assert!(facts.width > 0 && facts.height > 0 && (1..=8).contains(&facts.orientation), "{facts:?}");
        for variant in variants(facts) {
            assert!((1..=facts.width).contains(&variant.width) && (1..=facts.height).contains(&variant.height), "{facts:?} {variant:?}");
        }
    }
    let Ok(plan) = clean(Cursor::new(data)) else { return };
    let copy = plan.of(data).expect("it is the file that was planned for");
    assert_eq!(plan.bytes(), copy.len() as u64);
    assert!(!plan.is_whole(data.len() as u64) || copy == data);
    let mut read = Vec::new();
    plan.read(Cursor::new(data)).read_to_end(&mut read).expect("it is held in memory");
    assert!(read == copy, "read in pieces, it is another");
    assert_eq!(check_clean(Cursor::new(data)), Ok(()), "whether it can be cleaned is known from less of it");
    let Ok(facts) = facts.map(|facts| (facts.format, facts.width, facts.height, facts.orientation)) else { return };
    let again = clean(Cursor::new(&copy)).and_then(|plan| plan.of(&copy)).expect("a copy can be copied");
    assert!(again == copy, "there was something left to take out");
    // In an AVIF, what is overwritten may be what says where that is.
    if facts.0 == Format::Avif {
        return;
    }
    let of_copy = Facts::read(Cursor::new(&copy)).map(|facts| (facts.format, facts.width, facts.height, facts.orientation));
    assert_eq!(of_copy, Ok(facts), "the copy is shown otherwise");
}
