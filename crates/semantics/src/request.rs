//! The head of a request, borrowed from wherever it was parsed.
//!
//! The hit path has a slice of parsed lines, everything else a `HeaderMap`; both become one [`RequestHead`], so every rule is written once.
//! [`RequestFields`] is filled in one pass and holds the fields that caching decisions look at; the whole list stays reachable for `Vary`.

use http::{HeaderMap, HeaderName, Method, header::CONTENT_LENGTH};

/// The scheme of the target URI: `http` or `https` (RFC 9110 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain text, without TLS.
    Http,
    /// TLS, ended by us or by a trusted proxy in front of us.
    Https,
}

impl Scheme {
    /// Returns the scheme as it stands in a URI.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// The parts of a request that a decision may look at. The path and query are as the client sent them.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    /// The method; names are case-sensitive (RFC 9110 §9.1).
    pub method: &'a Method,
    /// The scheme of the target URI.
    pub scheme: Scheme,
    /// The host and optional port, from the target URI or `Host` (RFC 9110 §7.2); empty if an HTTP/1.0 client sent none.
    pub authority: &'a str,
    /// The absolute path, never empty, beginning with `/`.
    pub path: &'a str,
    /// The query after the `?`, without it.
    pub query: Option<&'a str>,
    /// The fields. They are borrowed: there are twenty slots, and a head is passed between modules.
    pub fields: &'a RequestFields<'a>,
}

/// Every field line of a message, in whichever form it was parsed.
#[derive(Debug, Clone, Copy)]
pub enum FieldLines<'a> {
    /// The lines as they came, names in any case.
    Raw(&'a [httparse::Header<'a>]),
    /// The lines collected in a map.
    Map(&'a HeaderMap),
}

impl<'a> FieldLines<'a> {
    /// Returns whether there is a line of the field `name`.
    #[must_use]
    pub fn has(self, name: &HeaderName) -> bool {
        match self {
            Self::Raw(lines) => lines.iter().any(|line| line.name.eq_ignore_ascii_case(name.as_str())),
            Self::Map(map) => has_any(map, std::slice::from_ref(name)),
        }
    }

    /// Calls `each` with the value of every line of the field `name` (lower case), in order.
    pub fn for_each(self, name: &str, mut each: impl FnMut(&'a [u8])) {
        match self {
            Self::Raw(lines) => {
                for line in lines {
                    if line.name.eq_ignore_ascii_case(name) {
                        each(line.value);
                    }
                }
            }
            Self::Map(map) => {
                for value in map.get_all(name) {
                    each(value.as_bytes());
                }
            }
        }
    }
}

/// Returns whether a map has a field of one of these names.
///
/// It looks at the names that are there. A message has few, and a name that is not there costs a hash and a search when it is looked up.
#[must_use]
pub fn has_any(map: &HeaderMap, names: &[HeaderName]) -> bool {
    map.keys().any(|name| names.contains(name))
}

/// Returns the length of the content that a message announces, in bytes; `None`: it announces none that can be read.
#[must_use]
pub fn content_length(fields: &HeaderMap) -> Option<u64> {
    fields.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The fields in which the requests of one page differ from browser to browser, and on which no answer from the store rests unless a stored
/// response nominates them in `Vary`: what the client is called, where it comes from, what language it prefers.
///
/// A head that was answered from the store before is answered alike when it differs in these alone. So no rule that a hit goes through may
/// look at them; a rule that has to must take its field out of this list.
pub const INCIDENTAL_FIELDS: [&str; 13] = [
    "accept-language",
    "dnt",
    "referer",
    "sec-ch-ua",
    "sec-ch-ua-mobile",
    "sec-ch-ua-platform",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-site",
    "sec-fetch-user",
    "sec-gpc",
    "upgrade-insecure-requests",
    "user-agent",
];

/// A field that decisions look at: absent, on one line, or on several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Slot<'a> {
    /// There is no such line.
    #[default]
    Absent,
    /// There is exactly one line, with this value.
    One(&'a [u8]),
    /// There is more than one line: ask [`RequestFields::lines`].
    Many,
}

impl<'a> Slot<'a> {
    /// Returns whether at least one line is there.
    #[must_use]
    pub const fn is_present(self) -> bool {
        !matches!(self, Self::Absent)
    }

    /// Returns the value if there is exactly one line.
    #[must_use]
    pub const fn one(self) -> Option<&'a [u8]> {
        match self {
            Self::One(value) => Some(value),
            Self::Absent | Self::Many => None,
        }
    }

    const fn add(&mut self, value: &'a [u8]) {
        *self = match self {
            Self::Absent => Self::One(value),
            Self::One(_) | Self::Many => Self::Many,
        };
    }
}

/// The request fields that caching decisions look at, gathered in one pass.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "each slot is the field of its name")]
pub struct RequestFields<'a> {
    pub accept: Slot<'a>,
    pub accept_encoding: Slot<'a>,
    pub authorization: Slot<'a>,
    pub cache_control: Slot<'a>,
    pub connection: Slot<'a>,
    pub content_length: Slot<'a>,
    pub cookie: Slot<'a>,
    pub expect: Slot<'a>,
    pub host: Slot<'a>,
    pub if_match: Slot<'a>,
    pub if_modified_since: Slot<'a>,
    pub if_none_match: Slot<'a>,
    pub if_range: Slot<'a>,
    pub if_unmodified_since: Slot<'a>,
    pub pragma: Slot<'a>,
    pub range: Slot<'a>,
    pub referer: Slot<'a>,
    pub seawall_direct: Slot<'a>,
    pub transfer_encoding: Slot<'a>,
    pub upgrade: Slot<'a>,
    pub user_agent: Slot<'a>,
    /// Every line, for `Vary` and for slots that are [`Slot::Many`].
    pub lines: FieldLines<'a>,
}

