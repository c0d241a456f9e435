//! One fetch for a crowd: a task of its own, so that it outlives the client that began it.

use std::{
    borrow::Cow,
    future::poll_fn,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::{Either, FutureExt as _, select};
use http::{HeaderMap, Request, StatusCode};
use http_body::Body as _;
use policy::CookieName;
use policy::{KeepTerms, NotKept};
use semantics::{
    Timestamp,
    request::{content_length, has_any},
    storable::may_be_brought_on,
};
use store::{Lead, NobodyReads, Reader, Writer};
use tokio::{sync::oneshot, time::timeout};

use crate::{
    Collapse, Failure, Interim, Pipeline, Record, Shared, Stored,
    ask::Fetched,
    body::file::lies_in_a_file,
    collapse::{LOOK, RequestFingerprint},
    find::AskReason,
    forward,
    keep::{self, ContentFacts, ContentTag, NotStored, ResponseHead},
    learnt::not_kept::{self, Cause},
    note::DecidingCookie,
    parts,
    proof::{self, Unproven},
    question::Question,
    record::show,
    stale,
    tier::{self, TierAnswer, TierTurn},
};

/// The time for which a key is remembered whose answer could not be shared.
const UNCACHEABLE: Duration = Duration::from_secs(60);

/// The outcome of a fetch, for the client that began it.
#[derive(Debug)]
pub(crate) enum FetchOutcome {
    /// The head is here and the content comes; others read it too, but without those of the fields that are this client's own. Where it is being
    /// proven, others wait until it is, and it may come to nothing.
    Growing(Box<Grows>),
    /// Another machine has fetched it.
    Found(Arc<Stored>),
    /// The origin confirmed what is stored.
    Confirmed { stored: Arc<Stored>, took: Duration },
    /// It is for this client alone.
    Alone { fetched: Box<Fetched>, why: NotStored },
    /// There is none.
    Failed(Failure),
}

/// A response that others read, too, while its content comes.
#[derive(Debug)]
pub(crate) struct Grows {
    pub(crate) record: Arc<Record>,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Reader<Failure>,
    pub(crate) took: Duration,
    pub(crate) proving: bool,
}

/// A fetch under way.
struct Fetch {
    pipeline: Rc<Pipeline>,
    question: Rc<Question>,
    /// The stored response that may be confirmed.
    candidate: Option<Arc<Stored>>,
    /// What the request says to the origin: a failure is for those alone who say the same.
    fingerprint: RequestFingerprint,
    /// The requests that follow.
    lead: Lead<Record, Failure>,
    /// The client that began it.
    leader: Leader,
    /// The turn to fetch it for all machines that share a tier.
    turn: TierTurn,
}

impl Pipeline {
    /// Begins a fetch that others may follow, for a client's request that asks for this `reason`; without one, nobody waits for it. The receiver may be
    /// dropped: then nobody reads it but those who follow, and without any it goes on only as long as nobody waits for its place at the origin.
    pub(crate) fn begin_fetch(
        self: &Rc<Self>,
        question: Rc<Question>,
        lead: Lead<Record, Failure>,
        candidate: Option<Arc<Stored>>,
        reason: Option<AskReason>,
        interim: Option<Interim>,
    ) -> oneshot::Receiver<FetchOutcome> {
        let (leader, told) = oneshot::channel();
        let request = forward::shared(&question, candidate.as_deref());
        let fingerprint = RequestFingerprint::of_request(&self.shared.secret, &request);
        lead.mark(fingerprint.mark());
        let leader = Leader { pipeline: Rc::clone(self), question: Rc::clone(&question), reason, waits: leader };
        let fetch = Fetch { pipeline: Rc::clone(self), question, candidate, fingerprint, lead, leader, turn: TierTurn::default() };
        // Boxed, as the runtime moves a task several times; and made in its box, as `Box::pin` would copy all of it there.
        self.tasks.spawn_local(Box::into_pin(Box::write(Box::new_uninit(), fetch.run(request, interim))));
        told
    }
}

impl Fetch {
    #[expect(clippy::manual_async_fn, reason = "an async fn would keep the fetch twice: as its argument and as the variable")]
    fn run(mut self, request: Box<Request<origins::Body>>, interim: Option<Interim>) -> impl Future<Output = ()> {
        async move {
            match tier::seek(&self.pipeline.shared, &self.question).await {
                TierAnswer::Found(stored) => {
                    // Those who follow find it in memory.
                    drop(self.lead);
                    self.leader.tell(FetchOutcome::Found(stored), None);
                    return;
                }
                TierAnswer::Ask(turn) => self.turn = turn,
            }
            let began = Instant::now();
            let unread = unread(&self.question.site.collapse, || self.leader.waits.is_closed() && self.lead.followers() == 0);
            let answered = match select(pin!(self.ask(request, interim)), pin!(unread)).await {
                Either::Left((answered, _)) => answered,
                Either::Right(((), _)) => return self.given_up(began.elapsed()),
            };
            self.turn.answered();
            let fetched = match answered {
                Ok(fetched) => fetched,
                Err(failure) => return self.refresh_failed(failure),
            };
            let status = fetched.response.status();
            if let Some(candidate) = self.candidate.clone() {
                let trouble = &self.pipeline.shared.trouble;
                if status == StatusCode::NOT_MODIFIED {
                    trouble.answered(self.question.hash);
                    // What is seldom awaited is boxed: this future is allocated for every fetch, and its size is a cost.
                    return Box::pin(self.confirm(&candidate, fetched)).await;
                }
                if status.is_server_error()
                    && stale::may_stand_in_for_all(&self.pipeline.shared, &self.question, &candidate, fetched.times.response)
                {
                    return self.refresh_failed(Failure::of_status(status));
                }
                trouble.answered(self.question.hash);
            }
            if let Some(storing) = self.share(fetched) {
                storing.await;
            }
        }
    }

    /// Asks the origin for the whole, or for the rest if the beginning is stored.
    async fn ask(&self, request: Box<Request<origins::Body>>, interim: Option<Interim>) -> Result<Box<Fetched>, Failure> {
        let (pipeline, question) = (&self.pipeline, &self.question);
        let beginning = if self.candidate.is_none() { parts::beginning(&pipeline.shared, question) } else { None };
        if let Some(beginning) = beginning {
            return Box::pin(async {
                let rest = pipeline.ask(question, parts::rest(question, &beginning), interim.as_ref()).await?;
                parts::completed(pipeline, question, beginning, rest).await
            })
            .await;
        }
        pin!(pipeline.ask(question, request, interim.as_ref())).await
    }

    /// Gives the origin's answer to everybody, or to the leader's client alone. Returns what is left to be done where it is stored as it comes.
    fn share(self, fetched: Box<Fetched>) -> Option<Pin<Box<impl Future<Output = ()>>>> {
        let (times, took) = (fetched.times, fetched.took);
        let response = &fetched.response;
        if response.status() == StatusCode::NOT_MODIFIED {
            // Nothing was asked that this could confirm.
            self.fail(Failure::of_status(StatusCode::BAD_GATEWAY));
            return None;
        }
        let (shared, question) = (Arc::clone(&self.pipeline.shared), Rc::clone(&self.question));
        let (status, length) = (response.status(), response.body().size_hint().exact().or_else(|| content_length(response.headers())));
        let lead = self.lead.within(question.site.object_max, question.site.disk_object_max);
        let head = ResponseHead { status, headers: response.headers() };
        let why = match keep::decide(&shared, &question, head, times) {
            Ok(_) if lies_in_a_file(response.body()) || length.is_some_and(|length| !lead.keeps(length)) => {
                not_kept::remember(&shared, &question, Cause::NotStored(NotStored::TooLarge), Some(status), times.response);
                let_all_ask(&shared, &question, lead, times.response);
                NotStored::TooLarge
            }
            Ok(kept) => {
                shared.store.unmark_uncacheable(question.hash);
                let proof =
                    match proof::ProofPermit::of(&self.pipeline, &question, head, proof::Size { length, followers: lead.followers() }) {
                        proof::ProofDecision::No => Ok((lead, None)),
                        proof::ProofDecision::Held(place) => Ok((lead, Some(place))),
                        proof::ProofDecision::NoRoom => {
                            proof::release(&shared, &question, status, lead.followers());
                            lead.uncacheable();
                            Err(NotStored::Unproven)
                        }
                        proof::ProofDecision::TooLong => {
                            not_kept::remember(&shared, &question, Cause::NotStored(NotStored::TooLarge), Some(status), times.response);
                            let_all_ask(&shared, &question, lead, times.response);
                            Err(NotStored::TooLarge)
                        }
                    };
                match proof {
                    Ok((lead, proof)) => {
                        // As the whole is one expression, the box is there first, and the future is made in it.
                        return Some(Box::into_pin(Box::write(
                            Box::new_uninit(),
                            Self { lead, ..self }.store(fetched, Coming { length, kept, proof }),
                        )));
                    }
                    Err(why) => why,
                }
            }
            Err(why) => {
                keep::end_what_was_stored(&shared, &question, head, times, lead.begun(), Some(&Err(why)));
                not_kept(&shared, &question, lead, UnkeptAnswer { status, why, at: times.response, fingerprint: self.fingerprint });
                NotStored::of(&question, why, response.headers())
            }
        };
        self.leader.tell(FetchOutcome::Alone { fetched, why }, Some(FetchCost { rule: why.rule(), cookie: why.cookie(), took }));
        None
    }

    /// Lets everybody read the response while it comes, and stores it when it is whole.
    #[expect(clippy::manual_async_fn, reason = "an async fn would keep the fetch twice: as its argument and as the variable")]
    fn store(self, mut fetched: Box<Fetched>, coming: Coming) -> impl Future<Output = ()> {
        async move {
            let Coming { length, kept, mut proof } = coming;
            let took = fetched.took;
            let (shared, question) = (&self.pipeline.shared, &*self.question);
            let response = &mut fetched.response;
            let ready = response.extensions_mut().remove::<origins::Forms>().unwrap_or_default();
            let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
            let incoming = response.body_mut();
            let has_forms = !ready.0.is_empty();
            // It is read as it goes by: nobody waits for it.
            let mut nonces = question.site.policy.nonce_search(&headers);
            // The record may be made once more when the content has said the rest.
            let is_settled = length.is_some() && nonces.is_none() && !has_any(&headers, &[policy::TAG_WANTED]);
            let as_sent = (!is_settled).then(|| headers.clone());
            let mut fields = Cow::Owned(headers);
            let content = ContentFacts { length, has_forms, has_nonce: false, tag: None };
            let (record, scope) = keep::record_in(shared, question, status, &mut fields, content, kept.clone());
            let record = Arc::new(record);
            // Nobody waits for what is too long for the tier.
            let shared_max = tier::content_bytes_max(shared);
            let mut turn = Some(self.turn).filter(|_| length.is_none_or(|length| length <= shared_max));
            let mut writer = match &proof {
                Some(_) => self.lead.serve_leader(length),
                None => self.lead.serve(Arc::clone(&record), length),
            };
            let begun = writer.begun();
            if let Some(body) = writer.reader() {
                let (record, mut fields, proving) = (Arc::clone(&record), fields.into_owned(), proof.is_some());
                show(&mut fields, status, length);
                let rule = if proving { Some(NotStored::Unproven.name()) } else { self.leader.reason.map(AskReason::name) };
                let grows = Box::write(Box::new_uninit(), Grows { record, fields, body, took, proving });
                self.leader.tell(FetchOutcome::Growing(grows), rule.map(|rule| FetchCost { rule, cookie: None, took }));
            }
            let (mut arrived, arriving) = (0, Instant::now());
            let mut wanted = pin!(question.site.collapse.place_is_wanted(Duration::ZERO));
            loop {
                let frame = match select(poll_fn(|cx| Pin::new(&mut *incoming).poll_frame(cx)), wanted.as_mut()).await {
                    Either::Left((Some(frame), _)) => frame,
                    Either::Left((None, _)) => break,
                    Either::Right(_) if writer.give_up_unread() => return,
                    Either::Right(_) => {
                        wanted.set(question.site.collapse.place_is_wanted(LOOK));
                        continue;
                    }
                };
                match frame.map(http_body::Frame::into_data) {
                    Ok(Ok(data)) => {
                        arrived += data.len() as u64;
                        drop(turn.take_if(|_| arrived > shared_max));
                        if let Some(nonces) = &mut nonces {
                            nonces.read(&data);
                        }
                        if let Some(place) = proof.take_if(|_| arrived > proof::page_max(question)) {
                            if shared.proofs.is_proven(question.hash) {
                                writer.let_in(Arc::clone(&record));
                            } else {
                                place.too_long(question, record.status);
                                writer.uncacheable();
                            }
                        }
                        if push(&mut writer, data, question.site.reader_wait_max).await.is_err() {
                            return;
                        }
                    }
                    // Trailers are not kept.
                    Ok(Err(_)) => {}
                    Err(error) => {
                        tracing::warn!(site = %question.site.name, target = &*question.path_to_log(), %error, "the response broke off");
                        writer.fail(Failure::from(&error).of_request(self.fingerprint));
                        return;
                    }
                }
            }
            if let Some((whole, flight)) = writer.complete().await {
                let has_nonce = nonces.is_some_and(|nonces| nonces.has_found());
                let page = whole.memory().cloned();
                let tag = as_sent.as_ref().and_then(|headers| ContentTag::of(headers, page.as_deref()));
                let record = if length == Some(whole.len()) && !has_nonce && tag.is_none() {
                    Record::clone(&record)
                } else {
                    let headers = &as_sent.unwrap_or_else(|| record.all_headers());
                    let content = ContentFacts { length: Some(whole.len()), has_forms, has_nonce, tag };
                    keep::record(shared, question, ResponseHead { status, headers }, content, kept).0
                };
                let stored = Stored::new(record, whole, begun, scope).with_forms(forms(ready));
                match (proof, page) {
                    (Some(place), Some(body)) => {
                        flight.be_patient(proof::patience(took + arriving.elapsed()));
                        Box::pin(proof::prove(place, question, Unproven { first: stored, body, flight })).await;
                    }
                    (None, _) => flight.fetched(keep::insert(shared, question, stored)),
                    // Bodies that grow have used up the memory that there is for them, so it lies in a file.
                    (Some(place), None) => {
                        place.too_long(question, stored.record.status);
                        flight.uncacheable();
                    }
                }
            }
        }
    }

    /// Stores what a 304 confirms with its new fields (RFC 9111 §4.3.4), for everybody who follows.
    async fn confirm(self, candidate: &Stored, fetched: Box<Fetched>) {
        let (pipeline, question) = (Rc::clone(&self.pipeline), Rc::clone(&self.question));
        if let Some(stored) = keep::freshened(&pipeline.shared, &question, candidate, &fetched, self.lead.begun()).await {
            self.lead.stored(Arc::clone(&stored));
            let cost = self.leader.reason.map(|reason| FetchCost { rule: reason.name(), cookie: None, took: fetched.took });
            self.leader.tell(FetchOutcome::Confirmed { stored, took: fetched.took }, cost);
            return;
        }
        // It confirms something else than what is stored, or forbids keeping it: ask for the whole.
        pipeline.shared.store.remove(question.hash, &question.key);
        match pipeline.ask(&question, forward::shared(&question, None), None).await {
            Ok(fetched) => {
                if let Some(storing) = self.share(fetched) {
                    storing.await;
                }
            }
            Err(failure) => self.fail(failure),
        }
    }

    /// Ends the fetch with a failure over which what is stored stays as it is.
    fn refresh_failed(self, failure: Failure) {
        stale::refresh_failed(&self.pipeline.shared, &self.question, self.candidate.as_deref(), &failure, self.lead.begun());
        self.fail(failure);
    }

    /// Ends the fetch: tells its leader, and those who said the same.
    fn fail(self, failure: Failure) {
        self.lead.failed(failure.clone().of_request(self.fingerprint));
        self.leader.tell(FetchOutcome::Failed(failure), None);
    }

    /// Ends the fetch as nobody waits for it any more.
    fn given_up(&self, took: Duration) {
        if let Some(reason) = self.leader.reason {
            self.pipeline.counters.origin_given_up(self.question.site.id, took);
            self.pipeline.fetched_in_vain(&self.question, reason.name(), None, took);
        }
    }
}

/// The client that began a fetch.
struct Leader {
    pipeline: Rc<Pipeline>,
    question: Rc<Question>,
    /// The reason why it asks; `None`: there is no client.
    reason: Option<AskReason>,
    waits: oneshot::Sender<FetchOutcome>,
}

impl Leader {
    /// Tells it what the fetch came to. If it has left, the rule that decided and the time of the origin are counted all the same.
    fn tell(self, told: FetchOutcome, cost: Option<FetchCost>) {
        let is_told = self.waits.send(told).is_ok();
        if let Some(FetchCost { rule, cookie, took }) = cost.filter(|_| !is_told && self.reason.is_some()) {
            self.pipeline.fetched_in_vain(&self.question, rule, cookie.map(DecidingCookie::Set), took);
        }
    }
}

/// The rule that decided about a response, and what the response has cost the origin.
struct FetchCost {
    rule: &'static str,
    /// The cookie for which it is not stored.
    cookie: Option<CookieName>,
    took: Duration,
}

/// A response that is kept, and comes.
struct Coming {
    length: Option<u64>,
    kept: KeepTerms,
    /// The place of a page that is proven first.
    proof: Option<proof::ProofPermit>,
}

/// An answer that is not kept.
struct UnkeptAnswer {
    status: StatusCode,
    why: NotKept,
    /// The time at which it came.
    at: Timestamp,
    /// The number of what the request said that brought it.
    fingerprint: RequestFingerprint,
}

/// Tells those who follow that the answer is not kept.
fn not_kept(shared: &Shared, question: &Question, lead: Lead<Record, Failure>, refused: UnkeptAnswer) {
    let UnkeptAnswer { status, why, at, fingerprint } = refused;
    if status.is_server_error() {
        // Those who said the same are told what the leader was told, instead of asking a failing origin a thousand times.
        lead.failed(Failure::of_status(status).of_request(fingerprint));
    } else if why.is_about_this_request() || may_be_brought_on(status) {
        lead.uncacheable();
    } else {
        let_all_ask(shared, question, lead, at);
    }
}

/// Remembers that answers to this key are not shared, as one that came `at` this time, and lets everybody who waits go to the origin.
fn let_all_ask(shared: &Shared, question: &Question, lead: Lead<Record, Failure>, at: Timestamp) {
    let until = at + UNCACHEABLE;
    shared.store.mark_uncacheable(question.hash, until.as_millis());
    lead.uncacheable();
}

/// Waits until somebody waits for the place of a fetch that nobody reads.
async fn unread(collapse: &Collapse, is_unread: impl Fn() -> bool) {
    collapse.place_is_wanted(Duration::ZERO).await;
    while !is_unread() {
        collapse.place_is_wanted(LOOK).await;
    }
}

/// Numbers ready-made forms as the store does.
fn forms(ready: origins::Forms) -> store::Forms {
    ready.0.into_iter().map(|(coding, content)| (coding as usize, content)).collect()
}

/// Hands bytes to the crowd. Where all have to wait for the slowest, that has its limit.
async fn push(writer: &mut Writer<Record, Failure>, data: bytes::Bytes, wait_max: Duration) -> Result<(), NobodyReads> {
    // What is kept in memory waits for nothing: no limit has to be set.
    if let Some(pushed) = writer.push(data).now_or_never() {
        return pushed;
    }
    loop {
        if let Ok(room) = timeout(wait_max, writer.room()).await {
            return room;
        }
        // None, while it is the disk that all wait for.
        let dropped = writer.drop_slowest();
        if dropped > 0 {
            tracing::debug!(dropped, "clients too slow for the others were dropped");
        }
    }
}
