//! A page as it is written: sealed, with its place in the stream.
//!
//! ```text
//! magic  mark  lifetime  id of the entry  its maker  length of the run | run | page | seal
//! 4      12    8 (ms)    8 8              8          1                               32
//! ```
//!
//! The seal is an HMAC-SHA256 with a key of the cluster's secret over the name and everything before it. So it is a checksum as well, and a page
//! under another name, of another cluster or of anybody else is none.

use std::time::Duration;

use aws_lc_rs::{digest, hmac};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use semantics::hex;

use crate::{
    link::Seals,
    stream::{EntryId, EntryMaker, Run},
};

const MAGIC: [u8; 4] = *b"SWT\x01";
/// The bytes that tell one page from all that were ever written: the magic and random ones.
pub(super) const MARK: usize = 16;
/// The bytes of the seal.
const SEAL: usize = 32;
/// The bytes before the run.
const HEAD: usize = MARK + 8 + 16 + 8 + 1;
/// The most bytes that are written beside a page.
pub(super) const FRAME: usize = HEAD + u8::MAX as usize + SEAL;

/// Stands for the maker of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark([u8; 8]);

impl Mark {
    pub(crate) fn of(made: Option<&EntryMaker>) -> Self {
        let Some(made) = made else { return Self([0; 8]) };
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&made.number.to_be_bytes());
        context.update(made.session.as_bytes());
        Self(context.finish().as_ref().first_chunk().copied().unwrap_or_default())
    }
}

/// A position in the stream, as a sealed page has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedPosition {
    pub(crate) run: Run,
    pub(crate) id: EntryId,
    pub(crate) made: Mark,
}

/// The keys of the tier.
#[derive(Clone)]
pub(super) struct Keys {
    name: hmac::Key,
    seal: hmac::Key,
}

/// A page that was read.
#[derive(Debug)]
pub(super) struct UnsealedPage {
    pub(super) page: Bytes,
    pub(super) position: SealedPosition,
    pub(super) lasts: Duration,
    pub(super) mark: u128,
}

/// The reason why something that was read is neither a page nor a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("it is longer than a page may be")]
    TooLong,
    #[error("it is not a page of Seawall, or one of another version")]
    NoPage,
    #[error("it does not bear this cluster's seal: it is damaged, or was written with another secret")]
    Seal,
    #[error("it never expires")]
    NoExpiry,
    #[error("it is not what was written there last")]
    Another,
    #[error("it is not a lock of Seawall: it never expires, or much later than one does")]
    NoLock,
}

impl Keys {
    pub(super) fn new(seals: &Seals) -> Self {
        let [name, seal] = seals.tier();
        Self { name, seal }
    }

    /// Returns what stands for a name: half of an HMAC, in hexadecimal digits.
    pub(super) fn id(&self, name: &[u8]) -> String {
        hex::encoded(&hmac::sign(&self.name, name).as_ref()[..16])
    }

    /// Returns the name and the content of an object by which a bucket is tried. They are the same for all machines, so that none disturbs another.
    pub(super) fn trial(&self) -> (String, Bytes) {
        let id = self.id(b"trial");
        let content = Bytes::copy_from_slice(self.tag(&id, b"trial").as_ref());
        (id, content)
    }

    /// Seals a page. Returns `None` if the run has a name that no server gives it.
    pub(super) fn seal(&self, id: &str, page: &[u8], position: &SealedPosition, lasts: Duration, random: [u8; MARK - 4]) -> Option<Bytes> {
        let run = position.run.0.as_bytes();
        let mut out = BytesMut::with_capacity(HEAD + run.len() + page.len() + SEAL);
        out.put_slice(&MAGIC);
        out.put_slice(&random);
        out.put_u64(u64::try_from(lasts.as_millis()).ok()?);
        out.put_u64(position.id.millis);
        out.put_u64(position.id.sequence);
        out.put_slice(&position.made.0);
        out.put_u8(u8::try_from(run.len()).ok()?);
        out.put_slice(run);
        out.put_slice(page);
        let seal = self.tag(id, &out);
        out.put_slice(seal.as_ref());
        Some(out.freeze())
    }

