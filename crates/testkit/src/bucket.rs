//! Buckets: a real SeaweedFS, and one that is honest, slow or a liar as it is told.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{PATIENCE, free_port};

/// The name of the bucket.
pub const BUCKET: &str = "pages";
/// The access key of the bucket.
pub const BUCKET_KEY: &str = "AKIATESTS";
/// Its secret.
pub const BUCKET_SECRET: &str = "a secret of the tests alone";

/// Returns where `weed`, the program of SeaweedFS, is.
///
/// # Panics
/// Panics when it is not installed.
#[must_use]
pub fn weed() -> PathBuf {
    let cache = || std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let folder = std::env::var_os("SEAWALL_CLUSTER_DIR").map(PathBuf::from);
    let folder = folder.or_else(|| Some(cache().or_else(home)?.join("seawall-cluster"))).expect("a home folder");
    let program = folder.join("seaweedfs/bin/weed");
    assert!(program.is_file(), "{} is missing: `make cluster` installs it", program.display());
    program
}

/// Returns the arguments by which SeaweedFS listens at an address, with a folder for what it keeps. The bucket's port is the first one of eight.
///
/// # Panics
/// Panics when the folder cannot be written.
#[must_use]
pub fn weed_arguments(address: Ipv4Addr, ports: [u16; 8], folder: &std::path::Path) -> Vec<String> {
    let config = folder.join("s3.json");
    let text = format!(
        r#"{{"identities":[{{"name":"seawall","credentials":[{{"accessKey":"{BUCKET_KEY}","secretKey":"{BUCKET_SECRET}"}}],"actions":["Read","Write","List"]}}]}}"#
    );
    std::fs::write(&config, text).expect("written");
    let names =
        ["s3.port", "s3.port.grpc", "filer.port", "filer.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc"];
    let mut arguments =
        vec!["server".to_owned(), format!("-ip={address}"), format!("-ip.bind={address}"), format!("-dir={}", folder.display())];
    arguments.extend(names.iter().zip(ports).map(|(name, port)| format!("-{name}={port}")));
    arguments.extend(
        [
            "-filer",
            "-s3",
            "-s3.autoCreateBucket=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-master.volumeSizeLimitMB=64",
            "-volume.max=4",
        ]
        .map(str::to_owned),
    );
    arguments.push(format!("-s3.config={}", config.display()));
    arguments
}

/// A running SeaweedFS with one empty bucket, on 127.0.0.1. Dropping it ends it, and it forgets everything.
#[derive(Debug)]
pub struct SeaweedFs {
    ports: [u16; 8],
    running: Child,
    folder: TempDir,
}

impl SeaweedFs {
    /// Starts one, and returns when it has the bucket.
    ///
    /// # Panics
    /// Panics when it does not start.
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ports = std::array::from_fn(|_| free_port());
        let log = File::create(folder.path().join("log")).expect("a log");
        let mut command = Command::new(weed());
        command.args(weed_arguments(Ipv4Addr::LOCALHOST, ports, folder.path())).current_dir(folder.path()).env("HOME", folder.path());
        let running = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("weed");
        let mut storage = Self { ports, running, folder };
        let begun = Instant::now();
        // The bucket is a folder of its filer. Whoever asks for it as S3 is refused without a signature, and that is an answer.
        while http(storage.address(), "GET", "/", b"").is_none() || !matches!(storage.filer("POST", "", b""), Some(201 | 409)) {
            let ended = storage.running.try_wait().expect("its state").is_some();
            let log = || std::fs::read_to_string(storage.folder.path().join("log")).unwrap_or_default();
            assert!(!ended && begun.elapsed() < PATIENCE, "SeaweedFS does not start:\n{}", log());
            thread::yield_now();
        }
        // The first write makes the volumes, which takes a while.
        storage.overwrite("first", b"x");
        storage.remove("first");
        storage
    }

    /// Returns its address, as an endpoint.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Writes an object past the bucket's own door, whoever may do that.
    ///
    /// # Panics
    /// Panics when that fails.
    pub fn overwrite(&self, name: &str, content: &[u8]) {
        assert_eq!(self.filer("PUT", name, content), Some(201), "{name}");
    }

    /// Removes an object past the bucket's own door.
    ///
    /// # Panics
    /// Panics when that fails.
    pub fn remove(&self, name: &str) {
        assert_eq!(self.filer("DELETE", name, b""), Some(204), "{name}");
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.ports[0]).into()
    }

    fn filer(&self, method: &str, name: &str, content: &[u8]) -> Option<u16> {
        http((Ipv4Addr::LOCALHOST, self.ports[2]).into(), method, &format!("/buckets/{BUCKET}/{name}"), content)
    }
}

impl Drop for SeaweedFs {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}

/// Sends one request and returns the status of the answer; `None` if there is none.
fn http(address: SocketAddr, method: &str, path: &str, content: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", content.len());
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(content).ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    line.split(' ').nth(1)?.parse().ok()
}

/// How a [`MoodyBucket`] behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// It keeps what it is given, and gives it back.
    Honest,
    /// It never answers.
    Silent,
    /// It answers everything with this status.
    Refusing(u16),
    /// It gives back other bytes, as many as were written.
    Garbling,
    /// It gives back another object than the one that was asked for.
    Confusing,
    /// It gives back a half as if it were the whole.
    Cutting,
    /// It promises the whole, and ends the connection in its middle.
    Breaking,
    /// It gives back a gigabyte.
    Endless,
    /// It gives back what was written before the last time.
    Remembering,
}

