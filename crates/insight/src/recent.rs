//! The last requests that were not plain hits, each in one text and a few numbers.

use std::{collections::VecDeque, sync::Arc};

use admin_api::RequestLine;

use crate::{
    address::hidden,
    facts::{CLASSES, CacheResult, EndedRequest},
    memory::of_text,
    names::{Name, Names},
    text::append,
};

/// Requests that are kept.
pub(crate) const RECENT_MAX: usize = 4_096;

/// Bytes of all texts of a request.
const TEXT_BYTES_MAX: usize = 208;
/// Bytes of the longest texts of a request. The path gets what the others leave.
const ID_BYTES_MAX: usize = 36;
const TRACE_BYTES_MAX: usize = 32;
const METHOD_BYTES_MAX: usize = 16;
const HOST_BYTES_MAX: usize = 40;
const DETAIL_BYTES_MAX: usize = 36;

/// The last requests.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    entries: VecDeque<Entry>,
    /// The number of the last one.
    last: u64,
    text_bytes: usize,
}

/// A request as it is kept.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    at: u64,
    site: Arc<str>,
    /// The texts, one after the other, and where each of them ends.
    text: Box<str>,
    ends: [u8; TEXTS],
    rule: Name,
    status: u16,
    result: CacheResult,
    class: u8,
    flags: u8,
    version: u8,
    bytes: u64,
    micros: u64,
    /// The microseconds that the origin took. The highest value says that the origin was not asked.
    origin_micros: u64,
}

const TEXTS: usize = 8;
const HTTPS: u8 = 1;
const COLLAPSED: u8 = 2;
const COMPLETE: u8 = 4;
const VERSIONS: [&str; 4] = ["1.0", "1.1", "2.0", "3.0"];

impl Entry {
    /// Makes an entry. `agent` and `referrer` are the families that were found already.
    pub(crate) fn of(ended: &EndedRequest<'_>, site: Arc<str>, rule: Name, agent: &str, referrer: &str) -> Self {
        let mut text = String::with_capacity(TEXT_BYTES_MAX);
        let mut ends = [0; TEXTS];
        let parts = [
            (ended.id, ID_BYTES_MAX),
            (ended.trace, TRACE_BYTES_MAX),
            (ended.method, METHOD_BYTES_MAX),
            (ended.host, HOST_BYTES_MAX),
            (ended.detail, DETAIL_BYTES_MAX),
            // What comes last is cut first, where all are long.
            (agent, crate::agents::AGENT_BYTES_MAX),
            (referrer, crate::referrers::REFERRER_BYTES_MAX),
        ];
        let mut taken = 0;
        for (at, (part, most)) in parts.into_iter().enumerate() {
            let most = (text.len() + most).min(TEXT_BYTES_MAX - PATH_BYTES_MIN);
            append(&mut text, part, most);
            ends[at] = u8::try_from(text.len()).expect("less than the bound, which is a byte");
            taken = at + 1;
        }
        hidden(&mut text, ended.target, TEXT_BYTES_MAX, |_| true);
        ends[taken] = u8::try_from(text.len()).expect("less than the bound, which is a byte");
        let place = |names: &[&str], name: &str| names.iter().position(|of| *of == name).and_then(|at| u8::try_from(at).ok());
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        Self {
            at: ended.at,
            site,
            // What grew with room for the longest is copied: cutting the rest off would cost an allocator ten times as much.
            text: text.as_str().into(),
            ends,
            rule,
            status: ended.status,
            result: ended.result,
            class: place(&CLASSES, ended.class).unwrap_or(7),
            flags: flag(ended.scheme == "https", HTTPS) | flag(ended.collapsed, COLLAPSED) | flag(ended.complete, COMPLETE),
            version: place(&VERSIONS, ended.version).unwrap_or(1),
            bytes: ended.bytes,
            micros: micros(ended.took),
            origin_micros: ended.origin_time.map_or(u64::MAX, |took| micros(took).min(u64::MAX - 1)),
        }
    }