    /// Reads a page that was found under an id.
    pub(super) fn open(&self, id: &str, mut found: Bytes) -> Result<UnsealedPage, Refused> {
        let length = found.len().checked_sub(SEAL).filter(|length| *length >= HEAD).ok_or(Refused::NoPage)?;
        if !found.starts_with(&MAGIC) {
            return Err(Refused::NoPage);
        }
        let seal = found.split_off(length);
        let mut context = hmac::Context::with_key(&self.seal);
        context.update(id.as_bytes());
        context.update(&found);
        aws_lc_rs::constant_time::verify_slices_are_equal(context.sign().as_ref(), &seal).map_err(|_| Refused::Seal)?;
        // What bears the seal was written as above.
        let mark = u128::from_be_bytes(found.first_chunk().copied().ok_or(Refused::NoPage)?);
        found.advance(MARK);
        let mut number = || found.try_get_u64().map_err(|_| Refused::NoPage);
        let (lasts, millis, sequence) = (Duration::from_millis(number()?), number()?, number()?);
        let made = Mark(number()?.to_be_bytes());
        let run = usize::from(found.try_get_u8().map_err(|_| Refused::NoPage)?);
        if run > found.len() {
            return Err(Refused::NoPage);
        }
        let run = Run(String::from_utf8(found.split_to(run).to_vec()).map_err(|_| Refused::NoPage)?);
        Ok(UnsealedPage { page: found, position: SealedPosition { run, id: EntryId { millis, sequence }, made }, lasts, mark })
    }

    fn tag(&self, id: &str, bytes: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.seal);
        context.update(id.as_bytes());
        context.update(bytes);
        context.sign()
    }
}

/// Returns the first bytes of the page that has this mark.
pub(super) const fn beginning(mark: u128) -> [u8; MARK] {
    mark.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Secret;

    fn keys_of(secret: &str) -> Keys {
        Keys::new(&Seals::new("seawall", &Secret::new(secret).expect("a secret")))
    }

    fn position() -> SealedPosition {
        let made = EntryMaker { session: "s".to_owned(), number: 7 };
        SealedPosition { run: Run("f00".to_owned()), id: EntryId { millis: 5, sequence: 1 }, made: Mark::of(Some(&made)) }
    }

    #[test]
    fn what_was_sealed_is_opened() {
        let keys = keys_of("a secret of sixteen bytes");
        let id = keys.id(b"name");
        let sealed = keys.seal(&id, b"page", &position(), Duration::from_secs(60), [7; 12]).expect("sealed");
        assert!(sealed.len() <= 4 + FRAME);
        let opened = keys.open(&id, sealed.clone()).expect("opened");
        assert_eq!((&opened.page[..], opened.position, opened.lasts), (&b"page"[..], position(), Duration::from_secs(60)));
        assert_eq!(sealed[..MARK], beginning(opened.mark));
    }

    #[test]
    fn nothing_else_is_a_page() {
        let keys = keys_of("a secret of sixteen bytes");
        let id = keys.id(b"name");
        let sealed = keys.seal(&id, b"page", &position(), Duration::from_secs(60), [7; 12]).expect("sealed");
        for at in 4..sealed.len() {
            let mut damaged = sealed.to_vec();
            damaged[at] ^= 1;
            assert_eq!(keys.open(&id, damaged.into()).map(|_| ()), Err(Refused::Seal), "byte {at}");
        }
        for length in 0..sealed.len() {
            assert!(keys.open(&id, sealed.slice(..length)).is_err(), "cut to {length}");
        }
        assert_eq!(keys.open(&keys.id(b"another"), sealed.clone()).map(|_| ()), Err(Refused::Seal), "under another name");
        let others = keys_of("another secret, as long");
        assert_eq!(others.open(&id, sealed).map(|_| ()), Err(Refused::Seal), "of another cluster");
        assert_eq!(keys.open(&id, Bytes::from_static(&[b'x'; 4096])).map(|_| ()), Err(Refused::NoPage));
    }

    #[test]
    fn a_name_is_not_told() {
        let (one, other) = (keys_of("a secret of sixteen bytes"), keys_of("another secret, as long"));
        assert_eq!(one.id(b"name").len(), 32);
        assert_ne!(one.id(b"name"), one.id(b"nam"));
        assert_ne!(one.id(b"name"), other.id(b"name"));
    }
}
