//! The tier behind memory and disk that several machines share, and whose turn it is to ask an origin.
//!
//! A page that another machine has fetched need not be fetched again. It is taken from the tier if it answers this request, if it is fresh, and if no
//! purge covers it since the machine that fetched it asked for it. No clock of another machine counts: a page comes with its age, and with the point in
//! the stream of purges up to which its machine had carried them out ([`TierPage::since`]).
//!
//! Where nothing of use is there, one machine asks the origin and the others wait for what it brings. Nobody waits longer than `collapse_wait`, and
//! whatever goes wrong costs a request to the origin and never an answer.
//!
//! In doubt (see [`Fence`](crate::Fence)) nothing is read or written. What is not for everybody never goes there: pages of members, answers to requests
//! with cookies or credentials, what a password protects, errors that a request may have brought on itself, parts, and what its origin has in a file.

use std::{cell::Cell, fmt, future::Future, pin::Pin, rc::Rc, sync::Arc, time::Duration};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use semantics::{
    Timestamp,
    reuse::{Reuse, SoftPurge, reuse},
    vary::Vary,
};
use store::{Content, Purged, Record as _, Scope};
use tokio::time::{Instant, timeout_at};

use crate::{Record, Shared, Stored, keep, proof, question::Question};

/// The most bytes that a page has beside its content: its key, its tags, its record.
pub const TIER_HEAD_MAX: usize = 48 << 10;
/// The longest time for which a page is kept there.
const KEPT_MAX: Duration = Duration::from_secs(86_400);
/// The version of what is written.
const VERSION: u8 = 1;
/// The most tags of a page that are believed.
const TAGS_MAX: usize = 4_096;

/// A result that comes later, and never late: each of these futures has a deadline of its own.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A tier that several machines share, as the pipeline sees it.
///
/// A name is the full key of a page, the same on all machines. It need not be kept from anybody here, but it may be long and says what was read: an
/// implementation hashes it with a secret.
pub trait Tier: Send + Sync + 'static {
    /// Returns the most bytes of a page that it takes, [`TIER_HEAD_MAX`] of them beside the content.
    fn page_bytes_max(&self) -> usize;

    /// Looks for a page. If there is none but one with the mark `known`, which was of no use, takes the turn to fetch it. `waited` is how long another
    /// machine has been waited for already.
    fn look(&self, name: &[u8], known: Option<u128>, waited: Duration) -> Later<TierLookup>;

    /// Writes a page and gives back the turn to fetch it, if this machine has that. `begun` is the generation of the store at which its fetch began,
    /// `lasts` is how long the page is of use. Returns at once; the page may not be written.
    fn put(&self, name: &[u8], page: Bytes, begun: u64, lasts: Duration);

    /// Removes a page. Returns at once.
    fn remove(&self, name: &[u8]);
}

/// The result of a look at the tier.
pub enum TierLookup {
    /// There is a page.
    Found(TierPage),
    /// There is none, and it is for this machine to fetch it.
    Turn(Box<dyn FetchTurn>),
    /// Another machine fetches it. When the future is ready, it is worth looking again.
    Wait(Later<()>),
    /// It is not for the tier to answer: it is away, slow, in doubt, or knows that the page is not for everybody.
    Away,
}

impl fmt::Debug for TierLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(page) => f.debug_tuple("Found").field(page).finish(),
            Self::Turn(_) => f.write_str("Turn"),
            Self::Wait(_) => f.write_str("Wait"),
            Self::Away => f.write_str("Away"),
        }
    }
}

/// A page as it lies in the tier, verified to be as a machine of this cluster wrote it.
#[derive(Debug, Clone)]
pub struct TierPage {
    /// The bytes that were written.
    pub page: Bytes,
    /// The generation of this machine's store at which everything had been purged that had been purged where the page was fetched, when its fetch
    /// began.
    pub since: u64,
    /// The time since it was written, by the tier's own clock.
    pub rested: Duration,
    /// A number that tells it from every other page that was written under its name.
    pub mark: u128,
}

/// The turn to fetch a page for all machines. It is given back when it is dropped, and the next machine that waits takes it.
pub trait FetchTurn: Send {
    /// Tells those who wait that what was fetched is not for all of them: they go to the origin at once. It changes nothing if the page was put.
    fn refuse(self: Box<Self>);
}

