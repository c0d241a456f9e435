//! The reasons why one site's origin was asked: exact, as rules are few.
//!
//! Only what a rule was about (which cookie) is without bound. Where there is no room for another, the cheapest of these are counted with their rule,
//! without the detail; only if there are more rules than room, the cheapest are counted as "(others)". The sums are always exact.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::{
    address::Address,
    amount::{Amount, Lately},
    memory::of_text,
    names::Name,
    text::shortened,
};

/// Reasons that each site has room for, whatever others do.
pub(crate) const RESERVED: usize = 10;
/// Reasons that sites may have beyond these, all together.
const SHARED: usize = 1_536;
/// Reasons of one site.
const SITE_MAX: usize = 512;
/// Bytes of the longest detail.
pub(crate) const DETAIL_BYTES_MAX: usize = 36;

/// The room that sites share.
#[derive(Debug, Default)]
pub(crate) struct Room(AtomicUsize);

impl Room {
    /// Takes the place of one more, if there is one.
    fn take(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |taken| (taken < SHARED).then_some(taken + 1)).is_ok()
    }

    /// Sets how many places a site has, which had `before`.
    fn settle(&self, before: usize, after: usize) {
        let beyond = |places: usize| places.saturating_sub(RESERVED);
        self.0.fetch_sub(beyond(before).saturating_sub(beyond(after)), Relaxed);
    }
}

/// The reasons of one site.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    entries: Vec<Entry>,
    example_bytes: usize,
}

/// A reason, and what it has cost.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) rule: Name,
    pub(crate) detail: Box<str>,
    pub(crate) cost: Lately<Amount>,
    pub(crate) example: Box<str>,
}

/// Returns whether it is time for a new example: at the first, the second, the fourth, the eighth time and so on.
pub(crate) const fn is_time_for_example(requests: u64) -> bool {
    requests.is_power_of_two()
}

impl Reasons {
    /// Counts a request. `examples_max` is the number of bytes that the examples of this site may take.
    pub(crate) fn add(&mut self, room: &Room, (rule, detail): (Name, &str), amount: Amount, address: &Address, examples_max: usize) {
        let detail = shortened(detail, DETAIL_BYTES_MAX);
        let at = self.find(rule, &detail).unwrap_or_else(|| self.insert(room, rule, &detail));
        let entry = &mut self.entries[at];
        entry.cost.add(amount);
        let is_due = entry.example.is_empty() || is_time_for_example(entry.cost.sum().requests);
        let bytes = self.example_bytes - of_text(&entry.example) + of_text(&address.text);
        // When there is no room, an example may still make place for a shorter one.
        if is_due && address.is_whole && (bytes <= examples_max || bytes < self.example_bytes) {
            entry.example = address.text.as_str().into();
            self.example_bytes = bytes;
        }
    }

