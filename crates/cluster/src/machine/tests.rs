//! Rules of the machine that a random schedule meets rarely.

use policy::purge::{Maker, Sites, What};

use super::*;
use crate::{
    link::{Confirmation, Stranger},
    stream::Run,
};

const LEASE: Duration = Duration::from_secs(2);
const HOLD: Duration = Duration::from_secs(5);

/// One machine, and what its server has.
struct Table {
    machine: Machine,
    now: Instant,
    entries: u64,
    members: Vec<(String, Member)>,
    strangers: Vec<Stranger>,
}

fn id(number: u64) -> EntryId {
    EntryId { millis: number, sequence: 0 }
}

fn run() -> Run {
    Run("run/history".to_owned())
}

fn member(session: &str, beat: u64) -> Member {
    Member { session: session.to_owned(), beat, confirmed: None, lease_ms: 2000, hold_ms: 5000, version: "0.1.0".to_owned(), leased: true }
}

fn order(tag: &str) -> Order {
    Order::for_site("blog", vec![What::Tag(tag.to_owned())], false, Maker::Write)
}

impl Table {
    fn new() -> Self {
        let now = Instant::now();
        let settings = Settings {
            name: "a".to_owned(),
            session: "s".to_owned(),
            version: "0.1.0".to_owned(),
            lease: LEASE,
            doubt_hold: HOLD,
            position: None,
        };
        Self { machine: Machine::new(settings, now), now, entries: 1, members: Vec::new(), strangers: Vec::new() }
    }

    /// Returns a machine with a lease that has known the list of machines for longer than one.
    fn settled() -> Self {
        let mut table = Self::new();
        table.round(Vec::new());
        table.now += passed(LEASE);
        table.round(Vec::new());
        table
    }

    fn entry(&mut self, session: &str, number: u64, said: EntryContent) -> Entry {
        self.entries += 1;
        Entry { id: id(self.entries), made: Some(EntryMaker { session: session.to_owned(), number }), said }
    }

    fn round(&mut self, entries: Vec<Entry>) -> Vec<Act> {
        let own = self.machine.ask(self.now);
        let end = entries.last().cloned().unwrap_or_else(|| Entry { id: id(self.entries), made: None, said: EntryContent::Begun });
        let mut members: std::collections::BTreeMap<_, _> = self.members.iter().cloned().collect();
        members.insert("a/s".to_owned(), own);
        let round = Round {
            sent: self.now,
            run: run(),
            continuous: self.machine.position().is_some(),
            entries,
            end,
            members,
            strangers: self.strangers.clone(),
            born: "born".to_owned(),
            replicated: true,
        };
        self.machine.round(round, self.now)
    }

    fn append(&mut self, count: usize) -> Vec<Act> {
        let ids = (0..count).map(|_| {
            self.entries += 1;
            id(self.entries)
        });
        let appended = Appended {
            replied: self.now,
            run: run(),
            ids: ids.collect(),
            members: self.members.iter().cloned().collect(),
            strangers: self.strangers.clone(),
            born: "born".to_owned(),
            replicated: true,
        };
        self.machine.appended(&appended, self.now)
    }

    fn confirm(&mut self, field: &str, to: u64) -> Vec<Act> {
        let confirmed = Confirmed { run: run(), born: "born".to_owned(), id: id(to) };
        self.machine.woken(&Woken { entries: false, confirmations: vec![Confirmation { field: field.to_owned(), confirmed }] }, self.now)
    }
}

fn told(acts: &[Act]) -> Vec<Spread> {
    let told = acts.iter().filter_map(|act| if let Act::Tell(_, spread) = act { Some(spread.clone()) } else { None });
    told.collect()
}

fn applied(acts: &[Act]) -> Vec<Order> {
    acts.iter().filter_map(|act| if let Act::Apply(order) = act { Some(order.clone()) } else { None }).collect()
}

#[test]
fn an_order_that_was_appended_twice_is_carried_out_once_and_an_own_one_not_at_all() {
    let mut table = Table::settled();
    let purge = |tag| EntryContent::Purge(order(tag));
    let entries = vec![
        table.entry("other", 1, purge("one")),
        table.entry("other", 2, purge("two")),
        table.entry("other", 1, purge("one")),
        table.entry("s", 1, purge("own")),
        table.entry("third", 1, purge("three")),
    ];
    let acts = table.round(entries);
    assert_eq!(applied(&acts), [order("one"), order("two"), order("three")]);
    let again = vec![table.entry("other", 2, purge("two"))];
    assert_eq!(applied(&table.round(again)), []);
}

