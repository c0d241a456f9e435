//! The two-visitor proof: before a page is stored for the first time, it is fetched once more, as another visitor would.
//!
//! A page that was made for one visitor looks like any other one: no field tells, if its maker forgot to say so. But the same request
//! brings another page to somebody else. So the first response goes to its own client alone, and those who ask meanwhile wait; when it is
//! whole, it is fetched again, without a cookie and from nobody's address. If the bodies are the same, they get it, and it is stored. If not,
//! the first visitor asks once more: some servers make a page differently the first time (a Ghost that has just started names the original
//! of a post's picture, and later the smaller one), so if the second visit and the third bring the same, the newest is stored. Otherwise
//! nobody but its own client has seen it, and everybody asks alone for a while.
//!
//! An answer of another kind (a redirect, a refusal, a page that is gone) is another page, too. Only an origin that fails at the second visit
//! leaves the page stored as it would be without a proof.

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr},
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{HeaderMap, Method, StatusCode};
use http_body::Body as _;
use policy::KeepTerms;
use semantics::coding::media_type;
use store::{FlightGuard, Generation};
use tokio::{sync::oneshot, time::timeout};

use crate::{
    Client, Failure, Pipeline, Record, Shared, Stored,
    collapse::LOOK,
    forward,
    keep::{self, ContentFacts, ContentTag, NotStored, ResponseHead},
    learnt::not_kept::{self, Cause},
    question::Question,
    tier,
};

/// The longest page that is proven, in bytes: a proof holds up to three of them. No page that people read comes near.
pub(crate) const PAGE_MAX: u64 = 2 << 20;
/// Proofs that a worker makes at once. The bodies of their visits take up to 8 MiB.
const PROOFS_MAX: usize = 2;
/// Pages of a worker that are held back at once, while they are fetched and until it is their turn to be proven. Their bodies take up to 64 MiB;
/// a page of 100 KiB, which is a long one, 3 MiB. Further ones are not stored.
const HELD_MAX: usize = 32;
/// The number of these places that are kept for pages that somebody waits for.
const HELD_FOR_WAITING: usize = 8;
/// The least time for which a request waits for a page that is being proven, before it asks alone.
const PATIENCE_MIN: Duration = Duration::from_secs(1);
/// The patience of a request with a page that is being proven, in times of what the first visit took.
const PATIENCE: u32 = 4;
/// The longest time that a page waits for its turn. After a restart, readers ask for many pages that were not proven yet.
const TURN_MAX: Duration = Duration::from_secs(5);
/// The longest time that another visit may take.
const VISIT_MAX: Duration = Duration::from_secs(5);
/// The time for which a page that differs is asked for by everybody alone. Then it is proven anew.
const DIFFERS_FOR: Duration = Duration::from_secs(600);
/// The time for which a page is asked for by everybody alone whose first two visits differ, and whose third visit failed.
const UNDECIDED_FOR: Duration = Duration::from_secs(60);
/// The time for which a page is asked for by everybody alone whose proof found no time. The next request after it tries again.
const BUSY_FOR: Duration = Duration::from_secs(2);
/// The interval at which a site may be warned about.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// The characters of each side of a difference that are shown.
const SHOWN_MAX: usize = 60;
/// The bytes before a difference that are shown, as they are the same for everybody.
const BEFORE_MAX: usize = 32;
/// The bytes in which the end of a difference is looked for.
const SEARCHED_MAX: usize = 256;
/// The bytes that have to be the same again for a difference to be over.
const SAME_AGAIN: usize = 8;

/// The results of two-visitor proofs, as they are named in metrics.
pub const PROOF_RESULTS: [&str; 6] = ["same", "warm-up", "differs", "failed", "skipped", "overtaken"];

/// The result of a two-visitor proof, in the order of [`PROOF_RESULTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProofResult {
    Same,
    /// The first visit brought another page than the two after it.
    WarmUp,
    Differs,
    /// Another visit brought no page.
    Failed,
    /// The origin or the worker had no time, or the page was too long. It is not stored, unless it was proven before.
    Skipped,
    /// Something was purged meanwhile, and the pages differ.
    Overtaken,
}

