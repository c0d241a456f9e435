//! A real WordPress behind the real binary: what readers, commenters, customers and editors see, and what PHP is asked.
//!
//! `make wordpress` installs the WordPress and fills a blog (`bring-up`, `seed.php`). Each test has its own copy of it, with a php-fpm and a
//! database of its own; one MariaDB serves all tests. A script that PHP runs before any other counts the requests. The fast tests are a part
//! of `make test`; `make spec-wordpress` runs the long ones, too.
//!
//! Expected values come from WordPress, and from what its readers may expect. With `SEAWALL_WORDPRESS_WITHOUT_SEAWALL=1` the readers ask an
//! nginx without a cache: what the tests of changes and people say must hold then, too, or the test is wrong.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod away;
mod blog;
mod browser;
mod changes;
#[path = "../ghost/client.rs"]
#[allow(dead_code, reason = "Ghost's tests use all of it")]
mod client;
mod cron;
#[path = "../ghost/crowd.rs"]
mod crowd;
mod database;
mod editor;
#[path = "../ghost/moved.rs"]
mod moved;
mod moving;
mod people;
mod plugins;
mod poison;
mod process;
mod readers;
mod recognition;
mod seeing;
mod slow;
mod witness;
