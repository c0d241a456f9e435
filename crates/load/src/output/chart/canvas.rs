//! The canvas that charts are drawn on.

use std::fmt::Write as _;

use crate::output::words::tight;

/// A colour of a chart, by what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::output) enum Colour {
    Text,
    Dim,
    Grid,
    Paper,
    Blue,
    Violet,
    Orange,
    Grey,
    Green,
    Lime,
    Red,
    Brown,
}

/// Each colour: its name as a variable, and how it is in the light and in the dark.
pub(in crate::output) const COLOURS: [(Colour, &str, &str, &str); 12] = [
    (Colour::Text, "text", "#1b2330", "#e6edf3"),
    (Colour::Dim, "dim", "#55606d", "#a3adb8"),
    (Colour::Grid, "grid", "#dfe4ea", "#303844"),
    (Colour::Paper, "paper", "#ffffff", "#161b22"),
    (Colour::Blue, "blue", "#1f7a9e", "#4fb3d9"),
    (Colour::Violet, "violet", "#7558b0", "#b199ea"),
    (Colour::Orange, "orange", "#ad540a", "#f0954a"),
    (Colour::Grey, "grey", "#66717d", "#9aa5b1"),
    (Colour::Green, "green", "#2f8a4e", "#57c078"),
    (Colour::Lime, "lime", "#93a81c", "#c3d64f"),
    (Colour::Red, "red", "#c1342b", "#f4776c"),
    (Colour::Brown, "brown", "#83603a", "#c9a57c"),
];

const FONT: &str = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif";

/// The largest width of a letter, as a part of the font's size, in the fonts above. Digits and small letters; capitals are rare.
const LETTER: f64 = 0.58;

/// Says how a chart looks.
#[derive(Debug, Clone, Copy)]
pub(in crate::output) struct ChartStyle<'a> {
    /// The width in pixels.
    pub(in crate::output) width: f64,
    /// The text that makes the names of its parts unique in a page; none: it stands alone.
    page: Option<&'a str>,
}

impl<'a> ChartStyle<'a> {
    /// Makes the look of a chart in a page that sets the colours. `id` names it there.
    pub(in crate::output) const fn page(id: &'a str, width: f64) -> Self {
        Self { width, page: Some(id) }
    }

    /// Makes the look of a chart that stands alone.
    pub(in crate::output) const fn alone() -> Self {
        Self { width: 820.0, page: None }
    }

    /// Returns whether there is little room, as on a phone.
    pub(super) const fn is_narrow(&self) -> bool {
        self.width < 600.0
    }

    /// Returns how many points fit.
    pub(super) fn points_max(&self) -> usize {
        if self.is_narrow() { 180 } else { crate::output::series::POINTS_MAX }
    }

    fn colour(&self, colour: Colour) -> String {
        let (_, name, light, _) = COLOURS.into_iter().find(|(other, ..)| *other == colour).expect("the table has every colour");
        if self.page.is_some() { format!("var(--{name})") } else { light.to_owned() }
    }
}

/// Says where a text is, seen from its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing.
pub(super) struct Canvas<'a> {
    pub(super) look: ChartStyle<'a>,
    out: String,
    title: String,
    description: String,
    /// The lowest line that is used so far.
    pub(super) y: f64,
}

impl<'a> Canvas<'a> {
    /// Makes an empty chart. Its title is drawn where no page says it.
    pub(super) fn new(look: ChartStyle<'a>, title: &str, description: &str) -> Self {
        let mut canvas = Self { look, out: String::new(), title: title.to_owned(), description: description.to_owned(), y: 0.0 };
        if look.page.is_none() {
            canvas.y = 34.0;
            canvas.text(24.0, canvas.y, Anchor::Start, Colour::Text, 17.0, true, title);
            for line in wrapped(&tight(description), (look.width - 48.0) / (12.5 * LETTER)) {
                canvas.y += 18.0;
                canvas.text(24.0, canvas.y, Anchor::Start, Colour::Dim, 12.5, false, &line);
            }
            canvas.y += 12.0;
        }
        canvas
    }

    /// Returns the room at the left and right edge.
    pub(super) const fn margin(&self) -> f64 {
        if self.look.page.is_some() { 2.0 } else { 24.0 }
    }

