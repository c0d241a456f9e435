//! Servers elsewhere are refused, and not one packet is sent to them: seen from outside the program, by strace.

use std::{fs, process::Command};

use super::tool::{bare, program, seawall};

/// Returns the system calls of a run that could send something, as strace writes them; and what it said, and its code.
fn watched(arguments: &[&str]) -> (Vec<String>, String, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let mut command = Command::new(program("strace"));
    bare(&mut command)
        .args(["-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o"])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_seawall"))
        .args(["bench", "--quiet"])
        .args(arguments);
    let output = command.output().expect("strace");
    let calls = fs::read_to_string(&trace).expect("strace writes").lines().map(str::to_owned).collect();
    (calls, String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

/// RFC 5737: addresses for documentation, which are nobody's. They are public as far as a program can tell.
#[test]
fn an_address_elsewhere_is_refused_without_a_packet() {
    for url in ["http://192.0.2.1/", "https://198.51.100.7:8443/", "http://[2001:db8::1]/"] {
        let (calls, said, code) = watched(&["-c", "1", "-n", "1", url]);
        let to_somebody: Vec<_> = calls.iter().filter(|call| call.contains("AF_INET")).collect();
        // Asking for a token is a packet, too. It is one that the owner of the server has put there to be asked for; a run is none without it.
        assert_eq!(to_somebody, Vec::<&String>::new(), "{url}");
        assert_ne!(code, Some(0), "{url}");
        assert!(said.contains("--i-own-this"), "it says what to do: {said}");
    }
}

/// A server here that sends on to a server elsewhere does not make the load follow.
#[test]
fn a_redirect_is_not_followed_elsewhere() {
    let origin = testkit::Origin::start();
    origin.on(testkit::any("/")).reply(testkit::status(302).field("location", "http://192.0.2.1/"));
    let url = format!("http://{}/", origin.addr());
    let (calls, _, _) = watched(&["-c", "1", "-n", "3", &url]);
    assert!(!calls.iter().any(|call| call.contains("192.0.2.1")), "{calls:#?}");
}

#[test]
fn this_machine_and_private_networks_need_no_permission() {
    for url in ["http://127.0.0.1:9/", "http://[::1]:9/", "http://localhost:9/"] {
        let output = seawall().args(["bench", "--quiet", "-c", "1", "-n", "1", url]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("--i-own-this"), "{url}: {said}");
    }
}
