//! What `seawall check --acme` finds before an order would.

use std::{net::SocketAddr, sync::Arc};

use acme::{Answer, Checker, Method, Severity, Transport, TransportError};
use bytes::Bytes;
use http::{Request, Response};
use semantics::Timestamp;

use crate::stage::{Between, DAY, Stage, now};

const NAME: &str = "blog.example.org";

/// The server that answers at port 80 of an address; `None`: nothing does.
type AtPort80 = fn(&str) -> Option<&'static str>;

const SEAWALL: AtPort80 = |_| Some("seawall");

/// The network as seen from this machine.
struct World {
    between: Between,
    at_port_80: AtPort80,
}

impl Transport for World {
    fn send(&self, request: Request<Bytes>) -> Answer {
        if request.uri().path() != "/.well-known/acme-challenge/seawall" {
            return self.between.send(request);
        }
        assert_eq!((request.uri().port_u16(), request.headers()["host"].as_bytes()), (None, NAME.as_bytes()));
        let answer = (self.at_port_80)(request.uri().host().unwrap_or_default());
        let answer = answer.map(|answer| Response::new(Bytes::from_static(answer.as_bytes())));
        Box::pin(async move { answer.ok_or_else(|| TransportError("connection refused".to_owned())) })
    }
}

/// Returns the findings about `NAME` that are wrong or doubtful.
async fn found(stage: &Stage, at_port_80: AtPort80, at: Timestamp) -> Vec<(Severity, String)> {
    found_by(stage, at_port_80, at, vec![stage.pebble.dns()]).await
}

async fn found_by(stage: &Stage, at_port_80: AtPort80, at: Timestamp, name_servers: Vec<SocketAddr>) -> Vec<(Severity, String)> {
    let plain: SocketAddr = "127.0.0.1:80".parse().expect("an address");
    let world = World { between: stage.between.clone(), at_port_80 };
    let checker = Checker::new(stage.options.clone(), Arc::new(world), vec![plain], Vec::new()).with_name_servers(name_servers);
    let all = checker.check(&[NAME.to_owned()], at).await.into_iter().flat_map(|(_, findings)| findings);
    all.filter(|finding| finding.severity != Severity::Fine).map(|finding| (finding.severity, finding.text)).collect()
}