impl<'a> RequestFields<'a> {
    fn empty(lines: FieldLines<'a>) -> Self {
        Self {
            accept: Slot::Absent,
            accept_encoding: Slot::Absent,
            authorization: Slot::Absent,
            cache_control: Slot::Absent,
            connection: Slot::Absent,
            content_length: Slot::Absent,
            cookie: Slot::Absent,
            expect: Slot::Absent,
            host: Slot::Absent,
            if_match: Slot::Absent,
            if_modified_since: Slot::Absent,
            if_none_match: Slot::Absent,
            if_range: Slot::Absent,
            if_unmodified_since: Slot::Absent,
            pragma: Slot::Absent,
            range: Slot::Absent,
            referer: Slot::Absent,
            seawall_direct: Slot::Absent,
            transfer_encoding: Slot::Absent,
            upgrade: Slot::Absent,
            user_agent: Slot::Absent,
            lines,
        }
    }

    /// Gathers the fields from lines as they were parsed.
    // It is inlined, so that the fields are gathered where the caller has them: what a function returns by value is copied there.
    #[inline]
    #[must_use]
    pub fn from_raw(lines: &'a [httparse::Header<'a>]) -> Self {
        let mut fields = Self::empty(FieldLines::Raw(lines));
        fields.gather_raw(lines);
        fields
    }

    fn gather_raw(&mut self, lines: &'a [httparse::Header<'a>]) {
        for line in lines {
            if let Some(slot) = self.slot(line.name) {
                slot.add(line.value);
            }
        }
    }

    /// Gathers the fields from a map.
    // It is inlined as `from_raw` is.
    #[inline]
    #[must_use]
    pub fn from_map(map: &'a HeaderMap) -> Self {
        let mut fields = Self::empty(FieldLines::Map(map));
        fields.gather_map(map);
        fields
    }

    fn gather_map(&mut self, map: &'a HeaderMap) {
        for (name, value) in map {
            if let Some(slot) = self.slot(name.as_str()) {
                slot.add(value.as_bytes());
            }
        }
    }

    /// Returns the slot for a field name in any case. The length decides first: most names never reach a comparison. The usual spellings
    /// are tried first: comparing with a constant takes a few instructions, while a comparison without regard to case is a loop.
    #[inline]
    fn slot(&mut self, name: &str) -> Option<&mut Slot<'a>> {
        let is = |usual: &str, small: &str| name == usual || name == small || name.eq_ignore_ascii_case(usual);
        match name.len() {
            4 if is("Host", "host") => Some(&mut self.host),
            5 if is("Range", "range") => Some(&mut self.range),
            6 => match name.as_bytes()[0] | 0x20 {
                b'a' if is("Accept", "accept") => Some(&mut self.accept),
                b'c' if is("Cookie", "cookie") => Some(&mut self.cookie),
                b'e' if is("Expect", "expect") => Some(&mut self.expect),
                b'p' if is("Pragma", "pragma") => Some(&mut self.pragma),
                _ => None,
            },
            7 if is("Referer", "referer") => Some(&mut self.referer),
            7 if is("Upgrade", "upgrade") => Some(&mut self.upgrade),
            8 if is("If-Match", "if-match") => Some(&mut self.if_match),
            8 if is("If-Range", "if-range") => Some(&mut self.if_range),
            10 if is("User-Agent", "user-agent") => Some(&mut self.user_agent),
            10 if is("Connection", "connection") => Some(&mut self.connection),
            13 if is("Cache-Control", "cache-control") => Some(&mut self.cache_control),
            13 if is("If-None-Match", "if-none-match") => Some(&mut self.if_none_match),
            13 if is("Authorization", "authorization") => Some(&mut self.authorization),
            14 if is("Content-Length", "content-length") => Some(&mut self.content_length),
            14 if is("Seawall-Direct", "seawall-direct") => Some(&mut self.seawall_direct),
            15 if is("Accept-Encoding", "accept-encoding") => Some(&mut self.accept_encoding),
            17 if is("If-Modified-Since", "if-modified-since") => Some(&mut self.if_modified_since),
            17 if is("Transfer-Encoding", "transfer-encoding") => Some(&mut self.transfer_encoding),
            19 if is("If-Unmodified-Since", "if-unmodified-since") => Some(&mut self.if_unmodified_since),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pass_fills_the_slots_from_either_form() {
        let raw = [
            httparse::Header { name: "HOST", value: b"a.example" },
            httparse::Header { name: "Cookie", value: b"a=1" },
            httparse::Header { name: "cookie", value: b"b=2" },
            httparse::Header { name: "X-Other", value: b"x" },
        ];
        let fields = RequestFields::from_raw(&raw);
        assert_eq!(fields.host, Slot::One(b"a.example"));
        assert_eq!(fields.cookie, Slot::Many);
        assert_eq!(fields.range, Slot::Absent);
        let mut cookies = Vec::new();
        fields.lines.for_each("cookie", |v| cookies.push(v));
        assert_eq!(cookies, [b"a=1", b"b=2"]);

        let mut map = HeaderMap::new();
        map.insert("if-none-match", "\"x\"".parse().expect("a field value"));
        assert_eq!(RequestFields::from_map(&map).if_none_match, Slot::One(b"\"x\""));
    }
}
