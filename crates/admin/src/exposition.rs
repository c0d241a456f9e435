//! Metrics as text, in the Prometheus exposition format 0.0.4, and by name, for JSON.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Write as _},
};

use admin_api::{Histogram, MetricFamily, MetricSample, Value};

use crate::console::{Metric, Sample};

/// The media type of [`text`].
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes all metrics, one group of lines for each name.
///
/// The format wants the lines of one name together and at most one HELP and TYPE for it, so metrics that share a name become one group.
/// That is O(n²) in the number of metrics, of which there are some dozens.
pub(crate) fn text(metrics: &[Metric]) -> String {
    let mut text = String::new();
    for (index, metric) in metrics.iter().enumerate() {
        debug_assert!(is_metric_name(metric.name), "{} is not a metric name", metric.name);
        if metrics[..index].iter().any(|earlier| earlier.name == metric.name) {
            continue;
        }
        let (name, kind) = (metric.name, metric.kind.name());
        let samples = metrics[index..].iter().filter(|other| other.name == name).flat_map(|group| &group.samples);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", Escaped { text: metric.help, quoted: false });
        for sample in samples {
            let _ = write_sample(&mut text, name, sample);
        }
    }
    text
}

/// Writes the line of a sample; those of a histogram are one for each bucket, the sum and the count.
fn write_sample(text: &mut String, name: &str, sample: &Sample) -> fmt::Result {
    let labels = Labels { labels: &sample.labels, bound: None };
    match &sample.value {
        Value::Whole(value) => writeln!(text, "{name}{labels} {value}"),
        Value::Real(value) => writeln!(text, "{name}{labels} {}", Number(*value)),
        Value::Histogram(Histogram { buckets, sum, count }) => {
            for (bound, count) in buckets.iter().copied().chain([(f64::INFINITY, *count)]) {
                writeln!(text, "{name}_bucket{} {count}", Labels { bound: Some(bound), ..labels })?;
            }
            writeln!(text, "{name}_sum{labels} {}", Number(*sum))?;
            writeln!(text, "{name}_count{labels} {count}")
        }
    }
}

fn is_metric_name(name: &str) -> bool {
    is_label_name(&name.replace(':', "_"))
}

fn is_label_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[derive(Clone, Copy)]
struct Labels<'a> {
    labels: &'a [(&'static str, String)],
    /// The upper bound of a bucket.
    bound: Option<f64>,
}

impl Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = '{';
        for (name, value) in self.labels {
            debug_assert!(is_label_name(name), "{name} is not a label name");
            write!(f, "{before}{name}=\"{}\"", Escaped { text: value, quoted: true })?;
            before = ',';
        }
        if let Some(bound) = self.bound {
            write!(f, "{before}le=\"{}\"", Number(bound))?;
            before = ',';
        }
        if before == ',' { f.write_char('}') } else { Ok(()) }
    }
}

/// Escapes a text. Backslash and line feed are escaped everywhere, quotation marks in label values alone: in HELP, `\"` would not be an escape.
struct Escaped<'a> {
    text: &'a str,
    quoted: bool,
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.text.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '"' if self.quoted => f.write_str("\\\"")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

struct Number(f64);

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // Rust would say "inf" and "-inf".
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            value => value.fmt(f),
        }
    }
}

/// Gathers the metrics by name, with the groups of [`text`]: for the answer to `GET /status`.
pub(crate) fn families(metrics: &[Metric]) -> BTreeMap<String, MetricFamily> {
    let mut families: BTreeMap<String, MetricFamily> = BTreeMap::new();
    for Metric { name, kind, samples, .. } in metrics {
        let family = families.entry((*name).to_owned()).or_insert_with(|| MetricFamily { kind: *kind, samples: Vec::new() });
        family.samples.extend(samples.iter().map(|Sample { labels, value }| MetricSample {
            labels: labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            value: value.clone(),
        }));
    }
    families
}

