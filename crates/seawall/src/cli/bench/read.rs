//! Values of flags: times, shares, addresses, as people type them.

use std::{net::SocketAddr, time::Duration};

use ipnet::IpNet;

/// The longest time that can be typed: a week.
const TIME_MAX: f64 = 7.0 * 86_400.0;

/// Reads a time: `10`, `10s`, `1.5m`, `500ms`. A bare number counts seconds, as it does for ab, wrk and hey.
pub(super) fn time(text: &str) -> Result<Duration, String> {
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
    if seconds > 0.0 { Ok(Duration::from_secs_f64(seconds)) } else { Err("no time is too short".to_owned()) }
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
