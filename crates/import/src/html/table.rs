//! Tables: those that Markdown can hold, and those that stay HTML.

use markup5ever_rcdom::Handle;

use super::{
    Around, Writer, as_paragraph,
    dom::{all, attribute, children, first, is_block, tag},
    raw::raw_block,
};

impl Writer<'_> {
    /// Writes a table. One without a head, with joined cells or with blocks in them has no form in Markdown.
    pub(super) fn table(&self, table: &Handle) -> Vec<String> {
        let rows = all(table, |node| tag(node) == "tr");
        let cells: Vec<Vec<Handle>> =
            rows.iter().map(|row| children(row).into_iter().filter(|cell| matches!(tag(cell), "td" | "th")).collect::<Vec<_>>()).collect();
        let columns = cells.iter().map(Vec::len).max().unwrap_or_default();
        let has_head = cells.first().is_some_and(|row| !row.is_empty() && row.iter().all(|cell| tag(cell) == "th"))
            || first(table, |node| tag(node) == "thead").is_some_and(|head| first(&head, |node| tag(node) == "tr").is_some());
        let is_plain = |cell: &Handle| {
            let is_joined = ["colspan", "rowspan"].iter().any(|key| attribute(cell, key).is_some_and(|count| count.trim() != "1"));
            let blocks = children(cell).into_iter().flat_map(|child| all(&child, is_block)).collect::<Vec<_>>();
            !is_joined && (blocks.is_empty() || blocks.len() == 1 && tag(&blocks[0]) == "p")
        };
        if columns == 0 || !has_head || !cells.iter().flatten().all(is_plain) {
            return if columns == 0 { self.blocks(&children(table)) } else { vec![raw_block(table, self.targets)] };
        }
        let around = Around { is_line: true, is_cell: true, after: Some(' ') };
        let line = |row: &[Handle]| {
            let texts =
                (0..columns).map(|at| row.get(at).map(|cell| self.inline(&children(cell), around).trim().to_owned()).unwrap_or_default());
            format!("| {} |", texts.collect::<Vec<_>>().join(" | "))
        };
        let rule = |cell: Option<&Handle>| match cell.and_then(alignment).as_deref() {
            Some("center") => ":-:",
            Some("right") => "--:",
            Some("left") => ":--",
            _ => "---",
        };
        let mut lines = vec![line(&cells[0])];
        // A column is aligned as its first cell below the head is, or else as the head.
        let body = cells.get(1).unwrap_or(&cells[0]);
        lines.push(format!(
            "| {} |",
            (0..columns).map(|at| rule(body.get(at).or_else(|| cells[0].get(at)))).collect::<Vec<_>>().join(" | ")
        ));
        lines.extend(cells[1..].iter().filter(|row| !row.is_empty()).map(|row| line(row)));
        let caption = first(table, |node| tag(node) == "caption");
        let caption = caption.and_then(|caption| as_paragraph(&self.inline(&children(&caption), Around::default())));
        std::iter::once(lines.join("\n")).chain(caption).collect()
    }
}

fn alignment(cell: &Handle) -> Option<String> {
    let of_style = attribute(cell, "style").and_then(|style| {
        let value = style.split("text-align:").nth(1)?.split(';').next()?.trim().to_owned();
        Some(value)
    });
    let of_class = attribute(cell, "class")
        .and_then(|classes| classes.split("has-text-align-").nth(1).map(|rest| rest.split(' ').next().unwrap_or_default().to_owned()));
    of_style.or(of_class).or_else(|| attribute(cell, "align")).map(|value| value.to_ascii_lowercase())
}
