//! Values under keys that are not used twice.

/// A key of [`Slots`]: a place, and how often it was used before. A key of a value that is gone leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    place: u32,
    use_: u32,
}

impl Key {
    /// Returns the key as a number.
    pub(super) const fn number(self) -> u64 {
        (self.use_ as u64) << 32 | self.place as u64
    }

    /// Makes a key from a number.
    #[expect(clippy::cast_possible_truncation, reason = "the number is made of two halves")]
    pub(super) const fn of(number: u64) -> Self {
        Self { place: number as u32, use_: (number >> 32) as u32 }
    }
}

/// Values under keys.
#[derive(Debug)]
pub(super) struct Slots<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Returns the key that the next value gets.
    pub(super) fn next_key(&self) -> Key {
        let place = self.free.last().copied().unwrap_or_else(|| u32::try_from(self.places.len()).expect("values are far fewer than 2^32"));
        Key { place, use_: self.places.get(place as usize).map_or(0, |place| place.0) }
    }

    pub(super) fn insert(&mut self, value: T) -> Key {
        let key = self.next_key();
        match self.free.pop() {
            Some(place) => self.places[place as usize].1 = Some(value),
            None => self.places.push((0, Some(value))),
        }
        key
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        self.places.get(key.place as usize).filter(|place| place.0 == key.use_).and_then(|place| place.1.as_ref())
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.places.get_mut(key.place as usize).filter(|place| place.0 == key.use_).and_then(|place| place.1.as_mut())
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.place as usize).filter(|place| place.0 == key.use_)?;
        let value = place.1.take()?;
        place.0 = place.0.wrapping_add(1);
        self.free.push(key.place);
        Some(value)
    }

    /// Returns the key of a value that is as wanted.
    pub(super) fn find(&self, wanted: impl Fn(&T) -> bool) -> Option<Key> {
        let (place, (use_, _)) = self.places.iter().enumerate().find(|(_, place)| place.1.as_ref().is_some_and(&wanted))?;
        Some(Key { place: u32::try_from(place).expect("values are far fewer than 2^32"), use_: *use_ })
    }

    /// Returns the keys of all values.
    pub(super) fn keys(&self) -> Vec<Key> {
        let key = |(place, value): (u32, &(u32, Option<T>))| value.1.is_some().then_some(Key { place, use_: value.0 });
        (0..).zip(&self.places).filter_map(key).collect()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.1.as_ref())
    }

    pub(super) const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_value_that_is_gone_leads_nowhere_though_its_place_is_used_again() {
        let mut slots = Slots::new();
        let (first, second) = (slots.insert("first"), slots.insert("second"));
        assert_eq!(slots.remove(first), Some("first"));
        let expected = slots.next_key();
        let third = slots.insert("third");
        assert_eq!((third, third.place), (expected, first.place));
        assert_eq!(slots.remove(first), None);
        assert_eq!((slots.get(first), slots.get(second), slots.get(third)), (None, Some(&"second"), Some(&"third")));
        assert_eq!((slots.len(), Key::of(third.number())), (2, third));
    }
}
