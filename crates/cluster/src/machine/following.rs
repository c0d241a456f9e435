//! Tests of a machine that follows the stream's past, because it judges by it what other machines have fetched.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use policy::purge::{Order, What};

use super::{Act, Machine, Settings};
use crate::{
    link::{Appended, Round},
    stream::{Entry, EntryContent, EntryId, EntryMaker, Position, Run},
};

const LEASE: Duration = Duration::from_secs(2);

fn machine(position: Option<Position>, now: Instant) -> Machine {
    let settings =
        Settings { name: "web1".to_owned(), session: "own".to_owned(), version: "1".to_owned(), lease: LEASE, doubt_hold: LEASE, position };
    Machine::new(settings, now).following()
}

fn order(number: u64) -> Order {
    Order::by_operator(What::Tag(number.to_string()), true)
}

fn id(number: u64) -> EntryId {
    EntryId { millis: number, sequence: 0 }
}

fn entry(session: &str, number: u64) -> Entry {
    let made = Some(EntryMaker { session: session.to_owned(), number });
    Entry { id: id(number), made, said: EntryContent::Purge(order(number)) }
}

fn position(session: &str, number: u64) -> Position {
    Position { run: Run("run".to_owned()), id: id(number), made: Some(EntryMaker { session: session.to_owned(), number }) }
}

fn round(continuous: bool, entries: Vec<Entry>, end: Entry, now: Instant) -> Round {
    Round {
        sent: now,
        run: Run("run".to_owned()),
        continuous,
        entries,
        end,
        members: BTreeMap::new(),
        strangers: Vec::new(),
        born: "born".to_owned(),
        replicated: true,
    }
}

/// Writes down which orders are carried out, which positions are reached, and whether there is a doubt or a lease.
fn done(acts: &[Act]) -> String {
    let word = |act: &Act| match act {
        Act::Apply(order) => Some(match &order.what[0] {
            What::Tag(tag) => format!("apply {tag}"),
            what => format!("{what:?}"),
        }),
        Act::Reached(position) => Some(format!("reached {}", position.id.millis)),
        Act::Doubt(_) => Some("doubt".to_owned()),
        Act::Lease(_) => Some("lease".to_owned()),
        _ => None,
    };
    acts.iter().filter_map(word).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_new_machine_begins_with_the_oldest_entry() {
    let now = Instant::now();
    let mut machine = machine(None, now);
    assert_eq!(machine.position(), None, "so the first entries are asked for");
    let acts = machine.round(round(false, vec![entry("a", 1), entry("b", 2)], entry("a", 3), now), now);
    assert_eq!(done(&acts), "doubt, apply 1, reached 1, apply 2, reached 2", "no lease before the end");
    assert_eq!((machine.position(), machine.round_at()), (Some(&position("b", 2)), now), "and the next round at once");
    let acts = machine.round(round(true, vec![entry("a", 3)], entry("a", 3), now), now);
    assert_eq!(done(&acts), "reached 2, apply 3, reached 3, lease");
}

#[test]
fn a_machine_that_goes_on_says_where_it_was() {
    let now = Instant::now();
    let mut machine = machine(Some(position("a", 7)), now);
    let acts = machine.round(round(true, vec![], entry("a", 7), now), now);
    assert_eq!(done(&acts), "reached 7, lease");
}

/// What was made here counts for the pages that others fetched before it: they are judged by generations of the store after the doubt.
#[test]
fn where_the_continuity_breaks_the_past_is_carried_out_once_more_with_what_was_made_here() {
    let now = Instant::now();
    let mut machine = machine(Some(position("a", 7)), now);
    machine.round(round(true, vec![entry("a", 8)], entry("a", 8), now), now);
    let acts = machine.round(round(false, vec![], entry("own", 9), now), now);
    assert_eq!((done(&acts).as_str(), machine.position()), ("doubt", None));
    let acts = machine.round(round(false, vec![entry("a", 8), entry("own", 9)], entry("own", 9), now), now);
    assert_eq!(done(&acts), "apply 8, reached 8, apply 9, reached 9, lease", "doubted once");
    // What is made later is carried out when it is made.
    let acts = machine.round(round(true, vec![entry("own", 10)], entry("own", 10), now), now);
    assert_eq!(done(&acts), "reached 9, reached 10, lease");
}

/// While another primary takes over, a purge may be appended at both. Whoever fetched a page for the new stream may not have read it in the old one.
#[test]
fn an_entry_that_was_read_in_another_stream_is_carried_out_again() {
    let now = Instant::now();
    let mut machine = machine(Some(position("a", 7)), now);
    machine.round(round(true, vec![entry("a", 8)], entry("a", 8), now), now);
    machine.round(round(false, vec![], entry("b", 9), now), now);
    machine.round(round(false, vec![entry("b", 9)], entry("b", 9), now), now);
    let again = Entry { id: id(10), ..entry("a", 8) };
    let acts = machine.round(round(true, vec![again.clone()], again.clone(), now), now);
    assert_eq!(done(&acts), "reached 9, apply 8, reached 10, lease");
    let twice = Entry { id: id(11), ..again };
    let acts = machine.round(round(true, vec![twice.clone()], twice, now), now);
    assert_eq!(done(&acts), "reached 10, reached 11, lease", "but once");
}

#[test]
fn what_was_made_here_is_read_when_it_has_come_back() {
    let now = Instant::now();
    let mut machine = machine(Some(position("a", 7)), now);
    assert!(machine.has_read_its_own(id(7)));
    machine.purge(order(1), now);
    assert!(!machine.has_read_its_own(id(7)));
    let unsent = machine.batch(now).expect("an order");
    assert_eq!(unsent.len(), 1);
    let appended = Appended {
        replied: now,
        run: Run("run".to_owned()),
        ids: vec![id(9)],
        members: BTreeMap::new(),
        strangers: Vec::new(),
        born: "born".to_owned(),
        replicated: true,
    };
    machine.appended(&appended, now);
    assert!(!machine.has_read_its_own(id(8)) && machine.has_read_its_own(id(9)));
    // A stream that has lost it will never show it.
    machine.round(round(false, vec![], entry("b", 3), now), now);
    assert!(machine.has_read_its_own(id(3)));
}
