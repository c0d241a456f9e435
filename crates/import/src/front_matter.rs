//! Front matter and configuration of other generators: YAML, TOML and JSON become one kind of value. And dates, as they write them.

use std::path::Path;

use jiff::{Timestamp, civil::DateTime, fmt::rfc2822, tz::TimeZone};
use serde_json::{Map, Value};

use crate::error::ImportError;

pub(crate) type Table = Map<String, Value>;

/// A text and what stands before it.
#[derive(Debug)]
pub(crate) struct Split<'a> {
    pub(crate) front: Table,
    pub(crate) body: &'a str,
    /// The line on which the body begins.
    pub(crate) line: usize,
}

/// Says where front matter may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// It is at the first byte, or Jekyll reads none.
    AtOnce,
    /// Hugo skips white space before it.
    BelowSpace,
}

/// Parses a file with front matter. Returns `None` if it has none.
///
/// # Errors
/// Returns the line and the message where the front matter is broken.
pub(crate) fn split(text: &str, start: Start) -> Result<Option<Split<'_>>, (usize, String)> {
    let skipped: &[char] = match start {
        Start::AtOnce => &['\u{feff}'],
        Start::BelowSpace => &['\u{feff}', ' ', '\t', '\r', '\n'],
    };
    let (whole, text) = (text, text.trim_start_matches(skipped));
    let above = whole[..whole.len() - text.len()].matches('\n').count();
    if let Some(inner) = text.strip_prefix('{') {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        return match values.next() {
            Some(Ok(Value::Object(front))) => {
                let end = values.byte_offset();
                let line = above + 1 + text[..end].matches('\n').count();
                Ok(Some(Split { front, body: &text[end..], line }))
            }
            // Anything but a key in quotes is a shortcode or a tag.
            Some(Err(error)) if inner.trim_start().starts_with('"') => {
                Err((above + error.line().max(1), format!("not JSON: {}", one_line(&error.to_string()))))
            }
            _ => Ok(None),
        };
    }
    let Some(fence) = ["---", "+++"].into_iter().find(|fence| text.starts_with(fence)) else { return Ok(None) };
    // Three marks are enough for Hugo, whatever follows them on their line.
    let is_fence = |line: &str| match start {
        Start::AtOnce => line.trim_end() == fence,
        Start::BelowSpace => line.starts_with(fence),
    };
    if !text.lines().next().is_some_and(is_fence) {
        return Ok(None);
    }
    let mut at = text.find('\n').map_or(text.len(), |at| at + 1);
    for line in text[at..].split_inclusive('\n') {
        let is_end = line.trim_end() == fence || fence == "---" && line.trim_end() == "...";
        if is_end || is_fence(line) {
            let end = if is_end { at + line.len() } else { at + fence.len() };
            let (block, body) = (&text[fence.len()..at], &text[end..]);
            let front = if fence == "---" { yaml(block) } else { toml(block) };
            let body_line = above + 1 + text[..end].matches('\n').count();
            return front.map(|front| Some(Split { front, body, line: body_line })).map_err(|(line, message)| (above + line, message));
        }
        at += line.len();
    }
    Err((above + 1, format!("the front matter is never closed; it should end with a line `{fence}`")))
}

fn yaml(block: &str) -> Result<Table, (usize, String)> {
    if block.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Table::new());
    }
    // A tab at the end of a line, or between key and value, is common, and harmless.
    let value: Value = serde_saphyr::from_str(&block.replace('\t', " ")).map_err(|error| {
        let line = error.location().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1));
        (line.max(1), format!("not YAML: {}", one_line(&error.without_snippet().to_string())))
    })?;
    match value {
        Value::Object(table) => Ok(table),
        Value::Null => Ok(Table::new()),
        _ => Err((1, "not YAML with keys and values".to_owned())),
    }
}

fn toml(block: &str) -> Result<Table, (usize, String)> {
    let table: toml::Table = block.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| 1 + block[..span.start.min(block.len())].matches('\n').count());
        (line, format!("not TOML: {}", one_line(error.message())))
    })?;
    Ok(table.into_iter().map(|(key, value)| (key, of_toml(value))).collect())
}

