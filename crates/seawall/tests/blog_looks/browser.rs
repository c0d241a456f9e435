//! Runs `browser.mjs`, which looks at pages with the tools that `bring-up` installs.

use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

pub(crate) fn installed() -> PathBuf {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").unwrap_or_else(|| variable("HOME").expect("a home").join(".cache"));
    let folder = variable("SEAWALL_BLOG_DIR").unwrap_or_else(|| cache().join("seawall-blog"));
    assert!(folder.join(".complete").exists(), "the tools are not there: run `make spec-blog`, which installs them");
    folder
}

/// Looks at the pages in `facts`, and returns what is wrong.
pub(crate) fn judged(facts: Value) -> Vec<String> {
    judged_by("browser.mjs", facts)
}

/// Runs a script beside this file with `facts`, and returns what is wrong.
pub(crate) fn judged_by(script: &str, mut facts: Value) -> Vec<String> {
    let installed = installed();
    facts["modules"] = installed.display().to_string().into();
    facts["chromium"] = "/usr/bin/chromium".into();
    let mut script = Command::new(installed.join("node"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blog_looks").join(script))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node");
    // It reads all of it before it says anything.
    script.stdin.take().expect("piped").write_all(facts.to_string().as_bytes()).expect("taken");
    let output = script.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).expect("text").lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}
