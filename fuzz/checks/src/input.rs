//! How the bytes of an input become arguments.
//!
//! Where the argument is text, inputs are text too: blocks parted by an empty line, field lines as `name: value`. So a corpus can be read and
//! written by hand, and what the fuzzer changes stays near what clients send. Operations are decoded byte by byte ([`Reader`]); whatever
//! is missing reads as zero, so every input means something.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};

/// `N` blocks, parted by empty lines; missing ones are empty, and the last takes what is left.
pub(crate) fn blocks<const N: usize>(data: &[u8]) -> [&[u8]; N] {
    let mut rest = Some(data);
    let mut left = N;
    [(); N].map(|()| {
        left -= 1;
        let Some(text) = rest else { return &[][..] };
        let end = if left == 0 { None } else { text.windows(2).position(|pair| pair == b"\n\n") };
        rest = end.map(|at| &text[at + 2..]);
        end.map_or(text, |at| &text[..at])
    })
}

/// The lines of a block, without their ends.
pub(crate) fn lines(block: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    block.split(|&byte| byte == b'\n')
}

/// The lines that can be field values.
pub(crate) fn values(block: &[u8]) -> Vec<HeaderValue> {
    lines(block).take(64).filter_map(|line| HeaderValue::from_bytes(line).ok()).collect()
}

/// Field lines, with names as written. What is not a field line is left out, and whitespace around values, as every parser does.
pub(crate) fn field_lines(block: &[u8]) -> Vec<(&str, &[u8])> {
    let field = |line| {
        let at = <[u8]>::iter(line).position(|&byte| byte == b':')?;
        let (name, value) = (std::str::from_utf8(&line[..at]).ok()?, line[at + 1..].trim_ascii());
        let valid = HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_bytes(value).is_ok();
        valid.then_some((name, value))
    };
    lines(block).filter_map(field).take(100).collect()
}

/// Field lines, collected.
pub(crate) fn fields(block: &[u8]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in field_lines(block) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value)) {
            map.append(name, value);
        }
    }
    map
}

/// One field of one or more lines, collected.
pub(crate) fn field(name: &'static str, lines: &[HeaderValue]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in lines {
        map.append(name, line.clone());
    }
    map
}

/// Text, with a mark for what is not UTF-8.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Takes an input apart byte by byte.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or_default()
    }

    /// As many bytes as that, or what is left.
    pub(crate) fn bytes(&mut self, len: usize) -> &'a [u8] {
        self.0.split_off(..len.min(self.0.len())).unwrap_or_default()
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u8) -> u8 {
        self.byte() % bound
    }

    pub(crate) fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }
}
