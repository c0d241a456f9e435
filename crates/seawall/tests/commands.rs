//! The commands as a person meets them: the real binary, its words and its exit codes.
#![expect(clippy::expect_used, reason = "tests")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
};

/// A load tester that was mistyped, or has nobody to ask, says so in a line or two, and makes no run.
#[test]
fn bench_says_what_is_wrong_before_it_begins() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("http://127.0.0.1:{}/", testkit::free_port());
    fs::write(folder.path().join("a-file"), "").expect("written");
    let udp = testkit::free_port();
    let http3 = format!("https://127.0.0.1:{udp}/");
    let cases: &[(&[&str], i32, &str)] = &[
        (&[&url, "--html", "."], 2, "--html . is a folder"),
        (&[&url, "-o", "none/result.json"], 2, "There is no folder none"),
        (&[&url, "--hgrm", "none/result.hgrm"], 2, "--hgrm none/result.hgrm cannot be written"),
        (&[&url, "--svg", "a-file"], 2, "--svg a-file is a file"),
        (&[&url, "--svg", "a-file/charts"], 2, "--svg a-file/charts"),
        (&[&url, "--html", "one", "-o", "one"], 2, "name the same file"),
        (&[&url, "--find-limit", "--limit-p99", "200"], 2, "write 200ms"),
        (&[&url, "--find-limit", "--limit-p99", "60s"], 2, "3s at most"),
        (&[&url, "--find-limit", "--limit-errors", "1"], 2, "write 1%, or 0.01"),
        (&[&url, "-c", "50", "-q", "20"], 2, "--rate 1000"),
        (&[&url, "--ramp", "0-100/2s"], 2, "0..100"),
        (&[&url, "--rate", "-5"], 2, "negative"),
        (&[&url, "--find-limit", "--html", "."], 2, "--html . is a folder"),
        (&[&url, &url, "--compare", "--html", "."], 2, "--html . is a folder"),
        (&["merge", "a-file", "./a-file"], 2, "./a-file is named twice"),
        (&["merge", "a-file", "a-file", "--html", "."], 2, "--html . is a folder"),
        (&[&url], 1, "refuses connections"),
        (&[&http3, "--http3", "--insecure"], 1, "does not answer over HTTP/3 (UDP "),
        (&[&url, "--shape", "crawler"], 1, "add --sitemap"),
        (&[&url, "-c", "0"], 2, "1 at least"),
        (&[&url, "-c", "10", "-n", "5"], 2, "--clients 5"),
        (&[&url, "--ramp", "0..5/5s", "--rate", "5"], 2, "Choose one"),
        (&[&url, "--speed", "2"], 2, "--replay"),
        (&[&url, "--http2", "--pipeline", "4"], 2, "--streams"),
        (&[&url, "--compare"], 2, "--direct"),
        (&[&url, "--insecure"], 2, "https"),
        (&[&url, "--fail-if", "p98>1ms"], 2, "p98"),
        (&["ftp://127.0.0.1/"], 2, "ftp"),
        (&["http://192.0.2.1/"], 1, "--i-own-this"),
        (&[], 2, "URL"),
    ];
    for (arguments, code, expected) in cases {
        let said = run(folder.path(), &[&["bench"][..], arguments].concat());
        assert_eq!(said.code, Some(*code), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(expected) && said.out.is_empty(), "{arguments:?}: {}{}", said.err, said.out);
    }
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    assert_eq!(left, ["a-file"], "nothing is left of what was not written");
    assert_eq!(fs::read(folder.path().join("a-file")).expect("there"), b"", "nor is anything changed");
}

/// Holds what a command said.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seawall"));
    command.current_dir(folder).args(arguments).env_clear().env("HOME", folder).env("NO_COLOR", "1");
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Said {
    let output = command(folder, arguments).stdin(Stdio::null()).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// A server of the binary, until it is dropped.
struct Server {
    child: Child,
    address: SocketAddr,
    admin: Option<SocketAddr>,
}

impl Server {
    /// Starts it and waits until it says where it listens. What it says later is read, and kept by nobody.
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = command(folder, arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let (tell, told) = mpsc::sync_channel(64);
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(tell.try_send(line))));
        let (mut address, mut admin, mut heard) = (None, None, String::new());
        let has_admin = !arguments.contains(&"off");
        while address.is_none() || (has_admin && admin.is_none()) {
            let Ok(line) = told.recv() else { panic!("it ended:\n{heard}") };
            let at = line.split("http://").nth(1).and_then(|rest| rest.split(['/', ' ']).next()).and_then(|text| text.parse().ok());
            match line.split_whitespace().next() {
                Some("listening") => address = address.or(at),
                Some("admin") => admin = admin.or(at),
                _ => {}
            }
            heard += &format!("{line}\n");
        }
        Self { child, address: address.expect("said"), admin }
    }

    fn get(&self, host: &str, target: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("connected");
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn admin(&self) -> String {
        self.admin.expect("an admin API").to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Returns a folder of files with its configuration.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("public")).expect("a folder");
    fs::write(folder.path().join("public/index.html"), "home").expect("written");
    folder
}

