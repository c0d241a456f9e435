use std::time::Duration;

use admin_api::Spread;
use policy::purge::{Address, What};
use semantics::Scheme;
use store::StoreOptions;

use super::*;
use crate::{Acknowledgement, Clock, Machines};

const MAKERS: [Maker; 9] = [
    Maker::Operator,
    Maker::Plugin(Dialect::Fastly),
    Maker::Origin,
    Maker::Webhook,
    Maker::UnsafeMethod,
    Maker::Folder,
    Maker::Reload,
    Maker::Watch,
    Maker::Write,
];

fn whats() -> [What; 5] {
    let address = |target| Address::over(Scheme::Http, "blog.example", target);
    [
        What::Url(address("/a")),
        What::Prefix(address("/b/")),
        What::host("blog.example").expect("a host"),
        What::Tag("post-1".to_owned()),
        What::Everything,
    ]
}

/// One site that has every host.
fn shared() -> Shared {
    let shared = Shared::new(StoreOptions::with_memory(1 << 20), Clock::system());
    shared.purging.directory.store(Arc::new(Directory::of_one("blog", 7)));
    shared
}

/// Whoever orders a purge gets a receipt, and is counted.
#[test]
fn every_order_raises_the_generation_and_is_counted_by_its_maker() {
    for by in MAKERS {
        for (at, what) in whats().into_iter().enumerate() {
            let shared = shared();
            let before = shared.store.generation();
            let order = Order::for_site("blog", vec![what.clone()], true, by);
            let receipt = shared.purge(&order).expect("an order");
            // An address that a writer invalidates leaves nothing behind where no fetch is open.
            let noted = by != Maker::UnsafeMethod || !matches!(what, What::Url(_));
            assert_eq!(receipt.generation > before, noted, "{order:?}");
            assert_eq!(shared.store.usage().purges > 0, noted, "{order:?}");
            assert_eq!(receipt.variants, (at == 0).then_some(0), "{order:?}");
            let (counted, _) = shared.purge_counted(&order).expect("an order");
            assert_eq!((counted.variants, counted.complete, &counted.covered), (Some(0), true, &receipt.covered), "{order:?}");
            for (name, count) in shared.purging.by_maker() {
                assert_eq!(count, if name == by.name() { 2 } else { 0 }, "{name}: {order:?}");
            }
            for (name, count) in shared.purging.by_dialect() {
                assert_eq!(count, if by.dialect().is_some_and(|dialect| dialect.name() == name) { 2 } else { 0 }, "{name}: {order:?}");
            }
            // Only a stranger's word announces no page.
            assert_eq!(shared.purged_at() == Timestamp::default(), by == Maker::UnsafeMethod, "{order:?}");
        }
    }
}

/// A list of purges is for the operator: what strangers can cause would push all else out of it.
#[test]
fn a_watcher_is_told_of_every_purge_but_those_that_strangers_can_cause() {
    for by in MAKERS {
        let shared = shared();
        let seen = Arc::new(Mutex::new(0));
        shared.purging.watch({
            let seen = Arc::clone(&seen);
            move |_| *seen.lock() += 1
        });
        for what in whats() {
            let order = Order::for_site("blog", vec![what], true, by);
            shared.purge(&order).expect("an order");
            shared.purge_counted(&order).expect("an order");
            shared.apply(&order).expect("an order");
        }
        assert_eq!(*seen.lock(), if by == Maker::UnsafeMethod { 0 } else { 3 * whats().len() }, "{by:?}");
    }
}

/// The other machines, which answer at once.
#[derive(Default)]
struct Others(Arc<Mutex<Vec<Order>>>);

impl Machines for Others {
    fn purged(&self, order: &Order) -> Acknowledgement {
        self.0.lock().push(order.clone());
        Box::pin(std::future::ready(Spread { everywhere: true, ..Spread::default() }))
    }
}

fn joined() -> (Shared, Arc<Mutex<Vec<Order>>>) {
    let (shared, others) = (shared(), Others::default());
    let told = Arc::clone(&others.0);
    shared.fence.join(Box::new(others), Duration::from_secs(5));
    (shared, told)
}

