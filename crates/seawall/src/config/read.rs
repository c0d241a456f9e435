//! Reads a [`File`] from text, with every fault of form: TOML itself, unknown keys, values of the wrong type or spelling.
//!
//! serde stops at the first fault. So the faulty piece is noted, taken out of the parsed tree, and the rest is read again until it reads; a
//! file with five slips gets five messages in one go.

use std::ops::Range;

use serde::Deserialize;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    error::{ConfigError, Document, Mistake},
    file::File,
    keys::unknown_key,
};

/// The largest number of faults that are reported for one file. It also bounds the work, because each fault costs one more reading.
const FAULTS_MAX: usize = 50;

/// The largest size of a configuration file. People write it by hand; 1 MiB is a mistake, such as a wrong path.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads everything of `document` that is readable, and returns every fault in the order of the text.
pub(super) fn read(document: &Document) -> (File, Vec<ConfigError>) {
    let mut tree = match DeTable::parse(&document.text) {
        Ok(tree) => tree,
        Err(error) => return (File::default(), vec![syntax_error(document, &error)]),
    };
    let mut faults: Vec<(usize, ConfigError)> = Vec::new();
    let file = loop {
        let error = match File::deserialize(toml::de::Deserializer::from(tree.clone())) {
            Ok(file) => break file,
            Err(error) => error,
        };
        let span = error.span().unwrap_or(0..0);
        let removed = remove(tree.get_mut(), &span, &mut Vec::new());
        let mistake = explain(error.message(), removed.as_ref());
        faults.push((span.start, mistake.at(document.place(span))));
        if removed.is_none() || faults.len() >= FAULTS_MAX {
            break File::default();
        }
    };
    faults.sort_by_key(|(start, _)| *start);
    (file, faults.into_iter().map(|(_, error)| error).collect())
}

/// A part that was taken out: its key, and the names of the sections around it.
struct Removed {
    key: String,
    sections: Vec<String>,
    shown: &'static str,
}

/// Takes out the key or the value that `span` covers, at any depth.
fn remove(table: &mut DeTable<'_>, span: &Range<usize>, sections: &mut Vec<String>) -> Option<Removed> {
    let here = table.iter().find(|(key, value)| key.span() == *span || value.span() == *span);
    if let Some((key, value)) = here {
        let (key, shown) = (key.get_ref().to_string(), value.get_ref().type_str());
        table.remove(key.as_str());
        return Some(Removed { key, sections: sections.clone(), shown });
    }
    for (key, value) in table.iter_mut() {
        sections.push(key.get_ref().to_string());
        let removed = remove_within(value, key.get_ref(), span, sections);
        sections.pop();
        if removed.is_some() {
            return removed;
        }
    }
    None
}

fn remove_within(value: &mut Spanned<DeValue<'_>>, key: &str, span: &Range<usize>, sections: &mut Vec<String>) -> Option<Removed> {
    match value.get_mut() {
        DeValue::Table(table) => remove(table, span, sections),
        DeValue::Array(items) => {
            if let Some(at) = items.iter().position(|item| item.span() == *span) {
                let shown = items[at].get_ref().type_str();
                *items = items.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, item)| item.clone()).collect();
                let sections = sections[..sections.len() - 1].to_vec();
                return Some(Removed { key: key.to_owned(), sections, shown });
            }
            items.iter_mut().find_map(|item| remove_within(item, key, span, sections))
        }
        _ => None,
    }
}

/// Turns a message of serde into a mistake in our own words.
fn explain(message: &str, removed: Option<&Removed>) -> Mistake {
    if let Some(mistake) = Mistake::from_message(message) {
        return mistake;
    }
    let Some(Removed { key, sections, shown }) = removed else {
        return Mistake::new(message, "see doc/configuration.md");
    };
    let path: Vec<&str> = sections.iter().map(String::as_str).collect();
    if message.starts_with("unknown field") {
        return unknown_key(key, &path);
    }
    let expected = message.rsplit_once("expected ").map_or(message, |(_, expected)| expected);
    let (expected, remedy) = match expected {
        "a string" => ("a text in quotation marks", format!("write {key} = \"...\"")),
        "a sequence" if *shown == "string" => ("a list", format!("put it in brackets: {key} = [\"...\"]")),
        "a sequence" if matches!(key.as_str(), "site" | "route") => {
            let whole: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
            ("a list of sections", format!("write the section's name in double brackets: [[{}]]", whole.join(".")))
        }
        "a sequence" => ("a list", format!("write {key} = [\"...\", \"...\"]")),
        "a boolean" => ("true or false", format!("write {key} = true or {key} = false, without quotation marks")),
        section if section.starts_with("struct ") => ("a section", format!("write a line [{key}] and its keys below it")),
        other => (other, format!("write {key} as the manual shows it: doc/configuration.md")),
    };
    let shown = match *shown {
        "string" => "a text",
        "integer" | "float" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "table" => "a section",
        _ => "a date or time",
    };
    Mistake::new(format!("`{key}` must be {expected}, and is {shown}"), remedy)
}