/// Every example starts and answers for its first site.
#[test]
fn every_example_starts() {
    let home = tempfile::tempdir().expect("a folder");
    let cache = home.path().join("cache").display().to_string();
    for (name, host, status) in [
        ("blog", "blog.example.org", "200"),
        ("folder", "a.example", "200"),
        // A Ghost may listen there, or nobody.
        ("ghost", "a.example", ""),
        ("several-sites", "docs.example.org", "200"),
    ] {
        let file = examples().join(name).with_extension("toml").display().to_string();
        let checked = run(home.path(), &["check", "--config", &file]);
        assert_eq!(checked.code, Some(0), "{name}: {}", checked.err);
        let flags = ["serve", "--config", &file, "--listen", "127.0.0.1:0", "--admin", "off", "--access-log", "off", "--cache-dir", &cache];
        let server = Server::start(home.path(), &flags);
        let answer = server.get(host, "/");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{name}: {answer}");
    }
}

/// A folder is checked as it would be served, and each fault has its place.
#[test]
fn a_folder_is_checked_as_it_would_be_served() {
    let folder = folder();
    let here = folder.path();
    let fine =
        run(here, &["check", "public", "--route", "/api=http://127.0.0.1:1", "--domain", "a.example", "--redirect-from", "www.a.example"]);
    assert_eq!(fine.code, Some(0), "{}", fine.err);
    for line in ["public is fine.", "a.example <- public (static)", "/api <- http://127.0.0.1:1", "www.a.example -> a.example"] {
        assert!(fine.out.contains(line), "{line}\n{}", fine.out);
    }
    fs::write(here.join("public/_redirects"), "/a /b 301\nnonsense\n").expect("written");
    let faulty = run(here, &["check", "public"]);
    assert_eq!(faulty.code, Some(1));
    assert!(faulty.err.contains("public/_redirects:2:"), "{}", faulty.err);

    fs::create_dir(here.join("posts")).expect("a folder");
    fs::write(here.join("posts/one.md"), "---\ntitle: [\n---\nText\n").expect("written");
    let faulty = run(here, &["check", "posts"]);
    assert_eq!(faulty.code, Some(1));
    assert!(faulty.err.contains("posts/one.md:"), "{}", faulty.err);

    for (arguments, expected) in [
        (&["check", "nowhere"][..], "there is no folder \"nowhere\""),
        (&["check", "public", "--kind", "generic"], "--kind generic is for the address of a server"),
        (&["check"], "nothing to serve"),
        (&["check", "--config", "none.toml"], "there is no file \"none.toml\""),
        (&["check", "public/index.html"], "is a file, not a folder"),
    ] {
        let said = run(here, arguments);
        assert_eq!(said.code, Some(1), "{arguments:?}: {}{}", said.out, said.err);
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
    }
}

