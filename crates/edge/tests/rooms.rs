//! Which room of this crate may use which.

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

/// What two protocols share is in `request`, or in the crate `wire`: none of them borrows from another.
#[test]
fn no_protocol_uses_another() {
    const PROTOCOLS: [&str; 3] = ["h1", "h2", "h3"];
    for protocol in PROTOCOLS {
        for (path, text) in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(protocol)) {
            for other in PROTOCOLS.into_iter().filter(|other| *other != protocol) {
                // `wire::h2` is another crate's.
                let own = text.replace(&format!("wire::{other}::"), "");
                let is_named = |line: &&str| {
                    line.contains(&format!("{other}::"))
                        || line.trim_start() == format!("{other},")
                        || line.contains(&format!("crate::{other};"))
                };
                let used = own.lines().filter(|line| !line.trim_start().starts_with("//")).find(is_named);
                assert_eq!(used, None, "{path} uses {other}");
            }
        }
    }
}
