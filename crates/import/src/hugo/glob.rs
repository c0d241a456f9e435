//! Patterns of paths, as Hugo's `target` has them.

/// The largest number of alternatives in braces, multiplied out.
const ALTERNATIVES_MAX: usize = 64;

/// A pattern: `*` and `?` stand for letters other than a slash, `**` for any, and `{a,b}` for either of the two.
#[derive(Debug)]
pub(super) struct Glob(Vec<Vec<Piece>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Letter(char),
    /// Any letter but a slash.
    One,
    /// Any number of letters without a slash.
    Run,
    /// Anything.
    Any,
}

impl Glob {
    /// Reads a pattern. Returns `None` for one with `[…]`, an escape, or too many alternatives.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        if pattern.contains(['[', '\\']) {
            return None;
        }
        let (mut open, mut done) = (vec![pattern.to_lowercase()], Vec::new());
        while let Some(pattern) = open.pop() {
            if open.len() + done.len() >= ALTERNATIVES_MAX {
                return None;
            }
            match alternatives(&pattern)? {
                parts if parts.is_empty() => done.push(pieces(&pattern)),
                parts => open.extend(parts),
            }
        }
        Some(Self(done))
    }

    /// Tells whether the pattern stands for a text, which is in lower case.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.0.iter().any(|pieces| matches(pieces, text))
    }
}

/// Returns the patterns for which the first braces of one stand; none if it has no braces.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let Some(start) = pattern.find('{') else { return Some(Vec::new()) };
    let (mut depth, mut parts, mut from) = (0_usize, Vec::new(), start + 1);
    for (at, c) in pattern[start..].char_indices().map(|(at, c)| (start + at, c)) {
        depth = match c {
            '{' => depth + 1,
            '}' => depth.saturating_sub(1),
            _ => depth,
        };
        if c == ',' && depth == 1 || depth == 0 {
            parts.push(&pattern[from..at]);
            from = at + 1;
        }
        if depth == 0 {
            return Some(parts.iter().map(|part| format!("{}{part}{}", &pattern[..start], &pattern[from..])).collect());
        }
    }
    None
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for c in pattern.chars() {
        match (c, pieces.last()) {
            ('*', Some(Piece::Run | Piece::Any)) => {
                pieces.pop();
                pieces.push(Piece::Any);
            }
            ('*', _) => pieces.push(Piece::Run),
            ('?', _) => pieces.push(Piece::One),
            (c, _) => pieces.push(Piece::Letter(c)),
        }
    }
    pieces
}

/// Follows all ways through the pieces at once, so that no pattern takes longer than its length times that of the text.
fn matches(pieces: &[Piece], text: &str) -> bool {
    let pass = |mut open: Vec<bool>| {
        for (at, piece) in pieces.iter().enumerate() {
            open[at + 1] |= open[at] && matches!(piece, Piece::Run | Piece::Any);
        }
        open
    };
    let mut open = vec![false; pieces.len() + 1];
    open[0] = true;
    open = pass(open);
    for c in text.chars() {
        let mut next = vec![false; pieces.len() + 1];
        for (at, piece) in pieces.iter().enumerate().filter(|(at, _)| open[*at]) {
            match piece {
                Piece::Letter(letter) => next[at + 1] |= *letter == c,
                Piece::One => next[at + 1] |= c != '/',
                Piece::Run => next[at] |= c != '/',
                Piece::Any => next[at] = true,
            }
        }
        open = pass(next);
    }
    open[pieces.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The patterns of Hugo's documentation ("Front matter", "Target") and of its tests.
    #[test]
    fn patterns_stand_for_paths() {
        let cases = [
            ("/articles/**", "/articles/a/b", true),
            ("/articles/**", "/articles", false),
            ("/articles/*", "/articles/a", true),
            ("/articles/*", "/articles/a/b", false),
            ("{/articles,/articles/**}", "/articles", true),
            ("{/articles,/articles/**}", "/articles/a", true),
            ("{/articles,/articles/**}", "/articles-2", false),
            ("/s1**", "/s1/p1", true),
            ("**", "/", true),
            ("/A/{b,c{d,e}}/?", "/a/ce/x", true),
            ("/a/{b,c{d,e}}/?", "/a/c/x", false),
            ("{home,section}", "section", true),
            ("{home,section}", "page", false),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(Glob::new(pattern).expect(pattern).matches(path), expected, "{pattern} {path}");
        }
        let many = "{a,b}".repeat(40);
        for pattern in ["/[ab]/**", "/a\\*", "{a,b", many.as_str()] {
            assert!(Glob::new(pattern).is_none(), "{pattern}");
        }
        assert!(!Glob::new(&"**a".repeat(1_000)).expect("long").matches(&"a".repeat(900)));
    }
}
