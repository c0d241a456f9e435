//! Makes text that strangers sent fit to be kept: without control characters and marks that turn writing round, and no longer than its
//! bound.

use semantics::shown::is_order;

/// The character that stands where something was taken out that cannot be shown.
const HIDDEN: char = '\u{fffd}';
/// The character that stands where something was cut off, or is a value that is not kept.
pub(crate) const CUT: char = '…';

/// Appends a text to what has `out.len()` bytes already, so that all of it has at most `most` bytes; what is cut off leaves a `…`. Returns whether
/// all of it fitted.
pub(crate) fn append(out: &mut String, text: &str, most: usize) -> bool {
    if text.is_empty() {
        return true;
    }
    let start = out.len();
    // Nearly all of what is sent is plain.
    if start + text.len() <= most && is_plain(text.as_bytes()) {
        out.push_str(text);
        return true;
    }
    for character in text.chars() {
        let character = if is_order(character) { HIDDEN } else { character };
        if out.len() + character.len_utf8() > most {
            while out.len() > start && out.len() + CUT.len_utf8() > most {
                out.pop();
            }
            if out.len() + CUT.len_utf8() <= most {
                out.push(CUT);
            }
            return false;
        }
        out.push(character);
    }
    true
}

/// Returns whether a text is printable ASCII. It looks at whole blocks, as the compiler makes vectors of that.
fn is_plain(text: &[u8]) -> bool {
    let all = |block: &[u8]| block.iter().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    let (blocks, rest) = text.as_chunks::<16>();
    // The rest is looked at as a block, too: together with some of what stands before it.
    let is_rest_plain = match (text.last_chunk::<16>(), text.first_chunk::<8>(), text.last_chunk::<8>()) {
        _ if rest.is_empty() => true,
        (Some(end), ..) => all(end),
        (None, Some(start), Some(end)) => all(start) & all(end),
        (None, ..) => all(rest),
    };
    is_rest_plain && blocks.iter().all(|block| all(block))
}

/// Returns a text with at most `most` bytes.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most));
    append(&mut out, text, most);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_gives_orders_to_a_terminal_or_turns_writing_round_is_taken_out() {
        assert_eq!(shortened("a\u{1b}[2Jb\u{202e}c\r\n\u{200b}", 100), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(shortened("<b>&amp;é日本", 100), "<b>&amp;é日本", "markup and other scripts are text");
    }

    #[test]
    fn a_byte_that_cannot_be_shown_is_seen_wherever_it_stands() {
        for byte in 0..=255_u8 {
            for length in [1, 7, 8, 9, 15, 16, 17, 24, 31, 32, 45] {
                for at in 0..length {
                    let mut text = vec![b'a'; length];
                    text[at] = byte;
                    assert_eq!(is_plain(&text), (0x20..=0x7e).contains(&byte), "{byte} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn what_is_cut_off_leaves_a_mark() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdefg", 6), "abc…");
        assert_eq!(shortened("日本語", 6), "日…");
        assert_eq!(shortened("abc", 2), "");
    }

    #[test]
    fn what_stands_before_is_never_cut() {
        let mut out = "before".to_owned();
        assert!(!append(&mut out, "after", 7));
        assert_eq!(out, "before");
    }

    proptest! {
        #[test]
        fn no_text_is_longer_than_its_bound(text in any::<String>(), most in 0_usize..64) {
            prop_assert!(shortened(&text, most).len() <= most);
        }
    }
}
