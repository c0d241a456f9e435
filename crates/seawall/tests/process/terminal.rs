//! `seawall top` and `seawall log` as whoever types them meets them: on a terminal, on a pipe, and with signals.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    os::{
        fd::AsFd,
        unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _, fs::PermissionsExt as _},
    },
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use admin::{Moment, Seen, Series};
use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};
use serde_json::{Value, json};

use testkit::{Origin, get as request, ok, status};

use crate::running::{PATIENCE, Running, TestFolder, get};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A text that would clear a screen, turn text around and end a line, as an address of a stranger.
const HOSTILE: &str = "/\u{1b}[2J\u{9b}31m\u{202e}\r\n<b>";

/// The admin API of a server that says what the test says.
struct Scripted {
    address: SocketAddr,
    /// The requests that `/recent` has, with what it lost before the next one.
    recent: Arc<Mutex<(Vec<Value>, u64)>>,
}

impl Scripted {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound");
        let recent = Arc::new(Mutex::new((Vec::new(), 0)));
        let kept = Arc::clone(&recent);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a command");
                let mut head = String::new();
                let mut lines = BufReader::new(&stream);
                while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).expect("a request") > 0 {}
                let target = head.split(' ').nth(1).unwrap_or_default();
                let (status, body) = answer(target, &mut kept.lock().expect("no panic"));
                write!(stream, "HTTP/1.1 {status} -\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("sent");
            }
        });
        Self { address, recent }
    }

    /// Lets a request end, after so many that nobody sees.
    fn ended(&self, number: u64, lost: u64, status: u16, path: &str) {
        let mut recent = self.recent.lock().expect("no panic");
        recent.0.push(json!({
            "number": number, "at": 784_111_777_000_u64, "site": "blog", "scheme": "https", "host": "blog.example", "method": "GET",
            "path": path, "status": status, "result": "miss", "rule": "cold", "complete": true, "micros": 31_402, "origin_micros": 30_911,
        }));
        recent.1 = lost;
    }

    /// Returns `seawall`, with where this listens.
    fn command(&self, place: &TestFolder, arguments: &[&str]) -> Command {
        let file = place.write("token", TOKEN);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("set");
        let mut command = place.seawall(arguments);
        command.args(["--admin", &self.address.to_string(), "--token-file", "token"]);
        command
    }

    fn run(&self, place: &TestFolder, arguments: &[&str]) -> Output {
        self.command(place, arguments).output().expect("it runs")
    }
}

fn answer(target: &str, (recent, lost): &mut (Vec<Value>, u64)) -> (u16, String) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let site = query.strip_prefix("site=");
    if site.is_some_and(|site| site != "blog.example") {
        return (404, json!({"error": "there is no such site", "remedy": "`seawall status` lists them"}).to_string());
    }
    let body = match path {
        "/seen" => json!(Seen { at: 784_111_777_000, sites: vec!["blog.example".to_owned()], ..Seen::default() }),
        "/moment" => json!(Moment { at: 784_111_777, connections: 7, ..Moment::default() }),
        "/series" => json!(Series::default()),
        "/recent" => {
            let after: u64 = query.split('&').find_map(|part| part.strip_prefix("after=")?.parse().ok()).unwrap_or_default();
            let number = |request: &Value| request["number"].as_u64().unwrap_or_default();
            let next = recent.iter().map(number).max().unwrap_or_default();
            let requests: Vec<&Value> = recent.iter().filter(|request| number(request) > after).collect();
            json!({ "next": next, "lost": std::mem::take(lost), "requests": requests })
        }
        _ => return (404, json!({"error": "no such route", "remedy": ""}).to_string()),
    };
    (200, body.to_string())
}

/// A terminal, and who sits before it.
struct Person {
    /// The person's side of it.
    keyboard: File,
    /// The program's side.
    terminal: File,
    /// All that was shown.
    shown: Arc<Mutex<String>>,
}

