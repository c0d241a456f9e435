//! Selecting among stored responses by the request fields that `Vary` nominates (RFC 9111 §4.1, RFC 9110 §12.5.5).
//!
//! Nominated values are compared in one normal form: lines joined with a comma, optional whitespace around commas gone, and for the
//! `Accept` family without regard to case. Those are the rewrites §4.1 allows; order is kept, since it may carry preference.
//!
//! `Accept-Encoding` goes further. Browsers differ in it and mean the same, so it counts only as its [`canonical_accept_encoding`]. The
//! request forwarded to the origin carries that canonical form too: the origin then sees few values, and all browsers share a variant.

use http::{
    HeaderMap, HeaderName,
    header::{
        ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE, ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_ENCODING, CONTENT_TYPE, COOKIE,
        ORIGIN, VARY,
    },
};

use crate::{
    list::{members, separator, trim_ows},
    request::{FieldLines, RequestFields, Slot},
};

/// The most nominated fields; more count as `*`. Such a response would hardly ever be selected again, and every lookup would pay for it.
pub const NOMINATED_MAX: usize = 32;

/// The fields by which scripts ask for another form of a page, and by which servers choose one without a word in `Vary`: the type of a content
/// that a GET does not have, and that a fragment or JSON is wanted instead of the page (jQuery and most frameworks, pjax, htmx, Inertia).
pub const FORMS_FOR_SCRIPTS: [HeaderName; 5] = [
    CONTENT_TYPE,
    HeaderName::from_static("x-requested-with"),
    HeaderName::from_static("x-pjax"),
    HeaderName::from_static("hx-request"),
    HeaderName::from_static("x-inertia"),
];

/// The fields that must agree between the request that a response was stored for and the request presented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Vary {
    /// The response is never selected without validation: `*`, or a `Vary` that cannot be understood.
    Star,
    /// The nominated fields with the values of the original request, normalised; `None` is an absent field. Sorted, no name twice.
    Nominated(Vec<(HeaderName, Option<Vec<u8>>)>),
}

impl Vary {
    /// Captures from `request` what `response` nominates, and what it ought to have nominated: the coding that it has, the origin that it
    /// allows, the form that a script asked for ([`FORMS_FOR_SCRIPTS`]).
    ///
    /// A member that is not a field name gives [`Vary::Star`]: what it meant to distinguish is unknown, and serving the wrong variant is worse
    /// than asking again.
    #[must_use]
    pub fn of(response: &HeaderMap, request: &RequestFields<'_>) -> Self {
        Self::of_with(response, request, &[])
    }

    /// Captures as [`of`](Self::of) does, and these fields as well, because the response may depend on them whatever it says.
    #[must_use]
    pub fn of_with(response: &HeaderMap, request: &RequestFields<'_>, also: &[HeaderName]) -> Self {
        let mut names: Vec<HeaderName> = also.to_vec();
        for member in response.get_all(VARY).into_iter().flat_map(|line| members(line.as_bytes())) {
            if member.is_empty() {
                continue;
            }
            // `*` is a token like any other, so it would pass for a name.
            let Some(name) = HeaderName::from_bytes(member).ok().filter(|_| member != b"*") else { return Self::Star };
            if !names.contains(&name) {
                names.push(name);
            }
            if names.len() > NOMINATED_MAX {
                return Self::Star;
            }
        }
        // Servers compress and forget to say so; a client that cannot decode would get what a browser asked for.
        if response.contains_key(CONTENT_ENCODING) && !names.contains(&ACCEPT_ENCODING) {
            names.push(ACCEPT_ENCODING);
        }
        // So do those that allow whichever origin asks: the next one would be told that another is allowed.
        if !names.contains(&ORIGIN) && echoes_origin(response, request) {
            names.push(ORIGIN);
        }
        // Some servers look at these, and what they answer then is nobody else's answer.
        for name in FORMS_FOR_SCRIPTS {
            if !names.contains(&name) && request.lines.has(&name) {
                names.push(name);
            }
        }
        names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        let capture = |name: HeaderName| {
            let mut value = Vec::new();
            let present = normal_form(&name, request, |piece| value.extend_from_slice(piece));
            if ignores_case(&name) {
                value.make_ascii_lowercase();
            }
            (name, present.then_some(value))
        };
        Self::Nominated(names.into_iter().map(capture).collect())
    }

