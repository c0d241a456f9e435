//! As a service of systemd: it says when it serves, and serves sockets that it is given.

use std::{
    fs::File,
    io::{Read, Write, pipe},
    net::{SocketAddr, TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    process::{Command, Stdio},
    time::Duration,
};

use super::running::{PATIENCE, Running, TestFolder, collect, get, get_from};

/// Returns a shell that becomes `seawall serve`, with its standard input as the one socket that the service manager passes
/// (sd_listen_fds(3)).
fn with_socket(place: &TestFolder, socket: impl Into<OwnedFd>, name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES=\"$0\" exec seawall serve \"$@\" --workers 2";
    place.dress(&mut command).args(["-c", script, name]).args(arguments);
    command.stdin(Stdio::from(socket.into())).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// sd_notify(3): READY=1 once visitors are let in, RELOADING=1 and READY=1 around a reload, STOPPING=1 before the end.
#[test]
fn the_service_manager_is_told_what_happens() {
    let place = TestFolder::with_site();
    let config = place.write(
        "seawall.toml",
        &format!(
            "source = \"site\"\n[server]\nlisten = [\"unix:{}\"]\nadmin = \"off\"\nshutdown_timeout = \"5s\"\n",
            place.socket().display()
        ),
    );
    let running = Running::spawn(place.serve(&["--config", config.to_str().unwrap()]).stdout(Stdio::null()).stderr(Stdio::null()));
    let ready = running.next().expect("the first message");
    assert!(ready.starts_with("READY=1\n") && ready.contains("STATUS=serves unix:"), "{ready}");
    assert!(get(&place, "/").contains("hello"));
    running.reload();
    place.write("seawall.toml", "sorce = \"site\"\n");
    running.signal("HUP");
    running.told("RELOADING=1");
    let ready = running.told("READY=1");
    assert!(ready.contains("the old one in force"), "{ready}");
    running.signal("TERM");
    let stopping = running.told("STOPPING=1");
    let wait = stopping.lines().find_map(|line| line.strip_prefix("EXTEND_TIMEOUT_USEC=")?.parse::<u64>().ok());
    assert!(wait.is_some_and(|wait| wait > 5_000_000), "it may take as long as requests may, and is not killed before: {stopping}");
    assert_eq!(running.wait().code(), Some(0));
}

/// A configuration that is wrong is not a service that has started.
#[test]
fn a_start_that_fails_is_never_ready() {
    let place = TestFolder::with_site();
    let mut running = Running::spawn(place.serve(&["nowhere"]).stdout(Stdio::null()).stderr(Stdio::piped()));
    let messages = collect(running.stderr());
    messages.join().expect("it ends");
    assert!(running.has_told_nothing_more());
    assert_eq!(running.wait().code(), Some(1));
}

/// The socket takes the place of the listener that is configured for its address; the server could not bind it itself.
#[test]
fn a_socket_that_is_passed_is_listened_on() {
    let place = TestFolder::with_site();
    let (socket, address) = listener();
    let keeper = socket.try_clone().expect("duplicated");
    let arguments = ["site", "--admin", "off", "--listen", &address.to_string()];
    let running = Running::start(&mut with_socket(&place, socket, "seawall.socket", &arguments));
    assert!(get_from(address, "/").contains("hello"));
    assert_eq!(running.stop().code(), Some(0));
    drop(keeper);
}

/// The name of a socket says what it is for, where no address is configured.
#[test]
fn a_socket_may_say_by_its_name_what_it_is_for() {
    let place = TestFolder::with_site();
    let other = format!("unix:{}", place.socket().display());
    let (socket, address) = listener();
    let running = Running::start(&mut with_socket(&place, socket, "http", &["site", "--admin", "off", "--listen", &other]));
    assert!(get_from(address, "/").contains("hello") && get(&place, "/").contains("hello"));
    running.reload();
    assert!(get_from(address, "/").contains("hello"));
    drop(running);

    let (socket, address) = listener();
    let _running = Running::start(&mut with_socket(&place, socket, "admin", &["site", "--listen", &other]));
    assert!(get_from(address, "/healthz").contains("\"status\":\"ok\""));
    drop(_running);

    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let pem = place.write("pair.pem", &(made.cert.pem() + &made.signing_key.serialize_pem()));
    let (socket, address) = listener();
    let arguments = ["site", "--admin", "off", "--listen", &other, "--tls-listen", "127.0.0.1:0", "--tls-cert", pem.to_str().unwrap()];
    let _running = Running::start(&mut with_socket(&place, socket, "https", &arguments));
    let answer = Command::new("curl").args(["-sk", &format!("https://{address}/")]).output().expect("curl");
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "hello\n");
}

/// Visitors would wait there for ever.
#[test]
fn a_socket_that_nobody_wants_ends_the_start() {
    let place = TestFolder::with_site();
    let other = format!("unix:{}", place.socket().display());
    let (socket, address) = listener();
    let mut running = Running::spawn(
        with_socket(&place, socket, "seawall.socket", &["site", "--admin", "off", "--listen", &other]).stderr(Stdio::piped()),
    );
    let messages = collect(running.stderr());
    assert_eq!(running.wait().code(), Some(1));
    let messages = messages.join().expect("read");
    assert!(messages.contains(&address.to_string()) && messages.contains("FileDescriptorName="), "{messages}");

    let both = socket2_of_both_families();
    if let Some(both) = both {
        let mut running =
            Running::spawn(with_socket(&place, both, "http", &["site", "--admin", "off", "--listen", &other]).stderr(Stdio::piped()));
        let messages = collect(running.stderr());
        assert_eq!(running.wait().code(), Some(1));
        assert!(messages.join().expect("read").contains("BindIPv6Only=ipv6-only"));
    }
}

/// Returns a listener on `[::]` of the standard library, which takes IPv4 too, as systemd's do by default.
fn socket2_of_both_families() -> Option<TcpListener> {
    TcpListener::bind("[::]:0").ok()
}

/// Who comes while the old process ends its requests and the new one has not begun waits, and is served.
#[test]
fn a_restart_refuses_nobody() {
    let place = TestFolder::new();
    let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
    let source = format!("http://{}", origin.local_addr().expect("an address"));
    let (socket, address) = listener();
    let passed = || socket.try_clone().expect("duplicated");
    let arguments =
        [&source, "--kind", "generic", "--admin", "off", "--listen", &address.to_string(), "--cache-dir", "cache"].map(str::to_owned);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer_to = |mut stream: TcpStream, text: &str| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            assert_eq!(stream.read(&mut byte).expect("a request"), 1);
            head.extend(byte);
        }
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len()).expect("answered");
    };
    let start = || {
        let running = Running::spawn(&mut with_socket(&place, passed(), "http", &arguments));
        drop(origin.accept().expect("it looks at its origin"));
        running.told("READY=1");
        running
    };
    let client = || {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE).expect("nobody is refused");
        stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
        stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").expect("sent");
        stream
    };
    let read = |mut stream: TcpStream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    };

    let old = start();
    let slow = client();
    let (at_origin, _) = origin.accept().expect("the request comes through");
    old.signal("TERM");
    old.told("STOPPING=1");
    // Whoever came before the workers were told may still be taken up by the old process; nobody is by one that has ended.
    answer_to(at_origin, "of the old one");
    assert!(read(slow).ends_with("of the old one"));
    assert_eq!(old.wait().code(), Some(0));
    let waiting = client();
    waiting.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
    assert!((&waiting).read(&mut [0]).is_err(), "nobody answers yet, and nobody hangs up");
    waiting.set_read_timeout(Some(PATIENCE)).expect("set");
    let new = start();
    let (at_origin, _) = origin.accept().expect("who has waited comes through");
    answer_to(at_origin, "of the new one");
    assert!(read(waiting).ends_with("of the new one"));
    assert_eq!(new.stop().code(), Some(0));
}

