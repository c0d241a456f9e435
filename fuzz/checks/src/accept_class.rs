//! The class of an `Accept` field.

use http::HeaderValue;
use policy::AcceptClass;
use semantics::RequestFields;

use crate::input::{field, values};

/// One line of `Accept` per line of input. Its lines mean what one list means; letter case, blanks and images mean nothing; whoever names
/// HTML shares the browsers' page only if no other form is mentioned anywhere.
pub fn accept_class(data: &[u8]) {
    let lines = values(data);
    let class = of(&lines);
    let joined = lines.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b","[..]);
    let with = |text: &[u8]| of(&[HeaderValue::from_bytes(text).expect("made of field values")]);
    assert_eq!(with(&joined), class);
    assert_eq!(with(&joined.to_ascii_uppercase()), class);
    assert_eq!(with(&[&joined, &b" , image/avif;q=0.8"[..]].concat()), class);
    let lower = joined.to_ascii_lowercase();
    let mentions = |name: &[u8]| lower.windows(name.len()).any(|window| window == name);
    let other_form = [&b"json"[..], b"mark", b"rss+", b"atom+"].into_iter().any(mentions);
    let expected = if other_form { AcceptClass::Mixed } else { AcceptClass::Html };
    assert_eq!(with(&[&joined, &b",text/html"[..]].concat()), expected);
    assert!(other_form || matches!(class, AcceptClass::Html | AcceptClass::Other), "{class:?}");
}

fn of(lines: &[HeaderValue]) -> AcceptClass {
    AcceptClass::of(&RequestFields::from_map(&field("accept", lines)))
}
