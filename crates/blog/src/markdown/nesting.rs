//! Bounds how deep quotes and lists may lie in each other.
//!
//! The parser looks at every open quote and list for each line, so a hundred thousand lines within ten thousand lists would take an hour. No
//! reader sees more than a few levels.

/// The largest number of quotes and lists around a line.
pub(super) const NESTING_MAX: usize = 100;

/// Returns where the first line of `body` begins that lies deeper than [`NESTING_MAX`].
///
/// It is an upper bound, found without parsing: a line lies in as many lists as its indentation leaves room for, and in what its own marks open.
pub(super) fn too_deep(body: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    for line in body.split_inclusive('\n') {
        if !line.trim().is_empty() {
            let (room, marks) = measure(line);
            depth = depth.min(room / 2) + marks;
            if depth > NESTING_MAX {
                return Some(at);
            }
        }
        at += line.len();
    }
    None
}

/// Returns the columns at the head of a line that can indent it, and the number of marks of quotes and lists among them. A mark needs a column
/// of its own behind it.
fn measure(line: &str) -> (usize, usize) {
    let (mut room, mut marks) = (0, 0);
    let mut kinds = [false; 128];
    let bytes = line.trim_end().as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes[at..].iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
        let ends = |at: usize| bytes.get(at).is_none_or(|byte| matches!(byte, b' ' | b'\t'));
        match byte {
            b' ' => room += 1,
            b'\t' => room += 4,
            b'>' => {
                marks += 1;
                kinds[usize::from(b'>')] = true;
            }
            b'-' | b'+' | b'*' | b':' if ends(at + 1) => {
                marks += 1;
                kinds[usize::from(byte)] = true;
            }
            _ if (1..=9).contains(&digits) && matches!(bytes.get(at + digits), Some(b'.' | b')')) && ends(at + digits + 1) => {
                marks += 1;
                kinds[usize::from(b'0')] = true;
                at += digits;
            }
            _ => return (usize::saturating_sub(room, marks), marks),
        }
        at += 1;
    }
    // A rule may be drawn of as many stars as one likes.
    let is_rule =
        marks >= 3 && kinds.iter().filter(|&&is_there| is_there).count() == 1 && (kinds[usize::from(b'*')] || kinds[usize::from(b'-')]);
    (usize::saturating_sub(room, marks), if is_rule { 0 } else { marks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_would_read_is_told_with_its_line() {
        let deep = NESTING_MAX + 1;
        let indented: String = (0..deep).map(|level| format!("{}- x\n", "  ".repeat(level))).collect();
        let cases = [
            ("x\n\n".to_owned() + &"> ".repeat(deep) + "x", Some(3)),
            (">".repeat(10_000) + "x", Some(1)),
            ("- ".repeat(deep) + "x", Some(1)),
            ("1. ".repeat(deep) + "x", Some(1)),
            ("* > + 1) ".repeat(30) + "x", Some(1)),
            (indented, Some(deep)),
            (("> ".repeat(NESTING_MAX) + "x\n").repeat(3), None),
            // Lists within a quote.
            ((0..deep).map(|level| format!("> {}- x\n", "  ".repeat(level))).collect(), Some(NESTING_MAX)),
            ("* ".repeat(10_000), None),
            ("- ".repeat(10_000) + "\n\n- x", None),
            ("-".repeat(10_000) + "x", None),
            ("    ".repeat(1000) + "- x", None),
            ("x > y\n".repeat(1000), None),
            ("2026. x\n".repeat(1000), None),
        ];
        for (body, expected) in cases {
            let line = too_deep(&body).map(|at| crate::slug::line_at(&body, at));
            assert_eq!(line, expected, "{}…", body.chars().take(20).collect::<String>());
        }
    }
}
