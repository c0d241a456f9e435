//! Content that streams to one client while a copy is made for the store.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use origins::OriginError;

/// Streams `inner`; when it has come to its end, hands the whole to `keep`. Breaking off keeps nothing.
pub struct StoreBody {
    inner: origins::Body,
    /// `None` once it is longer than may be stored.
    copy: Option<Vec<u8>>,
    bytes_max: usize,
    keep: Option<Box<dyn FnOnce(Bytes)>>,
}

impl StoreBody {
    pub(crate) fn new(inner: origins::Body, bytes_max: u64, keep: impl FnOnce(Bytes) + 'static) -> Self {
        Self { inner, copy: Some(Vec::new()), bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX), keep: Some(Box::new(keep)) }
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(copy), Some(data)) = (&mut self.copy, frame.data_ref()) {
                    if copy.len() + data.len() > self.bytes_max {
                        self.copy = None;
                    } else {
                        copy.extend_from_slice(data);
                    }
                }
            }
            Some(Err(_)) => self.copy = None,
            None => {
                if let (Some(copy), Some(keep)) = (self.copy.take(), self.keep.take()) {
                    keep(copy.into_boxed_slice().into());
                }
            }
        }
        Poll::Ready(frame)
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
