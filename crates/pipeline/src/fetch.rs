//! One fetch for a crowd: a task of its own, so that it outlives the client that began it.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use futures_util::future::{Either, select};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use policy::NotKept;
use semantics::{
    cache_control::RequestDirectives,
    coding::Coding,
    reuse::allowed_on_error,
    storable::may_be_brought_on,
    validation::{freshen, same_representation},
};
use store::{Lead, Reader, Unread, Writer};
use tokio::{sync::oneshot, time::timeout};

use crate::{
    Collapse, Failure, Interim, Pipeline, Record, Stored, ask::Answer, body::file::lies_in_a_file, collapse::LOOK, forward,
    question::Question,
};

/// How long a key is remembered whose answer could not be shared.
const UNCACHEABLE: Duration = Duration::from_secs(60);

/// How long a stale response may be served when the origin fails, if neither it nor the configuration says: disconnected, a cache may go on (RFC 9111 §4.2.4).
pub(crate) const STALE_IF_ERROR: Duration = Duration::from_secs(7 * 86_400);

/// What the fetch came to, for the client that began it.
#[derive(Debug)]
pub(crate) enum Told {
    /// The head is here and the content comes; others read it too, but without the fields that are this client's own.
    Growing { record: Arc<Record>, body: Reader<Failure>, own: HeaderMap, took: Duration },
    /// The origin confirmed what is stored.
    Confirmed { stored: Arc<Stored>, took: Duration },
    /// It is for this client alone.
    Alone { response: Response<origins::Body>, why: &'static str, took: Duration },
    /// There is none.
    Failed(Failure),
}

impl Pipeline {
    /// Begins a fetch that others may follow. The receiver may be dropped: then nobody reads it but those who follow, and without any it goes
    /// on only as long as nobody waits for its place at the origin.
    pub(crate) fn begin_fetch(
        self: &Rc<Self>,
        question: Rc<Question>,
        lead: Lead<Record, Failure>,
        candidate: Option<Arc<Stored>>,
        interim: Option<Interim>,
    ) -> oneshot::Receiver<Told> {
        let (tell, told) = oneshot::channel();
        let pipeline = Rc::clone(self);
        let request = forward::shared(&question, candidate.as_deref());
        let saying = self.saying(&request);
        lead.mark(saying);
        self.tasks.spawn_local(async move { pipeline.fetch(&question, lead, candidate, (request, saying), (tell, interim)).await });
        told
    }

    async fn fetch(
        &self,
        question: &Question,
        lead: Lead<Record, Failure>,
        candidate: Option<Arc<Stored>>,
        (request, saying): (Request<origins::Body>, u64),
        (tell, interim): (oneshot::Sender<Told>, Option<Interim>),
    ) {
        let asking = async {
            let beginning = if candidate.is_none() { self.beginning(question) } else { None };
            let request = match &beginning {
                Some(beginning) => Self::rest(question, beginning),
                None => request,
            };
            match (self.ask(question, request, interim.as_ref()).await, beginning) {
                (Ok(answer), Some(beginning)) => self.completed(question, beginning, answer).await,
                (asked, _) => asked,
            }
        };
        let unread = unread(&question.site.collapse, || tell.is_closed() && lead.followers() == 0);
        let asked = match select(pin!(asking), pin!(unread)).await {
            Either::Left((asked, _)) => asked,
            Either::Right(((), _)) => return,
        };
        let answer = match asked {
            Ok(answer) => answer,
            Err(failure) => {
                self.refresh_failed(question, candidate.as_deref(), &failure);
                lead.failed(failure.clone().of_saying(saying));
                let _ = tell.send(Told::Failed(failure));
                return;
            }
        };
        if answer.response.status() == StatusCode::NOT_MODIFIED
            && let Some(candidate) = candidate.as_deref()
        {
            self.shared.trouble.answered(question.hash);
            self.confirmed(question, lead, candidate, answer, (tell, saying)).await;
            return;
        }
        if answer.response.status().is_server_error()
            && candidate.as_deref().is_some_and(|stored| self.may_go_on(question, stored, answer.response_time))
        {
            let failure = Failure::of_status(answer.response.status());
            self.refresh_failed(question, candidate.as_deref(), &failure);
            lead.failed(failure.clone().of_saying(saying));
            let _ = tell.send(Told::Failed(failure));
            return;
        }
        if candidate.is_some() {
            self.shared.trouble.answered(question.hash);
        }
        self.store(question, lead, answer, (tell, saying)).await;
    }

    /// What is stored stays stale, and those who ask for it next need not wait for the same. Where the whole origin is away, the site knows.
    pub(crate) fn refresh_failed(&self, question: &Question, candidate: Option<&Stored>, failure: &Failure) {
        if candidate.is_some() && !failure.is_unreachable() {
            self.shared.trouble.failed(question.hash, self.shared.clock.now());
        }
    }

