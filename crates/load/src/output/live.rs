//! The view of a run that goes on, below what the terminal shows already.
//!
//! It is drawn line by line where the cursor is, so that it needs neither the whole screen nor to ask the terminal anything: an answer would have to be
//! read from the same keyboard, and the question would stand in a redirected standard output. When the run is over, it is wiped away.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
    io::Write,
    ops::ControlFlow,
    os::fd::AsFd,
    time::Duration,
};

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{LineGauge, Sparkline, Widget as _},
};
use rustix::time::{ClockId, clock_gettime};

use super::{
    Ink,
    keys::Keys,
    quantity::{bytes, count, milliseconds, number, seconds, share},
    words,
};
use crate::{
    answer::Outcome,
    engine::Watch,
    plan::Plan,
    record::{Distribution, ErrorClass, Tally},
    results::{Run, Second, Times},
};

/// The seconds that a curve shows at most.
const HISTORY_MAX: usize = 240;

/// The width that is used of a wide terminal.
const WIDTH_MAX: u16 = 100;

/// The width that a terminal has which does not say it.
const WIDTH_UNKNOWN: u16 = 80;

/// The width of the names on the left, and of the values beside them.
const NAME: u16 = 11;
const VALUE: u16 = 13;

/// The share of its CPU from which the load tester is said to be at its limit.
const BUSY: f64 = 0.9;

/// Holds what is shown.
#[derive(Debug, Default)]
struct State {
    run: Run,
    elapsed: f64,
    requests: u64,
    bytes: u64,
    errors: BTreeMap<ErrorClass, u64>,
    /// Outcomes of the last second that had any.
    cache: BTreeMap<Outcome, u64>,
    clients: u32,
    rate: VecDeque<f64>,
    p50: VecDeque<f64>,
    p99: VecDeque<f64>,
    /// The share of its CPU that the load tester used in the last second, 0 to 1 for each worker.
    cpu: f64,
    ending: bool,
}

impl State {
    fn second(&mut self, second: &Second, cpu: f64) {
        self.elapsed = second.second as f64 + second.length;
        self.requests += second.requests;
        self.bytes += second.bytes;
        for (class, count) in &second.errors {
            *self.errors.entry(*class).or_default() += count;
        }
        if !second.cache.is_empty() {
            self.cache.clone_from(&second.cache);
        }
        self.clients = second.clients;
        self.cpu = cpu;
        for (history, value) in [(&mut self.rate, second.rate()), (&mut self.p50, second.latency.p50), (&mut self.p99, second.latency.p99)]
        {
            if history.len() == HISTORY_MAX {
                history.pop_front();
            }
            history.push_back(value);
        }
    }

    /// Returns how much of the run is over, 0 to 1, if it is known.
    fn progress(&self) -> Option<f64> {
        let time = self.run.seconds.map(|seconds| self.elapsed / (seconds + self.run.warm_up).max(0.001));
        let requests = self.run.requests.map(|requests| self.requests as f64 / requests.max(1) as f64);
        time.into_iter().chain(requests).reduce(f64::max).map(|part| part.clamp(0.0, 1.0))
    }

    fn render(&self, width: u16) -> Buffer {
        let mut lines = Lines { buffer: Buffer::empty(Rect::new(0, 0, width, 20)), y: 0 };
        lines.text(Line::from(vec![Span::styled(words::target(&self.run), Modifier::BOLD)]));
        lines.text(Line::from(Span::styled(words::how(&self.run), Modifier::DIM)));
        self.bar(&mut lines);
        let last = |history: &VecDeque<f64>| history.back().copied().unwrap_or_default();
        lines.curve("rate", &format!("{}/s", number(last(&self.rate))), &self.rate, Color::Cyan);
        lines.curve("median", &milliseconds(last(&self.p50)), &self.p50, Color::Blue);
        lines.curve("99 %", &milliseconds(last(&self.p99)), &self.p99, Color::Magenta);
        self.cache(&mut lines);
        lines.named(
            "clients",
            Line::from(format!("{}; {} requests, {} received", count(self.clients.into()), count(self.requests), bytes(self.bytes as f64))),
        );
        lines.named("failures", self.failures());
        lines.named("so far", Line::from(self.so_far()));
        lines.finish()
    }

