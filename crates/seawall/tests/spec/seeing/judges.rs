//! Programs of others that count what is in an access log: jq reads the log as it is, GoAccess the same lines in the combined format with the host in
//! front. `make seeing` installs both.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use admin::Seen;
use serde_json::Value as Json;

/// Requests and bytes by what the cache did (`none`: it was not asked), and requests by the hundreds of their status.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    requests: u64,
    bytes: u64,
    by_result: BTreeMap<String, (u64, u64)>,
    errors: [u64; 2],
}

impl Counted {
    /// Returns what Seawall shows.
    pub(super) fn shown(seen: &Seen) -> Self {
        let by_result = seen.by_result.iter().filter(|line| line.requests > 0);
        Self {
            requests: seen.totals.requests,
            bytes: seen.totals.bytes,
            by_result: by_result.map(|line| (line.name.clone(), (line.requests, line.bytes))).collect(),
            errors: [seen.totals.client_errors, seen.totals.server_errors],
        }
    }

    /// Leaves out the requests that never asked the cache, for which GoAccess has no word.
    pub(super) fn with_result(mut self) -> Self {
        self.by_result.remove("none");
        self
    }
}

/// Runs jq with this program over a log, and returns what it writes.
fn jq(arguments: &[&str], log: &Path) -> Vec<u8> {
    let output = Command::new("jq").args(arguments).arg(log).stdin(Stdio::null()).output().expect("jq, which `make seeing` installs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Lets jq add up a log in JSON, by host.
pub(super) fn by_jq(log: &Path) -> BTreeMap<String, Counted> {
    let sums = r#"reduce inputs as $line ({};
        .[$line.host][$line.cache // "none" | ascii_downcase][$line.status / 100 | floor | tostring] |=
            {requests: (.requests + 1), bytes: (.bytes + $line.body_bytes)})"#;
    let sums: BTreeMap<String, BTreeMap<String, BTreeMap<String, Json>>> =
        serde_json::from_slice(&jq(&["--null-input", "--compact-output", sums], log)).expect("JSON");
    let number = |sum: &Json, name: &str| sum[name].as_u64().expect("a number");
    let counted = |results: BTreeMap<String, BTreeMap<String, Json>>| {
        let mut counted = Counted::default();
        for (result, statuses) in results {
            for (hundreds, sum) in statuses {
                let (requests, bytes) = (number(&sum, "requests"), number(&sum, "bytes"));
                let of_result = counted.by_result.entry(result.clone()).or_default();
                *of_result = (of_result.0 + requests, of_result.1 + bytes);
                (counted.requests, counted.bytes) = (counted.requests + requests, counted.bytes + bytes);
                match hundreds.as_str() {
                    "4" => counted.errors[0] += requests,
                    "5" => counted.errors[1] += requests,
                    _ => {}
                }
            }
        }
        counted
    };
    sums.into_iter().map(|(host, results)| (host, counted(results))).collect()
}

/// Has jq write the lines of a log in the combined format, those of one host or of all.
pub(super) fn combined(log: &Path, host: Option<&str>, to: &Path) {
    let lines = r#"select($host == "" or .host == $host) |
        "\(.host) \(.client) - - [\(.time | fromdate | strftime("%d/%b/%Y:%H:%M:%S +0000"))] " +
        "\"\(.method) \(.target) HTTP/\(.version)\" \(.status) \(.body_bytes) \"\(.referer)\" \"\(.user_agent)\" \(.cache // "-")""#;
    fs::write(to, jq(&["--raw-output", "--arg", "host", host.unwrap_or_default(), lines], log)).expect("written");
}

/// Lets GoAccess add up a log in the combined format.
pub(super) fn by_goaccess(log: &Path) -> Counted {
    let report = log.with_extension("report.json");
    let mut goaccess = Command::new("goaccess");
    goaccess.arg(log).args(["--no-global-config", "--no-progress", "--tz=UTC", "--date-format=%d/%b/%Y", "--time-format=%T"]);
    goaccess.arg(r#"--log-format=%v %h %^[%d:%t %^] "%r" %s %b "%R" "%u" %C"#).arg("--output").arg(&report);
    let status = goaccess.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("goaccess, which `make seeing` installs");
    assert!(status.success(), "{status}");
    let report: Json = serde_json::from_reader(File::open(report).expect("a report")).expect("JSON");
    let (general, number) = (&report["general"], |value: &Json| value.as_u64().expect("a number"));
    assert_eq!(number(&general["failed_requests"]), 0, "it understands every line");
    let lines = |panel: &str| report[panel]["data"].as_array().cloned().unwrap_or_default();
    let mut counted = Counted { requests: number(&general["valid_requests"]), bytes: number(&general["bandwidth"]), ..Counted::default() };
    for line in lines("cache_status") {
        let name = line["data"].as_str().expect("a name").to_lowercase();
        counted.by_result.insert(name, (number(&line["hits"]["count"]), number(&line["bytes"]["count"])));
    }
    for line in lines("status_codes") {
        let requests = number(&line["hits"]["count"]);
        match line["data"].as_str().and_then(|name| name.bytes().next()) {
            Some(b'4') => counted.errors[0] = requests,
            Some(b'5') => counted.errors[1] = requests,
            _ => {}
        }
    }
    counted
}
