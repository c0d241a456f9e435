//! Front matter as one list of values, whichever language it is written in.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{config::one_line, slug};

/// The largest number of values in YAML. References can make many of few.
const YAML_NODES_MAX: usize = 20_000;

/// The depth to which values of YAML may lie in each other. Each level takes some kilobytes of the stack.
const YAML_DEPTH_MAX: usize = 16;

/// The values of a table by their keys.
pub(super) type Values = BTreeMap<String, Value>;

/// A mistake in a block, with its line.
pub(super) type Fault = (Option<usize>, String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Nothing,
    /// A text, a number or a date, as the author wrote it.
    Text(String),
    Bool(bool),
    List(Vec<Self>),
    Table(Values),
}

/// Reads TOML.
pub(super) fn of_toml(block: &str) -> Result<Values, Fault> {
    fn convert(value: DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Boolean(value) => Value::Bool(value),
            DeValue::Datetime(date) => Value::Text(date.to_string()),
            DeValue::Integer(number) => Value::Text(number.to_string()),
            DeValue::Float(number) => Value::Text(number.to_string()),
            DeValue::Array(list) => Value::List(list.into_iter().map(|value| convert(value.into_inner())).collect()),
            DeValue::Table(table) => Value::Table(values(table)),
        }
    }
    fn values(table: DeTable<'_>) -> Values {
        table.into_iter().map(|(key, value)| (key.into_inner().into_owned(), convert(value.into_inner()))).collect()
    }
    let table = DeTable::parse(block)
        .map_err(|error| (error.span().map(|span| slug::line_at(block, span.start)), format!("not TOML: {}", one_line(error.message()))))?;
    Ok(values(table.into_inner()))
}

/// Reads YAML.
pub(super) fn of_yaml(block: &str) -> Result<Values, Fault> {
    if block.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Values::new());
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: YAML_NODES_MAX,
            max_events: 4 * YAML_NODES_MAX,
            max_documents: 1,
            max_depth: YAML_DEPTH_MAX,
            flow_nesting_limit: YAML_DEPTH_MAX,
        },
        strict_booleans: true,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: YAML_NODES_MAX,
        },
    };
    let yaml: Yaml = serde_saphyr::from_str_with_options(block, options).map_err(|error| {
        // By its offset: to YAML a carriage return alone ends a line, to an editor it does not.
        let start = error.location().filter(|at| at.line() > 0).map(|at| at.span().offset());
        let line = start.map(|start| 1 + block.chars().take(usize::try_from(start).unwrap_or(usize::MAX)).filter(|&c| c == '\n').count());
        let message = one_line(&error.without_snippet().to_string());
        (line, format!("not YAML: {}. A value with `: ` or `#` in it needs quotes", without_place(&message).trim_end_matches('.')))
    })?;
    match yaml.convert(block) {
        Value::Table(values) => Ok(values),
        _ => Err((Some(1), "not YAML of the form `key: value`".to_owned())),
    }
}

/// Removes the ` at line 8, column 3` of a YAML message. It counts from the fence, and the place is shown separately.
fn without_place(message: &str) -> &str {
    let place = |at: &usize| {
        let rest = &message[at + " at line ".len()..];
        rest.split_once(", column ")
            .is_some_and(|(line, column)| [line, column].iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())))
    };
    message.rfind(" at line ").filter(place).map_or(message, |at| &message[..at])
}

/// A value of YAML. Numbers are read from the source again: to YAML, the title `1.10` is the number 1.1.
enum Yaml {
    Nothing,
    Text(String),
    Number(String),
    Bool(bool),
    List(Vec<Spanned<Self>>),
    Table(Vec<(String, Spanned<Self>)>),
}

impl Yaml {
    fn convert(self, block: &str) -> Value {
        match self {
            Self::Nothing => Value::Nothing,
            Self::Text(text) | Self::Number(text) => Value::Text(text),
            Self::Bool(value) => Value::Bool(value),
            Self::List(list) => Value::List(list.into_iter().map(|value| of_spanned(value, block)).collect()),
            Self::Table(pairs) => Value::Table(pairs.into_iter().map(|(key, value)| (key, of_spanned(value, block))).collect()),
        }
    }
}

