//! JSON in which addresses that must be absolute begin with [`BASE`].

use std::{borrow::Cow, io};

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};

use crate::{escape::is_xml_char, feed::BASE};

/// Says what a JSON text is put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    /// The text is an answer of its own.
    File,
    /// Within a `script` element, which nothing in it may end.
    Script,
}

/// Writes `value`. [`BASE`] stays as it is; no text of an author contains it if it went through [`clean`].
pub(crate) fn write(value: &impl Serialize, container: Container) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, Based { container }));
    written.expect("a value of texts, numbers and lists has a JSON form, and a vector takes it");
    String::from_utf8(bytes).expect("JSON made of strings is UTF-8")
}

/// Returns `text` without the control characters that [`crate::escape::escape`] drops, of which [`BASE`] is one.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_xml_char) { Cow::Borrowed(text) } else { Cow::Owned(text.chars().filter(|&c| is_xml_char(c)).collect()) }
}

struct Based {
    container: Container,
}

impl Formatter for Based {
    fn write_char_escape<W: ?Sized + io::Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(byte) if [byte] == BASE.as_bytes() => writer.write_all(BASE.as_bytes()),
            other => CompactFormatter.write_char_escape(writer, other),
        }
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if self.container == Container::File {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&']) {
            writer.write_all(&rest.as_bytes()[..at])?;
            write!(writer, "\\u{:04x}", rest.as_bytes()[at])?;
            rest = &rest[at + 1..];
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The HTML standard ("Restrictions for contents of script elements"): `<!--`, `<script` and `</script` must not occur.
    #[test]
    fn nothing_ends_a_script_element() {
        let text = "</script><!-- <script> & \u{2028} \"\\ \u{7}";
        let script = write(&text, Container::Script);
        assert!(!script.contains(['<', '>', '&']), "{script}");
        assert_eq!(serde_json::from_str::<String>(&script).expect("JSON"), text);
        assert_eq!(serde_json::from_str::<String>(&write(&text, Container::File)).expect("JSON"), text);
    }

    #[test]
    fn the_place_of_the_base_is_kept_and_nobody_else_writes_it() {
        let values = [format!("{BASE}/a/"), clean("\u{1}/b/ \\u0001/c/").into_owned()];
        assert_eq!(write(&values, Container::File), format!("[\"{BASE}/a/\",\"/b/ \\\\u0001/c/\"]"));
    }
}
