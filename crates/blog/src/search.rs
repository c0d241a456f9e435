//! Search without a server: an index that the script of the search page loads when somebody types, and that script.
//!
//! The index has the titles, tags and summaries of the posts, and the words of their texts with the posts in which they are. The script makes
//! words of what is typed exactly as [`terms`] does here, and finds posts in which every one of them begins a word.
//!
//! The page gives the script what it needs in `data-` attributes:
//! - `data-search="/search.json"` on the form: the address of the index. Its `input` of type `search` is what is typed.
//! - `data-search-status` on an element with `role="status"`: what is said there, in `data-searching`, `data-nothing`, `data-failed`,
//!   `data-partial` (where the index does not hold everything), and the number of results in `data-one`, `data-few`, `data-many` and
//!   `data-other`, with `{n}` in place of the number.
//! - `data-search-results` on the list: each result is an `li` with a link, a `time` and a paragraph.

use std::collections::BTreeMap;

use serde::Serialize;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::{
    digest::{digest, fingerprint},
    json::{self, Container, clean},
    markup,
    model::Model,
    post::Post,
    slug::encode_path,
};

/// The address of the index.
pub(crate) const INDEX_PATH: &str = "/search.json";

/// The script, which is small enough to be sent as it is.
pub(crate) const SCRIPT: &str = include_str!("../theme/search.js");

/// The bytes that the titles, tags and summaries take at most. The oldest posts beyond are left out, and the page says so.
const POSTS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The bytes that the words of the texts take at most. The texts of the oldest posts beyond are not searched.
const WORDS_BYTES_MAX: usize = 1024 * 1024;

/// The length of a summary in the index.
const SUMMARY_CHARS_MAX: usize = 160;

/// Words beyond this length are parts of data and no words.
const TERM_CHARS_MAX: usize = 32;

/// The number of posts from which on a word that is in more than half of them finds nothing that one would look for.
const COMMON_FROM: usize = 20;

/// Returns the address of the script, which changes with its content.
pub(crate) fn script_path() -> String {
    format!("/theme/search-{}.js", &digest(SCRIPT.as_bytes())[..12])
}

/// Returns a number that differs if the index would differ.
pub(crate) fn index_fingerprint(model: &Model) -> u128 {
    let posts: Vec<_> = texts(model).map(|post| (Entry::new(model, post), post.words_fingerprint)).collect();
    fingerprint(&posts)
}

/// The index. The script reads it by the names of its fields.
#[derive(Debug, Serialize)]
struct Index<'m> {
    posts: Vec<Entry<'m>>,
    /// All words of the texts, sorted as JavaScript compares strings (by UTF-16), with a space between them.
    words: String,
    /// The posts in which each word is, as places in `posts`: base 36, each as its distance from the one before, with a comma between
    /// them, and a semicolon between the words.
    places: String,
    /// The number of posts that are not in the index, and of those whose texts are not searched: there is more than a browser should load.
    left_out: usize,
    unsearched: usize,
}

/// A post in the index: title, address, date for programs and for people, summary, tags.
#[derive(Debug, Hash, Serialize)]
struct Entry<'m>(String, String, String, String, String, Vec<&'m str>);

/// Writes the index.
pub(crate) fn index(model: &Model) -> String {
    let (mut posts, mut posts_bytes) = (Vec::new(), 0);
    let mut words: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let (mut words_bytes, mut searched) = (0, 0);
    let all: Vec<&Post> = texts(model).collect();
    for post in &all {
        let entry = Entry::new(model, post);
        posts_bytes += entry.bytes();
        if posts_bytes > POSTS_BYTES_MAX {
            break;
        }
        let place = posts.len();
        posts.push(entry);
        if words_bytes > WORDS_BYTES_MAX {
            continue;
        }
        searched += 1;
        for term in terms(&markup::text(&post.html)) {
            let places = words.entry(term).or_insert_with_key(|term| {
                words_bytes += term.len() + 2;
                Vec::new()
            });
            if places.last() != Some(&place) {
                words_bytes += 2;
                places.push(place);
            }
        }
    }
    words.retain(|_, places| searched < COMMON_FROM || places.len() * 2 <= searched);
    let mut words: Vec<(String, Vec<usize>)> = words.into_iter().collect();
    words.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    let index = Index {
        left_out: all.len() - posts.len(),
        unsearched: posts.len() - searched,
        posts,
        words: words.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" "),
        places: words.iter().map(|(_, places)| distances(places)).collect::<Vec<_>>().join(";"),
    };
    json::write(&index, Container::File)
}

/// Lists what can be found: the posts, newest first, then the pages.
fn texts(model: &Model) -> impl Iterator<Item = &Post> {
    model.posts.iter().chain(&model.pages).map(|post| &**post)
}