    /// Returns this `Vary` without one field: for a response that is the same whatever that field says.
    #[must_use]
    pub fn without(mut self, field: &HeaderName) -> Self {
        if let Self::Nominated(nominated) = &mut self {
            nominated.retain(|(name, _)| name != field);
            // The list is kept with every page, and mostly nothing is left in it.
            nominated.shrink_to_fit();
        }
        self
    }

    /// Returns whether the stored response may be selected for `request`. Never allocates.
    #[must_use]
    pub fn matches(&self, request: &RequestFields<'_>) -> bool {
        match self {
            Self::Star => false,
            Self::Nominated(nominated) => nominated.iter().all(|(name, value)| same_value(name, value.as_deref(), request)),
        }
    }

    /// Returns whether the response is selected for every request: nothing is nominated.
    #[must_use]
    pub const fn is_unconditional(&self) -> bool {
        match self {
            Self::Star => false,
            Self::Nominated(nominated) => nominated.is_empty(),
        }
    }

    /// Returns whether one of these fields (in lower case) takes part in the choice.
    #[must_use]
    pub fn rests_on_any(&self, fields: &[&str]) -> bool {
        match self {
            Self::Star => true,
            Self::Nominated(nominated) => nominated.iter().any(|(name, _)| fields.contains(&name.as_str())),
        }
    }

    /// Appends the secondary key of the stored response.
    ///
    /// Two keys are equal exactly when the names and the normalised values are: each part is preceded by its length. Nothing is appended if
    /// the response is unconditional.
    pub fn secondary_key(&self, out: &mut Vec<u8>) {
        match self {
            Self::Star => append_star(out),
            Self::Nominated(nominated) => {
                for (name, value) in nominated {
                    append_part(out, |out| out.extend_from_slice(name.as_str().as_bytes()));
                    out.push(u8::from(value.is_some()));
                    append_part(out, |out| out.extend_from_slice(value.as_deref().unwrap_or_default()));
                }
            }
        }
    }

    /// Appends the key that a stored response selected by `request` would have, given the fields that this one nominates.
    ///
    /// It equals [`Self::secondary_key`] exactly when [`Self::matches`], except for [`Vary::Star`], which matches nothing.
    pub fn secondary_key_for(&self, request: &RequestFields<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Star => append_star(out),
            Self::Nominated(nominated) => {
                for (name, _) in nominated {
                    append_part(out, |out| out.extend_from_slice(name.as_str().as_bytes()));
                    let presence = out.len();
                    out.push(0);
                    let mut present = false;
                    append_part(out, |out| {
                        let value = out.len();
                        present = normal_form(name, request, |piece| out.extend_from_slice(piece));
                        if ignores_case(name) {
                            out[value..].make_ascii_lowercase();
                        }
                    });
                    out[presence] = u8::from(present);
                }
            }
        }
    }
}

/// Returns whether the response repeats the request's `Origin` in `Access-Control-Allow-Origin` (Fetch §3.3.3).
fn echoes_origin(response: &HeaderMap, request: &RequestFields<'_>) -> bool {
    let Some(allowed) = response.get(ACCESS_CONTROL_ALLOW_ORIGIN) else { return false };
    let mut echoes = false;
    request.lines.for_each("origin", |origin| echoes |= trim_ows(origin) == trim_ows(allowed.as_bytes()));
    echoes
}

/// Returns the one of `br, gzip`, `gzip`, `br` and the empty string (identity alone) that `request` accepts (RFC 9110 §12.5.3).
///
/// `q=0` refuses, `*` stands for any coding that is not named, and `x-gzip` is `gzip` (§8.4.1.3). A malformed weight refuses: identity is
/// never wrong. A request without the field could be sent any coding, but those that send none are mostly scripts that decode none.
#[must_use]
pub fn canonical_accept_encoding(request: &RequestFields<'_>) -> &'static str {
    let mut accepts = Accepts::default();
    match request.accept_encoding {
        Slot::Absent => {}
        // This is what nearly every browser sends; the arm is only a shortcut.
        Slot::One(b"gzip, deflate, br, zstd" | b"gzip, deflate, br") => return "br, gzip",
        Slot::One(line) => accepts.line(line),
        Slot::Many => request.lines.for_each("accept-encoding", |line| accepts.line(line)),
    }
    match (accepts.br.or(accepts.star), accepts.gzip.or(accepts.star)) {
        (Some(true), Some(true)) => "br, gzip",
        (Some(true), _) => "br",
        (_, Some(true)) => "gzip",
        _ => "",
    }
}

/// The codings named so far, and whether they were accepted. A coding that was refused once stays refused.
#[derive(Default)]
struct Accepts {
    br: Option<bool>,
    gzip: Option<bool>,
    star: Option<bool>,
}

impl Accepts {
    fn line(&mut self, line: &[u8]) {
        for member in members(line) {
            let end = separator(member, b';');
            let coding = trim_ows(&member[..end]);
            let named = if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") {
                &mut self.gzip
            } else if coding.eq_ignore_ascii_case(b"br") {
                &mut self.br
            } else if coding == b"*" {
                &mut self.star
            } else {
                continue;
            };
            *named = Some(named.unwrap_or(true) && accepted(member.get(end + 1..).unwrap_or_default()));
        }
    }
}

