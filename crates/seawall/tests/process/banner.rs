//! What is said at the start is true, and works as it stands there.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    thread,
};

use testkit::{Origin, get as request, head, ok, status};

use super::running::{Running, TestFolder};

/// Returns what a server says until it serves.
fn said(place: &TestFolder, arguments: &[&str], variables: &[(&str, &str)]) -> (Running, String) {
    let mut command = match variables.iter().any(|(name, _)| *name == "PORT") {
        true => place.seawall(&[&["serve"], arguments].concat()),
        false => place.serve(arguments),
    };
    let mut running = Running::spawn(command.envs(variables.iter().copied()).stdout(Stdio::null()).stderr(Stdio::piped()));
    let mut text = String::new();
    let mut lines = BufReader::new(running.stderr()).lines().map_while(Result::ok);
    let mut tries = false;
    for line in lines.by_ref() {
        tries |= line.starts_with("Try next");
        text += &format!("{line}\n");
        if tries && line.is_empty() {
            break;
        }
    }
    thread::spawn(move || lines.for_each(drop));
    assert!(tries, "{text}");
    running.told("READY=1");
    (running, text)
}

/// Returns the commands that it suggests.
fn suggestions(text: &str) -> Vec<&str> {
    let (_, next) = text.split_once("Try next:\n").expect("suggestions");
    next.lines().filter_map(|line| line.strip_prefix("    ")).collect()
}

/// Runs every suggestion as it is printed, from a terminal in the same folder that has no variable of ours.
fn try_all(place: &TestFolder, text: &str, expected: &[&str]) {
    let commands = suggestions(text);
    assert_eq!(commands.len(), expected.len(), "{text}");
    for (command, expected) in commands.iter().zip(expected) {
        let mut shell = Command::new("sh");
        let output = place.dress(&mut shell).args(["-c", command]).stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("a shell");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{command}\n{out}{err}\n{text}");
        assert!(out.to_ascii_lowercase().contains(&expected.to_ascii_lowercase()), "{command}: no {expected} in {out}");
    }
}

const SEE: &str = "cache-status:";
const EXPLAIN: &str = "GET http";

