//! Reads dates as servers write them.

/// Reads a date the forgiving way of RFC 6265 §5.1.1, which covers the three forms of RFC 9110 §5.6.7. Returns seconds since 1970.
#[must_use]
pub(crate) fn read_date(text: &str) -> Option<i64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == ':' || !c.is_ascii())).filter(|word| !word.is_empty());
    for word in words {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let number = || word[..digits].parse::<i64>().ok();
        if time.is_none()
            && let Some(read) = read_time(word)
        {
            time = Some(read);
        } else if day.is_none() && (1..=2).contains(&digits) {
            day = number();
        } else if month.is_none()
            && let Some(found) = month_of(word)
        {
            month = Some(found);
        } else if year.is_none() && (digits == 2 || digits == 4) {
            year = number().map(|year| match year {
                70..=99 if digits == 2 => year + 1900,
                0..=69 if digits == 2 => year + 2000,
                _ => year,
            });
        }
    }
    let (time, day, month, year) = (time?, day?, month?, year?);
    ((1..=31).contains(&day) && year >= 1601).then(|| days(year, month, day) * 86_400 + time)
}

fn read_time(word: &str) -> Option<i64> {
    let mut parts = word.split(':');
    let mut next = |most: i64| {
        let part = parts.next()?;
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let number = (1..=2).contains(&digits).then(|| part[..digits].parse::<i64>().ok()).flatten()?;
        (number <= most).then_some(number)
    };
    Some(next(23)? * 3600 + next(59)? * 60 + next(59)?)
}

fn month_of(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let start = word.get(..3)?;
    MONTHS.iter().position(|month| month.eq_ignore_ascii_case(start)).and_then(|month| i64::try_from(month + 1).ok())
}

/// Days since 1970 of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_of_http_and_what_cookies_say() {
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Thu, 01-Jan-1970 00:00:01 GMT", Some(1)),
            ("Tue, 29 Feb 2028 12:00:00 GMT", Some(1_835_438_400)),
            ("0", None),
            ("", None),
            ("Sun, 06 Nov 1994 24:00:00 GMT", None),
            ("6 é 1994", None),
        ] {
            assert_eq!(read_date(text), expected, "{text}");
        }
    }
}
