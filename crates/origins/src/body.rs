//! The one body type of requests to and responses from origins.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};

use crate::{FileBody, OriginError};

/// A message body: nothing, bytes at hand, or a stream.
#[derive(Debug, Default)]
pub enum Body {
    /// There is no content.
    #[default]
    Empty,
    /// The whole content, in memory.
    Full(Bytes),
    /// The content lies in a file. Whoever answers with this means it to be sent from there, and not to be stored.
    File(Box<FileBody>),
    /// Frames as they come.
    Stream(UnsyncBoxBody<Bytes, OriginError>),
}

impl Body {
    /// Makes a body that streams.
    pub fn stream(body: impl HttpBody<Data = Bytes, Error = OriginError> + Send + 'static) -> Self {
        Self::Stream(body.boxed_unsync())
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::Empty } else { Self::Full(bytes) }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        match &mut *self {
            Self::Empty => Poll::Ready(None),
            Self::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Self::File(file) => Pin::new(file).poll_frame(cx),
            Self::Stream(stream) => Pin::new(stream).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Full(_) => false,
            Self::File(file) => file.is_end_stream(),
            Self::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::File(file) => file.size_hint(),
            Self::Stream(stream) => stream.size_hint(),
        }
    }
}
