//! Writes to an origin that has nobody to say what they change: a WordPress without its plugin.
//!
//! The beginning of the request's content is read in passing, and the answer where only its content tells. A write that was accepted purges softly, so that
//! every page is validated before anybody sees it again. Where the origin's plugin says by itself what has changed, it is believed instead.

use std::{rc::Rc, sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode};
use origins::Body;
use parking_lot::Mutex;
use policy::{
    Policy,
    purge::{Address, AnswerContent, Maker, Order, What, WriteAnswer, WriteAttempt, WriteContent, WriteEffect},
};

use super::unanswered::{UnansweredWrites, Writer};
use crate::{
    Failure, Pipeline,
    ask::Fetched,
    body::passing::{self, Listener, read_and_put_back},
    fence::PendingPurges,
    purge::fields::SpeaksForItself,
    question::Question,
};

/// The most bytes of a request's content that are kept to see what it does.
const CONTENT_BYTES_MAX: usize = 64 << 10;
/// The most bytes of an answer that are read to see whether a write was accepted.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The time within which such an answer has to be whole. Such answers are short: they come with their head.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A request on its way that may change what readers see.
#[derive(Debug)]
pub(super) struct Attempt {
    is: WriteAttempt,
    content: Arc<Mutex<ContentBeginning>>,
}

/// The beginning of the content of such a request.
#[derive(Debug, Clone, Default)]
struct ContentBeginning {
    bytes: Vec<u8>,
    is_cut: bool,
    is_whole: bool,
}

impl ContentBeginning {
    fn as_write_content(&self) -> WriteContent<'_> {
        WriteContent { bytes: &self.bytes, is_whole: self.is_whole && !self.is_cut }
    }
}

impl Listener for Arc<Mutex<ContentBeginning>> {
    fn data(&mut self, data: &[u8]) {
        let mut beginning = self.lock();
        let room = CONTENT_BYTES_MAX - beginning.bytes.len();
        beginning.is_cut |= data.len() > room;
        beginning.bytes.extend_from_slice(&data[..data.len().min(room)]);
    }

    fn end(&mut self) {
        self.lock().is_whole = true;
    }
}

impl Attempt {
    /// Returns what a request may change; `None` if it changes nothing.
    pub(super) fn of(question: &Question) -> Option<Self> {
        let is = question.site.policy.attempted(&question.method, &question.target, &question.headers)?;
        Some(Self { is, content: Arc::default() })
    }

    /// Returns whether the answer may have to be read.
    pub(super) const fn reads_answer(&self) -> bool {
        self.is.may_be_told_by_answer()
    }

    /// Returns whether this is to be seen to its end although its client has left: it says who asks, or it is what strangers may write. A child of PHP is
    /// not to be held by everybody else who left.
    pub(super) fn must_finish_without_client(&self, question: &Question) -> bool {
        matches!(self.is, WriteAttempt::Comment | WriteAttempt::XmlRpc) || !Policy::credentials(&question.headers).is_empty()
    }

    /// Reads the beginning of the request's content in passing, if that says what it does.
    pub(super) fn read_content(&self, body: Body) -> Body {
        if self.is.is_told_by_content() { passing::heard(body, Arc::clone(&self.content)) } else { body }
    }

    /// Returns the beginning of the request's content, as far as it has come. `None`: it is not needed.
    fn content(&self) -> Option<ContentBeginning> {
        self.is.is_told_by_content().then(|| self.content.lock().clone())
    }
}

impl Pipeline {
    /// Purges what an attempt has changed, or may have changed if no answer says so.
    pub(super) async fn purge_for_attempt(
        self: &Rc<Self>,
        question: &Question,
        attempt: &Attempt,
        answered: &mut Result<Box<Fetched>, Failure>,
        caused: &PendingPurges,
    ) {
        match answered {
            Ok(fetched) if fetched.response.extensions().get::<SpeaksForItself>().is_some() => {}
            Ok(fetched) if fetched.response.status().is_server_error() => {
                self.may_be_accepted(question, attempt, fetched.response.status(), caused);
            }
            Ok(fetched) => self.judge_answer(question, attempt, fetched, caused).await,
            Err(failure) if failure.was_perhaps_sent() => self.may_be_accepted(question, attempt, failure.status(), caused),
            Err(_) => {}
        }
    }

