//! Lines of a file by places in its text.

use std::cell::OnceCell;

/// The lines of a text. They are counted when somebody asks for the first one.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    text: &'t str,
    /// The line of the file on which the text begins.
    first: usize,
    ends: OnceCell<Vec<usize>>,
}

impl<'t> Lines<'t> {
    pub(super) const fn new(text: &'t str, first: usize) -> Self {
        Self { text, first, ends: OnceCell::new() }
    }

    /// Returns the line of the file on which the byte `offset` of the text is.
    pub(super) fn at(&self, offset: usize) -> usize {
        let ends = self.ends.get_or_init(|| self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect());
        self.first + ends.partition_point(|&end| end < offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_file() {
        let lines = Lines::new("a\nbc\n\nd", 5);
        let found: Vec<_> = (0..8).map(|offset| lines.at(offset)).collect();
        assert_eq!(found, [5, 5, 6, 6, 6, 7, 8, 8]);
    }
}
