//! Nonces in pages: a WordPress prints them into forms and scripts, and takes none back that is older than two of its ticks.
//!
//! A nonce is made of the tick in which it was made and the secret of the site, ten hexadecimal digits (`wp_create_nonce`). A page that carries one
//! is of no use when the nonce has ended, although nothing in its fields says so: its forms fail (WP-API#470, wp-rocket#400). So it is fresh
//! until the end of the tick in which it was made at the longest, and shown while it is refreshed until the end of the next one.
//!
//! What looks like a nonce counts as one: that only shortens a hold. Not here: who reads the body, and when.

use std::time::Duration;

use semantics::{Timestamp, freshness::Freshness};

/// The length of a nonce.
const LENGTH: usize = 10;
/// Bytes before a nonce that are looked at.
const BEFORE: usize = 48;
/// Bytes after a nonce that are looked at.
const AFTER: usize = 1;
/// Bytes that are kept of what was read, so that a nonce is found that lies in two pieces.
const KEPT: usize = BEFORE + LENGTH + AFTER;

/// A search for nonces in a body that comes in pieces. It holds no more than [`KEPT`] bytes.
#[derive(Debug, Clone, Default)]
pub struct NonceSearch {
    found: bool,
    kept: Vec<u8>,
}

impl NonceSearch {
    /// Begins with a body that cannot be read, as it has a content coding: it may have a nonce in it.
    #[must_use]
    pub const fn in_what_cannot_be_read() -> Self {
        Self { found: true, kept: Vec::new() }
    }

    /// Reads the next piece.
    pub fn read(&mut self, piece: &[u8]) {
        if self.found {
            return;
        }
        // What lies in this piece, and what lies in both.
        self.kept.extend_from_slice(&piece[..piece.len().min(KEPT)]);
        self.found = have_nonce(&self.kept) || have_nonce(piece);
        if piece.len() >= KEPT {
            self.kept.clear();
            self.kept.extend_from_slice(&piece[piece.len() - KEPT..]);
        } else {
            self.kept.drain(..self.kept.len().saturating_sub(KEPT));
        }
    }

    /// Returns whether there was a nonce in what was read.
    #[must_use]
    pub const fn has_found(&self) -> bool {
        self.found
    }
}

/// Returns whether there is a nonce in these bytes, with what stands before and after it.
///
/// Every run of ten bytes has exactly one of the places that are looked at: most bytes of a page are not touched.
fn have_nonce(bytes: &[u8]) -> bool {
    (LENGTH - 1..bytes.len()).step_by(LENGTH).any(|at| {
        if !is_digit(bytes[at]) {
            return false;
        }
        // Longer runs are something else, however long they are.
        let before = bytes[..at].iter().rev().take(LENGTH).take_while(|&&b| is_digit(b)).count();
        let after = bytes[at..].iter().take(LENGTH + 1).take_while(|&&b| is_digit(b)).count();
        before + after == LENGTH && is_nonce(bytes, at - before)
    })
}

const fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Returns whether the ten digits that begin here stand where nonces do: in quotes, or in an address as the value of a nonce. Digits alone may be a
/// time: they count where the word is near.
fn is_nonce(bytes: &[u8], start: usize) -> bool {
    let (before, digits) = (&bytes[start.saturating_sub(BEFORE)..start], &bytes[start..start + LENGTH]);
    let Some(&after) = bytes.get(start + LENGTH) else { return false };
    let quoted = [&b"\""[..], b"'", b"&quot;", b"&#039;", b"&#39;", b"&#34;"].iter().any(|quote| before.ends_with(quote))
        && matches!(after, b'"' | b'\'' | b'\\' | b'&');
    let in_address = before.to_ascii_lowercase().ends_with(b"nonce=") && !after.is_ascii_alphanumeric();
    let has_word = || before.windows(5).any(|word| word.eq_ignore_ascii_case(b"nonce"));
    in_address || quoted && (digits.iter().any(u8::is_ascii_alphabetic) || has_word())
}