    fn bar(&self, lines: &mut Lines) {
        let warming = if self.elapsed < self.run.warm_up { "warm-up, " } else { "" };
        let keys = if self.ending { "it ends" } else { "q ends it" };
        let Some(part) = self.progress() else {
            return lines.text(Line::from(format!("{warming}{} so far; {keys}", seconds(self.elapsed.round()))));
        };
        let of = self.run.seconds.map(|all| format!(" of {}", seconds(all + self.run.warm_up)));
        let label = format!("{warming}{}{}; {keys}", seconds(self.elapsed.round()), of.unwrap_or_default());
        let area = lines.next();
        gauge()
            .ratio(part)
            .label(Line::from(format!("{label} ")))
            .filled_style(Style::new().fg(Color::Green))
            .unfilled_style(Style::new().add_modifier(Modifier::DIM))
            .render(area, &mut lines.buffer);
    }

    fn cache(&self, lines: &mut Lines) {
        let all: u64 = self.cache.values().sum();
        if all == 0 || self.cache.keys().all(|outcome| *outcome == Outcome::Unknown) {
            return;
        }
        let part = |outcomes: &[Outcome]| outcomes.iter().filter_map(|outcome| self.cache.get(outcome)).sum::<u64>() as f64 / all as f64;
        let hits = part(&[Outcome::Hit]);
        let parts: Vec<_> = self.cache.keys().map(|outcome| format!("{} {}", words::outcome(*outcome), share(part(&[*outcome])))).collect();
        let area = lines.next();
        lines.buffer.set_stringn(0, area.y, "cache", NAME.into(), Modifier::DIM);
        let rest = Rect { x: NAME, width: area.width.saturating_sub(NAME), ..area };
        gauge()
            .ratio(hits.clamp(0.0, 1.0))
            .label(Line::from(format!("{} ", parts.join(", "))))
            .filled_style(Style::new().fg(Color::Green))
            .unfilled_style(Style::new().fg(Color::Yellow))
            .render(rest, &mut lines.buffer);
    }

    fn failures(&self) -> Line<'static> {
        let mut all: Vec<_> = self.errors.iter().filter(|(_, count)| **count > 0).collect();
        if all.is_empty() {
            return Line::from(Span::styled("none", Color::Green));
        }
        all.sort_by_key(|(class, count)| (std::cmp::Reverse(**count), **class));
        let all: Vec<_> = all.into_iter().map(|(class, times)| format!("{} {}", count(*times), words::failure(*class))).collect();
        Line::from(Span::styled(all.join(", "), Color::Red))
    }

    fn so_far(&self) -> String {
        let cpu = share(self.cpu.clamp(0.0, 1.0));
        match () {
            () if self.cpu >= BUSY => format!("the load tester itself is the bottleneck ({cpu} of its CPU)"),
            () if self.run.open => format!("the load tester uses {cpu} of its CPU"),
            () => format!("the server sets the pace; the load tester uses {cpu} of its CPU"),
        }
    }
}

/// Makes a bar whose parts differ without colours, too.
fn gauge<'a>() -> LineGauge<'a> {
    LineGauge::default().filled_symbol("━").unfilled_symbol("─")
}

/// Lines that are drawn one below the other.
struct Lines {
    buffer: Buffer,
    y: u16,
}

impl Lines {
    fn next(&mut self) -> Rect {
        let area = Rect::new(0, self.y, self.buffer.area.width, 1);
        self.y += 1;
        area
    }

    fn text(&mut self, line: Line<'_>) {
        let area = self.next();
        line.render(area, &mut self.buffer);
    }

    fn named(&mut self, name: &str, line: Line<'_>) {
        let area = self.next();
        self.buffer.set_stringn(0, area.y, name, NAME.into(), Modifier::DIM);
        line.render(Rect { x: NAME, width: area.width.saturating_sub(NAME), ..area }, &mut self.buffer);
    }

