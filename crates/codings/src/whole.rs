//! Content as a whole, made once for many readers.

use std::io::{self, Write};

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
