//! Makes the run that was asked for: from the flags to a plan, and to what it found.

use std::{
    io::{self, IsTerminal as _},
    ops::ControlFlow,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use jiff::{Timestamp, Zoned};
use load::{
    Plan, Results, Schedule, Stop, Watch,
    compare::{start_at, wait},
    find_limit::{Bounds, PerSecond, Range, SearchResult, SearchWatch, Step, TriedRate, find_limit},
    output::{All, Format, Ink, Lines, Live, Progress, printable, quantity::seconds},
    results::Second,
    schedule::{Profile, Spacing},
};

use super::{connect, direct, flags::Flags, interrupt::Interrupt, shown, what::BenchTarget, written};
use crate::stderr;

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Failed {
    /// What was typed means nothing, or contradicts itself.
    Mistyped(String),
    /// It could not be done.
    Undone(anyhow::Error),
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self::Undone(error)
    }
}

/// Says that something was typed that means nothing.
pub(super) fn mistyped(error: impl ToString) -> Failed {
    Failed::Mistyped(error.to_string())
}

/// Says that something could not be done.
pub(super) fn undone(error: impl std::error::Error + Send + Sync + 'static) -> Failed {
    Failed::Undone(error.into())
}

/// A run that can begin.
pub(super) struct Ready {
    pub(super) plan: Plan,
    pub(super) what: BenchTarget,
    /// When the run begins, if that was said.
    start: Option<Timestamp>,
}

impl Ready {
    /// Makes everything ready for the run that the flags describe. `further` fields stand beside those that were typed.
    pub(super) fn of(flags: &Flags) -> Result<Self, Failed> {
        flags.agree().map_err(Failed::Mistyped)?;
        has_descriptors()?;
        // A bound that means nothing is told before the run, not after it.
        written::bounds(&flags.fail_if)?;
        let start = flags.start_at.as_deref().map(|text| start_at(text, &now())).transpose();
        let start = start.map_err(|error| Failed::Mistyped(format!("--start-at {error}")))?;
        let protocol = flags.protocol().map_err(Failed::Mistyped)?;
        let mut connections = flags.connections().map_err(Failed::Mistyped)?;
        let typed = if flags.find_limit { None } else { Some(flags.schedule().map_err(Failed::Mistyped)?) };
        let what = BenchTarget::find(flags, &connections)?;
        flags.fit(what.origins()).map_err(Failed::Mistyped)?;
        connections.addresses.clone_from(&what.addresses);
        let (mut schedule, stop) = match (&what.schedule, typed) {
            (Some(schedule), _) => (schedule.clone(), flags.stop(schedule)),
            (None, Some(typed)) => typed,
            // Replaced by each step of the search.
            (None, None) => {
                let rate = Profile::constant(1.0, Some(Duration::from_secs(1)));
                (Schedule::Rate { rate, spacing: Spacing::Even, clients: 1 }, Stop::default())
            }
        };
        if let (Some(cap), Schedule::Rate { clients, .. }, None) = (what.cap, &mut schedule, flags.clients) {
            *clients = cap.clients.min(*clients);
        }
        what.allows(&schedule)?;
        let workers = if flags.find_limit { flags.threads_typed() } else { flags.workers(&schedule) }.map_err(Failed::Mistyped)?;
        let requests = Arc::new(what.set(&[])?);
        let warm_up = flags.warm_up.unwrap_or(Duration::ZERO);
        let plan = Plan {
            requests,
            schedule,
            protocol,
            stop,
            connections,
            timeout: flags.patience(),
            warm_up,
            workers,
            seed: flags.seed(),
            cap: what.cap,
        };
        Ok(Self { plan, what, start })
    }

    /// Has requests go past the cache.
    pub(super) fn go_direct(&mut self, flags: &Flags) -> Result<(), Failed> {
        let Plan { stop, schedule, warm_up, .. } = &self.plan;
        let wait = self.start.and_then(|start| Duration::try_from(start.duration_since(now().timestamp())).ok()).unwrap_or_default();
        let seconds = direct::seconds(*stop, schedule.end(), *warm_up + wait).map_err(Failed::Mistyped)?;
        let field = direct::field(&flags.access, seconds)?;
        self.plan.requests = Arc::new(self.what.set(&[field])?);
        // One request shows whether this is the Seawall that knows the field: others are not loaded with it.
        let first = Plan {
            schedule: Schedule::Closed { clients: Profile::constant(1.0, None) },
            stop: Stop { requests: Some(1), after: None },
            warm_up: Duration::ZERO,
            workers: 1,
            ..self.plan.clone()
        };
        let found = load::run(&first, &mut ()).map_err(undone)?;
        direct::went_past(&found).map_err(|why| Failed::Undone(anyhow::Error::msg(why)))?;
        Ok(())
    }

