//! Seals: what bears one was written by a machine that knows the cluster's secret.
//!
//! Entries, members and confirmations are readable and bear an HMAC; values of the shelf are also encrypted. Each kind has a key or a label of its
//! own, and all keys come from the secret and the name of the cluster (HKDF), so that nothing can be taken from one place to another. What is
//! not here: protection against whoever can write on the server and repeats or removes what was written.

use std::{fmt, sync::Arc};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf, hmac,
};
use bytes::Bytes;
use policy::purge::Order;
use semantics::hex;
use serde::{Deserialize, Serialize};

use super::{Append, Confirmation, ENTRY_BYTES_MAX, LEASE_MAX, Member};
use crate::stream::{EntryContent, EntryMaker, VERSION};

/// The secret of a cluster. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// The reason why a text is not a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has less than 16 bytes; make one with: openssl rand -hex 32")]
pub struct BadSecret;

impl Secret {
    /// Takes a secret: at least 16 bytes, without the white space around it.
    ///
    /// # Errors
    /// When it is shorter.
    pub fn new(text: &str) -> Result<Self, BadSecret> {
        let text = text.trim().as_bytes();
        if text.len() < 16 { Err(BadSecret) } else { Ok(Self(text.to_vec())) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The keys that are made of the secret. A clone has the same ones.
#[derive(Clone)]
pub struct Seals {
    /// The key of entries, members, confirmations and digests.
    told: hmac::Key,
    /// The key of values on the shelf.
    kept: Arc<LessSafeKey>,
    /// The keys of the tier: that which hashes names, and that which seals pages.
    tier: [hmac::Key; 2],
    /// The key of reports of limits, and the secret by which addresses are named in them.
    limits: (hmac::Key, [u8; 16]),
}

impl fmt::Debug for Seals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seals")
    }
}

/// The content of an entry, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Content {
    Begun,
    Purge(Order),
}

