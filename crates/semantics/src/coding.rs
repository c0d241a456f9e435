//! Content codings: which one a client gets (RFC 9110 §8.4.1, §12.5.3), and the entity tag of each (§8.8.3.3).
//!
//! A coding is a form of a representation. Every form has a strong tag of its own where the representation has one: ours is that of the
//! identity with the coding's name in it, `"abc"` and `"abc-gzip"`, as people know it from other servers. A weak tag stands for all forms.

use std::borrow::Cow;

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, VARY},
};
use smallvec::SmallVec;

use crate::{
    conditional::{Precondition, evaluate},
    list::{members, separator, trim_ows},
    request::{RequestFields, Slot, has_any},
    timestamp::Timestamp,
};

/// A content coding that we can apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Coding {
    /// `gzip` (RFC 1952).
    Gzip,
    /// `br` (RFC 7932).
    Brotli,
    /// `zstd` (RFC 8878).
    Zstd,
}

impl Coding {
    /// All codings. The one that is preferred where the client has no preference comes first. When there is time to compress well, Brotli
    /// is the smallest.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// Returns the coding's name in fields.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the extension of the name of a file whose content has this coding.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Gzip => "gz",
            Self::Brotli => "br",
            Self::Zstd => "zst",
        }
    }

    /// Returns the coding of this name, in any case; `x-gzip` is `gzip` (RFC 9110 §8.4.1.3).
    #[must_use]
    pub const fn of_token(token: &[u8]) -> Option<Self> {
        if token.eq_ignore_ascii_case(b"gzip") || token.eq_ignore_ascii_case(b"x-gzip") {
            Some(Self::Gzip)
        } else if token.eq_ignore_ascii_case(b"br") {
            Some(Self::Brotli)
        } else if token.eq_ignore_ascii_case(b"zstd") {
            Some(Self::Zstd)
        } else {
            None
        }
    }
}

/// A set of codings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CodingSet(u8);

impl CodingSet {
    /// The empty set: identity alone.
    pub const EMPTY: Self = Self(0);
    /// The set of all codings.
    pub const ALL: Self = Self(0b111);

    /// Returns the set that these bits stand for: one bit for each coding, in the order of their declaration.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Returns the set with `coding` in it.
    #[must_use]
    pub const fn with(self, coding: Coding) -> Self {
        Self(self.0 | 1 << coding as u8)
    }

    /// Returns the set without `coding`.
    #[must_use]
    pub const fn without(self, coding: Coding) -> Self {
        Self(self.0 & !(1 << coding as u8))
    }

    /// Returns whether `coding` is in the set.
    #[must_use]
    pub const fn contains(self, coding: Coding) -> bool {
        self.0 & 1 << coding as u8 != 0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A weight in thousandths; `None` for a coding that is not named.
type Weight = Option<u16>;

/// What a request accepts: its `Accept-Encoding`, read once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedCodings {
    gzip: u16,
    brotli: u16,
    zstd: u16,
    /// The weight of the identity. `None`: it is acceptable, and the last choice.
    identity: Weight,
}

impl AcceptedCodings {
    /// Accepts the identity and nothing else.
    pub const IDENTITY: Self = Self { gzip: 0, brotli: 0, zstd: 0, identity: None };
    const ALL: Self = Self { gzip: 1000, brotli: 1000, zstd: 1000, identity: None };

    /// Returns what a request accepts. Never allocates.
    ///
    /// `q=0` refuses, `*` stands for whatever is not named. A malformed weight refuses its coding: identity is never wrong. A request
    /// without the field may be sent any coding, but those that send none are mostly scripts that decode none.
    #[must_use]
    pub fn of(request: &RequestFields<'_>) -> Self {
        let mut named = NamedCodings::default();
        match request.accept_encoding {
            Slot::Absent => return Self::IDENTITY,
            // This is what browsers send; the arm is only a shortcut.
            Slot::One(b"gzip, deflate, br, zstd") => return Self::ALL,
            Slot::One(b"gzip, deflate, br") => return Self { zstd: 0, ..Self::ALL },
            Slot::One(line) => named.line(line),
            Slot::Many => request.lines.for_each("accept-encoding", |line| named.line(line)),
        }
        let weight = |own: Weight| own.or(named.star).unwrap_or(0);
        let identity = named.identity.or_else(|| named.star.filter(|weight| *weight == 0));
        Self { gzip: weight(named.gzip), brotli: weight(named.brotli), zstd: weight(named.zstd), identity }
    }