/// The suggestions work in front of a server, which has something stored to forget.
#[test]
fn what_it_suggests_works_in_front_of_a_server() {
    let origin = Origin::start();
    origin.on(request("/")).reply(ok("text").field("cache-control", "max-age=60"));
    origin.on(head("/")).reply(ok(""));
    origin.on(request("/ghost/api/admin/site/")).reply(status(404));
    origin.on(request("/blog/ghost/api/admin/site/")).reply(status(404));
    origin.on(request("/").query("rest_route=/&_fields=name,url,home,namespaces&doing_wp_cron")).reply(status(404));
    let place = TestFolder::new();
    let (_running, text) = said(&place, &[&origin.url(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"], &[]);
    try_all(&place, &text, &[SEE, EXPLAIN, "Purged"]);
}

/// The suggestions work in front of folders, however they are reached.
#[test]
fn what_it_suggests_works_wherever_it_listens() {
    let place = TestFolder::with_site();
    place.write("blog/first.md", "# First\n\ntext\n");
    let admin = ["--admin", "127.0.0.1:0"];
    let port = testkit::free_port().to_string();
    let folder = |source: &'static str, more: &[&'static str]| [&[source], more, &admin[..]].concat();
    for (arguments, variables) in [
        (folder("site", &["--listen", "127.0.0.1:0"]), vec![]),
        (folder("blog", &["--listen", "127.0.0.1:0"]), vec![]),
        (folder("site", &["--listen", "[::1]:0"]), vec![]),
        (folder("site", &["--listen", "0.0.0.0:0"]), vec![]),
        (folder("site", &[]), vec![]),
        (folder("site", &[]), vec![("PORT", port.as_str())]),
    ] {
        let (_running, text) = said(&place, &arguments, &variables);
        try_all(&place, &text, &[SEE, EXPLAIN]);
    }
}

/// A name that this machine certifies itself: https.
#[test]
fn what_it_suggests_works_for_a_local_name() {
    let place = TestFolder::with_site();
    let arguments = ["site", "--domain", "localhost", "--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let (running, text) = said(&place, &arguments, &[]);
    assert!(suggestions(&text)[0].contains("https://localhost:"), "{text}");
    let url = suggestions(&text)[0].split(' ').find(|word| word.starts_with("https://")).expect("an address").to_owned();
    // It has just been made, or is being made.
    running.until("the certificate is there", || {
        Command::new("curl").args(["-sk", "-o", "/dev/null", &url]).status().is_ok_and(|status| status.success())
    });
    try_all(&place, &text, &[SEE, EXPLAIN]);
}

/// Several sites in a file, each with its hosts, and an admin address that only the file names; with and without an admin API.
#[test]
fn what_it_suggests_works_for_several_sites_in_a_file() {
    let place = TestFolder::with_site();
    place.write("blog/first.md", "# First\n\ntext\n");
    for (admin, token, expected) in [("127.0.0.1:0", "secret/token", &[SEE, EXPLAIN][..]), ("off", "unused", &[SEE][..])] {
        let text = format!(
            "[server]\nlisten = [\"127.0.0.1:0\"]\nadmin = \"{admin}\"\nadmin_token_file = \"{token}\"\n\
             [[site]]\nhosts = [\"*.blog.example\", \"blog.example\"]\nsource = \"blog\"\n[[site]]\nhosts = [\"files.example\"]\nsource = \"site\"\n"
        );
        place.write("its own/site's.toml", &text.replace("\"blog\"", "\"../blog\"").replace("\"site\"", "\"../site\""));
        let (_running, text) = said(&place, &["--config", "its own/site's.toml"], &[]);
        try_all(&place, &text, expected);
    }
}

/// The disk is promised only where it is used.
#[test]
fn the_disk_is_named_where_it_is_used_and_only_there() {
    let origin = Origin::start();
    origin.on(request("/")).reply(ok("text"));
    origin.on(request("/ghost/api/admin/site/")).reply(status(404));
    origin.on(request("/blog/ghost/api/admin/site/")).reply(status(404));
    origin.on(request("/").query("rest_route=/&_fields=name,url,home,namespaces&doing_wp_cron")).reply(status(404));
    let place = TestFolder::new();
    let line =
        |text: &str| text.lines().find_map(|line| line.trim().strip_prefix("disk")).map(|rest| rest.trim().to_owned()).unwrap_or_default();
    let listen = ["--listen", "127.0.0.1:0", "--admin", "off"];
    let start = |more: &[&str]| said(&place, &[&[origin.url().as_str()], more, &listen[..]].concat(), &[]);
    let (_holds_it, text) = start(&["--cache-dir", "cache"]);
    assert!(
        line(&text).ends_with(&format!("MiB in {}", place.path().join("cache").display())) || line(&text).ends_with("MiB in cache"),
        "{text}"
    );
    // Another process has it.
    let (_second, text) = start(&["--cache-dir", "cache"]);
    assert!(line(&text).starts_with("none, as cache cannot be used"), "{text}");
    // It holds something else.
    place.write("precious/letters", "dear Ada\n");
    let (_third, text) = start(&["--cache-dir", "precious"]);
    assert!(line(&text).starts_with("none, as precious cannot be used"), "{text}");
    // It is below a file.
    place.write("file", "");
    let (_fourth, text) = start(&["--cache-dir", "file/cache"]);
    assert!(line(&text).starts_with("none, as file/cache cannot be used"), "{text}");
    // It is switched off.
    let config = place.write(
        "memory.toml",
        &format!("source = \"{}\"\n[server]\nlisten = [\"127.0.0.1:0\"]\nadmin = \"off\"\n[cache]\ndisk = \"0\"\n", origin.url()),
    );
    let (_fifth, text) = said(&place, &["--config", config.to_str().unwrap()], &[]);
    assert_eq!(line(&text), "none: a restart forgets what is stored", "{text}");
    // A folder is on a disk already.
    let (_sixth, text) = said(&TestFolder::with_site(), &[&["site"], &listen[..]].concat(), &[]);
    assert_eq!(line(&text), "", "{text}");
}

/// Standard output is the access log and nothing else.
#[test]
fn standard_output_has_the_access_log_and_nothing_else() {
    let place = TestFolder::with_site();
    let mut command = place.serve(&["site", "--log-format", "json"]);
    let mut running = Running::spawn(command.env("SEAWALL_LOG", "debug").stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut stdout = running.stdout();
    let log = thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    running.told("READY=1");
    for _ in 0..3 {
        super::running::get(&place, "/");
    }
    running.reload();
    super::running::get(&place, "/again");
    assert!(running.stop().success());
    let text = log.join().expect("no panic").expect("read");
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut targets: Vec<_> = lines.iter().map(|line| line["target"].as_str().unwrap()).collect();
    // Each worker hands on its own lines.
    targets.sort_unstable();
    assert_eq!(targets, ["/", "/", "/", "/again"]);
}
