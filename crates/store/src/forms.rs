//! Forms of a stored body: other bytes that say the same, made later or brought along.
//!
//! They are not variants: one response, one purge, one validity, whatever its forms. They are the one thing about a stored response that may
//! come while it is shared, each once and never to change again; what it weighs grows with them, and the memory tier is told
//! ([`Store::add_form`](crate::Store::add_form)). What a form's number means is the caller's affair.

use std::{
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicU8, Ordering},
    },
};

use bytes::Bytes;

use crate::resource::{ALLOCATION, BYTES};

/// The most forms that a body may have beside itself.
pub const FORMS: usize = 3;

/// The most readers of a body beside its forms that are told apart: none, one, or more.
const READERS_COUNTED: u8 = 2;

/// The forms of one body, by their numbers, which are less than [`FORMS`].
pub struct Forms {
    /// The forms. They are in a box of their own: most stored bodies, such as pictures, never have any.
    made: OnceLock<Box<FormSlots>>,
    /// The forms that are there, one bit each.
    at_hand: AtomicU8,
    /// The forms that somebody has begun to make, whether or not they are there.
    begun: AtomicU8,
    /// The readers of the body itself: see [`read_beside`](Self::read_beside).
    readers: AtomicU8,
}

impl Default for Forms {
    /// Makes the forms of a body that has none yet. It counts as read: somebody wanted it, or it would not be here.
    fn default() -> Self {
        Self { made: OnceLock::new(), at_hand: AtomicU8::new(0), begun: AtomicU8::new(0), readers: AtomicU8::new(1) }
    }
}

type FormSlots = [OnceLock<Bytes>; FORMS];

impl Forms {
    /// Returns the set of the forms that are there, one bit for each number.
    #[must_use]
    pub fn at_hand(&self) -> u8 {
        self.at_hand.load(Ordering::Acquire)
    }

    /// Returns whether somebody is making a form, or has found that it is not worth it.
    #[must_use]
    pub fn are_under_way(&self) -> bool {
        self.begun.load(Ordering::Relaxed) != self.at_hand()
    }

    /// Returns the set of the forms that nobody has begun to make.
    #[must_use]
    pub fn not_begun(&self) -> u8 {
        !self.begun.load(Ordering::Relaxed) & ((1 << FORMS) - 1)
    }

    /// Returns a form, if it is there.
    #[must_use]
    pub fn get(&self, form: usize) -> Option<&Bytes> {
        self.made.get()?.get(form)?.get()
    }

    /// Notes that the caller makes this form now. Returns `false` if somebody has begun already.
    #[must_use]
    pub fn begin(&self, form: usize) -> bool {
        self.begun.fetch_or(1 << form, Ordering::Relaxed) & 1 << form == 0
    }

    /// Notes that the form will not be made after all: the next request for it may begin.
    pub fn withdraw(&self, form: usize) {
        self.begun.fetch_and(!(1 << form), Ordering::Relaxed);
    }

    /// Notes that somebody reads the body itself, and none of its forms. Nearly always that is noted already: then this only looks.
    ///
    /// Relaxed is enough: where an update is lost, a reader counts at the next reading.
    #[inline]
    pub fn read_beside(&self) {
        let readers = self.readers_beside();
        if readers < READERS_COUNTED {
            self.readers.store(readers + 1, Ordering::Relaxed);
        }
    }

    /// Returns how many have [read the body itself](Self::read_beside) since they were forgotten: none, one, or more.
    #[inline]
    #[must_use]
    pub fn readers_beside(&self) -> u8 {
        self.readers.load(Ordering::Relaxed)
    }

    /// Forgets who has read the body itself, and returns how many there were.
    pub fn forget_readers_beside(&self) -> u8 {
        let readers = self.readers_beside();
        if readers > 0 {
            self.readers.store(0, Ordering::Relaxed);
        }
        readers
    }

    /// Stores a form for good. Returns `false` if there is one already.
    pub(crate) fn set(&self, form: usize, bytes: Bytes) -> bool {
        let Some(place) = self.made.get_or_init(Box::default).get(form) else { return false };
        let set = place.set(bytes).is_ok();
        self.begun.fetch_or(1 << form, Ordering::Relaxed);
        self.at_hand.fetch_or(1 << form, Ordering::Release);
        set
    }

    /// Returns the forms that are there, for another response with the same body. Forms that are being made are made again: they are for
    /// the old response.
    #[must_use]
    pub fn share(&self) -> Self {
        let copy = Self::default();
        for form in 0..FORMS {
            if let Some(bytes) = self.get(form) {
                let _ = copy.set(form, bytes.clone());
            }
        }
        copy
    }

    /// Returns the bytes in memory, without the struct itself.
    pub(crate) fn weight(&self) -> u64 {
        let Some(made) = self.made.get() else { return 0 };
        PLACES + made.iter().filter_map(OnceLock::get).map(weight_of).sum::<u64>()
    }

    /// Returns how much more it would weigh with `form`.
    pub(crate) fn weight_with(&self, form: &Bytes) -> u64 {
        weight_of(form) + if self.made.get().is_none() { PLACES } else { 0 }
    }
}

const PLACES: u64 = (size_of::<FormSlots>() + ALLOCATION) as u64;

/// Returns the weight of a form: its bytes, and the memory that manages them.
fn weight_of(form: &Bytes) -> u64 {
    (form.len() + BYTES) as u64
}

impl FromIterator<(usize, Bytes)> for Forms {
    /// Collects forms that are ready; of two with the same number the first counts.
    fn from_iter<T: IntoIterator<Item = (usize, Bytes)>>(ready: T) -> Self {
        let forms = Self::default();
        for (form, bytes) in ready {
            let _ = forms.set(form, bytes);
        }
        forms
    }
}

impl fmt::Debug for Forms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = (0..FORMS).map(|form| self.get(form).map(Bytes::len));
        f.debug_list().entries(lengths).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_made_once() {
        let forms = Forms::default();
        assert_eq!((forms.at_hand(), forms.not_begun(), forms.get(1)), (0, 0b111, None));
        assert!(forms.begin(1) && !forms.begin(1));
        assert_eq!(forms.not_begun(), 0b101);
        forms.withdraw(1);
        assert!(forms.begin(1));
        assert!(forms.set(1, Bytes::from_static(b"a")) && !forms.set(1, Bytes::from_static(b"b")));
        assert_eq!((forms.at_hand(), forms.get(1)), (0b010, Some(&Bytes::from_static(b"a"))));
        assert!(!forms.set(FORMS, Bytes::new()));
        assert!(!forms.are_under_way() && forms.begin(0) && forms.are_under_way());
    }

    #[test]
    fn none_one_and_more_readers_of_the_body_are_told_apart() {
        let forms = Forms::default();
        assert_eq!((forms.forget_readers_beside(), forms.readers_beside()), (1, 0), "it is new");
        for readers in [1, 2, 2] {
            forms.read_beside();
            assert_eq!(forms.readers_beside(), readers);
        }
        assert_eq!((forms.forget_readers_beside(), forms.forget_readers_beside()), (2, 0));
    }

    #[test]
    fn what_is_ready_is_shared_and_what_is_under_way_is_not() {
        let forms: Forms = [(0, Bytes::from_static(b"a"))].into_iter().collect();
        assert!(forms.begin(2));
        let copy = forms.share();
        assert_eq!((copy.at_hand(), copy.not_begun()), (0b001, 0b110));
        assert_eq!(copy.weight(), forms.weight());
    }
}
