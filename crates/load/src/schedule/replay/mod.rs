//! Replays a log: what its visitors asked, at the moments at which they asked it, up to a hundred times as fast.
//!
//! Logs have whole seconds, and are written when a request ends, so their lines are a little out of order. All lines are read first, sorted by
//! their second, and spread evenly within it in the order of the log: the same log is always the same schedule. Contents are not in a log, so only
//! safe methods are replayed, unless it is asked for.

mod line;

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher as _, RandomState},
    io::{self, BufRead, BufReader, Read},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use serde::{Deserialize, Serialize};

use self::line::{Line, seconds};
use super::{ReplayedLine, Schedule};
use crate::{
    output::quantity::counted,
    requests::{Origin, Request, RequestSet},
};

/// The most lines that are read. Each that is replayed needs 36 bytes while they are sorted and 24 later (360 and 240 MB for all), and up to 40 more
/// while the log is read, if each has a visitor of its own.
pub const LINES_MAX: u64 = 10_000_000;

/// The most different requests. A line with another one is left out.
pub const REQUESTS_MAX: usize = 1_000_000;

/// The most bytes of all different requests together. They are kept three times while the log is read.
pub const REQUESTS_BYTES_MAX: usize = 128 << 20;

/// The longest line; a longer one counts as unreadable.
pub const LINE_MAX: usize = 64 << 10;

/// The fastest replay.
pub const SPEED_MAX: f64 = 100.0;

/// The longest time that a log may span before it is sped up, in days: a month, and a day for lines that were written late. A line further away has
/// most likely a wrong date, and would be waited for.
pub const SPAN_DAYS_MAX: u32 = 32;

const DAY: u32 = 24 * 3600;

/// Says how a log is replayed.
#[derive(Debug, Clone)]
pub struct Options {
    /// The origin that is asked, whichever the log is of.
    pub origin: Origin,
    /// The factor by which it is faster than it was, from 1 to [`SPEED_MAX`].
    pub speed: f64,
    /// Whether methods that change something are replayed (without content: it is not in the log).
    pub unsafe_methods: bool,
}

/// Holds what was found in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSummary {
    /// Lines that were read.
    pub lines: u64,
    /// Lines that are replayed.
    pub replayed: u64,
    /// The replayed lines that were answered with a status of 400 or more when the log was written: errors to be expected again.
    pub failed_then: u64,
    /// Different requests.
    pub requests: u64,
    /// Visitors: addresses of clients.
    pub visitors: u64,
    /// Lines that are not in the format.
    pub unreadable: u64,
    /// The number of the first of them, from 1.
    pub unreadable_first: Option<u64>,
    /// Lines whose request is not one of HTTP, as TLS that was sent to a port without.
    pub not_http: u64,
    /// Lines left out because their method changes something.
    pub unsafe_methods: u64,
    /// Lines left out because there are more different requests than [`REQUESTS_MAX`] or [`REQUESTS_BYTES_MAX`] allow.
    pub too_many: u64,
    /// Whether lines behind number [`LINES_MAX`] were not read.
    pub cut: bool,
    /// Whether a compressed log ends before its end. What is there is replayed.
    #[serde(default)]
    pub truncated: bool,
    /// The time that the log spans, in seconds, before it is sped up.
    pub span: u64,
}

impl fmt::Display for LogSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replayed, span, .. } = self;
        let lines = counted(self.lines, "line");
        let (requests, visitors) = (counted(self.requests, "different request"), counted(self.visitors, "visitor"));
        write!(f, "{replayed} of {lines}: {requests} of {visitors} in {span} s")?;
        match (self.unreadable_first, self.unreadable) {
            (Some(line), 1) => write!(f, "; line {line} is not in the Combined Log Format")?,
            (Some(first), unreadable) => write!(f, "; {unreadable} are not in the Combined Log Format, the first is line {first}")?,
            (None, _) => {}
        }
        if self.not_http > 0 {
            write!(f, "; {} {} not HTTP", self.not_http, if self.not_http == 1 { "is" } else { "are" })?;
        }
        if self.unsafe_methods > 0 {
            write!(f, "; {} left out because their method changes something", self.unsafe_methods)?;
        }
        if self.too_many > 0 {
            write!(f, "; {} left out because there are too many different requests", self.too_many)?;
        }
        if self.cut {
            write!(f, "; lines after number {LINES_MAX} were not read")?;
        }
        if self.truncated {
            write!(f, "; the compressed file is not complete, and what is there was read")?;
        }
        if self.failed_then > 0 {
            write!(f, "; {} had a status of 400 or more then", self.failed_then)?;
        }
        Ok(())
    }
}

