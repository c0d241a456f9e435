//! The thread that writes the access log, so that a slow disk delays nobody: what does not fit into its queue is counted and dropped.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread::{self, JoinHandle},
};

/// Pieces that may wait, of about 32 KiB each: 4 MiB.
const QUEUE: usize = 128;

/// Lines that belong together.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
}

enum Order {
    Write(Piece),
    /// Open the file anew: it was moved away.
    Reopen,
    /// Say when everything before is written.
    Flush(SyncSender<()>),
}

/// Where workers send their lines.
#[derive(Debug, Clone)]
pub(crate) struct LogSink(SyncSender<Order>);

impl LogSink {
    /// Hands a piece on, or says at once that it cannot.
    pub(crate) fn send(&self, piece: Piece) -> bool {
        !matches!(self.0.try_send(Order::Write(piece)), Err(TrySendError::Full(_) | TrySendError::Disconnected(_)))
    }

    /// Has the file opened anew, for those who rotate it.
    pub(crate) fn reopen(&self) {
        let _ = self.0.send(Order::Reopen);
    }

    /// Waits until everything sent before is written.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.0.send(Order::Flush(done)).is_ok() {
            let _ = wait.recv();
        }
    }
}

/// Starts the thread. `None` writes to standard output.
///
/// # Errors
/// When the file cannot be opened.
pub(crate) fn start(path: Option<PathBuf>) -> io::Result<(LogSink, JoinHandle<()>)> {
    let mut destination: Box<dyn Write + Send> = match &path {
        Some(path) => Box::new(open(path)?),
        None => Box::new(io::stdout()),
    };
    let (sender, receiver) = sync_channel(QUEUE);
    let thread = thread::Builder::new().name("access-log".to_owned()).spawn(move || run(&receiver, &mut destination, path.as_deref()))?;
    Ok((LogSink(sender), thread))
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn run(orders: &Receiver<Order>, destination: &mut Box<dyn Write + Send>, path: Option<&Path>) {
    let mut complained = false;
    while let Ok(order) = orders.recv() {
        let result = match order {
            Order::Write(piece) => destination.write_all(&piece.bytes).and_then(|()| destination.flush()),
            Order::Reopen => match path.map(open) {
                Some(Ok(file)) => {
                    *destination = Box::new(file);
                    complained = false;
                    Ok(())
                }
                Some(Err(error)) => Err(error),
                None => Ok(()),
            },
            Order::Flush(done) => {
                let _ = done.send(());
                Ok(())
            }
        };
        if let Err(error) = result
            && !complained
        {
            // A full disk is said once, not once for every line.
            complained = true;
            tracing::error!(%error, "cannot write the access log");
        }
    }
}