/// Shortens the freshness of a page with nonces that was made at `made`, as nonces change with each `tick`.
///
/// How long it may stand in for a source that fails stays: where nothing answers, no form is of use.
#[must_use]
pub fn capped_by_nonce(freshness: Freshness, made: Timestamp, tick: Duration) -> Freshness {
    let seconds = (made.as_millis() / 1000).div_ceil(tick.as_secs()) * tick.as_secs();
    let (end, last) = (Timestamp::from_secs(seconds), Timestamp::from_secs(seconds) + tick);
    let lifetime = freshness.lifetime.min(freshness.initial_age + end.since(freshness.response_time));
    let fresh_until = freshness.response_time + lifetime - freshness.initial_age;
    let stale_while_revalidate = freshness.stale_while_revalidate.min(last.since(fresh_until));
    Freshness { lifetime, stale_while_revalidate, ..freshness }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};
    use semantics::cache_control::ResponseDirectives;

    use super::*;

    fn has(text: &str) -> bool {
        let mut search = NonceSearch::default();
        search.read(text.as_bytes());
        search.has_found()
    }

    /// From WordPress 6.8.7 (`wp_nonce_field`, `wp_nonce_url`, `wp_localize_script`), Contact Form 7 and WooCommerce.
    const WITH: [&str; 10] = [
        r#"<input type="hidden" id="_wpnonce" name="_wpnonce" value="3fc92f3572" />"#,
        r#"<input type="hidden" name="woocommerce-login-nonce" value="00c92f3572" />"#,
        r#"var userProfileL10n = {"user_id":"0","nonce":"3fc92f3572"};"#,
        "wp.apiFetch.use( wp.apiFetch.createNonceMiddleware( \"3fc92f3572\" ) );",
        "var security = '3fc92f3572';",
        r#"<a href="/?a=b&amp;_wpnonce=1234567890">x</a>"#,
        r#"<a href="/?_wpnonce=3fc92f3572&#038;x=1">"#,
        r#"<div data-settings="{&quot;key&quot;:&quot;3fc92f3572&quot;}">"#,
        r#"{\"ajax_nonce\":\"3fc92f3572\"}"#,
        r#"{"nonce":"1234567890"}"#,
    ];

    const WITHOUT: [&str; 8] = [
        r#"<div class="wp-elements-0a1b2c3d4e5f60718293a4b5c6d7e8f9">"#,
        r#"<script src="/a.js?ver=3fc92f3572"></script>"#,
        r#"data-time="1732312345""#,
        r#""3fc92f357""#,
        r#""3fc92f35720""#,
        r#""3FC92F3572""#,
        "3fc92f3572",
        "a page without anything, of some facade defaced",
    ];

    #[test]
    fn nonces_are_found_where_they_stand_in_pages() {
        for text in WITH {
            for lead in 0..12 {
                assert!(has(&format!("{}{text} and more", "x".repeat(lead))), "{text}");
            }
        }
        for text in WITHOUT {
            for lead in 0..12 {
                assert!(!has(&format!("{}{text} and more", "x".repeat(lead))), "{text}");
            }
        }
    }

    #[test]
    fn a_nonce_that_lies_in_several_pieces_is_found() {
        for text in WITH {
            let text = format!("{}{text} and more", "<p>text</p>".repeat(20));
            for at in 0..text.len() {
                let mut search = NonceSearch::default();
                search.read(&text.as_bytes()[..at]);
                search.read(&text.as_bytes()[at..]);
                assert!(search.has_found(), "{at}: {text}");
            }
            for size in 1..80 {
                let mut search = NonceSearch::default();
                text.as_bytes().chunks(size).for_each(|piece| search.read(piece));
                assert!(search.has_found() && search.kept.len() <= 2 * KEPT, "{size}: {text}");
            }
        }
        for text in WITHOUT {
            for size in 1..80 {
                let mut search = NonceSearch::default();
                text.as_bytes().chunks(size).for_each(|piece| search.read(piece));
                assert!(!search.has_found(), "{size}: {text}");
            }
        }
    }

    /// `wp_nonce_tick` is `ceil(time() / (nonce_life / 2))`, and `wp_verify_nonce` takes this tick's and the last one's.
    #[test]
    fn a_page_is_fresh_in_the_tick_of_its_nonces_and_stale_in_the_next() {
        let tick = Duration::from_hours(12);
        let start = Timestamp::from_secs(43_200 * 41_666);
        let fresh = |made: Timestamp, lifetime: u64, stale: u64| {
            let freshness = Freshness::of(StatusCode::OK, &HeaderMap::new(), &ResponseDirectives::default(), made, made);
            let stale_while_revalidate = Duration::from_secs(stale);
            let capped =
                capped_by_nonce(Freshness { stale_while_revalidate, ..freshness.with_hold(Duration::from_secs(lifetime)) }, made, tick);
            (capped.lifetime.as_secs(), capped.stale_while_revalidate.as_secs())
        };
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert_eq!(fresh(at(1), 3_600, 86_400), (3_600, 86_399 - 3_600));
        assert_eq!(fresh(at(43_199), 3_600, 86_400), (1, 43_200));
        assert_eq!(fresh(at(43_200), 3_600, 60), (0, 60));
        assert_eq!(fresh(at(1), 604_800, 86_400), (43_199, 43_200));
        assert_eq!(fresh(at(1), 60, 60), (60, 60));
    }
}
