//! Random histories of a small site, judged by a plain reading of RFC 9111.
//!
//! Readers ask, the origin takes its time, fails or breaks off, pages are edited, purges come at any moment, time passes. Whatever a reader gets
//! must be explained by something the origin said ([`judge`]); the judge knows no code of the cache. When all is quiet, nobody waits, and
//! what the store says it holds is what it holds.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

mod history;
mod judge;
mod origin;
mod reader;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// RFC 9111 §4: never stale as fresh, never from before a purge, never another's variant, never another person's page.
    #[test]
    fn whatever_happens_every_answer_is_explained(memory in prop_oneof![Just(64_u64 << 10), Just(16 << 20)], steps in history::steps(90)) {
        history::play(memory, None, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same with a disk beneath, and the process ending at any moment: what it comes back with is explained as well.
    #[test]
    fn and_so_it_is_when_the_process_ends_in_between(memory in prop_oneof![Just(64_u64 << 10), Just(16 << 20)], steps in history::steps(60)) {
        let folder = tempfile::tempdir().expect("a folder");
        history::play(memory, Some(folder.path()), &steps);
    }
}
