//! Every route through a real listener, asked byte by byte.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use policy::purge::{Order, What};
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;

use crate::{
    CacheHealth, CertificateState, Console, DirectField, DirectRefused, ExplainCommand, ExplainRefused, Explanation, Health, Inventory,
    ListenerHealth, Metric, MetricKind, OriginHealth, PurgeDone, PurgeRefused, ReloadDone, ReloadRefused, RevokeRefused, Sample,
    SiteHealth, StoredCommand, Token, WarmCommand, WarmRefused, Warming,
    connections::{Bounds, serve_within},
};
use admin_api::{Status, StoredPage, StoredState};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Remembers its purges; refuses tags.
#[derive(Default)]
struct Fake {
    draining: AtomicBool,
    asked: AtomicUsize,
    /// The second that is shown.
    at: std::sync::atomic::AtomicU64,
    reloads: AtomicUsize,
    purges: Mutex<Vec<Order>>,
}

impl Console for Fake {
    fn metrics(&self) -> Vec<Metric> {
        let samples = vec![Sample::labelled("site", "blog", 12), Sample::labelled("site", "a \"b\"", 0.5)];
        vec![Metric::new("seawall_requests_total", "Requests", MetricKind::Counter, samples)]
    }

    fn health(&self) -> Health {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let site = |name: &str, origin_up| SiteHealth {
            name: name.to_owned(),
            hosts: vec![format!("{name}.example")],
            redirect_from: vec![],
            source: "http://127.0.0.1:2368".to_owned(),
            kind: "generic".to_owned(),
            kind_known: None,
            url: None,
            schedule: None,
            remarks: Vec::new(),
            origin_up,
            signals: None,
        };
        Health {
            ready: !self.draining.load(Ordering::SeqCst),
            version: "1.2.3".to_owned(),
            uptime: Duration::from_millis(1500),
            workers: asked,
            listening: vec!["127.0.0.1:8080".to_owned(), "unix:/run/s".to_owned()],
            listeners: vec![ListenerHealth { address: "127.0.0.1:8080".to_owned(), protocol: "http".to_owned() }],
            cache: CacheHealth::default(),
            trusts_loopback: true,
            sites: vec![site("blog", None), site("ghost", Some(false))],
        }
    }

    fn purge(&self, order: &Order) -> Result<PurgeDone, PurgeRefused> {
        if let What::Tag(tag) = &order.what[0] {
            return Err(PurgeRefused::new(format!("nothing is called {tag}")));
        }
        let mut purges = self.purges.lock().expect("no panic");
        purges.push(order.clone());
        // Nothing is heard of one host's other machines.
        let spread = matches!(order.what[0], What::Host(_)).then(admin_api::Spread::default);
        Ok(PurgeDone { generation: purges.len() as u64, variants: None, complete: true, covered: "that".to_owned(), spread })
    }

    fn origins(&self) -> Vec<OriginHealth> {
        let (site, route) = ("ghost".to_owned(), Some("/api".to_owned()));
        vec![OriginHealth { site, route, address: "http://127.0.0.1:3000".to_owned(), up: false, asked: true }]
    }

    fn reload(&self) -> Result<ReloadDone, ReloadRefused> {
        match self.reloads.fetch_add(1, Ordering::SeqCst) {
            0 => Ok(ReloadDone { needs_restart: vec!["server.workers".to_owned()] }),
            1 => Err(ReloadRefused::Wrong("line 3".to_owned())),
            _ => Err(ReloadRefused::Busy),
        }
    }

    fn explain(&self, command: &ExplainCommand) -> Result<Explanation, ExplainRefused> {
        match command.url.as_str() {
            "bad" => Err(ExplainRefused::Address("bad is not an address".to_owned())),
            "http://other/" => Err(ExplainRefused::NoSite { host: "other".to_owned(), hosts: vec!["a".to_owned(), "b".to_owned()] }),
            "http://late/" => Err(ExplainRefused::Busy),
            _ => Ok(serde_json::from_value(explanation(&command.method, &command.url)).expect("an explanation")),
        }
    }

    fn stored(&self, command: &StoredCommand) -> Inventory {
        let url = format!("http://{}/", command.host.as_deref().unwrap_or("every.example"));
        Inventory {
            pages: vec![StoredPage { url, fields: vec![("accept".to_owned(), "*/*".to_owned())], state: StoredState::Stale }],
            left_off: 3,
        }
    }

    fn seen(&self, site: Option<&str>) -> Option<admin_api::Seen> {
        (site != Some("none")).then(|| admin_api::Seen { site: site.map(str::to_owned), ..admin_api::Seen::default() })
    }

    fn series(&self, site: Option<&str>, step: u64) -> Option<admin_api::Series> {
        (site != Some("none")).then(|| admin_api::Series { step, ..admin_api::Series::default() })
    }

    fn recent(&self, after: u64, expression: Option<&str>, limit: usize) -> Result<admin_api::Recent, crate::BadExpression> {
        match expression {
            Some("status >") => Err(crate::BadExpression::new("status >\n        ^ a number is missing")),
            _ => Ok(admin_api::Recent { next: after, lost: limit as u64, ..admin_api::Recent::default() }),
        }
    }

    fn moment(&self) -> admin_api::Moment {
        let recent = vec![admin_api::RequestLine { path: "/".repeat(2_900), ..admin_api::RequestLine::default() }; 5];
        admin_api::Moment { at: self.at.load(Ordering::SeqCst), recent, ..admin_api::Moment::default() }
    }