/// The turn of a fetch, if it has one.
#[derive(Default)]
pub(crate) struct TierTurn {
    held: Option<Box<dyn FetchTurn>>,
    answered: Cell<bool>,
}

impl TierTurn {
    /// Notes that the origin has answered or failed: if nothing is put then, nobody need wait for the next machine's turn.
    pub(crate) fn answered(&self) {
        self.answered.set(true);
    }
}

impl Drop for TierTurn {
    fn drop(&mut self) {
        if let Some(held) = self.held.take_if(|_| self.answered.get()) {
            held.refuse();
        }
    }
}

impl fmt::Debug for TierTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TierTurn").field("held", &self.held.is_some()).finish()
    }
}

/// The result of a look into the tier for a page that this machine does not have fresh.
#[derive(Debug)]
pub(crate) enum TierAnswer {
    /// Answer with it: another machine has fetched it. It is stored here now.
    Found(Arc<Stored>),
    /// Ask the origin.
    Ask(TierTurn),
}

impl Shared {
    /// Joins a tier that machines share. Only the first call counts. It must come before the first lease.
    pub fn join_tier(&self, tier: Box<dyn Tier>) {
        self.store.expect_others();
        let _ = self.tier.set(tier);
    }

    /// Returns the generation of the store, and whether all orders that were carried out here up to it are told to the other machines.
    #[must_use]
    pub fn told_up_to(&self) -> (u64, bool) {
        let generation = self.store.generation().number();
        (generation, self.fence.has_told_all())
    }
}

/// Seeks a page in the tier before the origin is asked. Waits while another machine fetches it, for at most `collapse_wait`.
pub(crate) async fn seek(shared: &Arc<Shared>, question: &Rc<Question>) -> TierAnswer {
    let Some(tier) = tier_for(shared, question).filter(|_| !question.wants.directives.no_cache) else {
        return TierAnswer::Ask(TierTurn::default());
    };
    let name = name(question);
    let began = Instant::now();
    let until = began + question.site.collapse.wait();
    let mut known = None;
    loop {
        match tier.look(&name, known, began.elapsed()).await {
            TierLookup::Found(page) => {
                let mark = page.mark;
                // The fence is asked first: a lease rests on purges that were carried out before.
                if !shared.fence.holds(shared.clock.now()) {
                    return TierAnswer::Ask(TierTurn::default());
                }
                if let Some(stored) = adopt(shared, question, &name, page) {
                    return TierAnswer::Found(keep::insert_here(shared, question, stored));
                }
                if known == Some(mark) || Instant::now() >= until {
                    // It would be shown once more, or replaced, forever.
                    return TierAnswer::Ask(TierTurn::default());
                }
                known = Some(mark);
            }
            TierLookup::Turn(held) => return TierAnswer::Ask(TierTurn { held: Some(held), answered: Cell::new(false) }),
            TierLookup::Wait(changed) => {
                if timeout_at(until, changed).await.is_err() || Instant::now() >= until || !shared.fence.holds(shared.clock.now()) {
                    return TierAnswer::Ask(TierTurn::default());
                }
            }
            TierLookup::Away => return TierAnswer::Ask(TierTurn::default()),
        }
    }
}

/// Offers what was stored here to the other machines.
pub(crate) fn offer(shared: &Shared, question: &Question, stored: &Stored) {
    let Some(tier) = tier_for(shared, question) else { return };
    let record = &stored.record;
    let Content::Memory(body) = &stored.body else { return };
    if body.len() > content_max(tier) || record.only_for.is_some() || record.part().is_some() || matches!(record.vary, Vary::Star) {
        return;
    }
    let now = shared.clock.now();
    let lasts = record.freshness.remaining(now).min(KEPT_MAX);
    // What was purged while it came is of no use to anybody.
    if lasts.is_zero() || shared.store.verdict(stored) != Purged::No {
        return;
    }
    let name = name(question);
    if let Some(page) = encode(&name, record, stored.scope(), body, now) {
        tier.put(&name, page, stored.begun().number(), lasts);
    }
}

/// Returns the most bytes of content that the other machines are offered.
pub(crate) fn content_bytes_max(shared: &Shared) -> u64 {
    shared.tier.get().map_or(0, |tier| content_max(&**tier) as u64)
}

fn content_max(tier: &dyn Tier) -> usize {
    tier.page_bytes_max().saturating_sub(TIER_HEAD_MAX)
}

