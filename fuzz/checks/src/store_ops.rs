//! Lists of operations on the store, against a model that never forgets.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use store::{Content, Generation, Hardness, PurgeTarget, Purged, Record, Scope, Store, StoreOptions, Stored};

use crate::input::Reader;

const MEMORY: u64 = 256 << 10;
const KEYS: u8 = 12;
const OPERATIONS_MAX: usize = 200;

/// What the pipeline would keep; here the model's names for it.
#[derive(Debug, Clone)]
struct Page {
    variant: u8,
    serial: u64,
    heap: usize,
}

impl Record for Page {
    fn weight(&self) -> usize {
        self.heap
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.variant);
        out.extend_from_slice(&self.serial.to_le_bytes());
        out.extend_from_slice(&self.heap.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (variant, rest) = bytes.split_first()?;
        let (serial, heap) = rest.split_at_checked(8)?;
        let (serial, heap) = (serial.try_into().ok()?, heap.try_into().ok()?);
        Some(Self { variant: *variant, serial: u64::from_le_bytes(serial), heap: usize::from_le_bytes(heap) })
    }
}

struct Model {
    store: Store<Page, ()>,
    /// Every purge there was.
    purges: Vec<(Generation, PurgeTarget, Hardness)>,
    /// The serial that was inserted last for each key and variant.
    newest: BTreeMap<(u8, u8), u64>,
    /// Generations at which a fetch may have begun.
    begun: Vec<Generation>,
    serial: u64,
    /// The purge table is small, so it may purge more than was asked for.
    folds: bool,
}

/// The first byte chooses a small purge table or a large one, the rest are operations. What a purge covers is never taken for valid, whenever
/// its fetch ends; what is held was stored, is the newest of its kind, and is counted to the byte, within the memory allowed.
pub fn store_ops(data: &[u8]) {
    let mut input = Reader::new(data);
    let folds = input.below(2) == 1;
    let store = Store::new(StoreOptions {
        purge_targets_max: if folds { 2 } else { 1_000 },
        variants_max: 3,
        uncacheable_max: 16,
        object_max: 32 << 10,
        ..StoreOptions::with_memory(MEMORY)
    });
    let begun = vec![store.generation()];
    let mut model = Model { store, purges: Vec::new(), newest: BTreeMap::new(), begun, serial: 0, folds };
    for _ in 0..OPERATIONS_MAX {
        if input.is_empty() {
            break;
        }
        match input.below(9) {
            0..=2 => model.insert(&mut input),
            3 => model.remove(input.below(KEYS)),
            4 | 5 => model.purge(&mut input),
            6 => model.begun.push(model.store.generation()),
            7 => model.mark(&mut input),
            _ => model.reshape(input.below(KEYS), input.below(4)),
        }
        model.holds();
    }
}

/// Four query forms of each of three URLs.
fn url(key: u8) -> Box<[u8]> {
    [b"h/a".as_slice(), b"h/ab", b"i/"][usize::from(key % 3)].into()
}

fn tags(bits: u8) -> Box<[Box<str>]> {
    (0..3_u8).filter(|tag| bits & (1 << tag) != 0).map(|tag| tag.to_string().into()).collect()
}

impl Model {
    fn insert(&mut self, input: &mut Reader<'_>) {
        let (key, variant, bits) = (input.below(KEYS), input.below(4), input.byte());
        let (length, heap) = (usize::from(input.byte()) * 160, usize::from(input.below(4)) * 1_000);
        let begun = if bits & 8 == 0 { self.store.generation() } else { self.begun[usize::from(input.byte()) % self.begun.len()] };
        self.serial += 1;
        let scope = Scope { site: u16::from(bits >> 7), url: url(key), tags: tags(bits) };
        let stored = Stored::new(Page { variant, serial: self.serial, heap }, Bytes::from(vec![key; length]), begun, scope);
        let hash = self.store.hash(&[key]);
        let stored = self.store.insert(hash, &[key], stored, |held| held.variant == variant);
        let front = self.store.get(hash, &[key]).and_then(|resource| resource.variants().first().cloned());
        if front.is_some_and(|front| Arc::ptr_eq(&front, &stored)) {
            self.newest.insert((key, variant), self.serial);
            return;
        }
        // Not there for a reason: too long, evicted at once, or a purge covers it while what it would replace is newer.
        let before = self.newest.get(&(key, variant)).copied();
        match self.held(key, variant) {
            Some(held) => {
                assert_eq!(Some(held.record.serial), before);
                assert!(self.store.verdict(&stored) != Purged::No && self.store.verdict(&held) == Purged::No, "refused without need");
            }
            None => drop(self.newest.remove(&(key, variant))),
        }
    }

    fn remove(&mut self, key: u8) {
        let hash = self.store.hash(&[key]);
        self.store.remove(hash, &[key]);
        assert!(self.store.get(hash, &[key]).is_none());
        self.newest.retain(|(held, _), _| *held != key);
    }

