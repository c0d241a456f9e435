//! Numbers with their units, as people write them: `"64MiB"`, `"30s"`, `20000`.
//!
//! A duration always carries its unit, and both kinds are whole numbers: `"1.5h"` and `"1h30m"` are refused with a hint rather than
//! accepted in one more spelling. The same types read the file, the flags and the environment.

use std::{fmt, str::FromStr, time::Duration};

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::error::Mistake;

/// A number of bytes: `"64KiB"`, `"10MB"`, or a bare number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

const SIZE_UNITS: [(&str, u64); 10] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

const SIZE_REMEDY: &str =
    "a size is a whole number and a unit: B, KiB, MiB, GiB, TiB (or KB, MB, GB, TB for powers of ten), such as \"64MiB\"";

impl FromStr for ByteSize {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let (number, unit) = split(text);
        let mistake = || Mistake::new(format!("\"{text}\" is not a size"), SIZE_REMEDY);
        let Some(number) = number else { return Err(mistake()) };
        let factor = match unit {
            "" => 1,
            unit => match SIZE_UNITS.iter().find(|(name, _)| *name == unit) {
                Some((_, factor)) => *factor,
                None => return Err(guess_size_unit(unit).map_or_else(mistake, |unit| mistake().meant(format!("{number}{unit}")))),
            },
        };
        let bytes =
            number.checked_mul(factor).ok_or_else(|| Mistake::new(format!("\"{text}\" is more than any machine has"), SIZE_REMEDY))?;
        Ok(Self(bytes))
    }
}

/// Guesses the unit that `k`, `mb`, `Gib` and similar words mean: a binary one, because memory has binary sizes.
fn guess_size_unit(unit: &str) -> Option<&'static str> {
    match unit.trim().to_lowercase().as_str() {
        "b" | "byte" | "bytes" => Some("B"),
        "k" | "kb" | "kib" => Some("KiB"),
        "m" | "mb" | "mib" => Some("MiB"),
        "g" | "gb" | "gib" => Some("GiB"),
        "t" | "tb" | "tib" => Some("TiB"),
        _ => None,
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest = SIZE_UNITS[1..5].iter().rev().find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor));
        match largest {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{}B", self.0),
        }
    }
}

/// A length of time: `"250ms"`, `"30s"`, `"5m"`, `"2h"`, `"7d"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(pub Duration);

const PERIOD_UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const PERIOD_REMEDY: &str = "a duration is a whole number and one unit: ms, s, m, h or d, such as \"30s\"";

impl FromStr for Period {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let (number, unit) = split(text);
        let mistake = || Mistake::new(format!("\"{text}\" is not a duration"), PERIOD_REMEDY);
        let Some(number) = number else { return Err(mistake()) };
        if unit.is_empty() {
            return Err(Mistake::new(format!("the duration {number} has no unit"), PERIOD_REMEDY).meant(format!("{number}s")));
        }
        let Some((_, factor)) = PERIOD_UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(guess_period_unit(unit).map_or_else(mistake, |unit| mistake().meant(format!("{number}{unit}"))));
        };
        let milliseconds = number.checked_mul(*factor).ok_or_else(|| Mistake::new(format!("\"{text}\" is too long"), PERIOD_REMEDY))?;
        Ok(Self(Duration::from_millis(milliseconds)))
    }
}

fn guess_period_unit(unit: &str) -> Option<&'static str> {
    match unit.trim().to_lowercase().as_str() {
        "ms" | "msec" | "millis" | "milliseconds" => Some("ms"),
        "s" | "sec" | "secs" | "second" | "seconds" => Some("s"),
        "m" | "min" | "mins" | "minute" | "minutes" => Some("m"),
        "h" | "hr" | "hour" | "hours" => Some("h"),
        "d" | "day" | "days" => Some("d"),
        _ => None,
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0.as_millis();
        if milliseconds == 0 {
            return f.write_str("0s");
        }
        let (unit, factor) =
            PERIOD_UNITS.iter().rev().find(|(_, factor)| milliseconds.is_multiple_of(u128::from(*factor))).unwrap_or(&PERIOD_UNITS[0]);
        write!(f, "{}{unit}", milliseconds / u128::from(*factor))
    }
}

/// Splits a text into the number at its beginning and the rest.
fn split(text: &str) -> (Option<u64>, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (text[..digits].parse().ok(), &text[digits..])
}

/// A whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let number = text.parse().map_err(|_| Mistake::new(format!("\"{text}\" is not a whole number"), "write digits only, such as 4"))?;
        Ok(Self(number))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Size;
        impl Visitor<'_> for Size {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"64MiB\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<ByteSize, E> {
                let bytes = u64::try_from(bytes).map_err(|_| E::custom(Mistake::new(format!("a size of {bytes} bytes"), SIZE_REMEDY)))?;
                Ok(ByteSize(bytes))
            }
        }
        deserializer.deserialize_any(Size)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Period;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as \"30s\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Period, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Period, E> {
                number.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number without quotation marks")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Count, E> {
                number.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            ("0", 0),
            ("1048576", 1_048_576),
            ("7B", 7),
            ("64KiB", 65_536),
            ("16MiB", 16_777_216),
            ("1GiB", 1_073_741_824),
            ("2TiB", 2_199_023_255_552),
            ("5kB", 5_000),
            ("5KB", 5_000),
            ("10MB", 10_000_000),
            ("3GB", 3_000_000_000),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn bad_sizes_say_what_was_meant() {
        let cases = [
            ("64K", Some("64KiB")),
            ("64k", Some("64KiB")),
            ("64mb", Some("64MiB")),
            ("64 MiB", Some("64MiB")),
            ("1g", Some("1GiB")),
            ("12QB", None),
            ("", None),
            ("MiB", None),
            ("-1", None),
            ("1.5GiB", None),
            ("99999999999TiB", None),
            ("99999999999999999999999", None),
        ];
        for (text, meant) in cases {
            let mistake = text.parse::<ByteSize>().expect_err(text);
            assert_eq!(mistake.meant, meant.map(|meant| format!("did you mean \"{meant}\"?")), "{text}");
            assert!(mistake.problem.contains(text), "{mistake:?}");
        }
    }

    #[test]
    fn durations() {
        let cases = [("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("7d", 604_800_000), ("0s", 0)];
        for (text, milliseconds) in cases {
            assert_eq!(text.parse(), Ok(Period(Duration::from_millis(milliseconds))), "{text}");
            assert_eq!(Period(Duration::from_millis(milliseconds)).to_string(), text);
        }
    }

    #[test]
    fn bad_durations_say_what_was_meant() {
        let cases = [
            ("30", Some("30s")),
            ("30sec", Some("30s")),
            ("5 minutes", Some("5m")),
            ("2H", Some("2h")),
            ("1 day", Some("1d")),
            ("1h30m", None),
            ("1.5h", None),
            ("soon", None),
            ("", None),
            ("99999999999999999d", None),
        ];
        for (text, meant) in cases {
            let mistake = text.parse::<Period>().expect_err(text);
            assert_eq!(mistake.meant, meant.map(|meant| format!("did you mean \"{meant}\"?")), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_back_in_their_largest_whole_unit() {
        for text in ["32KiB", "1GiB", "1025B", "0B", "3MiB", "1536MiB"] {
            assert_eq!(text.parse::<ByteSize>().expect(text).to_string(), text);
        }
    }
}