fn of_spanned(spanned: Spanned<Yaml>, block: &str) -> Value {
    let Yaml::Number(number) = spanned.value else { return spanned.value.convert(block) };
    let span = spanned.defined.span();
    let source = || {
        let start = usize::try_from(span.byte_offset()?).ok()?;
        let length = usize::try_from(span.byte_len()?).ok()?;
        block.get(start..start.checked_add(length)?).map(str::trim)
    };
    // The span may be wider than the number; what is not its spelling does not count.
    let spelt = source()
        .filter(|source| source.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) && !source.contains(char::is_whitespace));
    Value::Text(spelt.map_or(number, str::to_owned))
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Yaml;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E>(self) -> Result<Yaml, E> {
                Ok(Yaml::Nothing)
            }
            fn visit_none<E>(self) -> Result<Yaml, E> {
                Ok(Yaml::Nothing)
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Yaml, D::Error> {
                Yaml::deserialize(deserializer)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
                Ok(Yaml::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Yaml, E> {
                Ok(Yaml::Number(value.to_string()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
                Ok(Yaml::Number(value.to_string()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Yaml, E> {
                Ok(Yaml::Number(value.to_string()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
                Ok(Yaml::Text(value.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Yaml, A::Error> {
                let mut list = Vec::new();
                while let Some(value) = seq.next_element()? {
                    list.push(value);
                }
                Ok(Yaml::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Yaml, A::Error> {
                let mut pairs = Vec::new();
                while let Some(key) = map.next_key::<Self::Value>()? {
                    match key {
                        Yaml::Text(key) | Yaml::Number(key) => pairs.push((key, map.next_value()?)),
                        Yaml::Bool(key) => pairs.push((key.to_string(), map.next_value()?)),
                        Yaml::Nothing | Yaml::List(_) | Yaml::Table(_) => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(Yaml::Table(pairs))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    /// A title of digits is not a sum.
    #[test]
    fn numbers_are_as_they_are_written() {
        let yaml = "a: 1.10\nb: 007\nc: 2026\nd: [1.0, 2]\ne: 99999999999999999999999\nf: 1_000\ng: 0x10\nh: \"1.10\"\ni: -3\nj: 1e3\n";
        let values = of_yaml(yaml).expect("YAML");
        let found: Vec<_> = values.values().cloned().collect();
        let list = Value::List(vec![text("1.0"), text("2")]);
        let expected = ["1.10", "007", "2026", "", "99999999999999999999999", "1_000", "0x10", "1.10", "-3", "1e3"].map(text);
        for (index, expected) in expected.iter().enumerate() {
            assert_eq!(&found[index], if index == 3 { &list } else { expected }, "{index}");
        }
        let values = of_toml("a = 1.10\nb = 99999999999999999999999\nc = 2026-03-01\n").expect("TOML");
        assert_eq!(values.into_values().collect::<Vec<_>>(), ["1.10", "99999999999999999999999", "2026-03-01"].map(text));
    }

    #[test]
    fn references_multiply_nothing() {
        let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x, x]\n");
        for (name, of) in ('b'..='i').zip('a'..='h') {
            let list: Vec<_> = (0..10).map(|_| format!("*{of}")).collect();
            bomb += &format!("{name}: &{name} [{}]\n", list.join(", "));
        }
        let (_, message) = of_yaml(&bomb).expect_err("refused");
        assert!(message.starts_with("not YAML: ") && message.len() < 400, "{message}");
        assert_eq!(of_yaml("a: &x b\nc: *x\n").map(|values| values["c"].clone()), Ok(text("b")));
    }

    #[test]
    fn deep_values_are_refused() {
        for block in ["a: ".to_owned() + &"[".repeat(10_000) + &"]".repeat(10_000), "a: ".to_owned() + &"{a: ".repeat(10_000)] {
            assert!(of_yaml(&block).is_err());
        }
        assert!(of_toml(&("a = ".to_owned() + &"[".repeat(10_000) + &"]".repeat(10_000))).is_err());
    }

    #[test]
    fn keys_come_once() {
        assert!(of_yaml("a: 1\na: 2\n").is_err());
        assert!(of_toml("a = 1\na = 2\n").is_err());
    }
}
