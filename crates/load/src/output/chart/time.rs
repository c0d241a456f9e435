//! Charts of what changed while time went on: rate, latency, failures, clients, what the cache did.

use super::{
    canvas::{Anchor, Canvas, ChartStyle, Colour, SOLID},
    scale::{Scale, time_step},
};
use crate::{
    answer::Outcome,
    output::{
        quantity::{count, milliseconds, number, seconds, share},
        series::{Point, classes, has_cache, points},
        words,
    },
    results::Results,
};

/// Says what is shown over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::output) enum Over {
    Rate,
    Latency,
    Errors,
    Clients,
    Cache,
}

/// The percentiles of [`Point::latency`].
const LATENCIES: [(&str, Colour, &str); 4] =
    [("50 %", Colour::Blue, ""), ("90 %", Colour::Violet, ""), ("99 %", Colour::Orange, ""), ("longest", Colour::Grey, "2 3")];

const OUTCOMES: [(Outcome, Colour); 5] = [
    (Outcome::Hit, Colour::Green),
    (Outcome::Stale, Colour::Lime),
    (Outcome::Miss, Colour::Orange),
    (Outcome::Bypass, Colour::Violet),
    (Outcome::Unknown, Colour::Grey),
];

const CLASSES: [Colour; 6] = [Colour::Red, Colour::Orange, Colour::Violet, Colour::Brown, Colour::Blue, Colour::Grey];

impl Over {
    /// Returns its title.
    pub(in crate::output) const fn title(self) -> &'static str {
        match self {
            Self::Rate => "Answers a second",
            Self::Latency => "Latency over time",
            Self::Errors => "Failures a second",
            Self::Clients => "Clients",
            Self::Cache => "What the cache did, answers a second",
        }
    }

    /// Describes what it shows, in a sentence with its figures.
    fn description(self, results: &Results, points: &[Point]) -> String {
        let measured = || points.iter().filter(|point| point.begin >= results.warm_up.seconds);
        match self {
            Self::Rate => {
                let low = measured().map(|point| point.rate[1]).fold(f64::INFINITY, f64::min);
                let high = measured().map(|point| point.rate[2]).fold(0.0, f64::max);
                let low = if low.is_finite() { low } else { 0.0 };
                format!("{} on average; {} in the slowest second, {} in the fastest.", number(results.rate), number(low), number(high))
            }
            Self::Latency => format!(
                "Median {}, 99 % within {}, the longest {}.",
                milliseconds(results.latency.p50),
                milliseconds(results.latency.p99),
                milliseconds(results.latency.max)
            ),
            Self::Errors => {
                let all: Vec<_> = classes(results)
                    .into_iter()
                    .map(|class| format!("{} {}", count(results.errors[&class]), words::failure(class)))
                    .collect();
                format!("{}.", all.join(", "))
            }
            Self::Clients => format!("{} at most.", count(results.clients.into())),
            Self::Cache => {
                let all: Vec<_> =
                    results.cache.iter().map(|(outcome, part)| format!("{} {}", words::outcome(*outcome), share(part.share))).collect();
                format!("{}.", all.join(", "))
            }
        }
    }
}

/// Draws what changed over time. None if there is nothing to show.
pub(in crate::output) fn over_time(results: &Results, over: Over, look: ChartStyle<'_>) -> Option<String> {
    let points = points(results, look.points_max());
    let nothing = match over {
        Over::Rate => false,
        Over::Latency => points.iter().all(|point| point.latency.is_none()),
        Over::Errors => results.errors_count() == 0,
        Over::Clients => results.clients == 0,
        Over::Cache => !has_cache(results),
    };
    if points.is_empty() || nothing {
        return None;
    }
    let scale = scale(over, &points);
    let steps = if scale.is_log() { " Logarithmic scale." } else { "" };
    let mut canvas = Canvas::new(look, over.title(), &format!("{}{steps}", over.description(results, &points)));
    canvas.legend(canvas.margin(), &legend(results, over));
    let label = |value: f64| if over == Over::Latency { milliseconds_short(value) } else { number_short(value) };
    let height = match over {
        Over::Rate | Over::Latency | Over::Cache => 210.0,
        Over::Errors | Over::Clients => 130.0,
    };
    let plot = Plot::frame(&mut canvas, scale, &label, height, results, &points);
    draw(&mut canvas, &plot, over, results, &points);
    Some(canvas.finish())
}