/// Returns whether the parameters of a member leave it acceptable: no `q`, or a well-formed one above zero.
fn accepted(parameters: &[u8]) -> bool {
    parameters.split(|&b| b == b';').all(|parameter| match trim_ows(parameter) {
        [b'q' | b'Q', b'=', weight @ ..] => {
            weight.iter().all(|b| b.is_ascii_digit() || *b == b'.') && weight.iter().any(|b| matches!(b, b'1'..=b'9'))
        }
        [b'q' | b'Q'] | [b'q' | b'Q', b' ' | b'\t', ..] => false,
        _ => true,
    })
}

fn ignores_case(name: &HeaderName) -> bool {
    *name == ACCEPT_LANGUAGE || *name == ACCEPT_ENCODING || *name == ACCEPT_CHARSET || *name == ACCEPT
}

fn same_value(name: &HeaderName, stored: Option<&[u8]>, request: &RequestFields<'_>) -> bool {
    // A value whose bytes are those that were stored needs no normalising: the normal form of a normal form is itself, as long as no quote
    // that one line left open can swallow the next.
    let mut seen = 0_usize;
    let mut first: &[u8] = b"";
    if *name != ACCEPT_ENCODING {
        request.lines.for_each(name.as_str(), |line| {
            if seen == 0 {
                first = line;
            }
            seen += 1;
        });
        match (seen, stored) {
            (0, stored) => return stored.is_none(),
            (_, None) => return false,
            (1, Some(stored)) if first == stored && memchr::memchr(b'"', first).is_none() => return true,
            _ => {}
        }
    }
    let Some(mut rest) = stored else { return !normal_form(name, request, |_| {}) };
    let ignores_case = ignores_case(name);
    let mut same = true;
    let present = normal_form(name, request, |piece| {
        let begins = rest.get(..piece.len()).is_some_and(|b| if ignores_case { b.eq_ignore_ascii_case(piece) } else { b == piece });
        same &= begins;
        if begins {
            rest = &rest[piece.len()..];
        }
    });
    present && same && rest.is_empty()
}

/// Passes the normal form of a field's value to `emit` piece by piece, and returns whether the field is present.
///
/// `Accept-Encoding` always counts as present, with its canonical form. `Cookie` is not a list: its lines are one (RFC 9113 §8.2.3).
fn normal_form(name: &HeaderName, request: &RequestFields<'_>, mut emit: impl FnMut(&[u8])) -> bool {
    if *name == ACCEPT_ENCODING {
        emit(canonical_accept_encoding(request).as_bytes());
        return true;
    }
    let lines: FieldLines<'_> = request.lines;
    let is_cookie = *name == COOKIE;
    let mut present = false;
    let mut begun = false;
    lines.for_each(name.as_str(), |line| {
        present = true;
        if is_cookie {
            let cookies = trim_ows(line);
            if begun && !cookies.is_empty() {
                emit(b"; ");
            }
            begun |= !cookies.is_empty();
            return emit(cookies);
        }
        for member in members(line) {
            if begun {
                emit(b",");
            }
            begun = true;
            emit(member);
        }
    });
    present
}

/// Appends the mark of [`Vary::Star`]. No part has this length, so no other key begins this way.
fn append_star(out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::MAX.to_le_bytes());
}