/// systemd.exec(5), `JOURNAL_STREAM`; sd-daemon(3): each line begins with its priority, and the journal adds the time itself.
#[test]
fn in_the_journal_messages_have_priorities() {
    let place = TestFolder::with_site();
    let (reader, writer) = pipe().expect("a pipe");
    let journal = File::from(OwnedFd::from(writer));
    let metadata = journal.metadata().expect("open");
    let (of_it, of_another) = (format!("{}:{}", metadata.dev(), metadata.ino()), format!("{}:{}", metadata.dev(), metadata.ino() + 1));
    let said = |stream: &str, stderr: Stdio| {
        let mut command = place.serve(&["site"]);
        let mut running = Running::spawn(command.env("JOURNAL_STREAM", stream).stdout(Stdio::null()).stderr(stderr));
        drop(command);
        let piped = running.take_stderr().map(collect);
        running.told("READY=1");
        running.reload();
        assert!(running.stop().success());
        piped.map(|text| text.join().expect("read"))
    };
    let reading = collect(reader);
    said(&of_it, journal.into());
    let text = reading.join().expect("read");
    assert!(text.lines().all(|line| line.starts_with("<6>")), "{text}");
    assert!(text.lines().any(|line| line.starts_with("<6>") && line.ends_with("reloaded")), "{text}");
    assert!(!text.contains("Z "), "no time: {text}");
    let text = said(&of_another, Stdio::piped()).expect("piped");
    assert!(!text.contains('<'), "standard error was led elsewhere: {text}");
}
