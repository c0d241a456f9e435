//! The run that was made, in values and in words.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    output::quantity::{count, counted, number, seconds, whole},
    plan::{Plan, Protocol, Stop},
    schedule::{Profile, Schedule, Spacing},
};

/// The URLs that a result names; of the others it says how many there are.
pub const URLS_NAMED: usize = 20;

/// Says what was run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The command line. Whoever sets it hides what is secret in it: results are shared.
    pub command: String,
    /// The time at which the run began (RFC 3339, UTC).
    pub began: String,
    /// The version of Seawall.
    pub seawall: String,
    /// The URLs that were asked: the first [`URLS_NAMED`] URLs.
    pub urls: Vec<String>,
    /// The number of all URLs.
    pub urls_count: u64,
    /// The version of HTTP, and what is special about its use: `HTTP/1.1`, `HTTP/2, 10 streams`.
    pub protocol: String,
    /// Whether TLS was used.
    pub tls: bool,
    /// Whether a connection was used for one request only.
    pub no_keepalive: bool,
    /// The schedule of the requests, in words.
    pub schedule: String,
    /// The name of the shape whose crowd came; empty: no shape.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub shape: String,
    /// The sources of the figures of the shape.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shape_sources: Vec<String>,
    /// Whether answers were searched for what belongs to other clients.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub leak_check: bool,
    /// The kind of the schedule, for programs.
    pub kind: Kind,
    /// Whether requests came whether or not earlier ones were answered. Then latencies count from the intended moment.
    pub open: bool,
    /// The end that the run was to have, in words.
    pub stop: String,
    /// The most clients at a time that the schedule allows, if it says so.
    pub clients: Option<u32>,
    /// The requests that were to be made, if a number was given.
    pub requests: Option<u64>,
    /// The seconds that were to be measured, if a time was given or the schedule has an end.
    pub seconds: Option<f64>,
    /// The longest time that a client waited, in seconds.
    pub timeout: f64,
    /// Seconds of warm-up.
    pub warm_up: f64,
    /// Threads that made requests.
    pub workers: u32,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The kinds of schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Clients that stay.
    #[default]
    Closed,
    /// New clients, each with a connection of its own.
    Arrivals,
    /// Requests a second.
    Rate,
    /// A log that is replayed.
    Replay,
}