/// The proofs of a worker.
#[derive(Default)]
pub(crate) struct Proving {
    /// The pages that are held back.
    held: Cell<usize>,
    /// The proofs that are being made.
    made: Cell<usize>,
    /// The pages that wait for their turn, in the order in which they came: no more than are held back.
    queue: RefCell<Vec<InQueue>>,
}

/// A page that waits for its turn.
struct InQueue {
    /// Counts the requests that wait for the page.
    followers: Box<dyn Fn() -> usize>,
    turn: oneshot::Sender<ProofTurn>,
}

/// The right to make a proof. Dropping it passes it on to the page that most requests wait for.
struct ProofTurn(Rc<Pipeline>);

impl ProofTurn {
    /// Waits for a turn, for no longer than [`TURN_MAX`].
    async fn of(pipeline: &Rc<Pipeline>, followers: impl Fn() -> usize + 'static) -> Option<Self> {
        let Proving { made, queue, .. } = &pipeline.proving;
        if made.get() < PROOFS_MAX {
            made.set(made.get() + 1);
            return Some(Self(Rc::clone(pipeline)));
        }
        let (turn, comes) = oneshot::channel();
        queue.borrow_mut().push(InQueue { followers: Box::new(followers), turn });
        timeout(TURN_MAX, comes).await.ok()?.ok()
    }
}

impl Drop for ProofTurn {
    fn drop(&mut self) {
        let proving = &self.0.proving;
        let next = {
            let mut queue = proving.queue.borrow_mut();
            queue.retain(|page| !page.turn.is_closed());
            // The first of those that most wait for.
            let at = (0..queue.len()).min_by_key(|at| Reverse((queue[*at].followers)()));
            at.map(|at| queue.remove(at))
        };
        match next {
            // If it has gone meanwhile, the turn that it did not get is dropped, and passed on.
            Some(next) => drop(next.turn.send(Self(Rc::clone(&self.0)))),
            None => proving.made.set(proving.made.get() - 1),
        }
    }
}

/// The decision about a page that is about to be stored.
pub(crate) enum ProofDecision {
    /// No proof of it is due, so it is stored.
    No,
    /// It is held back until it is proven.
    Held(ProofPermit),
    /// It is not proven and there is no room to do so: its own client alone gets it.
    NoRoom,
    /// It is too long to be proven: its own client alone gets it.
    TooLong,
}

/// A permit to hold a page back until it is proven: a worker has so many.
pub(crate) struct ProofPermit(Rc<Pipeline>);

impl ProofPermit {
    /// Decides whether a page that is about to be stored is proven first. Counts a proof that is due and cannot be made.
    pub(crate) fn of(pipeline: &Rc<Pipeline>, question: &Question, head: ResponseHead<'_>, of: Size) -> ProofDecision {
        let proofs = &pipeline.shared.proofs;
        if !concerns(question, head) || !proofs.is_due(question.hash) {
            return ProofDecision::No;
        }
        let held = &pipeline.proving.held;
        let is_too_long = of.length.is_some_and(|length| length > page_max(question));
        let held_max = if of.followers > 0 { HELD_MAX } else { HELD_MAX - HELD_FOR_WAITING };
        if is_too_long || held.get() >= held_max {
            pipeline.counters.proven(question.site.id, ProofResult::Skipped);
            return match proofs.is_proven(question.hash) {
                // The next storing makes up for it.
                true => ProofDecision::No,
                false if is_too_long => ProofDecision::TooLong,
                false => ProofDecision::NoRoom,
            };
        }
        held.set(held.get() + 1);
        ProofDecision::Held(Self(Rc::clone(pipeline)))
    }

    /// Gives the permit back: the page turned out to be too long to be proven. Nobody waits for it any more.
    pub(crate) fn too_long(self, question: &Question, status: StatusCode) {
        let shared = &self.0.shared;
        self.0.counters.proven(question.site.id, ProofResult::Skipped);
        let now = shared.clock.now();
        shared.store.mark_uncacheable(question.hash, (now + UNDECIDED_FOR).as_millis());
        not_kept::remember(shared, question, Cause::NotStored(NotStored::TooLarge), Some(status), now);
    }
}

/// The size of a page, and of the crowd that waits for it.
pub(crate) struct Size {
    pub(crate) length: Option<u64>,
    pub(crate) followers: usize,
}