/// The reason why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("the log cannot be read further than line {0}")]
    Read(u64, #[source] io::Error),
    /// Nothing in it can be replayed.
    #[error("nothing to replay: {0}")]
    Nothing(LogSummary),
    /// Its lines are too far apart.
    #[error(
        "line {0} is more than {SPAN_DAYS_MAX} days away from a line before it, which is the most that a log may span: \
         one of them has a wrong date, or the log has to be cut"
    )]
    Span(u64),
    /// The speed is not valid.
    #[error("a log is replayed from 1 to {SPEED_MAX} times as fast, not {0} times")]
    Speed(f64),
}

/// A log that is ready to be replayed.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The requests to make.
    pub requests: RequestSet,
    /// The schedule of the requests.
    pub schedule: Schedule,
    /// The summary of the log.
    pub summary: LogSummary,
}

/// Reads logs: one, or several that follow each other.
#[derive(Debug)]
pub struct Reader {
    options: Options,
    rows: Vec<Row>,
    requests: Vec<Request>,
    /// Numbers of requests by their method, target and fields.
    numbers: HashMap<Box<[u8]>, u32>,
    bytes: usize,
    /// Numbers of visitors, by a hash of their address: of ten million, two have the same in one of 400,000 logs, and become one visitor.
    visitors: HashMap<u64, u32>,
    hash: RandomState,
    /// The second of the first line. Others count from it.
    first: Option<i64>,
    /// The first and the last second of the lines that are replayed.
    span: Option<(i32, i32)>,
    /// The first line that makes this too long.
    far: Option<u64>,
    summary: LogSummary,
}

/// A line that will be replayed.
#[derive(Debug, Clone, Copy)]
struct Row {
    second: i32,
    request: u32,
    visitor: u32,
}

impl Reader {
    /// Makes a reader that has read nothing.
    ///
    /// # Errors
    /// When the speed is out of its range.
    pub fn new(options: Options) -> Result<Self, Error> {
        if !(1.0..=SPEED_MAX).contains(&options.speed) {
            return Err(Error::Speed(options.speed));
        }
        Ok(Self {
            options,
            rows: Vec::new(),
            requests: Vec::new(),
            numbers: HashMap::new(),
            bytes: 0,
            visitors: HashMap::new(),
            hash: RandomState::new(),
            first: None,
            span: None,
            far: None,
            summary: LogSummary::default(),
        })
    }

    /// Reads a log, compressed with gzip or not.
    ///
    /// # Errors
    /// When it cannot be read to its end.
    pub fn log(&mut self, log: impl Read) -> Result<(), Error> {
        let mut log = BufReader::with_capacity(64 << 10, log);
        let begin = log.fill_buf().map_err(|error| Error::Read(self.summary.lines, error))?;
        if begin.starts_with(&[0x1f, 0x8b]) {
            self.lines(BufReader::with_capacity(64 << 10, MultiGzDecoder::new(log)))
        } else {
            self.lines(log)
        }
    }

