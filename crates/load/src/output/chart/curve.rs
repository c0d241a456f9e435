//! The percentile curve: how long the slowest part of the requests took, with the last ones drawn as wide as the first.

use super::{
    canvas::{Anchor, Canvas, ChartStyle, Colour},
    scale::Scale,
    time::milliseconds_short,
};
use crate::{output::quantity::milliseconds, record::Distribution};

/// A distribution with its name.
#[derive(Debug)]
pub(in crate::output) struct Curve<'a> {
    pub(in crate::output) name: &'a str,
    pub(in crate::output) times: &'a Distribution,
    pub(in crate::output) colour: Colour,
    pub(in crate::output) dash: &'static str,
}

/// The far end of the axis: 99.999 %.
const NINES_MAX: f64 = 5.0;

/// The near end of curves, 10 %: a single fast answer would stretch the scale for nothing.
const NEAR: f64 = 0.045_757;

/// Points for each power of ten.
const EACH: u32 = 32;

const HEIGHT: f64 = 230.0;

/// Draws percentile curves. None if there is nothing to show.
pub(in crate::output) fn percentiles(curves: &[Curve<'_>], look: ChartStyle<'_>) -> Option<String> {
    let lines: Vec<Vec<(f64, f64)>> = curves.iter().map(|curve| points(curve.times)).collect();
    if lines.iter().all(Vec::is_empty) {
        return None;
    }
    let name = |curve: &Curve<'_>| if curves.len() > 1 { format!("{}: ", curve.name) } else { String::new() };
    let shown = curves.iter().filter(|curve| !curve.times.nanoseconds().is_empty());
    let described: Vec<_> = shown.map(|curve| format!("{}{}", name(curve), described(curve))).collect();
    let scale = Scale::of_times(lines.iter().flatten().map(|(_, value)| *value));
    let steps = if scale.is_log() { " Logarithmic scale." } else { "" };
    let mut canvas = Canvas::new(look, "Latency by percentile", &format!("{}.{steps}", described.join("; ")));
    if curves.len() > 1 {
        let names: Vec<_> = curves.iter().map(|curve| (curve.name.to_owned(), curve.colour, curve.dash)).collect();
        canvas.legend(canvas.margin(), &names);
    }
    let marks = scale.marks();
    let widest = marks.iter().map(|mark| milliseconds_short(*mark).chars().count()).max().unwrap_or_default() as f64;
    let nines = lines.iter().flatten().map(|(nines, _)| *nines).fold(1.0, f64::max).ceil();
    let (left, right) = (canvas.margin() + widest * 6.8 + 8.0, canvas.look.width - canvas.margin() - 22.0);
    let (top, bottom) = (canvas.y + 14.0, canvas.y + 14.0 + HEIGHT);
    let x = |at: f64| left + at / nines * (right - left);
    let y = |value: f64| bottom - scale.at(value) * (bottom - top);
    for mark in marks {
        canvas.line([left, y(mark), right, y(mark)], Colour::Grid, "");
        canvas.text(left - 8.0, y(mark) + 4.0, Anchor::End, Colour::Dim, 12.0, false, &milliseconds_short(mark));
    }
    let narrow = canvas.look.is_narrow();
    for (at, name) in
        [(0.0, "0 %"), (2_f64.log10(), "50 %"), (1.0, "90 %"), (2.0, "99 %"), (3.0, "99.9 %"), (4.0, "99.99 %"), (5.0, "99.999 %")]
    {
        // On a phone there is little room between 0 and 90 %, and for long names.
        let crowded = narrow && (nines > 3.0 && (0.1..0.9).contains(&at) || nines > 4.0 && at.to_bits() == 4.0_f64.to_bits());
        if at > nines || crowded {
            continue;
        }
        canvas.line([x(at), top, x(at), bottom + 4.0], Colour::Grid, "");
        let anchor = if x(at) > right - 8.0 && nines > 3.5 { Anchor::End } else { Anchor::Middle };
        let shift = if anchor == Anchor::End { 20.0 } else { 0.0 };
        let name = if narrow { name.replace(' ', "") } else { name.to_owned() };
        canvas.text(x(at) + shift, bottom + 18.0, anchor, Colour::Dim, if narrow { 11.0 } else { 12.0 }, false, &name);
    }
    for (curve, line) in curves.iter().zip(&lines).rev() {
        let line: Vec<_> = line.iter().map(|(at, value)| Some((x(*at), y(*value)))).collect();
        canvas.path(&line, curve.colour, curve.dash);
    }
    canvas.y = bottom + 22.0;
    Some(canvas.finish())
}

/// Points of a curve: how many nines, and the time. It ends where no request is beyond.
fn points(times: &Distribution) -> Vec<(f64, f64)> {
    let times = times.nanoseconds();
    if times.is_empty() {
        return Vec::new();
    }
    let reached = (times.len() as f64).log10().min(NINES_MAX);
    let step = |n: u32| f64::from(n) / f64::from(EACH);
    let mut points: Vec<_> = std::iter::once(NEAR).chain((2..).map(step)).take_while(|nines| *nines < reached).collect();
    points.push(reached.max(NEAR));
    points.into_iter().map(|nines| (nines, times.value_at_quantile(1.0 - 10_f64.powf(-nines)) as f64 / 1e6)).collect()
}

fn described(curve: &Curve<'_>) -> String {
    let times = curve.times.nanoseconds();
    let at = |quantile| milliseconds(times.value_at_quantile(quantile) as f64 / 1e6);
    format!("50 % within {}, 99 % within {}, all within {}", at(0.5), at(0.99), at(1.0))
}
