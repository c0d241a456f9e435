//! The tables of an export, row by row.

use std::{fmt, fs::File, io::BufReader, path::Path};

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, error::Category};

use crate::{error::ImportError, limit::ShortStrings};

type Row = Map<String, Value>;
type OnRow<'a> = dyn FnMut(&str, Row) -> Result<(), ImportError> + 'a;

struct State<'a> {
    on_row: &'a mut OnRow<'a>,
    meta: Option<Row>,
    failure: Option<ImportError>,
}

/// Reads an export, and hands over each row with the name of its table. Returns what the export says of itself.
pub(super) fn read<'a>(export: &Path, on_row: &'a mut OnRow<'a>) -> Result<Option<Row>, ImportError> {
    let file = File::open(export).map_err(ImportError::read(export))?;
    let reader = BufReader::with_capacity(64 * 1024, ShortStrings::new(BufReader::with_capacity(256 * 1024, file)));
    let mut state = State { on_row, meta: None, failure: None };
    let mut json = serde_json::Deserializer::from_reader(reader);
    let read = json.deserialize_any(Root { state: &mut state, table: None, depth: 0 }).and_then(|()| json.end());
    if let Some(failure) = state.failure {
        return Err(failure);
    }
    match read {
        Ok(()) => Ok(state.meta),
        Err(error) => Err(broken(export, &error)),
    }
}

fn broken(export: &Path, error: &serde_json::Error) -> ImportError {
    let text = error.to_string();
    let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
    let remedy = match error.classify() {
        Category::Eof => "the file ends too early; export it again, and copy the whole file",
        Category::Io => "the file could not be read to its end",
        Category::Syntax if message.contains("recursion") => "it is nested too deeply to be an export",
        Category::Syntax if message.contains("unicode") || message.contains("UTF-8") => {
            "the file must be UTF-8; export it again instead of saving it in an editor"
        }
        Category::Syntax => "it is not JSON from here on; export it again",
        Category::Data => "it is not Ghost's export; write one in Ghost: Settings > Import/Export > Export",
    };
    ImportError::at_line(export, error.line().max(1), format!("{message}: {remedy}"))
}

/// The value at one place of the export: the whole, `db`, `data`, or a table.
struct Root<'s, 'a> {
    state: &'s mut State<'a>,
    table: Option<String>,
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for Root<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Root<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an export with `db` or `data`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.table.is_some() {
            // A table that is not a list has no rows.
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        // 0: the export, or one element of `db`; 1: `data`.
        while let Some(key) = map.next_key::<String>()? {
            if self.depth == 1 {
                map.next_value_seed(Root { state: &mut *self.state, table: Some(key), depth: 2 })?;
            } else if key == "db" {
                map.next_value_seed(Root { state: &mut *self.state, table: None, depth: 0 })?;
            } else if key == "data" {
                map.next_value_seed(Root { state: &mut *self.state, table: None, depth: 1 })?;
            } else if key == "meta" {
                self.state.meta = map.next_value::<Value>()?.as_object().cloned();
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some(table) = self.table else {
            while seq.next_element_seed(Root { state: &mut *self.state, table: None, depth: self.depth })?.is_some() {}
            return Ok(());
        };
        while let Some(row) = seq.next_element::<Value>()? {
            if let Value::Object(row) = row
                && let Err(failure) = (self.state.on_row)(&table, row)
            {
                self.state.failure = Some(failure);
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}
