//! Content as a whole, made once for many readers.

use std::io::{self, Read, Write};

use semantics::coding::Coding;

/// The length beyond which content is encoded with less effort: the best takes a second per megabyte or two.
const BEST_MAX: usize = 2 << 20;

/// The level for gzip, which every page gets as soon as it is stored. Two levels more take half as long again for a page, or longer, and make it smaller
/// by three to five thousandths.
const GZIP_LEVEL: u32 = 6;
const BROTLI_QUALITY_BEST: i32 = 11;
const BROTLI_QUALITY_LONG: i32 = 7;
const ZSTD_LEVEL_BEST: i32 = 19;
const ZSTD_LEVEL_LONG: i32 = 12;
/// The largest window for zstd, as a power of two: by RFC 9659 a decoder for `zstd` need not accept a larger one than 8 MiB, and browsers
/// do not.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// The part of its length by which encoded content must be smaller to be worth keeping.
const PAYS: usize = 32;

/// Encodes `content` in `coding`, as small as is reasonable. Returns `None` if that is not worth it: the result is not at least about 3 %
/// smaller.
///
/// It takes milliseconds for gzip, and for the others half a second for each megabyte: do not call it on a worker's thread.
#[must_use]
pub fn encode(coding: Coding, content: &[u8]) -> Option<Vec<u8>> {
    // Writing into memory does not fail; if a coder fails, there is no such form.
    let coded = match coding {
        Coding::Gzip => gzip(content),
        Coding::Brotli => brotli(content),
        Coding::Zstd => zstd(content),
    }
    .ok()?;
    (coded.len() < content.len() - content.len() / PAYS).then_some(coded)
}

/// Content that was coded in gzip and is decoded a piece at a time, so that whoever decodes it can do something else in between.
///
/// Its length is known from elsewhere: no more than that is decoded, whatever the coded bytes claim.
#[derive(Debug)]
pub struct Decoding<'a> {
    decoder: flate2::bufread::GzDecoder<&'a [u8]>,
    left: u64,
}

/// The coded bytes are not those of content of this length, or they are damaged: their checksum does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged;

impl<'a> Decoding<'a> {
    /// Begins to decode content of this length.
    #[must_use]
    pub fn of_gzip(coded: &'a [u8], length: u64) -> Self {
        Self { decoder: flate2::bufread::GzDecoder::new(coded), left: length }
    }

    /// Returns how many bytes are still to be decoded.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Fills a piece with the next bytes, which it must not have more room for than are left. With the last of them, length and checksum are
    /// verified: nothing is to be used before.
    ///
    /// # Errors
    /// Fails if the coded bytes are damaged, or those of other content.
    pub fn fill(&mut self, piece: &mut [u8]) -> Result<(), Damaged> {
        self.left = self.left.checked_sub(piece.len() as u64).ok_or(Damaged)?;
        self.decoder.read_exact(piece).map_err(|_| Damaged)?;
        // The decoder looks at the checksum when it is asked for more than there is.
        let is_over = self.left > 0 || matches!(self.decoder.read(&mut [0]), Ok(0));
        if is_over { Ok(()) } else { Err(Damaged) }
    }
}

/// Decodes content of a known length that was coded in gzip. Returns `None` if the coded bytes are damaged, or those of other content.
#[must_use]
pub fn decode_gzip(coded: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut content = vec![0; length];
    Decoding::of_gzip(coded, length as u64).fill(&mut content).ok()?;
    Some(content)
}

/// Returns whether these bytes are `content` in gzip. It costs as much as decoding them, unless they differ early.
#[must_use]
pub fn is_gzip_of(coded: &[u8], content: &[u8]) -> bool {
    let mut decoding = Decoding::of_gzip(coded, content.len() as u64);
    let mut piece = [0; 4096];
    content.chunks(piece.len()).all(|expected| {
        let piece = &mut piece[..expected.len()];
        decoding.fill(piece).is_ok() && *piece == *expected
    })
}

fn gzip(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut coder = flate2::write::GzEncoder::new(room(content), flate2::Compression::new(GZIP_LEVEL));
    coder.write_all(content)?;
    exact(coder.finish()?)
}

fn brotli(content: &[u8]) -> io::Result<Vec<u8>> {
    let best = content.len() <= BEST_MAX;
    let quality = if best { BROTLI_QUALITY_BEST } else { BROTLI_QUALITY_LONG };
    let params = brotli::enc::BrotliEncoderParams { quality, lgwin: 22, size_hint: content.len(), ..Default::default() };
    let mut coded = room(content);
    brotli::BrotliCompress(&mut &*content, &mut coded, &params)?;
    exact(coded)
}

