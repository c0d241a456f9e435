//! Content that streams to one client while a copy is made for the store.
//!
//! Unlike a body that a crowd reads while it grows ([`fetch`](crate::fetch)), it is nobody else's before it is whole.

use std::{
    fmt,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use origins::OriginError;
use policy::KeepTerms;
use store::{Fetching, Generation};

use crate::{
    Body, Shared, Stored,
    keep::{self, ContentFacts, ContentTag, ResponseHead},
    learnt::tier_proof::{self, MemberAnswer},
    question::Question,
};

/// The way in which a response is stored when its content is whole.
pub(crate) struct StoredAs {
    /// The question that it answers.
    pub(crate) question: Rc<Question>,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) kept: KeepTerms,
    /// The generation at which the response was asked for: what was purged since then is not stored as if it were new.
    pub(crate) begun: Generation,
}

impl StoredAs {
    /// Makes the body that goes to the client and is stored at its end. `fetching` ends with it.
    pub(crate) fn body(self, shared: &Arc<Shared>, body: origins::Body, fetching: Fetching) -> Body {
        let object_max = self.question.site.object_max;
        let (shared, copying) = (Arc::clone(shared), Arc::clone(&shared.copying));
        let store = move |whole: Bytes| {
            let Self { question, status, headers, kept, begun } = self;
            let has_nonce = keep::has_nonce(&question, &headers, &whole);
            let head = ResponseHead { status, headers: &headers };
            let tag = ContentTag::of(&headers, Some(&whole));
            let content = ContentFacts { length: Some(whole.len() as u64), has_forms: false, has_nonce, tag };
            let (record, scope) = keep::record(&shared, &question, head, content, kept);
            if let Some(member) = &question.member
                && !tier_proof::is_proven(
                    &shared,
                    &question,
                    member,
                    MemberAnswer { headers: &headers, body: &whole, begun, scope: &scope },
                )
            {
                return;
            }
            keep::insert(&shared, &question, Stored::new(record, whole, begun, scope));
            drop(fetching);
        };
        Body::Storing(Box::new(StoringBody::new(body, object_max, copying, store)))
    }
}

/// The bytes that all copies under way may hold together, as there is a bound for the bodies that a crowd reads while they grow.
#[derive(Debug)]
pub(crate) struct CopyBudget {
    used: AtomicU64,
    max: u64,
}

impl CopyBudget {
    pub(crate) const fn new(max: u64) -> Self {
        Self { used: AtomicU64::new(0), max }
    }

    pub(crate) fn take(&self, bytes: u64) -> bool {
        let fits = self.used.fetch_add(bytes, Relaxed) + bytes <= self.max;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
    }
}

/// Streams `inner`; when it has come to its end, hands the whole to `store`. Nothing is stored if it breaks off.
pub struct StoringBody {
    inner: origins::Body,
    /// `None` once it is longer than may be stored.
    copy: Option<Vec<u8>>,
    bytes_max: usize,
    /// The length of the content, if it was announced.
    length: Option<u64>,
    budget: Arc<CopyBudget>,
    /// The bytes of the budget that this copy has taken.
    taken: u64,
    store: Option<Box<dyn FnOnce(Bytes)>>,
}

impl Drop for StoringBody {
    fn drop(&mut self) {
        self.budget.give_back(self.taken);
    }
}

impl StoringBody {
    pub(crate) fn new(inner: origins::Body, bytes_max: u64, budget: Arc<CopyBudget>, store: impl FnOnce(Bytes) + 'static) -> Self {
        let hopeless = inner.size_hint().lower() > bytes_max;
        let length = inner.size_hint().exact();
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Self { inner, copy: (!hopeless).then(Vec::new), bytes_max, length, budget, taken: 0, store: Some(Box::new(store)) }
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(copy), Some(data)) = (&mut self.copy, frame.data_ref()) {
                    if copy.len() + data.len() > self.bytes_max || !self.budget.take(data.len() as u64) {
                        self.copy = None;
                        self.budget.give_back(std::mem::take(&mut self.taken));
                    } else {
                        copy.extend_from_slice(data);
                        self.taken += data.len() as u64;
                    }
                }
                // Who writes content of announced length stops when it is written, and does not come back for the end.
                if self.copy.as_ref().is_some_and(|copy| self.length == Some(copy.len() as u64)) {
                    self.complete();
                }
            }
            Some(Err(_)) => self.copy = None,
            None => self.complete(),
        }
        Poll::Ready(frame)
    }

    fn complete(&mut self) {
        if let (Some(copy), Some(store)) = (self.copy.take(), self.store.take()) {
            store(copy.into_boxed_slice().into());
        }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl fmt::Debug for StoringBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoringBody").field("inner", &self.inner).finish_non_exhaustive()
    }
}
