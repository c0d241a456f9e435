//! Writes to an origin that has nobody to say what they change, and purges that the fields of its answers ask for.
//!
//! What a write is, and whether the origin has accepted it, is in `policy`. Here it is carried out before the answer goes out: the beginning of the
//! request's content is read in passing, and the answer where only its content tells. A write that was accepted purges softly, so that every page
//! is validated before anybody sees it again. Where the origin's plugin says by itself what has changed, it is believed instead.

use std::{
    collections::{BTreeSet, VecDeque},
    future::poll_fn,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use origins::{Body, OriginError};
use parking_lot::Mutex;
use policy::{
    Policy,
    purge::{Address, AnswerContent, Maker, Order, What, WriteAnswer, WriteAttempt, WriteContent, WriteEffect},
};
use store::KeyHash;
use tokio::time::timeout;

use super::signal::Writer;
use crate::{Pipeline, Shared, Site, ask::Fetched, fence::PendingPurges, question::Question};

/// The most bytes of a request's content that are kept to see what it does.
const CONTENT_BYTES_MAX: usize = 64 << 10;
/// The most bytes of an answer that are read to see whether a write was accepted.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The time within which such an answer has to be whole. Such answers are short: they come with their head.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The most editors of all sites that are remembered. Nobody but an editor makes one more.
const EDITORS_MAX: usize = 4_096;

/// Marks the answer of an origin whose plugin says by itself what has changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpeaksForItself;

/// The editors of all sites, as far as they were seen: a hash of the cookie or the credentials to which an origin showed what it shows editors alone.
#[derive(Debug, Default)]
pub(super) struct Editors(Mutex<BTreeSet<KeyHash>>);

impl Editors {
    fn know(&self, hashes: impl Iterator<Item = KeyHash>) -> bool {
        let known = self.0.lock();
        hashes.into_iter().any(|hash| known.contains(&hash))
    }

    fn remember(&self, hashes: impl Iterator<Item = KeyHash>) {
        let mut known = self.0.lock();
        for hash in hashes {
            if known.len() >= EDITORS_MAX {
                // They are seen again with the next page of theirs.
                known.clear();
            }
            known.insert(hash);
        }
    }
}

/// Returns a hash for each sign of who sent a request.
fn signs<'a>(shared: &'a Shared, question: &'a Question) -> impl Iterator<Item = KeyHash> + 'a {
    let of_site = |sign: &[u8]| [b"editor ", question.site.name.as_bytes(), b"\0", sign].concat();
    Policy::credentials(&question.headers).into_iter().map(move |sign| shared.store.hash(&of_site(sign)))
}

/// A request on its way that may change what readers see.
#[derive(Debug)]
pub(crate) struct Writing {
    attempt: WriteAttempt,
    heard: Arc<Mutex<ContentBeginning>>,
}

/// The beginning of the content of such a request.
#[derive(Debug, Default)]
struct ContentBeginning {
    bytes: Vec<u8>,
    is_cut: bool,
    is_whole: bool,
}

impl ContentBeginning {
    fn hear(&mut self, data: &[u8]) {
        let room = CONTENT_BYTES_MAX - self.bytes.len();
        self.is_cut |= data.len() > room;
        self.bytes.extend_from_slice(&data[..data.len().min(room)]);
    }
}

impl Writing {
    /// Returns what a request may change; `None` if it changes nothing.
    pub(crate) fn of(question: &Question) -> Option<Self> {
        let attempt = question.site.policy.attempted(&question.method, &question.target, &question.headers)?;
        Some(Self { attempt, heard: Arc::default() })
    }

    /// Returns whether the answer may have to be read.
    pub(crate) fn reads_answer(&self) -> bool {
        self.attempt.may_be_told_by_answer()
    }

    /// Returns whether this is to be seen to its end although its client has left: it says who asks, or it is what strangers may write. A child of PHP is
    /// not to be held by everybody else who left.
    pub(crate) fn must_count(&self, question: &Question) -> bool {
        matches!(self.attempt, WriteAttempt::Comment | WriteAttempt::XmlRpc) || !Policy::credentials(&question.headers).is_empty()
    }

    /// Returns the beginning of the request's content, and whether that is all of it. `None`: it is not needed.
    fn content(&self) -> Option<(Vec<u8>, bool)> {
        let heard = self.heard.lock();
        self.attempt.is_told_by_content().then(|| (heard.bytes.clone(), heard.is_whole && !heard.is_cut))
    }

    /// Reads the beginning of the request's content in passing, if that says what it does.
    pub(crate) fn overhear(&self, body: Body) -> Body {
        if !self.attempt.is_told_by_content() {
            return body;
        }
        match body {
            Body::Empty => {
                self.heard.lock().is_whole = true;
                Body::Empty
            }
            Body::Full(bytes) => {
                let mut heard = self.heard.lock();
                heard.hear(&bytes);
                heard.is_whole = true;
                Body::Full(bytes)
            }
            body @ (Body::File(_) | Body::Stream(_)) => Body::stream(Overheard { body, heard: Arc::clone(&self.heard) }),
        }
    }
}

/// The content of a request on its way, the beginning of which is kept.
struct Overheard {
    body: Body,
    heard: Arc<Mutex<ContentBeginning>>,
}

impl HttpBody for Overheard {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let mut heard = self.heard.lock();
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    heard.hear(data);
                }
                heard.is_whole |= self.body.is_end_stream();
            }
            Poll::Ready(None) => heard.is_whole = true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        drop(heard);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Pipeline {
    /// Purges what the fields of an answer ask for, and notes whether the origin says by itself what has changed.
    pub(crate) fn obey_fields(&self, question: &Question, response: &mut Response<Body>, caused: &PendingPurges) {
        let (site, policy) = (&question.site, &question.site.policy);
        if policy.speaks_for_itself(response.headers()) {
            response.extensions_mut().insert(SpeaksForItself);
        }
        if let Some(plugin) = policy.plugin_of(response.headers()) {
            self.shared.signalled.plugin_said(&site.name, plugin);
        }
        for asked in policy.asked_purges(response.headers(), &|host| site.has_host(host, &question.authority)) {
            self.publish_asked(site, asked.what, asked.hard, Maker::Origin, caused);
        }
    }

    /// Purges what an origin says has changed. Returns `false` if that was not possible.
    pub(super) fn publish_asked(&self, site: &Site, what: Vec<What>, hard: bool, by: Maker, caused: &PendingPurges) -> bool {
        let is_done = self.shared.publish(&Order::for_site(&site.name, what, hard, by), caused);
        if !hard {
            self.ripple_of_write(site, false);
        }
        is_done
    }

    /// Remembers who sent a request if its answer is a page for editors.
    pub(crate) fn look_for_editor(&self, question: &Question, status: StatusCode, headers: &HeaderMap) {
        if question.site.policy.shows_an_editor(&question.method, &question.target, status, headers) {
            self.shared.signalled.editors.remember(signs(&self.shared, question));
        }
    }

    /// Purges what a write has changed, if the origin has accepted it.
    pub(super) async fn judge_write(
        self: &Rc<Self>,
        question: &Question,
        writing: &Writing,
        fetched: &mut Fetched,
        caused: &PendingPurges,
    ) {
        let status = fetched.response.status();
        if fetched.response.extensions().get::<SpeaksForItself>().is_some() {
            return;
        }
        if status.is_server_error() {
            return self.may_be_accepted(question, writing, status, caused);
        }
        let policy = &question.site.policy;
        let is_editors = self.shared.signalled.editors.know(signs(&self.shared, question));
        let headers = fetched.response.headers().clone();
        let content = writing.content();
        let answer = WriteAnswer { is_editors, ..answer_to(question, content.as_ref(), status, &headers) };
        let answer_content =
            if policy.is_told_by_answer(writing.attempt, &answer) { read_beginning(fetched.response.body_mut()).await } else { None };
        let answer_content = match &answer_content {
            None => AnswerContent::Unread,
            Some(None) => AnswerContent::TooLong,
            Some(Some(content)) => AnswerContent::Whole(content),
        };
        match policy.accepted(writing.attempt, &WriteAnswer { answer_content, ..answer }) {
            WriteEffect::Nothing => {}
            WriteEffect::Pages(paths) => self.comment_on(question, &paths, caused),
            WriteEffect::Perhaps => self.purge_for_unanswered(&question.site, Writer::Other, Maker::Write, caused),
            WriteEffect::Everything => {
                if !is_editors && writing.attempt.is_of_editors() {
                    self.shared.signalled.editors.remember(signs(&self.shared, question));
                }
                self.shared.publish_everything(&question.site, false, Maker::Write, caused);
                self.ripple_of_write(&question.site, false);
            }
        }
    }

    /// Purges the pages on which somebody has commented. Anybody can: so it is an invalidation, which costs these pages alone.
    fn comment_on(&self, question: &Question, paths: &[String], caused: &PendingPurges) {
        let mut hosts = BTreeSet::from([question.authority.as_str()]);
        hosts.extend(question.site.hosts.iter().map(String::as_str).filter(|host| !host.starts_with('*')));
        let address = |path| hosts.iter().map(move |host| What::Url(Address::over_either(host, path)));
        let what = paths.iter().flat_map(|path| address(path)).collect();
        let order = Order::for_site(&question.site.name, what, true, Maker::UnsafeMethod);
        match self.shared.purge_telling(&order) {
            Ok((_, elsewhere)) => caused.add(elsewhere),
            Err(why) => tracing::debug!(site = %question.site.name, %why, "nothing was purged for a comment"),
        }
    }

    /// Purges for a write that the origin may have carried out, although no answer says so: every page may have changed.
    ///
    /// Anybody can send such a request. Those that carry nothing by which an editor is known count for nothing; others purge now and then at most, and
    /// never defer what is purged for known editors.
    pub(super) fn may_be_accepted(self: &Rc<Self>, question: &Question, writing: &Writing, status: StatusCode, caused: &PendingPurges) {
        let (content, headers) = (writing.content(), HeaderMap::new());
        let answer = answer_to(question, content.as_ref(), status, &headers);
        if question.site.policy.may_have_been_accepted(writing.attempt, &answer) {
            let is_known = self.shared.signalled.editors.know(signs(&self.shared, question));
            // WordPress and PHP say 500 to what strangers and subscribers send as well: it is an answer, and only to an editor not the whole of it.
            if status == StatusCode::INTERNAL_SERVER_ERROR && !is_known {
                return;
            }
            self.purge_for_unanswered(&question.site, if is_known { Writer::Known } else { Writer::Other }, Maker::Write, caused);
        }
    }

    /// Watches an answer of an origin that says by itself what has changed: if it breaks off, that may be what was still to come.
    pub(crate) fn watch(&self, question: &Question, body: Body) -> Body {
        let watched = WatchedAnswer { body, shared: Arc::clone(&self.shared), site: question.site.name.clone() };
        if Policy::credentials(&question.headers).is_empty() { watched.body } else { Body::stream(watched) }
    }
}