    /// Whether a stale response may stand in for a failed origin, as far as the response goes.
    fn may_go_on(&self, question: &Question, stored: &Stored, now: semantics::Timestamp) -> bool {
        let default = question.site.policy.settings().stale_if_error.unwrap_or(STALE_IF_ERROR);
        allowed_on_error(&RequestDirectives::NONE, &stored.record.freshness, now, default)
            && self.shared.store.verdict(stored) != store::Purged::Hard
    }

    /// The origin's answer goes to everybody, or to the leader's client alone.
    async fn store(&self, question: &Question, lead: Lead<Record, Failure>, answer: Answer, (tell, saying): (oneshot::Sender<Told>, u64)) {
        let Answer { response, request_time, response_time, took } = answer;
        let status = response.status();
        if status == StatusCode::NOT_MODIFIED {
            // Nothing was asked that this could confirm.
            let failure = Failure::of_status(StatusCode::BAD_GATEWAY);
            lead.failed(failure.clone().of_saying(saying));
            let _ = tell.send(Told::Failed(failure));
            return;
        }
        let length = response.body().size_hint().exact().or_else(|| content_length(&response));
        let lead = lead.within(question.site.object_max, question.site.disk_object_max);
        let kept = match self.judge(question, status, response.headers(), (request_time, response_time)) {
            Ok(_) if lies_in_a_file(response.body()) || length.is_some_and(|length| !lead.keeps(length)) => {
                self.refused(question, "too-large", Some(status), response_time);
                self.release(question, lead);
                let _ = tell.send(Told::Alone { response, why: "too-large", took });
                return;
            }
            Ok(kept) => kept,
            Err(why) => {
                self.not_kept(question, lead, status, (why, saying));
                let _ = tell.send(Told::Alone { response, why: why.name(), took });
                return;
            }
        };
        self.shared.store.unmark_uncacheable(question.hash);
        let (mut parts, body) = response.into_parts();
        let ready = parts.extensions.remove::<origins::Forms>().unwrap_or_default();
        let is_ready = !ready.0.is_empty();
        let (record, scope) = self.record(question, (status, &parts.headers), (length, is_ready), kept.clone());
        let record = Arc::new(record);
        let mut writer = lead.serve(Arc::clone(&record), length);
        let begun = writer.begun();
        if let Some(reader) = writer.reader() {
            let _ = tell.send(Told::Growing { record, body: reader, own: only(&parts.headers, &kept.omitted), took });
        }
        let mut body = body;
        let mut wanted = pin!(question.site.collapse.place_is_wanted(Duration::ZERO));
        loop {
            let frame = match select(poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)), wanted.as_mut()).await {
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
                    if push(&mut writer, data, question.site.reader_wait_max).await.is_err() {
                        return;
                    }
                }
                // Trailers are not kept.
                Ok(Err(_)) => {}
                Err(error) => {
                    tracing::warn!(site = %question.site.name, target = %question.target, %error, "the response broke off");
                    writer.fail(Failure::from(&error));
                    return;
                }
            }
        }
        if let Some((whole, flight)) = writer.complete().await {
            let (record, _) = self.record(question, (status, &parts.headers), (Some(whole.len()), is_ready), kept);
            self.insert(question, Stored::new(record, whole, begun, scope).with_forms(forms(ready)));
            drop(flight);
        }
    }

    fn not_kept(&self, question: &Question, lead: Lead<Record, Failure>, status: StatusCode, (why, saying): (NotKept, u64)) {
        if status.is_server_error() {
            // Those who said the same are told what the leader was told, instead of asking a failing origin a thousand times.
            lead.failed(Failure::of_status(status).of_saying(saying));
            return;
        }
        if why.is_about_this_request() || may_be_brought_on(status) {
            lead.uncacheable();
        } else {
            self.release(question, lead);
        }
    }

    /// Remembers that answers to this key are not shared, and lets everybody who waits go to the origin.
    fn release(&self, question: &Question, lead: Lead<Record, Failure>) {
        let until = self.shared.clock.now() + UNCACHEABLE;
        self.shared.store.mark_uncacheable(question.hash, until.as_millis());
        lead.uncacheable();
    }

    /// A 304: the stored response lives on with new fields (RFC 9111 §4.3.4).
    async fn confirmed(
        &self,
        question: &Question,
        lead: Lead<Record, Failure>,
        candidate: &Stored,
        answer: Answer,
        (tell, saying): (oneshot::Sender<Told>, u64),
    ) {
        let begun = lead.begun();
        match self.freshened(question, candidate, &answer, begun) {
            Some(stored) => {
                lead.stored(Arc::clone(&stored));
                let _ = tell.send(Told::Confirmed { stored, took: answer.took });
            }
            None => {
                // It confirms something else than what is stored, or forbids keeping it: ask for the whole.
                self.shared.store.remove(question.hash, &question.key);
                match self.ask(question, forward::shared(question, None), None).await {
                    Ok(answer) => self.store(question, lead, answer, (tell, saying)).await,
                    Err(failure) => {
                        lead.failed(failure.clone().of_saying(saying));
                        let _ = tell.send(Told::Failed(failure));
                    }
                }
            }
        }
    }

    /// Stores `candidate` again with the fields of a 304. `None` if the 304 is about another representation, or if it may not be kept any more.
    pub(crate) fn freshened(
        &self,
        question: &Question,
        candidate: &Stored,
        answer: &Answer,
        begun: store::Generation,
    ) -> Option<Arc<Stored>> {
        // A stored response is the answer to GET, also where HEAD was used to look after it.
        let get;
        let question = if question.method == Method::HEAD {
            get = Question { method: Method::GET, ..question.clone() };
            &get
        } else {
            question
        };
        let mut headers = candidate.record.all_headers();
        let confirmation = answer.response.headers();
        if !same_representation(&headers, confirmation) {
            return None;
        }
        freshen(&mut headers, confirmation);
        let status = candidate.record.status;
        let kept = self.judge(question, status, &headers, (answer.request_time, answer.response_time)).ok()?;
        for name in candidate.record.omitted() {
            // No longer held back, but its value was never stored.
            if !kept.omitted.contains(&name) && !confirmation.contains_key(&name) {
                headers.remove(name);
            }
        }
        let length = candidate.body.len();
        let has_forms = candidate.forms().at_hand() != 0;
        let (record, scope) = self.record(question, (status, &headers), (Some(length), has_forms), kept);
        let stored = Stored::new(record, candidate.body.clone(), begun, scope).with_forms(candidate.forms().share());
        Some(self.insert(question, stored))
    }

    /// Stores a response in place of those that answer the same requests.
    pub(crate) fn insert(&self, question: &Question, stored: Stored) -> Arc<Stored> {
        let fields = question.fields();
        let only_for = stored.record.only_for;
        let mut stored = if question.site.on_disk && only_for.is_none() { stored } else { stored.in_memory_only() };
        if stored.record.codable {
            stored = self.with_forms_of_the_same(question, stored);
        }
        let part = stored.record.part();
        let store = &self.shared.store;
        let stored = store.insert(question.hash, &question.key, stored, |held| match only_for {
            // One such error at most, and never in the place of what is for everybody.
            Some(_) => held.only_for.is_some(),
            None => held.vary.matches(&fields) && held.part() == part,
        });
        self.learn_hints(question, &stored);
        if stored.record.codable {
            self.shared.make_form((question.hash, &question.key), &stored, Coding::Gzip);
            if question.site.policy.settings().compress.dictionaries {
                self.shared.next_version(question.hash, &stored);
            }
        }
        stored
    }

    /// Many origins know no 304 and send the same once more: its forms need not be made again.
    fn with_forms_of_the_same(&self, question: &Question, stored: Stored) -> Stored {
        let resource = self.shared.store.peek(question.hash, &question.key);
        let same = |held: &&Arc<Stored>| match (held.body.memory(), stored.body.memory()) {
            (Some(held), Some(new)) => held == new,
            _ => false,
        };
        match resource.as_deref().and_then(|resource| resource.variants().iter().find(same)) {
            Some(held) if stored.forms().at_hand() == 0 => stored.with_forms(held.forms().share()),
            _ => stored,
        }
    }
}

