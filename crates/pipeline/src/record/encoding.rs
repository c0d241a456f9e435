//! A record as bytes, for the disk: a version, numbers in little endian, and what varies in length behind its length.
//!
//! Written out by hand, field by field: a field that is added does not compile until somebody has decided what it is on the disk, and then
//! [`VERSION`] rises. Bytes of another version are not a record; the response is fetched again.

use std::{ops::Range, time::Duration};

use bytes::Buf;
use http::{HeaderName, StatusCode};
use semantics::{
    Timestamp,
    freshness::{Freshness, LifetimeSource},
    vary::Vary,
};

use super::Record;
use crate::Class;

/// The version of this layout, and of what its fields mean.
const VERSION: u8 = 2;
/// Longest duration that is believed: sums of a few of them must not overflow.
const SECS_MAX: u64 = 1 << 48;

pub(super) fn encode(record: &Record, out: &mut Vec<u8>) {
    // `fresh_until` and `born` follow from the freshness; what is only for some is not for the disk.
    let Record {
        status,
        freshness,
        fresh_until: _,
        born: _,
        vary,
        last_modified,
        for_cookies,
        for_authorization,
        only_for: _,
        codable,
        // It follows from the head.
        class: _,
        head,
        shown,
        confirming,
        etag,
        length,
    } = record;
    out.push(VERSION);
    out.extend_from_slice(&status.as_u16().to_le_bytes());
    put_freshness(freshness, out);
    put_vary(vary, out);
    put_option(last_modified.as_ref(), out, |at, out| put_timestamp(*at, out));
    out.push(u8::from(*for_cookies));
    out.push(u8::from(*for_authorization));
    out.push(u8::from(*codable));
    for range in [confirming, etag] {
        out.extend_from_slice(&range.start.to_le_bytes());
        out.extend_from_slice(&range.end.to_le_bytes());
    }
    out.extend_from_slice(&shown.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    put_bytes(head, out);
}

pub(super) fn decode(bytes: &[u8]) -> Option<Record> {
    let mut bytes = RecordBytes(bytes);
    if bytes.byte()? != VERSION {
        return None;
    }
    let status = StatusCode::from_u16(bytes.0.try_get_u16_le().ok()?).ok()?;
    let freshness = bytes.freshness()?;
    let vary = bytes.vary()?;
    let last_modified = bytes.option(RecordBytes::timestamp)?;
    let (for_cookies, for_authorization, codable) = (bytes.flag()?, bytes.flag()?, bytes.flag()?);
    let (confirming, etag) = (bytes.range()?, bytes.range()?);
    let (shown, length) = (bytes.number()?, bytes.number()?);
    let head: Box<[u8]> = bytes.bytes()?.into();
    let within = |range: &Range<u32>| range.start <= range.end && range.end <= length;
    if !bytes.0.is_empty() || shown as usize > head.len() || length > shown || !within(&confirming) || !within(&etag) {
        return None;
    }
    let mut record = Record {
        status,
        fresh_until: freshness.fresh_until(),
        born: freshness.response_time - freshness.initial_age,
        freshness,
        vary,
        last_modified,
        for_cookies,
        for_authorization,
        only_for: None,
        codable,
        class: Class::default(),
        head,
        shown,
        confirming,
        etag,
        length,
    };
    let content_type = record.lines().find(|(name, _)| *name == b"content-type");
    let class = content_type.map(|(_, value)| Class::of_media_type(value)).unwrap_or_default();
    record.class = class;
    Some(record)
}

fn put_freshness(freshness: &Freshness, out: &mut Vec<u8>) {
    let Freshness {
        // It is for whoever asked: another process has another clock.
        request_time: _,
        response_time,
        initial_age,
        lifetime,
        source,
        stale_while_revalidate,
        stale_if_error,
        stale_allowed,
        validate_always,
    } = freshness;
    put_timestamp(*response_time, out);
    for duration in [initial_age, lifetime, stale_while_revalidate] {
        put_duration(*duration, out);
    }
    put_option(stale_if_error.as_ref(), out, |duration, out| put_duration(*duration, out));
    out.push(match source {
        LifetimeSource::Explicit => 0,
        LifetimeSource::Heuristic => 1,
        LifetimeSource::Hold => 2,
        LifetimeSource::None => 3,
    });
    out.push(u8::from(*stale_allowed));
    out.push(u8::from(*validate_always));
}

fn put_vary(vary: &Vary, out: &mut Vec<u8>) {
    let nominated = match vary {
        Vary::Star => None,
        Vary::Nominated(nominated) => Some(nominated),
    };
    put_option(nominated, out, |nominated, out| {
        put_length(nominated.len(), out);
        for (name, value) in nominated {
            put_bytes(name.as_str().as_bytes(), out);
            put_option(value.as_ref(), out, |value, out| put_bytes(value, out));
        }
    });
}

fn put_option<T>(value: Option<&T>, out: &mut Vec<u8>, put: impl FnOnce(&T, &mut Vec<u8>)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(value, out);
    }
}

