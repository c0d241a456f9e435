//! Two processes that act as one, by way of a real Valkey or Redis: what the commands say, and what they end with.
//!
//! What is promised of purges under load, and when something fails, is judged in `tests/cluster`.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use testkit::{Software, Valkey};

use super::running::{PATIENCE, Running, TestFolder, get};

#[expect(clippy::disallowed_methods, reason = "waits for other processes, which tell nobody")]
fn pause() {
    thread::sleep(Duration::from_millis(10));
}

/// An origin whose page says how often it was changed, and may be kept for an hour.
struct Origin {
    address: SocketAddr,
    version: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
}

impl Origin {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound");
        let version = Arc::new(AtomicU64::new(1));
        let asked = Arc::new(AtomicU64::new(0));
        let (now, count) = (Arc::clone(&version), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (now, count) = (Arc::clone(&now), Arc::clone(&count));
                thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    loop {
                        let (mut head, mut line) = (String::new(), String::new());
                        while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                            head.push_str(&line);
                            line.clear();
                        }
                        if head.is_empty() {
                            return;
                        }
                        count.fetch_add(u64::from(head.starts_with("GET /page ")), SeqCst);
                        let version = now.load(SeqCst);
                        let is_same = head.to_ascii_lowercase().contains(&format!("if-none-match: \"{version}\""));
                        let body = if is_same { String::new() } else { format!("version {version}") };
                        let status = if is_same { "304 Not Modified" } else { "200 OK" };
                        let length = if is_same { String::new() } else { format!("content-length: {}\r\n", body.len()) };
                        let answer =
                            format!("HTTP/1.1 {status}\r\n{length}etag: \"{version}\"\r\ncache-control: max-age=3600\r\n\r\n{body}");
                        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, version, asked }
    }

    fn change(&self) -> String {
        format!("version {}", self.version.fetch_add(1, SeqCst) + 1)
    }
}

/// A machine of the cluster.
struct Machine {
    place: TestFolder,
    running: Option<Running>,
}

impl Machine {
    fn start(name: &str, origin: &Origin, engine: &Valkey) -> Self {
        let place = TestFolder::new();
        let admin = testkit::free_port();
        let toml = format!(
            "source = \"http://{}\"\nkind = \"generic\"\n[server]\nlisten = [\"unix:{}\"]\nadmin = \"127.0.0.1:{admin}\"\nworkers = 2\n\
             [cluster]\nurl = \"{}\"\nmachine = \"{name}\"\nsecret = \"0123456789abcdef0123456789abcdef\"\nlease = \"5s\"\ndoubt_hold = \"500ms\"\n",
            origin.address,
            place.socket().display(),
            engine.url()
        );
        place.write("seawall.toml", &toml);
        let mut machine = Self { place, running: None };
        machine.start_again();
        machine
    }

    fn start_again(&mut self) {
        self.running = Some(Running::start(self.place.serve(&["--config", "seawall.toml"]).stdout(Stdio::null())));
    }

    /// Stops it as a service manager does.
    fn stop(&mut self) {
        let status = self.running.take().expect("it runs").stop();
        assert!(status.success(), "{status}");
    }

    /// Returns what a command says, and what it ends with.
    fn command(&self, arguments: &[&str]) -> (String, Option<i32>) {
        let done = self.place.seawall(arguments).args(["--config", "seawall.toml"]).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        (said, done.status.code())
    }

    fn cluster(&self) -> serde_json::Value {
        let (said, code) = self.command(&["cluster", "--json"]);
        assert_eq!(code, Some(0), "{said}");
        serde_json::from_str(&said).expect("JSON")
    }

    fn until(&self, what: &str, is_so: impl Fn(&serde_json::Value) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let state = self.cluster();
            if is_so(&state) {
                return;
            }
            assert!(Instant::now() < end, "never: {what}: {state}");
            pause();
        }
    }

    fn until_leased(&self) {
        self.until("a lease", |state| state["leased"] == true && state["machines"].as_array().is_some_and(|all| all.len() == 2));
    }

    fn page(&self) -> String {
        get(&self.place, "/page")
    }
}

fn is_hit(answer: &str) -> bool {
    answer.to_ascii_lowercase().contains("x-cache: hit")
}

