//! Certificates by name, swapped while connections are made.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use rustls::{
    SignatureAlgorithm,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::sync::oneshot;

/// The protocol that a certificate authority uses to check its challenge (RFC 8737 §4).
pub(crate) const ACME_TLS: &[u8] = b"acme-tls/1";

/// A certificate with its chain and key, and the names that it is shown for.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// The names, in lower case; `*.example.org` is every name one label below (RFC 9525 §6.3).
    pub names: Vec<String>,
    /// The chain and the key.
    pub key: Arc<CertifiedKey>,
    /// Whether it is shown to clients that send no name, or an unknown one. Without any such bundle they are refused.
    pub is_default: bool,
}

/// The certificates of a server, shared by its workers.
///
/// Each source of certificates (a file, a certificate authority) puts one under an id of its own, and replaces it under the same id. A name
/// may have one for each kind of key: a client gets ECDSA if it supports it, else RSA. Open connections keep the certificate that they were
/// shown.
#[derive(Default)]
pub struct Certificates {
    bundles: Mutex<BTreeMap<String, Bundle>>,
    table: ArcSwap<Table>,
    challenges: ArcSwap<HashMap<String, Arc<CertifiedKey>>>,
    missed: ArcSwapOption<Missed>,
    challenged: ArcSwapOption<Challenged>,
}

/// A function that is told the name, in lower case, that a client asks for and that has no certificate. If one may come soon, it returns a
/// receiver that says when that is decided, one way or the other; the client waits for it. It must return at once, and bounds how many
/// wait.
pub type Missed = Box<dyn Fn(&str) -> Option<oneshot::Receiver<()>> + Send + Sync>;

/// A function that is told the name, in lower case, for which a certificate authority asks for the answer to a challenge. If the answer may be at
/// another machine, it returns what resolves when that has been looked up, found or not; the authority waits for it. It must return at once,
/// and bounds how long that takes.
pub type Challenged = Box<dyn Fn(&str) -> Option<Wait> + Send + Sync>;

/// A wait that ends by itself.
pub type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The data that a handshake looks into.
#[derive(Debug, Default)]
struct Table {
    by_name: HashMap<String, Vec<Arc<CertifiedKey>>>,
    default: Vec<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Creates the set without any certificate.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Puts `bundle` under `id`, in place of an earlier one. The next handshake shows it.
    pub fn put(&self, id: &str, bundle: Bundle) {
        self.change(|bundles| drop(bundles.insert(id.to_owned(), bundle)));
    }

    /// Removes the bundle under `id`.
    pub fn remove(&self, id: &str) {
        self.change(|bundles| drop(bundles.remove(id)));
    }

    /// Returns the bundle under `id`.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Bundle> {
        self.bundles.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Returns all bundles, by id.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Bundle)> {
        let bundles = self.bundles.lock().unwrap_or_else(PoisonError::into_inner);
        bundles.iter().map(|(id, bundle)| (id.clone(), bundle.clone())).collect()
    }

    /// Returns whether a client that asks for `name` would be shown a certificate for exactly that name.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        self.table.load().named(name).is_some()
    }

    /// Sets the function that is told names without a certificate.
    pub fn when_missed(&self, missed: Option<Missed>) {
        self.missed.store(missed.map(Arc::new));
    }

    /// Sets the function that is told names for which a certificate authority wants an answer.
    pub fn when_challenged(&self, challenged: Option<Challenged>) {
        self.challenged.store(challenged.map(Arc::new));
    }

    /// Returns what a client with this hello has to wait for before its handshake goes on: nearly always nothing.
    pub(super) fn awaited(&self, hello: &ClientHello<'_>) -> Option<Wait> {
        let name = hello.server_name()?;
        if is_challenge(hello) {
            let challenged = self.challenged.load();
            return challenged.as_deref()?(&name.to_ascii_lowercase());
        }
        let decided = self.awaited_for(name)?;
        Some(Box::pin(async move { drop(decided.await) }))
    }

    fn awaited_for(&self, name: &str) -> Option<oneshot::Receiver<()>> {
        let missed = self.missed.load();
        let missed = missed.as_deref()?;
        let name = name.to_ascii_lowercase();
        if self.covers(&name) { None } else { missed(&name) }
    }

    /// Answers the challenge for `name` with a self-signed certificate (RFC 8737 §3), for clients that ask by `acme-tls/1` alone.
    pub fn answer_challenge(&self, name: &str, key: Arc<CertifiedKey>) {
        self.challenges.rcu(|challenges| {
            let mut challenges = HashMap::clone(challenges);
            challenges.insert(name.to_ascii_lowercase(), Arc::clone(&key));
            challenges
        });
    }

    /// Ends the answer to the challenge for `name`.
    pub fn end_challenge(&self, name: &str) {
        let name = name.to_ascii_lowercase();
        self.challenges.rcu(|challenges| {
            let mut challenges = HashMap::clone(challenges);
            challenges.remove(&name);
            challenges
        });
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Bundle>)) {
        let mut bundles = self.bundles.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut bundles);
        // This happens within the lock: of two changes at once, the table is the later one's.
        self.table.store(Arc::new(Table::new(&bundles)));
    }

    /// Returns the certificate to show; `None` ends the handshake with an alert.
    fn choose(&self, name: Option<&str>, is_challenge: bool, can_read: impl Fn(&CertifiedKey) -> bool) -> Option<Arc<CertifiedKey>> {
        if is_challenge {
            return self.challenges.load().get(name?).cloned();
        }
        let table = self.table.load();
        let named = name.and_then(|name| table.named(name));
        let keys = named.unwrap_or(&table.default);
        keys.iter().find(|key| can_read(key)).or_else(|| keys.first()).cloned()
    }
}

