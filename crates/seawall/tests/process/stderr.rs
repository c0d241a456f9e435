//! What is only told fails nothing: whatever becomes of standard error and standard output, visitors are served and the operator is obeyed.

use std::{fs, process::Stdio};

use super::running::{Deaf, Running, TestFolder, collect, get};

/// Serves, sees an edit, reloads and stops, while nobody reads what it says. With every message there is, as those of a request count too.
#[test]
fn it_does_not_matter_whether_somebody_reads_standard_error() {
    for (what, _deaf, stderr) in Deaf::all() {
        let place = TestFolder::with_blog();
        let log = place.path().join("access.log");
        let mut command = place.serve(&["blog", "--access-log", log.to_str().unwrap()]);
        let running = Running::start(command.env("SEAWALL_LOG", "trace").stdout(Stdio::null()).stderr(stderr));
        drop(command);
        for _ in 0..50 {
            assert!(get(&place, "/first/").starts_with("HTTP/1.1 200 "), "{what}");
        }
        place.write("blog/first.md", "# First\n\nversion two\n");
        running.until("the edit is seen", || get(&place, "/first/").contains("version two"));
        place.write("blog/first.md", "no title");
        place.write("blog/second.md", "# Second\n\nversion three\n");
        running.reload();
        place.write("blog/first.md", "# First\n\nversion four\n");
        running.until("an edit is seen after a mistake and a reload", || get(&place, "/first/").contains("version four"));
        running.until("so is a new post", || get(&place, "/second/").contains("version three"));
        assert_eq!(running.stop().code(), Some(0), "{what}");
        let lines = fs::read_to_string(&log).expect("a log").lines().filter(|line| line.contains("GET /first/")).count();
        assert!(lines >= 50, "{what}: the log has all requests, those before the end too, and not {lines}");
    }
}

/// The access log is counted and lost where nobody takes it; nothing else is.
#[test]
fn it_does_not_matter_whether_somebody_reads_the_access_log() {
    for (what, _deaf, stdout) in Deaf::all() {
        let place = TestFolder::with_site();
        let mut command = place.serve(&["site", "--admin", "127.0.0.1:0"]);
        let mut running = Running::spawn(command.stdout(stdout).stderr(Stdio::piped()));
        drop(command);
        let messages = collect(running.stderr());
        running.told("READY=1");
        for _ in 0..50 {
            assert!(get(&place, "/").starts_with("HTTP/1.1 200 "), "{what}");
        }
        running.reload();
        assert!(get(&place, "/").starts_with("HTTP/1.1 200 "), "{what}");
        assert_eq!(running.stop().code(), Some(0), "{what}");
        let messages = messages.join().expect("read");
        let complaints = messages.lines().filter(|line| line.contains("the access log")).count();
        assert_eq!(complaints, 1, "{what}: it is said once\n{messages}");
    }
}

/// Lines that could not be written are in the metrics.
#[test]
fn lost_lines_are_counted() {
    let place = TestFolder::with_site();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
    let mut running = Running::spawn(place.serve(&["site", "--admin", "127.0.0.1:0"]).stdout(full).stderr(Stdio::piped()));
    let admin = admin_address(running.stderr());
    running.told("READY=1");
    for _ in 0..3 {
        get(&place, "/");
    }
    let metrics = || super::running::get_from(admin, "/metrics");
    running.until("three lines are lost", || metrics().lines().any(|line| line == "seawall_log_lost_total 3"));
}

/// A log that was moved away is opened again, also while somebody edits the configuration and it has a mistake.
#[test]
fn a_log_is_rotated_whatever_the_configuration_says() {
    let place = TestFolder::with_site();
    let listen = format!("[server]\nlisten = [\"unix:{}\"]\nadmin = \"off\"\n[log]\naccess = \"./access.log\"\n", place.socket().display());
    let config = place.write("seawall.toml", &format!("source = \"site\"\n{listen}"));
    let running = Running::start(place.serve(&["--config", config.to_str().unwrap()]).stdout(Stdio::null()).stderr(Stdio::null()));
    get(&place, "/before");
    let log = place.path().join("access.log");
    let has = |path: &std::path::Path, text: &str| fs::read_to_string(path).is_ok_and(|log| log.contains(text));
    running.until("the line is written", || has(&log, "/before"));
    fs::rename(&log, place.path().join("access.log.1")).expect("moved");
    place.write("seawall.toml", &format!("sorce = \"site\"\n{listen}"));
    running.reload();
    get(&place, "/after");
    assert!(running.stop().success());
    assert!(has(&log, "/after") && !has(&place.path().join("access.log.1"), "/after"));
}

/// A command that has done what it was told says so with its exit code, whoever reads the rest.
#[test]
fn a_command_that_has_done_its_work_has_not_failed() {
    for (what, deaf, stdout) in Deaf::all() {
        if matches!(deaf, Deaf::Asleep { .. }) {
            // As with any command, `| less` decides when it goes on.
            continue;
        }
        let place = TestFolder::new();
        let status = place.seawall(&["new", "blog"]).stdout(stdout).status().expect("it runs");
        assert!(status.success(), "{what}");
        assert!(place.path().join("blog").is_dir());
    }
    let place = TestFolder::with_site();
    let (_, _, gone) = Deaf::all().into_iter().next().expect("the first");
    let config = place.write("seawall.toml", "source = \"site\"\n");
    let check = place.seawall(&["check", "--config", config.to_str().unwrap()]).stdout(gone).output().expect("it runs");
    assert!(check.status.success() && check.stderr.is_empty(), "`| head` has seen enough: {check:?}");
    let (_, _, stderr) = Deaf::all().into_iter().next().expect("the first");
    let wrong = place.seawall(&["serve", "nowhere"]).stderr(stderr).status().expect("it runs");
    assert_eq!(wrong.code(), Some(1), "a mistake is one, whether it is read or not");
}

/// Returns where the admin API is, as the server says it.
pub(crate) fn admin_address(stderr: impl std::io::Read + Send + 'static) -> std::net::SocketAddr {
    use std::io::{BufRead, BufReader};
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let address = lines.find_map(|line| line.trim().strip_prefix("admin")?.trim().strip_prefix("http://")?.split_once('/')?.0.parse().ok());
    std::thread::spawn(move || lines.for_each(drop));
    address.expect("it says where")
}
