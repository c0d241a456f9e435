//! Valkey and Redis: real servers, each on a free port and in a folder of its own.

use std::{
    io::{BufReader, Write as _},
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Instant,
};

use tempfile::TempDir;

use crate::{PATIENCE, free_port};

/// The program that is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    /// `valkey-server`.
    Valkey,
    /// `redis-server`.
    Redis,
}

impl Software {
    /// Returns those of the two that are installed, Valkey first.
    ///
    /// # Panics
    /// Panics when none is.
    #[must_use]
    pub fn installed() -> Vec<Self> {
        let there = |software: &Self| Command::new(software.program()).arg("--version").stdout(Stdio::null()).status().is_ok();
        let found: Vec<_> = [Self::Valkey, Self::Redis].into_iter().filter(there).collect();
        assert!(!found.is_empty(), "neither valkey-server nor redis-server is installed: make cluster");
        found
    }

    /// Returns the first one that is installed.
    ///
    /// # Panics
    /// Panics when none is.
    #[must_use]
    pub fn any() -> Self {
        Self::installed()[0]
    }

    const fn program(self) -> &'static str {
        match self {
            Self::Valkey => "valkey-server",
            Self::Redis => "redis-server",
        }
    }
}

/// A running server, which listens on 127.0.0.1. Dropping it ends it, and it forgets everything.
#[derive(Debug)]
pub struct Valkey {
    software: Software,
    port: u16,
    arguments: Vec<String>,
    tls: bool,
    running: Option<Child>,
    folder: TempDir,
}

impl Valkey {
    /// Starts a server that keeps nothing on its disk, and returns when it answers.
    ///
    /// # Panics
    /// Panics when it does not start.
    #[must_use]
    pub fn start(software: Software) -> Self {
        Self::start_with(software, &[])
    }

    /// Starts a server with more arguments, such as `["--requirepass", "secret"]`.
    ///
    /// # Panics
    /// Panics when it does not start.
    #[must_use]
    pub fn start_with(software: Software, arguments: &[&str]) -> Self {
        Self::run(software, free_port(), false, tempfile::tempdir().expect("a folder"), arguments)
    }

    /// Starts a server that speaks TLS alone, with a certificate and its key as PEM.
    ///
    /// # Panics
    /// Panics when it does not start.
    #[must_use]
    pub fn start_with_tls(software: Software, certificate: &str, key: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [certificate_file, key_file] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name).display().to_string());
        std::fs::write(&certificate_file, certificate).expect("written");
        std::fs::write(&key_file, key).expect("written");
        let port = free_port();
        let text = port.to_string();
        let arguments = [
            ["--tls-port", &text],
            ["--tls-cert-file", &certificate_file],
            ["--tls-key-file", &key_file],
            // It wants one, and asks nobody for a certificate.
            ["--tls-ca-cert-file", &certificate_file],
            ["--tls-auth-clients", "no"],
        ];
        Self::run(software, port, true, folder, arguments.as_flattened())
    }

    /// Starts a Sentinel that watches a primary under a name. One that agrees with itself is enough for a failover.
    ///
    /// # Panics
    /// Panics when it does not start.
    #[must_use]
    pub fn start_sentinel(software: Software, name: &str, primary: u16) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let file = folder.path().join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor {name} 127.0.0.1 {primary} 1\n\
             sentinel down-after-milliseconds {name} 1000\nsentinel failover-timeout {name} 5000\n",
            folder.path().display()
        );
        std::fs::write(&file, text).expect("written");
        let arguments = vec![file.display().to_string(), "--sentinel".to_owned()];
        let mut server = Self { software, port, arguments, tls: false, running: None, folder };
        server.begin();
        server
    }

    fn run(software: Software, port: u16, tls: bool, folder: TempDir, arguments: &[&str]) -> Self {
        let plain = if tls { 0 } else { port }.to_string();
        let dir = folder.path().display().to_string();
        let own = ["--port", &plain, "--bind", "127.0.0.1", "--dir", &dir, "--save", "", "--appendonly", "no", "--daemonize", "no"];
        let arguments = own.iter().chain(arguments).map(|&one| one.to_owned()).collect();
        let mut server = Self { software, port, arguments, tls, running: None, folder };
        server.begin();
        server
    }

    /// Returns the program that runs.
    #[must_use]
    pub const fn software(&self) -> Software {
        self.software
    }

    /// Returns the port where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns its URL, without a user.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", if self.tls { "rediss" } else { "redis" }, self.port)
    }

    /// Returns its folder, where a dump is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again after [`kill`](Self::kill), on its port and with its folder and arguments, and returns when it answers.
    ///
    /// # Panics
    /// Panics when it does not start.
    pub fn start_again(&mut self) {
        self.kill();
        self.begin();
    }

    /// Stops it without ending it (`SIGSTOP`): its connections stay open, and nothing answers.
    ///
    /// # Panics
    /// Panics when it does not run.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on after [`freeze`](Self::freeze).
    ///
    /// # Panics
    /// Panics when it does not run.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.running.as_ref().expect("it runs").id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
    }

    /// Sends one command and returns the reply: text as it is, numbers as digits, nothing as `(nil)`, an error with `-` before it, and of a list one
    /// line each.
    ///
    /// # Panics
    /// Panics when it does not answer.
    pub fn ask<W: AsRef<[u8]>>(&self, words: &[W]) -> String {
        self.try_ask(words).expect("an answer")
    }

    /// Sends one command; `None` if there is no answer.
    fn try_ask<W: AsRef<[u8]>>(&self, words: &[W]) -> Option<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut command = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            command.extend_from_slice(format!("${}\r\n", word.as_ref().len()).as_bytes());
            command.extend_from_slice(word.as_ref());
            command.extend_from_slice(b"\r\n");
        }
        stream.write_all(&command).ok()?;
        read(&mut BufReader::new(stream))
    }

    fn begin(&mut self) {
        let program = self.software.program();
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log");
        let child = Command::new(program).args(&self.arguments).stdin(Stdio::null()).stdout(log).stderr(Stdio::null()).spawn();
        self.running = Some(child.unwrap_or_else(|error| panic!("{program} cannot be started: {error}; `make cluster` installs it")));
        let begun = Instant::now();
        while !self.answers() {
            let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "{program} does not answer:\n{}", log());
            let ended = self.running.as_mut().expect("started").try_wait().expect("its state");
            assert!(ended.is_none(), "{program} ended:\n{}", log());
            thread::yield_now();
        }
    }

    /// Whether it is ready. It says something else while it loads a dump; with a password, it says so.
    fn answers(&self) -> bool {
        if self.tls {
            return TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        }
        self.try_ask(&["PING"]).is_some_and(|said| said == "PONG" || said.starts_with("-NOAUTH"))
    }
}

impl Drop for Valkey {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read(reader: &mut impl std::io::BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let line = line.strip_suffix("\r\n")?;
    let (kind, rest) = line.split_at_checked(1)?;
    Some(match kind {
        "+" | ":" => rest.to_owned(),
        "-" => line.to_owned(),
        "$" => match usize::try_from(rest.parse::<i64>().ok()?) {
            Ok(length) => {
                let mut bytes = vec![0; length + 2];
                reader.read_exact(&mut bytes).ok()?;
                String::from_utf8_lossy(&bytes[..length]).into_owned()
            }
            Err(_) => "(nil)".to_owned(),
        },
        "*" => match usize::try_from(rest.parse::<i64>().ok()?) {
            Ok(count) => (0..count).map(|_| read(reader)).collect::<Option<Vec<_>>>()?.join("\n"),
            Err(_) => "(nil)".to_owned(),
        },
        _ => return None,
    })
}