impl Table {
    fn new(bundles: &BTreeMap<String, Bundle>) -> Self {
        let mut table = Self::default();
        for bundle in bundles.values() {
            for name in &bundle.names {
                table.by_name.entry(name.to_ascii_lowercase()).or_default().push(Arc::clone(&bundle.key));
            }
            if bundle.is_default {
                table.default.push(Arc::clone(&bundle.key));
            }
        }
        // The sort is stable: among equals, the order of the ids stays.
        for keys in table.by_name.values_mut().chain([&mut table.default]) {
            keys.sort_by_key(|key| cost(key));
        }
        table
    }

    /// Returns the certificates for a name. The exact name comes before the wildcard.
    fn named(&self, name: &str) -> Option<&Vec<Arc<CertifiedKey>>> {
        self.by_name.get(name).or_else(|| {
            let (_, parent) = name.split_once('.')?;
            self.by_name.get(&format!("*.{parent}"))
        })
    }
}

/// Returns the rank of a key by cost: a handshake with RSA costs us twenty times the processor time of one with ECDSA.
fn cost(key: &CertifiedKey) -> u8 {
    u8::from(key.key.algorithm() == SignatureAlgorithm::RSA)
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(hello.server_name(), is_challenge(&hello), |key| key.key.choose_scheme(hello.signature_schemes()).is_some())
    }
}

