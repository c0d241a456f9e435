//! Forms of what is stored.

use super::*;
use crate::HotPages;

#[test]
fn a_form_is_weighed_and_goes_with_its_response() {
    let store = store(1 << 20);
    let stored = put(&store, "h/a", 1);
    let hash = store.hash(b"h/a");
    let before = store.usage().bytes;
    assert!(store.add_form(hash, b"h/a", &stored, 1, Body::from_static(b"shorter")));
    assert!(!store.add_form(hash, b"h/a", &stored, 1, Body::from_static(b"again")), "each once");
    let weight = store.usage().bytes - before;
    assert!((7..256).contains(&weight), "{weight}");
    assert!(store.add_form(hash, b"h/a", &stored, 0, Body::from_static(b"other")));
    assert_eq!(stored.forms().at_hand(), 0b011);
    assert_eq!(store.get(hash, b"h/a").expect("stored").weight(), store.usage().bytes);

    let newer = put(&store, "h/a", 1);
    assert_eq!((newer.forms().at_hand(), store.usage().bytes), (0, before));
    assert!(!store.holds(hash, b"h/a", &stored) && store.holds(hash, b"h/a", &newer));
    assert!(!store.add_form(hash, b"h/a", &stored, 2, Body::from_static(b"late")), "it is not stored any more");
    assert_eq!(store.usage().bytes, before);
}

#[test]
fn a_new_form_is_seen_by_whoever_keeps_the_page() {
    let (store, mut hot) = (store(1 << 20), HotPages::new(1 << 20));
    let stored = put(&store, "h/a", 1);
    let hash = store.hash(b"h/a");
    let mut page = || loop {
        if let Some(crate::HotOrStored::Hot(page)) = hot.get(&store, hash, b"h/a") {
            return page;
        }
    };
    let kept = page();
    assert!(kept.is_current(&store));
    assert!(store.add_form(hash, b"h/a", &stored, 0, Body::from_static(b"shorter")));
    assert!(!kept.is_current(&store));
    assert_eq!(page().resource().variants()[0].forms().get(0), Some(&Body::from_static(b"shorter")));
}

#[test]
fn a_form_that_would_be_too_much_is_left_out() {
    let store = store(1 << 20);
    let stored = put(&store, "h/a", 1);
    let (hash, before) = (store.hash(b"h/a"), store.usage());
    assert!(!store.add_form(hash, b"h/a", &stored, 0, Body::from(vec![0; 1 << 20])));
    assert_eq!((stored.forms().at_hand(), store.usage()), (0, before));
}

#[test]
fn variants_keep_their_forms_when_another_one_comes() {
    let store = store(1 << 20);
    let stored = put(&store, "h/a", 1);
    let hash = store.hash(b"h/a");
    assert!(store.add_form(hash, b"h/a", &stored, 0, Body::from_static(b"shorter")));
    put(&store, "h/a", 2);
    let resource = store.get(hash, b"h/a").expect("stored");
    let forms: Vec<_> = resource.variants().iter().map(|stored| stored.forms().at_hand()).collect();
    assert_eq!((forms, resource.weight()), (vec![0, 1], store.usage().bytes));
}

#[test]
fn a_body_that_is_there_in_its_forms_alone_frees_its_room() {
    let (store, mut hot) = (store(1 << 20), HotPages::new(1 << 20));
    let stored = put(&store, "h/a", 1);
    let other = put(&store, "h/a", 2);
    let hash = store.hash(b"h/a");
    assert!(store.add_form(hash, b"h/a", &stored, 0, Body::from_static(b"shorter")));
    let page = loop {
        if let Some(crate::HotOrStored::Hot(page)) = hot.get(&store, hash, b"h/a") {
            break page;
        }
    };
    let before = store.usage();
    let packed = store.replace_body(hash, b"h/a", &stored, Content::Packed { length: 100 }).expect("it is stored");
    assert_eq!((packed.body.memory(), packed.body.len(), packed.forms().readers_beside()), (None, 100, 0));
    assert_eq!(packed.forms().get(0), Some(&Body::from_static(b"shorter")));
    assert_eq!(store.usage(), Usage { bytes: before.bytes - 100, ..before });
    assert_eq!(store.get(hash, b"h/a").expect("stored").weight(), store.usage().bytes);
    assert!(!page.is_current(&store), "who keeps the page at hand sees it");
    assert_eq!(held(&store, "h/a"), [2, 1], "each in its place");
    assert!(store.holds(hash, b"h/a", &packed) && store.holds(hash, b"h/a", &other) && !store.holds(hash, b"h/a", &stored));
    assert!(store.replace_body(hash, b"h/a", &stored, Content::Packed { length: 100 }).is_none(), "it is not stored any more");
    let again = store.replace_body(hash, b"h/a", &packed, Body::from(vec![1; 100]).into()).expect("it is stored");
    assert_eq!((again.forms().at_hand(), again.forms().readers_beside(), store.usage()), (0b001, 1, before));
    store.remove(hash, b"h/a");
    assert_eq!((store.usage().bytes, store.urls.len()), (0, 0));
}

#[test]
fn a_purge_covers_a_response_in_whichever_shape() {
    let store = store(1 << 20);
    let (stored, hash) = (put(&store, "h/a", 1), store.hash(b"h/a"));
    assert_eq!(store.verdict(&stored), Purged::No);
    store.purge(&PurgeTarget::All, Hardness::Soft);
    assert_eq!(store.verdict(&stored), Purged::Soft);
    let packed = store.replace_body(hash, b"h/a", &stored, Content::Packed { length: 100 }).expect("it is stored");
    assert_eq!(store.verdict(&packed), Purged::Soft);
    store.purge(&PurgeTarget::Url { site: SITE, url: b"h/a"[..].into() }, Hardness::Hard);
    assert_eq!((held(&store, "h/a"), store.usage().bytes), (vec![], 0));
}

#[test]
fn a_body_that_would_be_too_much_is_not_taken_back() {
    let store = store(1 << 20);
    let (stored, hash) = (put(&store, "h/a", 1), store.hash(b"h/a"));
    let packed = store.replace_body(hash, b"h/a", &stored, Content::Packed { length: 100 }).expect("it is stored");
    let before = store.usage();
    assert!(store.replace_body(hash, b"h/a", &packed, Body::from(vec![0; 1 << 20]).into()).is_none());
    assert_eq!(store.usage(), before);
    assert!(store.holds(hash, b"h/a", &packed));
}
