//! Every failure is counted once, in its class: against a server that fails by a list, and counts.

use std::{
    collections::BTreeMap,
    io::Read as _,
    net::{SocketAddr, TcpListener},
    thread,
    time::Duration,
};

use judges::{Fault, Misbehaving, closed_port};
use load::{Plan, Results, Stop, record::ErrorClass};

use super::{HTTP1, HTTP2, HTTP3, clients, plan, run};

/// Returns the class that a fault is told by.
fn class(fault: Fault) -> Option<ErrorClass> {
    match fault {
        Fault::None | Fault::WrongBody | Fault::WrongField => None,
        Fault::Reset | Fault::Close => Some(ErrorClass::Reset),
        Fault::ResetWithin | Fault::CloseWithin | Fault::CloseInHead | Fault::CloseInChunk => Some(ErrorClass::Truncated),
        Fault::Silence | Fault::SilenceWithin => Some(ErrorClass::Timeout),
        Fault::Garbage | Fault::TwoLengths | Fault::BadChunk => Some(ErrorClass::Protocol),
        Fault::Status(status) => (status >= 400).then_some(ErrorClass::Status),
    }
}

const ALL: [Fault; 16] = [
    Fault::None,
    Fault::Reset,
    Fault::None,
    Fault::Close,
    Fault::ResetWithin,
    Fault::None,
    Fault::CloseWithin,
    Fault::CloseInHead,
    Fault::CloseInChunk,
    Fault::Silence,
    Fault::SilenceWithin,
    Fault::Garbage,
    Fault::TwoLengths,
    Fault::BadChunk,
    Fault::Status(503),
    Fault::Status(404),
];

fn exactly(plan: Plan, requests: u64) -> Plan {
    Plan { stop: Stop { requests: Some(requests), after: None }, timeout: Duration::from_millis(200), ..plan }
}

fn counted(results: &Results) -> BTreeMap<ErrorClass, u64> {
    results.errors.iter().filter(|(_, count)| **count > 0).map(|(class, count)| (*class, *count)).collect()
}

fn expected(server: &Misbehaving) -> BTreeMap<ErrorClass, u64> {
    let mut expected = BTreeMap::new();
    for (fault, count) in server.counts() {
        if let Some(class) = class(fault) {
            *expected.entry(class).or_default() += count;
        }
    }
    expected
}

#[test]
fn each_fault_is_counted_once_in_its_class() {
    for (connections, no_keepalive) in [(1, false), (8, false), (8, true)] {
        let server = Misbehaving::start(&ALL);
        let mut plan = exactly(plan(&server.url(), HTTP1, clients(connections)), 96);
        plan.connections.no_keepalive = no_keepalive;
        let found = run(&plan);
        assert_eq!(counted(&found), expected(&server), "{connections} connections, no keep-alive: {no_keepalive}");
        assert_eq!(server.counts().values().sum::<u64>(), 96);
        let whole = |fault| server.counts().get(&fault).copied().unwrap_or_default();
        let statuses =
            [(200, Fault::None), (404, Fault::Status(404)), (503, Fault::Status(503))].map(|(status, fault)| (status, whole(fault)));
        assert_eq!(found.statuses, BTreeMap::from(statuses));
        assert_eq!((found.requests, found.answered), (96, statuses.iter().map(|(_, count)| count).sum()));
    }
}

#[test]
fn a_fault_alone_is_counted_as_often_as_it_occurs() {
    for fault in ALL {
        let server = Misbehaving::start(&[fault]);
        let found = run(&exactly(plan(&server.url(), HTTP1, clients(4)), 12));
        assert_eq!(counted(&found), expected(&server), "{fault:?}");
        assert_eq!(found.requests, 12, "{fault:?}");
    }
}

#[test]
fn a_port_where_nobody_listens_is_refused_each_time() {
    for (protocol, scheme) in [(HTTP1, "http"), (HTTP1, "https"), (HTTP2, "http")] {
        let (_kept, address) = closed_port();
        let found = run(&exactly(plan(&format!("{scheme}://{address}/"), protocol, clients(4)), 20));
        assert_eq!(counted(&found), BTreeMap::from([(ErrorClass::Refused, 20)]), "{protocol:?} {scheme}");
    }
}

/// QUIC has no handshake of TCP: what refuses is a message of ICMP, which may get lost. Then it is a timeout.
#[test]
fn nobody_at_a_port_of_udp_is_refused_or_a_timeout() {
    let (_kept, address) = closed_port();
    let found = run(&exactly(plan(&format!("https://{address}/"), HTTP3, clients(2)), 4));
    let by_class = counted(&found);
    let refused = by_class.get(&ErrorClass::Refused).copied().unwrap_or_default();
    let timeouts = by_class.get(&ErrorClass::Timeout).copied().unwrap_or_default();
    assert_eq!((refused + timeouts, by_class.values().sum::<u64>()), (4, 4), "{by_class:?}");
}

#[test]
fn a_spoilt_handshake_is_counted_as_tls() {
    for protocol in [HTTP1, HTTP2] {
        let server = Misbehaving::start_bad_tls();
        let mut plan = exactly(plan(&server.url(), protocol, clients(3)), 12);
        plan.connections.insecure = false;
        let found = run(&plan);
        assert_eq!(counted(&found), BTreeMap::from([(ErrorClass::Tls, 12)]), "{protocol:?}");
    }
}

/// Starts a server that resets each connection within the TLS handshake, as the system does for a process that is killed.
fn resets_handshakes() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            // The kernel sends a reset where bytes are left unread.
            let _ = stream.read(&mut [0; 1]);
        }
    });
    address
}

/// A server that was killed resets connections in any state. That is not a fault of TLS, and counts as it does without TLS.
#[test]
fn a_handshake_that_is_reset_is_counted_as_a_reset() {
    for protocol in [HTTP1, HTTP2] {
        let found = run(&exactly(plan(&format!("https://{}/", resets_handshakes()), protocol, clients(3)), 12));
        assert_eq!(counted(&found), BTreeMap::from([(ErrorClass::Reset, 12)]), "{protocol:?}");
    }
}

#[test]
fn a_name_that_leads_nowhere_is_counted_as_such() {
    // RFC 6761 §6.4: no server of names may know it.
    let found = load::run(&exactly(plan("http://nobody.invalid:80/", HTTP1, clients(1)), 5), &mut ());
    match found {
        Ok(found) => assert_eq!(counted(&found), BTreeMap::from([(ErrorClass::Resolve, 5)])),
        Err(why) => assert!(why.to_string().contains("nobody.invalid"), "{why}"),
    }
}

/// Who waits in vain for 200 ms is part of the distribution with 200 ms: leaving them out would make a server that answers nobody look fast.
#[test]
fn timeouts_stay_in_the_distribution() {
    let server = Misbehaving::start(&[Fault::None, Fault::Silence]);
    let found = run(&exactly(plan(&server.url(), HTTP1, clients(2)), 20));
    assert_eq!(found.latency.count, 20);
    assert!((200.0..300.0).contains(&found.latency.p75), "{:?}", found.latency);
}