    fn line(&self, number: u64, names: &Names) -> RequestLine {
        let part = |at: usize| {
            let start = at.checked_sub(1).map_or(0, |before| usize::from(self.ends[before]));
            self.text[start..usize::from(self.ends[at])].to_owned()
        };
        RequestLine {
            number,
            at: self.at,
            id: part(0),
            trace: part(1),
            site: self.site.to_string(),
            scheme: if self.flags & HTTPS != 0 { "https" } else { "http" }.to_owned(),
            host: part(3),
            method: part(2),
            path: part(7),
            version: VERSIONS[usize::from(self.version)].to_owned(),
            status: self.status,
            result: self.result.name().to_owned(),
            rule: names.text(self.rule),
            detail: part(4),
            class: CLASSES[usize::from(self.class)].to_owned(),
            collapsed: self.flags & COLLAPSED != 0,
            complete: self.flags & COMPLETE != 0,
            bytes: self.bytes,
            micros: self.micros,
            origin_micros: (self.origin_micros != u64::MAX).then_some(self.origin_micros),
            agent: part(5),
            referrer: part(6),
        }
    }
}

/// Bytes that a path is left at least.
const PATH_BYTES_MIN: usize = 64;

/// Returns a time in microseconds.
pub(crate) fn micros(took: std::time::Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

impl Ring {
    pub(crate) fn push(&mut self, entry: Entry) {
        if self.entries.len() == RECENT_MAX
            && let Some(oldest) = self.entries.pop_front()
        {
            self.text_bytes -= of_text(&oldest.text);
        }
        self.text_bytes += of_text(&entry.text);
        self.entries.push_back(entry);
        self.last += 1;
    }

    /// Returns the number of the last request.
    pub(crate) const fn last(&self) -> u64 {
        self.last
    }

    /// Goes on from a number, so that who follows over a restart misses nothing.
    pub(crate) const fn go_on_from(&mut self, last: u64) {
        self.last = last;
    }

    /// Returns the number of the first request that is still there; one beyond the last if there is none.
    pub(crate) fn first(&self) -> u64 {
        self.last + 1 - self.entries.len() as u64
    }

    /// Returns at most `count` requests from this number on.
    pub(crate) fn from(&self, number: u64, count: usize, names: &Names) -> Vec<RequestLine> {
        let first = self.first();
        let skipped = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
        let entries = self.entries.iter().enumerate().skip(skipped).take(count);
        entries.map(|(at, entry)| entry.line(first + at as u64, names)).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.text_bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_request_is_shown_as_it_ended_without_values_of_its_query() {
        let names = Names::default();
        let ended = EndedRequest {
            at: 1_000,
            id: "0a1b",
            trace: "4bf92f3577b34da6a3ce929d0e0e4736",
            site: Some(1),
            scheme: "https",
            host: "a.example",
            method: "GET",
            target: "/a?b=secret",
            version: "2.0",
            status: 200,
            result: CacheResult::Bypass,
            rule: "cookie",
            detail: "PHPSESSID",
            class: "document",
            collapsed: false,
            complete: true,
            bytes: 10,
            took: Duration::from_millis(2),
            origin_time: Some(Duration::from_millis(1)),
            ..EndedRequest::default()
        };
        let mut ring = Ring::default();
        ring.push(Entry::of(&ended, "site".into(), names.number(ended.rule), "curl", ""));
        let line = &ring.from(0, 10, &names)[0];
        let expected = RequestLine {
            number: 1,
            at: 1_000,
            id: "0a1b".into(),
            trace: "4bf92f3577b34da6a3ce929d0e0e4736".into(),
            site: "site".into(),
            scheme: "https".into(),
            host: "a.example".into(),
            method: "GET".into(),
            path: "/a?b=…".into(),
            version: "2.0".into(),
            status: 200,
            result: "bypass".into(),
            rule: "cookie".into(),
            detail: "PHPSESSID".into(),
            class: "document".into(),
            complete: true,
            bytes: 10,
            micros: 2_000,
            origin_micros: Some(1_000),
            agent: "curl".into(),
            ..RequestLine::default()
        };
        assert_eq!(*line, expected);
    }

    #[test]
    fn the_last_are_kept_however_long_their_texts_are() {
        let names = Names::default();
        let long = "x".repeat(8_192);
        let ended =
            EndedRequest { id: &long, trace: &long, host: &long, method: &long, detail: &long, target: &long, ..EndedRequest::default() };
        let mut ring = Ring::default();
        for _ in 0..2 * RECENT_MAX {
            ring.push(Entry::of(&ended, "site".into(), Name::NONE, &"a".repeat(24), &"r".repeat(48)));
        }
        assert_eq!((ring.first(), ring.last()), (RECENT_MAX as u64 + 1, 2 * RECENT_MAX as u64));
        assert!(ring.bytes() <= RECENT_MAX * (size_of::<Entry>() + TEXT_BYTES_MAX + 16), "{}", ring.bytes());
        assert!(ring.from(0, 1, &names)[0].path.len() >= PATH_BYTES_MIN - 3);
    }
}
