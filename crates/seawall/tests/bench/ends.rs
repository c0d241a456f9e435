//! A run that ends early, or whose standard output does, keeps what it has measured.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use judges::{Delay, Speaks, Truth};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::tool::{bare, seawall};

fn server() -> Truth {
    Truth::start(Speaks::Http1, Delay::Fixed(Duration::from_millis(5)))
}

/// Returns a file of a test, which is not there yet.
fn fresh(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ends-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

fn kept(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let _ = fs::remove_file(path);
    serde_json::from_str(&text).expect("a result")
}

/// Starts a run whose first line is read, so that a second of it is over.
fn begun(arguments: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    // Whoever runs the tests under nohup ignores SIGHUP for all of them.
    let mut command = Command::new("env");
    bare(&mut command).args(["--default-signal=HUP", env!("CARGO_BIN_EXE_seawall"), "bench"]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    assert!(!line.is_empty());
    (child, lines)
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_run_and_takes_neither_files_nor_bounds_with_it() {
    let server = server();
    for format in ["ndjson", "csv"] {
        for fails in [false, true] {
            let path = fresh(format);
            let url = server.url();
            let arguments = ["-c", "2", "-d", "60s", "-q", "--format", format, "-o", path.to_str().expect("UTF-8"), &url];
            let arguments: Vec<&str> = if fails { [&["--fail-if", "rate>1"], &arguments[..]].concat() } else { arguments.to_vec() };
            let (child, lines) = begun(&arguments);
            drop(lines);
            let output = child.wait_with_output().expect("an end");
            let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code() == Some(0), !fails, "{format}: {complaints}");
            assert_eq!(complaints.contains("failed: "), fails, "{format}: {complaints}");
            assert!(!complaints.contains("error"), "{format}: {complaints}");
            assert!(kept(&path)["duration"].as_f64().is_some_and(|duration| duration < 30.0), "{format}");
        }
    }
}

#[test]
fn files_are_written_where_standard_output_takes_nothing() {
    let server = server();
    for format in ["text", "json", "ndjson"] {
        let path = fresh(&format!("full-{format}"));
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let arguments = ["bench", "-c", "2", "-n", "20", "-q", "--format", format, "-o", path.to_str().expect("UTF-8"), &server.url()];
        let output = seawall().args(arguments).stdout(full).output().expect("the program can be run");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && complaints.contains("standard output cannot be written"), "{format}: {complaints}");
        assert_eq!(kept(&path)["requests"], 20, "{format}");
    }
}

#[test]
fn a_signal_ends_a_run_as_ctrl_c_does_and_the_result_is_there() {
    let server = server();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (child, mut lines) = begun(&["-c", "2", "-d", "60s", "-q", "--format", "ndjson", &server.url()]);
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a process");
        kill_process(pid, signal).expect("it runs");
        let mut rest = String::new();
        lines.read_to_string(&mut rest).expect("lines");
        let output = child.wait_with_output().expect("an end");
        assert_eq!(output.status.code(), Some(0), "{signal:?}: {output:?}");
        let last: Value = serde_json::from_str(rest.lines().last().expect("a result")).expect("JSON");
        assert_eq!(last["type"], "result", "{signal:?}");
        assert!(last["duration"].as_f64().is_some_and(|duration| duration < 30.0), "{signal:?}");
    }
}

/// Makes a run, and presses Ctrl-C when it has told this on standard error.
fn ended_after(told: &str, arguments: &[&str]) -> Output {
    let mut child = seawall().arg("bench").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut seen = String::new();
    while !seen.lines().any(|line| line.contains(told)) {
        seen += &lines.next().unwrap_or_else(|| panic!("{told:?} is not told:\n{seen}")).expect("text");
        seen.push('\n');
    }
    kill_process(Pid::from_raw(child.id().cast_signed()).expect("a process"), Signal::INT).expect("it runs");
    seen.extend(lines.map(|line| line.expect("text") + "\n"));
    let output = child.wait_with_output().expect("an end");
    Output { stderr: seen.into_bytes(), ..output }
}

