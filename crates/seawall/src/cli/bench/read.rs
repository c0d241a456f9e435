//! Values of flags: times, shares, addresses, as people type them.

use std::{net::SocketAddr, time::Duration};

use ipnet::IpNet;

/// The longest time that can be typed: a week.
const TIME_MAX: f64 = 7.0 * 86_400.0;

/// Reads a time: `10`, `10s`, `1.5m`, `500ms`. A bare number counts seconds, as it does for ab, wrk and hey.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    if text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Err("it has to be longer than 0".to_owned());
    }
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err("write a number and a unit: 500ms, 10s, 1m or 1h".to_owned()),
    };
    let seconds = number.parse::<f64>().map_err(|_| "write a number and a unit: 500ms, 10s, 1m or 1h".to_owned())? * factor;
    if seconds > TIME_MAX {
        return Err("that is longer than a week".to_owned());
    }
    if seconds > 0.0 { Ok(Duration::from_secs_f64(seconds)) } else { Err("it has to be longer than 0".to_owned()) }
}

/// The longest bound of a search: its steps take some seconds, and cannot tell whether answers that take longer would come in time.
const BOUND_MAX: Duration = Duration::from_secs(3);

/// Reads a bound of latencies: a time with a unit. A bare `200` would be minutes for whoever thinks of milliseconds.
pub(super) fn bound(text: &str) -> Result<Duration, String> {
    if text.parse::<f64>().is_ok() {
        return Err(format!("a unit is missing: write {text}ms, or {text}s"));
    }
    let bound = time(text)?;
    if bound > BOUND_MAX {
        let most = BOUND_MAX.as_secs();
        return Err(format!("the steps of the search are too short for that: {most}s at most"));
    }
    Ok(bound)
}

/// Reads a bound of errors, which is below 1: `1%`, `0.01`. A bare `1` would be all of them for whoever thinks of per cent.
pub(super) fn share_of_errors(text: &str) -> Result<f64, String> {
    let is_bare = |share: &f64| *share >= 1.0 && share.is_finite();
    match text.parse::<f64>().ok().filter(is_bare) {
        Some(percent) => Err(format!("write {percent}%, or {}: the share of requests that may fail", percent / 100.0)),
        None => share(text)
            .and_then(|share| if share < 1.0 { Ok(share) } else { Err("then everything may fail: write less than 100%".to_owned()) }),
    }
}

/// Reads the beginning of random choices.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("write a whole number from 0 to {}", u64::MAX))
}

/// Reads a number that is not zero: `5000`, `5_000`, `5k`.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let plain = text.replace(['_', ','], "");
    let (digits, factor) = match plain.strip_suffix(['k', 'K']) {
        Some(thousands) => (thousands, 1_000),
        None => (plain.as_str(), 1),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse::<u64>().ok().filter(|_| is_number).and_then(|number| number.checked_mul(factor)) {
        None => Err("write a whole number".to_owned()),
        Some(0) => Err("it has to be 1 at least".to_owned()),
        Some(number) => Ok(number),
    }
}

/// Reads a share: `1%`, `0.01`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    share.ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "write a share from 0 to 1, or from 0% to 100%".to_owned())
}

/// Reads an address with its port.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an address and a port, such as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

/// Reads a network, or one address.
pub(super) fn source(text: &str) -> Result<IpNet, String> {
    let network = text.parse().or_else(|_| text.parse().map(|address: std::net::IpAddr| IpNet::from(address)));
    network.map_err(|_| "write a network such as 127.0.1.0/24, or one address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_a_unit() {
        for (text, millis) in [("10", 10_000), ("10s", 10_000), ("1m", 60_000), ("1.5m", 90_000), ("500ms", 500), ("1h", 3_600_000)] {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for wrong in ["", "s", "ten", "10x", "0", "0s", "-1s", "1..2s", "8000h", "inf", "1e3s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bounds_of_a_search_need_a_unit_and_leave_something_to_find() {
        for (text, millis) in [("200ms", 200), ("0.5s", 500), ("3s", 3_000)] {
            assert_eq!(bound(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for (wrong, expected) in
            [("200", "write 200ms"), ("0.2", "unit"), ("1m", "3s at most"), ("3001ms", "3s at most"), ("0s", "longer than 0")]
        {
            assert!(bound(wrong).is_err_and(|error| error.contains(expected)), "{wrong}");
        }
        for (text, expected) in [("1%", 0.01), ("0.01", 0.01), ("0", 0.0), ("99%", 0.99)] {
            assert!(share_of_errors(text).is_ok_and(|share| (share - expected).abs() < 1e-12), "{text}");
        }
        for (wrong, expected) in
            [("1", "write 1%, or 0.01"), ("5", "write 5%, or 0.05"), ("100%", "less than 100%"), ("x", "write a share")]
        {
            assert!(share_of_errors(wrong).is_err_and(|error| error.contains(expected)), "{wrong}");
        }
        assert_eq!((seed("7"), seed("x").is_err(), seed("-1").is_err()), (Ok(7), true, true));
    }

    #[test]
    fn numbers_are_whole_and_not_zero() {
        for (text, number) in [("1", 1), ("5000", 5_000), ("5_000", 5_000), ("5k", 5_000), ("10K", 10_000)] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for wrong in ["", "0", "-1", "1.5", "many", "k", "+3", "99999999999999999999"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_are_parts_of_one_or_per_cent() {
        for (text, expected) in [("0", 0.0), ("1", 1.0), ("0.25", 0.25), ("1%", 0.01), ("0.1%", 0.001), ("100%", 1.0)] {
            assert!(share(text).is_ok_and(|share| (share - expected).abs() < 1e-12), "{text}");
        }
        for wrong in ["", "%", "2", "101%", "-1%", "some", "NaN"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn networks_and_addresses_are_read() {
        assert_eq!(source("127.0.1.0/24").map(|net| net.to_string()), Ok("127.0.1.0/24".to_owned()));
        assert_eq!(source("::1").map(|net| net.to_string()), Ok("::1/128".to_owned()));
        assert!(source("localhost").is_err() && address("localhost:80").is_err() && address("127.0.0.1").is_err());
        assert!(address("[::1]:80").is_ok());
    }
}
