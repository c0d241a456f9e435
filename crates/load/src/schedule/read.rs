//! Reads a profile as people write it: `500`, `0..5000/60s`, `0..5000/60s,5000/2m,5000..0/30s`.

use std::{fmt, time::Duration};

use super::Profile;

/// The most clients at a time that a schedule may ask for. Each needs a descriptor and some 2 KB here, and more in the system.
pub const CLIENTS_MAX: f64 = 1_000_000.0;

/// The highest rate that a schedule may ask for, in events a second.
pub const RATE_MAX: f64 = 10_000_000.0;

/// The longest time of a phase: a week.
pub const TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The most phases of a profile.
pub const PHASES_MAX: usize = 100;

/// Tells why a text is not a profile, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ProfileError {
    text: String,
    /// The place in the text, in bytes.
    place: usize,
    /// The text that stands there.
    part: String,
    why: ProfileFault,
}

/// Says what is wrong with a part of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProfileFault {
    Empty,
    NotANumber,
    Negative,
    NotWhole,
    AllZero,
    NoBegin,
    NoEnd,
    TooMany(Of),
    NoTime,
    NoTimeBeforeNext,
    Unit,
    ZeroTime,
    LongTime,
    PerSecond,
    Phases,
}

/// Says what a profile counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Clients,
    Rate,
}

impl Of {
    const fn most(self) -> f64 {
        match self {
            Self::Clients => CLIENTS_MAX,
            Self::Rate => RATE_MAX,
        }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, place, part, why } = self;
        let place = text[..*place].chars().count() + 1;
        write!(f, "{text:?}, character {place}: ")?;
        match why {
            ProfileFault::Empty => write!(f, "a number is missing; write 500, 0..5000/60s, or several phases: 0..5000/60s,5000/2m"),
            ProfileFault::NotANumber if is_two_numbers(part) => {
                write!(f, "write {}: two points stand between the values", part.replacen('-', "..", 1))
            }
            ProfileFault::NotANumber => write!(f, "{part:?} is not a number"),
            ProfileFault::Negative => write!(f, "{part} is negative"),
            ProfileFault::NotWhole => write!(f, "{part} is not a whole number of clients"),
            ProfileFault::AllZero => write!(f, "the value is zero all the time, so nothing would ever be sent"),
            ProfileFault::NoBegin => write!(f, "the value at the beginning is missing: write 0..5000/60s"),
            ProfileFault::NoEnd => write!(f, "the value at the end is missing: write 0..5000/60s"),
            ProfileFault::TooMany(Of::Clients) => write!(f, "{part} is more than {CLIENTS_MAX} clients"),
            ProfileFault::TooMany(Of::Rate) => write!(f, "{part} is more than {RATE_MAX} a second"),
            ProfileFault::NoTime => write!(f, "{part:?} goes from one value to another, but does not say in what time: write {part}/60s"),
            ProfileFault::NoTimeBeforeNext => write!(f, "{part:?} has no time, so the phase after it would never begin: write {part}/60s"),
            ProfileFault::Unit => write!(f, "{part:?} is not a time with a unit: write 500ms, 60s, 2m, or 1h"),
            ProfileFault::ZeroTime => write!(f, "a phase of no time; for a jump, write the next phase with the other value"),
            ProfileFault::LongTime => write!(f, "{part} is longer than a week"),
            ProfileFault::PerSecond => {
                write!(f, "what stands after / is how long the phase lasts; values are per second already, so leave {part:?} out")
            }
            ProfileFault::Phases => write!(f, "there are more than {PHASES_MAX} phases"),
        }
    }
}

/// Tells whether a part is two values with a hyphen between them, as in `0-100`.
fn is_two_numbers(part: &str) -> bool {
    part.split_once('-').is_some_and(|(from, to)| from.trim().parse::<f64>().is_ok() && to.trim().parse::<f64>().is_ok())
}

impl Profile {
    /// Reads a number of clients, up to [`CLIENTS_MAX`].
    ///
    /// # Errors
    /// When the text is not a profile; the error names the place.
    pub fn clients(text: &str) -> Result<Self, ProfileError> {
        read(text, Of::Clients)
    }

    /// Reads a number of events a second, up to [`RATE_MAX`].
    ///
    /// # Errors
    /// When the text is not a profile; the error names the place.
    pub fn rate(text: &str) -> Result<Self, ProfileError> {
        read(text, Of::Rate)
    }
}

/// A part of the text, and where it begins.
#[derive(Clone, Copy)]
struct ProfilePart<'a> {
    all: &'a str,
    place: usize,
    text: &'a str,
}

