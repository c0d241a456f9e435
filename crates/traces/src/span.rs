//! A span as a value: what happened, from when to when, and under which span.

use std::borrow::Cow;

use semantics::trace_context::{SpanId, TraceFlags, TraceId};

/// One span of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The trace.
    pub trace: TraceId,
    /// The span itself.
    pub span: SpanId,
    /// The span under which it is; `None`: the trace begins with it.
    pub parent: Option<SpanId>,
    /// Whether the parent is somebody else's.
    pub parent_is_remote: bool,
    /// The flags of the trace.
    pub flags: TraceFlags,
    /// The `tracestate` of the trace; empty if there is none.
    pub state: String,
    /// The name, of which there are only a few.
    pub name: Cow<'static, str>,
    /// The side on which it is.
    pub kind: Kind,
    /// The time of its beginning, in nanoseconds since the Unix epoch.
    pub began: u64,
    /// The time of its end, in nanoseconds since the Unix epoch.
    pub ended: u64,
    /// The facts about it.
    pub attributes: Vec<(&'static str, Value)>,
    /// Whether it failed.
    pub failed: bool,
}

/// The side of a request on which a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The side that answers.
    Server,
    /// The side that asks.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number.try_into().unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

/// Makes text of what a stranger sent, of at most `bytes_max` bytes. What is not UTF-8 becomes U+FFFD.
#[must_use]
pub fn shortened(bytes: &[u8], bytes_max: usize) -> String {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(shortened("äöü".as_bytes(), 5), "äö");
        assert_eq!(shortened(b"abc", 3), "abc");
        assert_eq!(shortened(b"a\xff", 9), "a\u{fffd}");
    }
}