    #[expect(clippy::too_many_arguments, reason = "they are the attributes of the element")]
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, colour: Colour, size: f64, bold: bool, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let bold = if bold { " font-weight=\"600\"" } else { "" };
        let colour = self.look.colour(colour);
        let _ = writeln!(
            self.out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\"{anchor}{bold}>{}</text>",
            escaped(words)
        );
    }

    pub(super) fn rect(&mut self, [x, y, width, height]: [f64; 4], colour: Colour, opacity: f64) {
        let opacity = if opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() };
        let colour = self.look.colour(colour);
        let _ =
            writeln!(self.out, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"{opacity}/>");
    }

    pub(super) fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], colour: Colour, dash: &str) {
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let colour = self.look.colour(colour);
        let _ = writeln!(self.out, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"{dash}/>");
    }

    /// Draws a line through points. Where there is none, the line has a gap.
    pub(super) fn path(&mut self, points: &[Option<(f64, f64)>], colour: Colour, dash: &str) {
        let mut data = String::new();
        let mut pen_is_down = false;
        for (index, point) in points.iter().enumerate() {
            if let Some((x, y)) = point {
                let _ = write!(data, "{}{x:.1} {y:.1}", if pen_is_down { 'L' } else { 'M' });
                // A point without neighbours is shown as a short line.
                if !pen_is_down && points.get(index + 1).is_none_or(Option::is_none) {
                    let _ = write!(data, "h2");
                }
            }
            pen_is_down = point.is_some();
        }
        if data.is_empty() {
            return;
        }
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let colour = self.look.colour(colour);
        let _ = writeln!(
            self.out,
            "<path d=\"{data}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.75\" stroke-linejoin=\"round\"{dash}/>"
        );
    }

    /// Draws the area between two lines, given by the same positions.
    pub(super) fn area(&mut self, points: &[(f64, f64, f64)], colour: Colour, opacity: f64) {
        if points.is_empty() {
            return;
        }
        let mut data = String::new();
        for (index, (x, upper, _)) in points.iter().enumerate() {
            let _ = write!(data, "{}{x:.1} {upper:.1}", if index == 0 { 'M' } else { 'L' });
        }
        for (x, _, lower) in points.iter().rev() {
            let _ = write!(data, "L{x:.1} {lower:.1}");
        }
        let opacity = if opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() };
        let colour = self.look.colour(colour);
        let _ = writeln!(self.out, "<path d=\"{data}Z\" fill=\"{colour}\"{opacity}/>");
    }

    /// Writes the names of what is drawn, each beside its colour, in as many lines as they need.
    pub(super) fn legend(&mut self, left: f64, names: &[(String, Colour, &str)]) {
        if names.is_empty() {
            return;
        }
        self.y += 16.0;
        let mut x = left;
        for (name, colour, dash) in names {
            let width = 26.0 + name.chars().count() as f64 * 12.0 * LETTER;
            if x + width > self.look.width - self.margin() && x > left {
                x = left;
                self.y += 18.0;
            }
            if *dash == SOLID {
                self.rect([x, self.y - 9.0, 16.0, 10.0], *colour, 1.0);
            } else {
                self.path(&[Some((x, self.y - 4.0)), Some((x + 16.0, self.y - 4.0))], *colour, dash);
            }
            self.text(x + 21.0, self.y, Anchor::Start, Colour::Text, 12.0, false, name);
            x += width + 14.0;
        }
        self.y += 4.0;
    }

    /// Returns the whole chart as SVG.
    pub(super) fn finish(self) -> String {
        let height = (self.y + if self.look.page.is_some() { 4.0 } else { 20.0 }).ceil();
        let width = self.look.width;
        let (title, description) = (escaped(&self.title), escaped(&self.description));
        let (names, of_title, of_description) = match self.look.page {
            Some(id) => (format!("aria-labelledby=\"{id}-t {id}-d\""), format!(" id=\"{id}-t\""), format!(" id=\"{id}-d\"")),
            None => (format!("aria-label=\"{title}\""), String::new(), String::new()),
        };
        let (size, paper) = if self.look.page.is_some() {
            (String::new(), String::new())
        } else {
            let (inner_width, inner_height) = (width - 1.0, height - 1.0);
            let (fill, stroke) = (self.look.colour(Colour::Paper), self.look.colour(Colour::Grid));
            (
                format!(" width=\"{width}\" height=\"{height}\""),
                format!(
                    "<rect x=\"0.5\" y=\"0.5\" width=\"{inner_width}\" height=\"{inner_height}\" rx=\"8\" fill=\"{fill}\" stroke=\"{stroke}\"/>\n"
                ),
            )
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\"{size} viewBox=\"0 0 {width} {height}\" role=\"img\" {names} font-family=\"{FONT}\">\n\
             <title{of_title}>{title}</title>\n<desc{of_description}>{description}</desc>\n{paper}{}</svg>\n",
            self.out
        )
    }
}

/// The mark of a name in a legend that stands for an area.
pub(super) const SOLID: &str = "solid";

/// Breaks text into lines of at most so many letters.
fn wrapped(text: &str, letters: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one from the beginning");
        if !line.is_empty() && (line.chars().count() + 1 + word.chars().count()) as f64 > letters {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Writes text as text of XML. What XML cannot hold becomes U+FFFD. A no-break space becomes a space: no line is broken any more, and sanitizers that
/// write HTML, as that of Ghost does with an uploaded picture, make an entity of it that XML does not know.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{a0}' => out.push(' '),
            _ if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}