impl<'a> ProfilePart<'a> {
    fn error(self, why: ProfileFault) -> ProfileError {
        ProfileError { text: self.all.to_owned(), place: self.place, part: self.text.to_owned(), why }
    }

    /// Cuts the part at the first `mark`.
    fn cut(self, mark: &str) -> (Self, Option<Self>) {
        match self.text.find(mark) {
            None => (self.trimmed(), None),
            Some(at) => {
                let behind = at + mark.len();
                let after = Self { place: self.place + behind, text: &self.text[behind..], ..self };
                (Self { text: &self.text[..at], ..self }.trimmed(), Some(after.trimmed()))
            }
        }
    }

    fn trimmed(self) -> Self {
        let begin = self.text.len() - self.text.trim_start().len();
        Self { place: self.place + begin, text: self.text.trim(), ..self }
    }

    fn number(self, of: Of) -> Result<f64, ProfileError> {
        if self.text.is_empty() {
            return Err(self.error(ProfileFault::Empty));
        }
        let value = digits(self.text.strip_prefix('-').unwrap_or(self.text)).ok_or_else(|| self.error(ProfileFault::NotANumber))?;
        let why = match of {
            _ if self.text.starts_with('-') => Some(ProfileFault::Negative),
            _ if value > of.most() => Some(ProfileFault::TooMany(of)),
            Of::Clients if value.fract() != 0.0 => Some(ProfileFault::NotWhole),
            Of::Clients | Of::Rate => None,
        };
        why.map_or(Ok(value), |why| Err(self.error(why)))
    }

    fn time(self) -> Result<Duration, ProfileError> {
        if matches!(self.text, "s" | "sec" | "second") {
            return Err(self.error(ProfileFault::PerSecond));
        }
        let units = self.text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.text.len());
        let unit = match &self.text[units..] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return Err(self.error(ProfileFault::Unit)),
        };
        let seconds = digits(&self.text[..units]).ok_or_else(|| self.error(ProfileFault::Unit))? * unit;
        if seconds > TIME_MAX.as_secs_f64() {
            return Err(self.error(ProfileFault::LongTime));
        }
        let time = Duration::from_secs_f64(seconds);
        if time.is_zero() { Err(self.error(ProfileFault::ZeroTime)) } else { Ok(time) }
    }
}

/// Reads digits and at most one point: nothing of what else is a number to Rust (`inf`, `1e9`).
fn digits(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| text.parse().ok())?
}

