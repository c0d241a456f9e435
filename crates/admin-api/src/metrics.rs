//! The metrics in the answer to `GET /status`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// Holds one metric: how it moves, and a value for each set of labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricFamily {
    /// How it moves.
    pub kind: MetricKind,
    /// Its values.
    pub samples: Vec<MetricSample>,
}

/// Holds one value of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSample {
    /// The labels that tell this value from the others of the metric, by name.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: Value,
}

/// Says how a metric moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// It only rises while the process lives.
    Counter,
    /// It rises and falls.
    Gauge,
    /// It counts observations by their size; every value is a [`Value::Histogram`].
    Histogram,
}

impl MetricKind {
    /// Returns the name that the exposition format has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Holds a number. Counters are kept whole: as a float, a count of bytes would lose its last digits beyond 2^53.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A count.
    Whole(u64),
    /// Seconds or a ratio. JSON has no infinity, and no word for what is not a number: it has `null`, which is read as the latter.
    Real(#[serde(deserialize_with = "number_or_null")] f64),
    /// Observations, counted by their size.
    Histogram(Histogram),
}

/// Counts observations by their size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Upper bounds in rising order, each with the number of observations that do not exceed it. The last bound is
    /// infinite in the text format and left out here: its count is `count`.
    pub buckets: Vec<(f64, u64)>,
    /// All observations added up.
    pub sum: f64,
    /// How many there were.
    pub count: u64,
}

fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<Histogram> for Value {
    fn from(value: Histogram) -> Self {
        Self::Histogram(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_it_was_written() {
        let histogram = Histogram { buckets: vec![(0.5, 1), (2.0, 3)], sum: 9.25, count: 4 };
        for (value, json) in [
            (Value::Whole(u64::MAX), "18446744073709551615"),
            (Value::Real(0.5), "0.5"),
            (Value::Real(-2.0), "-2.0"),
            (Value::Histogram(histogram), r#"{"buckets":[[0.5,1],[2.0,3]],"sum":9.25,"count":4}"#),
        ] {
            assert_eq!(serde_json::to_string(&value).expect("JSON"), json);
            assert_eq!(serde_json::from_str::<Value>(json).expect(json), value);
        }
        let unknown = serde_json::to_string(&Value::Real(f64::INFINITY)).expect("JSON");
        assert_eq!(unknown, "null");
        assert!(matches!(serde_json::from_str(&unknown).expect("a value"), Value::Real(number) if number.is_nan()));
    }
}
