//! A real Ghost behind the real binary: what readers, members and editors see, and what Ghost is asked.
//!
//! `make ghost` installs the Ghost and fills a blog (`bring-up`, `seed.mjs`); each test has its own copy of it, on ports of its own, and a tap
//! between Seawall and Ghost that counts. The fast tests are a part of `make test`; `make spec-ghost` runs the long ones, too.
//!
//! Expected values come from Ghost, and from what its readers may expect. With `SEAWALL_GHOST_WITHOUT_SEAWALL=1` the readers ask Ghost
//! itself: what the tests of changes and members say must hold then, too, or the test is wrong.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod api;
mod away;
mod blog;
mod browser;
mod changes;
mod client;
mod comments;
mod crowd;
mod editor;
mod editors;
mod load;
mod members;
mod moved;
mod moving;
mod negotiation;
mod poison;
mod private;
mod readers;
mod recognition;
mod slow;
mod tap;
mod theme;
mod webhooks;