impl Seals {
    /// Makes the keys for a cluster.
    #[must_use]
    pub fn new(cluster: &str, secret: &Secret) -> Self {
        let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, cluster.as_bytes()).extract(&secret.0);
        let key = |purpose: &[u8]| {
            let mut bytes = [0; 32];
            let info = [b"seawall ", purpose];
            let made = secret.expand(&info, hkdf::HKDF_SHA256).and_then(|made| made.fill(&mut bytes));
            made.expect("32 bytes are what the algorithm gives");
            bytes
        };
        let kept = UnboundKey::new(&AES_256_GCM, &key(b"kept")).expect("the key has the length of the algorithm");
        let mut addresses = [0; 16];
        addresses.copy_from_slice(&key(b"addresses")[..16]);
        let mac = |purpose: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, &key(purpose));
        Self {
            told: mac(b"told"),
            kept: Arc::new(LessSafeKey::new(kept)),
            tier: [mac(b"tier name"), mac(b"tier page")],
            limits: (mac(b"limits"), addresses),
        }
    }

    /// Returns the key of reports of limits.
    pub(crate) const fn limits(&self) -> &hmac::Key {
        &self.limits.0
    }

    /// Returns the secret by which all machines of the cluster name addresses to each other.
    #[must_use]
    pub const fn addresses(&self) -> [u8; 16] {
        self.limits.1
    }

    /// Returns the keys of the tier: that which hashes names, and that which seals pages.
    pub(crate) fn tier(&self) -> [hmac::Key; 2] {
        self.tier.clone()
    }

    /// Seals an order as an entry. Returns `None` if it is longer than [`ENTRY_BYTES_MAX`]: then it is to be split.
    #[must_use]
    pub fn purge(&self, made: EntryMaker, order: &Order) -> Option<Append> {
        let sealed = self.entry(&made, &Content::Purge(order.clone()));
        (sealed.len() <= ENTRY_BYTES_MAX).then_some(Append { made, sealed })
    }

    /// Seals the entry that begins a stream.
    pub(super) fn begun(&self, made: EntryMaker) -> Append {
        let sealed = self.entry(&made, &Content::Begun);
        Append { made, sealed }
    }

    fn entry(&self, made: &EntryMaker, content: &Content) -> Bytes {
        debug_assert!(is_word(&made.session), "a session is one word");
        let content = serde_json::to_string(content).expect("orders have texts as keys alone");
        let said = format!("{} {} {content}", made.session, made.number);
        let mac = hex::encoded(self.mac("entry", &[VERSION.to_string().as_bytes(), said.as_bytes()]).as_ref());
        Bytes::from(format!("{VERSION} {mac} {said}"))
    }

    /// Reads an entry: who made it, and what it says.
    #[must_use]
    pub fn read_entry(&self, sealed: &[u8]) -> (Option<EntryMaker>, EntryContent) {
        let unreadable = |sealed: bool, why: &str| EntryContent::Unreadable { sealed, why: why.to_owned() };
        let Some((version, mac, said)) = std::str::from_utf8(sealed).ok().and_then(words) else {
            return (None, unreadable(false, "it is not an entry of Seawall"));
        };
        if !self.bears("entry", &[version.as_bytes(), said.as_bytes()], mac) {
            return (None, unreadable(false, "it does not bear the seal of this cluster: it has another secret, or another name"));
        }
        let made = words(said).and_then(|(session, number, content)| Some((session, number.parse().ok()?, content)));
        let Some((session, number, content)) = made else {
            return (None, unreadable(true, "it does not say who made it"));
        };
        let made = Some(EntryMaker { session: session.to_owned(), number });
        if version != VERSION.to_string() {
            return (
                made,
                EntryContent::Unreadable { sealed: true, why: format!("it is of version {version}, and this Seawall reads {VERSION}") },
            );
        }
        match serde_json::from_str(content) {
            Ok(Content::Begun) => (made, EntryContent::Begun),
            Ok(Content::Purge(order)) => (made, EntryContent::Purge(order)),
            Err(error) => (made, EntryContent::Unreadable { sealed: true, why: format!("its order cannot be read: {error}") }),
        }
    }

    /// Seals what a machine says of itself. It begins with the session and the beat, so that the server can compare them.
    #[must_use]
    pub fn member(&self, name: &str, member: &Member) -> Vec<u8> {
        debug_assert!(is_word(&member.session), "a session is one word");
        let said = serde_json::to_string(member).expect("a member is numbers and texts");
        let Member { session, beat, .. } = member;
        let mac = self.mac("member", &[name.as_bytes(), session.as_bytes(), beat.to_string().as_bytes(), said.as_bytes()]);
        format!("{session} {beat} {} {said}", hex::encoded(mac.as_ref())).into_bytes()
    }

    /// Reads what a machine says of itself; `None` without the seal. What is under the seal and cannot be read was written by another version: the
    /// machine is assumed to have applied nothing, and to have the longest lease.
    #[must_use]
    pub fn read_member(&self, name: &str, sealed: &[u8]) -> Option<Member> {
        let (session, number, rest) = words(std::str::from_utf8(sealed).ok()?)?;
        let (mac, said) = rest.split_once(' ')?;
        let beat = number.parse().ok()?;
        if !self.bears("member", &[name.as_bytes(), session.as_bytes(), number.as_bytes(), said.as_bytes()], mac) {
            return None;
        }
        let unknown = || Member {
            session: session.to_owned(),
            beat,
            confirmed: None,
            lease_ms: u64::try_from(LEASE_MAX.as_millis()).unwrap_or(u64::MAX),
            hold_ms: u64::try_from(LEASE_MAX.as_millis()).unwrap_or(u64::MAX),
            version: "unknown".to_owned(),
            leased: true,
        };
        let read = serde_json::from_str(said).ok();
        Some(read.filter(|member: &Member| member.session == session && member.beat == beat).unwrap_or_else(unknown))
    }

    /// Seals a confirmation.
    #[must_use]
    pub fn confirmation(&self, confirmation: &Confirmation) -> Vec<u8> {
        let said = serde_json::to_string(confirmation).expect("a confirmation is numbers and texts");
        format!("{VERSION} {} {said}", hex::encoded(self.mac("confirmation", &[said.as_bytes()]).as_ref())).into_bytes()
    }

    /// Reads a confirmation; `None` without the seal.
    #[must_use]
    pub fn read_confirmation(&self, sealed: &[u8]) -> Option<Confirmation> {
        let (_, mac, said) = words(std::str::from_utf8(sealed).ok()?)?;
        if !self.bears("confirmation", &[said.as_bytes()], mac) {
            return None;
        }
        serde_json::from_str(said).ok()
    }

    /// Encrypts and seals a value that is kept under a name. Returns the seal's number, too, by which this writing is known: it is random.
    pub(crate) fn keep(&self, name: &str, value: &[u8]) -> (Vec<u8>, [u8; NONCE_LEN]) {
        let mut number = [0; NONCE_LEN];
        random(&mut number);
        let mut content = value.to_vec();
        let sealed = self.kept.seal_in_place_append_tag(Nonce::assume_unique_for_key(number), Aad::from(name.as_bytes()), &mut content);
        sealed.expect("a value is shorter than what the algorithm takes");
        let mut whole = Vec::with_capacity(KEPT.len() + NONCE_LEN + content.len());
        whole.extend_from_slice(KEPT);
        whole.extend_from_slice(&number);
        whole.extend_from_slice(&content);
        (whole, number)
    }

    /// Returns how what is kept begins if it is the writing of that number.
    pub(crate) fn kept_beginning(number: &[u8; NONCE_LEN]) -> Vec<u8> {
        [KEPT, number].concat()
    }

    /// Reads a value that is kept under a name, and the number of its seal.
    pub(crate) fn open(&self, name: &str, kept: &[u8]) -> Result<(Bytes, [u8; NONCE_LEN]), &'static str> {
        let rest = kept.strip_prefix(KEPT).ok_or("it was not written by this version of Seawall")?;
        let (number, content) = rest.split_first_chunk().ok_or("it is cut off")?;
        let mut content = content.to_vec();
        let opened = self.kept.open_in_place(Nonce::assume_unique_for_key(*number), Aad::from(name.as_bytes()), &mut content);
        let length = opened.map_err(|_| "it is damaged, or sealed with another secret, or under another name")?.len();
        content.truncate(length);
        Ok((Bytes::from(content), *number))
    }

    /// Returns a digest of some bytes that nobody can make or recognize without the secret; `purpose` sets one use apart from others.
    #[must_use]
    pub fn digest(&self, purpose: &str, bytes: &[u8]) -> [u8; 32] {
        let mut digest = [0; 32];
        digest.copy_from_slice(self.mac("digest", &[purpose.as_bytes(), bytes]).as_ref());
        digest
    }

    /// Returns the seal of some parts. Each has its length before it, so that no two lists of parts have the same seal.
    fn mac(&self, kind: &str, parts: &[&[u8]]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.told);
        for part in [kind.as_bytes()].iter().chain(parts) {
            context.update(&u64::try_from(part.len()).expect("a length fits").to_be_bytes());
            context.update(part);
        }
        context.sign()
    }

    fn bears(&self, kind: &str, parts: &[&[u8]], mac: &str) -> bool {
        let own = hex::encoded(self.mac(kind, parts).as_ref());
        aws_lc_rs::constant_time::verify_slices_are_equal(own.as_bytes(), mac.as_bytes()).is_ok()
    }
}

