//! Replies as values of ours. Who reads them says what was expected, if they are something else.

use std::collections::BTreeMap;

use bytes::Bytes;
use redis::Value;

use crate::stream::EntryId;

/// Returns the bytes of a text.
pub(super) fn bytes(value: Value) -> Option<Bytes> {
    match value {
        Value::BulkString(bytes) => Some(Bytes::from(bytes)),
        Value::SimpleString(text) => Some(Bytes::from(text)),
        _ => None,
    }
}

/// Returns a text.
pub(super) fn text(value: Value) -> Option<String> {
    String::from_utf8(bytes(value)?.into()).ok()
}

/// Returns a number that is not negative.
pub(super) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// Returns a list; nothing is an empty one.
pub(super) fn list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) => Some(values),
        Value::Nil => Some(Vec::new()),
        _ => None,
    }
}

/// Returns the pairs of a list of names and values.
pub(super) fn pairs(value: Value) -> Option<Vec<(Bytes, Bytes)>> {
    let mut values = list(value)?.into_iter();
    let mut pairs = Vec::with_capacity(values.len() / 2);
    while let Some(name) = values.next() {
        pairs.push((bytes(name)?, bytes(values.next()?)?));
    }
    Some(pairs)
}

/// Returns an id.
pub(super) fn id(value: Value) -> Option<EntryId> {
    text(value)?.parse().ok()
}

/// Returns the entries of a stream: of each, its id, and what its field of that name has. What others wrote may have none.
pub(super) fn entries(value: Value, field: &str) -> Option<Vec<(EntryId, Option<Bytes>)>> {
    list(value)?
        .into_iter()
        .map(|entry| {
            let mut parts = list(entry)?.into_iter();
            let id = id(parts.next()?)?;
            let content = pairs(parts.next()?)?.into_iter().find(|(name, _)| name == field).map(|(_, content)| content);
            Some((id, content))
        })
        .collect()
}

/// Returns the fields of an `INFO`.
pub(super) fn info(value: Value) -> Option<BTreeMap<String, String>> {
    let text = text(value)?;
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    Some(fields.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned())).collect())
}