/// A bucket of S3's kind in memory, without signatures, that behaves as it is told. Dropping it closes its port.
#[derive(Debug)]
pub struct MoodyBucket {
    address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    mood: Mutex<Mood>,
    /// All that was written, by path, oldest first.
    objects: Mutex<HashMap<String, Vec<Vec<u8>>>>,
    reads: AtomicUsize,
    ends: AtomicBool,
}

impl MoodyBucket {
    /// Starts an honest one on 127.0.0.1.
    #[must_use]
    pub fn start() -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST)
    }

    /// Starts an honest one at an address.
    ///
    /// # Panics
    /// Panics when it cannot listen there.
    #[must_use]
    pub fn start_at(address: Ipv4Addr) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let state =
            State { mood: Mutex::new(Mood::Honest), objects: Mutex::default(), reads: AtomicUsize::new(0), ends: AtomicBool::new(false) };
        let state = Arc::new(state);
        let serving = Arc::clone(&state);
        let thread = thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if serving.ends.load(SeqCst) {
                    return;
                }
                let state = Arc::clone(&serving);
                thread::spawn(move || drop(state.serve(connection)));
            }
        });
        Self { address, state, thread: Some(thread) }
    }

    /// Returns its address, as an endpoint.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Behaves so from now on.
    pub fn becomes(&self, mood: Mood) {
        *self.state.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }

    /// Returns how often it was asked for an object.
    #[must_use]
    pub fn reads(&self) -> usize {
        self.state.reads.load(SeqCst)
    }

    /// Returns the names of all objects, with what was written there last.
    #[must_use]
    pub fn objects(&self) -> Vec<(String, Vec<u8>)> {
        let objects = self.state.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.iter().filter_map(|(name, written)| Some((name.clone(), written.last()?.clone()))).collect()
    }
}

impl Drop for MoodyBucket {
    fn drop(&mut self) {
        self.state.ends.store(true, SeqCst);
        // It looks at the order when somebody comes.
        drop(TcpStream::connect(self.address));
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl State {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let (mut request, mut length) = (String::new(), 0);
            if reader.read_line(&mut request)? == 0 {
                return Ok(());
            }
            loop {
                let mut line = String::new();
                reader.read_line(&mut line)?;
                let Some((name, value)) = line.split_once(':') else { break };
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse().unwrap_or(0);
                }
            }
            let mut content = vec![0; length];
            reader.read_exact(&mut content)?;
            let mut words = request.split(' ');
            let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            if method == "GET" {
                self.reads.fetch_add(1, SeqCst);
            }
            let mood = *self.mood.lock().unwrap_or_else(PoisonError::into_inner);
            match mood {
                Mood::Silent => {
                    // Until the other side has had enough.
                    let _ = reader.read(&mut [0])?;
                    return Ok(());
                }
                Mood::Refusing(status) => answer(&mut stream, status, b"")?,
                mood => self.take(&mut stream, mood, (method, path), content)?,
            }
            if mood == Mood::Breaking && method == "GET" {
                return Ok(());
            }
        }
    }

    fn take(&self, stream: &mut TcpStream, mood: Mood, (method, path): (&str, &str), content: Vec<u8>) -> std::io::Result<()> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        match method {
            "PUT" => {
                objects.entry(path.to_owned()).or_default().push(content);
                return answer(stream, 200, b"");
            }
            "DELETE" => {
                objects.remove(path);
                return answer(stream, 204, b"");
            }
            _ => {}
        }
        let Some(written) = objects.get(path) else { return answer(stream, 404, b"<Error><Code>NoSuchKey</Code></Error>") };
        let object = written.last().cloned().unwrap_or_default();
        match mood {
            Mood::Garbling => answer(stream, 200, &object.iter().rev().copied().collect::<Vec<u8>>()),
            Mood::Confusing => {
                let another = objects.iter().filter(|(other, _)| *other != path).find_map(|(_, written)| written.last());
                answer(stream, 200, another.map_or(&[], Vec::as_slice))
            }
            Mood::Cutting => answer(stream, 200, &object[..object.len() / 2]),
            Mood::Breaking => {
                head(stream, 200, object.len())?;
                stream.write_all(&object[..object.len() / 2])
            }
            Mood::Endless => {
                drop(objects);
                head(stream, 200, 1 << 30)?;
                let (zeros, begun) = (vec![0; 1 << 20], Instant::now());
                while begun.elapsed() < Duration::from_secs(30) {
                    stream.write_all(&zeros)?;
                }
                Ok(())
            }
            Mood::Remembering => answer(stream, 200, written.iter().rev().nth(1).unwrap_or(&object)),
            Mood::Honest | Mood::Silent | Mood::Refusing(_) => answer(stream, 200, &object),
        }
    }
}

fn answer(stream: &mut TcpStream, status: u16, content: &[u8]) -> std::io::Result<()> {
    head(stream, status, content.len())?;
    stream.write_all(content)
}

fn head(stream: &mut TcpStream, status: u16, length: usize) -> std::io::Result<()> {
    let length = if status == 204 { String::new() } else { format!("content-length: {length}\r\n") };
    write!(stream, "HTTP/1.1 {status} As told\r\netag: \"tag\"\r\n{length}\r\n")
}