impl std::fmt::Debug for Proving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proving").field("held", &self.held).field("made", &self.made).finish_non_exhaustive()
    }
}

impl Drop for ProofPermit {
    fn drop(&mut self) {
        let held = &self.0.proving.held;
        held.set(held.get() - 1);
    }
}

/// Returns the longest body that is held back for a proof.
pub(crate) fn page_max(question: &Question) -> u64 {
    question.site.object_max.min(PAGE_MAX)
}

/// Returns how long a request waits for a page that is proven and whose first visit took so long.
pub(crate) fn patience(took: Duration) -> Duration {
    (took * PATIENCE).max(PATIENCE_MIN)
}

/// Returns whether the pages of a question's site are proven.
pub(crate) fn is_wanted(question: &Question) -> bool {
    let policy = &question.site.policy;
    // What members share has a proof of its own: `learnt::tier_proof`.
    policy.settings().two_visitor_proof && !policy.is_impersonal() && question.member.is_none()
}

/// Returns whether a response is a page that is to be proven.
fn concerns(question: &Question, head: ResponseHead<'_>) -> bool {
    is_wanted(question) && matches!(head.status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) && is_page(head.headers)
}

fn is_page(headers: &HeaderMap) -> bool {
    matches!(&*media_type(headers), "text/html" | "application/xhtml+xml")
}

/// Returns why a response that did not come by a shared fetch may not be stored: it is a page that is not proven, or that differs.
pub(crate) fn unproven(shared: &Shared, question: &Question, head: ResponseHead<'_>) -> Option<NotStored> {
    if !concerns(question, head) {
        None
    } else if shared.proofs.is_differing(question.hash, shared.clock.now()) {
        Some(NotStored::Differs)
    } else {
        (!shared.proofs.is_proven(question.hash)).then_some(NotStored::Unproven)
    }
}

/// Returns whether a response may not be stored as its page is known to differ from visitor to visitor.
pub(crate) fn is_forbidden(shared: &Shared, question: &Question) -> bool {
    is_wanted(question) && shared.proofs.is_differing(question.hash, shared.clock.now())
}

/// A page that is whole and not stored yet, with those who wait for it.
pub(crate) struct Unproven {
    /// The page as its own client got it.
    pub(crate) first: Stored,
    pub(crate) body: Bytes,
    pub(crate) flight: FlightGuard<Record, Failure>,
}

/// A page that another visitor was given.
struct Visit {
    status: StatusCode,
    headers: HeaderMap,
    kept: KeepTerms,
    body: Bytes,
}

/// The outcome of another visit.
enum VisitOutcome {
    /// A page that may be stored.
    Page(Box<Visit>),
    /// Something else than a page that may be stored.
    Another(Difference),
    /// No answer, as the origin failed.
    Failed,
    /// No page, as the origin has no time.
    Busy,
    /// Nothing: this process is about to end.
    Stopped,
}

/// The conclusion of a proof.
enum Conclusion {
    Same,
    WarmUp(Box<Visit>),
    Differs(Difference),
    /// Another visit failed before anything was seen to differ.
    Failed,
    /// The origin had no time for another visit.
    Busy,
    /// The second visit differs, and the third failed.
    Undecided,
    Stopped,
}

