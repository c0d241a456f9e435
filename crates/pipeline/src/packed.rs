//! Stored content that nobody reads as it is, is packed: it stays in memory in its coded forms alone, which take a fifth to a third of it.
//!
//! Nearly all clients take a coding, so the content itself (the identity, RFC 9110 §12.5.3) is dead weight for most pages. Every
//! [`LOOK_EVERY`], a thread of the workshop looks at what is stored. What had no reader as it is since the last look, and has its gzip form,
//! is packed; where that is still missing, as nobody has come who takes a coding, it is made first. That is the form it can be made of again: its checksum tells whether that has worked, and nothing is packed that was not found
//! to be the same. A hit of a form is what it was before. A hit of the identity notes that there was one, nearly always by looking alone.
//!
//! A packed response is unpacked for whoever needs its content: a client without `Accept-Encoding`, a range, a 304 that renews it. All who
//! want it at the same time share one unpacking, which makes way for others every [`STEP`] bytes. The first reader since the last look does
//! not bring it back into the store: a crawler that takes no coding would push out half the site. The second does.
//!
//! Content whose form cannot be decoded is a miss, and is removed.

use std::{
    collections::HashMap,
    fmt, io,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use codings::{Decoding, decode_gzip, is_gzip_of};
use parking_lot::Mutex;
use semantics::{Timestamp, coding::Coding};
use store::{Content, Unreadable};
use tokio::{sync::OnceCell, task::yield_now};

use crate::{Resource, Shared, Stored, body::storing::CopyBudget, question::HashedKey};

/// The time between two looks at what is stored. Content that nobody reads as it is, is packed after this time at the earliest, and after twice
/// as long at the latest.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The bytes that are unpacked before others have their turn, a tenth of a millisecond.
const STEP: usize = 64 << 10;
/// The bytes that are compared before the workshop does what else is urgent: some ten milliseconds.
const BATCH_BYTES: u64 = 4 << 20;
/// The ratio by which content is compared faster than it is coded.
const COMPARED_WHILE_CODED: u64 = 8;
/// The longest content that is compared with packed content on a worker's thread, half a millisecond.
const COMPARED_MAX: u64 = 256 << 10;
/// Unpacked content that is not in the store may take one part in this many of the memory tier's bytes; beyond that, it is stored for its first
/// reader.
const UNPACKED_SHARE: u64 = 16;
/// The most bytes of unpacked content that is not in the store, however large the memory tier is.
const UNPACKED_BYTES_MAX: u64 = 32 << 20;

/// The state of packing and unpacking.
pub struct Packing {
    /// The time at which the last look began.
    looked: Mutex<Timestamp>,
    /// The responses that are being unpacked, by their addresses, which live as long as their unpacking.
    unpacking: Mutex<HashMap<usize, Weak<Unpacking>>>,
    /// The room for unpacked content that is not in the store.
    room: Arc<CopyBudget>,
    packed: AtomicU64,
    unpacked: AtomicU64,
}

/// One unpacking, for all who wait for it. `None`: the content cannot be had.
struct Unpacking {
    /// Kept, so that no other response gets its address meanwhile.
    of: Arc<Stored>,
    content: OnceCell<Option<Bytes>>,
}

impl Packing {
    pub(crate) fn new(memory: u64, now: Timestamp) -> Self {
        Self {
            looked: Mutex::new(now),
            unpacking: Mutex::default(),
            room: Arc::new(CopyBudget::new((memory / UNPACKED_SHARE).min(UNPACKED_BYTES_MAX))),
            packed: AtomicU64::new(0),
            unpacked: AtomicU64::new(0),
        }
    }

    /// Returns how many responses were packed since the start.
    #[must_use]
    pub fn packed(&self) -> u64 {
        self.packed.load(Relaxed)
    }

    /// Returns how many times a packed response was unpacked since the start.
    #[must_use]
    pub fn unpacked(&self) -> u64 {
        self.unpacked.load(Relaxed)
    }

    /// Joins the unpacking of a response, or begins one.
    fn join(&self, stored: &Arc<Stored>) -> Arc<Unpacking> {
        let address = Arc::as_ptr(stored).addr();
        let mut open = self.unpacking.lock();
        if let Some(unpacking) = open.get(&address).and_then(Weak::upgrade) {
            return unpacking;
        }
        // There are never more than requests under way.
        open.retain(|_, unpacking| unpacking.strong_count() > 0);
        let unpacking = Arc::new(Unpacking { of: Arc::clone(stored), content: OnceCell::new() });
        open.insert(address, Arc::downgrade(&unpacking));
        unpacking
    }
}

/// Room that unpacked content takes until its readers have it.
struct Reservation {
    room: Arc<CopyBudget>,
    bytes: u64,
}

impl Reservation {
    fn take(room: &Arc<CopyBudget>, bytes: u64) -> Option<Self> {
        room.take(bytes).then(|| Self { room: Arc::clone(room), bytes })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.room.give_back(self.bytes);
    }
}

/// Unpacked content that is not in the store.
struct UnpackedContent {
    content: Vec<u8>,
    _reservation: Reservation,
}

impl AsRef<[u8]> for UnpackedContent {
    fn as_ref(&self) -> &[u8] {
        &self.content
    }
}

impl Shared {
    /// Looks at what is stored, if it is time for another look. Call it every second or so.
    pub fn pack_unread(self: &Arc<Self>) {
        let now = self.clock.now();
        let mut looked = self.packing.looked.lock();
        if now.since(*looked) >= LOOK_EVERY && self.look() {
            *looked = now;
        }
    }

    /// Looks in the background at what is stored, and packs what nobody has read unpacked since the last look. Returns `false` if those who would do it are
    /// busy.
    pub fn look(self: &Arc<Self>) -> bool {
        let shared = Arc::downgrade(self);
        let look = move || {
            if let Some(shared) = shared.upgrade() {
                let mut unread = Vec::new();
                for resource in shared.store.resources() {
                    look_at(&resource, &mut unread);
                }
                shared.pack_all(unread);
            }
        };
        self.workshop.submit_other(look).is_ok()
    }

    /// Packs these, some at a time, so that what else is urgent in the workshop comes in between. What finds no room there waits for the next
    /// look.
    fn pack_all(self: &Arc<Self>, mut unread: Vec<PackCandidate>) {
        let mut compared = 0;
        while compared < BATCH_BYTES {
            let Some(PackCandidate { of, variant }) = unread.pop() else { return };
            let Some(resource) = of.upgrade() else { continue };
            let key = HashedKey { hash: self.store.hash(resource.key()), key: resource.key() };
            // Somebody may have come meanwhile.
            if let Some(stored) = resource.variants().get(variant).filter(|stored| stored.forms().readers_beside() == 0) {
                compared += self.pack(key, stored).unwrap_or_default();
            }
        }
        let shared = Arc::downgrade(self);
        let rest = move || {
            if let Some(shared) = shared.upgrade() {
                shared.pack_all(unread);
            }
        };
        let _ = self.workshop.submit_other(rest);
    }

    /// Packs a response if its content can be made again. Returns the length of the content if that was tried.
    fn pack(&self, key: HashedKey<'_>, stored: &Arc<Stored>) -> Option<u64> {
        if lacks_its_form(stored) {
            return self.make_form_to_pack(key, stored);
        }
        let (content, gzip) = packable(stored)?;
        let length = content.len() as u64;
        // A form may have been brought along, and be that of something else.
        if is_gzip_of(gzip, content)
            && let Some(packed) = self.store.replace_body(key.hash, key.key, stored, Content::Packed { length })
        {
            self.dictionaries.moved(stored, &packed);
            self.packing.packed.fetch_add(1, Relaxed);
        }
        Some(length)
    }

    /// Makes the form that a response can be packed in by the next look. Returns how much content might have been compared in that time.
    fn make_form_to_pack(&self, key: HashedKey<'_>, stored: &Arc<Stored>) -> Option<u64> {
        let content = stored.body.memory().filter(|_| stored.forms().begin(Coding::Gzip as usize))?;
        if let Some(coded) = codings::encode(Coding::Gzip, content) {
            self.store.add_form(key.hash, key.key, stored, Coding::Gzip as usize, Bytes::from(coded));
        }
        self.workshop.has_encoded();
        Some(content.len() as u64 * COMPARED_WHILE_CODED)
    }

    /// Makes the content of a packed response, and stores it again unless it is for one reader alone. `None` if it cannot be made.
    async fn unpack(&self, key: HashedKey<'_>, packed: &Arc<Stored>) -> Option<Bytes> {
        let is_for_one = || packed.forms().readers_beside() < 2;
        let reservation = if is_for_one() { Reservation::take(&self.packing.room, packed.body.len()) } else { None };
        let content = unpacked(packed).await?;
        self.packing.unpacked.fetch_add(1, Relaxed);
        // Others may have come meanwhile.
        if let Some(reservation) = reservation.filter(|_| is_for_one()) {
            return Some(Bytes::from_owner(UnpackedContent { content, _reservation: reservation }));
        }
        let content = Bytes::from(content.into_boxed_slice());
        if let Some(stored) = self.store.replace_body(key.hash, key.key, packed, content.clone().into()) {
            self.dictionaries.moved(packed, &stored);
        }
        Some(content)
    }
}

/// Returns the content of a packed response for somebody who reads it as it is. Cancel-safe: another one who waits for it goes on.
///
/// # Errors
/// Fails if it cannot be made of its form. Then it is not stored any more.
pub(crate) async fn content(shared: &Shared, key: HashedKey<'_>, packed: &Arc<Stored>) -> Result<Bytes, Unreadable> {
    packed.forms().read_beside();
    let unpacking = shared.packing.join(packed);
    let content = unpacking.content.get_or_init(|| shared.unpack(key, &unpacking.of)).await;
    content.clone().ok_or_else(|| {
        shared.store.end(key.hash, key.key, packed.begun(), |record| std::ptr::eq(record, &packed.record));
        io::Error::from(io::ErrorKind::InvalidData).into()
    })
}

/// Returns the body of a stored response, unpacked, for another response with the same content. `None` if it cannot be made of its form.
pub(crate) async fn body(stored: &Stored) -> Option<Content> {
    match &stored.body {
        Content::Packed { .. } => Some(Bytes::from(unpacked(stored).await?.into_boxed_slice()).into()),
        body @ (Content::Memory(_) | Content::Disk(_)) => Some(body.clone()),
    }
}

/// Returns whether this is the content of a stored response. `None` if it would take too long to find out.
pub(crate) fn is_content_of(stored: &Stored, content: &[u8]) -> Option<bool> {
    match &stored.body {
        Content::Memory(held) => Some(**held == *content),
        Content::Packed { length } if *length != content.len() as u64 => Some(false),
        Content::Packed { length } if *length <= COMPARED_MAX => Some(gzip(stored).is_some_and(|gzip| is_gzip_of(gzip, content))),
        Content::Packed { .. } | Content::Disk(_) => None,
    }
}

/// Returns the content of a stored response, if it is in memory in whichever way. It may take long: do not call it on a worker's thread.
pub(crate) fn content_behind(stored: &Stored) -> Option<Bytes> {
    match &stored.body {
        Content::Memory(content) => Some(content.clone()),
        Content::Packed { length } => Some(decode_gzip(gzip(stored)?, usize::try_from(*length).ok()?)?.into()),
        Content::Disk(_) => None,
    }
}

/// Makes the content of a packed response of its form. `None` if the form is damaged.
async fn unpacked(packed: &Stored) -> Option<Vec<u8>> {
    let mut decoding = Decoding::of_gzip(gzip(packed)?, packed.body.len());
    let mut content = vec![0; usize::try_from(packed.body.len()).ok()?];
    for piece in content.chunks_mut(STEP) {
        decoding.fill(piece).ok()?;
        if decoding.left() > 0 {
            yield_now().await;
        }
    }
    Some(content)
}

fn gzip(stored: &Stored) -> Option<&Bytes> {
    stored.forms().get(Coding::Gzip as usize)
}

/// Returns the content of a response that can be packed, and the form that it can be made of again. While forms are being made, their makers
/// need the content.
fn packable(stored: &Stored) -> Option<(&Bytes, &Bytes)> {
    let is_settled = stored.record.codable && !stored.forms().are_under_way();
    Some((stored.body.memory().filter(|_| is_settled)?, gzip(stored)?))
}

/// Returns whether a response has no form yet that it could be packed in, and may have one.
fn lacks_its_form(stored: &Stored) -> bool {
    stored.record.codable && stored.body.memory().is_some() && stored.forms().not_begun() & 1 << Coding::Gzip as u8 != 0
}

/// A stored response that nobody has read as it is for long enough. It may have gone meanwhile.
struct PackCandidate {
    of: Weak<Resource>,
    variant: usize,
}

/// Looks at what is stored under a key: adds what may be packed, or get the form for that, as nobody has read it as it is since the last look.
fn look_at(resource: &Arc<Resource>, unread: &mut Vec<PackCandidate>) {
    for (variant, stored) in resource.variants().iter().enumerate() {
        if stored.forms().forget_readers_beside() == 0 && (packable(stored).is_some() || lacks_its_form(stored)) {
            unread.push(PackCandidate { of: Arc::downgrade(resource), variant });
        }
    }
}

impl fmt::Debug for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packing").field("packed", &self.packed()).field("unpacked", &self.unpacked()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use http::{HeaderMap, StatusCode};
    use policy::KeepTerms;
    use semantics::{cache_control::ResponseDirectives, freshness::Freshness, vary::Vary};
    use store::{Scope, StoreOptions};

    use super::*;
    use crate::{Clock, Record};

    const MEMORY: u64 = 64 << 20;

    fn shared() -> Arc<Shared> {
        Arc::new(Shared::new(StoreOptions::with_memory(MEMORY), Clock::Simulated(Arc::default())))
    }

    fn text(bytes: usize) -> Vec<u8> {
        (0..).flat_map(|n: usize| format!("<p>Paragraph {n} of {}.</p>\n", n * n % 97).into_bytes()).take(bytes).collect()
    }

    fn gzip_of(content: &[u8]) -> Bytes {
        codings::encode(Coding::Gzip, content).expect("text pays").into()
    }

    fn key<'a>(shared: &Shared, key: &'a str) -> HashedKey<'a> {
        HashedKey { hash: shared.store.hash(key.as_bytes()), key: key.as_bytes() }
    }

    /// Stores a page with its gzip form.
    fn put(shared: &Shared, name: &str, body: impl Into<Content>, gzip: Bytes) -> Arc<Stored> {
        let (headers, now) = (HeaderMap::new(), Timestamp::default());
        let freshness = Freshness::of(StatusCode::OK, &headers, &ResponseDirectives::of(&headers), now, now);
        let kept = KeepTerms { freshness, for_cookies: true, for_authorization: false, tags: Vec::new(), omitted: Vec::new() };
        let mut record = Record::new(StatusCode::OK, &headers, None, kept, Vary::Nominated(Vec::new()));
        record.codable = true;
        let stored = Stored::new(record, body.into(), shared.store.generation(), Scope::default());
        let HashedKey { hash, key } = key(shared, name);
        shared.store.insert(hash, key, stored.with_forms([(Coding::Gzip as usize, gzip)].into_iter().collect()), |_| true)
    }

    /// Stores a page, and packs it.
    fn packed(shared: &Shared, name: &str, content: &[u8]) -> Arc<Stored> {
        let stored = put(shared, name, Bytes::copy_from_slice(content), gzip_of(content));
        shared.pack(key(shared, name), &stored).expect("it can be packed");
        held(shared, name).expect("it is stored")
    }

    fn held(shared: &Shared, name: &str) -> Option<Arc<Stored>> {
        let HashedKey { hash, key } = key(shared, name);
        shared.store.get(hash, key).and_then(|resource| resource.variants().first().cloned())
    }

    #[tokio::test]
    async fn content_whose_form_is_damaged_is_a_miss() {
        let content = text(100_000);
        let gzip = gzip_of(&content);
        let mut flipped = gzip.to_vec();
        flipped[500] ^= 1;
        let other = {
            let mut other = content.clone();
            other.push(b'!');
            gzip_of(&other)
        };
        for damaged in [Bytes::from(flipped), gzip.slice(..gzip.len() - 1), gzip.slice(..40), other, Bytes::from_static(b"no gzip")] {
            let shared = shared();
            let stored = put(&shared, "a", Content::Packed { length: content.len() as u64 }, damaged);
            let others = packed(&shared, "b", &content);
            let outcomes = join_all((0..3).map(|_| super::content(&shared, key(&shared, "a"), &stored))).await;
            assert!(outcomes.iter().all(Result::is_err));
            assert!(held(&shared, "a").is_none() && body(&stored).await.is_none());
            assert_eq!((is_content_of(&stored, &content), content_behind(&stored)), (Some(false), None));
            assert!(held(&shared, "b").is_some_and(|held| Arc::ptr_eq(&held, &others)));
            assert_eq!(shared.packing.unpacked(), 0);
        }
    }

    #[tokio::test]
    async fn a_page_that_came_meanwhile_is_not_removed_with_a_damaged_one() {
        let (shared, content) = (shared(), text(1_000));
        let stored = put(&shared, "a", Content::Packed { length: 1_000 }, Bytes::from_static(b"no gzip"));
        put(&shared, "a", Bytes::from(content.clone()), gzip_of(&content));
        assert!(super::content(&shared, key(&shared, "a"), &stored).await.is_err());
        assert!(held(&shared, "a").is_some());
    }

    /// Longer than what is unpacked in one turn.
    #[tokio::test]
    async fn all_who_want_it_at_once_share_one_unpacking() {
        let (shared, content) = (shared(), text(10 * STEP + 77));
        let stored = packed(&shared, "a", &content);
        let weight = shared.store.usage().bytes;
        let readers = join_all((0..8).map(|_| super::content(&shared, key(&shared, "a"), &stored))).await;
        assert!(readers.iter().all(|read| read.as_ref().is_ok_and(|read| *read == content)));
        assert_eq!(shared.packing.unpacked(), 1);
        // So many want it at hand again; then it takes room in the store, and none beside it.
        assert_eq!(shared.store.usage().bytes, weight + content.len() as u64);
        assert_eq!(held(&shared, "a").and_then(|held| held.body.memory().cloned()), Some(Bytes::from(content)));
        assert!(shared.packing.room.take(MEMORY / UNPACKED_SHARE));
    }

    #[tokio::test]
    async fn a_reader_that_leaves_takes_no_other_along() {
        let (shared, content) = (shared(), text(4 * STEP));
        let stored = packed(&shared, "a", &content);
        let mut leaving = Box::pin(super::content(&shared, key(&shared, "a"), &stored));
        let mut staying = Box::pin(super::content(&shared, key(&shared, "a"), &stored));
        assert!(futures_util::poll!(&mut leaving).is_pending() && futures_util::poll!(&mut staying).is_pending());
        drop(leaving);
        assert_eq!(staying.await.expect("it can be unpacked"), content);
        let again = super::content(&shared, key(&shared, "a"), &stored);
        assert_eq!(again.await.expect("it can be unpacked"), content);
        assert_eq!(shared.packing.unpacking.lock().values().filter(|unpacking| unpacking.strong_count() > 0).count(), 0);
    }

    /// Each reader of another page holds the content until it has all of it. Beyond a bound, the store's own bound counts.
    #[tokio::test]
    async fn what_readers_hold_beside_the_store_is_bounded() {
        let (shared, content) = (shared(), text(1 << 20));
        let fit = (MEMORY / UNPACKED_SHARE / content.len() as u64) as usize;
        let names: Vec<String> = (0..fit + 2).map(|n| n.to_string()).collect();
        let mut holding = Vec::new();
        for (n, name) in names.iter().enumerate() {
            let stored = packed(&shared, name, &content);
            holding.push(super::content(&shared, key(&shared, name), &stored).await.expect("it can be unpacked"));
            let is_packed = held(&shared, name).is_some_and(|held| held.body.memory().is_none());
            assert_eq!(is_packed, n < fit, "page {n} of {fit} that fit");
        }
        assert!(holding.iter().all(|held| *held == content));
        drop(holding);
        assert!(shared.packing.room.take(MEMORY / UNPACKED_SHARE), "all is given back");
    }

    #[test]
    fn a_form_of_something_else_is_not_taken_for_the_content() {
        let (shared, content) = (shared(), text(5_000));
        let other: Vec<u8> = content.iter().map(|byte| byte.to_ascii_uppercase()).collect();
        let stored = put(&shared, "a", Bytes::from(content.clone()), gzip_of(&other));
        shared.pack(key(&shared, "a"), &stored);
        assert_eq!((shared.packing.packed(), held(&shared, "a").and_then(|held| held.body.memory().cloned())), (0, Some(content.into())));
    }

    #[test]
    fn the_same_content_is_known_in_either_shape() {
        let (shared, content) = (shared(), text(5_000));
        let other: Vec<u8> = content.iter().map(|byte| byte.to_ascii_uppercase()).collect();
        let plain = put(&shared, "a", Bytes::from(content.clone()), gzip_of(&content));
        let packed = packed(&shared, "b", &content);
        assert_eq!(packed.body.memory(), None);
        for stored in [&plain, &packed] {
            assert_eq!([&content[..], &other, &content[1..]].map(|it| is_content_of(stored, it)), [Some(true), Some(false), Some(false)]);
            assert_eq!(content_behind(stored).as_deref(), Some(&content[..]));
        }
        let long = text(1 + usize::try_from(COMPARED_MAX).expect("it fits"));
        let packed = self::packed(&shared, "c", &long);
        assert_eq!(is_content_of(&packed, &long), None, "that would hold up all others");
    }
}
