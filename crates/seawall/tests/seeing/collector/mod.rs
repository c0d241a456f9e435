//! A real OpenTelemetry Collector, which its own builder has built: what it understands of Seawall's spans, and what becomes of requests when it stalls or
//! is gone. It sends on what it has understood to the test, which reads that with the messages that the OpenTelemetry project generates.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, span::SpanKind},
};
use prost::Message;
use rustix::process::{Pid, Signal, kill_process};
use testkit::{Client, Origin, Req, exposition, free_port, get, ok, patiently, post};

/// Returns where `bring-up` builds it.
fn program() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").expect("a home"));
    let cache = || std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
    std::env::var_os("SEAWALL_COLLECTOR_DIR").map_or_else(|| cache().join("seawall-collector"), PathBuf::from).join("collector")
}

/// A program that is ended with the test.
struct Running(Child);

impl Running {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).expect("a process id")).expect("a process id");
        kill_process(pid, signal).expect("a signal");
    }

    fn end(mut self) {
        self.signal(Signal::TERM);
        self.0.wait().expect("an end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program that says nothing, and waits until it listens on all of these ports.
async fn start(mut command: Command, ports: &[u16]) -> Running {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process");
    for port in ports {
        patiently("for a program to listen", async { while Client::is_refused(("127.0.0.1", *port)).await {} }).await;
    }
    Running(child)
}

/// Starts the collector, which listens on `port` and sends on to `sink`.
async fn collector(folder: &Path, port: u16, sink: &Origin) -> Running {
    let config = folder.join("collector.yaml");
    let text = format!(
        "receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: 127.0.0.1:{port}\n\
         exporters:\n  otlp_http:\n    endpoint: {}\n    compression: none\n\
         service:\n  telemetry:\n    metrics:\n      level: none\n\
         \x20 pipelines:\n    traces:\n      receivers: [otlp]\n      exporters: [otlp_http]\n",
        sink.url()
    );
    fs::write(&config, text).expect("written");
    let mut command = Command::new(program());
    command.arg("--config").arg(format!("file:{}", config.display()));
    start(command, &[port]).await
}

/// Starts Seawall before an origin, with its spans on their way to a collector; and the ports of its visitors and of its operator.
async fn seawall(folder: &Path, origin: &Origin, collector: u16) -> (Running, u16, u16) {
    let (port, admin) = (free_port(), free_port());
    let config = folder.join("seawall.toml");
    let text = format!(
        "source = \"{}\"\nkind = \"generic\"\n[server]\nlisten = [\"127.0.0.1:{port}\"]\nadmin = \"127.0.0.1:{admin}\"\nworkers = 1\n\
         admin_token_file = \"{}\"\ntrusted_proxies = [\"127.0.0.1/32\"]\n[cache]\ndisk = 0\n[log]\naccess = \"off\"\n\
         [traces]\nendpoint = \"http://127.0.0.1:{collector}\"\nservice_name = \"seawall\"\n",
        origin.url(),
        folder.join("token").display()
    );
    fs::write(&config, text).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_seawall"));
    command.arg("serve").arg("--config").arg(config).env_clear().env("HOME", folder);
    (start(command, &[port, admin]).await, port, admin)
}

async fn client(port: u16) -> Client {
    Client::connect(("127.0.0.1", port)).await.with_host("blog.example")
}

/// Returns the spans that were dropped, or given up, until now.
async fn missed(admin: u16) -> f64 {
    let mut client = Client::connect(("127.0.0.1", admin)).await.with_host("127.0.0.1");
    let families = exposition::parse(&client.get("/metrics").await.status(200).text());
    let spans = families.iter().find(|family| family.name == "seawall_trace_spans_total").expect("the metric");
    ["full", "lost"].iter().map(|result| spans.value(&[("result", result)])).sum()
}

/// Returns the spans that the collector has sent on, each with the name of its service.
fn understood(sink: &Origin) -> Vec<(String, Span)> {
    let requests = sink.requests();
    let of_services =
        requests.iter().flat_map(|request| ExportTraceServiceRequest::decode(&request.body[..]).expect("a message").resource_spans);
    let mut spans = Vec::new();
    for of in of_services {
        let attributes = of.resource.as_ref().map_or(&[][..], |resource| &resource.attributes[..]);
        let name = attributes.iter().find(|attribute| attribute.key == "service.name").and_then(|attribute| attribute.value.clone()?.value);
        let Some(Value::StringValue(name)) = name else { panic!("a service without a name") };
        spans.extend(of.scope_spans.into_iter().flat_map(|of| of.spans).map(|span| (name.clone(), span)));
    }
    spans
}

/// Sends one span of another service to the collector, as that service would.
async fn tell(collector: u16, service: &str, span: Span) {
    let name = AnyValue { value: Some(Value::StringValue(service.to_owned())) };
    let resource = Resource {
        attributes: vec![KeyValue { key: "service.name".to_owned(), value: Some(name), ..KeyValue::default() }],
        ..Resource::default()
    };
    let spans = ResourceSpans {
        resource: Some(resource),
        scope_spans: vec![ScopeSpans { spans: vec![span], ..ScopeSpans::default() }],
        ..ResourceSpans::default()
    };
    let message = ExportTraceServiceRequest { resource_spans: vec![spans] }.encode_to_vec();
    let request = Req::post("/v1/traces").field("content-type", "application/x-protobuf").body(message);
    client(collector).await.request(request).await.status(200);
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits")).collect()
}

#[tokio::test]
async fn client_seawall_and_origin_are_in_one_trace() {
    if !crate::long() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (origin, sink, port) = (Origin::start(), Origin::start(), free_port());
    sink.on(post("/v1/traces")).reply(ok(""));
    // Seawall looks at its origin when it starts.
    origin.on(get("/*")).reply(ok("text"));
    let collector = collector(folder.path(), port, &sink).await;
    let (seawall, site, _) = seawall(folder.path(), &origin, port).await;
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let request = Req::get("/post").field("traceparent", format!("00-{trace}-{span}-01"));
    client(site).await.request(request).await.status(200);
    let of_client =
        Span { trace_id: bytes(trace), span_id: bytes(span), kind: SpanKind::Client.into(), name: "GET".to_owned(), ..Span::default() };
    tell(port, "client", of_client).await;
    let told = origin.last("/post").field("traceparent").expect("a parent");
    let [_, told_trace, parent, _] = told.split('-').collect::<Vec<_>>()[..] else { panic!("{told}") };
    let of_origin = Span {
        trace_id: bytes(told_trace),
        parent_span_id: bytes(parent),
        span_id: bytes("00000000000000aa"),
        kind: SpanKind::Server.into(),
        name: "GET /post".to_owned(),
        ..Span::default()
    };
    tell(port, "origin", of_origin).await;
    // Both send what still waits before they end.
    seawall.end();
    collector.end();
    let spans = understood(&sink);
    assert!(spans.iter().all(|(_, of)| of.trace_id == bytes(trace)), "{spans:#?}");
    let mut chain = Vec::new();
    let mut parent: Vec<u8> = Vec::new();
    while let Some((service, of)) = spans.iter().find(|(_, of)| of.parent_span_id == parent) {
        chain.push((service.as_str(), of.kind()));
        parent.clone_from(&of.span_id);
    }
    let expected =
        [("client", SpanKind::Client), ("seawall", SpanKind::Server), ("seawall", SpanKind::Client), ("origin", SpanKind::Server)];
    assert_eq!((&chain[..], spans.len()), (&expected[..], 4));
}

/// Asks for so many pages, one after the other. Returns the time that half of the requests took at most, and the longest.
async fn read(site: u16, name: &str, count: usize) -> (Duration, Duration) {
    let mut client = client(site).await;
    let mut times = Vec::with_capacity(count);
    for number in 0..count {
        let began = Instant::now();
        client.get(&format!("/{name}/{number}")).await.status(200);
        times.push(began.elapsed());
    }
    times.sort_unstable();
    (times[count / 2], times[count - 1])
}

#[tokio::test]
async fn a_collector_that_stalls_or_is_gone_costs_spans_and_no_request_its_time() {
    if !crate::long() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (origin, sink, port) = (Origin::start(), Origin::start(), free_port());
    sink.on(post("/v1/traces")).reply(ok(""));
    origin.on(get("/*")).reply(ok("text"));
    let listening = collector(folder.path(), port, &sink).await;
    let (seawall, site, admin) = seawall(folder.path(), &origin, port).await;
    let (usual, _) = read(site, "usual", 1_500).await;
    patiently("for all spans to arrive", async {
        while understood(&sink).len() < 3_000 {
            tokio::task::yield_now().await
        }
    })
    .await;
    assert!(missed(admin).await < 1.0);

    let slower = |(half, longest): (Duration, Duration)| half > usual * 3 + Duration::from_millis(1) || longest > Duration::from_secs(1);
    listening.signal(Signal::STOP);
    let stalled = read(site, "stalled", 2_000).await;
    assert!(!slower(stalled), "{stalled:?} and not {usual:?}");
    let dropped = missed(admin).await;
    assert!(dropped >= 4_000.0 - 2_048.0 - 2.0, "{dropped}");
    drop(listening);
    let gone = read(site, "gone", 2_000).await;
    assert!(!slower(gone), "{gone:?} and not {usual:?}");
    assert!(missed(admin).await > dropped);

    let listening = collector(folder.path(), port, &sink).await;
    let arrived = understood(&sink).len();
    patiently("for spans to arrive again", async {
        while understood(&sink).len() <= arrived {
            read(site, "again", 1).await;
        }
    })
    .await;
    seawall.end();
    listening.end();
}