/// `seawall help` and `seawall` show the same groups; each command has its own page; a slip is recognised.
#[test]
fn help_is_there_for_everything() {
    let folder = folder();
    let top = run(folder.path(), &["help"]);
    assert_eq!((top.code, top.err.as_str()), (Some(0), ""));
    for piece in ["Manage the cache:", "seawall serve ./public", "Usage: seawall <COMMAND>\n", "`seawall help <COMMAND>`"] {
        assert!(top.out.contains(piece), "{piece}\n{}", top.out);
    }
    let bare = run(folder.path(), &[]);
    assert_eq!((bare.code, bare.err.trim()), (Some(2), top.out.trim()));
    for line in top.out.lines().skip_while(|line| !line.starts_with("Begin")).take_while(|line| !line.starts_with("Options")) {
        let Some(name) = line.strip_prefix("  ").and_then(|line| line.split_whitespace().next()) else { continue };
        let page = run(folder.path(), &["help", name]);
        assert!(page.code == Some(0) && page.out.contains(&format!("Usage: seawall {name}")), "{name}: {}{}", page.out, page.err);
        assert!(["help", "new", "health"].contains(&name) || page.out.contains("Examples:"), "{name}\n{}", page.out);
    }
    let mistyped = run(folder.path(), &["--nonsense"]);
    assert!(mistyped.code == Some(2) && mistyped.err.contains("Usage: seawall <COMMAND>\n"), "the same usage everywhere: {}", mistyped.err);
    assert!(run(folder.path(), &["help", "certificates", "revoke"]).out.contains("Usage: seawall certificates revoke"));
    let slip = run(folder.path(), &["help", "sreve"]);
    assert!(slip.code == Some(2) && slip.err.contains("serve"), "{:?} {}", slip.code, slip.err);
    for shell in ["bash", "zsh", "fish"] {
        let script = run(folder.path(), &["completions", shell]);
        assert!(script.code == Some(0) && script.out.contains("redirect-from"), "{shell}");
    }
    let wrong = run(folder.path(), &["completions", "cmd"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("bash"), "{}", wrong.err);
}

/// No server runs here, and none is needed to see that an address has no host.
#[test]
fn what_is_no_address_of_a_page_is_told_before_a_server_is_asked() {
    let folder = folder();
    for (arguments, expected) in [
        (&["explain", "/hello"][..], "such as https://blog.example.org/hello"),
        (&["explain", "blog.example.org/hello/"], "did you mean https://blog.example.org/hello/?"),
        (&["explain", "ftp://blog.example.org/"], "begins with http:// or https://"),
        (&["explain", "https:///hello"], "names a host"),
        (&["warm", "https://a.example/", "hello"], "such as https://blog.example.org/hello"),
        (&["warm", "--sitemap", "/sitemap.xml"], "such as https://blog.example.org/hello"),
    ] {
        let said = run(folder.path(), arguments);
        assert!(said.code == Some(2) && said.err.contains(expected), "{arguments:?}: {:?} {}", said.code, said.err);
    }
    let asked = run(folder.path(), &["explain", "http://[::1]:8080/a?b=c"]);
    assert!(asked.code == Some(1) && asked.err.contains("token"), "{}", asked.err);
}

/// Another program has the port of the admin API: a command that reaches it says so.
#[test]
fn a_command_that_reaches_another_program_says_so() {
    let folder = folder();
    fs::write(folder.path().join("token"), "0123456789abcdef0123456789abcdef").expect("written");
    fs::set_permissions(folder.path().join("token"), fs::Permissions::from_mode(0o600)).expect("set");
    for answer in
        ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "SSH-2.0-x\r\n", ""]
    {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound").to_string();
        let other = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a command");
            let mut head = [0; 64];
            stream.read_exact(&mut head).expect("a request");
            stream.write_all(answer.as_bytes()).expect("sent");
            // What was sent and not read would make the end of the connection a reset.
            stream.shutdown(std::net::Shutdown::Write).expect("shut");
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let said = run(folder.path(), &["status", "--admin", &address, "--token-file", "token"]);
        assert!(said.code == Some(1) && said.err.contains(&format!("another program listens at {address}")), "{answer}: {}", said.err);
        assert!(said.err.contains("--admin"), "{}", said.err);
        other.join().expect("no panic");
    }
}

