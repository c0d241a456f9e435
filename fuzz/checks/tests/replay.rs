//! Every input that the fuzzer's corpora hold, through its check.

#![expect(clippy::disallowed_macros, reason = "which input it was; cargo shows that of a test that fails alone")]

use std::{fs, path::Path};

use fuzz_checks::{CHECKS, origin_response, request_head};

#[test]
fn every_input_of_every_corpus_holds() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    for (name, check) in CHECKS {
        let corpus = corpora.join(name);
        let entries = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
        let mut count = 0;
        for entry in entries {
            let path = entry.expect("a folder that can be read").path();
            let data = fs::read(&path).expect("a file that can be read");
            // Shown only if the check fails: which input it was.
            eprintln!("{}", path.display());
            check(&data);
            count += 1;
        }
        assert!(count > 0, "{} is empty: nothing would be checked", corpus.display());
    }
}

#[test]
fn every_malformed_message_of_the_testkit_holds() {
    for row in testkit::malformed::table() {
        eprintln!("{}", row.name);
        request_head(&row.bytes);
    }
    for row in testkit::malformed::responses() {
        eprintln!("{}", row.name);
        origin_response(&row.bytes);
    }
}

#[test]
fn every_corpus_and_every_target_has_a_check() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (kind, suffix) in [("corpus", ""), ("fuzz_targets", ".rs")] {
        let mut names: Vec<_> = fs::read_dir(folder.join(kind))
            .expect("a folder that can be read")
            .map(|entry| entry.expect("a folder that can be read").file_name().into_string().expect("a plain name"))
            .map(|name| name.trim_end_matches(suffix).to_owned())
            .collect();
        names.sort();
        assert_eq!(names, CHECKS.map(|(name, _)| name), "{kind}");
    }
}