    /// Returns the coding of the form to send, out of those that are at hand; `None` is the identity.
    ///
    /// The greatest weight wins, and the order of [`Coding::ALL`] between equal ones. Where the client refuses whatever is there, the
    /// identity is sent: the field may be disregarded (§12.5.3), and an answer is worth more than a 406.
    #[must_use]
    pub fn best(self, at_hand: CodingSet) -> Option<Coding> {
        let mut best = (0, None);
        for coding in Coding::ALL {
            let weight = self.weight(coding);
            if at_hand.contains(coding) && weight > best.0 {
                best = (weight, Some(coding));
            }
        }
        // A client that weighs the identity above all others means it.
        if self.identity.is_some_and(|identity| identity > best.0) { None } else { best.1 }
    }

    /// Returns whether a form in this coding may be sent.
    #[must_use]
    pub const fn accepts(self, coding: Coding) -> bool {
        self.weight(coding) > 0
    }

    const fn weight(self, coding: Coding) -> u16 {
        match coding {
            Coding::Gzip => self.gzip,
            Coding::Brotli => self.brotli,
            Coding::Zstd => self.zstd,
        }
    }
}

/// The codings named so far. A coding that was refused once stays refused.
#[derive(Default)]
struct NamedCodings {
    gzip: Weight,
    brotli: Weight,
    zstd: Weight,
    identity: Weight,
    star: Weight,
}

impl NamedCodings {
    fn line(&mut self, line: &[u8]) {
        for member in members(line) {
            let end = separator(member, b';');
            let token = trim_ows(&member[..end]);
            let named = match Coding::of_token(token) {
                Some(Coding::Gzip) => &mut self.gzip,
                Some(Coding::Brotli) => &mut self.brotli,
                Some(Coding::Zstd) => &mut self.zstd,
                None if token.eq_ignore_ascii_case(b"identity") => &mut self.identity,
                None if token == b"*" => &mut self.star,
                None => continue,
            };
            let weight = weight(member.get(end + 1..).unwrap_or_default());
            *named = Some(named.map_or(weight, |before| before.min(weight)));
        }
    }
}

/// Returns whether a request names a coding of this name, and does not refuse it. `*` does not count: it cannot mean a coding that few
/// clients know.
pub(crate) fn accepts_token(request: &RequestFields<'_>, name: &[u8]) -> bool {
    let mut accepted = None;
    request.lines.for_each("accept-encoding", |line| {
        for member in members(line) {
            let end = separator(member, b';');
            if trim_ows(&member[..end]).eq_ignore_ascii_case(name) {
                accepted = Some(accepted.unwrap_or(true) && weight(member.get(end + 1..).unwrap_or_default()) > 0);
            }
        }
    });
    accepted == Some(true)
}

/// Returns the weight among the parameters of a member, in thousandths: 1000 without any, 0 if it is malformed (RFC 9110 §12.4.2).
pub(crate) fn weight(parameters: &[u8]) -> u16 {
    let mut weight = 1000;
    for parameter in parameters.split(|&b| b == b';') {
        match trim_ows(parameter) {
            [b'q' | b'Q', b'=', value @ ..] => weight = qvalue(value).unwrap_or(0),
            [b'q' | b'Q'] | [b'q' | b'Q', b' ' | b'\t', ..] => weight = 0,
            _ => {}
        }
    }
    weight
}

/// Reads a weight in thousandths. A weight with more than three digits after the point is read as far as they count: some clients print a
/// float.
fn qvalue(value: &[u8]) -> Option<u16> {
    let (whole, fraction) = match value {
        [whole] => (*whole, &b""[..]),
        [whole, b'.', fraction @ ..] => (*whole, fraction),
        _ => return None,
    };
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| fraction.get(at).map_or(0, |digit| u16::from(digit - b'0'));
    let thousandths = digit(0) * 100 + digit(1) * 10 + digit(2);
    match whole {
        // The weight is not zero, so it does not refuse.
        b'0' if thousandths == 0 && fraction.iter().any(|digit| *digit != b'0') => Some(1),
        b'0' => Some(thousandths),
        b'1' if thousandths == 0 => Some(1000),
        _ => None,
    }
}

/// An entity tag, with room for one that names a coding, without an allocation in nearly all cases.
pub type Tag = SmallVec<[u8; 96]>;

/// Returns the entity tag of a form: `"abc"` becomes `"abc-br"`. A weak or malformed tag stays what it is: it stands for all forms.
#[must_use]
pub fn tag_of(identity: &[u8], coding: Option<Coding>) -> Tag {
    let mut tag = Tag::from_slice(identity);
    if let Some(coding) = coding
        && has_own_tags(identity)
    {
        tag.pop();
        tag.push(b'-');
        tag.extend_from_slice(coding.token().as_bytes());
        tag.push(b'"');
    }
    tag
}

/// Returns whether each form has a tag of its own, which is so if the tag of the identity is strong.
#[must_use]
pub const fn has_own_tags(identity: &[u8]) -> bool {
    matches!(identity, [b'"', .., b'"'])
}

/// Evaluates the conditions of a request on a representation that has forms, and returns which form they are about; without conditions it
/// is `chosen`. See [`evaluate`].
///
/// A client that holds some form of the current representation is told that its copy is current, even if a better form would be chosen now.
/// Only a form that it accepts counts.
#[must_use]
pub fn evaluate_forms(
    method: &Method,
    request: &RequestFields<'_>,
    (etag, last_modified): (Option<&[u8]>, Option<Timestamp>),
    chosen: Option<Coding>,
    accepted: AcceptedCodings,
) -> (Precondition, Option<Coding>) {
    let of = |coding| {
        let tag = etag.map(|etag| tag_of(etag, coding));
        evaluate(method, request, tag.as_deref(), last_modified)
    };
    let first = of(chosen);
    let tagged = request.if_none_match.is_present() || request.if_match.is_present();
    if !tagged || !etag.is_some_and(has_own_tags) {
        return (first, chosen);
    }
    // A form that the conditions name answers them; a form that they do not name does not.
    let answers = |outcome: Precondition| match outcome {
        Precondition::NotModified => true,
        Precondition::Proceed => !request.if_none_match.is_present(),
        Precondition::Failed => false,
    };
    if answers(first) {
        return (first, chosen);
    }
    let others = Coding::ALL.into_iter().map(Some).chain([None]);
    for coding in others.filter(|coding| *coding != chosen && coding.is_none_or(|coding| accepted.accepts(coding))) {
        let outcome = of(coding);
        if answers(outcome) {
            // A precondition that holds for one form says that the client knows this representation; it still gets the best one.
            return if outcome == Precondition::NotModified { (outcome, coding) } else { (outcome, chosen) };
        }
    }
    (first, chosen)
}

/// Returns whether a response may be given a coding: it has none yet, it is whole, it has content, and nobody forbids it (RFC 9111
/// §5.2.2.6). It must not have a digest of its content, which would become wrong (RFC 9530).
#[must_use]
pub fn may_be_coded(status: StatusCode, response: &HeaderMap) -> bool {
    let whole =
        !matches!(status, StatusCode::PARTIAL_CONTENT | StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) && !status.is_informational();
    // Comparing the names that are there is cheaper than looking up each of the six.
    whole && !response.keys().any(is_bound_to_bytes) && !forbids_transformation(response)
}

/// Returns whether a field would be wrong with other bytes. The first letter tells most others apart.
fn is_bound_to_bytes(name: &HeaderName) -> bool {
    matches!(name.as_str().as_bytes().first(), Some(b'c' | b'd' | b'r')) && BOUND_TO_BYTES.contains(name)
}

/// Fields that would be wrong with other bytes: they say that a coding or a part is there already, or are digests of content as it is sent
/// (RFC 9530 and its predecessors).
const BOUND_TO_BYTES: [HeaderName; 6] = [
    CONTENT_ENCODING,
    CONTENT_RANGE,
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-md5"),
];

/// Returns whether any line of `Cache-Control` has `no-transform`.
fn forbids_transformation(response: &HeaderMap) -> bool {
    const DIRECTIVE: &[u8] = b"no-transform";
    let lines = response.get_all(CACHE_CONTROL).into_iter().map(HeaderValue::as_bytes);
    // Most lines are too short to have it.
    let mut members = lines.filter(|line| line.len() >= DIRECTIVE.len()).flat_map(members);
    members.any(|member| trim_ows(&member[..separator(member, b'=')]).eq_ignore_ascii_case(DIRECTIVE))
}

/// Returns the media type of a response without its parameters, in lower case; empty if it has none.
#[must_use]
pub fn media_type(response: &HeaderMap) -> Cow<'_, str> {
    let value = response.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let name = trim_ows(&value[..separator(value, b';')]);
    // Looking for broken letters one after another takes twice as long, and there are hardly ever any.
    let name = std::str::from_utf8(name).map_or_else(|_| String::from_utf8_lossy(name), Cow::Borrowed);
    if name.bytes().any(|b| b.is_ascii_uppercase()) { name.to_ascii_lowercase().into() } else { name }
}

