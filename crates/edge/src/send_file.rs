//! Content that goes from a file to a socket without passing through us.
//!
//! The system sends what it has in memory at once; what it has to read from a disk first would hold up a worker with all its connections.
//! So it is asked before, and what it does not have is read by another thread.

use std::{fs::File, ops::Range, sync::Arc};

/// Bytes of an open file that are the next content of a response.
#[derive(Debug, Clone)]
pub struct FileRegion {
    /// The file; its position means nothing.
    pub file: Arc<File>,
    /// The place of the bytes.
    pub range: Range<u64>,
}

/// Bytes after which other connections have their turn: a millisecond's work.
pub(crate) const STEP_BYTES: u64 = 2 << 20;

/// The smallest page of memory that a kernel keeps files in.
#[cfg(target_os = "linux")]
const PAGE_BYTES: u64 = 4096;

/// The longest region that is copied whole behind its head: one read and one write cost less than what `sendfile` needs besides.
#[cfg(target_os = "linux")]
const COPIED_MAX: u64 = 8 << 10;

/// Returns the beginning of a region that is copied behind its head: all of a short one, and of a longer one what lies in its first page.
///
/// The rest then begins where a page begins. The kernel sends a file by its pages, sixteen at a time, and a segment holds seventeen pieces: 64 KB
/// from the middle of a page would be seventeen pages and the head, which is a second round and a further segment, and costs half as much again.
#[cfg(target_os = "linux")]
pub(crate) const fn copied(region: &Range<u64>) -> Range<u64> {
    let length = region.end - region.start;
    let in_first_page = PAGE_BYTES - region.start % PAGE_BYTES;
    region.start..region.start + if length <= COPIED_MAX { length } else { in_first_page }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs::File,
        io::{self, IoSliceMut},
        ops::Range,
        os::unix::fs::FileExt,
        sync::Arc,
        task::{Context, Poll, ready},
    };

    use rustix::{
        io::{Errno, ReadWriteFlags, preadv2},
        net::{SendFlags, send},
    };
    use tokio::{io::Interest, net::TcpStream};

    /// Returns whether the byte of a file at `offset` can be sent without waiting for a disk. A file system that does not say is taken for
    /// one in memory.
    pub(crate) fn is_at_hand(file: &File, offset: u64) -> bool {
        let mut byte = [0];
        !matches!(preadv2(file, &mut [IoSliceMut::new(&mut byte)], offset, ReadWriteFlags::NOWAIT), Err(Errno::AGAIN))
    }

    /// Appends `range` of a file to `out`, if that needs no waiting for a disk. Otherwise it appends nothing and returns `false`.
    pub(crate) fn read_at_hand(file: &File, range: &Range<u64>, out: &mut Vec<u8>) -> bool {
        let Ok(length) = usize::try_from(range.end - range.start) else { return false };
        let before = out.len();
        out.resize(before + length, 0);
        let read = match preadv2(file, &mut [IoSliceMut::new(&mut out[before..])], range.start, ReadWriteFlags::NOWAIT) {
            // The system also says so of memory that is there, but reading which has it read ahead; that is not waited for.
            Err(Errno::AGAIN) if is_at_hand(file, range.start) && is_at_hand(file, range.end - 1) => {
                file.read_at(&mut out[before..], range.start).ok()
            }
            read => read.ok(),
        };
        let is_whole = read == Some(length);
        if !is_whole {
            out.truncate(before);
        }
        is_whole
    }

    /// Has the system read `range` into its memory, on a thread that may wait for it.
    pub(crate) async fn fetch(file: &Arc<File>, range: Range<u64>) -> io::Result<()> {
        let file = Arc::clone(file);
        let read = move || {
            let mut at = range.start;
            let mut sink = vec![0; 64 * 1024];
            while at < range.end {
                match file.read_at(&mut sink, at)? {
                    0 => break,
                    n => at += n as u64,
                }
            }
            Ok(())
        };
        tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
    }

    /// Writes some of `bytes`, which more is to follow at once: they wait for it, so that both leave in one segment.
    pub(crate) fn try_write_before_more(socket: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        socket.try_io(Interest::WRITABLE, || Ok(send(socket, bytes, flags)?))
    }

    /// Sends some of `range`. 0: the file has ended.
    pub(crate) fn poll_send(socket: &TcpStream, cx: &mut Context<'_>, file: &File, range: &Range<u64>) -> Poll<io::Result<u64>> {
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        loop {
            ready!(socket.poll_write_ready(cx))?;
            let mut at = range.start;
            match socket.try_io(Interest::WRITABLE, || Ok(rustix::fs::sendfile(socket, file, Some(&mut at), length)?)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent.map(|sent| sent as u64)),
            }
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{fetch, is_at_hand, poll_send, read_at_hand, try_write_before_more};

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_is_not_copied_begins_with_a_page() {
        assert_eq!(copied(&(0..COPIED_MAX)), 0..COPIED_MAX);
        assert_eq!(copied(&(5..6)), 5..6);
        assert_eq!(copied(&(4095..4095 + COPIED_MAX)), 4095..4095 + COPIED_MAX);
        for start in [0, 1, 4095, 4096, 4097, 7_919_000] {
            let beginning = copied(&(start..start + COPIED_MAX + 1));
            assert_eq!((beginning.start, beginning.end % PAGE_BYTES), (start, 0));
            assert!((1..=PAGE_BYTES).contains(&(beginning.end - beginning.start)));
        }
    }

    #[test]
    fn a_range_is_read_whole_or_not_at_all() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"0123456789").expect("written");
        let mut out = b"head ".to_vec();
        assert!(read_at_hand(&file, &(2..5), &mut out));
        assert_eq!(out, b"head 234");
        assert!(!read_at_hand(&file, &(8..11), &mut out), "the file has ended");
        assert_eq!(out, b"head 234");
    }
}
