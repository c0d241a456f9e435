//! Finds the end of a content in chunks (RFC 9112 §7.1), however it is cut into pieces.

use super::response::Malformed;

/// The longest line of a chunk's size with its extensions, and the most bytes of trailers.
const LINE_MAX: u32 = 16 << 10;

/// Says where in the chunks the reader stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// The reader is in the digits of a chunk's size.
    Size { digits: u8 },
    /// The reader is in the extensions after the size, up to the end of the line.
    Extension,
    /// The reader is in the chunk's data.
    Data,
    /// The reader is at the line end after the data.
    DataEnd,
    /// The reader is in the trailers: at the beginning of a line, or within one.
    Trailers { line: bool },
    /// The reader is after the last chunk and its trailers.
    End,
}

/// A reader of chunks. It keeps nothing of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunks {
    at: At,
    left: u64,
    overhead: u32,
}

impl Chunks {
    /// Makes a reader that stands before the first chunk.
    pub(crate) const fn new() -> Self {
        Self { at: At::Size { digits: 0 }, left: 0, overhead: 0 }
    }

    /// Reads on. Each piece of the content goes to `piece`. Returns how many bytes of `bytes` belong to the chunks, and whether these have ended.
    pub(crate) fn read(&mut self, bytes: &[u8], mut piece: impl FnMut(&[u8])) -> Result<(usize, bool), Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            if self.at == At::Data {
                let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len() - at);
                piece(&bytes[at..at + length]);
                at += length;
                self.left -= length as u64;
                if self.left == 0 {
                    self.at = At::DataEnd;
                }
                continue;
            }
            let byte = bytes[at];
            at += 1;
            self.overhead += 1;
            if self.overhead > LINE_MAX {
                return Err(Malformed);
            }
            self.at = match (self.at, byte) {
                (At::Size { digits: 0..16 }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                    let digit = char::from(byte).to_digit(16).ok_or(Malformed)?;
                    self.left = self.left << 4 | u64::from(digit);
                    let At::Size { digits } = self.at else { return Err(Malformed) };
                    At::Size { digits: digits + 1 }
                }
                (At::Size { digits: 1.. }, b';' | b' ' | b'\t' | b'\r') => At::Extension,
                (At::Size { digits: 1.. } | At::Extension, b'\n') => {
                    self.overhead = 0;
                    if self.left == 0 { At::Trailers { line: false } } else { At::Data }
                }
                (At::Extension, _) => At::Extension,
                (At::DataEnd, b'\r') => At::DataEnd,
                (At::DataEnd, b'\n') => At::Size { digits: 0 },
                (At::Trailers { line: false }, b'\r') => At::Trailers { line: false },
                (At::Trailers { line: false }, b'\n') => At::End,
                (At::Trailers { .. }, b'\n') => At::Trailers { line: false },
                (At::Trailers { .. }, _) => At::Trailers { line: true },
                _ => return Err(Malformed),
            };
            if self.at == At::End {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool, usize), Malformed> {
        let (mut chunks, mut content, mut ended, mut rest) = (Chunks::new(), Vec::new(), false, 0);
        for piece in pieces {
            assert!(!ended, "nothing is read after the end");
            let (used, end) = chunks.read(piece, |data| content.extend_from_slice(data))?;
            (ended, rest) = (end, piece.len() - used);
        }
        Ok((content, ended, rest))
    }

    #[test]
    fn chunks_end_at_the_empty_one_and_its_trailers_wherever_they_are_cut() {
        let whole = b"5\r\nhello\r\n6;ext=\"a;b\"\r\n world\r\n0\r\nDigest: x\r\n\r\nHTTP";
        for cut in 1..whole.len() - 4 {
            let (first, second) = whole.split_at(cut);
            let (content, ended, rest) = content(&[first, second]).expect("these are chunks");
            assert_eq!((content.as_slice(), ended, rest), (&b"hello world"[..], true, 4), "cut at {cut}");
        }
        assert_eq!(content(&[b"5\r\nhel"]).expect("as far as it goes"), (b"hel".to_vec(), false, 0));
    }

    #[test]
    fn what_is_no_chunk_is_malformed() {
        for bytes in [&b"hello\r\n"[..], b"\r\n", b"5\r\nhelloworld", b"-1\r\n", b"11112222333344445\r\n"] {
            assert!(content(&[bytes]).is_err(), "{bytes:?}");
        }
    }
}
