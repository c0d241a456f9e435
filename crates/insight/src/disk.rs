//! The form on disk: a version, and parts that each have a checksum. Numbers have seven bits a byte, the lowest first.
//!
//! What is damaged is not taken up in part: sums that do not fit together would mislead.

use crate::Unreadable;

/// The bytes with which a file begins.
const MAGIC: &[u8; 8] = b"SWSEEN\r\n";
/// The version of the form. Version 1 did not say how long the slowest responses took, and its lists had numbers in them that are hidden now.
const VERSION: u32 = 2;
const WITHOUT_SLOWEST: u32 = 1;

/// Says that the file cannot be read. The place of the fault does not matter: nothing of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl From<Broken> for Unreadable {
    fn from(_: Broken) -> Self {
        Self::Damaged
    }
}

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = u8::try_from(value & 0x7f).expect("seven bits");
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Appends a text.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Begins a file.
pub(crate) fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
}

/// Appends a part: its length, its checksum, its bytes.
pub(crate) fn put_part(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    write(out);
    let length = u32::try_from(out.len() - start - 8).expect("a part is bounded as memory is");
    let checksum = crc32fast::hash(&out[start + 8..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
}

/// Reads a file from its start.
///
/// # Errors
/// When it is not one of ours, or of another version.
pub(crate) fn open(bytes: &[u8]) -> Result<Reader<'_>, Unreadable> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(Unreadable::NotOurs)?;
    let (version, rest) = rest.split_first_chunk().ok_or(Unreadable::Damaged)?;
    match u32::from_le_bytes(*version) {
        version @ (VERSION | WITHOUT_SLOWEST) => Ok(Reader { version, ..Reader::new(rest) }),
        other => Err(Unreadable::Version(other)),
    }
}

/// Reads what was written.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    all: &'a [u8],
    at: usize,
    version: u32,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(all: &'a [u8]) -> Self {
        Self { all, at: 0, version: VERSION }
    }

    /// Tells whether the file is of a version that did not hide what is hidden now. Nothing of the lists in such a file is taken up.
    pub(crate) const fn has_unhidden_lists(&self) -> bool {
        self.version == WITHOUT_SLOWEST
    }

    /// Reads how long the slowest response took; zero: that is not known.
    pub(crate) fn slowest(&mut self) -> Result<u64, Broken> {
        if self.version == WITHOUT_SLOWEST { Ok(0) } else { self.number() }
    }

    pub(crate) const fn is_at_start(&self) -> bool {
        self.at == 0
    }

    pub(crate) const fn is_at_end(&self) -> bool {
        self.at == self.all.len()
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let bytes = self.all[self.at..].get(..length).ok_or(Broken)?;
        self.at += length;
        Ok(bytes)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Broken> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.all.get(self.at).ok_or(Broken)?;
            self.at += 1;
            let low = u64::from(byte & 0x7f);
            if low << shift >> shift != low {
                return Err(Broken);
            }
            value |= low << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Broken)
    }

    pub(crate) fn number_of<T: TryFrom<u64>>(&mut self) -> Result<T, Broken> {
        T::try_from(self.number()?).map_err(|_| Broken)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Broken> {
        let length = self.number_of()?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| Broken)
    }

    /// Reads a text that is not longer than this.
    pub(crate) fn text_within(&mut self, most: usize) -> Result<&'a str, Broken> {
        self.text().and_then(|text| if text.len() <= most { Ok(text) } else { Err(Broken) })
    }

    pub(crate) fn part(&mut self) -> Result<Self, Broken> {
        let mut word = || self.bytes(4).and_then(|bytes| bytes.first_chunk().copied().ok_or(Broken)).map(u32::from_le_bytes);
        let (length, checksum) = (word()?, word()?);
        let part = self.bytes(usize::try_from(length).map_err(|_| Broken)?)?;
        if crc32fast::hash(part) == checksum { Ok(Self { version: self.version, ..Reader::new(part) }) } else { Err(Broken) }
    }

    /// Leaves the rest unread.
    pub(crate) const fn leave(&mut self) {
        self.at = self.all.len();
    }

    /// Returns an error unless all was read.
    pub(crate) const fn end(&self) -> Result<(), Broken> {
        if self.is_at_end() { Ok(()) } else { Err(Broken) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(numbers in prop::collection::vec(any::<u64>(), 0..50), text in any::<String>()) {
            let mut out = Vec::new();
            put_text(&mut out, &text);
            numbers.iter().for_each(|number| put(&mut out, *number));
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.text(), Ok(&*text));
            for number in numbers {
                prop_assert_eq!(reader.number(), Ok(number));
            }
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn nothing_that_is_read_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(&bytes);
            while reader.number().is_ok() {}
            let _ = Reader::new(&bytes).text();
            let _ = Reader::new(&bytes).part();
        }
    }

    #[test]
    fn a_part_that_has_changed_is_not_read() {
        let mut out = Vec::new();
        put_part(&mut out, |out| put_text(out, "something"));
        assert!(Reader::new(&out).part().is_ok());
        for at in 0..out.len() {
            let mut damaged = out.clone();
            damaged[at] ^= 1;
            assert!(Reader::new(&damaged).part().is_err(), "byte {at}");
        }
        assert!(Reader::new(&out[..out.len() - 1]).part().is_err());
    }
}