fn put_timestamp(at: Timestamp, out: &mut Vec<u8>) {
    out.extend_from_slice(&at.as_millis().to_le_bytes());
}

fn put_duration(duration: Duration, out: &mut Vec<u8>) {
    out.extend_from_slice(&duration.as_secs().to_le_bytes());
    out.extend_from_slice(&duration.subsec_nanos().to_le_bytes());
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Writes a length. Nothing in a record comes near 4 GiB; if it did, the length would be wrong and the record could not be read.
fn put_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

/// The bytes of a record that are still to be read. Everything asked of them may not be there.
struct RecordBytes<'a>(&'a [u8]);

impl<'a> RecordBytes<'a> {
    fn byte(&mut self) -> Option<u8> {
        self.0.try_get_u8().ok()
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn option<T>(&mut self, value: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { value(self).map(Some) } else { Some(None) }
    }

    fn number(&mut self) -> Option<u32> {
        self.0.try_get_u32_le().ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.0.split_off(..length as usize)
    }

    fn range(&mut self) -> Option<Range<u32>> {
        Some(self.number()?..self.number()?)
    }

    fn timestamp(&mut self) -> Option<Timestamp> {
        self.0.try_get_u64_le().ok().map(Timestamp::from_millis)
    }

    fn duration(&mut self) -> Option<Duration> {
        let secs = self.0.try_get_u64_le().ok()?;
        let nanos = self.number()?;
        (secs < SECS_MAX && nanos < 1_000_000_000).then(|| Duration::new(secs, nanos))
    }

    fn freshness(&mut self) -> Option<Freshness> {
        Some(Freshness {
            // Long ago, by any clock: what another process asked for was not asked for a moment ago.
            request_time: Timestamp::default(),
            response_time: self.timestamp()?,
            initial_age: self.duration()?,
            lifetime: self.duration()?,
            stale_while_revalidate: self.duration()?,
            stale_if_error: self.option(Self::duration)?,
            source: match self.byte()? {
                0 => LifetimeSource::Explicit,
                1 => LifetimeSource::Heuristic,
                2 => LifetimeSource::Hold,
                3 => LifetimeSource::None,
                _ => return None,
            },
            stale_allowed: self.flag()?,
            validate_always: self.flag()?,
        })
    }

    fn vary(&mut self) -> Option<Vary> {
        let nominated = self.option(|bytes| {
            let count = bytes.number()?;
            // Collected one by one: a count that is a lie ends with the bytes, before it has asked for memory.
            let mut nominated = Vec::new();
            for _ in 0..count {
                let name = HeaderName::from_bytes(bytes.bytes()?).ok()?;
                nominated.push((name, bytes.option(|bytes| bytes.bytes().map(<[u8]>::to_vec))?));
            }
            Some(nominated)
        })?;
        Some(nominated.map_or(Vary::Star, Vary::Nominated))
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};
    use proptest::prelude::*;

    use super::*;

    fn moment() -> impl Strategy<Value = Timestamp> {
        any::<u64>().prop_map(Timestamp::from_millis)
    }

    fn span() -> impl Strategy<Value = Duration> {
        (0..SECS_MAX, 0..1_000_000_000u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos))
    }

