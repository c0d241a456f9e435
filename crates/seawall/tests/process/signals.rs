//! Signals at any time: none is lost, and none ends what it should not.

use std::{io::Read, net::TcpListener, process::Stdio, thread};

use super::running::{Running, TestFolder, get};

/// An origin that is asked what it is during the start, and answers when the test says so.
struct Origin(TcpListener);

impl Origin {
    fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        (Self(listener), address)
    }
}

fn quiet(command: &mut std::process::Command) -> &mut std::process::Command {
    command.stdout(Stdio::null()).stderr(Stdio::null())
}

#[test]
fn a_reload_that_is_asked_for_during_the_start_is_done_after_it() {
    let place = TestFolder::new();
    let (origin, address) = Origin::start();
    let running = Running::spawn(quiet(&mut place.serve(&[&address])));
    let (asking, _) = origin.0.accept().expect("it looks at its origin");
    for _ in 0..3 {
        running.signal("HUP");
    }
    // The origin hangs up: it does not say what it is, and the start goes on.
    drop(asking);
    let first = running.told("READY=1");
    assert!(!first.contains("RELOADING"), "{first}");
    running.told("RELOADING=1");
    running.told("READY=1");
    assert_eq!(running.stop().code(), Some(0));
}

#[test]
fn a_stop_that_is_asked_for_during_the_start_ends_it_well() {
    for signal in ["TERM", "INT"] {
        let place = TestFolder::new();
        let (origin, address) = Origin::start();
        let running = Running::spawn(quiet(&mut place.serve(&[&address])));
        let (_asking, _) = origin.0.accept().expect("it looks at its origin");
        running.signal(signal);
        assert_eq!(running.wait().code(), Some(0), "{signal}");
        assert!(!place.socket().exists(), "nothing is left behind");
    }
}

#[test]
fn a_reload_as_soon_as_it_serves_ends_nothing() {
    for _ in 0..5 {
        let place = TestFolder::with_site();
        let running = Running::start(quiet(&mut place.serve(&["site"])));
        running.reload();
        assert!(get(&place, "/").contains("hello"));
        assert_eq!(running.stop().code(), Some(0));
    }
}

/// However many reloads wait, a stop is one.
#[test]
fn a_stop_is_not_lost_among_reloads() {
    let place = TestFolder::with_site();
    let running = Running::start(quiet(&mut place.serve(&["site"])));
    for _ in 0..20 {
        running.signal("HUP");
    }
    assert_eq!(running.stop().code(), Some(0));
}

/// The second Ctrl-C does not wait for requests under way.
#[test]
fn a_second_interrupt_ends_it_at_once() {
    let place = TestFolder::new();
    let (origin, address) = Origin::start();
    let running = Running::spawn(quiet(&mut place.serve(&[&address])));
    let origin = origin.0;
    let (asking, _) = origin.accept().expect("it looks at its origin");
    drop(asking);
    running.told("READY=1");
    let mut client = std::os::unix::net::UnixStream::connect(place.socket()).expect("connected");
    std::io::Write::write_all(&mut client, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
    let (_never_answered, _) = origin.accept().expect("the request comes through");
    running.signal("INT");
    running.told("STOPPING=1");
    running.signal("INT");
    assert_eq!(running.wait().code(), Some(130));
    let reading = thread::spawn(move || client.read_to_end(&mut Vec::new()));
    let _ = reading.join().expect("the client is let go");
}
