//! One rule for each cause. Each says nothing, or whose limit it was, with its evidence in numbers.

use super::shown::RunFigures;
use crate::{
    output::quantity::{self, count, counted, milliseconds, number, seconds},
    results::{Limit, Verdict},
};

/// The share of connections that may fail for want of ports or descriptors before this is the limit.
const EXHAUSTED: f64 = 0.001;

/// The share of CPU time that its host may take away from a machine.
const STEAL: f64 = 0.05;

/// The time by which the clock may jump, in seconds: what corrections of time servers never reach at once.
const JUMP: f64 = 0.1;

/// The part of its time in which a worker may work, or wait for a CPU, before it is at its end.
const BUSY: f64 = 0.9;
/// The part of the time that a worker waits for a core from which on nothing else needs to be asked.
const WAITING: f64 = 0.4;

/// The delay with which the generator may send, in milliseconds: usually, before it has not followed the schedule; at the 99th percentile,
/// before this is said.
const LAG: f64 = 10.0;

/// The part of latency that the generator's own lateness may be, at the 99th percentile, and from which lateness on that is looked at.
const LAG_PART: (f64, f64) = (0.25, 1.0);

/// The share of requests that may be refused, fail, or never be sent before a server has not kept up.
pub(super) const FAILED: f64 = 0.01;

/// The requests that a verdict needs; and the seconds, without a warm-up and after one.
const REQUESTS_MIN: u64 = 20;
const SECONDS_MIN: [f64; 2] = [0.9, 0.1];

/// The factor by which the end of a run may be slower than its beginning, and the difference in milliseconds below which that is ignored.
const GROWTH: (f64, f64) = (2.0, 20.0);

/// The part of the median latency that even the quickest answer took: above it the wait is the same however many requests are under way.
const CONSTANT: f64 = 0.7;

/// The part of the median latency that even the quickest connection took to be made.
const CONNECT: f64 = 0.4;

/// The shortest wait, in milliseconds, that is called the network's. On a machine itself a round trip takes less.
const ROUND_TRIP: f64 = 1.0;

fn verdict(limit: Limit, at_least: bool, reason: String, hint: &str) -> Verdict {
    Verdict { limit, at_least, reason, hint: (!hint.is_empty()).then(|| hint.to_owned()) }
}