#[test]
fn a_search_that_ctrl_c_ends_says_so_and_what_is_known_of_the_limit() {
    let server = server();
    let path = fresh("limit");
    let output = ended_after(", good", &["--find-limit", "-o", path.to_str().expect("UTF-8"), &server.url()]);
    let (said, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // On a busy machine, the step that was good may be one of the longer ones.
    for part in ["limit       ", "/s, which was good for ", " s; you ended the search before a rate was held"] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    assert!(notes.contains("nothing is written for --output, because no rate was held") && !path.exists(), "{notes}");
    assert_eq!(output.status.code(), Some(0));
}

/// A comparison says with how many of its rounds it was made. Its file holds two results: it is shown again, and taken for neither of them.
#[test]
fn a_comparison_that_ctrl_c_ends_says_so_and_its_file_is_told_apart_from_a_result() {
    let (a, b) = (server(), server());
    let path = fresh("comparison");
    let file = path.to_str().expect("UTF-8");
    let output = ended_after("round 15 of 60", &["--compare", "-c", "2", "-d", "10s", "-o", file, &a.url(), &b.url()]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("You ended the comparison after ") && said.contains(" of 30 pairs of rounds: the intervals are wider"), "{said}");

    let shown = seawall().args(["bench", "compare", file]).output().expect("the program can be run");
    assert_eq!((shown.status.code(), String::from_utf8_lossy(&shown.stdout).as_ref()), (Some(0), said.as_str()), "{shown:?}");
    for (words, remedy) in
        [(["compare", file, file], "Name it alone: seawall bench compare "), (["merge", file, "other.json"], "To see it: ")]
    {
        let refused = seawall().arg("bench").args(words).output().expect("the program can be run");
        let complaint = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains("a comparison of two servers (--compare)") && complaint.contains(remedy), "{complaint}");
    }
    let comparison = kept(&path);
    assert_eq!((&comparison["ended_early"], &comparison["direct"]), (&Value::Bool(true), &Value::Bool(false)));

    // A result alone is nothing to compare.
    fs::write(&path, comparison["a"].to_string()).expect("written");
    let refused = seawall().args(["bench", "compare", file]).output().expect("the program can be run");
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && complaint.contains("is one result"), "{complaint}");
    let _ = fs::remove_file(&path);
}

/// A file in which there is nothing to compare is told by its name, with what it is.
#[test]
fn a_file_without_a_result_is_named_with_what_it_is() {
    let path = fresh("nothing-held");
    let file = path.to_str().expect("UTF-8");
    let searched = [file, "is not a result: it is a search for the highest rate (--find-limit) in which no rate was held", "--hold"];
    let unknown = [file, "is not a result of seawall bench", "missing field `duration`"];
    for (text, code, parts) in [(r#"{"limit": {"rate": 20.0}, "held": null}"#, 2, searched), ("{}", 1, unknown)] {
        fs::write(&path, text).expect("written");
        for words in [vec!["compare", file], vec!["compare", file, file], vec!["merge", file, "other.json"]] {
            let refused = seawall().arg("bench").args(&words).output().expect("the program can be run");
            let complaint = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(code), "{words:?}: {complaint}");
            for part in parts {
                assert!(complaint.contains(part), "{words:?}: {part:?} is not in {complaint}");
            }
        }
    }
    let _ = fs::remove_file(&path);
}

/// `timeout` sends its signal twice: to the process, and to the group that both are in.
#[test]
fn a_run_under_timeout_shows_its_result() {
    let server = server();
    let mut command = Command::new("timeout");
    bare(&mut command).args(["1", env!("CARGO_BIN_EXE_seawall"), "bench", "-c", "2", "-d", "60s", "-q", "--format", "json", &server.url()]);
    let output = command.output().expect("the program can be run");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert!(result["answered"].as_u64().is_some_and(|answered| answered > 0));
}