    fn warm(&self, command: &WarmCommand) -> Result<(), WarmRefused> {
        match command.host.as_str() {
            "a" => Ok(()),
            "busy" => Err(WarmRefused::Busy("b".to_owned())),
            host => Err(WarmRefused::NoSite(host.to_owned())),
        }
    }

    fn warming(&self) -> Warming {
        Warming { host: "a".to_owned(), running: true, ..Warming::default() }
    }

    fn direct(&self, time: Duration) -> Result<DirectField, DirectRefused> {
        if time.as_secs() == 13 {
            return Err(DirectRefused);
        }
        Ok(DirectField { field: "Direct".to_owned(), value: "signed".to_owned(), until: 1_000 + time.as_secs() })
    }

    fn certificates(&self) -> Vec<CertificateState> {
        vec![certificate("a.example", Some(7))]
    }

    fn revoke(&self, name: &str) -> Result<CertificateState, RevokeRefused> {
        match name {
            "a.example" => Ok(certificate(name, Some(8))),
            "slow.example" => Err(RevokeRefused::Slow),
            "failed.example" => Err(RevokeRefused::Failed("the authority refuses".to_owned())),
            _ => Err(RevokeRefused::Unknown(name.to_owned())),
        }
    }
}

/// Returns an explanation with every key that there is.
fn explanation(method: &str, url: &str) -> Json {
    json!({
        "method": method,
        "url": url,
        "site": {"name": "blog", "kind": "generic", "hosts": ["a"], "route": null},
        "rules": [{"rule": "method", "decided": false, "detail": "GET"}],
        "verdict": "lookup",
        "key": {"scheme": "http", "accept": "html", "host": "a", "target": "/"},
        "lookup": [{"rule": "stored", "decided": true, "detail": "1"}],
        "stored": [{
            "selected": true, "refused": null, "status": 200, "vary": [["accept-language", "en"], ["cookie", null]], "age_seconds": 5,
            "lifetime_seconds": 60, "fresh": true, "fresh_seconds": 55, "freshness_source": "explicit", "validate_always": false,
            "stale_while_revalidate_seconds": 0, "stale_if_error_seconds": 0, "purged": "soft",
            "purges": [{"target": "tag", "hardness": "soft"}], "tags": ["t"], "head_bytes": 1, "body_bytes": 2, "weight_bytes": 3,
            "content_type": "text/html", "content_coding": null, "forms": [["br", 7]], "etag": "\"a\"", "for_cookies": true,
            "for_authorization": false, "tiers": ["memory"],
        }],
        "stored_under_other_scheme": false,
        "uncacheable_seconds": null,
        "not_kept": {"reason": "private", "status": 200, "seconds_ago": 9},
        "flight": {"followers": 1, "arriving": true},
        "origin_down_seconds": 4,
        "now": {"cache_status": "seawall; hit", "x_cache": "HIT", "words": ["It is answered."]},
    })
}

fn certificate(name: &str, not_after: Option<u64>) -> CertificateState {
    CertificateState { name: name.to_owned(), authority: "https://a/dir".to_owned(), not_after, next: Some(5), last_error: None }
}

struct Running {
    address: SocketAddr,
    console: Arc<Fake>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<std::io::Result<()>>>,
}

