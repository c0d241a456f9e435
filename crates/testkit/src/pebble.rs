//! Pebble: the ACME server that Let's Encrypt made for tests (RFC 8555), with a DNS of its own in which every name is this machine.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        mpsc::{Receiver, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::free_port;

/// How long a program may take to start. Pebble makes three keys of 2,048 bits first.
const START: Duration = Duration::from_secs(30);

/// The options that a Pebble is started with.
#[derive(Clone, Debug)]
pub struct PebbleOptions {
    /// The certificate for 127.0.0.1 and its key for its own listener, PEM.
    pub identity: (String, String),
    /// The port where it looks for HTTP-01 answers, whatever the name is.
    pub http_port: u16,
    /// The port where it looks for TLS-ALPN-01 answers.
    pub tls_port: u16,
    /// How long its certificates are valid.
    pub lifetime: Duration,
    /// How many of a hundred good nonces are refused as if they had been used.
    pub refused_nonces: u8,
    /// The key id and key (base64url) that an account must have, if given (RFC 8555 §7.3.4).
    pub external: Option<(String, String)>,
    /// The port where it listens; `None` for a free one.
    pub port: Option<u16>,
}

/// A running Pebble. Dropping it ends it, and it forgets everything.
#[derive(Debug)]
pub struct Pebble {
    port: u16,
    management: u16,
    dns: u16,
    dns_management: u16,
    pebble: Option<Running>,
    said: Mutex<(Receiver<String>, Vec<String>)>,
    _dns: Running,
    _folder: TempDir,
}

#[derive(Debug)]
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Pebble {
    /// Starts a Pebble, and returns when it accepts orders.
    ///
    /// # Panics
    /// Panics when it is not installed, or does not start.
    #[must_use]
    pub fn start(options: &PebbleOptions) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [certificate, key, config] = ["cert.pem", "key.pem", "pebble.json"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, &options.identity.0).expect("written");
        std::fs::write(&key, &options.identity.1).expect("written");
        // These programs cannot be told to take port 0.
        let [management, dns, dns_management] = [(); 3].map(|()| free_port());
        let port = options.port.unwrap_or_else(free_port);
        let (required, keys) = match &options.external {
            Some((id, key)) => (true, format!("\"{id}\": \"{key}\"")),
            None => (false, String::new()),
        };
        let json = format!(
            r#"{{"pebble": {{"listenAddress": "127.0.0.1:{port}", "managementListenAddress": "127.0.0.1:{management}",
                "certificate": "{}", "privateKey": "{}", "httpPort": {}, "tlsPort": {}, "ocspResponderURL": "",
                "certificateValidityPeriod": {}, "externalAccountBindingRequired": {required}, "externalAccountMACKeys": {{{keys}}}}}}}"#,
            certificate.display(),
            key.display(),
            options.http_port,
            options.tls_port,
            options.lifetime.as_secs(),
        );
        std::fs::write(&config, json).expect("written");
        let none = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""];
        let mut command = Command::new(program("pebble-challtestsrv"));
        command.args(none).arg("-dns01").arg(format!("127.0.0.1:{dns}")).arg("-management").arg(format!("127.0.0.1:{dns_management}"));
        let (dns_server, _) = run(&mut command);
        let mut command = Command::new(program("pebble"));
        command.arg("-config").arg(&config).arg("-dnsserver").arg(format!("127.0.0.1:{dns}"));
        command
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", "0")
            .env("PEBBLE_WFE_NONCEREJECT", options.refused_nonces.to_string());
        let (pebble, output) = run(&mut command);
        let begun = Instant::now();
        let mut said = String::new();
        while !said.contains("ACME directory available") {
            let line = output.recv_timeout(START.saturating_sub(begun.elapsed()));
            said.push_str(&line.unwrap_or_else(|_| panic!("pebble did not start:\n{said}")));
        }
        wait_for(port);
        wait_for(dns_management);
        Self {
            port,
            management,
            dns,
            dns_management,
            pebble: Some(pebble),
            said: Mutex::new((output, Vec::new())),
            _dns: dns_server,
            _folder: folder,
        }
    }

    /// Returns the URL of its directory.
    #[must_use]
    pub fn directory(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.port)
    }

    /// Returns the port where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL where it reports what it certified and revoked: `/cert-status-by-serial/HEX`.
    #[must_use]
    pub fn management(&self) -> String {
        format!("https://127.0.0.1:{}", self.management)
    }

    /// Returns the address of its DNS server.
    #[must_use]
    pub const fn dns(&self) -> SocketAddr {
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), self.dns)
    }

    /// Returns the address where its DNS server accepts records: POST `/set-txt`.
    #[must_use]
    pub const fn dns_management(&self) -> SocketAddr {
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), self.dns_management)
    }

    /// Sends a command to its DNS server, such as `("/clear-a", r#"{"host": "a.example.org."}"#)`.
    ///
    /// # Panics
    /// Panics when it is not accepted.
    pub fn tell_dns(&self, path: &str, json: &str) {
        let mut stream = TcpStream::connect(self.dns_management()).expect("a connection");
        let request = format!("POST {path} HTTP/1.1\r\nHost: dns\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{json}", json.len());
        stream.write_all(request.as_bytes()).expect("sent");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("an answer");
        assert!(line.contains(" 200 "), "{path} {json}: {line}");
    }

    /// Returns the lines of its log since it accepted orders: requests, orders, certificates. After 1,024 lines that nobody has asked for, further
    /// ones are lost.
    ///
    /// # Panics
    /// Never: nobody panics who holds its lock.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        let (output, said) = &mut *self.said.lock().expect("no panic");
        said.extend(output.try_iter());
        said.clone()
    }

    /// Stops the authority; its DNS server stays.
    pub fn stop(&mut self) {
        self.pebble = None;
    }
}

/// Returns the path of a program in the folder that `PEBBLE_BIN` names, or else its name, to be found by the `PATH`.
fn program(name: &str) -> PathBuf {
    std::env::var_os("PEBBLE_BIN").map(|folder| Path::new(&folder).join(name)).filter(|path| path.exists()).unwrap_or_else(|| name.into())
}

/// Starts a program. Its lines come out of the channel until it ends.
fn run(command: &mut Command) -> (Running, Receiver<String>) {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child
        .unwrap_or_else(|error| panic!("{name} cannot be started: {error}; `make pebble` installs it (Debian: apt-get install pebble)"));
    let output = child.stdout.take().expect("piped");
    let (sender, lines) = sync_channel(1024);
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // Nobody may read any more; the program must not be stopped by that.
            let _ = sender.try_send(line);
        }
    });
    (Running(child), lines)
}

/// Waits until somebody listens on a port: these programs do not report it.
fn wait_for(port: u16) {
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(begun.elapsed() < START, "nobody listens on port {port}");
        thread::yield_now();
    }
}
