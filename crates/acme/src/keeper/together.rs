//! Certificates of several machines: each is ordered once, and all have it.
//!
//! For each name, the shelf has one record: the certificate, what was tried, and who may put the next certificate there. Whoever wants to order
//! takes the name's lock, so that one machine orders at a time. A lock can end while its holder sleeps. So the holder also writes a claim into the record, and
//! puts its certificate there only while the claim is still its own: the result of one that comes late is refused.
//!
//! Without the shelf each machine goes on with what its disk has. It orders alone only when a certificate is needed soon.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use semantics::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Keeper, ORDERS, attempt::date, entries::Entry};
use crate::{
    board::Board,
    certificate::Certificate,
    failure::{Failure, Fault},
    folder::slug,
    name::{Issuer, issuer},
    order::validation_certificate,
    schedule::{History, Schedule},
    shelf::{Shelf, ShelfError, ShelfLock, Version},
};

/// The time for which a lock lasts that is not renewed: an orderer that dies delays the others for so long.
const LOCK: Duration = Duration::from_secs(20);
/// The time between two renewals of a lock.
const RENEW: Duration = Duration::from_secs(5);
/// The time between two looks for what other machines have ordered.
const LOOK: Duration = Duration::from_secs(5);
/// The time after which all names are looked at, even if nothing is said to be new.
const LOOK_AT_ALL: Duration = Duration::from_secs(10 * 60);
/// The time after which a name is looked at again that another machine orders.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The time for which the shelf has to be out of reach before a machine orders alone.
const ALONE_AFTER: Duration = Duration::from_secs(60);
/// The time between two tries to reach the shelf when a certificate is due.
const REACH_AGAIN: Duration = Duration::from_secs(2);
/// The time for which the shelf is out of reach before that is told: at the start, it is not there yet.
const TOLD_AFTER: Duration = Duration::from_secs(4);
/// The pause between two look-ups of challenges.
const LOOKUP_PAUSE: Duration = Duration::from_millis(20);
/// The number of times that a change of a record is tried.
const TRIES: usize = 5;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The time that the account stays on the shelf after it was last used.
const KEEP_ACCOUNT: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// The time that a record stays without a certificate, or after the certificate's end.
const KEEP_RECORD: Duration = Duration::from_secs(9 * 24 * 60 * 60);

/// The machines' common shelf, as a keeper uses it.
pub(super) struct SharedShelf {
    pub(super) shelf: Arc<dyn Shelf>,
    /// The first part of all names on the shelf: each authority has its own.
    prefix: String,
    pub(super) board: Board,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The value that the shelf said was new at the last look.
    news: Option<Vec<u8>>,
    /// The time at which all names were looked at.
    looked_at: Timestamp,
    unreachable_since: Option<Timestamp>,
    is_told: bool,
    /// The time at which this keeper began: what failed before it is no reason to wait.
    began: Option<Timestamp>,
}

/// Holds what the shelf has for one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// The number of the claim: it only rises.
    claim: u64,
    /// A random number of whoever made the claim.
    holder: u64,
    /// The key and the chain, PEM.
    pem: Option<String>,
    /// The attempts of all machines.
    #[serde(default)]
    history: History,
    /// The number of failures in a row, and the second of the last one.
    #[serde(default)]
    failures: u32,
    #[serde(default)]
    failed_at: u64,
}

/// The right to order a certificate and to put it on the shelf.
pub(super) struct Claim {
    name: String,
    number: u64,
    holder: u64,
    lock: Box<dyn ShelfLock>,
}

/// The reason why a certificate is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderReason {
    /// Its time has come.
    Due,
    /// Somebody connects to the name, and waits.
    Demand,
    /// The key is no longer to be trusted.
    Replace,
}

/// Says what a machine has to do for a name.
pub(super) enum Turn {
    /// It orders.
    Order(Claim),
    /// It orders though it cannot know what others do.
    OrderAlone,
    /// It takes the certificate that another machine ordered.
    Take(Box<Certificate>),
    /// It does nothing before this time, for this reason.
    Wait(Failure, Timestamp),
}