    fn purge(&mut self, input: &mut Reader<'_>) {
        let (kind, which) = (input.byte(), input.byte());
        let site = u16::from(kind >> 7);
        let target = match kind % 8 {
            0..=2 => PurgeTarget::Url { site, url: url(which).into() },
            3 => PurgeTarget::Prefix { site, url: [b"h/".as_slice(), b"h/a", b"", b"x"][usize::from(which % 4)].to_vec() },
            4 | 5 => PurgeTarget::Tag { site, tag: (which % 4).to_string() },
            6 => PurgeTarget::Site(site),
            _ => PurgeTarget::All,
        };
        let hardness = if kind & 0x40 == 0 { Hardness::Soft } else { Hardness::Hard };
        let before = self.store.generation();
        let receipt = self.store.purge(&target, hardness);
        assert!(receipt.generation > before && receipt.generation == self.store.generation());
        if let (PurgeTarget::Url { site, url }, Hardness::Hard) = (&target, hardness) {
            for stored in self.all() {
                let scope = stored.scope();
                // A variant that names another URL than the newest of its key is found by that one's name only.
                assert!(
                    scope.site != *site || *scope.url != **url || self.newest_names_another(&stored),
                    "a hard purge frees what it names"
                );
            }
        }
        self.purges.push((receipt.generation, target, hardness));
    }

    fn newest_names_another(&self, stored: &Arc<Stored<Page>>) -> bool {
        (0..KEYS).filter_map(|key| self.store.get(self.store.hash(&[key]), &[key])).any(|resource| {
            let variants = resource.variants();
            variants.iter().any(|held| Arc::ptr_eq(held, stored)) && variants[0].scope().site != stored.scope().site
        })
    }

    /// Takes a body out of memory, or puts it back. Nothing else about its response changes.
    fn reshape(&self, key: u8, variant: u8) {
        let Some(held) = self.held(key, variant) else { return };
        let length = held.body.len();
        let body = match held.body.memory() {
            Some(_) => Content::Packed { length },
            None => Bytes::from(vec![key; usize::try_from(length).expect("it was there")]).into(),
        };
        let Some(new) = self.store.replace_body(self.store.hash(&[key]), &[key], &held, body) else { return };
        assert_eq!((new.record.serial, new.body.len(), self.store.verdict(&new)), (held.record.serial, length, self.store.verdict(&held)));
        assert!(!self.store.holds(self.store.hash(&[key]), &[key], &held));
    }

    fn mark(&self, input: &mut Reader<'_>) {
        let (hash, until, now) = (self.store.hash(&[input.below(KEYS)]), u64::from(input.byte()), u64::from(input.byte()));
        self.store.mark_uncacheable(hash, until);
        assert_eq!(self.store.uncacheable(hash, now), now < until);
        self.store.unmark_uncacheable(hash);
        assert!(!self.store.uncacheable(hash, 0));
    }

    fn held(&self, key: u8, variant: u8) -> Option<Arc<Stored<Page>>> {
        let resource = self.store.get(self.store.hash(&[key]), &[key])?;
        resource.variants().iter().find(|stored| stored.record.variant == variant).cloned()
    }

    fn all(&self) -> Vec<Arc<Stored<Page>>> {
        let resources = (0..KEYS).filter_map(|key| self.store.get(self.store.hash(&[key]), &[key]));
        resources.flat_map(|resource| resource.variants().to_vec()).collect()
    }

    fn expected(&self, stored: &Stored<Page>) -> Purged {
        let covering = self.purges.iter().filter(|(at, target, _)| stored.begun() < *at && covers(target, stored.scope()));
        covering.map(|(_, _, hardness)| hardness).max().map_or(Purged::No, |hardness| match hardness {
            Hardness::Soft => Purged::Soft,
            Hardness::Hard => Purged::Hard,
        })
    }

    fn holds(&self) {
        let (mut bytes, mut resources) = (0, 0);
        for key in 0..KEYS {
            let Some(resource) = self.store.get(self.store.hash(&[key]), &[key]) else { continue };
            assert_eq!(resource.key(), [key]);
            bytes += resource.weight();
            resources += 1;
            let variants = resource.variants();
            assert!((1..=3).contains(&variants.len()));
            assert!(resource.weight() >= variants.iter().map(|stored| stored.weight()).sum::<u64>());
            for stored in variants {
                let in_memory = match &stored.body {
                    Content::Memory(body) => &body[..],
                    Content::Packed { .. } => &[],
                    Content::Disk(_) => panic!("there is no disk"),
                };
                assert!(stored.weight() >= (in_memory.len() + stored.record.heap) as u64);
                assert!([in_memory.first(), in_memory.last()].into_iter().flatten().all(|byte| *byte == key), "another key's body");
                assert_eq!(self.newest.get(&(key, stored.record.variant)), Some(&stored.record.serial), "not the newest of its variant");
                let (verdict, expected) = (self.store.verdict(stored), self.expected(stored));
                assert!(verdict == expected || (self.folds && verdict > expected), "{verdict:?} where {expected:?} is right");
            }
            assert!(variants.is_sorted_by_key(|stored| std::cmp::Reverse(stored.record.serial)), "newest first");
        }
        let usage = self.store.usage();
        assert_eq!((usage.bytes, usage.resources), (bytes, resources), "counted, and held");
        assert!(usage.bytes <= MEMORY);
        assert_eq!((usage.flights, usage.followers, usage.growing_bytes), (0, 0, 0));
    }
}

fn covers(target: &PurgeTarget, scope: &Scope) -> bool {
    match target {
        PurgeTarget::Url { site, url } => *site == scope.site && **url == *scope.url,
        PurgeTarget::Prefix { site, url } => *site == scope.site && scope.url.starts_with(url),
        PurgeTarget::Tag { site, tag } => *site == scope.site && scope.tags.iter().any(|own| **own == **tag),
        PurgeTarget::Site(site) => *site == scope.site,
        PurgeTarget::All => true,
    }
}
