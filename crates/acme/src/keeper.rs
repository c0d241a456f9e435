//! Keeps a certificate for every name that is wanted.
//!
//! [`Keeper::run`] is the loop; all that it does at one moment is [`Keeper::step`], to which the time is an argument.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream, stream::FuturesUnordered};
use http::{Request, StatusCode};
use instant_acme::{AccountCredentials, ExternalAccountKey, NewAccount, RevocationReason, RevocationRequest};
use parking_lot::Mutex;
use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;
use semantics::Timestamp;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::{
    certificate::Certificate,
    challenges::Challenges,
    demand::{Demand, DemandOptions, Refused},
    failure::{Failure, Fault},
    folder::{Folder, FolderError},
    hook::DnsHook,
    local::LocalRoot,
    name::{Issuer, issuer},
    order::Ordering,
    schedule::{Schedule, Window, ask_again},
    transport::{AcmeClient, Heard, Transport, system_time},
    waiting::Waiting,
};

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// The directory of Let's Encrypt's staging environment: it has generous limits, and no browser trusts its certificates.
pub const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// The most orders at the same time.
const ORDERS: usize = 4;
/// The longest time between two looks at the clock: it may have been set, and a machine may have slept.
const LOOK_AT_LEAST: Duration = Duration::from_secs(10 * 60);
/// The time between two looks at what another process with the same folder wrote into it.
const LOOK_AT_OTHERS: Duration = Duration::from_secs(60);
/// The time after which renewal information that could not be read is asked for again (RFC 9773 §4.3.3).
const ARI_LATER: Duration = Duration::from_secs(6 * 60 * 60);
/// How long a rate limit is taken to last when the authority does not say.
const RATE_LIMIT: Duration = Duration::from_secs(60 * 60);
/// The time after which a twin whose name does not lead here is checked again.
const TWIN_LATER: Duration = Duration::from_secs(60 * 60);
/// The most names on demand, and certificates to be replaced, that may wait for the keeper. One more is refused.
const ERRANDS: usize = 64;
const HOUR: Duration = Duration::from_secs(60 * 60);

/// A method by which we prove that a name is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Proof by content at port 80 (RFC 8555 §8.3).
    Http01,
    /// Proof by a handshake at port 443 (RFC 8737).
    TlsAlpn01,
    /// Proof by a TXT record (RFC 8555 §8.4), which a [`DnsHook`] writes.
    Dns01,
}

impl Method {
    /// Returns the method's name in RFC 8555.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Dns01 => "dns-01",
        }
    }
}

/// The server that shows certificates, and answers challenges in handshakes.
pub trait Sink: Send + Sync + 'static {
    /// Shows this certificate to clients that ask for `name`, in handshakes that begin after this call.
    fn show(&self, name: &str, names: Vec<String>, key: Arc<CertifiedKey>);
    /// Shows no certificate for `name` any more.
    fn withdraw(&self, name: &str);
    /// Shows this certificate to an authority that asks for `name` by `acme-tls/1` alone (RFC 8737 §3).
    fn answer_challenge(&self, name: &str, key: Arc<CertifiedKey>);
    /// Ends the answer to a challenge for `name`.
    fn end_challenge(&self, name: &str);
}

/// The data that identifies us to the authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The address that the authority may write to.
    pub email: Option<String>,
    /// An account that exists at the authority outside ACME (RFC 8555 §7.3.4): the id of its key, and the key itself.
    pub external: Option<(String, Vec<u8>)>,
}

/// The options of a keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The URL of the authority's directory.
    pub directory: String,
    /// Our account at the authority.
    pub account: Account,
    /// The profile of certificates, if the authority has several (`shortlived`); `None` is its default.
    pub profile: Option<String>,
    /// The methods to prove names by, the preferred one first; after a failure the next one is tried.
    pub methods: Vec<Method>,
    /// The program that writes TXT records.
    pub hook: Option<DnsHook>,
    /// The folder where everything is stored.
    pub folder: PathBuf,
    /// The options for names that are not configured one by one.
    pub demand: Option<DemandOptions>,
}

