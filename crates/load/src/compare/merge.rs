//! Adds results: of machines that loaded one server together, or of rounds that followed each other.
//!
//! Distributions are added as such, never their percentiles: the sum is what one machine would have found that had made all the requests.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use crate::{
    Results,
    output::quantity::{count, seconds},
    record::Tally,
    results::{Limit, NotEncoded, Run, Second, Times, Verdict},
};

/// The longest time between the beginnings of two machines, in seconds. Their clocks differ a little, and whole seconds are noted.
const APART_MAX: f64 = 5.0;

/// The time between the beginnings of two runs that is allowed however short they are, in seconds: the beginning is noted in whole seconds.
const OVERLAP_SURE: f64 = 1.0;

/// The reason why results cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There are none.
    #[error("there is nothing to add")]
    Nothing,
    /// A result has no distributions, or they cannot be read. The number counts from 1.
    #[error("result {0} cannot be added, because its distributions are not in it, or not readable")]
    Distributions(usize),
    /// Results are of different things. The number counts from 1.
    #[error("result {number} is of something else than the first: {what} is {other:?}, not {first:?}")]
    Different {
        /// The number of the result.
        number: usize,
        /// The name of what differs.
        what: &'static str,
        /// The value in the first result.
        first: String,
        /// The value in the other result.
        other: String,
    },
    /// A result is there twice. The numbers count from 1.
    #[error("result {1} is the same as result {0}: add each machine's own")]
    Twice(usize, usize),
    /// Machines did not load the server together, or hardly. The number counts from 1.
    #[error(
        "these runs did not overlap: result {number} began {apart} from the first, and the shorter one took {took}. Begin them together with --start-at"
    )]
    NoOverlap {
        /// The number of the result.
        number: usize,
        /// The time between their beginnings.
        apart: String,
        /// The time that the shorter run took.
        took: String,
    },
    /// Machines began at different times. The number counts from 1.
    #[error("result {0} began {1} from the first, so their rates were not there together: begin them together with --start-at")]
    Apart(usize, String),
}

/// Adds the results of machines that loaded one server at the same time.
///
/// # Errors
/// When they are of different things or times, or have no distributions.
pub fn merge(results: &[Results]) -> Result<Results, MergeError> {
    let first = results.first().ok_or(MergeError::Nothing)?;
    for (other, number) in results.iter().zip(1..).skip(1) {
        if let Some(same) = results[..number - 1].iter().position(|before| before == other) {
            return Err(MergeError::Twice(same + 1, number));
        }
        let differ = |what, of: fn(&Run) -> String| {
            let (first, other) = (of(&first.run), of(&other.run));
            if first == other { Ok(()) } else { Err(MergeError::Different { number, what, first, other }) }
        };
        differ("the URL", |run| format!("{} ({} in all)", run.urls.join(" "), count(run.urls_count)))?;
        differ("the protocol", |run| run.protocol.clone())?;
        differ("the kind of schedule", |run| format!("{:?}", run.kind).to_lowercase())?;
        differ("the warm-up", |run| seconds(run.warm_up))?;
        if let (Ok(one), Ok(two)) = (first.run.began.parse::<Timestamp>(), other.run.began.parse::<Timestamp>()) {
            let apart = two.duration_since(one).abs().as_secs_f64();
            let took = |result: &Results| result.run.warm_up + result.duration;
            let took = took(first).min(took(other));
            if apart > OVERLAP_SURE && apart > took / 2.0 {
                return Err(MergeError::NoOverlap { number, apart: seconds(apart), took: seconds(took) });
            }
            if apart > APART_MAX {
                return Err(MergeError::Apart(number, seconds(apart)));
            }
        }
    }
    let tally = add(results).map_err(|(number, _)| MergeError::Distributions(number))?;
    let mut rows = BTreeMap::<u64, Second>::new();
    for (result, number) in results.iter().zip(1..) {
        for row in &result.seconds {
            let sum = rows.entry(row.second).or_insert_with(|| Second { second: row.second, ..Second::default() });
            add_row(sum, row).map_err(|_| MergeError::Distributions(number))?;
        }
    }
    let duration = results.iter().map(|result| result.duration).fold(0.0, f64::max);
    let run = Run {
        command: joined(results, |run| &run.command),
        schedule: joined(results, |run| &run.schedule),
        clients: results.iter().map(|result| result.run.clients).sum(),
        requests: results.iter().map(|result| result.run.requests).sum(),
        workers: results.iter().map(|result| result.run.workers).sum(),
        ..first.run.clone()
    };
    let mut sum = Results::new(run, Duration::from_secs_f64(duration), &tally, rows.into_values().collect(), together(results));
    own(&mut sum, results, true);
    Ok(sum)
}

