//! An origin, a Seawall in front of it, and readers.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tempfile::TempDir;
use testkit::free_port;

use crate::programs::{Ended, bare, wait_for};

/// An origin whose pages say by their path how they want to be treated. Dropping it makes its port refuse.
pub(crate) struct Origin {
    port: u16,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    /// Listens on this port.
    pub(crate) fn at(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a free port");
        let ends = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                thread::spawn(move || drop(answer(connection)));
            }
        });
        Self { port, ends, thread: Some(thread) }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // It looks at the order when somebody comes.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Answers one request, and closes.
fn answer(mut connection: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut bytes = [0; 4096];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        match connection.read(&mut bytes)? {
            0 => return Ok(()),
            n => head.extend_from_slice(&bytes[..n]),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, fields, body) = match path.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "/post-" => {
            ("200 OK", "content-type: text/html\r\ncache-control: max-age=1, stale-while-revalidate=2\r\netag: \"a\"\r\n", "a post")
        }
        "/kept-" => ("200 OK", "content-type: text/html\r\ncache-control: max-age=100000\r\n", "a page that stays"),
        "/picture-" => ("200 OK", "content-type: image/webp\r\ncache-control: max-age=100000\r\n", "a picture"),
        "/session-" => ("200 OK", "content-type: text/html\r\nset-cookie: PHPSESSID=1\r\n", "a page with a session"),
        "/private-" => ("200 OK", "content-type: text/html\r\ncache-control: no-store\r\n", "a page for one"),
        "/broken-" => ("500 Internal Server Error", "content-type: text/html\r\n", "broken"),
        "/form" => ("200 OK", "content-type: text/html\r\n", "thanks"),
        _ => ("404 Not Found", "content-type: text/html\r\n", "nothing here"),
    };
    let length = body.len();
    connection.write_all(format!("HTTP/1.1 {status}\r\n{fields}content-length: {length}\r\nconnection: close\r\n\r\n{body}").as_bytes())
}

/// A running Seawall, with a place of its own on the disk.
pub(crate) struct Seawall {
    pub(crate) process: Ended,
    pub(crate) port: u16,
    pub(crate) admin: u16,
    _folder: TempDir,
}

impl Seawall {
    /// Starts one with two sites, both of one origin, the second as if that were a WordPress, and with these sections more. It asks in vain for a certificate.
    pub(crate) fn before(origin: u16, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (port, tls, admin) = (free_port(), free_port(), free_port());
        let site =
            |name: &str, kind: &str| format!("[[site]]\nhosts = [\"{name}\"]\nsource = \"http://127.0.0.1:{origin}\"\nkind = \"{kind}\"\n");
        let config = format!(
            "[server]\nlisten = [\"127.0.0.1:{port}\"]\nadmin = \"127.0.0.1:{admin}\"\nadmin_token_file = \"token\"\nworkers = 2\n\
             [tls]\nlisten = [\"127.0.0.1:{tls}\"]\n[acme]\ndirectory = \"https://127.0.0.1:9/directory\"\ndir = \"acme\"\n\
             [https]\nredirect = false\nhsts = \"0s\"\n[cache]\ndir = \"cache\"\ndisk = \"64MiB\"\n{more}\n{}{}",
            site(HOSTS[0], "generic"),
            site(HOSTS[1], "wordpress")
        );
        fs::write(folder.path().join("seawall.toml"), config).expect("written");
        let output = fs::File::create(folder.path().join("output")).expect("a file");
        let mut command = bare(env!("CARGO_BIN_EXE_seawall"));
        command.args(["serve", "--config"]).arg(folder.path().join("seawall.toml")).current_dir(folder.path());
        let process = command.stdout(output.try_clone().expect("a file")).stderr(output).spawn().expect("the server starts");
        let mut seawall = Self { process: Ended(process), port, admin, _folder: folder };
        seawall.waits_for(admin);
        seawall.waits_for(port);
        seawall
    }

