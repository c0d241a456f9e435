use policy::purge::{Address, What};
use semantics::Scheme;
use store::StoreOptions;

use super::*;
use crate::Clock;

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
            let counted = shared.purge_counted(&order).expect("an order");
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

/// An order that is refused does nothing, and is not counted.
#[test]
fn a_refused_order_changes_nothing() {
    for by in MAKERS {
        for what in whats() {
            let shared = shared();
            let before = shared.store.generation();
            let order = Order::for_site("shop", vec![what], false, by);
            assert_eq!(shared.purge(&order), Err(Unresolved::NoSuchSite("shop".to_owned())), "{order:?}");
            assert_eq!(shared.purge_counted(&order).map(|(receipt, _)| receipt), Err(Unresolved::NoSuchSite("shop".to_owned())), "{order:?}");
            assert_eq!((shared.store.generation(), shared.purged_at()), (before, Timestamp::default()), "{order:?}");
            assert!(shared.purging.by_maker().all(|(_, count)| count == 0), "{order:?}");
        }
    }
}
