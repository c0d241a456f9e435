//! The three formats of a date (RFC 9110 §5.6.7).

use std::time::UNIX_EPOCH;

use semantics::{
    Timestamp,
    date::{format_http_date, parse_http_date, parse_http_date_at},
};

use crate::input::Reader;

/// The last second that has a year of four digits.
const LAST: u64 = 253_402_300_799;

/// The input is a date as text, and its first eight bytes are a moment as well. What is read can be written and read again; what is written
/// is read as it was meant, by us and by `httpdate`, with which we agree on every date that both accept.
pub fn http_date(data: &[u8]) {
    let moment = Timestamp::from_secs(Reader::new(data).number() % (LAST + 1));
    let written = format_http_date(moment);
    assert_eq!(parse_http_date(&written), Some(moment));
    let text = std::str::from_utf8(&written).expect("a date is ASCII");
    let other = httpdate::parse_http_date(text).expect("an IMF-fixdate");
    assert_eq!(Timestamp::from(other), moment);

    let Some(read) = parse_http_date(data) else { return };
    assert!(read.as_secs() <= LAST + 1, "beyond the year 9999");
    assert_eq!(parse_http_date(&format_http_date(read)).map(Timestamp::as_secs), Some(read.as_secs().min(LAST)));
    let value = data.trim_ascii();
    let Ok(text) = std::str::from_utf8(value) else { panic!("a date that is not ASCII") };
    let two_digit_year = value.contains(&b'-');
    if two_digit_year {
        // Never more than fifty years ahead of whenever it is read.
        let now = Timestamp::from_secs(moment.as_secs().max(3_000_000_000));
        let read = parse_http_date_at(data, now).expect("the form does not depend on the present");
        assert!(read.as_secs() <= now.as_secs() + 51 * 366 * 86_400);
    } else if let Ok(other) = httpdate::parse_http_date(text) {
        assert_eq!(other.duration_since(UNIX_EPOCH).map(|since| since.as_secs()).ok(), Some(read.as_secs()));
    }
}