/// Adds the results of rounds that followed each other. Each becomes a row.
pub(super) fn one_after_another(results: &[Results]) -> Result<Results, NotEncoded> {
    let mut tally = add(results).map_err(|(_, error)| error)?;
    let clients = results.iter().map(|result| result.clients).max().unwrap_or_default();
    tally.clients = clients;
    let rows = (0..).zip(results).map(|(second, result)| Second {
        second,
        length: result.duration,
        requests: result.requests,
        answered: result.answered,
        errors: result.errors.iter().filter(|(_, count)| **count > 0).map(|(class, count)| (*class, *count)).collect(),
        bytes: result.bytes,
        connections: result.connect.count,
        clients: result.clients,
        latency: result.latency,
        cache: result.cache.iter().map(|(outcome, part)| (*outcome, part.requests)).collect(),
        histogram: result.histograms.latency.clone(),
    });
    let duration: f64 = results.iter().map(|result| result.duration).sum();
    let run = results.first().map(|result| result.run.clone()).unwrap_or_default();
    let mut sum = Results::new(run, Duration::from_secs_f64(duration), &tally, rows.collect(), usual(results));
    sum.warm_up.seconds = results.iter().map(|result| result.warm_up.seconds).sum();
    own(&mut sum, results, false);
    Ok(sum)
}

/// Adds all counts and distributions. An error has the number of the result, from 1.
fn add(results: &[Results]) -> Result<Tally, (usize, NotEncoded)> {
    let mut sum = Tally::new();
    for (result, number) in results.iter().zip(1..) {
        if result.histograms.latency.is_empty() && result.latency.count > 0 {
            return Err((number, NotEncoded));
        }
        sum.add(&result.tally().map_err(|error| (number, error))?);
    }
    Ok(sum)
}

fn add_row(sum: &mut Second, row: &Second) -> Result<(), NotEncoded> {
    let mut latency = Tally::of_a_second().latency;
    sum.histogram.add_to(&mut latency)?;
    row.histogram.add_to(&mut latency)?;
    sum.length = sum.length.max(row.length);
    sum.requests += row.requests;
    sum.answered += row.answered;
    sum.bytes += row.bytes;
    sum.connections += row.connections;
    sum.clients += row.clients;
    for (class, count) in &row.errors {
        *sum.errors.entry(*class).or_default() += count;
    }
    for (outcome, count) in &row.cache {
        *sum.cache.entry(*outcome).or_default() += count;
    }
    sum.latency = Times::from(&latency);
    sum.histogram = (&latency).into();
    Ok(())
}

/// Adds what the load testers themselves were and needed.
fn own(sum: &mut Results, results: &[Results], beside: bool) {
    let Some(first) = results.first() else { return };
    sum.machine = first.machine.clone();
    sum.ended_early = results.iter().any(|result| result.ended_early.is_some()).then_some(sum.duration);
    sum.leaks = results.iter().flat_map(|result| result.leaks.iter().cloned()).collect();
    let mut own = first.generator;
    for other in results.iter().skip(1).map(|result| result.generator) {
        own.cpu_seconds += other.cpu_seconds;
        own.busiest_worker = own.busiest_worker.max(other.busiest_worker);
        own.waiting_worker = own.waiting_worker.max(other.waiting_worker);
        own.memory_max = if beside { own.memory_max + other.memory_max } else { own.memory_max.max(other.memory_max) };
        own.steal = own.steal.max(other.steal);
        own.clock_jump = if own.clock_jump.abs() > other.clock_jump.abs() { own.clock_jump } else { other.clock_jump };
        own.descriptors_max = own.descriptors_max.min(other.descriptors_max);
        own.descriptors_exhausted += other.descriptors_exhausted;
        own.ports_exhausted += other.ports_exhausted;
        own.resent += other.resent;
    }
    own.cpu_us_per_request = own.cpu_seconds * 1e6 / (sum.requests + sum.warm_up.requests).max(1) as f64;
    sum.generator = own;
}

/// Joins the texts of all runs, each once.
fn joined(results: &[Results], of: fn(&Run) -> &String) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for text in results.iter().map(|result| of(&result.run).as_str()).filter(|text| !text.is_empty()) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let machines = if results.len() > 1 && texts.len() == 1 { format!(", on each of {} machines", results.len()) } else { String::new() };
    texts.join("; ") + &machines
}

/// Returns which limit matters more, where machines have found different ones: what spoils the figure comes first.
const fn weight(limit: Limit) -> u8 {
    match limit {
        Limit::Machine => 6,
        Limit::PortsOrDescriptors => 5,
        Limit::Generator => 4,
        Limit::Server => 3,
        Limit::Network => 2,
        Limit::Schedule => 1,
        Limit::Unknown => 0,
    }
}

/// Returns the verdict of machines beside each other.
fn together(results: &[Results]) -> Verdict {
    let worst = results.iter().zip(1..).max_by_key(|(result, number)| (weight(result.verdict.limit), std::cmp::Reverse(*number)));
    let Some((worst, number)) = worst else { return none() };
    let mut verdict = worst.verdict.clone();
    verdict.at_least = results.iter().any(|result| result.verdict.at_least);
    if results.len() > 1 {
        verdict.reason = format!("Machine {number} of {}: {}", results.len(), verdict.reason);
    }
    verdict
}

/// Returns the verdict that most rounds have.
fn usual(results: &[Results]) -> Verdict {
    let votes = |limit| results.iter().filter(|result| result.verdict.limit == limit).count();
    let usual = results.iter().max_by_key(|result| (votes(result.verdict.limit), weight(result.verdict.limit)));
    usual.map_or_else(none, |result| result.verdict.clone())
}

fn none() -> Verdict {
    Verdict { limit: Limit::Schedule, at_least: true, reason: "Nothing was run.".to_owned(), hint: None }
}
