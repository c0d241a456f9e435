//! Traces: W3C Trace Context, OTLP/HTTP (OpenTelemetry Protocol 1.x) and OpenTelemetry's semantic conventions for HTTP spans; and the id of a
//! request, `X-Request-Id`.
//!
//! The collector is scripted; what it gets is read with the messages that the OpenTelemetry project generates.

use std::{fs, time::Instant};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::Message;
use store::{Hardness, PurgeTarget};
use testkit::{FastCgiServer, Gate, Origin, Reply, Req, exposition, get, millis, ok, post, secs, status};

use crate::{
    operator::Operator,
    site::{Site, site_with},
};

/// A trace that somebody else has begun (W3C Trace Context §3.2.3, the example).
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

/// A collector that takes what it gets.
struct Collector(Origin);

impl Collector {
    fn start() -> Self {
        let collector = Self(Origin::start());
        collector.answers(taken());
        collector
    }

    /// Gives this answer from now on.
    fn answers(&self, reply: Reply) {
        self.0.on(post("/v1/traces")).reply(reply);
    }

    fn settings(&self) -> String {
        format!("[traces]\nendpoint = \"{}\"\n", self.0.url())
    }

    /// Returns the requests that it has got until now.
    fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        let requests = self.0.requests();
        requests.iter().map(|request| ExportTraceServiceRequest::decode(&request.body[..]).expect("a message of OTLP")).collect()
    }

    /// Returns the spans that it has got until now, those that began first at first.
    fn spans(&self) -> Vec<Span> {
        let of_service = self.requests().into_iter().flat_map(|request| request.resource_spans);
        let mut spans: Vec<Span> = of_service.flat_map(|of| of.scope_spans).flat_map(|of| of.spans).collect();
        spans.sort_by_key(|span| (span.start_time_unix_nano, span.kind));
        spans
    }

    fn of_kind(&self, kind: SpanKind) -> Vec<Span> {
        self.spans().into_iter().filter(|span| span.kind() == kind).collect()
    }
}

fn taken() -> Reply {
    ok(ExportTraceServiceResponse::default().encode_to_vec()).field("content-type", "application/x-protobuf")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    attributes.iter().find(|attribute| attribute.key == key)?.value.as_ref()?.value.as_ref()
}

/// Returns the value of an attribute, as text; empty if there is none.
fn text(span: &Span, key: &str) -> String {
    match attribute(&span.attributes, key) {
        None => String::new(),
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        Some(other) => panic!("{key} is {other:?}"),
    }
}

/// Returns the site's own requests, and a collector that has what they made when it is read after [`Site::stop`].
async fn traced(toml: &str) -> (Origin, Collector, Site) {
    let collector = Collector::start();
    let (origin, site) = site_with(&(collector.settings() + toml)).await;
    (origin, collector, site)
}

/// Returns how many spans there are of each fate: sent, full, refused, lost.
async fn counted(site: &Site) -> [f64; 4] {
    scraped(&Operator::of(site)).await
}

async fn scraped(operator: &Operator) -> [f64; 4] {
    let mut client = testkit::Client::connect(operator.address).await.with_host("127.0.0.1");
    let families = exposition::parse(&client.get("/metrics").await.status(200).text());
    let family = families.iter().find(|family| family.name == "seawall_trace_spans_total").expect("the metric");
    ["sent", "full", "refused", "lost"].map(|result| family.value(&[("result", result)]))
}

