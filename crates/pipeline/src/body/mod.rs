//! The content of a response on its way to the client.

pub(crate) mod coded;
pub(crate) mod disk;
pub(crate) mod file;
pub(crate) mod passing;
pub(crate) mod storing;

use std::{
    collections::VecDeque,
    error::Error,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use origins::FileRegion;
use store::Reader;

use crate::{Failure, body::coded::CodedBody, body::disk::DiskStream, body::storing::StoringBody};

/// The reason why content broke off.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// The source of the content.
#[derive(Debug)]
pub enum Body {
    /// Bytes at hand, whole.
    Full(Bytes),
    /// Bytes at hand, in pieces: ranges.
    Pieces(VecDeque<Bytes>),
    /// Content that comes straight from the origin.
    Origin(origins::Body),
    /// Content that comes from the origin; a copy goes into the store.
    Storing(Box<StoringBody>),
    /// Content that a crowd reads together while it grows.
    Growing(Reader<Failure>),
    /// A file of the disk tier.
    Disk(Box<DiskStream>),
    /// Any of these, coded on its way.
    Coded(Box<CodedBody>),
}

impl Body {
    /// Takes what comes next, if that lies in a file that may be sent as it is: whoever takes it sends it.
    pub fn take_file(&mut self) -> Option<FileRegion> {
        match self {
            Self::Origin(origins::Body::File(file)) => file.take_region(),
            _ => None,
        }
    }

    /// Makes a body without content.
    #[must_use]
    pub const fn empty() -> Self {
        Self::Full(Bytes::new())
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Pieces(pieces) => Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece)))),
            Self::Origin(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Storing(body) => body.poll_frame(cx).map_err(Into::into),
            Self::Growing(reader) => {
                reader.poll_chunk(cx).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data).map_err(|broken| broken_off(&broken))))
            }
            Self::Disk(stream) => stream.poll_piece(cx).map(|piece| piece.map(|piece| piece.map(Frame::data))),
            Self::Coded(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::Pieces(pieces) => pieces.is_empty(),
            Self::Origin(body) => body.is_end_stream(),
            // Their last piece is not the end: the store has to see that too.
            Self::Storing(_) | Self::Growing(_) => false,
            Self::Disk(stream) => stream.left() == 0,
            Self::Coded(body) => body.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Pieces(pieces) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            Self::Origin(body) => body.size_hint(),
            Self::Storing(body) => body.size_hint(),
            Self::Growing(reader) => reader.length_hint().map_or_else(SizeHint::default, SizeHint::with_exact),
            Self::Disk(stream) => SizeHint::with_exact(stream.left()),
            // Nobody knows before the end.
            Self::Coded(_) => SizeHint::default(),
        }
    }
}

fn broken_off(broken: &store::Broken<Failure>) -> BodyError {
    match broken {
        store::Broken::Failed(failure) => failure.detail().to_owned().into(),
        store::Broken::Abandoned => "the fetch was given up".into(),
        store::Broken::TooSlow => "this client held up all the others".into(),
        store::Broken::Unreadable => "the disk failed".into(),
    }
}
