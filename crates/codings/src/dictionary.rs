//! Content coded with other content as its dictionary (RFC 9842): what a reader has already need not be sent again.

use std::io::{self, Write};

/// The compression level, as high as that of [`encode`](crate::encode): with a dictionary little is left to compress.
const LEVEL: i32 = 19;
/// The largest window, as a power of two: a decoder must be ready for 8 MiB, or for a quarter more than the dictionary (RFC 9842 §5).
const WINDOW_LOG_MAX: u32 = 23;
/// The first bytes of `dcz`: a frame that decoders skip, with the hash of the dictionary in it (§5).
const DCZ_MAGIC: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0];

/// The SHA-256 of a dictionary, which is its name (RFC 9842 §2.2).
pub type DictionaryHash = [u8; 32];

/// Returns the name of `content` as a dictionary.
#[must_use]
pub fn dictionary_hash(content: &[u8]) -> DictionaryHash {
    let mut hash = [0; 32];
    hash.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, content).as_ref());
    hash
}

/// Encodes `content` as `dcz`, for clients that have `dictionary`. Returns `None` if both together are longer than 8 MiB, or if the result
/// is not smaller than `content`.
///
/// It takes milliseconds: do not call it on a worker's thread.
#[must_use]
pub fn encode_with_dictionary(content: &[u8], dictionary: &[u8]) -> Option<Vec<u8>> {
    if content.len() + dictionary.len() > 1 << WINDOW_LOG_MAX {
        return None;
    }
    let coded = dcz(content, dictionary).ok()?;
    (coded.len() < content.len()).then_some(coded)
}

fn dcz(content: &[u8], dictionary: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(&DCZ_MAGIC);
    out.extend_from_slice(&dictionary_hash(dictionary));
    let mut coder = zstd::stream::write::Encoder::with_dictionary(out, LEVEL, dictionary)?;
    coder.set_pledged_src_size(Some(content.len() as u64))?;
    coder.include_dictid(false)?;
    coder.write_all(content)?;
    let mut coded = coder.finish()?;
    coded.shrink_to_fit();
    Ok(coded)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn page(paragraphs: usize, edited: usize) -> Vec<u8> {
        let paragraph = |n| format!("<p>Paragraph {n} of {}{}.</p>\n", n * n * 7919 % 10_007, if n == edited { ", edited" } else { "" });
        (0..paragraphs).map(paragraph).collect::<String>().into_bytes()
    }

    #[test]
    fn an_edited_page_costs_next_to_nothing() {
        let (before, after) = (page(2_000, 0), page(2_000, 700));
        let coded = encode_with_dictionary(&after, &before).expect("it is smaller");
        assert!(coded.len() < 200, "{} of {}", coded.len(), after.len());
        // RFC 9842 §5: the header is a skippable frame of 32 bytes, the hash.
        assert_eq!((&coded[..8], &coded[8..40]), (&DCZ_MAGIC[..], &dictionary_hash(&before)[..]));
        let mut decoded = Vec::new();
        let mut decoder = zstd::stream::read::Decoder::with_dictionary(&coded[40..], &before).expect("a decoder");
        decoder.read_to_end(&mut decoded).expect("it can be decoded");
        assert_eq!(decoded, after);
    }

    #[test]
    fn what_is_too_long_is_left_alone() {
        assert_eq!(encode_with_dictionary(&vec![0; 5 << 20], &vec![0; 5 << 20]), None);
        assert_eq!(encode_with_dictionary(b"short", b"short"), None);
    }

    /// The hash is that of FIPS 180-4.
    #[test]
    fn a_dictionary_has_its_name() {
        assert_eq!(dictionary_hash(b"abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
    }
}