    fn lines(&mut self, mut log: impl BufRead) -> Result<(), Error> {
        let mut line = Vec::new();
        let mut time = (Vec::new(), None);
        loop {
            match next_line(&mut log, &mut line) {
                Ok(true) => {}
                Ok(false) => break,
                // The file of a disk that was full, or of a copy that goes on.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && self.summary.lines > 0 => {
                    self.summary.truncated = true;
                    break;
                }
                Err(error) => return Err(Error::Read(self.summary.lines, error)),
            }
            if self.summary.lines == LINES_MAX {
                self.summary.cut = true;
                break;
            }
            self.summary.lines += 1;
            if line.is_empty() {
                continue;
            }
            let read = Line::read(&line).and_then(|line| {
                // Most lines have the time of the line before.
                if time.0 != line.time {
                    time = (line.time.to_vec(), seconds(line.time));
                }
                let second = time.1?;
                let second = second - *self.first.get_or_insert(second);
                // What does not fit is too far away in any case.
                let second = i32::try_from(second).unwrap_or(if second < 0 { i32::MIN } else { i32::MAX });
                Some((line, second))
            });
            match read {
                Some((line, second)) => self.line(&line, second),
                None => {
                    self.summary.unreadable += 1;
                    self.summary.unreadable_first.get_or_insert(self.summary.lines);
                }
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &Line<'_>, second: i32) {
        let Some((method, target)) = line.asked() else {
            self.summary.not_http += 1;
            return;
        };
        // RFC 9110 §9.2.1. A tunnel cannot be replayed at all.
        let is_safe = matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE");
        if method == "CONNECT" || !is_safe && !self.options.unsafe_methods {
            self.summary.unsafe_methods += 1;
            return;
        }
        let Some(request) = self.request(method, target, line) else {
            self.summary.too_many += 1;
            return;
        };
        let next = number(self.visitors.len());
        let visitor = *self.visitors.entry(self.hash.hash_one(line.client)).or_insert(next);
        let (first, last) = self.span.map_or((second, second), |(first, last)| (first.min(second), last.max(second)));
        self.span = Some((first, last));
        if last.abs_diff(first) > SPAN_DAYS_MAX * DAY {
            self.far.get_or_insert(self.summary.lines);
        }
        self.summary.replayed += 1;
        self.summary.failed_then += u64::from(line.status >= 400);
        self.rows.push(Row { second, request, visitor });
    }

    /// Returns the number of the request that a line asks. `None` means that there are too many different ones.
    fn request(&mut self, method: &str, target: &str, line: &Line<'_>) -> Option<u32> {
        let fields = [("referer", line.referer.as_deref()), ("user-agent", line.agent.as_deref())];
        let fields = fields.map(|(name, value)| Some((name, std::str::from_utf8(value?).ok().filter(|value| is_value(value))?)));
        let mut key = Vec::with_capacity(256);
        let parts = [Some(method), Some(target), fields[0].map(|field| field.1), fields[1].map(|field| field.1)];
        for part in parts {
            key.extend_from_slice(part.unwrap_or_default().as_bytes());
            // No part has a zero in it.
            key.push(0);
        }
        if let Some(number) = self.numbers.get(key.as_slice()) {
            return Some(*number);
        }
        if self.requests.len() == REQUESTS_MAX || self.bytes + key.len() > REQUESTS_BYTES_MAX {
            return None;
        }
        self.bytes += key.len();
        self.requests.push(Request {
            origin: 0,
            method: method.to_owned(),
            target: target.to_owned(),
            fields: fields.into_iter().flatten().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            body: Bytes::new(),
            weight: 1,
        });
        let new = number(self.requests.len() - 1);
        self.numbers.insert(key.into(), new);
        Some(new)
    }

    /// Sorts what was read, and makes a schedule of it.
    ///
    /// # Errors
    /// When there is nothing to replay.
    pub fn finish(self) -> Result<Replay, Error> {
        let Self { options, mut rows, requests, numbers, visitors, far, mut summary, .. } = self;
        if let Some(line) = far {
            return Err(Error::Span(line));
        }
        summary.requests = requests.len() as u64;
        summary.visitors = visitors.len() as u64;
        drop((numbers, visitors));
        // Lines of one second stay in the order of the log.
        rows.sort_by_key(|row| row.second);
        let (Some(first), Some(last)) = (rows.first().map(|row| row.second), rows.last().map(|row| row.second)) else {
            return Err(Error::Nothing(summary));
        };
        summary.span = u64::from(last.abs_diff(first));
        let (mut begin, mut end) = (0, 0);
        // The iterator knows its length, so the moments are written where they stay.
        let moments: Arc<[ReplayedLine]> = (0..rows.len())
            .map(|n| {
                let row = rows[n];
                if n == end {
                    begin = n;
                    end = n + rows[n..].iter().take_while(|other| other.second == row.second).count();
                }
                let at = f64::from(row.second.abs_diff(first)) + (n - begin) as f64 / (end - begin) as f64;
                ReplayedLine { at: Duration::from_secs_f64(at / options.speed), request: row.request, visitor: row.visitor }
            })
            .collect();
        let requests = RequestSet { origins: vec![options.origin], requests, ..RequestSet::default() };
        Ok(Replay { requests, schedule: Schedule::Replay { moments }, summary })
    }
}

/// Reads the next line, without its end; an empty one if it is longer than [`LINE_MAX`], which is then skipped. Returns whether there was one.
fn next_line(log: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let most = LINE_MAX as u64 + 1;
    if log.by_ref().take(most).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        line.pop_if(|byte| *byte == b'\r');
    } else if line.len() > LINE_MAX {
        // Not in the format, whatever it was.
        line.clear();
        line.push(b'?');
        log.skip_until(b'\n')?;
    }
    Ok(true)
}

