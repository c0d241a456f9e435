//! Bars beside each other: before and after.

use super::canvas::{Anchor, Canvas, ChartStyle, Colour};

/// A bar.
#[derive(Debug, Clone)]
pub(in crate::output) struct Bar {
    /// The name of what it stands for.
    pub(in crate::output) name: String,
    pub(in crate::output) value: f64,
    /// The interval in which the value may be, too.
    pub(in crate::output) interval: Option<(f64, f64)>,
    /// The value, as it is written.
    pub(in crate::output) words: String,
    pub(in crate::output) colour: Colour,
}

/// Bars of one scale.
#[derive(Debug, Clone)]
pub(in crate::output) struct Bars {
    /// The name of what they measure.
    pub(in crate::output) heading: String,
    /// The text of the comparison, at the right of the heading.
    pub(in crate::output) note: String,
    pub(in crate::output) bars: Vec<Bar>,
}

const BAR: f64 = 20.0;
const STEP: f64 = 27.0;

/// Draws groups of bars, each group with its own scale.
pub(in crate::output) fn bars(title: &str, description: &str, groups: &[Bars], look: ChartStyle<'_>) -> String {
    let mut canvas = Canvas::new(look, title, description);
    let letters = |of: fn(&Bar) -> &str| {
        groups.iter().flat_map(|group| &group.bars).map(|bar| of(bar).chars().count()).max().unwrap_or_default() as f64
    };
    let names = (letters(|bar| &bar.name) * 7.4).min(look.width * 0.3);
    let values = letters(|bar| &bar.words) * 7.4 + 12.0;
    let left = canvas.margin() + names + 10.0;
    let room = (look.width - canvas.margin() - left - values).max(20.0);
    for group in groups {
        canvas.y += 26.0;
        canvas.text(canvas.margin(), canvas.y, Anchor::Start, Colour::Text, 14.0, true, &group.heading);
        if !group.note.is_empty() {
            // On a phone there is no room beside the heading.
            if look.is_narrow() {
                canvas.y += 18.0;
                canvas.text(canvas.margin(), canvas.y, Anchor::Start, Colour::Dim, 12.5, false, &group.note);
            } else {
                canvas.text(look.width - canvas.margin(), canvas.y, Anchor::End, Colour::Dim, 13.0, false, &group.note);
            }
        }
        canvas.y += 12.0;
        let most = group.bars.iter().map(|bar| bar.interval.map_or(bar.value, |(_, high)| high.max(bar.value))).fold(0.0, f64::max);
        let scaled = |value: f64| if most > 0.0 && value.is_finite() { value / most * room } else { 0.0 };
        for bar in &group.bars {
            let width = scaled(bar.value).max(2.0);
            canvas.text(left - 10.0, canvas.y + BAR - 5.0, Anchor::End, Colour::Text, 13.0, false, &bar.name);
            canvas.rect([left, canvas.y, width, BAR], bar.colour, 1.0);
            let mut end = left + width;
            let wide = |(low, high): &(f64, f64)| scaled(*high) - scaled(*low) > 4.0;
            if let Some((low, high)) = bar.interval.filter(wide) {
                let (low, high, middle) = (left + scaled(low), left + scaled(high), canvas.y + BAR / 2.0);
                canvas.line([low, middle, high, middle], Colour::Text, "");
                for edge in [low, high] {
                    canvas.line([edge, middle - 4.0, edge, middle + 4.0], Colour::Text, "");
                }
                end = end.max(high);
            }
            canvas.text(end + 8.0, canvas.y + BAR - 5.0, Anchor::Start, Colour::Text, 13.0, true, &bar.words);
            canvas.y += STEP;
        }
    }
    canvas.finish()
}