/// Returns the verdict of a run in which no port or descriptor was free.
pub(super) fn exhausted(shown: &RunFigures) -> Option<Verdict> {
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

/// Returns the verdict of a run whose machine was not there all the time.
pub(super) fn machine(shown: &RunFigures) -> Option<Verdict> {
    if shown.steal >= STEAL {
        let reason = format!("The host of this machine gave {} of its CPU time to others.", quantity::share(shown.steal));
        return Some(verdict(Limit::Machine, true, reason, "Run it again at another time, or on a machine with CPUs of its own."));
    }
    if shown.clock_jump.abs() >= JUMP {
        let reason =
            format!("The clock of this machine jumped by {}: it was set, or the machine stood still.", seconds(shown.clock_jump.abs()));
        return Some(verdict(Limit::Machine, true, reason, "Run it again; no number of this run can be relied on."));
    }
    None
}

/// Returns the verdict of a run in which the load tester had no CPU left.
pub(super) fn generator(shown: &RunFigures) -> Option<Verdict> {
    let RunFigures { busy, waiting, idle, workers, cpus, .. } = *shown;
    let more =
        if workers < cpus { "Give it more threads (--threads), or use several machines and `seawall bench merge`." } else { MACHINES };
    if busy >= BUSY {
        let reason = format!("The busiest worker of the load tester used {} of a core.", quantity::share(busy));
        return Some(verdict(Limit::Generator, true, reason, more));
    }
    // A worker that has nothing to do sleeps. One that neither works nor sleeps wants to work, and others have its core.
    // Idle time counts until the last answer, so a run whose last answers are late has some although its worker never had enough.
    if workers > 0 && (idle <= 1.0 - BUSY && waiting > 0.05 || waiting >= WAITING) {
        if shown.shares_cores() {
            return Some(verdict(Limit::Generator, true, shown.sharing(), APART));
        }
        let reason = format!(
            "The load tester waited for a core for {} of the time, because other programs used this machine.",
            quantity::share(waiting)
        );
        return Some(verdict(Limit::Generator, true, reason, OTHERS));
    }
    None
}

/// Returns the verdict of a run in which the load tester sent most of what was due late, for whatever reason. What the server refused or did not answer in
/// time is known all the same, so this comes later.
pub(super) fn late(shown: &RunFigures) -> Option<Verdict> {
    let [usual, ..] = shown.lag;
    if !shown.open || usual < LAG {
        return None;
    }
    let reason = format!(
        "The load tester sent late: half of the requests left more than {} after their moment, and that is part of the latencies.",
        milliseconds(usual)
    );
    let hint = if shown.waiting > 0.05 || shown.busy < 0.5 { OTHERS } else { MORE };
    Some(verdict(Limit::Generator, true, reason, hint))
}

/// Says how late the load tester sent, if that is a part of the latencies that one should know of.
fn lateness(shown: &RunFigures) -> String {
    let [_, lag, most] = shown.lag;
    let (part, from) = LAG_PART;
    if lag < LAG && (lag < from || lag < part * shown.latency[1]) {
        return String::new();
    }
    format!(" This machine was busy: latencies include up to {} of the load tester's own lateness.", milliseconds(most))
}

const MORE: &str = "Give it more threads (--threads), or use several machines and `seawall bench merge`.";
const MACHINES: &str = "Use several machines and `seawall bench merge`.";
pub(super) const APART: &str = "Run the load tester on another machine, so that the server has its cores to itself.";
const OTHERS: &str = "End what else runs on this machine, or run the load tester on another one.";

/// Returns the verdict of a run in which the server refused.
pub(super) fn refused(shown: &RunFigures) -> Option<Verdict> {
    // Gateways alone have answered: of the server behind them nothing was measured.
    if shown.good == 0 && shown.refused_with.iter().all(|status| matches!(status, 502 | 504)) && shown.unreachable == 0 {
        return None;
    }
    let refusals = shown.share(shown.refusals);
    let is_mixed = shown.failing().len() > 1;
    // Several kinds are told together: one of them alone would be the smaller part of the truth.
    let together = || format!("{} The server answered {}/s of the others.", shown.failures(), number(shown.good_rate));
    if refusals >= FAILED {
        let with: Vec<String> = shown.refused_with.iter().map(u16::to_string).collect();
        let reason = if is_mixed {
            together()
        } else {
            format!(
                "The server refused {} of the requests with {}, and answered {}/s of the others.",
                quantity::share(refusals),
                with.join(", "),
                number(shown.good_rate)
            )
        };
        let hint =
            if shown.open { FIND_LIMIT } else { "Take fewer clients (-c 5), or find the highest rate that it can do with --find-limit." };
        return Some(verdict(Limit::Server, false, reason, hint));
    }
    let unreachable = shown.share(shown.unreachable);
    if unreachable >= FAILED {
        let reason = if is_mixed {
            together()
        } else {
            format!("{} of the requests found their connection refused or reset by the server.", quantity::share(unreachable))
        };
        return Some(verdict(Limit::Server, false, reason, ""));
    }
    None
}

/// Returns the verdict of a run without one good answer, which says nothing about how fast the server is, nor who is at fault.
pub(super) fn nothing_good(shown: &RunFigures) -> Option<Verdict> {
    (shown.requests > 0 && shown.good == 0).then(|| {
        let reason = if shown.requests == 1 {
            "The only request was not answered without an error.".to_owned()
        } else {
            format!("None of the {} requests was answered without an error.", count(shown.requests))
        };
        verdict(Limit::Unknown, false, reason, "The failures above say why.")
    })
}

/// Returns the verdict of a run of so few requests, or so short a time, that they say nothing about anybody. The requests of an open schedule are as few as
/// it asked for.
pub(super) fn too_short(shown: &RunFigures) -> Option<Verdict> {
    let RunFigures { requests, duration, open, warm_up, missed, .. } = *shown;
    let [cold, warm] = SECONDS_MIN;
    let is_short = duration < if warm_up > 0.0 { warm } else { cold } || !open && requests < REQUESTS_MIN;
    let reason = match requests {
        0 if missed == 0 => "No request has ended.".to_owned(),
        1.. if is_short => {
            format!("Too short for a verdict: {} in {}.", counted(requests, "request"), milliseconds(duration * 1e3))
        }
        _ => return None,
    };
    Some(verdict(Limit::Unknown, false, reason, if open { "Run it longer." } else { "Use -d 10s." }))
}

/// Returns the verdict of an open schedule some of whose requests were never sent, or not answered in time.
pub(super) fn lost(shown: &RunFigures) -> Option<Verdict> {
    let (missed, timeouts) = (shown.share(shown.missed), shown.share(shown.timeouts));
    if !shown.open || missed.max(timeouts) < FAILED {
        return None;
    }
    let reason = if shown.failing().len() > 1 {
        shown.failures()
    } else if missed >= FAILED {
        format!(
            "{} of the requests that were due were never sent, because all connections waited for answers (of {}).",
            quantity::share(missed),
            counted(shown.clients.into(), "client")
        )
    } else {
        format!("{} of the requests were not answered in time.", quantity::share(timeouts))
    };
    Some(verdict(Limit::Server, false, reason, FIND_LIMIT))
}

/// Returns the verdict of an open schedule that asked for more than was answered.
pub(super) fn behind(shown: &RunFigures) -> Option<Verdict> {
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

/// Returns the verdict of an open schedule that was answered as it came.
pub(super) fn kept_up(shown: &RunFigures) -> Option<Verdict> {
    if !shown.open {
        return None;
    }
    let kept_up = if shown.good == shown.requests && shown.missed == 0 {
        format!("All {} requests were answered, as fast as the schedule asked", count(shown.requests))
    } else {
        "The server kept up with what it was asked".to_owned()
    };
    let [p50, p99] = shown.latency.map(milliseconds);
    let mut reason = format!("{kept_up}: {}/s, with a median of {p50} and a p99 of {p99}.", number(shown.rate));
    // Where they are many, they are told with all else that was not answered well.
    if shown.missed > 0 && shown.failed() < FAILED {
        let due = count(shown.requests + shown.missed);
        reason += &format!(" {} of the {due} requests that were due were never sent.", count(shown.missed));
    }
    reason += &lateness(shown);
    let hint = if shown.replay { "Replay the log faster (--speed)." } else { "Ask for more, or use --find-limit." };
    Some(verdict(Limit::Schedule, true, reason, hint))
}

/// Returns the verdict of one client that waits for each answer, and so asks no more than one request at a time.
pub(super) fn alone(shown: &RunFigures) -> Option<Verdict> {
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
pub(super) fn network(shown: &RunFigures) -> Option<Verdict> {
    let [p50, _] = shown.latency;
    // Where the server has used up the cores of this machine, each answer waits for them.
    if shown.open || p50 < ROUND_TRIP || shown.uses_up_cores() {
        return None;
    }
    let (clients, rate) = (count(shown.clients.into()), number(shown.rate));
    let sum =
        format!("{clients} clients, divided by a round trip of {}, are the {rate}/s that were measured.", milliseconds(shown.latency_mean));
    let reason = if shown.connect_min >= CONNECT * p50 {
        format!(
            "Even the quickest connection took {} to be made, and an answer {}. {sum}",
            milliseconds(shown.connect_min),
            milliseconds(p50)
        )
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

/// Returns the verdict of a run in which nothing but the server was at its end.
pub(super) fn server(shown: &RunFigures) -> Verdict {
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
        quantity::share(shown.idle)
    );
    verdict(Limit::Server, false, reason, "")
}