/// The state of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The name.
    pub name: String,
    /// Until when its certificate is valid; `None` if it has none.
    pub not_after: Option<Timestamp>,
    /// The error of the last attempt; `None` after a success.
    pub last_error: Option<String>,
    /// The number of failures in a row since the process began.
    pub failures: u32,
    /// When the next attempt is due.
    pub next: Timestamp,
    /// The issuer of its certificate.
    pub issuer: Issuer,
}

/// Orders, stores, shows and renews the certificates of all wanted names.
pub struct Keeper {
    options: Options,
    folder: Folder,
    seed: u64,
    root: LocalRoot,
    transport: Arc<dyn Transport>,
    challenges: Challenges,
    sink: Arc<dyn Sink>,
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Held by the task that registers the account, while the others wait for it.
    registering: tokio::sync::Mutex<()>,
    demand: Option<Demand>,
    errands: (mpsc::Sender<Errand>, tokio::sync::Mutex<mpsc::Receiver<Errand>>),
    waiting: Waiting,
    changed: Notify,
}

/// A task that others give to a running keeper.
#[derive(Debug)]
enum Errand {
    /// Somebody connects to this name.
    Demand(String),
    /// The certificate for this name is to be replaced and revoked.
    Replace(String, oneshot::Sender<Result<(), Failure>>),
}

#[derive(Debug)]
struct Entry {
    schedule: Schedule,
    certificate: Option<Certificate>,
    /// Whether it is being ordered now.
    busy: bool,
    /// The configured name, if this one is not configured itself but is the other form of it.
    twin_of: Option<String>,
    on_demand: bool,
    /// When renewal information is to be asked for.
    ask_at: Timestamp,
    /// The time before which a twin that does not lead here is not tried.
    not_before: Timestamp,
}

/// A name to have a certificate for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted<'a> {
    name: &'a str,
    twin_of: Option<String>,
}

impl Keeper {
    /// Opens the folder. Nothing is ordered yet.
    ///
    /// # Errors
    /// Fails when the folder cannot be used.
    pub fn open(options: Options, transport: Arc<dyn Transport>, challenges: Challenges, sink: Arc<dyn Sink>) -> Result<Self, FolderError> {
        let folder = Folder::open(&options.folder, &options.directory)?;
        let root = LocalRoot::new(folder.root_file("local-root.pem"), folder.root_file("local-root.key"));
        let (sender, receiver) = mpsc::channel(ERRANDS);
        Ok(Self {
            seed: folder.seed(),
            folder,
            root,
            transport,
            challenges,
            sink,
            entries: Mutex::default(),
            registering: tokio::sync::Mutex::default(),
            demand: options.demand.clone().map(Demand::new),
            errands: (sender, tokio::sync::Mutex::new(receiver)),
            waiting: Waiting::default(),
            changed: Notify::new(),
            options,
        })
    }

    /// Returns the URL of the authority's directory.
    #[must_use]
    pub fn directory(&self) -> &str {
        &self.options.directory
    }

    /// Returns the root that certifies local names.
    #[must_use]
    pub const fn root(&self) -> &LocalRoot {
        &self.root
    }

    /// Replaces the wanted names. Of the names on demand, those that have a certificate stay wanted. Certificates that are on the disk are
    /// shown at once, even those that have ended: a browser's warning is better than no answer.
    ///
    /// `twins` are the other forms of names (`www.`). They are ordered if they lead to the same place, and skipped without an error if they
    /// do not.
    pub fn want(&self, names: &[String], twins: &[(String, String)]) {
        let configured = names.iter().map(|name| Wanted { name, twin_of: None });
        let twins =
            twins.iter().filter(|(twin, _)| !names.contains(twin)).map(|(twin, of)| Wanted { name: twin, twin_of: Some(of.clone()) });
        let wanted: Vec<Wanted<'_>> = configured.chain(twins).collect();
        let mut entries = self.entries.lock();
        entries.retain(|name, entry| {
            let stays = entry.on_demand || wanted.iter().any(|wanted| wanted.name == name);
            if !stays {
                self.sink.withdraw(name);
            }
            stays
        });
        for Wanted { name, twin_of } in wanted {
            let entry = entries.entry(name.to_owned()).or_insert_with(|| self.load(name));
            entry.twin_of = twin_of;
            entry.on_demand = false;
        }
        drop(entries);
        self.changed.notify_one();
    }