    /// Purges what an attempt has changed, if its answer says that the origin has accepted it.
    async fn judge_answer(self: &Rc<Self>, question: &Question, attempt: &Attempt, fetched: &mut Fetched, caused: &PendingPurges) {
        let policy = &question.site.policy;
        let is_editors = self.shared.is_known_editors(question);
        let (status, headers) = (fetched.response.status(), fetched.response.headers().clone());
        let content = attempt.content();
        let answer = WriteAnswer { is_editors, ..answer_to(question, content.as_ref(), status, &headers) };
        let is_read = policy.is_told_by_answer(attempt.is, &answer);
        let read = if is_read { read_and_put_back(fetched.response.body_mut(), ANSWER_BYTES_MAX, ANSWER_WITHIN).await } else { None };
        let answer_content = match &read {
            Some(content) => AnswerContent::Whole(content),
            None if is_read => AnswerContent::TooLong,
            None => AnswerContent::Unread,
        };
        match policy.accepted(attempt.is, &WriteAnswer { answer_content, ..answer }) {
            WriteEffect::Nothing => {}
            WriteEffect::Pages(paths) => self.comment_on(question, &paths, caused),
            WriteEffect::Perhaps => self.unanswered(&question.site).purge(Writer::Other, Maker::Write, caused),
            WriteEffect::Everything => {
                if !is_editors && attempt.is.is_of_editors() {
                    self.shared.remember_editor(question);
                }
                self.shared.publish_everything(&question.site, false, Maker::Write, caused);
                self.ripple_of_write(&question.site, false);
            }
        }
    }

    /// Purges the pages on which somebody has commented. Anybody can: so it is an invalidation, which costs these pages alone.
    fn comment_on(&self, question: &Question, paths: &[String], caused: &PendingPurges) {
        let hosts = question.site.named_hosts(&question.authority);
        let address = |path| hosts.iter().map(move |host| What::Url(Address::over_either(host, path)));
        let what = paths.iter().flat_map(|path| address(path)).collect();
        let order = Order::for_site(&question.site.name, what, true, Maker::UnsafeMethod);
        match self.shared.purge_with_acknowledgement(&order) {
            Ok((_, elsewhere)) => caused.add(elsewhere),
            Err(why) => tracing::debug!(site = %question.site.name, %why, "nothing was purged for a comment"),
        }
    }

    /// Purges for an attempt that the origin may have accepted, although no answer says so: every page may have changed.
    ///
    /// Anybody can send such a request. Those that carry nothing by which an editor is known count for nothing; others purge now and then at most, and
    /// never defer what is purged for known editors.
    fn may_be_accepted(self: &Rc<Self>, question: &Question, attempt: &Attempt, status: StatusCode, caused: &PendingPurges) {
        let (content, headers) = (attempt.content(), HeaderMap::new());
        let answer = answer_to(question, content.as_ref(), status, &headers);
        if !question.site.policy.may_have_been_accepted(attempt.is, &answer) {
            return;
        }
        let is_known = self.shared.is_known_editors(question);
        // WordPress and PHP say 500 to what strangers and subscribers send as well: it is an answer, and only to an editor not the whole of it.
        if status == StatusCode::INTERNAL_SERVER_ERROR && !is_known {
            return;
        }
        self.unanswered(&question.site).purge(if is_known { Writer::Known } else { Writer::Other }, Maker::Write, caused);
    }

    /// Watches an answer of an origin that says by itself what has changed: if it breaks off, that may be what was still to come.
    pub(super) fn purge_if_broken(&self, question: &Question, body: Body) -> Body {
        if Policy::credentials(&question.headers).is_empty() {
            return body;
        }
        let writer = if self.shared.is_known_editors(question) { Writer::Known } else { Writer::Other };
        passing::heard(body, PurgeIfBroken { writes: Some(self.unanswered(&question.site)), writer })
    }
}

/// Makes of a question what the policy judges.
fn answer_to<'a>(
    question: &'a Question,
    content: Option<&'a ContentBeginning>,
    status: StatusCode,
    headers: &'a HeaderMap,
) -> WriteAnswer<'a> {
    WriteAnswer {
        authority: &question.authority,
        target: &question.target,
        request: &question.headers,
        content: content.map(ContentBeginning::as_write_content),
        is_editors: false,
        status,
        headers,
        answer_content: AnswerContent::Unread,
    }
}

/// Purges if the answer to a write breaks off.
struct PurgeIfBroken {
    writes: Option<UnansweredWrites>,
    writer: Writer,
}

impl Listener for PurgeIfBroken {
    fn broken(&mut self) {
        if let Some(writes) = self.writes.take() {
            // The head is out, so nobody waits for it.
            writes.purge(self.writer, Maker::Write, &PendingPurges::default());
        }
    }
}
