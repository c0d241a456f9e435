//! A report in a real browser, with scripts on and off. Long: it needs Chromium, and axe-core from npm.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use judges::{Delay, Speaks, Truth};

use super::{
    long,
    tool::{bench, program},
};

/// Returns where `bring-up --browser` of the tests of Ghost puts the browser's driver.
fn driver() -> PathBuf {
    let home = PathBuf::from(std::env::var("HOME").unwrap_or_default());
    let caches = std::env::var("XDG_CACHE_HOME").map_or_else(|_| home.join(".cache"), PathBuf::from);
    std::env::var("SEAWALL_GHOST_DIR").map_or_else(|_| caches.join("seawall-ghost"), PathBuf::from).join("browser")
}

fn run_with_a_stall(folder: &Path) -> (PathBuf, PathBuf) {
    let stall = Delay::Stall { usual: Duration::from_millis(5), begins: Duration::from_millis(1500), lasts: Duration::from_millis(1000) };
    let server = Truth::start(Speaks::Http1, stall);
    let (html, svg) = (folder.join("report.html"), folder.join("charts"));
    let told = bench(&[
        "-c",
        "400",
        "--rate",
        "200/4s",
        "--html",
        html.to_str().expect("text"),
        "--svg",
        svg.to_str().expect("text"),
        &server.url(),
    ]);
    assert_eq!(told.count("requests"), 800);
    (html, svg)
}

/// A report must not need another file, a network or a script.
#[test]
fn a_report_is_one_small_file_that_asks_for_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (html, svg) = run_with_a_stall(folder.path());
    let text = fs::read_to_string(html).expect("a report");
    assert!(text.len() < 300_000, "{} bytes", text.len());
    for reference in ["src=\"http", "src='http", "href=\"http", "url(http", "@import", "rel=\"stylesheet", "<iframe"] {
        let elsewhere = text.match_indices(reference).find(|(at, _)| !text[..*at].ends_with("<a ") && reference != "href=\"http");
        assert!(elsewhere.is_none(), "{reference} in the report");
    }
    assert!(text.contains("<svg"), "charts are part of it");
    let charts: Vec<_> = fs::read_dir(svg).expect("charts").map(|entry| entry.expect("a file").path()).collect();
    assert!(!charts.is_empty());
    for chart in charts {
        let text = fs::read_to_string(&chart).expect("a chart");
        assert!(text.contains("<svg") && text.contains("xmlns=\"http://www.w3.org/2000/svg\""), "{}: stands alone", chart.display());
        assert!(!text.contains("<script") && !text.contains("<foreignObject"), "{}: editors strip what it has", chart.display());
    }
}

#[test]
fn a_report_is_shown_with_scripts_on_and_off_and_is_accessible() {
    if !long() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (html, svg) = run_with_a_stall(folder.path());
    let driver = driver();
    assert!(driver.join("node_modules/playwright-core").exists(), "run `make spec-bench`, which installs the browser's driver");
    let facts = serde_json::json!({
        "modules": driver, "chromium": "/usr/bin/chromium", "report": html, "charts": svg,
        "axe": axe(&driver), "pictures": std::env::var("SEAWALL_BENCH_PICTURES").ok(),
    });
    let mut node = Command::new(program("node"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/report.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("node");
    node.stdin.take().expect("piped").write_all(facts.to_string().as_bytes()).expect("taken");
    let output = node.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}

/// Returns the path of axe-core, fetched once from npm.
fn axe(driver: &Path) -> PathBuf {
    let script = driver.join("axe/node_modules/axe-core/axe.min.js");
    if !script.exists() {
        let done = Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(driver.join("axe"))
            .arg("axe-core@4.11.0")
            .status()
            .expect("npm");
        assert!(done.success() && script.exists(), "axe-core is not there");
    }
    script
}
