//! One rule for each cause. Each says nothing, or whose limit it was, with its evidence in numbers.

use super::shown::{Shown, percent};
use crate::{
    output::quantity::{count, milliseconds, number, seconds},
    results::{Limit, Verdict},
};

/// The share of connections that may fail for want of ports or descriptors before this is the limit.
const EXHAUSTED: f64 = 0.001;

/// The share of CPU time that its host may take away from a machine.
const STEAL: f64 = 0.05;

/// How far the clock may jump, in seconds: what corrections of time servers never reach at once.
const JUMP: f64 = 0.1;

/// The part of its time in which a worker may work, or wait for a CPU, before it is at its end.
const BUSY: f64 = 0.9;

/// How late the generator may send, in milliseconds, at the 99th percentile.
const LAG: f64 = 10.0;

/// The part of latency that the generator's own lateness may be, at the 99th percentile, and from which lateness on that is looked at.
const LAG_PART: (f64, f64) = (0.25, 1.0);

/// The share of requests that may be refused, fail, or never be sent before a server has not kept up.
const FAILED: f64 = 0.01;

/// The share of requests that may be due and never sent, or time out.
const LOST: f64 = 0.001;

/// How much slower the end of a run may be than its beginning, and from which difference on that is looked at, in milliseconds.
const GROWTH: (f64, f64) = (2.0, 20.0);

/// The part of the median latency that even the quickest answer took: above it the wait is the same however many requests are under way.
const CONSTANT: f64 = 0.7;

/// The part of the median latency that the connection took to be made.
const CONNECT: f64 = 0.4;

/// The shortest wait, in milliseconds, that is called the network's. On a machine itself a round trip takes less.
const ROUND_TRIP: f64 = 1.0;

fn verdict(limit: Limit, at_least: bool, reason: String, hint: &str) -> Verdict {
    Verdict { limit, at_least, reason, hint: (!hint.is_empty()).then(|| hint.to_owned()) }
}

/// No port or descriptor was free.
pub(super) fn exhausted(shown: &Shown) -> Option<Verdict> {
    let (ports, descriptors) = (shown.ports_exhausted, shown.descriptors_exhausted);
    let share = (ports + descriptors) as f64 / (shown.connections + ports + descriptors).max(1) as f64;
    if share < EXHAUSTED || ports + descriptors == 0 {
        return None;
    }
    let made = count(shown.connections);
    let verdict = if ports >= descriptors {
        let reason = format!(
            "{} connections could not be made because no port of this machine was free, and {made} were made. A port rests for a minute after its \
             connection was closed.",
            count(ports)
        );
        verdict(
            Limit::PortsOrDescriptors,
            true,
            reason,
            "Connect from more addresses (--source 127.0.1.0/24), widen net.ipv4.ip_local_port_range, or keep connections open.",
        )
    } else {
        let reason = format!(
            "{} connections could not be made because the load tester may have only {} open files; {made} were made.",
            count(descriptors),
            count(shown.descriptors_max)
        );
        verdict(Limit::PortsOrDescriptors, true, reason, "Raise the limit of open files (ulimit -n), or take fewer clients.")
    };
    Some(verdict)
}

/// The machine was not there all the time.
pub(super) fn machine(shown: &Shown) -> Option<Verdict> {
    if shown.steal >= STEAL {
        let reason = format!("The host of this machine gave {} of its CPU time to others.", percent(shown.steal));
        return Some(verdict(Limit::Machine, true, reason, "Run it again at another time, or on a machine with CPUs of its own."));
    }
    if shown.clock_jump.abs() >= JUMP {
        let reason =
            format!("The clock of this machine jumped by {}: it was set, or the machine stood still.", seconds(shown.clock_jump.abs()));
        return Some(verdict(Limit::Machine, true, reason, "Run it again; no number of this run can be relied on."));
    }
    None
}

/// The load tester had no CPU left.
pub(super) fn generator(shown: &Shown) -> Option<Verdict> {
    let Shown { busy, waiting, idle, workers, cpus, .. } = *shown;
    let more =
        if workers < cpus { "Give it more threads (--workers), or use several machines and `seawall bench merge`." } else { MACHINES };
    if busy >= BUSY {
        let reason = format!("The busiest worker of the load tester used {} of a core.", percent(busy));
        return Some(verdict(Limit::Generator, true, reason, more));
    }
    // A worker that has nothing to do sleeps. One that neither works nor sleeps wants to work, and others have its core.
    if workers > 0 && idle <= 1.0 - BUSY && waiting > 0.05 {
        let others = if shown.shares_cores() { "others, the server itself perhaps," } else { "others" };
        let reason = format!(
            "A worker of the load tester had work all the time, but a core for {} of it only: for {} {others} had the core.",
            percent(busy),
            percent(waiting)
        );
        return Some(verdict(Limit::Generator, true, reason, OTHERS));
    }
    None
}

/// The load tester sent late, for whatever reason. What the server refused or did not answer in time is known all the same, so this comes later.
pub(super) fn late(shown: &Shown) -> Option<Verdict> {
    let [_, lag] = shown.lag;
    let (part, from) = LAG_PART;
    if !shown.open || lag < LAG && (lag < from || lag < part * shown.latency[1]) {
        return None;
    }
    let reason = format!(
        "The load tester sent late: 1 % of the requests left more than {} after their moment, and that is part of the latencies.",
        milliseconds(lag)
    );
    let hint = if shown.waiting > 0.05 || shown.busy < 0.5 { OTHERS } else { MORE };
    Some(verdict(Limit::Generator, true, reason, hint))
}

