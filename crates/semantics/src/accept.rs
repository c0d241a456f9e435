//! Which of two media types a client likes better (RFC 9110 §12.5.1).
//!
//! For resources with two forms, one of which nearly everybody wants and hardly anybody names: HTML and Markdown, for example. A client gets the
//! other form if it names that, and likes it at least as well. A client that names neither, or refuses both, gets the usual form: a
//! server may disregard `Accept` rather than answer 406.

use crate::{
    coding::weight,
    list::{members, separator, trim_ows},
    request::{RequestFields, Slot},
};

/// A media type, such as `("text", "html")`, in lower case.
pub type MediaType = (&'static str, &'static str);

/// The weights that a client gives to two media types, by the most specific range for each.
#[derive(Debug, Default)]
struct Weights {
    usual: Weight,
    other: Weight,
}

/// The weight of one media type, in thousandths.
#[derive(Debug, Default)]
struct Weight {
    /// How specific the range is that gave the weight: 0 for none, 3 for one that names the type.
    specific: u8,
    weight: u16,
}

/// Returns whether a client prefers `other` to `usual`: it names `other`, and gives `usual` no greater weight; or it refuses `usual` and takes
/// `other`. It never allocates.
#[must_use]
pub fn prefers(request: &RequestFields<'_>, other: MediaType, usual: MediaType) -> bool {
    let mut weights = Weights::default();
    match request.accept {
        Slot::Absent => return false,
        Slot::One(line) => weights.line(line, other, usual),
        Slot::Many => request.lines.for_each("accept", |line| weights.line(line, other, usual)),
    }
    let Weights { usual, other } = weights;
    let is_named = other.specific == 3;
    other.weight > 0 && other.weight >= usual.weight && (is_named || usual.specific == 3 && usual.weight == 0)
}

impl Weights {
    fn line(&mut self, line: &[u8], other: MediaType, usual: MediaType) {
        for member in members(line) {
            let end = separator(member, b';');
            let range = trim_ows(&member[..end]);
            let weight = weight(member.get(end + 1..).unwrap_or_default());
            self.other.add(specific(range, other), weight);
            self.usual.add(specific(range, usual), weight);
        }
    }
}

impl Weight {
    /// Takes the weight of a range into account. Of equally specific ranges, which a client should not send, the least weight counts: a type that
    /// was refused once stays refused.
    fn add(&mut self, specific: u8, weight: u16) {
        if specific > self.specific {
            *self = Self { specific, weight };
        } else if specific > 0 && specific == self.specific {
            self.weight = self.weight.min(weight);
        }
    }
}

/// Returns how specific `range` is for a media type: 0 if the type is not in it. Parameters of media types are not looked at.
fn specific(range: &[u8], (kind, subtype): MediaType) -> u8 {
    let Some(slash) = range.iter().position(|&b| b == b'/') else { return 0 };
    let (left, right) = (&range[..slash], &range[slash + 1..]);
    match (left, right) {
        (b"*", b"*") => 1,
        (left, b"*") if left.eq_ignore_ascii_case(kind.as_bytes()) => 2,
        (left, right) if left.eq_ignore_ascii_case(kind.as_bytes()) && right.eq_ignore_ascii_case(subtype.as_bytes()) => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn prefers_markdown(lines: &[&str]) -> bool {
        let mut map = HeaderMap::new();
        for line in lines {
            map.append("accept", line.parse().expect("a value"));
        }
        prefers(&RequestFields::from_map(&map), ("text", "markdown"), ("text", "html"))
    }

    /// RFC 9110 §12.5.1: the most specific range counts, a weight of zero refuses; §12.4.2: a weight without a value is 1.
    #[test]
    fn the_weights_of_the_most_specific_ranges_decide() {
        let cases: [(&[&str], bool); 22] = [
            (&[], false),
            (&[""], false),
            (&["*/*"], false),
            (&["text/*"], false),
            // Browsers.
            (&["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"], false),
            (&["image/avif,image/webp,image/apng,image/*,*/*;q=0.8"], false),
            // Programs that read for a language model.
            (&["text/markdown"], true),
            (&["text/markdown, text/html, */*"], true),
            (&["text/markdown, */*;q=0.1"], true),
            (&["Text/Markdown; charset=utf-8"], true),
            (&["text/markdown;variant=GFM;q=0.9, text/html;q=0.8"], true),
            (&["text/html;q=0.5", "text/markdown"], true),
            (&["text/html, text/markdown;q=0.9"], false),
            (&["text/markdown;q=0.1, */*"], false),
            (&["text/markdown;q=0"], false),
            (&["text/markdown;q=0, */*;q=0.1"], false),
            (&["text/markdown;q=0.000"], false),
            (&["text/html;q=0, */*"], true),
            (&["text/html;q=0, text/*;q=0"], false),
            (&["application/json"], false),
            (&["text/markdown, text/markdown;q=0"], false),
            (&["\"text/markdown\", */*"], false),
        ];
        for (lines, expected) in cases {
            assert_eq!(prefers_markdown(lines), expected, "{lines:?}");
        }
    }
}
