//! Content that streams to one client while a copy is made for the store.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use origins::OriginError;

/// How much all copies under way may hold together, like the bodies that a crowd reads while they grow.
#[derive(Debug)]
pub(crate) struct CopyBudget {
    used: AtomicU64,
    max: u64,
}

impl CopyBudget {
    pub(crate) const fn new(max: u64) -> Self {
        Self { used: AtomicU64::new(0), max }
    }

    fn take(&self, bytes: u64) -> bool {
        let fits = self.used.fetch_add(bytes, Relaxed) + bytes <= self.max;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
    }
}

/// Streams `inner`; when it has come to its end, hands the whole to `keep`. Breaking off keeps nothing.
pub struct StoreBody {
    inner: origins::Body,
    /// `None` once it is longer than may be stored.
    copy: Option<Vec<u8>>,
    bytes_max: usize,
    /// The length of the content, if it was announced.
    length: Option<u64>,
    budget: Arc<CopyBudget>,
    /// What of the budget is ours.
    taken: u64,
    keep: Option<Box<dyn FnOnce(Bytes)>>,
}

impl Drop for StoreBody {
    fn drop(&mut self) {
        self.budget.give_back(self.taken);
    }
}

impl StoreBody {
    pub(crate) fn new(inner: origins::Body, bytes_max: u64, budget: Arc<CopyBudget>, keep: impl FnOnce(Bytes) + 'static) -> Self {
        let hopeless = inner.size_hint().lower() > bytes_max;
        let length = inner.size_hint().exact();
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Self { inner, copy: (!hopeless).then(Vec::new), bytes_max, length, budget, taken: 0, keep: Some(Box::new(keep)) }
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
        if let (Some(copy), Some(keep)) = (self.copy.take(), self.keep.take()) {
            keep(copy.into_boxed_slice().into());
        }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl fmt::Debug for StoreBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreBody").field("inner", &self.inner).finish_non_exhaustive()
    }
}