/// Whoever can write on the server can repeat what stood there, and purges nothing by it.
#[test]
fn an_old_entry_that_somebody_repeats_is_not_carried_out() {
    let mut table = Table::settled();
    let purge = |number: u64| EntryContent::Purge(order(&number.to_string()));
    for number in 1..=10_000 {
        let entries = vec![table.entry("other", number, purge(number))];
        assert_eq!(applied(&table.round(entries)).len(), 1);
    }
    let repeated =
        vec![table.entry("other", 1, purge(1)), table.entry("other", 9_000, purge(9_000)), table.entry("other", 10_001, purge(10_001))];
    assert_eq!(applied(&table.round(repeated)), [order("10001")]);
}

#[test]
fn an_entry_of_another_version_puts_everything_in_doubt_and_one_without_the_seal_is_left_out() {
    let mut table = Table::settled();
    let unreadable = |sealed| EntryContent::Unreadable { sealed, why: "version 2".to_owned() };
    let sealed = vec![table.entry("other", 1, unreadable(true))];
    let acts = table.round(sealed);
    assert!(matches!(acts[0], Act::Doubt(_)), "{acts:?}");
    assert!(acts.iter().any(|act| matches!(act, Act::Lease(_))), "it goes on: {acts:?}");
    let unsealed = vec![table.entry("other", 2, unreadable(false)), table.entry("other", 3, unreadable(false))];
    let acts = table.round(unsealed);
    assert!(!acts.iter().any(|act| matches!(act, Act::Doubt(_) | Act::Apply(_))), "{acts:?}");
    assert_eq!(acts.iter().filter(|act| matches!(act, Act::Warn(_))).count(), 1, "the log names it once a minute: {acts:?}");
    assert_eq!(table.machine.state(table.now).refused, 2);
}

#[test]
fn a_purge_waits_for_each_machine_and_no_confirmation_of_another_stream_counts() {
    let mut table = Table::settled();
    table.members = vec![("b/t".to_owned(), member("t", 1)), ("c/u".to_owned(), member("u", 1))];
    table.machine.purge(order("one"), table.now);
    assert_eq!(table.machine.batch(table.now).map(|batch| batch.len()), Some(1));
    assert_eq!(told(&table.append(1)), []);
    let last = table.entries;
    assert_eq!(told(&table.confirm("b/t", last)), []);
    assert_eq!(told(&table.confirm("c/u", last - 1)), []);
    let elsewhere = Confirmed { run: Run("another".to_owned()), born: "born".to_owned(), id: id(last + 7) };
    let woken = Woken { entries: false, confirmations: vec![Confirmation { field: "c/u".to_owned(), confirmed: elsewhere }] };
    assert_eq!(told(&table.machine.woken(&woken, table.now)), []);
    let spreads = told(&table.confirm("c/u", last));
    assert_eq!(spreads.len(), 1);
    assert!(spreads[0].everywhere && spreads[0].confirmed == ["a", "b", "c"], "{spreads:?}");
}

/// Whoever can write on the server can remove an entry before it is read. The machine goes on with its lease, and its lease has not passed.
#[test]
fn a_purge_does_not_hold_where_a_machine_goes_on_as_if_there_was_none() {
    // How often it is heard after the purge, and what becomes of it. Whoever is not heard any more has no lease any more.
    for (beats, everywhere) in [(0, true), (1, true), (4, true), (20, false)] {
        let mut table = Table::settled();
        table.members = vec![("b/t".to_owned(), member("t", 1))];
        table.machine.purge(Order::by_operator(What::Everything, true), table.now);
        table.machine.batch(table.now);
        assert_eq!(told(&table.append(1)), []);
        let mut spreads = Vec::new();
        for beat in 1..=15 {
            table.now += LEASE / 4;
            table.members[0].1 = member("t", 1 + beat.min(beats));
            spreads.extend(told(&table.round(Vec::new())));
        }
        assert_eq!(spreads.len(), 1, "{beats}");
        let spread = &spreads[0];
        let (missing, expired) = (spread.missing == ["b"], spread.expired == ["b"]);
        assert_eq!((spread.everywhere, missing, expired), (everywhere, !everywhere, everywhere), "{beats}: {spread:?}");
    }
}

#[test]
fn a_machine_with_another_secret_keeps_a_purge_from_holding_everywhere() {
    let mut table = Table::settled();
    table.strangers = vec![Stranger { name: "x/y".to_owned(), field: "m:x/y".into(), written: "?".into() }];
    table.machine.purge(order("one"), table.now);
    table.machine.batch(table.now);
    let spreads = told(&table.append(1));
    assert!(!spreads[0].everywhere && spreads[0].missing == ["x"] && spreads[0].why.is_some(), "{spreads:?}");
}

