//! The static table (RFC 7541, appendix A), and which names are in it.

use super::Field;

/// The entries of the static table. Entry 1 comes first.
const ENTRIES: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// The number of entries: the dynamic table's indices follow.
pub(super) const LEN: usize = ENTRIES.len();

/// The index of `:status`.
pub(super) const STATUS: u8 = 8;

/// Returns the entry at an index.
#[inline]
pub(super) fn get(index: usize) -> Option<Field<'static>> {
    let (name, value) = ENTRIES.get(index.wrapping_sub(1))?;
    Some(Field { name, value, index: Some(FIRST[index & 63]) })
}

/// Returns the index of a name that is in lower case.
#[inline]
pub(super) fn index_of(name: &[u8]) -> Option<u8> {
    let index = candidate(name);
    let (entry, _) = ENTRIES.get(usize::from(index).wrapping_sub(1))?;
    (*entry == name).then_some(index)
}

/// Returns the index of a name that is in any case.
#[inline]
pub(super) fn index_of_any_case(name: &[u8]) -> Option<u8> {
    let index = candidate(name);
    let (entry, _) = ENTRIES.get(usize::from(index).wrapping_sub(1))?;
    entry.eq_ignore_ascii_case(name).then_some(index)
}

/// Returns the only index that this name can have; 0 if it has none.
#[inline]
fn candidate(name: &[u8]) -> u8 {
    if name.is_empty() { 0 } else { BY_NAME[slot(name)] }
}

/// Returns the slot of a name. Length, first and last byte tell all names apart. The factors were found by trial: with them, eight bits are
/// enough.
const fn slot(name: &[u8]) -> usize {
    (name.len() + (name[0] | 0x20) as usize * 10 + (name[name.len() - 1] | 0x20) as usize * 4) & 0xff
}

/// The first index of the name in each slot.
#[expect(clippy::cast_possible_truncation, reason = "there are 61 entries")]
const BY_NAME: [u8; 256] = {
    let mut slots = [0; 256];
    let mut index = 1;
    while index <= LEN {
        if FIRST[index] as usize == index {
            let slot = slot(ENTRIES[index - 1].0);
            assert!(slots[slot] == 0, "two names in one slot");
            slots[slot] = index as u8;
        }
        index += 1;
    }
    slots
};

/// The first index with the same name, for each index; equal names follow each other.
#[expect(clippy::cast_possible_truncation, reason = "there are 61 entries")]
const FIRST: [u8; 64] = {
    let mut first = [0; 64];
    let mut index = 1;
    while index <= LEN {
        first[index] = if index > 1 && same(ENTRIES[index - 1].0, ENTRIES[index - 2].0) { first[index - 1] } else { index as u8 };
        index += 1;
    }
    first
};

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_the_index_of_its_first_entry() {
        for index in 1..=LEN {
            let Field { name, index: first, .. } = get(index).expect("an entry");
            let expected = ENTRIES.iter().position(|(other, _)| *other == name).expect("it is there") + 1;
            assert_eq!(first.map(usize::from), Some(expected));
            assert_eq!(index_of(name), first);
            assert_eq!(index_of_any_case(&name.to_ascii_uppercase()), first);
            assert_eq!(index_of(&[name, b"x"].concat()), None);
        }
        for name in [&b""[..], b"Host", b"x-cache", b"hest", b":"] {
            assert_eq!(index_of(name), None);
        }
        assert_eq!(index_of(b":status"), Some(STATUS));
        assert_eq!((get(0), get(62), get(usize::MAX)), (None, None, None));
    }
}
