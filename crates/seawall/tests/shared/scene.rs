//! Three machines, the server that they share, and an authority.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use tempfile::TempDir;
use testkit::{Pebble, PebbleOptions, Software, Valkey, free_port};

use crate::front::Front;

/// The time that anything may take. The lock of an orderer that was killed lasts for twenty seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until something holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::yield_now();
    }
}

/// The whole of it. Dropping it ends everything.
pub(crate) struct Scene {
    pub(crate) machines: Vec<Machine>,
    pub(crate) front: Front,
    pub(crate) valkey: Valkey,
    pebble: Pebble,
    place: TempDir,
}

/// One machine: a process with a folder of its own.
pub(crate) struct Machine {
    number: usize,
    folder: PathBuf,
    port: u16,
    tls_port: u16,
    process: Option<Child>,
}

impl Scene {
    pub(crate) fn start(names: &[&str]) -> Self {
        Self::with(names, false)
    }

    /// Starts with a load balancer that keeps the authority waiting.
    pub(crate) fn start_holding(names: &[&str]) -> Self {
        Self::with(names, true)
    }

    fn with(names: &[&str], is_held: bool) -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let valkey = Valkey::start(Software::any());
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).and_then(|params| params.self_signed(&key)).expect("made");
        fs::write(place.path().join("authority.pem"), certificate.pem()).expect("written");
        let http_port = free_port();
        let pebble = Pebble::start(&PebbleOptions {
            identity: (certificate.pem(), key.serialize_pem()),
            http_port,
            tls_port: free_port(),
            lifetime: Duration::from_secs(90 * 24 * 3600),
            refused_nonces: 0,
            external: None,
            port: None,
        });
        let machines: Vec<Machine> =
            (0..3).map(|number| Machine::prepare(number, place.path(), names, &pebble.directory(), &valkey.url())).collect();
        let front = Front::listen(http_port, machines.iter().map(|machine| machine.port).collect(), is_held);
        let mut scene = Self { machines, front, valkey, pebble, place };
        for machine in &mut scene.machines {
            machine.start();
        }
        scene
    }

    /// Waits until all machines that run show a certificate of the authority for each name.
    pub(crate) fn all_have(&self, names: &[&str]) {
        for machine in self.machines.iter().filter(|machine| machine.process.is_some()) {
            for name in names {
                let begun = Instant::now();
                while !machine.shows(name) {
                    assert!(begun.elapsed() < PATIENCE, "machine {} has no certificate for {name}:\n{}", machine.number, self.logs());
                    thread::yield_now();
                }
            }
        }
    }

    /// Returns the number of orders that the authority got.
    pub(crate) fn orders(&self) -> usize {
        self.said("POST /order-plz")
    }

    /// Returns the number of accounts that were asked for.
    pub(crate) fn accounts(&self) -> usize {
        self.said("POST /sign-me-up")
    }

    /// Returns the number of certificates that the authority made.
    pub(crate) fn issued(&self) -> usize {
        self.said("Issued certificate serial")
    }

    fn said(&self, what: &str) -> usize {
        self.pebble.said().iter().filter(|line| line.contains(what)).count()
    }

    /// Returns the machine that says that it orders the certificate for a name.
    pub(crate) fn orderer(&self, name: &str) -> Option<usize> {
        let says = format!("ordering a certificate for {name}");
        self.machines.iter().position(|machine| machine.log().contains(&says))
    }

    pub(crate) fn kill(&mut self, number: usize) {
        self.front.leave(self.machines[number].port);
        self.machines[number].kill();
    }

    pub(crate) fn start_again(&mut self, number: usize) {
        self.machines[number].start();
    }

    pub(crate) fn logs(&self) -> String {
        self.machines.iter().map(|machine| format!("--- machine {}\n{}\n", machine.number, machine.log())).collect()
    }

    /// Makes a session with a machine, and returns the file in which openssl keeps it.
    pub(crate) fn session_of(&self, number: usize, name: &str, version: &str) -> PathBuf {
        let file = self.place.path().join(format!("session-{number}{version}"));
        let said = self.machines[number].openssl(name, &[version, "-sess_out", &file.display().to_string()]);
        assert!(said.contains("\nNew, TLSv1."), "{said}");
        file
    }

    /// Returns whether a machine resumes a session.
    pub(crate) fn resumes(&self, number: usize, name: &str, version: &str, session: &Path) -> bool {
        self.machines[number].openssl(name, &[version, "-sess_in", &session.display().to_string()]).contains("\nReused, TLSv1.")
    }
}

