//! Language tags (BCP 47, RFC 5646).

/// Tells whether `tag` is a well-formed language tag (RFC 5646 §2.1). Whether its subtags are registered is not asked.
///
/// Grandfathered tags such as `i-klingon` and tags of private use alone (`x-mine`) are not of use to a blog and refused.
pub(crate) fn is_language_tag(tag: &str) -> bool {
    let mut parts = tag.split('-').peekable();
    let is = |part: &str, lengths: std::ops::RangeInclusive<usize>, of: fn(&u8) -> bool| {
        lengths.contains(&part.len()) && part.bytes().all(|b| of(&b))
    };
    let alpha: fn(&u8) -> bool = u8::is_ascii_alphabetic;
    let alnum: fn(&u8) -> bool = u8::is_ascii_alphanumeric;
    if !parts.next().is_some_and(|language| is(language, 2..=8, alpha)) {
        return false;
    }
    let language_is_short = tag.split('-').next().is_some_and(|language| language.len() <= 3);
    for _ in 0..3 {
        if language_is_short && parts.next_if(|part| is(part, 3..=3, alpha)).is_none() {
            break;
        }
    }
    parts.next_if(|part| is(part, 4..=4, alpha));
    parts.next_if(|part| is(part, 2..=2, alpha) || is(part, 3..=3, u8::is_ascii_digit));
    let is_variant = |part: &&str| is(part, 5..=8, alnum) || is(part, 4..=4, alnum) && part.starts_with(|c: char| c.is_ascii_digit());
    while parts.next_if(is_variant).is_some() {}
    while let Some(singleton) = parts.next() {
        if !is(singleton, 1..=1, alnum) {
            return false;
        }
        let shortest = if singleton.eq_ignore_ascii_case("x") { 1 } else { 2 };
        let mut count = 0;
        while parts.next_if(|part| is(part, shortest..=8, alnum)).is_some() {
            count += 1;
        }
        if count == 0 {
            return false;
        }
    }
    true
}

/// Returns the tag in lower case, by the name under which its words are found: languages have had other codes, and a territory can stand for
/// a script.
pub(super) fn canonical(tag: &str) -> String {
    let tag = tag.to_ascii_lowercase().replace('_', "-");
    let (language, rest) = tag.split_once('-').map_or((tag.as_str(), None), |(language, rest)| (language, Some(rest)));
    let has = |subtag: &str| rest.is_some_and(|rest| rest.split('-').any(|part| part == subtag));
    match language {
        // Macrolanguages and codes of ISO 639-2 whose words we have under another name.
        "no" | "nn" | "nor" | "nob" | "nno" => "nb".to_owned(),
        "zh" | "zho" | "cmn" if !has("hans") && ["hant", "tw", "hk", "mo"].into_iter().any(has) => "zh-hant".to_owned(),
        "yue" if !has("hans") => "zh-hant".to_owned(),
        "zh" | "zho" | "cmn" | "yue" => "zh".to_owned(),
        _ => tag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 5646 appendix A, and some that it calls invalid.
    #[test]
    fn tags_are_those_of_rfc_5646() {
        let valid = [
            "de",
            "fr",
            "ja",
            "zh-Hant",
            "zh-Hans",
            "sr-Cyrl",
            "zh-cmn-Hans-CN",
            "cmn-Hans-CN",
            "zh-yue-HK",
            "yue-HK",
            "zh-Hans-CN",
            "sr-Latn-RS",
            "sl-rozaj",
            "sl-rozaj-biske",
            "sl-nedis",
            "de-CH-1901",
            "sl-IT-nedis",
            "hy-Latn-IT-arevela",
            "de-DE",
            "en-US",
            "es-419",
            "de-CH-x-phonebk",
            "az-Arab-x-AZE-derbend",
            "en-US-u-islamcal",
            "zh-CN-a-myext-x-private",
            "en-a-myext-b-another",
        ];
        for tag in valid {
            assert!(is_language_tag(tag), "{tag}");
        }
        for tag in [
            "",
            "a",
            "a-DE",
            "de-419-DE",
            "de_AT",
            "deutsch-sprache-x",
            "<b>",
            "de-",
            "-de",
            "de--AT",
            "en-u",
            "en-x-",
            "german (Austria)",
            "日本語",
        ] {
            assert!(!is_language_tag(tag), "{tag}");
        }
    }
}
