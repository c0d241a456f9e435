//! Reading ahead of the client: a script that has said all it has to say is done, however slowly its page is read.
//!
//! A child is held until the end of its response has been read. A task reads it, as far ahead of the client as there is room: first in memory, then in a
//! file. Without room the rest waits in the socket, and the child with it.

use std::{
    collections::VecDeque,
    fs::File,
    future::poll_fn,
    io,
    os::unix::fs::FileExt,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker, ready},
};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use semantics::range::Part;

use super::body::ResponseBody;
use crate::{Body, Fault, FileBody, OriginError};

/// The most of a response that is held in memory before its client has taken it, beside what came with its head, which is as much at most.
pub const MEMORY_BYTES_MAX: usize = 256 * 1024;
/// The most pieces of a response that are held in memory: events have few bytes each.
const PIECES_MAX: usize = 256;
/// The most of a response that lies in a file before its client has taken it.
pub const FILE_BYTES_MAX: u64 = 1 << 30;
/// The most that lies in files, of all responses of a server together.
pub const FILES_BYTES_MAX: u64 = 4 << 30;
/// The room that is left to others on the disk with these files.
pub const DISK_FREE_BYTES_MIN: u64 = 256 << 20;
/// The number of bytes that are written to a file at once, where so much is there.
const WRITE_BYTES: usize = 256 * 1024;

/// The place for what is read ahead and is too long for the memory.
#[derive(Debug)]
pub(super) struct Room {
    folder: PathBuf,
    /// Bytes in files now.
    pub(super) held: Arc<AtomicU64>,
}

impl Room {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, held: Arc::default() }
    }
}

/// A response's share of [`FILES_BYTES_MAX`], given back when dropped.
#[derive(Debug)]
struct Share {
    total: Arc<AtomicU64>,
    bytes: u64,
}

impl Share {
    /// Makes the share as large as a file that ends here. Returns whether there is room for that.
    fn reach(&mut self, end: u64) -> bool {
        let more = end.saturating_sub(self.bytes);
        if end > FILE_BYTES_MAX {
            return false;
        }
        if self.total.fetch_add(more, Relaxed) + more > FILES_BYTES_MAX {
            self.total.fetch_sub(more, Relaxed);
            return false;
        }
        self.bytes += more;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Relaxed);
    }
}

/// Begins to read a response. One that has come whole already is handed over whole, and its child is free.
///
/// # Errors
/// When it turns out at once that the response is broken.
pub(super) fn read(mut response: ResponseBody, room: &Room) -> Result<Body, OriginError> {
    let (mut there, mut cx) = (BytesMut::new(), Context::from_waker(Waker::noop()));
    while there.len() < MEMORY_BYTES_MAX {
        match Pin::new(&mut response).poll_frame(&mut cx) {
            Poll::Ready(Some(frame)) => there.extend_from_slice(&frame?.into_data().unwrap_or_default()),
            Poll::Ready(None) => return Ok(Body::from(there.freeze())),
            Poll::Pending => break,
        }
    }
    let size = response.size_hint().exact().map(|left| left + there.len() as u64);
    let ahead = Arc::new(Mutex::new(Ahead::default()));
    let share = Share { total: Arc::clone(&room.held), bytes: 0 };
    tokio::task::spawn_local(pump(response, Arc::clone(&ahead), Spill { folder: Some(room.folder.clone()), share }));
    Ok(Body::stream(ReadAhead { there: there.freeze(), ahead, reading: None, left: size }))
}

/// Holds what was read and not yet taken: pieces in memory, and behind them what lies in a file.
#[derive(Debug, Default)]
struct Ahead {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    file: Option<Arc<File>>,
    /// The number of bytes of the file that were taken, and of those that were written.
    taken: u64,
    written: u64,
    /// The way in which the response ended, if it did.
    end: Option<Result<(), OriginError>>,
    /// The client has left.
    left: bool,
    reader: Option<Waker>,
    pump: Option<Waker>,
}

impl Ahead {
    /// Takes a piece into memory, or gives it back: there is no room, or pieces before it lie in the file.
    fn put(&mut self, piece: Bytes) -> Option<Bytes> {
        let has_room = self.pieces.len() < PIECES_MAX && self.bytes < MEMORY_BYTES_MAX;
        if !has_room || self.taken < self.written {
            return Some(piece);
        }
        self.bytes += piece.len();
        self.pieces.push_back(piece);
        wake(&mut self.reader);
        None
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// Says how the reading ended, however that is: who waits for more must not wait forever.
struct End(Arc<Mutex<Ahead>>);

impl End {
    fn say(&self, end: Result<(), OriginError>) {
        let mut ahead = self.0.lock();
        ahead.end.get_or_insert(end);
        wake(&mut ahead.reader);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.say(Err(OriginError::new(Fault::Internal, "a response of PHP is not read any more")));
    }
}

/// Reads until the response ends, or its client has left.
async fn pump(mut response: ResponseBody, ahead: Arc<Mutex<Ahead>>, mut spill: Spill) {
    let said = End(Arc::clone(&ahead));
    let reading = async {
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut response).poll_frame(cx)).await {
            let mut piece = frame?.into_data().unwrap_or_default();
            if piece.is_empty() {
                continue;
            }
            while let Some(back) = put(&ahead, piece) {
                // Small pieces go to the file together: whatever is there already.
                let (bytes, ended) = gather(back, &mut response);
                let bytes = match spill.write(&ahead, bytes).await {
                    None => Bytes::new(),
                    Some(bytes) => wait_for_room(&ahead, bytes).await,
                };
                ended?;
                piece = bytes;
                if piece.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    };
    let gone = poll_fn(|cx| {
        let mut ahead = ahead.lock();
        if ahead.left {
            return Poll::Ready(());
        }
        ahead.pump = Some(cx.waker().clone());
        Poll::Pending
    });
    let end = tokio::select! {
        end = reading => end,
        // Nobody wants the rest: dropping the response closes its connection.
        () = gone => return,
    };
    said.say(end);
}

fn put(ahead: &Mutex<Ahead>, piece: Bytes) -> Option<Bytes> {
    ahead.lock().put(piece)
}

/// Returns a piece with those behind it that are there already, and whether the response broke behind them.
fn gather(first: Bytes, response: &mut ResponseBody) -> (Bytes, Result<(), OriginError>) {
    let mut bytes = BytesMut::from(first);
    let mut cx = Context::from_waker(Waker::noop());
    while bytes.len() < WRITE_BYTES {
        match Pin::new(&mut *response).poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(frame))) => bytes.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Poll::Ready(Some(Err(error))) => return (bytes.freeze(), Err(error)),
            Poll::Ready(None) | Poll::Pending => break,
        }
    }
    (bytes.freeze(), Ok(()))
}

