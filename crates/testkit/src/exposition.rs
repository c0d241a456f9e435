//! A strict reader of the Prometheus text format 0.0.4, which also holds names to the conventions that `promtool check metrics` looks for.

use std::collections::{BTreeMap, HashSet};

/// All lines about one metric.
#[derive(Debug)]
pub struct Family {
    /// The metric's name.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// The text after `# HELP`.
    pub help: String,
    /// Its lines, in their order.
    pub samples: Vec<Line>,
}

/// A line with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The name at its beginning: the metric's, or that with `_bucket`, `_sum` or `_count`.
    pub name: String,
    /// Its labels, without quotation marks and escapes.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

impl Family {
    /// The value of the line with exactly these labels.
    ///
    /// # Panics
    /// When there is no such line.
    #[must_use]
    pub fn value(&self, labels: &[(&str, &str)]) -> f64 {
        let wanted = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>();
        let line = self.samples.iter().find(|line| line.labels == wanted && !line.name.ends_with("_sum"));
        line.unwrap_or_else(|| panic!("no {}{wanted:?} in {:#?}", self.name, self.samples)).value
    }
}

/// Reads a whole exposition.
///
/// # Panics
/// When a line breaks a rule of the format or of the conventions.
#[must_use]
pub fn parse(text: &str) -> Vec<Family> {
    assert!(text.ends_with('\n'), "the last line ends, too");
    let mut families: Vec<Family> = Vec::new();
    let mut series = HashSet::new();
    let mut help = None;
    for line in text.strip_suffix('\n').expect("a line").split('\n') {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, text) = rest.split_once(' ').unwrap_or_else(|| panic!("HELP without a text: {line}"));
            assert!(is_name(name, true) && families.iter().all(|family| family.name != name), "one HELP for each name: {line}");
            assert!(!text.trim().is_empty(), "{line}");
            assert!(help.replace((name, text)).is_none(), "HELP without TYPE before {line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or_else(|| panic!("TYPE without a kind: {line}"));
            let (helped, text) = help.take().unwrap_or_else(|| panic!("TYPE without HELP: {line}"));
            assert_eq!(helped, name, "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let family = Family { name: name.to_owned(), kind: kind.to_owned(), help: text.to_owned(), samples: Vec::new() };
            check_name(&family);
            families.push(family);
        } else {
            let family = families.last_mut().filter(|_| help.is_none()).unwrap_or_else(|| panic!("a value before HELP and TYPE: {line}"));
            let (whole, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
            assert!(series.insert(whole), "each set of labels once: {line}");
            let (name, labels) = split_series(whole);
            let suffix = name.strip_prefix(&family.name).unwrap_or_else(|| panic!("lines of one metric stand together: {line}"));
            let is_bucket = suffix == "_bucket";
            assert!(suffix.is_empty() || (family.kind == "histogram" && (is_bucket || ["_sum", "_count"].contains(&suffix))), "{line}");
            assert_eq!(labels.contains_key("le"), is_bucket, "{line}");
            family.samples.push(Line { name: name.to_owned(), labels, value: number(value) });
        }
    }
    assert!(help.is_none(), "HELP without TYPE at the end");
    families.iter().filter(|family| family.kind == "histogram").for_each(check_histogram);
    families
}

/// What <https://prometheus.io/docs/practices/naming/> asks of names.
fn check_name(family: &Family) {
    let Family { name, kind, .. } = family;
    assert_eq!(name.ends_with("_total"), kind == "counter", "a counter, and nothing else, ends in _total: {name}");
    for suffix in ["_bucket", "_sum", "_count"] {
        assert!(!name.ends_with(suffix), "{name} looks like a line of a histogram");
    }
    for unit in ["milliseconds", "microseconds", "millis", "ms", "minutes", "hours", "kilobytes", "megabytes", "percent"] {
        assert!(name.split('_').all(|word| word != unit), "{name} is not in a base unit");
    }
    assert!(!name.contains(':'), "colons are for recording rules: {name}");
    assert!(!name.contains(kind.as_str()), "{name} repeats its type");
}

/// Buckets are cumulative and in rising order; the last is infinite, and equal to the count.
fn check_histogram(family: &Family) {
    let name = &family.name;
    let mut sets: Vec<BTreeMap<String, String>> = Vec::new();
    for line in &family.samples {
        let mut labels = line.labels.clone();
        labels.remove("le");
        if !sets.contains(&labels) {
            sets.push(labels);
        }
    }
    for set in sets {
        let of = |suffix: &str| {
            let wanted = format!("{name}{suffix}");
            let all = family.samples.iter().filter(move |line| line.name == wanted);
            all.filter(|line| line.labels.iter().filter(|(name, _)| *name != "le").eq(set.iter())).collect::<Vec<_>>()
        };
        let buckets: Vec<(f64, f64)> = of("_bucket").iter().map(|line| (number(&line.labels["le"]), line.value)).collect();
        assert!(buckets.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1), "{name}{set:?}: {buckets:?}");
        let (sums, counts) = (of("_sum"), of("_count"));
        assert!(sums.len() == 1 && counts.len() == 1, "{name}{set:?} has one sum and one count");
        assert_eq!(buckets.last().copied(), Some((f64::INFINITY, counts[0].value)), "{name}{set:?}");
    }
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        text => text.parse().ok().filter(|value: &f64| value.is_finite()).unwrap_or_else(|| panic!("{text} is not a number")),
    }
}

fn is_name(name: &str, colons: bool) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || (colons && byte == b':');
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_allowed)
}

fn split_series(series: &str) -> (&str, BTreeMap<String, String>) {
    let Some((name, rest)) = series.split_once('{') else { return (series, BTreeMap::new()) };
    let mut rest = rest.strip_suffix('}').unwrap_or_else(|| panic!("no closing brace: {series}"));
    let mut labels = BTreeMap::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no quoted value: {series}"));
        assert!(is_name(label, false) && !label.starts_with("__"), "{series}");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            let (at, c) = chars.next().unwrap_or_else(|| panic!("no closing quotation mark: {series}"));
            match c {
                '"' => break at,
                '\\' => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, c @ ('\\' | '"'))) => value.push(c),
                    _ => panic!("an escape that the format does not know: {series}"),
                },
                c => value.push(c),
            }
        };
        assert!(labels.insert(label.to_owned(), value).is_none(), "a label twice: {series}");
        rest = &after[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    (name, labels)
}