/// Proves a page, stores it if it is the same for two visitors, and tells those who wait.
pub(crate) async fn prove(permit: ProofPermit, question: &Question, unproven: Unproven) {
    let pipeline = Rc::clone(&permit.0);
    let shared = &pipeline.shared;
    let Unproven { first, body, flight } = unproven;
    let count = |result| pipeline.counters.proven(question.site.id, result);
    let keep = |stored: Stored, flight: FlightGuard<Record, Failure>| flight.fetched(keep::insert(shared, question, stored));
    let turn = ProofTurn::of(&pipeline, flight.followers_later()).await;
    // The page's own place at the origin was given back with its last byte. One request for all who wait is less than one for each of them.
    let conclusion = match &turn {
        Some(_) if flight.followers() > 0 || question.site.collapse.has_room() => concluded(&pipeline, question, &body).await,
        _ => Conclusion::Busy,
    };
    drop(turn);
    let differs = matches!(conclusion, Conclusion::WarmUp(_) | Conclusion::Differs(_) | Conclusion::Undecided);
    if differs && shared.store.is_overtaken(question.url(), flight.begun()) {
        // Either side may be what was purged: whoever waits asks anew.
        return count(ProofResult::Overtaken);
    }
    match conclusion {
        Conclusion::Same => {
            count(ProofResult::Same);
            shared.proofs.same(question.hash);
            keep(first, flight);
        }
        Conclusion::WarmUp(visit) => {
            let Visit { status, headers, kept, body } = *visit;
            count(ProofResult::WarmUp);
            shared.proofs.same(question.hash);
            let head = ResponseHead { status, headers: &headers };
            keep(page(shared, question, head, kept, body, flight.begun()), flight);
        }
        Conclusion::Failed => {
            count(ProofResult::Failed);
            keep(first, flight);
            // What the other visit met is not why this page is or is not stored.
            shared.not_kept.forget(question.hash);
        }
        Conclusion::Busy => {
            count(ProofResult::Skipped);
            if shared.proofs.is_proven(question.hash) {
                // The next storing makes up for it.
                return keep(first, flight);
            }
            release(shared, question, first.record.status, flight.followers());
            flight.uncacheable();
        }
        Conclusion::Undecided => {
            count(ProofResult::Failed);
            let now = shared.clock.now();
            shared.store.mark_uncacheable(question.hash, (now + UNDECIDED_FOR).as_millis());
            not_kept::remember(shared, question, Cause::NotStored(NotStored::Unproven), Some(first.record.status), now);
            flight.uncacheable();
        }
        Conclusion::Differs(difference) => {
            count(ProofResult::Differs);
            refuse(shared, question, first.record.status, difference);
            flight.uncacheable();
        }
        Conclusion::Stopped => {}
    }
}

/// Remembers that the proof of a page found no time, before its followers are told that they ask alone. If there are any, everybody does so for
/// a moment; else the next request tries again.
pub(crate) fn release(shared: &Shared, question: &Question, status: StatusCode, followers: usize) {
    let now = shared.clock.now();
    if followers > 0 {
        shared.store.mark_uncacheable(question.hash, (now + BUSY_FOR).as_millis());
    }
    not_kept::remember(shared, question, Cause::NotStored(NotStored::Unproven), Some(status), now);
}

/// Makes the stored response of a page in memory.
fn page(shared: &Shared, question: &Question, head: ResponseHead<'_>, kept: KeepTerms, body: Bytes, begun: Generation) -> Stored {
    let has_nonce = keep::has_nonce(question, head.headers, &body);
    let tag = ContentTag::of(head.headers, Some(&body));
    let content = ContentFacts { length: Some(body.len() as u64), has_forms: false, has_nonce, tag };
    let (record, scope) = keep::record(shared, question, head, content, kept);
    Stored::new(record, body, begun, scope)
}

/// Remembers that a page is not the same for two visitors, and tells the operator.
fn refuse(shared: &Shared, question: &Question, status: StatusCode, difference: Difference) {
    let now = shared.clock.now();
    if shared.proofs.may_warn(question.site.id, now, now + WARN_EVERY) {
        tracing::warn!(
            site = %question.site.name, target = &*question.path_to_log(), %difference,
            "two visitors were given different pages, so it is not stored; if the difference does not matter, set cache.two_visitor_proof to false"
        );
    }
    let until = now + DIFFERS_FOR;
    shared.proofs.differs(question.hash, Arc::new(difference), now, until);
    // What was stored before the page was found to differ must not come out again either.
    shared.store.remove(question.hash, &question.key);
    tier::end(shared, question);
    shared.store.mark_uncacheable(question.hash, until.as_millis());
    not_kept::remember(shared, question, Cause::NotStored(NotStored::Differs), Some(status), now);
}

/// Makes the question of another visitor, from no client's address and with an id of its own: a page with the id in it is not the same for two.
fn another(shared: &Shared, question: &Question) -> Question {
    let ourselves = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let client = Client { peer: ourselves, address: ourselves, ..question.client };
    let identity = question.identity.another(shared);
    Question { client, identity, way: Vec::new(), method: Method::GET, interim: None, ..question.clone() }
}