impl SharedShelf {
    pub(super) fn new(shelf: Arc<dyn Shelf>, directory: &str) -> Self {
        let prefix = format!("acme/{}", slug(directory));
        let board = Board { shelf: Arc::clone(&shelf), name: format!("{prefix}/challenges") };
        Self { shelf, prefix, board, state: Mutex::default() }
    }

    fn named(&self, name: &str) -> String {
        format!("{}/name/{name}", self.prefix)
    }

    /// Returns what the shelf has for a name. What nobody can read counts as nothing, and is replaced by the next certificate.
    async fn record(&self, name: &str) -> Result<Option<(Record, Before)>, ShelfError> {
        match self.shelf.get(&self.named(name)).await {
            Ok(Some(shelved)) => {
                let record = serde_json::from_slice(&shelved.value).unwrap_or_else(|error| {
                    tracing::warn!("what the machines share about {name} cannot be read, and is replaced: {error}");
                    Record::default()
                });
                Ok(Some((record, Before::Is(shelved.version))))
            }
            Ok(None) => Ok(None),
            Err(ShelfError::Foreign(why)) => {
                tracing::warn!("what the machines share about {name} is replaced: {why}");
                Ok(Some((Record::default(), Before::Whatever)))
            }
            Err(error) => Err(error),
        }
    }

    /// Puts a record in the place of what was read. Returns `false` if it has changed meanwhile.
    async fn put(&self, name: &str, before: Option<&Before>, record: &Record, left: Duration) -> Result<bool, ShelfError> {
        let value = serde_json::to_vec(record).unwrap_or_default();
        let (place, keep) = (self.named(name), left + KEEP_RECORD);
        match before {
            None => self.shelf.swap(&place, None, value, keep).await,
            Some(Before::Is(version)) => self.shelf.swap(&place, Some(version), value, keep).await,
            Some(Before::Whatever) => self.shelf.put(&place, value, keep).await.map(|()| true),
        }
    }

    /// Puts the outcome of an order on the shelf. Returns `false` if it is refused, because another machine has claimed the name since.
    async fn settle(&self, claim: &Claim, outcome: Outcome<'_>) -> Result<bool, ShelfError> {
        for _ in 0..TRIES {
            let found = self.record(&claim.name).await?;
            let (mut record, before) = found.map_or_else(|| (claim.record(), None), |(record, before)| (record, Some(before)));
            // A record that nobody can read has no claim.
            let is_ours = matches!(before, Some(Before::Whatever)) || (record.claim, record.holder) == (claim.number, claim.holder);
            if !is_ours {
                return Ok(false);
            }
            (record.claim, record.holder) = (claim.number, claim.holder);
            let left = match outcome {
                Outcome::Certificate(certificate, now) => {
                    record = Record { pem: Some(certificate.pem().to_owned()), ..claim.record() };
                    certificate.left(now)
                }
                Outcome::Failure(schedule) => {
                    record.learn_from(schedule);
                    KEEP_RECORD
                }
            };
            if self.put(&claim.name, before.as_ref(), &record, left).await? {
                return Ok(true);
            }
        }
        Err(ShelfError::Unreachable(format!("the record of {} changes all the time", claim.name)))
    }

    /// Tells the other machines that there is a certificate which they do not have.
    async fn tell(&self) {
        let mut news = [0; 16];
        if getrandom::fill(&mut news).is_err() {
            return;
        }
        // Who does not hear of it finds it at the next look at everything.
        if let Err(error) = self.shelf.put(&self.news(), news.to_vec(), 30 * DAY).await {
            tracing::debug!("the other machines could not be told of a certificate: {error}");
        }
    }

    fn news(&self) -> String {
        format!("{}/news", self.prefix)
    }