fn zstd(content: &[u8]) -> io::Result<Vec<u8>> {
    let level = if content.len() <= BEST_MAX { ZSTD_LEVEL_BEST } else { ZSTD_LEVEL_LONG };
    let mut coder = zstd::stream::write::Encoder::new(room(content), level)?;
    coder.set_pledged_src_size(Some(content.len() as u64))?;
    if content.len() > 1 << ZSTD_WINDOW_LOG_MAX {
        coder.window_log(ZSTD_WINDOW_LOG_MAX)?;
    }
    coder.write_all(content)?;
    exact(coder.finish()?)
}

fn room(content: &[u8]) -> Vec<u8> {
    Vec::with_capacity(content.len() / 4 + 64)
}

/// Returns the bytes in an allocation of exactly their size: they are kept for long.
fn exact(mut coded: Vec<u8>) -> io::Result<Vec<u8>> {
    coded.shrink_to_fit();
    Ok(coded)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn decode(coding: Coding, coded: &[u8]) -> Vec<u8> {
        let mut decoded = Vec::new();
        let read = match coding {
            Coding::Gzip => flate2::read::GzDecoder::new(coded).read_to_end(&mut decoded),
            Coding::Brotli => brotli::Decompressor::new(coded, 4096).read_to_end(&mut decoded),
            Coding::Zstd => zstd::stream::read::Decoder::new(coded).expect("a decoder").read_to_end(&mut decoded),
        };
        read.expect("it can be decoded");
        decoded
    }

    fn page(paragraphs: usize) -> Vec<u8> {
        (0..paragraphs).map(|n| format!("<p class=\"post\">Paragraph {n} of {}.</p>\n", n * n % 97)).collect::<String>().into_bytes()
    }

    #[test]
    fn what_is_decoded_is_what_was_coded() {
        for coding in Coding::ALL {
            let page = page(500);
            let coded = encode(coding, &page).expect("text pays");
            assert!(coded.len() < page.len() / 4, "{coding:?}: {}", coded.len());
            assert_eq!(decode(coding, &coded), page, "{coding:?}");
        }
    }

    #[test]
    fn longer_content_is_coded_too() {
        let page = page(60_000);
        assert!(page.len() > BEST_MAX);
        for coding in Coding::ALL {
            assert_eq!(decode(coding, &encode(coding, &page).expect("text pays")), page, "{coding:?}");
        }
    }

    #[test]
    fn gzip_is_decoded_piece_by_piece() {
        let page = page(3_000);
        let coded = encode(Coding::Gzip, &page).expect("text pays");
        assert_eq!(decode_gzip(&coded, page.len()).as_deref(), Some(&page[..]));
        let mut decoding = Decoding::of_gzip(&coded, page.len() as u64);
        let mut pieces = Vec::new();
        while decoding.left() > 0 {
            let mut piece = vec![0; decoding.left().min(10_000) as usize];
            decoding.fill(&mut piece).expect("it is sound");
            pieces.extend_from_slice(&piece);
        }
        assert_eq!(pieces, page);
        assert!(is_gzip_of(&coded, &page));
        assert_eq!(decoding.fill(&mut [0]), Err(Damaged), "there is no more");
    }

    /// RFC 1952 §2.3.1: the last eight bytes are the checksum and the length of the content.
    #[test]
    fn damaged_gzip_is_not_decoded() {
        let page = page(300);
        let coded = encode(Coding::Gzip, &page).expect("text pays");
        for length in [0, 1, page.len() - 1, page.len() + 1, page.len() * 2] {
            assert_eq!(decode_gzip(&coded, length), None, "{length} bytes, not {}", page.len());
        }
        for end in [0, 5, 10, coded.len() / 2, coded.len() - 1] {
            assert_eq!(decode_gzip(&coded[..end], page.len()), None, "cut off at {end}");
        }
        for at in (20..coded.len()).step_by(7).chain(coded.len() - 8..coded.len()) {
            let mut flipped = coded.clone();
            flipped[at] ^= 4;
            assert_eq!(decode_gzip(&flipped, page.len()), None, "a bit of byte {at}");
            assert!(!is_gzip_of(&flipped, &page));
        }
        let mut other = page.clone();
        other[page.len() - 2] ^= 1;
        assert!(!is_gzip_of(&coded, &other) && !is_gzip_of(&coded, &page[1..]));
    }

    #[test]
    fn a_form_that_does_not_pay_is_none() {
        // This is noise, which looks like content that is compressed already.
        let mut state = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state.to_le_bytes()[0]
        })
        .take(10_000)
        .collect();
        for coding in Coding::ALL {
            assert_eq!(encode(coding, &noise), None, "{coding:?}");
            assert_eq!(encode(coding, b""), None, "{coding:?}");
        }
    }
}
