//! Guesses what was meant: the known word that is nearest to an unknown one.

/// Returns the candidate that `word` is most likely a typing error of, or `None` if none is near.
///
/// Case and the choice between `-` and `_` do not count as differences.
pub(super) fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    // A third of the letters may be wrong; in a short word no more than one, or "on" would become "off".
    let allowed = (word.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn plain(word: &str) -> String {
    word.trim().to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let cases = [
            ("lisen", Some("listen")),
            ("LISTEN", Some("listen")),
            ("header-bytes", Some("header_bytes")),
            ("haeder_bytes", Some("header_bytes")),
            ("hots", Some("hosts")),
            ("banana", None),
            ("", None),
        ];
        for (word, expected) in cases {
            assert_eq!(closest(word, ["listen", "header_bytes", "hosts"]), expected, "{word}");
        }
    }
}
