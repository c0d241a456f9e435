//! Which form of a page a client gets, and which of them its conditions are about.

use http::{HeaderValue, Method};
use semantics::{
    RequestFields,
    coding::{AcceptedCodings, Coding, CodingSet, evaluate_forms, tag_of},
    conditional::Precondition,
};

use crate::input::{blocks, field, values};

/// The tag of the identity.
const TAG: &[u8] = b"\"v1\"";

/// Lines of `Accept-Encoding`, then lines of `If-None-Match`. A second, simple reader agrees on every choice; how the field is cut into lines,
/// letter case and unknown codings mean nothing; what is not at hand cannot change a choice among what is; what is refused is never sent, nor
/// said to be current.
pub fn accept_encoding(data: &[u8]) {
    let [codings, conditions] = blocks::<2>(data).map(values);
    let accepted = of(&codings);
    for at_hand in sets() {
        let chosen = accepted.best(at_hand);
        assert_eq!(chosen, simply(&codings, at_hand), "{codings:?}");
        let Some(coding) = chosen else { continue };
        assert!(at_hand.contains(coding) && accepted.accepts(coding));
        for other in Coding::ALL.into_iter().filter(|other| *other != coding) {
            assert_eq!(accepted.best(at_hand.without(other)), chosen);
        }
    }

    // Strings are read line by line.
    if !codings.iter().any(|line| line.as_bytes().contains(&b'"')) {
        let joined = codings.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b","[..]);
        for same in [joined.clone(), joined.to_ascii_uppercase(), [b"deflate;q=0.8 , compress,", &joined[..], b",,"].concat()] {
            let same = of(&[HeaderValue::from_bytes(&same).expect("made of field values")]);
            assert!(codings.is_empty() || same == accepted, "{codings:?}: {same:?}, not {accepted:?}");
        }
    }
    let refusing: Vec<_> = codings.iter().cloned().chain([HeaderValue::from_static("br;q=0")]).collect();
    assert!(!of(&refusing).accepts(Coding::Brotli));

    let chosen = accepted.best(CodingSet::ALL);
    let mut request = field("accept-encoding", &codings);
    request.extend(field("if-none-match", &conditions));
    let (outcome, form) = evaluate_forms(&Method::GET, &RequestFields::from_map(&request), (Some(TAG), None), chosen, accepted);
    let names = |part: &[u8]| conditions.iter().any(|line| line.as_bytes().windows(part.len()).any(|window| window == part));
    assert!(outcome != Precondition::Failed, "If-None-Match never fails a GET");
    if outcome == Precondition::NotModified {
        // Some clients send a tag without its quotes.
        assert!(names(b"*") || names(opaque(&tag_of(TAG, form))), "304 to {conditions:?}");
        assert!(form.is_none_or(|form| accepted.accepts(form)));
    }
    // Whoever sends back the tag of what it was sent has it.
    let mut request = field("accept-encoding", &codings);
    request.insert("if-none-match", HeaderValue::from_bytes(&tag_of(TAG, chosen)).expect("a tag"));
    let outcome = evaluate_forms(&Method::GET, &RequestFields::from_map(&request), (Some(TAG), None), chosen, accepted);
    assert_eq!(outcome, (Precondition::NotModified, chosen));
}

fn of(lines: &[HeaderValue]) -> AcceptedCodings {
    AcceptedCodings::of(&RequestFields::from_map(&field("accept-encoding", lines)))
}

fn sets() -> impl Iterator<Item = CodingSet> {
    (0..8_u8).map(|bits| {
        Coding::ALL
            .into_iter()
            .enumerate()
            .filter(|(at, _)| bits >> at & 1 == 1)
            .fold(CodingSet::EMPTY, |set, (_, coding)| set.with(coding))
    })
}

/// RFC 9110 §12.5.3, read the long way: a list of names with weights, looked up for each coding.
fn simply(codings: &[HeaderValue], at_hand: CodingSet) -> Option<Coding> {
    if codings.is_empty() {
        return None;
    }
    let mut named: Vec<(String, u32)> = Vec::new();
    for line in codings {
        for member in members(line.as_bytes()) {
            let text: String = member.iter().map(|&byte| char::from(byte)).collect();
            let mut parts = split(&text, ';').into_iter();
            let name = trim(&parts.next().unwrap_or_default()).to_ascii_lowercase();
            let name = if name == "x-gzip" { "gzip".to_owned() } else { name };
            let weights: Vec<u32> = parts.flat_map(|part| weight(&part)).collect();
            named.push((name, weights.last().copied().unwrap_or(1000)));
        }
    }
    let weight_of = |name: &str| named.iter().filter(|(known, _)| known == name).map(|(_, weight)| *weight).min();
    let star = weight_of("*");
    let mut best = (0, None);
    for (name, coding) in [("br", Coding::Brotli), ("zstd", Coding::Zstd), ("gzip", Coding::Gzip)] {
        let weight = weight_of(name).or(star).unwrap_or(0);
        if at_hand.contains(coding) && weight > best.0 {
            best = (weight, Some(coding));
        }
    }
    if weight_of("identity").is_some_and(|identity| identity > best.0) { None } else { best.1 }
}

/// The members of a list: what commas part that stand in no string.
fn members(line: &[u8]) -> Vec<&[u8]> {
    let (mut found, mut from, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, &byte) in line.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                found.push(&line[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(&line[from..]);
    found
}

/// The first part ends at a semicolon that stands in no string; the others at every one.
fn split(text: &str, at: char) -> Vec<String> {
    let (mut quoted, mut escaped) = (false, false);
    let end = text.find(|c| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if c == at && !quoted => return true,
            _ => {}
        }
        false
    });
    match end {
        None => vec![text.to_owned()],
        Some(end) => [&text[..end]].into_iter().chain(text[end + 1..].split(at)).map(str::to_owned).collect(),
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// The weight that a parameter says, in thousandths; none if it is another parameter. A malformed one is a refusal.
fn weight(parameter: &str) -> Option<u32> {
    let parameter = trim(parameter).to_ascii_lowercase();
    let rest = parameter.strip_prefix('q')?;
    let Some(value) = rest.strip_prefix('=') else { return (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(0) };
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if !["0", "1"].contains(&whole) || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(0);
    }
    let thousandths: u32 = format!("{whole}{:0<3.3}", fraction).parse().expect("four digits");
    let more = fraction.bytes().any(|digit| digit != b'0');
    Some(match thousandths {
        0 if more => 1,
        0..=1000 => thousandths,
        _ => 0,
    })
}

/// A tag without its quotes.
fn opaque(tag: &[u8]) -> &[u8] {
    &tag[1..tag.len() - 1]
}
