//! Reads what a response head says about its connection; that is between the origin and us, and goes no further (RFC 9110 §7.6.1).

use std::time::Duration;

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode, Version,
    header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING},
};
use semantics::hop_by_hop::{is_hop_by_hop, strip_hop_by_hop};

use super::content::{Coding, settle_length, transfer_coding};
use crate::request::elements;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// The account that a head gives of its connection and of its content.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BodyFraming {
    /// The time for which the connection may be kept; `None` if the origin is going to close it.
    pub(super) keep: Option<Duration>,
    pub(super) coding: Option<Coding>,
    pub(super) length: Option<u64>,
}

/// Removes the fields that are meant for us alone, and returns what they and the length say. The connection is kept for `idle_max` at most.
///
/// # Errors
/// When the head contradicts itself about where its body ends. hyper would choose one reading; a cache that chose otherwise than the
/// next reader would store one response under the name of another.
pub(super) fn settle(
    (status, version): (StatusCode, Version),
    fields: &mut HeaderMap,
    idle_max: Duration,
) -> Result<BodyFraming, &'static str> {
    if status == StatusCode::SWITCHING_PROTOCOLS {
        // `Connection` and `Upgrade` are the message here.
        return Ok(BodyFraming { keep: None, coding: None, length: None });
    }
    // Hyper would choose one reading of a head that has two.
    let coding = transfer_coding(fields)?;
    let misleads = is_misleading(status, fields);
    let length = if status == StatusCode::NO_CONTENT {
        // Origins send it although they must not (RFC 9110 §8.6): it is not read, whatever it says.
        fields.remove(CONTENT_LENGTH);
        None
    } else {
        settle_length(fields)?
    };
    if coding.is_none() && !fields.keys().any(is_hop_by_hop) {
        // Nearly every response.
        let keep = (version >= Version::HTTP_11 && !idle_max.is_zero() && !misleads).then_some(idle_max);
        return Ok(BodyFraming { keep, coding, length });
    }
    let mut keep = keep_alive_timeout(fields).map_or(idle_max, |told| told.min(idle_max));
    let mut close = version < Version::HTTP_11;
    let lines: Vec<HeaderValue> = fields.get_all(CONNECTION).iter().cloned().collect();
    for name in lines.iter().flat_map(|line| elements(line.as_bytes())) {
        if name.eq_ignore_ascii_case("close") {
            keep = Duration::ZERO;
        } else if name.eq_ignore_ascii_case("keep-alive") {
            close = false;
        }
    }
    // A response cannot hide its `Set-Cookie` from those who decide whether it is stored.
    strip_hop_by_hop(fields);
    // Where only the connection's end ends the content, there is no connection left.
    let keep = (!close && !keep.is_zero() && !misleads && coding != Some(Coding::Unknown)).then_some(keep);
    Ok(BodyFraming { keep, coding, length })
}

/// Returns whether a head that ends its message (RFC 9112 §6.3, rule 1) says that content follows. If the origin does send it, it may come at any
/// time, and the next request on the connection would take it for its answer.
///
/// A length in a 304 is that of the 200 it stands for (RFC 9110 §8.6). A coding may stand there too, but nobody needs it.
pub(super) fn is_misleading(status: StatusCode, fields: &HeaderMap) -> bool {
    let is_empty = |length: &HeaderValue| !length.is_empty() && length.as_bytes().iter().all(|&digit| digit == b'0');
    match status {
        StatusCode::NOT_MODIFIED => fields.contains_key(TRANSFER_ENCODING),
        _ if status == StatusCode::NO_CONTENT || status.is_informational() => {
            fields.contains_key(TRANSFER_ENCODING) || !fields.get_all(CONTENT_LENGTH).iter().all(is_empty)
        }
        _ => false,
    }
}

