//! Content that lies in a file and is never held whole.
//!
//! It goes one of two ways. Who can hand a file to the kernel takes [`FileRegion`]s; everybody else reads pieces: at once what the system has in
//! memory, and on a thread that may wait what it has to read from a disk.

use std::{
    collections::VecDeque,
    fs::File,
    future::Future,
    io,
    ops::Range,
    os::unix::fs::FileExt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use semantics::range::Part;
use tokio::task::JoinHandle;

use crate::{Fault, OriginError};

/// The number of bytes that are read at once: all the memory that a download holds.
const PIECE_BYTES: u64 = 64 * 1024;

/// Bytes of an open file.
#[derive(Debug, Clone)]
pub struct FileRegion {
    /// The file; its position means nothing.
    pub file: Arc<File>,
    /// The place of the bytes.
    pub range: Range<u64>,
}

/// A file, as long as it was when it was opened, or parts of it with text between them.
///
/// One that is cut short meanwhile is an error, since its length was promised; one that grows is not read further.
#[derive(Debug)]
pub struct FileBody {
    file: Arc<File>,
    parts: VecDeque<Part>,
    left: u64,
    /// The front of the first part, while a thread reads it from the disk.
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl FileBody {
    /// Makes a region of the first `length` bytes of `file`.
    #[must_use]
    pub fn new(file: Arc<File>, length: u64) -> Self {
        Self::of_parts(file, [Part::Slice(0..length)])
    }

    /// Makes a region of these parts of `file`, in order.
    #[must_use]
    pub fn of_parts(file: Arc<File>, parts: impl IntoIterator<Item = Part>) -> Self {
        let parts: VecDeque<_> = parts.into_iter().filter(|part| bytes_in(part) > 0).collect();
        let left = parts.iter().map(bytes_in).sum();
        Self { file, parts, left, reading: None }
    }

    /// Makes a region of other parts of the same file.
    #[must_use]
    pub fn cut(&self, parts: impl IntoIterator<Item = Part>) -> Self {
        Self::of_parts(Arc::clone(&self.file), parts)
    }

    /// Returns the file that has the bytes.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Bytes that are still to come.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Takes what comes next, if that lies in the file: whoever takes it sends it. `None`: the next frame is to be asked for.
    pub fn take_region(&mut self) -> Option<FileRegion> {
        // What is being read already comes as a frame.
        if self.reading.is_some() || !matches!(self.parts.front(), Some(Part::Slice(_))) {
            return None;
        }
        let Some(Part::Slice(range)) = self.parts.pop_front() else { return None };
        self.left -= range.end - range.start;
        Some(FileRegion { file: Arc::clone(&self.file), range })
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let piece = match self.parts.front_mut() {
            None => return Poll::Ready(None),
            Some(Part::Text(text)) => Bytes::from(std::mem::take(text)),
            Some(Part::Slice(range)) => {
                let next = range.start..range.end.min(range.start + PIECE_BYTES);
                let at_hand = if self.reading.is_none() { read_at_hand(&self.file, &next) } else { None };
                let read = match at_hand {
                    Some(piece) => Ok(piece),
                    None => {
                        let file = Arc::clone(&self.file);
                        let reading = self.reading.get_or_insert_with(|| tokio::task::spawn_blocking(move || read(&file, &next)));
                        let read = ready!(Pin::new(reading).poll(cx));
                        self.reading = None;
                        read.map_err(io::Error::other).flatten()
                    }
                };
                match read {
                    Ok(piece) => {
                        range.start += piece.len() as u64;
                        piece
                    }
                    Err(error) => {
                        self.parts.clear();
                        self.left = 0;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
        };
        self.left -= piece.len() as u64;
        if self.parts.front().is_some_and(|part| bytes_in(part) == 0) {
            self.parts.pop_front();
        }
        Poll::Ready(Some(Ok(piece)))
    }
}

/// Reads the front of `range`, as much as the system has in memory. `None`: the next byte has to be read from a disk, is not there, or the file
/// system does not say.
#[cfg(target_os = "linux")]
fn read_at_hand(file: &File, range: &Range<u64>) -> Option<Bytes> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
    let read = preadv2(file, &mut [io::IoSliceMut::new(&mut bytes)], range.start, ReadWriteFlags::NOWAIT).ok().filter(|read| *read > 0)?;
    bytes.truncate(read);
    Some(bytes.into())
}

#[cfg(not(target_os = "linux"))]
const fn read_at_hand(_: &File, _: &Range<u64>) -> Option<Bytes> {
    None
}

/// Reads all of `range`. Blocks.
fn read(file: &File, range: &Range<u64>) -> io::Result<Bytes> {
    let mut bytes = vec![0; usize::try_from(range.end - range.start).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes.into())
}

fn bytes_in(part: &Part) -> u64 {
    match part {
        Part::Text(text) => text.len() as u64,
        Part::Slice(range) => range.end.saturating_sub(range.start),
    }
}

impl HttpBody for FileBody {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let broken = |e: io::Error| OriginError::new(Fault::ConnectionTerminated, "a file ended before its length").because(e);
        self.poll_piece(cx).map(|piece| piece.map(|piece| piece.map(Frame::data).map_err(broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use http_body_util::BodyExt;

    use super::*;

    fn file_of(content: &[u8]) -> Arc<File> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content).expect("written");
        Arc::new(file)
    }

    fn long() -> Vec<u8> {
        (0..50_000_u32).flat_map(u32::to_le_bytes).collect()
    }

    #[tokio::test]
    async fn parts_come_in_order_with_the_text_between_them() {
        let long = long();
        let parts =
            [Part::Text(b"--a\r\n".to_vec()), Part::Slice(3..150_000), Part::Slice(7..7), Part::Text(b"--b".to_vec()), Part::Slice(0..1)];
        let expected = [b"--a\r\n", &long[3..150_000], b"--b", &long[..1]].concat();
        let body = FileBody::of_parts(file_of(&long), parts);
        assert_eq!(body.left(), expected.len() as u64);
        assert!(body.collect().await.expect("whole").to_bytes() == expected);
    }

    #[tokio::test]
    async fn a_region_is_taken_once_and_the_rest_still_comes() {
        let parts = || [Part::Slice(0..2), Part::Text(b"-".to_vec()), Part::Slice(4..8)];
        let mut body = FileBody::of_parts(file_of(b"012345678"), parts());
        assert_eq!(body.take_region().map(|region| region.range), Some(0..2));
        assert_eq!(body.left(), 5);
        assert!(body.take_region().is_none(), "text is not a region");
        assert_eq!(body.collect().await.expect("whole").to_bytes(), "-4567");
    }

    /// A thread hop costs more than reading 64 KB from memory.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_in_memory_is_read_without_another_thread() {
        let long = long();
        let mut body = FileBody::new(file_of(&long), 200_000);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut whole = Vec::new();
        // There is no runtime here that could have another thread.
        while let Poll::Ready(Some(piece)) = Pin::new(&mut body).poll_frame(&mut cx) {
            whole.extend_from_slice(&piece.expect("read").into_data().expect("data"));
        }
        assert!(whole == long && body.is_end_stream());
    }

    #[tokio::test]
    async fn a_file_cut_short_is_an_error() {
        let file = file_of(&long());
        let body = FileBody::new(Arc::clone(&file), 200_000);
        file.set_len(100_000).expect("cut");
        let error = body.collect().await.expect_err("its length was promised");
        assert_eq!(error.fault, Fault::ConnectionTerminated);
    }
}
