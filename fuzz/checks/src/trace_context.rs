//! `traceparent`, `tracestate` and `X-Request-Id`, as a proxy says them (W3C Trace Context §3.2, §3.3).

use httparse::Header;
use semantics::{
    FieldLines, RequestId,
    trace_context::{STATE_BYTES_MAX, TraceParent, trace_state},
};

/// The input is the value of each of the three fields. A place in a trace that is read is one that a second, simple reader takes, and can be written and
/// read again; a state that is passed on is short, stays as it is when it is read again, and means the same however it is cut into lines; an id
/// is written as it came.
pub fn trace_context(data: &[u8]) {
    if let Some(parent) = TraceParent::parse(data) {
        let text = std::str::from_utf8(data.trim_ascii()).expect("a place in a trace is ASCII");
        let parts: Vec<&str> = text.splitn(5, '-').collect();
        assert!(parts.len() >= 4 && parts[0] != "ff" && (parts.len() == 4 || parts[0] != "00"));
        assert_eq!((parts[1], parts[2]), (parent.trace.to_string().as_str(), parent.span.to_string().as_str()));
        assert!(parts[1].bytes().any(|b| b != b'0') && parts[2].bytes().any(|b| b != b'0'));
        assert_eq!(parent.flags.sampled, u8::from_str_radix(parts[3], 16).expect("digits") & 1 == 1);
        let written = parent.to_string();
        assert_eq!((written.len(), TraceParent::parse(written.as_bytes())), (55, Some(parent)));
    }

    let state = |lines: &[&[u8]]| {
        let lines: Vec<Header<'_>> = lines.iter().map(|value| Header { name: "TraceState", value }).collect();
        trace_state(FieldLines::Raw(&lines))
    };
    let whole = state(&[data]);
    assert_eq!(whole, state(&data.split(|&b| b == b',').collect::<Vec<_>>()));
    if let Some(whole) = whole {
        assert!(!whole.is_empty() && whole.len() <= STATE_BYTES_MAX && whole.bytes().all(|b| (0x20..=0x7e).contains(&b)));
        assert_eq!(state(&[whole.as_bytes()]).as_deref(), Some(whole.as_str()));
    }

    if let Some(id) = RequestId::parse(data) {
        assert_eq!(id.to_string().as_bytes(), data.trim_ascii());
    }
}