/// Makes of a question what the policy judges.
fn answer_to<'a>(
    question: &'a Question,
    content: Option<&'a (Vec<u8>, bool)>,
    status: StatusCode,
    headers: &'a HeaderMap,
) -> WriteAnswer<'a> {
    WriteAnswer {
        authority: &question.authority,
        target: &question.target,
        request: &question.headers,
        content: content.map(|(bytes, is_whole)| WriteContent { bytes, is_whole: *is_whole }),
        is_editors: false,
        status,
        headers,
        answer_content: AnswerContent::Unread,
    }
}

/// An answer to a write on its way, which purges if it breaks off.
struct WatchedAnswer {
    body: Body,
    shared: Arc<Shared>,
    site: String,
}

impl HttpBody for WatchedAnswer {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(Some(Err(_)))) {
            tracing::info!(site = %self.site, "the answer to a write broke off: everything may have changed");
            // The head is out, so nobody waits for it.
            self.shared.publish(&Order::for_site(&self.site, vec![What::Everything], false, Maker::Write), &PendingPurges::default());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads an answer to see what it says, and puts it back. `Some(None)`: it is too long, or does not come in time.
async fn read_beginning(body: &mut Body) -> Option<Option<Vec<u8>>> {
    let mut whole = Some(Vec::new());
    let mut begun = VecDeque::new();
    let mut rest = std::mem::take(body);
    let read = async {
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut rest).poll_frame(cx)).await {
            let is_broken = frame.is_err();
            if let Some(data) = frame.as_ref().ok().and_then(Frame::data_ref) {
                whole = whole.take().filter(|whole| whole.len() + data.len() <= ANSWER_BYTES_MAX).map(|mut whole: Vec<u8>| {
                    whole.extend_from_slice(data);
                    whole
                });
            }
            begun.push_back(frame);
            if is_broken {
                whole = None;
            }
            if whole.is_none() {
                return false;
            }
        }
        true
    };
    let is_whole = timeout(ANSWER_WITHIN, read).await.unwrap_or(false);
    *body = Body::stream(PartlyRead { begun, rest: (!is_whole).then_some(rest) });
    Some(whole.filter(|_| is_whole))
}

/// An answer of which the beginning was read before it goes out.
struct PartlyRead {
    begun: VecDeque<Result<Frame<Bytes>, OriginError>>,
    /// `None`: there is no more.
    rest: Option<Body>,
}

impl HttpBody for PartlyRead {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        if let Some(frame) = self.begun.pop_front() {
            return Poll::Ready(Some(frame));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.begun.is_empty() && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let begun: usize = self.begun.iter().filter_map(|frame| frame.as_ref().ok()?.data_ref()).map(Bytes::len).sum();
        let mut hint = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint);
        let begun = begun as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(begun));
        }
        hint.set_lower(hint.lower().saturating_add(begun));
        hint
    }
}
