//! The things that are stored: a resource is the set of variants under one cache key, newest first; a variant is one stored response.
//!
//! Both are immutable once shared, but for the [forms](crate::Forms) of a body, which come once. A change makes a new resource that shares
//! the untouched variants, so a hit reads without a lock and is never surprised. What a resource weighs is computed once, when it is made:
//! the memory tier must see the same number at entry and exit.

use std::fmt;
use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::content::Content;
use crate::disk::mark::Mark;
use crate::forms::Forms;
use crate::hash::KeyHash;
use crate::purge::{Generation, Purged};

/// The data that the pipeline keeps beside the body: status, fields, deadlines. The store does not look into it.
pub trait Record: Send + Sync + 'static {
    /// Returns the bytes on the heap that this record owns. The store counts the record's own size. Called once, when the response is
    /// stored.
    fn weight(&self) -> usize;

    /// Appends bytes from which [`decode`](Self::decode) makes the same record: for the disk tier, on a thread of its own.
    fn encode(&self, out: &mut Vec<u8>);

    /// Returns the record of these bytes. `None` if this version did not write them: they may come from another version, or be anything at
    /// all.
    fn decode(bytes: &[u8]) -> Option<Self>
    where
        Self: Sized;
}

/// The data by which purges cover a stored response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// The site.
    pub site: u16,
    /// Host and path without the query, which URL and prefix purges name. They must be spelled as the purges spell them.
    pub url: Box<[u8]>,
    /// The tags, each once.
    pub tags: Box<[Box<str>]>,
}

/// One stored response.
pub struct Stored<R> {
    /// The record of the pipeline.
    pub record: R,
    /// The whole body.
    pub body: Content,
    forms: Forms,
    begun: Generation,
    scope: Scope,
    /// The last verdict and the generation of it, in one word: see [`Verdict`].
    verdict: AtomicU64,
    weight: u64,
    /// The place on the disk: see [`mark`](Self::mark).
    mark: Mark,
}

impl<R: Record> Stored<R> {
    /// Creates a response whose fetch began at generation `begun`. A validation (304) that freshens an older response counts as its own
    /// fetch: the origin has just confirmed it.
    pub fn new(record: R, body: impl Into<Content>, begun: Generation, scope: Scope) -> Self {
        let body = body.into();
        let tags: usize = scope.tags.iter().map(|tag| size_of::<Box<str>>() + tag.len() + ALLOCATION).sum();
        let bytes = size_of::<Self>() + ARC + record.weight() + body.weight() + BYTES + scope.url.len() + ALLOCATION + tags;
        let verdict = AtomicU64::new(Verdict { at: begun, purged: Purged::No }.pack());
        Self { record, body, forms: Forms::default(), begun, scope, verdict, weight: bytes as u64, mark: Mark::default() }
    }

    /// Returns this response with forms of its body that are ready.
    #[must_use]
    pub fn with_forms(self, forms: Forms) -> Self {
        Self { forms, ..self }
    }

    /// Creates a response that was read from the file of this number.
    pub(crate) fn restored(record: R, body: Content, begun: Generation, scope: Scope, sequence: u64) -> Self {
        let stored = Self::new(record, body, begun, scope);
        stored.mark().set_written(sequence);
        stored
    }

    /// Returns this response marked as never to be written to the disk, because its origin is as near as the disk is.
    #[must_use]
    pub fn in_memory_only(self) -> Self {
        self.mark().keep_off();
        self
    }
}

impl<R: Clone> Stored<R> {
    /// Returns this response with another body of the same content. `None` if its body is a file, or its file is being written. Call it with the
    /// key's writer lock held.
    pub(crate) fn with_body(&self, body: Content) -> Option<Self> {
        if matches!(self.body, Content::Disk(_)) {
            return None;
        }
        let mark = self.mark.settled()?;
        let weight = self.weight - self.body.weight() as u64 + body.weight() as u64;
        let verdict = AtomicU64::new(self.verdict.load(Ordering::Relaxed));
        let (record, forms, scope) = (self.record.clone(), self.forms.share(), self.scope.clone());
        if body.memory().is_none() {
            let _ = forms.forget_readers_beside();
        }
        Some(Self { record, body, forms, begun: self.begun, scope, verdict, weight, mark })
    }
}

impl<R> Stored<R> {
    /// Returns the response's place on the disk. A body in a file has a mark of its own, because a response that a 304 freshened shares it
    /// with the stale one.
    pub(crate) fn mark(&self) -> &Mark {
        match &self.body {
            Content::Memory(_) | Content::Packed { .. } => &self.mark,
            Content::Disk(body) => body.mark(),
        }
    }

    /// Returns the generation at which its fetch began.
    pub const fn begun(&self) -> Generation {
        self.begun
    }

    /// Returns the scope by which purges cover the response.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the other forms of its body.
    pub const fn forms(&self) -> &Forms {
        &self.forms
    }

    /// Returns the current weight in bytes, forms and overhead included.
    pub fn weight(&self) -> u64 {
        self.weight + self.forms.weight()
    }

    /// Returns the verdict, if it was reached at generation `now`.
    ///
    /// Relaxed is enough: the word carries its own generation, and a lost update only costs a second search.
    pub(crate) fn verdict_at(&self, now: Generation) -> Option<Purged> {
        let last = Verdict::unpack(self.verdict.load(Ordering::Relaxed));
        (last.at == now).then_some(last.purged)
    }

    pub(crate) fn remember(&self, at: Generation, purged: Purged) {
        self.verdict.store(Verdict { at, purged }.pack(), Ordering::Relaxed);
    }
}

