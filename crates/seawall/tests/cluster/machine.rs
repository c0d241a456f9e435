//! A machine: the real binary in a namespace of its own.

use std::{
    fmt::Write as _,
    fs,
    net::{Ipv4Addr, TcpStream},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    engine,
    http::Client,
    network::NetworkHost,
    process::{Process, until},
};

/// The port of the origin.
pub(crate) const ORIGIN_PORT: u16 = 8000;
/// The port for readers.
pub(crate) const PORT: u16 = 80;
/// The port of the admin API.
pub(crate) const ADMIN_PORT: u16 = 9180;
/// The secret that all machines of a cluster know.
pub(crate) const SECRET: &str = "what all machines of this cluster know and nobody else does";

/// Says how a machine is set up.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// The lines of `[cluster]`, but for the machine's name; `None`: it stands alone.
    pub(crate) cluster: Option<String>,
    /// Whether it has a tier on the disk.
    pub(crate) has_disk: bool,
    /// Lines of its own, such as `[limits]`. With some, readers are nobody who may purge: those are exempt.
    pub(crate) own: String,
    /// A distance of its clock from everybody else's, as faketime reads it; `@FILE`: in a file, which is read again and again.
    pub(crate) clock: Option<String>,
}

impl Setup {
    /// Returns a machine of a cluster with this lease and this hold in doubt.
    pub(crate) fn joined(url: &str, lease: Duration, doubt_hold: Duration) -> Self {
        let (lease, hold) = (lease.as_millis(), doubt_hold.as_millis());
        let cluster = format!("url = \"{url}\"\nsecret = \"{SECRET}\"\nlease = \"{lease}ms\"\ndoubt_hold = \"{hold}ms\"\n");
        Self { cluster: Some(cluster), has_disk: false, own: String::new(), clock: None }
    }

    /// Returns a machine that stands alone.
    pub(crate) const fn alone() -> Self {
        Self { cluster: None, has_disk: false, own: String::new(), clock: None }
    }
}

/// Returns the address of a server.
pub(crate) fn url_of(place: &NetworkHost) -> String {
    format!("redis://:{}@{}:{}", engine::PASSWORD, place.back(), engine::PORT)
}

/// Says how a machine is reached.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) name: Arc<str>,
    pub(crate) address: Ipv4Addr,
    pub(crate) token: Arc<str>,
}

impl Door {
    /// Sends a request to its admin API. `None`: there was no answer.
    pub(crate) fn admin(&self, line: &str, content: &str) -> Option<(u16, Value)> {
        let mut client = Client::of(self.address, ADMIN_PORT, Duration::from_secs(20));
        let answer = client.ask(&self.admin_request(line, content)).ok()?;
        Some((answer.status, serde_json::from_slice(&answer.content).unwrap_or(Value::Null)))
    }

    /// Writes such a request.
    pub(crate) fn admin_request(&self, line: &str, content: &str) -> String {
        format!(
            "{line} HTTP/1.1\r\nhost: {}:{ADMIN_PORT}\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{content}",
            self.address,
            self.token,
            content.len()
        )
    }

    /// Returns what it says of the cluster.
    pub(crate) fn cluster(&self) -> Option<Value> {
        self.admin("GET /cluster", "").filter(|(status, _)| *status == 200).map(|(_, state)| state)
    }

    /// Returns whether it has a lease.
    pub(crate) fn is_leased(&self) -> bool {
        self.cluster().is_some_and(|state| state["leased"] == true)
    }
}

/// A machine.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) place: NetworkHost,
    pub(crate) setup: Setup,
    name: String,
    folder: TempDir,
    process: Option<Process>,
    token: Arc<str>,
    /// A site that it does not have, by its host.
    lacks: Option<&'static str>,
}

impl Machine {
    /// Starts one, and waits until it answers.
    pub(crate) fn start(place: NetworkHost, setup: &Setup) -> Self {
        let name = place.name.clone();
        Self::start_as(&name, place, setup)
    }

