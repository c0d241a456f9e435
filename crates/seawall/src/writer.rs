//! A writer is a thread with a bounded queue of lines. A slow disk, or a reader that sleeps or is gone, delays nobody and fails nothing: lines
//! that do not fit into the queue, or that cannot be written, are counted and lost.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

/// The largest number of pieces that wait. Pieces of the access log have about 32 KiB each, so 4 MiB.
const PIECES_MAX: usize = 128;

/// A piece holds lines that belong together.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    /// The number of lines.
    pub(crate) lines: u64,
}

/// A destination takes lines: a file, or an open stream.
#[derive(Debug)]
pub(crate) struct Destination {
    file: File,
    /// The path of the file, which is opened again after it was moved away. `None`: the destination is a stream.
    path: Option<PathBuf>,
    /// Whether the last line was cut in the middle: the next one must not continue it.
    is_torn: bool,
}

impl Destination {
    /// Adds lines to the end of a file, which is made if it is not there.
    pub(crate) fn file(path: PathBuf) -> io::Result<Self> {
        Ok(Self { file: open(&path)?, path: Some(path), is_torn: false })
    }

    /// Sends lines to an open stream, such as standard output. It leaves out the buffer of the standard library, which would keep a line
    /// that could not be written, and try it again.
    pub(crate) fn stream(stream: &impl AsFd) -> io::Result<Self> {
        Ok(Self { file: stream.as_fd().try_clone_to_owned()?.into(), path: None, is_torn: false })
    }

    fn reopen(&mut self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        self.file = open(path)?;
        self.is_torn &= self.file.metadata().is_ok_and(|metadata| metadata.len() > 0);
        Ok(())
    }

