//! Decides which rate is tried next: no clock, no connection, only what was seen so far.
//!
//! The rate grows by steps of a second until a step is beyond the bounds twice in a row. From there on the limit is known to lie between two rates.
//! What the server still answered well in the step beyond is the best guess of it: that rate is tried, or else the middle. At last the highest
//! good rate is held for a minute. A server that lives on its reserves for some seconds (tokens saved up, a queue that fills) fails there, and the
//! next lower rate is held.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Beyond, Bounds, Excess, SearchResult, Step, StepResult, TriedRate};
use crate::schedule::Spacing;

/// The factor from one step of the approach to the next: the server is never asked for more than this above what it did well.
const GROWTH: f64 = 1.6;

/// The length of a step while the rate grows.
const APPROACH: Duration = Duration::from_secs(1);

/// The length of the step that confirms an excess. Reserves are used up then, so what is answered well is what the server can do.
const CONFIRM: Duration = Duration::from_secs(2);

/// The length of a step between a good rate and one beyond the bounds.
const NARROW: Duration = Duration::from_secs(3);

/// The most of these steps.
const NARROW_MAX: u32 = 7;

/// Two rates whose ratio is this or less are not told apart.
const RESOLUTION: f64 = 1.04;

/// The part of what an overloaded server does well that it is asked for next.
const SAFE: f64 = 0.97;

/// The most rates that are held.
const HOLDS_MAX: u32 = 4;

/// The factor by which a last rate that is tried is higher than the rate that was found: more than reserves allow that came back during the
/// step before. If it is good, what was beyond before was chance, and the search goes on upwards.
const CHECK: f64 = 1.1;

/// The factor to the next lower rate when one could not be held, and nothing says what could be.
const LOWER: f64 = 0.98;

/// The number of times that the search may go on upwards.
const UPWARDS_MAX: u32 = 2;

/// The number of times that a step is repeated because the load tester itself stalled in it.
const REPEATS_MAX: u32 = 4;

/// The longest pause in which a queue may drain.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// The lowest rate that is tried.
const RATE_MIN: f64 = 1.0;

/// The rates that a search tries, and how long it holds the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The rate that is tried first.
    pub from: f64,
    /// The highest rate that may be asked for.
    pub most: f64,
    /// The time for which the limit is held.
    pub hold: Duration,
}

impl Default for Range {
    fn default() -> Self {
        Self { from: 20.0, most: crate::schedule::RATE_MAX, hold: Duration::from_secs(60) }
    }
}

impl Range {
    /// Returns the time that a search takes at most, about, before the limit is held.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a logarithm of a rate is small, and not negative")]
    pub fn search_time(&self) -> Duration {
        let approach = (self.most / self.from).max(1.0).log(GROWTH).ceil() as u32 + 1;
        APPROACH * approach + CONFIRM + NARROW * (NARROW_MAX + 2 * UPWARDS_MAX)
    }
}

/// Says what comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// A rate to be tried.
    Step(Step),
    /// The end.
    Done(SearchResult),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    Approach,
    Confirm,
    Narrow,
    Check,
    Again,
    Hold,
}

/// A search for the highest rate within bounds.
#[derive(Debug, Clone)]
pub struct Search {
    bounds: Bounds,
    range: Range,
    spacing: Spacing,
    phase: Phase,
    rate: f64,
    /// Rates within the bounds, growing, and whether the step was long enough to be believed.
    good: Vec<(f64, bool)>,
    /// The lowest rate beyond.
    beyond: Option<(f64, StepResult)>,
    /// The rate that the server can do, as steps beyond the bounds have shown.
    guess: Option<f64>,
    narrowed: u32,
    upwards: u32,
    repeats: u32,
    holds: u32,
    tried: Vec<TriedRate>,
}