/// Creates a stage where no method needs a port, and where the name has one address: 127.0.0.1.
async fn stage() -> Stage {
    let mut stage = Stage::new().await;
    stage.options.methods = Vec::new();
    stage.pebble.tell_dns("/set-default-ipv6", r#"{"ip": ""}"#);
    stage
}

#[track_caller]
fn assert_only(found: &[(Severity, String)], severity: Severity, text: &str) {
    assert!(matches!(found, [(found, said)] if *found == severity && said.contains(text)), "{text}: {found:?}");
}

#[tokio::test]
async fn all_is_well() {
    assert_eq!(found(&stage().await, SEAWALL, now()).await, []);
}

#[tokio::test]
async fn a_name_without_an_address() {
    let stage = stage().await;
    stage.pebble.tell_dns("/set-default-ipv4", r#"{"ip": ""}"#);
    assert_only(&found(&stage, SEAWALL, now()).await, Severity::Wrong, "neither an A nor an AAAA record");
}

/// Authorities try IPv6 first; the machine was moved, and its AAAA record was forgotten. Each address is asked by itself.
#[tokio::test]
async fn a_forgotten_aaaa_record() {
    let stage = stage().await;
    stage.pebble.tell_dns("/add-aaaa", r#"{"host": "blog.example.org.", "addresses": ["2001:db8::1"]}"#);
    let old_machine: AtPort80 = |host| Some(if host == "[2001:db8::1]" { "It works!" } else { "seawall" });
    assert_only(&found(&stage, old_machine, now()).await, Severity::Wrong, "its AAAA record (2001:db8::1) leads elsewhere");
    // An authority may reach that address, or go on with the A record.
    let unreachable: AtPort80 = |host| (host != "[2001:db8::1]").then_some("seawall");
    assert_only(
        &found(&stage, unreachable, now()).await,
        Severity::Doubt,
        "its AAAA record (2001:db8::1) is not an address of this machine",
    );
}

/// Behind a router that forwards, the address is the router's; many do not let a machine reach itself by it.
#[tokio::test]
async fn an_address_of_another_machine() {
    let stage = stage().await;
    stage.pebble.tell_dns("/add-a", r#"{"host": "blog.example.org.", "addresses": ["192.0.2.1"]}"#);
    assert_only(&found(&stage, |_| None, now()).await, Severity::Doubt, "its A record (192.0.2.1) is not an address of this machine");
    assert_eq!(found(&stage, SEAWALL, now()).await, []);
}

#[tokio::test]
async fn nobody_answers_or_somebody_else_does() {
    let stage = stage().await;
    assert_only(&found(&stage, |_| None, now()).await, Severity::Wrong, "nobody answers at port 80");
    assert_only(&found(&stage, |_| Some("It works!"), now()).await, Severity::Wrong, "its A record (127.0.0.1) leads elsewhere");
}

/// The authority may be able to look up names that this machine cannot.
#[tokio::test]
async fn a_machine_without_a_name_server() {
    let found = found_by(&stage().await, SEAWALL, now(), Vec::new()).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|(severity, text)| *severity == Severity::Doubt && text.contains("looked up from here")), "{found:?}");
}

/// RFC 8659: a record of a name above it counts, too.
#[tokio::test]
async fn a_caa_record_that_names_another_authority() {
    let stage = stage().await;
    let policies = |value: &str| format!(r#"{{"host": "example.org.", "policies": [{{"tag": "issue", "value": "{value}"}}]}}"#);
    stage.pebble.tell_dns("/add-caa", &policies("another.example"));
    // Pebble does not say which name it goes by in CAA records.
    assert_only(&found(&stage, SEAWALL, now()).await, Severity::Doubt, "does not say by which name");
    stage.between.elsewhere(|request| {
        let directory = r#"{"meta": {"caaIdentities": ["authority.example", "also.example"]}}"#;
        (request.uri().path() == "/dir").then(|| Response::new(Bytes::from_static(directory.as_bytes())))
    });
    assert_only(&found(&stage, SEAWALL, now()).await, Severity::Wrong, "CAA 0 issue \"authority.example\"");
    assert_only(&found(&stage, SEAWALL, now()).await, Severity::Wrong, "the CAA record of example.org forbids this authority");
    stage.pebble.tell_dns("/add-caa", &policies("authority.example"));
    assert_eq!(found(&stage, SEAWALL, now()).await, []);
}

#[tokio::test]
async fn a_clock_that_is_wrong() {
    let stage = stage().await;
    assert_only(&found(&stage, SEAWALL, now() + DAY).await, Severity::Wrong, "the clock of this machine is 14");
}

#[tokio::test]
async fn an_authority_that_is_not_there_or_wants_more() {
    let mut unbound = stage().await;
    unbound.options.profile = Some("shortlived".to_owned());
    unbound.options.methods = vec![Method::Dns01];
    assert_only(&found(&unbound, SEAWALL, now()).await, Severity::Wrong, "no profile \"shortlived\"");
    unbound.options.profile = None;
    unbound.options.directory.push_str("ectory");
    assert_only(&found(&unbound, SEAWALL, now()).await, Severity::Wrong, "no ACME directory");
    unbound.pebble.stop();
    assert_only(&found(&unbound, SEAWALL, now()).await, Severity::Wrong, "the authority cannot be reached");
}

/// A local name needs no authority, so none need be there.
#[tokio::test]
async fn local_names_need_no_authority() {
    let stage = stage().await;
    stage.pebble.tell_dns("/set-default-ipv4", r#"{"ip": ""}"#);
    let mut options = stage.options.clone();
    options.directory.push_str("ectory");
    let checker = Checker::new(options, Arc::new(stage.between.clone()), Vec::new(), Vec::new());
    let found = checker.check(&["localhost".to_owned()], now()).await;
    assert!(found.iter().flat_map(|(_, findings)| findings).all(|finding| finding.severity == Severity::Fine), "{found:?}");
}
