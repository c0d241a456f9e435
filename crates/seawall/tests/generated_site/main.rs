//! A generated site of 2,000 pages, as its owner serves it: every link is followed, every byte is compared with the folder; then the folder
//! is swapped for the next build while readers are reading.
//!
//! The site is made by Hugo and served by the real binary with nothing configured.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod crawl;
mod hugo;
mod random;
mod reader;
mod server;
mod swap;
