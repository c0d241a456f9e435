//! Checks of status, content and field are counted exactly, and the other classes through the command, too.

use judges::{Fault, Misbehaving, closed_port};

use super::tool::bench;

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

#[test]
fn a_server_that_nobody_runs_is_refused_each_time_and_the_run_says_so() {
    let (_kept, address) = closed_port();
    let told = bench(&["-c", "2", "-n", "10", &format!("http://{address}/")]);
    assert_eq!(told.errors(), [("refused".to_owned(), 10)]);
    assert_eq!(told.count("answered"), 0);
}
