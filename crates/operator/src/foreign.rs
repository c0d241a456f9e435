//! Text that strangers wrote: addresses, names of programs, cookies and tags. A terminal shows it, and does nothing else.
//!
//! What would act on a terminal, change the order of the text around it, or not be seen at all is written out (`\u{1b}`). So nobody who asks for a page
//! can move the cursor of whoever looks at the list of requests, or give one address the looks of another.

use std::borrow::Cow;

use ratatui::text::Span;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The marks that may stand above and below a letter. Languages need two; piles of them grow over other lines.
const MARKS_MAX: u32 = 2;

/// The letters of a text that are shown at most: two pages of them help nobody, and are measured and written each second.
const LETTERS_MAX: usize = 1_000;

/// Writes text so that a terminal shows all of it; `…` stands for the end of one that is very long.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    // Most texts are plain, and many of them are shown each second.
    if text.len() <= LETTERS_MAX && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len().min(2 * LETTERS_MAX));
    // A mark needs a letter before it.
    let mut marks = MARKS_MAX;
    for (number, letter) in text.chars().enumerate() {
        if number == LETTERS_MAX {
            shown.push('…');
            break;
        }
        let is_mark = columns_of(letter) == 0;
        if acts(letter) || (is_mark && marks == MARKS_MAX) {
            shown.extend(letter.escape_unicode());
            marks = MARKS_MAX;
        } else {
            shown.push(letter);
            marks = if is_mark { marks + 1 } else { 0 };
        }
    }
    Cow::Owned(shown)
}

/// Writes JSON so that a terminal shows all of it, without changing what it says: such letters stand only within texts, where they have another form.
#[must_use]
pub fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for letter in json.chars() {
        // The line's end and the space are JSON's own.
        if acts(letter) && letter != '\n' {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Returns an answer of the admin API all texts of which a terminal shows and does not obey: an origin's fields are among them.
pub(crate) fn visible_answer<T: Serialize + DeserializeOwned>(answer: &T) -> T {
    fn show(value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(shown) = visible(text) {
                    *text = shown;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(show),
            Value::Object(values) => values.values_mut().for_each(show),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut value = serde_json::to_value(answer).expect("it came as JSON");
    show(&mut value);
    serde_json::from_value(value).expect("texts are still texts")
}

/// Writes text as one word of a shell's command, so that a command with it can be copied.
pub(crate) fn shell_word(text: &str) -> String {
    let text = visible(text);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/:._-+=@%,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Tells whether a letter does something to the text around it, or is not to be seen: controls, marks of direction, separators of lines, fillers, what
/// has no width by its meaning (the Default_Ignorable_Code_Point of Unicode), and spaces that look like the usual one.
fn acts(letter: char) -> bool {
    (letter.is_control() || letter.is_whitespace() && letter != ' ')
        || matches!(
            letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns the columns that a text takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { Span::raw(text).width() }
}

fn columns_of(letter: char) -> usize {
    columns(letter.encode_utf8(&mut [0; 4]))
}

/// Shortens a text that takes more than `room` columns: `…` stands for its end.
pub(crate) fn fit(text: &str, room: usize) -> Cow<'_, str> {
    // Whatever is longer in bytes than six times its room does not fit, and is not measured.
    if text.len() <= room || (text.len() <= room.saturating_mul(6) && columns(text) <= room) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    let mut taken = 1;
    for letter in text.chars() {
        taken += columns_of(letter);
        if taken > room {
            break;
        }
        shown.push(letter);
    }
    if room > 0 {
        shown.push('…');
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_or_hides_is_written_out() {
        let acting = "\0\t\n\r\u{1b}\u{7f}\u{80}\u{9b}\u{9f}\u{a0}\u{ad}\u{61c}\u{200b}\u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\
                      \u{3000}\u{3164}\u{fe0f}\u{feff}\u{e0041}";
        for letter in acting.chars() {
            let expected = format!("a\\u{{{:x}}}b", u32::from(letter));
            assert_eq!(visible(&format!("a{letter}b")), expected);
        }
        for plain in ["", "/hello?a=…", "<script>alert(1)</script>", "\\u{1b}", "héllo 東京 שלום 👍", "Mozilla/5.0 (X11)"] {
            assert_eq!(visible(plain), plain);
        }
    }

    #[test]
    fn what_is_very_long_is_cut_off() {
        for letter in ["a", "é"] {
            assert_eq!(visible(&letter.repeat(8 << 10)), format!("{}…", letter.repeat(LETTERS_MAX)));
            assert_eq!(visible(&letter.repeat(LETTERS_MAX)), letter.repeat(LETTERS_MAX));
        }
    }

    #[test]
    fn a_pile_of_marks_stays_within_its_line() {
        let pile = format!("a{}b", "\u{301}".repeat(50));
        let shown = visible(&pile);
        assert!(shown.starts_with("a\u{301}\u{301}\\u{301}"), "{shown}");
        assert_eq!(shown.chars().filter(|letter| *letter == '\u{301}').count(), 2);
        // A mark without a letter would stand on whatever is before it: a border, or another field.
        assert_eq!(visible("\u{301}a"), "\\u{301}a");
    }

    #[test]
    fn json_says_the_same_and_acts_on_no_terminal() {
        let text = "a\u{9b}31m\u{202e}b\u{7f}\u{e0041}\n\u{1b}é…\"\\";
        let json = serde_json::to_string_pretty(&serde_json::json!({ "a": [text] })).expect("JSON");
        let shown = visible_json(&json);
        assert!(shown.chars().all(|letter| letter == '\n' || !acts(letter)), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON")["a"][0], text);
        assert!(shown.contains("é…"), "{shown}");
    }

    /// An origin's field with an escape in it could move the cursor of whoever asks why a page is not stored.
    #[test]
    fn every_text_of_an_answer_is_shown_and_not_obeyed() {
        let answer = serde_json::json!({ "etag": "\"\u{1b}]0;x\u{7}\"", "vary": [["x", "\u{202e}a"]], "age": 3, "none": null });
        let shown = visible_answer(&answer);
        let expected = serde_json::json!({ "etag": "\"\\u{1b}]0;x\\u{7}\"", "vary": [["x", "\\u{202e}a"]], "age": 3, "none": null });
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_command_with_a_strangers_address_is_one_command() {
        for (text, expected) in [
            ("https://a.example/b", "https://a.example/b"),
            ("https://a/?b=…&c=…", "'https://a/?b=…&c=…'"),
            ("https://a/';rm -rf ~;'", r"'https://a/'\'';rm -rf ~;'\'''"),
            ("https://a/$(id)`id`", "'https://a/$(id)`id`'"),
            ("https://a/\nid", r"'https://a/\u{a}id'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), expected);
        }
    }

    #[test]
    fn what_is_too_long_ends_with_an_ellipsis_in_its_room() {
        for (text, room, expected) in [
            ("hello", 5, "hello"),
            ("hello", 4, "hel…"),
            ("hello", 1, "…"),
            ("hello", 0, ""),
            ("東京都", 6, "東京都"),
            ("東京都", 5, "東京…"),
            ("東京都", 4, "東…"),
            ("", 0, ""),
        ] {
            assert_eq!(fit(text, room), expected, "{text} in {room}");
        }
        let long = "é".repeat(8 << 10);
        assert_eq!(columns(&fit(&long, 40)), 40);
    }
}
