//! The part of a stored response beside its body: everything that reuse asks, and the head as it goes over the wire.
//!
//! The head is kept serialised, not as a map: a hit copies it in one piece, and it costs its own bytes instead of a map's two kilobytes.
//! The fields that a 304 repeats (RFC 9110 §15.4.5) stand first, so that the head of a 304 is a prefix of the other. Behind the head stand
//! the fields that are not shown: what the origin says to us alone, which must be known again when a 304 updates the rest, and the names of
//! those that may not be stored.

mod encoding;

use std::{ops::Range, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use policy::KeepTerms;
use semantics::{
    Timestamp,
    coding::{Coding, has_own_tags, tag_of},
    date::parse_http_date,
    decimal,
    freshness::Freshness,
    vary::Vary,
};

use crate::{Class, collapse::ErrorScope};

/// The pipeline's part of a stored response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub(crate) status: StatusCode,
    pub(crate) freshness: Freshness,
    /// The moment until which it is fresh, as `freshness` says: for a hit.
    pub(crate) fresh_until: Timestamp,
    /// The moment at which its age was zero.
    pub(crate) born: Timestamp,
    pub(crate) vary: Vary,
    pub(crate) last_modified: Option<Timestamp>,
    pub(crate) for_cookies: bool,
    pub(crate) for_authorization: bool,
    /// The requests that are answered with this error, as one of them may have caused it; `None`: all. Kept in memory alone.
    pub(crate) only_for: Option<ErrorScope>,
    /// Whether there may be other forms of its content: then its `Vary` names `Accept-Encoding`.
    pub(crate) codable: bool,
    /// The class of its content, as its `Content-Type` says.
    pub(crate) class: Class,
    /// Status line and field lines, each with its line end; from `shown` on, lines that no client gets to see.
    head: Box<[u8]>,
    shown: u32,
    /// The field lines that a 304 repeats.
    confirming: Range<u32>,
    etag: Range<u32>,
    /// The beginning of the line with the length, the last of those shown; without one, their end.
    length: u32,
}

/// A form of the content that is sent instead of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) coding: Coding,
    /// Its length in bytes.
    pub(crate) length: u64,
}

/// Fields that are repeated in a 304 (RFC 9110 §15.4.5), and `Last-Modified` for clients that know no better validator.
const CONFIRMING: [HeaderName; 7] =
    [header::CACHE_CONTROL, header::CONTENT_LOCATION, header::DATE, header::ETAG, header::EXPIRES, header::VARY, header::LAST_MODIFIED];

/// Returns whether a field is not shown: the origin says it to us alone, or it is the range that was asked for, in a part.
fn is_hidden(name: &HeaderName) -> bool {
    *name == header::RANGE || policy::is_of_dialect(name)
}

/// Fields that are written anew for every response. `Cache-Status` is not among them: ours is added behind what inner caches said (RFC 9211
/// §2).
const OURS: [&str; 2] = ["age", "x-cache"];

impl store::Record for Record {
    fn weight(&self) -> usize {
        let vary = match &self.vary {
            Vary::Star => 0,
            Vary::Nominated(fields) => fields.iter().map(|(_, value)| 64 + value.as_ref().map_or(0, Vec::len)).sum(),
        };
        self.head.len() + vary
    }

    fn encode(&self, out: &mut Vec<u8>) {
        encoding::encode(self, out);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        encoding::decode(bytes)
    }
}