const MORE: &str = "Give it more threads (--workers), or use several machines and `seawall bench merge`.";
const MACHINES: &str = "Use several machines and `seawall bench merge`.";
const OTHERS: &str = "End what else runs on this machine, or run the load tester on another one.";

/// The server refused.
pub(super) fn refused(shown: &Shown) -> Option<Verdict> {
    let refusals = shown.share(shown.refusals);
    if refusals >= FAILED {
        let well = shown.rate * (1.0 - shown.refusals as f64 / shown.requests.max(1) as f64);
        let reason = format!(
            "The server refused {} of the requests with 429 or 503, and answered {}/s of the others.",
            percent(refusals),
            number(well)
        );
        return Some(verdict(Limit::Server, false, reason, ""));
    }
    let unreachable = shown.share(shown.unreachable);
    if unreachable >= FAILED {
        let reason = format!("{} of the requests found their connection refused or reset by the server.", percent(unreachable));
        return Some(verdict(Limit::Server, false, reason, ""));
    }
    None
}

/// Requests of an open schedule that were never sent, or not answered in time.
pub(super) fn lost(shown: &Shown) -> Option<Verdict> {
    let (missed, timeouts) = (shown.share(shown.missed), shown.share(shown.timeouts));
    if !shown.open || missed.max(timeouts) < LOST {
        return None;
    }
    let reason = if missed >= LOST {
        format!(
            "{} of the requests that were due were never sent, because all connections waited for answers (with {} clients).",
            percent(missed),
            count(shown.clients.into())
        )
    } else {
        format!("{} of the requests were not answered in time.", percent(timeouts))
    };
    Some(verdict(Limit::Server, false, reason, FIND_LIMIT))
}

/// An open schedule asked for more than was answered.
pub(super) fn behind(shown: &Shown) -> Option<Verdict> {
    let (begin, end) = shown.begin_end.filter(|_| shown.open)?;
    if end < begin * GROWTH.0 || end - begin < GROWTH.1 {
        return None;
    }
    let reason = format!(
        "Requests came faster than they were answered: the median latency grew from {} to {}.",
        milliseconds(begin),
        milliseconds(end)
    );
    Some(verdict(Limit::Server, false, reason, FIND_LIMIT))
}

const FIND_LIMIT: &str = "For the highest rate that it can do, use --find-limit.";

/// An open schedule was answered as it came.
pub(super) fn kept_up(shown: &Shown) -> Option<Verdict> {
    if !shown.open {
        return None;
    }
    let reason = format!(
        "The server kept up with what it was asked: {}/s, with a median of {} and a p99 of {}.",
        number(shown.rate),
        milliseconds(shown.latency[0]),
        milliseconds(shown.latency[1])
    );
    let hint = if shown.replay { "Replay the log faster (--speed)." } else { "Ask for more, or use --find-limit." };
    Some(verdict(Limit::Schedule, true, reason, hint))
}

/// One client that waits for each answer asks no more than one request at a time.
pub(super) fn alone(shown: &Shown) -> Option<Verdict> {
    (shown.clients == 1).then(|| {
        let reason = format!(
            "One client asks one request at a time: {} for each answer make {}/s.",
            milliseconds(shown.latency_mean),
            number(shown.rate)
        );
        verdict(Limit::Schedule, true, reason, "Take more clients (-c 50).")
    })
}

/// Clients that stay waited for the way, not for the server: the wait is as long when few requests are under way as when many are.
pub(super) fn network(shown: &Shown) -> Option<Verdict> {
    let [p50, _] = shown.latency;
    if shown.open || p50 < ROUND_TRIP {
        return None;
    }
    let (clients, rate) = (count(shown.clients.into()), number(shown.rate));
    let sum =
        format!("{clients} clients, divided by a round trip of {}, are the {rate}/s that were measured.", milliseconds(shown.latency_mean));
    let reason = if shown.connect_p50 >= CONNECT * p50 {
        format!("A connection took {} to be made, and an answer {}. {sum}", milliseconds(shown.connect_p50), milliseconds(p50))
    } else if shown.latency_min >= CONSTANT * p50 {
        format!(
            "No answer came in less than {}, and half of them within {}: the wait is the same however many requests are under way, as it is with \
             distance, a proxy that delays, or a pause in the server. {sum}",
            milliseconds(shown.latency_min),
            milliseconds(p50)
        )
    } else {
        return None;
    };
    Some(verdict(Limit::Network, true, reason, "Take more clients, or run the load tester nearer to the server."))
}

/// Nothing else was at its end.
pub(super) fn server(shown: &Shown) -> Verdict {
    let waited = if shown.latency_min > 0.0 && shown.latency[0] >= 2.0 * shown.latency_min {
        let [p50, _] = shown.latency;
        format!(
            "requests waited for each other: the quickest answer took {}, half of them more than {}",
            milliseconds(shown.latency_min),
            milliseconds(p50)
        )
    } else {
        format!("half of the answers took more than {}", milliseconds(shown.latency[0]))
    };
    let reason = format!(
        "The server set the pace: {waited}. The busiest worker of the load tester had nothing to do for {} of the time.",
        percent(shown.idle)
    );
    verdict(Limit::Server, false, reason, "")
}