/// Adds `Accept-Encoding` to `Vary`, unless it is there or `Vary` is `*`.
pub fn vary_on_accept_encoding(response: &mut HeaderMap) {
    const NAMED: HeaderValue = HeaderValue::from_static("accept-encoding");
    let covered = |member: &[u8]| member == b"*" || member.eq_ignore_ascii_case(b"accept-encoding");
    if has_any(response, &[VARY]) && response.get_all(VARY).into_iter().flat_map(|line| members(line.as_bytes())).any(covered) {
        return;
    }
    response.append(VARY, NAMED);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_fields::map;

    fn accepted(lines: &[&str]) -> AcceptedCodings {
        let lines: Vec<_> = lines.iter().map(|line| ("accept-encoding", *line)).collect();
        AcceptedCodings::of(&RequestFields::from_map(&map(&lines)))
    }

    const fn set(codings: &[Coding]) -> CodingSet {
        let mut set = CodingSet::EMPTY;
        let mut at = 0;
        while at < codings.len() {
            set = set.with(codings[at]);
            at += 1;
        }
        set
    }

    /// RFC 9110 §12.5.3 and §12.4.2.
    #[test]
    fn the_greatest_weight_wins() {
        use Coding::{Brotli, Gzip, Zstd};
        type Case = (&'static [&'static str], CodingSet, Option<Coding>);
        let (all, no_br) = (CodingSet::ALL, set(&[Gzip, Zstd]));
        let cases: &[Case] = &[
            (&[], all, None),
            (&[""], all, None),
            (&["identity"], all, None),
            (&["gzip, deflate, br, zstd"], all, Some(Brotli)),
            (&["gzip, deflate, br, zstd"], no_br, Some(Zstd)),
            (&["gzip, deflate, br, zstd"], set(&[Gzip]), Some(Gzip)),
            (&["gzip, deflate, br, zstd"], CodingSet::EMPTY, None),
            (&["gzip, deflate, br"], no_br, Some(Gzip)),
            (&["gzip", "br"], all, Some(Brotli)),
            (&["compress, gzip"], all, Some(Gzip)),
            (&["x-gzip"], all, Some(Gzip)),
            (&["GZip"], all, Some(Gzip)),
            (&["gzip;q=0.5, br;q=0.4"], all, Some(Gzip)),
            (&["gzip;q=0.5 , br; q=0.501"], all, Some(Brotli)),
            (&["br;q=0, gzip"], all, Some(Gzip)),
            (&["br;q=0.000, zstd;q=0.001"], all, Some(Zstd)),
            (&["*"], all, Some(Brotli)),
            (&["*;q=0.5, gzip"], all, Some(Gzip)),
            (&["*;q=0"], all, None),
            (&["*;q=0, gzip"], all, Some(Gzip)),
            (&["br;q=0, *"], all, Some(Zstd)),
            // The identity is the last choice unless it is named.
            (&["identity, gzip"], all, Some(Gzip)),
            (&["identity;q=1, gzip;q=0.5"], all, None),
            (&["identity;q=0.5, gzip;q=1"], all, Some(Gzip)),
            (&["gzip, identity;q=0"], all, Some(Gzip)),
            // No acceptable form is there: the field may be disregarded.
            (&["gzip, identity;q=0"], CodingSet::EMPTY, None),
            (&["compress, *;q=0"], all, None),
            // A malformed weight refuses, and what is refused stays so.
            (&["gzip;q=2, br;q=x"], all, None),
            (&["gzip;q"], all, None),
            (&["gzip;q=.5"], all, None),
            (&["gzip;q=0, gzip"], all, None),
            (&["gzip;foo=bar"], all, Some(Gzip)),
            (&["gzip;Q=1.000"], all, Some(Gzip)),
            (&["br;q=0.0001"], all, Some(Brotli)),
            (&["gzipp, brr, zst"], all, None),
        ];
        for (lines, at_hand, best) in cases {
            assert_eq!(accepted(lines).best(*at_hand), *best, "{lines:?} {at_hand:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_chosen_is_at_hand_and_accepted(line in "[a-z0-9;=,. *q-]{0,40}", bits in 0_u8..8) {
            let (at_hand, accepted) = (CodingSet(bits), accepted(&[&line]));
            if let Some(coding) = accepted.best(at_hand) {
                prop_assert!(at_hand.contains(coding) && accepted.accepts(coding));
            }
        }
    }

    /// RFC 9110 §8.8.3.3: strong tags differ by coding.
    #[test]
    fn each_form_has_a_tag_of_its_own() {
        let cases: &[(&str, Option<Coding>, &str)] = &[
            ("\"abc\"", None, "\"abc\""),
            ("\"abc\"", Some(Coding::Gzip), "\"abc-gzip\""),
            ("\"abc\"", Some(Coding::Brotli), "\"abc-br\""),
            ("\"\"", Some(Coding::Zstd), "\"-zstd\""),
            ("W/\"abc\"", Some(Coding::Gzip), "W/\"abc\""),
            ("abc", Some(Coding::Gzip), "abc"),
        ];
        for (identity, coding, tag) in cases {
            assert_eq!(&*tag_of(identity.as_bytes(), *coding), tag.as_bytes(), "{identity} {coding:?}");
        }
    }

    #[test]
    fn conditions_find_the_form_that_the_client_has() {
        use Coding::{Brotli, Gzip};
        use Precondition::{Failed, NotModified, Proceed};
        type Case = (&'static str, &'static str, Option<Coding>, &'static str, (Precondition, Option<Coding>));
        let browser = "gzip, br";
        let cases: &[Case] = &[
            ("if-none-match", "\"a-br\"", Some(Brotli), browser, (NotModified, Some(Brotli))),
            ("if-none-match", "\"a-gzip\"", Some(Brotli), browser, (NotModified, Some(Gzip))),
            ("if-none-match", "W/\"a-gzip\"", Some(Brotli), browser, (NotModified, Some(Gzip))),
            ("if-none-match", "\"a\"", Some(Brotli), browser, (NotModified, None)),
            ("if-none-match", "\"b-br\"", Some(Brotli), browser, (Proceed, Some(Brotli))),
            ("if-none-match", "*", Some(Brotli), browser, (NotModified, Some(Brotli))),
            // The client has a form that it would not accept now.
            ("if-none-match", "\"a-zstd\"", Some(Brotli), browser, (Proceed, Some(Brotli))),
            ("if-none-match", "\"a-gzip\"", None, "", (Proceed, None)),
            ("if-match", "\"a\"", Some(Gzip), browser, (Proceed, Some(Gzip))),
            ("if-match", "\"a-br\"", Some(Gzip), browser, (Proceed, Some(Gzip))),
            ("if-match", "\"b\"", Some(Gzip), browser, (Failed, Some(Gzip))),
        ];
        for (name, value, chosen, accepts, expected) in cases {
            let fields = map(&[(name, value), ("accept-encoding", accepts)]);
            let fields = RequestFields::from_map(&fields);
            let found = evaluate_forms(&Method::GET, &fields, (Some(b"\"a\""), None), *chosen, AcceptedCodings::of(&fields));
            assert_eq!(found, *expected, "{name}: {value}");
        }
        let fields = map(&[("if-none-match", "\"a\"")]);
        let fields = RequestFields::from_map(&fields);
        let weak = evaluate_forms(&Method::GET, &fields, (Some(b"W/\"a\""), None), Some(Gzip), AcceptedCodings::ALL);
        assert_eq!(weak, (NotModified, Some(Gzip)), "a weak tag stands for all forms");
    }

    #[test]
    fn what_may_be_coded() {
        let ok = StatusCode::OK;
        type Case = (StatusCode, &'static [(&'static str, &'static str)], bool);
        let cases: &[Case] = &[
            (ok, &[], true),
            (StatusCode::NOT_FOUND, &[], true),
            (ok, &[("content-encoding", "gzip")], false),
            (StatusCode::PARTIAL_CONTENT, &[("content-range", "bytes 0-1/2")], false),
            (StatusCode::NO_CONTENT, &[], false),
            (ok, &[("cache-control", "max-age=60, No-Transform")], false),
            (ok, &[("cache-control", "max-age=60"), ("cache-control", "no-transform")], false),
            (ok, &[("cache-control", "max-age=60")], true),
            (ok, &[("content-digest", "sha-256=:AAAA:")], false),
        ];
        for (status, fields, expected) in cases {
            assert_eq!(may_be_coded(*status, &map(fields)), *expected, "{status} {fields:?}");
        }
        assert_eq!(media_type(&map(&[("content-type", " Text/HTML ; charset=utf-8")])), "text/html");
    }

    #[test]
    fn vary_is_said_once() {
        type Case = (&'static [(&'static str, &'static str)], &'static [&'static str]);
        let cases: &[Case] = &[
            (&[], &["accept-encoding"]),
            (&[("vary", "cookie")], &["cookie", "accept-encoding"]),
            (&[("vary", "Accept-Encoding")], &["Accept-Encoding"]),
            (&[("vary", "*")], &["*"]),
        ];
        for (fields, expected) in cases {
            let mut fields = map(fields);
            vary_on_accept_encoding(&mut fields);
            let lines: Vec<_> = fields.get_all(VARY).iter().map(|line| line.to_str().expect("text")).collect();
            assert_eq!(lines, *expected);
        }
    }
}