impl Search {
    /// Makes a search that has tried nothing. Requests that come at equal distances vary less in number than those of strangers.
    #[must_use]
    pub fn new(bounds: Bounds, range: Range, spacing: Spacing) -> Self {
        let rate = range.from.clamp(RATE_MIN, range.most.max(RATE_MIN));
        Self {
            bounds,
            range,
            spacing,
            phase: Phase::Approach,
            rate,
            good: Vec::new(),
            beyond: None,
            guess: None,
            narrowed: 0,
            upwards: 0,
            repeats: 0,
            holds: 0,
            tried: Vec::new(),
        }
    }

    /// Takes what the last step has shown, and says what comes next. Before the first step there is nothing to take.
    pub fn next(&mut self, last: Option<&StepResult>) -> Next {
        let Some(seen) = last else { return self.step(Phase::Approach, self.rate, Duration::ZERO) };
        let behind = (matches!(self.phase, Phase::Narrow | Phase::Check | Phase::Again) && seen.is_behind(self.rate, self.spacing))
            .then(|| seen.behind());
        let excess = self.bounds_of_step(seen).excess(seen).or(behind);
        self.tried.push(TriedRate { rate: self.rate, seconds: self.length(self.phase).as_secs_f64(), seen: seen.clone(), excess });
        match excess {
            // At a low rate, a step is too short for what waits to be slow. One that is to overthrow what was found before must be answered at once.
            None if self.phase == Phase::Check && seen.well < self.rate * 0.98 => self.beyond(seen),
            None => self.within(),
            Some(_) => self.beyond(seen),
        }
    }

    fn within(&mut self) -> Next {
        let rate = self.rate;
        if self.phase == Phase::Hold {
            return Next::Done(self.done(Some(rate), true));
        }
        self.good.retain(|(good, _)| *good < rate);
        self.good.push((rate, matches!(self.phase, Phase::Narrow | Phase::Check | Phase::Again)));
        if let (Phase::Check, Some((beyond, _))) = (self.phase, &self.beyond) {
            // It does more than what it seemed to be able to do. Was the excess chance?
            self.upwards += 1;
            return self.step(Phase::Again, *beyond, Duration::ZERO);
        }
        if self.phase == Phase::Again {
            self.beyond = None;
            self.guess = None;
        }
        if self.beyond.is_some() {
            return self.narrow(Duration::ZERO);
        }
        if rate >= self.range.most {
            return self.step(Phase::Hold, rate, Duration::ZERO);
        }
        self.step(Phase::Approach, (rate * GROWTH).min(self.range.most), Duration::ZERO)
    }

    fn beyond(&mut self, seen: &StepResult) -> Next {
        let (rate, pause) = (self.rate, self.drain(seen));
        // What waited in the load tester left all at once, and no server was to be asked that. A hold is long: it is repeated only if nothing else
        // explains the excess.
        if seen.stalled && self.repeats < REPEATS_MAX && (self.phase != Phase::Hold || guess(rate, seen).is_none()) {
            self.repeats += 1;
            return self.step(self.phase, rate, pause);
        }
        if self.phase == Phase::Approach {
            return self.step(Phase::Confirm, rate, pause);
        }
        self.good.retain(|(good, _)| *good < rate);
        self.beyond = Some((rate, seen.clone()));
        self.guess = guess(rate, seen).or(self.guess);
        if let (Phase::Check, Some((low, _))) = (self.phase, self.good.last().copied()) {
            return self.step(Phase::Hold, low, pause);
        }
        if self.phase == Phase::Hold {
            self.holds += 1;
            if self.holds == HOLDS_MAX {
                let rate = self.good.last().map(|good| good.0);
                return Next::Done(self.done(rate, false));
            }
            let lower = self.guess.filter(|guess| *guess < rate * LOWER).unwrap_or(rate * LOWER);
            return if lower < RATE_MIN { Next::Done(self.done(None, false)) } else { self.step(Phase::Hold, lower, pause) };
        }
        self.narrow(pause)
    }

