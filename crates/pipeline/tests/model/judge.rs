//! Whether an answer is explained by what the origin said.
//!
//! Where the rules leave a cache a choice, any choice passes; the judge refuses what no reading of RFC 9111 allows.

use http::{Method, StatusCode, header};

use crate::{
    origin::{Rules, Said, Word},
    reader::{Got, Wish},
};

/// A purge: what it covered, how hard, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Purge {
    /// `None`: every page.
    pub(crate) page: Option<usize>,
    pub(crate) hard: bool,
    pub(crate) order: u64,
}

/// RFC 5861 does not say for how long a stale response may stand in when nobody else does; the default is a week.
const STANDS_IN: u64 = 7 * 86_400;

/// Panics, with the reason, if nothing explains the answer.
pub(crate) fn judge(got: &Got, said: &[Said], purges: &[Purge], now: u64) {
    let outcome = got.headers.get("x-cache").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if got.asked.method == Method::POST || got.status.is_server_error() {
        assert!(!matches!(outcome, "HIT" | "STALE" | "UPDATING"), "{got:?}");
        return;
    }
    assert!(matches!(got.status.as_u16(), 200 | 206 | 304 | 416), "{got:?}");
    let Some(tag) = got.headers.get(header::ETAG).and_then(|value| value.to_str().ok()) else {
        assert_eq!(got.status, StatusCode::RANGE_NOT_SATISFIABLE, "{got:?}");
        return;
    };
    if got.asked.wish == Wish::NoCache {
        assert!(!matches!(outcome, "HIT" | "UPDATING"), "§5.2.1.4 asks for validation: {got:?}");
    }
    let lives: Vec<&Said> = said.iter().filter(|said| said.representation.etag() == tag).collect();
    let first = lives.first().unwrap_or_else(|| panic!("the origin never said this: {got:?}"));
    content(got, first);
    assert!(!got.broken || lives.iter().any(|life| life.broken), "broken off, and not by the origin: {got:?}");
    assert_eq!(first.representation.page, got.asked.page, "another page: {got:?}");
    let explained = lives.iter().any(|life| explains(life, got, outcome, purges));
    assert!(explained, "{outcome} at {now}, asked at {}: nothing explains {got:#?}\nof {lives:#?}\nafter {purges:?}", got.at);
}

fn explains(life: &Said, got: &Got, outcome: &str, purges: &[Purge]) -> bool {
    let Rules { word, by_language, greets, .. } = life.rules;
    let asked = &got.asked;
    if by_language && life.representation.language != asked.language {
        return false;
    }
    // What greets one person is for that person, unless the origin gives it a lifetime for all.
    if greets && life.representation.greeted != asked.user && !shared(word) {
        return false;
    }
    let covered = |hard_only: bool| {
        let covers =
            |purge: &&Purge| purge.page.is_none_or(|page| page == asked.page) && purge.order <= got.order && (purge.hard || !hard_only);
        purges.iter().filter(covers).any(|purge| life.order < purge.order)
    };
    // How old it is at least, in milliseconds: it may be older, which would make it less fresh.
    let age = got.at.saturating_sub(life.at);
    let fresh_for = lifetime(word) * 1000;
    match outcome {
        "HIT" => storable(word) && !covered(false) && allowed_age(age, fresh_for, asked.wish),
        // In its window, or softly purged within its lifetime, or wanted stale.
        "UPDATING" => {
            let wanted = asked.wish == Wish::MaxStale || age < fresh_for + window(word) * 1000;
            may_be_stale(word) && !covered(true) && wanted
        }
        "STALE" => may_be_stale(word) && !covered(true) && age < fresh_for + STANDS_IN * 1000,
        // From the origin, for this request or for one that it joined.
        _ => !covered(false),
    }
}

fn allowed_age(age: u64, fresh_for: u64, wish: Wish) -> bool {
    match wish {
        Wish::None | Wish::OnlyIfCached => age < fresh_for,
        Wish::MaxStale => true,
        // Ages are told in whole seconds.
        Wish::MaxAge(max) => age < fresh_for && age < (max + 1) * 1000,
        Wish::NoCache => false,
    }
}

const fn lifetime(word: Word) -> u64 {
    match word {
        Word::MaxAge(age) | Word::MustRevalidate(age) | Word::SharedMaxAge(age) | Word::WhileRevalidating { max_age: age, .. } => age,
        Word::NoCache | Word::NoStore | Word::Private | Word::Silence => 0,
    }
}

/// RFC 5861 §3.
const fn window(word: Word) -> u64 {
    if let Word::WhileRevalidating { window, .. } = word { window } else { 0 }
}

const fn storable(word: Word) -> bool {
    !matches!(word, Word::NoStore | Word::Private)
}

/// RFC 9111 §4.2.4.
const fn may_be_stale(word: Word) -> bool {
    matches!(word, Word::MaxAge(_) | Word::WhileRevalidating { .. } | Word::Silence)
}

/// Whether the origin's explicit word gives it to others as well.
const fn shared(word: Word) -> bool {
    lifetime(word) > 0
}

/// The content is the representation's, or the part of it that was asked for, or as much as came before the origin broke off.
fn content(got: &Got, life: &Said) {
    let whole = life.representation.content();
    let range = got.headers.get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
    let expected = match (got.status, range) {
        (StatusCode::NOT_MODIFIED, _) => whole.slice(..0),
        _ if got.asked.method == Method::HEAD => whole.slice(..0),
        (StatusCode::PARTIAL_CONTENT, Some(range)) => {
            let (span, total) = range.trim_start_matches("bytes ").split_once('/').expect("a Content-Range");
            let (from, to) = span.split_once('-').expect("a Content-Range");
            assert_eq!(total, whole.len().to_string(), "{got:?}");
            whole.slice(from.parse::<usize>().expect("a number")..=to.parse().expect("a number"))
        }
        (StatusCode::PARTIAL_CONTENT, None) => panic!("206 without a Content-Range: {got:?}"),
        _ => whole,
    };
    if got.broken {
        assert!(expected.starts_with(&got.content), "mixed content: {got:?}");
    } else {
        assert_eq!(got.content, expected, "{got:?}");
    }
}