fn legend(results: &Results, over: Over) -> Vec<(String, Colour, &'static str)> {
    match over {
        Over::Rate | Over::Clients => Vec::new(),
        Over::Latency => LATENCIES.map(|(name, colour, dash)| (name.to_owned(), colour, dash)).to_vec(),
        Over::Errors => classes(results)
            .into_iter()
            .zip(CLASSES.into_iter().cycle())
            .map(|(class, colour)| (words::failure(class).to_owned(), colour, SOLID))
            .collect(),
        Over::Cache => OUTCOMES
            .into_iter()
            .filter(|(outcome, _)| results.cache.contains_key(outcome))
            .map(|(outcome, colour)| (words::outcome(outcome).to_owned(), colour, SOLID))
            .collect(),
    }
}

fn scale(over: Over, points: &[Point]) -> Scale {
    let most = |of: fn(&Point) -> f64| points.iter().map(of).fold(0.0, f64::max);
    match over {
        Over::Rate => Scale::linear(most(|point| point.rate[2].max(point.rate[0]))),
        Over::Latency => Scale::of_times(points.iter().filter_map(|point| point.latency).flatten()),
        Over::Errors => Scale::linear(most(Point::errors_rate)),
        Over::Clients => Scale::linear(most(|point| point.clients.into())),
        Over::Cache => Scale::linear(most(|point| point.cache.values().sum())),
    }
}

/// The field of a chart: its edges, and what they mean.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    scale: Scale,
    length: f64,
}

impl Plot {
    /// Draws the axes below what the canvas has already.
    fn frame(
        canvas: &mut Canvas<'_>,
        scale: Scale,
        label: &dyn Fn(f64) -> String,
        height: f64,
        results: &Results,
        points: &[Point],
    ) -> Self {
        let marks = scale.marks();
        let widest = marks.iter().map(|mark| label(*mark).chars().count()).max().unwrap_or_default() as f64;
        let plot = Self {
            left: canvas.margin() + widest * 6.8 + 8.0,
            right: canvas.look.width - canvas.margin() - 4.0,
            top: canvas.y + 14.0,
            bottom: canvas.y + 14.0 + height,
            scale,
            length: points.last().map_or(1.0, Point::end).max(0.001),
        };
        for mark in marks {
            let y = plot.y(mark);
            canvas.line([plot.left, y, plot.right, y], Colour::Grid, "");
            canvas.text(plot.left - 8.0, y + 4.0, Anchor::End, Colour::Dim, 12.0, false, &label(mark));
        }
        let step = time_step(plot.length, if canvas.look.is_narrow() { 5.0 } else { 10.0 });
        let mut mark = 0.0;
        while mark <= plot.length * 1.0001 {
            let x = plot.x(mark);
            canvas.line([x, plot.bottom, x, plot.bottom + 4.0], Colour::Dim, "");
            let anchor = if x > plot.right - 18.0 { Anchor::End } else { Anchor::Middle };
            canvas.text(x, plot.bottom + 18.0, anchor, Colour::Dim, 12.0, false, &seconds(mark));
            mark += step;
        }
        let warm_up = results.warm_up.seconds.min(plot.length);
        if warm_up > 0.0 {
            let (begin, end) = (plot.left, plot.x(warm_up));
            canvas.rect([begin, plot.top, end - begin, height], Colour::Grey, 0.18);
            canvas.text(begin + 4.0, plot.top + 13.0, Anchor::Start, Colour::Dim, 11.0, false, "warm-up");
        }
        canvas.y = plot.bottom + 22.0;
        plot
    }