#[cfg(test)]
mod tests {
    use admin_api::MetricKind;

    use super::*;

    fn sample(labels: &[(&'static str, &str)], value: impl Into<Value>) -> Sample {
        Sample { labels: labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(), value: value.into() }
    }

    #[test]
    fn text_is_written_as_the_format_says() {
        let metrics = [
            Metric::new("a_total", "Back\\slash, \"quotes\" and\nlines", MetricKind::Counter, vec![sample(&[], u64::MAX)]),
            Metric::new(
                "b:c",
                "Numbers",
                MetricKind::Gauge,
                vec![
                    sample(&[("of", "whole")], 7),
                    sample(&[("of", "half")], 0.5),
                    sample(&[("of", "less")], -2.0),
                    sample(&[("of", "more")], f64::INFINITY),
                    sample(&[("of", "least")], f64::NEG_INFINITY),
                    sample(&[("of", "none")], f64::NAN),
                    sample(&[("of", "tiny")], 1e-7),
                ],
            ),
            Metric::new("d", "Nothing yet", MetricKind::Gauge, Vec::new()),
            Metric::new("e", "Labels", MetricKind::Gauge, vec![sample(&[("path", "C:\\a\n\"b\""), ("name", "Zoë, {}=")], 1)]),
            Metric::new(
                "f_seconds",
                "Durations",
                MetricKind::Histogram,
                vec![sample(&[("of", "x")], Histogram { buckets: vec![(0.0001, 1), (2.5, 3)], sum: 40.25, count: 4 })],
            ),
            Metric::new("b:c", "Numbers", MetricKind::Gauge, vec![sample(&[("of", "later")], 8)]),
        ];
        let expected = r##"# HELP a_total Back\\slash, "quotes" and\nlines
# TYPE a_total counter
a_total 18446744073709551615
# HELP b:c Numbers
# TYPE b:c gauge
b:c{of="whole"} 7
b:c{of="half"} 0.5
b:c{of="less"} -2
b:c{of="more"} +Inf
b:c{of="least"} -Inf
b:c{of="none"} NaN
b:c{of="tiny"} 0.0000001
b:c{of="later"} 8
# HELP d Nothing yet
# TYPE d gauge
# HELP e Labels
# TYPE e gauge
e{path="C:\\a\n\"b\"",name="Zoë, {}="} 1
# HELP f_seconds Durations
# TYPE f_seconds histogram
f_seconds_bucket{of="x",le="0.0001"} 1
f_seconds_bucket{of="x",le="2.5"} 3
f_seconds_bucket{of="x",le="+Inf"} 4
f_seconds_sum{of="x"} 40.25
f_seconds_count{of="x"} 4
"##;
        assert_eq!(text(&metrics), expected);
    }

    #[test]
    fn a_histogram_in_json_has_its_buckets_sum_and_count() {
        let durations = Histogram { buckets: vec![(0.5, 1), (2.0, 3)], sum: 9.25, count: 4 };
        let metrics = [Metric::new("a_seconds", "Durations", MetricKind::Histogram, vec![sample(&[], durations)])];
        let expected = serde_json::json!({"a_seconds": {"kind": "histogram", "samples": [
            {"labels": {}, "value": {"buckets": [[0.5, 1], [2.0, 3]], "sum": 9.25, "count": 4}},
        ]}});
        assert_eq!(serde_json::to_value(families(&metrics)).expect("JSON"), expected);
    }

    #[test]
    fn nothing_to_say_is_an_empty_text() {
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn names_are_told_from_other_text() {
        for (name, of_metric, of_label) in [
            ("a", true, true),
            ("_a9", true, true),
            ("a:b", true, false),
            ("9a", false, false),
            ("", false, false),
            ("a-b", false, false),
            ("ä", false, false),
        ] {
            assert_eq!((is_metric_name(name), is_label_name(name)), (of_metric, of_label), "{name}");
        }
    }
}