impl Record {
    /// Makes the record of a response with these fields. `length` is that of its content, if it is known by now.
    pub(crate) fn new(status: StatusCode, headers: &HeaderMap, length: Option<u64>, kept: KeepTerms, vary: Vary) -> Self {
        let mut head = Vec::with_capacity(512);
        head.extend_from_slice(b"HTTP/1.1 ");
        head.extend_from_slice(status.as_str().as_bytes());
        head.push(b' ');
        head.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
        head.extend_from_slice(b"\r\n");
        let start = offset(&head);
        let (mut etag, mut last_modified) = (0..0, None);
        let (mut behind, mut hidden) = (Vec::with_capacity(512), Vec::new());
        // One pass over what is there: looking up each of the names would cost a hash and a search each.
        for (name, value) in headers {
            if CONFIRMING.contains(name) {
                let at = offset(&head) + offset(name.as_str().as_bytes()) + 2;
                if *name == header::ETAG && etag.is_empty() {
                    etag = at..at + offset(value.as_bytes());
                } else if *name == header::LAST_MODIFIED && last_modified.is_none() {
                    last_modified = Some(value);
                }
                write_line(&mut head, name.as_str(), value.as_bytes());
            } else if is_hidden(name) {
                write_line(&mut hidden, name.as_str(), value.as_bytes());
            } else if *name != header::CONTENT_LENGTH && !OURS.contains(&name.as_str()) && !kept.omitted.contains(name) {
                write_line(&mut behind, name.as_str(), value.as_bytes());
            }
        }
        let confirming = start..offset(&head);
        head.extend_from_slice(&behind);
        let length_at = offset(&head);
        // A 204 has no content, and so none to give the length of (RFC 9110 §8.6).
        if let Some(length) = length.filter(|_| status != StatusCode::NO_CONTENT) {
            write_line(&mut head, "content-length", length.to_string().as_bytes());
        }
        let shown = offset(&head);
        head.extend_from_slice(&hidden);
        for name in &kept.omitted {
            write_line(&mut head, name.as_str(), b"");
        }
        Self {
            status,
            shown,
            fresh_until: kept.freshness.fresh_until(),
            born: kept.freshness.response_time - kept.freshness.initial_age,
            freshness: kept.freshness,
            vary,
            last_modified: last_modified.and_then(|value| parse_http_date(value.as_bytes())),
            for_cookies: kept.for_cookies,
            for_authorization: kept.for_authorization,
            only_for: None,
            codable: false,
            class: Class::of_response(headers),
            // A copy, as the allocator takes longer to shorten what is there.
            head: head.as_slice().into(),
            confirming,
            etag,
            length: length_at,
        }
    }

    /// Returns this record as one that arrived so long before `now`, for a record that another machine made by its own clock.
    pub(crate) fn aged(self, now: Timestamp, age: Duration) -> Self {
        let freshness = Freshness { response_time: now - age, ..self.freshness };
        Self { fresh_until: freshness.fresh_until(), born: freshness.response_time - freshness.initial_age, freshness, ..self }
    }

    /// Returns the entity tag, as sent.
    pub(crate) fn etag(&self) -> Option<&[u8]> {
        (!self.etag.is_empty()).then(|| self.slice(&self.etag))
    }

    /// Returns the head of a full response, without the fields that are written anew.
    pub(crate) fn head(&self) -> &[u8] {
        self.slice(&(0..self.shown))
    }

    /// Writes the head of a full response; that of a form with its own tag, coding and length.
    #[inline]
    pub(crate) fn write_head(&self, form: Option<Form>, out: &mut Vec<u8>) {
        let Some(Form { coding, length }) = form else {
            out.extend_from_slice(self.head());
            return;
        };
        // Room for everything at once, so that each piece is only a copy.
        out.reserve(self.shown as usize + 64);
        self.write_tagged(0..self.length, Some(coding), out);
        out.extend_from_slice(match coding {
            Coding::Gzip => b"content-encoding: gzip\r\ncontent-length: ",
            Coding::Brotli => b"content-encoding: br\r\ncontent-length: ",
            Coding::Zstd => b"content-encoding: zstd\r\ncontent-length: ",
        });
        decimal::write(length, out);
        out.extend_from_slice(b"\r\n");
    }

    /// Writes the field lines of a 304 about the content in this coding.
    pub(crate) fn write_confirming(&self, coding: Option<Coding>, out: &mut Vec<u8>) {
        self.write_tagged(self.confirming.clone(), coding, out);
    }

