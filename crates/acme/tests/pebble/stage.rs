//! A server to be certified, an authority, and somebody between the two.

use std::{
    collections::HashMap,
    fmt, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use acme::{Account, Answer, Challenges, DnsHook, Https, Keeper, Method, Options, Sink, Status, Transport};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use bytes::Bytes;
use http::{Method as HttpMethod, Request, Response};
use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    server::{Acceptor, ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use semantics::Timestamp;
use serde_json::{Value, json};
use testkit::{Pebble, PebbleOptions};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::LazyConfigAcceptor;

pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

/// Returns the time by the clock of the authority's machine.
#[expect(clippy::disallowed_methods, reason = "Pebble's certificates begin by the machine's clock")]
pub(crate) fn now() -> Timestamp {
    std::time::SystemTime::now().into()
}

/// An authority, a server and a client on one machine.
pub(crate) struct Stage {
    pub(crate) pebble: Pebble,
    pub(crate) shown: Arc<Shown>,
    pub(crate) challenges: Challenges,
    /// The machine to which the authority is led.
    pub(crate) front: Arc<Front>,
    pub(crate) between: Between,
    pub(crate) options: Options,
    settings: PebbleOptions,
    folder: tempfile::TempDir,
    _servers: JoinSet<()>,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// Creates a stage whose authority has other options.
    pub(crate) async fn with(change: impl FnOnce(&mut PebbleOptions)) -> Self {
        let challenges = Challenges::default();
        let shown = Arc::new(Shown::default());
        let mut servers = JoinSet::new();
        let front = Arc::new(Front(Mutex::new((challenges.clone(), Arc::clone(&shown)))));
        let http_port = serve_http(&mut servers, Arc::clone(&front)).await;
        let tls_port = serve_tls(&mut servers, Arc::clone(&front)).await;
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).and_then(|params| params.self_signed(&key)).expect("made");
        let identity = (certificate.pem(), key.serialize_pem());
        let lifetime = 90 * DAY;
        let mut settings = PebbleOptions { identity, http_port, tls_port, lifetime, refused_nonces: 0, external: None, port: None };
        change(&mut settings);
        let started = settings.clone();
        let pebble = tokio::task::spawn_blocking(move || Pebble::start(&started)).await.expect("started");
        let between = Between::trusting(&settings.identity.0);
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            directory: pebble.directory(),
            account: Account::default(),
            profile: None,
            methods: vec![Method::Http01, Method::TlsAlpn01],
            hook: None,
            folder: folder.path().join("acme"),
            demand: None,
        };
        Self { pebble, shown, challenges, front, between, options, settings, folder, _servers: servers }
    }

    /// Creates a keeper, as after a start of the server.
    pub(crate) fn keeper(&self, names: &[&str]) -> Keeper {
        let transport = Arc::new(self.between.clone());
        let sink = Arc::clone(&self.shown);
        let keeper = Keeper::open(self.options.clone(), transport, self.challenges.clone(), sink).expect("a folder");
        keeper.want(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), &[]);
        keeper
    }

    /// Stops the authority, and starts it again with nothing in its memory.
    pub(crate) async fn restart_authority(&mut self) {
        self.pebble.stop();
        let settings = PebbleOptions { port: Some(self.pebble.port()), ..self.settings.clone() };
        self.pebble = tokio::task::spawn_blocking(move || Pebble::start(&settings)).await.expect("started");
    }

    /// Writes a program into the stage's folder, and returns it as a hook.
    pub(crate) fn hook(&self, script: &str) -> DnsHook {
        let program = self.folder.path().join("hook");
        testkit::write_program(&program, &format!("#!/bin/bash\nset -e\n{script}\n"));
        DnsHook { program, timeout: Duration::from_secs(10) }
    }

    /// Returns the folder of the authority.
    pub(crate) fn kept(&self) -> PathBuf {
        let folders = fs::read_dir(&self.options.folder).expect("made").filter_map(Result::ok).map(|entry| entry.path());
        folders.into_iter().find(|path| path.is_dir()).expect("an authority's folder")
    }

    /// Returns the status of a certificate at the authority: `Valid` or `Revoked`.
    pub(crate) async fn status_at_authority(&self, key: &CertifiedKey) -> String {
        let serial = serial(key);
        let request = Request::get(format!("{}/cert-status-by-serial/{serial}", self.pebble.management())).body(Bytes::new());
        let answer = self.between.real.send(request.expect("a request")).await.expect("an answer");
        let answer: Value = serde_json::from_slice(answer.body()).expect("JSON");
        answer["Status"].as_str().expect("a status").to_owned()
    }
}

