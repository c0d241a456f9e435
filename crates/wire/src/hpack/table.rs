//! The dynamic table (RFC 7541 §2.3.2, §4), for both directions: entries in the order they came, the oldest ones evicted.

use std::collections::VecDeque;

use super::Field;

/// The size that an entry counts beyond its name and value (RFC 7541 §4.1).
pub(super) const OVERHEAD: usize = 32;

/// The largest size of a table here, whatever is asked for: lengths in it are 16 bits wide.
const SIZE_CEILING: usize = 32 * 1024;

/// The bytes that are allocated with the first entry.
const BYTES_AT_FIRST: usize = 1024;
const ENTRIES_AT_FIRST: usize = 24;

/// One dynamic table. It allocates memory as it fills: at most twice its size for the bytes, and 20 bytes for each 32 of its size.
#[derive(Debug)]
pub(super) struct Table {
    /// The names and values, oldest first, and before them those of evicted entries: they are removed once they are the larger part.
    bytes: Vec<u8>,
    /// The number of bytes that were ever removed before `bytes`, modulo 2^32.
    moved: u32,
    entries: VecDeque<Entry>,
    size: usize,
    size_max: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The place where its name begins in all bytes that ever were in the table, modulo 2^32.
    start: u32,
    name_len: u16,
    value_len: u16,
    index: Option<u8>,
}

impl Entry {
    const fn len(self) -> usize {
        self.name_len as usize + self.value_len as usize
    }
}

impl Table {
    pub(super) const fn new(size_max: usize) -> Self {
        let size_max = if size_max < SIZE_CEILING { size_max } else { SIZE_CEILING };
        Self { bytes: Vec::new(), moved: 0, entries: VecDeque::new(), size: 0, size_max }
    }

    /// Returns the number of entries.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) const fn size(&self) -> usize {
        self.size
    }

    pub(super) const fn size_max(&self) -> usize {
        self.size_max
    }

    /// Returns the entry of this age; 0 is the newest.
    #[inline]
    pub(super) fn get(&self, age: usize) -> Option<Field<'_>> {
        let entry = self.entries.get(self.entries.len().checked_sub(age + 1)?)?;
        let start = entry.start.wrapping_sub(self.moved) as usize;
        let (name, value) = self.bytes.get(start..start + entry.len())?.split_at(usize::from(entry.name_len));
        Some(Field { name, value, index: entry.index })
    }

    /// Sets the greatest size (RFC 7541 §4.3). More than 32 KiB counts as 32 KiB.
    pub(super) fn set_size_max(&mut self, size_max: usize) {
        self.size_max = size_max.min(SIZE_CEILING);
        self.evict_to(self.size_max);
    }

    /// Adds an entry in front of all others. One that is larger than the table empties it and is not added (RFC 7541 §4.4).
    pub(super) fn insert(&mut self, field: Field<'_>) {
        let Field { name, value, index } = field;
        let size = name.len() + value.len() + OVERHEAD;
        self.evict_to(self.size_max.saturating_sub(size));
        let (Ok(name_len), Ok(value_len), true) = (u16::try_from(name.len()), u16::try_from(value.len()), size <= self.size_max) else {
            return;
        };
        // Positions are modulo 2^32 by design.
        #[expect(clippy::cast_possible_truncation)]
        let start = self.moved.wrapping_add(self.bytes.len() as u32);
        if self.bytes.capacity() == 0 {
            // The requests of a browser need about this much, so it is reserved at once.
            self.bytes.reserve(BYTES_AT_FIRST.min(self.size_max));
            self.entries.reserve(ENTRIES_AT_FIRST);
        }
        self.entries.push_back(Entry { start, name_len, value_len, index });
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.size += size;
    }

    fn evict_to(&mut self, size: usize) {
        if self.size <= size {
            return;
        }
        while self.size > size
            && let Some(evicted) = self.entries.pop_front()
        {
            self.size -= evicted.len() + OVERHEAD;
        }
        let live = self.entries.front().map_or(self.bytes.len(), |oldest| oldest.start.wrapping_sub(self.moved) as usize);
        if live >= self.bytes.len() - live {
            // At least as many bytes are dropped as are moved, so that each is moved once at most.
            self.bytes.drain(..live);
            #[expect(clippy::cast_possible_truncation)]
            let dropped = live as u32;
            self.moved = self.moved.wrapping_add(dropped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn field<'a>(name: &'a [u8], value: &'a [u8]) -> Field<'a> {
        Field { name, value, index: None }
    }

    fn names(table: &Table) -> Vec<&[u8]> {
        (0..table.len()).map(|age| table.get(age).expect("an entry").name).collect()
    }

    #[test]
    fn the_oldest_entries_make_room() {
        let mut table = Table::new(100);
        table.insert(field(b"a", b"1"));
        table.insert(Field { index: Some(9), ..field(b"b", b"2") });
        assert_eq!(table.size(), 68);
        table.insert(field(b"c", b"3"));
        assert_eq!(names(&table), [b"c", b"b"]);
        assert_eq!(table.get(1), Some(Field { index: Some(9), ..field(b"b", b"2") }));
        assert_eq!(table.get(2), None);
        assert_eq!(table.get(usize::MAX - 1), None);
        table.set_size_max(67);
        assert_eq!(names(&table), [b"c"]);
        table.set_size_max(1_000);
        assert_eq!((table.len(), table.size()), (1, 34));
    }

    #[test]
    fn what_does_not_fit_empties_the_table() {
        let mut table = Table::new(100);
        table.insert(field(b"a", b"1"));
        table.insert(field(b"name", &[b'x'; 64]));
        assert_eq!((names(&table), table.size()), (vec![&b"name"[..]], 100));
        table.insert(field(b"name", &[b'x'; 65]));
        assert_eq!((table.len(), table.size()), (0, 0));
        table.insert(field(b"a", b"1"));
        assert_eq!(names(&table), [b"a"]);
    }

    /// The model is a list of owned entries.
    #[test]
    fn a_table_that_turns_over_many_times_holds_the_newest_entries_and_little_else() {
        let mut table = Table::new(500);
        let mut model: VecDeque<(Vec<u8>, Vec<u8>)> = VecDeque::new();
        for number in 0_usize..20_000 {
            let name = vec![b'n'; number % 7];
            let value = number.to_string().into_bytes().repeat(number % 13);
            table.insert(field(&name, &value));
            model.push_front((name, value));
            let size =
                |model: &VecDeque<(Vec<u8>, Vec<u8>)>| model.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>();
            while size(&model) > 500 {
                model.pop_back();
            }
            assert_eq!(table.size(), size(&model));
            assert_eq!(table.len(), model.len());
            for (age, (name, value)) in model.iter().enumerate() {
                assert_eq!(table.get(age), Some(field(name, value)));
            }
            assert!(table.bytes.capacity() <= 2_048, "{} bytes", table.bytes.capacity());
        }
    }
}