    /// Writes a part of the head that has the whole tag in it or nothing of it, with the tag that a form has.
    fn write_tagged(&self, part: Range<u32>, coding: Option<Coding>, out: &mut Vec<u8>) {
        let tag = self.slice(&self.etag);
        match coding {
            Some(coding) if has_own_tags(tag) => {
                // In front of the quote that ends it, as `tag_of` has it.
                let quote = self.etag.end - 1;
                out.extend_from_slice(self.slice(&(part.start..quote)));
                out.push(b'-');
                out.extend_from_slice(coding.token().as_bytes());
                out.extend_from_slice(self.slice(&(quote..part.end)));
            }
            _ => out.extend_from_slice(self.slice(&part)),
        }
    }

    /// Returns the fields, for everything but a hit.
    pub(crate) fn headers(&self) -> HeaderMap {
        fields(self.slice(&(self.confirming.start..self.shown)))
    }

    /// Returns the names and values of the field lines that are shown.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        lines(self.slice(&(self.confirming.start..self.shown)))
    }

    /// Returns the fields of a form of the content.
    pub(crate) fn headers_of(&self, form: Option<Form>) -> HeaderMap {
        let mut headers = self.headers();
        if let Some(Form { coding, length }) = form {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            self.tag_as(Some(coding), &mut headers);
        }
        headers
    }

    /// Replaces the tag by that of a form.
    pub(crate) fn tag_as(&self, coding: Option<Coding>, headers: &mut HeaderMap) {
        if let Some(tag) = self.etag().and_then(|tag| HeaderValue::from_bytes(&tag_of(tag, coding)).ok()) {
            headers.insert(header::ETAG, tag);
        }
    }

    /// Returns the fields with those that are not shown, which a 304 updates. Those that may not be stored have an empty value.
    pub(crate) fn all_headers(&self) -> HeaderMap {
        fields(self.head.get(self.confirming.start as usize..).unwrap_or_default())
    }

    /// Returns the names of the fields that may not be stored.
    pub(crate) fn omitted(&self) -> Vec<HeaderName> {
        let hidden = self.hidden();
        hidden.iter().filter(|(name, value)| value.is_empty() && !is_hidden(name)).map(|(name, _)| name.clone()).collect()
    }

    /// Returns the `Range` that asked for it, if it is a part.
    pub(crate) fn part(&self) -> Option<Box<[u8]>> {
        let mut hidden = lines(self.head.get(self.shown as usize..).unwrap_or_default());
        hidden.find(|(name, _)| *name == header::RANGE.as_str().as_bytes()).map(|(_, range)| range.into())
    }

    fn hidden(&self) -> HeaderMap {
        fields(self.head.get(self.shown as usize..).unwrap_or_default())
    }

    fn slice(&self, range: &Range<u32>) -> &[u8] {
        self.head.get(range.start as usize..range.end as usize).unwrap_or_default()
    }
}

/// Takes from the fields of a response those that no client is shown and those that are written anew for each, and tells the length of its content,
/// if that is known: then they say what the record says, and what is their own client's alone.
pub(crate) fn show(headers: &mut HeaderMap, status: StatusCode, length: Option<u64>) {
    let others: Vec<HeaderName> = headers.keys().filter(|name| is_hidden(name) || OURS.contains(&name.as_str())).cloned().collect();
    for name in others {
        headers.remove(name);
    }
    match length.filter(|_| status != StatusCode::NO_CONTENT) {
        Some(length) => headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length)),
        None => headers.remove(header::CONTENT_LENGTH),
    };
}

/// Makes a map of the field lines that [`write_line`] wrote.
fn fields(written: &[u8]) -> HeaderMap {
    let number = written.iter().filter(|&&b| b == b'\n').count();
    let mut headers = HeaderMap::with_capacity(number + FIELDS_OF_OURS);
    for (name, value) in lines(written) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    headers
}

/// `Age`, `Cache-Status` and `X-Cache`, which are added on the way to the client: the map need not grow for them.
const FIELDS_OF_OURS: usize = 3;

