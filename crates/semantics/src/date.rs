//! HTTP dates: the three formats of RFC 9110 §5.6.7, read strictly and written without an allocation.
//!
//! Strict, because a date nobody meant must not make a response fresh: other zones than GMT, a missing comma, double spaces, one-digit
//! hours and the like are not a date at all, and RFC 9111 §5.3 then calls the response expired. Letter case alone is forgiven. The day of the
//! week has to be a name but not the right one: it carries no information, and people who write dates by hand get it wrong.

use crate::Timestamp;

const DAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const LONG_DAYS: [&[u8]; 7] = [b"Sunday", b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday"];
const MONTHS: [&[u8; 3]; 12] = [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const DAY_SECS: u64 = 86_400;
/// The last moment that a year of four digits can express: 9999-12-31 23:59:59.
const LAST: u64 = 253_402_300_799;
/// The last moment of 2019, which stands for the present where that is unknown: years 70 to 99 are then 19xx, and 00 to 69 are 20xx.
const PIVOT: Timestamp = Timestamp::from_secs(1_577_836_799);

/// Returns the moment that an HTTP date names; `None` if it is malformed or before 1970.
///
/// A date before 1970 is `None` because every use then does the safe thing: `Expires` has passed, a precondition is ignored. Two-digit
/// years are read as 1970 to 2069; [`parse_http_date_at`] reads them relative to a given time.
#[must_use]
pub fn parse_http_date(value: &[u8]) -> Option<Timestamp> {
    parse_http_date_at(value, PIVOT)
}

/// Returns the moment that an HTTP date names, with a two-digit year read relative to `now`: a year that would be more than 50 years in the
/// future is the most recent year in the past with the same digits (RFC 9110 §5.6.7). Otherwise like [`parse_http_date`].
#[must_use]
pub fn parse_http_date_at(value: &[u8], now: Timestamp) -> Option<Timestamp> {
    let value = value.trim_ascii();
    match value.iter().position(|&byte| byte == b',') {
        Some(3) => imf_fixdate(value),
        Some(comma) => rfc850(&value[..comma], &value[comma..], now),
        None => asctime(value),
    }
}

/// Returns the moment as an IMF-fixdate, the only format to send: `Sun, 06 Nov 1994 08:49:37 GMT`. A moment beyond the year 9999 becomes
/// the end of that year.
#[must_use]
pub fn format_http_date(at: Timestamp) -> [u8; 29] {
    let secs = at.as_secs().min(LAST);
    let (year, month, day) = civil(secs / DAY_SECS);
    let of_day = secs % DAY_SECS;
    let mut out = *b"Day, 00 Mon 0000 00:00:00 GMT";
    out[..3].copy_from_slice(DAYS[index((secs / DAY_SECS + 4) % 7)]);
    two(&mut out[5..7], day);
    out[8..11].copy_from_slice(MONTHS[index(month - 1)]);
    two(&mut out[12..14], year / 100);
    two(&mut out[14..16], year % 100);
    two(&mut out[17..19], of_day / 3600);
    two(&mut out[20..22], of_day / 60 % 60);
    two(&mut out[23..25], of_day % 60);
    out
}

/// Returns the moment as RFC 3339 writes it, in UTC: `1994-11-06T08:49:37Z`. A moment beyond the year 9999 becomes the end of that year.
#[must_use]
pub fn format_rfc3339(at: Timestamp) -> [u8; 20] {
    let secs = at.as_secs().min(LAST);
    let (year, month, day) = civil(secs / DAY_SECS);
    let of_day = secs % DAY_SECS;
    let mut out = *b"0000-00-00T00:00:00Z";
    for (place, number) in [year / 100, year % 100].into_iter().enumerate() {
        two(&mut out[2 * place..2 * place + 2], number);
    }
    for (place, number) in [month, day, of_day / 3600, of_day / 60 % 60, of_day % 60].into_iter().enumerate() {
        two(&mut out[5 + 3 * place..7 + 3 * place], number);
    }
    out
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`.
fn imf_fixdate(value: &[u8]) -> Option<Timestamp> {
    let value: &[u8; 29] = value.try_into().ok()?;
    let shape = value[3..5] == *b", " && value[7] == b' ' && value[11] == b' ' && value[16] == b' ' && gmt(&value[25..]);
    if !shape || !is_day(&value[..3]) {
        return None;
    }
    moment(digits(&value[12..16])?, month(&value[8..11])?, digits(&value[5..7])?, time(&value[17..25])?)
}

/// Reads `Sunday, 06-Nov-94 08:49:37 GMT`, which is obsolete; `rest` begins with the comma.
fn rfc850(day: &[u8], rest: &[u8], now: Timestamp) -> Option<Timestamp> {
    let rest: &[u8; 24] = rest.try_into().ok()?;
    let shape = rest[1] == b' ' && rest[4] == b'-' && rest[8] == b'-' && rest[11] == b' ' && gmt(&rest[20..]);
    if !shape || !LONG_DAYS.iter().any(|name| name.eq_ignore_ascii_case(day)) {
        return None;
    }
    let (month, day, time) = (month(&rest[5..8])?, digits(&rest[2..4])?, time(&rest[12..20])?);
    let (this_year, this_month, this_day) = civil(now.as_secs().min(LAST) / DAY_SECS);
    // This is the last year with these digits that is at most 50 years ahead, to the second.
    let mut year = (this_year + 50) / 100 * 100 + digits(&rest[9..11])?;
    let limit = (this_year + 50, this_month, this_day, now.as_secs() % DAY_SECS);
    if (year, month, day, time) > limit {
        year -= 100;
    }
    moment(year, month, day, time)
}

/// Reads `Sun Nov  6 08:49:37 1994`, which is obsolete; the day is padded with a space.
fn asctime(value: &[u8]) -> Option<Timestamp> {
    let value: &[u8; 24] = value.try_into().ok()?;
    let shape = value[3] == b' ' && value[7] == b' ' && value[10] == b' ' && value[19] == b' ';
    if !shape || !is_day(&value[..3]) {
        return None;
    }
    let day = if value[8] == b' ' { &value[9..10] } else { &value[8..10] };
    moment(digits(&value[20..24])?, month(&value[4..7])?, digits(day)?, time(&value[11..19])?)
}

fn gmt(value: &[u8]) -> bool {
    value == b" GMT" || value.eq_ignore_ascii_case(b" GMT")
}

// The usual spelling is tried first: a comparison without regard to case is a loop.
fn is_day(name: &[u8]) -> bool {
    DAYS.iter().any(|day| **day == *name) || DAYS.iter().any(|day| day.eq_ignore_ascii_case(name))
}

fn month(name: &[u8]) -> Option<u64> {
    let usual = (1..).zip(MONTHS).find_map(|(number, month)| (*month == *name).then_some(number));
    usual.or_else(|| (1..).zip(MONTHS).find_map(|(number, month)| month.eq_ignore_ascii_case(name).then_some(number)))
}

/// Returns the seconds since the start of the day; 23:59:60 is the leap second that the grammar allows.
fn time(value: &[u8]) -> Option<u64> {
    if value[2] != b':' || value[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (digits(&value[..2])?, digits(&value[3..5])?, digits(&value[6..8])?);
    let valid = hour < 24 && minute < 60 && (second < 60 || (hour, minute, second) == (23, 59, 60));
    valid.then_some(hour * 3600 + minute * 60 + second)
}

/// Returns the number that some digits mean. One branch for all of them: nearly all dates are well formed.
#[inline]
fn digits(value: &[u8]) -> Option<u64> {
    let (number, are_digits) = value.iter().fold((0, true), |(number, are_digits), byte| {
        let digit = byte.wrapping_sub(b'0');
        (number * 10 + u64::from(digit), are_digits && digit < 10)
    });
    are_digits.then_some(number)
}

fn moment(year: u64, month: u64, day: u64, of_day: u64) -> Option<Timestamp> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days_of_month = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if year < 1970 || day == 0 || day > days_of_month {
        return None;
    }
    // The days are counted from 0000-03-01, and years from March, so that the leap day is the last day of a year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some(Timestamp::from_secs((days - 719_468) * DAY_SECS + of_day))
}

/// Returns year, month (1 to 12) and day of the month for a day that is counted from 1970-01-01, in the Gregorian calendar.
#[must_use]
pub const fn civil(days_since_epoch: u64) -> (u64, u64, u64) {
    let days = days_since_epoch + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

fn two(out: &mut [u8], number: u64) {
    let digit = |number: u64| u8::try_from(number % 10).unwrap_or_default() + b'0';
    out.copy_from_slice(&[digit(number / 10), digit(number)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::SystemTime;

    fn parse(value: &str) -> Option<u64> {
        parse_http_date(value.as_bytes()).map(Timestamp::as_secs)
    }

    #[test]
    fn the_three_formats_name_the_same_moment() {
        // The examples of RFC 9110 §5.6.7.
        for value in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "sun, 06 nov 1994 08:49:37 gmt",
            "SUNDAY, 06-NOV-94 08:49:37 GMT",
            "sUN nOV  6 08:49:37 1994",
            " Sun, 06 Nov 1994 08:49:37 GMT ",
            "Mon, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(value), Some(784_111_777), "{value}");
        }
    }

    #[test]
    fn known_moments() {
        for (value, secs) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
            ("Thu, 31 Dec 1998 23:59:60 GMT", 915_148_800),
            ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
            ("Fri, 31 Dec 9999 23:59:59 GMT", LAST),
            ("Sun Nov 16 08:49:37 1994", 784_975_777),
        ] {
            assert_eq!(parse(value), Some(secs), "{value}");
        }
    }

    #[test]
    fn the_same_moments_as_rfc_3339_writes_them() {
        for (secs, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (784_111_777, "1994-11-06T08:49:37Z"),
            (951_825_600, "2000-02-29T12:00:00Z"),
            (2_147_483_648, "2038-01-19T03:14:08Z"),
            (LAST, "9999-12-31T23:59:59Z"),
            (u64::MAX / 1_000, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(format_rfc3339(Timestamp::from_secs(secs)), *expected.as_bytes());
        }
    }

    #[test]
    fn everything_else_is_no_date() {
        for value in [
            "",
            "0",
            "-1",
            ",",
            "Sun",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 EST",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun,  06 Nov 1994 08:49:37 GMT",
            "Sun, 06  Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06 Nov 94 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Someday, 06-Nov-94 08:49:37 GMT",
            "Sux, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nvo 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Tue, 29 Feb 1900 08:49:37 GMT",
            "Mon, 29 Feb 2100 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:60 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 +8:49:37 GMT",
            "Sun Nov 6 08:49:37 1994",
            "Sun Nov    08:49:37 1994",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Sun, 06 Nov 0000 08:49:37 GMT",
        ] {
            assert_eq!(parse(value), None, "{value}");
        }
    }

    #[test]
    fn a_two_digit_year_is_at_most_fifty_years_ahead() {
        let year = |value: &str, now: &str| {
            let now = parse_http_date(now.as_bytes()).expect("a date");
            parse_http_date_at(value.as_bytes(), now).map(|at| civil(at.as_secs() / DAY_SECS).0)
        };
        let now = "Thu, 18 Jun 2026 12:00:00 GMT";
        for (value, expected) in [
            ("Sunday, 06-Nov-94 08:49:37 GMT", 1994),
            ("Sunday, 06-Nov-25 08:49:37 GMT", 2025),
            ("Sunday, 06-Nov-75 08:49:37 GMT", 2075),
            ("Thursday, 18-Jun-76 12:00:00 GMT", 2076),
            ("Thursday, 18-Jun-76 12:00:01 GMT", 1976),
            ("Sunday, 06-Nov-77 08:49:37 GMT", 1977),
            ("Sunday, 06-Nov-00 08:49:37 GMT", 2000),
        ] {
            assert_eq!(year(value, now), Some(expected), "{value}");
        }
        assert_eq!(year("Sunday, 06-Nov-10 08:49:37 GMT", "Thu, 18 Jun 2070 12:00:00 GMT"), Some(2110));
        for (value, expected) in [("Sunday, 06-Nov-69 08:49:37 GMT", 2069), ("Sunday, 06-Nov-70 08:49:37 GMT", 1970)] {
            let at = parse_http_date(value.as_bytes()).expect("a date");
            assert_eq!(civil(at.as_secs() / DAY_SECS).0, expected, "{value}");
        }
    }

    #[test]
    fn a_date_is_written_in_the_preferred_format() {
        for (secs, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_825_600, "Tue, 29 Feb 2000 12:00:00 GMT"),
            (u64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(format_http_date(Timestamp::from_secs(secs)), expected.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_agrees_with_another_implementation(secs in 0..=LAST) {
            let at = Timestamp::from_secs(secs);
            let written = format_http_date(at);
            prop_assert_eq!(parse_http_date(&written), Some(at));
            prop_assert_eq!(written.to_vec(), httpdate::fmt_http_date(SystemTime::from(at)).into_bytes());
        }

        #[test]
        fn no_bytes_make_it_panic(
            value in proptest::collection::vec(any::<u8>(), 0..40),
            shape in "[A-Za-z]{3,9},? [0-9A-Za-z:, -]{18,24}",
        ) {
            let _ = parse_http_date(&value);
            let _ = parse_http_date(shape.as_bytes());
        }
    }
}