    fn waits_for(&mut self, port: u16) {
        if let Ok(Some(status)) = self.process.0.try_wait() {
            let said = fs::read_to_string(self._folder.path().join("output")).unwrap_or_default();
            panic!("Seawall ended with {status}: {said}");
        }
        wait_for(port, "Seawall");
    }

    /// Returns what `GET` of the admin API answers.
    pub(crate) fn told(&self, path: &str) -> String {
        let (status, text) =
            ask(self.admin, &format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\n\r\n", self.admin));
        assert_eq!(status, 200, "{text}");
        text
    }

    /// Sends one request of a reader, with these further lines of its head, and returns the status of the answer.
    pub(crate) fn ask(&self, line: &str, host: &str, fields: &str) -> u16 {
        reader_asks(self.port, line, host, fields)
    }
}

/// The names of the sites.
pub(crate) const HOSTS: [&str; 2] = ["blog.example.org", "shop.example.org"];

fn reader_asks(port: u16, line: &str, host: &str, fields: &str) -> u16 {
    ask(port, &format!("{line} HTTP/1.1\r\nhost: {host}\r\n{fields}connection: close\r\n\r\n")).0
}

/// Sends this and returns the status and the content of the answer; 0 if there is none.
pub(crate) fn ask(port: u16, request: &str) -> (u16, String) {
    let Ok(mut connection) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return (0, String::new()) };
    let patience = connection.set_read_timeout(Some(Duration::from_secs(30)));
    let mut bytes = Vec::new();
    let read = patience.and_then(|()| connection.write_all(request.as_bytes())).and_then(|()| connection.read_to_end(&mut bytes));
    if read.is_err_and(|error| error.kind() != ErrorKind::ConnectionReset) {
        return (0, String::new());
    }
    let text = String::from_utf8_lossy(&bytes);
    let (head, content) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    (status, if is_chunked { without_chunks(content) } else { content.to_owned() })
}

fn without_chunks(mut rest: &str) -> String {
    let mut content = String::new();
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = more.get(..size).filter(|_| size > 0) else { break };
        content += chunk;
        rest = more.get(size + 2..).unwrap_or_default();
    }
    content
}

/// Readers who ask for everything, again and again, until they are dropped.
pub(crate) struct Readers {
    ends: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Readers {
    /// Comes to a Seawall. One request follows another after `pause`.
    #[expect(clippy::disallowed_methods, reason = "readers take their time")]
    pub(crate) fn of(seawall: &Seawall, pause: Duration) -> Self {
        let port = seawall.port;
        let (ends, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (end, count) = (Arc::clone(&ends), Arc::clone(&asked));
        let thread = thread::spawn(move || {
            let mut n = 0_u64;
            while !end.load(Ordering::Relaxed) {
                let host = HOSTS[usize::try_from(n / 16 % 2).expect("few")];
                let (line, fields) = match n % 16 {
                    0..4 => (format!("GET /post-{}", n % 7), ""),
                    4..7 => (format!("GET /kept-{}", n % 11), "accept-encoding: gzip\r\n"),
                    7 => (format!("GET /kept-{n}"), ""),
                    8 | 9 => (format!("GET /picture-{}", n % 3), ""),
                    10 => ("GET /session-1".to_owned(), ""),
                    11 => (format!("GET /private-{}", n % 5), ""),
                    12 => ("GET /kept-1".to_owned(), "cookie: wordpress_logged_in_1=a\r\n"),
                    13 => ("GET /nothing".to_owned(), ""),
                    14 if n % 160 == 14 => ("GET /broken-1".to_owned(), ""),
                    _ => ("POST /form".to_owned(), "content-length: 0\r\n"),
                };
                reader_asks(port, &line, host, fields);
                if n % 100 == 50 {
                    // A message that is none, which is refused.
                    ask(port, "GET / HTTP/1.1\r\n\r\n");
                }
                n += 1;
                count.store(n, Ordering::Relaxed);
                thread::sleep(pause);
            }
        });
        Self { ends, asked, thread: Some(thread) }
    }

    /// Returns how many requests they have made.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Cuts a command off from the standard streams of whoever started it.
pub(crate) fn quiet(command: &mut std::process::Command) -> &mut std::process::Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}
