//! A start serves, or it says what is wrong and ends: there is nothing in between.

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::unix::net::UnixListener,
    process::{Command, Stdio},
};

use super::running::{Running, TestFolder, collect};

/// Starts, and returns what it says on its way out.
fn refused(command: &mut Command) -> String {
    let mut running = Running::spawn(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    let messages = collect(running.stderr());
    assert_eq!(running.wait().code(), Some(1));
    messages.join().expect("read")
}

#[test]
fn an_admin_address_that_is_taken_ends_the_start_every_time() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    for _ in 0..5 {
        let place = TestFolder::with_site();
        let messages = refused(&mut place.serve(&["site", "--admin", &address]));
        let taken = format!("cannot listen on {address}: another program listens there already");
        for said in [&taken, "the address of the admin API", "--admin names another one"] {
            assert!(messages.contains(said), "{said}: {messages}");
        }
        assert!(!place.socket().exists(), "nothing is left behind");
    }
}

/// Whatever is missing, late or early in the start.
#[test]
fn whatever_a_start_lacks_is_said_and_ends_it() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken_address = taken.local_addr().expect("an address").to_string();
    // Free for TCP, taken for UDP.
    let (free, _udp) = free_for_tcp_alone();
    let place = TestFolder::with_site();
    let made = rcgen::generate_simple_self_signed(vec!["site.example".to_owned()]).expect("a certificate");
    let pem = place.write("pair.pem", &(made.cert.pem() + &made.signing_key.serialize_pem()));
    let pem = pem.to_str().unwrap();
    let unix = place.path().join("log.sock");
    let _no_file = UnixListener::bind(&unix).expect("bound");
    let (open_token, acme) = (place.write("token", "short"), place.write("acme", "no folder"));
    let token = place.write(
        "token.toml",
        &format!(
            "source = \"site\"\n[server]\nlisten = [\"unix:{}\"]\nadmin = \"127.0.0.1:0\"\nadmin_token_file = \"{}\"\n",
            place.socket().display(),
            open_token.display()
        ),
    );
    let local = place.write("acme.toml", &format!("[server]\nlisten = [\"unix:{}\"]\nadmin = \"off\"\n[tls]\nlisten = [\"127.0.0.1:0\"]\n[acme]\ndir = \"{}\"\n[[site]]\nhosts = [\"localhost\"]\nsource = \"site\"\n", place.socket().display(), acme.display()));
    let cases: [(&[&str], &[&str]); 6] = [
        (&["site", "--listen", &taken_address], &[&taken_address, "another program listens there", "another address with --listen"]),
        (&["site", "--tls-cert", pem, "--tls-listen", "127.0.0.1:0", "--tls-listen", &taken_address], &[&taken_address]),
        (&["site", "--tls-cert", pem, "--http3", "--tls-listen", &free], &[&free, "UDP"]),
        (&["site", "--access-log", unix.to_str().unwrap()], &["cannot open the access log", "log.sock"]),
        (&["--config", token.to_str().unwrap()], &["token"]),
        (&["--config", local.to_str().unwrap()], &["acme"]),
    ];
    for (arguments, said) in cases {
        for _ in 0..2 {
            let messages = refused(&mut place.serve(arguments));
            for said in said {
                assert!(messages.contains(said), "{arguments:?}: {said} is not in: {messages}");
            }
        }
    }
    assert!(fs::read_to_string(&acme).is_ok_and(|text| text == "no folder"));
}

/// Takes a port for UDP that nobody has for TCP. Below those that the system gives to clients: one of a client that has just left is in use for a
/// minute.
fn free_for_tcp_alone() -> (String, UdpSocket) {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).expect("below 10,000");
    let both = |port: u16| Some((UdpSocket::bind(("127.0.0.1", port)).ok()?, TcpListener::bind(("127.0.0.1", port)).ok()?));
    let (udp, _) = (first..first + 2_000).find_map(both).expect("a port");
    (udp.local_addr().expect("an address").to_string(), udp)
}