    fn curve(&mut self, name: &str, value: &str, history: &VecDeque<f64>, colour: Color) {
        self.named(name, Line::from(Span::styled(value.to_owned(), Modifier::BOLD)));
        let left = NAME + VALUE;
        let width = self.buffer.area.width.saturating_sub(left);
        let most = history.iter().copied().fold(0.0, f64::max);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1,000")]
        let heights = history
            .iter()
            .skip(history.len().saturating_sub(width.into()))
            .map(|value| if most > 0.0 { (value / most * 1e3) as u64 } else { 0 });
        let area = Rect { x: left.min(self.buffer.area.width), y: self.y - 1, width, height: 1 };
        Sparkline::default().data(heights.collect::<Vec<_>>()).max(1000).style(Style::new().fg(colour)).render(area, &mut self.buffer);
    }

    fn finish(mut self) -> Buffer {
        self.buffer.resize(Rect { height: self.y, ..self.buffer.area });
        self.buffer
    }
}

/// Shows a run on a terminal while it goes on.
#[derive(Debug)]
pub struct Live<W: Write + AsFd> {
    to: W,
    ink: Ink,
    state: State,
    keys: Option<Keys>,
    /// The lines that are on the terminal now.
    lines: u16,
    workers: f64,
    /// CPU time of the process at the end of the last second.
    cpu: Duration,
    seen: f64,
    /// Whether the terminal takes no more.
    gone: bool,
}

impl<W: Write + AsFd> Live<W> {
    /// Shows a run on `to`, which must be a terminal. `q` ends the run if standard input is one, too.
    pub fn new(plan: &Plan, to: W, ink: Ink) -> Self {
        let state = State { run: Run::new(plan), ..State::default() };
        let workers = plan.workers.max(1) as f64;
        let mut live = Self { to, ink, state, keys: Keys::listen(), lines: 0, workers, cpu: cpu_time(), seen: 0.0, gone: false };
        live.draw();
        live
    }

    fn draw(&mut self) {
        if self.gone {
            return;
        }
        let size = rustix::termios::tcgetwinsize(&self.to).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        let buffer = fitted(&self.state, size);
        let text = format!("{}{}", wipe(self.lines), ansi(&buffer, self.ink));
        self.lines = buffer.area.height;
        self.write(&text);
    }

    fn write(&mut self, text: &str) {
        self.gone |= self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush()).is_err();
    }
}

impl<W: Write + AsFd> Watch for Live<W> {
    fn second(&mut self, second: &Second) -> ControlFlow<()> {
        let now = cpu_time();
        let passed = (second.second as f64 + second.length - self.seen).max(0.001);
        let cpu = (now.saturating_sub(self.cpu)).as_secs_f64() / passed / self.workers;
        self.cpu = now;
        self.seen = second.second as f64 + second.length;
        self.state.second(second, cpu);
        self.draw();
        ControlFlow::Continue(())
    }

    fn stops(&mut self) -> bool {
        if !self.state.ending && self.keys.as_mut().is_some_and(Keys::end_was_typed) {
            self.state.ending = true;
            self.draw();
        }
        self.state.ending
    }
}

/// Wipes the view away: what follows stands in its place.
impl<W: Write + AsFd> Drop for Live<W> {
    fn drop(&mut self) {
        if !self.gone {
            let text = wipe(self.lines);
            self.write(&text);
        }
    }
}

/// Draws the view for a terminal of so many columns and rows; 0: it does not say how many it has.
fn fitted(state: &State, (columns, rows): (u16, u16)) -> Buffer {
    let width = if columns == 0 { WIDTH_UNKNOWN } else { columns.min(WIDTH_MAX) };
    // The last column stays free: some terminals go on to the next line after it. So does the last row: that is where the cursor is.
    let mut buffer = state.render(width.saturating_sub(1).max(1));
    if rows > 0 {
        // Lines that have left the screen cannot be wiped away.
        buffer.resize(Rect { height: buffer.area.height.min(rows - 1), ..buffer.area });
    }
    buffer
}

