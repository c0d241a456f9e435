//! A leak that was planted is found, each time that it occurs; where there is none, none is found.

use judges::Leaking;

use super::tool::bench;

#[test]
fn a_planted_leak_is_found_each_time_and_fails_the_run() {
    let server = Leaking::start(1000);
    let told = bench(&["-c", "20", "-n", "10000", "--leak-check", &server.url()]);
    let (requests, leaked) = server.counts();
    assert_eq!((requests, leaked), (10_000, 10));
    assert_eq!(told.errors(), [("leak".to_owned(), 10)]);
    assert_ne!(told.code, Some(0), "a leak fails the run");
}

#[test]
fn a_server_that_returns_to_each_its_own_leaks_nothing() {
    let server = Leaking::start(0);
    let told = bench(&["-c", "20", "-n", "2000", "--leak-check", &server.url()]);
    assert_eq!((told.errors(), told.code), (Vec::new(), Some(0)));
}