impl Machine {
    fn prepare(number: usize, place: &Path, names: &[&str], directory: &str, url: &str) -> Self {
        let folder = place.join(format!("machine-{number}"));
        fs::create_dir_all(folder.join("site")).expect("made");
        fs::write(folder.join("site/index.html"), "<!doctype html><title>hello</title>").expect("written");
        let (port, tls_port) = (free_port(), free_port());
        let hosts: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        let toml = format!(
            "[server]\nlisten = [\"127.0.0.1:{port}\"]\nadmin = \"off\"\nworkers = 1\n[tls]\nlisten = [\"127.0.0.1:{tls_port}\"]\n\
             [acme]\ndirectory = \"{directory}\"\nca_file = \"{}\"\ndir = \"acme\"\n[https]\nredirect = false\n[log]\naccess = \"off\"\n\
             [cluster]\nurl = \"{url}\"\nsecret = \"a secret of three machines that is long enough\"\nmachine = \"machine-{number}\"\n\
             [[site]]\nhosts = [{}]\nsource = \"site\"\n",
            place.join("authority.pem").display(),
            hosts.join(", "),
        );
        fs::write(folder.join("seawall.toml"), toml).expect("written");
        Self { number, folder, port, tls_port, process: None }
    }

    fn start(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder.join("log")).expect("a log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_seawall"));
        command.args(["serve", "--config", "seawall.toml"]).current_dir(&self.folder).env("HOME", &self.folder);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        self.process = Some(command.spawn().expect("started"));
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        let folders = fs::read_dir(self.folder.join("acme")).ok()?.filter_map(Result::ok).map(|entry| entry.path());
        folders.filter(|path| path.is_dir()).map(|path| path.join(name)).find(|path| path.exists())
    }

    /// Returns whether its disk has a file of the authority's folder.
    pub(crate) fn keeps(&self, name: &str) -> bool {
        self.file(name).is_some()
    }

    /// Returns what is in such a file.
    pub(crate) fn kept(&self, name: &str) -> String {
        fs::read_to_string(self.file(name).unwrap_or_else(|| panic!("machine {} keeps no {name}", self.number))).expect("readable")
    }

    fn shows(&self, name: &str) -> bool {
        self.openssl(name, &[]).contains("issuer=CN = Pebble") || self.openssl(name, &[]).contains("issuer=CN=Pebble")
    }

    /// Makes a handshake and a request, and returns what openssl says of it.
    fn openssl(&self, name: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &format!("127.0.0.1:{}", self.tls_port), "-servername", name, "-ign_eof"]).args(arguments);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("openssl can be started");
        // The answer comes after the tickets of TLS 1.3.
        let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
        let _ = child.stdin.take().expect("piped").write_all(request.as_bytes());
        let output = child.wait_with_output().expect("its output");
        format!("\n{}", String::from_utf8_lossy(&output.stdout))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns what must be nowhere in clear: the keys of a certificate and of an account, as they are written and as bytes.
pub(crate) fn secrets(pem: &str, account: &str) -> Vec<Vec<u8>> {
    let body = |pem: &str| -> Vec<String> {
        let key = pem.split("-----BEGIN PRIVATE KEY-----").nth(1).and_then(|rest| rest.split("-----END").next()).expect("a key");
        key.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let lines = body(pem);
    let der = BASE64_STANDARD.decode(lines.concat()).expect("base64");
    let account: Value = serde_json::from_str(account).expect("JSON");
    let account = account["key_pkcs8"].as_str().expect("the account's key").to_owned();
    let account_der = BASE64_URL_SAFE_NO_PAD.decode(&account).expect("base64url");
    // The key itself is within the DER: a part from its middle is enough to know it by.
    let middle = |der: &[u8]| der[36..60].to_vec();
    let mut secrets: Vec<Vec<u8>> = lines.into_iter().map(String::into_bytes).collect();
    secrets.extend([middle(&der), middle(&account_der), account.into_bytes()]);
    secrets
}