/// Returns whether a hello comes from a certificate authority that checks a challenge: such a client offers nothing else (RFC 8737 §3).
fn is_challenge(hello: &ClientHello<'_>) -> bool {
    hello.alpn().is_some_and(|mut offered| offered.next() == Some(ACME_TLS) && offered.next().is_none())
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<String> = self.all().into_iter().map(|(id, _)| id).collect();
        f.debug_struct("Certificates").field("ids", &ids).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, SignatureAlgorithm as Kind};

    use super::*;
    use crate::tls::certified_key;

    fn key(kind: &'static Kind) -> Arc<CertifiedKey> {
        let pair = KeyPair::generate_for(kind).expect("a key");
        let certificate = CertificateParams::new(vec!["a.example".to_owned()]).and_then(|params| params.self_signed(&pair));
        let chain = vec![certificate.expect("a certificate").der().clone()];
        Arc::new(certified_key(chain, pair.serialize_der().try_into().expect("PKCS #8")).expect("they fit"))
    }

    fn bundle(names: &[&str], key: &Arc<CertifiedKey>, is_default: bool) -> Bundle {
        Bundle { names: names.iter().map(|&name| name.to_owned()).collect(), key: Arc::clone(key), is_default }
    }

    fn shown(certificates: &Certificates, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        certificates.choose(name, false, |_| true)
    }

    #[track_caller]
    fn assert_same(found: Option<Arc<CertifiedKey>>, expected: Option<&Arc<CertifiedKey>>) {
        assert_eq!(found.as_ref().map(Arc::as_ptr), expected.map(Arc::as_ptr));
    }

    #[test]
    fn the_exact_name_goes_before_the_wildcard_and_that_before_the_default() {
        let (exact, wild, other) = (key(&PKCS_ECDSA_P256_SHA256), key(&PKCS_ECDSA_P256_SHA256), key(&PKCS_ECDSA_P256_SHA256));
        let certificates = Certificates::new();
        certificates.put("1", bundle(&["www.a.example"], &exact, false));
        certificates.put("2", bundle(&["*.a.example"], &wild, false));
        let cases = [
            ("www.a.example", Some(&exact)),
            ("blog.a.example", Some(&wild)),
            // A wildcard stands for one label, and not for none (RFC 9525 §6.3).
            ("a.example", None),
            ("x.blog.a.example", None),
            ("b.example", None),
        ];
        for (name, expected) in cases {
            assert_same(shown(&certificates, Some(name)), expected);
            assert_eq!(certificates.covers(name), expected.is_some(), "{name}");
        }
        assert_same(shown(&certificates, None), None);
        certificates.put("3", bundle(&["b.example"], &other, true));
        for name in [None, Some("a.example"), Some("c.example")] {
            assert_same(shown(&certificates, name), Some(&other));
        }
        certificates.remove("3");
        assert_same(shown(&certificates, Some("c.example")), None);
    }

    #[test]
    fn who_can_read_both_gets_ecdsa_and_who_can_read_none_gets_it_too() {
        let (rsa, ecdsa) = (key(&PKCS_RSA_SHA256), key(&PKCS_ECDSA_P256_SHA256));
        let certificates = Certificates::new();
        certificates.put("1", bundle(&["a.example"], &rsa, false));
        certificates.put("2", bundle(&["a.example"], &ecdsa, false));
        let is_rsa = |key: &CertifiedKey| key.key.algorithm() == SignatureAlgorithm::RSA;
        assert_same(certificates.choose(Some("a.example"), false, |_| true), Some(&ecdsa));
        assert_same(certificates.choose(Some("a.example"), false, is_rsa), Some(&rsa));
        assert_same(certificates.choose(Some("a.example"), false, |_| false), Some(&ecdsa));
    }

    #[test]
    fn a_certificate_is_replaced_under_its_id() {
        let (old, new) = (key(&PKCS_ECDSA_P256_SHA256), key(&PKCS_ECDSA_P256_SHA256));
        let certificates = Certificates::new();
        certificates.put("1", bundle(&["a.example", "b.example"], &old, false));
        certificates.put("1", bundle(&["B.example"], &new, false));
        assert_same(shown(&certificates, Some("b.example")), Some(&new));
        assert_same(shown(&certificates, Some("a.example")), None);
    }

    #[test]
    fn a_challenge_is_answered_to_nobody_but_the_authority() {
        let (page, challenge) = (key(&PKCS_ECDSA_P256_SHA256), key(&PKCS_ECDSA_P256_SHA256));
        let certificates = Certificates::new();
        certificates.put("1", bundle(&["a.example"], &page, true));
        let asked = |name, is_challenge| certificates.choose(name, is_challenge, |_| true);
        assert_same(asked(Some("a.example"), true), None);
        certificates.answer_challenge("A.example", Arc::clone(&challenge));
        assert_same(asked(Some("a.example"), true), Some(&challenge));
        assert_same(asked(Some("a.example"), false), Some(&page));
        assert_same(asked(Some("b.example"), true), None);
        assert_same(asked(None, true), None);
        certificates.end_challenge("a.example");
        assert_same(asked(Some("a.example"), true), None);
    }

    #[test]
    fn a_name_without_a_certificate_is_told_and_may_be_waited_for() {
        let certificates = Certificates::new();
        let (told, names) = std::sync::mpsc::sync_channel(4);
        let missed = move |name: &str| {
            told.try_send(name.to_owned()).expect("room");
            (name == "soon.example").then(|| oneshot::channel().1)
        };
        assert!(certificates.awaited_for("soon.example").is_none());
        certificates.when_missed(Some(Box::new(missed)));
        certificates.put("1", bundle(&["a.example"], &key(&PKCS_ECDSA_P256_SHA256), true));
        let awaited = ["a.example", "b.example", "SOON.example"].map(|name| certificates.awaited_for(name).is_some());
        assert_eq!(awaited, [false, false, true]);
        assert_eq!(names.try_iter().collect::<Vec<_>>(), ["b.example", "soon.example"]);
        certificates.when_missed(None);
        assert!(certificates.awaited_for("soon.example").is_none());
    }
}