/// Returns the status of the one name.
pub(crate) fn only(keeper: &Keeper, now: Timestamp) -> Status {
    let mut all = keeper.status(now);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Returns the serial number in hexadecimal, without a sign.
pub(crate) fn serial(key: &CertifiedKey) -> String {
    let (_, certificate) = x509_parser::parse_x509_certificate(&key.cert[0]).expect("a certificate");
    certificate.tbs_certificate.serial.to_str_radix(16)
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o7777
}

/// The certificates that handshakes would be shown.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    certificates: Mutex<HashMap<String, Arc<CertifiedKey>>>,
    challenges: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl Shown {
    pub(crate) fn of(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.certificates.lock().expect("no panic").get(name).cloned()
    }

    pub(crate) fn challenges(&self) -> usize {
        self.challenges.lock().expect("no panic").len()
    }
}

impl Sink for Shown {
    fn show(&self, name: &str, _names: Vec<String>, key: Arc<CertifiedKey>) {
        self.certificates.lock().expect("no panic").insert(name.to_owned(), key);
    }

    fn withdraw(&self, name: &str) {
        self.certificates.lock().expect("no panic").remove(name);
    }

    fn answer_challenge(&self, name: &str, key: Arc<CertifiedKey>) {
        self.challenges.lock().expect("no panic").insert(name.to_owned(), key);
    }

    fn end_challenge(&self, name: &str) {
        self.challenges.lock().expect("no panic").remove(name);
    }
}

/// The machine to which a load balancer leads whoever asks.
pub(crate) struct Front(Mutex<(Challenges, Arc<Shown>)>);

impl Front {
    /// Leads to another machine.
    pub(crate) fn lead_to(&self, challenges: &Challenges, shown: &Arc<Shown>) {
        *self.0.lock().expect("no panic") = (challenges.clone(), Arc::clone(shown));
    }

    fn challenges(&self) -> Challenges {
        self.0.lock().expect("no panic").0.clone()
    }
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Front")
    }
}

impl ResolvesServerCert for Front {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.lock().expect("no panic").1.resolve(hello)
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.challenges.lock().expect("no panic").get(hello.server_name()?).cloned()
    }
}

/// Serves challenges, and nothing else, as port 80 of the server would.
async fn serve_http(servers: &mut JoinSet<()>, front: Arc<Front>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    servers.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut head = vec![0; 4096];
            let Ok(n) = stream.read(&mut head).await else { continue };
            let head = String::from_utf8_lossy(&head[..n]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let challenges = front.challenges();
            if let Some(looking) = challenges.look_up(path) {
                looking.await;
            }
            let answer = match challenges.content(path) {
                Some(content) => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{content}", content.len()),
                None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
            };
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

/// Serves challenges, and nothing else, as port 443 of the server would.
async fn serve_tls(servers: &mut JoinSet<()>, front: Arc<Front>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let mut config = ServerConfig::builder().with_no_client_auth().with_cert_resolver(Arc::clone(&front) as _);
    config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let config = Arc::new(config);
    servers.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let Ok(begun) = LazyConfigAcceptor::new(Acceptor::default(), stream).await else { continue };
            let looking = begun.client_hello().server_name().and_then(|name| front.challenges().look_up_name(name));
            if let Some(looking) = looking {
                looking.await;
            }
            if let Ok(mut stream) = begun.into_stream(Arc::clone(&config)).await {
                let _ = stream.shutdown().await;
            }
        }
    });
    port
}

/// Stands between us and the authority: notes the requests, and gives answers that the authority never would.
#[derive(Clone)]
pub(crate) struct Between {
    pub(crate) real: Https,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    asked: Vec<RecordedRequest>,
    refusals: Vec<Refusal>,
    window: Option<Value>,
    program: Option<Box<Program>>,
}

type Program = dyn Fn(&Request<Bytes>) -> Option<Response<Bytes>> + Send;

/// A request that the authority got, or would have got.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) path: String,
    pub(crate) payload: Value,
}

struct Refusal {
    path: &'static str,
    times: usize,
    status: u16,
    fields: Vec<(&'static str, String)>,
    problem: Value,
}

impl Between {
    fn trusting(pem: &str) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM")).expect("a certificate");
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Self { real: Https::new(&tls), state: Arc::default() }
    }