fn of_toml(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(value) => Value::Bool(value),
        toml::Value::Datetime(date) => Value::String(date.to_string()),
        toml::Value::Array(list) => Value::Array(list.into_iter().map(of_toml).collect()),
        toml::Value::Table(table) => Value::Object(table.into_iter().map(|(key, value)| (key, of_toml(value))).collect()),
    }
}

/// Reads a configuration file by its extension.
pub(crate) fn config(path: &Path) -> Result<Table, ImportError> {
    let text = std::fs::read_to_string(path).map_err(ImportError::read(path))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let table = match extension {
        "toml" => toml(text),
        "json" => match serde_json::from_str(text) {
            Ok(Value::Object(table)) => Ok(table),
            Ok(_) => Err((1, "not JSON with keys and values".to_owned())),
            Err(error) => Err((error.line(), format!("not JSON: {}", one_line(&error.to_string())))),
        },
        _ => yaml(text),
    };
    table.map_err(|(line, message)| ImportError::at_line(path, line, message))
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a text under the first of some keys. Numbers and dates are texts, too.
pub(crate) fn text(table: &Table, keys: &[&str]) -> Option<String> {
    let found = keys.iter().find_map(|key| match table.get(*key)? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    });
    found.filter(|text| !text.is_empty())
}

/// Returns a switch. Jekyll and Hugo read YAML 1.1, in which `yes` and `off` are switches, too.
pub(crate) fn flag(table: &Table, key: &str) -> Option<bool> {
    match table.get(key)? {
        Value::Bool(value) => Some(*value),
        Value::Number(number) => Some(number.as_i64() != Some(0)),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
            "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Returns a list under the first of some keys: of texts, or of words in one text, which `separators` part.
pub(crate) fn list(table: &Table, keys: &[&str], separators: &[char]) -> Vec<String> {
    let value = keys.iter().find_map(|key| table.get(*key).filter(|value| !value.is_null()));
    let texts: Vec<String> = match value {
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(|value| match value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Object(table) => text(table, &["name", "title"]),
                _ => None,
            })
            .collect(),
        Some(Value::String(text)) if separators.is_empty() => vec![text.clone()],
        Some(Value::String(text)) => text.split(separators).map(str::to_owned).collect(),
        Some(Value::Number(number)) => vec![number.to_string()],
        _ => Vec::new(),
    };
    texts.into_iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

/// Reads an instant as people and engines write it; without a zone it is UTC.
pub(crate) fn instant(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(instant);
    }
    if let Ok(instant) = rfc2822::parse(text) {
        return Some(instant.timestamp());
    }
    // `2015-01-01 12:00:00 +0200`, and the same with `UTC` or `Z`.
    let (day, rest) = text.split_once([' ', 'T']).unwrap_or((text, ""));
    let mut parts = day.splitn(3, ['-', '/']);
    let (year, month, date) = (parts.next()?, parts.next()?, parts.next()?);
    let day = format!("{year}-{month:0>2}-{date:0>2}");
    let rest = rest.trim();
    let clock = rest.find([' ', '+', '-', 'Z', 'z']).map_or(rest, |at| &rest[..at]);
    let zone = rest[clock.len()..].trim();
    let mut clock_parts = clock.split(':');
    let clock = match clock_parts.next().filter(|hour| !hour.is_empty()) {
        None => "00:00:00".to_owned(),
        Some(hour) => format!("{hour:0>2}:{:0>2}:{:0>2}", clock_parts.next().unwrap_or("00"), clock_parts.next().unwrap_or("00")),
    };
    let zone = match zone {
        "" | "UTC" | "GMT" | "Z" | "z" => "Z".to_owned(),
        zone if zone.len() == 5 && !zone.contains(':') => format!("{}:{}", zone.get(..3)?, zone.get(3..)?),
        zone => zone.to_owned(),
    };
    let whole = format!("{day}T{clock}{zone}");
    whole.parse::<Timestamp>().ok().or_else(|| {
        let civil: DateTime = format!("{day}T{clock}").parse().ok()?;
        Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })
}

/// Writes an instant as front matter has it: to the second, in UTC.
pub(crate) fn written(instant: Timestamp) -> String {
    instant.round(jiff::Unit::Second).unwrap_or(instant).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_engines_write_them() {
        let cases = [
            ("2015-01-02", Some("2015-01-02T00:00:00Z")),
            ("2015-1-2 3:04", Some("2015-01-02T03:04:00Z")),
            ("2015-01-02 03:04:05 +0200", Some("2015-01-02T01:04:05Z")),
            ("2015-01-02T03:04:05+02:00", Some("2015-01-02T01:04:05Z")),
            ("2015-01-02T03:04:05.678Z", Some("2015-01-02T03:04:06Z")),
            ("2015-01-02 03:04:05 UTC", Some("2015-01-02T03:04:05Z")),
            ("Fri, 02 Jan 2015 03:04:05 +0000", Some("2015-01-02T03:04:05Z")),
            ("2015/01/02", Some("2015-01-02T00:00:00Z")),
            ("0000-00-00 00:00:00", None),
            ("soon", None),
        ];
        for (text, expected) in cases {
            assert_eq!(instant(text).map(written).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn three_forms_of_front_matter_say_the_same() {
        let forms = [
            "---\ntitle: Hi\ntags: [a, b]\n---\nText\n",
            "+++\ntitle = \"Hi\"\ntags = [\"a\", \"b\"]\n+++\nText\n",
            "{\"title\": \"Hi\", \"tags\": [\"a\", \"b\"]}\nText\n",
        ];
        for form in forms {
            for start in [Start::AtOnce, Start::BelowSpace] {
                let split = split(form, start).expect(form).expect("front matter");
                assert_eq!(text(&split.front, &["title"]).as_deref(), Some("Hi"), "{form}");
                assert_eq!((list(&split.front, &["tags"], &[]), split.body.trim()), (vec!["a".to_owned(), "b".to_owned()], "Text"));
            }
        }
        assert!(split("# Hi\n", Start::AtOnce).expect("fine").is_none());
        assert_eq!(split("---\na: 1\nb: [\n---\n", Start::AtOnce).expect_err("broken").0, 3);
    }

    /// Hugo's `parser/pageparser/pagelexer_intro.go` skips white space and a byte order mark; Jekyll's `Utils.has_yaml_header?` does not.
    #[test]
    fn front_matter_below_empty_lines_is_that_of_hugo_alone() {
        let forms = [
            "\n---\ndraft: true\n---\nText\n",
            "\u{feff}\n \t\n---\ndraft: true\n---\nText\n",
            "\n\u{feff}---\ndraft: yes\n----\nText\n",
            "  --- # what it is\ndraft: true\n---\nText\n",
            "\r\n\n+++\ndraft = true\n+++\nText\n",
            "\n\n{\n\"draft\": true\n}\nText\n",
        ];
        for form in forms {
            assert!(split(form, Start::AtOnce).expect(form).is_none(), "{form}");
            let split = split(form, Start::BelowSpace).expect(form).expect("front matter");
            let line = 1 + form[..form.find("Text").expect("text")].matches('\n').count();
            assert_eq!(flag(&split.front, "draft"), Some(true), "{form}");
            assert!(split.body.trim_start_matches(['-', '\n']) == "Text\n" && split.line.abs_diff(line) <= 1, "{form}: {}", split.line);
        }
        assert_eq!(split("\n\n---\na: [\n---\n", Start::BelowSpace).expect_err("broken").0, 4);
        assert_eq!(split("\n{\"draft\": true,}\n", Start::BelowSpace).expect_err("broken").0, 2);
        assert!(split("\n{{< figure src=\"a.png\" >}}\n", Start::BelowSpace).expect("a shortcode").is_none());
    }

    /// Go's and Ruby's readers of YAML know the switches of YAML 1.1, and Hugo takes numbers and texts for them.
    #[test]
    fn switches_as_people_write_them() {
        for (text, expected) in [
            ("true", Some(true)),
            ("yes", Some(true)),
            ("On", Some(true)),
            ("1", Some(true)),
            ("no", Some(false)),
            ("off", Some(false)),
            ("\"false\"", Some(false)),
            ("0", Some(false)),
            ("2020-01-02", None),
        ] {
            let form = format!("---\ndraft: {text}\n---\n");
            let split = split(&form, Start::AtOnce).expect(&form).expect("front matter");
            assert_eq!(flag(&split.front, "draft"), expected, "{text}");
        }
    }
}
