//! The errors that readers of one site got, or would have got without a stored page.

use crate::{address::Address, amount::Lately, memory::of_text, names::Name, reasons::is_time_for_example};

/// Kinds of errors that each site has room for. Beyond, the rarest is forgotten.
pub(crate) const ERRORS_MAX: usize = 12;
/// Bytes of all examples of one site.
const EXAMPLE_BYTES_MAX: usize = 512;

/// The errors of one site.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    entries: Vec<Entry>,
    example_bytes: usize,
}

/// An error by its status and its failure, and how often it was seen.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) status: u16,
    pub(crate) failure: Name,
    pub(crate) requests: Lately<u64>,
    pub(crate) last: u64,
    pub(crate) example: Box<str>,
}

impl Errors {
    pub(crate) fn add(&mut self, (status, failure): (u16, Name), at: u64, address: &Address) {
        let found = self.entries.iter().position(|entry| (entry.status, entry.failure) == (status, failure));
        let place = found.unwrap_or_else(|| {
            if self.entries.len() == ERRORS_MAX {
                let rarest = self.entries.iter().enumerate().min_by_key(|(_, entry)| (entry.requests.total(), entry.last));
                let entry = self.entries.swap_remove(rarest.map_or(0, |(at, _)| at));
                self.example_bytes -= of_text(&entry.example);
            } else if self.entries.len() == self.entries.capacity() {
                self.entries.reserve_exact(2);
            }
            self.entries.push(Entry { status, failure, requests: Lately::default(), last: at, example: Box::default() });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[place];
        entry.requests.now += 1;
        entry.last = entry.last.max(at);
        let bytes = self.example_bytes - of_text(&entry.example) + of_text(&address.text);
        if is_time_for_example(entry.requests.total()) && address.is_whole && bytes <= EXAMPLE_BYTES_MAX {
            entry.example = address.text.as_str().into();
            self.example_bytes = bytes;
        }
    }

    pub(crate) fn turn(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.requests.turn());
        self.entries.retain(|entry| entry.requests.total() > 0);
        self.example_bytes = self.entries.iter().map(|entry| of_text(&entry.example)).sum();
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Takes an entry up that was left on disk.
    pub(crate) fn restore(&mut self, entry: Entry) {
        if self.entries.len() < ERRORS_MAX {
            self.example_bytes += of_text(&entry.example);
            self.entries.push(entry);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.example_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    #[test]
    fn errors_are_counted_by_status_and_failure_and_the_frequent_stay() {
        let (names, mut errors) = (Names::default(), Errors::default());
        let address = |n: u64| Address::of("https", "a.example", &format!("/{n}"));
        let refused = names.number("connection_refused");
        for n in 0..100 {
            errors.add((502, refused), n, &address(n));
            errors.add((500, Name::NONE), n, &address(n));
            // Any status that an origin invents.
            errors.add((501 + u16::try_from(n % 90).expect("few"), Name::NONE), n, &address(n));
        }
        assert!(errors.entries.len() <= ERRORS_MAX && errors.example_bytes <= EXAMPLE_BYTES_MAX);
        let of = |status, failure| errors.entries.iter().find(|entry| (entry.status, entry.failure) == (status, failure)).expect("counted");
        assert_eq!((of(502, refused).requests.total(), of(500, Name::NONE).requests.total()), (100, 100));
        assert_eq!((of(502, refused).last, &*of(502, refused).example), (99, "https://a.example/63"));
    }
}
