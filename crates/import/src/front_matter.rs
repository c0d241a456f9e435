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

/// Parses a file with front matter. Returns `None` if it has none.
///
/// # Errors
/// Returns the line and the message where the front matter is broken.
pub(crate) fn split(text: &str) -> Result<Option<Split<'_>>, (usize, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let Some(Ok(Value::Object(front))) = values.next() else { return Ok(None) };
        let end = values.byte_offset();
        let line = 1 + text[..end].matches('\n').count();
        return Ok(Some(Split { front, body: &text[end..], line }));
    }
    let first = text.lines().next().unwrap_or_default().trim_end();
    if first != "---" && first != "+++" {
        return Ok(None);
    }
    let start = text.find('\n').map_or(text.len(), |at| at + 1);
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        let end = line.trim_end();
        if end == first || first == "---" && end == "..." {
            let (block, body) = (&text[start..at], &text[at + line.len()..]);
            let front = if first == "---" { yaml(block) } else { toml(block) };
            let body_line = 1 + text[..at + line.len()].matches('\n').count();
            return front.map(|front| Some(Split { front, body, line: body_line })).map_err(|(line, message)| (line + 1, message));
        }
        at += line.len();
    }
    Err((1, format!("the front matter is never closed; it should end with a line `{first}`")))
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

/// Returns a switch.
pub(crate) fn flag(table: &Table, key: &str) -> Option<bool> {
    match table.get(key)? {
        Value::Bool(value) => Some(*value),
        Value::String(text) => text.parse().ok(),
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
            let split = split(form).expect(form).expect("front matter");
            assert_eq!(text(&split.front, &["title"]).as_deref(), Some("Hi"), "{form}");
            assert_eq!((list(&split.front, &["tags"], &[]), split.body.trim()), (vec!["a".to_owned(), "b".to_owned()], "Text"));
        }
        assert!(split("# Hi\n").expect("fine").is_none());
        assert_eq!(split("---\na: 1\nb: [\n---\n").expect_err("broken").0, 3);
    }
}