/// Moves the cursor above so many lines, and wipes what is below.
fn wipe(lines: u16) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A\r\x1b[J") }
}

/// Returns the CPU time of the process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

/// Writes a buffer as lines for a terminal.
fn ansi(buffer: &Buffer, ink: Ink) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        let mut style = String::new();
        for x in 0..buffer.area.width {
            let cell = &buffer[(x, y)];
            let next = if ink == Ink::Coloured { code(cell.fg, cell.modifier) } else { String::new() };
            if next != style {
                let _ = write!(line, "\x1b[0{next}m");
                style = next;
            }
            line.push_str(cell.symbol());
        }
        text += line.trim_end();
        // The terminal adds the return itself.
        text += if style.is_empty() { "\n" } else { "\x1b[0m\n" };
    }
    text
}

fn code(colour: Color, modifier: Modifier) -> String {
    let mut code = match colour {
        Color::Red => ";31",
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Blue => ";34",
        Color::Magenta => ";35",
        Color::Cyan => ";36",
        _ => "",
    }
    .to_owned();
    if modifier.contains(Modifier::BOLD) {
        code += ";1";
    }
    if modifier.contains(Modifier::DIM) {
        code += ";2";
    }
    code
}

/// Seconds between two lines of [`Progress`].
const EACH: u64 = 10;

/// Says in a line every ten seconds how a run goes on: for a file, or a terminal that belongs to a build.
#[derive(Debug)]
pub struct Progress<W> {
    to: W,
    good: u64,
    errors: u64,
    length: f64,
    latency: Distribution,
    gone: bool,
}

impl<W: Write> Progress<W> {
    /// Writes lines to `to`.
    pub fn new(to: W) -> Self {
        Self { to, good: 0, errors: 0, length: 0.0, latency: Tally::of_a_second().latency, gone: false }
    }
}

