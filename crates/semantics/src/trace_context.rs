//! The trace that a request belongs to, as `traceparent` and `tracestate` say it (W3C Trace Context, level 1, with the random flag of level 2).
//!
//! Deliberately not here: who is believed, which traces are recorded, and what is made of random bytes.

use std::{fmt, num::NonZeroU64};

use crate::{FieldLines, hex};

/// The longest `tracestate` that is passed on, in bytes (§3.3.1.5: at least 512).
pub const STATE_BYTES_MAX: usize = 512;
/// The most members of a `tracestate` (§3.3.1.1). One with more of them is not passed on.
const MEMBERS_MAX: usize = 32;
/// Members that are longer are left out first where the whole is too long (§3.3.1.5).
const LONG_MEMBER: usize = 128;
/// The longest key, and the longest value (§3.3.1.3).
const PART_BYTES_MAX: usize = 256;

/// The length of a `traceparent` of version 00.
const PARENT_BYTES: usize = 55;

/// The id of a trace, which is never all zeros (§3.2.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

impl TraceId {
    /// Makes an id of these bytes. `None`: all of them are zero.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// Returns its bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }

    /// Returns its last seven bytes as a number: whoever samples decides by them, as they are random in every trace (level 2, §3.2.2.3).
    #[must_use]
    pub fn randomness(self) -> u64 {
        self.0[9..].iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The id of a span, which is never zero (§3.2.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(NonZeroU64);

impl SpanId {
    /// Makes an id of this number. `None`: it is zero.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// Returns its bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 8] {
        self.0.get().to_be_bytes()
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The flags of a trace (§3.2.2.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TraceFlags {
    /// Whether whoever began the trace records it.
    pub sampled: bool,
    /// Whether the last seven bytes of the trace's id are random (level 2). It is passed on as it came.
    pub random: bool,
}

impl TraceFlags {
    /// Returns them as a byte. Flags that nobody has defined yet are zero.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.sampled as u8 | (self.random as u8) << 1
    }
}

/// The place of a request in a trace: the trace, the span of whoever sent the request, and the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace: TraceId,
    /// The sender's span.
    pub span: SpanId,
    /// The flags.
    pub flags: TraceFlags,
}

impl TraceParent {
    /// Reads the place of a request in a trace off its fields. `None`: it says none, several, or one that is not valid (§3.2).
    #[must_use]
    pub fn of(lines: FieldLines<'_>) -> Option<Self> {
        let (mut found, mut count) = (None, 0);
        lines.for_each("traceparent", |line| {
            count += 1;
            found = Self::parse(line);
        });
        found.filter(|_| count == 1)
    }

    /// Reads a value of `traceparent`. A version that is not known yet is read as far as 00 goes (§3.2.4).
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let value = value.trim_ascii();
        let (known, rest) = value.split_at_checked(PARENT_BYTES)?;
        let mut parts = known.split(|&b| b == b'-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if [version.len(), trace.len(), span.len(), flags.len()] != [2, 32, 16, 2] {
            return None;
        }
        let may_go_on = match hex::number(version)? {
            0 => rest.is_empty(),
            0xff => return None,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        let flags = hex::number(flags)?;
        may_go_on.then_some(())?;
        Some(Self {
            trace: TraceId::new(hex::number(trace)?.to_be_bytes())?,
            span: SpanId::new(u64::try_from(hex::number(span)?).ok()?)?,
            flags: TraceFlags { sampled: flags & 1 != 0, random: flags & 2 != 0 },
        })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, self.flags.bits())
    }
}

/// The ids of a request that belongs to a trace: what its span, its log line and the request to its origin are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceIds {
    /// The trace.
    pub trace: TraceId,
    /// The request's own span.
    pub span: SpanId,
    /// The span of whoever sent the request; `None`: the trace begins here.
    pub parent: Option<SpanId>,
    /// The flags: a request that is not sampled has ids, and no span is recorded for it.
    pub flags: TraceFlags,
}

impl TraceIds {
    /// Returns what is told to whoever is asked under this span.
    #[must_use]
    pub const fn under(&self, span: SpanId) -> TraceParent {
        TraceParent { trace: self.trace, span, flags: self.flags }
    }
}

/// Reads what the vendors on a request's way have said in `tracestate`, in one line as it may be passed on; `None` if there is nothing, or
/// something that is not valid (§3.3). Only who believes the request's `traceparent` may believe this.
///
/// Where it is too long, members with more than 128 bytes go first, then the last ones.
#[must_use]
pub fn trace_state(lines: FieldLines<'_>) -> Option<String> {
    let (mut members, mut is_valid): (Vec<&str>, bool) = (Vec::new(), true);
    lines.for_each("tracestate", |line| {
        for member in line.split(|&b| b == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty()) {
            match std::str::from_utf8(member).ok().filter(|member| is_member(member)) {
                Some(member) if members.len() < MEMBERS_MAX && !members.iter().any(|other| key(other) == key(member)) => {
                    members.push(member)
                }
                _ => is_valid = false,
            }
        }
    });
    if !is_valid {
        return None;
    }
    let bytes = |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>().saturating_sub(1);
    while bytes(&members) > STATE_BYTES_MAX {
        let long = members.iter().rposition(|member| member.len() > LONG_MEMBER);
        members.remove(long.unwrap_or(members.len() - 1));
    }
    (!members.is_empty()).then(|| members.join(","))
}

fn key(member: &str) -> &str {
    member.split_once('=').map_or(member, |(key, _)| key)
}

/// Returns whether a text is a member of `tracestate`: a key, `=`, and a value (§3.3.1.3).
fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let in_key = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'*' | b'/' | b'@');
    let in_value = |b: u8| (0x20..=0x7e).contains(&b) && b != b',' && b != b'=';
    let begins = key.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    begins
        && key.bytes().all(in_key)
        && key.matches('@').count() <= 1
        && !value.is_empty()
        && value.bytes().all(in_value)
        && key.len() <= PART_BYTES_MAX
        && value.len() <= PART_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn fields(name: &'static str, values: &[&str]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for value in values {
            map.append(name, HeaderValue::from_str(value).expect("a value"));
        }
        map
    }

    fn state(values: &[&str]) -> Option<String> {
        trace_state(FieldLines::Map(&fields("tracestate", values)))
    }

    #[test]
    fn a_parent_is_read_and_written() {
        let parent = TraceParent::parse(PARENT.as_bytes()).expect("valid");
        assert_eq!(parent.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(parent.span.bytes(), [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert!(parent.flags.sampled && !parent.flags.random);
        assert_eq!(parent.to_string(), PARENT);
        assert_eq!(parent.trace.randomness(), 0xce_929d_0e0e_4736);
    }

    /// W3C Trace Context §3.2.2, and level 2 for the random flag.
    #[test]
    fn only_a_valid_parent_is_read() {
        let with = |from: &str, to: &str| PARENT.replace(from, to);
        for (value, sampled) in [
            (PARENT.to_owned(), true),
            (with("-01", "-00"), false),
            (with("-01", "-03"), true),
            // Flags that nobody has defined yet mean nothing.
            (with("-01", "-08"), false),
            (with("-01", "-09"), true),
            // A later version may say more.
            (with("00-4", "01-4"), true),
            (format!("{}-more", with("00-4", "cc-4")), true),
        ] {
            assert_eq!(TraceParent::parse(value.as_bytes()).map(|parent| parent.flags.sampled), Some(sampled), "{value}");
        }
        for value in [
            String::new(),
            "00".to_owned(),
            with("00-4", "ff-4"),
            with("00-4", "0-4"),
            with("00-4", "000-4"),
            format!("{PARENT}-more"),
            format!("{PARENT}0"),
            format!("{}more", with("00-4", "cc-4")),
            with("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            with("00f067aa0ba902b7", &"0".repeat(16)),
            PARENT.to_uppercase(),
            with("4bf9", "4bfg"),
            with("4bf9", "4bf-"),
            with("-", "_"),
            PARENT[..54].to_owned(),
            with("4bf9", "4bé9"),
        ] {
            assert_eq!(TraceParent::parse(value.as_bytes()), None, "{value}");
        }
        assert_eq!(TraceParent::parse(with("-01", "-ff").as_bytes()).map(|parent| parent.flags.bits()), Some(3));
    }

    #[test]
    fn several_parents_are_none() {
        let one = fields("traceparent", &[PARENT]);
        assert!(TraceParent::of(FieldLines::Map(&one)).is_some());
        let two = fields("traceparent", &[PARENT, PARENT]);
        assert_eq!(TraceParent::of(FieldLines::Map(&two)), None);
    }

    #[test]
    fn a_state_is_passed_on_in_its_order() {
        assert_eq!(state(&["rojo=00f067aa0ba902b7, congo=t61rcWkgMzE"]).as_deref(), Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
        assert_eq!(state(&["a=1", ",, ", "t@v=2 3"]).as_deref(), Some("a=1,t@v=2 3"));
        for none in [&[][..], &[""], &["a"], &["a=1", "a=2"], &["A=1"], &["a=1=2"], &["=1"], &["a="], &["a=\u{e9}"], &["a@b@c=1"]] {
            assert_eq!(state(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_state_has_its_bounds() {
        let members = |count: usize, length: usize| (0..count).map(|n| format!("k{n:03}={}", "v".repeat(length - 5))).collect::<Vec<_>>();
        assert!(state(&[&members(32, 8).join(",")]).is_some());
        assert_eq!(state(&[&members(33, 8).join(",")]), None);
        // 32 members of 20 bytes and the commas are 671: the last ones go.
        let cut = state(&[&members(32, 20).join(",")]).expect("a state");
        assert!(cut.len() <= STATE_BYTES_MAX && cut.starts_with("k000=") && cut.len() > STATE_BYTES_MAX - 21, "{cut}");
        // A long one goes before short ones.
        let long = format!("long={},{}", "v".repeat(200), members(20, 20).join(","));
        assert_eq!(state(&[&long]).as_deref(), Some(members(20, 20).join(",").as_str()));
    }
}