fn syntax_error(document: &Document, error: &toml::de::Error) -> ConfigError {
    let span = error.span().unwrap_or(0..0);
    let remedy = match error.message() {
        message if message.contains("duplicate key") => "a key may stand only once in its section: remove one of the two",
        _ => {
            "this is not TOML: texts stand in quotation marks, lists in brackets, and each key has a line of its own, such as kind = \"generic\""
        }
    };
    Mistake::new(error.message().trim_end_matches(", expected literal string"), remedy).at(document.place(span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::error::Place;

    fn faults(text: &str) -> Vec<ConfigError> {
        read(&Document { path: "seawall.toml".into(), text: text.to_owned() }).1
    }

    fn line(error: &ConfigError) -> usize {
        match error.place {
            Place::Line { line, .. } => line,
            _ => 0,
        }
    }

    type Expected = (usize, &'static str, &'static str);

    /// The file, and for each fault: its line, the text under the caret, and a piece of the message.
    #[test]
    fn faults_of_form() {
        let cases: [(&str, &[Expected]); 22] = [
            ("soruce = \"x\"", &[(1, "soruce", "did you mean `source`?")]),
            ("[server]\nlisen = []", &[(2, "lisen", "did you mean `listen`?")]),
            ("[sever]\nlisten = []", &[(1, "sever", "did you mean `server`?")]),
            ("server.lisen = []", &[(1, "lisen", "did you mean `listen`?")]),
            ("server = { lisen = [] }", &[(1, "lisen", "did you mean `listen`?")]),
            ("[[site]]\nhost = [\"a\"]\n[[site]]\nhoss = 1", &[(2, "host", "did you mean `hosts`?"), (4, "hoss", "did you mean `hosts`?")]),
            ("[[site]]\n[site.cache]\nholt = \"1s\"", &[(3, "holt", "`holt` is not a key of [site.cache]")]),
            ("[server]\nlisten = \"127.0.0.1:80\"", &[(2, "\"127.0.0.1:80\"", "brackets: listen = [")]),
            (
                "[server]\nlisten = [\"8080\", \"127.0.0.1:1\", \":80\"]",
                &[(2, "\"8080\"", "did you mean \"127.0.0.1:8080\"?"), (2, "\":80\"", "did you mean \"0.0.0.0:80\"?")],
            ),
            ("[server]\nworkers = \"4\"", &[(2, "\"4\"", "`workers` must be a whole number without quotation marks")]),
            ("[server]\nworkers = -1", &[(2, "-1", "whole number")]),
            ("[limits]\nidle_timeout = 30", &[(2, "30", "did you mean \"30s\"?")]),
            ("[limits]\nidle_timeout = 1.5", &[(2, "1.5", "`idle_timeout` must be a duration such as \"30s\", and is a number")]),
            ("[cache]\nmemory = \"64mb\"", &[(2, "\"64mb\"", "did you mean \"64MiB\"?")]),
            ("[cache]\nmemory = true", &[(2, "true", "a size such as \"64MiB\"")]),
            ("[cache]\nhonour_request_directives = \"yes\"", &[(2, "\"yes\"", "must be true or false")]),
            ("[cache]\nignore_cookies = [\"*\"]", &[(2, "\"*\"", "personal")]),
            ("[cache]\ndrop_set_cookies = [\"*\"]", &[(2, "\"*\"", "session")]),
            ("kind = \"blgo\"", &[(1, "\"blgo\"", "did you mean \"blog\"?")]),
            ("log = 5", &[(1, "5", "write a line [log]")]),
            ("[site]\nsource = \"x\"", &[(1, "[site]", "double brackets")]),
            (
                "a = 1\n[log]\nformat = \"jsno\"\n[limits]\nconnections = \"many\"\nheader_bytes = \"1K\"\n[origin]\nhost = \"https://a.example\"",
                &[
                    (1, "a", "not a key"),
                    (3, "\"jsno\"", "json"),
                    (5, "\"many\"", "whole"),
                    (6, "\"1K\"", "1KiB"),
                    (8, "\"https://a.example\"", "a.example"),
                ],
            ),
        ];
        for (text, expected) in cases {
            let faults = faults(text);
            assert_eq!(faults.len(), expected.len(), "{text}\n{faults:?}");
            for (fault, (at, under, piece)) in faults.iter().zip(expected) {
                let shown = fault.to_string();
                assert_eq!(line(fault), *at, "{shown}");
                assert!(shown.contains(piece), "{piece:?} is missing in\n{shown}");
                let Place::Line { text, column, width, .. } = &fault.place else { panic!("a line") };
                assert_eq!(text.chars().skip(column - 1).take(*width).collect::<String>(), *under, "{shown}");
            }
        }
    }

    #[test]
    fn broken_toml_is_one_error_with_its_line() {
        let cases = [
            ("a = \n", 1, "TOML"),
            ("source = http://127.0.0.1\n", 1, "quotation marks"),
            ("[server\nlisten = []", 1, "TOML"),
            ("source = \"a\"\nsource = \"b\"", 2, "only once"),
            ("[log]\n[log]", 2, "only once"),
        ];
        for (text, at, piece) in cases {
            let faults = faults(text);
            assert_eq!((faults.len(), line(&faults[0])), (1, at), "{text}: {faults:?}");
            assert!(faults[0].to_string().contains(piece), "{}", faults[0]);
        }
    }

    #[test]
    fn what_is_right_is_kept_beside_what_is_wrong() {
        let document = Document { path: "f".into(), text: "kind = \"blog\"\nx = 1\n[log]\nformat = \"json\"\naccess = 3".to_owned() };
        let (file, faults) = read(&document);
        assert_eq!(faults.len(), 2);
        assert!(file.kind.is_some() && file.log.format.is_some() && file.log.access.is_none());
    }

    #[test]
    fn many_faults_end_somewhere() {
        let text: String = (0..500).map(|n| format!("x{n} = 1\n")).collect();
        assert_eq!(faults(&text).len(), FAULTS_MAX);
    }
}