/// Each machine sees by itself what becomes of its folders, its configuration and its origins; of everything else one hears from the other.
#[test]
fn other_machines_are_told_what_they_do_not_see_by_themselves() {
    for by in MAKERS {
        let (shared, told) = joined();
        let order = Order::for_site("blog", whats().to_vec(), false, by);
        let spread = shared.purge_with_acknowledgement(&order).map(|(_, elsewhere)| elsewhere.wait()).expect("an order");
        let is_told = !matches!(by, Maker::Folder | Maker::Reload | Maker::Watch);
        assert_eq!(spread.map(|spread| spread.everywhere), is_told.then_some(true), "{by:?}");
        shared.purge(&order).expect("an order");
        drop(shared.purge_counted(&order).expect("an order"));
        assert_eq!(told.lock().len(), if is_told { 3 } else { 0 }, "{by:?}");
        assert!(told.lock().iter().all(|told| *told == order));
        assert!(shared.purge(&Order::for_site("shop", whats().to_vec(), false, by)).is_err());
        assert_eq!(told.lock().len(), if is_told { 3 } else { 0 }, "nothing was carried out: {by:?}");
    }
}

/// Somebody has to know when nobody answers.
#[test]
fn without_other_machines_there_is_nothing_to_wait_for() {
    let (_, elsewhere) = shared().purge_with_acknowledgement(&Order::by_operator(What::Everything, true)).expect("an order");
    assert_eq!(elsewhere.wait(), None);
}

/// It is carried out and counted as if it had been given here, and nobody is told again.
#[test]
fn an_order_of_another_machine_is_applied() {
    for by in MAKERS {
        for what in whats() {
            let (shared, told) = joined();
            let begun = shared.store.generation();
            let order = Order::for_site("blog", vec![what.clone()], true, by);
            assert_eq!(shared.apply(&order), Ok(()), "{order:?}");
            assert!(told.lock().is_empty(), "{order:?}");
            let noted = by != Maker::UnsafeMethod || !matches!(what, What::Url(_));
            assert_eq!(shared.store.generation() > begun, noted, "{order:?}");
            for (name, count) in shared.purging.by_maker() {
                assert_eq!(count, u64::from(name == by.name()), "{name}: {order:?}");
            }
        }
    }
}

/// What is not served here cannot be stored here. A site of an unknown name may be here under another one.
#[test]
fn an_order_of_another_machine_is_applied_as_far_as_it_means_something_here() {
    let url = || What::Url(Address::over(Scheme::Http, "blog.example", "/a"));
    let no_path = || What::Url(Address::over(Scheme::Http, "blog.example", "/a\u{0}b"));
    let no_such_site = || Err(Unresolved::NoSuchSite("shop".to_owned()));
    for (sites, what, expected, purges) in [
        (Sites::Named("blog".to_owned()), vec![no_path(), url()], Ok(()), 1),
        (Sites::All, vec![no_path()], Ok(()), 0),
        // The page is stored here under the host, whatever its site is called.
        (Sites::Named("shop".to_owned()), vec![url()], Ok(()), 1),
        (Sites::Named("shop".to_owned()), vec![What::Tag("post-1".to_owned())], no_such_site(), 0),
        (Sites::Named("shop".to_owned()), vec![What::Everything, url()], no_such_site(), 1),
        (Sites::All, vec![], Err(Unresolved::Nothing), 0),
    ] {
        let (shared, _) = joined();
        let order = Order { sites, what, hard: true, by: Maker::Operator };
        assert_eq!(shared.apply(&order), expected, "{order:?}");
        assert_eq!(shared.store.usage().purges > 0, purges > 0, "{order:?}");
    }
}

/// An order that is refused does nothing, and is not counted.
#[test]
fn a_refused_order_changes_nothing() {
    for by in MAKERS {
        for what in whats() {
            let shared = shared();
            let before = shared.store.generation();
            let order = Order::for_site("shop", vec![what], false, by);
            assert_eq!(shared.purge(&order), Err(Unresolved::NoSuchSite("shop".to_owned())), "{order:?}");
            assert_eq!(
                shared.purge_counted(&order).map(|(receipt, _)| receipt),
                Err(Unresolved::NoSuchSite("shop".to_owned())),
                "{order:?}"
            );
            assert_eq!((shared.store.generation(), shared.purged_at()), (before, Timestamp::default()), "{order:?}");
            assert!(shared.purging.by_maker().all(|(_, count)| count == 0), "{order:?}");
        }
    }
}