/// Removes a page of which the origin has said that it has ended.
pub(crate) fn end(shared: &Shared, question: &Question) {
    if let Some(tier) = shared.tier.get().filter(|_| question.site.is_shared && !question.key.is_empty()) {
        tier.remove(&name(question));
    }
}

/// Returns the tier, if it may have the page that this question asks for.
fn tier_for<'a>(shared: &'a Shared, question: &Question) -> Option<&'a dyn Tier> {
    let tier = shared.tier.get()?;
    let site = &question.site;
    let is_behind_a_password = site.auth.as_ref().is_some_and(|auth| auth.paths.covers(question.uri.path()));
    let is_for_all = site.is_shared && !is_behind_a_password && !question.key.is_empty() && question.is_shareable();
    (is_for_all && !proof::is_forbidden(shared, question) && shared.fence.holds(shared.clock.now())).then_some(&**tier)
}

/// Makes the name of a page. The number of a site is this machine's own, so its name stands there instead.
fn name(question: &Question) -> Vec<u8> {
    let rest = question.key.get(2..).unwrap_or_default();
    let site = question.site.name.as_bytes();
    let length = u32::try_from(site.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[..], site, rest].concat()
}

/// Makes a stored response of a page, if it answers the question: it is the page of this name, fits the fields of the request, is fresh, and was not
/// purged.
fn adopt(shared: &Shared, question: &Question, name: &[u8], page: TierPage) -> Option<Stored> {
    let now = shared.clock.now();
    let TierPageRead { record, tags, age, body } = decode(name, page.page)?;
    let record = record.aged(now, age + page.rested);
    let fits = record.vary.matches(&question.fields()) && record.only_for.is_none() && body.len() as u64 <= question.site.object_max;
    if !fits || reuse(&question.wants.directives, &record.freshness, SoftPurge::None, now) != Reuse::Fresh {
        return None;
    }
    let (site, url) = question.url();
    shared.store.adopt(record, body, page.since, Scope { site, url: url.into(), tags })
}

/// A page, read.
struct TierPageRead {
    record: Record,
    tags: Box<[Box<str>]>,
    /// The time between its arrival and its writing.
    age: Duration,
    body: Bytes,
}

/// Writes a page: version, age, name, tags, record, and the content to the end. Returns `None` if all but the content is too long.
fn encode(name: &[u8], record: &Record, scope: &Scope, body: &Bytes, now: Timestamp) -> Option<Bytes> {
    let mut head = Vec::with_capacity(1024);
    record.encode(&mut head);
    let tags: usize = scope.tags.iter().map(|tag| tag.len() + 4).sum();
    let length = name.len() + head.len() + tags + 32;
    if length > TIER_HEAD_MAX || scope.tags.len() > TAGS_MAX {
        return None;
    }
    let mut out = BytesMut::with_capacity(length + body.len());
    out.put_u8(VERSION);
    out.put_u64(u64::try_from(now.since(record.freshness.response_time).as_millis()).unwrap_or(u64::MAX));
    put(&mut out, name);
    out.put_u32(u32::try_from(scope.tags.len()).ok()?);
    for tag in &scope.tags {
        put(&mut out, tag.as_bytes());
    }
    put(&mut out, &head);
    out.extend_from_slice(body);
    Some(out.freeze())
}

fn put(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(bytes);
}

/// Reads a page. `None`: it is that of another name, or another version wrote it.
fn decode(name: &[u8], mut page: Bytes) -> Option<TierPageRead> {
    if page.try_get_u8().ok()? != VERSION {
        return None;
    }
    let age = Duration::from_millis(page.try_get_u64().ok()?);
    if take(&mut page)? != name {
        return None;
    }
    let count = usize::try_from(page.try_get_u32().ok()?).ok().filter(|count| *count <= TAGS_MAX)?;
    let tags = (0..count).map(|_| Some(std::str::from_utf8(&take(&mut page)?).ok()?.into())).collect::<Option<Vec<Box<str>>>>()?;
    let record = Record::decode(&take(&mut page)?)?;
    Some(TierPageRead { record, tags: tags.into(), age, body: Bytes::copy_from_slice(&page) })
}

fn take(page: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(page.try_get_u32().ok()?).ok()?;
    (length <= page.len()).then(|| page.split_to(length))
}