impl Person {
    fn before_a_terminal(columns: u16, rows: u16) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keyboard).expect("granted");
        unlockpt(&keyboard).expect("unlocked");
        let name = ptsname(&keyboard, Vec::new()).expect("a name");
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let no_control = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).expect("it fits");
        let terminal = OpenOptions::new().read(true).write(true).custom_flags(no_control).open(path).expect("open");
        let person = Self { keyboard: keyboard.into(), terminal, shown: Arc::default() };
        person.resize(columns, rows);
        let (mut screen, shown) = (person.keyboard.try_clone().expect("open"), Arc::clone(&person.shown));
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = screen.read(&mut piece) {
                shown.lock().expect("no panic").push_str(&String::from_utf8_lossy(&piece[..length]));
            }
        });
        person
    }

    fn resize(&self, columns: u16, rows: u16) {
        tcsetwinsize(&self.keyboard, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).expect("set");
    }

    /// Runs a command there, as a shell would: in a session whose terminal this is.
    fn run(&self, command: &Command) -> Child {
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
        for (name, value) in command.get_envs() {
            session.env(name, value.expect("set"));
        }
        let side = || Stdio::from(self.terminal.try_clone().expect("open"));
        session
            .current_dir(command.get_current_dir().expect("somewhere"))
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .expect("it starts")
    }

    fn types(&self, keys: &str) {
        (&self.keyboard).write_all(keys.as_bytes()).expect("typed");
    }

    /// Looks until this is on the screen, and returns the screen.
    fn sees(&self, expected: &str) -> String {
        let screen = || screen(&self.shown.lock().expect("no panic"));
        until(|| Some(screen()).filter(|screen| screen.contains(expected)), || format!("{expected:?} is never shown:\n{}", screen()))
    }

    /// Looks until this was written to the terminal.
    fn is_sent(&self, expected: &str) {
        let shown = || self.shown.lock().expect("no panic");
        until(|| shown().contains(expected).then_some(()), || format!("{expected:?} is never sent: {:?}", shown()));
    }

    /// Tells whether lines are edited and shown by the terminal itself, as in a shell.
    fn is_as_a_shell_has_it(&self) -> bool {
        tcgetattr(self.terminal.as_fd()).expect("asked").local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }
}

/// Returns what stands on a screen to which this was written (ECMA-48 §8.3.21, CUP, and §8.3.39, ED); other codes are about looks.
fn screen(written: &str) -> String {
    let (mut lines, mut row, mut column) = (vec![Vec::new(); 100], 0, 0);
    let mut letters = written.chars();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            let line: &mut Vec<char> = &mut lines[row];
            line.resize(line.len().max(column + 1), ' ');
            line[column] = letter;
            column += 1;
            continue;
        }
        assert_eq!(letters.next(), Some('['), "a code");
        let mut code = String::new();
        let end = letters.by_ref().find(|letter| {
            code.push(*letter);
            letter.is_ascii_alphabetic()
        });
        match end {
            Some('H') => {
                let place = code.trim_end_matches('H').split_once(';').expect("a place");
                let number = |text: &str| text.parse::<usize>().expect("a number") - 1;
                (row, column) = (number(place.0), number(place.1));
            }
            Some('J') => lines.iter_mut().for_each(Vec::clear),
            _ => {}
        }
    }
    lines.iter().map(|line| line.iter().collect::<String>() + "\n").collect()
}

#[expect(clippy::disallowed_methods, reason = "waits for another process, which tells nobody")]
fn until<T>(mut is_so: impl FnMut() -> Option<T>, what: impl Fn() -> String) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = is_so() {
            return found;
        }
        assert!(Instant::now() < end, "{}", what());
        thread::sleep(Duration::from_millis(10));
    }
}

fn ended(mut child: Child) -> Option<i32> {
    until(|| child.try_wait().expect("a child"), || "it does not end".to_owned()).code()
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().expect("a command").success());
}

/// However it ends, the shell finds its terminal as it was: by a key, by Ctrl-C, by a signal.
#[test]
fn top_takes_the_terminal_and_gives_it_back() {
    let (place, server) = (TestFolder::new(), Scripted::start());
    for how in ["q", "\u{3}", "TERM", "HUP"] {
        let person = Person::before_a_terminal(80, 24);
        assert!(person.is_as_a_shell_has_it());
        let top = person.run(&server.command(&place, &["top"]));
        person.sees("open      7 connections\n");
        // It draws on a screen of its own.
        person.is_sent("\u{1b}[?1049h");
        assert!(!person.is_as_a_shell_has_it());
        if how.len() == 1 {
            person.types(how);
        } else {
            signal(&top, how);
        }
        assert_eq!(ended(top), Some(0), "{how:?}");
        person.is_sent("\u{1b}[?1049l");
        assert!(person.is_as_a_shell_has_it(), "{how:?}");
    }
}