/// Returns whether a text may be the value of a field (RFC 9110 §5.5). A log may hold what a client never could have sent.
fn is_value(text: &str) -> bool {
    text.trim_matches([' ', '\t']).len() == text.len() && !text.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f)
}

/// Returns the number of a request or visitor; there are never more than lines.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;
    use crate::schedule::{ClientEvent, Due, Share};

    fn options() -> Options {
        Options { origin: Origin { tls: false, host: "127.0.0.1".to_owned(), port: 80 }, speed: 1.0, unsafe_methods: false }
    }

    fn read(log: &str, options: Options) -> Result<Replay, Error> {
        let mut reader = Reader::new(options)?;
        reader.log(log.as_bytes())?;
        reader.finish()
    }

    /// Returns what is asked when: milliseconds, target, visitor.
    fn asked(replay: &Replay) -> Vec<(u64, &str, u32)> {
        let ask = |due: Due| match due.what {
            ClientEvent::Ask { request: Some(request), visitor: Some(visitor) } => {
                (u64::try_from(due.at.as_millis()).expect("small"), replay.requests.requests[request as usize].target.as_str(), visitor)
            }
            other => panic!("{other:?} is not what a log leads to"),
        };
        replay.schedule.dues(Share::ALL, 0).map(ask).collect()
    }

    const LOG: &str = r#"192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "GET /a HTTP/1.1" 200 5 "-" "Mozilla"