/// Waits until the spans of all fates but `full` are so many. A collector's answers are not seen from outside, so it is looked at again and again.
async fn until_counted(site: &Site, expected: [f64; 4]) {
    let operator = Operator::of(site);
    testkit::patiently("for the spans to be counted", async {
        while scraped(&operator).await != expected {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn stop(server: Site) -> tempfile::TempDir {
    server.stop(secs(5))
}

/// Semantic conventions for HTTP spans, "HTTP server span" and "HTTP client span"; W3C Trace Context §2.2: each gives its own id to the next.
#[tokio::test]
async fn a_request_and_what_it_asks_of_its_origin_are_one_trace() {
    let (origin, collector, site) = traced("service_name = \"blog\"").await;
    origin.on(get("/post?page=2&s=secret")).reply(ok("text").field("cache-control", "max-age=10"));
    let request = Req::get("/post?page=2&s=secret").field("user-agent", "reader/1").field("cookie", "a=secret");
    let answer = site.request(request).await.status(200);
    let id = answer.value("x-request-id").expect("an id");
    let address = origin.addr();
    let port = site.address().port();
    stop(site);
    let [server, client] = &collector.spans()[..] else { panic!("{:?}", collector.spans()) };
    assert_eq!(
        (server.kind(), server.name.as_str(), client.kind(), client.name.as_str()),
        (SpanKind::Server, "GET", SpanKind::Client, "GET")
    );
    assert_eq!((server.trace_id.len(), server.span_id.len(), server.parent_span_id.len()), (16, 8, 0));
    assert_eq!((&client.trace_id, &client.parent_span_id), (&server.trace_id, &server.span_id));
    assert_ne!(client.span_id, server.span_id);
    assert!(server.start_time_unix_nano <= client.start_time_unix_nano && client.end_time_unix_nano <= server.end_time_unix_nano);
    let told = origin.last("/post?page=2&s=secret").field("traceparent").expect("a parent");
    assert_eq!(told, format!("00-{}-{}-01", hex(&server.trace_id), hex(&client.span_id)));
    for (key, value) in [
        ("http.request.method", "GET"),
        ("url.scheme", "http"),
        ("url.path", "/post"),
        ("url.query", "page=REDACTED&s=REDACTED"),
        ("server.address", "blog.example"),
        ("server.port", "80"),
        ("network.protocol.version", "1.1"),
        ("user_agent.original", "reader/1"),
        ("http.response.status_code", "200"),
        ("http.response.body.size", "4"),
        ("error.type", ""),
        ("seawall.site", "default"),
        ("seawall.cache", "miss"),
        ("seawall.request_id", &id),
    ] {
        assert_eq!(text(server, key), value, "{key}");
    }
    for (key, value) in [
        ("http.request.method", "GET"),
        ("url.full", &format!("http://{address}/post?page=REDACTED&s=REDACTED")),
        ("server.address", "127.0.0.1"),
        ("server.port", &address.port().to_string()),
        ("http.response.status_code", "200"),
        ("error.type", ""),
    ] {
        assert_eq!(text(client, key), value, "{key}");
    }
    assert!(server.status.is_none() && client.status.is_none());
    // Neither the client's address nor what it alone knows is told to anybody.
    let everything = format!("{:?}", collector.requests());
    assert!(!everything.contains("secret") && !everything.contains(&format!("127.0.0.1:{port}")), "{everything}");
    let resource = collector.requests()[0].resource_spans[0].resource.clone().expect("a resource");
    assert_eq!(attribute(&resource.attributes, "service.name"), Some(&Value::StringValue("blog".to_owned())));
}

/// What is handed out to one person may stand in a path: the id of a session, a link to a draft. It is hidden as in every list that Seawall shows.
#[tokio::test]
async fn what_may_be_a_secret_in_a_path_is_in_no_span() {
    let (origin, collector, site) = traced("").await;
    origin.on(get("/*").any_query()).reply(ok("text"));
    let targets = [
        "/a;jsessionid=s3cret?b=s3cret",
        "/a%3Ftoken=s3cret",
        "/p/0b6c2fbb-93d1-4c59-a8f1-7a3c1d2e4f50/",
        "/b?0b6c2fbb93d14c59a8f17a3c1d2e4f50",
    ];
    for target in targets {
        site.get(target).await.status(200);
    }
    stop(site);
    // Requests that follow each other closely may begin in the same moment.
    let of = |kind, key| {
        let mut shown: Vec<String> = collector.of_kind(kind).iter().map(|span| text(span, key)).collect();
        shown.sort();
        shown
    };
    assert_eq!(of(SpanKind::Server, "url.path"), ["/a…", "/a…", "/b", "/p/…/"]);
    let shown = ["/a…", "/a…?b=REDACTED", "/b?REDACTED", "/p/…/"].map(|shown| format!("{}{shown}", origin.url()));
    assert_eq!(of(SpanKind::Client, "url.full"), shown);
    let everything = format!("{:?}", collector.requests());
    // Long enough that no id of a request has it by chance.
    assert!(!everything.contains("s3cret") && !everything.contains("93d1-4c59") && !everything.contains("93d14c59"), "{everything}");
}

/// A page that comes back after a purge was asked for by nobody: the request to the origin begins a trace of its own, of which the origin is told.
#[tokio::test]
async fn a_refill_has_a_trace_of_its_own() {
    let (origin, collector, site) = traced("[refill]\nconcurrency = 1").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=86400"));
    for _ in 0..3 {
        site.request(Req::get("/post").field("cache-control", "max-age=86400")).await.status(200);
    }
    site.purge(&PurgeTarget::All, Hardness::Soft);
    site.clock.advance(secs(1));
    origin.until_count("/post", 2).await;
    stop(site);
    let [asked, refilled] = &collector.of_kind(SpanKind::Client)[..] else { panic!("{:?}", collector.spans()) };
    assert_eq!((asked.parent_span_id.len(), text(asked, "seawall.own").as_str()), (8, ""));
    assert_eq!((refilled.parent_span_id.len(), text(refilled, "seawall.own").as_str()), (0, "true"));
    assert_ne!(refilled.trace_id, asked.trace_id);
    let told = origin.last("/post").field("traceparent").expect("a parent");
    assert_eq!(told, format!("00-{}-{}-01", hex(&refilled.trace_id), hex(&refilled.span_id)));
}

/// OTLP/HTTP: a POST of protobuf to the path for traces, with the fields that the operator names.
#[tokio::test]
async fn a_collector_gets_what_otlp_says() {
    let (origin, collector, site) = traced("headers = [\"Authorization: Bearer s3cret\", \"X-Scope-OrgID: 7\"]").await;
    origin.on(get("/*")).reply(ok("text"));
    for path in ["/a", "/b", "/c"] {
        site.get(path).await.status(200);
    }
    stop(site);
    let requests = collector.0.requests();
    assert_eq!(requests.len(), 1, "they left together");
    let request = &requests[0];
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/v1/traces"));
    for (name, value) in [("content-type", "application/x-protobuf"), ("authorization", "Bearer s3cret"), ("x-scope-orgid", "7")] {
        assert_eq!(request.field(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(collector.spans().len(), 6);
}

/// A span is at the collector a second after its request, although nobody stops Seawall.
#[tokio::test]
async fn spans_leave_by_themselves() {
    let (origin, collector, site) = traced("").await;
    origin.on(get("/post")).reply(ok("text"));
    site.get("/post").await.status(200);
    collector.0.until_count("/v1/traces", 1).await;
    assert_eq!(collector.spans().len(), 2);
    drop(site);
}

/// W3C Trace Context §4.2: a parent is continued; but here only if a trusted proxy says it, as anybody could.
#[tokio::test]
async fn a_trace_is_continued_for_a_trusted_proxy_alone() {
    for is_trusted in [false, true] {
        let trusted = if is_trusted { "[server]\ntrusted_proxies = [\"127.0.0.1/32\"]" } else { "" };
        let (origin, collector, site) = traced(trusted).await;
        origin.on(get("/post")).reply(ok("text"));
        let request = Req::get("/post").field("traceparent", traceparent("01")).field("tracestate", "rojo=1, congo=2");
        site.request(request).await.status(200);
        stop(site);
        let (server, client) = (&collector.of_kind(SpanKind::Server)[0], &collector.of_kind(SpanKind::Client)[0]);
        let told = origin.last("/post");
        let parent = told.field("traceparent").expect("a parent");
        assert_eq!(parent, format!("00-{}-{}-01", hex(&server.trace_id), hex(&client.span_id)));
        let (trace, parent, state) = (hex(&server.trace_id), hex(&server.parent_span_id), told.field("tracestate"));
        if is_trusted {
            assert_eq!((trace.as_str(), parent.as_str(), state.as_deref()), (TRACE, PARENT, Some("rojo=1,congo=2")));
            assert_eq!(client.trace_state, "rojo=1,congo=2");
        } else {
            assert_ne!(trace, TRACE);
            assert_eq!((parent.as_str(), state), ("", None));
        }
    }
}

/// W3C Trace Context §4.3: who begins a trace decides whether it is recorded; what cannot be read begins a new one.
#[tokio::test]
async fn a_proxy_decides_what_is_recorded() {
    let (origin, collector, site) = traced("sample = 0\n[server]\ntrusted_proxies = [\"127.0.0.1/32\"]").await;
    origin.on(get("/*")).reply(ok("text"));
    for (path, parent) in [
        ("/recorded", Some(traceparent("01"))),
        ("/not-recorded", Some(traceparent("00"))),
        ("/malformed", Some(traceparent("01").to_uppercase())),
        ("/none", None),
    ] {
        let request = parent.map_or_else(|| Req::get(path), |parent| Req::get(path).field("traceparent", parent));
        site.request(request).await.status(200);
    }
    stop(site);
    let paths: Vec<String> = collector.of_kind(SpanKind::Server).iter().map(|span| text(span, "url.path")).collect();
    assert_eq!(paths, ["/recorded"]);
    assert_eq!(collector.of_kind(SpanKind::Client).len(), 1);
    // The others' traces go on all the same.
    let told = |path: &str| origin.last(path).field("traceparent").expect("a parent");
    assert!(told("/not-recorded").starts_with(&format!("00-{TRACE}-")) && told("/not-recorded").ends_with("-00"));
    assert!(!told("/malformed").contains(TRACE) && told("/malformed").ends_with("-00"));
    assert!(told("/none").ends_with("-00"));
}

/// Without tracing, a trace is nobody's business here: what a client says goes on to the origin as it came (W3C Trace Context §4.1).
#[tokio::test]
async fn without_tracing_a_trace_passes_as_it_came() {
    let (origin, site) = site_with("").await;
    origin.on(get("/post")).reply(ok("text"));
    site.request(Req::get("/post").field("traceparent", traceparent("01")).field("tracestate", "a=1")).await.status(200);
    let told = origin.last("/post");
    assert_eq!((told.field("traceparent"), told.field("tracestate").as_deref()), (Some(traceparent("01")), Some("a=1")));
    origin.on(get("/other")).reply(ok("text"));
    site.get("/other").await.status(200);
    assert_eq!(origin.last("/other").field("traceparent"), None);
}

/// Hits are nearly everything, so they are traced only if somebody asks for it; then also those whose heads come again and again.
#[tokio::test]
async fn plain_hits_are_traced_only_if_asked() {
    for (toml, expected) in [("", vec!["miss"]), ("hits = true", vec!["hit", "hit", "hit", "hit", "miss"])] {
        let (origin, collector, site) = traced(toml).await;
        origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=10"));
        let mut client = site.client().await;
        for _ in 0..5 {
            client.get("/post").await.status(200);
        }
        stop(site);
        let spans = collector.of_kind(SpanKind::Server);
        let mut outcomes: Vec<String> = spans.iter().map(|span| text(span, "seawall.cache")).collect();
        // A span is told of when its answer has ended, which may be after the next request.
        outcomes.sort_unstable();
        assert_eq!(outcomes, expected);
        let mut traces: Vec<&[u8]> = spans.iter().map(|span| &span.trace_id[..]).collect();
        traces.sort_unstable();
        traces.dedup();
        assert_eq!(traces.len(), expected.len(), "each has a trace of its own");
        assert_eq!(collector.of_kind(SpanKind::Client).len(), 1);
    }
}

/// A reload changes what is traced for the very next request, also for heads that are known already.
#[tokio::test]
async fn a_reload_turns_tracing_on_and_off() {
    let (origin, mut site) = site_with("").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=100"));
    let (one, other) = (Collector::start(), Collector::start());
    let source = format!("source = \"{}\"\n", origin.url());
    let mut client = site.client().await;
    for (toml, spans) in [(String::new(), [0, 0]), (one.settings(), [1, 0]), (other.settings(), [1, 1]), (String::new(), [1, 1])] {
        let toml = if toml.is_empty() { toml } else { toml + "hits = true\n" };
        site.reload(&format!("{source}{toml}")).expect("reloaded");
        site.has_read_all().await;
        client.get("/post").await.status(200);
        site.has_read_all().await;
        // The collector before has got what was for it when a reload has ended.
        site.reload(&source).expect("reloaded");
        let of_page = |collector: &Collector| {
            let spans = collector.of_kind(SpanKind::Server);
            spans.iter().filter(|span| text(span, "url.path") == "/post").count()
        };
        assert_eq!([of_page(&one), of_page(&other)], spans);
    }
}

/// RFC 3875 §4.1.18: PHP is told as any origin is, in variables.
#[tokio::test]
async fn php_is_told_of_trace_and_id() {
    let (server, collector) = (FastCgiServer::start(), Collector::start());
    let site = Site::start_with(|folder| {
        fs::create_dir(folder.join("www")).expect("a folder");
        fs::write(folder.join("www/index.php"), "<?php").expect("a file");
        format!("source = \"www\"\n[php]\nserver = \"unix:{}\"\n{}", server.socket().display(), collector.settings())
    });
    let mut client = site.client().await;
    // In the other spelling it would be the same variable.
    client.send(Req::get("/").field("x_request_id", "evil").field("traceparent", traceparent("01"))).await;
    let mut peer = server.accept().await;
    let heard = peer.request().await;
    peer.answer("Content-Type: text/html\r\n\r\nhello").await;
    let id = client.read_answer().await.status(200).value("x-request-id").expect("an id");
    drop(peer);
    stop(site);
    let (of_request, of_php) = (&collector.of_kind(SpanKind::Server)[0], &collector.of_kind(SpanKind::Client)[0]);
    assert_eq!(heard.param("HTTP_TRACEPARENT"), format!("00-{}-{}-01", hex(&of_request.trace_id), hex(&of_php.span_id)));
    assert_eq!(heard.param("HTTP_X_REQUEST_ID"), id);
    assert_eq!(text(of_php, "network.protocol.name"), "fastcgi");
    assert_eq!(text(of_php, "server.address"), server.socket().display().to_string());
}

/// RFC 9111 §4: one fetch for a crowd. That each of them has ids of its own does not tell them apart.
#[tokio::test]
async fn a_crowd_has_one_fetch_and_everybody_a_span() {
    let (origin, collector, site) = traced("").await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(status(500).field("cache-control", "no-store").gate(&gate));
    let (mut leader, mut follower) = (site.client().await, site.client().await);
    leader.send(Req::get("/post")).await;
    gate.arrived().await;
    follower.send(Req::get("/post")).await;
    site.has_read_all().await;
    gate.open();
    leader.read_answer().await.status(500);
    follower.read_answer().await.status(500);
    assert_eq!(origin.count("/post"), 1);
    stop(site);
    let spans = collector.of_kind(SpanKind::Server);
    let pages: Vec<&Span> = spans.iter().filter(|span| text(span, "url.path") == "/post").collect();
    let mut collapsed: Vec<String> = pages.iter().map(|span| text(span, "seawall.collapsed")).collect();
    collapsed.sort();
    assert_eq!(collapsed, ["", "true"]);
    assert!(pages.iter().all(|span| span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error)));
    assert!(pages.iter().all(|span| text(span, "error.type") == "500"));
    assert_eq!(collector.of_kind(SpanKind::Client).len(), 1);
}

/// Semantic conventions, "error.type": what failed, by a name of which there are few.
#[tokio::test]
async fn a_failure_of_the_origin_is_in_the_trace() {
    let (origin, collector, site) = traced("").await;
    origin.kill();
    site.get("/post").await.status(502);
    stop(site);
    let (server, client) = (&collector.of_kind(SpanKind::Server)[0], &collector.of_kind(SpanKind::Client)[0]);
    assert_eq!((text(server, "error.type"), text(server, "seawall.rule")), ("502".to_owned(), "connection_refused".to_owned()));
    assert_eq!((text(client, "error.type"), text(client, "http.response.status_code")), ("connection_refused".to_owned(), String::new()));
    for span in [server, client] {
        assert_eq!(span.status.as_ref().map(|status| status.code()), Some(StatusCode::Error));
    }
}

/// The client that gave up is the one whose trace somebody looks for.
#[tokio::test]
async fn a_client_that_leaves_has_its_span_and_its_line() {
    let (origin, collector, site) = traced("[log]\naccess = \"./access.log\"\nformat = \"json\"").await;
    let gate = Gate::new();
    origin.on(post("/slow")).reply(ok("text").gate(&gate));
    let mut client = site.client().await;
    client.send(Req::post("/slow").body("a=b")).await;
    gate.arrived().await;
    client.reset();
    origin.until_connections_open(0).await;
    let folder = stop(site);
    let (server, asked) = (&collector.of_kind(SpanKind::Server)[0], &collector.of_kind(SpanKind::Client)[0]);
    assert_eq!((text(server, "http.response.status_code"), text(server, "error.type")), ("499".to_owned(), "incomplete".to_owned()));
    assert_eq!(text(asked, "error.type"), "cancelled");
    assert_eq!((&asked.trace_id, &asked.parent_span_id), (&server.trace_id, &server.span_id));
    let log = fs::read_to_string(folder.path().join("access.log")).expect("a log");
    let line: serde_json::Value = serde_json::from_str(log.lines().next().expect("a line")).expect("JSON");
    assert_eq!(line["status"], 499);
    assert_eq!(line["trace_id"], hex(&server.trace_id));
    assert_eq!(line["request_id"], text(server, "seawall.request_id"));
}

/// OTLP/HTTP, "Failures": 429, 502, 503 and 504 mean later, and the collector says when; everything else means no.
#[tokio::test]
async fn a_collector_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    for (first, attempts, expected) in [
        (status(503).field("retry-after", "0"), 2, [2.0, 0.0, 0.0, 0.0]),
        (status(429).field("retry-after", "0"), 2, [2.0, 0.0, 0.0, 0.0]),
        (status(400), 1, [0.0, 0.0, 2.0, 0.0]),
        (status(401), 1, [0.0, 0.0, 2.0, 0.0]),
        (status(308).field("location", "/elsewhere"), 1, [0.0, 0.0, 2.0, 0.0]),
        // It will not be there again in time.
        (status(503).field("retry-after", "3600"), 1, [0.0, 0.0, 0.0, 2.0]),
    ] {
        let (origin, collector, site) = traced("").await;
        origin.on(get("/post")).reply(ok("text"));
        collector.0.on(post("/v1/traces")).once().reply(first);
        site.get("/post").await.status(200);
        until_counted(&site, expected).await;
        assert_eq!(collector.0.count("/v1/traces"), attempts, "{expected:?}");
        drop(site);
    }
}

/// OTLP/HTTP, "Partial Success": what was refused is counted, and nothing is sent again.
#[tokio::test]
async fn a_collector_may_take_a_part() {
    let (origin, collector, site) = traced("").await;
    origin.on(get("/post")).reply(ok("text"));
    let partial = ExportTracePartialSuccess { rejected_spans: 1, error_message: "too long".to_owned() };
    collector.answers(ok(ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec()));
    site.get("/post").await.status(200);
    until_counted(&site, [1.0, 0.0, 1.0, 0.0]).await;
    assert_eq!(collector.0.count("/v1/traces"), 1);
    drop(site);
}

/// At most five attempts; a collector that says "later" for ever loses the batch, and the next batch has its turn.
#[tokio::test]
async fn a_batch_is_given_up_in_the_end() {
    let (origin, collector, site) = traced("").await;
    origin.on(get("/*")).reply(ok("text"));
    collector.0.on(post("/v1/traces")).times(5).reply(status(503).field("retry-after", "0"));
    site.get("/one").await.status(200);
    until_counted(&site, [0.0, 0.0, 0.0, 2.0]).await;
    site.get("/other").await.status(200);
    until_counted(&site, [2.0, 0.0, 0.0, 2.0]).await;
    assert_eq!(collector.0.count("/v1/traces"), 6);
    drop(site);
}

/// A collector that stalls or is gone: 2,048 spans wait, the others are dropped and counted, and every request is answered as ever.
#[tokio::test]
async fn a_collector_that_stalls_or_is_gone_delays_nobody() {
    for is_gone in [false, true] {
        let (origin, collector, site) = traced("").await;
        origin.on(get("/*")).reply(ok("text"));
        if is_gone {
            collector.0.kill()
        } else {
            collector.0.accept_but_never_answer()
        }
        let mut client = site.client().await;
        // Two spans each.
        for number in 0..1_100 {
            client.get(&format!("/{number}")).await.status(200);
        }
        site.has_read_all().await;
        let [sent, full, refused, lost] = counted(&site).await;
        assert_eq!((sent, refused, lost), (0.0, 0.0, 0.0));
        assert!(full >= 2_200.0 - 2_048.0, "{full}");
        // It does not hold up the end for longer than two seconds either.
        let began = Instant::now();
        stop(site);
        assert!(began.elapsed() < secs(2) + millis(2_500), "{:?}", began.elapsed());
    }
}

/// What waits when Seawall stops is sent before it ends; whole batches one after the other.
#[tokio::test]
async fn a_stop_sends_what_waits() {
    let (origin, collector, site) = traced("").await;
    origin.on(get("/*")).reply(ok("text"));
    let gate = Gate::new();
    collector.0.on(post("/v1/traces")).once().reply(taken().gate(&gate));
    let mut client = site.client().await;
    for number in 0..600 {
        client.get(&format!("/{number}")).await.status(200);
    }
    gate.arrived().await;
    gate.open();
    stop(site);
    assert_eq!(collector.spans().len(), 1_200);
    let sizes: Vec<usize> = collector.requests().iter().map(|request| request.resource_spans[0].scope_spans[0].spans.len()).collect();
    assert!(sizes.iter().all(|size| *size <= 512), "{sizes:?}");
}

/// The id of a request is the same for its client, its origin and its line in the log, and nobody invents it.
#[tokio::test]
async fn a_request_has_one_id_everywhere() {
    let (origin, site) = site_with("[log]\naccess = \"./access.log\"\nformat = \"json\"").await;
    origin.on(get("/*")).reply(ok("text"));
    let mut ids = Vec::new();
    for invented in ["11111111111111111111111111111111", "\"><script>"] {
        let answer = site.request(Req::get("/post").field("x-request-id", invented)).await.status(200);
        let id = answer.value("x-request-id").expect("an id");
        assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) && id != invented, "{id}");
        assert_eq!(origin.last("/post").field("x-request-id").as_deref(), Some(id.as_str()));
        ids.push(id);
    }
    assert_ne!(ids[0], ids[1]);
    let folder = stop(site);
    let log = fs::read_to_string(folder.path().join("access.log")).expect("a log");
    let logged: Vec<String> = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["request_id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(logged, ids);
}

/// Who sees a request in the list of the last ones finds its trace by it.
#[tokio::test]
async fn the_last_requests_have_both_ids() {
    let (origin, _collector, site) = traced("").await;
    origin.on(get("/post")).reply(ok("text"));
    let id = site.get("/post").await.status(200).value("x-request-id").expect("an id");
    site.has_read_all().await;
    let recent = site.server.console().recent(0, None, 4_096).expect("no expression").requests;
    let line = recent.iter().find(|line| line.path == "/post").expect("a line");
    let told = origin.last("/post").field("traceparent").expect("a parent");
    assert_eq!((line.id.as_str(), line.trace.as_str()), (id.as_str(), told.split('-').nth(1).expect("a trace")));
}

/// A trusted proxy may have named the request already, in one of two forms.
#[tokio::test]
async fn the_id_of_a_trusted_proxy_is_kept() {
    let (origin, site) = site_with("[server]\ntrusted_proxies = [\"127.0.0.1/32\"]").await;
    origin.on(get("/post")).reply(ok("text"));
    for id in ["0123456789abcdef0123456789abcdef", "01234567-89ab-cdef-0123-456789abcdef"] {
        site.request(Req::get("/post").field("x-request-id", id)).await.status(200).field("x-request-id", id);
        assert_eq!(origin.last("/post").field("x-request-id").as_deref(), Some(id));
    }
    let other = site.request(Req::get("/post").field("x-request-id", "one; two")).await.status(200).value("x-request-id").expect("an id");
    assert_eq!(other.len(), 32);
}

/// A stored response is for all, and the id of the request that brought it is not: a hit has none, whatever else the origin has said.
#[tokio::test]
async fn the_id_of_one_request_is_stored_for_nobody() {
    let (origin, site) = site_with("").await;
    origin.on(get("/post")).reply_with(|seen| {
        let id = seen.field("x-request-id").unwrap_or_default();
        ok("text").field("cache-control", "max-age=10").field("x-request-id", id)
    });
    let first = site.get("/post").await.status(200).value("x-request-id").expect("an id");
    site.get("/post").await.cache_status("hit").no_field("x-request-id");
    // Who is answered the long way has an id of its own.
    let third = site.request(Req::get("/post").field("range", "bytes=0-1")).await.status(206).value("x-request-id").expect("an id");
    assert_ne!(first, third);
}

/// `Vary` on what only one request has would make variants without end; the origin is told ids that are not part of the request.
#[tokio::test]
async fn ids_make_no_variants() {
    let (origin, collector, site) = traced("").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=10").field("vary", "traceparent, x-request-id"));
    site.request(Req::get("/post").field("traceparent", traceparent("01")).field("x-request-id", "a")).await.status(200);
    site.get("/post").await.cache_status("hit");
    site.request(Req::get("/post").field("traceparent", traceparent("00")).field("x-request-id", "b")).await.cache_status("hit");
    assert_eq!(origin.count("/post"), 1);
    drop((site, collector));
}
