//! What is in `deploy/monitoring`, judged by promtool and held to the metrics that there are.

use std::{collections::BTreeSet, fs, io::Write, process::Stdio};

use testkit::{exposition, free_port};

use crate::{
    dashboards,
    place::{Origin, Seawall},
    programs::{bare, program},
    prometheus::monitoring,
};

/// Runs promtool in `deploy/monitoring`, and returns what it says where it finds something.
fn promtool(arguments: &[&str], input: &str) -> Result<(), String> {
    let mut command = bare(program("promtool"));
    let mut child = command
        .args(arguments)
        .current_dir(monitoring())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("taken");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(said) }
}

#[test]
fn promtool_finds_nothing_wrong_with_the_metrics() {
    let port = free_port();
    let _origin = Origin::at(port);
    let seawall = Seawall::before(port, "");
    for path in ["/kept-1", "/kept-1", "/session-1", "/private-1", "/broken-1"] {
        seawall.ask(&format!("GET {path}"), "blog.example.org", "");
    }
    seawall.ask("GET /kept-1", "blog.example.org", "cookie: wordpress_logged_in_1=a\r\n");
    assert_eq!(promtool(&["check", "metrics"], &seawall.told("/metrics")), Ok(()));
}

#[test]
fn promtool_takes_the_configuration_and_the_rules() {
    assert_eq!(promtool(&["check", "config", "prometheus.yml"], ""), Ok(()));
    assert_eq!(promtool(&["check", "rules", "rules/recording.yml", "rules/alerts.yml"], ""), Ok(()));
}

/// Each alert fires when it should, and clears: by the time of promtool, not by ours.
#[test]
fn each_alert_fires_and_clears() {
    for file in ["rules/alerts.test.yml", "rules/recording.test.yml", "rules/week.test.yml"] {
        assert_eq!(promtool(&["test", "rules", file], ""), Ok(()), "{file}");
    }
    let read = |name: &str| fs::read_to_string(monitoring().join("rules").join(name)).expect(name);
    let tests = read("alerts.test.yml") + &read("week.test.yml");
    for alert in read("alerts.yml").lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let cases: Vec<bool> = tests
            .split("alertname: ")
            .filter_map(|case| case.strip_prefix(alert)?.strip_prefix('\n'))
            .map(|case| !case.trim_start().starts_with("exp_alerts: []"))
            .collect();
        assert_eq!(cases, [false, true, false], "{alert}: calm, firing, and calm again");
    }
}

/// Whoever renames a metric is told here who reads it.
#[test]
fn dashboards_and_rules_name_metrics_that_there_are() {
    let port = free_port();
    let _origin = Origin::at(port);
    let seawall = Seawall::before(port, "");
    let families = exposition::parse(&seawall.told("/metrics"));
    let mut known: BTreeSet<String> = ["up", "scrape_samples_scraped"].map(ToOwned::to_owned).into();
    for family in families {
        if family.kind == "histogram" {
            known.extend(["_bucket", "_sum", "_count"].map(|suffix| format!("{}{suffix}", family.name)));
        }
        known.insert(family.name);
    }
    let mut written: Vec<(String, String)> = dashboards::expressions().into_iter().map(|of| (of.panel.clone(), of.text("1m"))).collect();
    for name in ["recording.yml", "alerts.yml"] {
        written.push((name.to_owned(), fs::read_to_string(monitoring().join("rules").join(name)).expect(name)));
    }
    for (place, text) in written {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
        let names = words.filter(|word| (word.starts_with("seawall_") || word.starts_with("process_")) && !word.contains(':'));
        for name in names {
            assert!(known.contains(name), "{place}: there is no {name}");
        }
    }
}
