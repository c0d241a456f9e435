//! Finds what belongs to another client.
//!
//! Each client carries a marker in a cookie. A marker begins with a text that no page has, and ends with a checksum, so one search finds the markers of
//! all clients at once, and nothing else is taken for one. A server may answer a client with its own marker; another client's in an answer means that
//! something between them was stored and shared.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use memchr::memmem::Finder;

use super::{WANTED_MAX, content::decoded, template::Template};
use crate::{answer::Answer, results::Leak};

/// The text with which every marker begins. Lower case and letters alone: it stays as it is in URLs, HTML, JSON and names of files.
const PREFIX: &str = "seawallmarker";

/// Hexadecimal digits of a marker: run, client, checksum.
const DIGITS: usize = 8 + 16 + 8;

/// The most leaks that are kept to be shown.
const SHOWN_MAX: usize = 10;

/// The cookie that carries the marker, unless another is asked for.
pub const COOKIE: &str = "seawall-bench={marker}";

/// Gives clients their markers, and finds those of others.
#[derive(Debug, Clone)]
pub(crate) struct LeakCheck {
    /// The cookies of a client, with `{marker}`.
    pub(crate) cookie: Template,
    /// Finders of what markers begin with, as it is sent and in upper case: servers may change the case of what they send back.
    finders: [Finder<'static>; 2],
    run: u32,
}

/// The leaks that were found.
#[derive(Debug, Default)]
pub struct Leaks {
    shown: Mutex<Vec<Leak>>,
    count: AtomicU64,
}

impl Leaks {
    /// Returns how many answers carried what belongs to another client.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the first leaks, at most ten.
    #[must_use]
    pub fn shown(&self) -> Vec<Leak> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn add(&self, leak: impl FnOnce() -> Leak) {
        if self.count.fetch_add(1, Ordering::Relaxed) < SHOWN_MAX as u64 {
            self.shown.lock().unwrap_or_else(PoisonError::into_inner).push(leak());
        }
    }
}

/// A marker of somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForeignMarker {
    /// The client whose marker it is; none: it is of another run.
    pub(super) owner: Option<u64>,
    /// `body`, or the name of a field.
    pub(super) place: String,
}

impl LeakCheck {
    /// Makes a check of a run, which has a number of its own: markers of earlier runs are those of others, too.
    #[must_use]
    pub(crate) fn new(cookie: Template, run: u32) -> Self {
        Self { cookie, finders: [PREFIX.to_owned(), PREFIX.to_ascii_uppercase()].map(|prefix| Finder::new(&prefix).into_owned()), run }
    }

    /// Returns the marker of a client.
    #[must_use]
    pub(crate) fn marker(&self, client: u64) -> String {
        format!("{PREFIX}{:08x}{client:016x}{:08x}", self.run, checksum(self.run, client))
    }

    /// Finds the first marker in an answer that is not the client's own. A content whose coding cannot be taken off fails with an error: nothing can be
    /// said of it.
    pub(super) fn find(&self, answer: &Answer<'_>, client: u64) -> Result<Option<ForeignMarker>, super::content::Unreadable> {
        for (name, value) in answer.fields {
            if let Some(owner) = self.foreign(value, client) {
                return Ok(Some(ForeignMarker { owner, place: String::from_utf8_lossy(name).to_ascii_lowercase() }));
            }
        }
        let Some(body) = answer.body else { return Ok(None) };
        let content = decoded(answer.fields, body, 4 * WANTED_MAX)?;
        Ok(self.foreign(&content, client).map(|owner| ForeignMarker { owner, place: "body".to_owned() }))
    }

    /// Returns the owner of the first marker that is not `client`'s.
    fn foreign(&self, text: &[u8], client: u64) -> Option<Option<u64>> {
        self.finders.iter().flat_map(|finder| finder.find_iter(text)).find_map(|at| {
            let digits = text.get(at + PREFIX.len()..)?.get(..DIGITS)?;
            let digits = std::str::from_utf8(digits).ok()?;
            let run = u32::from_str_radix(&digits[..8], 16).ok()?;
            let owner = u64::from_str_radix(&digits[8..24], 16).ok()?;
            let valid = u32::from_str_radix(&digits[24..], 16).ok()? == checksum(run, owner);
            (valid && (run, owner) != (self.run, client)).then_some((run == self.run).then_some(owner))
        })
    }
}

/// Returns the checksum of a marker, FNV-1a: enough to tell a marker from a text that quotes half of one.
fn checksum(run: u32, client: u64) -> u32 {
    let bytes = run.to_be_bytes().into_iter().chain(client.to_be_bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::{content::gzip, template::Braces};

    fn check(run: u32) -> LeakCheck {
        LeakCheck::new(Template::read(COOKIE, Braces::Cookie).expect("valid"), run)
    }

    fn find(fields: &[(&[u8], &[u8])], body: &[u8]) -> Option<(Option<u64>, String)> {
        let found = check(1).find(&Answer { status: 200, fields, body: Some(body) }, 5).expect("readable");
        found.map(|found| (found.owner, found.place))
    }

    #[test]
    fn another_clients_marker_is_found_wherever_it_stands() {
        let (mine, yours, older) = (check(1).marker(5), check(1).marker(6), check(2).marker(5));
        let page = |marker: &str| format!("<p>Hello {marker}!</p>").into_bytes();
        assert_eq!(find(&[], &page(&mine)), None);
        assert_eq!(find(&[], &page(&yours)), Some((Some(6), "body".to_owned())));
        assert_eq!(find(&[], &page(&format!("{mine}{mine} {yours}"))), Some((Some(6), "body".to_owned())));
        assert_eq!(find(&[], &page(&older)), Some((None, "body".to_owned())));
        assert_eq!(find(&[(b"Content-Encoding", b"gzip")], &gzip(&page(&yours))), Some((Some(6), "body".to_owned())));
        let set = format!("session={yours}; Path=/");
        assert_eq!(find(&[(b"Set-Cookie", set.as_bytes())], b""), Some((Some(6), "set-cookie".to_owned())));
        assert_eq!(find(&[(b"Location", format!("/?{yours}").as_bytes())], &page(&mine)), Some((Some(6), "location".to_owned())));
        assert_eq!(find(&[], &page(&yours.to_uppercase())), Some((Some(6), "body".to_owned())));
        assert_eq!(find(&[], &page(&mine.to_uppercase())), None);
    }

    #[test]
    fn what_is_no_whole_marker_is_none() {
        let yours = check(1).marker(6);
        let mut wrong = yours.clone();
        wrong.replace_range(yours.len() - 1.., if yours.ends_with('0') { "1" } else { "0" });
        assert_eq!(find(&[], wrong.as_bytes()), None);
        assert_eq!(find(&[], &yours.as_bytes()[..yours.len() - 1]), None);
        assert_eq!(find(&[], "seawallmarker and words é, more of them, and more".as_bytes()), None);
    }

    #[test]
    fn the_first_leaks_are_shown_and_all_are_counted() {
        let leaks = Leaks::default();
        for client in 0..25 {
            leaks.add(|| Leak { url: String::new(), client, owner: None, place: String::new() });
        }
        assert_eq!((leaks.count(), leaks.shown().len()), (25, 10));
    }
}
