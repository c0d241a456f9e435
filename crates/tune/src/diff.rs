//! Differences between two texts, as `diff -u` shows them.

use std::fmt::Write as _;

/// Lines around a difference.
const CONTEXT: usize = 3;
/// The most lines of a middle part in which differences are looked for; a longer one is shown as replaced. 16 MiB of work.
const LINES_MAX: usize = 2_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Same,
    Old,
    New,
}

/// Returns the differences in unified form; nothing if there are none.
#[must_use]
pub(crate) fn unified(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut text = format!("--- {old_name}\n+++ {new_name}\n");
    let ops = ops(&a, &b);
    let changed: Vec<usize> = ops.iter().enumerate().filter(|(_, op)| **op != Op::Same).map(|(at, _)| at).collect();
    let mut next = 0;
    while let Some(&first) = changed.get(next) {
        let mut last = first;
        while let Some(&further) = changed.get(next).filter(|at| **at <= last + 2 * CONTEXT + 1) {
            last = further;
            next += 1;
        }
        let (from, to) = (first.saturating_sub(CONTEXT), (last + CONTEXT + 1).min(ops.len()));
        let count = |range: &[Op], but: Op| range.iter().filter(|op| **op != but).count();
        let (old_at, new_at) = (count(&ops[..from], Op::New), count(&ops[..from], Op::Old));
        let (old_lines, new_lines) = (count(&ops[from..to], Op::New), count(&ops[from..to], Op::Old));
        let begin = |at: usize, lines: usize| if lines == 0 { at } else { at + 1 };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "@@ -{},{old_lines} +{},{new_lines} @@", begin(old_at, old_lines), begin(new_at, new_lines));
        let (mut i, mut j) = (old_at, new_at);
        for op in &ops[from..to] {
            let (sign, line) = match op {
                Op::Same => (' ', a[i]),
                Op::Old => ('-', a[i]),
                Op::New => ('+', b[j]),
            };
            i += usize::from(*op != Op::New);
            j += usize::from(*op != Op::Old);
            let _ = writeln!(text, "{sign}{line}");
        }
    }
    text
}

fn ops(a: &[&str], b: &[&str]) -> Vec<Op> {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let tail = a[head..].iter().rev().zip(b[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (x, y) = (&a[head..a.len() - tail], &b[head..b.len() - tail]);
    let mut ops = vec![Op::Same; head];
    if x.len() > LINES_MAX || y.len() > LINES_MAX {
        ops.extend(std::iter::repeat_n(Op::Old, x.len()));
        ops.extend(std::iter::repeat_n(Op::New, y.len()));
    } else {
        // Lengths of the longest common part of what follows.
        let mut common = vec![vec![0_u32; y.len() + 1]; x.len() + 1];
        for i in (0..x.len()).rev() {
            for j in (0..y.len()).rev() {
                common[i][j] = if x[i] == y[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < x.len() || j < y.len() {
            if i < x.len() && j < y.len() && x[i] == y[j] {
                ops.push(Op::Same);
                (i, j) = (i + 1, j + 1);
            } else if i < x.len() && (j == y.len() || common[i + 1][j] >= common[i][j + 1]) {
                ops.push(Op::Old);
                i += 1;
            } else {
                ops.push(Op::New);
                j += 1;
            }
        }
    }
    ops.extend(std::iter::repeat_n(Op::Same, tail));
    ops
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected text is as `diff -u` writes it.
    #[test]
    fn differences_are_shown_as_diff_shows_them() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n";
        let expected = "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -12,3 +12,4 @@\n 12\n 13\n 14\n+15\n";
        assert_eq!(unified("a", "b", old, new), expected);
        assert_eq!(unified("a", "b", old, old), "");
        assert_eq!(unified("/dev/null", "b", "", "x\ny\n"), "--- /dev/null\n+++ b\n@@ -0,0 +1,2 @@\n+x\n+y\n");
    }
}
