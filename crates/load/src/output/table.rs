//! Tables of text: columns as wide as what is in them.

/// Writes rows in columns: the first one to the left, all others to the right. Lines have no spaces at their ends.
pub(super) fn columns(rows: &[Vec<String>], indent: &str) -> String {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default();
    let widths: Vec<_> = (0..rows.iter().map(Vec::len).max().unwrap_or_default()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = indent.to_owned();
        for (column, cell) in row.iter().enumerate() {
            let space = " ".repeat(widths[column] - cell.chars().count());
            if column == 0 {
                line += &format!("{cell}{space}");
            } else {
                line += &format!("  {space}{cell}");
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Writes rows as a table of Markdown. The first row is the head.
pub(super) fn markdown(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<_> = row.iter().map(|cell| cell.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;")).collect();
        text += &format!("| {} |\n", cells.join(" | "));
        if index == 0 {
            let lines: Vec<_> = (0..row.len()).map(|column| if column == 0 { "---" } else { "---:" }).collect();
            text += &format!("|{}|\n", lines.join("|"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a", "1,000 µs"], vec!["long", "2"], vec![""]].map(|row| row.into_iter().map(str::to_owned).collect());
        assert_eq!(columns(&rows, "  "), "  a     1,000 µs\n  long         2\n\n");
    }

    #[test]
    fn a_cell_cannot_break_out_of_its_table() {
        let rows = [vec!["head".to_owned(), "b".to_owned()], vec!["a|b\\|<b>".to_owned(), "1".to_owned()]];
        assert_eq!(markdown(&rows), "| head | b |\n|---|---:|\n| a\\|b\\\\\\|&lt;b> | 1 |\n");
    }
}
