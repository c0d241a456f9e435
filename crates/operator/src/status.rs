//! `seawall status`: what runs, for a person.

use std::{fmt::Write as _, time::Duration};

use admin_api::{CertificateState, ListenerHealth, Publication, Readiness, ScheduleHealth, SignalHealth, Status};
use semantics::{Timestamp, date::format_http_date};

use crate::{
    admin_client::{AdminClient, AdminError},
    cluster,
    foreign::visible_answer,
    terminal::{Style, styled},
    units::{bytes, count, share, span},
};

/// Asks the running server for its state and its certificates, as JSON: what the server says, with keys that this version does not know, too.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses.
pub fn json(client: &AdminClient) -> Result<serde_json::Value, AdminError> {
    let mut status: serde_json::Map<_, _> = client.get("/status")?;
    status.insert("certificates".to_owned(), client.get("/certificates")?);
    Ok(status.into())
}

/// Asks the running server for its state and its certificates, as text.
///
/// # Errors
/// As [`json`].
pub fn text(client: &AdminClient, colour: bool) -> Result<String, AdminError> {
    let status = visible_answer::<Status>(&client.get("/status")?);
    let certificates = visible_answer::<Vec<CertificateState>>(&client.get("/certificates")?);
    Ok(page(&status, &certificates, colour))
}