impl<R> fmt::Debug for Stored<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("body", &self.body.len())
            .field("begun", &self.begun)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// A verdict and the generation at which it holds, as one word: two words could be read half old, half new.
struct Verdict {
    at: Generation,
    purged: Purged,
}

impl Verdict {
    const fn pack(self) -> u64 {
        let code = match self.purged {
            Purged::No => 0,
            Purged::Soft => 1,
            Purged::Hard => 2,
            Purged::Doubted => 3,
        };
        self.at.0 << 2 | code
    }

    const fn unpack(word: u64) -> Self {
        let purged = match word & 3 {
            0 => Purged::No,
            1 => Purged::Soft,
            2 => Purged::Hard,
            _ => Purged::Doubted,
        };
        Self { at: Generation(word >> 2), purged }
    }
}

/// Every variant stored under one cache key.
pub struct Resource<R> {
    pub(crate) key: Arc<[u8]>,
    /// The hash of the URL of its newest variant, for [`index`](crate::index).
    pub(crate) url: KeyHash,
    variants: Box<[Arc<Stored<R>>]>,
    weight: u64,
}

impl<R> Resource<R> {
    pub(crate) fn new(key: Arc<[u8]>, url: KeyHash, variants: Box<[Arc<Stored<R>>]>) -> Self {
        let weight = Self::frame(key.len(), variants.len()) + variants.iter().map(|stored| stored.weight()).sum::<u64>();
        Self { key, url, variants, weight }
    }

    /// Returns the weight of a resource without its variants.
    pub(crate) const fn frame(key: usize, variants: usize) -> u64 {
        let frame = size_of::<Self>() + ARC + key + ARC + variants * size_of::<Arc<Stored<R>>>() + ALLOCATION;
        (frame + PLACE + INDEXED) as u64
    }

    /// Returns the variants, newest first. Never empty.
    pub fn variants(&self) -> &[Arc<Stored<R>>] {
        &self.variants
    }

    /// Returns the cache key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the weight in bytes: key, variants and overhead.
    pub const fn weight(&self) -> u64 {
        self.weight
    }
}

impl<R> fmt::Debug for Resource<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = String::from_utf8_lossy(&self.key);
        f.debug_struct("Resource").field("key", &key).field("variants", &self.variants).finish_non_exhaustive()
    }
}

/// The average that an allocator adds to a small allocation. mimalloc keeps no header and rounds up to the next of its sizes, 8 or 16 bytes
/// apart at first, later an eighth of the size.
pub(crate) const ALLOCATION: usize = 8;
/// The size of both counters of an `Arc`, and its allocation.
const ARC: usize = 16 + ALLOCATION;
/// The memory that `Bytes` keeps once it is shared (pointer, capacity, counter), and both allocations.
pub(crate) const BYTES: usize = 24 + 2 * ALLOCATION;
/// The size of a place in the memory tier's table: 45 bytes (hash, pointer, 21 of its own), twice for the spare room of a table that
/// doubles, and half of it again for the ghosts of evicted ones.
const PLACE: usize = 45 * 2 + 45;
/// The size of a line in the URL index: two hashes and a tag, with spare room.
const INDEXED: usize = 112;

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::hash::Secret;

    struct Fields([u8; 400]);

    impl Record for Fields {
        fn weight(&self) -> usize {
            self.0.iter().map(|byte| usize::from(*byte)).sum()
        }

        fn encode(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.0);
        }

        fn decode(bytes: &[u8]) -> Option<Self> {
            bytes.try_into().ok().map(Self)
        }
    }

    fn stored(body: &'static [u8], url: &[u8], tags: &[&str]) -> Stored<Fields> {
        let scope = Scope { site: 0, url: url.into(), tags: tags.iter().map(|tag| (*tag).into()).collect() };
        Stored::new(Fields([0; 400]), Bytes::from_static(body), Generation(1), scope)
    }

    /// The promise to the operator: a small page costs less than 1 KiB beyond its own bytes, a record of 400 bytes included.
    #[test]
    fn a_stored_page_costs_less_than_1_kib_beyond_its_bytes() {
        let key = b"0\0example.org\0/a-post/\0html";
        let page = stored(&[b'x'; 8192], b"example.org/a-post/", &["post-1", "author-2"]);
        let own = 8192 + key.len() + page.scope.url.len() + "post-1author-2".len();
        let resource = Resource::new(key.to_vec().into(), Secret::new().key(key), [Arc::new(page)].into());
        let overhead = resource.weight() - own as u64;
        assert!(overhead > 400 && overhead < 1024, "{overhead}");
    }

    #[test]
    fn every_byte_is_weighed() {
        let base = stored(b"", b"", &[]).weight();
        assert!(base >= size_of::<Stored<Fields>>() as u64);
        assert_eq!(stored(b"12345", b"", &[]).weight(), base + 5);
        assert_eq!(stored(b"", b"1234567", &[]).weight(), base + 7);
        assert!(stored(b"", b"", &["tag"]).weight() >= base + 3 + size_of::<Box<str>>() as u64);
        let record = Stored::new(Fields([2; 400]), Bytes::new(), Generation(1), Scope::default());
        assert_eq!(record.weight(), base + 800);
    }

    #[test]
    fn a_verdict_survives_its_word() {
        for at in [Generation(0), Generation(1), Generation(u64::MAX >> 2)] {
            for purged in [Purged::No, Purged::Doubted, Purged::Soft, Purged::Hard] {
                let back = Verdict::unpack(Verdict { at, purged }.pack());
                assert_eq!((back.at, back.purged), (at, purged));
            }
        }
    }
}
