//! Finds what would keep names from being certified, said before it costs a failed order.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{
    Request, Response,
    header::{DATE, HOST},
};
use semantics::Timestamp;
use serde::Deserialize;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, UdpSocket},
};

use crate::{
    challenges::PROBE_PATH,
    dns::{Dns, forbids},
    folder::Folder,
    name::{Issuer, issuer},
    options::{Method, Options},
    transport::Transport,
};

/// The most by which the machine's clock may be wrong: authorities date certificates an hour back for such clocks.
const CLOCK_MAX: Duration = Duration::from_secs(30 * 60);

/// The port that authorities connect to (RFC 8555 §8.3), whatever port we listen on behind it.
const HTTP_PORT: u16 = 80;

/// The most addresses of one name that are checked.
const ADDRESSES_MAX: usize = 8;

/// Says how serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// All is as it should be.
    Fine,
    /// It may be right or wrong; this cannot be seen from here.
    Doubt,
    /// An order would fail.
    Wrong,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The severity of the finding.
    pub severity: Severity,
    /// The text about what was found, and what to do about it.
    pub text: String,
}

impl Finding {
    fn new(severity: Severity, text: impl Into<String>) -> Self {
        Self { severity, text: text.into() }
    }
}

/// Checks everything that an order depends on and that can be seen from this machine.
pub struct Checker {
    options: Options,
    transport: Arc<dyn Transport>,
    dns: Dns,
    /// The addresses where plain HTTP and TLS are served: ports 80 and 443, unless something forwards these ports.
    listen: [Vec<SocketAddr>; 2],
}

/// The fields of an authority's directory that are used here: RFC 8555 §7.1.1, and what the profiles draft adds.
#[derive(Debug, Default, Deserialize)]
struct Directory {
    #[serde(default)]
    meta: Meta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    caa_identities: Vec<String>,
    external_account_required: bool,
    profiles: std::collections::BTreeMap<String, String>,
}

impl Checker {
    /// Creates a checker that asks the name servers of this machine.
    #[must_use]
    pub fn new(options: Options, transport: Arc<dyn Transport>, plain: Vec<SocketAddr>, tls: Vec<SocketAddr>) -> Self {
        Self { options, transport, dns: Dns::of_this_machine(), listen: [plain, tls] }
    }

    /// Replaces the name servers to ask.
    #[must_use]
    pub fn with_name_servers(mut self, servers: Vec<SocketAddr>) -> Self {
        self.dns = Dns::new(servers);
        self
    }

    /// Runs all checks, and returns the findings by name. Findings that hold for all names come first, under an empty name.
    pub async fn check(&self, names: &[String], now: Timestamp) -> Vec<(String, Vec<Finding>)> {
        // Local names need no authority.
        let needs_authority = self.options.demand.is_some() || names.iter().any(|name| issuer(name) == Issuer::Acme);
        let (mut common, meta) = if needs_authority { self.authority(now).await } else { Default::default() };
        common.push(self.folder());
        let listening = if needs_authority { self.ports(&mut common) } else { Vec::new() };
        let mut all = vec![(String::new(), common)];
        for name in names {
            all.push((name.clone(), self.name(name, &meta).await));
        }
        drop(listening);
        all
    }

    async fn authority(&self, now: Timestamp) -> (Vec<Finding>, Meta) {
        let url = &self.options.directory;
        let answer = match Request::get(url).body(Bytes::new()) {
            Ok(request) => self.transport.send(request).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let read =
            |answer: &Response<Bytes>| serde_json::from_slice::<Directory>(answer.body()).ok().filter(|_| answer.status().is_success());
        let (answer, directory) = match answer.map(|answer| (read(&answer), answer)) {
            Ok((Some(directory), answer)) => (answer, directory),
            Ok((None, answer)) => {
                let text = format!("{url} answers {}, and no ACME directory; see acme.directory", answer.status());
                return (vec![Finding::new(Severity::Wrong, text)], Meta::default());
            }
            Err(error) => {
                let text = format!("the authority cannot be reached: {error}. This machine must be able to connect to it");
                return (vec![Finding::new(Severity::Wrong, text)], Meta::default());
            }
        };
        let mut findings = vec![Finding::new(Severity::Fine, format!("the authority answers: {url}"))];
        let date = answer.headers().get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok()).map(Timestamp::from);
        if let Some(theirs) = date.filter(|theirs| theirs.since(now).max(now.since(*theirs)) > CLOCK_MAX) {
            let minutes = theirs.since(now).max(now.since(theirs)).as_secs() / 60;
            let text =
                format!("the clock of this machine is {minutes} minutes away from the authority's; set it (timedatectl set-ntp true)");
            findings.push(Finding::new(Severity::Wrong, text));
        }
        if directory.meta.external_account_required && self.options.account.external.is_none() {
            let text = "the authority wants an account that was made on its web site: set acme.eab_key_id and acme.eab_key_file";
            findings.push(Finding::new(Severity::Wrong, text));
        }
        if let Some(profile) = self.options.profile.as_ref().filter(|profile| !directory.meta.profiles.contains_key(*profile)) {
            let known: Vec<&str> = directory.meta.profiles.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            findings.push(Finding::new(Severity::Wrong, format!("the authority has no profile \"{profile}\"; it has: {known}")));
        }
        (findings, directory.meta)
    }