impl<W: Write> Watch for Progress<W> {
    fn second(&mut self, second: &Second) -> ControlFlow<()> {
        self.good += second.good();
        self.errors += second.errors_count();
        self.length += second.length;
        // A second is ours, and so is its distribution.
        let _ = second.histogram.add_to(&mut self.latency);
        if (second.second + 1).is_multiple_of(EACH) && !self.gone {
            let rate = if self.length > 0.0 { self.good as f64 / self.length } else { 0.0 };
            let failed = if self.errors > 0 { format!(", {} failures", count(self.errors)) } else { String::new() };
            let what = if self.errors > 0 { "good answers" } else { "requests" };
            let line = format!(
                "{}: {} {what} a second, 99 % within {}{failed}\n",
                seconds((second.second + 1) as f64),
                number(rate),
                milliseconds(Times::from(&self.latency).p99)
            );
            self.gone = self.to.write_all(line.as_bytes()).and_then(|()| self.to.flush()).is_err();
            (self.good, self.errors, self.length) = (0, 0, 0.0);
            self.latency = Tally::of_a_second().latency;
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Second {
        Second {
            second: number,
            length: 1.0,
            requests: 13_464,
            answered: 13_400,
            bytes: 1_000_000,
            clients: 500,
            latency: Times { count: 13_400, p50: 12.0, p99: 180.0 + number as f64, ..Times::default() },
            errors: [(ErrorClass::Timeout, 60), (ErrorClass::Refused, 4)].into(),
            cache: [(Outcome::Hit, 13_000), (Outcome::Miss, 400)].into(),
            ..Second::default()
        }
    }

    fn state() -> State {
        let run = Run {
            urls: vec!["http://127.0.0.1/".to_owned()],
            urls_count: 1,
            protocol: "HTTP/1.1".to_owned(),
            schedule: "500 clients that stay".to_owned(),
            stop: "30 s".to_owned(),
            seconds: Some(30.0),
            ..Run::default()
        };
        let mut state = State { run, ..State::default() };
        (0..12).for_each(|number| state.second(&second(number), 0.31));
        state
    }

    fn text(state: &State, width: u16) -> String {
        ansi(&state.render(width), Ink::Plain).replace('\r', "")
    }

    #[test]
    fn the_view_shows_how_the_run_goes_on() {
        let text = text(&state(), 99);
        for part in [
            "http://127.0.0.1/\n",
            "HTTP/1.1, 500 clients that stay, 30 s",
            "12 s of 30 s; q ends it",
            "rate       13,400/s",
            "median     12.0 ms",
            "99 %       191 ms",
            "hit 97.0 %, miss 3.0 %",
            "500; 161,568 requests, 12.0 MB received",
            "720 timeouts, 48 connections refused",
            "the load tester uses 31.0 % of its CPU",
            "████████████",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
    }

    #[test]
    fn a_terminal_of_any_width_is_not_overrun() {
        for width in [1, 2, 10, 24, 39, 79, 99] {
            let text = text(&state(), width);
            assert!(text.lines().all(|line| line.chars().count() <= width.into()), "{width}:\n{text}");
            assert_eq!(text.lines().count(), 10);
        }
    }

    #[test]
    fn a_terminal_of_any_height_keeps_the_view_on_its_screen() {
        for (rows, lines) in [(0, 10), (1, 0), (2, 1), (6, 5), (11, 10), (50, 10)] {
            let buffer = fitted(&state(), (80, rows));
            assert_eq!((buffer.area.width, buffer.area.height), (79, lines), "{rows}");
            assert_eq!(ansi(&buffer, Ink::Plain).lines().count(), usize::from(lines));
        }
        assert_eq!(fitted(&state(), (0, 0)).area.width, WIDTH_UNKNOWN - 1);
        assert_eq!(fitted(&state(), (1, 1)).area.width, 1);
    }

    #[test]
    fn progress_is_that_of_time_or_of_requests_whichever_is_further() {
        let mut state = state();
        assert_eq!(state.progress(), Some(0.4));
        state.run.requests = Some(161_568 * 2);
        assert_eq!(state.progress(), Some(0.5));
        (state.run.seconds, state.run.requests) = (None, None);
        assert_eq!(state.progress(), None);
        assert!(text(&state, 79).contains("12 s so far; q ends it"));
    }

    #[test]
    fn a_long_run_keeps_no_more_than_a_curve_can_show() {
        let mut state = state();
        (0..10_000).for_each(|number| state.second(&second(number), 0.0));
        assert_eq!(state.rate.len(), HISTORY_MAX);
    }

    #[test]
    fn a_load_tester_at_its_end_says_so() {
        let mut state = state();
        state.second(&second(12), 0.97);
        assert!(text(&state, 99).contains("so far     the load tester itself is the bottleneck (97.0 % of its CPU)"));
    }

    #[test]
    fn without_a_terminal_there_is_a_line_every_ten_seconds() {
        let mut lines = Vec::new();
        let mut progress = Progress::new(&mut lines);
        // Of 200 requests each second one takes 1 s; in one second all do: 209 of 2,000, more than one in a hundred. Without that second: 10 of 2,000.
        let latency = |number: u64| {
            let mut times = Tally::of_a_second().latency;
            (0..200).for_each(|n| times.record(Duration::from_millis(if n == 0 || number == 13 { 1000 } else { 10 })));
            (&times).into()
        };
        let second = |number| Second { histogram: latency(number), ..second(number) };
        (0..25).for_each(|number| assert_eq!(progress.second(&second(number)), ControlFlow::Continue(())));
        let text = String::from_utf8(lines).expect("text");
        assert_eq!(text.lines().count(), 2);
        assert_eq!(text.lines().next(), Some("10 s: 13,400 good answers a second, 99 % within 10.0 ms, 640 failures"));
        let second = text.lines().nth(1).expect("a second line");
        assert!(second.contains(" s, 640 failures"), "the p99 of all ten seconds is a second: {second}");
    }
}