    /// Loads what the disk has for a name, and shows its certificate if there is one.
    fn load(&self, name: &str) -> Entry {
        let mut schedule = Schedule::new(name, self.seed);
        schedule.history = self.folder.history(name);
        let mut entry = Entry {
            schedule,
            certificate: None,
            busy: false,
            twin_of: None,
            on_demand: false,
            ask_at: Timestamp::default(),
            not_before: Timestamp::default(),
        };
        self.load_certificate(name, &mut entry);
        entry
    }

    fn load_certificate(&self, name: &str, entry: &mut Entry) {
        let pem = match self.folder.certificate(name) {
            Ok(Some(pem)) => pem,
            Ok(None) => return,
            Err(error) => return tracing::warn!("the certificate for {name} is ordered anew: {}", crate::failure::chain(&error)),
        };
        if entry.certificate.as_ref().is_some_and(|certificate| certificate.pem() == pem) {
            return;
        }
        match Certificate::from_pem(pem) {
            Ok(certificate) if certificate.covers(name) => {
                entry.schedule.validity = Some(certificate.validity);
                entry.schedule.window = None;
                entry.ask_at = Timestamp::default();
                self.show(name, &certificate);
                entry.certificate = Some(certificate);
            }
            Ok(_) => tracing::warn!("the certificate kept for {name} is for other names; it is ordered anew"),
            Err(error) => tracing::warn!("the certificate kept for {name} is damaged, and ordered anew: {error}"),
        }
    }

    fn show(&self, name: &str, certificate: &Certificate) {
        self.sink.show(name, certificate.names.clone(), Arc::clone(&certificate.key));
    }

