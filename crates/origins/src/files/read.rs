//! A file's bytes, read off the worker's loop, a piece at a time.

use std::{
    fs::File,
    future::Future,
    io::{self, Read},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::task::JoinHandle;

use crate::{Fault, OriginError};

/// How much is read at once: all the memory a download holds.
pub(super) const PIECE_BYTES: usize = 64 * 1024;

/// The next piece of `file`, of `left` bytes that should still come. Blocks.
pub(super) fn piece(file: &mut File, left: u64) -> io::Result<Bytes> {
    let want = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
    let mut bytes = vec![0; want];
    file.read_exact(&mut bytes)?;
    Ok(bytes.into())
}

/// The rest of a file, as long as it was when it was opened. One that has been cut short meanwhile is an error, since its length was
/// promised; one that has grown is not read further.
#[derive(Debug)]
pub(super) struct FileBody {
    state: State,
    left: u64,
}

#[derive(Debug)]
enum State {
    Idle(File),
    Reading(JoinHandle<(File, io::Result<Bytes>)>),
    Done,
}

impl FileBody {
    pub(super) fn new(file: File, left: u64) -> Self {
        Self { state: if left == 0 { State::Done } else { State::Idle(file) }, left }
    }
}

impl HttpBody for FileBody {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let left = self.left;
        let mut reading = match std::mem::replace(&mut self.state, State::Done) {
            State::Done => return Poll::Ready(None),
            State::Reading(reading) => reading,
            State::Idle(mut file) => tokio::task::spawn_blocking(move || {
                let bytes = piece(&mut file, left);
                (file, bytes)
            }),
        };
        let Poll::Ready(finished) = Pin::new(&mut reading).poll(cx) else {
            self.state = State::Reading(reading);
            return Poll::Pending;
        };
        let broken = |e: io::Error| OriginError::new(Fault::ConnectionTerminated, "a file ended before its length").because(e);
        match finished {
            Ok((file, Ok(bytes))) => {
                self.left = left.saturating_sub(bytes.len() as u64);
                if self.left > 0 {
                    self.state = State::Idle(file);
                }
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Ok((_, Err(e))) => Poll::Ready(Some(Err(broken(e)))),
            Err(e) => Poll::Ready(Some(Err(broken(io::Error::other(e))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Done)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(if self.is_end_stream() { 0 } else { self.left })
    }
}