/// Returns the `timeout` of `Keep-Alive`, less a margin: a request sent in the moment in which the origin closes is lost, and only some may be
/// sent again. Node says five seconds.
fn keep_alive_timeout(fields: &HeaderMap) -> Option<Duration> {
    let value = fields.get(KEEP_ALIVE)?;
    let timeout = elements(value.as_bytes()).find_map(|parameter| parameter.strip_prefix("timeout="))?;
    let told = Duration::from_secs(timeout.parse::<u32>().ok()?.into());
    Some(told.saturating_sub(Duration::from_secs(1)).max(told / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: StatusCode = StatusCode::OK;

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn what_the_head_says_about_the_connection_is_obeyed_and_removed() {
        let secs = |s| Some(Duration::from_secs(s));
        for (version, fields, keep) in [
            (Version::HTTP_11, &[][..], secs(55)),
            (Version::HTTP_11, &[("connection", "keep-alive"), ("keep-alive", "timeout=5, max=100")], secs(4)),
            (Version::HTTP_11, &[("keep-alive", "timeout=1")], Some(Duration::from_millis(500))),
            (Version::HTTP_11, &[("keep-alive", "max=5, timeout=600")], secs(55)),
            (Version::HTTP_11, &[("keep-alive", "timeout=0")], None),
            (Version::HTTP_11, &[("keep-alive", "timeout=x")], secs(55)),
            (Version::HTTP_11, &[("connection", "Close")], None),
            (Version::HTTP_11, &[("connection", "keep-alive"), ("connection", "x, close")], None),
            (Version::HTTP_11, &[("connection", "upgrade, x-hop"), ("x-hop", "1"), ("upgrade", "h2c")], secs(55)),
            (Version::HTTP_10, &[], None),
            (Version::HTTP_10, &[("connection", "keep-alive")], secs(55)),
            (Version::HTTP_11, &[("transfer-encoding", "Chunked")], secs(55)),
            (Version::HTTP_11, &[("transfer-encoding", "x-own")], None),
        ] {
            let mut map = map(fields);
            assert_eq!(settle((OK, version), &mut map, Duration::from_secs(55)).map(|said| said.keep), Ok(keep), "{fields:?}");
            assert!(map.is_empty(), "{fields:?} leaves {map:?}");
        }
    }

    #[test]
    fn end_to_end_fields_stay_and_a_101_is_left_alone() {
        const HTTP_11: Version = Version::HTTP_11;
        let mut fields = map(&[("content-length", "3"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]);
        assert!(settle((OK, HTTP_11), &mut fields, Duration::from_secs(1)).is_ok());
        assert_eq!(fields.len(), 3);
        let mut fields = map(&[("connection", "set-cookie, cache-control"), ("set-cookie", "a=1"), ("cache-control", "private")]);
        assert!(settle((OK, HTTP_11), &mut fields, Duration::from_secs(1)).is_ok());
        assert_eq!(fields.len(), 2);
        let mut fields = map(&[("connection", "upgrade"), ("upgrade", "websocket")]);
        let said = settle((StatusCode::SWITCHING_PROTOCOLS, HTTP_11), &mut fields, Duration::from_secs(1));
        assert_eq!(said.map(|said| said.keep), Ok(None));
        assert_eq!(fields.len(), 2);
    }

    /// RFC 9110 §8.6.
    #[test]
    fn a_204_has_no_length() {
        let mut fields = map(&[("content-length", "5"), ("content-length", "x")]);
        assert!(settle((StatusCode::NO_CONTENT, Version::HTTP_11), &mut fields, Duration::from_secs(1)).is_ok());
        assert!(fields.is_empty());
    }

    #[test]
    fn a_head_that_contradicts_itself_is_refused() {
        for fields in [
            &[("transfer-encoding", "chunked"), ("content-length", "3")][..],
            &[("transfer-encoding", "gzip, chunked")],
            &[("transfer-encoding", "gzip")],
            &[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
            &[("transfer-encoding", "chunked, chunked")],
            &[("transfer-encoding", "")],
            &[("content-length", "5"), ("content-length", "6")],
            &[("content-length", "+5")],
        ] {
            assert!(settle((OK, Version::HTTP_11), &mut map(fields), Duration::from_secs(1)).is_err(), "{fields:?}");
        }
    }
}