fn read(text: &str, of: Of) -> Result<Profile, ProfileError> {
    let mut rest = Some(ProfilePart { all: text, place: 0, text });
    let whole = ProfilePart { all: text, place: 0, text };
    let mut phases = Vec::new();
    while let Some(part) = rest {
        let (phase, after) = part.cut(",");
        if phases.len() == PHASES_MAX {
            return Err(phase.error(ProfileFault::Phases));
        }
        let (values, time) = phase.cut("/");
        let time = time.map(ProfilePart::time);
        let (from, to) = match values.cut("..") {
            (value, None) => {
                let value = value.number(of)?;
                (value, value)
            }
            (from, Some(to)) => match (from.text, to.text) {
                ("", _) => return Err(from.error(ProfileFault::NoBegin)),
                (_, "") => return Err(to.error(ProfileFault::NoEnd)),
                _ => (from.number(of)?, to.number(of)?),
            },
        };
        let time = time.transpose()?;
        if time.is_none() {
            if after.is_some() {
                return Err(values.error(ProfileFault::NoTimeBeforeNext));
            }
            if from.to_bits() != to.to_bits() {
                return Err(values.error(ProfileFault::NoTime));
            }
        }
        phases.push((from, to, time));
        rest = after;
    }
    if phases.iter().all(|(from, to, _)| *from == 0.0 && *to == 0.0) {
        return Err(whole.error(ProfileFault::AllZero));
    }
    Ok(Profile::of(phases))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn profiles_are_read_as_people_write_them() {
        for (text, phases) in [
            ("500", vec![(500.0, 500.0, None)]),
            ("0..5000/60s", vec![(0.0, 5000.0, secs(60))]),
            ("10000/60s", vec![(10000.0, 10000.0, secs(60))]),
            ("0..5000/60s,5000/2m,5000..0/30s", vec![(0.0, 5000.0, secs(60)), (5000.0, 5000.0, secs(120)), (5000.0, 0.0, secs(30))]),
            (" 1 .. 5 / 1h , 7", vec![(1.0, 5.0, secs(3600)), (7.0, 7.0, None)]),
            ("0/10s,50/250ms", vec![(0.0, 0.0, secs(10)), (50.0, 50.0, Some(Duration::from_millis(250)))]),
            ("5..0/1.5m", vec![(5.0, 0.0, secs(90))]),
        ] {
            assert_eq!(Profile::clients(text), Ok(Profile::of(phases.clone())), "{text}");
            assert_eq!(Profile::rate(text), Ok(Profile::of(phases)), "{text}");
        }
        assert_eq!(Profile::rate("0.5"), Ok(Profile::constant(0.5, None)));
    }

    #[test]
    fn what_is_no_profile_is_refused_with_the_place() {
        for (text, error) in [
            ("", "\"\", character 1: a number is missing; write 500, 0..5000/60s, or several phases: 0..5000/60s,5000/2m"),
            (
                "5000/60s,",
                "\"5000/60s,\", character 10: a number is missing; write 500, 0..5000/60s, or several phases: 0..5000/60s,5000/2m",
            ),
            ("0-100/2s", "\"0-100/2s\", character 1: write 0..100: two points stand between the values"),
            ("many", "\"many\", character 1: \"many\" is not a number"),
            ("1e3", "\"1e3\", character 1: \"1e3\" is not a number"),
            ("inf", "\"inf\", character 1: \"inf\" is not a number"),
            ("0", "\"0\", character 1: the value is zero all the time, so nothing would ever be sent"),
            ("0..0/60s", "\"0..0/60s\", character 1: the value is zero all the time, so nothing would ever be sent"),
            ("0..-5/60s", "\"0..-5/60s\", character 4: -5 is negative"),
            (
                "0..5000",
                "\"0..5000\", character 1: \"0..5000\" goes from one value to another, but does not say in what time: write 0..5000/60s",
            ),
            ("..5000/60s", "\"..5000/60s\", character 1: the value at the beginning is missing: write 0..5000/60s"),
            ("5000../60s", "\"5000../60s\", character 7: the value at the end is missing: write 0..5000/60s"),
            ("500,0..5/9s", "\"500,0..5/9s\", character 1: \"500\" has no time, so the phase after it would never begin: write 500/60s"),
            ("0..5000/60", "\"0..5000/60\", character 9: \"60\" is not a time with a unit: write 500ms, 60s, 2m, or 1h"),
            ("0..5000/", "\"0..5000/\", character 9: \"\" is not a time with a unit: write 500ms, 60s, 2m, or 1h"),
            ("0..5000/60s/2", "\"0..5000/60s/2\", character 9: \"60s/2\" is not a time with a unit: write 500ms, 60s, 2m, or 1h"),
            ("9,8/-1s", "\"9,8/-1s\", character 1: \"9\" has no time, so the phase after it would never begin: write 9/60s"),
            ("8/-1s", "\"8/-1s\", character 3: \"-1s\" is not a time with a unit: write 500ms, 60s, 2m, or 1h"),
            ("8/0s", "\"8/0s\", character 3: a phase of no time; for a jump, write the next phase with the other value"),
            ("8/169h", "\"8/169h\", character 3: 169h is longer than a week"),
            (
                "5/s",
                "\"5/s\", character 3: what stands after / is how long the phase lasts; values are per second already, so leave \"s\" out",
            ),
            ("é", "\"é\", character 1: \"é\" is not a number"),
        ] {
            assert_eq!(Profile::rate(text).expect_err(text).to_string(), error);
        }
        let more = Profile::rate("10000001").expect_err("more than the limit").to_string();
        assert_eq!(more, "\"10000001\", character 1: 10000001 is more than 10000000 a second");
        let more = Profile::clients("5,1000001/2s").expect_err("no time").to_string();
        assert_eq!(more, "\"5,1000001/2s\", character 1: \"5\" has no time, so the phase after it would never begin: write 5/60s");
        let more = Profile::clients("5/1s,1000001/2s").expect_err("more than the limit").to_string();
        assert_eq!(more, "\"5/1s,1000001/2s\", character 6: 1000001 is more than 1000000 clients");
        let half = Profile::clients("0..2.5/9s").expect_err("half a client").to_string();
        assert_eq!(half, "\"0..2.5/9s\", character 4: 2.5 is not a whole number of clients");
        let phases = Profile::clients(&["1/1s"; 101].join(",")).expect_err("too many").to_string();
        assert!(phases.ends_with("character 501: there are more than 100 phases"), "{phases}");
    }
}