    fn x(&self, time: f64) -> f64 {
        self.left + (time / self.length).clamp(0.0, 1.0) * (self.right - self.left)
    }

    /// Returns the middle of a point's time.
    fn middle(&self, point: &Point) -> f64 {
        self.x(point.begin + point.length / 2.0)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.scale.at(value) * (self.bottom - self.top)
    }
}

fn draw(canvas: &mut Canvas<'_>, plot: &Plot, over: Over, results: &Results, points: &[Point]) {
    let line = |of: &dyn Fn(&Point) -> Option<f64>| {
        points.iter().map(|point| of(point).map(|value| (plot.middle(point), plot.y(value)))).collect::<Vec<_>>()
    };
    match over {
        Over::Rate => {
            let floor = plot.bottom;
            canvas.area(
                &points.iter().map(|point| (plot.middle(point), plot.y(point.rate[0]), floor)).collect::<Vec<_>>(),
                Colour::Blue,
                0.12,
            );
            if points.iter().any(|point| point.rate[1] < point.rate[2]) {
                let band: Vec<_> = points.iter().map(|point| (plot.middle(point), plot.y(point.rate[2]), plot.y(point.rate[1]))).collect();
                canvas.area(&band, Colour::Blue, 0.3);
            }
            canvas.path(&line(&|point| Some(point.rate[0])), Colour::Blue, "");
        }
        Over::Latency => {
            for (index, (_, colour, dash)) in LATENCIES.into_iter().enumerate().rev() {
                canvas.path(&line(&|point| point.latency.map(|latency| latency[index])), colour, dash);
            }
        }
        Over::Clients => canvas.path(&line(&|point| Some(point.clients.into())), Colour::Violet, ""),
        Over::Errors => {
            let parts: Vec<_> = classes(results).into_iter().zip(CLASSES.into_iter().cycle()).collect();
            stacked(canvas, plot, points, &parts, &|point, class| point.errors.get(class).copied().unwrap_or_default());
        }
        Over::Cache => stacked(canvas, plot, points, &OUTCOMES, &|point, outcome| point.cache.get(outcome).copied().unwrap_or_default()),
    }
}

/// Parts of a whole above one another, as steps: a second is not in between two others.
fn stacked<K: Copy>(canvas: &mut Canvas<'_>, plot: &Plot, points: &[Point], parts: &[(K, Colour)], of: &dyn Fn(&Point, &K) -> f64) {
    let mut floors = vec![0.0; points.len()];
    for (part, colour) in parts {
        let values: Vec<_> = points.iter().map(|point| of(point, part)).collect();
        if values.iter().all(|value| *value <= 0.0) {
            continue;
        }
        let mut outline = Vec::with_capacity(points.len());
        for ((point, value), floor) in points.iter().zip(&values).zip(&mut floors) {
            let (upper, lower) = (plot.y(*floor + value), plot.y(*floor));
            // With many points, a step is no wider than the eye can see.
            if points.len() > 120 {
                outline.push((plot.middle(point), upper, lower));
            } else {
                outline.extend([(plot.x(point.begin), upper, lower), (plot.x(point.end()), upper, lower)]);
            }
            *floor += value;
        }
        canvas.area(&outline, *colour, 0.85);
    }
}

/// Writes a mark of an axis: `12,000`, `1.5`.
pub(super) fn number_short(value: f64) -> String {
    trimmed(&number(value))
}

/// Writes a mark of an axis: `10 ms`, `0.5 s`.
pub(super) fn milliseconds_short(value: f64) -> String {
    match milliseconds(value).split_once(' ') {
        Some((value, unit)) if !unit.contains("min") => format!("{} {unit}", trimmed(value)),
        _ => milliseconds(value),
    }
}

fn trimmed(value: &str) -> String {
    if value.contains('.') { value.trim_end_matches('0').trim_end_matches('.').to_owned() } else { value.to_owned() }
}