/// Waits until somebody waits for the place of a fetch that nobody reads.
async fn unread(collapse: &Collapse, is_unread: impl Fn() -> bool) {
    collapse.place_is_wanted(Duration::ZERO).await;
    while !is_unread() {
        collapse.place_is_wanted(LOOK).await;
    }
}

/// Ready-made forms, as the store numbers them.
fn forms(ready: origins::Forms) -> store::Forms {
    ready.0.into_iter().map(|(coding, content)| (coding as usize, content)).collect()
}

/// These fields and no others; nearly always none.
fn only(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let lines = names.iter().flat_map(|name| headers.get_all(name).into_iter().map(move |value| (name.clone(), value.clone())));
    let mut own = HeaderMap::new();
    for (name, value) in lines {
        own.append(name, value);
    }
    own
}

/// Hands bytes to the crowd. Where all have to wait for the slowest, that has its limit.
async fn push(writer: &mut Writer<Record, Failure>, data: bytes::Bytes, wait_max: Duration) -> Result<(), Unread> {
    let mut pushed = timeout(wait_max, writer.push(data)).await;
    loop {
        match pushed {
            Ok(pushed) => return pushed,
            Err(_) => {
                // None, while it is the disk that all wait for.
                let dropped = writer.drop_slowest();
                if dropped > 0 {
                    tracing::debug!(dropped, "clients too slow for the others were dropped");
                }
                pushed = timeout(wait_max, writer.room()).await;
            }
        }
    }
}

fn content_length(response: &Response<origins::Body>) -> Option<u64> {
    response.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
