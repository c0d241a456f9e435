//! The answer to whoever would run the schedule of a site's software, where it is run from here: WordPress's `wp-cron.php`.
//!
//! Nobody's request starts a process for it. WordPress's request to itself has the value of a lock, which is kept for whoever runs the schedule: see
//! [`Schedule::take`].

use std::net::IpAddr;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use parking_lot::Mutex;
use policy::{Trace, single_slashes};
use semantics::{Timestamp, target::normal_path};

use crate::{
    Body, Site,
    admission::{FirstStep, IncomingRequest},
};

/// The parameter with the value of the lock.
const LOCK: &str = "doing_wp_cron=";

/// The digits behind the point of a value: PHP writes it with `%.22F`.
const LOCK_DIGITS: usize = 22;

/// The time by which a value may differ from our clock. WordPress sends its request at once.
const LOCK_AGE_MAX_SECONDS: u64 = 10;

/// The schedule of a site's software, which is run from here.
#[derive(Debug)]
pub struct Schedule {
    /// The path of the script that runs it.
    path: String,
    heard: Mutex<LockValues>,
}

/// The values of locks that requests had: the first one of each group since the last one was taken.
#[derive(Debug, Default)]
struct LockValues {
    /// From this machine or its networks, where WordPress is.
    near: Option<String>,
    /// From anywhere else. WordPress may reach itself by a public address.
    far: Option<String>,
}

impl Schedule {
    /// Makes it for the script at this path.
    #[must_use]
    pub fn at(path: String) -> Self {
        Self { path, heard: Mutex::default() }
    }

    /// Returns whether it is for the script at this path.
    #[must_use]
    pub fn is_at(&self, path: &str) -> bool {
        self.path == path
    }

    /// Takes a value that may be the one of WordPress's lock now, the likeliest first.
    pub fn take(&self, now: Timestamp) -> Option<String> {
        let mut heard = self.heard.lock();
        let recent = |value: &mut Option<String>| value.take().filter(|value| is_recent(value, now));
        let LockValues { near, far } = &mut *heard;
        recent(near).or_else(|| recent(far))
    }

    /// Hears the value that a request had.
    fn hear(&self, address: Option<IpAddr>, query: &str, now: Timestamp) {
        let Some(value) = query.split('&').find_map(|parameter| parameter.strip_prefix(LOCK)) else { return };
        if !is_lock(value) || !is_recent(value, now) {
            return;
        }
        let mut heard = self.heard.lock();
        let place = if address.is_none_or(is_near) { &mut heard.near } else { &mut heard.far };
        place.get_or_insert_with(|| value.to_owned());
    }

    /// Returns whether a path leads to the script, as a server before PHP may read it: nginx takes two slashes for one. Upper and lower case are the same
    /// on some disks.
    fn covers(&self, path: &str) -> bool {
        // Nearly every path is told apart without a look at its escapes.
        let path =
            if path.contains('%') || path.contains("//") || path.contains("/.") { normal_path(path).ok() } else { Some(path.into()) };
        path.is_some_and(|path| {
            let path = single_slashes(&path);
            let (start, rest) = path.as_bytes().split_at(self.path.len().min(path.len()));
            start.eq_ignore_ascii_case(self.path.as_bytes()) && matches!(rest, [] | [b'/', ..])
        })
    }
}

fn is_lock(value: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    value.split_once('.').is_some_and(|(whole, rest)| is_number(whole) && whole.len() <= 12 && is_number(rest) && rest.len() == LOCK_DIGITS)
}

fn is_recent(value: &str, now: Timestamp) -> bool {
    let seconds = value.split('.').next().and_then(|seconds| seconds.parse::<u64>().ok());
    seconds.is_some_and(|seconds| seconds.abs_diff(now.as_secs()) <= LOCK_AGE_MAX_SECONDS)
}

fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local(),
    }
}

/// Answers a request that would run the schedule of its site. The answer is that of the script, which says nothing.
pub(crate) fn answer(
    site: &Site,
    incoming: &IncomingRequest,
    now: impl FnOnce() -> Timestamp,
    trace: &mut impl Trace,
) -> Option<Response<Body>> {
    let schedule = site.schedule.as_ref().filter(|schedule| schedule.covers(incoming.path()))?;
    trace.decides(FirstStep::Schedule.name(), true, || "Seawall runs this by itself (cron in [wordpress])".to_owned());
    if let Some(query) = incoming.parts.uri.query() {
        schedule.hear(incoming.client.address, query, now());
    }
    let mut response = Response::new(Body::Full(Bytes::new()));
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_763_870_000);
    const LOCKED: &str = "1763870000.1234560012817382812500";

    #[test]
    fn every_spelling_of_the_path_leads_to_the_script_and_no_other_path() {
        let schedule = Schedule::at("/blog/wp-cron.php".to_owned());
        for path in [
            "//blog/wp-cron.php",
            "/blog///wp-cron.php",
            "/blog/%2e//wp-cron.php",
            "/x/..//blog/WP-Cron.PHP",
            "/blog/wp-cron.php//x",
            "/blog/wp-cron.php",
            "/blog/wp-cron.php/",
            "/blog/wp-cron.php/x",
            "/blog/%77p-cron.php",
            "/blog/./wp-cron.php",
        ] {
            assert!(schedule.covers(path), "{path}");
        }
        for path in ["/wp-cron.php", "/blog/wp-cron.phpx", "/blog/", "/blog/wp-cron", "/blog%2fwp-cron.php", "/blog", "*"] {
            assert!(!schedule.covers(path), "{path}");
        }
    }

    #[test]
    fn the_value_of_a_lock_is_taken_once_and_strangers_come_last() {
        let schedule = Schedule::at("/wp-cron.php".to_owned());
        let (near, far) = (Some([172, 18, 0, 3].into()), Some([203, 0, 113, 7].into()));
        let say = |address, value: &str| schedule.hear(address, &format!("a=1&doing_wp_cron={value}"), NOW);
        say(far, "1763870001.0000000000000000000000");
        say(far, "1763870002.0000000000000000000000");
        say(near, LOCKED);
        assert_eq!(schedule.take(NOW).as_deref(), Some(LOCKED));
        assert_eq!(schedule.take(NOW).as_deref(), Some("1763870001.0000000000000000000000"), "the first of them");
        assert_eq!(schedule.take(NOW), None);
        for odd in ["", "1", "1763870000.12", "1763870000.123456001281738281250x", "1763869900.1234560012817382812500"] {
            say(near, odd);
            assert_eq!(schedule.take(NOW), None, "{odd}");
        }
    }
}