    /// Chooses a rate between the highest good one and the lowest beyond, or holds the highest good one.
    fn narrow(&mut self, pause: Duration) -> Next {
        let (high, _) = self.beyond.as_ref().expect("a search narrows after a step beyond the bounds");
        let high = *high;
        // A guess that is no longer below what is known to be too much was wrong: the latency exceeds its bound before the capacity is reached.
        let guess = self.guess.filter(|guess| *guess < high * 0.99);
        let Some((low, believed)) = self.good.last().copied() else {
            let lower = guess.unwrap_or(high / 2.0).min(high / RESOLUTION);
            return if lower < RATE_MIN { Next::Done(self.done(None, false)) } else { self.narrower(lower, pause) };
        };
        if self.narrowed == NARROW_MAX || high / low <= RESOLUTION {
            return self.step(Phase::Hold, low, pause);
        }
        match guess {
            // The short step before may have lived on reserves that are gone now.
            Some(guess) if guess < low && !believed => self.narrower(low, pause),
            Some(guess) if guess <= low * 1.01 && self.upwards < UPWARDS_MAX && low * CHECK < high => {
                self.step(Phase::Check, low * CHECK, pause)
            }
            Some(guess) if guess <= low * 1.01 => self.step(Phase::Hold, low, pause),
            Some(guess) => self.narrower(guess, pause),
            None => self.narrower((low * high).sqrt(), pause),
        }
    }

    fn narrower(&mut self, rate: f64, pause: Duration) -> Next {
        self.narrowed += 1;
        self.step(Phase::Narrow, rate, pause)
    }

    fn step(&mut self, phase: Phase, rate: f64, pause: Duration) -> Next {
        self.phase = phase;
        self.rate = rate;
        Next::Step(Step { rate, time: self.length(phase), pause, is_hold: phase == Phase::Hold })
    }

    const fn length(&self, phase: Phase) -> Duration {
        match phase {
            Phase::Approach => APPROACH,
            Phase::Confirm => CONFIRM,
            Phase::Narrow | Phase::Check | Phase::Again => NARROW,
            Phase::Hold => self.range.hold,
        }
    }

    /// Returns how long the server needs for what it has not answered yet. Requests that it refused are not a queue.
    fn drain(&self, seen: &StepResult) -> Duration {
        if seen.p99 <= self.bounds.p99 || seen.well <= 0.0 {
            return Duration::ZERO;
        }
        let waiting = (self.rate - seen.well).max(0.0) * seen.seconds;
        Duration::from_secs_f64((waiting / seen.well).min(DRAIN_MAX.as_secs_f64()))
    }

    /// Returns the bounds for a step. Where some requests may fail, one more may in a short step: of 600 requests one is more than a share of 0.001, and
    /// says nothing of the rate. A server that has just been asked for too much has no reserve for the first request of the next step.
    fn bounds_of_step(&self, seen: &StepResult) -> Bounds {
        let is_short = self.phase != Phase::Hold && self.bounds.errors > 0.0 && seen.requests > 0;
        let chance = if is_short { 1.0 / seen.requests as f64 } else { 0.0 };
        Bounds { errors: self.bounds.errors + chance, ..self.bounds }
    }

    /// Returns all rates that were tried so far.
    #[must_use]
    pub fn tried(&self) -> &[TriedRate] {
        &self.tried
    }

    /// Ends the search before its end.
    pub fn stop(&mut self) -> SearchResult {
        let rate = self.good.last().map(|good| good.0);
        let found = self.done(rate, false);
        SearchResult { ended_early: true, at_least: found.at_least && rate.is_some(), ..found }
    }

    fn done(&mut self, rate: Option<f64>, held: bool) -> SearchResult {
        let beyond = self.beyond.take();
        let beyond = beyond.map(|(rate, seen)| Beyond { rate, excess: self.bounds.excess(&seen).unwrap_or_else(|| seen.behind()) });
        let at_least = beyond.is_none_or(|beyond| beyond.excess == Excess::Generator);
        SearchResult {
            rate,
            held: held.then_some(self.range.hold.as_secs_f64()),
            at_least,
            ended_early: false,
            bounds: self.bounds,
            beyond,
            tried: std::mem::take(&mut self.tried),
        }
    }
}