    fn folder(&self) -> Finding {
        match Folder::open(&self.options.folder, &self.options.directory).and_then(|folder| folder.try_to_write()) {
            Ok(()) => Finding::new(Severity::Fine, format!("certificates can be kept in {}", self.options.folder.display())),
            Err(error) => Finding::new(Severity::Wrong, crate::failure::chain(&error)),
        }
    }

    /// Listens on ports where nothing listens yet, so that a probe from outside finds a server. It stops when the returned value is
    /// dropped.
    fn ports(&self, findings: &mut Vec<Finding>) -> Vec<tokio::task::JoinSet<()>> {
        let mut held = Vec::new();
        for (addresses, method) in self.listen.iter().zip([Method::Http01, Method::TlsAlpn01]) {
            if !self.options.methods.contains(&method) {
                continue;
            }
            if addresses.is_empty() {
                findings.push(Finding::new(Severity::Doubt, format!("nothing listens for {}", method.as_str())));
            }
            if method == Method::Http01 && !addresses.is_empty() && addresses.iter().all(|address| address.port() != HTTP_PORT) {
                let text = format!("authorities ask at port {HTTP_PORT}, and that is not listened on: something must forward it");
                findings.push(Finding::new(Severity::Doubt, text));
            }
            for address in addresses {
                match listen(*address) {
                    Ok(listener) if method == Method::Http01 => held.push(answer_probes(listener)),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                        let text = format!("{address} is in use: fine if that is Seawall itself");
                        findings.push(Finding::new(Severity::Doubt, text));
                    }
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        let text = format!(
                            "this user may not listen on {address}: run it as a systemd service with AmbientCapabilities=CAP_NET_BIND_SERVICE, or: \
                             sudo setcap cap_net_bind_service=+ep $(command -v seawall)"
                        );
                        findings.push(Finding::new(Severity::Wrong, text));
                    }
                    Err(_) if address.is_ipv6() && address.ip().is_unspecified() => {
                        findings.push(Finding::new(Severity::Doubt, format!("IPv6 is off on this machine: {address} is left out")));
                    }
                    Err(error) => findings.push(Finding::new(Severity::Wrong, format!("{address} cannot be listened on: {error}"))),
                }
            }
        }
        held
    }

    async fn name(&self, name: &str, meta: &Meta) -> Vec<Finding> {
        if issuer(name) == Issuer::Local {
            return vec![Finding::new(Severity::Fine, "a local name: certified by this machine's own root")];
        }
        let mut findings = Vec::new();
        let is_wildcard = name.starts_with("*.");
        let by_dns = self.options.methods.contains(&Method::Dns01);
        if is_wildcard && !by_dns {
            findings.push(Finding::new(Severity::Wrong, "a wildcard needs acme.dns_hook, a program that writes TXT records"));
        }
        let bare = name.strip_prefix("*.").unwrap_or(name);
        findings.push(self.caa(bare, meta, is_wildcard).await);
        if by_dns {
            return findings;
        }
        match self.dns.addresses(bare).await {
            Ok(addresses) if addresses.is_empty() => {
                findings.push(Finding::new(
                    Severity::Wrong,
                    "it has neither an A nor an AAAA record; add one with this machine's public address",
                ));
            }
            Ok(mut addresses) => {
                addresses.truncate(ADDRESSES_MAX);
                for address in addresses {
                    findings.push(self.address(bare, address).await);
                }
            }
            // The authority asks other name servers than we do.
            Err(error) => findings.push(Finding::new(Severity::Doubt, format!("its addresses cannot be looked up from here: {error}"))),
        }
        findings
    }

    async fn caa(&self, name: &str, meta: &Meta, is_wildcard: bool) -> Finding {
        let (holder, properties) = match self.dns.caa(name).await {
            Ok(found) => found,
            // If the authority gets no answer either, it refuses (RFC 8659 §3); ours may fail for another reason.
            Err(error) => {
                let text = format!("CAA records cannot be looked up from here: {error}. If the authority cannot either, it refuses");
                return Finding::new(Severity::Doubt, text);
            }
        };
        let Some(own) = meta.caa_identities.first() else {
            let shown = if properties.is_empty() { "there is no CAA record" } else { "there is a CAA record, of" };
            if properties.is_empty() {
                return Finding::new(Severity::Fine, shown);
            }
            return Finding::new(
                Severity::Doubt,
                format!("{shown} {holder}, and the authority does not say by which name it may be allowed there"),
            );
        };
        match forbids(&properties, &meta.caa_identities, is_wildcard) {
            Some(why) => {
                let tag = if is_wildcard { "issuewild" } else { "issue" };
                let text =
                    format!("the CAA record of {holder} forbids this authority ({own}): {why}. Add one: {holder} CAA 0 {tag} \"{own}\"");
                Finding::new(Severity::Wrong, text)
            }
            None => Finding::new(Severity::Fine, "no CAA record forbids it"),
        }
    }

    /// Asks which server answers at one address of a name. It connects to the address: this machine may resolve the name differently
    /// (`/etc/hosts`).
    async fn address(&self, name: &str, address: IpAddr) -> Finding {
        let (record, host) = match address {
            IpAddr::V4(address) => ("A", address.to_string()),
            IpAddr::V6(address) => ("AAAA", format!("[{address}]")),
        };
        let request = Request::get(format!("http://{host}{PROBE_PATH}")).header(HOST, name).body(Bytes::new());
        let answer = match request {
            Ok(request) => self.transport.send(request).await,
            Err(error) => return Finding::new(Severity::Wrong, error.to_string()),
        };
        let first = if address.is_ipv6() { ". Authorities try IPv6 first" } else { "" };
        match answer {
            Ok(answer) if answer.body().starts_with(PROBE_ANSWER.as_bytes()) => {
                Finding::new(Severity::Fine, format!("its {record} record ({address}) leads to Seawall"))
            }
            Ok(answer) => {
                let text = format!(
                    "its {record} record ({address}) leads elsewhere: somebody else answers there (status {}), another server, a CDN, or a router's \
                     own page. Correct the record, or remove it{first}",
                    answer.status()
                );
                Finding::new(Severity::Wrong, text)
            }
            Err(error) if is_ours(address).await => {
                let text = format!(
                    "its {record} record ({address}) is an address of this machine, but nobody answers at port {HTTP_PORT} there: {error}. \
                     Listen there{first}"
                );
                Finding::new(Severity::Wrong, text)
            }
            Err(error) => {
                let text = format!(
                    "its {record} record ({address}) is not an address of this machine, and nobody there can be reached from here: {error}. Fine behind a \
                     router that forwards port {HTTP_PORT} for others alone, wrong otherwise{first}"
                );
                Finding::new(Severity::Doubt, text)
            }
        }
    }
}

impl std::fmt::Debug for Checker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checker").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The answer of every Seawall to [`PROBE_PATH`].
pub(crate) const PROBE_ANSWER: &str = "seawall";

/// Listens as the server does: IPv6 apart from IPv4, so that both have the port.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(16)?;
    TcpListener::from_std(socket.into())
}

fn answer_probes(listener: TcpListener) -> tokio::task::JoinSet<()> {
    let mut server = tokio::task::JoinSet::new();
    server.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 2048];
            let Ok(_) = stream.read(&mut head).await else { continue };
            let n = PROBE_ANSWER.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {n}\r\nConnection: close\r\n\r\n{PROBE_ANSWER}");
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    server
}

/// Returns whether an address belongs to this machine: the kernel would then use the same address as source and as destination. Nothing is
/// sent.
async fn is_ours(address: IpAddr) -> bool {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let Ok(socket) = UdpSocket::bind(any).await else { return false };
    socket.connect((address, 9)).await.is_ok() && socket.local_addr().is_ok_and(|own| own.ip() == address)
}
