//! Metrics as text, in the Prometheus exposition format 0.0.4, and as JSON.

use std::fmt::{self, Display, Write as _};

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::console::{Metric, MetricKind, Sample, Value};

/// The media type of [`text`].
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics, one group of lines for each name.
///
/// The format wants the lines of one name together and at most one HELP and TYPE for it, so metrics that share a name become one group.
/// That is O(n²) in the number of metrics, of which there are some dozens.
pub(crate) fn text(metrics: &[Metric]) -> String {
    let mut text = String::new();
    for (index, metric) in metrics.iter().enumerate() {
        debug_assert!(is_metric_name(metric.name), "{} is no metric name", metric.name);
        if metrics[..index].iter().any(|earlier| earlier.name == metric.name) {
            continue;
        }
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        let name = metric.name;
        let samples = metrics[index..].iter().filter(|other| other.name == name).flat_map(|group| &group.samples);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", Escaped { text: metric.help, quoted: false });
        for sample in samples {
            let _ = writeln!(text, "{name}{} {}", Labels(sample), Number(sample.value));
        }
    }
    text
}

fn is_metric_name(name: &str) -> bool {
    is_label_name(&name.replace(':', "_"))
}

fn is_label_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

struct Labels<'a>(&'a Sample);

impl Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.labels.is_empty() {
            return Ok(());
        }
        let mut before = '{';
        for (name, value) in &self.0.labels {
            debug_assert!(is_label_name(name), "{name} is no label name");
            write!(f, "{before}{name}=\"{}\"", Escaped { text: value, quoted: true })?;
            before = ',';
        }
        f.write_char('}')
    }
}

/// Backslash and line feed are escaped everywhere, quotation marks in label values alone: in HELP, `\"` would not be an escape.
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

struct Number(Value);

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Whole(value) => value.fmt(f),
            // Rust would say "inf" and "-inf".
            Value::Real(f64::INFINITY) => f.write_str("+Inf"),
            Value::Real(f64::NEG_INFINITY) => f.write_str("-Inf"),
            Value::Real(value) => value.fmt(f),
        }
    }
}

/// `{"name": {"kind": …, "samples": […]}, …}`, with the groups of [`text`].
pub(crate) struct Json<'a>(pub(crate) &'a [Metric]);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Group<'a> {
            kind: MetricKind,
            samples: Vec<Line<'a>>,
        }
        #[derive(Serialize)]
        struct Line<'a> {
            #[serde(serialize_with = "labels")]
            labels: &'a [(&'static str, String)],
            value: Value,
        }
        let mut map = serializer.serialize_map(None)?;
        for (index, metric) in self.0.iter().enumerate() {
            if self.0[..index].iter().any(|earlier| earlier.name == metric.name) {
                continue;
            }
            let samples = self.0[index..].iter().filter(|other| other.name == metric.name).flat_map(|group| &group.samples);
            let samples = samples.map(|Sample { labels, value }| Line { labels, value: *value }).collect();
            map.serialize_entry(metric.name, &Group { kind: metric.kind, samples })?;
        }
        map.end()
    }
}

fn labels<S: Serializer>(labels: &[(&'static str, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(labels.iter().map(|(name, value)| (name, value)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

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
"##;
        let text = text(&metrics);
        assert_eq!(text, expected);
        check(&text);
    }

    #[test]
    fn nothing_to_say_is_an_empty_text() {
        assert_eq!(text(&[]), "");
    }

    /// The rules of the format, read from its end: a parser that accepts no line that it does not know.
    fn check(text: &str) {
        assert!(text.ends_with('\n'), "the last line ends, too");
        let (mut described, mut typed, mut sampled) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut group = "";
        for line in text.strip_suffix('\n').expect("a line").split('\n') {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, _) = help.split_once(' ').expect("a text");
                assert!(is_metric_name(name) && described.insert(name), "one HELP for each name: {line}");
                group = name;
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a kind");
                assert!(name == group && typed.insert(name) && ["counter", "gauge"].contains(&kind), "one TYPE, after its HELP: {line}");
            } else {
                let end = line.find(['{', ' ']).expect("a value");
                assert!(line[..end] == *group && typed.contains(group), "samples of a name stand together, after its TYPE: {line}");
                let (series, value) = line.rsplit_once(' ').expect("a value");
                assert!(sampled.insert(series), "each set of labels once: {line}");
                assert!(["+Inf", "-Inf", "NaN"].contains(&value) || value.parse::<f64>().is_ok_and(f64::is_finite), "a number: {line}");
                let mut rest = &series[end..];
                if let Some(labels) = rest.strip_prefix('{') {
                    rest = labels.strip_suffix('}').expect("a closing brace");
                    while !rest.is_empty() {
                        let (name, after) = rest.split_once("=\"").expect("a quoted value");
                        assert!(is_label_name(name), "{line}");
                        let mut escaped = false;
                        let closing = after.find(|c| {
                            assert!(!escaped || "\\n\"".contains(c), "an escape the format knows: {line}");
                            let quote = c == '"' && !escaped;
                            escaped = c == '\\' && !escaped;
                            quote
                        });
                        rest = &after[closing.expect("a closing quotation mark") + 1..];
                        rest = rest.strip_prefix(',').unwrap_or(rest);
                    }
                }
                assert!(rest.is_empty(), "{line}");
            }
        }
        assert_eq!(described, typed);
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