/// Reads the field lines that [`write_line`] wrote: their names and values.
fn lines(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        loop {
            let (line, behind) = rest.split_at(memchr::memchr(b'\n', rest)? + 1);
            rest = behind;
            if let Some(at) = line.iter().position(|&b| b == b':') {
                return Some((&line[..at], line.get(at + 2..line.len() - 2).unwrap_or_default()));
            }
        }
    })
}

/// Returns the length as an offset. A head never comes near 4 GiB: origins' heads are limited to kilobytes.
fn offset(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

fn write_line(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    // Room for everything at once, so that each piece is only a copy.
    head.reserve(name.len() + value.len() + 4);
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use semantics::cache_control::ResponseDirectives;

    use super::*;

    fn record(fields: &[(&'static str, &'static str)], length: Option<u64>) -> Record {
        record_without(fields, length, &[])
    }

    fn record_without(fields: &[(&'static str, &'static str)], length: Option<u64>, omitted: &[&'static str]) -> Record {
        let headers: HeaderMap =
            fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect();
        let now = Timestamp::from_secs(1_780_000_000);
        let freshness = Freshness::of(StatusCode::OK, &headers, &ResponseDirectives::of(&headers), now, now);
        let omitted = omitted.iter().map(|name| HeaderName::from_static(name)).collect();
        let kept = KeepTerms { freshness, for_cookies: true, for_authorization: false, tags: Vec::new(), omitted };
        Record::new(StatusCode::OK, &headers, length, kept, Vary::Nominated(Vec::new()))
    }

    #[test]
    fn the_head_of_a_304_is_a_prefix() {
        let fields = [("content-type", "text/html"), ("etag", "\"a\""), ("age", "7"), ("x-cache", "HIT"), ("date", "now")];
        let record = record(&fields, Some(5));
        assert_eq!(record.etag(), Some(&b"\"a\""[..]));
        let mut confirming = Vec::new();
        record.write_confirming(None, &mut confirming);
        // In the order in which the origin sent them.
        assert_eq!(confirming, b"etag: \"a\"\r\ndate: now\r\n");
        let head = String::from_utf8_lossy(record.head()).into_owned();
        assert_eq!(head, "HTTP/1.1 200 OK\r\netag: \"a\"\r\ndate: now\r\ncontent-type: text/html\r\ncontent-length: 5\r\n");
    }

    #[test]
    fn a_form_has_its_own_tag_and_length() {
        let fields = [("content-type", "text/html"), ("etag", "\"a\""), ("date", "now")];
        let of = |record: &Record, coding| {
            let (mut head, mut confirming) = (Vec::new(), Vec::new());
            record.write_head(Some(Form { coding, length: 1234 }), &mut head);
            record.write_confirming(Some(coding), &mut confirming);
            (String::from_utf8(head).expect("text"), String::from_utf8(confirming).expect("text"))
        };
        let (head, confirming) = of(&record(&fields, Some(99_999)), Coding::Brotli);
        assert_eq!(confirming, "etag: \"a-br\"\r\ndate: now\r\n");
        assert_eq!(
            head,
            "HTTP/1.1 200 OK\r\netag: \"a-br\"\r\ndate: now\r\ncontent-type: text/html\r\ncontent-encoding: br\r\ncontent-length: 1234\r\n"
        );
        let weak = [("etag", "W/\"a\"")];
        assert_eq!(of(&record(&weak, Some(9)), Coding::Gzip).1, "etag: W/\"a\"\r\n");
        assert_eq!(of(&record(&[], Some(9)), Coding::Zstd).0, "HTTP/1.1 200 OK\r\ncontent-encoding: zstd\r\ncontent-length: 1234\r\n");
        let headers = record(&fields, Some(5)).headers_of(Some(Form { coding: Coding::Gzip, length: 3 }));
        assert_eq!(
            (&headers["etag"], &headers["content-encoding"], &headers["content-length"]),
            (&HeaderValue::from_static("\"a-gzip\""), &HeaderValue::from_static("gzip"), &HeaderValue::from(3))
        );
    }

    #[test]
    fn what_is_not_shown_is_remembered_and_what_may_not_be_stored_is_not() {
        let fields = [("x-a", "1"), ("surrogate-key", "t"), ("set-cookie", "a=1"), ("range", "bytes=0-4"), ("date", "now")];
        let record = record_without(&fields, Some(5), &["set-cookie"]);
        let head = String::from_utf8_lossy(record.head()).into_owned();
        assert_eq!(head, "HTTP/1.1 200 OK\r\ndate: now\r\nx-a: 1\r\ncontent-length: 5\r\n");
        assert_eq!(record.headers().len(), 3);
        let all = record.all_headers();
        assert_eq!(
            (all.len(), &all["surrogate-key"], &all["set-cookie"]),
            (6, &HeaderValue::from_static("t"), &HeaderValue::from_static(""))
        );
        assert_eq!(record.omitted(), [header::SET_COOKIE]);
        assert_eq!(record.part().as_deref(), Some(&b"bytes=0-4"[..]));
        assert_eq!(record_without(&[("x-a", "1")], None, &[]).part(), None);
    }

    #[test]
    fn the_first_client_is_shown_what_the_others_are_and_what_is_its_own() {
        let sent = [
            ("date", "now"),
            ("age", "7"),
            ("vary", "cookie"),
            ("vary", "accept"),
            ("x-cache", "HIT"),
            ("cache-status", "inner; hit"),
            ("surrogate-key", "t"),
            ("seawall-tag-wanted", "1"),
            ("range", "bytes=0-4"),
            ("content-length", "5"),
            ("set-cookie", "a=1"),
        ];
        let common = [("cache-status", "inner; hit"), ("date", "now"), ("vary", "accept"), ("vary", "cookie")];
        let lines = |headers: &HeaderMap| {
            let line = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), value.to_str().expect("text").to_owned());
            let mut lines: Vec<_> = headers.iter().map(line).collect();
            lines.sort();
            lines
        };
        let map = |fields: &[(&'static str, &'static str)]| {
            let line = |(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
            let mut headers = HeaderMap::new();
            fields.iter().map(line).for_each(|(name, value)| {
                headers.append(name, value);
            });
            headers
        };
        for (status, length, said) in
            [(StatusCode::OK, Some(5), &[("content-length", "5")][..]), (StatusCode::OK, None, &[]), (StatusCode::NO_CONTENT, Some(0), &[])]
        {
            let mut first = map(&sent);
            let now = Timestamp::from_secs(1_780_000_000);
            let freshness = Freshness::of(status, &first, &ResponseDirectives::of(&first), now, now);
            let kept =
                KeepTerms { freshness, for_cookies: false, for_authorization: false, tags: Vec::new(), omitted: vec![header::SET_COOKIE] };
            let record = Record::new(status, &first, length, kept, Vary::Nominated(Vec::new()));
            assert_eq!(lines(&record.headers()), lines(&map(&[&common[..], said].concat())));
            show(&mut first, status, length);
            assert_eq!(lines(&first), lines(&map(&[&common[..], said, &[("set-cookie", "a=1")]].concat())));
        }
    }

    #[test]
    fn the_class_of_the_content_is_known_and_comes_back_from_the_disk() {
        use store::Record as _;
        for (media_type, class) in [("text/html; charset=utf-8", Class::Document), ("image/webp", Class::Picture)] {
            let record = record(&[("content-type", media_type), ("etag", "\"a\"")], Some(5));
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!((record.class, Record::decode(&bytes).map(|record| record.class)), (class, Some(class)));
        }
        assert_eq!(record(&[("etag", "\"a\"")], None).class, Class::Other);
    }

    #[test]
    fn the_fields_come_back_as_they_were() {
        let record = record(&[("content-type", "text/html"), ("x-odd", "a: b"), ("x-empty", "")], None);
        let headers = record.headers();
        assert_eq!(headers.len(), 3);
        assert_eq!(headers["x-odd"], "a: b");
        assert_eq!(headers["x-empty"], "");
    }
}