#[test]
fn a_purge_through_one_machine_holds_at_the_other_when_the_command_ends() {
    let (engine, origin) = (Valkey::start(Software::any()), Origin::start());
    let (one, two) = (Machine::start("web1", &origin, &engine), Machine::start("web2", &origin, &engine));
    one.until_leased();
    two.until_leased();
    for through in [&one, &two, &one] {
        for machine in [&one, &two] {
            machine.page();
            let again = machine.page();
            assert!(is_hit(&again), "{again}");
        }
        let new = origin.change();
        let (said, code) = through.command(&["purge", "--url", "http://localhost/page"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("It holds everywhere") && said.contains("web1") && said.contains("web2"), "{said}");
        for machine in [&one, &two] {
            let page = machine.page();
            assert!(page.ends_with(&new), "{new}: {page}");
        }
    }
    let (said, code) = one.command(&["cluster"]);
    assert_eq!(code, Some(0));
    for expected in ["web1 has a lease: purges of all machines hold here", "web2", "this machine"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let (said, _) = one.command(&["status"]);
    assert!(said.contains("seawall, 2 machines") && said.contains("web1 has a lease"), "{said}");
    let (said, code) = one.command(&["check"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("web1 of seawall, by redis://127.0.0.1:"), "{said}");
}

/// Without the server there is no error for readers, and nobody is told that a purge holds everywhere.
#[test]
fn a_purge_without_the_server_says_so_and_holds_everywhere_when_the_server_is_back() {
    let (mut engine, origin) = (Valkey::start(Software::any()), Origin::start());
    let (one, two) = (Machine::start("web1", &origin, &engine), Machine::start("web2", &origin, &engine));
    one.until_leased();
    two.until_leased();
    for machine in [&one, &two] {
        machine.page();
        assert!(is_hit(&machine.page()));
    }
    engine.kill();
    let new = origin.change();
    let (said, code) = one.command(&["purge", "--url", "http://localhost/page"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("It is not known to hold everywhere"), "{said}");
    assert!(one.page().ends_with(&new));
    two.until("in doubt", |state| state["leased"] == false);
    let page = two.page();
    assert!(page.starts_with("HTTP/1.1 200 ") && page.ends_with(&new), "what is in doubt is validated: {page}");
    let (said, _) = two.command(&["cluster"]);
    assert!(said.contains("web2 has had no lease for"), "{said}");
    engine.start_again();
    one.until_leased();
    two.until_leased();
    one.until("told", |state| state["pending"] == 0);
    let (said, code) = one.command(&["purge", "--url", "http://localhost/page"]);
    assert_eq!(code, Some(0), "{said}");
}

/// The position is kept beside what is stored: what was purged meanwhile is purged, and everything else is as good as before.
#[test]
fn a_machine_that_was_away_applies_what_it_missed_and_shows_the_rest_without_asking() {
    let (engine, origin) = (Valkey::start(Software::any()), Origin::start());
    let (one, mut two) = (Machine::start("web1", &origin, &engine), Machine::start("web2", &origin, &engine));
    one.until_leased();
    two.until_leased();
    for machine in [&one, &two] {
        machine.page();
        assert!(is_hit(&machine.page()));
    }
    two.stop();
    let (said, code) = one.command(&["purge", "--url", "http://localhost/another"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("web2"), "nobody waits for a machine that has left: {said}");
    two.start_again();
    two.until_leased();
    let asked = origin.asked.load(SeqCst);
    let page = two.page();
    assert!(is_hit(&page) && page.ends_with("version 1"), "{page}");
    assert_eq!(origin.asked.load(SeqCst), asked, "what it has stored is as good as before");
    let state = two.cluster();
    assert_eq!((&state["breaks"], &state["applied"]), (&0.into(), &1.into()), "{state}");
    two.stop();
    let new = origin.change();
    let (said, code) = one.command(&["purge", "--url", "http://localhost/page"]);
    assert_eq!(code, Some(0), "{said}");
    two.start_again();
    let page = two.page();
    assert!(page.ends_with(&new), "with a lease or without: {page}");
}

#[test]
fn a_server_that_stands_alone_says_so() {
    let place = TestFolder::with_site();
    let admin = testkit::free_port();
    let _running = Running::start(place.serve(&["site", "--admin", &format!("127.0.0.1:{admin}")]).stdout(Stdio::null()));
    let done = place.seawall(&["cluster", "--admin", &format!("127.0.0.1:{admin}")]).output().expect("it runs");
    assert_eq!(done.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&done.stdout).contains("This Seawall stands alone"), "{done:?}");
}