/// A container of yesterday is on the server's list, and nobody will ever hear of it again.
#[test]
fn a_machine_that_is_gone_for_good_is_taken_off_the_list() {
    let mut table = Table::settled();
    let (field, dead) = ("b/t".to_owned(), member("t", 7));
    let stranger = Stranger { name: "x/y".to_owned(), field: "m:x/y".into(), written: "?".into() };
    (table.members, table.strangers) = (vec![(field.clone(), dead.clone()), ("c/u".to_owned(), member("u", 1))], vec![stranger.clone()]);
    let removed = |acts: &[Act]| {
        let of = |act: &&Act| matches!(act, Act::Remove { .. } | Act::RemoveStranger(_));
        acts.iter().filter(of).cloned().collect::<Vec<_>>()
    };
    assert_eq!(removed(&table.round(Vec::new())), []);
    for beat in 2..=600 {
        table.now += Duration::from_secs(1);
        table.members[1].1 = member("u", beat);
        assert_eq!(removed(&table.round(Vec::new())), [], "{beat}");
    }
    table.now += Duration::from_secs(1);
    table.members[1].1 = member("u", 601);
    assert_eq!(removed(&table.round(Vec::new())), [Act::Remove { field, member: dead }, Act::RemoveStranger(stranger)]);
}

/// Must-show 8: 100,000 purges while the server is away.
#[test]
fn more_purges_than_are_kept_become_one_of_everything_for_each_site_and_each_maker_is_told() {
    let mut table = Table::settled();
    table.machine.failed("the server is away", table.now);
    let mut spreads = Vec::new();
    for number in 0..100_000 {
        let site = if number % 2 == 0 { "blog" } else { "shop" };
        let what = vec![What::Tag(format!("post-{number}"))];
        let by = if number % 10 == 0 { Maker::Operator } else { Maker::Write };
        let (_, acts) = table.machine.purge(Order::for_site(site, what, number == 7, by), table.now);
        spreads.extend(told(&acts));
    }
    assert!(table.machine.pending() <= 65_536, "{}", table.machine.pending());
    table.now += LEASE + PATIENCE;
    spreads.extend(told(&table.machine.time(table.now)));
    assert_eq!(spreads.len(), 100_000);
    assert!(spreads.iter().all(|spread| !spread.everywhere && spread.why.is_some()));

    table.round(Vec::new());
    let batch = table.machine.batch(table.now).expect("there are orders");
    let everything =
        |site: &str, hard| Order { sites: Sites::Named(site.to_owned()), what: vec![What::Everything], hard, by: Maker::Origin };
    let orders: Vec<_> = batch.iter().map(|unsent| unsent.order.clone()).take(2).collect();
    assert_eq!(orders, [everything("blog", false), everything("shop", true)], "hard if one of them was");
}

#[test]
fn an_order_that_is_too_long_for_an_entry_is_split_and_its_maker_hears_of_all_of_it() {
    let mut table = Table::settled();
    table.members = vec![("b/t".to_owned(), member("t", 1))];
    let what: Vec<_> = (0..1000).map(|number| What::Tag(format!("a-tag-of-some-length-{number:040}"))).collect();
    table.machine.purge(Order::for_site("blog", what.clone(), false, Maker::Write), table.now);
    let batch = table.machine.batch(table.now).expect("there are orders");
    assert!(batch.len() > 4);
    let mut parts = Vec::new();
    for unsent in &batch {
        assert!(serde_json::to_vec(&unsent.order).expect("JSON").len() <= 12 * 1024);
        parts.extend(unsent.order.what.clone());
    }
    let name = |what: &What| format!("{what:?}");
    parts.sort_by_key(name);
    let mut all = what;
    all.sort_by_key(name);
    assert_eq!(parts, all, "nothing is lost and nothing comes twice");
    table.append(batch.len());
    let last = table.entries;
    assert_eq!(told(&table.confirm("b/t", last - 1)), [], "the last part is missing");
    assert_eq!(told(&table.confirm("b/t", last)).len(), 1);
}

#[test]
fn what_is_not_replicated_gives_no_lease_and_is_appended_again() {
    let mut table = Table::settled();
    table.machine.purge(order("one"), table.now);
    let first = table.machine.batch(table.now).expect("an order");
    let appended = Appended {
        replied: table.now,
        run: run(),
        ids: vec![id(9)],
        members: std::collections::BTreeMap::new(),
        strangers: Vec::new(),
        born: "born".to_owned(),
        replicated: false,
    };
    assert_eq!(told(&table.machine.appended(&appended, table.now)), []);
    assert_eq!(table.machine.batch(table.now), None, "not at once");
    table.now += LEASE / 4;
    assert_eq!(table.machine.batch(table.now), Some(first), "the same number, so that twice is once");
}

#[test]
fn a_lease_ends_by_time_alone_and_is_counted_once() {
    let mut table = Table::settled();
    assert!(table.machine.is_leased(table.now));
    table.now += LEASE;
    assert!(!table.machine.is_leased(table.now));
    table.machine.time(table.now);
    table.machine.time(table.now + LEASE);
    let state = table.machine.state(table.now + LEASE);
    // It had lost one before it was settled.
    assert_eq!((state.leased, state.doubts, state.in_doubt_ms), (false, 2, 2000), "{state:?}");
    table.round(Vec::new());
    assert_eq!(table.machine.state(table.now).in_doubt_ms, 0);
}
