//! The time at which a run begins, so that several machines begin together: `2026-11-23T12:00:00Z`, `12:00`, `12:00:30`, `+10s`.

use std::{thread, time::Duration};

use jiff::{SignedDuration, Timestamp, Zoned, civil::Time};

use crate::Watch;

/// The longest time to wait for the beginning: a day.
pub const START_MAX: Duration = Duration::from_secs(24 * 3600);

/// The interval at which the watch is asked whether it has had enough of waiting.
const ASK_WATCH: Duration = Duration::from_millis(50);

/// The reason why a run cannot begin at a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// It is not a time.
    #[error("{0:?} is not a time: write 2026-11-23T12:00:00Z, 12:00, 12:00:30, or +10s")]
    NoTime(String),
    /// It has passed.
    #[error("{text} was {ago} ago{tomorrow}")]
    Past {
        /// The text that was written.
        text: String,
        /// The time that has passed since then.
        ago: String,
        /// The text to write for the same hour of tomorrow.
        tomorrow: String,
    },
    /// It is too far away.
    #[error("{0} is more than a day away")]
    Far(String),
}

/// Reads when a run begins. A time of day is of today, where `now` is.
///
/// # Errors
/// When it is not a time, has passed, or is more than [`START_MAX`] away.
pub fn start_at(text: &str, now: &Zoned) -> Result<Timestamp, StartError> {
    let no_time = || StartError::NoTime(text.to_owned());
    let mut is_of_today = false;
    let start = if let Some(wait) = text.strip_prefix('+') {
        let digits = wait.find(|c: char| !c.is_ascii_digit()).ok_or_else(no_time)?;
        let unit = match &wait[digits..] {
            "s" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            _ => return Err(no_time()),
        };
        let seconds = wait[..digits].parse::<i64>().ok().and_then(|count| count.checked_mul(unit)).ok_or_else(no_time)?;
        now.timestamp().checked_add(SignedDuration::from_secs(seconds)).map_err(|_| StartError::Far(text.to_owned()))?
    } else if text.contains(['T', 't']) {
        text.parse::<Timestamp>().map_err(|_| no_time())?
    } else {
        // `12:00`, not `1200` or `12`.
        if !text.contains(':') {
            return Err(no_time());
        }
        is_of_today = true;
        let time = text.parse::<Time>().map_err(|_| no_time())?;
        now.with().time(time).build().map_err(|_| no_time())?.timestamp()
    };
    let wait = start.duration_since(now.timestamp());
    if wait.is_negative() {
        let ago = crate::output::quantity::seconds(wait.abs().as_secs_f64());
        let tomorrow = match now.tomorrow() {
            Ok(day) if is_of_today => format!("; for tomorrow, write the date, too: {}T{text}{}", day.date(), day.strftime("%:z")),
            Ok(_) | Err(_) => String::new(),
        };
        return Err(StartError::Past { text: text.to_owned(), ago, tomorrow });
    }
    if wait.unsigned_abs() > START_MAX {
        return Err(StartError::Far(text.to_owned()));
    }
    Ok(start)
}

/// Waits for the beginning of a run. Returns whether it has come: the watch may stop the waiting. The clock is looked at again and again, because it
/// may be set while a program waits.
pub fn wait(start: Timestamp, clock: &dyn Fn() -> Timestamp, watch: &mut dyn Watch) -> bool {
    loop {
        let Ok(rest) = Duration::try_from(start.duration_since(clock())) else { return true };
        if rest.is_zero() {
            return true;
        }
        if watch.stops() {
            return false;
        }
        thread::park_timeout(rest.min(ASK_WATCH));
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, ops::ControlFlow};

    use super::*;
    use crate::results::Second;

    fn now() -> Zoned {
        "2026-11-23T12:00:00+01:00[Europe/Berlin]".parse().or_else(|_| "2026-11-23T12:00:00+01:00[+01:00]".parse()).expect("a time")
    }

    #[test]
    fn a_beginning_is_a_moment_a_time_of_today_or_in_a_while() {
        for (text, start) in [
            ("2026-11-23T11:00:10Z", "2026-11-23T11:00:10Z"),
            ("2026-11-23T13:30:00+01:00", "2026-11-23T12:30:00Z"),
            ("12:00", "2026-11-23T11:00:00Z"),
            ("12:01", "2026-11-23T11:01:00Z"),
            ("12:00:30", "2026-11-23T11:00:30Z"),
            ("+10s", "2026-11-23T11:00:10Z"),
            ("+2m", "2026-11-23T11:02:00Z"),
            ("+24h", "2026-11-24T11:00:00Z"),
        ] {
            assert_eq!(start_at(text, &now()).map(|start| start.to_string()).as_deref(), Ok(start), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_has_passed_or_is_far_away_is_refused() {
        for (text, error) in [
            ("noon", "\"noon\" is not a time: write 2026-11-23T12:00:00Z, 12:00, 12:00:30, or +10s"),
            ("+10", "\"+10\" is not a time: write 2026-11-23T12:00:00Z, 12:00, 12:00:30, or +10s"),
            ("+s", "\"+s\" is not a time: write 2026-11-23T12:00:00Z, 12:00, 12:00:30, or +10s"),
            ("1200", "\"1200\" is not a time: write 2026-11-23T12:00:00Z, 12:00, 12:00:30, or +10s"),
            ("25:00", "\"25:00\" is not a time: write 2026-11-23T12:00:00Z, 12:00, 12:00:30, or +10s"),
            ("2026-11-23T12:00:00", "\"2026-11-23T12:00:00\" is not a time: write 2026-11-23T12:00:00Z, 12:00, 12:00:30, or +10s"),
            ("2026-11-23T10:59:00Z", "2026-11-23T10:59:00Z was 60 s ago"),
            ("11:00", "11:00 was 60 min ago; for tomorrow, write the date, too: 2026-11-24T11:00+01:00"),
            ("+25h", "+25h is more than a day away"),
            ("+99999999999999999s", "+99999999999999999s is more than a day away"),
        ] {
            assert_eq!(start_at(text, &now()).expect_err(text).to_string(), error);
        }
    }

    /// Ends the waiting when it is asked for the first time.
    struct Impatient(bool);

    impl Watch for Impatient {
        fn second(&mut self, _: &Second) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn stops(&mut self) -> bool {
            self.0
        }
    }

    #[test]
    fn the_beginning_is_when_the_clock_says_so_or_never_if_somebody_stops_it() {
        let start = now().timestamp();
        let looks = Cell::new(0);
        let clock = || {
            looks.set(looks.get() + 1);
            start - SignedDuration::from_millis(3 - looks.get())
        };
        assert!(wait(start, &clock, &mut Impatient(false)));
        assert_eq!(looks.get(), 3);
        assert!(!wait(start, &|| start - SignedDuration::from_hours(1), &mut Impatient(true)));
        assert!(wait(start, &|| start + SignedDuration::from_hours(1), &mut Impatient(true)), "it has begun already");
    }
}
