//! Debian's Prometheus with the configuration of `deploy/monitoring`, in front of a real Seawall.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use testkit::free_port;

use crate::{
    dashboards::{self, Expression},
    place::{Origin, Readers, Seawall, ask, quiet},
    programs::{Ended, bare, program, until, wait_for, within},
};

/// Returns the folder that operators copy.
pub(crate) fn monitoring() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring").canonicalize().expect("deploy/monitoring")
}

/// A running Prometheus.
pub(crate) struct Prometheus {
    port: u16,
    _process: Ended,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes this Seawall, with the configuration that is in `deploy/monitoring`, but for the address and the time between two scrapes.
    pub(crate) fn before(seawall: &Seawall, interval: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = fs::read_to_string(monitoring().join("prometheus.yml")).expect("prometheus.yml");
        assert!(config.contains("\"127.0.0.1:9180\"") && config.contains("_interval: 15s") && config.contains("- rules/"));
        let config = config
            .replace("127.0.0.1:9180", &format!("127.0.0.1:{}", seawall.admin))
            .replace("_interval: 15s", &format!("_interval: {interval}"))
            .replace("- rules/", &format!("- {}/rules/", monitoring().display()));
        fs::write(folder.path().join("prometheus.yml"), config).expect("written");
        let port = free_port();
        let mut command = bare(program("prometheus"));
        command
            .arg(format!("--config.file={}/prometheus.yml", folder.path().display()))
            .arg(format!("--storage.tsdb.path={}/data", folder.path().display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let process = Ended(quiet(&mut command).spawn().expect("prometheus"));
        wait_for(port, "Prometheus");
        let prometheus = Self { port, _process: process, _folder: folder };
        until("Prometheus is ready", || ask(port, "GET /-/ready HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").0 == 200);
        prometheus
    }

    /// Asks its HTTP API. An error is a failure of the test.
    fn api(&self, path: &str) -> Value {
        let (status, text) = ask(self.port, &format!("GET /api/v1/{path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"));
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {status}: {error}: {text}"));
        assert_eq!(answer["status"], "success", "{path}: {text}");
        answer["data"].clone()
    }

    /// Returns the values that an expression has now, without those that are not numbers.
    pub(crate) fn values(&self, expression: &str) -> Vec<f64> {
        let data = self.api(&format!("query?query={}", escaped(expression)));
        let results = data["result"].as_array().unwrap_or_else(|| panic!("{expression}: {data}"));
        let value = |of: &Value| of["value"][1].as_str().and_then(|text| text.parse().ok());
        results.iter().filter_map(value).filter(|value: &f64| value.is_finite()).collect()
    }

    /// Returns the names of the alerts that are told now.
    pub(crate) fn firing(&self) -> Vec<String> {
        let data = self.api("alerts");
        let alerts = data["alerts"].as_array().expect("alerts");
        alerts.iter().filter(|of| of["state"] == "firing").filter_map(|of| Some(of["labels"]["alertname"].as_str()?.to_owned())).collect()
    }

    /// Returns every rule: its name, its expression, and what is wrong with it.
    pub(crate) fn rules(&self) -> Vec<(String, String, Option<String>)> {
        let data = self.api("rules");
        let rules = data["groups"].as_array().expect("groups").iter().flat_map(|group| group["rules"].as_array().expect("rules"));
        let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
        let rule = |of: &Value| (text(&of["name"]), text(&of["query"]), of["lastError"].as_str().map(ToOwned::to_owned));
        rules.map(rule).collect()
    }
}

fn escaped(text: &str) -> String {
    let byte = |b: u8| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") };
    text.bytes().map(byte).collect()
}

/// Every panel of every dashboard shows something, every rule is understood, and what is recorded has values: a real Prometheus, which reads a real
/// Seawall each second, says so.
#[test]
fn every_expression_of_the_dashboards_and_rules_gives_data() {
    let port = free_port();
    let _origin = Origin::at(port);
    let seawall = Seawall::before(port, "");
    let prometheus = Prometheus::before(&seawall, "1s");
    let _readers = Readers::of(&seawall, Duration::from_millis(5));
    let expressions = dashboards::expressions();
    assert!(expressions.len() > 50, "{}", expressions.len());
    let mut silent: Vec<Expression> = expressions;
    let mut recorded: Vec<String> = Vec::new();
    until("Prometheus knows the rules", || {
        recorded = prometheus.rules().into_iter().map(|(name, ..)| name).filter(|name| name.contains(':')).collect();
        !recorded.is_empty()
    });
    let mut quiet = Vec::new();
    // Rates need two scrapes, and failures a moment.
    let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        within(Duration::from_secs(90), "all expressions have values", || {
            silent.retain(|of| prometheus.values(&of.text("20s")).is_empty());
            recorded.retain(|name| prometheus.values(name).is_empty());
            quiet = silent.iter().map(|of| format!("{}: {}", of.panel, of.text("20s"))).chain(recorded.iter().cloned()).collect();
            quiet.is_empty()
        });
    }));
    assert!(waited.is_ok(), "without a value:\n{}", quiet.join("\n"));
    for (name, expression, error) in prometheus.rules() {
        assert_eq!(error, None, "{name}: {expression}");
    }
    assert_eq!(prometheus.values("max_over_time(scrape_samples_scraped[1m]) <= 2000").len(), 1, "few enough lines");
}
