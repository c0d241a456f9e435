//! What `seawall check --acme` finds before an order would.

use std::{net::SocketAddr, sync::Arc};

use acme::{Checker, Method, Severity};
use bytes::Bytes;
use http::Response;
use semantics::Timestamp;

use crate::stage::{DAY, Stage, now};

const NAME: &str = "blog.example.org";

/// All that is wrong with `NAME`, or doubtful.
async fn found(stage: &Stage, at: Timestamp) -> Vec<(Severity, String)> {
    let plain: SocketAddr = "127.0.0.1:80".parse().expect("an address");
    let checker = Checker::new(stage.options.clone(), Arc::new(stage.between.clone()), vec![plain], Vec::new());
    let checker = checker.with_name_servers(vec![stage.pebble.dns()]);
    let all = checker.check(&[NAME.to_owned()], at).await.into_iter().flat_map(|(_, findings)| findings);
    all.filter(|finding| finding.severity != Severity::Fine).map(|finding| (finding.severity, finding.text)).collect()
}

/// A stage where the ports are somebody else's business, and who answers at the name is told.
async fn stage(answer: &'static str) -> Stage {
    let mut stage = Stage::new().await;
    stage.options.methods = Vec::new();
    stage.between.elsewhere(move |request| match (request.uri().host(), request.uri().path()) {
        (Some(NAME), "/.well-known/acme-challenge/seawall") => Some(Response::new(Bytes::from_static(answer.as_bytes()))),
        _ => None,
    });
    stage
}

#[track_caller]
fn assert_only(found: &[(Severity, String)], severity: Severity, text: &str) {
    assert!(matches!(found, [(found, said)] if *found == severity && said.contains(text)), "{text}: {found:?}");
}

#[tokio::test]
async fn all_is_well() {
    assert_eq!(found(&stage("seawall").await, now()).await, []);
}

#[tokio::test]
async fn a_name_without_an_address() {
    let stage = stage("seawall").await;
    stage.pebble.tell_dns("/set-default-ipv4", r#"{"ip": ""}"#);
    assert_only(&found(&stage, now()).await, Severity::Wrong, "neither an A nor an AAAA record");
}

/// Authorities try IPv6 first; the machine was moved, and its AAAA record was forgotten.
#[tokio::test]
async fn a_forgotten_aaaa_record() {
    let stage = stage("seawall").await;
    stage.pebble.tell_dns("/add-aaaa", r#"{"host": "blog.example.org.", "addresses": ["2001:db8::1"]}"#);
    assert_only(&found(&stage, now()).await, Severity::Wrong, "AAAA record (2001:db8::1) leads elsewhere");
}

#[tokio::test]
async fn an_address_of_another_machine() {
    let stage = stage("seawall").await;
    stage.pebble.tell_dns("/add-a", r#"{"host": "blog.example.org.", "addresses": ["192.0.2.1"]}"#);
    assert_only(&found(&stage, now()).await, Severity::Doubt, "no address of this machine");
}

#[tokio::test]
async fn somebody_else_answers() {
    assert_only(&found(&stage("It works!").await, now()).await, Severity::Wrong, "answered by somebody else");
}

/// RFC 8659: also one of a name above it.
#[tokio::test]
async fn a_caa_record_that_names_another_authority() {
    let stage = stage("seawall").await;
    stage.between.elsewhere(|request| {
        let body = match request.uri().path() {
            "/dir" => r#"{"meta": {"caaIdentities": ["authority.example"]}}"#,
            _ => "seawall",
        };
        Some(Response::new(Bytes::from_static(body.as_bytes())))
    });
    assert_eq!(found(&stage, now()).await, []);
    let policies = |value: &str| format!(r#"{{"host": "example.org.", "policies": [{{"tag": "issue", "value": "{value}"}}]}}"#);
    stage.pebble.tell_dns("/add-caa", &policies("another.example"));
    assert_only(&found(&stage, now()).await, Severity::Wrong, "the CAA record of example.org forbids this authority");
    stage.pebble.tell_dns("/add-caa", &policies("authority.example"));
    assert_eq!(found(&stage, now()).await, []);
}

#[tokio::test]
async fn a_clock_that_is_wrong() {
    let stage = stage("seawall").await;
    assert_only(&found(&stage, now() + DAY).await, Severity::Wrong, "the clock of this machine is 14");
}

#[tokio::test]
async fn an_authority_that_is_not_there_or_wants_more() {
    let mut unbound = stage("seawall").await;
    unbound.options.profile = Some("shortlived".to_owned());
    unbound.options.methods = vec![Method::Dns01];
    assert_only(&found(&unbound, now()).await, Severity::Wrong, "no profile \"shortlived\"");
    unbound.options.profile = None;
    unbound.options.directory.push_str("ectory");
    assert_only(&found(&unbound, now()).await, Severity::Wrong, "no ACME directory");
    unbound.pebble.stop();
    assert_only(&found(&unbound, now()).await, Severity::Wrong, "the authority cannot be reached");
}
