//! Numbers for sites that outlive the process: keys, purges and files name a site by its number.
//!
//! A number belongs to a site as it was when the number was given: its name and a print of what it is made of. A site that comes back
//! with another source gets another number, so nothing stored for the old one is ever found for the new one; and no number is given
//! twice, so nothing comes back that was purged under another number in between. What lost its number is evicted in time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::folder::{read_small, sealed, unseal, write_small};

/// The name of the file with the numbers.
pub(super) const FILE: &str = "sites";

/// The error when all numbers are used.
#[derive(Debug, Error)]
#[error("more than 65,536 sites, or changes of sites, since the cache was made: empty its folder")]
pub struct NumbersSpent;

/// The numbers of sites, and the folder where they are stored, if any.
pub struct SiteNumbers {
    dir: Option<PathBuf>,
    sites: BTreeMap<String, Numbered>,
    next: u32,
    damaged: bool,
    /// The numbers that are given but not written down.
    unkept: BTreeSet<u16>,
}

/// The number of one site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteNumber {
    /// The number of the site.
    pub number: u16,
    /// Whether it was written down. If not, it may be another site's after a restart, and nothing may be stored on the disk under it.
    pub kept: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Numbered {
    number: u16,
    print: u64,
}

impl SiteNumbers {
    /// Creates numbers for this process alone.
    #[must_use]
    pub const fn in_memory() -> Self {
        Self { dir: None, sites: BTreeMap::new(), next: 0, damaged: false, unkept: BTreeSet::new() }
    }

    pub(super) fn open(dir: PathBuf) -> io::Result<Self> {
        let mut numbers = Self::in_memory();
        if let Some(bytes) = read_small(&dir.join(FILE))?
            && numbers.parse(&bytes).is_none()
        {
            numbers = Self { damaged: true, ..Self::in_memory() };
        }
        numbers.dir = Some(dir);
        Ok(numbers)
    }

    /// Returns whether there were numbers that can no longer be read. Responses stored under them may belong to any site.
    pub(super) const fn damaged(&self) -> bool {
        self.damaged
    }

    /// Writes the known numbers down.
    pub(super) fn write(&self) -> io::Result<()> {
        self.dir.as_ref().map_or(Ok(()), |dir| write_small(dir, FILE, self.text().as_bytes()))
    }

    /// Returns how many numbers were given so far. Nothing is stored under that number, or one above it.
    #[must_use]
    pub const fn given(&self) -> u32 {
        self.next
    }

    /// Returns the number of a site. `print` identifies what the site is made of: another print is another site. The number is written down
    /// before it is returned, if there is a folder for it.
    ///
    /// # Errors
    /// Fails when all numbers are used.
    pub fn number(&mut self, name: &str, print: &[u8]) -> Result<SiteNumber, NumbersSpent> {
        let print = u64::from(crc32fast::hash(print)) << 32 | u64::try_from(print.len()).unwrap_or(u64::MAX) & u64::from(u32::MAX);
        if let Some(held) = self.sites.get(name).filter(|held| held.print == print) {
            return Ok(SiteNumber { number: held.number, kept: !self.unkept.contains(&held.number) });
        }
        let number = u16::try_from(self.next).map_err(|_| NumbersSpent)?;
        self.next += 1;
        self.sites.insert(name.to_owned(), Numbered { number, print });
        self.unkept.insert(number);
        if self.dir.is_some() && self.write().is_ok() {
            self.unkept.clear();
        }
        Ok(SiteNumber { number, kept: self.unkept.is_empty() })
    }

    fn text(&self) -> String {
        let mut text = sealed(&format!("next {} of {}", self.next, self.sites.len()));
        for (name, Numbered { number, print }) in &self.sites {
            text.push_str(&sealed(&format!("{number} {print:016x} {}", name.escape_default())));
        }
        text
    }

    fn parse(&mut self, bytes: &[u8]) -> Option<()> {
        let mut lines = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split('\n').map(unseal);
        let (next, count) = lines.next()??.strip_prefix("next ")?.split_once(" of ")?;
        self.next = next.parse().ok()?;
        for line in lines {
            let mut parts = line?.splitn(3, ' ');
            let number = parts.next()?.parse().ok()?;
            let print = u64::from_str_radix(parts.next()?, 16).ok()?;
            self.sites.insert(parts.next()?.to_owned(), Numbered { number, print });
        }
        (self.sites.len() == count.parse::<usize>().ok()?).then_some(())
    }
}

impl fmt::Debug for SiteNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteNumbers").field("sites", &self.sites.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn open(dir: &tempfile::TempDir) -> SiteNumbers {
        fs::create_dir_all(dir.path().join("tmp")).expect("made");
        SiteNumbers::open(dir.path().to_owned()).expect("opened")
    }

    #[test]
    fn a_site_keeps_its_number_until_it_is_another() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut numbers = open(&dir);
        let number = |numbers: &mut SiteNumbers, name, print: &[u8]| numbers.number(name, print).expect("a number").number;
        assert_eq!(number(&mut numbers, "a.org", b"ghost"), 0);
        assert_eq!(number(&mut numbers, "b.org", b"ghost"), 1);
        let mut numbers = open(&dir);
        assert_eq!(number(&mut numbers, "b.org", b"ghost"), 1);
        assert_eq!(number(&mut numbers, "a.org", b"wordpress"), 2, "another source");
        let mut numbers = open(&dir);
        assert_eq!(number(&mut numbers, "a.org", b"ghost"), 3, "an old number never comes back");
        assert_eq!(number(&mut numbers, "a.org", b"ghost"), 3);
    }

    #[test]
    fn damaged_numbers_are_not_guessed() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["a.org", "b.org"] {
            open(&dir).number(name, b"").expect("a number");
        }
        let file = dir.path().join(FILE);
        let whole = fs::read(&file).expect("there");
        let mut flipped = whole.clone();
        flipped[10] ^= 1;
        let line = whole.iter().rposition(|byte| *byte == b'a').expect("a name");
        for bytes in [&flipped[..], &whole[..whole.len() - 1], &whole[..line], b"", b"\n"] {
            fs::write(&file, bytes).expect("written");
            let numbers = open(&dir);
            assert!(numbers.damaged() && numbers.sites.is_empty());
        }
        fs::write(&file, whole).expect("written");
        assert!(!open(&dir).damaged());
    }

    #[test]
    fn numbers_end() {
        let mut numbers = SiteNumbers::in_memory();
        numbers.next = 65_535;
        let last = SiteNumber { number: 65_535, kept: false };
        assert_eq!(numbers.number("last", b"").expect("a number"), last);
        assert!(numbers.number("one more", b"").is_err());
        assert_eq!(numbers.number("last", b"").expect("a number"), last);
    }

    #[test]
    fn a_number_that_could_not_be_written_is_not_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut numbers = open(&dir);
        assert!(numbers.number("a.org", b"").expect("a number").kept);
        fs::remove_dir(dir.path().join("tmp")).expect("removed");
        let number = numbers.number("b.org", b"").expect("a number");
        assert_eq!((number, numbers.number("b.org", b"").expect("a number")), (SiteNumber { number: 1, kept: false }, number));
        assert!(numbers.number("a.org", b"").expect("a number").kept);
        fs::create_dir(dir.path().join("tmp")).expect("made");
        assert!(numbers.number("c.org", b"").expect("a number").kept);
        assert!(numbers.number("b.org", b"").expect("a number").kept, "the next writing keeps it");
    }
}
