//! Judges what a response says about itself: the cache's part in it, and whether it is what was expected.

mod cache;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::record::ErrorClass;

/// A field of a response: its name in any case, and its value.
pub type Field<'a> = (&'a [u8], &'a [u8]);

/// A response, as an engine has read it.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The status.
    pub status: u16,
    /// The fields of the answer, in their order.
    pub fields: &'a [Field<'a>],
    /// The content of the answer without transfer coding and with content coding, if
    /// [`VisitorRequest::wants_body`](crate::requests::VisitorRequest::wants_body): whole, or the first
    /// [`WANTED_MAX`](crate::requests::WANTED_MAX) bytes.
    pub body: Option<&'a [u8]>,
}

/// Says what a cache did with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// A cache answered, with a fresh response.
    Hit,
    /// A cache answered, with a stale response.
    Stale,
    /// No cache could answer: nothing was stored, or what was stored had to be validated. The origin was asked.
    Miss,
    /// No cache looked for a stored response.
    Bypass,
    /// The response does not say.
    Unknown,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 5] = [Self::Hit, Self::Stale, Self::Miss, Self::Bypass, Self::Unknown];
}

/// Holds what was found out about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedAnswer {
    /// The outcome at the cache.
    pub outcome: Outcome,
    /// Whether the origin behind the cache was asked, if the answer says so.
    pub origin_reached: Option<bool>,
    /// The time that the page took that this answer completed.
    pub page: Option<Duration>,
    /// The reason why the answer counts as an error, if it does.
    pub error: Option<ErrorClass>,
}

/// Judges an answer by its status and by what its fields say of caches. A status of 400 or more is an error.
#[must_use]
pub fn judge(answer: &Answer<'_>) -> JudgedAnswer {
    let (outcome, origin_reached) = cache::view(answer);
    JudgedAnswer { outcome, origin_reached, page: None, error: (answer.status >= 400).then_some(ErrorClass::Status) }
}

/// Reads the value of a `Content-Length`: digits, or a list of the same digits again and again (RFC 9110 §8.6). None: it is not a length.
pub(crate) fn content_length(value: &[u8]) -> Option<u64> {
    let mut lengths = value.split(|byte| *byte == b',').map(|length| {
        let length = length.trim_ascii();
        let length = std::str::from_utf8(length).ok().filter(|length| length.bytes().all(|byte| byte.is_ascii_digit()))?;
        length.parse().ok()
    });
    let first = lengths.next()??;
    lengths.all(|length| length == Some(first)).then_some(first)
}