/// What runs is shown, and reads its configuration again on command; what is wrong with that is told with its line, and changes nothing.
#[test]
fn what_runs_is_shown_and_reloaded() {
    let folder = folder();
    let here = folder.path();
    let file = |more: &str| {
        let text =
            format!("source = \"public\"\n[server]\nlisten = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\n[log]\naccess = \"off\"\n{more}");
        fs::write(here.join("seawall.toml"), text).expect("written");
    };
    file("");
    let server = Server::start(here, &["serve"]);
    let admin = server.admin();
    assert!(server.get("a.example", "/").ends_with("home"));

    let status = run(here, &["status", "--admin", &admin]);
    assert_eq!(status.code, Some(0), "{}", status.err);
    for piece in [&format!("listening    {}", server.address)[..], "every host <- public (static)", "hits         0 % of 1 request to"] {
        assert!(status.out.contains(piece), "{piece}\n{}", status.out);
    }
    let json = run(here, &["status", "--json", "--admin", &admin]).out;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["status"], &json["sites"][0]["kind"]), (&"ok".into(), &"static".into()));

    file("[headers]\nset = [\"X-New: 1\"]\n");
    let done = run(here, &["reload", "--admin", &admin]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "Reloaded.\n"), "{}", done.err);
    assert!(server.get("a.example", "/").to_ascii_lowercase().contains("x-new: 1"));

    file("[headers]\nsett = []\n");
    let refused = run(here, &["reload", "--admin", &admin]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""));
    assert!(refused.err.contains("seawall.toml:8:1") && refused.err.contains("did you mean `set`?"), "{}", refused.err);
    assert!(server.get("a.example", "/").to_ascii_lowercase().contains("x-new: 1"));

    file("[limits]\nconnections = 100\n");
    fs::write(
        here.join("seawall.toml"),
        fs::read_to_string(here.join("seawall.toml")).expect("read").replace("[server]", "[server]\nworkers = 7"),
    )
    .expect("written");
    let done = run(here, &["reload", "--admin", &admin]);
    assert_eq!(done.out, "Reloaded. Needs a restart to take effect: server.workers.\n", "{}", done.err);

    drop(server);
    for name in ["status", "reload", "health"] {
        let gone = run(here, &[name, "--admin", &admin]);
        assert!(gone.code == Some(1) && gone.err.contains("Is Seawall running?"), "{name}: {}", gone.err);
    }
}

/// What cannot be purged is said before a server is looked for, in the same words for every flag.
#[test]
fn a_purge_of_what_is_no_address_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, expected) in [
        (["--url", "foo"], "foo is not an address; write it as http://blog.example.org/hello/"),
        (["--url", "/hello/"], "/hello/ is not an address"),
        (["--url", "ftp://blog.example/"], "ftp://blog.example/ is not an address"),
        (["--prefix", "blog.example/2026/"], "blog.example/2026/ is not an address"),
        (["--host", "https://blog.example"], "https://blog.example is not a host name; write it without a scheme and a path"),
        (["--url", ""], "is empty"),
        (["--prefix", ""], "is empty"),
        (["--host", ""], "is empty"),
        (["--tag", ""], "is empty"),
    ] {
        let said = run(folder.path(), &["purge", arguments[0], arguments[1]]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
    }
}

/// Machines with other files are in the room `tune`; here is what a person sees.
#[test]
fn a_machine_is_tuned_when_it_is_said() {
    let folder = folder();
    let root = folder.path().join("machine");
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    };
    let pool = "etc/php/8.2/fpm/pool.d/www.conf";
    write("etc/php/8.2/fpm/php-fpm.conf", "include=/etc/php/8.2/fpm/pool.d/*.conf\n");
    write(pool, "[www]\npm = dynamic\npm.max_children = 5\n");
    write("etc/php/8.2/fpm/conf.d/10-opcache.ini", "zend_extension=opcache.so\n");
    write("usr/sbin/php-fpm8.2", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(root.join("usr/sbin/php-fpm8.2"), fs::Permissions::from_mode(0o755)).expect("a program");
    let root_text = root.to_str().expect("text").to_owned();
    let tune = |more: &[&str]| run(folder.path(), &[&["tune", "--root", &root_text, "--memory", "2GiB", "--cores", "4"], more].concat());

    let said = tune(&[]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    for words in [
        "Machine: 4 cores (as given), 2.0 GiB (as given)",
        "of the 1.5 GiB that are handed out (75 %)",
        "pm.max_children = 10                       now 5",
        "opcache.validate_timestamps = 1            stays",
        "MariaDB or MySQL is not installed here",
        "`seawall tune --diff` shows how",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let diff = tune(&["--diff"]).out;
    assert!(diff.contains("\n-pm.max_children = 5\n") && diff.contains("\n+pm.max_children = 10\n"), "{diff}");
    assert_eq!(fs::read_to_string(root.join(pool)).expect("a file"), "[www]\npm = dynamic\npm.max_children = 5\n");

    let said = tune(&["--write"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("systemctl restart php8.2-fpm") && said.out.contains("www.conf.seawall-20"), "{}", said.out);
    assert!(fs::read_to_string(root.join(pool)).expect("a file").contains("pm.max_children = 10\n"));
    assert_eq!(tune(&["--write"]).out, "All of it is set already: nothing was written.\n");
    assert_eq!(tune(&["--diff"]).out, "");

    let said = tune(&["--site", "/nowhere"]);
    assert!(said.code == Some(1) && said.err.contains("/nowhere is not a folder"), "{}", said.err);
}