impl Run {
    /// Describes a run that begins now.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let set = &plan.requests;
        let urls = set.requests.iter().map(|request| {
            let method = if request.method == "GET" { String::new() } else { format!("{} ", request.method) };
            let origin = set.origins.get(usize::from(request.origin)).map_or_else(String::new, ToString::to_string);
            format!("{method}{origin}{}", request.target)
        });
        Self {
            command: String::new(),
            began: now(),
            seawall: env!("CARGO_PKG_VERSION").to_owned(),
            urls: urls.take(URLS_NAMED).collect(),
            urls_count: set.requests.len() as u64,
            protocol: protocol(plan.protocol),
            tls: set.origins.iter().any(|origin| origin.tls),
            no_keepalive: plan.connections.no_keepalive,
            schedule: schedule(&plan.schedule),
            shape: set.behaviour.shape().map_or_else(String::new, |(name, _)| name.to_owned()),
            shape_sources: set.behaviour.shape().map_or_else(Vec::new, |(_, sources)| sources.to_vec()),
            leak_check: set.behaviour.checks_leaks(),
            kind: match plan.schedule {
                Schedule::Closed { .. } => Kind::Closed,
                Schedule::Arrivals { .. } => Kind::Arrivals,
                Schedule::Rate { .. } => Kind::Rate,
                Schedule::Replay { .. } => Kind::Replay,
            },
            open: plan.schedule.is_open(),
            stop: stop(plan.stop, plan.schedule.end()),
            clients: plan.schedule.clients_max(),
            requests: plan.stop.requests,
            seconds: plan.stop.after.or_else(|| plan.schedule.end()).map(|after| after.as_secs_f64()),
            timeout: plan.timeout.as_secs_f64(),
            warm_up: plan.warm_up.as_secs_f64(),
            workers: u32::try_from(plan.workers).unwrap_or(u32::MAX),
            seed: plan.seed,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the date of a result, for people; nothing is decided by it")]
fn now() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

fn protocol(protocol: Protocol) -> String {
    let (name, many, of_what) = match protocol {
        Protocol::Http1 { pipeline } => ("HTTP/1.1", pipeline, "requests in a pipeline"),
        Protocol::Http2 { streams } => ("HTTP/2", streams, "streams a connection"),
        Protocol::Http3 { streams } => ("HTTP/3", streams, "streams a connection"),
    };
    if many <= 1 { name.to_owned() } else { format!("{name}, {many} {of_what}") }
}

fn schedule(schedule: &Schedule) -> String {
    match schedule {
        Schedule::Closed { clients } if matches!(*clients.points(), [(_, 1.0)]) => "1 client that stays".to_owned(),
        Schedule::Closed { clients } => quantity_over_time(clients, ["client that stays", "clients that stay"]),
        Schedule::Arrivals { rate, spacing } => {
            format!("{}{}", quantity_over_time(rate, ["new client a second", "new clients a second"]), at_random(*spacing))
        }
        Schedule::Rate { rate, spacing, clients } => {
            format!(
                "{}{}, over at most {}",
                quantity_over_time(rate, ["request a second", "requests a second"]),
                at_random(*spacing),
                counted((*clients).into(), "connection")
            )
        }
        Schedule::Replay { moments } => format!(
            "{} of a log within {}",
            counted(moments.len() as u64, "request"),
            duration(moments.last().map_or(Duration::ZERO, |moment| moment.at))
        ),
    }
}

const fn at_random(spacing: Spacing) -> &'static str {
    match spacing {
        Spacing::Even => "",
        Spacing::Poisson => " at random moments",
    }
}

/// Says how a number changes with time: `500 clients that stay`, `clients that stay: 0 to 5,000 within 60 s, 5,000 for 10 s`.
fn quantity_over_time(profile: &Profile, [one, many]: [&str; 2]) -> String {
    let of_what = if profile.most().to_bits() == 1.0_f64.to_bits() { one } else { many };
    let parts: Vec<_> = profile
        .points()
        .windows(2)
        .filter_map(|pair| {
            let [(begin, from), (end, to)] = [pair[0], pair[1]];
            let time = end - begin;
            match () {
                () if time.is_zero() => None,
                () if from.to_bits() == to.to_bits() => Some(format!("{} for {}", rounded(from), duration(time))),
                () => Some(format!("{} to {} within {}", rounded(from), rounded(to), duration(time))),
            }
        })
        .collect();
    match parts.as_slice() {
        [] => format!("{} {of_what}", plain(profile.most())),
        [_] if profile.points().iter().all(|point| point.1.to_bits() == profile.most().to_bits()) => {
            format!("{} {of_what} for {}", plain(profile.most()), duration(profile.points().last().map_or(Duration::ZERO, |point| point.0)))
        }
        parts => format!("{many}: {}", parts.join(", ")),
    }
}

/// Writes what was asked for, as it was asked for. A rate that nobody has typed may have any number of digits.
fn plain(value: f64) -> String {
    let typed = value.to_string();
    match typed.split_once('.') {
        None => number_whole(value),
        Some((whole_part, part)) if digits(whole_part, part) > TYPED_MAX => whole(value),
        Some(_) => typed,
    }
}

/// Writes a point of a profile: whole numbers are clients, or were asked for as such.
fn rounded(value: f64) -> String {
    if value.fract() == 0.0 { number_whole(value) } else { number(value) }
}

fn number_whole(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of clients or events; it saturates")]
    count(value as u64)
}

/// The most digits after the point that somebody types, not counting zeros that a small number begins with.
const TYPED_MAX: usize = 3;

/// Counts the digits after the point that mean something.
fn digits(before: &str, after: &str) -> usize {
    if before == "0" { after.trim_start_matches('0').len() } else { after.len() }
}

fn stop(stop: Stop, schedule_end: Option<Duration>) -> String {
    let requests = stop.requests.map(|requests| counted(requests, "request"));
    let after = stop.after.or_else(|| schedule_end.filter(|_| stop.requests.is_none())).map(duration);
    match (requests, after) {
        (Some(requests), Some(after)) => format!("{requests}, or {after}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "until somebody stops it".to_owned(),
    }
}

fn duration(time: Duration) -> String {
    seconds(time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_said_in_words() {
        let secs = Duration::from_secs;
        let constant = |value| Profile::constant(value, None);
        for (what, words) in [
            (Schedule::Closed { clients: constant(1.0) }, "1 client that stays"),
            (Schedule::Closed { clients: constant(500.0) }, "500 clients that stay"),
            (Schedule::Closed { clients: Profile::ramp(0.0, 5000.0, secs(60)) }, "clients that stay: 0 to 5,000 within 60 s"),
            (Schedule::Closed { clients: Profile::ramp(1.0, 60.0, secs(60)) }, "clients that stay: 1 to 60 within 60 s"),
            (
                Schedule::Arrivals { rate: Profile::constant(10_000.0, Some(secs(60))), spacing: Spacing::Even },
                "10,000 new clients a second for 60 s",
            ),
            (
                Schedule::Rate { rate: constant(0.5), spacing: Spacing::Poisson, clients: 8 },
                "0.5 requests a second at random moments, over at most 8 connections",
            ),
            (
                Schedule::Rate { rate: constant(0.0025), spacing: Spacing::Even, clients: 8 },
                "0.0025 requests a second, over at most 8 connections",
            ),
            (
                Schedule::Rate { rate: constant(0.0125), spacing: Spacing::Even, clients: 8 },
                "0.0125 requests a second, over at most 8 connections",
            ),
            (
                Schedule::Rate { rate: Profile::constant(41_498.084_255_152, Some(secs(2))), spacing: Spacing::Even, clients: 1 },
                "41,498 requests a second for 2 s, over at most 1 connection",
            ),
            (Schedule::Rate { rate: constant(1.0), spacing: Spacing::Even, clients: 8 }, "1 request a second, over at most 8 connections"),
            (Schedule::Arrivals { rate: Profile::constant(1.0, Some(secs(2))), spacing: Spacing::Even }, "1 new client a second for 2 s"),
            (Schedule::Replay { moments: std::sync::Arc::from([]) }, "0 requests of a log within 0 s"),
        ] {
            assert_eq!(schedule(&what), words);
        }
    }

    #[test]
    fn the_end_is_said_in_words() {
        let secs = |n| Some(Duration::from_secs(n));
        for (requests, after, end, words) in [
            (Some(5000), None, None, "5,000 requests"),
            (Some(1), secs(10), None, "1 request, or 10 s"),
            (None, secs(90), None, "90 s"),
            (None, None, secs(60), "60 s"),
            (None, None, None, "until somebody stops it"),
        ] {
            assert_eq!(stop(Stop { requests, after }, end), words);
        }
    }
}