#[test]
fn top_follows_the_size_of_its_terminal_and_the_keys() {
    let (place, server) = (TestFolder::new(), Scripted::start());
    let person = Person::before_a_terminal(200, 60);
    let mut command = server.command(&place, &["top"]);
    command.env("NO_COLOR", "1");
    let top = person.run(&command);
    assert!(person.sees("q end").lines().nth(59).is_some_and(|line| line.starts_with("q end")), "the keys stand at the end");
    person.resize(40, 12);
    let shown = until(
        || Some(person.sees("q end")).filter(|shown| shown.lines().nth(11).is_some_and(|line| line.starts_with("q end"))),
        String::new,
    );
    assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 40), "{shown}");
    person.types("?");
    person.sees("any key goes back");
    person.types(" 4");
    person.sees("No request yet that was not a plain hit.");
    person.types("q");
    assert_eq!(ended(top), Some(0));
    let sent = person.shown.lock().expect("no panic");
    assert!(!sent.contains("[38;5;"), "there is no colour: {sent:?}");
}

#[test]
fn on_a_pipe_top_writes_a_picture_or_json_and_nothing_else() {
    let (place, server) = (TestFolder::new(), Scripted::start());
    for arguments in [&["top"][..], &["top", "--once"], &["top", "--once", "--site", "blog.example"]] {
        let Output { status, stdout, stderr } = server.run(&place, arguments);
        let text = String::from_utf8(stdout).expect("text");
        assert!(status.success() && stderr.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        assert!(text.contains("7 connections") && text.contains("08:49:37 UTC") && !text.contains('\u{1b}'), "{text}");
    }
    let known: Value = serde_json::from_slice(&server.run(&place, &["top", "--json"]).stdout).expect("JSON");
    assert_eq!((&known["seen"]["sites"], &known["moment"]["connections"]), (&json!(["blog.example"]), &json!(7)));
    let refused = server.run(&place, &["top", "--once", "--site", "a&b"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("there is no such site") && said.contains("`seawall status` lists them"), "{said}");
}

#[test]
fn log_shows_the_last_requests_and_what_strangers_wrote_stays_text() {
    let (place, server) = (TestFolder::new(), Scripted::start());
    let nothing = server.run(&place, &["log"]);
    assert_eq!((nothing.status.code(), nothing.stdout.as_slice()), (Some(0), &b""[..]));
    assert_eq!(String::from_utf8_lossy(&nothing.stderr), "There was no request yet that was not a plain hit.\n");
    for (number, path) in [(1, "/one"), (2, HOSTILE), (3, "/three")] {
        server.ended(number, 0, 200, path);
    }
    let shown = String::from_utf8(server.run(&place, &["log", "-n", "2"]).stdout).expect("text");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert!(lines[0].ends_with(r"https://blog.example/\u{1b}[2J\u{9b}31m\u{202e}\u{d}\u{a}<b>") && lines[1].ends_with("/three"), "{shown}");
    let shown = String::from_utf8(server.run(&place, &["log", "--json"]).stdout).expect("text");
    assert!(!shown.contains(|letter: char| letter != '\n' && letter.is_control() || letter == '\u{202e}'), "{shown:?}");
    let paths: Vec<Value> = shown.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["path"].clone()).collect();
    assert_eq!(paths, ["/one", HOSTILE, "/three"]);
    // Who has read enough is not a failure.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    assert!(server.command(&place, &["log"]).stdout(writer).status().expect("it runs").success());
}

#[test]
fn log_shows_only_what_is_wanted_and_points_at_what_is_mistyped() {
    let (place, server) = (TestFolder::new(), Scripted::start());
    for (number, status) in [(1, 200), (2, 502), (3, 404)] {
        server.ended(number, 0, status, &format!("/{status}"));
    }
    let wanted = server.run(&place, &["log", "--where", "status >= 500 or path ~ 404"]);
    let shown = String::from_utf8(wanted.stdout).expect("text");
    let paths: Vec<&str> = shown.lines().filter_map(|line| line.rsplit('/').next()).collect();
    assert_eq!(paths, ["502", "404"], "{shown}{}", String::from_utf8_lossy(&wanted.stderr));
    let none = server.run(&place, &["log", "--where", "status = 418"]);
    assert_eq!(String::from_utf8_lossy(&none.stderr), "3 requests are kept, and none of them is of that kind.\n");
    let mistyped = server.run(&place, &["log", "--where", "statuss = 418"]);
    let said = String::from_utf8_lossy(&mistyped.stderr).into_owned();
    assert!(mistyped.status.code() == Some(2) && said.contains("statuss = 418") && said.contains('^'), "{said}");
}

#[test]
fn log_goes_on_until_control_c_and_says_what_is_missing() {
    let (place, server) = (TestFolder::new(), Scripted::start());
    server.ended(1, 0, 200, "/one");
    let mut following =
        server.command(&place, &["log", "--follow", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(following.stdout.take().expect("piped")).lines();
    let mut messages = BufReader::new(following.stderr.take().expect("piped")).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().expect("a line").expect("text")).expect("JSON")["path"].clone();
    assert_eq!(next(), "/one");
    server.ended(2, 0, 200, "/two");
    assert_eq!(next(), "/two");
    server.ended(9, 6, 200, "/nine");
    assert_eq!(next(), "/nine");
    let told = messages.next().expect("a message").expect("text");
    assert_eq!(told, "6 requests are missing here: they had left the list before they could be read.");
    signal(&following, "INT");
    assert_eq!(ended(following), Some(0));
    assert!(lines.next().is_none());
}

/// A page that is stored and read again, one whose response sets a cookie, one that is not there: what is seen of a real server is what its readers did.
#[test]
fn what_readers_of_a_real_server_did_is_seen() {
    let origin = Origin::start();
    origin.on(request("/hello/")).reply(ok("text").field("cache-control", "max-age=60"));
    origin.on(request("/cart/").query("item=7")).reply(ok("cart").field("set-cookie", "PHPSESSID=0123456789; path=/"));
    origin.on(request("/nowhere/")).reply(status(404));
    // Seawall looks at the start whether somebody answers.
    origin.on(request("/")).reply(status(404));
    let place = TestFolder::new();
    let admin = format!("127.0.0.1:{}", testkit::free_port());
    let _running = Running::start(place.serve(&[&origin.url(), "--kind", "generic", "--admin", &admin]).stdout(Stdio::null()));
    for path in ["/hello/", "/hello/", "/cart/?item=7", "/nowhere/"] {
        get(&place, path);
    }
    let run = |arguments: &[&str]| {
        let Output { status, stdout, stderr } = place.seawall(&[arguments, &["--admin", &admin]].concat()).output().expect("it runs");
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).expect("text")
    };
    let known = || serde_json::from_str::<Value>(&run(&["top", "--json"])).expect("JSON");
    let known =
        until(|| Some(known()).filter(|known| known["seen"]["totals"]["requests"] == 4), || "four requests are never seen".to_owned());
    assert_eq!((&known["seen"]["totals"]["hits"], &known["seen"]["totals"]["origin_requests"]), (&json!(1), &json!(3)), "{known}");
    let cookies: Vec<&Value> = known["seen"]["cookies"].as_array().expect("a list").iter().map(|line| &line["name"]).collect();
    assert_eq!(cookies, ["PHPSESSID"]);

    let picture = run(&["top", "--once"]);
    for part in ["25.0 %", "cold", "PHPSESSID", "/cart/?item=…", "/nowhere/"] {
        assert!(picture.contains(part), "{part} is missing in\n{picture}");
    }
    assert!(!picture.contains("0123456789") && !picture.contains("item=7"), "no value of a cookie or of a query is kept:\n{picture}");

    let shown = run(&["log"]);
    let addresses: Vec<&str> = shown.lines().filter_map(|line| line.split("http://localhost").nth(1)?.split(' ').next()).collect();
    assert_eq!(addresses, ["/hello/", "/cart/?item=…", "/nowhere/"], "a plain hit is not there:\n{shown}");
    let missing = run(&["log", "--json", "--where", "status = 404 and complete"]);
    assert_eq!(serde_json::from_str::<Value>(&missing).expect("one object")["path"], "/nowhere/");
}
