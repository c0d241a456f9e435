//! How text looks: plain, and with colour where a person reads it on a terminal.

use std::{fmt, io::IsTerminal};

/// Whether colour may be used on `stream`: it is a terminal, and the environment does not say `NO_COLOR` (no-color.org).
pub(crate) fn has_colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A way to stand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Bold,
    Dim,
    Green,
    Yellow,
    Red,
}

/// Text that stands out where there is colour, and is itself where there is none.
pub(crate) fn styled(text: impl fmt::Display, style: Style, colour: bool) -> String {
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
