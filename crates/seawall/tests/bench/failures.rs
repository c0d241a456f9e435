//! Checks of status, content and field are counted exactly, and the other classes through the command, too.

use std::process::Command;

use judges::{Fault, Misbehaving, closed_port};

use super::tool::{bare, bench, said};

#[test]
fn what_is_not_expected_is_counted_once_each_time() {
    let server =
        Misbehaving::start(&[Fault::None, Fault::WrongBody, Fault::None, Fault::WrongField, Fault::Status(204), Fault::Status(503)]);
    let expectations = ["--expect-status", "200", "--expect-body", "right", "--expect-field", "X-Judge: right"];
    let told = bench(&[&["-c", "4", "-n", "120"], &expectations[..], &[&server.url()]].concat());
    let counts = server.counts();
    let expected = vec![
        ("body".to_owned(), counts[&Fault::WrongBody]),
        ("field".to_owned(), counts[&Fault::WrongField]),
        ("status".to_owned(), counts[&Fault::Status(204)] + counts[&Fault::Status(503)]),
    ];
    let mut errors = told.errors();
    errors.sort();
    assert_eq!((errors, told.count("requests")), (expected, 120), "{counts:?}");
}

/// Nobody wants to see a table of a thousand refused connections: a server that is not there is said before the run.
#[test]
fn a_server_that_nobody_runs_is_said_at_once() {
    let (_kept, address) = closed_port();
    let output = said(&["-c", "2", "-n", "10", &format!("http://{address}/")]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && complaint.contains(&address.to_string()) && complaint.contains("refuses connections"),
        "{complaint}"
    );
}

/// Without descriptors nothing works, and what fails first is chance: the message is about the limit.
#[test]
fn a_limit_of_descriptors_that_is_too_low_to_begin_is_named_with_what_to_do() {
    let server = Misbehaving::start(&[Fault::None]);
    let mut command = Command::new("sh");
    let words = ["-c", "ulimit -n 8 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_seawall"), "bench"];
    let output = bare(&mut command).args(words).args(["-n", "10", &server.url()]).output().expect("sh");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{complaint}");
    assert!(complaint.contains("only 8 open files") && complaint.contains("ulimit -n 1024"), "{complaint}");
}

/// Of fifty requests, ten are answered; the ten that were waited for in vain are part of the distribution, too.
#[test]
fn failures_of_every_class_that_a_connection_has_are_counted_through_the_command() {
    let server = Misbehaving::start(&[Fault::None, Fault::Reset, Fault::CloseWithin, Fault::Garbage, Fault::Silence]);
    let told = bench(&["-c", "5", "-n", "50", "--no-keepalive", "--timeout", "200ms", &server.url()]);
    let mut errors = told.errors();
    errors.sort();
    let expected = ["protocol", "reset", "timeout", "truncated"].map(|class| (class.to_owned(), 10));
    assert_eq!((errors, told.count("answered"), told.count("latency.count")), (expected.to_vec(), 10, 20));
}
