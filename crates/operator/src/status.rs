//! `seawall status`: what runs, for a person.

use std::fmt::Write as _;

use crate::admin_client::{AdminClient, AdminError};
use admin_api::{CertificateState, ListenerHealth, Readiness, Status};
use semantics::{Timestamp, date::format_http_date};

use crate::terminal::{Style, styled};

/// Asks the running server for its state and its certificates, as JSON: what the server says, with keys that this version does not know, too.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses.
pub fn json(client: &AdminClient) -> Result<serde_json::Value, AdminError> {
    let mut status: serde_json::Value = client.get("/status")?;
    status["certificates"] = client.get("/certificates")?;
    Ok(status)
}

/// Asks the running server for its state and its certificates, as text.
///
/// # Errors
/// As [`json`].
pub fn text(client: &AdminClient, colour: bool) -> Result<String, AdminError> {
    Ok(page(&client.get("/status")?, &client.get::<Vec<CertificateState>>("/certificates")?, colour))
}

fn page(status: &Status, certificates: &[CertificateState], colour: bool) -> String {
    let mut out = String::new();
    let mut line = |label: &str, value: &str| {
        let label = styled(format_args!("{label:<13}"), Style::Bold, colour && !label.is_empty());
        let _ = writeln!(out, "{label}{value}");
    };
    let state = match status.status {
        Readiness::Ok => styled("serves", Style::Green, colour),
        Readiness::Draining => styled("stops: lets the last requests end", Style::Yellow, colour),
    };
    let workers = if status.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", status.workers) };
    line("Seawall", &format!("{}, {state}, up for {}, {workers}", status.version, span(status.uptime_seconds)));
    for ListenerHealth { address, protocol } in &status.listeners {
        line("listening", &if protocol == "http" { address.clone() } else { format!("{address} ({protocol})") });
    }
    for site in &status.sites {
        let hosts = if site.hosts.is_empty() { "every host".to_owned() } else { site.hosts.join(", ") };
        line("site", &format!("{hosts} <- {} ({})", site.source, site.kind));
        if let (false, Some(there)) = (site.redirect_from.is_empty(), site.hosts.iter().find(|host| !host.starts_with('*'))) {
            line("", &format!("{} -> {there}", site.redirect_from.join(", ")));
        }
        for origin in status.origins.iter().filter(|origin| origin.site == site.name) {
            let state =
                if origin.up { styled("up", Style::Green, colour) } else { styled("down: cannot be connected to", Style::Red, colour) };
            let route = origin.route.as_ref().map(|route| format!("{route} <- ")).unwrap_or_default();
            line("", &format!("{route}{}: {state}", origin.address));
        }
    }
    let cache = &status.cache;
    line("memory", &format!("{} of {}, {} addresses", bytes(cache.memory_bytes), bytes(cache.memory_bytes_max), cache.resources));
    if cache.disk != "off" || cache.disk_bytes_max > 0 {
        let state = if cache.disk == "working" { String::new() } else { format!(" ({})", cache.disk) };
        line("disk", &format!("{} of {}, {} responses{state}", bytes(cache.disk_bytes), bytes(cache.disk_bytes_max), cache.disk_objects));
    }
    let ratio = match cache.requests {
        0 => "no request yet".to_owned(),
        requests => format!("{:.1} % of {requests} requests that the cache was asked for", cache.hits as f64 * 100.0 / requests as f64),
    };
    line("hits", &ratio);
    for certificate in certificates {
        let until = match certificate.not_after {
            Some(until) => format!("until {}", String::from_utf8_lossy(&format_http_date(Timestamp::from_secs(until)))),
            None => styled("none yet", Style::Yellow, colour),
        };
        line("certificate", &format!("{}: {until}, by {}", certificate.name, certificate.authority));
        if let Some(error) = &certificate.last_error {
            line("", &styled(error, Style::Red, colour));
        }
    }
    out
}

fn span(seconds: f64) -> String {
    let seconds = std::time::Duration::from_secs_f64(seconds.max(0.0)).as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_sees_what_runs() {
        let status: Status = serde_json::from_value(serde_json::json!({
            "status": "ok", "version": "1.2.3", "uptime_seconds": 3_725.5, "workers": 2, "trusts_loopback": false,
            "listening": ["0.0.0.0:80", "0.0.0.0:443"],
            "listeners": [{"address": "0.0.0.0:80", "protocol": "http"}, {"address": "0.0.0.0:443", "protocol": "https"}],
            "sites": [{
                "name": "blog.example", "hosts": ["blog.example"], "redirect_from": ["www.blog.example"],
                "source": "http://127.0.0.1:2368", "kind": "generic",
            }],
            "origins": [
                {"site": "blog.example", "address": "http://127.0.0.1:2368", "up": true},
                {"site": "blog.example", "route": "/a", "address": "http://127.0.0.1:3002", "up": true},
                {"site": "blog.example", "route": "/api", "address": "http://127.0.0.1:3000", "up": false},
                {"site": "blog.example", "route": "/x", "address": "http://127.0.0.1:3001", "up": true},
            ],
            "cache": {
                "memory_bytes": 3_145_728, "memory_bytes_max": 268_435_456, "resources": 12, "disk": "full", "disk_bytes": 1_024,
                "disk_bytes_max": 4_294_967_296_u64, "disk_objects": 9, "requests": 8, "hits": 6,
            },
            "metrics": {},
        }))
        .expect("a status");
        let certificates = [CertificateState {
            name: "blog.example".to_owned(),
            authority: "https://a/dir".to_owned(),
            not_after: None,
            next: None,
            last_error: Some("no address".to_owned()),
        }];
        let expected = "\
Seawall      1.2.3, serves, up for 1 h 2 min, 2 workers
listening    0.0.0.0:80
listening    0.0.0.0:443 (https)
site         blog.example <- http://127.0.0.1:2368 (generic)
             www.blog.example -> blog.example
             http://127.0.0.1:2368: up
             /a <- http://127.0.0.1:3002: up
             /api <- http://127.0.0.1:3000: down: cannot be connected to
             /x <- http://127.0.0.1:3001: up
memory       3.0 MiB of 256.0 MiB, 12 addresses
disk         1.0 KiB of 4.0 GiB, 9 responses (full)
hits         75.0 % of 8 requests that the cache was asked for
certificate  blog.example: none yet, by https://a/dir
             no address
";
        assert_eq!(page(&status, &certificates, false), expected);
    }
}
