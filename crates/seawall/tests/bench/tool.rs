//! The command, run as in a script.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// Returns `seawall`, with this home and nothing of whoever runs the tests.
pub(crate) fn seawall() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seawall"));
    bare(&mut command);
    command
}

/// Takes the environment away from a command, but for what programs need to be found.
pub(crate) fn bare(command: &mut Command) -> &mut Command {
    let path = std::env::var("PATH").unwrap_or_default();
    command.env_clear().env("PATH", format!("{path}:/usr/sbin:/sbin")).env("HOME", "/nonexistent").stdin(Stdio::null())
}

/// Holds what a run wrote, and how it ended.
#[derive(Debug)]
pub(crate) struct BenchResult {
    pub(crate) code: Option<i32>,
    pub(crate) json: Value,
    pub(crate) complaints: String,
}

impl BenchResult {
    pub(crate) fn of(output: &Output) -> Self {
        let text = String::from_utf8_lossy(&output.stdout);
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{complaints}"));
        Self { code: output.status.code(), json, complaints }
    }

    /// Returns a number at this path, such as `latency.p99`.
    pub(crate) fn number(&self, path: &str) -> f64 {
        self.at(path).as_f64().unwrap_or_else(|| panic!("no number at {path}: {self:#?}"))
    }

    pub(crate) fn count(&self, path: &str) -> u64 {
        self.at(path).as_u64().unwrap_or_else(|| panic!("no count at {path}: {self:#?}"))
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap_or_else(|| panic!("no text at {path}: {self:#?}"))
    }

    pub(crate) fn at(&self, path: &str) -> &Value {
        path.split('.').fold(&self.json, |value, name| &value[name])
    }

    /// Returns the failures that occurred, by class.
    pub(crate) fn errors(&self) -> Vec<(String, u64)> {
        let errors = self.at("errors").as_object().expect("errors by class");
        errors.iter().filter_map(|(class, count)| Some((class.clone(), count.as_u64().filter(|count| *count > 0)?))).collect()
    }
}

/// Runs `seawall bench` with these arguments and reads its JSON.
pub(crate) fn bench(arguments: &[&str]) -> BenchResult {
    let output = seawall().args(["bench", "--format", "json", "--quiet"]).args(arguments).output().expect("the program can be run");
    BenchResult::of(&output)
}

/// Runs it behind other words, such as `taskset -c 0`.
pub(crate) fn bench_behind(words: &[&str], arguments: &[&str]) -> BenchResult {
    let mut command = Command::new(words[0]);
    bare(&mut command).args(&words[1..]).arg(env!("CARGO_BIN_EXE_seawall")).args(["bench", "--format", "json", "--quiet"]).args(arguments);
    BenchResult::of(&command.output().unwrap_or_else(|error| panic!("{}: {error}", words[0])))
}

/// Runs it as it is, for those who look at what it says to people.
pub(crate) fn said(arguments: &[&str]) -> Output {
    seawall().arg("bench").args(arguments).output().expect("the program can be run")
}

/// Returns where a program is.
pub(crate) fn program(name: &str) -> String {
    // `make` exports the name also where nobody gave it: an empty one says nothing.
    let given = (name == "caddy").then(|| std::env::var("CADDY_BIN").ok()).flatten().filter(|path| !path.is_empty());
    given.unwrap_or_else(|| {
        let path = std::env::var("PATH").unwrap_or_default();
        let go = format!("{}/go/bin", std::env::var("HOME").unwrap_or_default());
        let folders = path.split(':').chain(["/usr/sbin", "/sbin", &go]);
        let found = folders.map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
        found.unwrap_or_else(|| panic!("{name} is missing: crates/seawall/tests/bench/bring-up")).display().to_string()
    })
}