/// The bytes with which every kept value begins: they name its form.
const KEPT: &[u8] = b"S1";

/// Fills some bytes with what nobody can guess.
pub(crate) fn random(bytes: &mut [u8]) {
    aws_lc_rs::rand::fill(bytes).expect("the system has random bytes");
}

/// Returns a word that nobody can guess and that comes only once.
pub(crate) fn random_word() -> String {
    let mut bytes = [0; 16];
    random(&mut bytes);
    hex::encoded(&bytes)
}

/// Parts a text at its first two spaces.
fn words(text: &str) -> Option<(&str, &str, &str)> {
    let (first, rest) = text.split_once(' ')?;
    let (second, rest) = rest.split_once(' ')?;
    Some((first, second, rest))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use policy::purge::What;

    use super::*;
    use crate::{
        link::Confirmed,
        stream::{EntryId, Run},
    };

    fn seals(cluster: &str, secret: &str) -> Seals {
        Seals::new(cluster, &Secret::new(secret).expect("a secret"))
    }

    fn own() -> Seals {
        seals("seawall", "0123456789abcdef")
    }

    fn made() -> EntryMaker {
        EntryMaker { session: "5e55".to_owned(), number: 7 }
    }

    fn order(tag: &str) -> Order {
        Order::by_operator(What::Tag(tag.to_owned()), true)
    }

    fn member() -> Member {
        let confirmed = Some(confirmed());
        Member { session: "5e55".to_owned(), beat: 9, confirmed, lease_ms: 2000, hold_ms: 5000, version: "0.1.0".to_owned(), leased: true }
    }

    fn confirmed() -> Confirmed {
        Confirmed { run: Run("r/h".to_owned()), born: "b".to_owned(), id: EntryId { millis: 3, sequence: 4 } }
    }

    #[test]
    fn an_order_is_read_as_it_was_sealed() {
        let append = own().purge(made(), &order("a \"tag\" — with 1 space")).expect("short");
        assert_eq!(own().read_entry(&append.sealed), (Some(made()), EntryContent::Purge(order("a \"tag\" — with 1 space"))));
        assert_eq!(own().read_entry(&own().begun(made()).sealed), (Some(made()), EntryContent::Begun));
    }

    #[test]
    fn an_entry_of_another_secret_or_another_cluster_bears_no_seal() {
        let append = own().purge(made(), &order("t")).expect("short");
        for other in [seals("seawall", "another secret of 16"), seals("other", "0123456789abcdef")] {
            let (made, said) = other.read_entry(&append.sealed);
            assert_eq!(made, None);
            assert!(matches!(said, EntryContent::Unreadable { sealed: false, .. }), "{said:?}");
        }
        for garbage in [&b""[..], b"1", b"1 2", b"1 2 3", b"\xff\xfe", &[0; 100]] {
            assert!(matches!(own().read_entry(garbage), (None, EntryContent::Unreadable { sealed: false, .. })), "{garbage:?}");
        }
    }

    #[test]
    fn no_byte_of_an_entry_can_be_changed() {
        let append = own().purge(made(), &order("t")).expect("short");
        for at in 0..append.sealed.len() {
            let mut changed = append.sealed.to_vec();
            changed[at] ^= 1;
            assert!(matches!(own().read_entry(&changed), (None, EntryContent::Unreadable { sealed: false, .. })), "at {at}");
        }
    }

    #[test]
    fn an_entry_of_another_version_is_unreadable_under_the_seal() {
        let said = r#"5e55 7 {"purge-all-but":"x"}"#;
        for version in ["2", "1"] {
            let mac = hex::encoded(own().mac("entry", &[version.as_bytes(), said.as_bytes()]).as_ref());
            let (read, said) = own().read_entry(format!("{version} {mac} {said}").as_bytes());
            assert_eq!(read, Some(made()));
            assert!(matches!(said, EntryContent::Unreadable { sealed: true, .. }), "{said:?}");
        }
    }

    #[test]
    fn an_order_that_is_too_long_is_not_sealed() {
        assert!(own().purge(made(), &order(&"t".repeat(ENTRY_BYTES_MAX))).is_none());
        assert!(own().purge(made(), &order(&"t".repeat(ENTRY_BYTES_MAX / 2))).is_some());
    }

    #[test]
    fn a_member_is_read_under_its_own_name_alone() {
        let sealed = own().member("a", &member());
        assert_eq!(own().read_member("a", &sealed), Some(member()));
        assert_eq!(own().read_member("b", &sealed), None);
        assert_eq!(seals("seawall", "another secret of 16").read_member("a", &sealed), None);
        assert!(sealed.starts_with(b"5e55 9 "), "the server compares how it begins");
    }

    #[test]
    fn a_member_of_another_version_has_the_longest_lease_and_has_applied_nothing() {
        let said = r#"{"session":"5e55","rank":3}"#;
        let mac = own().mac("member", &[b"a", b"5e55", b"9", said.as_bytes()]);
        let read = own().read_member("a", format!("5e55 9 {} {said}", hex::encoded(mac.as_ref())).as_bytes()).expect("under the seal");
        assert_eq!((read.confirmed, read.lease_ms, read.hold_ms, read.leased), (None, 30_000, 30_000, true));
        assert_eq!((read.session.as_str(), read.beat), ("5e55", 9));
    }

    #[test]
    fn a_confirmation_is_no_entry_and_an_entry_is_no_confirmation() {
        let confirmation = Confirmation { field: "a machine/5e55".to_owned(), confirmed: confirmed() };
        let sealed = own().confirmation(&confirmation);
        assert_eq!(own().read_confirmation(&sealed), Some(confirmation));
        assert!(matches!(own().read_entry(&sealed), (None, EntryContent::Unreadable { sealed: false, .. })));
        assert_eq!(own().read_confirmation(&own().begun(made()).sealed), None);
        assert_eq!(seals("seawall", "another secret of 16").read_confirmation(&sealed), None);
    }

    #[test]
    fn a_kept_value_is_opened_under_its_own_name_alone() {
        let (kept, number) = own().keep("certificate/blog.example", b"-----BEGIN PRIVATE KEY-----");
        assert!(!kept.windows(7).any(|window| window == b"PRIVATE"), "nobody can read it");
        assert!(kept.starts_with(&Seals::kept_beginning(&number)));
        let (opened, again) = own().open("certificate/blog.example", &kept).expect("it is ours");
        assert_eq!((&opened[..], again), (&b"-----BEGIN PRIVATE KEY-----"[..], number));
        assert!(own().open("certificate/other.example", &kept).is_err());
        assert!(seals("seawall", "another secret of 16").open("certificate/blog.example", &kept).is_err());
        for length in 0..kept.len() {
            assert!(own().open("certificate/blog.example", &kept[..length]).is_err(), "cut at {length}");
        }
    }

    proptest::proptest! {
        /// Whoever may write on the server can write anything.
        #[test]
        fn whatever_was_written_is_read_without_harm(bytes: Vec<u8>, words in "[0-9a-f ]{0,120}") {
            for bytes in [&bytes[..], words.as_bytes()] {
                assert!(matches!(own().read_entry(bytes), (None, EntryContent::Unreadable { sealed: false, .. })));
                assert_eq!(own().read_member("a", bytes), None);
                assert_eq!(own().read_confirmation(bytes), None);
                assert!(own().open("a", bytes).is_err());
            }
        }
    }

    #[test]
    fn a_secret_has_sixteen_bytes_and_is_never_shown() {
        assert!(Secret::new(" 0123456789abcde\n").is_err());
        let secret = Secret::new(" 0123456789abcdef\n").expect("long enough");
        assert_eq!(secret, Secret::new("0123456789abcdef").expect("long enough"));
        assert!(!format!("{secret:?}{:?}", own()).contains("0123"));
    }
}