    /// Returns the state of each name.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> Vec<Status> {
        let entries = self.entries.lock();
        let status = |(name, entry): (&String, &Entry)| Status {
            name: name.clone(),
            not_after: entry.certificate.as_ref().map(|certificate| certificate.validity.not_after),
            last_error: entry.schedule.history.last_error.clone(),
            failures: entry.schedule.failures(),
            next: entry.due(now),
            issuer: issuer(name),
        };
        // A twin that leads elsewhere concerns nobody.
        entries.iter().filter(|(_, entry)| entry.twin_of.is_none() || entry.certificate.is_some()).map(status).collect()
    }

    /// Works until `stop` is ready. Orders that are running are then given up; their results so far are kept.
    pub async fn run(&self, now: impl Fn() -> Timestamp, stop: impl Future<Output = ()>) {
        let now = &now;
        let renewals = async {
            loop {
                let next = self.step(now()).await;
                let pause = next.since(now()).clamp(Duration::from_secs(1), LOOK_AT_LEAST);
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = self.changed.notified() => {}
                }
            }
        };
        // Errands run beside the orders, because somebody waits for them.
        let errands = async {
            let mut errands = self.errands.1.lock().await;
            let mut under_way = FuturesUnordered::new();
            loop {
                tokio::select! {
                    Some(errand) = errands.recv(), if under_way.len() < ORDERS => under_way.push(self.run_errand(errand, now())),
                    Some(()) = under_way.next() => self.changed.notify_one(),
                }
            }
        };
        tokio::select! {
            () = renewals => {}
            () = errands => {}
            () = stop => {}
        }
    }

    async fn run_errand(&self, errand: Errand, now: Timestamp) {
        match errand {
            Errand::Demand(name) => {
                if let Err(refused) = self.demand(&name, now).await {
                    tracing::debug!("no certificate for {name} on demand: {refused}");
                }
                self.waiting.decided(&name);
            }
            Errand::Replace(name, done) => {
                let outcome = self.revoke_and_replace(&name, now).await;
                match &outcome {
                    Ok(()) if issuer(&name) == Issuer::Local => tracing::info!("the certificate for {name} was replaced"),
                    Ok(()) => tracing::info!("the certificate for {name} was replaced, and the one before it revoked"),
                    Err(failure) => tracing::error!("the certificate for {name} was to be replaced and revoked: {failure}"),
                }
                // The caller may have gone.
                let _ = done.send(outcome);
            }
        }
    }

    /// Notes that somebody connects to a name that has no certificate. It is called from a handshake, and returns at once. If there may be
    /// a certificate soon, the receiver says when that is decided, one way or the other. There is no receiver where the name was refused or
    /// the order has failed.
    pub fn missed(&self, name: &str) -> Option<oneshot::Receiver<()>> {
        let entries = self.entries.lock();
        match entries.get(name) {
            // The client joins while the lock is held: the end of an order takes the lock first, and then tells those who wait.
            Some(entry) => (entry.busy && entry.certificate.is_none()).then(|| self.waiting.join(name))?.map(|(told, _)| told),
            None if self.demand.is_some() && is_host_name(name) && issuer(name) == Issuer::Acme => {
                let (told, is_first) = self.waiting.join(name)?;
                if is_first && self.errands.0.try_send(Errand::Demand(name.to_owned())).is_err() {
                    self.waiting.decided(name);
                    return None;
                }
                Some(told)
            }
            None => None,
        }
    }

    /// Asks a running keeper to do [`Keeper::revoke_and_replace`].
    ///
    /// # Errors
    /// Fails as that does; and when too many errands wait, or the keeper has ended.
    pub async fn replace(&self, name: &str) -> Result<(), Failure> {
        let (done, is_done) = oneshot::channel();
        let busy = |_| Failure::ours("too many certificates are being ordered").hint("try again in a minute");
        self.errands.0.try_send(Errand::Replace(name.to_owned(), done)).map_err(busy)?;
        is_done.await.unwrap_or_else(|_| Err(Failure::ours("nothing is ordered any more: Seawall is stopping")))
    }

    /// Does what is due at `now`, and returns when something is due again.
    pub async fn step(&self, now: Timestamp) -> Timestamp {
        if !self.folder.is_ours() {
            self.look_at_others();
            return now + LOOK_AT_OTHERS;
        }
        self.ask_for_windows(now).await;
        let due: Vec<String> = {
            let entries = self.entries.lock();
            entries.iter().filter(|(_, entry)| !entry.busy && entry.due(now) <= now).map(|(name, _)| name.clone()).collect()
        };
        stream::iter(due).for_each_concurrent(ORDERS, |name| async move { drop(self.obtain(&name, now).await) }).await;
        let entries = self.entries.lock();
        let next = |entry: &Entry| {
            let asks = entry.certificate.is_some().then_some(entry.ask_at);
            entry.due(now).min(asks.unwrap_or(Timestamp::from_millis(u64::MAX)))
        };
        entries.values().map(next).min().unwrap_or(now + LOOK_AT_LEAST)
    }

    fn look_at_others(&self) {
        for (name, entry) in &mut *self.entries.lock() {
            self.load_certificate(name, entry);
        }
    }

    /// Asks the authority when it would like its certificates renewed (RFC 9773): it may have revoked them.
    async fn ask_for_windows(&self, now: Timestamp) {
        let asked: Vec<(String, Certificate)> = {
            let entries = self.entries.lock();
            let due = entries.iter().filter(|(name, entry)| entry.ask_at <= now && issuer(name) == Issuer::Acme);
            due.filter_map(|(name, entry)| Some((name.clone(), entry.certificate.clone()?))).collect()
        };
        if asked.is_empty() {
            return;
        }
        let account = match self.account(&Heard::default()).await {
            Ok(account) => Some(account),
            Err(failure) => {
                tracing::debug!("no renewal information: {failure}");
                None
            }
        };
        for (name, certificate) in asked {
            let answer = match (&account, certificate.identifier()) {
                (Some(account), Some(id)) => account.renewal_info(&id).await,
                _ => Err(instant_acme::Error::Str("renewal information")),
            };
            let mut entries = self.entries.lock();
            let Some(entry) = entries.get_mut(&name) else { continue };
            match answer {
                Ok((info, again)) => {
                    let at = |at: time::OffsetDateTime| Timestamp::from_secs(u64::try_from(at.unix_timestamp()).unwrap_or_default());
                    let window = Window { start: at(info.suggested_window.start), end: at(info.suggested_window.end) };
                    if entry.schedule.window != Some(window) && window.end <= now {
                        let why = info.explanation_url.map(|url| format!(": {url}")).unwrap_or_default();
                        tracing::warn!("the authority wants the certificate for {name} replaced at once{why}");
                    }
                    entry.schedule.window = Some(window);
                    entry.ask_at = now + ask_again(again);
                }
                Err(error) => {
                    tracing::debug!("no renewal information for {name}: {error}");
                    entry.ask_at = now + ARI_LATER;
                }
            }
        }
    }

    /// Orders, stores and shows a certificate for `name`, and records the outcome.
    async fn obtain(&self, name: &str, now: Timestamp) -> Result<(), Failure> {
        let (mut schedule, old, twin_of) = {
            let mut entries = self.entries.lock();
            let Some(entry) = entries.get_mut(name).filter(|entry| !entry.busy) else { return Err(Failure::ours("it is being ordered")) };
            entry.busy = true;
            (entry.schedule.clone(), entry.certificate.clone(), entry.twin_of.clone())
        };
        let _busy = Busy { keeper: self, name };
        if let Some(main) = twin_of
            && !leads_to_the_same_place(name, &main).await
        {
            if let Some(entry) = self.entries.lock().get_mut(name) {
                entry.not_before = now + TWIN_LATER;
            }
            return Err(Failure::new(Fault::Validation, format!("{name} does not lead where {main} does")));
        }
        schedule.attempt(now);
        let outcome = match self.folder.write_history(name, &schedule.history) {
            // A certificate that cannot be stored would be ordered again at each start, until a rate limit is used up.
            Err(error) => {
                Err(Failure::ours(format!("nothing is ordered, because it could not be kept: {}", crate::failure::chain(&error))))
            }
            Ok(()) => match issuer(name) {
                Issuer::Local => self.root.issue(name, now),
                Issuer::Acme => self.order(name, old.as_ref(), schedule.failures(), now).await,
            },
        };
        let outcome = outcome.and_then(|certificate| {
            let kept = self.folder.write_certificate(name, certificate.pem());
            kept.map(|()| certificate).map_err(|error| Failure::ours(crate::failure::chain(&error)))
        });
        match outcome {
            Ok(certificate) => {
                schedule.succeeded(certificate.validity);
                self.show(name, &certificate);
                tracing::info!("certificate for {name}: valid until {}", date(certificate.validity.not_after));
                // Attempts that stay in the file could at worst delay the next one.
                let _ = self.folder.write_history(name, &schedule.history);
                if let Some(entry) = self.entries.lock().get_mut(name) {
                    *entry = Entry {
                        schedule,
                        certificate: Some(certificate),
                        ask_at: now,
                        busy: true,
                        twin_of: entry.twin_of.clone(),
                        ..*entry
                    };
                }
                Ok(())
            }
            Err(failure) => {
                let wait = if failure.fault == Fault::RateLimit { failure.wait.or(Some(RATE_LIMIT)) } else { failure.wait };
                schedule.failed(now, failure.to_string(), wait);
                let _ = self.folder.write_history(name, &schedule.history);
                complain(name, &failure, old.as_ref(), schedule.due(now), now);
                if let Some(entry) = self.entries.lock().get_mut(name) {
                    entry.schedule = schedule;
                }
                Err(failure)
            }
        }
    }

    async fn order(&self, name: &str, old: Option<&Certificate>, failures: u32, now: Timestamp) -> Result<Certificate, Failure> {
        let method = self.method(name, failures)?;
        let mut replaces = old.filter(|old| old.left(now) > Duration::ZERO).and_then(Certificate::identifier);
        let mut tries_left = 3;
        let pem = loop {
            tries_left -= 1;
            let heard = Heard::default();
            let account = match self.account(&heard).await {
                Err(failure) if failure.is_nonce() && tries_left > 0 => continue,
                account => account?,
            };
            // An authority without renewal information knows no such field (RFC 9773 §5).
            let knows_windows = self.entries.lock().get(name).is_some_and(|entry| entry.schedule.window.is_some());
            let ordering = Ordering {
                account: &account,
                heard: &heard,
                name,
                profile: self.options.profile.as_deref(),
                replaces: replaces.clone().filter(|_| knows_windows),
                method,
                challenges: &self.challenges,
                sink: &self.sink,
                hook: self.options.hook.as_ref(),
            };
            match ordering.certificate().await {
                Ok(pem) => break pem,
                Err(failure) if tries_left == 0 => return Err(failure),
                // The authority lost its accounts, or another one has taken its address.
                Err(failure) if failure.fault == Fault::Account => {
                    tracing::warn!("the authority does not know our account; another one is made");
                    self.folder.retire_account();
                }
                Err(failure) if failure.fault == Fault::Replaces => replaces = None,
                Err(failure) if failure.is_nonce() => {}
                Err(failure) => return Err(failure),
            }
        };
        let certificate = Certificate::from_pem(pem)
            .map_err(|error| Failure::new(Fault::Server, format!("the authority sent something that cannot be used: {error}")))?;
        if !certificate.covers(name) {
            return Err(Failure::new(Fault::Server, format!("the authority certified other names: {}", certificate.names.join(", "))));
        }
        if certificate.validity.not_after <= now || certificate.validity.not_before > now + HOUR {
            let from = date(certificate.validity.not_before);
            return Err(Failure::ours(format!("the certificate is valid from {from}, and by our clock it is {}", date(now)))
                .hint("is the clock of this machine right?"));
        }
        Ok(certificate)
    }

    /// Returns the method for the next attempt. A wildcard can be proven by DNS alone (RFC 8555 §7.1.3, and what authorities offer).
    fn method(&self, name: &str, failures: u32) -> Result<Method, Failure> {
        let is_wildcard = name.starts_with("*.");
        let usable: Vec<Method> = self.options.methods.iter().copied().filter(|method| !is_wildcard || *method == Method::Dns01).collect();
        let turn = usize::try_from(failures).unwrap_or_default();
        usable.get(turn % usable.len().max(1)).copied().ok_or_else(|| {
            let what = if is_wildcard { "a certificate for a wildcard needs dns-01" } else { "there is no way to prove the name" };
            Failure::ours(what).hint("set acme.dns_hook to a program that writes TXT records")
        })
    }

    /// Returns the account at the authority, which is registered at the first order.
    async fn account(&self, heard: &Heard) -> Result<instant_acme::Account, Failure> {
        let client = || Box::new(AcmeClient { transport: Arc::clone(&self.transport), heard: heard.clone() });
        let failed = |error: instant_acme::Error, doing: &str| Failure::of(&error, doing, heard.wait());
        let _one = self.registering.lock().await;
        let kept = self.folder.account().map_err(|error| Failure::ours(crate::failure::chain(&error)))?;
        if let Some(credentials) = kept.and_then(|kept| serde_json::from_str::<AccountCredentials>(&kept).ok()) {
            let builder = instant_acme::Account::builder_with_http(client());
            return builder.from_credentials(credentials).await.map_err(|error| failed(error, "the authority cannot be used"));
        }
        let contact = self.options.account.email.as_ref().map(|email| format!("mailto:{email}"));
        let new = NewAccount {
            contact: &contact.as_slice().iter().map(String::as_str).collect::<Vec<_>>(),
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let external = self.options.account.external.as_ref().map(|(id, key)| ExternalAccountKey::new(id.clone(), key));
        let builder = instant_acme::Account::builder_with_http(client());
        let made = builder.create(&new, self.options.directory.clone(), external.as_ref()).await;
        let (account, credentials) = made.map_err(|error| failed(error, "no account could be made"))?;
        let json = serde_json::to_string(&credentials).map_err(|error| Failure::ours(error.to_string()))?;
        self.folder.write_account(&json).map_err(|error| Failure::ours(crate::failure::chain(&error)))?;
        tracing::info!("made an account at {}", self.options.directory);
        Ok(account)
    }

    /// Replaces the certificate for `name`, whose key is no longer to be trusted, and then has the old one revoked. The folder says which
    /// one to revoke until that is done. When it is called again after a failure or a restart, it goes on where it stopped.
    ///
    /// # Errors
    /// Fails when no new certificate can be had; the old one is then neither revoked nor withdrawn. It also fails when the old one cannot
    /// be revoked.
    pub async fn revoke_and_replace(&self, name: &str, now: Timestamp) -> Result<(), Failure> {
        let old = self.entries.lock().get(name).and_then(|entry| entry.certificate.clone());
        let old = old.ok_or_else(|| Failure::ours(format!("there is no certificate for {name}")))?;
        if !self.folder.is_ours() {
            let hint = "revoke it by the Seawall that has the folder";
            return Err(Failure::ours("another Seawall orders the certificates of this folder").hint(hint));
        }
        if issuer(name) == Issuer::Local {
            // A local root has no list of revoked certificates.
            return self.obtain(name, now).await;
        }
        let Some(present) = old.key.cert.first() else { return self.obtain(name, now).await };
        let compromised = self.folder.compromised(name).map_or_else(|| present.clone(), CertificateDer::from);
        if compromised == *present {
            self.folder.write_compromised(name, present).map_err(|error| Failure::ours(crate::failure::chain(&error)))?;
            if let Err(failure) = self.obtain(name, now).await {
                self.folder.forget_compromised(name);
                return Err(failure);
            }
        }
        let heard = Heard::default();
        let account = self.account(&heard).await?;
        let request = RevocationRequest { certificate: &compromised, reason: Some(RevocationReason::KeyCompromise) };
        let revoked = account.revoke(&request).await;
        revoked.map_err(|error| Failure::of(&error, "the old certificate was not revoked", heard.wait()))?;
        self.folder.forget_compromised(name);
        Ok(())
    }

    /// Orders a certificate for a name that somebody connects to, if the operator's rules approve of it.
    ///
    /// # Errors
    /// Fails when they do not approve, a limit is reached, or the order fails.
    pub async fn demand(&self, name: &str, now: Timestamp) -> Result<(), Refused> {
        let demand = self.demand.as_ref().ok_or(Refused::NotApproved)?;
        if let Some(entry) = self.entries.lock().get(name) {
            return match (&entry.certificate, &entry.schedule.history.last_error) {
                (Some(_), _) => Ok(()),
                (None, Some(error)) => Err(Refused::Failed(error.clone())),
                (None, None) => Err(Refused::Busy),
            };
        }
        if !is_host_name(name) || issuer(name) == Issuer::Local {
            return Err(Refused::NoName);
        }
        if demand.is_refused(name, now) {
            return Err(Refused::NotApproved);
        }
        let _place = demand.permit()?;
        if !demand.matches(name) && !self.ask(demand, name).await? {
            demand.refuse(name, now);
            return Err(Refused::NotApproved);
        }
        let known = self.entries.lock().len();
        // A name on the disk was counted when it was ordered.
        let mut entry = self.load(name);
        entry.on_demand = true;
        let is_there = entry.certificate.as_ref().is_some_and(|certificate| certificate.left(now) > Duration::ZERO);
        if !is_there {
            demand.begin(known, now)?;
        }
        self.entries.lock().insert(name.to_owned(), entry);
        if is_there { Ok(()) } else { self.obtain(name, now).await.map_err(|failure| Refused::Failed(failure.to_string())) }
    }

    async fn ask(&self, demand: &Demand, name: &str) -> Result<bool, Refused> {
        let Some(url) = demand.ask() else { return Ok(false) };
        let separator = if url.contains('?') { '&' } else { '?' };
        let unasked = |why: String| Refused::Unasked(format!("{url} ({why})"));
        let request =
            Request::get(format!("{url}{separator}domain={name}")).body(Bytes::new()).map_err(|error| unasked(error.to_string()))?;
        let answer = self.transport.send(request).await.map_err(|error| unasked(error.to_string()))?;
        Ok(answer.status() == StatusCode::OK)
    }
}