impl Running {
    fn on(address: &'static str, bounds: Bounds) -> Self {
        let console = Arc::new(Fake::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let (bound, listening) = std::sync::mpsc::sync_channel(1);
        let shown = Arc::clone(&console);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind(address).await?;
                bound.send(listener.local_addr()?).expect("the test waits");
                let token = Token::new(TOKEN).expect("long enough");
                serve_within(bounds, listener, shown, token, async { drop(stopped.await) }).await
            })
        });
        let address = listening.recv().expect("bound");
        Self { address, console, stop: Some(stop), thread: Some(thread) }
    }

    fn start() -> Self {
        Self::on("127.0.0.1:0", Bounds::DEFAULT)
    }

    fn connect(&self) -> TcpStream {
        // Of a wildcard listener, the loopback side.
        let stream = TcpStream::connect(("127.0.0.1", self.address.port())).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        stream
    }

    /// Sends one request on a connection of its own. `|` stands for CRLF, TOKEN and HOST for what they say.
    fn ask(&self, head: &str, body: &str) -> Answer {
        let mut stream = self.connect();
        let head = head.replace("TOKEN", TOKEN).replace("HOST", &format!("Host: {}", self.address)).replace('|', "\r\n");
        let length = body.len();
        stream.write_all(format!("{head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes()).expect("sent");
        let mut text = Vec::new();
        stream.read_to_end(&mut text).expect("an answer");
        Answer::parse(&String::from_utf8(text).expect("text"))
    }

    fn purges(&self) -> Vec<Order> {
        self.console.purges.lock().expect("no panic").clone()
    }

    fn stop(mut self) {
        self.stop.take().expect("once").send(()).expect("it runs");
        self.thread.take().expect("once").join().expect("no panic").expect("no error");
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let status = head.strip_prefix("HTTP/1.").and_then(|line| line.get(2..5)).and_then(|status| status.parse().ok());
        Self { status: status.expect(head), head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn json(&self) -> Json {
        assert!(self.head.contains("content-type: application/json"), "{self:?}");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Reads exactly one response with a Content-Length.
fn read_one(stream: &mut TcpStream) -> Answer {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).expect("text").to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length").parse().expect("a number");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    Answer::parse(&format!("{}{}", head.replacen("http", "HTTP", 1), String::from_utf8(body).expect("text")))
}

#[test]
fn every_route_with_and_without_the_token() {
    let (local, open) = (Running::start(), Running::on("0.0.0.0:0", Bounds::DEFAULT));
    let all = r#"{"all": true}"#;
    let cases = [
        // start line, body, and the status: on loopback without a token, with a wrong and the right one; elsewhere likewise.
        ("GET /", "", [200, 200, 200], [401, 401, 200]),
        ("GET /healthz", "", [200, 200, 200], [401, 401, 200]),
        ("HEAD /healthz", "", [200, 200, 200], [401, 401, 200]),
        ("GET /metrics", "", [200, 200, 200], [401, 401, 200]),
        ("GET /status", "", [200, 200, 200], [401, 401, 200]),
        ("GET /purge", "", [405, 405, 405], [401, 401, 405]),
        ("POST /explain", r#"{"url": "http://a/"}"#, [401, 401, 200], [401, 401, 200]),
        ("GET /explain", "", [405, 405, 405], [401, 401, 405]),
        ("GET /warm", "", [200, 200, 200], [401, 401, 200]),
        ("POST /warm", r#"{"host": "a"}"#, [401, 401, 200], [401, 401, 200]),
        ("POST /stored", "{}", [401, 401, 200], [401, 401, 200]),
        ("GET /certificates", "", [200, 200, 200], [401, 401, 200]),
        ("POST /certificates/revoke", r#"{"name": "a.example"}"#, [401, 401, 200], [401, 401, 200]),
        ("GET /certificates/revoke", "", [405, 405, 405], [401, 401, 405]),
        ("POST /reload", "", [401, 401, 200], [401, 401, 200]),
        ("GET /reload", "", [405, 405, 405], [401, 401, 405]),
        ("GET /nothing", "", [404, 404, 404], [401, 401, 404]),
        ("OPTIONS /purge", "", [405, 405, 405], [401, 401, 405]),
        ("POST /purge", all, [401, 401, 200], [401, 401, 200]),
        ("POST /status", "", [401, 401, 405], [401, 401, 405]),
        ("DELETE /purge", "", [401, 401, 405], [401, 401, 405]),
    ];
    for (start, body, on_loopback, elsewhere) in cases {
        for (server, expected) in [(&local, on_loopback), (&open, elsewhere)] {
            for (token, expected) in ["", "|Authorization: Bearer 123", "|Authorization: Bearer TOKEN"].iter().zip(expected) {
                let answer = server.ask(&format!("{start} HTTP/1.1|HOST{token}"), body);
                assert_eq!(answer.status, expected, "{start} {token}: {answer:?}");
                // RFC 9110 §11.6.1 and RFC 6750 §3.1.
                let challenge = if token.is_empty() {
                    "www-authenticate: bearer realm=\"seawall\"\r\n"
                } else {
                    "www-authenticate: bearer realm=\"seawall\", error=\"invalid_token\"\r\n"
                };
                assert_eq!(answer.head.contains(challenge), expected == 401, "{answer:?}");
                // RFC 9110 §15.5.6.
                assert_eq!(answer.head.contains("\r\nallow: "), expected == 405, "{answer:?}");
                assert!(answer.head.contains("cache-control: no-store"), "{answer:?}");
                assert!(!answer.head.contains("access-control-"), "{answer:?}");
                if start.starts_with("HEAD") {
                    assert_eq!(answer.body, "");
                } else if expected >= 400 {
                    let json = answer.json();
                    assert!(json["error"].is_string() && json["remedy"].is_string(), "{json}");
                }
            }
        }
    }
    let everything = Order::by_operator(What::Everything, true);
    assert_eq!((local.purges(), open.purges()), (vec![everything.clone()], vec![everything]));
}

/// Programs that look at the status alone know that it may still be shown elsewhere.
#[test]
fn a_purge_that_is_not_known_to_hold_on_every_machine_is_202() {
    let server = Running::start();
    let head = "POST /purge HTTP/1.1|HOST|Authorization: Bearer TOKEN";
    let answer = server.ask(head, r#"{"host": "a.example"}"#);
    assert_eq!((answer.status, &answer.json()["spread"]["everywhere"]), (202, &false.into()), "{answer:?}");
    let answer = server.ask(head, r#"{"all": true}"#);
    assert_eq!((answer.status, answer.json().get("spread").is_some()), (200, false), "{answer:?}");
}

#[test]
fn certificates_are_listed_and_revoked() {
    let server = Running::start();
    let listed = server.ask("GET /certificates HTTP/1.1|HOST", "");
    let state = json!({"name": "a.example", "authority": "https://a/dir", "not_after": 7, "next": 5, "last_error": null});
    assert_eq!((listed.status, listed.json()), (200, json!([state])));
    let revoke = |body| server.ask("POST /certificates/revoke HTTP/1.1|HOST|Authorization: Bearer TOKEN", body);
    assert_eq!(revoke(r#"{"name": "a.example"}"#).json()["not_after"], 8);
    for (body, status, error) in [
        (r#"{"name": "b.example"}"#, 404, "no automatic certificate for b.example"),
        (r#"{"name": "failed.example"}"#, 502, "the authority refuses"),
        (r#"{"name": "slow.example"}"#, 504, "still being ordered"),
        (r#"{"name": "a.example", "reason": 1}"#, 400, "unknown field `reason`"),
        ("{}", 400, "missing field `name`"),
    ] {
        let answer = revoke(body);
        assert_eq!(answer.status, status, "{body}");
        assert!(answer.json()["error"].as_str().is_some_and(|said| said.contains(error)), "{answer:?}");
    }
}

#[test]
fn a_name_of_another_machine_is_answered_with_the_token_alone() {
    let server = Running::start();
    for (head, expected) in [
        ("GET /status HTTP/1.1|Host: evil.example", 421),
        ("GET /status HTTP/1.1|Host: evil.example|Authorization: Bearer TOKEN", 200),
        ("POST /purge HTTP/1.1|Host: evil.example", 421),
        ("GET /status HTTP/1.1|Host: localhost", 200),
        ("GET /status HTTP/1.1", 400),
        ("GET /status HTTP/1.1|Host: localhost|Host: localhost", 400),
        ("GET /status HTTP/1.0", 200),
    ] {
        let answer = server.ask(head, "");
        assert_eq!(answer.status, expected, "{head}: {answer:?}");
    }
    assert_eq!(server.purges(), []);
}

#[test]
fn health_and_status_say_how_it_is() {
    let server = Running::start();
    let answer = server.ask("GET /healthz HTTP/1.1|HOST", "");
    assert_eq!((answer.status, answer.json()), (200, json!({"status": "ok"})));

    server.console.draining.store(true, Ordering::SeqCst);
    let answer = server.ask("GET /healthz HTTP/1.1|HOST", "");
    assert_eq!((answer.status, answer.json()), (503, json!({"status": "draining"})));

    let answer = server.ask("GET /status HTTP/1.1|HOST", "");
    let site = |name: &str, origin_up: Option<bool>| {
        let mut site = json!({
            "name": name, "hosts": [format!("{name}.example")], "redirect_from": [], "source": "http://127.0.0.1:2368", "kind": "generic",
        });
        if let Some(up) = origin_up {
            site["origin_up"] = up.into();
        }
        site
    };
    let expected = json!({
        "status": "draining",
        "version": "1.2.3",
        "uptime_seconds": 1.5,
        "workers": 3,
        "listening": ["127.0.0.1:8080", "unix:/run/s"],
        "listeners": [{"address": "127.0.0.1:8080", "protocol": "http"}],
        "trusts_loopback": true,
        "sites": [site("blog", None), site("ghost", Some(false))],
        "origins": [{"site": "ghost", "route": "/api", "address": "http://127.0.0.1:3000", "up": false, "asked": true}],
        "cache": {
            "memory_bytes": 0, "memory_bytes_max": 0, "resources": 0, "disk": "", "disk_bytes": 0, "disk_bytes_max": 0, "disk_objects": 0,
            "requests": 0, "hits": 0,
        },
        "alerts": [],
        "metrics": {
            "seawall_requests_total": {
                "kind": "counter",
                "samples": [{"labels": {"site": "blog"}, "value": 12}, {"labels": {"site": "a \"b\""}, "value": 0.5}],
            },
        },
    });
    assert_eq!((answer.status, answer.json()), (200, expected.clone()));
    let read: Status = serde_json::from_value(expected.clone()).expect("a client reads what the server writes");
    assert_eq!(serde_json::to_value(read).expect("JSON"), expected);

    let answer = server.ask("GET /metrics HTTP/1.1|HOST", "");
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{answer:?}");
    let expected = "# HELP seawall_requests_total Requests\n# TYPE seawall_requests_total counter\n\
                    seawall_requests_total{site=\"blog\"} 12\nseawall_requests_total{site=\"a \\\"b\\\"\"} 0.5\n";
    assert_eq!(answer.body, expected);

    let answer = server.ask("GET / HTTP/1.1|HOST", "");
    for route in ["/healthz", "/metrics", "/status", "/explain", "/stored", "/purge", "/direct"] {
        assert!(answer.body.contains(route), "{route}");
    }
}

#[test]
fn a_purge_is_passed_on_or_refused_with_the_reason() {
    let server = Running::start();
    let head = "POST /purge HTTP/1.1|HOST|Authorization: Bearer TOKEN";
    let url = |hard| Order::by_operator(What::url("https://a.example/b").expect("an address"), hard);
    let too_long = format!(r#"{{"url": "{}"}}"#, "x".repeat(16 << 10));
    let as_long_as_it_may_be = format!(r#"{{"all": true}}{}"#, " ".repeat((16 << 10) - 13));
    let cases = [
        (r#"{"url": "https://a.example/b"}"#, 200, "", Some(url(true))),
        (r#"{"url": "https://a.example/b", "hard": false}"#, 200, "", Some(url(false))),
        (&as_long_as_it_may_be, 200, "", Some(Order::by_operator(What::Everything, true))),
        (&too_long, 413, "16 KiB", None),
        (r#"{"tag": "none"}"#, 400, "nothing is called none", None),
        (r#"{"all": true, "site": "a"}"#, 400, "unknown field `site`", None),
        (r#"{"all": true, "url": "https://a.example/b"}"#, 400, "more than one", None),
        (r#"{"url": "a.example/b"}"#, 400, "a.example/b is not an address", None),
        ("{}", 400, "names nothing", None),
        ("", 400, "not a purge command", None),
    ];
    for (body, status, error, purged) in cases {
        let shown = &body[..body.len().min(60)];
        let before = server.purges().len();
        let answer = server.ask(head, body);
        assert_eq!(answer.status, status, "{shown}: {answer:?}");
        assert_eq!(server.purges().get(before), purged.as_ref(), "{shown}");
        if status == 200 {
            assert_eq!(answer.json(), json!({"generation": before + 1, "variants": null, "complete": true, "covered": "that"}), "{shown}");
        } else {
            assert!(answer.json()["error"].as_str().is_some_and(|text| text.contains(error)), "{shown}: {answer:?}");
        }
    }
}

#[test]
fn an_explanation_is_passed_on_or_refused_with_the_reason() {
    let server = Running::start();
    let ask = |route: &str, body: &str| server.ask(&format!("POST {route} HTTP/1.1|HOST|Authorization: Bearer TOKEN"), body);
    let answer = ask("/explain", r#"{"url": "http://a/", "method": "HEAD", "fields": [["cookie", "a=1"]]}"#);
    assert_eq!((answer.status, answer.json()), (200, explanation("HEAD", "http://a/")));
    for (body, status, error, remedy) in [
        (r#"{"url": "bad"}"#, 400, "bad is not an address", "as visitors see it"),
        (r#"{"url": "http://other/"}"#, 421, "no site is served under other", "served are: a, b"),
        (r#"{"url": "http://late/"}"#, 503, "in time", "try again"),
        (r#"{"url": "http://a/", "cookie": "a"}"#, 400, "unknown field `cookie`", "send {"),
        ("{}", 400, "missing field `url`", "send {"),
    ] {
        let answer = ask("/explain", body);
        let json = answer.json();
        assert_eq!(answer.status, status, "{body}: {json}");
        assert!(json["error"].as_str().is_some_and(|text| text.contains(error)), "{json}");
        assert!(json["remedy"].as_str().is_some_and(|text| text.contains(remedy)), "{json}");
    }
    let answer = ask("/stored", r#"{"host": "a"}"#);
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({"pages": [{"url": "http://a/", "fields": [["accept", "*/*"]], "state": "stale"}], "left_off": 3}))
    );
    assert_eq!(ask("/stored", r#"{"hosts": "a"}"#).status, 400);
}

/// Whoever reads the answers of the admin API needs one way to read a refusal.
#[test]
fn a_bad_query_is_refused_as_all_else_is() {
    let server = Running::start();
    for (target, status, error, remedy) in [
        ("/series?span=year", 400, "the query is not valid: span: unknown variant `year`", "GET / lists"),
        ("/series?span=day&span=hour", 400, "the query is not valid: duplicate field `span`", "GET / lists"),
        ("/series?site=none", 404, "no site of this name", "GET /status"),
        ("/recent?limit=many", 400, "the query is not valid: limit: invalid digit", "GET / lists"),
        ("/recent?after=-1", 400, "the query is not valid: after: invalid digit", "GET / lists"),
        ("/recent?where=status+%3E", 400, "a number is missing", "write it as in: status >= 500"),
        ("/seen?site=a&site=b", 400, "the query is not valid: duplicate field `site`", "GET / lists"),
        ("/seen?site=none", 404, "no site of this name", "GET /status"),
    ] {
        let answer = server.ask(&format!("GET {target} HTTP/1.1|HOST"), "");
        let json = answer.json();
        assert_eq!(answer.status, status, "{target}: {json}");
        assert!(json["error"].as_str().is_some_and(|text| text.contains(error)), "{target}: {json}");
        assert!(json["remedy"].as_str().is_some_and(|text| text.contains(remedy)), "{target}: {json}");
    }
}

#[test]
fn a_field_for_the_load_tester_is_signed_for_as_long_as_was_asked() {
    let server = Running::start();
    let ask = |head: &str, body: &str| server.ask(&format!("POST /direct HTTP/1.1|HOST{head}"), body);
    let with_token = "|Authorization: Bearer TOKEN";
    let answer = ask(with_token, r#"{"seconds": 600}"#);
    assert_eq!((answer.status, answer.json()), (200, json!({"field": "Direct", "value": "signed", "until": 1_600})));
    for (head, body, status, error) in [
        ("", r#"{"seconds": 600}"#, 401, "token"),
        (with_token, r#"{"seconds": 3601}"#, 400, "1 to 3600"),
        (with_token, r#"{"seconds": 13}"#, 503, "random"),
        (with_token, "{}", 400, "for how long"),
    ] {
        let answer = ask(head, body);
        let json = answer.json();
        assert_eq!(answer.status, status, "{body}: {json}");
        assert!(json["error"].as_str().is_some_and(|text| text.contains(error)), "{json}");
    }
}

#[test]
fn recent_requests_are_asked_for_by_number_and_expression() {
    let server = Running::start();
    let ask = |query: &str| server.ask(&format!("GET /recent{query} HTTP/1.1|HOST"), "");
    let all = ask("").json();
    assert_eq!((&all["next"], &all["lost"]), (&json!(0), &json!(500)), "500 are the most, unless it says otherwise");
    let some = ask("?after=7&limit=20&where=status+%3E%3D+500").json();
    assert_eq!((&some["next"], &some["lost"]), (&json!(7), &json!(20)));
    let refused = ask("?where=status+%3E");
    assert_eq!(refused.status, 400);
    assert!(refused.json()["error"].as_str().is_some_and(|said| said.contains("a number is missing")), "{refused:?}");
}

impl Running {
    /// Opens a stream of events, and reads its head.
    fn view(&self) -> (TcpStream, String) {
        let mut stream = self.connect();
        stream.write_all(format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).as_bytes()).expect("sent");
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).expect("a head");
            head.push(byte[0]);
        }
        (stream, String::from_utf8(head).expect("text").to_ascii_lowercase())
    }
}

/// Reads until so many events have come, and returns the seconds that they tell of.
fn read_events(stream: &mut TcpStream, count: usize) -> Vec<u64> {
    let (mut text, mut bytes) = (String::new(), [0; 4_096]);
    while text.matches("\n\n").count() < count {
        let n = stream.read(&mut bytes).expect("events");
        assert!(n > 0, "the stream ended: {text}");
        text.push_str(std::str::from_utf8(&bytes[..n]).expect("text"));
    }
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    events.map(|data| serde_json::from_str::<admin_api::Moment>(data).expect(data).at).collect()
}

/// HTML Living Standard §9.2: each second is one event, and a page that opens has the last second at once.
#[test]
fn a_viewer_is_told_of_each_second() {
    let server = Running::start();
    server.console.at.store(100, Ordering::SeqCst);
    let (mut first, head) = server.view();
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: text/event-stream"), "{head}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    assert_eq!(read_events(&mut first, 1), [100]);
    server.console.at.store(101, Ordering::SeqCst);
    assert_eq!(read_events(&mut first, 1), [101]);
    let (mut second, _) = server.view();
    assert_eq!(read_events(&mut second, 1), [101]);
    server.console.at.store(102, Ordering::SeqCst);
    assert_eq!((read_events(&mut first, 1), read_events(&mut second, 1)), (vec![102], vec![102]));
    // They end in order with the listener.
    server.stop();
    let mut rest = String::new();
    first.read_to_string(&mut rest).expect("the end");
    assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
}

/// No connection outlives its lifetime but those of viewers.
#[test]
fn a_viewer_stays_beyond_the_lifetime_of_a_connection() {
    let short = Duration::from_millis(50);
    let server = Running::on("127.0.0.1:0", Bounds { lifetime: short, grace: short, ..Bounds::DEFAULT });
    let (mut viewer, _) = server.view();
    read_events(&mut viewer, 1);
    // An idle connection that was opened later is over before the next second comes.
    let mut idle = server.connect();
    assert_eq!(idle.read(&mut [0]).expect("closed in order"), 0);
    server.console.at.store(1, Ordering::SeqCst);
    assert_eq!(read_events(&mut viewer, 1), [1]);
}

#[test]
fn there_is_room_for_sixteen_viewers() {
    let server = Running::on("127.0.0.1:0", Bounds { look: Duration::from_millis(1), ..Bounds::DEFAULT });
    let mut viewers: Vec<_> = (0..crate::events::VIEWERS_MAX).map(|_| server.view().0).collect();
    let refused = server.ask("GET /events HTTP/1.1|HOST", "");
    assert_eq!(refused.status, 503);
    assert!(refused.json()["error"].as_str().is_some_and(|said| said.contains("16 viewers")), "{refused:?}");
    assert_eq!(server.ask("GET /healthz HTTP/1.1|HOST", "").status, 200, "the others have their places");
    // A page of somebody else takes none of them.
    for (site, status) in [("cross-site", 403), ("same-site", 403), ("same-origin", 503), ("none", 503)] {
        assert_eq!(server.ask(&format!("GET /events HTTP/1.1|HOST|Sec-Fetch-Site: {site}"), "").status, status, "{site}");
    }
    // A place is free as soon as its viewer has left, and that is noticed when there is something to tell.
    drop(viewers.pop());
    let mut at = 0;
    let admitted = (0..1_000).any(|_| {
        at += 1;
        server.console.at.store(at, Ordering::SeqCst);
        read_events(&mut viewers[0], 1);
        let mut stream = server.connect();
        stream.write_all(format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes()).expect("sent");
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("an answer");
        &status == b"HTTP/1.1 200"
    });
    assert!(admitted, "nobody takes the place of a viewer who left");
}

/// A viewer that does not read costs others nothing, and loses its connection.
#[test]
fn a_viewer_that_reads_too_slowly_is_cut_off() {
    let short = Duration::from_millis(50);
    let server = Running::on("127.0.0.1:0", Bounds { grace: short, look: Duration::from_millis(1), ..Bounds::DEFAULT });
    let (mut slow, _) = server.view();
    let (mut other, _) = server.view();
    read_events(&mut other, 1);
    // The system keeps some megabytes for a connection; these are 24 MB.
    for at in 1..=1_600 {
        server.console.at.store(at, Ordering::SeqCst);
        assert_eq!(read_events(&mut other, 1), [at]);
    }
    let mut rest = Vec::new();
    // It is ended in the middle, and not in order.
    match slow.read_to_end(&mut rest) {
        Ok(_) => assert!(!rest.ends_with(b"0\r\n\r\n")),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

/// Whoever shows events keeps its place, and one more waits until it is free.
#[test]
fn further_connections_wait_for_a_place() {
    let server = Running::on("127.0.0.1:0", Bounds { connections: 1, ..Bounds::DEFAULT });
    let (mut viewer, _) = server.view();
    let mut waiting = server.connect();
    waiting.write_all(format!("GET /status HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes()).expect("sent");
    for at in 1..=3 {
        server.console.at.store(at, Ordering::SeqCst);
        read_events(&mut viewer, 1);
    }
    assert_eq!(server.console.asked.load(Ordering::SeqCst), 0, "nobody is answered who has no place");
    drop(viewer);
    // The viewer's end is noticed when the next event cannot be sent.
    server.console.at.store(4, Ordering::SeqCst);
    assert_eq!(read_one(&mut waiting).status, 200);
}

/// Everybody on this machine has one address: nobody may shut the operator out by saying nothing on many connections.
#[test]
fn connections_that_say_nothing_or_half_of_it_make_way_for_one_that_asks() {
    let long = Duration::from_secs(3_600);
    let server = Running::on("127.0.0.1:0", Bounds { head: long, lifetime: long, ..Bounds::DEFAULT });
    let (mut viewer, _) = server.view();
    assert_eq!(read_events(&mut viewer, 1), [0]);
    let mut slow: Vec<TcpStream> = (0..200)
        .map(|n| {
            let mut stream = server.connect();
            // Those that came before may have been closed already, but never the last ones.
            stream.write_all(if n % 2 == 0 { &b""[..] } else { b"GET /status HTTP/1.1\r\nHost: 127" }).expect("sent");
            stream
        })
        .collect();
    for n in 1..=100 {
        assert_eq!(server.ask("GET /healthz HTTP/1.1|HOST", "").status, 200, "{n}");
    }
    assert_eq!(slow[0].read(&mut [0]).expect("closed"), 0, "the first has made way");
    server.console.at.store(7, Ordering::SeqCst);
    assert_eq!(read_events(&mut viewer, 1), [7], "who views stays");
}

/// A stranger who asks and does not read holds a place no longer than one who says nothing, if others need it.
#[test]
fn answers_that_nobody_reads_make_way_for_one_that_asks() {
    let (long, short) = (Duration::from_secs(3_600), Duration::from_millis(50));
    let server = Running::on("127.0.0.1:0", Bounds { connections: 2, patience: short, head: long, lifetime: long, ..Bounds::DEFAULT });
    // The server stops reading from a client that reads nothing itself, once its answers fill what the system keeps.
    let request = format!("GET /recent?limit=5 HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).repeat(1_000);
    let deaf: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = server.connect();
            stream.set_write_timeout(Some(Duration::from_millis(200))).expect("set");
            while stream.write_all(request.as_bytes()).is_ok() {}
            stream
        })
        .collect();
    for n in 1..=20 {
        assert_eq!(server.ask("GET /healthz HTTP/1.1|HOST", "").status, 200, "{n}");
    }
    drop(deaf);
}

#[test]
fn whoever_is_slow_loses_the_connection() {
    let short = Duration::from_millis(50);
    let half_a_head = "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    let half_a_body =
        format!("POST /purge HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 13\r\n\r\n{{\"all\"");
    let cases = [
        (Bounds { head: short, ..Bounds::DEFAULT }, half_a_head, ""),
        (Bounds { head: short, ..Bounds::DEFAULT }, "", ""),
        (Bounds { lifetime: short, grace: short, ..Bounds::DEFAULT }, half_a_head, ""),
        (Bounds { body: short, ..Bounds::DEFAULT }, &half_a_body, "HTTP/1.1 408"),
    ];
    for (bounds, sent, expected) in cases {
        let server = Running::on("127.0.0.1:0", bounds);
        let mut stream = server.connect();
        stream.write_all(sent.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{bounds:?}"),
        }
        assert!(String::from_utf8_lossy(&answer).starts_with(expected), "{bounds:?}: {answer:?}");
        assert_eq!(server.purges(), []);
    }
}

#[test]
fn a_shutdown_closes_idle_connections_and_returns() {
    let server = Running::start();
    let mut idle = server.connect();
    idle.write_all(format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes()).expect("sent");
    assert_eq!(read_one(&mut idle).status, 200);
    server.stop();
    assert_eq!(idle.read(&mut [0]).expect("closed in order"), 0);
}

/// What is wrong with a configuration is told to whoever wanted it to be read again.
#[test]
fn a_reload_says_what_needs_a_restart_or_what_is_wrong() {
    let server = Running::start();
    let reload = || server.ask("POST /reload HTTP/1.1|HOST|Authorization: Bearer TOKEN", "");
    let done = reload();
    assert_eq!((done.status, done.json()), (200, json!({"needs_restart": ["server.workers"]})));
    let refused = reload();
    assert_eq!(refused.status, 409);
    assert!(refused.json()["error"].as_str().expect("words").contains("line 3"), "{refused:?}");
    assert_eq!(reload().status, 503);
}

/// A browser gets the dashboard at the address where curl gets the list of routes.
#[test]
fn a_browser_gets_the_dashboard_and_everybody_else_the_list() {
    let server = Running::start();
    for (accept, is_page) in [
        ("|Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
        ("|Accept: */*", false),
        ("|Accept: application/json", false),
        ("|Accept: text/html;q=0, */*", false),
        ("", false),
    ] {
        let answer = server.ask(&format!("GET / HTTP/1.1|HOST{accept}"), "");
        assert_eq!((answer.status, answer.body.starts_with("<!doctype html>")), (200, is_page), "{accept}");
        assert!(answer.head.contains("vary: accept"), "{answer:?}");
    }
}

/// CSP3, Fetch Metadata, RFC 9111 §5.2.2.5: what a browser is told of each answer, whether it is a page or not.
#[test]
fn every_answer_forbids_a_browser_what_it_need_not_do() {
    let server = Running::start();
    let page = "GET / HTTP/1.1|HOST|Accept: text/html";
    for request in [
        page,
        "GET /assets/dashboard.js HTTP/1.1|HOST",
        "GET /seen HTTP/1.1|HOST",
        "POST /purge HTTP/1.1|HOST",
        "GET / HTTP/1.1|Host: evil.example",
    ] {
        let answer = server.ask(request, "");
        for field in [
            "content-security-policy: default-src 'none'; ",
            "frame-ancestors 'none'",
            "referrer-policy: no-referrer\r\n",
            "cache-control: no-store\r\n",
            "x-content-type-options: nosniff\r\n",
            "cross-origin-resource-policy: same-origin\r\n",
        ] {
            assert!(answer.head.contains(field), "{request}: {field}: {answer:?}");
        }
        assert!(!answer.head.contains("unsafe"), "{answer:?}");
    }
    // Every part that the page names is there.
    let parts: Vec<String> = server.ask(page, "").body.split('"').filter(|text| text.starts_with("/assets/")).map(str::to_owned).collect();
    assert!(parts.len() >= 4, "{parts:?}");
    for part in parts {
        let answer = server.ask(&format!("GET {part} HTTP/1.1|HOST"), "");
        assert_eq!(answer.status, 200, "{part}");
        assert!(
            ["text/css", "text/javascript", "image/svg+xml"].iter().any(|kind| answer.head.contains(&format!("content-type: {kind}"))),
            "{part}"
        );
    }
    for missing in ["/assets/", "/assets/nothing.js", "/assets/uplot/LICENSE", "/assets/..%2fdashboard.html"] {
        assert_eq!(server.ask(&format!("GET {missing} HTTP/1.1|HOST"), "").status, 404, "{missing}");
    }
}

#[test]
fn the_token_is_shown_once_and_the_session_commands_until_it_is_ended() {
    for listener in ["127.0.0.1:0", "0.0.0.0:0"] {
        let server = Running::on(listener, Bounds::DEFAULT);
        let own = format!("|HOST|Origin: http://{}", server.address);
        let sign_in = |token: &str| server.ask(&format!("POST /session HTTP/1.1{own}"), &json!({"token": token}).to_string());
        let reads = listener.starts_with("127");
        assert_eq!(server.ask("GET /session HTTP/1.1|HOST", "").json(), json!({"signed_in": false, "reads": reads}));
        assert_eq!(sign_in("wrong").status, 401);
        assert_eq!(server.ask(&format!("POST /session HTTP/1.1{own}"), "{\"token\": 1}").status, 400);

        let signed = sign_in(TOKEN);
        assert_eq!(signed.status, 200, "{signed:?}");
        let cookie = signed.head.split("set-cookie: ").nth(1).and_then(|rest| rest.split(';').next()).expect("a cookie").to_owned();
        let answer = signed.json();
        let key = answer["key"].as_str().expect("a key");
        assert_ne!(cookie.split_once('=').expect("a pair").1, key);
        let session = format!("{own}|Cookie: {cookie}|Seawall-Session: {key}");
        let purge = || server.ask(&format!("POST /purge HTTP/1.1{session}"), r#"{"all": true}"#).status;
        assert_eq!(
            server.ask(&format!("GET /session HTTP/1.1|HOST|Cookie: {cookie}"), "").json(),
            json!({"signed_in": true, "reads": true})
        );
        assert_eq!(server.ask(&format!("GET /seen HTTP/1.1|HOST|Cookie: {cookie}"), "").status, 200);
        assert_eq!(purge(), 200);
        // The page of another server on this machine, which knows the cookie, and can have the browser send it.
        let stolen = format!("POST /purge HTTP/1.1|HOST|Origin: http://127.0.0.1:1|Cookie: {cookie}");
        assert_eq!(server.ask(&stolen, r#"{"all": true}"#).status, 403);
        assert_eq!(server.purges().len(), 1);

        let ended = server.ask(&format!("DELETE /session HTTP/1.1{session}"), "");
        assert_eq!((ended.status, ended.json()), (200, json!({"signed_in": false, "reads": reads})));
        assert!(ended.head.contains("max-age=0"), "{ended:?}");
        assert_eq!(purge(), 401);
    }
}

#[test]
fn guesses_are_answered_with_the_time_to_wait() {
    let server = Running::start();
    let guess = || server.ask(&format!("POST /session HTTP/1.1|HOST|Origin: http://{}", server.address), r#"{"token": "guess"}"#);
    let answers: Vec<Answer> = (0..7).map(|_| guess()).collect();
    let refused = answers.last().expect("an answer");
    assert_eq!(refused.status, 429, "{refused:?}");
    // RFC 9110 §10.2.3.
    assert!(refused.head.contains("\r\nretry-after: 1"), "{refused:?}");
    assert_eq!(server.ask("POST /reload HTTP/1.1|HOST|Authorization: Bearer TOKEN", "").status, 200, "commands are not held up");
}

#[test]
fn pages_are_fetched_for_a_host_that_is_served() {
    let server = Running::start();
    let warm = |body| server.ask("POST /warm HTTP/1.1|HOST|Authorization: Bearer TOKEN", body);
    let warming = json!({"host": "a", "running": true, "pages": 0, "done": 0, "results": [], "told": ""});
    assert_eq!((warm(r#"{"host": "a"}"#).status, server.ask("GET /warm HTTP/1.1|HOST", "").json()), (200, warming));
    for (body, status, error) in [
        (r#"{"host": "busy"}"#, 409, "the pages of b are being fetched"),
        (r#"{"host": "other"}"#, 421, "no site is served under other"),
        (r#"{"host": "a", "all": true}"#, 400, "unknown field `all`"),
        ("{}", 400, "missing field `host`"),
    ] {
        let answer = warm(body);
        assert_eq!(answer.status, status, "{body}");
        assert!(answer.json()["error"].as_str().is_some_and(|said| said.contains(error)), "{answer:?}");
    }
}
