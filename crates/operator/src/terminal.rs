//! Decides how text looks: plain, and with colour where a person reads it on a terminal.

use std::{fmt, io::IsTerminal};

/// Tells whether colour may be used on `stream`: it is a terminal, and the environment does not say `NO_COLOR` (no-color.org).
pub fn has_colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Says how text stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A label or a title.
    Bold,
    /// Something beside the point.
    Dim,
    /// It is well.
    Green,
    /// It is worth a look.
    Yellow,
    /// It is not well.
    Red,
}

/// Gives `text` a style where there is colour, and leaves it as it is where there is none.
pub fn styled(text: impl fmt::Display, style: Style, colour: bool) -> String {
    if !colour {
        return text.to_string();
    }
    let code = match style {
        Style::Bold => 1,
        Style::Dim => 2,
        Style::Green => 32,
        Style::Yellow => 33,
        Style::Red => 31,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}
