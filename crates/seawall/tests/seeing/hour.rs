//! An hour of scrapes: nothing is missed, no counter falls, and alerts fire and clear in real time.

use std::{
    net::{Ipv4Addr, TcpStream},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use testkit::free_port;

use crate::{
    dashboards, long,
    place::{Origin, Readers, Seawall},
    programs::within,
    prometheus::Prometheus,
};

/// The time that is scraped in all.
const HOUR: Duration = Duration::from_secs(3600);

/// The time that an alert may take: its own five minutes, the window of its rate, and two scrapes.
const PATIENCE: Duration = Duration::from_secs(12 * 60);

fn fires(prometheus: &Prometheus, alerts: &[&str]) {
    let mut seen: Vec<String> = Vec::new();
    within(PATIENCE, &format!("{alerts:?} fire"), || {
        seen.extend(prometheus.firing());
        alerts.iter().all(|alert| seen.iter().any(|name| name == alert))
    });
}

fn clear(prometheus: &Prometheus, alerts: &[&str]) {
    within(PATIENCE, &format!("{alerts:?} clear"), || {
        let firing = prometheus.firing();
        alerts.iter().all(|alert| firing.iter().all(|name| name != alert))
    });
}

/// Prometheus as operators run it, for an hour: an origin that goes and comes back, a Seawall that answers nobody for a while, and more connections than are good.
#[test]
fn an_hour_is_scraped_and_alerts_fire_and_clear() {
    if !long() {
        return;
    }
    let begun = Instant::now();
    let port = free_port();
    let origin = Origin::at(port);
    let seawall =
        Seawall::before(port, "[limits]\nconnections = 64\nconnections_per_address = 64\nheader_timeout = \"1h\"\nidle_timeout = \"1h\"\n");
    let prometheus = Prometheus::before(&seawall, "15s");
    let readers = Readers::of(&seawall, Duration::from_millis(20));

    drop(origin);
    let of_origins = ["SeawallOriginDown", "SeawallOriginFails", "SeawallServerErrors"];
    fires(&prometheus, &of_origins);
    let _origin = Origin::at(port);
    clear(&prometheus, &of_origins);

    let crowd: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, seawall.port)).expect("connected")).collect();
    fires(&prometheus, &["SeawallConnectionsNearlyUsed"]);
    drop(crowd);
    clear(&prometheus, &["SeawallConnectionsNearlyUsed"]);

    let scraped = prometheus.values("count_over_time(up[1h])");
    let process = Pid::from_raw(i32::try_from(seawall.process.0.id()).expect("a process id")).expect("a process");
    kill_process(process, Signal::STOP).expect("stopped");
    fires(&prometheus, &["SeawallGone"]);
    kill_process(process, Signal::CONT).expect("continued");
    clear(&prometheus, &["SeawallGone"]);
    assert!(scraped[0] > 4.0, "{scraped:?}");

    within(HOUR, "an hour is over", || begun.elapsed() >= HOUR);
    assert!(readers.asked() > 10_000, "{}", readers.asked());
    let resets = prometheus.values(
        r#"resets(label_replace({__name__=~"(seawall|process)_.+_(total|count|sum|bucket)"}, "metric", "$1", "__name__", "(.+)")[1h:15s]) > 0"#,
    );
    assert_eq!(resets, [0.0; 0], "no counter fell");
    let scraped = prometheus.values("count_over_time(up[1h])");
    assert!(scraped[0] >= 230.0, "a scrape each 15 seconds: {scraped:?}");
    let silent: Vec<String> =
        dashboards::expressions().iter().map(|of| of.text("5m")).filter(|text| prometheus.values(text).is_empty()).collect();
    assert_eq!(silent, Vec::<String>::new(), "after an hour, every panel shows something");
}
