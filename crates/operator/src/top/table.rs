//! A table that fits into its room: columns are as wide as what stands in them, those that matter least are left out first, and the last one has the rest.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

use crate::foreign::{columns, fit, visible};

/// The room that the last column has at least, unless all other columns are gone.
const REST_MIN: usize = 12;

/// A column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// The most columns of the terminal that it takes. The last column takes all that is left.
    pub(super) width_max: usize,
    /// The order in which it may be left out: the highest first, 0 never.
    pub(super) optional: u8,
    /// Whether it is a number.
    pub(super) is_number: bool,
}

/// Makes a column of numbers.
pub(super) const fn number(title: &'static str, optional: u8) -> Column {
    Column { title, width_max: 12, optional, is_number: true }
}

/// Makes a column of text.
pub(super) const fn text(title: &'static str, width_max: usize, optional: u8) -> Column {
    Column { title, width_max, optional, is_number: false }
}

/// Holds what stands in a row and a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) style: Style,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, style: Style::new() }
    }
}

/// Makes a cell of what a stranger wrote.
pub(super) fn foreign(text: &str) -> Cell {
    visible(text).into_owned().into()
}

/// Makes a cell with a colour.
pub(super) fn coloured(text: impl Into<String>, colour: Color) -> Cell {
    Cell { text: text.into(), style: Style::new().fg(colour) }
}

/// A row, with what it says in full when it is chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// The key of what the row is about: a choice stays with it when the rows around it change.
    pub(super) key: String,
    pub(super) cells: Vec<Cell>,
    /// The texts that there are to say, with a label each.
    pub(super) details: Vec<(&'static str, String)>,
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    /// The text that stands there when there is no row.
    pub(super) empty: &'static str,
}

impl Table {
    /// Finds out how wide each column is in so much room; 0: it is left out.
    fn widths(&self, room: usize) -> Vec<usize> {
        let Some(last) = self.columns.len().checked_sub(1) else { return Vec::new() };
        let needed = |(place, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.cells.get(place)).map(|cell| columns(&cell.text));
            cells.max().unwrap_or_default().max(columns(column.title)).min(column.width_max)
        };
        // A column in which nothing stands is left out, unless it is the last one.
        let is_blank = |place: usize| self.rows.iter().all(|row| row.cells.get(place).is_none_or(|cell| cell.text.is_empty()));
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(needed).collect();
        for (place, column) in self.columns.iter().enumerate().take(last) {
            if column.optional > 0 && is_blank(place) {
                widths[place] = 0;
            }
        }
        let taken = |widths: &[usize]| widths[..last].iter().filter(|width| **width > 0).map(|width| width + 1).sum::<usize>();
        while taken(&widths) + REST_MIN > room {
            let optional = (0..last).filter(|place| widths[*place] > 0 && self.columns[*place].optional > 0);
            let Some(least) = optional.max_by_key(|place| self.columns[*place].optional) else { break };
            widths[least] = 0;
        }
        // What remains has to share: texts before numbers, whose end nobody may lose.
        while taken(&widths) + REST_MIN > room {
            let longest =
                (0..last).filter(|place| !self.columns[*place].is_number && widths[*place] > 4).max_by_key(|place| widths[*place]);
            let Some(longest) = longest else { break };
            widths[longest] -= 1;
        }
        widths[last] = room.saturating_sub(taken(&widths));
        widths
    }

    /// Draws title of the columns and rows from `first` on. `chosen` stands out.
    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect, first: usize, chosen: Option<usize>) {
        if area.is_empty() {
            return;
        }
        let width = usize::from(area.width);
        if self.rows.is_empty() {
            for (line, y) in wrapped(self.empty, width).iter().zip(area.y..area.bottom()) {
                buffer.set_stringn(area.x, y, line, width, Modifier::DIM);
            }
            return;
        }
        let widths = self.widths(width);
        let titles: Vec<Cell> = self.columns.iter().map(|column| column.title.to_owned().into()).collect();
        self.line(buffer, area, area.y, &widths, &titles);
        buffer.set_style(Rect { height: 1, ..area }, Modifier::DIM);
        for ((place, row), y) in self.rows.iter().enumerate().skip(first).zip(area.y + 1..area.bottom()) {
            self.line(buffer, area, y, &widths, &row.cells);
            if chosen == Some(place) {
                buffer.set_style(Rect { y, height: 1, ..area }, Modifier::REVERSED);
            }
        }
    }

    fn line(&self, buffer: &mut Buffer, area: Rect, y: u16, widths: &[usize], cells: &[Cell]) {
        let mut x = usize::from(area.x);
        for ((cell, column), width) in cells.iter().zip(&self.columns).zip(widths.iter().copied()) {
            if width == 0 {
                continue;
            }
            let shown = fit(&cell.text, width);
            let before = if column.is_number { width.saturating_sub(columns(&shown)) } else { 0 };
            let at = u16::try_from(x + before).unwrap_or(u16::MAX);
            if at < area.right() {
                buffer.set_stringn(at, y, &shown, usize::from(area.right() - at), cell.style);
            }
            x += width + 1;
        }
    }
}