fn page(status: &Status, certificates: &[CertificateState], colour: bool) -> String {
    let mut out = String::new();
    let mut line = |label: &str, value: &str| {
        let label = styled(format_args!("{label:<13}"), Style::Bold, colour && !label.is_empty());
        let _ = writeln!(out, "{label}{value}");
    };
    let state = match status.status {
        Readiness::Ok => styled("serves", Style::Green, colour),
        Readiness::Draining => styled("stopping: the last requests are still being answered", Style::Yellow, colour),
    };
    let workers = count(status.workers as u64, "worker", "workers");
    line(
        "Seawall",
        &format!(
            "{}, {state}, up for {}, {workers}",
            status.version,
            span(Duration::try_from_secs_f64(status.uptime_seconds).unwrap_or_default().as_secs())
        ),
    );
    for ListenerHealth { address, protocol } in &status.listeners {
        line("listening", &if protocol == "http" { address.clone() } else { format!("{address} ({protocol})") });
    }
    for site in &status.sites {
        let hosts = if site.hosts.is_empty() { "every host".to_owned() } else { site.hosts.join(", ") };
        line("site", &format!("{hosts} <- {} ({})", site.source, site.kind));
        if let Some(known) = &site.kind_known {
            line("", known);
        }
        for remark in &site.remarks {
            line("", &styled(remark, Style::Yellow, colour));
        }
        if let (false, Some(there)) = (site.redirect_from.is_empty(), site.hosts.iter().find(|host| !host.starts_with('*'))) {
            line("", &format!("{} -> {there}", site.redirect_from.join(", ")));
        }
        for origin in status.origins.iter().filter(|origin| origin.site == site.name) {
            let state = if origin.up && !origin.asked {
                "not asked yet".to_owned()
            } else if origin.up {
                styled("up", Style::Green, colour)
            } else {
                styled("down: Seawall cannot connect to it", Style::Red, colour)
            };
            let route = origin.route.as_ref().map(|route| format!("{route} <- ")).unwrap_or_default();
            line("", &format!("{route}{}: {state}", origin.address));
        }
        for told in site.schedule.iter().flat_map(|schedule| schedule_lines(schedule, colour)) {
            line("", &told);
        }
        for told in site.signals.iter().flat_map(signals) {
            line("", &told);
        }
    }
    for alert in &status.alerts {
        let date = |at: u64| String::from_utf8_lossy(&format_http_date(Timestamp::from_millis(at))).into_owned();
        let (text, from) = (alert.text.trim_end_matches('.'), date(alert.from));
        let said = match alert.right_since {
            Some(right) => styled(format_args!("{text}, since {from}; right again since {}", date(right)), Style::Green, colour),
            None => styled(format_args!("{text}, since {from}"), Style::Red, colour),
        };
        line("alert", &said);
    }
    let cache = &status.cache;
    let addresses = count(cache.resources, "address", "addresses");
    line("memory", &format!("{} of {}, {addresses}", bytes(cache.memory_bytes), bytes(cache.memory_bytes_max)));
    if cache.disk != "off" || cache.disk_bytes_max > 0 {
        let state = if cache.disk == "working" { String::new() } else { format!(" ({})", cache.disk) };
        let responses = count(cache.disk_objects, "response", "responses");
        line("disk", &format!("{} of {}, {responses}{state}", bytes(cache.disk_bytes), bytes(cache.disk_bytes_max)));
    }
    let ratio = match cache.requests {
        0 => "no request yet".to_owned(),
        requests => {
            let asked = count(requests, "request", "requests");
            format!("{} of {asked} to the cache", share(cache.hits, requests))
        }
    };
    line("hits", &ratio);
    if let Some(cluster) = &status.cluster {
        let machines = count(cluster.machines.len() as u64, "machine", "machines");
        line("cluster", &format!("{}, {machines}: `seawall cluster` shows them", cluster.cluster));
        for said in cluster::lines(cluster, colour) {
            line("", &said);
        }
    }
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

/// Says how the schedule of a site's software runs, and whether the plugin is there.
fn schedule_lines(schedule: &ScheduleHealth, colour: bool) -> Vec<String> {
    let ran = schedule.ran_seconds_ago.map_or_else(|| "not run yet".to_owned(), |ago| format!("ran {} ago", span(ago)));
    let failed = if schedule.failures == 0 { String::new() } else { format!(", failed {}", count(schedule.failures, "time", "times")) };
    let mut lines = vec![format!("cron: {ran}, every {}{failed}", span(schedule.every_seconds))];
    if let Some(trouble) = &schedule.trouble {
        lines.push(styled(format!("cron does not run: {trouble}"), Style::Yellow, colour));
    }
    lines.push(match &schedule.plugin {
        Some(plugin) => format!("plugin: {plugin}, which says what changes"),
        None => "plugin: not seen, so a change marks all pages stale".to_owned(),
    });
    lines
}

/// Says what the origin of a site has told of changes: the last one, and by which ways they arrive.
fn signals(signals: &SignalHealth) -> Vec<String> {
    let ways = [("an answer to an editor", &signals.in_path), ("a webhook", &signals.webhook)];
    let last =
        ways.into_iter().filter_map(|(way, publication)| Some((way, publication.as_ref()?))).min_by_key(|(_, last)| last.seconds_ago);
    let mut lines = Vec::new();
    if let Some((way, Publication { seconds_ago, covered, hard })) = last {
        let how = if *hard { "purged" } else { "marked stale" };
        let refilled = count(signals.refilled, "page", "pages");
        lines.push(format!("last publish: {} ago, by {way}: {how} {covered}; {refilled} refilled since", span(*seconds_ago)));
    }
    let seen = |ago: Option<u64>| ago.map_or_else(|| "none since the start".to_owned(), |ago| format!("last {} ago", span(ago)));
    let in_path = seen(signals.in_path.as_ref().map(|publication| publication.seconds_ago));
    lines.push(format!("signals: in answers to editors: {in_path}; webhooks: {}", seen(signals.webhook_seconds_ago)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> serde_json::Value {
        serde_json::json!({
            "status": "ok", "version": "1.2.3", "uptime_seconds": 3_725.5, "workers": 2, "trusts_loopback": false,
            "listening": ["0.0.0.0:80", "0.0.0.0:443"],
            "listeners": [{"address": "0.0.0.0:80", "protocol": "http"}, {"address": "0.0.0.0:443", "protocol": "https"}],
            "sites": [{
                "name": "blog.example", "hosts": ["blog.example"], "redirect_from": ["www.blog.example"],
                "source": "http://127.0.0.1:2368", "kind": "ghost", "kind_known": "recognised: Ghost 6.65 at https://blog.example/",
                "remarks": ["published past Seawall: 2 times"],
            }],
            "origins": [
                {"site": "blog.example", "address": "http://127.0.0.1:2368", "up": true},
                {"site": "blog.example", "route": "/a", "address": "http://127.0.0.1:3002", "up": true},
                {"site": "blog.example", "route": "/api", "address": "http://127.0.0.1:3000", "up": false},
                {"site": "blog.example", "route": "/x", "address": "http://127.0.0.1:3001", "up": true, "asked": false},
            ],
            "cache": {
                "memory_bytes": 3_145_728, "memory_bytes_max": 268_435_456, "resources": 12, "disk": "full", "disk_bytes": 1_024,
                "disk_bytes_max": 4_294_967_296_u64, "disk_objects": 9, "requests": 8, "hits": 6,
            },
            "alerts": [{"name": "disk", "about": "/srv", "text": "The disk of /srv is full.", "from": 784_111_777_000_u64, "until": null}],
            "metrics": {},
        })
    }

    #[test]
    fn one_of_something_is_not_called_many() {
        let mut json = status();
        (json["workers"], json["cache"]["resources"], json["cache"]["disk_objects"]) = (1.into(), 1.into(), 1.into());
        (json["cache"]["requests"], json["cache"]["hits"]) = (1.into(), 1.into());
        let shown = page(&serde_json::from_value(json).expect("a status"), &[], false);
        for expected in ["1 worker\n", "1 address\n", "1 response (full)\n", "100 % of 1 request to"] {
            assert!(shown.contains(expected), "{expected} in {shown}");
        }
    }

    #[test]
    fn a_person_sees_what_was_published_last_and_how_that_was_seen() {
        let shown = |signals: serde_json::Value| {
            let mut json = status();
            json["sites"][0]["signals"] = signals;
            page(&serde_json::from_value(json).expect("a status"), &[], false)
        };
        let never = shown(serde_json::json!({"refilled": 0}));
        assert!(never.contains("signals: in answers to editors: none since the start; webhooks: none since the start\n"), "{never}");
        assert!(!never.contains("last publish"), "{never}");
        let published = shown(serde_json::json!({
            "in_path": {"seconds_ago": 62, "covered": "every page of the site blog", "hard": false},
            "webhook": {"seconds_ago": 60, "covered": "every page of the site blog", "hard": false},
            "webhook_seconds_ago": 5,
            "refilled": 1,
        }));
        for expected in [
            "last publish: 1 min ago, by a webhook: marked stale every page of the site blog; 1 page refilled since\n",
            "signals: in answers to editors: last 1 min 2 s ago; webhooks: last 5 s ago\n",
        ] {
            assert!(published.contains(expected), "{expected} in {published}");
        }
    }

    #[test]
    fn a_person_sees_whether_purges_of_other_machines_hold_here() {
        let mut json = status();
        json["cluster"] =
            serde_json::json!({"cluster": "seawall", "machine": "web1", "leased": false, "why": "nothing answers", "in_doubt_ms": 3_000});
        let shown = page(&serde_json::from_value(json).expect("a status"), &[], false);
        let expected = "\
cluster      seawall, 0 machines: `seawall cluster` shows them
             web1 has had no lease for 3 s (nothing answers): it validates what it has stored before it shows it
";
        assert!(shown.contains(expected), "{shown}");
    }

    #[test]
    fn a_person_sees_what_runs() {
        let status: Status = serde_json::from_value(status()).expect("a status");
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
site         blog.example <- http://127.0.0.1:2368 (ghost)
             recognised: Ghost 6.65 at https://blog.example/
             published past Seawall: 2 times
             www.blog.example -> blog.example
             http://127.0.0.1:2368: up
             /a <- http://127.0.0.1:3002: up
             /api <- http://127.0.0.1:3000: down: Seawall cannot connect to it
             /x <- http://127.0.0.1:3001: not asked yet
alert        The disk of /srv is full, since Sun, 06 Nov 1994 08:49:37 GMT
memory       3.0 MiB of 256.0 MiB, 12 addresses
disk         1.0 KiB of 4.0 GiB, 9 responses (full)
hits         75.0 % of 8 requests to the cache
certificate  blog.example: none yet, by https://a/dir
             no address
";
        assert_eq!(page(&status, &certificates, false), expected);
    }
}