    /// Starts one under another name than its place's.
    pub(crate) fn start_as(name: &str, place: NetworkHost, setup: &Setup) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut machine = Self { place, setup: setup.clone(), name: name.to_owned(), folder, process: None, token: "".into(), lacks: None };
        machine.begin();
        machine.is_there();
        machine
    }

    /// Starts several at once.
    pub(crate) fn start_all(machines: impl Iterator<Item = (NetworkHost, Setup)>) -> Vec<Self> {
        let begun = machines.map(|(place, setup)| {
            let folder = tempfile::tempdir().expect("a folder");
            let mut machine = Self { name: place.name.clone(), place, setup, folder, process: None, token: "".into(), lacks: None };
            machine.begin();
            machine
        });
        let mut machines: Vec<Self> = begun.collect();
        for machine in &mut machines {
            machine.is_there();
        }
        machines
    }

    /// Starts it again, with what is on its disk.
    pub(crate) fn start_again(&mut self) {
        assert!(self.process.is_none(), "it runs");
        self.begin();
        self.is_there();
    }

    /// Writes its configuration without a site. It takes effect when it is read.
    pub(crate) fn lacks(&mut self, host: Option<&'static str>) {
        self.lacks = host;
        self.write_config();
    }

    fn write_config(&self) -> PathBuf {
        let file = self.folder.path().join("seawall.toml");
        fs::write(&file, self.config()).expect("written");
        file
    }

    fn begin(&mut self) {
        let file = self.write_config();
        let binary = std::env::var_os("SEAWALL_CLUSTER_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_seawall").into());
        let output = fs::OpenOptions::new().create(true).append(true).open(self.folder.path().join("output")).expect("a file");
        let mut command = self.place.command(binary);
        command.args(["serve", "--config"]).arg(&file).current_dir(self.folder.path());
        if let Some(clock) = &self.setup.clock {
            let library = "/usr/lib/*/faketime/libfaketimeMT.so.1";
            let found = ["x86_64", "aarch64"].map(|kind| PathBuf::from(library.replace('*', &format!("{kind}-linux-gnu"))));
            let found = found.iter().find(|file| file.is_file());
            let found = found.unwrap_or_else(|| panic!("{library} is missing: `make cluster` installs faketime"));
            command.env("LD_PRELOAD", found).env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
            match clock.strip_prefix('@') {
                Some(file) => command.env("FAKETIME_TIMESTAMP_FILE", file).env("FAKETIME_CACHE_DURATION", "1"),
                None => command.env("FAKETIME", clock),
            };
        }
        self.process = Some(Process::start(command.stdout(output.try_clone().expect("a file")).stderr(output)));
    }

    fn config(&self) -> String {
        let address = self.place.front();
        let may_purge = if self.setup.own.is_empty() { "\"10.77.0.0/24\"" } else { "" };
        let mut text = format!(
            "[server]\nlisten = [\"{address}:{PORT}\"]\nadmin = \"{address}:{ADMIN_PORT}\"\nadmin_token_file = \"token\"\nworkers = 1\n\
             [log]\naccess = \"off\"\n[acme]\nenabled = false\n[https]\nredirect = false\nhsts = \"0s\"\n[purge]\nallow = [{may_purge}]\n\
             [cache]\nmemory = \"64MiB\"\ntwo_visitor_proof = false\n"
        );
        if self.setup.has_disk {
            text += "dir = \"cache\"\ndisk = \"64MiB\"\n";
        }
        if let Some(cluster) = &self.setup.cluster {
            write!(text, "[cluster]\n{cluster}machine = \"{}\"\n", self.name).expect("a String takes it");
        }
        text += &self.setup.own;
        let sites = [("blog.example", "generic"), ("ghost.example", "ghost")];
        for (host, kind) in sites.into_iter().filter(|(host, _)| Some(*host) != self.lacks) {
            write!(text, "[[site]]\nhosts = [\"{host}\"]\nsource = \"http://{}:{ORIGIN_PORT}\"\nkind = \"{kind}\"\n", NetworkHost::CITY)
                .expect("a String takes it");
        }
        text
    }

    fn is_there(&mut self) {
        for port in [PORT, ADMIN_PORT] {
            let address = (self.place.front(), port).into();
            let (folder, process) = (self.folder.path(), self.process.as_mut().expect("it was started"));
            until("Seawall listens", || {
                if let Some(status) = process.ended() {
                    panic!("Seawall ended with {status}: {}", fs::read_to_string(folder.join("output")).unwrap_or_default());
                }
                TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
            });
        }
        self.token = fs::read_to_string(self.folder.path().join("token")).expect("a token").trim().into();
    }

    /// Returns how it is reached.
    pub(crate) fn door(&self) -> Door {
        Door { name: self.place.name.as_str().into(), address: self.place.front(), token: Arc::clone(&self.token) }
    }

    /// Waits until it has a lease.
    pub(crate) fn is_leased(&self) {
        let door = self.door();
        until(&format!("{} has a lease", self.place.name), || door.is_leased());
    }

    /// Returns its process.
    pub(crate) fn process(&self) -> &Process {
        self.process.as_ref().expect("it runs")
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        drop(self.process.take());
    }

    /// Stops it as an operator does.
    pub(crate) fn stop(&mut self) {
        let status = self.process.take().expect("it runs").end();
        assert!(status.success(), "{}: {status}: {}", self.place.name, self.said());
    }

    /// Returns what it has written to its streams.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("output")).unwrap_or_default()
    }
}

/// Shows the end of what it wrote, if the test fails.
impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.said();
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(15)..].join("\n    ");
            crate::scene::tell(&format!("{} wrote at last:\n    {last}", self.place.name));
        }
    }
}
