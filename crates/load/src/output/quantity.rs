//! Numbers as people read them: with a unit that fits, and no more digits than mean something.

/// Writes a number with commas between thousands.
#[must_use]
pub fn count(number: u64) -> String {
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

/// The most digits after the point.
const DECIMALS_MAX: usize = 9;

/// Writes a number that may have a part after the point: three digits that mean something, or all before the point. Of small ones two digits mean something,
/// so that what is not zero is not written as such.
#[must_use]
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let size = value.abs();
    // What rounds up to the next power of ten has a digit less after the point.
    let decimals = match size {
        _ if !(5e-10..99.95).contains(&size) => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.01 => 2,
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "3 to 10")]
        _ => (1.0 - size.log10().floor()).min(DECIMALS_MAX as f64) as usize,
    };
    if decimals == 0 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and as a number of events it fits; it saturates"
        )]
        let whole = count(size.round() as u64);
        return if value < 0.0 && whole != "0" { format!("-{whole}") } else { whole };
    }
    format!("{value:.decimals$}")
}

/// Writes a number of things, of which there may be one: `1 visitor`, `5 visitors`.
#[must_use]
pub fn counted(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", count(number))
}

/// Writes how many there are a second: whole from 10 on, as nobody means a tenth of a request.
#[must_use]
pub fn whole(rate: f64) -> String {
    let rounded = rate.round();
    if rate >= 10.0 || rate.to_bits() == rounded.to_bits() {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of events a second; it saturates")]
        return count(rounded as u64);
    }
    number(rate)
}

/// Writes a time given in milliseconds, in µs, ms, s or minutes.
#[must_use]
pub fn milliseconds(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "-".to_owned(),
        _ if value == 0.0 => "0 ms".to_owned(),
        _ if value.abs() < 0.9995 => format!("{} µs", number(value * 1e3)),
        _ if value.abs() < 999.5 => format!("{} ms", number(value)),
        _ => seconds(value / 1e3),
    }
}

/// Writes a time given in seconds, in µs, ms, s or minutes.
#[must_use]
pub fn seconds(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "-".to_owned(),
        _ if value == 0.0 => "0 s".to_owned(),
        _ if value.abs() < 0.9995 => milliseconds(value * 1e3),
        _ if value.abs() < 119.5 => {
            let text = number(value);
            // A whole number of seconds was meant as such.
            let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
            format!("{text} s")
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least two minutes; it saturates")]
        _ => {
            let all = value.abs().round() as u64;
            let sign = if value < 0.0 { "-" } else { "" };
            match (all / 60, all % 60) {
                (minutes, 0) => format!("{sign}{} min", count(minutes)),
                (minutes, rest) => format!("{sign}{} min {rest} s", count(minutes)),
            }
        }
    }
}

/// Writes a number of bytes in kB, MB, ...: steps of 1,000, as networks count.
#[must_use]
pub fn bytes(value: f64) -> String {
    let mut value = value;
    for unit in ["bytes", "kB", "MB", "GB", "TB"] {
        if value < 999.5 {
            return if unit == "bytes" { format!("{} {unit}", value.round()) } else { format!("{} {unit}", number(value)) };
        }
        value /= 1e3;
    }
    format!("{} PB", number(value))
}

/// Writes a share of 0 to 1 in per cent. What is not all is never written as 100 %, and what is not nothing never as 0 %.
#[must_use]
pub fn share(part: f64) -> String {
    let percent = part * 100.0;
    match percent {
        _ if !percent.is_finite() => "-".to_owned(),
        _ if part <= 0.0 => "0 %".to_owned(),
        _ if part >= 1.0 => "100 %".to_owned(),
        _ if percent < 0.01 => "< 0.01 %".to_owned(),
        _ if percent > 99.99 => "> 99.99 %".to_owned(),
        _ if !(1.0..=99.0).contains(&percent) => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567"), (u64::MAX, "18,446,744,073,709,551,615")]
        {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn numbers_have_three_digits_that_mean_something() {
        for (value, text) in [
            (0.0, "0"),
            (0.123, "0.12"),
            (0.0099, "0.0099"),
            (0.0025, "0.0025"),
            (0.000_277_777, "0.00028"),
            (-0.0025, "-0.0025"),
            (1e-12, "0"),
            (1.5, "1.50"),
            (9.996, "10.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (13_464.4, "13,464"),
            (-0.2, "-0.20"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
        assert_eq!(number(f64::NAN), "-");
        assert_eq!(number(f64::INFINITY), "-");
    }

    #[test]
    fn one_thing_is_no_things() {
        for (number, text) in [(0, "0 visitors"), (1, "1 visitor"), (1_200, "1,200 visitors")] {
            assert_eq!(counted(number, "visitor"), text);
        }
    }

    #[test]
    fn rates_are_whole_but_for_small_ones() {
        for (rate, text) in [
            (0.0025, "0.0025"),
            (0.5, "0.50"),
            (1.0, "1"),
            (2.56, "2.56"),
            (20.0, "20"),
            (51.2, "51"),
            (99.6, "100"),
            (41_498.084, "41,498"),
        ] {
            assert_eq!(whole(rate), text, "{rate}");
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        for (value, text) in [
            (0.0, "0 ms"),
            (0.0005, "0.50 µs"),
            (0.0421, "42.1 µs"),
            (0.9994, "999 µs"),
            (0.9999, "1.00 ms"),
            (12.0, "12.0 ms"),
            (999.4, "999 ms"),
            (999.7, "1 s"),
            (1500.0, "1.5 s"),
            (30_000.0, "30 s"),
            (119_900.0, "2 min"),
            (3_600_000.0, "60 min"),
            (3_661_000.0, "61 min 1 s"),
        ] {
            assert_eq!(milliseconds(value), text, "{value}");
        }
    }

    #[test]
    fn bytes_and_shares_are_never_flattered() {
        for (value, text) in [(0.0, "0 bytes"), (999.0, "999 bytes"), (1000.0, "1.00 kB"), (999_600.0, "1.00 MB"), (2.5e13, "25.0 TB")] {
            assert_eq!(bytes(value), text, "{value}");
        }
        for (part, text) in [
            (0.0, "0 %"),
            (0.000_001, "< 0.01 %"),
            (0.005, "0.50 %"),
            (0.5, "50.0 %"),
            (0.9996, "99.96 %"),
            (0.999_999, "> 99.99 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(share(part), text, "{part}");
        }
    }
}
