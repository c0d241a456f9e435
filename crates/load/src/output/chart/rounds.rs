//! Two sides, round by round: whether the difference was always there.

use super::{
    canvas::{Anchor, Canvas, ChartStyle, Colour},
    scale::Scale,
    time::number_short,
};
use crate::output::quantity::number;

const HEIGHT: f64 = 160.0;

/// The most numbers below the axis.
const MARKS_MAX: usize = 12;

/// Draws the rates of both sides in each pair of rounds. None if there were no rounds.
pub(in crate::output) fn rounds(names: [&str; 2], rounds: &[[f64; 2]], look: ChartStyle<'_>) -> Option<String> {
    if rounds.is_empty() {
        return None;
    }
    let range = |side: usize| {
        let rates = rounds.iter().map(|round| round[side]);
        let (low, high) = rates.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
        format!("{}: {} to {}", names[side], number(low), number(high))
    };
    let mut canvas = Canvas::new(look, "Requests a second, round by round", &format!("{}; {}.", range(0), range(1)));
    let styles = [(Colour::Grey, "5 3"), (Colour::Blue, "")];
    let left = canvas.margin();
    canvas.legend(left, &[1, 0].map(|side| (names[side].to_owned(), styles[side].0, styles[side].1)));
    let scale = Scale::linear(rounds.iter().flatten().copied().fold(0.0, f64::max));
    let marks = scale.marks();
    let widest = marks.iter().map(|mark| number_short(*mark).chars().count()).max().unwrap_or_default() as f64;
    let (left, right) = (left + widest * 6.8 + 18.0, canvas.look.width - canvas.margin() - 12.0);
    let (top, bottom) = (canvas.y + 14.0, canvas.y + 14.0 + HEIGHT);
    let y = |value: f64| bottom - scale.at(value) * (bottom - top);
    let x = |round: usize| left + (right - left) * if rounds.len() > 1 { round as f64 / (rounds.len() - 1) as f64 } else { 0.5 };
    for mark in marks {
        canvas.line([left - 8.0, y(mark), right + 8.0, y(mark)], Colour::Grid, "");
        canvas.text(left - 14.0, y(mark) + 4.0, Anchor::End, Colour::Dim, 12.0, false, &number_short(mark));
    }
    for round in (0..rounds.len()).step_by(rounds.len().div_ceil(MARKS_MAX)) {
        canvas.text(x(round), bottom + 18.0, Anchor::Middle, Colour::Dim, 12.0, false, &(round + 1).to_string());
    }
    for (side, (colour, dash)) in styles.into_iter().enumerate() {
        let line: Vec<_> = rounds.iter().enumerate().map(|(round, rates)| Some((x(round), y(rates[side])))).collect();
        canvas.path(&line, colour, dash);
    }
    canvas.y = bottom + 22.0;
    Some(canvas.finish())
}
