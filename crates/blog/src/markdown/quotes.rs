//! Quotation marks and dashes as printers set them, in the language of the text.
//!
//! A language that is not in the table keeps what its author typed: a wrong mark is worse than a plain one. Escaped marks (`\"`) and code stay
//! as they are.

use crate::escape::push_text;

/// The marks of one language.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marks {
    double: [&'static str; 2],
    single: [&'static str; 2],
}

const fn marks(double: [&'static str; 2], single: [&'static str; 2]) -> Marks {
    Marks { double, single }
}

const ENGLISH: Marks = marks(["“", "”"], ["‘", "’"]);
const LOW: Marks = marks(["„", "“"], ["‚", "‘"]);
const LOW_HIGH: Marks = marks(["„", "”"], ["‚", "’"]);
const ANGLES: Marks = marks(["«", "»"], ["‹", "›"]);
const ANGLES_LOW: Marks = marks(["«", "»"], ["„", "“"]);
const ANGLES_ENGLISH: Marks = marks(["«", "»"], ["“", "”"]);
const RIGHT: Marks = marks(["”", "”"], ["’", "’"]);
// No-break spaces hold the marks to their words.
const FRENCH: Marks = marks(["«\u{a0}", "\u{a0}»"], ["“", "”"]);

/// The marks by language, those of a region first.
const LANGUAGES: [(&str, &Marks); 29] = [
    ("de-ch", &ANGLES),
    ("de-li", &ANGLES),
    ("fr-ch", &ANGLES),
    ("it-ch", &ANGLES),
    ("bg", &LOW),
    ("ca", &ANGLES_ENGLISH),
    ("cs", &LOW),
    ("de", &LOW),
    ("el", &ANGLES_ENGLISH),
    ("en", &ENGLISH),
    ("es", &ANGLES_ENGLISH),
    ("et", &LOW),
    ("fi", &RIGHT),
    ("fr", &FRENCH),
    ("hr", &LOW_HIGH),
    ("id", &ENGLISH),
    ("it", &ANGLES_ENGLISH),
    ("nb", &ANGLES),
    ("nl", &ENGLISH),
    ("no", &ANGLES),
    ("pl", &LOW_HIGH),
    ("pt", &ENGLISH),
    ("ro", &LOW_HIGH),
    ("ru", &ANGLES_LOW),
    ("sk", &LOW),
    ("sl", &LOW),
    ("sv", &RIGHT),
    ("tr", &ENGLISH),
    ("uk", &ANGLES_LOW),
];

impl Marks {
    /// Returns the marks of the language with this tag (BCP 47).
    pub(super) fn of(language: &str) -> Option<&'static Self> {
        let tag = language.to_ascii_lowercase();
        let fits = |known: &str| tag.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        LANGUAGES.iter().find(|(known, _)| fits(known)).map(|&(_, marks)| marks)
    }
}

/// Sets text. It remembers what came before within its block, as elements part the text that belongs together.
#[derive(Debug)]
pub(super) struct Typesetter {
    marks: Option<&'static Marks>,
    before: Option<char>,
    is_single_open: bool,
}

impl Typesetter {
    pub(super) const fn new(marks: Option<&'static Marks>) -> Self {
        Self { marks, before: None, is_single_open: false }
    }

    /// Begins another block.
    pub(super) fn reset(&mut self) {
        self.before = None;
        self.is_single_open = false;
    }

    /// Takes note of something that is not set, such as code: it ends with `c`.
    pub(super) fn pass(&mut self, c: char) {
        self.before = Some(c);
    }

    /// Returns the last character of the block so far.
    pub(super) const fn before(&self) -> Option<char> {
        self.before
    }

    /// Writes `text` as it is.
    pub(super) fn verbatim(&mut self, out: &mut String, text: &str) {
        push_text(out, text);
        self.before = text.chars().next_back().or(self.before);
    }

    /// Writes `text`, which is followed by `after`.
    pub(super) fn write(&mut self, out: &mut String, text: &str, after: Option<char>) {
        let Some(marks) = self.marks else { return self.verbatim(out, text) };
        let mut rest = text;
        while let Some(at) = rest.find(['"', '\'', '-', '.']) {
            self.verbatim(out, &rest[..at]);
            rest = &rest[at..];
            let mark = rest.as_bytes()[0];
            let count = rest.bytes().take_while(|&byte| byte == mark).count();
            let one = count == 1 || matches!(mark, b'"' | b'\'');
            let length = if one { 1 } else { count };
            let next = rest[length..].chars().next().or(if rest.len() == length { after } else { None });
            match (mark, count) {
                (b'"', _) => out.push_str(marks.double[usize::from(!self.opens(next))]),
                (b'\'', _) => out.push_str(self.single(marks, next)),
                (b'-', 2) => out.push('–'),
                (b'-', 3) => out.push('—'),
                (b'.', 3) => out.push('…'),
                _ => out.push_str(&rest[..length]),
            }
            self.before = Some(char::from(mark));
            rest = &rest[length..];
        }
        self.verbatim(out, rest);
    }