async fn concluded(pipeline: &Pipeline, question: &Question, first: &Bytes) -> Conclusion {
    let (difference, second) = match visit_in_time(pipeline, &another(&pipeline.shared, question)).await {
        VisitOutcome::Page(visit) => match difference(first, &visit.body) {
            None => return Conclusion::Same,
            Some(difference) => (difference, visit.body),
        },
        VisitOutcome::Another(difference) => return Conclusion::Differs(difference),
        VisitOutcome::Failed => return Conclusion::Failed,
        VisitOutcome::Busy => return Conclusion::Busy,
        VisitOutcome::Stopped => return Conclusion::Stopped,
    };
    // From the first visitor's address: a page that depends on it is not taken for one that only differs the first time.
    match visit_in_time(pipeline, question).await {
        VisitOutcome::Page(visit) if visit.body == second => Conclusion::WarmUp(visit),
        VisitOutcome::Page(_) | VisitOutcome::Another(_) => Conclusion::Differs(difference),
        VisitOutcome::Failed | VisitOutcome::Busy => Conclusion::Undecided,
        VisitOutcome::Stopped => Conclusion::Stopped,
    }
}

/// Visits a page, for no longer than [`VISIT_MAX`], and no longer than this process is to go on.
async fn visit_in_time(pipeline: &Pipeline, question: &Question) -> VisitOutcome {
    let stopped = async {
        while !pipeline.tasks.is_closed() {
            tokio::time::sleep(LOOK).await;
        }
    };
    match select(pin!(timeout(VISIT_MAX, visit(pipeline, question))), pin!(stopped)).await {
        Either::Left((Ok(visited), _)) => visited,
        // It may have waited for a place at the origin all the time.
        Either::Left((Err(_), _)) if question.site.collapse.is_crowded() => VisitOutcome::Busy,
        Either::Left((Err(_), _)) => VisitOutcome::Failed,
        Either::Right(_) => VisitOutcome::Stopped,
    }
}

async fn visit(pipeline: &Pipeline, question: &Question) -> VisitOutcome {
    let fetched = match pipeline.ask(question, forward::shared(question, None), None).await {
        Ok(fetched) => fetched,
        Err(failure) if failure.is_overload() => return VisitOutcome::Busy,
        Err(_) => return VisitOutcome::Failed,
    };
    match fetched.response.status() {
        StatusCode::OK if is_page(fetched.response.headers()) => {}
        StatusCode::OK => return VisitOutcome::Another(Difference::NoPage),
        StatusCode::TOO_MANY_REQUESTS => return VisitOutcome::Busy,
        status if status.is_server_error() => return VisitOutcome::Failed,
        status => return VisitOutcome::Another(Difference::Status(status)),
    }
    let kept = match keep::decide(&pipeline.shared, question, fetched.head(), fetched.times) {
        Ok(kept) => kept,
        Err(why) => return VisitOutcome::Another(Difference::Unshared(NotStored::Policy(why))),
    };
    let (parts, mut incoming) = fetched.response.into_parts();
    let mut body = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await {
        let Ok(frame) = frame else { return VisitOutcome::Failed };
        let Some(data) = frame.data_ref() else { continue };
        if (body.len() + data.len()) as u64 > page_max(question) {
            // The first one was shorter.
            return VisitOutcome::Another(Difference::Unshared(NotStored::TooLarge));
        }
        body.extend_from_slice(data);
    }
    VisitOutcome::Page(Box::new(Visit { status: parts.status, headers: parts.headers, kept, body: body.into_boxed_slice().into() }))
}

/// The first difference between what two visitors were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Difference {
    /// The bodies differ.
    Span {
        /// The offset of the first byte that differs.
        offset: usize,
        /// The text before it, the same for both.
        before: String,
        /// The text that differs, for each of the two.
        sides: [String; 2],
    },
    /// The second visitor was given a page that may not be stored, for this reason.
    Unshared(NotStored),
    /// The second visitor was given no page, but an answer with this status.
    Status(StatusCode),
    /// The second visitor was given something of another content type.
    NoPage,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Span { offset, before, sides: [first, second] } => {
                write!(f, "at byte {offset}, after \"{before}\": \"{first}\" and \"{second}\"")
            }
            Self::Unshared(why) => write!(f, "the second visitor was given a page that may not be stored: {}", why.name()),
            Self::Status(status) => write!(f, "the second visitor was answered with status {}", status.as_u16()),
            Self::NoPage => f.write_str("the second visitor was given something else than HTML"),
        }
    }
}

