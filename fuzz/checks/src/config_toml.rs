//! A configuration file.

use std::fs;

use seawall::config::{check, error::Place};
use tempfile::TempDir;

thread_local!(static PLACE: TempDir = TempDir::new().expect("a temporary folder"));

/// The input is a `seawall.toml`. It means settings, or is refused with errors that each point at a line that is there.
pub fn config_toml(data: &[u8]) {
    // Finding out what a source is walks the folders it names, and only those of this machine could be named.
    if data.windows(2).any(|pair| pair == b"\"/" || pair == b"'/" || pair == b"..") {
        return;
    }
    PLACE.with(|place| {
        let path = place.path().join("seawall.toml");
        fs::write(&path, data).expect("a file can be written");
        let Err(errors) = check(&path) else { return };
        assert!(!errors.0.is_empty(), "refused without a reason");
        let text = String::from_utf8_lossy(data);
        for error in &errors.0 {
            assert!(!error.problem.is_empty());
            if let Place::Line { line, column, text: shown, width, .. } = &error.place {
                assert!(*line >= 1 && *column >= 1 && *width >= 1);
                let there = text.split('\n').nth(line - 1).map(|line| line.trim_end_matches('\r'));
                assert_eq!(there, Some(&**shown), "line {line} is another one");
                assert!(*column <= shown.chars().count() + 1, "column {column} of {shown:?}");
            }
        }
        for colour in [false, true] {
            let report = errors.render(colour);
            let control = |c: char| c.is_control() && c != '\n' && !(colour && c == '\x1b');
            assert!(!report.contains(control), "the report drives the terminal: {report:?}");
        }
    });
}