    /// Tells whether a mark before `next` opens a quotation: after a space or another opening mark, and before a word.
    fn opens(&self, next: Option<char>) -> bool {
        let after_space = self.before.is_none_or(|c| c.is_whitespace() || "([{<-–—/=\"'„“«‚‘‹¿¡".contains(c));
        let before_word = next.is_some_and(|c| !c.is_whitespace());
        // Behind a mark that closed, at the end: `'"`.
        let is_doubled = matches!(self.before, Some('"' | '\'')) && next.is_none_or(|c| !c.is_alphanumeric());
        after_space && before_word && !is_doubled
    }

    fn single(&mut self, marks: &'static Marks, next: Option<char>) -> &'static str {
        const APOSTROPHE: &str = "’";
        // The years of a decade: '90s.
        if self.opens(next) && !next.is_some_and(|c| c.is_ascii_digit()) {
            self.is_single_open = true;
            return marks.single[0];
        }
        let in_word = next.is_some_and(char::is_alphanumeric);
        if self.is_single_open && !in_word {
            self.is_single_open = false;
            return marks.single[1];
        }
        APOSTROPHE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(language: &str, text: &str) -> String {
        let mut out = String::new();
        Typesetter::new(Marks::of(language)).write(&mut out, text, None);
        out
    }

    /// The expected marks are those of the languages' style guides: The Chicago Manual of Style, Duden, Imprimerie nationale, RAE, and so
    /// on.
    #[test]
    fn marks_are_those_of_the_language() {
        let cases = [
            ("en", "\"a\" and 'b'", "“a” and ‘b’"),
            ("en-GB", "it's \"it's\"", "it’s “it’s”"),
            ("de", "\"a\" und 'b', geht's", "„a“ und ‚b‘, geht’s"),
            ("de-AT", "\"a\"", "„a“"),
            ("de-CH", "\"a\" 'b'", "«a» ‹b›"),
            ("fr", "\"l'été\"", "«\u{a0}l’été\u{a0}»"),
            ("es", "\"a\"", "«a»"),
            ("pl", "\"a\"", "„a”"),
            ("sv", "\"a\"", "”a”"),
            ("ru", "\"а\"", "«а»"),
            ("ja", "\"a\" -- b...", "\"a\" -- b..."),
            ("tlh", "it's", "it's"),
            ("", "\"a\"", "\"a\""),
            // Not every tag that begins so is this language.
            ("enm", "\"a\"", "\"a\""),
        ];
        for (language, text, expected) in cases {
            assert_eq!(set(language, text), expected, "{language}");
        }
    }

    #[test]
    fn english_as_it_is_printed() {
        let cases = [
            ("a -- b --- c ... d", "a – b — c … d"),
            ("a - b .. c ---- d", "a - b .. c ---- d"),
            ("(\"a\") [\"b\"] \"c\"-\"d\"", "(“a”) [“b”] “c”-“d”"),
            ("\"'a' b\"", "“‘a’ b”"),
            ("\"a 'b'\"", "“a ‘b’”"),
            ("the '90s, dogs' tails", "the ’90s, dogs’ tails"),
            ("6'2\"", "6’2”"),
            ("\"a\nb\"", "“a\nb”"),
            ("<&>", "&lt;&amp;&gt;"),
        ];
        for (text, expected) in cases {
            assert_eq!(set("en", text), expected, "{text}");
        }
    }

    #[test]
    fn elements_between_do_not_part_a_quotation() {
        let mut out = String::new();
        let mut setter = Typesetter::new(Marks::of("en"));
        setter.write(&mut out, "\"", Some('*'));
        setter.write(&mut out, "a", Some('*'));
        setter.write(&mut out, "\"", None);
        assert_eq!(out, "“a”");
        out.clear();
        setter.reset();
        setter.pass('x');
        setter.write(&mut out, "\" b", None);
        assert_eq!(out, "” b");
    }
}