    fn freshness() -> impl Strategy<Value = Freshness> {
        let source = prop_oneof![
            Just(LifetimeSource::Explicit),
            Just(LifetimeSource::Heuristic),
            Just(LifetimeSource::Hold),
            Just(LifetimeSource::None)
        ];
        (moment(), span(), span(), source, span(), prop::option::of(span()), any::<bool>(), any::<bool>()).prop_map(
            |(response_time, initial_age, lifetime, source, stale_while_revalidate, stale_if_error, stale_allowed, validate_always)| {
                Freshness {
                    request_time: Timestamp::default(),
                    response_time,
                    initial_age,
                    lifetime,
                    source,
                    stale_while_revalidate,
                    stale_if_error,
                    stale_allowed,
                    validate_always,
                }
            },
        )
    }

    fn vary() -> impl Strategy<Value = Vary> {
        let name = prop::sample::select(vec![header::ACCEPT_ENCODING, header::ACCEPT_LANGUAGE, HeaderName::from_static("x-odd")]);
        let nominated = prop::collection::vec((name, prop::option::of(prop::collection::vec(any::<u8>(), 0..20))), 0..4);
        prop_oneof![Just(Vary::Star), nominated.prop_map(Vary::Nominated)]
    }

    prop_compose! {
        fn record()(
            status in 100..1000u16,
            freshness in freshness(),
            vary in vary(),
            etag in prop::option::of("\"[a-z]{0,9}\""),
            fields in prop::collection::vec("[ -~]{0,30}", 0..4),
            last_modified in prop::option::of(moment()),
            flags in any::<(bool, bool)>(),
            length in prop::option::of(any::<u64>()),
        ) -> Record {
            let mut headers = HeaderMap::new();
            if let Some(etag) = etag {
                headers.insert(header::ETAG, HeaderValue::from_str(&etag).expect("printable"));
            }
            for field in fields {
                headers.append("x-field", HeaderValue::from_str(&field).expect("printable"));
            }
            // Of each, its name is behind what is shown.
            let omitted = if flags.0 { vec![HeaderName::from_static("x-field")] } else { Vec::new() };
            let kept = policy::KeepTerms { freshness, for_cookies: flags.0, for_authorization: flags.1, tags: Vec::new(), omitted };
            let status = StatusCode::from_u16(status).expect("three digits");
            Record { last_modified, codable: flags.1, ..Record::new(status, &headers, length, kept, vary) }
        }
    }

    fn bytes(record: &Record) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(record, &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn a_record_comes_back_as_it_was(record in record()) {
            prop_assert_eq!(decode(&bytes(&record)), Some(record));
        }

        #[test]
        fn what_is_cut_or_longer_is_no_record(record in record(), at in any::<prop::sample::Index>()) {
            let mut bytes = bytes(&record);
            prop_assert_eq!(decode(&bytes[..at.index(bytes.len())]), None);
            bytes.push(0);
            prop_assert_eq!(decode(&bytes), None);
        }

        /// A flipped bit is found by the checksum of the file; here it must only do no harm.
        #[test]
        fn any_bytes_are_survived(record in record(), at in any::<prop::sample::Index>(), byte in any::<u8>(), noise in any::<Vec<u8>>()) {
            let mut bytes = bytes(&record);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            for bytes in [bytes, noise] {
                if let Some(record) = decode(&bytes) {
                    let mut out = Vec::new();
                    record.write_head(Some(crate::record::Form { coding: semantics::coding::Coding::Gzip, length: 1 }), &mut out);
                    record.write_confirming(Some(semantics::coding::Coding::Brotli), &mut out);
                    let _ = (record.etag(), record.headers());
                }
            }
        }
    }

    #[test]
    fn another_version_is_no_record() {
        let freshness = Freshness {
            request_time: Timestamp::default(),
            response_time: Timestamp::from_secs(1_780_000_000),
            initial_age: Duration::ZERO,
            lifetime: Duration::from_secs(60),
            source: LifetimeSource::Explicit,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: None,
            stale_allowed: true,
            validate_always: false,
        };
        let kept = policy::KeepTerms { freshness, for_cookies: false, for_authorization: false, tags: Vec::new(), omitted: Vec::new() };
        let mut bytes = bytes(&Record::new(StatusCode::OK, &HeaderMap::new(), None, kept, Vary::Star));
        assert!(decode(&bytes).is_some());
        bytes[0] = VERSION + 1;
        assert_eq!(decode(&bytes), None);
    }
}