    /// Writes all bytes. If it cannot, returns how many lines are lost, and why.
    fn write(&mut self, bytes: &[u8]) -> Result<(), (u64, io::Error)> {
        let mut rest = bytes;
        if self.is_torn {
            self.file.write_all(b"\n").map_err(|error| (lines(rest), error))?;
            self.is_torn = false;
        }
        while !rest.is_empty() {
            let error = match self.file.write(rest) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(n) => {
                    rest = &rest[n..];
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            let written = &bytes[..bytes.len() - rest.len()];
            self.is_torn = written.last().is_some_and(|last| *last != b'\n');
            return Err((lines(rest), error));
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// A sink takes lines from any thread, and never waits.
#[derive(Debug, Clone)]
pub(crate) struct Sink(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Piece>,
    is_writing: bool,
    is_to_reopen: bool,
    is_closed: bool,
    lost: u64,
}

impl Sink {
    /// Hands a piece on without waiting. If the queue is full, its lines are lost, and counted.
    pub(crate) fn send(&self, piece: Piece) {
        let mut state = self.0.state.lock();
        if state.is_closed || state.pieces.len() >= PIECES_MAX {
            state.lost += piece.lines;
            return;
        }
        state.pieces.push_back(piece);
        drop(state);
        self.0.changed.notify_all();
    }

    /// Has the file opened again before the next line, after a rotation. Never waits.
    pub(crate) fn reopen(&self) {
        self.0.state.lock().is_to_reopen = true;
        self.0.changed.notify_all();
    }

    /// Waits for at most `wait` until everything is written that was sent before. Returns whether it is.
    pub(crate) fn flush(&self, wait: Duration) -> bool {
        let end = Instant::now() + wait;
        let mut state = self.0.state.lock();
        while !state.pieces.is_empty() || state.is_writing {
            if self.0.changed.wait_until(&mut state, end).timed_out() {
                return state.pieces.is_empty() && !state.is_writing;
            }
        }
        true
    }

    /// Returns the number of lines that were lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.0.state.lock().lost
    }
}

/// A sink and its thread.
#[derive(Debug)]
pub(crate) struct Writer {
    sink: Sink,
    thread: JoinHandle<()>,
}

/// A function that is told why lines cannot be written: once, until they can be again.
pub(crate) type Troubled = fn(&io::Error);

/// A function that makes the text that stands before the next line when so many lines were lost.
pub(crate) type LossNote = fn(u64) -> Vec<u8>;

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn start(name: &str, destination: Destination, troubled: Troubled, note: Option<LossNote>) -> io::Result<Self> {
        let sink = Sink(Arc::default());
        let queue = Arc::clone(&sink.0);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || run(&queue, destination, troubled, note))?;
        Ok(Self { sink, thread })
    }

    pub(crate) const fn sink(&self) -> &Sink {
        &self.sink
    }

    /// Takes no more lines, and writes those that wait, for at most `wait`. Lines that a reader does not take by then are lost. Their
    /// thread is left alone, because it may wait for that reader for ever.
    pub(crate) fn close(self, wait: Duration) -> bool {
        let is_written = self.sink.flush(wait);
        self.sink.0.state.lock().is_closed = true;
        self.sink.0.changed.notify_all();
        if is_written {
            let _ = self.thread.join();
        }
        is_written
    }
}

fn run(queue: &Queue, mut destination: Destination, troubled: Troubled, note: Option<LossNote>) {
    let (mut is_troubled, mut said) = (false, 0);
    let mut state = queue.state.lock();
    loop {
        if !state.is_to_reopen && state.pieces.is_empty() {
            if state.is_closed {
                return;
            }
            queue.changed.wait(&mut state);
            continue;
        }
        let reopen = std::mem::take(&mut state.is_to_reopen);
        let piece = state.pieces.pop_front();
        let unsaid = state.lost - said;
        state.is_writing = true;
        drop(state);
        let reopened = if reopen { destination.reopen() } else { Ok(()) };
        let noted = match note {
            Some(note) if unsaid > 0 => destination.write(&note(unsaid)),
            _ => Ok(()),
        };
        if noted.is_ok() {
            said += unsaid;
        }
        let written = piece.map(|piece| destination.write(&piece.bytes));
        let (lost, error) = match written {
            Some(Err((lost, error))) => (lost, Some(error)),
            Some(Ok(())) => {
                is_troubled = false;
                (0, reopened.err())
            }
            None => (0, reopened.err()),
        };
        // A full disk is said once, not once for every line.
        if let Some(error) = error.filter(|_| !std::mem::replace(&mut is_troubled, true)) {
            troubled(&error);
        }
        state = queue.state.lock();
        state.is_writing = false;
        state.lost += lost;
        queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{Read as _, pipe},
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn piece(text: &str) -> Piece {
        Piece { bytes: text.as_bytes().to_vec(), lines: lines(text.as_bytes()) }
    }

    #[test]
    fn a_reader_that_is_gone_costs_lines_and_nothing_else() {
        let (reader, writer) = pipe().expect("a pipe");
        let destination = Destination::stream(&writer).expect("open");
        drop((reader, writer));
        let writer = Writer::start("test", destination, |_| {}, None).expect("a thread");
        writer.sink().send(piece("one\ntwo\n"));
        writer.sink().send(piece("three\n"));
        let sink = writer.sink().clone();
        assert!(writer.close(PATIENCE));
        assert_eq!(sink.lost(), 3);
    }

    #[test]
    fn a_reader_that_sleeps_stops_nobody() {
        let (reader, writer) = pipe().expect("a pipe");
        let destination = Destination::stream(&writer).expect("open");
        let writing = Writer::start("test", destination, |_| {}, None).expect("a thread");
        let sink = writing.sink().clone();
        // More than any pipe and the queue take.
        let line = "x".repeat(64 * 1024) + "\n";
        for _ in 0..PIECES_MAX * 2 {
            sink.send(piece(&line));
        }
        assert!(sink.lost() > 0);
        sink.reopen();
        assert!(!writing.close(Duration::from_millis(1)), "nobody reads");
        drop((reader, writer));
    }

    #[test]
    fn a_reader_that_wakes_up_is_told_what_it_missed() {
        let (mut reader, writer) = pipe().expect("a pipe");
        let destination = Destination::stream(&writer).expect("open");
        drop(writer);
        let note: LossNote = |lost| format!("{lost} lost\n").into_bytes();
        let writing = Writer::start("test", destination, |_| {}, Some(note)).expect("a thread");
        let sink = writing.sink().clone();
        let line = "x".repeat(64 * 1024) + "\n";
        for _ in 0..PIECES_MAX * 2 {
            sink.send(piece(&line));
        }
        let lost = sink.lost();
        assert!(lost > 0);
        let reading = thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        assert!(sink.flush(PATIENCE));
        sink.send(piece("after\n"));
        assert!(writing.close(PATIENCE));
        let text = reading.join().expect("no panic").expect("read");
        assert!(text.contains(&format!("{lost} lost\n")), "what was lost is said, before what comes next");
        assert!(text.ends_with("after\n"));
        assert_eq!(text.lines().filter(|line| line.starts_with('x')).count() as u64 + lost, PIECES_MAX as u64 * 2);
    }

    #[test]
    fn a_line_that_was_cut_does_not_run_into_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut destination = Destination::file(path.clone()).expect("open");
        destination.write(b"{\"whole\":1}\n{\"cut\":").expect("written");
        // As a disk does that becomes full within a line.
        destination.is_torn = true;
        destination.write(b"{\"next\":1}\n").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "{\"whole\":1}\n{\"cut\":\n{\"next\":1}\n");
    }
}