    /// Waits for the beginning of the run, if it was said when that is. Returns whether it has come.
    fn begins(&self, watch: &mut dyn Watch) -> bool {
        self.start.is_none_or(|start| wait(start, &|| now().timestamp(), watch))
    }

    /// Looks whether the servers can be reached, and tells what was found about what is asked.
    pub(super) fn look(&self, flags: &Flags) -> Result<(), Failed> {
        if flags.quiet {
            return Ok(());
        }
        self.what.remarks.iter().for_each(|remark| note(remark));
        connect::reachable(&self.plan).map_err(|why| Failed::Undone(anyhow::Error::msg(why)))
    }
}

/// The descriptors that a run needs before its first connection: with fewer, something or other fails, and its message names no limit.
const DESCRIPTORS_MIN: u64 = 32;

/// Raises the limit of descriptors as far as the system allows it, and looks whether a run can begin with that.
fn has_descriptors() -> Result<(), Failed> {
    let limit = load::engine::raise_limit();
    if limit >= DESCRIPTORS_MIN {
        return Ok(());
    }
    Err(Failed::Undone(anyhow::anyhow!(
        "this system allows seawall bench only {limit} open files, and each connection is one: allow more with `ulimit -n 1024` (as root, or with \
         LimitNOFILE= of a service)"
    )))
}

#[expect(clippy::disallowed_methods, reason = "several machines begin at a time of day")]
fn now() -> Zoned {
    Zoned::now()
}

/// Says something beside the result.
pub(super) fn note(text: &str) {
    stderr::tell(tracing::Level::INFO, &format!("{text}\n"));
}

/// Makes a run, and writes what it found.
pub(super) fn once(flags: &Flags) -> Result<ExitCode, Failed> {
    let format = written::format(flags.format.as_deref(), &Format::ALL)?;
    written::writable(flags)?;
    let mut ready = Ready::of(flags)?;
    if flags.direct {
        ready.go_direct(flags)?;
    }
    ready.look(flags)?;
    let interrupt = Interrupt::listen().context("no thread for Ctrl-C")?;
    let (mut stops, mut must_bypass) = (interrupt, direct::MustBypass::default());
    if !ready.begins(&mut stops) {
        return Ok(ExitCode::FAILURE);
    }
    let mut lines = format.lines().map(|form| Lines::new(form, io::stdout()));
    let mut view = view(flags, &ready.plan, format);
    let mut watches: Vec<&mut dyn Watch> = vec![&mut stops];
    if flags.direct {
        watches.push(&mut must_bypass);
    }
    if let Some(lines) = &mut lines {
        watches.push(lines);
    }
    if let Some(view) = &mut view {
        watches.push(view.as_mut());
    }
    let mut results = load::run(&ready.plan, &mut All(watches)).map_err(undone)?;
    // What follows stands in its place.
    drop(view);
    shown::describe(&mut results.run);
    if flags.direct
        && let Some(remark) = direct::went_past(&results).map_err(|why| Failed::Undone(anyhow::Error::msg(why)))?
    {
        note(&remark);
    }
    // Each is done, whatever becomes of the others: what was measured is there only once.
    let filed = written::files(flags, &results);
    let printed = match lines {
        Some(lines) => lines.finish(&results).context("standard output cannot be written"),
        None => written::result(format, &results),
    };
    remark_on(flags, &ready, &results);
    let code = written::code(flags, &results);
    filed.and(printed)?;
    code
}

/// Shows a run while it goes on: on a terminal as a picture, elsewhere as a line now and then.
#[expect(clippy::disallowed_methods, reason = "a view of the run is drawn over itself, and is not a message")]
fn view(flags: &Flags, plan: &Plan, format: Format) -> Option<Box<dyn Watch>> {
    if flags.quiet {
        return None;
    }
    let draws = io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    // Lines on a terminal are a view already.
    if draws && !(format.lines().is_some() && io::stdout().is_terminal()) {
        return Some(Box::new(Live::new(plan, io::stderr(), Ink::for_terminal(true))));
    }
    Some(Box::new(Progress::new(io::stderr())))
}

