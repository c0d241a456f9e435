//! What this crate promises not to have.

use std::{fs, path::Path};

/// Returns every file below `folder`, with its text.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push((path.display().to_string(), fs::read_to_string(&path).expect("text")));
        }
    }
    found
}

#[test]
fn no_runtime_and_no_socket_is_among_the_dependencies() {
    let manifest = include_str!("../Cargo.toml");
    let allowed = ["semantics", "bytes", "http", "httparse", "memchr", "thiserror"];
    let dependencies = manifest.split("[dependencies]\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("dependencies");
    let named: Vec<&str> = dependencies.lines().filter_map(|line| line.split('.').next()).collect();
    assert_eq!(named, allowed, "a new dependency is a change of design");
}

#[test]
fn nothing_is_async_and_nothing_opens_a_socket() {
    for (path, text) in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        for absent in ["async ", ".await;", ".await?", "std::net", "std::os", "std::thread", "std::fs"] {
            assert!(!text.contains(absent), "{path} has `{absent}`");
        }
    }
}