/// Returns the rate that a server seems to be able to do, if it did clearly less than `asked`.
fn guess(asked: f64, seen: &StepResult) -> Option<f64> {
    (seen.well > 0.0 && seen.well < asked * 0.97).then_some(seen.well * SAFE)
}

impl Bounds {
    /// Returns which bound a step exceeds. Where the load tester was slow, the latency is its own; a step that is within the bounds all the same is good.
    #[must_use]
    pub fn excess(&self, seen: &StepResult) -> Option<Excess> {
        if seen.requests == 0 {
            Some(Excess::Errors(1.0))
        } else if seen.failed > self.errors {
            Some(Excess::Errors(seen.failed))
        } else if seen.p99 > self.p99 {
            Some(if seen.generator { Excess::Generator } else { Excess::P99(seen.p99.as_secs_f64() * 1e3) })
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::{
        Results,
        answer::Outcome,
        find_limit::Hopeless,
        record::{ErrorClass, Recorder, Sample},
        results::{Limit, Run, Second, Verdict},
    };

    /// A server on a simulated clock.
    trait Server {
        /// Returns the moment at which a request of `at` is answered, and whether it is answered well.
        fn answer(&mut self, at: f64) -> (f64, bool);
    }

    /// Answers as long as there are tokens, and refuses the others with 429.
    struct Refusing {
        rate: f64,
        burst: f64,
        tokens: f64,
        last: f64,
    }

    impl Server for Refusing {
        fn answer(&mut self, at: f64) -> (f64, bool) {
            self.tokens = (self.tokens + (at - self.last) * self.rate).min(self.burst);
            self.last = at;
            let has = self.tokens >= 1.0;
            if has {
                self.tokens -= 1.0;
            }
            (at + 0.001, has)
        }
    }

    /// Answers one request after the other, each in its time, after a reserve of `burst` requests at once.
    struct Delaying<F: FnMut() -> f64> {
        service: F,
        free: f64,
        /// The time for which the server can be ahead.
        reserve: f64,
    }

    impl<F: FnMut() -> f64> Server for Delaying<F> {
        fn answer(&mut self, at: f64) -> (f64, bool) {
            self.free = self.free.max(at - self.reserve) + (self.service)();
            (self.free.max(at) + 0.001, true)
        }
    }

    /// Makes the requests of a step that begins at `clock`. Returns what they lead to, and when the last was answered.
    fn ask(server: &mut impl Server, step: &Step, clock: f64, noise: &mut impl FnMut() -> f64, bounds: Bounds) -> (StepResult, f64) {
        let (sender, rows) = mpsc::sync_channel(1000);
        let mut recorder = Recorder::new(0, Duration::ZERO, sender);
        let mut hopeless = Hopeless::new(step, bounds);
        let mut seconds = Vec::new();
        let (mut n, mut ended, mut waiting) = (0.0, step.time.as_secs_f64(), Vec::new());
        let ends = (1..).map(f64::from).take_while(|second| *second <= step.time.as_secs_f64()).chain([f64::INFINITY]);
        for second in ends {
            while n / step.rate < second.min(step.time.as_secs_f64()) {
                let at = n / step.rate;
                let (answered, good) = server.answer(clock + at);
                waiting.push((answered + noise() - clock, at, good));
                n += 1.0;
            }
            waiting.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
            for (answered, at, good) in waiting.extract_if(.., |(answered, ..)| *answered < second) {
                ended = answered.max(ended);
                let intended = Duration::from_secs_f64(at);
                recorder.ended(&Sample {
                    intended,
                    sent: intended,
                    first_byte: None,
                    ended: Duration::from_secs_f64(answered),
                    status: if good { 200 } else { 429 },
                    bytes: 1,
                    outcome: Outcome::Unknown,
                    origin_reached: None,
                    page: None,
                    error: (!good).then_some(ErrorClass::Status),
                });
            }
            if second.is_finite() {
                recorder.tick(Duration::from_secs_f64(second));
            }
            for row in rows.try_iter() {
                seconds.push(Second::new(row.second, row.length, &row.tally));
                hopeless.after(seconds.last().expect("just there"));
            }
            if hopeless.is_so && second.is_finite() {
                ended = second;
                break;
            }
        }
        let ended = clock + ended;
        let duration = Duration::from_secs_f64(ended - clock);
        let tally = recorder.finish(duration);
        seconds.extend(rows.try_iter().map(|row| Second::new(row.second, row.length, &row.tally)));
        let verdict = Verdict { limit: Limit::Server, at_least: false, reason: String::new(), hint: None };
        let seen = StepResult::new(step, &Results::new(Run::default(), duration, &tally, seconds, verdict));
        (hopeless.judge(seen), ended)
    }

    /// Runs a search against a server. Returns what it found, and how many seconds that took.
    fn search(server: &mut impl Server, bounds: Bounds, mut noise: impl FnMut() -> f64) -> (SearchResult, f64) {
        let mut search = Search::new(bounds, Range::default(), Spacing::Even);
        let (mut clock, mut last) = (0.0, None);
        loop {
            let step = match search.next(last.as_ref()) {
                Next::Done(found) => return (found, clock),
                Next::Step(step) => step,
            };
            clock += step.pause.as_secs_f64();
            let (seen, ended) = ask(server, &step, clock, &mut noise, bounds);
            // Threads and connections take their time, too.
            clock = ended + 0.1;
            last = Some(seen);
        }
    }

    fn story(found: &SearchResult) -> String {
        let line =
            |tried: &TriedRate| format!("\n{:.0}/s for {} s: {:?}, {:.0}/s well", tried.rate, tried.seconds, tried.excess, tried.seen.well);
        found.tried.iter().map(line).collect()
    }

    fn quiet() -> f64 {
        0.0
    }

    #[track_caller]
    fn is_within_5_percent(found: &SearchResult, seconds: f64, limit: f64, reserve: f64, what: &str) {
        let rate = found.rate.unwrap_or_default();
        assert!((rate / limit - 1.0).abs() <= 0.05, "{what}: {rate} instead of {limit}, after {seconds} s: {}", story(found));
        assert!(found.held.is_some(), "{what}: not held: {}", story(found));
        // Large reserves show in a hold at last, which is then begun again lower.
        let most = if reserve <= limit / 5.0 { 120.0 } else { 140.0 };
        assert!(seconds < most, "{what}: took {seconds} s: {}", story(found));
        let most = found.tried.iter().map(|tried| tried.rate).fold(0.0, f64::max);
        // What a server has saved up makes a rate look good for the second of a step, as does a latency that has not grown to its bound yet.
        assert!(most <= (limit * 1.5 + reserve) * GROWTH, "{what}: {most}/s is far above {limit}/s");
    }

    #[test]
    fn the_rate_of_a_token_bucket_that_refuses_is_found() {
        for rate in [20.0, 200.0, 1234.0, 5000.0] {
            for burst in [20.0, rate / 10.0, rate / 2.0, rate] {
                let mut server = Refusing { rate, burst, tokens: burst, last: 0.0 };
                let (found, seconds) = search(&mut server, Bounds::default(), quiet);
                is_within_5_percent(&found, seconds, rate, burst, &format!("{rate}/s with a burst of {burst}"));
            }
        }
    }

    #[test]
    fn the_rate_of_a_token_bucket_that_delays_is_found() {
        for rate in [20.0, 200.0, 1234.0, 5000.0] {
            for reserve in [0.0, 0.1, 0.5, 1.0] {
                let mut server = Delaying { service: || 1.0 / rate, free: 0.0, reserve };
                let (found, seconds) = search(&mut server, Bounds::default(), quiet);
                is_within_5_percent(&found, seconds, rate, rate * reserve, &format!("{rate}/s with a reserve of {reserve} s"));
            }
        }
    }

    /// One server with exponential times of service has a latency whose p99 is ln 100 / (capacity - rate) for Poisson arrivals, and about half of
    /// that for even ones when it is busy: between the two lies the rate at which it is 50 ms.
    #[test]
    fn a_rate_limited_by_its_percentile_is_found_below_the_capacity() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut server = Delaying { service: move || -(1.0 - random.f64()).ln() / 1000.0, free: 0.0, reserve: 0.0 };
        let bounds = Bounds { p99: Duration::from_millis(50), ..Bounds::default() };
        let (found, seconds) = search(&mut server, bounds, quiet);
        let rate = found.rate.expect("found");
        assert!((870.0..980.0).contains(&rate), "{rate}: {}", story(&found));
        assert!(found.held.is_some() && seconds < 120.0, "{seconds} s");
        assert!(matches!(found.beyond, Some(Beyond { rate, excess: Excess::P99(_) }) if rate < 1000.0 * GROWTH), "{:?}", found.beyond);
    }

    #[test]
    fn noise_of_the_machine_does_not_lead_astray() {
        for seed in 0..5 {
            let mut random = fastrand::Rng::with_seed(seed);
            // One request in 2,000 meets a pause of 300 to 900 ms.
            let noise = move || if random.u32(..2000) == 0 { 0.3 + random.f64() * 0.6 } else { random.f64() * 0.004 };
            let mut server = Refusing { rate: 5000.0, burst: 500.0, tokens: 500.0, last: 0.0 };
            let (found, seconds) = search(&mut server, Bounds::default(), noise);
            is_within_5_percent(&found, seconds, 5000.0, 500.0, &format!("seed {seed}"));
        }
    }

    const fn seen(well: f64) -> StepResult {
        StepResult { requests: 1000, seconds: 1.0, p99: Duration::from_millis(1), failed: 0.0, well, generator: false, stalled: false }
    }

    #[test]
    fn the_rate_grows_to_the_most_that_is_allowed_and_is_held_there() {
        let mut search = Search::new(Bounds::default(), Range { from: 10.0, most: 20.0, hold: Duration::from_secs(5) }, Spacing::Even);
        let mut rates = Vec::new();
        let mut last = None;
        let found = loop {
            match search.next(last.as_ref()) {
                Next::Step(step) => {
                    rates.push((step.rate, step.time.as_secs(), step.is_hold));
                    last = Some(seen(step.rate));
                }
                Next::Done(found) => break found,
            }
        };
        assert_eq!(rates, [(10.0, 1, false), (16.0, 1, false), (20.0, 1, false), (20.0, 5, true)]);
        assert_eq!((found.rate, found.held, found.at_least, found.beyond), (Some(20.0), Some(5.0), true, None));
    }

    #[test]
    fn a_server_that_fails_at_any_rate_has_no_limit() {
        let mut search = Search::new(Bounds::default(), Range::default(), Spacing::Even);
        let mut last = None;
        for _ in 0..20 {
            match search.next(last.as_ref()) {
                Next::Step(_) => last = Some(StepResult { failed: 1.0, ..seen(0.0) }),
                Next::Done(found) => {
                    assert_eq!((found.rate, found.held), (None, None));
                    assert_eq!(found.to_string(), "no rate is within the bounds: at 1.25/s, 100 % of the requests failed");
                    return;
                }
            }
        }
        panic!("the search does not end");
    }

    #[test]
    fn a_step_in_which_the_load_tester_stalled_is_repeated() {
        let mut search = Search::new(Bounds::default(), Range { from: 100.0, most: 200.0, hold: Duration::from_secs(5) }, Spacing::Even);
        let stalled = StepResult { failed: 0.05, stalled: true, ..seen(90.0) };
        let held = StepResult { failed: 0.005, stalled: true, ..seen(199.0) };
        let mut rates = Vec::new();
        for last in [None, Some(stalled), Some(seen(100.0)), Some(seen(160.0)), Some(seen(200.0)), Some(held), Some(seen(200.0))] {
            match search.next(last.as_ref()) {
                Next::Step(step) => rates.push((step.rate, step.is_hold)),
                Next::Done(found) => assert_eq!((found.rate, found.held), (Some(200.0), Some(5.0))),
            }
        }
        assert_eq!(rates, [(100.0, false), (100.0, false), (160.0, false), (200.0, false), (200.0, true), (200.0, true)]);
    }

    /// One request of 582 is more than one in a thousand, and no sign of a limit.
    #[test]
    fn one_failure_in_a_short_step_is_chance() {
        for (errors, expected) in [(0.001, 160.0), (0.0, 100.0)] {
            let mut search = Search::new(Bounds { errors, ..Bounds::default() }, Range { from: 100.0, ..Range::default() }, Spacing::Even);
            assert!(matches!(search.next(None), Next::Step(Step { rate: 100.0, .. })));
            let Next::Step(next) = search.next(Some(&StepResult { requests: 582, failed: 1.0 / 582.0, ..seen(100.0) })) else {
                panic!("no step")
            };
            assert_eq!(next.rate, expected);
            let Next::Step(next) = search.next(Some(&StepResult { requests: 582, failed: 2.0 / 582.0, ..seen(next.rate) })) else {
                panic!("no step")
            };
            assert!(next.rate <= expected, "{}", next.rate);
        }
    }

    /// At the first excess, something else has the machine for some seconds.
    #[test]
    fn a_search_that_was_disturbed_goes_on_upwards() {
        let mut search = Search::new(Bounds::default(), Range::default(), Spacing::Even);
        let (mut last, mut disturbed) = (None, 2);
        let found = loop {
            match search.next(last.as_ref()) {
                Next::Step(step) => {
                    let is_disturbed = disturbed > 0 && step.rate > 300.0;
                    disturbed -= i32::from(is_disturbed);
                    let can = if is_disturbed { 250.0 } else { 1000.0 };
                    last =
                        Some(StepResult { failed: if step.rate > can { 1.0 - can / step.rate } else { 0.0 }, ..seen(step.rate.min(can)) });
                }
                Next::Done(found) => break found,
            }
        };
        assert!(found.rate.is_some_and(|rate| (950.0..=1000.0).contains(&rate)), "{:?}: {}", found.rate, story(&found));
    }

    /// A rate that was good for a second may live on reserves, and one that failed was seen.
    #[test]
    fn a_search_that_was_ended_is_at_least_what_was_good_if_nothing_above_has_failed() {
        for (steps, rate, at_least) in [
            (vec![], None, false),
            (vec![seen(100.0)], Some(100.0), true),
            (vec![seen(100.0), StepResult { failed: 0.5, ..seen(80.0) }], Some(100.0), true),
            (vec![seen(100.0), StepResult { failed: 0.5, ..seen(80.0) }, StepResult { failed: 0.5, ..seen(80.0) }], Some(100.0), false),
            (vec![StepResult { failed: 0.5, ..seen(80.0) }, StepResult { failed: 0.5, ..seen(80.0) }], None, false),
        ] {
            let mut search = Search::new(Bounds::default(), Range { from: 100.0, ..Range::default() }, Spacing::Even);
            assert!(matches!(search.next(None), Next::Step(Step { rate: 100.0, .. })));
            for step in &steps {
                assert!(matches!(search.next(Some(step)), Next::Step(_)));
            }
            let found = search.stop();
            assert_eq!((found.rate, found.at_least, found.held, found.ended_early), (rate, at_least, None, true), "{steps:?}");
        }
    }

    #[test]
    fn a_limit_of_the_generator_is_at_least() {
        let mut search = Search::new(Bounds::default(), Range { from: 100.0, ..Range::default() }, Spacing::Even);
        let mut last = None;
        let found = loop {
            match search.next(last.as_ref()) {
                Next::Step(step) => {
                    let p99 = Duration::from_millis(if step.rate > 1000.0 { 900 } else { 5 });
                    last = Some(StepResult { generator: step.rate > 300.0, p99, ..seen(step.rate.min(1000.0)) });
                }
                Next::Done(found) => break found,
            }
        };
        assert!(found.at_least);
        assert!(found.rate.is_some_and(|rate| (950.0..=1000.0).contains(&rate)), "{:?}", found.rate);
    }
}