/// Divides text into lines of at most `width` columns, between words where it can.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut taken = 0;
    for word in text.split(' ') {
        let needed = columns(word);
        let line = lines.last_mut().expect("there is one from the beginning on");
        if taken > 0 && taken + 1 + needed <= width {
            line.push(' ');
            line.push_str(word);
            taken += 1 + needed;
            continue;
        }
        if taken > 0 {
            lines.push(String::new());
            taken = 0;
        }
        for letter in word.chars() {
            let needed = columns(letter.encode_utf8(&mut [0; 4]));
            if taken + needed > width && taken > 0 {
                lines.push(String::new());
                taken = 0;
            }
            lines.last_mut().expect("there is one from the beginning on").push(letter);
            taken += needed;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |cells: [&str; 4]| Row { cells: cells.iter().map(|text| foreign(text)).collect(), ..Row::default() };
        Table {
            columns: vec![number("time", 0), number("requests", 2), text("reason", 20, 0), text("example", 0, 0)],
            rows: vec![row(["41 s", "1,203", "cookie PHPSESSID", "/shop/"]), row(["1 s", "7", "no-store", "/"])],
            empty: "Nothing yet: here it would stand.",
        }
    }

    fn drawn(table: &Table, width: u16) -> Vec<String> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, 3));
        let area = buffer.area;
        table.draw(&mut buffer, area, 0, None);
        (0..3).map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned()).collect()
    }

    #[test]
    fn columns_are_as_wide_as_they_must_be_and_leave_in_their_order() {
        assert_eq!(
            drawn(&table(), 50),
            ["time requests reason           example", "41 s    1,203 cookie PHPSESSID /shop/", " 1 s        7 no-store         /"]
        );
        assert_eq!(drawn(&table(), 36), ["time reason           example", "41 s cookie PHPSESSID /shop/", " 1 s no-store         /"]);
        assert_eq!(drawn(&table(), 26), ["time reason   example", "41 s cookie … /shop/", " 1 s no-store /"]);
        for width in 0..60 {
            assert!(drawn(&table(), width).iter().all(|line| columns(line) <= width.into()));
        }
    }

    #[test]
    fn a_table_without_rows_says_what_would_stand_there() {
        let table = Table { rows: Vec::new(), ..table() };
        assert_eq!(drawn(&table, 20), ["Nothing yet: here it", "would stand.", ""]);
    }

    #[test]
    fn lines_end_between_words_where_they_can() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("", 3), [""]);
        assert_eq!(wrapped("東京都", 5), ["東京", "都"]);
        assert_eq!(wrapped("a b", 0), ["a", "b"]);
    }
}