    fn find(&self, rule: Name, detail: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.rule == rule && *entry.detail == *detail)
    }

    /// Makes an entry, and room for it if there is none. Returns its place.
    fn insert(&mut self, room: &Room, rule: Name, detail: &str) -> usize {
        let has_room = self.entries.len() < RESERVED || (self.entries.len() < SITE_MAX && room.take());
        if !has_room {
            let before = self.entries.len();
            self.make_room();
            room.settle(before, self.entries.len());
            // It may have been made when the details of its rule were left out.
            if let Some(at) = self.find(rule, detail) {
                return at;
            }
            // What was given back may have been taken by another site meanwhile; then this one is counted with its rule, or with the others.
            if self.entries.len() >= RESERVED && !room.take() {
                return self.plain(rule);
            }
        }
        self.push(rule, detail)
    }

    fn push(&mut self, rule: Name, detail: &str) -> usize {
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(8);
        }
        self.entries.push(Entry { rule, detail: detail.into(), cost: Lately::default(), example: Box::default() });
        self.entries.len() - 1
    }

    /// Finds an entry with which something can be counted that has no room of its own.
    fn plain(&mut self, rule: Name) -> usize {
        let found = self.find(rule, "").or_else(|| self.find(Name::OTHERS, ""));
        found.unwrap_or_else(|| {
            // The cheapest becomes the one for others. There is one, as each site has room of its own.
            let cheapest = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.cost.sum().weight()).map_or(0, |(at, _)| at);
            self.example_bytes -= of_text(&self.entries[cheapest].example);
            let entry = &mut self.entries[cheapest];
            (entry.rule, entry.detail, entry.example) = (Name::OTHERS, Box::default(), Box::default());
            cheapest
        })
    }

    /// Counts the cheapest quarter without their details, or, if there are none with details, among the others.
    fn make_room(&mut self) {
        self.entries.sort_by_key(|entry| (entry.detail.is_empty(), entry.cost.sum().weight()));
        let quarter = self.entries.len().div_ceil(4);
        let leaving = self.entries.iter().take(quarter).take_while(|entry| !entry.detail.is_empty()).count();
        let length = self.entries.len();
        self.merge(leaving, |rule| rule);
        if self.entries.len() + 1 > length.saturating_sub(quarter / 2).max(1) {
            self.entries.sort_by_key(|entry| (entry.rule == Name::OTHERS, entry.cost.sum().weight()));
            self.merge(quarter.max(2), |_| Name::OTHERS);
        }
    }

    /// Adds the first entries to those that have a rule alone.
    fn merge(&mut self, count: usize, into: impl Fn(Name) -> Name) {
        let leaving: Vec<Entry> = self.entries.drain(..count.min(self.entries.len())).collect();
        for entry in leaving {
            self.example_bytes -= of_text(&entry.example);
            let rule = into(entry.rule);
            let at = self.find(rule, "").unwrap_or_else(|| self.push(rule, ""));
            let cost = &mut self.entries[at].cost;
            cost.now = cost.now.plus(entry.cost.now);
            cost.before = cost.before.plus(entry.cost.before);
        }
    }

    pub(crate) fn turn(&mut self, room: &Room) {
        let before = self.entries.len();
        self.entries.iter_mut().for_each(|entry| entry.cost.turn());
        self.entries.retain(|entry| entry.cost.sum().requests > 0);
        self.entries.shrink_to_fit();
        self.example_bytes = self.entries.iter().map(|entry| of_text(&entry.example)).sum();
        room.settle(before, self.entries.len());
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Takes an entry up that was left on disk.
    pub(crate) fn restore(&mut self, room: &Room, entry: Entry) {
        let has_room = self.entries.len() < RESERVED || (self.entries.len() < SITE_MAX && room.take());
        if has_room && self.find(entry.rule, &entry.detail).is_none() {
            self.example_bytes += of_text(&entry.example);
            self.entries.push(entry);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let details: usize = self.entries.iter().map(|entry| of_text(&entry.detail)).sum();
        self.entries.capacity() * size_of::<Entry>() + details + self.example_bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::names::Names;

    fn address(n: u64) -> Address {
        Address::of("https", "a.example", &format!("/{n}"))
    }

    fn one(micros: u64) -> Amount {
        Amount { micros, requests: 1, bytes: 10 }
    }

    #[test]
    fn each_rule_and_what_it_was_about_is_counted_exactly() {
        let (names, room, mut reasons) = (Names::default(), Room::default(), Reasons::default());
        let (cookie, set) = (names.number("php-session"), names.number("set-cookie"));
        for n in 0..1_000 {
            reasons.add(&room, (cookie, "PHPSESSID"), one(10), &address(n), 10_000);
            reasons.add(&room, (set, ["PHPSESSID", "wfvt_*"][usize::from(n % 4 == 0)]), one(20), &address(n), 10_000);
        }
        let of = |rule, detail: &str| reasons.entries[reasons.find(rule, detail).expect("counted")].cost.sum();
        assert_eq!(of(cookie, "PHPSESSID"), Amount { micros: 10_000, requests: 1_000, bytes: 10_000 });
        assert_eq!((of(set, "PHPSESSID").requests, of(set, "wfvt_*").requests), (750, 250));
        assert_eq!(&*reasons.entries[0].example, "https://a.example/511", "the 512th was the last to become the example");
    }

    #[test]
    fn a_million_invented_cookies_leave_the_costly_reasons_and_all_sums_as_they_are() {
        let (names, room, mut reasons) = (Names::default(), Room::default(), Reasons::default());
        let (cookie, method) = (names.number("cookie"), names.number("method"));
        let mut sum = 0;
        for n in 0..200_000_u64 {
            reasons.add(&room, (cookie, &format!("invented{n}")), one(5), &address(n), 10_000);
            if n % 10 == 0 {
                reasons.add(&room, (cookie, "PHPSESSID"), one(50), &address(n), 10_000);
                reasons.add(&room, (method, ""), one(3), &address(n), 10_000);
                sum += 53;
            }
            sum += 5;
        }
        let of = |rule, detail: &str| reasons.entries[reasons.find(rule, detail).expect("counted")].cost.sum();
        assert_eq!((of(cookie, "PHPSESSID").requests, of(method, "").requests), (20_000, 20_000));
        assert_eq!(reasons.entries.iter().map(|entry| entry.cost.sum().micros).sum::<u64>(), sum);
        assert!(reasons.entries.len() <= SITE_MAX && reasons.example_bytes <= 10_000);
    }

    #[test]
    fn a_site_has_room_of_its_own_whatever_another_does() {
        let (names, room) = (Names::default(), Room::default());
        let rule = names.number("cookie");
        let mut greedy: Vec<Reasons> = (0..5).map(|_| Reasons::default()).collect();
        for reasons in &mut greedy {
            (0..2_000).for_each(|n| reasons.add(&room, (rule, &format!("invented{n}")), one(5), &address(n), 10_000));
        }
        assert!(greedy.iter().map(|reasons| reasons.entries.len()).sum::<usize>() <= SHARED + 5 * RESERVED);
        let mut modest = Reasons::default();
        for n in 0..RESERVED {
            modest.add(&room, (names.number(&format!("rule {n}")), ""), one(1), &address(1), 10_000);
        }
        assert_eq!(modest.entries.len(), RESERVED);
        greedy.iter_mut().for_each(|reasons| (0..2).for_each(|_| reasons.turn(&room)));
        assert_eq!(room.0.load(Relaxed), 0, "what is forgotten gives its room back");
    }

    proptest! {
        #[test]
        fn sums_are_exact_whatever_was_merged(asked in prop::collection::vec((0_u8..30, 0_u16..300, 1_u64..100), 0..3_000)) {
            let (names, room, mut reasons) = (Names::default(), Room(AtomicUsize::new(SHARED)), Reasons::default());
            let (mut sum, mut by_rule) = (0, HashMap::<u8, u64>::new());
            for (rule, detail, micros) in asked {
                let detail = if detail < 100 { String::new() } else { format!("d{detail}") };
                reasons.add(&room, (names.number(&format!("rule {rule}")), &detail), one(micros), &address(1), 1_000);
                sum += micros;
                *by_rule.entry(rule).or_default() += micros;
                prop_assert!(reasons.entries.len() <= RESERVED);
            }
            prop_assert_eq!(reasons.entries.iter().map(|entry| entry.cost.sum().micros).sum::<u64>(), sum);
            for (rule, micros) in by_rule {
                let number = names.number(&format!("rule {rule}"));
                let counted: u64 = reasons.entries.iter().filter(|entry| entry.rule == number).map(|entry| entry.cost.sum().micros).sum();
                prop_assert!(counted <= micros);
            }
        }
    }
}