192.0.2.2 - - [10/Oct/2000:13:55:38 +0000] "GET /b HTTP/1.1" 200 5 "-" "Mozilla"
192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "GET /c HTTP/1.1" 404 5 "-" "Mozilla"
noise
192.0.2.3 - - [10/Oct/2000:13:55:36 +0000] "POST /d HTTP/1.1" 200 5 "-" "Mozilla"
192.0.2.3 - - [10/Oct/2000:13:55:36 +0000] "\x16\x03\x01" 400 5 "-" "-"
192.0.2.2 - - [10/Oct/2000:15:55:36 +0200] "GET /a HTTP/1.1" 200 5 "-" "Mozilla"
192.0.2.2 - - [10/Oct/2000:15:55:36 +0200] "GET /a HTTP/1.1" 200 5 "https://news.example/" "Mozilla"
"#;

    #[test]
    fn lines_are_sorted_by_their_second_and_spread_within_it() {
        let replay = read(LOG, options()).expect("a log");
        assert_eq!(asked(&replay), [(0, "/a", 0), (250, "/c", 0), (500, "/a", 1), (750, "/a", 1), (2000, "/b", 1)]);
        assert_eq!(replay.schedule.end(), Some(Duration::from_secs(2)));
    }

    #[test]
    fn what_a_log_has_and_what_is_left_out_is_told() {
        let replay = read(LOG, options()).expect("a log");
        let summary = LogSummary {
            lines: 8,
            replayed: 5,
            failed_then: 1,
            requests: 4,
            visitors: 2,
            unreadable: 1,
            unreadable_first: Some(4),
            not_http: 1,
            unsafe_methods: 1,
            span: 2,
            ..LogSummary::default()
        };
        assert_eq!(replay.summary, summary);
        assert_eq!(
            summary.to_string(),
            "5 of 8 lines: 4 different requests of 2 visitors in 2 s; line 4 is not in the Combined Log Format; 1 is not HTTP; \
             1 left out because their method changes something; 1 had a status of 400 or more then"
        );
    }

    #[test]
    fn a_log_is_replayed_faster_and_unsafe_methods_when_asked_for() {
        let replay = read(LOG, Options { speed: 10.0, unsafe_methods: true, ..options() }).expect("a log");
        assert_eq!(asked(&replay), [(0, "/a", 0), (20, "/c", 0), (40, "/d", 2), (60, "/a", 1), (80, "/a", 1), (200, "/b", 1)]);
    }

    #[test]
    fn requests_carry_the_fields_of_the_log_and_nothing_that_a_field_cannot_have() {
        let log = r#"192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "GET /?q={x} HTTP/1.1" 200 5 "https://a.example/" "{bot}"
192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "a\x0d\x0aHost: b" "-""#;
        let replay = read(log, options()).expect("a log");
        let [first, second] = &replay.requests.requests[..] else { panic!("two requests") };
        assert_eq!(first.target, "/?q={x}", "braces are asked as they stand");
        let fields = [("referer", "https://a.example/"), ("user-agent", "{bot}")];
        assert_eq!(first.fields, fields.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(second.fields.is_empty());
    }

    #[test]
    fn logs_compressed_with_gzip_and_several_of_them_are_one() {
        let (older, newer) = LOG.split_at(LOG.find("noise").expect("is there"));
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(older.as_bytes()).expect("to memory");
        let mut reader = Reader::new(options()).expect("a speed");
        reader.log(newer.as_bytes()).expect("text");
        reader.log(gzip.finish().expect("to memory").as_slice()).expect("gzip");
        let replay = reader.finish().expect("a log");
        assert_eq!(asked(&replay).iter().map(|(at, ..)| *at).collect::<Vec<_>>(), [0, 250, 500, 750, 2000]);
        assert_eq!((replay.summary.lines, replay.summary.unreadable_first), (8, Some(1)));
    }

    #[test]
    fn what_is_there_once_is_told_as_one() {
        let summary = LogSummary { lines: 1, replayed: 1, requests: 1, visitors: 1, ..LogSummary::default() };
        assert_eq!(summary.to_string(), "1 of 1 line: 1 different request of 1 visitor in 0 s");
    }

    #[test]
    fn a_log_that_cannot_be_replayed_says_why() {
        let nothing = read("{\"a\":1}\n{}\n", options()).expect_err("nothing").to_string();
        assert_eq!(
            nothing,
            "nothing to replay: 0 of 2 lines: 0 different requests of 0 visitors in 0 s; 2 are not in the Combined Log Format, the first is line 1"
        );
        assert!(matches!(read("", options()), Err(Error::Nothing(_))));
        let mut reader = Reader::new(options()).expect("a speed");
        let error = reader.log(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff][..]).expect_err("broken gzip").to_string();
        assert_eq!(error, "the log cannot be read further than line 0");
        let speed = read(LOG, Options { speed: 0.5, ..options() }).expect_err("too slow").to_string();
        assert_eq!(speed, "a log is replayed from 1 to 100 times as fast, not 0.5 times");
    }

    #[test]
    fn a_line_longer_than_the_bound_is_skipped() {
        let mut log = "x".repeat(LINE_MAX * 3);
        log.push('\n');
        log.push_str(LOG);
        let replay = read(&log, options()).expect("a log");
        assert_eq!((replay.summary.lines, replay.summary.replayed, replay.summary.unreadable), (9, 5, 2));
    }

    #[test]
    fn a_line_that_is_far_from_the_others_is_named_and_not_waited_for() {
        let line = |date: &str| format!("192.0.2.1 - - [{date}:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 5\n");
        let error = |log: &str| read(log, options()).expect_err("too long").to_string();
        for date in ["01/Jan/1900", "01/Jan/1970", "10/Oct/2026", "12/Nov/2000", "10/Oct/9998"] {
            let told = error(&format!("{LOG}{}", line(date)));
            assert!(told.starts_with("line 9 is more than 32 days away"), "{told}");
        }
        assert!(error(&format!("{}{LOG}", line("01/Jan/1970"))).contains("line 2 is "), "either may be wrong");
        let month = format!("{}{}", line("01/Oct/2000"), line("01/Nov/2000"));
        assert_eq!(read(&month, options()).expect("a month").summary.span, 31 * 24 * 3600);
        let unsafe_one = format!("{LOG}{}", line("01/Jan/1970").replace("GET", "POST"));
        assert_eq!(read(&unsafe_one, options()).expect("what is not replayed is not waited for").summary.span, 2);
    }

    #[test]
    fn a_compressed_log_that_is_cut_off_is_replayed_as_far_as_it_goes() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
        gzip.write_all(LOG.as_bytes()).expect("to memory");
        let whole = gzip.finish().expect("to memory");
        let mut reader = Reader::new(options()).expect("a speed");
        // The trailer, and the end of the last line.
        reader.log(&whole[..whole.len() - 8 - 20]).expect("what is there");
        let replay = reader.finish().expect("a log");
        assert_eq!((replay.summary.lines, replay.summary.replayed, replay.summary.truncated), (7, 4, true));
        assert!(replay.summary.to_string().contains("the compressed file is not complete"), "{}", replay.summary);
    }
}
