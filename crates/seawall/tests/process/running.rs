//! A server under test: started, asked, told to stop.

use std::{
    fs,
    io::{self, PipeReader, PipeWriter, Read, Write, pipe},
    net::{SocketAddr, TcpStream},
    os::unix::net::{UnixDatagram, UnixStream},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::mpsc::sync_channel,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// A test gives up when anything takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder for a test: the home of whoever runs the server, and all that it writes.
pub(crate) struct TestFolder(TempDir);

impl TestFolder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path().join("site.sock")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("below")).expect("a folder");
        fs::write(&path, text).expect("written");
        path
    }

    /// Returns a blog with one post, in `blog`.
    pub(crate) fn with_blog() -> Self {
        let place = Self::new();
        place.write("blog/first.md", "# First\n\nversion one\n");
        place
    }

    /// Returns a folder with one page, in `site`.
    pub(crate) fn with_site() -> Self {
        let place = Self::new();
        place.write("site/index.html", "hello\n");
        place
    }

    /// Returns `seawall` with these arguments, and no variable that the test does not set.
    pub(crate) fn seawall(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seawall"));
        self.dress(&mut command).args(arguments);
        command
    }

    /// Runs `command` here, as somebody with this home who finds `seawall` in the path.
    pub(crate) fn dress<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let folder = Path::new(env!("CARGO_BIN_EXE_seawall")).parent().expect("a folder").display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
        command.env_clear().env("PATH", path).env("HOME", self.path()).current_dir(self.path()).stdin(Stdio::null())
    }

    /// Returns `seawall serve` with a Unix socket to ask it through, unless the arguments say where to listen.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Command {
        let mut command = self.seawall(&["serve"]);
        command.args(arguments).args(["--workers", "2"]);
        if !arguments.iter().any(|argument| ["--listen", "--config", "--domain"].contains(argument)) {
            command.arg("--listen").arg(format!("unix:{}", self.socket().display()));
        }
        if !arguments.iter().any(|argument| ["--admin", "--config"].contains(argument)) {
            command.args(["--admin", "off"]);
        }
        command
    }
}

/// A running server. Dropping it kills it.
pub(crate) struct Running {
    child: Child,
    manager: UnixDatagram,
    _manager_folder: TempDir,
}

impl Running {
    /// Starts it, and does not wait.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).expect("bound");
        manager.set_read_timeout(Some(PATIENCE)).expect("a bound");
        let child = command.env("NOTIFY_SOCKET", &path).spawn().expect("it starts");
        Self { child, manager, _manager_folder: folder }
    }

    /// Starts it, and returns when it serves.
    pub(crate) fn start(command: &mut Command) -> Self {
        let running = Self::spawn(command);
        running.told("READY=1");
        running
    }

    /// Waits for a message to the service manager with this line, and returns it.
    pub(crate) fn told(&self, line: &str) -> String {
        loop {
            let message = self.next().unwrap_or_else(|error| panic!("nothing more is told ({error}), and {line} never was"));
            if message.lines().any(|told| told == line) {
                return message;
            }
        }
    }

    /// Returns the next message to the service manager.
    pub(crate) fn next(&self) -> io::Result<String> {
        let mut buffer = [0; 4096];
        loop {
            match self.manager.recv(&mut buffer) {
                Ok(n) => return Ok(String::from_utf8_lossy(&buffer[..n]).into_owned()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Tells whether there is no message that nobody has looked at.
    pub(crate) fn has_told_nothing_more(&self) -> bool {
        self.manager.set_nonblocking(true).expect("set");
        self.manager.recv(&mut [0; 4096]).is_err()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.child.id())).status().expect("a shell");
        assert!(sent.success(), "{name}");
    }

    /// Sends SIGHUP, and returns when it is done.
    pub(crate) fn reload(&self) {
        self.signal("HUP");
        assert!(self.told("RELOADING=1").lines().any(|line| line.starts_with("MONOTONIC_USEC=")));
        self.told("READY=1");
    }

    /// Sends SIGTERM, and returns how it ends.
    pub(crate) fn stop(self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < end, "it does not end");
            self.pause();
        }
    }

    /// Takes standard error, from where it stands, if the test may read it.
    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Takes standard error, of a server whose standard error is piped.
    pub(crate) fn stderr(&mut self) -> ChildStderr {
        self.take_stderr().expect("piped")
    }

    pub(crate) fn stdout(&mut self) -> impl Read + Send + 'static {
        self.child.stdout.take().expect("piped")
    }

    /// Asks until `is_so`: for what a watcher sees a moment later.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < end, "never: {what}");
            self.pause();
        }
    }

    /// Waits for a moment, in which a process may do something.
    #[expect(clippy::disallowed_methods, reason = "waits for another process, which tells nobody")]
    fn pause(&self) {
        thread::sleep(Duration::from_millis(10));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a GET over a connection of its own, and returns the whole answer.
pub(crate) fn get(place: &TestFolder, path: &str) -> String {
    let stream = UnixStream::connect(place.socket()).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
    ask(stream, path)
}

/// Sends a GET over a TCP connection of its own, and returns the whole answer.
pub(crate) fn get_from(address: SocketAddr, path: &str) -> String {
    let stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
    ask(stream, path)
}

pub(crate) fn ask(mut stream: impl Read + Write, path: &str) -> String {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads a stream to its end on a thread of its own.
pub(crate) fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = Vec::new();
        stream.read_to_end(&mut text).expect("read");
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// A stream that takes nothing.
pub(crate) enum Deaf {
    /// Its reader is gone.
    Gone,
    /// Its reader sleeps, and the pipe is full.
    Asleep { _reader: PipeReader },
    /// It leads to a disk that is full.
    Full,
}

impl Deaf {
    pub(crate) fn all() -> [(&'static str, Self, Stdio); 3] {
        let (gone, writer) = pipe().expect("a pipe");
        drop(gone);
        let (reader, asleep) = pipe().expect("a pipe");
        fill(&asleep);
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        [
            ("its reader is gone", Self::Gone, writer.into()),
            ("its reader sleeps", Self::Asleep { _reader: reader }, asleep.into()),
            ("its disk is full", Self::Full, full.into()),
        ]
    }
}

/// Writes until nothing more fits: the writer that is stuck then stays where it is, until the reader goes.
fn fill(pipe: &PipeWriter) {
    let mut writer = pipe.try_clone().expect("a pipe");
    let (written, progress) = sync_channel(1024);
    thread::spawn(move || while writer.write_all(&[b'.'; 4096]).is_ok() && written.send(()).is_ok() {});
    while progress.recv_timeout(Duration::from_millis(200)).is_ok() {}
}