/// Finds the first difference between two bodies. Shows no more of it than what differs.
pub(crate) fn difference(first: &[u8], second: &[u8]) -> Option<Difference> {
    let offset = first.iter().zip(second).position(|(a, b)| a != b).unwrap_or_else(|| first.len().min(second.len()));
    if offset == first.len() && offset == second.len() {
        return None;
    }
    // A character is shown whole.
    let is_inside = |body: &[u8], at: usize| body.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let begin = (offset.saturating_sub(3)..=offset).rev().find(|at| !is_inside(first, *at) && !is_inside(second, *at)).unwrap_or(offset);
    let (rests, before) = ([&first[begin..], &second[begin..]], &first[begin.saturating_sub(BEFORE_MAX)..begin]);
    let ends = same_again(rests).unwrap_or([rests[0].len(), rests[1].len()]);
    let sides = [0, 1].map(|side| shown(&rests[side][..ends[side]]));
    Some(Difference::Span { offset, before: shown(before), sides })
}

/// Finds the ends of a difference: where both sides go on with the same bytes, or end.
fn same_again(rests: [&[u8]; 2]) -> Option<[usize; 2]> {
    let go_on = |side: usize, from: usize| {
        let rest = &rests[side][from..];
        &rest[..rest.len().min(SAME_AGAIN)]
    };
    let searched = rests.map(|rest| rest.len().min(SEARCHED_MAX));
    (0..=searched[0] + searched[1]).find_map(|sum| {
        let from = sum.saturating_sub(searched[1])..=sum.min(searched[0]);
        from.map(|at| [at, sum - at]).find(|[a, b]| go_on(0, *a) == go_on(1, *b))
    })
}

/// Makes bytes fit to be shown in one line, up to so many characters.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN_MAX)]);
    let mut shown = String::new();
    for (at, character) in text.chars().enumerate() {
        if at == SHOWN_MAX {
            shown.push('…');
            break;
        }
        // Nothing that moves a cursor, ends a line or hides what stands before it.
        let _ = write!(shown, "{}", character.escape_debug());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(first: &str, second: &str) -> (usize, String, [String; 2]) {
        match difference(first.as_bytes(), second.as_bytes()).expect("they differ") {
            Difference::Span { offset, before, sides } => (offset, before, sides),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn equal_bodies_do_not_differ() {
        assert_eq!(difference(b"", b""), None);
        assert_eq!(difference(b"a page", b"a page"), None);
    }

    #[test]
    fn no_more_is_shown_than_what_differs() {
        let sides = |first: &str, second: &str| [first.to_owned(), second.to_owned()];
        for (first, second, expected) in [
            ("<p>Hello, Anna!</p>", "<p>Hello, Bert!</p>", (10, "<p>Hello, ", sides("Anna", "Bert"))),
            ("<p>Hello!</p> and more", "<p>Hello, Bert!</p> and more", (8, "<p>Hello", sides("", ", Bert"))),
            ("a page", "a page and more", (6, "a page", sides("", " and more"))),
            ("", "a page", (0, "", sides("", "a page"))),
            ("<a>1</a> in between <b>2</b>", "<a>3</a> in between <b>4</b>", (3, "<a>", sides("1", "3"))),
            // The first byte of both is the same.
            ("price: 1 €", "price: 1 ₤", (11, "price: 1 ", sides("€", "₤"))),
        ] {
            assert_eq!(span(first, second), (expected.0, expected.1.to_owned(), expected.2), "{first} {second}");
        }
    }

    #[test]
    fn what_is_shown_is_short_and_moves_no_cursor() {
        let (offset, before, [first, second]) = span(&format!("{}\u{1b}[2J{}", "x".repeat(500), "a".repeat(500)), &"x".repeat(500));
        assert_eq!((offset, before.as_str()), (500, "x".repeat(BEFORE_MAX).as_str()));
        assert_eq!((first.as_str(), second.as_str()), (format!("\\u{{1b}}[2J{}…", "a".repeat(SHOWN_MAX - 4)).as_str(), ""));
        let binary = difference(&[0xff; 300], &[0xfe; 300]).expect("they differ").to_string();
        assert!(binary.chars().count() < 300, "{binary}");
    }
}