/// Appends what `write` appends, after its length in four bytes. Message heads are bounded far below 4 GiB.
fn append_part(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_fields::map;

    fn vary(response: &[(&str, &str)], request: &[(&str, &str)]) -> Vary {
        Vary::of(&map(response), &RequestFields::from_map(&map(request)))
    }

    #[test]
    fn what_is_nominated() {
        let star: &[&[(&str, &str)]] = &[
            &[("vary", "*")],
            &[("vary", "*, a")],
            &[("vary", "a, *")],
            &[("vary", ", *,")],
            &[("vary", "a"), ("vary", "*")],
            &[("vary", "not a name")],
        ];
        for response in star {
            assert_eq!(vary(response, &[("a", "1")]), Vary::Star, "{response:?}");
        }
        assert!(vary(&[], &[]).is_unconditional());
        assert!(vary(&[("vary", " , ,")], &[]).is_unconditional());
        assert!(!Vary::Star.is_unconditional());
        let nominated = vary(&[("vary", "B, a"), ("vary", "A")], &[("b", "2")]);
        let names = |n: &'static str| HeaderName::from_static(n);
        assert_eq!(nominated, Vary::Nominated(vec![(names("a"), None), (names("b"), Some(b"2".to_vec()))]));
        let many: String = (0..=NOMINATED_MAX).map(|n| format!("x-{n},")).collect();
        assert_eq!(vary(&[("vary", &many)], &[]), Vary::Star);
    }

    /// RFC 9111 §4.1.
    #[test]
    fn a_stored_response_is_selected_when_nominated_fields_agree() {
        type Lines = &'static [(&'static str, &'static str)];
        let cases: &[(&str, Lines, Lines, bool)] = &[
            ("foo", &[("foo", "1")], &[("foo", "1")], true),
            ("foo", &[("foo", "1")], &[("foo", "2")], false),
            ("foo", &[("foo", "1")], &[("foo", "1"), ("bar", "2")], true),
            ("foo", &[("foo", "1")], &[], false),
            ("foo", &[], &[("foo", "1")], false),
            ("foo", &[], &[("foo", "")], false),
            ("foo", &[], &[], true),
            ("foo, bar", &[("foo", "1"), ("bar", "a")], &[("bar", "a"), ("foo", "1")], true),
            ("foo, bar", &[("foo", "1"), ("bar", "a")], &[("foo", "1"), ("bar", "b")], false),
            ("foo", &[("foo", "1, 2")], &[("foo", "1"), ("foo", "2")], true),
            ("foo", &[("foo", "1,2")], &[("foo", " 1\t,  2 ")], true),
            ("foo", &[("foo", "1, 2")], &[("foo", "2, 1")], false),
            ("foo", &[("foo", "1, 2")], &[("foo", "1")], false),
            ("foo", &[("foo", "1")], &[("foo", "1, 2")], false),
            ("foo", &[("foo", "12")], &[("foo", "1 2")], false),
            ("foo", &[("foo", "\"a, b\"")], &[("foo", "\"a,b\"")], false),
            ("foo", &[("foo", "A")], &[("foo", "a")], false),
            ("accept-language", &[("accept-language", "EN-us, de")], &[("accept-language", "en-US,DE")], true),
            ("accept-language", &[("accept-language", "en, de")], &[("accept-language", "de, en")], false),
            ("accept", &[("accept", "text/HTML")], &[("accept", "text/html")], true),
            ("accept-charset", &[("accept-charset", "UTF-8")], &[("accept-charset", "utf-8")], true),
            ("cookie", &[("cookie", "a=1; b=2")], &[("cookie", "a=1"), ("cookie", "b=2")], true),
            ("cookie", &[("cookie", "a=1")], &[("cookie", "A=1")], false),
            ("accept-encoding", &[("accept-encoding", "gzip, deflate, br")], &[("accept-encoding", "br;q=1, x-gzip, zstd")], true),
            ("accept-encoding", &[("accept-encoding", "gzip")], &[("accept-encoding", "gzip, br")], false),
            ("accept-encoding", &[], &[("accept-encoding", "identity")], true),
            ("accept-encoding", &[], &[("accept-encoding", "gzip")], false),
        ];
        for (names, stored, presented, expected) in cases {
            let vary = vary(&[("vary", names)], stored);
            let presented_map = map(presented);
            let request = RequestFields::from_map(&presented_map);
            assert_eq!(vary.matches(&request), *expected, "{names}: {stored:?} {presented:?}");
            let raw: Vec<_> = presented.iter().map(|(name, value)| httparse::Header { name, value: value.as_bytes() }).collect();
            assert_eq!(vary.matches(&RequestFields::from_raw(&raw)), *expected, "raw, {names}: {stored:?} {presented:?}");
            let (mut own, mut other) = (Vec::new(), Vec::new());
            vary.secondary_key(&mut own);
            vary.secondary_key_for(&request, &mut other);
            assert_eq!(own == other, *expected, "keys, {names}: {stored:?} {presented:?}");
        }
        assert!(!Vary::Star.matches(&RequestFields::from_map(&HeaderMap::new())));
    }

    #[test]
    fn keys_are_unambiguous() {
        let keys: Vec<Vec<u8>> = [
            vary(&[("vary", "a, b")], &[("a", "1"), ("b", "2")]),
            vary(&[("vary", "a, b")], &[("a", "12"), ("b", "")]),
            vary(&[("vary", "a, b")], &[("a", "12")]),
            vary(&[("vary", "a")], &[("a", "1")]),
            vary(&[("vary", "a")], &[("a", "")]),
            vary(&[("vary", "a")], &[]),
            vary(&[], &[]),
            Vary::Star,
        ]
        .iter()
        .map(|vary| {
            let mut key = Vec::new();
            vary.secondary_key(&mut key);
            key
        })
        .collect();
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(keys.iter().position(|other| other == key), Some(at));
        }
        assert!(keys[6].is_empty());
    }

    /// RFC 9110 §12.5.3.
    #[test]
    fn accept_encoding_has_four_canonical_forms() {
        let cases: &[(&[&str], &str)] = &[
            (&[], ""),
            (&[""], ""),
            (&["identity"], ""),
            (&["deflate, zstd"], ""),
            (&["gzip"], "gzip"),
            (&["x-gzip"], "gzip"),
            (&["GZIP"], "gzip"),
            (&["br"], "br"),
            (&["br, gzip"], "br, gzip"),
            (&["gzip, deflate, br"], "br, gzip"),
            (&["gzip, deflate, br, zstd"], "br, gzip"),
            (&["compress, gzip"], "gzip"),
            (&["compress;q=0.5, gzip;q=1.0"], "gzip"),
            (&["gzip;q=1.0, identity; q=0.5, *;q=0"], "gzip"),
            (&["*"], "br, gzip"),
            (&["*;q=0"], ""),
            (&["*, br;q=0"], "gzip"),
            (&["gzip;q=0, *"], "br"),
            (&["gzip;q=0, br;q=0, *;q=1"], ""),
            (&["gzip;q=0.000"], ""),
            (&["gzip;q=0.001"], "gzip"),
            (&["gzip ; Q=0"], ""),
            (&["gzip;q=x"], ""),
            (&["gzip;q=-1"], ""),
            (&["gzip;q="], ""),
            (&["gzip;q"], ""),
            (&["gzip, gzip;q=0"], ""),
            (&["gzip", "br"], "br, gzip"),
            (&["gzip;q=0", "gzip, br"], "br"),
            (&["gzipped, brotli"], ""),
        ];
        for (lines, expected) in cases {
            let lines: Vec<_> = lines.iter().map(|line| ("accept-encoding", *line)).collect();
            assert_eq!(canonical_accept_encoding(&RequestFields::from_map(&map(&lines))), *expected, "{lines:?}");
        }
        for canonical in ["br, gzip", "br", "gzip", ""] {
            let own = map(&[("accept-encoding", canonical)]);
            assert_eq!(canonical_accept_encoding(&RequestFields::from_map(&own)), canonical);
        }
    }

    fn lines() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
        let byte = prop_oneof![Just(b','), Just(b' '), Just(b'"'), Just(b'\\'), Just(b'a'), Just(b'A'), Just(b';'), any::<u8>()];
        prop::collection::vec((0_u8..4, prop::collection::vec(byte, 0..8)), 0..4)
    }

    fn raw(lines: &[(u8, Vec<u8>)]) -> Vec<httparse::Header<'_>> {
        let names = ["foo", "Accept", "Accept-Encoding", "Cookie"];
        lines.iter().map(|(name, value)| httparse::Header { name: names[usize::from(*name)], value }).collect()
    }

    proptest! {
        #[test]
        fn keys_and_matching_agree_on_any_bytes(a in lines(), b in lines()) {
            let (a, b) = (raw(&a), raw(&b));
            let (a, b) = (RequestFields::from_raw(&a), RequestFields::from_raw(&b));
            let vary = Vary::of(&map(&[("vary", "foo, accept, accept-encoding, cookie")]), &a);
            prop_assert!(vary.matches(&a));
            let (mut own, mut other) = (Vec::new(), Vec::new());
            vary.secondary_key(&mut own);
            vary.secondary_key_for(&b, &mut other);
            prop_assert_eq!(own == other, vary.matches(&b));
        }

        #[test]
        fn any_vary_is_read(value in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = http::HeaderValue::from_bytes(&value) {
                let mut response = HeaderMap::new();
                response.insert(VARY, value);
                let _ = Vary::of(&response, &RequestFields::from_raw(&[]));
            }
        }
    }
}