    /// Returns the account that the machines share, as JSON. `own` is the one on this disk: it becomes theirs if they have none.
    pub(super) async fn account(&self, own: Option<&str>) -> Result<Option<String>, ShelfError> {
        let place = self.account_place();
        for _ in 0..TRIES {
            let before = match self.shelf.get(&place).await {
                Err(ShelfError::Foreign(why)) => {
                    tracing::warn!("the account that the machines share is replaced: {why}");
                    let Some(own) = own else { return Ok(None) };
                    self.shelf.put(&place, own.as_bytes().to_vec(), KEEP_ACCOUNT).await?;
                    return Ok(Some(own.to_owned()));
                }
                before => before?,
            };
            let theirs = before.as_ref().filter(|before| !before.value.is_empty());
            if let Some(theirs) = theirs.and_then(|theirs| String::from_utf8(theirs.value.clone()).ok()) {
                return Ok(Some(theirs));
            }
            let Some(own) = own else { return Ok(None) };
            let version = before.as_ref().map(|before| &before.version);
            if self.shelf.swap(&place, version, own.as_bytes().to_vec(), KEEP_ACCOUNT).await? {
                return Ok(Some(own.to_owned()));
            }
        }
        Err(ShelfError::Unreachable("the account changes all the time".to_owned()))
    }

    /// Removes the account, which its authority does not know, if it is this one.
    pub(super) async fn retire_account(&self, own: &str) -> Result<(), ShelfError> {
        let place = self.account_place();
        if let Some(before) = self.shelf.get(&place).await?.filter(|before| before.value == own.as_bytes()) {
            self.shelf.swap(&place, Some(&before.version), Vec::new(), KEEP_ACCOUNT).await?;
        }
        Ok(())
    }

    /// Takes the lock under which an account is made.
    pub(super) async fn lock_account(&self) -> Result<Option<Box<dyn ShelfLock>>, ShelfError> {
        self.shelf.lock(&self.account_place(), LOCK).await
    }

    fn account_place(&self) -> String {
        format!("{}/account", self.prefix)
    }

    /// Notes that the shelf was reached, or that it was not.
    fn note(&self, is_reached: bool, now: Timestamp) {
        let mut state = self.state.lock();
        if is_reached {
            state.unreachable_since = None;
            if std::mem::take(&mut state.is_told) {
                tracing::info!("the certificates that the machines share can be reached again");
            }
            return;
        }
        let since = *state.unreachable_since.get_or_insert(now);
        if now.since(since) >= TOLD_AFTER && !std::mem::replace(&mut state.is_told, true) {
            tracing::warn!("the certificates that the machines share cannot be reached; what this machine has is served");
        }
    }

    /// Decides what to do when the shelf cannot be reached.
    fn unreached(&self, error: &ShelfError, old: Option<&Certificate>, why: OrderReason, now: Timestamp) -> Turn {
        self.note(false, now);
        let since = self.state.lock().unreachable_since.unwrap_or(now);
        let is_needed = old.is_none_or(|old| old.left(now) < old.validity.not_after.since(old.validity.not_before) / 6);
        if why == OrderReason::Replace || (is_needed && now.since(since) >= ALONE_AFTER) {
            return Turn::OrderAlone;
        }
        Turn::Wait(Failure::new(Fault::Elsewhere, format!("nothing is ordered for now: {error}")), now + REACH_AGAIN)
    }
}

/// Says what was in the place of a record.
enum Before {
    Is(Version),
    /// Something that nobody can read.
    Whatever,
}