/// Says that a run has certainly measured no page, if that is so, and returns whether it has said it.
pub(super) fn remark_on(flags: &Flags, ready: &Ready, results: &Results) -> bool {
    if flags.quiet || flags.expect_status.is_some() || results.answered == 0 {
        return false;
    }
    let is_of_a_gateway = |status: &u16| matches!(status, 502..=504);
    let all_are = |range: std::ops::Range<u16>| results.statuses.keys().all(|status| range.contains(status));
    if all_are(300..400) && !results.statuses.contains_key(&304) {
        let fetched = ready.what.look(&ready.plan.connections, &ready.plan.requests);
        let location = fetched.and_then(|fetched| fetched.field("location").map(|to| String::from_utf8_lossy(to).into_owned()));
        let to = location.map(|to| format!(" to {}", printable(&to))).unwrap_or_default();
        note(&format!("note: every answer is a redirect{to}: load the address that it leads to."));
        true
    } else if all_are(400..600) {
        let statuses: Vec<String> = results.statuses.keys().map(ToString::to_string).collect();
        let why = if results.statuses.keys().all(is_of_a_gateway) {
            "the server behind this one does not answer, or not well. If this one is a Seawall, `seawall status` says more"
        } else {
            "is the address right?"
        };
        note(&format!("note: every answer is an error ({}): {why}", statuses.join(", ")));
        true
    } else {
        false
    }
}

/// Finds the highest rate that the server keeps up with.
pub(super) fn limit(flags: &Flags) -> Result<ExitCode, Failed> {
    let format = written::format(flags.format.as_deref(), &[Format::Text, Format::Json])?;
    written::writable(flags)?;
    let mut ready = Ready::of(flags)?;
    let range = Range::default();
    let hold = flags.hold.unwrap_or(range.hold);
    if flags.direct {
        // The search takes less than two minutes beside the hold.
        ready.plan.stop.after = Some(hold + Duration::from_mins(5));
        ready.go_direct(flags)?;
    }
    ready.look(flags)?;
    let defaults = Bounds::default();
    let bounds = Bounds { p99: flags.limit_p99.unwrap_or(defaults.p99), errors: flags.limit_errors.unwrap_or(defaults.errors) };
    let most = ready.what.cap.map_or(range.most, |cap| f64::from(cap.rate));
    let range = Range { hold, most, ..range };
    let spacing = if flags.poisson { Spacing::Poisson } else { Spacing::Even };
    let mut watch = Steps { interrupt: Interrupt::listen().context("no thread for Ctrl-C")?, quiet: flags.quiet };
    if !flags.quiet {
        let [search, hold] = [range.search_time(), range.hold].map(|time| seconds(time.as_secs_f64()));
        note(&format!("Searching for the highest rate: this takes up to {search}, and then it is held for {hold}."));
    }
    let (found, held) = find_limit(&ready.plan, spacing, bounds, range, &mut watch).map_err(undone)?;
    let held = held.map(|mut held| {
        shown::describe(&mut held.run);
        held
    });
    let filed = held.as_ref().map_or(Ok(()), |held| written::files(flags, held));
    if held.is_none() {
        written::nothing_held(flags);
    }
    let printed = written::found(format, &found, held.as_ref());
    let code = held.as_ref().map_or_else(|| Ok(found_code(&found)), |held| written::code(flags, held));
    filed.and(printed)?;
    code
}

fn found_code(found: &SearchResult) -> ExitCode {
    if found.rate.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Shows the steps of a search on standard error.
struct Steps {
    interrupt: Interrupt,
    quiet: bool,
}

impl Watch for Steps {
    fn second(&mut self, second: &Second) -> ControlFlow<()> {
        self.interrupt.second(second)
    }

    fn stops(&mut self) -> bool {
        self.interrupt.stops()
    }
}

impl SearchWatch for Steps {
    fn step(&mut self, step: &Step) {
        if !self.quiet {
            // The other steps are told with their outcome.
            if step.is_hold {
                note(&format!("holding {} for {}", PerSecond(step.rate), seconds(step.time.as_secs_f64())));
            }
        }
    }

    fn tried(&mut self, tried: &TriedRate, again: bool) {
        if !self.quiet {
            note(&format!("{tried}{}", if again { "; again" } else { "" }));
        }
    }
}
