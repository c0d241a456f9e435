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

/// Writes a length of time in its largest unit alone: what is left of it is cut off.
pub(crate) fn about(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Writes how many there are of something: `one` is its name if there is one, `many` if there are none or several.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", self::number(number), if number == 1 { one } else { many })
}

/// Writes a number with commas between thousands.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes how often something happens in a second: with a digit after the point where it is seldom.
pub(crate) fn rate(rate: f64) -> String {
    match rate {
        _ if !rate.is_finite() || rate <= 0.0 => "0/s".to_owned(),
        _ if rate < 0.05 => "< 0.1/s".to_owned(),
        _ if rate < 9.95 => format!("{rate:.1}/s"),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; it saturates")]
        _ => format!("{}/s", number(rate.round() as u64)),
    }
}

/// Writes a time that is given in microseconds, with two digits or more: `842 µs`, `1.4 ms`, `31 ms`, `1.4 s`, `4 min 12 s`.
pub(crate) fn micros(micros: u64) -> String {
    let (millis, seconds) = (micros as f64 / 1e3, micros as f64 / 1e6);
    match () {
        () if micros == 0 => "0 ms".to_owned(),
        () if micros < 1_000 => format!("{micros} µs"),
        () if millis < 9.95 => format!("{millis:.1} ms"),
        () if millis < 999.5 => format!("{millis:.0} ms"),
        () if seconds < 9.95 => format!("{seconds:.1} s"),
        () if seconds < 59.5 => format!("{seconds:.0} s"),
        () => span(micros.saturating_add(500_000) / 1_000_000),
    }
}

/// Writes which part of `all` something is, in per cent, to the nearest tenth; half a tenth is rounded up. Less than all is never 100 %, and more than nothing
/// never 0 %; nothing has no part (`-`).
///
/// The dashboard has the same rule (`percent` in its `words.js`), so that one share is the same figure wherever it stands.
pub(crate) fn share(part: u64, all: u64) -> String {
    if all == 0 {
        return "-".to_owned();
    }
    let (part_wide, all_wide) = (u128::from(part), u128::from(all));
    let tenths = (2_000 * part_wide + all_wide) / (2 * all_wide);
    match () {
        () if part == 0 => "0 %".to_owned(),
        () if part >= all => "100 %".to_owned(),
        () if 1_000 * part_wide < all_wide => "< 0.1 %".to_owned(),
        () if 1_000 * part_wide > 999 * all_wide => "> 99.9 %".to_owned(),
        () => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

/// Writes a time of day, given in milliseconds since the epoch: `19:02:11`, in UTC.
pub(crate) fn time_of_day(millis: u64) -> String {
    let seconds = millis / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
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
        for (seconds, expected) in [(0, "0 s"), (59, "59 s"), (119, "1 min"), (3_599, "59 min"), (86_399, "23 h"), (200_000, "2 d")] {
            assert_eq!(about(seconds), expected);
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
        assert_eq!(
            [0, 1, 2, 3_456].map(|number| count(number, "address", "addresses")),
            ["0 addresses", "1 address", "2 addresses", "3,456 addresses"]
        );
    }

    #[test]
    fn thousands_are_apart() {
        for (value, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn rates_times_and_shares_are_never_flattered() {
        for (value, expected) in
            [(0.0, "0/s"), (f64::NAN, "0/s"), (0.01, "< 0.1/s"), (0.2, "0.2/s"), (9.94, "9.9/s"), (9.96, "10/s"), (13_464.4, "13,464/s")]
        {
            assert_eq!(rate(value), expected);
        }
        for (value, expected) in [
            (0, "0 ms"),
            (842, "842 µs"),
            (1_400, "1.4 ms"),
            (9_960, "10 ms"),
            (999_400, "999 ms"),
            (999_600, "1.0 s"),
            (31_200_000, "31 s"),
            (59_600_000, "1 min"),
            (252_000_000, "4 min 12 s"),
            (90_000_000_000, "1 d 1 h"),
        ] {
            assert_eq!(micros(value), expected);
        }
        for (part, all, expected) in [
            (0, 0, "-"),
            (0, 5, "0 %"),
            (5, 5, "100 %"),
            (1, 2, "50.0 %"),
            (1, 100_000, "< 0.1 %"),
            (99_999, 100_000, "> 99.9 %"),
            (999, 1_000, "99.9 %"),
            (1, 1_000, "0.1 %"),
            (971, 1_000, "97.1 %"),
            (4_678, 10_000, "46.8 %"),
            (4_674, 10_000, "46.7 %"),
            // 12.25 % is half-way between two tenths, and 3.125 % nearer to the lower one.
            (49, 400, "12.3 %"),
            (1, 32, "3.1 %"),
            (u64::MAX / 2, u64::MAX, "50.0 %"),
        ] {
            assert_eq!(share(part, all), expected, "{part} of {all}");
        }
    }

    #[test]
    fn a_time_of_day_is_that_of_utc() {
        // RFC 9110 §5.6.7: Sun, 06 Nov 1994 08:49:37 GMT.
        assert_eq!(time_of_day(784_111_777_999), "08:49:37");
    }
}
