//! Names of pictures by their content.

use std::{
    hash::Hasher as _,
    io::{Read, Seek, SeekFrom},
};

use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::fault::Fault;

/// A change of how variants are made gets a new number: the pictures get new addresses, and are made again.
const ENCODER_VERSION: u64 = 3;

/// Files up to this length are hashed whole.
const WHOLE_BYTES_MAX: u64 = 1024 * 1024;

/// The length of each piece that is hashed of a longer file.
const PIECE_BYTES: u64 = 64 * 1024;

/// The number of pieces that are hashed of a longer file, spread evenly from its first byte to its last.
const PIECES: u64 = 8;

/// Returns 16 hexadecimal digits that differ for files that show different pictures, and are the same on every machine.
///
/// If a file is over 1 MiB, its length and half a megabyte in eight pieces are hashed: of 3,000 photographs, everything would be 12 GB to read. In
/// compressed pictures an edit changes nearly everything that follows it, and the length. Bitmaps, where that is not so, are hashed whole.
pub(crate) fn digest(reader: &mut (impl Read + Seek), bytes: u64, whole: bool) -> Result<String, Fault> {
    let mut hasher = SipHasher13::new();
    hasher.write_u64(ENCODER_VERSION);
    hasher.write_u64(bytes);
    let pieces = if whole || bytes <= WHOLE_BYTES_MAX { 1 } else { PIECES };
    let length = if pieces == 1 { bytes } else { PIECE_BYTES };
    let mut buffer = vec![0; 64 * 1024];
    for piece in 0..pieces {
        let start = if pieces == 1 { 0 } else { (bytes - PIECE_BYTES) / (PIECES - 1) * piece };
        let start = if piece + 1 == pieces { bytes - length } else { start };
        reader.seek(SeekFrom::Start(start))?;
        let mut left = length;
        while left > 0 {
            let size = usize::try_from(left).unwrap_or(buffer.len()).min(buffer.len());
            reader.read_exact(&mut buffer[..size])?;
            hasher.write(&buffer[..size]);
            left -= size as u64;
        }
    }
    Ok(format!("{:032x}", hasher.finish128().as_u128())[..16].to_owned())
}

/// Returns what tells a whole content from a damaged one.
pub(crate) fn checksum(content: &[u8]) -> u128 {
    let mut hasher = SipHasher13::new();
    hasher.write(content);
    hasher.finish128().as_u128()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn of(content: &[u8], whole: bool) -> String {
        digest(&mut Cursor::new(content), content.len() as u64, whole).expect("read")
    }

    #[test]
    fn a_digest_sees_both_ends_the_length_and_every_byte_of_a_short_file() {
        let long = vec![7; 3 * 1024 * 1024];
        let changed = |at: usize| {
            let mut other = long.clone();
            other[at] = 8;
            other
        };
        assert_eq!(of(&long, false), of(&long.clone(), false));
        assert_eq!(of(&long, false).len(), 16);
        for at in [0, 1000, long.len() - 1, long.len() - 60_000] {
            assert_ne!(of(&long, false), of(&changed(at), false), "{at}");
        }
        assert_ne!(of(&long, false), of(&long[1..], false));
        // Between two pieces: a bitmap must be hashed whole.
        assert_eq!(of(&long, false), of(&changed(100_000), false));
        assert_ne!(of(&long, true), of(&changed(100_000), true));
        let short = vec![7; 1024 * 1024];
        let mut other = short.clone();
        other[500_000] = 8;
        assert_ne!(of(&short, false), of(&other, false));
    }

    #[test]
    fn a_file_that_became_shorter_is_truncated() {
        assert_eq!(digest(&mut Cursor::new([1; 10]), 20, false), Err(Fault::Truncated));
    }
}