enum Outcome<'a> {
    Certificate(&'a Certificate, Timestamp),
    Failure(&'a Schedule),
}

impl Record {
    fn learn_from(&mut self, schedule: &Schedule) {
        self.history = schedule.history.clone();
        (self.failures, self.failed_at) = (schedule.failures(), schedule.last_failure().as_secs());
    }

    /// Returns the certificate, if it can still be used for the name.
    fn certificate(&self, name: &str, now: Timestamp) -> Option<Certificate> {
        let certificate = Certificate::from_pem(self.pem.clone()?);
        let usable = certificate.ok().filter(|certificate| certificate.covers(name));
        if usable.is_none() {
            tracing::warn!("the certificate that the machines share for {name} cannot be used");
        }
        usable.filter(|certificate| certificate.left(now) > Duration::ZERO)
    }
}

impl Claim {
    fn record(&self) -> Record {
        Record { claim: self.number, holder: self.holder, ..Record::default() }
    }

    /// Keeps the lock, and is ready when it is lost. While the shelf cannot be reached nobody else can take it either.
    pub(super) async fn lost(&self) {
        loop {
            tokio::time::sleep(RENEW).await;
            if self.lock.renew(LOCK).await == Ok(false) {
                return;
            }
        }
    }
}

/// Returns whether the shelf's certificate takes the place of this machine's own. Of two that begin in the same second, the shelf's counts.
fn replaces(theirs: &Certificate, ours: Option<&Certificate>) -> bool {
    ours.is_none_or(|ours| theirs.pem() != ours.pem() && theirs.validity.not_before >= ours.validity.not_before)
}

impl Keeper {
    /// Shares certificates, account and challenges with the machines that have the same shelf.
    #[must_use]
    pub fn together(mut self, shelf: Arc<dyn Shelf>) -> Self {
        self.together = Some(SharedShelf::new(shelf, &self.options.directory));
        // A machine that has just begun to listen may be asked before its keeper runs.
        self.challenges.lookups().announce();
        self
    }

    /// Decides who orders the certificate for a name. If that is this machine, the attempt is in the schedule, and written down for all.
    pub(super) async fn turn(
        &self,
        together: &SharedShelf,
        name: &str,
        old: Option<&Certificate>,
        why: OrderReason,
        schedule: &mut Schedule,
        now: Timestamp,
    ) -> Turn {
        let turn = self.try_turn(together, name, old, why, schedule, now).await;
        match turn {
            Ok(turn) => {
                together.note(true, now);
                turn
            }
            Err(error) => together.unreached(&error, old, why, now),
        }
    }

    async fn try_turn(
        &self,
        together: &SharedShelf,
        name: &str,
        old: Option<&Certificate>,
        why: OrderReason,
        schedule: &mut Schedule,
        now: Timestamp,
    ) -> Result<Turn, ShelfError> {
        let theirs = |found: &Option<(Record, Before)>| {
            let theirs = found.as_ref()?.0.certificate(name, now)?;
            replaces(&theirs, old).then(|| Turn::Take(Box::new(theirs)))
        };
        if let Some(take) = theirs(&together.record(name).await?) {
            return Ok(take);
        }
        let elsewhere = || {
            let failure = Failure::new(Fault::Elsewhere, format!("another machine is ordering the certificate for {name}"));
            Turn::Wait(failure, now + LOOK_AGAIN)
        };
        let Some(lock) = together.shelf.lock(&together.named(name), LOCK).await? else { return Ok(elsewhere()) };
        let turn = async {
            // Whoever had the lock before may have finished since.
            let found = together.record(name).await?;
            if let Some(take) = theirs(&found) {
                return Ok(Err(take));
            }
            let (mut record, before) = found.map_or_else(Default::default, |(record, before)| (record, Some(before)));
            let began = *together.state.lock().began.get_or_insert(now);
            schedule.learn(&record.history, record.failures, Timestamp::from_secs(record.failed_at), began, now);
            let free_from = schedule.free_from(now);
            if why != OrderReason::Replace && free_from > now {
                let failure = Failure::new(Fault::Elsewhere, "other machines have tried, and failed, as often as it is good");
                return Ok(Err(Turn::Wait(failure, free_from)));
            }
            schedule.attempt(now);
            (record.claim, record.holder) = (lock.number().max(record.claim + 1), holder());
            record.history = schedule.history.clone();
            let is_put = together.put(name, before.as_ref(), &record, old.map_or(KEEP_RECORD, |old| old.left(now))).await?;
            Ok(if is_put { Ok((record.claim, record.holder)) } else { Err(elsewhere()) })
        };
        let turn: Result<Result<(u64, u64), Turn>, ShelfError> = turn.await;
        match turn {
            Ok(Ok((number, holder))) => Ok(Turn::Order(Claim { name: name.to_owned(), number, holder, lock })),
            other => {
                // It ends by itself if it cannot be given back.
                let _ = lock.release().await;
                other.map(|turn| turn.err().unwrap_or_else(elsewhere))
            }
        }
    }

    /// Puts the certificate on the shelf. Fails if it comes too late: another machine has claimed the name.
    pub(super) async fn settle(
        &self,
        together: &SharedShelf,
        claim: &Claim,
        certificate: &Certificate,
        now: Timestamp,
    ) -> Result<(), Failure> {
        match together.settle(claim, Outcome::Certificate(certificate, now)).await {
            Ok(true) => {
                together.tell().await;
                Ok(())
            }
            Ok(false) => {
                tracing::warn!("the certificate for {} came too late: another machine orders it, and this one is not used", claim.name);
                Err(Failure::new(Fault::Elsewhere, "another machine has taken over the order"))
            }
            Err(error) => {
                tracing::warn!("the other machines get the certificate for {} later: {error}", claim.name);
                Ok(())
            }
        }
    }

    /// Tells the other machines that the attempt failed, so that they do not repeat it at once.
    pub(super) async fn settle_failure(&self, together: &SharedShelf, claim: &Claim, schedule: &Schedule) {
        if let Err(error) = together.settle(claim, Outcome::Failure(schedule)).await {
            tracing::debug!("the other machines could not be told of a failed order: {error}");
        }
    }

    /// Gives the lock back.
    pub(super) async fn give_back(&self, claim: Claim) {
        if let Err(error) = claim.lock.release().await {
            tracing::debug!("a lock ends by itself: {error}");
        }
    }

    /// Looks for certificates that other machines have ordered, and puts those on the shelf that only this machine has. Returns when to look again.
    pub async fn look(&self, now: Timestamp) -> Timestamp {
        let Some(together) = &self.together else { return now + LOOK_AT_ALL };
        // Another process with the same folder looks, and this one finds what it keeps.
        if !self.folder.is_ours() {
            return now + LOOK;
        }
        together.state.lock().began.get_or_insert(now);
        let news = match together.shelf.get(&together.news()).await {
            Ok(news) => news.map(|news| news.value),
            Err(ShelfError::Foreign(_)) => None,
            Err(ShelfError::Unreachable(_)) => {
                together.note(false, now);
                return now + LOOK;
            }
        };
        together.note(true, now);
        let is_new = {
            let state = together.state.lock();
            state.news != news || now.since(state.looked_at) >= LOOK_AT_ALL || state.looked_at == Timestamp::default()
        };
        if is_new {
            let names: Vec<String> = self.entries.lock().keys().filter(|name| issuer(name) == Issuer::Acme).cloned().collect();
            let looks = stream::iter(names).map(|name| async move { self.look_at(together, &name, now).await }).buffer_unordered(ORDERS);
            let outcomes: Vec<Result<bool, ShelfError>> = looks.collect().await;
            if outcomes.contains(&Ok(true)) {
                together.tell().await;
            }
            if outcomes.iter().all(Result::is_ok) {
                let mut state = together.state.lock();
                (state.news, state.looked_at) = (news, now);
            }
        }
        now + LOOK
    }

    /// Takes the shelf's certificate for a name, or puts the own one there. Returns whether the latter was done.
    async fn look_at(&self, together: &SharedShelf, name: &str, now: Timestamp) -> Result<bool, ShelfError> {
        let ours = {
            let entries = self.entries.lock();
            let Some(entry) = entries.get(name) else { return Ok(false) };
            if entry.busy {
                // It is being ordered here or elsewhere, and looked at by whoever is at it.
                return Err(ShelfError::Unreachable("it is being ordered".to_owned()));
            }
            entry.certificate.clone()
        };
        let found = together.record(name).await?;
        let theirs = found.as_ref().and_then(|(record, _)| record.certificate(name, now));
        match (theirs, ours) {
            (Some(theirs), ours) if replaces(&theirs, ours.as_ref()) => {
                let mut entries = self.entries.lock();
                // It may have got another one meanwhile.
                let is_same = |entry: &&mut Entry| entry.certificate.as_ref().map(Certificate::pem) == ours.as_ref().map(Certificate::pem);
                if let Some(entry) = entries.get_mut(name).filter(is_same) {
                    self.take(name, theirs, entry, now);
                }
                drop(entries);
                self.waiting.decided(name);
                Ok(false)
            }
            (Some(theirs), Some(ours)) if theirs.pem() == ours.pem() => Ok(false),
            (_, Some(ours)) if ours.left(now) > Duration::ZERO && self.folder.compromised(name).is_none() => {
                let (record, before) = found.map_or_else(Default::default, |(record, before)| (record, Some(before)));
                let record = Record { pem: Some(ours.pem().to_owned()), ..record };
                together.put(name, before.as_ref(), &record, ours.left(now)).await
            }
            _ => Ok(false),
        }
    }

    /// Keeps and shows a certificate that another machine ordered.
    pub(super) fn take(&self, name: &str, certificate: Certificate, entry: &mut Entry, now: Timestamp) {
        if let Err(error) = self.folder.write_certificate(name, certificate.pem()) {
            tracing::error!("the certificate for {name} is used and not kept: {}", crate::failure::chain(&error));
        }
        entry.schedule.succeeded(certificate.validity);
        let _ = self.folder.write_history(name, &entry.schedule.history);
        self.show(name, &certificate);
        let until = date(certificate.validity.not_after);
        tracing::info!("took the certificate for {name} that another machine ordered: valid until {until}");
        entry.certificate = Some(certificate);
        entry.ask_at = now;
        entry.not_before = Timestamp::default();
    }

    /// Looks up the challenges of other machines for authorities that ask this one, until the keeper ends.
    pub(super) async fn look_up_challenges(&self) {
        let Some(together) = &self.together else { return std::future::pending().await };
        let looking = self.challenges.lookups().open();
        let mut shown = ChallengesShown { keeper: self, digests: Vec::new() };
        loop {
            let number = looking.asked().await;
            match together.board.read().await {
                Ok(posted) => {
                    self.challenges.others_answer(&posted);
                    shown.show(posted.iter().filter_map(crate::board::Posted::digest));
                }
                Err(error) => tracing::debug!("the challenges of the other machines could not be looked up: {error}"),
            }
            looking.done(number);
            tokio::time::sleep(LOOKUP_PAUSE).await;
        }
    }
}

/// The certificates that answer other machines' challenges in handshakes.
struct ChallengesShown<'a> {
    keeper: &'a Keeper,
    digests: Vec<(String, Vec<u8>)>,
}

impl ChallengesShown<'_> {
    fn show<'p>(&mut self, posted: impl Iterator<Item = (&'p str, Vec<u8>)>) {
        let posted: Vec<(String, Vec<u8>)> =
            posted.filter(|(name, _)| !self.keeper.challenges.is_own_name(name)).map(|(name, digest)| (name.to_owned(), digest)).collect();
        for (name, digest) in posted.iter().filter(|posted| !self.digests.contains(posted)) {
            match validation_certificate(name, digest) {
                Ok(key) => self.keeper.sink.answer_challenge(name, Arc::new(key)),
                Err(error) => tracing::debug!("a challenge for {name} cannot be answered: {error}"),
            }
        }
        for (name, _) in &self.digests {
            if !posted.iter().any(|(other, _)| other == name) && !self.keeper.challenges.is_own_name(name) {
                self.keeper.sink.end_challenge(name);
            }
        }
        self.digests = posted;
    }
}

impl Drop for ChallengesShown<'_> {
    fn drop(&mut self) {
        self.show(std::iter::empty());
    }
}

fn holder() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness the number of the claim alone tells them apart.
    getrandom::fill(&mut bytes).map_or(0, |()| u64::from_le_bytes(bytes))
}
