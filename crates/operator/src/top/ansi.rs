//! A picture as lines of text, with the colours of a terminal or without.

use std::fmt::Write as _;

use ratatui::{
    buffer::Buffer,
    style::{Color, Modifier},
};

use crate::foreign::columns;

/// Writes a picture as lines. Without colour there is nothing in it but text.
pub(super) fn lines(buffer: &Buffer, colour: bool) -> String {
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let (mut line, mut style) = (String::new(), String::new());
        let mut x = buffer.area.left();
        while x < buffer.area.right() {
            let cell = &buffer[(x, y)];
            let next = if colour { code(cell.fg, cell.modifier) } else { String::new() };
            if next != style {
                let _ = write!(line, "\x1b[0{next}m");
                style = next;
            }
            line.push_str(cell.symbol());
            // A wide letter covers the cells after it.
            x += u16::try_from(columns(cell.symbol()).max(1)).unwrap_or(1);
        }
        text += line.trim_end();
        text += if style.is_empty() { "\n" } else { "\x1b[0m\n" };
    }
    text
}

/// Returns the codes of a style, each after a semicolon (ECMA-48 §8.3.117).
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
    for (one, digits) in [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2"), (Modifier::REVERSED, ";7")] {
        if modifier.contains(one) {
            code += digits;
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use ratatui::{layout::Rect, style::Style};

    use super::*;

    #[test]
    fn lines_end_where_their_text_ends_and_a_wide_letter_takes_two_columns() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 2));
        buffer.set_string(0, 0, "東a", Style::new());
        buffer.set_string(4, 0, "b", Color::Red);
        assert_eq!(lines(&buffer, false), "東a b\n\n");
        assert_eq!(lines(&buffer, true), "東a \x1b[0;31mb\x1b[0m\n\n");
    }
}
