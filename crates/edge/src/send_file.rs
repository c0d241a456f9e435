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
    /// Where the bytes are.
    pub range: Range<u64>,
}

/// Bytes after which other connections have their turn: a millisecond's work.
pub(crate) const STEP_BYTES: u64 = 2 << 20;

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

    /// Whether a file's bytes can be sent without waiting for a disk: the first and the last of `range` are looked at. Where the file system
    /// does not say, it is taken for one in memory.
    pub(crate) fn is_at_hand(file: &File, range: &Range<u64>) -> bool {
        let has = |at| {
            let mut byte = [0];
            !matches!(preadv2(file, &mut [IoSliceMut::new(&mut byte)], at, ReadWriteFlags::NOWAIT), Err(Errno::AGAIN))
        };
        has(range.start) && has(range.end - 1)
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
pub(crate) use linux::{fetch, is_at_hand, poll_send, try_write_before_more};