impl Entry {
    fn due(&self, now: Timestamp) -> Timestamp {
        self.schedule.due(now).max(self.not_before)
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: BTreeSet<String> = self.entries.lock().keys().cloned().collect();
        f.debug_struct("Keeper").field("options", &self.options).field("names", &names).finish_non_exhaustive()
    }
}

/// Marks an order as running. However the order ends, dropping this lets the next one begin.
struct Busy<'a> {
    keeper: &'a Keeper,
    name: &'a str,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.keeper.entries.lock().get_mut(self.name) {
            entry.busy = false;
        }
        self.keeper.waiting.decided(self.name);
    }
}

/// Logs a failure, more urgently the nearer the end of the old certificate is.
fn complain(name: &str, failure: &Failure, old: Option<&Certificate>, next: Timestamp, now: Timestamp) {
    let next = date(next.max(now));
    match old {
        None => {
            tracing::error!("no certificate for {name}: {failure}. Until there is one, https://{name}/ does not work. Next attempt: {next}")
        }
        Some(old) if old.left(now) == Duration::ZERO => {
            tracing::error!("the certificate for {name} has ended, and browsers warn about it: {failure}. Next attempt: {next}");
        }
        Some(old) => {
            let days = old.left(now).as_secs() / (24 * 3600);
            let message = format!(
                "the certificate for {name} could not be renewed: {failure}. It is valid for {days} more days. Next attempt: {next}"
            );
            let lifetime = old.validity.not_after.since(old.validity.not_before);
            if old.left(now) < lifetime / 6 { tracing::error!("{message}") } else { tracing::warn!("{message}") }
        }
    }
}

fn date(at: Timestamp) -> String {
    httpdate::fmt_http_date(system_time(at))
}

/// Returns whether a name has a dot, and only letters, digits and hyphens: nothing else can be ordered, or put into a URL.
fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.contains('.') && name.split('.').all(label)
}

/// Returns whether an order for the twin can succeed: one that cannot costs a failed validation.
async fn leads_to_the_same_place(twin: &str, main: &str) -> bool {
    let addresses = async |name: &str| -> BTreeSet<IpAddr> {
        let found = tokio::net::lookup_host((name, 443)).await;
        found.map(|found| found.map(|address| address.ip()).collect()).unwrap_or_default()
    };
    !addresses(twin).await.is_disjoint(&addresses(main).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_host_names_are_ordered_on_demand() {
        for name in ["a.example.org", "xn--bcher-kva.example.org", "1.example.org"] {
            assert!(is_host_name(name), "{name}");
        }
        let long = format!("{}.example.org", "a".repeat(64));
        for name in
            ["example", "*.example.org", "a..example.org", "a.example.org.", "-a.example.org", "a_b.example.org", "a/b.c", "A.b", "", &long]
        {
            assert!(!is_host_name(name), "{name}");
        }
    }
}
