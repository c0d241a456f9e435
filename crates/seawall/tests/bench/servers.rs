//! nginx, h2o, Caddy and Seawall with one page, each with an access log.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use tempfile::TempDir;
use testkit::free_port;

use super::{
    known::{Ended, until, wait_for, write_pair},
    tool::{bare, program, seawall},
};

/// Says over what a server can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Http1,
    Http1Tls,
    Http2,
    Http3,
}

impl Over {
    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Http1 => &[],
            Self::Http1Tls => &["--insecure"],
            Self::Http2 => &["--insecure", "--http2", "--streams", "4"],
            Self::Http3 => &["--insecure", "--http3", "--streams", "4"],
        }
    }
}

/// A server with a page at `/page`.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    plain: u16,
    tls: u16,
    log: PathBuf,
    pub(crate) over: &'static [Over],
    _process: Ended,
    folder: TempDir,
}

const WITHOUT_HTTP3: &[Over] = &[Over::Http1, Over::Http1Tls, Over::Http2];
const ALL: &[Over] = &[Over::Http1, Over::Http1Tls, Over::Http2, Over::Http3];

fn place() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("root")).expect("a folder");
    fs::write(folder.path().join("root/page"), "quiet garden morning ".repeat(400)).expect("written");
    fs::write(folder.path().join("root/index.html"), "<!doctype html><title>Garden</title>").expect("written");
    write_pair(folder.path());
    folder
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Server {
    fn start(name: &'static str, over: &'static [Over], folder: TempDir, (plain, tls): (u16, u16), command: &mut Command) -> Self {
        let out = fs::File::create(folder.path().join("output")).expect("a file");
        let process = Ended(
            command
                .stdin(Stdio::null())
                .stdout(out.try_clone().expect("a file"))
                .stderr(out)
                .current_dir(folder.path())
                .spawn()
                .expect(name),
        );
        wait_for(plain, name);
        wait_for(tls, name);
        Self { name, plain, tls, log: folder.path().join("access.log"), over, _process: process, folder }
    }

    pub(crate) fn nginx() -> Self {
        let (folder, plain, tls) = (place(), free_port(), free_port());
        let at = folder.path().display();
        let user = if is_root() { "user root;" } else { "" };
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|kind| format!("{kind}_temp_path {at}/{kind};")).concat();
        let config = format!(
            "{user} worker_processes 1; daemon off; pid {at}/nginx.pid; error_log {at}/error.log; worker_rlimit_nofile 8192;
             events {{ worker_connections 4096; }}
             http {{ {temporary} default_type text/plain; keepalive_requests 1000000; access_log {at}/access.log;
               server {{ listen 127.0.0.1:{plain} backlog=1024; listen 127.0.0.1:{tls} ssl http2 backlog=1024;
                 ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem; root {at}/root; }} }}"
        );
        fs::write(folder.path().join("nginx.conf"), config).expect("written");
        let mut command = Command::new(program("nginx"));
        bare(&mut command).arg("-e").arg(folder.path().join("error.log")).arg("-c").arg(folder.path().join("nginx.conf"));
        Self::start("nginx", WITHOUT_HTTP3, folder, (plain, tls), &mut command)
    }

    pub(crate) fn h2o() -> Self {
        let (folder, plain, tls) = (place(), free_port(), free_port());
        let at = folder.path().display();
        let user = if is_root() { "user: root\n" } else { "" };
        let config = format!(
            "{user}num-threads: 1\nmax-connections: 4096\nhttp2-max-concurrent-requests-per-connection: 256\npid-file: {at}/h2o.pid\nerror-log: {at}/error.log\naccess-log: {at}/access.log\n\
             listen:\n  host: 127.0.0.1\n  port: {plain}\n\
             listen:\n  host: 127.0.0.1\n  port: {tls}\n  ssl:\n    certificate-file: {at}/cert.pem\n    key-file: {at}/key.pem\n    neverbleed: OFF\n\
             file.mime.setdefaulttype: text/plain\nhosts:\n  default:\n    paths:\n      /:\n        file.dir: {at}/root\n"
        );
        fs::write(folder.path().join("h2o.conf"), config).expect("written");
        let mut command = Command::new(program("h2o"));
        bare(&mut command).args(["-m", "worker", "-c"]).arg(folder.path().join("h2o.conf"));
        Self::start("h2o", WITHOUT_HTTP3, folder, (plain, tls), &mut command)
    }

    pub(crate) fn caddy() -> Self {
        let (folder, plain, tls) = (place(), free_port(), free_port());
        let at = folder.path().display();
        let site = format!("root * {at}/root\nfile_server\nlog {{\noutput file {at}/access.log\nformat json\n}}\n");
        // Debian's Caddy finds no certificate over QUIC for a client that names no host.
        let config = format!(
            "{{\nadmin off\nauto_https off\ndefault_sni 127.0.0.1\nservers {{\nprotocols h1 h2 h3\n}}\n}}\n\
             http://127.0.0.1:{plain} {{\n{site}}}\nhttps://127.0.0.1:{tls} {{\ntls {at}/cert.pem {at}/key.pem\n{site}}}\n"
        );
        fs::write(folder.path().join("Caddyfile"), config).expect("written");
        let mut command = Command::new(program("caddy"));
        bare(&mut command)
            .env("HOME", folder.path())
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(folder.path().join("Caddyfile"));
        Self::start("Caddy", ALL, folder, (plain, tls), &mut command)
    }

    pub(crate) fn seawall() -> Self {
        let (folder, plain, tls) = (place(), free_port(), free_port());
        let at = folder.path().display();
        let config = format!(
            "source = \"{at}/root\"\n[server]\nlisten = [\"127.0.0.1:{plain}\"]\nadmin = \"off\"\nworkers = 1\nhttp3 = true\n\
             [tls]\nlisten = [\"127.0.0.1:{tls}\"]\ncert = \"{at}/cert.pem\"\nkey = \"{at}/key.pem\"\n[https]\nredirect = false\n\
             [cache]\ndisk = \"0\"\n[log]\naccess = \"{at}/access.log\"\nformat = \"combined\"\n"
        );
        fs::write(folder.path().join("seawall.toml"), config).expect("written");
        let mut command = seawall();
        command.env("HOME", folder.path()).args(["serve", "--config"]).arg(folder.path().join("seawall.toml"));
        Self::start("Seawall", ALL, folder, (plain, tls), &mut command)
    }

    /// Returns the address of the page, with a query that tells runs apart in the log.
    pub(crate) fn url(&self, over: Over, run: &str) -> String {
        let (scheme, port) = if over == Over::Http1 { ("http", self.plain) } else { ("https", self.tls) };
        format!("{scheme}://127.0.0.1:{port}/page?run={run}")
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Returns how often the log has this run, as soon as that is `least` times: servers write their logs behind their answers.
    pub(crate) fn logged(&self, run: &str, least: u64) -> u64 {
        let mark = format!("?run={run}");
        let count = || {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let ends = |rest: &str| rest.starts_with([' ', '"', '&']);
            log.match_indices(&mark).filter(|(at, _)| ends(&log[at + mark.len()..])).count() as u64
        };
        until(&format!("{} has logged {least} requests of {run}, and has {}", self.name, count()), || count() >= least);
        count()
    }
}
