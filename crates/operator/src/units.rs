//! Numbers with their units, as people read them: `12.3 KiB`, `4 min 12 s`, `1 address`.
//!
//! They are rounded for the eye. What is written in a configuration is exact, and has other rules.

/// Writes a number of bytes: to a tenth of the largest binary unit that it fills.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

/// Writes a length of time: its largest unit and the next smaller one.
pub(crate) fn span(seconds: u64) -> String {
    let parts = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let two = parts.iter().skip_while(|(count, _)| *count == 0).take(2).filter(|(count, _)| *count > 0);
    let shown: Vec<String> = two.map(|(count, unit)| format!("{count} {unit}")).collect();
    if shown.is_empty() { "0 s".to_owned() } else { shown.join(" ") }
}

/// Writes how many there are of something: `one` is its name if there is one, `many` if there are none or several.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_sizes_are_short() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (252, "4 min 12 s"),
            (3_600, "1 h"),
            (3_601, "1 h"),
            (90_000, "1 d 1 h"),
            (604_800, "7 d"),
        ] {
            assert_eq!(span(seconds), expected);
        }
        for (size, expected) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (12_595, "12.3 KiB"),
            (3 << 20, "3.0 MiB"),
            ((1 << 30) - 1, "1024.0 MiB"),
            (1 << 30, "1.0 GiB"),
            (5 << 40, "5120.0 GiB"),
        ] {
            assert_eq!(bytes(size), expected);
        }
    }

    #[test]
    fn one_is_not_called_many() {
        assert_eq!([0, 1, 2].map(|number| count(number, "address", "addresses")), ["0 addresses", "1 address", "2 addresses"]);
    }
}