/// Waits until bytes have room in memory. They take it, and none are returned.
async fn wait_for_room(ahead: &Mutex<Ahead>, bytes: Bytes) -> Bytes {
    let mut bytes = Some(bytes);
    poll_fn(|cx| {
        let mut ahead = ahead.lock();
        bytes = bytes.take().and_then(|bytes| ahead.put(bytes));
        if bytes.is_none() {
            return Poll::Ready(Bytes::new());
        }
        ahead.pump = Some(cx.waker().clone());
        Poll::Pending
    })
    .await
}

/// The way to the file.
struct Spill {
    /// The folder in which the file is made; none once that went wrong.
    folder: Option<PathBuf>,
    share: Share,
}

impl Spill {
    /// Writes bytes behind what lies in the file. Gives them back if there is no room for them.
    async fn write(&mut self, ahead: &Arc<Mutex<Ahead>>, bytes: Bytes) -> Option<Bytes> {
        let Some(folder) = self.folder.clone() else { return Some(bytes) };
        let (file, at) = {
            let mut ahead = ahead.lock();
            if ahead.taken == ahead.written {
                (ahead.taken, ahead.written) = (0, 0);
            }
            (ahead.file.clone(), ahead.written)
        };
        if !self.share.reach(at + bytes.len() as u64) {
            return Some(bytes);
        }
        let writing = bytes.clone();
        let written = tokio::task::spawn_blocking(move || {
            let file = file.map_or_else(|| tempfile::tempfile_in(folder).map(Arc::new), Ok)?;
            let disk = rustix::fs::fstatvfs(&*file)?;
            if disk.f_bavail.saturating_mul(disk.f_frsize) < DISK_FREE_BYTES_MIN + writing.len() as u64 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            file.write_all_at(&writing, at)?;
            Ok(file)
        });
        match written.await.map_err(io::Error::other).flatten() {
            Ok(file) => {
                let mut ahead = ahead.lock();
                ahead.file = Some(file);
                ahead.written += bytes.len() as u64;
                wake(&mut ahead.reader);
                None
            }
            Err(error) => {
                tracing::debug!(%error, "a response of PHP waits for its client: there is no room for it on the disk");
                self.folder = None;
                Some(bytes)
            }
        }
    }
}

/// A response that is read ahead.
struct ReadAhead {
    there: Bytes,
    ahead: Arc<Mutex<Ahead>>,
    /// The read from the file that is under way.
    reading: Option<FileBody>,
    left: Option<u64>,
}

impl ReadAhead {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, OriginError>>> {
        if !self.there.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.there))));
        }
        if self.reading.is_none() {
            let mut ahead = self.ahead.lock();
            if let Some(piece) = ahead.pieces.pop_front() {
                ahead.bytes -= piece.len();
                wake(&mut ahead.pump);
                return Poll::Ready(Some(Ok(piece)));
            }
            match ahead.file.clone() {
                Some(file) if ahead.taken < ahead.written => {
                    self.reading = Some(FileBody::of_parts(file, [Part::Slice(ahead.taken..ahead.written)]));
                }
                _ => {
                    // An error is told once.
                    let Some(end) = ahead.end.take() else {
                        ahead.reader = Some(cx.waker().clone());
                        return Poll::Pending;
                    };
                    ahead.end = Some(Ok(()));
                    return Poll::Ready(end.err().map(Err));
                }
            }
        }
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        let piece = ready!(Pin::new(&mut *reading).poll_frame(cx)).expect("it is let go at its end");
        let piece = piece.map(|frame| frame.into_data().unwrap_or_default());
        if reading.is_end_stream() {
            self.reading = None;
        }
        let mut ahead = self.ahead.lock();
        ahead.taken += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        wake(&mut ahead.pump);
        Poll::Ready(Some(piece))
    }
}

impl HttpBody for ReadAhead {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let piece = match ready!(self.poll_piece(cx)) {
            Some(piece) => piece?,
            None => return Poll::Ready(None),
        };
        self.left = self.left.map(|left| left.saturating_sub(piece.len() as u64));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        let mut ahead = self.ahead.lock();
        ahead.left = true;
        wake(&mut ahead.pump);
    }
}
