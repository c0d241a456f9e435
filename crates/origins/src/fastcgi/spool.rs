//! The content of a request, brought to this machine before a child of php-fpm is taken: a client that sends slowly would hold the child all the
//! time, and CGI wants to know the length before the first byte (RFC 3875 §4.1.2).

use std::{
    fs::File,
    io::Write as _,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;
use semantics::range::Part;

use crate::{Body, Fault, FileBody, OriginError};

/// The most of a request's content that is held in memory; longer content goes to a file, in pieces of about this size.
pub const MEMORY_BYTES_MAX: usize = 64 * 1024;
/// The most content that lies in files, of all requests to a server together.
pub const FILES_BYTES_MAX: u64 = 16 << 30;

/// The place for content that is too long for the memory.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    /// Bytes in files now.
    held: Arc<AtomicU64>,
}

/// Content that is at hand.
#[derive(Debug)]
pub(super) enum Content {
    Memory(Bytes),
    /// The content lies in a file, and the bytes before that which have been read already.
    File(FileBody, Bytes, Arc<SpoolShare>),
}

/// A share of [`FILES_BYTES_MAX`], given back when dropped.
#[derive(Debug)]
pub(super) struct SpoolShare {
    total: Arc<AtomicU64>,
    bytes: u64,
}

impl SpoolShare {
    fn add(&mut self, bytes: usize) -> Result<(), OriginError> {
        let bytes = bytes as u64;
        self.bytes += bytes;
        if self.total.fetch_add(bytes, Relaxed) + bytes > FILES_BYTES_MAX {
            return Err(OriginError::new(Fault::Overloaded, format!("{FILES_BYTES_MAX} bytes of uploads wait already")));
        }
        Ok(())
    }
}

impl Drop for SpoolShare {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Relaxed);
    }
}

impl Spool {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, held: Arc::default() }
    }

    /// Waits for all of a request's content. How much that may be, and how long it may take, is the affair of the body itself.
    ///
    /// # Errors
    /// As the body fails; and when there is no room for it.
    pub(super) async fn take(&self, mut body: Body) -> Result<Content, OriginError> {
        match body {
            Body::Empty => return Ok(Content::Memory(Bytes::new())),
            Body::Full(bytes) => return Ok(Content::Memory(bytes)),
            Body::File(_) | Body::Stream(_) => {}
        }
        let (mut memory, mut file) = (BytesMut::new(), None::<File>);
        let mut held = SpoolShare { total: Arc::clone(&self.held), bytes: 0 };
        while let Some(frame) = body.frame().await {
            // Trailers have no place in CGI.
            let Ok(data) = frame?.into_data() else { continue };
            memory.extend_from_slice(&data);
            if memory.len() > MEMORY_BYTES_MAX {
                held.add(memory.len())?;
                file = Some(self.write(file, memory.split().freeze()).await?);
            }
        }
        if file.is_none() {
            return Ok(Content::Memory(memory.freeze()));
        }
        held.add(memory.len())?;
        let file = self.write(file, memory.freeze()).await?;
        Ok(Content::File(FileBody::new(Arc::new(file), held.bytes), Bytes::new(), Arc::new(held)))
    }

    /// Writes to `file`, or to a new one, on a thread that may wait for a disk.
    async fn write(&self, file: Option<File>, bytes: Bytes) -> Result<File, OriginError> {
        let folder = self.folder.clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut file = file.map_or_else(|| tempfile::tempfile_in(folder), Ok)?;
            file.write_all(&bytes)?;
            Ok::<_, std::io::Error>(file)
        });
        let written = written.await.map_err(std::io::Error::other).flatten();
        // Not the client's fault, and not PHP's: another upload may end soon, and leave room.
        written.map_err(|e| OriginError::new(Fault::Overloaded, format!("keep an upload in {}", self.folder.display())).because(e))
    }
}

impl Content {
    /// Returns how many bytes are still to be sent.
    pub(super) const fn left(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file, read, _) => file.left() + read.len() as u64,
        }
    }

    /// Returns all of the content once more. Nothing may have been taken off what is in memory.
    pub(super) fn again(&self) -> Self {
        match self {
            Self::Memory(bytes) => Self::Memory(bytes.clone()),
            Self::File(file, _, held) => Self::File(file.cut([Part::Slice(0..held.bytes)]), Bytes::new(), Arc::clone(held)),
        }
    }

    /// Takes the next piece, of `bytes_max` at most; empty at the end.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>, bytes_max: usize) -> Poll<Result<Bytes, OriginError>> {
        match self {
            Self::Memory(bytes) => Poll::Ready(Ok(bytes.split_to(bytes.len().min(bytes_max)))),
            Self::File(file, read, _) => {
                if read.is_empty() {
                    match ready!(Pin::new(file).poll_frame(cx)) {
                        Some(frame) => *read = frame?.into_data().unwrap_or_default(),
                        None => return Poll::Ready(Ok(Bytes::new())),
                    }
                }
                Poll::Ready(Ok(read.split_to(read.len().min(bytes_max))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use http_body_util::{Full, StreamBody};

    use super::*;

    fn spool() -> Spool {
        Spool::new(std::env::temp_dir())
    }

    async fn all(mut content: Content) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let piece = poll_fn(|cx| content.poll_piece(cx, 65_535)).await.expect("at hand");
            assert!(piece.len() <= 65_535);
            if piece.is_empty() {
                return all;
            }
            all.extend_from_slice(&piece);
        }
    }

    fn stream(pieces: Vec<Result<Bytes, OriginError>>) -> Body {
        Body::stream(StreamBody::new(futures_util::stream::iter(pieces.into_iter().map(|piece| piece.map(http_body::Frame::data)))))
    }

    #[tokio::test]
    async fn content_is_the_same_from_memory_and_from_a_file() {
        for length in [0, 1, MEMORY_BYTES_MAX, MEMORY_BYTES_MAX + 1, 300_000] {
            let spool = spool();
            let bytes: Vec<u8> = (0..=250).cycle().take(length).collect();
            let pieces = bytes.chunks(10_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            let content = spool.take(stream(pieces)).await.expect("room");
            assert_eq!(content.left(), length as u64);
            let in_files = if length > MEMORY_BYTES_MAX { length as u64 } else { 0 };
            assert_eq!(spool.held.load(Relaxed), in_files);
            assert!(all(content.again()).await == bytes && all(content).await == bytes, "{length}");
            assert_eq!(spool.held.load(Relaxed), 0, "given back");
        }
    }

    #[tokio::test]
    async fn a_client_that_breaks_off_leaves_nothing_behind() {
        let spool = spool();
        let broken = OriginError::new(Fault::RequestBody, "the client left");
        let body = stream(vec![Ok(vec![0; 100_000].into()), Err(broken)]);
        assert_eq!(spool.take(body).await.expect_err("broken off").fault, Fault::RequestBody);
        assert_eq!(spool.held.load(Relaxed), 0);
    }

    #[tokio::test]
    async fn what_there_is_no_room_for_is_turned_away_for_now() {
        let nowhere = Spool::new("/dev/null/nowhere".into());
        let long = || Body::stream(Full::new(Bytes::from(vec![0; 100_000])).map_err(|never| match never {}));
        assert_eq!(nowhere.take(long()).await.expect_err("no folder").fault, Fault::Overloaded);
        let full = spool();
        full.held.store(FILES_BYTES_MAX, Relaxed);
        assert_eq!(full.take(long()).await.expect_err("no room").fault, Fault::Overloaded);
        assert_eq!(full.held.load(Relaxed), FILES_BYTES_MAX);
    }
}