impl<'m> Entry<'m> {
    fn new(model: &Model, post: &'m Post) -> Self {
        let summary: String = match post.summary.char_indices().nth(SUMMARY_CHARS_MAX) {
            Some((at, _)) => format!("{}…", post.summary[..at].trim_end()),
            None => post.summary.clone(),
        };
        let words = post.words(&model.settings);
        let (iso, text) = if post.is_page { Default::default() } else { (post.date.day.to_string(), words.long_date(post.date.day)) };
        let tags = post.tags.iter().map(String::as_str).collect();
        Self(clean(&post.title).into_owned(), encode_path(&post.path), iso, text, clean(&summary).into_owned(), tags)
    }

    fn bytes(&self) -> usize {
        let Self(title, url, iso, text, summary, tags) = self;
        [title, url, iso, text, summary].iter().map(|text| text.len() + 3).sum::<usize>()
            + tags.iter().map(|tag| tag.len() + 3).sum::<usize>()
    }
}

fn distances(places: &[usize]) -> String {
    let mut before = 0;
    let mut list = Vec::with_capacity(places.len());
    for &place in places {
        list.push(base_36(place - before));
        before = place;
    }
    list.join(",")
}

fn base_36(mut number: usize) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[number % 36]);
        number /= 36;
        if number == 0 {
            break;
        }
    }
    digits.iter().rev().map(|&digit| char::from(digit)).collect()
}

/// Makes words of a text, for comparison: in lower case, without accents, `ß` as `ss`. Of scripts without spaces, each two neighbouring signs
/// are a word, and the last one alone.
///
/// The function `terms` of `search.js` does the same.
fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    // Most pieces of most texts are ASCII, of which folding takes no more than lower case.
    for piece in text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()) {
        if !piece.is_ascii() {
            push_terms(&mut terms, &fold(piece));
        } else if (1..=TERM_CHARS_MAX).contains(&piece.len()) {
            terms.push(piece.to_ascii_lowercase());
        }
    }
    terms
}

fn push_terms(terms: &mut Vec<String>, folded: &str) {
    for word in folded.split(|c: char| !(c.is_alphanumeric() || is_combining_mark(c))) {
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| is_unspaced(c) != is_unspaced(first)).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            rest = after;
            if !is_unspaced(first) {
                if run.chars().count() <= TERM_CHARS_MAX {
                    terms.push(run.to_owned());
                }
                continue;
            }
            let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
            for (index, &start) in starts[..starts.len() - 1].iter().enumerate() {
                terms.push(run[start..starts[(index + 2).min(starts.len() - 1)]].to_owned());
            }
        }
    }
}

fn fold(text: &str) -> String {
    let bare: String = text.to_lowercase().nfkd().filter(|&c| !is_accent(c)).nfc().collect();
    let mut folded = String::with_capacity(bare.len());
    for c in bare.chars() {
        match c {
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'þ' => folded.push_str("th"),
            'ø' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' | 'ð' => folded.push('d'),
            'ħ' => folded.push('h'),
            'ı' => folded.push('i'),
            'ς' => folded.push('σ'),
            '\u{200c}' | '\u{200d}' | '\u{ad}' => {}
            c => folded.push(c),
        }
    }
    folded
}

/// Tells whether `c` is an accent that people leave out when they type: on Latin, Greek and Cyrillic letters, and the points of Hebrew and
/// Arabic.
const fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}' | '\u{64b}'..='\u{652}' | '\u{670}')
}

/// Tells whether `c` belongs to a script that puts no spaces between words: Thai, Lao, Burmese, Khmer, Han, Hiragana, Katakana.
const fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tests/search.test.mjs` has the same cases for the script.
    #[test]
    fn words_are_those_that_people_type() {
        let cases: &[(&str, &[&str])] = &[
            ("Don't panic, 42!", &["don", "t", "panic", "42"]),
            ("Zürich Straße ÆRØ Łódź İstanbul", &["zurich", "strasse", "aero", "lodz", "istanbul"]),
            ("Ёлка Αθήνα ΟΔΟΣ", &["елка", "αθηνα", "οδοσ"]),
            ("日本語 Rustの話", &["日本", "本語", "語", "rust", "の話", "話"]),
            ("ガラス", &["ガラ", "ラス", "ス"]),
            ("हिन्दी", &["हिन्दी"]),
            ("서울 여행", &["서울", "여행"]),
            ("ﬁne １２", &["fine", "12"]),
            ("שָׁלוֹם", &["שלום"]),
        ];
        for (text, expected) in cases {
            let expected: Vec<String> = expected.iter().map(|term| term.nfc().collect()).collect();
            assert_eq!(terms(text), expected, "{text}");
        }
    }

    #[test]
    fn data_is_no_word() {
        assert!(terms(&"a".repeat(TERM_CHARS_MAX + 1)).is_empty());
    }

    #[test]
    fn places_are_distances_in_base_36() {
        assert_eq!(distances(&[0, 1, 37, 1333]), "0,1,10,100");
    }

    #[test]
    fn the_script_is_small() {
        assert!(SCRIPT.len() < 6 * 1024, "{} bytes", SCRIPT.len());
    }
}