    /// Refuses the next requests to paths with this end.
    pub(crate) fn refuse(&self, path: &'static str, times: usize, status: u16, fields: &[(&'static str, &str)], kind: &str, detail: &str) {
        let problem = json!({"type": format!("urn:ietf:params:acme:error:{kind}"), "detail": detail});
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.state.lock().expect("no panic").refusals.push(Refusal { path, times, status, fields, problem });
    }

    /// Lets the authority suggest a time for renewal (RFC 9773).
    pub(crate) fn suggest(&self, start: Timestamp, end: Timestamp) {
        let at = |at: Timestamp| {
            let at = time::OffsetDateTime::from_unix_timestamp(i64::try_from(at.as_secs()).expect("not so late")).expect("a date");
            at.format(&time::format_description::well_known::Rfc3339).expect("a date")
        };
        let info = json!({"suggestedWindow": {"start": at(start), "end": at(end)}, "explanationURL": "https://authority.example/why"});
        self.state.lock().expect("no panic").window = Some(info);
    }

    /// Answers other HTTP requests with `program`.
    pub(crate) fn elsewhere(&self, program: impl Fn(&Request<Bytes>) -> Option<Response<Bytes>> + Send + 'static) {
        self.state.lock().expect("no panic").program = Some(Box::new(program));
    }

    /// Returns the requests to paths with this end.
    pub(crate) fn asked(&self, path: &str) -> Vec<RecordedRequest> {
        let state = self.state.lock().expect("no panic");
        state.asked.iter().filter(|asked| asked.path.ends_with(path)).cloned().collect()
    }

    fn in_its_place(&self, request: &Request<Bytes>) -> Option<Response<Bytes>> {
        let path = request.uri().path();
        let mut state = self.state.lock().expect("no panic");
        state.asked.push(RecordedRequest { path: path.to_owned(), payload: payload(request) });
        if let Some(answer) = state.program.as_ref().and_then(|program| program(request)) {
            return Some(answer);
        }
        if path.contains("/renewal-info/") {
            let info = state.window.clone()?;
            return Some(Response::builder().header("retry-after", "21600").body(Bytes::from(info.to_string())).expect("a response"));
        }
        let refusal = state.refusals.iter_mut().find(|refusal| refusal.times > 0 && path.ends_with(refusal.path))?;
        refusal.times -= 1;
        let mut answer = Response::builder().status(refusal.status).header("content-type", "application/problem+json");
        for (name, value) in &refusal.fields {
            answer = answer.header(*name, value);
        }
        Some(answer.body(Bytes::from(refusal.problem.to_string())).expect("a response"))
    }

    /// Adds to an answer what an authority with renewal information adds (RFC 9773 §4.1, §5).
    fn with_windows(&self, asked: &Value, path: &str, directory: &str, answer: Response<Bytes>) -> Response<Bytes> {
        let has_windows = self.state.lock().expect("no panic").window.is_some();
        if !has_windows || !answer.status().is_success() {
            return answer;
        }
        let mut json: Value = match serde_json::from_slice(answer.body()) {
            Ok(json) => json,
            Err(_) => return answer,
        };
        if path.ends_with("/dir") {
            json["renewalInfo"] = json!(format!("{directory}/renewal-info"));
        } else if let Some(replaces) = asked.get("replaces") {
            json["replaces"] = replaces.clone();
        }
        let (mut parts, _) = answer.into_parts();
        parts.headers.remove("content-length");
        Response::from_parts(parts, Bytes::from(json.to_string()))
    }
}

impl Transport for Between {
    fn send(&self, request: Request<Bytes>) -> Answer {
        if let Some(answer) = self.in_its_place(&request) {
            return Box::pin(async move { Ok(answer) });
        }
        let between = self.clone();
        let asked = payload(&request);
        let path = request.uri().path().to_owned();
        let base = format!("https://{}", request.uri().authority().expect("a whole URI"));
        let answer = self.real.send(request);
        Box::pin(async move { Ok(between.with_windows(&asked, &path, &base, answer.await?)) })
    }
}

/// Returns the content of a signed request (RFC 8555 §6.2).
fn payload(request: &Request<Bytes>) -> Value {
    if request.method() != HttpMethod::POST {
        return Value::Null;
    }
    let signed: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let payload = BASE64_URL_SAFE_NO_PAD.decode(signed["payload"].as_str().unwrap_or_default()).unwrap_or_default();
    serde_json::from_slice(&payload).unwrap_or_default()
}
